//! Buffers that early receivers have offered (RTRs), and that no message has met.

use std::collections::VecDeque;
use wire::long::RAILS;

/// By what a sender may write into a buffer that is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// A share of the receiver.
    Share(u32),
    /// Registered, with a key for each adapter.
    Keys([u32; RAILS]),
}

/// A buffer that a peer has offered for a message with a tag in a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rtr {
    pub context: u64,
    pub tag: i32,
    /// The receive.
    pub op: u32,
    pub addr: u64,
    pub len: u64,
    pub memory: Memory,
}

impl Rtr {
    fn is_for(&self, context: u64, tag: i32) -> bool {
        self.context == context && self.tag == tag
    }
}

/// What one peer has offered, oldest first. Those of an envelope are taken in the order in which they came. A peer that
/// has offered nothing holds a word of memory for it.
#[derive(Debug, Default)]
#[allow(clippy::box_collection)] // it lies in what is kept of each peer, of which most offer nothing
pub(crate) struct Rtrs(Option<Box<VecDeque<Rtr>>>);

impl Rtrs {
    fn iter(&self) -> impl Iterator<Item = &Rtr> {
        self.0.iter().flat_map(|all| all.iter())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One has come.
    pub fn push(&mut self, rtr: Rtr) {
        self.0.get_or_insert_default().push_back(rtr);
    }

    /// The one that the next message of an envelope meets.
    pub fn next(&self, context: u64, tag: i32) -> Option<&Rtr> {
        self.iter().find(|rtr| rtr.is_for(context, tag))
    }

    /// Takes that one.
    pub fn take(&mut self, context: u64, tag: i32) -> Option<Rtr> {
        let at = self.iter().position(|rtr| rtr.is_for(context, tag))?;
        self.0.as_mut()?.remove(at)
    }

    /// Keeps those of which that is true; how many went.
    fn keep(&mut self, is_good: impl Fn(&Rtr) -> bool) -> usize {
        let before = self.len();
        self.0.iter_mut().for_each(|all| all.retain(&is_good));
        before - self.len()
    }

    /// Keeps those of an envelope of which that is true; how many they are.
    pub fn retain(&mut self, context: u64, tag: i32, is_good: impl Fn(&Rtr) -> bool) -> usize {
        self.keep(|rtr| !rtr.is_for(context, tag) || is_good(rtr));
        self.iter().filter(|rtr| rtr.is_for(context, tag)).count()
    }

    /// Drops those of an envelope; how many they were.
    pub fn drop_all(&mut self, context: u64, tag: i32) -> usize {
        self.keep(|rtr| !rtr.is_for(context, tag))
    }

    /// The receiver takes that of a receive back; whether it was still there.
    pub fn give_up(&mut self, op: u32) -> bool {
        self.keep(|rtr| rtr.op != op) > 0
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtr(tag: i32, op: u32) -> Rtr {
        Rtr { context: 1, tag, op, addr: 0, len: 8, memory: Memory::Share(op) }
    }

    /// Envelopes do not get into each other's way, and within one the order is that of the receives.
    #[test]
    fn each_envelope_has_its_order() {
        let mut rtrs = Rtrs::default();
        [rtr(5, 1), rtr(6, 2), rtr(5, 3), rtr(6, 4), rtr(5, 5)].into_iter().for_each(|rtr| rtrs.push(rtr));
        assert!(rtrs.give_up(3) && !rtrs.give_up(3) && rtrs.next(2, 5).is_none());
        assert_eq!(rtrs.take(1, 6).map(|rtr| rtr.op), Some(2));
        assert_eq!(rtrs.next(1, 5).map(|rtr| rtr.op), Some(1));
        assert_eq!(rtrs.retain(1, 5, |rtr| rtr.op != 1), 1);
        assert_eq!((rtrs.drop_all(1, 5), rtrs.drop_all(1, 5), rtrs.len()), (1, 0, 1));
    }
}
