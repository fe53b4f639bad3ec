//! Threads that sleep in `poll`, and who wakes them: how many there are stands beside the word on which they announce it.
//!
//! ```text
//! sleeper                                waker
//!   one more polls                         take the announcement off the word
//!   fence                                  fence
//!   the word as it was seen?               does anybody poll?
//!     │ yes                                  │ yes
//!   poll                                   ring
//! ```
//!
//! Either the sleeper sees another word, or its waker sees that somebody polls. One ring wakes all that sleep, so the last of
//! them to leave takes it off: if the first did, those that the kernel has not run yet would find nothing there and sleep on.

use crate::sync::{AtomicU32, Mutex, Ordering, fence, yield_now};
use std::sync::PoisonError;

/// How many threads are in `poll`, or about to be: without any nobody rings.
#[repr(transparent)]
pub struct Polling(AtomicU32);

impl Polling {
    /// Whether whom the caller has just taken off the word may poll.
    pub fn is_any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Polls, if the word is as it was `seen`. `poll` says whether it has ended by a ring, and `take_off` takes that off. The
    /// threads of a process have one `turn`.
    pub fn sleep(
        &self,
        turn: &Mutex<()>,
        (word, seen): (&AtomicU32, u32),
        poll: impl FnOnce() -> bool,
        take_off: impl FnOnce(),
    ) {
        let turn = || turn.lock().unwrap_or_else(PoisonError::into_inner);
        {
            // Not while a ring is taken off: it might be one that this thread is to hear.
            let _turn = turn();
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        // Who changes the word from here on sees that somebody polls.
        fence(Ordering::SeqCst);
        let is_rung = word.load(Ordering::Relaxed) == seen && poll();
        let turn = turn();
        let is_last = self.0.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_rung && is_last {
            take_off();
        } else if is_rung {
            drop(turn);
            yield_now();
        }
    }
}

impl Default for Polling {
    fn default() -> Polling {
        Polling(AtomicU32::new(0))
    }
}

/// Sleepers and their waker, on loom's model of memory. As in the model of [`nap`](crate::nap) the barrier of all cores is a fence on both
/// sides. The socket is a flag under a lock: who polls sleeps until it is up.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::nap::{self, WAITER};
    use loom::sync::atomic::AtomicBool;
    use loom::sync::{Arc, Condvar};
    use loom::thread;

    #[derive(Default)]
    struct Model {
        word: AtomicU32,
        polling: Polling,
        messages: [AtomicBool; 2],
        /// The lock of the rank, whose threads look around one at a time.
        rank: Mutex<()>,
        turn: Mutex<()>,
        is_rung: Mutex<bool>,
        rung: Condvar,
    }

    impl Model {
        /// As `ppoll`, without a limit.
        fn poll(&self) -> bool {
            let mut is_rung = self.is_rung.lock().unwrap();
            while !*is_rung {
                is_rung = self.rung.wait(is_rung).unwrap();
            }
            true
        }

        /// As `Link::rouse` with `Berth::wake`.
        fn publish(&self, message: usize) {
            self.messages[message].store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.word.load(Ordering::Relaxed) & nap::ALL != 0
                && nap::wake(&self.word, nap::ALL)
                && self.polling.is_any()
            {
                *self.is_rung.lock().unwrap() = true;
                self.rung.notify_all();
            }
        }

        /// As `idle`, in the order of its rounds, with the sleep of `Berth::sleep`.
        fn wait_for(&self, message: usize) {
            loop {
                let rank = self.rank.lock().unwrap();
                if self.messages[message].load(Ordering::Acquire) {
                    return;
                }
                let news = nap::announce(&self.word, WAITER);
                if news {
                    fence(Ordering::SeqCst);
                }
                let seen = self.word.load(Ordering::Relaxed);
                drop(rank);
                if !news && seen & WAITER != 0 {
                    let take_off = || *self.is_rung.lock().unwrap() = false;
                    self.polling.sleep(&self.turn, (&self.word, seen), || self.poll(), take_off);
                }
            }
        }
    }

    /// Whoever sleeps is woken: loom reports a sleep without a waker as a deadlock.
    #[test]
    fn no_poll_misses_its_message() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let sender = {
                let model = model.clone();
                thread::spawn(move || model.publish(0))
            };
            model.wait_for(0);
            sender.join().unwrap();
        });
    }

    /// Two threads of a rank sleep, each for a message of its own: who takes the ring of one off leaves that of the other.
    #[test]
    fn of_two_that_poll_each_is_woken() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let other = {
                let model = model.clone();
                thread::spawn(move || model.wait_for(1))
            };
            let sender = {
                let model = model.clone();
                thread::spawn(move || {
                    model.publish(0);
                    model.publish(1);
                })
            };
            model.wait_for(0);
            other.join().unwrap();
            sender.join().unwrap();
        });
    }
}
