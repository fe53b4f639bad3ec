//! Exchange models, patterns of applications, and what the new protocol costs (sections 4.4.1 to 4.4.3).

use proto::Event;
use sim::rank::ANY_SOURCE;
use sim::{Cluster, Rank, Request};

use super::{current, new, stubborn};
use crate::sim::figure::{Claim, Curve, Figure, Paper, Scale, Study};
use crate::sim::lab::{self, Ran, Variant};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;
/// Length of the messages of the exchange models (section 4.4.1).
const LEN: usize = 128 * KB;
/// Iterations, the first of which do not count.
const ROUNDS: usize = 40;
const WARM: usize = 16;
/// Ranks of the patterns: the platform's hosts.
const RANKS: usize = 4;

const FAST_READS: &str = "The paper explains its lower and earlier maximum by RDMA reads that take longer than writes; \
    the modelled adapter reads as fast as it writes.";

/// Which call comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// The receive.
    ReceiveFirst,
    /// The send.
    SendFirst,
}

/// The models, and where the paper has their greatest improvement, in per cent.
pub const CASES: [(Model, &str, (f64, f64)); 2] =
    [(Model::ReceiveFirst, "model 1", (80.0, 32.0)), (Model::SendFirst, "model 2", (50.0, 20.0))];

/// Time of one iteration where communication takes four fifths of the computation.
pub fn iteration_of(cluster: &Cluster, way: &Variant, model: Model) -> Result<f64, String> {
    let communication = iteration(cluster, &current(), model, 0)?;
    iteration(cluster, way, model, (communication / 0.8 / 2.0) as u64)
}

/// Figure 4.16: how much faster an iteration is, by the ratio of communication to computation.
pub fn models(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    for (at, (model, name, stated)) in CASES.into_iter().enumerate() {
        let communication = iteration(cluster, &current(), model, 0)?;
        let mut curves = Vec::new();
        for way in [stubborn(), new()] {
            let point = |tenths: u32| {
                let ratio = f64::from(tenths) / 10.0;
                let half = (communication / ratio / 2.0) as u64;
                let (old, new) =
                    (iteration(cluster, &current(), model, half)?, iteration(cluster, &way, model, half)?);
                Ok((ratio * 100.0, 100.0 * (1.0 - new / old)))
            };
            curves.push(Curve::new(way.name, (1..=20).map(point).collect::<Result<Vec<_>, String>>()?));
        }
        let claim =
            |what: &str, paper, tern| Claim::new("fig. 4.16", format!("{name}, {what}"), "%", paper, tern);
        let between = curves[0].points.iter().map(|(x, y)| (y - curves[1].at(*x)).abs()).fold(0.0, f64::max);
        let greatest = claim("greatest improvement", Paper::Is(stated.1), curves[1].max());
        study.claims.push(match model {
            Model::ReceiveFirst => greatest,
            Model::SendFirst => greatest.except(8.5, FAST_READS),
        });
        study.claims.push(claim("adaptive and not differ by", Paper::AtMost(2.0), between));
        let title = format!("Exchange {name}: improvement over the current rendezvous");
        let figure = Figure::by_size(&format!("002-fig4.16-{}", at + 1), title, "%", curves);
        study.figures.push(figure.over("communication / computation (%)", Scale::Linear).stated([stated]));
    }
    Ok(())
}

/// Time of one iteration of an exchange between two ranks, `half_ns` for each of producing and consuming.
fn iteration(cluster: &Cluster, way: &Variant, model: Model, half_ns: u64) -> Result<f64, String> {
    let pack_ns = cluster.copy_time_ns(LEN, LEN) as u64;
    let times = lab::run(&lab::spread(cluster), 2, way, move |rank| {
        lab::acquaint(rank)?;
        let (out, into) = (rank.buffer(LEN), rank.buffer(LEN));
        let mut start = 0;
        rank.barrier()?;
        for round in 0..ROUNDS {
            if round == WARM {
                start = rank.now_ns();
            }
            exchange(rank, out, into, model, round, half_ns, pack_ns)?;
        }
        Ok((rank.now_ns() - start) as f64 / (ROUNDS - WARM) as f64)
    })?;
    Ok(times.iter().sum::<f64>() / 2.0)
}

