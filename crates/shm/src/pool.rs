//! Memory of this rank for the payloads it sends: an arena of granules, handed out as blocks.
//!
//! Short frames get the lowest free granule, so that one that comes back is used again while it is in
//! the first-level cache. Longer ones get blocks in turn. A block that was used a moment ago lies in the
//! caches of the core that read it, and to write it costs the transfer of each of its lines; one that
//! comes round after 1 or 2 MiB has left them for the third level, which is nearer. Between near cores
//! that is a third of the time at 64 KiB (docs/results/stores.md).
//!
//! Payloads that are written past the caches have blocks of their own, the lowest free one: what such stores leave behind,
//! lines in no cache of the writer's, would make the next ordinary copy there look dear, and the other way round. They gain
//! nothing by going round, and a page that the reader has not touched yet would make them look dear.

use std::ops::Range;

/// Unit of the arena, and alignment of every block.
pub const GRANULE: usize = 4096;
/// Granules of the arena.
pub const GRANULES: usize = 1024;
/// Granules per word of a set.
const WORD: usize = u64::BITS as usize;
/// Granules for short frames, at the front.
const SHORT: usize = WORD;
/// Granules that long frames have at first, and the least they ever have.
const CYCLE_MIN: usize = 2 * MAX_BLOCK;
/// Granules for what is written past the caches, at the end.
const PAST: usize = 2 * MAX_BLOCK;
/// Granules of it that get memory at once.
const PAST_STEP: usize = 16;
/// Rounds after which they get twice as many.
const ROUNDS: u32 = 4;
/// Granules that may be lent at a time.
const MOST_LENT: usize = GRANULES / 4;
/// Granules of the largest block.
const MAX_BLOCK: usize = 1 << MAX_ORDER;
const MAX_ORDER: u32 = WORD.trailing_zeros();
/// Longest payload that goes through the granules used over and over; from the next chunk on blocks in
/// turn are faster.
pub const HOT: usize = GRANULE / 2;
/// Longest payload of a block.
pub const BLOCK_BYTES: usize = MAX_BLOCK * GRANULE;

/// `1 << order` granules that begin at a multiple of their number: packed into 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Block(u16);

impl Block {
    /// No block.
    pub const NONE: Block = Block(u16::MAX);
    const ORDER_SHIFT: u32 = 12;

    fn new(first: usize, order: u32) -> Block {
        Block(first as u16 | (order as u16) << Block::ORDER_SHIFT)
    }

    /// As another rank names it, if it lies in the arena.
    #[inline(always)]
    pub fn named(name: u16) -> Option<Block> {
        let block = Block(name);
        (block.first() + block.granules() <= GRANULES).then_some(block)
    }

    /// The name by which [`Block::named`] knows it.
    #[inline(always)]
    pub fn name(self) -> u16 {
        self.0
    }

    /// Its first granule.
    #[inline(always)]
    pub fn first(self) -> usize {
        (self.0 & ((1 << Block::ORDER_SHIFT) - 1)) as usize
    }

    /// Bytes it has.
    #[inline(always)]
    pub fn bytes(self) -> usize {
        GRANULE << self.order()
    }

    #[inline(always)]
    fn granules(self) -> usize {
        1 << self.order()
    }

    #[inline(always)]
    fn order(self) -> u32 {
        (self.0 >> Block::ORDER_SHIFT) as u32
    }

    /// Its word in a set, and its bits there.
    fn bits(self) -> (usize, u64) {
        (self.first() / WORD, (u64::MAX >> (WORD - (1 << self.order()))) << (self.first() % WORD))
    }
}

/// For what a block is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// A short payload: one of those that are used over and over, if it is at most a granule.
    Hot,
    /// A long one: the next in turn.
    InTurn,
    /// One that is written past the caches.
    Past,
}

/// The longest round of a rank's blocks: longer ones were slower on all processors tried (docs/results/stores.md), since
/// what is written, what is read and the application's data share the second-level cache.
const CYCLE_MAX: usize = 2 << 20;

