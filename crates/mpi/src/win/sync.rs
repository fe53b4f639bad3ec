//! MPI 5.0 section 12.5: synchronisation. What blocks begins something and waits until it is over; how it waits is its caller's
//! ([`Caller`]): an application's call, or a rank in virtual time.

use std::ops::DerefMut;
use std::sync::Arc;

use fabric::Device;
use proto::event::{Event, Notice};

use super::active::Ticket;
use super::apart;
use super::direct::Told;
use super::epoch::{Epoch, Held, LockType, Members, NOCHECK, NOPRECEDE, check_assert};
use super::issue::{Sync, each};
use super::locks::Asked;
use super::operation::Operation;
use super::{Flavour, about};
use crate::error::{Class, Error, Result, fail};
use crate::group::PROC_NULL;
use crate::handle::Handle;
use crate::mem;
use crate::world::World;

/// What is awaited of other ranks of a window.
#[derive(PartialEq, Eq)]
pub enum Awaited {
    /// All of them, in a fence.
    Fence,
    /// That all of these have told this rank so.
    Told(Told, Members),
    /// The lock of this target.
    Lock(u32),
}

/// Who calls operations of this chapter, and can wait.
pub trait Caller {
    /// By which its rank reaches others.
    type Device: Device;

    /// The rank, which is not lent to anybody else meanwhile.
    fn world(&self) -> impl DerefMut<Target = World<Self::Device>>;

    /// Looks around until `ready` gives a value.
    fn until<T>(&self, ready: impl FnMut(&mut World<Self::Device>) -> Result<Option<T>>) -> Result<T>;

    /// As [`Caller::until`] for what others do in a window, which whoever asks what this rank waits for is told.
    fn await_others<T>(
        &self,
        win: Handle,
        awaited: &Awaited,
        ready: impl FnMut(&mut World<Self::Device>) -> Result<Option<T>>,
    ) -> Result<T>;

    /// Looks around once, and asks once.
    fn once<T>(&self, ready: impl FnOnce(&mut World<Self::Device>) -> Result<Option<T>>)
    -> Result<Option<T>>;

    /// Looks around once.
    fn progress(&self) -> Result;

    /// An operation has begun that this rank does not wait for.
    fn leaves(&self, world: &World<Self::Device>);

    /// The least of each word that the ranks of a communicator give.
    fn least_words<const N: usize>(&self, comm: Handle, mine: [u64; N]) -> Result<[u64; N]>;

    /// The word that the first rank of a communicator gives.
    fn first_word(&self, comm: Handle, mine: u64) -> Result<u64>;
}

/// Asks or changes what is open in a window.
fn with_epoch<C: Caller, R>(cx: &C, win: Handle, f: impl FnOnce(&mut Epoch) -> Result<R>) -> Result<R> {
    f(&mut cx.world().window(win)?.epoch).map_err(|error| about(win, &error))
}

/// The rank of a target in the window; `None` for `MPI_PROC_NULL`, of which nothing is to be done.
fn target<C: Caller>(cx: &C, win: Handle, rank: i32) -> Result<Option<u32>> {
    let ranks = cx.world().window(win)?.members.len();
    match rank {
        PROC_NULL => Ok(None),
        rank if (rank as usize) < ranks => Ok(Some(rank as u32)),
        _ => fail(Class::RANK, format!("argument `rank` is {rank}, window {:#x} has {ranks} ranks", win.0)),
    }
}

/// Waits until all that was begun with a target, or with all, is over there. Where nothing is awaited this looks around, for a
/// program may synchronise until it sees what others store who wait for this rank.
pub(super) fn settle<C: Caller>(cx: &C, win: Handle, target: Option<u32>) -> Result {
    if cx.world().is_quiet(win, target)? {
        return cx.progress();
    }
    cx.until(|world| Ok(world.is_quiet(win, target)?.then_some(())))
}

/// Waits until all of these have told this rank so.
pub(super) fn hear<C: Caller>(cx: &C, win: Handle, told: Told, from: &Members) -> Result {
    let heard = |world: &mut World<C::Device>| Ok(world.heard(win, from, told)?.then_some(()));
    cx.await_others(win, &Awaited::Told(told, from.clone()), heard)
}

