//! Operations and synchronisations of direct windows in their most frequent form, done at once by a few instructions.
//!
//! Each does the whole of it if the arguments are of predefined types without gaps, the epoch permits it and nothing
//! has to be waited for long, and otherwise nothing, or no more than the general path goes on with: that one checks
//! every argument and says what is wrong. What is done is the same.
//!
//! Of other windows Puts and Gets of one run at a target whose memory this rank maps are done at once, too, and a flush there that has
//! nothing else to complete; at a target behind an adapter they are held at once where the one before was held that is like them.

use std::cell::Cell;

use super::direct::{Control, Told};
use super::epoch::{self, Held, LockType};
use super::operation::{Verb, change_alone, change_one, compares, is_atomic, swap_alone, swap_one};
use super::{Path, Window, copied, known};
use crate::comm::Place;
use crate::datatype::basic::{self, Basic, basic_size};
use crate::group::Group;
use crate::handle::Handle;
use crate::mem;
use crate::op::{self, Predefined};
use crate::p2p::plain_len;
use crate::world::World;
use fabric::{Device, Span};
use proto::Engine;
use proto::epoch::Action;
use proto::event::Event;

/// Every so many synchronisations that wait for nobody one looks around, by the general path: a program may wait for
/// what others store while they wait for this rank.
const LOOK_EVERY: u32 = 64;

/// Where an operation goes, as it was passed.
#[derive(Clone, Copy, Debug)]
pub struct There {
    /// Rank in the window.
    pub target: i32,
    /// Displacement in units of the target.
    pub disp: i64,
    /// Number of elements.
    pub count: u64,
    /// Their type.
    pub datatype: Handle,
}

/// The words of a window, where all ranks map them.
#[inline(always)]
fn control(window: &mut Window) -> Option<&mut Control> {
    window.path.control_mut()
}

/// Whether targets, one or all of them, owe nothing that a synchronisation by words has to wait for; that is to be told of by the general path.
#[inline(always)]
fn is_settled(window: &Window, target: Option<u32>) -> bool {
    match &window.path {
        Path::Direct(_) => true,
        Path::Active(active) => active.near.is_some() && active.is_idle(target),
    }
}

/// An epoch is over.
#[inline(always)]
pub(super) fn ended(window: &mut Window) {
    if let Path::Active(active) = &mut window.path {
        active.tally.ended();
    }
}

/// How often to look for a word that ends an exposure epoch before a look around: once, where that waits as a rule for what this rank is told.
#[inline(always)]
fn looks_for_end<D: Device>(window: &Window, engine: &Engine<D>) -> u32 {
    match &window.path {
        Path::Active(active) if active.heeds != [false; 2] => 1,
        _ => engine.looks_near(),
    }
}

/// An exposure epoch is over.
#[inline(always)]
pub(super) fn exposure_ended(window: &mut Window) {
    if let Path::Active(active) = &mut window.path {
        active.heeds = [false, active.heeds[0]];
    }
}

/// The address of a run of `len` bytes in the memory of a target of a direct window that an epoch includes.
#[inline(always)]
fn locate(window: &mut Window, target: i32, disp: i64, len: usize) -> Option<usize> {
    if !matches!(window.path, Path::Direct(_)) {
        return None;
    }
    run_at(window, target, disp, len)
}

/// The same of a target of an active window whose memory this rank maps, where it has nothing to wait for: neither a lock, of which
/// the one that is `claimed` is not held, nor that the target heeds what it was told in epochs before.
fn locate_mapped(window: &mut Window, claimed: Option<u32>, there: &There, len: usize) -> Option<usize> {
    let Path::Active(active) = &window.path else { return None };
    let target = usize::try_from(there.target).ok()?;
    let waits = claimed == Some(target as u32) || *active.unheeded.get(target)?;
    if waits || !window.members.get(target)?.mapped {
        return None;
    }
    run_at(window, there.target, there.disp, len)
}

#[inline(always)]
pub(super) fn run_at(window: &mut Window, target: i32, disp: i64, len: usize) -> Option<usize> {
    let member = window.members.get(usize::try_from(target).ok()?)?;
    let start = u64::try_from(disp).ok()?.checked_mul(member.unit)?;
    let addr = member.base.wrapping_add(start as usize);
    let is_inside = start.checked_add(len as u64)? <= member.size;
    (is_inside && window.epoch.reaches(target as u32)).then_some(addr)
}

