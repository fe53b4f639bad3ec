//! The journal of choices: every change with its evidence, as lines that can be pinned and replayed.
//!
//! ```text
//! tern-decisions 1
//! rank=3 at=17 to=network size=64K reuse=new receiver=early rtr=no mode=standard way=superpipeline # why
//! ```
//! `at` is the number of the message of this kind from which the way is in force; what stands
//! behind `#` is for people. `rank=*` speaks of all ranks. Replayed, the same way comes into force at
//! the same message, and nothing is tried; kinds that the journal does not know are chosen as
//! ever. Reading and writing files is for those above: here are lines.

use crate::choice::choose::{Choice, Entry, Key, Why};
use crate::choice::facts::Facts;
use crate::choice::terms::Message;
use crate::choice::way::Way;
use fabric::{Distance, Rank};

/// First line of a journal: what it is, and the version of its format and of the kinds of messages.
pub const HEADER: &str = "tern-decisions 1";
/// Changes that are kept; more are counted.
const LINES_MAX: usize = 1 << 16;

/// A decision to be done again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// Of which rank; `None` for all.
    pub rank: Option<Rank>,
    /// From which message of its kind on.
    pub at: u32,
    /// For which kind.
    pub key: Key,
    /// Which way.
    pub way: Way,
}

/// What one rank has changed, and what it is to do again.
#[derive(Debug, Default)]
pub struct Journal {
    keeps: bool,
    lines: Vec<String>,
    dropped: u64,
    pinned: Vec<Decision>,
}

impl Journal {
    /// Keeps changes from here on.
    pub fn keep(&mut self) {
        self.keeps = true;
    }

    /// Does these decisions again, as far as they are those of this rank.
    pub fn replay(&mut self, me: Rank, decisions: &[Decision]) {
        let mine = |d: &&Decision| d.rank.is_none_or(|rank| rank == me);
        self.pinned = decisions.iter().filter(mine).copied().collect();
        self.pinned.sort_by_key(|d| (d.key, d.at));
    }

    /// Whether changes are kept.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// The way that is pinned for this message of a kind.
    pub fn pinned(&self, key: Key, message: u32) -> Option<Way> {
        if self.pinned.is_empty() {
            return None;
        }
        let behind = self.pinned.partition_point(|d| (d.key, d.at) <= (key, message));
        let last = self.pinned.get(behind.checked_sub(1)?)?;
        (last.key == key).then_some(last.way)
    }

    /// A way has come into force.
    pub(crate) fn note(&mut self, entry: &Entry, before: Option<Way>, facts: &Facts, message: &Message) {
        if !self.keeps {
            return;
        }
        if self.lines.len() >= LINES_MAX {
            self.dropped += 1;
            return;
        }
        let decision = Decision { rank: None, at: entry.messages, key: entry.key, way: entry.way() };
        let evidence = evidence(&entry.last, before, facts, message);
        self.lines.push(format!("{} # {evidence}", decision.text()));
    }

    /// The lines of a rank, without header.
    pub fn text(&self, me: Rank) -> String {
        let mut text: String = self.lines.iter().map(|line| format!("rank={me} {line}\n")).collect();
        if self.dropped > 0 {
            text += &format!("# rank {me}: {} further changes were not kept\n", self.dropped);
        }
        text
    }
}

impl Decision {
    fn text(&self) -> String {
        format!("at={} {} way={}", self.at, self.key.text(), self.way.name())
    }

    fn parse(line: &str) -> Result<Decision, String> {
        let mut words = line.split_whitespace();
        let mut next = |name: &str| {
            let word = words.next().ok_or_else(|| format!("`{name}=` is missing"))?;
            let value = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
            value.ok_or_else(|| format!("`{word}` stands where `{name}=` should"))
        };
        let rank = match next("rank")? {
            "*" => None,
            text => Some(text.parse().map_err(|_| format!("rank `{text}` is neither a number nor `*`"))?),
        };
        let at = next("at")?;
        let at = at.parse().map_err(|_| format!("`{at}` is no number of a message"))?;
        let key = Key {
            distance: one_of("to", next("to")?, &Distance::ALL.map(|(d, name)| (name, d)))?,
            size: size(next("size")?)?,
            reuse: one_of("reuse", next("reuse")?, &[0, 1, 2, 3].map(|at| (Key::REUSE[at as usize], at)))?,
            late: one_of("receiver", next("receiver")?, &[("early", false), ("late", true)])?,
            rtr: one_of("rtr", next("rtr")?, &[("no", false), ("yes", true)])?,
            eager: one_of("mode", next("mode")?, &[("synchronous", false), ("standard", true)])?,
        };
        let way = one_of("way", next("way")?, &Way::ALL.map(|(way, name)| (name, way)))?;
        match words.next() {
            Some(more) => Err(format!("`{more}` stands behind the end")),
            None => Ok(Decision { rank, at, key, way }),
        }
    }
}

impl Key {
    /// As journals and explanations write it.
    pub fn text(&self) -> String {
        format!(
            "to={} size={} reuse={} receiver={} rtr={} mode={}",
            self.distance.name(),
            bytes(1 << self.size),
            Key::REUSE[self.reuse as usize],
            if self.late { "late" } else { "early" },
            if self.rtr { "yes" } else { "no" },
            if self.eager { "standard" } else { "synchronous" },
        )
    }
}

/// The longest journal that is read, in bytes: what dozens of ranks write whose journals are full.
pub const BYTES_MAX: u64 = 256 << 20;

