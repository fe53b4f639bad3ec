//! The transport of schedules: messages of the engine in the collective context.

use crate::coll::schedule::Program;
use crate::coll::{Account, Asked, Collective, Data, Io, Known, OpId, Progress, Schedule, Tag};
use crate::comm::{Comms, Place, Purpose};
use crate::error::{Error, Result, fail};
use crate::handle::Handle;
use crate::lost::GivenUp;
use crate::mem;
use crate::request::{PackedMessage, Unpack, bad_buffer};
use crate::world::{LAST_CONTEXT, World, fault};
use fabric::{Device, Span};
use proto::{Engine, Failure, InPlace, Mode, Outcome, Want};

/// What a collective keeps for its messages in flight.
#[derive(Debug, Default)]
pub struct InFlight {
    /// Packed messages, by operation.
    packed: Vec<(u64, PackedMessage)>,
    /// The one receive that is not posted, because its message may be taken where it arrives.
    later: Option<Later>,
    /// Receives whose messages may be read where they lie, in the order of their names from [`DEFERRED`] on.
    deferred: Vec<Deferred>,
    /// Whether receives may be left unposted: the rank does nothing but wait for this collective.
    waits: bool,
}

#[derive(Clone, Copy, Debug)]
struct Later {
    want: Want,
    span: Span,
    /// Set once it has been posted after all.
    posted: Option<proto::OpId>,
}

/// A receive that is posted only if its message cannot be read where it lies.
#[derive(Clone, Copy, Debug)]
struct Deferred {
    want: Want,
    span: Span,
    /// Bytes that have been read.
    done: usize,
    state: Course,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Course {
    /// Its message is looked for.
    Open,
    /// It is posted, as any other.
    Posted(proto::OpId),
    /// Its message has come.
    Over,
}

/// Names the receive that is not posted.
const LATER: OpId = OpId(u64::MAX - 1);
/// Names the first of those that are deferred; operations of the engine have lower numbers.
const DEFERRED: u64 = 1 << 32;

impl InFlight {
    /// For a rank that waits for the collective.
    pub fn waiting() -> InFlight {
        InFlight { waits: true, ..InFlight::default() }
    }

    /// The operation of the engine behind one of a schedule.
    pub fn op(&self, op: OpId) -> Option<proto::OpId> {
        if op == LATER {
            return self.later.and_then(|later| later.posted);
        }
        match self.deferred(op) {
            None => Some(proto::OpId(op.0 as u32)),
            Some(at) => match self.deferred[at].state {
                Course::Posted(op) => Some(op),
                Course::Open | Course::Over => None,
            },
        }
    }

    /// Which of those that are deferred it names.
    #[inline]
    fn deferred(&self, op: OpId) -> Option<usize> {
        if op == LATER { None } else { op.0.checked_sub(DEFERRED).map(|at| at as usize) }
    }
}

/// See the module.
pub(crate) struct CollIo<'a, D: Device> {
    pub engine: &'a mut Engine<D>,
    pub place: &'a Place,
    /// What it keeps.
    pub flight: &'a mut InFlight,
    /// Communicators whose collectives cannot end.
    pub given_up: &'a [GivenUp],
    /// What is told of at the end, if anything.
    pub account: Option<&'a mut Account>,
}

/// The transport of a schedule, from the parts of a `World` that no communicator or request has.
macro_rules! io {
    ($world:expr, $place:expr, $flight:expr) => {
        crate::collio::CollIo {
            engine: &mut $world.engine,
            place: $place,
            flight: $flight,
            given_up: &$world.given_up,
            account: $world.account.as_deref_mut(),
        }
    };
}
pub(crate) use io;

