//! Every interleaving of sends, receives, cancels and arriving frames, in one thread: whatever
//! the order, messages match as MPI says, arrive whole, and leave nothing behind.
//!
//! `TERN_RACES=all` explores the wide sets too (minutes); a failure prints its scenario and the
//! steps that led to it.

mod fake;
mod rules;

use fabric::{Rank, Span};
use fake::{Fake, Net};
use proto::{Engine, Limits, Mode, OpId, Outcome, Protocol, Tuning, Want};
use rules::{Got, History};
use std::cell::RefCell;
use std::rc::Rc;

/// Longest eager message; one byte more is a rendezvous.
const EAGER: usize = 8;
const CONTEXT: u64 = 3;

/// One call of a rank.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Send {
        to: Rank,
        tag: i32,
        len: usize,
        mode: Mode,
    },
    Receive {
        source: Option<Rank>,
        tag: Option<i32>,
        room: usize,
    },
    /// Of the receive with this number.
    Cancel(usize),
    /// Of the send with this number.
    TakeBack(usize),
}

#[derive(Clone, Debug)]
struct Scenario {
    ranks: Vec<Vec<Act>>,
    /// Frames that fit into each direction.
    room: usize,
    unexpected_bytes: usize,
    /// Whether ranks also look around between calls without anything having arrived: matters
    /// where room is short.
    looks: bool,
    /// The protocol of long messages, if it is not to be chosen.
    force: Option<Protocol>,
    reach: Vec<bool>,
    /// After how many copies each rank is refused.
    grants: Vec<usize>,
    /// Envelopes of which account is kept.
    envelopes: usize,
    /// Whether eager messages are found while their sender is still writing them.
    slow: bool,
}

impl Scenario {
    fn new(ranks: Vec<Vec<Act>>) -> Scenario {
        let (reach, grants) = (vec![true; ranks.len()], vec![usize::MAX; ranks.len()]);
        Scenario {
            ranks,
            room: 64,
            unexpected_bytes: 1 << 20,
            looks: false,
            force: None,
            reach,
            grants,
            envelopes: 64,
            slow: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Call(Rank),
    /// A frame from the first to the second rank arrives, and the second looks around.
    Arrive(Rank, Rank),
    Look(Rank),
}

struct Receiving {
    want: Want,
    op: OpId,
    buffer: Box<[u8]>,
    cancelled: bool,
    outcome: Option<Outcome>,
}

struct Sending {
    to: Rank,
    tag: i32,
    op: Option<OpId>,
    data: Box<[u8]>,
    cancelled: bool,
}

struct OneRank {
    engine: Engine<Fake>,
    done: usize,
    receives: Vec<Receiving>,
    sends: Vec<Sending>,
}

/// Pipelines of several steps for messages as short as these.
fn tuning(envelopes: usize) -> Tuning {
    Tuning {
        head_bytes: 4,
        rdma_offset_bytes: 12,
        block_bytes: 16,
        depth: 2,
        fixed_chunk_bytes: Some(16),
        staging_bytes: 4096,
        staged_messages: 1,
        envelopes,
        ..Tuning::default()
    }
}

/// A scenario being played.
struct Play<'a> {
    scenario: &'a Scenario,
    net: Rc<RefCell<Net>>,
    ranks: Vec<OneRank>,
}

fn payload(from: Rank, number: usize, len: usize) -> Box<[u8]> {
    (0..len).map(|k| (from * 101 + number * 37 + k * 11 + 1) as u8).collect()
}

impl<'a> Play<'a> {
    fn new(scenario: &'a Scenario) -> Play<'a> {
        let size = scenario.ranks.len();
        let net = Net::new(size, scenario.room);
        net.borrow_mut().reach.clone_from(&scenario.reach);
        net.borrow_mut().grants.clone_from(&scenario.grants);
        net.borrow_mut().slow = scenario.slow;
        let limits = Limits {
            eager_bytes: EAGER,
            unexpected_bytes: scenario.unexpected_bytes,
            unexpected_max_bytes: 1 << 30,
            adapt: true,
            rtr: true,
            remote_access: true,
            force: scenario.force,
            eager_by: Default::default(),
            cache: Default::default(),
        };
        let rank = |me| OneRank {
            engine: {
                let mut engine = Engine::new(Fake::new(me, &net), limits.clone());
                engine.tune(tuning(scenario.envelopes));
                engine
            },
            done: 0,
            receives: Vec::new(),
            sends: Vec::new(),
        };
        Play { scenario, ranks: (0..size).map(rank).collect(), net }
    }

    fn choices(&self, last: Option<Step>) -> Vec<Step> {
        let size = self.ranks.len();
        let mut steps = Vec::new();
        let calls = (0..size).filter(|me| self.ranks[*me].done < self.scenario.ranks[*me].len());
        steps.extend(calls.map(Step::Call));
        if steps.is_empty() {
            return steps; // what is left cannot race with calls any more
        }
        for from in 0..size {
            let peers = (0..size).filter(|to| self.net.borrow_mut().under_way(from, *to));
            steps.extend(peers.map(|to| Step::Arrive(from, to)));
        }
        if self.scenario.looks {
            let busy =
                |me: &Rank| last != Some(Step::Look(*me)) && !self.ranks[*me].engine.pending().is_empty();
            steps.extend((0..size).filter(busy).map(Step::Look));
        }
        steps
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Call(me) => {
                let act = self.scenario.ranks[me][self.ranks[me].done];
                self.ranks[me].done += 1;
                self.ranks[me].call(me, act);
            }
            Step::Arrive(from, to) => {
                self.net.borrow_mut().arrive(from, to);
                self.ranks[to].look();
            }
            Step::Look(me) => {
                self.ranks[me].look();
            }
        }
    }

