//! Which stores write a long payload into a block: ordinary ones, or such that go past the caches.
//!
//! Ordinary stores must first fetch every line from the cache of the core that read it. Between near
//! cores that is quick; between far ones it takes longer than to write to memory and read it from
//! there. Which of the two holds for a pair of ranks is found out on its messages, and again and again,
//! since virtual machines are moved:
//!
//! ```text
//! cost(way) = copy_in(way) + copy_out(way)      ns per byte, at the writer and at the reader
//! ```
//!
//! The writer measures some of its copies and marks those frames; the reader measures what it takes to copy
//! them out, and tells with the credit for the frame. The way of less cost is taken, and now and then
//! a few payloads go by the other.

use crate::bytes::STREAMS;

/// Payloads whose copies are measured, and change the choice.
const MEASURED: usize = 2048;
/// Payloads that streaming stores may carry: they pay off from where the last chunk is not all there is.
const STREAMED: usize = 1024;
/// Copies between two measured ones.
const SAMPLE: u32 = 8;
/// Copies of which the last [`BURST`] go by the way not taken.
const EXPLORE: u32 = 1024;
const BURST: u32 = 3;
/// Copies before the first of them.
const FIRST: u32 = (GROUP + 1) * SAMPLE;
/// Measurements of which the fastest counts: the others may have met another process on the core.
const GROUP: u32 = 4;
/// Weight of a new group.
const WEIGHT: f32 = 0.25;
/// How much cheaper the other way must be.
const MARGIN: f32 = 0.8;

/// How payloads are written into shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Way {
    /// Through the caches.
    Ordinary = 0,
    /// Past them.
    Streaming = 1,
}

impl Way {
    fn other(self) -> Way {
        if self == Way::Ordinary { Way::Streaming } else { Way::Ordinary }
    }
}

/// How one copy is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// By which stores.
    pub way: Way,
    /// Whether writer and reader are to say how long it took.
    pub measured: bool,
}

/// Where a payload lies, as a frame says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The first granule of its block.
    pub granule: usize,
    /// Bytes.
    pub len: usize,
    /// How it was written.
    pub plan: Plan,
}

impl Place {
    /// In one word: granule (16) | streaming, measured (16) | length (32).
    #[inline]
    pub fn pack(self) -> u64 {
        let flags = self.plan.way as u64 | (self.plan.measured as u64) << 1;
        self.granule as u64 | flags << 16 | (self.len as u64) << 32
    }

    /// From that.
    #[inline]
    pub fn unpack(word: u64) -> Place {
        let way = if word >> 16 & 1 == 0 { Way::Ordinary } else { Way::Streaming };
        let plan = Plan { way, measured: word >> 17 & 1 != 0 };
        Place { granule: word as u16 as usize, len: (word >> 32) as usize, plan }
    }
}

/// Nanoseconds per byte of one way.
#[derive(Clone, Copy, Default, Debug)]
struct Cost {
    into: Mean,
    out: Mean,
}

impl Cost {
    fn sum(&self) -> Option<f32> {
        Some(self.into.value? + self.out.value?)
    }
}

/// An average over the fastest of each group.
#[derive(Clone, Copy, Default, Debug)]
struct Mean {
    value: Option<f32>,
    fastest: f32,
    count: u32,
}

impl Mean {
    /// Takes in a measurement of the way in use.
    fn learn(&mut self, seen: f32) {
        self.fastest = if self.count == 0 { seen } else { self.fastest.min(seen) };
        self.count = (self.count + 1) % GROUP;
        if self.count == 0 {
            let known = self.value.unwrap_or(self.fastest);
            self.value = Some(known + WEIGHT * (self.fastest - known));
        }
    }

    /// Takes in one of a few tries, of which the fastest counts: the first meets what the other way has left in
    /// the caches.
    fn tried(&mut self, seen: f32) {
        self.value = Some(self.value.map_or(seen, |known| known.min(seen)));
    }
}

/// What is known of the copies to one peer.
#[derive(Clone, Debug)]
pub struct Stores {
    way: Way,
    fixed: bool,
    costs: [Cost; 2],
    copies: u32,
}

impl Stores {
    /// Ordinary stores until others are seen to be cheaper; a `fixed` way is kept for ever.
    pub fn new(fixed: Option<Way>) -> Stores {
        Stores {
            way: fixed.unwrap_or(Way::Ordinary),
            fixed: fixed.is_some() || !STREAMS,
            costs: [Cost::default(); 2],
            copies: EXPLORE - BURST - FIRST,
        }
    }

