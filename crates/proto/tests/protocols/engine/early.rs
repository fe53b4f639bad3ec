//! Messages that come before their receives: where they are kept, and that they are whole and let others pass.

use fabric::Span;
use proto::{Engine, Event, Failure, InPlace, Limits, Mode, OpId, Want};
use shm::{Options, Shm};

/// Longer than what is copied in any case, and a block of its own.
const LEN: usize = 20_000;

fn pair() -> [Engine<Shm>; 2] {
    let options = Options {
        dir: "/dev/shm".into(),
        single_copy: false,
        cores: 1,
        prefix: "tern-test".into(),
        stores: Some(shm::StoreWay::Ordinary),
        loads: None,
    };
    let limits = Limits {
        eager_bytes: 256 << 10,
        unexpected_max_bytes: 64 << 20,
        adapt: false,
        remote_access: false,
        ..Limits::default()
    };
    let mut devices = Shm::local_job(2, &options).unwrap();
    let second = Engine::new(devices.pop().unwrap(), limits.clone());
    [Engine::new(devices.pop().unwrap(), limits), second]
}

fn send(from: &mut Engine<Shm>, tag: i32, len: usize) {
    let bytes = vec![tag as u8; len];
    let data = Span { addr: bytes.as_ptr() as usize, len };
    let queued = from.send(1, 7, tag, data, Mode::Standard).unwrap();
    assert!(queued.is_none(), "message {tag} finds no room");
}

fn happened(at: &Engine<Shm>, event: Event) -> u64 {
    at.counters().get(event)
}

fn want(tag: i32) -> Want {
    Want { source: Some(0), context: 7, tag: Some(tag) }
}

fn ended(engine: &mut Engine<Shm>, op: OpId) -> bool {
    engine.progress().unwrap();
    engine.take(op).is_some()
}

fn receive(at: &mut Engine<Shm>, tag: i32, len: usize) {
    let mut bytes = vec![0u8; len];
    let op = at.receive(want(tag), Span { addr: bytes.as_mut_ptr() as usize, len }).unwrap();
    assert!(ended(at, op), "message {tag} is not there");
    assert!(bytes.iter().all(|byte| *byte == tag as u8), "message {tag} is not what was sent");
}

/// A few stay where they lie, and are taken in any order.
#[test]
fn few_stay_in_place() {
    let [mut a, mut b] = pair();
    for _ in 0..50 {
        (0..5).for_each(|tag| send(&mut a, tag, LEN));
        b.progress().unwrap();
        [3, 0, 4, 1, 2].into_iter().for_each(|tag| receive(&mut b, tag, LEN));
    }
    assert_eq!(
        (happened(&b, Event::Unexpected), happened(&b, Event::InPlace), happened(&b, Event::MovedOut)),
        (250, 250, 0)
    );
}

/// Short ones are copied: they are not worth a look.
#[test]
fn short_ones_are_copied() {
    let [mut a, mut b] = pair();
    send(&mut a, 1, 4000);
    b.progress().unwrap();
    receive(&mut b, 1, 4000);
    assert_eq!((happened(&b, Event::Unexpected), happened(&b, Event::InPlace)), (1, 0));
}

/// However many come behind the first one, short or long, their sender finds room, and what has stayed is moved out.
#[test]
fn who_stays_makes_way() {
    for (len, count) in [(8, 500), (2000, 500), (LEN, 400), (200_000, 100)] {
        let [mut a, mut b] = pair();
        send(&mut a, 1000, LEN);
        b.progress().unwrap();
        for tag in 0..count {
            send(&mut a, tag, len);
            b.progress().unwrap();
        }
        assert!(happened(&b, Event::InPlace) >= 1 && happened(&b, Event::MovedOut) >= 1, "{count} of {len}");
        (0..count).rev().for_each(|tag| receive(&mut b, tag, len));
        receive(&mut b, 1000, LEN);
    }
}

/// One whose receive is somebody's for later does not keep the memory of its sender.
#[test]
fn what_is_matched_for_later_is_moved_out() {
    let [mut a, mut b] = pair();
    send(&mut a, 5, LEN);
    b.progress().unwrap();
    assert_eq!(b.probe(&want(5)).map(|found| found.1), Some(LEN as u64));
    let message = b.probe_matched(&want(5)).expect("it has come");
    assert_eq!(happened(&b, Event::MovedOut), 1);
    for tag in 0..200 {
        send(&mut a, tag, LEN);
        b.progress().unwrap();
        receive(&mut b, tag, LEN);
    }
    let mut bytes = vec![0u8; LEN];
    let op = b.receive_matched(message, Span { addr: bytes.as_mut_ptr() as usize, len: LEN }).unwrap();
    assert!(ended(&mut b, op) && bytes == vec![5; LEN]);
}

/// A buffer that is too short gets what it holds, and the rest is gone like the block.
#[test]
fn one_that_is_too_long_is_cut_off() {
    let [mut a, mut b] = pair();
    for _ in 0..100 {
        send(&mut a, 3, 100_000);
        b.progress().unwrap();
        receive_part(&mut b);
    }
    assert_eq!(happened(&b, Event::InPlace), 100);
}

fn receive_part(b: &mut Engine<Shm>) {
    let mut bytes = vec![0u8; 50];
    let op = b.receive(want(3), Span { addr: bytes.as_mut_ptr() as usize, len: 40 }).unwrap();
    let outcome = b.take(op).expect("it is there");
    let told = outcome.failure.map(|failure| *failure);
    assert!(matches!(told, Some(Failure::Truncated { message_len: 100_000 })));
    assert!(bytes[..40] == [3; 40] && bytes[40..] == [0; 10]);
}

