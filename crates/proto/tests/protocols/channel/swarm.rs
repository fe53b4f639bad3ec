//! Ranks that send to each other at random, over adapters that do things in order and over hostile ones:
//! frames come whole, once and in order, and a frame behind a write finds it placed.

use super::{bytes, settings, span};
use crate::adapter::memory::theirs;
use crate::adapter::{self, Adapter, Net, Shared};
use crate::random::Random;
use fabric::{Device, Local, Rank, Rights, Span, Transfers};
use proto::channel::{Channel, Settings};
use proto::{Engine, Event, Limits, Mode, Want};
use std::collections::VecDeque;

/// Length of what is written before a frame that tells of it.
const TOLD: usize = 256;
/// The work of those writes; less is that of the parts of a rank's memory.
const WRITES: u64 = 1000;

struct Expected {
    head: [u64; 2],
    data: Vec<u8>,
    /// The adapter over which was written before, and what.
    behind: Option<(usize, u64)>,
}

/// A pair of ranks in a swarm: what is on its way.
#[derive(Default)]
struct Lane {
    sent: u64,
    expected: VecDeque<Expected>,
    head: [u64; 2],
    last: usize,
    /// What was written last over each adapter, and whether its end and its frame are still to come.
    told: Vec<(u64, bool, bool)>,
}

struct Swarm {
    random: Random,
    net: Shared,
    is_hostile: bool,
    channels: Vec<Channel<Adapter>>,
    lanes: Vec<Lane>,
    /// Registered memory of each rank: whether its parts are free.
    user: Vec<(Local, [bool; 4])>,
    /// Memory of each rank and adapter from which and to which is written, a part for each peer.
    written: Vec<Vec<[Local; 2]>>,
    longest: usize,
}

impl Swarm {
    fn new(seed: u64, is_hostile: bool) -> Swarm {
        let mut random = Random::new(seed);
        let (size, rails) = (2 + random.below(3), if is_hostile { random.of(&[1, 3]) } else { 1 });
        let net = Net::shared(size);
        {
            let net = &mut *net.get();
            (net.hostile, net.rails, net.random) = (is_hostile, rails, seed);
            net.caps.inline_bytes = random.of(&[0, 8, adapter::INLINE]);
            net.caps.at_once_bytes = random.of(&[0, 1 << 20]);
            net.caps.gather = random.of(&[1, 2, 2]);
            net.caps.depth = random.of(&[2, 5, 128]);
            net.caps.writes_in_order = !is_hostile || random.below(2) == 0;
        }
        let settings = Settings {
            frame_bytes: random.of(&[64, 300]),
            staged_bytes: random.of(&[40, 300]),
            slot_bytes: random.of(&[64, 200, 400]),
            slots: random.of(&[0, 1, 2, 5, 48]),
            fast_after: random.of(&[0, 0, 1, 9]) as u32,
            fast_peers: random.of(&[1, 2, 9]),
            fast_bytes: 1 << 20,
            buffers: random.of(&[2, 4, 20]),
            window: random.of(&[2, 3, 16]),
            staged: random.of(&[1, 3, 20]),
            cache_headers: random.below(4) > 0,
        };
        let channel = |me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap();
        let mut channels: Vec<_> = (0..size).map(channel).collect();
        let memory = |channel: &mut Channel<Adapter>, rail, len| {
            let span = channel.allocate(len);
            channel.register(rail, span, Rights::ALL).unwrap().local(span)
        };
        let user = channels.iter_mut().map(|channel| (memory(channel, 0, 4 * 300), [true; 4])).collect();
        let of_rail =
            |channel: &mut Channel<Adapter>, rail| [0; 2].map(|_| memory(channel, rail, size * TOLD));
        let of_rank =
            |channel: &mut Channel<Adapter>| (0..rails).map(|rail| of_rail(channel, rail)).collect();
        let written = channels.iter_mut().map(of_rank).collect();
        let lane = |_| Lane { told: vec![(0, false, false); rails], ..Lane::default() };
        let lanes = (0..size * size).map(lane).collect();
        Swarm { random, net, is_hostile, channels, lanes, user, written, longest: settings.frame_bytes }
    }

