//! A rank that begins by itself and goes over to a device that reaches its job: what it has under way with itself goes on.

use crate::fake::{Fake, Net};
use fabric::Span;
use proto::{CacheLimits, Engine, Limits, Mode, OpId, Want};
use std::cell::RefCell;
use std::rc::Rc;

const EAGER: usize = 48;
const LONG: usize = 64;
const ME: usize = 1;

fn engine(me: usize, net: &Rc<RefCell<Net>>) -> Engine<Fake> {
    let limits = Limits {
        eager_bytes: EAGER,
        unexpected_bytes: 0,
        cache: CacheLimits { bytes: 0, regions: 1 },
        ..Limits::default()
    };
    Engine::new(Fake::new(me, net), limits)
}

fn span(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}

fn room(bytes: &mut [u8]) -> Span {
    Span { addr: bytes.as_mut_ptr() as usize, len: bytes.len() }
}

fn want(source: usize, tag: i32) -> Want {
    Want { source: Some(source), context: 1, tag: Some(tag) }
}

/// Lets all frames come that are under way to this rank, and looks until nothing moves.
fn settle(net: &Rc<RefCell<Net>>, rank: &mut Engine<Fake>) {
    loop {
        let mut moved = false;
        for from in [0, ME] {
            while net.borrow_mut().under_way(from, ME) {
                net.borrow_mut().arrive(from, ME);
                moved = true;
            }
        }
        if rank.poll().unwrap().is_some() && !moved {
            return;
        }
    }
}

fn is_taken(rank: &mut Engine<Fake>, op: Option<OpId>) -> bool {
    op.is_none_or(|op| rank.take(op).is_some())
}

/// Short and long messages, some of which lie in the device when the rank goes, for no unexpected ones may be kept; and receives
/// that were posted before it.
#[test]
fn what_is_under_way_goes_on() {
    let lengths = [8, EAGER, LONG];
    let net = Net::new(2, 64);
    let mut rank = engine(ME, &net);
    let bytes: Vec<Vec<u8>> = (0..lengths.len() * 2).map(|i| vec![i as u8 + 1; lengths[i / 2]]).collect();
    let mut kept: Vec<Vec<u8>> = bytes.iter().map(|bytes| vec![0; bytes.len()]).collect();
    let posted: Vec<OpId> = (0..bytes.len())
        .step_by(2)
        .map(|i| rank.receive(want(ME, i as i32), room(&mut kept[i])).unwrap())
        .collect();
    let send =
        |rank: &mut Engine<Fake>, i: usize, mode| rank.send(ME, 1, i as i32, span(&bytes[i]), mode).unwrap();
    let sent: Vec<Option<OpId>> =
        (1..bytes.len()).step_by(2).map(|i| send(&mut rank, i, Mode::Standard)).collect();
    while net.borrow_mut().under_way(ME, ME) {
        net.borrow_mut().arrive(ME, ME);
    }

    rank.go_over(Fake::new(ME, &net)).unwrap();

    for (i, op) in (1..bytes.len()).step_by(2).zip(sent) {
        let received = rank.receive(want(ME, i as i32), room(&mut kept[i])).unwrap();
        settle(&net, &mut rank);
        assert!(is_taken(&mut rank, op) && is_taken(&mut rank, Some(received)), "message {i}");
    }
    for (i, op) in (0..bytes.len()).step_by(2).zip(posted) {
        let sent = send(&mut rank, i, Mode::Synchronous);
        settle(&net, &mut rank);
        assert!(is_taken(&mut rank, sent) && is_taken(&mut rank, Some(op)), "receive {i}");
    }
    assert_eq!(kept, bytes);
    assert_eq!(net.borrow().shares_held(ME), 0);
}

/// Those of its job reach it afterwards, by another device; nothing is left in the one before.
#[test]
fn others_are_heard_behind_it() {
    let [before, net] = [(); 2].map(|()| Net::new(2, 64));
    let (mut rank, mut other) = (engine(ME, &before), engine(0, &net));
    let (bytes, mut kept) = ([7u8; 8], [0u8; 8]);
    rank.send(ME, 1, 0, span(&bytes), Mode::Standard).unwrap();
    before.borrow_mut().arrive(ME, ME);
    rank.go_over(Fake::new(ME, &net)).unwrap();
    assert!(other.send(ME, 1, 0, span(&bytes), Mode::Standard).unwrap().is_none());
    let op = rank.receive(want(0, 0), room(&mut kept)).unwrap();
    settle(&net, &mut rank);
    assert!(is_taken(&mut rank, Some(op)));
    assert_eq!(kept, bytes);
    assert_eq!(rank.arrived().count(), 1, "its own message still waits");
}
