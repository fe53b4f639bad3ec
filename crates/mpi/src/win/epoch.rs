//! Epochs of one rank in one window (MPI 5.0 section 12.5): which synchronisation is open, and what may follow.
//!
//! ```text
//!            fence                     start                       complete
//!   none ───────────▶ fence (unused) ─────────────▶ started ──────────────────▶ none
//!                      │  ▲                  lock                    unlock (last)
//!            operation │  │ fence      none ───────▶ locked by target ──────────▶ none
//!                      ▼  │                 lock_all                  unlock_all
//!                     fence (used)     none ───────▶ locked, all ───────────────▶ none
//! ```
//!
//! A fence that nothing has used yet may be followed by any other synchronisation. The exposure epoch of post and
//! wait is independent of the access epoch. What is not drawn is an error that says what is open.

use std::sync::Arc;

use crate::error::{Class, Error, Result, fail};

/// `MPI_MODE_NOCHECK`.
pub const NOCHECK: i32 = 1024;
/// `MPI_MODE_NOPRECEDE`.
pub const NOPRECEDE: i32 = 2048;
/// `MPI_MODE_NOPUT`.
pub const NOPUT: i32 = 4096;
/// `MPI_MODE_NOSTORE`.
pub const NOSTORE: i32 = 8192;
/// `MPI_MODE_NOSUCCEED`.
pub const NOSUCCEED: i32 = 16384;

/// The types of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockType {
    /// `MPI_LOCK_EXCLUSIVE`.
    Exclusive = 301,
    /// `MPI_LOCK_SHARED`.
    Shared = 302,
}

/// A lock that this rank holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Its type.
    pub kind: LockType,
    /// The program has promised that nobody else wants it, so that none was taken.
    pub unchecked: bool,
}

/// Ranks of a window, in the order of a group.
pub type Members = Arc<[u32]>;

/// What of other ranks this rank may touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum Access {
    /// Nothing.
    #[default]
    None,
    /// Everything, until the next fence.
    Fence { used: bool },
    /// Those of [`Epoch::targets`], until `MPI_Win_complete`.
    Started,
    /// Those that are locked: some of [`Epoch::locks`].
    Locked,
    /// Everything, until `MPI_Win_unlock_all`.
    LockedAll { unchecked: bool },
}

/// The epochs of one rank in one window.
#[derive(Debug, Default)]
pub struct Epoch {
    access: Access,
    /// Whom the last access epoch of start is to, the last exposure epoch for. They stay behind it: the same come again,
    /// and to count who holds them would cost as much as the rest of a synchronisation.
    targets: Members,
    origins: Members,
    /// Whether an exposure epoch is open.
    is_exposed: bool,
    /// Targets that are locked one by one, in their order; the memory stays when there are none.
    locks: Vec<(u32, Held)>,
}

impl LockType {
    /// The type of the constant `raw`.
    pub fn from_raw(raw: i32) -> Result<LockType> {
        const EXCLUSIVE: i32 = LockType::Exclusive as i32;
        const SHARED: i32 = LockType::Shared as i32;
        match raw {
            EXCLUSIVE => Ok(LockType::Exclusive),
            SHARED => Ok(LockType::Shared),
            _ => {
                let text =
                    format!("argument `lock_type` is {raw}, must be MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED");
                fail(Class::LOCKTYPE, text)
            }
        }
    }
}

/// Refuses assertions other than `allowed` (MPI 5.0 section 12.5.5).
pub fn check_assert(assert: i32, allowed: i32) -> Result {
    if assert & !allowed == 0 {
        return Ok(());
    }
    let text =
        format!("argument `assert` is {assert}, of which {:#x} has no meaning here", assert & !allowed);
    fail(Class::ASSERT, text)
}

/// Of the assertions of a fence those that all ranks have to give alike (MPI 5.0 section 12.5.5), in two bits.
#[inline]
pub fn common(assert: i32) -> u32 {
    u32::from(assert & NOPRECEDE != 0) | u32::from(assert & NOSUCCEED != 0) << 1
}

/// Another rank has given others of them in the same fence.
pub fn differs(rank: u32, theirs: u32, own: u32) -> Error {
    let names = ["neither", "MPI_MODE_NOPRECEDE", "MPI_MODE_NOSUCCEED", "both"];
    let [theirs, own] = [theirs, own].map(|said| names[said as usize & 3]);
    let text = format!(
        "argument `assert`: of MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED, which all ranks must assert alike, rank {rank} of the \
         window asserts {theirs} in this fence and this rank {own}"
    );
    Error::new(Class::ASSERT, text)
}

