//! Requests (MPI 5.0 section 3.7): what is under way and how it ended.

use std::sync::Arc;

use crate::bsend::AUTOMATIC;
use crate::coll::{Known, Schedule};
use crate::comm::Place;
use crate::datatype::Datatype;
use crate::error::{Class, Error, Result, fail};
use crate::file::Errand;
use crate::grequest::Grequest;
use crate::group::Group;
use crate::handle::{Handle, Slab};
use crate::mem;
use crate::objects::unusable;
use crate::partitioned::Partitioned;
use crate::status::Status;
use crate::win::active::Ticket;
use crate::world::fault;
use fabric::Span;
use proto::{Failure, OpId, Outcome, Side};

/// `MPI_REQUEST_NULL`.
pub const REQUEST_NULL: Handle = Handle(0x180);

/// How an operation ended: its status, and the error if it failed.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What a wait or test reports.
    pub status: Status,
    /// Set if it failed.
    pub error: Option<Error>,
}

impl Ended {
    /// An operation without a message that ended well.
    pub const WELL: Ended = Ended { status: Status::EMPTY, error: None };
}

/// A receive into memory that is not one run of bytes.
#[derive(Debug)]
pub struct Unpack {
    /// Type of the elements.
    pub ty: Arc<Datatype>,
    /// Number of elements.
    pub count: u64,
    /// Address the displacements count from.
    pub base: usize,
    /// The packed message.
    pub temp: Box<[u8]>,
}

impl Unpack {
    /// Room for `count` elements in packed form.
    pub fn new(base: usize, count: u64, ty: Arc<Datatype>) -> Result<Unpack> {
        let temp = mem::zeroed((ty.size() * count) as usize)?;
        Ok(Unpack { ty, count, base, temp })
    }

    /// The address and length of the packed form.
    pub fn span(&mut self) -> fabric::Span {
        fabric::Span { addr: self.temp.as_mut_ptr() as usize, len: self.temp.len() }
    }

    /// The first `len` bytes have come: puts them where they belong.
    pub fn finish(&self, len: u64) {
        // The engine wrote through the address of `span`; reading it through `mem` says so.
        mem::with(self.temp.as_ptr() as usize, len as usize, |bytes| {
            self.ty.unpack(self.base, self.count, 0, bytes);
        });
    }
}

/// Whose attached buffer a buffered send uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferOwner {
    /// The process.
    Process,
    /// A communicator.
    Comm(Handle),
    /// A session.
    Session(Handle),
}

/// What a send keeps until its data has left.
#[derive(Debug)]
pub enum Keep {
    /// Nothing: the buffer is the application's.
    Nothing,
    /// The packed form of a derived datatype.
    Packed(Box<[u8]>),
    /// A segment of an attached buffer, by its address.
    Segment(BufferOwner, usize),
}

/// A collective under way.
#[derive(Debug)]
pub struct Running {
    /// The schedule and the memory its messages use.
    pub schedule: Box<Schedule>,
    /// What its messages need.
    pub flight: crate::collio::InFlight,
    /// Where it runs.
    pub place: Place,
    /// What to do when it is done.
    pub then: Then,
    /// Copies of the application's buffers that it works on, if it does.
    pub copies: Option<Box<dyn Copies>>,
}

/// Contiguous copies of buffers that a collective works on where no datatype describes these: sections of arrays in Fortran.
/// They go when the request does.
pub trait Copies: std::fmt::Debug + Send {
    /// Before a start: what the application has in its buffers goes into the copies.
    fn begin(&mut self);
    /// It is done: what has come goes into the buffers.
    fn end(&mut self);
}

/// The packed form of a message of a schedule.
#[derive(Debug)]
pub enum PackedMessage {
    /// To be kept until it has left.
    Out(Box<[u8]>),
    /// To be unpacked when it has come.
    In(Unpack),
}

/// What completing a collective brings about.
#[derive(Debug)]
pub enum Then {
    /// Nothing more.
    Nothing,
    /// The communicator gets the context that the schedule has spread (`MPI_Comm_idup`).
    NameComm(Handle),
    /// The communicator keeps the schedule for the next equal call.
    Keep(Handle, Known),
}

/// What the status of a receive says of its source.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The rank in the communicator that was asked for.
    Rank(i32),
    /// Any member of this group.
    Any(Arc<Group>),
}

