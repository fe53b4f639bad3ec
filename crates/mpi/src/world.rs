//! A rank: its objects, its protocols, and what is under way between the two.

use std::sync::Arc;

use crate::bsend::Bsend;
use crate::coll::{Account, Forced, Spread, State, Tariff, UserReduce};
use crate::comm::{COMM_SELF, COMM_WORLD, Comm, Comms, Place};
use crate::error::{Class, Error, Result};
use crate::group::Group;
use crate::handle::Handle;
use crate::lost::GivenUp;
use crate::objects::Objects;
use crate::ports::Ports;
use crate::request::{Body, BufferOwner, Ended, Keep, Origin, Requests, Unpack, received};
use crate::{status::Status, tools};
use fabric::{Device, Fault};
use proto::{Engine, OpId};

/// Contexts that all ranks know from the start; those made later begin with the rank that made them.
const WORLD_CONTEXT: u64 = 0;
const SELF_CONTEXT: u64 = 1;
/// That of the communicator for the end of the job.
pub(crate) const LAST_CONTEXT: u64 = 2;

/// A rank of a job.
pub struct World<D: Device> {
    /// Objects the program holds.
    pub objects: Objects,
    /// The protocols below.
    pub engine: Engine<D>,
    /// Rates the choice of collective algorithms goes by.
    pub tariff: Tariff,
    /// Collective algorithms that settings force.
    pub forced: Forced,
    /// Collectives under way that progress by themselves.
    pub(crate) schedules: Vec<Handle>,
    /// Functions of the application that collectives wait for, found while it was outside MPI.
    pub(crate) calls: Vec<(Handle, UserReduce)>,
    /// Operations that nobody will ask for: requests freed early, buffered sends.
    pub(crate) detached: Vec<(OpId, Detached)>,
    /// Partitioned receives that wait to be told how their messages are cut.
    pub(crate) untold: Vec<Handle>,
    /// What is said of collectives at the end, if anything.
    pub account: Option<Box<Account>>,
    /// Communicators whose collectives cannot end.
    pub(crate) given_up: Vec<GivenUp>,
    /// Ports of this process that are open, and whether any has been.
    pub(crate) ports: Ports,
    /// Looks in vain since notices were looked for.
    pub(crate) vain_looks: u32,
    next_context: u64,
    /// Number of ranks of the job: peers behind them are processes of other jobs.
    pub(crate) job_size: u32,
    /// From which contexts come once there are such processes.
    pub(crate) random: Option<u64>,
    /// How many of the peers that are lost [`World::has_losses`] has told of.
    pub(crate) parted: usize,
}

/// What is left to do when a detached operation ends.
#[derive(Debug)]
pub(crate) enum Detached {
    Send(Keep),
    Receive(Option<Box<Unpack>>),
    /// Memory of the engine that is sent.
    Told(Vec<u8>),
    /// The room of what is received because it must not stay.
    Unwanted(Box<[u8]>),
}

/// What a look around brought.
pub enum Polled<N> {
    /// Something moved: look again.
    Moved,
    /// Call this function, then [`World::called`].
    Call(Handle, UserReduce),
    /// Nothing: do this until the next look.
    Nap(N),
}

impl<D: Device> World<D> {
    /// A rank over `engine`.
    pub fn new(engine: Engine<D>, tariff: Tariff, forced: Forced) -> World<D> {
        let (me, job_size) = (engine.device().me(), engine.device().size() as u32);
        let mut world = World {
            objects: Objects::default(),
            engine,
            tariff,
            forced,
            schedules: Vec::new(),
            calls: Vec::new(),
            detached: Vec::new(),
            untold: Vec::new(),
            account: None,
            given_up: Vec::new(),
            ports: Ports::default(),
            vain_looks: 0,
            next_context: (me as u64 + 1) << 32,
            job_size,
            random: None,
            parted: 0,
        };
        world.open();
        world
    }

