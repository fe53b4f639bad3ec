//! «004», one-sided operations scheduled inside their epoch, on `em64t-pcie` and `ia32-pcix`.

use proto::EagerBy;
use proto::epoch::{Bundling, Order, Schedule};
use sim::{Cluster, Rank, Setup, Window};

use crate::sim::figure::{Basis, Claim, Curve, Figure, Paper, Study};
use crate::sim::lab::{self, Variant, mb_s, median};

/// Rounds of a test, and those before that do not count.
const ROUNDS: usize = 12;
const WARM: usize = 4;
/// Puts and Gets of an epoch of pattern 1 (section 5.2).
const EACH: usize = 16;
/// Operations are short up to here.
const SMALL: usize = 256;

const PLATFORMS: [&str; 2] = ["em64t-pcie", "ia32-pcix"];

/// What the paper compares, and the library's own choice: where operations are put in another order nothing is merged
/// (section 5.2), and what is merged is one operation with the flag (section 5.3).
pub const fn schedules(test: Test) -> [(&'static str, Schedule); 3] {
    let bundling = match test {
        Test::Throughput | Test::Exchange => Bundling::Never,
        Test::Put | Test::Get => Bundling::Last,
    };
    let scheme = Schedule::fixed(Order::Interleaved, bundling, false);
    [("original", Schedule::ORIGINAL), ("paper's scheme", scheme), ("choice", Schedule::CHOICE)]
}

const OVERLAPS: &str = "1788 MB/s, 76 % above the original, make that 1016 MB/s: more than one way alone (964). The \
    paper's original overlaps a little already; here Gets wait behind all Puts of their queue pair.";
const UP_TO: &str = "Where both transfers take long one of them is hidden wholly here; what kept the paper's library \
    from that is not said.";
const CALLS: &str = "Here a write, its acknowledgement and the flag are three latencies, a merged message one, and little \
    else. Several us of software for start, complete, post and wait, which no cluster file has, would bring both \
    nearer to each other.";
const THIRD: &str = "In the test of section 5.3 a Get is three latencies by either scheme: there, back, and the POST that lets \
    the other side begin and can leave when the Get is back, with the flag or behind the request. So merging spares what a read takes longer than two \
    messages: section 2.2 says that there is such a time. With reads that take 10 us longer (serve_ns = 10000) 46 and 47 % are \
    spared here.";

const SHORT: &str = "Put and Get of 16 B in one message: the answer passes two processors, a read none, and by the facts \
    both take as long to within 1 us.";

/// A test of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// Section 5.2, pattern 1: 16 Puts and 16 Gets in an epoch.
    Throughput,
    /// Section 5.2, pattern 2: a Put and a Get, then the other side.
    Exchange,
    /// Section 5.3: a Put, then the other side.
    Put,
    /// The same with a Get.
    Get,
}

/// Mean time of an iteration of a test in ns, as the first process sees it.
pub fn time(cluster: &Cluster, test: Test, schedule: Schedule, len: usize) -> Result<f64, String> {
    let way = Variant { name: "epoch", setup: setup() };
    let mut all = lab::run(&lab::spread(cluster), 2, &way, move |rank| {
        lab::acquaint(rank)?;
        let memory = rank.buffer(2 * EACH * len);
        let (out, into) = (rank.buffer(len), rank.buffer(len));
        let window = rank.window(1, memory, schedule)?;
        let (mut times, peer) = (Vec::new(), 1 - rank.rank());
        for round in 0..WARM + ROUNDS {
            let start = rank.now_ns();
            let access = |rank: &mut Rank<'_>, window: &Window| {
                rank.win_start(window, &[peer])?;
                let (puts, gets) = match test {
                    Test::Throughput => (EACH, EACH),
                    Test::Exchange => (1, 1),
                    Test::Put => (1, 0),
                    Test::Get => (0, 1),
                };
                (0..puts).try_for_each(|at| rank.put(window, peer, at * len, out))?;
                (puts..puts + gets).try_for_each(|at| rank.get(window, peer, at * len, into))?;
                rank.win_complete(window)
            };
            let expose = |rank: &mut Rank<'_>, window: &Window| {
                rank.win_post(window, &[peer])?;
                rank.win_wait(window, &[peer])
            };
            match (test, rank.rank()) {
                (Test::Throughput, 0) => access(rank, &window)?,
                (Test::Throughput, _) => expose(rank, &window)?,
                (_, 0) => access(rank, &window).and_then(|()| expose(rank, &window))?,
                _ => expose(rank, &window).and_then(|()| access(rank, &window))?,
            }
            if round >= WARM {
                times.push((rank.now_ns() - start) as f64);
            }
        }
        rank.free(window)?;
        Ok(median(times))
    })?;
    Ok(all.swap_remove(0))
}

