//! Reliable datagrams over networks that lose, double, delay and change them: in virtual time, from seeds.

mod net;

use net::{BASE, Faults, Link, Net, Random};
use rnic::stack::*;
use std::collections::HashMap;

const MEMORY: usize = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const FAST: Link = Link { delay_ns: 10_000, ns_per_byte: 0.8, queue_bytes: 400_000 };

fn send(len: u32) -> Work {
    Work::Send { len, solicited: false, invalidate: None }
}

/// A network of two, and buffers for messages at the upper half of memory.
fn two(way: Link, faults: Faults, seed: u64, datagram_max: usize, first: u32) -> Net {
    let mut net = Net::new(2, MEMORY, way, faults, seed);
    net.join(0, 1, datagram_max, first);
    net
}

#[test]
fn bytes_pass() {
    for (loss, len) in [(0, 100), (0, 300_000), (100_000, 300_000)] {
        let mut net = two(FAST, Faults { loss, ..Faults::default() }, 1, 1472, 0);
        net.hosts[0].at(BASE, len).iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        net.hosts[1].buffers.push_back((BASE, len));
        assert!(net.hosts[0].post(1, 5, BASE, send(len as u32)));
        net.until(10 * SECOND, |net| net.hosts[1].arrived.len() == 1 && net.hosts[0].done.len() == 1);
        assert!(net.hosts[0].memory[..len] == net.hosts[1].memory[..len]);
    }
}

/// One side's script: what it posts, and what has to have come of it in the end.
struct Script {
    left: Vec<Work>,
    posted: u64,
    sends: Vec<u32>,
}

/// A fourth of memory.
const PART: u64 = (MEMORY / 4) as u64;

fn script(random: &mut Random) -> Script {
    let lens = [0, 1, 8, 300, 1472, 5000, 40_000];
    let left = (0..60).map(|_| {
        let len = lens[random.below(lens.len() as u64) as usize] as u32;
        let (stag, at) = (0x101, random.below(PART - 40_000));
        match random.below(4) {
            0 => Work::Write { len, stag, to: BASE + PART + at, immediate: None },
            1 => Work::Read { len, sink_stag: stag, sink_to: BASE + 2 * PART + at, stag, to: BASE + at },
            2 => Work::Atomic { stag, to: BASE + PART - 8, atomic: Atomic::FetchAdd { add: 0, mask: 0 } },
            _ => send(len),
        }
    });
    Script { left: left.collect(), posted: 0, sends: Vec::new() }
}

/// Random work in both directions at once: each message once, in order, with its bytes; what was written before a message is
/// there; what was read is right; each completion once and in order.
fn exchange(faults: Faults, seed: u64) -> u64 {
    let mut random = Random(seed);
    let datagram_max = [600, 1472, 8972, 65_507][random.below(4) as usize];
    let first = [0, u32::MAX - 20][random.below(2) as usize];
    let mut net = two(FAST, faults, seed, datagram_max, first);
    // Parts of memory: 0 what is sent and read, 1 where it is written, 2 where reads go, 3 receive buffers.
    for host in &mut net.hosts {
        let stag = host.stag;
        assert_eq!(stag, 0x101);
        host.at(BASE, PART as usize)
            .iter_mut()
            .enumerate()
            .for_each(|(at, byte)| *byte = (at * 7 + at / 251) as u8);
    }
    let mut scripts = [script(&mut random), script(&mut random)];
    let mut written: [HashMap<u64, u8>; 2] = Default::default();
    let end = net.now + 100 * SECOND;
    loop {
        for (me, script) in scripts.iter_mut().enumerate() {
            let host = &mut net.hosts[me];
            if random.below(3) == 0 && host.buffers.len() < 2 {
                let slot = random.below(PART / 40_000);
                // Buffers are not looked at behind their use: messages are checked by length, contents by reads and writes.
                host.buffers.push_back((BASE + 3 * PART + slot * 40_000, 40_000));
            }
            if random.below(2) == 0
                && let Some(work) = script.left.pop()
            {
                let from = BASE + random.below(PART - 40_000);
                assert!(host.post(1 - me, script.posted, from, work));
                script.posted += 1;
                match work {
                    Work::Send { len, .. } => script.sends.push(len),
                    Work::Write { len, to, .. } => {
                        let bytes = net.hosts[me].at(from, len as usize).to_vec();
                        bytes.iter().enumerate().for_each(|(at, byte)| {
                            written[1 - me].insert(to + at as u64, *byte);
                        });
                    }
                    _ => {}
                }
            }
        }
        let is_over = (0..2).all(|me| {
            scripts[me].left.is_empty()
                && net.hosts[me].done.len() as u64 == scripts[me].posted
                && net.hosts[1 - me].arrived.len() == scripts[me].sends.len()
        });
        if is_over {
            break;
        }
        if !net.step() {
            net.now += 1000;
        }
        assert!(net.now < end, "seed {seed}, {faults:?}: nothing goes on");
    }
    check(&mut net, &scripts, &written, seed);
    net.hosts[0].pairs[&1].resent() + net.hosts[1].pairs[&0].resent()
}

