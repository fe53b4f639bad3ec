//! Alltoall (Thakur, Rabenseifner, Gropp 2005, section 4.3).
//!
//! Bruck takes ⌈log2 p⌉ rounds and moves every block log2 p / 2 times: for small blocks. Linear
//! keeps a window of messages to all ranks in flight, pairwise one at a time, so that no rank is
//! sent to by several. These two send the same messages and so need no agreement among ranks,
//! which the v and w forms could not reach.
use super::blocks::Blocks;
use super::build::{Builder, View};
use super::gather::{Window, unwrap_ring};

fn own(b: &mut Builder, v: &View, send: &Blocks, recv: &Blocks) {
    let (from, to) = (send.get(b, v.me), recv.get(b, v.me));
    b.copy(from, to);
}

/// A bounded window of messages in flight, in the order of the ring.
pub fn linear(b: &mut Builder, v: &View, send: &Blocks, recv: &Blocks) {
    let mut window = Window::default();
    for distance in 1..v.size {
        let (to, from) = (v.after(distance), v.before(distance));
        let (out, into) = (send.get(b, to), recv.get(b, from));
        let posted = b.recv(v, from, into);
        window.push(b, posted);
        let posted = b.send(v, to, out);
        window.push(b, posted);
    }
    own(b, v, send, recv);
}

/// Round k: send to the rank k further, receive from the one k before. The own block is copied while the
/// first ones are on their way.
pub fn pairwise(b: &mut Builder, v: &View, send: &Blocks, recv: &Blocks) {
    for distance in 1..v.size {
        let (to, from) = (v.after(distance), v.before(distance));
        let (out, into) = (send.get(b, to), recv.get(b, from));
        b.recv(v, from, into);
        b.send(v, to, out);
        if distance == 1 {
            own(b, v, send, recv);
        }
        b.wait_all();
    }
    if v.size == 1 {
        own(b, v, send, recv);
    }
}

/// `MPI_IN_PLACE`: every pair swaps its blocks with the help of scratch memory for one block.
pub fn in_place(b: &mut Builder, v: &View, blocks: &Blocks) {
    let largest = (0..v.size).map(|i| b.bytes(blocks.get(b, i))).max().unwrap_or(0);
    let temp = b.temp(largest);
    for round in 0..v.size {
        let peer = (round + v.size - v.me) % v.size;
        if peer == v.me {
            continue;
        }
        let block = blocks.get(b, peer);
        let bytes = b.bytes(block);
        let out = b.part(temp, 0, bytes);
        b.copy(block, out);
        b.exchange(v, peer, out, peer, block);
    }
}

/// Round k: all blocks whose way has bit k go 2^k ranks further, in one message. They lie in runs of 2^k.
pub fn bruck(b: &mut Builder, v: &View, send: &Blocks, recv: &Blocks, each: u64) {
    let blocks = b.temp(v.size as u64 * each);
    unwrap_ring(b, blocks, send, v.me, v.size, v.size, false);
    let half = b.temp(v.size as u64 / 2 * each + each);
    let landing = b.temp(v.size as u64 / 2 * each + each);
    let mut hop = 1;
    while hop < v.size {
        let mut bytes = 0;
        let mut runs = Vec::new();
        for way in (hop..v.size).step_by(2 * hop) {
            let len = hop.min(v.size - way) as u64 * each;
            runs.push((b.part(blocks, way as u64 * each, len), bytes, len));
            bytes += len;
        }
        for &(run, at, len) in &runs {
            let to = b.part(half, at, len);
            b.copy(run, to);
        }
        let (out, into) = (b.part(half, 0, bytes), b.part(landing, 0, bytes));
        b.exchange(v, v.after(hop), out, v.before(hop), into);
        for &(run, at, len) in &runs {
            let from = b.part(landing, at, len);
            b.copy(from, run);
        }
        hop *= 2;
    }
    for way in 0..v.size {
        let (from, to) = (b.part(blocks, way as u64 * each, each), recv.get(b, v.before(way)));
        b.copy(from, to);
    }
}
