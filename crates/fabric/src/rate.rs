//! How much a way carries, from what is acknowledged: what a loss says of a window of congestion.
//!
//! A loss means half of the window to TCP's Reno (RFC 5681), as if a queue had overflowed. Where packets are lost while no queue is
//! there, that is too much: what the way carries in its shortest round trip fills it without a queue (TCP Westwood+:
//! Grieco and Mascolo, «Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion control»,
//! CCR 2004). Here the larger of the two is kept: never less than Reno keeps, so that a single short round trip
//! does no harm, and half where a queue has doubled the round trip.

/// See the [module](self). Counts in packets.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Since when packets are counted; `u64::MAX`: they are not.
    since_ns: u64,
    count: u64,
    /// Packets in 2^20 ns; 0: not known.
    rate: u64,
    least_ns: u64,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate { since_ns: u64::MAX, count: 0, rate: 0, least_ns: 0 }
    }
}

impl Rate {
    /// So many have been acknowledged at `now_ns`; `trip_ns` is how long a round trip takes, and `least_ns` how long it took at
    /// least. `is_full`: the window was the limit, so that they say how much the way carries.
    pub fn acknowledged(&mut self, now_ns: u64, packets: u32, trip_ns: u64, least_ns: u64, is_full: bool) {
        self.least_ns = least_ns;
        if self.since_ns == u64::MAX || !is_full {
            (self.since_ns, self.count) = (now_ns, 0);
            return;
        }
        self.count += u64::from(packets);
        let took_ns = now_ns.saturating_sub(self.since_ns);
        if took_ns < trip_ns.max(1) {
            return;
        }
        let rate = (self.count << 20) / took_ns;
        self.rate = if self.rate == 0 { rate } else { (3 * self.rate + rate) / 4 };
        (self.since_ns, self.count) = (now_ns, 0);
    }

    /// What is left of a window after a loss.
    pub fn left(&self, window: u32) -> u32 {
        let carried = (self.rate.saturating_mul(self.least_ns) >> 20) as u32;
        carried.min(window).max(window / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::Rate;

    /// A window of 40 in round trips of this length, where the shortest takes 100 µs.
    fn left(trip_ns: u64) -> u32 {
        let mut rate = Rate::default();
        (0..200).for_each(|at| rate.acknowledged(at * trip_ns / 4, 10, trip_ns, 100_000, true));
        rate.left(40)
    }

    #[test]
    fn without_a_queue_nearly_all_is_kept_and_with_one_half() {
        assert!((38..=40).contains(&left(100_000)), "{}", left(100_000));
        assert!((24..=28).contains(&left(150_000)), "{}", left(150_000));
        assert_eq!([left(250_000), left(1_000_000), Rate::default().left(40)], [20; 3]);
    }

    #[test]
    fn who_sends_little_says_nothing_of_the_way() {
        let mut rate = Rate::default();
        (0..200).for_each(|at| rate.acknowledged(at * 100_000, 1, 100_000, 100_000, false));
        assert_eq!(rate.left(40), 20);
    }
}
