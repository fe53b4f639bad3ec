//! Every byte that leaves a process: message headers and the start-up blob.
//!
//! Fields are fixed-width and little-endian, those of [`iwarp`] and [`datagram`] big-endian as RFCs want them. Ids travel, never pointers that would be followed:
//! an address is only ever handed to a device's remote access, which checks it.
#![forbid(unsafe_code)]

pub mod datagram;
pub mod epoch;
pub mod head;
pub mod iwarp;
pub mod long;
pub mod packet;
pub mod slot;

/// A message that does not follow the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed(
    /// What is wrong with it.
    pub String,
);
