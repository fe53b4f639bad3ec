//! A page of memory that the launcher writes and all ranks of its host read: the number of its last question, and
//! the secret of the job, which so is in no environment and on no command line.
use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const BYTES: usize = 4096;

/// What is on the page.
#[repr(C)]
struct Page {
    question: AtomicU32,
    secret: [AtomicU32; 4],
}

/// The launcher's side. The memory has no name; it goes with the last process that has mapped it.
pub struct Board {
    memory: OwnedFd,
    page: &'static Page,
}

impl Board {
    /// A page with no question. No rank can change it, nor how long the memory is.
    pub fn new(secret: [u8; 16]) -> io::Result<Board> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a C string.
        let fd = check(unsafe { libc::memfd_create(c"tern-board".as_ptr(), flags) })?;
        // SAFETY: the descriptor is new and owned by nobody else.
        let memory = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: touches no memory of this process.
        check(unsafe { libc::ftruncate(fd, BYTES as libc::off_t) })?;
        let page = map(fd, libc::PROT_READ | libc::PROT_WRITE)?;
        for (word, bytes) in page.secret.iter().zip(secret.chunks_exact(4)) {
            word.store(u32::from_ne_bytes(bytes.try_into().expect("four bytes")), Ordering::Relaxed);
        }
        let seal = |seals: libc::c_int| {
            // SAFETY: F_ADD_SEALS touches no memory.
            check(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) })
        };
        seal(libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
        // Before Linux 5.1 this seal is unknown: then a rank could write, if it wanted to.
        let _ = seal(libc::F_SEAL_FUTURE_WRITE);
        Ok(Board { memory, page })
    }

    /// Writes the number of a question.
    pub fn write(&self, question: u32) {
        self.page.question.store(question, Ordering::Release);
    }
}

impl AsRawFd for Board {
    fn as_raw_fd(&self) -> RawFd {
        self.memory.as_raw_fd()
    }
}

/// What a process reads that has no board.
static NONE: Page = Page { question: AtomicU32::new(0), secret: [const { AtomicU32::new(0) }; 4] };
/// What [`read`] reads.
static PAGE: AtomicPtr<Page> = AtomicPtr::new((&raw const NONE).cast_mut());

/// A rank's side: maps the board behind `memory` for the life of this process.
pub fn adopt(memory: BorrowedFd) -> io::Result<()> {
    // SAFETY: all-zero is a valid `stat`, which is plain data.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable and of the type that fstat fills.
    check(unsafe { libc::fstat(memory.as_raw_fd(), &mut stat) })?;
    if stat.st_size < BYTES as libc::off_t {
        return Err(io::Error::other("it is too short"));
    }
    let page = map(memory.as_raw_fd(), libc::PROT_READ)?;
    PAGE.store(ptr::from_ref(page).cast_mut(), Ordering::Release);
    Ok(())
}

/// The number on the board; 0 where there is none.
#[inline]
pub fn read() -> u32 {
    page().question.load(Ordering::Acquire)
}

/// The secret of the job; `None` where there is no board.
pub fn secret() -> Option<[u8; 16]> {
    let words = page().secret.each_ref().map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
    // 128 random bits are not all zero.
    let bytes = words.as_flattened().try_into().expect("four words of four bytes");
    (bytes != [0; 16]).then_some(bytes)
}

#[inline]
fn page() -> &'static Page {
    // SAFETY: a static, or a page that stays mapped.
    unsafe { &*PAGE.load(Ordering::Acquire) }
}

fn map(fd: RawFd, access: libc::c_int) -> io::Result<&'static Page> {
    // SAFETY: a new mapping, which overlaps nothing.
    let start = unsafe { libc::mmap(ptr::null_mut(), BYTES, access, libc::MAP_SHARED, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a page that is never unmapped, of memory that cannot become shorter, and zero at first.
    Ok(unsafe { &*start.cast::<Page>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_the_launcher_counts_is_read() {
        let board = Board::new([7; 16]).unwrap();
        assert_eq!((read(), secret()), (0, None));
        board.write(2);
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(adopt(null.as_fd()).is_err());
        assert_eq!(read(), 0);
        adopt(board.memory.as_fd()).unwrap();
        assert_eq!((read(), secret()), (2, Some([7; 16])));
        board.write(3);
        assert_eq!(read(), 3);
        // SAFETY: touches no memory of this process.
        assert_eq!(unsafe { libc::ftruncate(board.as_raw_fd(), 0) }, -1);
    }
}
