//! What is known: machine, peers and messages, as measured on the device in use.
//!
//! Each fact begins with a prior, which the device gives (from a cluster file, from a measurement at
//! start-up, or assumed), and is corrected by what is observed, as [`SEEN`] says.

use crate::choice::tuning::{self, Tuning};
use crate::choice::way::Way;
use fabric::estimate::Averaging;
use fabric::{COPY_LEVELS, Caps, Costs, Distance, Source};

/// How observations correct a prior: it is right about the kind of machine, so it counts as a few of them, and an
/// interrupted copy shall not turn a choice over. A fact may sink as fast as it likes: less than it takes nothing takes.
pub(crate) const SEEN: Averaging = Averaging { prior: 4, above: 4.0, ..Averaging::mean(32) };
/// What is left of the weight of an observation when the next one comes.
const FADES: f64 = 1.0 - 1.0 / SEEN.memory as f64;
/// Lengths by which the prior of a line is represented.
const PRIOR_LENGTHS: [f64; 2] = [4096.0, 1048576.0];

/// One number: what it was before, and what it is now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fact {
    /// The value in force.
    pub value: f64,
    /// The value before anything was observed.
    pub prior: f64,
    /// Observations.
    pub count: u32,
    /// Where the prior comes from.
    pub source: Source,
}

impl Fact {
    /// A fact that nothing has been observed of.
    pub fn new(prior: f64, source: Source) -> Fact {
        Fact { value: prior, prior, count: 0, source }
    }

    /// Takes an observation in.
    pub fn observe(&mut self, seen: f64) {
        self.value = SEEN.follow(Some(self.value), self.count, seen);
        self.count = self.count.saturating_add(1);
    }

    /// Where the value in force comes from.
    pub fn origin(&self) -> Source {
        if self.count > 0 { Source::Observed } else { self.source }
    }
}

/// A time that grows with the length: `fixed + per_byte · L`, fitted to what was observed by least
/// squares of the relative errors.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// Of any length, ns.
    pub fixed: f64,
    /// For each byte, ns.
    pub per_byte: f64,
    /// The same before anything was observed.
    pub prior: (f64, f64),
    /// Observations.
    pub count: u32,
    /// Where the prior comes from.
    pub source: Source,
    /// Weighted sums over observations: 1, x, y, xx, xy.
    sums: [f64; 5],
}

impl Line {
    /// A line that nothing has been observed of.
    pub fn new(prior: (f64, f64), source: Source) -> Line {
        Line { fixed: prior.0, per_byte: prior.1, prior, count: 0, source, sums: [0.0; 5] }
    }

    /// The time for this length.
    pub fn at(&self, len: f64) -> f64 {
        self.fixed + self.per_byte * len
    }

    /// `len` bytes took `ns`.
    pub fn observe(&mut self, len: usize, ns: f64) {
        let (len, known) = (len as f64, self.at(len as f64).max(1.0));
        self.count = self.count.saturating_add(1);
        self.sums = self.sums.map(|sum| sum * FADES);
        add(&mut self.sums, len, ns.min(SEEN.above * known), 1.0 / (known * known));
        // The prior fades as observations do, but for what they leave open.
        let mut sums = self.sums;
        let weight = (f64::from(SEEN.prior) / 2.0 * FADES.powi(self.count as i32)).max(0.01);
        for len in PRIOR_LENGTHS {
            let known = self.at(len).max(1.0);
            add(&mut sums, len, self.prior.0 + self.prior.1 * len, weight / (known * known));
        }
        (self.fixed, self.per_byte) = fit(&sums);
    }

    /// Where the values in force come from.
    pub fn origin(&self) -> Source {
        if self.count > 0 { Source::Observed } else { self.source }
    }
}

fn add(sums: &mut [f64; 5], x: f64, y: f64, weight: f64) {
    let terms = [1.0, x, y, x * x, x * y];
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
}

/// The line of least squares; neither number is negative.
fn fit(&[n, x, y, xx, xy]: &[f64; 5]) -> (f64, f64) {
    let determinant = n * xx - x * x;
    let per_byte = (n * xy - x * y) / determinant;
    if per_byte.is_nan() || per_byte <= 0.0 {
        return (y / n, 0.0);
    }
    let fixed = (y - per_byte * x) / n;
    if fixed < 0.0 { (0.0, xy / xx) } else { (fixed, per_byte) }
}

