//! The planner: which operations for one target go by themselves, which together, and in which order.
//!
//! Pure. Every order and bundling that is not fixed is a candidate, and the one of least predicted time
//! ([`crate::epoch::cost`]) is taken; of equals the one that changes least.

use crate::choice::facts::{Facts, SEEN};
use crate::epoch::cost::{self, Gone, Machine, Predicted};
use crate::epoch::{Action, Bundling, Order, Schedule};
use fabric::Distance;
use wire::epoch::{AnswerHead, OpHead};

/// What the planner knows of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Item {
    /// What it does.
    pub action: Action,
    /// Its length in bytes.
    pub len: usize,
    /// The origin's memory.
    pub memory: Memory,
}

/// What becomes of the origin's memory where an operation goes directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// It is copied through memory of the library.
    Copied,
    /// It is registered already.
    Registered,
    /// It has to be registered.
    Fresh,
}

/// Part of an operation that goes in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The operation.
    pub op: usize,
    /// Where in it the part begins, in bytes.
    pub from: usize,
    /// Its length.
    pub len: usize,
}

/// What is done next for a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// An operation goes directly.
    Direct(usize),
    /// These go together in a message, with the synchronisation if that is said.
    Message(Vec<Part>, bool),
    /// The synchronisation by itself.
    Sync,
}

/// Under which conditions plans are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How far away the target is.
    pub distance: Distance,
    /// Most bytes of a message and of its answer.
    pub message_bytes: usize,
    /// Whether anything can go directly.
    pub direct: bool,
    /// Whether the epoch ends; otherwise there is no synchronisation to be planned.
    pub ends: bool,
    /// The end is a fence that costs one more word of the target behind what could be overtaken.
    pub meets_once: bool,
    /// What Gets bring goes to a window of this rank.
    pub lands: bool,
    /// The two take turns: the target has been an origin here since the last epoch there.
    pub alternates: bool,
}

/// Which operations of an epoch go in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InMessages {
    /// None.
    None,
    /// The last one that fits.
    Last,
    /// Those up to this length that fit.
    UpTo(usize),
}

/// What a plan is like, without its operations: epochs of a kind that have it in common are planned alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// The order.
    pub order: Order,
    /// What goes in messages.
    pub messages: InMessages,
    /// Whether the synchronisation rides with the last of them.
    pub merges: bool,
}

/// A plan for one target.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What to do.
    pub steps: Vec<Step>,
    /// What is expected of it.
    pub predicted: Predicted,
    /// What it is like.
    pub form: Form,
    /// Longest operation that goes in a message; `None` if none does.
    pub small_bytes: Option<usize>,
    /// Operations that go in messages.
    pub bundled: usize,
    /// Whether the synchronisation rides with the last message.
    pub merged: bool,
    /// Operations that leave earlier than some that were called before them.
    pub reordered: usize,
}

/// Most bounds between small and large that are tried.
const BOUNDS_MAX: usize = 8;

/// The last plan of a window, for the next epoch that is like its last one.
#[derive(Debug, Default)]
pub struct Kept {
    made: Option<(Vec<Item>, Limits, Plan)>,
    uses: u32,
}

impl Kept {
    /// As [`plan`]. What is known changes slowly, so a plan serves as many epochs as a fact consists of observations.
    pub fn plan(
        &mut self,
        items: Vec<Item>,
        gone: &[Gone],
        schedule: &Schedule,
        limits: &Limits,
        facts: &Facts,
    ) -> Plan {
        let made = self.made.as_ref().filter(|_| gone.is_empty() && self.uses < SEEN.memory);
        if let Some((.., plan)) = made.filter(|(known, under, _)| under == limits && *known == items) {
            self.uses += 1;
            return plan.clone();
        }
        let plan = plan(&items, gone, schedule, limits, facts);
        if gone.is_empty() {
            (self.made, self.uses) = (Some((items, *limits, plan.clone())), 0);
        }
        plan
    }
}

/// The plan of least predicted time among those the schedule allows, behind operations that have left already.
pub fn plan(items: &[Item], gone: &[Gone], schedule: &Schedule, limits: &Limits, facts: &Facts) -> Plan {
    let machine = Machine::after(gone, limits.distance, facts);
    let mut best: Option<Plan> = None;
    for (order, _) in Order::ALL {
        if schedule.order.is_some_and(|fixed| fixed != order) {
            continue;
        }
        // Operations of one direction have one order.
        if best.is_some() && items.windows(2).all(|two| two[0].action == two[1].action) {
            break;
        }
        for shape in shapes(items, schedule, limits) {
            let candidate = lay_out(items, order, &shape, limits, &machine);
            let is_better =
                |best: &Plan| candidate.predicted.total_ns() < best.predicted.total_ns() * (1.0 - 1e-9);
            if best.as_ref().is_none_or(is_better) {
                best = Some(candidate);
            }
        }
    }
    best.expect("every schedule leaves an order and a shape")
}

