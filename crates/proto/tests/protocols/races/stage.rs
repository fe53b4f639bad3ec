//! What ranks play on: a scripted device, on which each frame arrives when a step says so, and adapters that
//! keep no promise which verbs do not make.

use super::scenario::Scenario;
use crate::adapter::{self, Adapter};
use crate::fake::{self, Fake};
use fabric::{Device, Rank};
use proto::Engine;
use proto::channel::{Channel, Settings};
use std::cell::RefCell;
use std::rc::Rc;

/// Devices of all ranks and what connects them.
pub trait Stage: Sized {
    /// A rank's end.
    type Device: Device;
    /// Looks in a row that find nothing after which nothing comes any more.
    const PATIENCE: usize;

    /// What a scenario asks for; `seed` is where chance comes from, if any has a part.
    fn new(scenario: &Scenario, seed: u64) -> Self;
    /// The end of a rank.
    fn device(&self, me: Rank) -> Self::Device;
    /// Whether something is on its way.
    fn under_way(&self, from: Rank, to: Rank) -> bool;
    /// Lets some of that arrive.
    fn arrive(&self, from: Rank, to: Rank);
    /// Says what a rank of whose sends so many wait has kept though it may not.
    fn left(&self, me: Rank, engine: &Engine<Self::Device>, waiting: usize) -> Result<(), String>;
}

/// Frames arrive in steps.
pub struct Scripted(Rc<RefCell<fake::Net>>);

impl Stage for Scripted {
    type Device = Fake;
    const PATIENCE: usize = 3;

    fn new(scenario: &Scenario, _seed: u64) -> Scripted {
        let net = fake::Net::new(scenario.ranks.len(), scenario.room);
        net.borrow_mut().reach.clone_from(&scenario.reach);
        net.borrow_mut().grants.clone_from(&scenario.grants);
        net.borrow_mut().slow = scenario.slow;
        Scripted(net)
    }

    fn device(&self, me: Rank) -> Fake {
        Fake::new(me, &self.0)
    }

    fn under_way(&self, from: Rank, to: Rank) -> bool {
        self.0.borrow_mut().under_way(from, to)
    }

    fn arrive(&self, from: Rank, to: Rank) {
        self.0.borrow_mut().arrive(from, to);
    }

    fn left(&self, me: Rank, _engine: &Engine<Fake>, waiting: usize) -> Result<(), String> {
        let held = self.0.borrow().shares_held(me);
        let is_right = held <= waiting;
        is_right
            .then_some(())
            .ok_or_else(|| format!("rank {me} holds {held} shares for {waiting} sends that wait"))
    }
}

/// Work goes on in steps, in pieces and in any order that verbs allow.
pub struct Hostile(adapter::Shared);

impl Stage for Hostile {
    type Device = Channel<Adapter>;
    /// One of eight posts is refused for no reason.
    const PATIENCE: usize = 40;

    fn new(scenario: &Scenario, seed: u64) -> Hostile {
        let shared = adapter::Net::shared(scenario.ranks.len());
        {
            let net = &mut *shared.get();
            (net.hostile, net.random, net.look_ns) = (true, seed, 1_000_000);
            net.rails = if seed.is_multiple_of(2) { 1 } else { 3 };
            net.caps.writes_in_order = seed.is_multiple_of(3);
            net.caps.inline_bytes = if seed.is_multiple_of(5) { adapter::INLINE } else { 0 };
            net.caps.depth = scenario.room.max(2);
        }
        Hostile(shared)
    }

    fn device(&self, me: Rank) -> Channel<Adapter> {
        let settings = Settings {
            frame_bytes: 64,
            slot_bytes: 96,
            slots: 3,
            fast_after: 1,
            buffers: 6,
            window: 2,
            staged: 4,
            ..Settings::default()
        };
        Channel::new(Adapter::new(me, &self.0), settings).unwrap()
    }

    fn under_way(&self, from: Rank, to: Rank) -> bool {
        self.0.get().is_busy(from, to)
    }

    fn arrive(&self, from: Rank, to: Rank) {
        self.0.get().disturb_pair(from, to);
    }

    fn left(&self, me: Rank, engine: &Engine<Channel<Adapter>>, waiting: usize) -> Result<(), String> {
        let held = engine.registrations().len();
        let is_right = held <= waiting;
        is_right
            .then_some(())
            .ok_or_else(|| format!("rank {me} holds {held} registrations for {waiting} sends that wait"))
    }
}