/// Whether an operation at this target may have a request (MPI 5.0 section 12.3.5).
#[inline(always)]
fn may_ask(window: &Window, target: i32) -> bool {
    (target as u32 as usize) < window.members.len() && window.epoch.is_passive(target as u32)
}

/// The type of an element that an atomic instruction changes, and what is done with it.
#[inline(always)]
fn element(datatype: Handle, op: Handle) -> Option<(Basic, Predefined)> {
    let basic = basic::predefined(datatype)?.basic;
    let op = Predefined::from_handle(op)?;
    op.takes(basic).then_some((basic, op))
}

/// What an accumulate is, which fetches if it has a result.
fn verb(op: Predefined, result: Option<usize>) -> Verb {
    if result.is_some() { Verb::Fetch(op) } else { Verb::Accumulate(op) }
}

impl<D: Device> World<D> {
    #[inline(always)]
    pub(super) fn parts(&mut self, win: Handle) -> Option<(&mut Window, &mut Engine<D>)> {
        let World { objects, engine, .. } = self;
        Some((objects.windows.slab.get_mut(win)?, engine))
    }

    /// `MPI_Put` and `MPI_Get` of one run, and with a request, which only epochs of locks may have; whether it is done, or held, which with
    /// a request it is not.
    #[inline(always)]
    pub fn transfer_now<const PUT: bool, const ASKS: bool>(
        &mut self,
        (addr, count, datatype): (usize, u64, Handle),
        there: There,
        win: Handle,
    ) -> bool {
        let Some(len) = plain_len(count, datatype, addr) else { return false };
        let is_alike = there.count.checked_mul(u64::from(basic_size(there.datatype))) == Some(len as u64);
        if !is_alike || len == 0 {
            return false;
        }
        let Some((window, engine)) = self.parts(win) else { return false };
        if ASKS && !may_ask(window, there.target) {
            return false;
        }
        let Some(remote) = locate(window, there.target, there.disp, len) else {
            return self.transfer_apart_now::<PUT, ASKS>(Span { addr, len }, &there, win);
        };
        let (to, from) = if PUT { (remote, addr) } else { (addr, remote) };
        mem::copy_run(to, from, len);
        engine.count(if PUT { Event::WindowPut } else { Event::WindowGet });
        true
    }

    /// The same in a window whose memory not all ranks map; whether it is done, or held like the last one of its epoch.
    #[inline(never)]
    fn transfer_apart_now<const PUT: bool, const ASKS: bool>(
        &mut self,
        here: Span,
        there: &There,
        win: Handle,
    ) -> bool {
        let claimed = self.objects.windows.claimed(win);
        let Some((window, engine)) = self.parts(win) else { return false };
        let Some(remote) = locate_mapped(window, claimed, there, here.len) else {
            if window.is_near() {
                return copied::copy_now::<PUT, D>(window, engine, there, here);
            }
            let action = if PUT { Action::Put } else { Action::Get };
            return !ASKS && window.hold_now(engine, action, there, here);
        };
        let (to, from) = if PUT { (remote, here.addr) } else { (here.addr, remote) };
        mem::copy_run(to, from, here.len);
        engine.count(Event::WindowCopied);
        true
    }

    /// `MPI_Accumulate` of a run of elements that are changed under a guard, and `MPI_Get_accumulate` with the address of the result; whether
    /// it is done.
    #[inline(always)]
    pub fn accumulate_run_now(
        &mut self,
        addr: usize,
        result: Option<usize>,
        there: There,
        op: Handle,
        win: Handle,
    ) -> bool {
        let Some((basic, op)) = element(there.datatype, op) else { return false };
        let Some(len) = plain_len(there.count, there.datatype, addr) else { return false };
        if len == 0 || op == Predefined::NoOp || basic.pair().is_some() || basic.size() > 8 {
            return false;
        }
        if result.is_some_and(|result| plain_len(there.count, there.datatype, result).is_none()) {
            return false;
        }
        let Some((window, engine)) = self.parts(win) else { return false };
        let Some(remote) = locate(window, there.target, there.disp, len) else {
            return self.change_apart_now((verb(op, result), basic), [addr, 0], result, (&there, len), win);
        };
        let change = || {
            if let Some(result) = result {
                mem::copy_run(result, remote, len);
            }
            mem::with(addr, len, |data| {
                mem::with_mut(remote, len, |there| op::apply(op, basic, data, there));
            });
        };
        let (target, looks) = (there.target as u32, engine.looks_near());
        if window.epoch.is_alone(target) {
            change();
        } else if !control(window).is_some_and(|control| control.change_run_now(target, looks, change)) {
            return false;
        }
        engine.count(Event::WindowAtomic);
        true
    }

