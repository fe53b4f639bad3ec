//! The choice between eager and rendezvous, from what was measured here.
//!
//! Cost of a message of `n` bytes (terms as in Hockney's model, times in nanoseconds):
//!
//! ```text
//! eager       = n · max(copy_in, copy_out)           both copies go through a block, side by side
//! rendezvous  = setup + n · single                   one copy by the kernel, after a handshake
//!             = setup + n · single / 2               beyond 64 KiB, where both sides copy
//! ```
//!
//! `copy_in`, `copy_out` and `setup` are measured on real messages while the job runs: between
//! near cores a copy through a block costs a quarter of what it costs between far ones, and
//! virtual machines move between the two. `single` and the first `setup` are measured when the
//! device starts. The choice is a limit that is worked out anew when a fact has changed and
//! compared with each length: nothing is added to the path of a message. A new limit must differ
//! by an eighth from the one in force (margin), and holds for at least [`DWELL`] groups of
//! measurements, so that runs can be explained. Now and then a few longer messages go by eager all
//! the same, since a cost that is never paid again cannot be seen to have fallen.

use crate::choice::tuning::PIECE_MIN;

/// Below this length eager always wins: a system call costs more than two copies.
const FLOOR: usize = 4096;
/// Lengths from which copies are measured: shorter ones cost less than reading the clock twice.
const MEASURED: usize = 2048;
/// Copies between two measured ones.
const SAMPLE: u32 = 8;
/// Messages above the limit of which [`BURST`] go by eager to see whether it has become cheaper.
const EXPLORE: u32 = 1024;
/// How many of them in a row: one alone finds the blocks cold.
const BURST: u32 = 2 * GROUP;
/// Measurements of which the fastest counts. The others may have met a page that was never
/// touched, a block that left the cache, another process on the core.
const GROUP: u32 = 4;
/// Groups between two changes of the limit.
const DWELL: u32 = 2;
/// Messages longer than this are copied by both sides: one piece of the least length for each.
const SHARED: usize = 2 * PIECE_MIN;
/// Weight of a new measurement or group.
const WEIGHT: f64 = 0.25;

/// A cost as measured: the fastest of each group, averaged.
#[derive(Clone, Debug, Default)]
pub struct Average {
    /// `None` until measured.
    pub ns: Option<f64>,
    fastest: f64,
    copies: u32,
}

impl Average {
    /// Takes in a measurement; whether a group is complete.
    fn learn(&mut self, seen: f64) -> bool {
        self.fastest = if self.copies == 0 { seen } else { self.fastest.min(seen) };
        self.copies = (self.copies + 1) % GROUP;
        if self.copies == 0 {
            let known = self.ns.unwrap_or(self.fastest);
            self.ns = Some(known + WEIGHT * (self.fastest - known));
        }
        self.copies == 0
    }
}

/// What is known about the costs of copying.
#[derive(Clone, Debug)]
pub struct CopyCosts {
    /// Into a block, per byte.
    pub copy_in: Average,
    /// Out of a block, per byte.
    pub copy_out: Average,
    /// Of a rendezvous beyond the bytes.
    pub setup: Average,
    /// Of single copy, ns per byte.
    pub single: f64,
}

/// The choice in force.
#[derive(Clone, Debug)]
pub struct EagerLimit {
    costs: CopyCosts,
    max: usize,
    limit: usize,
    adapt: bool,
    /// Messages below this length leave with no other question asked: they are neither watched nor long.
    plain: usize,
    /// Messages of this length and longer are looked at when they leave.
    watched: usize,
    /// Length from which they are in any case.
    asked: usize,
    samples: u32,
    longer: u32,
    dwell: u32,
}

impl EagerLimit {
    /// Eager up to `max` bytes until facts say otherwise; for ever if `adapt` is off.
    pub fn new(max: usize, adapt: bool, setup: f64, single: f64) -> EagerLimit {
        let setup = Average { ns: Some(setup), ..Average::default() };
        let costs = CopyCosts { copy_in: Average::default(), copy_out: Average::default(), setup, single };
        let adapt = adapt && max > FLOOR;
        let watched = if adapt { MEASURED } else { usize::MAX };
        let asked = usize::MAX;
        let mut limit = EagerLimit {
            costs,
            max,
            limit: max,
            adapt,
            plain: 0,
            watched,
            asked,
            samples: 0,
            longer: 0,
            dwell: 0,
        };
        limit.update_plain();
        limit
    }

    fn update_plain(&mut self) {
        self.plain = self.watched.min(self.limit.saturating_add(1));
    }

    /// Whether a message is short and not watched: the one comparison that everything beyond
    /// sending costs a message.
    #[inline(always)]
    pub fn is_plain(&self, len: usize) -> bool {
        len < self.plain
    }

    /// Longest message that goes by eager now.
    #[inline(always)]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets it to what was worked out elsewhere.
    pub fn set(&mut self, limit: usize) {
        self.limit = limit.min(self.max);
        self.update_plain();
    }

    /// Looks at all messages that leave, or only at those that may be measured.
    pub fn watch(&mut self, all: bool) {
        self.watched = match (all, self.adapt) {
            (true, _) => 0,
            (false, true) => MEASURED,
            (false, false) => usize::MAX,
        };
        self.watched = self.watched.min(self.asked);
        self.update_plain();
    }

    /// Looks in any case at messages of this length and longer.
    pub fn watch_from(&mut self, len: usize) {
        self.asked = len;
        self.watched = self.watched.min(len);
        self.update_plain();
    }

