//! What each algorithm would cost, and the choice.
//!
//! Costs follow Hockney's model (1994) with the overhead of LogGP (Alexandrov et al. 1995): a
//! message of n bytes takes `α + nβ`, where α is latency and the overhead of both sides. The
//! counts of rounds and bytes are those of Thakur, Rabenseifner, Gropp (2005) and, for the chain,
//! of a pipeline of k segments over p-1 links. Nothing here is tuned by hand: what differs between
//! machines is in [`LinkCosts`], which is measured.
//!
//! All ranks must come to the same choice, so they must call with the same [`Facts`] and the same
//! costs: the costs of a communicator are agreed when it is made.
use super::tag::Kind;

/// The known ways to run a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Algorithm {
    /// Trees of ⌈log2 p⌉ levels.
    Binomial,
    /// Exchange with rank xor 2^k.
    RecursiveDoubling,
    /// Halving the vector, exchange with rank xor 2^k.
    RecursiveHalving,
    /// Signals over growing distances.
    Dissemination,
    /// Scatter, then a ring.
    ScatterAllgather,
    /// Segments down a line.
    Chain,
    /// Recursive halving, then gathering the pieces.
    Rabenseifner,
    /// Neighbours only, p - 1 rounds each way.
    Ring,
    /// Binomial tree in rank order.
    InOrder,
    /// Reduction to rank 0, then a broadcast.
    ReduceBcast,
    /// Every message directly.
    Linear,
    /// Blocks that travel 2^k ranks at a time.
    Bruck,
    /// Pairs of neighbours in turn.
    Neighbour,
    /// One partner after another.
    Pairwise,
}

use Algorithm::*;

impl Algorithm {
    /// The word that stands for it in settings.
    pub const fn word(self) -> &'static str {
        match self {
            Binomial => "binomial",
            RecursiveDoubling => "recursive-doubling",
            RecursiveHalving => "recursive-halving",
            Dissemination => "dissemination",
            ScatterAllgather => "scatter-allgather",
            Chain => "chain",
            Rabenseifner => "rabenseifner",
            Ring => "ring",
            InOrder => "in-order",
            ReduceBcast => "reduce-bcast",
            Linear => "linear",
            Bruck => "bruck",
            Neighbour => "neighbour",
            Pairwise => "pairwise",
        }
    }
}

/// The algorithms for a collective; of equal costs the first one wins.
pub const fn algorithms(kind: Kind) -> &'static [Algorithm] {
    match kind {
        Kind::Barrier => &[Dissemination, RecursiveDoubling],
        Kind::Bcast => &[Binomial, ScatterAllgather, Chain],
        Kind::Gather | Kind::Scatter => &[Binomial, Linear],
        Kind::Gatherv | Kind::Scatterv => &[Linear],
        Kind::Allgather | Kind::Allgatherv => &[RecursiveDoubling, Bruck, Neighbour, Ring],
        Kind::Alltoall => &[Bruck, Linear, Pairwise],
        Kind::Alltoallv | Kind::Alltoallw => &[Linear, Pairwise],
        Kind::Reduce => &[Binomial, Rabenseifner, InOrder],
        Kind::Allreduce => &[RecursiveDoubling, Rabenseifner, Ring, ReduceBcast],
        Kind::ReduceScatterBlock | Kind::ReduceScatter => &[RecursiveHalving, Pairwise, Ring, InOrder],
        Kind::Scan | Kind::Exscan => &[RecursiveDoubling, Linear],
    }
}

/// The setting that forces an algorithm.
pub const fn setting(kind: Kind) -> &'static str {
    match kind {
        Kind::Barrier => "TERN_COLL_BARRIER",
        Kind::Bcast => "TERN_COLL_BCAST",
        Kind::Gather | Kind::Gatherv => "TERN_COLL_GATHER",
        Kind::Scatter | Kind::Scatterv => "TERN_COLL_SCATTER",
        Kind::Allgather | Kind::Allgatherv => "TERN_COLL_ALLGATHER",
        Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw => "TERN_COLL_ALLTOALL",
        Kind::Reduce => "TERN_COLL_REDUCE",
        Kind::Allreduce => "TERN_COLL_ALLREDUCE",
        Kind::ReduceScatterBlock | Kind::ReduceScatter => "TERN_COLL_REDUCE_SCATTER",
        Kind::Scan | Kind::Exscan => "TERN_COLL_SCAN",
    }
}

