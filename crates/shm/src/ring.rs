//! The ring of one ordered pair of ranks: one producer, one consumer, 64 cells of a cache line.
//!
//! A cell carries its own sequence word, so that a message costs the transfer of one cache line
//! and nothing else (TARGETS.md section 3). The consumer returns credits through one word in the
//! producer's memory, only every [`CREDIT_BATCH`] cells.
//!
//! ```text
//! word 0: sequence (32) | length (16) | flags (16)
//! word 1, 2: header
//! word 3 … 7: payload; or a word that says in which block it lies, and how many bytes of it are written
//! ```
//!
//! The producer writes the words, then word 0 with release; the consumer reads word 0 with
//! acquire. The payload of the turn cell goes on in the lines behind it. A frame in a block may be pushed before
//! its payload is complete: word 4 then grows, each time with release, and the consumer copies out behind the
//! producer. Accesses to cells are atomic but for payloads in those lines, so loom checks exactly this code.
//!
//! In a stream each side asks for cells ahead of time, four at once, so that several lines move side by side: the producer for free ones, which the
//! consumer has in its cache; the consumer, while it finds frames without looking in vain, for those that are likely to be full as well. Of one
//! that is not it has the line already, and the producer takes it away as ever.

#[cfg(not(loom))]
use crate::bytes::{ask, ask_to_write, prefetches};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Cells of a ring; 64 were fastest, fewer stall, more cost cache.
pub const CELLS: usize = 64;
/// Payload of a cell in bytes.
pub const INLINE: usize = 40;
/// Lines of the turn cell.
pub const TURN_LINES: usize = 17;
/// Payload of the turn cell in bytes.
pub const TURN_BYTES: usize = INLINE + (TURN_LINES - 1) * size_of::<Cell>();
/// How many cells are consumed before the credit is returned.
const CREDIT_BATCH: u32 = 16;
/// How many cells are asked for at once, a group ahead; from 4 to 12 cells are the same.
const GROUP: u32 = 4;
/// The payload lies in a block of the sender's arena.
pub const IN_BLOCK: u16 = 1;
/// Written into the turn cell by the lower rank of the pair.
const FROM_LOWER: u16 = 2;
/// Written into the turn cell by the upper rank of the pair.
const FROM_UPPER: u16 = 4;

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
    /// No credit goes beyond this position.
    kept_back: Option<u32>,
    /// The position that was looked at in vain last.
    dry: u32,
}

/// The turn cell of a pair of ranks: one cell that both write in turn, of several lines.
///
/// Who holds the turn may put its next frame there instead of into its ring, which passes the
/// turn on. In an exchange of messages the answer then travels in the very line that brought the
/// question: one line moves between the caches where two rings move two (0.17 against 0.25 µs
/// between far cores, TARGETS.md section 3). A frame keeps the position it has in the order of
/// all frames; the reader of that position looks into both places.
pub struct Turn<'a> {
    /// The cell, and the lines behind it in which its payload goes on.
    cell: &'a [Cell; TURN_LINES],
    mine: bool,
    /// Flag of frames written by this side.
    out: u16,
    /// Flag of frames written by the other side.
    back: u16,
}

/// Whether frames at this position always go through the ring. One lap in 2^20 does, so that every
/// cell is written anew long before its old sequence word could be taken for that of a position
/// 2^32 frames later.
#[inline(always)]
fn is_ring_lap(position: u32) -> bool {
    const LAPS: u32 = 1 << 20;
    (position / CELLS as u32) % LAPS == LAPS - 1
}

/// Where the cells of the group lie that begins with this position, a multiple of [`GROUP`]; as numbers, for they are hints.
#[inline(always)]
fn group(cells: &[Cell], first: u32) -> impl Iterator<Item = usize> + use<> {
    let at = cells.as_ptr() as usize + first as usize % CELLS * size_of::<Cell>();
    (0..GROUP as usize).map(move |i| at + i * size_of::<Cell>())
}

