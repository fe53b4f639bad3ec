//! The C functions of `libibverbs.so.1`, and those that its header calls through a context.
//!
//! Pointers are those of programs: what they point to is as `infiniband/verbs.h` says, or the program is wrong in a way that
//! no library notices. What is refused is refused with the error numbers of libibverbs.

pub mod cm;
mod contexts;
mod data;
mod events;
mod missing;
mod objects;
mod older;
mod pairs;
mod regions;
mod words;

use crate::interfaces::Interface;
use crate::layout::*;
use std::ffi::c_int;

/// A device in the list that programs get: what they see, and what it is.
#[repr(C)]
struct Listed {
    device: Device,
    interface: Interface,
}

/// An open device.
#[repr(C)]
struct Open {
    verbs: VerbsContext,
    interface: Interface,
    /// What the adapter calls it.
    number: u32,
}

/// What surrounds a context.
///
/// # Safety
/// `context` is one of `ibv_open_device`.
unsafe fn open_of<'a>(context: *mut Context) -> &'a Open {
    let offset = std::mem::offset_of!(Open, verbs) + std::mem::offset_of!(VerbsContext, context);
    // SAFETY: a context lies inside an `Open`, at that offset.
    unsafe { &*context.byte_sub(offset).cast::<Open>() }
}

/// Sets `errno`.
fn set_errno(value: c_int) {
    // SAFETY: the address of this thread's.
    unsafe { *libc::__errno_location() = value };
}

/// What `errno` says.
fn errno() -> c_int {
    // SAFETY: the address of this thread's.
    unsafe { *libc::__errno_location() }
}

/// No object, and why.
fn none<T>(why: c_int) -> *mut T {
    set_errno(why);
    std::ptr::null_mut()
}

/// The number of an error of the system.
fn code(error: &std::io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// A mutex and a condition variable as programs' objects have them; nobody waits there.
const MUTEX: libc::pthread_mutex_t = libc::PTHREAD_MUTEX_INITIALIZER;
const CONDITION: libc::pthread_cond_t = libc::PTHREAD_COND_INITIALIZER;
