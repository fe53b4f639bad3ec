//! Values of Open MPI's ABI against those of the standard one: nothing is missing, and what goes there and back is the same.

#[path = "../../mpich/tests/constants/mod.rs"]
mod constants;

use std::collections::BTreeSet;

use mpi::datatype::basic;
use mpi::handle::Handle;
use mpi::status::Status;
use tern_openmpi::kind::tool;
use tern_openmpi::layout::openmpi::constants::SETS;
use tern_openmpi::layout::openmpi::handles;
use tern_openmpi::layout::openmpi::names::{self, NAMES};
use tern_openmpi::layout::{self, Set};
use tern_openmpi::object::{self, Object};

/// All predefined handles of the library.
fn predefined() -> impl Iterator<Item = (&'static str, Handle)> {
    let datatypes = basic::PREDEFINED.iter().map(|row| (row.name, row.handle));
    object::PREDEFINED.iter().copied().chain(datatypes)
}

#[test]
fn constants_are_those_of_the_header() {
    constants::are_those_of_the_header(SETS);
}

#[test]
fn constants_go_there_and_back_and_others_are_no_constants() {
    constants::go_there_and_back(SETS, layout::read, layout::write);
    let sets: Vec<Set> = SETS.iter().map(|set| set.0).collect();
    let special = [Set::Rank, Set::Tag];
    assert!(Set::ALL.iter().all(|set| sets.contains(set) || special.contains(set)));
    for rank in -4..4 {
        assert_eq!(layout::read(Set::Rank, layout::write(Set::Rank, rank)), rank);
        assert_eq!(layout::read(Set::Tag, layout::write(Set::Tag, rank)), rank);
    }
    // MPI_ANY_SOURCE, MPI_PROC_NULL, MPI_ROOT; MPI_ANY_TAG.
    assert_eq!([-1, -2, -4].map(|rank| layout::read(Set::Rank, rank)), [-1, -3, -4]);
    assert_eq!(layout::read(Set::Tag, -1), -2);
    // A level of the standard ABI that is none of Open MPI's must not become one.
    assert_ne!(layout::read(Set::ThreadLevel, 4096), 4096);
    // Codes that stand for no class are what they are: those with a text of their own, and those of a program.
    for code in [0x3000, 0x3fbf, 0x4000, 0x4007] {
        assert_eq!((layout::write(Set::Code, code), layout::read(Set::Code, code)), (code, code));
    }
    // Keys of a program are what they are.
    let keyval = Handle::FIRST_DYNAMIC as i32;
    assert_eq!((layout::write(Set::Keyval, keyval), layout::read(Set::Keyval, keyval)), (keyval, keyval));
}

#[test]
fn every_predefined_handle_has_an_address_of_its_own() {
    let mut addresses = BTreeSet::new();
    for (name, handle) in predefined() {
        let raw = layout::word(handle);
        assert!(NAMES.iter().any(|row| row.0 == name), "{name} has no object");
        assert!(raw & 15 == 0 && raw >> 63 == 0 && addresses.insert(raw), "{name} is {raw:#x}");
        assert_eq!(handles::read(raw), handle.0 as usize, "{name}");
        // What lies between objects is none.
        assert_eq!(handles::read(raw + 8), 1 << 63 | (raw + 8), "behind {name}");
    }
    assert_eq!(addresses.len(), NAMES.len());
}

#[test]
fn handles_of_objects_are_no_addresses() {
    for handle in [Handle::FIRST_DYNAMIC, 0x12_3456, i32::MAX as u32] {
        let raw = layout::word(Handle(handle));
        assert_eq!((raw >> 63, handles::read(raw)), (1, handle as usize), "{handle:#x}");
        for kind in Object::ALL {
            assert_eq!((handles::c2f(kind, raw), handles::f2c(kind, handle as i32)), (handle as i32, raw));
        }
    }
    assert_eq!(handles::read(0), 0, "NULL");
    // The number of a predefined handle in the standard ABI is no handle here.
    for raw in [0x101, 1 << 63 | 0x101, usize::MAX] {
        assert!(handles::read(raw) > u32::MAX as usize, "{raw:#x}");
    }
}

#[test]
fn numbers_of_fortran_go_there_and_back() {
    for (name, handle) in predefined() {
        let kind = Object::ALL.into_iter().find(|kind| kind.is_predefined(handle) || kind.null().0 == handle);
        let (kind, raw) = (kind.expect("of a kind"), layout::word(handle));
        assert_eq!(handles::f2c(kind, handles::c2f(kind, raw)), raw, "{name}");
    }
    assert_eq!(handles::c2f(Object::Comm, layout::word(Handle(0x101))), 0, "MPI_COMM_WORLD");
    // A function gets it as it wants it.
    let (world, marked) = (Handle(0x101), names::FORTRAN | 0x1230);
    assert_eq!(layout::handed(0x1230, world), (0x1230, layout::word(world)));
    assert_eq!((layout::handed(marked, world), layout::handed(marked, Handle(0x209)).1), ((0x1230, 0), 39));
    // What is none, or of another kind.
    assert_eq!((handles::c2f(Object::Comm, 0x1000), handles::f2c(Object::Comm, 99)), (-1, 0));
    assert_eq!(handles::c2f(Object::Comm, layout::word(Handle(0x109))), -1, "MPI_GROUP_EMPTY");
}

#[test]
fn statuses_keep_what_they_say() {
    for count in [0, 1, u32::MAX as u64, 1 << 40, (1 << 62) - 1] {
        for (source, tag) in [(-1, -2), (-3, -2), (3, 7)] {
            let mut status = Status::new(source, tag, count).with_error(59);
            status.set_cancelled(count == 1);
            let raw = layout::pack(status.to_ints());
            assert_eq!(Status::from_ints(layout::unpack(raw)), status);
            assert_eq!(raw[2], 79, "MPI_ERR_VALUE_TOO_LARGE");
            assert_eq!(raw[3..], [(count == 1).into(), count as i32, (count >> 32) as i32]);
        }
    }
    assert_eq!(layout::pack(Status::EMPTY.to_ints()), [-1, -1, 0, 0, 0, 0]);
}

#[test]
fn all_variables_at_once_are_named_by_another_value() {
    assert_eq!(tool::handle(usize::MAX), Handle(mpi::tools::ALL_HANDLES as u32));
}
