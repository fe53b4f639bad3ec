//! The standard ABI (MPI 5.0 chapter 20): what lies in C is what the library works with.

use mpi::attr::Holder;
use mpi::handle::Handle;

use super::{Set, Slot};
use crate::object::Object;

/// What it is called in the version of the library.
pub const NAME: &str = "standard ABI 1.0";
/// What `MPI_Abi_get_version` answers: `MPI_ABI_VERSION`, `MPI_ABI_SUBVERSION`.
pub const ABI_VERSION: (i32, i32) = (1, 0);
/// `MPI_MAX_PROCESSOR_NAME`.
pub const MAX_PROCESSOR_NAME: usize = 256;
/// `MPI_MAX_PORT_NAME`.
pub const MAX_PORT_NAME: usize = 1024;
/// `MPI_MAX_INFO_KEY`.
pub const MAX_INFO_KEY: usize = mpi::info::MAX_KEY;
/// `MPI_MAX_OBJECT_NAME`.
pub const MAX_OBJECT_NAME: usize = 128;
/// `MPI_MAX_ERROR_STRING`.
pub const MAX_ERROR_STRING: usize = mpi::codes::MAX_STRING;
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
pub const MAX_LIBRARY_VERSION_STRING: usize = 8192;
/// `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
pub const WEIGHTS: [usize; 2] = [10, 11];
/// `MPI_T_PVAR_ALL_HANDLES`.
pub const ALL_HANDLES: usize = mpi::tools::ALL_HANDLES;

/// `MPI_Status`.
pub type RawStatus = [i32; 8];

/// A handle in memory.
pub type Word = usize;

/// The handle that C has, of an object of this kind.
#[inline(always)]
pub fn held(_: Object, word: Word) -> usize {
    word
}

/// The handles in an array; `_keep` may hold them.
#[inline(always)]
pub fn words<'a>(_: Object, slots: &'a [Slot], _keep: &'a mut Vec<usize>) -> &'a [usize] {
    // SAFETY: a slot is a handle and nothing else.
    unsafe { std::slice::from_raw_parts(slots.as_ptr().cast(), slots.len()) }
}

/// A handle as C has it.
#[inline(always)]
pub fn word(handle: Handle) -> Word {
    handle.0 as usize
}

/// As [`word`], where it is passed to a function of the application, by value or by address.
#[inline(always)]
pub fn passed(handle: Handle) -> usize {
    word(handle)
}

/// A function of the application, and a handle as it is passed to it by address.
#[inline(always)]
pub fn handed(function: usize, handle: Handle) -> (usize, usize) {
    (function, passed(handle))
}

/// The handle in a variable.
///
/// # Safety
/// `place` is the address of a handle variable.
#[inline(always)]
pub unsafe fn load(_: Object, place: usize) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { (place as *const usize).read() }
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

/// `MPI_*_toint`: a handle fits a positive `int`.
pub fn to_int(handle: Handle) -> i32 {
    handle.0 as i32
}

/// `MPI_*_fromint`.
pub fn from_int(value: i32) -> usize {
    value as u32 as usize
}

/// A status as C has it.
#[inline(always)]
pub fn pack(status: [i32; 8]) -> RawStatus {
    status
}

/// A status from C.
#[inline(always)]
pub fn unpack(status: RawStatus) -> [i32; 8] {
    status
}

/// Stores a status but for its error field (MPI 5.0 section 3.2.5).
///
/// # Safety
/// `place` is the address of an `MPI_Status`.
#[inline(always)]
pub unsafe fn put_received(place: usize, status: [i32; 8]) {
    let [source, tag, _, a, b, c, d, e] = status;
    // SAFETY: passed on to the caller.
    unsafe {
        let place = place as *mut i32;
        (place as *mut [i32; 2]).write([source, tag]);
        (place.add(3) as *mut [i32; 5]).write([a, b, c, d, e]);
    }
}

/// The error field of a status.
#[inline(always)]
pub fn error_of(status: &mut RawStatus) -> &mut i32 {
    &mut status[2]
}

/// A constant from C.
#[inline(always)]
pub fn read(_: Set, value: i32) -> i32 {
    value
}

/// A constant as C has it.
#[inline(always)]
pub fn write(_: Set, value: i32) -> i32 {
    value
}

/// The value of an attribute as the application gets it.
#[inline(always)]
pub fn attribute(_: Holder, _: Handle, value: usize) -> usize {
    value
}

/// The C function of an operation.
macro_rules! outer {
    ([$($name:tt)*] $width:ident ($($p:ident: $k:ident),*) $body:block) => {
        #[unsafe(export_name = concat!($($name)*))]
        unsafe extern "C" fn entry($($p: <$k as $crate::kind::Kind>::$width),*) -> i32 $body
    };
}

/// The C function of an operation that returns something else than an error code.
macro_rules! plain_outer {
    ([$($name:tt)*] ($($p:ident: $k:ident),*) -> $ret:ty, $body:block) => {
        #[unsafe(export_name = concat!($($name)*))]
        extern "C" fn entry($($p: <$k as $crate::kind::Kind>::Small),*) -> $ret $body
    };
}

pub(crate) use {outer, plain_outer};
