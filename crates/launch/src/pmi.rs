//! How ranks of a job find each other through whatever started them.
//!
//! A rank puts pairs into the key-value space of the job, enters a barrier, and gets what the others have put. Launchers
//! speak PMI-1, lines of `key=value` words, or PMI-2, the same with lengths before, or have a library for what they
//! speak, PMIx.
mod channel;
pub mod client;
pub mod environment;
pub mod line;
mod one;
mod pmix;
pub mod secret;
pub mod server;
pub mod share;
pub mod spawn;
pub mod two;
pub mod value;
