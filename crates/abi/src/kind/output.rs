//! Results: variables of the application that an operation writes.

use std::marker::PhantomData;

use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;

use super::{Role, kinds, not_null, two_width_kinds};
use crate::layout::{self, Set};

const UNDEFINED: i32 = -32766;

/// How a result lies in the application's memory.
pub trait Stored {
    /// The type in C.
    type Raw: Copy;
    /// The value to store.
    fn raw(self) -> Self::Raw;
}

impl Stored for i32 {
    type Raw = i32;
    #[inline(always)]
    fn raw(self) -> i32 {
        self
    }
}

impl Stored for i64 {
    type Raw = i64;
    #[inline(always)]
    fn raw(self) -> i64 {
        self
    }
}

impl Stored for bool {
    type Raw = i32;
    #[inline(always)]
    fn raw(self) -> i32 {
        self.into()
    }
}

impl Stored for usize {
    type Raw = usize;
    #[inline(always)]
    fn raw(self) -> usize {
        self
    }
}

impl Stored for Handle {
    type Raw = layout::Word;
    #[inline(always)]
    fn raw(self) -> layout::Word {
        layout::word(self)
    }
}

/// A variable of the application that receives a `T`.
#[derive(Clone, Copy, Debug)]
pub struct Out<T> {
    place: usize,
    value: PhantomData<T>,
}

impl<T: Stored> Out<T> {
    #[inline(always)]
    pub(crate) fn at(place: usize, arg: &'static str) -> Result<Self> {
        Ok(Out { place: not_null(place, arg)?, value: PhantomData })
    }

    /// Stores the result.
    #[inline(always)]
    pub fn set(self, value: T) {
        // SAFETY: not null, and the application passes the address of a variable of this type.
        unsafe { (self.place as *mut T::Raw).write(value.raw()) }
    }
}

/// An `int` variable that an operation reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct IntRef(Out<i32>);

impl IntRef {
    /// The variable at this address, if it is one.
    pub(super) fn at(place: usize) -> Option<IntRef> {
        Out::at(place, "").ok().map(IntRef)
    }

    /// The value the application put there.
    #[inline(always)]
    pub fn get(self) -> i32 {
        // SAFETY: as in `Out::set`; the application has initialised the variable.
        unsafe { (self.0.place as *const i32).read() }
    }

    /// Stores the result.
    #[inline(always)]
    pub fn set(self, value: i32) {
        self.0.set(value)
    }
}

/// A variable that receives a count: `int` in the plain form, 64 bits in the `_c` form.
#[derive(Clone, Copy, Debug)]
pub struct CountVar {
    place: usize,
    wide: bool,
    arg: &'static str,
}

impl CountVar {
    #[inline(always)]
    fn at(place: usize, wide: bool, arg: &'static str) -> Result<Self> {
        Ok(CountVar { place: not_null(place, arg)?, wide, arg })
    }

    /// Whether `value` can be stored.
    #[inline(always)]
    pub fn fits(self, value: i64) -> bool {
        self.wide || i32::try_from(value).is_ok()
    }

    /// Stores `value`; fails with `MPI_ERR_VALUE_TOO_LARGE` if the plain form cannot hold it.
    #[inline(always)]
    pub fn set(self, value: i64) -> Result {
        if self.fits(value) {
            self.store(value);
            Ok(())
        } else {
            self.too_large(value)
        }
    }

    /// Stores `value`, or `MPI_UNDEFINED` if there is none or the variable cannot hold it.
    #[inline(always)]
    pub fn set_or_undefined(self, value: Option<i64>) {
        self.store(value.filter(|v| self.fits(*v)).unwrap_or(UNDEFINED.into()))
    }

    /// The value the application put there.
    #[inline(always)]
    pub fn get(self) -> i64 {
        // SAFETY: as in `store`; the application has initialised the variable.
        unsafe {
            match self.wide {
                true => (self.place as *const i64).read(),
                false => (self.place as *const i32).read().into(),
            }
        }
    }

    #[inline(always)]
    fn store(self, value: i64) {
        // SAFETY: not null, and the application passes the address of a variable of the width
        // that belongs to the form it called.
        unsafe {
            match self.wide {
                true => (self.place as *mut i64).write(value),
                false => (self.place as *mut i32).write(value as i32),
            }
        }
    }

    #[cold]
    fn too_large(self, value: i64) -> Result {
        let arg = self.arg;
        fail(Class::VALUE_TOO_LARGE, format!("{value} does not fit the int `{arg}`; call the _c form"))
    }
}

