//! Predefined handles of MPICH's ABI, and handles from and to those that the library works with.

use mpi::handle::Handle;

use super::names::NAMES;
use crate::layout::predefined::{END, standard};
use crate::object::Object;

/// Set in handles that are not predefined.
const DYNAMIC: u32 = 1 << 31;
/// Datatypes that have that bit nevertheless, and how many there are. A handle of the library that would look like one
/// of them takes the place of one whose generation is 0, which is never given out.
const PAIRS: u32 = 0x8c00_0000;
const PAIR_COUNT: u32 = 5;

/// Positions in [`FROM_C`]: four bits for the kind of object, one for what is predefined, eight for which.
const POSITIONS: usize = 1 << 13;

const fn position(raw: u32) -> usize {
    ((raw >> 26 & 0xf) << 9 | (raw >> 30 & 1) << 8 | raw & 0xff) as usize
}

/// In C, by predefined handle of the library; 0 where there is none.
static TO_C: [u32; END] = {
    let (mut table, mut i) = ([0; END], 0);
    while i < NAMES.len() {
        table[standard(NAMES[i].0) as usize] = NAMES[i].1;
        i += 1;
    }
    table
};

/// Predefined handles of the library by [`position`], 0 where there is none. Of null handles that are the same in C
/// the first.
static FROM_C: [u16; POSITIONS] = {
    let (mut table, mut i) = ([0; POSITIONS], 0);
    while i < NAMES.len() {
        let at = position(NAMES[i].1);
        if table[at] == 0 && NAMES[i].1 & DYNAMIC == 0 {
            table[at] = standard(NAMES[i].0) as u16;
        }
        i += 1;
    }
    table
};

/// The five datatypes of [`PAIRS`].
static PAIR_TYPES: [u16; PAIR_COUNT as usize] = {
    let (mut table, mut i) = ([0; PAIR_COUNT as usize], 0);
    while i < NAMES.len() {
        if NAMES[i].1 & DYNAMIC != 0 {
            table[(NAMES[i].1 - PAIRS) as usize] = standard(NAMES[i].0) as u16;
        }
        i += 1;
    }
    table
};

/// A handle as C has it.
#[inline]
pub fn write(handle: Handle) -> i32 {
    let raw = match handle.0 {
        0x118 => 0, // MPI_FILE_NULL
        predefined if (predefined as usize) < END => TO_C[predefined as usize],
        dynamic => match dynamic | DYNAMIC {
            pair if pair >= PAIRS && pair - PAIRS < PAIR_COUNT => (pair - PAIRS) | DYNAMIC,
            other => other,
        },
    };
    raw as i32
}

/// The handle that C has for an object of this kind, not a file. What no handle can be is beyond 32 bits, with the value from C below.
#[inline]
pub fn read(object: Object, raw: i32) -> usize {
    let raw = raw as u32;
    if raw & DYNAMIC != 0 {
        return dynamic(raw);
    }
    let found = FROM_C[position(raw)];
    if found != 0 && TO_C[found as usize] == raw {
        match object {
            Object::Message if found == 0x180 => Object::Message.null().0.0 as usize,
            _ => found.into(),
        }
    } else {
        1 << 32 | raw as usize
    }
}

#[inline]
fn dynamic(raw: u32) -> usize {
    match raw {
        PAIRS.. if raw < PAIRS + PAIR_COUNT => PAIR_TYPES[(raw - PAIRS) as usize].into(),
        _ if raw < DYNAMIC + PAIR_COUNT => (raw - DYNAMIC + (PAIRS - DYNAMIC)) as usize,
        _ => (raw & !DYNAMIC) as usize,
    }
}

/// As [`read`] of a file, which is a pointer.
#[inline]
pub fn read_file(raw: usize) -> usize {
    match u32::try_from(raw) {
        Ok(0) => Object::File.null().0.0 as usize,
        Ok(raw) if raw & DYNAMIC != 0 => dynamic(raw),
        _ => 1 << 32 | raw,
    }
}