/// What a link and a core cost, measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkCosts {
    /// From one rank to another, without overheads (L).
    pub latency_ns: f64,
    /// Of one side for one message (o).
    pub overhead_ns: f64,
    /// Of a long message (G).
    pub ns_per_byte: f64,
    /// Combining two vectors.
    pub reduce_ns_per_byte: f64,
    /// Copying in memory.
    pub copy_ns_per_byte: f64,
}

/// What the choice may depend on: equal on all ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Facts {
    /// Ranks.
    pub size: usize,
    /// Bytes of the vector (Bcast, reductions, Scan), of one rank's block (Gather, Scatter,
    /// Allgather, Alltoall), or of all blocks together (Allgatherv, Reduce_scatter).
    pub bytes: u64,
    /// Whether the operation commutes; true where there is none.
    pub commutes: bool,
}

/// A predicted cost in named terms.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost {
    /// Latencies and overheads one after the other.
    pub latency_ns: f64,
    /// Bytes on the way.
    pub transfer_ns: f64,
    /// Combining.
    pub reduce_ns: f64,
    /// Copies in memory.
    pub copy_ns: f64,
}

impl Cost {
    /// The sum of the terms.
    pub fn total(&self) -> f64 {
        self.latency_ns + self.transfer_ns + self.reduce_ns + self.copy_ns
    }
}

/// The outcome of [`choose`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Choice {
    /// What is run.
    pub winner: Algorithm,
    /// What it is predicted to cost.
    pub cost: Cost,
    /// The next best, if there is another.
    pub runner_up: Option<(Algorithm, Cost)>,
    /// How much more the runner-up would cost, in ns; negative if the winner was forced.
    pub margin_ns: f64,
    /// Whether a setting decided.
    pub forced: bool,
}

/// Whether an algorithm gives the right result in this case.
pub fn applies(kind: Kind, algorithm: Algorithm, facts: &Facts) -> bool {
    match (kind, algorithm) {
        (Kind::Allgather | Kind::Allgatherv, RecursiveDoubling) => facts.size.is_power_of_two(),
        (Kind::Allgather | Kind::Allgatherv, Neighbour) => facts.size.is_multiple_of(2),
        (Kind::Reduce, Binomial | Rabenseifner) => facts.commutes,
        (Kind::Allreduce, Rabenseifner | Ring) => facts.commutes,
        (Kind::ReduceScatter | Kind::ReduceScatterBlock, RecursiveHalving | Pairwise | Ring) => {
            facts.commutes
        }
        _ => true,
    }
}

