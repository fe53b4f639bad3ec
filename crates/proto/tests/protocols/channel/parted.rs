//! Slots where connections come and go: they are given back with the connection, and nothing is lost by that.

use super::{bytes, span};
use crate::adapter::{self, Adapter, Net, Shared};
use crate::random::Random;
use fabric::{Device, Local, Rank, Rights, Transfers};
use proto::Event;
use proto::channel::{self, Channel};
use proto::reliable::{self, Reliable};
use std::collections::VecDeque;

type Hybrid = Channel<Reliable<Adapter>>;

const SLOTS: usize = 4;

/// Ranks of which each may have so many connections, and slots for as many peers.
fn job(net: &Shared, ranks: usize, connections: usize, settings: &channel::Settings) -> Vec<Hybrid> {
    let reliable = reliable::Settings {
        packets: 24,
        buffers: 24,
        message_bytes: settings.message_bytes(),
        connections,
        earned_messages: 5,
        idle_ns: 300_000,
        ..reliable::Settings::default()
    };
    let settings = channel::Settings { fast_peers: connections, ..settings.clone() };
    let adapter = |me| Reliable::new(Adapter::new(me, net), reliable.clone()).unwrap();
    (0..ranks).map(|me| Channel::new(adapter(me), settings.clone()).unwrap()).collect()
}

fn settings() -> channel::Settings {
    channel::Settings { slots: SLOTS, fast_after: 2, buffers: 16, ..super::settings() }
}

fn net(ranks: usize) -> Shared {
    let net = Net::shared(ranks);
    net.get().caps.datagram_bytes = 700;
    net
}

/// Lets some time pass for everybody, who look and take nothing.
fn pass(net: &Shared, job: &mut [Hybrid]) {
    for channel in job {
        let mut position = 0;
        while let Some(from) = channel.source(position) {
            channel.peek(from);
            position += 1;
        }
        let _ = channel.idle(32);
    }
    (0..4).for_each(|_| net.get().step());
}

fn take(channel: &mut Hybrid, from: Rank) -> Option<([u64; 2], Vec<u8>)> {
    let frame = channel.peek(from)?;
    let taken = (frame.head, bytes(channel, frame.data));
    channel.pop(from);
    Some(taken)
}

fn send(net: &Shared, job: &mut [Hybrid], (from, to): (Rank, Rank), number: u64) {
    for _ in 0..10_000 {
        if job[from].try_send(to, [7, number], span(b"hello")) {
            return;
        }
        pass(net, job);
    }
    panic!("frame {number} from {from} to {to} finds no room: {}", job[from].verbs().describe());
}

fn receive(net: &Shared, job: &mut [Hybrid], (from, to): (Rank, Rank), number: u64) {
    for _ in 0..10_000 {
        if let Some(frame) = take(&mut job[to], from) {
            assert_eq!(frame, ([7, number], b"hello".to_vec()));
            return;
        }
        pass(net, job);
    }
    panic!("frame {number} from {from} does not come to {to}: {}", job[from].verbs().describe());
}

/// Lets time pass until no rank has a connection.
fn part(net: &Shared, job: &mut [Hybrid]) {
    let look_ns = std::mem::replace(&mut net.get().look_ns, 100_000);
    for _ in 0..20_000 {
        if !job.iter().any(|channel| channel.verbs().standings().any(|peer| peer.is_connected)) {
            (0..100).for_each(|_| pass(net, job));
            net.get().look_ns = look_ns;
            return;
        }
        pass(net, job);
    }
    panic!("somebody stays connected");
}

fn count(channel: &Hybrid, event: Event) -> u64 {
    channel.counters().get(event)
}

/// More peers than may have slots, one after the other: each has them while it has a connection.
#[test]
fn every_peer_that_earns_a_connection_gets_slots() {
    let net = net(6);
    let mut job = job(&net, 6, 1, &settings());
    let mut numbers = [0; 6];
    let mut most = None;
    for peer in [1, 2, 3, 4, 5, 1, 2] {
        let fast = count(&job[peer], Event::FastPath);
        for _ in 0..60 {
            send(&net, &mut job, (peer, 0), numbers[peer]);
            receive(&net, &mut job, (peer, 0), numbers[peer]);
            numbers[peer] += 1;
        }
        assert!(count(&job[peer], Event::FastPath) > fast + 20, "rank {peer} has no slots");
        part(&net, &mut job);
        let registered = net.get().registered(0);
        assert!(registered <= *most.get_or_insert(registered), "memory grows with peers: {registered}");
    }
    assert_eq!((count(&job[0], Event::SlotsGiven), job[0].peers_with_slots()), (7, 0));
}

