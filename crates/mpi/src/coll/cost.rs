//! What each algorithm would cost, and the choice.
//!
//! Costs follow Hockney's model (1994) with the overhead of LogGP (Alexandrov et al. 1995): a
//! message of n bytes takes `α + nβ`, where α is latency and the overhead of both sides. The
//! counts of rounds and bytes are those of Thakur, Rabenseifner, Gropp (2005) and, for the chain,
//! of a pipeline of k segments over p-1 links. Nothing here is tuned by hand: what differs between
//! machines is in [`LinkCosts`], which is measured.
//!
//! With more ranks than cores a message is not there when it has arrived but when its receiver has
//! got the core: every round costs a turn of all ranks of a core, and their work adds up. So
//! algorithms of few rounds win there, though their messages are many, until the ranks are so many that their
//! messages find nothing in the caches.
//!
//! All ranks must come to the same choice, so they must call with the same [`Facts`] and the same
//! costs: rank 0's are those of the job.
use super::tag::Kind;
use fabric::settings::Settings;

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
    /// Directly to one rank, and directly back.
    Star,
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
            Star => "star",
            Bruck => "bruck",
            Neighbour => "neighbour",
            Pairwise => "pairwise",
        }
    }
}

/// The algorithms for a collective; of equal costs the first one wins.
pub const fn algorithms(kind: Kind) -> &'static [Algorithm] {
    match kind {
        Kind::Barrier => &[Dissemination, RecursiveDoubling, Linear, Star],
        Kind::Bcast => &[Binomial, ScatterAllgather, Chain, Linear],
        Kind::Gather | Kind::Scatter => &[Binomial, Linear],
        Kind::Gatherv | Kind::Scatterv => &[Linear],
        Kind::Allgather | Kind::Allgatherv => &[RecursiveDoubling, Bruck, Neighbour, Ring, Linear],
        Kind::Alltoall => &[Bruck, Linear, Pairwise],
        Kind::Alltoallv | Kind::Alltoallw => &[Linear, Pairwise],
        Kind::Reduce => &[Binomial, Rabenseifner, InOrder, Linear],
        Kind::Allreduce => &[RecursiveDoubling, Rabenseifner, Ring, ReduceBcast, Linear, Star],
        Kind::ReduceScatterBlock | Kind::ReduceScatter => {
            &[RecursiveHalving, Pairwise, Ring, InOrder, Linear]
        }
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
    /// From one rank of a core to the next.
    pub switch_ns: f64,
    /// Where all ranks have messages with all others, by what part of it the overhead of a message grows with each
    /// further rank of its core: they push what they keep for each other's peers out of the caches.
    pub crowding: f64,
    /// Cores that the ranks share.
    pub cores: u32,
    /// Whether receivers fetch long messages themselves, so that a sender can serve many at once.
    pub single_copy: bool,
}

impl LinkCosts {
    /// Between ranks of one host, as measured with `tern bench` (docs/results.md).
    pub const HOST: LinkCosts = LinkCosts {
        latency_ns: 120.0,
        overhead_ns: 30.0,
        ns_per_byte: 0.1,
        reduce_ns_per_byte: 0.1,
        copy_ns_per_byte: 0.05,
        switch_ns: 1300.0,
        crowding: 0.25,
        cores: u32::MAX,
        single_copy: true,
    };

    /// Between hosts by TCP over Ethernet of 10 Gbit/s: assumed.
    pub const NETWORK: LinkCosts = LinkCosts {
        latency_ns: 15_000.0,
        overhead_ns: 3000.0,
        ns_per_byte: 0.8,
        single_copy: false,
        ..LinkCosts::HOST
    };
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

