//! Windows whose memory all ranks map: operations are loads, stores and atomic instructions of the origin, and what
//! ranks tell each other are words beside the memory. No target takes part.
//!
//! ```text
//! for each rank: lock | who waits for it | guard of elements without atomic instruction | next ticket | ticket served
//!                whether who has that ticket is looking at the lock, and how many wait to share it
//!                what it has attached to a dynamic window, where that is
//!                a word for each round of a barrier
//!                whether it is in the middle of atomic instructions
//!                the last barrier behind which it has heeded what it was told
//!                whether its elements are changed under its guard alone
//!                posts of each rank to it | completes of each rank to it | messages of each rank to it
//! ```
//!
//! Posts and completes are counted up by the one and compared by the other with what it has used up, and barriers are
//! numbered, so the words need no reset and no message. Each of them has one writer, so they are stores, not atomic
//! read-modify-writes.
//!
//! Single elements are changed by atomic instructions, which counters that all ranks change want. Runs are changed
//! many times faster under a guard, by vector instructions. So from the first run on all elements of a target are changed
//! under its guard: who changes that run takes the guard, says so, has all cores put their stores and loads in order
//! (`membarrier`) and waits until nobody is in the middle of atomic instructions; who begins these says so by a plain
//! store and looks. After the barrier either its look is over, and its store is seen, or it sees what was said.
//!
//! Who does not get a lock takes a ticket, and tickets are served in their order. Only who holds another lock of the window
//! already may share one past those who wait, for they may wait for what it holds. And while the next one has left its core
//! to others, as ranks do that have to share cores, who has a core may have the lock exclusively: else it would lie idle until
//! the system lets that one run. Nobody passes who waits to share the lock, or has looked in vain at its turn as often as
//! there are ranks ([`super::locks`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};
use std::time::{Duration, Instant};

use super::barrier::Barrier;
use super::epoch::LockType;
use super::operation::{self, Area, Operation, Place, Verb};
use super::{Member, packed};
use crate::datatype;
use crate::error::{Class, Result, fail};
use crate::mem;
use fabric::Bell;

/// Bit of the lock: it is held exclusively. The rest counts those who share it.
const EXCLUSIVE: u32 = 1 << 31;
/// Where the words of a rank are, in bytes.
const LOCK: usize = 0;
const WAITERS: usize = 4;
const GUARD: usize = 8;
const NEXT: usize = 12;
const SERVED: usize = 16;
/// [`LOOKS`], and [`SHARES`] for each that waits to share the lock: 0 while an exclusive lock may pass who is next.
const LOOKING: usize = 20;
/// Who is next looks at the lock.
const LOOKS: u32 = 1;
/// Somebody waits to share the lock.
const SHARES: u32 = 2;
/// What a rank has attached to a dynamic window: how often that has changed, twice, and one more while it changes; how many
/// regions there are, and their address, which is that of memory of this rank.
const CHANGES: usize = 24;
const REGIONS: usize = 28;
const PLACE: [usize; 2] = [32, 36];
/// Words of a barrier, by round.
pub(super) const ROUNDS: usize = 64;
const BUSY: usize = ROUNDS + 32 * 4;
/// The last barrier behind which its rank has heeded all that it was told before.
const HEEDED: usize = BUSY + 4;
const STILL: usize = BUSY + 64;
/// Bytes before the counters of a rank: the words above, those of different writers on lines of their own, and as many
/// rounds as any number of ranks needs.
const HEAD_BYTES: usize = STILL + 64;
/// How long an element is guarded at most: a rank that dies meanwhile would keep it for ever.
const GUARD_PATIENCE: Duration = Duration::from_secs(60);

/// Where the words are that the ranks of a window share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    base: usize,
    /// How many ranks there are.
    pub ranks: usize,
    /// This one.
    pub me: usize,
}

impl Words {
    /// Hands over a word of a rank.
    #[inline(always)]
    pub fn word<R>(self, rank: u32, at: usize, f: impl FnOnce(&AtomicU32) -> R) -> R {
        mem::word(self.base + rank as usize * Control::stride(self.ranks) + at, f)
    }
}

