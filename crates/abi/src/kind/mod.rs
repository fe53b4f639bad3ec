//! What a parameter of an MPI operation means: its C types in both widths, how it is shown in a
//! message, and how its raw value becomes a checked Rust value.
//!
//! A kind checks what can be checked without context; what depends on the communicator or on
//! another argument (a rank against the size, a NULL buffer against the count) is the handler's.

pub mod array;
pub mod function;
pub mod handle;
pub mod output;
pub mod scalar;
pub mod text;
pub mod tool;

use mpi::error::{Class, Error, Result};

use crate::cx::Cx;
use crate::layout::Set;
use crate::object::Object;

/// One parameter kind.
///
/// `Small` is the raw type in `MPI_X`, `Large` the one in `MPI_X_c`; they differ only for
/// counts and what is derived from them.
pub trait Kind {
    /// Raw value of the plain form.
    type Small: Word;
    /// Raw value of the `_c` form.
    type Large: Word;
    /// What the handler gets.
    type Value;
    /// The name the table uses.
    const NAME: &'static str;
    /// C type of the plain form; arrays as pointers.
    const C_SMALL: &'static str;
    /// C type of the `_c` form.
    const C_LARGE: &'static str;
    /// How a message shows it.
    const ROLE: Role;

    /// Parses the value of the plain form; `arg` is the name of the argument.
    ///
    /// # Safety
    /// `raw` is what the application passed to the operation as this argument: a pointer is
    /// null, one of the ABI's constants, or points to what MPI 5.0 says of this argument.
    unsafe fn small(raw: Self::Small, arg: &'static str, cx: &Cx) -> Result<Self::Value>;

    /// As [`Kind::small`] for the `_c` form.
    ///
    /// # Safety
    /// As for [`Kind::small`].
    unsafe fn large(raw: Self::Large, arg: &'static str, cx: &Cx) -> Result<Self::Value>;
}

/// How a message shows an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A plain number.
    Number,
    /// A rank, with the names of the special values.
    Rank,
    /// A tag, with the name of `MPI_ANY_TAG`.
    Tag,
    /// A handle.
    Handle(Object),
    /// A string the application passed.
    Text,
    /// An address of a buffer, an array or a result: not shown.
    Address,
    /// A constant of this set, or a number that is none.
    Constant(Set),
    /// As [`Role::Address`], of an `int` that receives a constant of this set.
    Result(Set),
    /// As [`Role::Result`], of one that is read first.
    InOut(Set),
    /// As [`Role::Address`], of a buffer or what stands for one: `MPI_IN_PLACE`, `MPI_BUFFER_AUTOMATIC`.
    Buffer,
    /// As [`Role::Address`], of a variable that receives such an address.
    BufferResult,
    /// As [`Role::Address`], of a variable that receives a file.
    FileResult,
    /// As [`Role::Address`], of a status, or `MPI_STATUS_IGNORE`, or of an array of them.
    Status,
}

/// A raw value as it arrives in a register: messages about a failed call are made from these,
/// outside the path of a call that succeeds.
pub trait Word: Copy {
    /// The value, sign extended.
    fn word(self) -> i64;
    /// The value that has this word.
    fn from_word(word: i64) -> Self;
}

impl Word for i32 {
    #[inline(always)]
    fn from_word(word: i64) -> i32 {
        word as i32
    }

    #[inline(always)]
    fn word(self) -> i64 {
        i64::from(self)
    }
}

impl Word for i64 {
    #[inline(always)]
    fn from_word(word: i64) -> i64 {
        word
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self
    }
}

impl Word for usize {
    #[inline(always)]
    fn from_word(word: i64) -> usize {
        word as usize
    }

    #[inline(always)]
    fn word(self) -> i64 {
        self as i64
    }
}

/// Declares kinds whose raw type and check are the same in both forms:
/// `Name: raw type, "C type", role, value type, |raw, arg, cx| result`.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident: $raw:ty, $c:expr, $role:expr, $value:ty,
       |$v:ident, $arg:ident, $cx:ident| $body:expr;)*) => { $(
        $(#[$doc])*
        pub enum $name {}

        impl $crate::kind::Kind for $name {
            type Small = $raw;
            type Large = $raw;
            type Value = $value;
            const NAME: &'static str = stringify!($name);
            const C_SMALL: &'static str = $c;
            const C_LARGE: &'static str = $c;
            const ROLE: $crate::kind::Role = $role;

            #[inline(always)]
            #[allow(unused_variables)]
            unsafe fn small($v: $raw, $arg: &'static str, $cx: &$crate::cx::Cx) -> mpi::error::Result<$value> {
                $body
            }

            #[inline(always)]
            #[allow(unused_variables)]
            unsafe fn large($v: $raw, $arg: &'static str, $cx: &$crate::cx::Cx) -> mpi::error::Result<$value> {
                $body
            }
        }
    )* };
}

/// As `kinds!` for kinds with two widths: `Name: (raw, "C type") | (raw, "C type"), role, value,
/// |raw of either, wide, arg| result`; `wide` says which form it is.
macro_rules! two_width_kinds {
    ($($(#[$doc:meta])* $name:ident: ($small:ty, $c_small:expr) | ($large:ty, $c_large:expr), $role:expr, $value:ty,
       |$v:ident, $wide:ident, $arg:ident| $body:expr;)*) => { $(
        $(#[$doc])*
        pub enum $name {}

        impl $crate::kind::Kind for $name {
            type Small = $small;
            type Large = $large;
            type Value = $value;
            const NAME: &'static str = stringify!($name);
            const C_SMALL: &'static str = $c_small;
            const C_LARGE: &'static str = $c_large;
            const ROLE: $crate::kind::Role = $role;

            #[inline(always)]
            #[allow(unused_variables)]
            unsafe fn small($v: $small, $arg: &'static str, _: &$crate::cx::Cx) -> mpi::error::Result<$value> {
                let ($v, $wide) = ($v as _, false);
                $body
            }

            #[inline(always)]
            #[allow(unused_variables)]
            unsafe fn large($v: $large, $arg: &'static str, _: &$crate::cx::Cx) -> mpi::error::Result<$value> {
                let ($v, $wide) = ($v as _, true);
                $body
            }
        }
    )* };
}

pub(crate) use {kinds, two_width_kinds};

/// The address in a pointer argument that must not be NULL.
#[inline(always)]
pub(crate) fn not_null(address: usize, arg: &'static str) -> Result<usize> {
    if address == 0 { Err(null(arg)) } else { Ok(address) }
}

#[cold]
#[inline(never)]
fn null(arg: &'static str) -> Error {
    Error::new(Class::ARG, format!("argument `{arg}` is NULL"))
}

/// A number that must not be negative.
#[inline(always)]
pub(crate) fn not_negative(value: i64, arg: &'static str, class: Class) -> Result<u64> {
    if value < 0 { Err(negative(value, arg, class)) } else { Ok(value as u64) }
}

#[cold]
#[inline(never)]
fn negative(value: i64, arg: &'static str, class: Class) -> Error {
    Error::new(class, format!("argument `{arg}` is {value}, must not be negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_sign() {
        assert_eq!((-3i32).word(), -3);
        assert_eq!(usize::MAX.word(), -1);
    }

    #[test]
    fn messages_name_the_argument() {
        let error = not_null(0, "status").unwrap_err();
        assert_eq!((error.class, error.text.as_str()), (Class::ARG, "argument `status` is NULL"));
        let error = not_negative(-3, "count", Class::COUNT).unwrap_err();
        assert_eq!(error.text, "argument `count` is -3, must not be negative");
    }
}
