//! iWARP: RDMA over TCP, as four layers of headers, every field big-endian as its RFC says.
//!
//! | layer | RFC | file | what it adds |
//! |---|---|---|---|
//! | MPA | 5044, 6581 | [`mpa`] | start-up frames; message boundaries in a byte stream, markers, CRC |
//! | DDP | 5041 | [`ddp`] | where bytes go: a tagged buffer, or the next one of a queue |
//! | RDMAP | 5040, 7306 | [`rdmap`] | what they are: Send, Write, Read, Atomics, Terminate |
//!
//! Nothing here keeps state: `rnic::stack` does.

pub mod crc;
pub mod ddp;
pub mod mpa;
pub mod rdmap;

/// The `N` bytes at `at`, which the caller has found to be there.
pub(crate) fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("a field of its own length")
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(field(bytes, at))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(field(bytes, at))
}
