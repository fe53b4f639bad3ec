//! A swarm of jobs, each drawn from a seed: limits, ranks, sizes, wildcards, cancels, probes.
//! First chaos, in which every rank does what it likes, then calm, in which everything must end.
//!
//! `TERN_SWARM_SEEDS=10000` for a night; a failure prints the seed and the command.

use crate::adapter::{Adapter, Net};
use crate::random::Random;
use crate::rules::{Got, History};
use fabric::{Device, Nap, Pair, Span};
use proto::channel::{Channel, Settings};
use proto::{CacheLimits, EagerBy, Engine, Limits, Mode, OpId, Outcome, Protocol, Tuning, Want};
use shm::{Options, Shm};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONTEXTS: [u64; 2] = [5, 6];
/// Context of the messages that say how many others were sent.
const TOTAL: u64 = 9;
/// What stands at the front of every message: its number.
const HEAD: usize = 8;

/// After this time a job of milliseconds has come to a stop: no hang is without a bound.
const PATIENCE: Duration = Duration::from_secs(120);

fn limits(random: &mut Random) -> Limits {
    Limits {
        eager_bytes: random.of(&[0, 64, 4096, 16 * 1024]),
        unexpected_bytes: random.of(&[1000, 1 << 20, 1 << 20, 64 << 20]),
        adapt: random.one_in(2),
        rtr: !random.one_in(4),
        remote_access: !random.one_in(5),
        force: (!random.one_in(3)).then(|| random.of(&Protocol::ALL).0),
        eager_by: random.of(&EagerBy::ALL).0,
        cache: CacheLimits { bytes: random.of(&[0, 20_000, 4 << 20]), regions: random.of(&[1, 3, 1000]) },
        ..Limits::default()
    }
}

fn tuning(random: &mut Random) -> Tuning {
    Tuning {
        head_bytes: random.of(&[0, 100, 12 * 1024]),
        rdma_offset_bytes: random.of(&[0, 3000, 64 * 1024]),
        block_bytes: random.of(&[4096, 10_000, 256 * 1024]),
        depth: random.of(&[1, 2, 4]),
        first_chunk_bytes: random.of(&[100, 12 * 1024]),
        growth: random.of(&[1.0, 1.5, 4.0]),
        gap_copy_bytes: random.of(&[10.0, 1536.0]),
        staging_bytes: random.of(&[4096, 20_000, 128 * 1024]),
        staged_messages: random.of(&[1, 4]),
        ..Tuning::default()
    }
}

struct Sent {
    to: usize,
    context: u64,
    tag: i32,
}

/// Tells the adapter of a rank that memory goes away.
type Unmap = Arc<dyn Fn(usize, Span) + Send + Sync>;

/// Memory of the application, which its adapter sees going away.
struct Buffer {
    bytes: Box<[u8]>,
    me: usize,
    unmap: Unmap,
}

impl Buffer {
    fn span(&self) -> Span {
        Span { addr: self.bytes.as_ptr() as usize, len: self.bytes.len() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        (self.unmap)(self.me, self.span());
    }
}

struct Receiving {
    want: Want,
    op: OpId,
    buffer: Buffer,
    outcome: Option<Outcome>,
}

struct Player<D: Device> {
    me: usize,
    size: usize,
    longest: usize,
    random: Random,
    engine: Engine<D>,
    /// How many ranks have nothing left to do.
    finished: Arc<AtomicUsize>,
    since: Instant,
    sent: Vec<Sent>,
    sends: Vec<(OpId, Buffer)>,
    receives: Vec<Receiving>,
    /// Sent from before, to be sent from again.
    used: Vec<Buffer>,
    unmap: Unmap,
}

/// The bytes of a message, which name it.
fn payload(from: usize, to: usize, number: usize, len: usize) -> Box<[u8]> {
    let mut bytes: Box<[u8]> = (0..len).map(|k| (k * 31 + from * 7 + to * 13 + number) as u8).collect();
    bytes[..HEAD].copy_from_slice(&(number as u64).to_le_bytes());
    bytes
}

impl<D: Device> Player<D> {
    fn look(&mut self) {
        let stuck = self.since.elapsed() > PATIENCE;
        assert!(!stuck, "rank {} is stuck: {:#?}", self.me, self.engine.pending());
        if let Some(nap) = self.engine.poll().unwrap() {
            nap.take();
        }
    }

