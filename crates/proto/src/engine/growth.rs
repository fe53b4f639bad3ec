//! Peers that come after the start: processes of other jobs, behind a device that may have been opened for them.

use super::Engine;
use crate::choice::eager_limit::EagerLimit;
use crate::memory::staging::Staging;
use fabric::{Device, Distance};

impl<D: Device> Engine<D> {
    /// Changes the device, which may know more peers afterwards, or reach those of another host for the first time.
    pub fn extend<R>(&mut self, change: impl FnOnce(&mut D) -> R) -> R {
        let (size, was_at_once) = (self.dev.size(), self.dev.takes_at_once());
        let had_network = self.learner.facts.path(Distance::Network).registration;
        let changed = change(&mut self.dev);
        if !had_network && self.dev.caps(Distance::Network).registration {
            self.open_network();
        }
        if self.dev.size() > size {
            self.peers.grow(self.dev.size());
            self.matching.grow(self.dev.size(), was_at_once && !self.dev.takes_at_once());
        }
        changed
    }

    /// What was found out at the start of the way to other hosts, when there was none.
    fn open_network(&mut self) {
        let network = Distance::Network;
        let (caps, costs) = (self.dev.caps(network), self.dev.costs(network));
        let facts = &mut self.learner.facts;
        facts.open(network, &costs, caps, self.dev.rails(), self.limits.eager_bytes);
        let path = facts.path(network);
        let (staged, bytes) = (path.tuning.staged_messages, path.tuning.staging_bytes);
        let (setup_ns, per_byte) = costs.single;
        self.eager_limits[network as usize] = EagerLimit::new(path.eager_bytes, false, setup_ns, per_byte);
        self.looks[network as usize] = caps.looks;
        // Nothing is staged without registered memory.
        self.staging = Staging::new(staged, bytes);
        if self.limits.adapt && self.limits.force.is_none() {
            self.rendezvous().refresh();
        }
    }
}
