//! The system calls that the standard library does not have: the one file of this crate with `unsafe`.

use std::fs::File;
use std::io::{Error, IoSlice, Result};
use std::ops::Range;
use std::os::fd::AsRawFd;

use crate::{Piece, Style};

/// Parts that one call of the system writes, `IOV_MAX`.
pub const PARTS_MAX: usize = 1024;

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

/// What the system says of the file system that a file lies on.
fn about(file: &File) -> Option<libc::statfs> {
    // SAFETY: a C struct of integers.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a valid struct.
    let is_told = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut about) } == 0;
    is_told.then_some(about)
}

/// Whether a file lies on NFS.
pub fn is_on_nfs(file: &File) -> bool {
    about(file).is_some_and(|about| about.f_type == libc::NFS_SUPER_MAGIC)
}

/// Whether the kernel may store into a mapping of the file: in tmpfs. On devices it may not: a page that it dirties is not told to the file system, which
/// may have written it back meanwhile and then knows of no place for it (ext4 lets go of such a page with a warning since Linux 5.17).
pub fn is_in_memory(file: &File) -> bool {
    about(file).is_some_and(|about| about.f_type == libc::TMPFS_MAGIC)
        && file.metadata().is_ok_and(|meta| meta.is_file())
}

/// A range of a file in memory.
#[derive(Debug)]
pub struct Mapping {
    address: usize,
    range: Range<u64>,
}

impl Mapping {
    /// Of this range, which begins at a page and may go beyond the end of the file; `None` where that is refused.
    pub fn of(file: &File, range: Range<u64>) -> Option<Mapping> {
        let (len, access) = ((range.end - range.start) as usize, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: new memory, at no address that is in use.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                access,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                range.start as i64,
            )
        };
        (address != libc::MAP_FAILED).then_some(Mapping { address: address as usize, range })
    }

    /// Whether that range is in it.
    pub fn has(&self, range: &Range<u64>) -> bool {
        self.range.start <= range.start && range.end <= self.range.end
    }

    /// Stores pieces of the range, at most [`PARTS_MAX`], one after the other; how many bytes of them: it ends at one that cannot be
    /// stored. `None` where the kernel does not do it at all.
    pub fn store(&self, parts: &[(Piece, &[u8])]) -> Option<u64> {
        let iovec =
            |base: usize, len: usize| libc::iovec { iov_base: base as *mut libc::c_void, iov_len: len };
        let from: Vec<_> =
            parts.iter().map(|(_, bytes)| iovec(bytes.as_ptr() as usize, bytes.len())).collect();
        let place = |piece: &Piece| self.address + (piece.offset - self.range.start) as usize;
        let into: Vec<_> = parts.iter().map(|(piece, _)| iovec(place(piece), piece.len as usize)).collect();
        let count = parts.len() as libc::c_ulong;
        // SAFETY: the kernel reads `from`, which borrows it, and writes to memory of this mapping, which nobody holds a reference to.
        let stored =
            unsafe { libc::process_vm_writev(libc::getpid(), from.as_ptr(), count, into.as_ptr(), count, 0) };
        match u64::try_from(stored) {
            Ok(stored) => Some(stored),
            Err(_) if Error::last_os_error().raw_os_error() == Some(libc::EFAULT) => Some(0),
            Err(_) => None,
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it is this value's, and nobody has a reference into it.
        unsafe {
            libc::munmap(self.address as *mut libc::c_void, (self.range.end - self.range.start) as usize)
        };
    }
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
