//! Messages of one-sided epochs: kind [`crate::head::FrameType::Epoch`].
//!
//! The `aux` of the header is [flags](POST), its tag the number of the window, its context what the flags say. A frame
//! with [`OPS`] holds operations one behind the other, each an [`OpHead`] and, of a Put, its bytes; the answer to
//! Gets ([`ANSWER`]) holds an [`AnswerHead`] and the bytes for each, in the same order. All numbers are
//! little-endian.

use crate::Malformed;
use crate::long::{half, word};

/// The target lets this origin in: it may issue the operations of one epoch.
pub const POST: u16 = 1;
/// The payload holds operations.
pub const OPS: u16 = 2;
/// The origin's epoch at this target ends behind this frame. The context is how many [`NOTE`]s the origin has
/// sent to this target for this window, ever.
pub const DONE: u16 = 4;
/// Everything is placed that came before over one more adapter.
pub const NOTE: u16 = 8;
/// The origin wants to hear when everything before this frame is placed; the context as of [`DONE`].
pub const ASK: u16 = 16;
/// Answer to [`ASK`].
pub const PLACED: u16 = 32;
/// The payload answers Gets.
pub const ANSWER: u16 = 64;
/// With [`DONE`] or [`ASK`]: not all operations of the epoch could be done.
pub const FAILED: u16 = 128;
/// With [`DONE`] of a fence: what the origin was told in messages nobody else may overtake, so it waits for one more word of the
/// target before it comes there again.
pub const AGAIN: u16 = 256;
/// With [`DONE`] of a fence: from this bit on what the origin asserts of it, in two bits.
pub const SAID: u32 = 9;
/// With [`DONE`]: the lowest bit of how many ends of epochs its origin has told this rank of before, also by other messages.
pub const TURN: u16 = 2048;
/// All flags there are.
const KNOWN: u16 = TURN | AGAIN | 3 << SAID | (AGAIN - 1);

/// What an operation does at its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Action {
    /// The bytes behind the head go into the window.
    Put = 1,
    /// Bytes of the window are to be sent back.
    Get = 2,
}

/// An operation in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpHead {
    /// What it does.
    pub action: Action,
    /// Of a Get: what its answer is to say.
    pub token: u32,
    /// Where in the window it begins, in bytes.
    pub offset: u64,
    /// How many bytes it moves.
    pub len: u64,
}

impl OpHead {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 24;

    /// The bytes.
    #[inline]
    pub fn encode(self) -> [u8; Self::LEN] {
        let first = u64::from(self.action as u32) | u64::from(self.token) << 32;
        let mut out = [0; Self::LEN];
        let (words, _) = out.as_chunks_mut();
        for (word, bytes) in [first, self.offset, self.len].iter().zip(words) {
            *bytes = word.to_le_bytes();
        }
        out
    }

    /// Reads bytes of any content. A range that no window can hold is refused.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Result<OpHead, Malformed> {
        let action = match half(bytes, 0) {
            1 => Action::Put,
            2 => Action::Get,
            other => return Err(Malformed(format!("one-sided operation {other}"))),
        };
        let (offset, len) = (word(bytes, 8), word(bytes, 16));
        if offset.checked_add(len).is_none_or(|end| end > isize::MAX as u64) {
            return Err(Malformed(format!("{len} bytes at {offset} of a window")));
        }
        Ok(OpHead { action, token: half(bytes, 4), offset, len })
    }
}

/// What precedes the bytes that a Get asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnswerHead {
    /// That of the Get.
    pub token: u32,
    /// How many bytes follow.
    pub len: u32,
}

impl AnswerHead {
    /// Length of the encoded form in bytes.
    pub const LEN: usize = 8;

    /// The bytes.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.token.to_le_bytes());
        out[4..].copy_from_slice(&self.len.to_le_bytes());
        out
    }

    /// Reads bytes of any content.
    pub fn decode(bytes: &[u8; Self::LEN]) -> AnswerHead {
        AnswerHead { token: half(bytes, 0), len: half(bytes, 4) }
    }
}

/// Flags of any content: one that is not known, or none, is refused.
pub fn flags(aux: u16) -> Result<u16, Malformed> {
    match aux {
        0 => Err(Malformed("a message of an epoch that says nothing".into())),
        _ if aux & !KNOWN != 0 => Err(Malformed(format!("flags {aux:#x} of an epoch"))),
        _ => Ok(aux),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for action in [Action::Put, Action::Get] {
            let head = OpHead { action, token: 7, offset: 1 << 40, len: 5 };
            assert_eq!(OpHead::decode(&head.encode()), Ok(head));
        }
        let head = AnswerHead { token: 9, len: 4096 };
        assert_eq!(AnswerHead::decode(&head.encode()), head);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let head = OpHead { action: Action::Put, token: 0, offset: u64::MAX, len: 2 };
        assert!(OpHead::decode(&head.encode()).unwrap_err().0.contains("2 bytes at"));
        assert!(OpHead::decode(&[9; OpHead::LEN]).unwrap_err().0.contains("one-sided operation"));
        assert!(flags(0).is_err() && flags(TURN << 1).is_err());
        assert_eq!(flags(POST | OPS), Ok(POST | OPS));
        assert_eq!(flags(DONE | AGAIN | 3 << SAID | TURN), Ok(DONE | AGAIN | 3 << SAID | TURN));
    }
}
