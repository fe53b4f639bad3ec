//! What each algorithm would cost, and the choice.
//!
//! Costs follow Hockney's model (1994) with the overhead of LogGP (Alexandrov et al. 1995): a
//! message of n bytes takes `α + nβ`, where α is latency and the overhead of both sides. The
//! counts of rounds and bytes are those of Thakur, Rabenseifner, Gropp (2005) and, for the chain,
//! of a pipeline of k segments over p-1 links. Nothing here is tuned by hand: what differs between
//! machines is in [`Rates`], by [distance](Tariff).
//!
//! With more ranks than cores a message is not there when it has arrived but when its receiver has
//! got the core: every round costs a turn of all ranks of a core, and their work adds up. So
//! algorithms of few rounds win there, though their messages are many, until the ranks are so many that their
//! messages find nothing in the caches.
//!
//! All ranks must come to the same choice, so they must call with the same [`Problem`] and the same
//! costs: rank 0's are those of the job.
use super::across;
use super::levels::Spread;
use super::rates::{Level, Rates, Tariff};
use super::tag::Collective;
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
    /// Each rank's share of all vectors directly to it, and what it makes of them directly to all.
    TwoShot,
    /// Inside each host, and between one rank of each.
    TwoLevel,
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
            TwoShot => "two-shot",
            TwoLevel => "two-level",
            Bruck => "bruck",
            Neighbour => "neighbour",
            Pairwise => "pairwise",
        }
    }
}

/// The algorithms for a collective; of equal costs the first one wins.
pub const fn algorithms(kind: Collective) -> &'static [Algorithm] {
    match kind {
        Collective::Barrier => &[Dissemination, RecursiveDoubling, Linear, Star, TwoLevel],
        Collective::Bcast => &[Binomial, ScatterAllgather, Chain, Linear, TwoLevel],
        Collective::Gather | Collective::Scatter => &[Binomial, Linear, TwoLevel],
        Collective::Gatherv | Collective::Scatterv => &[Linear, TwoLevel],
        Collective::Allgather | Collective::Allgatherv => {
            &[RecursiveDoubling, Bruck, Neighbour, Ring, Linear, TwoLevel]
        }
        Collective::Alltoall => &[Bruck, Linear, Pairwise, TwoLevel],
        Collective::Alltoallv | Collective::Alltoallw => &[Linear, Pairwise, TwoLevel],
        Collective::Reduce => &[Binomial, Rabenseifner, InOrder, Linear, TwoLevel],
        Collective::Allreduce => {
            &[RecursiveDoubling, Rabenseifner, Ring, ReduceBcast, Linear, Star, TwoShot, TwoLevel]
        }
        Collective::ReduceScatterBlock | Collective::ReduceScatter => {
            &[RecursiveHalving, Pairwise, Ring, InOrder, Linear, TwoLevel]
        }
        Collective::Scan | Collective::Exscan => &[RecursiveDoubling, Linear, TwoLevel],
        Collective::NeighborAllgather
        | Collective::NeighborAllgatherv
        | Collective::NeighborAlltoall
        | Collective::NeighborAlltoallv
        | Collective::NeighborAlltoallw => &[Linear],
    }
}

/// The setting that forces an algorithm.
pub const fn setting(kind: Collective) -> &'static str {
    match kind {
        Collective::Barrier => "TERN_COLL_BARRIER",
        Collective::Bcast => "TERN_COLL_BCAST",
        Collective::Gather | Collective::Gatherv => "TERN_COLL_GATHER",
        Collective::Scatter | Collective::Scatterv => "TERN_COLL_SCATTER",
        Collective::Allgather | Collective::Allgatherv => "TERN_COLL_ALLGATHER",
        Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw => "TERN_COLL_ALLTOALL",
        Collective::Reduce => "TERN_COLL_REDUCE",
        Collective::Allreduce => "TERN_COLL_ALLREDUCE",
        Collective::ReduceScatterBlock | Collective::ReduceScatter => "TERN_COLL_REDUCE_SCATTER",
        Collective::Scan | Collective::Exscan => "TERN_COLL_SCAN",
        Collective::NeighborAllgather
        | Collective::NeighborAllgatherv
        | Collective::NeighborAlltoall
        | Collective::NeighborAlltoallv
        | Collective::NeighborAlltoallw => panic!("there is no choice"),
    }
}

