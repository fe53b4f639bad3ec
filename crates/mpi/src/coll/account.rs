//! What was chosen for collectives and how it went, for people: per operation, range of lengths, ranks and algorithm.

use super::cost::{Algorithm, Choice, Problem};
use super::levels::Spread;
use super::tag::Collective;
use proto::choice::explain::{Detail, table};
use proto::choice::journal::{bytes, time};
use std::collections::BTreeMap;

/// A choice with what it was made for.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    size: usize,
    hosts: usize,
    bytes: u64,
    choice: Choice,
}

impl Chosen {
    /// What was chosen for a case.
    pub fn new(problem: &Problem, choice: Choice) -> Chosen {
        let hosts = match problem.spread {
            Spread::OneHost => 1,
            Spread::Apart => problem.size,
            Spread::Levels(levels) => levels.count(),
        };
        Chosen { size: problem.size, hosts, bytes: problem.bytes, choice }
    }
}

/// Calls of one kind by one algorithm: the length is that of a [`Problem`], by powers of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Case {
    kind: u8,
    range: Option<u8>,
    size: usize,
    hosts: usize,
    algorithm: u8,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    kind: Collective,
    count: u64,
    predicted_ns: f64,
    seen_ns: f64,
    last: Choice,
}

/// The account of one rank.
#[derive(Debug)]
pub struct Account {
    detail: Detail,
    rows: BTreeMap<Case, Row>,
}

impl Account {
    /// One with this much detail; none where nothing is to be said.
    pub fn new(detail: Detail) -> Option<Account> {
        (detail != Detail::Off).then(|| Account { detail, rows: BTreeMap::new() })
    }

    /// A collective has ended that took this rank so long.
    pub fn ended(&mut self, kind: Collective, chosen: &Chosen, took_ns: u64) {
        let case = Case {
            kind: kind as u8,
            range: (chosen.bytes > 0).then(|| (chosen.bytes.ilog2() / 2) as u8),
            size: chosen.size,
            hosts: chosen.hosts,
            algorithm: chosen.choice.winner as u8,
        };
        let new = Row { kind, count: 0, predicted_ns: 0.0, seen_ns: 0.0, last: chosen.choice };
        let row = self.rows.entry(case).or_insert(new);
        row.count += 1;
        row.predicted_ns += chosen.choice.price.total();
        row.seen_ns += took_ns as f64;
        row.last = chosen.choice;
    }

    /// The table; every line begins with `prefix`. Empty if there was no collective.
    pub fn text(&self, prefix: &str) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let head = [
            "collective",
            "bytes",
            "ranks",
            "hosts",
            "algorithm",
            "calls",
            "mean predicted",
            "mean observed",
            "instead",
        ];
        let mut lines = vec![head.map(String::from).to_vec()];
        for (case, row) in &self.rows {
            let span = |range: u8| format!("{}..{}", bytes(1 << (2 * range)), bytes(1 << (2 * range + 2)));
            lines.push(vec![
                row.kind.name().into(),
                case.range.map_or("0".into(), span),
                case.size.to_string(),
                case.hosts.to_string(),
                row.last.winner.word().into(),
                row.count.to_string(),
                time(row.predicted_ns / row.count as f64),
                time(row.seen_ns / row.count as f64),
                instead(&row.last, self.detail),
            ]);
        }
        table(prefix, &lines)
    }
}

/// What the others would have cost: the next best one, or all.
fn instead(choice: &Choice, detail: Detail) -> String {
    let mut others: Vec<(Algorithm, f64)> = choice.others().collect();
    others.sort_by(|a, b| a.1.total_cmp(&b.1));
    if detail == Detail::Used {
        others.truncate(1);
    }
    let others = others.iter().map(|(algorithm, ns)| format!("{} {}", algorithm.word(), time(*ns)));
    let mut text = others.collect::<Vec<_>>().join(", ");
    if choice.forced {
        text = format!("asked for by a setting; {text}");
    }
    if text.is_empty() { "no other".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::cost::choose;
    use super::super::rates::Tariff;
    use super::*;

    #[test]
    fn calls_are_told_apart_by_what_they_are() {
        assert!(Account::new(Detail::Off).is_none());
        let mut account = Account::new(Detail::All).unwrap();
        assert_eq!(account.text("x "), "");
        let spread = Spread::of(8, |rank| rank as u32 / 4);
        let tariff = Tariff::default();
        for (kind, size, bytes, forced) in [
            (Collective::Allreduce, 8, 8, None),
            (Collective::Allreduce, 8, 9, None),
            (Collective::Allreduce, 8, 8, Some(Algorithm::Ring)),
            (Collective::Barrier, 8, 0, None),
            (Collective::Gatherv, 8, 0, None),
        ] {
            let problem = Problem { size, bytes, commutes: true, root: 0, spread: &spread };
            let choice = choose(kind, &problem, &tariff, forced);
            account.ended(kind, &Chosen::new(&problem, choice), 70_000);
        }
        let text = account.text("x ");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines.iter().all(|line| line.starts_with("x ")), "{text}");
        let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
        let allreduce = lines.iter().map(|line| words(line)).find(|words| words[5] == "two-level").unwrap();
        assert_eq!(allreduce[1..7], ["Barrier", "0", "8", "2", "two-level", "1"]);
        assert!(text.contains("Allreduce   4..16      8      2  ring"), "{text}");
        assert!(text.contains("asked for by a setting; two-level"), "{text}");
        assert!(text.contains("recursive-doubling"), "{text}");
    }
}
