//! A word of memory that the launcher writes and all ranks read.
use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const BYTES: usize = 4096;

/// The launcher's side. The memory has no name; it goes with the last process that has mapped it.
pub struct Board {
    memory: OwnedFd,
    word: &'static AtomicU32,
}

impl Board {
    /// A word that is 0. No rank can change it, nor how long the memory is.
    pub fn new() -> io::Result<Board> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = check(unsafe { libc::memfd_create(c"tern-board".as_ptr(), flags) })?;
        // SAFETY: the descriptor is new and owned by nobody else.
        let memory = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: touches no memory of this process.
        check(unsafe { libc::ftruncate(fd, BYTES as libc::off_t) })?;
        let word = map(fd, libc::PROT_READ | libc::PROT_WRITE)?;
        let seal = |seals: libc::c_int| {
            // SAFETY: F_ADD_SEALS touches no memory.
            check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) })
        };
        seal(libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
        // Before Linux 5.1 this seal is unknown: then a rank could write, if it wanted to.
        let _ = seal(libc::F_SEAL_FUTURE_WRITE);
        Ok(Board { memory, word })
    }

    /// Writes the next number, and returns it; never 0.
    pub fn count(&self) -> u32 {
        let next = self.word.load(Ordering::Relaxed).wrapping_add(1).max(1);
        self.word.store(next, Ordering::Release);
        next
    }
}

impl AsRawFd for Board {
    fn as_raw_fd(&self) -> RawFd {
        self.memory.as_raw_fd()
    }
}

/// What a process reads that has no board.
static NONE: AtomicU32 = AtomicU32::new(0);
/// What [`read`] reads.
static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const NONE).cast_mut());

/// A rank's side: maps the board behind `memory` for the life of this process.
pub fn adopt(memory: BorrowedFd) -> io::Result<()> {
    // SAFETY: all-zero is a valid `stat`, which is plain data.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable and of the type that fstat fills.
    check(unsafe { libc::fstat(memory.as_raw_fd(), &mut stat) })?;
    if stat.st_size < BYTES as libc::off_t {
        return Err(io::Error::other("it is too short"));
    }
    let word = map(memory.as_raw_fd(), libc::PROT_READ)?;
    WORD.store(ptr::from_ref(word).cast_mut(), Ordering::Release);
    Ok(())
}

/// The number on the board; 0 where there is none.
#[inline]
pub fn read() -> u32 {
    // SAFETY: a static, or a page that stays mapped.
    unsafe { &*WORD.load(Ordering::Acquire) }.load(Ordering::Acquire)
}

fn map(fd: RawFd, access: libc::c_int) -> io::Result<&'static AtomicU32> {
    // SAFETY: a new mapping, which overlaps nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a page that is never unmapped, of memory that cannot become shorter, and zero at first.
    Ok(unsafe { &*start.cast::<AtomicU32>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_the_launcher_counts_is_read() {
        let board = Board::new().unwrap();
        assert_eq!(read(), 0);
        assert_eq!([board.count(), board.count()], [1, 2]);
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(adopt(null.as_fd()).is_err());
        assert_eq!(read(), 0);
        adopt(board.memory.as_fd()).unwrap();
        assert_eq!([read(), board.count(), read()], [2, 3, 3]);
        // SAFETY: touches no memory of this process.
        assert_eq!(unsafe { libc::ftruncate(board.as_raw_fd(), 0) }, -1);
    }
}
