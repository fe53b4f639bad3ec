//! Waiting: spin briefly, then yield, then sleep in the kernel.
//!
//! A sender must not pay a fence to find out whether its receiver sleeps. So the sleeper pays:
//! it raises its flag, then `membarrier` makes every running rank pass a barrier, then it looks
//! once more. A sender that published before the barrier is seen by that look; one that
//! publishes after it sees the flag. Where the kernel lacks membarrier sleeps are kept short.

use crate::sync::{AtomicU32, Ordering};
use fabric::Nap;
use std::time::Duration;

/// Bit of the sleep word: a thread that waits inside MPI sleeps.
pub const WAITER: u32 = 1;
/// Bit of the sleep word: the thread that makes progress outside MPI sleeps, or is about to.
pub const ENGINE: u32 = 2;

const MEMBARRIER_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

/// When to go over from one way of waiting to the next, in rounds without success.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Rounds of spinning.
    pub spin: u32,
    /// Round from which to sleep.
    pub sleep: u32,
    /// Longest single sleep.
    pub longest: Duration,
}

impl Patience {
    /// With a core for each rank it pays to spin for some 50 µs, the cost of being woken; with
    /// fewer, every spin takes time from the rank that is waited for, and so do the turns of ranks
    /// that yield in vain: one that has had some without success sleeps.
    pub fn new(ranks_on_host: usize, cores: usize, has_barrier: bool) -> Patience {
        let longest = Duration::from_micros(if has_barrier { 100_000 } else { 200 });
        if ranks_on_host <= cores {
            Patience { spin: 2000, sleep: 6000, longest }
        } else {
            Patience { spin: 0, sleep: 20, longest }
        }
    }

    /// Whether there are fewer cores than ranks.
    pub fn is_scarce(&self) -> bool {
        self.spin == 0
    }
}

/// What to do until the next look around.
pub enum ShmNap {
    /// Look again at once.
    Spin,
    /// Let another rank of this core run.
    Yield,
    /// Sleep until woken or for the given time.
    Sleep(&'static AtomicU32, Duration),
}

impl Nap for ShmNap {
    #[inline]
    fn take(self) {
        match self {
            ShmNap::Spin => std::hint::spin_loop(),
            ShmNap::Yield => std::thread::yield_now(),
            ShmNap::Sleep(word, longest) => sleep(word, WAITER, longest),
        }
    }

    #[inline]
    fn sleeps(&self) -> bool {
        matches!(self, ShmNap::Sleep(..))
    }
}

/// Registers for [`barrier`]; false if the kernel lacks it.
pub fn register_barrier() -> bool {
    // SAFETY: membarrier has no memory operands.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

/// A full memory barrier on every core that runs a registered process.
pub fn barrier() {
    // SAFETY: membarrier has no memory operands.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) };
}

/// Sleeps while the bit `who` of the word is set, at most for the given time.
pub fn sleep(word: &AtomicU32, who: u32, longest: Duration) {
    let seen = word.load(Ordering::Relaxed);
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

/// Wakes whoever sleeps on `word`: the bits say who does, so that nobody else is disturbed.
#[cold]
pub fn wake(word: &AtomicU32) {
    let who = word.swap(0, Ordering::AcqRel);
    if who != 0 {
        // SAFETY: the word lives in the segment, which stays mapped.
        unsafe { futex(word, libc::FUTEX_WAKE_BITSET, i32::MAX as u32, std::ptr::null(), who) };
    }
}

/// # Safety
/// The word stays mapped during the call; `until` is null or a time.
unsafe fn futex(word: &AtomicU32, what: libc::c_int, value: u32, until: *const libc::timespec, who: u32) {
    let second = std::ptr::null::<u32>();
    // SAFETY: passed on to the caller.
    unsafe { libc::syscall(libc::SYS_futex, word as *const AtomicU32, what, value, until, second, who) };
}

/// The protocol of the sleeper and its waker, on loom's model of memory. Loom has no membarrier
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
        message: AtomicBool,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Model {
        fn futex_wait(&self) {
            let guard = self.queue.lock().unwrap();
            if self.word.load(Ordering::SeqCst) == 1 {
                drop(self.woken.wait(guard).unwrap());
            }
        }

        /// As `try_send` with [`wake`].
        fn publish(&self) {
            self.message.store(true, Ordering::Release);
            fence(Ordering::SeqCst);
            if self.word.load(Ordering::Relaxed) != 0 && self.word.swap(0, Ordering::AcqRel) == 1 {
                drop(self.queue.lock().unwrap());
                self.woken.notify_all();
            }
        }

        /// As `idle`, in the order of its rounds.
        fn wait_for_message(&self) {
            while !self.message.load(Ordering::Acquire) {
                self.word.store(1, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                if self.message.load(Ordering::Acquire) {
                    break;
                }
                self.futex_wait();
            }
            self.word.store(0, Ordering::Relaxed);
        }
    }

    /// Whoever sleeps is woken: loom reports a sleep without a waker as a deadlock.
    #[test]
    fn no_sleep_misses_its_message() {
        loom::model(|| {
            let model = Arc::new(Model {
                word: AtomicU32::new(0),
                message: AtomicBool::new(false),
                queue: Mutex::new(()),
                woken: Condvar::new(),
            });
            let sender = {
                let model = model.clone();
                thread::spawn(move || model.publish())
            };
            model.wait_for_message();
            sender.join().unwrap();
        });
    }
}
