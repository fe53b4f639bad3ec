//! Barriers.
//!
//! Dissemination (Hensgen, Finkel, Manber 1988) takes ⌈log2 p⌉ rounds for every p; recursive
//! doubling takes log2 p rounds of exchanges between fixed partners, and two more where p is no
//! power of two. Linear takes one round of p - 1 signals: where a round costs a turn of all ranks of a
//! core, its many messages do not matter. The star has two of them, but no rank waits twice.
use super::build::{Builder, View, floor_power};
use super::cost::Algorithm;

/// By this algorithm.
pub fn by(b: &mut Builder, v: &View, algorithm: Algorithm) {
    match algorithm {
        Algorithm::RecursiveDoubling => recursive_doubling(b, v),
        Algorithm::Linear => linear(b, v),
        Algorithm::Star => star(b, v),
        _ => dissemination(b, v),
    }
}

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
    enter(b, v, 0, Algorithm::Linear);
    release(b, v, 0, Algorithm::Linear);
}

/// The ranks that tell one rank, and the one it tells, on the way to `root`: in a binomial tree, or directly.
fn family(v: &View, root: usize, shape: Algorithm) -> (Vec<usize>, Option<usize>) {
    let relative = (v.me + v.size - root) % v.size;
    let absolute = |r: usize| (r + root) % v.size;
    if shape != Algorithm::Binomial {
        let children = if relative == 0 { (1..v.size).map(absolute).collect() } else { Vec::new() };
        return (children, (relative != 0).then_some(root));
    }
    let masks = (0..usize::BITS).map(|k| 1 << k);
    let masks = masks.take_while(|mask| *mask < v.size && relative & mask == 0);
    let children = masks.map(|mask| relative + mask).filter(|child| *child < v.size).map(absolute).collect();
    (children, (relative != 0).then(|| absolute(relative & (relative - 1))))
}

/// Once all have entered `root` knows; `shape` is that of a broadcast without data.
pub fn enter(b: &mut Builder, v: &View, root: usize, shape: Algorithm) {
    let (children, parent) = family(v, root, shape);
    for child in children {
        let come = b.await_signal(v, child);
        b.wait(come);
    }
    if let Some(parent) = parent {
        b.signal(v, parent);
    }
}

/// `root` lets all go on.
pub fn release(b: &mut Builder, v: &View, root: usize, shape: Algorithm) {
    let (children, parent) = family(v, root, shape);
    if let Some(parent) = parent {
        let come = b.await_signal(v, parent);
        if !children.is_empty() {
            b.wait(come);
        }
    }
    for child in children {
        b.signal(v, child);
    }
}