    /// `MPI_Accumulate` of one element, and `MPI_Fetch_and_op` with the address of the result; whether it is done.
    #[inline(always)]
    pub fn accumulate_now(
        &mut self,
        addr: usize,
        result: Option<usize>,
        there: There,
        op: Handle,
        win: Handle,
    ) -> bool {
        let Some((basic, op)) = element(there.datatype, op) else { return false };
        let Some(len) = plain_len(1, there.datatype, result.unwrap_or(addr)) else { return false };
        let carries = op != Predefined::NoOp;
        if (carries && plain_len(1, there.datatype, addr).is_none()) || (!carries && result.is_none()) {
            return false;
        }
        let Some((window, engine)) = self.parts(win) else { return false };
        let Some(remote) = locate(window, there.target, there.disp, len) else {
            return self.change_apart_now((verb(op, result), basic), [addr, 0], result, (&there, len), win);
        };
        if !is_atomic(basic, remote) {
            return false;
        }
        let with = if carries { mem::short(addr, len) } else { [0; 8] };
        let (before, looks) = (Cell::new([0; 8]), engine.looks_near());
        let by_atomics = || before.set(change_one(op, basic, remote, with));
        let without = || before.set(change_alone(op, basic, remote, with));
        let Some(control) = control(window) else { return false };
        if !control.change_now(there.target as u32, looks, by_atomics, without) {
            return false;
        }
        let before = before.get();
        if let Some(result) = result {
            mem::write(result, &before[..len]);
        }
        engine.count(Event::WindowAtomic);
        true
    }

    /// `MPI_Compare_and_swap`; whether it is done.
    #[inline(always)]
    pub fn swap_now(&mut self, addrs: [usize; 3], there: There, win: Handle) -> bool {
        let [addr, compare, result] = addrs;
        let Some(row) = basic::predefined(there.datatype).filter(|row| compares(row.basic)) else {
            return false;
        };
        let lens = addrs.map(|addr| plain_len(1, there.datatype, addr));
        let [Some(len), Some(_), Some(_)] = lens else { return false };
        let Some((window, engine)) = self.parts(win) else { return false };
        let Some(remote) = locate(window, there.target, there.disp, len) else {
            let what = (Verb::Swap, row.basic);
            return self.change_apart_now(what, [addr, compare], Some(result), (&there, len), win);
        };
        if !is_atomic(row.basic, remote) {
            return false;
        }
        let (before, looks) = (Cell::new([0; 8]), engine.looks_near());
        let (compare, new) = (mem::short(compare, len), mem::short(addr, len));
        let by_atomics = || before.set(swap_one(row.basic, remote, compare, new));
        let without = || before.set(swap_alone(row.basic, remote, compare, new));
        let Some(control) = control(window) else { return false };
        if !control.change_now(there.target as u32, looks, by_atomics, without) {
            return false;
        }
        let before = before.get();
        mem::write(result, &before[..len]);
        engine.count(Event::WindowAtomic);
        true
    }

    /// `MPI_Win_flush`, and with no target `MPI_Win_flush_all`; whether it is done.
    #[inline(always)]
    pub fn flush_now(&mut self, target: Option<i32>, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        let is_open = match target {
            Some(target) if (target as u32 as usize) < window.members.len() => {
                window.epoch.is_passive(target as u32)
            }
            Some(_) => false,
            None => window.epoch.has_locks(),
        };
        if !is_open || !matches!(window.path, Path::Direct(_)) {
            return is_open && self.flush_apart_now(target, win);
        }
        if looks_around(window) {
            return false;
        }
        mem::order();
        engine.count(Event::WindowFlush);
        true
    }

    /// The same in a window whose memory not all ranks map, where everything that was begun was copied; whether it is done.
    #[inline(never)]
    fn flush_apart_now(&mut self, target: Option<i32>, win: Handle) -> bool {
        let claimed = self.objects.windows.claimed(win);
        let Some((window, engine)) = self.parts(win) else { return false };
        if !is_copied(window, claimed, target) || looks_around(window) {
            return false;
        }
        ended(window);
        mem::order();
        engine.count(Event::WindowFlush);
        true
    }

