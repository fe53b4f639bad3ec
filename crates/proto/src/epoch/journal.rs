//! What became of epochs, by kind: reordered, merged, issued early, predicted and observed.
//!
//! In a journal ([`crate::choice::journal`]) a line is a change of what plans of a kind are like, and can be replayed as those of messages:
//! ```text
//! rank=0 at=1 to=network puts=4 put=1K gets=0 get=0 order=issue messages=256 sync=merged # why
//! ```
//! `puts` and `gets` are how many there are, `put` and `get` how long, rounded down to powers of two; `messages` is the longest operation that
//! goes with others in a message. Behind the changes stands what became of each kind. When an operation leaves is decided when it is called,
//! before the kind of its epoch is known: that is not replayed.

use crate::choice::journal::{Decision, Lines, Pins, Words, bytes, each_line, is_of_epochs, time};
use crate::epoch::plan::{Form, InMessages, Plan, Step};
use crate::epoch::{Action, Held, Order};
use fabric::{Distance, Rank};
use std::collections::BTreeMap;

/// Kinds that are kept apart; further ones are counted with each other.
const KINDS_MAX: usize = 256;

/// Epochs for one target that are alike: counts and lengths by powers of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EpochKind {
    to: Distance,
    puts: u8,
    gets: u8,
    put_bytes: u8,
    get_bytes: u8,
}

fn class(n: usize) -> u8 {
    n.checked_ilog2().map_or(0, |log| log as u8 + 1)
}

/// The least number of a class.
fn least(class: u8) -> u64 {
    if class == 0 { 0 } else { 1 << (class - 1) }
}

impl EpochKind {
    /// That of these operations at a target as far away as this.
    pub fn of(to: Distance, ops: &[Held]) -> EpochKind {
        let of = |action: Action| {
            let all = ops.iter().filter(move |op| op.action == action);
            let (count, bytes) = all.fold((0, 0), |(count, bytes), op| (count + 1, bytes + op.local.len));
            (class(count), class(bytes.checked_div(count).unwrap_or(0)))
        };
        let ((puts, put_bytes), (gets, get_bytes)) = (of(Action::Put), of(Action::Get));
        EpochKind { to, puts, gets, put_bytes, get_bytes }
    }

    /// Those that are not kept apart.
    fn rest(to: Distance) -> EpochKind {
        EpochKind { to, puts: 0, gets: 0, put_bytes: 0, get_bytes: 0 }
    }

    fn text(&self) -> String {
        let some = |count: u8, len: u8, what: &str| match count {
            0 => format!("no {what}"),
            _ => format!("{}+ {what} of {}+", least(count), bytes(least(len))),
        };
        format!("{}, {}", some(self.puts, self.put_bytes, "Puts"), some(self.gets, self.get_bytes, "Gets"))
    }

    /// As journals write it.
    fn key(&self) -> String {
        let (puts, gets) = (least(self.puts), least(self.gets));
        let (put, get) = (bytes(least(self.put_bytes)), bytes(least(self.get_bytes)));
        format!("to={} puts={puts} put={put} gets={gets} get={get}", self.to.name())
    }
}

/// What became of epochs of a kind.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Entry {
    /// Epochs.
    pub epochs: u64,
    /// Operations.
    pub ops: u64,
    /// Of them those that left before an earlier one.
    pub reordered: u64,
    /// Those that went in messages with others or with the synchronisation.
    pub bundled: u64,
    /// Epochs whose synchronisation rode with operations.
    pub merged: u64,
    /// Operations that left when they were called.
    pub early: u64,
    /// What the last plan was like.
    pub form: Option<Form>,
    /// Epochs that have ended.
    pub ended: u64,
    /// Sum of what the origin was predicted to wait, in ns.
    pub predicted_ns: f64,
    /// Sum of what it waited, in ns.
    pub observed_ns: f64,
}

/// The account of one rank.
#[derive(Debug, Default)]
pub struct Journal {
    kinds: BTreeMap<EpochKind, Entry>,
    lines: Lines,
    pinned: Pins<EpochKind, Form>,
}

impl Journal {
    /// Keeps changes from here on.
    pub fn keep(&mut self) {
        self.lines.keep();
    }

    /// Makes these plans again, as far as they are those of this rank.
    pub fn replay(&mut self, me: Rank, decisions: &[Decision<EpochKind, Form>]) {
        self.pinned = Pins::of(me, decisions);
    }

    /// What the next plan of a kind is to be like, if that is said.
    pub fn pinned(&self, kind: EpochKind) -> Option<Form> {
        let epochs = self.kinds.get(&kind).map_or(0, |entry| entry.epochs);
        self.pinned.at(kind, epochs as u32 + 1)
    }

    /// A plan is carried out; `early` operations have left before.
    pub fn planned(&mut self, kind: EpochKind, plan: &Plan, early: usize) {
        let (kind, is_kept) = self.place(kind);
        let entry = self.kinds.entry(kind).or_default();
        let in_messages = |step: &Step| if let Step::Message(parts, _) = step { parts.len() } else { 0 };
        let direct = plan.steps.iter().filter(|step| matches!(step, Step::Direct(_))).count();
        let before = (entry.form != Some(plan.form)).then(|| entry.clone());
        entry.epochs += 1;
        entry.ops += (direct + plan.bundled + early) as u64;
        entry.reordered += plan.reordered as u64;
        entry.bundled += plan.bundled.min(plan.steps.iter().map(in_messages).sum()) as u64;
        entry.merged += u64::from(plan.merged);
        entry.early += early as u64;
        entry.form = Some(plan.form);
        entry.predicted_ns += plan.predicted.total_ns();
        if let Some(before) = before.filter(|_| is_kept) {
            let at = entry.epochs;
            self.lines.push(|| {
                let evidence = evidence(plan, direct + plan.bundled + early, early, &before);
                format!("at={at} {} {} # {evidence}", kind.key(), plan.form.text())
            });
        }
    }

