//! Who may touch a rank: a thread of the application, or the thread that makes progress for it.
//!
//! Below MPI_THREAD_MULTIPLE one thread of the application at a time is inside MPI. It goes in and
//! out millions of times a second, others ask rarely. So the application pays two plain stores, and
//! who borrows the rank while it is away a barrier on all cores.
//!
//! ```text
//! application                          borrower (one at a time, under the lock)
//!   state = inside                       lent: take the pointer away
//!   (compiler fence)                     membarrier
//!   pointer there? ── no ─▶ wait for     inside? ── yes ─▶ put the pointer back
//!     │ yes                 the lock       │ no
//!   use the rank                         use the rank
//!   state = recent                       put the pointer back
//! ```
//!
//! After the barrier either the application's look at the pointer has been made, and then so has
//! its store of `inside`, which the borrower sees; or it is still to come and finds the pointer
//! gone. Both may see each other and give way; never do both go on.
//!
//! With MPI_THREAD_MULTIPLE all take the lock, and so they do where a tool for threads looks on: it would see none
//! of what the barrier orders. The value itself lies in a box of its own, and every
//! way to it begins at the address the box had when it was put here: no reference to anything around
//! it exists that could end that.

use crate::sync::{AtomicBool, AtomicPtr, AtomicU8, Ordering};
use crate::turns::Turns;
#[cfg(not(loom))]
use crate::watched;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::null_mut;

/// Nobody has been inside since [`Owner::was_away`] last looked.
const AWAY: u8 = 0;
/// A guard is alive.
const INSIDE: u8 = 1;
/// Nobody is inside, but somebody has been.
const RECENT: u8 = 2;

/// A value that its owner uses without atomic read-modify-writes, and lends while it is away.
pub struct Owner<T> {
    state: AtomicU8,
    /// Every guard takes the lock.
    locked: AtomicBool,
    /// What guards without the lock use; null: lent, or there is none.
    value: AtomicPtr<T>,
    /// The value wherever it is; null: there is none.
    root: AtomicPtr<T>,
    lock: Turns,
    owned: PhantomData<T>,
}

// SAFETY: the value is reached by one thread at a time, as the head of this file says.
unsafe impl<T: Send> Sync for Owner<T> {}

impl<T> Owner<T> {
    /// Nothing owned.
    #[cfg(not(loom))]
    pub const fn new() -> Owner<T> {
        Owner {
            state: AtomicU8::new(AWAY),
            locked: AtomicBool::new(false),
            value: AtomicPtr::new(null_mut()),
            root: AtomicPtr::new(null_mut()),
            lock: Turns::new(),
            owned: PhantomData,
        }
    }

    /// As above; loom's atomics cannot be made at compile time.
    #[cfg(loom)]
    pub fn new() -> Owner<T> {
        Owner {
            state: AtomicU8::new(AWAY),
            locked: AtomicBool::new(false),
            value: AtomicPtr::new(null_mut()),
            root: AtomicPtr::new(null_mut()),
            lock: Turns::new(),
            owned: PhantomData,
        }
    }

    /// Puts a value here, where none is; `locked` if several threads at a time may ask for it.
    pub fn put(&self, value: Box<T>, locked: bool) {
        let locked = self.is_watched() || locked;
        let value = Box::into_raw(value);
        let before = self.root.swap(value, Ordering::AcqRel);
        assert!(before.is_null(), "a rank was put where one is");
        self.locked.store(locked, Ordering::Release);
        self.value.store(if locked { null_mut() } else { value }, Ordering::Release);
    }

    /// Whether a tool for threads looks on; it is told what is atomic here.
    #[cfg(not(loom))]
    fn is_watched(&self) -> bool {
        watched::atomic(&self.state);
        watched::atomic(&self.locked);
        watched::atomic(&self.value);
        watched::atomic(&self.root);
        watched::is_on()
    }

    #[cfg(loom)]
    fn is_watched(&self) -> bool {
        false
    }

    /// Takes the value away. Nobody else may ask for it meanwhile.
    pub fn take(&self) -> Option<Box<T>> {
        self.lock.lock();
        self.value.store(null_mut(), Ordering::Release);
        let value = self.root.swap(null_mut(), Ordering::AcqRel);
        self.lock.unlock();
        // SAFETY: made by `put` from a box, and gone from here: it is given out once.
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
    }

    /// Leaves the value where it is, for ever: the child of a fork has a copy that nobody may use.
    #[cfg(not(loom))]
    pub fn abandon(&self) {
        self.value.store(null_mut(), Ordering::Release);
        self.root.store(null_mut(), Ordering::Release);
    }

