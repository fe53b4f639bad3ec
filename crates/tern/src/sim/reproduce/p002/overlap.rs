//! Overlap and progress on either side, the sender or the receiver first (sections 3.6 and 4.4.1).

use fabric::Verbs;
use sim::{Cluster, Rank};

use super::{current, new};
use crate::sim::figure::{Claim, Curve, Figure, Paper, Scale, Study};
use crate::sim::lab::{self, Ran, Variant};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// How much later the late side comes: more than a short message and its answer take. An early receiver that computes
/// overlaps it with this wait whatever the protocol does.
const LATE_NS: u64 = 20_000;
/// Rounds before measuring.
const WARM: usize = 12;
/// Rounds of the overlap benchmark, each with a tenth more computation.
const STEPS: usize = 55;

const CHEAP_RTR: &str = "An RTR costs a header and a post here, and no search through MPICH's queues.";

/// Which rank computes between its non-blocking call and its wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Sender,
    Receiver,
}

/// Which rank comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Sender,
    Receiver,
}

const CASES: [(Side, First, &str); 4] = [
    (Side::Receiver, First::Sender, "receiver computes, sender first"),
    (Side::Receiver, First::Receiver, "receiver computes, receiver first"),
    (Side::Sender, First::Sender, "sender computes, sender first"),
    (Side::Sender, First::Receiver, "sender computes, receiver first"),
];

/// Figure 4.13.
pub fn overlap(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    for (at, (side, first, name)) in CASES.into_iter().enumerate() {
        let mut curves = Vec::new();
        for way in [current(), new()] {
            let point = |len: usize| Ok((len as f64, overlap_of(cluster, &way, side, first, len)?));
            let points = lab::sizes(256 * KB, 4 * MB, 1).into_iter().map(point);
            curves.push(Curve::new(way.name, points.collect::<Result<Vec<_>, String>>()?));
        }
        let claim = |what: &str, paper, tern| {
            Claim::new("fig. 4.13", format!("overlap, {name}, {what}"), "%", paper, tern)
        };
        match (side, first) {
            (Side::Receiver, First::Sender) => study.claims.extend([
                claim("current, most", Paper::AtMost(10.0), curves[0].max()),
                claim("new, least", Paper::AtLeast(80.0), curves[1].min()),
            ]),
            (Side::Receiver, First::Receiver) => study.claims.extend([
                claim("current, most", Paper::AtMost(10.0), curves[0].max()),
                claim("new, least", Paper::AtLeast(92.0), curves[1].min()),
            ]),
            (Side::Sender, First::Sender) => {
                let loss =
                    curves[0].points.iter().map(|(x, y)| y - curves[1].at(*x)).fold(f64::MIN, f64::max);
                study.claims.push(claim("most lost by the new", Paper::AtMost(2.0), loss));
            }
            (Side::Sender, First::Receiver) => {
                let loss =
                    curves[0].points.iter().map(|(x, y)| y - curves[1].at(*x)).fold(f64::MIN, f64::max);
                let lost = claim("most lost by the new", Paper::Between(2.0, 14.0), loss);
                study.claims.push(lost.except(-1.7, CHEAP_RTR));
            }
        }
        study.figures.push(Figure::by_size(
            &format!("002-fig4.13-{}", at + 1),
            format!("Overlap, {name}"),
            "%",
            curves,
        ));
    }
    Ok(())
}

/// By the definition of section 3.6.1: computation grows by a tenth each round until the time grows by a tenth.
fn overlap_of(cluster: &Cluster, way: &Variant, side: Side, first: First, len: usize) -> Result<f64, String> {
    let alone = lab::median(rounds(cluster, way, side, first, len, |_| 0, 5)?);
    let compute = move |round: usize| (alone * 0.02 * 1.1f64.powi(round as i32)) as u64;
    let times = rounds(cluster, way, side, first, len, compute, STEPS)?;
    let held = times.iter().position(|time| *time >= 1.1 * alone).unwrap_or(times.len());
    let Some(last) = held.checked_sub(1) else { return Ok(0.0) };
    Ok((100.0 * (compute(last) as f64 - (times[last] - alone)) / alone).clamp(0.0, 100.0))
}

/// Times of messages as the computing side sees them.
fn rounds(
    cluster: &Cluster,
    way: &Variant,
    side: Side,
    first: First,
    len: usize,
    compute_ns: impl Fn(usize) -> u64 + 'static,
    count: usize,
) -> Result<Vec<f64>, String> {
    let all = lab::run(&lab::spread(cluster), 2, way, move |rank| {
        lab::acquaint(rank)?;
        let buffer = rank.buffer(len);
        let mut times = Vec::new();
        for round in 0..WARM + count {
            let compute = round.checked_sub(WARM).map_or(0, &compute_ns);
            let time = one(rank, buffer, side, first, compute)?;
            if round >= WARM {
                times.push(time as f64);
            }
        }
        Ok(times)
    })?;
    Ok(all[if side == Side::Sender { 0 } else { 1 }].clone())
}

