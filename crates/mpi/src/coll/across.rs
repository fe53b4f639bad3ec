//! What algorithms cost where some edges stay inside a host and others leave it.
//!
//! A round of a flat algorithm is as slow as its slowest edge, and the edges of one host that leave it share its
//! adapter: their gaps and bytes add up. How many there are [`Levels`] knows, for any placement. An algorithm of
//! two levels is the sum of its phases, each the cheapest there is among ranks that are all equally far apart.
use super::cost::{self, Algorithm, Algorithm::*, Price, Problem};
use super::levels::{Edges, Levels, Spread};
use super::rates::{Level, Rates, Tariff};
use super::tag::Collective;

/// The most blocks one leader may deal with one by one: it bounds the length of the program.
const BLOCKS: usize = 1 << 14;

/// Whether two levels give the right result, in a program of bounded length.
pub fn applies(kind: Collective, problem: &Problem, levels: &Levels) -> bool {
    match kind {
        Collective::Reduce | Collective::Allreduce => problem.commutes || levels.is_in_order(),
        Collective::ReduceScatter
        | Collective::ReduceScatterBlock
        | Collective::Scan
        | Collective::Exscan => levels.is_in_order(),
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => {
            levels.most() * levels.size() <= BLOCKS
        }
        _ => true,
    }
}

/// Most scratch memory of a leader for blocks that are not its own.
const LEADER_BYTES: u64 = 16 << 20;

/// The longest block that goes through leaders in collectives of which only the ends of a block know how long it is: to be
/// copied on its way costs it no more than a message of its own between hosts costs its ends. All ranks find the same.
pub fn through_leaders(kind: Collective, levels: &Levels, tariff: &Tariff) -> u64 {
    let (near, far) = (&tariff.host, &tariff.network);
    let is_mesh = matches!(kind, Collective::Alltoallv | Collective::Alltoallw);
    // Packed and unpacked once, or at both ends and by both leaders, beside the ways inside.
    let (copies, ways, blocks) =
        if is_mesh { (4.0, 2.0, levels.most() * levels.size()) } else { (1.0, 1.0, levels.size()) };
    let spared_ns = far.overhead_ns.max(far.receive_ns).max(far.gap_ns);
    let level = &near.levels[0];
    let per_byte = ways * near.per_byte(level, 0.0) + copies * level.copy;
    ((spared_ns / per_byte) as u64).min(LEADER_BYTES / blocks as u64)
}

/// The predicted price on two levels of an algorithm that applies.
pub fn price(
    kind: Collective,
    algorithm: Algorithm,
    problem: &Problem,
    levels: &Levels,
    tariff: &Tariff,
) -> Price {
    if algorithm == TwoLevel {
        return two_level(kind, problem, levels, tariff);
    }
    let m = Model::new(kind, problem, levels, tariff);
    let (n, p, up, down, odd) = (m.n, m.p, m.up, m.down, f64::from(m.odd));
    match (kind, algorithm) {
        (Collective::Barrier, Linear) => m.mesh(0.0),
        (Collective::Barrier, Star) => m.star(true, 0.0).and(m.star(false, 0.0)),
        (Collective::Barrier, RecursiveDoubling) => m.exchanges(|_| 0.0).and(m.folded(2.0 * odd, 0.0)),
        (Collective::Barrier, _) => m.sum(up, |k| m.leg(Edges::Shift(k), 1.0, 0.0)),
        (Collective::Bcast, ScatterAllgather) => {
            m.tree(|k| n * f64::from(1 << k) / p).and(m.ring(p - 1.0, n / p))
        }
        (Collective::Bcast, Chain) => m.chain(),
        (Collective::Bcast, Linear) => m.star(false, n),
        (Collective::Bcast, _) => m.tree(|_| n),
        (Collective::Gather | Collective::Scatter, Binomial) => {
            m.tree(|k| n * f64::from(1 << k)).and(m.copies((p / 2.0).floor() * n))
        }
        (Collective::Gather | Collective::Gatherv, _) => m.star(true, n),
        (Collective::Scatter | Collective::Scatterv, _) => m.star(false, n),
        (Collective::Allgather | Collective::Allgatherv, _) => m.gathering(kind, algorithm),
        (Collective::Alltoall, Bruck) => {
            m.sum(up, |k| m.leg(Edges::Shift(k), 1.0, n * p / 2.0)).and(m.copies((up + 2.0) * n * p))
        }
        (Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw, Pairwise) => m.pairwise(n),
        (Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw, _) => m.mesh(n),
        (Collective::Scan | Collective::Exscan, RecursiveDoubling) => {
            m.sum(up, |k| m.leg(Edges::Xor(k), 1.0, n)).and(m.combines(2.0 * up * n)).and(m.copies(2.0 * n))
        }
        (Collective::Scan | Collective::Exscan, _) => m.line(n).and(m.combines((p - 1.0) * n)),
        (Collective::Allreduce, RecursiveDoubling) => {
            m.exchanges(|_| n).and(m.folded(2.0 * odd, n)).and(m.combines((down + odd) * n))
        }
        _ => m.reduction(kind, algorithm),
    }
}