    /// `MPI_Win_fence`, if the others come soon; whether it is done.
    #[inline(always)]
    pub fn fence_now(&mut self, assert: i32, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        if window.epoch.check_fence(assert).is_err() || !is_settled(window, None) {
            return false;
        }
        for _ in 0..looks_for_end(window, engine) {
            match meet(window, engine, assert) {
                Some(true) => {
                    if let Some(control) = control(window).filter(|control| control.differs().is_some()) {
                        control.meet_again();
                        return false;
                    }
                    ended(window);
                    window.epoch.fenced(assert);
                    return true;
                }
                Some(false) => {}
                None => return false,
            }
        }
        false
    }

    /// `MPI_Win_lock` without assertions, if the lock is free, or soon is; whether it is done.
    #[inline(always)]
    pub fn lock_now(&mut self, kind: i32, target: i32, win: Handle) -> bool {
        let Ok(kind) = LockType::from_raw(kind) else { return false };
        if self.objects.windows.claim().is_some() {
            return false;
        }
        let Some((window, engine)) = self.parts(win) else { return false };
        let target = target as u32;
        let is_allowed = (target as usize) < window.members.len()
            && !window.no_locks
            && window.epoch.check_lock(target, 0).is_ok();
        let holds = window.epoch.holds_single();
        let Some(control) = control(window).filter(|_| is_allowed) else { return false };
        // Who has just given it back has it next, as a rule; who waits longer waits in line.
        if !(0..engine.looks_near()).any(|_| control.try_lock(target, kind, holds)) {
            return false;
        }
        window.epoch.locked(target, Held { kind, unchecked: false });
        engine.count(Event::WindowLock);
        true
    }

    /// `MPI_Win_unlock` of what [`World::lock_now`] locks; whether it is done.
    #[inline(always)]
    pub fn unlock_now(&mut self, target: i32, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        let target = target as u32;
        let Ok(held) = window.epoch.held(target) else { return false };
        if held.unchecked || !is_settled(window, Some(target)) || looks_around(window) {
            return false;
        }
        if control(window).is_some_and(|control| control.unlock(target, held.kind)) {
            wake_all(window, engine);
        }
        ended(window);
        window.epoch.unlocked(target);
        true
    }

    /// `MPI_Win_lock_all` without assertions, if all locks are free, or soon are; whether it is done.
    #[inline(always)]
    pub fn lock_all_now(&mut self, win: Handle) -> bool {
        if self.objects.windows.claim().is_some() {
            return false;
        }
        let Some((window, engine)) = self.parts(win) else { return false };
        let is_allowed = !window.no_locks && window.epoch.check_lock_all(0).is_ok();
        let (ranks, looks) = (window.members.len() as u32, engine.looks_near());
        let Some(control) = control(window).filter(|_| is_allowed) else { return false };
        let is_had = |target: &u32| (0..looks).any(|_| control.try_lock(*target, LockType::Shared, false));
        let had = (0..ranks).take_while(is_had).count() as u32;
        if had < ranks {
            // Who waits with locks in hand waits in line.
            if unlock_below(control, had) {
                wake_all(window, engine);
            }
            return false;
        }
        window.epoch.locked_all(false);
        (0..ranks).for_each(|_| engine.count(Event::WindowLock));
        true
    }

    /// `MPI_Win_unlock_all` of what [`World::lock_all_now`] locks; whether it is done.
    #[inline(always)]
    pub fn unlock_all_now(&mut self, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        if window.epoch.held_all() != Ok(false) || !is_settled(window, None) || looks_around(window) {
            return false;
        }
        let ranks = window.members.len() as u32;
        if control(window).is_some_and(|control| unlock_below(control, ranks)) {
            wake_all(window, engine);
        }
        ended(window);
        window.epoch.ended();
        true
    }

    /// A window, the engine, and the group of this handle.
    #[inline(always)]
    fn parts_for(&mut self, group: Handle, win: Handle) -> Option<(&mut Window, &mut Engine<D>, &Group)> {
        let World { objects, engine, .. } = self;
        Some((objects.windows.slab.get_mut(win)?, engine, objects.groups.get(group)?))
    }

    /// `MPI_Win_post` of a group that is known to the window; whether it is done.
    #[inline(always)]
    pub fn expose_now(&mut self, group: Handle, assert: i32, win: Handle) -> bool {
        let Some((window, engine, group)) = self.parts_for(group, win) else { return false };
        let Window { path, groups, epoch, place, .. } = window;
        let Some(control) = path.control_mut() else { return false };
        let Some(origins) = known(groups, group) else { return false };
        if epoch.post(origins, assert).is_err() {
            return false;
        }
        tell_all(control, place, engine, Told::Post, origins);
        engine.count(Event::WindowPost);
        true
    }

