//! Frequent-buffer eager: a short message leaves from where the application has it.
//!
//! Wins where a buffer is sent again and again: a registration, paid once, saves the copy into a slot
//! each time (paper 000, section 3.1; dissertation, section 5.3.1). Costs a search in two tables, and that
//! a blocking send waits until the adapter has done with the buffer, where a copy would have let it go.
//! The receiver notices nothing: it copies out of its slot as ever.
//!
//! ```text
//! user buffer   usage table            adapter                         receiver
//!   send ──────▶ n-th use: ≥ R/(C-V)·¼?
//!                 no ─▶ copy into a slot, which leaves
//!                 yes ─▶ registration cache ─▶ gathers header slot + buffer ──▶ slot, copied out
//!   free again  ◀────────────────────────── completion
//! ```
//!
//! The table (`crate::memory::reuse`) decides which buffers are candidates, the choice (`crate::choice::choose`) whether
//! messages of this kind are to go so, and what the application takes from use to use whether this
//! buffer's shall (`crate::choice::comparison`). Copied are all the same:
//! - buffers whose registration has gone, until they have come often enough again;
//! - whatever finds no room, no registration, or a device that cannot tell when memory goes away;
//! - messages within a host, where the adapter would only carry them over its bus twice.

use crate::choice::choose::Key;
use crate::choice::comparison::{At, Comparison};
use crate::choice::facts::Facts;
use crate::choice::terms::Message;
use crate::choice::way::Way;
use crate::engine::Engine;
use crate::event::Event;
use crate::memory::rcache::Held;
use crate::memory::reuse::{Payback, Rules, Seen, Thresholds, Usage};
use crate::message::op::{OpId, Sending};
use crate::message::work::Work;
use crate::rendezvous::learner::SPECULATION;
use crate::rendezvous::movers::port::Port;
use crate::rendezvous::state::State;
use fabric::spread::SpreadMap;
use fabric::{Charge, Device, Distance, Fault, Rank, Rights, Span};
use wire::head::{FrameType, Head};

/// Uses between two times that the thresholds are worked out anew.
const REFRESH: u32 = 4096;
/// The second of the two ways: copied, or gathered from the buffer itself.
const GATHERED: usize = 1;
/// Groups of a buffer are taken as they come: few buffers are used for long.
const SETTLE: u16 = 0;
/// Every use ends what came before.
const EACH: At = At { is_round: true, is_cold: false, may_try: true };
/// Buffers whose comparisons are kept; when there are more, all begin anew.
const COMPARISONS_MAX: usize = 1 << 15;
/// The adapter that carries frames.
const RAIL: usize = 0;

/// By which of the two eager protocols short messages go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EagerBy {
    /// By that of least predicted cost.
    #[default]
    Choice,
    /// All are copied.
    Copy,
    /// All that do not travel in the work request are gathered, however rarely their buffers come.
    ZeroCopy,
}

