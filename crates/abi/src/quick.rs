//! The first steps of the operations of every short message, and of one-sided operations in shared memory, before
//! their arguments are parsed.
//!
//! A row with the flag `quick` asks the function of its name here first. It does the whole
//! operation if that is possible at once, by the same calls the handler would make, and otherwise
//! nothing: then the general path checks every argument and says what is wrong. What is saved are
//! the steps that only errors need.
#![allow(non_snake_case, clippy::too_many_arguments)]

use mpi::coll::args;
use mpi::datatype::basic;
use mpi::handle::Handle;
use mpi::op::{self, Predefined};
use mpi::status::Status;
use mpi::topo::Topology;
use mpi::win::quick::There;
use shm::owner::AtOnce;

use crate::kind::output::Out;
use crate::object::Object;
use crate::op::combine;
use crate::tools::event;
use crate::{engine, global, layout};

mod empty;
pub use empty::*;

/// A handle as the general path would see it, or one that names nothing.
#[inline(always)]
fn handle(raw: usize) -> Handle {
    Handle(if raw <= u32::MAX as usize { raw as u32 } else { 0 })
}

/// A count that is not negative.
#[inline(always)]
fn count(raw: impl Into<i64>) -> Option<u64> {
    u64::try_from(raw.into()).ok()
}

/// `MPI_Send` of a short message that can leave at once.
#[inline(always)]
pub fn MPI_Send(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
) -> Option<i32> {
    let n = count(n)?;
    let mut world = global::at_once()?;
    let left = tag >= 0 && world.send_now::<false>(buf, n, handle(datatype), dest, tag, handle(comm));
    left.then_some(0)
}

/// That its receive is posted makes nothing simpler.
pub use self::{MPI_Isend as MPI_Irsend, MPI_Send as MPI_Rsend};

/// `MPI_Recv` of a short message that is there or comes soon.
#[inline(always)]
pub fn MPI_Recv(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    source: i32,
    tag: i32,
    comm: usize,
    status: usize,
) -> Option<i32> {
    let n = count(n)?;
    let found = {
        let mut world = global::at_once()?;
        world.receive_now(buf, n, handle(datatype), source, tag, handle(comm))?
    };
    put(status, found);
    Some(0)
}

/// `MPI_Isend` of a predefined type.
#[inline(always)]
pub fn MPI_Isend(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    dest: i32,
    tag: i32,
    comm: usize,
    request: usize,
) -> Option<i32> {
    let n = count(n)?;
    let mut world = global::at_once()?;
    if request == 0 || tag < 0 {
        return None;
    }
    // Before anything leaves: it may fail.
    let sent = world.objects.requests.sent().ok()?;
    let (datatype, comm) = (handle(datatype), handle(comm));
    let begun = match world.send_now::<true>(buf, n, datatype, dest, tag, comm) {
        true => sent,
        false => world.isend_now((buf, n, datatype), (dest, tag, comm))?,
    };
    store(request, begun);
    engine::leave(&world);
    Some(0)
}

/// `MPI_Irecv` of a predefined type.
#[inline(always)]
pub fn MPI_Irecv(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    source: i32,
    tag: i32,
    comm: usize,
    request: usize,
) -> Option<i32> {
    let n = count(n)?;
    let mut world = global::at_once()?;
    if request == 0 || tag < 0 {
        return None;
    }
    let posted = world.irecv_now(buf, n, handle(datatype), source, tag, handle(comm))?;
    store(request, posted);
    engine::leave(&world);
    Some(0)
}

/// `MPI_Wait` for what was over when it was begun.
#[inline(always)]
pub fn MPI_Wait(request: usize, status: usize) -> Option<i32> {
    if request == 0 {
        return None;
    }
    let mut world = global::at_once()?;
    // SAFETY: not null, and the application passes the address of a handle variable.
    let raw = handle(unsafe { layout::load(Object::Request, request) });
    if world.objects.requests.is_shared(raw) {
        store(request, mpi::request::REQUEST_NULL);
    } else if !world.take_if_over(raw) {
        return wait_for_message(world, raw, request, status);
    }
    put(status, Status::EMPTY);
    Some(0)
}

/// Apart, so that what was over when it was begun does not pay for what a message needs.
#[inline(never)]
fn wait_for_message(
    mut world: AtOnce<'static, global::World>,
    raw: Handle,
    request: usize,
    status: usize,
) -> Option<i32> {
    let (found, is_kept) = world.take_soon(raw)?;
    if !is_kept {
        store(request, mpi::request::REQUEST_NULL);
    }
    put(status, found);
    Some(0)
}

