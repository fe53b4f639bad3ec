//! Synchronisation in windows that adapters reach: what a synchronisation by messages has to wait for, and the fence
//! of two ranks, which needs no barrier.

use mpi::error::Result;
use mpi::handle::Handle;
use mpi::win::direct::Told;
use mpi::win::issue::Sync;

use super::sync::{complete_at, settle};
use crate::cx::Cx;
use crate::wait;

/// Completes what goes by an adapter to a target, or to all: a message overtakes that, so no lock is given back before.
/// What has gathered leaves with the unlock and is not waited for.
pub fn place(cx: &Cx, win: Handle, target: Option<u32>) -> Result {
    {
        let mut world = cx.world();
        for target in world.touched(win, target)? {
            if world.is_far_touched(win, target)? {
                world.place(win, target)?;
            }
        }
    }
    wait::until(cx, |world| Ok(world.is_placed(win, target)?.then_some(())))
}

/// Waits until ranks that were told of an unlock without being asked for an answer have heeded that.
pub fn complete_untold(cx: &Cx, win: Handle) -> Result {
    {
        let mut world = cx.world();
        for target in world.untold(win)? {
            world.synchronise(win, target, Sync::Lull)?;
        }
    }
    settle(cx, win, None)
}

/// A fence of two ranks, each behind an adapter of the other: the end of each one's epoch, told behind its last
/// operation, says also that it has come to the fence. `None` for other windows; else how the operations ended.
pub fn fence_of_two(cx: &Cx, win: Handle) -> Result<Option<Result>> {
    let Some(other) = cx.world().only_other(win)? else { return Ok(None) };
    // What goes by messages is acknowledged before.
    let asks = cx.world().tells(win)?;
    let completed = if asks { complete_at(cx, win, None) } else { Ok(()) };
    cx.world().notify(win, &[other], Told::Complete)?;
    let done = wait::until(cx, |world| Ok(world.has_fetched(win, None)?.then_some(())));
    wait::until(cx, |world| Ok(world.heard(win, &[other], Told::Complete)?.then_some(())))?;
    Ok(Some(completed.and(done)))
}
