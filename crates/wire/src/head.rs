//! The header of a message: two words.
//!
//! | word | bits  | field |
//! |------|-------|-------|
//! | 0    | 0–7   | kind |
//! | 0    | 8–15  | version |
//! | 0    | 16–31 | aux (kind-specific) |
//! | 0    | 32–63 | tag |
//! | 1    | 0–63  | context id of the communicator |

use crate::Malformed;

/// Version of the message formats; a peer with another one is refused.
pub const VERSION: u8 = 1;

/// Kinds of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum FrameType {
    /// Envelope and the whole payload.
    Eager = 1,
    /// Request to send: envelope and an [`Offer`] of the sender's buffer.
    Rts = 2,
    /// Request to receive: envelope and an [`Offer`] of the receiver's buffer.
    Rtr = 3,
    /// The sender takes an RTR: envelope and an [`Offer`] of its buffer.
    Matched = 4,
    /// Clear to send frames: the receiver takes an RTS without remote access. The tag is the
    /// send operation, the context the receive operation.
    Cts = 5,
    /// A piece of payload. The tag is the receive operation, the context the offset.
    Data = 6,
    /// Request to send over registered memory, see [`crate::long`].
    LongRts = 7,
    /// Answer to it.
    Ack = 8,
    /// A piece of the target buffer may be written.
    Ready = 9,
    /// A piece or all of a message has been moved.
    Fin = 10,
    /// Request to receive into registered memory.
    LongRtr = 11,
    /// The sender takes it: in the order of messages, in place of an RTS.
    RtrAck = 12,
    /// The receiver wants an RTR back. The context is its operation.
    RtrCancel = 13,
    /// Answer: it is not used. The tag is the receive operation.
    RtrGone = 14,
    /// Of a one-sided epoch, see [`crate::epoch`]. The tag is the window.
    Epoch = 15,
    /// The sender wants an RTS back that has no share: its envelope.
    RtsCancel = 16,
    /// Answer: no receive had taken it. The tag is the send operation.
    RtsGone = 17,
}

impl FrameType {
    /// All of them, in the order of their values, which begin with 1.
    pub const ALL: [FrameType; 17] = {
        use FrameType::*;
        [
            Eager, Rts, Rtr, Matched, Cts, Data, LongRts, Ack, Ready, Fin, LongRtr, RtrAck, RtrCancel,
            RtrGone, Epoch, RtsCancel, RtsGone,
        ]
    };

    #[inline]
    fn of(value: u64) -> Result<FrameType, Malformed> {
        FrameType::ALL.get(value.wrapping_sub(1) as usize).copied().ok_or_else(|| bad_kind(value))
    }
}

/// A decoded header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// What follows.
    pub kind: FrameType,
    /// FrameType-specific.
    pub aux: u16,
    /// MPI tag, or an operation id where the kind has no envelope.
    pub tag: i32,
    /// Context id, or an offset where the kind has no envelope.
    pub context: u64,
}

impl Head {
    /// A header with `aux` zero.
    #[inline]
    pub fn new(kind: FrameType, tag: i32, context: u64) -> Head {
        Head { kind, aux: 0, tag, context }
    }

    /// The two words.
    #[inline]
    pub fn encode(self) -> [u64; 2] {
        let word = self.kind as u64
            | (VERSION as u64) << 8
            | (self.aux as u64) << 16
            | (self.tag as u32 as u64) << 32;
        [word, self.context]
    }

    /// Reads two words of any content.
    #[inline]
    pub fn decode(words: [u64; 2]) -> Result<Head, Malformed> {
        let version = words[0] >> 8 & 0xff;
        if version != VERSION as u64 {
            return Err(bad_version(version));
        }
        Ok(Head {
            kind: FrameType::of(words[0] & 0xff)?,
            aux: (words[0] >> 16) as u16,
            tag: (words[0] >> 32) as u32 as i32,
            context: words[1],
        })
    }
}

/// The word 0 of a plain eager message with this tag: what the fast path compares with.
#[inline]
pub fn eager_word(tag: i32) -> u64 {
    Head::new(FrameType::Eager, tag, 0).encode()[0]
}