/// After how many bytes a rank's blocks come round, of `n` ranks: those of all together fill a quarter of
/// the last-level cache at most, so that a block is still there when it is used again.
pub fn cycle(n: usize) -> usize {
    // SAFETY: the call takes a number alone.
    let bytes = if cfg!(miri) { 0 } else { unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) } };
    let cache = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(16 << 20);
    (cache / 4 / n).min(CYCLE_MAX)
}

/// The blocks. One in flight belongs to the frame at one ring position and comes back when the
/// reader's credit passes that position.
pub struct Pool {
    /// Blocks that more than one frame refers to, and how many do.
    shared: Vec<(Block, usize)>,
    used: [u64; GRANULES / WORD],
    backed: [u64; GRANULES / WORD],
    in_flight: usize,
    /// Granules that are lent: not in flight.
    lent: usize,
    /// Where the next long block is looked for.
    cursor: usize,
    /// Where long blocks begin anew while there are free ones before.
    end: usize,
    /// The most that becomes.
    end_max: usize,
    /// How often they have, with this end.
    rounds: u32,
}

impl Pool {
    /// All free, none but the first granule backed by memory yet; blocks for long frames come round after `cycle` bytes, earlier at
    /// the beginning.
    pub fn new(cycle: usize) -> Pool {
        let cycle = (cycle / GRANULE / MAX_BLOCK * MAX_BLOCK).max(CYCLE_MIN);
        let mut backed = [0; GRANULES / WORD];
        backed[0] = 1;
        Pool {
            shared: Vec::new(),
            used: [0; GRANULES / WORD],
            backed,
            in_flight: 0,
            lent: 0,
            cursor: SHORT,
            end: SHORT + CYCLE_MIN,
            end_max: (SHORT + cycle).min(GRANULES - PAST),
            rounds: 0,
        }
    }

    /// Granules in use.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// As [`Pool::take`] one of those that are used over and over, if one of them is free and backed.
    #[inline]
    pub fn take_hot(&mut self) -> Option<Block> {
        let free = !self.used[0] & self.backed[0];
        if free == 0 {
            return None;
        }
        self.used[0] |= free & free.wrapping_neg();
        self.in_flight += 1;
        Some(Block::new(free.trailing_zeros() as usize, 0))
    }

    /// Takes a block for `len` bytes, at most [`BLOCK_BYTES`].
    pub fn take(&mut self, len: usize, what_for: Use) -> Option<Block> {
        let free = !self.used[0];
        let block = if what_for == Use::Hot && len <= GRANULE && free != 0 {
            Block::new(free.trailing_zeros() as usize, 0)
        } else {
            let order = len.div_ceil(GRANULE).next_power_of_two().trailing_zeros();
            match what_for {
                Use::Past => self.free(GRANULES - PAST..GRANULES, order).or_else(|| self.in_turn(order)),
                Use::Hot | Use::InTurn => self.in_turn(order),
            }?
        };
        let (word, bits) = block.bits();
        self.used[word] |= bits;
        self.in_flight += block.granules();
        Some(block)
    }

    /// As [`Pool::take`] a block that has memory behind it already, whatever its place.
    pub fn take_backed(&mut self, len: usize) -> Option<Block> {
        let order = len.div_ceil(GRANULE).next_power_of_two().trailing_zeros();
        let mut blocks = (0..GRANULES).step_by(1 << order).map(|first| Block::new(first, order));
        let found = blocks.find(|block| {
            let (word, bits) = block.bits();
            (self.backed[word] & !self.used[word]) & bits == bits
        })?;
        let (word, bits) = found.bits();
        self.used[word] |= bits;
        self.in_flight += found.granules();
        Some(found)
    }

    /// The first free block among these granules.
    fn free(&self, among: Range<usize>, order: u32) -> Option<Block> {
        let mut blocks = among.step_by(1 << order).map(|first| Block::new(first, order));
        blocks.find(|block| {
            let (word, bits) = block.bits();
            self.used[word] & bits == 0
        })
    }

