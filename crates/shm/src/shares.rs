//! The shares of a rank in the segment.

use crate::bytes::{ask_to_write, prefetches};
use crate::layout::{LINE, Layout, SHARES};
use crate::link::word64;
use crate::segment::Segment;
use crate::sync::{AtomicU64, Ordering};
use fabric::{Rank, Share, ShareWord, Shares};
use std::cell::Cell;

/// All shares of the job, as one rank sees them.
///
/// The segment is the device's that owns this value, and is dropped after it.
pub struct ShmShares {
    me: Rank,
    /// How many ranks have some, and the address of the first one.
    ranks: usize,
    first: usize,
    /// Which of this rank's have ever been opened, and which one to look at first.
    used: [Cell<bool>; SHARES],
    next: Cell<usize>,
}

impl ShmShares {
    /// Those of rank `me`, none of which is open.
    pub fn new(me: Rank, layout: &Layout, segment: &Segment) -> ShmShares {
        let used = [const { Cell::new(false) }; SHARES];
        let first = segment.at(layout.shares());
        ShmShares { me, ranks: layout.ranks(), first, used, next: Cell::new(0) }
    }

    /// Those of this rank are what they were before, when it was alone and called itself 0. Nobody else knows any of them.
    pub fn take_over(&self, before: &ShmShares) {
        for (index, used) in before.used.iter().enumerate().filter(|(_, used)| used.get()) {
            let [old, new] = [before, self].map(|all| Share { owner: all.me, index: index as u32 });
            ShareWord::ALL.iter().for_each(|word| self.store(new, *word, before.load(old, *word)));
            self.used[index].set(used.get());
        }
        self.next.set(before.next.get());
    }

    /// Address of the line of a share.
    #[inline]
    fn line(&self, share: Share) -> usize {
        let (owner, index) = (share.owner, share.index as usize);
        assert!(owner < self.ranks && index < SHARES, "share {index} of rank {owner}");
        self.first + (owner * SHARES + index) * LINE
    }

    #[inline]
    fn word(&self, share: Share, word: ShareWord) -> &AtomicU64 {
        self.word_of(self.line(share), word)
    }

    /// A word of the share whose line lies there.
    #[inline]
    fn word_of(&self, line: usize, word: ShareWord) -> &AtomicU64 {
        // SAFETY: an aligned word of a share line inside the segment, which outlives `self`.
        unsafe { word64(line + word as usize * 8) }
    }
}

impl Shares for ShmShares {
    fn open(&self) -> Option<u32> {
        // Those opened longest ago are free first: a look at one in use costs a cache miss.
        for index in (0..SHARES).map(|i| (self.next.get() + i) % SHARES) {
            let share = Share { owner: self.me, index: index as u32 };
            if self.used[index].get() && self.load(share, ShareWord::Left) < 2 {
                continue;
            }
            self.used[index].set(true);
            self.next.set((index + 1) % SHARES);
            let line = self.line(share);
            ShareWord::ALL.iter().for_each(|word| self.word_of(line, *word).store(0, Ordering::Release));
            return Some(index as u32);
        }
        None
    }

    fn count(&self) -> u32 {
        SHARES as u32
    }

    #[inline]
    fn add(&self, share: Share, word: ShareWord, value: u64) -> u64 {
        self.word(share, word).fetch_add(value, Ordering::AcqRel)
    }

    #[inline]
    fn take(&self, share: Share, word: ShareWord, held: u64) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        self.word(share, word).compare_exchange(held, 0, order.0, order.1).is_ok()
    }

    #[inline]
    fn will_change(&self, share: Share) {
        if prefetches() {
            ask_to_write(self.line(share));
        }
    }

    #[inline]
    fn load(&self, share: Share, word: ShareWord) -> u64 {
        self.word(share, word).load(Ordering::Acquire)
    }

    #[inline]
    fn store(&self, share: Share, word: ShareWord, value: u64) {
        self.word(share, word).store(value, Ordering::Release);
    }

    #[inline]
    fn store_all(&self, share: Share, words: &[(ShareWord, u64)]) {
        let line = self.line(share);
        words.iter().for_each(|(word, value)| self.word_of(line, *word).store(*value, Ordering::Release));
    }
}
