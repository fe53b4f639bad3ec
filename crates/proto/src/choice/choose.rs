//! The choice among the protocols: the least predicted cost, changed only with reason.
//!
//! [`choose`] is pure: facts and a message in, the winner and why out. [`Choices`] keeps what is
//! in force for each kind of message ([`Key`]), so that the path of a message is a look into a
//! table. Every message that ends brings what it took; how that compares with the prediction
//! corrects the prediction for its kind and way ([`Seen`]), which covers what no formula
//! knows: the receiver's habits, contention, caches. When another way comes into force says [`POLICY`], and it does only
//! after [`TRIES`] messages have tried it. Which ways the first messages of a kind try depends on how far the model is
//! to be believed: where what was seen agrees with it, only those predicted to cost hardly more. From then on one
//! message out of as many as [`POLICY`] says tries the runner-up, if it is not expected to cost more than [`WORTH`]
//! times as much: a way that is never taken cannot be seen to have become cheaper.
//!
//! Contention makes every way slower than predicted. So a way that nothing is known of is taken to be as much slower
//! as the least slow of the others, but for its registrations, which need no wire; else those that were never taken
//! would look cheapest, and the choice would go round them all.

use crate::choice::facts::Facts;
use crate::choice::journal::Journal;
use crate::choice::terms::{self, Cost, Message, Term};
use crate::choice::way::Way;
use fabric::Distance;
use fabric::arms::{Arms, Policy};
use fabric::estimate::{Averaging, Estimate};

/// Steps are messages of a kind: their times differ by a few percent from one to the next, and some are under way
/// when a way is changed. What a way costs may change with the application's phase, so it is tried as often as ever.
pub const POLICY: Policy = Policy { margin: 0.04, dwell: 8, tries: (64, 64) };
/// How what was seen corrects predictions: nothing is expected of a quotient, it may be off either way, and the first
/// message by a way may pay for what is there from then on, such as staging memory.
const SEEN: Averaging = Averaging { above: 2.0, below: 2.0, once: 2.0, ..Averaging::mean(32) };
/// After the first ones, messages of a kind between two choices.
const EVERY: u32 = 8;
/// How much dearer than the winner a way may be that is worth a try.
const WORTH: f64 = 2.0;
/// Messages that try a way before it is judged.
const TRIES: u8 = 2;
/// How much dearer than what is in force a way may look whose first try has been seen, to be tried again.
const AGAIN: f64 = 1.5;
/// The same for one that is known from other messages of this length.
const NEAR: f64 = 1.05;
/// How much dearer one may look that nothing is known of: where the model has been right, where it has been wrong,
/// and before two ways have been compared.
const SURE: f64 = 1.08;
const UNSURE: f64 = 1.3;
const FIRST: f64 = 1.25;
/// Messages of a kind after which it is known: until then each may try a way.
const SETTLED: u32 = 24;
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
    const ALIKE: usize = Distance::ALL.len() * (SIZES.1 - SIZES.0 + 1) as usize;
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

    /// Without what the formulas know well: reuse, lateness, and whether an RTR waits.
    fn alike(self) -> usize {
        let sizes = (SIZES.1 - SIZES.0 + 1) as usize;
        self.distance as usize * sizes + (self.size as u32 - SIZES.0) as usize
    }

    fn index(self) -> usize {
        let flags = self.late as usize | (self.rtr as usize) << 1 | (self.eager as usize) << 2;
        (self.alike() * Key::REUSE.len() + self.reuse as usize) * 8 + flags
    }
}

/// How what was seen compares with what was predicted, for one kind of message: quotients by way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen([Estimate; Way::ALL.len()]);

impl Default for Seen {
    fn default() -> Seen {
        Seen([Estimate::expected(1.0); Way::ALL.len()])
    }
}

impl Seen {
    /// A message that was predicted to take one time took another.
    pub fn observe(&mut self, way: Way, predicted_ns: f64, seen_ns: f64) {
        self.0[way as usize].observe(&SEEN, seen_ns / predicted_ns.max(1.0));
    }

    /// What to multiply a prediction by.
    pub fn correction(&self, way: Way) -> f64 {
        self.0[way as usize].value().unwrap_or(1.0)
    }

    /// Messages that were seen.
    pub fn count(&self, way: Way) -> u32 {
        self.0[way as usize].count()
    }

    /// The corrections of the ways that were seen.
    fn seen(&self) -> impl Iterator<Item = f64> {
        self.0.iter().filter(|ratio| ratio.count() > 0).filter_map(Estimate::value)
    }

    /// How far apart the ways are: what the model does not know.
    fn spread(&self) -> f64 {
        let (least, most) =
            self.seen().fold((f64::MAX, 0.0f64), |(a, b), ratio| (ratio.min(a), ratio.max(b)));
        if most > least { most / least } else { FIRST }
    }

