//! Random one-sided epochs against a model of bytes, under every schedule, over adapters that promise no more than
//! verbs do. Seeds: `TERN_HOSTILE_SEEDS=1000` for a night; a failure prints the conditions.

use super::{hostile_net, scarce, span};
use crate::adapter::{self, Adapter, Net, Shared};
use crate::random::Random;
use fabric::{Distance, Nap};
use proto::channel::{Channel, Settings};
use proto::epoch::{Ending, Mark, Schedule};
use proto::{CacheLimits, EagerBy, Engine, Event, Limits};

const RANKS: usize = 3;
const WINDOW: u32 = 5;
/// A third for each origin, and in it a half that is written while the other one is read.
const PART: usize = 120_000;
const BYTES: usize = 2 * RANKS * PART;
/// What memory holds that has been given back.
const FREE: u8 = 0xEE;

#[derive(Clone, Copy, Debug)]
struct Conditions {
    seed: u64,
    schedule: (Schedule, &'static str),
    rails: usize,
    in_order: bool,
    fails_one_in: usize,
    /// Bytes that may be registered.
    lockable_bytes: Option<usize>,
}

struct OnPanic(Conditions);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}", self.0);
        }
    }
}

/// A Get under way: where it lands, and what is expected there.
struct Got {
    into: Vec<u8>,
    expected: Vec<u8>,
}

struct Job {
    engines: Vec<Engine<Channel<Adapter>>>,
    windows: Vec<Vec<u8>>,
    model: Vec<Vec<u8>>,
    random: Random,
    epoch: usize,
    fails: bool,
    /// A copied Put has failed behind its epoch: the next one that is told of a failure tells of it.
    owed: bool,
    _net: Shared,
}

impl Job {
    fn new(conditions: Conditions) -> Job {
        let mut random = Random::new(conditions.seed);
        let Conditions { seed, rails, in_order, fails_one_in, .. } = conditions;
        let net = hostile_net(RANKS, seed, (rails, in_order), fails_one_in);
        {
            let net = &mut *net.get();
            net.caps.inline_bytes = random.of(&[0, 64]);
            net.caps.lockable_bytes = conditions.lockable_bytes.unwrap_or(net.caps.lockable_bytes);
        }
        let limits = Limits {
            eager_bytes: random.of(&[0, 1000, 4096]),
            adapt: random.of(&[true, false]),
            eager_by: random.of(&[EagerBy::Choice, EagerBy::Copy, EagerBy::ZeroCopy]),
            ..limits()
        };
        let engine = |me| {
            let channel = Channel::new(Adapter::new(me, &net), scarce()).unwrap();
            Engine::new(channel, limits.clone())
        };
        let mut engines: Vec<_> = (0..RANKS).map(engine).collect();
        let mut windows: Vec<Vec<u8>> =
            (0..RANKS).map(|rank| (0..BYTES).map(|at| (at * 7 + at / 255 + rank) as u8).collect()).collect();
        let exposed: Vec<_> =
            engines.iter_mut().zip(&mut windows).map(|(e, w)| e.expose(WINDOW, span(w)).unwrap()).collect();
        for engine in &mut engines {
            for (rank, theirs) in exposed.iter().enumerate() {
                engine.admit(WINDOW, rank, *theirs).unwrap();
            }
            engine.schedule(WINDOW, conditions.schedule.0).unwrap();
        }
        let model = windows.clone();
        Job {
            engines,
            windows,
            model,
            random,
            epoch: 0,
            fails: conditions.fails_one_in > 0,
            owed: false,
            _net: net,
        }
    }

    fn look(&mut self) {
        let rank = self.random.below(RANKS);
        if let Some(nap) = self.engines[rank].poll().unwrap() {
            nap.take();
        }
    }

