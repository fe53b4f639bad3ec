//! What was chosen and how it went, for people: per peer class, size range and way.

use crate::choice::choose::{Choice, Entry};
use crate::choice::journal::{bytes, reason, time};
use crate::choice::way::Way;
use fabric::Distance;
use std::collections::BTreeMap;

/// How much to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// Nothing, and nothing is counted.
    #[default]
    Off,
    /// The ways that messages took.
    Used,
    /// Also those that were considered.
    All,
}

/// Messages of one kind that went one way.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    count: u64,
    bytes: u64,
    predicted_ns: f64,
    /// Those whose end was seen, and what they took.
    ended: u64,
    seen_ns: f64,
    /// The last choice among several ways.
    choice: Option<Choice>,
}

/// The account of one rank.
#[derive(Debug, Default)]
pub struct Account {
    detail: Detail,
    rows: BTreeMap<(Distance, u8, Way), Row>,
}

/// Lengths from which a message is in the range of the next power of four.
fn range(len: usize) -> u8 {
    (len.max(1).ilog2() / 2) as u8
}

impl Account {
    /// An account with this much detail.
    pub fn new(detail: Detail) -> Account {
        Account { detail, rows: BTreeMap::new() }
    }

    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        self.detail != Detail::Off
    }

    /// A message leaves.
    pub fn left(&mut self, to: Distance, way: Way, len: usize, predicted_ns: f64, entry: Option<&Entry>) {
        if !self.is_on() {
            return;
        }
        let row = self.rows.entry((to, range(len), way)).or_default();
        row.count += 1;
        row.bytes += len as u64;
        row.predicted_ns += predicted_ns;
        row.choice = entry.map(|entry| entry.last).or(row.choice);
    }

    /// A message has ended.
    pub fn ended(&mut self, to: Distance, way: Way, len: usize, seen_ns: f64) {
        if let Some(row) = self.rows.get_mut(&(to, range(len), way)) {
            row.ended += 1;
            row.seen_ns += seen_ns;
        }
    }

    /// How much is said.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// The table; every line begins with `prefix`. Empty if there was no message. `why` says it of
    /// messages of this length whose way was no choice among several.
    pub(crate) fn text(
        &self,
        prefix: &str,
        entries: &[Entry],
        why: impl Fn(Distance, Way, usize) -> String,
    ) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let head =
            ["peer", "bytes", "protocol", "messages", "volume", "mean predicted", "mean observed", "why"];
        let mut lines = vec![head.map(String::from).to_vec()];
        for ((to, range, way), row) in &self.rows {
            let mean = |sum: f64, n: u64| if sum == 0.0 { "-".into() } else { time(sum / n as f64) };
            let least = if *range == 0 { 0 } else { 1 << (2 * *range as u32) };
            lines.push(vec![
                to.name().into(),
                format!("{}..{}", bytes(least), bytes(1 << (2 * *range as u32 + 2))),
                way.name().into(),
                row.count.to_string(),
                volume(row.bytes),
                mean(row.predicted_ns, row.count),
                mean(row.seen_ns, row.ended),
                match &row.choice {
                    Some(choice) => because(*way, choice),
                    None => why(*to, *way, (row.bytes / row.count) as usize),
                },
            ]);
        }
        let mut text = table(prefix, &lines);
        if self.detail == Detail::All {
            entries.iter().for_each(|entry| text += &format!("{prefix}{}\n", considered(entry)));
        }
        text
    }
}

/// Why a way was taken.
pub(crate) fn because(way: Way, choice: &Choice) -> String {
    if choice.winner != way {
        return format!("not the cheapest by now: {} {}", choice.winner.name(), time(choice.cost_ns));
    }
    match choice.runner_up {
        Some((other, ns)) => format!("{}; {} {}", reason(choice), other.name(), time(ns)),
        None => reason(choice),
    }
}

/// What is in force for a kind of message, and how each way has been seen.
fn considered(entry: &Entry) -> String {
    let mut text = format!("{} way={} messages={}", entry.key.text(), entry.way().name(), entry.messages);
    for (way, name) in Way::ALL {
        if entry.seen().count(way) > 0 {
            let correction = entry.seen().correction(way);
            text += &format!(" {name}:{}×{correction:.2}", entry.seen().count(way));
        }
    }
    text
}

fn volume(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Lines of cells as a table: numbers to the right, words to the left.
pub fn table(prefix: &str, lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let numeric = |cell: &str| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit());
    let right: Vec<bool> = (0..columns).map(|at| lines[1..].iter().all(|line| numeric(&line[at]))).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().enumerate().map(|(at, cell)| {
            let fill = " ".repeat(widths[at] - cell.chars().count());
            if right[at] { format!("{fill}{cell}") } else { format!("{cell}{fill}") }
        });
        text += format!("{prefix}{}", cells.collect::<Vec<_>>().join("  ")).trim_end();
        text.push('\n');
    }
    text
}
