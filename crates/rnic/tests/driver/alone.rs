//! Whom the kernel does not tell of, since it speaks alone.

use super::job::{LONG, Listen, SECRET, memory};
use super::{TRANSPORTS, end, job_of, ranks, until};
use fabric::{Nap, Verbs};
use rnic::Rnic;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Messages to and fro, far more than it takes to be taken for who speaks alone.
const MANY: usize = 300;
/// A look in vain behind which a rank may sleep.
const LATE: u32 = 32;

/// An empty message leaves.
fn speaks(job: &mut [Rnic], from: usize, to: usize) {
    assert_eq!(job[from].post_send(to, 0, &[], 1), Ok(true));
    job[from].flush(to);
}

/// Ranks that have spoken to each other for long.
fn talking(listen: Listen) -> [Rnic; 2] {
    let mut job = ranks([SECRET; 2], listen);
    let buffers = job.each_mut().map(|rank| memory(rank, 8, 0));
    for message in 0..2 * MANY {
        let (from, to) = (message % 2, 1 - message % 2);
        job[to].post_receive(0, buffers[to], 2);
        speaks(&mut job, from, to);
        until(&mut job, [1, 1]);
    }
    job
}

/// Whether the kernel says that there is something, to who sleeps for a moment at most.
fn is_told(rank: &Rnic) -> bool {
    // SAFETY: the adapter has it open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(rank.descriptor()) };
    let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&moment)) == Ok(1)
}

#[test]
fn who_speaks_alone_is_not_told_of_before_somebody_is_to_sleep() {
    let sleeps: [fn(&mut Rnic); 3] = [
        |rank| {
            rank.idle(LATE);
        },
        |rank| rank.rests(),
        |rank| rank.waiters(2),
    ];
    for (listen, is_to_sleep) in TRANSPORTS.into_iter().flat_map(|listen| sleeps.map(|sleep| (listen, sleep)))
    {
        let mut job = talking(listen);
        let buffer = memory(&mut job[0], 8, 0);
        job[0].post_receive(0, buffer, 2);
        speaks(&mut job, 1, 0);
        assert!(!is_told(&job[0]));
        assert!(
            (0..LATE).all(|round| !job[0].idle(round).sleeps()),
            "it may not sleep, for nobody would wake it"
        );
        is_to_sleep(&mut job[0]);
        assert!(is_told(&job[0]));
        until(&mut job, [1, 1]);
        end(job);
    }
}

/// Rank 1 says much to rank 0, and then one thing more: whether rank 0 is told of that.
fn is_told_after_much(job: &mut [Rnic; 2]) -> bool {
    let buffer = memory(&mut job[0], 8, 0);
    let mut is_told_of_last = false;
    for message in 0..=MANY {
        job[0].post_receive(0, buffer, 2);
        speaks(job, 1, 0);
        is_told_of_last = message == MANY && is_told(&job[0]);
        until(job, [1, 1]);
    }
    is_told_of_last
}

/// The thread beside the application does not say when it is awake: the kernel tells of all for some time.
#[test]
fn who_rests_is_told_of_all_for_some_time() {
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        job[0].rests();
        let start = Instant::now();
        // A machine that has stood still says nothing.
        assert!(is_told_after_much(&mut job) || start.elapsed().as_millis() > 150);
        end(job);
    }
}

/// One thread waits, and another one looks.
#[test]
fn who_sleeps_while_others_look_is_told_of_all_until_it_is_awake() {
    for listen in TRANSPORTS {
        let mut job = ranks([SECRET; 2], listen);
        job[0].idle(LATE);
        assert!(is_told_after_much(&mut job));
        job[0].awake();
        assert!(!is_told_after_much(&mut job));
        end(job);
    }
}

/// Others are heard beside who has spoken alone, and it beside them.
#[test]
fn who_speaks_alone_keeps_nobody_waiting() {
    for listen in TRANSPORTS {
        let mut job = job_of(3, listen);
        let buffer = memory(&mut job[0], 8, 0);
        for message in 0..2 * MANY {
            let from = if message > MANY && message % 50 < 2 { 2 } else { 1 };
            job[0].post_receive(0, buffer, 2);
            speaks(&mut job, from, 0);
            let (start, mut waits) = (Instant::now(), 2);
            while waits > 0 {
                waits -= usize::from(job[from].poll().is_some());
                waits -= usize::from(job[0].poll().is_some());
                assert!(start.elapsed() < LONG);
            }
        }
        end(job);
    }
}
