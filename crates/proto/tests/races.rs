//! Every interleaving of sends, receives, cancels and arriving frames, in one thread: whatever
//! the order, messages match as MPI says, arrive whole, and leave nothing behind.
//!
//! `TERN_RACES=all` explores the wide sets too (minutes); a failure prints its scenario and the
//! steps that led to it.

mod fake;
mod rules;

use fabric::{Rank, Span};
use fake::{Fake, Net};
use proto::{Engine, Limits, Mode, OpId, Outcome, Want};
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
    reach: Vec<bool>,
}

impl Scenario {
    fn new(ranks: Vec<Vec<Act>>) -> Scenario {
        let reach = vec![true; ranks.len()];
        Scenario { ranks, room: 64, unexpected_bytes: 1 << 20, looks: false, reach }
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
}

struct OneRank {
    engine: Engine<Fake>,
    done: usize,
    receives: Vec<Receiving>,
    sends: Vec<Sending>,
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
        let limits = Limits {
            eager_bytes: EAGER,
            unexpected_bytes: scenario.unexpected_bytes,
            unexpected_max_bytes: 1 << 30,
            rtr: true,
            remote_access: true,
        };
        let rank = |me| OneRank {
            engine: Engine::new(Fake::new(me, &net), limits.clone()),
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

    /// Lets everything arrive until nothing moves.
    fn settle(&mut self) {
        let size = self.ranks.len();
        let mut quiet = 0;
        while quiet < 3 {
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
                history.sent(me, sending.to, CONTEXT, sending.tag);
            }
            for receiving in &mut rank.receives {
                receiving.outcome = rank.engine.take(receiving.op).filter(|o| !o.cancelled);
            }
        }
        for (me, rank) in self.ranks.iter().enumerate() {
            for r in rank.receives.iter().filter(|r| !r.cancelled) {
                let got =
                    r.outcome.as_ref().map(|outcome| self.identify(me, outcome, &r.buffer)).transpose()?;
                history.received(me, r.want, got);
            }
        }
        history.check()?;
        self.nothing_left()
    }

    /// Which message a buffer holds.
    fn identify(&self, me: Rank, outcome: &Outcome, buffer: &[u8]) -> Result<Got, String> {
        let source = outcome.source;
        let to_me = self.ranks[source].sends.iter().filter(|s| s.to == me);
        for (number, sending) in to_me.enumerate() {
            let len = sending.data.len().min(buffer.len());
            let whole = outcome.len as usize == len && buffer[..len] == sending.data[..len];
            let untouched = buffer[len..].iter().all(|b| *b == 0);
            let truncated = outcome.failure.is_some() == (sending.data.len() > buffer.len());
            if whole && untouched && truncated && outcome.tag == sending.tag {
                return Ok(Got { source, number });
            }
        }
        Err(format!("rank {me} got what nobody sent: {outcome:?}, {buffer:?}"))
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        for me in 0..self.ranks.len() {
            let rank = &mut self.ranks[me];
            for r in rank.receives.iter().filter(|r| !r.cancelled && r.outcome.is_none()) {
                if !rank.engine.cancel(r.op) {
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
                self.sends.push(Sending { to, tag, op, data });
            }
            Act::Receive { source, tag, room } => {
                let want = Want { source, context: CONTEXT, tag };
                let mut buffer = vec![0; room].into_boxed_slice();
                let op = self.engine.receive(want, Span { addr: buffer.as_mut_ptr() as usize, len: room });
                self.receives.push(Receiving { want, op, buffer, cancelled: false, outcome: None });
            }
            Act::Cancel(number) => {
                let receiving = &mut self.receives[number];
                receiving.cancelled = self.engine.cancel(receiving.op);
            }
        }
    }

    fn look(&mut self) -> bool {
        self.engine.progress().unwrap_or_else(|fault| panic!("{fault:?}"))
    }
}

/// Plays `path`, then any order at all beyond it; the number of orders.
fn explore(scenario: &Scenario) -> usize {
    let (mut path, mut played): (Vec<(usize, Vec<Step>)>, usize) = (Vec::new(), 0);
    loop {
        let steps = play(scenario, &mut path);
        played += 1;
        drop(steps);
        // The next path: the deepest choice that has an alternative left takes it.
        while path.last().is_some_and(|(chosen, choices)| chosen + 1 == choices.len()) {
            path.pop();
        }
        match path.last_mut() {
            Some((chosen, _)) => *chosen += 1,
            None => return played,
        }
    }
}

/// Prints how it came to a failure, whether the engine panics or the verdict is bad.
struct Witness<'a>(&'a Scenario, Vec<Step>);

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("scenario {:?}\nsteps {:?}", self.0, self.1);
        }
    }
}

fn play<'a>(scenario: &'a Scenario, path: &mut Vec<(usize, Vec<Step>)>) -> Witness<'a> {
    let mut witness = Witness(scenario, Vec::new());
    let mut play = Play::new(scenario);
    for depth in 0.. {
        let choices = play.choices(witness.1.last().copied());
        if choices.is_empty() {
            break;
        }
        if depth == path.len() {
            path.push((0, choices));
        }
        let step = path[depth].1[path[depth].0];
        witness.1.push(step);
        play.step(step);
    }
    if let Err(why) = play.verdict() {
        panic!("{why}");
    }
    witness
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

/// Two messages and two receives of every kind: all crossings.
#[test]
fn two_pairs_of_every_kind() {
    let sends = [send(1, 4), send(2, 4), send(1, LONG), send(2, LONG)];
    let wants = [
        receive(Some(0), Some(1)),
        receive(Some(0), Some(2)),
        receive(Some(0), None),
        receive(None, Some(1)),
        receive(None, None),
    ];
    let mut played = 0;
    for s in sequences(&sends, 2) {
        for r in sequences(&wants, 2) {
            played += explore(&Scenario::new(vec![s.clone(), r]));
        }
    }
    println!("{played} orders");
}

/// Three long messages and three receives with offers, tags in every order: an offer that was
/// dropped because it crossed a message must not let a later one overtake it.
#[test]
fn three_pairs_by_rendezvous() {
    let mut played = 0;
    for s in sequences(&[send(1, LONG), send(2, LONG)], 3) {
        if !wide() && s[0] == send(1, LONG) {
            continue; // the mirror image with tags exchanged
        }
        for r in sequences(&[receive(Some(0), Some(1)), receive(Some(0), Some(2))], 3) {
            played += explore(&Scenario::new(vec![s.clone(), r]));
        }
    }
    println!("{played} orders");
}
