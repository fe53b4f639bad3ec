//! The memory that all ranks of a job on one host map.
//!
//! Each rank holds a lock on a byte of its file, which the kernel takes from it when its process ends, however
//! it ends. So others see who lives, also from another PID namespace, where process ids say nothing.

use crate::device::Options;
use crate::layout::{GROWTH, Layout, PAGE};
use crate::pool::GRANULE;
use crate::sync::{AtomicU32, Ordering};
use fabric::Exchange;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Key under which the first rank of a host publishes the path of its segment, and which host.
pub const KEY: &str = "tern.shm";
/// How long rank 0 waits for the others to map the segment.
const MAP_TIMEOUT: Duration = Duration::from_secs(60);

/// A mapped segment.
pub struct Segment {
    base: usize,
    len: usize,
    file: Option<File>,
    dir: PathBuf,
    /// Who unmaps: this value, or another one that it keeps alive.
    owner: Option<Arc<Segment>>,
}

// SAFETY: the mapping is plain memory that any thread of the process may use.
unsafe impl Send for Segment {}

impl Segment {
    /// Memory for ranks of one process only (a singleton, tests).
    pub fn private(layout: &Layout) -> Result<Segment, String> {
        map(None, layout.total(), Path::new("anonymous memory"))
    }

    /// Another view of `whole`, for a further rank of this process.
    pub fn shared(whole: &Arc<Segment>) -> Segment {
        Segment {
            base: whole.base,
            len: whole.len,
            file: None,
            dir: whole.dir.clone(),
            owner: Some(whole.clone()),
        }
    }

    /// Creates the segment (rank 0) or maps the one that rank 0 published. Collective: with it comes whether
    /// all ranks said that they have barriers.
    pub fn join(
        (me, n, group): (usize, usize, &str),
        layout: &Layout,
        options: &Options,
        has_barrier: bool,
        exchange: &mut dyn Exchange,
    ) -> Result<(Segment, bool), String> {
        let key = format!("{KEY}{group}");
        if me == 0 {
            let created = create(n, layout, options);
            let text = match &created {
                Ok((_, path)) => path.display().to_string(),
                Err(why) => format!("!{why}"),
            };
            let outcome = publish(created, (&key, &text), n, has_barrier, exchange);
            if outcome.is_err()
                && let Some(path) = text.strip_prefix('/')
            {
                let _ = std::fs::remove_file(Path::new("/").join(path));
            }
            return outcome;
        }
        exchange.fence()?;
        let text = exchange.get(&key)?;
        match text.strip_prefix('!') {
            Some(why) => Err(format!("rank 0 could not create the shared memory: {why}")),
            None => {
                let segment = open(layout, Path::new(&text), &options.dir)?;
                let all_have = segment.meet(n, has_barrier)?;
                Ok((segment, all_have))
            }
        }
    }

    /// Address of an offset.
    pub fn at(&self, offset: usize) -> usize {
        debug_assert!(offset < self.len);
        self.base + offset
    }

