//! Where a schedule meets the rank's communicators and requests.
//!
//! Everything the handlers of collectives ask of the world is on this page.

use mpi::coll::{Key, Schedule, State};
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;

use crate::cx::Cx;

/// This rank in a communicator.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Its rank.
    pub rank: usize,
    /// Ranks of the communicator.
    pub size: usize,
}

/// Who this rank is in an intracommunicator.
#[inline]
pub fn site(cx: &Cx, comm: Handle) -> Result<Site> {
    let _ = (cx, comm);
    unsupported()
}

/// Lets `f` use what the communicator remembers for its collectives.
#[inline]
pub fn with_state<R>(cx: &Cx, comm: Handle, f: impl FnOnce(&mut State) -> R) -> Result<R> {
    let _ = (cx, comm, f);
    unsupported()
}

/// Runs a schedule to its end, and gives it back.
///
/// Takes the next tag of the communicator; calls functions of the application with
/// [`crate::op::call`], no guard alive.
pub fn blocking(cx: &Cx, comm: Handle, schedule: Schedule) -> Result<Schedule> {
    let _ = (cx, comm, schedule);
    unsupported()
}

/// Starts a schedule; the request completes when it is done.
pub fn nonblocking(cx: &Cx, comm: Handle, schedule: Schedule) -> Result<Handle> {
    let _ = (cx, comm, schedule);
    unsupported()
}

/// An inactive persistent request that runs the schedule on each start, with one tag.
pub fn persistent(cx: &Cx, comm: Handle, schedule: Schedule) -> Result<Handle> {
    let _ = (cx, comm, schedule);
    unsupported()
}

/// Until communicators exist.
#[cold]
fn unsupported<T>() -> Result<T> {
    fail(Class::UNSUPPORTED_OPERATION, "collectives need communicators, which are not there yet")
}

/// Keeps a schedule for the next equal call, where that pays.
#[inline]
pub fn keep(cx: &Cx, comm: Handle, key: Key, schedule: Schedule) -> Result {
    with_state(cx, comm, |state| state.keep(key, schedule))
}
