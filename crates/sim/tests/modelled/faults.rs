//! What goes wrong: limits, wrong keys, missing receive buffers, lost datagrams, dead and waiting ranks; and that
//! chance follows from the seed.

use crate::support::*;
use fabric::{Charge, Completion, Done, Fault, Nap, Remote, Rights, Verbs};
use sim::{Cluster, Faults, Job, Nic, Outcome, Report, run};

/// As a cluster with one rank per host.
fn spread() -> Cluster {
    Cluster { cores: 1, ..plain() }
}

fn text(completion: Completion) -> String {
    match completion.result {
        Err(Fault::Device(text)) => text,
        other => panic!("{other:?} is not an error of the device"),
    }
}

/// Rank 0 does something to memory of rank 1, which keeps it registered.
fn against(body: impl Fn(&mut Nic<'_>, &Memory, Remote) + 'static) {
    let board = Board::new(2);
    let report = run(&spread(), 2, 1, move |mut nic| {
        let memory = Memory::new(&mut nic, 0, 8192);
        board.publish(&mut nic, &memory);
        if nic.me() == 0 {
            body(&mut nic, &memory, board.at(1, 0));
        }
        sleep_until(&mut nic, 100 * START_NS);
    });
    report.unwrap().all().unwrap();
}

#[test]
fn wrong_keys_and_bounds_are_errors_at_the_one_who_posts() {
    against(|nic, memory, remote| {
        let outside = Remote { addr: remote.addr + 8000, ..remote };
        assert!(nic.post_write(1, 0, &[memory.part(0, 400)], outside, 1).unwrap());
        let about = text(completion(nic));
        assert!(
            about.starts_with("write of 400 bytes by rank 0 at rank 1: 400 bytes at offset 8000"),
            "{about}"
        );
        assert!(nic.post_write(1, 0, &[memory.part(0, 400)], Remote { key: 99, ..remote }, 1).unwrap());
        assert!(text(completion(nic)).contains("key 0x63 is not registered"));
        assert!(nic.post_read(1, 0, memory.part(0, 400), outside, 1).unwrap());
        let about = text(completion(nic));
        assert!(about.starts_with("read by rank 0 from rank 1: 400 bytes at offset 8000"), "{about}");
        let foreign = fabric::Local { key: 99, ..memory.part(0, 400) };
        let refused = nic.post_write(1, 0, &[foreign], remote, 1).unwrap_err();
        assert!(format!("{refused:?}").contains("own memory: key 0x63 is not registered"), "{refused:?}");
    });
}

#[test]
fn memory_given_back_while_a_write_is_under_way_is_an_error() {
    against(|nic, memory, remote| {
        let mine = Memory::new(nic, 0, 4096);
        assert!(nic.post_write(1, 0, &[mine.part(0, 4096)], remote, 1).unwrap());
        nic.deregister(0, mine.region);
        assert!(text(completion(nic)).contains("own memory: key"));
        assert!(nic.post_write(1, 0, &[memory.part(0, 4096)], remote, 2).unwrap());
        assert_eq!(completion(nic).result, Ok(()));
    });
}

#[test]
fn limits_are_enforced_and_named() {
    against(|nic, memory, remote| {
        let mut posted = 0;
        while nic.post_write(1, 0, &[memory.part(0, 100)], remote, 1).unwrap() {
            posted += 1;
        }
        assert_eq!(posted, nic.caps().depth);
        completion(nic);
        assert!(nic.post_write(1, 0, &[memory.part(0, 100)], remote, 1).unwrap());
        let big = nic.allocate(1 << 20);
        let refused = format!("{:?}", nic.register(0, big, Rights::ALL).unwrap_err());
        assert!(refused.contains("8192 of 1048576 are (limit `lockable_bytes`)"), "{refused}");
        for _ in 0..3 {
            nic.register(0, memory.local.span, Rights::ALL).unwrap();
        }
        let refused = format!("{:?}", nic.register(0, memory.local.span, Rights::ALL).unwrap_err());
        assert!(refused.contains("all 4 regions are in use (limit `regions`)"), "{refused}");
        let refused = format!("{:?}", nic.post_datagram(1, 0, &[memory.part(0, 1501)], 1).unwrap_err());
        assert!(refused.contains("limit `datagram.max_bytes`: 1500"), "{refused}");
    });
}

#[test]
fn sends_wait_for_receive_buffers_in_order_and_nothing_more_is_posted() {
    let report = run(&spread(), 2, 1, |mut nic| {
        let memory = Memory::new(&mut nic, 0, 8192);
        let mut seen = Vec::new();
        if nic.me() == 0 {
            for value in 1..=3 {
                nic.store(memory.addr(0), value);
                assert!(nic.post_send(1, 0, &[inline(memory.addr(0), 8)], value).unwrap());
            }
            sleep_until(&mut nic, START_NS / 2);
            assert!(!nic.post_send(1, 0, &[inline(memory.addr(0), 8)], 4).unwrap(), "the peer has no buffer");
            for _ in 0..3 {
                let end = completion(&mut nic);
                assert_eq!((end.done, end.result), (Done::Sent, Ok(())));
                seen.push(end.work);
            }
        } else {
            nic.charge(Charge::Compute(START_NS));
            for at in 0..3 {
                nic.post_receive(0, memory.part(at * 64, 64), 10 + at as u64);
            }
            for at in 0..3 {
                let end = completion(&mut nic);
                assert_eq!(end.done, Done::Received { from: 0, len: 8, datagram: false });
                assert_eq!(end.work, 10 + at as u64);
                seen.push(nic.load(memory.addr(at * 64)));
            }
        }
        sleep_until(&mut nic, 10 * START_NS);
        seen
    });
    let report = report.unwrap();
    assert_eq!(report.counters.held, 3);
    assert_eq!(report.all().unwrap(), [[1, 2, 3], [1, 2, 3]]);
}

#[test]
fn a_message_longer_than_the_buffer_is_an_error_on_both_sides() {
    let report = run(&spread(), 2, 1, |mut nic| {
        let memory = Memory::new(&mut nic, 0, 8192);
        if nic.me() == 0 {
            assert!(nic.post_send(1, 0, &[memory.part(0, 200)], 1).unwrap());
        } else {
            nic.post_receive(0, memory.part(0, 100), 1);
        }
        let about = text(completion(&mut nic));
        sleep_until(&mut nic, START_NS);
        about
    });
    for about in report.unwrap().all().unwrap() {
        assert_eq!(about, "message of 200 bytes from rank 0: the receive buffer has 100");
    }
}

/// Sends 2000 datagrams of 8 bytes; what rank 1 got, in order.
fn datagrams(seed: u64, faults: Faults) -> Report<Vec<u64>> {
    let job = Job::new(&spread(), 2).seed(seed).faults(faults);
    let report = job.run(|mut nic| {
        let memory = Memory::new(&mut nic, 0, 64 << 10);
        let mut seen = Vec::new();
        if nic.me() == 1 {
            for at in 0..4096 {
                nic.post_receive(0, memory.part(at * 8, 8), at as u64);
            }
        }
        sleep_until(&mut nic, START_NS);
        if nic.me() == 0 {
            for value in 0..2000 {
                nic.store(memory.addr(0), value);
                while !nic.post_datagram(1, 0, &[inline(memory.addr(0), 8)], 1).unwrap() {
                    completion(&mut nic);
                }
            }
        }
        sleep_until(&mut nic, 10 * START_NS);
        while let Some(end) = nic.poll() {
            if let Done::Received { datagram: true, .. } = end.done {
                seen.push(nic.load(memory.addr(end.work as usize * 8)));
            }
        }
        seen
    });
    report.unwrap()
}

#[test]
fn datagrams_are_lost_doubled_and_overtaken_as_told() {
    let all: Vec<u64> = (0..2000).collect();
    let Some(Outcome::Ended(clean)) = datagrams(1, Faults::default()).results.pop() else {
        panic!("it ends")
    };
    assert_eq!(clean, all);
    let mut faulty = plain().datagram;
    (faulty.loss, faulty.duplication, faulty.reorder) = (0.1, 0.1, 0.1);
    let faults = Faults { datagram: Some(faulty), ..Faults::default() };
    let report = datagrams(1, faults.clone());
    let counters = report.counters;
    let Some(Outcome::Ended(seen)) = report.results.into_iter().next_back() else { panic!("it ends") };
    assert_eq!(seen.len() as u64, 2000 + counters.doubled - counters.lost);
    for (count, name) in
        [(counters.lost, "lost"), (counters.doubled, "doubled"), (counters.reordered, "late")]
    {
        assert!((100..350).contains(&count), "{count} {name}");
    }
    assert!(!seen.is_sorted());
    assert_eq!(datagrams(1, faults.clone()).trace_hash, report.trace_hash);
    assert_ne!(datagrams(2, faults).trace_hash, report.trace_hash);
}

/// All ranks write to all, in rounds, and wait for what comes.
fn exchange(job: Job, ranks: usize) -> Report<u64> {
    let board = Board::new(ranks);
    let report = job.run(move |mut nic| {
        let memory = Memory::new(&mut nic, 0, 4096);
        board.publish(&mut nic, &memory);
        let me = nic.me();
        for round in 1..=20 {
            nic.store(memory.addr(2048), round);
            for peer in (0..ranks).filter(|peer| *peer != me) {
                let parts = [inline(memory.addr(2048), 8)];
                while !nic.post_write(peer, 0, &parts, board.at(peer, me * 8), 1).unwrap() {
                    completion(&mut nic);
                }
            }
            for peer in (0..ranks).filter(|peer| *peer != me) {
                while nic.load(memory.addr(peer * 8)) < round {
                    nic.idle(0).take();
                    while nic.poll().is_some() {}
                }
            }
        }
        nic.now_ns()
    });
    report.unwrap()
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let faults = Faults { delay: 0.2, delay_ns: 5000, stall: 0.05, stall_ns: 20_000, ..Faults::default() };
    let job = |seed| Job::new(&plain(), 8).seed(seed).faults(faults.clone());
    let (first, again, other) = (exchange(job(7), 8), exchange(job(7), 8), exchange(job(8), 8));
    assert_eq!(first.trace_hash, again.trace_hash);
    assert_eq!(first.counters, again.counters);
    assert_ne!(first.trace_hash, other.trace_hash);
    assert_eq!(first.counters.writes, 8 * 7 * 20);
    let calm = exchange(Job::new(&plain(), 8), 8);
    assert!(calm.end_ns < first.end_ns, "{} and {}", calm.end_ns, first.end_ns);
    first.all().unwrap();
}

#[test]
fn ranks_that_wait_for_ever_are_reported() {
    let report = run(&plain(), 3, 0, |mut nic| {
        let memory = Memory::new(&mut nic, 0, 4096);
        if nic.me() != 1 {
            while nic.load(memory.addr(0)) == 0 && !nic.is_stuck() {
                nic.idle(0).take();
            }
            assert!(nic.is_stuck());
            return;
        }
        until(&mut nic, memory.addr(0), 1);
    });
    let results = report.unwrap().results;
    assert_eq!(results, [Outcome::Ended(()), Outcome::Stuck, Outcome::Ended(())]);
}

#[test]
fn a_dead_rank_is_found_by_who_writes_to_it_and_by_who_asks() {
    let faults = Faults { deaths: vec![(1, 3_000_000)], ..Faults::default() };
    let board = Board::new(3);
    let report = Job::new(&spread(), 3).faults(faults).run(move |mut nic| {
        let memory = Memory::new(&mut nic, 0, 4096);
        board.publish(&mut nic, &memory);
        assert_eq!(nic.check(), Ok(()));
        sleep_until(&mut nic, 4 * START_NS - 500_000);
        assert_ne!(nic.me(), 1, "it is dead by now");
        if nic.me() == 0 {
            assert!(nic.post_write(1, 0, &[inline(memory.addr(0), 8)], board.at(1, 0), 1).unwrap());
            let end = completion(&mut nic);
            assert_eq!(end.result, Err(Fault::PeerGone(1)));
            assert!(nic.now_ns() > 4 * START_NS + 500_000, "after the adapter has given up");
        } else {
            while nic.check().is_ok() {
                nic.idle(0).take();
            }
            assert_eq!(nic.now_ns(), 4 * START_NS, "told once, when it is found");
        }
        nic.check().unwrap_err()
    });
    let gone = || Outcome::Ended(Fault::PeerGone(1));
    assert_eq!(report.unwrap().results, [gone(), Outcome::Died, gone()]);
}

#[test]
fn jobs_that_do_not_fit_are_refused() {
    let refused = run(&plain(), 9, 0, |_| ()).unwrap_err();
    assert_eq!(refused, "9 ranks: cluster `plain` has room for 1 to 8");
    let faults = Faults { deaths: vec![(3, 1)], ..Faults::default() };
    let refused = Job::new(&plain(), 2).faults(faults).run(|_| ()).unwrap_err();
    assert_eq!(refused, "rank 3 cannot die: there are 2");
}

#[test]
fn a_panic_of_a_rank_is_one_of_the_run() {
    let ended = std::panic::catch_unwind(|| {
        run(&plain(), 4, 0, |mut nic| {
            sleep_until(&mut nic, 1000);
            assert!(nic.me() != 2, "rank 2 fails");
            sleep_until(&mut nic, 2000);
        })
    });
    let panic = ended.expect_err("rank 2 panics");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"rank 2 fails"));
}

