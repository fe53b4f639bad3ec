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

/// File systems of one host whose mappings and calls are the same memory, byte for byte, and which the fault of a store tells of a page before it
/// changes. A client of NFS or FUSE writes back a page as a whole, with what others have written into it meanwhile undone.
const MAPPED: [i64; 6] = [
    libc::TMPFS_MAGIC,
    libc::EXT4_SUPER_MAGIC,
    libc::XFS_SUPER_MAGIC,
    libc::BTRFS_SUPER_MAGIC,
    libc::F2FS_SUPER_MAGIC,
    libc::OVERLAYFS_SUPER_MAGIC,
];

/// Whether a mapping of the file is as good as calls.
pub fn may_be_mapped(file: &File) -> bool {
    about(file).is_some_and(|about| MAPPED.contains(&about.f_type))
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
    ///
    /// The kernel *reads* memory of this process, and stores what it has read by way of this mapping, as the process would. Were it to
    /// *write* to the mapping (`process_vm_writev`), it would take hold of the pages and dirty them without a word to the file system, which
    /// may have written one back in that moment, and then lets go of it with what was stored.
    pub fn store(&self, parts: &[(Piece, &[u8])]) -> Option<u64> {
        let iovec =
            |base: usize, len: usize| libc::iovec { iov_base: base as *mut libc::c_void, iov_len: len };
        // For each range here the kernel takes hold of its pages, so those that lie one behind the other are one.
        let mut from: Vec<libc::iovec> = Vec::with_capacity(parts.len());
        for (_, bytes) in parts {
            let base = bytes.as_ptr() as usize;
            match from.last_mut().filter(|last| last.iov_base as usize + last.iov_len == base) {
                Some(last) => last.iov_len += bytes.len(),
                None => from.push(iovec(base, bytes.len())),
            }
        }
        let place = |piece: &Piece| self.address + (piece.offset - self.range.start) as usize;
        let into: Vec<_> = parts.iter().map(|(piece, _)| iovec(place(piece), piece.len as usize)).collect();
        let [from_count, into_count] = [&from, &into].map(|ranges| ranges.len() as libc::c_ulong);
        let (from, into, process) = (from.as_ptr(), into.as_ptr(), std::process::id() as i32);
        // SAFETY: the kernel reads what `parts` borrows, and writes to memory of this mapping, which nobody holds a reference to.
        let stored = unsafe { libc::process_vm_readv(process, into, into_count, from, from_count, 0) };
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

/// Has the kernel forget the pages of a file that are on the device.
#[cfg(test)]
pub fn give_up_pages(file: &File) {
    // SAFETY: an open descriptor.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
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
