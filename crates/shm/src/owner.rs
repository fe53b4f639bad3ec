//! Who may touch a rank: the application's thread, or the thread that makes progress for it.
//!
//! The application goes in and out millions of times a second, the other thread asks rarely. So
//! the application pays two plain stores, and the other one a barrier on all cores.
//!
//! ```text
//! application                          engine (one thread, under a lock)
//!   inside = true                        lent: take the pointer away
//!   (compiler fence)                     membarrier
//!   pointer there? ── no ─▶ wait for     inside? ── yes ─▶ put the pointer back
//!     │ yes                 the lock       │ no
//!   use the rank                         use the rank
//!   inside = false                       put the pointer back
//! ```
//!
//! After the barrier either the application's look at the pointer has been made, and then so has
//! its store of `inside`, which the engine sees; or it is still to come and finds the pointer
//! gone. Both may see each other and give way; never do both go on.

use crate::sync::{AtomicBool, AtomicPtr, Ordering};
use std::ptr::null_mut;

/// A value that its owner uses without atomic read-modify-writes, and lends while it is away.
pub struct Owner<T> {
    inside: AtomicBool,
    value: AtomicPtr<T>,
}

impl<T> Owner<T> {
    /// Nothing owned.
    #[cfg(not(loom))]
    pub const fn new() -> Owner<T> {
        Owner { inside: AtomicBool::new(false), value: AtomicPtr::new(null_mut()) }
    }

    /// As above; loom's atomics cannot be made at compile time.
    #[cfg(loom)]
    pub fn new() -> Owner<T> {
        Owner { inside: AtomicBool::new(false), value: AtomicPtr::new(null_mut()) }
    }

    /// Sets what is owned; null: nothing.
    pub fn set(&self, value: *mut T) {
        self.value.store(value, Ordering::Release);
    }

    /// Whether the owner is inside.
    #[inline(always)]
    pub fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    /// The owner goes in. Null: the value is lent, or there is none; the owner counts as inside
    /// all the same.
    #[inline(always)]
    pub fn enter(&self) -> *mut T {
        self.inside.store(true, Ordering::Relaxed);
        fence();
        self.value.load(Ordering::Acquire)
    }

    /// The owner goes out.
    #[inline(always)]
    pub fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }

    /// Borrows the value while the owner is outside; `None` if it is inside. `barrier` is a full
    /// barrier on all cores that run a thread of the process. One thread at a time may borrow.
    pub fn borrow(&self, barrier: impl FnOnce()) -> Option<*mut T> {
        let value = self.value.load(Ordering::Relaxed);
        self.value.store(null_mut(), Ordering::Relaxed);
        barrier();
        if value.is_null() || self.inside.load(Ordering::Acquire) {
            self.give_back(value);
            return None;
        }
        Some(value)
    }

    /// Ends what [`Owner::borrow`] began.
    pub fn give_back(&self, value: *mut T) {
        self.value.store(value, Ordering::Release);
    }
}

impl<T> Default for Owner<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Keeps the compiler from turning store and load around; the processor is kept from it by the
/// borrower's barrier. Loom has no membarrier: there it is a fence on both sides.
#[inline(always)]
fn fence() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    struct Rank {
        owner: Owner<()>,
        lock: Mutex<()>,
        /// Loom reports two that touch it at a time.
        state: UnsafeCell<u32>,
    }

    // SAFETY: the test is whether `state` is touched by one thread at a time; loom checks it.
    unsafe impl Sync for Rank {}
    // SAFETY: as above.
    unsafe impl Send for Rank {}

    impl Rank {
        /// As a guard of the world.
        fn call(&self) {
            if self.owner.enter().is_null() {
                drop(self.lock.lock().unwrap());
            }
            // SAFETY: what is being checked.
            self.state.with_mut(|state| unsafe { *state += 1 });
            self.owner.leave();
        }

        /// As the engine; whether it got in.
        fn advance(&self) -> bool {
            let _lock = self.lock.lock().unwrap();
            let barrier = || loom::sync::atomic::fence(Ordering::SeqCst);
            let Some(value) = self.owner.borrow(barrier) else { return false };
            // SAFETY: what is being checked.
            self.state.with_mut(|state| unsafe { *state += 1 });
            self.owner.give_back(value);
            true
        }
    }

    /// Never are both inside, and nothing of what one did is lost to the other.
    #[test]
    fn one_at_a_time() {
        loom::model(|| {
            let rank =
                Arc::new(Rank { owner: Owner::new(), lock: Mutex::new(()), state: UnsafeCell::new(0) });
            rank.owner.set(std::ptr::dangling_mut());
            let engine = {
                let rank = rank.clone();
                thread::spawn(move || rank.advance())
            };
            rank.call();
            rank.call();
            let advanced = engine.join().unwrap();
            // SAFETY: the other thread has ended.
            let sum = rank.state.with(|state| unsafe { *state });
            assert_eq!(sum, 2 + advanced as u32);
        });
    }
}
