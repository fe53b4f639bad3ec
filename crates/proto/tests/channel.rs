//! Frames over registered memory: whole, once, in order, by whichever path, whatever the adapters
//! delay; and a fault that names the peer for everything a peer must not do.

mod adapter;

use adapter::{Adapter, Net, Shared};
use fabric::{Device, Distance, Fault, Local, Rank, Span, Transfers};
use proto::channel::{Channel, Settings};
use proto::{Engine, Event, Limits, Mode, Want};
use std::collections::VecDeque;
use wire::slot::VERSION;

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
}

fn span(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}

fn bytes(device: &impl Device, data: Span) -> Vec<u8> {
    let mut bytes = vec![0; data.len];
    device.peek_bytes(data, &mut bytes);
    bytes
}

fn settings() -> Settings {
    Settings {
        frame_bytes: 512,
        slot_bytes: 256,
        slots: 8,
        fast_after: 0,
        fast_peers: 8,
        fast_bytes: 1 << 20,
        buffers: 8,
        window: 4,
        staged: 15,
        cache_headers: true,
    }
}

fn pair(settings: &Settings) -> (Shared, [Channel<Adapter>; 2]) {
    let net = Net::shared(2);
    let channel = |me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap();
    let channels = [channel(0), channel(1)];
    (net, channels)
}

/// Lets everything arrive that was posted.
fn arrive(net: &Shared) {
    let under_way = || net.get().under_way();
    while let Some(&(from, to)) = under_way().first() {
        net.get().advance(from, to, None);
    }
}

/// Lets everything that was posted come to its end, and everybody look.
fn settle(net: &Shared, channels: &mut [Channel<Adapter>]) {
    loop {
        let (pairs, late) = net.get().pending();
        pairs.iter().for_each(|&(from, to)| net.get().advance(from, to, None));
        late.iter().for_each(|&rank| net.get().finish(rank));
        channels.iter_mut().for_each(look);
        if pairs.is_empty() && late.is_empty() && net.get().under_way().is_empty() {
            return;
        }
    }
}

/// Looks at the next frame of everybody and takes none.
fn look(channel: &mut Channel<Adapter>) {
    let mut position = 0;
    while let Some(from) = channel.source(position) {
        channel.peek(from);
        position += 1;
    }
}

/// Both have slots for each other.
fn connected(settings: &Settings) -> (Shared, [Channel<Adapter>; 2]) {
    let (net, mut channels) = pair(settings);
    for (from, to) in [(0, 1), (1, 0)] {
        assert!(channels[from].try_send(to, [1, 1], Span::EMPTY));
        settle(&net, &mut channels);
        assert!(take(&mut channels[to], from).is_some());
    }
    settle(&net, &mut channels);
    (net, channels)
}

fn take(channel: &mut Channel<Adapter>, from: Rank) -> Option<([u64; 2], Vec<u8>)> {
    let frame = channel.peek(from)?;
    let taken = (frame.head, bytes(channel, frame.data));
    channel.pop(from);
    Some(taken)
}

#[test]
fn the_first_frames_introduce_and_then_slots_are_used() {
    let (net, mut channels) = pair(&Settings { fast_after: 3, ..settings() });
    for number in 0..6u64 {
        assert!(channels[0].try_send(1, [7, number], span(b"hello")));
        settle(&net, &mut channels);
        assert_eq!(take(&mut channels[1], 0), Some(([7, number], b"hello".to_vec())));
        settle(&net, &mut channels);
    }
    let counters = channels[0].counters();
    assert_eq!((counters.get(Event::SendRecvPath), counters.get(Event::FastPath)), (3, 3));
    assert_eq!(channels[1].counters().get(Event::SlotsGiven), 1);
    assert_eq!(channels[0].counters().get(Event::SlotsGiven), 0, "rank 1 has sent nothing");
}

