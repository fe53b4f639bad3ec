//! Waiting for descriptors: epoll for the launcher, poll for the client.
use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Something can be read, or the other side has closed.
pub const READ: u32 = libc::EPOLLIN as u32;
/// Something can be written.
pub const WRITE: u32 = libc::EPOLLOUT as u32;

/// A set of descriptors to wait for, level-triggered.
pub struct Epoll(OwnedFd);

/// One descriptor that is ready, known by the token it was added with.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// What [`Epoll::add`] was given.
    pub token: u64,
}

impl Epoll {
    /// An empty set.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: creates a descriptor, touches no memory.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new and owned by nobody else.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Adds `fd`, which must stay open until it is removed.
    pub fn add(&self, fd: RawFd, token: u64, interest: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Waits for other things of a descriptor that is in the set.
    pub fn change(&self, fd: RawFd, token: u64, interest: u32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    /// Takes `fd` out of the set.
    pub fn remove(&self, fd: RawFd) {
        // A descriptor that is not in the set needs no removal: the error says nothing.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, 0);
    }

    /// Waits until something is ready or the time is over; a signal ends the wait with nothing.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Vec<Ready>> {
        const AT_ONCE: usize = 64;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        // SAFETY: `events` is writable for AT_ONCE entries.
        let count = check(unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), AT_ONCE as i32, millis(timeout))
        });
        match count {
            Ok(count) => Ok(events[..count as usize].iter().map(|e| Ready { token: e.u64 }).collect()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn control(&self, operation: i32, fd: RawFd, token: u64, interest: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest, u64: token };
        // SAFETY: `event` is valid for the call, which copies it.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &mut event) }).map(drop)
    }
}

/// Rounded up, so that a wait does not end just before its time and turn into a spin.
fn millis(timeout: Option<Duration>) -> i32 {
    timeout.map_or(-1, |t| i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX))
}

/// Waits until `fd` is ready for `interest`; false when the time is over first.
pub fn wait_one(fd: BorrowedFd, interest: u32, timeout: Option<Duration>) -> io::Result<bool> {
    let events = if interest == READ { libc::POLLIN } else { libc::POLLOUT };
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    loop {
        // SAFETY: `entry` is one valid pollfd.
        match check(unsafe { libc::poll(&mut entry, 1, millis(timeout)) }) {
            Ok(count) => return Ok(count > 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
