//! Room in the rings to the peers: they are opened with the first frame, and what hangs on their positions
//! comes back when the readers have left those.

use super::Shm;
use crate::link;
use crate::pool::Block;
use crate::ring::CELLS;
use fabric::{Fault, Rank};

impl Shm {
    /// Whether a frame to `to` can be pushed now. If so, nothing hangs on the position it gets.
    pub(super) fn make_room(&mut self, to: Rank) -> bool {
        if !self.links[to].open && !self.open(to) {
            return false;
        }
        if !self.links[to].tx.has_room() {
            self.refresh(to);
            return false;
        }
        if self.links[to].hanging() != Block::NONE {
            // The reader has left that position: there would be no room otherwise.
            self.reclaim(to);
        }
        true
    }

    /// The first frame to a peer: backs the ring with memory and announces it.
    #[cold]
    #[inline(never)]
    fn open(&mut self, to: Rank) -> bool {
        let ring = self.layout.ring(self.me, to);
        if let Err(why) = self.segment.back(ring, CELLS * 64) {
            self.fault = Some(Fault::Device(why));
            return false;
        }
        self.links[to].open = true;
        link::openings(&self.segment, &self.layout, to).add(self.me);
        true
    }

    /// Looks for credits that `to` has returned; false if what stands there cannot be one.
    fn refresh(&mut self, to: Rank) -> bool {
        let is_sound = self.links[to].tx.refresh();
        if !is_sound {
            let why = format!("malformed credit from rank {to}: for frames that were not sent to it");
            self.fault = Some(Fault::Device(why));
        }
        is_sound
    }

    /// Takes back the blocks of frames the reader has left.
    pub(super) fn reclaim(&mut self, to: Rank) {
        if !self.refresh(to) {
            return;
        }
        let link = &mut self.links[to];
        let head = link.tx.head();
        if link.awaits_cost {
            link.hear_cost();
        }
        // Positions a whole round ago share their entry with ones in flight; whatever hung on
        // them was taken back before the entry was used again.
        let oldest = link.tx.tail().wrapping_sub(CELLS as u32);
        if oldest.wrapping_sub(link.reclaimed) as i32 > 0 {
            link.reclaimed = oldest;
        }
        while link.reclaimed != head {
            let block = &mut link.block_of[link.reclaimed as usize % CELLS];
            if *block != Block::NONE {
                self.pool.give(*block);
                *block = Block::NONE;
            }
            link.reclaimed = link.reclaimed.wrapping_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Options;
    use super::super::tests::{options, pair, receive, send};
    use super::*;
    use crate::link::word32;
    use crate::sync::Ordering;
    use fabric::{Device, Span};
    use std::collections::VecDeque;

    /// A generator of test choices (a linear congruence).
    struct Choices(u64);

    impl Choices {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Frames to one and to several, short and long, to readers that are slower than their sender, in any
    /// order: they arrive whole, and when all are read every block is free.
    #[test]
    fn blocks_come_back_whatever_is_sent_to_whom() {
        for seed in 0..40 {
            let mut choices = Choices(seed);
            let mut ranks = Shm::local_job(4, &Options { cores: 4, ..options() }).unwrap();
            let mut expected = vec![VecDeque::new(); 4];
            let mut shared = 0;
            for number in 0..3000 {
                let len = [8, 40, 100, 3000, 9000, 60_000][choices.below(6)];
                let bytes = vec![number as u8; len];
                let data = Span { addr: bytes.as_ptr() as usize, len };
                let first = 1 + choices.below(3);
                let to = [[1, 2, 3], [2, 3, 1], [3, 1, 2]][first - 1];
                let sent = match choices.below(3) {
                    0 => usize::from(ranks[0].try_send(first, [1, 2], data)),
                    _ => ranks[0].try_send_all(&to[..2 + choices.below(2)], [1, 2], data),
                };
                shared += usize::from(sent > 1);
                to[..sent].iter().for_each(|reader| expected[*reader].push_back(bytes.clone()));
                let reader = 1 + choices.below(3);
                for _ in 0..choices.below(4) {
                    assert_eq!(receive(&mut ranks[reader]), expected[reader].pop_front(), "seed {seed}");
                }
            }
            assert!(shared > 100, "seed {seed}: {shared} frames to several");
            for reader in 1..4 {
                while let Some(bytes) = expected[reader].pop_front() {
                    assert_eq!(receive(&mut ranks[reader]), Some(bytes), "seed {seed}");
                }
                ranks[0].reclaim(reader);
            }
            assert_eq!(ranks[0].pool.in_flight(), 0, "seed {seed}");
        }
    }

    /// A full ring whose reader leaves positions just when room is looked for: the block of the position
    /// that is used next is taken back first.
    #[test]
    fn a_credit_that_comes_late_loses_no_block() {
        let mut ranks = Shm::local_job(3, &Options { cores: 3, ..options() }).unwrap();
        let bytes = vec![7u8; 3000];
        let data = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
        for _ in 0..CELLS {
            assert_eq!(ranks[0].try_send_all(&[1, 2], [1, 2], data), 2);
        }
        assert!(!ranks[0].make_room(1) && !ranks[0].make_room(2));
        assert!(receive(&mut ranks[1]).is_some() && receive(&mut ranks[2]).is_some());
        for reader in [1, 2] {
            assert!(ranks[0].make_room(reader));
            assert_eq!(ranks[0].links[reader].hanging(), Block::NONE);
        }
        assert_eq!(ranks[0].pool.in_flight(), CELLS - 1);
    }

    /// A credit for frames that were never sent, or that goes back, is a fault that names its rank.
    #[test]
    fn a_credit_that_is_none_is_a_fault() {
        for (read, wrong) in [(0, 1000), (0, u32::MAX), (20, 3)] {
            let (mut a, mut b) = pair();
            for _ in 0..40 {
                assert!(send(&mut a, &[1; 100]));
            }
            (0..read).for_each(|_| assert!(receive(&mut b).is_some()));
            a.reclaim(1);
            // SAFETY: the word of the credits that rank 1 returns.
            let credit = unsafe { word32(a.segment.at(a.layout.credit(0, 1))) };
            credit.store(wrong, Ordering::Release);
            let sent = (0..1000).take_while(|_| send(&mut a, &[1; 3000])).count();
            assert!(sent <= CELLS, "{sent}");
            let fault = a.check().unwrap_err();
            assert!(
                matches!(&fault, Fault::Device(text) if text.contains("credit from rank 1")),
                "{fault:?}"
            );
        }
    }
}