#[inline]
fn keep(kept: &mut Members, members: &Members) {
    if !Arc::ptr_eq(kept, members) {
        *kept = members.clone();
    }
}

impl Epoch {
    /// What is open, for a person.
    fn open(&self) -> String {
        match &self.access {
            Access::None => "no access epoch is open".into(),
            Access::Fence { .. } => "an access epoch of MPI_Win_fence is open".into(),
            Access::Started => {
                format!("an access epoch of MPI_Win_start to {} ranks is open", self.targets.len())
            }
            Access::Locked => format!("locks of {} ranks are held", self.locks.len()),
            Access::LockedAll { .. } => "an access epoch of MPI_Win_lock_all is open".into(),
        }
    }

    fn refuse<T>(&self, what: &str) -> Result<T> {
        fail(Class::RMA_SYNC, format!("{what}: {}", self.open()))
    }

    /// Whether another access epoch may begin.
    fn is_free(&self) -> bool {
        matches!(self.access, Access::None | Access::Fence { used: false })
    }

    /// Where the lock of `target` is in the list, or would be.
    #[inline]
    fn place_of(&self, target: u32) -> std::result::Result<usize, usize> {
        self.locks.binary_search_by_key(&target, |(rank, _)| *rank)
    }

    /// Whether an operation on `target` may begin; then it is taken to have begun.
    #[inline]
    pub fn reaches(&mut self, target: u32) -> bool {
        match &mut self.access {
            Access::None => false,
            Access::Fence { used } => {
                *used = true;
                true
            }
            Access::Started => self.targets.contains(&target),
            Access::Locked => self.place_of(target).is_ok(),
            Access::LockedAll { .. } => true,
        }
    }

    /// An operation on `target` is to begin.
    pub fn touch(&mut self, target: u32) -> Result {
        if self.reaches(target) {
            return Ok(());
        }
        self.refuse(&format!("no access epoch includes target {target}"))
    }

    /// Whether nobody else may touch `target` while this rank does.
    #[inline]
    pub fn is_alone(&self, target: u32) -> bool {
        let held = || self.place_of(target).map(|at| self.locks[at].1.kind);
        matches!(self.access, Access::Locked) && held() == Ok(LockType::Exclusive)
    }

    /// An operation that needs a lock, with a request, is to begin.
    pub fn touch_passively(&mut self, target: u32) -> Result {
        self.passive(target)?;
        self.touch(target)
    }

    /// Whether `target` may be flushed.
    pub fn passive(&self, target: u32) -> Result {
        if self.is_passive(target) { Ok(()) } else { self.refuse(&format!("target {target} is not locked")) }
    }

    /// As [`Epoch::passive`].
    #[inline]
    pub fn is_passive(&self, target: u32) -> bool {
        match &self.access {
            Access::Locked => self.place_of(target).is_ok(),
            Access::LockedAll { .. } => true,
            _ => false,
        }
    }

    /// Whether there is a lock at all.
    pub fn any_passive(&self) -> Result {
        if self.has_locks() { Ok(()) } else { self.refuse("no target is locked") }
    }

    /// As [`Epoch::any_passive`].
    #[inline]
    pub fn has_locks(&self) -> bool {
        matches!(self.access, Access::Locked | Access::LockedAll { .. })
    }

    /// Whether one target is locked by itself.
    pub fn holds_single(&self) -> bool {
        matches!(self.access, Access::Locked)
    }

    /// Whether a fence may come now.
    pub fn check_fence(&self, assert: i32) -> Result {
        check_assert(assert, NOSTORE | NOPUT | NOPRECEDE | NOSUCCEED)?;
        if self.is_exposed {
            return fail(
                Class::RMA_SYNC,
                "a fence in an exposure epoch of MPI_Win_post, which MPI_Win_wait ends",
            );
        }
        match self.access {
            Access::None | Access::Fence { used: false } => Ok(()),
            Access::Fence { used: true } if assert & NOPRECEDE != 0 => fail(
                Class::RMA_SYNC,
                "MPI_MODE_NOPRECEDE is asserted, but operations were called since the last fence",
            ),
            Access::Fence { .. } => Ok(()),
            _ => self.refuse("a fence is not possible"),
        }
    }

