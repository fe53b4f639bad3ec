//! Interleavings of sends, receives, cancels and arriving frames, in one thread: whatever
//! the order, messages match as MPI says, arrive whole, and leave nothing behind. Every order on a scripted
//! device; orders by chance over hostile adapters.
//!
//! `TERN_RACES=all` explores the wide sets too (minutes); a failure prints its scenario and the
//! steps that led to it.

mod cancels;
mod pairs;
mod play;
mod room;
mod scenario;
mod stage;

use crate::random::Random;
use play::{OnPanic, Path, explore, play, wander};
use proto::Protocol;
use scenario::{Act, RACING, Scenario};
use stage::{Hostile, Scripted};

/// Longest eager message; one byte more is a rendezvous.
const EAGER: usize = 8;
const LONG: usize = 2 * EAGER;
const CONTEXT: u64 = 3;

fn wide() -> bool {
    std::env::var("TERN_RACES").is_ok_and(|v| v == "all")
}

/// Orders by chance on the scripted device, and some over hostile adapters.
fn both(scenario: &Scenario, count: usize) -> usize {
    wander::<Scripted>(scenario, 0..count) + wander::<Hostile>(scenario, 0..count.div_ceil(20))
}

/// All orders of every pair of a sender's and a receiver's calls.
fn explore_all(sends: &[Vec<Act>], receives: &[Vec<Act>], change: impl Fn(&mut Scenario)) {
    explore_forced(sends, receives, &RACING, change);
}

fn explore_forced(
    sends: &[Vec<Act>],
    receives: &[Vec<Act>],
    forced: &[Option<Protocol>],
    change: impl Fn(&mut Scenario),
) {
    let (mut played, mut hostile) = (0, 0);
    for s in sends {
        for r in receives {
            for &force in forced {
                let mut scenario = Scenario { force, ..Scenario::new(vec![s.clone(), r.clone()]) };
                change(&mut scenario);
                played += explore(&scenario);
                hostile += wander::<Hostile>(&scenario, hostile..hostile + if wide() { 50 } else { 1 });
            }
        }
    }
    println!("{played} orders of {} scenarios", sends.len() * receives.len());
    assert!(played > sends.len() * receives.len());
}

/// Long random scenarios in random orders: offers run out of shares, queues fill, all at once.
#[test]
fn long_scenarios() {
    let first: u64 = std::env::var("TERN_SEED").map_or(1, |s| s.parse().expect("TERN_SEED is a number"));
    let count = if wide() { 1_000_000 } else { 5_000 };
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let scenario = random.scenario();
        let mut path = Path::Random(random);
        let _seed =
            OnPanic(|| eprintln!("TERN_SEED={seed} cargo test -p proto --test protocols long_scenarios"));
        play::<Scripted>(&scenario, &mut path, seed);
        if seed % 5 == 0 {
            play::<Hostile>(&scenario, &mut path, seed / 5);
        }
    }
}