    /// How to copy `len` bytes.
    #[inline]
    pub fn plan(&mut self, len: usize) -> Plan {
        if len < MEASURED || self.fixed {
            let way = if len < STREAMED { Way::Ordinary } else { self.way };
            return Plan { way, measured: false };
        }
        self.copies = (self.copies + 1) % EXPLORE;
        if self.copies < EXPLORE - BURST {
            return Plan { way: self.way, measured: self.copies.is_multiple_of(SAMPLE) };
        }
        let way = self.way.other();
        if self.copies == EXPLORE - BURST {
            self.costs[way as usize] = Cost::default();
        }
        Plan { way, measured: true }
    }

    /// A payload of `len` bytes that was to be measured took this long to write.
    pub fn write_took(&mut self, plan: Plan, len: usize, ns: u64) {
        let seen = ns as f32 / len as f32;
        let into = &mut self.costs[plan.way as usize].into;
        if plan.way == self.way { into.learn(seen) } else { into.tried(seen) }
    }

    /// The reader says what it took to read.
    pub fn read_took(&mut self, way: Way, ns_per_byte: f32) {
        let out = &mut self.costs[way as usize].out;
        if way == self.way {
            out.learn(ns_per_byte)
        } else {
            out.tried(ns_per_byte)
        }
        let [mine, other] = [self.way, self.way.other()].map(|way| self.costs[way as usize].sum());
        if let (Some(mine), Some(other)) = (mine, other)
            && other < MARGIN * mine
        {
            self.way = self.way.other();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies `count` times where the two ways cost this; how many went by which.
    fn copy(stores: &mut Stores, count: u32, ns: [u64; 2]) -> [u32; 2] {
        let mut taken = [0; 2];
        for _ in 0..count {
            let plan = stores.plan(8192);
            taken[plan.way as usize] += 1;
            if plan.measured {
                let ns = ns[plan.way as usize];
                stores.write_took(plan, 8192, ns);
                stores.read_took(plan.way, ns as f32 / 8192.0);
            }
        }
        taken
    }

    /// In ns for 8 KiB: near cores, far ones (docs/results.md).
    const NEAR: [u64; 2] = [300, 700];
    const FAR: [u64; 2] = [2500, 700];

    #[test]
    fn near_cores_store_as_usual_and_far_ones_past_the_caches() {
        if STREAMS {
            let mut stores = Stores::new(None);
            assert!(copy(&mut stores, 10 * EXPLORE, NEAR)[1] <= 11 * BURST);
            let dear = copy(&mut stores, 10 * EXPLORE, FAR)[0];
            assert!(dear < 12 * BURST + 10 * GROUP * SAMPLE, "{dear}");
            let slow = copy(&mut stores, 10 * EXPLORE, NEAR)[1];
            assert!(slow < EXPLORE + 12 * BURST, "{slow}");
        }
    }

    #[test]
    fn places_are_packed() {
        for (way, measured) in [(Way::Ordinary, true), (Way::Streaming, false), (Way::Streaming, true)] {
            let place = Place { granule: 1023, len: 65536, plan: Plan { way, measured } };
            assert_eq!(Place::unpack(place.pack()), place);
        }
    }

    #[test]
    fn short_payloads_and_forced_ways_are_not_measured() {
        let mut stores = Stores::new(Some(Way::Streaming));
        assert_eq!(copy(&mut stores, 5000, FAR), [0, 5000]);
        assert!(!stores.plan(8192).measured && stores.plan(100).way == Way::Ordinary);
        let mut stores = Stores::new(None);
        assert!((0..5000).all(|_| !stores.plan(1500).measured));
    }

    /// Other processes on the core, a machine that stands still.
    #[test]
    fn slow_copies_between_fast_ones_change_nothing() {
        let mut stores = Stores::new(None);
        for round in 0..10 * EXPLORE {
            let plan = stores.plan(8192);
            if plan.measured {
                let ns = if (round / SAMPLE).is_multiple_of(3) { 1_000_000 } else { NEAR[plan.way as usize] };
                stores.write_took(plan, 8192, ns);
                stores.read_took(plan.way, ns as f32 / 8192.0);
            }
            assert_eq!(stores.way, Way::Ordinary);
        }
    }

    #[test]
    fn costs_that_are_nearly_the_same_change_nothing() {
        let mut stores = Stores::new(None);
        assert!(copy(&mut stores, 10 * EXPLORE, [750, 700])[1] <= 11 * BURST);
    }
}