    /// Lets everything arrive until nothing moves, not even back-pressure.
    fn settle(&mut self) {
        let size = self.ranks.len();
        let patience = if self.scenario.unexpected_bytes == 0 { 100 } else { 3 };
        let mut quiet = 0;
        while quiet < patience {
            let mut moved = false;
            for from in 0..size {
                for to in 0..size {
                    while self.net.borrow_mut().under_way(from, to) {
                        self.net.borrow_mut().arrive(from, to);
                        moved = true;
                    }
                }
            }
            for rank in &mut self.ranks {
                moved |= rank.look();
            }
            quiet = if moved { 0 } else { quiet + 1 };
        }
    }

    /// What happened, after which nothing may be left behind.
    fn verdict(mut self) -> Result<(), String> {
        self.settle();
        let mut history = History::default();
        for (me, rank) in self.ranks.iter_mut().enumerate() {
            for sending in &rank.sends {
                history.sent(me, sending.to, CONTEXT, sending.tag, sending.cancelled);
            }
            for receiving in &mut rank.receives {
                let outcome = rank.engine.take(receiving.op);
                receiving.cancelled |= outcome.as_ref().is_some_and(|o| o.cancelled);
                receiving.outcome = outcome.filter(|o| !o.cancelled);
            }
        }
        for (me, rank) in self.ranks.iter().enumerate() {
            if rank.receives.iter().any(|r| r.cancelled && r.buffer.iter().any(|b| *b != 0)) {
                return Err(format!("rank {me}: the buffer of a cancelled receive was written"));
            }
            let mut known = Vec::new();
            for r in rank.receives.iter().filter(|r| !r.cancelled) {
                let got = r.outcome.as_ref().map(|o| self.identify(me, o, &r.buffer, &known)).transpose()?;
                known.extend(got);
                history.received(me, r.want, got);
            }
        }
        history.check()?;
        self.nothing_left()
    }

