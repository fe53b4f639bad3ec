//! How two ranks tell each other the numbers of their queue pairs: a datagram of 36 bytes.
//!
//! ```text
//! magic 4 · what 1 · reads 1 · zero 2 · from 4 · turn 4 · number 4 · first packet 4 · who 8 · zero 4
//! ```
//!
//! `who` is what a rank of the job alone can know of the two (`rnic::driver::datagram_id`). Numbers are big-endian.

use rnic::driver::{Secret, datagram_id};

/// Its length in bytes.
pub const LEN: usize = 36;
const MAGIC: [u8; 4] = *b"TIB1";

/// What is said of one queue pair to its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Whether the peer is to say the same of its own; else it has.
    pub asks: bool,
    /// Who speaks.
    pub from: u32,
    /// Which connection of the two it is, counted from 1.
    pub turn: u32,
    /// The queue pair.
    pub number: u32,
    /// The number of its first packet.
    pub packet: u32,
    /// Reads of the peer that it keeps at a time.
    pub reads: u8,
}

impl Hello {
    /// As it is sent to a rank.
    pub fn encode(&self, to: usize, secret: &Secret) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..4].copy_from_slice(&MAGIC);
        (out[4], out[5]) = (u8::from(self.asks), self.reads);
        for (at, word) in [self.from, self.turn, self.number, self.packet].into_iter().enumerate() {
            out[8 + 4 * at..][..4].copy_from_slice(&word.to_be_bytes());
        }
        out[24..32].copy_from_slice(&datagram_id(secret, b"ibv", self.from as usize, to).to_be_bytes());
        out
    }

    /// What has come to this rank of a job of `size`; `None` if it is nothing of its own.
    pub fn decode(bytes: &[u8], me: usize, size: usize, secret: &Secret) -> Option<Hello> {
        if bytes.len() != LEN || bytes[..4] != MAGIC || bytes[4] > 1 {
            return None;
        }
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let from = word(8)?;
        let who = u64::from_be_bytes(bytes.get(24..32)?.try_into().ok()?);
        let is_rank = (from as usize) < size && from as usize != me;
        if !is_rank || who != datagram_id(secret, b"ibv", from as usize, me) {
            return None;
        }
        let (turn, number, packet) = (word(12)?, word(16)?, word(20)?);
        Some(Hello { asks: bytes[4] == 1, from, turn, number, packet, reads: bytes[5] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_by_whom_it_is_said_to_and_nobody_else() {
        let secret = [7; 16];
        let hello = Hello { asks: true, from: 2, turn: 3, number: 0x12_3456, packet: 0xab_cdef, reads: 16 };
        let bytes = hello.encode(5, &secret);
        assert_eq!(Hello::decode(&bytes, 5, 6, &secret), Some(hello));
        assert_eq!(Hello::decode(&bytes, 4, 6, &secret), None, "it is for another rank");
        assert_eq!(Hello::decode(&bytes, 5, 6, &[8; 16]), None, "of another job");
        assert_eq!(Hello::decode(&bytes, 5, 2, &secret), None, "from a rank that is not there");
        for len in 0..LEN {
            assert_eq!(Hello::decode(&bytes[..len], 5, 6, &secret), None);
        }
        for at in [0, 4, 8, 24] {
            let mut changed = bytes;
            changed[at] ^= 0x80;
            assert_eq!(Hello::decode(&changed, 5, 6, &secret), None, "byte {at}");
        }
    }
}
