//! MPI 5.0 sections 9.4 and 9.5: error classes, codes and strings.

use mpi::error::Result;

use crate::cx::Cx;
use crate::kind::output::Out;
use crate::kind::text::{Text, TextOut};
use crate::layout::MAX_ERROR_STRING;

/// `MPI_Error_class`.
pub fn class(cx: &Cx, errorcode: i32, errorclass: Out<i32>) -> Result {
    errorclass.set(cx.anytime().codes.class_of(errorcode));
    Ok(())
}

/// `MPI_Error_string`.
pub fn string(cx: &Cx, errorcode: i32, string: TextOut, resultlen: Out<i32>) -> Result {
    let text = cx.anytime().codes.string_of(errorcode);
    // SAFETY: MPI says the buffer has room for `MPI_MAX_ERROR_STRING` bytes.
    resultlen.set(unsafe { string.set(&text, MAX_ERROR_STRING) } as i32);
    Ok(())
}

/// `MPI_Add_error_class`.
pub fn add_class(cx: &Cx, errorclass: Out<i32>) -> Result {
    errorclass.set(cx.anytime().codes.add_class()?);
    Ok(())
}

/// `MPI_Add_error_code`.
pub fn add_code(cx: &Cx, errorclass: i32, errorcode: Out<i32>) -> Result {
    errorcode.set(cx.anytime().codes.add_code(errorclass)?);
    Ok(())
}

/// `MPI_Add_error_string`.
pub fn add_string(cx: &Cx, errorcode: i32, string: Text) -> Result {
    // SAFETY: not kept beyond this call.
    cx.anytime().codes.add_string(errorcode, unsafe { string.bytes() })
}

/// `MPI_Remove_error_class`.
pub fn remove_class(cx: &Cx, errorclass: i32) -> Result {
    cx.anytime().codes.remove_class(errorclass)
}

/// `MPI_Remove_error_code`.
pub fn remove_code(cx: &Cx, errorcode: i32) -> Result {
    cx.anytime().codes.remove_code(errorcode)
}

/// `MPI_Remove_error_string`.
pub fn remove_string(cx: &Cx, errorcode: i32) -> Result {
    cx.anytime().codes.remove_string(errorcode)
}
