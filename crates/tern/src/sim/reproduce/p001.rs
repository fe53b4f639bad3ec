//! «001», the RDMA pipeline, on `lioncub`.

use proto::{Protocol, Tuning};
use sim::Cluster;

use crate::sim::figure::{Claim, Curve, Figure, Paper, Scale, Study};
use crate::sim::lab::{self, Buffers, Ran, Way, mb_s};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// The eager limit of the paper's platform.
const EAGER: usize = 12 * KB;
/// Up to here the pipelines send frames (section 4): the default of the library the paper measured, Open MPI's
/// openib component before 1.2, where it is `min_rdma_size`. Its blocks are as long; the paper names no length, and
/// here they are of 256 KiB: a rank that registers 1 MiB at a stretch lets the slots of its peers run out.
const OFFSET: usize = MB;
/// Longest message of b_eff there.
const L_MAX: usize = 8 * MB;
/// Ranks of b_eff.
const RANKS: usize = 8;
/// Uses of a buffer in figure 6.
const USES: usize = 100;

/// The four ways, in the order of the paper's table.
const CACHING: usize = 0;
const PIPELINE: usize = 1;
const PINNED: usize = 2;
const COPY: usize = 3;

fn ways() -> [Way; 4] {
    let copy = Tuning { fixed_chunk_bytes: Some(64 * KB), ..Tuning::default() };
    let pipeline = Tuning { rdma_offset_bytes: OFFSET, ..Tuning::default() };
    [
        Way::forced("caching pipeline", Protocol::CachingPipeline, EAGER).tuned(pipeline.clone()),
        Way::forced("pipeline", Protocol::Pipeline, EAGER).tuned(pipeline),
        Way::forced("leave pinned", Protocol::Rput, EAGER),
        Way::forced("copy in/out", Protocol::CopyPipeline, EAGER).tuned(copy),
    ]
}

/// Runs it.
pub fn study() -> Result<Study, String> {
    let cluster = Cluster::find("lioncub")?;
    let title = "RDMA pipeline, cluster lioncub";
    let mut study = Study { name: "001", title, claims: Vec::new(), figures: Vec::new() };
    without_reuse(&cluster, &mut study)?;
    by_reuse(&cluster, &mut study)?;
    effective_bandwidth(&cluster, &mut study)?;
    Ok(study)
}

/// Figure 5: bandwidth where no buffer comes again.
fn without_reuse(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let sizes = lab::sizes(16 * KB, L_MAX, 1);
    let mut curves = Vec::new();
    for way in &ways() {
        let point = |len: &usize| {
            let times = lab::ping_pong(cluster, way, *len, 3, Buffers::Fresh)?;
            Ok((*len as f64, mb_s(*len, lab::median(times))))
        };
        curves.push(Curve::new(way.name, sizes.iter().map(point).collect::<Result<Vec<_>, String>>()?));
    }
    let speedup = curves[PIPELINE].percent_of(&curves[PINNED]).max() - 100.0;
    study.claims.push(
        Claim::new("fig. 5", "most that the pipeline gains over leave pinned", "%", Paper::Is(67.0), speedup)
            .fitted(),
    );
    study.figures.push(Figure::by_size("001-fig5", "Bandwidth without reuse", "MB/s", curves));
    Ok(())
}

/// Figure 6: bandwidth at 8 MB over how often the buffer is used.
fn by_reuse(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let mut curves = Vec::new();
    for way in &ways() {
        let times = lab::ping_pong(cluster, way, L_MAX, USES, Buffers::Same)?;
        let mut sum = 0.0;
        let average = times.iter().enumerate().map(|(at, time)| {
            sum += time;
            ((at + 1) as f64, mb_s(L_MAX * (at + 1), sum))
        });
        curves.push(Curve::new(way.name, average));
    }
    let reaches = |way: usize| {
        let points = curves[way].points.iter();
        points
            .zip(&curves[PIPELINE].points)
            .find(|(mine, other)| mine.1 >= other.1)
            .map_or(f64::INFINITY, |(p, _)| p.0)
    };
    let last = |way: usize| curves[way].at(USES as f64);
    study.claims.extend([
        Claim::new(
            "fig. 6",
            "uses after which leave pinned matches the pipeline",
            "",
            Paper::Between(40.0, 50.0),
            reaches(PINNED),
        ),
        Claim::new(
            "fig. 6",
            "uses after which the caching pipeline does",
            "",
            Paper::AtMost(40.0),
            reaches(CACHING),
        ),
        Claim::new(
            "fig. 6",
            "caching pipeline above the pipeline after 100 uses",
            "%",
            Paper::AtLeast(0.0),
            100.0 * (last(CACHING) / last(PIPELINE) - 1.0),
        ),
    ]);
    let figure = Figure::by_size("001-fig6", "Bandwidth at 8 MB, by the number of uses", "MB/s", curves);
    study.figures.push(figure.over("uses of the buffer", Scale::Linear));
    Ok(())
}

/// What b_eff gives for one way: MB/s of one process.
struct Effective {
    /// Over all lengths.
    all: f64,
    /// At the longest.
    longest: f64,
    ping_pong: f64,
}

