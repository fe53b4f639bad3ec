//! What holds of the constants of each other ABI: none is missing, and what goes there and back is the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Constants of one set: name, value in the standard ABI, value in the other one.
type Rows = &'static [(&'static str, i32, i32)];

/// The numbers that `include/mpi.h` defines.
fn standard() -> BTreeMap<String, i32> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include/mpi.h");
    let text = std::fs::read_to_string(path).expect("include/mpi.h");
    let defines =
        text.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(char::is_whitespace));
    let number = |value: &str| {
        let value = value.trim().trim_start_matches("((MPI_Offset) ").trim_matches(['(', ')']);
        match value.strip_prefix("0x") {
            Some(digits) => i32::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        }
    };
    defines.filter_map(|(name, value)| Some((name.to_string(), number(value)?))).collect()
}

/// The names and standard values are those of the header, and of sets that are named by how they begin none is left out.
pub fn are_those_of_the_header<Set>(sets: &[(Set, Rows)]) {
    let header = standard();
    let rows = || sets.iter().flat_map(|set| set.1);
    for row in rows() {
        assert_eq!(header.get(row.0), Some(&row.1), "{}", row.0);
    }
    let known: BTreeSet<&str> = rows().map(|row| row.0).collect();
    let begins = [
        "MPI_ERR_",
        "MPI_T_ERR_",
        "MPI_THREAD_",
        "MPI_COMM_TYPE_",
        "MPI_COMBINER_",
        "MPI_ORDER_",
        "MPI_DISTRIBUTE_",
        "MPI_TYPECLASS_",
        "MPI_SEEK_",
        "MPI_LOCK_",
        "MPI_MODE_",
        "MPI_WIN_FLAVOR_",
        "MPI_T_VERBOSITY_",
        "MPI_T_BIND_",
        "MPI_T_SCOPE_",
        "MPI_T_PVAR_CLASS_",
    ];
    for name in header.keys().filter(|name| begins.iter().any(|begin| name.starts_with(begin))) {
        assert!(known.contains(&**name), "{name} has no value in the other ABI");
    }
}

/// Each constant becomes the other and that one this again, and no two of a set are the same.
pub fn go_there_and_back<Set: Copy>(
    sets: &[(Set, Rows)],
    read: fn(Set, i32) -> i32,
    write: fn(Set, i32) -> i32,
) {
    for &(set, rows) in sets {
        for &(name, ours, theirs) in rows {
            assert_eq!((read(set, theirs), write(set, ours)), (ours, theirs), "{name}");
        }
        let theirs: BTreeSet<i32> = rows.iter().map(|row| row.2).collect();
        assert_eq!(theirs.len(), rows.len(), "two are the same: {rows:?}");
    }
}