/// An operation under way.
#[derive(Debug)]
pub enum Body {
    /// It has ended; nobody has asked yet.
    Ended(Ended),
    /// A persistent one was over, and well, when it was started.
    Over,
    /// A send.
    Send(OpId, Keep),
    /// A receive.
    Receive(OpId, Origin, Option<Box<Unpack>>),
    /// A send and a receive (`MPI_Isendrecv`); each is `None` once it has ended.
    Exchange(Option<Box<Body>>, Box<Body>),
    /// A collective.
    Collective(Box<Running>),
    /// A round of a partitioned operation; what is under way is in its recipe.
    Partitioned,
    /// An operation of the application.
    General(Box<Grequest>),
    /// An operation on memory of another rank (`MPI_Rput` and its kin).
    OneSided(Arc<Ticket>),
    /// An access to a file that another thread does.
    Beside(Arc<Errand>),
    /// Waits until an attached buffer has been sent (`MPI_Buffer_iflush`).
    Flush(BufferOwner),
}

impl Body {
    /// A receive from this rank, of a predefined type.
    #[inline(always)]
    pub fn of_receive(op: OpId, source: i32) -> Body {
        Body::Receive(op, Origin::Rank(source), None)
    }
}

/// What a persistent request starts.
#[derive(Debug)]
pub enum Recipe {
    /// A send, in this mode.
    Send(Outgoing),
    /// A receive.
    Receive(Incoming),
    /// A collective with its tag; the schedule is here while it does not run.
    Collective(Option<Box<Running>>, crate::coll::Tag),
    /// One side of a partitioned operation.
    Partitioned(Partitioned),
}

/// Arguments of a persistent send.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// Buffer, count and datatype.
    pub buffer: Buffer,
    /// Rank of the receiver or `MPI_PROC_NULL`.
    pub dest: i32,
    /// Tag.
    pub tag: i32,
    /// Send mode.
    pub mode: SendMode,
    /// Whether the application gets a request, with which it may cancel the send.
    pub may_cancel: bool,
}

/// Arguments of a persistent receive.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Buffer, count and datatype.
    pub buffer: Buffer,
    /// Rank of the sender, a wildcard or `MPI_PROC_NULL`.
    pub source: i32,
    /// Tag or wildcard.
    pub tag: i32,
}

/// A buffer with its type, checked.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The address the application gave.
    pub addr: usize,
    /// Number of elements.
    pub count: u64,
    /// Their type.
    pub ty: Arc<Datatype>,
}

impl Buffer {
    /// The memory, which is one run of bytes.
    #[inline]
    pub fn span(&self) -> Span {
        debug_assert!(self.ty.is_contiguous());
        Span { addr: self.addr, len: (self.ty.size() * self.count) as usize }
    }
}

/// Send modes (MPI 5.0 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendMode {
    /// Standard and ready.
    Standard,
    /// Synchronous.
    Synchronous,
    /// Buffered.
    Buffered,
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// Whose error handler its failure concerns; null if none.
    pub comm: Handle,
    /// What is under way; `None` for a persistent request that is inactive.
    pub body: Option<Body>,
    /// What to start, and where, for a persistent request.
    pub recipe: Option<Box<(Recipe, Place)>>,
    /// One that all operations of a kind share which are done at once.
    pub shared: bool,
    /// It is that of a collective: these must not be cancelled, done or not (MPI 5.0 section 6.12).
    pub is_collective: bool,
    /// A persistent collective in which this rank moves nothing: it is over whenever it is started. Kept here since
    /// its schedule, which says so too, is seven loads away, each of which waits for the one before.
    pub is_of_nothing: bool,
}

impl Request {
    fn new(comm: Handle, body: Option<Body>) -> Request {
        let is_collective = matches!(body, Some(Body::Collective(_)));
        Request { comm, body, recipe: None, shared: false, is_collective, is_of_nothing: false }
    }
}

/// The requests of one rank.
#[derive(Debug, Default)]
pub struct Requests {
    slab: Slab<Request>,
    sent: Option<Handle>,
    collected: Option<Handle>,
}

impl Requests {
    /// The request of a handle.
    #[inline]
    pub fn get(&self, handle: Handle) -> Option<&Request> {
        self.slab.get(handle)
    }

    /// As [`Requests::get`], to change it.
    #[inline]
    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut Request> {
        self.slab.get_mut(handle)
    }

