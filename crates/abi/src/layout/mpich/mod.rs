//! The ABI that MPICH and its kin have had since 2014 (`libmpi.so.12`): handles are `int`s, a status has five, and
//! constants have values of their own.
//!
//! A handle that is not predefined has bit 31, which no predefined one has but five datatypes; what stands for those
//! five is in [`handles`].

pub mod constants;
mod extra;
pub mod handles;
pub mod names;

use mpi::handle::Handle;

use super::Set;
use super::entry::{Given, PLAIN, Passed};
use crate::kind::Role;
use crate::object::Object;

pub use constants::{read, write};

/// What it is called in the version of the library.
pub const NAME: &str = "ABI of MPICH";
/// What `MPI_Abi_get_version` answers of a library whose ABI is not the standard one (MPI 5.0 section 20.2): mpi4py
/// chooses its module by it.
pub const ABI_VERSION: (i32, i32) = (-1, -1);
/// `MPI_MAX_PROCESSOR_NAME`.
pub const MAX_PROCESSOR_NAME: usize = 128;
/// `MPI_MAX_PORT_NAME`.
pub const MAX_PORT_NAME: usize = 256;
/// `MPI_MAX_INFO_KEY`.
pub const MAX_INFO_KEY: usize = 255;
/// `MPI_MAX_OBJECT_NAME`.
pub const MAX_OBJECT_NAME: usize = 128;
/// `MPI_MAX_ERROR_STRING`.
pub const MAX_ERROR_STRING: usize = 512;
/// `MPI_MAX_LIBRARY_VERSION_STRING`.
pub const MAX_LIBRARY_VERSION_STRING: usize = 8192;
/// `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`: what its variables of these names hold.
pub const WEIGHTS: [usize; 2] = [10, 11];
/// `MPI_T_PVAR_ALL_HANDLES`, likewise.
pub const ALL_HANDLES: usize = mpi::tools::ALL_HANDLES;

/// `MPI_STATUS_IGNORE`.
pub const STATUS_IGNORE: usize = 1;
/// `MPI_Status`: the low half of the count, the high half and whether it was cancelled, source, tag, error.
pub type RawStatus = [i32; 5];

/// A handle in memory; but a file is a pointer.
pub type Word = i32;

/// The handle that C has, of an object of this kind.
#[inline(always)]
pub fn held(object: Object, word: Word) -> usize {
    handles::read(object, word)
}

/// A handle as C has it.
#[inline(always)]
pub fn word(handle: Handle) -> Word {
    handles::write(handle)
}

/// As [`word`], where it is passed to a function of the application, by value or by address: who expects an `int` there
/// looks at the low half, who expects the pointer that a file is at all of it.
#[inline(always)]
pub fn passed(handle: Handle) -> usize {
    const _: () = assert!(cfg!(target_endian = "little"));
    word(handle) as u32 as usize
}

/// A function of the application, and a handle as it is passed to it by address.
#[inline(always)]
pub fn handed(function: usize, handle: Handle) -> (usize, usize) {
    (function, passed(handle))
}

/// The handle in a variable.
///
/// # Safety
/// `place` is the address of a variable for handles of this kind.
#[inline(always)]
pub unsafe fn load(object: Object, place: usize) -> usize {
    // SAFETY: passed on to the caller.
    unsafe {
        match object {
            Object::File => handles::read_file((place as *const usize).read()),
            _ => held(object, (place as *const Word).read()),
        }
    }
}

/// Replaces the handle in a variable. Of a file it is always the null handle.
///
/// # Safety
/// `place` is the address of a variable for handles of this kind.
#[inline(always)]
pub unsafe fn store(place: usize, handle: Handle) {
    // SAFETY: passed on to the caller.
    unsafe {
        match handle == Object::File.null().0 {
            true => (place as *mut usize).write(0),
            false => (place as *mut i32).write(word(handle)),
        }
    }
}

/// A status as C has it.
#[inline(always)]
pub fn pack([source, tag, error, low, high, flags, ..]: [i32; 8]) -> RawStatus {
    let high = high << 1 | flags & 1;
    [low, high, write(Set::Rank, source), write(Set::Tag, tag), write(Set::Code, error)]
}

/// A status from C.
#[inline(always)]
pub fn unpack([low, high, source, tag, error]: RawStatus) -> [i32; 8] {
    let (count, flags) = ((high as u32 >> 1) as i32, high & 1);
    [read(Set::Rank, source), read(Set::Tag, tag), read(Set::Code, error), low, count, flags, 0, 0]
}

/// Stores a status but for its error field (MPI 5.0 section 3.2.5).
///
/// # Safety
/// `place` is the address of an `MPI_Status`.
#[inline(always)]
pub unsafe fn put_received(place: usize, status: [i32; 8]) {
    let [low, high, source, tag, _] = pack(status);
    // SAFETY: passed on to the caller.
    unsafe { (place as *mut [i32; 4]).write([low, high, source, tag]) }
}

/// The error field of a status.
#[inline(always)]
pub fn error_of(status: &mut RawStatus) -> &mut i32 {
    &mut status[4]
}

/// `MPI_*_toint`: a handle is what it is in Fortran.
pub fn to_int(handle: Handle) -> i32 {
    word(handle)
}

/// `MPI_*_fromint`.
pub fn from_int(value: i32) -> usize {
    value as u32 as usize
}

/// `MPI_*_c2f`: likewise.
pub fn c2f(_: Object, handle: Word) -> i32 {
    handle
}

/// `MPI_*_f2c`.
pub fn f2c(_: Object, handle: i32) -> Word {
    handle
}

/// As an `int` that is a handle: how an argument is passed.
const HANDLE: u8 = 1;

/// How arguments of this role are passed.
pub const fn shape(role: Role) -> u8 {
    match role {
        Role::Handle(Object::File) => PLAIN,
        Role::Handle(_) => HANDLE,
        _ => PLAIN,
    }
}

impl Given<usize> for Passed<HANDLE> {
    type C = i32;
    #[inline(always)]
    fn translate(given: i32, role: Role) -> usize {
        match role {
            Role::Handle(object) => handles::read(object, given),
            _ => unreachable!("of handles alone"),
        }
    }
}

/// An argument that is no constant, as the library has it.
#[inline(always)]
pub fn argument(role: Role, word: i64) -> i64 {
    match role {
        Role::Handle(Object::File) => handles::read_file(word as usize) as i64,
        // MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC.
        Role::Buffer if (-2..0).contains(&word) => -word,
        Role::Status if word == STATUS_IGNORE as i64 => 0,
        _ => word,
    }
}

/// Behind an operation that has returned `code`: what it has stored there and is no constant, as C has it.
///
/// # Safety
/// `place` is the address of a variable of the type that belongs to the role.
#[inline(always)]
pub unsafe fn stored(role: Role, place: *mut usize, code: i32) {
    // SAFETY: passed on to the caller.
    unsafe {
        match role {
            // It has been stored as an `int`, and is a pointer; if the operation failed, perhaps MPI_FILE_NULL.
            Role::FileResult if code == 0 || (place as *const u32).read() == 0 => {
                place.write((place as *const u32).read() as usize);
            }
            // MPI_BUFFER_AUTOMATIC.
            Role::BufferResult if code == 0 && place.read() == 2 => place.write(-2isize as usize),
            _ => {}
        }
    }
}