/// What the choice may depend on: equal on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Ranks.
    pub size: usize,
    /// Bytes of the vector (Bcast, reductions, Scan), of one rank's block (Gather, Scatter,
    /// Allgather, Alltoall), or of all blocks together (Allgatherv, Reduce_scatter).
    pub bytes: u64,
    /// Whether the operation commutes; true where there is none.
    pub commutes: bool,
    /// The root, 0 where there is none.
    pub root: usize,
    /// The hosts of the ranks.
    pub spread: &'a Spread,
}

impl Problem<'_> {
    /// Bytes that a rank deals with in a call: whether they fit a cache decides what each costs.
    pub fn data(&self, kind: Collective) -> f64 {
        let has_blocks = matches!(
            kind,
            Collective::Gather | Collective::Scatter | Collective::Allgather | Collective::Alltoall
        );
        let blocks = if has_blocks { self.size } else { 1 };
        self.bytes as f64 * blocks as f64
    }
}

/// What a message costs the rank that has one with each other, and what each of those.
pub(super) fn sides(link: &Rates, inward: bool) -> (f64, f64) {
    if inward { (link.receive_ns, link.overhead_ns) } else { (link.overhead_ns, link.receive_ns) }
}

/// What a share longer than [`SHORT`] costs more in two shots by ranks that share cores: its memory is in no cache. Processor time
/// of a later Alltoall (`TERN_COLL_ALLTOALL=linear mpiexec -n 8 ./collectives --only alltoall`) on two near cores of an AMD EPYC (family 25 model 17), per message: 0.6 to 0.7 µs of 8 bytes, 2.5 to 3.4 of
/// 16 KiB, of which the copies take 1.6.
const COLD_NS: f64 = 750.0;
/// The longest payload in a block that is used over and over, in bytes.
const SHORT: f64 = 2048.0;

/// A predicted cost in named terms.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Price {
    /// Latencies and overheads one after the other.
    pub latency_ns: f64,
    /// Bytes on the way.
    pub transfer_ns: f64,
    /// Combining.
    pub reduce_ns: f64,
    /// Copies in memory.
    pub copy_ns: f64,
}

impl Price {
    /// The sum of the terms.
    pub fn total(&self) -> f64 {
        self.latency_ns + self.transfer_ns + self.reduce_ns + self.copy_ns
    }

