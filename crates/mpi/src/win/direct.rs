//! Windows whose memory all ranks map: operations are loads, stores and atomic instructions of the origin, and what
//! ranks tell each other are words beside the memory. No target takes part.
//!
//! ```text
//! for each rank: lock | who waits for it | guard of elements without atomic instruction | …
//!                posts of each rank to it | completes of each rank to it
//! ```
//!
//! Posts and completes are counted up by the one and compared by the other with what it has used up, so the words
//! need no reset and no message.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::epoch::LockType;
use super::operation::{self, Operation, Place, Verb};
use super::{Member, packed};
use crate::datatype;
use crate::error::{Class, Result, fail};
use crate::mem;

/// Bit of the lock: it is held exclusively. The rest counts those who share it.
const EXCLUSIVE: u32 = 1 << 31;
/// Bytes before the counters of a rank.
const HEAD_BYTES: usize = 64;
/// How long an element is guarded at most: a rank that dies meanwhile would keep it for ever.
const GUARD_PATIENCE: Duration = Duration::from_secs(60);

/// Words that the ranks of a window share.
#[derive(Debug)]
pub struct Control {
    base: usize,
    ranks: usize,
    me: usize,
    posts: Box<[u32]>,
    completes: Box<[u32]>,
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
        Control { base, ranks, me, posts: vec![0; ranks].into(), completes: vec![0; ranks].into() }
    }

    fn word(&self, rank: u32, at: usize) -> usize {
        self.base + rank as usize * Control::stride(self.ranks) + at
    }

    fn lock_word(&self, target: u32) -> usize {
        self.word(target, 0)
    }

    fn waiters(&self, target: u32) -> usize {
        self.word(target, 4)
    }

    fn guard(&self, target: u32) -> usize {
        self.word(target, 8)
    }

    fn counter(&self, told: Told, to: u32, from: u32) -> usize {
        let skip = if told == Told::Post { 0 } else { self.ranks * 4 };
        self.word(to, HEAD_BYTES + skip + from as usize * 4)
    }

    /// Takes the lock of a target if it is free.
    pub fn try_lock(&self, target: u32, kind: LockType) -> bool {
        mem::word(self.lock_word(target), |word| match kind {
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

    /// This rank begins, or ends, to wait for the lock of a target.
    pub fn waits(&self, target: u32, begins: bool) {
        mem::word(self.waiters(target), |word| {
            if begins { word.fetch_add(1, Ordering::SeqCst) } else { word.fetch_sub(1, Ordering::SeqCst) }
        });
    }

    /// Gives the lock of a target back; whether somebody waits for it.
    #[must_use]
    pub fn unlock(&self, target: u32, kind: LockType) -> bool {
        mem::word(self.lock_word(target), |word| match kind {
            LockType::Exclusive => word.swap(0, Ordering::SeqCst),
            LockType::Shared => word.fetch_sub(1, Ordering::SeqCst),
        });
        mem::word(self.waiters(target), |word| word.load(Ordering::SeqCst)) != 0
    }

    /// Tells a rank, which has to be woken.
    pub fn tell(&self, told: Told, to: u32) {
        mem::word(self.counter(told, to, self.me as u32), |word| word.fetch_add(1, Ordering::SeqCst));
    }

    /// Whether all of these have told this rank once more; then that is used up.
    pub fn heard(&mut self, told: Told, from: &[u32]) -> bool {
        let me = self.me as u32;
        let used = |control: &Control, rank: u32| match told {
            Told::Post => control.posts[rank as usize],
            Told::Complete => control.completes[rank as usize],
        };
        let has_told = |rank: &u32| {
            let now = mem::word(self.counter(told, me, *rank), |word| word.load(Ordering::SeqCst));
            now != used(self, *rank)
        };
        if !from.iter().all(has_told) {
            return false;
        }
        let counts = if told == Told::Post { &mut self.posts } else { &mut self.completes };
        from.iter().for_each(|rank| counts[*rank as usize] = counts[*rank as usize].wrapping_add(1));
        true
    }

    /// Runs `f` while no other rank changes elements of this target that have no atomic instruction.
    fn alone(&self, target: u32, f: &mut dyn FnMut()) -> Result {
        let (guard, mine) = (self.guard(target), self.me as u32 + 1);
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

    /// Carries an operation out.
    pub fn operate(&self, operation: &Operation, member: &Member) -> Result {
        let Operation { verb, target, area, data, result, compare } = operation;
        let addr = area.locate(member.base, member.size, member.unit, *target)?;
        let there = datatype::Buffer { base: addr, count: area.count, ty: &area.ty };
        let alone = |f: &mut dyn FnMut()| self.alone(*target, f);
        let at = Place { addr, alone: &alone };
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
            Verb::Accumulate(op) => packed(data, |data| operation::accumulate(*op, area, &at, data, None))?,
            Verb::Fetch(op) => {
                let result = result.as_ref().expect("a fetch has a result");
                let mut old = vec![0; area.len() as usize];
                packed(data, |data| operation::accumulate(*op, area, &at, data, Some(&mut old)))?;
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

    #[test]
    fn locks_and_counters_of_two_ranks() {
        let memory = vec![0u64; Control::bytes(2) / 8];
        let base = memory.as_ptr() as usize;
        let [mut one, other] = [0, 1].map(|me| Control::new(base, 2, me));
        assert!(one.try_lock(1, LockType::Shared) && other.try_lock(1, LockType::Shared));
        assert!(!one.try_lock(1, LockType::Exclusive) && one.try_lock(0, LockType::Exclusive));
        other.waits(0, true);
        assert!(!other.try_lock(0, LockType::Shared));
        assert!(one.unlock(0, LockType::Exclusive) && other.try_lock(0, LockType::Shared));
        assert!(!one.heard(Told::Post, &[1]));
        other.tell(Told::Post, 0);
        assert!(!one.heard(Told::Complete, &[1]) && !one.heard(Told::Post, &[0, 1]));
        assert!(one.heard(Told::Post, &[1]) && !one.heard(Told::Post, &[1]));
        drop(std::hint::black_box(memory));
    }
}
