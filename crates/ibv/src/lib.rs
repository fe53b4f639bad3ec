//! RDMA adapters of the system as a device: [`fabric::Verbs`] over `libibverbs`, which is loaded while the program runs and
//! is no part of the build.
//!
//! ```text
//! abi ─▶ Opened::open ─▶ card ─▶ (launcher) ─▶ Opened::join ─▶ Ibv: fabric::Verbs
//!          find: which port, which GID           contact: how far this rank is with a peer; hello: how two get there
//!          rail: a port with its queues          ends: what completions say; sleep: what ends a sleep
//!                                                watch: whether who does not answer is there
//!                                                iwarp: how far with peers of an adapter without datagrams
//!          objects, library: libibverbs, cm: librdmacm, with all that is unsafe
//! ```
//!
//! Each peer that something is sent to gets a queue pair (RC); who that is, two ranks tell each other by datagrams of a queue
//! pair (UD) that every rank has; iWARP has none, and is connected by librdmacm. Receive buffers are one shared queue (SRQ) per adapter. `docs/ibv.md`.
#![deny(unsafe_code)]

pub mod card;
mod cm;
mod contact;
mod device;
mod ends;
mod find;
mod getting;
pub mod hello;
mod iwarp;
mod library;
mod objects;
mod rail;
mod sleep;
mod verbs;
mod watch;

pub use card::{agree, door, without};
pub use device::{Ibv, Opened};
pub use find::{Choice, Listed, describe, has_datagrams, listed, taken};
pub use rail::Traffic;