/// `MPI_Start` of a message, or of a collective that is over when it begins.
#[inline(always)]
pub fn MPI_Start(request: usize) -> Option<i32> {
    if request == 0 {
        return None;
    }
    let mut world = unheard()?;
    // SAFETY: not null, and the application passes the address of a handle variable.
    let raw = unsafe { layout::load(Object::Request, request) };
    match world.start_nothing(handle(raw)) {
        true => Some(0),
        false => start_message(world, handle(raw)),
    }
}

/// Apart, so that what moves nothing does not pay for what a message needs.
#[inline(never)]
fn start_message(mut world: AtOnce<'static, global::World>, request: Handle) -> Option<i32> {
    if world.start_message_now(request)? {
        engine::leave(&world);
    }
    Some(0)
}

/// `MPI_Startall` of partitioned rounds that are like those before them.
#[inline(always)]
pub fn MPI_Startall(n: i32, requests: usize) -> Option<i32> {
    let n = usize::try_from(n).ok().filter(|_| requests != 0)?;
    let mut world = unheard()?;
    // SAFETY: not null, and the application passes the address of so many handle variables.
    let slots = unsafe { std::slice::from_raw_parts(requests as *const layout::Slot, n) };
    if !world.start_all_now(slots.iter().map(|slot| handle(slot.get(Object::Request)))) {
        return None;
    }
    engine::leave(&world);
    Some(0)
}

/// `MPI_Reduce_local` by an operation of the standard on elements of one of its types.
#[inline(always)]
pub fn MPI_Reduce_local(
    inbuf: usize,
    inoutbuf: usize,
    n: impl Into<i64>,
    datatype: usize,
    op: usize,
) -> Option<i32> {
    let (n, datatype, op) = (count(n)?, handle(datatype), handle(op));
    if inbuf.min(inoutbuf) <= args::IN_PLACE || inbuf == inoutbuf || !op::reduces(op, datatype) {
        return None;
    }
    // The rank is not held meanwhile: it may be long.
    global::at_once()?;
    if n == 0 { Some(0) } else { reduce_some(inbuf, inoutbuf, n, (datatype, op)) }
}

#[inline(never)]
fn reduce_some(inbuf: usize, inoutbuf: usize, n: u64, (datatype, op): (Handle, Handle)) -> Option<i32> {
    let (op, row) = (Predefined::from_handle(op)?, basic::predefined(datatype)?);
    combine(op, row.basic, inbuf, inoutbuf, n).ok().map(|()| 0)
}

/// `MPI_Cart_shift` where nothing is wrong.
#[inline(always)]
pub fn MPI_Cart_shift(comm: usize, direction: i32, disp: i32, source: usize, dest: usize) -> Option<i32> {
    let world = global::at_once()?;
    let comm = world.comm(handle(comm)).ok()?;
    if source == 0 || dest == 0 {
        return None;
    }
    let Some(Topology::Cart(cart)) = comm.topology() else {
        return None;
    };
    let [from, to] = cart.shift_now(comm.place.rank, direction, disp)?;
    Out::at(source, "").ok()?.set(from);
    Out::at(dest, "").ok()?.set(to);
    Some(0)
}

/// `MPI_Pready` of a partition that does not complete its message, or whose message leaves at once.
#[inline(always)]
pub fn MPI_Pready(partition: i32, request: usize) -> Option<i32> {
    if global::at_once()?.note_now(handle(request), partition) {
        return Some(0);
    }
    ready_now(partition, request)
}

/// Apart, so that what is only noted does not pay for what sending needs.
#[inline(never)]
fn ready_now(partition: i32, request: usize) -> Option<i32> {
    global::at_once()?.ready_now(handle(request), partition).then_some(0)
}

/// The rank for what is done in a window at once: not where tools listen, who are told by the general path.
#[inline(always)]
fn unheard() -> Option<AtOnce<'static, global::World>> {
    if event::are_heard() { None } else { global::at_once() }
}

/// Where a one-sided operation goes.
#[inline(always)]
fn there(target: i32, disp: i64, n: impl Into<i64>, datatype: usize) -> Option<There> {
    Some(There { target, disp, count: count(n)?, datatype: handle(datatype) })
}