    /// `MPI_Win_start` of a group that is known to the window, if its posts come soon; whether it is done.
    #[inline(always)]
    pub fn start_now(&mut self, group: Handle, assert: i32, win: Handle) -> bool {
        let Some((window, engine, group)) = self.parts_for(group, win) else { return false };
        let Window { path, groups, epoch, .. } = window;
        let Some(control) = path.control_mut() else { return false };
        let Some(targets) = known(groups, group) else { return false };
        if epoch.check_start(assert).is_err() || !hears(control, engine.looks_near(), Told::Post, targets) {
            return false;
        }
        epoch.start(targets);
        engine.count(Event::WindowStart);
        true
    }

    /// `MPI_Win_complete`; whether it is done.
    #[inline(always)]
    pub fn complete_now(&mut self, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        if !is_settled(window, None) {
            return false;
        }
        ended(window);
        let Window { path, epoch, place, .. } = window;
        let Some(control) = path.control_mut() else { return false };
        let Ok(targets) = epoch.started() else { return false };
        tell_all(control, place, engine, Told::Complete, targets);
        epoch.ended();
        true
    }

    /// `MPI_Win_wait`, if the origins complete soon; whether it is done.
    #[inline(always)]
    pub fn wait_now(&mut self, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        let looks = looks_for_end(window, engine);
        let Window { path, epoch, .. } = window;
        let Some(control) = path.control_mut() else { return false };
        let Ok(origins) = epoch.exposed() else { return false };
        if !hears(control, looks, Told::Complete, origins) {
            return false;
        }
        epoch.waited();
        exposure_ended(window);
        true
    }
}

/// Whether everything that was begun at this target of the window, or at any, was copied there, so that nothing is to be completed.
fn is_copied(window: &Window, claimed: Option<u32>, target: Option<i32>) -> bool {
    let Path::Active(active) = &window.path else { return false };
    let target = target.map(|target| target as u32);
    let is_claimed = claimed.is_some_and(|claimed| target.is_none_or(|target| target == claimed));
    let is_mapped = window.members[target.unwrap_or(window.place.rank) as usize].mapped;
    (is_mapped || active.near.is_some()) && !is_claimed && active.is_idle(target)
}

/// Whether it is time to look around.
#[inline(always)]
fn looks_around(window: &mut Window) -> bool {
    window.unlooked = window.unlooked.wrapping_add(1);
    window.unlooked.is_multiple_of(LOOK_EVERY)
}

/// Begins or goes on with the barrier of a fence; whether it is over, `None` where memory is not shared.
#[inline(always)]
pub(super) fn meet<D: Device>(window: &mut Window, engine: &mut Engine<D>, assert: i32) -> Option<bool> {
    let Window { path, place, .. } = window;
    let control = path.control_mut()?;
    let met =
        control.meet(epoch::common(assert), |rank| engine.device().wake(place.world_rank(rank) as usize));
    if met {
        engine.count(Event::WindowFence);
        exposure_ended(window);
    }
    Some(met)
}

/// Tells ranks of a window whose memory is shared.
#[inline(always)]
pub(super) fn tell_all<D: Device>(
    control: &mut Control,
    place: &Place,
    engine: &Engine<D>,
    told: Told,
    to: &[u32],
) {
    for &rank in to {
        control.tell(told, rank);
        engine.device().wake(place.world_rank(rank) as usize);
    }
}

/// Wakes all who may wait for a lock.
#[cold]
pub(super) fn wake_all<D: Device>(window: &Window, engine: &Engine<D>) {
    let place = &window.place;
    (0..place.size()).for_each(|rank| engine.device().wake(place.world_rank(rank) as usize));
}

/// Gives back the shared locks of all targets before one; whether somebody waits for one of them.
fn unlock_below(control: &Control, end: u32) -> bool {
    (0..end).filter(|target| control.unlock(*target, LockType::Shared)).count() > 0
}

/// Whether all of these tell this rank soon; then that is used up.
#[inline(always)]
fn hears(control: &mut Control, looks: u32, told: Told, from: &[u32]) -> bool {
    (0..looks).any(|_| control.heard(told, from))
}
