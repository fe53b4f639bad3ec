//! Payloads of one peer that stay in their blocks after their frames have been read.
//!
//! The credit of a ring says up to which position its sender may use cells and blocks again, so it stops at the oldest payload
//! that is retained ([`crate::ring::Consumer::keep_back`]). Frames behind it are read on, but bring no credit: before their sender finds
//! no room for the next one, all payloads are to be released.

use crate::lending::Held;
use crate::pool::GRANULE;
use crate::ring::CELLS;
use crate::stores::Plan;
use fabric::Span;

/// Shorter payloads are copied: that costs little, and in the least blocks, a granule, frames go on where memory is scarce.
pub const LEAST: usize = GRANULE + 1;
/// Most payloads of one peer: each may lie in another part of its arena, and the longest blocks are to find free ones.
const MOST: usize = 8;
/// Positions behind the oldest one from which on its sender may soon be without cells.
const POSITIONS: u32 = CELLS as u32 / 2;

#[derive(Clone, Copy, Debug)]
struct Payload {
    position: u32,
    data: Span,
    /// How it was written, as whoever reads it must know.
    plan: Plan,
    /// What of its block can be written when it is released.
    held: Option<Held>,
    /// What [`Retained::passed`] was before it.
    before: usize,
}

/// The payloads, the oldest first.
#[derive(Default, Debug)]
pub struct Retained {
    payloads: Vec<Payload>,
    /// Bytes in blocks of all frames since there was none.
    passed: usize,
}

impl Retained {
    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// One more, of the frame at this position, unless it is too short or too much with those that are there: `most` bytes may lie
    /// between the first and the last of them.
    pub fn add(
        &mut self,
        position: u32,
        (data, plan, held): (Span, Plan, Option<Held>),
        most: usize,
    ) -> bool {
        if self.is_empty() {
            self.passed = 0;
        }
        let fits = self.behind() + data.len <= most && self.payloads.len() < MOST;
        if data.len < LEAST || !fits {
            return false;
        }
        self.payloads.push(Payload { position, data, plan, held, before: self.passed });
        true
    }

    /// A frame has been read, with so many bytes in a block.
    pub fn pass(&mut self, bytes: usize) {
        self.passed += bytes;
    }

    /// Bytes in blocks that are not free because of the oldest payload.
    fn behind(&self) -> usize {
        self.payloads.first().map_or(0, |oldest| self.passed - oldest.before)
    }

    /// Whether its sender may soon find no room; `head` is the position of the next frame.
    pub fn presses(&self, head: u32, most: usize) -> bool {
        let Some(oldest) = self.payloads.first() else { return false };
        self.behind() > most || head.wrapping_sub(oldest.position) >= POSITIONS
    }

    /// The payload at this address is not retained any more.
    pub fn remove(&mut self, addr: usize) -> Option<Held> {
        let at = self.payloads.iter().position(|payload| payload.data.addr == addr);
        self.payloads.remove(at.expect("what is released was retained")).held
    }

    /// How the payload was written that lies there.
    pub fn plan(&self, data: Span) -> Option<Plan> {
        self.payloads.iter().find(|payload| payload.data == data).map(|payload| payload.plan)
    }

    /// The position of the one that was retained last.
    pub fn latest(&self) -> Option<u32> {
        self.payloads.last().map(|payload| payload.position)
    }

    /// The position of the oldest.
    pub fn oldest(&self) -> Option<u32> {
        self.payloads.first().map(|payload| payload.position)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stores::StoreWay;

    fn at(addr: usize, len: usize) -> (Span, Plan, Option<Held>) {
        (Span { addr, len }, Plan { way: StoreWay::Ordinary, measured: false }, None)
    }

    #[test]
    fn what_is_read_behind_the_oldest_counts_until_that_is_released() {
        let mut retained = Retained::default();
        assert!(!retained.add(7, at(0, LEAST - 1), 1 << 20));
        assert!(retained.add(7, at(100, LEAST), 4 * LEAST));
        retained.pass(LEAST);
        assert!(retained.add(8, at(200, 3 * LEAST), 4 * LEAST));
        retained.pass(3 * LEAST);
        assert!(!retained.add(9, at(300, LEAST), 4 * LEAST) && !retained.presses(9, 4 * LEAST));
        retained.pass(1);
        assert!(retained.presses(9, 4 * LEAST));
        retained.remove(100);
        assert!(!retained.presses(9, 4 * LEAST) && retained.oldest() == Some(8));
        assert!(retained.presses(8 + POSITIONS, 4 * LEAST));
        retained.remove(200);
        assert!(retained.is_empty() && !retained.presses(8 + POSITIONS, 0));
    }
}