    fn head(&mut self, lane: usize) -> [u64; 2] {
        let fresh = [self.random.below(3) as u64, self.random.below(4) as u64 * 100];
        let lane = &mut self.lanes[lane];
        lane.head = match self.random.below(4) {
            0 => [lane.head[0], lane.head[1].wrapping_add(lane.last as u64)],
            1 => fresh,
            _ => lane.head,
        };
        lane.head
    }

    fn send(&mut self) {
        let size = self.channels.len();
        let (from, to) = (self.random.below(size), self.random.below(size));
        let lane = from * size + to;
        let scale = self.random.of(&[16, 16, self.longest]);
        let len = self.random.below(scale + 1).min(self.longest);
        let number = self.lanes[lane].sent;
        let data: Vec<u8> = (0..len).map(|k| (k * 31 + from * 7 + to * 13 + number as usize) as u8).collect();
        let (before, head) = (self.lanes[lane].head, self.head(lane));
        let part = (0..4).find(|&part| self.user[from].1[part]).filter(|_| self.random.below(3) == 0);
        let channel = &mut self.channels[from];
        let sent = match part {
            Some(part) => {
                let Local { span: whole, key } = self.user[from].0;
                let place = whole.part(part * 300, len);
                channel.copy(place.addr, span(&data).addr, len);
                let sent = channel.try_send_from(to, head, Local { span: place, key }, part as u64).unwrap();
                self.user[from].1[part] = !sent;
                sent
            }
            None => channel.try_send(to, head, span(&data)),
        };
        let lane = &mut self.lanes[lane];
        if sent {
            lane.sent += 1;
            lane.last = len;
            lane.expected.push_back(Expected { head, data, behind: None });
        } else {
            lane.head = before;
        }
    }

    /// Writes over some adapter, and tells of it behind.
    fn write_and_tell(&mut self) {
        let size = self.channels.len();
        let (from, to) = (self.random.below(size), self.random.below(size));
        let rail = self.random.below(self.written[from].len());
        let (lane, channel) = (&mut self.lanes[from * size + to], &mut self.channels[from]);
        if from == to {
            return;
        }
        let (stamp, written, told) = lane.told[rail];
        if !written && !told {
            let [source, _] = self.written[from][rail];
            let [_, target] = self.written[to][rail];
            let source = Local { span: source.span.part(to * TOLD, TOLD), key: source.key };
            (0..TOLD).step_by(8).for_each(|at| channel.store(to, source.span.addr + at, stamp + 1));
            let remote = theirs(Local { span: target.span.part(from * TOLD, TOLD), ..target });
            let work = WRITES + (to * adapter::RAILS_MAX + rail) as u64;
            if channel.post_write(to, rail, source, remote, work).unwrap() {
                lane.told[rail] = (stamp + 1, true, true);
            }
        }
        let (stamp, _, told) = lane.told[rail];
        let is_told = |expected: &Expected| expected.behind.is_some_and(|behind| behind.0 == rail);
        if told && !lane.expected.iter().any(is_told) {
            let (head, data) = ([77, rail as u64], stamp.to_le_bytes().to_vec());
            if channel.try_send_behind(to, rail, head, span(&data)) {
                (lane.sent, lane.last, lane.head) = (lane.sent + 1, 8, head);
                lane.expected.push_back(Expected { head, data, behind: Some((rail, stamp)) });
            }
        }
    }

    /// What was written before this frame is there.
    fn check_placed(&mut self, from: Rank, me: Rank, behind: (usize, u64)) {
        let (rail, stamp) = behind;
        let place = self.written[me][rail][1].span.part(from * TOLD, TOLD);
        let word = |at| self.channels[me].load(from, place.addr + at);
        let old = (0..TOLD).step_by(8).find(|at| word(*at) != stamp);
        assert_eq!(old, None, "{from} to {me} over adapter {rail}: behind write {stamp}");
        self.lanes[from * self.channels.len() + me].told[rail].2 = false;
    }

