//! The device as its ranks use it, within one process.

use super::*;
use crate::layout::TURN_CELL;
use crate::lending::Whose;
use crate::link::word64;
use crate::ring::{CELLS, TURN_BYTES};
use crate::stores::{Place, Plan};
use fabric::{Nap, Reading, Share, ShareWord, Shares};

pub(super) fn options() -> Options {
    Options {
        dir: "/dev/shm".into(),
        single_copy: !cfg!(miri), // which knows no system call for it
        cores: 2,
        prefix: "tern-test".into(),
        stores: None,
        loads: None,
    }
}

pub(super) fn pair() -> (Shm, Shm) {
    let mut ranks = Shm::local_job(2, &options()).unwrap();
    let second = ranks.pop().unwrap();
    (ranks.pop().unwrap(), second)
}

pub(super) fn send(from: &mut Shm, bytes: &[u8]) -> bool {
    from.try_send(1, [1, 2], Span { addr: bytes.as_ptr() as usize, len: bytes.len() })
}

pub(super) fn receive(at: &mut Shm) -> Option<Vec<u8>> {
    let frame = at.peek(0)?;
    let mut bytes = vec![0; frame.data.len];
    at.peek_bytes(frame.data, &mut bytes);
    at.pop(0);
    Some(bytes)
}

/// Blocks of frames in flight are not handed out again, however much inline traffic went
/// before: a position of the ring is not its number.
#[test]
fn blocks_in_flight_survive_long_inline_traffic() {
    let (mut a, mut b) = pair();
    for i in 0..1000u32 {
        assert!(send(&mut a, &i.to_le_bytes()));
        assert_eq!(receive(&mut b), Some(i.to_le_bytes().to_vec()));
    }
    let payload = |i: u8| vec![i; 400];
    let mut expected = std::collections::VecDeque::new();
    for i in 0..200u8 {
        assert!(send(&mut a, &payload(i)), "frame {i}");
        expected.push_back(payload(i));
        if expected.len() > 13 {
            assert_eq!(receive(&mut b), expected.pop_front());
        }
    }
    expected.into_iter().for_each(|bytes| assert_eq!(receive(&mut b), Some(bytes)));
}

/// Who waits for a peer's frame waits for that one's memory too, so both count it.
#[test]
fn memory_that_a_peer_gets_is_told() {
    let (mut a, b) = pair();
    let before = b.growth();
    assert!(send(&mut a, &vec![7; 100_000]));
    assert!(b.growth() != before && b.growth() == a.growth());
}

/// A pair with a frame of 3000 bytes under way of which 1000 are written; the block holds all.
fn half_written() -> (Shm, Shm, Vec<u8>) {
    let (mut a, mut b) = pair();
    let payload = (0..3000).map(|i| i as u8).collect::<Vec<u8>>();
    assert!(send(&mut a, &payload));
    assert_eq!(receive(&mut b).as_ref(), Some(&payload));
    let plan = Plan { way: StoreWay::Ordinary, measured: false };
    let place = Place { block: 64, whose: Whose::SENDERS, len: 3000, plan }; // the first for longer frames
    a.links[1].tx.push_block([1, 2], place.pack(), 1000);
    (a, b, payload)
}

fn room(of: &mut [u8]) -> Span {
    Span { addr: of.as_mut_ptr() as usize, len: of.len() }
}

/// Who takes a frame that its sender is still writing follows the sender.
#[test]
fn a_frame_is_taken_as_it_grows() {
    let (a, mut b, payload) = half_written();
    let mut buffer = vec![0u8; 3000];
    let span = room(&mut buffer);
    let taken = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            loop {
                match b.take(0, [1, 2], span) {
                    Err(_) => std::thread::yield_now(),
                    taken => return taken,
                }
            }
        });
        a.links[1].tx.written(2000);
        a.links[1].tx.written(3000);
        reader.join().unwrap()
    });
    assert_eq!((taken, buffer), (Ok(3000), payload));
}

