//! Figure 5: a thousand buffers, of which the i-th is sent i times.

use fabric::Span;
use proto::{EagerBy, Event};
use sim::Cluster;

use super::{KB, Path, gain, round_trip, way};
use crate::sim::figure::{Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, Ran};

const BUFFERS: usize = 1000;
const SIZES: [usize; 5] = [512, KB, 2 * KB, 4 * KB, 8 * KB];
const PAGE: usize = 4 * KB;
/// After so many messages from where it lies, the further ones of a buffer are taken to be like the last.
const SETTLED: u64 = 3;

/// Where the buffers lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    BackToBack,
    SeparatePages,
}

/// Runs it.
pub fn study(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    for (path, path_name) in Path::ALL {
        let mut curves = Vec::new();
        for (layout, name) in
            [(Layout::BackToBack, "back to back"), (Layout::SeparatePages, "separate pages")]
        {
            let point = |len: &usize| {
                let old = run(cluster, EagerBy::Copy, path, layout, *len)?;
                let new = run(cluster, EagerBy::Choice, path, layout, *len)?;
                Ok((*len as f64, gain(old, new)))
            };
            curves.push(Curve::new(name, SIZES.iter().map(point).collect::<Result<Vec<_>, String>>()?));
        }
        let at = |curve: usize, len: usize| curves[curve].at(len as f64);
        if path == Path::Fast {
            let claim = |what: &str, paper, tern| Claim::new("fig. 5a", what, "%", paper, tern);
            study.claims.extend([
                claim("spectrum of reuse, 8 KB", Paper::Is(12.7), at(0, 8 * KB)),
                claim("the same, separate pages", Paper::Is(12.7), at(1, 8 * KB)),
                claim("spectrum of reuse, 512 B, separate pages: a loss", Paper::AtMost(0.0), at(1, 512)),
                claim(
                    "back to back above separate pages, 512 B",
                    Paper::AtLeast(0.0),
                    at(0, 512) - at(1, 512),
                ),
            ]);
        }
        let name = if path == Path::Fast { "000-fig5a" } else { "000-fig5b" };
        let title = format!("Latency spared over a spectrum of reuse, {path_name}");
        study.figures.push(Figure::by_size(name, title, "% of the latency", curves));
    }
    Ok(())
}

/// Time of all messages.
fn run(cluster: &Cluster, by: EagerBy, path: Path, layout: Layout, len: usize) -> Result<f64, String> {
    let mut all = lab::run(&lab::spread(cluster), 2, &way(by, path), move |rank| {
        lab::acquaint(rank)?;
        let step = match layout {
            Layout::BackToBack => len,
            Layout::SeparatePages => len.next_multiple_of(PAGE),
        };
        let [out, into] = [(); 2].map(|()| rank.buffer(BUFFERS * step));
        rank.barrier()?;
        let mut time = 0.0;
        for i in 0..BUFFERS {
            let [out, into] = [out, into].map(|all| all.part(i * step, len));
            time += send_times(rank, by, out, into, i + 1)?;
        }
        Ok(time)
    })?;
    Ok(all.swap_remove(0))
}

/// Time of `times` exchanges. Rank 0 says with the last one that is run that no more come.
fn send_times(rank: &mut sim::Rank<'_>, by: EagerBy, out: Span, into: Span, times: usize) -> Ran<f64> {
    let gathered = |rank: &mut sim::Rank<'_>| rank.world().engine.counters().get(Event::EagerZeroCopy);
    let (before, mut time) = (gathered(rank), 0.0);
    for done in 1..=times {
        let trip = round_trip(rank, out, into)?;
        time += trip;
        let settled = gathered(rank) - before >= SETTLED || by == EagerBy::Copy && done >= 3;
        if settled {
            return Ok(time + trip * (times - done) as f64);
        }
    }
    Ok(time)
}