/// The tag in the word that [`eager_word`] gives.
#[inline]
pub fn eager_tag(word: u64) -> i32 {
    (word >> 32) as u32 as i32
}

/// The body of RTS, RTR and Matched: where a buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Length of the message or of the buffer, in bytes.
    pub len: u64,
    /// Address of the buffer in the process that offers it.
    pub addr: u64,
    /// Index of the share of the transfer, in the process that opened it; [`Offer::NO_SHARE`] if
    /// the transfer goes by frames.
    pub share: u32,
    /// Operation at the process that offers.
    pub op: u32,
    /// RTR: number of messages from the other side that its sender had taken in.
    pub seen: u32,
    /// Matched: the operation of the RTR that is taken. RTR: how many receives that accept the
    /// same envelope were posted before and are not matched. RTS: [`Offer::EAGER`], [`Offer::ALONE`],
    /// [`Offer::FINAL`], [`Offer::FRAMES`], [`Offer::CHOSEN`].
    pub other: u32,
}

impl Offer {
    /// Stands for «no share».
    pub const NO_SHARE: u32 = u32::MAX;
    /// The address of a buffer that its receiver cannot copy from: it asks for frames. Its share says no
    /// more than whether the message may still be taken.
    pub const BY_FRAMES: u64 = 0;
    /// Of an RTS: the message might have gone eagerly, so its sender counts on needing no receive. If none comes while
    /// its receiver waits for something else, it is kept as an eager one is.
    pub const EAGER: u32 = 1;
    /// Of an RTS: the sender leaves the copy to the receiver alone, and does not take offers.
    pub const ALONE: u32 = 2;
    /// Of an RTS: its sender takes the message back only by asking, so to take it needs no word of its share.
    pub const FINAL: u32 = 4;
    /// Of an RTS: it is to be asked for in frames although it could be copied, and does not take offers.
    pub const FRAMES: u32 = 8;
    /// Of an RTS: its sender has chosen how it goes. One that is synchronous had no choice.
    pub const CHOSEN: u32 = 16;
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 32;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let both = |first: u32, second: u32| first as u64 | (second as u64) << 32;
        let words = [self.len, self.addr, both(self.share, self.op), both(self.seen, self.other)];
        *words.map(u64::to_le_bytes).as_flattened().first_chunk().expect("four words")
    }

    /// Reads bytes of any content.
    pub fn decode(bytes: &[u8]) -> Result<Offer, Malformed> {
        if bytes.len() != Self::LEN {
            return Err(Malformed(format!("an offer has {} bytes, got {}", Self::LEN, bytes.len())));
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Ok(Offer {
            len: word(0),
            addr: word(8),
            share: half(16),
            op: half(20),
            seen: half(24),
            other: half(28),
        })
    }
}

#[cold]
fn bad_version(version: u64) -> Malformed {
    Malformed(format!("message format version {version}, this library speaks {VERSION}"))
}

#[cold]
fn bad_kind(kind: u64) -> Malformed {
    Malformed(format!("unknown message kind {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for (kind, named) in (1..).zip(FrameType::ALL) {
            let head = Head::decode([kind | 1 << 8 | 7 << 16 | 0xffff_fffe << 32, 42]).unwrap();
            assert_eq!((head.kind, head.aux, head.tag, head.context), (named, 7, -2, 42));
            assert_eq!(head.kind as u64, kind);
            assert_eq!(Head::decode(head.encode()), Ok(head));
            assert_eq!(eager_tag(eager_word(head.tag)), head.tag);
        }
        let offer = Offer { len: 1 << 40, addr: 3, share: 4, op: 5, seen: 6, other: 7 };
        assert_eq!(Offer::decode(&offer.encode()), Ok(offer));
    }

    #[test]
    fn foreign_versions_kinds_and_lengths_are_refused() {
        assert!(Head::decode([1 | 2 << 8, 0]).unwrap_err().0.contains("version 2"));
        for kind in [0, FrameType::ALL.len() as u64 + 1, 99, 255] {
            let refused = Head::decode([kind | 1 << 8, 0]).unwrap_err().0;
            assert!(refused.contains(&format!("kind {kind}")), "{refused}");
        }
        assert!(Offer::decode(&[0; 31]).is_err());
    }
}