/// Completes the operations on a target, or on all, there.
pub(super) fn complete_at<C: Caller>(cx: &C, win: Handle, target: Option<u32>) -> Result {
    let (told, late) = {
        let mut world = cx.world();
        let touched = world.touched(win, target)?;
        let told = each(&touched, |target| world.synchronise(win, target, Sync::Flush));
        world.window(win)?.begins_anew();
        let is_measured = !touched.is_empty() && world.window(win)?.is_near();
        (told, is_measured.then(|| (touched, world.engine.device().now_ns())))
    };
    let settled = settle(cx, win, target);
    if let Some((touched, since_ns)) = late {
        cx.world().waited(win, &touched, since_ns)?;
    }
    cx.world().locks_are_held(win, target);
    told.and(settled)
}

/// Ends this rank's operations as far as it has to before it says by a word that its epoch is over: what targets were told they wait for
/// themselves where it is counted. Those to whom not all has left are `held`.
fn leave<C: Caller>(cx: &C, win: Handle, is_fence: bool, held: &mut Vec<u32>) -> Result {
    let counts = cx.world().window(win)?.counts();
    if counts { cx.world().let_all_leave(win, is_fence, held) } else { complete_at(cx, win, None) }
}

/// Waits until what this rank has told these has left it, and what it has fetched is here.
fn have_left<C: Caller>(cx: &C, win: Handle, held: &[u32]) -> Result {
    cx.until(|world| Ok((world.is_quiet(win, None)? && world.have_left(win, held)?).then_some(())))
}

/// Waits until a target has heeded what it was told for the last fence.
fn be_heeded<C: Caller>(cx: &C, win: Handle, target: u32) -> Result {
    if cx.world().has_heeded_fence(win, target)? {
        return Ok(());
    }
    cx.world().waits_for_heed(win, target, true)?;
    let heeded = cx.until(|world| Ok(world.has_heeded_fence(win, target)?.then_some(())));
    cx.world().waits_for_heed(win, target, false)?;
    heeded
}

/// Waits until a target has heeded all that it was told before: so that the lock is held that has been asked for, or nothing comes before what
/// the last fence has ended.
pub(super) fn hold<C: Caller>(cx: &C, win: Handle, target: u32) -> Result {
    if cx.world().window(win)?.is_near() {
        return be_heeded(cx, win, target);
    }
    cx.world().synchronise(win, target, Sync::Lull)?;
    let settled = settle(cx, win, Some(target));
    let mut world = cx.world();
    world.locks_are_held(win, Some(target));
    settled?;
    world.has_heeded(win, target)
}

/// Completes the operations on a target, or on all, here.
fn complete_here<C: Caller>(cx: &C, win: Handle, target: Option<u32>) -> Result {
    {
        let mut world = cx.world();
        for target in world.touched(win, target)? {
            world.send_gathered(win, target)?;
        }
    }
    if cx.world().has_fetched(win, target)? {
        return cx.progress();
    }
    cx.until(|world| Ok(world.has_fetched(win, target)?.then_some(())))
}

/// How an epoch ended, as tools are told.
const FENCE: u64 = 0;
const COMPLETE: u64 = 1;
const WAIT: u64 = 2;
const UNLOCK: u64 = 3;

/// Tells tools that an epoch is over.
fn over<C: Caller>(cx: &C, win: Handle, how: u64) {
    cx.world().engine.happened(Notice::EpochEnded, [win.0.into(), how]);
}

/// `MPI_Win_fence`. What went wrong with this rank's operations is told when all have come: others wait for it.
pub fn fence<C: Caller>(cx: &C, assert: i32, win: Handle) -> Result {
    with_epoch(cx, win, |epoch| epoch.check_fence(assert))?;
    let since_ns = cx.world().engine.device().now_ns();
    let met = tell_or_ask(cx, assert, win);
    // A fence in which somebody is missing is over too: nothing more comes of it, and the window is to be freed.
    with_epoch(cx, win, |epoch| {
        epoch.fenced(assert);
        Ok(())
    })?;
    over(cx, win, FENCE);
    met.map_err(|error| who_is_missing(cx, win, error))?.and(apart::agree(cx, win, since_ns))
}

