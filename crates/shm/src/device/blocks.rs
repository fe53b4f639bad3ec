//! Frames longer than a cell, which lie in blocks: written piece by piece, read behind the writer.

use super::Shm;
use crate::bytes;
use crate::lending::Whose;
use crate::loads::{Load, LoadWay};
use crate::pool::{BLOCK_BYTES, Block, GRANULE, HOT, Use};
use crate::ring::{IN_BLOCK, Seen};
use crate::stores::{LEAST, Place, Plan, StoreWay, Told};
use fabric::{Fault, PIECE_STEP, Rank, Reading, Span};
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

/// How much may be in flight before returned credits are looked for: a look costs the transfer of
/// a cache line.
const GRANULES_AHEAD: usize = 8;
/// From this length on a look costs less than it spares: blocks that were read are free for the next round.
const LOOKS: usize = 2048;
/// Into how many pieces a long frame is cut, and the longest of them.
const PIECES: usize = 16;
const PIECE_MAX: usize = 16 * 1024;
/// Into how many at most one that is written past the caches, of [`PIECE_MAX`] at least.
const PIECES_PAST: usize = 4;
/// Looks for the next piece of a frame before its sender is taken to have lost its core: many
/// times what writing a piece takes.
const WRITER_LOOKS: u32 = 2000;

/// A frame that lies in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockFrame {
    pub from: Rank,
    pub data: Span,
    /// How it was written.
    plan: Plan,
    /// Its block, and whose that is.
    pub block: Block,
    pub whose: Whose,
}

impl Shm {
    pub(super) fn send_in_block(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.send_short(to, head, data) || self.send_any_in_block(to, head, data)
    }

    /// As [`Shm::send_in_block`] what most frames are: written at once in the one way there is for short ones, in a block that has been used before.
    #[inline(always)]
    fn send_short(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        let link = &mut self.links[to];
        if data.len >= LEAST || !link.lending.is_idle() {
            return false;
        }
        let Some(block) = self.pool.take_hot() else { return false };
        link.hang(block);
        let into = self.segment.at(self.layout.granule(self.me, block.first()));
        write(Plan::SHORT, into, data, 0, data.len);
        let place = Place { block: block.name(), whose: Whose::SENDERS, len: data.len, plan: Plan::SHORT };
        link.tx.push_block(head, place.pack(), data.len);
        if self.pool.in_flight() >= GRANULES_AHEAD {
            self.reclaim(to);
        }
        true
    }

    fn send_any_in_block(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        assert!(data.len <= BLOCK_BYTES, "frame of {} bytes", data.len);
        let plan = self.links[to].stores.plan(data.len);
        let Some((into, block, whose)) = self.block_for(to, plan, data.len) else { return false };
        let link = &mut self.links[to];
        let piece = piece(plan, self.chunk, data.len);
        let begun = plan.measured.then(Instant::now);
        let mut at = piece.min(data.len);
        write(plan, into, data, 0, at);
        let place = Place { block: block.name(), whose, len: data.len, plan };
        link.tx.push_block(head, place.pack(), at);
        while at < data.len {
            let len = piece.min(data.len - at);
            write(plan, into, data, at, len);
            at += len;
            link.tx.written(at);
        }
        if let Some(begun) = begun {
            // A copy is over when others can see it: one that waits in the processor's buffer of stores has cost
            // nobody anything yet, but its reader waits for it.
            fence(Ordering::SeqCst);
            link.ask_cost();
            link.stores.write_took(plan, data.len, begun.elapsed().as_nanos() as u64);
        }
        // Behind the frame, whose reader does not wait for this.
        let looks = match whose {
            Whose::SENDERS => data.len >= LOOKS,
            _ => self.links[to].awaits_cost(), // no block comes back by the credit
        };
        if looks || self.pool.in_flight() >= GRANULES_AHEAD {
            self.reclaim(to);
        }
        true
    }

    /// Where the next frame to `to` is written, in which block, and whose that is.
    #[inline(always)]
    fn block_for(&mut self, to: Rank, plan: Plan, len: usize) -> Option<(usize, Block, Whose)> {
        if self.links[to].lending.is_idle() {
            let block = self.own_block(plan, len)?;
            self.links[to].hang(block);
            return Some((
                self.segment.at(self.layout.granule(self.me, block.first())),
                block,
                Whose::SENDERS,
            ));
        }
        self.block_to_and_fro(to, plan, len)
    }

