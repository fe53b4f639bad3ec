//! What a look brings besides messages: faults, room for what is held, copies beside the application,
//! and what ends without any look of others.

use crate::fake::{Fake, Net};
use fabric::{Fault, Shares, Span};
use proto::{Engine, Event, Limits, Mode, OpId, Want};
use std::cell::RefCell;
use std::rc::Rc;

const EAGER: usize = 8;
const CONTEXT: u64 = 3;
/// Looks after which something has happened, if it ever does.
const MANY: usize = 10_000;
const MB: usize = 1 << 20;

struct Job {
    net: Rc<RefCell<Net>>,
    ranks: Vec<Engine<Fake>>,
}

impl Job {
    fn new(size: usize, unexpected_bytes: usize) -> Job {
        let net = Net::new(size, 64);
        let limits = Limits { eager_bytes: EAGER, unexpected_bytes, adapt: false, ..Limits::default() };
        let ranks = (0..size).map(|me| Engine::new(Fake::new(me, &net), limits.clone())).collect();
        Job { net, ranks }
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

    fn send(&mut self, from: usize, to: usize, tag: i32, data: &[u8], mode: Mode) -> Option<OpId> {
        let span = Span { addr: data.as_ptr() as usize, len: data.len() };
        self.ranks[from].send(to, CONTEXT, tag, span, mode).unwrap()
    }

    fn receive(&mut self, at: usize, source: usize, tag: i32, buffer: &mut [u8]) -> OpId {
        let span = Span { addr: buffer.as_mut_ptr() as usize, len: buffer.len() };
        self.ranks[at].receive(want(source, tag), span).unwrap()
    }

    fn count(&self, at: usize, event: Event) -> u64 {
        self.ranks[at].counters().get(event)
    }
}

fn want(source: usize, tag: i32) -> Want {
    Want { source: Some(source), context: CONTEXT, tag: Some(tag) }
}

/// A fault that only the device's check reports is seen by who tests, not only by who waits.
#[test]
fn tests_see_faults() {
    let mut job = Job::new(2, 1 << 20);
    job.net.borrow_mut().faults[0] = Some(Fault::PeerGone(1));
    let found = (0..MANY).find_map(|_| job.ranks[0].progress().err());
    assert_eq!(found, Some(Fault::PeerGone(1)));
}

/// As is one that came up while the application computed.
#[test]
fn faults_found_aside_are_told() {
    let mut job = Job::new(2, 1 << 20);
    job.net.borrow_mut().faults[0] = Some(Fault::PeerGone(1));
    (0..MANY).for_each(|_| _ = job.ranks[0].progress_aside(false));
    assert!(job.net.borrow().faults[0].is_none(), "nobody has looked");
    assert_eq!(job.ranks[0].progress(), Err(Fault::PeerGone(1)));
    assert_eq!(job.ranks[0].progress(), Ok(false), "it is told once");
}

/// A wait looks for the message of the one receive that is posted where that comes from, and leaves alone what comes from others.
#[test]
fn a_posted_receive_is_looked_for() {
    let mut job = Job::new(3, 1 << 20);
    let mut buffer = [0; EAGER];
    let op = job.receive(0, 1, 7, &mut buffer);
    job.send(2, 0, 7, b"another!", Mode::Standard);
    job.arrive();
    assert!(!job.ranks[0].look_for(op), "nothing has come from there");
    job.send(1, 0, 7, b"message", Mode::Standard);
    job.arrive();
    assert!(job.ranks[0].look_for(op));
    assert!(!job.ranks[0].look_for(op), "it is over");
    assert_eq!(job.ranks[0].take_plain(op), Some((7, 7)));
    assert_eq!((&buffer[..7], job.ranks[0].arrived().count()), (&b"message"[..], 0));
}

/// It does not where another one is posted, which may be for what comes first, nor finds what is for none, or is long.
#[test]
fn what_is_not_plain_is_not_looked_for() {
    let mut job = Job::new(2, 1 << 20);
    let (mut buffers, long) = ([[0; EAGER]; 3], [1; 2 * EAGER]);
    let [one, two, three] = &mut buffers;
    let ops = [job.receive(0, 1, 7, one), job.receive(0, 1, 8, two)];
    job.send(1, 0, 7, b"first", Mode::Standard);
    job.arrive();
    assert!(!job.ranks[0].look_for(ops[0]), "two are posted");
    job.ranks[0].progress().unwrap();
    assert_eq!(job.ranks[0].take_plain(ops[0]), Some((7, 5)));
    job.send(1, 0, 9, b"for none", Mode::Standard);
    job.send(1, 0, 8, &long, Mode::Standard);
    job.arrive();
    assert!(!job.ranks[0].look_for(ops[1]), "what is not for it comes first");
    job.ranks[0].progress().unwrap();
    assert_eq!(job.ranks[0].arrived().count(), 1);
    let anyone = Want { source: None, context: CONTEXT, tag: Some(10) };
    let room = Span { addr: three.as_mut_ptr() as usize, len: EAGER };
    let any = job.ranks[0].receive(anyone, room).unwrap();
    assert!(!job.ranks[0].look_for(any), "it may come from anywhere");
}

/// Of two that send at once none copies before its own message has left: the other one would wait for it as long.
#[test]
fn who_sends_copies_nothing_first() {
    let mut job = Job::new(2, 1 << 20);
    let (data, mut buffer) = (vec![7u8; 30_000], vec![0u8; 30_000]);
    job.send(0, 1, 1, &data, Mode::Standard).expect("it waits for its receive");
    let receive = job.receive(1, 0, 1, &mut buffer);
    job.arrive();
    job.send(1, 0, 2, &data, Mode::Standard).expect("it waits for its receive");
    assert!(!job.ranks[1].is_done(receive), "copied while it sent");
    job.ranks[1].progress().unwrap();
    assert!(job.ranks[1].is_done(receive) && buffer == data);
}

/// A rank that sends to itself writes into the buffer of its receive, in the order of its messages.
#[test]
fn to_oneself_there_is_one_copy_where_a_receive_is_posted() {
    for (len, mode) in [(100, Mode::Standard), (30_000, Mode::Standard), (30_000, Mode::Synchronous)] {
        let mut job = Job::new(2, 1 << 20);
        let (first, second) = ([1u8; 8], vec![7u8; len]);
        let (mut short, mut long) = ([0u8; 8], vec![0u8; len]);
        assert_eq!(job.send(0, 0, 1, &first, Mode::Standard), None);
        let receives = [job.receive(0, 0, 1, &mut short), job.receive(0, 0, 1, &mut long)];
        job.arrive();
        assert_eq!(job.send(0, 0, 1, &second, mode), None, "it has left");
        assert!(receives.iter().all(|op| job.ranks[0].is_done(*op)), "both are here without another look");
        assert!(short == first && long == second, "{len} bytes");
    }
}

/// What nobody waits for yet waits, and what is too long for its receive is cut.
#[test]
fn to_oneself_receives_may_come_later_and_be_too_short() {
    let mut job = Job::new(2, 1 << 20);
    let (data, mut buffer) = (vec![7u8; 30_000], vec![0u8; 30_000]);
    job.send(0, 0, 1, &data, Mode::Synchronous).expect("it waits for its receive");
    let receive = job.receive(0, 0, 1, &mut buffer);
    // Nothing overtakes what is under way.
    let mut other = vec![0u8; 30_000];
    let receives = [receive, job.receive(0, 0, 1, &mut other)];
    let twos = vec![2u8; 30_000];
    job.send(0, 0, 1, &twos, Mode::Synchronous).expect("it waits for its turn");
    for _ in 0..10 {
        job.arrive();
        job.ranks[0].progress().unwrap();
    }
    assert!(receives.iter().all(|op| job.ranks[0].is_done(*op)));
    assert!(buffer == data && other == twos);
    let mut little = [0u8; 100];
    let receive = job.receive(0, 0, 2, &mut little);
    assert_eq!(job.send(0, 0, 2, &data, Mode::Standard), None);
    let outcome = job.ranks[0].take(receive).expect("it is here");
    assert!(outcome.failure.is_some() && outcome.len == 100 && little == [7; 100]);
}

/// The message that is wanted stands behind others that nobody wants, more of them than may be kept; a
/// third rank has something to say in each look. By whatever looks.
#[test]
fn traffic_with_others_does_not_hold_a_message_back() {
    let looks: [fn(&mut Engine<Fake>); 3] = [
        |engine| _ = engine.progress().unwrap(),
        |engine| _ = engine.poll().unwrap(),
        |engine| _ = engine.progress_aside(false),
    ];
    for look in looks {
        let mut job = Job::new(3, 1000);
        let (data, mut buffer, mut other) = ([1u8; EAGER], [0u8; EAGER], [0u8; EAGER]);
        for _ in 0..40 {
            assert_eq!(job.send(1, 0, 1, &data, Mode::Standard), None);
        }
        assert_eq!(job.send(1, 0, 2, &data, Mode::Standard), None);
        let wanted = job.receive(0, 1, 2, &mut buffer);
        let arrives = (0..MANY).any(|_| {
            let op = job.receive(0, 2, 3, &mut other);
            job.send(2, 0, 3, &data, Mode::Standard);
            job.arrive();
            look(&mut job.ranks[0]);
            assert!(job.ranks[0].take(op).is_some(), "the third rank is heard");
            job.ranks[0].is_done(wanted)
        });
        assert!(arrives, "the message behind the unexpected ones");
    }
}

/// Announcements of long messages are memory too.
#[test]
fn announcements_are_held_back() {
    let mut job = Job::new(2, 500);
    let data = [1u8; 100];
    let sends: Vec<_> = (0..6).map(|_| job.send(1, 0, 1, &data, Mode::Standard).unwrap()).collect();
    job.arrive();
    job.ranks[0].progress().unwrap();
    let kept = job.ranks[0].arrived().count();
    assert!(kept > 0 && kept < sends.len(), "{kept} of {} are kept", sends.len());
    let mut buffer = [0u8; 100];
    for _ in &sends {
        let op = job.receive(0, 1, 1, &mut buffer);
        for _ in 0..MANY {
            job.ranks[0].progress().unwrap();
            job.ranks[1].progress().unwrap();
        }
        assert_eq!(job.ranks[0].take(op).map(|outcome| outcome.len), Some(100));
    }
}

/// Long messages whose both sides compute: who found the other's buffer copies, and nobody else.
#[test]
fn one_side_copies_while_both_compute() {
    for receive_first in [true, false] {
        let mut job = Job::new(2, 1 << 20);
        let data: Vec<u8> = (0..3 * MB).map(|i| (i * 7) as u8).collect();
        let mut buffer = vec![0u8; data.len()];
        let mut receive = None;
        if receive_first {
            receive = Some(job.receive(0, 1, 1, &mut buffer));
            job.arrive();
        }
        let send = job.send(1, 0, 1, &data, Mode::Standard).unwrap();
        job.arrive();
        let receive = receive.unwrap_or_else(|| {
            job.ranks[0].progress().unwrap();
            job.receive(0, 1, 1, &mut buffer)
        });
        let (owner, helper) = if receive_first { (1, 0) } else { (0, 1) };
        assert!(job.ranks[owner].needs_care(), "the owner's application may compute");
        for _ in 0..MANY {
            job.arrive();
            job.ranks.iter_mut().for_each(|engine| _ = engine.progress_aside(false));
        }
        assert!(job.ranks[0].take(receive).is_some() && job.ranks[1].take(send).is_some());
        assert!(buffer == data);
        let copies = |rank| job.count(rank, Event::PiecePulled) + job.count(rank, Event::PiecePushed);
        assert_eq!((copies(owner), copies(helper)), (3, 0), "receive first: {receive_first}");
        assert!(job.ranks.iter().all(|engine| !engine.needs_care()));
    }
}

/// Who is inside MPI copies to the end; the owner's thread leaves it to that side as long as it gets on.
#[test]
fn the_core_is_the_applications_while_the_peer_copies() {
    let mut job = Job::new(2, 1 << 20);
    let data = vec![3u8; 8 * MB];
    let mut buffer = vec![0u8; data.len()];
    job.receive(0, 1, 1, &mut buffer);
    job.arrive();
    job.send(1, 0, 1, &data, Mode::Standard).unwrap();
    job.arrive();
    job.ranks[0].progress_aside(false); // learns of the match
    let share = fabric::Share { owner: 0, index: 0 };
    let claim = |job: &Job| job.ranks[0].device().add(share, fabric::ShareWord::Claim, 1);
    for _ in 0..10 {
        claim(&job); // the receiver is at work
        assert!(!job.ranks[1].progress_aside(false));
    }
    assert!(job.ranks[1].progress_aside(false), "it has stopped");
}

/// A look beside the application copies little, whatever there is to copy.
#[test]
fn a_look_aside_is_short() {
    let mut job = Job::new(2, 1 << 20);
    let data = vec![5u8; 64 * MB];
    let mut buffers = vec![vec![0u8; data.len()]; 2];
    let sends = [job.send(1, 0, 1, &data, Mode::Standard), job.send(1, 0, 1, &data, Mode::Standard)];
    job.arrive();
    job.ranks[0].progress().unwrap();
    let receives: Vec<_> = buffers.iter_mut().map(|buffer| job.receive(0, 1, 1, buffer)).collect();
    let mut looks = 0;
    while receives.iter().any(|op| !job.ranks[0].is_done(*op)) {
        let before = job.ranks[0].counters().sum(proto::event::Amount::PulledBytes);
        job.ranks[0].progress_aside(false);
        let copied = job.ranks[0].counters().sum(proto::event::Amount::PulledBytes) - before;
        assert!(copied <= MB as u64, "{copied} bytes in a look");
        looks += 1;
        assert!(looks < MANY);
    }
    (0..MANY).for_each(|_| _ = job.ranks[1].progress().unwrap());
    assert!(sends.iter().all(|op| job.ranks[1].take(op.unwrap()).is_some()));
}

/// What was cancelled ends by itself: nobody receives, nobody looks around.
#[test]
fn cancelled_sends_end_by_themselves() {
    for (len, mode) in [(4, Mode::Synchronous), (0, Mode::Synchronous), (100, Mode::Standard)] {
        let mut job = Job::new(2, 1 << 20);
        let data = vec![1u8; len];
        let op = job.send(1, 0, 1, &data, mode).unwrap();
        assert!(job.ranks[1].cancel(op));
        assert!(job.ranks[1].take(op).is_some_and(|outcome| outcome.cancelled));
        assert_eq!(job.net.borrow().shares_held(1), 0);
        job.arrive();
        job.ranks[0].progress().unwrap();
        assert_eq!(job.ranks[0].probe(&want(1, 1)), None, "nobody sees it");
        assert!(job.ranks[0].probe_matched(&want(1, 1)).is_none());
        let mut buffer = [0u8; 100];
        let receive = job.receive(0, 1, 1, &mut buffer);
        let second = job.send(1, 0, 1, &data, mode);
        job.arrive();
        for _ in 0..MANY {
            job.ranks.iter_mut().for_each(|engine| _ = engine.progress().unwrap());
            job.arrive();
        }
        assert_eq!(job.ranks[0].take(receive).map(|outcome| outcome.len), Some(len as u64));
        assert!(second.is_none_or(|op| job.ranks[1].take(op).is_some_and(|outcome| !outcome.cancelled)));
    }
}

/// What was sent for good is asked back: it ends as cancelled if no receive has met it.
#[test]
fn what_was_sent_for_good_is_asked_back() {
    for is_met in [false, true] {
        let mut job = Job::new(2, 1 << 20);
        let (data, mut buffer) = ([1u8; 100], [0u8; 100]);
        let receive = is_met.then(|| job.receive(0, 1, 1, &mut buffer));
        let span = Span { addr: data.as_ptr() as usize, len: data.len() };
        let op = job.ranks[1].send_for_good(0, CONTEXT, 1, span, Mode::Standard).unwrap().unwrap();
        assert!(!job.ranks[1].cancel(op), "its receiver decides");
        for _ in 0..MANY {
            job.arrive();
            job.ranks.iter_mut().for_each(|engine| _ = engine.progress().unwrap());
        }
        assert_eq!(job.ranks[1].take(op).map(|outcome| outcome.cancelled), Some(!is_met));
        assert_eq!(job.net.borrow().shares_held(1), 0);
        match receive {
            Some(receive) => assert!(job.ranks[0].take(receive).is_some() && buffer == data),
            None => assert_eq!(job.ranks[0].probe(&want(1, 1)), None, "nobody sees it"),
        }
    }
}

/// Sends that found no room are taken out of the queue, those behind them leave.
#[test]
fn queued_sends_are_cancelled() {
    let mut job = Job::new(2, 1 << 20);
    let data: Vec<[u8; 1]> = (0..70).map(|i| [i]).collect();
    let ops: Vec<_> = data.iter().map(|data| job.send(1, 0, 1, data, Mode::Standard)).collect();
    assert!(ops[63].is_none() && ops[64].is_some(), "there is room for 64");
    assert!(job.ranks[1].cancel(ops[65].unwrap()));
    assert!(job.ranks[1].take(ops[65].unwrap()).unwrap().cancelled);
    let mut got = Vec::new();
    for _ in 0..MANY {
        job.arrive();
        job.ranks.iter_mut().for_each(|engine| _ = engine.progress().unwrap());
        let mut byte = [0u8];
        if job.ranks[0].probe(&want(1, 1)).is_some() {
            let op = job.receive(0, 1, 1, &mut byte);
            assert!(job.ranks[0].take(op).is_some());
            got.push(byte[0]);
        }
    }
    assert_eq!(got, (0..70).filter(|i| *i != 65).collect::<Vec<_>>());
}

/// A message that a matched probe has taken belongs to its receive.
#[test]
fn what_a_probe_has_matched_is_not_cancelled() {
    let mut job = Job::new(2, 1 << 20);
    let data = [1u8; 100];
    let op = job.send(1, 0, 1, &data, Mode::Standard).unwrap();
    job.arrive();
    job.ranks[0].progress().unwrap();
    let message = job.ranks[0].probe_matched(&want(1, 1)).unwrap();
    assert!(!job.ranks[1].cancel(op));
    let mut buffer = [0u8; 100];
    let span = Span { addr: buffer.as_mut_ptr() as usize, len: buffer.len() };
    let receive = job.ranks[0].receive_matched(message, span).unwrap();
    assert!(job.ranks[0].take(receive).is_some_and(|outcome| outcome.len == 100));
    assert_eq!(buffer, data);
}

/// More operations than there can be are refused, and what was there goes on.
#[test]
#[cfg_attr(miri, ignore)]
fn too_many_operations_are_an_error() {
    let mut job = Job::new(2, 1 << 20);
    let mut byte = [0u8];
    let span = Span { addr: byte.as_mut_ptr() as usize, len: 1 };
    let first = job.receive(0, 1, 1, &mut byte);
    let mut posted = 1;
    let refused = loop {
        match job.ranks[0].receive(want(1, 2), span) {
            Ok(_) => posted += 1,
            Err(fault) => break fault,
        }
        assert!(posted <= 1 << 20);
    };
    assert!(matches!(&refused, Fault::Limit(text) if text.contains("1048576 operations")), "{refused:?}");
    let long = [0u8; 100];
    let send =
        job.ranks[0].send(1, CONTEXT, 1, Span { addr: long.as_ptr() as usize, len: 100 }, Mode::Standard);
    assert_eq!(send, Err(refused));
    job.send(1, 0, 1, &[7], Mode::Standard);
    job.arrive();
    job.ranks[0].progress().unwrap();
    assert!(job.ranks[0].take(first).is_some());
    assert_eq!(byte, [7]);
    job.receive(0, 1, 2, &mut byte);
}
