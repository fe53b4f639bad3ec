//! `tern sim reproduce`: what the papers say beside what the library's protocols give on the
//! platforms of the papers, in virtual time.

mod choice;
mod p000;
mod p001;
mod p002;
mod p003;
mod p004;
mod scale;
mod today;

use std::path::Path;
use std::time::Instant;

use super::figure::{Claim, Figure, Paper, Study};
use crate::chart::{self, short};

/// A study: its name, what it shows, and how to run it.
type Row = (&'static str, &'static str, fn() -> Result<Study, String>);

/// Every study there is.
pub const STUDIES: &[Row] = &[
    ("000", "frequent-buffer eager", p000::study),
    ("001", "RDMA pipeline", p001::study),
    ("002", "speculative rendezvous (chapter 4)", p002::study),
    ("003", "copy superpipeline", p003::study),
    ("004", "one-sided operations of an epoch", p004::study),
    ("oracle", "the adaptive choice against each fixed protocol", choice::oracle),
    ("today", "which protocol wins where on today's hardware", today::study),
    ("scale", "allreduce and halo on up to 4,096 ranks", scale::study),
];

/// Those that take little time: of the papers, and of the oracle in fewer lengths.
fn short_ones() -> Vec<Row> {
    let papers = STUDIES.iter().filter(|row| row.0.starts_with("00"));
    papers.copied().chain([("oracle", "the adaptive choice, in fewer lengths", choice::quick as _)]).collect()
}

