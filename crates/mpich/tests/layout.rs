//! Values of MPICH's ABI against those of the standard one: nothing is missing, and what goes there and back is the same.

mod constants;

use std::collections::{BTreeMap, BTreeSet};

use mpi::datatype::basic;
use mpi::handle::Handle;
use mpi::status::Status;
use tern_mpich::layout::mpich::constants::SETS;
use tern_mpich::layout::mpich::handles;
use tern_mpich::layout::mpich::names::NAMES;
use tern_mpich::layout::{self, Set};
use tern_mpich::object::{self, Object};

/// Kinds whose handles are integers: a file is a pointer.
fn kinds() -> impl Iterator<Item = Object> {
    Object::ALL.into_iter().filter(|kind| *kind != Object::File)
}

#[test]
fn constants_are_those_of_the_header() {
    constants::are_those_of_the_header(SETS);
}

#[test]
fn constants_go_there_and_back_and_others_are_no_constants() {
    constants::go_there_and_back(SETS, layout::read, layout::write);
    for rank in -4..4 {
        assert_eq!(layout::read(Set::Rank, layout::write(Set::Rank, rank)), rank);
        assert_eq!(layout::read(Set::Tag, layout::write(Set::Tag, rank)), rank);
    }
    // A level of the standard ABI that is none of MPICH's must not become one.
    assert_ne!(layout::read(Set::ThreadLevel, 4096), 4096);
    // RDWR and CREATE; a bit that means nothing is not lost.
    assert_eq!(layout::read(Set::Amode, 8 | 1), 32 | 2);
    assert_ne!(layout::read(Set::Amode, 8 | 1 << 20), 32);
    // Codes of the program, as far apart as before.
    assert_eq!(layout::write(Set::Code, 0x4000), 0x4000_0000);
    assert_eq!(layout::read(Set::Code, 0x4000_0007), 0x4007);
    let keyval = 0x2400_0000;
    assert_ne!(layout::write(Set::Keyval, keyval), keyval, "MPI_KEYVAL_INVALID");
    assert_eq!(layout::read(Set::Keyval, layout::write(Set::Keyval, keyval)), keyval);
}

#[test]
fn every_predefined_handle_has_a_value() {
    let names: BTreeMap<&str, u32> = NAMES.iter().copied().collect();
    let datatypes = basic::PREDEFINED.iter().map(|row| (row.name, row.handle));
    for (name, handle) in object::PREDEFINED.iter().copied().chain(datatypes) {
        if name == "MPI_FILE_NULL" {
            assert_eq!((layout::word(handle), handles::read_file(0)), (0, handle.0 as usize));
            continue;
        }
        let Some(&raw) = names.get(name) else { panic!("{name} has no value for programs of MPICH") };
        assert_eq!(layout::word(handle), raw as i32, "{name}");
        let kind = kinds().find(|kind| kind.is_predefined(handle) || kind.null().0 == handle);
        assert_eq!(handles::read(kind.expect("of a kind"), raw as i32), handle.0 as usize, "{name}");
    }
}

#[test]
fn handles_of_objects_are_never_taken_for_predefined_ones() {
    let names: BTreeSet<u32> = NAMES.iter().map(|row| row.1).collect();
    let near = names.iter().flat_map(|raw| [*raw, raw & 0x7fff_ffff, raw.wrapping_add(7)]);
    let some = near.chain([1 << 20, 0x7fff_ffff, 0x1234_5678]).filter(|raw| (1 << 20..1 << 31).contains(raw));
    for raw in some {
        let word = layout::word(Handle(raw));
        assert!(!names.contains(&(word as u32)) && word != 0, "{raw:#x}");
        for kind in kinds() {
            assert_eq!(handles::read(kind, word), raw as usize, "{raw:#x}");
        }
        assert_eq!(handles::read_file(word as u32 as usize), raw as usize, "{raw:#x}");
    }
    // What is no handle is none, and can still be read in a message.
    assert_eq!(handles::read(Object::Comm, 0x4c00_0999), 0x1_4c00_0999);
    assert_eq!(handles::read_file(0x1000), 0x1_0000_1000);
}

#[test]
fn statuses_keep_what_they_say() {
    for count in [0, 1, u32::MAX as u64, 1 << 40, (1 << 62) - 1] {
        for (source, tag) in [(-1, -2), (-3, -2), (3, 7)] {
            let mut status = Status::new(source, tag, count).with_error(15);
            status.set_cancelled(count == 1);
            let raw = layout::pack(status.to_ints());
            assert_eq!(Status::from_ints(layout::unpack(raw)), status);
            assert_eq!(raw[4], 14, "MPI_ERR_TRUNCATE");
        }
    }
    assert_eq!(layout::pack(Status::EMPTY.to_ints()), [0, 0, -2, -1, 0]);
}
