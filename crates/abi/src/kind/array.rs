//! Arrays. Their length is another argument, so the handler says how much to look at.

use std::marker::PhantomData;

use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;

use super::handle::live;
use super::{Role, kinds, two_width_kinds};
use crate::cx::Cx;
use crate::layout::{RawStatus, Slot};
use crate::object::Object;

/// An array the application passed; `T` is the type of an element in C.
#[derive(Clone, Copy, Debug)]
pub struct Array<T> {
    place: usize,
    arg: &'static str,
    element: PhantomData<T>,
}

impl<T: Copy> Array<T> {
    #[inline(always)]
    fn at(place: usize, arg: &'static str) -> Self {
        Array { place, arg, element: PhantomData }
    }

    /// Whether the application passed NULL (`MPI_STATUSES_IGNORE`, `MPI_ERRCODES_IGNORE`, …).
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.place == 0
    }

    /// The address as it was passed, for constants such as `MPI_UNWEIGHTED`.
    #[inline(always)]
    pub fn address(self) -> usize {
        self.place
    }

    /// The first `len` elements; NULL is an error unless `len` is 0.
    ///
    /// # Safety
    /// `len` is what MPI says the length of this argument is, and the slice is not kept beyond
    /// the operation.
    #[inline]
    pub unsafe fn slice<'a>(self, len: usize) -> Result<&'a [T]> {
        match (len, self.place) {
            (0, _) => Ok(&[]),
            (_, 0) => self.missing(len),
            // SAFETY: the application passes at least `len` elements, which the caller vouches for.
            _ => Ok(unsafe { std::slice::from_raw_parts(self.place as *const T, len) }),
        }
    }

    /// As [`Array::slice`], to write to.
    ///
    /// # Safety
    /// As for [`Array::slice`]; no other slice of this array is alive.
    #[inline]
    pub unsafe fn slice_mut<'a>(self, len: usize) -> Result<&'a mut [T]> {
        match (len, self.place) {
            (0, _) => Ok(&mut []),
            (_, 0) => self.missing(len),
            // SAFETY: as in `slice`; MPI declares this argument as one the operation writes.
            _ => Ok(unsafe { std::slice::from_raw_parts_mut(self.place as *mut T, len) }),
        }
    }

    #[cold]
    fn missing<R>(self, len: usize) -> Result<R> {
        fail(Class::ARG, format!("argument `{}` is NULL, {len} elements are expected there", self.arg))
    }
}

impl Array<Slot> {
    /// Checks the first `len` handles.
    ///
    /// # Safety
    /// As for [`Array::slice`].
    pub unsafe fn handles(self, len: usize, object: Object, cx: &Cx) -> Result<Vec<Handle>> {
        // SAFETY: passed on to the caller.
        let raw = unsafe { self.slice(len)? };
        raw.iter().map(|slot| live(object, slot.get(object), self.arg, cx)).collect()
    }
}

/// An array of counts or displacements: `int` in the plain form, 64 bits in the `_c` form or
/// where C says `MPI_Aint`. Elements are widened when they are read.
#[derive(Clone, Copy, Debug)]
pub struct CountArray {
    place: usize,
    wide: bool,
    arg: &'static str,
}

impl CountArray {
    #[inline(always)]
    fn at(place: usize, wide: bool, arg: &'static str) -> Self {
        CountArray { place, wide, arg }
    }

    /// The first `len` elements; NULL is an error unless `len` is 0.
    ///
    /// # Safety
    /// As for [`Array::slice`].
    #[inline]
    pub unsafe fn get<'a>(self, len: usize) -> Result<Counts64<'a>> {
        // SAFETY: passed on to the caller; the width is that of the form that was called.
        unsafe {
            Ok(match self.wide {
                true => Counts64::Wide(Array::at(self.place, self.arg).slice(len)?),
                false => Counts64::Narrow(Array::at(self.place, self.arg).slice(len)?),
            })
        }
    }

    /// As [`CountArray::get`] for counts, which must not be negative.
    ///
    /// # Safety
    /// As for [`Array::slice`].
    pub unsafe fn counts<'a>(self, len: usize) -> Result<Counts64<'a>> {
        // SAFETY: passed on to the caller.
        let counts = unsafe { self.get(len)? };
        match counts.iter().enumerate().find(|count| count.1 < 0) {
            None => Ok(counts),
            Some((i, count)) => {
                fail(Class::COUNT, format!("argument `{}`[{i}] is {count}, must not be negative", self.arg))
            }
        }
    }
}

