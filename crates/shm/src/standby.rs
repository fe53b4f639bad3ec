//! When the thread that makes progress for an application that is away looks, rests and ends.
//!
//! ```text
//!        permit         started          rest: until something needs it
//!   off ───────▶ none ─────────▶ watching ─────────────────────────────▶ resting
//!    ▲            │                 │  ▲                                  │   │
//!    └────────────┘                 │  └──── call, or taken back ─────────┘   │
//!   started, in vain                └────────────────▶ stop ◀─────────────────┘
//! ```
//!
//! | state | the thread | who may end it |
//! |---|---|---|
//! | off | is not there, and will not be | the application, before it has a rank |
//! | none | has not been needed | the application, inside MPI |
//! | watching | looks every tick, or sleeps on a bell that it has armed | the thread; the application at its end |
//! | resting | asks whether it may, then sleeps until it is called | the application, inside MPI or at its end; the thread, before it sleeps |
//! | stop | ends | nobody |
//!
//! «Inside MPI» is with a guard of the rank ([`crate::owner`]), so one thread of the application at a time. Who leaves something
//! pending there looks at the state, no more: while the thread watches it has nothing to say. Two wake-ups must not be lost:
//!
//! * *The call.* The thread says that it rests and asks then, with the rank borrowed. Either what is pending was left before that,
//!   and the thread sees it and takes its rest back, or who leaves it comes later, sees the rest and calls.
//! * *The end.* The thread arms its bell and looks then whether it is to end; who ends it says so and rings then. A thread that rests
//!   finds another state.
//!
//! Threads of the application that sleep inside MPI (`nap`) will be woken themselves and look around: while there is one the thread may rest
//! whatever is pending, for that one calls when it leaves.

use crate::sync::{AtomicU8, AtomicU32, Mutex, MutexGuard, Ordering, Thread, fence, park};
#[cfg(not(loom))]
use crate::watched;
use std::sync::PoisonError;

const OFF: u8 = 0;
const NONE: u8 = 1;
const WATCHING: u8 = 2;
const RESTING: u8 = 3;
const STOP: u8 = 4;

/// See the [module](self).
pub struct Standby {
    state: AtomicU8,
    /// Threads of the application that sleep inside MPI.
    napping: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

impl Standby {
    /// Off.
    #[cfg(not(loom))]
    pub const fn new() -> Standby {
        Standby { state: AtomicU8::new(OFF), napping: AtomicU32::new(0), thread: Mutex::new(None) }
    }

    /// As above; loom's atomics cannot be made at compile time.
    #[cfg(loom)]
    pub fn new() -> Standby {
        Standby { state: AtomicU8::new(OFF), napping: AtomicU32::new(0), thread: Mutex::new(None) }
    }

    /// There may be a thread from here on, if that is `wanted`.
    pub fn permit(&self, wanted: bool) {
        #[cfg(not(loom))]
        {
            watched::atomic(&self.state);
            watched::atomic(&self.napping);
        }
        if wanted {
            self.state.store(NONE, Ordering::Relaxed);
        }
    }

    /// There is none from here on: it could not be started, or this is the child of a fork.
    pub fn forbid(&self) {
        self.state.store(OFF, Ordering::Relaxed);
    }

    /// Whether there is one or may be one.
    pub fn is_permitted(&self) -> bool {
        self.state.load(Ordering::Relaxed) != OFF
    }

    /// Whether the thread will see by itself what is left pending: then there is no need to [`Standby::call`]. Inside MPI.
    #[inline(always)]
    pub fn is_watching(&self) -> bool {
        self.state.load(Ordering::Relaxed) == WATCHING
    }

    /// Something is left pending that needs the thread. True if there is none yet: then the caller starts it, and says so by
    /// [`Standby::started`] or [`Standby::forbid`]. Inside MPI.
    #[must_use]
    pub fn call(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state == RESTING && self.exchange(RESTING, WATCHING) {
            self.unpark();
        }
        state == NONE
    }

    /// The thread is there. Inside MPI.
    pub fn started(&self, thread: Thread) {
        *self.thread() = Some(thread);
        self.state.store(WATCHING, Ordering::Relaxed);
    }