    /// The same, with what is known from elsewhere of ways that have not been seen. Those of which nothing is known
    /// are as slow as the least slow one of the others: the wire may be busy.
    fn or(&self, other: &Seen) -> Seen {
        let least = self.seen().fold(f64::INFINITY, f64::min);
        let busy = if least.is_finite() { least.max(1.0) } else { 1.0 };
        let mut both = *self;
        for (known, other) in both.0.iter_mut().zip(&other.0).filter(|(known, _)| known.count() == 0) {
            let is_judged = other.count() >= u32::from(TRIES);
            *known = if is_judged { *other } else { Estimate::expected(busy) };
        }
        both
    }

    /// What a message is expected to take: registering takes no longer because the wire is busy.
    fn expected_ns(&self, way: Way, cost: &Cost) -> f64 {
        let registering = cost.get(Term::Registration) + cost.get(Term::Deregistration);
        let apart = if self.count(way) == 0 { registering } else { 0.0 };
        apart + (cost.total_ns() - apart) * self.correction(way)
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
        let Some(cost) = terms::cost(*way, facts, message) else { continue };
        let entry = (*way, cost, seen.expected_ns(*way, &cost));
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

/// What is known of the ways.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    seen: Seen,
    /// How often each was taken, as far as it matters.
    tried: [u8; Way::ALL.len()],
}

impl Known {
    fn takes(&mut self, way: Way) {
        let tried = &mut self.tried[way as usize];
        *tried = tried.saturating_add(1);
    }

    fn takes_back(&mut self, way: Way) {
        let tried = &mut self.tried[way as usize];
        *tried = tried.saturating_sub(1);
    }

    fn is_tried(&self, way: Way) -> bool {
        self.tried[way as usize] >= TRIES
    }

    fn is_judged(&self, way: Way) -> bool {
        self.seen.count(way) >= u32::from(TRIES)
    }
}

/// What is in force for one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Which kind.
    pub key: Key,
    /// The outcome of the last choice.
    pub last: Choice,
    /// Messages of this kind.
    pub messages: u32,
    arms: Arms<Way>,
    known: Known,
}

/// The choices in force at one rank.
#[derive(Debug, Default)]
pub struct Choices {
    /// By key: 0, or one more than the place of its entry; empty until the first message.
    index: Vec<u16>,
    /// What is known of the ways from messages of all kinds that have distance and length in common.
    alike: Vec<Known>,
    entries: Vec<Entry>,
    /// What changed, and what is to be done again.
    pub journal: Journal,
    /// For tools that listen: lengths with the way before and after, as numbers.
    changes: Option<Vec<[u64; 3]>>,
}

