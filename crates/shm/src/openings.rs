//! Who has begun to send to a rank: a list that senders grow and their receiver reads.
//!
//! A ring is backed with memory when its first frame is sent. Before that its receiver must not even
//! look at it: that takes memory, and where there is none left it is fatal. So a sender says first that its
//! ring is there, where the receiver looks before it sleeps and after it was woken, and only then sends
//! its frame and wakes it.
//!
//! ```text
//! last ──▶ rank 3 ──▶ rank 0 ──▶ rank 7 ──▶ end          the newest first
//!            next[3]    next[0]    next[7]
//! ```
//!
//! A sender puts itself in front by one compare-and-swap, so there is no moment at which one that was
//! interrupted hides another. Nobody is ever taken out: the receiver remembers the one it saw in front
//! and, when there is another, reads on until it comes to that. A look that finds nothing is one load
//! of a line that no message writes.

use crate::sync::{AtomicU32, Ordering};

/// What `next` of the oldest says.
const END: u32 = u32::MAX;

/// The list of one receiver, in zeroed memory: 0 stands for nobody, ranks count from 1.
#[derive(Clone, Copy)]
pub struct Openings<'a> {
    last: &'a AtomicU32,
    next: &'a [AtomicU32],
}

impl<'a> Openings<'a> {
    /// The list that begins with `last`; `next` has a word per rank.
    pub fn new(last: &'a AtomicU32, next: &'a [AtomicU32]) -> Self {
        Openings { last, next }
    }

    /// Says that the ring from `rank` is there. Once per rank.
    pub fn add(&self, rank: usize) {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            self.next[rank].store(if last == 0 { END } else { last }, Ordering::Release);
            let this = rank as u32 + 1;
            match self.last.compare_exchange_weak(last, this, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => last = now,
            }
        }
    }

    /// Whether the ring from `rank` is there.
    #[inline]
    pub fn has(&self, rank: usize) -> bool {
        self.next[rank].load(Ordering::Acquire) != 0
    }

    /// Whether there is anybody new since `seen`.
    #[inline(always)]
    pub fn has_new(&self, seen: Mark) -> bool {
        self.last.load(Ordering::Relaxed) != seen.0
    }

    /// Adds to `ranks`, which holds all that were seen before, who is new since then, the oldest first;
    /// `None` if the list is none.
    pub fn read(&self, seen: Mark, ranks: &mut Vec<usize>) -> Option<Mark> {
        let last = self.last.load(Ordering::Acquire);
        let before = ranks.len();
        let mut at = last;
        while at != seen.0 && at != END {
            let rank = at.wrapping_sub(1) as usize;
            if rank >= self.next.len() || ranks.len() == self.next.len() {
                return None;
            }
            ranks.push(rank);
            at = self.next[rank].load(Ordering::Acquire);
        }
        ranks[before..].reverse();
        Some(Mark(last))
    }
}

/// Up to where a receiver has read a list.
#[derive(Clone, Copy, Default)]
pub struct Mark(u32);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn list(words: &[AtomicU32]) -> Openings<'_> {
        Openings::new(&words[0], &words[1..])
    }

    #[test]
    fn each_rank_is_named_once_in_the_order_of_coming() {
        let words: Vec<AtomicU32> = (0..9).map(|_| AtomicU32::new(0)).collect();
        let list = list(&words);
        let (mut seen, mut ranks) = (Mark::default(), Vec::new());
        assert!(!list.has_new(seen));
        for come in [vec![3], vec![], vec![0, 7, 1], vec![2]] {
            come.iter().for_each(|rank| list.add(*rank));
            assert_eq!(list.has_new(seen), !come.is_empty());
            seen = list.read(seen, &mut ranks).unwrap();
        }
        assert_eq!(ranks, [3, 0, 7, 1, 2]);
        assert!(ranks.iter().all(|rank| list.has(*rank)) && !list.has(4));
    }

    /// Whatever the words say, reading ends and names nobody who is not there.
    #[test]
    fn a_list_that_is_none_is_refused() {
        for wrong in [[9, 0, 0], [3, 0, 0], [1, 1, 0], [1, 2, 1], [1, 7, 0]] {
            let words = wrong.map(AtomicU32::new);
            assert!(list(&words).read(Mark::default(), &mut Vec::new()).is_none(), "{wrong:?}");
        }
    }
}

/// Two senders open their rings to one receiver, which sleeps when it has seen neither of their frames.
/// Loom has no membarrier and no futex: see [`crate::nap`].
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::atomic::{AtomicBool, fence};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    struct Model {
        last: AtomicU32,
        next: [AtomicU32; 2],
        /// Whether the ring of each is backed, and whether a frame lies in it.
        backed: [AtomicBool; 2],
        frame: [AtomicBool; 2],
        sleep: AtomicU32,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Model {
        fn list(&self) -> Openings<'_> {
            Openings::new(&self.last, &self.next)
        }

        fn send(&self, rank: usize) {
            self.backed[rank].store(true, Ordering::Relaxed);
            self.list().add(rank);
            self.frame[rank].store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.sleep.load(Ordering::Relaxed) != 0 && self.sleep.swap(0, Ordering::AcqRel) == 1 {
                drop(self.queue.lock().unwrap());
                self.woken.notify_all();
            }
        }

        fn sleep(&self) {
            let guard = self.queue.lock().unwrap();
            if self.sleep.load(Ordering::SeqCst) == 1 {
                drop(self.woken.wait(guard).unwrap());
            }
        }
    }

    /// Loom reports a sleep without a waker as a deadlock.
    #[test]
    fn no_sleep_misses_who_sends_for_the_first_time() {
        loom::model(|| {
            let model = Arc::new(Model {
                last: AtomicU32::new(0),
                next: [AtomicU32::new(0), AtomicU32::new(0)],
                backed: [AtomicBool::new(false), AtomicBool::new(false)],
                frame: [AtomicBool::new(false), AtomicBool::new(false)],
                sleep: AtomicU32::new(0),
                queue: Mutex::new(()),
                woken: Condvar::new(),
            });
            let senders = [0, 1].map(|rank| {
                let model = model.clone();
                thread::spawn(move || model.send(rank))
            });
            let (mut seen, mut ranks, mut armed) = (Mark::default(), Vec::new(), false);
            let mut missing = 2;
            while missing > 0 {
                if model.list().has_new(seen) {
                    seen = model.list().read(seen, &mut ranks).unwrap();
                }
                let mut moved = false;
                ranks.retain(|rank| {
                    assert!(model.backed[*rank].load(Ordering::Relaxed));
                    let came = model.frame[*rank].load(Ordering::Acquire);
                    moved |= came;
                    missing -= usize::from(came);
                    !came
                });
                if moved {
                    armed = false;
                } else if !armed || model.sleep.load(Ordering::Relaxed) == 0 {
                    armed = true;
                    model.sleep.store(1, Ordering::SeqCst);
                    fence(Ordering::SeqCst);
                } else {
                    model.sleep();
                }
            }
            senders.into_iter().for_each(|sender| sender.join().unwrap());
        });
    }
}