    /// A thread of the application sleeps inside MPI.
    #[inline]
    pub fn nap(&self, nap: impl FnOnce()) {
        self.napping.fetch_add(1, Ordering::Relaxed);
        nap();
        self.napping.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends the thread, which `ring` wakes if it sleeps on its bell. No guard is alive, nor will be.
    pub fn stop(&self, ring: impl FnOnce()) {
        self.state.swap(STOP, Ordering::AcqRel);
        self.unpark();
        // See `sleep`.
        fence(Ordering::SeqCst);
        ring();
    }

    fn unpark(&self) {
        if let Some(thread) = &*self.thread() {
            thread.unpark();
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread itself asks and does.
impl Standby {
    /// Whether it is to end.
    pub fn is_ending(&self) -> bool {
        self.state.load(Ordering::Acquire) == STOP
    }

    /// Whether a thread of the application sleeps inside MPI, which looks around when it is woken.
    pub fn has_naps(&self) -> bool {
        self.napping.load(Ordering::Relaxed) != 0
    }

    /// Sleeps on the bell, which has been armed, unless the thread is to end. To arm it was a barrier: either this thread sees that it is to
    /// end, or who ends it sees the bell armed.
    pub fn sleep(&self, sleep: impl FnOnce()) {
        if !self.is_ending() {
            sleep();
        }
    }

    /// Sleeps until the application calls. `is_needless` says whether it may: it borrows the rank, to see that nothing is pending, or finds
    /// that somebody naps. False if the thread must go on.
    pub fn rest(&self, is_needless: impl FnOnce() -> bool) -> bool {
        if !self.exchange(WATCHING, RESTING) {
            return false;
        }
        if !is_needless() {
            // Unless it has been called meanwhile, or is to end.
            self.exchange(RESTING, WATCHING);
            return false;
        }
        while self.state.load(Ordering::Acquire) == RESTING {
            park();
        }
        true
    }

    /// The states from `started` on are changed by what reads and stores at once: loom knows no order among stores of threads that have not seen
    /// each other's.
    fn exchange(&self, old: u8, new: u8) -> bool {
        self.state.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl Default for Standby {
    fn default() -> Self {
        Self::new()
    }
}

/// An application and the thread beside it, on loom's model of memory, in the order of `abi/engine.rs`. Nothing ends a sleep but who is to end it,
/// and the thread may rest after each of its looks: it is tried more often than it is.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::nap;
    use crate::owner::Owner;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Condvar};
    use loom::thread::{self, JoinHandle};

    /// What is pending; loom reports two that touch it at a time.
    #[derive(Default)]
    struct Rank(UnsafeCell<u32>);

    // SAFETY: the test is whether it is touched by one thread at a time; loom checks it.
    unsafe impl Send for Rank {}

    impl Rank {
        fn add(&self) {
            // SAFETY: what is being checked.
            self.0.with_mut(|pending| unsafe { *pending += 1 });
        }

        fn needs_care(&self) -> bool {
            // SAFETY: as above.
            self.0.with(|pending| unsafe { *pending > 0 })
        }

        fn take(&self) -> u32 {
            // SAFETY: as above.
            self.0.with_mut(|pending| unsafe { std::mem::take(&mut *pending) })
        }
    }

    #[derive(Default)]
    struct Model {
        standby: Standby,
        owner: Owner<Rank>,
        thread: Mutex<Option<JoinHandle<()>>>,
        /// The bell, and its futex, which is a lock as in the model of [`nap`].
        word: AtomicU32,
        queue: Mutex<()>,
        rung: Condvar,
        /// How much the thread has served of what was pending, for whom the application computes.
        served: Mutex<u32>,
        serves: Condvar,
    }

    /// What the thread can do with what is pending.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Care {
        /// All.
        Serves,
        /// Nothing, before a peer rings.
        Waits,
    }

    impl Model {
        fn new() -> Arc<Model> {
            let model = Arc::new(Model::default());
            model.owner.put(Box::default(), false);
            model.standby.permit(true);
            model
        }

        /// The application comes, leaves something pending and goes, as by `leave` and `start`.
        fn visit(model: &Arc<Model>, care: Care) {
            let rank = model.owner.enter().unwrap();
            rank.add();
            if !model.standby.is_watching() && rank.needs_care() && model.standby.call() {
                let engine = model.clone();
                let handle = thread::spawn(move || engine.run(care));
                model.standby.started(handle.thread().clone());
                *model.thread.lock().unwrap() = Some(handle);
            }
        }

        /// The application computes until the thread has served so much.
        fn compute(&self, until: u32) {
            let mut served = self.served.lock().unwrap();
            while *served != until {
                served = self.serves.wait(served).unwrap();
            }
        }

        /// As `MPI_Finalize`. What is pending still, if anything.
        fn finish(&self) -> u32 {
            self.standby.stop(|| self.ring());
            let thread = self.thread.lock().unwrap().take();
            thread.unwrap().join().unwrap();
            self.owner.take().unwrap().take()
        }

        fn lend<R>(&self, f: impl FnOnce(&Rank) -> R) -> Option<R> {
            self.owner.lend(|| fence(Ordering::SeqCst), |rank| f(rank))
        }

        /// As `run`, whose ticks take no time here.
        fn run(&self, care: Care) {
            while !self.standby.is_ending() {
                if !self.standby.has_naps() {
                    self.work(care);
                }
                let is_needless = |rank: &Rank| self.standby.has_naps() || !rank.needs_care();
                if !self.standby.rest(|| self.lend(is_needless) == Some(true)) {
                    thread::yield_now();
                }
            }
        }

        /// As `work`, with the looks of `advance`.
        fn work(&self, care: Care) {
            let waits = self.lend(|rank| match care {
                Care::Serves => {
                    let served = rank.take();
                    *self.served.lock().unwrap() += served;
                    self.serves.notify_all();
                    false
                }
                Care::Waits => {
                    if rank.needs_care() && nap::announce(&self.word, nap::ENGINE) {
                        fence(Ordering::SeqCst);
                    }
                    rank.needs_care()
                }
            });
            if waits == Some(true) {
                self.standby.sleep(|| self.sleep_on_bell());
            }
        }

        /// As `Bell::sleep`, without a limit.
        fn sleep_on_bell(&self) {
            let seen = self.word.load(Ordering::Relaxed);
            let mut guard = self.queue.lock().unwrap();
            // Loom ends a wait when its thread is unparked, as no futex does.
            while seen & nap::ENGINE != 0 && self.word.load(Ordering::SeqCst) == seen {
                guard = self.rung.wait(guard).unwrap();
            }
        }

        /// As `Bell::ring`.
        fn ring(&self) {
            if nap::wake(&self.word, nap::ALL) {
                drop(self.queue.lock().unwrap());
                self.rung.notify_all();
            }
        }
    }

    /// Whatever the thread is about when something is left, to begin, to look or to rest, it serves it: else loom reports that all sleep.
    #[test]
    fn no_call_is_lost() {
        loom::model(|| {
            let model = Model::new();
            Model::visit(&model, Care::Serves);
            model.compute(1);
            Model::visit(&model, Care::Serves);
            model.compute(2);
            assert_eq!(model.finish(), 0);
        });
    }

    /// An application that comes back serves what is pending itself, unless it has been served: once, and without a wait but for one look of
    /// the thread.
    #[test]
    fn who_comes_back_takes_over() {
        loom::model(|| {
            let model = Model::new();
            Model::visit(&model, Care::Serves);
            let own = match model.owner.at_once() {
                Some(rank) => rank.take(),
                None => model.owner.enter().unwrap().take(),
            };
            assert_eq!(model.finish(), 0);
            assert_eq!(own + *model.served.lock().unwrap(), 1);
        });
    }

    /// While the application sleeps inside MPI the thread may rest whatever is pending; it is called when the application leaves.
    #[test]
    fn who_naps_calls_when_it_leaves() {
        let mut builder = loom::model::Builder::new();
        // With three it takes a minute.
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let model = Model::new();
            Model::visit(&model, Care::Serves);
            model.standby.nap(thread::yield_now);
            Model::visit(&model, Care::Serves);
            model.compute(2);
            assert_eq!(model.finish(), 0);
        });
    }

    /// Asleep on its bell, about to be or on its way there: the end wakes it, though no peer rings.
    #[test]
    fn nobody_sleeps_through_the_end() {
        loom::model(|| {
            let model = Model::new();
            Model::visit(&model, Care::Waits);
            assert_eq!(model.finish(), 1);
        });
    }

    /// The end comes while the thread rests, or is about to.
    #[test]
    fn nobody_rests_through_the_end() {
        loom::model(|| {
            let model = Model::new();
            Model::visit(&model, Care::Serves);
            model.compute(1);
            assert_eq!(model.finish(), 0);
        });
    }

    /// The end comes while the thread begins or was just called.
    #[test]
    fn who_was_called_ends() {
        loom::model(|| {
            let model = Model::new();
            Model::visit(&model, Care::Serves);
            let left = model.finish();
            assert_eq!(left + *model.served.lock().unwrap(), 1);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32 as Count;

    /// The same on real threads, as often as it takes to meet, with an end that finds the thread at rest.
    #[test]
    fn who_rests_is_called_and_ends() {
        let (standby, pending) = (Standby::new(), Count::new(0));
        assert!(!standby.is_permitted() && !standby.call());
        standby.permit(false);
        assert!(!standby.is_permitted());
        standby.permit(true);
        assert!(standby.is_permitted() && standby.call(), "nothing has needed it so far");
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                while !standby.is_ending() {
                    pending.swap(0, Ordering::SeqCst);
                    standby.rest(|| pending.load(Ordering::SeqCst) == 0);
                }
            });
            standby.started(thread.thread().clone());
            for _ in 0..rounds {
                pending.store(1, Ordering::SeqCst);
                fence(Ordering::SeqCst);
                if !standby.is_watching() {
                    assert!(!standby.call());
                }
                while pending.load(Ordering::SeqCst) != 0 {
                    std::thread::yield_now();
                }
            }
            standby.stop(|| {});
        });
        assert!(standby.is_ending());
    }
}
