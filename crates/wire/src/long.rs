//! Bodies of the messages by which rendezvous over registered memory is agreed upon.
//!
//! | kind    | tag             | context           | body |
//! |---------|-----------------|-------------------|------|
//! | LongRts | MPI tag         | context id        | [`LongRts`], then the payload sent along |
//! | Ack     | operation there | operation here    | [`Fragment`]: how much is wanted, and from where on RDMA takes over |
//! | Ready   | operation there | operation here    | [`Fragment`]: a piece of the target buffer, or of staging memory, may be written |
//! | Fin     | operation there | operation here    | [`Fragment`]: what has been moved |
//! | LongRtr | MPI tag         | context id        | [`LongRts`] of the receiver's buffer |
//! | RtrAck  | MPI tag         | context id        | [`LongRts`]: `addr` is the receive operation |
//! | RtrCancel | MPI tag       | context id        | [`LongRts`]: `op` is the receive operation |
//! | RtrGone | operation there | 0                 | empty |
//! | RtsCancel | MPI tag       | context id        | [`LongRts`]: `op` is the send operation |
//! | RtsGone | operation there | 0                 | empty |
//!
//! All numbers are little-endian.

use crate::Malformed;

/// Adapters whose keys fit an RTS.
pub const RAILS: usize = 4;

/// What a receiver tells the sender of a message that has come from it: how long it took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Operation at the sender.
    pub op: u32,
    /// From when the receiver had both RTS and receive until the last byte, in ns; 0: nothing is reported.
    pub took_ns: u32,
    /// For how long the receive had waited for the RTS, in ns.
    pub waited_ns: u32,
}

impl Report {
    const LEN: usize = 12;

    fn encode(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.op.to_le_bytes());
        out[4..8].copy_from_slice(&self.took_ns.to_le_bytes());
        out[8..].copy_from_slice(&self.waited_ns.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], at: usize) -> Report {
        Report { op: half(bytes, at), took_ns: half(bytes, at + 4), waited_ns: half(bytes, at + 8) }
    }

    /// Puts it where an RTS-ACK has room: key and address.
    pub fn put(self, into: Fragment) -> Fragment {
        Fragment { key: self.op, addr: self.took_ns as u64 | (self.waited_ns as u64) << 32, ..into }
    }

    /// Takes it out again.
    pub fn of(fragment: &Fragment) -> Report {
        let Fragment { key: op, addr, .. } = *fragment;
        Report { op, took_ns: addr as u32, waited_ns: (addr >> 32) as u32 }
    }
}

/// Request to send a message by one of the protocols for registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LongRts {
    /// Length of the message in bytes.
    pub len: u64,
    /// Address of the sender's buffer, if its memory is registered; 0 otherwise.
    pub addr: u64,
    /// Operation at the sender.
    pub op: u32,
    /// Number of the protocol.
    pub protocol: u16,
    /// What the sender tells along, see `proto`.
    pub flags: u16,
    /// Keys of the sender's buffer by adapter; where none of it is registered, what the protocol
    /// puts in their place.
    pub keys: [u32; RAILS],
    /// Of a message that went the other way.
    pub report: Report,
}

impl LongRts {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 40 + Report::LEN;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..16].copy_from_slice(&self.addr.to_le_bytes());
        out[16..20].copy_from_slice(&self.op.to_le_bytes());
        out[20..22].copy_from_slice(&self.protocol.to_le_bytes());
        out[22..24].copy_from_slice(&self.flags.to_le_bytes());
        for (at, key) in self.keys.iter().enumerate() {
            out[24 + 4 * at..28 + 4 * at].copy_from_slice(&key.to_le_bytes());
        }
        out[40..].copy_from_slice(&self.report.encode());
        out
    }

    /// Reads bytes of any content; what follows the first [`LongRts::LEN`] is payload. A buffer that
    /// no memory can hold is refused.
    pub fn decode(bytes: &[u8]) -> Result<LongRts, Malformed> {
        if bytes.len() < Self::LEN {
            return Err(Malformed(format!("a long RTS of {} bytes, it has {}", bytes.len(), Self::LEN)));
        }
        let mut keys = [0; RAILS];
        keys.iter_mut().enumerate().for_each(|(at, key)| *key = half(bytes, 24 + 4 * at));
        let (len, addr) = (word(bytes, 0), word(bytes, 8));
        if len > isize::MAX as u64 || addr.checked_add(len).is_none() {
            return Err(Malformed(format!("a buffer of {len} bytes at {addr:#x}")));
        }
        Ok(LongRts {
            len,
            addr,
            op: half(bytes, 16),
            protocol: half(bytes, 20) as u16,
            flags: (half(bytes, 20) >> 16) as u16,
            keys,
            report: Report::decode(bytes, 40),
        })
    }
}

/// A piece of a message or of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fragment {
    /// Where it begins in the message, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Its address at the one who tells it.
    pub addr: u64,
    /// The key it is registered under.
    pub key: u32,
    /// The adapter.
    pub rail: u16,
    /// What is told along, see the protocol.
    pub flags: u16,
}

impl Fragment {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 32;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..16].copy_from_slice(&self.len.to_le_bytes());
        out[16..24].copy_from_slice(&self.addr.to_le_bytes());
        out[24..28].copy_from_slice(&self.key.to_le_bytes());
        out[28..30].copy_from_slice(&self.rail.to_le_bytes());
        out[30..].copy_from_slice(&self.flags.to_le_bytes());
        out
    }

    /// Reads bytes of any content.
    pub fn decode(bytes: &[u8]) -> Result<Fragment, Malformed> {
        if bytes.len() != Self::LEN {
            return Err(Malformed(format!("a fragment of {} bytes, it has {}", bytes.len(), Self::LEN)));
        }
        Ok(Fragment {
            offset: word(bytes, 0),
            len: word(bytes, 8),
            addr: word(bytes, 16),
            key: half(bytes, 24),
            rail: half(bytes, 28) as u16,
            flags: (half(bytes, 28) >> 16) as u16,
        })
    }
}

/// The word at this place of bytes that have one there.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The half of a word at this place.
pub(crate) fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let report = Report { op: 8, took_ns: u32::MAX, waited_ns: 9 };
        let keys = [5, 6, 7, u32::MAX];
        let rts = LongRts { len: 1 << 40, addr: 2, op: 3, protocol: 4, flags: 0x8001, keys, report };
        let mut bytes = rts.encode().to_vec();
        assert_eq!(LongRts::decode(&bytes), Ok(rts));
        bytes.extend([1, 2, 3]);
        assert_eq!(LongRts::decode(&bytes), Ok(rts));
        let fragment = Fragment { offset: 1, len: 2, addr: 3, key: 4, rail: 5, flags: 0xfffe };
        assert_eq!(Fragment::decode(&fragment.encode()), Ok(fragment));
        assert_eq!(Report::of(&report.put(fragment)), report);
    }

    #[test]
    fn no_buffer_is_longer_than_memory() {
        for (len, addr) in [(u64::MAX, 0), (1 << 63, 0), (2, u64::MAX), (u64::MAX >> 1, 1 << 63 | 2)] {
            assert!(LongRts::decode(&LongRts { len, addr, ..LongRts::default() }.encode()).is_err());
        }
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(LongRts::decode(&[0; LongRts::LEN - 1]).is_err());
        assert!(Fragment::decode(&[0; 31]).is_err() && Fragment::decode(&[0; 33]).is_err());
    }
}