    /// An epoch in which every rank is origin and target; how many ranks it failed for.
    fn run(&mut self, ending: Ending) -> usize {
        let gated = ending == Ending::Complete;
        self.epoch += 1;
        let written = self.epoch % 2;
        let before = self.model.clone();
        let (mut puts, mut gets): (Vec<Vec<Vec<u8>>>, Vec<Vec<Got>>) = Default::default();
        let mut calls = Vec::new();
        for me in 0..RANKS {
            puts.push(Vec::new());
            gets.push(Vec::new());
            let all: Vec<usize> = (0..RANKS).collect();
            if gated {
                calls.push((me, None));
            }
            self.engines[me].start(WINDOW, &all, gated).unwrap();
            let mut free = [0; RANKS];
            for _ in 0..self.random.below(20) {
                calls.push((me, Some(self.random.below(2))));
            }
            for call in calls.iter_mut().filter(|call| call.0 == me && call.1.is_some()) {
                let target = self.random.below(RANKS);
                let scale = self.random.of(&[10, 10, 400, 3000, 20_000, 90_000]);
                let len = 1 + self.random.below(scale);
                if call.1 == Some(0) && free[target] + len <= PART {
                    let at = (2 * me + written) * PART + free[target];
                    free[target] += len + self.random.below(3);
                    let data: Vec<u8> = (0..len).map(|byte| (byte * 13 + at + self.epoch) as u8).collect();
                    self.model[target][at..at + len].copy_from_slice(&data);
                    call.1 = Some(1000 + 10 * puts[me].len() + target);
                    puts[me].push(data);
                    // Where it goes is kept behind the data.
                    puts[me].last_mut().unwrap().extend_from_slice(&(at as u64).to_le_bytes());
                } else {
                    let part = (2 * self.random.below(RANKS) + 1 - written) * PART;
                    let at = part + self.random.below(PART - len);
                    let expected = before[target][at..at + len].to_vec();
                    let place = gets[me].len();
                    gets[me].push(Got { into: vec![0; len], expected });
                    call.1 = Some(1_000_000 + (place * BYTES + at) * RANKS + target);
                }
            }
        }
        self.call_all(ending, &calls, &mut puts, &mut gets);
        self.finish(ending, &mut puts, &gets)
    }

    /// Every rank calls in its own order, at any time between those of the others.
    fn call_all(
        &mut self,
        ending: Ending,
        calls: &[(usize, Option<usize>)],
        puts: &mut [Vec<Vec<u8>>],
        gets: &mut [Vec<Got>],
    ) {
        let mut next: Vec<std::collections::VecDeque<_>> = (0..RANKS)
            .map(|me| calls.iter().filter(|call| call.0 == me).map(|call| call.1).collect())
            .collect();
        let mut closed = [false; RANKS];
        while closed.contains(&false) {
            let me = self.random.below(RANKS);
            let (engine, looks) = (&mut self.engines[me], self.random.below(3));
            match next[me].pop_front() {
                None if closed[me] => {}
                None => {
                    engine.close(WINDOW, ending).unwrap();
                    closed[me] = true;
                }
                Some(None) => engine.post(WINDOW, &(0..RANKS).collect::<Vec<_>>()).unwrap(),
                Some(Some(put)) if put < 1_000_000 => {
                    let (number, target) = ((put - 1000) / 10, put % 10);
                    let bytes = &mut puts[me][number];
                    let len = bytes.len() - 8;
                    let at = u64::from_le_bytes(bytes[len..].try_into().unwrap());
                    engine.put(WINDOW, target, at, span(&mut bytes[..len])).unwrap();
                }
                Some(Some(get)) => {
                    let (place, target) = ((get - 1_000_000) / RANKS, (get - 1_000_000) % RANKS);
                    let into = span(&mut gets[me][place / BYTES].into);
                    engine.get(WINDOW, target, (place % BYTES) as u64, into).unwrap();
                }
            }
            (0..looks).for_each(|_| self.look());
        }
    }

    fn finish(&mut self, ending: Ending, puts: &mut [Vec<Vec<u8>>], gets: &[Vec<Got>]) -> usize {
        let mut closed: [Option<bool>; RANKS] = Default::default();
        let mut over = [ending == Ending::Flush; RANKS];
        let (all, mut rounds): (Vec<usize>, usize) = ((0..RANKS).collect(), 0);
        while closed.contains(&None) || over.contains(&false) {
            self.look();
            for me in 0..RANKS {
                if closed[me].is_none() {
                    closed[me] = match self.engines[me].is_closed(WINDOW) {
                        Ok(false) => None,
                        Ok(true) => Some(true),
                        Err(_) => Some(false),
                    };
                    if closed[me] == Some(true) {
                        let wrong = gets[me].iter().position(|got| got.into != got.expected);
                        assert_eq!(wrong, None, "a Get of rank {me} in epoch {}", self.epoch);
                        if ending == Ending::Flush {
                            self.placed_by(me);
                        }
                    }
                    if closed[me].is_some() {
                        puts[me].iter_mut().for_each(|bytes| bytes.fill(FREE));
                    }
                }
                over[me] |= !matches!(self.engines[me].is_exposure_over(WINDOW, &all), Ok(false));
            }
            rounds += 1;
            assert!(rounds < 3_000_000, "stuck in epoch {}: {closed:?} {over:?}", self.epoch);
        }
        let failed = closed.iter().filter(|closed| **closed == Some(false)).count();
        if failed > 0 {
            self.owed = false;
            // What a failed epoch leaves is not known.
            (0..30_000).for_each(|_| self.look());
            self.model = self.windows.clone();
        }
        if self.fails && self.windows != self.model {
            (self.owed, self.model) = (true, self.windows.clone());
        }
        for rank in 0..RANKS {
            let wrong = (0..BYTES).find(|at| self.windows[rank][*at] != self.model[rank][*at]);
            assert_eq!(wrong, None, "window of rank {rank} behind epoch {}", self.epoch);
        }
        failed
    }

