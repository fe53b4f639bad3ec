//! Predefined handles of the standard ABI by name, for the tables of other ABIs.

use mpi::datatype::basic;

use crate::object::PREDEFINED;

/// Where the predefined handles of the library end.
pub const END: usize = 0x400;

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The handle of this name in the standard ABI.
pub const fn standard(name: &str) -> u32 {
    let mut i = 0;
    while i < PREDEFINED.len() {
        if same(PREDEFINED[i].0, name) {
            return PREDEFINED[i].1.0;
        }
        i += 1;
    }
    i = 0;
    while i < basic::PREDEFINED.len() {
        if same(basic::PREDEFINED[i].name, name) {
            return basic::PREDEFINED[i].handle.0;
        }
        i += 1;
    }
    panic!("a name that the library does not have")
}
