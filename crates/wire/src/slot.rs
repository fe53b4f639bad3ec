//! Frames over registered memory: what stands behind the payload.
//!
//! A frame ends with its *tail*, one word, so that the last byte that becomes visible says that
//! the whole frame is there. Before it stand the two header words, unless the tail says that the
//! receiver knows them; before those the payload.
//!
//! | bits  | field |
//! |-------|-------|
//! | 0–15  | sequence number of the frame, over both paths |
//! | 16–31 | frames of the other direction that have been taken |
//! | 32–54 | length of the payload in bytes |
//! | 55–60 | slot of the next frame |
//! | 61–63 | kind, never 0: the last byte of a frame is not, either |

use crate::Malformed;

/// Version of the frames; a peer with another one is refused when it introduces itself.
pub const VERSION: u16 = 3;

/// How the header of a frame travels, and what the frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameKind {
    /// Both header words stand before the tail.
    Full = 1,
    /// The header is that of the frame before on this path.
    Same = 2,
    /// As [`FrameKind::Same`], but the second word has grown by the length of the payload before: the
    /// next piece of a stream.
    Next = 3,
    /// No header: the payload is a [`Meet`], for the channel itself.
    Meet = 4,
    /// No header, no payload, no number among the frames: tells only how many frames were taken.
    Credit = 5,
}

impl FrameKind {
    /// Bytes behind the payload.
    pub fn trailer_len(self) -> usize {
        if self == FrameKind::Full { 24 } else { 8 }
    }
}

/// The last word of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// What the frame is.
    pub kind: FrameKind,
    /// Its number among the frames of its direction (wraps).
    pub seq: u16,
    /// Frames of the other direction that its sender had taken (wraps).
    pub ack: u16,
    /// Length of the payload in bytes, at most [`Tail::LEN_MAX`].
    pub len: u32,
    /// Of a frame in a slot: the slot in which its sender will write the next one, below 64.
    pub next: u8,
}

impl Tail {
    /// The longest payload.
    pub const LEN_MAX: u32 = (1 << 23) - 1;

    /// The word.
    pub fn encode(self) -> u64 {
        assert!(self.len <= Tail::LEN_MAX, "a frame has at most {} bytes", Tail::LEN_MAX);
        assert!(self.next < 64, "a ring has at most 64 slots");
        let numbers = self.seq as u64 | (self.ack as u64) << 16 | (self.len as u64) << 32;
        numbers | (self.next as u64) << 55 | (self.kind as u64) << 61
    }

    /// Reads a word of any content.
    pub fn decode(word: u64) -> Result<Tail, Malformed> {
        let kind = match word >> 61 {
            1 => FrameKind::Full,
            2 => FrameKind::Same,
            3 => FrameKind::Next,
            4 => FrameKind::Meet,
            5 => FrameKind::Credit,
            other => return Err(Malformed(format!("unknown kind of frame {other}"))),
        };
        let len = (word >> 32) as u32 & Tail::LEN_MAX;
        let next = (word >> 55) as u8 & 63;
        Ok(Tail { kind, seq: word as u16, ack: (word >> 16) as u16, len, next })
    }
}

/// Slots that a receiver gives to one sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    /// Address of the first slot.
    pub addr: u64,
    /// The key for writing there.
    pub key: u32,
    /// Number of slots.
    pub slots: u32,
    /// Length of each in bytes, a multiple of 8.
    pub slot_bytes: u32,
}

/// How one end of a connection introduces itself to the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meet {
    /// Longest payload of a frame it sends or takes, in bytes.
    pub frame_bytes: u32,
    /// Frames that may be under way to it by Send/Recv.
    pub window: u16,
    /// Where it wants to be told how many of its frames have been taken: the address of a word.
    pub mailbox: u64,
    /// The key for writing there.
    pub mailbox_key: u32,
    /// Its slots for frames of the other end, once it has given some.
    pub ring: Option<Ring>,
}

