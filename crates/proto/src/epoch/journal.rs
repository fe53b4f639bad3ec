//! What became of epochs, by kind: reordered, merged, issued early, predicted and observed.

use crate::choice::journal::bytes;
use crate::epoch::plan::{Plan, Step};
use crate::epoch::{Action, Held, Order};
use std::collections::BTreeMap;

/// Kinds that are kept apart; further ones are counted with each other.
const KINDS_MAX: usize = 256;

/// Epochs for one target that are alike: counts and lengths by powers of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct EpochKind {
    puts: u8,
    gets: u8,
    put_bytes: u8,
    get_bytes: u8,
}

fn class(n: usize) -> u8 {
    n.checked_ilog2().map_or(0, |log| log as u8 + 1)
}

impl EpochKind {
    /// That of these operations.
    pub fn of(ops: &[Held]) -> EpochKind {
        let of = |action: Action| {
            let all = ops.iter().filter(move |op| op.action == action);
            let (count, bytes) = all.fold((0, 0), |(count, bytes), op| (count + 1, bytes + op.local.len));
            (class(count), class(bytes.checked_div(count).unwrap_or(0)))
        };
        let ((puts, put_bytes), (gets, get_bytes)) = (of(Action::Put), of(Action::Get));
        EpochKind { puts, gets, put_bytes, get_bytes }
    }

    fn text(&self) -> String {
        let some = |count: u8, len: u8, what: &str| match count {
            0 => format!("no {what}"),
            _ => format!(
                "{}+ {what} of {}+",
                1u64 << (count - 1),
                bytes(if len == 0 { 0 } else { 1 << (len - 1) })
            ),
        };
        format!("{}, {}", some(self.puts, self.put_bytes, "Puts"), some(self.gets, self.get_bytes, "Gets"))
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
    /// The last order.
    pub order: Option<Order>,
    /// The last bound between small and large.
    pub small_bytes: Option<usize>,
    /// Sum of what the origin was predicted to wait, in ns.
    pub predicted_ns: f64,
    /// Sum of what it waited, in ns.
    pub observed_ns: f64,
}

/// The account of one rank.
#[derive(Debug, Default)]
pub struct Journal {
    kinds: BTreeMap<EpochKind, Entry>,
}

impl Journal {
    /// A plan is carried out; `early` operations have left before.
    pub fn planned(&mut self, kind: EpochKind, plan: &Plan, early: usize) {
        let entry = self.entry(kind);
        let in_messages = |step: &Step| if let Step::Message(parts, _) = step { parts.len() } else { 0 };
        let direct = plan.steps.iter().filter(|step| matches!(step, Step::Direct(_))).count();
        entry.epochs += 1;
        entry.ops += (direct + plan.bundled + early) as u64;
        entry.reordered += plan.reordered as u64;
        entry.bundled += plan.bundled.min(plan.steps.iter().map(in_messages).sum()) as u64;
        entry.merged += u64::from(plan.merged);
        entry.early += early as u64;
        entry.order = Some(plan.order);
        entry.small_bytes = plan.small_bytes;
        entry.predicted_ns += plan.predicted.total_ns();
    }

    /// An epoch of this kind has ended so long after its end was called.
    pub fn ended(&mut self, kind: EpochKind, took_ns: f64) {
        self.entry(kind).observed_ns += took_ns;
    }

    fn entry(&mut self, kind: EpochKind) -> &mut Entry {
        let is_new = !self.kinds.contains_key(&kind);
        let kind = if is_new && self.kinds.len() >= KINDS_MAX { EpochKind::default() } else { kind };
        self.kinds.entry(kind).or_default()
    }

    /// What there is, by kind.
    pub fn entries(&self) -> impl Iterator<Item = (&EpochKind, &Entry)> {
        self.kinds.iter()
    }

    /// For people, a line for each kind, each behind `prefix`.
    pub fn text(&self, prefix: &str) -> String {
        self.kinds.iter().map(|(kind, entry)| format!("{prefix}{}\n", line(kind, entry))).collect()
    }
}

fn line(kind: &EpochKind, entry: &Entry) -> String {
    let order = entry.order.map_or("-", |order| Order::ALL[order as usize].1);
    let small = entry.small_bytes.map_or("none".into(), |len| format!("up to {}", bytes(len as u64)));
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
