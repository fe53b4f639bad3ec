//! Room in the rings to the peers: they are opened with the first frame, and what hangs on their positions
//! comes back when the readers have left those.

use super::Shm;
use crate::layout::{RING_BYTES, TURN_CELL};
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
            // The reader has left that position: there would be no room otherwise. If its block does not come back, what stands there is no
            // credit any more.
            self.reclaim(to);
            return self.links[to].hanging() == Block::NONE;
        }
        true
    }

    /// The first frame to a peer: backs the ring and the cell that both write in turn with memory, and announces it.
    #[cold]
    #[inline(never)]
    fn open(&mut self, to: Rank) -> bool {
        let turn = (to != self.me).then(|| (self.layout.turn(self.me, to), TURN_CELL));
        let parts = [Some((self.layout.ring(self.me, to), RING_BYTES)), turn];
        if let Err(why) = parts.into_iter().flatten().try_for_each(|(at, len)| self.segment.back(at, len)) {
            self.fault = Some(Fault::Device(why));
            return false;
        }
        self.links[to].open = true;
        link::openings(&self.segment, &self.layout, to).add(self.me);
        true
    }

    #[cold]
    #[inline(never)]
    pub(super) fn read_openings(&mut self) {
        match self.openings.read(self.read, &mut self.sources) {
            Some(read) => self.read = read,
            None => {
                let why = "the list of ranks that send here is damaged".to_string();
                self.fault = Some(Fault::Device(why));
            }
        }
    }

    /// Whether a rank has begun to send here. Before that its ring is not backed: even to look at
    /// it takes memory, and where there is none left that is fatal.
    #[inline(never)]
    pub(super) fn hear(&mut self, from: Rank) -> bool {
        let heard = self.openings.has(from);
        self.links[from].heard = heard;
        heard
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
        if self.links[to].lending.has_lent() {
            self.given_back(to);
        }
        let link = &mut self.links[to];
        let head = link.tx.head();
        link.hear_cost();
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
    use crate::sync::{AtomicUsize, Ordering};
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

    /// A payload that is retained is what it was when its frame was read, whatever comes behind it; its sender always finds
    /// room once who presses is released; and in the end every block is free.
    #[test]
    fn payloads_stay_while_they_are_retained() {
        let (mut stayed, mut pressed) = (0, 0);
        for seed in 0..20 {
            let mut choices = Choices(seed);
            let stores = Some(crate::stores::StoreWay::Ordinary);
            let mut ranks = Shm::local_job(3, &Options { cores: 3, stores, ..options() }).unwrap();
            let mut retained: Vec<(usize, u8, Span)> = Vec::new();
            for number in 0..600u32 {
                let len = [8, 5000, 16 << 10, 60_000, 256 << 10][choices.below(5)];
                let reader = 1 + choices.below(2);
                let bytes = vec![number as u8; len];
                let data = Span { addr: bytes.as_ptr() as usize, len };
                assert!(ranks[0].try_send(reader, [1, 2], data), "seed {seed}: frame {number}");
                let rank = &mut ranks[reader];
                let frame = rank.peek(0).expect("it was sent");
                if choices.below(2) == 0 && rank.retain(0) {
                    retained.push((reader, number as u8, frame.data));
                    rank.pop(0);
                    stayed += 1;
                } else {
                    assert_eq!(receive(rank), Some(bytes));
                }
                let presses = rank.pressed().is_some();
                pressed += usize::from(presses);
                let some = choices.below(12) == 0;
                let (gone, stay) =
                    retained.into_iter().partition(|(at, ..)| *at == reader && (presses || some));
                retained = stay;
                release(&mut ranks, gone);
                assert!(ranks[reader].pressed().is_none());
            }
            release(&mut ranks, retained);
            (1..3).for_each(|reader| ranks[0].reclaim(reader));
            assert_eq!(ranks[0].pool.in_flight(), 0, "seed {seed}");
        }
        assert!(stayed > 1000 && pressed > 100, "{stayed} retained, pressed {pressed} times");
    }

    fn release(ranks: &mut [Shm], payloads: Vec<(usize, u8, Span)>) {
        for (reader, number, data) in payloads {
            let mut bytes = vec![0; data.len];
            ranks[reader].peek_bytes(data, &mut bytes);
            assert!(bytes.iter().all(|byte| *byte == number));
            ranks[reader].release(0, data);
        }
    }

    /// What a rank has sent to each and received from each, by the numbers of the frames.
    type Log = [Vec<u32>; RANKS];
    const RANKS: usize = 3;

    /// A frame whose number stands in its first bytes and decides all others.
    fn frame(number: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![number as u8 ^ len as u8; len];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    /// Takes out the oldest frame of each, if it has come, and looks at all of it.
    fn read(rank: &mut Shm, me: usize, received: &mut Log) {
        for from in (0..RANKS).filter(|from| *from != me) {
            let Some(seen) = rank.peek(from) else { continue };
            let mut bytes = vec![0; seen.data.len];
            rank.peek_bytes(seen.data, &mut bytes);
            rank.pop(from);
            let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            assert_eq!(bytes, frame(number, bytes.len()), "frame {number} from {from} to {me}");
            received[from].push(number);
        }
    }

    /// Tells the others that a rank has failed, which would wait for it.
    struct Alarm<'a>(&'a AtomicUsize);

    impl Drop for Alarm<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.fetch_add(RANKS, Ordering::Relaxed);
            }
        }
    }

    /// Sends `frames` frames to one or to all others, and reads meanwhile and until all have come.
    fn send_and_read(rank: &mut Shm, me: usize, frames: u32, seed: u64, sending: &AtomicUsize) -> [Log; 2] {
        let alarm = Alarm(sending);
        let go_on = || assert!(alarm.0.load(Ordering::Relaxed) <= RANKS, "another rank has failed");
        let mut choices = Choices(seed + me as u64);
        let [mut sent, mut received]: [Log; 2] = Default::default();
        let others: Vec<usize> = (1..RANKS).map(|i| (me + i) % RANKS).collect();
        for number in 0..frames {
            let bytes = frame(number, [8, 40, 48, 3000, 5000][choices.below(5)]);
            let data = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
            let mut to = match choices.below(4) {
                0 => &others[..1],
                _ => &others[..],
            };
            while !to.is_empty() {
                go_on();
                // As a broadcast does it: at once as far as that goes, and the rest one by one.
                let mut left = rank.try_send_all(to, [1, 2], data);
                if left == 0 {
                    left = usize::from(rank.try_send(to[0], [1, 2], data));
                }
                to[..left].iter().for_each(|reader| sent[*reader].push(number));
                to = &to[left..];
                if left == 0 || choices.below(3) == 0 {
                    read(rank, me, &mut received);
                    std::thread::yield_now();
                }
            }
        }
        sending.fetch_sub(1, Ordering::Release);
        let mut last_looks = 0;
        while last_looks < 2 * CELLS {
            go_on();
            read(rank, me, &mut received);
            // What was sent before the last of them said so is there, a frame from each per look.
            last_looks += usize::from(sending.load(Ordering::Acquire) == 0);
            std::thread::yield_now();
        }
        [sent, received]
    }

    /// Each rank sends to all others at once while these read and send too, each in a thread of its own:
    /// every frame arrives, whole and in order, and in the end every block is free. Miri looks for accesses
    /// that nothing orders.
    #[test]
    fn all_send_to_all_at_once() {
        let (rounds, frames) = if cfg!(miri) { (2, 40) } else { (4, 500) };
        for seed in 0..rounds {
            let ranks = Shm::local_job(RANKS, &Options { cores: RANKS, ..options() }).unwrap();
            let sending = AtomicUsize::new(RANKS);
            let mut ended: Vec<(Shm, [Log; 2])> = std::thread::scope(|scope| {
                let start = |(me, mut rank): (usize, Shm)| {
                    let sending = &sending;
                    scope.spawn(move || {
                        let logs = send_and_read(&mut rank, me, frames, seed, sending);
                        (rank, logs)
                    })
                };
                let threads: Vec<_> = ranks.into_iter().enumerate().map(start).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            for from in 0..RANKS {
                for to in 0..RANKS {
                    assert_eq!(ended[from].1[0][to], ended[to].1[1][from], "seed {seed}: {from} to {to}");
                }
                (0..RANKS).for_each(|to| ended[from].0.reclaim(to));
                assert_eq!(ended[from].0.pool.in_flight(), 0, "seed {seed}: rank {from}");
            }
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

    /// What stands there for a credit is none just when the block of a position is to be taken back: the position stays its.
    #[test]
    fn a_position_is_not_used_while_its_block_is_in_flight() {
        let (mut a, mut b) = pair();
        assert!(send(&mut a, &[1; 8]));
        (1..CELLS).for_each(|_| assert!(send(&mut a, &[1; 3000])));
        (0..CELLS).for_each(|_| assert!(receive(&mut b).is_some()));
        // Credits are looked for, but no block is taken back: none hung on the first position.
        assert!(send(&mut a, &[1; 8]));
        // SAFETY: the word of the credits that rank 1 returns.
        let credit = unsafe { word32(a.segment.at(a.layout.credit(0, 1))) };
        let right = credit.swap(1000, Ordering::AcqRel);
        assert!(!send(&mut a, &[1; 3000]) && !send(&mut a, &[1; 8]));
        assert!(a.check().is_err());
        credit.store(right, Ordering::Release);
        assert!(send(&mut a, &[1; 3000]));
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
