//! Which stores write a long payload into a block: ordinary ones, with their lines asked for before or not, or
//! such that go past the caches.
//!
//! The lines of a block lie in the caches of the core that read it, and each must be fetched before it can be
//! written. Ordinary stores become visible in their order, so they wait for one such line after the other; asked for
//! at once they come side by side. Between far cores it may even be quicker to write to memory, and read from there. Which
//! of these holds for a pair of ranks is found out on its messages, and again and again, since virtual
//! machines are moved:
//!
//! ```text
//! cost(way) = copy_in(way) + copy_out(way)      ns per byte, at the writer and at the reader
//! ```
//!
//! The first copies of a length go by each way in turn, twice, and the cheapest is in force then. Now and then the writer measures
//! a few copies by it and then a few by one of the others, and marks those frames; the reader measures what it takes to copy them out, and tells with the credit for the frame. What
//! is much cheaper twice is in force from then on. Both were measured at the same time, whatever else went on, and
//! with payloads of about the same length: long ones cost less for each byte, so each power of two is a class of its own.
//! Virtual machines are moved from near cores to far ones and back within seconds, so comparisons go on for ever.

use crate::bytes;
use crate::lending::Whose;
use crate::pool::BLOCK_BYTES;
use fabric::arms::{Arms, Policy};

/// Payloads that the way in force carries, and whose copies are measured: shorter ones are over before it has paid off.
pub const LEAST: usize = 1024;
/// Classes of lengths.
const CLASSES: usize = (BLOCK_BYTES.ilog2() - LEAST.ilog2()) as usize + 1;
/// To begin with so many copies go by each way, and so many again on the way back: what disturbs all of one burst disturbs hardly both,
/// and a way that is wrong from the start would stay for hundreds of messages.
const OPENING: u32 = 4;
/// A comparison begins with so many copies by the way in force of which one is measured, so many times: the reader may be
/// some behind, and only its last answer is heard.
const SAMPLE: u32 = 4;
const SAMPLES: u32 = 4;
/// Then so many go by the other way. The first ones meet what the way in force has left in the caches, and what they leave is
/// not yet met: those behind them are measured.
const BURST: u32 = 6;
const UNMEASURED: u32 = 2;
/// After so many more, which the way in force carries, the answers of readers that are behind have come.
const ANSWERED: u32 = 8;
/// Then so many go by the way in force, at first and at last: a burst of a way that takes ten times as long, as ordinary
/// stores between far cores do, is a few percent of them.
const REST: u32 = 512;
const REST_MIN: u32 = 16;
/// Steps are comparisons, of a few copies each: another way must be much cheaper, for both sides of what is compared are
/// disturbed alike, and what a way leaves in the caches speaks for it. The rest is copies.
const POLICY: Policy = Policy { margin: 0.25, dwell: 0, tries: (REST_MIN, REST) };

/// A way that took so many times as long as the one in force when they were compared is tried again once what trying it cost then is no more than one part in so many of the copies
/// since: lines that have gone past the caches cost what comes behind the burst as much again.
const FAR: f64 = 1.5;
const SHARE: f64 = 128.0;
/// Unless the way in force has come to take so many times as long, or as short: then it is another time, or another place of a virtual machine.
const MOVED: f64 = 1.5;

/// How payloads are written into shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum StoreWay {
    /// Through the caches.
    Ordinary = 0,
    /// Past them.
    Streaming = 1,
    /// Through the caches, which are asked for the lines before.
    Prefetched = 2,
}

impl StoreWay {
    /// How many there are.
    const COUNT: usize = 3;
    /// Bits of a number that [`StoreWay::from_bits`] knows.
    pub const BITS: u32 = 2;

    /// The one of this number, as another rank says it.
    pub fn from_bits(bits: u64) -> StoreWay {
        [StoreWay::Ordinary, StoreWay::Streaming, StoreWay::Prefetched, StoreWay::Ordinary]
            [(bits & 3) as usize]
    }

