//! Reliability over datagrams that are lost, doubled and overtaken, with and without connections that come and go: sends,
//! writes and reads come, once, in order, and with their bytes. `TERN_NET_SEEDS=1000` for a night.

use crate::adapter::memory::theirs;
use crate::adapter::{Adapter, Net, Shared};
use crate::random::Random;
use fabric::{Done, Local, Rank, Remote, Rights, Span, Verbs};
use proto::reliable::{Reliable, Settings};
use std::collections::{HashMap, VecDeque};

const RANKS: usize = 3;
/// Memory that each peer may write to and read from, by source, and longest message.
const WINDOW: usize = 8192;
const LONGEST: usize = 5000;
const BUFFERS: usize = 4;

/// One rank, and what is to come of it.
struct Seat {
    verbs: Reliable<Adapter>,
    /// Receive buffers by work, and whether they are posted.
    buffers: Vec<Local>,
    idle_buffers: Vec<usize>,
    /// By source: what it may write to, and what it reads.
    windows: Vec<Local>,
    /// Memory that is under way, by work.
    out: HashMap<u64, (Local, Rank, Vec<u8>)>,
    next: u64,
    /// By source: messages to come, and what is to be in the window when the message comes.
    expected: Vec<VecDeque<(Vec<u8>, Option<u8>)>>,
    came: usize,
    /// Messages that came with a buffer of their own.
    exchanged: u32,
}

fn net(seed: u64, loss: usize) -> Shared {
    let shared = Net::shared(RANKS);
    let mut net = shared.get();
    net.caps.datagram_bytes = 700;
    net.random = seed;
    (net.loses_one_in, net.doubles_one_in, net.mixes_one_in) = (loss, 17, 5);
    drop(net);
    shared
}

fn memory(verbs: &mut Reliable<Adapter>, len: usize) -> Local {
    let span = verbs.allocate(len);
    verbs.register(0, span, Rights::ALL).unwrap().local(span)
}

fn bytes(verbs: &Reliable<Adapter>, span: Span) -> Vec<u8> {
    let mut out = vec![0; span.len];
    verbs.peek_bytes(span, &mut out);
    out
}

fn seats(net: &Shared, settings: &Settings) -> Vec<Seat> {
    (0..RANKS)
        .map(|me| {
            let mut verbs = Reliable::new(Adapter::new(me, net), settings.clone()).unwrap();
            let buffers: Vec<Local> = (0..BUFFERS).map(|_| memory(&mut verbs, LONGEST)).collect();
            let windows = (0..RANKS).map(|_| memory(&mut verbs, WINDOW)).collect();
            Seat {
                verbs,
                buffers,
                idle_buffers: (0..BUFFERS).collect(),
                windows,
                out: HashMap::new(),
                next: 1000,
                expected: (0..RANKS).map(|_| VecDeque::new()).collect(),
                came: 0,
                exchanged: 0,
            }
        })
        .collect()
}

impl Seat {
    /// Memory with these bytes for work, and its number.
    fn fill(&mut self, to: Rank, data: Vec<u8>) -> (Local, u64) {
        let local = memory(&mut self.verbs, data.len().max(8));
        self.verbs.poke_bytes(local.span.addr, &data);
        let local = Local { span: local.span.part(0, data.len()), key: local.key };
        self.next += 1;
        self.out.insert(self.next, (local, to, data));
        (local, self.next)
    }
}

/// Posts something by chance; whether there was room.
fn post(seats: &mut [Seat], random: &mut Random, count: &mut u8) -> bool {
    let me = random.below(RANKS);
    let to = (me + 1 + random.below(RANKS - 1)) % RANKS;
    *count = count.wrapping_add(1);
    let longest = random.of(&[1, 60, 300, 2000, LONGEST]);
    let len = 1 + random.below(longest);
    let data = vec![*count; len];
    let window = seats[to].windows[me];
    let remote = theirs(window);
    match random.below(4) {
        0 => {
            // A write, and behind it the message that says it is there.
            let (local, work) = seats[me].fill(to, vec![*count; 1 + random.below(WINDOW)]);
            let first = seats[me].verbs.post_write(to, 0, &[local], remote, work).unwrap();
            if !first {
                seats[me].out.remove(&work);
                return false;
            }
            let (local, work) = seats[me].fill(to, data.clone());
            // The next write may be there, too, before this message is looked at: only its own byte is sure to be over.
            if seats[me].verbs.post_send(to, 0, &[local], work).unwrap() {
                seats[to].expected[me].push_back((data, Some(*count)));
            } else {
                seats[me].out.remove(&work);
            }
            true
        }
        1 => {
            let (local, work) = seats[me].fill(to, vec![0; 1 + random.below(WINDOW)]);
            let posted = seats[me].verbs.post_read(to, 0, local, remote, work).unwrap();
            if !posted {
                seats[me].out.remove(&work);
            }
            posted
        }
        _ => {
            let (local, work) = seats[me].fill(to, data.clone());
            let posted = seats[me].verbs.post_send(to, 0, &[local], work).unwrap();
            if posted {
                seats[to].expected[me].push_back((data, None));
            } else {
                seats[me].out.remove(&work);
            }
            posted
        }
    }
}

