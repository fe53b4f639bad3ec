//! How two ranks tell each other the numbers of their queue pairs: a datagram of 40 bytes.
//!
//! ```text
//! magic 4 · what 1 · reads 1 · rail 1 · zero 1 · from 4 · turn 4 · number 4 · first packet 4 · MAC 16
//! ```
//!
//! The MAC is of all in front of it and of who it is for, with the job's secret as key (`rnic::driver::proof`): what has been
//! changed, comes from elsewhere or was said over another rail is nothing. One that is played again says the turn of a
//! connection that is there, or is over ([`crate::contact`]). Where a rank's ports are (GID, LID) and the numbers of its queue
//! pairs for datagrams stand in its card, which goes by way of the launcher. Numbers are big-endian.

use rnic::driver::{PROOF, Secret, is_proof, proof};

/// Its length in bytes.
pub const LEN: usize = SAID + PROOF;
/// What is said.
const SAID: usize = 24;
const MAGIC: [u8; 4] = *b"TIB2";
/// What its MAC is of, among all that the job's secret is the key for.
const KIND: &[u8] = b"ibv hello";

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
    /// The rail that it is of.
    pub rail: u8,
}

impl Hello {
    /// As it is sent to a rank.
    pub fn encode(&self, to: usize, secret: &Secret) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[..4].copy_from_slice(&MAGIC);
        (out[4], out[5], out[6]) = (u8::from(self.asks), self.reads, self.rail);
        for (at, word) in [self.from, self.turn, self.number, self.packet].into_iter().enumerate() {
            out[8 + 4 * at..][..4].copy_from_slice(&word.to_be_bytes());
        }
        let mac = proof(secret, &[KIND, &(to as u32).to_be_bytes(), &out[..SAID]]);
        out[SAID..].copy_from_slice(&mac);
        out
    }

    /// What has come to this rank of a job of `size` over this rail; `None` if it is nothing of its own.
    pub fn decode(bytes: &[u8], me: usize, size: usize, rail: u8, secret: &Secret) -> Option<Hello> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let (said, mac) = bytes.split_at(SAID);
        if !is_proof(secret, &[KIND, &(me as u32).to_be_bytes(), said], mac) {
            return None;
        }
        let word = |at: usize| Some(u32::from_be_bytes(said.get(at..at + 4)?.try_into().ok()?));
        let (from, turn, number, packet) = (word(8)?, word(12)?, word(16)?, word(20)?);
        let is_rank = (from as usize) < size && from as usize != me;
        let is_known = said[..4] == MAGIC && said[4] <= 1 && said[6] == rail && said[7] == 0;
        let hello = Hello { asks: said[4] == 1, from, turn, number, packet, reads: said[5], rail };
        (is_rank && is_known).then_some(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_by_whom_it_is_said_to_and_nobody_else() {
        let secret = [7; 16];
        let hello =
            Hello { asks: true, from: 2, turn: 3, number: 0x12_3456, packet: 0xab_cdef, reads: 16, rail: 1 };
        let bytes = hello.encode(5, &secret);
        assert_eq!(Hello::decode(&bytes, 5, 6, 1, &secret), Some(hello));
        assert_eq!(Hello::decode(&bytes, 4, 6, 1, &secret), None, "it is for another rank");
        assert_eq!(Hello::decode(&bytes, 5, 6, 0, &secret), None, "it is of another rail");
        assert_eq!(Hello::decode(&bytes, 5, 6, 1, &[8; 16]), None, "of another job");
        assert_eq!(Hello::decode(&bytes, 5, 2, 1, &secret), None, "from a rank that is not there");
        for len in 0..LEN {
            assert_eq!(Hello::decode(&bytes[..len], 5, 6, 1, &secret), None);
        }
        for bit in 0..8 * LEN {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Hello::decode(&changed, 5, 6, 1, &secret), None, "bit {bit}");
        }
    }
}
