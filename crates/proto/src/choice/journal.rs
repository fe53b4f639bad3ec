//! The journal of choices: every change with its evidence, as lines that can be pinned and replayed.
//!
//! ```text
//! tern-decisions 2
//! rank=3 at=17 to=network size=64K reuse=new receiver=early rtr=no mode=standard way=superpipeline # why
//! ```
//! `at` is the number of the message of this kind from which the way is in force; what stands
//! behind `#` is for people. `rank=*` speaks of all ranks. Replayed, the same way comes into force at
//! the same message, and nothing is tried; kinds that the journal does not know are chosen as
//! ever. Reading and writing files is for those above: here are lines. Those of epochs, which have `puts=` where
//! these have `size=`, are read by [`crate::epoch::journal`].

use crate::choice::choose::{Choice, Entry, Key, Why};
use crate::choice::facts::Facts;
use crate::choice::terms::Message;
use crate::choice::way::Way;
use fabric::{Distance, Rank};

/// First line of a journal: what it is, and the version of its format and of the kinds of messages.
pub const HEADER: &str = "tern-decisions 2";
/// Changes that are kept of messages, and of epochs; more are counted.
const LINES_MAX: usize = 1 << 16;

/// A decision to be done again: of messages, or of what else has kinds and ways.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision<K = Key, W = Way> {
    /// Of which rank; `None` for all.
    pub rank: Option<Rank>,
    /// From which message of its kind on.
    pub at: u32,
    /// For which kind.
    pub key: K,
    /// Which way.
    pub way: W,
}

/// Changes that are kept, as lines.
#[derive(Debug, Default)]
pub struct Lines {
    keeps: bool,
    lines: Vec<String>,
    dropped: u64,
}

impl Lines {
    /// Keeps them from here on.
    pub fn keep(&mut self) {
        self.keeps = true;
    }

    /// Whether they are kept.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// One more.
    pub(crate) fn push(&mut self, line: impl FnOnce() -> String) {
        match self.lines.len() {
            _ if !self.keeps => {}
            LINES_MAX.. => self.dropped += 1,
            _ => self.lines.push(line()),
        }
    }

    /// Those of a rank, without header.
    pub fn text(&self, me: Rank) -> String {
        let mut text: String = self.lines.iter().map(|line| format!("rank={me} {line}\n")).collect();
        if self.dropped > 0 {
            text += &format!("# rank {me}: {} further changes were not kept\n", self.dropped);
        }
        text
    }
}

/// What a rank is to do again.
#[derive(Debug)]
pub struct Pins<K, W>(Vec<Decision<K, W>>);

impl<K, W> Default for Pins<K, W> {
    fn default() -> Self {
        Pins(Vec::new())
    }
}

impl<K: Ord + Copy, W: Copy> Pins<K, W> {
    /// Those of these decisions that are for this rank.
    pub fn of(me: Rank, decisions: &[Decision<K, W>]) -> Pins<K, W> {
        let mine = |d: &&Decision<K, W>| d.rank.is_none_or(|rank| rank == me);
        let mut pinned: Vec<_> = decisions.iter().filter(mine).copied().collect();
        pinned.sort_by_key(|d| (d.key, d.at));
        Pins(pinned)
    }

    /// The way of the message of this number among those of its kind.
    pub fn at(&self, key: K, number: u32) -> Option<W> {
        if self.0.is_empty() {
            return None;
        }
        let behind = self.0.partition_point(|d| (d.key, d.at) <= (key, number));
        let last = self.0.get(behind.checked_sub(1)?)?;
        (last.key == key).then_some(last.way)
    }
}

/// What one rank has changed, and what it is to do again.
#[derive(Debug, Default)]
pub struct Journal {
    lines: Lines,
    pinned: Pins<Key, Way>,
}

impl Journal {
    /// Keeps changes from here on.
    pub fn keep(&mut self) {
        self.lines.keep();
    }

    /// Does these decisions again, as far as they are those of this rank.
    pub fn replay(&mut self, me: Rank, decisions: &[Decision]) {
        self.pinned = Pins::of(me, decisions);
    }

    /// Whether changes are kept.
    pub fn keeps(&self) -> bool {
        self.lines.keeps()
    }

    /// The way that is pinned for this message of a kind.
    pub fn pinned(&self, key: Key, message: u32) -> Option<Way> {
        self.pinned.at(key, message)
    }

    /// A way has come into force.
    pub(crate) fn note(&mut self, entry: &Entry, before: Option<Way>, facts: &Facts, message: &Message) {
        let decision = Decision { rank: None, at: entry.messages, key: entry.key, way: entry.way() };
        let evidence = || evidence(&entry.last, before, facts, message);
        self.lines.push(|| format!("{} # {}", decision.text(), evidence()));
    }

    /// The lines of a rank, without header.
    pub fn text(&self, me: Rank) -> String {
        self.lines.text(me)
    }
}

/// The words of a line, each `name=value`.
pub(crate) struct Words<'a>(std::str::SplitWhitespace<'a>);

