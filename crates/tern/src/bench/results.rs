//! The readings of all rounds and what they amount to: medians per point, core state and library.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Where the two cores of a run were, told by the flag ping-pong before and after it. Virtual
/// machines move between these, and figures of different states must not be compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// The cores share a cache.
    Near,
    /// They do not.
    Far,
    /// They moved during the run.
    Mixed,
    /// Something else used the machine during the run.
    Busy,
    /// There is only one core, the flag ping-pong failed, or nobody asked.
    Unknown,
}

/// Half a round trip of the flag on one line that separates near (0.03 µs seen) from far (0.17).
const NEAR_BELOW_US: f64 = 0.08;

impl State {
    /// The state told by the fastest half round trips before and after a run.
    pub fn of(before_us: Option<f64>, after_us: Option<f64>) -> State {
        match (before_us, after_us) {
            (Some(a), Some(b)) if a < NEAR_BELOW_US && b < NEAR_BELOW_US => State::Near,
            (Some(a), Some(b)) if a >= NEAR_BELOW_US && b >= NEAR_BELOW_US => State::Far,
            (Some(_), Some(_)) => State::Mixed,
            _ => State::Unknown,
        }
    }

    /// Whether figures of this state can be compared with others of the same.
    pub fn is_steady(self) -> bool {
        !matches!(self, State::Mixed | State::Busy)
    }

    /// Word for the tables.
    pub fn word(self) -> &'static str {
        match self {
            State::Near => "near",
            State::Far => "far",
            State::Mixed => "mixed",
            State::Busy => "busy",
            State::Unknown => "",
        }
    }
}

/// A measured point: what was measured, without by whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Point {
    /// Name of the case.
    pub case: &'static str,
    /// What the program calls it.
    pub bench: String,
    /// Variant of it, may be empty.
    pub variant: String,
    /// Bytes, or ranks where ranks are varied.
    pub size: u64,
    /// Unit of the values.
    pub unit: String,
}

impl Point {
    /// Whether less is better, by the unit.
    pub fn less_is_better(&self) -> bool {
        matches!(self.unit.as_str(), "us" | "s" | "MB")
    }

    /// Name in tables: bench and variant.
    pub fn label(&self) -> String {
        if self.variant.is_empty() { self.bench.clone() } else { format!("{} {}", self.bench, self.variant) }
    }
}

/// What one line of a benchmark says.
#[derive(Clone, PartialEq, Debug)]
pub struct Printed {
    /// The point measured.
    pub point: Point,
    /// Its value.
    pub value: f64,
    /// The tenth percentile of the readings behind it.
    pub low: f64,
}

/// Reads one line that a benchmark printed. Lines that are not JSON objects are not points.
pub fn parse_line(case: &'static str, line: &str) -> Option<Printed> {
    let value: Value = serde_json::from_str(line.trim()).ok()?;
    let text = |key: &str| value.get(key)?.as_str().map(str::to_string);
    let point = Point {
        case,
        bench: text("bench")?,
        variant: text("variant")?,
        size: value.get("size")?.as_u64()?,
        unit: text("unit")?,
    };
    Some(Printed { point, value: value.get("value")?.as_f64()?, low: value.get("low")?.as_f64()? })
}

/// A failed run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Name of the library.
    pub library: String,
    /// Name of the case.
    pub case: &'static str,
    /// What happened.
    pub text: String,
}

/// All that was measured.
#[derive(Default)]
pub struct Results {
    /// Names of the libraries, in the order of the columns.
    pub libraries: Vec<String>,
    /// How many of the first are forms of the same one, of which the first is compared with the best of the others.
    own: usize,
    points: Vec<Point>,
    readings: BTreeMap<(usize, State, usize), Vec<f64>>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
}

/// One line of a table: a point in one state, with the median of each library.
pub struct Row<'a> {
    /// The point.
    pub point: &'a Point,
    /// The state of the cores.
    pub state: State,
    /// Medians in the order of the libraries.
    pub medians: Vec<Option<f64>>,
    /// The first library's median by that of the best other one.
    pub ratio: Option<f64>,
}