    /// Those that this processor has, the one first that is likely to be the best. To ask for lines that are there
    /// costs little: a few ns for 1 KiB. That they are elsewhere costs several hundred.
    pub fn all() -> &'static [StoreWay] {
        match (bytes::prefetches(), bytes::streams()) {
            (true, true) => &[StoreWay::Prefetched, StoreWay::Ordinary, StoreWay::Streaming],
            (true, false) => &[StoreWay::Prefetched, StoreWay::Ordinary],
            (false, true) => &[StoreWay::Ordinary, StoreWay::Streaming],
            (false, false) => &[StoreWay::Ordinary],
        }
    }

    /// That one alone, or, where this processor does not have it, the ordinary one.
    pub fn only(self) -> &'static [StoreWay] {
        match self {
            StoreWay::Prefetched if bytes::prefetches() => &[StoreWay::Prefetched],
            StoreWay::Streaming if bytes::streams() => &[StoreWay::Streaming],
            _ => &[StoreWay::Ordinary],
        }
    }
}

/// How one copy is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// By which stores.
    pub way: StoreWay,
    /// Whether writer and reader are to say how long it took.
    pub measured: bool,
}

impl Plan {
    /// How payloads shorter than [`LEAST`] are copied.
    pub const SHORT: Plan = Plan { way: StoreWay::Ordinary, measured: false };
}

/// Where a payload lies, as a frame says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its block, by name.
    pub block: u16,
    /// And whose that is.
    pub whose: Whose,
    /// Bytes.
    pub len: usize,
    /// How it was written.
    pub plan: Plan,
}

impl Place {
    /// In one word: block (16) | way, measured, whose (16) | length (32).
    #[inline]
    pub fn pack(self) -> u64 {
        let flags = self.plan.way as u64
            | (self.plan.measured as u64) << StoreWay::BITS
            | self.whose.bits() << (StoreWay::BITS + 1);
        u64::from(self.block) | flags << 16 | (self.len as u64) << 32
    }

    /// From that.
    #[inline]
    pub fn unpack(word: u64) -> Place {
        let flags = word >> 16;
        let plan = Plan { way: StoreWay::from_bits(flags), measured: flags >> StoreWay::BITS & 1 != 0 };
        let whose = Whose::from_bits(flags >> (StoreWay::BITS + 1));
        Place { block: word as u16, whose, len: (word >> 32) as usize, plan }
    }
}

/// What a reader tells: which way, for payloads of which class, took so long.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Told {
    way: StoreWay,
    class: u8,
    ns_per_byte: f32,
}

impl Told {
    const CLASS_BITS: u32 = 4;
    /// Bits below the number of the answer.
    const BITS: u32 = StoreWay::BITS + Told::CLASS_BITS;

    /// The reader of a payload of `len` bytes says what each byte took.
    pub fn new(way: StoreWay, len: usize, ns_per_byte: f32) -> Told {
        Told { way, class: class_of(len) as u8, ns_per_byte }
    }

    /// In one word: way, class (6) | number of the answer (26) | ns per byte (32).
    pub fn pack(self, number: u32) -> u64 {
        let low = number << Told::BITS | u32::from(self.class) << StoreWay::BITS | self.way as u32;
        u64::from(self.ns_per_byte.to_bits()) << 32 | u64::from(low)
    }

    /// From that: whatever a peer has written, one that can be taken in.
    pub fn unpack(word: u64) -> Told {
        Told {
            way: StoreWay::from_bits(word),
            class: (word >> StoreWay::BITS) as u8 & ((1 << Told::CLASS_BITS) - 1),
            ns_per_byte: f32::from_bits((word >> 32) as u32),
        }
    }
}

/// Which class payloads of `len` bytes belong to.
fn class_of(len: usize) -> usize {
    (len.max(LEAST).ilog2() - LEAST.ilog2()) as usize
}

/// Nanoseconds per byte that copies by one way took in one comparison. The one in the middle counts: whatever disturbs makes a
/// copy longer, and a way whose copies differ much, as those that wait for memory do, is not as good as its best one.
#[derive(Clone, Copy, Default, Debug)]
pub struct Taken {
    ns: [f32; Taken::MOST],
    count: usize,
}

impl Taken {
    const MOST: usize = 2 * OPENING as usize;

    /// One more copy, of this many ns per byte.
    pub fn add(&mut self, ns: f32) {
        if self.count < Taken::MOST {
            self.ns[self.count] = ns;
            self.count += 1;
        }
    }

    /// Of the copy in the middle.
    pub fn middle(mut self) -> Option<f64> {
        let ns = &mut self.ns[..self.count];
        ns.sort_by(f32::total_cmp);
        ns.get(ns.len().saturating_sub(1) / 2).map(|ns| f64::from(*ns))
    }
}

