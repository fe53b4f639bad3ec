//! Real exchanges between ranks that are threads of this process, under every forced protocol:
//! the same messages must arrive, whole and in order.

use crate::adapter::{Adapter, Net};
use fabric::{Costs, Device, Distance, Fault, Nap, Source, Span};
use proto::channel::{Channel, Settings};
use proto::{EagerBy, Engine, Event, Failure, Limits, Manner, Mode, OpId, Outcome, Protocol, Tuning, Want};
use shm::{Options, Shm};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a test waits for what is to come before it fails: no measure of speed, a defect shows as a failure in place of a hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Messages from each rank to each, in one exchange.
const COUNT: usize = 60;

pub(super) fn limits() -> Limits {
    Limits { unexpected_bytes: 1 << 20, ..Limits::default() }
}

/// Pipelines of many short blocks.
fn small() -> Tuning {
    Tuning {
        head_bytes: 1000,
        rdma_offset_bytes: 5000,
        block_bytes: 8192,
        depth: 3,
        staging_bytes: 20_000,
        staged_messages: 2,
        ..Tuning::default()
    }
}

fn shared_memory(n: usize) -> Vec<Shm> {
    let options = Options {
        dir: "/dev/shm".into(),
        single_copy: true,
        cores: 1,
        prefix: "tern-test".into(),
        stores: None,
        loads: None,
    };
    Shm::local_job(n, &options).unwrap()
}

fn channels(n: usize) -> Vec<Channel<Adapter>> {
    let net = Net::shared(n);
    let settings = Settings { slots: 4, fast_after: 2, buffers: 16, window: 4, ..Settings::default() };
    (0..n).map(|me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap()).collect()
}

/// The same with adapters that promise nothing that verbs do not.
fn hostile_channels(n: usize, rails: usize, writes_in_order: bool) -> Vec<Channel<Adapter>> {
    let net = Net::shared(n);
    (net.get().hostile, net.get().rails) = (true, rails);
    net.get().caps.writes_in_order = writes_in_order;
    (0..n).map(|me| Channel::new(Adapter::new(me, &net), Settings::default()).unwrap()).collect()
}

/// The same with adapters that hold so many receive buffers, and on which a message that finds none ends the test.
fn holding_channels(n: usize, holds: usize) -> Vec<Result<Channel<Adapter>, Fault>> {
    let net = Net::shared(n);
    net.get().hostile = true;
    (net.get().caps.writes_in_order, net.get().caps.holds_receives) = (false, Some(holds));
    (0..n).map(|me| Channel::new(Adapter::new(me, &net), Settings::default())).collect()
}

/// Counts a rank as finished even if it panics, so that the others do not wait for it.
struct Finishes<'a>(&'a AtomicUsize);

impl Drop for Finishes<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every rank goes on until all have finished: what it owes the others may still wait for room.
pub(super) fn run<D: Device + Send>(
    devices: Vec<D>,
    limits: &Limits,
    rank: impl Fn(usize, &mut Engine<D>) + Sync,
) {
    let (n, finished) = (devices.len(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (me, device) in devices.into_iter().enumerate() {
            let (rank, limits, finished) = (&rank, limits.clone(), &finished);
            scope.spawn(move || {
                let mut engine = Engine::new(device, limits);
                engine.tune(small());
                let finishes = Finishes(finished);
                rank(me, &mut engine);
                drop(finishes);
                until_all(&mut engine, finished, n);
            });
        }
    });
}

/// Goes on with what this rank owes the others until so many have come to the same place.
pub(super) fn until_all<D: Device>(engine: &mut Engine<D>, there: &AtomicUsize, ranks: usize) {
    until("other ranks", || {
        engine.progress().unwrap();
        there.load(Ordering::Acquire) >= ranks
    });
}

/// Waits for what another rank does.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what} do not come");
        std::thread::yield_now();
    }
}

fn job(n: usize, limits: &Limits, rank: impl Fn(usize, &mut Engine<Shm>) + Sync) {
    run(shared_memory(n), limits, rank);
}