/// Runs the studies of these names, all if there are none (with `short` those that take little time); prints a table each and writes
/// figures and tables to `out`.
pub fn run(names: &[String], short: bool, out: &Path) -> Result<(), String> {
    let (mut text, mut faults) = (String::new(), Vec::new());
    let studies = if short { short_ones() } else { STUDIES.to_vec() };
    for name in names {
        if !studies.iter().any(|row| row.0 == name) {
            return Err(super::unknown("paper", name, studies.iter().map(|row| row.0)));
        }
    }
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let wanted = |row: &&Row| names.is_empty() || names.iter().any(|name| name == row.0);
    let chosen: Vec<&Row> = studies.iter().filter(wanted).collect();
    for (at, (name, about, study)) in chosen.iter().enumerate() {
        eprintln!("[{}/{}] {name}: {about} ...", at + 1, chosen.len());
        let start = Instant::now();
        let mut study = study()?;
        eprintln!("[{}/{}] {name}: {:.1} s", at + 1, chosen.len(), start.elapsed().as_secs_f64());
        let table = table(&study);
        println!("{table}");
        if study.name == "000" && !short {
            // In real time: no table that is the same everywhere.
            let (searches, figure) = p000::search::measure();
            println!("Searches in real time on this machine (fig. 3):\n{searches}");
            study.figures.push(figure);
        }
        text += &table;
        text.push('\n');
        faults.extend(study.faults().into_iter().map(|fault| format!("{name}: {fault}")));
        for figure in &study.figures {
            write(&out.join(format!("{}.svg", figure.name)), &chart::svg(figure))?;
            write(&out.join(format!("{}.csv", figure.name)), &csv(figure))?;
        }
    }
    write(&out.join("results.md"), &text)?;
    println!("Table and figures: {}", out.display());
    match faults.as_slice() {
        [] => Ok(()),
        faults => Err(format!("further from the papers than allowed:\n{}", faults.join("\n"))),
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The points of a figure: a line for each, with the name of its curve.
fn csv(figure: &Figure) -> String {
    let mut text = format!("curve,{},{}\n", figure.x.label, figure.y.label);
    for curve in &figure.curves {
        text.extend(curve.points.iter().map(|(x, y)| format!("\"{}\",{x},{y}\n", curve.name)));
    }
    text
}

/// A study's claims as a table in Markdown, with the notes and reasons of exceptions below.
pub fn table(study: &Study) -> String {
    let head = ["where", "what", "unit", "paper", "Tern", "difference", "allowed", "kind"];
    let mut rows = vec![head.map(String::from)];
    let mut notes = Vec::new();
    rows.extend(study.claims.iter().map(|claim| row(claim, &mut notes)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut text = format!("### {}: {}\n\n", study.name, study.title);
    for (at, row) in rows.iter().enumerate() {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text += &format!("| {} |\n", cells.join(" | "));
        if at == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat((*width).max(3))).collect();
            text += &format!("| {} |\n", rule.join(" | "));
        }
    }
    for (at, note) in notes.iter().enumerate() {
        text += &format!("{}- [{}] {note}\n", if at == 0 { "\n" } else { "" }, at + 1);
    }
    text
}

/// A row; what has to be said about it goes to `notes`, unless it is there.
fn row(claim: &Claim, notes: &mut Vec<&'static str>) -> [String; 8] {
    let paper = match claim.paper {
        Paper::Is(value) => short(value),
        Paper::AtMost(value) => format!("≤ {}", short(value)),
        Paper::AtLeast(value) => format!("≥ {}", short(value)),
        Paper::Between(low, high) => format!("{}–{}", short(low), short(high)),
        Paper::Silent => "–".into(),
    };
    let signed = |value: f64| match value {
        _ if value == f64::INFINITY => "any".into(),
        0.0 => "0".into(),
        _ if claim.unit == "%" || value.abs() < 10.0 => format!("{value:+.1}").replace(".0", ""),
        _ => format!("{value:+.0}"),
    };
    let (difference, allowed) = match (claim.paper, claim.difference(), claim.allowed()) {
        (Paper::Silent, ..) => (String::new(), String::new()),
        (.., None, _) if claim.exception.is_none() => ("holds".into(), String::new()),
        (.., by, (low, high)) => {
            let by = by.unwrap_or(0.0);
            let unit = if claim.unit == "%" { "points" } else { "%" };
            let allowed = match (-low == high, high == 0.0) {
                (true, _) => format!("±{}", signed(high).trim_start_matches('+')),
                (_, true) => signed(low),
                _ if low == 0.0 => signed(high),
                _ => format!("{} to {}", signed(low), signed(high)),
            };
            (format!("{by:+.1} {unit}"), allowed)
        }
    };
    let mut kind = if claim.paper == Paper::Silent { "no claim" } else { claim.kind.name() }.to_string();
    for note in claim.exception.map(|exception| exception.reason).into_iter().chain(claim.note) {
        let at = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
            notes.push(note);
            notes.len() - 1
        });
        kind += &format!(" [{}]", at + 1);
    }
    let tern = if claim.tern == f64::INFINITY { "never".into() } else { short(claim.tern) };
    let [place, what, unit] = [claim.place, &claim.what, claim.unit].map(String::from);
    [place, what, unit, paper, tern, difference, allowed, kind]
}

#[cfg(test)]
mod tests {
    use super::super::figure::Basis;
    use super::*;

    #[test]
    fn a_table_lines_up() {
        let claims = vec![
            Claim::new("fig. 2", "a", "%", Paper::Is(40.0), 33.0).except(-7.5, "why").note("what"),
            Claim::new("table 1", "longer", "MB/s", Paper::AtMost(7.0), 6.0).is(Basis::Fitted).note("what"),
            Claim::new("", "", "", Paper::Is(2.0), f64::INFINITY)
                .within_factor(2.0)
                .except(f64::INFINITY, "why"),
            Claim::new("", "", "", Paper::Silent, 2.0),
        ];
        let text = table(&Study { name: "x", title: "y", claims, figures: Vec::new() });
        let lines: Vec<&str> = text.lines().skip(4).map(str::trim_end).collect();
        let expected = "\
| fig. 2  | a      | %    | 40    | 33    | -7.0 points | -7.5 to +5 | prediction [1] [2] |
| table 1 | longer | MB/s | ≤ 7   | 6     | holds       |            | fitted [2]         |
|         |        |      | 2     | never | +inf %      | -50 to any | prediction [1]     |
|         |        |      | –     | 2     |             |            | no claim           |

- [1] why
- [2] what";
        assert_eq!(lines.join("\n"), expected);
    }
}
