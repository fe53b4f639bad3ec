//! Who computes, who waits, who copies: what the threads of the application lose inside MPI over one message in
//! shared memory, both ends, in virtual time. The device is a model whose costs are round; each rank has its
//! application and the thread beside it, which acts by the rules of `abi/engine.rs`.

mod caches;
mod hours;
mod scarce;
mod touched;

use crate::fake::{Fake, Net};
use fabric::Span;
use hours::{Costs, Hours};
use proto::{Engine, Limits, Manner, Mode, OpId, Want};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const COSTS: Costs =
    Costs { flight_ns: 200, frame_ns: 100, copies: 8, call_ns: 1000, singles: 16, carries: 4 };
/// How long an application must have been away before its rank is borrowed.
const TICK_NS: u64 = 200_000;
/// When the ranks begin, one after the other where one is to be early.
const LATER_NS: u64 = 20_000;
/// Longest message that goes by a block.
const EAGER_MAX: usize = 256 << 10;

/// A rank: its engine, which is the application's while that is inside, and lent to the thread else.
struct Rank {
    engine: RefCell<Engine<Fake>>,
    hours: Rc<Hours>,
    inside: Cell<bool>,
    lent: Cell<bool>,
    away_since_ns: Cell<u64>,
    ended: Cell<bool>,
    /// Time of the application inside MPI.
    lost_ns: Cell<u64>,
    entered_ns: Cell<u64>,
}

impl Rank {
    fn new(me: usize, net: &Rc<RefCell<Net>>, hours: &Rc<Hours>, manner: Option<Manner>) -> Rc<Rank> {
        let limits = Limits { eager_bytes: EAGER_MAX, ..Limits::default() };
        let mut engine = Engine::new(Fake::new(me, net), limits);
        engine.fix_manner(manner);
        Rc::new(Rank {
            engine: RefCell::new(engine),
            hours: hours.clone(),
            inside: Cell::new(false),
            lent: Cell::new(false),
            away_since_ns: Cell::new(0),
            ended: Cell::new(false),
            lost_ns: Cell::new(0),
            entered_ns: Cell::new(0),
        })
    }

    fn now_ns(&self) -> u64 {
        use crate::fake::Time;
        self.hours.now_ns()
    }

    /// A call of MPI.
    fn call<T>(&self, what: impl FnOnce(&mut Engine<Fake>) -> T) -> T {
        self.entered_ns.set(self.now_ns());
        self.inside.set(true);
        while self.lent.get() {
            self.hours.nap_until(u64::MAX);
        }
        let value = what(&mut self.engine.borrow_mut());
        self.inside.set(false);
        self.away_since_ns.set(self.now_ns());
        self.lost_ns.set(self.lost_ns.get() + self.now_ns() - self.entered_ns.get());
        self.hours.tell();
        value
    }

    fn send(&self, to: usize, data: &[u8]) -> Option<OpId> {
        let span = Span { addr: data.as_ptr() as usize, len: data.len() };
        self.call(|engine| engine.send(to, 0, 1, span, Mode::Standard).unwrap())
    }

    fn receive(&self, from: usize, buffer: &mut [u8]) -> OpId {
        let span = Span { addr: buffer.as_mut_ptr() as usize, len: buffer.len() };
        let want = Want { source: Some(from), context: 0, tag: Some(1) };
        self.call(|engine| engine.receive(want, span).unwrap())
    }

    fn wait(&self, op: OpId) {
        self.call(|engine| finish(engine, op));
    }

    /// The receiver has what it waited for: the sender goes on with the next round. What that takes is not counted.
    fn turn(&self, is_sender: bool) {
        let lost_ns = self.lost_ns.get();
        self.call(|engine| {
            if is_sender {
                let want = Want { source: Some(1), context: 0, tag: Some(2) };
                let op = engine.receive(want, Span::EMPTY).unwrap();
                finish(engine, op);
            } else {
                assert_eq!(engine.send(0, 0, 2, Span::EMPTY, Mode::Standard), Ok(None));
            }
        });
        self.lost_ns.set(lost_ns);
    }

    fn compute(&self, ns: u64) {
        self.hours.pass(ns);
    }

    /// The application has no more to do.
    fn end(&self) {
        self.ended.set(true);
        self.hours.tell();
    }

    /// The thread beside the application.
    fn run_aside(&self) {
        while !self.ended.get() {
            let due_ns = self.away_since_ns.get() + TICK_NS;
            if self.inside.get() || !self.engine.borrow().needs_care() {
                self.hours.nap_until(u64::MAX);
            } else if self.now_ns() < due_ns {
                self.hours.nap_until(due_ns);
            } else {
                self.lent.set(true);
                let moved = self.engine.borrow_mut().progress_aside(false);
                self.lent.set(false);
                self.hours.tell();
                if !moved {
                    self.hours.nap_until(u64::MAX);
                }
            }
        }
    }
}

