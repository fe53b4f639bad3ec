//! Frames longer than a cell, which lie in slots: written piece by piece, read behind the writer.

use super::Shm;
use crate::bytes;
use crate::layout::{SLOT_BYTES, SLOTS};
use crate::link::NO_SLOT;
use crate::ring::{CELLS, Seen};
use fabric::{Device, Fault, Rank, Span};

/// How far below full the pool may fall before returned credits are looked for: a look costs
/// the transfer of a cache line.
const SLOTS_AHEAD: usize = 8;
/// From this length on a frame gets the slot that was used last, even if that costs a look for
/// returned credits: two such slots do not fill a first-level cache.
const HOT_SLOT: usize = 2048;
/// Looks for the next piece of a frame before its sender is taken to have lost its core: many
/// times what writing a piece takes.
const WRITER_LOOKS: u32 = 2000;

impl Shm {
    /// Takes back the slots of frames the reader has left.
    pub(super) fn reclaim(&mut self, to: Rank) {
        let link = &mut self.links[to];
        let head = link.tx.refresh();
        // Positions a whole round ago share their entry with ones in flight; whatever hung on
        // them was taken back before the entry was used again.
        let oldest = link.tx.tail().wrapping_sub(CELLS as u32);
        if oldest.wrapping_sub(link.reclaimed) as i32 > 0 {
            link.reclaimed = oldest;
        }
        while link.reclaimed != head {
            let slot = &mut link.slot_of[link.reclaimed as usize % CELLS];
            if *slot != NO_SLOT {
                self.pool.give(*slot);
                *slot = NO_SLOT;
            }
            link.reclaimed = link.reclaimed.wrapping_add(1);
        }
    }

    pub(super) fn send_in_slot(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        assert!(data.len <= SLOT_BYTES, "frame of {} bytes", data.len);
        if data.len >= HOT_SLOT || self.pool.available() + SLOTS_AHEAD <= SLOTS {
            self.reclaim(to);
            if self.pool.available() == 0 {
                (0..self.links.len()).filter(|peer| *peer != to).for_each(|peer| self.reclaim(peer));
            }
        }
        let Some((slot, fresh)) = self.pool.take() else { return false };
        let offset = self.layout.slot(self.me, slot as usize);
        if fresh && let Err(why) = self.segment.back(offset, SLOT_BYTES) {
            // The slot is not given back: the next to take it would find it used, yet not backed.
            self.fault = Some(Fault::Device(why));
            return false;
        }
        let into = self.segment.at(offset);
        // SAFETY: the slot is ours until the frame is popped; `data` is a buffer of this process.
        let copy = |at: usize, len: usize| unsafe { bytes::copy(into + at, data.addr + at, len) };
        let link = &mut self.links[to];
        link.slot_of[link.tx.tail() as usize % CELLS] = slot;
        let mut at = self.chunk.min(data.len);
        copy(0, at);
        link.tx.push_slot(head, data.len as u16, slot, at);
        while at < data.len {
            let len = self.chunk.min(data.len - at);
            copy(at, len);
            at += len;
            link.tx.written(at);
        }
        true
    }

    /// The slot of a frame in one that [`Link::peek`] has shown, if it can be one.
    #[inline(always)]
    pub(super) fn slot(&mut self, from: Rank, seen: &Seen) -> Option<usize> {
        let slot = self.links[from].slot(seen);
        if slot >= SLOTS || seen.len as usize > SLOT_BYTES {
            return self.malformed(from, "slot or length out of range");
        }
        Some(self.segment.at(self.layout.slot(from, slot)))
    }

    /// Copies the oldest frame, which lies in a slot, to `to`, behind its sender if that is still
    /// writing it. False if the slot cannot be one, or if the sender does not get on.
    #[inline(never)] // the path of short frames keeps its registers
    pub(super) fn take_slot(&mut self, from: Rank, seen: &Seen, to: usize) -> bool {
        let Some(slot) = self.slot(from, seen) else { return false };
        let len = seen.len as usize;
        let looks = if self.begun[from].is_some() { 1 } else { WRITER_LOOKS };
        let (mut at, mut left) = (0, looks);
        while at < len {
            let written = self.links[from].written(seen).min(len);
            if written == len || written > at && looks > 1 {
                self.copy(to + at, slot + at, written - at);
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
        self.begun[from] = None;
        self.links[from].pop(seen);
        true
    }
}
