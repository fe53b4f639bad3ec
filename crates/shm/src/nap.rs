//! Waiting: spin briefly, then yield, then sleep in the kernel.
//!
//! A sender must not pay a fence to find out whether its receiver sleeps. So the sleeper pays:
//! it raises its flag, then `membarrier` makes every running rank pass a barrier, then it looks
//! once more. A sender that published before the barrier is seen by that look; one that
//! publishes after it sees the flag. Where the kernel lacks membarrier sleeps are kept short.

use crate::sync::{AtomicU32, Ordering};
use std::sync::atomic;
use std::time::{Duration, Instant};

/// Bit of the sleep word: threads that wait inside MPI sleep, or are about to. With
/// MPI_THREAD_MULTIPLE there may be several.
pub const WAITER: u32 = 1;
/// Bit of the sleep word: the thread that makes progress outside MPI sleeps, or is about to.
pub const ENGINE: u32 = 2;
/// Both. The bits above count how often somebody was woken: a thread that was about to sleep then
/// finds another word than it has seen, even if the next one has announced its sleep meanwhile.
pub const ALL: u32 = WAITER | ENGINE;

const MEMBARRIER_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const MEMBARRIER_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

/// When to go over from one way of waiting to the next, in rounds without success.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Cores for each rank.
    share: usize,
    /// Longest single sleep.
    pub longest: Duration,
}

/// What to do in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Spin.
    Spin,
    /// Yield.
    Yield,
    /// Sleep.
    Sleep,
}

impl Patience {
    /// For a rank of `ranks_on_host` that share `cores`.
    pub fn new(ranks_on_host: usize, cores: usize, has_barrier: bool) -> Patience {
        let longest = Duration::from_micros(if has_barrier { 100_000 } else { 200 });
        Patience { share: cores / ranks_on_host.max(1), longest }
    }

    /// With a core for each thread that waits it pays to spin for some 50 µs, the cost of being woken,
    /// and to yield for a while after. With fewer, every spin takes time from the one that is waited
    /// for: they yield at once, and after some turns in vain they sleep. Who yields to a thread that computes comes back
    /// only when that has used up its time, and who sleeps runs soon after it is woken: so where yields are found to be
    /// `long` ones, who waits sleeps at once, but for a moment where its rank has cores.
    #[inline]
    pub fn stage(&self, round: u32, threads: usize, long: &LongYields) -> Stage {
        let (spin, sleep) = if threads <= self.share {
            (2000, 6000)
        } else if !long.are_expected(round) {
            (0, 20)
        } else if self.is_scarce() {
            (0, 0)
        } else {
            (100, 100)
        };
        match round {
            _ if round < spin => Stage::Spin,
            _ if round < sleep => Stage::Yield,
            _ => Stage::Sleep,
        }
    }

    /// Whether there are fewer cores than ranks.
    pub fn is_scarce(&self) -> bool {
        self.share == 0
    }
}

/// Whether to yield takes long here: so many waits, from now on, are to do without. Of a process, for who yields has let go of
/// its rank; loom, whose atomics no static can hold, does not look at it.
pub struct LongYields(atomic::AtomicU32);

/// What this process has found.
pub static LONG_YIELDS: LongYields = LongYields::none();

/// A yield that takes so long was to a thread that computes: threads that wait for messages are back in microseconds, and
/// systems let those that compute go on for some milliseconds.
const LONG: Duration = Duration::from_millis(2);
/// So many waits do without yielding after such a one; then it is tried again.
const WAITS_WITHOUT: u32 = 64;

impl LongYields {
    const fn none() -> LongYields {
        LongYields(atomic::AtomicU32::new(0))
    }

    /// Yields.
    pub fn give_way(&self) {
        let begun = Instant::now();
        std::thread::yield_now();
        self.note(begun.elapsed());
    }

    pub(crate) fn note(&self, took: Duration) {
        if took > LONG {
            self.0.store(WAITS_WITHOUT, Ordering::Relaxed);
        }
    }

