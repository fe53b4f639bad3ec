//! `libibverbs.so.1` and `librdmacm.so.1`: the software adapter for programs that are written to verbs, without a kernel module.
//!
//! ```text
//! program ─▶ exports/ (C functions, rdma-core's structures in `verbs_layout`) ─▶ adapter/ ─▶ rnic::{stack, driver::Link}
//!                                                                   ▲
//!                                            thread.rs, which looks where the program does not
//! ```
//!
//! Each interface that is up is a device, `tern_` and its name, of one port, which looks like RoCE: its link layer is
//! Ethernet, its GID the address of the interface. Reliable connections are iWARP over TCP, datagrams are UDP
//! (`docs/verbs.md`).
#![deny(unsafe_code)]

// Under loom only what it checks is built: its atomics no static can hold.
#[cfg(not(loom))]
pub mod adapter;
#[cfg(not(loom))]
#[allow(unsafe_code)]
pub mod exports;
#[cfg(not(loom))]
pub mod interfaces;
pub mod place;
#[cfg(not(loom))]
pub mod thread;

#[cfg(not(loom))]
pub use verbs_layout::layout;

#[cfg(not(loom))]
use adapter::Adapter;
#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The adapter of this process.
#[cfg(not(loom))]
pub fn adapter() -> std::io::Result<MutexGuard<'static, Adapter>> {
    static ADAPTER: OnceLock<Mutex<Adapter>> = OnceLock::new();
    let adapter = match ADAPTER.get() {
        Some(adapter) => adapter,
        None => {
            let fresh = Mutex::new(Adapter::new()?);
            ADAPTER.get_or_init(|| fresh)
        }
    };
    Ok(adapter.lock().unwrap_or_else(PoisonError::into_inner))
}
