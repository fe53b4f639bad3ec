//! Which ranks of a communicator share a host.
//!
//! Known once per communicator, from [`fabric::Device::hosts`], and the same on all its ranks. A communicator whose
//! ranks are all on one host, or each on another, has one level: nothing is kept of it.
use std::sync::Arc;

/// How the ranks of a communicator are spread over hosts.
#[derive(Clone, Debug, Default)]
pub enum Spread {
    /// All on one.
    #[default]
    OneHost,
    /// Each on another.
    Apart,
    /// Several hosts, and several ranks on some of them.
    Levels(Arc<Levels>),
}

impl Spread {
    /// Of `size` ranks whose hosts are these.
    pub fn of(size: usize, host: impl Fn(usize) -> u32) -> Spread {
        let all: Vec<u32> = (0..size).map(host).collect();
        if all.windows(2).all(|pair| pair[0] == pair[1]) {
            return Spread::OneHost;
        }
        let levels = Levels::new(&all);
        if levels.count() == size { Spread::Apart } else { Spread::Levels(Arc::new(levels)) }
    }

    /// The two levels, if there are two.
    pub fn levels(&self) -> Option<&Levels> {
        match self {
            Spread::Levels(levels) => Some(levels),
            _ => None,
        }
    }
}

/// Edges of a round: whom every rank sends to.
#[derive(Clone, Copy, Debug)]
pub enum Edges {
    /// The rank 2^k further.
    Shift(u32),
    /// The rank whose number differs in bit k.
    Xor(u32),
}

/// Hosts are numbered in the order of their first ranks.
#[derive(Debug)]
pub struct Levels {
    /// The host of each rank.
    hosts: Box<[u32]>,
    /// Ranks host by host, ascending in each.
    members: Box<[u32]>,
    /// Where each host begins among them, and their number.
    starts: Box<[u32]>,
    most: usize,
    is_in_order: bool,
    /// By k: the most edges of one host to others in a round of shifts, and in one of exchanges.
    crossing: Box<[[u32; 2]]>,
}

