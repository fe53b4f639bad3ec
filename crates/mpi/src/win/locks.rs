//! Locks and those who wait for them, in the order in which they came. Nobody overtakes, so an exclusive lock is not put
//! off for ever. Of a window that no memory is shared of its owner keeps them ([`Locks`]); else a word of the target and
//! tickets do, where who has no core is passed a few times ([`super::direct`]).

use std::cell::Cell;
use std::collections::VecDeque;

use super::epoch::LockType;
use super::message::Record;
use super::soon;
use crate::error::Result;
use crate::handle::Handle;
use crate::world::World;
use fabric::Device;
use proto::event::Event;

/// Who wants a lock, and the tag of the answer.
pub type Claim = (u32, LockType, i32);

/// One lock.
#[derive(Debug, Default)]
pub struct Locks {
    holders: Vec<u32>,
    exclusive: bool,
    waiting: VecDeque<Claim>,
}

impl Locks {
    /// Somebody wants the lock.
    pub fn claim(&mut self, claim: Claim) {
        self.waiting.push_back(claim);
    }

    /// A holder gives it back; false if it did not hold it.
    #[must_use]
    pub fn release(&mut self, holder: u32) -> bool {
        let Some(at) = self.holders.iter().position(|held| *held == holder) else { return false };
        self.holders.swap_remove(at);
        self.exclusive = false;
        true
    }

    /// A rank has died: what it held is free, and it waits for nothing.
    pub fn lose(&mut self, rank: u32) {
        self.waiting.retain(|(from, ..)| *from != rank);
        while self.release(rank) {}
    }

    /// The next who gets the lock now.
    pub fn grant(&mut self) -> Option<Claim> {
        let (from, kind, _) = *self.waiting.front()?;
        let is_free = self.holders.is_empty() || kind == LockType::Shared && !self.exclusive;
        if !is_free {
            return None;
        }
        self.holders.push(from);
        self.exclusive = kind == LockType::Exclusive;
        self.waiting.pop_front()
    }
}

/// The wait for the lock of a target in shared memory.
#[derive(Debug)]
pub struct Waiting {
    target: u32,
    kind: LockType,
    /// `None`: may share it whenever nobody holds it exclusively.
    ticket: Option<u32>,
    /// How often it has left its core at its turn.
    left: Cell<usize>,
}

impl Waiting {
    /// Whether others may pass while this rank, whose turn it is, leaves its core: no more often than there are `ranks`,
    /// so that who always finds the lock held again has it in the end.
    fn lets_pass(&self, ranks: usize) -> bool {
        let left = self.left.get();
        self.left.set((left + 1).min(ranks));
        left < ranks
    }
}

/// What has become of a lock that was asked for.
#[derive(Debug)]
pub enum Asked {
    /// It is held.
    Taken,
    /// [`World::lock_in_turn`] tells when it is held.
    Waits(Waiting),
    /// The target has to be told, for memory is not shared.
    Elsewhere,
}

impl<D: Device> World<D> {
    /// Asks for the lock of a target; `is_one`: by MPI_Win_lock, with which a program may lock in any order.
    pub fn ask_lock(&mut self, win: Handle, target: u32, kind: LockType, is_one: bool) -> Result<Asked> {
        self.engine.count(Event::WindowLock);
        assert!(self.objects.windows.claim.is_none(), "a lock that was asked for before is held before");
        let window = self.window(win)?;
        let overtakes = is_one && kind == LockType::Shared && window.epoch.holds_single();
        let control = match (window.path.control(), is_one && target != window.place.rank) {
            (Some(control), _) => control,
            // What follows may wait at the target as well as here (MPI 5.0 section 12.5.3), where this rank looks at its own memory aside.
            (None, true) => {
                window.active().into_iter().for_each(|active| active.tell(target, &Record::Lock(kind, 0)));
                self.objects.windows.claim = Some((win, target));
                return Ok(Asked::Taken);
            }
            (None, false) => return Ok(Asked::Elsewhere),
        };
        if control.try_lock(target, kind, overtakes) {
            return Ok(Asked::Taken);
        }
        let ticket = (!overtakes).then(|| control.queue(target, kind));
        if ticket.is_none() {
            control.waits(target);
        }
        self.engine.count(Event::WindowLockWaited);
        Ok(Asked::Waits(Waiting { target, kind, ticket, left: Cell::new(0) }))
    }

    /// Takes the lock if it is this rank's turn.
    pub fn lock_in_turn(&mut self, win: Handle, waiting: &Waiting) -> Result<bool> {
        // The words do not say who holds it.
        self.all_are_there(win)?;
        let goes = self.engine.round() >= self.engine.looks_near();
        let window = self.window(win)?;
        let Some(control) = window.path.control() else { return Ok(false) };
        let Waiting { target, kind, ticket, .. } = *waiting;
        Ok(match ticket {
            Some(ticket) if !control.is_turn(target, ticket) => false,
            Some(ticket) => {
                let leaves = goes && waiting.lets_pass(window.members.len());
                control.lock_in_turn(target, kind, ticket, leaves)
            }
            None => control.try_lock(target, kind, true),
        })
    }

    /// The wait is over, with the lock or without.
    pub fn waited_for_lock(&mut self, win: Handle, waiting: &Waiting, locked: bool) -> Result {
        let World { objects, engine, .. } = self;
        let window = objects.windows.find_mut(win)?;
        let Some(control) = window.path.control() else { return Ok(()) };
        let given_up = waiting.ticket.filter(|_| !locked).map(|ticket| (ticket, waiting.kind));
        if control.waited(waiting.target, given_up) {
            soon::wake_all(window, engine);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockType::{Exclusive, Shared};

    #[test]
    fn others_pass_as_often_as_there_are_ranks() {
        let waiting = Waiting { target: 0, kind: Exclusive, ticket: Some(7), left: Cell::new(0) };
        assert_eq!((0..10).filter(|_| waiting.lets_pass(4)).count(), 4);
        assert!(!waiting.lets_pass(4));
    }

    #[test]
    fn nobody_overtakes() {
        let mut locks = Locks::default();
        for claim in [(0, Shared, 1), (1, Shared, 2), (2, Exclusive, 3), (3, Shared, 4)] {
            locks.claim(claim);
        }
        assert_eq!(locks.grant(), Some((0, Shared, 1)));
        assert_eq!(locks.grant(), Some((1, Shared, 2)));
        assert_eq!(locks.grant(), None);
        assert!(!locks.release(2) && locks.release(0));
        assert_eq!(locks.grant(), None);
        assert!(locks.release(1));
        assert_eq!(locks.grant(), Some((2, Exclusive, 3)));
        assert_eq!(locks.grant(), None);
        assert!(locks.release(2));
        assert_eq!(locks.grant(), Some((3, Shared, 4)));
        assert!(locks.release(3) && !locks.release(3));
    }

    #[test]
    fn who_has_died_neither_holds_nor_waits() {
        let mut locks = Locks::default();
        for claim in [(0, Exclusive, 1), (0, Exclusive, 2), (1, Exclusive, 3)] {
            locks.claim(claim);
        }
        assert_eq!((locks.grant(), locks.grant()), (Some((0, Exclusive, 1)), None));
        locks.lose(0);
        assert_eq!((locks.grant(), locks.grant()), (Some((1, Exclusive, 3)), None));
    }
}
