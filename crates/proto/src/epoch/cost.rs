//! What a plan would take: its steps walked through the parts of the machine that each of them occupies.
//!
//! | step | what it takes |
//! |---|---|
//! | a Put directly | `C` or registration, `o`; the link out for `max(g, L/B)`; `λ` to be there |
//! | a Get directly | `o`; the link out for `g`; `λ`, what a read takes longer, the link in for `max(g, L/B)`; `C` if copied |
//! | a message | `2·C` of its Puts, what parts cost, and `o`; the link out; `λ`; the same at the target; its answer likewise back |
//! | the synchronisation | behind all reads (004, section 4.1.2); `o`; the link out for `g`; `λ` |
//!
//! The figures are facts of [`crate::choice::facts`].

use crate::choice::facts::{Facts, Path};
use crate::epoch::Action;
use crate::epoch::plan::{Item, Memory, Part, Step};
use fabric::Distance;
use wire::epoch::{AnswerHead, OpHead};

/// When an epoch is expected to be over, in ns from its end being called.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Predicted {
    /// The origin has all its Gets.
    pub origin_ns: f64,
    /// The target has all Puts, and the synchronisation if there is one.
    pub target_ns: f64,
    /// The later of both, where the end of the origin counts when a message of it could be at the target: what follows
    /// an epoch is that its origin lets others in.
    pub ends_ns: f64,
}

impl Predicted {
    /// By what plans are compared.
    pub fn total_ns(&self) -> f64 {
        self.ends_ns
    }
}

/// Since when the parts are free.
struct Machine<'a> {
    facts: &'a Facts,
    path: &'a Path,
    processor: f64,
    out: f64,
    into: f64,
    target: f64,
    target_out: f64,
    /// Bytes of both directions.
    bytes: f64,
    /// All reads have ended.
    reads: f64,
    seen: Predicted,
}

/// What these steps take.
pub fn predict(items: &[Item], steps: &[Step], distance: Distance, facts: &Facts) -> Predicted {
    let path = facts.path(distance);
    let mut machine = Machine {
        facts,
        path,
        processor: 0.0,
        out: 0.0,
        into: 0.0,
        target: 0.0,
        target_out: 0.0,
        bytes: 0.0,
        reads: 0.0,
        seen: Predicted::default(),
    };
    for step in steps {
        match step {
            Step::Direct(op) => machine.direct(&items[*op]),
            Step::Message(parts, sync) => machine.message(items, parts, *sync),
            Step::Sync => machine.sync(),
        }
    }
    // What both directions share sets a bound to all of it.
    let bus = machine.bytes * path.bus_per_byte + path.latency.value;
    let bus = if machine.bytes * path.bus_per_byte > 0.0 { bus } else { 0.0 };
    let Predicted { origin_ns, target_ns, .. } = machine.seen;
    let origin_ns = origin_ns.max(machine.processor);
    let origin_ns = if origin_ns > target_ns { origin_ns.max(bus) } else { origin_ns };
    let target_ns = target_ns.max(bus);
    Predicted { origin_ns, target_ns, ends_ns: target_ns.max(origin_ns + path.latency.value) }
}

impl Machine<'_> {
    fn copy(&self, len: usize) -> f64 {
        len as f64 * self.facts.copy_ns_per_byte(len)
    }

    /// The processor posts; `len` bytes leave: when the last one is out.
    fn leave(&mut self, len: usize) -> f64 {
        self.processor += self.path.post.value;
        let begin = self.processor.max(self.out);
        self.bytes += len as f64;
        self.out = begin + (len as f64 * self.path.write.per_byte).max(self.path.gap.value);
        begin + len as f64 * self.path.write.per_byte
    }

    fn memory(&self, item: &Item) -> f64 {
        match item.memory {
            Memory::Copied => 0.0,
            Memory::Registered => 2.0 * self.facts.search.value,
            Memory::Fresh => self.facts.register.at(item.len as f64) + 2.0 * self.facts.search.value,
        }
    }

    fn direct(&mut self, item: &Item) {
        self.processor += self.memory(item);
        let copy = if item.memory == Memory::Copied { self.copy(item.len) } else { 0.0 };
        match item.action {
            Action::Put => {
                self.processor += copy;
                let there = self.leave(item.len) + self.path.latency.value;
                self.seen.target_ns = self.seen.target_ns.max(there);
            }
            Action::Get => {
                let asked = self.leave(0) + self.path.latency.value;
                let begin = (asked + self.path.read.value).max(self.into);
                let wire = item.len as f64 * self.path.write.per_byte;
                self.bytes += item.len as f64;
                self.into = begin + wire.max(self.path.gap.value);
                let here = begin + wire + copy;
                self.reads = self.reads.max(here);
                self.seen.origin_ns = self.seen.origin_ns.max(here);
            }
        }
    }

    fn message(&mut self, items: &[Item], parts: &[Part], sync: bool) {
        if sync {
            self.processor = self.processor.max(self.reads);
        }
        let bytes_of = |action: Action| -> (usize, usize) {
            let of = parts.iter().filter(|part| items[part.op].action == action);
            of.fold((0, 0), |(count, bytes), part| (count + 1, bytes + part.len))
        };
        let ((puts, out), (gets, into)) = (bytes_of(Action::Put), bytes_of(Action::Get));
        let len = (puts + gets) * OpHead::LEN + out;
        let part = self.facts.part.value;
        let count = (puts + gets) as f64;
        self.processor += self.copy(out) + self.copy(len) + count * part;
        let there = self.leave(len) + self.path.latency.value;
        let served = there.max(self.target) + self.copy(out) + count * part;
        self.target = served;
        self.seen.target_ns = self.seen.target_ns.max(served);
        if gets == 0 {
            return;
        }
        let len = gets * AnswerHead::LEN + into;
        let ready = served + self.copy(into) + self.copy(len) + self.path.post.value;
        self.target = ready;
        self.seen.target_ns = self.seen.target_ns.max(ready);
        let begin = ready.max(self.target_out);
        self.bytes += len as f64;
        let wire = len as f64 * self.path.write.per_byte;
        self.target_out = begin + wire.max(self.path.gap.value);
        let here = (begin + self.path.latency.value).max(self.into) + wire;
        self.into = here;
        self.seen.origin_ns = self.seen.origin_ns.max(here + self.copy(into) + gets as f64 * part);
    }

    fn sync(&mut self) {
        self.processor = self.processor.max(self.reads);
        let there = self.leave(0) + self.path.latency.value;
        self.seen.target_ns = self.seen.target_ns.max(there);
    }
}
