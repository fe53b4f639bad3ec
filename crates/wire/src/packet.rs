//! Packets: what `proto::reliable` puts into unreliable datagrams, so that all of it comes, once and in order
//! (`docs/protocols/datagrams.md`).
//!
//! ```text
//! |version|kind|flags|0|seq (4)|ack (4)|key (4)|what has come behind `ack` (16)|addr (8)| payload ...     little-endian
//! ```

use crate::Malformed;

/// Version of this format.
pub const VERSION: u8 = 1;
/// Length of what every packet begins with.
pub const HEAD_LEN: usize = 40;
/// Packets behind the one that is expected of which it is said whether they have come.
pub const BITS: u32 = 128;
/// It is the last of its message.
pub const LAST: u8 = 1;
/// An acknowledgement is wanted at once.
pub const ASKS: u8 = 2;

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// An acknowledgement alone: it has no number.
    Ack,
    /// Part of a message for a receive buffer.
    Send,
    /// Part of a write to `addr` of the region `key`.
    Write,
    /// A request to read from `addr` of the region `key`; its payload: number and length, 4 bytes each.
    Read,
    /// Part of the answer to the request `key`, from byte `addr` on.
    Data,
    /// A connection is wanted, or agreed to.
    Want,
    /// No connection at present.
    Refuse,
    /// The last message over the connection has come.
    Parted,
    /// Its sender has nothing more to send.
    Bye,
}

impl Opcode {
    /// All there are.
    pub const ALL: [Opcode; 9] = [
        Opcode::Ack,
        Opcode::Send,
        Opcode::Write,
        Opcode::Read,
        Opcode::Data,
        Opcode::Want,
        Opcode::Refuse,
        Opcode::Parted,
        Opcode::Bye,
    ];
}

/// What a packet begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet {
    /// What it is.
    pub kind: Opcode,
    /// [`LAST`], [`ASKS`].
    pub flags: u8,
    /// Its number, or that of the next one.
    pub seq: u32,
    /// The number that is expected next.
    pub ack: u32,
    /// Bit 0 is `ack` + 1; a one: it has come.
    pub came: u128,
    /// See [`Opcode`].
    pub key: u32,
    /// See [`Opcode`].
    pub addr: u64,
}

impl Packet {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEAD_LEN] {
        let mut bytes = [0; HEAD_LEN];
        bytes[..3].copy_from_slice(&[VERSION, self.kind as u8, self.flags]);
        bytes[4..8].copy_from_slice(&self.seq.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.ack.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.key.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.came.to_le_bytes());
        bytes[32..].copy_from_slice(&self.addr.to_le_bytes());
        bytes
    }

    /// Reads it from the beginning of a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Packet, Malformed> {
        let Some(bytes) = bytes.first_chunk::<HEAD_LEN>() else {
            return Err(Malformed(format!("a packet of {} bytes", bytes.len())));
        };
        let [version, kind, flags, reserved, ..] = *bytes;
        if version != VERSION || flags & !(LAST | ASKS) != 0 || reserved != 0 {
            return Err(Malformed(format!("a packet of version {version} with flags {flags:#x}")));
        }
        let kind = Opcode::ALL
            .get(usize::from(kind))
            .ok_or_else(|| Malformed(format!("a packet of kind {kind}")))?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (_, rest) = bytes.split_at(16);
        let (came, addr) = rest.split_at(16);
        Ok(Packet {
            kind: *kind,
            flags,
            seq: word(4),
            ack: word(8),
            key: word(12),
            came: u128::from_le_bytes(came.try_into().expect("16 bytes")),
            addr: u64::from_le_bytes(addr.try_into().expect("8 bytes")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_nothing_else() {
        for kind in Opcode::ALL {
            let packet = Packet { kind, flags: LAST, seq: 1, ack: 2, came: 3 << 90, key: 4, addr: 5 << 60 };
            let bytes = packet.encode();
            assert_eq!(Packet::decode(&bytes), Ok(packet));
            assert!((0..HEAD_LEN).all(|len| Packet::decode(&bytes[..len]).is_err()));
            for (at, wrong) in [(0, 9), (1, Opcode::ALL.len() as u8), (2, 4), (3, 1)] {
                let mut bytes = bytes;
                bytes[at] = wrong;
                assert!(Packet::decode(&bytes).is_err());
            }
        }
    }
}
