//! Datagrams of the software adapter, reliable (RD) and unreliable (UD): `docs/protocols/datagrams.md`.
//!
//! ```text
//! |version(4) kind(4)|flags|length (2)|rank (4)|connection id (8)|  ...  |CRC32c (4)|      every field big-endian
//! RD: seq (4) | ack (4) | window (2) | words (1) | 0 (1) | words × 8: what has come behind `ack` | segments
//! ```

use crate::iwarp::crc::Crc;
use crate::iwarp::{be16, be32, be64};

/// Version of this format.
pub const VERSION: u8 = 1;
/// Length of what every datagram begins with.
pub const HEAD_LEN: usize = 16;
/// Length of what RD adds, without the bitmap.
pub const RELIABLE_LEN: usize = 12;
/// Length of the CRC at the end.
pub const CRC_LEN: usize = 4;
/// Most words of a bitmap.
pub const WORDS_MAX: usize = 4;
/// Longest datagram: what UDP over IPv4 takes.
pub const LONGEST: usize = 65_507;

/// What a datagram is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramType {
    /// Of an RD pair: segments, an acknowledgement, or both.
    Reliable = 0,
    /// One segment of UD.
    Unreliable = 1,
    /// An error, for the error queue of the receiver.
    Error = 2,
}

/// What every datagram begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// What it is.
    pub kind: DatagramType,
    /// Flags of RD: [`NUMBERED`], [`ASKS`], [`CLOSES`].
    pub flags: u8,
    /// Its sender.
    pub rank: u32,
    /// Says that it is of the job, from this sender, for this receiver.
    pub id: u64,
}

/// It takes a number: there are segments in it.
pub const NUMBERED: u8 = 1;
/// An acknowledgement is wanted at once.
pub const ASKS: u8 = 2;
/// The sender has nothing more to send, and nothing unacknowledged.
pub const CLOSES: u8 = 4;
const FLAGS: u8 = NUMBERED | ASKS | CLOSES;

/// What RD adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reliable {
    /// The number of this datagram, or of the next one.
    pub seq: u32,
    /// The number that is expected next.
    pub ack: u32,
    /// Numbers from `ack` on that are taken.
    pub window: u16,
    /// Bit 0 of the first word is `ack` + 1; a one: it has come.
    pub came: [u64; WORDS_MAX],
}

/// Why a datagram is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// Shorter than it must be, or than it says.
    Short,
    /// Of another version, or unknown kind, flag or reserved bits.
    Unknown,
    /// The CRC is wrong.
    Crc,
}

/// Length of the datagram at the beginning of what the kernel gave, which may be several; `None` if there is none.
pub fn length(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < HEAD_LEN + CRC_LEN {
        return None;
    }
    let len = usize::from(be16(bytes, 2));
    (len >= HEAD_LEN + CRC_LEN && len <= bytes.len()).then_some(len)
}

/// How many of these bytes fill up the datagram before them: zeros, with which none begins.
pub fn padding(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == 0).count()
}

impl Head {
    /// Begins a datagram behind whatever is in `out`; [`seal`] ends it.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION << 4 | self.kind as u8, self.flags, 0, 0]);
        out.extend_from_slice(&self.rank.to_be_bytes());
        out.extend_from_slice(&self.id.to_be_bytes());
    }

    /// Who a datagram says it is from, and its id: nothing else has been looked at.
    pub fn claims(datagram: &[u8]) -> Option<(u32, u64)> {
        length(datagram).map(|_| (be32(datagram, 4), be64(datagram, 8)))
    }

    /// Reads a datagram of exactly this length, and what follows the head.
    pub fn decode(datagram: &[u8]) -> Result<(Head, &[u8]), Dropped> {
        if length(datagram) != Some(datagram.len()) {
            return Err(Dropped::Short);
        }
        let (content, field) = datagram.split_at(datagram.len() - CRC_LEN);
        let mut crc = Crc::EMPTY;
        crc.update(content);
        if crc.field() != field {
            return Err(Dropped::Crc);
        }
        let kind = match datagram[0] {
            b if b >> 4 != VERSION => return Err(Dropped::Unknown),
            b => match b & 0x0f {
                0 => DatagramType::Reliable,
                1 => DatagramType::Unreliable,
                2 => DatagramType::Error,
                _ => return Err(Dropped::Unknown),
            },
        };
        let flags = datagram[1];
        if flags & !FLAGS != 0 {
            return Err(Dropped::Unknown);
        }
        let head = Head { kind, flags, rank: be32(datagram, 4), id: be64(datagram, 8) };
        Ok((head, &content[HEAD_LEN..]))
    }
}