fn wait<D: Device>(engine: &mut Engine<D>, op: OpId) -> Outcome {
    let since = Instant::now();
    loop {
        if let Some(outcome) = engine.take(op) {
            engine.awake();
            return outcome;
        }
        if let Some(nap) = engine.poll().unwrap() {
            nap.take();
        }
        assert!(since.elapsed() < PATIENCE, "an operation does not end: {:#?}", engine.pending());
    }
}

fn span(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}

fn span_mut(bytes: &mut [u8]) -> Span {
    Span { addr: bytes.as_mut_ptr() as usize, len: bytes.len() }
}

/// A generator good enough to mix sizes (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn size_of_message(seed: u64) -> usize {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let magnitude = next(&mut s) % 21;
    (next(&mut s) % (1 << magnitude)) as usize
}

fn payload(from: usize, i: usize) -> Vec<u8> {
    let len = size_of_message((from * 1000 + i) as u64);
    // Once around by hand: made byte by byte, what is sent costs more than that it is sent.
    let around: Vec<u8> = (0..256).map(|k| (k * 31 + from * 7 + i) as u8).collect();
    let mut bytes = around.repeat(len.div_ceil(256));
    bytes.truncate(len);
    bytes
}

/// All to all over all kinds of device.
fn all_to_all(limits: Limits) {
    run(shared_memory(3), &limits, exchange);
    run(channels(3), &limits, exchange);
    run(hostile_channels(3, 3, false), &limits, exchange);
    run(hostile_channels(3, 1, true), &limits, exchange);
    run(holding_channels(3, 12).into_iter().map(Result::unwrap).collect(), &limits, exchange);
}

/// Every rank a mix of receives posted before and after, from a source and from any.
fn exchange<D: Device>(me: usize, engine: &mut Engine<D>) {
    exchange_of(COUNT, me, engine);
}

/// As [`exchange`], with so many messages from each of three ranks to each.
pub(super) fn exchange_of<D: Device>(count: usize, me: usize, engine: &mut Engine<D>) {
    let n = 3;
    let mut seed = me as u64 + 77;
    // Where the test fails nothing is freed: what is under way may still be read and placed there.
    let outgoing: Vec<(usize, Vec<u8>)> = (0..n * count).map(|i| (i % n, payload(me, i))).collect();
    let outgoing = ManuallyDrop::new(outgoing);
    let mut sends = Vec::new();
    let mut receives = Vec::new();
    let (mut sent, mut posted) = (0, 0);
    let buffers: Vec<Vec<u8>> =
        (0..n * count).map(|i| vec![0; payload(i % n, (i / n) * n + me).len()]).collect();
    let mut buffers = ManuallyDrop::new(buffers);
    while sent < outgoing.len() || posted < buffers.len() {
        if next(&mut seed).is_multiple_of(2) && sent < outgoing.len() {
            let (to, data) = &outgoing[sent];
            let mode = if next(&mut seed).is_multiple_of(4) { Mode::Synchronous } else { Mode::Standard };
            sends.extend(engine.send(*to, 5, 9, span(data), mode).unwrap());
            sent += 1;
        } else if posted < buffers.len() {
            let want = Want { source: Some(posted % n), context: 5, tag: Some(9) };
            receives.push(engine.receive(want, span_mut(&mut buffers[posted])).unwrap());
            posted += 1;
        }
        if next(&mut seed).is_multiple_of(3) {
            engine.progress().unwrap();
        }
    }
    for (i, op) in receives.into_iter().enumerate() {
        let outcome = wait(engine, op);
        let expected = payload(i % n, (i / n) * n + me);
        assert_eq!(
            (outcome.len as usize, &outcome.failure),
            (expected.len(), &None),
            "rank {me}, message {i}"
        );
        assert!(buffers[i] == expected, "rank {me}, message {i} of {} bytes differs", expected.len());
    }
    drop(ManuallyDrop::into_inner(buffers));
    for op in sends {
        wait(engine, op);
    }
    drop(ManuallyDrop::into_inner(outgoing));
    assert_eq!(engine.pending(), []);
}

