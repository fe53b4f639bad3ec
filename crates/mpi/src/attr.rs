//! Attribute caching (MPI 5.0 section 7.7).

use crate::handle::{Handle, Slab};

/// The kind of object a key value is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Communicators.
    Comm,
    /// Datatypes.
    Type,
    /// Windows.
    Win,
}

/// The attributes of one object, in the order in which they were set.
#[derive(Debug, Default)]
pub struct AttrMap {
    attributes: Vec<Attribute>,
}

#[derive(Clone, Copy, Debug)]
struct Attribute {
    keyval: Handle,
    value: usize,
    serial: u64,
}

/// All key values of one rank.
#[derive(Debug, Default)]
pub struct Keyvals(Slab<Keyval>);

#[derive(Debug)]
struct Keyval {
    kind: Kind,
    copy: usize,
    delete: usize,
    extra_state: usize,
}
