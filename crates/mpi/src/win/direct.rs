//! Windows whose memory all ranks map: operations are loads, stores and atomic instructions of the origin, and what
//! ranks tell each other are words beside the memory. No target takes part.
//!
//! ```text
//! for each rank: lock | who waits for it | guard of elements without atomic instruction | next ticket | ticket served
//!                a word for each round of a barrier
//!                whether it is in the middle of atomic instructions
//!                whether runs of its elements are changed without
//!                posts of each rank to it | completes of each rank to it
//! ```
//!
//! Posts and completes are counted up by the one and compared by the other with what it has used up, and barriers are
//! numbered, so the words need no reset and no message. Each of them has one writer, so they are stores, not atomic
//! read-modify-writes.
//!
//! A long run of elements is changed faster without atomic instructions. Who does so takes the guard of the target, says
//! so, has all cores put their stores and loads in order (`membarrier`) and waits until nobody is in the middle of
//! atomic instructions; who begins these says so by a plain store and looks. After the barrier either its look is over,
//! and its store is seen, or it sees what was said.
//!
//! Who does not get a lock takes a ticket, and tickets are served in their order: nobody overtakes. Only who holds
//! another lock of the window already may share one past those who wait, for they may wait for what it holds.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use std::time::{Duration, Instant};

use super::epoch::LockType;
use super::operation::{self, Area, Operation, Place, Verb};
use super::{Member, packed};
use crate::datatype;
use crate::error::{Class, Result, fail};
use crate::mem;
use crate::op::Predefined;
use fabric::Bell;

/// Bit of the lock: it is held exclusively. The rest counts those who share it.
const EXCLUSIVE: u32 = 1 << 31;
/// Where the words of a rank are, in bytes.
const LOCK: usize = 0;
const WAITERS: usize = 4;
const GUARD: usize = 8;
const NEXT: usize = 12;
const SERVED: usize = 16;
const ROUNDS: usize = 64;
const BUSY: usize = ROUNDS + 32 * 4;
const STILL: usize = BUSY + 64;
/// Bytes before the counters of a rank: the words above, those of different writers on lines of their own, and as many
/// rounds as any number of ranks needs.
const HEAD_BYTES: usize = STILL + 64;
/// Bytes from which on a run is changed by the cheaper way: below, a look at the clock would show.
pub(super) const LONG_BYTES: u64 = 1024;
/// How long an element is guarded at most: a rank that dies meanwhile would keep it for ever.
const GUARD_PATIENCE: Duration = Duration::from_secs(60);

/// Words that the ranks of a window share.
#[derive(Debug)]
pub struct Control {
    base: usize,
    ranks: usize,
    me: usize,
    /// Of each rank: posts that this rank has told it.
    posted: Box<[u32]>,
    /// Of each rank: completes that this rank has told it.
    completed: Box<[u32]>,
    /// Of each rank: its posts that have been used up.
    posts: Box<[u32]>,
    /// Of each rank: its completes that have been used up.
    completes: Box<[u32]>,
    barrier: Barrier,
    costs: Costs,
}

/// What it costs to change long runs, as measured: ns, and ns per byte; 0: not known yet.
#[derive(Debug, Default)]
struct Costs {
    /// Until nobody is in the middle of atomic instructions.
    still_ns: Cell<f64>,
    /// Without such instructions then.
    plain: Cell<f64>,
    /// With them.
    atomic: Cell<f64>,
}

impl Costs {
    fn learn(cost: &Cell<f64>, ns: f64) {
        let known = cost.get();
        cost.set(if known == 0.0 { ns } else { known + (ns - known) / 8.0 });
    }

    /// Whether atomic instructions are the cheaper way, or not known.
    fn prefer_atomics(&self, len: f64) -> bool {
        let atomic = self.atomic.get();
        atomic * len < self.still_ns.get() + self.plain.get() * len || atomic == 0.0
    }
}

