//! Shares: a few words that both ends of one transfer may change atomically, as verbs' fetch-and-add does.

use crate::device::Rank;

/// A share: a few atomic words that belong to one transfer, in the memory of `owner`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The rank that opened it.
    pub owner: Rank,
    /// Its index there.
    pub index: u32,
}

/// The words of a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum ShareWord {
    /// Address of the partner's buffer; 0 until it is known.
    Partner = 0,
    /// What both sides have claimed; how it is counted is the protocol's business.
    Claim = 1,
    /// Bytes that have been moved.
    Done = 2,
    /// How many of the two sides have left for good.
    Left = 3,
    /// Length the partner agreed to, in bytes.
    Length = 4,
    /// What one side has failed in, or may not do; how it is counted is the protocol's business.
    Failed = 5,
    /// The receive operation whose RTR may be taken; 0 once it is taken or withdrawn.
    Open = 6,
}

impl ShareWord {
    /// All words.
    pub const ALL: [ShareWord; 7] = [
        ShareWord::Partner,
        ShareWord::Claim,
        ShareWord::Done,
        ShareWord::Left,
        ShareWord::Length,
        ShareWord::Failed,
        ShareWord::Open,
    ];
}

/// The shares that a rank can open, and those of others that it can change.
pub trait Shares {
    /// Opens a share; `None` when all are in use.
    fn open(&self) -> Option<u32>;
    /// Number of shares per rank: an index at or above it is malformed.
    fn count(&self) -> u32;
    /// Adds to a word of a share, modulo 2^64, and returns what it held before.
    fn add(&self, share: Share, word: ShareWord, value: u64) -> u64;
    /// Sets a word of a share to 0 if it is still `held`; whether it was.
    fn take(&self, share: Share, word: ShareWord, held: u64) -> bool;
    /// This rank will change a share very soon.
    #[inline]
    fn will_change(&self, _share: Share) {}
    /// Reads a word of a share.
    fn load(&self, share: Share, word: ShareWord) -> u64;
    /// Sets a word of a share.
    fn store(&self, share: Share, word: ShareWord, value: u64);
    /// Sets words of a share, in this order.
    #[inline]
    fn store_all(&self, share: Share, words: &[(ShareWord, u64)]) {
        words.iter().for_each(|(word, value)| self.store(share, *word, *value));
    }
}

/// The shares of a device that has none: there is no value of this type.
#[derive(Clone, Copy, Debug)]
pub enum NoShares {}

impl Shares for NoShares {
    fn open(&self) -> Option<u32> {
        match *self {}
    }
    fn count(&self) -> u32 {
        match *self {}
    }
    fn add(&self, _share: Share, _word: ShareWord, _value: u64) -> u64 {
        match *self {}
    }
    fn take(&self, _share: Share, _word: ShareWord, _held: u64) -> bool {
        match *self {}
    }
    fn load(&self, _share: Share, _word: ShareWord) -> u64 {
        match *self {}
    }
    fn store(&self, _share: Share, _word: ShareWord, _value: u64) {
        match *self {}
    }
}