impl EagerBy {
    /// All of them with the names settings use.
    pub const ALL: [(EagerBy, &'static str); 3] =
        [(EagerBy::Choice, "auto"), (EagerBy::Copy, "eager-copy"), (EagerBy::ZeroCopy, "eager-zero-copy")];

    /// What a name asks for; names of protocols for long messages leave the choice.
    pub fn named(name: &str) -> EagerBy {
        EagerBy::ALL.iter().find(|(_, known)| *known == name).map_or(EagerBy::Choice, |(by, _)| *by)
    }
}

/// What one rank knows of the buffers it sends from.
pub(crate) struct Frequent {
    forced: bool,
    rules: Rules,
    usage: Usage,
    thresholds: Thresholds,
    uses: u32,
    /// By address, of buffers that are registered: how the application gets on.
    comparisons: SpreadMap<usize, Comparison<2>>,
}

impl Frequent {
    /// For messages that do not travel in the work request; `forced` asks for all of them.
    pub fn new(facts: &Facts, forced: bool) -> Frequent {
        let rules = Rules::default();
        let path = facts.path(Distance::Network);
        let behind_inline = path.inline_bytes + 1;
        let least_bytes = if forced { behind_inline } else { rules.least_bytes.max(behind_inline) };
        let rules = Rules { least_bytes, most_bytes: path.eager_bytes, ..rules };
        let thresholds = thresholds(&rules, facts);
        Frequent {
            forced,
            usage: Usage::new(rules.clone()),
            thresholds,
            rules,
            uses: 0,
            comparisons: SpreadMap::default(),
        }
    }

    /// Shortest message that is asked for.
    pub fn least_bytes(&self) -> usize {
        self.rules.least_bytes
    }
}

/// «000» (3), with the figures known by now.
fn thresholds(rules: &Rules, facts: &Facts) -> Thresholds {
    Thresholds::new(rules, |len| payback(facts, len))
}

/// R, C and V for a message of `len` bytes.
pub fn payback(facts: &Facts, len: usize) -> Payback {
    Payback {
        register_ns: facts.register.at(len as f64),
        copy_ns: len as f64 * facts.copy_ns_per_byte(len),
        overhead_ns: 2.0 * facts.search.value,
    }
}

impl<D: Device> Engine<D> {
    /// The table of buffer usage, where there is one.
    pub fn usage(&self) -> Option<&Usage> {
        self.frequent.as_ref().map(|frequent| &frequent.usage)
    }

    /// Whether a message of this length is a use that counts: not if it leaves from its buffer as it is.
    #[inline]
    pub(crate) fn counts_send(&self, to: Rank, len: usize) -> bool {
        len > self.path(to).at_once_bytes && self.counts_use(to, len)
    }

    /// Whether an operation on as much memory is.
    #[inline]
    pub(crate) fn counts_use(&self, to: Rank, len: usize) -> bool {
        self.frequent.as_ref().is_some_and(|frequent| {
            let is_near =
                !self.path(to).registration || !frequent.forced && self.dev.distance(to) == Distance::Host;
            len >= frequent.rules.least_bytes
                && len <= frequent.rules.most_bytes
                && to != self.dev.me()
                && !is_near
        })
    }

    /// Counts a use of a buffer: its registration, for these uses, if the message had better leave from there.
    pub(crate) fn frequent(&mut self, to: Rank, data: Span, rights: Rights) -> Option<Held> {
        let frequent = self.frequent.as_mut()?;
        if frequent.forced {
            return self.hold(to, data, rights, 0);
        }
        let seen = self.count_use(data)?;
        let is_registered = seen.registered_bytes as usize >= data.len;
        if !seen.frequent && !is_registered {
            return None;
        }
        if is_registered {
            self.rcache.heed(&mut self.dev, &mut self.counters);
            if !self.rcache.has(RAIL, data, Rights::NONE) {
                return self.gone(data);
            }
        }
        if !self.leaves_from_buffer(to, data, &seen, is_registered) {
            self.counters.count(Event::FrequentCopied);
            return None;
        }
        self.hold(to, data, rights, seen.registered_bytes as usize)
    }

    /// Counts a use of a buffer: what the table knows of it, if messages of this length may leave from theirs.
    fn count_use(&mut self, data: Span) -> Option<Seen> {
        let frequent = self.frequent.as_mut()?;
        let threshold = frequent.thresholds.of(data.len)?;
        let refused = frequent.usage.refused();
        let seen = frequent.usage.used(data.addr, threshold);
        // Chains are few, and where memory lies in this process must not change a simulation.
        self.dev.charge(Charge::UsageSearch(1));
        if frequent.usage.refused() > refused {
            self.counters.count(Event::UsageRefused);
        }
        frequent.uses += 1;
        if frequent.uses.is_multiple_of(REFRESH) {
            frequent.thresholds = thresholds(&frequent.rules, &self.learner.facts);
        }
        Some(seen)
    }

    /// Whether a message had better leave from its buffer, by the choice and by how the application gets on.
    fn leaves_from_buffer(&mut self, to: Rank, data: Span, seen: &Seen, is_registered: bool) -> bool {
        // What has come so often is expected to come four times as often again: then it pays from the
        // threshold on, by the formulas of `crate::choice::terms` as by that of the table.
        let uses = seen.again as f64;
        let reuse = if is_registered { 1.0 } else { uses / (uses + SPECULATION) };
        let distance = self.dev.distance(to);
        let message = Message { len: data.len, distance, reuse, rtr: false, late_ns: 0.0, eager: true };
        let learner = &mut *self.learner;
        let chosen = learner.choices.take(&learner.facts, &message, &[Way::Eager, Way::Frequent]);
        // What is replayed is not tried.
        let is_pinned = learner.choices.journal.pinned(Key::of(&message), u32::MAX).is_some();
        let is_chosen = chosen.is_some_and(|(way, _)| way == Way::Frequent);
        let Some(frequent) = self.frequent.as_mut().filter(|_| is_chosen) else { return false };
        let comparison = frequent.comparisons.get_mut(&data.addr).filter(|_| is_registered && !is_pinned);
        comparison.is_none_or(|comparison| comparison.next(EACH, || self.dev.now_ns()) == GATHERED)
    }

    /// Registers a buffer for these uses, or finds that it is.
    fn hold(&mut self, to: Rank, data: Span, rights: Rights, registered_bytes: usize) -> Option<Held> {
        // Only what will be registered is worth two looks at the clock.
        let held = if self.rcache.has(RAIL, data, rights) {
            self.rcache.hold(&mut self.dev, &mut self.counters, RAIL, data, rights, true)
        } else {
            self.rendezvous().with_port(to, |port| port.hold(RAIL, data, rights, true))
        };
        let Ok(held) = held else { return self.gone(data) };
        let frequent = self.frequent.as_mut()?;
        if registered_bytes < data.len && !frequent.forced {
            frequent.usage.registered(data.addr, data.len);
            if frequent.comparisons.len() >= COMPARISONS_MAX {
                frequent.comparisons.clear();
            }
            frequent.comparisons.insert(data.addr, Comparison::new(GATHERED, 2, SETTLE, self.dev.now_ns()));
            self.counters.count(Event::FrequentBuffer);
        }
        Some(held)
    }

    /// Gives back what [`Engine::hold`] gave.
    pub(crate) fn let_go(&mut self, to: Rank, held: Held) {
        if !self.path(to).keeps {
            return self.rendezvous().with_port(to, |port| port.release(held));
        }
        // It stays registered, so there is nothing to time.
        self.rcache.release(&mut self.dev, held);
        self.learner.released(held, 0, false);
    }

    /// A buffer cannot be taken for registered.
    fn gone(&mut self, data: Span) -> Option<Held> {
        self.counters.count(Event::FrequentGone);
        let frequent = self.frequent.as_mut()?;
        frequent.usage.forget(data.addr);
        frequent.comparisons.remove(&data.addr);
        None
    }

    /// Lets an eager message leave from its buffer, or by copy if that cannot be; false if there is no
    /// room for either, and what is held stays so.
    pub(crate) fn leave_zero_copy(&mut self, id: OpId, s: Sending, held: Held) -> bool {
        let head = Head::new(FrameType::Eager, s.tag, s.context).encode();
        let counts = self.learner.account.is_on();
        let start = if counts { self.dev.now_ns() } else { 0 };
        self.dev.label(|| "eager-zero-copy");
        let work = Work::Gathered(id).encode();
        let left = self.dev.try_send_from(s.to, head, held.region.local(s.data), work);
        self.dev.label(|| "eager");
        if left != Ok(true) {
            // Slots to copy into may be free where those for headers are not.
            let copied = self.leave_eager(id, s);
            if copied {
                self.let_go(s.to, held);
            }
            return copied;
        }
        if counts {
            let took_ns = self.dev.now_ns() - start;
            self.zero_copy_left(&s, took_ns);
        }
        self.counters.count(Event::EagerZeroCopy);
        self.ops.set(id, State::Gathered(s, held));
        true
    }

    fn zero_copy_left(&mut self, s: &Sending, took_ns: u64) {
        let (distance, len) = (self.dev.distance(s.to), s.data.len);
        let facts = &self.learner.facts;
        let predicted_ns = facts.path(distance).post.value;
        let account = &mut self.learner.account;
        account.left(distance, Way::Frequent, len, predicted_ns, None);
        account.ended(distance, Way::Frequent, len, took_ns as f64);
    }

    /// The adapter has done with the memory of an eager message.
    pub(super) fn gathered(&mut self, id: OpId, result: Result<(), Fault>) {
        let Some(State::Gathered(s, held)) = self.ops.get(id).map(|op| &op.state) else {
            panic!("a completion for a message that does not leave from its buffer");
        };
        let (s, held) = (*s, *held);
        let mut ends = s.outcome();
        ends.failure = result.err().map(Into::into);
        self.let_go(s.to, held);
        self.ops.set(id, State::Done(ends));
    }
}