    fn send(&mut self) {
        let to = self.random.below(self.size);
        let number = self.sent.iter().filter(|s| s.to == to).count();
        let scale = self.random.of(&[32, 32, 5000, self.longest]);
        let len = HEAD + self.random.below(scale);
        let again = self.random.below(3);
        let mut buffer =
            if again < self.used.len() { self.used.swap_remove(again) } else { self.buffer(len) };
        let len = len.min(buffer.bytes.len());
        buffer.bytes[..len].copy_from_slice(&payload(self.me, to, number, len));
        let (context, tag) = (self.random.of(&CONTEXTS), self.random.below(3) as i32);
        let mode = if self.random.one_in(6) { Mode::Synchronous } else { Mode::Standard };
        let span = buffer.span().part(0, len);
        let op = match self.random.one_in(2) {
            true => self.engine.send(to, context, tag, span, mode),
            false => self.engine.send_for_good(to, context, tag, span, mode),
        };
        let op = op.unwrap();
        self.sent.push(Sent { to, context, tag });
        self.sends.extend(op.map(|op| (op, buffer)));
    }

    fn buffer(&self, len: usize) -> Buffer {
        Buffer { bytes: vec![0; len].into_boxed_slice(), me: self.me, unmap: self.unmap.clone() }
    }

    fn want(&mut self) -> Want {
        let (source, tag) = (self.random.below(self.size), self.random.below(3) as i32);
        let source = (!self.random.one_in(5)).then_some(source);
        let tag = (!self.random.one_in(5)).then_some(tag);
        Want { source, context: self.random.of(&CONTEXTS), tag }
    }

    fn receive(&mut self, want: Want) {
        let buffer = self.buffer(HEAD + self.longest.max(5000));
        let op = self.engine.receive(want, buffer.span()).unwrap();
        self.receives.push(Receiving { want, op, buffer, outcome: None });
    }

    /// Probe, then receive exactly what was found; counts as a receive posted now.
    fn receive_matched(&mut self, want: Want) -> bool {
        let seen = self.engine.probe(&want);
        let Some(message) = self.engine.probe_matched(&want) else {
            assert_eq!(seen, None);
            return false;
        };
        assert_eq!(seen.map(|(envelope, _)| envelope), Some(message.envelope));
        let buffer = self.buffer(HEAD + self.longest.max(5000));
        let op = self.engine.receive_matched(message, buffer.span()).unwrap();
        self.receives.push(Receiving { want, op, buffer, outcome: None });
        true
    }

    /// Takes a receive back if it can; false if it has been matched.
    fn cancel(&mut self, index: usize) -> bool {
        let op = self.receives[index].op;
        if self.receives[index].outcome.is_some() || !self.engine.cancel(op) {
            return false;
        }
        assert!(self.engine.take(op).is_some_and(|o| o.cancelled));
        self.receives.remove(index);
        true
    }

    /// Fetches what has ended; how many messages have come so far.
    fn collect(&mut self) -> usize {
        let engine = &mut self.engine;
        let ended = self.sends.extract_if(.., |(op, _)| engine.take(*op).is_some());
        self.used.extend(ended.map(|(_, buffer)| buffer).filter(|_| self.random.one_in(2)));
        for r in self.receives.iter_mut().filter(|r| r.outcome.is_none()) {
            r.outcome = engine.take(r.op);
        }
        // Of an offer the sender is asked first: such a receive is cancelled later.
        self.receives.retain(|r| !r.outcome.as_ref().is_some_and(|o| o.cancelled));
        self.receives.iter().filter(|r| r.outcome.is_some()).count()
    }

    fn chaos(&mut self, calls: usize) {
        for _ in 0..calls {
            match self.random.below(16) {
                0..5 => self.send(),
                5..10 => {
                    let want = self.want();
                    self.receive(want);
                }
                10 => {
                    let want = self.want();
                    self.receive_matched(want);
                }
                11 if !self.receives.is_empty() => {
                    let index = self.random.below(self.receives.len());
                    self.cancel(index);
                }
                12 => drop(self.collect()),
                13 => std::thread::yield_now(),
                _ => self.look(),
            }
        }
    }

