//! The adapter: two directions that work at the same time, and a bus that both may share.
//!
//! LogGP: a message occupies its direction for the gap or for its bytes and a rest behind them, whichever is
//! longer (`gap` is what limits short messages; `rest` is the gap of models that add it to the bytes). The
//! receiver's direction takes bytes in while they come (cut-through), so a message alone
//! takes `latency + length / bandwidth`; messages to one receiver from several queue there.

use crate::cluster::{Path, Rail};
use crate::queue::{Ps, ps, rounded};

/// What an adapter costs, in picoseconds.
#[derive(Clone, Debug)]
pub struct AdapterCosts {
    /// First byte out to first byte in.
    pub latency: Ps,
    gap: Ps,
    rest: Ps,
    per_byte: f64,
    bus_per_byte: f64,
    gather: Ps,
    /// To fetch what is not inline.
    pub fetch: Ps,
    /// Before the answer to a read leaves.
    pub serve: Ps,
}

impl AdapterCosts {
    /// Those of a rail.
    pub fn new(rail: &Rail) -> AdapterCosts {
        AdapterCosts {
            latency: ps(rail.path.latency_ns),
            gap: ps(rail.gap_ns),
            rest: ps(rail.rest_ns),
            per_byte: 1000.0 / rail.path.bandwidth,
            bus_per_byte: 1000.0 / rail.bus_bandwidth,
            gather: ps(rail.gather_ns),
            fetch: ps(rail.fetch_ns),
            serve: ps(rail.serve_ns),
        }
    }

    /// Those of the path inside a host, which has neither gap nor bus.
    pub fn local(path: &Path) -> AdapterCosts {
        let (latency, per_byte) = (ps(path.latency_ns), 1000.0 / path.bandwidth);
        AdapterCosts { latency, gap: 0, rest: 0, per_byte, bus_per_byte: 0.0, gather: 0, fetch: 0, serve: 0 }
    }

    /// Whether both directions together are slower than each alone.
    pub fn is_bus_limited(&self) -> bool {
        self.bus_per_byte > 0.0
    }

    fn bytes(&self, len: usize) -> Ps {
        rounded(len as f64 * self.per_byte)
    }
}

/// When a message passes a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passage {
    /// The first byte.
    pub first: Ps,
    /// The last byte.
    pub last: Ps,
}

/// Since when its parts are free.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adapter {
    tx_free: Ps,
    rx_free: Ps,
    bus: Bus,
}

/// A bus serves both directions side by side, so that a short message of one does not wait for a long one of the
/// other.
#[derive(Clone, Copy, Debug, Default)]
struct Bus {
    now: Ps,
    /// Time it would take for what it has been given, out and in.
    left: [Ps; 2],
}

/// Directions of a bus.
const OUT: usize = 0;
const IN: usize = 1;

impl Bus {
    /// When `work` that comes at `at` is done, if nothing else comes.
    fn serve(&mut self, at: Ps, way: usize, work: Ps) -> Ps {
        let mut passed = at.saturating_sub(self.now);
        self.now += passed;
        let both = self.left[OUT].min(self.left[IN]).min(passed / 2);
        self.left = self.left.map(|left| left - both);
        passed -= 2 * both;
        self.left = self.left.map(|left| left.saturating_sub(passed));
        self.left[way] += work;
        let (mine, other) = (self.left[way], self.left[1 - way]);
        self.now + mine + mine.min(other)
    }
}

impl Adapter {
    /// When a message can begin to leave that is ready at `ready`.
    pub fn starts(&self, ready: Ps) -> Ps {
        ready.max(self.tx_free)
    }

    /// Sends a message of `len` bytes in `parts` that is ready at `ready`: when it leaves. With a
    /// limited bus that must be now, because what the other direction does until then counts.
    pub fn send(&mut self, costs: &AdapterCosts, ready: Ps, len: usize, parts: usize) -> Passage {
        let start = self.starts(ready);
        let first = start + costs.gather * (parts.max(1) as Ps - 1);
        let last = self.bus(costs, OUT, start, len).max(first + costs.bytes(len));
        self.tx_free = (last + costs.rest).max(first + costs.gap);
        Passage { first, last }
    }

