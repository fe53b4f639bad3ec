//! Where things lie in the segment.
//!
//! ```text
//! page 0     job: number of ranks that have mapped the segment, and of those without barriers; line 1 how often ranks got memory for blocks
//! control    per rank: line 0 where it sleeps, line 1 process id and probe, line 2 who began to send here last
//! opened     per rank: one word per rank that has begun to send here: who did before it
//! credits    per rank: one line per rank: how far that rank has read our ring to it, what reading costs, which blocks it gives back
//! shares     per rank: a line for each of 256
//! turns      per pair of ranks: seventeen lines: the cell both write in turn
//! rings      per rank: 64 cells per rank: what that rank sends here
//! arenas     per rank: 1024 granules of 4 KiB: payloads this rank sends
//! ```
//! Everything is zero at the start, nothing is touched before it is used: untouched pages cost
//! nothing. What is small of all ranks lies together: each process that has to do with many others needs
//! a page fault per page, and a page of page tables per 2 MiB.

use crate::pool::{GRANULE, GRANULES};
use crate::ring::{CELLS, Cell, TURN_LINES};

/// Page size assumed for the layout (the real one may be smaller, never larger than this helps).
pub const PAGE: usize = 4096;
/// Shares per rank.
pub const SHARES: usize = 256;
/// Bytes of a cache line.
pub const LINE: usize = 64;
const CONTROL_BYTES: usize = 4 * LINE;
/// Bytes of a ring.
pub const RING_BYTES: usize = CELLS * size_of::<Cell>();
/// Bytes of a turn cell.
pub const TURN_CELL: usize = TURN_LINES * size_of::<Cell>();
/// Rings of all ranks that are small: a sixty-fourth of what containers have by default, enough for 16 ranks.
const RINGS_AT_ONCE: usize = 1 << 20;

/// Where it is counted how often ranks have got memory for their blocks.
pub const GROWTH: usize = LINE;

/// Offsets for a job of `n` ranks.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    n: usize,
    opened: usize,
    credits: usize,
    shares: usize,
    turns: usize,
    rings: usize,
    arenas: usize,
}

impl Layout {
    /// The layout for `n` ranks.
    pub fn new(n: usize) -> Layout {
        let page_up = |len: usize| len.div_ceil(PAGE) * PAGE;
        let opened = PAGE + page_up(n * CONTROL_BYTES);
        let credits = opened + page_up(n * n * size_of::<u32>());
        let shares = credits + page_up(n * n * LINE);
        let turns = shares + n * SHARES * LINE;
        let rings = turns + page_up(n * n.saturating_sub(1) / 2 * TURN_CELL);
        let arenas = rings + n * n * RING_BYTES;
        Layout { n, opened, credits, shares, turns, rings, arenas }
    }

    /// Bytes of the whole segment.
    pub fn total(&self) -> usize {
        self.arenas + self.n * GRANULES * GRANULE
    }

    /// Bytes of what is small, from the beginning on: all but arenas, and without turn cells and rings where there are many.
    pub fn small(&self) -> usize {
        if self.arenas - self.rings <= RINGS_AT_ONCE { self.arenas } else { self.turns }
    }

    /// Row `rank` of a part that has `each` bytes per rank.
    #[inline]
    fn row(&self, part: usize, rank: usize, each: usize) -> usize {
        assert!(rank < self.n, "rank {rank} of {}", self.n);
        part + rank * each
    }

    /// As [`Layout::row`] the place for `other` in a part that has `each` bytes per pair of ranks.
    fn pair(&self, part: usize, rank: usize, other: usize, each: usize) -> usize {
        assert!(other < self.n, "rank {other} of {}", self.n);
        self.row(part, rank, self.n * each) + other * each
    }

    /// Where a rank sleeps.
    pub fn sleep(&self, rank: usize) -> usize {
        self.row(PAGE, rank, CONTROL_BYTES)
    }