    /// A block that no frame lies in.
    #[inline(always)]
    pub(super) fn own_block(&mut self, plan: Plan, len: usize) -> Option<Block> {
        let what_for = what_for(plan, len);
        let hot = if what_for == Use::Hot { self.pool.take_hot() } else { None };
        hot.or_else(|| self.block(len, what_for))
    }

    /// As [`Shm::send_in_block`] to several ranks at once, who read the same block. For how many of
    /// them the frame has left: those before the first whose ring is full.
    pub(super) fn send_in_shared_block(&mut self, to: &[Rank], head: [u64; 2], data: Span) -> usize {
        for &peer in to {
            self.reclaim(peer);
        }
        let ready = &to[..to.iter().take_while(|peer| self.make_room(**peer)).count()];
        if ready.len() < 2 {
            return 0;
        }
        let plan = self.links[ready[0]].stores.unmeasured(data.len);
        let Some(block) = self.block(data.len, what_for(plan, data.len)) else { return 0 };
        self.pool.share(block, ready.len());
        let into = self.segment.at(self.layout.granule(self.me, block.first()));
        let piece = piece(plan, self.chunk, data.len);
        let mut at = piece.min(data.len);
        write(plan, into, data, 0, at);
        let place = Place { block: block.name(), whose: Whose::SENDERS, len: data.len, plan }.pack();
        for &peer in ready {
            let link = &mut self.links[peer];
            link.hang(block);
            link.tx.push_block(head, place, at);
            link.rouse();
        }
        while at < data.len {
            let len = piece.min(data.len - at);
            write(plan, into, data, at, len);
            at += len;
            ready.iter().for_each(|peer| self.links[*peer].tx.written(at));
        }
        ready.len()
    }

    /// A block with memory behind it. `None` if there is none now.
    ///
    /// Where the file system is full those that have memory are used again: that of a granule each rank
    /// has from the start, so that short frames always get through; longer ones may have to go in pieces.
    #[inline(never)]
    fn block(&mut self, len: usize, what_for: Use) -> Option<Block> {
        if self.is_scarce
            && let Some(block) = self.backed_block(len)
        {
            return Some(block);
        }
        let taken = self.pool.take(len, what_for).or_else(|| {
            (0..self.links.len()).for_each(|peer| self.reclaim(peer));
            self.pool.take(len, what_for)
        });
        let block = taken?;
        let unbacked = self.pool.unbacked(block);
        if unbacked == 0 || self.back(block, unbacked) || self.back(block, block.bytes() / GRANULE) {
            return Some(block);
        }
        self.pool.give(block);
        if self.is_scarce { None } else { self.scarce(len) }
    }

    #[cold]
    fn scarce(&mut self, len: usize) -> Option<Block> {
        self.is_scarce = true;
        self.backed_block(len)
    }

    /// A block that has had memory before.
    #[cold]
    fn backed_block(&mut self, len: usize) -> Option<Block> {
        (0..self.links.len()).for_each(|peer| self.reclaim(peer));
        self.pool.take_backed(len)
    }

    #[cold]
    fn back(&mut self, block: Block, granules: usize) -> bool {
        let (offset, len) = (self.layout.granule(self.me, block.first()), granules * GRANULE);
        if self.segment.back(offset, len).is_err() {
            return false;
        }
        self.is_scarce = false;
        self.segment.growth().fetch_add(1, Ordering::Relaxed);
        self.segment.populate(offset, len);
        self.pool.back(block, granules);
        true
    }

    /// A frame that its sender cannot have written so.
    #[cold]
    pub(super) fn malformed<T>(&mut self, from: Rank, what: &str) -> Option<T> {
        self.fault = Some(Fault::Device(format!("malformed frame from rank {from}: {what}")));
        None
    }

    /// Where a frame in a block lies that [`crate::link::Link::peek`] has shown, if it can be one.
    #[inline(always)]
    pub(super) fn in_block(&mut self, from: Rank, seen: &Seen) -> Option<BlockFrame> {
        let Place { block, whose, len, plan } = self.links[from].place(seen);
        let block = Block::named(block).filter(|block| len <= block.bytes());
        let Some(block) = block else { return self.malformed(from, "block or length out of range") };
        let owner = if whose == Whose::SENDERS { from } else { self.owner(from, block, whose)? };
        let data = Span { addr: self.segment.at(self.layout.granule(owner, block.first())), len };
        Some(BlockFrame { from, data, plan, block, whose })
    }

