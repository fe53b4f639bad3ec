//! Curves over lengths and connections, and the figures of them that stand beside those of the dissertation (002: 3.1, 3.2, 3.6, 3.7,
//! 3.10 and 6.3; what figure 3.12 asks of MPI is asked of the adapter).

use super::measure::{Bench, LONGEST};
use crate::chart::{self, Axis, Curve, Figure, Scale};
use fabric::Verbs;
use std::path::Path;

/// Lengths of messages that are answered, of writes, of memory that is registered, and of writes from memory that is used again or not.
const SHORT: [usize; 8] = [8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10];
const LONG: [usize; 6] = [1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, LONGEST];
const REGISTERED: [usize; 8] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Those that go over several connections at a time.
const ANSWERED: [usize; 4] = [8, 256, 2 << 10, 16 << 10];
const STREAMED: [usize; 3] = [2 << 10, 64 << 10, 256 << 10];
/// Writes of a point of a stream move so many bytes, within the bounds that the number of rounds sets.
const STREAM_BYTES: usize = 64 << 20;

/// What is drawn, in the order of the dissertation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Latency,
    Bandwidth,
    CrowdLatency,
    CrowdThroughput,
    Registration,
    Reuse,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Latency,
        Kind::Bandwidth,
        Kind::CrowdLatency,
        Kind::CrowdThroughput,
        Kind::Registration,
        Kind::Reuse,
    ];

    /// Name of the file, title, what stands to the left, and what is below.
    fn named(self) -> (&'static str, &'static str, &'static str, Axis) {
        let bytes = Axis { label: "bytes", scale: Scale::Sizes };
        let connections = Axis { label: "connections", scale: Scale::Linear };
        match self {
            Kind::Latency => ("latency", "Latency (002, figures 3.1 and 6.3)", "µs", bytes),
            Kind::Bandwidth => ("bandwidth", "Bandwidth (002, figure 3.2)", "GB/s", bytes),
            Kind::CrowdLatency => {
                ("connections-latency", "Normalized latency (002, figure 3.6)", "µs", connections)
            }
            Kind::CrowdThroughput => {
                ("connections-throughput", "Throughput, both ways (002, figure 3.7)", "GB/s", connections)
            }
            Kind::Registration => ("registration", "Registration (002, figure 3.10)", "µs", bytes),
            Kind::Reuse => ("reuse", "Writes from memory registered already (002, 3.5.2)", "GB/s", bytes),
        }
    }
}

/// A value of a curve.
pub struct Point {
    pub kind: Kind,
    /// Of which curve.
    pub name: String,
    pub x: usize,
    pub y: f64,
}

/// Values of curves.
pub type Points = Vec<Point>;

fn point(kind: Kind, name: impl Into<String>, x: usize, y: f64) -> Point {
    Point { kind, name: name.into(), x, y }
}

/// How many writes of this length a point takes.
fn writes(len: usize, rounds: usize) -> usize {
    (STREAM_BYTES / len).clamp(8, rounds.max(8))
}

/// Over one connection.
pub fn alone<V: Verbs>(bench: &mut Bench<V>, rounds: usize) -> Result<Points, String> {
    let mut points = Points::new();
    for len in SHORT {
        points.push(point(Kind::Latency, "Send", len, bench.latency(len, rounds)?));
        points.push(point(Kind::Latency, "Read (both ways)", len, bench.read(len, rounds)?));
    }
    for len in LONG {
        for (name, both) in [("Write, one way", false), ("Write, both ways", true)] {
            points.push(point(Kind::Bandwidth, name, len, bench.stream(len, writes(len, rounds), both)?.0));
        }
    }
    for len in REGISTERED {
        let (there, back) = bench.registration(len, (rounds / 10).max(3))?;
        points.push(point(Kind::Registration, "registration", len, there));
        points.push(point(Kind::Registration, "its end", len, back));
    }
    for len in &LONG[2..] {
        for reused in [0, 50, 100] {
            let rate = bench.reuse(*len, writes(*len, rounds), reused)?;
            points.push(point(Kind::Reuse, format!("{reused} %"), *len, rate));
        }
    }
    Ok(points)
}

