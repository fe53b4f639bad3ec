//! The software RDMA adapter for plain Ethernet.
//!
//! [`stack`] is its protocol: state machines over byte slices, without sockets and without a clock.
#![forbid(unsafe_code)]

pub mod stack;
