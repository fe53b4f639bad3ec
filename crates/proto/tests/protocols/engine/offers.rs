//! Buffers that early receivers offer (RTRs): the same answers whether two ranks agree by shares or by messages.

use crate::fake::{Fake, Net};
use fabric::{Rank, Span};
use proto::{CacheLimits, Engine, Event, Limits, Mode, OpId, Outcome, Protocol, Want};
use std::cell::RefCell;
use std::rc::Rc;

/// Longest eager message; a longer one is a rendezvous.
const EAGER: usize = 8;
const LONG: usize = 64;
/// RTRs in a row that come to nothing, after which there are no more.
const MISSES_MAX: u64 = 8;
/// By shares, and by messages over what the device transfers.
const AGREEMENTS: [Option<Protocol>; 2] = [None, Some(Protocol::Speculative)];

/// Rank 0 sends, rank 1 receives.
struct Pair {
    net: Rc<RefCell<Net>>,
    ranks: [Engine<Fake>; 2],
    buffer: Box<[u8]>,
}

impl Pair {
    fn new(force: Option<Protocol>) -> Pair {
        let net = Net::new(2, 64);
        let limits = Limits {
            eager_bytes: EAGER,
            unexpected_bytes: 1 << 20,
            force,
            cache: CacheLimits { bytes: 0, regions: 1 },
            ..Limits::default()
        };
        let ranks = [0, 1].map(|me| Engine::new(Fake::new(me, &net), limits.clone()));
        Pair { net, ranks, buffer: vec![0; LONG].into_boxed_slice() }
    }

    /// Posts a receive before its message.
    fn receive(&mut self) -> OpId {
        let want = Want { source: Some(0), context: 1, tag: Some(1) };
        let buf = Span { addr: self.buffer.as_mut_ptr() as usize, len: LONG };
        let op = self.ranks[1].receive(want, buf).unwrap();
        self.settle();
        op
    }

    /// Sends a message, which ends.
    fn send(&mut self, len: usize) {
        let data = [7u8; LONG];
        let data = Span { addr: data.as_ptr() as usize, len };
        let op = self.ranks[0].send(1, 1, 1, data, Mode::Standard).unwrap();
        self.settle();
        assert!(op.is_none_or(|op| self.ranks[0].take(op).is_some()), "{len} bytes have left");
    }

    /// Lets everything arrive.
    fn settle(&mut self) {
        let mut moves = true;
        while moves {
            moves = false;
            for (from, to) in [(0, 1), (1, 0)] {
                while self.net.borrow_mut().under_way(from, to) {
                    self.net.borrow_mut().arrive(from, to);
                    self.look(to);
                    moves = true;
                }
            }
            moves |= self.look(0) | self.look(1);
        }
    }

    fn look(&mut self, rank: Rank) -> bool {
        self.ranks[rank].poll().unwrap().is_none()
    }

    /// A receive that is met by a message of that length.
    fn round(&mut self, len: usize) {
        let op = self.receive();
        self.send(len);
        assert_eq!(self.ended(op).len, len as u64);
    }

    fn ended(&mut self, op: OpId) -> Outcome {
        self.ranks[1].take(op).expect("the receive has ended")
    }

    /// At the receiver.
    fn count(&self, event: Event) -> u64 {
        self.ranks[1].counters().get(event)
    }
}

/// Short messages make offers useless: after some in a row there are no more, and each is counted where it was made. Long
/// messages bring them back.
#[test]
fn short_messages_end_offers_and_long_ones_bring_them_back() {
    for force in AGREEMENTS {
        let mut pair = Pair::new(force);
        for sent in 1..=MISSES_MAX + 3 {
            pair.round(4);
            let expected = sent.min(MISSES_MAX);
            let counts = [Event::RtrSent, Event::RtrDropped].map(|event| pair.count(event));
            assert_eq!(counts, [expected; 2], "{force:?} after {sent}");
        }
        // By messages the first says that none is to be sent, and the second that they are welcome again.
        pair.round(LONG);
        pair.round(LONG);
        let before = pair.count(Event::RtrSent);
        pair.round(LONG);
        assert_eq!(pair.count(Event::RtrSent), before + 1, "{force:?}");
    }
}

/// So do receives that are cancelled; an offer that is taken ends the count.
#[test]
fn cancelled_receives_end_offers() {
    for force in AGREEMENTS {
        let mut pair = Pair::new(force);
        let cancel = |pair: &mut Pair| {
            let op = pair.receive();
            pair.ranks[1].cancel(op);
            pair.settle();
            assert!(pair.ended(op).cancelled, "{force:?}");
        };
        (1..MISSES_MAX).for_each(|_| cancel(&mut pair));
        pair.round(LONG);
        assert_eq!(pair.ranks[0].counters().get(Event::RtrTaken), 1, "{force:?}");
        (0..MISSES_MAX + 3).for_each(|_| cancel(&mut pair));
        assert_eq!(pair.count(Event::RtrSent), 2 * MISSES_MAX, "{force:?}");
        assert_eq!(pair.count(Event::RtrDropped), 0, "{force:?}: taking back is no drop");
    }
}

/// A receive that is cancelled while the sender takes its offer gets the message, however often that is asked for.
#[test]
fn a_taken_offer_is_not_taken_back() {
    for force in AGREEMENTS {
        let mut pair = Pair::new(force);
        let op = pair.receive();
        let data = [7u8; LONG];
        let data = Span { addr: data.as_ptr() as usize, len: LONG };
        let send = pair.ranks[0].send(1, 1, 1, data, Mode::Standard).unwrap();
        assert!(!pair.ranks[1].cancel(op) && !pair.ranks[1].cancel(op), "{force:?}");
        pair.settle();
        let ends = pair.ended(op);
        assert_eq!((ends.len, ends.cancelled), (LONG as u64, false), "{force:?}");
        assert!(send.is_none_or(|op| pair.ranks[0].take(op).is_some()), "{force:?}");
        assert!(pair.buffer.iter().all(|byte| *byte == 7), "{force:?}");
    }
}