/// The words of a window, and what of them this rank has used up.
#[derive(Debug)]
pub struct Control {
    words: Words,
    /// Of each rank: posts that this rank has told it.
    posted: Box<[u32]>,
    /// Of each rank: completes that this rank has told it.
    completed: Box<[u32]>,
    /// Of each rank: its posts that have been used up.
    posts: Box<[u32]>,
    /// Of each rank: its completes that have been used up.
    completes: Box<[u32]>,
    barrier: Barrier,
}

/// Which counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// That a window is exposed.
    Post,
    /// That the operations of an epoch are done.
    Complete,
}

impl Control {
    /// Bytes of the words of a window of so many ranks, all zero at first.
    pub fn bytes(ranks: usize) -> usize {
        ranks * Control::stride(ranks)
    }

    fn stride(ranks: usize) -> usize {
        (HEAD_BYTES + ranks * 12).next_multiple_of(64)
    }

    /// The words at this address, for rank `me`.
    pub fn new(base: usize, ranks: usize, me: usize) -> Control {
        let zero = || vec![0; ranks].into_boxed_slice();
        let (posted, completed, posts, completes) = (zero(), zero(), zero(), zero());
        let words = Words { base, ranks, me };
        Control { words, posted, completed, posts, completes, barrier: Barrier::default() }
    }

    /// All words of this rank are zero again, for a window after the one that had them.
    pub fn clear(&self) {
        for at in (0..Control::stride(self.words.ranks)).step_by(4) {
            self.word(self.words.me as u32, at, |word| word.store(0, Ordering::Relaxed));
        }
    }

    #[inline(always)]
    fn word<R>(&self, rank: u32, at: usize, f: impl FnOnce(&AtomicU32) -> R) -> R {
        self.words.word(rank, at, f)
    }

    #[inline(always)]
    fn counter(&self, told: Told, from: u32) -> usize {
        let skip = if told == Told::Post { 0 } else { self.words.ranks * 4 };
        HEAD_BYTES + skip + from as usize * 4
    }

    /// Takes the lock of a target if it is free and nobody is before this rank or the next one is away, or, where this
    /// rank `holds` another one, if it can be shared.
    #[inline]
    pub fn try_lock(&self, target: u32, kind: LockType, holds: bool) -> bool {
        let held = |at| self.word(target, at, |word| word.load(Ordering::Acquire));
        let overtakes = match kind {
            LockType::Shared => holds,
            LockType::Exclusive => held(LOOKING) == 0,
        };
        (overtakes || held(NEXT) == held(SERVED)) && self.seize(target, kind)
    }

