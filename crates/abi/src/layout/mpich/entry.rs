//! How arguments come from C and results go there: an entry translates each by what its kind says it means.

use super::{Set, constants, handles};
use crate::kind::{Role, Word};
use crate::object::Object;

/// How an argument of a kind is passed: [`PLAIN`] or [`HANDLE`].
pub struct Passed<const SHAPE: u8>;

/// As in the standard ABI.
pub const PLAIN: u8 = 0;
/// As an `int` that is a handle.
pub const HANDLE: u8 = 1;

/// How arguments of this role are passed.
pub const fn shape(role: Role) -> u8 {
    match role {
        Role::Handle(Object::File) => PLAIN,
        Role::Handle(_) => HANDLE,
        _ => PLAIN,
    }
}

/// What C passes for a raw value of type `T`.
pub trait Given<T> {
    /// Its type in C.
    type C: Copy;
    /// The value that the library works with.
    fn translate(given: Self::C, role: Role) -> T;
}

impl<T: Word> Given<T> for Passed<PLAIN> {
    type C = T;
    #[inline(always)]
    fn translate(given: T, role: Role) -> T {
        let word = given.word();
        let constant = |set| i64::from(constants::read(set, word as i32));
        T::from_word(match role {
            Role::Rank => constant(Set::Rank),
            Role::Tag => constant(Set::Tag),
            Role::Constant(Set::Displacement) => {
                i32::try_from(word).map_or(word, |_| constant(Set::Displacement))
            }
            Role::Constant(set) => constant(set),
            Role::Handle(Object::File) => handles::read_file(word as usize) as i64,
            // MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC.
            Role::Buffer if (-2..0).contains(&word) => -word,
            // MPI_STATUS_IGNORE.
            Role::Status if word == 1 => 0,
            _ => return given,
        })
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

/// Before the operation: a constant in a variable of the application that it reads.
///
/// # Safety
/// `word` is an argument of this role.
#[inline(always)]
pub unsafe fn enter(role: Role, word: i64) {
    if let Role::InOut(set) = role
        && word != 0
    {
        // SAFETY: not null, and the application passes the address of an `int`.
        unsafe { change(word, |value| constants::read(set, value)) }
    }
}

/// Behind the operation: constants and pointers that it has stored.
///
/// # Safety
/// As for [`enter`]; `code` is what the operation returns.
#[inline(always)]
pub unsafe fn leave(role: Role, word: i64, code: i32) {
    // SAFETY: not null, and the application passes the address of a variable of the type that belongs to the role.
    unsafe {
        match role {
            Role::InOut(set) if word != 0 => change(word, |value| constants::write(set, value)),
            Role::Result(set) if word != 0 && code == 0 => change(word, |value| constants::write(set, value)),
            // It has been stored as an `int`, and is a pointer.
            // It has been stored as an `int`, and is a pointer; if the operation failed, perhaps MPI_FILE_NULL.
            Role::FileResult if word != 0 && (code == 0 || (word as *const u32).read() == 0) => {
                (word as *mut usize).write((word as *const u32).read() as usize);
            }
            Role::BufferResult if word != 0 && code == 0 => {
                let place = word as *mut usize;
                if place.read() == 2 {
                    place.write(-2isize as usize); // MPI_BUFFER_AUTOMATIC
                }
            }
            _ => {}
        }
    }
}

/// # Safety
/// `place` is the address of an `int`.
#[inline(always)]
unsafe fn change(place: i64, to: impl FnOnce(i32) -> i32) {
    let place = place as *mut i32;
    // SAFETY: passed on to the caller.
    unsafe { place.write(to(place.read())) }
}

/// The C function of an operation.
macro_rules! outer {
    ([$($name:tt)*] $width:ident ($($p:ident: $k:ident),*) $body:block) => {
        #[unsafe(export_name = concat!($($name)*))]
        unsafe extern "C" fn entry($(
            $p: <$crate::layout::Passed<{ $crate::layout::shape(<$k as $crate::kind::Kind>::ROLE) }>
                as $crate::layout::Given<<$k as $crate::kind::Kind>::$width>>::C
        ),*) -> i32 {
            #[allow(unused_imports)] // of an operation without parameters
            use $crate::{kind::{Kind, Word}, layout::{Given, Passed, enter, leave, shape}};
            $(let $p: <$k as Kind>::$width =
                <Passed<{ shape(<$k as Kind>::ROLE) }> as Given<_>>::translate($p, <$k as Kind>::ROLE);)*
            // SAFETY: these are the arguments the application called the operation with.
            $(unsafe { enter(<$k as Kind>::ROLE, Word::word($p)) };)*
            // It returns by `return` too.
            #[allow(clippy::redundant_closure_call)]
            let code = (|| $body)();
            // SAFETY: as above.
            $(unsafe { leave(<$k as Kind>::ROLE, Word::word($p), code) };)*
            $crate::layout::write($crate::layout::Set::Code, code)
        }
    };
}

/// The C function of an operation that returns something else than an error code.
macro_rules! plain_outer {
    ([$($name:tt)*] ($($p:ident: $k:ident),*) -> $ret:ty, $body:block) => {
        #[unsafe(export_name = concat!($($name)*))]
        extern "C" fn entry($(
            $p: <$crate::layout::Passed<{ $crate::layout::shape(<$k as $crate::kind::Kind>::ROLE) }>
                as $crate::layout::Given<<$k as $crate::kind::Kind>::Small>>::C
        ),*) -> $ret {
            $(let $p: <$k as $crate::kind::Kind>::Small =
                <$crate::layout::Passed<{ $crate::layout::shape(<$k as $crate::kind::Kind>::ROLE) }>
                    as $crate::layout::Given<_>>::translate($p, <$k as $crate::kind::Kind>::ROLE);)*
            $body
        }
    };
}

pub(crate) use {outer, plain_outer};