    /// An epoch of this kind has ended so long after its end was called.
    pub fn ended(&mut self, kind: EpochKind, took_ns: f64) {
        let (kind, _) = self.place(kind);
        let entry = self.kinds.entry(kind).or_default();
        entry.ended += 1;
        entry.observed_ns += took_ns;
    }

    /// Under which kind one is counted, and whether that is its own.
    fn place(&self, kind: EpochKind) -> (EpochKind, bool) {
        let is_kept = self.kinds.contains_key(&kind) || self.kinds.len() < KINDS_MAX;
        (if is_kept { kind } else { EpochKind::rest(kind.to) }, is_kept)
    }

    /// What there is, by kind.
    pub fn entries(&self) -> impl Iterator<Item = (&EpochKind, &Entry)> {
        self.kinds.iter()
    }

    /// For people, a line for each kind, each behind `prefix`.
    pub fn text(&self, prefix: &str) -> String {
        self.kinds.iter().map(|(kind, entry)| format!("{prefix}{}\n", line(kind, entry))).collect()
    }

    /// The lines of a rank in a journal: the changes, then what became of each kind. None where they are not kept.
    pub fn lines(&self, me: Rank) -> String {
        if !self.lines.keeps() {
            return String::new();
        }
        self.lines.text(me) + &self.text(&format!("# rank {me}: "))
    }
}

/// What the text of a journal says of epochs; `name` is that of its file, for errors, which name the line.
pub fn parse(name: &str, text: &str) -> Result<Vec<Decision<EpochKind, Form>>, String> {
    each_line(name, text, |line| is_of_epochs(line).then(|| decision(line)))
}

fn decision(line: &str) -> Result<Decision<EpochKind, Form>, String> {
    let mut words = Words::of(line);
    let (rank, at, to) = words.head()?;
    let mut class = |name: &str| words.next(name).and_then(|text| class_of(name, text));
    let (puts, put_bytes, gets, get_bytes) = (class("puts")?, class("put")?, class("gets")?, class("get")?);
    let order = words.one_of("order", &Order::ALL.map(|(order, name)| (name, order)))?;
    let messages = words.next("messages").and_then(in_messages)?;
    let merges = words.one_of("sync", &[("merged", true), ("alone", false)])?;
    words.end()?;
    let key = EpochKind { to, puts, gets, put_bytes, get_bytes };
    Ok(Decision { rank, at, key, way: Form { order, messages, merges } })
}

/// The class whose least number this is.
fn class_of(name: &str, text: &str) -> Result<u8, String> {
    let found = (0..=40).find(|class| bytes(least(*class)) == text || least(*class).to_string() == text);
    found.ok_or_else(|| format!("{name} `{text}` is neither 0 nor a power of two"))
}

fn in_messages(text: &str) -> Result<InMessages, String> {
    match text {
        "none" => Ok(InMessages::None),
        "last" => Ok(InMessages::Last),
        "all" => Ok(InMessages::UpTo(usize::MAX)),
        _ => match fabric::settings::parse_bytes(text) {
            Some(len) => Ok(InMessages::UpTo(len as usize)),
            None => Err(format!("messages `{text}` is none of `none`, `last` and `all`, and no length")),
        },
    }
}

impl Form {
    /// As journals write it.
    pub fn text(&self) -> String {
        let order = Order::ALL[self.order as usize].1;
        let sync = if self.merges { "merged" } else { "alone" };
        let messages = match self.messages {
            InMessages::None => "none".into(),
            InMessages::Last => "last".into(),
            InMessages::UpTo(usize::MAX) => "all".into(),
            InMessages::UpTo(len) => bytes(len as u64),
        };
        format!("order={order} messages={messages} sync={sync}")
    }
}

/// What speaks for a change: the plan, and how epochs of this kind went before.
fn evidence(plan: &Plan, ops: usize, early: usize, before: &Entry) -> String {
    let mut text = format!(
        "{ops} operations: {} reordered, {} in messages, {early} early; predicted {}",
        plan.reordered,
        plan.bundled,
        time(plan.predicted.total_ns()),
    );
    if before.epochs > 0 && before.ended > 0 {
        let predicted = time(before.predicted_ns / before.epochs as f64);
        let observed = time(before.observed_ns / before.ended as f64);
        text += &format!("; {} epochs before: predicted {predicted}, observed {observed}", before.epochs);
    }
    text
}

fn line(kind: &EpochKind, entry: &Entry) -> String {
    let order = entry.form.map_or("-", |form| Order::ALL[form.order as usize].1);
    let small = match entry.form.map(|form| form.messages) {
        None | Some(InMessages::None) => "none".into(),
        Some(InMessages::Last) => "the last".into(),
        Some(InMessages::UpTo(usize::MAX)) => "all".into(),
        Some(InMessages::UpTo(len)) => format!("up to {}", bytes(len as u64)),
    };
    let each = |sum: f64| sum / 1000.0 / entry.epochs.max(1) as f64;
    format!(
        "epochs of {}: {} ({} operations); order {order}, {} reordered; in messages {small}, {} of them; {} \
         synchronisations merged; {} early; predicted {:.1} us, observed {:.1} us",
        kind.text(),
        entry.epochs,
        entry.ops,
        entry.reordered,
        entry.bundled,
        entry.merged,
        entry.early,
        each(entry.predicted_ns),
        each(entry.observed_ns),
    )
}