#[test]
fn an_introduction_without_a_buffer_does_not_hold_credits_back() {
    let (net, mut channels) = pair(&Settings { fast_after: settings().window as u32, ..settings() });
    let fill = |channel: &mut Channel<Adapter>, to| {
        (0..).take_while(|n| channel.try_send(to, [7, *n], Span::EMPTY)).count()
    };
    let mut passed = 0;
    for _ in 0..4 {
        // Both fill all buffers of the other, in which the offers of slots would travel.
        let sent = [fill(&mut channels[0], 1), fill(&mut channels[1], 0)];
        passed += sent[0];
        settle(&net, &mut channels);
        for (from, to) in [(0, 1), (1, 0)] {
            assert_eq!((0..).take_while(|_| take(&mut channels[to], from).is_some()).count(), sent[from]);
        }
        settle(&net, &mut channels);
    }
    assert!(passed > 2 * settings().window, "{passed} frames and then none");
}

#[test]
fn without_a_budget_there_are_no_slots() {
    let settings = [
        Settings { fast_peers: 0, ..settings() },
        Settings { fast_bytes: 100, ..settings() },
        Settings { slots: 0, ..settings() },
    ];
    for settings in settings {
        let (net, mut channels) = connected(&settings);
        for _ in 0..20 {
            assert!(channels[0].try_send(1, [7, 7], span(b"hello")));
            settle(&net, &mut channels);
            assert!(take(&mut channels[1], 0).is_some());
        }
        assert_eq!(channels[0].counters().get(Event::FastPath), 0);
    }
}

#[test]
fn when_credits_run_out_send_recv_takes_over_and_then_the_sender_waits() {
    let (net, mut channels) = connected(&settings());
    let sent =
        |channels: &mut [Channel<Adapter>; 2], number| channels[0].try_send(1, [7, number], Span::EMPTY);
    let before = [Event::FastPath, Event::SendRecvPath].map(|event| channels[0].counters().get(event));
    let mut number = 0;
    while sent(&mut channels, number) {
        number += 1;
        settle(&net, &mut channels);
    }
    let counters = channels[0].counters();
    let paths = [Event::FastPath, Event::SendRecvPath].map(|event| counters.get(event));
    assert_eq!(paths[0] - before[0], 7, "all slots are full but the one kept for the next");
    // The introduction of rank 0 and its first frame have not been acknowledged yet.
    assert_eq!(paths[1] - before[1], number - 7);
    assert!((1..=4).contains(&(number - 7)));
    for expected in 0..number {
        assert_eq!(take(&mut channels[1], 0), Some(([7, expected], vec![])), "in order over both paths");
    }
    // Nothing goes the other way: the credits must come by themselves.
    settle(&net, &mut channels);
    assert!(channels[1].counters().get(Event::CreditsWritten) > 0);
    let fast = channels[0].counters().get(Event::FastPath);
    assert!(sent(&mut channels, number));
    assert_eq!(channels[0].counters().get(Event::FastPath), fast + 1);
}

#[test]
fn credits_ride_on_frames_of_the_other_direction() {
    let (net, mut channels) = connected(&settings());
    for round in 0..100u64 {
        for (from, to) in [(0, 1), (1, 0)] {
            assert!(channels[from].try_send(to, [7, round], Span::EMPTY));
            settle(&net, &mut channels);
            assert_eq!(take(&mut channels[to], from), Some(([7, round], vec![])));
        }
    }
    for channel in &channels {
        assert!(channel.counters().get(Event::FastPath) >= 100);
        assert_eq!(channel.counters().get(Event::CreditsWritten), 0);
    }
}

#[test]
fn credits_are_read_from_frames_that_nobody_has_taken() {
    let (net, mut channels) = connected(&settings());
    let send = |channels: &mut [Channel<Adapter>; 2], from: Rank, kind| {
        assert!(channels[from].try_send(1 - from, [kind, 0], Span::EMPTY));
    };
    // Rank 0 leaves this one where it is: what follows it cannot be taken.
    send(&mut channels, 1, 8);
    (0..7).for_each(|_| send(&mut channels, 0, 7));
    settle(&net, &mut channels);
    (0..3).for_each(|_| assert!(take(&mut channels[1], 0).is_some()));
    send(&mut channels, 1, 9);
    settle(&net, &mut channels);
    assert_eq!(channels[1].counters().get(Event::CreditsWritten), 0);
    let fast = channels[0].counters().get(Event::FastPath);
    (0..3).for_each(|_| send(&mut channels, 0, 7));
    assert_eq!(channels[0].counters().get(Event::FastPath), fast + 3);
    settle(&net, &mut channels);
    assert_eq!(
        [take(&mut channels[0], 1), take(&mut channels[0], 1)].map(|f| f.map(|f| f.0[0])),
        [Some(8), Some(9)]
    );
}

