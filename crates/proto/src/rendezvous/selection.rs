//! Which protocol a long message takes, asked of the choice with what is known about the message.

use super::Rendezvous;
use super::learner::SPECULATION;
use crate::choice::choose::LONG;
use crate::choice::terms::{self, Message};
use crate::choice::way::{Protocol, Way};
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Sending};
use fabric::{Device, Distance, Rank, Rights};

/// Long messages between two times that the limit of eager is worked out anew.
const REFRESH: u32 = 64;

impl<D: Device> Rendezvous<'_, D> {
    /// Selects the way of a long message over registered memory, and says whether an RTR would be welcome the next
    /// time.
    pub(crate) fn select(&mut self, id: OpId, s: &Sending, wanted: Protocol, rtr: bool) -> (Way, bool) {
        let asked = if rtr && wanted == Protocol::Speculative { Way::Write } else { Way::of(wanted) };
        if !self.path(s.to).registration {
            self.tell_host(id, s.to, s.data.len, asked);
            return (asked, true);
        }
        let distance = self.dev.distance(s.to);
        let before = self.learner.uses(s.data) as f64;
        let reuse =
            if self.rcache.has(0, s.data, Rights::NONE) { 1.0 } else { before / (before + SPECULATION) };
        let late_ns = self.learner.late_ns(&s.envelope(), distance);
        let message = Message { len: s.data.len, distance, reuse, rtr, late_ns, eager: false };
        let forced = self.rules.force.is_some() || !self.rules.adapt;
        let learner = &mut *self.learner;
        let chosen = if forced { None } else { learner.choices.take(&learner.facts, &message, &LONG) };
        let (way, predicted_ns) = chosen.unwrap_or_else(|| {
            (asked, terms::cost(asked, &learner.facts, &message).map_or(0.0, |cost| cost.total_ns()))
        });
        learner.tell(id, s.envelope(), way, &message, predicted_ns, self.dev.now_ns());
        let welcome = forced || learner.welcomes_rtr(&message, way);
        learner.decided += 1;
        if !forced && learner.decided.is_multiple_of(REFRESH) {
            self.refresh();
        }
        (way, welcome)
    }

    /// Works out anew what follows from all facts together.
    pub(crate) fn refresh(&mut self) {
        for (distance, _) in Distance::ALL {
            if self.learner.facts.path(distance).registration {
                self.eager_limits[distance as usize].set(self.learner.eager_limit(distance));
            }
        }
    }

    /// A message of shared memory leaves whose end will be seen, if an account is kept.
    pub(crate) fn tell_host(&mut self, id: OpId, to: Rank, len: usize, way: Way) {
        if self.learner.account.is_on() {
            let distance = self.dev.distance(to);
            let message = Message { len, distance, reuse: 0.0, rtr: false, late_ns: 0.0, eager: false };
            let predicted_ns = match way {
                Way::Both => self.eager_limit(to).rendezvous_ns(len),
                _ => terms::cost(way, &self.learner.facts, &message).map_or(0.0, |cost| cost.total_ns()),
            };
            let envelope = Envelope { source: to, context: 0, tag: 0 }; // nobody answers
            self.learner.tell(id, envelope, way, &message, predicted_ns, self.dev.now_ns());
        }
    }
}
