//! Up to which length messages go eagerly, and what copies cost in shared memory.
//!
//! Shorter ones than [`FLOOR`] always do there: a system call costs more than two copies. From there to the longest
//! that fits, how a message goes is a matter of its habit ([`super::habits`]); over registered memory the
//! limit is worked out from the facts. What copies cost is measured on real messages while the job runs, for
//! people and for what is predicted:
//!
//! ```text
//! eager       = n · max(copy_in, copy_out)           both copies go through a block, side by side
//! rendezvous  = setup + n · single                   one copy by the kernel, after a handshake
//! ```
//!
//! `single` and the first `setup` are measured when the device starts.

use crate::choice::tuning::PIECE_MIN;
use fabric::Distance;
use fabric::estimate::{Averaging, Estimate};

/// Up to this length eager always wins in shared memory: a system call costs more than two copies.
const FLOOR: usize = 4096;
/// Lengths from which copies are measured: shorter ones cost less than reading the clock twice.
const MEASURED: usize = 2048;
/// Copies between two measured ones.
const SAMPLE: u32 = 32;
/// Pieces of rendezvous of which one is measured.
const PIECES: u32 = 8;
/// How costs follow measurements: of four the fastest counts. The others may have met a page that was never
/// touched, a block that left the cache, another process on the core.
const SEEN: Averaging = Averaging { least_of: 4, ..Averaging::fading(4) };
/// Messages longer than this are copied by both sides: one piece of the least length for each.
const SHARED: usize = 2 * PIECE_MIN;

/// What is known about the costs of copying.
#[derive(Clone, Debug)]
pub struct CopyCosts {
    /// Into a block, per byte.
    pub copy_in: Estimate,
    /// Out of a block, per byte.
    pub copy_out: Estimate,
    /// Of a rendezvous beyond the bytes.
    pub setup: Estimate,
    /// Of single copy, ns per byte.
    pub single: f64,
}

/// The limit in force towards the peers of one distance, and the costs.
#[derive(Clone, Debug)]
pub struct EagerLimit {
    costs: CopyCosts,
    max: usize,
    limit: usize,
    /// Whether habits decide, and costs are measured.
    adapt: bool,
    /// Messages below this length leave with no other question asked: they are neither watched nor long.
    plain: usize,
    /// Messages of this length and longer are looked at when they leave.
    watched: usize,
    /// Length from which they are in any case.
    asked: usize,
    samples: u32,
    pieces: u32,
}

impl EagerLimit {
    /// Eager up to `max` bytes; with `adapt` habits decide from [`FLOOR`] on.
    pub fn new(max: usize, adapt: bool, setup: f64, single: f64) -> EagerLimit {
        let setup = Estimate::expected(setup);
        let costs = CopyCosts { copy_in: Estimate::default(), copy_out: Estimate::default(), setup, single };
        let adapt = adapt && max > FLOOR;
        let watched = if adapt { MEASURED } else { usize::MAX };
        let asked = usize::MAX;
        let mut limit =
            EagerLimit { costs, max, limit: max, adapt, plain: 0, watched, asked, samples: 0, pieces: 0 };
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

    /// Longest message that may ever do so.
    #[inline(always)]
    pub fn max(&self) -> usize {
        self.max
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
        self.costs.setup.value().unwrap_or(0.0) + self.costs.single * len as f64
    }

    /// What both copies of a message of `len` bytes take together, in ns; before that is known, one straight copy.
    pub fn copies_ns(&self, len: usize) -> f64 {
        let CopyCosts { copy_in, copy_out, single, .. } = &self.costs;
        let known = copy_in.value().unwrap_or(*single) + copy_out.value().unwrap_or(*single);
        known * len as f64
    }

    /// Whether messages of this length may go in several manners.
    #[inline]
    pub fn is_tried(&self, len: usize) -> bool {
        self.adapt && len > FLOOR
    }

    /// Whether copies of this length are ever measured.
    #[inline(always)]
    pub fn may_measure(len: usize) -> bool {
        len >= MEASURED
    }

    /// Whether to measure this copy.
    #[inline]
    pub fn measures(&mut self, len: usize) -> bool {
        if len < MEASURED || !self.adapt {
            return false;
        }
        self.samples = self.samples.wrapping_add(1);
        self.samples.is_multiple_of(SAMPLE)
    }

    /// Whether a copy of this length says anything about longer ones.
    #[inline(always)]
    pub fn is_long(&self, len: usize) -> bool {
        len >= MEASURED
    }

    /// A copy of `len` bytes into a block took this long.
    pub fn copied_in(&mut self, len: usize, ns: u64) {
        self.costs.copy_in.observe(&SEEN, ns as f64 / len as f64);
    }

    /// A copy of `len` bytes out of a block took this long.
    pub fn copied_out(&mut self, len: usize, ns: u64) {
        self.costs.copy_out.observe(&SEEN, ns as f64 / len as f64);
    }

    /// Whether to measure what this piece of a rendezvous takes: one that is short enough to say something about the cost of a call.
    pub fn prices(&mut self, len: usize) -> bool {
        if len > SHARED || !self.adapt {
            return false;
        }
        self.pieces = self.pieces.wrapping_add(1);
        self.pieces % PIECES == 1
    }

    /// A piece of `len` bytes of a rendezvous, which [`EagerLimit::prices`], took this long.
    pub fn moved(&mut self, len: usize, ns: u64) {
        let setup = (ns as f64 - self.costs.single * len as f64).max(0.0) + HANDSHAKE_NS;
        self.costs.setup.observe(&SEEN, setup);
    }
}

/// Longest eager message from peers of this distance: from whomever if none is given.
pub fn limit_from(limits: &[EagerLimit], distance: Option<Distance>) -> usize {
    let least = || limits.iter().map(EagerLimit::limit).min().unwrap_or(0);
    distance.map_or_else(least, |distance| limits[distance as usize].limit())
}

/// Announcing, matching and telling the end: a few lines that move between the caches.
pub(crate) const HANDSHAKE_NS: f64 = 300.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks that are used for the first time cost a system call and page faults.
    #[test]
    fn slow_copies_between_fast_ones_do_not_count() {
        let mut limit = EagerLimit::new(16384, true, 1500.0, 0.08);
        for copy in 0..100 {
            limit.copied_in(4096, if copy % SEEN.least_of == 0 { 290 } else { 9000 });
            limit.moved(16384, 2800);
        }
        let costs = limit.costs();
        assert_eq!((costs.copy_in.value(), costs.copy_out.value()), (Some(290.0 / 4096.0), None));
        assert!((limit.rendezvous_ns(16384) - 2800.0 - HANDSHAKE_NS).abs() < 1.0);
        assert_eq!(limit.limit(), 16384);
    }

    #[test]
    fn with_a_fixed_limit_nothing_is_measured_or_tried() {
        let mut limit = EagerLimit::new(16384, false, 1500.0, 0.08);
        assert!(!limit.measures(8192) && !limit.is_tried(16384) && !limit.prices(16384));
        assert_eq!(limit.limit(), 16384);
    }
}
