//! Operations that progress by looking.
//!
//! A window of messages leaves many offers that nobody has answered, and to ask all of them at every look takes longer than anything else about a
//! message. What was offered first is answered first, as a rule: so a look that has no time for all asks the oldest, and some of the others by
//! turns. Only if that brings nothing all are asked: the rank may sleep then.

use crate::message::op::OpId;
use std::collections::VecDeque;

/// Unanswered offers that a look asks that has no time for all: of the oldest, and of the others.
const OLDEST: usize = 4;
const TURN: usize = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Active {
    /// Offers that had no answer when they were asked last, the oldest first, and where the next turn begins.
    offers: VecDeque<OpId>,
    turn: usize,
    /// All others, the oldest first.
    pub others: Vec<OpId>,
}

impl Active {
    /// Whether there are none, by one comparison: each look of a receive for its message asks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.offers.len() | self.others.len() == 0
    }

    /// Whether offers wait for answers.
    pub fn has_offers(&self) -> bool {
        !self.offers.is_empty()
    }

    /// One more, that waits for an answer.
    pub fn offer(&mut self, id: OpId) {
        self.offers.push_back(id);
    }

    /// One more, of another kind.
    pub fn push(&mut self, id: OpId) {
        self.others.push(id);
    }

    /// Asks offers, or `all` of them, for their answers: those that have one, or are no offers any more, are among the others from here on;
    /// whether any were.
    pub fn ask(&mut self, all: bool, is_unanswered: impl Fn(OpId) -> bool) -> bool {
        let Active { offers, turn, others } = self;
        let before = others.len();
        let mut ask = |at: &mut usize, most: usize| {
            let end = at.saturating_add(most);
            while *at < end.min(offers.len()) {
                match is_unanswered(offers[*at]) {
                    true => *at += 1,
                    false => others.extend(offers.remove(*at)),
                }
            }
            *at < offers.len()
        };
        let mut oldest = 0;
        if ask(&mut oldest, if all { usize::MAX } else { OLDEST }) {
            *turn = (*turn).max(oldest);
            if !ask(turn, TURN) {
                *turn = 0;
            }
        }
        others.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(count: u32) -> Active {
        let mut active = Active::default();
        (0..count).for_each(|id| active.offer(OpId(id)));
        active
    }

    #[test]
    fn answers_in_order_are_found_at_once_and_others_soon() {
        let mut active = offers(1000);
        active.ask(false, |id| id.0 >= 7);
        assert_eq!(active.others, (0..7).map(OpId).collect::<Vec<_>>());
        for looks in 1.. {
            active.ask(false, |id| id.0 != 500);
            if active.others.len() > 7 {
                assert!(looks <= 993 / TURN + 1, "{looks}");
                break;
            }
        }
        assert_eq!(active.others[7], OpId(500));
        // The turns begin again.
        active.ask(true, |id| id.0 != 999);
        assert!((0..2 * 992 / TURN).any(|_| active.ask(false, |id| id.0 != 100)));
        assert_eq!(active.others[8..], [OpId(999), OpId(100)]);
        active.ask(true, |_| false);
        assert!(!active.has_offers() && active.others.len() == 1000 && !active.is_empty());
    }

    #[test]
    fn a_look_asks_few_of_many() {
        let active = std::cell::Cell::new(0);
        let mut many = offers(1000);
        many.ask(false, |_| {
            active.set(active.get() + 1);
            true
        });
        assert_eq!(active.get(), OLDEST + TURN);
    }
}
