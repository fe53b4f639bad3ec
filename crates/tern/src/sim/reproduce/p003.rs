//! «003», the copy superpipeline, on `graphene` and `infini`.
//!
//! The naive protocols and the raw write are programs written to the verbs, as the paper's; the
//! superpipeline and the registration cache are those of the library, with their rendezvous.

use proto::{Event, Protocol, Tuning};
use sim::Cluster;

use crate::sim::figure::{Claim, Curve, Figure, Paper, Scale, Study};
use crate::sim::lab::{self, Buffers, Raw, Way, mb_s};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// The rendezvous threshold below which the library's own programs copy; the superpipeline begins right above.
const EAGER: usize = 4 * KB;

/// Runs it.
pub fn study() -> Result<Study, String> {
    let graphene = Cluster::find("graphene")?;
    let infini = Cluster::find("infini")?;
    let mut study = Study {
        name: "003",
        title: "superpipeline, clusters graphene and infini",
        claims: Vec::new(),
        figures: Vec::new(),
    };
    naive(&graphene, &mut study)?;
    raw_protocol(&graphene, &mut study, "003-fig6-graphene")?;
    raw_protocol(&infini, &mut study, "003-fig6-infini")?;
    first_and_best(&graphene, &mut study)?;
    gaps(&graphene, &mut study)?;
    first_chunk(&graphene, &mut study)?;
    Ok(study)
}

fn superpipeline(cluster: &Cluster) -> Way {
    Way::forced("superpipeline", Protocol::Superpipeline, EAGER).tuned(Tuning::of(&lab::facts(cluster)))
}

fn raw_curve(cluster: &Cluster, name: &str, raw: Raw, sizes: &[usize]) -> Result<Curve, String> {
    let point = |len: &usize| Ok((*len as f64, mb_s(*len, lab::raw_write(cluster, raw, *len)?)));
    Ok(Curve::new(name, sizes.iter().map(point).collect::<Result<Vec<_>, String>>()?))
}

/// Figures 1 and 2: what registration and copies leave of the raw bandwidth.
fn naive(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let sizes = lab::sizes(4 * KB, 16 * MB, 2);
    let raw = raw_curve(cluster, "raw RDMA write", Raw::Registered, &sizes)?;
    let registration = raw_curve(cluster, "naive registration", Raw::RegisterEach, &sizes)?;
    let copy = raw_curve(cluster, "naive copy", Raw::CopyEach, &sizes)?;
    let (of_registration, of_copy) = (registration.percent_of(&raw), copy.percent_of(&raw));
    let share = |curve: &Curve, len: usize| curve.at(len as f64);
    study.claims.extend([
        Claim::new(
            "fig. 2",
            "naive registration, 64 KB, of raw",
            "%",
            Paper::Is(40.0),
            share(&of_registration, 64 * KB),
        ),
        Claim::new(
            "fig. 2",
            "naive registration, 16 MB, of raw",
            "%",
            Paper::Is(91.0),
            share(&of_registration, 16 * MB),
        )
        .fitted(),
        Claim::new("fig. 2", "naive copy, 16 MB, of raw", "%", Paper::Is(57.0), share(&of_copy, 16 * MB))
            .fitted(),
    ]);
    study.figures.push(Figure::by_size(
        "003-fig2",
        "Registration and copy against raw RDMA",
        "MB/s",
        vec![raw, registration, copy],
    ));
    Ok(())
}

