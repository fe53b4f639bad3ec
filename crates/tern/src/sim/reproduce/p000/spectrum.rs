//! Figure 5: a thousand buffers, of which the i-th is sent i times.

use std::cell::RefCell;
use std::rc::Rc;

use fabric::Span;
use proto::{EagerBy, Event};
use sim::Cluster;

use super::{KB, Path, gain, platform, round_trip, way};
use crate::sim::figure::{Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, Ran};

const BUFFERS: usize = 1000;
const SIZES: [usize; 5] = [512, KB, 2 * KB, 4 * KB, 8 * KB];
const PAGE: usize = 4 * KB;
/// After so many uses from the first that leaves from where it lies, the further ones of a buffer are taken to be like
/// the last: two groups of eight and one of eight copies have been compared by then (`proto/choice/trial.rs`).
const SETTLED: usize = 28;

/// Where the buffers lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    BackToBack,
    SeparatePages,
}

const NOT_ALL: &str = "Of 500,500 exchanges those are run in which something changes; 28 uses after a \
    buffer was first sent from where it lies its further ones count as the last (a test compares with all).";

/// Runs it.
pub fn study(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    for (path, path_name) in Path::ALL {
        let cluster = &platform(cluster, path);
        let mut curves = Vec::new();
        for (layout, name) in
            [(Layout::BackToBack, "back to back"), (Layout::SeparatePages, "separate pages")]
        {
            let point = |len: &usize| {
                let old = run(cluster, EagerBy::Copy, path, layout, *len, BUFFERS, false)?;
                let new = run(cluster, EagerBy::Choice, path, layout, *len, BUFFERS, false)?;
                Ok((*len as f64, gain(old, new)))
            };
            curves.push(Curve::new(name, SIZES.iter().map(point).collect::<Result<Vec<_>, String>>()?));
        }
        let at = |curve: usize, len: usize| curves[curve].at(len as f64);
        if path == Path::Fast {
            let claim = |what: &str, paper, tern| {
                Claim::new("fig. 5a", what, "%", paper, tern).within(1.0).note(NOT_ALL)
            };
            study.claims.extend([
                claim("spectrum of reuse, 8 KB", Paper::Is(12.7), at(0, 8 * KB)),
                claim("the same, separate pages", Paper::Is(12.7), at(1, 8 * KB)),
                claim("spectrum of reuse, 512 B, separate pages: a loss", Paper::AtMost(0.0), at(1, 512))
                    .within(0.0),
                claim(
                    "back to back above separate pages, 512 B",
                    Paper::AtLeast(0.0),
                    at(0, 512) - at(1, 512),
                )
                .within(0.0),
            ]);
        }
        let name = if path == Path::Fast { "000-fig5a" } else { "000-fig5b" };
        let title = format!("Latency spared over a spectrum of reuse, {path_name}");
        study.figures.push(Figure::by_size(name, title, "% of the latency", curves));
    }
    Ok(())
}

/// What both ranks know of a buffer: how often each has used it since it first sent from where it lies, and which
/// exchange is the last.
#[derive(Clone, Copy, Default)]
struct Common {
    uses: [usize; 2],
    last: usize,
}

/// Time of all messages; `whole`: all of them are run.
fn run(
    cluster: &Cluster,
    by: EagerBy,
    path: Path,
    layout: Layout,
    len: usize,
    buffers: usize,
    whole: bool,
) -> Result<f64, String> {
    let common = Rc::new(RefCell::new(vec![Common::default(); buffers]));
    let mut all = lab::run(&lab::spread(cluster), 2, &way(by, path), move |rank| {
        lab::acquaint(rank)?;
        let step = match layout {
            Layout::BackToBack => len,
            Layout::SeparatePages => len.next_multiple_of(PAGE),
        };
        let [out, into] = [(); 2].map(|()| rank.buffer(buffers * step));
        rank.barrier()?;
        let mut time = 0.0;
        for i in 0..buffers {
            let [out, into] = [out, into].map(|all| all.part(i * step, len));
            let settled = |common: &Common, done| match (whole, by) {
                (true, _) => false,
                (_, EagerBy::Copy) => done >= 3,
                _ => common.uses.iter().all(|uses| *uses >= SETTLED),
            };
            time += send_times(rank, &common, i, (out, into), settled)?;
        }
        Ok(time)
    })?;
    Ok(all.swap_remove(0))
}

/// Time of the exchanges of buffer `i`, which is used `i + 1` times, of which those are run in which something changes.
/// Rank 0 says before an exchange that no more come.
fn send_times(
    rank: &mut sim::Rank<'_>,
    common: &RefCell<Vec<Common>>,
    i: usize,
    (out, into): (Span, Span),
    settled: impl Fn(&Common, usize) -> bool,
) -> Ran<f64> {
    let gathered = |rank: &mut sim::Rank<'_>| rank.world().engine.counters().get(Event::EagerZeroCopy);
    let (me, before, times, mut time) = (rank.rank(), gathered(rank), i + 1, 0.0);
    for done in 1..=times {
        if me == 0 && settled(&common.borrow()[i], done) {
            common.borrow_mut()[i].last = done;
        }
        let trip = round_trip(rank, out, into)?;
        time += trip;
        if gathered(rank) > before {
            common.borrow_mut()[i].uses[me] += 1;
        }
        if common.borrow()[i].last == done {
            return Ok(time + trip * (times - done) as f64);
        }
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not run is as what is.
    #[test]
    fn the_spectrum_is_as_if_all_messages_were_run() {
        let cluster = Cluster::find("poweredge-ddr").unwrap();
        for (by, len) in [(EagerBy::Copy, 512), (EagerBy::Choice, 512), (EagerBy::Choice, 8 * KB)] {
            let time = |whole| run(&cluster, by, Path::Fast, Layout::BackToBack, len, 200, whole).unwrap();
            let (part, whole) = (time(false), time(true));
            assert!((part / whole - 1.0).abs() < 0.003, "{by:?}, {len} bytes: {part} ns, {whole} run");
        }
    }
}
