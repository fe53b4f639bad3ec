//! Several threads of one rank that wait at the same time.
//!
//! Each has a patience of its own: what one of them finds says nothing of how long the others have
//! waited. And what one of them brings about, because it is the one that looks around, may be what
//! another one sleeps for.

use crate::engine::Engine;
use fabric::Device;

impl<D: Device> Engine<D> {
    /// A thread goes on with its wait, in which it has looked around in vain that often; it is one of
    /// `threads` that wait.
    pub fn resume(&mut self, round: u32, threads: usize) {
        self.idle.round = round;
        self.dev.waiters(threads);
    }

    /// How often the wait under way has looked around in vain.
    pub fn round(&self) -> u32 {
        self.idle.round
    }

    /// Something has happened, outside of the protocols, that a thread of this rank may wait for.
    pub fn note(&mut self) {
        self.news = true;
    }

    /// Wakes the threads that sleep, if something has happened that they may wait for.
    #[inline]
    pub fn tell_threads(&mut self) {
        if std::mem::take(&mut self.news) {
            self.dev.wake_threads();
        }
    }
}
