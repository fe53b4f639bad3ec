//! RTRs between this rank and one peer: which message each of them belongs to.
//!
//! A receiver that is there first offers its buffer (RTR). Matching stays its business, so the sender takes an offer only
//! if it is certain that the receiver would have matched that message with that receive. For this an RTR says how many
//! messages of the sender had been taken in (`seen`), and how many earlier receives for the same envelope are posted, all of
//! them with an RTR (`earlier`). The sender counts the messages of that envelope that have left since, `met`: each of them
//! meets one of those receives, in order. So an RTR belongs
//! - to the next message without one, if `met` and the RTRs held for the envelope are `earlier` together;
//! - to an RTS that is out, if `earlier` messages of the envelope left between `seen` and it: both have crossed;
//! - else to a message that goes its own way, or to nobody knows whom: it is dropped.
//!
//! The receiver finds out that both have crossed as well: an RTS says how many RTRs had come when it left. What each side
//! keeps for that is bounded, and both know the bound: [`DEPTH`].
//!
//! Why it is safe stands in `docs/protocols/early-receiver.md`.

use crate::message::op::OpId;
use std::collections::VecDeque;
use wire::long::RAILS;

/// RTRs kept of a peer; more are dropped, which costs a handshake, not correctness.
const HELD_MAX: usize = 64;
/// RTRs in a row that no rendezvous met, after which the peer gets none until one comes from it.
const MISSES_MAX: u8 = 8;
/// An RTS and an RTR that have crossed are recognised if fewer messages lie between what the RTR has seen and the RTS.
pub(crate) const DEPTH: u32 = 32;
/// RTRs of which it is not known that they have come. Far below the range of what an RTS says of them.
const UNHEARD_MAX: u32 = 1 << 11;
/// What an RTS says of the number of RTRs that had come.
const NUMBER_MASK: u32 = (1 << 13) - 1;

/// By what a sender may write into a buffer that is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// A share of the receiver.
    Share(u32),
    /// Registered, with a key for each adapter.
    Keys([u32; RAILS]),
}

/// A buffer that a peer has offered for messages with a tag in a context.
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

/// An RTS that has left and that an RTR may answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    op: OpId,
    context: u64,
    tag: i32,
    len: u64,
    /// Which message of this rank it is.
    number: u32,
    /// Of the messages before it those with the same envelope, a bit each, the last one first.
    before: u32,
}

/// What becomes of an RTR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// It waits for its message.
    Held,
    /// Its message is this one, whose RTS is out.
    Answers(OpId),
    /// It is of no use.
    Dropped,
}

/// RTRs from and to one peer.
#[derive(Debug, Default)]
pub(crate) struct Rtrs {
    /// Those that have come and wait for their message, oldest first.
    held: Vec<Rtr>,
    /// Context and tag of the last messages that left, the last one first.
    left: VecDeque<(u64, i32)>,
    /// From which message on they are kept.
    since: Option<u32>,
    asked: Vec<Asked>,
    /// How many have come (wraps).
    came: u32,
    /// How many have been sent, and how many of them are known to have come (both wrap).
    numbered: u32,
    known: u32,
    /// Of those sent, how many in a row met no rendezvous.
    misses: u8,
}

