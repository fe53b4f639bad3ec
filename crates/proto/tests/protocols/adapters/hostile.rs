//! Long messages over adapters that keep the promises of `fabric::verbs` and no others: what has been
//! received is whole when its operation ends, and memory that was given back is left alone, also where
//! transfers fail. Seeds: `TERN_HOSTILE_SEEDS=1000` for a night; a failure prints the conditions.

use super::{hostile_net, scarce, span};
use crate::adapter::{Adapter, Shared};
use crate::random::Random;
use fabric::Nap;
use proto::channel::{Channel, Settings};
use proto::{CacheLimits, Engine, Failure, Limits, Mode, OpId, Protocol, Tuning, Want};

const RANKS: usize = 3;
const CONTEXT: u64 = 4;
/// What memory holds that has been given back.
const FREE: u8 = 0xEE;

/// Under which conditions a job runs.
#[derive(Clone, Copy, Debug)]
struct Conditions {
    seed: u64,
    force: Option<Protocol>,
    rails: usize,
    in_order: bool,
    fails_one_in: usize,
}

struct Message {
    from: usize,
    to: usize,
    source: Vec<u8>,
    target: Vec<u8>,
    send: Option<OpId>,
    receive: Option<OpId>,
    /// Whether both ends have ended, and the bytes are where they belong.
    sent: bool,
    received: bool,
}

fn byte(message: usize, at: usize) -> u8 {
    (at * 31 + at / 256 + message * 7) as u8
}

struct Job {
    net: Shared,
    engines: Vec<Engine<Channel<Adapter>>>,
    random: Random,
    messages: Vec<Message>,
    failed: usize,
}

impl Job {
    fn new(conditions: Conditions) -> Job {
        let mut random = Random::new(conditions.seed);
        let Conditions { seed, rails, in_order, fails_one_in, .. } = conditions;
        let net = hostile_net(RANKS, seed, (rails, in_order), fails_one_in);
        {
            let net = &mut *net.get();
            net.caps.inline_bytes = random.of(&[0, 64]);
            net.caps.at_once_bytes = random.of(&[0, 1 << 20]);
        }
        let settings = Settings { staged_bytes: random.of(&[100, 16 << 10]), ..scarce() };
        let limits = Limits {
            eager_bytes: random.of(&[0, 4096]),
            unexpected_bytes: 1 << 20,
            adapt: random.of(&[true, false]),
            force: conditions.force,
            cache: CacheLimits { bytes: 0, regions: 1 },
            ..Limits::default()
        };
        let tuning = Tuning {
            head_bytes: random.of(&[0, 1000]),
            rdma_offset_bytes: random.of(&[0, 5000]),
            block_bytes: random.of(&[8192, 40_000]),
            depth: 3,
            staging_bytes: 20_000,
            staged_messages: 2,
            ..Tuning::default()
        };
        let engine = |me| {
            let channel = Channel::new(Adapter::new(me, &net), settings.clone()).unwrap();
            let mut engine = Engine::new(channel, limits.clone());
            engine.tune(tuning.clone());
            engine
        };
        let engines = (0..RANKS).map(engine).collect();
        Job { net, engines, random, messages: Vec::new(), failed: 0 }
    }

    fn message(&mut self, from: usize, to: usize, len: usize) {
        let number = self.messages.len();
        self.messages.push(Message {
            from,
            to,
            source: (0..len).map(|at| byte(number, at)).collect(),
            target: vec![0; len],
            send: None,
            receive: None,
            sent: false,
            received: false,
        });
    }

    fn send(&mut self, number: usize) {
        let message = &mut self.messages[number];
        let (to, data) = (message.to, span(&mut message.source));
        let op = self.engines[message.from].send(to, CONTEXT, number as i32, data, Mode::Standard);
        message.send = op.unwrap();
        if message.send.is_none() {
            message.source.fill(FREE);
            message.sent = true;
        }
    }

    fn receive(&mut self, number: usize) {
        let message = &mut self.messages[number];
        let want = Want { source: Some(message.from), context: CONTEXT, tag: Some(number as i32) };
        message.receive =
            Some(self.engines[message.to].receive(want, span(&mut message.target)).expect("there is room"));
    }

    /// A rank looks around, and something happens; takes in what has ended.
    fn look(&mut self) {
        let rank = self.random.below(RANKS);
        if let Some(nap) = self.engines[rank].poll().unwrap() {
            nap.take();
        }
        for (number, message) in self.messages.iter_mut().enumerate() {
            if message.from == rank
                && let Some(outcome) = message.send.and_then(|op| self.engines[rank].take(op))
            {
                message.source.fill(FREE);
                (message.send, message.sent) = (None, true);
                self.failed += usize::from(outcome.failure.is_some());
            }
            if message.to == rank
                && let Some(outcome) = message.receive.and_then(|op| self.engines[rank].take(op))
            {
                match outcome.failure.as_deref() {
                    None => {
                        let wrong =
                            message.target.iter().enumerate().position(|(at, b)| *b != byte(number, at));
                        assert_eq!(wrong, None, "message {number} of {} bytes", message.target.len());
                    }
                    Some(Failure::Device(_)) => self.failed += 1,
                    other => panic!("message {number}: {other:?}"),
                }
                message.target.fill(FREE);
                (message.receive, message.received) = (None, true);
            }
        }
    }

