//! How a long payload is read out of a block: by ordinary copies, by such whose lines are asked for before, or page by page
//! side by side.
//!
//! The lines of a block lie in the caches of the core that has written it, or in the one that both share. A processor asks for the lines that it
//! thinks come next, but stops at the end of each page, and begins anew, slowly, in the next one. There are two ways out, and which is quicker depends
//! on the processor, on where the cores lie and on the length:
//!
//! | way | what it does | costs |
//! | --- | --- | --- |
//! | `ordinary` | copies | a start in each page |
//! | `prefetched` | asks for lines 2 KiB before they are read | a hint for each line |
//! | `side-by-side` | copies line by line of four pages at once | its sender must be four pages ahead |
//!
//! The reader finds out what takes the least time, for each peer and each power of two of lengths: some frames are read by each way in turn, and
//! the one in the middle counts. Nobody else need know. What is written past the caches is read side by side in any case ([`crate::stores`]).

use crate::bytes;
use crate::pool::BLOCK_BYTES;
use crate::stores::{Plan, StoreWay, Taken};
use fabric::arms::{Arms, Policy};

/// Shorter payloads are over before a way has paid off.
pub const LEAST: usize = 8192;
/// Classes of lengths.
const CLASSES: usize = (BLOCK_BYTES.ilog2() - LEAST.ilog2()) as usize + 1;
/// From this length on pages side by side are tried: twice what is waited for.
const SIDE_BY_SIDE: usize = 2 * bytes::PAGES;
/// So many frames go by each way of a comparison, one after the other: what disturbs several in a row disturbs all ways.
const SAMPLES: u32 = 7;
/// Steps are frames of a class that are not compared. Ways leave the same in the caches, so a small difference is one.
const POLICY: Policy = Policy { margin: 0.03, dwell: 0, tries: (16, 512) };

/// How payloads are read out of shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadWay {
    /// As any memory.
    Ordinary,
    /// Lines are asked for before they are read.
    Prefetched,
    /// Line by line of several pages at once.
    SideBySide,
}

impl LoadWay {
    /// How many there are.
    const COUNT: usize = 3;

    /// Those that this processor has, the one first that is likely to be the best: to ask for lines that are there costs little. The last one
    /// is for long payloads alone.
    pub fn all() -> &'static [LoadWay] {
        match bytes::asks() {
            true => &[LoadWay::Prefetched, LoadWay::Ordinary, LoadWay::SideBySide],
            false => &[LoadWay::Ordinary, LoadWay::SideBySide],
        }
    }

    /// That one alone.
    pub fn only(self) -> &'static [LoadWay] {
        match self {
            LoadWay::Ordinary => &[LoadWay::Ordinary],
            LoadWay::Prefetched => &[LoadWay::Prefetched],
            LoadWay::SideBySide => &[LoadWay::SideBySide],
        }
    }

    /// How many bytes must be there for this to begin, unless no more will come.
    #[inline]
    pub fn least(self) -> usize {
        if self == LoadWay::SideBySide { bytes::PAGES } else { 1 }
    }
}

/// How one payload is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// By which way.
    pub way: LoadWay,
    /// Whether it is to be told how long it took.
    pub measured: bool,
}

impl Load {
    /// Of a short payload.
    const SHORT: Load = Load { way: LoadWay::Ordinary, measured: false };
    /// Of one that lies in memory.
    const PAST: Load = Load { way: LoadWay::SideBySide, measured: false };
}

/// How payloads of one class from one peer are read.
#[derive(Clone, Debug)]
struct Class {
    arms: Arms<LoadWay>,
    /// Whether all ways are compared, and not one of them with the one in force.
    is_opening: bool,
    /// Frames of the comparison under way; `None` between two.
    frames: Option<u32>,
    taken: [Taken; LoadWay::COUNT],
}

impl Class {
    fn new(first: LoadWay) -> Class {
        Class {
            arms: Arms::new(first, &POLICY),
            is_opening: true,
            frames: Some(0),
            taken: Default::default(),
        }
    }

    fn plan(&mut self, ways: &[LoadWay]) -> Load {
        let in_force = self.arms.in_force();
        let Some(frames) = self.frames else {
            self.arms.step();
            if self.arms.is_due(&POLICY) {
                self.arms.turn(ways, in_force);
                (self.frames, self.taken) = (Some(0), Default::default());
            }
            return Load { way: in_force, measured: false };
        };
        let pair = [in_force, self.arms.tried()];
        let compared = if self.is_opening { ways } else { &pair };
        if frames == SAMPLES * compared.len() as u32 {
            self.ends(ways);
            return Load { way: self.arms.in_force(), measured: false };
        }
        self.frames = Some(frames + 1);
        Load { way: compared[frames as usize % compared.len()], measured: true }
    }

    fn ends(&mut self, ways: &[LoadWay]) {
        let cost = |way: &LoadWay| Some((*way, self.taken[*way as usize].middle()?));
        // Frames whose senders lost their cores are not measured.
        if cost(&self.arms.in_force()).is_some() {
            self.arms.change(self.arms.best(&POLICY, 0.0, ways.iter().filter_map(cost)));
        }
        (self.frames, self.is_opening) = (None, false);
    }
}

/// How payloads of one peer are read.
#[derive(Clone, Debug)]
pub struct Loads {
    /// The ways there are; one alone is taken for ever.
    ways: &'static [LoadWay],
    /// What is known of each class of lengths that has come: the others begin as the one that came last.
    classes: [Option<Box<Class>>; CLASSES],
    latest: LoadWay,
}

impl Loads {
    /// By these `ways`, the first one until another is seen to take less.
    pub fn new(ways: &'static [LoadWay]) -> Loads {
        Loads { ways, classes: Default::default(), latest: ways[0] }
    }

