//! The headers of other ABIs, with which the functions of their Fortran libraries (`libmpifort.so.12`, `libmpi_mpifh.so.40`)
//! are compiled: that of the standard ABI, with other types and values. They are for these libraries only, and not installed.

use std::fmt::Write;

use abi::layout::Set;
use abi::layout::values::Row;
use abi::layout::{mpich, openmpi};

use crate::constants::HANDLES;

/// What differs from the standard ABI.
pub struct Other {
    /// The folder for what is compiled with this header.
    pub name: &'static str,
    /// The fields of `MPI_Status`.
    status: &'static str,
    /// What handles are, but files; pointers to structures without it.
    handle: Option<&'static str>,
    /// Predefined handles.
    handles: fn(&str) -> Option<String>,
    /// Addresses that stand for something.
    addresses: &'static [(&'static str, i64)],
    constants: &'static [(Set, &'static [Row])],
    write: fn(Set, i32) -> i32,
    /// What the values need that the standard ABI does not have.
    declarations: fn() -> String,
    /// How a handle becomes an integer of Fortran, and that a handle.
    conversions: fn(&mut String, &str),
}

/// All that there are.
pub const OTHERS: [Other; 2] = [
    Other {
        name: "mpich",
        status: "int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;",
        handle: Some("int"),
        handles: |name| {
            let found = mpich::names::NAMES.iter().find(|(known, _)| *known == name);
            let file = (name == "MPI_FILE_NULL").then(|| "((MPI_File) 0)".to_string());
            found.map(|(_, value)| format!("((int) {value:#x})")).or(file)
        },
        addresses: &[
            ("MPI_IN_PLACE", -1),
            ("MPI_BUFFER_AUTOMATIC", -2),
            ("MPI_STATUS_IGNORE", 1),
            ("MPI_STATUSES_IGNORE", 1),
        ],
        constants: mpich::constants::SETS,
        write: mpich::constants::write,
        declarations: String::new,
        // Handles are integers, as in Fortran; but a file is a pointer.
        conversions: |text, class| {
            let (to, from) = match class {
                "File" => ("(int) (MPI_Aint) ", "(MPI_File) (MPI_Aint) (unsigned) "),
                _ => ("", ""),
            };
            write!(
                text,
                "#define PMPI_{class}_toint(handle) ({to}(handle))\n\
                 #define PMPI_{class}_fromint(handle) ({from}(handle))\n"
            )
            .expect("writing to a string");
        },
    },
    Other {
        name: "openmpi",
        status: "int MPI_SOURCE, MPI_TAG, MPI_ERROR, cancelled, count_lo, count_hi;",
        handle: None,
        handles: |name| {
            let found = openmpi::names::NAMES.iter().find(|row| row.0 == name);
            found.map(|row| format!("((void *) {})", row.1))
        },
        addresses: &[("MPI_UNWEIGHTED", 2), ("MPI_WEIGHTS_EMPTY", 3)],
        constants: openmpi::constants::SETS,
        write: openmpi::constants::write,
        declarations: || {
            let objects = openmpi::names::NAMES.iter().map(|row| format!("extern char {}[];\n", row.1));
            objects.collect::<String>() + &marks()
        },
        conversions: |text, class| {
            let c = if class == "Type" { "Datatype" } else { class };
            write!(
                text,
                "#undef PMPI_{class}_c2f\n#undef PMPI_{class}_f2c\n\
                 int PMPI_{class}_c2f(MPI_{c} handle);\nMPI_{c} PMPI_{class}_f2c(int handle);\n\
                 #define PMPI_{class}_toint PMPI_{class}_c2f\n#define PMPI_{class}_fromint PMPI_{class}_f2c\n"
            )
            .expect("writing to a string");
        },
    },
];

/// Functions that take one of the application: of Open MPI's they get it with the mark of Fortran.
fn marks() -> String {
    let mark = openmpi::names::FORTRAN;
    let mut text = format!("#define TERN_MARKED(f) ((void *) ((size_t) (f) | {mark:#x}))\n");
    let errhandlers = ["Comm", "File", "Session", "Win"].map(|class| format!("{class}_create_errhandler"));
    for name in errhandlers.iter().map(String::as_str).chain(["Op_create"]) {
        for prefix in ["MPI", "PMPI"] {
            let name = format!("{prefix}_{name}");
            writeln!(text, "#define {name}(f, ...) ({name})(TERN_MARKED(f), __VA_ARGS__)")
                .expect("writing to a string");
        }
    }
    text
}

/// Ranks and tags that stand for something.
const SPECIAL: [(&str, Set); 4] = [
    ("MPI_ANY_SOURCE", Set::Rank),
    ("MPI_PROC_NULL", Set::Rank),
    ("MPI_ROOT", Set::Rank),
    ("MPI_ANY_TAG", Set::Tag),
];

