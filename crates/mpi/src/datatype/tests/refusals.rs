//! Arguments that the standard calls erroneous, and sizes beyond 64 bits.

use std::sync::Arc;

use crate::datatype::{Datatype, Distribution, Form, Order};
use crate::{Class, Handle, Result};

const SMALL: Form = Form::Small;
const LARGE: Form = Form::Large;

fn int() -> Arc<Datatype> {
    Datatype::of(Handle(0x209)).unwrap().clone()
}

#[track_caller]
fn refused(result: Result<Arc<Datatype>>, class: Class, part: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.class, class, "{error}");
    assert!(error.text.contains(part), "{error}");
}

#[test]
fn negative_lengths_name_the_argument() {
    let int = int();
    refused(Datatype::contiguous(-1, &int, SMALL), Class::COUNT, "`count` is -1");
    refused(Datatype::vector(-2, 1, 1, &int, SMALL), Class::COUNT, "`count` is -2");
    refused(Datatype::vector(2, -1, 1, &int, SMALL), Class::ARG, "`blocklength` is -1");
    refused(Datatype::hvector(2, -1, 1, &int, SMALL), Class::ARG, "`blocklength` is -1");
    refused(Datatype::indexed(&[1, -3], &[0, 0], &int, SMALL), Class::ARG, "`array_of_blocklengths` is -3");
    refused(Datatype::hindexed(&[-3], &[0], &int, SMALL), Class::ARG, "`array_of_blocklengths` is -3");
    refused(Datatype::indexed_block(-3, &[0], &int, SMALL), Class::ARG, "`blocklength` is -3");
    refused(Datatype::hindexed_block(-3, &[0], &int, SMALL), Class::ARG, "`blocklength` is -3");
    refused(Datatype::structure(&[-1], &[0], &[int], SMALL), Class::ARG, "`array_of_blocklengths` is -1");
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    let int = int();
    let huge = Datatype::contiguous(i64::MAX / 4, &int, LARGE).unwrap();
    assert_eq!(huge.size(), i64::MAX as u64 / 4 * 4);
    assert!(huge.is_contiguous());
    refused(Datatype::contiguous(2, &huge, LARGE), Class::VALUE_TOO_LARGE, "size of the datatype");
    refused(Datatype::contiguous(i64::MAX, &int, LARGE), Class::VALUE_TOO_LARGE, "beyond 64 bits");
    refused(Datatype::vector(2, 1, i64::MAX, &int, LARGE), Class::VALUE_TOO_LARGE, "displacement in bytes");
    refused(Datatype::hvector(4, 1, i64::MAX, &int, LARGE), Class::VALUE_TOO_LARGE, "bound of the datatype");
    let (low, high) = (i64::MIN / 2 - 8, i64::MAX / 2);
    refused(Datatype::hindexed(&[1, 1], &[low, high], &int, LARGE), Class::VALUE_TOO_LARGE, "extent");
    refused(Datatype::resized(&int, i64::MAX, 1, LARGE), Class::VALUE_TOO_LARGE, "upper bound");
    // Overlapping copies add up although their extent is small.
    refused(Datatype::hvector(3, i64::MAX / 8, 0, &int, LARGE), Class::VALUE_TOO_LARGE, "size");
    assert_eq!(huge.packed_size(2).unwrap_err().class, Class::COUNT);
    assert_eq!(Datatype::contiguous(1 << 40, &int, SMALL).unwrap_err().class, Class::COUNT);
}

#[test]
fn subarrays_lie_inside_their_array() {
    let int = int();
    let make = |sizes: &[i64], sub: &[i64], starts: &[i64]| {
        Datatype::subarray(sizes, sub, starts, Order::C, &int, SMALL)
    };
    refused(make(&[], &[], &[]), Class::ARG, "`ndims`");
    refused(make(&[0], &[0], &[0]), Class::ARG, "dimension 0 is 0");
    refused(make(&[4, 4], &[4, 5], &[0, 0]), Class::ARG, "`array_of_subsizes[1]` is 5");
    refused(make(&[4, 4], &[0, 4], &[0, 0]), Class::ARG, "`array_of_subsizes[0]` is 0");
    refused(make(&[4, 4], &[2, 2], &[3, 0]), Class::ARG, "`array_of_starts[0]` is 3, must be 0 to 2");
    refused(make(&[4, 4], &[2, 2], &[0, -1]), Class::ARG, "`array_of_starts[1]` is -1");
    assert_eq!(Order::from_abi(3).unwrap_err().class, Class::ARG);
}

#[test]
fn process_grids_fit_the_job_and_cover_the_array() {
    use Distribution::{Block, Cyclic, None};
    let int = int();
    let make = |size, rank, distribution, darg, psize| {
        Datatype::darray(size, rank, &[10], &[distribution], &[darg], &[psize], Order::C, &int, SMALL)
    };
    refused(make(3, 0, Block, 19, 2), Class::ARG, "`size` is 3");
    refused(make(2, 2, Block, 19, 2), Class::ARG, "`rank` is 2");
    refused(make(2, -1, Block, 19, 2), Class::ARG, "`rank` is -1");
    refused(make(2, 0, Block, 4, 2), Class::ARG, "do not cover 10");
    refused(make(2, 0, Cyclic, 0, 2), Class::ARG, "`array_of_dargs[0]` is 0");
    refused(make(2, 0, None, 19, 2), Class::ARG, "is not distributed");
    refused(make(0, 0, Block, 19, 0), Class::ARG, "`array_of_psizes[0]` is 0");
    assert_eq!(Distribution::from_abi(15).unwrap_err().class, Class::ARG);
}

#[test]
fn elements_of_nothing_cannot_be_set() {
    let empty = Datatype::contiguous(0, &int(), SMALL).unwrap();
    assert_eq!((empty.size(), empty.extent(), empty.elements()), (0, 0, 0));
    assert_eq!((empty.items_in(0), empty.items_in(4), empty.elements_in(0)), (Some(0), None, Some(0)));
    assert_eq!(empty.bytes_of(0), Ok(0));
    assert_eq!(empty.bytes_of(3).unwrap_err().class, Class::COUNT);
    assert!(empty.runs(0x1000, 5, 0).next().is_none());
}

#[test]
fn messages_match_by_machine_type() {
    let of = |handle| Datatype::of(Handle(handle)).unwrap().clone();
    let (int, double, byte, pair) = (of(0x209), of(0x214), of(0x247), of(0x22b));
    assert!(int.matches(4, &of(0x250), 4) && int.matches(4, &pair, 2));
    assert!(!int.matches(2, &double, 1) && !int.matches(2, &int, 3));
    assert!(double.matches(2, &byte, 16) && !double.matches(2, &byte, 15));
    let mixed = Datatype::structure(&[1, 1], &[0, 8], &[int.clone(), double.clone()], SMALL).unwrap();
    let swapped = Datatype::structure(&[1, 1], &[8, 0], &[int, double.clone()], SMALL).unwrap();
    assert!(mixed.matches(3, &swapped, 3), "displacements are not part of the signature");
    assert_eq!((mixed.basic(), double.basic()), (None, Some(crate::datatype::Basic::F64)));
}
