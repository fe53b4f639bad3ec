//! Adapters of two ranks over the loopback: what the verbs promise, who is let in, and who is not.

mod alone;
mod at_once;
#[path = "../job/mod.rs"]
mod job;
mod leaving;
mod rights;
mod strangers;

use fabric::{Atomic, Completion, Done, Remote, Verbs};
use job::{LOCAL, LONG, Listen, SECRET, bytes, memory};
use rnic::driver::RnicNap;
use rnic::{Listening, Rnic, Secret};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// By a connection with each, and by datagrams.
const TRANSPORTS: [Listen; 2] = [Listening::at, Listening::for_datagrams];

fn ranks(secrets: [Secret; 2], listen: Listen) -> [Rnic; 2] {
    ranks_at(LOCAL, secrets, listen)
}

/// As many ranks of one job over the loopback.
fn job_of(ranks: usize, listen: Listen) -> Vec<Rnic> {
    let listening: Vec<Listening> = (0..ranks).map(|_| listen(LOCAL).unwrap()).collect();
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let open = |(me, l): (usize, Listening)| l.open(me, addresses.clone().into(), SECRET).unwrap();
    listening.into_iter().enumerate().map(open).collect()
}

fn ranks_at(address: IpAddr, secrets: [Secret; 2], listen: Listen) -> [Rnic; 2] {
    let listening = [0, 1].map(|_| listen(address).unwrap());
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let mut secrets = secrets.into_iter();
    let mut me = 0..;
    listening.map(|l| l.open(me.next().unwrap(), addresses.clone().into(), secrets.next().unwrap()).unwrap())
}

/// Looks on both sides until both have had as many completions.
fn until(ranks: &mut [Rnic; 2], counts: [usize; 2]) -> [Vec<Completion>; 2] {
    let mut ended = [Vec::new(), Vec::new()];
    let start = Instant::now();
    while ended[0].len() < counts[0] || ended[1].len() < counts[1] {
        for (rank, ended) in ranks.iter_mut().zip(&mut ended) {
            ended.extend(rank.poll());
        }
        assert!(start.elapsed() < LONG, "{ended:?}");
    }
    ended
}

/// All of it over IPv6.
#[test]
fn messages_and_writes_go_over_ipv6() {
    for listen in TRANSPORTS {
        let mut job = ranks_at(Ipv6Addr::LOCALHOST.into(), [SECRET; 2], listen);
        let (out, target) = (memory(&mut job[0], 200_000, 77), memory(&mut job[1], 200_000, 0));
        let buffer = memory(&mut job[1], 200_000, 0);
        job[1].post_receive(0, buffer, 9);
        let remote = Remote { addr: target.span.addr as u64, key: target.key };
        assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
        assert_eq!(job[0].post_send(1, 0, &[out], 2), Ok(true));
        until(&mut job, [2, 1]);
        assert!([target, buffer].map(|at| bytes(&job[1], at)) == [vec![77; 200_000], vec![77; 200_000]]);
        end(job);
    }
}

/// Ranks end side by side: each waits for the other to take leave.
fn end(job: impl IntoIterator<Item = Rnic>) {
    std::thread::scope(|scope| job.into_iter().for_each(|rank| drop(scope.spawn(move || drop(rank)))));
}

/// Both begin to connect before either has heard of the other.
#[test]
fn who_connects_at_once_has_one_connection_and_loses_nothing() {
    for at in 0..40 {
        let mut job = ranks([SECRET; 2], TRANSPORTS[at % 2]);
        let out = [0, 1].map(|me| memory(&mut job[me], 3000, 10 + me as u8));
        let into = [0, 1].map(|me| memory(&mut job[me], 4000, 0));
        for me in 0..2 {
            job[me].post_receive(0, into[me], 1);
            assert_eq!(job[me].post_send(1 - me, 0, &[out[me]], 2), Ok(true));
        }
        for (me, ended) in until(&mut job, [2, 2]).into_iter().enumerate() {
            let received = Done::Received { from: 1 - me, len: 3000, datagram: false };
            assert!(
                ended.iter().any(|c| c.done == received && c.work == 1 && c.result == Ok(())),
                "{ended:?}"
            );
            assert!(ended.iter().any(|c| c.done == Done::Sent && c.work == 2), "{ended:?}");
            assert_eq!(bytes(&job[me], into[me])[..3000], vec![10 + (1 - me) as u8; 3000]);
        }
        assert_eq!(job.each_mut().map(|rank| rank.check()), [Ok(()), Ok(())]);
        end(job);
    }
}