impl Other {
    /// The header, made of that of the standard ABI.
    pub fn header(&self, standard: &str) -> String {
        let (before, rest) =
            standard.split_once("typedef struct MPI_Status {").expect("the header has a status");
        let after = rest.split_once("} MPI_Status;\n").expect("the status ends").1;
        let mut text: String = before.lines().map(|line| self.line(line)).collect();
        writeln!(text, "typedef struct MPI_Status {{\n    {}\n}} MPI_Status;", self.status)
            .expect("writing to a string");
        text.extend(after.lines().map(|line| self.line(line)));
        for class in HANDLES.iter().map(|class| if *class == "Datatype" { "Type" } else { class }) {
            (self.conversions)(&mut text, class);
        }
        text + &(self.declarations)()
    }

    fn line(&self, line: &str) -> String {
        let class = line.strip_prefix("typedef struct MPI_ABI_").and_then(|rest| rest.split(' ').next());
        match (class, self.handle) {
            // A file is a pointer in all.
            (Some(class), Some(handle)) if class != "File" => {
                return format!("typedef {handle} MPI_{class};\n");
            }
            _ => {}
        }
        let mut words = line.split_whitespace();
        let (first, name, value) = (words.next(), words.next(), words.collect::<Vec<_>>().join(" "));
        match (first, name) {
            (Some("#define"), Some(name)) => self
                .value_of(name, &value)
                .map_or_else(|| format!("{line}\n"), |value| format!("#define {name} {value}\n")),
            _ => format!("{line}\n"),
        }
    }

    /// What a name stands for, if it is not the same.
    fn value_of(&self, name: &str, standard: &str) -> Option<String> {
        if let Some(value) = (self.handles)(name) {
            return Some(value);
        }
        if let Some((_, address)) = self.addresses.iter().find(|(known, _)| *known == name) {
            return Some(format!("((void *) (MPI_Aint) {address})"));
        }
        if let Some((_, set)) = SPECIAL.iter().find(|(known, _)| *known == name) {
            let value = standard.trim_matches(|c| c == '(' || c == ')').parse().ok()?;
            return Some(format!("({})", (self.write)(*set, value)));
        }
        let row = self.constants.iter().flat_map(|set| set.1).find(|row| row.0 == name);
        row.map(|row| format!("({})", row.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = "typedef struct MPI_Status {\n    int standard;\n} MPI_Status;\n\
        typedef struct MPI_ABI_Comm *MPI_Comm;\ntypedef struct MPI_ABI_File *MPI_File;\n\
        #define MPI_COMM_WORLD   ((MPI_Comm) 0x101)\n#define MPI_ANY_TAG (-2)\n#define MPI_TAG_UB 501\n\
        #define MPI_IN_PLACE ((void *) 1)\n#define MPI_UNDEFINED (-32766)\nint MPI_Finalize(void);\n";

    #[test]
    fn types_and_values_are_those_of_the_other_abi() {
        let wanted: [&[&str]; 2] = [
            &[
                "typedef int MPI_Comm;",
                "#define MPI_COMM_WORLD ((int) 0x44000000)",
                "#define MPI_TAG_UB (1681915905)",
                "#define MPI_IN_PLACE ((void *) (MPI_Aint) -1)",
            ],
            &[
                "typedef struct MPI_ABI_Comm *MPI_Comm;",
                "#define MPI_COMM_WORLD ((void *) ompi_mpi_comm_world)",
                "extern char ompi_mpi_comm_world[];",
                "#define MPI_TAG_UB (0)",
                "#define MPI_IN_PLACE ((void *) 1)",
            ],
        ];
        for (other, wanted) in OTHERS.iter().zip(wanted) {
            let made = other.header(STANDARD);
            let same = ["typedef struct MPI_ABI_File *MPI_File;", "#define MPI_ANY_TAG (-1)"];
            let same = same.iter().chain(&["#define MPI_UNDEFINED (-32766)", "int MPI_Finalize(void);"]);
            for wanted in same.chain(wanted) {
                assert!(made.lines().any(|line| line == *wanted), "{}: {wanted} in\n{made}", other.name);
            }
            assert!(made.contains(other.status) && !made.contains("int standard;"), "{made}");
        }
    }

    #[test]
    fn every_handle_and_constant_of_the_tables_has_its_value() {
        for other in OTHERS {
            let made = other.header(include_str!("../../../include/mpi.h"));
            let rows = other.constants.iter().flat_map(|set| set.1);
            let rows = rows.map(|row| (row.0, format!("({})", row.2)));
            let names: Vec<&str> = match other.name {
                "mpich" => mpich::names::NAMES.iter().map(|row| row.0).collect(),
                _ => openmpi::names::NAMES.iter().map(|row| row.0).collect(),
            };
            let handles =
                names.iter().map(|name| (*name, (other.handles)(name).expect("it is in the table")));
            for (name, value) in rows.chain(handles) {
                let wanted = format!("#define {name} {value}");
                assert!(made.lines().any(|line| line == wanted), "{}: {wanted}", other.name);
            }
        }
    }
}
