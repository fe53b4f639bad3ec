//! The end of ranks by reliable datagrams.

use crate::job::{LOCAL, LONG, SECRET, memory};
use fabric::Verbs;
use rnic::{Listening, Rnic};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// One who is heard of for the first time while a rank leaves: it does not wait for a rank that has gone without a word.
#[test]
fn who_is_heard_of_by_a_rank_that_leaves_is_taken_leave_of() {
    let listening: Vec<Listening> = (0..3).map(|_| Listening::for_datagrams(LOCAL).unwrap()).collect();
    let addresses: Vec<SocketAddr> = listening.iter().map(|l| l.address().unwrap()).collect();
    let open = |(me, l): (usize, Listening)| l.open(me, addresses.clone().into(), SECRET).unwrap();
    let mut job = listening.into_iter().enumerate().map(open);
    let [mut rank, mut known, mut late]: [Rnic; 3] = [0; 3].map(|_| job.next().unwrap());
    let into = memory(&mut rank, 8, 0);
    (0..2).for_each(|work| rank.post_receive(0, into, work));
    let start = Instant::now();
    assert_eq!(known.post_send(0, 0, &[], 1), Ok(true));
    let mut ended = 0;
    while ended < 2 {
        ended += [rank.poll(), known.poll()].iter().flatten().count();
        assert!(start.elapsed() < LONG);
    }
    std::thread::scope(|scope| {
        scope.spawn(move || drop(rank));
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(late.post_send(0, 0, &[], 1), Ok(true));
        while late.poll().is_none() {
            assert!(start.elapsed() < LONG);
        }
        let leaves = Instant::now();
        drop(late);
        assert!(leaves.elapsed() < Duration::from_secs(3));
        drop(known);
    });
}
