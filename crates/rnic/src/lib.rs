//! The software RDMA adapter for plain Ethernet.
//!
//! [`stack`] is its protocol: state machines over byte slices, without sockets and without a clock. [`driver`] is the
//! sockets and the memory around it, which make [`fabric::Verbs`] of it.
#![deny(unsafe_code)]

pub mod driver;
pub mod stack;

pub use driver::{Asker, Card, Integrity, Listening, Port, Rnic, Secret};
