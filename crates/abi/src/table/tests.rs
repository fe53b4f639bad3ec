//! What must hold for the table as a whole.

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_table_holds_the_functions_of_the_abi() {
    let names: Vec<String> = all().flat_map(Row::names).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(names.len(), 664);
    assert_eq!(distinct.len(), 664, "a name occurs twice");
    // The standard's 159 and the two that only the Forum's ABI header has.
    assert_eq!(names.iter().filter(|name| name.ends_with("_c")).count(), 161);
    assert!(names.iter().all(|name| name.starts_with("MPI_")));
}

#[test]
fn forms_with_one_signature_are_not_marked_large() {
    // The `_c` forms of these two exist in the Forum's ABI header only, which gives the plain
    // ones an `int`; the standard's plain ones take MPI_Count already.
    let exceptions = ["MPI_Psend_init", "MPI_Precv_init"];
    for row in all() {
        let differs = row.params.iter().any(|param| param.c_small != param.c_large);
        assert_eq!(row.flags.large, differs || exceptions.contains(&row.name), "{}", row.name);
    }
}

#[test]
fn flags_are_read() {
    let flags = Flags::of(&["anytime", "large"]);
    assert!(flags.anytime && flags.large && !flags.tool && !flags.variadic);
}
