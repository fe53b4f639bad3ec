//! MPI 5.0 chapter 3: sends and receives.

use mpi::comm::Place;
use mpi::error::Result;
use mpi::handle::Handle;
use mpi::request::{Body, Buffer, Incoming, Outgoing, REQUEST_NULL, Recipe, SendMode};

use crate::cx::Cx;
use crate::global::{self, World, WorldGuard};
use crate::kind::output::Out;
use crate::kind::text::StatusPlace;
use crate::{engine, request, wait};

/// `MPI_Send`; `MPI_Rsend` too.
#[inline(always)]
pub fn send(cx: &Cx, buf: usize, count: u64, datatype: Handle, dest: i32, tag: i32, comm: Handle) -> Result {
    // Below MPI_THREAD_MULTIPLE it has been tried.
    if global::has_threads() && cx.world().send_now::<false>(buf, count, datatype, dest, tag, comm) {
        return Ok(());
    }
    blocking_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Standard)
}

/// `MPI_Ssend`.
pub fn ssend(cx: &Cx, buf: usize, count: u64, datatype: Handle, dest: i32, tag: i32, comm: Handle) -> Result {
    blocking_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Synchronous)
}

/// `MPI_Bsend`.
pub fn bsend(cx: &Cx, buf: usize, count: u64, datatype: Handle, dest: i32, tag: i32, comm: Handle) -> Result {
    blocking_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Buffered)
}

/// Address, count, datatype.
type Raw = (usize, u64, Handle);
/// Rank, tag, communicator.
type Envelope = (i32, i32, Handle);

fn place(world: &World, comm: Handle) -> Result<Place> {
    Ok(world.comm(comm)?.place.clone())
}

/// A send of which the application gets a request.
fn outgoing(world: &World, raw: Raw, (dest, tag, _): Envelope, mode: SendMode) -> Result<Outgoing> {
    Ok(Outgoing { buffer: world.buffer(raw.0, raw.1, raw.2, "buf")?, dest, tag, mode, may_cancel: true })
}

fn incoming(world: &World, raw: Raw, (source, tag, _): Envelope) -> Result<Incoming> {
    Ok(Incoming { buffer: world.buffer(raw.0, raw.1, raw.2, "buf")?, source, tag })
}

fn start_send(
    cx: &Cx,
    raw: Raw,
    envelope: Envelope,
    mode: SendMode,
    may_cancel: bool,
) -> Result<Option<Body>> {
    let mut world = cx.world();
    if mode == SendMode::Standard
        && let Some(started) = world.start_plain_send(raw, envelope, may_cancel)
    {
        return started;
    }
    let place = place(&world, envelope.2)?;
    let send = Outgoing { may_cancel, ..outgoing(&world, raw, envelope, mode)? };
    world.start_send(&place, envelope.2, &send)
}

fn start_receive(cx: &Cx, raw: Raw, envelope: Envelope) -> Result<Body> {
    let mut world = cx.world();
    let place = place(&world, envelope.2)?;
    let receive = incoming(&world, raw, envelope)?;
    world.start_receive(&place, &receive)
}

#[cold]
#[inline(never)]
fn blocking_send(cx: &Cx, raw: Raw, envelope: Envelope, mode: SendMode) -> Result {
    match start_send(cx, raw, envelope, mode, false)? {
        None => {
            engine::leave(&cx.world()); // a buffered send may be queued
            Ok(())
        }
        Some(body) => request::finish(cx, body, StatusPlace::IGNORE),
    }
}

/// `MPI_Recv`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn recv(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    source: i32,
    tag: i32,
    comm: Handle,
    status: StatusPlace,
) -> Result {
    receive(cx, cx.world(), (buf, count, datatype), (source, tag, comm), status)
}

/// What has come already is taken at once.
#[inline(always)]
fn receive(cx: &Cx, mut world: WorldGuard, raw: Raw, envelope: Envelope, status: StatusPlace) -> Result {
    let ((buf, count, datatype), (source, tag, comm)) = (raw, envelope);
    if let Some(found) = world.receive_now(buf, count, datatype, source, tag, comm) {
        drop(world);
        status.set_keeping_error(found.to_ints());
        return Ok(());
    }
    blocking_receive(cx, world, raw, envelope, status)
}