/// Figure 4.15.
fn exchange(
    rank: &mut Rank<'_>,
    out: fabric::Span,
    into: fabric::Span,
    model: Model,
    round: usize,
    half_ns: u64,
    pack_ns: u64,
) -> Ran<()> {
    let peer = 1 - rank.rank();
    let (send, receive);
    match model {
        Model::ReceiveFirst => {
            receive = rank.irecv(into, peer as i32, 1)?;
            rank.compute(pack_ns);
            send = rank.isend(out, peer, 1)?;
            rank.compute(half_ns);
        }
        Model::SendFirst => {
            rank.compute(pack_ns);
            send = rank.isend(out, peer, 1)?;
            if round > 0 {
                rank.compute(half_ns);
            }
            receive = rank.irecv(into, peer as i32, 1)?;
            rank.compute(half_ns);
        }
    }
    rank.wait(send)?;
    rank.wait(receive)?;
    if model == Model::ReceiveFirst {
        rank.compute(half_ns);
    }
    Ok(())
}

/// The patterns of figure 4.18.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// CG.B.
    Cg,
    /// BT.A.
    Bt,
    /// LU.A.
    Lu,
    /// RADIX.
    Radix,
}

/// All patterns.
pub const PATTERNS: [(Pattern, &str); 4] = [
    (Pattern::Cg, "CG-like"),
    (Pattern::Bt, "BT-like"),
    (Pattern::Lu, "LU-like"),
    (Pattern::Radix, "RADIX-like"),
];

/// Rounds of a pattern before those that count, and all.
pub type Rounds = (usize, usize);

/// As in the paper's study.
pub const SHORT: Rounds = (WARM, ROUNDS);

/// By how much the computations of ranks differ at most, in ns: from «tightly synchronized», as the paper has
/// it of CG, to a sixth of the computation. The paper gives no figure, so that all patterns run with all.
pub const SKEWS_NS: [u64; 5] = [500, 1_500, 5_000, 15_000, 50_000];

/// Time of a whole pattern, computation and all, after warm-up.
pub fn run_time(
    cluster: &Cluster,
    way: &Variant,
    pattern: Pattern,
    skew_ns: u64,
    rounds: Rounds,
) -> Result<f64, String> {
    Ok(behaviour(cluster, way, pattern, skew_ns, rounds)?.whole_ns)
}

/// What a pattern did: the time of all, time in waits, as section 4.4.2 has it, and with that in blocking sends; RTRs sent, and bytes
/// on the wire.
struct Behaviour {
    whole_ns: f64,
    wait_ns: f64,
    with_sends_ns: f64,
    rtrs: u64,
    bytes: f64,
}

/// What is further from the paper than the tolerance, with adaptation or without.
const EXCEPTIONS: [(Pattern, bool, f64, &str); 3] = [
    (
        Pattern::Cg,
        false,
        -41.0,
        "Where ranks differ by 5 µs and more an RTR spares waiting here; where they do not it costs next to nothing. \
         What MPICH2 paid on top is not stated: a registration for each RTR, where memory is not kept, would be such \
         a cost.",
    ),
    (Pattern::Bt, false, 17.0, BT_BY_SKEW),
    (Pattern::Bt, true, 22.0, BT_BY_SKEW),
];
const BT_BY_SKEW: &str = "Gains where ranks differ by 15 µs and more, up to half of the wait; by how much those of the \
    paper differed is not stated. Ranks of a ring that drift send RTRs and RTSs that cross, so that usage falls below \
    80 % on some envelopes and adaptation gives up a part; the paper's BT had «a very high RTR usage».";

/// What the paper says of a pattern without and with adaptation.
fn stated(pattern: Pattern) -> [Paper; 2] {
    match pattern {
        Pattern::Cg => [Paper::Is(21.0), Paper::Is(4.0)],
        Pattern::Bt => [Paper::Is(-30.0), Paper::Is(-30.0)],
        Pattern::Lu => [Paper::Is(-5.0), Paper::Is(-5.0)],
        Pattern::Radix => [Paper::Is(-4.0), Paper::Is(-4.0)],
    }
}