#[test]
fn credits_that_could_not_be_posted_are_owed() {
    let net = Net::shared(2);
    net.get().caps.depth = 3;
    let channel = |me| Channel::new(Adapter::new(me, &net), settings()).unwrap();
    let mut channels = [channel(0), channel(1)];
    for (from, to) in [(0, 1), (1, 0)] {
        assert!(channels[from].try_send(to, [1, 1], Span::EMPTY));
        settle(&net, &mut channels);
        assert!(take(&mut channels[to], from).is_some());
    }
    settle(&net, &mut channels);
    for _ in 0..4 {
        assert!(channels[0].try_send(1, [7, 7], Span::EMPTY));
        settle(&net, &mut channels);
    }
    // The queue of rank 1 is full with other work while it takes the frames.
    let near = channels[1].allocate(8);
    let key = channels[1].register(0, near).unwrap();
    let far = channels[0].allocate(8);
    let far_key = channels[0].register(0, far).unwrap();
    let remote = fabric::Remote { addr: far.addr as u64, key: far_key };
    let mut work = 0;
    while channels[1].post_write(0, 0, Local { span: near, key }, remote, work).unwrap() {
        work += 1;
    }
    while take(&mut channels[1], 0).is_some() {}
    assert_eq!(channels[1].counters().get(Event::CreditsWritten), 0);
    settle(&net, &mut channels);
    assert_eq!(channels[1].counters().get(Event::CreditsWritten), 1);
}

#[test]
fn a_frame_that_was_shown_is_shown_until_it_is_popped() {
    // The first ones go by Send/Recv, being longer than a slot.
    for (long, all) in [(2, 2), (2, 5), (0, 3)] {
        let (net, mut channels) = connected(&settings());
        for number in 0..all {
            let data = vec![1u8; if number < long { 300 } else { 10 }];
            assert!(channels[0].try_send(1, [7, number], span(&data)));
        }
        arrive(&net);
        for number in 0..all {
            for _ in 0..3 {
                assert_eq!(channels[1].peek(0).map(|frame| frame.head), Some([7, number]));
                assert_eq!(channels[1].source(0), Some(0), "it is still there");
            }
            channels[1].pop(0);
        }
        assert!(channels[1].peek(0).is_none());
        channels[1].source(0);
        assert_eq!(channels[1].source(0), None);
    }
}

#[test]
fn frames_longer_than_a_slot_keep_their_place() {
    let (net, mut channels) = connected(&settings());
    let long = [9u8; 400];
    assert!(channels[0].try_send(1, [1, 0], span(&long[..200])));
    assert!(channels[0].try_send(1, [2, 0], span(&long)));
    assert!(channels[0].try_send(1, [3, 0], span(&long[..3])));
    arrive(&net); // and nobody has looked: the slot is seen before the message
    for (kind, len) in [(1, 200), (2, 400), (3, 3)] {
        assert_eq!(take(&mut channels[1], 0), Some(([kind, 0], long[..len].to_vec())));
    }
    assert_eq!(channels[0].counters().get(Event::CreditsOut), 0);
}

#[test]
fn known_headers_stay_at_home() {
    for (cache_headers, cached) in [(true, 10), (false, 0)] {
        let (net, mut channels) = connected(&Settings { cache_headers, slots: 16, ..settings() });
        let piece = [5u8; 100];
        // The same header five times more, then a stream of six pieces.
        let offsets = (0..6).map(|_| [8, 42]).chain((0..6).map(|k| [9, k * 100]));
        for head in offsets.clone() {
            assert!(channels[0].try_send(1, head, span(&piece)));
        }
        settle(&net, &mut channels);
        for head in offsets {
            assert_eq!(take(&mut channels[1], 0), Some((head, piece.to_vec())));
        }
        assert_eq!(channels[0].counters().get(Event::HeaderCached), cached);
    }
}

