//! The choice among the protocols: the least predicted cost, changed only with reason.
//!
//! [`choose`] is pure: facts and a message in, the winner and why out. [`Choices`] keeps what is
//! in force for each kind of message ([`Key`]), so that the path of a message is a look into a
//! table. Every message that ends brings what it took; how that compares with the prediction
//! corrects the prediction for its kind and way ([`Seen`]), which covers what no formula
//! knows: the receiver's habits, contention, caches. Another way comes into force when it is cheaper
//! by [`MARGIN`] and the one in force has been so for [`DWELL`] messages. One of [`EXPLORE`]
//! messages tries the runner-up, if it is not predicted to cost more than [`WORTH`] times as much:
//! a way that is never taken cannot be seen to have become cheaper.

use crate::cost::{self, Cost, Message, Term, Way};
use crate::facts::Facts;
use crate::journal::Journal;
use fabric::Distance;

/// By which part a way must be cheaper than the one in force to replace it.
pub const MARGIN: f64 = 0.04;
/// Messages for which a way stays in force at least.
pub const DWELL: u32 = 8;
/// Messages of a kind between two that explore.
pub const EXPLORE: u32 = 64;
/// After the first ones, messages of a kind between two choices.
const EVERY: u32 = 8;
/// How much dearer than the winner a way may be that is worth a try.
const WORTH: f64 = 2.0;
/// As how many observations the model counts against what was seen: a way that is tried and found much dearer
/// than predicted must not come into force.
const TRUST: u32 = 1;
/// Observations after which older ones fade.
const MEMORY: u32 = 32;
/// By which factor one observation may differ from what is known.
const OUTLIER: f64 = 2.0;
/// Shortest and longest lengths that are told apart: 2^7 and 2^30.
const SIZES: (u32, u32) = (7, 30);

/// Messages that are expected to cost the same, and share a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Key {
    /// How far the receiver is.
    pub distance: Distance,
    /// The length, as a power of two.
    pub size: u8,
    /// Class of the buffer's reuse: see [`Key::REUSE`].
    pub reuse: u8,
    /// The receiver comes late.
    pub late: bool,
    /// An RTR waits.
    pub rtr: bool,
    /// The message may go eagerly.
    pub eager: bool,
}

impl Key {
    /// Names of the classes of reuse: never before, now and then, often, nearly always registered.
    pub const REUSE: [&'static str; 4] = ["new", "some", "often", "always"];
    const COUNT: usize = Distance::ALL.len() * (SIZES.1 - SIZES.0 + 1) as usize * Key::REUSE.len() * 8;

    /// The kind of a message.
    pub fn of(message: &Message) -> Key {
        let size = (message.len.max(1).ilog2()).clamp(SIZES.0, SIZES.1);
        let reuse = [0.25, 0.7, 0.95].iter().filter(|least| message.reuse >= **least).count();
        Key {
            distance: message.distance,
            size: size as u8,
            reuse: reuse as u8,
            late: message.late_ns > 0.0,
            rtr: message.rtr,
            eager: message.eager,
        }
    }

    fn index(self) -> usize {
        let sizes = (SIZES.1 - SIZES.0 + 1) as usize;
        let flags = self.late as usize | (self.rtr as usize) << 1 | (self.eager as usize) << 2;
        let place = self.distance as usize * sizes + (self.size as u32 - SIZES.0) as usize;
        (place * Key::REUSE.len() + self.reuse as usize) * 8 + flags
    }
}

/// How what was seen compares with what was predicted, for one kind of message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen([(f64, u32); Way::ALL.len()]);

impl Default for Seen {
    fn default() -> Seen {
        Seen([(1.0, 0); Way::ALL.len()])
    }
}

impl Seen {
    /// A message that was predicted to take one time took another. The first one may have paid for what is there
    /// from then on, such as staging memory: the second one takes its place.
    pub fn observe(&mut self, way: Way, predicted_ns: f64, seen_ns: f64) {
        let (ratio, count) = &mut self.0[way as usize];
        *count = count.saturating_add(1);
        if *count == 2 {
            *ratio = 1.0;
        }
        let bounded = (seen_ns / predicted_ns.max(1.0)).clamp(*ratio / OUTLIER, *ratio * OUTLIER);
        *ratio += (bounded - *ratio) / count.saturating_add(TRUST).min(MEMORY) as f64;
    }

    /// What to multiply a prediction by.
    pub fn correction(&self, way: Way) -> f64 {
        self.0[way as usize].0
    }

    /// Messages that were seen.
    pub fn count(&self, way: Way) -> u32 {
        self.0[way as usize].1
    }
}

/// The term that decided, and what it spares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Why {
    /// There was no other way.
    Only,
    /// This term of the winner is less than the runner-up's by so many ns.
    Less(Term, f64),
    /// By the formulas the runner-up would win; what was seen says otherwise.
    Seen,
}

/// The outcome of a choice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Choice {
    /// The cheapest way.
    pub winner: Way,
    /// What it is predicted to cost, corrected by what was seen, in ns.
    pub cost_ns: f64,
    /// The next one, and its cost.
    pub runner_up: Option<(Way, f64)>,
    /// By which part of the winner's cost the runner-up is dearer.
    pub margin: f64,
    /// What decided.
    pub why: Why,
}

