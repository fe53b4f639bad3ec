//! The choice between eager and rendezvous, from what was measured here.
//!
//! Cost of a message of `n` bytes (terms as in Hockney's model, times in nanoseconds):
//!
//! ```text
//! eager       = n · copy_in + n · copy_out           both copies go through a slot
//! rendezvous  = setup + n · single                   one copy by the kernel, after a handshake
//! ```
//!
//! `copy_in`, `copy_out` and `setup` are measured on real messages while the job runs: between
//! near cores a copy through a slot costs a quarter of what it costs between far ones, and
//! virtual machines move between the two. `single` and the first `setup` are measured when the
//! device starts. The choice is a limit that is worked out anew when a fact has changed and
//! compared with each length: nothing is added to the path of a message. A new limit must differ
//! by an eighth from the one in force (margin), and holds for at least [`DWELL`] measured
//! messages, so that runs can be explained. Now and then a longer message goes by eager all the
//! same, since a cost that is never paid again cannot be seen to have fallen.

/// Below this length eager always wins: a system call costs more than two copies.
const FLOOR: usize = 4096;
/// Lengths from which copies are measured: shorter ones cost less than reading the clock twice.
const MEASURED: usize = 2048;
/// Copies between two measured ones.
const SAMPLE: u32 = 8;
/// Messages above the limit between two that go by eager to see whether it has become cheaper.
const EXPLORE: u32 = 128;
/// Measured copies between two changes of the limit.
const DWELL: u32 = 4;
/// Weight of a new measurement.
const WEIGHT: f64 = 0.25;

/// What is known about the costs of copying.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Into a slot, ns per byte; `None` until measured.
    pub copy_in: Option<f64>,
    /// Out of a slot, ns per byte; `None` until measured.
    pub copy_out: Option<f64>,
    /// Of a rendezvous beyond the bytes, ns.
    pub setup: f64,
    /// Of single copy, ns per byte.
    pub single: f64,
}

/// The choice in force.
#[derive(Clone, Debug)]
pub struct Choice {
    facts: Facts,
    max: usize,
    limit: usize,
    adapt: bool,
    samples: u32,
    longer: u32,
    dwell: u32,
}

impl Choice {
    /// Eager up to `max` bytes until facts say otherwise; for ever if `adapt` is off.
    pub fn new(max: usize, adapt: bool, setup: f64, single: f64) -> Choice {
        let facts = Facts { copy_in: None, copy_out: None, setup, single };
        Choice { facts, max, limit: max, adapt: adapt && max > FLOOR, samples: 0, longer: 0, dwell: 0 }
    }

    /// Longest message that goes by eager now.
    #[inline(always)]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The facts it rests on.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether a message above the limit goes by eager this time, to learn.
    #[inline]
    pub fn explores(&mut self, len: usize) -> bool {
        if !self.adapt || len > self.max {
            return false;
        }
        self.longer += 1;
        self.longer.is_multiple_of(EXPLORE)
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
    pub fn is_long(&self, len: usize) -> bool {
        len >= MEASURED
    }

    /// A copy of `len` bytes into a slot took this long.
    pub fn copied_in(&mut self, len: usize, ns: u64) {
        learn(&mut self.facts.copy_in, ns as f64 / len as f64);
        self.decide();
    }

    /// A copy of `len` bytes out of a slot took this long.
    pub fn copied_out(&mut self, len: usize, ns: u64) {
        learn(&mut self.facts.copy_out, ns as f64 / len as f64);
        self.decide();
    }

    /// A piece of `len` bytes of a rendezvous took this long.
    pub fn moved(&mut self, len: usize, ns: u64) {
        if self.adapt && len <= 4 * self.max {
            let setup = (ns as f64 - self.facts.single * len as f64).max(0.0) + HANDSHAKE_NS;
            self.facts.setup += WEIGHT * (setup - self.facts.setup);
            self.decide();
        }
    }

    fn decide(&mut self) {
        self.dwell = self.dwell.saturating_sub(1);
        let wanted = crossing(&self.facts).clamp(FLOOR, self.max);
        if self.dwell == 0 && wanted.abs_diff(self.limit) > self.limit / 8 {
            self.limit = wanted;
            self.dwell = DWELL;
        }
    }
}

/// Announcing, matching and telling the end: a few lines that move between the caches.
const HANDSHAKE_NS: f64 = 300.0;

fn learn(fact: &mut Option<f64>, seen: f64) {
    *fact = Some(fact.map_or(seen, |known| known + WEIGHT * (seen - known)));
}

/// The length at which both cost the same; the largest possible one if eager always wins.
fn crossing(facts: &Facts) -> usize {
    let (Some(out), Some(into)) = (facts.copy_out.or(facts.copy_in), facts.copy_in.or(facts.copy_out)) else {
        return usize::MAX;
    };
    let per_byte = out + into - facts.single;
    if per_byte <= 0.0 { usize::MAX } else { (facts.setup / per_byte) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(copy: u64, piece: u64) -> Choice {
        let mut choice = Choice::new(16384, true, 1500.0, 0.08);
        for _ in 0..50 {
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
        assert!((FLOOR..8192).contains(&far), "{far}");
    }

    #[test]
    fn the_limit_follows_the_facts_back_and_forth() {
        let mut choice = fed(1100, 3500);
        let far = choice.limit();
        for _ in 0..100 {
            choice.copied_in(4096, 290);
            choice.copied_out(4096, 290);
        }
        assert_eq!(choice.limit(), 16384);
        for _ in 0..100 {
            choice.copied_in(4096, 1100);
            choice.copied_out(4096, 1100);
        }
        assert!(choice.limit().abs_diff(far) <= far / 8 + 1, "{} {far}", choice.limit());
    }

    #[test]
    fn a_fixed_limit_stays() {
        let mut choice = Choice::new(16384, false, 1500.0, 0.08);
        assert!(!choice.measures(8192) && !choice.explores(16384));
        choice.moved(16384, 1);
        assert_eq!(choice.limit(), 16384);
    }

    #[test]
    fn one_message_in_many_explores() {
        let mut choice = fed(1100, 3500);
        let explored = (0..1280).filter(|_| choice.explores(12000)).count();
        assert_eq!(explored, 10);
        assert!(!choice.explores(20000));
    }
}
