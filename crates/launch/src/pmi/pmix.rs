//! PMIx: what Open MPI's `mpirun`, PRRTE and `srun --mpi=pmix` speak, by the library of theirs that is found.
//!
//! A key of PMIx belongs to the process that has put it, and asking for one that nobody has put can take for ever. So
//! whatever a rank puts between two fences goes under one key that every rank has, and each is asked for when a
//! value is looked for.
use super::client::{Ender, Space};
use crate::sys::pmix::{Library, WHOLE_JOB};
use crate::text::{escape, unescape};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::PathBuf;

/// A job of PMIx.
pub(super) struct Pmix {
    library: Library,
    rank: u32,
    size: u32,
    /// Fences that are over.
    fences: usize,
    /// What has been put since the last one: lines of key and value.
    put: String,
    /// By fence and rank: what was put before.
    known: HashMap<(usize, u32), HashMap<String, String>>,
}

impl Pmix {
    /// Connects this process, which is said to have this rank in the job of this name.
    pub(super) fn connect(name: &str, rank: usize) -> Result<Pmix, String> {
        let library = open()?;
        let (its, at) = (library.name(), library.rank());
        // Some versions make a job of one process of whoever does not reach the server.
        if its != name || at as usize != rank {
            return Err(format!(
                "libpmix made this process rank {at} of job {its}, but PMIX_NAMESPACE={name} and PMIX_RANK={rank}: \
                 it did not reach the launcher"
            ));
        }
        let size = library.number(WHOLE_JOB, "pmix.job.size")?;
        if at >= size {
            return Err(format!("PMIx says that this is rank {at} of a job of {size}"));
        }
        Ok(Pmix { library, rank: at, size, fences: 0, put: String::new(), known: HashMap::new() })
    }

    /// What a rank has put before a fence.
    fn read(&self, fence: usize, rank: u32) -> Result<HashMap<String, String>, String> {
        let text = self.library.text(rank, &key(fence))?;
        let mut lines = text.lines();
        let pairs: Option<HashMap<_, _>> = match lines.next() {
            Some(HEAD) => lines
                .map(|line| line.split_once(' '))
                .map(|pair| pair.map(|(key, value)| (key.to_string(), value.to_string())))
                .collect(),
            _ => None,
        };
        pairs.ok_or_else(|| {
            format!("what rank {rank} has put into the key-value space of PMIx is not of this library")
        })
    }
}

/// First line of what a rank puts.
const HEAD: &str = "tern";

fn key(fence: usize) -> String {
    format!("tern.fence.{fence}")
}

impl Space for Pmix {
    fn rank(&self) -> usize {
        self.rank as usize
    }

    fn size(&self) -> usize {
        self.size as usize
    }

    fn name(&mut self) -> Result<String, String> {
        Ok(self.library.name())
    }

    fn appnum(&mut self) -> Result<i64, String> {
        self.library.number(self.rank, "pmix.appnum").map(i64::from)
    }

    fn universe(&mut self) -> Result<Option<usize>, String> {
        Ok(self.library.number(WHOLE_JOB, "pmix.univ.size").ok().map(|n| n as usize).filter(|n| *n > 0))
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), String> {
        self.put += &format!("{} {}\n", escape(key.as_bytes()), escape(value));
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Vec<u8>, String> {
        let word = escape(key.as_bytes());
        for fence in (0..self.fences).rev() {
            for rank in 0..self.size {
                if !self.known.contains_key(&(fence, rank)) {
                    let pairs = self.read(fence, rank)?;
                    self.known.insert((fence, rank), pairs);
                }
                if let Some(value) = self.known[&(fence, rank)].get(&word) {
                    return unescape(value).ok_or_else(|| format!("the value of key {key} is corrupt"));
                }
            }
        }
        Err(format!("PMIx: no rank has put {key}"))
    }

    fn barrier(&mut self) -> Result<(), String> {
        let text = format!("{HEAD}\n{}", std::mem::take(&mut self.put));
        self.library.put(&key(self.fences), &text)?;
        self.library.fence()?;
        self.fences += 1;
        Ok(())
    }

    fn finalize(&mut self) -> Result<(), String> {
        self.library.finalize()
    }

    fn ender(&self) -> Ender {
        let library = self.library.clone();
        Ender::by(move |code| library.abort(code))
    }
}

/// The library that the launcher uses itself, if that can be seen, else the one that the system finds.
fn open() -> Result<Library, String> {
    let tried: Vec<PathBuf> = launchers_own().into_iter().chain(["libpmix.so.2".into()]).collect();
    let mut why = Vec::new();
    for path in &tried {
        match Library::open(path.as_os_str()) {
            Ok(library) => return Ok(library),
            Err(text) => why.push(text),
        }
    }
    Err(format!(
        "a PMIx launcher started this process (PMIX_RANK is set), but there is no way to speak with it: {}. Install the \
         libpmix that belongs to the launcher (Debian: libpmix2) or name its directory in LD_LIBRARY_PATH; or start \
         the program with Tern's own mpiexec, with Hydra, or with 'srun --mpi=pmi2'; or clear PMIX_RANK to run it alone",
        why.join("; ")
    ))
}

/// Most processes between this one and its launcher.
const ANCESTORS_MAX: usize = 16;

/// The libpmix that the launcher, an ancestor of this process, has loaded. That of another user (slurmstepd) shows nothing.
fn launchers_own() -> Option<PathBuf> {
    let mut process = std::os::unix::process::parent_id();
    for _ in 0..ANCESTORS_MAX {
        let maps = std::fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
        if let Some(path) = mapped(&String::from_utf8_lossy(&maps)) {
            return Some(path);
        }
        process =
            parent(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?).filter(|p| *p > 1)?;
    }
    None
}

/// The first file of the name of the library in a list of mappings.
fn mapped(maps: &str) -> Option<PathBuf> {
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    paths.map(PathBuf::from).find(|path| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("libpmix.so"))
    })
}

/// The parent, in the fourth field of /proc/PID/stat; the second, in parentheses, may hold anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_library_is_found_among_its_mappings() {
        let maps = "7f00-7f01 r--p 00000000 fe:00 12 /usr/lib/libc.so.6\n7f02-7f03 r--p 0 0:0 0\n\
                    7f04-7f05 r-xp 00000000 fe:00 13 /opt/a b/lib/libpmix.so.2.13.9\n";
        assert_eq!(mapped(maps), Some("/opt/a b/lib/libpmix.so.2.13.9".into()));
        assert_eq!(mapped("7f00-7f01 r--p 00000000 fe:00 12 /usr/lib/mpi_pmix.so\n"), None);
    }

    #[test]
    fn parents_are_read_whatever_a_program_is_called() {
        assert_eq!(parent("17 (a) S 3 (b) R 5 17 17 0"), Some(5));
        assert_eq!(parent(""), None);
        assert_eq!(
            parent(&std::fs::read_to_string("/proc/self/stat").unwrap()),
            Some(std::os::unix::process::parent_id())
        );
    }
}