    /// Access to the value; `None` if there is none.
    ///
    /// # Panics
    /// If a guard is alive in this thread, or, where guards do not take the lock, in any.
    #[inline(always)]
    pub fn enter(&self) -> Option<Guard<'_, T>> {
        if self.locked.load(Ordering::Relaxed) {
            return self.enter_locked();
        }
        if self.state.load(Ordering::Relaxed) == INSIDE {
            occupied();
        }
        let mut value = self.go_in();
        if value.is_null() {
            value = self.regain();
        }
        if value.is_null() {
            self.go_out();
            return None;
        }
        Some(Guard { owner: self, value, locked: false })
    }

    #[inline(never)]
    fn enter_locked(&self) -> Option<Guard<'_, T>> {
        self.lock.lock();
        let value = self.root.load(Ordering::Acquire);
        if value.is_null() {
            self.lock.unlock();
            return None;
        }
        self.state.store(INSIDE, Ordering::Relaxed);
        Some(Guard { owner: self, value, locked: true })
    }

    /// Access for what is over at once; `None` if there is no value, if it is lent, and where guards
    /// take the lock. No guard may be alive, which is left to [`Owner::enter`] to assert.
    #[inline(always)]
    pub fn at_once(&self) -> Option<AtOnce<'_, T>> {
        let value = self.go_in();
        if value.is_null() {
            self.go_out();
            return None;
        }
        Some(AtOnce { owner: self, value })
    }

    #[inline(always)]
    fn go_in(&self) -> *mut T {
        self.state.store(INSIDE, Ordering::Relaxed);
        fence();
        self.value.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn go_out(&self) {
        self.state.store(RECENT, Ordering::Release);
    }

    /// The value is lent: it has been given back when the lock is free. It is not lent again while
    /// this thread is inside.
    #[cold]
    #[inline(never)]
    fn regain(&self) -> *mut T {
        self.lock.lock();
        self.lock.unlock();
        self.root.load(Ordering::Acquire)
    }

    /// Lends the value to the calling thread while no guard is alive; `None` if one is, or there is no
    /// value. `barrier` is a full barrier on all cores that run a thread of this process. The caller
    /// sees to it that the value is not taken meanwhile, and that this thread holds no guard.
    pub fn lend<R>(&self, barrier: impl FnOnce(), f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock.lock();
        let _unlock = Kept(&self.lock);
        let value = self.root.load(Ordering::Acquire);
        if value.is_null() {
            return None;
        }
        if self.locked.load(Ordering::Relaxed) {
            // SAFETY: every guard takes the lock, which this thread holds.
            return Some(f(unsafe { &mut *value }));
        }
        self.value.store(null_mut(), Ordering::Relaxed);
        barrier();
        let is_free = self.state.load(Ordering::Acquire) != INSIDE;
        // SAFETY: no guard is alive, and until the value is given back each new one waits for the lock.
        let result = is_free.then(|| f(unsafe { &mut *value }));
        self.value.store(value, Ordering::Release);
        result
    }

    /// Whether no guard is alive, nor has been since the last call. One thread may ask.
    pub fn was_away(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        if state == RECENT {
            // Whoever goes in meanwhile is not overwritten.
            let _ = self.state.compare_exchange(RECENT, AWAY, Ordering::AcqRel, Ordering::Relaxed);
        }
        state == AWAY
    }

    /// Takes the lock: the value is not lent, and with the lock not used, until it is given back by
    /// [`Owner::release`]. False if the calling thread is inside already, interrupted by a signal.
    pub fn hold(&self) -> bool {
        self.lock.lock_unless_mine()
    }

    /// Ends what [`Owner::hold`] began.
    pub fn release(&self) {
        self.lock.unlock();
    }

    /// Frees the lock in the child of a fork, where the calling thread is the only one.
    #[cfg(not(loom))]
    pub fn reset(&self) {
        self.lock.reset();
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        let value = self.root.load(Ordering::Acquire);
        if !value.is_null() {
            // SAFETY: made by `put` from a box; no guard outlives the owner.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Default for Owner<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The lock, until this is dropped.
struct Kept<'a>(&'a Turns);

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

/// Access to the value of an [`Owner`].
pub struct Guard<'a, T> {
    owner: &'a Owner<T>,
    value: *mut T,
    locked: bool,
}

impl<T> Guard<'_, T> {
    /// Whether other threads may wait for the value.
    #[inline(always)]
    pub fn is_locked(&self) -> bool {
        self.locked
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.owner.go_out();
        if self.locked {
            self.owner.lock.unlock();
        }
    }
}

/// A short access to the value of an [`Owner`]; see [`Owner::at_once`].
pub struct AtOnce<'a, T> {
    owner: &'a Owner<T>,
    value: *mut T,
}

impl<T> Drop for AtOnce<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.owner.go_out();
    }
}