/// Elements of a [`CountArray`].
#[derive(Clone, Copy, Debug)]
pub enum Counts64<'a> {
    /// As `int`.
    Narrow(&'a [i32]),
    /// As `MPI_Count` or `MPI_Aint`.
    Wide(&'a [i64]),
}

impl<'a> Counts64<'a> {
    /// How many elements there are.
    #[inline(always)]
    pub fn len(self) -> usize {
        match self {
            Counts64::Narrow(slice) => slice.len(),
            Counts64::Wide(slice) => slice.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The element at `index`.
    #[inline(always)]
    pub fn at(self, index: usize) -> i64 {
        match self {
            Counts64::Narrow(slice) => slice[index].into(),
            Counts64::Wide(slice) => slice[index],
        }
    }

    /// All elements, widened.
    pub fn iter(self) -> impl ExactSizeIterator<Item = i64> + 'a {
        (0..self.len()).map(move |i| self.at(i))
    }
}

kinds! {
    /// `int`s that are read.
    Ints: usize, "const int *", Role::Address, Array<i32>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// `int`s that are written (and sometimes read first).
    IntsOut: usize, "int *", Role::Address, Array<i32>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Weights of graph edges, `MPI_UNWEIGHTED` or `MPI_WEIGHTS_EMPTY`.
    Weights: usize, "const int *", Role::Address, Array<i32>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Receives the weights of graph edges.
    WeightsOut: usize, "int *", Role::Address, Array<i32>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Ranges of ranks: first, last, stride.
    Ranges: usize, "int (*)[3]", Role::Address, Array<[i32; 3]>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Displacements in bytes, `MPI_Aint` in both forms.
    Aints: usize, "const MPI_Aint *", Role::Address, CountArray, |raw, arg, cx| Ok(CountArray::at(raw, true, arg));
    /// Receives displacements in bytes.
    AintsOut: usize, "MPI_Aint *", Role::Address, Array<i64>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Receives counts, `MPI_Count` in every form.
    CountsOut: usize, "MPI_Count *", Role::Address, Array<i64>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Datatypes; [`Array::handles`] checks them.
    Datatypes: usize, "const MPI_Datatype *", Role::Address, Array<Slot>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Receives datatypes.
    DatatypesOut: usize, "MPI_Datatype *", Role::Address, Array<Slot>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Requests that the operation replaces when they complete.
    Requests: usize, "MPI_Request *", Role::Address, Array<Slot>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Requests that stay as they are.
    RequestsIn: usize, "const MPI_Request *", Role::Address, Array<Slot>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Info objects.
    Infos: usize, "const MPI_Info *", Role::Address, Array<Slot>, |raw, arg, cx| Ok(Array::at(raw, arg));
    /// Receives statuses, or `MPI_STATUSES_IGNORE`.
    StatusesOut: usize, "MPI_Status *", Role::Status, Array<RawStatus>, |raw, arg, cx| Ok(Array::at(raw, arg));
}

two_width_kinds! {
    /// Numbers of elements, or displacements in elements of a datatype constructor.
    Counts: (usize, "const int *") | (usize, "const MPI_Count *"), Role::Address, CountArray,
        |raw, wide, arg| Ok(CountArray::at(raw, wide, arg));
    /// Displacements in elements of a collective operation.
    Displs: (usize, "const int *") | (usize, "const MPI_Aint *"), Role::Address, CountArray,
        |raw, wide, arg| Ok(CountArray::at(raw, wide, arg));
    /// Displacements in bytes of a datatype constructor.
    AintsOrCounts: (usize, "const MPI_Aint *") | (usize, "const MPI_Count *"), Role::Address, CountArray,
        |raw, wide, arg| Ok(CountArray::at(raw, true, arg));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_widths_read_alike() {
        let (narrow, wide) = ([1i32, -2, 3], [1i64, -2, 3]);
        for (place, is_wide) in [(narrow.as_ptr() as usize, false), (wide.as_ptr() as usize, true)] {
            let array = CountArray::at(place, is_wide, "recvcounts");
            // SAFETY: both arrays have 3 elements of the stated width.
            let values = unsafe { array.get(3) }.unwrap();
            assert_eq!(values.iter().collect::<Vec<_>>(), [1, -2, 3]);
            // SAFETY: as above.
            let error = unsafe { array.counts(3) }.unwrap_err();
            assert_eq!(error.text, "argument `recvcounts`[1] is -2, must not be negative");
        }
    }

    #[test]
    fn null_is_an_error_only_when_elements_are_expected() {
        let array = Array::<i32>::at(0, "ranks");
        // SAFETY: nothing is read.
        unsafe {
            assert!(array.slice(0).unwrap().is_empty());
            assert_eq!(
                array.slice(2).unwrap_err().text,
                "argument `ranks` is NULL, 2 elements are expected there"
            );
            assert_eq!(array.slice_mut(1).unwrap_err().class, Class::ARG);
        }
    }
}