    /// Reads `len` bytes of a frame from `at` on into a buffer of the application, and tells who has written them what that took, if
    /// it asks.
    #[inline(always)]
    fn read_part(&mut self, frame: BlockFrame, way: LoadWay, at: usize, len: usize, to: usize) {
        let begun = frame.plan.measured.then(Instant::now);
        read(way, to, frame.data.addr + at, len);
        self.tell_read(&frame, begun, len);
    }

    /// Tells who has written a frame what it took to read `len` bytes of it, if that was measured.
    #[inline(always)]
    fn tell_read(&mut self, frame: &BlockFrame, begun: Option<Instant>, len: usize) {
        if let Some(begun) = begun {
            let ns = begun.elapsed().as_nanos() as f32;
            self.links[frame.from].tell_cost(Told::new(frame.plan.way, frame.data.len, ns / len as f32));
        }
    }

    /// How a frame is read from here on, and since when, if that is to be known.
    #[inline(always)]
    fn load(&mut self, frame: &BlockFrame) -> (Load, Option<Instant>) {
        let load = self.links[frame.from].loads.plan(frame.plan, frame.data.len);
        (load, load.measured.then(Instant::now))
    }

    /// A frame has been read as a whole.
    #[inline(always)]
    fn loaded(&mut self, frame: &BlockFrame, (load, begun): (Load, Option<Instant>)) {
        if let Some(begun) = begun {
            self.links[frame.from].loads.took(load, frame.data.len, begun.elapsed().as_nanos() as u64);
        }
    }

    /// Copies the oldest frame, which lies in a block, to `room`, behind its sender if that is still
    /// writing it; `taken` is its length. False if it is longer than `room`, if it is malformed, or if the
    /// sender does not get on.
    #[inline(never)] // the path of short frames keeps its registers
    pub(super) fn take_block(&mut self, from: Rank, seen: &Seen, room: Span) -> bool {
        self.take_short(from, seen, room) || self.take_any_block(from, seen, room)
    }

    /// As [`Shm::take_block`] what most frames are: short ones in blocks of their senders, all of them there and nothing to tell.
    #[inline(always)]
    fn take_short(&mut self, from: Rank, seen: &Seen, room: Span) -> bool {
        let link = &mut self.links[from];
        let Place { block, whose, len, plan } = link.place(seen);
        let is_plain = whose == Whose::SENDERS && !plan.measured && link.retained.is_empty();
        if len > HOT.min(room.len) || !is_plain || link.written(seen) != len {
            return false;
        }
        let Some(block) = Block::named(block) else { return false };
        let at = self.segment.at(self.layout.granule(from, block.first()));
        // SAFETY: a frame that has not been popped, no longer than the least block; a buffer of the application.
        unsafe { bytes::copy(room.addr, at, len) };
        link.lending.read();
        link.pop(seen, true);
        self.begun[from] = None;
        self.taken = len;
        true
    }

    fn take_any_block(&mut self, from: Rank, seen: &Seen, room: Span) -> bool {
        let Some(mut frame) = self.in_block(from, seen) else { return false };
        let len = frame.data.len;
        if len > room.len {
            return false;
        }
        let to = room.addr;
        let looks = if self.begun[from].is_some() { 1 } else { WRITER_LOOKS };
        let (mut at, mut left) = (0, looks);
        let load = self.load(&frame);
        let least = load.0.way.least();
        while at < len {
            let written = self.links[from].written(seen).min(len);
            if written == len || written >= at + least && looks > 1 {
                self.read_part(frame, load.0.way, at, written - at, to + at);
                frame.plan.measured = false; // the first piece tells enough
                (at, left) = (written, looks);
            } else {
                left -= 1;
                if left == 0 {
                    self.begun[from] = Some(to);
                    return false;
                }
                std::hint::spin_loop();
            }
        }
        if self.begun[from].take().is_none() {
            self.loaded(&frame, load);
        }
        self.pop_frame(frame, seen);
        self.taken = len;
        true
    }

