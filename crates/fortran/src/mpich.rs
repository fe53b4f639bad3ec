//! The header of MPICH's ABI, with which the functions of `libmpifort.so.12` are compiled: that of the standard ABI, with
//! other types and values. It is for this library only, and not installed.

use std::fmt::Write;

use abi::layout::Set;
use abi::layout::mpich::constants::{self, Row};
use abi::layout::mpich::names::NAMES;

use crate::constants::HANDLES;

/// `MPI_Status` of MPICH's ABI.
const STATUS: &str = "typedef struct MPI_Status {
    int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
";

/// Addresses that stand for something, where they differ.
const ADDRESSES: [(&str, i64); 4] = [
    ("MPI_IN_PLACE", -1),
    ("MPI_BUFFER_AUTOMATIC", -2),
    ("MPI_STATUS_IGNORE", 1),
    ("MPI_STATUSES_IGNORE", 1),
];

/// Ranks and tags that stand for something.
const SPECIAL: [(&str, Set); 4] = [
    ("MPI_ANY_SOURCE", Set::Rank),
    ("MPI_PROC_NULL", Set::Rank),
    ("MPI_ROOT", Set::Rank),
    ("MPI_ANY_TAG", Set::Tag),
];

/// The header, made of that of the standard ABI.
pub fn header(standard: &str) -> String {
    let (before, rest) = standard.split_once("typedef struct MPI_Status {").expect("the header has a status");
    let after = rest.split_once("} MPI_Status;\n").expect("the status ends").1;
    let mut text: String = before.lines().map(line).collect();
    text.push_str(STATUS);
    text.extend(after.lines().map(line));
    text
}

fn line(line: &str) -> String {
    if let Some(class) = line.strip_prefix("typedef struct MPI_ABI_").and_then(|rest| rest.split(' ').next())
    {
        // A file is a pointer in both.
        if class != "File" {
            return format!("typedef int MPI_{class};\n");
        }
    }
    let mut words = line.split_whitespace();
    let (first, name, value) = (words.next(), words.next(), words.collect::<Vec<_>>().join(" "));
    match (first, name) {
        (Some("#define"), Some(name)) => value_of(name, &value)
            .map_or_else(|| format!("{line}\n"), |value| format!("#define {name} {value}\n")),
        _ => format!("{line}\n"),
    }
}

/// What a name stands for, if it is not the same.
fn value_of(name: &str, standard: &str) -> Option<String> {
    if name == "MPI_FILE_NULL" {
        return Some("((MPI_File) 0)".into());
    }
    if let Some((_, value)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(format!("((int) {value:#x})"));
    }
    if let Some((_, address)) = ADDRESSES.iter().find(|(known, _)| *known == name) {
        return Some(format!("((void *) (MPI_Aint) {address})"));
    }
    if let Some((_, set)) = SPECIAL.iter().find(|(known, _)| *known == name) {
        let value = standard.trim_matches(|c| c == '(' || c == ')').parse().ok()?;
        return Some(format!("({})", constants::write(*set, value)));
    }
    let rows = Set::ALL.iter().flat_map(|set| constants::rows(*set));
    let row: Option<&Row> = rows.into_iter().find(|row| row.0 == name);
    row.map(|row| format!("({})", row.2))
}

/// Handles are integers here, as in Fortran; but a file is a pointer.
pub fn conversions() -> String {
    let mut text = String::new();
    for class in HANDLES.iter().map(|class| if *class == "Datatype" { "Type" } else { class }) {
        let (to, from) = if class == "File" {
            ("(int) (MPI_Aint) ", "(MPI_File) (MPI_Aint) (unsigned) ")
        } else {
            ("", "")
        };
        writeln!(text, "#define PMPI_{class}_toint(handle) ({to}(handle))").expect("writing to a string");
        writeln!(text, "#define PMPI_{class}_fromint(handle) ({from}(handle))").expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_values_are_those_of_mpich() {
        let standard = "typedef struct MPI_Status {\n    int MPI_SOURCE;\n} MPI_Status;\n\
            typedef struct MPI_ABI_Comm *MPI_Comm;\ntypedef struct MPI_ABI_File *MPI_File;\n\
            #define MPI_COMM_WORLD   ((MPI_Comm) 0x101)\n#define MPI_ANY_TAG (-2)\n#define MPI_TAG_UB 501\n\
            #define MPI_IN_PLACE ((void *) 1)\n#define MPI_UNDEFINED (-32766)\nint MPI_Finalize(void);\n";
        let made = header(standard);
        for wanted in [
            "typedef int MPI_Comm;",
            "typedef struct MPI_ABI_File *MPI_File;",
            "#define MPI_COMM_WORLD ((int) 0x44000000)",
            "#define MPI_ANY_TAG (-1)",
            "#define MPI_TAG_UB (1681915905)",
            "#define MPI_IN_PLACE ((void *) (MPI_Aint) -1)",
            "#define MPI_UNDEFINED (-32766)",
            "int MPI_Finalize(void);",
        ] {
            assert!(made.lines().any(|line| line == wanted), "{wanted} in\n{made}");
        }
        assert!(!made.contains("    int MPI_SOURCE;"), "{made}");
    }

    #[test]
    fn every_handle_and_constant_of_the_tables_has_its_value() {
        let made = header(include_str!("../../../include/mpi.h"));
        let rows =
            Set::ALL.iter().flat_map(|set| constants::rows(*set)).map(|row| (row.0, format!("({})", row.2)));
        for (name, value) in
            rows.chain(NAMES.iter().map(|(name, value)| (*name, format!("((int) {value:#x})"))))
        {
            let wanted = format!("#define {name} {value}");
            assert!(made.lines().any(|line| line == wanted), "{wanted}");
        }
    }
}
