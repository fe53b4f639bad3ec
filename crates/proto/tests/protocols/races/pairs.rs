//! Messages and receives that cross.

use super::play::explore;
use super::scenario::{Act, Scenario, receive, send, sequences, synchronous, wants};
use super::{LONG, both, explore_all, explore_forced, wide};
use proto::{Mode, Protocol};

/// Two messages and two receives of every kind: all crossings.
#[test]
fn two_pairs_of_every_kind() {
    let sends = [send(1, 4), send(2, 4), send(1, LONG), send(2, LONG), synchronous(1, 4), synchronous(1, 0)];
    explore_all(&sequences(&sends, 2), &sequences(&wants(), 2), |_| ());
}

/// A buffer too short for its message is offered all the same.
#[test]
fn two_pairs_and_short_buffers() {
    let sends = sequences(&[send(1, LONG), send(1, LONG + 20), send(1, 4)], 2);
    explore_all(&sends, &sequences(&wants()[..3], 2), |_| ());
}

/// Three long messages and three receives with offers, tags in every order: an offer that was
/// dropped because it crossed a message must not let a later one overtake it.
#[test]
fn three_pairs_by_rendezvous() {
    let mut sends = sequences(&[send(1, LONG), send(2, LONG)], 3);
    // The other half is the mirror image with tags exchanged.
    sends.truncate(if wide() { 8 } else { 4 });
    let receives = sequences(&wants()[..2], 3);
    explore_forced(&sends, &receives, &[None], |_| ());
    // Offers make most orders: by day of tags 1 1 2 and 1 2 1.
    let sends = if wide() { &sends[..] } else { &sends[1..3] };
    explore_forced(sends, &receives, &[Some(Protocol::Speculative)], |_| ());
}

/// As before, messages of every kind and wildcards; only where hours do not matter.
#[test]
fn three_pairs_of_every_kind() {
    let (sends, receives) = if wide() {
        let kinds = [send(1, 4), send(2, 4), send(1, LONG), send(2, LONG)];
        (sequences(&kinds, 3), sequences(&wants(), 3))
    } else {
        let sends = vec![
            vec![send(2, LONG), send(1, 4), send(1, LONG)],
            vec![send(1, 4), send(2, LONG), send(1, LONG)],
        ];
        (sends, sequences(&[receive(Some(0), Some(1)), receive(None, Some(1))], 3))
    };
    explore_all(&sends, &receives, |_| ());
}

/// Every protocol for long messages, whole and cut.
#[test]
fn two_pairs_by_every_protocol() {
    let sends = sequences(&[send(1, LONG), send(2, LONG + 20), send(1, 4)], 2);
    let receives = sequences(&wants()[..3], 2);
    for (protocol, _) in Protocol::ALL {
        explore_forced(&sends, &receives, &[Some(protocol)], |_| ());
    }
}

/// Both send first and receive then, or the other way round.
#[test]
fn exchanges() {
    let calls = |me: usize| {
        let other = 1 - me;
        let (send, receive) = (
            Act::Send { to: other, tag: 1, len: LONG, mode: Mode::Standard },
            Act::Receive { source: Some(other), tag: Some(1), room: LONG },
        );
        [
            vec![send, receive, send, receive],
            vec![receive, send, receive, send],
            vec![receive, receive, send, send],
        ]
    };
    let mut played = 0;
    for (first, second) in calls(0).iter().flat_map(|f| calls(1).map(|s| (f.clone(), s))) {
        if wide() {
            played += explore(&Scenario::new(vec![first, second]));
        } else {
            played += both(&Scenario::new(vec![first, second]), 2000);
        }
    }
    println!("{played} orders");
}

/// Two senders, and receives from any: who comes first is open, the rest is not.
#[test]
fn two_senders() {
    let to_2 = |tag, len| Act::Send { to: 2, tag, len, mode: Mode::Standard };
    let wants = [(Some(0), Some(1)), (Some(1), Some(1)), (None, Some(1)), (None, None)];
    let wants = wants.map(|(source, tag)| receive(source, tag));
    for receives in sequences(&wants, 3) {
        for (a, b) in [(LONG, LONG), (4, LONG), (LONG, 4)] {
            let calls = vec![vec![to_2(2, 4), to_2(1, a)], vec![to_2(1, b), to_2(1, LONG)], receives.clone()];
            both(&Scenario::new(calls), if wide() { 20_000 } else { 200 });
        }
    }
}