/// Of a neighbour that is a round ahead: what comes behind a message that was waited for stays in its ring until its receive is
/// posted or somebody waits, and is copied once. Taken at once it would be copied in the next MPI_Irecv, before what that round sends.
#[test]
fn the_message_of_the_next_round_waits_for_its_receive() {
    let [mut a, mut b] = pair();
    for (round, len) in [100, 2000, 4000, LEN].into_iter().cycle().take(40).enumerate() {
        let mut bytes = vec![0u8; len];
        let op = b.receive(want(2), Span { addr: bytes.as_mut_ptr() as usize, len }).unwrap();
        send(&mut a, 2, len);
        send(&mut a, 3, len);
        assert!(ended(&mut b, op) && bytes == vec![2; len]);
        receive(&mut b, 3, len);
        assert_eq!(happened(&b, Event::Unexpected), 0, "round {round}");
    }
    // Nobody waits for what comes behind: it is taken in when somebody looks.
    send(&mut a, 2, LEN);
    let op = b.receive(want(2), Span { addr: 0, len: 0 }).unwrap();
    assert!(ended(&mut b, op));
    send(&mut a, 3, LEN);
    b.progress().unwrap();
    assert_eq!(happened(&b, Event::Unexpected), 1);
}

/// Reads a message of one byte's value where it lies, unless its receive had to be posted: then that has ended.
fn read(at: &mut Engine<Shm>, tag: i32, len: usize, done: &mut usize) -> InPlace {
    let mut landing = vec![0u8; len];
    let buf = Span { addr: landing.as_mut_ptr() as usize, len };
    let (mut next, byte) = (*done, tag as u8);
    let mut each = |at: usize, piece: Span| {
        assert!(at == next && (at + piece.len == len || (at + piece.len).is_multiple_of(fabric::PIECE_STEP)));
        next += piece.len;
        // SAFETY: the piece is read during the call, which is for how long it is there.
        let bytes = unsafe { std::slice::from_raw_parts(piece.addr as *const u8, piece.len) };
        assert!(bytes.iter().all(|found| *found == byte));
    };
    let found = at.read_in_place(want(tag), buf, done, &mut each).unwrap();
    assert_eq!(next, *done);
    match found {
        InPlace::Posted(op) => assert!(ended(at, op)),
        _ => assert!(landing.iter().all(|byte| *byte == 0), "nothing is copied"),
    }
    found
}

/// A message is read where it lies: in its ring, in a block that is kept, in memory that it was moved to; what comes from behind
/// others is read as well.
#[test]
fn messages_are_read_where_they_lie() {
    let [mut a, mut b] = pair();
    let mut done = 0;
    assert_eq!(read(&mut b, 4, LEN, &mut done), InPlace::Coming);
    for len in [2000, LEN, 100_000, 256 << 10] {
        done = 0;
        send(&mut a, 4, len);
        assert_eq!((read(&mut b, 4, len, &mut done), done), (InPlace::Read, len));
    }
    assert_eq!((happened(&b, Event::ReadInPlace), happened(&b, Event::Unexpected)), (4, 0));
    // Others are before it in the ring, until somebody looks.
    send(&mut a, 1, LEN);
    send(&mut a, 4, LEN);
    done = 0;
    assert_eq!(read(&mut b, 4, LEN, &mut done), InPlace::Coming);
    b.progress().unwrap();
    assert_eq!((read(&mut b, 4, LEN, &mut done), done), (InPlace::Read, LEN));
    receive(&mut b, 1, LEN);
    assert_eq!((happened(&b, Event::InPlace), happened(&b, Event::MovedOut)), (2, 0));
    // Blocks are for a few: others are moved.
    for tag in 0..20 {
        send(&mut a, tag, LEN);
        b.progress().unwrap();
    }
    for tag in [7, 19, 0].into_iter().chain(1..7).chain(8..19) {
        done = 0;
        assert_eq!((read(&mut b, tag, LEN, &mut done), done), (InPlace::Read, LEN), "{tag}");
    }
}

/// What does not lie there as it should is received as any other: other lengths, and what is still at its sender.
#[test]
fn what_cannot_be_read_where_it_lies_is_received() {
    let [mut a, mut b] = pair();
    for looks in [false, true] {
        let mut done = 0;
        send(&mut a, 4, LEN + 1);
        if looks {
            b.progress().unwrap();
            assert!(matches!(read(&mut b, 4, LEN, &mut done), InPlace::Posted(_)));
        } else {
            assert_eq!(read(&mut b, 4, LEN, &mut done), InPlace::Coming);
            receive(&mut b, 4, LEN + 1);
        }
        assert_eq!(done, 0);
    }
    let bytes = vec![4u8; LEN];
    let data = Span { addr: bytes.as_ptr() as usize, len: LEN };
    let sent = a.send(1, 7, 4, data, Mode::Synchronous).unwrap().expect("it waits for its receive");
    assert!(!b.is_offered(&want(4)));
    b.progress().unwrap();
    assert!(b.is_offered(&want(4)) && !b.is_offered(&want(5)));
    let mut landing = vec![0u8; LEN];
    let buf = Span { addr: landing.as_mut_ptr() as usize, len: LEN };
    let InPlace::Posted(op) =
        b.read_in_place(want(4), buf, &mut 0, &mut |_, _| panic!("it is not here")).unwrap()
    else {
        panic!("it is to be received")
    };
    let mut is_there = false;
    while !is_there {
        a.progress().unwrap();
        is_there = ended(&mut b, op);
    }
    assert_eq!(landing, bytes);
    while a.take(sent).is_none() {
        a.progress().unwrap();
    }
}