/// A message behind a write says that its bytes are placed; what is read is what is there.
#[test]
fn writes_are_placed_before_the_message_behind_them_and_reads_bring_them_back() {
    let lens = [1, 255, 256, 257, 5000, 64_512, 3 << 20];
    for (len, listen) in lens.into_iter().flat_map(|len| TRANSPORTS.map(|listen| (len, listen))) {
        let mut job = ranks([SECRET; 2], listen);
        let (out, back) = (memory(&mut job[0], len, 77), memory(&mut job[0], len, 0));
        let (target, buffer) = (memory(&mut job[1], len, 0), memory(&mut job[1], 64, 0));
        job[1].post_receive(0, buffer, 9);
        let remote = Remote { addr: target.span.addr as u64, key: target.key };
        assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
        assert_eq!(job[0].post_send(1, 0, &[], 2), Ok(true));
        until(&mut job, [2, 1]);
        assert!(bytes(&job[1], target) == vec![77; len], "{len}");
        assert!(job[1].touched(0).is_some());
        assert_eq!(job[0].post_read(1, 0, back, remote, 3), Ok(true));
        let ended = until(&mut job, [1, 0]);
        assert_eq!((ended[0][0].done, &ended[0][0].result), (Done::Read, &Ok(())));
        assert!(bytes(&job[0], back) == vec![77; len], "{len}");
        end(job);
    }
}

/// What is asked behind a message that waits for a receive buffer is answered once there is one, though nothing more comes.
#[test]
fn a_read_behind_a_message_that_waits_for_a_buffer_is_answered() {
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        let (out, back) = (memory(&mut job[0], 40, 77), memory(&mut job[0], 5000, 0));
        let (source, buffer) = (memory(&mut job[1], 5000, 55), memory(&mut job[1], 64, 0));
        connect(&mut job);
        let remote = Remote { addr: source.span.addr as u64, key: source.key };
        assert_eq!(job[0].post_send(1, 0, &[out], 1), Ok(true));
        assert_eq!(job[0].post_read(1, 0, back, remote, 2), Ok(true));
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(20) {
            assert!(job[0].poll().is_none_or(|completion| completion.done == Done::Sent));
            assert_eq!(job[1].poll(), None);
        }
        job[1].post_receive(0, buffer, 9);
        let start = Instant::now();
        let is_read = |completion: Completion| completion.done == Done::Read && completion.result.is_ok();
        while !job[0].poll().is_some_and(is_read) {
            job[1].poll();
            assert!(start.elapsed() < LONG, "nobody answers");
        }
        assert_eq!(bytes(&job[0], back), vec![55; 5000]);
        end(job);
    }
}

