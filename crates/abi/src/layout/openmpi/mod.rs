//! The ABI of Open MPI (`libmpi.so.40`): handles are pointers, predefined ones those to objects with names, and constants
//! have values of their own.

pub mod constants;
mod extra;
pub mod handles;
pub mod names;

use mpi::handle::Handle;

use super::Set;
use super::entry::PLAIN;
use crate::kind::Role;
use crate::object::Object;

pub use constants::{read, write};
pub use handles::{c2f, f2c};

/// What it is called in the version of the library.
pub const NAME: &str = "ABI of Open MPI";
/// What `MPI_Abi_get_version` answers of a library whose ABI is not the standard one (MPI 5.0 section 20.2).
pub const ABI_VERSION: (i32, i32) = (-1, -1);
/// `MPI_MAX_PROCESSOR_NAME`.
pub const MAX_PROCESSOR_NAME: usize = 256;
/// `MPI_MAX_PORT_NAME`.
pub const MAX_PORT_NAME: usize = 1024;
/// `MPI_MAX_INFO_KEY`.
pub const MAX_INFO_KEY: usize = 36;
/// `MPI_MAX_OBJECT_NAME`.
pub const MAX_OBJECT_NAME: usize = 64;
/// `MPI_MAX_ERROR_STRING`.
pub const MAX_ERROR_STRING: usize = 256;
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
pub const MAX_LIBRARY_VERSION_STRING: usize = 256;
/// `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
pub const WEIGHTS: [usize; 2] = [2, 3];
/// `MPI_T_PVAR_ALL_HANDLES`.
pub const ALL_HANDLES: usize = usize::MAX;

/// `MPI_STATUS_IGNORE`.
pub const STATUS_IGNORE: usize = 0;
/// `MPI_Status`: source, tag, error, whether it was cancelled, the halves of the count.
pub type RawStatus = [i32; 6];

/// A handle in memory.
pub type Word = usize;

/// The handle that C has, of an object of this kind.
#[inline(always)]
pub fn held(_: Object, word: Word) -> usize {
    handles::read(word)
}

/// A handle as C has it.
#[inline(always)]
pub fn word(handle: Handle) -> Word {
    handles::write(handle)
}

/// As [`word`], where it is passed to a function of the application, by value or by address.
#[inline(always)]
pub fn passed(handle: Handle) -> usize {
    word(handle)
}

/// A function of the application, and a handle as it is passed to it by address: its number, if the function has the mark of
/// one of Fortran.
pub fn handed(function: usize, handle: Handle) -> (usize, usize) {
    match function & names::FORTRAN {
        0 => (function, passed(handle)),
        mark => (function & !mark, handles::number(handle) as usize),
    }
}

/// The handle in a variable.
///
/// # Safety
/// `place` is the address of a handle variable.
#[inline(always)]
pub unsafe fn load(object: Object, place: usize) -> usize {
    // SAFETY: passed on to the caller.
    held(object, unsafe { (place as *const Word).read() })
}

/// Replaces the handle in a variable.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn store(place: usize, handle: Handle) {
    // SAFETY: passed on to the caller.
    unsafe { (place as *mut usize).write(word(handle)) }
}

/// `MPI_*_toint`, which Open MPI does not have: the number in the standard ABI.
pub fn to_int(handle: Handle) -> i32 {
    handle.0 as i32
}

/// `MPI_*_fromint`.
pub fn from_int(value: i32) -> usize {
    word(Handle(value as u32))
}

/// A status as C has it.
#[inline(always)]
pub fn pack([source, tag, error, low, high, flags, ..]: [i32; 8]) -> RawStatus {
    [write(Set::Rank, source), write(Set::Tag, tag), write(Set::Code, error), flags & 1, low, high]
}

/// A status from C.
#[inline(always)]
pub fn unpack([source, tag, error, cancelled, low, high]: RawStatus) -> [i32; 8] {
    [read(Set::Rank, source), read(Set::Tag, tag), read(Set::Code, error), low, high, cancelled & 1, 0, 0]
}

/// Stores a status but for its error field (MPI 5.0 section 3.2.5).
///
/// # Safety
/// `place` is the address of an `MPI_Status`.
#[inline(always)]
pub unsafe fn put_received(place: usize, status: [i32; 8]) {
    let [source, tag, _, cancelled, low, high] = pack(status);
    // SAFETY: passed on to the caller.
    unsafe {
        let place = place as *mut i32;
        (place as *mut [i32; 2]).write([source, tag]);
        (place.add(3) as *mut [i32; 3]).write([cancelled, low, high]);
    }
}

/// The error field of a status.
#[inline(always)]
pub fn error_of(status: &mut RawStatus) -> &mut i32 {
    &mut status[2]
}

/// How arguments of this role are passed.
pub const fn shape(_: Role) -> u8 {
    PLAIN
}

/// An argument that is no constant, as the library has it.
#[inline(always)]
pub fn argument(role: Role, word: i64) -> i64 {
    match role {
        Role::Handle(_) => handles::read(word as usize) as i64,
        _ => word,
    }
}

/// Behind an operation: nothing is stored in another way than by [`word`] and its kin.
///
/// # Safety
/// None is needed; the other ABI has conditions.
#[inline(always)]
pub unsafe fn stored(_: Role, _: *mut usize, _: i32) {}