/// What one way costs in one comparison, as far as it is known.
#[derive(Clone, Copy, Default, Debug)]
struct CopyNs {
    into: Taken,
    out: Taken,
}

impl CopyNs {
    fn sum(&self) -> Option<f64> {
        Some(self.into.middle()? + self.out.middle()?)
    }
}

/// How payloads of one class to one peer are written.
#[derive(Clone, Debug)]
struct Class {
    /// The one in force, and the one it is compared with.
    arms: Arms<StoreWay>,
    /// Whether all ways are compared, as the first copies are for.
    is_opening: bool,
    /// What each of those that are compared costs by this comparison, by way.
    costs: [CopyNs; StoreWay::COUNT],
    /// Copies of this comparison.
    copies: u32,
    /// All copies, and how many there are to be before each way is tried again.
    all: u64,
    again: [u64; StoreWay::COUNT],
    /// What the way in force took when it was compared last.
    before: Option<f64>,
    /// Whether the way that was tried last was better than the one in force: if it is in the next comparison too, it takes its place.
    is_better: bool,
}

impl Class {
    /// Copies of a comparison behind which the way in force has been measured, the other one, and all is known.
    const COMPARED: u32 = SAMPLES * SAMPLE;
    const TRIED: u32 = Class::COMPARED + BURST;
    const ENDED: u32 = Class::TRIED + ANSWERED;

    fn new(first: StoreWay) -> Class {
        Class {
            arms: Arms::new(first, &POLICY),
            is_opening: true,
            costs: Default::default(),
            copies: 0,
            all: 0,
            again: [0; StoreWay::COUNT],
            before: None,
            is_better: false,
        }
    }

    /// The next comparison is with what was better in the last one, or else with the next of the other ways.
    fn begins(&mut self, ways: &[StoreWay]) {
        if !self.is_better {
            let is_due = |way: &StoreWay| self.again[*way as usize] <= self.all;
            let due: Vec<StoreWay> = ways.iter().copied().filter(is_due).collect();
            self.arms.turn(&due, self.arms.in_force());
        }
        (self.copies, self.costs) = (0, Default::default());
    }

    /// The next of the first copies; with none left the cheapest way is in force, and rests before it is compared.
    fn opens(&mut self, ways: &[StoreWay]) -> Plan {
        let burst = (self.copies / OPENING) as usize;
        if let Some(way) = ways.iter().chain(ways.iter().rev()).nth(burst) {
            self.copies += 1;
            return Plan { way: *way, measured: true };
        }
        self.is_opening = false;
        self.copies = Class::ENDED;
        self.arms.change(self.best(ways));
        self.puts_off();
        Plan { way: self.arms.in_force(), measured: false }
    }

    /// The cheapest way by what was measured: the one in force, unless another is much cheaper.
    ///
    /// Ways through the caches cost less as long as they are in force, since the lines of blocks are in some cache then: a burst
    /// of one between copies that go past the caches finds them in memory. So it is not asked
    /// whether such a way is better than [`StoreWay::Streaming`], but whether that is much better, whichever is in force.
    fn best(&self, ways: &[StoreWay]) -> StoreWay {
        let cost = |way: StoreWay| self.costs[way as usize].sum();
        let in_force = self.arms.in_force();
        if cost(in_force).is_none() {
            return in_force;
        }
        let through = ways.iter().filter(|way| **way != StoreWay::Streaming);
        let through = through.filter_map(|way| Some((*way, cost(*way)?)));
        let Some(least) = through.clone().min_by(|a, b| a.1.total_cmp(&b.1)) else { return in_force };
        match cost(StoreWay::Streaming) {
            Some(past) if POLICY.is_better(past, least.1, 0.0) => StoreWay::Streaming,
            _ if in_force == StoreWay::Streaming => least.0,
            _ => self.arms.best(&POLICY, 0.0, through),
        }
    }

    /// Those that are far slower than the one in force are not tried again for a while.
    fn puts_off(&mut self) {
        let in_force = self.arms.in_force();
        let Some(now) = self.costs[in_force as usize].sum() else { return };
        let before = self.before.replace(now).unwrap_or(now);
        if !(before / MOVED..=before * MOVED).contains(&now) {
            self.again = [0; StoreWay::COUNT];
        }
        for (costs, again) in self.costs.iter().zip(&mut self.again) {
            let slower = costs.sum().map_or(0.0, |cost| cost / now);
            if slower > FAR {
                *again = self.all + (f64::from(BURST) * (slower - 1.0) * SHARE) as u64;
            }
        }
    }

