//! Which process carries which node of a topology, where the program leaves that to the library (`reorder`): so that
//! as few edges as possible lead from one host to another, and inside a host from one cache to another.
//!
//! Messages inside a host are several times cheaper than those between hosts, so what counts is the weight of the
//! edges that cross. Each host in turn takes a node and then, as long as it has processes left, the one that most
//! edges join with those it has. If that crosses no less than leaving everything where it is, it is left. Of what a host
//! has the same is then asked for its caches: processes that share one read each other's messages from it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Two nodes, and how much their edge counts.
pub type Edge = (u32, u32, u64);

/// Where a process is: its host, and a number that those of this host share who share a cache.
pub type Place = (u32, u64);

/// The rank that carries each node; `places` are those of ranks 0, 1, …, of which there are as many as nodes. Edges count in
/// both directions, all the same.
pub fn order(places: &[Place], edges: &[Edge]) -> Vec<u32> {
    let hosts: Vec<u32> = places.iter().map(|place| place.0).collect();
    let mut order = order_by_hosts(&hosts, edges);
    for host in unique(&hosts) {
        let carried: Vec<usize> =
            (0..order.len()).filter(|node| hosts[order[*node] as usize] == host).collect();
        let ranks: Vec<u32> = carried.iter().map(|node| order[*node]).collect();
        let caches: Vec<u64> = ranks.iter().map(|rank| places[*rank as usize].1).collect();
        if caches.iter().all(|cache| *cache == caches[0]) {
            continue;
        }
        let mut number = vec![None; order.len()];
        (0..).zip(&carried).for_each(|(at, node)| number[*node] = Some(at));
        let inner = |&(a, b, weight): &Edge| Some((number[a as usize]?, number[b as usize]?, weight));
        let inner: Vec<Edge> = edges.iter().filter_map(inner).collect();
        let domains: Vec<u64> = unique(&caches);
        let domain =
            |cache| domains.iter().position(|known| *known == cache).expect("it is one of them") as u32;
        let domains: Vec<u32> = caches.iter().map(|cache| domain(*cache)).collect();
        let moved = order_by_hosts(&domains, &inner);
        carried.iter().zip(moved).for_each(|(node, at)| order[*node] = ranks[at as usize]);
    }
    order
}

/// As [`order`] by hosts alone.
fn order_by_hosts(hosts: &[u32], edges: &[Edge]) -> Vec<u32> {
    let nodes = hosts.len();
    let identity = || (0..nodes as u32).collect();
    if hosts.windows(2).all(|two| two[0] == two[1]) {
        return identity();
    }
    let placed = grown(hosts, &adjacency(nodes, edges));
    if crossing(&placed, edges) >= crossing(hosts, edges) {
        return identity();
    }
    let mut order = vec![0; nodes];
    for host in unique(hosts) {
        let ranks = (0..nodes).filter(|rank| hosts[*rank] == host);
        let carried = (0..nodes).filter(|node| placed[*node] == host);
        ranks.zip(carried).for_each(|(rank, node)| order[node] = rank as u32);
    }
    order
}

/// The weight of the edges between nodes that different hosts carry.
fn crossing(host_of: &[u32], edges: &[Edge]) -> u64 {
    let crosses = |a: u32, b: u32| host_of[a as usize] != host_of[b as usize];
    edges.iter().filter(|(a, b, _)| crosses(*a, *b)).map(|(.., weight)| weight).sum()
}

/// Hosts, or caches, in the order in which they appear.
fn unique<T: PartialEq + Copy>(hosts: &[T]) -> Vec<T> {
    let mut seen = Vec::new();
    for host in hosts {
        if !seen.contains(host) {
            seen.push(*host);
        }
    }
    seen
}

fn adjacency(nodes: usize, edges: &[Edge]) -> Vec<Vec<(u32, u64)>> {
    let mut near = vec![Vec::new(); nodes];
    for &(a, b, weight) in edges.iter().filter(|(a, b, _)| a != b) {
        near[a as usize].push((b, weight));
        near[b as usize].push((a, weight));
    }
    near
}

