//! Strings, argument vectors and statuses.

use std::ffi::CStr;

use mpi::status::Status;

use super::{Role, kinds, not_null};
use crate::layout::{self, RawStatus};

/// A string the application passed.
#[derive(Clone, Copy, Debug)]
pub struct Text(usize);

impl Text {
    /// Its bytes without the terminating zero.
    ///
    /// # Safety
    /// The slice is not kept beyond the operation.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: not null, and the application passes a terminated string.
        unsafe { CStr::from_ptr(self.0 as *const _) }.to_bytes()
    }

    /// A copy, with invalid UTF-8 replaced.
    pub fn to_text(self) -> String {
        // SAFETY: copied at once.
        String::from_utf8_lossy(unsafe { self.bytes() }).into_owned()
    }
}

/// A string that is significant at the root alone.
#[derive(Clone, Copy, Debug)]
pub struct MaybeText(usize, &'static str);

impl MaybeText {
    /// The string, which is needed here.
    pub fn get(self) -> mpi::Result<Text> {
        not_null(self.0, self.1).map(Text)
    }
}

/// A character buffer of the application that receives a string.
#[derive(Clone, Copy, Debug)]
pub struct TextOut(usize);

impl TextOut {
    /// The buffer at this address, if there is one.
    pub(super) fn at(place: usize) -> Option<TextOut> {
        (place != 0).then_some(TextOut(place))
    }

    /// Stores as many bytes of `text` as fit into `capacity` with the terminating zero, and
    /// returns how many that were without the zero.
    ///
    /// # Safety
    /// `capacity`, at least 1, is what MPI says is the least size of this argument
    /// (`MPI_MAX_PROCESSOR_NAME`, …) or what the application said.
    pub unsafe fn set(self, text: &[u8], capacity: usize) -> usize {
        let len = text.len().min(capacity - 1);
        // SAFETY: not null, and the buffer has room for `capacity` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), self.0 as *mut u8, len);
            (self.0 as *mut u8).add(len).write(0);
        }
        len
    }
}

/// As [`TextOut`] where NULL is possible, because nothing may be to be written.
#[derive(Clone, Copy, Debug)]
pub struct MaybeTextOut(usize, &'static str);

impl MaybeTextOut {
    /// The buffer, which is needed after all.
    pub fn get(self) -> mpi::Result<TextOut> {
        not_null(self.0, self.1).map(TextOut)
    }
}

/// Where an operation puts a status; `MPI_STATUS_IGNORE` is possible.
#[derive(Clone, Copy, Debug)]
pub struct StatusPlace(usize);

impl StatusPlace {
    /// `MPI_STATUS_IGNORE`.
    pub const IGNORE: StatusPlace = StatusPlace(0);

    /// Whether the application does not want it.
    #[inline(always)]
    pub fn is_ignore(self) -> bool {
        self.0 == 0
    }

    /// Stores the status unless it is ignored.
    #[inline(always)]
    pub fn set(self, status: [i32; 8]) {
        if !self.is_ignore() {
            // SAFETY: not null, and the application passes the address of an `MPI_Status`.
            unsafe { (self.0 as *mut RawStatus).write(layout::pack(status)) }
        }
    }

    /// Stores the empty status, whose error field is `MPI_SUCCESS` (MPI 5.0 section 3.7.3).
    pub fn set_empty(self) {
        self.set(Status::EMPTY.to_ints())
    }

    /// Stores all but the field `MPI_ERROR`, which operations that return one status leave as
    /// it was (MPI 5.0 section 3.2.5).
    #[inline(always)]
    pub fn set_keeping_error(self, status: [i32; 8]) {
        if !self.is_ignore() {
            // SAFETY: as in `set`.
            unsafe { layout::put_received(self.0, status) }
        }
    }
}

/// A status the application passed, not `MPI_STATUS_IGNORE`.
#[derive(Clone, Copy, Debug)]
pub struct StatusVar(StatusPlace);

impl StatusVar {
    /// Its content.
    #[inline(always)]
    pub fn get(self) -> [i32; 8] {
        // SAFETY: not null, and the application passes the address of an `MPI_Status`.
        layout::unpack(unsafe { (self.0.0 as *const RawStatus).read() })
    }

    /// Replaces its content.
    #[inline(always)]
    pub fn set(self, status: [i32; 8]) {
        self.0.set(status)
    }
}

kinds! {
    /// A string that is read.
    StrIn: usize, "const char *", Role::Text, Text, |raw, arg, cx| not_null(raw, arg).map(Text);
    /// A string that is read at the root.
    RootStrIn: usize, "const char *", Role::Address, MaybeText, |raw, arg, cx| Ok(MaybeText(raw, arg));
    /// Receives a string.
    StrOut: usize, "char *", Role::Address, TextOut, |raw, arg, cx| not_null(raw, arg).map(TextOut);
    /// Receives a string if another argument says so.
    MaybeStrOut: usize, "char *", Role::Address, MaybeTextOut, |raw, arg, cx| Ok(MaybeTextOut(raw, arg));
    /// Address of `argc` or NULL.
    Argc: usize, "int *", Role::Address, usize, |raw, arg, cx| Ok(raw);
    /// Address of `argv` or NULL.
    Argv: usize, "char ***", Role::Address, usize, |raw, arg, cx| Ok(raw);
    /// An array of strings ended by NULL, or `MPI_ARGV_NULL`.
    Strings: usize, "char **", Role::Address, usize, |raw, arg, cx| Ok(raw);
    /// An array of arrays of strings, or `MPI_ARGVS_NULL`.
    StringLists: usize, "char ***", Role::Address, usize, |raw, arg, cx| Ok(raw);
    /// A status that is read.
    StatusIn: usize, "const MPI_Status *", Role::Address, StatusVar,
        |raw, arg, cx| not_null(raw, arg).map(|place| StatusVar(StatusPlace(place)));
    /// A status that is changed.
    StatusInOut: usize, "MPI_Status *", Role::Address, StatusVar,
        |raw, arg, cx| not_null(raw, arg).map(|place| StatusVar(StatusPlace(place)));
    /// Receives a status, or `MPI_STATUS_IGNORE`.
    StatusOut: usize, "MPI_Status *", Role::Status, StatusPlace, |raw, arg, cx| Ok(StatusPlace(raw));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_cut_to_the_buffer() {
        let mut buffer = *b"........";
        let out = TextOut(buffer.as_mut_ptr() as usize);
        // SAFETY: the buffer has 8 bytes.
        assert_eq!(unsafe { out.set(b"host", 8) }, 4);
        assert_eq!(&buffer, b"host\0...");
        // SAFETY: as above.
        assert_eq!(unsafe { out.set(b"host.example", 8) }, 7);
        assert_eq!(&buffer, b"host.ex\0");
        assert_eq!(Text(buffer.as_ptr() as usize).to_text(), "host.ex");
    }

    #[test]
    fn the_error_field_survives_where_it_must() {
        let mut status = [1, 2, 3, 4, 5, 6, 7, 8];
        StatusPlace(&raw mut status as usize).set_keeping_error([0; 8]);
        assert_eq!(status, [0, 0, 3, 0, 0, 0, 0, 0]);
        StatusPlace(0).set_keeping_error([9; 8]);
    }
}
