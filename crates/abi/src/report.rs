//! Telling `mpiexec` what this rank waits for, and what killed it.
//!
//! Of all that is pending only what the wait under way waits for holds the rank up, so every wait
//! says what that is ([`Waits`]). The messages inside a collective are not listed: the collective
//! is, by its own name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::time::Duration;

use launch::control::Control;
use launch::report::{OpType, Pending};
use mpi::coll::Schedule;
use mpi::collio::InFlight;
use mpi::comm::{Comm, Place, Purpose};
use mpi::group::Group;
use mpi::handle::Handle;
use mpi::partitioned::{Partitioned, Standing};
use mpi::request::{Body, Recipe, Running, Then};
use mpi::status::{ANY_SOURCE, ANY_TAG};
use mpi::win::Window;
use mpi::win::sync::Awaited;
use proto::{OpId, PendingOp, Side};

use crate::cx::Cx;
use crate::global::World;
use crate::layout::Slot;
use crate::object::Object;
use crate::site;

/// What tells the contexts of partitioned messages from those of others, of which contexts have 62 bits.
const PARTITIONED: u64 = 1 << 62;

/// What tells the contexts of windows' barriers from those of others.
const WINDOW: u64 = 1 << 63;

static CONTROL: OnceLock<Control> = OnceLock::new();

/// Messages that have arrived and that nobody receives: how many are named in all, and how many
/// from one rank.
const ARRIVED_MAX: usize = 16;
const ARRIVED_PER_SOURCE: usize = 4;

/// Opens the channel to `mpiexec`, if it started this process.
pub fn connect() -> Result<(), String> {
    if let Some(control) = Control::from_env()?
        && CONTROL.set(control).is_ok()
        && let Some(control) = CONTROL.get()
    {
        control.install();
    }
    Ok(())
}

/// Hands the text of a fatal error over; false if the caller has to print it.
pub fn fatal(code: i32, text: &str) -> bool {
    let Some(control) = CONTROL.get() else { return false };
    // `mpiexec` answers with SIGTERM to all ranks. This one ends by itself, when what the program has
    // printed is written; if it cannot be, SIGKILL follows.
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    control.fatal(code, text)
}

