//! How arguments come from C and results go there: an entry translates each by what its kind says it means.

use super::{Set, Slot, argument, read, stored, write};
use crate::kind::{Role, Word};
use crate::object::Object;

/// How an argument of a kind is passed: [`PLAIN`], or in a way of the ABI.
pub struct Passed<const SHAPE: u8>;

/// As in the standard ABI.
pub const PLAIN: u8 = 0;

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
        let constant = |set| i64::from(read(set, word as i32));
        T::from_word(match role {
            Role::Rank => constant(Set::Rank),
            Role::Tag => constant(Set::Tag),
            Role::Constant(Set::Displacement) => {
                i32::try_from(word).map_or(word, |_| constant(Set::Displacement))
            }
            Role::Constant(set) => constant(set),
            _ => argument(role, word),
        })
    }
}

/// The handles in an array; `keep` holds them.
pub fn words<'a>(object: Object, slots: &'a [Slot], keep: &'a mut Vec<usize>) -> &'a [usize] {
    keep.extend(slots.iter().map(|slot| slot.get(object)));
    keep
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
        unsafe { change(word, |value| read(set, value)) }
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
            Role::InOut(set) if word != 0 => change(word, |value| write(set, value)),
            Role::Result(set) if word != 0 && code == 0 => change(word, |value| write(set, value)),
            _ if word != 0 => stored(role, word as *mut usize, code),
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
