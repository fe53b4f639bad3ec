//! What two sides that copy one message have claimed of it: pieces from both ends, in one word that either adds to.

use crate::choice::tuning::PIECE_MIN;
use crate::message::op::Side;

/// Largest piece: bounds how long the faster side waits for the last one.
pub(crate) const PIECE_MAX: usize = 1024 * 1024;
/// What claims count in.
pub(crate) const PAGE: usize = 4096;

/// Length of the next piece when `left` bytes are unclaimed: half of them, or all if nobody else
/// is expected to take the other half.
pub(crate) fn piece(left: usize, alone: bool) -> usize {
    let wanted = if alone { left } else { left / 2 };
    wanted.clamp(PIECE_MIN, PIECE_MAX)
}

/// What the two sides have claimed, in pages, in one word: the receiver's from the beginning of
/// the message in the lower half, the sender's from its end in the upper half.
#[derive(Clone, Copy)]
pub(crate) struct Claims(pub u64);

impl Claims {
    /// `pages` claimed by one side.
    pub fn of(side: Side, pages: usize) -> Claims {
        match side {
            Side::Receive => Claims(pages as u64),
            Side::Send => Claims((pages as u64) << 32),
        }
    }

    /// All of a message of `len` bytes, claimed by its receiver.
    pub fn whole(len: usize) -> Claims {
        Claims::of(Side::Receive, len.div_ceil(PAGE))
    }

    /// Pages claimed from the beginning and from the end.
    pub fn both(self) -> (usize, usize) {
        (self.0 as u32 as usize, (self.0 >> 32) as usize)
    }

    /// Pages of `len` bytes that nobody has claimed; `None` if there are none.
    pub fn left(self, len: usize) -> Option<usize> {
        let (front, back) = self.both();
        len.div_ceil(PAGE).checked_sub(front + back).filter(|left| *left > 0)
    }

    /// What is added to take a claim of `pages` back.
    pub fn back(side: Side, pages: usize) -> u64 {
        Claims::of(side, pages).0.wrapping_neg()
    }

    /// The bytes of `len` that a claim of `pages` by `side` got, these being the claims before it, which leave
    /// as many.
    pub fn piece(self, side: Side, pages: usize, len: usize) -> (usize, usize) {
        let (front, back) = self.both();
        let first = match side {
            Side::Receive => front,
            Side::Send => len.div_ceil(PAGE) - back - pages,
        };
        let offset = first * PAGE;
        (offset, (pages * PAGE).min(len - offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever claims how much, in whatever order: every byte once.
    #[test]
    fn claims_from_both_ends_cover_a_message_once() {
        for (len, order) in
            [(1, 0b1), (4096, 0b0), (300_001, 0b0110_1001), (5 << 20, 0b0111_0001), (5 << 20, 0)]
        {
            let (mut claims, mut covered, mut at) = (Claims(0), Vec::new(), 0);
            while let Some(left) = claims.left(len) {
                let side = if order >> (at % 8) & 1 == 0 { Side::Receive } else { Side::Send };
                let pages = piece(left * PAGE, at % 3 == 0).div_ceil(PAGE).min(left);
                if at % 5 != 3 {
                    covered.push(claims.piece(side, pages, len));
                } else {
                    claims.0 = claims.0.wrapping_add(Claims::back(side, pages)); // given back as soon as claimed
                }
                claims.0 += Claims::of(side, pages).0;
                at += 1;
            }
            covered.sort();
            let end = covered.iter().fold(0, |end, (offset, len)| {
                assert_eq!(*offset, end);
                end + len
            });
            assert_eq!(end, len);
            assert!(Claims::whole(len).left(len).is_none());
        }
    }
}