#[test]
fn gathered_memory_is_busy_until_its_work_has_ended() {
    let (net, mut channels) = connected(&settings());
    for len in [200, 400] {
        let memory = channels[0].allocate(len);
        let key = channels[0].register(0, memory).unwrap();
        channels[0].copy(memory.addr, span(&vec![1u8; len]).addr, len);
        assert_eq!(channels[0].try_send_from(1, [7, 7], Local { span: memory, key }, 55), Ok(true));
        assert_eq!(channels[0].completed(), None);
        net.get().advance(0, 1, None);
        assert_eq!(channels[0].completed(), None);
        net.get().finish(0);
        assert_eq!(channels[0].completed(), Some((55, Ok(()))));
        channels[0].copy(memory.addr, span(&vec![2u8; len]).addr, len);
        channels[1].source(0);
        assert_eq!(take(&mut channels[1], 0), Some(([7, 7], vec![1; len])));
    }
    assert_eq!(channels[0].counters().get(Event::ZeroCopy), 2);
    // What the processor hands over with the work is free at once.
    let small = [3u8; 8];
    assert_eq!(channels[0].try_send_from(1, [7, 7], Local { span: span(&small), key: 99 }, 56), Ok(true));
    assert_eq!(channels[0].completed(), Some((56, Ok(()))));
}

#[test]
fn work_of_the_engine_passes_through() {
    let (net, mut channels) = connected(&settings());
    let near = channels[0].allocate(4096);
    let far = channels[1].allocate(4096);
    let key = channels[0].register(0, near).unwrap();
    let far_key = channels[1].register(0, far).unwrap();
    let remote = fabric::Remote { addr: far.addr as u64, key: far_key };
    channels[0].store(near.addr, 77);
    assert_eq!(channels[0].post_write(1, 0, Local { span: near, key }, remote, 3), Ok(true));
    settle(&net, &mut channels);
    assert_eq!(channels[1].load(far.addr), 77);
    channels[1].store(far.addr, 78);
    assert_eq!(channels[0].post_read(1, 0, Local { span: near, key }, remote, 4), Ok(true));
    settle(&net, &mut channels);
    assert_eq!(channels[0].load(near.addr), 78);
    assert_eq!([channels[0].completed(), channels[0].completed()], [Some((3, Ok(()))), Some((4, Ok(())))]);
}

#[test]
fn a_rank_sends_to_itself() {
    let (_net, mut channels) = pair(&settings());
    let mut sent = 0;
    while channels[0].try_send(0, [sent, 0], span(b"me")) {
        sent += 1;
    }
    assert_eq!(channels[0].source(0), Some(0));
    for number in 0..sent {
        assert_eq!(take(&mut channels[0], 0), Some(([number, 0], b"me".to_vec())));
    }
    assert_eq!(channels[0].source(0), None);
}

#[test]
fn ranks_that_never_meet_cost_nothing() {
    let net = Net::shared(4096);
    let mut channel = Channel::new(Adapter::new(0, &net), settings()).unwrap();
    let before = net.get().registered(0);
    assert!(before < 8 * 1024, "{before} bytes");
    let _peer = Channel::new(Adapter::new(4000, &net), settings()).unwrap();
    assert!(channel.try_send(4000, [1, 1], Span::EMPTY));
    assert_eq!(channel.contacts(), 1);
}

#[test]
fn little_under_way_touches_little_memory() {
    let many = Settings { slots: 40, buffers: 40, ..settings() };
    let (net, mut channels) = connected(&many);
    let mut places = std::collections::BTreeSet::new();
    for round in 0..200u64 {
        for (from, to) in [(0, 1), (1, 0)] {
            // Two of three go by Send/Recv, being longer than a slot.
            let data = vec![1; if round % 3 == 0 { 10 } else { 400 }];
            assert!(channels[from].try_send(to, [7, round], span(&data)));
            settle(&net, &mut channels);
            places.extend((to == 1).then(|| channels[to].peek(from).unwrap().data.addr));
            assert_eq!(take(&mut channels[to], from), Some(([7, round], data)));
        }
    }
    assert!(places.len() <= 2 + 5, "{} places for one frame at a time", places.len());
}

