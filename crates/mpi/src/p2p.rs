//! Point-to-point communication (MPI 5.0 chapter 3): from checked arguments to operations of the
//! engine, and back to statuses.

use crate::comm::{Place, Purpose};
use crate::datatype::basic::{BYTE, DATATYPE_NULL};
use crate::datatype::{TypeSlot, basic_size};
use crate::error::{Class, Error, Result, fail};
use crate::group::PROC_NULL;
use crate::handle::Handle;
use crate::request::{
    Body, Buffer, BufferOwner, Ended, Incoming, Keep, Origin, Outgoing, SendMode, Unpack, no_space,
};
use crate::status::{ANY_SOURCE, ANY_TAG, Status};
use crate::world::{World, fault};
use fabric::{Device, Span};
use proto::message::matching::{Body as MessageBody, Envelope, Unexpected};
use proto::{Mode, OpId, Want};
use std::sync::Arc;

/// A message taken out of matching by a matched probe (`MPI_Message`).
#[derive(Debug)]
pub struct Message {
    /// The message; `None` for one from `MPI_PROC_NULL`.
    pub message: Unexpected,
    /// Where it arrived.
    pub place: Place,
    /// The communicator, for its error handler.
    pub comm: Handle,
}

/// A rank of the communicator as a rank of the job; `None` for `MPI_PROC_NULL`.
#[inline(always)]
pub fn peer(place: &Place, rank: i32, arg: &str) -> Result<Option<usize>> {
    if (rank as u32) < place.peers_size() {
        Ok(Some(place.world_rank(rank as u32) as usize))
    } else if rank == PROC_NULL {
        Ok(None)
    } else {
        no_such_rank(place, rank, arg)
    }
}

/// The same where there is time for no error.
#[inline(always)]
pub(crate) fn peer_at_once(place: &Place, rank: i32) -> Option<usize> {
    ((rank as u32) < place.peers_size()).then(|| place.world_rank(rank as u32) as usize)
}

#[cold]
fn no_such_rank<T>(place: &Place, rank: i32, arg: &str) -> Result<T> {
    let ranks = place.peers_size();
    fail(
        Class::RANK,
        format!("argument `{arg}` is {rank}, the communicator has {ranks} ranks (0 to {})", ranks - 1),
    )
}

/// Length in bytes of elements of a predefined type that lie in one run; `None` for others.
#[inline(always)]
pub(crate) fn plain_len(count: u64, datatype: Handle, addr: usize) -> Option<usize> {
    let size = basic_size(datatype) as u64;
    let len = count.checked_mul(size)?;
    if size == 0 || (addr <= IN_PLACE && len != 0) { None } else { Some(len as usize) }
}

impl<D: Device> World<D> {
    /// Sends a short message of a predefined type at once if nothing stands in the way; all its
    /// arguments have been checked except what makes it return false. `MORE` as [`proto::Engine::send_now`] has it.
    #[inline(always)]
    pub fn send_now<const MORE: bool>(
        &mut self,
        addr: usize,
        count: u64,
        datatype: Handle,
        dest: i32,
        tag: i32,
        comm: Handle,
    ) -> bool {
        let Some(len) = plain_len(count, datatype, addr) else { return false };
        let Some(comm) = self.objects.comms.get(comm) else { return false };
        let place = &comm.place;
        if dest as u32 >= place.peers_size() {
            return false;
        }
        let to = place.world_rank(dest as u32) as usize;
        self.engine.send_now::<MORE>(to, place.context_for(Purpose::Message), tag, Span { addr, len })
    }

    /// Receives a short message of a predefined type that is there already; see
    /// [`World::send_now`].
    #[inline(always)]
    pub fn receive_now(
        &mut self,
        addr: usize,
        count: u64,
        datatype: Handle,
        source: i32,
        tag: i32,
        comm: Handle,
    ) -> Option<Status> {
        let len = plain_len(count, datatype, addr)?;
        let place = &self.objects.comms.get(comm)?.place;
        if source as u32 >= place.peers_size() || tag < 0 {
            return None;
        }
        let from = place.world_rank(source as u32) as usize;
        let context = place.context_for(Purpose::Message);
        let span = Span { addr, len };
        let len = self.engine.receive_now(from, context, tag, span)?;
        Some(Status::new(source, tag, len))
    }

