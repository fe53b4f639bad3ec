//! The ABI that MPICH and its kin have had since 2014 (`libmpi.so.12`): handles are `int`s, a status has five, and
//! constants have values of their own.
//!
//! A handle that is not predefined has bit 31, which no predefined one has but five datatypes; what stands for those
//! five is in [`handles`].

pub mod constants;
mod entry;
mod extra;
pub mod handles;
pub mod names;

use std::sync::atomic::{AtomicI32, Ordering};

use mpi::attr::{self, Holder};
use mpi::handle::Handle;

use super::Set;
use crate::object::Object;

pub use entry::{Given, HANDLE, PLAIN, Passed, enter, leave, shape};
pub(crate) use entry::{outer, plain_outer};

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

/// `MPI_Status`: the low half of the count, the high half and whether it was cancelled, source, tag, error.
pub type RawStatus = [i32; 5];

/// A handle in memory; but a file is a pointer.
pub type Word = i32;

/// A handle in an array of the application.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Slot(i32);

impl Slot {
    /// The handle in it, of an object of this kind.
    #[inline(always)]
    pub fn get(self, object: Object) -> usize {
        handles::read(object, self.0)
    }
}

impl From<Handle> for Slot {
    #[inline(always)]
    fn from(handle: Handle) -> Slot {
        Slot(word(handle))
    }
}

/// The handles in an array; `keep` holds them.
pub fn words<'a>(object: Object, slots: &'a [Slot], keep: &'a mut Vec<usize>) -> &'a [usize] {
    keep.extend(slots.iter().map(|slot| slot.get(object)));
    keep
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
            _ => handles::read(object, (place as *const i32).read()),
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

/// A constant from C.
#[inline(always)]
pub fn read(set: Set, value: i32) -> i32 {
    constants::read(set, value)
}

/// A constant as C has it.
#[inline(always)]
pub fn write(set: Set, value: i32) -> i32 {
    constants::write(set, value)
}

/// The value of an attribute as the application gets it: those that are addresses of constants lead to others.
pub fn attribute(kind: Holder, keyval: Handle, value: usize) -> usize {
    static LAST_USED: AtomicI32 = AtomicI32::new(0);
    static FLAVORS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];
    static MODELS: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];
    let (set, cells): (Set, &[AtomicI32]) = match (kind, keyval.0) {
        (Holder::Comm, _) if keyval == attr::LASTUSEDCODE => (Set::Code, std::slice::from_ref(&LAST_USED)),
        (Holder::Win, 604) => (Set::Flavor, &FLAVORS),
        (Holder::Win, 605) => (Set::Model, &MODELS),
        _ => return value,
    };
    // SAFETY: the value of this key is the address of an `int` that lives as long as the object.
    let constant = write(set, unsafe { (value as *const i32).read() });
    let cell = &cells[if cells.len() == 1 { 0 } else { constant as usize - 1 }];
    cell.store(constant, Ordering::Relaxed);
    cell.as_ptr().addr()
}
