//! What others may read of a rank: the values of the variables that tools watch, and whether it gets on.

use crate::choice::eager_limit::EagerLimit;
use crate::engine::Engine;
use crate::event::{Event, Gauge, Kept, Notice, Source};
use fabric::Device;
use std::hash::{DefaultHasher, Hash, Hasher};

impl<D: Device> Engine<D> {
    /// The value of a variable, what happened in the device included.
    pub fn reading(&self, source: Source) -> u64 {
        match source {
            Source::Event(event) => self.counters.get(event) + self.dev.happened(event as usize),
            Source::Amount(amount) => self.counters.sum(amount),
            Source::Gauge(gauge) => self.gauge(gauge) as u64,
        }
    }

    /// From here on what happens of these types is kept for tools, a bit for each of [`crate::event::types`], with the
    /// time of this clock.
    pub fn listen(&mut self, wanted: u64, clock: fn() -> u64) {
        self.counters.listen(wanted, clock);
        self.matching.watch(self.counters.wants(Notice::Matched));
        self.learner.choices.listen(self.counters.wants(Notice::ChoiceChanged));
    }

    /// What has happened since the last call.
    pub fn take_kept(&mut self) -> Option<Box<Kept>> {
        for change in self.learner.choices.take_changes() {
            self.counters.happened(Notice::ChoiceChanged, change);
        }
        self.counters.take_kept()
    }

    /// Something has happened above the protocols.
    pub fn happened<const N: usize>(&mut self, what: Notice, known: [u64; N]) {
        self.counters.happened(what, known);
    }

    /// A number that changes when a message is sent or received, when an operation begins or ends, and
    /// when one gets on: equal at two times, nothing has moved between them.
    pub fn moves(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.peers.messages().hash(&mut hash);
        const ENDS: [Event; 5] = [
            Event::ChunkWritten,
            Event::BlockWritten,
            Event::WindowFence,
            Event::WindowLock,
            Event::WindowStart,
        ];
        ENDS.map(|event| self.counters.get(event)).hash(&mut hash);
        self.ops.iter().for_each(|(id, op)| (id, op.moved()).hash(&mut hash));
        hash.finish()
    }

    fn gauge(&self, gauge: Gauge) -> usize {
        match gauge {
            Gauge::EagerMaxBytes => self.eager_limits.iter().map(EagerLimit::limit).max().unwrap_or(0),
            Gauge::PendingOperations => self.ops.iter().filter(|(id, _)| !self.is_done(*id)).count(),
            Gauge::UnexpectedWaiting => self.matching.waiting(),
            Gauge::UnexpectedBytes => self.matching.held_bytes(),
            Gauge::UnexpectedBytesMost => self.matching.most_held_bytes(),
            Gauge::RegisteredRegions => self.rcache.len(),
            Gauge::RegisteredBytes => self.rcache.bytes(),
        }
    }
}