impl<D: Device> CollIo<'_, D> {
    fn unpacked(&mut self, op: OpId) -> Option<PackedMessage> {
        let packed = &mut self.flight.packed;
        if packed.is_empty() {
            return None;
        }
        let at = packed.iter().position(|(id, _)| *id == op.0)?;
        Some(packed.swap_remove(at).1)
    }

    /// Looks for the message of the receive that is not posted, and posts it if it is not there
    /// soon or not that simple.
    #[inline]
    fn look(&mut self) -> Option<Result<u64>> {
        let later = self.flight.later?;
        let Some(op) = later.posted else {
            let (Some(from), Some(tag)) = (later.want.source, later.want.tag) else { return None };
            if let Some(len) = self.engine.receive_now(from, later.want.context, tag, later.span) {
                self.flight.later = None;
                return Some(Ok(len));
            }
            return match self.post_later() {
                Ok(()) => self.look(),
                Err(error) => Some(Err(error)),
            };
        };
        let outcome = self.engine.take(op)?;
        self.flight.later = None;
        Some(length(outcome))
    }

    /// To be called where what is waited for has not come: receives that are not posted are, if their senders may wait for them. An error if
    /// this rank cannot do that.
    #[inline]
    fn attend(&mut self) -> Option<Result<u64>> {
        if let Some(Later { want, posted: None, .. }) = self.flight.later
            && self.is_due(&want)
            && let Err(error) = self.post_later()
        {
            return Some(Err(error));
        }
        if self.flight.deferred.is_empty() { None } else { self.post_all_deferred(None).err().map(Err) }
    }

    /// Whether a receive that is not posted is to be: its message waits for it, for its sender may, or this rank sleeps, that it is known what it
    /// waits for.
    fn is_due(&self, want: &Want) -> bool {
        self.engine.is_asleep() || self.engine.is_offered(want)
    }

    /// Posts a receive that is deferred, unless it is posted or over.
    fn post_deferred(&mut self, at: usize) -> Result {
        let Deferred { want, span, done, state } = self.flight.deferred[at];
        // What has been read in part is read to its end.
        if state == Course::Open && done == 0 {
            want.source.map_or(Ok(()), |source| self.engine.is_there(source)).map_err(fault)?;
            let op = self.engine.receive(want, span).map_err(fault)?;
            self.flight.deferred[at].state = Course::Posted(op);
        }
        Ok(())
    }

    /// Posts those that are deferred of this source: before another one is posted, for the order. Or of all, those that are due.
    #[cold]
    fn post_all_deferred(&mut self, source: Option<usize>) -> Result {
        for at in 0..self.flight.deferred.len() {
            let Deferred { want, state, .. } = self.flight.deferred[at];
            let is_due = match source {
                Some(_) => want.source == source,
                None => self.is_due(&want),
            };
            if state == Course::Open && is_due {
                self.post_deferred(at)?;
            }
        }
        Ok(())
    }

    /// Looks for the message of a receive that is deferred, and reads it where it lies if it can be.
    fn look_for(&mut self, at: usize, each: &mut dyn FnMut(usize, Span)) -> Option<Result<u64>> {
        let deferred = &mut self.flight.deferred[at];
        if deferred.state == Course::Open {
            match self.engine.read_in_place(deferred.want, deferred.span, &mut deferred.done, each) {
                Err(cause) => return Some(Err(fault(cause))),
                Ok(InPlace::Coming) => return None,
                Ok(InPlace::Posted(op)) => deferred.state = Course::Posted(op),
                Ok(InPlace::Read) => {
                    deferred.state = Course::Over;
                    return Some(Ok(deferred.span.len as u64));
                }
            }
        }
        let Course::Posted(op) = deferred.state else { return None };
        let outcome = self.engine.take(op)?;
        deferred.state = Course::Over;
        Some(length(outcome))
    }

    /// Posts the receive that is not posted: before any other, for messages of one rank match
    /// receives in the order in which these are posted.
    fn post_later(&mut self) -> Result {
        if let Some(later) = &mut self.flight.later
            && later.posted.is_none()
        {
            later.posted = Some(self.engine.receive(later.want, later.span).map_err(fault)?);
        }
        Ok(())
    }
}

