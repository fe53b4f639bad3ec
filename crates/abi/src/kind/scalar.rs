//! Numbers: counts, ranks, tags, displacements, flags, addresses.

use mpi::error::{Class, Error, Result, fail};

use super::{Role, kinds, not_negative, two_width_kinds};
use crate::layout::Set;

const ANY_SOURCE: i32 = -1;
const ANY_TAG: i32 = -2;
const PROC_NULL: i32 = -3;
const ROOT: i32 = -4;

kinds! {
    /// Any `int`.
    Int: i32, "int", Role::Number, i32, |raw, arg, cx| Ok(raw);
    /// A truth value.
    Flag: i32, "int", Role::Number, bool, |raw, arg, cx| Ok(raw != 0);
    /// The length of an array or string, `int` in both forms.
    Length: i32, "int", Role::Number, usize,
        |raw, arg, cx| not_negative(raw.into(), arg, Class::ARG).map(|n| n as usize);
    /// The number of requests, `int` in both forms.
    IntCount: i32, "int", Role::Number, usize,
        |raw, arg, cx| not_negative(raw.into(), arg, Class::COUNT).map(|n| n as usize);
    /// A count that is `MPI_Count` in every form.
    LongCount: i64, "MPI_Count", Role::Number, u64,
        |raw, arg, cx| not_negative(raw, arg, Class::COUNT);
    /// The rank a message goes to, or `MPI_PROC_NULL`.
    Dest: i32, "int", Role::Rank, i32, |raw, arg, cx| rank(raw, arg, false);
    /// The rank a message comes from, `MPI_ANY_SOURCE` or `MPI_PROC_NULL`.
    Source: i32, "int", Role::Rank, i32, |raw, arg, cx| rank(raw, arg, true);
    /// The root of a collective operation; on intercommunicators also `MPI_ROOT`, `MPI_PROC_NULL`.
    Root: i32, "int", Role::Rank, i32, |raw, arg, cx| root(raw, arg);
    /// The tag of a message that is sent.
    Tag: i32, "int", Role::Tag, i32, |raw, arg, cx| tag(raw, arg, false);
    /// The tag of a message that is awaited, or `MPI_ANY_TAG`.
    TagOrAny: i32, "int", Role::Tag, i32, |raw, arg, cx| tag(raw, arg, true);
    /// An address or a displacement.
    Aint: i64, "MPI_Aint", Role::Number, i64, |raw, arg, cx| Ok(raw);
    /// A number of bytes of memory.
    AintSize: i64, "MPI_Aint", Role::Number, u64,
        |raw, arg, cx| not_negative(raw, arg, Class::SIZE);
    /// Any rank or what stands for one, which the handler checks.
    AnyRank: i32, "int", Role::Constant(Set::Rank), i32, |raw, arg, cx| Ok(raw);
    /// Any tag or what stands for one.
    AnyTag: i32, "int", Role::Constant(Set::Tag), i32, |raw, arg, cx| Ok(raw);
    /// An error class or code.
    Code: i32, "int", Role::Constant(Set::Code), i32, |raw, arg, cx| Ok(raw);
    /// A key of attributes.
    Keyval: i32, "int", Role::Constant(Set::Keyval), i32, |raw, arg, cx| Ok(raw);
    /// A level of thread support.
    ThreadLevel: i32, "int", Role::Constant(Set::ThreadLevel), i32, |raw, arg, cx| Ok(raw);
    /// A way to split a communicator.
    SplitType: i32, "int", Role::Constant(Set::SplitType), i32, |raw, arg, cx| Ok(raw);
    /// The order of an array.
    ArrayOrder: i32, "int", Role::Constant(Set::Order), i32, |raw, arg, cx| Ok(raw);
    /// A class of types.
    ClassOfType: i32, "int", Role::Constant(Set::TypeClass), i32, |raw, arg, cx| Ok(raw);
    /// The origin of a position in a file.
    Whence: i32, "int", Role::Constant(Set::Whence), i32, |raw, arg, cx| Ok(raw);
    /// The mode of a file.
    Amode: i32, "int", Role::Constant(Set::Amode), i32, |raw, arg, cx| Ok(raw);
    /// Assertions about a window.
    Assert: i32, "int", Role::Constant(Set::Assert), i32, |raw, arg, cx| Ok(raw);
    /// A kind of lock.
    LockType: i32, "int", Role::Constant(Set::LockType), i32, |raw, arg, cx| Ok(raw);
    /// A class of performance variables.
    VariableClass: i32, "int", Role::Constant(Set::VariableClass), i32, |raw, arg, cx| Ok(raw);
    /// Where a view begins, or `MPI_DISPLACEMENT_CURRENT`.
    ViewStart: i64, "MPI_Offset", Role::Constant(Set::Displacement), i64, |raw, arg, cx| Ok(raw);
    /// A position in a file.
    Offset: i64, "MPI_Offset", Role::Number, i64, |raw, arg, cx| Ok(raw);
    /// A buffer that is read; NULL is `MPI_BOTTOM`.
    BufIn: usize, "const void *", Role::Buffer, usize, |raw, arg, cx| Ok(raw);
    /// A buffer that is written; NULL is `MPI_BOTTOM`.
    BufOut: usize, "void *", Role::Buffer, usize, |raw, arg, cx| Ok(raw);
    /// A buffer for MPI_Bsend, or `MPI_BUFFER_AUTOMATIC`.
    BufAttached: usize, "void *", Role::Buffer, usize, |raw, arg, cx| Ok(raw);
    /// An address the library keeps or passes on: extra state, attribute value, window base.
    Addr: usize, "void *", Role::Address, usize, |raw, arg, cx| Ok(raw);
    /// As [`Addr`], of constant memory.
    AddrIn: usize, "const void *", Role::Address, usize, |raw, arg, cx| Ok(raw);
}

