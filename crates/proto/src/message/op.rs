//! Operations under way and how they ended.

use crate::memory::rcache::Held;
use crate::message::matching::Want;
use crate::rendezvous::movers::both::Transfer;
use crate::rendezvous::movers::{Long, Protocol};
use fabric::{Device, Fault, Rank, ShareWord, Span};
use wire::head::Offer;
use wire::long::LongRts;

/// Names an operation; carries a generation, so that a late message for one that has ended is
/// recognised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct OpId(pub u32);

/// Why an operation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The message was longer than the buffer; the buffer holds its beginning.
    Truncated {
        /// Length of the message in bytes.
        message_len: u64,
    },
    /// A buffer is not memory that may be read or written.
    Buffer {
        /// Which of the two.
        side: Side,
        /// It is this rank's.
        own: bool,
    },
    /// Copying failed: the cause as the device gave it.
    Device(Fault),
}

impl From<Fault> for Box<Failure> {
    #[cold]
    fn from(fault: Fault) -> Box<Failure> {
        Box::new(Failure::Device(fault))
    }
}

/// How an operation ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Rank (in the job) the message came from or went to.
    pub source: Rank,
    /// Tag of the message.
    pub tag: i32,
    /// Bytes received or sent.
    pub len: u64,
    /// Set if it was cancelled before it was matched.
    pub cancelled: bool,
    /// Set if it failed.
    pub failure: Option<Box<Failure>>,
}

/// Which side of a message an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Sends.
    Send,
    /// Receives.
    Receive,
}

/// What a report says of an operation that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingOp {
    /// Which operation it is.
    pub id: OpId,
    /// Send or receive.
    pub side: Side,
    /// The partner; `None` for any source.
    pub peer: Option<Rank>,
    /// The tag; `None` for any tag.
    pub tag: Option<i32>,
    /// The context.
    pub context: u64,
    /// Length of buffer or message in bytes.
    pub len: usize,
    /// Whether the partner has been found and bytes are moving.
    pub matched: bool,
    /// When a wait first found nothing to do, in device time.
    pub since_ns: u64,
}

/// A receive, from posting to matching.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub want: Want,
    pub buf: Span,
    /// The share of an RTR that is out.
    pub rtr: Option<u32>,
    /// Whether it is so long that its sender may ask for an answer.
    pub long: bool,
}

/// A send, from the call to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub to: Rank,
    pub context: u64,
    pub tag: i32,
    pub data: Span,
    /// It has consumed the offer of a receive, which waits for it: neither can be cancelled.
    pub met: bool,
}

/// Where an operation stands.
#[derive(Debug)]
pub(crate) enum State {
    /// In the queue of its peer, waiting for room.
    Queued(Sending, Step),
    /// RTS is out.
    Offered(Sending, Rts),
    /// CTS has come: frames flow.
    Streaming(Sending, Stream),
    /// Posted, not matched.
    Posted(Receive),
    /// Frames are coming in.
    Filling(Box<Filling>),
    /// Registered memory moves, or is about to.
    Long(Box<Long>),
    /// An eager message has left; the adapter still reads the buffer.
    Gathered(Sending, Held),
    /// Both sides copy.
    Moving(Box<Transfer>),
    /// Ended; the outcome has not been fetched.
    Done(Outcome),
}

/// A message that comes in frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub receive: Receive,
    pub from: Rank,
    pub tag: i32,
    pub message_len: u64,
    pub filled: u64,
}

/// What a queued send is about to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Send an eager frame.
    Eager,
    /// The same from the buffer itself, which is registered.
    ZeroCopy(Held),
    /// Send RTS.
    Rts,
    /// Take an RTR: announce the match.
    Matched(Offer),
    /// Begin a long message with these flags of its RTS.
    Long(Protocol, u16),
    /// Take an RTR for registered memory.
    Write(LongRts),
}

/// An RTS that is out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rts {
    /// The share that says whether it may be matched; `None` when all were in use.
    pub share: Option<u32>,
    /// Whether its receiver can copy. If not it asks for frames.
    pub direct: bool,
}

/// Progress of a stream of frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub receiver_op: u32,
    pub limit: usize,
    pub sent: usize,
}

/// An operation and since when it waits.
#[derive(Debug)]
pub(crate) struct Op {
    pub state: State,
    pub since_ns: u64,
}

impl State {
    /// Whether this rank must look for the message to get on. What is offered by remote access, or
    /// moves by it and is the peer's, the peer brings to its end alone.
    #[inline]
    fn needs_care(&self) -> bool {
        match self {
            State::Queued(..)
            | State::Streaming(..)
            | State::Filling(_)
            | State::Gathered(..)
            | State::Long(_) => true,
            State::Posted(receive) => receive.long,
            State::Offered(_, rts) => !rts.direct,
            State::Moving(transfer) => transfer.owned,
            State::Done(_) => false,
        }
    }
}

const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// How many operations of one rank may be pending.
pub(crate) const OPS_MAX: usize = 1 << INDEX_BITS;

/// All operations of one rank.
#[derive(Default)]
pub(crate) struct Ops {
    slots: Vec<(u32, Option<Op>)>,
    free: Vec<u32>,
    /// How many need this rank's care.
    care: u32,
}

