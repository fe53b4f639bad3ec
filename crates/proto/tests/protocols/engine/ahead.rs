//! Messages that one look brings, and that their receiver copies: by one call, and each as if it were alone.

use crate::fake::{Fake, Net};
use fabric::Span;
use proto::{Engine, Event, Failure, Limits, Manner, Mode, OpId, Outcome, Want};
use std::cell::RefCell;
use std::rc::Rc;

const LEN: usize = 8192;
const CONTEXT: u64 = 1;

struct Job {
    net: Rc<RefCell<Net>>,
    ranks: Vec<Engine<Fake>>,
    /// What message `i` brings, and where it comes.
    data: Vec<Vec<u8>>,
    buffers: Vec<Vec<u8>>,
}

impl Job {
    fn new(size: usize, messages: usize) -> Job {
        Job::of(size, messages, LEN)
    }

    /// Of this length each.
    fn of(size: usize, messages: usize, len: usize) -> Job {
        let net = Net::new(size, 64);
        net.borrow_mut().frame_bytes = 256 << 10;
        let limits = Limits { eager_bytes: 256 << 10, unexpected_bytes: 1 << 20, ..Limits::default() };
        let engine = |me| {
            let mut engine = Engine::new(Fake::new(me, &net), limits.clone());
            engine.fix_manner(Manner::named("pulled"));
            engine
        };
        let ranks = (0..size).map(engine).collect();
        let data = (0..messages).map(|i| (0..len).map(|at| (at % 251 + i) as u8).collect()).collect();
        Job { net, ranks, data, buffers: vec![vec![0; len]; messages] }
    }

    fn receive(&mut self, at: usize, source: usize, i: usize, len: usize) -> OpId {
        let room = Span { addr: self.buffers[i].as_mut_ptr() as usize, len };
        let want = Want { source: Some(source), context: CONTEXT, tag: Some(i as i32) };
        self.ranks[at].receive(want, room).unwrap()
    }

    fn send(&mut self, from: usize, to: usize, i: usize) -> OpId {
        let data = Span { addr: self.data[i].as_ptr() as usize, len: self.data[i].len() };
        let sent = self.ranks[from].send(to, CONTEXT, i as i32, data, Mode::Standard).unwrap();
        sent.expect("its receiver has not copied it")
    }

    /// Lets all frames arrive.
    fn arrive(&mut self) {
        let size = self.ranks.len();
        for (from, to) in (0..size * size).map(|pair| (pair / size, pair % size)) {
            while self.net.borrow_mut().under_way(from, to) {
                self.net.borrow_mut().arrive(from, to);
            }
        }
    }

    fn settle(&mut self) {
        for _ in 0..32 {
            self.arrive();
            self.ranks.iter_mut().for_each(|rank| _ = rank.poll().unwrap());
        }
    }

    fn take(&mut self, rank: usize, ops: &[OpId]) -> Vec<Outcome> {
        ops.iter().map(|op| self.ranks[rank].take(*op).expect("it has ended")).collect()
    }

    /// How many calls have read several, and how many pieces there were in all.
    fn calls(&self, rank: usize) -> (usize, u64) {
        (self.net.borrow().calls[rank], self.ranks[rank].counters().get(Event::PiecePulled))
    }
}

/// What is there is copied by the look that finds it, in calls of 128 KB at most, and every sender ends.
#[test]
fn what_one_look_brings_is_read_by_one_call() {
    for (messages, len, calls) in
        [(1, LEN, 0), (2, LEN, 1), (8, LEN, 1), (8, 40_000, 3), (7, 40_000, 2), (4, 65_537, 0)]
    {
        let mut job = Job::of(2, messages, len);
        let received: Vec<OpId> = (0..messages).map(|i| job.receive(1, 0, i, len)).collect();
        let sent: Vec<OpId> = (0..messages).map(|i| job.send(0, 1, i)).collect();
        job.arrive();
        job.ranks[1].poll().unwrap();
        assert_eq!(job.calls(1), (calls, messages as u64));
        assert!(job.take(1, &received).iter().all(|ends| ends.failure.is_none() && ends.len == len as u64));
        assert_eq!(job.buffers, job.data);
        job.ranks[0].poll().unwrap();
        assert!(job.take(0, &sent).iter().all(|ends| ends.failure.is_none()));
        assert_eq!(job.net.borrow().shares_held(0), 0);
    }
}

