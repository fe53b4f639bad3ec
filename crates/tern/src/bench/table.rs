//! Results as text: an aligned table for the terminal, Markdown for the file.

use super::results::{Results, Row};
use super::{case, standing};

/// A figure of the table of goals.
struct Headline {
    case: &'static str,
    bench: &'static str,
    variant: &'static str,
    size: u64,
    goal: &'static str,
}

const fn headline(
    case: &'static str,
    bench: &'static str,
    variant: &'static str,
    size: u64,
    goal: &'static str,
) -> Headline {
    Headline { case, bench, variant, size, goal }
}

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
const BELOW: &str = "below the best";

/// The points that the project has set itself goals for.
const HEADLINES: &[Headline] = &[
    headline("latency", "latency", "plain", 8, "≤ 0.5 of the best near, ≤ 0.6 far"),
    headline("latency", "latency", "plain", K, BELOW),
    headline("latency", "latency", "plain", 4 * K, BELOW),
    headline("latency", "latency", "plain", 8 * K, BELOW),
    headline("latency", "latency", "plain", 64 * K, BELOW),
    headline("latency", "latency", "plain", M, BELOW),
    headline("stream", "rate", "", 8, "≥ 3 × the best"),
    headline("stream", "bandwidth", "", 4 * M, "≥ 25 GB/s"),
    headline("fresh", "fresh", "", 4 * M, "ahead of all"),
    headline("collectives", "allreduce", "", 8, BELOW),
    headline("collectives", "bcast", "", 8, BELOW),
    headline("collectives", "alltoall", "", 8, BELOW),
    headline("oversubscribed", "allreduce", "", 8, BELOW),
    headline("overlap", "overlap", "sender computes, early receiver", 64 * K, "≥ 90 %"),
    headline("overlap", "overlap", "sender computes, early receiver", M, "≥ 90 %"),
    headline("overlap", "overlap", "receiver computes, early receiver", 64 * K, "≥ 90 %"),
    headline("overlap", "overlap", "receiver computes, early receiver", M, "≥ 90 %"),
    headline("stall", "stall", "sender computes, early receiver", 64 * K, "never stalls"),
    headline("stall", "stall", "receiver computes, early receiver", 64 * K, "never stalls"),
    headline("hosts-stall", "stall", "sender computes, early receiver", 64 * K, "never stalls"),
    headline("hosts-stall", "stall", "receiver computes, early receiver", 64 * K, "never stalls"),
    headline("hosts-stall", "stall", "sender computes, early receiver", 256 * K, "never stalls"),
    headline("hosts-stall", "stall", "receiver computes, early receiver", 256 * K, "never stalls"),
    headline("icollectives", "ibcast", "", 64 * K, "≥ 80 %"),
    headline("icollectives", "iallreduce", "", 64 * K, "≥ 60 %"),
    headline("icollectives", "ibcast", "beside", 64 * K, BELOW),
    headline("icollectives", "iallreduce", "beside", 64 * K, BELOW),
    headline("startup", "startup", "", 2, "≤ 0.05 s"),
    headline("startup64", "startup", "", 64, "≤ 0.6 s"),
    headline("memory", "memory", "", 128, "≤ 2 MB"),
];