/// As the paper's library: short operations are copied at their origin.
fn setup() -> Setup {
    let mut setup = Setup::default();
    setup.limits.eager_by = EagerBy::Copy;
    setup
}

/// Curves of a test over lengths, one for each schedule.
fn curves(
    cluster: &Cluster,
    test: Test,
    sizes: &[usize],
    value: impl Fn(usize, f64) -> f64,
) -> Result<Vec<Curve>, String> {
    let mut curves = Vec::new();
    for (name, schedule) in schedules(test) {
        let mut points = Vec::new();
        for &len in sizes {
            points.push((len as f64, value(len, time(cluster, test, schedule, len)?)));
        }
        curves.push(Curve::new(name, points));
    }
    Ok(curves)
}

/// The most by which the second of two curves is better, in per cent of the first, where `counts`.
fn most(before: &Curve, after: &Curve, counts: impl Fn(f64) -> bool, gain: impl Fn(f64, f64) -> f64) -> f64 {
    let gains = before.points.iter().zip(&after.points).filter(|((x, _), _)| counts(*x));
    gains.map(|((_, before), (_, after))| gain(*before, *after)).fold(f64::NEG_INFINITY, f64::max)
}

fn spared(before: f64, after: f64) -> f64 {
    100.0 * (1.0 - after / before)
}

/// Runs it.
pub fn study() -> Result<Study, String> {
    let title = "one-sided operations of an epoch, clusters em64t-pcie and ia32-pcix";
    let mut study = Study { name: "004", title, claims: Vec::new(), figures: Vec::new() };
    for (at, name) in PLATFORMS.into_iter().enumerate() {
        let cluster = Cluster::find(name)?;
        throughput(&cluster, at, &mut study)?;
        exchange(&cluster, at, &mut study)?;
        latency(&cluster, at, Test::Put, &mut study)?;
        latency(&cluster, at, Test::Get, &mut study)?;
        for (test, what) in [(Test::Throughput, "pattern 1"), (Test::Exchange, "pattern 2")] {
            study.claims.push(oracle(&cluster, test, what)?);
        }
    }
    Ok(study)
}

/// How far the choice is behind the best forced schedule, over all lengths.
fn oracle(cluster: &Cluster, test: Test, what: &str) -> Result<Claim, String> {
    let (mut behind, mut best) = (f64::NEG_INFINITY, String::new());
    for len in lab::sizes(16, 1 << 20, 1).into_iter().step_by(2) {
        let chosen = time(cluster, test, Schedule::CHOICE, len)?;
        for (schedule, name) in Schedule::ALL.into_iter().skip(1) {
            let ahead = 100.0 * (chosen / time(cluster, test, schedule, len)? - 1.0);
            if ahead > behind {
                (behind, best) = (ahead, format!("{name} at {len} B"));
            }
        }
    }
    let text = format!("{what}, {}: choice behind the best schedule ({best})", cluster.name);
    let claim = Claim::new("oracle", text, "%", Paper::AtMost(5.0), behind).is(Basis::Goal);
    let is_named = test == Test::Exchange && cluster.name == "ia32-pcix";
    Ok(if is_named { claim.except(2.0, SHORT) } else { claim })
}

