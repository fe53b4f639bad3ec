//! How much may be under way, and how long an answer may take: the window of congestion (RFC 5681, 6582, 6928) and the
//! estimate of round trips (RFC 6298).
//!
//! ```text
//!          ┌─ timeout: 1, the same as threshold ◀─────────────┐
//!          ▼                                                   │
//!  slow start: + what is acknowledged ──▶ at the threshold: + 1 per window ──▶ loss: half, or what the way
//!                                                                              carries ([`Rate`]); once per window
//! ```
//!
//! Counted in datagrams as CCID 2 (RFC 4341). The timer's least value is far below the second of RFC 6298: networks of a
//! job answer in microseconds, and an incast whose last datagrams are lost stands still for as long (Vasudevan et al.,
//! «Safe and effective fine-grained TCP retransmissions for datacenter communication», SIGCOMM 2009).

use super::ACK_DELAY_NS;
use fabric::Rate;

/// Datagrams that may be under way to begin with (RFC 6928).
const INITIAL: u32 = 10;
/// Before anything is known of the peer.
const FIRST_RTO_NS: u64 = 10_000_000;
/// Longer than an acknowledgement is held back.
const RTO_MIN_NS: u64 = 2_000_000;
const RTO_MAX_NS: u64 = 500_000_000;

/// The window of congestion.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    window: u32,
    threshold: u32,
    /// Acknowledged since the window grew last.
    credit: u32,
    /// Losses of what was sent before this number have been answered.
    answered: u64,
    /// What was in force before the timeout that is not known to be right.
    before: Option<(u32, u32)>,
    rate: Rate,
}

impl Pace {
    pub(super) fn new(first: u64) -> Pace {
        Pace {
            window: INITIAL,
            threshold: u32::MAX,
            credit: 0,
            answered: first,
            before: None,
            rate: Rate::default(),
        }
    }

    /// Datagrams that may be under way.
    pub(super) fn window(&self) -> usize {
        self.window as usize
    }

    /// So many have been acknowledged while the window was used. Also while what was lost comes again: where something is lost in
    /// each window the window would never grow otherwise.
    pub(super) fn acknowledged(&mut self, newly: u32) {
        if self.window < self.threshold {
            self.window = self.window.saturating_add(newly).min(self.threshold.max(INITIAL));
            return;
        }
        self.credit += newly;
        while self.credit >= self.window {
            self.credit -= self.window;
            self.window += 1;
        }
    }

    /// How much the way carries.
    pub(super) fn rate(&mut self) -> &mut Rate {
        &mut self.rate
    }

    /// Something that was sent as number `seq` is lost; `next` is the number of the next one.
    pub(super) fn lost(&mut self, seq: u64, next: u64) {
        if seq < self.answered {
            return;
        }
        self.threshold = self.rate.left(self.window).max(2);
        (self.window, self.credit, self.answered, self.before) = (self.threshold, 0, next, None);
    }

    /// No answer has come for too long.
    pub(super) fn timed_out(&mut self, next: u64) {
        if self.before.is_none() {
            self.before = Some((self.window, self.threshold));
        }
        if self.window > 1 {
            self.threshold = self.rate.left(self.window).max(2);
        }
        (self.window, self.credit, self.answered) = (1, 0, next);
    }

    /// The timeout was wrong (RFC 5682): nothing had been lost.
    pub(super) fn restore(&mut self) {
        if let Some((window, threshold)) = self.before.take() {
            (self.window, self.threshold) = (window, threshold);
        }
    }

    /// What was sent again because of a timeout has been answered.
    pub(super) fn settle(&mut self) {
        self.before = None;
    }

    /// Whether there was a timeout of which it is not known whether it was right.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.before.is_some()
    }
}

/// The estimate of round trips.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrip {
    smoothed_ns: Option<u64>,
    deviation_ns: u64,
    least_ns: u64,
    /// Timeouts in a row.
    timeouts: u32,
}