    /// A flush of this rank is over: what it has put is there.
    fn placed_by(&self, me: usize) {
        for target in 0..RANKS {
            let mine = 2 * me * PART..2 * (me + 1) * PART;
            let is_there = self.windows[target][mine.clone()] == self.model[target][mine];
            assert!(is_there, "Puts of rank {me} at rank {target} in epoch {}", self.epoch);
        }
    }

    /// Nothing is left behind.
    fn end(mut self) {
        (0..10_000).for_each(|_| self.look());
        for engine in &mut self.engines {
            assert!(!engine.needs_care());
            // A copied Put that failed behind its epoch is told here.
            if engine.withdraw(WINDOW).is_err() {
                assert!(self.fails);
                self.owed = false;
                engine.withdraw(WINDOW).unwrap();
            }
            assert_eq!(engine.registrations().len(), 0, "a registration was left");
        }
        assert!(!self.owed, "nobody was told of a Put that failed behind its epoch");
    }
}

fn run(conditions: Conditions) -> usize {
    let _conditions = OnPanic(conditions);
    let mut job = Job::new(conditions);
    let mut failed = 0;
    for epoch in 0..6 {
        failed += job.run(if epoch % 3 == 2 { Ending::Flush } else { Ending::Complete });
    }
    job.end();
    failed
}

fn all(fails_one_in: usize, lockable_bytes: Option<usize>) -> usize {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("TERN_HOSTILE_FIRST").unwrap_or(1);
    let mut failed = 0;
    for seed in first..first + number("TERN_HOSTILE_SEEDS").unwrap_or(2) {
        for schedule in Schedule::ALL {
            for (rails, in_order) in [(1, true), (1, false), (3, true), (3, false)] {
                failed += run(Conditions { seed, schedule, rails, in_order, fails_one_in, lockable_bytes });
            }
        }
    }
    failed
}

#[test]
fn every_schedule_leaves_the_bytes_of_the_model() {
    assert_eq!(all(0, None), 0);
}

#[test]
fn a_transfer_that_fails_fails_its_epoch_and_nothing_hangs() {
    assert!(all(40, None) > 20, "transfers fail");
}

#[test]
fn what_cannot_be_registered_goes_in_messages() {
    assert_eq!(all(0, Some(1 << 20)), 0);
}

#[test]
fn misuse_is_told_with_window_and_rank() {
    let schedule = Schedule::ALL[0];
    let conditions =
        Conditions { seed: 1, schedule, rails: 1, in_order: true, fails_one_in: 0, lockable_bytes: None };
    let mut job = Job::new(conditions);
    let mut bytes = vec![0; 100];
    let data = span(&mut bytes);
    let engine = &mut job.engines[0];
    let text = |result: Result<(), fabric::Fault>| result.unwrap_err().to_string();
    assert!(text(engine.put(WINDOW, 1, 0, data)).contains("no epoch at rank 1 is open"));
    assert!(text(engine.put(9, 1, 0, data)).contains("no window 9"));
    engine.start(WINDOW, &[1], false).unwrap();
    assert!(text(engine.start(WINDOW, &[1], false)).contains("an epoch at rank 1 is under way"));
    assert!(text(engine.withdraw(WINDOW)).contains("has not ended"));
    for offset in [BYTES as u64 - 99, u64::MAX, u64::MAX - 50] {
        let refused = text(engine.get(WINDOW, 1, offset, data));
        assert!(refused.contains("window 5 of rank 1: 100 bytes at"), "{refused}");
    }
    assert!(text(engine.expose(WINDOW, data).map(drop)).contains("is there already"));
    assert_eq!(engine.counters().get(Event::PutDirect), 0);
}

type Rank = Engine<Channel<Adapter>>;

/// Nothing is kept registered.
fn limits() -> Limits {
    Limits { cache: CacheLimits { bytes: 0, regions: 1 }, ..adapter::limits() }
}

/// Two ranks with a window each.
fn two(schedule: Schedule) -> (Shared, [Rank; 2], [Vec<u8>; 2]) {
    let net = Net::shared(2);
    net.get().hostile = true;
    let mut engines = [0, 1].map(|me| {
        let channel = Channel::new(Adapter::new(me, &net), Settings::default()).unwrap();
        Engine::new(channel, limits())
    });
    let mut windows = [vec![1u8; 4096], vec![2u8; 4096]];
    let exposed = [0, 1].map(|at: usize| engines[at].expose(WINDOW, span(&mut windows[at])).unwrap());
    for (me, engine) in engines.iter_mut().enumerate() {
        engine.admit(WINDOW, 1 - me, exposed[1 - me]).unwrap();
        engine.schedule(WINDOW, schedule).unwrap();
    }
    (net, engines, windows)
}