/// Whose sender does not get on is not waited for: the frame is shown, or taken from its
/// beginning, when it is complete.
#[test]
fn a_frame_whose_sender_lost_its_core_is_left_until_it_is_complete() {
    for takes in [true, false] {
        let (a, mut b, payload) = half_written();
        let mut buffer = vec![0u8; 3000];
        let span = room(&mut buffer);
        assert!(b.begun(0).is_none() && b.peek(0).is_none());
        assert_eq!(b.take(0, [1, 2], span), Err(false));
        assert_eq!(b.begun(0), Some(span.addr));
        a.links[1].tx.written(2000);
        assert_eq!(b.take(0, [1, 2], span), Err(false));
        assert!(b.peek(0).is_none());
        a.links[1].tx.written(3000);
        if takes {
            buffer.fill(0);
            assert_eq!((b.take(0, [1, 2], span), &buffer), (Ok(3000), &payload));
        } else {
            assert_eq!(receive(&mut b).as_ref(), Some(&payload));
        }
        assert!(b.begun(0).is_none() && b.peek(0).is_none());
    }
}

/// A frame to several ranks lies in one block, which is free again when all have read it; who has
/// no room is left out, with those after it.
#[test]
fn a_frame_to_several_ranks_is_written_once() {
    let mut ranks = Shm::local_job(4, &Options { cores: 4, ..options() }).unwrap();
    let payload = (0..5000).map(|i| i as u8).collect::<Vec<u8>>();
    let data = Span { addr: payload.as_ptr() as usize, len: payload.len() };
    for round in 0..3 * CELLS {
        assert_eq!(ranks[0].try_send_all(&[1, 3, 2], [1, 2], data), 3, "{round}");
        assert_eq!(ranks[0].pool.in_flight(), 2, "5000 bytes are two granules");
        for reader in [3, 1, 2] {
            assert_eq!(receive(&mut ranks[reader]).as_ref(), Some(&payload));
        }
        (1..4).for_each(|peer| ranks[0].reclaim(peer));
        assert_eq!(ranks[0].pool.in_flight(), 0);
    }
    let small = Span { len: 8, ..data };
    assert_eq!(ranks[0].try_send_all(&[1, 2], [1, 2], small), 0, "a cell each is enough");
    assert_eq!((0..1000).take_while(|_| ranks[0].try_send(3, [1, 2], small)).count(), CELLS);
    assert_eq!(ranks[0].try_send_all(&[1, 2, 3], [1, 2], data), 2);
    assert_eq!(ranks[0].try_send_all(&[1, 3, 2], [1, 2], data), 0, "to one it goes the usual way");
}

/// Questions and answers that fit the turn cell travel in it, whole, to whoever reads them in whichever way; longer ones do
/// not, and in every order all come one after the other.
#[test]
fn what_goes_to_and_fro_lies_in_the_turn_cell() {
    let (mut a, mut b) = pair();
    let turn = a.segment.at(a.layout.turn(0, 1));
    for (round, len) in
        [0, 8, 40, 41, 64, 500, TURN_BYTES, TURN_BYTES + 1].into_iter().cycle().take(48).enumerate()
    {
        for from in 0..2 {
            let (from, to) = if from == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            let payload: Vec<u8> = (0..len).map(|at| (at * 7 + round) as u8).collect();
            let data = Span { addr: payload.as_ptr() as usize, len };
            assert!(from.try_send(to.me, [3, 4], data) && from.try_send(to.me, [5, 6], data));
            let shown = to.peek(from.me).expect("it was sent").data.addr;
            // The second one found the turn away.
            assert_eq!((turn..turn + TURN_CELL).contains(&shown), len <= TURN_BYTES, "{len} bytes");
            for head in [[3, 4], [5, 6]] {
                let mut buffer = vec![0u8; len];
                let span = room(&mut buffer);
                match round / 8 % 3 {
                    0 => assert_eq!(to.take(from.me, head, span), Ok(len)),
                    1 => {
                        let mut each = |at: usize, part: Span| to_buffer(span, at, part);
                        let mut reading = Reading { head, len, done: 0, each: &mut each };
                        assert_eq!(to.take_in_place(from.me, &mut reading), Ok(()));
                        assert_eq!(reading.done, len);
                    }
                    _ => {
                        let frame = to.peek(from.me).expect("it was sent");
                        assert_eq!(frame.head, head);
                        to.copy(span.addr, frame.data.addr, frame.data.len);
                        to.pop(from.me);
                    }
                }
                assert_eq!(buffer, payload);
            }
            assert!(to.peek(from.me).is_none());
        }
    }
}

fn to_buffer(buffer: Span, at: usize, part: Span) {
    // SAFETY: a part of a frame that has not been popped, and as much of the buffer it is for.
    unsafe { bytes::copy(buffer.addr + at, part.addr, part.len) };
}