/// The sum of the phases, among as many ranks as the largest host has.
fn two_level(kind: Collective, problem: &Problem, levels: &Levels, tariff: &Tariff) -> Price {
    let (size, c) = (levels.size() as u64, levels.most() as u64);
    let n = problem.bytes;
    let least = |kind, size, bytes, spread: &Spread| {
        let phase = Problem { size, bytes, commutes: problem.commutes, root: 0, spread };
        cost::choose(kind, &phase, tariff, None).price
    };
    let near = |kind, bytes| least(kind, levels.most(), bytes, &Spread::OneHost);
    let far = |kind, bytes| least(kind, levels.count(), bytes, &Spread::Apart);
    let copies = |bytes: u64| Price {
        copy_ns: bytes as f64 * tariff.host.level(problem.data(kind)).copy,
        ..Price::default()
    };
    // What does not lie in order is packed and unpacked.
    let packed = |bytes: u64| if levels.is_in_order() { Price::default() } else { copies(bytes) };
    match kind {
        Collective::Barrier => {
            near(Collective::Bcast, 0).and(far(Collective::Barrier, 0)).and(near(Collective::Bcast, 0))
        }
        Collective::Bcast => far(Collective::Bcast, n).and(near(Collective::Bcast, n)),
        Collective::Reduce => near(Collective::Reduce, n).and(far(Collective::Reduce, n)),
        Collective::Allreduce => {
            near(Collective::Reduce, n).and(far(Collective::Allreduce, n)).and(near(Collective::Bcast, n))
        }
        Collective::Gather | Collective::Scatter => {
            near(Collective::Gather, n).and(far(Collective::Gatherv, c * n)).and(packed(size * n))
        }
        // Lengths nobody knows: as if all were nothing, for what is long goes straight in any case.
        Collective::Gatherv | Collective::Scatterv => {
            near(Collective::Gatherv, WORD).and(near(kind, n)).and(far(kind, c * (n + WORD)))
        }
        Collective::Alltoallv | Collective::Alltoallw => {
            let inside = near(Collective::Gatherv, 2 * size * WORD).and(near(Collective::Gatherv, size * n));
            let inside = inside.and(near(Collective::Scatterv, size * n)).and(near(kind, n));
            // Each block is a step of a program that is written while others wait, and one that is run.
            let sorted = Price { latency_ns: (4 * c * size) as f64 * COPY_NS, ..copies(4 * c * size * n) };
            inside.and(far(Collective::Alltoallv, c * c * (n + WORD))).and(sorted)
        }
        Collective::Allgather | Collective::Allgatherv => {
            let total = if kind == Collective::Allgather { size * n } else { n };
            let inside = near(Collective::Gatherv, total / size).and(near(Collective::Bcast, total));
            inside.and(far(Collective::Allgatherv, total)).and(packed(total))
        }
        Collective::Alltoall => {
            let inside = near(Collective::Gatherv, size * n).and(near(Collective::Scatterv, size * n));
            let sorted = Price { latency_ns: (c * size) as f64 * COPY_NS, ..copies(2 * c * size * n) };
            inside.and(far(Collective::Alltoallv, c * c * n)).and(sorted).and(packed(2 * size * n))
        }
        Collective::Scan | Collective::Exscan => {
            let inside = near(kind, n).and(near(Collective::Bcast, n));
            let reduce_ns = n as f64 * tariff.host.level(problem.data(kind)).reduce;
            inside.and(far(Collective::Exscan, n)).and(Price { reduce_ns, ..Price::default() })
        }
        _ => {
            let inside = near(Collective::Reduce, n).and(near(Collective::Scatterv, n / size));
            inside.and(far(Collective::ReduceScatter, n))
        }
    }
}

