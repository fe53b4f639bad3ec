//! Allgather (Thakur, Rabenseifner, Gropp 2005, section 4.1).
//!
//! Recursive doubling and Bruck take ⌈log2 p⌉ rounds, the first only for powers of two, the second
//! with a copy at the end; the ring takes p-1 rounds of messages between neighbours, neighbour
//! exchange (Chen et al. 2005) half as many for even p. Linear sends each block directly, with no
//! round that waits for another.
//!
//! `mine` is this rank's block as the caller gave it, `None` if it is in its place already. The first
//! messages are sent from there, so that no peer waits for the copy, nor fetches lines that the copy
//! has just taken from it.
use super::blocks::Blocks;
use super::build::{Builder, View};
use super::gather::{WINDOW, Window, unwrap_ring};
use super::schedule::Buf;

fn send_runs(b: &mut Builder, v: &View, to: usize, all: &Blocks, from: usize, end: usize) {
    let mut runs = Vec::new();
    all.runs(b, from, end, |run| runs.push(run));
    for run in runs {
        b.send(v, to, run);
    }
}

fn recv_runs(b: &mut Builder, v: &View, peer: usize, all: &Blocks, from: usize, end: usize) {
    let mut runs = Vec::new();
    all.runs(b, from, end, |run| runs.push(run));
    for run in runs {
        b.recv(v, peer, run);
    }
}

/// Exchanges this rank's block for that of a peer and puts it in its place meanwhile.
fn exchange_own(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks, to: usize, from: usize) {
    let (own, theirs) = (all.get(b, v.me), all.get(b, from));
    b.recv(v, from, theirs);
    b.send(v, to, mine.unwrap_or(own));
    put_own(b, v, mine, all);
    b.wait_all();
}

fn put_own(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    if let Some(mine) = mine {
        let own = all.get(b, v.me);
        b.copy(mine, own);
    }
}

/// Passes on, round after round, the block that came last.
pub fn ring(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    if v.size == 1 {
        return put_own(b, v, mine, all);
    }
    exchange_own(b, v, mine, all, v.after(1), v.before(1));
    for round in 1..v.size - 1 {
        let (out, into) = (all.get(b, v.before(round)), all.get(b, v.before(round + 1)));
        b.exchange(v, v.after(1), out, v.before(1), into);
    }
}

/// Ranks to which a block is sent at once by [`linear`]: with as many receives, what may be in flight.
const TOGETHER: usize = WINDOW / 2;

/// Everybody sends its block to everybody.
pub fn linear(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    let own = mine.unwrap_or_else(|| all.get(b, v.me));
    let mut window = Window::default();
    for first in (1..v.size).step_by(TOGETHER) {
        let distances = first..v.size.min(first + TOGETHER);
        for distance in distances.clone() {
            let into = all.get(b, v.before(distance));
            let posted = b.recv(v, v.before(distance), into);
            window.push(b, posted);
        }
        // Sends of the same block one after the other go out together (`Schedule::send_all`).
        for distance in distances {
            let posted = b.send(v, v.after(distance), own);
            window.push(b, posted);
        }
    }
    put_own(b, v, mine, all);
}

/// Exchanges all that is known with rank xor 2^k; for powers of two.
pub fn recursive_doubling(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    assert!(v.size.is_power_of_two());
    if v.size == 1 {
        return put_own(b, v, mine, all);
    }
    exchange_own(b, v, mine, all, v.me ^ 1, v.me ^ 1);
    let mut mask = 2;
    while mask < v.size {
        let peer = v.me ^ mask;
        let (mine, theirs) = (v.me & !(mask - 1), peer & !(mask - 1));
        recv_runs(b, v, peer, all, theirs, theirs + mask);
        send_runs(b, v, peer, all, mine, mine + mask);
        b.wait_all();
        mask *= 2;
    }
}

/// Collects the blocks of the following ranks in scratch memory, twice as many each round.
pub fn bruck(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    put_own(b, v, mine, all);
    let mut starts = Vec::with_capacity(v.size + 1);
    let mut total = 0;
    for i in 0..v.size {
        starts.push(total);
        total += b.bytes(all.get(b, v.after(i)));
    }
    starts.push(total);
    let temp = b.temp(total);
    let (own, first) = (all.get(b, v.me), b.part(temp, 0, starts[1]));
    b.copy(own, first);
    let mut have = 1;
    while have < v.size {
        let more = have.min(v.size - have);
        let peer = v.before(have);
        // What is sent are this rank's first blocks, which are the receiver's from `have` on.
        let out = b.part(temp, 0, starts[more]);
        let into = b.part(temp, starts[have], starts[have + more] - starts[have]);
        b.exchange(v, peer, out, v.after(have), into);
        have += more;
    }
    let rest = b.part(temp, starts[1], total - starts[1]);
    if v.size > 1 {
        unwrap_ring(b, rest, all, v.after(1), v.size - 1, v.size, true);
    }
}

/// Exchanges with the two neighbours in turn: first the own block, then the pair of blocks that
/// came last. For even numbers of ranks.
pub fn neighbour(b: &mut Builder, v: &View, mine: Option<Buf>, all: &Blocks) {
    assert!(v.size.is_multiple_of(2));
    let even = v.me.is_multiple_of(2);
    let peers = if even { [v.after(1), v.before(1)] } else { [v.before(1), v.after(1)] };
    exchange_own(b, v, mine, all, peers[0], peers[0]);
    // Pairs are named by their first block. Through the right neighbour of an even rank come the
    // pairs above, through the left the pairs below; an odd rank sees it mirrored.
    let home = v.me & !1;
    let mut latest = home;
    for round in 1..v.size / 2 {
        let hops = round.div_ceil(2) * 2;
        let upward = (round % 2 == 0) == even;
        let pair = if upward { (home + hops) % v.size } else { (home + v.size - hops) % v.size };
        let peer = peers[round % 2];
        recv_runs(b, v, peer, all, pair, pair + 2);
        send_runs(b, v, peer, all, latest, latest + 2);
        b.wait_all();
        latest = pair;
    }
}