/// Over as many connections as there are.
pub fn together<V: Verbs>(bench: &mut Bench<V>, rounds: usize) -> Result<Points, String> {
    let connections = bench.connections();
    let mut points = Points::new();
    for len in ANSWERED {
        let name = format!("{len} B");
        points.push(point(Kind::CrowdLatency, name, connections, bench.normalized_latency(len, rounds)?));
    }
    for len in STREAMED {
        let rate = bench.stream(len, connections * writes(len, rounds), true)?.0;
        points.push(point(Kind::CrowdThroughput, format!("{len} B"), connections, rate));
    }
    Ok(points)
}

/// By datagrams.
pub fn by_datagrams<V: Verbs>(bench: &mut Bench<V>, rounds: usize) -> Result<Points, String> {
    let longest = bench.longest_datagram();
    let mut points = Points::new();
    for len in SHORT.into_iter().filter(|len| *len <= longest) {
        points.push(point(Kind::Latency, "datagram", len, bench.datagram_latency(len, rounds)?.0));
    }
    for len in LONG.into_iter().filter(|len| *len <= longest) {
        for (name, both) in [("datagrams, one way", false), ("datagrams, both ways", true)] {
            let stream = bench.datagram_stream(len, writes(len, rounds), both)?;
            points.push(point(Kind::Bandwidth, name, len, stream.rate));
        }
    }
    Ok(points)
}

/// One figure for each kind that there are values of, the curves of all adapters in it.
fn figures(points: &[(String, Point)]) -> Vec<Figure> {
    let figure = |kind: Kind| {
        let mut curves: Vec<Curve> = Vec::new();
        for (adapter, point) in points.iter().filter(|(_, point)| point.kind == kind) {
            let (name, value) = (format!("{adapter}, {}", point.name), (point.x as f64, point.y));
            match curves.iter_mut().find(|curve| curve.name == name) {
                Some(curve) => curve.points.push(value),
                None => curves.push(Curve::new(name, [value])),
            }
        }
        let (name, title, up, x) = kind.named();
        let figure = Figure::by_size(name, title, up, curves).over(x.label, x.scale);
        if matches!(kind, Kind::Latency | Kind::Registration) { figure.logarithmic() } else { figure }
    };
    let all = Kind::ALL.into_iter().map(figure);
    all.filter(|figure| !figure.curves.is_empty()).collect()
}

/// Writes a figure for each kind that there are values of, and all of them as a table; the names of the files.
///
/// # Errors
/// Why a file cannot be written.
pub fn draw(folder: &Path, points: &[(String, Point)]) -> Result<Vec<String>, String> {
    let wrong = |file: &Path, error: std::io::Error| format!("verbs bench: {}: {error}", file.display());
    std::fs::create_dir_all(folder).map_err(|error| wrong(folder, error))?;
    let mut texts: Vec<(String, String)> =
        figures(points).iter().map(|figure| (format!("{}.svg", figure.name), chart::svg(figure))).collect();
    let mut table = "figure,adapter,curve,x,value\n".to_owned();
    for (adapter, Point { kind, name, x, y }) in points {
        table += &format!("{},{adapter},\"{name}\",{x},{y:.4}\n", kind.named().0);
    }
    texts.push(("values.csv".into(), table));
    for (name, text) in &texts {
        let file = folder.join(name);
        std::fs::write(&file, text).map_err(|error| wrong(&file, error))?;
    }
    Ok(texts.into_iter().map(|(name, _)| name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_curves_of_all_adapters() {
        let values = [("a", 1, 5.0), ("a", 2, 4.0), ("b", 1, 3.0)];
        let points = values.map(|(of, x, y)| (of.to_owned(), point(Kind::CrowdLatency, "8 B", x, y)));
        let [figure] = &figures(&points)[..] else { panic!("one kind has values") };
        let curves: Vec<_> = figure.curves.iter().map(|curve| (&curve.name[..], &curve.points[..])).collect();
        assert_eq!(curves, [("a, 8 B", &[(1.0, 5.0), (2.0, 4.0)][..]), ("b, 8 B", &[(1.0, 3.0)][..])]);
    }
}