/// A hint that means nothing to loom.
#[cfg(loom)]
fn ask(_: usize) {}
#[cfg(loom)]
fn ask_to_write(_: usize) {}
#[cfg(loom)]
fn prefetches() -> bool {
    true
}

/// A look at the oldest frame.
#[derive(Clone, Copy)]
pub struct Seen {
    /// Length of the payload, unless it is in a block.
    pub len: u16,
    /// [`IN_BLOCK`] or 0, and whose turn it was.
    pub flags: u16,
    /// The header.
    pub head: [u64; 2],
    /// Whether it lies in the turn cell.
    pub in_turn: bool,
}

impl Seen {
    /// Whether a payload that lies in no block can be as long as its sender says.
    #[inline(always)]
    pub fn fits(&self) -> bool {
        self.len as usize <= if self.in_turn { TURN_BYTES } else { INLINE }
    }
}

impl Cell {
    /// Writes a frame; `payload` gives word `i` of `used`.
    #[inline(always)]
    fn fill(
        &self,
        position: u32,
        head: [u64; 2],
        len: u16,
        flags: u16,
        used: usize,
        payload: impl Fn(usize) -> u64,
    ) {
        self.words[3].store(payload(0), Ordering::Relaxed);
        for (i, word) in self.words[4..].iter().enumerate().take(used.saturating_sub(1)) {
            word.store(payload(i + 1), Ordering::Relaxed);
        }
        self.announce(position, head, len, flags);
    }

    /// Writes all of a frame but its payload, which stands there.
    #[inline(always)]
    fn announce(&self, position: u32, head: [u64; 2], len: u16, flags: u16) {
        self.words[1].store(head[0], Ordering::Relaxed);
        self.words[2].store(head[1], Ordering::Relaxed);
        let word = position.wrapping_add(1) as u64 | (len as u64) << 32 | (flags as u64) << 48;
        self.words[0].store(word, Ordering::Release);
    }

    /// The frame, if it is the one at `position`.
    #[inline(always)]
    fn look(&self, position: u32, in_turn: bool) -> Option<Seen> {
        let word = self.words[0].load(Ordering::Acquire);
        if word as u32 != position.wrapping_add(1) {
            return None;
        }
        let head = [self.words[1].load(Ordering::Relaxed), self.words[2].load(Ordering::Relaxed)];
        Some(Seen { len: (word >> 32) as u16, flags: (word >> 48) as u16, head, in_turn })
    }
}

impl<'a> Turn<'a> {
    /// The end of one side; the lower rank has the first turn. The cell is zeroed.
    pub fn new(cell: &'a [Cell; TURN_LINES], is_lower: bool) -> Self {
        let (out, back) = if is_lower { (FROM_LOWER, FROM_UPPER) } else { (FROM_UPPER, FROM_LOWER) };
        Turn { cell, mine: is_lower, out, back }
    }

    /// Whether this side may put the frame of this position there.
    #[inline(always)]
    fn takes(&self, position: u32) -> bool {
        self.mine && !is_ring_lap(position)
    }
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

    /// Frames whose credit has come back, as far as is known.
    #[inline(always)]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Looks for returned credits. False if what stands there is none: it goes back, or is for frames that
    /// were not pushed.
    #[inline]
    pub fn refresh(&mut self) -> bool {
        let head = self.credit.load(Ordering::Acquire);
        let is_sound = head.wrapping_sub(self.head) <= self.tail.wrapping_sub(self.head);
        if is_sound {
            self.head = head;
        }
        is_sound
    }

    /// Whether a cell is free, looking for credits if none is known.
    #[inline(always)]
    pub fn has_room(&mut self) -> bool {
        self.tail.wrapping_sub(self.head) < CELLS as u32
            || self.refresh() && self.tail.wrapping_sub(self.head) < CELLS as u32
    }

