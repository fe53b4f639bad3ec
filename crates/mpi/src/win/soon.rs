//! Synchronisations by words that all ranks of a window map, in their most frequent form, done at once by a few instructions if what they wait for
//! is there or comes soon; else nothing, or no more than the general path goes on with ([`super::quick`]).
//!
//! Each is compiled twice: for windows whose memory is mapped as well, and (`NEAR`) for those where it is not, in which targets may have been told
//! something that is to be done first ([`super::heed`]), and a rank that waits is told.

use super::direct::{Control, Told};
use super::epoch::{self, Held, LockType};
use super::quick::{control, is_settled, looks_around};
use super::{Delivery, Window, known};
use crate::comm::Place;
use crate::group::Group;
use crate::handle::Handle;
use crate::world::World;
use fabric::Device;
use proto::Engine;
use proto::event::Event;

/// An epoch is over.
#[inline(always)]
pub(super) fn ended(window: &mut Window) {
    if let Delivery::Active(active) = &mut window.path {
        active.tally.ended();
    }
}

/// How often to look for a word that ends an exposure epoch before a look around: once, where that waits as a rule for what this rank is told.
#[inline(always)]
fn looks_for_end<const NEAR: bool, D: Device>(window: &Window, engine: &Engine<D>) -> u32 {
    match &window.path {
        Delivery::Active(active) if NEAR && active.heeds != [false; 2] => 1,
        _ => engine.looks_near(),
    }
}

/// An exposure epoch is over.
#[inline(always)]
pub(super) fn exposure_ended(window: &mut Window) {
    if let Delivery::Active(active) = &mut window.path {
        active.heeds = [false, active.heeds[0]];
    }
}

impl<D: Device> World<D> {
    /// Tries the same in a window whose ranks map words but not its memory. Apart, so that others do not pay for it.
    #[inline(never)]
    fn near(&mut self, win: Handle, f: impl FnOnce(&mut Self) -> bool) -> bool {
        self.objects.windows.get(win).is_some_and(Window::is_near) && f(self)
    }

    /// `MPI_Win_fence`, if the others come soon; whether it is done.
    #[inline(always)]
    pub fn fence_now(&mut self, assert: i32, win: Handle) -> bool {
        self.fence_by::<false>(assert, win) || self.near(win, |world| world.fence_by::<true>(assert, win))
    }