    #[inline]
    fn seize(&self, target: u32, kind: LockType) -> bool {
        self.word(target, LOCK, |word| match kind {
            // Who looks only leaves the word where it is.
            LockType::Exclusive if word.load(Ordering::SeqCst) != 0 => false,
            LockType::Exclusive => {
                word.compare_exchange(0, EXCLUSIVE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            }
            LockType::Shared => word
                .fetch_update(Ordering::SeqCst, Ordering::Relaxed, |held| {
                    (held & EXCLUSIVE == 0).then_some(held + 1)
                })
                .is_ok(),
        })
    }

    /// This rank begins to wait for the lock of a target; its ticket.
    pub fn queue(&self, target: u32, kind: LockType) -> u32 {
        self.waits(target);
        if kind == LockType::Shared {
            self.word(target, LOOKING, |word| word.fetch_add(SHARES, Ordering::SeqCst));
        }
        self.word(target, NEXT, |word| word.fetch_add(1, Ordering::SeqCst))
    }

    /// This rank waits for the lock of a target without a ticket, or for what that is to heed.
    pub fn waits(&self, target: u32) {
        self.word(target, WAITERS, |word| word.fetch_add(1, Ordering::SeqCst));
    }

    /// Whether it is this ticket's turn.
    pub fn is_turn(&self, target: u32, ticket: u32) -> bool {
        self.word(target, SERVED, |word| word.load(Ordering::SeqCst)) == ticket
    }

    /// Takes the lock if it is this ticket's turn and the lock is free; else, whether this rank `leaves` its core to others
    /// before it looks again.
    pub fn lock_in_turn(&self, target: u32, kind: LockType, ticket: u32, leaves: bool) -> bool {
        if !self.is_turn(target, ticket) {
            return false;
        }
        self.word(target, LOOKING, |word| word.fetch_or(LOOKS, Ordering::SeqCst));
        let taken = self.seize(target, kind);
        if taken {
            self.waits_no_more(target, kind);
            self.serve_next(target, ticket);
        } else if leaves {
            self.word(target, LOOKING, |word| word.fetch_and(!LOOKS, Ordering::SeqCst));
        }
        taken
    }

    fn waits_no_more(&self, target: u32, kind: LockType) {
        if kind == LockType::Shared {
            self.word(target, LOOKING, |word| word.fetch_sub(SHARES, Ordering::SeqCst));
        }
    }

    fn serve_next(&self, target: u32, ticket: u32) {
        self.word(target, LOOKING, |word| word.fetch_and(!LOOKS, Ordering::SeqCst));
        self.word(target, SERVED, |word| word.store(ticket.wrapping_add(1), Ordering::SeqCst));
    }

    /// This rank waits no longer, its ticket having been `given_up` if it has one and has no lock; whether others wait,
    /// who may have to be woken.
    #[must_use]
    pub fn waited(&self, target: u32, given_up: Option<(u32, LockType)>) -> bool {
        if let Some((ticket, kind)) = given_up {
            self.waits_no_more(target, kind);
            if self.is_turn(target, ticket) {
                self.serve_next(target, ticket);
            }
        }
        self.word(target, WAITERS, |word| word.fetch_sub(1, Ordering::SeqCst)) > 1
    }

    /// Gives the lock of a target back; whether somebody waits for it.
    #[inline]
    #[must_use]
    pub fn unlock(&self, target: u32, kind: LockType) -> bool {
        self.word(target, LOCK, |word| match kind {
            LockType::Exclusive => word.swap(0, Ordering::SeqCst),
            LockType::Shared => word.fetch_sub(1, Ordering::SeqCst),
        });
        self.word(target, WAITERS, |word| word.load(Ordering::SeqCst)) != 0
    }

    /// Runs what changes the regions that this rank has attached, and says where they are then.
    pub fn change_table(&self, change: impl FnOnce() -> (usize, usize)) {
        let store =
            |at, value| self.word(self.words.me as u32, at, |word| word.store(value, Ordering::Release));
        let changes = self.word(self.words.me as u32, CHANGES, |word| word.load(Ordering::Relaxed));
        store(CHANGES, changes.wrapping_add(1));
        fence(Ordering::SeqCst);
        let (addr, count) = change();
        store(REGIONS, count as u32);
        store(PLACE[0], addr as u32);
        store(PLACE[1], (addr as u64 >> 32) as u32);
        store(CHANGES, changes.wrapping_add(2));
    }

    /// How often the regions of a rank have changed.
    #[inline]
    pub fn changes(&self, target: u32) -> u32 {
        fence(Ordering::Acquire);
        self.word(target, CHANGES, |word| word.load(Ordering::Acquire))
    }

    /// Where the regions of a rank are, in its memory, and how many, unless [`Control::changes`] says something else before than behind it.
    pub fn table(&self, target: u32) -> (usize, usize) {
        let load = |at| self.word(target, at, |word| word.load(Ordering::Acquire));
        let addr = u64::from(load(PLACE[1])) << 32 | u64::from(load(PLACE[0]));
        (addr as usize, load(REGIONS) as usize)
    }

    /// Tells a rank, which has to be woken.
    #[inline]
    pub fn tell(&mut self, told: Told, to: u32) {
        let at = self.counter(told, self.words.me as u32);
        let counts = if told == Told::Post { &mut self.posted } else { &mut self.completed };
        let count = &mut counts[to as usize];
        *count = count.wrapping_add(1);
        let count = *count;
        self.word(to, at, |word| word.store(count, Ordering::Release));
    }

    /// Whether a rank has told this one so once more.
    #[inline]
    pub fn has_told(&self, told: Told, rank: u32) -> bool {
        let used = match told {
            Told::Post => self.posts[rank as usize],
            Told::Complete => self.completes[rank as usize],
        };
        self.word(self.words.me as u32, self.counter(told, rank), |word| word.load(Ordering::Acquire)) != used
    }

    /// Whether all of these have told this rank once more; then that is used up.
    #[inline]
    pub fn heard(&mut self, told: Told, from: &[u32]) -> bool {
        if !from.iter().all(|rank| self.has_told(told, *rank)) {
            return false;
        }
        let counts = if told == Told::Post { &mut self.posts } else { &mut self.completes };
        from.iter().for_each(|rank| counts[*rank as usize] = counts[*rank as usize].wrapping_add(1));
        true
    }

    /// Tells a rank how many messages of this one it has been sent: that many are to be heeded by who hears of what is told behind this.
    pub fn count(&self, to: u32, messages: u32) {
        self.word(to, self.messages(self.words.me as u32), |word| word.store(messages, Ordering::Release));
    }

    /// How many messages a rank has sent this one, as far as it has said.
    #[inline]
    pub fn counted(&self, from: u32) -> u32 {
        self.word(self.words.me as u32, self.messages(from), |word| word.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn messages(&self, from: u32) -> usize {
        HEAD_BYTES + self.words.ranks * 8 + from as usize * 4
    }

    /// This rank has heeded all that it was told before the last barrier; whether somebody waits for that, or for its lock.
    #[must_use]
    pub fn heeds(&self) -> bool {
        let (me, serial) = (self.words.me as u32, self.barriers());
        self.word(me, HEEDED, |word| word.store(serial, Ordering::SeqCst));
        self.word(me, WAITERS, |word| word.load(Ordering::SeqCst)) != 0
    }

    /// Whether a rank has heeded all that it was told before the last barrier behind which any had to.
    #[inline]
    pub fn has_heeded(&self, rank: u32) -> bool {
        let serial = self.word(rank, HEEDED, |word| word.load(Ordering::Acquire));
        serial.wrapping_sub(self.barrier.told_at()) as i32 >= 0
    }

    /// How many barriers have begun.
    pub fn barriers(&self) -> u32 {
        self.barrier.serial()
    }

    /// The rank before this one and what it has said with the barrier that is over, if this rank has said something else.
    #[inline]
    pub fn differs(&self) -> Option<(u32, u32)> {
        let Words { ranks, me, .. } = self.words;
        self.barrier.differs().map(|said| (((me + ranks - 1) % ranks) as u32, said))
    }

    /// As [`Control::differs`], which then is forgotten.
    pub fn take_differs(&mut self) -> Option<(u32, u32)> {
        let differs = self.differs();
        self.barrier.agrees();
        differs
    }

    /// A barrier that is over is to be over again when [`Control::meet`] is called next: that one tells what was wrong, or waits for more.
    #[cold]
    pub fn meet_again(&mut self) {
        self.barrier.again(self.words);
    }

    /// Begins a barrier of all ranks, or goes on with it; whether it is over ([`Barrier::meet`]).
    #[inline]
    pub fn meet(&mut self, says: u32, wake: impl FnMut(u32)) -> bool {
        self.barrier.meet::<false>(self.words, says, wake)
    }

    /// The same where ranks may have [told](Control::tells) others something; then whether any has.
    #[inline]
    pub fn meet_told(&mut self, says: u32, wake: impl FnMut(u32)) -> Option<bool> {
        self.barrier.meet::<true>(self.words, says, wake).then(|| self.barrier.was_told())
    }

    /// This rank has told others something, of which the barrier that begins next says so.
    pub fn tells(&mut self) {
        self.barrier.tells();
    }

    #[inline(always)]
    fn try_guard(&self, target: u32) -> bool {
        let mine = self.words.me as u32 + 1;
        self.word(target, GUARD, |word| {
            let is_free = word.load(Ordering::Relaxed) == 0;
            is_free && word.compare_exchange(0, mine, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })
    }

    #[inline(always)]
    fn end_guard(&self, target: u32) {
        self.word(target, GUARD, |word| word.store(0, Ordering::Release));
    }

    /// Runs `f` while no other rank changes elements of this target under its guard.
    pub(super) fn alone(&self, target: u32, f: &mut dyn FnMut()) -> Result {
        if !self.try_guard(target) {
            let start = Instant::now();
            while !self.try_guard(target) {
                if start.elapsed() > GUARD_PATIENCE {
                    let holder = self.word(target, GUARD, |word| word.load(Ordering::Relaxed));
                    let text = format!(
                        "rank {} of the window keeps elements of target {target} for {} s",
                        holder.wrapping_sub(1),
                        GUARD_PATIENCE.as_secs()
                    );
                    return fail(Class::RMA_CONFLICT, text);
                }
                std::thread::yield_now();
            }
        }
        f();
        self.end_guard(target);
        Ok(())
    }

    /// Whether elements of a target are changed under its guard alone.
    #[inline(always)]
    fn is_guarded(&self, target: u32) -> bool {
        self.word(target, STILL, |word| word.load(Ordering::Acquire)) != 0
    }

    /// Changes an element of a target at once: `by_atomics`, or `without` under its guard, as it is done there; whether
    /// it is done.
    #[inline(always)]
    pub fn change_now(
        &self,
        target: u32,
        looks: u32,
        by_atomics: impl FnOnce(),
        without: impl FnOnce(),
    ) -> bool {
        if !self.is_guarded(target) {
            return self.briefly(target, by_atomics);
        }
        let taken = (0..looks).any(|_| self.try_guard(target));
        if taken {
            without();
            self.end_guard(target);
        }
        taken
    }

    /// Changes a run of elements of a target `without` atomic instructions, under its guard, if that is how they are
    /// changed there; whether it is done.
    #[inline(always)]
    pub fn change_run_now(&self, target: u32, looks: u32, without: impl FnOnce()) -> bool {
        self.is_guarded(target) && self.change_now(target, looks, || {}, without)
    }

    /// Runs what changes elements of a target by atomic instructions, unless they are changed under its guard; whether
    /// it has.
    #[inline(always)]
    fn briefly(&self, target: u32, f: impl FnOnce()) -> bool {
        self.word(self.words.me as u32, BUSY, |word| word.store(1, Ordering::Relaxed));
        // The barrier of who guards them orders the processor; the compiler must not look first either.
        compiler_fence(Ordering::SeqCst);
        let may = !self.is_guarded(target);
        if may {
            f();
        }
        self.word(self.words.me as u32, BUSY, |word| word.store(0, Ordering::Release));
        may
    }

    /// From here on elements of a target are changed under its guard alone.
    fn guard_from_now(&self, target: u32, bell: &dyn Bell) -> Result {
        let mut done = Ok(());
        self.alone(target, &mut || {
            if !self.is_guarded(target) {
                self.word(target, STILL, |word| word.store(1, Ordering::SeqCst));
                bell.barrier();
                done = self.wait_for_atomics();
            }
        })?;
        done
    }

    /// Waits until nobody is in the middle of atomic instructions.
    fn wait_for_atomics(&self) -> Result {
        let start = Instant::now();
        for rank in 0..self.words.ranks as u32 {
            while self.word(rank, BUSY, |word| word.load(Ordering::Acquire)) != 0 {
                if start.elapsed() > GUARD_PATIENCE {
                    let seconds = GUARD_PATIENCE.as_secs();
                    let text = format!(
                        "rank {rank} of the window is in the middle of an accumulate for {seconds} s"
                    );
                    return fail(Class::RMA_CONFLICT, text);
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// Runs what changes elements of an area, given what it finds there.
    fn change(
        &self,
        (target, area, addr): (u32, &Area, usize),
        is_alone: bool,
        bell: &dyn Fn() -> Option<Arc<dyn Bell>>,
        f: &mut dyn FnMut(&Place) -> Result,
    ) -> Result {
        let guard = |f: &mut dyn FnMut()| self.alone(target, f);
        let briefly = |f: &mut dyn FnMut()| {
            let done = self.briefly(target, &mut *f);
            if done { Ok(()) } else { self.alone(target, f) }
        };
        let at = Place { addr, alone: &guard, briefly: &briefly, is_alone };
        if is_alone {
            return f(&at);
        }
        let is_run = area.ty.basic().is_some_and(|basic| area.len() > u64::from(basic.size()));
        if is_run
            && !self.is_guarded(target)
            && let Some(bell) = bell()
        {
            self.guard_from_now(target, &*bell)?;
        }
        if !self.is_guarded(target) {
            return f(&at);
        }
        let mut done = Ok(());
        self.alone(target, &mut || done = f(&Place { is_alone: true, ..at }))?;
        done
    }

    /// Carries an operation out; `is_alone`: nobody else touches the target meanwhile. Without `bell` elements are never
    /// changed under a guard that atomic instructions do for.
    pub fn operate(
        &self,
        operation: &Operation,
        member: &Member,
        is_alone: bool,
        bell: &dyn Fn() -> Option<Arc<dyn Bell>>,
    ) -> Result {
        let Operation { verb, target, area, data, result, compare } = operation;
        let addr = area.locate(member.base, member.size, member.unit, *target)?;
        let there = datatype::Buffer { base: addr, count: area.count, ty: &area.ty };
        let change =
            |f: &mut dyn FnMut(&Place) -> Result| self.change((*target, area, addr), is_alone, bell, f);
        let here = |buffer: &crate::request::Buffer| (buffer.addr, buffer.count, buffer.ty.clone());
        match verb {
            Verb::Put => {
                let (base, count, ty) = here(data);
                datatype::copy(datatype::Buffer { base, count, ty: &ty }, there);
            }
            Verb::Get => {
                let (base, count, ty) = here(result.as_ref().expect("a get has a result"));
                datatype::copy(there, datatype::Buffer { base, count, ty: &ty });
            }
            Verb::Accumulate(op) => {
                packed(data, |data| change(&mut |at| operation::accumulate(*op, area, at, data, None)))?
            }
            Verb::Fetch(op) => {
                let result = result.as_ref().expect("a fetch has a result");
                let mut old = vec![0; area.len() as usize];
                packed(data, |data| {
                    change(&mut |at| operation::accumulate(*op, area, at, data, Some(&mut old)))
                })?;
                result.ty.unpack(result.addr, result.count, 0, &old);
            }
            Verb::Swap => {
                let result = result.as_ref().expect("a swap has a result");
                let mut old = vec![0; area.len() as usize];
                packed(data, |new| {
                    mem::with(*compare, new.len(), |compare| {
                        change(&mut |at| operation::swap(area, at, new, compare, &mut old))
                    })
                })?;
                result.ty.unpack(result.addr, result.count, 0, &old);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn two(memory: &[u64]) -> [Control; 2] {
        [0, 1].map(|me| Control::new(memory.as_ptr() as usize, 2, me))
    }

    #[test]
    fn locks_and_counters_of_two_ranks() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [mut one, mut other] = two(&memory);
        assert!(one.try_lock(1, LockType::Shared, false) && other.try_lock(1, LockType::Shared, false));
        assert!(!one.try_lock(1, LockType::Exclusive, true) && one.try_lock(0, LockType::Exclusive, true));
        other.waits(0);
        assert!(!other.try_lock(0, LockType::Shared, true));
        assert!(one.unlock(0, LockType::Exclusive) && other.try_lock(0, LockType::Shared, true));
        assert!(!other.waited(0, None) && !other.unlock(0, LockType::Shared));
        assert!(!one.heard(Told::Post, &[1]));
        other.tell(Told::Post, 0);
        assert!(!one.heard(Told::Complete, &[1]) && !one.heard(Told::Post, &[0, 1]));
        assert!(one.heard(Told::Post, &[1]) && !one.heard(Told::Post, &[1]));
        drop(std::hint::black_box(memory));
    }

    struct Fence;

    impl Bell for Fence {
        fn arm(&self) {}
        fn sleep(&self, _: Duration) {}
        fn ring(&self) {}
        fn barrier(&self) {
            std::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    #[test]
    fn from_the_first_run_on_elements_are_changed_under_the_guard() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [one, other] = two(&memory);
        let changed = |control: &Control, target| {
            let way = Cell::new("not");
            let done = control.change_now(target, 2, || way.set("by atomics"), || way.set("guarded"));
            assert_eq!(done, way.get() != "not");
            way.get()
        };
        assert_eq!((changed(&one, 0), changed(&other, 0)), ("by atomics", "by atomics"));
        one.guard_from_now(0, &Fence).unwrap();
        assert_eq!((changed(&one, 0), changed(&other, 0)), ("guarded", "guarded"));
        assert_eq!(changed(&other, 1), "by atomics", "another target");
        one.alone(0, &mut || assert_eq!(changed(&other, 0), "not", "changed what another one changes"))
            .unwrap();
        assert!(!other.briefly(0, || panic!("changed what is guarded")));
        assert_eq!(changed(&other, 0), "guarded");
        drop(std::hint::black_box(memory));
    }

    #[test]
    fn what_is_attached_is_found_where_it_is_said_to_be() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [one, other] = two(&memory);
        assert_eq!((other.changes(0), other.table(0)), (0, (0, 0)));
        let mut during = 0;
        one.change_table(|| {
            during = other.changes(0);
            (0x1234_5678_9abc, 3)
        });
        assert!(during % 2 == 1, "nobody is told that it changes");
        assert_eq!((other.changes(0), other.table(0)), (2, (0x1234_5678_9abc, 3)));
        assert_eq!(other.changes(1), 0, "another rank");
        drop(std::hint::black_box(memory));
    }

    #[test]
    fn an_exclusive_lock_is_not_overtaken() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [one, other] = two(&memory);
        assert!(one.try_lock(0, LockType::Shared, false));
        let first = other.queue(0, LockType::Exclusive);
        assert!(!other.lock_in_turn(0, LockType::Exclusive, first, false));
        assert!(!one.try_lock(0, LockType::Shared, false), "a shared lock overtook");
        let second = one.queue(0, LockType::Shared);
        assert!(!one.lock_in_turn(0, LockType::Shared, second, false), "a ticket was served too early");
        assert!(one.unlock(0, LockType::Shared) && other.lock_in_turn(0, LockType::Exclusive, first, false));
        assert!(other.waited(0, None) && !one.lock_in_turn(0, LockType::Shared, second, false));
        assert!(other.unlock(0, LockType::Exclusive) && one.lock_in_turn(0, LockType::Shared, second, false));
        assert!(!one.waited(0, None) && other.try_lock(0, LockType::Shared, false));
        // Who gives up at its turn leaves it to the next.
        let queue = |of: &Control| of.queue(1, LockType::Exclusive);
        let (third, fourth) = (queue(&one), queue(&other));
        assert!(
            one.waited(1, Some((third, LockType::Exclusive)))
                && other.lock_in_turn(1, LockType::Exclusive, fourth, false)
        );
        drop(std::hint::black_box(memory));
    }

    #[test]
    fn an_exclusive_lock_passes_who_is_away_and_nobody_else() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [one, other] = two(&memory);
        let passes = |kind| one.try_lock(0, kind, false);
        assert!(one.try_lock(0, LockType::Exclusive, false));
        let ticket = other.queue(0, LockType::Exclusive);
        let turn = |leaves| other.lock_in_turn(0, LockType::Exclusive, ticket, leaves);
        let gives_back = || one.unlock(0, LockType::Exclusive);
        assert!(!turn(true) && gives_back());
        assert!(!passes(LockType::Shared), "a shared lock passed one that waits");
        assert!(passes(LockType::Exclusive), "the lock lies idle while who is next is away");
        assert!(!turn(false) && gives_back());
        assert!(!passes(LockType::Exclusive), "the lock passed one that looks");
        assert!(turn(false) && !other.waited(0, None) && !other.unlock(0, LockType::Exclusive));
        // Nor does it pass one that waits to share it, before and behind its look.
        assert!(passes(LockType::Exclusive));
        let ticket = other.queue(0, LockType::Shared);
        assert!(gives_back() && !passes(LockType::Exclusive));
        assert!(other.lock_in_turn(0, LockType::Shared, ticket, true) && !other.waited(0, None));
        assert!(!other.unlock(0, LockType::Shared) && passes(LockType::Exclusive));
        drop(std::hint::black_box(memory));
    }
}