/// The receive is posted under the guard under which the message was looked for: part of it may
/// lie in the buffer already, and no receive of another thread may come between.
#[inline(never)]
fn blocking_receive(
    cx: &Cx,
    mut world: WorldGuard,
    raw: Raw,
    envelope: Envelope,
    status: StatusPlace,
) -> Result {
    let (source, tag, comm) = envelope;
    let posted = world.post_now(raw.0, raw.1, raw.2, source, tag, comm);
    drop(world);
    let body = match posted {
        Some(op) => Body::of_receive(op, source),
        None => start_receive(cx, raw, envelope)?,
    };
    request::finish(cx, body, status)
}

/// Gives an operation its request.
fn pending(cx: &Cx, comm: Handle, body: Body, request: Out<Handle>) -> Result {
    let mut world = cx.world();
    request.set(world.add_request(comm, body)?);
    engine::leave(&world);
    Ok(())
}

fn immediate_send(cx: &Cx, raw: Raw, envelope: Envelope, mode: SendMode, request: Out<Handle>) -> Result {
    request.set(REQUEST_NULL);
    cx.world().objects.requests.room()?;
    let body = start_send(cx, raw, envelope, mode, true)?;
    let mut world = cx.world();
    request.set(match body {
        None => world.objects.requests.sent()?,
        Some(body) => world.add_request(envelope.2, body)?,
    });
    engine::leave(&world);
    Ok(())
}

/// `MPI_Isend`; `MPI_Irsend` too.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn isend(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    if global::has_threads() {
        let mut world = cx.world();
        if world.send_now::<true>(buf, count, datatype, dest, tag, comm) {
            request.set(world.objects.requests.sent()?);
            engine::leave(&world);
            return Ok(());
        }
    }
    immediate_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Standard, request)
}

/// `MPI_Issend`.
#[allow(clippy::too_many_arguments)]
pub fn issend(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    immediate_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Synchronous, request)
}

/// `MPI_Ibsend`.
#[allow(clippy::too_many_arguments)]
pub fn ibsend(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    immediate_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Buffered, request)
}

/// `MPI_Irecv`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn irecv(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    source: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    {
        let mut world = cx.world();
        world.objects.requests.room()?;
        if let Some(op) = world.post_now(buf, count, datatype, source, tag, comm) {
            request.set(world.add_request(comm, Body::of_receive(op, source))?);
            engine::leave(&world);
            return Ok(());
        }
    }
    let body = start_receive(cx, (buf, count, datatype), (source, tag, comm))?;
    pending(cx, comm, body, request)
}

fn persistent_send(cx: &Cx, raw: Raw, envelope: Envelope, mode: SendMode, request: Out<Handle>) -> Result {
    let mut world = cx.world();
    let place = place(&world, envelope.2)?;
    mpi::p2p::peer(&place, envelope.0, "dest")?;
    let send = outgoing(&world, raw, envelope, mode)?;
    request.set(world.objects.requests.add_persistent(envelope.2, Recipe::Send(send), place)?);
    Ok(())
}

/// `MPI_Send_init`; `MPI_Rsend_init` too.
#[allow(clippy::too_many_arguments)]
pub fn send_init(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    persistent_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Standard, request)
}

/// `MPI_Ssend_init`.
#[allow(clippy::too_many_arguments)]
pub fn ssend_init(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    persistent_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Synchronous, request)
}

/// `MPI_Bsend_init`.
#[allow(clippy::too_many_arguments)]
pub fn bsend_init(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    persistent_send(cx, (buf, count, datatype), (dest, tag, comm), SendMode::Buffered, request)
}

/// `MPI_Recv_init`.
#[allow(clippy::too_many_arguments)]
pub fn recv_init(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    source: i32,
    tag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    let mut world = cx.world();
    let place = place(&world, comm)?;
    if source != mpi::status::ANY_SOURCE {
        mpi::p2p::peer(&place, source, "source")?;
    }
    let receive = incoming(&world, (buf, count, datatype), (source, tag, comm))?;
    request.set(world.objects.requests.add_persistent(comm, Recipe::Receive(receive), place)?);
    Ok(())
}

