//! What has come of a peer: in order, and what waits for something that is missing, or for a receive buffer.

use std::collections::{BTreeMap, VecDeque};
use wire::datagram::WORDS_MAX;

/// Datagrams that are kept for a peer: as many as the bitmap tells of.
pub(super) const WINDOW: usize = 64 * WORDS_MAX;
/// And bytes of them.
const BYTES: usize = 4 << 20;

/// What becomes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is the next one.
    Next,
    /// It waits for what is missing.
    Early,
    /// It has been there.
    Again,
    /// There is no room for it.
    Beyond,
}

#[derive(Debug)]
pub(super) struct Arrivals {
    /// The number that is expected.
    next: u64,
    early: BTreeMap<u64, Box<[u8]>>,
    /// In order; no receive buffer is there for the first of them.
    waiting: VecDeque<Box<[u8]>>,
    is_waiting: bool,
    bytes: usize,
}

impl Arrivals {
    pub(super) fn new(first: u64) -> Arrivals {
        Arrivals {
            next: first,
            early: BTreeMap::new(),
            waiting: VecDeque::new(),
            is_waiting: false,
            bytes: 0,
        }
    }

    /// The number that is expected.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Numbers from there on that are taken.
    pub(super) fn window(&self) -> u16 {
        (WINDOW - self.waiting.len().min(WINDOW)) as u16
    }

    /// Bits of what waits behind the one that is expected.
    pub(super) fn came(&self) -> [u64; WORDS_MAX] {
        let mut came = [0; WORDS_MAX];
        for seq in self.early.keys() {
            let bit = (seq - self.next - 1) as usize;
            came[bit / 64] |= 1 << (bit % 64);
        }
        came
    }

    /// Whether something is missing in front of what has come.
    pub(super) fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// Takes a datagram in; [`Taken::Next`] is the caller's to deal with, by [`Arrivals::keep`] if it cannot.
    pub(super) fn take(&mut self, seq: u32, content: &[u8]) -> Taken {
        let seq = self.next.wrapping_add_signed(i64::from(seq.wrapping_sub(self.next as u32) as i32));
        if seq < self.next || self.early.contains_key(&seq) {
            return Taken::Again;
        }
        let is_kept = seq > self.next || self.is_waiting;
        if seq - self.next >= u64::from(self.window()) || is_kept && self.bytes + content.len() > BYTES {
            return Taken::Beyond;
        }
        if seq > self.next {
            self.bytes += content.len();
            self.early.insert(seq, content.into());
            return Taken::Early;
        }
        self.next += 1;
        Taken::Next
    }

    /// What follows in order and has been kept: it is the caller's.
    pub(super) fn follow(&mut self) -> Option<Box<[u8]>> {
        let content = self.early.remove(&self.next)?;
        self.next += 1;
        self.bytes -= content.len();
        Some(content)
    }

    /// Whether something waits for a receive buffer.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Keeps what is in order and waits for a receive buffer, even if it is nothing.
    pub(super) fn keep(&mut self, content: &[u8]) {
        self.is_waiting = true;
        self.bytes += content.len();
        self.waiting.push_back(content.into());
    }

    /// All that waits for a receive buffer.
    pub(super) fn waiting(&mut self) -> VecDeque<Box<[u8]>> {
        self.is_waiting = false;
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes -= waiting.iter().map(|content| content.len()).sum::<usize>();
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_once_and_in_order_across_the_end_of_numbers() {
        let first = u64::from(u32::MAX) - 1;
        let mut arrivals = Arrivals::new(first);
        let number = |n: u64| (first + n) as u32;
        assert_eq!(arrivals.take(number(2), b"two"), Taken::Early);
        assert_eq!(arrivals.take(number(3), b"three"), Taken::Early);
        assert_eq!(arrivals.take(number(2), b"two"), Taken::Again);
        assert_eq!(arrivals.came()[0], 0b110);
        assert_eq!(arrivals.take(number(0), b"zero"), Taken::Next);
        assert_eq!(arrivals.follow(), None);
        assert_eq!(arrivals.came()[0], 0b11);
        assert_eq!(arrivals.take(number(1), b"one"), Taken::Next);
        assert_eq!(arrivals.follow().as_deref(), Some(&b"two"[..]));
        assert_eq!(arrivals.follow().as_deref(), Some(&b"three"[..]));
        assert_eq!((arrivals.follow(), arrivals.bytes), (None, 0));
        assert_eq!(arrivals.take(number(1), b"one"), Taken::Again);
        assert_eq!(arrivals.take(number(4 + WINDOW as u64), b"far"), Taken::Beyond);
        assert_eq!(arrivals.take(number(3 + WINDOW as u64), b"far"), Taken::Early);
    }

    #[test]
    fn what_waits_narrows_the_window_and_bytes_are_bounded() {
        let mut arrivals = Arrivals::new(0);
        for seq in 0..10 {
            assert_eq!(arrivals.take(seq, b"x"), Taken::Next);
            arrivals.keep(b"x");
        }
        assert_eq!(usize::from(arrivals.window()), WINDOW - 10);
        assert_eq!(arrivals.waiting().len(), 10);
        assert_eq!(usize::from(arrivals.window()), WINDOW);
        let long = vec![0; BYTES / 4];
        assert_eq!(
            [20, 21, 22, 23, 24].map(|seq| arrivals.take(seq, &long) == Taken::Early),
            [true, true, true, true, false]
        );
        assert_eq!(arrivals.take(10, b"y"), Taken::Next, "what is next needs no room");
    }
}
