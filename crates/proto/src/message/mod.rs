//! Messages and the operations that wait for them: envelopes, matching, what is kept of each peer.

pub mod matching;
pub mod op;
pub(crate) mod peers;
mod sparse;