impl<D: Device> Io for CollIo<'_, D> {
    #[inline]
    fn isend(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        let to = self.place.world_rank(peer as u32) as usize;
        let context = self.place.context_for(Purpose::Collective);
        let (span, packed) = match data {
            Data::Bytes { addr, len } => (Span { addr, len: len as usize }, None),
            Data::Typed { addr, count, ty } => {
                let mut out = mem::zeroed((count * ty.size) as usize)?;
                ty.datatype().pack(addr, count, 0, &mut out);
                (Span { addr: out.as_ptr() as usize, len: out.len() }, Some(out))
            }
        };
        match self.engine.send_for_good(to, context, tag.value(), span, Mode::Standard).map_err(fault)? {
            None => Ok(OpId::DONE),
            Some(op) => {
                let id = OpId(op.0 as u64);
                self.flight.packed.extend(packed.map(|out| (id.0, PackedMessage::Out(out))));
                Ok(id)
            }
        }
    }

    fn isend_combined(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        let Data::Bytes { addr, len } = data else { return self.isend(peer, tag, data) };
        let to = self.place.world_rank(peer as u32) as usize;
        let context = self.place.context_for(Purpose::Collective);
        let span = Span { addr, len: len as usize };
        let op = self.engine.send_to_be_read(to, context, tag.value(), span).map_err(fault)?;
        Ok(op.map_or(OpId::DONE, |op| OpId(op.0 as u64)))
    }

    fn send_all(&mut self, peers: &[usize], tag: Tag, data: Data<'_>) -> usize {
        let Data::Bytes { addr, len } = data else { return 0 };
        let to: Vec<usize> = peers.iter().map(|peer| self.place.world_rank(*peer as u32) as usize).collect();
        let context = self.place.context_for(Purpose::Collective);
        self.engine.send_all(&to, context, tag.value(), Span { addr, len: len as usize })
    }

    #[inline]
    fn irecv(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        let source = Some(self.place.world_rank(peer as u32) as usize);
        let want =
            Want { source, context: self.place.context_for(Purpose::Collective), tag: Some(tag.value()) };
        self.post_later()?;
        if !self.flight.deferred.is_empty() {
            self.post_all_deferred(source)?;
        }
        match data {
            Data::Bytes { addr, len } => {
                let span = Span { addr, len: len as usize };
                let fits = source.is_some_and(|source| span.len <= self.engine.eager_limit(source).max());
                let flight = &mut *self.flight;
                if flight.waits && flight.later.is_none() && fits {
                    flight.later = Some(Later { want, span, posted: None });
                    return Ok(LATER);
                }
                let op = self.engine.receive(want, span).map_err(fault)?;
                Ok(OpId(op.0 as u64))
            }
            Data::Typed { addr, count, ty } => {
                let mut unpack = Unpack::new(addr, count, ty.datatype().clone())?;
                let op = self.engine.receive(want, unpack.span()).map_err(fault)?;
                let op = OpId(op.0 as u64);
                self.flight.packed.push((op.0, PackedMessage::In(unpack)));
                Ok(op)
            }
        }
    }

    fn irecv_combined(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        let source = self.place.world_rank(peer as u32) as usize;
        match data {
            Data::Bytes { addr, len }
                if self.flight.waits && self.engine.reads_in_place(source, len as usize) =>
            {
                let context = self.place.context_for(Purpose::Collective);
                let want = Want { source: Some(source), context, tag: Some(tag.value()) };
                let span = Span { addr, len: len as usize };
                // One that is not posted comes before this one, and is found before it.
                if self.flight.later.is_some_and(|later| later.want.source == want.source) {
                    self.post_later()?;
                }
                let deferred = &mut self.flight.deferred;
                deferred.push(Deferred { want, span, done: 0, state: Course::Open });
                Ok(OpId(DEFERRED + deferred.len() as u64 - 1))
            }
            _ => self.irecv(peer, tag, data),
        }
    }

    fn poll_combined(&mut self, op: OpId, each: &mut dyn FnMut(usize, Span)) -> Option<(Result<u64>, bool)> {
        let Some(at) = self.flight.deferred(op) else { return self.poll(op).map(|result| (result, false)) };
        let found = self.look_for(at, each).or_else(|| self.attend())?;
        Some((found, self.flight.deferred[at].done > 0))
    }

    fn unclaimed(&mut self, peer: usize) -> Option<Tag> {
        let source = Some(self.place.world_rank(peer as u32) as usize);
        let want = Want { source, context: self.place.context_for(Purpose::Collective), tag: None };
        self.engine.probe(&want).and_then(|(envelope, _)| Tag::from_value(envelope.tag))
    }

    fn given_up(&self) -> Option<Error> {
        let found = self.given_up.iter().find(|given_up| given_up.context == self.place.context)?;
        Some(found.error.clone())
    }

    fn now_ns(&self) -> Option<u64> {
        self.account.as_ref().map(|_| self.engine.device().now_ns())
    }

    fn ended(&mut self, program: &Program, since_ns: u64) {
        let took_ns = self.engine.device().now_ns() - since_ns;
        if let (Some(account), Some(chosen)) = (&mut self.account, &program.chosen) {
            account.ended(program.kind, chosen, took_ns);
        }
    }

    fn name(&self, peer: usize) -> String {
        self.place.name_in_crowd(peer as u32)
    }

    #[inline]
    fn is_asleep(&self) -> bool {
        self.engine.is_asleep()
    }

    #[inline]
    fn poll(&mut self, op: OpId) -> Option<Result<u64>> {
        if op == LATER {
            return self.look().or_else(|| self.attend());
        }
        if let Some(at) = self.flight.deferred(op) {
            // Who waits like this wants it in its buffer.
            if let Err(error) = self.post_deferred(at) {
                return Some(Err(error));
            }
            return self.look_for(at, &mut |_, _| ());
        }
        let Some(outcome) = self.engine.take(proto::OpId(op.0 as u32)) else { return self.attend() };
        if let Some(PackedMessage::In(unpack)) = self.unpacked(op) {
            unpack.finish(outcome.len);
        }
        Some(length(outcome))
    }
}

