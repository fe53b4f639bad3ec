//! The lock of a window that no memory is shared of, as its owner keeps it: who holds it, who waits, in the order
//! in which they came. Nobody overtakes, so an exclusive lock is not put off for ever.

use std::collections::VecDeque;

use super::epoch::LockType;

/// Who wants a lock, and the tag of the answer.
pub type Claim = (u32, LockType, i32);

/// One lock.
#[derive(Debug, Default)]
pub struct Locks {
    holders: u32,
    exclusive: bool,
    waiting: VecDeque<Claim>,
}

impl Locks {
    /// Somebody wants the lock.
    pub fn claim(&mut self, claim: Claim) {
        self.waiting.push_back(claim);
    }

    /// A holder gives it back; false if nobody held it.
    #[must_use]
    pub fn release(&mut self) -> bool {
        if self.holders == 0 {
            return false;
        }
        self.holders -= 1;
        self.exclusive = false;
        true
    }

    /// The next who gets the lock now.
    pub fn grant(&mut self) -> Option<Claim> {
        let (_, kind, _) = *self.waiting.front()?;
        let is_free = self.holders == 0 || kind == LockType::Shared && !self.exclusive;
        if !is_free {
            return None;
        }
        self.holders += 1;
        self.exclusive = kind == LockType::Exclusive;
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LockType::{Exclusive, Shared};

    #[test]
    fn nobody_overtakes() {
        let mut locks = Locks::default();
        for claim in [(0, Shared, 1), (1, Shared, 2), (2, Exclusive, 3), (3, Shared, 4)] {
            locks.claim(claim);
        }
        assert_eq!(locks.grant(), Some((0, Shared, 1)));
        assert_eq!(locks.grant(), Some((1, Shared, 2)));
        assert_eq!(locks.grant(), None);
        assert!(locks.release());
        assert_eq!(locks.grant(), None);
        assert!(locks.release());
        assert_eq!(locks.grant(), Some((2, Exclusive, 3)));
        assert_eq!(locks.grant(), None);
        assert!(locks.release());
        assert_eq!(locks.grant(), Some((3, Shared, 4)));
        assert!(locks.release() && !locks.release());
    }
}
