//! MPI 5.0 sections 9.4 and 9.5: error classes, codes and strings.

use mpi::codes::{MAX_STRING, UNSUPPORTED};
use mpi::error::{Class, Result};

use crate::cx::Cx;
use crate::kind::output::Out;
use crate::kind::text::{Text, TextOut};
use crate::table::{self, Row};

/// The code of a call of this form of a row that has no handler.
pub fn of_missing(row: &'static Row, large: bool) -> i32 {
    let at = table::all().position(|other| std::ptr::eq(other, row)).expect("a row of the table");
    UNSUPPORTED.start + 2 * at as i32 + i32::from(large)
}

/// The text of a code: it names the operation that is not there.
pub fn text(cx: &Cx, code: i32) -> Vec<u8> {
    let at = UNSUPPORTED.contains(&code).then(|| (code - UNSUPPORTED.start) as usize);
    let missing = at.and_then(|at| Some((table::all().nth(at / 2)?, at % 2 == 1)));
    match missing.filter(|(row, _)| !row.implemented) {
        Some((row, large)) => {
            let (class, form) = (Class::UNSUPPORTED_OPERATION.name(), if large { "_c" } else { "" });
            format!("{class}: {}{form} is not there yet", row.name).into_bytes()
        }
        None => cx.anytime().codes.string_of(code),
    }
}

/// `MPI_Error_class`.
pub fn class(cx: &Cx, errorcode: i32, errorclass: Out<i32>) -> Result {
    errorclass.set(cx.anytime().codes.class_of(errorcode));
    Ok(())
}

/// `MPI_Error_string`.
pub fn string(cx: &Cx, errorcode: i32, string: TextOut, resultlen: Out<i32>) -> Result {
    let text = text(cx, errorcode);
    // SAFETY: MPI says the buffer has room for `MPI_MAX_ERROR_STRING` bytes.
    resultlen.set(unsafe { string.set(&text, MAX_STRING) } as i32);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_operation_is_told_by_its_code() {
        let cx = Cx::new(table::all().next().expect("a row"), false);
        let mut codes = Vec::new();
        for row in table::all().filter(|row| !row.implemented) {
            for (name, large) in row.names().zip([false, true]) {
                let code = of_missing(row, large);
                let text = String::from_utf8(text(&cx, code)).unwrap();
                assert_eq!(text, format!("MPI_ERR_UNSUPPORTED_OPERATION: {name} is not there yet"));
                assert_eq!(cx.anytime().codes.class_of(code), Class::UNSUPPORTED_OPERATION.0);
                codes.push(code);
            }
        }
        assert!(codes.is_sorted_by(|a, b| a < b), "a code stands for two operations");
        let there = table::all().find(|row| row.implemented).unwrap();
        for code in [of_missing(there, false), UNSUPPORTED.end - 1, UNSUPPORTED.start - 1, i32::MIN] {
            assert!(!String::from_utf8(text(&cx, code)).unwrap().contains("not there yet"));
        }
    }
}