/// The error of a meeting of all ranks of a window, by the one that is missing if one is.
#[cold]
pub fn who_is_missing<C: Caller>(cx: &C, win: Handle, error: Error) -> Error {
    let is_death = error.class == Class::PROC_ABORTED;
    let missing = is_death.then(|| cx.world().all_are_there(win).err()).flatten();
    missing.unwrap_or(error)
}

/// Meets all others in a fence, in one way or the other. How the operations ended.
fn tell_or_ask<C: Caller>(cx: &C, assert: i32, win: Handle) -> Result<Result> {
    let Some(completed) = apart::fence(cx, assert, win)? else { return ask_and_meet(cx, assert, win) };
    cx.world().engine.count(Event::WindowFence);
    Ok(completed)
}

/// Ends this rank's operations, then meets all others: by words in shared memory, or by a barrier. How the operations ended.
fn ask_and_meet<C: Caller>(cx: &C, assert: i32, win: Handle) -> Result<Result> {
    let mut held = Vec::new();
    let completed = if assert & NOPRECEDE == 0 { leave(cx, win, true, &mut held) } else { Ok(()) };
    let (comm, met) = {
        let mut world = cx.world();
        (world.window(win)?.comm, world.meet(win, assert)?)
    };
    match met {
        Some(true) => {}
        Some(false) => {
            let met = |world: &mut World<C::Device>| Ok(world.meet(win, assert)?.filter(|met| *met));
            cx.await_others(win, &Awaited::Fence, met)?;
        }
        None => {
            let agree = apart::meet(cx, assert, win, comm)?;
            cx.world().engine.count(Event::WindowFence);
            return Ok(completed.and(agree));
        }
    }
    Ok(completed.and(have_left(cx, win, &held)).and(cx.world().agrees(win, assert)))
}

/// Members of a group as ranks of the window.
fn members<C: Caller>(cx: &C, win: Handle, group: Handle) -> Result<Members> {
    let mut world = cx.world();
    let group = world.objects.group(group)?.clone();
    world.window(win)?.members_of(&group).map_err(|error| about(win, &error))
}

/// `MPI_Win_post`.
pub fn post<C: Caller>(cx: &C, group: Handle, assert: i32, win: Handle) -> Result {
    let origins = members(cx, win, group)?;
    with_epoch(cx, win, |epoch| epoch.post(&origins, assert))?;
    cx.world().notify(win, &origins, Told::Post)?;
    cx.world().engine.count(Event::WindowPost);
    cx.progress()
}

/// `MPI_Win_start`: waits for the posts of all targets. Where the program asserts that they were, they come as soon.
pub fn start<C: Caller>(cx: &C, group: Handle, assert: i32, win: Handle) -> Result {
    let targets = members(cx, win, group)?;
    with_epoch(cx, win, |epoch| epoch.check_start(assert))?;
    hear(cx, win, Told::Post, &targets)?;
    cx.world().engine.count(Event::WindowStart);
    with_epoch(cx, win, |epoch| {
        epoch.start(&targets);
        Ok(())
    })
}

/// `MPI_Win_complete`. Targets of a dynamic window may have refused something, of which only they can tell.
pub fn complete<C: Caller>(cx: &C, win: Handle) -> Result {
    let targets = with_epoch(cx, win, |epoch| epoch.started().cloned())?;
    let by_words = {
        let mut world = cx.world();
        let window = world.window(win)?;
        window.is_near() || window.flavour == Flavour::Dynamic
    };
    let mut held = Vec::new();
    let completed = match by_words {
        true => leave(cx, win, false, &mut held),
        false => apart::be_heeded(cx, win, &targets),
    };
    let told = cx.world().notify(win, &targets, Told::Complete);
    let fetched =
        cx.until(|world| Ok((world.has_fetched(win, None)? && world.have_left(win, &held)?).then_some(())));
    with_epoch(cx, win, |epoch| {
        epoch.ended();
        Ok(())
    })?;
    over(cx, win, COMPLETE);
    completed.and(told).and(fetched)
}

/// The origins of the exposure epoch that is open.
fn exposed<C: Caller>(cx: &C, win: Handle) -> Result<Members> {
    with_epoch(cx, win, |epoch| epoch.exposed().cloned())
}

fn end_exposure<C: Caller>(cx: &C, win: Handle) -> Result {
    with_epoch(cx, win, |epoch| {
        epoch.waited();
        Ok(())
    })?;
    over(cx, win, WAIT);
    Ok(())
}