    /// Sends the next frame, for which there must be room: in the turn cell if it is given and
    /// this side has the turn, else in the ring. `payload` gives word `i` of `used`.
    #[inline(always)]
    pub fn push(
        &mut self,
        turn: Option<&mut Turn>,
        head: [u64; 2],
        len: u16,
        flags: u16,
        used: usize,
        payload: impl Fn(usize) -> u64,
    ) {
        let position = self.tail;
        self.tail = position.wrapping_add(1);
        match turn {
            Some(turn) if turn.takes(position) => {
                turn.mine = false;
                turn.cell[0].fill(position, head, len, flags | turn.out, used, payload);
            }
            _ => self.cells[position as usize % CELLS].fill(position, head, len, flags, used, payload),
        }
    }

    /// More frames are to follow at once.
    #[inline(always)]
    pub fn ask_ahead(&self) {
        let first = self.tail.wrapping_add(GROUP);
        let is_free = first.wrapping_sub(self.head) <= CELLS as u32 - GROUP;
        if first.is_multiple_of(GROUP) && is_free && prefetches() {
            group(self.cells, first).for_each(ask_to_write);
        }
    }

    /// Sends the next frame in the turn cell, if it may lie there: `write` puts a payload that is longer than [`INLINE`] where
    /// it is told. There must be room as for any frame.
    #[inline]
    pub fn push_in_turn(
        &mut self,
        turn: Option<&mut Turn>,
        head: [u64; 2],
        len: u16,
        write: impl FnOnce(usize),
    ) -> bool {
        let position = self.tail;
        let Some(turn) = turn.filter(|turn| turn.takes(position)) else { return false };
        self.tail = position.wrapping_add(1);
        turn.mine = false;
        write(&raw const turn.cell[0].words[3] as usize);
        turn.cell[0].announce(position, head, len, turn.out);
        true
    }

    /// Sends the next frame through the ring, for which there must be room: `written` bytes of its payload
    /// lie in `block`, the others follow with [`Producer::written`].
    #[inline(always)]
    pub fn push_block(&mut self, head: [u64; 2], block: u64, written: usize) {
        self.push(None, head, 0, IN_BLOCK, 2, |i| [block, written as u64][i]);
    }

    /// Says how many bytes of the payload of the last frame are written.
    #[inline(always)]
    pub fn written(&self, bytes: usize) {
        let cell = &self.cells[self.tail.wrapping_sub(1) as usize % CELLS];
        cell.words[4].store(bytes as u64, Ordering::Release);
    }
}

impl<'a> Consumer<'a> {
    /// A consumer at the start of a zeroed ring.
    pub fn new(cells: &'a [Cell], credit: &'a AtomicU32) -> Self {
        debug_assert_eq!(cells.len(), CELLS);
        Consumer { cells, credit, head: 0, returned: 0, kept_back: None, dry: 0 }
    }

    /// The oldest frame, if it has come.
    #[inline(always)]
    pub fn peek(&self, turn: Option<&Turn>) -> Option<Seen> {
        if let Some(turn) = turn
            && !turn.mine
            && let Some(seen) = turn.cell[0].look(self.head, true)
            && seen.flags & turn.back != 0
        {
            return Some(seen);
        }
        self.cells[self.head as usize % CELLS].look(self.head, false)
    }

    /// The cell of a frame that [`Consumer::peek`] has shown.
    #[inline(always)]
    fn cell<'b>(&'b self, turn: Option<&'b Turn>, seen: &Seen) -> &'b Cell {
        match turn {
            Some(turn) if seen.in_turn => &turn.cell[0],
            _ => &self.cells[self.head as usize % CELLS],
        }
    }

    /// The first payload word of a frame.
    #[inline(always)]
    pub fn payload(&self, turn: Option<&Turn>, seen: &Seen) -> u64 {
        self.cell(turn, seen).words[3].load(Ordering::Relaxed)
    }

    /// How many bytes of a frame in a block are written.
    #[inline(always)]
    pub fn written(&self, turn: Option<&Turn>, seen: &Seen) -> usize {
        self.cell(turn, seen).words[4].load(Ordering::Acquire) as usize
    }

