//! The values of the variables that tools watch.

use crate::engine::Engine;
use crate::event::{Gauge, Source};
use fabric::Device;

impl<D: Device> Engine<D> {
    /// The value of a variable, what happened in the device included.
    pub fn reading(&self, source: Source) -> u64 {
        match source {
            Source::Event(event) => self.counters.get(event) + self.dev.happened(event as usize),
            Source::Amount(amount) => self.counters.sum(amount),
            Source::Gauge(gauge) => self.gauge(gauge) as u64,
        }
    }

    fn gauge(&self, gauge: Gauge) -> usize {
        match gauge {
            Gauge::EagerMaxBytes => self.choice.limit(),
            Gauge::PendingOperations => self.ops.iter().filter(|(id, _)| !self.is_done(*id)).count(),
            Gauge::UnexpectedWaiting => self.matching.waiting(),
            Gauge::UnexpectedBytes => self.matching.held_bytes(),
            Gauge::UnexpectedBytesMost => self.matching.most_held_bytes(),
            Gauge::RegisteredRegions => self.rcache.len(),
            Gauge::RegisteredBytes => self.rcache.bytes(),
        }
    }
}