    /// A fence is over.
    pub fn fenced(&mut self, assert: i32) {
        self.access = if assert & NOSUCCEED != 0 { Access::None } else { Access::Fence { used: false } };
    }

    /// Whether `MPI_Win_start` may come now.
    #[inline]
    pub fn check_start(&self, assert: i32) -> Result {
        check_assert(assert, NOCHECK)?;
        if self.is_free() { Ok(()) } else { self.refuse("an access epoch cannot start") }
    }

    /// All targets have exposed their memory.
    #[inline]
    pub fn start(&mut self, targets: &Members) {
        keep(&mut self.targets, targets);
        self.access = Access::Started;
    }

    /// The targets of the epoch that `MPI_Win_complete` is to end.
    #[inline]
    pub fn started(&self) -> Result<&Members> {
        match &self.access {
            Access::Started => Ok(&self.targets),
            _ => self.refuse("MPI_Win_start has not been called"),
        }
    }

    /// `MPI_Win_post`.
    #[inline]
    pub fn post(&mut self, origins: &Members, assert: i32) -> Result {
        check_assert(assert, NOCHECK | NOSTORE | NOPUT)?;
        if self.is_exposed {
            return fail(Class::RMA_SYNC, "an exposure epoch of MPI_Win_post is open already");
        }
        if matches!(self.access, Access::Fence { used: true }) {
            return self.refuse("an exposure epoch cannot start");
        }
        keep(&mut self.origins, origins);
        self.is_exposed = true;
        Ok(())
    }

    /// The origins of the exposure epoch that `MPI_Win_wait` is to end.
    #[inline]
    pub fn exposed(&self) -> Result<&Members> {
        if self.is_exposed {
            return Ok(&self.origins);
        }
        fail(Class::RMA_SYNC, "no exposure epoch is open: MPI_Win_post has not been called")
    }

    /// The exposure epoch is over.
    #[inline]
    pub fn waited(&mut self) {
        self.is_exposed = false;
    }

    /// Whether `target` may be locked.
    pub fn check_lock(&self, target: u32, assert: i32) -> Result {
        check_assert(assert, NOCHECK)?;
        match &self.access {
            Access::Locked if self.place_of(target).is_ok() => {
                self.refuse(&format!("target {target} is locked already"))
            }
            Access::Locked => Ok(()),
            _ if self.is_free() => Ok(()),
            _ => self.refuse(&format!("target {target} cannot be locked")),
        }
    }

    /// `target` has been locked.
    #[inline]
    pub fn locked(&mut self, target: u32, held: Held) {
        match self.place_of(target) {
            Ok(at) => self.locks[at].1 = held,
            Err(at) => self.locks.insert(at, (target, held)),
        }
        self.access = Access::Locked;
    }

    /// The lock of `target`, which is to be given back.
    #[inline]
    pub fn held(&self, target: u32) -> Result<Held> {
        match &self.access {
            Access::Locked => match self.place_of(target) {
                Ok(at) => Ok(self.locks[at].1),
                Err(_) => self.refuse(&format!("target {target} is not locked")),
            },
            _ => self.refuse(&format!("target {target} was not locked by MPI_Win_lock")),
        }
    }

    /// The lock of `target` has been given back.
    #[inline]
    pub fn unlocked(&mut self, target: u32) {
        if let Ok(at) = self.place_of(target) {
            self.locks.remove(at);
            if self.locks.is_empty() {
                self.access = Access::None;
            }
        }
    }

    /// Whether `MPI_Win_lock_all` may come now.
    pub fn check_lock_all(&self, assert: i32) -> Result {
        check_assert(assert, NOCHECK)?;
        if self.is_free() { Ok(()) } else { self.refuse("all targets cannot be locked") }
    }

    /// All targets have been locked.
    pub fn locked_all(&mut self, unchecked: bool) {
        self.access = Access::LockedAll { unchecked };
    }

    /// Whether no locks were taken by the `MPI_Win_lock_all` whose epoch is to end.
    pub fn held_all(&self) -> Result<bool> {
        match self.access {
            Access::LockedAll { unchecked } => Ok(unchecked),
            _ => self.refuse("MPI_Win_lock_all has not been called"),
        }
    }

    /// The access epoch is over.
    pub fn ended(&mut self) {
        self.access = Access::None;
    }