    #[inline(always)]
    fn fence_by<const NEAR: bool>(&mut self, assert: i32, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        if window.epoch.check_fence(assert).is_err() || !is_settled::<NEAR>(window, None) {
            return false;
        }
        for _ in 0..looks_for_end::<NEAR, D>(window, engine) {
            match meet::<NEAR, D>(window, engine, assert) {
                Some(true) => {
                    if let Some(control) =
                        control::<NEAR>(&mut window.path).filter(|control| control.differs().is_some())
                    {
                        control.meet_again();
                        return false;
                    }
                    if NEAR {
                        ended(window);
                    }
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
        self.lock_by::<false>(kind, target, win)
            || self.near(win, |world| world.lock_by::<true>(kind, target, win))
    }

    #[inline(always)]
    fn lock_by<const NEAR: bool>(&mut self, kind: i32, target: i32, win: Handle) -> bool {
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
        let Some(control) = control::<NEAR>(&mut window.path).filter(|_| is_allowed) else { return false };
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
        self.unlock_by::<false>(target, win) || self.near(win, |world| world.unlock_by::<true>(target, win))
    }

    #[inline(always)]
    fn unlock_by<const NEAR: bool>(&mut self, target: i32, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        let target = target as u32;
        let Ok(held) = window.epoch.held(target) else { return false };
        if held.unchecked || !is_settled::<NEAR>(window, Some(target)) || looks_around(window) {
            return false;
        }
        if control::<NEAR>(&mut window.path).is_some_and(|control| control.unlock(target, held.kind)) {
            wake_all(window, engine);
        }
        if NEAR {
            ended(window);
        }
        window.epoch.unlocked(target);
        true
    }

    /// `MPI_Win_lock_all` without assertions, if all locks are free, or soon are; whether it is done.
    #[inline(always)]
    pub fn lock_all_now(&mut self, win: Handle) -> bool {
        self.lock_all_by::<false>(win) || self.near(win, |world| world.lock_all_by::<true>(win))
    }

    #[inline(always)]
    fn lock_all_by<const NEAR: bool>(&mut self, win: Handle) -> bool {
        if self.objects.windows.claim().is_some() {
            return false;
        }
        let Some((window, engine)) = self.parts(win) else { return false };
        let is_allowed = !window.no_locks && window.epoch.check_lock_all(0).is_ok();
        let (ranks, looks) = (window.members.len() as u32, engine.looks_near());
        let Some(control) = control::<NEAR>(&mut window.path).filter(|_| is_allowed) else { return false };
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
        self.unlock_all_by::<false>(win) || self.near(win, |world| world.unlock_all_by::<true>(win))
    }

    #[inline(always)]
    fn unlock_all_by<const NEAR: bool>(&mut self, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        if window.epoch.held_all() != Ok(false) || !is_settled::<NEAR>(window, None) || looks_around(window) {
            return false;
        }
        let ranks = window.members.len() as u32;
        if control::<NEAR>(&mut window.path).is_some_and(|control| unlock_below(control, ranks)) {
            wake_all(window, engine);
        }
        if NEAR {
            ended(window);
        }
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
        self.expose_by::<false>(group, assert, win)
            || self.near(win, |world| world.expose_by::<true>(group, assert, win))
    }

    #[inline(always)]
    fn expose_by<const NEAR: bool>(&mut self, group: Handle, assert: i32, win: Handle) -> bool {
        let Some((window, engine, group)) = self.parts_for(group, win) else { return false };
        let Window { path, groups, epoch, place, .. } = window;
        let Some(control) = control::<NEAR>(path) else { return false };
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
        self.start_by::<false>(group, assert, win)
            || self.near(win, |world| world.start_by::<true>(group, assert, win))
    }

    #[inline(always)]
    fn start_by<const NEAR: bool>(&mut self, group: Handle, assert: i32, win: Handle) -> bool {
        let Some((window, engine, group)) = self.parts_for(group, win) else { return false };
        let Window { path, groups, epoch, .. } = window;
        let Some(control) = control::<NEAR>(path) else { return false };
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
        self.complete_by::<false>(win) || self.near(win, |world| world.complete_by::<true>(win))
    }

    #[inline(always)]
    fn complete_by<const NEAR: bool>(&mut self, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        if !is_settled::<NEAR>(window, None) {
            return false;
        }
        if NEAR {
            ended(window);
        }
        let Window { path, epoch, place, .. } = window;
        let Some(control) = control::<NEAR>(path) else { return false };
        let Ok(targets) = epoch.started() else { return false };
        tell_all(control, place, engine, Told::Complete, targets);
        epoch.ended();
        true
    }

    /// `MPI_Win_wait`, if the origins complete soon; whether it is done.
    #[inline(always)]
    pub fn wait_now(&mut self, win: Handle) -> bool {
        self.wait_by::<false>(win) || self.near(win, |world| world.wait_by::<true>(win))
    }

    #[inline(always)]
    fn wait_by<const NEAR: bool>(&mut self, win: Handle) -> bool {
        let Some((window, engine)) = self.parts(win) else { return false };
        let looks = looks_for_end::<NEAR, D>(window, engine);
        let Window { path, epoch, .. } = window;
        let Ok(origins) = epoch.exposed() else { return false };
        if NEAR && !has_ended(path, looks, origins) {
            return false;
        }
        let Some(control) = control::<NEAR>(path) else { return false };
        if !hears(control, looks, Told::Complete, origins) {
            return false;
        }
        epoch.waited();
        if NEAR {
            exposure_ended(window);
        }
        true
    }
}

/// Begins or goes on with the barrier of a fence; whether it is over, and what this rank was told before heeded. `None` where memory is not shared.
#[inline(always)]
pub(super) fn meet<const NEAR: bool, D: Device>(
    window: &mut Window,
    engine: &mut Engine<D>,
    assert: i32,
) -> Option<bool> {
    let Window { path, place, .. } = window;
    let says = epoch::common(assert);
    let wake = |rank: u32| engine.device().wake(place.world_rank(rank) as usize);
    let met = match path {
        Delivery::Direct(control) => control.meet(says, wake),
        Delivery::Active(active) if NEAR => match active.near.as_mut()?.meet_told(says, wake) {
            Some(was_told) => !was_told || active.heeds_for_fence(place.rank, wake),
            None => false,
        },
        Delivery::Active(_) => return None,
    };
    if met {
        engine.count(Event::WindowFence);
        if NEAR {
            exposure_ended(window);
        }
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

/// Whether all of these complete soon, and what they have told this rank is done.
fn has_ended(path: &Delivery, looks: u32, origins: &[u32]) -> bool {
    let Delivery::Active(active) = path else { return false };
    let Some(control) = &active.near else { return false };
    let have = || origins.iter().all(|rank| control.has_told(Told::Complete, *rank));
    (0..looks).any(|_| have()) && origins.iter().all(|rank| active.has_heeded_all_of(*rank))
}

/// Whether all of these tell this rank soon; then that is used up.
#[inline(always)]
fn hears(control: &mut Control, looks: u32, told: Told, from: &[u32]) -> bool {
    (0..looks).any(|_| control.heard(told, from))
}