impl Rtrs {
    /// Keeps account of what leaves from here on, this many messages having left.
    pub fn watch(&mut self, sent: u32) {
        self.since = self.since.or(Some(sent));
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// An RTR has come that had seen so many of the `sent` messages; `waits` if some wait for room.
    pub fn on_rtr(&mut self, rtr: Rtr, seen: u32, earlier: u32, sent: u32, waits: bool) -> Fate {
        self.came = self.came.wrapping_add(1);
        if let Some(at) = self.asked.iter().position(|asked| asked.is_met_by(&rtr, seen, earlier)) {
            let asked = self.asked.remove(at);
            return if asked.len <= rtr.len { Fate::Answers(asked.op) } else { Fate::Dropped };
        }
        let unseen = sent.wrapping_sub(seen) as usize;
        if waits || unseen > self.left.len() || self.held.len() >= HELD_MAX {
            return Fate::Dropped;
        }
        let met = self.left.iter().take(unseen).filter(|left| **left == (rtr.context, rtr.tag)).count();
        let held = self.held.iter().filter(|held| held.is_for(rtr.context, rtr.tag)).count();
        if met + held != earlier as usize {
            return Fate::Dropped;
        }
        self.held.push(rtr);
        Fate::Held
    }

    /// The RTR that the next message belongs to.
    pub fn next(&self, context: u64, tag: i32) -> Option<&Rtr> {
        self.held.iter().find(|rtr| rtr.is_for(context, tag))
    }

    /// Takes it: a message belongs to it, whether it uses it or not.
    pub fn take(&mut self, context: u64, tag: i32) -> Option<Rtr> {
        let at = self.held.iter().position(|rtr| rtr.is_for(context, tag))?;
        Some(self.held.remove(at))
    }

    /// Keeps those of an envelope that are still good.
    pub fn retain(&mut self, context: u64, tag: i32, is_good: impl Fn(&Rtr) -> bool) {
        self.held.retain(|rtr| !rtr.is_for(context, tag) || is_good(rtr));
    }

    /// The receiver takes an RTR back; whether no message has it.
    pub fn give_up(&mut self, op: u32) -> bool {
        let before = self.held.len();
        self.held.retain(|rtr| rtr.op != op);
        self.held.len() < before
    }

    /// How many have come, as an RTS says it; and whether enough is known of the messages before it for an RTR to
    /// answer it.
    pub fn came(&self) -> (u16, bool) {
        let covers = self.left.len() >= DEPTH as usize || self.since == Some(0);
        ((self.came & NUMBER_MASK) as u16, covers)
    }

    /// A message has left after so many; its operation and length if it is an RTS that an RTR may answer.
    pub fn left(&mut self, number: u32, context: u64, tag: i32, rts: Option<(OpId, u64)>) {
        if self.since.is_none() {
            return;
        }
        if let Some((op, len)) = rts {
            let same = self.left.iter().enumerate().filter(|(_, left)| **left == (context, tag));
            let before = same.fold(0, |bits, (at, _)| bits | 1u32 << at);
            self.asked.push(Asked { op, context, tag, len, number, before });
        }
        self.left.push_front((context, tag));
        self.left.truncate(DEPTH as usize);
    }

    /// An RTS is answered in another way.
    pub fn answered(&mut self, op: OpId) {
        self.asked.retain(|asked| asked.op != op);
    }

    /// The number of the next RTR that is sent; `None` if none may be.
    pub fn number(&self) -> Option<u32> {
        let unheard = self.numbered.wrapping_sub(self.known);
        (self.misses < MISSES_MAX && unheard < UNHEARD_MAX).then_some(self.numbered)
    }

    /// It has left.
    pub fn was_sent(&mut self) {
        self.numbered = self.numbered.wrapping_add(1);
    }

    /// An RTS has come and says how many had come: whether the RTR of this number crossed it.
    pub fn heard(&mut self, came: u16) {
        self.known = self.numbered.wrapping_sub(self.unheard(came));
        self.rendezvous_came();
    }

    /// Whether the RTR of this number crossed an RTS that said how many had come.
    pub fn has_crossed(&self, number: u32, came: u16) -> bool {
        self.numbered.wrapping_sub(number) <= self.unheard(came)
    }

    fn unheard(&self, came: u16) -> u32 {
        self.numbered.wrapping_sub(came.into()) & NUMBER_MASK
    }

    /// The peer sends long messages: RTRs may pay.
    pub fn rendezvous_came(&mut self) {
        self.misses = 0;
    }

    /// One has come to nothing.
    pub fn was_missed(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }
}

impl Asked {
    /// Whether this RTS meets the receive of an RTR: `earlier` messages before it met earlier ones.
    fn is_met_by(&self, rtr: &Rtr, seen: u32, earlier: u32) -> bool {
        let depth = self.number.wrapping_sub(seen);
        rtr.is_for(self.context, self.tag)
            && depth < DEPTH
            && (self.before & ((1 << depth) - 1)).count_ones() == earlier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtr(tag: i32, op: u32) -> Rtr {
        Rtr { context: 1, tag, op, addr: 0, len: 100, memory: Memory::Keys([0; RAILS]) }
    }

    fn watched(sent: u32) -> Rtrs {
        let mut rtrs = Rtrs::default();
        rtrs.watch(sent);
        rtrs
    }

    /// What crosses an RTR with another tag leaves it good; what has the same tag meets its receive.
    #[test]
    fn an_rtr_is_held_unless_a_message_has_met_its_receive() {
        let mut rtrs = watched(7);
        rtrs.left(7, 1, 5, None);
        assert_eq!(rtrs.on_rtr(rtr(6, 1), 7, 0, 8, false), Fate::Held);
        assert_eq!(rtrs.on_rtr(rtr(5, 2), 7, 0, 8, false), Fate::Dropped);
        assert_eq!(rtrs.on_rtr(rtr(5, 3), 7, 1, 8, false), Fate::Held);
        assert_eq!(rtrs.on_rtr(rtr(5, 4), 7, 3, 8, false), Fate::Dropped, "one before it is missing");
        assert_eq!(rtrs.on_rtr(rtr(9, 5), 6, 0, 8, false), Fate::Dropped, "what left before is not known");
        assert_eq!(rtrs.on_rtr(rtr(9, 6), 8, 0, 8, true), Fate::Dropped, "some wait for room");
        assert_eq!(rtrs.take(1, 5).map(|rtr| rtr.op), Some(3));
        assert!(rtrs.take(1, 5).is_none() && rtrs.give_up(1) && !rtrs.give_up(1) && rtrs.is_empty());
    }

    /// Of three messages the second is an RTS that waits: it belongs to the receive behind that of the first.
    #[test]
    fn an_rtr_answers_the_rts_that_meets_its_receive() {
        for (earlier, fate) in [(0, Fate::Dropped), (1, Fate::Answers(OpId(4))), (2, Fate::Held)] {
            let mut rtrs = watched(0);
            rtrs.left(0, 1, 5, None);
            rtrs.left(1, 1, 6, None);
            rtrs.left(2, 1, 5, Some((OpId(4), 100)));
            assert_eq!(rtrs.on_rtr(rtr(5, 1), 0, earlier, 3, false), fate, "{earlier}");
        }
        let mut rtrs = watched(0);
        rtrs.left(0, 1, 5, Some((OpId(4), 101)));
        assert_eq!(rtrs.on_rtr(rtr(5, 1), 0, 0, 1, false), Fate::Dropped, "the buffer is too short");
        rtrs.left(1, 1, 5, Some((OpId(5), 100)));
        rtrs.answered(OpId(5));
        assert_eq!(rtrs.on_rtr(rtr(5, 2), 1, 0, 2, false), Fate::Dropped);
    }

    /// Both sides come to the same: an RTS that many messages separate from what the RTR has seen is not answered.
    #[test]
    fn no_rts_is_answered_of_which_too_little_is_known() {
        let mut rtrs = watched(1000);
        assert!(!rtrs.came().1);
        (1000..1000 + DEPTH).for_each(|number| rtrs.left(number, 1, 7, None));
        assert!(rtrs.came().1);
        rtrs.left(1032, 1, 5, Some((OpId(4), 100)));
        assert_eq!(rtrs.on_rtr(rtr(5, 1), 1000, 0, 1033, false), Fate::Dropped);
        assert_eq!(rtrs.on_rtr(rtr(5, 1), 1001, 0, 1033, false), Fate::Answers(OpId(4)));
    }

    #[test]
    fn an_rts_says_which_rtrs_it_has_crossed() {
        let mut rtrs = Rtrs { numbered: u32::MAX - 1, known: u32::MAX - 1, ..Rtrs::default() };
        for _ in 0..4 {
            assert!(rtrs.number().is_some());
            rtrs.was_sent();
        }
        // The first of the four had come.
        let came = (u32::MAX & NUMBER_MASK) as u16;
        let crossed: Vec<bool> =
            [u32::MAX - 1, u32::MAX, 0, 1].iter().map(|number| rtrs.has_crossed(*number, came)).collect();
        assert_eq!(crossed, [false, true, true, true]);
        rtrs.heard(came);
        assert_eq!(rtrs.known, u32::MAX);
        (0..MISSES_MAX).for_each(|_| rtrs.was_missed());
        assert!(rtrs.number().is_none());
        rtrs.heard(came);
        assert!(rtrs.number().is_some());
        (0..UNHEARD_MAX).for_each(|_| rtrs.was_sent());
        assert!(rtrs.number().is_none());
    }
}
