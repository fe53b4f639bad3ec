//! MPI programs on simulated clusters: the library's own protocols in virtual time.

use proto::Protocol;
use sim::rank::{ANY_SOURCE, INT64, Rank, SUM, Setup};
use sim::{Cluster, Faults, Job, Outcome};

fn plain() -> Cluster {
    Cluster::parse("plain.toml", include_str!("../support/plain.toml")).unwrap()
}

type Result<T> = mpi::error::Result<T>;

/// Runs a program that succeeds, on `ranks` ranks.
fn program<R: 'static>(ranks: usize, body: impl Fn(&mut Rank<'_>) -> Result<R> + 'static) -> Vec<R> {
    let report = Job::new(&plain(), ranks).program(&Setup::default(), body).unwrap();
    report.all().unwrap().into_iter().collect::<Result<Vec<R>>>().unwrap()
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251 + seed) as u8).collect()
}

#[test]
fn messages_of_all_lengths_arrive_whole() {
    program(4, |rank| {
        let (me, n) = (rank.rank(), rank.size());
        for len in [0, 1, 8, 100, 5000, 16_384, 16_385, 70_000, 1 << 20] {
            let (out, into) = (rank.buffer(len), rank.buffer(len));
            rank.write(out, &pattern(me, len));
            let (to, from) = ((me + 1) % n, (me + n - 1) % n);
            let status = rank.sendrecv(out, to, into, from as i32, 3)?;
            assert_eq!(status.count_bytes(), len as u64);
            assert_eq!(rank.read(into), pattern(from, len), "{len} bytes at rank {me}");
        }
        Ok(())
    });
}

#[test]
fn collectives_give_what_they_should() {
    program(7, |rank| {
        let (me, n) = (rank.rank(), rank.size());
        for count in [1usize, 1000, 20_000] {
            let (out, into) = (rank.buffer(8 * count), rank.buffer(8 * count));
            let words: Vec<u8> = (0..count as i64).flat_map(|at| (at + me as i64).to_le_bytes()).collect();
            rank.write(out, &words);
            rank.allreduce(out, into, INT64, SUM)?;
            let sum = |at: i64| n as i64 * at + (n * (n - 1) / 2) as i64;
            let expected: Vec<u8> = (0..count as i64).flat_map(|at| sum(at).to_le_bytes()).collect();
            assert_eq!(rank.read(into), expected);
            rank.bcast(out, 2)?;
            let root: Vec<u8> = (0..count as i64).flat_map(|at| (at + 2).to_le_bytes()).collect();
            assert_eq!(rank.read(out), root);
        }
        let (out, into) = (rank.buffer(n * 100), rank.buffer(n * 100));
        let blocks: Vec<u8> = (0..n).flat_map(|to| pattern(me * 10 + to, 100)).collect();
        rank.write(out, &blocks);
        rank.alltoall(out, into)?;
        let expected: Vec<u8> = (0..n).flat_map(|from| pattern(from * 10 + me, 100)).collect();
        assert_eq!(rank.read(into), expected);
        rank.allgather(out.part(0, 100), into)?;
        let expected: Vec<u8> = (0..n).flat_map(|from| pattern(from * 10, 100)).collect();
        assert_eq!(rank.read(into), expected);
        rank.barrier()
    });
}

#[test]
fn a_small_ping_pong_takes_what_the_parts_take() {
    let times = program(4, |rank| {
        let (me, buffer) = (rank.rank(), rank.buffer(8));
        let mut start = 0;
        for round in 0..120 {
            if round == 20 {
                start = rank.now_ns(); // the peers know each other by now
            }
            match me {
                0 => {
                    rank.send(buffer, 2, 0)?;
                    rank.recv(buffer, 2, 0)?;
                }
                2 => {
                    rank.recv(buffer, 0, 0)?;
                    rank.send(buffer, 0, 0)?;
                }
                _ => {}
            }
        }
        Ok((rank.now_ns() - start) / 200)
    });
    // Post 100, link 1000, 8 bytes and a trailer by hand and over the link, headers of 10: a bit more for looks and
    // fetched completions, which partly hide behind the message under way.
    assert!((1150..1400).contains(&times[0]), "{} ns", times[0]);
}