/// Reads a journal, whatever its file is: some have no end.
pub fn read(name: &str, from: impl std::io::Read) -> Result<Vec<Decision>, String> {
    read_at_most(name, from, BYTES_MAX)
}

fn read_at_most(name: &str, from: impl std::io::Read, most: u64) -> Result<Vec<Decision>, String> {
    use std::io::{BufRead, BufReader, Read};
    let mut from = BufReader::new(from.take(most + 1));
    // What does not begin as a journal is not read to its end.
    let is_one = from.fill_buf().map_err(|e| format!("{name}: {e}"))?.starts_with(b"tern-decisions");
    if !is_one {
        return parse(name, "");
    }
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| format!("{name}: {e}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("{name}: longer than {most} bytes, which no journal is"));
    }
    let text = String::from_utf8(bytes).map_err(|e| format!("{name}: {e}"))?;
    parse(name, &text)
}

/// Reads the text of a journal; `name` is that of its file, for errors, which name the line.
pub fn parse(name: &str, text: &str) -> Result<Vec<Decision>, String> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((_, first)) if first.starts_with("tern-decisions") => {
            return Err(format!("{name}:1: `{first}` is another version; this Tern reads `{HEADER}`"));
        }
        _ => return Err(format!("{name}:1: no journal of decisions: the first line is not `{HEADER}`")),
    }
    let mut decisions = Vec::new();
    for (at, line) in lines {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            decisions.push(Decision::parse(line).map_err(|text| format!("{name}:{}: {text}", at + 1))?);
        }
    }
    Ok(decisions)
}

/// Of each kind and rank the last decision alone, in force from the first message on.
pub fn last(mut decisions: Vec<Decision>) -> Vec<Decision> {
    decisions.sort_by_key(|d| (d.rank, d.key, d.at));
    let mut kept: Vec<Decision> = Vec::new();
    for decision in decisions {
        match kept.last_mut() {
            Some(last) if (last.rank, last.key) == (decision.rank, decision.key) => *last = decision,
            _ => kept.push(decision),
        }
    }
    kept.iter_mut().for_each(|d| d.at = 0);
    kept
}

/// A number of bytes as people write it, if it is a round one.
pub fn bytes(len: u64) -> String {
    match len {
        _ if len >= 1 << 20 && len.is_multiple_of(1 << 20) => format!("{}M", len >> 20),
        _ if len >= 1 << 10 && len.is_multiple_of(1 << 10) => format!("{}K", len >> 10),
        _ => len.to_string(),
    }
}

fn size(text: &str) -> Result<u8, String> {
    (0..=40u8)
        .find(|size| bytes(1 << size) == text)
        .ok_or_else(|| format!("size `{text}` is no power of two"))
}

fn one_of<T: Copy>(name: &str, text: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    found.ok_or_else(|| {
        let near = known.iter().min_by_key(|(word, _)| fabric::settings::distance(text, word));
        format!(
            "{name} `{text}` is unknown; the nearest known one is `{}`",
            near.map_or("", |(word, _)| word)
        )
    })
}

/// A time as people read it.
pub fn time(ns: f64) -> String {
    match ns.abs() {
        short if short < 1000.0 => format!("{ns:.0} ns"),
        short if short < 1e7 => format!("{:.1} us", ns / 1e3),
        _ => format!("{:.1} ms", ns / 1e6),
    }
}

/// The reason of a choice in words.
pub fn reason(choice: &Choice) -> String {
    match (choice.why, choice.runner_up) {
        (Why::Less(term, ns), Some((other, _))) => {
            format!("{} {} less than {}", term.name(), time(ns), other.name())
        }
        (Why::Seen, Some((other, _))) => format!("seen to be faster than {}", other.name()),
        _ => "no other way".into(),
    }
}

fn evidence(choice: &Choice, before: Option<Way>, facts: &Facts, message: &Message) -> String {
    let path = facts.path(message.distance);
    let mut text = format!("{} bytes: {} {}", message.len, choice.winner.name(), time(choice.cost_ns));
    if let Some((other, ns)) = choice.runner_up {
        text += &format!(", {} {}", other.name(), time(ns));
    }
    text += &format!("; {}", reason(choice));
    if let Some(before) = before {
        text += &format!("; before {}", before.name());
    }
    if !path.registration {
        return text;
    }
    text + &format!(
        "; register {} + {:.4} ns/B ({} {}), wire {} + {:.4} ns/B ({} {}), copy {:.4} ns/B",
        time(facts.register.fixed),
        facts.register.per_byte,
        facts.register.origin().name(),
        facts.register.count,
        time(path.write.fixed),
        path.write.per_byte,
        path.write.origin().name(),
        path.write.count,
        facts.copy_ns_per_byte(message.len),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, repeat};

    /// A file without end is refused, and not read for ever; so is a journal without end.
    #[test]
    fn a_file_without_end_is_no_journal() {
        let error = read("/dev/zero", repeat(0)).unwrap_err();
        assert!(error.contains("/dev/zero:1: no journal of decisions"), "{error}");
        let endless = format!("{HEADER}\n");
        let error = read_at_most("long", endless.as_bytes().chain(repeat(b'\n')), 1000).unwrap_err();
        assert_eq!(error, "long: longer than 1000 bytes, which no journal is");
        assert_eq!(read_at_most("short", endless.as_bytes(), 1000), Ok(Vec::new()));
        assert!(read("empty", [].as_slice()).is_err());
    }
}
