//! Little room, short tables and peers out of reach.

use super::play::{OnPanic, explore};
use super::scenario::{Scenario, receive, send, sequences, wants};
use super::{LONG, both, explore_all, explore_forced, wide};
use crate::random::Random;
use proto::Protocol;

/// Tables for one or two envelopes: what is forgotten must not let an RTR meet the wrong send.
#[test]
fn envelopes_are_forgotten() {
    let mixed = [send(1, LONG), send(2, LONG), send(3, LONG), send(1, 4), send(2, 4)];
    for seed in 0..if wide() { 20_000 } else { 200 } {
        let mut random = Random::new(seed + 1);
        let sends = (0..8).map(|_| random.of(&mixed)).collect();
        let receives = (0..8).map(|_| receive(Some(0), Some(random.of(&[1, 2, 3])))).collect();
        let force = Some(Protocol::Speculative);
        let scenario = Scenario { force, envelopes: 1, ..Scenario::new(vec![sends, receives]) };
        let _seed = OnPanic(|| eprintln!("seed {seed}"));
        both(&scenario, 20);
    }
}

/// Room for one frame only: sends queue, offers and answers find no room.
#[test]
fn two_pairs_with_little_room() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, LONG)], 2);
    for (s, r) in
        sends.iter().flat_map(|s| sequences(&wants()[..3], 2).into_iter().map(move |r| (s.clone(), r)))
    {
        for room in [1, 2] {
            let scenario = Scenario { room, looks: true, ..Scenario::new(vec![s.clone(), r.clone()]) };
            if wide() {
                explore(&scenario)
            } else {
                both(&scenario, 300)
            };
        }
    }
}

/// Unexpected eager messages must stay where they are.
#[test]
fn two_pairs_under_back_pressure() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, 4)], 2);
    explore_all(&sends, &sequences(&wants()[..2], 2), |scenario| scenario.unexpected_bytes = 0);
}

/// Only one side, or none, can copy from and to the other.
#[test]
fn two_pairs_without_reach() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, 100)], 2);
    let receives = sequences(&wants()[..3], 2);
    for reach in [[true, false], [false, true], [false, false]] {
        explore_all(&sends, &receives, |scenario| scenario.reach = reach.to_vec());
    }
}

/// Copying is refused to a rank, or to both, from some message on: those under way arrive whole.
#[test]
fn two_pairs_that_are_refused_in_the_middle() {
    let sends = sequences(&[send(1, 4), send(1, LONG), send(2, 100)], 2);
    let receives = sequences(&wants()[..3], 2);
    for grants in [[0, usize::MAX], [usize::MAX, 0], [0, 0], [1, 0], [0, 1], [1, 1]] {
        explore_forced(&sends, &receives, &[None], |scenario| scenario.grants = grants.to_vec());
    }
}