    fn complete(&mut self, rank: Rank) {
        while let Some((work, result)) = self.channels[rank].completed() {
            assert_eq!(result, Ok(()));
            if let Some(place) = work.checked_sub(WRITES) {
                let (to, rail) = (place as usize / adapter::RAILS_MAX, place as usize % adapter::RAILS_MAX);
                let source = self.written[rank][rail][0].span.part(to * TOLD, TOLD);
                self.channels[rank].copy(source.addr, span(&[0xee; TOLD]).addr, TOLD);
                let written = &mut self.lanes[rank * self.user.len() + to].told[rail].1;
                assert!(std::mem::replace(written, false), "ended twice");
                continue;
            }
            let whole = self.user[rank].0.span;
            assert!(!self.user[rank].1[work as usize], "ended twice");
            self.user[rank].1[work as usize] = true;
            // Whoever still reads it now sends rubbish.
            let place = whole.part(work as usize * 300, 300);
            self.channels[rank].copy(place.addr, span(&[0xee; 300]).addr, 300);
        }
    }

    fn receive(&mut self, me: Rank, patience: usize) {
        let mut position = 0;
        while let Some(from) = self.channels[me].source(position) {
            position += 1;
            while self.random.below(16) < patience {
                if self.random.below(3) == 0 {
                    self.network(); // between finding out who has something and taking it
                }
                let Some(frame) = self.channels[me].peek(from) else { break };
                let got = (frame.head, bytes(&self.channels[me], frame.data));
                let lane = &mut self.lanes[from * self.channels.len() + me];
                let Expected { head, data, behind } =
                    lane.expected.pop_front().expect("a frame that nobody sent");
                assert!(got == (head, data), "{from} to {me}: {got:?}, not {head:?}");
                behind.into_iter().for_each(|behind| self.check_placed(from, me, behind));
                self.channels[me].pop(from);
            }
        }
        assert_eq!(self.channels[me].check(), Ok(()));
    }

    fn network(&mut self) {
        if self.is_hostile {
            return self.net.get().step();
        }
        let (pairs, late) = self.net.get().pending();
        if !pairs.is_empty() {
            let (from, to) = self.random.of(&pairs);
            let part = (self.random.below(3) == 0).then(|| self.random.below(400));
            self.net.get().advance(from, to, part);
        }
        if !late.is_empty() && self.random.below(2) == 0 {
            self.net.get().finish(self.random.of(&late));
        }
    }

    fn is_over(&self) -> bool {
        let lane_is_over =
            |lane: &Lane| lane.expected.is_empty() && lane.told.iter().all(|(_, written, _)| !written);
        self.lanes.iter().all(lane_is_over) && self.user.iter().all(|(_, free)| *free == [true; 4])
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let rank = self.random.below(self.channels.len());
            match self.random.below(9) {
                0..3 => self.send(),
                3 => self.receive(rank, 12),
                4 => self.complete(rank),
                5 => self.write_and_tell(),
                _ => self.network(),
            }
        }
        for round in 0.. {
            if self.is_over() {
                return;
            }
            let waiting: usize = self.lanes.iter().map(|lane| lane.expected.len()).sum();
            assert!(round < 20_000, "{waiting} frames never came");
            (0..self.channels.len()).for_each(|rank| {
                self.receive(rank, 16);
                self.complete(rank);
            });
            (0..20).for_each(|_| self.network());
        }
    }
}

struct OnPanic(u64);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "TERN_SWARM_FIRST={} TERN_SWARM_SEEDS=1 cargo test -p proto --test protocols channel",
                self.0
            );
        }
    }
}