#[test]
fn traces_name_lanes_and_protocols_and_every_arrow_has_two_ends() {
    let board = Board::new(2);
    let report = Job::new(&spread(), 2).trace(100_000).run(move |mut nic| {
        let memory = Memory::new(&mut nic, 0, 4096);
        board.publish(&mut nic, &memory);
        if nic.me() == 0 {
            nic.label(|| "copy eager");
            assert!(nic.post_write(1, 0, &[inline(memory.addr(0), 8)], board.at(1, 0), 1).unwrap());
            nic.label(|| "RGET");
            assert!(nic.post_read(1, 0, memory.part(0, 1000), board.at(1, 0), 2).unwrap());
            completion(&mut nic);
            completion(&mut nic);
        }
        sleep_until(&mut nic, 10 * START_NS);
    });
    let json = report.unwrap().trace.unwrap().json();
    for part in [
        "\"rank 0\"",
        "\"host 0 rail 0 out\"",
        "\"host 1 rail 0 in\"",
        "\"copy eager\"",
        "\"RGET\"",
        "\"register\"",
    ] {
        assert!(json.contains(part), "{part} is missing");
    }
    let count = |what: &str| json.matches(what).count();
    // The write and the request of the read leave, and the answer goes on from that; the write and the answer land.
    let phases = ["s", "t", "f"].map(|phase| count(&format!("\"ph\":\"{phase}\"")));
    assert_eq!(phases, [2, 1, 2]);
    assert_eq!(count("\"ph\":\"b\""), count("\"ph\":\"e\""));
    assert!(json.ends_with("\n]}\n"));
}
