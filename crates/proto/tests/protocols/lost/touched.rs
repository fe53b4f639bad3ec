//! What the application touches: a copy that leaves the data in the wrong cache costs what the next touch costs, and so
//! another manner is the best one.

use super::hours::{Costs, Hours};
use super::{AT_ONCE, COSTS, EAGER_MAX, Job, NOTE_NS, copy_ns, job};
use fabric::Span;
use std::cell::RefCell;
use std::rc::Rc;

/// Whether the sender writes what it sends before each message, and the receiver reads what it got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Touches {
    writes: bool,
    reads: bool,
}

const NONE: Touches = Touches { writes: false, reads: false };
const READ: Touches = Touches { writes: false, reads: true };
const BOTH: Touches = Touches { writes: true, reads: true };

/// Messages from a buffer to another one between two ranks that do nothing else: what each round takes, from one beginning of
/// the sender's to the next. Before each something may change.
fn rounds_ns(
    (ranks, hours): Job,
    len: usize,
    rounds: usize,
    touches: Touches,
    changes: impl Fn(usize, &Hours) + 'static,
) -> Vec<u64> {
    let [from, to] = ranks.clone();
    let begins_ns = Rc::new(RefCell::new(Vec::new()));
    let (began, clock, receivers) = (begins_ns.clone(), hours.clone(), hours.clone());
    let sends = move || {
        let data = vec![7; len];
        let span = Span { addr: data.as_ptr() as usize, len };
        clock.know(span);
        for round in 0..=rounds {
            began.borrow_mut().push(from.now_ns());
            changes(round, &clock);
            if touches.writes {
                clock.write(span);
            }
            from.send(1, &data).into_iter().for_each(|op| from.wait(op));
            from.turn(true);
        }
        from.end();
    };
    let receives = move || {
        let mut buffer = vec![0; len];
        let span = Span { addr: buffer.as_ptr() as usize, len };
        receivers.know(span);
        for _ in 0..=rounds {
            let op = to.receive(0, &mut buffer);
            to.wait(op);
            assert!(buffer.iter().all(|byte| *byte == 7));
            if touches.reads {
                receivers.read(span);
            }
            to.turn(false);
        }
        to.end();
    };
    let [first, second] = ranks;
    hours.run(vec![
        Box::new(sends),
        Box::new(receives),
        Box::new(move || first.run_aside()),
        Box::new(move || second.run_aside()),
    ]);
    let begins_ns = begins_ns.take();
    begins_ns.windows(2).map(|begins| begins[1] - begins[0]).collect()
}

/// The RTS, and what the receiver tells its sender for the next round to begin.
const AROUND_NS: u64 = NOTE_NS + COSTS.flight_ns + 2 * COSTS.frame_ns + COSTS.flight_ns;

fn carry_ns(len: usize, is_carried: bool) -> u64 {
    if is_carried { len as u64 / COSTS.carries } else { 0 }
}

/// Two copies, one after the other: each side finds its buffer where it left it.
fn blocks_ns(len: usize) -> u64 {
    let copy_ns = COSTS.frame_ns + len as u64 / COSTS.copies;
    2 * copy_ns + AROUND_NS - NOTE_NS
}

/// The receiver finds what was written in the sender's cache, and the sender its lines in the receiver's when it writes again.
fn pulled_ns(len: usize, Touches { writes, .. }: Touches) -> u64 {
    AROUND_NS + COSTS.call_ns + copy_ns(len) + 2 * carry_ns(len, writes)
}

/// Whoever is earlier claims next, half of what is left. What each copies it finds in the other one's cache if that has touched it
/// since, and so does who touches it next.
fn shared_ns(len: usize, Touches { writes, reads }: Touches) -> u64 {
    let (mut left, mut at_ns, mut copied) = (len, [0; 2], [0; 2]);
    while left > 0 {
        let earlier = usize::from(at_ns[1] < at_ns[0]);
        let piece = (left / 2).clamp(AT_ONCE, 1 << 20).min(left);
        at_ns[earlier] += COSTS.call_ns + copy_ns(piece) + carry_ns(piece, [writes, reads][earlier]);
        copied[earlier] += piece;
        left -= piece;
    }
    let [by_receiver, by_sender] = copied;
    AROUND_NS + at_ns[0].max(at_ns[1]) + carry_ns(by_receiver, writes) + carry_ns(by_sender, reads)
}

/// What nobody looks at is moved fastest by both; if it is read, by the receiver, so that it lies there; if it is written anew
/// besides, through blocks.
#[test]
fn what_the_application_touches_decides_who_copies() {
    for len in [64 << 10, EAGER_MAX] {
        for (touches, best) in [(NONE, "shared"), (READ, "pulled"), (BOTH, "blocks")] {
            let takes_ns = [
                ("pulled", pulled_ns(len, touches)),
                ("shared", shared_ns(len, touches)),
                ("blocks", blocks_ns(len)),
            ];
            for (manner, ns) in takes_ns {
                let forced_ns = rounds_ns(job(Some(manner), true), len, 8, touches, |_, _| ());
                assert_eq!(forced_ns[4..], [ns; 4], "{len} {touches:?} {manner}");
            }
            let (least, least_ns) = takes_ns.into_iter().min_by_key(|(_, ns)| *ns).expect("three");
            assert_eq!(least, best, "{len} {touches:?}");
            let chosen_ns = rounds_ns(job(None, true), len, 600, touches, |_, _| ());
            assert_eq!(chosen_ns[0], first_ns(len), "{len} {touches:?}");
            let count = chosen_ns[300..].iter().filter(|ns| **ns == least_ns).count();
            assert!(count >= 270, "{len} {touches:?}: {count} of 300 rounds by {best}");
        }
    }
}

/// Blocks, from and to buffers that no cache has.
fn first_ns(len: usize) -> u64 {
    blocks_ns(len) + 2 * carry_ns(len, true)
}

/// Calls are dear at first, so that all goes through blocks, and nobody pays for them any more but who tries. Then they are
/// not.
#[test]
fn what_nobody_pays_any_more_is_tried_again() {
    const LEN: usize = 64 << 10;
    const CHEAP: usize = 1000;
    let dear = Costs { call_ns: 100_000, ..COSTS };
    let changes = move |round, hours: &Hours| hours.set_costs(if round < CHEAP { dear } else { COSTS });
    let took_ns = rounds_ns(job(None, true), LEN, 4200, NONE, changes);
    let blocks_ns = blocks_ns(LEN);
    assert_eq!(took_ns[CHEAP], blocks_ns);
    let last_try = took_ns[..CHEAP].iter().rposition(|ns| *ns > blocks_ns).expect("all are tried at first");
    let found = CHEAP + took_ns[CHEAP..].iter().position(|ns| *ns < blocks_ns).expect("it is tried again");
    // The fourth try of a slower manner is 32, 64 and 128 groups of eight messages behind the one before, which may last for four.
    assert!(found - last_try <= (128 + 4) * 8, "tried after {last_try}, then after {found}");
    assert_eq!(took_ns[found], pulled_ns(LEN, NONE));
    assert_eq!(took_ns.last(), Some(&shared_ns(LEN, NONE)));
}
