//! A scenario being played on a [`Stage`], in every order or in orders by chance, and what is demanded of it.

use super::scenario::{Act, Scenario, Step};
use super::stage::{Scripted, Stage};
use super::{CONTEXT, EAGER};
use crate::random::Random;
use crate::rules::{Got, History};
use fabric::{Device, Rank, Span};
use proto::{CacheLimits, Engine, Limits, OpId, Outcome, Tuning, Want};
use std::cell::RefCell;
use std::ops::Range;

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

struct OneRank<D: Device> {
    engine: Engine<D>,
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
struct Play<'a, S: Stage> {
    scenario: &'a Scenario,
    stage: S,
    ranks: Vec<OneRank<S::Device>>,
}

fn payload(from: Rank, number: usize, len: usize) -> Box<[u8]> {
    (0..len).map(|k| (from * 101 + number * 37 + k * 11 + 1) as u8).collect()
}

impl<'a, S: Stage> Play<'a, S> {
    fn new(scenario: &'a Scenario, seed: u64) -> Play<'a, S> {
        let (size, stage) = (scenario.ranks.len(), S::new(scenario, seed));
        let limits = Limits {
            eager_bytes: EAGER,
            unexpected_bytes: scenario.unexpected_bytes,
            force: scenario.force,
            cache: CacheLimits { bytes: 0, regions: 1 },
            ..Limits::default()
        };
        let rank = |me| OneRank {
            engine: {
                let mut engine = Engine::new(stage.device(me), limits.clone());
                engine.tune(tuning(scenario.envelopes));
                engine
            },
            done: 0,
            receives: Vec::new(),
            sends: Vec::new(),
        };
        Play { scenario, ranks: (0..size).map(rank).collect(), stage }
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
            let peers = (0..size).filter(|to| self.stage.under_way(from, *to));
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
                self.stage.arrive(from, to);
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
        let patience = if self.scenario.unexpected_bytes == 0 { 100 } else { S::PATIENCE };
        let mut quiet = 0;
        while quiet < patience {
            let mut moved = false;
            for from in 0..size {
                for to in 0..size {
                    while self.stage.under_way(from, to) {
                        self.stage.arrive(from, to);
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
            for sending in &mut rank.sends {
                // At once, or when the receiver had answered.
                let outcome = sending.op.and_then(|op| rank.engine.outcome(op));
                sending.cancelled |= outcome.is_some_and(|o| o.cancelled);
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
            self.stage.left(me, &rank.engine, waiting)?;
        }
        Ok(())
    }
}

impl<D: Device> OneRank<D> {
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
pub enum Path {
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
pub fn explore(scenario: &Scenario) -> usize {
    let mut path = Path::Systematic(Vec::new());
    for played in 1.. {
        play::<Scripted>(scenario, &mut path, 0);
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

/// Plays an order by chance for each of these seeds; how many there are.
pub fn wander<S: Stage>(scenario: &Scenario, seeds: Range<usize>) -> usize {
    let mut path = Path::Random(Random::new(seeds.start as u64 + 1));
    seeds.map(|seed| play::<S>(scenario, &mut path, seed as u64)).count()
}

/// Plays one order.
pub fn play<S: Stage>(scenario: &Scenario, path: &mut Path, seed: u64) {
    let steps = RefCell::new(Vec::new());
    let _witness = OnPanic(|| eprintln!("{scenario:?}\nseed {seed}, steps {:?}", steps.borrow()));
    let mut play = Play::<S>::new(scenario, seed);
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
pub struct OnPanic<F: Fn()>(pub F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0();
        }
    }
}