/// A full ring and an empty pool refuse; nothing is lost, and both come back.
#[test]
fn a_full_ring_refuses_until_it_is_read() {
    let (mut a, mut b) = pair();
    for len in [8, 1000] {
        let sent = (0..1000u32).take_while(|i| send(&mut a, &vec![*i as u8; len])).count();
        assert_eq!(sent, CELLS);
        for i in 0..sent {
            assert_eq!(receive(&mut b), Some(vec![i as u8; len]));
        }
        assert_eq!(receive(&mut b), None);
    }
    assert!(send(&mut a, &[1]));
}

/// A rank that was alone and takes its place among others goes on with its clock, and with the shares that are open.
#[test]
fn who_was_alone_keeps_clock_and_shares() {
    let mut alone = Shm::local_job(1, &options()).unwrap().pop().expect("one rank");
    alone.start -= Duration::from_secs(5);
    let open = |device: &Shm| device.opened_shares().open().expect("some are free");
    let (given_back, index) = (open(&alone), open(&alone));
    let before = |index| Share { owner: 0, index };
    alone.opened_shares().store(before(given_back), ShareWord::Left, 2);
    alone.opened_shares().store(before(index), ShareWord::Partner, 42);
    let (_other, mut second) = pair();
    second.succeed(&alone);
    assert!(second.now_ns() > 5_000_000_000);
    assert_eq!(second.opened_shares().load(Share { owner: 1, index }, ShareWord::Partner), 42);
    let opened: Vec<u32> = std::iter::from_fn(|| second.opened_shares().open()).collect();
    assert!(opened.contains(&given_back) && !opened.contains(&index), "{opened:?}");
    assert_eq!(opened.len(), second.opened_shares().count() as usize - 1);
}

/// Another device beside this one has not been asked to wake it by then, or somebody waits who will wake nobody.
#[test]
fn in_the_first_round_nobody_sleeps() {
    let mut rank = Shm::local_job(3, &Options { cores: 1, ..options() }).unwrap().swap_remove(0);
    for _ in 0..3 {
        LONG_YIELDS.note(Duration::from_secs(1));
        assert!(!rank.idle(0).sleeps());
    }
    assert!(rank.idle(1).sleeps());
}

/// Choices by chance, the same in each run (a linear congruence).
struct Chance(u64);

impl Chance {
    fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.any() as usize % all.len()]
    }
}

/// Writes over what a peer of rank 0 writes: its next frame as it never sends one, or any of its words.
fn damage(rank: &Shm, chance: &mut Chance) {
    let (layout, at) = (rank.layout, |offset| rank.segment.at(offset));
    // SAFETY: aligned words of the segment that only atomics touch, and payloads that nobody reads meanwhile.
    let store = |addr: usize, word: u64| unsafe { word64(addr) }.store(word, Ordering::Release);
    let next = rank.links[1].rx.head();
    let cell = chance.of(&[
        at(layout.ring(1, 0)) + next as usize % CELLS * size_of::<crate::ring::Cell>(),
        at(layout.turn(0, 1)),
    ]);
    let any = chance.any() << chance.of(&[0, 8, 33]) ^ chance.any();
    match chance.any() % 8 {
        0..=4 => {
            let len = chance.of(&[0, 8, 41, 1033, 2048, 3000, 4097, 70_000, u64::from(u32::MAX)]);
            let block =
                chance.of(&[0, 1, 64, 1023, 1024, 6 << 12, 6 << 12 | 960, 6 << 12 | 961, any & 0xffff]);
            let whose = chance.of(&[0, 0, 1 << 5, 1 << 6, 3 << 5]) | chance.of(&[0, 1, 2, 3]) << 3;
            let flags = whose | chance.of(&[0, 0, 1, 2, 3, 4]);
            let place = block | flags << 16 | len << 32;
            let written = chance.of(&[len, len, 0, 1000, u64::MAX]);
            [1, 2, place, written]
                .into_iter()
                .enumerate()
                .for_each(|(i, word)| store(cell + 8 + 8 * i, word));
            let kind = chance.of(&[0u64, 1, 1, 1, 2, 4, 3, 5, any & 0xffff]);
            store(cell, u64::from(next.wrapping_add(1)) | (len & 0xffff) << 32 | kind << 48);
        }
        5 => {
            let credit = at(layout.credit(0, 1));
            store(chance.of(&[credit, credit + 8, credit + 16]), chance.of(&[any, 1 << (any % 4)]));
        }
        6 => store(chance.of(&[at(layout.openings(0)), at(layout.opened(0, 0))]), any),
        _ => store(cell + 8 * (any as usize % 8), any),
    }
}