fn finish(engine: &mut Engine<Fake>, op: OpId) {
    while engine.take(op).is_none() {
        if let Some(nap) = engine.poll().unwrap() {
            fabric::Nap::take(nap);
        }
    }
    engine.awake();
}

/// What one side does: how late it begins, and how long it computes between the start of its operation and its wait.
#[derive(Clone, Copy, Debug)]
struct Side {
    begins_ns: u64,
    computes_ns: u64,
}

/// What each of the four actors had to do with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Shares {
    /// Time of the applications inside MPI: the sender's and the receiver's.
    lost_ns: [u64; 2],
    /// Time for which the threads beside them copied.
    aside_ns: [u64; 2],
}

/// Two ranks and their clock.
type Job = ([Rc<Rank>; 2], Rc<Hours>);

/// A job of ranks with or without a core for the thread of each.
fn job(manner: Option<&str>, spare_cores: bool) -> Job {
    let net = Net::new(2, 64);
    let hours = Hours::new(COSTS);
    net.borrow_mut().time = Some(hours.clone());
    net.borrow_mut().frame_bytes = EAGER_MAX;
    net.borrow_mut().spare_cores = spare_cores;
    net.borrow_mut().remote_cost = (COSTS.call_ns as f64, 1.0 / COSTS.singles as f64);
    let manner = manner.map(|name| Manner::named(name).expect("it has this name"));
    ([0, 1].map(|me| Rank::new(me, &net, &hours, manner)), hours)
}

/// As [`play_in`], where each rank has a core for its thread.
fn play(len: usize, manner: Option<&str>, rounds: usize, sides: [Side; 2]) -> (Shares, u64) {
    play_in(job(manner, true), len, rounds, sides)
}

/// Sends messages of `len` bytes one after the other: what the last one takes, and the median of what a round does in the
/// second half of them, computation included.
fn play_in(job: Job, len: usize, rounds: usize, [sender, receiver]: [Side; 2]) -> (Shares, u64) {
    let (ranks, hours) = job;
    let [from, to] = ranks.clone();
    let (aside_ns, begins_ns) = (Rc::new(Cell::new([0; 2])), Rc::new(RefCell::new(Vec::new())));
    let (before, begins, clock) = (aside_ns.clone(), begins_ns.clone(), hours.clone());
    let sends = move || {
        let data: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
        for _ in 0..rounds {
            before.set([clock.copied_ns(2), clock.copied_ns(3)]);
            begins.borrow_mut().push(from.now_ns());
            from.lost_ns.set(0);
            from.compute(sender.begins_ns);
            let op = from.send(1, &data);
            from.compute(sender.computes_ns);
            op.into_iter().for_each(|op| from.wait(op));
            from.turn(true);
        }
        begins.borrow_mut().push(from.now_ns());
        from.end();
    };
    let receives = move || {
        let expected: Vec<u8> = (0..len).map(|at| (at * 7) as u8).collect();
        let mut buffer = vec![0; len];
        for _ in 0..rounds {
            to.lost_ns.set(0);
            to.compute(receiver.begins_ns);
            let op = to.receive(0, &mut buffer);
            to.compute(receiver.computes_ns);
            to.wait(op);
            assert!(buffer == expected);
            buffer[len / 2] = !buffer[len / 2];
            to.turn(false);
        }
        to.end();
    };
    let [first, second] = ranks.clone();
    hours.run(vec![
        Box::new(sends),
        Box::new(receives),
        Box::new(move || first.run_aside()),
        Box::new(move || second.run_aside()),
    ]);
    let aside = |actor| hours.copied_ns(actor) - aside_ns.get()[actor - 2];
    let lost_ns = [&ranks[0], &ranks[1]].map(|rank| rank.lost_ns.get());
    let begins_ns = begins_ns.take();
    let mut half_ns: Vec<u64> =
        begins_ns[rounds / 2..].windows(2).map(|begins| begins[1] - begins[0]).collect();
    half_ns.sort_unstable();
    (Shares { lost_ns, aside_ns: [aside(2), aside(3)] }, half_ns[half_ns.len() / 2])
}