impl RoundTrip {
    /// A measured one (RFC 6298 section 2).
    pub(super) fn measured(&mut self, ns: u64) {
        match self.smoothed_ns {
            None => (self.smoothed_ns, self.deviation_ns, self.least_ns) = (Some(ns), ns / 2, ns),
            Some(smoothed) => {
                self.deviation_ns = (3 * self.deviation_ns + smoothed.abs_diff(ns)) / 4;
                self.smoothed_ns = Some((7 * smoothed + ns) / 8);
                self.least_ns = self.least_ns.min(ns);
            }
        }
    }

    /// Something has been acknowledged.
    pub(super) fn progressed(&mut self) {
        self.timeouts = 0;
    }

    /// No answer came (RFC 6298 section 5.5).
    pub(super) fn timed_out(&mut self) {
        self.timeouts += 1;
    }

    /// How long an answer may take.
    pub(super) fn timeout_ns(&self) -> u64 {
        let once = match self.smoothed_ns {
            None => FIRST_RTO_NS,
            Some(smoothed) => (smoothed + 4 * self.deviation_ns).max(RTO_MIN_NS),
        };
        once.saturating_mul(1 << self.timeouts.min(16)).min(RTO_MAX_NS)
    }

    /// After which time without an answer the last datagram is sent once more (RFC 8985 section 7.2): two round trips, and as
    /// long as the receiver may hold an answer back.
    pub(super) fn probe_ns(&self) -> u64 {
        let twice = self.smoothed_ns.map_or(FIRST_RTO_NS, |smoothed| 2 * smoothed + ACK_DELAY_NS);
        twice.min(self.timeout_ns())
    }

    /// How much later than what was sent behind it something may be acknowledged without being lost (RFC 8985 section 6.2).
    pub(super) fn reordering_ns(&self) -> u64 {
        self.smoothed_ns.unwrap_or(FIRST_RTO_NS) / 4
    }

    /// What it takes at present.
    pub(super) fn smoothed_ns(&self) -> u64 {
        self.smoothed_ns.unwrap_or(FIRST_RTO_NS)
    }

    /// The shortest that was measured.
    pub(super) fn least_ns(&self) -> u64 {
        self.least_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_and_halves_once_per_window() {
        let mut pace = Pace::new(0);
        pace.acknowledged(10);
        assert_eq!(pace.window(), 20, "slow start doubles");
        pace.lost(10, 30);
        pace.lost(20, 30);
        assert_eq!(pace.window(), 10, "once");
        pace.acknowledged(19);
        assert_eq!(pace.window(), 11, "one per window");
        pace.lost(30, 50);
        assert_eq!(pace.window(), 5);
    }

    #[test]
    fn a_wrong_timeout_is_taken_back_and_a_right_one_is_not() {
        let mut pace = Pace::new(0);
        pace.acknowledged(30);
        pace.timed_out(70);
        pace.timed_out(70);
        assert_eq!(pace.window(), 1);
        let mut wrong = pace.clone();
        wrong.restore();
        assert_eq!(wrong.window(), 40);
        pace.settle();
        pace.restore();
        pace.acknowledged(1);
        assert_eq!(pace.window(), 2, "slow start");
        pace.acknowledged(100);
        assert_eq!(pace.window(), 20, "up to half of what it was");
    }

    /// The rules of RFC 6298 section 2, and the bounds.
    #[test]
    fn round_trips() {
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout_ns(), FIRST_RTO_NS);
        trip.measured(8_000_000);
        assert_eq!(trip.timeout_ns(), 8_000_000 + 4 * 4_000_000);
        trip.measured(16_000_000);
        assert_eq!(trip.timeout_ns(), 9_000_000 + 4 * (3 * 4_000_000 + 8_000_000) / 4);
        assert_eq!((trip.least_ns(), trip.reordering_ns()), (8_000_000, 9_000_000 / 4));
        (0..100).for_each(|_| trip.measured(10_000));
        assert_eq!(trip.timeout_ns(), RTO_MIN_NS);
        trip.timed_out();
        trip.timed_out();
        assert_eq!(trip.timeout_ns(), 4 * RTO_MIN_NS);
        (0..100).for_each(|_| trip.timed_out());
        assert_eq!(trip.timeout_ns(), RTO_MAX_NS);
        trip.progressed();
        assert_eq!(trip.timeout_ns(), RTO_MIN_NS);
    }
}