/// The arguments that `MPI_Sendrecv` and `MPI_Isendrecv` share, started: the send first, for a peer may wait for it. What this
/// rank sends to itself finds its receive.
#[allow(clippy::too_many_arguments)]
fn exchange(
    cx: &Cx,
    send: Raw,
    dest: i32,
    sendtag: i32,
    recv: Raw,
    source: i32,
    recvtag: i32,
    comm: Handle,
) -> Result<Body> {
    let mut world = cx.world();
    let place = place(&world, comm)?;
    mpi::p2p::peer(&place, dest, "dest")?;
    let outgoing = Outgoing {
        buffer: world.buffer(send.0, send.1, send.2, "sendbuf")?,
        dest,
        tag: sendtag,
        mode: SendMode::Standard,
        may_cancel: false,
    };
    let buffer = world.buffer(recv.0, recv.1, recv.2, "recvbuf")?;
    let incoming = Incoming { buffer, source, tag: recvtag };
    world.start_exchange(&place, comm, &outgoing, &incoming)
}

/// `MPI_Sendrecv`.
#[allow(clippy::too_many_arguments)]
pub fn sendrecv(
    cx: &Cx,
    sendbuf: usize,
    sendcount: u64,
    sendtype: Handle,
    dest: i32,
    sendtag: i32,
    recvbuf: usize,
    recvcount: u64,
    recvtype: Handle,
    source: i32,
    recvtag: i32,
    comm: Handle,
    status: StatusPlace,
) -> Result {
    let (send, recv) = ((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    let mut world = cx.world();
    if let Some(sending) = world.send_before_receive((send, dest, sendtag), (recv, source), comm) {
        let received = receive(cx, world, recv, (source, recvtag, comm), status);
        return finish_send(cx, sending, received);
    }
    drop(world);
    let body = exchange(cx, send, dest, sendtag, recv, source, recvtag, comm)?;
    request::finish(cx, body, status)
}

/// Waits for the send of an exchange, whose buffer is the application's again then, behind its receive.
fn finish_send(cx: &Cx, sending: Option<Body>, received: Result) -> Result {
    let sent = sending.map_or(Ok(()), |body| request::finish(cx, body, StatusPlace::IGNORE));
    received.and(sent)
}

/// `MPI_Isendrecv`.
#[allow(clippy::too_many_arguments)]
pub fn isendrecv(
    cx: &Cx,
    sendbuf: usize,
    sendcount: u64,
    sendtype: Handle,
    dest: i32,
    sendtag: i32,
    recvbuf: usize,
    recvcount: u64,
    recvtype: Handle,
    source: i32,
    recvtag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    let (send, recv) = ((sendbuf, sendcount, sendtype), (recvbuf, recvcount, recvtype));
    let body = exchange(cx, send, dest, sendtag, recv, source, recvtag, comm)?;
    pending(cx, comm, body, request)
}

/// As [`exchange`] with one buffer: what is sent is copied first.
fn replace(
    cx: &Cx,
    raw: Raw,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: Handle,
) -> Result<Body> {
    let mut world = cx.world();
    let place = place(&world, comm)?;
    mpi::p2p::peer(&place, dest, "dest")?;
    let buffer = world.buffer(raw.0, raw.1, raw.2, "buf")?;
    let send = world.start_send_copy(&place, &buffer, dest, sendtag)?;
    let Buffer { addr, count, ty } = buffer;
    let receive =
        world.start_receive(&place, &Incoming { buffer: Buffer { addr, count, ty }, source, tag: recvtag });
    world.both(send, receive)
}

/// `MPI_Sendrecv_replace`.
#[allow(clippy::too_many_arguments)]
pub fn sendrecv_replace(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: Handle,
    status: StatusPlace,
) -> Result {
    let body = replace(cx, (buf, count, datatype), dest, sendtag, source, recvtag, comm)?;
    request::finish(cx, body, status)
}

/// `MPI_Isendrecv_replace`.
#[allow(clippy::too_many_arguments)]
pub fn isendrecv_replace(
    cx: &Cx,
    buf: usize,
    count: u64,
    datatype: Handle,
    dest: i32,
    sendtag: i32,
    source: i32,
    recvtag: i32,
    comm: Handle,
    request: Out<Handle>,
) -> Result {
    let body = replace(cx, (buf, count, datatype), dest, sendtag, source, recvtag, comm)?;
    pending(cx, comm, body, request)
}

/// Advances before a probe, so that what has arrived is seen.
pub fn look(cx: &Cx) -> Result {
    wait::progress(cx)
}
