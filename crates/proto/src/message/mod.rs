//! Messages and the operations that wait for them: envelopes, matching, what is kept of each peer.

pub(crate) mod fifo;
pub mod kept;
pub mod matching;
pub mod op;
pub(crate) mod peers;
pub(crate) mod rtrs;
mod sparse;
pub(crate) mod work;

use fabric::{Fault, Rank};

/// What a peer has sent that makes no sense.
#[cold]
pub(crate) fn malformed(from: Rank, what: wire::Malformed) -> Fault {
    Fault::Device(format!("malformed message from rank {from}: {}", what.0))
}
