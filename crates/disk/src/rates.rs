//! What reading and writing cost, learnt from what it has cost: every transfer is timed, short ones tell what a
//! call costs, long ones what a byte does. Nothing is known of the file system and nothing is asked: a page cache
//! and a server across a network differ by a factor of a thousand, and both are measured here.

use fabric::estimate::Averaging;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::experience::Experience;

/// Transfers up to this length say what a call costs.
const SHORT_BYTES: u64 = 4 << 10;
/// Transfers from this length on say what a byte costs.
const LONG_BYTES: u64 = 64 << 10;

/// How a cost follows transfers: caches of the system and servers behind it change within a run.
const SEEN: Averaging = Averaging::fading(8);

/// Costs in picoseconds.
#[derive(Debug)]
pub struct AccessCosts {
    call_ps: AtomicU64,
    byte_ps: AtomicU64,
    copy_ps: AtomicU64,
    round_ps: AtomicU64,
    swap_ps: AtomicU64,
    advice_ps: AtomicU64,
    /// How collective accesses have fared.
    pub experience: Experience,
}

impl Default for AccessCosts {
    /// Before anything is measured: a page cache of today.
    fn default() -> AccessCosts {
        AccessCosts {
            call_ps: AtomicU64::new(1_000_000),
            byte_ps: AtomicU64::new(150),
            copy_ps: AtomicU64::new(80),
            round_ps: AtomicU64::new(30_000_000),
            swap_ps: AtomicU64::new(400),
            advice_ps: AtomicU64::new(1_000_000),
            experience: Experience::default(),
        }
    }
}

fn learn(kept: &AtomicU64, sample_ps: u64) {
    let known = kept.load(Ordering::Relaxed) as f64;
    kept.store((SEEN.follow(Some(known), 1, sample_ps as f64) as u64).max(1), Ordering::Relaxed);
}

impl AccessCosts {
    /// What one call costs, in picoseconds.
    pub fn call_ps(&self) -> u64 {
        self.call_ps.load(Ordering::Relaxed)
    }

    /// What a byte of a call costs.
    pub fn byte_ps(&self) -> u64 {
        self.byte_ps.load(Ordering::Relaxed)
    }

    /// What copying a byte once more costs.
    pub fn copy_ps(&self) -> u64 {
        self.copy_ps.load(Ordering::Relaxed)
    }

    /// What a round of an exchange costs without its bytes.
    pub fn round_ps(&self) -> u64 {
        self.round_ps.load(Ordering::Relaxed)
    }

    /// What a byte that is exchanged costs.
    pub fn swap_ps(&self) -> u64 {
        self.swap_ps.load(Ordering::Relaxed)
    }

    /// A transfer of `len` bytes has taken so long.
    pub fn transferred(&self, len: u64, took_ns: u64) {
        Self::split(&self.call_ps, &self.byte_ps, len, took_ns);
    }

    /// An exchange in which this rank had `len` bytes has taken so long.
    pub fn exchanged(&self, len: u64, took_ns: u64) {
        Self::split(&self.round_ps, &self.swap_ps, len, took_ns);
    }

    /// To say of `calls` reads that they will come has taken so long.
    pub fn advised(&self, calls: u64, took_ns: u64) {
        learn(&self.advice_ps, took_ns.saturating_mul(1000) / calls.max(1));
    }

    /// Whether reads of this length wait for a device or a server, so that it is worth saying beforehand that they will come:
    /// they take several times what saying so does, and more than copies out of memory would.
    pub fn waits(&self, len: u64) -> bool {
        let read = u128::from(self.call_ps()) + u128::from(len) * u128::from(self.byte_ps());
        let advice = u128::from(self.advice_ps.load(Ordering::Relaxed));
        read > 4 * advice + 2 * u128::from(len) * u128::from(self.copy_ps())
    }

    /// So many bytes were copied.
    pub fn copied(&self, len: u64, took_ns: u64) {
        if len >= LONG_BYTES {
            learn(&self.copy_ps, took_ns.saturating_mul(1000) / len);
        }
    }

    fn split(fixed: &AtomicU64, per_byte: &AtomicU64, len: u64, took_ns: u64) {
        let took_ps = took_ns.saturating_mul(1000);
        if len <= SHORT_BYTES {
            learn(fixed, took_ps);
        } else if len >= LONG_BYTES {
            learn(per_byte, took_ps.saturating_sub(fixed.load(Ordering::Relaxed)) / len);
        }
    }

    /// Whether a piece of `len` bytes behind a gap of `gap` bytes is better read together with what lies before it
    /// and copied out than read by a call of its own.
    pub fn joins(&self, gap: u64, len: u64) -> bool {
        let joined =
            u128::from(gap) * u128::from(self.byte_ps()) + u128::from(len) * u128::from(self.copy_ps());
        joined < u128::from(self.call_ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_call_costs_decides_which_gaps_are_read() {
        let rates = AccessCosts::default();
        assert!(rates.joins(1000, 8) && !rates.joins(1 << 20, 8) && !rates.joins(0, 1 << 20));
        for _ in 0..100 {
            rates.transferred(512, 1_000_000);
        }
        assert!(rates.joins(1 << 20, 8), "a server far away: a call costs a millisecond");
        for _ in 0..100 {
            rates.transferred(1 << 20, 1 << 30);
        }
        assert!(!rates.joins(1 << 20, 8), "and a slow line to it");
    }

    #[test]
    fn reads_that_wait_are_told_from_those_that_copy() {
        let rates = AccessCosts::default();
        assert!(!rates.waits(8) && !rates.waits(1 << 20));
        for _ in 0..100 {
            rates.advised(10, 4_000);
            rates.transferred(4096, 70_000);
        }
        assert!(rates.waits(4096), "a device takes 70 us for each");
        for _ in 0..100 {
            rates.transferred(4096, 600);
        }
        assert!(!rates.waits(4096), "in the page cache by now");
    }
}