    /// A comparison is over. A way that is much cheaper is compared once more, soon, and is in force if it is cheaper then too:
    /// to be wrong costs more than to be late.
    fn ends(&mut self, ways: &[StoreWay]) {
        let best = self.best(ways);
        let was_better = std::mem::replace(&mut self.is_better, false);
        if was_better || best == self.arms.in_force() {
            self.arms.change(best);
        } else {
            self.is_better = true;
            self.arms.begin_anew(self.arms.in_force(), &POLICY);
        }
        self.puts_off();
    }

    #[inline]
    fn plan(&mut self, ways: &[StoreWay]) -> Plan {
        self.all += 1;
        if self.is_opening {
            return self.opens(ways);
        }
        if self.copies == Class::ENDED {
            self.arms.step();
            if !self.arms.is_due(&POLICY) {
                return Plan { way: self.arms.in_force(), measured: false };
            }
            self.begins(ways);
        }
        self.copies += 1;
        let is_sample = self.copies <= Class::COMPARED;
        let is_tried = !is_sample && self.copies <= Class::TRIED;
        let measured = is_sample && self.copies.is_multiple_of(SAMPLE)
            || is_tried && self.copies > Class::COMPARED + UNMEASURED;
        let way = if is_tried { self.arms.tried() } else { self.arms.in_force() };
        if self.copies == Class::ENDED {
            self.ends(ways);
        }
        Plan { way, measured }
    }
}

/// How payloads to one peer are written.
#[derive(Clone, Debug)]
pub struct Stores {
    /// The ways there are; one alone is taken for ever.
    ways: &'static [StoreWay],
    /// What is known of each class of lengths that has been sent: the others begin as the one that was sent last.
    classes: [Option<Box<Class>>; CLASSES],
    latest: StoreWay,
}

impl Stores {
    /// One of these `ways`, the first one until another is seen to be cheaper.
    pub fn new(ways: &'static [StoreWay]) -> Stores {
        Stores { ways, classes: Default::default(), latest: ways[0] }
    }

    /// How to copy `len` bytes to several peers at once, whose readers are not asked what it takes.
    #[inline]
    pub fn unmeasured(&self, len: usize) -> Plan {
        if len < LEAST {
            return Plan::SHORT;
        }
        let way = match &self.classes[class_of(len)] {
            Some(class) => class.arms.in_force(),
            None => self.latest,
        };
        Plan { way, measured: false }
    }

    /// How to copy `len` bytes, at most [`BLOCK_BYTES`].
    #[inline]
    pub fn plan(&mut self, len: usize) -> Plan {
        if len < LEAST || self.ways.len() == 1 {
            return self.unmeasured(len);
        }
        let (ways, latest) = (self.ways, self.latest);
        let class = self.classes[class_of(len)].get_or_insert_with(|| Box::new(Class::new(latest)));
        let plan = class.plan(ways);
        if !plan.measured {
            self.latest = class.arms.in_force();
        }
        plan
    }

    /// A payload of `len` bytes that was to be measured took this long to write.
    pub fn write_took(&mut self, plan: Plan, len: usize, ns: u64) {
        if let Some(class) = &mut self.classes[class_of(len)] {
            class.costs[plan.way as usize].into.add(ns as f32 / len as f32);
        }
    }

    /// The reader says what it took to read.
    pub fn read_took(&mut self, told: Told) {
        let Some(Some(class)) = self.classes.get_mut(usize::from(told.class)) else { return };
        class.costs[told.way as usize].out.add(told.ns_per_byte);
    }
}

