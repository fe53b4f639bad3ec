//! How long a round trip takes, and how many packets may be under way: fair beside TCP, for it counts as TCP does
//! (RFC 5681, RFC 6298).

use super::stream::{ACK_DELAY_NS, WINDOW};
use fabric::Rate;

/// Packets under way at the beginning (RFC 6928), and at least.
const BEGIN: u32 = 10;
const LEAST: u32 = 2;
/// Bounds of the time without an answer after which all is taken for lost: a fraction of a second (dissertation, section
/// 6.6.1).
const TIMEOUT_MIN_NS: u64 = 3_000_000;
const TIMEOUT_MAX_NS: u64 = 500_000_000;

/// See the [head of this module](self).
#[derive(Debug)]
pub(super) struct Pace {
    window: u32,
    threshold: u32,
    /// Acknowledged since the window has grown.
    counted: u32,
    /// The first number that was not sent when something was lost last: what is lost before is one event.
    event: Option<u32>,
    /// How long it takes; 0: not known.
    trip_ns: u64,
    least_ns: u64,
    deviation_ns: u64,
    timeouts: u32,
    rate: Rate,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            window: BEGIN,
            threshold: WINDOW,
            counted: 0,
            event: None,
            trip_ns: 0,
            least_ns: u64::MAX,
            deviation_ns: 0,
            timeouts: 0,
            rate: Rate::default(),
        }
    }
}

impl Pace {
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    pub(super) fn trip_ns(&self) -> u64 {
        self.trip_ns
    }

    /// The shortest that was measured.
    pub(super) fn least_ns(&self) -> u64 {
        self.least_ns
    }

    /// After which time without an answer the last packet is sent once more (RFC 8985 section 7.2): two round trips, and as
    /// long as the receiver may hold an answer back.
    pub(super) fn probe_ns(&self) -> u64 {
        self.or_least(2 * self.trip_ns + ACK_DELAY_NS).min(self.timeout_ns())
    }

    pub(super) fn timeout_ns(&self) -> u64 {
        let measured = self.or_least(self.trip_ns + 4 * self.deviation_ns + ACK_DELAY_NS);
        (measured.max(TIMEOUT_MIN_NS) << self.timeouts.min(16)).min(TIMEOUT_MAX_NS)
    }

    /// This time, if it is made of a round trip that is known.
    fn or_least(&self, time_ns: u64) -> u64 {
        if self.trip_ns == 0 { TIMEOUT_MIN_NS } else { time_ns }
    }

    pub(super) fn measured(&mut self, took_ns: u64) {
        self.least_ns = self.least_ns.min(took_ns);
        let took_ns = took_ns.max(1);
        if self.trip_ns == 0 {
            (self.trip_ns, self.deviation_ns) = (took_ns, took_ns / 2);
            return;
        }
        self.deviation_ns = self.deviation_ns - self.deviation_ns / 4 + self.trip_ns.abs_diff(took_ns) / 4;
        self.trip_ns = self.trip_ns - self.trip_ns / 8 + took_ns / 8;
    }

    /// So many have come; `is_full`: the window was in use.
    pub(super) fn acknowledged(&mut self, now_ns: u64, packets: u32, is_full: bool) {
        self.timeouts = 0;
        self.rate.acknowledged(now_ns, packets, self.trip_ns(), self.least_ns, is_full);
        if !is_full {
            return;
        }
        if self.window < self.threshold {
            self.window = (self.window + packets).min(WINDOW);
            return;
        }
        self.counted += packets;
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window = (self.window + 1).min(WINDOW);
        }
    }

    /// A packet is lost; `next` is the number of the next new one.
    pub(super) fn lost(&mut self, seq: u32, next: u32) {
        if self.event.is_some_and(|event| (seq.wrapping_sub(event) as i32) < 0) {
            return;
        }
        self.event = Some(next);
        self.window = self.rate.left(self.window).max(LEAST);
        self.threshold = self.window;
        self.counted = 0;
    }

    pub(super) fn timed_out(&mut self, next: u32) {
        self.timeouts += 1;
        if self.timeouts == 1 {
            self.threshold = self.rate.left(self.window).max(LEAST);
        }
        self.event = Some(next);
        (self.window, self.counted) = (LEAST, 0);
    }
}