    fn in_turn(&mut self, order: u32) -> Option<Block> {
        let start = self.cursor.next_multiple_of(1 << order);
        if start >= self.end {
            self.rounds += 1;
            if self.rounds == ROUNDS {
                self.rounds = 0;
                self.end = (self.end + self.end - SHORT).min(self.end_max);
            }
        }
        let mut places = [start..self.end, SHORT..start.min(self.end), self.end..GRANULES].into_iter();
        let found = places.find_map(|among| self.free(among, order))?;
        self.cursor = found.first() + (1 << order);
        Some(found)
    }

    /// What is to be backed with memory before a block can be used: nothing, or granules from its first one
    /// on: the block, and in a round of blocks those that follow.
    #[inline]
    pub fn unbacked(&self, block: Block) -> usize {
        let (word, bits) = block.bits();
        if self.backed[word] & bits == bits {
            return 0;
        }
        let (first, least) = (block.first(), block.bytes() / GRANULE);
        match first {
            ..SHORT => least,
            _ if first >= GRANULES - PAST => least.max(PAST_STEP.min(GRANULES - first)),
            _ => self.end.saturating_sub(first).max(least),
        }
    }

    /// Notes that `granules` from the first of a block on are backed.
    pub fn back(&mut self, block: Block, granules: usize) {
        (block.first()..block.first() + granules).for_each(|at| self.backed[at / WORD] |= 1 << (at % WORD));
    }

    /// Says that `frames` refer to a block that was taken: as often it is given back.
    pub fn share(&mut self, block: Block, frames: usize) {
        self.shared.push((block, frames));
    }

    /// Lends a block that was taken: it is not in flight then, until it comes back. False if it is to be kept, for then too many
    /// would be away, or that through which frames go where there is no memory for others.
    #[inline]
    pub fn lend(&mut self, block: Block) -> bool {
        let lends = block.first() != 0 && self.lent + block.granules() <= MOST_LENT;
        if lends {
            self.lent += block.granules();
            self.in_flight -= block.granules();
        }
        lends
    }

    /// A block that was lent comes back, and is in flight until it is given back too.
    #[inline]
    pub fn comes_back(&mut self, block: Block) {
        self.lent -= block.granules();
        self.in_flight += block.granules();
    }

    /// Gives a block back.
    #[inline]
    pub fn give(&mut self, block: Block) {
        if !self.shared.is_empty() && self.is_still_shared(block) {
            return;
        }
        let (word, bits) = block.bits();
        debug_assert_eq!(self.used[word] & bits, bits);
        self.used[word] &= !bits;
        self.in_flight -= block.granules();
    }

