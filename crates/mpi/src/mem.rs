//! Raw access to the memory of the application: the one module of this crate with `unsafe`.
//!
//! MPI hands buffers over as addresses. That they are valid for the length described by count
//! and datatype, and not written by another thread meanwhile, is the application's side of the
//! contract (MPI 5.0 section 3.2.2); nothing here can check it.

/// Copies `out.len()` bytes from address `from`.
#[inline]
pub fn read(from: usize, out: &mut [u8]) {
    // SAFETY: the caller passes an address inside a buffer the application gave to MPI.
    unsafe { std::ptr::copy(from as *const u8, out.as_mut_ptr(), out.len()) }
}

/// Copies `data` to address `to`.
#[inline]
pub fn write(to: usize, data: &[u8]) {
    // SAFETY: as in `read`; the buffer is one MPI may write.
    unsafe { std::ptr::copy(data.as_ptr(), to as *mut u8, data.len()) }
}

/// Copies `len` bytes between two places that may overlap.
#[inline]
pub fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: as in `read` and `write`.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) }
}

/// The bytes at `addr` as a slice, for the length of one call.
#[inline]
pub fn with<R>(addr: usize, len: usize, f: impl FnOnce(&[u8]) -> R) -> R {
    if len == 0 {
        return f(&[]);
    }
    // SAFETY: as in `read`; the slice does not outlive the call.
    f(unsafe { std::slice::from_raw_parts(addr as *const u8, len) })
}

/// The bytes at `addr` as a slice to change, for the length of one call.
#[inline]
pub fn with_mut<R>(addr: usize, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    if len == 0 {
        return f(&mut []);
    }
    // SAFETY: as in `write`; the slice does not outlive the call.
    f(unsafe { std::slice::from_raw_parts_mut(addr as *mut u8, len) })
}
