//! Blocks that go to and fro between two ranks: see `lending.rs`.

use super::Shm;
use super::blocks::BlockFrame;
use crate::lending::{Held, Whose};
use crate::pool::Block;
use crate::ring::Seen;
use crate::stores::{Plan, StoreWay};
use fabric::{Fault, Rank, Span};

impl BlockFrame {
    /// What can be written when it has been read.
    pub(super) fn held(&self) -> Option<Held> {
        match self.whose {
            Whose::SENDERS => None,
            whose if whose.is_readers() => Some(Held::Ours(self.block)),
            whose => Some(Held::Theirs(whose.slot(), self.block)),
        }
    }
}

impl Shm {
    /// As [`Shm::block_for`], in an exchange.
    #[inline(never)] // streams go without
    pub(super) fn block_to_and_fro(
        &mut self,
        to: Rank,
        plan: Plan,
        len: usize,
    ) -> Option<(usize, Block, Whose)> {
        let answers = self.links[to].lending.answers();
        let block = match self.take_held(to, plan, len) {
            Some(Held::Theirs(slot, block)) => {
                let into = self.segment.at(self.layout.granule(to, block.first()));
                return Some((into, block, Whose::readers(slot)));
            }
            Some(Held::Ours(block)) => {
                self.pool.comes_back(block);
                block
            }
            None => self.own_block(plan, len)?,
        };
        let into = self.segment.at(self.layout.granule(self.me, block.first()));
        let link = &mut self.links[to];
        if answers
            && let Some(slot) = link.lending.slot()
            && self.pool.lend(block)
        {
            link.lending.lend(slot, block);
            return Some((into, block, Whose::lent(slot)));
        }
        link.hang(block);
        Some((into, block, Whose::SENDERS))
    }

    /// The block that was read last, if it is to be written. If those that are held are too short, one of them goes back.
    fn take_held(&mut self, to: Rank, plan: Plan, len: usize) -> Option<Held> {
        if plan.way == StoreWay::Streaming {
            return None; // which leaves nothing in the caches that speaks for it
        }
        let held = self.links[to].lending.take(len);
        if held.is_none()
            && let Some(oldest) = self.links[to].lending.drop_oldest()
        {
            self.give_back(to, oldest);
        }
        held
    }

    /// In whose arena a frame from `from` lies that says more of its block than that it is the sender's.
    #[inline(never)]
    pub(super) fn owner(&mut self, from: Rank, block: Block, whose: Whose) -> Option<Rank> {
        if !whose.is_readers() {
            return Some(from);
        }
        if self.links[from].lending.lent(whose.slot()) != Some(block) {
            return self.malformed(from, "in a block that was not lent");
        }
        Some(self.me)
    }

    /// Gives up the oldest frame, which lies in a block.
    #[inline(never)] // the path of short frames keeps its registers
    pub(super) fn pop_block(&mut self, from: Rank, seen: &Seen) {
        if let Some(frame) = self.in_block(from, seen) {
            self.pop_frame(frame, seen);
        }
    }

    /// As [`Shm::pop_block`].
    #[inline(always)]
    pub(super) fn pop_frame(&mut self, frame: BlockFrame, seen: &Seen) {
        let link = &mut self.links[frame.from];
        link.lending.read();
        if frame.whose != Whose::SENDERS {
            return self.pop_lent(frame, seen);
        }
        if !link.retained.is_empty() {
            link.retained.pass(frame.data.len);
        }
        link.pop(seen, true);
    }

    #[inline(never)] // streams go without
    fn pop_lent(&mut self, frame: BlockFrame, seen: &Seen) {
        let link = &mut self.links[frame.from];
        let stays = link.retains_oldest();
        if frame.whose.is_readers() {
            link.lending.comes_back(frame.whose.slot());
        }
        link.pop(seen, false);
        if !stays && let Some(held) = frame.held() {
            self.hold(frame.from, held);
        }
    }

    /// A block may be written for the next frame to `to`.
    fn hold(&mut self, to: Rank, held: Held) {
        if let Some(oldest) = self.links[to].lending.hold(held) {
            self.give_back(to, oldest);
        }
    }

    fn give_back(&mut self, to: Rank, held: Held) {
        match held {
            Held::Ours(block) => {
                self.pool.comes_back(block);
                self.pool.give(block);
            }
            Held::Theirs(slot, _) => self.links[to].lending.give_back(slot),
        }
    }

    /// Gives up a frame that is retained.
    pub(super) fn release_retained(&mut self, from: Rank, data: Span) {
        if let Some(held) = self.links[from].release(data) {
            self.hold(from, held);
        }
        if self.links[from].retained.is_empty() {
            self.retaining.retain(|rank| *rank != from);
        }
    }

