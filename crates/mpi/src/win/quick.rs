//! Operations of direct windows, and flushes, in their most frequent form, done at once by a few instructions; other synchronisations: [`soon`].
//!
//! Each does the whole of it if the arguments are of predefined types without gaps, the epoch permits it and nothing
//! has to be waited for long, and otherwise nothing, or no more than the general path goes on with: that one checks
//! every argument and says what is wrong. What is done is the same.
//!
//! Of other windows Puts and Gets of one run at a target whose memory this rank maps are done at once, too, and a flush there that has
//! nothing else to complete; at a target behind an adapter they are held at once where the one before was held that is like them.

use std::cell::Cell;

use super::direct::Control;
use super::operation::{Verb, change_alone, change_one, compares, is_atomic, swap_alone, swap_one};
use super::{Delivery, Window, copied, soon};
use crate::datatype::basic::{self, Basic, basic_size};
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

/// The words of a window whose memory is shared; with `NEAR` of any whose ranks map words.
#[inline(always)]
pub(super) fn control<const NEAR: bool>(path: &mut Delivery) -> Option<&mut Control> {
    match path {
        Delivery::Direct(control) => Some(control),
        path if NEAR => path.control_mut(),
        Delivery::Active(_) => None,
    }
}

/// Whether targets, one or all of them, owe nothing that a synchronisation by words has to wait for; that is to be told of by the general path.
#[inline(always)]
pub(super) fn is_settled<const NEAR: bool>(window: &Window, target: Option<u32>) -> bool {
    match &window.path {
        Delivery::Direct(_) => true,
        Delivery::Active(active) => NEAR && active.near.is_some() && active.is_idle(target),
    }
}

/// The address of a run of `len` bytes in the memory of a target of a direct window that an epoch includes.
#[inline(always)]
fn locate(window: &mut Window, target: i32, disp: i64, len: usize) -> Option<usize> {
    if !matches!(window.path, Delivery::Direct(_)) {
        return None;
    }
    run_at(window, target, disp, len)
}

/// The same of a target of an active window whose memory this rank maps, where it has nothing to wait for: neither a lock, of which
/// the one that is `claimed` is not held, nor that the target heeds what it was told in epochs before.
fn locate_mapped(window: &mut Window, claimed: Option<u32>, there: &There, len: usize) -> Option<usize> {
    let Delivery::Active(active) = &window.path else { return None };
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
        } else if !control::<false>(&mut window.path)
            .is_some_and(|control| control.change_run_now(target, looks, change))
        {
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
        let Some(control) = control::<false>(&mut window.path) else { return false };
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
        let Some(control) = control::<false>(&mut window.path) else { return false };
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
        if !is_open || !matches!(window.path, Delivery::Direct(_)) {
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
        soon::ended(window);
        mem::order();
        engine.count(Event::WindowFlush);
        true
    }
}

/// Whether everything that was begun at this target of the window, or at any, was copied there, so that nothing is to be completed.
fn is_copied(window: &Window, claimed: Option<u32>, target: Option<i32>) -> bool {
    let Delivery::Active(active) = &window.path else { return false };
    let target = target.map(|target| target as u32);
    let is_claimed = claimed.is_some_and(|claimed| target.is_none_or(|target| target == claimed));
    let is_mapped = window.members[target.unwrap_or(window.place.rank) as usize].mapped;
    (is_mapped || active.near.is_some()) && !is_claimed && active.is_idle(target)
}

/// Whether it is time to look around.
#[inline(always)]
pub(super) fn looks_around(window: &mut Window) -> bool {
    window.unlooked = window.unlooked.wrapping_add(1);
    window.unlooked.is_multiple_of(LOOK_EVERY)
}