    /// Address of the payload of a frame.
    #[inline(always)]
    pub fn payload_addr(&self, turn: Option<&Turn>, seen: &Seen) -> usize {
        &raw const self.cell(turn, seen).words[3] as usize
    }

    /// Gives the oldest frame back, and takes the turn if it came with it. One on which a block `hangs`
    /// returns the credit at once. True if the credit was returned.
    #[inline(always)]
    pub fn pop(&mut self, turn: Option<&mut Turn>, seen: &Seen, hangs: bool) -> bool {
        if let Some(turn) = turn
            && seen.in_turn
        {
            turn.mine = true;
        }
        self.head = self.head.wrapping_add(1);
        let due = hangs || self.head.wrapping_sub(self.returned) >= CREDIT_BATCH;
        if due {
            self.give_back();
        }
        due
    }

    /// A frame was looked for in vain.
    #[inline(always)]
    pub fn ran_dry(&mut self) {
        self.dry = self.head;
    }

    /// More frames are likely to be there, unless one was looked for in vain just now.
    #[inline(always)]
    pub fn ask_ahead(&self) {
        let first = self.head.wrapping_add(GROUP);
        if first.is_multiple_of(GROUP) && self.head.wrapping_sub(self.dry) >= GROUP {
            group(self.cells, first).for_each(ask);
        }
    }

    #[inline(always)]
    fn give_back(&mut self) {
        self.credit.store(self.kept_back.unwrap_or(self.head), Ordering::Release);
        self.returned = self.head;
    }