    /// Takes a message in whose bytes reach the adapter as `coming` says: when it is in memory.
    pub fn receive(&mut self, costs: &AdapterCosts, coming: Passage, len: usize) -> Passage {
        let first = coming.first.max(self.rx_free);
        let served = self.bus(costs, IN, coming.first, len);
        let last = served.max(first + costs.bytes(len)).max(coming.last);
        self.rx_free = last.max(first + costs.gap);
        Passage { first, last }
    }

    fn bus(&mut self, costs: &AdapterCosts, way: usize, from: Ps, len: usize) -> Ps {
        if !costs.is_bus_limited() {
            return 0;
        }
        self.bus.serve(from, way, rounded(len as f64 * costs.bus_per_byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 byte per nanosecond, latency 2 µs, gap 300 ns.
    fn costs(bus_bandwidth: f64) -> AdapterCosts {
        AdapterCosts::new(&Rail {
            path: Path { latency_ns: 2000.0, bandwidth: 1.0 },
            gap_ns: 300.0,
            rest_ns: 0.0,
            post_ns: 0.0,
            poll_ns: 0.0,
            inline_bytes: 0,
            inline_bandwidth: 1.0,
            fetch_ns: 0.0,
            gather_ns: 50.0,
            serve_ns: 0.0,
            bus_bandwidth,
            depth: 1,
            retry_ns: 0.0,
        })
    }

    fn ns(first: Ps, last: Ps) -> Passage {
        Passage { first: first * 1000, last: last * 1000 }
    }

    #[test]
    fn bandwidth_and_gap_space_messages_out() {
        let (costs, mut adapter) = (costs(f64::INFINITY), Adapter::default());
        assert_eq!(adapter.send(&costs, 0, 1000, 1), ns(0, 1000));
        assert_eq!(adapter.send(&costs, 0, 8, 1), ns(1000, 1008));
        assert_eq!(adapter.send(&costs, 0, 8, 1), ns(1300, 1308));
        assert_eq!(adapter.send(&costs, 5_000_000, 8, 3), ns(5100, 5108));
    }

    #[test]
    fn a_direction_rests_behind_the_last_byte() {
        let (mut costs, mut adapter) = (costs(f64::INFINITY), Adapter::default());
        costs.rest = 100_000;
        assert_eq!(adapter.send(&costs, 0, 1000, 1), ns(0, 1000));
        assert_eq!(adapter.send(&costs, 0, 8, 1), ns(1100, 1108));
        assert_eq!(adapter.send(&costs, 0, 8, 1), ns(1400, 1408));
    }

    #[test]
    fn messages_of_several_senders_queue_at_the_receiver() {
        let (costs, mut adapter) = (costs(f64::INFINITY), Adapter::default());
        assert_eq!(adapter.receive(&costs, ns(2000, 3000), 1000), ns(2000, 3000));
        assert_eq!(adapter.receive(&costs, ns(2000, 3000), 1000), ns(3000, 4000));
        assert_eq!(adapter.receive(&costs, ns(9000, 12000), 1000), ns(9000, 12000));
    }

    #[test]
    fn both_directions_share_the_bus() {
        // 100 messages of 10 kB each way: alone 1 B/ns; together 1.25 B/ns over the bus.
        let (costs, mut adapter) = (costs(1.25), Adapter::default());
        let mut last = 0;
        for _ in 0..100 {
            let start = adapter.starts(0);
            let out = adapter.send(&costs, start, 10_000, 1);
            let into = adapter.receive(&costs, Passage { first: start, last: start }, 10_000);
            last = out.last.max(into.last);
        }
        assert_eq!(last, 2_000_000 * 1000 * 100 / 125);
        let mut adapter = Adapter::default();
        for _ in 0..100 {
            last = adapter.send(&costs, 0, 10_000, 1).last;
        }
        assert_eq!(last, 1_000_000 * 1000);
    }

    #[test]
    fn a_short_message_does_not_wait_for_a_long_one_of_the_other_direction() {
        let (costs, mut adapter) = (costs(1.25), Adapter::default());
        assert_eq!(adapter.send(&costs, 0, 1_000_000, 1), ns(0, 1_000_000));
        assert_eq!(adapter.receive(&costs, ns(10, 20), 10), ns(10, 26));
        // What was taken in before makes the next one of the other direction no earlier than its turn.
        assert_eq!(adapter.receive(&costs, ns(1000, 11_000), 10_000), ns(1000, 17_000));
    }
}
