//! Figures as SVG.

mod figure;

pub use figure::{Axis, Curve, Figure, Scale};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 60.0;
/// Colours that differ also for the colour-blind (Okabe and Ito).
const COLOURS: &[&str] =
    &["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];

/// A figure as SVG.
pub fn svg(figure: &Figure) -> String {
    let points = || figure.curves.iter().flat_map(|curve| &curve.points).chain(&figure.stated);
    let x = Ruler::over(&figure.x, points().map(|(x, _)| *x), LEFT, WIDTH - RIGHT);
    let y = Ruler::over(&figure.y, points().map(|(_, y)| *y), HEIGHT - BOTTOM, TOP);
    let mut body = frame(figure, &x, &y);
    for (index, curve) in figure.curves.iter().enumerate() {
        let places: Vec<(f64, f64)> = curve.points.iter().map(|(a, b)| (x.at(*a), y.at(*b))).collect();
        body += &drawn(index, &curve.name, &places);
    }
    for (a, b) in &figure.stated {
        body += &format!(
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"none\" stroke=\"black\" stroke-width=\"1.5\"/>\n",
            x.at(*a),
            y.at(*b)
        );
    }
    if !figure.stated.is_empty() {
        let (at, height) = (WIDTH - RIGHT + 15.0, TOP + 18.0 * figure.curves.len() as f64);
        body += &label(at, height, "start", "○ stated by the paper");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

/// An axis with its range and where it is drawn.
struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Ruler {
    fn over(axis: &Axis, values: impl Iterator<Item = f64> + Clone, start: f64, end: f64) -> Ruler {
        let shown = values.filter(|value| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0));
        let low = shown.clone().fold(f64::INFINITY, f64::min);
        let high = shown.fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match axis.scale {
            Scale::Linear => (low.min(0.0), high.max(0.0) * 1.05),
            _ => (low, high),
        };
        Ruler { scale: axis.scale, low, high: if high > low { high } else { low.max(0.5) * 2.0 }, start, end }
    }

    fn at(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            _ => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        self.start + part * (self.end - self.start)
    }

    /// Where lines are drawn, at most about ten.
    fn ticks(&self) -> Vec<f64> {
        let base: f64 = match self.scale {
            Scale::Linear => return self.even_ticks(),
            Scale::Sizes => 2.0,
            Scale::Log if self.high / self.low < 100.0 => 2.0,
            Scale::Log => 10.0,
        };
        let step = ((self.high / self.low).log(base) / 10.0).ceil().max(1.0);
        let first = self.low.log(base).ceil();
        let tick = |i: i32| base.powf(first + step * f64::from(i));
        (0..).map(tick).take_while(|tick| *tick <= self.high * 1.0001).collect()
    }

    fn even_ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 8.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|by| by * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(unit * 10.0);
        let first = (self.low / step).ceil();
        (0..).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= self.high).collect()
    }

    fn text(&self, tick: f64) -> String {
        match self.scale {
            Scale::Sizes => size(tick.round() as u64),
            _ => short(tick),
        }
    }
}

/// Title, grid and labels.
fn frame(figure: &Figure, x: &Ruler, y: &Ruler) -> String {
    let mut text = label(LEFT, TOP - 15.0, "start", &format!("{} ({})", figure.title, figure.y.label));
    for tick in x.ticks() {
        let at = x.at(tick);
        text += &line(at, y.start, at, y.end);
        text += &label(at, y.start + 18.0, "middle", &x.text(tick));
    }
    for tick in y.ticks() {
        let at = y.at(tick);
        text += &line(x.start, at, x.end, at);
        text += &label(x.start - 6.0, at + 4.0, "end", &y.text(tick));
    }
    text + &label((x.start + x.end) / 2.0, y.start + 40.0, "middle", figure.x.label)
}

/// A curve and its place in the legend.
fn drawn(index: usize, name: &str, places: &[(f64, f64)]) -> String {
    let points: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let colour = COLOURS[index % COLOURS.len()];
    let (right, height) = (WIDTH - RIGHT + 15.0, TOP + 18.0 * index as f64);
    format!(
        "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>\n\
         <rect x=\"{right}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n{}",
        points.join(" "),
        height - 10.0,
        label(right + 18.0, height, "start", name)
    )
}

/// A size with its unit.
pub fn size(bytes: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// A number with about three digits.
pub fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 || v == 0.0 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
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

    #[test]
    fn every_scale_gives_a_whole_picture() {
        for scale in [Scale::Linear, Scale::Sizes, Scale::Log] {
            let curves = vec![
                Curve::new("A", [(1.0, 5.0), (1024.0, 50.0)]),
                Curve::new("B & C", [(1.0, 7.0), (1024.0, -3.0)]),
            ];
            let figure = Figure::by_size("x", "T", "µs", curves).over("n", scale).stated([(2.0, 6.0)]);
            for figure in [figure.clone(), figure.logarithmic()] {
                let text = svg(&figure);
                assert_eq!(text.matches("<polyline").count(), 2);
                assert!(text.contains("B &amp; C") && text.contains("stated"));
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.12345, 1.2, 45.67, 743.2].map(short), ["0", "0.123", "1.2", "45.7", "743"]);
        assert_eq!([12, 4096, 12288, 8 << 20].map(size), ["12", "4K", "12K", "8M"]);
    }
}