impl Ops {
    /// A new operation; `None` if [`Ops::is_full`].
    #[inline(always)]
    pub fn insert(&mut self, state: State) -> Option<OpId> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow()?,
        };
        self.care += state.needs_care() as u32;
        let slot = &mut self.slots[index as usize];
        // A free slot holds nothing; an assignment would look whether there is something to drop.
        std::mem::forget(slot.1.replace(Op { state, since_ns: 0 }));
        Some(OpId(slot.0 << INDEX_BITS | index))
    }

    #[cold]
    fn grow(&mut self) -> Option<u32> {
        if self.slots.len() > INDEX_MASK as usize {
            return None;
        }
        self.slots.push((1, None));
        Some(self.slots.len() as u32 - 1)
    }

    /// Whether all operations there can be are pending.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.slots.len() > INDEX_MASK as usize
    }

    #[inline]
    pub fn get(&self, id: OpId) -> Option<&Op> {
        let (generation, op) = self.slots.get((id.0 & INDEX_MASK) as usize)?;
        if *generation == id.0 >> INDEX_BITS { op.as_ref() } else { None }
    }

    #[inline]
    pub fn get_mut(&mut self, id: OpId) -> Option<&mut Op> {
        let (generation, op) = self.slots.get_mut((id.0 & INDEX_MASK) as usize)?;
        if *generation == id.0 >> INDEX_BITS { op.as_mut() } else { None }
    }

    #[inline]
    pub fn set(&mut self, id: OpId, state: State) {
        let op = self.get_mut(id).expect("the operation is pending");
        let (before, after) = (op.state.needs_care() as u32, state.needs_care() as u32);
        op.state = state;
        self.care = self.care + after - before;
    }

    /// Whether some operation gets on only if this rank looks.
    pub fn need_care(&self) -> bool {
        self.care != 0
    }

    /// A posted receive has got its whole message.
    #[inline(always)]
    pub fn received(&mut self, id: OpId, outcome: Outcome) {
        match self.get_mut(id).map(|op| &mut op.state) {
            // Neither the receive nor an outcome without a failure has anything to drop.
            Some(state @ State::Posted(_)) => {
                let cared = state.needs_care() as u32;
                std::mem::forget(std::mem::replace(state, State::Done(outcome)));
                self.care -= cared;
            }
            other => panic!("a matched receive is posted, not {other:?}"),
        }
    }

    /// Tag and length of an operation that has ended well, which is forgotten with this call.
    #[inline(always)]
    pub fn take_plain(&mut self, id: OpId) -> Option<(i32, u64)> {
        let slot = self.slots.get_mut((id.0 & INDEX_MASK) as usize)?;
        match &slot.1 {
            Some(Op {
                state: State::Done(Outcome { tag, len, cancelled: false, failure: None, .. }),
                ..
            }) if slot.0 == id.0 >> INDEX_BITS => {
                let plain = (*tag, *len);
                std::mem::forget(slot.1.take()); // nothing in it is to be dropped
                slot.0 = next_generation(slot.0);
                self.free.push(id.0 & INDEX_MASK);
                Some(plain)
            }
            _ => None,
        }
    }

    #[inline]
    pub fn remove(&mut self, id: OpId) -> Option<Op> {
        self.care -= self.get(id)?.state.needs_care() as u32;
        let index = id.0 & INDEX_MASK;
        let slot = &mut self.slots[index as usize];
        slot.0 = next_generation(slot.0);
        self.free.push(index);
        slot.1.take()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Op> {
        self.slots.iter_mut().filter_map(|(_, op)| op.as_mut())
    }

    pub fn iter(&self) -> impl Iterator<Item = (OpId, &Op)> {
        let id = |index: usize, generation: u32| OpId(generation << INDEX_BITS | index as u32);
        self.slots
            .iter()
            .enumerate()
            .filter_map(move |(i, (generation, op))| Some((id(i, *generation), op.as_ref()?)))
    }
}

#[inline(always)]
fn next_generation(generation: u32) -> u32 {
    if generation + 1 == 1 << (32 - INDEX_BITS) { 1 } else { generation + 1 }
}

impl Op {
    /// How far it has come, in steps of its own: what changes when it gets on.
    pub fn moved(&self, dev: &impl Device) -> (u32, u64) {
        match &self.state {
            State::Queued(..) => (0, 0),
            State::Posted(_) => (1, 0),
            State::Offered(..) => (2, 0),
            State::Streaming(_, stream) => (3, stream.sent as u64),
            State::Filling(filling) => (4, filling.filled),
            State::Moving(transfer) => (5, dev.share_load(transfer.share, ShareWord::Done)),
            State::Long(_) => (6, 0),
            State::Gathered(..) => (7, 0),
            State::Done(_) => (8, 0),
        }
    }

    /// What a report says of it; `None` once it has ended.
    pub fn pending(&self, id: OpId) -> Option<PendingOp> {
        let send = |s: &Sending, matched| PendingOp {
            id,
            side: Side::Send,
            peer: Some(s.to),
            tag: Some(s.tag),
            context: s.context,
            len: s.data.len,
            matched,
            since_ns: self.since_ns,
        };
        let receive = |r: &Receive, matched| PendingOp {
            id,
            side: Side::Receive,
            peer: r.want.source,
            tag: r.want.tag,
            context: r.want.context,
            len: r.buf.len,
            matched,
            since_ns: self.since_ns,
        };
        Some(match &self.state {
            State::Queued(s, _) | State::Offered(s, _) => send(s, false),
            State::Streaming(s, _) | State::Gathered(s, _) => send(s, true),
            State::Posted(r) => receive(r, false),
            State::Filling(f) => receive(&f.receive, true),
            State::Moving(t) => t.pending(id, self.since_ns),
            State::Long(long) => long.pending(id, self.since_ns),
            State::Done(_) => return None,
        })
    }
}
