//! The constants of `mpi.h` as Fortran has them (MPI 5.0 sections 20.3 and 20.4).

/// A constant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constant {
    /// `MPI_…`
    pub name: String,
    /// The type of a handle (`MPI_Comm`), or of a number (`integer`, `integer(MPI_OFFSET_KIND)`).
    pub kind: ConstantType,
    /// Its value.
    pub value: i64,
}

/// What a constant is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConstantType {
    /// A handle of this type.
    Handle(String),
    /// An `INTEGER`.
    Integer,
    /// An `INTEGER(MPI_OFFSET_KIND)`.
    Offset,
}

/// Types of `mpi.h` that are handles in Fortran.
pub const HANDLES: [&str; 11] =
    ["Comm", "Group", "Win", "File", "Session", "Message", "Info", "Errhandler", "Request", "Op", "Datatype"];

/// Reads the constants of a header: those of handles and numbers. Addresses have a meaning of their own in
/// Fortran, and names that are none in Fortran (`MPI_F_…`, `MPI_T_…`) are left out.
pub fn read(header: &str) -> Vec<Constant> {
    let mut constants: Vec<Constant> = Vec::new();
    for line in header.lines() {
        let Some((name, value)) = line.strip_prefix("#define ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        if !name.starts_with("MPI_")
            || name.starts_with("MPI_F_")
            || name.starts_with("MPI_T_")
            || name.contains('(')
        {
            continue;
        }
        let value = value.split("/*").next().unwrap_or("").trim();
        if let Some(known) = constants.iter().find(|known| known.name == value) {
            constants.push(Constant { name: name.into(), ..known.clone() });
        } else if let Some((kind, value)) = parse(value) {
            constants.push(Constant { name: name.into(), kind, value: in_fortran(name, value) });
        }
    }
    constants
}

/// The value of a constant: strings of Fortran have no terminating zero, so their greatest lengths are
/// one less (MPI 5.0 section 2.6.2).
fn in_fortran(name: &str, value: i64) -> i64 {
    if name.starts_with("MPI_MAX_") { value - 1 } else { value }
}

fn parse(value: &str) -> Option<(ConstantType, i64)> {
    let value = value.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).unwrap_or(value);
    match value.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some(("MPI_Offset", value)) => Some((ConstantType::Offset, number(value)?)),
        Some((cast, value)) => {
            let class = HANDLES.into_iter().find(|class| cast.strip_prefix("MPI_") == Some(*class))?;
            Some((ConstantType::Handle(format!("MPI_{class}")), number(value)?))
        }
        None => Some((ConstantType::Integer, number(value)?)),
    }
}

fn number(text: &str) -> Option<i64> {
    match text.trim().strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_read_as_fortran_has_them() {
        let header = "#define MPI_COMM_WORLD   ((MPI_Comm) 0x101)\n#define MPI_ANY_TAG (-2) /* any */\n\
            #define MPI_MAX_OBJECT_NAME 128\n#define MPI_BOTTOM ((void *) 0)\n#define MPI_LONG_LONG_INT ((MPI_Datatype) 0x20b)\n\
            #define MPI_LONG_LONG MPI_LONG_LONG_INT\n#define MPI_DISPLACEMENT_CURRENT ((MPI_Offset) -1)\n";
        let constants = read(header);
        let seen: Vec<(&str, i64)> = constants.iter().map(|c| (c.name.as_str(), c.value)).collect();
        assert_eq!(
            seen,
            [
                ("MPI_COMM_WORLD", 0x101),
                ("MPI_ANY_TAG", -2),
                ("MPI_MAX_OBJECT_NAME", 127),
                ("MPI_LONG_LONG_INT", 0x20b),
                ("MPI_LONG_LONG", 0x20b),
                ("MPI_DISPLACEMENT_CURRENT", -1)
            ]
        );
        assert_eq!(constants[0].kind, ConstantType::Handle("MPI_Comm".into()));
        assert_eq!(constants[5].kind, ConstantType::Offset);
    }
}
