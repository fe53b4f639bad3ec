//! PMI-1: how ranks of a job find each other through whatever started them.
//!
//! The protocol is lines of `key=value` words: a rank puts pairs into the key-value space of the
//! job, enters a barrier, and gets what the others have put.
pub mod client;
pub mod environment;
pub mod line;
pub mod secret;
pub mod server;
pub mod value;
