//! Puts at targets behind an adapter that go with accumulates: these are told the target, in a message that the end of their epoch joins, so a Put
//! beside them is part of that message where this costs less than a transfer of its own and an end that has to wait for both.
//!
//! MPI gives a Put no order with accumulates of its epoch. What an operation goes by is decided when it is called. That there are accumulates in an epoch
//! is known from the first of them on; before it, the epoch is taken to be like the last one at the target.

use super::active::Active;
use super::operation::{Operation, Verb};
use super::price;
use fabric::{Device, Distance};
use proto::Engine;
use proto::choice::facts::Facts;
use proto::event::Event;

/// Whether epochs at a target have accumulates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// The last one had.
    before: bool,
    /// This one has.
    now: bool,
    /// This one has told the target anything.
    begun: bool,
}

impl Sums {
    /// An operation is told the target.
    pub fn told(&mut self, verb: Verb) {
        self.now |= !verb.moves();
        self.begun = true;
    }

    /// The epoch is over, if one has begun.
    pub fn ended(&mut self) {
        if std::mem::take(&mut self.begun) {
            self.before = std::mem::take(&mut self.now);
        }
    }
}

impl Active {
    /// As [`Active::goes_along`], of one that is begun now, which is counted.
    pub(super) fn takes_along<D: Device>(
        &self,
        engine: &mut Engine<D>,
        distance: Distance,
        operation: &Operation,
    ) -> bool {
        let along = self.goes_along(&engine.learner().facts, distance, operation);
        if along {
            engine.count(Event::WindowAlong);
        }
        along
    }

    /// Whether an operation goes with the accumulates of its epoch.
    pub(super) fn goes_along(&self, facts: &Facts, distance: Distance, operation: &Operation) -> bool {
        let target = operation.target;
        let Sums { before, now, .. } = self.sums[target as usize];
        let is_apart = || self.far.as_ref().is_none_or(|far| far.is_apart(target));
        let told = || self.batches[target as usize].len();
        operation.verb == Verb::Put
            && (before || now)
            && !is_apart()
            && price::goes_along(facts, distance, told(), operation.area.len() as usize)
    }
}