/// Messages in order, completions in order, bytes where they were written, and what was read.
fn check(net: &mut Net, scripts: &[Script], written: &[HashMap<u64, u8>; 2], seed: u64) {
    for me in 0..2 {
        let lens: Vec<u32> = net.hosts[1 - me].arrived.iter().map(|arrived| arrived.len).collect();
        assert_eq!(lens, scripts[me].sends, "seed {seed}");
        let ids: Vec<u64> = net.hosts[me].done.iter().map(|(_, done)| done.id).collect();
        assert!(ids.iter().copied().eq(0..scripts[me].posted), "seed {seed}: {ids:?}");
        assert!(net.hosts[me].done.iter().all(|(_, done)| done.result.is_ok()), "seed {seed}");
        for (addr, byte) in &written[me] {
            assert_eq!(net.hosts[me].at(*addr, 1)[0], *byte, "seed {seed}, {addr:x}");
        }
        let reads = net.hosts[me].memory[2 * PART as usize..3 * PART as usize].to_vec();
        let right = net.hosts[1 - me].memory[..PART as usize].to_vec();
        assert!(reads.iter().zip(&right).all(|(read, right)| *read == 0 || read == right), "seed {seed}");
    }
}

fn seeds() -> u64 {
    std::env::var("TERN_NET_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

#[test]
fn everything_once_and_in_order_whatever_the_network_does() {
    let mut resent = 0;
    for seed in 0..seeds() {
        for loss in [1_000, 10_000, 100_000] {
            let faults = Faults { loss, doubled: 20_000, overtaken: 50_000, changed: 10_000 };
            resent += exchange(faults, seed);
        }
    }
    assert!(resent > 100, "the network has done nothing");
}

/// Without faults nothing is sent twice, and what a message costs in datagrams is what it must.
#[test]
fn a_quiet_network_carries_nothing_twice() {
    for seed in 0..10 {
        assert_eq!(exchange(Faults::default(), seed), 0, "seed {seed}");
    }
}

/// Senders through the one port of a receiver: nobody starves, and what the port carries twice is little.
fn through_one_port(senders: usize, bytes: u32, way: Link) -> (u64, Vec<u64>) {
    const PART: u64 = 1 << 19;
    let mut net = Net::new(senders + 1, (senders + 1) * PART as usize, way, Faults::default(), 1);
    for sender in 1..=senders {
        net.join(0, sender, 1472, 0);
        let to = BASE + sender as u64 * PART;
        net.hosts[sender].at(BASE, bytes as usize).fill(sender as u8);
        for id in 0..4 {
            let stag = net.hosts[0].stag;
            assert!(net.hosts[sender].post(
                0,
                id,
                BASE,
                Work::Write { len: bytes, stag, to, immediate: None }
            ));
        }
    }
    let mut ended = vec![0; senders];
    let begin = net.now;
    while ended.contains(&0) {
        let goes_on = net.step();
        for (at, ended) in ended.iter_mut().enumerate() {
            if *ended == 0 && net.hosts[at + 1].done.len() == 4 {
                *ended = net.now - begin;
            }
        }
        assert!((goes_on || !ended.contains(&0)) && net.now < begin + 100 * SECOND, "{ended:?}");
    }
    for sender in 1..=senders {
        let at = BASE + sender as u64 * PART;
        assert!(net.hosts[0].at(at, bytes as usize).iter().all(|byte| *byte == sender as u8));
    }
    (net.now - begin, ended)
}

/// Sixteen senders whose first windows alone overflow the port: without short timers or a window that narrows this stands
/// still for most of its time (incast collapse).
#[test]
fn incast_of_sixteen_does_not_collapse() {
    let bytes = 256 << 10;
    for queue_bytes in [64_000, 400_000] {
        let way = Link { delay_ns: 10_000, ns_per_byte: 0.8, queue_bytes };
        let (took_ns, _) = through_one_port(16, bytes, way);
        let least_ns = 16.0 * 4.0 * f64::from(bytes) * way.ns_per_byte;
        assert!(took_ns as f64 <= 2.5 * least_ns, "{queue_bytes}: {took_ns} ns, {least_ns} at best");
    }
}

/// Equal senders end at about the same time.
#[test]
fn equal_senders_share_a_port() {
    let (took_ns, ended) =
        through_one_port(2, 400 << 10, Link { delay_ns: 50_000, ns_per_byte: 8.0, queue_bytes: 64_000 });
    let first = *ended.iter().min().unwrap();
    assert!(first as f64 > 0.6 * took_ns as f64, "{ended:?}");
}

/// A stream of messages leaves in datagrams of nearly one length, whatever that of the messages, and several are acknowledged when the driver says that
/// nothing more has come, not before: till then an answer may take that with it.
#[test]
fn messages_share_datagrams_and_an_answer_acknowledges_them() {
    for len in [300, 2000, 4096] {
        let mut net = two(FAST, Faults::default(), 1, 1472, 0);
        net.hosts[1].buffers.extend((0..50).map(|at| (BASE + at * 5000, 5000)));
        (0..40).for_each(|id| assert!(net.hosts[0].post(1, id, BASE, send(len))));
        let datagrams: Vec<_> = std::iter::from_fn(|| net.hosts[0].transmit(1, 1)).take(8).collect();
        assert!(datagrams.len() == 8, "{} of {len}", datagrams.len());
        let lens: Vec<usize> = datagrams.iter().map(Vec::len).collect();
        let most = lens.iter().max().unwrap();
        assert!(lens.iter().all(|len| len + len / 16 >= *most), "{lens:?}");
        for datagram in &datagrams {
            assert!(net.hosts[1].receive(2, 0, datagram));
            assert_eq!(net.hosts[1].transmit(2, 0), None, "{len}");
        }
        let pair = net.hosts[1].pairs.get_mut(&0).unwrap();
        assert!(pair.owes_answer() && pair.hurry());
        assert!(net.hosts[1].transmit(2, 0).is_some());
        assert!(!net.hosts[1].pairs[&0].owes_answer());
    }
}

/// A peer that computes answers nothing: what was sent again meanwhile is little, and then all goes on at once.
#[test]
fn a_peer_that_computes_costs_little() {
    let mut net = two(FAST, Faults::default(), 1, 1472, 0);
    net.hosts[1].busy_until = 10 * SECOND;
    net.hosts[1].buffers.extend((0..50).map(|at| (BASE + at * 2000, 1000)));
    (0..50).for_each(|id| assert!(net.hosts[0].post(1, id, BASE, send(1000))));
    net.until(11 * SECOND, |net| net.hosts[1].arrived.len() == 50 && net.hosts[0].done.len() == 50);
    let resent = net.hosts[0].pairs[&1].resent();
    assert!((1..100).contains(&resent), "{resent}");
    assert!(net.now < 10 * SECOND + SECOND, "{}", net.now);
}

/// A cable that is cut for a while, in the middle of everything.
#[test]
fn a_cut_is_survived() {
    let mut net = two(FAST, Faults::default(), 1, 1472, 0);
    net.hosts[1].buffers.extend((0..200).map(|at| (BASE + at * 5000, 5000)));
    (0..200).for_each(|id| assert!(net.hosts[0].post(1, id, BASE, send(5000))));
    net.until(SECOND, |net| net.hosts[1].arrived.len() > 20);
    net.faults.loss = 1_000_000;
    let cut = net.now;
    while net.now < cut + SECOND / 10 {
        net.step();
    }
    net.faults.loss = 0;
    net.until(SECOND, |net| net.hosts[1].arrived.len() == 200 && net.hosts[0].done.len() == 200);
}

/// Both leave under losses: who has left is not waited for, and nothing that was posted is lost.
#[test]
fn both_leave() {
    for seed in 0..100 {
        let mut net = two(FAST, Faults { loss: 100_000, ..Faults::default() }, seed, 1472, 0);
        for me in 0..2 {
            net.hosts[me].buffers.extend((0..10).map(|at| (BASE + at * 2000, 2000)));
            (0..10).for_each(|id| assert!(net.hosts[me].post(1 - me, id, BASE, send(2000))));
        }
        net.until(SECOND, |net| net.hosts.iter().all(|host| host.arrived.len() == 10));
        let now = net.now;
        (0..2).for_each(|me| net.hosts[me].pairs.get_mut(&(1 - me)).unwrap().leave(now));
        net.until(10 * SECOND, |net| (0..2).all(|me| net.hosts[me].pairs[&(1 - me)].has_left()));
        assert!(
            net.hosts.iter().all(|host| host.done.iter().all(|(_, done)| done.result.is_ok())),
            "seed {seed}"
        );
    }
}

/// What one pair carries over 10 Gbit/s and 100 µs there and back, of which so many millionths are lost: bytes per nanosecond.
fn goodput(loss: u64, seed: u64) -> f64 {
    const WRITE: u32 = 256 << 10;
    const WRITES: u64 = 64;
    let way = Link { delay_ns: 50_000, ns_per_byte: 0.8, queue_bytes: 400_000 };
    let mut net = two(way, Faults { loss, ..Faults::default() }, seed, 1472, 0);
    let stag = net.hosts[1].stag;
    for id in 0..WRITES {
        let to = BASE + id % 4 * u64::from(WRITE);
        assert!(net.hosts[0].post(1, id, BASE, Work::Write { len: WRITE, stag, to, immediate: None }));
    }
    let begin = net.now;
    net.until(1000 * SECOND, |net| net.hosts[0].done.len() as u64 == WRITES);
    (WRITES * u64::from(WRITE)) as f64 / (net.now - begin) as f64
}

/// Beside what TCP gets where it is Reno and nothing else limits it (Mathis et al., CCR 1997: MSS / RTT · 1.22 / √p, without
/// delayed acknowledgements): no less, for losses without a queue take less of the window than half. Where 10 % are lost most
/// windows end by a timer, which the formula leaves out.
#[test]
fn goodput_under_losses_is_no_less_than_that_of_reno() {
    for (loss, least) in [(0, 0.9), (1_000, 1.0), (10_000, 1.0), (100_000, 0.5)] {
        let p = loss as f64 / 1e6;
        let reno = (1400.0 / 100_000.0 * 1.22 / p.sqrt()).min(1.0 / 0.8);
        let seeds = 4;
        let got = (0..seeds).map(|seed| goodput(loss, seed)).sum::<f64>() / seeds as f64;
        println!("{:5.1} % lost: {:6.3} Gbit/s, Reno's model {:6.3}", 100.0 * p, 8.0 * got, 8.0 * reno);
        assert!(got >= least * reno, "{loss}: {got} beside {reno} bytes per ns");
    }
}