    /// Which message a buffer holds; empty ones look alike and are taken to come in order.
    fn identify(&self, me: Rank, outcome: &Outcome, buffer: &[u8], known: &[Got]) -> Result<Got, String> {
        let source = outcome.source;
        let to_me = self.ranks[source].sends.iter().filter(|s| s.to == me);
        for (number, sending) in to_me.enumerate().filter(|(_, sending)| !sending.cancelled) {
            let len = sending.data.len().min(buffer.len());
            let whole = outcome.len as usize == len && buffer[..len] == sending.data[..len];
            let untouched = buffer[len..].iter().all(|b| *b == 0);
            let truncated = outcome.failure.is_some() == (sending.data.len() > buffer.len());
            let got = Got { source, number };
            let counted = len == 0 && known.contains(&got);
            if whole && untouched && truncated && outcome.tag == sending.tag && !counted {
                return Ok(got);
            }
        }
        Err(format!("rank {me} got what nobody sent: {outcome:?}, {buffer:?}"))
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        for rank in &mut self.ranks {
            for r in rank.receives.iter().filter(|r| !r.cancelled && r.outcome.is_none()) {
                rank.engine.cancel(r.op); // at once, or when the sender has given an offer up
            }
        }
        self.settle();
        for me in 0..self.ranks.len() {
            let rank = &mut self.ranks[me];
            for r in rank.receives.iter().filter(|r| !r.cancelled && r.outcome.is_none()) {
                if !rank.engine.take(r.op).is_some_and(|o| o.cancelled) {
                    return Err(format!("rank {me}: a receive without a message cannot be cancelled"));
                }
            }
            let waiting =
                rank.sends.iter().filter(|s| s.op.is_some_and(|op| rank.engine.take(op).is_none())).count();
            let held = self.net.borrow().shares_held(me);
            if held > waiting {
                return Err(format!("rank {me} holds {held} shares for {waiting} sends that wait"));
            }
        }
        Ok(())
    }
}

impl OneRank {
    fn call(&mut self, me: Rank, act: Act) {
        match act {
            Act::Send { to, tag, len, mode } => {
                let number = self.sends.iter().filter(|s| s.to == to).count();
                let data = payload(me, number, len);
                let span = Span { addr: data.as_ptr() as usize, len };
                let op = self.engine.send(to, CONTEXT, tag, span, mode).unwrap();
                self.sends.push(Sending { to, tag, op, data, cancelled: false });
            }
            Act::Receive { source, tag, room } => {
                let want = Want { source, context: CONTEXT, tag };
                let mut buffer = vec![0; room].into_boxed_slice();
                let span = Span { addr: buffer.as_mut_ptr() as usize, len: room };
                let op = self.engine.receive(want, span).unwrap();
                self.receives.push(Receiving { want, op, buffer, cancelled: false, outcome: None });
            }
            Act::Cancel(number) => {
                let receiving = &mut self.receives[number];
                receiving.cancelled |= self.engine.cancel(receiving.op);
            }
            Act::TakeBack(number) => {
                let sending = &mut self.sends[number];
                sending.cancelled |= sending.op.is_some_and(|op| self.engine.cancel(op));
            }
        }
    }

