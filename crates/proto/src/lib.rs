//! Message protocols as state machines without I/O: matching, eager, rendezvous.
//!
//! [`Engine`] is one rank's end of all protocols. It touches the world only through its
//! [`fabric::Device`] (the port): whatever costs time is a call there, so that a simulator can
//! charge for it, and nothing calls back.
#![forbid(unsafe_code)]

mod cancel;
pub mod channel;
pub mod choose;
pub mod cost;
mod decide;
mod engine;
pub mod event;
pub mod explain;
pub mod facts;
pub mod frequent;
mod idle;
pub mod journal;
pub mod limit;
pub mod long;
pub mod matching;
pub mod op;
mod peers;
pub mod rcache;
mod reading;
mod receive;
mod recent;
pub mod reuse;
mod send;
mod sparse;
mod speculate;
pub mod staging;
mod threads;
mod transfer;
mod trial;

pub use decide::Mind;
pub use engine::{Engine, Limits};
pub use event::{Counters, Event};
pub use frequent::EagerBy;
pub use long::Protocol;
pub use long::tuning::{Facts, Tuning};
pub use matching::{Envelope, Want};
pub use op::{Failure, OpId, Outcome, PendingOp, Side};
pub use rcache::CacheLimits;
pub use send::Mode;