    /// A rank that may soon find no room because of its payloads that are retained.
    #[inline(never)]
    pub(super) fn find_pressed(&self) -> Option<Rank> {
        self.retaining.iter().copied().find(|rank| self.links[*rank].is_pressed(self.retained_most))
    }

    /// Takes back the blocks that were lent and are not used there any more.
    pub(super) fn given_back(&mut self, to: Rank) {
        while let Some(given) = self.links[to].lending.given_back() {
            let Ok(block) = given else {
                let why = format!("rank {to} gives a block back that was not lent to it");
                self.fault = Some(Fault::Device(why));
                return;
            };
            self.pool.comes_back(block);
            self.pool.give(block);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Options;
    use super::super::tests::{options, pair};
    use super::*;
    use crate::lending::SLOTS;
    use crate::link::word32;
    use crate::stores::Stores;
    use crate::sync::Ordering;
    use fabric::Device;
    use std::collections::{BTreeSet, VecDeque};

    fn send(from: &mut Shm, bytes: &[u8]) {
        let to = 1 - from.me;
        assert!(from.try_send(to, [1, 2], Span { addr: bytes.as_ptr() as usize, len: bytes.len() }));
    }

    /// The oldest frame of the other, and where it lay in the segment.
    fn receive(at: &mut Shm) -> (Vec<u8>, usize) {
        let from = 1 - at.me;
        let frame = at.peek(from).expect("it was sent");
        let mut bytes = vec![0; frame.data.len];
        at.peek_bytes(frame.data, &mut bytes);
        let place = frame.data.addr - at.segment.at(0);
        at.pop(from);
        (bytes, place)
    }

    /// Each sends so many frames and then reads those of the other; the result is where all of a round lay.
    fn exchange(ranks: &mut (Shm, Shm), frames: usize, len: usize, round: u8) -> BTreeSet<usize> {
        let bytes = |me: usize, frame: usize| vec![round ^ (me * 100 + frame) as u8; len];
        for frame in 0..frames {
            send(&mut ranks.0, &bytes(0, frame));
            send(&mut ranks.1, &bytes(1, frame));
        }
        let mut places = BTreeSet::new();
        for frame in 0..frames {
            for (at, from) in [(&mut ranks.0, 1), (&mut ranks.1, 0)] {
                let (got, place) = receive(at);
                assert_eq!(got, bytes(from, frame));
                places.insert(place);
            }
        }
        places
    }

    /// As long as it goes on each frame is written where one was read just before.
    #[test]
    fn an_exchange_stays_in_the_blocks_that_were_read_last() {
        for (frames, len) in [(1, 100), (1, 3000), (1, 65_536), (2, 9000), (SLOTS, 65_536)] {
            let stores = Some(StoreWay::Ordinary);
            let mut both = Shm::local_job(2, &Options { stores, ..options() }).unwrap();
            let second = both.pop().unwrap();
            let mut ranks = (both.pop().unwrap(), second);
            (0..4).for_each(|round| _ = exchange(&mut ranks, frames, len, round));
            let first = exchange(&mut ranks, frames, len, 7);
            assert_eq!(first.len(), 2 * frames);
            (0..20).for_each(|round| assert_eq!(exchange(&mut ranks, frames, len, round), first));
            ranks.0.reclaim(1);
            ranks.1.reclaim(0);
            assert_eq!([ranks.0.pool.in_flight(), ranks.1.pool.in_flight()], [0, 0], "{frames} {len}");
        }
    }

    /// What readers measure is heard of, though frames in such blocks bring no credit at once.
    #[test]
    fn what_it_takes_to_read_is_heard_of_in_an_exchange() {
        let (mut a, mut b) = pair();
        a.links[1].stores = Stores::new(&[StoreWay::Ordinary, StoreWay::Streaming]);
        let (payload, mut room) = ([7u8; 3000], [0u8; 3000]);
        let (mut heard, mut of_both) = (0, false);
        for _ in 0..200 {
            send(&mut a, &payload);
            send(&mut b, &payload);
            let span = Span { addr: room.as_mut_ptr() as usize, len: room.len() };
            assert_eq!([b.take(0, [1, 2], span), a.take(1, [1, 2], span)], [Ok(3000), Ok(3000)]);
            // A way that is far slower takes part in few comparisons, but in the first.
            let known = a.links[1].stores.known(payload.len());
            (heard, of_both) = (heard + u32::from(known > 0), of_both || known == 2);
        }
        assert!(heard > 100 && of_both, "{heard} {of_both}");
    }

    /// What is held and too short goes back, and longer blocks take its place.
    #[test]
    fn blocks_that_are_too_short_make_room_for_longer_ones() {
        let mut ranks = pair();
        for len in [100, 5000, 20_000, 100, 65_536, 262_144] {
            (0..40).for_each(|round| _ = exchange(&mut ranks, 2, len, round));
            let lent: Vec<Block> =
                (0..SLOTS as u8).filter_map(|slot| ranks.0.links[1].lending.lent(slot)).collect();
            assert!(lent.iter().any(|block| block.bytes() >= len), "{len}: {lent:?}");
        }
    }

    /// Nothing is owed for a stream; and one that follows an exchange uses up what is held.
    #[test]
    fn a_stream_lends_nothing() {
        let mut ranks = pair();
        for is_first in [true, false, false] {
            for round in 0..100 {
                send(&mut ranks.0, &[round; 3000]);
                assert_eq!(receive(&mut ranks.1).0, [round; 3000]);
            }
            let lends = [&ranks.0.links[1].lending, &ranks.1.links[0].lending];
            assert!(lends[0].is_idle() && (!is_first || lends.iter().all(|lending| !lending.has_lent())));
            (0..10).for_each(|round| _ = exchange(&mut ranks, 1, 3000, round));
            let lends = [&ranks.0.links[1].lending, &ranks.1.links[0].lending];
            assert!(lends.iter().any(|lending| lending.has_lent()));
        }
    }

    /// Frames both ways of any length, read as they come, some of them retained: all arrive whole, and in the end
    /// whatever is not free is lent.
    #[test]
    fn blocks_go_to_and_fro_whatever_is_sent() {
        let mut lent = 0;
        for seed in 0..30u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut below = |n: usize| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as usize % n
            };
            let mut ranks = pair();
            let mut under_way = [VecDeque::new(), VecDeque::new()];
            let mut retained: [Vec<(Span, u8)>; 2] = Default::default();
            for number in 0..1500u32 {
                let me = below(2);
                let at = if me == 0 { &mut ranks.0 } else { &mut ranks.1 };
                if below(2) == 0 && under_way[me].len() < 8 {
                    let len = [8, 41, 1500, 3000, 9000, 60_000][below(6)];
                    send(at, &vec![number as u8; len]);
                    under_way[me].push_back((number as u8, len));
                } else if let Some((byte, len)) = under_way[1 - me].pop_front() {
                    let frame = at.peek(1 - me).expect("it was sent");
                    if below(3) == 0 && at.retain(1 - me) {
                        retained[me].push((frame.data, byte));
                        at.pop(1 - me);
                    } else {
                        assert_eq!(receive(at).0, vec![byte; len], "seed {seed}");
                    }
                }
                while !retained[me].is_empty() && (below(4) == 0 || at.pressed().is_some()) {
                    let (data, byte) = retained[me].swap_remove(below(retained[me].len()));
                    let mut bytes = vec![0; data.len];
                    at.peek_bytes(data, &mut bytes);
                    assert!(bytes.iter().all(|found| *found == byte), "seed {seed}");
                    at.release(1 - me, data);
                }
                lent += u32::from(at.links[1 - me].lending.has_lent());
            }
            for (me, at) in [(0, &mut ranks.0), (1, &mut ranks.1)] {
                retained[me].drain(..).for_each(|(data, _)| at.release(1 - me, data));
                under_way[1 - me].drain(..).for_each(|_| _ = receive(at));
            }
            ranks.0.reclaim(1);
            ranks.1.reclaim(0);
            assert_eq!([ranks.0.pool.in_flight(), ranks.1.pool.in_flight()], [0, 0], "seed {seed}");
        }
        assert!(lent > 10_000, "{lent}");
    }

    /// A frame in a block that the peer does not have, and one that it gives back: faults that name it.
    #[test]
    fn what_was_not_lent_does_not_come_back() {
        let (mut a, _b) = pair();
        send(&mut a, &[1; 3000]);
        // SAFETY: the word in which rank 1 gives blocks back.
        let back = unsafe { word32(a.segment.at(a.layout.given_back(0, 1))) };
        back.store(4, Ordering::Release);
        a.given_back(1);
        let fault = a.check().unwrap_err();
        assert!(matches!(&fault, Fault::Device(text) if text.contains("rank 1 gives a block back")));
        assert_eq!(a.owner(1, Block::named(64).unwrap(), Whose::readers(2)), None);
        let fault = a.check().unwrap_err();
        assert!(
            matches!(&fault, Fault::Device(text) if text.contains("from rank 1") && text.contains("lent"))
        );
    }
}
