//! Derived datatypes with any arguments: built or refused, and what is packed is unpacked.

use std::sync::Arc;

use mpi::datatype::{Datatype, Form};
use mpi::handle::Handle;

/// Longest memory that a datatype may span to be tried on data.
const SPAN_MAX: i128 = 1 << 14;

/// Builds datatypes from `input`, each from those before it.
pub fn decode(input: &[u8]) {
    let mut input = input;
    let mut types: Vec<Arc<Datatype>> =
        [0x203, 0x209, 0x20a].iter().filter_map(|raw| Datatype::of(Handle(*raw)).cloned()).collect();
    while types.len() < 12
        && let Some(which) = number(&mut input)
    {
        let old = types[which.unsigned_abs() as usize / 8 % types.len()].clone();
        let mut next = || number(&mut input).unwrap_or(0);
        let (a, b, c, d) = (next(), next(), next(), next());
        let built = match which.rem_euclid(8) {
            0 => Datatype::contiguous(a, &old, Form::Large),
            1 => Datatype::vector(a, b, c, &old, Form::Large),
            2 => Datatype::hvector(a, b, c, &old, Form::Large),
            3 => Datatype::indexed(&[a, b], &[c, d], &old, Form::Large),
            4 => Datatype::hindexed(&[a, b], &[c, d], &old, Form::Large),
            5 => Datatype::hindexed_block(a, &[b, c, d], &old, Form::Large),
            6 => Datatype::structure(&[a, b], &[c, d], &[old.clone(), types[0].clone()], Form::Large),
            _ => Datatype::resized(&old, a, b, Form::Large),
        };
        let Ok(built) = built else { continue };
        there_and_back(&built);
        types.push(built);
    }
}

/// Mostly small numbers, now and then one of any size.
fn number(input: &mut &[u8]) -> Option<i64> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    match (first, input.split_first_chunk::<8>()) {
        (0x80, Some((bytes, rest))) => {
            *input = rest;
            Some(i64::from_le_bytes(*bytes))
        }
        _ => Some(i64::from(*first as i8)),
    }
}

fn there_and_back(ty: &Datatype) {
    let (lb, extent, count) = (i128::from(ty.true_lb()), i128::from(ty.true_extent()), 2u64);
    assert!(extent >= 0, "true extent {extent}");
    // From the lowest byte of the two items to the highest.
    let step = i128::from(ty.extent());
    let (low, high) = (lb.min(lb + step), (lb + extent).max(lb + extent + step));
    if high - low > SPAN_MAX || ty.size() > SPAN_MAX as u64 {
        return;
    }
    let Ok(packed) = ty.packed_size(count) else { return };
    let memory: Vec<u8> = (0..(high - low) as usize + 1).map(|i| i as u8).collect();
    let base = (memory.as_ptr() as usize as i128 - low) as usize;
    let mut first = vec![0; packed as usize];
    assert_eq!(ty.pack(base, count, 0, &mut first), first.len());
    let mut copy = vec![0u8; memory.len()];
    let base = (copy.as_mut_ptr() as usize as i128 - low) as usize;
    assert_eq!(ty.unpack(base, count, 0, &first), first.len());
    let mut again = vec![0; first.len()];
    ty.pack(base, count, 0, &mut again);
    // Entries may overlap: the memory then holds whichever was written last, so only a second
    // round must agree with itself.
    ty.unpack(base, count, 0, &again);
    let mut third = vec![0; first.len()];
    ty.pack(base, count, 0, &mut third);
    assert_eq!(again, third);
}