/// What a wait waits for.
pub enum Waits<'a> {
    /// Nothing: a test, which returns.
    Nothing,
    /// That all processes of the job have come to MPI: for so long already.
    Job(Duration),
    /// The operation of a blocking call.
    Body(&'a Body),
    /// Requests, by their handles; null ones are among them.
    Requests(&'a [Slot]),
    /// A message to arrive (probes).
    Message {
        /// The rank it must come from, or a wildcard.
        source: i32,
        /// Its tag, or a wildcard.
        tag: i32,
        /// Its communicator.
        comm: Handle,
    },
    /// A collective on a communicator.
    Collective(Handle, &'a Schedule, &'a InFlight),
    /// What others do in a window.
    Window(Handle, &'a Awaited),
    /// Whatever nobody asks for any more has to leave: buffered sends, requests freed early.
    Detached,
}

/// Answers the question what is pending. The caller has looked around since it saw the question: what
/// others had sent by then has come.
#[cold]
pub fn answer(cx: &Cx, question: u32, waits: &Waits) {
    let Some(control) = CONTROL.get() else { return };
    if !launch::control::take(question) {
        return;
    }
    let mut world = cx.world();
    world.engine.stamp();
    let pending = Listing::new(&world, cx).all(waits);
    let comms = world.objects.comms.iter();
    let comms = comms.map(|(_, comm)| (comm.place.context, comm.coll.begun().into()));
    let windows = world.objects.windows.iter();
    let windows = windows.filter_map(|(_, window)| Some((window.place.context | WINDOW, window.barriers()?)));
    let begun: Vec<_> = comms.chain(windows).collect();
    let moves = world.engine.moves();
    drop(world);
    control.report(question, &pending, &begun, moves);
}

/// What is pending, being listed.
struct Listing<'a> {
    world: &'a World,
    cx: &'a Cx,
    now_ns: u64,
    operations: BTreeMap<OpId, PendingOp>,
    blocking: Vec<Pending>,
    others: Vec<Pending>,
}

impl<'a> Listing<'a> {
    fn new(world: &'a World, cx: &'a Cx) -> Listing<'a> {
        Listing {
            world,
            cx,
            now_ns: fabric::Device::now_ns(world.engine.device()),
            operations: world.engine.pending().into_iter().map(|op| (op.id, op)).collect(),
            blocking: Vec::new(),
            others: Vec::new(),
        }
    }

    /// What the rank waits for, then what it has begun, then what it has been sent.
    fn all(mut self, waits: &Waits) -> Vec<Pending> {
        let mut waited = BTreeSet::new();
        match waits {
            Waits::Nothing => {}
            Waits::Job(waited) => self.call(self.now_ns.saturating_sub(waited.as_nanos() as u64)),
            Waits::Body(body) => self.body(body, Some(&self.cx.name())),
            Waits::Requests(handles) => {
                waited.extend(handles.iter().map(|slot| Handle(slot.get(Object::Request) as u32)));
                self.call(self.world.engine.asleep_since_ns().unwrap_or(self.now_ns));
            }
            Waits::Message { source, tag, comm } => self.message(*source, *tag, *comm),
            Waits::Collective(comm, schedule, flight) => {
                let context = self.world.objects.comms.get(*comm).map(|comm| comm.place.context);
                self.collective(
                    self.cx.row().name.to_string(),
                    context.unwrap_or(0),
                    (schedule, flight),
                    true,
                );
            }
            Waits::Window(win, awaited) => self.window(*win, awaited),
            Waits::Detached => self.detached(),
        }
        // Of what is listed so far the call under way is the origin.
        let place = if self.blocking.is_empty() { None } else { site::caller() };
        for operation in &mut self.blocking {
            operation.address.clone_from(&place);
        }
        for (handle, request) in self.world.objects.requests.iter() {
            let is_waited = waited.contains(&handle);
            match (&request.body, request.recipe.as_deref()) {
                (Some(Body::Partitioned), Some((Recipe::Partitioned(part), place))) => {
                    self.partitioned(part, place, is_waited);
                }
                (Some(body), _) => self.request(body, is_waited),
                (None, _) => {}
            }
        }
        // Members begin collectives in order; whoever compares ranks takes the first of each.
        self.blocking.sort_by_key(|p| p.run);
        let left = std::mem::take(&mut self.operations);
        for op in left.values().filter(|op| op.context & 3 == Purpose::Message as u64) {
            let named = self.describe(op, started_by(op.side), false);
            self.others.push(named);
        }
        self.blocking.extend(self.arrived());
        self.blocking.extend(self.others);
        self.blocking
    }

    /// A request of the program, waited for or not.
    fn request(&mut self, body: &Body, waited: bool) {
        match body {
            Body::Collective(running) => {
                let name = started_collective(running);
                self.collective(name, running.place.context, (&running.schedule, &running.flight), waited);
            }
            body if waited => self.body(body, None),
            _ => {}
        }
    }

    /// A partitioned request under way. It matches its like alone, so its context is told from that of other messages.
    fn partitioned(&mut self, part: &Partitioned, place: &Place, waited: bool) {
        let Some(Standing { sends, peer, tag, bytes, partitions, waiting }) = part.standing() else { return };
        let (call, what, kind) = match sends {
            true => ("MPI_Psend_init", "not marked ready", OpType::Send),
            false => ("MPI_Precv_init", "not here", OpType::Recv),
        };
        let name = match waiting {
            0 => call.to_string(),
            _ => format!("{call}, {waiting} of {partitions} partitions {what}"),
        };
        let since_ns = self.world.engine.asleep_since_ns().unwrap_or(self.now_ns);
        let described = Pending {
            blocking: waited,
            peer: self.rank_in(place.context, peer),
            world_peer: Some(peer),
            tag: Some(tag),
            bytes,
            ..self.blank(name, kind, place.context, since_ns)
        };
        let named = Pending { context: place.context | PARTITIONED, ..described };
        if waited { self.blocking.push(named) } else { self.others.push(named) }
    }

    /// What a rank is blocked in, by the name of the call, or of the one that began the request.
    fn body(&mut self, body: &Body, call: Option<&str>) {
        match body {
            Body::Send(op, _) | Body::Receive(op, ..) => {
                let Some(op) = self.operations.remove(op) else { return };
                let named = self.describe(&op, call.unwrap_or(started_by(op.side)), true);
                self.blocking.push(named);
            }
            Body::Exchange(send, receive) => {
                if let Some(send) = send {
                    self.body(send, call);
                }
                self.body(receive, call);
            }
            Body::Flush(_) => self.detached(),
            Body::Ended(_)
            | Body::Over
            | Body::General(_)
            | Body::Collective(_)
            | Body::Partitioned
            | Body::OneSided(_)
            | Body::Beside(_) => {}
        }
    }

    fn detached(&mut self) {
        let ops: Vec<OpId> = self.world.detached().collect();
        let name = self.cx.name();
        for id in ops {
            if let Some(op) = self.operations.remove(&id) {
                let named = self.describe(&op, &name, true);
                self.blocking.push(named);
            }
        }
    }

    /// The call that waits, where what it waits for is listed beside it or is no operation.
    fn call(&mut self, since_ns: u64) {
        let call = self.blank(self.cx.name(), OpType::Wait, 0, since_ns);
        self.blocking.push(Pending { communicator: String::new(), members: None, ..call });
    }

    /// A synchronisation of a window. A fence in shared memory is a collective whose number is that of its barrier.
    fn window(&mut self, win: Handle, awaited: &Awaited) {
        let Some(window) = self.world.objects.windows.get(win) else { return };
        let since_ns = self.world.engine.asleep_since_ns().unwrap_or(self.now_ns);
        let kind = if *awaited == Awaited::Fence { OpType::Collective } else { OpType::Wait };
        let peer = match awaited {
            Awaited::Fence => None,
            Awaited::Told(told, from) => window.untold(*told, from),
            Awaited::Lock(target) => Some(*target),
        };
        // The owner of a lock's target is none of those who hold it up.
        let holds_up = peer.filter(|_| kind == OpType::Wait && !matches!(awaited, Awaited::Lock(_)));
        let call = self.blank(self.cx.name(), kind, window.place.context | WINDOW, since_ns);
        self.blocking.push(Pending {
            peer: peer.map(|rank| rank as usize),
            world_peer: holds_up.map(|rank| window.place.world_rank(rank) as usize),
            communicator: window_name(window),
            members: Some(members(&window.place.mine)),
            run: window.barriers().filter(|_| kind == OpType::Collective),
            ..call
        });
    }

    /// A collective: its messages count as it, not as operations of their own.
    fn collective(&mut self, name: String, context: u64, run: (&Schedule, &InFlight), blocking: bool) {
        let (schedule, flight) = run;
        let parts = schedule.in_flight().filter_map(|(_, id)| self.operations.remove(&flight.op(id)?));
        let since_ns = parts.map(|op| op.since_ns).filter(|since| *since != 0).min().unwrap_or(self.now_ns);
        // Calls such as MPI_Comm_dup use a collective whose root is none of the program's business.
        let own = name.to_lowercase().contains(&schedule.program().kind.name().to_lowercase());
        let root = schedule.program().root.filter(|_| own);
        let tag = schedule.tag();
        let call = self.blank(name, OpType::Collective, context, since_ns);
        let group = self.comm(context).map(|comm| &comm.place.peers);
        self.blocking.push(Pending {
            blocking,
            peer: root.map(|root| root as usize),
            world_peer: root.and_then(|root| group.map(|group| group.world_rank(root) as usize)),
            run: (!tag.is_persistent()).then_some(tag.run() as u64),
            ..call
        });
    }

    fn message(&mut self, source: i32, tag: i32, comm: Handle) {
        let Some(found) = self.world.objects.comms.get(comm) else { return };
        let since_ns = self.world.engine.asleep_since_ns().unwrap_or(self.now_ns);
        let call = self.blank(self.cx.name(), OpType::Recv, found.place.context, since_ns);
        let peer = (source != ANY_SOURCE).then_some(source as usize);
        self.blocking.push(Pending {
            peer,
            world_peer: peer.map(|rank| found.place.peers.world_rank(rank as u32) as usize),
            tag: (tag != ANY_TAG).then_some(tag),
            ..call
        });
    }

    /// Messages that have come and that no receive has asked for.
    fn arrived(&self) -> Vec<Pending> {
        let mut from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut listed = Vec::new();
        for (envelope, len) in self.world.engine.arrived() {
            let seen = from.entry(envelope.source).or_default();
            if envelope.context & 3 != Purpose::Message as u64 || *seen == ARRIVED_PER_SOURCE {
                continue;
            }
            *seen += 1;
            let message = self.blank("message".into(), OpType::Arrived, envelope.context >> 2, self.now_ns);
            listed.push(Pending {
                blocking: false,
                peer: self.rank_in(envelope.context >> 2, envelope.source),
                world_peer: Some(envelope.source),
                tag: Some(envelope.tag),
                bytes: len,
                ..message
            });
            if listed.len() == ARRIVED_MAX {
                break;
            }
        }
        listed
    }

    fn describe(&self, op: &PendingOp, name: &str, blocking: bool) -> Pending {
        let context = op.context >> 2;
        let kind = match op.side {
            Side::Send => OpType::Send,
            Side::Receive => OpType::Recv,
        };
        let since_ns = if op.since_ns == 0 { self.now_ns } else { op.since_ns };
        Pending {
            blocking,
            peer: op.peer.and_then(|peer| self.rank_in(context, peer)),
            world_peer: op.peer,
            tag: op.tag,
            bytes: op.len as u64,
            ..self.blank(name.into(), kind, context, since_ns)
        }
    }

    /// An operation on a communicator, without a partner yet.
    fn blank(&self, operation: String, kind: OpType, context: u64, since_ns: u64) -> Pending {
        let comm = self.comm(context);
        Pending {
            rank: self.world.rank() as usize,
            operation,
            kind,
            blocking: true,
            peer: None,
            world_peer: None,
            tag: None,
            communicator: comm.map_or_else(|| "a freed communicator".to_string(), |comm| self.name(comm)),
            context,
            run: None,
            members: comm.map(|comm| members(&comm.place.mine)),
            bytes: 0,
            since_ms: self.now_ns.saturating_sub(since_ns) / 1_000_000,
            address: None,
        }
    }

    /// What to call a communicator, which may be that of a window: no program knows it.
    fn name(&self, comm: &Comm) -> String {
        let mut windows = self.world.objects.windows.iter();
        let window = windows.find(|(_, window)| window.place.context == comm.place.context);
        window.map_or_else(|| comm_name(comm), |(_, window)| window_name(window))
    }

    fn comm(&self, context: u64) -> Option<&'a Comm> {
        self.world.objects.comms.by_context(context << 2).map(|(_, comm)| comm)
    }

    fn rank_in(&self, context: u64, peer: usize) -> Option<usize> {
        self.comm(context)?.place.peers.rank_of(peer as u32).map(|rank| rank as usize)
    }
}