    /// Posts a receive of a predefined type, if it is this simple: it is a [`Body::of_receive`].
    #[inline(always)]
    pub fn post_now(
        &mut self,
        addr: usize,
        count: u64,
        datatype: Handle,
        source: i32,
        tag: i32,
        comm: Handle,
    ) -> Option<OpId> {
        let len = plain_len(count, datatype, addr)?;
        let place = &self.objects.comms.get(comm)?.place;
        if source as u32 >= place.peers_size() {
            return None;
        }
        let from = place.world_rank(source as u32) as usize;
        let tag = (tag != ANY_TAG).then_some(tag);
        let want = Want { source: Some(from), context: place.context_for(Purpose::Message), tag };
        self.engine.receive(want, Span { addr, len }).ok()
    }

    /// Sends before a receive that [`World::post_now`] can post: nothing leaves where it cannot. What this rank sends to itself is left to
    /// [`World::start_exchange`]. What is still under way, if anything is; `None` if nothing has been done, or what fails again.
    #[inline(always)]
    pub fn send_before_receive(
        &mut self,
        (send, dest, tag): ((usize, u64, Handle), i32, i32),
        (receive, source): ((usize, u64, Handle), i32),
        comm: Handle,
    ) -> Option<Option<Body>> {
        let place = &self.objects.comms.get(comm)?.place;
        let size = place.peers_size();
        let is_plain = (source as u32) < size && plain_len(receive.1, receive.2, receive.0).is_some();
        let is_to_another =
            (dest as u32) < size && place.world_rank(dest as u32) as usize != self.engine.device().me();
        if !is_plain || !is_to_another {
            return None;
        }
        match self.send_now::<false>(send.0, send.1, send.2, dest, tag, comm) {
            true => Some(None),
            false => self.start_plain_send(send, (dest, tag, comm), false)?.ok(),
        }
    }

    /// Posts a receive of a predefined type and gives its request, if it is this simple.
    #[inline(always)]
    pub fn irecv_now(
        &mut self,
        addr: usize,
        count: u64,
        datatype: Handle,
        source: i32,
        tag: i32,
        comm: Handle,
    ) -> Option<Handle> {
        if !self.objects.requests.has_room() {
            return None;
        }
        let op = self.post_now(addr, count, datatype, source, tag, comm)?;
        self.objects.requests.add_receive(comm, op, source).ok()
    }

    /// A buffer argument, checked: the type must be committed, and NULL holds nothing. No elements
    /// of `MPI_DATATYPE_NULL` are nothing too, as a known implementation has it.
    pub fn buffer(&self, addr: usize, count: u64, datatype: Handle, arg: &str) -> Result<Buffer> {
        let datatype = if datatype == DATATYPE_NULL && count == 0 { BYTE } else { datatype };
        let ty = match self.objects.datatype(datatype).and_then(TypeSlot::committed) {
            Ok(ty) => ty.clone(),
            Err(error) => {
                return Err(Error::new(error.class, format!("the datatype of `{arg}` {}", error.text)));
            }
        };
        if ty.size().checked_mul(count).is_none_or(|bytes| bytes > isize::MAX as u64) {
            return fail(
                Class::COUNT,
                format!(
                    "argument `{arg}`: {count} elements of {} bytes do not fit the address space",
                    ty.size()
                ),
            );
        }
        if count > 0 && ty.size() > 0 && addr.wrapping_add_signed(ty.true_lb() as isize) == 0 {
            return fail(Class::BUFFER, format!("argument `{arg}` is NULL, but count is {count}"));
        }
        if addr == IN_PLACE {
            return fail(
                Class::BUFFER,
                format!("argument `{arg}` is MPI_IN_PLACE, which is not allowed here"),
            );
        }
        Ok(Buffer { addr, count, ty })
    }