    /// How to read `len` bytes, at most [`BLOCK_BYTES`], that were written so.
    #[inline]
    pub fn plan(&mut self, written: Plan, len: usize) -> Load {
        if len < LEAST {
            return Load::SHORT;
        }
        match written.way {
            StoreWay::Streaming => Load::PAST,
            _ if self.ways.len() == 1 => Load { way: self.ways[0], measured: false },
            _ => self.plan_long(len),
        }
    }

    fn plan_long(&mut self, len: usize) -> Load {
        let ways = match self.ways {
            [ways @ .., LoadWay::SideBySide] if len < SIDE_BY_SIDE => ways,
            ways => ways,
        };
        let first = if ways.contains(&self.latest) { self.latest } else { ways[0] };
        let class = self.classes[class_of(len)].get_or_insert_with(|| Box::new(Class::new(first)));
        let load = class.plan(ways);
        if !load.measured {
            self.latest = load.way;
        }
        load
    }

    /// A payload of `len` bytes that was to be measured took this long.
    pub fn took(&mut self, load: Load, len: usize, ns: u64) {
        if let Some(class) = &mut self.classes[class_of(len)] {
            class.taken[load.way as usize].add(ns as f32 / len as f32);
        }
    }
}

/// Which class payloads of `len` bytes belong to, at least [`LEAST`].
fn class_of(len: usize) -> usize {
    (len.max(LEAST).ilog2() - LEAST.ilog2()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LoadWay; 3] = [LoadWay::Prefetched, LoadWay::Ordinary, LoadWay::SideBySide];
    const THROUGH: Plan = Plan { way: StoreWay::Prefetched, measured: false };

    /// Reads `count` payloads of `len` bytes, each byte of which costs this much by each way: how many went by each.
    fn read(loads: &mut Loads, count: u32, len: usize, ps: [u64; 3]) -> [u32; 3] {
        let mut taken = [0; 3];
        for at in 0..count {
            let load = loads.plan(THROUGH, len);
            taken[load.way as usize] += 1;
            if load.measured {
                // Another process comes between, now and then.
                let ns = if at % 17 == 3 { 1_000_000 } else { ps[load.way as usize] * len as u64 / 1000 };
                loads.took(load, len, ns);
            }
        }
        taken
    }

    /// Frames that are read by others than the one in force, in `count`.
    fn tries(count: u32) -> u32 {
        SAMPLES * (count / POLICY.tries.1 + (POLICY.tries.1 / POLICY.tries.0).ilog2() + 2)
    }

    #[test]
    fn the_quickest_way_is_found_and_found_again_when_another_one_is() {
        let mut loads = Loads::new(&ALL);
        for (ps, best) in [([50, 40, 60], 1), ([40, 50, 60], 0), ([60, 50, 40], 2), ([50, 40, 60], 1)] {
            read(&mut loads, 3 * POLICY.tries.1, 1 << 17, ps);
            let taken = read(&mut loads, 10 * POLICY.tries.1, 1 << 17, ps);
            assert!(taken[best] >= 10 * POLICY.tries.1 - tries(10 * POLICY.tries.1), "{ps:?} {taken:?}");
        }
    }

    /// The first comparison, of all ways, is enough.
    #[test]
    fn few_frames_tell() {
        for (ps, best) in [([50, 40, 60], 1), ([40, 50, 60], 0), ([60, 50, 40], 2)] {
            let mut loads = Loads::new(&ALL);
            read(&mut loads, 3 * SAMPLES, 1 << 16, ps);
            assert_eq!(read(&mut loads, 10, 1 << 16, ps)[best], 10, "{ps:?}");
        }
    }

    #[test]
    fn costs_that_are_nearly_the_same_change_nothing() {
        let mut loads = Loads::new(&ALL);
        let taken = read(&mut loads, 10_000, 1 << 15, [100, 101, 99]);
        assert!(taken[LoadWay::Prefetched as usize] >= 10_000 - SAMPLES - tries(10_000), "{taken:?}");
    }

    /// Senders that lose their cores while their payloads are read: nothing is known of the way in force.
    #[test]
    fn what_was_not_measured_changes_nothing() {
        let mut loads = Loads::new(&ALL);
        for _ in 0..3 * SAMPLES {
            let load = loads.plan(THROUGH, 1 << 17);
            if load.way != LoadWay::Prefetched {
                loads.took(load, 1 << 17, 10);
            }
        }
        let load = Load { way: LoadWay::Prefetched, measured: false };
        assert_eq!(loads.plan(THROUGH, 1 << 17), load);
    }

    /// What cannot pay off is not tried, nor what is not there; what lies in memory is read as such.
    #[test]
    fn ways_are_for_those_that_gain() {
        let mut loads = Loads::new(&ALL);
        assert_eq!(read(&mut loads, 5000, SIDE_BY_SIDE - 1, [50, 50, 1])[2], 0);
        assert!(read(&mut loads, 5000, SIDE_BY_SIDE, [50, 50, 1])[2] > 4000);
        assert_eq!(read(&mut loads, 50, SIDE_BY_SIDE / 2, [50, 50, 1])[2], 0, "the latest way is none here");
        assert_eq!(loads.plan(THROUGH, LEAST - 1), Load::SHORT);
        let past = Plan { way: StoreWay::Streaming, measured: true };
        assert_eq!(loads.plan(past, LEAST), Load::PAST);
        for way in ALL {
            let mut one = Loads::new(way.only());
            assert_eq!(read(&mut one, 1000, 1 << 16, [1, 2, 3])[way as usize], 1000);
            assert!(!one.plan(THROUGH, 1 << 16).measured);
        }
    }
}
