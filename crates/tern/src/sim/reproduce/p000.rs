//! «000», eager messages and one-sided operations from buffers that come again, on `poweredge-ddr`.

mod collectives;
mod onesided;
pub mod search;
mod spectrum;

use proto::payback;
use proto::{EagerBy, Event, Protocol};
use sim::Cluster;

use crate::sim::figure::{Basis, Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, Ran, Variant, median};

const KB: usize = 1 << 10;
/// Where the paper's platform changes to rendezvous, which is RPUT.
const EAGER: usize = 9 * KB;
/// Rounds of the paper's ping-pong.
const ROUNDS: usize = 10_000;
/// Rounds at either end whose median is a time before, or after, buffers are registered.
const SETTLED: usize = 5;
/// Lengths of figure 4.
const SIZES: [usize; 11] = [128, 256, 512, KB, 2 * KB, 3 * KB, 4 * KB, 5 * KB, 6 * KB, 7 * KB, 8 * KB];
/// Table 2: length, least number of uses on the fast path, and by Send/Recv.
const TABLE_2: [(usize, f64, f64); 9] = [
    (512, 432.0, 1568.0),
    (KB, 200.0, 448.0),
    (2 * KB, 110.0, 224.0),
    (3 * KB, 76.0, 131.0),
    (4 * KB, 60.0, 95.0),
    (5 * KB, 48.0, 75.0),
    (6 * KB, 40.0, 65.0),
    (7 * KB, 36.0, 55.0),
    (8 * KB, 32.0, 49.0),
];
/// Copies in cache are cheaper in the benchmark by Send/Recv, «depending on the alignment of both source and
/// destination» (section 5.1.1). Bytes per ns; fitted to table 2, 8 KB, Send/Recv: n = 49.
const SENDRECV_COPY: f64 = 6.9;
const GATHER: &str = "Gathering a second piece costs the adapter 60 ns (assumed), which the paper's formula does not \
    have; the shorter the message, the more it counts.";

/// By which path eager messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Path {
    Fast,
    SendRecv,
}