two_width_kinds! {
    /// A number of elements.
    Count: (i32, "int") | (i64, "MPI_Count"), Role::Number, u64,
        |raw, wide, arg| not_negative(raw, arg, Class::COUNT);
    /// A count that counts only on some ranks or with some buffers: the handler checks it with
    /// [`count`] where it is significant.
    MaybeCount: (i32, "int") | (i64, "MPI_Count"), Role::Number, i64, |raw, wide, arg| Ok(raw);
    /// A distance in elements, of either sign.
    Stride: (i32, "int") | (i64, "MPI_Count"), Role::Number, i64, |raw, wide, arg| Ok(raw);
    /// A distance in bytes, of either sign.
    AintOrCount: (i64, "MPI_Aint") | (i64, "MPI_Count"), Role::Number, i64, |raw, wide, arg| Ok(raw);
    /// A number of bytes of packed data.
    AintCount: (i64, "MPI_Aint") | (i64, "MPI_Count"), Role::Number, u64,
        |raw, wide, arg| not_negative(raw, arg, Class::ARG);
    /// The unit of displacements in a window.
    DispUnit: (i32, "int") | (i64, "MPI_Aint"), Role::Number, i64, |raw, wide, arg| disp_unit(raw, arg);
}

/// Checks a [`MaybeCount`] on a rank where it is significant.
#[inline]
pub fn count(value: i64, arg: &'static str) -> Result<u64> {
    not_negative(value, arg, Class::COUNT)
}

#[inline(always)]
fn rank(value: i32, arg: &'static str, any: bool) -> Result<i32> {
    if value >= 0 || value == PROC_NULL || any && value == ANY_SOURCE {
        Ok(value)
    } else {
        Err(bad_rank(value, arg, any))
    }
}

#[cold]
#[inline(never)]
fn bad_rank(value: i32, arg: &'static str, any: bool) -> Error {
    let allowed = if any { "a rank, MPI_ANY_SOURCE or MPI_PROC_NULL" } else { "a rank or MPI_PROC_NULL" };
    let name = if value == ANY_SOURCE { " (MPI_ANY_SOURCE)" } else { "" };
    Error::new(Class::RANK, format!("argument `{arg}` is {value}{name}, must be {allowed}"))
}

#[inline(always)]
fn root(value: i32, arg: &'static str) -> Result<i32> {
    if value >= 0 || value == ROOT || value == PROC_NULL {
        Ok(value)
    } else {
        fail(Class::ROOT, format!("argument `{arg}` is {value}, must be a rank of the communicator"))
    }
}

#[inline(always)]
fn tag(value: i32, arg: &'static str, any: bool) -> Result<i32> {
    if value >= 0 || any && value == ANY_TAG { Ok(value) } else { Err(bad_tag(value, arg, any)) }
}

#[cold]
#[inline(never)]
fn bad_tag(value: i32, arg: &'static str, any: bool) -> Error {
    let allowed = if any { "0 or more, or MPI_ANY_TAG" } else { "0 or more" };
    let name = if value == ANY_TAG { " (MPI_ANY_TAG)" } else { "" };
    Error::new(Class::TAG, format!("argument `{arg}` is {value}{name}, must be {allowed}"))
}

fn disp_unit(value: i64, arg: &'static str) -> Result<i64> {
    if value > 0 {
        Ok(value)
    } else {
        fail(Class::DISP, format!("argument `{arg}` is {value}, must be positive"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_ranks_and_tags_are_taken_only_where_they_mean_something() {
        assert_eq!(rank(PROC_NULL, "dest", false), Ok(PROC_NULL));
        let error = rank(ANY_SOURCE, "dest", false).unwrap_err();
        assert_eq!(error.class, Class::RANK);
        assert_eq!(error.text, "argument `dest` is -1 (MPI_ANY_SOURCE), must be a rank or MPI_PROC_NULL");
        assert_eq!(rank(ANY_SOURCE, "source", true), Ok(ANY_SOURCE));
        assert_eq!(rank(-4, "source", true).unwrap_err().class, Class::RANK);
        assert_eq!(tag(ANY_TAG, "tag", true), Ok(ANY_TAG));
        assert_eq!(tag(ANY_TAG, "tag", false).unwrap_err().class, Class::TAG);
        assert_eq!(root(-1, "root").unwrap_err().class, Class::ROOT);
        assert_eq!(root(ROOT, "root"), Ok(ROOT));
        assert_eq!(disp_unit(0, "disp_unit").unwrap_err().class, Class::DISP);
    }
}