/// Rounds in which both ranks post a receive, send, and wait for both, the second one some time later: when each of them ends.
fn exchange(len: usize, manner: &str, rounds: usize) -> Vec<u64> {
    let (ranks, hours) = job(Some(manner), true);
    let ends_ns = Rc::new(RefCell::new(Vec::new()));
    let mut actors: Vec<Box<dyn FnOnce()>> = Vec::new();
    for (me, rank) in ranks.iter().cloned().enumerate() {
        let ends_ns = ends_ns.clone();
        actors.push(Box::new(move || {
            let (data, mut buffer) = (vec![me as u8 + 1; len], vec![0; len]);
            for _ in 0..rounds {
                rank.compute(1000 * me as u64 + 1000);
                let ops = [Some(rank.receive(1 - me, &mut buffer)), rank.send(1 - me, &data)];
                ops.into_iter().flatten().for_each(|op| rank.wait(op));
                assert!(buffer.iter().all(|byte| *byte == 2 - me as u8));
                buffer.fill(0);
                ends_ns.borrow_mut().extend((me == 1).then(|| rank.now_ns()));
            }
            rank.end();
        }));
    }
    ranks.into_iter().for_each(|rank| actors.push(Box::new(move || rank.run_aside())));
    hours.run(actors);
    ends_ns.take()
}

/// The second one finds the message of the first in the call that posts its receive. Before it has learnt that its own follows
/// it copies there, and the first one waits for that.
#[test]
fn two_that_send_to_each_other_copy_side_by_side() {
    for len in [64 << 10, 256 << 10, 1 << 20] {
        let ends_ns = exchange(len, "pulled", 12);
        let took_ns: Vec<u64> = ends_ns.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let alone_ns = copy_ns(len) + COSTS.call_ns;
        assert!(took_ns[0] > 2 * alone_ns, "{len}: {took_ns:?}");
        assert!(took_ns[10] < took_ns[0] - alone_ns / 2, "{len}: {took_ns:?}");
    }
}

/// Lengths, and the manner in which those that fit into a block take part in what holds for all long ones. They
/// have a round before: the first one goes by a block, and its receiver makes no offer.
const LONG: [(usize, Option<&str>); 6] = [
    (8 << 10, Some("shared")),
    (64 << 10, Some("shared")),
    (256 << 10, Some("shared")),
    (512 << 10, None),
    (1 << 20, None),
    (8 << 20, None),
];
/// A frame of the protocol: RTS, RTR, Matched.
const NOTE_NS: u64 = COSTS.frame_ns + 32 / COSTS.copies;
/// So much a receiver that finds it copies at once, whole.
const AT_ONCE: usize = 32 << 10;
/// By which the receiver begins a round earlier: it has told the sender to.
const TURN_NS: u64 = COSTS.flight_ns + COSTS.frame_ns;
/// A computation that is longer than all else.
const LONG_NS: u64 = 3_000_000;

fn early(computes_ns: u64) -> Side {
    Side { begins_ns: 0, computes_ns }
}

fn late(computes_ns: u64) -> Side {
    Side { begins_ns: LATER_NS, computes_ns }
}

fn copy_ns(len: usize) -> u64 {
    len as u64 / COSTS.singles
}

/// What a side takes for a whole message when the other one does not help: by halves down to 32 KiB, since it might.
fn whole_ns(len: usize) -> u64 {
    let (mut left, mut calls) = (len, 0);
    while left > 0 {
        left -= (left / 2).clamp(AT_ONCE, 1 << 20).min(left);
        calls += 1;
    }
    copy_ns(len) + calls * COSTS.call_ns
}

#[test]
fn an_early_receiver_that_computes_is_written_to_by_a_sender_that_waits() {
    for (len, manner) in LONG {
        let (shares, _) = play(len, manner, 2, [late(0), early(LONG_NS)]);
        let lost_ns = [NOTE_NS + whole_ns(len), NOTE_NS];
        assert_eq!(shares, Shares { lost_ns, aside_ns: [0, 0] }, "{len} bytes");
    }
}

