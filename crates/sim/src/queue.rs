//! What will happen, in order of time; at equal times in the order in which it was decided, ranks
//! that continue behind everything else.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Virtual time in picoseconds: at 400 Gb/s a byte takes 20 of them.
pub type Ps = u64;

/// Nanoseconds as picoseconds, rounded. ([`f64::round`] is a call where the processor's own is not assumed.)
#[inline]
pub fn ps(ns: f64) -> Ps {
    rounded(ns * 1000.0)
}

/// The nearest whole number; what is below 0 is 0.
#[inline]
pub fn rounded(value: f64) -> u64 {
    let whole = value as u64;
    whole.saturating_add(u64::from(value - whole as f64 >= 0.5))
}

/// Something that happens without a rank doing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The first byte of a message reaches the adapter of its receiver.
    Arrive(u32),
    /// An adapter may send its next message.
    Leave(u32),
    /// The last byte of a message is in memory.
    Land(u32),
    /// Messages that found no receive buffer at this rank are sent again.
    Retry(u32),
    /// A rank continues, if it has not continued since: the number says so.
    Run(u32, u32),
    /// A fault of this index takes effect.
    Fault(u32),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Ps,
    order: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}

impl Entry {
    fn key(&self) -> u128 {
        (self.at as u128) << 64 | self.order as u128
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    // The heap asks for these.
    fn lt(&self, other: &Entry) -> bool {
        self.key() > other.key()
    }

    fn le(&self, other: &Entry) -> bool {
        self.key() >= other.key()
    }

    fn gt(&self, other: &Entry) -> bool {
        self.key() < other.key()
    }

    fn ge(&self, other: &Entry) -> bool {
        self.key() <= other.key()
    }
}

impl Ord for Entry {
    /// The heap gives the greatest first, which is to be the earliest.
    fn cmp(&self, other: &Entry) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Set in the order of ranks that continue.
const BEHIND: u64 = 1 << 63;

/// Pending events.
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Entry>,
    pushed: u64,
}

impl Queue {
    /// Lets `event` happen at `at`.
    pub fn push(&mut self, at: Ps, event: Event) {
        self.pushed += 1;
        let behind = if matches!(event, Event::Run(..)) { BEHIND } else { 0 };
        self.heap.push(Entry { at, order: self.pushed | behind, event });
    }

    /// When the next one is due, and whether it is a rank that continues.
    pub fn next(&self) -> Option<(Ps, bool)> {
        self.heap.peek().map(|entry| (entry.at, entry.order & BEHIND != 0))
    }

    /// Takes the next one out.
    pub fn pop(&mut self) -> Option<(Ps, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }

    /// How many there have been.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_as_usual() {
        for value in
            [0.0, 0.4999, 0.49999999999999994, 0.5, 1.5, 2.5, 1e6 + 0.5, 4.5e15, 1e19, f64::INFINITY, -3.0]
        {
            assert_eq!(rounded(value), value.round() as u64, "{value}");
        }
    }

    #[test]
    fn order_is_time_then_ranks_last_then_age() {
        let mut queue = Queue::default();
        queue.push(5, Event::Run(0, 0));
        queue.push(5, Event::Land(1));
        queue.push(5, Event::Arrive(2));
        queue.push(4, Event::Run(3, 0));
        assert_eq!(queue.next(), Some((4, true)));
        let order: Vec<Event> = std::iter::from_fn(|| queue.pop().map(|(_, event)| event)).collect();
        assert_eq!(order, [Event::Run(3, 0), Event::Land(1), Event::Arrive(2), Event::Run(0, 0)]);
    }
}
