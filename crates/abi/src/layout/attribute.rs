//! Attributes whose values are addresses of constants that another ABI has other values for.

use std::sync::atomic::{AtomicI32, Ordering};

use mpi::attr::{self, Holder};
use mpi::handle::Handle;

use super::{Set, write};

/// The value of an attribute as the application gets it: those that are addresses of constants lead to others.
pub fn attribute(kind: Holder, keyval: Handle, value: usize) -> usize {
    static LAST_USED: AtomicI32 = AtomicI32::new(0);
    static FLAVORS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];
    static MODELS: [AtomicI32; 2] = [const { AtomicI32::new(0) }; 2];
    // The first of the constants in the standard ABI.
    let (set, cells, first): (Set, &[AtomicI32], i32) = match (kind, keyval.0) {
        (Holder::Comm, _) if keyval == attr::LASTUSEDCODE => (Set::Code, std::slice::from_ref(&LAST_USED), 0),
        (Holder::Win, 604) => (Set::Flavor, &FLAVORS, 311),
        (Holder::Win, 605) => (Set::Model, &MODELS, 321),
        _ => return value,
    };
    // SAFETY: the value of this key is the address of an `int` that lives as long as the object.
    let standard = unsafe { (value as *const i32).read() };
    let cell = &cells[if cells.len() == 1 { 0 } else { (standard - first) as usize }];
    cell.store(write(set, standard), Ordering::Relaxed);
    cell.as_ptr().addr()
}