    fn look(&mut self) -> bool {
        self.engine.poll().unwrap_or_else(|fault| panic!("{fault:?}")).is_none()
    }
}

/// How the next step is chosen.
enum Path {
    /// As before up to the last choice, which is new; beyond it always the first.
    Systematic(Vec<(usize, Vec<Step>)>),
    Random(Random),
}

impl Path {
    fn choose(&mut self, depth: usize, choices: Vec<Step>) -> Step {
        match self {
            Path::Random(random) => choices[random.below(choices.len())],
            Path::Systematic(taken) => {
                if depth == taken.len() {
                    taken.push((0, choices));
                }
                taken[depth].1[taken[depth].0]
            }
        }
    }
}

/// Plays every order; how many there are.
fn explore(scenario: &Scenario) -> usize {
    let mut path = Path::Systematic(Vec::new());
    for played in 1.. {
        play(scenario, &mut path);
        let Path::Systematic(taken) = &mut path else { unreachable!() };
        // The deepest choice that has an alternative left takes it.
        while taken.last().is_some_and(|(chosen, choices)| chosen + 1 == choices.len()) {
            taken.pop();
        }
        match taken.last_mut() {
            Some((chosen, _)) => *chosen += 1,
            None => return played,
        }
    }
    unreachable!()
}

/// Plays `count` orders chosen at random, the same ones each time.
fn wander(scenario: &Scenario, count: usize) -> usize {
    let mut path = Path::Random(Random::new(1));
    (0..count).for_each(|_| play(scenario, &mut path));
    count
}

fn play(scenario: &Scenario, path: &mut Path) {
    let steps = RefCell::new(Vec::new());
    let _witness = OnPanic(|| eprintln!("{scenario:?}\nsteps {:?}", steps.borrow()));
    let mut play = Play::new(scenario);
    for depth in 0.. {
        let last = steps.borrow().last().copied();
        let choices = play.choices(last);
        if choices.is_empty() {
            break;
        }
        let step = path.choose(depth, choices);
        steps.borrow_mut().push(step);
        play.step(step);
    }
    if let Err(why) = play.verdict() {
        panic!("{why}");
    }
}

/// Prints how it came to a failure, also if the engine panics.
struct OnPanic<F: Fn()>(F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0();
        }
    }
}

/// A generator (xorshift) and what the tests draw from it.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }

    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn scenario(&mut self) -> Scenario {
        let size = 2 + self.below(2);
        let mut scenario = Scenario::new((0..size).map(|_| self.calls(size)).collect());
        scenario.room = self.of(&[1, 2, 5, 64]);
        scenario.looks = self.below(2) == 0;
        scenario.unexpected_bytes = self.of(&[0, 1 << 20]);
        scenario.reach = (0..size).map(|_| self.below(8) > 0).collect();
        let forced: Vec<_> = forced().collect();
        scenario.force = self.of(&forced);
        scenario.slow = self.below(2) == 0;
        scenario.envelopes = self.of(&[1, 64]);
        scenario
    }

    fn calls(&mut self, size: usize) -> Vec<Act> {
        let (mut receives, mut sends) = (0, 0);
        let mut call = |_| match self.below(20) {
            0 | 1 if receives > 0 => Act::Cancel(self.below(receives)),
            2 if sends > 0 => Act::TakeBack(self.below(sends)),
            0..=9 => {
                sends += 1;
                Act::Send {
                    to: self.below(size),
                    tag: self.of(&[1, 1, 2]),
                    len: self.of(&[0, 4, LONG, LONG, LONG + 20, 100]),
                    mode: self.of(&[Mode::Standard, Mode::Standard, Mode::Synchronous]),
                }
            }
            _ => {
                receives += 1;
                let source = Some(self.below(size));
                let tag = Some(self.of(&[1, 1, 2]));
                let source = if self.below(6) == 0 { None } else { source };
                let tag = if self.below(6) == 0 { None } else { tag };
                Act::Receive { source, tag, room: self.of(&[4, LONG, LONG, 100]) }
            }
        };
        (0..14).map(&mut call).collect()
    }
}

const LONG: usize = 2 * EAGER;

fn send(tag: i32, len: usize) -> Act {
    Act::Send { to: 1, tag, len, mode: Mode::Standard }
}

fn receive(source: Option<Rank>, tag: Option<i32>) -> Act {
    Act::Receive { source, tag, room: LONG }
}

/// All sequences of `len` items.
fn sequences<T: Copy>(items: &[T], len: usize) -> Vec<Vec<T>> {
    (0..len).fold(vec![Vec::new()], |all, _| {
        all.iter().flat_map(|s| items.iter().map(|i| s.iter().copied().chain([*i]).collect())).collect()
    })
}

fn wide() -> bool {
    std::env::var("TERN_RACES").is_ok_and(|v| v == "all")
}

fn synchronous(tag: i32, len: usize) -> Act {
    Act::Send { to: 1, tag, len, mode: Mode::Synchronous }
}