fn members(group: &Group) -> Vec<usize> {
    group.iter().map(|rank| rank as usize).collect()
}

/// A name that tells communicators apart for a person: their own, or which ranks they hold.
fn comm_name(comm: &Comm) -> String {
    match comm.name() {
        [] => format!(
            "an unnamed communicator of ranks {} (context {:#x})",
            launch::report::ranges(&members(&comm.place.mine)),
            comm.place.context
        ),
        name => String::from_utf8_lossy(name).into_owned(),
    }
}

fn window_name(window: &Window) -> String {
    match window.name() {
        [] => {
            let ranks = launch::report::ranges(&members(&window.place.mine));
            format!("a window of ranks {ranks} (context {:#x})", window.place.context)
        }
        name => format!("window {}", String::from_utf8_lossy(name)),
    }
}

/// The call that begins an operation which a later one waits for.
fn started_by(side: Side) -> &'static str {
    match side {
        Side::Send => "MPI_Isend",
        Side::Receive => "MPI_Irecv",
    }
}

fn started_collective(running: &Running) -> String {
    let name = running.schedule.program().kind.name();
    match &running.then {
        Then::NameComm(_) => "MPI_Comm_idup".into(),
        Then::Nothing if running.schedule.tag().is_persistent() => format!("MPI_{name}_init"),
        Then::Nothing | Then::Keep(..) => format!("MPI_I{}", name.to_lowercase()),
    }
}
