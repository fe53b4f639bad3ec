//! `tern sim reproduce`: what the papers say beside what the library's protocols give on the
//! platforms of the papers, in virtual time.

mod choice;
mod p000;
mod p001;
mod p002;
mod p003;
mod scale;
mod today;

use std::path::Path;
use std::time::Instant;

use super::chart::{self, short};
use super::figure::{Claim, Figure, Kind, Paper, Study};

/// A study: its name, what it shows, and how to run it.
type Row = (&'static str, &'static str, fn() -> Result<Study, String>);

/// Every study there is.
pub const STUDIES: &[Row] = &[
    ("000", "frequent-buffer eager", p000::study),
    ("001", "RDMA pipeline", p001::study),
    ("002", "speculative rendezvous (chapter 4)", p002::study),
    ("003", "copy superpipeline", p003::study),
    ("oracle", "the adaptive choice against each fixed protocol", choice::oracle),
    ("today", "which protocol wins where on today's hardware", today::study),
    ("scale", "allreduce and halo on up to 4,096 ranks", scale::study),
];

/// Runs the studies of these names, all if there are none; prints a table each and writes figures and table to
/// `out`.
pub fn run(names: &[String], out: &Path) -> Result<(), String> {
    let mut text = String::new();
    for name in names {
        if !STUDIES.iter().any(|row| row.0 == name) {
            return Err(super::unknown("paper", name, STUDIES.iter().map(|row| row.0)));
        }
    }
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let wanted = |row: &&Row| names.is_empty() || names.iter().any(|name| name == row.0);
    let chosen: Vec<&Row> = STUDIES.iter().filter(wanted).collect();
    for (at, (name, about, study)) in chosen.iter().enumerate() {
        eprintln!("[{}/{}] {name}: {about} ...", at + 1, chosen.len());
        let start = Instant::now();
        let mut study = study()?;
        eprintln!("[{}/{}] {name}: {:.1} s", at + 1, chosen.len(), start.elapsed().as_secs_f64());
        let table = table(&study);
        println!("{table}");
        if study.name == "000" {
            // In real time: no table that is the same everywhere.
            let (searches, figure) = p000::search::measure();
            println!("Searches in real time on this machine (fig. 3):\n{searches}");
            study.figures.push(figure);
        }
        text += &table;
        text.push('\n');
        for figure in &study.figures {
            write(&out.join(format!("{}.svg", figure.name)), &chart::svg(figure))?;
            write(&out.join(format!("{}.csv", figure.name)), &csv(figure))?;
        }
    }
    write(&out.join("results.md"), &text)?;
    println!("Table and figures: {}", out.display());
    Ok(())
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

/// A study's claims as a table in Markdown.
pub fn table(study: &Study) -> String {
    let head = ["where", "what", "unit", "paper", "Tern", "difference", ""].map(String::from);
    let mut rows = vec![head];
    rows.extend(study.claims.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
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
    text
}

fn row(claim: &Claim) -> [String; 7] {
    let paper = match claim.paper {
        Paper::Is(value) => short(value),
        Paper::AtMost(value) => format!("≤ {}", short(value)),
        Paper::AtLeast(value) => format!("≥ {}", short(value)),
        Paper::Between(low, high) => format!("{}–{}", short(low), short(high)),
        Paper::Silent => "–".into(),
    };
    let difference = match (claim.paper, claim.difference()) {
        (Paper::Silent, _) => String::new(),
        (_, None) => "holds".into(),
        (_, Some(by)) if claim.unit == "%" => format!("{by:+.1} points"),
        (_, Some(by)) => format!("{by:+.1} %"),
    };
    let kind = match claim.kind {
        Kind::Fitted => "fitted",
        Kind::Predicted => "",
    };
    let words = [claim.place, &claim.what, claim.unit].map(String::from);
    let [place, what, unit] = words;
    [place, what, unit, paper, short(claim.tern), difference, kind.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The papers' tables and the oracle's in virtual time, as `tables.md` has them; `TERN_UPDATE_SNAPSHOTS=1` writes them anew.
    #[test]
    fn the_tables_are_as_recorded() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sim/reproduce/tables.md");
        let papers = STUDIES.iter().filter(|row| row.0.starts_with("00"));
        let studies = papers.map(|row| row.2).chain([choice::quick as fn() -> Result<Study, String>]);
        let tables: Vec<String> = studies.map(|study| table(&study().unwrap())).collect();
        let tables = tables.join("\n");
        if std::env::var_os("TERN_UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&file, &tables).unwrap();
        }
        let recorded = std::fs::read_to_string(&file).unwrap();
        for (at, (is, was)) in tables.lines().zip(recorded.lines()).enumerate() {
            assert_eq!(is, was, "line {} of tables.md; TERN_UPDATE_SNAPSHOTS=1 writes it anew", at + 1);
        }
        assert_eq!(tables.lines().count(), recorded.lines().count());
    }

    #[test]
    fn a_table_lines_up() {
        let claims = vec![
            Claim::new("fig. 2", "a", "%", Paper::Is(40.0), 33.0),
            Claim::new("table 1", "longer", "MB/s", Paper::AtMost(7.0), 6.0).fitted(),
        ];
        let text = table(&Study { name: "x", title: "y", claims, figures: Vec::new() });
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[2], "| fig. 2  | a      | %    | 40    | 33   | -7.0 points |        |");
        assert_eq!(lines[3], "| table 1 | longer | MB/s | ≤ 7   | 6    | holds       | fitted |");
    }
}
