//! What is posted at once is read at once, however much of it the socket takes.

use crate::job::{LONG, SECRET, bytes, memory};
use crate::{connect, end, ranks, until};
use fabric::{Done, Local, Remote, Span, Verbs};
use rnic::Listening;
use std::time::Instant;

/// What is posted at once may change at once, however much of it the socket takes, and nothing is taken while some of that waits.
#[test]
fn what_is_posted_at_once_is_read_at_once() {
    const LEN: usize = 1 << 20;
    let mut job = ranks([SECRET; 2], Listening::at);
    assert!(job[0].caps().at_once_bytes >= LEN);
    let mut out = vec![1u8; LEN];
    let part = |out: &[u8]| Local { span: Span { addr: out.as_ptr() as usize, len: LEN }, key: 0 };
    assert_eq!(job[0].post_at_once(1, &[part(&out)], None, 7), Ok(false), "there is no connection");
    let hello = memory(&mut job[0], 8, 9);
    let buffers: Vec<Local> = (0..40).map(|_| memory(&mut job[1], LEN, 0)).collect();
    for (at, buffer) in buffers.iter().enumerate() {
        job[1].post_receive(0, *buffer, at as u64);
    }
    assert_eq!(job[0].post_send(1, 0, &[hello], 0), Ok(true));
    until(&mut job, [1, 1]);
    // Rank 1 does not look, so its socket fills up.
    let mut posted = 0;
    while posted < buffers.len() - 1 {
        out.fill(posted as u8 + 1);
        if job[0].post_at_once(1, &[part(&out)], None, 8) != Ok(true) {
            break;
        }
        posted += 1;
        out.fill(0xee);
    }
    assert!((1..buffers.len() - 1).contains(&posted), "{posted} MB in a socket that nobody reads");
    assert_eq!(job[0].post_at_once(1, &[part(&out)], None, 8), Ok(false), "others wait");
    let ended = until(&mut job, [posted, posted]);
    assert!(ended[0].iter().all(|ended| ended.work == 8 && ended.result == Ok(())));
    for (at, ended) in ended[1].iter().enumerate() {
        assert!(bytes(&job[1], buffers[ended.work as usize]) == vec![at as u8 + 1; LEN], "message {at}");
    }
    end(job);
}

/// It goes to memory of the peer just as well.
#[test]
fn what_is_posted_at_once_may_be_a_write() {
    let mut job = ranks([SECRET; 2], Listening::at);
    let (hello, target) = (memory(&mut job[0], 8, 9), memory(&mut job[1], 100_000, 0));
    let remote = Remote { addr: target.span.addr as u64, key: target.key };
    assert_eq!(job[0].post_write(1, 0, &[hello], remote, 0), Ok(true));
    until(&mut job, [1, 0]);
    let out = [vec![3u8; 60_000], vec![4u8; 40_000]];
    let parts = [0, 1].map(|at: usize| Span { addr: out[at].as_ptr() as usize, len: out[at].len() });
    let posted = job[0].post_at_once(1, &parts.map(|span| Local { span, key: 0 }), Some(remote), 1);
    drop(out);
    assert_eq!(posted, Ok(true));
    let fence = memory(&mut job[1], 8, 0);
    job[1].post_receive(0, fence, 5);
    assert_eq!(job[0].post_send(1, 0, &[hello], 2), Ok(true));
    until(&mut job, [2, 1]);
    assert!(bytes(&job[1], target) == [vec![3u8; 60_000], vec![4u8; 40_000]].concat());
    end(job);
}

/// By datagram a message stays where it lies until it is acknowledged, for it may be lost. Who has nothing to do but to wait for that copies it.
#[test]
fn a_peer_that_computes_holds_nobody_up() {
    for shares_core in [false, true] {
        holds_nobody_up(shares_core);
    }
}

/// Who shares its core may sleep after 32 looks.
fn holds_nobody_up(shares_core: bool) {
    let mut job = ranks([SECRET; 2], Listening::for_datagrams);
    job[0].share_core(shares_core);
    connect(&mut job);
    let (out, into) = (memory(&mut job[0], 60_000, 77), memory(&mut job[1], 64_000, 0));
    job[1].post_receive(0, into, 9);
    for work in [2, 3] {
        assert_eq!(job[0].post_send(1, 0, &[out], work), Ok(true));
    }
    let (start, mut round, mut ended) = (Instant::now(), 0, Vec::new());
    while ended.len() < 2 {
        ended.extend(job[0].poll());
        job[0].idle(round);
        round += 1;
        assert!(start.elapsed() < LONG, "{ended:?}");
    }
    assert!(!shares_core || round <= 40, "{round} looks");
    assert!(
        ended
            .iter()
            .zip([2, 3])
            .all(|(c, work)| (c.work, c.done) == (work, Done::Sent) && c.result == Ok(()))
    );
    job[0].poke_bytes(out.span.addr, &[0; 60_000]);
    until(&mut job, [0, 1]);
    assert_eq!(bytes(&job[1], into)[..60_000], vec![77; 60_000]);
    job[1].post_receive(0, into, 10);
    until(&mut job, [0, 1]);
    assert_eq!(job[0].post_send(1, 0, &[out], 4), Ok(true));
    job[1].post_receive(0, into, 11);
    let ended = until(&mut job, [1, 1]);
    assert_eq!(ended[0].iter().map(|c| c.work).collect::<Vec<_>>(), [4], "nothing is told twice");
    assert_eq!(bytes(&job[1], into)[..60_000], vec![0; 60_000]);
    end(job);
}