/// The plan of this form, as far as these operations permit it.
pub fn of_form(items: &[Item], gone: &[Gone], form: &Form, limits: &Limits, facts: &Facts) -> Plan {
    let shape = match form.messages {
        _ if !limits.direct => Shape::up_to(items, usize::MAX, form.merges),
        InMessages::None => Shape::never(items),
        InMessages::Last => Shape::last(items, limits).unwrap_or_else(|| Shape::never(items)),
        InMessages::UpTo(bytes) => {
            let longest =
                items.iter().filter(|item| item.len <= bytes && limits.fits(item)).map(|item| item.len).max();
            longest.map_or_else(|| Shape::never(items), |longest| Shape::up_to(items, longest, form.merges))
        }
    };
    lay_out(items, form.order, &shape, limits, &Machine::after(gone, limits.distance, facts))
}

/// Which operations go in messages.
#[derive(Clone, Debug)]
struct Shape {
    /// By operation.
    bundled: Vec<bool>,
    messages: InMessages,
    small_bytes: Option<usize>,
    /// Whether the synchronisation rides with the last message.
    merges: bool,
}

impl Shape {
    fn up_to(items: &[Item], bytes: usize, merges: bool) -> Shape {
        let bundled = items.iter().map(|item| item.len <= bytes).collect();
        Shape { bundled, messages: InMessages::UpTo(bytes), small_bytes: Some(bytes), merges }
    }

    fn never(items: &[Item]) -> Shape {
        Shape {
            bundled: vec![false; items.len()],
            messages: InMessages::None,
            small_bytes: None,
            merges: false,
        }
    }

    /// The last one that fits goes with the synchronisation, if that comes and one does.
    fn last(items: &[Item], limits: &Limits) -> Option<Shape> {
        let at = items.iter().rposition(|item| limits.fits(item)).filter(|_| limits.ends)?;
        let bundled = (0..items.len()).map(|op| op == at).collect();
        Some(Shape { bundled, messages: InMessages::Last, small_bytes: Some(items[at].len), merges: true })
    }
}

impl Limits {
    /// Whether an operation fits a message.
    fn fits(&self, item: &Item) -> bool {
        bytes_in_message(item.len) <= self.message_bytes
    }
}

/// Bytes an operation takes in a message or in the answer, whichever is more.
fn bytes_in_message(len: usize) -> usize {
    OpHead::LEN.max(AnswerHead::LEN) + len
}

fn shapes(items: &[Item], schedule: &Schedule, limits: &Limits) -> Vec<Shape> {
    if !limits.direct {
        let whole = |merges| Shape::up_to(items, usize::MAX, merges);
        return match schedule.bundling {
            Some(Bundling::Never) => vec![whole(false)],
            _ => vec![whole(limits.ends)],
        };
    }
    let (never, last) = (Shape::never(items), || Shape::last(items, limits));
    let mut lengths: Vec<usize> =
        items.iter().filter(|item| limits.fits(item)).map(|item| item.len).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let both = |bytes: usize| {
        let merges: &[bool] = if limits.ends { &[true, false] } else { &[false] };
        merges.iter().map(move |merges| Shape::up_to(items, bytes, *merges))
    };
    let hybrid = || {
        let step = lengths.len().div_ceil(BOUNDS_MAX).max(1);
        lengths.iter().rev().step_by(step).flat_map(|bytes| both(*bytes)).collect::<Vec<_>>()
    };
    let mut shapes = match schedule.bundling {
        Some(Bundling::Never) => vec![never.clone()],
        Some(Bundling::Last) => last().into_iter().collect(),
        Some(Bundling::All) => lengths.last().into_iter().flat_map(|bytes| both(*bytes)).collect(),
        Some(Bundling::Hybrid) => std::iter::once(never.clone()).chain(hybrid()).collect(),
        None => std::iter::once(never.clone()).chain(last()).chain(hybrid()).collect(),
    };
    if shapes.is_empty() {
        shapes.push(never);
    }
    shapes
}