#[cfg(test)]
impl Stores {
    /// Of how many ways it is known what they cost, for payloads of `len` bytes.
    pub fn known(&self, len: usize) -> usize {
        let class = self.classes[class_of(len)].as_ref();
        class.map_or(0, |class| class.costs.iter().filter(|cost| cost.sum().is_some()).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [StoreWay; 3] = [StoreWay::Prefetched, StoreWay::Ordinary, StoreWay::Streaming];

    /// Copies `len` bytes by this plan, where each byte costs this much for each way; `disturbed` ones take longer.
    fn copy_once(stores: &mut Stores, len: usize, ps: [u64; 3], disturbed: bool) -> StoreWay {
        let plan = stores.plan(len);
        if plan.measured {
            let ns = if disturbed { 1_000_000 } else { ps[plan.way as usize] * len as u64 / 1000 };
            stores.write_took(plan, len, ns);
            stores.read_took(Told::new(plan.way, len, ns as f32 / len as f32));
        }
        plan.way
    }

    /// Copies `count` times 8 KiB: how many went by each way.
    fn copy(stores: &mut Stores, count: u32, ps: [u64; 3]) -> [u32; 3] {
        let mut taken = [0; 3];
        (0..count).for_each(|_| taken[copy_once(stores, 8192, ps, false) as usize] += 1);
        taken
    }

    /// In ps for each byte, ordinary, streaming, prefetched: near cores, far ones whose caches are quick, and far ones
    /// that share none (docs/results/stores.md).
    const NEAR: [u64; 3] = [40, 90, 38];
    const FAR: [u64; 3] = [300, 280, 160];
    const APART: [u64; 3] = [300, 90, 160];

    /// Bursts of `count` copies.
    fn bursts(count: u32) -> u32 {
        (count / REST + (REST / REST_MIN).ilog2() + 2) * BURST
    }

    #[test]
    fn of_three_ways_the_cheapest_is_found_wherever_it_is_in_the_order() {
        for (ps, best) in [
            (NEAR, StoreWay::Prefetched),
            (FAR, StoreWay::Prefetched),
            (APART, StoreWay::Streaming),
            ([100, 300, 200], StoreWay::Ordinary),
        ] {
            let mut stores = Stores::new(&ALL);
            copy(&mut stores, 2 * (SAMPLES * SAMPLE + BURST + REST_MIN), ps);
            let count = 10 * REST;
            let taken = copy(&mut stores, count, ps);
            assert!(taken[best as usize] >= count - bursts(count), "{ps:?} {taken:?}");
            assert!(taken.iter().all(|copies| *copies >= 2 * BURST), "each is tried: {taken:?}");
        }
    }

    /// A virtual machine is moved, or another process comes between: each way is tried once in two times
    /// [`REST`].
    #[test]
    fn what_becomes_cheaper_is_found() {
        let mut stores = Stores::new(&ALL);
        for (ps, best) in [(FAR, 2), (APART, 1), ([30, 200, 90], 0), (FAR, 2)] {
            copy(&mut stores, 3 * REST, ps);
            let taken = copy(&mut stores, REST, ps);
            assert!(taken[best] >= REST - bursts(REST), "{ps:?} {taken:?}");
        }
    }

    /// A way that is far slower costs little for being tried, and is found all the same where the one in force has come to cost more.
    #[test]
    fn what_is_far_slower_is_rarely_tried() {
        const SLOW: [u64; 3] = [42, 170, 38];
        let mut stores = Stores::new(&ALL);
        copy(&mut stores, REST, SLOW);
        let [ordinary, streaming, _] = copy(&mut stores, 20 * REST, SLOW);
        assert!(streaming <= 4 * BURST && ordinary >= 5 * BURST, "{ordinary} {streaming}");
        copy(&mut stores, 3 * REST, APART);
        assert_eq!(stores.unmeasured(8192).way, StoreWay::Streaming);
    }

    /// Lines that a few copies have brought into some cache are cheap to write and to read: no single burst of a way that
    /// is not in force sees that. A change takes two comparisons of each other way, and so many copies to be found.
    #[test]
    fn ways_that_are_dear_until_they_are_in_force_are_found() {
        let mut stores = Stores::new(&ALL);
        copy(&mut stores, 3 * REST, APART);
        assert_eq!(stores.unmeasured(8192).way, StoreWay::Streaming);
        let (mut warm, mut taken) = (0u32, 0);
        for round in 0..20 * REST {
            let ps = if warm > 2 * BURST { [100, 200, 90] } else { [260, 200, 240] };
            let way = copy_once(&mut stores, 8192, ps, false);
            warm = if way == StoreWay::Streaming { 0 } else { warm + 1 };
            taken += u32::from(round >= 5 * REST && way == StoreWay::Prefetched);
        }
        assert!(taken >= 15 * REST - 3 * bursts(15 * REST), "{taken}");
    }

    /// What cannot be had is not tried.
    #[test]
    fn where_there_are_two_ways_or_one_no_other_is_taken() {
        let mut two = Stores::new(&[StoreWay::Ordinary, StoreWay::Streaming]);
        assert_eq!(copy(&mut two, 10 * REST, NEAR)[2], 0);
        for way in ALL {
            let mut one = Stores::new(way.only());
            let taken = copy(&mut one, 5000, FAR);
            assert_eq!(taken[way.only()[0] as usize], 5000);
            assert!(!one.plan(8192).measured && one.plan(100).way == StoreWay::Ordinary);
        }
        assert!(StoreWay::all().iter().all(|way| way.only() == [*way]));
    }

    #[test]
    fn places_are_packed() {
        for (way, measured) in ALL.into_iter().flat_map(|way| [(way, true), (way, false)]) {
            for whose in [Whose::SENDERS, Whose::lent(3), Whose::readers(0), Whose::readers(3)] {
                let place = Place { block: u16::MAX, whose, len: 65536, plan: Plan { way, measured } };
                assert_eq!(Place::unpack(place.pack()), place);
            }
            assert_eq!(StoreWay::from_bits(way as u64), way);
        }
    }

    #[test]
    fn short_payloads_are_not_measured() {
        let mut stores = Stores::new(&ALL);
        let ordinary = Plan { way: StoreWay::Ordinary, measured: false };
        assert!((0..5000).all(|_| stores.plan(LEAST - 1) == ordinary));
    }

    /// Whatever a peer says, it is taken in or not, and nothing else happens.
    #[test]
    fn answers_are_packed_and_any_word_is_one() {
        let told = Told::new(StoreWay::Streaming, 3 * LEAST, 0.25);
        assert_eq!(Told::unpack(told.pack(u32::MAX)), told);
        assert_ne!(told.pack(1), told.pack(2), "two answers alike are two");
        let mut stores = Stores::new(&ALL);
        copy(&mut stores, 10, NEAR);
        (0..u64::BITS).for_each(|bit| stores.read_took(Told::unpack(u64::MAX >> bit)));
        assert!(ALL.contains(&stores.plan(8192).way));
    }

    /// Other processes on the core, a machine that stands still.
    #[test]
    fn slow_copies_between_fast_ones_change_nothing() {
        let mut stores = Stores::new(&ALL);
        for round in 0..10 * REST {
            copy_once(&mut stores, 8192, FAR, (round / SAMPLE).is_multiple_of(3));
            assert_eq!(stores.unmeasured(8192).way, StoreWay::Prefetched);
        }
    }

    #[test]
    fn costs_that_are_nearly_the_same_change_nothing() {
        let mut stores = Stores::new(&ALL);
        copy(&mut stores, 6 * OPENING, [260, 270, 300]);
        assert!(copy(&mut stores, 10 * REST, [260, 270, 300])[2] >= 10 * REST - bursts(10 * REST));
    }

    /// A long payload costs less for each byte than a short one. That says nothing of the ways, in whatever
    /// order they come.
    #[test]
    fn lengths_are_not_mixed_up() {
        for period in 2..9 {
            let mut stores = Stores::new(&ALL);
            for round in 0..20 * REST {
                let (len, ps) =
                    if round % period == 0 { (4096, [900, 800, 850]) } else { (65536, [110, 100, 105]) };
                copy_once(&mut stores, len, ps, false);
                assert_eq!(stores.unmeasured(len).way, StoreWay::Prefetched, "{period} {round}");
            }
        }
    }

    /// Each length has its own way, and a new one begins with that of the last.
    #[test]
    fn lengths_are_found_out_on_their_own() {
        let mut stores = Stores::new(&ALL);
        (0..REST).for_each(|_| _ = copy_once(&mut stores, 4096, APART, false));
        assert_eq!(stores.unmeasured(65536).way, StoreWay::Streaming);
        (0..REST).for_each(|_| _ = copy_once(&mut stores, 65536, FAR, false));
        let ways = [4096, 65536].map(|len| stores.unmeasured(len).way);
        assert_eq!(ways, [StoreWay::Streaming, StoreWay::Prefetched]);
    }

    /// Ninety messages are enough to find the best way.
    #[test]
    fn few_messages_tell() {
        for (ps, best) in [(NEAR, 2), (FAR, 2), (APART, 1), ([100, 300, 200], 0)] {
            let mut stores = Stores::new(&ALL);
            copy(&mut stores, 90, ps);
            assert_eq!(copy(&mut stores, 10, ps)[best], 10, "{ps:?}");
        }
    }
}