/// The cheapest way for a message, among `ways`; `None` if none of them can take it.
pub fn choose(facts: &Facts, message: &Message, seen: &Seen, ways: &[Way]) -> Option<Choice> {
    let mut best: Option<(Way, Cost, f64)> = None;
    let mut second = best;
    for way in ways {
        let Some(cost) = cost::cost(*way, facts, message) else { continue };
        let entry = (*way, cost, cost.total_ns() * seen.correction(*way));
        if best.is_none_or(|best| entry.2 < best.2) {
            second = best.replace(entry);
        } else if second.is_none_or(|second| entry.2 < second.2) {
            second = Some(entry);
        }
    }
    let (winner, cost, cost_ns) = best?;
    let why = second.map_or(Why::Only, |(_, other, _)| why(&cost, &other));
    let runner_up = second.map(|(way, _, ns)| (way, ns));
    let margin = runner_up.map_or(f64::INFINITY, |(_, ns)| ns / cost_ns.max(1.0) - 1.0);
    Some(Choice { winner, cost_ns, runner_up, margin, why })
}

/// The term that speaks most for the first one.
fn why(winner: &Cost, other: &Cost) -> Why {
    let spared = |term: Term| other.get(term) - winner.get(term);
    let term = Term::ALL.map(|(term, _)| term).into_iter().max_by(|a, b| spared(*a).total_cmp(&spared(*b)));
    match term {
        Some(term) if winner.total_ns() <= other.total_ns() => Why::Less(term, spared(term)),
        _ => Why::Seen,
    }
}

/// What is in force for one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which kind.
    pub key: Key,
    /// The way in force.
    pub way: Way,
    /// The outcome of the last choice.
    pub last: Choice,
    /// Messages of this kind.
    pub messages: u32,
    /// Messages since the last change.
    pub since: u32,
    /// What was seen of each way.
    pub seen: Seen,
}

/// The choices in force at one rank.
#[derive(Debug, Default)]
pub struct Choices {
    /// By key: 0, or one more than the place of its entry; empty until the first message.
    index: Vec<u16>,
    entries: Vec<Entry>,
    /// What changed, and what is to be done again.
    pub journal: Journal,
}

/// The ways of a message that is too long for eager, or may be.
pub const LONG: [Way; 7] = [
    Way::Write,
    Way::Rget,
    Way::Rput,
    Way::Pipeline,
    Way::CachingPipeline,
    Way::Superpipeline,
    Way::CopyPipeline,
];

impl Choices {
    /// The way of a message, which is counted, and what it is predicted to cost. `None` if no way is
    /// open to it.
    pub fn take(&mut self, facts: &Facts, message: &Message, ways: &[Way]) -> Option<(Way, f64)> {
        let key = Key::of(message);
        let at = match self.place(key) {
            Some(at) => at,
            None => self.insert(key, facts, message, ways)?,
        };
        let entry = &mut self.entries[at];
        entry.messages += 1;
        entry.since = entry.since.saturating_add(1);
        let before = entry.way;
        let mut way = match self.journal.pinned(key, entry.messages) {
            Some(pinned) => {
                entry.way = pinned;
                pinned
            }
            None => entry.next(facts, message, ways),
        };
        if cost::cost(way, facts, message).is_none() {
            way = choose(facts, message, &entry.seen, ways)?.winner; // not open to this very message
        }
        if entry.way != before {
            entry.since = 0;
            self.journal.note(entry, Some(before), facts, message);
        }
        Some((way, cost::cost(way, facts, message)?.total_ns()))
    }

    /// A message that was predicted to take one time took another.
    pub fn ended(&mut self, key: Key, way: Way, predicted_ns: f64, seen_ns: f64) {
        if let Some(at) = self.place(key) {
            self.entries[at].seen.observe(way, predicted_ns, seen_ns);
        }
    }

    /// What is in force for a kind of message.
    pub fn entry(&self, key: Key) -> Option<&Entry> {
        self.place(key).map(|at| &self.entries[at])
    }

    /// What is in force for the kinds of messages that there were.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn place(&self, key: Key) -> Option<usize> {
        (*self.index.get(key.index())? as usize).checked_sub(1)
    }

    fn insert(&mut self, key: Key, facts: &Facts, message: &Message, ways: &[Way]) -> Option<usize> {
        let seen = Seen::default();
        let last = choose(facts, message, &seen, ways)?;
        if self.index.is_empty() {
            self.index = vec![0; Key::COUNT];
        }
        let way = self.journal.pinned(key, 0).unwrap_or(last.winner);
        let entry = Entry { key, way, last, messages: 0, since: 0, seen };
        self.journal.note(&entry, None, facts, message);
        self.entries.push(entry);
        self.index[key.index()] = self.entries.len() as u16;
        Some(self.entries.len() - 1)
    }
}

impl Entry {
    /// The way of the next message: that in force, which this may change, or one that is tried.
    fn next(&mut self, facts: &Facts, message: &Message, ways: &[Way]) -> Way {
        if self.messages > EVERY && !self.messages.is_multiple_of(EVERY) {
            return self.way;
        }
        let Some(choice) = choose(facts, message, &self.seen, ways) else { return self.way };
        self.last = choice;
        let in_force =
            cost::cost(self.way, facts, message).map(|c| c.total_ns() * self.seen.correction(self.way));
        let Some(in_force) = in_force else {
            self.way = choice.winner; // what was possible before is not any more
            return self.way;
        };
        if choice.winner != self.way && self.since > DWELL && in_force > choice.cost_ns * (1.0 + MARGIN) {
            self.way = choice.winner;
        } else if self.messages.is_multiple_of(EXPLORE)
            && let Some(tried) = [Some((choice.winner, choice.cost_ns)), choice.runner_up]
                .into_iter()
                .flatten()
                .find(|(way, ns)| *way != self.way && *ns <= WORTH * choice.cost_ns)
        {
            return tried.0;
        }
        self.way
    }
}