impl Meet {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 40;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let ring = self.ring.unwrap_or(Ring { addr: 0, key: 0, slots: 0, slot_bytes: 0 });
        let words = [
            VERSION as u64 | (self.window as u64) << 16 | (self.frame_bytes as u64) << 32,
            self.mailbox,
            self.mailbox_key as u64 | (ring.key as u64) << 32,
            ring.addr,
            ring.slots as u64 | (ring.slot_bytes as u64) << 32,
        ];
        let mut out = [0; Self::LEN];
        for (bytes, word) in out.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Reads bytes of any content.
    pub fn decode(bytes: &[u8]) -> Result<Meet, Malformed> {
        if bytes.len() != Self::LEN {
            return Err(Malformed(format!("an introduction has {} bytes, got {}", Self::LEN, bytes.len())));
        }
        let word = |at: usize| u64::from_le_bytes(bytes[8 * at..][..8].try_into().expect("eight bytes"));
        if word(0) as u16 != VERSION {
            return Err(Malformed(format!(
                "frame format version {}, this library speaks {VERSION}",
                word(0) as u16
            )));
        }
        let ring = Ring {
            addr: word(3),
            key: (word(2) >> 32) as u32,
            slots: word(4) as u32,
            slot_bytes: (word(4) >> 32) as u32,
        };
        let odd = !word(1).is_multiple_of(8)
            || !ring.addr.is_multiple_of(8)
            || !ring.slot_bytes.is_multiple_of(8)
            || (ring.slots != 0 && (ring.slot_bytes as usize) < FrameKind::Full.trailer_len());
        if odd {
            return Err(Malformed("mailbox or slots of an introduction are no whole words".into()));
        }
        Ok(Meet {
            frame_bytes: (word(0) >> 32) as u32,
            window: (word(0) >> 16) as u16,
            mailbox: word(1),
            mailbox_key: word(2) as u32,
            ring: (ring.slots != 0).then_some(ring),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for kind in [FrameKind::Full, FrameKind::Same, FrameKind::Next, FrameKind::Meet, FrameKind::Credit] {
            let tail = Tail { kind, seq: 0xfffe, ack: 7, len: Tail::LEN_MAX, next: 63 };
            assert_eq!(Tail::decode(tail.encode()), Ok(tail));
        }
        let meet = Meet { frame_bytes: 8192, window: 6, mailbox: 4096, mailbox_key: 9, ring: None };
        assert_eq!(Meet::decode(&meet.encode()), Ok(meet));
        let ring = Some(Ring { addr: 1 << 40, key: u32::MAX, slots: 16, slot_bytes: 2048 });
        let meet = Meet { ring, ..meet };
        assert_eq!(Meet::decode(&meet.encode()), Ok(meet));
    }

    #[test]
    fn the_last_byte_says_that_the_frame_is_there() {
        let tail = Tail { kind: FrameKind::Full, seq: 0, ack: 0, len: 0, next: 0 };
        assert_ne!(tail.encode().to_le_bytes()[7], 0);
        assert!(Tail::decode(tail.encode() & !(0xff << 56)).is_err());
    }

    #[test]
    fn foreign_versions_lengths_and_odd_addresses_are_refused() {
        let ring = Some(Ring { addr: 64, key: 1, slots: 4, slot_bytes: 64 });
        let meet = Meet { frame_bytes: 8192, window: 6, mailbox: 4096, mailbox_key: 9, ring };
        let mut other_version = meet.encode();
        other_version[0] = 9;
        assert!(Meet::decode(&other_version).unwrap_err().0.contains("version 9"));
        assert!(Meet::decode(&meet.encode()[1..]).is_err());
        assert!(Meet::decode(&Meet { mailbox: 4097, ..meet }.encode()).is_err());
        let short = Some(Ring { addr: 64, key: 1, slots: 4, slot_bytes: 16 });
        assert!(Meet::decode(&Meet { ring: short, ..meet }.encode()).is_err());
    }
}