fn look(engine: &mut Rank) {
    if let Some(nap) = engine.poll().unwrap() {
        nap.take();
    }
}

/// Two ranks, the first of which puts or gets so many bytes from memory of its own or of its window; what the end of that fence said, and of
/// how many writes that a frame follows.
fn fence_of(schedule: Schedule, puts: usize, gets: usize, lands: bool) -> (bool, u32) {
    let (net, mut engines, mut windows) = two(schedule);
    let mut own = vec![0u8; 4096];
    engines[0].start(WINDOW, &[1], false).unwrap();
    if gets > 0 {
        let into = span(if lands { &mut windows[0] } else { &mut own });
        engines[0].get(WINDOW, 1, 0, into.part(0, gets)).unwrap();
    }
    if puts > 0 {
        engines[0].put(WINDOW, 1, 2048, span(&mut own).part(2048, puts)).unwrap();
    }
    engines[0].mark(WINDOW, 1, Mark { turn: true, ..Mark::default() }, true).unwrap();
    engines[0].close_at(WINDOW, &[1], Ending::Complete).unwrap();
    for _ in 0..100_000 {
        engines.iter_mut().for_each(look);
        let theirs = engines[1].next_mark(WINDOW, 0).unwrap();
        if engines[0].is_closed_at(WINDOW, &[1]).unwrap()
            && engines[1].is_exposure_over(WINDOW, &[0]).unwrap()
        {
            let ours = engines[0].last_mark(WINDOW, 1).unwrap();
            assert_eq!((theirs, ours.turn), (Some(ours), true));
            return (ours.again, net.get().leads);
        }
    }
    panic!("the fence does not end");
}

/// A fence of two ranks takes a second word behind Puts in messages, unless an answer comes from behind them, and behind answers that go to a
/// window; not behind other Gets.
#[test]
fn a_second_word_is_said_where_something_could_be_overtaken() {
    let [aggregate, original, first] =
        ["aggregate", "original", "gets-first"].map(|name| Schedule::named(name).unwrap());
    for (schedule, puts, gets, lands, again) in [
        (aggregate, 100, 0, false, true),
        (aggregate, 0, 100, false, false),
        (aggregate, 0, 100, true, true),
        (aggregate, 100, 100, false, false),
        (aggregate, 100, 100, true, true),
        (original, 100, 100, true, false),
        (first, 0, 100, true, false),
    ] {
        let (said, _) = fence_of(schedule, puts, gets, lands);
        assert_eq!(said, again, "{schedule:?}, {puts} put, {gets} got, lands {lands}");
    }
}

/// The last write of an epoch leaves with the word of its end; behind a Get, and where the word waits for Puts, that comes later.
#[test]
fn the_last_write_leaves_with_the_word_of_the_end() {
    for (name, gets, leads) in [("gets-first", 0, 1), ("gets-first", 100, 0), ("original", 0, 0)] {
        assert_eq!(
            fence_of(Schedule::named(name).unwrap(), 1000, gets, false).1,
            leads,
            "{name}, {gets} got"
        );
    }
}

/// What is asked and answered shows how long a way is, also to who sends no long messages: Puts and their flush, and Gets in messages.
#[test]
fn answers_show_how_long_a_way_is() {
    for (ending, puts) in [(Ending::Flush, true), (Ending::Complete, false)] {
        let (_net, mut engines, _windows) = two(Schedule::named("aggregate").unwrap());
        let mut own = vec![0u8; 64];
        let seen =
            |engine: &Engine<Channel<Adapter>>| engine.learner().facts.path(Distance::Network).latency.count;
        assert_eq!(seen(&engines[0]), 0);
        for _ in 0..100 {
            engines[0].start(WINDOW, &[1], false).unwrap();
            match puts {
                true => engines[0].put(WINDOW, 1, 0, span(&mut own)).unwrap(),
                false => engines[0].get(WINDOW, 1, 0, span(&mut own)).unwrap(),
            }
            engines[0].close_at(WINDOW, &[1], ending).unwrap();
            while !engines[0].is_closed_at(WINDOW, &[1]).unwrap() {
                engines.iter_mut().for_each(look);
            }
        }
        assert!(seen(&engines[0]) > 0, "{ending:?}");
        assert_eq!(seen(&engines[1]), 0);
    }
}
