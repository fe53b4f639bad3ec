//! MPI 5.0 section 3.6: buffers the program attaches for buffered sends.

use mpi::bsend::Bsend;
use mpi::comm::COMM_NULL;
use mpi::error::Result;
use mpi::handle::Handle;
use mpi::request::{Body, BufferOwner};

use crate::cx::Cx;
use crate::global::World;
use crate::kind::output::{CountVar, Out};
use crate::wait;

/// `MPI_Buffer_attach`.
pub fn attach(cx: &Cx, buffer: usize, size: u64) -> Result {
    cx.objects().bsend.attach(buffer, size as usize)
}

/// `MPI_Comm_attach_buffer`.
pub fn comm_attach(cx: &Cx, comm: Handle, buffer: usize, size: u64) -> Result {
    cx.world().comm_mut(comm)?.bsend.attach(buffer, size as usize)
}

/// `MPI_Buffer_detach`: waits until the messages in the buffer have left.
pub fn detach(cx: &Cx, buffer: Out<usize>, size: CountVar) -> Result {
    detach_from(cx, BufferOwner::Process, buffer, size)
}

/// `MPI_Comm_detach_buffer`.
pub fn comm_detach(cx: &Cx, comm: Handle, buffer: Out<usize>, size: CountVar) -> Result {
    detach_from(cx, BufferOwner::Comm(comm), buffer, size)
}

/// `MPI_Buffer_flush`.
pub fn flush(cx: &Cx) -> Result {
    drained(cx, BufferOwner::Process)
}

/// `MPI_Comm_flush_buffer`.
pub fn comm_flush(cx: &Cx, comm: Handle) -> Result {
    drained(cx, BufferOwner::Comm(comm))
}

/// `MPI_Buffer_iflush`.
pub fn iflush(cx: &Cx, request: Out<Handle>) -> Result {
    request.set(cx.objects().requests.add(COMM_NULL, Body::Flush(BufferOwner::Process))?);
    Ok(())
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush(cx: &Cx, comm: Handle, request: Out<Handle>) -> Result {
    request.set(cx.objects().requests.add(comm, Body::Flush(BufferOwner::Comm(comm)))?);
    Ok(())
}

fn detach_from(cx: &Cx, owner: BufferOwner, buffer: Out<usize>, size: CountVar) -> Result {
    drained(cx, owner)?;
    let mut world = cx.world();
    let attached = accounts(&mut world, owner);
    // The buffer stays attached if its size cannot be told.
    size.set(attached.len_bytes() as i64)?;
    buffer.set(attached.detach().address);
    Ok(())
}

fn drained(cx: &Cx, owner: BufferOwner) -> Result {
    wait::until(cx, |world| Ok(accounts(world, owner).is_drained().then_some(())))
}

fn accounts(world: &mut World, owner: BufferOwner) -> &mut Bsend {
    world.attached(owner).expect("the handle was checked; freeing a communicator meanwhile is erroneous")
}