#[test]
fn all_to_all_by_choice() {
    all_to_all(limits());
}

#[test]
fn a_message_has_a_buffer_or_there_is_no_job() {
    for held in holding_channels(4, 17) {
        let why = held.err().unwrap().to_string();
        assert!(why.contains("messages of 3 peers") && why.contains("for those of 2"), "{why}");
    }
    assert!(holding_channels(4, 18).iter().all(Result::is_ok));
}

#[test]
fn all_to_all_without_offers() {
    all_to_all(Limits { rtr: false, ..limits() });
}

#[test]
fn all_to_all_by_frames() {
    all_to_all(Limits { remote_access: false, ..limits() });
}

#[test]
fn all_to_all_by_rendezvous_only() {
    all_to_all(Limits { eager_bytes: 0, ..limits() });
}

#[test]
fn all_to_all_by_every_protocol_for_long_messages() {
    for (protocol, _) in Protocol::ALL {
        all_to_all(Limits { force: Some(protocol), ..limits() });
        all_to_all(Limits { force: Some(protocol), eager_bytes: 0, ..limits() });
    }
}

#[test]
fn all_to_all_by_both_eager_protocols() {
    for (eager_by, _) in EagerBy::ALL {
        all_to_all(Limits { eager_by, ..limits() });
        all_to_all(Limits { eager_by, unexpected_bytes: 1000, ..limits() });
    }
}

#[test]
fn all_to_all_in_every_manner() {
    for manner in ["pulled", "shared", "blocks"].map(Manner::named) {
        for limits in [limits(), Limits { eager_bytes: 256 * 1024, unexpected_bytes: 1000, ..limits() }] {
            run(shared_memory(3), &limits, |me, engine| {
                engine.fix_manner(manner);
                exchange(me, engine);
            });
        }
    }
}

/// Two ranks that send to each other before they receive count on messages that go eagerly. In whatever manner these
/// go, nobody waits for a receive.
#[test]
fn who_sends_first_and_receives_then_gets_through_in_every_manner() {
    for (manner, len) in [("pulled", 5000), ("pulled", 200_000), ("shared", 100_000), ("blocks", 100_000)] {
        let limits = Limits { eager_bytes: 256 * 1024, ..limits() };
        job(2, &limits, |me, engine| {
            engine.fix_manner(Manner::named(manner));
            let (data, mut buffer) = (vec![me as u8; len], vec![0u8; len]);
            for tag in 0..3 {
                let sent = engine.send(1 - me, 0, tag, span(&data), Mode::Standard).unwrap();
                if let Some(op) = sent {
                    wait(engine, op);
                }
                let want = Want { source: Some(1 - me), context: 0, tag: Some(tag) };
                let op = engine.receive(want, span_mut(&mut buffer)).unwrap();
                wait(engine, op);
                assert!(buffer == vec![1 - me as u8; len]);
            }
        });
    }
}

#[test]
fn all_to_all_with_little_room_for_the_unexpected() {
    all_to_all(Limits { unexpected_bytes: 1000, ..limits() });
}

/// A rank that computes has not read what it was sent, and that fills the shared memory; messages to another one
/// go on all the same.
#[test]
fn who_does_not_read_stops_nobody_else() {
    const FILLS: usize = 15;
    const MORE: usize = 3;
    for remote_access in [true, false] {
        let limits = Limits { eager_bytes: 256 * 1024, remote_access, adapt: false, ..limits() };
        let read = AtomicUsize::new(0);
        job(3, &limits, |me, engine| {
            let data = vec![2u8; 200_000];
            let mut buffer = vec![0u8; data.len()];
            if me == 1 {
                until("messages to another rank", || read.load(Ordering::Relaxed) >= MORE);
            }
            for _ in (0..FILLS).filter(|_| me == 0) {
                let sent = engine.send(1, 0, 1, span(&data), Mode::Standard).unwrap();
                assert_eq!(sent, None, "nothing waits for rank 1");
            }
            for _ in 0..if me == 1 { FILLS } else { MORE } {
                if me == 0 {
                    let sent = engine.send(2, 0, 1, span(&data), Mode::Standard).unwrap();
                    sent.map(|op| wait(engine, op));
                } else {
                    let want = Want { source: Some(0), context: 0, tag: Some(1) };
                    let op = engine.receive(want, span_mut(&mut buffer)).unwrap();
                    wait(engine, op);
                    assert!(buffer == data);
                    read.fetch_add(me - 1, Ordering::Relaxed);
                }
            }
        });
    }
}

