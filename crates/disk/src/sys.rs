//! The system calls that the standard library does not have: the one file of this crate with `unsafe`.

use std::fs::File;
use std::io::{Error, IoSlice, Result};
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::Style;

/// What a range of a file is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// Others may lock it so too.
    Shared,
    /// Nobody else has it.
    Exclusive,
    /// Given back.
    Free,
}

/// Locks a range, waiting for it. The lock belongs to the open file and not to the process (`F_OFD_SETLKW`): two
/// opens of one process exclude each other, closing one does not free the other's, and the kernel frees it when
/// the process dies. Over NFS the server keeps it.
pub fn lock(file: &File, range: &Range<u64>, lock: Lock) -> Result<()> {
    let flock = flock(range, lock);
    // SAFETY: an open descriptor and a valid struct.
    retry(|| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLKW, &raw const flock) })
}

fn flock(range: &Range<u64>, lock: Lock) -> libc::flock {
    let kind = match lock {
        Lock::Shared => libc::F_RDLCK,
        Lock::Exclusive => libc::F_WRLCK,
        Lock::Free => libc::F_UNLCK,
    };
    // SAFETY: a C struct of integers.
    let mut flock: libc::flock = unsafe { std::mem::zeroed() };
    flock.l_type = kind as i16;
    flock.l_whence = libc::SEEK_SET as i16;
    flock.l_start = range.start as i64;
    flock.l_len = (range.end - range.start) as i64;
    flock
}

/// As [`lock`] without waiting; whether it was to be had.
#[cfg(test)]
pub fn try_lock(file: &File, range: &Range<u64>, lock: Lock) -> Result<bool> {
    let flock = flock(range, lock);
    // SAFETY: an open descriptor and a valid struct.
    let tried = retry(|| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const flock) });
    match tried {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        tried => tried.map(|()| true),
    }
}

/// Writes what lies in several places from `offset` on; how many bytes that were.
pub fn write_gathered(file: &File, parts: &[IoSlice], offset: u64) -> Result<usize> {
    let (place, count) = (parts.as_ptr().cast::<libc::iovec>(), parts.len() as i32);
    // SAFETY: an open descriptor; an `IoSlice` is an iovec, and what it names lives as long as it.
    let written = unsafe { libc::pwritev(file.as_raw_fd(), place, count, offset as i64) };
    usize::try_from(written).map_err(|_| Error::last_os_error())
}

/// Whether a file lies on NFS.
pub fn is_on_nfs(file: &File) -> bool {
    // SAFETY: a C struct of integers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a valid struct.
    let is_told = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) } == 0;
    is_told && about.f_type == libc::NFS_SUPER_MAGIC
}

/// Makes sure that the first `len` bytes have room on the device; never makes the file shorter.
pub fn preallocate(file: &File, len: u64) -> Result<()> {
    loop {
        // SAFETY: an open descriptor.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len as i64) } {
            0 => return Ok(()),
            libc::EINTR => {}
            code => return Err(Error::from_raw_os_error(code)),
        }
    }
}

/// Says that a range will be read soon: the kernel begins to fetch what it does not have. Only advice, so nothing is told of
/// its failing.
pub fn will_be_read(file: &File, range: &Range<u64>) {
    let len = (range.end - range.start) as i64;
    // SAFETY: an open descriptor.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), range.start as i64, len, libc::POSIX_FADV_WILLNEED) };
}

/// Says in what order a file will be read, which is advice for reading ahead.
pub fn will_be_read_in(file: &File, style: Style) {
    let advice = match style {
        Style::Any => libc::POSIX_FADV_NORMAL,
        Style::Sequential => libc::POSIX_FADV_SEQUENTIAL,
        Style::Random => libc::POSIX_FADV_RANDOM,
    };
    // SAFETY: an open descriptor.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
}

fn retry(mut call: impl FnMut() -> i32) -> Result<()> {
    loop {
        if call() == 0 {
            return Ok(());
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