    /// Tells everybody how many messages it was sent, and learns how many are coming.
    fn totals(&mut self) -> usize {
        let counts: Vec<[u8; 8]> = (0..self.size)
            .map(|to| (self.sent.iter().filter(|s| s.to == to).count() as u64).to_le_bytes())
            .collect();
        let mut coming = vec![[0u8; 8]; self.size];
        let mut ops = Vec::new();
        for (from, count) in coming.iter_mut().enumerate() {
            let want = Want { source: Some(from), context: TOTAL, tag: Some(0) };
            ops.push(self.engine.receive(want, Span { addr: count.as_mut_ptr() as usize, len: 8 }).unwrap());
        }
        for (to, count) in counts.iter().enumerate() {
            let span = Span { addr: count.as_ptr() as usize, len: 8 };
            ops.extend(self.engine.send(to, TOTAL, 0, span, Mode::Standard).unwrap());
        }
        // Messages before the totals may hold those up: they are taken in meanwhile.
        while !ops.is_empty() {
            let engine = &mut self.engine;
            ops.retain(|op| engine.take(*op).is_none());
            self.take_any();
            self.look();
        }
        self.engine.awake();
        coming.into_iter().map(|count| u64::from_le_bytes(count) as usize).sum()
    }

    fn take_any(&mut self) {
        for context in CONTEXTS {
            while self.receive_matched(Want { source: None, context, tag: None }) {}
        }
    }