/// `MPI_Put` or `MPI_Get` of one run in shared memory.
#[inline(always)]
fn transfer<const PUT: bool>(
    (buf, n, datatype): (usize, u64, usize),
    there: There,
    win: usize,
) -> Option<i32> {
    unheard()?.transfer_now::<PUT, false>((buf, n, handle(datatype)), there, handle(win)).then_some(0)
}

/// The same with a request, which is over when it is begun.
#[inline(always)]
fn transfer_asking<const PUT: bool>(
    (buf, n, datatype): (usize, u64, usize),
    there: There,
    win: usize,
    request: usize,
) -> Option<i32> {
    let mut world = unheard()?;
    if request == 0 {
        return None;
    }
    let sent = world.objects.requests.sent().ok()?;
    if !world.transfer_now::<PUT, true>((buf, n, handle(datatype)), there, handle(win)) {
        return None;
    }
    store(request, sent);
    Some(0)
}

/// `MPI_Put` of one run in shared memory.
#[inline(always)]
pub fn MPI_Put(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    target: i32,
    disp: i64,
    target_n: impl Into<i64>,
    target_datatype: usize,
    win: usize,
) -> Option<i32> {
    transfer::<true>((buf, count(n)?, datatype), there(target, disp, target_n, target_datatype)?, win)
}

/// `MPI_Get` of one run in shared memory.
#[inline(always)]
pub fn MPI_Get(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    target: i32,
    disp: i64,
    target_n: impl Into<i64>,
    target_datatype: usize,
    win: usize,
) -> Option<i32> {
    transfer::<false>((buf, count(n)?, datatype), there(target, disp, target_n, target_datatype)?, win)
}

/// `MPI_Rput` of one run in shared memory.
#[inline(always)]
pub fn MPI_Rput(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    target: i32,
    disp: i64,
    target_n: impl Into<i64>,
    target_datatype: usize,
    win: usize,
    request: usize,
) -> Option<i32> {
    let there = there(target, disp, target_n, target_datatype)?;
    transfer_asking::<true>((buf, count(n)?, datatype), there, win, request)
}

/// `MPI_Rget` of one run in shared memory.
#[inline(always)]
pub fn MPI_Rget(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    target: i32,
    disp: i64,
    target_n: impl Into<i64>,
    target_datatype: usize,
    win: usize,
    request: usize,
) -> Option<i32> {
    let there = there(target, disp, target_n, target_datatype)?;
    transfer_asking::<false>((buf, count(n)?, datatype), there, win, request)
}

/// `MPI_Accumulate`, and `MPI_Get_accumulate` with the address of the result, of one run in shared memory.
#[inline(always)]
fn accumulate(buf: usize, result: Option<usize>, there: There, op: usize, win: usize) -> Option<i32> {
    let (op, win) = (handle(op), handle(win));
    let mut world = unheard()?;
    let done = match there.count {
        1 => world.accumulate_now(buf, result, there, op, win),
        _ => world.accumulate_run_now(buf, result, there, op, win),
    };
    done.then_some(0)
}

/// `MPI_Accumulate` of one run in shared memory.
#[inline(always)]
pub fn MPI_Accumulate(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    target: i32,
    disp: i64,
    target_n: impl Into<i64>,
    target_datatype: usize,
    op: usize,
    win: usize,
) -> Option<i32> {
    let there = there(target, disp, target_n, target_datatype)?;
    if count(n)? != there.count || datatype != target_datatype {
        return None;
    }
    accumulate(buf, None, there, op, win)
}

/// `MPI_Get_accumulate` of one run in shared memory.
#[inline(always)]
pub fn MPI_Get_accumulate(
    buf: usize,
    n: impl Into<i64>,
    datatype: usize,
    result: usize,
    result_n: impl Into<i64>,
    result_datatype: usize,
    target: i32,
    disp: i64,
    target_n: impl Into<i64>,
    target_datatype: usize,
    op: usize,
    win: usize,
) -> Option<i32> {
    let there = there(target, disp, target_n, target_datatype)?;
    let counts = [count(n)?, count(result_n)?];
    if counts != [there.count; 2] || [datatype, result_datatype] != [target_datatype; 2] {
        return None;
    }
    accumulate(buf, Some(result), there, op, win)
}

/// `MPI_Fetch_and_op` in shared memory.
#[inline(always)]
pub fn MPI_Fetch_and_op(
    buf: usize,
    result: usize,
    datatype: usize,
    target: i32,
    disp: i64,
    op: usize,
    win: usize,
) -> Option<i32> {
    let there = there(target, disp, 1, datatype)?;
    unheard()?.accumulate_now(buf, Some(result), there, handle(op), handle(win)).then_some(0)
}