#[test]
fn more_buffers_are_posted_when_they_are_needed() {
    let net = Net::shared(9);
    let settings = Settings { slots: 0, buffers: 32, window: 4, ..settings() };
    let mut channels: Vec<_> =
        (0..9).map(|me| Channel::new(Adapter::new(me, &net), settings.clone()).unwrap()).collect();
    // Nobody takes anything: eight peers fill four buffers each.
    let mut sent = [0; 9];
    for _ in 0..100 {
        (1..9).for_each(|from| sent[from] += channels[from].try_send(0, [1, 1], Span::EMPTY) as usize);
        settle(&net, &mut channels);
    }
    // The introduction came first; it was taken, but not half of the window.
    assert_eq!(sent[1..], [3; 8]);
}

#[test]
fn little_memory_that_can_be_registered_is_shared_with_the_application() {
    let net = Net::shared(2);
    net.get().caps.lockable_bytes = 64 * 1024;
    let channel = |me| Channel::new(Adapter::new(me, &net), Settings::default()).unwrap();
    let mut channels = [channel(0), channel(1)];
    let longest = vec![8u8; channels[0].caps(Distance::Network).frame_bytes];
    for number in 0..200u64 {
        assert!(channels[0].try_send(1, [7, number], span(&longest)));
        settle(&net, &mut channels);
        assert_eq!(take(&mut channels[1], 0), Some(([7, number], longest.clone())));
    }
    for rank in 0..2 {
        let registered = net.get().registered(rank);
        assert!(registered <= 32 * 1024, "rank {rank} has registered {registered} bytes for frames");
    }
}

/// A pair of ranks in a swarm: what is on its way.
#[derive(Default)]
struct Lane {
    sent: u64,
    expected: VecDeque<([u64; 2], Vec<u8>)>,
    head: [u64; 2],
    last: usize,
}

struct Swarm {
    random: Random,
    net: Shared,
    channels: Vec<Channel<Adapter>>,
    lanes: Vec<Lane>,
    /// Registered memory of each rank: whether its parts are free.
    user: Vec<(Local, [bool; 4])>,
    longest: usize,
}

impl Swarm {
    fn new(seed: u64) -> Swarm {
        let mut random = Random::new(seed);
        let size = 2 + random.below(3);
        let net = Net::shared(size);
        net.get().caps.inline_bytes = random.of(&[0, 8, adapter::INLINE]);
        net.get().caps.gather = random.of(&[1, 2, 2]);
        net.get().caps.depth = random.of(&[2, 5, 128]);
        let settings = Settings {
            frame_bytes: random.of(&[64, 300]),
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
        let user = |channel: &mut Channel<Adapter>| {
            let span = channel.allocate(4 * 300);
            (Local { span, key: channel.register(0, span).unwrap() }, [true; 4])
        };
        let user = channels.iter_mut().map(user).collect();
        let lanes = (0..size * size).map(|_| Lane::default()).collect();
        Swarm { random, net, channels, lanes, user, longest: settings.frame_bytes }
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
            lane.expected.push_back((head, data));
        } else {
            lane.head = before;
        }
    }

    fn complete(&mut self, rank: Rank) {
        while let Some((part, result)) = self.channels[rank].completed() {
            assert_eq!(result, Ok(()));
            let whole = self.user[rank].0.span;
            assert!(!self.user[rank].1[part as usize], "ended twice");
            self.user[rank].1[part as usize] = true;
            // Whoever still reads it now sends rubbish.
            let place = whole.part(part as usize * 300, 300);
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
                let expected = lane.expected.pop_front().expect("a frame that nobody sent");
                assert!(got == expected, "{from} to {me}: {got:?}, not {expected:?}");
                self.channels[me].pop(from);
            }
        }
        assert_eq!(self.channels[me].check(), Ok(()));
    }

    fn network(&mut self) {
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

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let rank = self.random.below(self.channels.len());
            match self.random.below(8) {
                0..3 => self.send(),
                3 => self.receive(rank, 12),
                4 => self.complete(rank),
                _ => self.network(),
            }
        }
        for round in 0.. {
            let waiting: usize = self.lanes.iter().map(|lane| lane.expected.len()).sum();
            if waiting == 0 && self.user.iter().all(|(_, free)| *free == [true; 4]) {
                return;
            }
            assert!(round < 10_000, "{waiting} frames never came");
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
            eprintln!("TERN_SWARM_FIRST={} TERN_SWARM_SEEDS=1 cargo test -p proto --test channel", self.0);
        }
    }
}

