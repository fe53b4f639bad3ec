//! Where the first library stands: in how many cells it is about as good as the best of the others, and in
//! which it is far behind.

use super::case;
use super::results::{Results, Row};
use super::table::{figure, size};

/// At most so many times the best of the others counts as equal to it.
const EQUAL: f64 = 1.05;
/// More than so many times the best of the others is far behind.
const FAR: f64 = 1.2;

/// The cells of one case.
struct Standing<'a> {
    case: &'static str,
    equal: usize,
    all: usize,
    /// Those far behind, and how many times the best of the others, worst first.
    behind: Vec<(&'a Row<'a>, f64)>,
}

impl Standing<'_> {
    fn line(&self) -> String {
        let Standing { case, equal, all, behind } = self;
        format!(
            "{case}: at most {EQUAL} of the best in {equal} of {all} cells, over {FAR} in {}",
            behind.len()
        )
    }
}

/// A line per case and one per label that is far behind.
pub fn text(results: &Results) -> String {
    let rows = results.rows();
    let mut text = String::new();
    for standing in of_cases(&rows) {
        text += &format!("\n{}", standing.line());
        for (label, cells) in by_label(&standing) {
            text += &format!("\n  {label}: {cells}");
        }
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The section of the results file.
pub fn markdown(results: &Results) -> String {
    let rows = results.rows();
    let mut text = String::new();
    for standing in of_cases(&rows) {
        text += &format!("\n- {}", standing.line());
        for (label, cells) in by_label(&standing) {
            text += &format!("\n  - {label}: {cells}");
        }
    }
    if text.is_empty() {
        return text;
    }
    let name = &results.libraries[0];
    format!(
        "\n## Standing\n\n{name} by the best of the others, worse is above 1; sizes and how many times.\n{text}\n"
    )
}

fn of_cases<'a>(rows: &'a [Row<'a>]) -> Vec<Standing<'a>> {
    let all = case::ALL.iter().map(|case| of_case(rows, case.name));
    all.filter(|standing| standing.all > 0).collect()
}

fn of_case<'a>(rows: &'a [Row<'a>], case: &'static str) -> Standing<'a> {
    // A cell that was measured while the machine was quiet says more than the same one of a busy machine.
    let counts = |row: &&Row| {
        let point = row.point;
        let better = |other: &Row| other.point == point && other.state.is_steady() && other.ratio.is_some();
        point.case == case && (row.state.is_steady() || !rows.iter().any(better))
    };
    let times = |row: &'a Row<'a>| {
        let ratio = row.ratio?;
        Some((row, if row.point.less_is_better() { ratio } else { 1.0 / ratio }))
    };
    let cells: Vec<(&Row, f64)> = rows.iter().filter(counts).filter_map(times).collect();
    let equal = cells.iter().filter(|cell| cell.1 <= EQUAL).count();
    let all = cells.len();
    let mut behind: Vec<_> = cells.into_iter().filter(|cell| cell.1 > FAR).collect();
    behind.sort_by(|a, b| b.1.total_cmp(&a.1));
    Standing { case, equal, all, behind }
}

/// Cells far behind by what they measure, that with the worst first; sizes in order.
fn by_label(standing: &Standing) -> Vec<(String, String)> {
    let mut labels: Vec<String> = Vec::new();
    for (row, _) in &standing.behind {
        if !labels.contains(&row.point.label()) {
            labels.push(row.point.label());
        }
    }
    let cells = |label: &String| {
        let mut of: Vec<_> = standing.behind.iter().filter(|cell| cell.0.point.label() == *label).collect();
        of.sort_by_key(|cell| cell.0.point.size);
        let shown = |cell: &&(&Row, f64)| format!("{} {}", size(cell.0.point.size), figure(cell.1));
        of.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    labels.iter().map(|label| (label.clone(), cells(label))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Point, State};

    fn sample() -> Results {
        let mut results = Results::new(["Tern", "Other", "Third"].map(String::from).to_vec(), 1);
        let mut add = |bench: &str, size, unit: &str, state, values: [f64; 3]| {
            let (bench, unit) = (bench.to_string(), unit.to_string());
            let point = Point { case: "latency", bench, variant: String::new(), size, unit };
            for (library, value) in values.into_iter().enumerate() {
                results.add(point.clone(), state, library, value);
            }
        };
        add("time", 8, "us", State::Near, [1.0, 2.0, 0.96]);
        add("time", 8, "us", State::Busy, [9.0, 1.0, 1.0]);
        add("time", 4096, "us", State::Near, [3.0, 2.0, 4.0]);
        add("time", 64, "us", State::Busy, [5.0, 2.0, 2.0]);
        add("rate", 8, "GB/s", State::Near, [4.0, 8.0, 1.0]);
        add("rate", 64, "GB/s", State::Near, [1.0, 1.1, 1.0]);
        add("share", 8, "%", State::Near, [1.0, 90.0, 90.0]);
        results
    }

    #[test]
    fn cells_are_counted_once_and_those_far_behind_are_listed() {
        let text = text(&sample());
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "latency: at most 1.05 of the best in 1 of 5 cells, over 1.2 in 3",
                "  time: 64 2.50, 4K 1.50",
                "  rate: 8 2.00"
            ]
        );
        assert!(markdown(&sample()).contains("\n## Standing\n"));
    }

    #[test]
    fn nothing_compared_is_nothing_said() {
        let alone = Results::new(vec!["Tern".to_string()], 1);
        assert_eq!((text(&alone), markdown(&alone)), (String::new(), String::new()));
    }
}