    /// Whether a wait that is in this round does without. Threads that count at the same time may count one wait for two.
    fn are_expected(&self, round: u32) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 && round == 0 {
            self.0.store(left - 1, Ordering::Relaxed);
        }
        left > 0
    }
}

/// Registers for [`barrier`] and [`barrier_within`]; false if the kernel lacks one, as miri does.
pub fn register_barrier() -> bool {
    if cfg!(miri) {
        return false;
    }
    [MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED].into_iter().all(|command| {
        // SAFETY: membarrier has no memory operands.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    })
}

/// A full memory barrier on every core that runs a registered process.
pub fn barrier() {
    // SAFETY: membarrier has no memory operands.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) };
}

/// A full memory barrier on every core that runs a thread of this process; no other process is disturbed.
pub fn barrier_within() {
    // SAFETY: membarrier has no memory operands.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0, 0) };
}

/// Announces on the word that `who` is about to sleep; true if that was news: then it must look once
/// more before it does.
pub fn announce(word: &AtomicU32, who: u32) -> bool {
    if word.load(Ordering::Relaxed) & who != 0 {
        return false;
    }
    word.fetch_or(who, Ordering::SeqCst);
    true
}

/// Sleeps while the word is as it was `seen`, until `who` is woken, at most for the given time.
pub fn sleep(word: &AtomicU32, seen: u32, who: u32, longest: Duration) {
    if seen & who == 0 {
        return;
    }
    let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the word lives in the segment, which stays mapped; the kernel only reads it. The
    // time is a local variable.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut until);
        let nanos = until.tv_nsec + longest.subsec_nanos() as libc::c_long;
        until.tv_sec += longest.as_secs() as libc::time_t + nanos / 1_000_000_000;
        until.tv_nsec = nanos % 1_000_000_000;
        futex(word, libc::FUTEX_WAIT_BITSET, seen, &until, who);
    }
}

/// Wakes those of `whom` that sleep on `word`: the bits say who does, so that nobody else is disturbed. Whether
/// there were any.
#[cold]
pub fn wake(word: &AtomicU32, whom: u32) -> bool {
    let called = call(word, whom);
    if let Some(who) = called {
        // SAFETY: the word lives in the segment, which stays mapped.
        unsafe { futex(word, libc::FUTEX_WAKE_BITSET, i32::MAX as u32, std::ptr::null(), who) };
    }
    called.is_some()
}

/// Takes the announcements of those of `whom` that made one off the word, and counts it.
fn call(word: &AtomicU32, whom: u32) -> Option<u32> {
    let called = |old: u32| (old & whom != 0).then(|| (old & !whom).wrapping_add(ALL + 1));
    word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, called).ok().map(|old| old & whom)
}

/// # Safety
/// The word stays mapped during the call; `until` is null or a time.
unsafe fn futex(word: &AtomicU32, what: libc::c_int, value: u32, until: *const libc::timespec, who: u32) {
    let second = std::ptr::null::<u32>();
    // SAFETY: passed on to the caller.
    unsafe { libc::syscall(libc::SYS_futex, word as *const AtomicU32, what, value, until, second, who) };
}