    /// Starts a standard send of a predefined type, if it is this simple; else nothing has been done. As [`World::start_send`].
    pub fn start_plain_send(
        &mut self,
        (addr, count, datatype): (usize, u64, Handle),
        (dest, tag, comm): (i32, i32, Handle),
        may_cancel: bool,
    ) -> Option<Result<Option<Body>>> {
        let len = plain_len(count, datatype, addr).filter(|len| *len <= isize::MAX as usize)?;
        let place = &self.objects.comms.get(comm)?.place;
        let to = peer_at_once(place, dest).filter(|_| tag >= 0)?;
        let context = place.context_for(Purpose::Message);
        let started = self.begin_send(to, context, tag, Span { addr, len }, Mode::Standard, may_cancel);
        Some(started.map(|op| op.map(|op| Body::Send(op, Keep::Nothing))))
    }

    /// As [`World::start_plain_send`] of a message that gets a request. Where that fails nothing has been done that does not fail again, and is
    /// told then.
    #[inline(never)]
    pub fn isend_now(&mut self, raw: (usize, u64, Handle), envelope: (i32, i32, Handle)) -> Option<Handle> {
        if !self.objects.requests.has_room() {
            return None;
        }
        match self.start_plain_send(raw, envelope, true)?.ok()? {
            None => self.objects.requests.sent().ok(),
            Some(body) => self.objects.requests.add(envelope.2, body).ok(),
        }
    }

    fn begin_send(
        &mut self,
        to: usize,
        context: u64,
        tag: i32,
        span: Span,
        mode: Mode,
        may_cancel: bool,
    ) -> Result<Option<OpId>> {
        let started = match may_cancel {
            true => self.engine.send_among(to, context, tag, span, mode),
            false => self.engine.send_for_good(to, context, tag, span, mode),
        };
        started.map_err(fault)
    }

    /// Starts a send. `None`: the data has left or been copied.
    pub fn start_send(&mut self, place: &Place, comm: Handle, send: &Outgoing) -> Result<Option<Body>> {
        let Some(to) = peer(place, send.dest, "dest")? else { return Ok(None) };
        let context = place.context_for(Purpose::Message);
        let (span, keep) = match send.mode {
            SendMode::Buffered => self.segment(comm, &send.buffer)?,
            _ => pack(&send.buffer)?,
        };
        let mode = if send.mode == SendMode::Synchronous { Mode::Synchronous } else { Mode::Standard };
        match self.begin_send(to, context, send.tag, span, mode, send.may_cancel)? {
            None => {
                self.release(keep);
                Ok(None)
            }
            Some(op) if send.mode == SendMode::Buffered => {
                self.detach(Body::Send(op, keep));
                Ok(None)
            }
            Some(op) => Ok(Some(Body::Send(op, keep))),
        }
    }

    /// Starts a standard send of a copy of the buffer, which may be overwritten at once.
    pub fn start_send_copy(
        &mut self,
        place: &Place,
        buffer: &Buffer,
        dest: i32,
        tag: i32,
    ) -> Result<Option<Body>> {
        let Some(to) = peer(place, dest, "dest")? else { return Ok(None) };
        let (span, out) = packed(buffer)?;
        let context = place.context_for(Purpose::Message);
        let started = self.engine.send_for_good(to, context, tag, span, Mode::Standard).map_err(fault)?;
        Ok(started.map(|op| Body::Send(op, Keep::Packed(out))))
    }

    /// Whose buffer a buffered send uses: the communicator's if it has one, else its session's, else the
    /// process's (MPI 5.0 section 3.6).
    fn buffer_owner(&self, comm: Handle) -> BufferOwner {
        let Some(held) = self.objects.comms.get(comm) else { return BufferOwner::Process };
        if held.bsend.is_attached() {
            return BufferOwner::Comm(comm);
        }
        let attached = |session: &Handle| {
            self.objects.sessions.get(*session).is_some_and(|session| session.bsend.is_attached())
        };
        held.session.filter(attached).map_or(BufferOwner::Process, BufferOwner::Session)
    }

