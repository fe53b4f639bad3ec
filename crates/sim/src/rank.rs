//! Programs of ranks: the blocking face of [`mpi::World`] over simulated adapters.
//!
//! It is what `abi` is for C: a blocking operation is a non-blocking one and a loop that looks around and naps.
//! Buffers come from [`Rank::buffer`], live as long as the rank and begin at a page.

use std::rc::Rc;

use fabric::{Distance, Source, Span, Verbs};
use mpi::coll::{
    Amount, Asked, Call, Collective, Cores, Forced, Ints, Key, Known, Progress, Rates, Schedule, Side,
    Tariff, Type,
};
use mpi::collio::InFlight;
use mpi::comm::{COMM_WORLD, Place};
use mpi::error::{Class, Error, Result};
use mpi::handle::Handle;
use mpi::request::{Body, Ended, Incoming, Outgoing, SendMode};
use mpi::status::Status;
use mpi::world::Polled;
use mpi::{World, mem};
use proto::channel::Settings;
use proto::{Engine, Limits, Tuning};

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::job::Job;
use crate::nic::Nic;
use crate::report::Report;
use crate::wires::Wires;

/// `MPI_BYTE`.
pub const BYTE: Handle = Handle(0x247);
/// `MPI_INT64_T`.
pub const INT64: Handle = Handle(0x258);
/// `MPI_SUM`.
pub const SUM: Handle = Handle(0x21);
/// `MPI_ANY_SOURCE`.
pub const ANY_SOURCE: i32 = mpi::status::ANY_SOURCE;
/// `MPI_ANY_TAG`.
pub const ANY_TAG: i32 = mpi::status::ANY_TAG;

/// How the library of a job is set up, the same on all ranks.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Limits and forced protocols.
    pub limits: Limits,
    /// Frames.
    pub channel: Settings,
    /// Sizes and depths of the pipelines.
    pub tuning: Tuning,
    /// Collective algorithms.
    pub forced: Forced,
}

impl Default for Setup {
    fn default() -> Setup {
        let limits = Limits::default();
        Setup { limits, channel: Settings::default(), tuning: Tuning::default(), forced: Forced::default() }
    }
}

/// An operation under way.
#[derive(Debug)]
pub struct Request(Option<Body>);

/// A rank of a simulated job.
pub struct Rank<'y> {
    world: World<Wires<'y>>,
    clock: Rc<Clock<'y>>,
    /// Large buffers it has asked for.
    large: usize,
    page_bytes: usize,
}

impl Job {
    /// Runs an MPI program on every rank, from MPI_Init to MPI_Finalize.
    pub fn program<R: 'static>(
        self,
        setup: &Setup,
        body: impl Fn(&mut Rank<'_>) -> Result<R> + 'static,
    ) -> std::result::Result<Report<Result<R>>, String> {
        let setup = setup.clone();
        self.run(move |nic| {
            let mut rank = Rank::init(nic, &setup)?;
            let value = body(&mut rank)?;
            rank.finalize()?;
            Ok(value)
        })
    }
}

impl<'y> Rank<'y> {
    fn init(nic: Nic<'y>, setup: &Setup) -> Result<Rank<'y>> {
        let clock = nic.clock().clone();
        let page_bytes = nic.caps().page_bytes;
        let wires = Wires::new(nic, setup.channel.clone()).map_err(mpi::world::fault)?;
        let mut engine = Engine::new(wires, setup.limits.clone());
        engine.tune(setup.tuning.clone());
        let tariff = tariff(&engine, engine.device().nic().cluster());
        let world = World::new(engine, tariff, setup.forced);
        Ok(Rank { world, clock, large: 0, page_bytes })
    }

    /// Waits for all, so that nobody's memory goes away while others still use it.
    fn finalize(&mut self) -> Result<()> {
        self.until(|world| Ok(world.is_drained().then_some(())))?;
        self.barrier()?;
        while self.clock.has_work() && !self.nic().is_stuck() {
            // A look that brings the last completion may say that nothing has moved.
            if let Polled::Nap(nap) = self.world.poll()?
                && self.clock.has_work()
            {
                fabric::Nap::take(nap);
            }
        }
        self.clock.fence();
        Ok(())
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    /// Ranks of the job.
    pub fn size(&self) -> usize {
        self.nic().size()
    }

    /// The virtual time, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.nic().now_ns()
    }

    /// Computes.
    pub fn compute(&mut self, time_ns: u64) {
        self.clock.spend("compute", time_ns * 1000, 0);
    }

    /// The adapters.
    pub fn nic(&self) -> &Nic<'y> {
        self.world.engine.device().nic()
    }