/// The predicted cost of an algorithm that applies.
pub fn cost(kind: Kind, algorithm: Algorithm, facts: &Facts, link: &LinkCosts) -> Cost {
    let n = facts.bytes as f64;
    let p = facts.size as f64;
    let up = f64::from(facts.size.next_power_of_two().ilog2());
    let down = f64::from(facts.size.ilog2());
    let odd = if facts.size.is_power_of_two() { 0.0 } else { 1.0 };
    let share = (p - 1.0) / p;
    let sum = |rounds: f64, sent: f64, combined: f64, copied: f64| Cost {
        latency_ns: rounds * (link.latency_ns + 2.0 * link.overhead_ns),
        transfer_ns: sent * link.ns_per_byte,
        reduce_ns: combined * link.reduce_ns_per_byte,
        copy_ns: copied * link.copy_ns_per_byte,
    };
    // Messages that overlap: one latency, and the overhead of each.
    let spread = |messages: f64, sent: f64| Cost {
        latency_ns: link.latency_ns + link.overhead_ns + messages * link.overhead_ns,
        ..sum(0.0, sent, 0.0, 0.0)
    };
    match (kind, algorithm) {
        (Kind::Barrier, RecursiveDoubling) => sum(down + 2.0 * odd, 0.0, 0.0, 0.0),
        (Kind::Barrier, _) => sum(up, 0.0, 0.0, 0.0),
        (Kind::Bcast, ScatterAllgather) => sum(up + p - 1.0, 2.0 * share * n, 0.0, 0.0),
        (Kind::Bcast, Chain) => {
            let segment = segment(facts, link) as f64;
            let rounds = (n / segment).ceil() + (p - 2.0).max(0.0);
            sum(rounds, rounds * segment.min(n), 0.0, 0.0)
        }
        (Kind::Bcast, _) => sum(up, up * n, 0.0, 0.0),
        (Kind::Gather | Kind::Scatter, Binomial) => sum(up, (p - 1.0) * n, 0.0, (p / 2.0).floor() * n),
        (Kind::Gather | Kind::Scatter | Kind::Gatherv | Kind::Scatterv, _) => spread(p - 1.0, (p - 1.0) * n),
        (Kind::Allgather | Kind::Allgatherv, _) => {
            let total = if kind == Kind::Allgather { p * n } else { n };
            let rounds = match algorithm {
                RecursiveDoubling => down,
                Bruck => up,
                Neighbour => p / 2.0,
                _ => p - 1.0,
            };
            sum(rounds, share * total, 0.0, if algorithm == Bruck { total } else { 0.0 })
        }
        (Kind::Alltoall, Bruck) => sum(up, up * n * p / 2.0, 0.0, (up + 2.0) * n * p),
        (Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw, Pairwise) => {
            sum(p - 1.0, (p - 1.0) * n, 0.0, 0.0)
        }
        (Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw, _) => spread(2.0 * (p - 1.0), (p - 1.0) * n),
        (Kind::Reduce, Rabenseifner) => sum(2.0 * down + odd, (2.0 * share + odd) * n, (share + odd) * n, n),
        (Kind::Reduce, InOrder) => sum(up + 1.0, (up + 1.0) * n, up * n, 0.0),
        (Kind::Reduce, _) => sum(up, up * n, up * n, 0.0),
        (Kind::Allreduce, Rabenseifner) => {
            sum(2.0 * (down + odd), 2.0 * (share + odd) * n, (share + odd) * n, n)
        }
        (Kind::Allreduce, Ring) => sum(2.0 * (p - 1.0), 2.0 * share * n, share * n, n),
        (Kind::Allreduce, ReduceBcast) => sum(2.0 * up, 2.0 * up * n, up * n, 0.0),
        (Kind::Allreduce, _) => sum(down + 2.0 * odd, (down + 2.0 * odd) * n, (down + odd) * n, 0.0),
        (Kind::ReduceScatter | Kind::ReduceScatterBlock, RecursiveHalving) => {
            let fold = odd * n * (1.0 + 1.0 / p);
            sum(down + 2.0 * odd, share * n + fold, (share + odd) * n, n)
        }
        (Kind::ReduceScatter | Kind::ReduceScatterBlock, InOrder) => {
            sum(up + 1.0, (up + share) * n, up * n, 0.0)
        }
        (Kind::ReduceScatter | Kind::ReduceScatterBlock, _) => {
            sum(p - 1.0, share * n, share * n, if algorithm == Pairwise { 2.0 * n / p } else { n / p })
        }
        (Kind::Scan | Kind::Exscan, RecursiveDoubling) => sum(up, up * n, 2.0 * up * n, 2.0 * n),
        (Kind::Scan | Kind::Exscan, _) => sum(p - 1.0, (p - 1.0) * n, (p - 1.0) * n, n),
    }
}

/// The segment of a chain: of k segments over p - 1 links the time is `(k + p - 2)(α + βn/k)`,
/// least at `k = sqrt((p - 2) n β / α)`. At most 1024, which bounds the length of the program.
pub fn segment(facts: &Facts, link: &LinkCosts) -> u64 {
    let alpha = link.latency_ns + 2.0 * link.overhead_ns;
    let hops = (facts.size as f64 - 2.0).max(0.0);
    let best = (hops * facts.bytes as f64 * link.ns_per_byte / alpha.max(1.0)).sqrt();
    let segments = (best as u64).clamp(1, 1024);
    facts.bytes.div_ceil(segments).max(1).next_multiple_of(64)
}

/// The algorithm of least predicted cost among those that apply, or the forced one if it applies.
pub fn choose(kind: Kind, facts: &Facts, link: &LinkCosts, forced: Option<Algorithm>) -> Choice {
    let priced = || {
        let applicable = algorithms(kind).iter().copied().filter(|a| applies(kind, *a, facts));
        applicable.map(|algorithm| (algorithm, cost(kind, algorithm, facts, link)))
    };
    let least = |not: Option<Algorithm>| {
        let others = priced().filter(|entry| Some(entry.0) != not);
        others.min_by(|a, b| a.1.total().total_cmp(&b.1.total()))
    };
    let wanted = priced().find(|entry| Some(entry.0) == forced);
    let (winner, cost) = wanted.or_else(|| least(None)).expect("some algorithm applies to every case");
    let runner_up = least(Some(winner));
    let margin_ns = runner_up.map_or(0.0, |r| r.1.total() - cost.total());
    Choice { winner, cost, runner_up, margin_ns, forced: wanted.is_some() }
}

/// Algorithms forced by settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forced([Option<Algorithm>; Kind::ALL.len()]);

impl Forced {
    /// Reads what the settings force.
    pub fn read(settings: &fabric::settings::Settings) -> Forced {
        Forced(Kind::ALL.map(|kind| Self::parse(kind, settings.text(setting(kind)))))
    }

