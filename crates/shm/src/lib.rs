//! Device between ranks of one host.
//!
//! Frames go through a ring of 64 cells per ordered pair of ranks, a cache line each, with small
//! payloads inline and larger ones in a block of the sender's arena. Remote access is the kernel's
//! `process_vm_readv`/`writev` (one copy, no registration). All ranks map one segment, which has
//! a random name for the moment it takes to map it and none afterwards.

// Under loom only what it checks is built: the rest lays atomics over mapped memory, which loom's
// own, larger ones do not fit.
#[cfg(not(loom))]
mod ability;
#[cfg(not(loom))]
mod bell;
#[cfg(not(loom))]
mod berth;
#[cfg(not(loom))]
mod bytes;
#[cfg(not(loom))]
mod cma;
#[cfg(not(loom))]
mod device;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod lending;
#[cfg(not(loom))]
mod link;
#[cfg(not(loom))]
mod loads;
#[cfg_attr(loom, allow(dead_code))]
mod nap;
#[cfg_attr(loom, allow(dead_code))]
mod openings;
#[cfg_attr(loom, allow(dead_code))]
pub mod owner;
#[cfg_attr(loom, allow(dead_code))]
mod polling;
#[cfg(not(loom))]
mod pool;
#[cfg(not(loom))]
mod retained;
mod ring;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod shares;
#[cfg_attr(loom, allow(dead_code))]
pub mod standby;
#[cfg(not(loom))]
mod stores;
mod sync;
#[cfg_attr(loom, allow(dead_code))]
mod turns;
#[cfg(not(loom))]
pub mod watched;
#[cfg(not(loom))]
mod window;

#[cfg(not(loom))]
pub use ability::{Ability, ability, describe};
#[cfg(not(loom))]
pub use device::ShmNap;
#[cfg(not(loom))]
pub use device::{LoadWay, Options, Shm, StoreWay};
#[cfg(not(loom))]
pub use nap::barrier_within;
#[cfg(not(loom))]
pub use window::WindowMemory;

/// Whether [`barrier_within`] works here.
#[cfg(not(loom))]
pub fn has_barrier() -> bool {
    nap::register_barrier()
}