    /// See [`fabric::Device::take_in_place`].
    #[inline(never)]
    pub(super) fn read_block(&mut self, from: Rank, reading: &mut Reading<'_>) -> Result<(), bool> {
        if !self.links[from].heard && !self.hear(from) {
            return Err(true);
        }
        let Some(seen) = self.links[from].peek() else { return Err(true) };
        if seen.head != reading.head {
            return Err(false);
        }
        if seen.flags & IN_BLOCK == 0 {
            return self.read_whole(from, &seen, reading);
        }
        let Some(mut frame) = self.in_block(from, &seen) else { return Err(false) };
        let (len, mut left) = (frame.data.len, WRITER_LOOKS);
        if len != reading.len {
            return Err(false);
        }
        while reading.done < len {
            let written = self.links[from].written(&seen).min(len);
            let whole = if written == len { len } else { written - written % PIECE_STEP };
            if whole > reading.done {
                let begun = frame.plan.measured.then(Instant::now);
                let piece = frame.data.part(reading.done, whole - reading.done);
                (reading.each)(reading.done, piece);
                self.tell_read(&frame, begun, piece.len);
                frame.plan.measured = false; // the first piece tells enough
                (reading.done, left) = (whole, WRITER_LOOKS);
            } else if left == 0 {
                return Err(true);
            } else {
                left -= 1;
                std::hint::spin_loop();
            }
        }
        self.begun[from] = None;
        self.pop_frame(frame, &seen);
        Ok(())
    }

    /// As [`Shm::read_block`] a frame that lies in no block.
    fn read_whole(&mut self, from: Rank, seen: &Seen, reading: &mut Reading<'_>) -> Result<(), bool> {
        let link = &mut self.links[from];
        if seen.len as usize != reading.len || !seen.fits() {
            return Err(false);
        }
        (reading.each)(0, Span { addr: link.payload_addr(seen), len: reading.len });
        reading.done = reading.len;
        link.pop(seen, false);
        Ok(())
    }

    /// Keeps the frame that was shown where it is, if it is from this rank and may be.
    pub(super) fn retain_shown(&mut self, from: Rank) -> bool {
        let Some(shown) = self.shown.filter(|shown| shown.from == from) else { return false };
        let retains = self.links[from].retain((shown.data, shown.plan, shown.held()), self.retained_most);
        if retains {
            self.shown = None;
            if !self.retaining.contains(&from) {
                self.retaining.push(from);
            }
        }
        retains
    }

    /// A frame that is retained, by where it lies.
    #[inline(never)]
    pub(super) fn find_retained(&self, data: Span) -> Option<BlockFrame> {
        let found = |from: &Rank| Some((*from, self.links[*from].retained.plan(data)?));
        let (from, plan) = self.retaining.iter().find_map(found)?;
        Some(BlockFrame { from, data, plan, block: Block::NONE, whose: Whose::SENDERS })
    }

    /// Copies a frame that was shown, as a whole.
    #[inline(never)]
    pub(super) fn copy_shown(&mut self, frame: BlockFrame, to: usize) {
        let load = self.load(&frame);
        self.read_part(frame, load.0.way, 0, frame.data.len, to);
        self.loaded(&frame, load);
    }
}

/// Which block a payload that is written like this is to have.
#[inline]
fn what_for(plan: Plan, len: usize) -> Use {
    match plan.way {
        StoreWay::Streaming => Use::Past,
        _ if len <= HOT => Use::Hot,
        _ => Use::InTurn,
    }
}

/// Bytes between two announcements of a frame: few enough for the receiver to be close behind, and many enough
/// not to stop all the time. What goes past the caches is waited for with each, until it is in memory.
#[inline]
fn piece(plan: Plan, chunk: usize, len: usize) -> usize {
    match plan.way {
        StoreWay::Streaming => chunk.max(PIECE_MAX).max(len.div_ceil(PIECES_PAST).next_multiple_of(64)),
        _ => chunk.max((len / PIECES).min(PIECE_MAX) / 64 * 64),
    }
}

/// Reads bytes of a frame that lies in a block into a buffer of the application.
#[inline(always)]
fn read(way: LoadWay, to: usize, from: usize, len: usize) {
    // SAFETY: `from` is a frame that has not been popped, `to` a buffer that the application gave to MPI for receiving.
    unsafe {
        match way {
            LoadWay::Prefetched => bytes::copy_asked(to, from, len),
            LoadWay::SideBySide if len >= bytes::PAGES => bytes::copy_side_by_side(to, from, len),
            _ => bytes::copy(to, from, len),
        }
    }
}