/// Looks at one rank.
fn look(seat: &mut Seat, random: &mut Random) {
    if random.one_in(3)
        && let Some(index) = seat.idle_buffers.pop()
    {
        seat.verbs.post_receive(0, seat.buffers[index], index as u64);
    }
    while let Some(completion) = seat.verbs.poll() {
        assert_eq!(completion.result, Ok(()));
        if let Done::Parted { .. } = completion.done {
            continue;
        }
        let Done::Received { from, len, .. } = completion.done else {
            let (local, _, data) = seat.out.remove(&completion.work).expect("it ends once");
            match completion.done {
                // What a peer reads may change meanwhile; it is the bytes of writes all the same.
                Done::Read => {}
                _ => assert_eq!(bytes(&seat.verbs, local.span), data, "what is posted is left alone"),
            }
            // It may be used again.
            seat.verbs.poke_bytes(local.span.addr, &vec![0xee; local.span.len]);
            continue;
        };
        let index = completion.work as usize;
        if let Some(by) = seat.verbs.received_in(completion.work) {
            seat.buffers[index] = by;
            seat.exchanged += 1;
        }
        let (data, written) = seat.expected[from].pop_front().expect("a message was sent");
        assert_eq!(
            bytes(&seat.verbs, seat.buffers[index].span.part(0, len)),
            data,
            "in order, whole and once"
        );
        if let Some(byte) = written {
            let there = bytes(&seat.verbs, seat.windows[from].span.part(0, 1))[0];
            let ahead = there.wrapping_sub(byte);
            assert!(ahead < 128, "the write before the message is placed, or a later one: {there}, {byte}");
        }
        seat.idle_buffers.push(index);
        seat.came += 1;
    }
    assert_eq!(seat.verbs.check(), Ok(()));
    let _ = seat.verbs.idle(random.below(40) as u32);
}

fn is_over(seats: &[Seat]) -> bool {
    seats.iter().all(|seat| seat.out.is_empty() && seat.expected.iter().all(VecDeque::is_empty))
}

/// A run: what was posted arrives. How often connections began and ended, and how many messages came with a buffer.
fn run(seed: u64, loss: usize, settings: &Settings) -> [u32; 3] {
    let shared = net(seed, loss);
    let mut seats = seats(&shared, settings);
    let (mut random, mut count) = (Random::new(seed), 0);
    for round in 0..2_000_000 {
        // Bursts, with pauses between them in which connections become idle.
        if round < 4000 && round % 1000 < 600 && random.one_in(2) {
            post(&mut seats, &mut random, &mut count);
        }
        let at = random.below(RANKS);
        look(&mut seats[at], &mut random);
        for _ in 0..random.below(4) {
            shared.get().step();
        }
        if round > 6000 && is_over(&seats) {
            break;
        }
    }
    for (me, seat) in seats.iter().enumerate() {
        let state = seat.verbs.describe();
        assert!(
            seat.out.is_empty(),
            "seed {seed}, loss {loss}: rank {me} waits for {}\n{state}",
            seat.out.len()
        );
        let missing: Vec<usize> = seat.expected.iter().map(VecDeque::len).collect();
        assert!(missing.iter().all(|len| *len == 0), "seed {seed}: rank {me} misses {missing:?}");
        assert!(seat.came > 10);
    }
    let used = || seats.iter().flat_map(|seat| seat.verbs.standings().map(|standing| standing.used));
    if loss > 0 {
        assert!(seats.iter().any(|seat| seat.verbs.resent() > 0), "seed {seed}");
    }
    let limit = settings.connections;
    for seat in &seats {
        assert!(seat.verbs.standings().filter(|standing| standing.is_connected).count() <= limit);
    }
    let exchanged = seats.iter().map(|seat| seat.exchanged).sum();
    [used().map(|used| used.begun).sum(), used().map(|used| used.ended).sum(), exchanged]
}

