//! A lock whose waiters get their turn.
//!
//! Nobody waits: to take it and to give it back are an atomic operation each. Otherwise waiters
//! stand in a line and sleep, but for the first one, the heir, which is woken when the one before
//! it has got the lock. Until it runs others may take the lock as if nobody waited: to leave it idle for
//! as long as a thread takes to wake up would cost all of them. When it runs it says so, and then the
//! lock is handed to it. So a turn is one use of the lock and what fits into a wake-up.
//!
//! ```text
//!             take                  the heir is there         it goes to sleep
//!   free ────────────────▶ held ─────────────────────▶ wanted ───────────────▶ asleep
//!     ▲                    │  ▲                           │                      │
//!     └────────────────────┘  └───────── granted ◀────────┴──────────────────────┘
//!           give back           the heir             give back
//!                               takes it
//! ```

use crate::sync::{AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
use crate::watched;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and the heir looks for it to be granted.
const WANTED: u32 = 2;
/// Held, and the heir sleeps until it is granted.
const ASLEEP: u32 = 3;
/// Held for the heir, who does not know yet.
const GRANTED: u32 = 4;

/// How often the heir looks before it sleeps: about as long as a short operation holds the lock.
const LOOKS: u32 = if cfg!(any(loom, miri)) { 1 } else { 200 };

/// The lock; what it protects lies elsewhere.
pub struct Turns {
    state: Futex,
    /// The number of the place in line that is next to be given out.
    last: AtomicU32,
    /// The number of the heir's place.
    first: Futex,
    /// The thread that holds the lock, as `pthread_self` numbers it.
    holder: AtomicUsize,
    /// What is used in its place where a tool looks on.
    #[cfg(not(loom))]
    shown: watched::Mutex,
}

impl Turns {
    /// A free lock.
    #[cfg(not(loom))]
    pub const fn new() -> Turns {
        Turns {
            state: Futex::new(FREE),
            last: AtomicU32::new(0),
            first: Futex::new(0),
            holder: AtomicUsize::new(0),
            shown: watched::Mutex::free(),
        }
    }

    /// As above; loom's atomics cannot be made at compile time.
    #[cfg(loom)]
    pub fn new() -> Turns {
        Turns {
            state: Futex::new(FREE),
            last: AtomicU32::new(0),
            first: Futex::new(0),
            holder: AtomicUsize::new(0),
        }
    }

    /// Takes the lock, which is given back by [`Turns::unlock`].
    ///
    /// # Panics
    /// If the calling thread holds it.
    #[inline]
    pub fn lock(&self) {
        #[cfg(not(loom))]
        if watched::is_on() {
            return if !self.shown.lock() {
                taken_twice()
            };
        }
        if !self.state.exchange(FREE, HELD) {
            self.wait();
        }
        self.holder.store(this_thread(), Ordering::Relaxed);
    }

    /// As [`Turns::lock`], unless the calling thread holds it already: then false.
    pub fn lock_unless_mine(&self) -> bool {
        #[cfg(not(loom))]
        if watched::is_on() {
            return self.shown.lock();
        }
        if self.holder.load(Ordering::Relaxed) == this_thread() {
            return false;
        }
        self.lock();
        true
    }

    /// Frees the lock in the child of a fork, where those who stood in line are not there.
    #[cfg(not(loom))]
    pub fn reset(&self) {
        self.holder.store(0, Ordering::Relaxed);
        self.shown.reset();
        self.first.value.store(self.last.load(Ordering::Relaxed), Ordering::Relaxed);
        self.state.value.store(FREE, Ordering::Release);
    }

    /// Gives the lock back; only its holder may.
    #[inline]
    pub fn unlock(&self) {
        #[cfg(not(loom))]
        if watched::is_on() {
            return self.shown.unlock();
        }
        self.holder.store(0, Ordering::Relaxed);
        if !self.state.exchange(HELD, FREE) {
            self.grant();
        }
    }

    #[cold]
    #[inline(never)]
    fn grant(&self) {
        if self.state.value.swap(GRANTED, Ordering::AcqRel) == ASLEEP {
            self.state.wake(u32::MAX);
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) {
        if cfg!(not(loom)) && self.holder.load(Ordering::Relaxed) == this_thread() {
            taken_twice();
        }
        let place = self.last.fetch_add(1, Ordering::Relaxed);
        // Either this thread sees that it has become the heir, or who makes it that sees that it is there.
        fence(Ordering::SeqCst);
        loop {
            let first = self.first.value.load(Ordering::Acquire);
            if first == place {
                break;
            }
            self.first.wait(first, bit(place));
        }
        self.inherit();
        // The next one becomes heir while this thread uses the lock.
        let next = place.wrapping_add(1);
        self.first.value.store(next, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.last.load(Ordering::Relaxed) != next {
            self.first.wake(bit(next));
        }
    }

    /// The heir gets the lock.
    fn inherit(&self) {
        for look in 0.. {
            if self.state.exchange(FREE, HELD) || self.state.exchange(GRANTED, HELD) {
                return;
            }
            if look < LOOKS {
                self.state.exchange(HELD, WANTED);
                spin();
            } else if self.state.exchange(WANTED, ASLEEP)
                || self.state.value.load(Ordering::Relaxed) == ASLEEP
            {
                self.state.wait(ASLEEP, u32::MAX);
            } else {
                self.state.exchange(HELD, WANTED);
            }
        }
    }
}

#[cold]
fn taken_twice() -> ! {
    panic!("the rank is in use by this very thread: a guard was taken twice, or MPI interrupted")
}

/// Those who wait for another place in line sleep on: at most one in 32 is woken in vain.
fn bit(place: u32) -> u32 {
    1 << (place % 32)
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

/// A number for the calling thread.
#[cfg(not(loom))]
fn this_thread() -> usize {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Loom's threads share one of the system.
#[cfg(loom)]
fn this_thread() -> usize {
    1
}

#[cfg(not(loom))]
fn spin() {
    std::hint::spin_loop();
}

#[cfg(loom)]
fn spin() {
    loom::thread::yield_now();
}

/// A word on which threads of this process sleep.
struct Futex {
    value: AtomicU32,
    /// Loom has no futex: there a sleep is a lock under which the word is compared, as the kernel does.
    #[cfg(loom)]
    queue: loom::sync::Mutex<()>,
    #[cfg(loom)]
    woken: loom::sync::Condvar,
}

#[cfg(not(loom))]
impl Futex {
    const fn new(value: u32) -> Futex {
        Futex { value: AtomicU32::new(value) }
    }

    /// Sleeps while the word has this value, until [`Futex::wake`] with a bit of `bits`; may end sooner.
    fn wait(&self, value: u32, bits: u32) {
        self.call(libc::FUTEX_WAIT_BITSET, value, bits);
    }

    fn wake(&self, bits: u32) {
        self.call(libc::FUTEX_WAKE_BITSET, i32::MAX as u32, bits);
    }

    fn call(&self, what: libc::c_int, value: u32, bits: u32) {
        let (word, what) = (&raw const self.value, what | libc::FUTEX_PRIVATE_FLAG);
        let (time, second) = (std::ptr::null::<libc::timespec>(), std::ptr::null::<u32>());
        // SAFETY: the word lives as long as `self`; there is no time limit.
        unsafe { libc::syscall(libc::SYS_futex, word, what, value, time, second, bits) };
    }
}

#[cfg(loom)]
impl Futex {
    fn new(value: u32) -> Futex {
        Futex { value: AtomicU32::new(value), queue: Default::default(), woken: Default::default() }
    }

    fn wait(&self, value: u32, _bits: u32) {
        let guard = self.queue.lock().unwrap();
        if self.value.load(Ordering::SeqCst) == value {
            drop(self.woken.wait(guard).unwrap());
        }
    }

    fn wake(&self, _bits: u32) {
        drop(self.queue.lock().unwrap());
        self.woken.notify_all();
    }
}

impl Futex {
    #[inline(always)]
    fn exchange(&self, old: u32, new: u32) -> bool {
        self.value.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(loom))]
    type Cell<T> = std::cell::UnsafeCell<T>;

    /// What the lock protects; not atomic on purpose: miri and loom report two that touch it at a time,
    /// and a count would be lost.
    #[cfg(not(loom))]
    struct Protected(Turns, Cell<u32>);

    // SAFETY: touched only by who holds the lock, which is what the test is about.
    #[cfg(not(loom))]
    unsafe impl Sync for Protected {}

    #[cfg(not(loom))]
    impl Protected {
        fn count(&self) -> u32 {
            self.0.lock();
            // SAFETY: this thread holds the lock.
            let count = unsafe {
                *self.1.get() += 1;
                *self.1.get()
            };
            self.0.unlock();
            count
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn one_at_a_time_and_nobody_is_left_waiting() {
        let (threads, times) = if cfg!(miri) { (3, 20) } else { (6, 20_000) };
        let protected = Protected(Turns::new(), Cell::new(0));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..times).for_each(|_| _ = protected.count()));
            }
        });
        assert_eq!(protected.count(), threads * times + 1);
    }

    /// Threads that take it again at once do not keep another one out.
    #[cfg(not(loom))]
    #[test]
    fn who_waits_gets_its_turn() {
        let turns = if cfg!(miri) { 3 } else { 300 };
        let protected = Protected(Turns::new(), Cell::new(0));
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        protected.count();
                    }
                });
            }
            (0..turns).for_each(|_| _ = protected.count());
            over.store(true, Ordering::Relaxed);
        });
    }

    #[cfg(not(loom))]
    #[test]
    #[should_panic(expected = "by this very thread")]
    fn taking_it_twice_is_found_out() {
        let turns = Turns::new();
        turns.lock();
        turns.lock();
    }

    #[cfg(loom)]
    struct Protected(Turns, loom::cell::UnsafeCell<u32>);

    // SAFETY: the test is whether it is touched by one thread at a time; loom checks it.
    #[cfg(loom)]
    unsafe impl Sync for Protected {}
    // SAFETY: as above.
    #[cfg(loom)]
    unsafe impl Send for Protected {}

    /// Loom reports two inside at a time, and a sleep without a waker as a deadlock.
    #[cfg(loom)]
    #[test]
    fn one_at_a_time_and_nobody_is_left_waiting() {
        loom::model(|| {
            let shared = loom::sync::Arc::new(Protected(Turns::new(), loom::cell::UnsafeCell::new(0)));
            let once = |shared: &Protected| {
                shared.0.lock();
                // SAFETY: what is being checked.
                shared.1.with_mut(|count| unsafe { *count += 1 });
                shared.0.unlock();
            };
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || once(&shared))
                })
                .collect();
            once(&shared);
            others.into_iter().for_each(|thread| thread.join().unwrap());
            // SAFETY: the other threads have ended.
            assert_eq!(shared.1.with(|count| unsafe { *count }), 3);
        });
    }
}
