//! How a rank waits: spins, yields, sleeps.

use crate::berth::{Berth, Descriptors, Ring};
use crate::nap::{LONG_YIELDS, WAITER};
use fabric::Nap;
use std::os::fd::RawFd;
use std::time::Duration;

use super::Shm;

/// What to do until the next look around.
pub enum ShmNap {
    /// Look again at once.
    Spin,
    /// Let another rank of this core run.
    Yield,
    /// Sleep until woken, unless the word has changed since it was seen, or for the given time.
    Sleep(&'static Berth, u32, Duration, Option<Descriptors>),
}

impl Nap for ShmNap {
    #[inline]
    fn take(self) {
        match self {
            ShmNap::Spin => std::hint::spin_loop(),
            ShmNap::Yield => LONG_YIELDS.give_way(),
            ShmNap::Sleep(berth, seen, longest, beside) => berth.sleep(seen, WAITER, longest, beside),
        }
    }

    #[inline]
    fn sleeps(&self) -> bool {
        matches!(self, ShmNap::Sleep(..))
    }
}

impl Shm {
    /// From here on this rank sleeps on a descriptor of another device, too; that stays open as long as this
    /// device.
    pub fn sleep_beside(&mut self, other: RawFd) -> Result<(), String> {
        let ring = Ring::open(self.berth).map_err(|e| format!("cannot open a socket to be woken by: {e}"))?;
        self.beside = Some(ring.beside(other));
        self.ring = Some(ring);
        Ok(())
    }
}