/// The connection ends while frames lie in slots: they come all the same, and before those that go by datagrams behind them.
#[test]
fn frames_in_slots_outlive_their_connection() {
    let net = net(3);
    let mut job = job(&net, 3, 1, &settings());
    let fast = |job: &[Hybrid]| count(&job[1], Event::FastPath);
    let mut number = 0;
    while fast(&job) < 5 {
        send(&net, &mut job, (1, 0), number);
        receive(&net, &mut job, (1, 0), number);
        number += 1;
    }
    (0..4).for_each(|_| pass(&net, &mut job));
    let (before, first) = (fast(&job), number);
    (0..3).for_each(|ahead| send(&net, &mut job, (1, 0), first + ahead));
    let full = fast(&job);
    assert!(
        full >= before + 2,
        "one slot is kept for the next, and of one it may not have been told that it is free"
    );
    part(&net, &mut job);
    assert_eq!(job[0].peers_with_slots(), 1, "they are full");
    (3..5).for_each(|ahead| send(&net, &mut job, (1, 0), first + ahead));
    assert_eq!(fast(&job), full, "slots of a connection that has ended are written to no more");
    (0..5).for_each(|ahead| receive(&net, &mut job, (1, 0), first + ahead));
    assert_eq!(job[0].peers_with_slots(), 0);
    // Another peer gets the same memory.
    for number in 0..60 {
        send(&net, &mut job, (2, 0), number);
        receive(&net, &mut job, (2, 0), number);
    }
    assert!(count(&job[2], Event::FastPath) > 20);
}

const RANKS: usize = 4;
const LONGEST: usize = 300;
/// Parts of the registered memory that a rank sends from.
const PARTS: usize = 4;

/// Ranks of which now these and now those have much to say.
struct Swarm {
    random: Random,
    net: Shared,
    job: Vec<Hybrid>,
    connections: usize,
    /// By sender and receiver: frames to come, and how many were sent.
    expected: Vec<VecDeque<([u64; 2], Vec<u8>)>>,
    sent: Vec<u64>,
    user: Vec<(Local, [bool; PARTS])>,
}

impl Swarm {
    fn new(seed: u64) -> Swarm {
        let mut random = Random::new(seed);
        let net = net(RANKS);
        {
            let net = &mut *net.get();
            (net.hostile, net.random) = (random.one_in(2), seed);
            net.loses_one_in = random.of(&[0, 10, 3]);
            (net.doubles_one_in, net.mixes_one_in) = (17, 5);
            net.caps.inline_bytes = random.of(&[0, 8, adapter::INLINE]);
            net.caps.at_once_bytes = random.of(&[0, 1 << 20]);
            net.caps.gather = random.of(&[1, 2, 2]);
        }
        let connections = random.of(&[1, 2]);
        let settings = channel::Settings {
            frame_bytes: LONGEST,
            staged_bytes: LONGEST,
            slot_bytes: random.of(&[64, 200, 400]),
            slots: random.of(&[2, 3, 5, 16]),
            fast_after: random.of(&[0, 1, 4]) as u32,
            window: random.of(&[2, 4]),
            staged: random.of(&[1, 3, 20]),
            cache_headers: !random.one_in(4),
            ..settings()
        };
        let mut job = job(&net, RANKS, connections, &settings);
        let memory = |channel: &mut Hybrid| {
            let span = channel.allocate(PARTS * LONGEST);
            (channel.register(0, span, Rights::ALL).unwrap().local(span), [true; PARTS])
        };
        let user = job.iter_mut().map(memory).collect();
        let expected = (0..RANKS * RANKS).map(|_| VecDeque::new()).collect();
        Swarm { random, net, job, connections, expected, sent: vec![0; RANKS * RANKS], user }
    }

    fn send(&mut self, from: Rank, to: Rank) {
        let lane = from * RANKS + to;
        let longest = self.random.of(&[0, 16, 16, LONGEST]);
        let len = self.random.below(longest + 1);
        let number = self.sent[lane];
        let head = [7, self.random.of(&[0, number])];
        let data: Vec<u8> = (0..len).map(|at| (at * 31 + lane * 7 + number as usize) as u8).collect();
        let free = self.user[from].1.iter().position(|free| *free).filter(|_| self.random.one_in(3));
        let channel = &mut self.job[from];
        let sent = match free {
            Some(part) => {
                let (Local { span: whole, key }, free) = &mut self.user[from];
                let place = whole.part(part * LONGEST, len);
                channel.copy(place.addr, span(&data).addr, len);
                let local = Local { span: place, key: *key };
                let sent = channel.try_send_from(to, head, local, part as u64).unwrap();
                free[part] = !sent;
                sent
            }
            None => channel.try_send(to, head, span(&data)),
        };
        if sent {
            self.sent[lane] += 1;
            self.expected[lane].push_back((head, data));
        }
    }