impl Path {
    const ALL: [(Path, &'static str); 2] = [(Path::Fast, "fast path"), (Path::SendRecv, "Send/Recv")];
}

/// The platform as benchmarks by this path meet it.
fn platform(cluster: &Cluster, path: Path) -> Cluster {
    let mut cluster = cluster.clone();
    if path == Path::SendRecv {
        cluster.copy[0].bandwidth = SENDRECV_COPY;
    }
    cluster
}

fn way(by: EagerBy, path: Path) -> Variant {
    let name = if by == EagerBy::Copy { "copy" } else { "frequent buffers" };
    let mut way = Variant::forced(name, Protocol::Rput, EAGER);
    way.setup.limits.eager_by = by;
    if path == Path::SendRecv {
        way.setup.channel.slots = 0;
    }
    way
}

/// What is gained by the new way, in per cent of the old one's time.
fn gain(old_ns: f64, new_ns: f64) -> f64 {
    100.0 * (1.0 - new_ns / old_ns)
}

/// Runs it.
pub fn study() -> Result<Study, String> {
    let cluster = Cluster::find("poweredge-ddr")?;
    let title = "frequent-buffer eager, cluster poweredge-ddr";
    let mut study = Study { name: "000", title, claims: Vec::new(), figures: Vec::new() };
    for path in Path::ALL {
        latency(&platform(&cluster, path.0), path, &mut study)?;
    }
    spectrum::study(&cluster, &mut study)?;
    collectives::study(&cluster, &mut study)?;
    onesided::study(&cluster, &mut study)?;
    no_reuse(&cluster, &mut study)?;
    Ok(study)
}

/// The ping-pong of one length and path.
struct PingPong {
    /// Half of each round trip, in ns.
    times: Vec<f64>,
    /// Rounds before the buffer was registered.
    before: Option<usize>,
    /// (C - V) by what the library knows, in ns.
    spared: f64,
}

impl PingPong {
    fn run(cluster: &Cluster, by: EagerBy, path: Path, len: usize) -> Result<PingPong, String> {
        let mut all = lab::run(&lab::spread(cluster), 2, &way(by, path), move |rank| {
            lab::acquaint(rank)?;
            let (out, into) = (rank.buffer(len), rank.buffer(len));
            let mut times = Vec::with_capacity(ROUNDS);
            let mut before = None;
            rank.barrier()?;
            for round in 0..ROUNDS {
                times.push(round_trip(rank, out, into)? / 2.0);
                let gathered = rank.world().engine.counters().get(Event::EagerZeroCopy);
                before = before.or((gathered > 0).then_some(round));
            }
            let payback = payback(&rank.world().engine.learner().facts, len);
            Ok(PingPong { times, before, spared: payback.copy_ns - payback.overhead_ns })
        })?;
        Ok(all.swap_remove(0))
    }

    /// The time of a message when all is settled.
    fn settled(&self) -> f64 {
        median(self.times[ROUNDS - SETTLED..].to_vec())
    }

    /// Mean of all rounds of the paper, with what registration costs.
    fn mean(&self) -> f64 {
        self.times.iter().sum::<f64>() / ROUNDS as f64
    }

    /// How much longer the round took in which both sides registered, for one of them.
    fn registration(&self) -> f64 {
        self.before.map_or(f64::INFINITY, |round| self.times[round] - self.settled())
    }
}

/// Rank 0 begins.
fn round_trip(rank: &mut sim::Rank<'_>, out: fabric::Span, into: fabric::Span) -> Ran<f64> {
    let (me, peer) = (rank.rank(), 1 - rank.rank());
    let start = rank.now_ns();
    if me == 0 {
        rank.send(out, peer, 0)?;
        rank.recv(into, peer as i32, 0)?;
    } else {
        rank.recv(into, peer as i32, 0)?;
        rank.send(out, peer, 0)?;
    }
    Ok((rank.now_ns() - start) as f64)
}

/// The length of table 2 to which the costs of a registration and of a copy by Send/Recv were fitted.
const FITTED: usize = 8 * KB;

/// Figure 4 and table 2, for one path.
fn latency(cluster: &Cluster, (path, path_name): (Path, &str), study: &mut Study) -> Result<(), String> {
    let (mut theory, mut actual) = (Vec::new(), Vec::new());
    for len in SIZES {
        let old = PingPong::run(cluster, EagerBy::Copy, path, len)?;
        let new = PingPong::run(cluster, EagerBy::Choice, path, len)?;
        let (x, spared) = (len as f64, new.spared.max(0.0));
        theory.push((x, 100.0 * spared / old.settled()));
        actual.push((x, gain(old.mean(), new.mean())));
        let row = TABLE_2.iter().find(|row| row.0 == len);
        if let Some((_, fast, sendrecv)) = row {
            let least = new.registration() / (old.settled() - new.settled());
            let paper = Paper::Is(if path == Path::Fast { *fast } else { *sendrecv });
            let what = format!("uses that pay for the registration, {len} B, {path_name}");
            let claim = Claim::new("table 2", what, "", paper, least).within_factor(2.0);
            study.claims.push(match (path, len) {
                (_, FITTED) => claim.within(5.0).is(Basis::Fitted),
                (Path::Fast, 512) => claim.except(210.0, GATHER),
                (Path::SendRecv, 512) => claim.except(f64::INFINITY, GATHER),
                _ => claim,
            });
        }
        if path == Path::Fast && len == 4 * KB {
            let before = new.before.map_or(f64::INFINITY, |rounds| rounds as f64);
            let what = "times 4 KB must come again to be registered";
            study
                .claims
                .push(Claim::new("section 3.3.1", what, "", Paper::Is(15.0), before).within_factor(2.0));
        }
    }
    let curves = vec![Curve::new("theory (6)", theory), Curve::new("measured", actual)];
    let at = |curve: usize, len: usize| curves[curve].at(len as f64);
    if path == Path::Fast {
        study.claims.extend([
            Claim::new("fig. 4a", "latency spared in theory, 8 KB", "%", Paper::Is(15.0), at(0, 8 * KB))
                .within(1.0)
                .is(Basis::Derived),
            Claim::new("fig. 4a", "latency spared, 8 KB", "%", Paper::Is(14.0), at(1, 8 * KB)).within(1.0),
            Claim::new("fig. 4a", "latency spared, 128 B", "%", Paper::Between(-1.0, 1.0), at(1, 128)),
        ]);
    } else {
        let what = "latency spared, 8 KB: less than on the fast path";
        study.claims.push(Claim::new("fig. 4b", what, "%", Paper::AtMost(14.0), at(1, 8 * KB)));
    }
    let name = if path == Path::Fast { "000-fig4a" } else { "000-fig4b" };
    let title = format!("Latency spared, {path_name}");
    study.figures.push(Figure::by_size(name, title, "% of the latency", curves));
    Ok(())
}

/// Section 3.4: a program that never sends twice from the same place.
fn no_reuse(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    const LENGTHS: [usize; 3] = [512, 2 * KB, 8 * KB];
    const MESSAGES: usize = 12_000;
    let run = |by: EagerBy, len: usize| -> Result<(f64, bool, u64), String> {
        let mut all = lab::run(&lab::spread(cluster), 2, &way(by, Path::Fast), move |rank| {
            lab::acquaint(rank)?;
            let (memory, into) = (rank.buffer(256 << 20), rank.buffer(len));
            let mut state = 1u64;
            let time = lab::timed(rank, 0, MESSAGES, |rank| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let at = (state >> 33) as usize % (memory.len - len);
                round_trip(rank, memory.part(at, len), into).map(drop)
            })?;
            let engine = &rank.world().engine;
            let has_stopped = engine.usage().is_some_and(|usage| !usage.grows());
            Ok((time, has_stopped, engine.counters().get(Event::CacheMiss)))
        })?;
        Ok(all.swap_remove(0))
    };
    let (mut loss, mut stopped, mut registered) = (f64::MIN, true, 0);
    for len in LENGTHS {
        let ((old, ..), new) = (run(EagerBy::Copy, len)?, run(EagerBy::Choice, len)?);
        loss = loss.max(-gain(old, new.0));
        stopped &= new.1;
        registered += new.2;
    }
    let yes = f64::from(u8::from(stopped));
    study.claims.extend([
        Claim::new("section 3.4", "no reuse: the table stops to grow (1: yes)", "", Paper::Is(1.0), yes),
        Claim::new("section 3.4", "no reuse: registrations", "", Paper::AtMost(0.0), registered as f64),
        Claim::new(
            "section 3.4",
            "no reuse: most that is lost, 512 B to 8 KB",
            "%",
            Paper::AtMost(1.0),
            loss,
        ),
    ]);
    Ok(())
}