/// Long and short ones in any order, alone and in crowds: what is read into place, and what by way of other memory, depends on
/// what came before.
#[test]
fn messages_come_whole_whatever_came_before_them() {
    let lens = [1, 40, 200, 256, 300, 4000, 4096, 5000, 64_000, 64_512, 65_560, 200_000];
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |end: usize| {
        chance = chance.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (chance >> 33) as usize % end
    };
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        for round in 0..40u8 {
            let crowd: Vec<usize> = (0..1 + below(8)).map(|_| lens[below(lens.len())]).collect();
            let out: Vec<_> = crowd.iter().map(|len| memory(&mut job[0], *len, 100 + round)).collect();
            let into: Vec<_> = crowd.iter().map(|_| memory(&mut job[1], 200_000, 0)).collect();
            let target = memory(&mut job[1], 200_000, 0);
            let remote = Remote { addr: target.span.addr as u64, key: target.key };
            (0..crowd.len()).for_each(|at| job[1].post_receive(0, into[at], at as u64));
            let mut posted = 0;
            for data in &out {
                if below(2) == 0 {
                    assert_eq!(job[0].post_write(1, 0, &[*data], remote, 0), Ok(true));
                    posted += 1;
                }
                assert_eq!(job[0].post_send(1, 0, &[*data], 0), Ok(true));
                posted += 1;
            }
            let [_, received] = until(&mut job, [posted, crowd.len()]);
            for (len, completion) in crowd.iter().zip(received) {
                assert_eq!(completion.done, Done::Received { from: 0, len: *len, datagram: false });
                let what = bytes(&job[1], into[completion.work as usize]);
                assert!(what[..*len].iter().all(|byte| *byte == 100 + round), "{len} of {crowd:?}");
                assert!(what[*len..].iter().all(|byte| *byte == 0), "{len} of {crowd:?}");
            }
        }
        end(job);
    }
}

/// A word that both change, and the processor that it belongs to: nothing is lost, and each is told what the one before it has left.
#[test]
fn words_are_changed_in_one_with_those_of_the_processor() {
    let mut job = ranks([SECRET; 2], Listening::at);
    let (word, got) = (memory(&mut job[1], 8, 0), memory(&mut job[0], 8, 0));
    let remote = Remote { addr: word.span.addr as u64, key: word.key };
    connect(&mut job);
    let change = |job: &mut [Rnic; 2], atomic| {
        assert_eq!(job[0].post_atomic(1, 0, got, remote, atomic, 5), Ok(true));
        let ended = until(job, [1, 0]);
        assert_eq!((ended[0][0].done, ended[0][0].work, &ended[0][0].result), (Done::Read, 5, &Ok(())));
        u64::from_ne_bytes(bytes(&job[0], got).try_into().unwrap())
    };
    for round in 0..50 {
        assert_eq!(change(&mut job, Atomic::Add(3)), 10 * round);
        let held = job[1].load(word.span.addr);
        job[1].store(word.span.addr, held + 6);
        let [right, wrong] =
            [9, 8].map(|more| Atomic::CompareSwap { compare: 10 * round + more, swap: 10 * round + 10 });
        assert_eq!(change(&mut job, wrong), 10 * round + 9);
        assert_eq!(change(&mut job, right), 10 * round + 9);
    }
    assert_eq!(job[1].load(word.span.addr), 500);
    end(job);
}

/// A message has room for what it says there, and comes: then there is a connection, if there are any.
fn connect(job: &mut [Rnic; 2]) {
    let (out, buffer) = (memory(&mut job[0], 8, 1), memory(&mut job[1], 8, 0));
    job[1].post_receive(0, buffer, 9);
    assert_eq!(job[0].post_send(1, 0, &[out], 2), Ok(true));
    until(job, [1, 1]);
}

