//! Two ranks that send to each other: who comes second must not copy before its own message has left.
//!
//! A message that its receiver pulls alone is copied in the call that posts the receive, if it is there by then: its sender waits
//! for nothing else. But where the receiver's next call sends to the same rank, that one waits for the copy before it may begin
//! its own, and what both could do at once is done one after the other:
//!
//! ```text
//! rank 0   Irecv  Isend ──────── waits ────────── pull ────▶ end      Irecv  Isend ─────── pull ───▶ end
//! rank 1           Irecv ── pull ── Isend ─────── waits ───▶ end              Irecv Isend ─ pull ──▶ end
//! ```
//!
//! Nothing tells at the receive whether a send follows, but that it did the last times. So a copy is *left* for the send once sends
//! have followed so often in a row. If the application waits first, that takes it at once, and it takes twice as many from then on:
//! who computes behind its receive would hold its sender up.

use crate::message::op::OpId;
use fabric::Rank;
use std::collections::HashMap;

/// Sends in a row that must have followed: at first, and after many misses.
const WANTED: (u8, u8) = (2, 64);

/// What is known of one peer.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// Whether a message was copied, or left, since the last send.
    is_open: bool,
    followed: u8,
    wanted: u8,
}

/// What is known of all peers whose messages this rank pulls, and what is left for a send.
#[derive(Default, Debug)]
pub(crate) struct Crossings {
    peers: HashMap<Rank, Crossing>,
    /// The oldest first.
    left: Vec<(Rank, OpId)>,
}

impl Crossings {
    /// A receive has met a message of that rank in the call that posted it: whether its copy is left for the send that will follow.
    pub fn met(&mut self, from: Rank, id: OpId) -> bool {
        let known = Crossing { is_open: false, followed: 0, wanted: WANTED.0 };
        let crossing = self.peers.entry(from).or_insert(known);
        crossing.is_open = true;
        let is_left = crossing.followed >= crossing.wanted;
        if is_left {
            self.left.push((from, id));
        }
        is_left
    }

    /// A message that is not sent eagerly has left: the oldest receive whose copy was left for it.
    pub fn sent(&mut self, to: Rank) -> Option<OpId> {
        let crossing = self.peers.get_mut(&to).filter(|crossing| crossing.is_open)?;
        crossing.is_open = false;
        crossing.followed = crossing.followed.saturating_add(1);
        let at = self.left.iter().position(|(from, _)| *from == to)?;
        Some(self.left.remove(at).1)
    }

    /// Whether something is left.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        !self.left.is_empty()
    }

    /// The application waits, or tests: what is left is copied now, for no send has followed.
    pub fn missed(&mut self) {
        for (from, _) in self.left.drain(..) {
            if let Some(crossing) = self.peers.get_mut(&from).filter(|crossing| crossing.is_open) {
                let wanted = (crossing.wanted * 2).min(WANTED.1);
                *crossing = Crossing { is_open: false, followed: 0, wanted };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_left_once_sends_have_followed() {
        let mut crossings = Crossings::default();
        for round in 0..10u32 {
            let is_left = crossings.met(1, OpId(round));
            assert_eq!(is_left, round >= u32::from(WANTED.0), "{round}");
            assert_eq!(crossings.is_waiting(), is_left);
            assert_eq!(crossings.sent(2), None, "another rank's is not touched");
            assert_eq!(crossings.sent(1), is_left.then_some(OpId(round)));
            assert_eq!(crossings.sent(1), None);
        }
    }

    #[test]
    fn each_send_takes_the_oldest_of_its_peer() {
        let mut crossings = Crossings::default();
        for peer in [1, 2, 1, 2] {
            assert!(!crossings.met(peer, OpId(0)));
            assert_eq!(crossings.sent(peer), None);
        }
        let posted = [(1, 10), (2, 20), (1, 11)];
        assert!(posted.iter().all(|(peer, id)| crossings.met(*peer, OpId(*id))));
        assert_eq!(crossings.sent(2), Some(OpId(20)));
        assert_eq!(crossings.sent(1), Some(OpId(10)));
        assert!(crossings.is_waiting());
        crossings.missed();
        assert!(!crossings.is_waiting() && crossings.met(1, OpId(12)), "one of two was followed");
    }

    /// Who only receives, or computes before it sends, leaves a copy ever more rarely.
    #[test]
    fn misses_make_it_rare() {
        let mut crossings = Crossings::default();
        let rounds = 1000;
        let left = (0..rounds).filter(|round| {
            let is_left = crossings.met(1, OpId(*round));
            if is_left {
                crossings.missed();
            }
            crossings.sent(1);
            is_left
        });
        let left = left.count();
        assert!((5..=rounds as usize / usize::from(WANTED.1) + 6).contains(&left), "{left}");
    }
}