    /// Takes some of what has come to a rank, and looks at all.
    fn receive(&mut self, me: Rank, patience: usize) {
        let mut position = 0;
        while let Some(from) = self.job[me].source(position) {
            position += 1;
            self.job[me].peek(from);
            while self.random.below(16) < patience {
                if self.random.one_in(3) {
                    self.net.get().step();
                }
                let Some(frame) = take(&mut self.job[me], from) else { break };
                let expected = self.expected[from * RANKS + me].pop_front();
                assert_eq!(Some(frame), expected, "{from} to {me}");
            }
        }
        while let Some((part, result)) = self.job[me].completed() {
            assert_eq!(result, Ok(()));
            let (whole, free) = &mut self.user[me];
            assert!(!std::mem::replace(&mut free[part as usize], true), "ended twice");
            let place = whole.span.part(part as usize * LONGEST, LONGEST);
            self.job[me].copy(place.addr, span(&[0xee; LONGEST]).addr, LONGEST);
        }
        let _ = self.job[me].idle(self.random.below(40) as u32);
        assert_eq!(self.job[me].check(), Ok(()));
        assert!(self.job[me].peers_with_slots() <= self.connections, "more slots than the budget has");
    }

    fn send_to_some(&mut self, from: Rank) {
        for _ in 0..self.random.below(6) {
            let to = (from + 1 + self.random.below(RANKS - 1)) % RANKS;
            self.send(from, to);
        }
    }

    /// Two have much to say, others little; then nobody has much. From some time on, nothing may be taken.
    fn phase(&mut self) {
        let pair = self.random.below(RANKS);
        let pair = (pair, (pair + 1 + self.random.below(RANKS - 1)) % RANKS);
        let (talk, lazy_from) = (100 + self.random.below(300), self.random.of(&[100, 200, usize::MAX]));
        let talk_ns = self.random.of(&[1000, 10_000, 100_000]);
        for round in 0..talk + 200 {
            let is_quiet = round > talk;
            self.net.get().look_ns = if is_quiet { 1_000_000 } else { talk_ns };
            let from = self.random.below(RANKS);
            match self.random.below(12) {
                0 => self.send_to_some(from),
                _ if is_quiet => {}
                1..4 => self.send(pair.1, pair.0),
                _ => self.send(pair.0, pair.1),
            }
            let me = self.random.below(RANKS);
            self.receive(me, if round < lazy_from { 12 } else { 0 });
            (0..self.random.below(5)).for_each(|_| self.net.get().step());
        }
    }

    /// Until all has come, and nobody has a connection or slots.
    fn end(&mut self) {
        self.net.get().look_ns = 1_000_000;
        for _ in 0..20_000 {
            (0..RANKS).for_each(|me| self.receive(me, 15));
            (0..10).for_each(|_| self.net.get().step());
            let is_over = |channel: &Hybrid| {
                channel.peers_with_slots() == 0 && !channel.verbs().standings().any(|peer| peer.is_connected)
            };
            let is_free = |(_, free): &(Local, [bool; PARTS])| *free == [true; PARTS];
            if self.expected.iter().all(VecDeque::is_empty)
                && self.user.iter().all(is_free)
                && self.job.iter().all(is_over)
            {
                return;
            }
        }
        self.panic();
    }

    /// Everybody finds room for so many frames to everybody else.
    fn say_more(&mut self, frames: u64) {
        let goal: Vec<u64> = self.sent.iter().map(|sent| sent + frames).collect();
        for _ in 0..20_000 {
            let mut lanes = (0..RANKS * RANKS).filter(|lane| lane / RANKS != lane % RANKS);
            let Some(lane) = lanes.find(|lane| self.sent[*lane] < goal[*lane]) else { return };
            self.send(lane / RANKS, lane % RANKS);
            (0..RANKS).for_each(|me| self.receive(me, 15));
            (0..10).for_each(|_| self.net.get().step());
        }
        self.panic();
    }

    fn panic(&self) -> ! {
        let waiting: Vec<usize> = self.expected.iter().map(VecDeque::len).collect();
        let state: String = self.job.iter().map(|channel| channel.verbs().describe() + "\n").collect();
        panic!("sent {:?}, waiting {waiting:?}\n{state}", self.sent);
    }
}

/// Every frame comes whole, once and in order, whatever lies in slots when their connection ends. What is written
/// to slots that were given back ends the test. `TERN_PARTED_SEEDS=1000` for a night.
#[test]
fn slots_come_and_go_and_no_frame_is_lost() {
    let seeds = std::env::var("TERN_PARTED_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200);
    let mut counts = [0; 4];
    let events = [Event::FastPath, Event::SendRecvPath, Event::SlotsGiven, Event::HeaderCached];
    for seed in 1..=seeds {
        println!("seed {seed}"); // shown if the test fails
        let mut swarm = Swarm::new(seed);
        (0..8).for_each(|_| swarm.phase());
        swarm.end();
        swarm.say_more(20);
        swarm.end();
        for channel in &swarm.job {
            counts.iter_mut().zip(events).for_each(|(sum, event)| *sum += count(channel, event));
        }
    }
    assert!(counts.iter().all(|sum| *sum > 3 * seeds), "{counts:?}");
}