/// The path to the peers of one distance: what their device can do, and what messages cost on their way.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// λ + L/Bnet of a write to registered memory.
    pub write: Line,
    /// What a read takes longer.
    pub read: Fact,
    /// A byte of either direction where both are busy.
    pub bus_per_byte: f64,
    /// λ of a message that carries nothing, from round trips.
    pub latency: Fact,
    /// g: least time between two messages.
    pub gap: Fact,
    /// o: time of the processor for a message.
    pub post: Fact,
    /// Whether long messages go through memory that is registered with adapters.
    pub registration: bool,
    /// Whether registrations outlive the transfer they were made for.
    pub keeps: bool,
    /// Whether the processes can copy from and to each other's memory.
    pub reach: bool,
    /// Adapters a long message is spread over.
    pub rails: usize,
    /// Longest eager message, in bytes.
    pub eager_bytes: usize,
    /// The largest payload of one frame, in bytes.
    pub frame_bytes: usize,
    /// Longest message that leaves eagerly from where the application has it, if it can at once; 0 where it is copied.
    pub at_once_bytes: usize,
    /// The most that one work request moves, in bytes.
    pub transfer_bytes: usize,
    /// Payload that the processor writes into the work request itself, in bytes.
    pub inline_bytes: usize,
    /// What the pipelines are tuned by.
    pub tuning: Tuning,
}

impl Path {
    /// Begins with what messages cost by these, whatever was assumed; of the device and its tuning everything stays.
    pub(crate) fn begin_with(&mut self, costs: &Costs) {
        let fact = |prior| Fact::new(prior, costs.source);
        self.write = Line::new((costs.latency_ns, costs.wire_ns_per_byte), costs.source);
        (self.read, self.latency) = (fact(costs.read_ns), fact(costs.latency_ns));
        (self.gap, self.post) = (fact(costs.gap_ns), fact(costs.post_ns));
    }

    fn new(costs: &Costs, caps: &Caps, rails: usize, eager_bytes: usize) -> Path {
        let fact = |prior| Fact::new(prior, costs.source);
        Path {
            write: Line::new((costs.latency_ns, costs.wire_ns_per_byte), costs.source),
            read: fact(costs.read_ns),
            bus_per_byte: costs.bus_ns_per_byte,
            latency: fact(costs.latency_ns),
            gap: fact(costs.gap_ns),
            post: fact(costs.post_ns),
            registration: caps.registration,
            keeps: false,
            reach: caps.remote_access,
            rails: if caps.registration { rails } else { 1 },
            eager_bytes: eager_bytes.min(caps.frame_bytes),
            frame_bytes: caps.frame_bytes,
            at_once_bytes: eager_bytes.min(caps.at_once_bytes),
            transfer_bytes: caps.transfer_bytes,
            inline_bytes: caps.inline_bytes,
            tuning: Tuning::of(&figures(costs)),
        }
    }
}

/// The figures from which pipelines are tuned: out of cache.
fn figures(costs: &Costs) -> tuning::Figures {
    let per_us = |ns_per_byte: f64| 1000.0 / ns_per_byte.max(1e-6);
    tuning::Figures {
        copy_bytes_per_us: per_us(costs.copy[COPY_LEVELS - 1].1),
        net_bytes_per_us: per_us(costs.wire_ns_per_byte),
        latency_ns: costs.latency_ns,
        gap_ns: costs.gap_ns,
        register_ns: costs.register.0,
        register_bytes_per_us: per_us(costs.register.1),
    }
}

/// All facts of one rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// Registering memory: `λreg + L/Breg`.
    pub register: Line,
    /// Giving it back.
    pub deregister: Line,
    /// Longest data of each level of the memory, and 1/Bcopy there in ns per byte.
    pub copy: [(usize, Fact); COPY_LEVELS],
    /// V: a search in a table.
    pub search: Fact,
    /// What a one-sided operation in a message with others costs at either end beside copies.
    pub part: Fact,
    /// Single copy between processes of a host.
    pub single: Line,
    /// By distance.
    pub paths: [Path; Distance::ALL.len()],
}

impl Facts {
    /// What is known before the first message: of the costs and the devices by distance, and of the most that
    /// goes eagerly.
    pub fn new(
        costs: [Costs; Distance::ALL.len()],
        caps: [&Caps; Distance::ALL.len()],
        rails: usize,
        eager_bytes: usize,
    ) -> Facts {
        let far = &costs[Distance::Network as usize];
        let fact = |prior| Fact::new(prior, far.source);
        Facts {
            register: Line::new(far.register, far.source),
            deregister: Line::new(far.deregister, far.source),
            copy: far.copy.map(|(up_to, per_byte)| (up_to, fact(per_byte))),
            search: fact(far.search_ns),
            part: fact(far.search_ns),
            single: Line::new(costs[Distance::Host as usize].single, Source::StartUp),
            paths: [0, 1].map(|at| Path::new(&costs[at], caps[at], rails, eager_bytes)),
        }
    }

    /// Peers of this distance have come in reach, by a device that does and costs this: nothing has been observed of it.
    pub fn open(&mut self, distance: Distance, costs: &Costs, caps: &Caps, rails: usize, eager_bytes: usize) {
        self.paths[distance as usize] = Path::new(costs, caps, rails, eager_bytes);
        self.register = Line::new(costs.register, costs.source);
        self.deregister = Line::new(costs.deregister, costs.source);
    }