kinds! {
    /// Receives an `int`.
    IntOut: usize, "int *", Role::Address, Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a truth value.
    FlagOut: usize, "int *", Role::Address, Out<bool>, |raw, arg, cx| Out::at(raw, arg);
    /// An `int` that is read and written.
    IntInOut: usize, "int *", Role::Address, IntRef, |raw, arg, cx| Out::at(raw, arg).map(IntRef);
    /// Receives an address or displacement.
    AintOut: usize, "MPI_Aint *", Role::Address, Out<i64>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a file position.
    OffsetOut: usize, "MPI_Offset *", Role::Address, Out<i64>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives an `MPI_Count` in every form.
    LongCountOut: usize, "MPI_Count *", Role::Address, Out<i64>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a pointer; C declares it `void *` so that any pointer variable can be passed.
    PtrOut: usize, "void *", Role::Address, Out<usize>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives the address of a buffer, or `MPI_BUFFER_AUTOMATIC`.
    BufferOut: usize, "void *", Role::BufferResult, Out<usize>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives an error class or code.
    CodeOut: usize, "int *", Role::Result(Set::Code), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a key of attributes.
    KeyvalOut: usize, "int *", Role::Result(Set::Keyval), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// A key of attributes that is read and written.
    KeyvalInOut: usize, "int *", Role::InOut(Set::Keyval), IntRef, |raw, arg, cx| Out::at(raw, arg).map(IntRef);
    /// Receives the result of a comparison.
    ComparisonOut: usize, "int *", Role::Result(Set::Comparison), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a level of thread support.
    ThreadLevelOut: usize, "int *", Role::Result(Set::ThreadLevel), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a kind of topology.
    TopologyOut: usize, "int *", Role::Result(Set::Topology), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives how a datatype was made.
    CombinerOut: usize, "int *", Role::Result(Set::Combiner), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives the mode of a file.
    AmodeOut: usize, "int *", Role::Result(Set::Amode), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a rank, or what stands for one.
    RankOut: usize, "int *", Role::Result(Set::Rank), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a tag, or what stands for one.
    TagOut: usize, "int *", Role::Result(Set::Tag), Out<i32>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a communicator.
    CommOut: usize, "MPI_Comm *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a group.
    GroupOut: usize, "MPI_Group *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a window.
    WinOut: usize, "MPI_Win *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a file.
    FileOut: usize, "MPI_File *", Role::FileResult, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a session.
    SessionOut: usize, "MPI_Session *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a matched message.
    MessageOut: usize, "MPI_Message *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives an info object.
    InfoOut: usize, "MPI_Info *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives an error handler.
    ErrhandlerOut: usize, "MPI_Errhandler *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a request.
    RequestOut: usize, "MPI_Request *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives an operation.
    OpOut: usize, "MPI_Op *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
    /// Receives a datatype.
    DatatypeOut: usize, "MPI_Datatype *", Role::Address, Out<Handle>, |raw, arg, cx| Out::at(raw, arg);
}

two_width_kinds! {
    /// Receives a count.
    CountOut: (usize, "int *") | (usize, "MPI_Count *"), Role::Address, CountVar,
        |raw, wide, arg| CountVar::at(raw, wide, arg);
    /// A count that is read and written.
    CountInOut: (usize, "int *") | (usize, "MPI_Count *"), Role::Address, CountVar,
        |raw, wide, arg| CountVar::at(raw, wide, arg);
    /// Receives a displacement, 64 bits in both forms.
    AintOrCountOut: (usize, "MPI_Aint *") | (usize, "MPI_Count *"), Role::Address, Out<i64>,
        |raw, wide, arg| Out::at(raw, arg);
    /// A number of bytes that is read and written, 64 bits in both forms.
    AintOrCountInOut: (usize, "MPI_Aint *") | (usize, "MPI_Count *"), Role::Address, CountVar,
        |raw, wide, arg| CountVar::at(raw, true, arg);
    /// Receives the displacement unit of a window.
    DispUnitOut: (usize, "int *") | (usize, "MPI_Aint *"), Role::Address, CountVar,
        |raw, wide, arg| CountVar::at(raw, wide, arg);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_stored_in_the_width_of_the_form() {
        let mut small = [0i32; 2];
        let var = CountVar::at(small.as_mut_ptr() as usize, false, "count").unwrap();
        assert_eq!(var.set(1 << 40).unwrap_err().class, Class::VALUE_TOO_LARGE);
        var.set(7).unwrap();
        assert_eq!(var.get(), 7);
        assert_eq!(small, [7, 0]);
        let var = CountVar::at(small.as_mut_ptr() as usize, false, "count").unwrap();
        var.set_or_undefined(Some(1 << 40));
        assert_eq!(small, [UNDEFINED, 0]);
        let mut large = 0i64;
        let var = CountVar::at(&raw mut large as usize, true, "count").unwrap();
        var.set(1 << 40).unwrap();
        assert_eq!(var.get(), 1 << 40);
        var.set_or_undefined(None);
        assert_eq!(large, UNDEFINED.into());
    }

    #[test]
    fn a_null_result_is_refused() {
        assert_eq!(Out::<i32>::at(0, "flag").unwrap_err().text, "argument `flag` is NULL");
    }
}