    /// Position of the oldest frame.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// From here on no credit is returned for the position `from` and those behind it; `None`: all credit is.
    pub fn keep_back(&mut self, from: Option<u32>) {
        self.kept_back = from;
        self.give_back();
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
                    p.push(None, [i, i + 10], 8, 0, 1, |_| i + 20);
                }
            });
            let mut c = Consumer::new(cells, credit);
            let mut next = 1;
            while next <= 2 {
                match c.peek(None) {
                    None => thread::yield_now(),
                    Some(seen) => {
                        assert_eq!((seen.head, c.payload(None, &seen)), ([next, next + 10], next + 20));
                        c.pop(None, &seen, true);
                        next += 1;
                    }
                }
            }
            producer.join().unwrap();
        });
    }

    /// A payload that is written piece by piece behind its announcement: what the consumer is told
    /// is written can be read, and the cell is not written again while it reads.
    #[test]
    fn a_payload_is_read_behind_its_writer() {
        loom::model(|| {
            let cells: &'static [Cell] = Box::leak((0..CELLS).map(|_| Cell::new()).collect());
            let credit: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
            let slot: &'static [AtomicU32; 2] = Box::leak(Box::new([AtomicU32::new(0), AtomicU32::new(0)]));
            let producer = thread::spawn(move || {
                let mut p = Producer::new(cells, credit);
                p.push_block([1, 2], 3, 0);
                for (i, place) in slot.iter().enumerate() {
                    place.store(i as u32 + 7, Ordering::Relaxed);
                    p.written(i + 1);
                }
            });
            let mut c = Consumer::new(cells, credit);
            let seen = loop {
                match c.peek(None) {
                    Some(seen) => break seen,
                    None => thread::yield_now(),
                }
            };
            assert_eq!((seen.head, c.payload(None, &seen)), ([1, 2], 3));
            let mut read = 0;
            while read < 2 {
                let written = c.written(None, &seen);
                if written == read {
                    thread::yield_now();
                }
                while read < written {
                    assert_eq!(slot[read].load(Ordering::Relaxed), read as u32 + 7);
                    read += 1;
                }
            }
            assert!(c.pop(None, &seen, true));
            producer.join().unwrap();
        });
    }

    /// A question and its answer through the turn cell, and a second question that overtakes
    /// nothing because it finds the turn away and goes through the ring.
    #[test]
    fn turns_keep_the_order() {
        loom::model(|| {
            let cells = || -> &'static [Cell] { Box::leak((0..CELLS).map(|_| Cell::new()).collect()) };
            let credit = || -> &'static AtomicU32 { Box::leak(Box::new(AtomicU32::new(0))) };
            let shared: &'static [Cell; TURN_LINES] =
                Box::leak(Box::new(std::array::from_fn(|_| Cell::new())));
            let (down, up, down_credit, up_credit) = (cells(), cells(), credit(), credit());
            let upper = thread::spawn(move || {
                let mut turn = Turn::new(shared, false);
                let mut rx = Consumer::new(down, down_credit);
                let mut tx = Producer::new(up, up_credit);
                for expected in [1, 2] {
                    let seen = loop {
                        match rx.peek(Some(&turn)) {
                            Some(seen) => break seen,
                            None => thread::yield_now(),
                        }
                    };
                    assert_eq!((seen.head[0], rx.payload(Some(&turn), &seen)), (expected, expected + 10));
                    rx.pop(Some(&mut turn), &seen, false);
                    if expected == 1 {
                        tx.push(Some(&mut turn), [7, 0], 8, 0, 1, |_| 17);
                    }
                }
            });
            let mut turn = Turn::new(shared, true);
            let mut tx = Producer::new(down, down_credit);
            let mut rx = Consumer::new(up, up_credit);
            for i in [1, 2] {
                tx.push(Some(&mut turn), [i, 0], 8, 0, 1, |_| i + 10);
            }
            let seen = loop {
                match rx.peek(Some(&turn)) {
                    Some(seen) => break seen,
                    None => thread::yield_now(),
                }
            };
            assert_eq!((seen.head[0], rx.payload(Some(&turn), &seen)), (7, 17));
            rx.pop(Some(&mut turn), &seen, false);
            upper.join().unwrap();
        });
    }

    /// A block that is kept back is not written again, whatever is read behind it.
    #[test]
    fn a_block_that_is_kept_back_stays() {
        loom::model(|| {
            let cells: &'static [Cell] = Box::leak((0..CELLS).map(|_| Cell::new()).collect());
            let credit: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
            let block: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(7)));
            let mut p = Producer::new(cells, credit);
            p.push_block([1, 2], 3, 1);
            p.push_block([4, 5], 6, 1);
            let producer = thread::spawn(move || {
                while p.head() == 0 {
                    thread::yield_now();
                    assert!(p.refresh());
                }
                block.store(8, Ordering::Relaxed);
            });
            let mut c = Consumer::new(cells, credit);
            c.keep_back(Some(0));
            for first in [1, 4] {
                let seen = c.peek(None).expect("pushed before the thread started");
                assert_eq!(seen.head[0], first);
                c.pop(None, &seen, true);
            }
            assert_eq!(block.load(Ordering::Relaxed), 7);
            c.keep_back(None);
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
                p.push(None, [i, 0], 0, 0, 0, |_| 0);
            }
            assert!(!p.has_room());
            let consumer = thread::spawn(move || {
                let mut c = Consumer::new(cells, credit);
                let seen = c.peek(None).expect("filled before the thread started");
                assert_eq!(seen.head[0], 0);
                c.pop(None, &seen, true);
            });
            while !p.has_room() {
                thread::yield_now();
            }
            p.push(None, [99, 0], 0, 0, 0, |_| 0);
            consumer.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod position_tests {
    use super::*;

    #[test]
    fn every_cell_is_written_once_in_a_while_and_before_the_numbers_wrap() {
        let through_ring: std::collections::BTreeSet<usize> =
            (u32::MAX - 200..=u32::MAX).filter(|p| is_ring_lap(*p)).map(|p| p as usize % CELLS).collect();
        assert_eq!(through_ring.len(), CELLS);
        assert!((0..10_000).all(|p| !is_ring_lap(p)));
    }
}