    /// Whether the window may be freed.
    pub fn check_free(&self) -> Result {
        if self.is_exposed {
            return fail(Class::RMA_SYNC, "an exposure epoch of MPI_Win_post is open");
        }
        if self.is_free() { Ok(()) } else { self.refuse("the window cannot be freed") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: Held = Held { kind: LockType::Shared, unchecked: false };

    fn class<T: std::fmt::Debug>(result: Result<T>) -> Class {
        result.unwrap_err().class
    }

    #[test]
    fn a_fence_opens_and_closes_what_operations_need() {
        let mut epoch = Epoch::default();
        assert_eq!(class(epoch.touch(0)), Class::RMA_SYNC);
        epoch.check_fence(0).unwrap();
        epoch.fenced(0);
        epoch.check_free().unwrap();
        epoch.touch(3).unwrap();
        assert_eq!(class(epoch.check_fence(NOPRECEDE)), Class::RMA_SYNC);
        assert_eq!(class(epoch.check_free()), Class::RMA_SYNC);
        assert_eq!(class(epoch.check_lock(1, 0)), Class::RMA_SYNC);
        epoch.check_fence(NOSUCCEED).unwrap();
        epoch.fenced(NOSUCCEED);
        assert_eq!(class(epoch.touch(3)), Class::RMA_SYNC);
        assert_eq!(class(epoch.check_fence(NOCHECK)), Class::ASSERT);
    }

    #[test]
    fn started_epochs_reach_their_group_alone() {
        let mut epoch = Epoch::default();
        epoch.fenced(0);
        epoch.check_start(0).unwrap();
        epoch.start(&[1, 4].into());
        epoch.touch(4).unwrap();
        assert!(epoch.touch(2).unwrap_err().text.contains("target 2"));
        assert_eq!(class(epoch.check_start(0)), Class::RMA_SYNC);
        assert_eq!(class(epoch.check_fence(0)), Class::RMA_SYNC);
        assert_eq!(class(epoch.passive(4)), Class::RMA_SYNC);
        assert_eq!(**epoch.started().unwrap(), [1, 4]);
        epoch.ended();
        assert_eq!(class(epoch.started()), Class::RMA_SYNC);
    }

    #[test]
    fn an_exposure_is_independent_of_what_is_accessed() {
        let mut epoch = Epoch::default();
        assert_eq!(class(epoch.exposed()), Class::RMA_SYNC);
        epoch.post(&[2].into(), NOPUT).unwrap();
        assert_eq!(class(epoch.post(&[2].into(), 0)), Class::RMA_SYNC);
        epoch.start(&[0].into());
        epoch.ended();
        assert_eq!(class(epoch.check_fence(0)), Class::RMA_SYNC);
        assert_eq!(class(epoch.check_free()), Class::RMA_SYNC);
        epoch.waited();
        epoch.check_fence(0).unwrap();
    }

    #[test]
    fn locks_are_per_target() {
        let mut epoch = Epoch::default();
        epoch.check_lock(1, NOCHECK).unwrap();
        epoch.locked(1, SHARED);
        epoch.locked(2, SHARED);
        assert_eq!(class(epoch.check_lock(1, 0)), Class::RMA_SYNC);
        assert_eq!(class(epoch.check_lock_all(0)), Class::RMA_SYNC);
        epoch.touch_passively(2).unwrap();
        assert_eq!(class(epoch.touch(0)), Class::RMA_SYNC);
        assert_eq!(class(epoch.held(0)), Class::RMA_SYNC);
        epoch.unlocked(1);
        assert_eq!(epoch.held(2), Ok(SHARED));
        assert_eq!(class(epoch.check_free()), Class::RMA_SYNC);
        epoch.unlocked(2);
        epoch.check_free().unwrap();
        epoch.locked_all(false);
        assert_eq!(class(epoch.held(2)), Class::RMA_SYNC);
        epoch.passive(7).unwrap();
        assert_eq!(epoch.held_all(), Ok(false));
        epoch.ended();
        assert_eq!(class(epoch.any_passive()), Class::RMA_SYNC);
    }

    #[test]
    fn lock_types_are_two() {
        assert_eq!(LockType::from_raw(301), Ok(LockType::Exclusive));
        assert_eq!(class(LockType::from_raw(0)), Class::LOCKTYPE);
    }
}
