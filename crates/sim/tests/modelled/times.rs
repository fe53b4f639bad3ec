//! Times of the model against times computed by hand, on a cluster of round numbers.

use crate::support::*;
use fabric::{Charge, Done, Nap, Rights, Span, Verbs};
use sim::{Cluster, Nic, run};

/// Runs on two hosts, one rank each, and gives what both measured.
fn pair<R: 'static>(
    cluster: &Cluster,
    body: impl Fn(&mut Nic<'_>, &Memory, &Board) -> R + 'static,
) -> Vec<R> {
    let mut cluster = cluster.clone();
    cluster.cores = 1;
    jobs(&cluster, 2, body)
}

fn jobs<R: 'static>(
    cluster: &Cluster,
    ranks: usize,
    body: impl Fn(&mut Nic<'_>, &Memory, &Board) -> R + 'static,
) -> Vec<R> {
    let board = Board::new(ranks);
    let report = run(cluster, ranks, 1, move |mut nic| {
        let memory = Memory::new(&mut nic, 0, 256 << 10);
        board.publish(&mut nic, &memory);
        let value = body(&mut nic, &memory, &board);
        // Passive ranks keep their memory until the others are done with it.
        sleep_until(&mut nic, 1000 * START_NS);
        value
    });
    report.unwrap().all().unwrap()
}

#[test]
fn an_inline_write_takes_overhead_latency_and_bytes() {
    let times = pair(&plain(), |nic, memory, board| {
        if nic.me() == 0 {
            nic.store(memory.addr(0), 7);
            assert!(nic.post_write(1, 0, &[inline(memory.addr(0), 8)], board.at(1, 64), 1).unwrap());
            // The payload is in the work request: the memory may change at once.
            nic.store(memory.addr(0), 8);
            assert_eq!(completion(nic).done, Done::Written);
        } else {
            until(nic, memory.addr(64), 7);
        }
        nic.now_ns() - START_NS
    });
    // Posting 100 + 8 bytes at 1 B/ns, latency 1000, 8 bytes; then the acknowledgement and fetching it.
    // The sender has looked once in vain: that took 1, while it waited anyhow.
    assert_eq!(times, [100 + 8 + 1000 + 8 + 1000 + 50, 100 + 8 + 1000 + 8]);
}

#[test]
fn a_ping_pong_of_small_writes_is_the_same_each_time() {
    let times = pair(&plain(), |nic, memory, board| {
        let (me, peer) = (nic.me(), 1 - nic.me());
        for round in 1..=100 {
            if me == 1 {
                until(nic, memory.addr(64), round);
            }
            nic.store(memory.addr(0), round);
            while !nic.post_write(peer, 0, &[inline(memory.addr(0), 8)], board.at(peer, 64), 1).unwrap() {
                completion(nic);
            }
            if me == 0 {
                until(nic, memory.addr(64), round);
            }
        }
        nic.now_ns() - START_NS
    });
    // Each way 1116; the queue of 16 is full from round 17 on, and fetching a completion takes 50.
    assert_eq!(times[0], 200 * 1116 + 84 * 2 * 50);
}

#[test]
fn longer_messages_are_fetched_and_move_with_the_bandwidth_of_the_link() {
    let times = pair(&plain(), |nic, memory, board| {
        let len = 100_000;
        if nic.me() == 0 {
            nic.store(memory.addr(len - 8), 9);
            let parts = [memory.part(0, 50_000), memory.part(50_000, 50_000)];
            assert!(nic.post_write(1, 0, &parts, board.at(1, 0), 1).unwrap());
            completion(nic);
        } else {
            until(nic, memory.addr(len - 8), 9);
        }
        nic.now_ns() - START_NS
    });
    assert_eq!(times[1], 100 + 300 + 10 + 1000 + 100_000);
}

/// Time for `count` writes of `len` from rank 0, and at the same time from rank 1 if `both`.
fn stream(cluster: &Cluster, count: usize, len: usize, both: bool) -> u64 {
    let times = pair(cluster, move |nic, memory, board| {
        let peer = 1 - nic.me();
        let (mut posted, mut ended) = (0, 0);
        let count = if nic.me() == 0 || both { count } else { 0 };
        while ended < count {
            while posted < count
                && nic.post_write(peer, 0, &[memory.part(0, len)], board.at(peer, 0), 1).unwrap()
            {
                posted += 1;
            }
            completion(nic).result.unwrap();
            ended += 1;
        }
        nic.now_ns() - START_NS
    });
    times.into_iter().max().unwrap()
}

