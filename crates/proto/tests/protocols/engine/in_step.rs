//! Long messages in frames, both ways between two ranks that cannot copy from each other.

use crate::fake::{Effort, Fake, Net, Time};
use fabric::Span;
use proto::{Engine, Event, Limits, Mode, OpId, Want};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const CONTEXT: u64 = 3;
const LEN: usize = 1 << 20;
/// Frames that a rank may be ahead.
const LEAD: u64 = 2;
/// Frames of a message.
const ALL: u64 = 16;

/// A clock that stands until it is set. Frames have come as soon as they have left.
#[derive(Default)]
struct Clock(Cell<u64>);

impl Time for Clock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn spend(&self, _effort: Effort) {}

    fn changed(&self) {}

    fn arrives_ns(&self) -> u64 {
        0
    }

    fn nap(&self) {}
}

struct Pair {
    clock: Rc<Clock>,
    net: Rc<RefCell<Net>>,
    ranks: [Engine<Fake>; 2],
    sent: [Vec<u8>; 2],
    received: [Vec<u8>; 2],
}

impl Pair {
    fn new() -> Pair {
        let net = Net::new(2, 64);
        net.borrow_mut().frame_bytes = 256 << 10;
        net.borrow_mut().reach = vec![false; 2];
        let clock = Rc::new(Clock::default());
        net.borrow_mut().time = Some(clock.clone());
        let limits = Limits { eager_bytes: 8, unexpected_bytes: 1 << 20, adapt: false, ..Limits::default() };
        let ranks = [0, 1].map(|me| Engine::new(Fake::new(me, &net), limits.clone()));
        let sent = [3, 5].map(|seed| (0..LEN).map(|at| (at * seed % 251) as u8).collect());
        Pair { clock, net, ranks, sent, received: [vec![0; LEN], vec![0; LEN]] }
    }

    fn send(&mut self, from: usize) -> OpId {
        let span = Span { addr: self.sent[from].as_ptr() as usize, len: LEN };
        self.ranks[from]
            .send(1 - from, CONTEXT, 1, span, Mode::Standard)
            .unwrap()
            .expect("it goes by rendezvous")
    }

    fn receive(&mut self, at: usize) -> OpId {
        let span = Span { addr: self.received[at].as_mut_ptr() as usize, len: LEN };
        let want = Want { source: Some(1 - at), context: CONTEXT, tag: Some(1) };
        self.ranks[at].receive(want, span).unwrap()
    }

    /// One look of a rank at all that was sent to it.
    fn look(&mut self, at: usize) {
        while self.net.borrow_mut().under_way(1 - at, at) {
            self.net.borrow_mut().arrive(1 - at, at);
        }
        self.ranks[at].poll().unwrap();
    }

    /// Both ranks look until each knows what the other wants.
    fn agree(&mut self) {
        for _ in 0..3 {
            (0..2).for_each(|at| self.look(at));
        }
    }

    fn frames(&self, from: usize) -> u64 {
        self.ranks[from].counters().get(Event::FrameSent)
    }

    fn end(&mut self, ops: &[(usize, OpId)]) {
        for _ in 0..4 * ALL {
            (0..2).for_each(|at| self.look(at));
        }
        for (at, op) in ops {
            let ends = self.ranks[*at].take(*op).expect("it has ended");
            assert_eq!((ends.len, ends.failure), (LEN as u64, None));
        }
    }
}

/// However often a rank looks, it gets no more than two frames ahead of the other, and each frame that comes lets another one leave.
#[test]
fn in_an_exchange_neither_gets_far_ahead() {
    let mut pair = Pair::new();
    let mut ops: Vec<_> = (0..2).map(|at| (at, pair.receive(at))).collect();
    ops.extend((0..2).map(|at| (at, pair.send(at))));
    pair.agree();
    for round in 0..2 {
        for first in [0, 1] {
            let others = pair.frames(1 - first);
            (0..100).for_each(|_| pair.look(first));
            assert!(pair.frames(first) <= others + LEAD, "round {round}");
            assert!(pair.frames(first) > others, "round {round}");
        }
    }
    pair.end(&ops);
    assert_eq!(pair.received[0], pair.sent[1]);
    assert_eq!(pair.received[1], pair.sent[0]);
    assert_eq!((pair.frames(0), pair.frames(1)), (ALL, ALL));
}

/// A rank that awaits nothing sends what there is room for.
#[test]
fn one_way_nobody_waits() {
    let mut pair = Pair::new();
    let ops = [(1, pair.receive(1)), (0, pair.send(0))];
    pair.agree();
    (0..ALL).for_each(|_| pair.look(0));
    assert_eq!(pair.frames(0), ALL);
    pair.end(&ops);
    assert_eq!(pair.received[1], pair.sent[0]);
}

/// One that the other holds up goes on in the end, and in a look beside the application at once.
#[test]
fn nobody_waits_for_ever() {
    for aside in [false, true] {
        let mut pair = Pair::new();
        let mut ops: Vec<_> = (0..2).map(|at| (at, pair.receive(at))).collect();
        ops.extend((0..2).map(|at| (at, pair.send(at))));
        pair.agree();
        (0..100).for_each(|_| pair.look(0));
        assert!(pair.frames(0) < ALL);
        match aside {
            true => assert!(pair.ranks[0].progress_aside(false)),
            // A clock counts: a rank that sleeps looks but a few times.
            false => {
                pair.clock.0.set(1_000_000);
                (0..ALL).for_each(|_| pair.look(0));
            }
        }
        assert_eq!(pair.frames(0), ALL, "aside: {aside}");
        pair.end(&ops);
        assert_eq!(pair.received[0], pair.sent[1]);
        assert_eq!(pair.received[1], pair.sent[0]);
    }
}
