//! What options of `mpiexec` and info keys of `MPI_Comm_spawn` ask for alike (MPI 5.0 sections 11.5 and 11.8.4).
use crate::text::quoted;
use fabric::settings::ALL;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The key of the error handler that processes begin with.
pub const ERRHANDLER: &str = "mpi_initial_errhandler";
/// The key of the kinds of memory that their buffers may be of.
pub const KINDS: &str = "mpi_memory_alloc_kinds";

/// The variable by which processes are told what a key says; `None` of a key that is not told so. An error says what the key takes.
pub fn variable(key: &str, value: &[u8]) -> Result<Option<(OsString, OsString)>, String> {
    let name = match key {
        ERRHANDLER => "TERN_INITIAL_ERRHANDLER",
        KINDS => "TERN_MEMORY_ALLOC_KINDS",
        _ => return Ok(None),
    };
    let setting = ALL.iter().find(|setting| setting.name == name).expect("it is declared");
    let fits = std::str::from_utf8(value).is_ok_and(|text| setting.check(text).is_ok());
    if !fits {
        return Err(format!("{} is not {}", quoted(value), setting.kind.describe()));
    }
    Ok(Some((name.into(), OsString::from_vec(value.into()))))
}

/// The largest number of processes that `soft` allows, which lists numbers, `a:b` and `a:b:c`.
pub fn soft(text: &str, most: usize) -> Result<usize, String> {
    let wrong = || format!("`{text}`, no list of numbers and ranges");
    let mut best = None;
    for range in text.split(',') {
        // Twice as wide as they are: no difference of two is too large.
        let number = |text: &str| text.trim().parse::<i64>().map(i128::from).map_err(|_| wrong());
        let numbers: Vec<i128> = range.split(':').map(number).collect::<Result<_, _>>()?;
        let (first, last, step) = match numbers[..] {
            [one] => (one, one, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return Err(wrong()),
        };
        let most = most as i128;
        let found = if step > 0 {
            let top = last.min(most);
            (first <= top).then(|| first + (top - first) / step * step)
        } else {
            // It runs downwards: the first that is small enough.
            let skip = if first > most { (first - most + -step - 1) / -step } else { 0 };
            Some(first + skip * step).filter(|found| *found >= last)
        };
        best = best.max(found.filter(|count| *count > 0 && *count <= most));
    }
    let best = best.map(|count| count as usize);
    best.ok_or_else(|| format!("`{text}`, which allows no number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_that_soft_allows() {
        for (text, most, count) in [
            ("1:4", 8, Some(4)),
            ("1:100", 8, Some(8)),
            ("2:100:3", 9, Some(8)),
            ("9:1:-2", 6, Some(5)),
            ("3,5,17", 16, Some(5)),
            ("9,20", 8, None),
            ("0", 8, None),
            ("-9223372036854775808:5", 8, Some(5)),
            ("9223372036854775807:1:-9223372036854775808", 8, None),
        ] {
            assert_eq!(soft(text, most).ok(), count, "{text}");
        }
        for text in ["", "a", "1:2:0", "1:2:3:4", "1,,2"] {
            assert!(soft(text, 4).unwrap_err().contains("no list"), "{text}");
        }
    }

    #[test]
    fn processes_are_told_by_variables() {
        assert_eq!(variable("wdir", b"/"), Ok(None));
        let told = |name: &str, value: &str| Ok(Some((name.into(), value.into())));
        assert_eq!(
            variable(ERRHANDLER, b"mpi_errors_abort"),
            told("TERN_INITIAL_ERRHANDLER", "mpi_errors_abort")
        );
        assert_eq!(variable(KINDS, b"cuda"), told("TERN_MEMORY_ALLOC_KINDS", "cuda"));
        assert!(variable(ERRHANDLER, b"MPI_ERRORS_RETURN").unwrap_err().contains("mpi_errors_return"));
        assert!(variable(KINDS, b"\xff").is_err());
    }
}