fn seeds() -> u64 {
    std::env::var("TERN_NET_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(12)
}

#[test]
fn everything_comes_once_and_in_order_by_datagrams_alone() {
    for seed in 1..=seeds() {
        for loss in [0, 50, 10, 3] {
            let settings = Settings { packets: 24, buffers: 12, ..Settings::default() };
            assert_eq!(run(seed, loss, &settings), [0; 3]);
        }
    }
}

#[test]
fn connections_come_and_go_and_nothing_overtakes() {
    let mut sums = [0; 3];
    for seed in 1..=seeds() {
        for (loss, connections) in [(0, 2), (10, 2), (10, 1), (3, 1)] {
            let settings = Settings {
                packets: 24,
                buffers: 12,
                message_bytes: LONGEST,
                connections,
                earned_messages: 5,
                idle_ns: 300_000,
                ..Settings::default()
            };
            let counts = run(seed, loss, &settings);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    assert!(
        sums.iter().all(|sum| *sum > 10),
        "connections that began, that ended, messages with a buffer: {sums:?}"
    );
}

/// Who sends from time to time and does not look around in between: a post that is held up looks for acknowledgements,
/// so messages do not wait for the next look of the sender.
#[test]
fn what_is_posted_without_a_look_in_between_arrives() {
    let shared = net(1, 0);
    let settings = Settings { packets: 24, buffers: 12, ..Settings::default() };
    let (mut seats, mut random) = (seats(&shared, &settings), Random::new(1));
    for count in 0..100 {
        let (local, work) = seats[0].fill(1, vec![count; 60]);
        assert_eq!(seats[0].verbs.post_send(1, 0, &[local], work), Ok(true), "message {count}");
        seats[1].expected[0].push_back((vec![count; 60], None));
        for _ in 0..60 {
            look(&mut seats[1], &mut random);
            shared.get().step();
        }
        assert_eq!(seats[1].came, usize::from(count) + 1, "{}", seats[0].verbs.describe());
    }
}

/// The receiver takes in the first part of what begins on a quiet way while the sender cuts the rest; what stands behind it is in its way already.
#[test]
fn what_begins_on_a_quiet_way_leaves_before_all_of_it_is_cut() {
    let shared = net(1, 0);
    shared.get().caps.datagram_bytes = 9000;
    let verbs = &mut seats(&shared, &Settings::default())[0].verbs;
    let mine = memory(verbs, 60_000);
    let short = Local { span: mine.span.part(0, 20_000), key: mine.key };
    let mut flushes = |what: Local, to, work| {
        let before = shared.get().flushes;
        assert_eq!(verbs.post_send(to, 0, &[what], work), Ok(true));
        shared.get().flushes - before
    };
    assert_eq!([flushes(mine, 1, 1), flushes(mine, 1, 2), flushes(short, 2, 3)], [1, 0, 0]);
}

/// A peer that is lost: all that is under way with it ends with the reason, so does what is posted later, and the memory that
/// it held serves the others.
#[test]
fn what_is_under_way_with_a_lost_peer_ends() {
    let shared = net(1, 1); // every datagram is lost
    let settings = Settings { packets: 4, buffers: 12, ..Settings::default() };
    let mut seats = seats(&shared, &settings);
    let verbs = &mut seats[0].verbs;
    let mine = memory(verbs, 3000);
    let remote = Remote { addr: 64, key: 1 };
    assert_eq!(verbs.post_read(1, 0, mine, remote, 1), Ok(true));
    for work in 2..6 {
        assert_eq!(verbs.post_write(1, 0, &[mine], remote, work), Ok(true));
        assert_eq!(verbs.post_send(1, 0, &[mine], work + 10), Ok(true));
    }
    let told = |verbs: &mut Reliable<Adapter>| {
        let mut ended = Vec::new();
        for round in 0..200 {
            while let Some(completion) = verbs.poll() {
                ended.push(completion);
            }
            let _ = verbs.idle(round);
            shared.get().step();
        }
        ended
    };
    let before = told(verbs);
    assert!(before.len() < 9 && before.iter().all(|ended| ended.result.is_ok()), "{before:?}");
    shared.get().lost.push((0, 1));
    let (rank, why) = verbs.take_lost().unwrap();
    assert_eq!((rank, why.lost_peer(), verbs.take_lost()), (1, Some(1), None));
    let after = told(verbs);
    assert_eq!(before.len() + after.len(), 9, "all ends, once: {before:?} {after:?}");
    assert!(after.iter().all(|ended| ended.result.as_ref() == Err(&why)));
    assert_eq!(verbs.post_send(1, 0, &[mine], 30), Err(why.clone()));
    assert_eq!(verbs.post_read(1, 0, mine, remote, 31), Err(why));
    assert!(!verbs.owes());
    shared.get().loses_one_in = 0;
    for work in 40..60 {
        assert_eq!(
            verbs.post_send(2, 0, &[mine.span.part(0, 8)].map(|span| Local { span, key: mine.key }), work),
            Ok(true)
        );
    }
    let mut ended = 0;
    for round in 0..20_000 {
        for at in [0, 2] {
            while let Some(completion) = seats[at].verbs.poll() {
                assert_eq!(completion.result, Ok(()));
                ended += usize::from(at == 0);
            }
            let _ = seats[at].verbs.idle(round % 40);
        }
        if let Some(index) = seats[2].idle_buffers.pop() {
            let buffer = seats[2].buffers[index];
            (0..6).for_each(|_| seats[2].verbs.post_receive(0, buffer, 7));
        }
        shared.get().step();
    }
    assert_eq!(ended, 20, "{}", seats[0].verbs.describe());
}