/// `MPI_Compare_and_swap` in shared memory.
#[inline(always)]
pub fn MPI_Compare_and_swap(
    buf: usize,
    compare: usize,
    result: usize,
    datatype: usize,
    target: i32,
    disp: i64,
    win: usize,
) -> Option<i32> {
    let there = there(target, disp, 1, datatype)?;
    unheard()?.swap_now([buf, compare, result], there, handle(win)).then_some(0)
}

/// `MPI_Win_flush` in shared memory.
#[inline(always)]
pub fn MPI_Win_flush(rank: i32, win: usize) -> Option<i32> {
    unheard()?.flush_now(Some(rank), handle(win)).then_some(0)
}

/// `MPI_Win_flush_local` in shared memory, where it is no less.
#[inline(always)]
pub fn MPI_Win_flush_local(rank: i32, win: usize) -> Option<i32> {
    MPI_Win_flush(rank, win)
}

/// `MPI_Win_flush_all` in shared memory.
#[inline(always)]
pub fn MPI_Win_flush_all(win: usize) -> Option<i32> {
    unheard()?.flush_now(None, handle(win)).then_some(0)
}

/// `MPI_Win_flush_local_all` in shared memory, where it is no less.
#[inline(always)]
pub fn MPI_Win_flush_local_all(win: usize) -> Option<i32> {
    MPI_Win_flush_all(win)
}

/// `MPI_Win_fence` in shared memory, if the others come soon.
#[inline(always)]
pub fn MPI_Win_fence(assert: i32, win: usize) -> Option<i32> {
    unheard()?.fence_now(assert, handle(win)).then_some(0)
}

/// `MPI_Win_post` in shared memory.
#[inline(always)]
pub fn MPI_Win_post(group: usize, assert: i32, win: usize) -> Option<i32> {
    unheard()?.expose_now(handle(group), assert, handle(win)).then_some(0)
}

/// `MPI_Win_start` in shared memory, if the targets post soon.
#[inline(always)]
pub fn MPI_Win_start(group: usize, assert: i32, win: usize) -> Option<i32> {
    unheard()?.start_now(handle(group), assert, handle(win)).then_some(0)
}

/// `MPI_Win_complete` in shared memory.
#[inline(always)]
pub fn MPI_Win_complete(win: usize) -> Option<i32> {
    unheard()?.complete_now(handle(win)).then_some(0)
}

/// `MPI_Win_wait` in shared memory, if the origins complete soon.
#[inline(always)]
pub fn MPI_Win_wait(win: usize) -> Option<i32> {
    unheard()?.wait_now(handle(win)).then_some(0)
}

/// `MPI_Win_lock` of a lock in shared memory that is free.
#[inline(always)]
pub fn MPI_Win_lock(kind: i32, rank: i32, assert: i32, win: usize) -> Option<i32> {
    let taken = assert == 0 && unheard()?.lock_now(kind, rank, handle(win));
    taken.then_some(0)
}

/// `MPI_Win_unlock` in shared memory.
#[inline(always)]
pub fn MPI_Win_unlock(rank: i32, win: usize) -> Option<i32> {
    unheard()?.unlock_now(rank, handle(win)).then_some(0)
}

/// `MPI_Win_lock_all` of locks in shared memory that are free.
#[inline(always)]
pub fn MPI_Win_lock_all(assert: i32, win: usize) -> Option<i32> {
    let taken = assert == 0 && unheard()?.lock_all_now(handle(win));
    taken.then_some(0)
}

/// `MPI_Win_unlock_all` in shared memory.
#[inline(always)]
pub fn MPI_Win_unlock_all(win: usize) -> Option<i32> {
    unheard()?.unlock_all_now(handle(win)).then_some(0)
}

#[inline(always)]
fn store(place: usize, handle: Handle) {
    // SAFETY: not null, and the application passes the address of a handle variable.
    unsafe { layout::store(place, handle) }
}

/// Stores a status but for its error field (MPI 5.0 section 3.2.5).
#[inline(always)]
fn put(place: usize, status: Status) {
    if place != 0 {
        // SAFETY: the application passes the address of an `MPI_Status`.
        unsafe { layout::put_received(place, status.to_ints()) }
    }
}