/// Whether a payload lies in a cell or in a block.
fn lies_in_segment(rank: &Shm, data: Span) -> bool {
    let layout = rank.layout;
    let turn = layout.turn(0, 1);
    let arena = |rank| layout.granule(rank, 0)..layout.granule(rank, GRANULES - 1) + GRANULE;
    let start = data.addr - rank.segment.at(0);
    let cell = start / 64 * 64;
    let ring = layout.ring(1, 0)..layout.ring(1, 0) + CELLS * 64;
    let cell = if ring.contains(&cell) { cell..cell + 64 } else { 0..0 };
    [turn..turn + TURN_CELL, arena(0), arena(1), cell]
        .iter()
        .any(|place| place.contains(&start) && start + data.len <= place.end)
}

/// An exchange of rank 0 with a peer, in which it lends that a block.
fn exchange(a: &mut Shm, b: &mut Shm) {
    for len in [8, 3000, 3000, 5000, 3000] {
        let payload = vec![7u8; len];
        let data = Span { addr: payload.as_ptr() as usize, len };
        assert!(a.try_send(1, [1, 2], data) && b.try_send(0, [1, 2], data));
        for (at, from) in [(&mut *b, 0), (&mut *a, 1)] {
            assert!(at.peek(from).is_some_and(|frame| frame.data.len == len));
            at.pop(from);
        }
    }
    assert!(send(a, &[7; 3000]) && receive(b).is_some());
    assert!(a.links[1].lending.has_lent());
}

/// Looks at a frame, and perhaps keeps it; whether there was one.
fn look(a: &mut Shm, chance: &mut Chance, retained: &mut Vec<Span>) -> bool {
    let Some(frame) = a.peek(1) else { return false };
    assert!(lies_in_segment(a, frame.data), "{frame:?}");
    if chance.of(&[true, false]) && a.retain(1) {
        retained.push(frame.data);
    }
    a.pop(1);
    true
}

/// Takes a frame out in one of two ways, into no more room than there is; whether there was one.
fn take(a: &mut Shm, chance: &mut Chance) -> bool {
    let len = chance.of(&[0, 8, 41, 2048, 3000, 70_000]);
    let mut buffer = vec![0u8; len + 64];
    let span = Span { addr: buffer.as_mut_ptr() as usize, len };
    let took = if chance.of(&[true, false]) {
        let took = a.take(1, [1, 2], span);
        assert!(took.is_err() || took.is_ok_and(|took| took <= len), "{took:?}");
        took.is_ok()
    } else {
        let mut each = |at: usize, part: Span| to_buffer(span, at, part);
        let mut reading = Reading { head: [1, 2], len, done: 0, each: &mut each };
        a.take_in_place(1, &mut reading).is_ok()
    };
    assert!(buffer[len..].iter().all(|byte| *byte == 0));
    took
}

/// Whatever the words of a peer say, no payload is read outside of its cells and the blocks, none is put behind the end of its room, and
/// nothing ends the process; and what is wrong is found.
#[test]
fn any_words_of_a_peer_are_survived() {
    let (seeds, steps) = if cfg!(miri) { (2, 60) } else { (300, 400) };
    let (mut shown, mut taken, mut faults) = (0, 0, 0);
    let payload = vec![7u8; 65_536];
    for seed in 0..seeds {
        let (mut a, mut b) = pair();
        let (mut chance, mut retained) = (Chance(seed), Vec::new());
        exchange(&mut a, &mut b);
        for _ in 0..steps {
            damage(&a, &mut chance);
            match chance.any() % 5 {
                0 => shown += u32::from(look(&mut a, &mut chance, &mut retained)),
                1 | 2 => taken += u32::from(take(&mut a, &mut chance)),
                3 => {
                    let len = chance.of(&[0, 8, 41, 2048, 3000, 65_536]);
                    a.try_send(1, [1, 2], Span { addr: payload.as_ptr() as usize, len });
                }
                _ => {
                    assert!(a.source(0).is_none_or(|rank| rank < 2));
                    retained.drain(..).for_each(|data| a.release(1, data));
                }
            }
            faults += u32::from(a.check().is_err());
        }
        retained.drain(..).for_each(|data| a.release(1, data));
    }
    assert!(shown > 100 && taken > 100 && faults > 100 || cfg!(miri), "{shown} {taken} {faults}");
}
