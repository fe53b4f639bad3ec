//! Ranks that send to each other: who comes second must not copy before its own messages have left.
//!
//! A message that its receiver pulls alone is copied in the call that posts the receive, or a later one, if it is there by then: its sender waits
//! for nothing else. But where the receiver sends next, to the same rank or another one, that one waits for the copy before it may begin
//! its own, and what could be done side by side is done one after the other:
//!
//! ```text
//! rank 0   Irecv  Isend ──────── waits ────────── pull ────▶ end      Irecv  Isend ─────── pull ───▶ end
//! rank 1           Irecv ── pull ── Isend ─────── waits ───▶ end              Irecv Isend ─ pull ──▶ end
//! ```
//!
//! Nothing tells at the receive whether a send follows, but that it did the last times. So it is counted how many messages leave by
//! rendezvous between such a receive and the wait behind it. Once some have, some times in a row, copies are *left* for the last one of the fewest
//! that it were: of a window of messages more or fewer leave before the wait, as there is room. If the application waits before, what was left is copied
//! then; if not half as many have left as the last times it takes twice as many times from then on: who computes behind its receive would hold its
//! sender up.

use super::lead::Leads;
use crate::message::op::OpId;

/// Rounds in a row that must have had as many sends: at first, and after many misses.
const WANTED: (u32, u32) = (2, 64);

/// Rounds after which the fewest sends of the rounds before them are forgotten.
const FORGOTTEN: u32 = 8;

/// What a rank does between its receives and its waits, as far as messages are concerned that it pulls.
#[derive(Debug)]
pub(crate) struct Crossing {
    /// A receive has met its message in a call that posts one, and the application has not waited since.
    is_open: bool,
    /// Messages that have left since.
    sent: u32,
    /// How many did at least in the rounds before, and since some of these were forgotten; and in how many rounds in a row any did.
    expected: u32,
    fewest: u32,
    rounds: u32,
    wanted: u32,
    /// Receives whose copies are left, the oldest first.
    left: Vec<OpId>,
    /// The application is in a call that posts a receive.
    pub posts: bool,
    /// Frames both ways.
    pub leads: Leads,
}

impl Default for Crossing {
    fn default() -> Crossing {
        Crossing {
            is_open: false,
            sent: 0,
            expected: 0,
            fewest: 0,
            rounds: 0,
            wanted: WANTED.0,
            left: Vec::new(),
            posts: false,
            leads: Leads::default(),
        }
    }
}

impl Crossing {
    /// A receive has met a message in the call that posted it, or a later one: whether its copy is left for a send that will follow.
    pub fn met(&mut self, id: OpId) -> bool {
        if !self.is_open {
            (self.is_open, self.sent) = (true, 0);
        }
        let is_left = self.rounds >= self.wanted && self.sent < self.expected;
        if is_left {
            self.left.push(id);
        }
        is_left
    }

    /// A message has left that does not go eagerly: what was left for it.
    pub fn sent(&mut self) -> Vec<OpId> {
        self.sent += u32::from(self.is_open);
        if self.sent == self.expected { std::mem::take(&mut self.left) } else { Vec::new() }
    }

    /// Whether the application's next wait ends a round.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The application waits, or tests. What is still left is copied now.
    pub fn ends(&mut self) {
        let is_missed = !std::mem::take(&mut self.left).is_empty() && 2 * self.sent < self.expected;
        if is_missed {
            self.wanted = (self.wanted * 2).min(WANTED.1);
        }
        self.is_open = false;
        if is_missed || self.rounds == 0 || self.sent == 0 {
            (self.rounds, self.expected, self.fewest) = (u32::from(self.sent > 0), self.sent, self.sent);
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        self.fewest = self.fewest.min(self.sent);
        if self.rounds.is_multiple_of(FORGOTTEN) {
            self.expected = std::mem::replace(&mut self.fewest, self.sent);
        }
        self.expected = self.expected.min(self.sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round: how many messages are met and then sent. What was left, and for which of the sends.
    fn round(crossing: &mut Crossing, met: u32, sent: usize) -> (usize, Option<usize>) {
        let left = (0..met).filter(|id| crossing.met(OpId(*id))).count();
        assert_eq!(crossing.is_open(), met > 0);
        let copied: Vec<Vec<OpId>> = (0..sent).map(|_| crossing.sent()).collect();
        let at = copied.iter().position(|ids| !ids.is_empty());
        assert!(copied.iter().flatten().zip(0..).all(|(id, expected)| *id == OpId(expected)));
        if crossing.is_open() {
            crossing.ends();
        }
        (left, at)
    }

    #[test]
    fn copies_are_left_for_the_last_send_once_as_many_have_followed() {
        for (met, sent) in [(1, 1), (2, 2), (1, 2), (3, 1)] {
            let mut crossing = Crossing::default();
            for at in 0..10 {
                let expected = if at < WANTED.0 { (0, None) } else { (met as usize, Some(sent - 1)) };
                assert_eq!(round(&mut crossing, met, sent), expected, "{met} {sent} {at}");
            }
            assert_eq!(round(&mut crossing, 0, sent), (0, None), "nothing was there yet");
            assert_eq!(round(&mut crossing, met, sent), (met as usize, Some(sent - 1)));
        }
    }

    /// Of windows as many messages leave before the wait as there is room for: copies are left for the last of the fewest.
    #[test]
    fn of_windows_copies_are_left_though_more_or_fewer_leave() {
        let mut crossing = Crossing::default();
        let sends = [60, 53, 64, 55, 64, 64, 61, 64, 64, 64, 62, 64, 64, 64, 64, 64, 64, 64, 64];
        let rounds: Vec<_> = sends.into_iter().map(|sent| round(&mut crossing, 5, sent)).collect();
        assert_eq!(rounds[..2], [(0, None); 2]);
        assert_eq!(rounds[2..8], [(5, Some(52)); 6]);
        assert!(
            rounds[8..].iter().all(|(left, at)| *left == 5 && at.is_some_and(|at| at >= 52)),
            "{rounds:?}"
        );
        assert_eq!(rounds[17], (5, Some(61)));
        assert_eq!(crossing.wanted, WANTED.0);
    }

    /// What is met behind the last send is copied at once.
    #[test]
    fn who_has_sent_leaves_nothing() {
        let mut crossing = Crossing::default();
        for _ in 0..3 {
            round(&mut crossing, 1, 1);
        }
        assert!(crossing.met(OpId(0)));
        assert_eq!(crossing.sent(), [OpId(0)]);
        assert!(!crossing.met(OpId(1)));
        crossing.ends();
    }

    /// Who only receives, or computes before it sends, leaves a copy ever more rarely.
    #[test]
    fn misses_make_it_rare() {
        let mut crossing = Crossing::default();
        let mut left = 0;
        for at in 0..1000 {
            // Now and then some rounds look as if sends followed.
            let sent = if at % 100 < 70 { 1 } else { 0 };
            let is_left = crossing.met(OpId(at));
            if is_left {
                left += 1;
                crossing.ends();
                continue;
            }
            (0..sent).for_each(|_| assert!(crossing.sent().is_empty()));
            crossing.ends();
        }
        assert!((5..25).contains(&left), "{left}");
        let mut receives = Crossing::default();
        assert!((0..1000).all(|_| round(&mut receives, 1, 0) == (0, None)));
    }
}
