//! A device in virtual time: the library's own code on a modelled cluster, deterministic from a
//! seed.
//!
//! Every rank is a coroutine of one thread. It runs until it looks at something that others may
//! have changed (a completion, a word of memory); then all that comes before its own time happens
//! first. So ranks may run ahead while they compute, and yet see exactly what is to be seen.
#![forbid(unsafe_code)]

mod adapter;
mod carry;
mod clock;
pub mod cluster;
mod copier;
mod fault;
mod job;
mod keys;
mod memory;
mod message;
mod net;
mod nic;
mod onesided;
mod queue;
mod random;
pub mod rank;
mod regions;
mod report;
mod seat;
mod shared;
mod trace;
mod window;
mod wires;

pub use clock::Nap;
pub use cluster::Cluster;
pub use fault::Faults;
pub use job::{Job, run};
pub use keys::nearest;
pub use nic::Nic;
pub use onesided::{Making, Win};
pub use rank::{Rank, Request, Setup};
pub use report::{Counters, Outcome, Report};
pub use trace::Trace;
pub use window::Window;
pub use wires::{Wires, WiresNap};
