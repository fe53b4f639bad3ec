//! MPI 5.0 section 3.6: buffers for buffered sends, of the process, of communicators and of sessions.

use mpi::comm::COMM_NULL;
use mpi::error::Result;
use mpi::handle::Handle;
use mpi::request::{Body, BufferOwner};

use crate::cx::Cx;
use crate::kind::output::{CountVar, Out};
use crate::wait;

/// Attaches a buffer.
pub fn attach_to(cx: &Cx, owner: BufferOwner, buffer: usize, size: u64) -> Result {
    cx.world().attached(owner).map_or(Ok(()), |bsend| bsend.attach(buffer, size as usize))
}

/// Waits until all messages in the buffer have left.
pub fn drain(cx: &Cx, owner: BufferOwner) -> Result {
    wait::until(cx, |world| Ok(world.attached(owner).is_none_or(|bsend| bsend.is_drained()).then_some(())))
}

/// Detaches a buffer once all messages in it have left.
pub fn detach_from(cx: &Cx, owner: BufferOwner, address: Out<usize>, size: CountVar) -> Result {
    drain(cx, owner)?;
    let detached = cx.world().attached(owner).map(|bsend| bsend.detach());
    if let Some(detached) = detached {
        address.set(detached.address);
        size.set(detached.len as i64)?;
    }
    Ok(())
}

/// A request that ends when all messages in the buffer have left.
pub fn start_flush(cx: &Cx, owner: BufferOwner, comm: Handle, request: Out<Handle>) -> Result {
    request.set(cx.world().objects.requests.add(comm, Body::Flush(owner))?);
    Ok(())
}

/// `MPI_Buffer_attach`.
pub fn attach(cx: &Cx, buffer: usize, size: u64) -> Result {
    attach_to(cx, BufferOwner::Process, buffer, size)
}

/// `MPI_Buffer_detach`.
pub fn detach(cx: &Cx, address: Out<usize>, size: CountVar) -> Result {
    detach_from(cx, BufferOwner::Process, address, size)
}

/// `MPI_Buffer_flush`.
pub fn flush(cx: &Cx) -> Result {
    drain(cx, BufferOwner::Process)
}

/// `MPI_Buffer_iflush`.
pub fn iflush(cx: &Cx, request: Out<Handle>) -> Result {
    start_flush(cx, BufferOwner::Process, COMM_NULL, request)
}

/// `MPI_Comm_attach_buffer`.
pub fn comm_attach(cx: &Cx, comm: Handle, buffer: usize, size: u64) -> Result {
    attach_to(cx, BufferOwner::Comm(comm), buffer, size)
}

/// `MPI_Comm_detach_buffer`.
pub fn comm_detach(cx: &Cx, comm: Handle, address: Out<usize>, size: CountVar) -> Result {
    detach_from(cx, BufferOwner::Comm(comm), address, size)
}

/// `MPI_Comm_flush_buffer`.
pub fn comm_flush(cx: &Cx, comm: Handle) -> Result {
    drain(cx, BufferOwner::Comm(comm))
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush(cx: &Cx, comm: Handle, request: Out<Handle>) -> Result {
    start_flush(cx, BufferOwner::Comm(comm), comm, request)
}