impl<'a> Words<'a> {
    pub(crate) fn of(line: &'a str) -> Words<'a> {
        Words(line.split_whitespace())
    }

    /// The value of the next one, which has this name.
    pub(crate) fn next(&mut self, name: &str) -> Result<&'a str, String> {
        let word = self.0.next().ok_or_else(|| format!("`{name}=` is missing"))?;
        let value = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        value.ok_or_else(|| format!("`{word}` stands where `{name}=` should"))
    }

    /// The value that stands for the next one, which has this name and is one of these words.
    pub(crate) fn one_of<T: Copy>(&mut self, name: &str, known: &[(&str, T)]) -> Result<T, String> {
        one_of(name, self.next(name)?, known)
    }

    /// With which every line begins: of which rank it speaks, from which message on, and how far away the peer is.
    pub(crate) fn head(&mut self) -> Result<(Option<Rank>, u32, Distance), String> {
        let rank = match self.next("rank")? {
            "*" => None,
            text => Some(text.parse().map_err(|_| format!("rank `{text}` is neither a number nor `*`"))?),
        };
        let at = self.next("at")?;
        let at = at.parse().map_err(|_| format!("`{at}` is no number of a message"))?;
        let distance = self.one_of("to", &Distance::ALL.map(|(d, name)| (name, d)))?;
        Ok((rank, at, distance))
    }

    /// That nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.0.next().map_or(Ok(()), |more| Err(format!("`{more}` stands behind the end")))
    }
}

impl Decision {
    fn text(&self) -> String {
        format!("at={} {} way={}", self.at, self.key.text(), self.way.name())
    }

    fn parse(line: &str) -> Result<Decision, String> {
        let mut words = Words::of(line);
        let (rank, at, distance) = words.head()?;
        let key = Key {
            distance,
            size: words.next("size").and_then(size)?,
            reuse: words.one_of("reuse", &[0, 1, 2, 3].map(|at| (Key::REUSE[at as usize], at)))?,
            late: words.one_of("receiver", &[("early", false), ("late", true)])?,
            rtr: words.one_of("rtr", &[("no", false), ("yes", true)])?,
            eager: words.one_of("mode", &[("synchronous", false), ("standard", true)])?,
        };
        let way = words.one_of("way", &Way::ALL.map(|(way, name)| (name, way)))?;
        words.end()?;
        Ok(Decision { rank, at, key, way })
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

/// Reads the text of a journal, whatever its file is: some have no end.
pub fn read(name: &str, from: impl std::io::Read) -> Result<String, String> {
    read_at_most(name, from, BYTES_MAX)
}

fn read_at_most(name: &str, from: impl std::io::Read, most: u64) -> Result<String, String> {
    use std::io::{BufRead, BufReader, Read};
    let mut from = BufReader::new(from.take(most + 1));
    // What does not begin as a journal is not read to its end.
    let is_one = from.fill_buf().map_err(|e| format!("{name}: {e}"))?.starts_with(b"tern-decisions");
    if !is_one {
        return Err(none(name));
    }
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map_err(|e| format!("{name}: {e}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("{name}: longer than {most} bytes, which no journal is"));
    }
    String::from_utf8(bytes).map_err(|e| format!("{name}: {e}"))
}

fn none(name: &str) -> String {
    format!("{name}:1: no journal of decisions: the first line is not `{HEADER}`")
}

/// What the text of a journal says of messages; `name` is that of its file, for errors, which name the line.
pub fn parse(name: &str, text: &str) -> Result<Vec<Decision>, String> {
    each_line(name, text, |line| if is_of_epochs(line) { None } else { Some(Decision::parse(line)) })
}

/// Whether a line speaks of epochs.
pub(crate) fn is_of_epochs(line: &str) -> bool {
    line.split_whitespace().nth(3).is_some_and(|word| word.starts_with("puts="))
}

/// What the lines of a journal say that the reader takes for his.
pub(crate) fn each_line<D>(
    name: &str,
    text: &str,
    reads: impl Fn(&str) -> Option<Result<D, String>>,
) -> Result<Vec<D>, String> {
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, HEADER)) => {}
        Some((_, first)) if first.starts_with("tern-decisions") => {
            return Err(format!("{name}:1: `{first}` is another version; this Tern reads `{HEADER}`"));
        }
        _ => return Err(none(name)),
    }
    let mut decisions = Vec::new();
    for (at, line) in lines {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(read) = Some(line).filter(|line| !line.is_empty()).and_then(&reads) {
            decisions.push(read.map_err(|text| format!("{name}:{}: {text}", at + 1))?);
        }
    }
    Ok(decisions)
}

/// Of each kind and rank the last decision alone, in force from the first message on.
pub fn last<K: Ord + Copy, W: Copy>(mut decisions: Vec<Decision<K, W>>) -> Vec<Decision<K, W>> {
    decisions.sort_by_key(|d| (d.rank, d.key, d.at));
    let mut kept: Vec<Decision<K, W>> = Vec::new();
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
        assert_eq!(read_at_most("short", endless.as_bytes(), 1000), Ok(endless.clone()));
        assert!(read("empty", [].as_slice()).is_err());
    }
}