/// The full length of a message, which may be more than the buffer took.
#[inline]
fn length(outcome: Outcome) -> Result<u64> {
    match outcome.failure {
        None => Ok(outcome.len),
        Some(failure) => match *failure {
            Failure::Truncated { message_len } => Ok(message_len),
            Failure::Buffer { side, own } => {
                let (class, text) = bad_buffer(side, own);
                fail(class, text)
            }
            Failure::Device(cause) => Err(fault(cause)),
        },
    }
}

/// What has become of a collective that was begun by [`World::begin`].
#[derive(Debug)]
pub enum Begun {
    /// It is done.
    Done,
    /// It has come so far; when it is done its schedule belongs there.
    Goes(Box<Schedule>, Progress, Known),
}

impl<D: Device> World<D> {
    /// Begins a collective that this rank waits for, if a schedule is kept of an equal one. One that needs no
    /// waiting, or in which this rank has nothing to do, is done in one go.
    #[inline]
    pub fn begin(
        &mut self,
        comm: Handle,
        call: Asked,
        (send, recv): (usize, usize),
        flight: &mut InFlight,
    ) -> Result<Option<Begun>> {
        let Some(held) = self.objects.comms.get_mut(comm) else { return Comms::refuse(comm) };
        let Some((known, mut schedule)) = held.coll.take(call, send, recv) else { return Ok(None) };
        let tag = held.coll.next_tag(schedule.program().kind);
        let progress = match schedule.program().steps.is_empty() {
            true => Ok(Progress::Done),
            false => {
                schedule.start(tag);
                schedule.advance(&mut io!(self, &held.crowd, flight))
            }
        };
        match progress {
            Ok(Progress::Done) => {
                held.coll.keep(known, schedule);
                Ok(Some(Begun::Done))
            }
            Ok(progress) => Ok(Some(Begun::Goes(schedule, progress, known))),
            Err(error) => {
                let place = held.crowd.clone();
                self.leave(&place, schedule, std::mem::take(flight), &error);
                Err(error)
            }
        }
    }

    /// Advances a collective that has no request: it runs on a communicator that stays, so that
    /// nothing of it has to be kept.
    #[inline]
    pub fn advance_on(
        &mut self,
        comm: Handle,
        schedule: &mut Schedule,
        flight: &mut InFlight,
    ) -> Result<Progress> {
        let Some(comm) = self.objects.comms.get(comm) else { return Comms::refuse(comm) };
        schedule.advance(&mut io!(self, &comm.crowd, flight))
    }

    /// What to say of a message of a collective that has arrived and that this rank has never
    /// asked for.
    pub fn stray_collective(&self) -> Option<String> {
        // At the end of the job others may be ahead of this rank already.
        let collective =
            |context: u64| context & 3 == Purpose::Collective as u64 && context >> 2 != LAST_CONTEXT;
        let name = |tag| Tag::from_value(tag)?.kind().map(Collective::name);
        let arrived = self.engine.arrived().filter(|(envelope, _)| collective(envelope.context));
        let (envelope, name) =
            arrived.filter_map(|(envelope, _)| Some((envelope, name(envelope.tag)?))).next()?;
        let comm = self.objects.comms.by_context(envelope.context).map(|(_, comm)| comm);
        let (from, on) = match comm {
            Some(comm) => {
                let from = comm.crowd.peers.rank_of(envelope.source as u32)?;
                (comm.crowd.name_in_crowd(from), String::from_utf8_lossy(comm.name()))
            }
            None => (format!("rank {}", envelope.source), "a freed communicator".into()),
        };
        Some(format!(
            "a message of {from} in {name} on {on} was never received by rank {} of the job: it was in another collective there, or named another root",
            self.rank()
        ))
    }

    /// Gives up a collective that has failed. Receives that nothing has come for are withdrawn;
    /// if the engine still holds messages of it, their memory must stay: it is never freed.
    pub(crate) fn abandon(&mut self, schedule: Box<Schedule>, flight: InFlight) {
        let mut held = false;
        for (_, op) in schedule.in_flight() {
            let Some(op) = flight.op(op) else { continue };
            if self.engine.is_done(op) || self.engine.cancel(op) {
                self.engine.take(op);
            } else {
                held = true;
            }
        }
        if held {
            Box::leak(Box::new((schedule, flight)));
        }
    }
}