macro_rules! access {
    ($($guard:ident)*) => { $(
        impl<T> Deref for $guard<'_, T> {
            type Target = T;
            #[inline(always)]
            fn deref(&self) -> &T {
                // SAFETY: the address of a box that stays until `take`; this is the only guard, and
                // nobody has borrowed the value.
                unsafe { &*self.value }
            }
        }

        impl<T> DerefMut for $guard<'_, T> {
            #[inline(always)]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: as in `deref`, and the guard is borrowed mutably.
                unsafe { &mut *self.value }
            }
        }
    )* };
}

access! { Guard AtOnce }

#[cold]
fn occupied() -> ! {
    panic!(
        "the rank is in use: two threads are inside MPI without MPI_THREAD_MULTIPLE, a guard was taken \
         twice, or a signal handler that interrupted MPI called it"
    )
}

/// Keeps the compiler from turning store and load around; the processor is kept from it by the
/// borrower's barrier. Loom and miri have no membarrier: there it is a fence on both sides.
#[inline(always)]
fn fence() {
    #[cfg(not(any(loom, miri)))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(miri)]
    std::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    /// Loom reports two that touch it at a time.
    struct Rank(UnsafeCell<u32>);

    // SAFETY: the test is whether it is touched by one thread at a time; loom checks it.
    unsafe impl Send for Rank {}

    impl Rank {
        fn touch(&self) {
            // SAFETY: what is being checked.
            self.0.with_mut(|count| unsafe { *count += 1 });
        }
    }

    /// Without `was_away`: loom knows no order among stores of threads that have not seen each other's, and
    /// would let the borrower read what its exchange stored although the owner has been inside since.
    fn check(locked: bool) {
        loom::model(move || {
            let owner = Arc::new(Owner::new());
            owner.put(Box::new(Rank(UnsafeCell::new(0))), locked);
            let engine = {
                let owner = owner.clone();
                let barrier = || loom::sync::atomic::fence(Ordering::SeqCst);
                thread::spawn(move || owner.lend(barrier, |rank| rank.touch()).is_some())
            };
            owner.enter().unwrap().touch();
            match owner.at_once() {
                Some(rank) => rank.touch(),
                None => owner.enter().unwrap().touch(),
            }
            let advanced = engine.join().unwrap();
            let rank = owner.take().unwrap();
            // SAFETY: the other thread has ended.
            assert_eq!(rank.0.with(|count| unsafe { *count }), 2 + advanced as u32);
        });
    }

    /// Never are both inside, and nothing of what one did is lost to the other.
    #[test]
    fn one_at_a_time() {
        check(false);
    }

    #[test]
    fn one_at_a_time_with_the_lock() {
        check(true);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn barrier() {
        // Under miri, which has no membarrier, a fence on both sides.
        if cfg!(miri) { std::sync::atomic::fence(Ordering::SeqCst) } else { crate::nap::barrier_within() }
    }

    /// The application goes in and out while another thread borrows: the value is one, and the
    /// address by which each reaches it stays good. Miri checks that.
    #[test]
    fn guards_and_borrowers_use_the_same_value() {
        let times = if cfg!(miri) { 40 } else { 20_000 };
        assert!(cfg!(miri) || crate::nap::register_barrier());
        for locked in [false, true] {
            let owner = Owner::new();
            assert!(owner.enter().is_none() && owner.at_once().is_none() && owner.take().is_none());
            owner.put(Box::new(vec![0u64]), locked);
            let borrowed: u64 = std::thread::scope(|scope| {
                let engine = scope.spawn(|| {
                    let borrow = || owner.lend(barrier, |value| value[0] += 1);
                    (0..times).filter(|_| borrow().is_some()).count() as u64
                });
                for i in 0..times {
                    let mut guard = owner.enter().unwrap();
                    guard[0] += 1;
                    guard.push(i);
                    let seen = guard[0];
                    drop(guard);
                    match owner.at_once() {
                        Some(mut value) => value[0] += 1,
                        None => owner.enter().unwrap()[0] += 1,
                    }
                    assert!(owner.enter().unwrap()[0] > seen);
                }
                engine.join().unwrap()
            });
            let value = owner.take().unwrap();
            assert_eq!((value[0], value.len() as u64), (borrowed + 2 * times, times + 1));
            assert!(owner.enter().is_none() && owner.lend(barrier, |_| ()).is_none());
        }
    }

    /// Both ways in count as having been there.
    #[test]
    fn whoever_was_inside_was_not_away() {
        let owner = Owner::new();
        owner.put(Box::new(0), false);
        assert!(owner.was_away() && owner.was_away());
        drop(owner.at_once());
        assert!(!owner.was_away() && owner.was_away());
        let guard = owner.enter();
        assert!(!owner.was_away() && !owner.was_away());
        drop(guard);
        assert!(!owner.was_away() && owner.was_away());
        owner.take();
    }

    #[test]
    #[should_panic(expected = "the rank is in use")]
    fn a_second_guard_is_found_out() {
        let owner = Owner::new();
        owner.put(Box::new(0), false);
        let _first = owner.enter();
        owner.enter();
    }
}
