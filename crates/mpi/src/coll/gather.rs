//! Gather and scatter.
//!
//! The binomial tree takes ⌈log2 p⌉ steps but moves most data several times; linear moves each
//! block once and waits p times at the root. Where only the root knows the sizes (Gatherv,
//! Scatterv) linear is the only choice on one level that all ranks can agree on.
use std::collections::VecDeque;

use super::blocks::Blocks;
use super::build::{Builder, Posted, View};
use super::schedule::Buf;

/// Messages a rank keeps in flight where it could post them all: enough to hide latency, few
/// enough not to flood the other side's queue of unexpected messages.
pub const WINDOW: usize = 32;

/// Posts with a limit on how many are outstanding.
#[derive(Default)]
pub struct Window(VecDeque<Posted>);

impl Window {
    /// Waits for the oldest where the limit is reached.
    pub fn push(&mut self, b: &mut Builder, posted: Posted) {
        self.0.push_back(posted);
        if self.0.len() > WINDOW {
            let oldest = self.0.pop_front().expect("the window is not empty");
            b.wait(oldest);
        }
    }
}

/// Every rank sends its block to the root; `mine` is `None` for the root in place.
pub fn gather_linear(b: &mut Builder, v: &View, mine: Option<Buf>, all: Option<&Blocks>, root: usize) {
    let Some(all) = all else {
        let mine = mine.expect("only the root can be in place");
        b.send(v, root, mine);
        return;
    };
    let mut window = Window::default();
    for distance in 1..v.size {
        let from = v.after(distance);
        let into = all.get(b, from);
        let posted = b.recv(v, from, into);
        window.push(b, posted);
    }
    // Others are on their way meanwhile.
    if let Some(mine) = mine {
        let own = all.get(b, root);
        b.copy(mine, own);
    }
}

/// The root sends every rank its block.
pub fn scatter_linear(b: &mut Builder, v: &View, mine: Option<Buf>, all: Option<&Blocks>, root: usize) {
    let Some(all) = all else {
        let mine = mine.expect("only the root can be in place");
        b.recv(v, root, mine);
        return;
    };
    let mut window = Window::default();
    for distance in 1..v.size {
        let to = v.after(distance);
        let out = all.get(b, to);
        let posted = b.send(v, to, out);
        window.push(b, posted);
    }
    if let Some(mine) = mine {
        let own = all.get(b, root);
        b.copy(own, mine);
    }
}

/// How many ranks, counted from the root, are below `relative` in the binomial tree, with itself.
fn subtree(relative: usize, size: usize) -> usize {
    let lowest = if relative == 0 { size } else { relative & relative.wrapping_neg() };
    lowest.min(size - relative)
}

/// The children of a rank in the binomial tree, nearest first, with the sizes of their subtrees.
fn children(relative: usize, size: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    let below = subtree(relative, size);
    let levels = if below > 1 { (below - 1).ilog2() + 1 } else { 0 };
    (0..levels).map(move |k| (relative + (1 << k), subtree(relative + (1 << k), size)))
}

/// Binomial gather of blocks of `each` bytes; `all` at the root.
pub fn gather_binomial(
    b: &mut Builder,
    v: &View,
    mine: Option<Buf>,
    all: Option<&Blocks>,
    each: u64,
    root: usize,
) {
    let relative = (v.me + v.size - root) % v.size;
    let absolute = |r: usize| (r + root) % v.size;
    if let Some(all) = all {
        let mut folded = Vec::new();
        for (child, count) in children(0, v.size) {
            let first = absolute(child);
            if first + count <= v.size {
                all.runs(b, first, first + count, |run| folded.push((child, run, None)));
            } else {
                let temp = b.temp(count as u64 * each);
                folded.push((child, temp, Some((first, count))));
            }
        }
        for (child, into, _) in &folded {
            b.recv(v, absolute(*child), *into);
        }
        if let Some(mine) = mine {
            let own = all.get(b, root);
            b.copy(mine, own);
        }
        b.wait_all();
        for (_, temp, around) in folded {
            if let Some((first, count)) = around {
                unwrap_ring(b, temp, all, first, count, v.size, true);
            }
        }
        return;
    }
    let mine = mine.expect("only the root can be in place");
    let parent = absolute(relative & (relative - 1));
    let below = subtree(relative, v.size);
    if below == 1 {
        b.send(v, parent, mine);
        return;
    }
    let temp = b.temp(below as u64 * each);
    for (child, count) in children(relative, v.size) {
        let into = b.part(temp, (child - relative) as u64 * each, count as u64 * each);
        b.recv(v, absolute(child), into);
    }
    let own = b.part(temp, 0, each);
    b.copy(mine, own);
    b.wait_all();
    b.send(v, parent, temp);
}

/// Binomial scatter of blocks of `each` bytes; `all` at the root.
pub fn scatter_binomial(
    b: &mut Builder,
    v: &View,
    mine: Option<Buf>,
    all: Option<&Blocks>,
    each: u64,
    root: usize,
) {
    let relative = (v.me + v.size - root) % v.size;
    let absolute = |r: usize| (r + root) % v.size;
    if let Some(all) = all {
        for (child, count) in children(0, v.size).rev() {
            let first = absolute(child);
            if first + count <= v.size {
                let mut runs = Vec::new();
                all.runs(b, first, first + count, |run| runs.push(run));
                for run in runs {
                    b.send(v, first, run);
                }
            } else {
                let temp = b.temp(count as u64 * each);
                unwrap_ring(b, temp, all, first, count, v.size, false);
                b.send(v, first, temp);
            }
        }
        if let Some(mine) = mine {
            let own = all.get(b, root);
            b.copy(own, mine);
        }
        return;
    }
    let mine = mine.expect("only the root can be in place");
    let parent = absolute(relative & (relative - 1));
    let below = subtree(relative, v.size);
    if below == 1 {
        b.recv(v, parent, mine);
        return;
    }
    let temp = b.temp(below as u64 * each);
    let come = b.recv(v, parent, temp);
    b.wait(come);
    for (child, count) in children(relative, v.size).rev() {
        let out = b.part(temp, (child - relative) as u64 * each, count as u64 * each);
        b.send(v, absolute(child), out);
    }
    let own = b.part(temp, 0, each);
    b.copy(own, mine);
}

/// Copies between packed blocks and those of ranks `first`, `first + 1` … round the ring.
pub fn unwrap_ring(
    b: &mut Builder,
    packed: Buf,
    all: &Blocks,
    first: usize,
    count: usize,
    size: usize,
    to_blocks: bool,
) {
    let mut runs = Vec::new();
    all.runs(b, first, (first + count).min(size), |run| runs.push(run));
    if first + count > size {
        all.runs(b, 0, first + count - size, |run| runs.push(run));
    }
    let mut at = 0;
    for run in runs {
        let bytes = b.bytes(run);
        let part = b.part(packed, at, bytes);
        at += bytes;
        if to_blocks {
            b.copy(part, run);
        } else {
            b.copy(run, part);
        }
    }
}