    /// Whether registrations are kept, wherever there are any.
    pub fn keep(&mut self, keeps: bool) {
        self.paths.iter_mut().for_each(|path| path.keeps = keeps && path.registration);
    }

    /// What is known about peers of this distance.
    #[inline(always)]
    pub fn path(&self, distance: Distance) -> &Path {
        &self.paths[distance as usize]
    }

    /// How much longer than others an RTS travels that brings the beginning of the message.
    pub fn along_ns(&self, distance: Distance, way: Way, len: usize) -> f64 {
        let bytes = if way.is_framed() { self.path(distance).tuning.head_bytes.min(len) } else { 0 };
        self.path(distance).write.per_byte * bytes as f64
    }

    /// 1/Bcopy in ns per byte for data of this length («the length to take into account is the
    /// whole data set», superpipeline paper, section 3).
    pub fn copy_ns_per_byte(&self, data_len: usize) -> f64 {
        self.copy[self.copy_level(data_len)].1.value
    }

    /// The level of the memory that data of this length lies in.
    pub fn copy_level(&self, data_len: usize) -> usize {
        self.copy.iter().position(|(up_to, _)| data_len <= *up_to).unwrap_or(COPY_LEVELS - 1)
    }

    /// A copy of `len` bytes took `ns`, as a part of so much data.
    pub fn copied(&mut self, data_len: usize, len: usize, ns: u64) {
        let level = self.copy_level(data_len);
        self.copy[level].1.observe(ns as f64 / len as f64);
    }

    /// The facts that bear on a message, a line each, with where they come from.
    pub fn text(&self, distance: Distance, len: usize) -> String {
        let line = |name: &str, line: &Line| {
            let (us, origin) = (line.fixed / 1000.0, line.origin().name());
            format!(
                "  {name} {us:.1} us + {:.4} ns per byte ({origin}, {} seen)\n",
                line.per_byte, line.count
            )
        };
        let copy = &self.copy[self.copy_level(len)].1;
        let per_byte = |fact: &Fact| {
            format!("{:.4} ns per byte ({}, {} seen)\n", fact.value, fact.origin().name(), fact.count)
        };
        let mut text = format!("facts\n  copy {}", per_byte(copy));
        let path = self.path(distance);
        if !path.registration {
            let single =
                if path.reach { line("single copy", &self.single) } else { "  no single copy\n".into() };
            return text + &single;
        }
        text += &line("register", &self.register);
        text += &line("deregister", &self.deregister);
        text += &line("write", &path.write);
        for (name, fact) in
            [("latency", &path.latency), ("read", &path.read), ("gap", &path.gap), ("post", &path.post)]
        {
            let (us, origin) = (fact.value / 1000.0, fact.origin().name());
            text += &format!("  {name} {us:.2} us ({origin}, {} seen)\n", fact.count);
        }
        text + if path.keeps { "  registrations are kept\n" } else { "  registrations are not kept\n" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fact_follows_what_is_seen_and_one_outlier_says_little() {
        let mut fact = Fact::new(100.0, Source::Cluster);
        assert_eq!(fact.origin(), Source::Cluster);
        fact.observe(1e9);
        assert!((fact.value - 160.0).abs() < 0.1, "{fact:?}");
        (0..200).for_each(|_| fact.observe(50.0));
        assert!((fact.value - 50.0).abs() < 1.0, "{fact:?}");
        assert_eq!((fact.origin(), fact.count, fact.prior), (Source::Observed, 201, 100.0));
    }

    #[test]
    fn a_line_finds_both_its_numbers_from_two_lengths() {
        let mut line = Line::new((1000.0, 0.01), Source::Assumed);
        for _ in 0..400 {
            line.observe(8192, 68_000.0 + 0.05 * 8192.0);
            line.observe(1 << 20, 68_000.0 + 0.05 * 1048576.0);
        }
        assert!((line.at(65536.0) / (68_000.0 + 3277.0) - 1.0).abs() < 0.05, "{line:?}");
    }

    /// One length says nothing about the others: what is known of those fades only as far as needed.
    #[test]
    fn one_length_alone_moves_the_line_there() {
        let mut line = Line::new((10_000.0, 0.05), Source::Assumed);
        (0..400).for_each(|_| line.observe(65536, 30_000.0));
        assert!((line.at(65536.0) / 30_000.0 - 1.0).abs() < 0.1, "{line:?}");
        assert!(line.fixed > 0.0 && line.per_byte > 0.0, "{line:?}");
    }

    proptest! {
        /// Whatever is seen, times grow with the length and are no less than nothing.
        #[test]
        fn lines_stay_lines(seen in proptest::collection::vec((0usize..1 << 24, 0u64..1 << 40), 1..60)) {
            let mut line = Line::new((500.0, 0.1), Source::Assumed);
            for (len, ns) in seen {
                line.observe(len, ns as f64);
                prop_assert!(line.fixed >= 0.0 && line.per_byte >= 0.0 && line.at(1e9).is_finite());
            }
        }
    }
}