/// The protocol of sleepers and their waker, on loom's model of memory. Loom has no membarrier
/// and no futex: the barrier is a fence on both sides, which is what it makes of the waker's plain
/// accesses; the futex is a lock, under which the kernel compares the word.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::atomic::{AtomicBool, fence};
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    struct Model {
        word: AtomicU32,
        messages: [AtomicBool; 2],
        /// The lock of the rank, whose threads look around one at a time.
        rank: Mutex<()>,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Model {
        fn new() -> Arc<Model> {
            Arc::new(Model {
                word: AtomicU32::new(0),
                messages: [AtomicBool::new(false), AtomicBool::new(false)],
                rank: Mutex::new(()),
                queue: Mutex::new(()),
                woken: Condvar::new(),
            })
        }

        /// As [`sleep`].
        fn futex_wait(&self, seen: u32) {
            let guard = self.queue.lock().unwrap();
            if self.word.load(Ordering::SeqCst) == seen {
                drop(self.woken.wait(guard).unwrap());
            }
        }

        /// As [`wake`].
        fn wake(&self) {
            if call(&self.word, ALL).is_some() {
                drop(self.queue.lock().unwrap());
                self.woken.notify_all();
            }
        }

        /// As `try_send` with [`wake`].
        fn publish(&self, message: usize) {
            self.messages[message].store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.word.load(Ordering::Relaxed) & ALL != 0 {
                self.wake();
            }
        }

        /// As `idle`, in the order of its rounds: each look is made under the lock of the rank, and so is
        /// the announcement.
        fn wait_for(&self, message: usize) {
            loop {
                let rank = self.rank.lock().unwrap();
                if self.messages[message].load(Ordering::Acquire) {
                    return;
                }
                let news = announce(&self.word, WAITER);
                if news {
                    fence(Ordering::SeqCst);
                }
                let seen = self.word.load(Ordering::Relaxed);
                drop(rank);
                if !news && seen & WAITER != 0 {
                    self.futex_wait(seen);
                }
            }
        }
    }

    /// Whoever sleeps is woken: loom reports a sleep without a waker as a deadlock.
    #[test]
    fn no_sleep_misses_its_message() {
        loom::model(|| {
            let model = Model::new();
            let sender = {
                let model = model.clone();
                thread::spawn(move || model.publish(0))
            };
            model.wait_for(0);
            sender.join().unwrap();
        });
    }

    /// Two threads of a rank sleep, each for a message of its own: what wakes one of them does not keep
    /// the other one asleep.
    #[test]
    fn of_two_sleepers_each_is_woken() {
        loom::model(|| {
            let model = Model::new();
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_waits_spins_only_with_a_core_of_its_own() {
        let (patience, long) = (Patience::new(2, 4, true), LongYields::none());
        assert_eq!(
            [0, 1999, 2000, 6000].map(|round| patience.stage(round, 2, &long)),
            [Stage::Spin, Stage::Spin, Stage::Yield, Stage::Sleep]
        );
        for (patience, threads) in
            [(patience, 3), (Patience::new(3, 2, true), 1), (Patience::new(3, 2, true), 2)]
        {
            assert_eq!(
                [0, 20].map(|round| patience.stage(round, threads, &long)),
                [Stage::Yield, Stage::Sleep]
            );
        }
    }

    /// Beside threads that compute, for some waits; with cores of its own a rank does not yield to them.
    #[test]
    fn who_came_back_late_sleeps_instead_of_yielding() {
        let (few, none, long) = (Patience::new(1, 2, true), Patience::new(3, 2, true), LongYields::none());
        long.note(LONG / 2);
        assert_eq!(few.stage(0, 3, &long), Stage::Yield);
        long.note(LONG * 2);
        assert_eq!(
            [1, 99, 100].map(|round| few.stage(round, 3, &long)),
            [Stage::Spin, Stage::Spin, Stage::Sleep]
        );
        for _ in 0..WAITS_WITHOUT {
            assert_eq!(none.stage(0, 1, &long), Stage::Sleep);
        }
        assert_eq!(none.stage(0, 1, &long), Stage::Yield);
    }

    #[test]
    fn who_is_woken_sleeps_no_more_and_others_go_on() {
        let word = AtomicU32::new(0);
        assert!(announce(&word, WAITER) && !announce(&word, WAITER) && announce(&word, ENGINE));
        let seen = word.load(Ordering::Relaxed);
        wake(&word, WAITER);
        assert_eq!(word.load(Ordering::Relaxed) & ALL, ENGINE);
        assert!(announce(&word, WAITER));
        sleep(&word, seen, WAITER, Duration::from_secs(1000));
        wake(&word, ALL);
        assert_eq!(word.load(Ordering::Relaxed) & ALL, 0);
    }
}