/// `MPI_Win_wait`.
pub fn wait<C: Caller>(cx: &C, win: Handle) -> Result {
    let origins = exposed(cx, win)?;
    let heard = hear(cx, win, Told::Complete, &origins);
    // An origin that is missed completes nothing any more.
    end_exposure(cx, win)?;
    heard
}

/// `MPI_Win_test`: whether the epoch is over.
pub fn test<C: Caller>(cx: &C, win: Handle) -> Result<bool> {
    let origins = exposed(cx, win)?;
    let done = cx.once(|world| Ok(world.heard(win, &origins, Told::Complete)?.then_some(())));
    if !matches!(done, Ok(None)) {
        end_exposure(cx, win)?;
    }
    Ok(done?.is_some())
}

/// Takes the lock of a target; `is_one`: by itself, not as one of all.
fn take<C: Caller>(cx: &C, win: Handle, target: u32, kind: LockType, is_one: bool) -> Result {
    let asked = loop {
        let mut world = cx.world();
        let Some((of, at)) = world.objects.windows.claim() else {
            break world.ask_lock(win, target, kind, is_one)?;
        };
        drop(world);
        // A target that is lost is told of where its lock is given back.
        let _ = hold(cx, of, at);
    };
    match asked {
        Asked::Taken => Ok(()),
        Asked::Elsewhere => {
            cx.world().synchronise(win, target, Sync::Lock(kind))?;
            settle(cx, win, Some(target))
        }
        Asked::Waits(waiting) => {
            let turn = |world: &mut World<C::Device>| Ok(world.lock_in_turn(win, &waiting)?.then_some(()));
            let locked = cx.await_others(win, &Awaited::Lock(target), turn);
            cx.world().waited_for_lock(win, &waiting, locked.is_ok())?;
            locked
        }
    }
}

/// Completes at a target, or at all, what no message that gives a lock back is behind.
fn place<C: Caller>(cx: &C, win: Handle, target: Option<u32>) -> Result {
    let is_near = cx.world().window(win)?.is_near();
    if is_near { complete_at(cx, win, target) } else { apart::place(cx, win, target) }
}

/// Gives back the lock of a target, where all operations on it are done then.
fn give_back<C: Caller>(cx: &C, win: Handle, target: u32, kind: LockType) -> Result {
    let placed = place(cx, win, Some(target));
    cx.world().unlock(win, target, kind)?;
    let settled = settle(cx, win, Some(target));
    cx.world().locks_are_held(win, Some(target));
    placed.and(settled)
}

/// `MPI_Win_lock`.
pub fn lock<C: Caller>(cx: &C, kind: i32, rank: i32, assert: i32, win: Handle) -> Result {
    let kind = LockType::from_raw(kind)?;
    cx.world().window(win)?.check_locks().map_err(|error| about(win, &error))?;
    let Some(target) = target(cx, win, rank)? else { return check_assert(assert, NOCHECK) };
    with_epoch(cx, win, |epoch| epoch.check_lock(target, assert))?;
    let unchecked = assert & NOCHECK != 0;
    if !unchecked {
        take(cx, win, target, kind, true)?;
    }
    with_epoch(cx, win, |epoch| {
        epoch.locked(target, Held { kind, unchecked });
        Ok(())
    })
}

/// `MPI_Win_unlock`.
pub fn unlock<C: Caller>(cx: &C, rank: i32, win: Handle) -> Result {
    let Some(target) = target(cx, win, rank)? else { return Ok(()) };
    let held = with_epoch(cx, win, |epoch| epoch.held(target))?;
    let done = match held.unchecked {
        true => complete_at(cx, win, Some(target)),
        false => give_back(cx, win, target, held.kind),
    };
    with_epoch(cx, win, |epoch| {
        epoch.unlocked(target);
        Ok(())
    })?;
    over(cx, win, UNLOCK);
    done
}

