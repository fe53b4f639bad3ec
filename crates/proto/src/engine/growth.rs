//! Peers that come after the start: processes of other jobs, behind a device that may have been opened for them, and those of
//! the own job, where a rank began by itself.

use super::Engine;
use crate::choice::eager_limit::EagerLimit;
use crate::memory::bounce::Bounce;
use crate::memory::staging::Staging;
use fabric::{Costs, Device, Distance, Fault};

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

    /// What messages take to other hosts was measured by jobs before this one: protocols are chosen by that from the first message on. Of
    /// `costs` latency, bytes on the wire, gap, post and read count.
    pub fn begin_with(&mut self, costs: &Costs) {
        self.learner.facts.paths[Distance::Network as usize].begin_with(costs);
        if self.limits.adapt && self.limits.force.is_none() {
            self.rendezvous().refresh();
        }
    }

    /// Goes over to a device that reaches the whole job, from one that reached this rank alone: everything that is under way is between
    /// this rank and itself, and goes on. What depends on a device is found out anew. Returns the one that has been left.
    pub fn go_over(&mut self, dev: D) -> Result<D, Fault> {
        assert_eq!(
            (dev.me(), dev.size()),
            (self.dev.me(), self.dev.size()),
            "it is the same rank of the same job"
        );
        self.take_in_all()?;
        let was_at_once = self.dev.takes_at_once();
        let new = Engine::new(dev, self.limits.clone());
        let Engine { dev, ops, matching, peers, active, rtrs, counters, fault, idle, epochs, .. } =
            std::mem::replace(self, new);
        (self.ops, self.matching, self.peers, self.active) = (ops, matching, peers, active);
        (self.rtrs, self.counters, self.fault, self.idle, self.epochs) =
            (rtrs, counters, fault, idle, epochs);
        if self.dev.takes_at_once() && !was_at_once {
            self.matching.take_at_once();
        }
        let slot_bytes = self.slot_bytes();
        if let Some(epochs) = &mut self.epochs {
            // Without an adapter there were none.
            epochs.bounce = Bounce::new(slot_bytes);
        }
        self.news = true;
        Ok(dev)
    }

    /// Takes in what this rank has sent to itself, so that nothing lies in the device: no more than that holds, whatever the limits.
    fn take_in_all(&mut self) -> Result<(), Fault> {
        let me = self.dev.me();
        let most = std::mem::replace(&mut self.limits.unexpected_bytes, usize::MAX);
        let mut moved = Ok(true);
        while moved == Ok(true) {
            moved = self.progress();
        }
        self.limits.unexpected_bytes = most;
        self.make_way(me);
        assert!(moved.is_err() || self.dev.peek(me).is_none(), "everything has been taken in");
        moved.map(drop)
    }
}