/// A rank whose messages cannot leave yet has to go on with them, also when they are over for those who posted them.
#[test]
fn what_could_not_leave_is_owed() {
    const LEN: usize = 1 << 20;
    let mut job = ranks([SECRET; 2], Listening::at);
    let (out, target) = (memory(&mut job[0], LEN, 7), memory(&mut job[1], LEN, 0));
    let (word, buffer) = (memory(&mut job[0], 8, 1), memory(&mut job[1], 8, 0));
    let leaves = |job: &mut [Rnic; 2], counts| {
        until(job, counts);
        let start = Instant::now();
        while job[0].owes() {
            assert_eq!(job[0].poll(), None);
            assert!(start.elapsed() < LONG);
        }
    };
    assert!(!job[0].owes());
    job[1].post_receive(0, buffer, 9);
    assert_eq!(job[0].post_send(1, 0, &[word], 2), Ok(true));
    // Nobody has answered: the connection is not there.
    (0..100).for_each(|_| assert_eq!(job[0].poll(), None));
    assert!(job[0].owes());
    leaves(&mut job, [1, 1]);
    // Nobody takes anything in: the socket is full.
    let remote = Remote { addr: target.span.addr as u64, key: target.key };
    let mut posted = 0;
    while posted < 64 && job[0].post_write(1, 0, &[out], remote, 3) == Ok(true) {
        posted += 1;
    }
    assert!(posted > 16, "{posted}");
    let ended = (0..100).filter(|_| job[0].poll().is_some()).count();
    assert!(ended < posted && job[0].owes());
    leaves(&mut job, [posted - ended, 0]);
    end(job);
}

/// What is posted behind an atomic comes behind it. So none is taken where that is not sure: of more than the peer takes at a time the
/// rest would wait for answers while messages go on.
#[test]
fn no_word_is_changed_that_a_message_could_overtake() {
    for (is_connection, listen) in [true, false].into_iter().zip(TRANSPORTS) {
        let mut job = ranks([SECRET; 2], listen);
        let (word, got) = (memory(&mut job[1], 8, 0), memory(&mut job[0], 8, 0));
        let remote = Remote { addr: word.span.addr as u64, key: word.key };
        let add = |job: &mut [Rnic; 2]| job[0].post_atomic(1, 0, got, remote, Atomic::Add(1), 5);
        assert_eq!(add(&mut job), Ok(false));
        connect(&mut job);
        let taken = (0..500).take_while(|_| add(&mut job) == Ok(true)).count();
        assert_eq!((taken > 0, taken < 500), (is_connection, true), "{taken}");
        let (out, buffer) = (memory(&mut job[0], 8, 1), memory(&mut job[1], 8, 0));
        job[1].post_receive(0, buffer, 9);
        assert_eq!(job[0].post_send(1, 0, &[out], 2), Ok(true));
        let (start, mut told) = (Instant::now(), 0);
        while job[1].poll().is_none() {
            told += job[0].poll().iter().count();
            assert!(start.elapsed() < LONG);
        }
        assert_eq!(job[1].load(word.span.addr), taken as u64);
        until(&mut job, [taken + 1 - told, 0]);
        assert_eq!(add(&mut job), Ok(is_connection));
        until(&mut job, [usize::from(is_connection), 0]);
        end(job);
    }
}

/// A write that something follows at once waits for that, and not for longer than until the next look.
#[test]
fn a_write_that_leads_leaves_with_what_follows_it() {
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        connect(&mut job);
        let (out, target) = (memory(&mut job[0], 5000, 7), memory(&mut job[1], 5000, 0));
        let buffer = memory(&mut job[1], 5000, 0);
        let remote = Remote { addr: target.span.addr as u64, key: target.key };
        let clear = |job: &mut [Rnic; 2]| job[1].poke_bytes(target.span.addr, &[0; 5000]);
        let comes_within = |job: &mut [Rnic; 2], time: Duration| {
            let start = Instant::now();
            while bytes(&job[1], target) != vec![7; 5000] && start.elapsed() < time {
                assert_eq!(job[1].poll(), None);
            }
            bytes(&job[1], target) == vec![7; 5000]
        };
        let comes = |job: &mut [Rnic; 2]| comes_within(job, LONG);
        job[0].leads(1);
        assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
        assert!(!comes_within(&mut job, Duration::from_millis(20)) && job[0].owes());
        until(&mut job, [1, 0]);
        assert!(comes(&mut job));
        clear(&mut job);
        // With a message behind it, without a look; and what was said holds for one write.
        job[1].post_receive(0, buffer, 9);
        job[0].leads(1);
        assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
        assert_eq!(job[0].post_send(1, 0, &[out], 2), Ok(true));
        job[0].flush(1);
        let start = Instant::now();
        while job[1].poll().is_none() {
            assert!(start.elapsed() < LONG);
        }
        assert_eq!(bytes(&job[1], target), vec![7; 5000]);
        until(&mut job, [2, 0]);
        clear(&mut job);
        (0..3).for_each(|_| assert_eq!(job[0].poll(), None));
        assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
        assert!(comes(&mut job));
        until(&mut job, [1, 0]);
        end(job);
    }
}

