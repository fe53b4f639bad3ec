//! How far this rank is with a peer over one adapter.
//!
//! ```text
//!            posts                      hello
//!  Nothing ─────────▶ Asking (again…) ─────────▶ Open ──▶ Lost
//!     │    asked: answers                          ▲ │
//!     └────────────────────────────────────────────┘ │
//!     ◀───────────────── given back ─────────────────┘
//! ```
//!
//! Both sides may ask at once: each takes the other's question for the answer, and answers it. A datagram may be lost, so who
//! asks repeats it, and who is asked once more answers once more. A connection that was given back is not taken for the next
//! one: connections of two ranks are counted, and both count the same.

use crate::cm::Id;
use crate::hello::Hello;
use crate::objects::Pair;
use fabric::Fault;

/// How long an answer is waited for before it is asked for again: at first, and at most.
const FIRST_NS: u64 = 10_000_000;
const LONGEST_NS: u64 = 1_000_000_000;

/// See the [module](self).
#[derive(Debug, Default)]
pub enum Phase {
    /// No queue pair.
    #[default]
    Nothing,
    /// The peer was told, and has not answered.
    Asking {
        /// When it is told again.
        again_ns: u64,
        /// How long that is waited for.
        wait_ns: u64,
    },
    /// Work may be posted.
    Open,
    /// Nothing goes there any more.
    Lost(Fault),
}

/// See the [module](self).
#[derive(Default)]
pub struct Contact {
    /// How far.
    pub phase: Phase,
    /// The queue pair, from `Asking` on.
    pub pair: Option<Pair>,
    /// Of iWARP: by which the kernel connects it, and whether that was begun here.
    pub id: Option<Id>,
    /// See [`Contact::id`].
    pub calls: bool,
    /// Connections so far.
    pub turn: u32,
    /// Work that is posted and has not ended.
    pub under_way: usize,
    /// The number of its first packet.
    pub packet: u32,
    /// Of what is under way, Reads and atomic operations, and these alone.
    pub requests: usize,
    /// See [`Contact::requests`].
    pub atomics: usize,
    /// Requests that the two adapters take at a time.
    pub requests_max: usize,
    /// Its adapter was asked something and has not answered.
    pub is_asked: bool,
    /// The peer has said that it sends nothing more; this rank has, and the peer has it.
    pub has_left: bool,
    /// See [`Contact::has_left`].
    pub has_parted: bool,
}

/// What to do about a hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It is old.
    Nothing,
    /// Say the own side again.
    Answer,
    /// Connect to it, with a new queue pair if there is none; and say the own side, if it asks.
    Connect,
}

impl Contact {
    /// What a hello means now.
    pub fn heard(&self, hello: &Hello) -> Then {
        let next = match self.phase {
            Phase::Nothing => self.turn + 1,
            _ => self.turn,
        };
        match self.phase {
            Phase::Nothing if hello.asks && hello.turn == next => Then::Connect,
            Phase::Asking { .. } if hello.turn == next => Then::Connect,
            Phase::Open if hello.asks && hello.turn == next => Then::Answer,
            _ => Then::Nothing,
        }
    }

    /// The peer was told just now.
    pub fn asked(&mut self, now_ns: u64) {
        let wait_ns = match self.phase {
            Phase::Asking { wait_ns, .. } => (2 * wait_ns).min(LONGEST_NS),
            _ => FIRST_NS,
        };
        self.phase = Phase::Asking { again_ns: now_ns + wait_ns, wait_ns };
    }

    /// When the peer is to be told again.
    pub fn due_ns(&self) -> Option<u64> {
        if let Phase::Asking { again_ns, .. } = self.phase { Some(again_ns) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(asks: bool, turn: u32) -> Hello {
        Hello { asks, from: 1, turn, number: 9, packet: 0, reads: 1, rail: 0 }
    }

    #[test]
    fn every_hello_in_every_phase() {
        let mut contact = Contact::default();
        assert_eq!(contact.heard(&hello(true, 1)), Then::Connect);
        assert_eq!(contact.heard(&hello(false, 1)), Then::Nothing, "an answer nobody asked for");
        contact.turn = 1;
        contact.asked(0);
        assert_eq!(contact.heard(&hello(true, 1)), Then::Connect, "both have asked");
        assert_eq!(contact.heard(&hello(false, 1)), Then::Connect);
        assert_eq!(contact.heard(&hello(true, 2)), Then::Nothing);
        contact.phase = Phase::Open;
        assert_eq!(contact.heard(&hello(true, 1)), Then::Answer, "the answer was lost");
        assert_eq!(contact.heard(&hello(false, 1)), Then::Nothing);
        contact.phase = Phase::Nothing; // given back
        assert_eq!(contact.heard(&hello(true, 1)), Then::Nothing, "of the connection that was given back");
        assert_eq!(contact.heard(&hello(true, 2)), Then::Connect);
        contact.phase = Phase::Lost(Fault::PeerGone(1));
        assert_eq!(contact.heard(&hello(true, 1)), Then::Nothing);
    }

    #[test]
    fn questions_become_rarer() {
        let mut contact = Contact::default();
        contact.asked(0);
        assert_eq!(contact.due_ns(), Some(FIRST_NS));
        for _ in 0..10 {
            contact.asked(0);
        }
        assert_eq!(contact.due_ns(), Some(LONGEST_NS));
    }
}
