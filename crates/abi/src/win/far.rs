//! Synchronisation in windows whose memory is not shared: what goes by an adapter and what goes by messages overtake each
//! other, so one waits for the other; and the fence that needs no barrier.

use mpi::error::Result;
use mpi::handle::Handle;
use mpi::win::direct::Told;
use mpi::win::fence::Way;
use mpi::win::issue::Sync;
use proto::event::Event;

use super::sync::{hear, settle};
use crate::coll::run;
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

/// Waits until ranks have heeded what they were told, for what comes next could overtake it.
pub fn be_heeded(cx: &Cx, win: Handle, told: &[u32]) -> Result {
    let overtaken = cx.world().overtaken(win, told)?;
    overtaken.iter().try_for_each(|rank| cx.world().synchronise(win, *rank, Sync::Lull))?;
    // Others may not have been sent yet what they are to answer.
    overtaken.iter().try_for_each(|rank| settle(cx, win, Some(*rank)))
}

/// A fence in which each rank tells all others of the end of its epoch, behind the last operation at each or with it, and then
/// that all of them have ended at its own memory. Only from then on may others come there: what a third one has put, or what came in a message that is
/// not heeded yet, would else come behind them. `None` where they are asked; else how the operations ended.
pub fn fence(cx: &Cx, win: Handle) -> Result<Option<Result>> {
    let Some(others) = cx.world().fenced_with(win)? else { return Ok(None) };
    cx.world().engine.count(Event::WindowFenceTold);
    let heeded = be_heeded(cx, win, &others);
    cx.world().notify(win, &others, Told::Complete)?;
    let done = wait::until(cx, |world| Ok(world.has_fetched(win, None)?.then_some(())));
    hear(cx, win, Told::Complete, &others)?;
    cx.world().notify(win, &others, Told::Post)?;
    hear(cx, win, Told::Post, &others)?;
    Ok(Some(heeded.and(done)))
}

/// A fence that began then is over: rank 0 tells all which way the next ones go, if it is time to.
pub fn agree(cx: &Cx, win: Handle, since_ns: u64) -> Result {
    let Some(way) = cx.world().fence_ended(win, since_ns)? else { return Ok(()) };
    let comm = cx.world().window(win)?.comm;
    let told = run::spread_words(cx, comm, 0, vec![way.word()])?;
    cx.world().agree_on_fences(win, Way::of_word(told[0]))
}
