//! Messages that their receiver alone copies, as a whole: a receive that finds the offer at the front of its ring copies there and then.

use crate::fake::{Fake, Net};
use fabric::Span;
use proto::{Engine, Event, Failure, Limits, Manner, Mode, OpId, Outcome, Want};
use std::cell::RefCell;
use std::rc::Rc;

const LEN: usize = 8192;
const CONTEXT: u64 = 1;
const TAG: i32 = 5;

/// Rank 0 sends, rank 1 receives.
struct Pair {
    net: Rc<RefCell<Net>>,
    ranks: [Engine<Fake>; 2],
    data: Vec<u8>,
    buffer: Vec<u8>,
}

impl Pair {
    fn new() -> Pair {
        let net = Net::new(2, 64);
        net.borrow_mut().frame_bytes = 256 << 10;
        let limits = Limits { eager_bytes: 256 << 10, unexpected_bytes: 1 << 20, ..Limits::default() };
        let ranks = [0, 1].map(|me| {
            let mut engine = Engine::new(Fake::new(me, &net), limits.clone());
            engine.fix_manner(Manner::named("pulled"));
            engine
        });
        let data = (0..LEN).map(|at| (at % 251) as u8).collect();
        Pair { net, ranks, data, buffer: vec![0; LEN] }
    }

    /// Offers the message, which its sender may cancel or not, and lets the offer arrive.
    fn offer(&mut self, may_cancel: bool) -> OpId {
        let data = Span { addr: self.data.as_ptr() as usize, len: LEN };
        let sender = &mut self.ranks[0];
        let sent = match may_cancel {
            true => sender.send(1, CONTEXT, TAG, data, Mode::Standard),
            false => sender.send_for_good(1, CONTEXT, TAG, data, Mode::Standard),
        };
        let op = sent.unwrap().expect("its receiver has not copied it");
        self.net.borrow_mut().arrive(0, 1);
        op
    }

    fn room(&mut self, len: usize) -> Span {
        Span { addr: self.buffer.as_mut_ptr() as usize, len }
    }

    fn receive_now(&mut self, tag: i32, len: usize) -> Option<u64> {
        let room = self.room(len);
        self.ranks[1].receive_now(0, CONTEXT, tag, room)
    }

    fn receive(&mut self, len: usize) -> OpId {
        let room = self.room(len);
        self.ranks[1].receive(Want { source: Some(0), context: CONTEXT, tag: Some(TAG) }, room).unwrap()
    }

    /// Lets everything arrive.
    fn settle(&mut self) {
        for _ in 0..16 {
            for (from, to) in [(0, 1), (1, 0)] {
                while self.net.borrow_mut().under_way(from, to) {
                    self.net.borrow_mut().arrive(from, to);
                }
                self.ranks[to].poll().unwrap();
            }
        }
    }

    fn ended(&mut self, rank: usize, op: OpId) -> Outcome {
        self.settle();
        self.ranks[rank].take(op).expect("it has ended")
    }

    fn count(&self, event: Event) -> u64 {
        self.ranks[1].counters().get(event)
    }
}

/// The receive has its message when the call returns, and no operation was needed; the sender ends with its next look.
#[test]
fn an_offer_at_the_front_is_copied_by_the_receive_that_finds_it() {
    for may_cancel in [true, false] {
        let mut pair = Pair::new();
        let sent = pair.offer(may_cancel);
        assert_eq!(pair.receive_now(TAG, LEN), Some(LEN as u64));
        assert_eq!(pair.buffer, pair.data);
        assert!(pair.ranks[1].pending().is_empty());
        assert_eq!((pair.count(Event::PiecePulled), pair.count(Event::Unexpected)), (1, 0));
        assert!(!pair.ranks[0].cancel(sent), "it has been met");
        pair.ranks[0].poll().unwrap();
        let ends = pair.ranks[0].take(sent).expect("it has ended");
        assert_eq!((ends.len, ends.failure), (LEN as u64, None));
        assert_eq!(pair.net.borrow().shares_held(0), 0);
    }
}

/// What is for another receive, does not fit or may not be copied is left where it is, and the general path does what is due.
#[test]
fn what_is_not_this_simple_is_left_to_the_general_path() {
    for may_cancel in [true, false] {
        let mut pair = Pair::new();
        let sent = pair.offer(may_cancel);
        assert_eq!(pair.receive_now(TAG + 1, LEN), None);
        assert_eq!(pair.receive_now(TAG, LEN - 1), None);
        pair.net.borrow_mut().grants[1] = 0;
        assert_eq!(pair.receive_now(TAG, LEN), None);
        assert_eq!(pair.count(Event::PiecePulled), 0);
        let received = pair.receive(LEN);
        assert_eq!(pair.ended(1, received).len, LEN as u64);
        assert_eq!(pair.buffer, pair.data, "it came in frames");
        assert_eq!(pair.ended(0, sent).failure, None);
    }
    let mut pair = Pair::new();
    let sent = pair.offer(true);
    assert_eq!(pair.receive_now(TAG, LEN - 1), None, "it is longer than that");
    let received = pair.receive(LEN - 1);
    let failure = pair.ended(1, received).failure.expect("it is longer than its buffer");
    assert!(matches!(*failure, Failure::Truncated { .. }), "{failure:?}");
    assert_eq!(pair.ended(0, sent).failure, None);
}

/// A message that was taken back is not copied, and one that could not be copied may be taken back.
#[test]
fn what_is_taken_back_is_not_copied() {
    let mut pair = Pair::new();
    let sent = pair.offer(true);
    assert!(pair.ranks[0].cancel(sent));
    assert_eq!((pair.receive_now(TAG, LEN), pair.count(Event::PiecePulled)), (None, 0));
    let mut pair = Pair::new();
    let sent = pair.offer(true);
    pair.net.borrow_mut().grants[1] = 0;
    assert_eq!(pair.receive_now(TAG, LEN), None);
    assert!(pair.ranks[0].cancel(sent));
}

/// A receive that is posted takes an offer from the front of the ring, before it would be kept; not one that was taken back.
#[test]
fn a_receive_takes_an_offer_from_the_front() {
    let mut pair = Pair::new();
    for _ in 0..3 {
        let sent = pair.offer(true);
        let received = pair.receive(LEN);
        assert_eq!((pair.ended(1, received).len, pair.ended(0, sent).failure), (LEN as u64, None));
    }
    assert_eq!(pair.count(Event::Unexpected), 0);
    let sent = pair.offer(true);
    assert!(pair.ranks[0].cancel(sent));
    let received = pair.receive(LEN);
    pair.settle();
    assert!(pair.ranks[1].take(received).is_none(), "nobody has sent anything");
    let again = pair.offer(true);
    assert_eq!((pair.ended(1, received).len, pair.ended(0, again).failure), (LEN as u64, None));
}