/// Figures 4.17 and 4.19(b). «The average of five runs»: one with each skew, whose waits are added up.
pub fn applications(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let mut volume = 0.0f64;
    for (pattern, name) in PATTERNS {
        let runs = |way: &Variant| {
            let run = |skew_ns| behaviour(cluster, way, pattern, skew_ns, SHORT);
            SKEWS_NS.into_iter().map(run).collect::<Result<Vec<_>, String>>()
        };
        let old = runs(&current())?;
        let mut curves = Vec::new();
        for (way, paper) in [stubborn(), new()].into_iter().zip(stated(pattern)) {
            let new = runs(&way)?;
            let sum = |of: fn(&Behaviour) -> f64, runs: &[Behaviour]| runs.iter().map(of).sum::<f64>();
            let change = |of: fn(&Behaviour) -> f64| 100.0 * (sum(of, &new) / sum(of, &old) - 1.0);
            let case = format!("{name}, {}", way.name);
            let claim = |what: String, paper, tern| Claim::new("fig. 4.17", what, "%", paper, tern);
            let waits = claim(format!("wait time, {case}"), paper, change(|run| run.wait_ns));
            let adapts = way.setup.limits.adapt;
            study.claims.push(
                match EXCEPTIONS.iter().find(|known| (known.0, known.1) == (pattern, adapts)) {
                    Some((.., until, reason)) => waits.except(*until, reason),
                    None => waits,
                },
            );
            let mut points = Vec::new();
            for (skew_ns, (new, old)) in SKEWS_NS.into_iter().zip(new.iter().zip(&old)) {
                // Nobody waits where nobody is late and all is overlapped.
                if old.wait_ns > 0.0 {
                    let skew_us = skew_ns as f64 / 1000.0;
                    points.push((skew_us, 100.0 * (new.wait_ns / old.wait_ns - 1.0)));
                    let what = format!("the same where ranks differ by up to {skew_us} µs");
                    study.claims.push(claim(what, Paper::Silent, points[points.len() - 1].1));
                }
            }
            let what = format!("the same and blocking sends, {case}");
            study.claims.push(claim(what, Paper::Silent, change(|run| run.with_sends_ns)));
            curves.push(Curve::new(way.name, points));
            if adapts {
                volume = volume.max(change(|run| run.bytes));
            }
            if pattern == Pattern::Lu {
                study.claims.push(Claim::new(
                    "section 4.2.3",
                    format!("RTRs from any source, {}", way.name),
                    "",
                    Paper::AtMost(0.0),
                    new.iter().map(|behaviour| behaviour.rtrs).sum::<u64>() as f64,
                ));
            }
        }
        let title = format!("Change of the wait time, {name}");
        let figure = Figure::by_size(&format!("002-fig4.17-{name}"), title, "%", curves);
        study.figures.push(figure.over("most by which ranks differ (µs)", Scale::Log));
    }
    study.claims.push(Claim::new(
        "fig. 4.19",
        "most extra volume of the patterns, new",
        "%",
        Paper::AtMost(0.04),
        volume,
    ));
    Ok(())
}

/// One run; the ranks' computations differ by up to `skew_ns`.
fn behaviour(
    cluster: &Cluster,
    way: &Variant,
    pattern: Pattern,
    skew_ns: u64,
    (warm, rounds): Rounds,
) -> Result<Behaviour, String> {
    let (results, counters) = lab::run_counted(&lab::spread(cluster), RANKS, way, move |rank| {
        lab::acquaint(rank)?;
        let mut app = App::new(rank, skew_ns);
        rank.barrier()?;
        let mut start = 0;
        for round in 0..rounds {
            if round == warm {
                start = rank.now_ns();
                (app.waited_ns, app.sent_ns) = (0, 0);
            }
            match pattern {
                Pattern::Cg => app.cg(rank)?,
                Pattern::Bt => app.bt(rank)?,
                Pattern::Lu => app.lu(rank)?,
                Pattern::Radix => app.radix(rank)?,
            }
        }
        app.end(rank)?;
        let whole_ns = (rank.now_ns() - start) as f64;
        Ok((
            whole_ns,
            app.waited_ns as f64,
            app.sent_ns as f64,
            rank.world().engine.counters().get(Event::RtrSent),
        ))
    })?;
    Ok(Behaviour {
        whole_ns: results.iter().map(|(whole, ..)| *whole).fold(0.0, f64::max),
        wait_ns: results.iter().map(|(_, waited, ..)| waited).sum(),
        with_sends_ns: results.iter().map(|(_, waited, sent, _)| waited + sent).sum(),
        rtrs: results.iter().map(|(.., rtrs)| rtrs).sum(),
        bytes: counters.bytes as f64,
    })
}

