//! Predefined handles of Open MPI's ABI, and handles from and to those that the library works with.

use std::sync::LazyLock;

use mpi::handle::Handle;

use super::names::{NAMES, PLACES, Place};
use crate::layout::predefined::{END, standard};
use crate::object::Object;

/// Set in handles that are no addresses: no address of a process has it.
const NUMBER: usize = 1 << 63;

/// The handles of the library that belong to [`NAMES`].
const STANDARD: [u32; NAMES.len()] = {
    let (mut table, mut i) = ([0; NAMES.len()], 0);
    while i < NAMES.len() {
        table[i] = standard(NAMES[i].0);
        i += 1;
    }
    table
};

/// In C, by predefined handle of the library. The loader fills it in.
static TO_C: [Option<&Place>; END] = {
    let (mut table, mut i) = ([None; END], 0);
    while i < NAMES.len() {
        table[STANDARD[i] as usize] = Some(PLACES[i]);
        i += 1;
    }
    table
};

/// Predefined handles of the library by address.
static FROM_C: LazyLock<Addresses> = LazyLock::new(|| {
    let mut addresses = Addresses([(0, 0); SLOTS]);
    for (place, handle) in PLACES.iter().zip(STANDARD) {
        addresses.insert(std::ptr::from_ref(*place).addr(), handle);
    }
    addresses
});

/// Some four times as many as there are addresses.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = (4 * NAMES.len()).ilog2() + 1;

/// A hash table with open addressing: address and handle, no address where there is nothing.
struct Addresses([(usize, u32); SLOTS]);

impl Addresses {
    #[inline]
    fn slot(address: usize) -> usize {
        // Fibonacci hashing (Knuth, TAOCP volume 3, section 6.4) of what differs between aligned addresses.
        let place = address / align_of::<Place>();
        (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (u64::BITS - SLOT_BITS)
    }

    fn insert(&mut self, address: usize, handle: u32) {
        let mut slot = Self::slot(address);
        while self.0[slot].0 != 0 {
            slot = (slot + 1) % SLOTS;
        }
        self.0[slot] = (address, handle);
    }

    #[inline]
    fn find(&self, address: usize) -> Option<u32> {
        let mut slot = Self::slot(address);
        loop {
            match self.0[slot] {
                (0, _) => return None,
                (found, handle) if found == address => return Some(handle),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }
}

/// A handle as C has it.
#[inline]
pub fn write(handle: Handle) -> usize {
    match TO_C.get(handle.0 as usize) {
        Some(Some(place)) => std::ptr::from_ref(*place).addr(),
        _ => NUMBER | handle.0 as usize,
    }
}

/// The handle that C has. What no handle can be is beyond 32 bits, with the value from C below; NULL stays 0.
#[inline]
pub fn read(raw: usize) -> usize {
    if raw & NUMBER != 0 {
        let number = raw & !NUMBER;
        return if number < END || number > i32::MAX as usize { raw } else { number };
    }
    match FROM_C.find(raw) {
        Some(handle) => handle as usize,
        None if raw == 0 => 0,
        None => NUMBER | raw,
    }
}

/// The number in Fortran of a handle of the library.
pub fn number(handle: Handle) -> i32 {
    match handle.is_predefined() {
        true => STANDARD.iter().position(|known| *known == handle.0).map_or(-1, |i| NAMES[i].2),
        false => handle.0 as i32,
    }
}

/// The number in Fortran of the handle that C has; -1 of what is none.
pub fn c2f(object: Object, raw: usize) -> i32 {
    match u32::try_from(read(raw)).map(Handle) {
        Ok(handle) if !handle.is_predefined() || is_of(object, handle) => number(handle),
        _ => -1,
    }
}

/// The handle that has this number in Fortran; NULL if there is none.
pub fn f2c(object: Object, number: i32) -> usize {
    if number >= Handle::FIRST_DYNAMIC as i32 {
        return write(Handle(number as u32));
    }
    let row = (0..NAMES.len()).find(|i| NAMES[*i].2 == number && is_of(object, Handle(STANDARD[*i])));
    row.map_or(0, |i| write(Handle(STANDARD[i])))
}

fn is_of(object: Object, handle: Handle) -> bool {
    object.is_predefined(handle) || object.null().0 == handle
}