#[test]
fn any_source_and_tests_that_look_now_and_then() {
    program(5, |rank| {
        let (me, buffer) = (rank.rank(), rank.buffer(64));
        if me != 0 {
            rank.compute(me as u64 * 10_000);
            rank.write(buffer, &[me as u8; 64]);
            return rank.send(buffer, 0, 1);
        }
        for expected in 1..5 {
            let mut request = rank.irecv(buffer, ANY_SOURCE, 1)?;
            let status = loop {
                match rank.test(request)? {
                    Ok(status) => break status,
                    Err(still) => request = still,
                }
                rank.compute(500);
            };
            assert_eq!(status.source, expected);
            assert_eq!(rank.read(buffer), [expected as u8; 64]);
        }
        Ok(())
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let faults =
            Faults { delay: 0.1, delay_ns: 3000, stall: 0.01, stall_ns: 50_000, ..Faults::default() };
        let job = Job::new(&plain(), 8).seed(seed).faults(faults);
        let report = job.program(&Setup::default(), |rank| {
            let (out, into) = (rank.buffer(8 << 14), rank.buffer(8 << 14));
            for _ in 0..3 {
                rank.alltoall(out, into)?;
                rank.allreduce(out, into, INT64, SUM)?;
            }
            Ok(())
        });
        let report = report.unwrap();
        (report.trace_hash, report.end_ns, report.counters)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let report = Job::new(&plain(), 2).program(&Setup::default(), |rank| {
        let buffer = rank.buffer(8);
        let from = 1 - rank.rank() as i32;
        rank.recv(buffer, from, 9).map(drop)
    });
    let results = report.unwrap().results;
    for (me, result) in results.into_iter().enumerate() {
        let Outcome::Ended(Err(error)) = result else { panic!("rank {me} must fail") };
        let expected =
            format!("deadlock: rank {me} waits for ever: receive from rank {}, tag 9, 8 bytes", 1 - me);
        assert_eq!(error.text, expected);
    }
}

#[test]
fn a_death_ends_the_job_with_an_error_that_names_the_rank() {
    let faults = Faults { deaths: vec![(1, 500_000)], ..Faults::default() };
    let report = Job::new(&plain(), 3).faults(faults).program(&Setup::default(), |rank| {
        rank.compute(1_000_000);
        rank.barrier()
    });
    let results = report.unwrap().results;
    assert!(matches!(results[1], Outcome::Died));
    for me in [0, 2] {
        let Outcome::Ended(Err(error)) = &results[me] else { panic!("rank {me} must fail") };
        assert!(error.text.contains("rank 1"), "{}", error.text);
    }
}

/// A ring of messages of many lengths, some to receivers that are late, some to early ones. Some tags come
/// again, which RTRs can use, some are new.
fn ring(rank: &mut Rank<'_>) -> Result<()> {
    let (me, n) = (rank.rank(), rank.size());
    let (to, from) = ((me + 1) % n, (me + n - 1) % n);
    for (round, len) in [20_000, 70_001, 300_000, 300_000, 1 << 20, 16_385, 70_001].into_iter().enumerate() {
        let (out, into) = (rank.buffer(len), rank.buffer(len));
        rank.write(out, &pattern(me + round, len));
        if me.is_multiple_of(2) {
            rank.compute(200_000 * (round as u64 % 3));
        }
        rank.sendrecv(out, to, into, from as i32, round as i32 / 3)?;
        assert!(rank.read(into) == pattern(from + round, len), "{len} bytes at rank {me}");
    }
    Ok(())
}

/// A ring of short messages, from and to the same buffers again and again: how many were not copied.
fn short_ring(rank: &mut Rank<'_>) -> Result<u64> {
    let (me, n) = (rank.rank(), rank.size());
    let (to, from) = ((me + 1) % n, (me + n - 1) % n);
    let (out, into) = (rank.buffer(16_384), rank.buffer(16_384));
    for round in 0..80 {
        let len = [8, 300, 5000, 16_384][round % 4];
        rank.write(out, &pattern(me + round, len));
        rank.sendrecv(out.part(0, len), to, into, from as i32, round as i32)?;
        assert!(rank.read(into.part(0, len)) == pattern(from + round, len), "{len} bytes at rank {me}");
    }
    Ok(rank.world().engine.counters().get(proto::Event::EagerZeroCopy))
}

#[test]
fn both_eager_protocols_give_the_same_bytes_on_every_cluster() {
    for name in sim::cluster::names() {
        for (eager_by, word) in proto::EagerBy::ALL {
            let mut setup = Setup::default();
            setup.limits.eager_by = eager_by;
            let job = Job::new(&Cluster::find(name).unwrap(), 4).per_host(1).trace(1 << 20);
            let mut report = job.program(&setup, short_ring).unwrap();
            let json = report.trace.take().unwrap().json();
            let gathered = report.all().unwrap().into_iter().collect::<Result<Vec<u64>>>();
            let gathered = gathered.unwrap_or_else(|error| panic!("{name}, {word}: {}", error.text));
            let is_drawn = json.contains("\"name\":\"eager-zero-copy\"");
            assert_eq!(is_drawn, gathered.iter().any(|count| *count > 0), "{name}, {word}");
            match eager_by {
                proto::EagerBy::Copy => assert_eq!(gathered, [0; 4], "{name}"),
                proto::EagerBy::ZeroCopy => assert!(gathered.iter().all(|count| *count >= 40), "{name}"),
                proto::EagerBy::Choice => {}
            }
        }
    }
}

#[test]
fn every_protocol_gives_the_same_bytes_on_every_cluster() {
    for name in sim::cluster::names() {
        for (protocol, word) in Protocol::ALL {
            let mut setup = Setup::default();
            setup.limits.force = Some(protocol);
            let cluster = Cluster::find(name).unwrap();
            let report = Job::new(&cluster, 4).per_host(1).program(&setup, ring).unwrap();
            for result in report.all().unwrap() {
                result.unwrap_or_else(|error| panic!("{name}, {word}: {}", error.text));
            }
        }
    }
}

#[test]
fn traces_say_by_which_protocol_a_message_went() {
    for (protocol, word) in Protocol::ALL {
        let mut setup = Setup::default();
        setup.limits.force = Some(protocol);
        let job = Job::new(&Cluster::find("graphene").unwrap(), 4).per_host(1).trace(1 << 20);
        let json = job.program(&setup, ring).unwrap().trace.unwrap().json();
        assert!(json.contains(&format!("\"name\":\"{word}\"")), "nothing is drawn of {word}");
        // A message whose receiver offers nothing goes as an RTS that the receiver answers by reading.
        let is_part = |other| protocol == Protocol::Speculative && other == Protocol::Rget;
        let others = Protocol::ALL.iter().filter(|(other, _)| *other != protocol && !is_part(*other));
        for (_, other) in others {
            assert!(
                !json.contains(&format!("\"name\":\"{other}\"")),
                "{other} is drawn, but {word} was forced"
            );
        }
    }
}

/// A number that follows from others.
fn mix(a: u64, b: u64) -> u64 {
    let bits = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

/// Messages of random lengths from random ranks to random ranks, a window of them under way at a time.
fn traffic(rank: &mut Rank<'_>, seed: u64) -> Result<()> {
    let (me, n) = (rank.rank() as u64, rank.size() as u64);
    let mut under_way = Vec::new();
    for number in 0..120 {
        let (from, to) = (mix(seed, 3 * number) % n, mix(seed, 3 * number + 1) % n);
        let len = ((mix(seed, 3 * number + 2) % 40_000) >> (number % 4 * 4)) as usize;
        if from == me {
            let buffer = rank.buffer(len);
            rank.write(buffer, &pattern(number as usize, len));
            under_way.push((rank.isend(buffer, to as usize, number as i32)?, None));
        }
        if to == me {
            let buffer = rank.buffer(len);
            under_way
                .push((rank.irecv(buffer, from as i32, number as i32)?, Some((buffer, number as usize))));
        }
        if under_way.len() > 12 {
            check(rank, under_way.drain(..))?;
        }
    }
    check(rank, under_way.into_iter())
}

type UnderWay = (sim::Request, Option<(fabric::Span, usize)>);

fn check(rank: &mut Rank<'_>, under_way: impl Iterator<Item = UnderWay>) -> Result<()> {
    let (requests, buffers): (Vec<_>, Vec<_>) = under_way.unzip();
    rank.waitall(requests)?;
    for (buffer, number) in buffers.into_iter().flatten() {
        assert!(rank.read(buffer) == pattern(number, buffer.len), "message {number} of {} bytes", buffer.len);
    }
    Ok(())
}

#[test]
fn random_traffic_arrives_whole_under_faults() {
    let mut roomy = plain();
    (roomy.registration.regions, roomy.registration.lockable_bytes) = (4096, 1 << 30);
    let seeds: u64 = std::env::var("TERN_SIM_SEEDS").map_or(20, |text| text.parse().expect("a number"));
    for seed in 0..seeds {
        let faults =
            Faults { delay: 0.3, delay_ns: 50_000, stall: 0.1, stall_ns: 100_000, ..Faults::default() };
        let job = Job::new(&roomy, 5).seed(seed).faults(faults);
        let report = job.program(&Setup::default(), move |rank| traffic(rank, seed)).unwrap();
        for result in report.all().unwrap_or_else(|text| panic!("seed {seed}: {text}")) {
            result.unwrap_or_else(|error| panic!("seed {seed}: {}", error.text));
        }
    }
}

#[test]
fn chaos_then_calm_and_all_complete() {
    let mut roomy = plain();
    (roomy.registration.regions, roomy.registration.lockable_bytes) = (4096, 1 << 30);
    let seeds: u64 = std::env::var("TERN_SIM_SEEDS").map_or(5, |text| text.parse().expect("a number"));
    for seed in 0..seeds {
        for (protocol, word) in Protocol::ALL {
            let mut setup = Setup::default();
            setup.limits.force = Some(protocol);
            let faults =
                Faults { delay: 0.3, delay_ns: 200_000, stall: 0.05, stall_ns: 300_000, ..Faults::default() };
            let report = Job::new(&roomy, 6).seed(seed).faults(faults).program(&setup, ring).unwrap();
            for result in report.all().unwrap_or_else(|text| panic!("seed {seed}, {word}: {text}")) {
                result.unwrap_or_else(|error| panic!("seed {seed}, {word}: {}", error.text));
            }
        }
    }
}

#[test]
fn every_known_cluster_runs_a_job() {
    for name in sim::cluster::names() {
        let cluster = Cluster::find(name).unwrap();
        let ranks = cluster.capacity().min(6);
        let report = Job::new(&cluster, ranks).program(&Setup::default(), |rank| {
            let (out, into) = (rank.buffer(300_000), rank.buffer(300_000));
            rank.write(out, &pattern(rank.rank(), 300_000));
            let (to, from) = ((rank.rank() + 1) % rank.size(), (rank.rank() + rank.size() - 1) % rank.size());
            rank.sendrecv(out, to, into, from as i32, 0)?;
            assert_eq!(rank.read(into), pattern(from, 300_000));
            rank.barrier()
        });
        report.unwrap().all().unwrap().into_iter().collect::<Result<Vec<()>>>().unwrap();
    }
}
