//! What a search in the table of buffer usage costs on this machine, by the number of buffers,
//! beside one in a balanced binary tree (paper 000, figure 3).
//!
//! `cargo run --release -p proto --example usage_search`

use proto::reuse::{Rules, Usage};
use std::hint::black_box;
use std::time::Instant;

const SEARCHES: usize = 1 << 20;
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

fn main() {
    println!("{:>9} {:>9} {:>9} {:>11}", "buffers", "hash, ns", "tree, ns", "compared");
    for buffers in (7..=20).map(|bits| 1usize << bits) {
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
        let compared = compared as f64 / order.len() as f64;
        println!("{:>9} {hash_ns:>9.1} {tree_ns:>9.1} {compared:>11.2}", addrs.len());
    }
}
