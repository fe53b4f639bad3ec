//! Blocks that two ranks lend each other: the next frame to a peer is written where its last one was read.
//!
//! The lines of a block that has just been read lie in the caches of its reader, and to write them costs no transfer, only word to
//! the other core that its copies are void. A block of one's own that the peer has read lies in the peer's caches or, if it has not
//! been used for long, in a level further away (`pool.rs`). So in an exchange the block stays with who has read it:
//!
//! ```text
//! sender, answering      lends the block: it comes back with no credit, but stands under a number (a slot) until
//! reader                 writes its own next frame there, which says so, or gives it back: a bit of a word changes
//! ```
//!
//! Who reads a frame in a block owes one, and who owes one lends: a stream one way lends nothing.

use crate::pool::Block;
use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks that one rank may have lent one peer: as many frames as each may send the other before it reads.
pub const SLOTS: usize = 4;

/// Whose block a frame lies in, and who has it once the frame has been read: four bits, which another rank may have written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Whose(u8);

impl Whose {
    /// The sender's, who gets it back with the credit.
    pub const SENDERS: Whose = Whose(0);
    const SLOT: u8 = SLOTS as u8 - 1;
    const LENT: u8 = 4;
    const READERS: u8 = 8;

    /// The sender's, and the reader keeps it, by the number of its slot.
    pub fn lent(slot: u8) -> Whose {
        Whose(slot | Whose::LENT)
    }

    /// The reader's, which was lent the sender by that number.
    pub fn readers(slot: u8) -> Whose {
        Whose(slot | Whose::READERS)
    }

    /// The number in which it is sent.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0.into()
    }

    /// From that, of which four bits count.
    #[inline(always)]
    pub fn from_bits(bits: u64) -> Whose {
        Whose(bits as u8 & 15)
    }

    /// Whether it is the reader's.
    pub fn is_readers(self) -> bool {
        self.0 & Whose::READERS != 0
    }

    /// The number by which it is lent.
    pub fn slot(self) -> u8 {
        self.0 & Whose::SLOT
    }
}

/// A block that this rank may write a frame to the peer into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// Of its own arena, back from the peer.
    Ours(Block),
    /// The peer's, lent by this number.
    Theirs(u8, Block),
}

impl Held {
    fn block(self) -> Block {
        match self {
            Held::Ours(block) | Held::Theirs(_, block) => block,
        }
    }
}

/// What two ranks have lent each other, as one of them knows it.
pub struct Lending {
    /// Blocks of this rank that the peer has, by slot.
    lent: [Block; SLOTS],
    /// Blocks that were read, the one read last at the end.
    held: Vec<Held>,
    /// Frames in blocks that were read and not answered yet.
    owed: u32,
    /// A bit per slot, which changes when its block is given back: for blocks of this rank, and for the peer's.
    back: &'static AtomicU32,
    give: &'static AtomicU32,
    /// What `back` was when it was looked at last.
    heard: u32,
}

impl Lending {
    /// Nothing lent; the peer writes `back`, this rank `give`, both 0.
    pub fn new(back: &'static AtomicU32, give: &'static AtomicU32) -> Lending {
        Lending { lent: [Block::NONE; SLOTS], held: Vec::new(), owed: 0, back, give, heard: 0 }
    }

    /// Whether there is no exchange: no block is held, and no frame to be answered.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.owed == 0 && self.held.is_empty()
    }

    /// A frame in a block has been read.
    #[inline]
    pub fn read(&mut self) {
        self.owed = (self.owed + 1).min(SLOTS as u32);
    }

    /// A frame in a block is sent: whether it is the answer to one.
    #[inline]
    pub fn answers(&mut self) -> bool {
        let answers = self.owed > 0;
        self.owed = self.owed.saturating_sub(1);
        answers
    }

    /// The block read last that has room for `len` bytes; it is held no longer.
    #[inline]
    pub fn take(&mut self, len: usize) -> Option<Held> {
        let at = self.held.iter().rposition(|held| held.block().bytes() >= len)?;
        Some(self.held.remove(at))
    }

    /// The block that has been held longest, which is to be given back.
    #[inline]
    pub fn drop_oldest(&mut self) -> Option<Held> {
        (!self.held.is_empty()).then(|| self.held.remove(0))
    }

    /// One more is held; the result is one that is to be given back for it.
    #[inline]
    pub fn hold(&mut self, held: Held) -> Option<Held> {
        let oldest = if self.held.len() == SLOTS { self.drop_oldest() } else { None };
        self.held.push(held);
        oldest
    }

    /// A number by which a block of this rank can be lent, if there is one.
    #[inline]
    pub fn slot(&self) -> Option<u8> {
        self.lent.iter().position(|block| *block == Block::NONE).map(|slot| slot as u8)
    }

    /// Lends it by a number that [`Lending::slot`] gave.
    #[inline]
    pub fn lend(&mut self, slot: u8, block: Block) {
        self.lent[usize::from(slot)] = block;
    }

    /// The block that was lent by this number, if one is.
    #[inline]
    pub fn lent(&self, slot: u8) -> Option<Block> {
        self.lent.get(usize::from(slot)).copied().filter(|block| *block != Block::NONE)
    }

    /// A frame has come back in the block of this number, which was lent.
    #[inline]
    pub fn comes_back(&mut self, slot: u8) {
        self.lent[usize::from(slot)] = Block::NONE;
    }

    /// Gives a block of the peer's back without a frame in it; all that was to be read there has been read.
    pub fn give_back(&mut self, slot: u8) {
        let told = self.give.load(Ordering::Relaxed); // which nobody else writes
        self.give.store(told ^ 1 << slot, Ordering::Release);
    }

    /// Whether blocks of this rank are lent.
    #[inline(always)]
    pub fn has_lent(&self) -> bool {
        self.lent != [Block::NONE; SLOTS]
    }

    /// A block that the peer has given back without a frame in it; an error if that was not lent.
    pub fn given_back(&mut self) -> Option<Result<Block, ()>> {
        let changed = self.back.load(Ordering::Acquire) ^ self.heard;
        if changed == 0 {
            return None;
        }
        let slot = changed.trailing_zeros() as u8;
        self.heard ^= 1 << slot;
        let Some(block) = self.lent(slot) else { return Some(Err(())) };
        self.comes_back(slot);
        Some(Ok(block))
    }
}
