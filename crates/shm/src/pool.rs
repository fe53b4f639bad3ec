//! The slots of this rank's pool: a stack, so that few pages are ever touched.

use crate::layout::SLOTS;

/// Free slots. A slot in flight belongs to the frame at one ring position and comes back when
/// the reader's credit passes that position.
pub struct Pool {
    free: Vec<u8>,
    backed: u64,
}

impl Pool {
    /// All slots free, none backed by memory yet.
    pub fn new() -> Pool {
        Pool { free: (0..SLOTS as u8).rev().collect(), backed: 0 }
    }

    /// Number of free slots.
    #[inline]
    pub fn available(&self) -> usize {
        self.free.len()
    }

    /// Takes the slot that was freed last; true if it has never been used before.
    #[inline]
    pub fn take(&mut self) -> Option<(u8, bool)> {
        let slot = self.free.pop()?;
        let fresh = self.backed & 1 << slot == 0;
        self.backed |= 1 << slot;
        Some((slot, fresh))
    }

    /// Gives a slot back.
    #[inline]
    pub fn give(&mut self, slot: u8) {
        debug_assert!(!self.free.contains(&slot));
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_handed_out_once() {
        let mut pool = Pool::new();
        let taken: std::collections::BTreeSet<u8> = (0..SLOTS).map(|_| pool.take().unwrap().0).collect();
        assert_eq!((taken.len(), pool.take()), (SLOTS, None));
        pool.give(3);
        assert_eq!(pool.take(), Some((3, false)));
    }
}
