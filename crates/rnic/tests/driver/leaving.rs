//! The end of ranks by reliable datagrams.

use crate::job::{LONG, memory};
use crate::job_of;
use fabric::Verbs;
use rnic::{Listening, Rnic};
use std::time::{Duration, Instant};

/// One who is heard of for the first time while a rank leaves: it does not wait for a rank that has gone without a word.
#[test]
fn who_is_heard_of_by_a_rank_that_leaves_is_taken_leave_of() {
    let job: Result<[Rnic; 3], _> = job_of(3, Listening::for_datagrams).try_into();
    let Ok([mut rank, mut known, mut late]) = job else { panic!("three were asked for") };
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