    /// Whether a message that leaves is to be looked at.
    #[inline]
    pub fn watches(&self, len: usize) -> bool {
        len >= self.watched
    }

    /// The facts it rests on.
    pub fn costs(&self) -> &CopyCosts {
        &self.costs
    }

    /// What a rendezvous of `len` bytes is expected to take, in ns.
    pub fn rendezvous_ns(&self, len: usize) -> f64 {
        self.costs.setup.ns.unwrap_or(0.0) + self.costs.single * len as f64
    }

    /// Whether a message above the limit goes by eager this time, to learn.
    #[inline]
    pub fn explores(&mut self, len: usize) -> bool {
        if !self.adapt || len > self.max {
            return false;
        }
        self.longer = self.longer.wrapping_add(1);
        self.longer % EXPLORE >= EXPLORE - BURST
    }

    /// Whether to measure this copy.
    #[inline]
    pub fn measures(&mut self, len: usize) -> bool {
        if len < MEASURED || !self.adapt {
            return false;
        }
        self.samples = self.samples.wrapping_add(1);
        self.samples.is_multiple_of(SAMPLE) || len > self.limit
    }

    /// Whether a copy of this length says anything about longer ones.
    #[inline(always)]
    pub fn is_long(&self, len: usize) -> bool {
        len >= MEASURED
    }

    /// A copy of `len` bytes into a block took this long.
    pub fn copied_in(&mut self, len: usize, ns: u64) {
        if self.costs.copy_in.learn(ns as f64 / len as f64) {
            self.decide();
        }
    }

    /// A copy of `len` bytes out of a block took this long.
    pub fn copied_out(&mut self, len: usize, ns: u64) {
        if self.costs.copy_out.learn(ns as f64 / len as f64) {
            self.decide();
        }
    }

    /// Whether a piece of this length says anything about the cost of a call.
    pub fn prices(&self, len: usize) -> bool {
        self.adapt && len <= SHARED
    }

    /// A piece of `len` bytes of a rendezvous, which [`EagerLimit::prices`], took this long.
    pub fn moved(&mut self, len: usize, ns: u64) {
        let setup = (ns as f64 - self.costs.single * len as f64).max(0.0) + HANDSHAKE_NS;
        if self.costs.setup.learn(setup) {
            self.decide();
        }
    }

    fn decide(&mut self) {
        self.dwell = self.dwell.saturating_sub(1);
        let wanted = crossing(&self.costs).clamp(FLOOR, self.max);
        if self.dwell == 0 && wanted.abs_diff(self.limit) > self.limit / 8 {
            self.set(wanted);
            self.dwell = DWELL;
        }
    }
}

/// Announcing, matching and telling the end: a few lines that move between the caches.
pub(crate) const HANDSHAKE_NS: f64 = 300.0;

/// The length at which both cost the same; the largest possible one if eager always wins.
fn crossing(costs: &CopyCosts) -> usize {
    let (into, out) = (costs.copy_in.ns, costs.copy_out.ns);
    let (Some(out), Some(into), Some(setup)) = (out.or(into), into.or(out), costs.setup.ns) else {
        return usize::MAX;
    };
    let eager = out.max(into);
    let against =
        |single: f64| if eager <= single { usize::MAX } else { (setup / (eager - single)) as usize };
    let alone = against(costs.single);
    if alone < SHARED { alone } else { against(costs.single / 2.0).max(SHARED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(copy: u64, piece: u64) -> EagerLimit {
        let mut choice = EagerLimit::new(16384, true, 1500.0, 0.08);
        for _ in 0..100 {
            choice.copied_in(4096, copy);
            choice.copied_out(4096, copy);
            choice.moved(16384, piece);
        }
        choice
    }

    /// The two states of the machines of docs/results.md: 0.07 and 0.27 ns per byte and copy.
    #[test]
    fn near_cores_copy_longer_messages_than_far_ones() {
        assert_eq!(fed(290, 2800).limit(), 16384);
        let far = fed(1100, 3500).limit();
        assert!((8192..16384).contains(&far), "{far}");
    }

    #[test]
    fn the_limit_follows_the_facts_back_and_forth() {
        let mut choice = fed(1100, 3500);
        let far = choice.limit();
        for _ in 0..200 {
            choice.copied_in(4096, 290);
            choice.copied_out(4096, 290);
        }
        assert_eq!(choice.limit(), 16384);
        for _ in 0..200 {
            choice.copied_in(4096, 1100);
            choice.copied_out(4096, 1100);
        }
        // Both may lie off by the margin.
        assert!(choice.limit().abs_diff(far) <= far / 4, "{} {far}", choice.limit());
    }

    /// Slots that are used for the first time cost a system call and page faults.
    #[test]
    fn slow_copies_between_fast_ones_do_not_count() {
        let mut choice = EagerLimit::new(16384, true, 1500.0, 0.08);
        for copy in 0..100 {
            choice.copied_in(4096, if copy % GROUP == 0 { 290 } else { 9000 });
        }
        assert_eq!(choice.limit(), 16384);
    }

    #[test]
    fn a_fixed_limit_stays() {
        let mut choice = EagerLimit::new(16384, false, 1500.0, 0.08);
        assert!(!choice.measures(8192) && !choice.explores(16384));
        assert!(!choice.prices(16384));
        assert_eq!(choice.limit(), 16384);
    }

    #[test]
    fn a_few_messages_in_many_explore() {
        let mut choice = fed(1100, 3500);
        let explored = (0..10 * EXPLORE).filter(|_| choice.explores(12000)).count();
        assert_eq!(explored, 10 * BURST as usize);
        assert!(!choice.explores(20000));
    }
}