/// Figure 6: the superpipeline against the raw write.
fn raw_protocol(cluster: &Cluster, study: &mut Study, name: &str) -> Result<(), String> {
    let sizes = lab::sizes(8 * KB, 8 * MB, 2);
    let way = superpipeline(cluster);
    let raw = raw_curve(cluster, "raw RDMA write", Raw::Registered, &sizes)?;
    let registration = raw_curve(cluster, "naive registration", Raw::RegisterEach, &sizes)?;
    let copy = raw_curve(cluster, "naive copy", Raw::CopyEach, &sizes)?;
    // The paper's test program has no rendezvous; the library's has, which is a round trip of short messages.
    let handshake = 2.0 * lab::median(lab::ping_pong(cluster, &way, 8, 5, Buffers::Same)?);
    let (mut whole, mut net, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for &len in &sizes {
        let time = lab::median(lab::ping_pong(cluster, &way, len, 5, Buffers::Same)?);
        whole.push((len as f64, mb_s(len, time)));
        net.push((len as f64, mb_s(len, time - handshake)));
        over.push((len as f64, 100.0 * (1.0 - mb_s(len, time - handshake) / raw.at(len as f64))));
    }
    let over = Curve::new("overhead", over);
    let long = over.points.iter().filter(|(len, _)| *len >= (64 * KB) as f64).map(|(_, y)| *y);
    let (short, long) = (over.at((16 * KB) as f64), long.fold(f64::MIN, f64::max));
    let what = |size: &str| format!("superpipeline below raw, {size}, {}", cluster.name);
    study.claims.extend([
        Claim::new("fig. 6", what("16 KB"), "%", Paper::AtMost(15.0), short),
        Claim::new("fig. 6", what("64 KB and more"), "%", Paper::AtMost(5.0), long),
    ]);
    let curves = vec![
        raw,
        Curve::new("superpipeline, without rendezvous", net),
        Curve::new("superpipeline, with rendezvous", whole),
        registration,
        copy,
    ];
    let title = format!("Protocols against raw RDMA, {}", cluster.name);
    study.figures.push(Figure::by_size(name, title, "MB/s", curves));
    Ok(())
}

/// Figure 7: MPI ping-pong, first and best round trip of 100.
fn first_and_best(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let ways = [
        superpipeline(cluster),
        Way::forced("rcache, RPUT", Protocol::Rput, EAGER),
        Way::forced("rcache, RGET", Protocol::Rget, EAGER),
    ];
    let mut curves = Vec::new();
    for way in &ways {
        let (mut first, mut best) = (Vec::new(), Vec::new());
        for len in lab::sizes(32 * KB, 4 * MB, 1) {
            let times = lab::ping_pong(cluster, way, len, 20, Buffers::Same)?;
            first.push((len as f64, mb_s(len, times[0])));
            best.push((len as f64, mb_s(len, times.iter().copied().fold(f64::INFINITY, f64::min))));
        }
        curves.push(Curve::new(format!("{}, first", way.name), first));
        curves.push(Curve::new(format!("{}, best", way.name), best));
    }
    let least = |a: &Curve, b: &Curve| a.percent_of(b).min();
    study.claims.extend([
        Claim::new(
            "fig. 7",
            "superpipeline, first of best round trip",
            "%",
            Paper::Is(100.0),
            least(&curves[0], &curves[1]),
        ),
        Claim::new(
            "fig. 7",
            "superpipeline of RPUT's best, 1 MB",
            "%",
            Paper::Is(100.0),
            curves[1].percent_of(&curves[3]).at(MB as f64),
        ),
        Claim::new(
            "fig. 7",
            "rcache (RPUT), first of best, 256 KB",
            "%",
            Paper::AtMost(90.0),
            curves[2].percent_of(&curves[3]).at((256 * KB) as f64),
        ),
    ]);
    study.figures.push(Figure::by_size(
        "003-fig7",
        "MPI ping-pong, first and best round trip",
        "MB/s",
        curves,
    ));
    Ok(())
}

/// Section 4: the number of gaps is L/C, √L, log L.
fn gaps(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let facts = lab::facts(cluster);
    // Chunks as long as they come, not folded into a limited buffer.
    let unfolded = |fixed| Tuning { staging_bytes: 32 * MB, fixed_chunk_bytes: fixed, ..Tuning::of(&facts) };
    let ways = [
        Way::forced("fixed chunks of 16 KB", Protocol::CopyPipeline, EAGER).tuned(unfolded(Some(16 * KB))),
        Way::forced("optimal chunks", Protocol::CopyPipeline, EAGER).tuned(unfolded(None)),
        Way::forced("superpipeline", Protocol::Superpipeline, EAGER).tuned(unfolded(None)),
    ];
    let mut curves = Vec::new();
    for way in &ways {
        let point = |len: usize| Ok((len as f64, lab::count(cluster, way, len, Event::ChunkWritten)? as f64));
        let points = lab::sizes(32 * KB, 16 * MB, 1).into_iter().map(point);
        curves.push(Curve::new(way.name, points.collect::<Result<Vec<_>, String>>()?));
    }
    let growth = |curve: &Curve| curve.at((16 * MB) as f64) / curve.at((256 * KB) as f64);
    let step = |curve: &Curve| curve.at((16 * MB) as f64) - curve.at((256 * KB) as f64);
    let expected = 64f64.ln() / facts_growth(cluster).ln();
    study.claims.extend([
        Claim::new(
            "eq. 1",
            "gaps grow from 256 KB to 16 MB, fixed chunks",
            "×",
            Paper::Is(64.0),
            growth(&curves[0]),
        ),
        Claim::new("eq. 3", "the same, optimal chunks", "×", Paper::Is(8.0), growth(&curves[1])),
        Claim::new(
            "eq. 7",
            "the same, superpipeline, chunks more",
            "",
            Paper::Is(expected),
            step(&curves[2]),
        ),
    ]);
    let figure = Figure::by_size("003-gaps", "Writes per message", "writes", curves);
    study.figures.push(figure.logarithmic());
    Ok(())
}

fn facts_growth(cluster: &Cluster) -> f64 {
    Tuning::of(&lab::facts(cluster)).growth
}

/// Section 4, discussion: the optimum in C0 is flat, and fixed values do almost as well.
fn first_chunk(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let best = Tuning::of(&lab::facts(cluster));
    let time = |len: usize, tuning: Tuning| -> Result<f64, String> {
        let way = Way::forced("superpipeline", Protocol::Superpipeline, EAGER).tuned(tuning);
        Ok(lab::median(lab::ping_pong(cluster, &way, len, 3, Buffers::Same)?))
    };
    let mut curves = Vec::new();
    for (name, len) in [("64 KB", 64 * KB), ("256 KB", 256 * KB), ("1 MB", MB), ("4 MB", 4 * MB)] {
        let point = |c0: usize| {
            let tuning = Tuning { first_chunk_bytes: c0, ..best.clone() };
            Ok((c0 as f64, mb_s(len, time(len, tuning)?)))
        };
        let points = lab::sizes(4 * KB, 64 * KB, 2).into_iter().map(point);
        curves.push(Curve::new(name, points.collect::<Result<Vec<_>, String>>()?));
    }
    let around = |curve: &Curve| {
        let near = curve.points.iter().filter(|(c0, _)| (8.0 * 1024.0..=32.5 * 1024.0).contains(c0));
        let least = near.map(|(_, y)| *y).fold(f64::INFINITY, f64::min);
        100.0 * (1.0 - least / curve.max())
    };
    let flat = curves.iter().map(around).fold(0.0, f64::max);
    let hardwired = 100.0 * (time(MB, Tuning::default())? / time(MB, best.clone())? - 1.0);
    study.claims.extend([
        Claim::new(
            "section 4",
            "worst loss for C0 of 8 to 32 KB, 64 KB to 4 MB",
            "%",
            Paper::AtMost(5.0),
            flat,
        ),
        Claim::new(
            "section 4",
            "C0 = 12 KB, q = 1.5 instead of the best, 1 MB",
            "%",
            Paper::AtMost(5.0),
            hardwired,
        ),
    ]);
    let figure = Figure::by_size("003-c0", "Superpipeline by its first chunk", "MB/s", curves);
    study.figures.push(figure.over("C0", Scale::Sizes));
    Ok(())
}