    /// Makes sure that memory stands behind `len` bytes at `offset`, so that a full file system
    /// is an error here and not a SIGBUS later.
    pub fn back(&self, offset: usize, len: usize) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let (mut at, mut piece) = (offset, len);
        while at < offset + len {
            piece = piece.min(offset + len - at);
            // SAFETY: plain system call on our own descriptor.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), at as libc::off_t, piece as libc::off_t) }
            {
                0 => at += piece,
                libc::EOPNOTSUPP | libc::EINVAL => return Ok(()),
                // What an interrupted call has done is undone: where signals come often a long one never ends.
                libc::EINTR => piece = (piece / 2).next_multiple_of(PAGE),
                code => {
                    return Err(format!(
                        "no space for shared memory in {} ({}); enlarge it (docker: --shm-size) or set TERN_SHM_DIR",
                        self.dir.display(),
                        std::io::Error::from_raw_os_error(code)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Maps what is backed, so that it costs no page faults when it is used. Where the kernel cannot (Linux
    /// 5.14), it does.
    pub fn populate(&self, offset: usize, len: usize) {
        if cfg!(miri) {
            return;
        }
        // SAFETY: pages of this mapping, whose contents stay.
        unsafe { libc::madvise(self.at(offset) as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) };
    }

    /// Marks for others that this process lives. False where that is not possible.
    pub fn mark_alive(&self, rank: usize) -> bool {
        self.lock(libc::F_SETLK, rank).is_some()
    }

    /// Whether the process that has marked `rank` is no more.
    pub fn is_unmarked(&self, rank: usize) -> bool {
        self.lock(libc::F_GETLK, rank) == Some(libc::F_UNLCK)
    }

    /// Calls `fcntl` for the byte of a rank; the type of lock it tells.
    fn lock(&self, command: libc::c_int, rank: usize) -> Option<libc::c_int> {
        let file = self.file.as_ref()?;
        // SAFETY: all zero is a valid value of this plain struct.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        (lock.l_start, lock.l_len) = (rank as libc::off_t, 1);
        // SAFETY: our own descriptor, and a local variable for the answer.
        let code = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        (code == 0).then_some(lock.l_type as libc::c_int)
    }

    /// Waits until all ranks have mapped the segment; whether all of them have barriers.
    fn meet(&self, n: usize, has_barrier: bool) -> Result<bool, String> {
        let [mapped, lacking] = self.counts();
        lacking.fetch_add(u32::from(!has_barrier), Ordering::AcqRel);
        mapped.fetch_add(1, Ordering::AcqRel);
        let start = Instant::now();
        while (mapped.load(Ordering::Acquire) as usize) < n {
            let waited = start.elapsed();
            if waited > MAP_TIMEOUT {
                return Err(format!(
                    "only {} of {n} ranks mapped the shared memory in {} s",
                    mapped.load(Ordering::Acquire),
                    MAP_TIMEOUT.as_secs()
                ));
            }
            // Not much longer than needed, and not often where many wait for long.
            std::thread::sleep((Duration::from_micros(20) + waited / 4).min(Duration::from_millis(10)));
        }
        Ok(lacking.load(Ordering::Acquire) == 0)
    }

    /// How many ranks have mapped the segment, and how many of them lack barriers.
    fn counts(&self) -> [&AtomicU32; 2] {
        let at = self.base as *const AtomicU32;
        // SAFETY: the first words of the segment, aligned, used for nothing else.
        unsafe { [&*at, &*at.add(1)] }
    }

    /// How often a rank has got memory for its blocks.
    pub fn growth(&self) -> &AtomicU32 {
        let at = (self.base + GROWTH) as *const AtomicU32;
        // SAFETY: a word of the segment's first page, aligned, used for nothing else.
        unsafe { &*at }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.owner.is_none() {
            // SAFETY: this mapping was made by `map` and is unmapped once; see `Shm` for who uses it.
            unsafe { libc::munmap(self.base as *mut _, self.len) };
        }
    }
}

fn publish(
    created: Result<(Segment, PathBuf), String>,
    (key, text): (&str, &str),
    n: usize,
    has_barrier: bool,
    exchange: &mut dyn Exchange,
) -> Result<(Segment, bool), String> {
    exchange.put(key, text)?;
    exchange.fence()?;
    let (segment, path) = created?;
    let all_have = segment.meet(n, has_barrier)?;
    std::fs::remove_file(&path).map_err(|e| format!("cannot unlink {}: {e}", path.display()))?;
    Ok((segment, all_have))
}

fn create(n: usize, layout: &Layout, options: &Options) -> Result<(Segment, PathBuf), String> {
    let (segment, path) = create_named(layout.total(), &options.dir, &options.prefix)?;
    back_control(&segment, layout, n).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
    Ok((segment, path))
}

/// Memory under a name that nobody can guess, for others of this user to map.
pub fn create_named(len: usize, dir: &Path, prefix: &str) -> Result<(Segment, PathBuf), String> {
    let path = dir.join(format!("{prefix}{}", random_name()?));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(|e| {
            format!("cannot create {}: {e}; TERN_SHM_DIR names another directory", path.display())
        })?;
    let sized = file.set_len(len as u64).map_err(|e| format!("cannot size {}: {e}", path.display()));
    let mapped = sized.and_then(|()| map(Some(file), len, dir));
    mapped.map(|segment| (segment, path.clone())).inspect_err(|_| drop(std::fs::remove_file(&path)))
}

/// Backs what ranks write into each other's part from the first message on: before that nobody
/// knows whether the other has come as far. Then rings, unless they are many: payloads may have taken all
/// there is when a rank first sends to another. And a granule for each, with which it can get on.
fn back_control(segment: &Segment, layout: &Layout, n: usize) -> Result<(), String> {
    segment.back(0, layout.small())?;
    (0..n).try_for_each(|rank| segment.back(layout.granule(rank, 0), GRANULE))
}

fn open(layout: &Layout, path: &Path, dir: &Path) -> Result<Segment, String> {
    open_named(layout.total(), path, dir)
}

/// Maps what [`create_named`] made.
pub fn open_named(len: usize, path: &Path, dir: &Path) -> Result<Segment, String> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path).map_err(|e| {
            format!(
                "cannot open the shared memory of the job, {}: {e}; with TERN_DEVICES=shm all ranks must be on one host",
                path.display()
            )
        })?;
    let meta = file.metadata().map_err(|e| format!("{}: {e}", path.display()))?;
    // SAFETY: no operands.
    let me = unsafe { libc::geteuid() };
    if meta.uid() != me || meta.mode() & 0o077 != 0 || meta.len() != len as u64 {
        return Err(format!(
            "{} is not the shared memory of this job (owner, mode or size differ)",
            path.display()
        ));
    }
    map(Some(file), len, dir)
}

fn map(file: Option<File>, len: usize, dir: &Path) -> Result<Segment, String> {
    let (flags, fd) = match &file {
        // Ranks of one process need no more, and miri knows no other.
        None if cfg!(miri) => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    let flags = if cfg!(miri) { flags } else { flags | libc::MAP_NORESERVE };
    // SAFETY: a new mapping at an address the kernel chooses.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(format!("cannot map {len} bytes of shared memory: {}", std::io::Error::last_os_error()));
    }
    Ok(Segment { base: base as usize, len, file, dir: dir.into(), owner: None })
}

/// Random bytes, for names that nobody can guess.
pub fn random() -> std::io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn random_name() -> Result<String, String> {
    let bytes = random().map_err(|e| format!("cannot read /dev/urandom: {e}"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn options() -> Options {
        Options {
            dir: "/dev/shm".into(),
            single_copy: true,
            cores: 2,
            prefix: "tern-test".into(),
            stores: None,
            loads: None,
        }
    }

    extern "C" fn nothing(_: libc::c_int) {}

    /// Signals that come all the time (profilers, alarms) are no lack of memory.
    #[test]
    fn interrupted_calls_back_memory_all_the_same() {
        let layout = Layout::new(8);
        let (segment, path) = create(8, &layout, &options()).unwrap();
        std::fs::remove_file(path).unwrap();
        let handler = nothing as extern "C" fn(libc::c_int);
        // SAFETY: a handler that does nothing, for a signal nobody else uses here; this thread's own name.
        let me = unsafe {
            libc::signal(libc::SIGUSR2, handler as libc::sighandler_t);
            libc::pthread_self()
        };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: the thread lives as long as this scope.
                    unsafe { libc::pthread_kill(me, libc::SIGUSR2) };
                    std::thread::yield_now();
                }
            });
            let backed = segment.back(0, layout.total());
            stop.store(true, Ordering::Relaxed);
            backed.unwrap();
        });
    }

    /// The lock of a process that ended is free, however it ended; that of one that lives is not.
    #[test]
    fn who_has_ended_is_no_longer_marked() {
        let (segment, path) = create(2, &Layout::new(2), &options()).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(segment.is_unmarked(0) && segment.is_unmarked(1));
        let mut pipe = [0; 2];
        // SAFETY: plain calls; the child touches nothing but its descriptors until it is killed.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let child = libc::fork();
            if child == 0 {
                segment.mark_alive(1);
                libc::write(pipe[1], b"x".as_ptr().cast(), 1);
                libc::pause();
                libc::_exit(0);
            }
            let mut byte = 0u8;
            assert_eq!(libc::read(pipe[0], (&raw mut byte).cast(), 1), 1);
            assert!(segment.is_unmarked(0) && !segment.is_unmarked(1));
            libc::kill(child, libc::SIGKILL);
            // It need not be reaped.
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, child as libc::id_t, &raw mut info, libc::WEXITED | libc::WNOWAIT);
            assert!(segment.is_unmarked(1));
            libc::waitpid(child, std::ptr::null_mut(), 0);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
        }
        assert!(segment.mark_alive(0));
    }
}
