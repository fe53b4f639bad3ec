//! Operations under way and how they ended.
//!
//! The table is one of states, whatever these are: it asks them no more than a [`Standing`] answers.

use crate::message::matching::{Envelope, Want};
use fabric::{Fault, Rank, Span};
use wire::head::Offer;

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

impl Outcome {
    /// How a receive ends that nothing has met.
    pub(crate) fn of_nothing(want: &Want) -> Outcome {
        let (source, tag) = (want.source.unwrap_or(0), want.tag.unwrap_or(-1));
        Outcome { source, tag, len: 0, cancelled: false, failure: None }
    }

    /// How a receive into `buf` ends for a message of `message_len` bytes.
    pub(crate) fn of_receive(envelope: &Envelope, message_len: u64, buf: Span) -> Outcome {
        let failure = (message_len > buf.len as u64).then(|| Box::new(Failure::Truncated { message_len }));
        Outcome {
            source: envelope.source,
            tag: envelope.tag,
            len: message_len.min(buf.len as u64),
            cancelled: false,
            failure,
        }
    }
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

/// By what a receive has offered its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RtrBy {
    /// This share.
    Share(u32),
    /// Keys of registered memory.
    Keys,
}

/// A receive, from posting to matching.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub want: Want,
    pub buf: Span,
    /// Its RTR, if one is out.
    pub rtr: Option<RtrBy>,
    /// Whether it is so long that its sender may ask for an answer.
    pub long: bool,
    /// Whether the sender has been asked to give its RTR up.
    pub withdrawn: bool,
}

impl Receive {
    /// A receive that has offered nothing.
    #[inline(always)]
    pub fn new(want: Want, buf: Span) -> Receive {
        Receive { want, buf, rtr: None, long: false, withdrawn: false }
    }
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
    /// Flags of its RTS, should it get one: [`Offer::EAGER`], [`Offer::ALONE`], [`Offer::FRAMES`].
    pub flags: u32,
}

/// Where an operation stands, as far as the table of operations asks.
pub(crate) trait Standing: std::fmt::Debug {
    /// Whether this rank must look for the message to get on.
    fn needs_care(&self) -> bool;
    /// Whether it is a receive that no message has met.
    fn is_posted(&self) -> bool;
    /// Whether it may go on to that state.
    fn may_become(&self, next: &Self) -> bool;
    /// The state of an operation that has ended.
    fn done(outcome: Outcome) -> Self;
    /// Tag and length, if it has ended well.
    fn plain(&self) -> Option<(i32, u64)>;
}

/// An operation and since when it waits.
#[derive(Debug)]
pub(crate) struct Op<S> {
    pub state: S,
    pub since_ns: u64,
}

impl Sending {
    /// Whether this side copies, too, where both can.
    pub(crate) fn helps(&self) -> bool {
        self.flags & (Offer::ALONE | Offer::FRAMES) == 0
    }

    pub(crate) fn envelope(&self) -> Envelope {
        Envelope { source: self.to, context: self.context, tag: self.tag }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        Outcome { source: self.to, tag: self.tag, len: self.data.len as u64, cancelled: false, failure: None }
    }
}

const INDEX_BITS: u32 = 20;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// How many operations of one rank may be pending.
pub(crate) const OPS_MAX: usize = 1 << INDEX_BITS;

/// All operations of one rank.
pub(crate) struct Ops<S> {
    slots: Vec<(u32, Option<Op<S>>)>,
    free: Vec<u32>,
    /// How many need this rank's care.
    care: u32,
}

impl<S> Default for Ops<S> {
    fn default() -> Ops<S> {
        Ops { slots: Vec::new(), free: Vec::new(), care: 0 }
    }
}

impl<S: Standing> Ops<S> {
    /// A new operation; `None` if [`Ops::is_full`].
    #[inline(always)]
    pub fn insert(&mut self, state: S) -> Option<OpId> {
        self.insert_with(|| state)
    }

    /// The same of a state that is made where it is kept: one that is there before would be dropped if there were no place, so it lies in memory,
    /// and to copy what has just been written in smaller pieces the processor waits for these.
    #[inline(always)]
    pub fn insert_with(&mut self, make: impl FnOnce() -> S) -> Option<OpId> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow()?,
        };
        let slot = &mut self.slots[index as usize];
        // A free slot holds nothing; an assignment would look whether there is something to drop.
        std::mem::forget(slot.1.replace(Op { state: make(), since_ns: 0 }));
        self.care += slot.1.as_ref().is_some_and(|op| op.state.needs_care()) as u32;
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
    pub fn get(&self, id: OpId) -> Option<&Op<S>> {
        let (generation, op) = self.slots.get((id.0 & INDEX_MASK) as usize)?;
        if *generation == id.0 >> INDEX_BITS { op.as_ref() } else { None }
    }

    #[inline]
    pub fn get_mut(&mut self, id: OpId) -> Option<&mut Op<S>> {
        let (generation, op) = self.slots.get_mut((id.0 & INDEX_MASK) as usize)?;
        if *generation == id.0 >> INDEX_BITS { op.as_mut() } else { None }
    }

    /// The operation goes on to another state.
    #[inline(always)]
    pub fn set(&mut self, id: OpId, state: S) {
        self.replace(id, state);
    }

    /// The same; the state it leaves.
    #[inline(always)]
    pub fn replace(&mut self, id: OpId, state: S) -> S {
        let op = self.get_mut(id).expect("the operation is pending");
        debug_assert!(op.state.may_become(&state), "{:?} cannot become {state:?}", op.state);
        let (before, after) = (op.state.needs_care() as u32, state.needs_care() as u32);
        let left = std::mem::replace(&mut op.state, state);
        self.care = self.care + after - before;
        left
    }

    /// Whether some operation gets on only if this rank looks.
    pub fn need_care(&self) -> bool {
        self.care != 0
    }

    /// A posted receive has got its whole message, as the outcome says that is made where it is kept.
    #[inline(always)]
    pub fn received(&mut self, id: OpId, outcome: impl FnOnce() -> Outcome) {
        match self.get_mut(id).map(|op| &mut op.state) {
            // Neither the receive nor an outcome without a failure has anything to drop.
            Some(state) if state.is_posted() => {
                let cared = state.needs_care() as u32;
                std::mem::forget(std::mem::replace(state, S::done(outcome())));
                self.care -= cared;
            }
            other => panic!("a matched receive is posted, not {other:?}"),
        }
    }

    /// Tag and length of an operation that has ended well, which is forgotten with this call.
    #[inline(always)]
    pub fn take_plain(&mut self, id: OpId) -> Option<(i32, u64)> {
        let slot = self.slots.get_mut((id.0 & INDEX_MASK) as usize)?;
        let plain = slot.1.as_ref()?.state.plain()?;
        if slot.0 != id.0 >> INDEX_BITS {
            return None;
        }
        std::mem::forget(slot.1.take()); // nothing in it is to be dropped
        slot.0 = next_generation(slot.0);
        self.free.push(id.0 & INDEX_MASK);
        Some(plain)
    }

    #[inline]
    pub fn remove(&mut self, id: OpId) -> Option<Op<S>> {
        self.care -= self.get(id)?.state.needs_care() as u32;
        let index = id.0 & INDEX_MASK;
        let slot = &mut self.slots[index as usize];
        slot.0 = next_generation(slot.0);
        self.free.push(index);
        slot.1.take()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Op<S>> {
        self.slots.iter_mut().filter_map(|(_, op)| op.as_mut())
    }

    pub fn iter(&self) -> impl Iterator<Item = (OpId, &Op<S>)> {
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