    /// One after the other.
    pub(super) fn and(self, next: Price) -> Price {
        Price {
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
    pub price: Price,
    /// The next best, if there is another.
    pub runner_up: Option<(Algorithm, Price)>,
    /// How much more the runner-up would cost, in ns; negative if the winner was forced.
    pub margin_ns: f64,
    /// Whether a setting decided.
    pub forced: bool,
    /// All that apply, and what each would cost.
    prices: [Option<(Algorithm, f64)>; MOST],
}

/// The most algorithms for a collective.
const MOST: usize = 8;

impl Choice {
    /// What the algorithms would cost that were not taken, in ns.
    pub fn others(&self) -> impl Iterator<Item = (Algorithm, f64)> {
        self.prices.into_iter().flatten().filter(|other| other.0 != self.winner)
    }
}

/// Whether an algorithm gives the right result in this case.
pub fn applies(kind: Collective, algorithm: Algorithm, problem: &Problem) -> bool {
    match (kind, algorithm) {
        (_, TwoLevel) => problem.spread.levels().is_some_and(|levels| across::applies(kind, problem, levels)),
        (Collective::Allgather | Collective::Allgatherv, RecursiveDoubling) => problem.size.is_power_of_two(),
        (Collective::Allgather | Collective::Allgatherv, Neighbour) => problem.size.is_multiple_of(2),
        (Collective::Reduce, Binomial | Rabenseifner) => problem.commutes,
        (Collective::Allreduce, Rabenseifner | Ring) => problem.commutes,
        (Collective::ReduceScatter | Collective::ReduceScatterBlock, RecursiveHalving | Pairwise | Ring) => {
            problem.commutes
        }
        _ => true,
    }
}

/// Whether an algorithm that applies is taken without being asked for. Two shots are on one host, where shares are combined in place, by two
/// ranks and by more than there are cores: of more that have a core each nobody has measured it, and between hosts they took 1.2 to 1.5 times what
/// exchanges take (docs/results/hosts.md, «Collectives between hosts»).
fn is_offered(algorithm: Algorithm, problem: &Problem, tariff: &Tariff) -> bool {
    let is_one_host = matches!(problem.spread, Spread::OneHost);
    algorithm != TwoShot || is_one_host && (problem.size == 2 || problem.size > tariff.host.cores as usize)
}

/// The predicted cost of an algorithm that applies.
pub fn price(kind: Collective, algorithm: Algorithm, problem: &Problem, tariff: &Tariff) -> Price {
    match problem.spread {
        Spread::OneHost => flat(kind, algorithm, problem, &tariff.host),
        Spread::Apart => flat(kind, algorithm, problem, &tariff.network),
        Spread::Levels(levels) => across::price(kind, algorithm, problem, levels, tariff),
    }
}

/// The same where all edges are alike.
fn flat(kind: Collective, algorithm: Algorithm, problem: &Problem, link: &Rates) -> Price {
    let m = Model::new(kind, problem, link);
    let (n, p, up, down, odd) = (m.n, m.p, m.up, m.down, m.odd);
    let share = (p - 1.0) / p;
    match (kind, algorithm) {
        (Collective::Barrier, Linear) => m.mesh(0.0),
        (Collective::Barrier, Star) => m.round_trip(),
        (Collective::Barrier, RecursiveDoubling) => m.all(down + 2.0 * odd, 0.0, 0.0, 0.0),
        (Collective::Barrier, _) => m.all(up, 0.0, 0.0, 0.0),
        (Collective::Bcast, ScatterAllgather) if link.ends == 1 => {
            m.all(up + p - 1.0, 2.0 * share * n, 0.0, 0.0)
        }
        (Collective::Bcast, ScatterAllgather) => m.scattered(up).and(m.all(p - 1.0, share * n, 0.0, 0.0)),
        (Collective::Bcast, Chain) => {
            let segment = segment_of(problem, link) as f64;
            let rounds = (n / segment).ceil() + (p - 2.0).max(0.0);
            // Who copies takes in all that has come before it passes anything on.
            let sent = if link.is_copied() { (p - 1.0) * n } else { rounds * segment.min(n) };
            m.tree(rounds, sent, 0.0)
        }
        (Collective::Bcast, Linear) => m.star(false),
        (Collective::Bcast, _) => m.tree(up, m.waves * n, 0.0),
        (Collective::Gather | Collective::Scatter | Collective::Gatherv | Collective::Scatterv, Binomial) => {
            m.all(up, 0.0, 0.0, (p / 2.0).floor() * n / m.crowd).and(m.tree(0.0, (p - 1.0) * n, 0.0))
        }
        (Collective::Gather | Collective::Gatherv, _) => m.star(true),
        (Collective::Scatter | Collective::Scatterv, _) => m.star(false),
        (Collective::Allgather | Collective::Allgatherv, _) => {
            let total = if kind == Collective::Allgather { p * n } else { n };
            let block = total / p;
            let rounds = match algorithm {
                Linear => return m.mesh(share * total),
                RecursiveDoubling if link.ends > 1 => return m.growing(down, |have| have * block),
                RecursiveDoubling => down,
                Bruck if link.ends == 1 => up,
                Bruck => {
                    let copies = Price { copy_ns: m.crowd * total * m.byte.copy, ..Price::default() };
                    return m.growing(up, |have| have.min(p - have) * block).and(copies);
                }
                Neighbour => p / 2.0,
                _ => p - 1.0,
            };
            m.all(rounds, share * total, 0.0, if algorithm == Bruck { total } else { 0.0 })
        }
        (Collective::Alltoall, Bruck) => m.all(up, up * n * p / 2.0, 0.0, (up + 2.0) * n * p),
        (Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw, Pairwise) => {
            m.all(p - 1.0, (p - 1.0) * n, 0.0, 0.0)
        }
        (Collective::Alltoall | Collective::Alltoallv | Collective::Alltoallw, _) => m.mesh((p - 1.0) * n),
        (Collective::Scan | Collective::Exscan, RecursiveDoubling) => {
            m.all(up, up * n, 2.0 * up * n, 2.0 * n)
        }
        (Collective::Scan | Collective::Exscan, _) => m.tree(p - 1.0, (p - 1.0) * n, (p - 1.0) * n),
        _ => m.reduction(kind, algorithm),
    }
}

/// A case with the machine it runs on.
struct Model<'a> {
    link: &'a Rates,
    /// What a byte costs.
    byte: &'a Level,
    n: f64,
    p: f64,
    /// Levels of a tree, exchanges among the largest power of two, and whether ranks are left over.
    up: f64,
    /// Messages of the levels of a tree one after the other: a level has many at once, but no more than there are cores.
    waves: f64,
    /// The same of what their receivers do with them.
    combining: f64,
    down: f64,
    odd: f64,
    /// Ranks of one core, and messages that keep one busy where each rank has one.
    crowd: f64,
    load: f64,
    /// Until all ranks of a core have had their turn.
    turn_ns: f64,
}

impl<'a> Model<'a> {
    fn new(kind: Collective, problem: &Problem, link: &'a Rates) -> Model<'a> {
        let crowd = problem.size.div_ceil(link.cores.max(1) as usize) as f64;
        let levels = problem.size.next_power_of_two().ilog2();
        let cores = f64::from(link.cores.max(1));
        let waves = |ends: u32| {
            let wave =
                |level: u32| (problem.size as f64 / f64::from(2 << level) * f64::from(ends) / cores).max(1.0);
            (0..levels).map(wave).sum()
        };
        Model {
            link,
            byte: link.level(problem.data(kind)),
            n: problem.bytes as f64,
            p: problem.size as f64,
            up: f64::from(levels),
            waves: waves(link.ends),
            combining: waves(1),
            down: f64::from(problem.size.ilog2()),
            odd: if problem.size.is_power_of_two() { 0.0 } else { 1.0 },
            crowd,
            load: crowd * f64::from(link.ends),
            turn_ns: (crowd - 1.0) * link.switch_ns,
        }
    }

    /// Until a message of that many bytes begins to arrive, and its receiver has its turn.
    fn step(&self, bytes: f64) -> f64 {
        self.link.latency_ns + self.link.agreed_ns(bytes) + self.turn_ns
    }

    /// What messages that wait for an answer add where ranks share cores and all have one: who answers has the core, one after the
    /// other. Elsewhere rounds overlap, and trees alone wait.
    fn answers(&self, bytes: f64) -> f64 {
        if self.link.ends == 1 { 0.0 } else { self.crowd * self.link.agreed_ns(bytes) }
    }

    /// What every rank does at the same time: the work of a core's ranks adds up.
    fn all(&self, rounds: f64, sent: f64, combined: f64, copied: f64) -> Price {
        let (link, crowd) = (self.link, self.crowd);
        Price {
            latency_ns: rounds
                * (link.latency_ns
                    + self.turn_ns
                    + (link.overhead_ns + link.receive_ns) * crowd
                    + self.answers(sent / rounds.max(1.0))),
            transfer_ns: self.load * sent * link.per_byte(self.byte, sent / rounds.max(1.0)),
            reduce_ns: crowd * combined * self.byte.reduce,
            copy_ns: crowd * copied * self.byte.copy,
        }
    }

    /// A tree that moves the vector to or from every rank once, `sent` bytes on its longest path:
    /// few ranks are busy at a time, but the cores have to do the work of all.
    fn tree(&self, rounds: f64, sent: f64, combined: f64) -> Price {
        let link = self.link;
        let least = (self.p - 1.0) * self.n / f64::from(link.cores.max(1));
        let moved = least * f64::from(link.ends);
        Price {
            latency_ns: rounds * (self.step(sent / rounds.max(1.0)) + link.overhead_ns + link.receive_ns),
            transfer_ns: sent.max(moved) * link.per_byte(self.byte, sent / rounds.max(1.0)),
            reduce_ns: if combined > 0.0 { combined.max(least) * self.byte.reduce } else { 0.0 },
            copy_ns: 0.0,
        }
    }

    /// Rounds in which each rank passes on what it has, which is twice as many blocks each time.
    fn growing(&self, rounds: f64, bytes: impl Fn(f64) -> f64) -> Price {
        let round = |k: u32| self.all(1.0, bytes(f64::from(1 << k)), 0.0, 0.0);
        (0..rounds as u32).map(round).fold(Price::default(), Price::and)
    }

    /// A tree that leaves each rank a share of the vector, half of what its parent had left: a level has many messages at once,
    /// but no more than there are cores.
    fn scattered(&self, rounds: f64) -> Price {
        let (link, cores) = (self.link, f64::from(self.link.cores.max(1)) / f64::from(self.link.ends));
        let level = |k: u32| {
            let (messages, bytes) = (f64::from(1 << k), self.n / f64::from(2 << k));
            Price {
                latency_ns: self.step(bytes) + link.overhead_ns + link.receive_ns,
                transfer_ns: (messages / cores).max(1.0) * bytes * link.per_byte(self.byte, bytes),
                ..Price::default()
            }
        };
        (0..rounds as u32).map(level).fold(Price::default(), Price::and)
    }

    /// One rank has a message for each other, or gets one from each: one latency, and the overhead of each.
    fn star(&self, inward: bool) -> Price {
        let (link, messages) = (self.link, self.p - 1.0);
        let (each, once) = sides(link, inward);
        let serial = if link.single_copy { 1.0_f64.min(messages) } else { messages };
        let after = (serial - 1.0).max(0.0) * self.byte.busy / link.per_byte(self.byte, self.n);
        Price {
            latency_ns: self.step(self.n) + messages * each + once,
            ..self.tree(0.0, (serial.min(1.0) + after) * self.n, 0.0)
        }
    }

    /// One rank hears from each other and answers: twice the messages of a star, but nobody waits
    /// more than once, so each rank of a core has one turn.
    fn round_trip(&self) -> Price {
        let back = self.star(false);
        self.star(true).and(Price { latency_ns: back.latency_ns - self.turn_ns, ..back })
    }

    /// Every rank has a message for every other and gets one from it, all at once.
    fn mesh(&self, sent: f64) -> Price {
        let (link, peers) = (self.link, self.p - 1.0);
        let overhead_ns = (link.overhead_ns + link.receive_ns) * (1.0 + link.crowding * (self.crowd - 1.0));
        Price {
            latency_ns: link.latency_ns
                + self.turn_ns
                + self.answers(sent / peers.max(1.0))
                + if link.ends == 1 { link.overhead_ns } else { 0.0 }
                + self.crowd * peers * overhead_ns,
            transfer_ns: self.load * sent * link.per_byte(self.byte, sent / peers.max(1.0)),
            ..Price::default()
        }
    }

    fn reduction(&self, kind: Collective, algorithm: Algorithm) -> Price {
        let (n, p, up, down, odd) = (self.n, self.p, self.up, self.down, self.odd);
        let share = (p - 1.0) / p;
        let with = |cost: Price, combined: f64| Price { reduce_ns: combined * self.byte.reduce, ..cost };
        match (kind, algorithm) {
            (Collective::Reduce, Rabenseifner) => {
                self.all(2.0 * down + odd, (2.0 * share + odd) * n, (share + odd) * n, n)
            }
            (Collective::Reduce, InOrder) => self.tree(up + 1.0, (up + 1.0) * n, up * n),
            (Collective::Reduce, Linear) => with(self.star(true), (p - 1.0) * n),
            (Collective::Reduce, _) => self.tree(up, self.waves * n, self.combining * n),
            (Collective::Allreduce, Rabenseifner) => {
                self.all(2.0 * (down + odd), 2.0 * (share + odd) * n, (share + odd) * n, n)
            }
            (Collective::Allreduce, Ring) => self.all(2.0 * (p - 1.0), 2.0 * share * n, share * n, n),
            (Collective::Allreduce, ReduceBcast) => {
                self.tree(up, self.waves * n, self.combining * n).and(self.tree(up, self.waves * n, 0.0))
            }
            (Collective::Allreduce, Linear) => with(self.mesh((p - 1.0) * n), self.crowd * (p - 1.0) * n),
            (Collective::Allreduce, Star) => with(self.round_trip(), (p - 1.0) * n),
            (Collective::Allreduce, TwoShot) => {
                let shares = self.mesh(share * n);
                let cold = if n / p > SHORT { self.crowd * (p - 1.0) * COLD_NS } else { 0.0 };
                let each = Price { latency_ns: shares.latency_ns + cold, ..shares };
                with(each.and(each), self.crowd * share * n)
            }
            (Collective::Allreduce, _) => {
                self.all(down + 2.0 * odd, (down + 2.0 * odd) * n, (down + odd) * n, 0.0)
            }
            (_, RecursiveHalving) => {
                let fold = odd * n * (1.0 + 1.0 / p);
                self.all(down + 2.0 * odd, share * n + fold, (share + odd) * n, n)
            }
            (_, InOrder) => self.tree(up + 1.0, (up + share) * n, up * n),
            (_, Linear) => with(self.mesh(share * n), self.crowd * share * n),
            (_, _) => {
                let copied = if algorithm == Pairwise { 0.0 } else { n / p };
                self.all(p - 1.0, share * n, share * n, copied)
            }
        }
    }
}

/// The segment of a chain: of k segments over p - 1 links the time is `(k + p - 2)(α + βn/k)`,
/// least at `k = sqrt((p - 2) n β / α)`. At most 1024, which bounds the length of the program.
pub fn segment(problem: &Problem, tariff: &Tariff) -> u64 {
    let slowest = if matches!(problem.spread, Spread::OneHost) { &tariff.host } else { &tariff.network };
    segment_of(problem, slowest)
}

pub(super) fn segment_of(problem: &Problem, link: &Rates) -> u64 {
    let turns = problem.size.div_ceil(link.cores.max(1) as usize) - 1;
    let alpha = link.latency_ns + link.overhead_ns + link.receive_ns + turns as f64 * link.switch_ns;
    let hops = (problem.size as f64 - 2.0).max(0.0);
    let best = (hops * problem.bytes as f64 * link.level(problem.bytes as f64).link / alpha.max(1.0)).sqrt();
    let segments = (best as u64).clamp(1, 1024);
    problem.bytes.div_ceil(segments).max(1).next_multiple_of(64)
}

/// The algorithm of least predicted cost among those that apply, or the forced one if it applies.
pub fn choose(kind: Collective, problem: &Problem, tariff: &Tariff, forced: Option<Algorithm>) -> Choice {
    let offered = |a: &Algorithm| is_offered(*a, problem, tariff) || Some(*a) == forced;
    let applicable = algorithms(kind).iter().copied().filter(|a| applies(kind, *a, problem) && offered(a));
    let mut all = [None; MOST];
    for (place, algorithm) in all.iter_mut().zip(applicable) {
        *place = Some((algorithm, price(kind, algorithm, problem, tariff)));
    }
    let priced = || all.iter().copied().flatten();
    let least = |not: Option<Algorithm>| {
        let others = priced().filter(|entry| Some(entry.0) != not);
        others.min_by(|a, b| a.1.total().total_cmp(&b.1.total()))
    };
    let wanted = priced().find(|entry| Some(entry.0) == forced);
    let (winner, price) = wanted.or_else(|| least(None)).expect("some algorithm applies to every case");
    let runner_up = least(Some(winner));
    let margin_ns = runner_up.map_or(0.0, |r| r.1.total() - price.total());
    let prices = all.map(|entry| entry.map(|(algorithm, price)| (algorithm, price.total())));
    Choice { winner, price, runner_up, margin_ns, forced: wanted.is_some(), prices }
}

/// Algorithms forced by settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forced([Option<Algorithm>; Collective::ALL.len()]);

impl Forced {
    /// Reads what the settings force.
    pub fn read(settings: &Settings) -> Forced {
        Forced(Collective::ALL.map(|kind| Self::parse(kind, settings.text(setting(kind)))))
    }