impl Reliable {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let words = self.came.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.ack.to_be_bytes());
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[words as u8, 0]);
        self.came[..words].iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    }

    /// Reads it, and what follows.
    pub fn decode(bytes: &[u8]) -> Result<(Reliable, &[u8]), Dropped> {
        if bytes.len() < RELIABLE_LEN {
            return Err(Dropped::Short);
        }
        let (words, reserved) = (usize::from(bytes[10]), bytes[11]);
        if words > WORDS_MAX || reserved != 0 {
            return Err(Dropped::Unknown);
        }
        let end = RELIABLE_LEN + 8 * words;
        if bytes.len() < end {
            return Err(Dropped::Short);
        }
        let mut came = [0; WORDS_MAX];
        (0..words).for_each(|at| came[at] = be64(bytes, RELIABLE_LEN + 8 * at));
        let reliable = Reliable { seq: be32(bytes, 0), ack: be32(bytes, 4), window: be16(bytes, 8), came };
        Ok((reliable, &bytes[end..]))
    }
}

/// Ends the datagram that begins at this position: its length and CRC.
pub fn seal(out: &mut Vec<u8>, begin: usize) {
    let len = u16::try_from(out.len() - begin + CRC_LEN).expect("a datagram is shorter than 64 KiB");
    out[begin + 2..begin + 4].copy_from_slice(&len.to_be_bytes());
    let mut crc = Crc::EMPTY;
    crc.update(&out[begin..]);
    out.extend_from_slice(&crc.field());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(kind: DatagramType, flags: u8, reliable: &Reliable, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![9; 3];
        Head { kind, flags, rank: 77, id: 0x0102_0304_0506_0708 }.begin(&mut out);
        reliable.encode(&mut out);
        out.extend_from_slice(payload);
        seal(&mut out, 3);
        out.split_off(3)
    }

    #[test]
    fn what_is_written_is_read() {
        for words in 0..=WORDS_MAX {
            let mut reliable = Reliable { seq: u32::MAX, ack: 5, window: 300, came: [0; WORDS_MAX] };
            (0..words).for_each(|at| reliable.came[at] = 1 << at | 1 << 63);
            let bytes = datagram(DatagramType::Reliable, NUMBERED | CLOSES, &reliable, b"payload");
            assert_eq!(length(&[&bytes[..], b"behind it"].concat()), Some(bytes.len()));
            assert_eq!(Head::claims(&bytes), Some((77, 0x0102_0304_0506_0708)));
            let (head, rest) = Head::decode(&bytes).unwrap();
            assert_eq!((head.kind, head.flags), (DatagramType::Reliable, NUMBERED | CLOSES));
            assert_eq!(Reliable::decode(rest), Ok((reliable, &b"payload"[..])));
        }
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_seen() {
        let bytes =
            datagram(DatagramType::Error, ASKS, &Reliable { came: [1; 4], ..Reliable::default() }, b"xyz");
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::decode(&changed).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(Head::decode(&bytes[..len]), Err(Dropped::Short));
        }
    }

    #[test]
    fn what_is_unknown_is_dropped() {
        let unknown = |at: usize, value: u8| {
            let mut bytes = datagram(DatagramType::Reliable, 0, &Reliable::default(), &[0; 8]);
            bytes[at] = value;
            bytes.truncate(bytes.len() - CRC_LEN);
            seal(&mut bytes, 0);
            Head::decode(&bytes).and_then(|(_, rest)| Reliable::decode(rest).map(drop))
        };
        assert_eq!(unknown(1, 0), Ok(()));
        for (at, value) in [(0, 0x20), (0, 0x13), (1, 8), (HEAD_LEN + 11, 1), (HEAD_LEN + 10, 5)] {
            assert_eq!(unknown(at, value), Err(Dropped::Unknown), "{at}");
        }
        assert_eq!(unknown(HEAD_LEN + 10, 2), Err(Dropped::Short));
    }
}