#[test]
fn a_stream_reaches_the_bandwidth_or_the_gap() {
    let long = stream(&plain(), 200, 20_000, false);
    assert_eq!(long, 100 + 300 + 200 * 20_000 + 1000 + 1000 + 50);
    let short = stream(&plain(), 200, 100, false);
    assert!((200 * 200..200 * 200 + 3000).contains(&short), "{short}");
}

#[test]
fn both_ways_are_free_of_each_other_unless_the_bus_is_shared() {
    let both = stream(&plain(), 200, 20_000, true);
    assert!((4_000_000..4_020_000).contains(&both), "{both}");
    let shared = stream(&cluster(("gap_ns", "bus_mb_s = 1250\ngap_ns")), 200, 20_000, true);
    assert!((6_400_000..6_440_000).contains(&shared), "{shared}: 8 MB at 1.25 B/ns");
}

#[test]
fn two_rails_carry_twice() {
    let rail = "[[rails]]\nlatency_ns = 1000\nbandwidth_mb_s = 1000\ngap_ns = 200\npost_ns = 100\npoll_ns = 50\ninline_bytes = 0\n\
                fetch_ns = 300\ngather_ns = 10\ndepth = 16\nretry_ns = 1000\n";
    let cluster = cluster(("[local]", &format!("{rail}\n[local]")));
    let times = pair(&cluster, |nic, memory, board| {
        let region = nic.register(1, memory.local.span, Rights::ALL).unwrap();
        sleep_until(nic, 2 * START_NS);
        if nic.me() == 0 {
            let other = region.local(memory.local.span.part(0, 100_000));
            // Rank 1 has registered in the same order: its keys are the same.
            let remote = fabric::Remote { key: region.remote, ..board.at(1, 100_000) };
            assert!(nic.post_write(1, 0, &[memory.part(0, 100_000)], board.at(1, 0), 1).unwrap());
            assert!(nic.post_write(1, 1, &[other], remote, 2).unwrap());
            completion(nic).result.unwrap();
            completion(nic).result.unwrap();
        }
        nic.now_ns() - 2 * START_NS
    });
    assert_eq!(times[0], 100 + 100 + 300 + 100_000 + 2000 + 50);
}

#[test]
fn senders_to_one_host_share_its_link_and_ranks_of_one_host_do_not_use_it() {
    let times = jobs(&plain(), 5, |nic, memory, board| {
        // Ranks 2 and 4, on other hosts, write to rank 0; so does its neighbour.
        let me = nic.me();
        if matches!(me, 1 | 2 | 4) {
            assert!(nic.post_write(0, 0, &[memory.part(0, 50_000)], board.at(0, me * 50_000), 1).unwrap());
            completion(nic).result.unwrap();
        }
        nic.now_ns() - START_NS
    });
    assert_eq!(times[1], 100 + 100 + 25_000 + 100 + 50);
    let (mut first, mut second) = (times[2], times[4]);
    if first > second {
        (first, second) = (second, first);
    }
    assert_eq!(first, 100 + 300 + 1000 + 50_000 + 1000 + 50);
    assert_eq!(second, first + 50_000);
}

#[test]
fn a_read_asks_and_gets() {
    // Fetched here (the work request) and there (the data); the request occupies the other adapter for no time.
    let ns = 100 + 300 + 1000 + 300 + 1000 + 10_000 + 50;
    assert_eq!(read_ns(&plain()), ns);
    assert_eq!(read_ns(&cluster(("gap_ns", "serve_ns = 700\ngap_ns"))), ns + 700);
}