/// What was found and not yet asked for would not end a sleep, for the sockets have told of it.
#[test]
fn no_sleep_while_a_write_that_landed_was_not_told_of() {
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        let (out, target) = (memory(&mut job[0], 64, 77), memory(&mut job[1], 64, 0));
        let remote = Remote { addr: target.span.addr as u64, key: target.key };
        assert_eq!(job[0].post_write(1, 0, &[out], remote, 1), Ok(true));
        let start = Instant::now();
        while bytes(&job[1], target) != [77; 64] {
            job.iter_mut().for_each(|rank| assert!(rank.poll().is_none_or(|c| c.done == Done::Written)));
            assert!(start.elapsed() < LONG);
        }
        assert_eq!(job[1].idle(1000), RnicNap::Look);
        assert_eq!([job[1].touched(0), job[1].touched(1)], [Some(0), None]);
        assert_eq!(job[1].idle(1000), RnicNap::Sleep);
        // What is due is looked at without giving the core away; what will be is not waited for asleep.
        let now_ns = job[1].now_ns();
        job[1].alarm(now_ns);
        assert_eq!(job[1].idle(1000), RnicNap::Look);
        job[1].alarm(now_ns + 1_000_000_000);
        assert_eq!(job[1].idle(1000), RnicNap::Yield);
        job[1].alarm(now_ns + 1_000_000_000);
        assert_eq!(job[1].idle(10_000), RnicNap::Doze);
        assert_eq!(job[1].idle(1000), RnicNap::Sleep);
        end(job);
    }
}

/// More than a peer has buffers for waits in the stream, and nothing is lost.
#[test]
fn messages_wait_for_buffers() {
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        let out = memory(&mut job[0], 1000, 5);
        (0..50).for_each(|work| assert_eq!(job[0].post_send(1, 0, &[out], work), Ok(true)));
        until(&mut job, [50, 0]);
        for _ in 0..50 {
            let into = memory(&mut job[1], 1000, 0);
            job[1].post_receive(0, into, 1);
            until(&mut job, [0, 1]);
            assert_eq!(bytes(&job[1], into), vec![5; 1000]);
        }
        end(job);
    }
}

/// Memory that is not registered, or not so long, is not touched, and both sides are told.
#[test]
fn access_outside_of_registered_memory_ends_the_connection() {
    TRANSPORTS.into_iter().for_each(access_outside);
}

fn access_outside(listen: Listen) {
    let mut job = ranks([SECRET; 2], listen);
    let (out, target) = (memory(&mut job[0], 100, 77), memory(&mut job[1], 64, 1));
    let remote = Remote { addr: target.span.addr as u64, key: target.key };
    job[0].post_write(1, 0, &[out], remote, 1).unwrap();
    let start = Instant::now();
    let mut faults = [None, None];
    while faults.iter().any(Option::is_none) {
        for (rank, fault) in job.iter_mut().zip(&mut faults) {
            rank.poll();
            *fault = fault.take().or(rank.take_lost());
        }
        assert!(start.elapsed() < LONG, "{faults:?}");
    }
    assert_eq!(bytes(&job[1], target), vec![1; 64]);
    let refusal = job[0].post_send(1, 0, &[], 2).unwrap_err();
    assert_eq!((refusal.lost_peer(), Some((1, refusal))), (Some(1), faults[0].take()));
    assert_eq!(job.each_mut().map(|rank| rank.check()), [Ok(()), Ok(())]);
}