/// The table of b_eff: accumulated over 8 ranks, at Lmax, and ping-pong.
fn effective_bandwidth(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    let paper = [(225.0, 678.0, 743.0), (189.0, 585.0, 710.0), (172.0, 492.0, 604.0), (171.0, 391.0, 682.0)];
    let mut figures = Vec::new();
    for way in &ways() {
        figures.push(b_eff(cluster, way)?);
    }
    for (at, (way, (all, longest, ping_pong))) in ways().iter().zip(paper).enumerate() {
        let figure = &figures[at];
        let claim = |what: &str, paper: f64, tern: f64| {
            Claim::new("table", format!("{what}, {}", way.name), "MB/s", Paper::Is(paper), tern)
        };
        let over_all = claim("b_eff per process", all, figure.all);
        let at_longest = claim("per process at Lmax, rings", longest, figure.longest);
        study.claims.extend([
            if at == PIPELINE { over_all.fitted() } else { over_all },
            if at == COPY || at == PIPELINE { at_longest.fitted() } else { at_longest },
            claim("ping-pong at Lmax", ping_pong, figure.ping_pong),
        ]);
    }
    let order = [CACHING, PIPELINE, PINNED, COPY].map(|way| figures[way].longest);
    let kept = order.windows(2).all(|pair| pair[0] > pair[1]);
    study.claims.push(Claim::new(
        "table",
        "order at Lmax kept (1: yes)",
        "",
        Paper::Is(1.0),
        f64::from(u8::from(kept)),
    ));
    Ok(())
}

/// b_eff: rings of 2, 4 and 8 ranks (the last counts four times, as where 8 ranks are all there are), every rank
/// sends to both neighbours; averages over 21 lengths, logarithmic over the rings. Random orders are
/// rings of 8 too, on a switch that does not block. Of its three methods only the non-blocking one is run, and
/// of its three repetitions one: in virtual time they are the same.
fn b_eff(cluster: &Cluster, way: &Way) -> Result<Effective, String> {
    let rings = [(2, 1.0), (4, 1.0), (RANKS, 4.0)];
    let (mut all, mut longest, mut weights) = (0.0, 0.0, 0.0);
    for (ring, weight) in rings {
        let bandwidths = rings_of(cluster, way, ring)?;
        all += weight * (bandwidths.iter().sum::<f64>() / bandwidths.len() as f64).ln();
        longest += weight * bandwidths[bandwidths.len() - 1].ln();
        weights += weight;
    }
    let times = lab::ping_pong(cluster, way, L_MAX, 3, Buffers::Same)?;
    let ping_pong = mb_s(3 * L_MAX, times.iter().sum());
    Ok(Effective { all: (all / weights).exp(), longest: (longest / weights).exp(), ping_pong })
}

/// By length: MB/s that a rank sends, in rings of `ring` ranks.
fn rings_of(cluster: &Cluster, way: &Way, ring: usize) -> Result<Vec<f64>, String> {
    let times = lab::run(&lab::spread(cluster), RANKS, way, move |rank| {
        lab::acquaint(rank)?;
        let (first, place) = (rank.rank() / ring * ring, rank.rank() % ring);
        let neighbours = [(place + 1) % ring, (place + ring - 1) % ring].map(|place| first + place);
        lengths().into_iter().map(|len| exchange(rank, neighbours, len)).collect::<Ran<Vec<f64>>>()
    })?;
    let slowest = |at: usize| times.iter().map(|mine| mine[at]).fold(0.0, f64::max);
    Ok(lengths().iter().enumerate().map(|(at, len)| mb_s(2 * len, slowest(at))).collect())
}

/// The lengths of b_eff: powers of two up to 4 KB, then eight evenly spaced by factor up to Lmax.
fn lengths() -> Vec<usize> {
    let long = (1..=8)
        .map(|at| (4.0 * KB as f64 * (L_MAX as f64 / 4096.0).powf(f64::from(at) / 8.0)).round() as usize);
    (0..=12).map(|at| 1 << at).chain(long).collect()
}

/// Time of one exchange with both neighbours, after one that does not count except for the three longest. Every
/// message has memory of its own: b_eff goes round through buffers of six times the longest message, «to inhibit
/// reading from the cache», and what comes round again has left Open MPI's list of 16 registrations.
fn exchange(rank: &mut sim::Rank<'_>, neighbours: [usize; 2], len: usize) -> Ran<f64> {
    let warm = usize::from(len < lengths()[lengths().len() - 3]);
    let rounds = (1_000_000 / (20_000 + 3 * len)).clamp(1, 20);
    let two = |rank: &mut sim::Rank<'_>| [(); 2].map(|()| (rank.buffer(len), rank.buffer(len)));
    let buffers: Vec<_> = (0..warm + rounds).map(|_| two(rank)).collect();
    let mut start = 0;
    for (round, buffers) in buffers.iter().enumerate() {
        if round == warm {
            rank.barrier()?;
            start = rank.now_ns();
        }
        let mut requests = Vec::with_capacity(4);
        for (side, (_, into)) in buffers.iter().enumerate() {
            // What a rank's right neighbour gets from its left is what this rank sends to the right.
            requests.push(rank.irecv(*into, neighbours[1 - side] as i32, side as i32)?);
        }
        for (side, (out, _)) in buffers.iter().enumerate() {
            requests.push(rank.isend(*out, neighbours[side], side as i32)?);
        }
        rank.waitall(requests)?;
    }
    Ok((rank.now_ns() - start) as f64 / rounds as f64)
}