/// What it takes to read 10,000 bytes.
fn read_ns(cluster: &Cluster) -> u64 {
    let times = pair(cluster, |nic, memory, board| {
        nic.store(memory.addr(0), nic.me() as u64 + 40);
        sleep_until(nic, 2 * START_NS);
        if nic.me() == 0 {
            let local = memory.part(4096, 10_000);
            assert!(nic.post_read(1, 0, local, board.at(1, 0), 5).unwrap());
            let end = completion(nic);
            assert_eq!((end.work, end.done, end.result), (5, Done::Read, Ok(())));
            assert_eq!(nic.load(memory.addr(4096)), 41);
        }
        nic.now_ns() - 2 * START_NS
    });
    times[0]
}

#[test]
fn registration_and_copies_cost_what_the_file_says() {
    run(&plain(), 1, 0, |mut nic| {
        let since = |nic: &Nic<'_>, start: u64| nic.now_ns() - start;
        let span = nic.allocate(40_000);
        let start = nic.now_ns();
        let region = nic.register(0, span, Rights::ALL).unwrap();
        assert_eq!(since(&nic, start), 5000 + 10 * 250);
        nic.deregister(0, region);
        assert_eq!(since(&nic, start), 7500 + 1000 + 10 * 50);
        let start = nic.now_ns();
        nic.copy(span.addr + 20_000, span.addr, 1000);
        assert_eq!(since(&nic, start), 10 + 100);
        // Four blocks of 4000 bytes in a row are one copy that has left the first level.
        let start = nic.now_ns();
        for block in 0..4 {
            nic.copy(span.addr + 20_000 + block * 4000, span.addr + block * 4000, 4000);
        }
        assert_eq!(since(&nic, start), 4 * 10 + 400 + 3 * 800);
        let start = nic.now_ns();
        nic.charge(Charge::Compute(500));
        nic.charge(Charge::Header);
        nic.charge(Charge::UsageSearch(3));
        nic.charge(Charge::Match(4));
        assert_eq!(since(&nic, start), 500 + 10 + 60 + 20);
    })
    .unwrap()
    .all()
    .unwrap();
}

#[test]
fn long_writes_can_be_consumed_while_they_land() {
    let times = pair(&plain(), |nic, memory, board| {
        let (len, block) = (64 << 10, 4096);
        if nic.me() == 0 {
            for at in 0..16 {
                nic.store(memory.addr(at * block + block - 8), at as u64 + 1);
            }
            assert!(nic.post_write(1, 0, &[memory.part(0, len)], board.at(1, 0), 1).unwrap());
            completion(nic);
            return Vec::new();
        }
        let mut times = Vec::new();
        for at in 0..16 {
            assert_eq!(nic.load(memory.addr(at * block + block - 8)), 0);
            until(nic, memory.addr(at * block + block - 8), at as u64 + 1);
            times.push(nic.now_ns() - START_NS);
        }
        times
    });
    let expected: Vec<u64> = (1..=16).map(|block| 100 + 300 + 1000 + block * 4096).collect();
    assert_eq!(times[1], expected);
}

#[test]
fn a_rank_that_computes_sees_what_came_meanwhile_at_once() {
    let times = pair(&plain(), |nic, memory, board| {
        if nic.me() == 0 {
            nic.store(memory.addr(0), 3);
            assert!(nic.post_write(1, 0, &[inline(memory.addr(0), 8)], board.at(1, 64), 1).unwrap());
        } else {
            nic.charge(Charge::Compute(500));
            assert_eq!(nic.load(memory.addr(64)), 0, "it lands at 1116");
            assert_eq!(nic.touched(0), None);
            nic.charge(Charge::Compute(10_000));
            assert_eq!(nic.load(memory.addr(64)), 3);
            assert_eq!((nic.touched(0), nic.touched(1)), (Some(0), None));
            assert_eq!(nic.touched(0), None);
        }
        nic.now_ns() - START_NS
    });
    assert_eq!(times[1], 10_500);
}

#[test]
fn alarms_end_naps() {
    let end = run(&plain(), 1, 0, |mut nic| {
        nic.alarm(5000);
        nic.alarm(3000);
        nic.idle(0).take();
        let woken = nic.now_ns();
        let span = Span { addr: 8, len: 0 };
        assert!(nic.register(0, span, Rights::ALL).is_ok());
        woken
    });
    assert_eq!(end.unwrap().all().unwrap(), [3000]);
}
