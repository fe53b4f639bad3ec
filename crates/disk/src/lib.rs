//! Files of the operating system as MPI uses them: many processes, many small pieces, whole ranges locked.
//! Knows no rank and no datatype; an access is a list of [`Piece`]s in ascending order.

mod counter;
pub mod experience;
mod fault;
mod file;
pub mod phase;
mod rates;
pub mod round;
mod scatter;
mod sieve;
mod sys;

pub use counter::{Counter, Place};
pub use fault::{Fault, Result};
pub use file::{File, How, Locking, remove};
pub use rates::AccessCosts;
pub use sieve::{is_gathered, read, write, write_gathered};

/// In what order a file is read, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Nothing is known.
    Any,
    /// From the start to the end.
    Sequential,
    /// In no order: what lies behind a piece is not worth reading.
    Random,
}

/// A run of bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Where it begins, in bytes from the start of the file.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl Piece {
    /// The offset behind its last byte.
    pub fn end(self) -> u64 {
        self.offset + self.len
    }
}