    /// Everything else MPI offers.
    pub fn world(&mut self) -> &mut World<Wires<'y>> {
        &mut self.world
    }

    /// A buffer of zeros.
    pub fn buffer(&mut self, len: usize) -> Span {
        self.clock.net.borrow_mut().arena.buffer(len, self.page_bytes, &mut self.large)
    }

    /// Puts bytes into a buffer; takes no time.
    pub fn write(&mut self, buffer: Span, bytes: &[u8]) {
        assert!(bytes.len() <= buffer.len, "{} bytes do not fit {}", bytes.len(), buffer.len);
        mem::write(buffer.addr, bytes);
    }

    /// The bytes in a buffer; takes no time.
    pub fn read(&self, buffer: Span) -> Vec<u8> {
        let mut bytes = vec![0; buffer.len];
        mem::read(buffer.addr, &mut bytes);
        bytes
    }

    /// `MPI_Send`.
    pub fn send(&mut self, buffer: Span, dest: usize, tag: i32) -> Result<()> {
        let (dest, len) = (dest as i32, buffer.len as u64);
        if self.world.send_now::<false>(buffer.addr, len, BYTE, dest, tag, COMM_WORLD) {
            return Ok(());
        }
        let request = self.isend(buffer, dest as usize, tag)?;
        self.wait(request).map(drop)
    }

    /// `MPI_Recv` from a rank or [`ANY_SOURCE`].
    pub fn recv(&mut self, buffer: Span, source: i32, tag: i32) -> Result<Status> {
        let len = buffer.len as u64;
        if let Some(found) = self.world.receive_now(buffer.addr, len, BYTE, source, tag, COMM_WORLD) {
            return Ok(found);
        }
        let request = self.irecv(buffer, source, tag)?;
        self.wait(request)
    }

    /// `MPI_Isend`.
    pub fn isend(&mut self, buffer: Span, dest: usize, tag: i32) -> Result<Request> {
        self.start_send(buffer, dest, tag, SendMode::Standard)
    }

    /// `MPI_Issend`.
    pub fn issend(&mut self, buffer: Span, dest: usize, tag: i32) -> Result<Request> {
        self.start_send(buffer, dest, tag, SendMode::Synchronous)
    }

    fn start_send(&mut self, buffer: Span, dest: usize, tag: i32, mode: SendMode) -> Result<Request> {
        let (dest, len) = (dest as i32, buffer.len as u64);
        let is_standard = mode == SendMode::Standard;
        if is_standard && self.world.send_now::<true>(buffer.addr, len, BYTE, dest, tag, COMM_WORLD) {
            return Ok(Request(None));
        }
        let place = self.place()?;
        let buffer = self.world.buffer(buffer.addr, len, BYTE, "buffer")?;
        let send = Outgoing { buffer, dest, tag, mode, may_cancel: true };
        Ok(Request(self.world.start_send(&place, COMM_WORLD, &send)?))
    }

    /// `MPI_Irecv` from a rank or [`ANY_SOURCE`].
    pub fn irecv(&mut self, buffer: Span, source: i32, tag: i32) -> Result<Request> {
        let len = buffer.len as u64;
        if let Some(op) = self.world.post_now(buffer.addr, len, BYTE, source, tag, COMM_WORLD) {
            return Ok(Request(Some(Body::of_receive(op, source))));
        }
        let place = self.place()?;
        let buffer = self.world.buffer(buffer.addr, len, BYTE, "buffer")?;
        let receive = Incoming { buffer, source, tag };
        Ok(Request(Some(self.world.start_receive(&place, &receive)?)))
    }

    /// `MPI_Wait`.
    pub fn wait(&mut self, request: Request) -> Result<Status> {
        let mut body = request.0;
        let ended = self.until(|world| {
            let Some(under_way) = body.take() else { return Ok(Some(Ended::WELL)) };
            let (next, _) = world.settle_body(under_way);
            match next {
                Body::Ended(ended) => Ok(Some(ended)),
                other => {
                    body = Some(other);
                    Ok(None)
                }
            }
        })?;
        ended.error.map_or(Ok(ended.status), Err)
    }

    /// `MPI_Waitall`.
    pub fn waitall(&mut self, requests: impl IntoIterator<Item = Request>) -> Result<()> {
        requests.into_iter().try_for_each(|request| self.wait(request).map(drop))
    }

    /// `MPI_Test`: looks around once; the status, or the request that goes on.
    pub fn test(&mut self, mut request: Request) -> Result<std::result::Result<Status, Request>> {
        self.progress()?;
        let Some(body) = request.0.take() else { return Ok(Ok(Status::EMPTY)) };
        match self.world.settle_body(body).0 {
            Body::Ended(ended) => ended.error.map_or(Ok(Ok(ended.status)), Err),
            other => Ok(Err(Request(Some(other)))),
        }
    }

    /// Looks around once, as `MPI_Test` does.
    pub fn progress(&mut self) -> Result<()> {
        self.world.progress().map(drop)
    }

    /// `MPI_Sendrecv`.
    pub fn sendrecv(&mut self, out: Span, dest: usize, into: Span, source: i32, tag: i32) -> Result<Status> {
        let receive = self.irecv(into, source, tag)?;
        let send = self.isend(out, dest, tag)?;
        let status = self.wait(receive)?;
        self.wait(send)?;
        Ok(status)
    }

    /// `MPI_Barrier`.
    pub fn barrier(&mut self) -> Result<()> {
        self.collective(key(Collective::Barrier, 0), Span::EMPTY, Span::EMPTY)
    }

    /// `MPI_Bcast` of bytes.
    pub fn bcast(&mut self, buffer: Span, root: usize) -> Result<()> {
        let recv = Some((buffer.len as u64, BYTE));
        self.collective(Key { recv, ..key(Collective::Bcast, root) }, Span::EMPTY, buffer)
    }

    /// `MPI_Scatter` of bytes: equal parts of `out`, which only the root needs.
    pub fn scatter(&mut self, out: Span, into: Span, root: usize) -> Result<()> {
        let each = Some((into.len as u64, BYTE));
        let send = each.filter(|_| self.rank() == root);
        self.collective(Key { send, recv: each, ..key(Collective::Scatter, root) }, out, into)
    }

    /// `MPI_Gather` of bytes: equal parts of `into`, which only the root needs.
    pub fn gather(&mut self, out: Span, into: Span, root: usize) -> Result<()> {
        let each = Some((out.len as u64, BYTE));
        let recv = each.filter(|_| self.rank() == root);
        self.collective(Key { send: each, recv, ..key(Collective::Gather, root) }, out, into)
    }

    /// `MPI_Allgather` of bytes.
    pub fn allgather(&mut self, out: Span, into: Span) -> Result<()> {
        let each = Some((out.len as u64, BYTE));
        self.collective(Key { send: each, recv: each, ..key(Collective::Allgather, 0) }, out, into)
    }

    /// `MPI_Alltoall` of bytes: equal parts of both buffers.
    pub fn alltoall(&mut self, out: Span, into: Span) -> Result<()> {
        let each = Some(((out.len / self.size()) as u64, BYTE));
        self.collective(Key { send: each, recv: each, ..key(Collective::Alltoall, 0) }, out, into)
    }

    /// `MPI_Gatherv` of bytes: parts of these lengths in `into`, one behind the other, which only the root needs.
    pub fn gatherv(&mut self, out: Span, into: Span, lens: &[i64], root: usize) -> Result<()> {
        let (byte, places) = (byte(), places(lens));
        let all = varied(lens, &places, &byte);
        let recv = if self.rank() == root { all } else { Side::Absent };
        self.uneven(
            Collective::Gatherv,
            root,
            (Side::Even { count: out.len as u64, ty: &byte }, out),
            (recv, into),
        )
    }

    /// `MPI_Scatterv` of bytes, as [`Rank::gatherv`].
    pub fn scatterv(&mut self, out: Span, lens: &[i64], into: Span, root: usize) -> Result<()> {
        let (byte, places) = (byte(), places(lens));
        let all = varied(lens, &places, &byte);
        let send = if self.rank() == root { all } else { Side::Absent };
        self.uneven(
            Collective::Scatterv,
            root,
            (send, out),
            (Side::Even { count: into.len as u64, ty: &byte }, into),
        )
    }

    /// `MPI_Alltoallv` of bytes: parts of these lengths, one behind the other.
    pub fn alltoallv(&mut self, out: (Span, &[i64]), into: (Span, &[i64])) -> Result<()> {
        let (byte, places) = (byte(), [places(out.1), places(into.1)]);
        let send = varied(out.1, &places[0], &byte);
        self.uneven(Collective::Alltoallv, 0, (send, out.0), (varied(into.1, &places[1], &byte), into.0))
    }

    /// `MPI_Allreduce` of elements of this type.
    pub fn allreduce(&mut self, out: Span, into: Span, datatype: Handle, op: Handle) -> Result<()> {
        let both = elements(into, datatype)?;
        self.collective(
            Key { send: both, recv: both, op: Some(op), ..key(Collective::Allreduce, 0) },
            out,
            into,
        )
    }

    /// `MPI_Scan` of elements of this type.
    pub fn scan(&mut self, out: Span, into: Span, datatype: Handle, op: Handle) -> Result<()> {
        let both = elements(into, datatype)?;
        self.collective(Key { send: both, recv: both, op: Some(op), ..key(Collective::Scan, 0) }, out, into)
    }

    /// `MPI_Reduce` of elements of this type.
    pub fn reduce(&mut self, out: Span, into: Span, datatype: Handle, op: Handle, root: usize) -> Result<()> {
        let send = elements(out, datatype)?;
        let recv = send.filter(|_| self.rank() == root);
        self.collective(Key { send, recv, op: Some(op), ..key(Collective::Reduce, root) }, out, into)
    }

    /// Calls `ready` until it gives a value, looking around in between.
    pub fn until<T>(
        &mut self,
        mut ready: impl FnMut(&mut World<Wires<'y>>) -> Result<Option<T>>,
    ) -> Result<T> {
        loop {
            if let Some(value) = ready(&mut self.world)? {
                self.world.engine.awake();
                return Ok(value);
            }
            match self.world.poll()? {
                Polled::Moved => {}
                Polled::Call(..) => {
                    return Err(Error::new(Class::OP, "only predefined operations are simulated"));
                }
                Polled::Nap(nap) => {
                    fabric::Nap::take(nap);
                    if self.nic().is_stuck() {
                        return Err(self.stuck());
                    }
                }
            }
        }
    }

    /// What this rank waits for, when nothing will happen any more.
    fn stuck(&self) -> Error {
        let describe = |op: &proto::PendingOp| {
            let side = if op.side == proto::Side::Send { "send to" } else { "receive from" };
            let peer = op.peer.map_or("any rank".into(), |peer| format!("rank {peer}"));
            let tag = op.tag.map_or("any tag".into(), |tag| format!("tag {tag}"));
            format!("{side} {peer}, {tag}, {} bytes", op.len)
        };
        let pending: Vec<String> = self.world.engine.pending().iter().map(describe).collect();
        let text = if pending.is_empty() { "something without a message".into() } else { pending.join("; ") };
        Error::new(Class::PENDING, format!("deadlock: rank {} waits for ever: {text}", self.rank()))
    }

    fn place(&self) -> Result<Place> {
        Ok(self.world.comm(COMM_WORLD)?.place.clone())
    }

    /// Runs a collective to its end; its schedule is kept for the next equal call.
    fn collective(&mut self, key: Key, send: Span, recv: Span) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let op = key.op.map(|op| self.world.objects.ops.get(op)).transpose()?;
        let comm = self.world.comm_mut(COMM_WORLD)?;
        let (known, mut schedule) = match comm.coll.take(Asked::Key(&key), send.addr, recv.addr) {
            Some(kept) => kept,
            None => {
                let (send_ty, recv_ty) = (ty(key.send)?, ty(key.recv)?);
                let call = Call {
                    kind: key.kind,
                    rank,
                    size,
                    send: side(&send_ty),
                    recv: side(&recv_ty),
                    in_place: false,
                    op: op.as_ref(),
                    root: key.root,
                    across: None,
                };
                mpi::coll::args::check(&call, send.addr, recv.addr)?;
                (Known::Key(key), comm.coll.compile(&call, send.addr, recv.addr)?)
            }
        };
        let tag = comm.coll.next_tag(schedule.program().kind);
        schedule.start(tag);
        self.complete(&mut schedule)?;
        self.world.comm_mut(COMM_WORLD)?.coll.keep(known, schedule);
        Ok(())
    }

    /// Runs a collective whose parts have lengths of their own.
    fn uneven(
        &mut self,
        kind: Collective,
        root: usize,
        send: (Side, Span),
        recv: (Side, Span),
    ) -> Result<()> {
        let (rank, size, in_place) = (self.rank(), self.size(), false);
        let call =
            Call { kind, rank, size, send: send.0, recv: recv.0, in_place, op: None, root, across: None };
        mpi::coll::args::check(&call, send.1.addr, recv.1.addr)?;
        let comm = self.world.comm_mut(COMM_WORLD)?;
        let mut schedule = comm.coll.compile(&call, send.1.addr, recv.1.addr)?;
        schedule.start(comm.coll.next_tag(kind));
        self.complete(&mut schedule)
    }

    fn complete(&mut self, schedule: &mut Schedule) -> Result<()> {
        let mut flight = InFlight::waiting();
        self.until(|world| match world.advance_on(COMM_WORLD, schedule, &mut flight)? {
            Progress::Pending => Ok(None),
            Progress::Done => Ok(Some(())),
            Progress::Call(_) => Err(Error::new(Class::OP, "only predefined operations are simulated")),
        })
    }
}