#[test]
fn every_seed_delivers_all_frames_in_order() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("TERN_SWARM_FIRST").unwrap_or(1);
    let mut events = [0; Event::ALL.len()];
    for seed in first..first + number("TERN_SWARM_SEEDS").unwrap_or(300) {
        let _command = OnPanic(seed);
        let mut swarm = Swarm::new(seed);
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

/// Rank 1 has found out that rank 0 does not keep to the rules, and will have no more to do with it.
fn broken(channels: &mut [Channel<Adapter>; 2], expected: &str) {
    channels[1].source(0);
    while take(&mut channels[1], 0).is_some() {}
    let fault = channels[1].check();
    let Err(Fault::Device(text)) = &fault else { panic!("{fault:?}, expected {expected}") };
    assert!(text.contains("malformed frame from rank 0") && text.contains(expected), "{text}");
    assert_eq!(channels[1].try_send_from(0, [1, 1], Local::default(), 1), fault.map(|()| true));
    assert!(!channels[1].try_send(0, [1, 1], Span::EMPTY));
}

fn tail(kind: u8, seq: u16, ack: u16, len: u32) -> u64 {
    seq as u64 | (ack as u64) << 16 | (len as u64) << 32 | (kind as u64) << 56
}

fn message(payload: &[u8], words: &[u64]) -> Vec<u8> {
    payload.iter().copied().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
}

#[test]
fn every_malformed_message_is_a_fault_that_names_the_peer() {
    let meet = |words: [u64; 5]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let version = VERSION as u64;
    let good = version | 4 << 16 | 512 << 32;
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "a message of 0 bytes"),
        (vec![1; 7], "a message of 7 bytes"),
        (message(&[], &[tail(9, 0, 0, 0)]), "unknown kind of frame 9"),
        (message(&[], &[tail(2, 0, 0, 0)]), "Same header outside of the slots"),
        (message(&[], &[tail(3, 0, 0, 0)]), "Next header outside of the slots"),
        (message(&[], &[1, 1, tail(1, 0, 0, 5)]), "5 bytes announced in a message of 24"),
        (message(&[], &[1, 1, tail(1, 0, 0, 0)]), "a frame before the introduction"),
        (message(&[], &[1, 1, tail(1, 64, 0, 0)]), "frame number 64"),
        (message(&[], &[1, 1, tail(1, 65535, 0, 0)]), "frame number 65535"),
        (message(&[], &[1, 1, tail(1, 0, 1, 0)]), "1 frames acknowledged of 0 sent"),
        (message(&[0; 8], &[tail(4, 0, 0, 8)]), "an introduction has 40 bytes"),
        (message(&[0; 48], &[tail(4, 0, 0, 48)]), "an introduction has 40 bytes"),
        (message(&meet([9, 0, 0, 0, 0]), &[tail(4, 0, 0, 40)]), "frame format version 9"),
        (message(&[], &[tail(5, 0, 1, 0)]), "1 frames acknowledged of 0 sent"),
        (message(&[0; 8], &[tail(5, 0, 0, 0)]), "0 bytes announced in a message of 16"),
        (message(&meet([good, 4, 0, 0, 0]), &[tail(4, 0, 0, 40)]), "no whole words"),
        (message(&meet([good, 8, 0, 0, 64 << 32 | 49]), &[tail(4, 0, 0, 40)]), "49 slots offered"),
        (
            message(&meet([version | 5 << 16 | 512 << 32, 8, 0, 0, 0]), &[tail(4, 0, 0, 40)]),
            "settings must be the same",
        ),
    ];
    for (bytes, expected) in cases {
        let (net, mut channels) = pair(&Settings { fast_after: 9, ..settings() });
        net.get().receive(0, 1, &bytes);
        broken(&mut channels, expected);
    }
}