    /// Looks around until all these messages have ended.
    fn finish(&mut self, numbers: &[usize]) {
        let mut rounds = 0;
        while !numbers.iter().all(|n| self.messages[*n].sent && self.messages[*n].received) {
            self.look();
            rounds += 1;
            let pending = || self.engines.iter().map(Engine::pending).collect::<Vec<_>>();
            assert!(rounds < 2_000_000, "stuck: {:#?}", pending());
        }
    }

    /// Everything that is still under way happens, and memory that was given back is as it was left.
    fn end(mut self) -> usize {
        let numbers: Vec<usize> = (0..self.messages.len()).collect();
        self.finish(&numbers);
        (0..20_000).for_each(|_| self.look());
        assert!(self.engines.iter().all(|engine| engine.pending().is_empty()));
        let is_free = |bytes: &[u8]| bytes.iter().all(|b| *b == FREE);
        for (number, message) in self.messages.iter().enumerate() {
            assert!(is_free(&message.source) && is_free(&message.target), "message {number} landed again");
        }
        let long = |engine: &Engine<Channel<Adapter>>| engine.registrations().len();
        assert!(self.engines.iter().all(|engine| long(engine) == 0), "a registration was left");
        self.failed
    }
}

/// Messages of all lengths between random ranks, sent and received in random orders; how many ends failed.
fn run(conditions: Conditions) -> usize {
    let _conditions = OnPanic(conditions);
    let mut job = Job::new(conditions);
    for _ in 0..24 {
        let from = job.random.below(RANKS);
        let to = (from + 1 + job.random.below(RANKS - 1)) % RANKS;
        let scale = job.random.of(&[10, 9_000, 70_000, 300_000]);
        let len = 1 + job.random.below(scale);
        job.message(from, to, len);
    }
    let (mut sends, mut receives): (Vec<usize>, Vec<usize>) = ((0..24).collect(), (0..24).collect());
    while !sends.is_empty() || !receives.is_empty() {
        let kind = job.random.below(4);
        let at = job.random.below(24);
        match kind {
            0 if at < sends.len() => {
                let number = sends.swap_remove(at);
                job.send(number);
            }
            1 if at < receives.len() => {
                let number = receives.swap_remove(at);
                job.receive(number);
            }
            _ => job.look(),
        }
    }
    job.end()
}

struct OnPanic(Conditions);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}", self.0);
        }
    }
}

/// Every protocol, with one adapter and with several, with and without order inside writes; how many
/// ends of messages have failed.
fn all(fails_one_in: usize) -> usize {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("TERN_HOSTILE_FIRST").unwrap_or(1);
    let mut failed = 0;
    for seed in first..first + number("TERN_HOSTILE_SEEDS").unwrap_or(2) {
        for force in [None].into_iter().chain(Protocol::ALL.map(|(protocol, _)| Some(protocol))) {
            for (rails, in_order) in [(1, true), (1, false), (3, true), (3, false)] {
                failed += run(Conditions { seed, force, rails, in_order, fails_one_in });
            }
        }
    }
    failed
}

#[test]
fn what_has_been_received_is_whole() {
    assert_eq!(all(0), 0);
}

#[test]
fn memory_comes_back_only_when_nothing_can_touch_it() {
    assert!(all(6) > 100, "transfers fail");
}

/// One queue takes nothing: messages to others leave all the same, and its own when it does again.
#[test]
fn a_full_queue_stops_one_peer_only() {
    for (protocol, _) in Protocol::ALL {
        let conditions =
            Conditions { seed: 1, force: Some(protocol), rails: 1, in_order: true, fails_one_in: 0 };
        let _conditions = OnPanic(conditions);
        let mut job = Job::new(conditions);
        // Who posts the transfers is the receiver where it reads.
        let reads = matches!(protocol, Protocol::Rget | Protocol::Speculative);
        for peer in [1, 2] {
            for len in [50, 100_000, 100_000] {
                let (from, to) = if reads { (peer, 0) } else { (0, peer) };
                job.message(from, to, len);
            }
        }
        // They know each other.
        [0, 3].into_iter().for_each(|n| job.receive(n));
        [0, 3].into_iter().for_each(|n| job.send(n));
        job.finish(&[0, 3]);
        (1..3).for_each(|n| job.send(n));
        (0..300).for_each(|_| job.look());
        job.net.get().full.push((0, 1));
        (1..3).for_each(|n| job.receive(n));
        (0..300).for_each(|_| job.look());
        (4..6).for_each(|n| job.receive(n));
        (4..6).for_each(|n| job.send(n));
        job.finish(&[4, 5]);
        assert!(!job.messages[1].received, "{protocol:?}: the queue is full");
        job.net.get().full.clear();
        assert_eq!(job.end(), 0);
    }
}