/// The host of each node, grown node by node.
fn grown(hosts: &[u32], near: &[Vec<(u32, u64)>]) -> Vec<u32> {
    let mut host_of: Vec<Option<u32>> = vec![None; hosts.len()];
    let mut first = 0;
    for host in unique(hosts) {
        // Edges to what this host has, and when a node was last looked at with that many.
        let mut joined = vec![0u64; hosts.len()];
        let mut heap: BinaryHeap<(u64, Reverse<usize>, Reverse<usize>)> = BinaryHeap::new();
        for _ in hosts.iter().filter(|other| **other == host) {
            let next = loop {
                match heap.pop() {
                    None => {
                        while host_of[first].is_some() {
                            first += 1;
                        }
                        break first;
                    }
                    Some((edges, _, Reverse(node))) if host_of[node].is_none() && joined[node] == edges => {
                        break node;
                    }
                    Some(_) => {}
                }
            };
            host_of[next] = Some(host);
            for &(node, weight) in &near[next] {
                let node = node as usize;
                joined[node] += weight;
                // Of equal ones that with the fewest edges elsewhere, then the first.
                let free = near[node].iter().filter(|(other, _)| host_of[*other as usize].is_none()).count();
                heap.push((joined[node], Reverse(free), Reverse(node)));
            }
        }
    }
    host_of.into_iter().map(|host| host.expect("there are as many ranks as nodes")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topo::Cart;
    use proptest::prelude::*;

    fn weighted(edges: &[(u32, u32)]) -> Vec<Edge> {
        edges.iter().map(|(a, b)| (*a, *b, 1)).collect()
    }

    fn order(hosts: &[u32], edges: &[(u32, u32)]) -> Vec<u32> {
        let places: Vec<Place> = hosts.iter().map(|host| (*host, 0)).collect();
        super::order(&places, &weighted(edges))
    }

    fn grid(dims: &[i32], ring: i32) -> Vec<(u32, u32)> {
        Cart::new(dims, &vec![ring; dims.len()], u32::MAX).unwrap().edges()
    }

    fn cut(hosts: &[u32], edges: &[(u32, u32)]) -> (u64, u64) {
        let order = order(hosts, edges);
        let edges = &weighted(edges);
        let host_of: Vec<u32> = order.iter().map(|rank| hosts[*rank as usize]).collect();
        (crossing(hosts, edges), crossing(&host_of, edges))
    }

    #[test]
    fn heavy_edges_stay_inside_hosts() {
        // A ring of four on two hosts: it is cut at its light edges, wherever these are.
        for shift in 0..4 {
            let ring = |i: u32| ((i + shift) % 4, (i + shift + 1) % 4, [100, 1][i as usize % 2]);
            let edges: Vec<Edge> = (0..4).map(ring).collect();
            let hosts = [0, 1, 0, 1];
            let order = order_by_hosts(&hosts, &edges);
            let host_of: Vec<u32> = order.iter().map(|rank| hosts[*rank as usize]).collect();
            assert_eq!(crossing(&host_of, &edges), 2, "{order:?}");
        }
    }

    #[test]
    fn neighbours_come_to_one_host() {
        // Each host has a column of the grid.
        let dealt: Vec<u32> = (0..16).map(|rank| rank % 4).collect();
        let (before, after) = cut(&dealt, &grid(&[4, 4], 0));
        assert!(after < before, "{before} {after}");
        // Two hosts, a long grid: one cut through its short side.
        let dealt: Vec<u32> = (0..16).map(|rank| rank % 2).collect();
        assert_eq!(cut(&dealt, &grid(&[8, 2], 0)).1, 4);
    }

    #[test]
    fn neighbours_inside_a_host_come_to_one_cache() {
        // Two hosts of two caches with two processes each, dealt out to the caches in turn; a chain.
        let places: Vec<Place> = (0..8).map(|rank| (rank / 4, u64::from(rank % 2))).collect();
        let chain: Vec<Edge> = (0..7).map(|i| (i, i + 1, 1)).collect();
        let order = super::order(&places, &chain);
        let differ = |what: fn(&Place) -> u64| {
            let of = |node: u32| what(&places[order[node as usize] as usize]);
            chain.iter().filter(|(a, b, _)| of(*a) != of(*b)).count()
        };
        assert_eq!(differ(|place| place.0.into()), 1, "{order:?}");
        assert_eq!(differ(|place| u64::from(place.0) << 8 | place.1), 3, "{order:?}");
        // Caches of nobody knows which processes change nothing.
        let places: Vec<Place> = (0..8).map(|rank| (rank / 4, u64::MAX)).collect();
        assert_eq!(super::order(&places, &chain), (0..8).collect::<Vec<u32>>());
    }

    #[test]
    fn nothing_moves_where_nothing_is_won() {
        let all = |hosts: &[u32], dims: &[i32]| order(hosts, &grid(dims, 1));
        assert_eq!(all(&[7; 6], &[3, 2]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(all(&[0, 1, 2, 3], &[2, 2]), [0, 1, 2, 3]);
        assert_eq!(all(&[0, 0, 0, 0, 1, 1, 1, 1], &[4, 2]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(order(&[], &[]), [0u32; 0]);
    }

    proptest! {
        #[test]
        fn it_is_a_permutation_that_crosses_no_more(
            hosts in proptest::collection::vec(0u32..4, 1..24),
            caches in proptest::collection::vec(0u64..3, 24),
            picks in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..80),
        ) {
            let n = hosts.len() as u32;
            let edges: Vec<(u32, u32)> = picks.iter().map(|(a, b)| (a % n, b % n)).collect();
            let mut carried = order(&hosts, &edges);
            let (before, after) = cut(&hosts, &edges);
            prop_assert!(after <= before);
            carried.sort();
            prop_assert_eq!(carried, (0..n).collect::<Vec<_>>());
            let places: Vec<Place> = hosts.iter().copied().zip(caches).collect();
            let near = super::order(&places, &weighted(&edges));
            let host_of = |order: &[u32]| order.iter().map(|rank| hosts[*rank as usize]).collect::<Vec<u32>>();
            prop_assert_eq!(host_of(&near), host_of(&order(&hosts, &edges)), "caches move nothing to another host");
            let mut near = near;
            near.sort();
            prop_assert_eq!(near, (0..n).collect::<Vec<_>>());
        }
    }
}