/// Writes the piece of `data` at `at` into its place in a block of ours that begins at `into`.
#[inline(always)]
fn write(plan: Plan, into: usize, data: Span, at: usize, len: usize) {
    debug_assert!(at + len <= data.len);
    // SAFETY: the block is ours until the frame is popped, and as long as `data`, a buffer of this process; a way is taken where the
    // processor has it.
    unsafe {
        match plan.way {
            StoreWay::Ordinary => bytes::copy(into + at, data.addr + at, len),
            StoreWay::Prefetched => bytes::copy_prefetched(into + at, data.addr + at, len),
            StoreWay::Streaming => bytes::stream(into + at, data.addr + at, len),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{options, pair, receive, send};
    use super::super::{Options, StoreWay};
    use super::*;
    use crate::stores::Stores;
    use fabric::Device;

    /// What readers measure is heard of, whether they are close behind or some frames, and looked for no longer
    /// than it may come.
    #[test]
    fn what_it_takes_to_read_is_heard_of() {
        for (behind, takes) in [1, 2, 5, 12].into_iter().flat_map(|behind| [(behind, true), (behind, false)])
        {
            let (mut a, mut b) = pair();
            a.links[1].stores = Stores::new(&[StoreWay::Ordinary, StoreWay::Streaming]);
            let payload = [7u8; 3000];
            let mut room = [0u8; 3000];
            let span = |at: *const u8| Span { addr: at as usize, len: payload.len() };
            let mut heard = false;
            for _ in 0..60 / behind {
                (0..behind).for_each(|_| assert!(a.try_send(1, [1, 2], span(payload.as_ptr()))));
                for _ in 0..behind {
                    if takes {
                        assert_eq!(b.take(0, [1, 2], span(room.as_mut_ptr())), Ok(3000));
                    } else {
                        let frame = b.peek(0).unwrap();
                        b.copy(room.as_mut_ptr() as usize, frame.data.addr, frame.data.len);
                        b.pop(0);
                    }
                }
                a.reclaim(1);
                assert!(!a.links[1].awaits_cost());
                heard |= a.links[1].stores.known(payload.len()) == 2;
            }
            assert!(heard && room == payload, "{behind} behind, taken: {takes}");
        }
    }

    #[test]
    fn payloads_arrive_whole_by_all_stores() {
        let forced = [StoreWay::Ordinary, StoreWay::Prefetched, StoreWay::Streaming].map(Some);
        for stores in forced.into_iter().chain([None]) {
            let mut ranks = Shm::local_job(2, &Options { stores, ..options() }).unwrap();
            let (mut b, mut a) = (ranks.pop().unwrap(), ranks.pop().unwrap());
            for round in 0..if cfg!(miri) { 3 } else { 400 } {
                let len = [41, 1023, 1024, 2048, 2049, 4096, 8191, 65_537, BLOCK_BYTES][round % 9];
                let payload: Vec<u8> = (0..len).map(|at| (at * 31 + round) as u8).collect();
                assert!(send(&mut a, &payload));
                assert!(receive(&mut b) == Some(payload), "{stores:?} {len}");
            }
        }
    }

    /// While they are being written and afterwards.
    #[test]
    fn payloads_are_taken_whole_by_all_loads() {
        const ROUNDS: usize = if cfg!(miri) { 4 } else { 400 };
        let payload = |round: usize| {
            let len = [4096, 16_384, 20_000, 65_537, 131_072, BLOCK_BYTES][round % 6];
            (0..len).map(|at| (at * 31 + round) as u8).collect::<Vec<u8>>()
        };
        let forced = [LoadWay::Ordinary, LoadWay::Prefetched, LoadWay::SideBySide].map(Some);
        for loads in forced.into_iter().chain([None]) {
            let mut ranks = Shm::local_job(2, &Options { loads, ..options() }).unwrap();
            let (mut b, mut a) = (ranks.pop().unwrap(), ranks.pop().unwrap());
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for bytes in (0..ROUNDS).map(payload) {
                        while !send(&mut a, &bytes) {
                            std::thread::yield_now();
                        }
                    }
                });
                let mut room = vec![0; BLOCK_BYTES];
                let span = Span { addr: room.as_mut_ptr() as usize, len: room.len() };
                for (round, expected) in (0..ROUNDS).map(payload).enumerate() {
                    let len = loop {
                        match b.take(0, [1, 2], span) {
                            Ok(len) => break len,
                            Err(_) => std::thread::yield_now(),
                        }
                    };
                    assert!(room[..len] == expected, "{loads:?} {round}");
                }
            });
        }
    }
}