/// The table of the terminal: the points with a goal, or all.
pub fn terminal(results: &Results, everything: bool) -> String {
    let rows = results.rows();
    let shown: Vec<Vec<String>> = rows
        .iter()
        .filter_map(|row| match goal(row, &rows) {
            None if !everything => None,
            goal => Some(cells(row, goal)),
        })
        .collect();
    let heading = heading(results);
    let width = |column: usize| {
        shown.iter().chain([&heading]).map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let mut text = String::new();
    for row in [&heading].into_iter().chain(&shown) {
        let line: Vec<String> =
            row.iter().zip(&widths).enumerate().map(|(i, (c, w))| padded(c, *w, i)).collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text + &failures(results)
}

/// The results file.
pub fn markdown(results: &Results, about: &[String]) -> String {
    let mut text = String::from("# Side by side\n\n");
    for line in about {
        text += &format!("- {line}\n");
    }
    text += "\nMedians over the rounds. near/far: where the two cores were during the run, told by a flag \
             ping-pong before and after it; mixed: they moved; busy: something else used the machine. The \
             ratio compares the first library with the best of the others.\n";
    let rows = results.rows();
    let with_goal: Vec<&Row> = rows.iter().filter(|row| goal(row, &rows).is_some()).collect();
    if !with_goal.is_empty() {
        text += &format!("\n## Points with a goal\n\n{}", markdown_table(results, &with_goal, &rows));
    }
    text += &standing::markdown(results);
    for case in case::ALL {
        let of_case: Vec<&Row> = rows.iter().filter(|row| row.point.case == case.name).collect();
        if !of_case.is_empty() {
            let ranks = case.ranks;
            text += &format!("\n## {}\n\n{ranks} ranks: {}.\n\n", case.name, case.about);
            text += &markdown_table(results, &of_case, &rows);
        }
    }
    let flag: Vec<&Row> = rows.iter().filter(|row| row.point.case == super::FLAG).collect();
    if !flag.is_empty() {
        text += &format!("\n## Limit: a flag without MPI\n\n{}", markdown_table(results, &flag, &rows));
    }
    text + &failures(results)
}

fn markdown_table(results: &Results, rows: &[&Row], all: &[Row]) -> String {
    let heading = heading(results);
    let rule: Vec<&str> =
        (0..heading.len()).map(|i| if is_number(i, heading.len()) { "---:" } else { "---" }).collect();
    let mut text = format!("| {} |\n| {} |\n", heading.join(" | "), rule.join(" | "));
    for row in rows {
        text += &format!("| {} |\n", cells(row, goal(row, all)).join(" | "));
    }
    text
}

fn heading(results: &Results) -> Vec<String> {
    let mut cells: Vec<String> = ["", "size", "cores", "unit"].map(String::from).to_vec();
    cells.extend(results.libraries.iter().cloned());
    cells.extend(["ratio", "goal"].map(String::from));
    cells
}

fn cells(row: &Row, goal: Option<&str>) -> Vec<String> {
    let mut cells = vec![
        row.point.label(),
        size(row.point.size),
        row.state.word().to_string(),
        row.point.unit.replace("us", "µs"),
    ];
    cells.extend(row.medians.iter().map(|median| median.map_or("–".to_string(), figure)));
    cells.push(row.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
    cells.push(goal.unwrap_or("").to_string());
    cells
}

fn failures(results: &Results) -> String {
    let mut text = String::new();
    for failure in &results.failures {
        text += &format!("\n- {} failed in {}: {}", failure.library, failure.case, failure.text);
    }
    if text.is_empty() { text } else { text + "\n" }
}

/// The goal for this row's point. Rows measured while the cores moved or the machine was busy say
/// little about it: they get one only if there are no better ones.
fn goal(row: &Row, all: &[Row]) -> Option<&'static str> {
    let point = row.point;
    let is_it = |h: &&Headline| {
        h.case == point.case && h.bench == point.bench && h.variant == point.variant && h.size == point.size
    };
    if !row.state.is_steady() && all.iter().any(|other| other.point == point && other.state.is_steady()) {
        return None;
    }
    HEADLINES.iter().find(is_it).map(|h| h.goal)
}

fn is_number(column: usize, columns: usize) -> bool {
    column == 1 || (4..columns - 1).contains(&column)
}

fn padded(cell: &str, width: usize, column: usize) -> String {
    if column == 1 || column >= 4 { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
}

/// A size with its suffix.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= M && b % M == 0 => format!("{}M", b / M),
        b if b >= K && b % K == 0 => format!("{}K", b / K),
        b => b.to_string(),
    }
}

/// A figure with about three significant digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::{Point, State};

    fn sample() -> Results {
        let point = |bench: &str, size| Point {
            case: "latency",
            bench: bench.to_string(),
            variant: "plain".to_string(),
            size,
            unit: "us".to_string(),
        };
        let mut results = Results::new(["Tern", "Other"].map(String::from).to_vec(), 1);
        results.add(point("latency", 8), State::Near, 0, 0.1);
        results.add(point("latency", 8), State::Near, 1, 0.25);
        results.add(point("latency", 8), State::Busy, 1, 5.0);
        results.add(point("latency", 2), State::Near, 1, 0.2);
        results
    }

    #[test]
    fn the_terminal_shows_points_with_a_goal_and_the_file_all() {
        let text = terminal(&sample(), false);
        // Heading and one point: the busy reading beside a steady one is left out.
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("0.40") && text.contains("0.100") && text.contains("0.250"), "{text}");
        assert_eq!(terminal(&sample(), true).lines().count(), 4);
        let file = markdown(&sample(), &["somewhere".to_string()]);
        assert!(file.contains("| latency plain | 2 | near | µs | – | 0.200 |  |  |"), "{file}");
    }

    #[test]
    fn every_headline_belongs_to_a_case() {
        for h in HEADLINES {
            assert!(case::ALL.iter().any(|case| case.name == h.case), "{}", h.case);
        }
    }

    #[test]
    fn sizes_and_figures_are_short() {
        assert_eq!([size(0), size(1000), size(65536), size(4 << 20)], ["0", "1000", "64K", "4M"]);
        assert_eq!(
            [figure(0.0264), figure(1.234), figure(24.66), figure(19999.6)],
            ["0.026", "1.23", "24.7", "20000"]
        );
    }
}