/// A rank of a pattern: its buffers, how long it has waited, and by how much it may take longer to compute.
struct App {
    out: Vec<fabric::Span>,
    into: Vec<fabric::Span>,
    under_way: Option<Request>,
    waited_ns: u64,
    sent_ns: u64,
    round: u64,
    skew_ns: u64,
}

/// Length of the messages of the patterns, and what is computed for one.
const APP_LEN: usize = 256 * KB;
const APP_NS: u64 = 300_000;
const TAG: i32 = 1;

impl App {
    fn new(rank: &mut Rank<'_>, skew_ns: u64) -> App {
        let mut buffers = || (0..RANKS).map(|_| rank.buffer(APP_LEN)).collect();
        App { out: buffers(), into: buffers(), under_way: None, waited_ns: 0, sent_ns: 0, round: 0, skew_ns }
    }

    /// Computes; nobody takes exactly as long as the others, or always as long.
    fn compute(&mut self, rank: &mut Rank<'_>) {
        self.round += 1;
        let part = (rank.rank() as u64 * 7919 + self.round * 104_729) % 64;
        rank.compute(APP_NS + self.skew_ns * part / 64);
    }

    /// Waits, and counts the time.
    fn waits<T>(&mut self, rank: &mut Rank<'_>, what: impl FnOnce(&mut Rank<'_>) -> Ran<T>) -> Ran<T> {
        let start = rank.now_ns();
        let value = what(rank)?;
        self.waited_ns += rank.now_ns() - start;
        Ok(value)
    }

    /// Sends, and counts the time.
    fn sends(&mut self, rank: &mut Rank<'_>, out: fabric::Span, to: usize) -> Ran<()> {
        let start = rank.now_ns();
        rank.send(out, to, TAG)?;
        self.sent_ns += rank.now_ns() - start;
        Ok(())
    }

    /// Ends what the last round has left under way.
    fn end(&mut self, rank: &mut Rank<'_>) -> Ran<()> {
        if let Some(send) = self.under_way.take() {
            let from = (rank.rank() + RANKS - 1) % RANKS;
            rank.recv(self.into[0], from as i32, TAG)?;
            rank.wait(send)?;
        }
        Ok(())
    }

    /// Both sides come together: RTS and RTR cross, and there is nothing to overlap with. As in CG on a square of
    /// four, an exchange with the other rank of the row and one with the transposed rank, then two sums
    /// of 8 bytes.
    fn cg(&mut self, rank: &mut Rank<'_>) -> Ran<()> {
        let me = rank.rank();
        let transposed = me % 2 * 2 + me / 2;
        self.compute(rank);
        self.exchange(rank, me ^ 1, APP_LEN)?;
        if transposed != me {
            self.exchange(rank, transposed, APP_LEN)?;
        }
        for _ in 0..2 {
            rank.compute(APP_NS / 16);
            self.exchange(rank, me ^ 1, 8)?;
        }
        Ok(())
    }

    fn exchange(&mut self, rank: &mut Rank<'_>, peer: usize, len: usize) -> Ran<()> {
        let receive = rank.irecv(self.into[peer].part(0, len), peer as i32, TAG)?;
        self.sends(rank, self.out[peer].part(0, len), peer)?;
        self.waits(rank, |rank| rank.wait(receive).map(drop))
    }

    /// A send is under way while the receive is posted and the next data is produced.
    fn bt(&mut self, rank: &mut Rank<'_>) -> Ran<()> {
        let (to, from) = ((rank.rank() + 1) % RANKS, (rank.rank() + RANKS - 1) % RANKS);
        if self.under_way.is_none() {
            self.compute(rank);
            self.under_way = Some(rank.isend(self.out[0], to, TAG)?);
        }
        let receive = rank.irecv(self.into[0], from as i32, TAG)?;
        self.compute(rank);
        let send = self.under_way.take();
        self.waits(rank, |rank| rank.waitall(send.into_iter().chain([receive])))?;
        self.compute(rank);
        self.under_way = Some(rank.isend(self.out[0], to, TAG)?);
        Ok(())
    }

    /// Receives from anywhere.
    fn lu(&mut self, rank: &mut Rank<'_>) -> Ran<()> {
        let receive = rank.irecv(self.into[0], ANY_SOURCE, TAG)?;
        self.compute(rank);
        self.sends(rank, self.out[0], (rank.rank() + 1) % RANKS)?;
        self.waits(rank, |rank| rank.wait(receive))?;
        self.compute(rank);
        Ok(())
    }

    /// Four receives from a rank, then their end, and so on; sends on the other side, and then the other way round.
    fn radix(&mut self, rank: &mut Rank<'_>) -> Ran<()> {
        let me = rank.rank();
        self.compute(rank);
        for receives in [me.is_multiple_of(2), !me.is_multiple_of(2)] {
            for step in [1, 3] {
                if receives {
                    let peer = (me + RANKS - step) % RANKS;
                    let posted = self.into.iter().map(|into| rank.irecv(*into, peer as i32, TAG));
                    let posted = posted.collect::<Ran<Vec<_>>>()?;
                    self.waits(rank, |rank| rank.waitall(posted))?;
                } else {
                    let out = self.out.clone();
                    out.iter().try_for_each(|out| self.sends(rank, *out, (me + step) % RANKS))?;
                }
            }
        }
        Ok(())
    }
}