    /// Makes `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub fn open(&mut self) {
        let (me, whole) = (self.rank(), self.whole(WORLD_CONTEXT));
        let own = Place::within(SELF_CONTEXT, Arc::new(Group::range(me, 1)), 0);
        let [whole, own] = [whole, own].map(|place| self.new_comm(place));
        self.objects.comms.start(whole, own);
    }

    /// Takes both away.
    pub fn close(&mut self) {
        for comm in [COMM_WORLD, COMM_SELF] {
            self.objects.comms.remove(comm);
        }
    }

    /// A communicator of all ranks of the job that no program knows, for the end of the job.
    pub fn add_last(&mut self) -> Result<Handle> {
        let place = self.whole(LAST_CONTEXT);
        self.add_comm(place)
    }

    fn whole(&self, context: u64) -> Place {
        Place::within(context, Arc::new(Group::range(0, self.job_size)), self.rank())
    }

    /// A communicator with nothing hung on it yet, in the table.
    pub fn add_comm(&mut self, place: Place) -> Result<Handle> {
        let comm = self.new_comm(place);
        self.objects.comms.add(comm)
    }

    fn new_comm(&self, place: Place) -> Comm {
        if self.random.is_some() && place.has_others(self.job_size) {
            return self.new_mixed_comm(place);
        }
        let mut comm = Comm::new(place, State::new(self.tariff, self.forced, Spread::OneHost));
        if let Some(hosts) = self.engine.device().hosts() {
            let crowd = &comm.crowd;
            let host = |number| hosts[crowd.world_rank(number as u32) as usize];
            comm.coll.spread = Spread::of(crowd.peers_size() as usize, host);
        }
        comm
    }

    /// Rank in `MPI_COMM_WORLD`.
    pub fn rank(&self) -> u32 {
        self.engine.device().me() as u32
    }

    /// The communicator of a handle.
    #[inline(always)]
    pub fn comm(&self, handle: Handle) -> Result<&Comm> {
        match self.objects.comms.get(handle) {
            Some(comm) => Ok(comm),
            None => Comms::refuse(handle),
        }
    }

    /// As [`World::comm`], to change it.
    pub fn comm_mut(&mut self, handle: Handle) -> Result<&mut Comm> {
        match self.objects.comms.get_mut(handle) {
            Some(comm) => Ok(comm),
            None => Comms::refuse(handle),
        }
    }

    /// A context id that no rank of the job has ever used: rank and counter. Where there are processes of other jobs
    /// 61 random bits, above all of those.
    pub fn new_context(&mut self) -> u64 {
        if let Some(context) = self.mixed_context() {
            return context;
        }
        self.next_context += 1;
        self.next_context
    }

    /// Looks around once.
    #[inline]
    pub fn poll(&mut self) -> Result<Polled<D::Nap>> {
        let nap = self.engine.poll().map_err(fault)?;
        if !self.schedules.is_empty()
            && let Some((handle, call)) = self.next_call()
        {
            return Ok(Polled::Call(handle, call));
        }
        let moved = self.tidy();
        if nap.is_some() {
            self.heed_losses();
        }
        if moved || nap.is_some() && self.heed_notices() {
            return Ok(Polled::Moved);
        }
        Ok(nap.map_or(Polled::Moved, Polled::Nap))
    }

    /// What else has come of a look around; true if it brought about what a wait may be for.
    #[inline(always)]
    fn tidy(&mut self) -> bool {
        if !self.detached.is_empty() {
            self.reap();
        }
        if !self.untold.is_empty() {
            self.advance_partitioned();
        }
        !self.objects.windows.are_passive() && self.serve_windows()
    }

    /// Advances without waiting, as every test does.
    pub fn progress(&mut self) -> Result<Option<(Handle, UserReduce)>> {
        self.engine.progress().map_err(fault)?;
        self.tidy();
        self.heed_losses();
        self.heed_notices();
        Ok(if self.schedules.is_empty() { None } else { self.next_call() })
    }

    /// Advances while the application computes, without calling its functions: such a call waits
    /// for the next look of [`World::poll`] or [`World::progress`]. True if anything moved.
    pub fn progress_aside(&mut self) -> bool {
        let mut moved = self.engine.progress_aside(!self.schedules.is_empty());
        moved |= self.tidy();
        while let Some(call) = self.advance_schedules() {
            self.calls.push(call);
        }
        moved
    }

    /// Whether something is under way that gets on only if this rank looks. Collectives that wait
    /// for a function of the application are not.
    #[inline]
    pub fn needs_care(&self) -> bool {
        self.schedules.len() > self.calls.len()
            || !self.untold.is_empty()
            || self.engine.needs_care()
            || !self.objects.windows.are_passive()
    }

    /// Whether everything that nobody will ask for has left: buffered sends, freed requests.
    pub fn is_drained(&self) -> bool {
        self.detached.is_empty()
    }

    /// Operations that nobody will ask for.
    pub fn detached(&self) -> impl Iterator<Item = OpId> {
        self.detached.iter().map(|(op, _)| *op)
    }

    /// Lets an operation end on its own.
    pub fn detach(&mut self, body: Body) {
        match body {
            Body::Send(op, keep) => self.detached.push((op, Detached::Send(keep))),
            Body::Receive(op, _, unpack) => self.detached.push((op, Detached::Receive(unpack))),
            Body::Exchange(send, receive) => {
                if let Some(send) = send {
                    self.detach(*send);
                }
                self.detach(*receive);
            }
            Body::Ended(_)
            | Body::Over
            | Body::Flush(_)
            | Body::General(_)
            | Body::Collective(_)
            | Body::Partitioned
            | Body::OneSided(_)
            | Body::Beside(_) => {}
        }
    }

    fn reap(&mut self) {
        let mut at = 0;
        while at < self.detached.len() {
            let Some(outcome) = self.engine.take(self.detached[at].0) else {
                at += 1;
                continue;
            };
            match self.detached.swap_remove(at).1 {
                Detached::Send(keep) => self.release(keep),
                Detached::Receive(Some(unpack)) => unpack.finish(outcome.len),
                Detached::Receive(None) => {}
                Detached::Told(bytes) => self.engine.give_memory(bytes),
                Detached::Unwanted(room) => drop(room),
            }
        }
    }

    /// A send has ended: gives back what it kept.
    pub fn release(&mut self, keep: Keep) {
        if let Keep::Segment(owner, address) = keep
            && let Some(buffer) = self.attached(owner)
        {
            buffer.release(address);
        }
    }

    /// The accounts of an attached buffer.
    pub fn attached(&mut self, owner: BufferOwner) -> Option<&mut Bsend> {
        match owner {
            BufferOwner::Process => Some(&mut self.objects.bsend),
            BufferOwner::Comm(comm) => self.objects.comms.get_mut(comm).map(|comm| &mut comm.bsend),
            BufferOwner::Session(session) => {
                self.objects.sessions.get_mut(session).map(|session| &mut session.bsend)
            }
        }
    }

    /// Whether a request has ended; then its body says how.
    #[inline]
    pub fn settle(&mut self, handle: Handle) -> Result<bool> {
        let Some(request) = self.objects.requests.get_mut(handle) else { return Requests::refuse(handle) };
        let Some(body) = &request.body else { return Ok(true) };
        match body {
            Body::Ended(_) | Body::Over => return Ok(true),
            Body::Send(op, _) | Body::Receive(op, ..) if !self.engine.is_done(*op) => return Ok(false),
            Body::Collective(_) => return Ok(false),
            Body::Partitioned => return self.settle_partitioned(handle),
            Body::General(general) => return Ok(general.is_complete()),
            // It stays what it is: whose error handler a failure concerns is in it.
            Body::Beside(errand) => return Ok(errand.outcome().is_some()),
            Body::OneSided(ticket) if ticket.outcome().is_none() => return Ok(false),
            _ => {}
        }
        let body = request.body.take().expect("looked at above");
        let (body, ended) = self.settle_body(body);
        if let Some(request) = self.objects.requests.get_mut(handle) {
            request.body = Some(body);
        }
        Ok(ended)
    }

    /// As [`World::settle`] for an operation that has no request: what it has become, and whether
    /// it has ended.
    pub fn settle_body(&mut self, body: Body) -> (Body, bool) {
        match body {
            Body::Send(op, keep) => match self.engine.take(op) {
                None => (Body::Send(op, keep), false),
                Some(outcome) => {
                    self.release(keep);
                    let error = outcome
                        .failure
                        .map(|f| crate::request::failed(*f, outcome.source as i32, outcome.tag, outcome.len));
                    let mut status = Status::EMPTY;
                    status.set_cancelled(outcome.cancelled);
                    (Body::Ended(Ended { status, error }), true)
                }
            },
            Body::Receive(op, origin, unpack) => match self.engine.take(op) {
                None => (Body::Receive(op, origin, unpack), false),
                Some(outcome) => {
                    if let Some(unpack) = unpack {
                        unpack.finish(outcome.len);
                    }
                    (Body::Ended(received(outcome, &origin)), true)
                }
            },
            Body::Exchange(send, receive) => self.settle_exchange(send, receive),
            Body::OneSided(ticket) => match ticket.outcome() {
                Some(error) => (Body::Ended(Ended { error: error.clone(), ..Ended::WELL }), true),
                None => (Body::OneSided(ticket), false),
            },
            Body::Beside(errand) => match errand.outcome() {
                Some(ended) => (Body::Ended(ended.clone()), true),
                None => (Body::Beside(errand), false),
            },
            Body::Flush(owner) => {
                let drained = self.attached(owner).is_none_or(|buffer| buffer.is_drained());
                if drained { (Body::Ended(Ended::WELL), true) } else { (Body::Flush(owner), false) }
            }
            Body::Over => (Body::Ended(Ended::WELL), true),
            other => {
                let ended = matches!(other, Body::Ended(_));
                (other, ended)
            }
        }
    }

    fn settle_exchange(&mut self, send: Option<Box<Body>>, receive: Box<Body>) -> (Body, bool) {
        let waits = |body: &Body| matches!(body, Body::Send(op, _) | Body::Receive(op, ..) if !self.engine.is_done(*op));
        if waits(&receive) && send.as_deref().is_none_or(waits) {
            return (Body::Exchange(send, receive), false);
        }
        let (receive, received) = self.settle_body(*receive);
        let send = send.and_then(|send| match self.settle_body(*send) {
            (Body::Ended(Ended { error: None, .. }), _) => None,
            (body, _) => Some(Box::new(body)),
        });
        match (send, receive) {
            (None, receive) => (receive, received),
            (Some(send), Body::Ended(mut ended)) if matches!(*send, Body::Ended(_)) => {
                let Body::Ended(sent) = *send else { unreachable!("matched above") };
                ended.error = ended.error.or(sent.error);
                (Body::Ended(ended), true)
            }
            (send, receive) => (Body::Exchange(send, Box::new(receive)), false),
        }
    }

    /// Takes the result of a request that [`World::settle`] said has ended: it is forgotten, or
    /// inactive if it is persistent. The flag says whether the handle is still good.
    #[inline]
    pub fn take(&mut self, handle: Handle) -> (Ended, bool) {
        let Some(request) = self.objects.requests.get_mut(handle) else { return (Ended::WELL, false) };
        if request.shared {
            return (Ended::WELL, false);
        }
        let body = request.body.take();
        let persistent = request.recipe.is_some();
        if !persistent {
            self.objects.requests.remove(handle);
        }
        match body {
            Some(Body::Ended(ended)) => (ended, persistent),
            Some(Body::Beside(errand)) => {
                (errand.outcome().cloned().expect("request taken before it ended"), persistent)
            }
            Some(Body::Over) | None => (Ended::WELL, persistent),
            Some(other) => panic!("request taken before it ended: {other:?}"),
        }
    }

    /// Makes a persistent request inactive that was over when it was started; false of any other.
    #[inline(always)]
    pub fn take_if_over(&mut self, handle: Handle) -> bool {
        let request = self.objects.requests.get_mut(handle);
        let Some(request) = request.filter(|request| matches!(request.body, Some(Body::Over))) else {
            return false;
        };
        std::mem::forget(request.body.take());
        true
    }

    /// Completes a request if it has ended and there is nothing special about it: no error, no
    /// function of the application to call. The flag says whether the handle is still good.
    #[inline(always)]
    pub fn take_plain(&mut self, handle: Handle) -> Option<(Status, bool)> {
        if self.take_if_over(handle) {
            return Some((Status::EMPTY, true));
        }
        self.take_message(handle)
    }

    /// As [`World::take_plain`] of one that was not over when it was started.
    #[inline(always)]
    fn take_message(&mut self, handle: Handle) -> Option<(Status, bool)> {
        let request = self.objects.requests.get_mut(handle)?;
        if request.shared {
            return Some((Status::EMPTY, false));
        }
        let (op, source) = match &request.body {
            Some(Body::Receive(op, Origin::Rank(source), None)) => (*op, Some(*source)),
            Some(Body::Send(op, Keep::Nothing)) => (*op, None),
            _ => return self.take_ended(handle),
        };
        let (tag, len) = self.engine.take_plain(op)?;
        let status = source.map_or(Status::EMPTY, |source| Status::new(source, tag, len));
        let is_persistent = request.recipe.is_some();
        if is_persistent {
            request.body = None;
        } else {
            self.objects.requests.forget(handle);
        }
        Some((status, is_persistent))
    }

    /// Completes a message as [`World::take_plain`] does, also one that is to be received and comes soon. Collectives are left to who advances them.
    #[inline(always)]
    pub fn take_soon(&mut self, handle: Handle) -> Option<(Status, bool)> {
        let request = self.objects.requests.get(handle).filter(|request| !request.is_collective)?;
        let coming = match request.body {
            Some(Body::Receive(op, Origin::Rank(_), None)) => Some(op),
            _ => None,
        };
        let taken = self.take_message(handle);
        match coming {
            Some(op) if taken.is_none() && self.engine.look_for(op) => self.take_message(handle),
            _ => taken,
        }
    }

    /// As [`World::take_plain`], for what is not a simple message.
    #[inline(never)]
    fn take_ended(&mut self, handle: Handle) -> Option<(Status, bool)> {
        let request = self.objects.requests.get_mut(handle)?;
        match &request.body {
            Some(Body::Ended(Ended { error: None, .. })) => {
                let (ended, keep) = self.take(handle);
                Some((ended.status, keep))
            }
            None => Some((Status::EMPTY, request.recipe.is_some())),
            Some(Body::Partitioned) => self.take_partitioned(handle).map(|status| (status, true)),
            _ => None,
        }
    }

    /// How all variables that tools watch stand now.
    pub fn readings(&self) -> Box<[u64]> {
        tools::variables().iter().map(|variable| self.engine.reading(variable.source)).collect()
    }
}

/// The error of a fault below.
#[cold]
pub fn fault(fault: Fault) -> Error {
    let class = match fault {
        Fault::PeerGone(_) | Fault::GuestGone(_) | Fault::PeerLost(..) => Class::PROC_ABORTED,
        Fault::NotPermitted | Fault::Limit(_) => Class::INTERN,
        Fault::BadAddress { .. } => Class::BUFFER,
        Fault::Device(_) => Class::OTHER,
    };
    Error::new(class, fault.to_string())
}