fn throughput(cluster: &Cluster, at: usize, study: &mut Study) -> Result<(), String> {
    let sizes = lab::sizes(1024, 1 << 20, 1);
    let curves = curves(cluster, Test::Throughput, &sizes, |len, ns| mb_s(2 * EACH * len, ns))?;
    let place = ["fig. 7a", "fig. 7b"][at];
    let gain =
        |way: usize| most(&curves[0], &curves[way], |_| true, |before, after| 100.0 * (after / before - 1.0));
    let what = format!("throughput gained at most, {}", cluster.name);
    let row = Claim::new(place, what, "%", Paper::Is([76.0, 8.0][at]), gain(1));
    study.claims.push(if at == 0 { row.except(23.0, OVERLAPS) } else { row });
    let what = format!("the same, by choice, {}", cluster.name);
    study.claims.push(Claim::new(place, what, "%", Paper::Silent, gain(2)));
    if at == 0 {
        let what = "highest throughput, em64t-pcie";
        study.claims.push(Claim::new(place, what, "MB/s", Paper::Is(1788.0), curves[1].max()));
    }
    let name = ["004-fig7a", "004-fig7b"][at];
    let title = format!("16 Puts and 16 Gets, {}", cluster.name);
    study.figures.push(Figure::by_size(name, title, "10^6 bytes/s", curves));
    Ok(())
}

fn exchange(cluster: &Cluster, at: usize, study: &mut Study) -> Result<(), String> {
    let sizes = lab::sizes(1024, 1 << 20, 1);
    let curves = curves(cluster, Test::Exchange, &sizes, |_, ns| ns / 1000.0)?;
    let place = ["fig. 8a", "fig. 8b"][at];
    for (way, label) in [(1, ""), (2, ", by choice")] {
        let gain = most(&curves[0], &curves[way], |_| true, spared);
        let what = format!("latency of a Put and a Get spared at most{label}, {}", cluster.name);
        let paper = if way == 1 { Paper::Is([40.0, 20.0][at]) } else { Paper::Silent };
        let row = Claim::new(place, what, "%", paper, gain);
        study.claims.push(if way == 1 && at == 0 { row.except(10.0, UP_TO) } else { row });
    }
    let name = ["004-fig8a", "004-fig8b"][at];
    let title = format!("A Put and a Get, there and back, {}", cluster.name);
    study.figures.push(Figure::by_size(name, title, "us", curves).logarithmic());
    Ok(())
}

fn latency(cluster: &Cluster, at: usize, test: Test, study: &mut Study) -> Result<(), String> {
    let sizes = lab::sizes(8, 64 << 10, 1);
    let curves = curves(cluster, test, &sizes, |_, ns| ns / 2000.0)?;
    let (paper, figures, places, what) = match test {
        Test::Put => ([44.0, 38.0], ["004-fig9a", "004-fig9b"], ["fig. 9a", "fig. 9b"], "Put"),
        _ => ([42.0, 42.0], ["004-fig10a", "004-fig10b"], ["fig. 10a", "fig. 10b"], "Get"),
    };
    let small = |x: f64| x <= SMALL as f64;
    for (way, label) in [(1, ""), (2, ", by choice")] {
        let text = format!("latency of a small {what} spared at most{label}, {}", cluster.name);
        let gain = most(&curves[0], &curves[way], small, spared);
        let paper = if way == 1 { Paper::Is(paper[at]) } else { Paper::Silent };
        let row = Claim::new(places[at], text, "%", paper, gain);
        study.claims.push(match (way, test) {
            (1, Test::Put) => row.except(25.0, CALLS),
            (1, _) => row.except(-38.0, THIRD),
            _ => row,
        });
    }
    let last = (64 << 10) as f64;
    let text = format!("the same at 64 KB, by choice, {}", cluster.name);
    let large = spared(curves[0].at(last), curves[2].at(last));
    study
        .claims
        .push(Claim::new(places[at], text, "%", Paper::Is(0.0), large).within(1.0).is(Basis::Prediction));
    let title = format!("Latency of a {what}, {}", cluster.name);
    study.figures.push(Figure::by_size(figures[at], title, "us", curves).logarithmic());
    Ok(())
}