    #[cold]
    fn is_still_shared(&mut self, block: Block) -> bool {
        let Some(at) = self.shared.iter().position(|(shared, _)| *shared == block) else { return false };
        self.shared[at].1 -= 1;
        let is_last = self.shared[at].1 == 0;
        if is_last {
            self.shared.swap_remove(at);
        }
        !is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_granule_is_handed_out_once() {
        for (len, what_for) in [
            (1, Use::Hot),
            (GRANULE, Use::Hot),
            (GRANULE, Use::InTurn),
            (3 * GRANULE, Use::InTurn),
            (BLOCK_BYTES, Use::InTurn),
            (GRANULE, Use::Past),
            (BLOCK_BYTES, Use::Past),
        ] {
            let mut pool = Pool::new(1 << 20);
            let taken: Vec<Block> = std::iter::from_fn(|| pool.take(len, what_for)).collect();
            let granules: BTreeSet<usize> =
                taken.iter().flat_map(|b| b.first()..b.first() + b.bytes() / GRANULE).collect();
            let expected = if what_for == Use::Hot { GRANULES } else { GRANULES - SHORT };
            assert_eq!((granules.len(), pool.in_flight()), (expected, expected), "{len}");
            assert!(taken.iter().all(|b| b.bytes() >= len && granules.last() < Some(&GRANULES)));
            pool.give(taken[3]);
            assert_eq!(pool.take(len, what_for), Some(taken[3]));
        }
    }

    #[test]
    fn short_frames_stay_and_long_ones_go_round() {
        let mut pool = Pool::new(1 << 20);
        let mut once = |len, what_for| {
            let block = pool.take(len, what_for).unwrap();
            pool.give(block);
            block.first()
        };
        assert_eq!([once(100, Use::Hot), once(100, Use::Hot)], [0, 0]);
        let begin: Vec<usize> = (0..8).map(|_| once(BLOCK_BYTES, Use::InTurn)).collect();
        assert_eq!(begin[..2], begin[2..4], "few at first");
        (0..100).for_each(|_| assert!(once(BLOCK_BYTES, Use::InTurn) >= SHORT));
        let cycle: Vec<usize> = (0..8).map(|_| once(BLOCK_BYTES, Use::InTurn)).collect();
        assert_eq!(cycle[..4], cycle[4..], "1 MiB has 4 of them");
        assert_eq!(cycle.iter().collect::<BTreeSet<_>>().len(), 4);
    }

    /// Neither touches what the other has written, as long as there is room; and all of it is there for both.
    #[test]
    fn what_goes_past_the_caches_has_blocks_of_its_own() {
        let mut pool = Pool::new(2 << 20);
        let mut once = |what_for| {
            let block = pool.take(4 * GRANULE, what_for).unwrap();
            let backed = pool.unbacked(block);
            pool.back(block, backed);
            pool.give(block);
            (block.first(), backed)
        };
        let (mut past, mut long) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..2000 {
            let (first, backed) = once(Use::Past);
            assert!(backed == 0 || backed == PAST_STEP);
            past.insert(first);
            long.insert(once(Use::InTurn).0);
        }
        assert_eq!((past, long.len()), (BTreeSet::from([GRANULES - PAST]), (2 << 20) / GRANULE / 4));
        assert!(long.iter().all(|first| *first < GRANULES - PAST));
    }

    #[test]
    fn a_shared_block_is_free_when_all_have_given_it_back() {
        let mut pool = Pool::new(1 << 20);
        let blocks = [3, 1, 2].map(|frames| {
            let block = pool.take(BLOCK_BYTES, Use::InTurn).unwrap();
            pool.share(block, frames);
            block
        });
        let granules = BLOCK_BYTES / GRANULE;
        for (block, left) in [(0, 3), (2, 3), (1, 2), (0, 2), (2, 1), (0, 0)] {
            pool.give(blocks[block]);
            assert_eq!(pool.in_flight(), left * granules);
        }
    }

    #[test]
    fn what_has_memory_is_found_wherever_it_lies() {
        let mut pool = Pool::new(1 << 20);
        let first = pool.take_backed(1).unwrap();
        assert_eq!((first.first(), pool.take_backed(1)), (0, None));
        let long = pool.take(3 * GRANULE, Use::InTurn).unwrap();
        pool.back(long, 4);
        pool.give(long);
        assert_eq!(pool.take_backed(5 * GRANULE), None);
        assert_eq!(pool.take_backed(4 * GRANULE), Some(long));
        pool.give(long);
        let short: Vec<Block> = std::iter::from_fn(|| pool.take_backed(GRANULE)).collect();
        assert_eq!((short.len(), pool.in_flight()), (4, 5));
    }

    #[test]
    fn memory_is_asked_for_once_and_for_a_whole_round() {
        let mut pool = Pool::new(1 << 20);
        let [short, long] = [(100, Use::Hot), (2 * GRANULE, Use::InTurn)]
            .map(|(len, what_for)| pool.take(len, what_for).unwrap());
        assert_eq!(
            [pool.unbacked(short), pool.unbacked(long)],
            [0, CYCLE_MIN],
            "the first granule has memory"
        );
        let short = pool.take(100, Use::Hot).unwrap();
        assert_eq!(pool.unbacked(short), 1);
        pool.back(short, 1);
        pool.back(long, CYCLE_MIN);
        let mut fresh = 0;
        for _ in 0..1000 {
            let block = pool.take(3 * GRANULE, Use::InTurn).unwrap();
            let granules = pool.unbacked(block);
            fresh += granules;
            pool.back(block, granules);
            pool.give(block);
        }
        assert_eq!((fresh, pool.unbacked(short)), ((1 << 20) / GRANULE - CYCLE_MIN, 0));
    }
}