fn wants() -> [Act; 5] {
    let tags = [Some(1), Some(2), None];
    let [one, two, any] = tags.map(|tag| receive(Some(0), tag));
    [one, two, any, receive(None, Some(1)), receive(None, None)]
}

/// The choice, and the protocols whose rules depend on who comes first.
const RACING: [Option<Protocol>; 3] = [None, Some(Protocol::Rget), Some(Protocol::Speculative)];

/// The choice, and each protocol by itself.
fn forced() -> impl Iterator<Item = Option<Protocol>> {
    [None].into_iter().chain(Protocol::ALL.map(|(protocol, _)| Some(protocol)))
}

/// All orders of every pair of a sender's and a receiver's calls.
fn explore_all(sends: &[Vec<Act>], receives: &[Vec<Act>], change: impl Fn(&mut Scenario)) {
    explore_forced(sends, receives, &RACING, change);
}

fn explore_forced(
    sends: &[Vec<Act>],
    receives: &[Vec<Act>],
    forced: &[Option<Protocol>],
    change: impl Fn(&mut Scenario),
) {
    let mut played = 0;
    for s in sends {
        for r in receives {
            for &force in forced {
                let mut scenario = Scenario { force, ..Scenario::new(vec![s.clone(), r.clone()]) };
                change(&mut scenario);
                played += explore(&scenario);
            }
        }
    }
    println!("{played} orders of {} scenarios", sends.len() * receives.len());
    assert!(played > sends.len() * receives.len());
}

/// Two messages and two receives of every kind: all crossings.
#[test]
fn two_pairs_of_every_kind() {
    let sends = [send(1, 4), send(2, 4), send(1, LONG), send(2, LONG), synchronous(1, 4), synchronous(1, 0)];
    explore_all(&sequences(&sends, 2), &sequences(&wants(), 2), |_| ());
}

/// A buffer too short for its message is offered all the same.
#[test]
fn two_pairs_and_short_buffers() {
    let sends = sequences(&[send(1, LONG), send(1, LONG + 20), send(1, 4)], 2);
    explore_all(&sends, &sequences(&wants()[..3], 2), |_| ());
}

/// Three long messages and three receives with offers, tags in every order: an offer that was
/// dropped because it crossed a message must not let a later one overtake it.
#[test]
fn three_pairs_by_rendezvous() {
    let mut sends = sequences(&[send(1, LONG), send(2, LONG)], 3);
    // The other half is the mirror image with tags exchanged.
    sends.truncate(if wide() { 8 } else { 4 });
    let receives = sequences(&wants()[..2], 3);
    for force in [None, Some(Protocol::Speculative)] {
        explore_forced(&sends, &receives, &[force], |_| ());
    }
}

/// As before, messages of every kind and wildcards; only where hours do not matter.
#[test]
fn three_pairs_of_every_kind() {
    let (sends, receives) = if wide() {
        let kinds = [send(1, 4), send(2, 4), send(1, LONG), send(2, LONG)];
        (sequences(&kinds, 3), sequences(&wants(), 3))
    } else {
        let sends = vec![
            vec![send(2, LONG), send(1, 4), send(1, LONG)],
            vec![send(1, 4), send(2, LONG), send(1, LONG)],
        ];
        (sends, sequences(&[receive(Some(0), Some(1)), receive(None, Some(1))], 3))
    };
    explore_all(&sends, &receives, |_| ());
}

/// One of the receives is cancelled, at every moment: either it was matched or it never is.
#[test]
fn a_receive_is_cancelled_meanwhile() {
    let sends = sequences(&[send(1, LONG), send(2, LONG), send(1, 4)], 2);
    let wants = sequences(&wants()[..3], 2);
    let after = |cancel: usize| wants.iter().map(move |w| [w[0], w[1], Act::Cancel(cancel)].to_vec());
    let between = wants.iter().map(|w| [w[0], Act::Cancel(0), w[1]].to_vec());
    let receives: Vec<_> = between.chain(after(0)).chain(after(1)).collect();
    explore_all(&sends, &receives, |_| ());
}

