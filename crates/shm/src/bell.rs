//! The bell of a rank: the word on which a thread that waits inside MPI sleeps, too, with a bit of
//! its own. So peers look at one word, and a message wakes only who asked for it.

use crate::nap;
use crate::sync::{AtomicU32, Ordering};
use fabric::Bell;
use std::time::Duration;

/// See [`Bell`]; the word lives in the segment, which outlives the thread that holds the bell.
pub struct ShmBell(pub &'static AtomicU32);

impl Bell for ShmBell {
    fn arm(&self) {
        if nap::announce(self.0, nap::ENGINE) {
            nap::barrier();
        }
    }

    fn sleep(&self, longest: Duration) {
        nap::sleep(self.0, self.0.load(Ordering::Relaxed), nap::ENGINE, longest);
    }

    fn ring(&self) {
        nap::wake(self.0, nap::ALL);
    }

    fn barrier(&self) {
        nap::barrier();
    }
}