/// The peer ends the connection while much is on its way out: all that was posted ends, once.
#[test]
fn what_is_posted_ends_when_the_connection_does() {
    TRANSPORTS.into_iter().for_each(posted_ends);
}

fn posted_ends(listen: Listen) {
    let mut job = ranks([SECRET; 2], listen);
    let (out, target) = (memory(&mut job[0], 8 << 20, 77), memory(&mut job[1], 8 << 20, 1));
    let remote = Remote { addr: target.span.addr as u64, key: target.key };
    let wrong = Remote { key: target.key + 1, ..remote };
    for (work, remote) in [(1, remote), (2, wrong), (3, remote), (4, remote)] {
        assert_eq!(job[0].post_write(1, 0, &[out], remote, work), Ok(true));
    }
    let [ended, _] = until(&mut job, [4, 0]);
    assert_eq!(ended.iter().map(|c| c.work).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(ended[3].result.is_err());
}

#[test]
fn without_the_secret_nobody_is_let_in() {
    let mut job = ranks([SECRET, [8; 16]], Listening::at);
    assert_eq!(job[0].post_send(1, 0, &[], 5), Ok(true));
    let ended = until(&mut job, [1, 0]);
    assert!(ended[0][0].result.is_err());
    let (lost, why) = job[0].take_lost().unwrap();
    assert_eq!((lost, job[0].take_lost()), (1, None));
    assert!(
        why.to_string().contains("rank 1 of MPI_COMM_WORLD is lost: cannot connect to 127.0.0.1:"),
        "{why}"
    );
}

/// The system refuses to connect to a peer: that is told at once, and others are not concerned.
#[test]
fn a_peer_that_cannot_be_asked_is_lost() {
    let listening = Listening::at(LOCAL).unwrap();
    // An address of a link, of which it is not said which.
    let nowhere: SocketAddr = "[fe80::1]:9".parse().unwrap();
    let addresses = [listening.address().unwrap(), nowhere];
    let mut rank = listening.open(0, addresses.into(), SECRET).unwrap();
    let refusal = rank.post_send(1, 0, &[], 5).unwrap_err();
    assert!(refusal.to_string().contains("cannot connect to [fe80::1]:9: "), "{refusal}");
    assert_eq!(rank.take_lost(), Some((1, refusal.clone())));
    assert_eq!((rank.take_lost(), rank.post_send(1, 0, &[], 6), rank.check()), (None, Err(refusal), Ok(())));
}

/// There is no way to a peer now: that may pass, so what is posted waits, and is not lost at once.
#[test]
fn what_is_posted_waits_for_a_way() {
    let listening = Listening::at(LOCAL).unwrap();
    // TCP does not go to all hosts at once.
    let nowhere = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
    let addresses = [listening.address().unwrap(), nowhere];
    let mut rank = listening.open(0, addresses.into(), SECRET).unwrap();
    assert_eq!(rank.post_send(1, 0, &[], 5), Ok(true));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300) {
        assert_eq!((rank.poll(), rank.take_lost(), rank.check()), (None, None, Ok(())));
    }
    assert_eq!(rank.post_send(1, 0, &[], 6), Ok(true));
}

/// Unreliable datagrams, alone and beside connections, come whole and say that they are such; those of a rank with
/// another secret do not.
#[test]
fn unreliable_datagrams_come_whole_from_ranks_of_the_job() {
    for (secret, comes) in [(SECRET, true), ([9; 16], false)] {
        for listen in [Listening::for_unreliable, Listening::for_both] {
            unreliable_datagram(secret, listen, comes);
        }
    }
}