    /// Whether [`Requests::add`] cannot fail now.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.slab.has_room()
    }

    /// An error if [`Requests::add`] would fail: to be asked before an operation begins.
    #[inline]
    pub fn room(&self) -> Result {
        self.slab.room()
    }

    /// A request for an operation under way.
    #[inline]
    pub fn add(&mut self, comm: Handle, body: Body) -> Result<Handle> {
        self.slab.insert(Request::new(comm, Some(body)))
    }

    /// As [`Requests::add`] of a receive with a source of a predefined type.
    #[inline(always)]
    pub fn add_receive(&mut self, comm: Handle, op: OpId, source: i32) -> Result<Handle> {
        self.slab.insert_with(|| Request::new(comm, Some(Body::of_receive(op, source))))
    }

    /// An inactive persistent request.
    pub fn add_persistent(&mut self, comm: Handle, recipe: Recipe, place: Place) -> Result<Handle> {
        let is_collective = matches!(recipe, Recipe::Collective(..));
        let is_of_nothing =
            matches!(&recipe, Recipe::Collective(Some(idle), _) if idle.schedule.is_nothing());
        let recipe = Some(Box::new((recipe, place)));
        self.slab.insert(Request { recipe, is_collective, is_of_nothing, ..Request::new(comm, None) })
    }

    /// Whether it is the request that [`Requests::sent`] or [`Requests::collected`] gives.
    #[inline(always)]
    pub fn is_shared(&self, handle: Handle) -> bool {
        self.sent == Some(handle) || self.collected == Some(handle)
    }

    /// The request of a send that has left already: nothing has to be remembered about it, so all of them share one.
    #[inline]
    pub fn sent(&mut self) -> Result<Handle> {
        Self::one(&mut self.slab, &mut self.sent, false)
    }

    /// As [`Requests::sent`], of a collective that is done.
    #[inline]
    pub fn collected(&mut self) -> Result<Handle> {
        Self::one(&mut self.slab, &mut self.collected, true)
    }

    #[inline]
    fn one(slab: &mut Slab<Request>, known: &mut Option<Handle>, is_collective: bool) -> Result<Handle> {
        match *known {
            Some(handle) => Ok(handle),
            None => {
                let request = Request::new(crate::comm::COMM_NULL, Some(Body::Ended(Ended::WELL)));
                let handle = slab.insert(Request { shared: true, is_collective, ..request })?;
                *known = Some(handle);
                Ok(handle)
            }
        }
    }

    /// Forgets a request.
    #[inline]
    pub fn remove(&mut self, handle: Handle) -> Option<Request> {
        if self.is_shared(handle) {
            return None;
        }
        self.slab.remove(handle)
    }

    /// Forgets a request that is there.
    #[inline]
    pub fn forget(&mut self, handle: Handle) {
        self.slab.forget(handle);
    }

    /// All requests.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &Request)> {
        self.slab.iter()
    }

    /// The error of a handle that is no request.
    #[cold]
    pub fn refuse<T>(handle: Handle) -> Result<T> {
        fail(Class::REQUEST, unusable(handle, REQUEST_NULL, "MPI_REQUEST_NULL", "a request"))
    }
}

/// What a receive reports, from what the engine says; ranks become those of the communicator.
#[inline]
pub fn received(outcome: Outcome, origin: &Origin) -> Ended {
    let source = match origin {
        Origin::Rank(rank) => *rank,
        Origin::Any(group) => {
            group.rank_of(outcome.source as u32).map_or(crate::status::ANY_SOURCE, |rank| rank as i32)
        }
    };
    let mut status = Status::new(source, outcome.tag, outcome.len);
    if outcome.cancelled {
        status = Status::EMPTY;
        status.set_cancelled(true);
    }
    let error = outcome.failure.map(|failure| failed(*failure, source, outcome.tag, outcome.len));
    Ended { status, error }
}

/// The error of a failed message.
#[cold]
pub fn failed(failure: Failure, peer: i32, tag: i32, room: u64) -> Error {
    match failure {
        Failure::Truncated { message_len } => Error::new(
            Class::TRUNCATE,
            format!(
                "message of {message_len} bytes from rank {peer}, tag {tag}, does not fit the receive buffer of {room} bytes"
            ),
        ),
        Failure::Buffer { side, own } => {
            let (class, text) = bad_buffer(side, own);
            Error::new(class, format!("message with rank {peer}, tag {tag}: {text}"))
        }
        Failure::Device(cause) => {
            let cause = fault(cause);
            Error::new(cause.class, format!("message with rank {peer}, tag {tag}: {}", cause.text))
        }
    }
}

/// What is wrong with a buffer that a copy has found to be no memory. Only the rank that gave it has
/// given a wrong argument.
pub(crate) fn bad_buffer(side: Side, own: bool) -> (Class, String) {
    let (buffer, verb) = match side {
        Side::Send => ("send", "read"),
        Side::Receive => ("receive", "written"),
    };
    let (class, whose) =
        if own { (Class::BUFFER, "this rank's") } else { (Class::OTHER, "the other rank's") };
    (class, format!("{whose} {buffer} buffer is not memory that can be {verb}"))
}

/// Why a buffered send cannot be taken.
pub fn no_space(owner: BufferOwner, text: &str) -> Error {
    let whose = match owner {
        BufferOwner::Process => "the process",
        BufferOwner::Comm(_) => "the communicator",
        BufferOwner::Session(_) => "the session",
    };
    Error::new(
        Class::BUFFER,
        format!("buffer of {whose}: {text} (MPI_BUFFER_AUTOMATIC, {AUTOMATIC:#x}, leaves it to the library)"),
    )
}