/// Steps and what they are expected to take.
fn lay_out(items: &[Item], order: Order, shape: &Shape, limits: &Limits, machine: &Machine) -> Plan {
    let direct: Vec<usize> = (0..items.len()).filter(|op| !shape.bundled[*op]).collect();
    let direct = ordered(items, direct, order);
    let small: Vec<usize> = (0..items.len()).filter(|op| shape.bundled[*op]).collect();
    let small = if order == Order::Issue { small } else { ordered(items, small, Order::GetsFirst) };
    let mut messages = packed(items, &small, limits.message_bytes);
    let merged = shape.merges && limits.ends && !messages.is_empty();
    let last = if merged { messages.pop() } else { None };
    let sequence = messages.iter().flatten().map(|part| part.op).chain(direct.iter().copied());
    let sequence: Vec<usize> = sequence.chain(last.iter().flatten().map(|part| part.op)).collect();
    let mut steps: Vec<Step> = messages.into_iter().map(|parts| Step::Message(parts, false)).collect();
    steps.extend(direct.into_iter().map(Step::Direct));
    match last {
        Some(parts) => steps.push(Step::Message(parts, true)),
        None if limits.ends => steps.push(Step::Sync),
        None => {}
    }
    let mut highest = 0;
    let reordered = sequence.iter().filter(|op| {
        highest = highest.max(**op);
        **op < highest
    });
    let reordered = reordered.count();
    let bundled = small.len();
    let predicted = cost::predict(machine, items, &steps, limits.alternates);
    let again = limits.meets_once && is_overtaken(items, &steps, limits.lands);
    let predicted = if again { machine.a_way_later(predicted) } else { predicted };
    let small_bytes = shape.small_bytes.filter(|_| bundled > 0);
    let messages = if bundled > 0 { shape.messages } else { InMessages::None };
    let form = Form { order, messages, merges: merged };
    Plan { steps, predicted, form, small_bytes, bundled, merged, reordered }
}

/// Whether what messages bring can be overtaken by what follows the epoch: Puts that the target scatters later than no answer says, and
/// answers, if they go to a window.
fn is_overtaken(items: &[Item], steps: &[Step], lands: bool) -> bool {
    let messages =
        steps.iter().filter_map(|step| if let Step::Message(parts, _) = step { Some(parts) } else { None });
    let mut answered = messages.map(|parts| parts.iter().any(|part| items[part.op].action == Action::Get));
    answered.clone().next_back().is_some_and(|last| !last) || lands && answered.any(|gets| gets)
}

/// The operations in this order.
fn ordered(items: &[Item], ops: Vec<usize>, order: Order) -> Vec<usize> {
    if order == Order::Issue {
        return ops;
    }
    let (gets, puts): (Vec<usize>, Vec<usize>) =
        ops.into_iter().partition(|op| items[*op].action == Action::Get);
    if order == Order::GetsFirst {
        return gets.into_iter().chain(puts).collect();
    }
    let (mut out, mut into) = (0, 0);
    let mut sequence = Vec::with_capacity(gets.len() + puts.len());
    let (mut gets, mut puts) = (gets.into_iter().peekable(), puts.into_iter().peekable());
    while gets.peek().is_some() || puts.peek().is_some() {
        let next = if into <= out {
            gets.next().or_else(|| puts.next())
        } else {
            puts.next().or_else(|| gets.next())
        };
        let op = next.expect("one of them has more");
        // One that moves nothing is a turn all the same.
        let moved = items[op].len.max(1);
        match items[op].action {
            Action::Get => into += moved,
            Action::Put => out += moved,
        }
        sequence.push(op);
    }
    sequence
}

/// Operations in messages, none of which, nor its answer, is longer than `most`. What is too long for one is cut.
fn packed(items: &[Item], ops: &[usize], most: usize) -> Vec<Vec<Part>> {
    let mut messages: Vec<Vec<Part>> = Vec::new();
    let mut room = 0;
    for &op in ops {
        let mut from = 0;
        loop {
            let left = items[op].len - from;
            let begins_anew = bytes_in_message(left) > room && room < most;
            if messages.is_empty() || begins_anew {
                messages.push(Vec::new());
                room = most;
            }
            let len = left.min(room.saturating_sub(bytes_in_message(0)).max(1));
            messages.last_mut().expect("one was begun").push(Part { op, from, len });
            room = room.saturating_sub(bytes_in_message(len));
            from += len;
            if from >= items[op].len {
                break;
            }
        }
    }
    messages
}

/// A whole operation in messages, for one that cannot go directly after all.
pub fn in_pieces(item: &Item, op: usize, most: usize) -> Vec<Step> {
    let mut messages = packed(std::slice::from_ref(item), &[0], most);
    messages.iter_mut().flatten().for_each(|part| part.op = op);
    messages.into_iter().map(|parts| Step::Message(parts, false)).collect()
}