    /// Process id (word 0), address of the probe (word 1) and its value (word 2), whether it says that it lives
    /// (word 3).
    pub fn identity(&self, rank: usize) -> usize {
        self.sleep(rank) + LINE
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.n
    }

    /// Who began to send to `rank` last.
    pub fn openings(&self, rank: usize) -> usize {
        self.sleep(rank) + 2 * LINE
    }

    /// Who began to send to `rank` before `from` did.
    pub fn opened(&self, rank: usize, from: usize) -> usize {
        self.pair(self.opened, rank, from, size_of::<u32>())
    }

    /// The turn cell of two ranks.
    pub fn turn(&self, a: usize, b: usize) -> usize {
        let (lower, higher) = (a.min(b), a.max(b));
        assert!(lower < higher && higher < self.n, "ranks {a} and {b} of {}", self.n);
        // Those of lower ranks with all above them come first.
        let before = lower * (2 * self.n - lower - 1) / 2;
        self.turns + (before + higher - lower - 1) * TURN_CELL
    }

    /// Credits that `reader` returns to `rank`.
    pub fn credit(&self, rank: usize, reader: usize) -> usize {
        self.pair(self.credits, rank, reader, LINE)
    }

    /// The word behind that: what reading has cost it.
    pub fn told(&self, rank: usize, reader: usize) -> usize {
        self.credit(rank, reader) + 8
    }

    /// The half word behind that: which of the blocks that it was lent it has given back.
    pub fn given_back(&self, rank: usize, reader: usize) -> usize {
        self.told(rank, reader) + 8
    }

    /// The shares of all ranks, a line each, in the order of the ranks.
    pub fn shares(&self) -> usize {
        self.shares
    }

    /// The ring from `from` to `to`.
    pub fn ring(&self, from: usize, to: usize) -> usize {
        self.pair(self.rings, to, from, RING_BYTES)
    }

    /// Granule `index` of the arena of `rank`.
    #[inline]
    pub fn granule(&self, rank: usize, index: usize) -> usize {
        assert!(index < GRANULES, "granule {index} of {GRANULES}");
        self.row(self.arenas, rank, GRANULES * GRANULE) + index * GRANULE
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
            let parts = [
                (l.sleep(0), l.openings(last) + LINE),
                (l.opened(0, 0), l.opened(last, last) + size_of::<u32>()),
                (l.credit(0, 0), l.credit(last, last) + LINE),
                (l.shares(), l.shares() + (last + 1) * SHARES * LINE),
                if n == 1 {
                    (l.ring(0, 0), l.ring(0, 0)) // there are none
                } else {
                    (l.turn(0, 1), l.turn(last - 1, last) + TURN_CELL)
                },
                (l.ring(0, 0), l.ring(last, last) + RING_BYTES),
                (l.granule(0, 0), l.granule(last, GRANULES - 1) + GRANULE),
            ];
            assert!(parts[0].0 >= PAGE && parts.windows(2).all(|two| two[0].1 <= two[1].0), "{n}: {parts:?}");
            assert_eq!(parts[6].1, l.total());
            assert!(parts.iter().all(|part| part.0 % PAGE == 0));
            let rings_end = if n <= 16 { parts[5].1 } else { parts[3].1 };
            assert!(
                l.small() >= rings_end
                    && l.small() <= l.granule(0, 0)
                    && (n <= 16) == (l.small() > l.ring(0, 0))
            );
            let pairs = |n: usize| (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)));
            for (at, (a, b)) in pairs(if n <= 64 { n } else { 0 }).enumerate() {
                assert_eq!([l.turn(a, b), l.turn(b, a)], [l.turn(0, 1) + at * TURN_CELL; 2]);
            }
            for rank in 1..n.min(100) {
                assert!(l.opened(rank - 1, last) + 4 <= l.opened(rank, 0));
                assert!(l.sleep(rank) - l.openings(rank - 1) >= LINE);
                assert_eq!(l.ring(0, rank) - l.ring(last, rank - 1), RING_BYTES);
            }
        }
    }
}