impl Results {
    /// Nothing measured yet; the first `own` libraries are forms of the first one.
    pub fn new(libraries: Vec<String>, own: usize) -> Results {
        Results { libraries, own, ..Results::default() }
    }

    /// Adds one reading.
    pub fn add(&mut self, point: Point, state: State, library: usize, value: f64) {
        let index = self.points.iter().position(|known| *known == point).unwrap_or_else(|| {
            self.points.push(point);
            self.points.len() - 1
        });
        self.readings.entry((index, state, library)).or_default().push(value);
    }

    /// All points and states with at least one reading, in the order of measurement.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut keys: Vec<(usize, State)> =
            self.readings.keys().map(|&(point, state, _)| (point, state)).collect();
        keys.dedup();
        keys.into_iter().map(|(point, state)| self.row(point, state)).collect()
    }

    fn row(&self, index: usize, state: State) -> Row<'_> {
        let median_of = |library| self.readings.get(&(index, state, library)).map(|values| median(values));
        let medians: Vec<Option<f64>> = (0..self.libraries.len()).map(median_of).collect();
        let point = &self.points[index];
        let others = medians.iter().skip(self.own).filter_map(|m| *m);
        let best = if point.less_is_better() { others.reduce(f64::min) } else { others.reduce(f64::max) };
        let own = medians.first().copied().flatten();
        // A share of nothing is nothing: percentages have no ratio.
        let comparable = |(_, best): &(f64, f64)| point.unit != "%" && *best != 0.0;
        let ratio = own.zip(best).filter(comparable).map(|(own, best)| own / best);
        Row { point, state, medians, ratio }
    }

    /// Everything as JSON, for other programs.
    pub fn to_json(&self, about: Value) -> Value {
        let one = |(&(index, state, library), values): (&(usize, State, usize), &Vec<f64>)| {
            let point = &self.points[index];
            json!({
                "case": point.case, "bench": point.bench, "variant": point.variant, "size": point.size,
                "unit": point.unit, "state": state.word(), "library": self.libraries[library],
                "median": median(values), "values": values,
            })
        };
        let failure = |f: &Failure| json!({"library": f.library, "case": f.case, "text": f.text});
        json!({
            "about": about,
            "points": self.readings.iter().map(one).collect::<Vec<_>>(),
            "failures": self.failures.iter().map(failure).collect::<Vec<_>>(),
        })
    }
}

/// The median; `values` is not empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"bench":"latency","variant":"plain","size":8,"value":0.5,"unit":"us","low":0,"high":1,"readings":3}"#;

    #[test]
    fn a_printed_line_becomes_a_point_and_noise_does_not() {
        let Printed { point, value, .. } = parse_line("latency", LINE).unwrap();
        assert_eq!((point.label().as_str(), point.size, value), ("latency plain", 8, 0.5));
        assert!(point.less_is_better());
        for noise in ["", "warning: no such device", "{}", "[1]", r#"{"bench":1}"#] {
            assert_eq!(parse_line("latency", noise), None, "{noise}");
        }
    }

    #[test]
    fn the_reference_is_compared_with_the_best_other_in_the_same_state() {
        let point = parse_line("latency", LINE).unwrap().point;
        let mut results = Results::new(["Tern", "A", "B"].map(String::from).to_vec(), 1);
        for (library, value) in [(0, 1.0), (0, 3.0), (0, 2.0), (1, 4.0), (2, 8.0)] {
            results.add(point.clone(), State::Near, library, value);
        }
        results.add(point, State::Far, 1, 1.0);
        let rows = results.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].medians, [Some(2.0), Some(4.0), Some(8.0)]);
        assert_eq!(rows[0].ratio, Some(0.5));
        assert_eq!((rows[1].state, rows[1].ratio), (State::Far, None));
    }

    #[test]
    fn the_state_is_known_only_if_it_held() {
        assert_eq!(State::of(Some(0.03), Some(0.03)), State::Near);
        assert_eq!(State::of(Some(0.03), Some(0.2)), State::Mixed);
        assert_eq!(State::of(None, Some(0.2)), State::Unknown);
    }
}