/// `MPI_Win_lock_all`.
pub fn lock_all<C: Caller>(cx: &C, assert: i32, win: Handle) -> Result {
    cx.world().window(win)?.check_locks().map_err(|error| about(win, &error))?;
    with_epoch(cx, win, |epoch| epoch.check_lock_all(assert))?;
    let unchecked = assert & NOCHECK != 0;
    let ranks = cx.world().window(win)?.members.len() as u32;
    if !unchecked {
        for target in 0..ranks {
            take(cx, win, target, LockType::Shared, false)
                .inspect_err(|_| give_back_below(cx, win, target))?;
        }
    }
    with_epoch(cx, win, |epoch| {
        epoch.locked_all(unchecked);
        Ok(())
    })
}

/// Gives back the locks of all targets before the one whose lock could not be had. That one's error is told.
#[cold]
fn give_back_below<C: Caller>(cx: &C, win: Handle, target: u32) {
    for target in 0..target {
        let _ = give_back(cx, win, target, LockType::Shared);
    }
}

/// `MPI_Win_unlock_all`.
pub fn unlock_all<C: Caller>(cx: &C, win: Handle) -> Result {
    let unchecked = with_epoch(cx, win, |epoch| epoch.held_all())?;
    let ranks = cx.world().window(win)?.members.len() as u32;
    let done = if unchecked {
        complete_at(cx, win, None)
    } else {
        let placed = place(cx, win, None);
        let all: Vec<u32> = (0..ranks).collect();
        let begun = each(&all, |target| cx.world().unlock(win, target, LockType::Shared));
        placed.and(begun).and(settle(cx, win, None))
    };
    with_epoch(cx, win, |epoch| {
        epoch.ended();
        Ok(())
    })?;
    over(cx, win, UNLOCK);
    done
}

/// A target that may be flushed.
fn flushable<C: Caller>(cx: &C, win: Handle, rank: i32) -> Result<Option<u32>> {
    let Some(target) = target(cx, win, rank)? else { return Ok(None) };
    with_epoch(cx, win, |epoch| epoch.passive(target)).map(|()| Some(target))
}

/// Counts a flush, and orders what this rank stores and loads in shared memory.
fn flushed<C: Caller>(cx: &C) {
    mem::order();
    cx.world().engine.count(Event::WindowFlush);
}

/// `MPI_Win_flush`.
pub fn flush<C: Caller>(cx: &C, rank: i32, win: Handle) -> Result {
    let Some(target) = flushable(cx, win, rank)? else { return Ok(()) };
    flushed(cx);
    complete_at(cx, win, Some(target))
}

/// `MPI_Win_flush_local`.
pub fn flush_local<C: Caller>(cx: &C, rank: i32, win: Handle) -> Result {
    let Some(target) = flushable(cx, win, rank)? else { return Ok(()) };
    flushed(cx);
    complete_here(cx, win, Some(target))
}

/// `MPI_Win_flush_all`.
pub fn flush_all<C: Caller>(cx: &C, win: Handle) -> Result {
    with_epoch(cx, win, |epoch| epoch.any_passive())?;
    flushed(cx);
    complete_at(cx, win, None)
}

/// `MPI_Win_flush_local_all`.
pub fn flush_local_all<C: Caller>(cx: &C, win: Handle) -> Result {
    with_epoch(cx, win, |epoch| epoch.any_passive())?;
    flushed(cx);
    complete_here(cx, win, None)
}

/// `MPI_Win_sync`: memory is one and the same for all who map it; what is left is the order of accesses.
pub fn sync<C: Caller>(cx: &C, win: Handle) -> Result {
    cx.world().window(win)?;
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    cx.progress()
}

/// Begins an operation whose buffers and types are checked.
pub fn begin<C: Caller>(
    cx: &C,
    win: Handle,
    operation: &Operation,
    asks: bool,
) -> Result<Option<Arc<Ticket>>> {
    let target = operation.target;
    let mut world = cx.world();
    let epoch = &mut world.window(win)?.epoch;
    let touched = if asks { epoch.touch_passively(target) } else { epoch.touch(target) };
    touched.map_err(|error| about(win, &error))?;
    if operation.area.is_empty() {
        return Ok(None);
    }
    if world.needs_lock(win, operation, asks)? || world.needs_heed(win, operation)? {
        drop(world);
        hold(cx, win, target)?;
        world = cx.world();
    }
    let begun = world.operate(win, operation, asks)?;
    let is_full = world.is_full(win, target)?;
    cx.leaves(&world);
    drop(world);
    if is_full {
        complete_at(cx, win, None)?;
    }
    Ok(begun)
}
