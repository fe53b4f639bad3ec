//! Messages that come before their receives: where they are kept, and that they are whole and let others pass.

use fabric::Span;
use proto::{Engine, Event, Failure, Limits, Mode, OpId, Want};
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