impl Levels {
    fn new(named: &[u32]) -> Levels {
        let mut order: Vec<u32> = (0..named.len() as u32).collect();
        let mut first = std::collections::HashMap::new();
        for (rank, host) in named.iter().enumerate() {
            first.entry(*host).or_insert(rank as u32);
        }
        order.sort_by_key(|rank| (first[&named[*rank as usize]], *rank));
        let (mut hosts, mut starts) = (vec![0; named.len()], Vec::new());
        for (at, &rank) in order.iter().enumerate() {
            if at == 0 || named[order[at - 1] as usize] != named[rank as usize] {
                starts.push(at as u32);
            }
            hosts[rank as usize] = starts.len() as u32 - 1;
        }
        starts.push(named.len() as u32);
        let most = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize;
        let is_in_order = order.is_sorted();
        let bits = named.len().next_power_of_two().ilog2();
        let crossing =
            (0..bits).map(|k| [Edges::Shift(k), Edges::Xor(k)].map(|edges| crossing(&hosts, edges)));
        let crossing = crossing.collect();
        Levels {
            hosts: hosts.into(),
            members: order.into(),
            starts: starts.into(),
            most,
            is_in_order,
            crossing,
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.hosts.len()
    }

    /// Number of hosts.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Ranks of the host that has most.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Whether the ranks of each host follow each other: then hosts can be combined in the order of ranks.
    pub fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// Whether all hosts have as many ranks.
    pub fn is_even(&self) -> bool {
        self.most * self.count() == self.size()
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> usize {
        self.hosts[rank] as usize
    }

    /// All ranks, host by host.
    pub fn order(&self) -> &[u32] {
        &self.members
    }

    /// Where the ranks of a host begin in [`Levels::order`]; the number of hosts gives the end.
    pub fn start(&self, host: usize) -> usize {
        self.starts[host] as usize
    }

    /// The ranks of a host, ascending.
    pub fn members(&self, host: usize) -> &[u32] {
        &self.members[self.start(host)..self.start(host + 1)]
    }

    /// Whether the ranks of a host follow each other.
    pub fn follow(&self, host: usize) -> bool {
        let members = self.members(host);
        (members[members.len() - 1] - members[0]) as usize + 1 == members.len()
    }

    /// The most edges of one host that lead to others.
    pub fn crossing(&self, edges: Edges) -> u32 {
        let (k, which) = match edges {
            Edges::Shift(k) => (k, 0),
            Edges::Xor(k) => (k, 1),
        };
        self.crossing.get(k as usize).map_or(0, |both| both[which])
    }

    /// The same for the binomial tree around a root, whose edges of level k span 2^k ranks.
    pub fn tree(&self, root: usize) -> Vec<u32> {
        let size = self.size();
        let host = |relative: usize| self.hosts[(relative + root) % size];
        let mut edges = vec![0u32; self.count()];
        let level = |k: usize| {
            edges.fill(0);
            for parent in (0..size.saturating_sub(1 << k)).step_by(2 << k) {
                let (from, to) = (host(parent), host(parent + (1 << k)));
                edges[from as usize] += u32::from(from != to);
            }
            edges.iter().copied().max().unwrap_or(0)
        };
        (0..self.crossing.len()).map(level).collect()
    }
}

fn crossing(hosts: &[u32], edges: Edges) -> u32 {
    let size = hosts.len();
    let mut leaving = vec![0u32; size];
    for (rank, host) in hosts.iter().enumerate() {
        let peer = match edges {
            Edges::Shift(k) => (rank + (1 << k)) % size,
            Edges::Xor(k) => rank ^ 1 << k,
        };
        leaving[*host as usize] += u32::from(hosts.get(peer).is_some_and(|other| other != host));
    }
    leaving.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(hosts: &[u32]) -> Arc<Levels> {
        match Spread::of(hosts.len(), |rank| hosts[rank]) {
            Spread::Levels(levels) => levels,
            other => panic!("{hosts:?}: {other:?}"),
        }
    }

    #[test]
    fn one_level_is_told_from_two() {
        let spread = |hosts: &[u32]| Spread::of(hosts.len(), |rank| hosts[rank]);
        assert!(matches!(spread(&[7, 7, 7]), Spread::OneHost));
        assert!(matches!(spread(&[7]), Spread::OneHost));
        assert!(matches!(spread(&[2, 0, 1]), Spread::Apart));
        assert!(spread(&[2, 0, 2]).levels().is_some());
    }

    #[test]
    fn hosts_are_numbered_by_their_first_ranks() {
        let levels = levels(&[9, 4, 9, 4, 4]);
        assert_eq!(
            (levels.count(), levels.most(), levels.is_in_order(), levels.is_even()),
            (2, 3, false, false)
        );
        assert_eq!((levels.members(0), levels.members(1)), (&[0, 2][..], &[1, 3, 4][..]));
        assert_eq!(levels.order(), [0, 2, 1, 3, 4]);
        assert_eq!([0, 1, 2, 3, 4].map(|rank| levels.host(rank)), [0, 1, 0, 1, 1]);
        assert!(!levels.follow(0) && !levels.follow(1));
    }

    #[test]
    fn edges_between_hosts_are_counted() {
        let blocks = levels(&[0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!([0, 1, 2].map(|k| blocks.crossing(Edges::Shift(k))), [1, 2, 4]);
        assert_eq!([0, 1, 2].map(|k| blocks.crossing(Edges::Xor(k))), [0, 0, 4]);
        assert_eq!(blocks.tree(0), [0, 0, 1]);
        assert_eq!(blocks.tree(1), [1, 0, 1]);
        let cyclic = levels(&[0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!([0, 1, 2].map(|k| cyclic.crossing(Edges::Shift(k))), [4, 0, 0]);
        assert_eq!(cyclic.tree(0), [4, 0, 0]);
    }
}