    /// One after the other.
    fn and(self, next: Cost) -> Cost {
        Cost {
            latency_ns: self.latency_ns + next.latency_ns,
            transfer_ns: self.transfer_ns + next.transfer_ns,
            reduce_ns: self.reduce_ns + next.reduce_ns,
            copy_ns: self.copy_ns + next.copy_ns,
        }
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
    let m = Model::new(facts, link);
    let (n, p, up, down, odd) = (m.n, m.p, m.up, m.down, m.odd);
    let share = (p - 1.0) / p;
    match (kind, algorithm) {
        (Kind::Barrier, Linear) => m.mesh(2.0, 0.0),
        (Kind::Barrier, Star) => m.round_trip(),
        (Kind::Barrier, RecursiveDoubling) => m.all(down + 2.0 * odd, 0.0, 0.0, 0.0),
        (Kind::Barrier, _) => m.all(up, 0.0, 0.0, 0.0),
        (Kind::Bcast, ScatterAllgather) => m.all(up + p - 1.0, 2.0 * share * n, 0.0, 0.0),
        (Kind::Bcast, Chain) => {
            let segment = segment(facts, link) as f64;
            let rounds = (n / segment).ceil() + (p - 2.0).max(0.0);
            m.tree(rounds, rounds * segment.min(n), 0.0)
        }
        (Kind::Bcast, Linear) => m.star(),
        (Kind::Bcast, _) => m.tree(up, up * n, 0.0),
        (Kind::Gather | Kind::Scatter | Kind::Gatherv | Kind::Scatterv, Binomial) => {
            m.all(up, 0.0, 0.0, (p / 2.0).floor() * n / m.crowd).and(m.tree(0.0, (p - 1.0) * n, 0.0))
        }
        (Kind::Gather | Kind::Scatter | Kind::Gatherv | Kind::Scatterv, _) => m.star(),
        (Kind::Allgather | Kind::Allgatherv, _) => {
            let total = if kind == Kind::Allgather { p * n } else { n };
            let rounds = match algorithm {
                Linear => return m.mesh(2.0, share * total),
                RecursiveDoubling => down,
                Bruck => up,
                Neighbour => p / 2.0,
                _ => p - 1.0,
            };
            m.all(rounds, share * total, 0.0, if algorithm == Bruck { total } else { 0.0 })
        }
        (Kind::Alltoall, Bruck) => m.all(up, up * n * p / 2.0, 0.0, (up + 2.0) * n * p),
        (Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw, Pairwise) => {
            m.all(p - 1.0, (p - 1.0) * n, 0.0, 0.0)
        }
        (Kind::Alltoall | Kind::Alltoallv | Kind::Alltoallw, _) => m.mesh(2.0, (p - 1.0) * n),
        (Kind::Scan | Kind::Exscan, RecursiveDoubling) => m.all(up, up * n, 2.0 * up * n, 2.0 * n),
        (Kind::Scan | Kind::Exscan, _) => m.tree(p - 1.0, (p - 1.0) * n, (p - 1.0) * n),
        _ => m.reduction(kind, algorithm),
    }
}

/// A case with the machine it runs on.
struct Model<'a> {
    link: &'a LinkCosts,
    n: f64,
    p: f64,
    /// Levels of a tree, exchanges among the largest power of two, and whether ranks are left over.
    up: f64,
    down: f64,
    odd: f64,
    /// Ranks of one core.
    crowd: f64,
    /// Until all ranks of a core have had their turn.
    turn_ns: f64,
}