/// One message from rank 0 to rank 1; the time from this rank's call to the end of its wait.
fn one(rank: &mut Rank<'_>, buffer: fabric::Span, side: Side, first: First, compute_ns: u64) -> Ran<u64> {
    let is_sender = rank.rank() == 0;
    rank.barrier()?;
    let is_late = is_sender != (first == First::Sender);
    if is_late {
        rank.compute(LATE_NS);
    }
    let start = rank.now_ns();
    let request = if is_sender { rank.isend(buffer, 1, 1)? } else { rank.irecv(buffer, 0, 1)? };
    if is_sender == (side == Side::Sender) {
        rank.compute(compute_ns);
    }
    rank.wait(request)?;
    Ok(rank.now_ns() - start)
}

/// Figure 4.14: 1 MB, latency at the receiver by the delay of one side.
pub fn progress(cluster: &Cluster, study: &mut Study) -> Result<(), String> {
    for (at, (side, first, name)) in CASES.into_iter().enumerate() {
        let mut curves = Vec::new();
        for way in [current(), new()] {
            let point = |tenths: u64| {
                let delay_ns = tenths * 250_000;
                Ok((delay_ns as f64 / 1000.0, delayed(cluster, &way, side, first, delay_ns)? / 1000.0))
            };
            curves.push(Curve::new(way.name, (0..=12).map(point).collect::<Result<Vec<_>, String>>()?));
        }
        let name_of = |what: &str| format!("1 MB, 3 ms delay, {name}: latency {what}");
        let growth = |curve: &Curve| 100.0 * (curve.at(3000.0) / curve.at(0.0) - 1.0);
        match side {
            Side::Receiver => study.claims.push(Claim::new(
                "fig. 4.14",
                name_of("grows, new"),
                "%",
                Paper::AtMost(10.0),
                growth(&curves[1]),
            )),
            Side::Sender if first == First::Sender => study.claims.push(Claim::new(
                "fig. 4.14",
                name_of("grows, new"),
                "%",
                Paper::AtMost(10.0),
                growth(&curves[1]),
            )),
            Side::Sender => {
                let after = curves[1].at(3000.0) - 3000.0;
                let part = 100.0 * after / curves[1].at(0.0);
                let what = name_of("behind the delay, new");
                let behind = Claim::new("fig. 4.14", what, "%", Paper::Between(4.0, 15.0), part);
                study.claims.push(behind.except(-0.7, CHEAP_RTR));
            }
        }
        let figure = Figure::by_size(
            &format!("002-fig4.14-{}", at + 1),
            format!("Progress at 1 MB, {name}"),
            "µs",
            curves,
        );
        study.figures.push(figure.over("inserted delay (µs)", Scale::Linear));
    }
    Ok(())
}

/// Latency of 1 MB as the receiver sees it: until the data is there where it is the receiver that is delayed,
/// which looks at the buffer now and then (section 3.6.2), else until its receive has ended.
fn delayed(cluster: &Cluster, way: &Variant, side: Side, first: First, delay_ns: u64) -> Result<f64, String> {
    let times = lab::run(&lab::spread(cluster), 2, way, move |rank| {
        lab::acquaint(rank)?;
        let buffer = rank.buffer(MB);
        for _ in 0..WARM {
            one(rank, buffer, side, first, 0)?;
        }
        let is_sender = rank.rank() == 0;
        let last = buffer.part(MB - 8, 8);
        rank.write(last, &if is_sender { [7; 8] } else { [0; 8] });
        rank.barrier()?;
        let start = rank.now_ns();
        if is_sender != (first == First::Sender) {
            rank.compute(LATE_NS);
        }
        let request = if is_sender { rank.isend(buffer, 1, 1)? } else { rank.irecv(buffer, 0, 1)? };
        let mut seen = None;
        if is_sender == (side == Side::Sender) {
            for _ in 0..delay_ns / 10_000 {
                rank.compute(10_000);
                if !is_sender && seen.is_none() && rank.nic().load(last.addr) == u64::from_le_bytes([7; 8]) {
                    seen = Some(rank.now_ns() - start);
                }
            }
        }
        rank.wait(request)?;
        Ok(seen.unwrap_or(rank.now_ns() - start) as f64)
    })?;
    Ok(times[1])
}