/// Bytes of a length that is told.
const WORD: u64 = size_of::<u64>() as u64;

/// What a copy costs before its first byte, as a step of a program.
const COPY_NS: f64 = 20.0;

/// A case on two levels with the machine it runs on.
struct Model<'a> {
    near: &'a Rates,
    far: &'a Rates,
    /// What a byte costs inside a host, and between hosts.
    byte: &'a Level,
    far_byte: &'a Level,
    levels: &'a Levels,
    n: f64,
    p: f64,
    /// Levels of a tree, and exchanges among the largest power of two; whether ranks are left over.
    up: f64,
    down: f64,
    odd: bool,
    /// Ranks of the largest host, and of one core.
    c: f64,
    crowd: f64,
    /// Cores that all hosts share, if they do.
    cores: f64,
    /// Until all ranks of a core have had their turn.
    turn_ns: f64,
    root: usize,
}

impl<'a> Model<'a> {
    fn new(kind: Collective, problem: &Problem, levels: &'a Levels, tariff: &'a Tariff) -> Model<'a> {
        let near = &tariff.host;
        let crowd = tariff.crowd(problem.size, problem.spread) as f64;
        Model {
            near,
            far: &tariff.network,
            byte: near.level(problem.data(kind)),
            far_byte: tariff.network.level(problem.data(kind)),
            levels,
            n: problem.bytes as f64,
            p: problem.size as f64,
            up: f64::from(problem.size.next_power_of_two().ilog2()),
            down: f64::from(problem.size.ilog2()),
            odd: !problem.size.is_power_of_two(),
            c: levels.most() as f64,
            crowd,
            cores: f64::from(tariff.network.cores.max(1)),
            turn_ns: (crowd - 1.0) * near.switch_ns,
            root: problem.root,
        }
    }

    fn sum(&self, rounds: f64, round: impl Fn(u32) -> Price) -> Price {
        (0..rounds as u32).map(round).fold(Price::default(), Price::and)
    }

    /// A message without data.
    fn step(&self, link: &Rates) -> f64 {
        link.latency_ns + (link.overhead_ns + link.receive_ns) * self.crowd + self.turn_ns
    }

    /// Rounds in which every rank sends `bytes` along edges of one pattern.
    fn leg(&self, edges: Edges, rounds: f64, bytes: f64) -> Price {
        self.crossed(f64::from(self.levels.crossing(edges)), rounds, bytes)
    }

    /// Rounds in which every rank sends `bytes`, and from no host more than `crossing` leave.
    fn crossed(&self, crossing: f64, rounds: f64, bytes: f64) -> Price {
        self.crossed_at_once(crossing, self.levels.count() as f64, rounds, bytes)
    }

    /// The same from so many hosts at once. Where these share cores, those do the work of all adapters.
    fn crossed_at_once(&self, crossing: f64, hosts: f64, rounds: f64, bytes: f64) -> Price {
        let step = |link: &Rates| self.step(link) + link.agreed_ns(bytes);
        let near = (step(self.near), self.crowd * bytes * self.near.per_byte(self.byte, bytes));
        let (latency, transfer) = if crossing == 0.0 {
            near
        } else {
            let (wait, bytes) = self.adapter(crossing, bytes);
            let far = (step(self.far) + wait, bytes * self.hosts_of_core(hosts));
            if far.0 + far.1 > near.0 + near.1 { far } else { near }
        };
        Price { latency_ns: rounds * latency, transfer_ns: rounds * transfer, ..Price::default() }
    }

    /// Of so many hosts with something to do, those of one core.
    fn hosts_of_core(&self, hosts: f64) -> f64 {
        (hosts * f64::from(self.far.ends) / self.cores).max(1.0)
    }

    /// How long an adapter is busy with messages of several ranks: what gaps add to the bytes, and the bytes.
    fn adapter(&self, messages: f64, bytes: f64) -> (f64, f64) {
        let each = bytes * self.far_byte.busy;
        // Copies that the link does not hide are made by each rank for itself.
        let copies = bytes * (self.far.per_byte(self.far_byte, bytes) - self.far_byte.busy).max(0.0);
        ((messages - 1.0).max(0.0) * (self.far.gap_ns - each).max(0.0), messages * each + copies)
    }

    /// Exchanges with the ranks whose numbers differ in one bit.
    fn exchanges(&self, bytes: impl Fn(u32) -> f64) -> Price {
        self.sum(self.down, |k| self.leg(Edges::Xor(k), 1.0, bytes(k)))
    }

    /// What ranks beyond a power of two add.
    fn folded(&self, rounds: f64, bytes: f64) -> Price {
        self.leg(Edges::Shift(self.down as u32), rounds, bytes)
    }

    /// The binomial tree around the root; an edge of level k carries `bytes(k)`.
    fn tree(&self, bytes: impl Fn(u32) -> f64) -> Price {
        let crossing = self.levels.tree(self.root);
        self.sum(self.up, |k| {
            let from_one = f64::from(crossing[k as usize]);
            let hosts = self.p / f64::from(2 << k) / from_one.max(1.0);
            self.crossed_at_once(from_one, hosts, 1.0, bytes(k))
        })
    }

    /// One rank has a message of `bytes` for each other, or gets one from each.
    fn star(&self, inward: bool, bytes: f64) -> Price {
        let own = self.levels.members(self.levels.host(self.root)).len() as f64;
        let (inside, outside) = (own - 1.0, self.p - own);
        let (wait, far_bytes) = self.adapter(outside, bytes);
        let (near, far) = (cost::sides(self.near, inward), cost::sides(self.far, inward));
        let serial = if self.near.single_copy { inside.min(1.0) } else { inside };
        let near_bytes =
            bytes * (self.near.per_byte(self.byte, bytes) + (serial - 1.0).max(0.0) * self.byte.busy);
        Price {
            latency_ns: self.far.latency_ns
                + far.1
                + (inside * near.0 + outside * far.0).max(wait)
                + self.turn_ns,
            transfer_ns: far_bytes.max(near_bytes),
            ..Price::default()
        }
    }

    /// Every rank has a message of `bytes` for every other and gets one from it, all at once.
    fn mesh(&self, bytes: f64) -> Price {
        let (inside, outside) = (self.c - 1.0, self.p - self.c);
        let (wait, far_bytes) = self.adapter(self.c * outside, bytes);
        let both = |link: &Rates| link.overhead_ns + link.receive_ns;
        let crowded = self.crowd * (1.0 + self.near.crowding * (self.crowd - 1.0));
        let overhead = crowded * (inside * both(self.near) + outside * both(self.far));
        Price {
            latency_ns: self.far.latency_ns
                + self.far.agreed_ns(bytes)
                + self.far.overhead_ns
                + overhead.max(wait)
                + self.turn_ns,
            transfer_ns: (far_bytes * self.hosts_of_core(self.levels.count() as f64))
                .max(self.crowd * inside * bytes * self.near.per_byte(self.byte, bytes)),
            ..Price::default()
        }
    }

    /// Rounds in which every rank passes on to the next what came from the one before. What a rank waits for has
    /// met every edge in turn, so few edges between hosts cost their latency rarely; their ends are busy in each round.
    fn ring(&self, rounds: f64, bytes: f64) -> Price {
        let far = rounds * self.breaks() / self.p;
        let path = self.crossed(1.0, far, bytes).and(self.crossed(0.0, rounds - far, bytes));
        let crossing = f64::from(self.levels.crossing(Edges::Shift(0)));
        let (wait, far_bytes) = self.adapter(crossing, bytes);
        let busy = Price {
            latency_ns: self.step(self.far)
                + rounds * self.far.agreed_ns(bytes)
                + rounds * (self.far.overhead_ns.max(self.far.receive_ns) + wait),
            transfer_ns: rounds * far_bytes * self.hosts_of_core(self.levels.count() as f64),
            ..Price::default()
        };
        if busy.total() > path.total() { busy } else { path }
    }

    /// Each round another partner: nearly all rounds have edges between hosts, at most as many as a host has ranks.
    fn pairwise(&self, bytes: f64) -> Price {
        let rounds = self.p - 1.0;
        let mean = (self.c * (self.p - self.c) / rounds).max(1.0);
        self.crossed(mean, rounds, bytes)
    }

    /// Edges between neighbours that lead to another host, of all hosts together.
    fn breaks(&self) -> f64 {
        let crossing = f64::from(self.levels.crossing(Edges::Shift(0)));
        (crossing * self.levels.count() as f64).min(self.p - 1.0)
    }

    /// Down the line, one rank after the other.
    fn line(&self, bytes: f64) -> Price {
        let breaks = self.breaks();
        self.crossed(1.0, breaks, bytes).and(self.crossed(0.0, self.p - 1.0 - breaks, bytes))
    }

    /// Segments down the line: the first one meets all edges, the others follow at the pace of the slowest.
    fn chain(&self) -> Price {
        let problem = Problem {
            size: self.p as usize,
            bytes: self.n as u64,
            commutes: true,
            root: 0,
            spread: &Spread::Apart,
        };
        let segment = (cost::segment_of(&problem, self.far) as f64).min(self.n);
        let rest = (self.n / segment.max(1.0)).ceil() - 1.0;
        self.line(segment).and(self.leg(Edges::Shift(0), rest.max(0.0), segment))
    }

    fn gathering(&self, kind: Collective, algorithm: Algorithm) -> Price {
        let n = if kind == Collective::Allgather { self.n } else { self.n / self.p };
        match algorithm {
            Linear => self.mesh(n),
            RecursiveDoubling => self.exchanges(|k| n * f64::from(1 << k)),
            Bruck => {
                let have = |k: u32| f64::from(1 << k).min(self.p - f64::from(1 << k)) * n;
                self.sum(self.up, |k| self.leg(Edges::Shift(k), 1.0, have(k))).and(self.copies(self.p * n))
            }
            // Each edge is met in every second round.
            Neighbour => {
                let pair = self.leg(Edges::Shift(0), self.p / 4.0, 2.0 * n);
                pair.and(self.crossed(0.0, self.p / 4.0, 2.0 * n))
            }
            _ => self.ring(self.p - 1.0, n),
        }
    }

    fn reduction(&self, kind: Collective, algorithm: Algorithm) -> Price {
        let (n, p, up, down, odd) = (self.n, self.p, self.up, self.down, f64::from(self.odd));
        let share = (p - 1.0) / p;
        let part = |k: u32| n * f64::from(1 << k) / f64::from(1 << down as u32);
        let halved = |folds: f64| {
            let work = self.combines((share + odd) * n).and(self.copies(n));
            self.exchanges(part).and(self.folded(folds * odd, n)).and(work)
        };
        match (kind, algorithm) {
            (Collective::Reduce, Rabenseifner) => halved(1.0).and(self.exchanges(part)),
            (Collective::Allreduce, Rabenseifner) => halved(2.0).and(self.exchanges(part)),
            (Collective::Reduce, InOrder) => {
                self.tree(|_| n).and(self.folded(1.0, n)).and(self.combines(up * n))
            }
            (Collective::Reduce, Linear) => self.star(true, n).and(self.combines((p - 1.0) * n)),
            (Collective::Reduce, _) => self.tree(|_| n).and(self.combines(up * n)),
            (Collective::Allreduce, Ring) => {
                let work = self.combines(share * n).and(self.copies(n));
                self.ring(2.0 * (p - 1.0), n / p).and(work)
            }
            (Collective::Allreduce, ReduceBcast) => {
                self.tree(|_| n).and(self.tree(|_| n)).and(self.combines(up * n))
            }
            (Collective::Allreduce, TwoShot) => {
                let shares = self.mesh(n / p);
                shares.and(shares).and(self.combines(self.crowd * share * n))
            }
            (Collective::Allreduce, Linear) => self.mesh(n).and(self.combines(self.crowd * (p - 1.0) * n)),
            (Collective::Allreduce, _) => {
                self.star(true, n).and(self.star(false, n)).and(self.combines((p - 1.0) * n))
            }
            (_, RecursiveHalving) => halved(1.0).and(self.folded(odd, n / p)),
            (_, Pairwise) => self.pairwise(n / p).and(self.combines(share * n)),
            (_, Linear) => self.mesh(n / p).and(self.combines(self.crowd * share * n)),
            (_, InOrder) => self.tree(|_| n).and(self.star(false, n / p)).and(self.combines(up * n)),
            (_, _) => self.ring(p - 1.0, n / p).and(self.combines(share * n)),
        }
    }

    fn combines(&self, bytes: f64) -> Price {
        Price { reduce_ns: self.crowd * bytes * self.byte.reduce, ..Price::default() }
    }

    fn copies(&self, bytes: f64) -> Price {
        Price { copy_ns: self.crowd * bytes * self.byte.copy, ..Price::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winner(
        kind: Collective,
        hosts: &[u32],
        bytes: u64,
        commutes: bool,
        forced: Option<Algorithm>,
    ) -> Algorithm {
        let spread = &Spread::of(hosts.len(), |rank| hosts[rank]);
        let problem = Problem { size: hosts.len(), bytes, commutes, root: 0, spread };
        cost::choose(kind, &problem, &Tariff::default(), forced).winner
    }

    /// 4 hosts of 8 ranks, by blocks or in turn.
    fn hosts(in_turn: bool) -> Vec<u32> {
        (0..32).map(|rank| if in_turn { rank % 4 } else { rank / 8 }).collect()
    }

    #[test]
    fn short_messages_take_two_levels_and_long_ones_the_ring() {
        for in_turn in [false, true] {
            let hosts = hosts(in_turn);
            for kind in [
                Collective::Barrier,
                Collective::Bcast,
                Collective::Reduce,
                Collective::Allreduce,
                Collective::Allgather,
                Collective::Alltoall,
            ] {
                assert_eq!(winner(kind, &hosts, 8, true, None), TwoLevel, "{kind:?}, in turn {in_turn}");
            }
        }
        assert_eq!(winner(Collective::Allreduce, &hosts(false), 1 << 24, true, None), Ring);
        assert_ne!(
            winner(Collective::Allreduce, &hosts(true), 1 << 24, true, None),
            Ring,
            "all of its edges leave a host"
        );
    }

    #[test]
    fn flat_ones_can_be_forced_and_two_levels_only_where_there_are_two() {
        assert_eq!(winner(Collective::Bcast, &hosts(false), 8, true, Some(Binomial)), Binomial);
        assert_eq!(winner(Collective::Bcast, &hosts(true), 1 << 24, true, Some(TwoLevel)), TwoLevel);
        let one_host = winner(Collective::Bcast, &[3; 8], 8, true, Some(TwoLevel));
        let apart = winner(Collective::Bcast, &[0, 1, 2, 3], 8, true, Some(TwoLevel));
        assert!(one_host != TwoLevel && apart != TwoLevel);
    }

    #[test]
    fn what_does_not_commute_keeps_its_order() {
        for kind in [Collective::Reduce, Collective::Allreduce] {
            assert_eq!(winner(kind, &hosts(false), 8, false, Some(TwoLevel)), TwoLevel);
            assert_ne!(winner(kind, &hosts(true), 8, false, Some(TwoLevel)), TwoLevel);
        }
    }
}
