//! Device between ranks of one host.
//!
//! Frames go through a ring of 64 cells per ordered pair of ranks, a cache line each, with small
//! payloads inline and larger ones in a slot of the sender's pool. Remote access is the kernel's
//! `process_vm_readv`/`writev` (one copy, no registration). All ranks map one segment, which has
//! a random name for the moment it takes to map it and none afterwards.

mod ability;
mod bytes;
mod cma;
mod device;
mod layout;
mod link;
mod nap;
mod pool;
mod ring;
mod segment;
mod sync;

pub use ability::describe;
pub use device::{Options, Shm};
pub use nap::ShmNap;