/// Where a copy is refused in the middle of a call what has been read is not read again, and the rest comes otherwise.
#[test]
fn what_could_not_be_read_ahead_is_told_by_itself() {
    for granted in 0..6 {
        let mut job = Job::new(2, 6);
        let received: Vec<OpId> = (0..6).map(|i| job.receive(1, 0, i, LEN)).collect();
        let sent: Vec<OpId> = (0..6).map(|i| job.send(0, 1, i)).collect();
        job.net.borrow_mut().grants[1] = granted;
        job.settle();
        assert_eq!(job.calls(1).1, granted as u64);
        assert!(job.take(1, &received).iter().all(|ends| ends.failure.is_none()));
        assert!(job.take(0, &sent).iter().all(|ends| ends.failure.is_none()));
        assert_eq!(job.buffers, job.data);
    }
}

/// A receive that is too short ends with its error, and what was withdrawn is not copied; those around them are.
#[test]
fn what_is_no_plain_copy_is_none_in_a_call() {
    let mut job = Job::new(2, 7);
    let received: Vec<OpId> =
        (0..7).map(|i| job.receive(1, 0, i, if i == 3 { LEN / 2 } else { LEN })).collect();
    let sent: Vec<OpId> = (0..7).map(|i| job.send(0, 1, i)).collect();
    assert!(job.ranks[0].cancel(sent[5]));
    job.settle();
    assert_eq!(job.calls(1).1, 6);
    for (i, op) in received.iter().enumerate() {
        let ends = job.ranks[1].take(*op);
        match i {
            3 => assert!(matches!(*ends.unwrap().failure.unwrap(), Failure::Truncated { .. })),
            5 => assert!(ends.is_none() && job.buffers[5] == [0; LEN]),
            _ => assert!(ends.unwrap().failure.is_none() && job.buffers[i] == job.data[i]),
        }
    }
    assert!((0..7).all(|i| job.ranks[0].take(sent[i]).is_some()));
}

/// From each rank by itself, whoever comes first.
#[test]
fn each_rank_is_read_by_itself() {
    let mut job = Job::new(3, 8);
    let received: Vec<OpId> = (0..8).map(|i| job.receive(2, i % 2, i, LEN)).collect();
    let sent: Vec<OpId> = (0..8).map(|i| job.send(i % 2, 2, i)).collect();
    job.arrive();
    job.ranks[2].poll().unwrap();
    assert_eq!(job.calls(2), (2, 8));
    assert!(job.take(2, &received).iter().all(|ends| ends.failure.is_none()));
    assert_eq!(job.buffers, job.data);
    job.settle();
    (0..8).for_each(|i| assert!(job.ranks[i % 2].take(sent[i]).is_some()));
}

/// Windows of receives and sends on both sides: copies that are left for the last send are made by one call.
#[test]
fn copies_that_were_left_are_made_by_one_call() {
    let mut job = Job::new(2, 8);
    let mut calls = Vec::new();
    for _ in 0..6 {
        job.buffers.iter_mut().for_each(|buffer| buffer.fill(0));
        // Rank 0's messages are there when rank 1 posts its receives, behind which it sends as many.
        let sent: Vec<OpId> = (0..4).map(|i| job.send(0, 1, i)).collect();
        job.arrive();
        let before = job.calls(1);
        let received: Vec<OpId> = (0..4).map(|i| job.receive(1, 0, i, LEN)).collect();
        let answers: Vec<OpId> = (4..8).map(|i| job.send(1, 0, i)).collect();
        calls.push((job.calls(1).0 - before.0, job.calls(1).1 - before.1));
        let answered: Vec<OpId> = (4..8).map(|i| job.receive(0, 1, i, LEN)).collect();
        job.settle();
        for (rank, ops) in [(0, sent), (1, received), (1, answers), (0, answered)] {
            assert!(job.take(rank, &ops).iter().all(|ends| ends.failure.is_none()));
        }
        assert_eq!(job.buffers, job.data);
    }
    assert_eq!(calls[5], (1, 4), "{calls:?}");
}