#[test]
fn every_malformed_slot_is_a_fault_that_names_the_peer() {
    // So far: the introduction and a frame by Send/Recv; the first slot is still empty.
    let cases: Vec<(u64, &str)> = vec![
        (tail(9, 2, 2, 0), "unknown kind of frame 9"),
        (tail(4, 2, 2, 40), "Meet in a slot"),
        (tail(5, 2, 2, 0), "Credit in a slot"),
        (tail(1, 2, 2, 8 << 18), "the next frame in slot 8 of 8"),
        (tail(1, 2, 2, 233), "233 bytes in a slot of 256"),
        (tail(2, 2, 2, 249), "249 bytes in a slot of 256"),
        (tail(2, 2, 2, 0), "Same refers to a header that was never sent"),
        (tail(3, 2, 2, 0), "Next refers to a header that was never sent"),
        (tail(1, 1, 2, 0), "frame number 1"),
        (tail(1, 2 + 64, 2, 0), "frame number 66"),
        (tail(1, 2, 9, 0), "9 frames acknowledged of 2 sent"),
    ];
    for (word, expected) in cases {
        let (net, mut channels) = connected(&settings());
        let ring = net.get().region(1, 8 * 256);
        net.get().scribble(0, 1, ring.addr as u64 + 256 - 8, &word.to_le_bytes());
        broken(&mut channels, expected);
    }
}

#[test]
fn a_mailbox_that_tells_of_frames_never_sent_is_a_fault() {
    let (net, mut channels) = connected(&settings());
    let page = net.get().region(1, 4096);
    net.get().scribble(0, 1, page.addr as u64, &1000u64.to_le_bytes());
    // It is read when credits run out.
    while channels[1].try_send(0, [1, 1], Span::EMPTY) {}
    broken(&mut channels, "1000 frames acknowledged");
}

#[test]
fn a_frame_that_is_landing_is_not_taken() {
    let (net, mut channels) = connected(&settings());
    let piece = [7u8; 100];
    assert!(channels[0].try_send(1, [7, 1], span(&piece)));
    for part in [1, 50, 117, 123] {
        net.get().advance(0, 1, Some(part));
        look(&mut channels[1]);
        assert_eq!(take(&mut channels[1], 0), None, "{part} bytes are there");
    }
    net.get().advance(0, 1, None);
    look(&mut channels[1]);
    assert_eq!(take(&mut channels[1], 0), Some(([7, 1], piece.to_vec())));
}

#[test]
fn a_rank_that_only_sends_finds_out_that_it_has_slots() {
    let (net, mut channels) = pair(&Settings { fast_after: 2, ..settings() });
    for number in 0..40u64 {
        assert!(channels[0].try_send(1, [7, number], Span::EMPTY));
        arrive(&net);
        look(&mut channels[1]);
        assert_eq!(take(&mut channels[1], 0), Some(([7, number], vec![])));
        arrive(&net);
    }
    assert!(channels[0].counters().get(Event::FastPath) > 20);
}

#[test]
fn a_broken_peer_does_no_harm_to_the_others() {
    let net = Net::shared(3);
    let channel = |me| Channel::new(Adapter::new(me, &net), settings()).unwrap();
    let mut channels = [channel(0), channel(1), channel(2)];
    for _ in 0..20 {
        net.get().receive(0, 1, &[1, 2, 3]);
        channels[1].source(0);
    }
    for number in 0..20u64 {
        assert!(channels[2].try_send(1, [7, number], span(b"fine")));
        settle(&net, &mut channels);
        assert_eq!(take(&mut channels[1], 2), Some(([7, number], b"fine".to_vec())));
    }
    assert!(channels[1].check().is_err());
}

fn limits() -> Limits {
    Limits {
        eager_bytes: 300,
        unexpected_bytes: 1 << 20,
        unexpected_max_bytes: 1 << 30,
        adapt: false,
        rtr: true,
        remote_access: true,
        force: None,
        eager_by: Default::default(),
        cache: Default::default(),
    }
}

/// Messages of the engine, eager and long, all to all.
#[test]
fn the_engine_runs_over_a_channel() {
    for seed in 1..40 {
        let mut random = Random::new(seed);
        let n = 3;
        let net = Net::shared(n);
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
            assert!(round < 100_000, "messages never came");
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
}

fn step(net: &Shared, random: &mut Random, engines: &mut [Engine<Channel<Adapter>>]) {
    let rank = random.below(engines.len());
    engines[rank].poll().unwrap();
    let (pairs, late) = net.get().pending();
    if !pairs.is_empty() {
        let (from, to) = random.of(&pairs);
        net.get().advance(from, to, None);
    }
    if !late.is_empty() {
        net.get().finish(random.of(&late));
    }
}
