//! Where things lie in the segment.
//!
//! ```text
//! page 0            job: number of ranks that have mapped the segment, and of those without barriers
//! per rank, at a multiple of the page size:
//!   control page    line 0 sleep word, line 1 process id and probe, line 2 who began to send here last
//!   opened          one word per rank that has begun to send here: who did before it
//!   turns           one line per higher rank: the cell both write in turn
//!   credits         one line per rank: how far that rank has read our ring to it, what reading costs
//!   shares          a line for each of 256
//!   rings           64 cells per rank: what that rank sends here
//!   arena           1024 granules of 4 KiB: payloads this rank sends
//! ```
//! Everything is zero at the start, nothing is touched before it is used: untouched pages cost
//! nothing.

use crate::pool::{GRANULE, GRANULES};
use crate::ring::{CELLS, Cell};

/// Page size assumed for the layout (the real one may be smaller, never larger than this helps).
pub const PAGE: usize = 4096;
/// Shares per rank.
pub const SHARES: usize = 256;
const LINE: usize = 64;
const RING_BYTES: usize = CELLS * size_of::<Cell>();

/// Offsets for a job of `n` ranks.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    n: usize,
    opened: usize,
    turns: usize,
    credits: usize,
    shares: usize,
    rings: usize,
    arena: usize,
    per_rank: usize,
}

impl Layout {
    /// The layout for `n` ranks.
    pub fn new(n: usize) -> Layout {
        let page_up = |len: usize| len.div_ceil(PAGE) * PAGE;
        let opened = PAGE;
        let turns = opened + page_up(n * size_of::<u32>());
        let credits = turns + page_up(n * LINE);
        let shares = credits + page_up(n * LINE);
        let rings = shares + page_up(SHARES * LINE);
        let arena = rings + n * RING_BYTES;
        let per_rank = arena + GRANULES * GRANULE;
        Layout { n, opened, turns, credits, shares, rings, arena, per_rank }
    }

    /// Bytes of the whole segment.
    pub fn total(&self) -> usize {
        PAGE + self.n * self.per_rank
    }

    fn base(&self, rank: usize) -> usize {
        assert!(rank < self.n, "rank {rank} of {}", self.n);
        PAGE + rank * self.per_rank
    }

    /// The word a rank sleeps on.
    pub fn sleep(&self, rank: usize) -> usize {
        self.base(rank)
    }

    /// Process id (word 0), address of the probe (word 1) and its value (word 2), whether it says that it lives
    /// (word 3).
    pub fn identity(&self, rank: usize) -> usize {
        self.base(rank) + LINE
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.n
    }

    /// Who began to send to `rank` last.
    pub fn openings(&self, rank: usize) -> usize {
        self.base(rank) + 2 * LINE
    }

    /// Who began to send to `rank` before `from` did.
    pub fn opened(&self, rank: usize, from: usize) -> usize {
        assert!(from < self.n, "rank {from} of {}", self.n);
        self.base(rank) + self.opened + from * size_of::<u32>()
    }

    /// The turn cell of a pair of ranks.
    pub fn turn(&self, a: usize, b: usize) -> usize {
        self.base(a.min(b)) + self.turns + a.max(b) * LINE
    }

    /// Credits that `reader` returns to `rank`.
    pub fn credit(&self, rank: usize, reader: usize) -> usize {
        self.base(rank) + self.credits + reader * LINE
    }

    /// Share `index` of `rank`.
    pub fn share(&self, rank: usize, index: usize) -> usize {
        assert!(index < SHARES, "share {index} of {SHARES}");
        self.base(rank) + self.shares + index * LINE
    }

    /// The ring from `from` to `to`.
    pub fn ring(&self, from: usize, to: usize) -> usize {
        self.base(to) + self.rings + from * RING_BYTES
    }

    /// Granule `index` of the arena of `rank`.
    pub fn granule(&self, rank: usize, index: usize) -> usize {
        assert!(index < GRANULES, "granule {index} of {GRANULES}");
        self.base(rank) + self.arena + index * GRANULE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        for n in [1, 2, 3, 64, 100, 5000] {
            let l = Layout::new(n);
            let last = n - 1;
            let marks = [
                l.sleep(last),
                l.openings(last),
                l.opened(last, 0),
                l.turn(last, last),
                l.credit(last, 0),
                l.share(last, 0),
                l.ring(0, last),
                l.granule(last, 0),
                l.total(),
            ];
            assert!(marks.windows(2).all(|w| w[0] < w[1]), "{n}: {marks:?}");
            assert!(
                l.opened(last, last) + 4 <= l.turn(last, last)
                    && l.turn(last, last) + LINE <= l.credit(last, 0)
            );
            assert!(l.credit(last, n - 1) + LINE <= l.share(last, 0));
            assert!(l.ring(n - 1, last) + RING_BYTES <= l.granule(last, 0));
            assert_eq!(l.granule(last, GRANULES - 1) + GRANULE, l.total());
        }
    }
}