    /// Forces one algorithm for one collective.
    pub fn set(&mut self, kind: Kind, algorithm: Option<Algorithm>) {
        self.0[kind as usize] = algorithm;
    }

    /// What is forced for a collective.
    pub fn get(&self, kind: Kind) -> Option<Algorithm> {
        self.0[kind as usize]
    }

    fn parse(kind: Kind, word: &str) -> Option<Algorithm> {
        algorithms(kind).iter().copied().find(|a| a.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkCosts = LinkCosts {
        latency_ns: 100.0,
        overhead_ns: 20.0,
        ns_per_byte: 0.1,
        reduce_ns_per_byte: 0.1,
        copy_ns_per_byte: 0.05,
    };

    fn winner(kind: Kind, size: usize, bytes: u64, commutes: bool) -> Algorithm {
        choose(kind, &Facts { size, bytes, commutes }, &LINK, None).winner
    }

    #[test]
    fn latency_decides_for_short_and_bandwidth_for_long_vectors() {
        assert_eq!(winner(Kind::Bcast, 16, 8, true), Binomial);
        assert_ne!(winner(Kind::Bcast, 16, 1 << 24, true), Binomial);
        assert_eq!(winner(Kind::Allreduce, 16, 8, true), RecursiveDoubling);
        assert!(matches!(winner(Kind::Allreduce, 16, 1 << 24, true), Rabenseifner | Ring));
        assert_eq!(winner(Kind::Allreduce, 16, 1 << 24, false), RecursiveDoubling);
        assert_eq!(winner(Kind::Alltoall, 64, 8, true), Bruck);
        assert_ne!(winner(Kind::Alltoall, 64, 1 << 20, true), Bruck);
        assert_eq!(winner(Kind::Reduce, 16, 1 << 24, true), Rabenseifner);
        assert_eq!(winner(Kind::Reduce, 16, 1 << 24, false), InOrder);
        assert_eq!(winner(Kind::Scan, 16, 8, true), RecursiveDoubling);
    }

    #[test]
    fn the_choice_is_the_cheapest_and_a_forced_one_wins_where_it_applies() {
        for kind in Kind::ALL {
            for size in 1..20 {
                for bytes in [0, 8, 4096, 1 << 22] {
                    for commutes in [false, true] {
                        let facts = Facts { size, bytes, commutes };
                        let choice = choose(kind, &facts, &LINK, None);
                        assert!(choice.margin_ns >= 0.0 && !choice.forced);
                        let applicable = || algorithms(kind).iter().filter(|a| applies(kind, **a, &facts));
                        let least = applicable()
                            .map(|a| cost(kind, *a, &facts, &LINK).total())
                            .fold(f64::MAX, f64::min);
                        assert_eq!(choice.cost.total(), least);
                        assert_eq!(choice.runner_up.is_some(), applicable().count() > 1);
                        for &forced in algorithms(kind) {
                            let choice = choose(kind, &facts, &LINK, Some(forced));
                            assert_eq!(choice.forced, applies(kind, forced, &facts));
                            assert!(!choice.forced || choice.winner == forced);
                            let others = applicable().filter(|a| **a != choice.winner);
                            let next = others
                                .map(|a| cost(kind, *a, &facts, &LINK).total())
                                .fold(f64::MAX, f64::min);
                            assert_eq!(choice.runner_up.map_or(f64::MAX, |r| r.1.total()), next);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn settings_list_exactly_the_algorithms() {
        use fabric::settings::{ALL, Settings, Type};
        for kind in Kind::ALL {
            let declared = ALL.iter().find(|s| s.name == setting(kind)).expect("the setting is declared");
            let Type::Word(words) = declared.kind else { panic!("{} is not a word", declared.name) };
            assert_eq!(words[0], "auto");
            let listed = |a: &Algorithm| words.contains(&a.word());
            assert!(algorithms(kind).iter().all(listed), "{kind:?}");
            // Families share a setting; every word belongs to one of its collectives.
            let family = Kind::ALL.into_iter().filter(|k| setting(*k) == declared.name);
            let known: Vec<_> = family.flat_map(|k| algorithms(k).iter().map(|a| a.word())).collect();
            assert!(words[1..].iter().all(|w| known.contains(w)), "{kind:?}");
        }
        let lookup = |name: &str| (name == "TERN_COLL_ALLREDUCE").then(|| "ring".to_string());
        let forced = Forced::read(&Settings::read(lookup, std::iter::empty()).unwrap());
        assert_eq!(forced.get(Kind::Allreduce), Some(Ring));
        assert_eq!(forced.get(Kind::Bcast), None);
    }
}
