//! The first steps of the operations of every short message, before their arguments are parsed.
//!
//! A row with the flag `quick` asks the function of its name here first. It does the whole
//! operation if that is possible at once, by the same calls the handler would make, and otherwise
//! nothing: then the general path checks every argument and says what is wrong. What is saved are
//! the steps that only errors need.
#![allow(non_snake_case, clippy::too_many_arguments)]

use mpi::handle::Handle;
use mpi::status::Status;

use crate::{engine, global, layout};

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

/// `MPI_Isend` of a short message that can leave at once.
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
    if request == 0 || tag < 0 || !world.objects.requests.has_sent() {
        return None;
    }
    if !world.send_now::<true>(buf, n, handle(datatype), dest, tag, handle(comm)) {
        return None;
    }
    store(request, world.objects.requests.sent().ok()?);
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