impl<'a> Model<'a> {
    fn new(facts: &Facts, link: &'a LinkCosts) -> Model<'a> {
        let crowd = facts.size.div_ceil(link.cores.max(1) as usize) as f64;
        Model {
            link,
            n: facts.bytes as f64,
            p: facts.size as f64,
            up: f64::from(facts.size.next_power_of_two().ilog2()),
            down: f64::from(facts.size.ilog2()),
            odd: if facts.size.is_power_of_two() { 0.0 } else { 1.0 },
            crowd,
            turn_ns: (crowd - 1.0) * link.switch_ns,
        }
    }

    /// What every rank does at the same time: the work of a core's ranks adds up.
    fn all(&self, rounds: f64, sent: f64, combined: f64, copied: f64) -> Cost {
        let (link, crowd) = (self.link, self.crowd);
        Cost {
            latency_ns: rounds * (link.latency_ns + 2.0 * link.overhead_ns * crowd + self.turn_ns),
            transfer_ns: crowd * sent * link.ns_per_byte,
            reduce_ns: crowd * combined * link.reduce_ns_per_byte,
            copy_ns: crowd * copied * link.copy_ns_per_byte,
        }
    }

    /// A tree that moves the vector to or from every rank once, `sent` bytes on its longest path:
    /// few ranks are busy at a time, but the cores have to do the work of all.
    fn tree(&self, rounds: f64, sent: f64, combined: f64) -> Cost {
        let link = self.link;
        let least = (self.p - 1.0) * self.n / f64::from(link.cores.max(1));
        Cost {
            latency_ns: rounds * (link.latency_ns + 2.0 * link.overhead_ns + self.turn_ns),
            transfer_ns: sent.max(least) * link.ns_per_byte,
            reduce_ns: if combined > 0.0 { combined.max(least) * link.reduce_ns_per_byte } else { 0.0 },
            copy_ns: 0.0,
        }
    }

    /// One rank has a message with each other: one latency, and the overhead of each.
    fn star(&self) -> Cost {
        let (link, messages) = (self.link, self.p - 1.0);
        let serial = if link.single_copy { 1.0_f64.min(messages) } else { messages };
        Cost {
            latency_ns: link.latency_ns + (messages + 1.0) * link.overhead_ns + self.turn_ns,
            ..self.tree(0.0, serial * self.n, 0.0)
        }
    }

    /// One rank hears from each other and answers: twice the messages of a star, but nobody waits
    /// more than once, so each rank of a core has one turn.
    fn round_trip(&self) -> Cost {
        let back = self.star();
        self.star().and(Cost { latency_ns: back.latency_ns - self.turn_ns, ..back })
    }

    /// Every rank has `each` messages with every other, all at once.
    fn mesh(&self, each: f64, sent: f64) -> Cost {
        let (link, messages) = (self.link, each * (self.p - 1.0));
        let overhead_ns = link.overhead_ns * (1.0 + link.crowding * (self.crowd - 1.0));
        Cost {
            latency_ns: link.latency_ns
                + link.overhead_ns
                + self.crowd * messages * overhead_ns
                + self.turn_ns,
            ..self.all(0.0, sent, 0.0, 0.0)
        }
    }

    fn reduction(&self, kind: Kind, algorithm: Algorithm) -> Cost {
        let (n, p, up, down, odd) = (self.n, self.p, self.up, self.down, self.odd);
        let share = (p - 1.0) / p;
        let with =
            |cost: Cost, combined: f64| Cost { reduce_ns: combined * self.link.reduce_ns_per_byte, ..cost };
        match (kind, algorithm) {
            (Kind::Reduce, Rabenseifner) => {
                self.all(2.0 * down + odd, (2.0 * share + odd) * n, (share + odd) * n, n)
            }
            (Kind::Reduce, InOrder) => self.tree(up + 1.0, (up + 1.0) * n, up * n),
            (Kind::Reduce, Linear) => with(self.star(), (p - 1.0) * n),
            (Kind::Reduce, _) => self.tree(up, up * n, up * n),
            (Kind::Allreduce, Rabenseifner) => {
                self.all(2.0 * (down + odd), 2.0 * (share + odd) * n, (share + odd) * n, n)
            }
            (Kind::Allreduce, Ring) => self.all(2.0 * (p - 1.0), 2.0 * share * n, share * n, n),
            (Kind::Allreduce, ReduceBcast) => self.tree(up, up * n, up * n).and(self.tree(up, up * n, 0.0)),
            (Kind::Allreduce, Linear) => with(self.mesh(2.0, (p - 1.0) * n), self.crowd * (p - 1.0) * n),
            (Kind::Allreduce, Star) => with(self.round_trip(), (p - 1.0) * n),
            (Kind::Allreduce, _) => self.all(down + 2.0 * odd, (down + 2.0 * odd) * n, (down + odd) * n, 0.0),
            (_, RecursiveHalving) => {
                let fold = odd * n * (1.0 + 1.0 / p);
                self.all(down + 2.0 * odd, share * n + fold, (share + odd) * n, n)
            }
            (_, InOrder) => self.tree(up + 1.0, (up + share) * n, up * n),
            (_, Linear) => with(self.mesh(2.0, share * n), self.crowd * share * n),
            (_, _) => {
                let copied = if algorithm == Pairwise { 0.0 } else { n / p };
                self.all(p - 1.0, share * n, share * n, copied)
            }
        }
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
    pub fn read(settings: &Settings) -> Forced {
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

/// What rank 0 tells the others at the start, so that all choose alike: facts of the machine as
/// it sees them, which the others adopt, and the algorithms its settings force, which must be
/// theirs too.
pub fn agreement(settings: &Settings, link: &LinkCosts) -> String {
    let mut text = format!("cores={} single_copy={}", link.cores, u8::from(link.single_copy));
    for name in agreed_settings().filter(|name| settings.text(name) != "auto") {
        text += &format!(" {name}={}", settings.text(name));
    }
    text
}

/// The costs to go by on rank `me`, which is told rank 0's [`agreement`].
pub fn agreed(text: &str, settings: &Settings, me: usize, link: LinkCosts) -> Result<LinkCosts, String> {
    let malformed = || format!("rank 0 published `{text}`, which says nothing of its collectives");
    let words: Option<Vec<(&str, &str)>> = text.split(' ').map(|word| word.split_once('=')).collect();
    let words = words.ok_or_else(malformed)?;
    let given = |name: &str| words.iter().find(|word| word.0 == name).map(|word| word.1);
    for name in agreed_settings() {
        let (here, there) = (settings.text(name), given(name).unwrap_or("auto"));
        if here != there {
            return Err(format!(
                "setting {name} is `{here}` on rank {me} and `{there}` on rank 0: it must be the same on all ranks"
            ));
        }
    }
    let known = |word: &(&str, &str)| {
        ["cores", "single_copy"].contains(&word.0) || agreed_settings().any(|name| name == word.0)
    };
    let cores = given("cores").and_then(|n| n.parse().ok()).filter(|cores| *cores > 0);
    match (cores, given("single_copy")) {
        (Some(cores), Some(flag @ ("0" | "1"))) if words.iter().all(known) => {
            Ok(LinkCosts { cores, single_copy: flag == "1", ..link })
        }
        _ => Err(malformed()),
    }
}

fn agreed_settings() -> impl Iterator<Item = &'static str> {
    fabric::settings::ALL.iter().map(|setting| setting.name).filter(|name| name.starts_with("TERN_COLL_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkCosts = LinkCosts { latency_ns: 100.0, overhead_ns: 20.0, ..LinkCosts::HOST };

    fn winner(kind: Kind, size: usize, bytes: u64, commutes: bool) -> Algorithm {
        choose(kind, &Facts { size, bytes, commutes }, &LINK, None).winner
    }

    #[test]
    fn latency_decides_for_short_and_bandwidth_for_long_vectors() {
        assert_eq!(winner(Kind::Bcast, 4, 8, true), Linear);
        assert_eq!(winner(Kind::Bcast, 64, 8, true), Binomial);
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
    fn with_more_ranks_than_cores_few_rounds_win() {
        let crowded = LinkCosts { cores: 2, ..LINK };
        let winner = |kind, bytes| {
            let facts = Facts { size: 8, bytes, commutes: true };
            choose(kind, &facts, &crowded, None).winner
        };
        for kind in [Kind::Bcast, Kind::Allgather, Kind::Reduce] {
            assert_eq!(winner(kind, 8), Linear, "{kind:?}");
        }
        for kind in [Kind::Barrier, Kind::Allreduce] {
            assert_eq!(winner(kind, 8), Star, "{kind:?}");
        }
        assert_ne!(winner(Kind::Allreduce, 1 << 22), Linear);
        assert_eq!(
            choose(Kind::Barrier, &Facts { size: 64, bytes: 0, commutes: true }, &LINK, None).winner,
            Dissemination
        );
    }

    /// What was measured on two cores (docs/results.md): with dozens of ranks per core a message to everybody costs more
    /// than rounds with few.
    #[test]
    fn with_dozens_of_ranks_per_core_few_messages_win() {
        let winner = |size, bytes| {
            let crowded = LinkCosts { cores: 2, ..LinkCosts::HOST };
            choose(Kind::Alltoall, &Facts { size, bytes, commutes: true }, &crowded, None).winner
        };
        for (size, bytes) in [(64, 8), (128, 8), (256, 8), (64, 256), (128, 1024), (256, 1024)] {
            assert_eq!(winner(size, bytes), Bruck, "{size} ranks, {bytes} bytes");
        }
        for (size, bytes) in [(8, 8), (16, 1024), (32, 1024), (64, 4096), (128, 4096)] {
            assert_eq!(winner(size, bytes), Linear, "{size} ranks, {bytes} bytes");
        }
    }

    #[test]
    fn what_ranks_must_agree_on_is_compared_by_name() {
        let settings = |word: &str| {
            let lookup = |name: &str| (name == "TERN_COLL_BCAST").then(|| word.to_string());
            Settings::read(lookup, std::iter::empty()).unwrap()
        };
        let mut rank0 = LinkCosts { cores: 2, single_copy: true, ..LINK };
        let text = agreement(&settings("chain"), &rank0);
        let other = agreed(&text, &settings("chain"), 3, LINK).unwrap();
        assert_eq!((other.cores, other.single_copy), (2, true));
        let error = agreed(&text, &settings("auto"), 3, LINK).unwrap_err();
        assert!(error.contains("TERN_COLL_BCAST is `auto` on rank 3 and `chain` on rank 0"), "{error}");
        rank0.single_copy = false;
        let text = agreement(&settings("auto"), &rank0);
        assert!(agreed(&text, &settings("linear"), 1, LINK).unwrap_err().contains("`linear` on rank 1"));
        assert!(!agreed(&text, &settings("auto"), 1, LINK).unwrap().single_copy);
        for bad in
            ["", "cores", "cores=two", "cores=2 single_copy=1 TERN_COLL_X=ring", "cores=0 single_copy=1"]
        {
            assert!(agreed(bad, &settings("auto"), 1, LINK).is_err(), "{bad}");
        }
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
        use fabric::settings::{ALL, Type};
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
