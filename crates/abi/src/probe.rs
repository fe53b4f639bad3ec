//! MPI 5.0 section 3.8: probes, and receiving what a matched probe has found.

use mpi::error::Result;
use mpi::handle::Handle;
use mpi::request::Body;
use mpi::status::Status;

use crate::cx::Cx;
use crate::global::World;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;
use crate::kind::text::StatusPlace;
use crate::report::Waits;
use crate::{engine, request, wait};

/// `MPI_MESSAGE_NULL`.
pub const MESSAGE_NULL: Handle = Handle(0x128);
/// `MPI_MESSAGE_NO_PROC`.
pub const MESSAGE_NO_PROC: Handle = Handle(0x129);

fn find(world: &mut World, source: i32, tag: i32, comm: Handle) -> Result<Option<Status>> {
    let place = world.comm(comm)?.place.clone();
    world.probe(&place, source, tag)
}

/// `MPI_Probe`.
pub fn probe(cx: &Cx, source: i32, tag: i32, comm: Handle, status: StatusPlace) -> Result {
    let ready = |_: &mut (), world: &mut World| find(world, source, tag, comm);
    let found = wait::on(cx, &mut (), ready, |()| Waits::Message { source, tag, comm })?;
    status.set_keeping_error(found.to_ints());
    Ok(())
}

/// `MPI_Iprobe`.
pub fn iprobe(cx: &Cx, source: i32, tag: i32, comm: Handle, flag: Out<bool>, status: StatusPlace) -> Result {
    let found = wait::once(cx, |world| find(world, source, tag, comm))?;
    flag.set(found.is_some());
    if let Some(found) = found {
        status.set_keeping_error(found.to_ints());
    }
    Ok(())
}

fn extract(world: &mut World, source: i32, tag: i32, comm: Handle) -> Result<Option<(Status, Handle)>> {
    let place = world.comm(comm)?.place.clone();
    Ok(match world.probe_matched(&place, comm, source, tag)? {
        None => None,
        Some((status, None)) => Some((status, MESSAGE_NO_PROC)),
        Some((status, Some(message))) => Some((status, world.objects.messages.insert(message)?)),
    })
}

/// `MPI_Mprobe`.
pub fn mprobe(
    cx: &Cx,
    source: i32,
    tag: i32,
    comm: Handle,
    message: Out<Handle>,
    status: StatusPlace,
) -> Result {
    let ready = |_: &mut (), world: &mut World| extract(world, source, tag, comm);
    let (found, handle) = wait::on(cx, &mut (), ready, |()| Waits::Message { source, tag, comm })?;
    message.set(handle);
    status.set_keeping_error(found.to_ints());
    Ok(())
}

/// `MPI_Improbe`.
pub fn improbe(
    cx: &Cx,
    source: i32,
    tag: i32,
    comm: Handle,
    flag: Out<bool>,
    message: Out<Handle>,
    status: StatusPlace,
) -> Result {
    let found = wait::once(cx, |world| extract(world, source, tag, comm))?;
    flag.set(found.is_some());
    message.set(found.map_or(MESSAGE_NULL, |(_, handle)| handle));
    if let Some((found, _)) = found {
        status.set_keeping_error(found.to_ints());
    }
    Ok(())
}

/// Starts the receive of a message; the communicator comes with it.
fn start(cx: &Cx, buf: usize, count: u64, datatype: Handle, message: &HandleRef) -> Result<(Handle, Body)> {
    let mut world = cx.world();
    let buffer = world.buffer(buf, count, datatype, "buf")?;
    world.engine.has_room().map_err(mpi::world::fault)?;
    if let Some(found) = world.objects.messages.get(message.handle) {
        cx.concerns(crate::object::Object::Comm, found.comm);
    }
    let started = world.start_receive_matched(message.handle, &buffer)?;
    message.set(MESSAGE_NULL);
    Ok(started)
}

/// `MPI_Mrecv`.
pub fn mrecv(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    message: HandleRef,
    status: StatusPlace,
) -> Result {
    let (_, body) = start(cx, buf, count, datatype, &message)?;
    request::finish(cx, body, status)
}

/// `MPI_Imrecv`.
pub fn imrecv(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    message: HandleRef,
    request: Out<Handle>,
) -> Result {
    cx.world().objects.requests.room()?;
    let (comm, body) = start(cx, buf, count, datatype, &message)?;
    let mut world = cx.world();
    request.set(world.objects.requests.add(comm, body)?);
    engine::leave(&world);
    Ok(())
}