/// How far the last barrier has come.
#[derive(Debug, Default)]
struct Barrier {
    /// Its number.
    serial: u32,
    /// The round whose signal is awaited; `None` between barriers.
    round: Option<u32>,
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
        (HEAD_BYTES + ranks * 8).next_multiple_of(64)
    }

    /// The words at this address, for rank `me`.
    pub fn new(base: usize, ranks: usize, me: usize) -> Control {
        let zero = || vec![0; ranks].into_boxed_slice();
        let (posted, completed, posts, completes) = (zero(), zero(), zero(), zero());
        Control {
            base,
            ranks,
            me,
            posted,
            completed,
            posts,
            completes,
            barrier: Barrier::default(),
            costs: Costs::default(),
        }
    }

    #[inline(always)]
    fn address(&self, rank: u32, at: usize) -> usize {
        self.base + rank as usize * Control::stride(self.ranks) + at
    }

    #[inline(always)]
    fn word<R>(&self, rank: u32, at: usize, f: impl FnOnce(&AtomicU32) -> R) -> R {
        mem::word(self.address(rank, at), f)
    }

    #[inline(always)]
    fn counter(&self, told: Told, from: u32) -> usize {
        let skip = if told == Told::Post { 0 } else { self.ranks * 4 };
        HEAD_BYTES + skip + from as usize * 4
    }

    /// Takes the lock of a target if it is free and nobody is before this rank, or, where this rank `holds` another
    /// one, if it can be shared.
    #[inline]
    pub fn try_lock(&self, target: u32, kind: LockType, holds: bool) -> bool {
        let ticket = |at| self.word(target, at, |word| word.load(Ordering::Acquire));
        let overtakes = holds && kind == LockType::Shared;
        (overtakes || ticket(NEXT) == ticket(SERVED)) && self.seize(target, kind)
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
    pub fn queue(&self, target: u32) -> u32 {
        self.waits(target);
        self.word(target, NEXT, |word| word.fetch_add(1, Ordering::SeqCst))
    }

    /// This rank waits for the lock of a target without a ticket.
    pub fn waits(&self, target: u32) {
        self.word(target, WAITERS, |word| word.fetch_add(1, Ordering::SeqCst));
    }

    /// Takes the lock if it is this ticket's turn and the lock is free.
    pub fn lock_in_turn(&self, target: u32, kind: LockType, ticket: u32) -> bool {
        let is_next = self.word(target, SERVED, |word| word.load(Ordering::SeqCst)) == ticket;
        let taken = is_next && self.seize(target, kind);
        if taken {
            self.serve_next(target, ticket);
        }
        taken
    }

    fn serve_next(&self, target: u32, ticket: u32) {
        self.word(target, SERVED, |word| word.store(ticket.wrapping_add(1), Ordering::SeqCst));
    }

    /// This rank waits no longer, `ticket` having been given up if it has one and has no lock; whether others wait,
    /// who may have to be woken.
    #[must_use]
    pub fn waited(&self, target: u32, given_up: Option<u32>) -> bool {
        if let Some(ticket) = given_up
            && self.word(target, SERVED, |word| word.load(Ordering::SeqCst)) == ticket
        {
            self.serve_next(target, ticket);
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

    /// Tells a rank, which has to be woken.
    #[inline]
    pub fn tell(&mut self, told: Told, to: u32) {
        let at = self.counter(told, self.me as u32);
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
        self.word(self.me as u32, self.counter(told, rank), |word| word.load(Ordering::Acquire)) != used
    }

    /// How many barriers have begun.
    pub fn barriers(&self) -> u32 {
        self.barrier.serial
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

    /// Begins a barrier of all ranks, or goes on with it; whether it is over. In each round a rank signals one that is
    /// twice as far away as in the last, which `wake` wakes (dissemination).
    #[inline]
    pub fn meet(&mut self, mut wake: impl FnMut(u32)) -> bool {
        let (me, ranks) = (self.me as u64, self.ranks as u64);
        let rounds = ranks.next_power_of_two().trailing_zeros();
        let mut round = self.barrier.round.take();
        if round.is_none() {
            self.barrier.serial = self.barrier.serial.wrapping_add(1);
        }
        let serial = self.barrier.serial;
        loop {
            let now = match round {
                // Its number may be that of the next barrier already.
                Some(round) => {
                    let at = ROUNDS + round as usize * 4;
                    let seen = self.word(me as u32, at, |word| word.load(Ordering::Acquire));
                    if (seen.wrapping_sub(serial) as i32) < 0 {
                        self.barrier.round = Some(round);
                        return false;
                    }
                    round + 1
                }
                None => 0,
            };
            if now == rounds {
                return true;
            }
            let to = ((me + (1 << now)) % ranks) as u32;
            self.word(to, ROUNDS + now as usize * 4, |word| word.store(serial, Ordering::Release));
            wake(to);
            round = Some(now);
        }
    }

    /// Runs `f` while no other rank changes elements of this target that have no atomic instruction.
    fn alone(&self, target: u32, f: &mut dyn FnMut()) -> Result {
        let (guard, mine) = (self.address(target, GUARD), self.me as u32 + 1);
        let start = Instant::now();
        loop {
            let taken = mem::word(guard, |word| {
                word.compare_exchange_weak(0, mine, Ordering::Acquire, Ordering::Relaxed)
            });
            match taken {
                Ok(_) => break,
                Err(holder) if start.elapsed() > GUARD_PATIENCE => {
                    let text = format!(
                        "rank {} of the window keeps elements of target {target} for {} s",
                        holder.wrapping_sub(1),
                        GUARD_PATIENCE.as_secs()
                    );
                    return fail(Class::RMA_CONFLICT, text);
                }
                Err(_) => std::thread::yield_now(),
            }
        }
        f();
        mem::word(guard, |word| word.store(0, Ordering::Release));
        Ok(())
    }

    /// Runs what changes elements of a target by atomic instructions, unless somebody changes some without; whether it
    /// has.
    #[inline(always)]
    pub fn briefly(&self, target: u32, f: impl FnOnce()) -> bool {
        self.word(self.me as u32, BUSY, |word| word.store(1, Ordering::Relaxed));
        // The barrier of who changes a long run orders the processor; the compiler must not look first either.
        compiler_fence(Ordering::SeqCst);
        let may = self.word(target, STILL, |word| word.load(Ordering::Acquire)) == 0;
        if may {
            f();
        }
        self.word(self.me as u32, BUSY, |word| word.store(0, Ordering::Release));
        may
    }

    /// Waits until nobody is in the middle of atomic instructions, nor begins them on this target.
    fn hold_still(&self, target: u32, bell: &dyn Bell) -> Result {
        let start = Instant::now();
        self.word(target, STILL, |word| word.store(1, Ordering::SeqCst));
        bell.barrier();
        for rank in 0..self.ranks as u32 {
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
        Costs::learn(&self.costs.still_ns, start.elapsed().as_nanos() as f64);
        Ok(())
    }

    /// Combines the elements of an area; a long run of them by the cheaper way.
    fn combine(
        &self,
        (op, target, area): (Predefined, u32, &Area),
        at: Place,
        data: &[u8],
        mut old: Option<&mut [u8]>,
        bell: Option<&dyn Bell>,
    ) -> Result {
        let len = area.len() as f64;
        let has_atomics = area.ty.basic().is_some_and(|basic| basic.pair().is_none() && basic.size() <= 8);
        let Some(bell) = bell.filter(|_| has_atomics && !at.is_alone && area.len() >= LONG_BYTES) else {
            return operation::accumulate(op, area, &at, data, old);
        };
        let per_byte = |start: Instant| start.elapsed().as_nanos() as f64 / len;
        if self.costs.prefer_atomics(len) {
            let start = Instant::now();
            operation::accumulate(op, area, &at, data, old)?;
            Costs::learn(&self.costs.atomic, per_byte(start));
            return Ok(());
        }
        let mut done = Ok(());
        self.alone(target, &mut || {
            done = self.hold_still(target, bell).and_then(|()| {
                let start = Instant::now();
                let at = Place { is_alone: true, ..at };
                operation::accumulate(op, area, &at, data, old.as_deref_mut())?;
                Costs::learn(&self.costs.plain, per_byte(start));
                Ok(())
            });
            self.word(target, STILL, |word| word.store(0, Ordering::Release));
        })?;
        done
    }

    /// Carries an operation out; `is_alone`: nobody else touches the target meanwhile. With `bell` long runs may be
    /// changed without atomic instructions.
    pub fn operate(
        &self,
        operation: &Operation,
        member: &Member,
        is_alone: bool,
        bell: Option<&dyn Bell>,
    ) -> Result {
        let Operation { verb, target, area, data, result, compare } = operation;
        let addr = area.locate(member.base, member.size, member.unit, *target)?;
        let there = datatype::Buffer { base: addr, count: area.count, ty: &area.ty };
        let alone = |f: &mut dyn FnMut()| self.alone(*target, f);
        let briefly = |f: &mut dyn FnMut()| {
            let done = self.briefly(*target, &mut *f);
            if done { Ok(()) } else { self.alone(*target, f) }
        };
        let at = Place { addr, alone: &alone, briefly: &briefly, is_alone };
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
                packed(data, |data| self.combine((*op, *target, area), at, data, None, bell))?;
            }
            Verb::Fetch(op) => {
                let result = result.as_ref().expect("a fetch has a result");
                let mut old = vec![0; area.len() as usize];
                packed(data, |data| self.combine((*op, *target, area), at, data, Some(&mut old), bell))?;
                result.ty.unpack(result.addr, result.count, 0, &old);
            }
            Verb::Swap => {
                let result = result.as_ref().expect("a swap has a result");
                let mut old = vec![0; area.len() as usize];
                packed(data, |new| {
                    mem::with(*compare, new.len(), |compare| {
                        operation::swap(area, &at, new, compare, &mut old)
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
    fn atomic_instructions_wait_for_who_changes_a_long_run_without() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [one, other] = two(&memory);
        assert!(other.briefly(0, || {}) && one.briefly(0, || {}));
        one.hold_still(0, &Fence).unwrap();
        assert!(!other.briefly(0, || panic!("changed what another one changes")));
        assert!(other.briefly(1, || {}), "another target");
        one.word(0, STILL, |word| word.store(0, Ordering::Release));
        assert!(other.briefly(0, || {}));
        drop(std::hint::black_box(memory));
    }

    #[test]
    fn long_runs_take_the_cheaper_way_once_both_are_known() {
        let costs = Costs::default();
        assert!(costs.prefer_atomics(1e6), "nothing is known");
        Costs::learn(&costs.atomic, 1.0);
        assert!(!costs.prefer_atomics(1e6), "the other way is not known");
        Costs::learn(&costs.still_ns, 5000.0);
        Costs::learn(&costs.plain, 0.25);
        assert!(costs.prefer_atomics(4000.0) && !costs.prefer_atomics(8000.0));
    }

    #[test]
    fn an_exclusive_lock_is_not_overtaken() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let [one, other] = two(&memory);
        assert!(one.try_lock(0, LockType::Shared, false));
        let first = other.queue(0);
        assert!(!other.lock_in_turn(0, LockType::Exclusive, first));
        assert!(!one.try_lock(0, LockType::Shared, false), "a shared lock overtook");
        let second = one.queue(0);
        assert!(!one.lock_in_turn(0, LockType::Shared, second), "a ticket was served too early");
        assert!(one.unlock(0, LockType::Shared) && other.lock_in_turn(0, LockType::Exclusive, first));
        assert!(other.waited(0, None) && !one.lock_in_turn(0, LockType::Shared, second));
        assert!(other.unlock(0, LockType::Exclusive) && one.lock_in_turn(0, LockType::Shared, second));
        assert!(!one.waited(0, None) && other.try_lock(0, LockType::Shared, false));
        // Who gives up at its turn leaves it to the next.
        let (third, fourth) = (one.queue(1), other.queue(1));
        assert!(one.waited(1, Some(third)) && other.lock_in_turn(1, LockType::Exclusive, fourth));
        drop(std::hint::black_box(memory));
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_come() {
        for ranks in 1..=9 {
            let memory = vec![0u64; Control::bytes(ranks) / 8];
            let base = memory.as_ptr() as usize;
            let mut all: Vec<Control> = (0..ranks).map(|me| Control::new(base, ranks, me)).collect();
            for late in 0..3 * ranks {
                let mut left = vec![false; ranks];
                for _ in 0..ranks {
                    for me in (0..ranks).filter(|me| *me != late % ranks) {
                        left[me] = left[me] || all[me].meet(|_| {});
                        assert!(ranks == 1 || !left[me], "rank {me} of {ranks} has left without {late}");
                    }
                }
                for _ in 0..ranks {
                    (0..ranks).for_each(|me| left[me] = left[me] || all[me].meet(|_| {}));
                }
                assert!(left.iter().all(|left| *left), "{left:?}");
            }
            drop(std::hint::black_box(memory));
        }
    }
}
