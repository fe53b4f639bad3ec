//! The ring of one ordered pair of ranks: one producer, one consumer, 64 cells of a cache line.
//!
//! A cell carries its own sequence word, so that a message costs the transfer of one cache line
//! and nothing else (TARGETS.md section 3). The consumer returns credits through one word in the
//! producer's memory, only every [`CREDIT_BATCH`] cells.
//!
//! ```text
//! word 0: sequence (32) | length (16) | flags (16)
//! word 1, 2: header
//! word 3 … 7: payload, or slot index and length
//! ```
//!
//! The producer writes the words, then word 0 with release; the consumer reads word 0 with
//! acquire. All accesses are atomic, so loom checks exactly this code.

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Cells of a ring; 64 were fastest, fewer stall, more cost cache.
pub const CELLS: usize = 64;
/// Payload of a cell in bytes.
pub const INLINE: usize = 40;
/// How many cells are consumed before the credit is returned.
const CREDIT_BATCH: u32 = 16;
/// The payload lies in a slot of the sender's pool.
pub const IN_SLOT: u16 = 1;

/// One cache line.
#[repr(C, align(64))]
pub struct Cell {
    words: [AtomicU64; 8],
}

#[cfg(loom)]
impl Cell {
    fn new() -> Cell {
        Cell { words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

/// The sending end.
pub struct Producer<'a> {
    cells: &'a [Cell],
    credit: &'a AtomicU32,
    tail: u32,
    head: u32,
}

/// The receiving end.
pub struct Consumer<'a> {
    cells: &'a [Cell],
    credit: &'a AtomicU32,
    head: u32,
    returned: u32,
}

/// A look at the oldest cell.
#[derive(Clone, Copy)]
pub struct Seen {
    /// Length of the payload.
    pub len: u16,
    /// [`IN_SLOT`] or 0.
    pub flags: u16,
    /// The header.
    pub head: [u64; 2],
}

impl<'a> Producer<'a> {
    /// A producer at the start of a zeroed ring.
    pub fn new(cells: &'a [Cell], credit: &'a AtomicU32) -> Self {
        debug_assert_eq!(cells.len(), CELLS);
        Producer { cells, credit, tail: 0, head: 0 }
    }

    /// Frames pushed so far.
    #[inline(always)]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// Looks for returned credits.
    #[inline]
    pub fn refresh(&mut self) -> u32 {
        self.head = self.credit.load(Ordering::Acquire);
        self.head
    }

    /// Whether a cell is free, looking for credits if none is known.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        self.tail.wrapping_sub(self.head) < CELLS as u32
            || self.tail.wrapping_sub(self.refresh()) < CELLS as u32
    }

    /// Fills the next cell, which must be free; `payload` gives word `i` of `used`.
    #[inline(always)]
    pub fn push(&mut self, head: [u64; 2], len: u16, flags: u16, used: usize, payload: impl Fn(usize) -> u64) {
        let cell = &self.cells[self.tail as usize % CELLS];
        cell.words[1].store(head[0], Ordering::Relaxed);
        cell.words[2].store(head[1], Ordering::Relaxed);
        cell.words[3].store(payload(0), Ordering::Relaxed);
        for (i, word) in cell.words[4..].iter().enumerate().take(used.saturating_sub(1)) {
            word.store(payload(i + 1), Ordering::Relaxed);
        }
        self.tail = self.tail.wrapping_add(1);
        let word = self.tail as u64 | (len as u64) << 32 | (flags as u64) << 48;
        cell.words[0].store(word, Ordering::Release);
    }
}

impl<'a> Consumer<'a> {
    /// A consumer at the start of a zeroed ring.
    pub fn new(cells: &'a [Cell], credit: &'a AtomicU32) -> Self {
        debug_assert_eq!(cells.len(), CELLS);
        Consumer { cells, credit, head: 0, returned: 0 }
    }

    /// The oldest cell, if it has been filled.
    #[inline(always)]
    pub fn peek(&self) -> Option<Seen> {
        let cell = &self.cells[self.head as usize % CELLS];
        let word = cell.words[0].load(Ordering::Acquire);
        if word as u32 != self.head.wrapping_add(1) {
            return None;
        }
        let head = [cell.words[1].load(Ordering::Relaxed), cell.words[2].load(Ordering::Relaxed)];
        Some(Seen { len: (word >> 32) as u16, flags: (word >> 48) as u16, head })
    }

    /// Payload word `i` of the oldest cell.
    #[inline(always)]
    pub fn payload(&self, i: usize) -> u64 {
        self.cells[self.head as usize % CELLS].words[3 + i].load(Ordering::Relaxed)
    }

    /// Address of the payload of the oldest cell.
    #[inline(always)]
    pub fn payload_addr(&self) -> usize {
        &raw const self.cells[self.head as usize % CELLS].words[3] as usize
    }

    /// Gives the oldest cell back; `now` returns the credit at once, because a slot hangs on it.
    #[inline(always)]
    pub fn pop(&mut self, now: bool) {
        self.head = self.head.wrapping_add(1);
        if now || self.head.wrapping_sub(self.returned) >= CREDIT_BATCH {
            self.credit.store(self.head, Ordering::Release);
            self.returned = self.head;
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::thread;

    /// Two messages through one ring under every interleaving: neither torn nor out of order.
    #[test]
    fn messages_arrive_whole_and_in_order() {
        loom::model(|| {
            let cells: &'static [Cell] = Box::leak((0..CELLS).map(|_| Cell::new()).collect());
            let credit: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
            let producer = thread::spawn(move || {
                let mut p = Producer::new(cells, credit);
                for i in 1..=2u64 {
                    assert!(p.has_room());
                    p.push([i, i + 10], 8, 0, 1, |_| i + 20);
                }
            });
            let mut c = Consumer::new(cells, credit);
            let mut next = 1;
            while next <= 2 {
                match c.peek() {
                    None => thread::yield_now(),
                    Some(seen) => {
                        assert_eq!((seen.head, c.payload(0)), ([next, next + 10], next + 20));
                        c.pop(true);
                        next += 1;
                    }
                }
            }
            producer.join().unwrap();
        });
    }

    /// A full ring refuses, and takes again once the consumer has returned the credit; the cell
    /// that is written anew is one that the consumer has left.
    #[test]
    fn a_full_ring_waits_for_the_credit() {
        loom::model(|| {
            let cells: &'static [Cell] = Box::leak((0..CELLS).map(|_| Cell::new()).collect());
            let credit: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
            let mut p = Producer::new(cells, credit);
            for i in 0..CELLS as u64 {
                p.push([i, 0], 0, 0, 0, |_| 0);
            }
            assert!(!p.has_room());
            let consumer = thread::spawn(move || {
                let mut c = Consumer::new(cells, credit);
                let seen = c.peek().expect("filled before the thread started");
                assert_eq!(seen.head[0], 0);
                c.pop(true);
            });
            while !p.has_room() {
                thread::yield_now();
            }
            p.push([99, 0], 0, 0, 0, |_| 0);
            consumer.join().unwrap();
        });
    }
}