/// A receive is cancelled while sends of another envelope wait for room: the RTR behind that of the
/// cancelled receive must not be used before its receiver knows that the first is given up.
#[test]
fn a_receive_is_cancelled_while_sends_wait() {
    let sends = vec![send(2, LONG), send(2, LONG), send(1, LONG)];
    let [one, two, ..] = wants();
    let receives = vec![one, one, Act::Cancel(0), two, two];
    for force in RACING {
        let scenario = Scenario { room: 1, force, ..Scenario::new(vec![sends.clone(), receives.clone()]) };
        wander(&scenario, if wide() { 1_000_000 } else { 20_000 });
    }
}

/// A send is taken back, at every moment: either its message never was, or it is received.
#[test]
fn a_send_is_cancelled_meanwhile() {
    let sends = [send(1, LONG), send(1, LONG + 20), synchronous(1, 4), synchronous(2, 0), send(1, 4)];
    let pairs = sequences(&sends, 2);
    let after = |taken: usize| pairs.iter().map(move |s| [s[0], s[1], Act::TakeBack(taken)].to_vec());
    let between = pairs.iter().map(|s| [s[0], Act::TakeBack(0), s[1]].to_vec());
    let sends: Vec<_> = between.chain(after(0)).chain(after(1)).collect();
    explore_all(&sends, &sequences(&wants()[..3], 2), |_| ());
}

/// As before, while the receiver takes its buffer back, and with little room.
#[test]
fn both_sides_cancel_meanwhile() {
    let sends = [send(1, LONG), send(1, LONG + 20), synchronous(1, 4), send(1, 4)];
    let pairs = sequences(&sends, 2);
    for s in pairs.iter().map(|s| [s[0], s[1], Act::TakeBack(0), Act::TakeBack(1)].to_vec()) {
        for r in sequences(&wants()[..3], 2).into_iter().map(|w| [w[0], w[1], Act::Cancel(0)].to_vec()) {
            for room in [1, 2, 64] {
                let scenario = Scenario { room, looks: true, ..Scenario::new(vec![s.clone(), r.clone()]) };
                wander(&scenario, if wide() { 10_000 } else { 100 });
            }
        }
    }
}

/// Tables for one or two envelopes: what is forgotten must not let an RTR meet the wrong send.
#[test]
fn envelopes_are_forgotten() {
    let mixed = [send(1, LONG), send(2, LONG), send(3, LONG), send(1, 4), send(2, 4)];
    for seed in 0..if wide() { 20_000 } else { 200 } {
        let mut random = Random::new(seed + 1);
        let sends = (0..8).map(|_| random.of(&mixed)).collect();
        let receives = (0..8).map(|_| receive(Some(0), Some(random.of(&[1, 2, 3])))).collect();
        let force = Some(Protocol::Speculative);
        let scenario = Scenario { force, envelopes: 1, ..Scenario::new(vec![sends, receives]) };
        let _seed = OnPanic(|| eprintln!("seed {seed}"));
        wander(&scenario, 20);
    }
}

/// As before, of messages whose sender is still writing them when they are found: a receive that
/// has part of one cannot be cancelled, and no other receive gets it.
#[test]
fn a_receive_is_cancelled_while_its_message_is_written() {
    let sends = sequences(&[send(1, 4), send(2, 4)], 2);
    let short = |tag| Act::Receive { source: Some(0), tag: Some(tag), room: 4 };
    let wants = sequences(&[short(1), short(2), receive(Some(0), Some(1)), receive(None, Some(1))], 2);
    let calls = |cancel: usize| wants.iter().map(move |w| [w[0], w[1], Act::Cancel(cancel)].to_vec());
    let receives: Vec<_> = calls(0).chain(calls(1)).collect();
    explore_all(&sends, &receives, |scenario| scenario.slow = true);
}