    /// Everything comes, everything leaves, and nothing is left over.
    fn calm(&mut self) {
        let coming = self.totals();
        while self.collect() < coming || !self.sends.is_empty() {
            self.take_any();
            self.look();
        }
        for index in (0..self.receives.len()).rev() {
            self.cancel(index);
        }
        while self.receives.iter().any(|r| r.outcome.is_none()) {
            self.look();
            self.collect();
        }
        self.engine.awake();
        assert_eq!(self.engine.pending(), [], "rank {}", self.me);
        // Others may ask this rank for their offers.
        self.finished.fetch_add(1, Ordering::AcqRel);
        while self.finished.load(Ordering::Acquire) < self.size {
            self.look();
        }
    }
}

fn identify(me: usize, r: &Receiving) -> Got {
    let outcome = r.outcome.as_ref().unwrap();
    let (len, source) = (outcome.len as usize, outcome.source);
    assert!(outcome.failure.is_none(), "{outcome:?}");
    let number = u64::from_le_bytes(r.buffer.bytes[..HEAD].try_into().unwrap()) as usize;
    assert!(number < 1 << 20, "rank {me}: number {number} from rank {source}, {outcome:?}");
    let whole = r.buffer.bytes[..len] == *payload(source, me, number, len);
    assert!(whole, "rank {me}: message {number} from rank {source} of {len} bytes differs");
    Got { source, number }
}

/// Ranks over shared memory.
fn shared_memory(random: &mut Random, size: usize) -> (Vec<Shm>, Unmap) {
    let options = Options {
        dir: "/dev/shm".into(),
        single_copy: !random.one_in(6),
        cores: 1,
        prefix: "tern-swarm".into(),
        stores: None,
        loads: None,
    };
    (Shm::local_job(size, &options).unwrap(), Arc::new(|_, _| {}))
}

/// Ranks over adapters with registered memory.
fn channels(random: &mut Random, size: usize) -> (Vec<Channel<Adapter>>, Unmap) {
    let net = Net::shared(size);
    net.get().is_watched = !random.one_in(4);
    let (is_hostile, rails) = (random.one_in(2), random.of(&[1, 1, 3]));
    net.get().hostile = is_hostile;
    net.get().rails = if is_hostile { rails } else { 1 }; // the orderly net has one
    net.get().caps.writes_in_order = !random.one_in(3);
    net.get().caps.transfer_bytes = random.of(&[usize::MAX, 20_000]);
    net.get().caps.lockable_bytes = random.of(&[usize::MAX, usize::MAX, 128 * 1024]);
    let settings = Settings {
        frame_bytes: random.of(&[200, 1000, 16 * 1024]),
        slot_bytes: random.of(&[128, 1024, 17 * 1024]),
        slots: random.of(&[0, 2, 16]),
        fast_after: random.of(&[0, 3]),
        buffers: random.of(&[3, 16]),
        window: random.of(&[2, 16]),
        staged: random.of(&[2, 16]),
        cache_headers: !random.one_in(4),
        ..Settings::default()
    };
    let channel = |me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap();
    let channels = (0..size).map(channel).collect();
    (channels, Arc::new(move |me, span| net.get().unmap(me, span)))
}

/// Ranks of several hosts: over shared memory inside one, over adapters between them.
fn hosts(random: &mut Random, size: usize) -> (Vec<Pair<Shm, Channel<Adapter>>>, Unmap) {
    let (far, unmap) = channels(random, size);
    let hosts = 1 + random.below(size);
    let host_of: Vec<usize> = (0..size).map(|_| random.below(hosts)).collect();
    let mut near: Vec<Option<Shm>> = (0..size).map(|_| None).collect();
    let ranks_of = |host| (0..size).filter(|rank| host_of[*rank] == host).collect::<Box<[_]>>();
    for host in 0..hosts {
        let ranks = ranks_of(host);
        if !ranks.is_empty() {
            let devices = shared_memory(random, ranks.len()).0;
            ranks.iter().zip(devices).for_each(|(rank, device)| near[*rank] = Some(device));
        }
    }
    let pair = |(rank, (near, far)): (usize, (Option<Shm>, _))| {
        Pair::new(near.expect("each rank is on a host"), Some(far), ranks_of(host_of[rank]), size)
    };
    (near.into_iter().zip(far).enumerate().map(pair).collect(), unmap)
}

fn run<D: Device + Send>(seed: u64, devices: fn(&mut Random, usize) -> (Vec<D>, Unmap)) {
    let mut random = Random::new(seed);
    let (size, limits, tuning) = (2 + random.below(4), limits(&mut random), tuning(&mut random));
    let (longest, calls) = (random.of(&[100, 20_000, 120_000]), 60 + random.below(200));
    let (devices, unmap) = devices(&mut random, size);
    let _limits = OnFailure(|| eprintln!("{size} ranks, {limits:?}, {tuning:?}"));
    let finished = Arc::new(AtomicUsize::new(0));
    let play = |(me, device)| {
        let mut engine = Engine::new(device, limits.clone());
        engine.tune(tuning.clone());
        let random = Random::new(seed * 64 + me as u64 + 1);
        let (sent, sends, receives) = (Vec::new(), Vec::new(), Vec::new());
        let (used, unmap, finished) = (Vec::new(), unmap.clone(), finished.clone());
        let since = Instant::now();
        let mut player =
            Player { me, size, longest, random, engine, finished, since, sent, sends, receives, used, unmap };
        player.chaos(calls);
        player.calm();
        let got: Vec<(Want, Got)> = player.receives.iter().map(|r| (r.want, identify(me, r))).collect();
        // The device stays until all have finished: its memory holds what others still read.
        (player.sent, got, player.engine)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = devices
            .into_iter()
            .enumerate()
            .map(|d| {
                let play = &play;
                scope.spawn(move || play(d))
            })
            .collect();
        threads.into_iter().map(|t| t.join()).collect()
    });
    let mut history = History::default();
    let results: Vec<_> = results.into_iter().map(|r| r.expect("the rank has said why")).collect();
    for (me, (sent, ..)) in results.iter().enumerate() {
        sent.iter().for_each(|s| history.sent(me, s.to, s.context, s.tag, false));
    }
    for (me, (_, got, _)) in results.iter().enumerate() {
        got.iter().for_each(|(want, got)| history.received(me, *want, Some(*got)));
    }
    history.check().unwrap();
}

/// Says under which conditions a seed failed.
struct OnFailure<F: Fn()>(F);

impl<F: Fn()> Drop for OnFailure<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

struct OnPanic(u64);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "TERN_SWARM_FIRST={} TERN_SWARM_SEEDS=1 cargo test -p proto --test protocols swarm",
                self.0
            );
        }
    }
}

fn all_seeds<D: Device + Send>(devices: fn(&mut Random, usize) -> (Vec<D>, Unmap)) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("TERN_SWARM_FIRST").unwrap_or(1);
    for seed in first..first + number("TERN_SWARM_SEEDS").unwrap_or(40) {
        let _command = OnPanic(seed);
        run(seed, devices);
    }
}

#[test]
fn every_seed_ends_well() {
    all_seeds(shared_memory);
}

#[test]
fn every_seed_ends_well_over_adapters() {
    all_seeds(channels);
}

#[test]
fn every_seed_ends_well_on_several_hosts() {
    all_seeds(hosts);
}