#[test]
fn two_sides_that_compute_have_their_message_moved_by_the_thread_of_the_one_that_found_the_others_buffer() {
    for (len, manner) in LONG {
        let moved_ns = copy_ns(len) + len.div_ceil(1 << 20) as u64 * COSTS.call_ns;
        let (shares, _) = play(len, manner, 2, [late(LONG_NS), early(LONG_NS)]);
        assert_eq!(shares, Shares { lost_ns: [NOTE_NS; 2], aside_ns: [moved_ns, 0] }, "{len} bytes");
        // A receiver that finds little copies it at once: to wake the thread takes longer.
        let (shares, _) = play(len, manner, 2, [early(LONG_NS), late(LONG_NS)]);
        let (lost_ns, aside_ns) = if len <= AT_ONCE { (moved_ns, 0) } else { (0, moved_ns) };
        let expected = Shares { lost_ns: [NOTE_NS, lost_ns], aside_ns: [0, aside_ns] };
        assert_eq!(shares, expected, "{len} bytes");
    }
}
/// The sender is there first; the receiver posts its receive and computes.
#[test]
fn a_sender_that_waits_copies_for_a_receiver_that_comes_later_and_computes() {
    for (len, manner) in LONG {
        let (shares, _) = play(len, manner, 2, [early(0), late(LONG_NS)]);
        let receiver_ns = if len <= AT_ONCE { whole_ns(len) } else { 0 };
        let lost_ns = [LATER_NS - TURN_NS + whole_ns(len), receiver_ns];
        assert_eq!(shares, Shares { lost_ns, aside_ns: [0, 0] }, "{len} bytes");
    }
}

#[test]
fn an_early_sender_of_what_fits_into_a_block_does_not_wait_for_its_receiver() {
    for len in [8 << 10, 64 << 10, EAGER_MAX] {
        let copied_ns = COSTS.frame_ns + len as u64 / COSTS.copies;
        for rounds in [1, 200] {
            let (shares, _) =
                play(len, None, rounds, [early(0), Side { begins_ns: LONG_NS, computes_ns: 0 }]);
            assert_eq!(shares, Shares { lost_ns: [copied_ns; 2], aside_ns: [0, 0] }, "{len} bytes");
        }
    }
}

/// Both wait: the copy takes half of the time.
#[test]
fn two_sides_that_wait_share_the_copy() {
    for len in [512 << 10, 1 << 20, 8 << 20] {
        let (shares, _) = play(len, None, 2, [early(0), late(0)]);
        let [sender_ns, receiver_ns] = shares.lost_ns;
        assert!(shares.aside_ns == [0, 0] && sender_ns > receiver_ns, "{shares:?}");
        let least_ns = copy_ns(len) / 2;
        assert!((least_ns..least_ns + 10 * COSTS.call_ns).contains(&receiver_ns), "{len}: {receiver_ns}");
    }
}

/// What a round takes beyond the computation of the side that computes longest.
fn round_loses_ns(len: usize, manner: Option<&str>, sides: [Side; 2]) -> u64 {
    let computing_ns = sides.map(|side| side.begins_ns + side.computes_ns).into_iter().max().expect("two");
    let rounds = if manner.is_some() { 40 } else { 800 };
    play(len, manner, rounds, sides).1 - computing_ns
}

/// Who computes before, between or not at all, and who is late.
fn all_sides(computes_ns: u64) -> [[Side; 2]; 5] {
    let after = Side { begins_ns: computes_ns, computes_ns: 0 };
    [
        [late(0), early(computes_ns)],
        [late(computes_ns), early(computes_ns)],
        [early(computes_ns), late(computes_ns)],
        [early(0), after],
        [after, early(0)],
    ]
}

/// Beside computations up to about twenty times both copies the manner in force loses least. What trying costs is in the rounds
/// beside the median.
#[test]
fn habits_take_the_manner_in_which_a_round_loses_least() {
    const CASES: [(usize, &[u64]); 3] =
        [(8 << 10, &[10_000]), (64 << 10, &[10_000, 100_000]), (EAGER_MAX, &[10_000, 100_000, 300_000])];
    for (len, computes_ns) in CASES {
        for sides in computes_ns.iter().flat_map(|ns| all_sides(*ns)) {
            let all_ns =
                ["pulled", "shared", "blocks"].map(|manner| round_loses_ns(len, Some(manner), sides));
            let (chosen_ns, best_ns) =
                (round_loses_ns(len, None, sides), all_ns.into_iter().min().expect("three"));
            assert!(
                20 * chosen_ns <= 21 * best_ns,
                "{len} bytes, {sides:?}: {chosen_ns} ns lost of {all_ns:?}"
            );
        }
    }
}

/// Beside longer ones a round varies by more than there is to gain, and nothing is tried: what fits goes through blocks, even where
/// a thread with a core of its own would copy for less.
#[test]
fn beside_a_long_computation_blocks_stay() {
    for (len, computes_ns) in [(8 << 10, 100_000), (64 << 10, LONG_NS), (EAGER_MAX, LONG_NS)] {
        for sides in all_sides(computes_ns) {
            let blocks_ns = round_loses_ns(len, Some("blocks"), sides);
            assert_eq!(round_loses_ns(len, None, sides), blocks_ns, "{len} bytes, {sides:?}");
        }
    }
}
