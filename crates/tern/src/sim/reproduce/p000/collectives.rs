//! Figure 8: broadcast and scatter, on one rank and on four ranks of each of 4 hosts.

use mpi::coll::{Algorithm, Collective};
use proto::{EagerBy, Event};
use sim::Cluster;

use super::{KB, Path, gain, way};
use crate::sim::figure::{Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, median};

const SIZES: [usize; 8] = [512, KB, 2 * KB, 3 * KB, 4 * KB, 5 * KB, 6 * KB, 8 * KB];
/// Iterations until buffers are registered, and those that count: the paper's are 10,000.
const WARM: usize = 300;
const COUNTED: usize = 9;

/// Times of a collective, in ns.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// From the first call to the last return.
    whole: f64,
    /// From call to return, mean of all ranks.
    mean: f64,
}

/// Runs it.
pub fn study(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let mut curves: Vec<(Curve, Curve)> = Vec::new();
    for kind in [Collective::Bcast, Collective::Scatter] {
        for ranks in [4, 16] {
            let (mut whole, mut mean) = (Vec::new(), Vec::new());
            for len in SIZES {
                let old = run(cluster, EagerBy::Copy, kind, ranks, len)?;
                let new = run(cluster, EagerBy::Choice, kind, ranks, len)?;
                whole.push((len as f64, gain(old.whole, new.whole)));
                mean.push((len as f64, gain(old.mean, new.mean)));
            }
            let name = if kind == Collective::Bcast { "broadcast" } else { "scatter" };
            let name = format!("{name}, {ranks} ranks");
            let by_mean = format!("{name}, mean of the ranks");
            curves.push((Curve::new(name, whole), Curve::new(by_mean, mean)));
        }
    }
    let whole = |curve: usize, len: usize| curves[curve].0.at(len as f64);
    let beyond = SIZES.iter().filter(|len| **len > 4 * KB).map(|len| whole(2, *len)).fold(f64::MIN, f64::max);
    let claim = |what: &str, paper, tern| Claim::new("fig. 8", what, "%", paper, tern);
    study.claims.extend([
        claim("broadcast, 4 ranks, 8 KB, to the last return", Paper::AtLeast(25.0), whole(0, 8 * KB))
            .except(-8.0, "Three copies of 8 KB are spared one behind the other; of which time «over 25 %» is not said."),
        claim("the same, mean of the ranks", Paper::AtLeast(25.0), curves[0].1.at((8 * KB) as f64)).except(
            -45.0,
            "A rank that sends from the user's buffer may not return before the adapter has done with it; how the \
             paper's library deals with that is not said.",
        ),
        claim(
            "broadcast, 16 ranks: below 4 ranks by, 8 KB",
            Paper::AtLeast(0.0),
            whole(0, 8 * KB) - whole(1, 8 * KB),
        ),
        claim("scatter, 4 ranks, 4 KB", Paper::AtLeast(5.0), whole(2, 4 * KB)),
        claim("scatter, 4 ranks: 5 to 8 KB below 4 KB by", Paper::AtLeast(0.0), whole(2, 4 * KB) - beyond),
    ]);
    let curves = curves.into_iter().flat_map(|(whole, mean)| [whole, mean]).collect();
    study.figures.push(Figure::by_size("000-fig8", "Time of collectives spared", "%", curves));
    Ok(())
}

fn run(cluster: &Cluster, by: EagerBy, kind: Collective, ranks: usize, len: usize) -> Result<Times, String> {
    let mut way = way(by, Path::Fast);
    way.setup.forced.set(kind, Some(Algorithm::Binomial));
    let cluster = if ranks == cluster.hosts { lab::spread(cluster) } else { cluster.clone() };
    let all = lab::run(&cluster, ranks, &way, move |rank| {
        lab::acquaint(rank)?;
        let (root, buffer) = (rank.buffer(ranks * len), rank.buffer(len));
        let mut times = Vec::with_capacity(COUNTED);
        for round in 0..WARM + COUNTED {
            rank.barrier()?;
            let start = rank.now_ns();
            match kind {
                Collective::Bcast => rank.bcast(buffer, 0)?,
                _ => rank.scatter(root, buffer, 0)?,
            }
            if round >= WARM {
                times.push((start as f64, rank.now_ns() as f64));
            }
        }
        Ok((times, rank.world().engine.counters().get(Event::EagerZeroCopy)))
    })?;
    let round = |at: usize| {
        let times = all.iter().map(|(times, _)| times[at]);
        let (first, last) = times.clone().fold((f64::MAX, 0f64), |(a, b), (x, y)| (a.min(x), b.max(y)));
        Times { whole: last - first, mean: times.map(|(start, end)| end - start).sum::<f64>() / ranks as f64 }
    };
    let rounds: Vec<Times> = (0..COUNTED).map(round).collect();
    let of = |time: fn(&Times) -> f64| median(rounds.iter().map(time).collect());
    Ok(Times { whole: of(|times| times.whole), mean: of(|times| times.mean) })
}
