//! Figure 3: what a search in the table of buffer usage costs on this machine, by the number of buffers,
//! beside one in a balanced binary tree. Real time: no two machines give the same.

use proto::memory::reuse::{Rules, Usage};
use std::hint::black_box;
use std::time::Instant;

use crate::sim::figure::{Curve, Figure, Scale};

const SEARCHES: usize = 1 << 18;
const ROUNDS: usize = 5;

/// A search tree in which every path is as short as it can be: the best case for a tree.
struct Tree {
    /// Address and both children, by index from 1.
    nodes: Vec<(usize, [u32; 2])>,
    root: u32,
}

impl Tree {
    fn new(sorted: &[usize]) -> Tree {
        let mut tree = Tree { nodes: Vec::with_capacity(sorted.len()), root: 0 };
        tree.root = tree.build(sorted);
        tree
    }

    fn build(&mut self, sorted: &[usize]) -> u32 {
        if sorted.is_empty() {
            return 0;
        }
        let middle = sorted.len() / 2;
        let children = [self.build(&sorted[..middle]), self.build(&sorted[middle + 1..])];
        self.nodes.push((sorted[middle], children));
        self.nodes.len() as u32
    }

    fn contains(&self, addr: usize) -> bool {
        let mut at = self.root;
        while at != 0 {
            let (here, children) = self.nodes[at as usize - 1];
            if here == addr {
                return true;
            }
            at = children[(addr > here) as usize];
        }
        false
    }
}

fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

/// The median of the times that one call takes.
fn ns_per_search(order: &[usize], mut search: impl FnMut(usize)) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            order.iter().for_each(|addr| search(*addr));
            start.elapsed().as_nanos() as f64 / order.len() as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Times searches: a table, and the figure.
pub fn measure() -> (String, Figure) {
    let mut text = format!("{:>9} {:>9} {:>9} {:>11}\n", "buffers", "hash, ns", "tree, ns", "compared");
    let (mut hash, mut tree) = (Vec::new(), Vec::new());
    for buffers in (7..=20).map(|bits| 1usize << bits) {
        let (count, hash_ns, tree_ns, compared) = searches(buffers);
        text += &format!("{count:>9} {hash_ns:>9.1} {tree_ns:>9.1} {compared:>11.2}\n");
        hash.push((count as f64, hash_ns));
        tree.push((count as f64, tree_ns));
    }
    let curves = vec![Curve::new("hash table", hash), Curve::new("balanced tree", tree)];
    let figure = Figure::by_size("000-fig3", "A search, on this machine", "ns", curves);
    (text, figure.over("buffers", Scale::Sizes))
}

/// Buffers there are, ns of a search in either, and entries that the hash table compares.
fn searches(buffers: usize) -> (usize, f64, f64, f64) {
    let mut state = 88172645463325252;
    let mut addrs: Vec<usize> =
        (0..buffers).map(|_| 0x7f00_0000_0000 + next(&mut state) % (1 << 36) * 16).collect();
    addrs.sort_unstable();
    addrs.dedup();
    let order: Vec<usize> = (0..SEARCHES).map(|_| addrs[next(&mut state) % addrs.len()]).collect();
    let tree = Tree::new(&addrs);
    let mut usage = Usage::new(Rules { least_frequent: 0.0, ..Rules::default() });
    addrs.iter().for_each(|addr| _ = usage.used(*addr, 1));
    let compared: u64 = order.iter().map(|addr| usage.used(*addr, 1).compared as u64).sum();
    let hash_ns = ns_per_search(&order, |addr| _ = black_box(usage.used(addr, 1)));
    let tree_ns = ns_per_search(&order, |addr| assert!(black_box(tree.contains(addr))));
    (addrs.len(), hash_ns, tree_ns, compared as f64 / order.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_find_what_is_there() {
        let (count, .., compared) = searches(1000);
        assert!(count > 900 && (1.0..1.1).contains(&compared), "{count} buffers, {compared} compared");
        let addrs: Vec<usize> = (0..100).map(|at| at * 3).collect();
        let tree = Tree::new(&addrs);
        assert!((0..300).all(|addr| tree.contains(addr) == (addr % 3 == 0)));
    }
}