/// Most changes that wait for a tool; more are not told.
const CHANGES_MAX: usize = 64;

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
    /// From here on changes are kept for a tool, or not.
    pub fn listen(&mut self, is_wanted: bool) {
        match is_wanted {
            true => drop(self.changes.get_or_insert_default()),
            false => self.changes = None,
        }
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<[u64; 3]> {
        self.changes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The way of a message, which is counted, and what it is predicted to cost. `None` if no way is
    /// open to it.
    pub fn take(&mut self, facts: &Facts, message: &Message, ways: &[Way]) -> Option<(Way, f64)> {
        let key = Key::of(message);
        let at = match self.place(key) {
            Some(at) => at,
            None => self.insert(key, facts, message, ways)?,
        };
        let alike = &mut self.alike[key.alike()];
        let entry = &mut self.entries[at];
        entry.messages += 1;
        entry.arms.step();
        let before = entry.way();
        let mut way = match self.journal.pinned(key, entry.messages) {
            Some(pinned) => {
                entry.arms.change(pinned);
                pinned
            }
            None => entry.next(facts, message, ways, alike),
        };
        if terms::cost(way, facts, message).is_none() {
            way = choose(facts, message, &entry.known.seen.or(&alike.seen), ways)?.winner; // not open to this very message
        }
        entry.known.takes(way);
        alike.takes(way);
        if entry.way() != before {
            self.journal.note(entry, Some(before), facts, message);
            if let Some(changes) = self.changes.as_mut().filter(|changes| changes.len() < CHANGES_MAX) {
                changes.push([message.len as u64, before as u64, entry.way() as u64]);
            }
        }
        Some((way, terms::cost(way, facts, message)?.total_ns()))
    }

    /// A message that was predicted to take one time took another.
    pub fn ended(&mut self, key: Key, way: Way, predicted_ns: f64, seen_ns: f64) {
        if let Some(at) = self.place(key) {
            self.entries[at].known.seen.observe(way, predicted_ns, seen_ns);
            self.alike[key.alike()].seen.observe(way, predicted_ns, seen_ns);
        }
    }

    /// Nothing can be said of a message that was to try a way.
    pub fn untold(&mut self, key: Key, way: Way) {
        if let Some(at) = self.place(key) {
            self.entries[at].known.takes_back(way);
            self.alike[key.alike()].takes_back(way);
        }
    }

    /// Whether it would pay if an RTR waited for such messages, as far as is known: `way` is what they take without.
    pub fn would_write(&self, facts: &Facts, message: &Message, way: Way) -> bool {
        let known = |key: Key| self.entry(key).map_or(Known::default(), |entry| entry.known);
        let alike = |key: Key| self.alike.get(key.alike()).map_or(Seen::default(), |alike| alike.seen);
        let with = Message { rtr: true, ..*message };
        let (Some(write), Some(cost)) =
            (terms::cost(Way::Write, facts, &with), terms::cost(way, facts, message))
        else {
            return true;
        };
        let key = Key::of(message);
        let ns = known(key).seen.or(&alike(key)).expected_ns(way, &cost);
        let known = known(Key::of(&with));
        if known.is_judged(Way::Write) {
            return write.total_ns() * known.seen.correction(Way::Write) < ns;
        }
        // Where both directions are busy, or ranks compute, no formula knows what is spared.
        write.total_ns() < ns * FIRST
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
        if self.index.is_empty() {
            self.index = vec![0; Key::COUNT];
            self.alike = vec![Known::default(); Key::ALIKE];
        }
        let last = choose(facts, message, &Seen::default().or(&self.alike[key.alike()].seen), ways)?;
        let arms = Arms::new(self.journal.pinned(key, 0).unwrap_or(last.winner), &POLICY);
        let entry = Entry { key, last, messages: 0, arms, known: Known::default() };
        self.journal.note(&entry, None, facts, message);
        self.entries.push(entry);
        self.index[key.index()] = self.entries.len() as u16;
        Some(self.entries.len() - 1)
    }
}

impl Entry {
    /// The way in force.
    pub fn way(&self) -> Way {
        self.arms.in_force()
    }

    /// What was seen of each way.
    pub fn seen(&self) -> &Seen {
        &self.known.seen
    }

    /// The way of the next message: that in force, which this may change, or one that is tried.
    fn next(&mut self, facts: &Facts, message: &Message, ways: &[Way], alike: &Known) -> Way {
        let way = self.way();
        let is_due = self.arms.is_due(&POLICY);
        if self.messages > SETTLED && !self.messages.is_multiple_of(EVERY) {
            return way;
        }
        let seen = self.known.seen.or(&alike.seen);
        let cost_ns = |way: Way| terms::cost(way, facts, message).map(|cost| seen.expected_ns(way, &cost));
        let Some(in_force_ns) = cost_ns(way) else {
            let Some(choice) = choose(facts, message, &seen, ways) else { return way };
            self.last = choice;
            self.arms.change(choice.winner); // what was possible before is not any more
            return choice.winner;
        };
        // Where nobody tells times there are only predictions.
        let is_told = self.known.seen.count(way) > 0 || self.messages <= POLICY.dwell;
        let is_open = |other: &Way| *other == way || self.known.is_judged(*other) || !is_told;
        let open: Vec<Way> = ways.iter().copied().filter(is_open).collect();
        let Some(choice) = choose(facts, message, &seen, &open) else { return way };
        // For people: what was not tried has a prediction all the same.
        let all = choose(facts, message, &seen, ways).filter(|all| all.winner == choice.winner);
        self.last = all.unwrap_or(choice);
        if !self.known.is_tried(way) {
            return way;
        }
        let may_try = self.known.seen.count(way) > 0 && (self.messages <= SETTLED || is_due);
        if may_try && let Some(way) = self.worth_a_try(ways, choice.cost_ns, alike, cost_ns) {
            return way;
        }
        if self.arms.gives_way(&POLICY, choice.cost_ns, in_force_ns) {
            self.arms.change(choice.winner);
        } else if is_due {
            return self.nearest(ways, choice.cost_ns, cost_ns).unwrap_or(way);
        }
        self.way()
    }

    /// The cheapest of the ways that are not in force, if it is not far dearer than the best one.
    fn nearest(&self, ways: &[Way], best_ns: f64, cost_ns: impl Fn(Way) -> Option<f64>) -> Option<Way> {
        let others = ways.iter().filter(|way| **way != self.way());
        let costs = others.filter_map(|way| Some((*way, cost_ns(*way)?)));
        let nearest = costs.min_by(|a, b| a.1.total_cmp(&b.1));
        nearest.filter(|(_, ns)| *ns <= WORTH * best_ns).map(|(way, _)| way)
    }

    /// A way that has not been judged and may be worth it, the cheapest one first.
    fn worth_a_try(
        &self,
        ways: &[Way],
        best_ns: f64,
        alike: &Known,
        cost_ns: impl Fn(Way) -> Option<f64>,
    ) -> Option<Way> {
        let unknown = (self.known.seen.or(&alike.seen).spread() * NEAR).clamp(SURE, UNSURE);
        let worth = |way: Way| {
            let most = match self.known.seen.count(way) {
                _ if self.known.is_tried(way) => return None,
                0 if alike.is_judged(way) => NEAR,
                0 if alike.is_tried(way) => return None, // their times will be known soon
                0 => unknown,
                // The receiver may have had to register what stays so.
                _ if self.key.reuse >= 2 => f64::INFINITY,
                _ => AGAIN,
            };
            let ns = cost_ns(way)?;
            (ns <= most * best_ns).then_some((way, ns))
        };
        let open = ways.iter().filter_map(|way| worth(*way));
        open.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(way, _)| way)
    }
}
