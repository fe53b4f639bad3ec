//! Waiting: what a rank does while there is nothing to do, and what wakes it.

use std::time::Duration;

/// What to do while there is nothing to do, outside every lock.
pub trait Nap {
    /// Passes a little time: spins, yields, sleeps, or lets virtual time advance.
    fn take(self);

    /// Whether that is to sleep: then the wait is a long one.
    fn sleeps(&self) -> bool {
        false
    }
}

/// What wakes the thread that makes progress while the application is outside MPI.
///
/// A bell belongs to one rank. Peers ring it when they change something that this rank sees only
/// by looking, and only while it is armed: nobody pays for a bell that is not.
pub trait Bell: Send + Sync {
    /// From here on the next change rings; what changed before can be seen by looking.
    fn arm(&self);
    /// Sleeps until the bell has rung since it was armed, at most for the given time.
    fn sleep(&self, longest: Duration);
    /// Rings from inside the process.
    fn ring(&self);
    /// Makes every running thread of this process, and of the other ranks of this host, pass a full memory barrier.
    fn barrier(&self);
}
