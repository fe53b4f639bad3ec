//! What a plan would take: its steps walked through the parts of the machine that each of them occupies.
//!
//! | step | what it takes |
//! |---|---|
//! | a Put directly | `C` or registration, `o`; the link out for `max(g, L/B)`; `λ` to be there |
//! | a Get directly | `o`; the link out for `g`; `λ`, what a read takes longer, the link in for `max(g, L/B)`; `C` if copied |
//! | a message | `2·C` of its Puts, what parts cost, and `o`; the link out; `λ`; the same at the target; its answer likewise back |
//! | the synchronisation | behind all reads (004, section 4.1.2); `o`; the link out for `g`; `λ` |
//!
//! What has left before the end is called occupies them since then; what of it is not over by then counts.
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
    /// When the target could know that both are over, for what follows is that the origin lets it in; and where the two do not take turns
    /// also when the origin could, for it is let in again.
    pub ends_ns: f64,
}

impl Predicted {
    /// By what plans are compared.
    pub fn total_ns(&self) -> f64 {
        self.ends_ns
    }
}

/// An operation that has left before the end of its epoch is called.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gone {
    /// What it is.
    pub item: Item,
    /// How long ago it was called, in ns.
    pub since_ns: f64,
    /// Whether it went by itself, or in a message.
    pub direct: bool,
}

/// The parts of the machine, and since when they are free; 0 is when the end is called.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
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

/// What these steps take on a machine that is as `machine`.
pub fn predict(machine: &Machine, items: &[Item], steps: &[Step], alternates: bool) -> Predicted {
    let mut machine = machine.clone();
    for step in steps {
        match step {
            Step::Direct(op) => machine.direct(&items[*op]),
            Step::Message(parts, sync) => machine.message(items, parts, *sync),
            Step::Sync => machine.sync(),
        }
    }
    let path = machine.path;
    // What both directions share sets a bound to all of it.
    let bus = machine.bytes * path.bus_per_byte + path.latency.value;
    let bus = if machine.bytes * path.bus_per_byte > 0.0 { bus } else { 0.0 };
    let Predicted { origin_ns, target_ns, .. } = machine.seen;
    let origin_ns = origin_ns.max(machine.processor);
    let origin_ns = if origin_ns > target_ns { origin_ns.max(bus) } else { origin_ns };
    let target_ns = target_ns.max(bus);
    let target_knows_ns = origin_ns + path.latency.value;
    let ends_ns = target_knows_ns.max(if alternates { target_ns } else { target_ns + path.latency.value });
    Predicted { origin_ns, target_ns, ends_ns }
}

impl<'a> Machine<'a> {
    /// As it is when the end is called behind operations that have left.
    pub fn after(gone: &[Gone], distance: Distance, facts: &'a Facts) -> Machine<'a> {
        let free = f64::NEG_INFINITY;
        let mut machine = Machine {
            facts,
            path: facts.path(distance),
            processor: free,
            out: free,
            into: free,
            target: free,
            target_out: free,
            bytes: 0.0,
            reads: 0.0,
            seen: Predicted::default(),
        };
        for Gone { item, since_ns, direct } in gone {
            machine.processor = machine.processor.max(-since_ns);
            match direct {
                true => machine.direct(item),
                false => machine.message(&[*item], &[Part { op: 0, from: 0, len: item.len }], false),
            }
        }
        (machine.processor, machine.bytes) = (machine.processor.max(0.0), 0.0);
        machine
    }
}

impl Machine<'_> {
    /// What is over when one more word has come.
    pub fn a_way_later(&self, predicted: Predicted) -> Predicted {
        Predicted { ends_ns: predicted.ends_ns + self.path.latency.value, ..predicted }
    }

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