    /// Copies a message into the attached buffer.
    fn segment(&mut self, comm: Handle, buffer: &Buffer) -> Result<(Span, Keep)> {
        let owner = self.buffer_owner(comm);
        let len = (buffer.ty.size() * buffer.count) as usize;
        let mut address = self.attached(owner).and_then(|bsend| bsend.reserve(len));
        if address.is_none() {
            self.progress()?; // messages that have left meanwhile give their space back
            address = self.attached(owner).and_then(|bsend| bsend.reserve(len));
        }
        let Some(address) = address else {
            let text = self.attached(owner).map_or(String::new(), |bsend| bsend.shortage(len));
            return Err(no_space(owner, &text));
        };
        crate::mem::with_mut(address, len, |out| buffer.ty.pack(buffer.addr, buffer.count, 0, out));
        Ok((Span { addr: address, len }, Keep::Segment(owner, address)))
    }

    /// Starts a receive.
    pub fn start_receive(&mut self, place: &Place, receive: &Incoming) -> Result<Body> {
        let Some(want) = want(place, receive.source, receive.tag)? else {
            return Ok(Body::Ended(Ended { status: Status::PROC_NULL, error: None }));
        };
        let (span, unpack) = landing(&receive.buffer)?;
        let op = self.engine.receive(want, span).map_err(fault)?;
        Ok(Body::Receive(op, origin(place, receive.source), unpack))
    }

    /// Starts a send and a receive, or neither: the send first, for a peer may wait for it, unless it is to this rank itself, where
    /// it finds its receive.
    pub fn start_exchange(
        &mut self,
        place: &Place,
        comm: Handle,
        send: &Outgoing,
        receive: &Incoming,
    ) -> Result<Body> {
        // Nothing leaves where the receive cannot start.
        want(place, receive.source, receive.tag)?;
        let is_to_itself = peer(place, send.dest, "dest")? == Some(self.engine.device().me());
        if !is_to_itself {
            let send = self.start_send(place, comm, send)?;
            let receive = self.start_receive(place, receive);
            return self.both(send, receive);
        }
        let receive = self.start_receive(place, receive)?;
        match self.start_send(place, comm, send) {
            Ok(send) => self.both(send, Ok(receive)),
            Err(error) => {
                self.give_up(receive);
                Err(error)
            }
        }
    }

    /// One operation of a send that has started, if it is not over, and a receive.
    pub fn both(&mut self, send: Option<Body>, receive: Result<Body>) -> Result<Body> {
        match (send, receive) {
            (None, receive) => receive,
            (Some(send), Ok(receive)) => Ok(Body::Exchange(Some(Box::new(send)), Box::new(receive))),
            (Some(send), Err(error)) => {
                self.give_up(send);
                Err(error)
            }
        }
    }

    /// Starts the receive of a message that a matched probe has taken out of matching; it is taken
    /// out of its table too, unless the receive cannot start.
    pub fn start_receive_matched(&mut self, message: Handle, buffer: &Buffer) -> Result<(Handle, Body)> {
        if self.objects.messages.get(message).is_none() {
            let ended = Ended { status: Status::PROC_NULL, error: None };
            return Ok((crate::comm::COMM_NULL, Body::Ended(ended)));
        }
        let (span, unpack) = landing(buffer)?;
        let message = self.objects.messages.remove(message).expect("looked at above");
        let op = self.engine.receive_matched(message.message, span).map_err(fault)?;
        Ok((message.comm, Body::Receive(op, Origin::Any(message.place.peers), unpack)))
    }

    /// Puts an operation into the table of requests; if that is full the operation is given up.
    pub fn add_request(&mut self, comm: Handle, body: Body) -> Result<Handle> {
        if self.objects.requests.has_room() {
            return self.objects.requests.add(comm, body);
        }
        self.give_up(body);
        fail(Class::INTERN, "there are too many requests")
    }

    /// Gives up an operation that nobody can wait for. A receive that nothing has come for is
    /// withdrawn; sends, whose data may be read already, end by themselves. Memory of the library
    /// lives as long as the engine may use it, and that of the application, which may be gone by
    /// then, is not unpacked into.
    pub fn give_up(&mut self, body: Body) {
        match body {
            Body::Receive(op, origin, unpack) => {
                if self.engine.is_done(op) || self.engine.cancel(op) {
                    self.engine.take(op);
                } else {
                    Box::leak(Box::new(unpack));
                    self.detach(Body::Receive(op, origin, None));
                }
            }
            Body::Exchange(send, receive) => {
                send.into_iter().for_each(|send| self.give_up(*send));
                self.give_up(*receive);
            }
            other => self.detach(other),
        }
    }

