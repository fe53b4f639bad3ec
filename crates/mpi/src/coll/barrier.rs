//! Barriers.
//!
//! Dissemination (Hensgen, Finkel, Manber 1988) takes ⌈log2 p⌉ rounds for every p; recursive
//! doubling takes log2 p rounds of exchanges between fixed partners, and two more where p is no
//! power of two. Linear takes one round of p - 1 signals: where a round costs a turn of all ranks of a
//! core, its many messages do not matter. The star has two of them, but no rank waits twice.
use super::build::{Builder, View, floor_power};

/// Round k: signal the rank 2^k further, hear from the one 2^k before.
pub fn dissemination(b: &mut Builder, v: &View) {
    let mut distance = 1;
    while distance < v.size {
        b.await_signal(v, v.before(distance));
        b.signal(v, v.after(distance));
        b.wait_all();
        distance *= 2;
    }
}

/// Exchanges with the rank whose number differs in bit k; ranks beyond the largest power of two
/// are stood for by others.
pub fn recursive_doubling(b: &mut Builder, v: &View) {
    let power = floor_power(v.size);
    if v.me >= power {
        b.signal(v, v.me - power);
        b.await_signal(v, v.me - power);
        return;
    }
    let stands_for = Some(v.me + power).filter(|r| *r < v.size);
    if let Some(rank) = stands_for {
        let heard = b.await_signal(v, rank);
        b.wait(heard);
    }
    let mut mask = 1;
    while mask < power {
        b.await_signal(v, v.me ^ mask);
        b.signal(v, v.me ^ mask);
        b.wait_all();
        mask *= 2;
    }
    if let Some(rank) = stands_for {
        b.signal(v, rank);
    }
}

/// Everybody tells everybody.
pub fn linear(b: &mut Builder, v: &View) {
    for distance in 1..v.size {
        b.signal(v, v.after(distance));
    }
    for distance in 1..v.size {
        let come = b.await_signal(v, v.before(distance));
        b.wait(come);
    }
}

/// Everybody tells rank 0, which then tells everybody.
pub fn star(b: &mut Builder, v: &View) {
    if v.me != 0 {
        b.signal(v, 0);
        b.await_signal(v, 0);
        return;
    }
    for rank in 1..v.size {
        let come = b.await_signal(v, rank);
        b.wait(come);
    }
    for rank in 1..v.size {
        b.signal(v, rank);
    }
}