fn every_seed_delivers_all_frames_in_order(is_hostile: bool, seeds: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("TERN_SWARM_FIRST").unwrap_or(1);
    let mut events = [0; Event::ALL.len()];
    for seed in first..first + number("TERN_SWARM_SEEDS").unwrap_or(seeds) {
        let _command = OnPanic(seed);
        let mut swarm = Swarm::new(seed, is_hostile);
        swarm.run(3000);
        for channel in &swarm.channels {
            Event::ALL
                .iter()
                .enumerate()
                .for_each(|(at, (event, ..))| events[at] += channel.counters().get(*event));
        }
    }
    for event in
        [Event::FastPath, Event::SendRecvPath, Event::CreditsOut, Event::HeaderCached, Event::ZeroCopy]
            .into_iter()
            .chain([Event::CreditsWritten, Event::SlotsGiven, Event::PostRefused])
    {
        assert!(events[event as usize] > 0 || first > 1, "{event:?} never happened");
    }
}

#[test]
fn every_seed_delivers_all_frames_in_order_over_orderly_adapters() {
    every_seed_delivers_all_frames_in_order(false, 300);
}

#[test]
fn every_seed_delivers_all_frames_in_order_over_hostile_adapters() {
    every_seed_delivers_all_frames_in_order(true, 200);
}

fn limits() -> Limits {
    Limits { eager_bytes: 300, ..adapter::limits() }
}

/// Messages of the engine, eager and long, all to all.
#[test]
fn the_engine_runs_over_a_channel() {
    for seed in 1..40 {
        run_engines(seed, seed % 2 == 0);
    }
}

fn run_engines(seed: u64, is_hostile: bool) {
    let mut random = Random::new(seed);
    let n = 3;
    let net = Net::shared(n);
    (net.get().hostile, net.get().random) = (is_hostile, seed);
    let engine = |me| {
        let settings = Settings { slots: 3, fast_after: 2, ..settings() };
        Engine::new(Channel::new(Adapter::new(me, &net), settings).unwrap(), limits())
    };
    let mut engines: Vec<_> = (0..n).map(engine).collect();
    let mut sends = Vec::new();
    let mut receives = Vec::new();
    for number in 0..60usize {
        for (from, to) in (0..n * n).map(|at| (at / n, at % n)) {
            let len = random.of(&[0, 8, 100, 300, 301, 3000]);
            let data: Vec<u8> = (0..len).map(|k| (k * 7 + from + number) as u8).collect();
            let mut buffer = vec![0u8; len];
            let place = Span { addr: buffer.as_mut_ptr() as usize, len };
            let want = Want { source: Some(from), context: 4, tag: Some(2) };
            let early = random.below(2) == 0;
            let post = |engines: &mut Vec<Engine<_>>| engines[to].receive(want, place).unwrap();
            let posted = early.then(|| post(&mut engines));
            let op = engines[from].send(to, 4, 2, span(&data), Mode::Standard).unwrap();
            sends.extend(op.map(|op| (from, op)));
            let op = posted.unwrap_or_else(|| post(&mut engines));
            receives.push((to, op, buffer, data, false));
            for _ in 0..random.below(30) {
                step(&net, &mut random, &mut engines);
            }
        }
    }
    for round in 0.. {
        assert!(round < 200_000, "messages never came");
        step(&net, &mut random, &mut engines);
        sends.retain(|(rank, op)| engines[*rank].take(*op).is_none());
        for (rank, op, buffer, data, done) in receives.iter_mut().filter(|r| !r.4) {
            if let Some(outcome) = engines[*rank].take(*op) {
                assert_eq!((outcome.failure, outcome.len as usize), (None, data.len()));
                assert!(buffer == data);
                *done = true;
            }
        }
        if sends.is_empty() && receives.iter().all(|r| r.4) {
            break;
        }
    }
}

fn step(net: &Shared, random: &mut Random, engines: &mut [Engine<Channel<Adapter>>]) {
    let rank = random.below(engines.len());
    engines[rank].poll().unwrap();
    if net.get().hostile {
        return (0..4).for_each(|_| net.get().step());
    }
    let (pairs, late) = net.get().pending();
    if !pairs.is_empty() {
        let (from, to) = random.of(&pairs);
        net.get().advance(from, to, None);
    }
    if !late.is_empty() {
        net.get().finish(random.of(&late));
    }
}
