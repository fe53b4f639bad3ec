//! Adapters of two ranks over the loopback: what the verbs promise, who is let in, and who is not.

use fabric::{Completion, Done, Fault, Local, Remote, Verbs};
use rnic::{Listening, Rnic, Secret};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

const SECRET: Secret = [7; 16];
const LONG: Duration = Duration::from_secs(60);

fn ranks(secrets: [Secret; 2]) -> [Rnic; 2] {
    let listening = [0, 1].map(|_| Listening::at(Ipv4Addr::LOCALHOST).unwrap());
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let mut secrets = secrets.into_iter();
    let mut me = 0..;
    listening.map(|l| l.open(me.next().unwrap(), addresses.clone().into(), secrets.next().unwrap()).unwrap())
}

/// Memory of a rank that its adapter knows, filled with this byte.
fn memory(rank: &mut Rnic, len: usize, byte: u8) -> Local {
    let span = rank.allocate(len);
    (0..len).for_each(|at| rank.poke_bytes(span.addr + at, &[byte]));
    Local { span, key: rank.register(0, span).unwrap() }
}

fn bytes(rank: &Rnic, local: Local) -> Vec<u8> {
    let mut out = vec![0; local.span.len];
    rank.peek_bytes(local.span, &mut out);
    out
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

/// Ranks end side by side: each waits for the other to take leave.
fn end(job: [Rnic; 2]) {
    std::thread::scope(|scope| job.into_iter().for_each(|rank| drop(scope.spawn(move || drop(rank)))));
}

/// Both begin to connect before either has heard of the other.
#[test]
fn who_connects_at_once_has_one_connection_and_loses_nothing() {
    for _ in 0..20 {
        let mut job = ranks([SECRET; 2]);
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
    for len in [1, 255, 256, 257, 5000, 64_512, 3 << 20] {
        let mut job = ranks([SECRET; 2]);
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

/// More than a peer has buffers for waits in the stream, and nothing is lost.
#[test]
fn messages_wait_for_buffers() {
    let mut job = ranks([SECRET; 2]);
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

/// Memory that is not registered, or not so long, is not touched, and both sides are told.
#[test]
fn access_outside_of_registered_memory_ends_the_connection() {
    let mut job = ranks([SECRET; 2]);
    let (out, target) = (memory(&mut job[0], 100, 77), memory(&mut job[1], 64, 1));
    let remote = Remote { addr: target.span.addr as u64, key: target.key };
    job[0].post_write(1, 0, &[out], remote, 1).unwrap();
    let start = Instant::now();
    let mut faults = [None, None];
    while faults.iter().any(Option::is_none) {
        for (rank, fault) in job.iter_mut().zip(&mut faults) {
            rank.poll();
            *fault = fault.take().or(rank.check().err());
        }
        assert!(start.elapsed() < LONG, "{faults:?}");
    }
    assert_eq!(bytes(&job[1], target), vec![1; 64]);
    assert_eq!(job[0].post_send(1, 0, &[], 2), Err(Fault::PeerGone(1)));
}

#[test]
fn without_the_secret_nobody_is_let_in() {
    let mut job = ranks([SECRET, [8; 16]]);
    assert_eq!(job[0].post_send(1, 0, &[], 5), Ok(true));
    let ended = until(&mut job, [1, 0]);
    assert!(ended[0][0].result.is_err());
    let said = job[0].check().unwrap_err().to_string();
    assert!(said.contains("cannot connect to rank 1 at 127.0.0.1:"), "{said}");
}

/// A port scan, and strangers who say nothing: ranks find each other all the same.
#[test]
fn strangers_are_in_nobodys_way() {
    let listening = [0, 1].map(|_| Listening::at(Ipv4Addr::LOCALHOST).unwrap());
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let mut silent = Vec::new();
    for at in 0..30 {
        let mut stranger = TcpStream::connect(addresses[at % 2]).unwrap();
        if at % 3 == 0 {
            stranger.write_all(&vec![at as u8; 700]).unwrap();
        }
        silent.push(stranger);
    }
    let mut me = 0..;
    let mut job = listening.map(|l| l.open(me.next().unwrap(), addresses.clone().into(), SECRET).unwrap());
    let into = memory(&mut job[1], 10, 0);
    job[1].post_receive(0, into, 1);
    job[0].post_send(1, 0, &[], 2).unwrap();
    until(&mut job, [1, 1]);
    assert_eq!(job.each_mut().map(|rank| rank.check()), [Ok(()), Ok(())]);
    end(job);
}
