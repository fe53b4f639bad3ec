//! The bell of a rank: the word on which a thread that waits inside MPI sleeps, too, with a bit of
//! its own. So peers look at one word, and a message wakes only who asked for it.

use crate::berth::{Berth, Descriptors};
use crate::nap;
use fabric::Bell;
use std::time::Duration;

/// See [`Bell`]; the word lives in the segment, which outlives the thread that holds the bell.
pub struct ShmBell(pub &'static Berth, pub Option<Descriptors>);

impl Bell for ShmBell {
    fn arm(&self) {
        if self.0.announce(nap::ENGINE) {
            nap::barrier();
        }
    }

    fn sleep(&self, longest: Duration) {
        self.0.sleep(self.0.load(), nap::ENGINE, longest, self.1);
    }

    fn ring(&self) {
        self.0.wake(nap::ALL);
    }

    fn barrier(&self) {
        nap::barrier();
    }
}