/// A message of a length that goes eagerly needs no receive to leave, even if its payload has found no room for
/// long: who is sent it keeps it, and the receive finds it whole.
#[test]
fn without_room_a_message_needs_no_receive_either() {
    const FILLS: usize = 15;
    for (remote_access, len) in [(true, 3000), (true, 200_000), (false, 3000), (false, 200_000)] {
        let limits = Limits { eager_bytes: 256 * 1024, remote_access, adapt: false, ..limits() };
        let [sent, received, early] = [0; 3].map(AtomicUsize::new);
        job(3, &limits, |me, engine| {
            let data = vec![2u8; 200_000];
            let mut buffer = vec![0u8; data.len()];
            let want = |tag| Want { source: Some(0), context: 0, tag: Some(tag) };
            match me {
                0 => {
                    for _ in 0..FILLS {
                        let left = engine.send(1, 0, 1, span(&data), Mode::Standard).unwrap();
                        assert_eq!(left, None, "nothing waits for rank 1");
                    }
                    // The first may still find room.
                    for tag in 0..3 {
                        let left = engine.send(2, 0, tag, span(&data[..len]), Mode::Standard).unwrap();
                        left.map(|op| wait(engine, op));
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(len < 200_000 || engine.counters().get(Event::RtsSent) > 0);
                }
                1 => {
                    until("messages to another rank", || received.load(Ordering::Relaxed) > 0);
                    for _ in 0..FILLS {
                        let op = engine.receive(want(1), span_mut(&mut buffer)).unwrap();
                        wait(engine, op);
                    }
                }
                _ => {
                    let since = Instant::now();
                    while sent.load(Ordering::Relaxed) < 3 && since.elapsed().as_secs() < 10 {
                        engine.poll().unwrap();
                    }
                    let left = sent.load(Ordering::Relaxed);
                    for tag in 0..3 {
                        buffer.fill(0);
                        let op = engine.receive(want(tag), span_mut(&mut buffer)).unwrap();
                        assert_eq!(wait(engine, op).len, len as u64);
                        assert!(buffer[..len] == data[..len]);
                    }
                    received.store(1, Ordering::Relaxed);
                    early.store(left, Ordering::Relaxed);
                }
            }
        });
        let early = early.into_inner();
        assert_eq!(early, 3, "messages of {len} bytes that left before there was a receive");
    }
}

#[test]
fn an_early_receiver_is_pushed_to() {
    let is_posted = AtomicUsize::new(0);
    job(2, &limits(), |me, engine| {
        let data = vec![7u8; 300_000];
        let mut buffer = vec![0u8; 300_000];
        let mut token = [1u8];
        let want = |tag| Want { source: Some(1 - me), context: 1, tag: Some(tag) };
        if me == 0 {
            // Make sure that the peer has introduced itself, then post and tell it.
            let hello = engine.receive(want(3), span_mut(&mut token)).unwrap();
            wait(engine, hello);
            let op = engine.receive(want(4), span_mut(&mut buffer)).unwrap();
            assert_eq!(engine.counters().get(Event::RtrSent), 1);
            is_posted.store(1, Ordering::Release);
            let outcome = wait(engine, op);
            assert_eq!(outcome.len, 300_000);
            assert!(buffer == data);
        } else {
            assert!(engine.send(0, 1, 3, span(&token), Mode::Standard).unwrap().is_none());
            until("receives of the peer", || {
                engine.poll().unwrap();
                is_posted.load(Ordering::Acquire) > 0
            });
            let op = engine.send(0, 1, 4, span(&data), Mode::Standard).unwrap().unwrap();
            wait(engine, op);
            assert_eq!(engine.counters().get(Event::RtrTaken), 1);
            assert_eq!(engine.counters().get(Event::RtsSent), 0);
        }
    });
}

#[test]
fn a_cancelled_receive_takes_its_offer_back() {
    job(2, &limits(), |me, engine| {
        let big = vec![9u8; 100_000];
        let mut buffer = vec![0u8; 100_000];
        let want = |tag| Want { source: Some(1 - me), context: 1, tag: Some(tag) };
        let mut token = [0u8];
        if me == 0 {
            let hello = engine.receive(want(1), span_mut(&mut token)).unwrap();
            wait(engine, hello);
            let first = engine.receive(want(4), span_mut(&mut buffer)).unwrap();
            assert!(engine.cancel(first));
            assert!(engine.take(first).unwrap().cancelled);
            engine.send(1, 1, 2, span(&token), Mode::Standard).unwrap();
            let second = engine.receive(want(4), span_mut(&mut buffer)).unwrap();
            assert_eq!(wait(engine, second).len, 100_000);
            assert!(buffer == big);
        } else {
            engine.send(0, 1, 1, span(&token), Mode::Standard).unwrap();
            let go = engine.receive(want(2), span_mut(&mut token)).unwrap();
            wait(engine, go);
            let op = engine.send(0, 1, 4, span(&big), Mode::Standard).unwrap().unwrap();
            wait(engine, op);
        }
    });
}

#[test]
fn a_message_that_is_too_long_is_cut_and_reported() {
    for eager_bytes in [16 * 1024, 0] {
        for force in [None].into_iter().chain(Protocol::ALL.map(|(protocol, _)| Some(protocol))) {
            for room in [60, 1, 0] {
                cut(&Limits { eager_bytes, force, ..limits() }, room);
            }
        }
    }
}

fn cut(limits: &Limits, room: usize) {
    job(2, limits, |me, engine| {
        let data = [5u8; 100];
        let mut buffer = [0u8; 60];
        let buffer = &mut buffer[..room];
        if me == 0 {
            if let Some(op) = engine.send(1, 1, 1, span(&data), Mode::Standard).unwrap() {
                wait(engine, op);
            }
        } else {
            let op = engine.receive(Want { source: None, context: 1, tag: None }, span_mut(buffer)).unwrap();
            let outcome = wait(engine, op);
            assert_eq!(outcome.failure, Some(Box::new(Failure::Truncated { message_len: 100 })));
            assert_eq!((outcome.len as usize, &*buffer), (room, &data[..room]));
        }
    });
}

/// What jobs before this one have measured takes the place of what is assumed, of other hosts alone, until messages have shown what
/// they take.
#[test]
fn what_was_measured_before_is_begun_with() {
    let net = Net::shared(2);
    let channel = Channel::new(Adapter::new(0, &net), Settings::default()).unwrap();
    let mut engine = Engine::new(channel, limits());
    let path = |engine: &Engine<Channel<Adapter>>, distance| engine.learner().facts.path(distance).clone();
    let host = path(&engine, Distance::Host);
    let (source, latency_ns, read_ns) = (Source::Kept, 7e3, 7e3);
    let (wire_ns_per_byte, gap_ns, post_ns) = (3.0, 900.0, 800.0);
    let costs = Costs { source, latency_ns, wire_ns_per_byte, gap_ns, post_ns, read_ns, ..Costs::default() };
    engine.begin_with(&costs);
    let far = path(&engine, Distance::Network);
    assert_eq!((far.write.at(1000.0), far.write.origin()), (10e3, Source::Kept));
    let facts = [far.latency, far.read, far.gap, far.post].map(|fact| (fact.value, fact.origin()));
    assert_eq!(facts, [7e3, 7e3, 900.0, 800.0].map(|value| (value, Source::Kept)));
    assert_eq!(path(&engine, Distance::Host), host);
}
