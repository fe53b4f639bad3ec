//! Collectives on intracommunicators (MPI 5.0 chapter 6) as programs for one rank.
//!
//! [`Call`] describes a call, [`cost`] chooses among the algorithms, [`compile()`] writes the
//! [`schedule`] that the transport then drives. The algorithms are written in [`build`].
mod allgather;
mod alltoall;
pub mod args;
mod barrier;
mod bcast;
pub mod blocks;
pub mod build;
pub mod compile;
pub mod cost;
mod gather;
mod linear;
pub mod overlap;
mod reduce;
mod scan;
pub mod schedule;
pub mod state;
pub mod tag;
pub mod ty;

pub use blocks::Ints;
pub use compile::{Call, Side, compile};
pub use cost::{Algorithm, Facts, Forced, LinkCosts, agreed, agreement};
pub use schedule::{Data, Io, OpId, Progress, Schedule, UserReduce};
pub use state::{Amount, Asked, Given, Key, Known, Listed, Lists, State};
pub use tag::{Kind, Tag};
pub use ty::Type;

#[cfg(test)]
mod tests;