fn unreliable_datagram(secret: Secret, listen: Listen, comes: bool) {
    let mut job = ranks([secret, SECRET], listen);
    let len = job[0].caps().datagram_bytes;
    let (out, into) = (memory(&mut job[0], len, 77), memory(&mut job[1], len, 0));
    job[1].post_receive(0, into, 5);
    let start = Instant::now();
    let (mut ended, mut posts) = (None, 0);
    // One may be lost even here.
    while ended.is_none() && (comes || posts < 1000) {
        posts += 1;
        assert_eq!(job[0].post_datagram(1, 0, &[out], 6), Ok(true));
        let sent = Completion { work: 6, done: Done::Sent, result: Ok(()) };
        assert_eq!(job[0].poll(), Some(sent));
        ended = job[1].poll();
        assert!(start.elapsed() < LONG);
    }
    let done = Done::Received { from: 0, len, datagram: true };
    assert_eq!(ended, comes.then_some(Completion { work: 5, done, result: Ok(()) }));
    assert!(bytes(&job[1], into) == vec![if comes { 77 } else { 0 }; len]);
    assert_eq!(job[1].check(), Ok(()));
}

/// Nobody answers unreliable datagrams by themselves: of a peer whose process has ended that is found out all the same.
#[test]
fn a_peer_of_unreliable_datagrams_that_has_ended_is_lost() {
    let [mut rank, peer] = ranks([SECRET; 2], Listening::for_unreliable);
    let out = memory(&mut rank, 8, 1);
    assert_eq!(rank.post_datagram(1, 0, &[out], 6), Ok(true));
    drop(peer);
    let start = Instant::now();
    let lost = loop {
        while rank.poll().is_some() {}
        if let Some(lost) = rank.take_lost() {
            break lost;
        }
        assert!(start.elapsed() < LONG, "nobody is lost");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!((lost.0, lost.1.lost_peer()), (1, Some(1)));
    assert!(lost.1.to_string().contains("its process has ended"), "{}", lost.1);
}

/// One peer has spoken alone, so its socket is looked at and the others' now and then. Where each look in vain costs a turn of
/// whoever shares the core, what another one says is seen at once.
#[test]
fn who_shares_its_core_looks_at_all_peers() {
    let looks = |shares: bool| {
        let mut job = job_of(3, Listening::at);
        job[0].share_core(shares);
        let into = memory(&mut job[0], 8, 0);
        let mut most = 0;
        // The first two wait for connections.
        for (message, from) in [1, 2, 1, 1, 2, 1, 1, 1, 2, 1, 2].into_iter().enumerate() {
            job[0].post_receive(0, into, from as u64);
            assert_eq!(job[from].post_send(0, 0, &[], 1), Ok(true));
            let (start, mut looks, mut waits) = (Instant::now(), 0, 2);
            while waits > 0 {
                waits -= usize::from(job[from].poll().is_some());
                looks += 1;
                waits -= usize::from(job[0].poll().is_some());
                assert!(start.elapsed() < LONG);
            }
            most = if message > 1 { most.max(looks) } else { 0 };
        }
        end(job);
        most
    };
    let (shared, alone) = (looks(true), looks(false));
    assert!(shared <= 4 && alone > shared, "{shared} and {alone} looks");
}

/// What rank 0 of a large job sees at the start: all others connect before it looks, more than strangers may.
#[test]
fn all_ranks_of_a_large_job_may_come_at_once() {
    const RANKS: usize = 80;
    let mut job = job_of(RANKS, Listening::at);
    let into = memory(&mut job[0], 8, 0);
    for me in 1..RANKS {
        job[0].post_receive(0, into, me as u64);
        assert_eq!(job[me].post_send(0, 0, &[], 1), Ok(true));
    }
    let (start, mut ended) = (Instant::now(), [0; 2]);
    while ended != [RANKS - 1; 2] {
        for (me, rank) in job.iter_mut().enumerate() {
            while let Some(completion) = rank.poll() {
                assert_eq!(completion.result, Ok(()), "at rank {me}");
                ended[usize::from(me > 0)] += 1;
            }
            assert_eq!(rank.take_lost(), None, "at rank {me}");
        }
        assert!(start.elapsed() < LONG, "{ended:?}");
    }
    end(job);
}
