//! Pages as an adapter holds them: whatever is mapped at their address later, these stay the same. A
//! pipe that memory was spliced into has just that: a reference to each page.

use fabric::Span;
use std::fs::File;
use std::io::{Error, Read};
use std::os::fd::{AsRawFd, FromRawFd};

const PAGE: usize = 4096;

/// The pages that held a span when it was pinned.
pub struct Pinned {
    first: usize,
    len: usize,
    pages: [File; 2],
    /// For the copy that is read, since reading takes out of a pipe.
    copy: [File; 2],
}

fn pipe(len: usize) -> [File; 2] {
    let mut fds = [0; 2];
    // SAFETY: two descriptors are written, and owned by nobody else.
    unsafe {
        assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
        assert!(libc::fcntl(fds[0], libc::F_SETPIPE_SZ, len) >= len as i32, "{}", Error::last_os_error());
        fds.map(|fd| File::from_raw_fd(fd))
    }
}

impl Pinned {
    /// Longest span that every user may pin.
    pub const LEN_MAX: usize = 256 * 1024;

    /// Pins the pages around a span.
    pub fn new(span: Span) -> Pinned {
        let first = span.addr / PAGE * PAGE;
        let len = (span.addr + span.len).next_multiple_of(PAGE) - first;
        let pages = pipe(len);
        let vector = libc::iovec { iov_base: first as *mut libc::c_void, iov_len: len };
        // SAFETY: these pages are mapped; they are read only.
        let pinned = unsafe { libc::vmsplice(pages[1].as_raw_fd(), &vector, 1, libc::SPLICE_F_NONBLOCK) };
        assert_eq!(pinned, len as isize, "{}", Error::last_os_error());
        Pinned { first, len, pages, copy: pipe(len) }
    }

    /// What these pages hold now where `span` was.
    pub fn read(&mut self, span: Span) -> Vec<u8> {
        let (from, to) = (self.pages[0].as_raw_fd(), self.copy[1].as_raw_fd());
        // SAFETY: the call takes numbers alone.
        assert_eq!(unsafe { libc::tee(from, to, self.len, libc::SPLICE_F_NONBLOCK) }, self.len as isize);
        let mut bytes = vec![0; self.len];
        self.copy[0].read_exact(&mut bytes).unwrap();
        bytes[span.addr - self.first..][..span.len].to_vec()
    }
}
