//! Message protocols as state machines without I/O: matching, eager, rendezvous.
//!
//! [`Engine`] is one rank's end of all protocols. It touches the world only through its
//! [`fabric::Device`] (the port): whatever costs time is a call there, so that a simulator can
//! charge for it, and nothing calls back.
#![forbid(unsafe_code)]

pub mod channel;
pub mod choice;
mod engine;
pub mod epoch;
pub mod event;
pub mod memory;
pub mod message;
pub mod reliable;
mod rendezvous;

pub use choice::habits::Manner;
pub use choice::tuning::{Figures, Tuning};
pub use choice::way::Protocol;
pub use engine::frequent::{EagerBy, payback};
pub use engine::receive::InPlace;
pub use engine::send::Mode;
pub use engine::{Engine, Limits};
pub use epoch::window::Exposed;
pub use event::{Counters, Event};
pub use memory::rcache::CacheLimits;
pub use message::kept::FREE_MAX as MEMORY_MAX;
pub use message::matching::{Envelope, Want};
pub use message::op::{Failure, OpId, Outcome, PendingOp, Side};
pub use rendezvous::learner::Learner;