/// Room for one frame only: sends queue, offers and answers find no room.
#[test]
fn two_pairs_with_little_room() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, LONG)], 2);
    for (s, r) in
        sends.iter().flat_map(|s| sequences(&wants()[..3], 2).into_iter().map(move |r| (s.clone(), r)))
    {
        for room in [1, 2] {
            let scenario = Scenario { room, looks: true, ..Scenario::new(vec![s.clone(), r.clone()]) };
            if wide() {
                explore(&scenario)
            } else {
                wander(&scenario, 300)
            };
        }
    }
}

/// Unexpected eager messages must stay where they are.
#[test]
fn two_pairs_under_back_pressure() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, 4)], 2);
    explore_all(&sends, &sequences(&wants()[..2], 2), |scenario| scenario.unexpected_bytes = 0);
}

/// Every protocol for long messages, whole and cut.
#[test]
fn two_pairs_by_every_protocol() {
    let sends = sequences(&[send(1, LONG), send(2, LONG + 20), send(1, 4)], 2);
    let receives = sequences(&wants()[..3], 2);
    for (protocol, _) in Protocol::ALL {
        explore_forced(&sends, &receives, &[Some(protocol)], |_| ());
    }
}

/// Only one side, or none, can copy from and to the other.
#[test]
fn two_pairs_without_reach() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, 100)], 2);
    let receives = sequences(&wants()[..3], 2);
    for reach in [[true, false], [false, true], [false, false]] {
        explore_all(&sends, &receives, |scenario| scenario.reach = reach.to_vec());
    }
}

/// Copying is refused to a rank, or to both, from some message on: those under way arrive whole.
#[test]
fn two_pairs_that_are_refused_in_the_middle() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, 100)], 2);
    let receives = sequences(&wants()[..3], 2);
    for grants in [[0, usize::MAX], [usize::MAX, 0], [0, 0], [1, 0], [0, 1], [1, 1]] {
        explore_forced(&sends, &receives, &[None], |scenario| scenario.grants = grants.to_vec());
    }
}

/// Both send first and receive then, or the other way round.
#[test]
fn exchanges() {
    let calls = |me: usize| {
        let other = 1 - me;
        let (send, receive) = (
            Act::Send { to: other, tag: 1, len: LONG, mode: Mode::Standard },
            Act::Receive { source: Some(other), tag: Some(1), room: LONG },
        );
        [
            vec![send, receive, send, receive],
            vec![receive, send, receive, send],
            vec![receive, receive, send, send],
        ]
    };
    let mut played = 0;
    for (first, second) in calls(0).iter().flat_map(|f| calls(1).map(|s| (f.clone(), s))) {
        if wide() {
            played += explore(&Scenario::new(vec![first, second]));
        } else {
            played += wander(&Scenario::new(vec![first, second]), 2000);
        }
    }
    println!("{played} orders");
}

/// Two senders, and receives from any: who comes first is open, the rest is not.
#[test]
fn two_senders() {
    let to_2 = |tag, len| Act::Send { to: 2, tag, len, mode: Mode::Standard };
    let wants = [(Some(0), Some(1)), (Some(1), Some(1)), (None, Some(1)), (None, None)];
    let wants = wants.map(|(source, tag)| receive(source, tag));
    for receives in sequences(&wants, 3) {
        for (a, b) in [(LONG, LONG), (4, LONG), (LONG, 4)] {
            let calls = vec![vec![to_2(2, 4), to_2(1, a)], vec![to_2(1, b), to_2(1, LONG)], receives.clone()];
            wander(&Scenario::new(calls), if wide() { 20_000 } else { 200 });
        }
    }
}

/// Long random scenarios in random orders: offers run out of shares, queues fill, all at once.
#[test]
fn long_scenarios() {
    let first: u64 = std::env::var("TERN_SEED").map_or(1, |s| s.parse().expect("TERN_SEED is a number"));
    let count = if wide() { 1_000_000 } else { 5_000 };
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let scenario = random.scenario();
        let mut path = Path::Random(random);
        let _seed = OnPanic(|| eprintln!("TERN_SEED={seed} cargo test -p proto --test races long_scenarios"));
        play(&scenario, &mut path);
    }
}
