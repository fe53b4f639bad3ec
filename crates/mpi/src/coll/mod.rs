//! Collectives (MPI 5.0 chapter 6) as programs for one rank.
//!
//! [`Call`] describes a call, [`cost`] chooses among the algorithms, [`compile()`] writes the
//! [`schedule`] that the transport then drives. The algorithms are written in [`build`].
pub mod account;
mod across;
mod allgather;
mod alltoall;
pub mod args;
mod barrier;
mod bcast;
pub mod blocks;
pub mod build;
mod combine;
pub mod compile;
pub mod cost;
mod gather;
pub mod inter;
mod io;
pub mod levels;
mod linear;
pub mod link;
pub mod neighbor;
pub mod overlap;
pub mod program;
pub mod rates;
mod reduce;
mod scan;
pub mod schedule;
mod scratch;
pub mod sequel;
pub mod state;
pub mod tag;
mod two_level;
pub mod ty;
mod uneven;

pub use account::Account;
pub use blocks::{Ints, laid_out};
pub use compile::{Call, Side, compile};
pub use cost::{Algorithm, Forced, Problem};
pub use inter::Across;
pub use levels::{Levels, Spread};
pub use link::Link;
pub use rates::{Agreed, Cores, Rates, Tariff, agreed, agreement};
pub use schedule::{Data, Io, OpId, Progress, Schedule, UserReduce};
pub use state::{Amount, Asked, Given, Key, Known, Listed, Lists, State};
pub use tag::{Collective, Tag, notice, noticed};
pub use ty::Type;

#[cfg(test)]
mod tests;
