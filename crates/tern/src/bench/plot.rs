//! Plots as SVG: one curve per library over the size, both axes logarithmic.

use super::results::{Results, Row};
use super::table::{figure, size};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// Colours that differ also for the colour-blind (Okabe and Ito).
const COLOURS: &[&str] = &["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// File name and text of every plot: each bench and variant measured at three sizes or more, in the
/// state of the cores that has the most figures, a steady one before others.
pub fn all(results: &Results) -> Vec<(String, String)> {
    let rows = results.rows();
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(|row| row.medians.iter().flatten().any(|value| *value > 0.0)) {
        match groups.iter_mut().find(|group| same_name(group[0], row) && group[0].state == row.state) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.retain(|group| group.len() >= 3);
    let worth = |group: &[&Row]| (group[0].state.is_steady(), figures(group));
    let is_best = |group: &&Vec<&Row>| {
        groups.iter().all(|other| !same_name(other[0], group[0]) || worth(other) <= worth(group))
    };
    let mut plots: Vec<(String, String)> = Vec::new();
    for group in groups.iter().filter(is_best) {
        let name = file_name(group[0]);
        if plots.iter().all(|(taken, _)| *taken != name) {
            plots.push((name, svg(&results.libraries, group)));
        }
    }
    plots
}

fn same_name(a: &Row, b: &Row) -> bool {
    a.point.case == b.point.case && a.point.label() == b.point.label() && a.point.unit == b.point.unit
}

fn figures(group: &[&Row]) -> usize {
    group.iter().map(|row| row.medians.iter().flatten().count()).sum()
}

fn file_name(row: &Row) -> String {
    let unit = if row.point.unit == "%" { "percent" } else { "" };
    let name = format!("{} {} {unit}", row.point.case, row.point.label());
    let words: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("plots/{}.svg", words.join("-"))
}

/// A logarithmic axis from `low` to `high`, drawn from `start` to `end`.
struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64> + Clone, start: f64, end: f64) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.fold(0.0, f64::max);
        Axis { low, high: if high > low { high } else { low * 2.0 }, start, end }
    }

    fn at(&self, value: f64) -> f64 {
        self.start + (value / self.low).ln() / (self.high / self.low).ln() * (self.end - self.start)
    }

    /// Powers of `base` on the axis, at most about ten of them.
    fn ticks(&self, base: f64) -> Vec<f64> {
        let decades = (self.high / self.low).log(base);
        let step = (decades / 10.0).ceil().max(1.0);
        let first = self.low.log(base).ceil();
        (0..)
            .map(|i| base.powf(first + step * f64::from(i)))
            .take_while(|tick| *tick <= self.high * 1.0001)
            .collect()
    }
}

fn svg(libraries: &[String], rows: &[&Row]) -> String {
    let sizes = rows.iter().map(|row| shown_size(row));
    let x = Axis::over(sizes, LEFT, WIDTH - RIGHT);
    let values =
        rows.iter().flat_map(|row| row.medians.iter().flatten().copied()).filter(|value| *value > 0.0);
    let y = Axis::over(values, HEIGHT - BOTTOM, TOP);
    let mut body = frame(&x, &y, rows[0]);
    for (index, name) in libraries.iter().enumerate() {
        body += &curve(rows, index, &x, &y, name);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// Title, grid and labels.
fn frame(x: &Axis, y: &Axis, row: &Row) -> String {
    let title = format!("{} ({})", row.point.label(), row.point.unit.replace("us", "µs"));
    let state = row.state.word();
    let state = if state.is_empty() { String::new() } else { format!(", cores {state}") };
    let mut text = label(LEFT, TOP - 15.0, "start", &format!("{}: {title}{state}", row.point.case));
    for tick in x.ticks(2.0) {
        let at = x.at(tick);
        text += &line(at, y.start, at, y.end);
        text += &label(at, y.start + 18.0, "middle", &size(tick.round() as u64));
    }
    let ticks = y.ticks(10.0);
    let ticks = if ticks.len() < 2 { y.ticks(2.0) } else { ticks };
    for tick in ticks {
        let at = y.at(tick);
        text += &line(x.start, at, x.end, at);
        text += &label(x.start - 6.0, at + 4.0, "end", &figure(tick));
    }
    text
}

fn curve(rows: &[&Row], library: usize, x: &Axis, y: &Axis, name: &str) -> String {
    let place =
        |row: &&&Row| row.medians[library].filter(|v| *v > 0.0).map(|v| (x.at(shown_size(row)), y.at(v)));
    let mut places: Vec<(f64, f64)> = rows.iter().filter_map(|row| place(&row)).collect();
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    if places.is_empty() {
        return String::new();
    }
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let colour = COLOURS[library % COLOURS.len()];
    let legend = TOP + 18.0 * library as f64;
    let right = x.end + 15.0;
    format!(
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n\
         <rect x=\"{right}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n{}",
        points.join(" "),
        legend - 10.0,
        label(right + 18.0, legend, "start", name)
    )
}

/// Zero has no place on a logarithmic axis: it is shown as one.
fn shown_size(row: &Row) -> f64 {
    row.point.size.max(1) as f64
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#ddd\"/>\n")
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Point, State};

    #[test]
    fn one_curve_per_library_within_the_frame() {
        let mut results = Results::new(["A", "B&C"].map(String::from).to_vec(), 1);
        for size in [0, 8, 64] {
            let point = Point {
                case: "latency",
                bench: "latency".to_string(),
                variant: String::new(),
                size,
                unit: "us".to_string(),
            };
            results.add(point.clone(), State::Near, 0, 1.0 + size as f64);
            results.add(point, State::Near, 1, 2.0);
        }
        let plots = all(&results);
        assert_eq!(plots.len(), 1);
        let (name, svg) = &plots[0];
        assert_eq!(name, "plots/latency-latency.svg");
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains("B&amp;C") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
