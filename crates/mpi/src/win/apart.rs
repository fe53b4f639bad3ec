//! Synchronisation in windows whose memory is not shared: what goes by an adapter and what goes by messages overtake each
//! other, so one waits for the other; and the fence that needs no barrier.

use proto::event::Event;

use super::direct::Told;
use super::fence::FenceWay;
use super::issue::{Sync, each};
use super::sync::{Caller, hear, settle};
use super::{about, epoch};
use crate::error::Result;
use crate::handle::Handle;

/// Completes what goes by an adapter to a target, or to all: a message overtakes that, so no lock is given back before.
/// What has gathered leaves with the unlock and is not waited for.
pub fn place<C: Caller>(cx: &C, win: Handle, target: Option<u32>) -> Result {
    {
        let mut world = cx.world();
        for target in world.touched(win, target)? {
            if world.is_far_touched(win, target)? {
                world.place(win, target)?;
            }
        }
    }
    cx.until(|world| Ok(world.is_placed(win, target)?.then_some(())))
}

/// Waits until ranks that were told of an unlock without being asked for an answer have heeded that.
pub fn complete_untold<C: Caller>(cx: &C, win: Handle) -> Result {
    {
        let mut world = cx.world();
        for target in world.untold(win)? {
            world.synchronise(win, target, Sync::Lull)?;
        }
    }
    settle(cx, win, None)
}

/// Waits until ranks have heeded what they were told, for what comes next could overtake it.
pub fn be_heeded<C: Caller>(cx: &C, win: Handle, told: &[u32]) -> Result {
    let overtaken = cx.world().overtaken(win, told)?;
    let told = each(&overtaken, |rank| cx.world().synchronise(win, rank, Sync::Lull));
    // Others may not have been sent yet what they are to answer.
    told.and(each(&overtaken, |rank| settle(cx, win, Some(rank))))
}

/// A fence in which each rank tells all others of the end of its epoch, behind the last operation at each or with it, and then
/// that all of them have ended at its own memory. Only from then on may others come there: what a third one has put, or what came in a message that is
/// not heeded yet, would else come behind them. Two ranks of whom neither has told the other anything that could be overtaken say no second word.
/// `None` where they are asked; else how the operations ended.
pub fn fence<C: Caller>(cx: &C, assert: i32, win: Handle) -> Result<Option<Result>> {
    let Some(others) = cx.world().fenced_with(win)? else { return Ok(None) };
    cx.world().engine.count(Event::WindowFenceTold);
    let heeded = be_heeded(cx, win, &others);
    // What this rank has told itself is done before others come: of it they are told nothing.
    let own = cx.world().window(win)?.place.rank;
    let is_touched = !cx.world().touched(win, Some(own))?.is_empty();
    if is_touched {
        cx.world().synchronise(win, own, Sync::Flush)?;
        cx.until(|world| Ok(world.is_quiet(win, Some(own))?.then_some(())))?;
    }
    let told = cx.world().end_for_fence(win, &others, assert);
    let done = cx.until(|world| Ok(world.has_fetched(win, None)?.then_some(())));
    hear(cx, win, Told::Complete, &others)?;
    told?;
    let heeded = heeded.and(settle(cx, win, Some(own)));
    if cx.world().needs_second_word(win)? {
        cx.world().notify(win, &others, Told::Post)?;
        hear(cx, win, Told::Post, &others)?;
    }
    Ok(Some(heeded.and(done).and(cx.world().agrees(win, assert))))
}

/// The meeting of a fence in which targets are asked, and whether all ranks assert of it what they have to assert alike.
pub fn meet<C: Caller>(cx: &C, assert: i32, win: Handle, comm: Handle) -> Result<Result> {
    let (rank, own) = (cx.world().window(win)?.place.rank, epoch::common(assert));
    // By what can be asserted: the first rank that does.
    let first = cx.least_words(
        comm,
        std::array::from_fn::<_, 4, _>(|said| match said as u32 == own {
            true => rank.into(),
            false => u64::MAX,
        }),
    )?;
    let other = (0..).zip(first).find(|(said, first)| *said != own && *first != u64::MAX);
    Ok(other.map_or(Ok(()), |(said, first)| Err(about(win, &epoch::differs(first as u32, said, own)))))
}

/// A fence that began then is over: rank 0 tells all which way the next ones go, if it is time to.
pub fn agree<C: Caller>(cx: &C, win: Handle, since_ns: u64) -> Result {
    let Some(way) = cx.world().fence_ended(win, since_ns)? else { return Ok(()) };
    let comm = cx.world().window(win)?.comm;
    let told = cx.first_word(comm, way.word())?;
    cx.world().agree_on_fences(win, FenceWay::of_word(told))
}