    /// Forces one algorithm for one collective.
    pub fn set(&mut self, kind: Collective, algorithm: Option<Algorithm>) {
        self.0[kind as usize] = algorithm;
    }

    /// What is forced for a collective.
    pub fn get(&self, kind: Collective) -> Option<Algorithm> {
        self.0[kind as usize]
    }

    fn parse(kind: Collective, word: &str) -> Option<Algorithm> {
        algorithms(kind).iter().copied().find(|a| a.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    const LINK: Rates = Rates { latency_ns: 100.0, overhead_ns: 20.0, ..Rates::HOST };
    static TARIFF: LazyLock<Tariff> = LazyLock::new(|| Tariff { host: LINK, ..Tariff::default() });

    fn problem(size: usize, bytes: u64, commutes: bool) -> Problem<'static> {
        Problem { size, bytes, commutes, root: 0, spread: &Spread::OneHost }
    }

    fn winner(kind: Collective, size: usize, bytes: u64, commutes: bool) -> Algorithm {
        choose(kind, &problem(size, bytes, commutes), &TARIFF, None).winner
    }

    #[test]
    fn latency_decides_for_short_and_bandwidth_for_long_vectors() {
        assert_eq!(winner(Collective::Bcast, 4, 8, true), Linear);
        assert_eq!(winner(Collective::Bcast, 64, 8, true), Binomial);
        assert_ne!(winner(Collective::Bcast, 16, 1 << 24, true), Binomial);
        assert_eq!(winner(Collective::Allreduce, 16, 8, true), RecursiveDoubling);
        assert!(matches!(winner(Collective::Allreduce, 16, 1 << 24, true), Rabenseifner | Ring));
        assert_eq!(winner(Collective::Allreduce, 16, 1 << 24, false), RecursiveDoubling);
        assert_eq!(winner(Collective::Allreduce, 2, 1 << 14, true), RecursiveDoubling);
        assert_eq!(winner(Collective::Allreduce, 2, 1 << 20, false), TwoShot);
        assert_eq!(winner(Collective::Alltoall, 64, 8, true), Bruck);
        assert_ne!(winner(Collective::Alltoall, 64, 1 << 20, true), Bruck);
        assert_eq!(winner(Collective::Reduce, 16, 1 << 24, true), Rabenseifner);
        assert_eq!(winner(Collective::Reduce, 16, 1 << 24, false), InOrder);
        assert_eq!(winner(Collective::Scan, 16, 8, true), RecursiveDoubling);
    }

    #[test]
    fn with_more_ranks_than_cores_few_rounds_win() {
        let crowded = Tariff { host: Rates { cores: 2, ..LINK }, ..*TARIFF };
        let winner = |kind, bytes| choose(kind, &problem(8, bytes, true), &crowded, None).winner;
        for kind in [Collective::Bcast, Collective::Allgather, Collective::Reduce] {
            assert_eq!(winner(kind, 8), Linear, "{kind:?}");
        }
        for kind in [Collective::Barrier, Collective::Allreduce] {
            assert_eq!(winner(kind, 8), Star, "{kind:?}");
        }
        assert_ne!(winner(Collective::Allreduce, 1 << 16), TwoShot);
        assert_eq!(winner(Collective::Allreduce, 1 << 22), TwoShot);
        assert_eq!(choose(Collective::Barrier, &problem(64, 0, true), &TARIFF, None).winner, Dissemination);
    }

    /// Hosts that are containers of one machine with two cores: what is on the way keeps a core busy at both of its ends, so
    /// trees move long vectors for less than exchanges, and few long messages are better than many.
    #[test]
    fn hosts_that_share_cores_move_every_byte_with_them() {
        let apart = Tariff::default();
        let together = apart.crowded(Some(2));
        let (alone, shared) = (apart.network, together.network);
        let whole = |rates: &Rates| rates.latency_ns + rates.overhead_ns + rates.receive_ns;
        assert_eq!((whole(&alone), shared.latency_ns, shared.cores), (whole(&shared), 0.0, 2));
        assert_eq!(apart.crowded(None), apart);
        let chosen = |kind, bytes, tariff: &Tariff| {
            let problem = Problem { size: 4, bytes, commutes: true, root: 0, spread: &Spread::Apart };
            choose(kind, &problem, tariff, None).winner
        };
        assert!(matches!(chosen(Collective::Bcast, 1 << 20, &apart), ScatterAllgather | Chain));
        assert!(matches!(chosen(Collective::Bcast, 1 << 20, &together), Binomial | Linear));
        assert!(matches!(chosen(Collective::Allreduce, 1 << 16, &together), Star | ReduceBcast));
        assert_eq!(chosen(Collective::Alltoall, 1 << 16, &together), Linear);
    }

    /// What was measured on two cores (docs/results.md): with dozens of ranks per core a message to everybody costs more
    /// than rounds with few.
    #[test]
    fn with_dozens_of_ranks_per_core_few_messages_win() {
        let winner = |size, bytes| {
            let crowded = Tariff { host: Rates { cores: 2, ..Rates::HOST }, ..*TARIFF };
            choose(Collective::Alltoall, &problem(size, bytes, true), &crowded, None).winner
        };
        for (size, bytes) in [(64, 8), (128, 8), (256, 8), (64, 256), (128, 1024), (256, 1024)] {
            assert_eq!(winner(size, bytes), Bruck, "{size} ranks, {bytes} bytes");
        }
        for (size, bytes) in [(8, 8), (16, 1024), (32, 1024), (64, 4096), (128, 4096)] {
            assert_eq!(winner(size, bytes), Linear, "{size} ranks, {bytes} bytes");
        }
    }

    #[test]
    fn the_choice_is_the_cheapest_and_a_forced_one_wins_where_it_applies() {
        for kind in Collective::ALL {
            for size in 1..20 {
                for bytes in [0, 8, 4096, 1 << 22] {
                    for commutes in [false, true] {
                        let problem = problem(size, bytes, commutes);
                        let choice = choose(kind, &problem, &TARIFF, None);
                        assert!(choice.margin_ns >= 0.0 && !choice.forced);
                        let applicable = || {
                            let all = algorithms(kind).iter();
                            all.filter(|a| applies(kind, **a, &problem) && (**a != TwoShot || size == 2))
                        };
                        let least = applicable()
                            .map(|a| price(kind, *a, &problem, &TARIFF).total())
                            .fold(f64::MAX, f64::min);
                        assert_eq!(choice.price.total(), least);
                        assert_eq!(choice.runner_up.is_some(), applicable().count() > 1);
                        for &forced in algorithms(kind) {
                            let choice = choose(kind, &problem, &TARIFF, Some(forced));
                            assert_eq!(choice.forced, applies(kind, forced, &problem));
                            assert!(!choice.forced || choice.winner == forced);
                            let others = applicable().filter(|a| **a != choice.winner);
                            let next = others
                                .map(|a| price(kind, *a, &problem, &TARIFF).total())
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
        for kind in Collective::ALL {
            let declared = ALL.iter().find(|s| s.name == setting(kind)).expect("the setting is declared");
            let Type::Word(words) = declared.kind else { panic!("{} is not a word", declared.name) };
            assert_eq!(words[0], "auto");
            let listed = |a: &Algorithm| words.contains(&a.word());
            assert!(algorithms(kind).iter().all(listed), "{kind:?}");
            // Families share a setting; every word belongs to one of its collectives.
            let family = Collective::ALL.into_iter().filter(|k| setting(*k) == declared.name);
            let known: Vec<_> = family.flat_map(|k| algorithms(k).iter().map(|a| a.word())).collect();
            assert!(words[1..].iter().all(|w| known.contains(w)), "{kind:?}");
        }
        let lookup = |name: &str| (name == "TERN_COLL_ALLREDUCE").then(|| "ring".to_string());
        let forced = Forced::read(&Settings::read(lookup, std::iter::empty()).unwrap());
        assert_eq!(forced.get(Collective::Allreduce), Some(Ring));
        assert_eq!(forced.get(Collective::Bcast), None);
    }
}
