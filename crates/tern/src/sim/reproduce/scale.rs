//! Beyond the papers: an allreduce and a halo exchange on 4,096 ranks of today's hardware.

use std::time::Instant;

use sim::rank::{INT64, SUM};
use sim::{Cluster, Setup};

use crate::sim::figure::{Claim, Curve, Figure, Paper, Scale, Study};
use crate::sim::lab::{self, Variant};

/// Calls before measuring, and measured ones.
const WARM: usize = 10;
const ROUNDS: usize = 5;

/// Runs it. Real time and memory go to the terminal: they are not the same twice.
pub fn study() -> Result<Study, String> {
    let title = "allreduce of 8 bytes, and halo of 1 KB to four neighbours, on ndr-2026, 64 ranks a host";
    let mut study = Study { name: "scale", title, claims: Vec::new(), figures: Vec::new() };
    let cluster = Cluster::find("ndr-2026")?;
    let (mut sums, mut halos) = (Vec::new(), Vec::new());
    for ranks in [64, 256, 1024, 4096] {
        let start = Instant::now();
        let way = Variant { name: "choice", setup: Setup::default() };
        let (times, counters) = lab::run_counted(&cluster, ranks, &way, both)?;
        let longest = |at: fn(&(f64, f64)) -> f64| times.iter().map(at).fold(0.0, f64::max) / 1000.0;
        let (sum, halo) = (longest(|t| t.0), longest(|t| t.1));
        let (real, messages) = (start.elapsed().as_secs_f64(), counters.messages() as f64);
        println!(
            "{ranks} ranks: {messages} messages in {real:.1} s, {:.2} million a second",
            messages / real / 1e6
        );
        sums.push((ranks as f64, sum));
        halos.push((ranks as f64, halo));
    }
    for (name, points) in [("allreduce", &sums), ("halo", &halos)] {
        let what = |ranks: f64| format!("{name}, {ranks} ranks");
        let claim =
            |(ranks, time): &(f64, f64)| Claim::new("scale", what(*ranks), "µs", Paper::Silent, *time);
        study.claims.extend(points.iter().map(claim));
    }
    let curves = vec![Curve::new("allreduce, 8 bytes", sums), Curve::new("halo, 1 KB", halos)];
    let figure =
        Figure::by_size("scale", "Time by ranks, ndr-2026", "µs", curves).over("ranks", Scale::Sizes);
    study.figures.push(figure);
    Ok(study)
}

/// Times of an allreduce and of a halo exchange, in nanoseconds.
fn both(rank: &mut sim::Rank<'_>) -> lab::Ran<(f64, f64)> {
    let (out, into) = (rank.buffer(8), rank.buffer(8));
    let sum = lab::timed(rank, WARM, ROUNDS, |rank| rank.allreduce(out, into, INT64, SUM))?;
    let (me, n, width) = (rank.rank(), rank.size(), 64);
    let at = |by: usize| (me + by) % n;
    // One step along a row of the torus and one to the next row, both ways.
    let pairs =
        [(at(1), at(n - 1)), (at(n - 1), at(1)), (at(width), at(n - width)), (at(n - width), at(width))];
    let buffers = pairs.map(|_| (rank.buffer(1024), rank.buffer(1024)));
    let halo = lab::timed(rank, WARM, ROUNDS, |rank| {
        let mut requests = Vec::with_capacity(8);
        for (side, ((_, from), (_, into))) in pairs.iter().zip(&buffers).enumerate() {
            requests.push(rank.irecv(*into, *from as i32, side as i32)?);
        }
        for (side, ((to, _), (out, _))) in pairs.iter().zip(&buffers).enumerate() {
            requests.push(rank.isend(*out, *to, side as i32)?);
        }
        rank.waitall(requests)
    })?;
    Ok((sum, halo))
}
