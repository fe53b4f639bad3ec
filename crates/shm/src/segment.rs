//! The memory that all ranks of a job on one host map.

use crate::device::Options;
use crate::layout::Layout;
use crate::sync::{AtomicU32, Ordering};
use fabric::Exchange;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Key under which rank 0 publishes the path of the segment.
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

    /// Creates the segment (rank 0) or maps the one that rank 0 published. Collective.
    pub fn join(
        me: usize,
        n: usize,
        layout: &Layout,
        options: &Options,
        exchange: &mut dyn Exchange,
    ) -> Result<Segment, String> {
        if me == 0 {
            let created = create(n, layout, options);
            let text = match &created {
                Ok((_, path)) => path.display().to_string(),
                Err(why) => format!("!{why}"),
            };
            let outcome = publish(created, &text, n, exchange);
            if outcome.is_err()
                && let Some(path) = text.strip_prefix('/')
            {
                let _ = std::fs::remove_file(Path::new("/").join(path));
            }
            return outcome;
        }
        exchange.fence()?;
        let text = exchange.get(KEY)?;
        match text.strip_prefix('!') {
            Some(why) => Err(format!("rank 0 could not create the shared memory: {why}")),
            None => open(layout, Path::new(&text), &options.dir),
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
        // SAFETY: plain system call on our own descriptor.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as libc::off_t, len as libc::off_t) } {
            0 | libc::EOPNOTSUPP | libc::EINVAL => Ok(()),
            code => Err(format!(
                "no space for shared memory in {} ({}); enlarge it (docker: --shm-size) or set TERN_SHM_DIR",
                self.dir.display(),
                std::io::Error::from_raw_os_error(code)
            )),
        }
    }

    /// Maps what is backed, so that it costs no page faults when it is used. Where the kernel cannot (Linux
    /// 5.14), it does.
    pub fn populate(&self, offset: usize, len: usize) {
        // SAFETY: pages of this mapping, whose contents stay.
        unsafe { libc::madvise(self.at(offset) as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) };
    }

    fn ready(&self) -> &AtomicU32 {
        // SAFETY: the first word of the segment, aligned, used for nothing else.
        unsafe { &*(self.base as *const AtomicU32) }
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
    text: &str,
    n: usize,
    exchange: &mut dyn Exchange,
) -> Result<Segment, String> {
    exchange.put(KEY, text)?;
    exchange.fence()?;
    let (segment, path) = created?;
    segment.ready().fetch_add(1, Ordering::AcqRel);
    let start = Instant::now();
    while (segment.ready().load(Ordering::Acquire) as usize) < n {
        if start.elapsed() > MAP_TIMEOUT {
            return Err(format!(
                "only {} of {n} ranks mapped the shared memory in {} s",
                segment.ready().load(Ordering::Acquire),
                MAP_TIMEOUT.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    std::fs::remove_file(&path).map_err(|e| format!("cannot unlink {}: {e}", path.display()))?;
    Ok(segment)
}

fn create(n: usize, layout: &Layout, options: &Options) -> Result<(Segment, PathBuf), String> {
    let dir = &options.dir;
    let path = dir.join(format!("{}{}", options.prefix, random_name()?));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(|e| {
            format!("cannot create {}: {e}; TERN_SHM_DIR names another directory", path.display())
        })?;
    file.set_len(layout.total() as u64).map_err(|e| format!("cannot size {}: {e}", path.display()))?;
    let segment = map(Some(file), layout.total(), dir)?;
    back_control(&segment, layout, n).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
    Ok((segment, path))
}

/// Backs what ranks write into each other's part from the first message on: before that nobody
/// knows whether the other has come as far.
fn back_control(segment: &Segment, layout: &Layout, n: usize) -> Result<(), String> {
    segment.back(0, crate::layout::PAGE)?;
    (0..n).try_for_each(|rank| segment.back(layout.sleep(rank), layout.ring(0, rank) - layout.sleep(rank)))
}

fn open(layout: &Layout, path: &Path, dir: &Path) -> Result<Segment, String> {
    let file =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path).map_err(|e| {
            format!(
                "cannot open the shared memory of the job, {}: {e}; are all ranks on one host?",
                path.display()
            )
        })?;
    let meta = file.metadata().map_err(|e| format!("{}: {e}", path.display()))?;
    // SAFETY: no operands.
    let me = unsafe { libc::geteuid() };
    if meta.uid() != me || meta.mode() & 0o077 != 0 || meta.len() != layout.total() as u64 {
        return Err(format!(
            "{} is not the shared memory of this job (owner, mode or size differ)",
            path.display()
        ));
    }
    let segment = map(Some(file), layout.total(), dir)?;
    segment.ready().fetch_add(1, Ordering::AcqRel);
    Ok(segment)
}

fn map(file: Option<File>, len: usize, dir: &Path) -> Result<Segment, String> {
    let (flags, fd) = match &file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    let flags = flags | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address the kernel chooses.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(format!("cannot map {len} bytes of shared memory: {}", std::io::Error::last_os_error()));
    }
    Ok(Segment { base: base as usize, len, file, dir: dir.into(), owner: None })
}

fn random_name() -> Result<String, String> {
    let mut bytes = [0u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut f| f.read_exact(&mut bytes))
        .map_err(|e| format!("cannot read /dev/urandom: {e}"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