    /// The oldest message that has arrived and matches; `Some(Err)` stands for `MPI_PROC_NULL`.
    pub fn probe(&mut self, place: &Place, source: i32, tag: i32) -> Result<Option<Status>> {
        let Some(want) = want(place, source, tag)? else { return Ok(Some(Status::PROC_NULL)) };
        match self.engine.probe(&want) {
            Some((envelope, len)) => Ok(Some(status_of(place, &envelope, len))),
            None => self.may_come(place, &want).map(|()| None),
        }
    }

    /// As [`World::probe`], and takes the message out of matching; no message for
    /// `MPI_PROC_NULL`.
    pub fn probe_matched(
        &mut self,
        place: &Place,
        comm: Handle,
        source: i32,
        tag: i32,
    ) -> Result<Option<(Status, Option<Message>)>> {
        let Some(want) = want(place, source, tag)? else { return Ok(Some((Status::PROC_NULL, None))) };
        let Some(message) = self.engine.probe_matched(&want) else {
            return self.may_come(place, &want).map(|()| None);
        };
        let status = status_of(place, &message.envelope, message.body.len());
        Ok(Some((status, Some(Message { message, place: place.clone(), comm }))))
    }

    /// An error if the message a probe looks for can come no more, or might have come from somebody who is lost.
    #[inline]
    fn may_come(&self, place: &Place, want: &Want) -> Result {
        let lost = self.engine.lost();
        let is_concerned = |rank: usize| match want.source {
            Some(source) => source == rank,
            None => place.peers.rank_of(rank as u32).is_some(),
        };
        match lost.iter().find(|(rank, _)| is_concerned(*rank)) {
            Some((_, why)) => Err(fault(why.clone())),
            None => Ok(()),
        }
    }
}

impl Message {
    /// Length of the message in bytes.
    pub fn len(&self) -> u64 {
        MessageBody::len(&self.message.body)
    }

    /// Whether it carries nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// `MPI_IN_PLACE`.
pub const IN_PLACE: usize = 1;

fn want(place: &Place, source: i32, tag: i32) -> Result<Option<Want>> {
    let source = match source {
        ANY_SOURCE => None,
        rank => match peer(place, rank, "source")? {
            None => return Ok(None),
            some => some,
        },
    };
    let tag = (tag != ANY_TAG).then_some(tag);
    Ok(Some(Want { source, context: place.context_for(Purpose::Message), tag }))
}

fn origin(place: &Place, source: i32) -> Origin {
    if source == ANY_SOURCE { Origin::Any(place.peers.clone()) } else { Origin::Rank(source) }
}

fn status_of(place: &Place, envelope: &Envelope, len: u64) -> Status {
    let source = place.peers.rank_of(envelope.source as u32).map_or(ANY_SOURCE, |rank| rank as i32);
    Status::new(source, envelope.tag, len)
}

/// The bytes to send: those of the application if they are one run, else a packed copy.
fn pack(buffer: &Buffer) -> Result<(Span, Keep)> {
    if buffer.ty.is_contiguous() {
        return Ok((buffer.span(), Keep::Nothing));
    }
    packed(buffer).map(|(span, out)| (span, Keep::Packed(out)))
}

/// A packed copy, and where it is.
fn packed(buffer: &Buffer) -> Result<(Span, Box<[u8]>)> {
    let mut out = crate::mem::zeroed((buffer.ty.size() * buffer.count) as usize)?;
    buffer.ty.pack(buffer.addr, buffer.count, 0, &mut out);
    Ok((Span { addr: out.as_ptr() as usize, len: out.len() }, out))
}

/// Where to receive: the application's memory if it is one run, else a packed copy.
fn landing(buffer: &Buffer) -> Result<(Span, Option<Box<Unpack>>)> {
    if buffer.ty.is_contiguous() {
        return Ok((buffer.span(), None));
    }
    let mut unpack = Box::new(Unpack::new(buffer.addr, buffer.count, Arc::clone(&buffer.ty))?);
    Ok((unpack.span(), Some(unpack)))
}
