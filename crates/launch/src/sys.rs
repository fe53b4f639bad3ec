//! The system calls that the standard library does not offer, each as a small safe function.
//!
//! All `unsafe` of this crate is in this module and its children.
pub mod board;
pub mod event;
pub mod net;
pub mod packet;
pub mod pmix;
pub mod process;
pub mod signal;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// Turns the `-1` of a system call into the error it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Writes to a socket without the SIGPIPE that would kill a program when the other side is gone;
/// to anything else (a launcher may use pipes) as usual.
pub fn send(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    let (raw, start) = (fd.as_raw_fd(), bytes.as_ptr().cast());
    // SAFETY: `start` is readable for the length given.
    let sent = unsafe { libc::send(raw, start, bytes.len(), libc::MSG_NOSIGNAL) };
    match usize::try_from(sent) {
        Ok(sent) => Ok(sent),
        Err(_) if io::Error::last_os_error().raw_os_error() == Some(libc::ENOTSOCK) => {
            // SAFETY: as above.
            let written = unsafe { libc::write(raw, start, bytes.len()) };
            usize::try_from(written).map_err(|_| io::Error::last_os_error())
        }
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Fills `bytes` from the kernel's random number generator.
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is writable for the length given.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => filled += got,
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// Takes over a descriptor that the environment names; programs that this one starts do not
/// inherit it.
pub fn adopt(fd: RawFd) -> io::Result<OwnedFd> {
    set_inherited(fd, false)?;
    // SAFETY: the descriptor is open, and by the contract of the environment variable that named
    // it, this library is its owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Closes, in a forked child, the child's copy of a descriptor whose owner is in the parent.
pub fn close_inherited(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the child ends without running the owner's drop (see `process::fork`), so nothing
    // closes this number a second time.
    check(unsafe { libc::close(fd.as_raw_fd()) }).map(drop)
}

/// Lets `fd` survive `execve`, or not.
pub fn set_inherited(fd: RawFd, inherited: bool) -> io::Result<()> {
    let flags = if inherited { 0 } else { libc::FD_CLOEXEC };
    // SAFETY: F_SETFD changes a flag of the descriptor and touches no memory.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, flags) }).map(drop)
}

/// Makes reads and writes through the open file of `fd` fail rather than wait.
pub fn set_nonblocking(fd: BorrowedFd) -> io::Result<()> {
    // SAFETY: F_GETFL and F_SETFL touch no memory.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// Device and inode behind a descriptor: two descriptors with the same pair write to one place.
pub fn identity(fd: RawFd) -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid `stat`, which is plain data.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable and of the type that fstat fills.
    check(unsafe { libc::fstat(fd, &mut stat) }).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Waits until what was written to the pipe `fd` has been read, but not longer than `patience`; returns at
/// once for anything else.
pub fn wait_until_read(fd: RawFd, patience: Duration) {
    // SAFETY: all-zero is a valid `stat`, which is plain data.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `stat` is writable and of the type that fstat fills.
    let known = check(unsafe { libc::fstat(fd, &mut stat) });
    if known.is_err() || stat.st_mode & libc::S_IFMT != libc::S_IFIFO {
        return;
    }
    let start = Instant::now();
    let mut left: libc::c_int = 0;
    // SAFETY: FIONREAD stores the number of bytes in the pipe in an int.
    while check(unsafe { libc::ioctl(fd, libc::FIONREAD, &mut left) }).is_ok()
        && left > 0
        && start.elapsed() < patience
    {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether this process's group is the one that may read from the terminal `fd`.
pub fn in_foreground(fd: RawFd) -> bool {
    // SAFETY: both calls only return process group ids.
    unsafe { libc::tcgetpgrp(fd) == libc::getpgrp() }
}

/// The name of this host.
pub fn hostname() -> String {
    let mut bytes = [0u8; 256];
    // SAFETY: the buffer is writable for the length given, one less than it has.
    let rc = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(0);
    if rc == 0 { String::from_utf8_lossy(&bytes[..end]).into_owned() } else { "localhost".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_pipe_is_waited_for_until_it_is_read() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"why").unwrap();
        let waiting = std::thread::spawn(move || {
            wait_until_read(writer.as_raw_fd(), Duration::from_secs(600));
            writer
        });
        let mut text = [0; 3];
        reader.read_exact(&mut text).unwrap();
        let mut writer = waiting.join().unwrap();
        writer.write_all(b"?").unwrap();
        wait_until_read(writer.as_raw_fd(), Duration::from_millis(2)); // nobody reads
        wait_until_read(-1, Duration::from_secs(600));
    }
}
