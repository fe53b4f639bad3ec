//! What goes wrong on the way: streams of real work, changed at random places, from fixed seeds. With CRCs
//! nothing but the beginning of what was sent is ever told to have come; without them still nothing
//! is touched that is not open, and everything posted completes once.

mod pair;

use pair::{BASE, DOMAIN, Host, settings, settle};
use rnic::stack::*;

const OPEN: (u64, u64) = (BASE + 0x2000, 0x1000);
const SINK: (u64, u64) = (BASE + 0x3000, 0x1000);
const BUFFERS: (u64, u64) = (BASE + 0x4000, 0x1000);

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
}

/// Both sides, with the same work in each run of a seed.
fn scenario(seed: u64, crc: bool, markers: bool) -> [Host; 2] {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let proposal = Proposal { crc, markers, ird: 2, ord: 2, ..Proposal::default() };
    let (here, there) = settings(&proposal, &proposal);
    let mut hosts = [here, there].map(|settings| Host::new(Settings { segment_max: 256, ..settings }));
    let mut tags = [[0; 2]; 2];
    for (host, tags) in hosts.iter_mut().zip(&mut tags) {
        assert!(host.regions.deregister(host.stag));
        let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC;
        tags[0] = host.regions.register(OPEN.0, OPEN.1, rights, DOMAIN).unwrap();
        tags[1] = host.regions.register(SINK.0, SINK.1, Rights::LOCAL_WRITE, DOMAIN).unwrap();
        for at in 0..8 {
            host.memory.buffers.push_back((BUFFERS.0 + at * 0x200, 0x200));
        }
    }
    for at in 0..2 {
        for id in 0..8 {
            let (len, to) = (random.below(400) as u32, OPEN.0 + 8 * random.below(64) as u64);
            let (stag, sink_stag) = (tags[1 - at][0], tags[at][1]);
            let work = match random.below(4) {
                0 => Work::Send { len, solicited: len % 2 == 0, invalidate: None },
                1 => Work::Write { len, stag, to, immediate: (len % 2 == 0).then_some((5, false)) },
                2 => Work::Read { len, sink_stag, sink_to: SINK.0 + id * 8, stag, to },
                _ => Work::Atomic { stag, to, atomic: Atomic::FetchAdd { add: 3, mask: 0 } },
            };
            assert!(hosts[at].post(id, BASE + id, work));
        }
    }
    hosts
}

/// What the other side sends to the first when all goes well, and what the first then tells.
fn recorded(seed: u64, crc: bool, markers: bool) -> (Vec<u8>, Vec<Arrived>, Vec<Completion>) {
    let [mut one, mut other] = scenario(seed, crc, markers);
    let mut stream = Vec::new();
    loop {
        while one.cut() {}
        pair::carry(&mut one, &mut other, usize::MAX);
        while other.cut() {}
        stream.extend(&other.out);
        if pair::carry(&mut other, &mut one, usize::MAX) == 0 && one.out.is_empty() {
            break;
        }
    }
    settle(&mut one, &mut other);
    assert_eq!((one.connection.failure(), one.done.len()), (None, 8), "seed {seed}");
    (stream, one.memory.arrived, one.done)
}

fn change(stream: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(stream.len());
    let len = 1 + random.below(24.min(stream.len() - at));
    match random.below(6) {
        0 => stream[at] ^= 1 << random.below(8),
        1 => stream[at..at + len].fill(random.below(256) as u8),
        2 => drop(stream.drain(at..at + len)),
        3 => {
            let again = stream[at..at + len].to_vec();
            stream.splice(at..at, again);
        }
        4 => stream.truncate(at),
        _ => stream[at..].rotate_left(len),
    }
}

fn replay(stream: &[u8], random: &mut Random, host: &mut Host) {
    let mut rest = stream;
    while !rest.is_empty() {
        while host.cut() {}
        host.connection.written(host.out.len());
        host.out.clear();
        let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(700)));
        host.feed(piece);
        rest = behind;
    }
    host.connection.closed();
    host.poll();
}

#[test]
fn nothing_wrong_is_told_and_nothing_closed_is_touched() {
    const SEEDS: u64 = 40;
    const CHANGES: u64 = 50;
    let mut survived = 0;
    for seed in 0..SEEDS {
        let (crc, markers) = (seed % 2 == 0, seed % 5 == 0);
        let (stream, arrived, done) = recorded(seed, crc, markers);
        for round in 0..CHANGES {
            let mut random = Random((seed * CHANGES + round) * 0x1234_5677 + 9);
            let mut changed = stream.clone();
            change(&mut changed, &mut random);
            let [mut one, _] = scenario(seed, crc, markers);
            one.memory.straight = round % 4 == 0;
            replay(&changed, &mut random, &mut one);
            let name = format!("seed {seed}, round {round}");
            survived += u64::from(one.connection.failure() == Some(&Failure::Closed));
            for (addr, len) in &one.memory.placed {
                let inside = |(base, size): (u64, u64)| *addr >= base && addr + *len as u64 <= base + size;
                assert!([OPEN, SINK, BUFFERS].into_iter().any(inside), "{name}: {len} bytes at {addr:x}");
            }
            let ids: Vec<u64> = one.done.iter().map(|done| done.id).collect();
            assert_eq!(ids, (0..8).collect::<Vec<_>>(), "{name}");
            if crc {
                assert!(arrived.starts_with(&one.memory.arrived), "{name}");
                let ended = one.done.iter().take_while(|done| done.result.is_ok()).count();
                assert_eq!(one.done[..ended], done[..ended], "{name}");
            }
        }
    }
    assert!(survived < SEEDS * CHANGES, "no change was noticed");
}