fn byte() -> Type {
    Type::predefined(BYTE).expect("a predefined type")
}

/// Where parts of these lengths begin.
fn places(lens: &[i64]) -> Vec<i64> {
    let mut end = 0;
    let place = |len: &i64| {
        let begin = end;
        end += len;
        begin
    };
    lens.iter().map(place).collect()
}

fn varied<'a>(lens: &'a [i64], places: &'a [i64], ty: &'a Type) -> Side<'a> {
    Side::Varied { counts: Ints::Large(lens), displs: Ints::Large(places), ty }
}

fn key(kind: Collective, root: usize) -> Key {
    Key { kind, in_place: false, root, send: None, recv: None, op: None }
}

fn ty(amount: Amount) -> Result<Option<(u64, Type)>> {
    let Some((count, handle)) = amount else { return Ok(None) };
    let ty = Type::predefined(handle)
        .ok_or_else(|| Error::new(Class::TYPE, "only predefined types are simulated"))?;
    Ok(Some((count, ty)))
}

fn side(amount: &Option<(u64, Type)>) -> Side<'_> {
    amount.as_ref().map_or(Side::Absent, |(count, ty)| Side::Even { count: *count, ty })
}

fn elements(buffer: Span, datatype: Handle) -> Result<Amount> {
    let size = ty(Some((1, datatype)))?.map_or(1, |(_, ty)| ty.size);
    Ok(Some((buffer.len as u64 / size, datatype)))
}

/// What collective algorithms are chosen by: where ranks of a host reach each other inside its adapters, the rates
/// of these. Every simulated rank has a core of its own.
fn tariff(engine: &Engine<Wires<'_>>, cluster: &Cluster) -> Tariff {
    let cores = Cores { count: u32::MAX, switch_ns: 0.0, crowding: 0.0, reduce: 1.0 };
    let rates = |distance| Rates::of(&engine.learner().facts, distance, cores);
    let network = rates(Distance::Network);
    let host = if cluster.shared.is_some() { rates(Distance::Host) } else { network };
    Tariff { host, network, source: Source::Cluster }
}