/// Figure 4.19(a): every RTR crosses an RTS and is dropped.
pub fn crossing(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let mut curves = Vec::new();
    for way in [stubborn(), new()] {
        let point = |len: usize| {
            let (old, new) = (crossed(cluster, &current(), len)?, crossed(cluster, &way, len)?);
            Ok((len as f64, 100.0 * (new / old - 1.0)))
        };
        let sizes = lab::sizes(KB, MB, 1).into_iter();
        curves.push(Curve::new(way.name, sizes.map(point).collect::<Result<Vec<_>, String>>()?));
    }
    let most = |curve: &Curve, from: usize, to: usize| {
        let within = curve.points.iter().filter(|(len, _)| (from as f64..=to as f64).contains(len));
        within.map(|(_, y)| *y).fold(f64::MIN, f64::max)
    };
    let claim = |what: &str, paper, tern| Claim::new("fig. 4.19", what, "%", Paper::AtMost(paper), tern);
    study.claims.extend([
        claim("latency overhead, eager", 1.0, most(&curves[0], KB, super::EAGER)),
        claim("latency overhead, 128 KB and more, without adaptation", 3.0, most(&curves[0], 128 * KB, MB)),
        claim("latency overhead, 128 KB and more, adaptive", 1.0, most(&curves[1], 128 * KB, MB)),
    ]);
    let figure = Figure::by_size("002-fig4.19", "Latency overhead where RTR and RTS cross", "%", curves);
    study.figures.push(figure);
    Ok(())
}

/// Time of a message whose two sides begin at the same time.
fn crossed(cluster: &Cluster, way: &Variant, len: usize) -> Result<f64, String> {
    let times = lab::run(&lab::spread(cluster), 2, way, move |rank| {
        lab::acquaint(rank)?;
        let buffer = rank.buffer(len);
        let mut times = Vec::new();
        let begin = rank.now_ns().next_multiple_of(1_000_000);
        for round in 0..ROUNDS as u64 {
            // Each round at a time of its own, the same for both.
            let at = begin + (round + 1) * 10_000_000;
            rank.compute(at.saturating_sub(rank.now_ns()));
            match rank.rank() {
                0 => rank.send(buffer, 1, TAG)?,
                _ => drop(rank.recv(buffer, 0, TAG)?),
            }
            if round >= WARM as u64 {
                times.push((rank.now_ns() - at) as f64);
            }
        }
        Ok(lab::median(times))
    })?;
    Ok(times[1])
}
