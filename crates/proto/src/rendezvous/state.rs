//! Where an operation stands, from the call to its end.

use crate::choice::way::{Protocol, Way};
use crate::memory::rcache::Held;
use crate::message::matching::Envelope;
use crate::message::op::{self, Op, OpId, Outcome, PendingOp, Receive, Sending, Side, Standing};
use crate::message::rtrs::Rtr;
use crate::rendezvous::draining::Ending;
use crate::rendezvous::movers::{Machine, Message, Mover};
use crate::rendezvous::phase::Phase;
use crate::rendezvous::posting::Posted;

/// Where an operation stands.
#[derive(Debug)]
pub(crate) enum State {
    /// In the queue of its peer, waiting for room.
    Queued(Sending, Step),
    /// Posted, not matched.
    Posted(Receive),
    /// A rendezvous whose RTS is to leave, or has left or come, or whose RTR is taken.
    Long(Box<Long>),
    /// An eager message has left; the adapter still reads the buffer.
    Gathered(Sending, Held),
    /// A receive of a message that is still being kept.
    Following(Box<Following>),
    /// Ended; the outcome has not been fetched.
    Done(Outcome),
}

/// A receive that waits until its message has been kept as a whole.
#[derive(Debug)]
pub(crate) struct Following {
    pub receive: Receive,
    pub envelope: Envelope,
    /// The receive into the memory it is kept in.
    pub keeping: OpId,
    pub bytes: Vec<u8>,
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
    /// Go where an RTR says: announce the match.
    Taken(Rtr),
    /// Begin a long message with these flags of its RTS.
    Long(Protocol, u16),
}

impl Standing for State {
    #[inline(always)]
    fn needs_care(&self) -> bool {
        match self {
            State::Queued(..) | State::Gathered(..) | State::Following(_) => true,
            State::Posted(receive) => receive.long,
            State::Long(long) => long.machine.needs_care(),
            State::Done(_) => false,
        }
    }

    #[inline(always)]
    fn is_posted(&self) -> bool {
        matches!(self, State::Posted(_))
    }

    #[inline]
    fn may_become(&self, next: &State) -> bool {
        self.phase().may_become(next.phase())
    }

    #[inline(always)]
    fn done(outcome: Outcome) -> State {
        State::Done(outcome)
    }

    #[inline(always)]
    fn plain(&self) -> Option<(i32, u64)> {
        match self {
            State::Done(Outcome { tag, len, cancelled: false, failure: None, .. }) => Some((*tag, *len)),
            _ => None,
        }
    }
}

impl State {
    /// How far the message has come.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self {
            State::Queued(..) => Phase::Queued,
            State::Posted(receive) if receive.withdrawn => Phase::Withdrawn,
            State::Posted(_) => Phase::Posted,
            State::Following(_) | State::Gathered(..) => Phase::Moving,
            State::Long(long) => long.phase(),
            State::Done(_) => Phase::Done,
        }
    }
}

/// How far a long message has come, and what is known only there.
#[derive(Debug)]
pub(crate) enum Course {
    /// The RTS waits for room.
    Queued,
    /// The RTS is out.
    Offered,
    /// Its receiver has been asked to forget the RTS.
    Withdrawn,
    /// Both sides have been found.
    Moving,
    /// It has failed.
    Draining(Ending),
}

/// A long message under way, one side of it.
#[derive(Debug)]
pub(crate) struct Long {
    pub side: Side,
    pub message: Message,
    pub context: u64,
    /// How the operation ends if all goes well.
    pub outcome: Outcome,
    pub machine: Machine,
    /// Flags of the RTS.
    pub flags: u16,
    /// When the RTS left, or met its receive, in device time.
    pub begun_ns: u64,
    /// For how long the receive had waited then.
    pub waited_ns: u64,
    /// How long this rank had been outside MPI before.
    pub away_ns: u64,
    /// Whether the operation is among those that are looked at.
    pub looking: bool,
    pub posted: Posted,
    /// Changed by [`Long::goes_on`] alone.
    pub course: Course,
}

impl Long {
    /// A message whose RTS is to leave, or whose two sides have met.
    pub fn new(
        course: Course,
        side: Side,
        message: Message,
        context: u64,
        outcome: Outcome,
        machine: Machine,
        begun_ns: u64,
    ) -> Long {
        let (waited_ns, away_ns, looking) = (0, 0, false);
        let (flags, posted) = (0, Posted::default());
        Long {
            side,
            message,
            context,
            outcome,
            machine,
            flags,
            begun_ns,
            waited_ns,
            away_ns,
            looking,
            posted,
            course,
        }
    }

    /// Whether it is a message that is coming in, and of which the sender is told how long it took.
    pub fn is_counted(&self) -> bool {
        self.side == Side::Receive && self.message.protocol.is_some()
    }

    /// How its bytes travel.
    pub fn way(&self) -> Way {
        self.machine.way(self.message.protocol)
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        match self.course {
            Course::Queued => Phase::Queued,
            Course::Offered => Phase::Offered,
            Course::Withdrawn => Phase::Withdrawn,
            Course::Moving => Phase::Moving,
            Course::Draining(_) => Phase::Draining,
        }
    }

    /// It goes on.
    pub fn goes_on(&mut self, next: Course) {
        let before = self.phase();
        self.course = next;
        assert!(before.may_become(self.phase()), "{before:?} cannot become {self:?}");
    }

    /// Whether the other side may say something of it in messages.
    pub fn speaks(&self) -> bool {
        self.message.protocol.is_some() && self.phase() != Phase::Queued
    }

    /// The other side has said something, so it has been found: by this operation there.
    pub fn is_met(&mut self, peer_op: u32) {
        self.message.peer_op = peer_op;
        self.goes_on(Course::Moving);
    }

    /// What is left to do of a message that has failed.
    pub fn ending(&mut self) -> Option<&mut Ending> {
        match &mut self.course {
            Course::Draining(ending) => Some(ending),
            _ => None,
        }
    }

    /// Whether it has failed.
    pub fn has_failed(&self) -> bool {
        self.phase() == Phase::Draining
    }

    /// Where the message goes or comes from.
    pub fn envelope(&self) -> Envelope {
        Envelope { source: self.message.peer, context: self.context, tag: self.outcome.tag }
    }

    pub fn pending(&self, id: OpId, since_ns: u64) -> PendingOp {
        PendingOp {
            id,
            side: self.side,
            peer: Some(self.message.peer),
            tag: Some(self.outcome.tag),
            context: self.context,
            len: self.message.local.len,
            matched: !matches!(self.phase(), Phase::Queued | Phase::Offered | Phase::Withdrawn),
            since_ns,
        }
    }
}

/// Memory of long messages that have ended, for those to come: windows of them come and go.
#[derive(Default)]
#[allow(clippy::vec_box)] // they are handed out as they are
pub(crate) struct Spare(Vec<Box<Long>>);

/// How many are kept.
const SPARE: usize = 128;

impl Spare {
    /// The message, in memory that one has left, or new.
    pub fn hold(&mut self, long: Long) -> Box<Long> {
        let Some(mut memory) = self.0.pop() else { return Box::new(long) };
        *memory = long;
        memory
    }

    /// The message in this memory is over.
    pub fn keep(&mut self, memory: Box<Long>) {
        if self.0.len() < SPARE {
            self.0.push(memory);
        }
    }
}

/// The operations of a rank.
pub(crate) type Ops = op::Ops<State>;

impl Op<State> {
    /// How far it has come, in steps of its own: what changes when it gets on.
    pub fn moved(&self) -> (u32, u64) {
        match &self.state {
            State::Queued(..) => (0, 0),
            State::Posted(_) => (1, 0),
            State::Long(long) if long.phase() == Phase::Offered => (2, 0),
            State::Long(long) => (3, long.machine.moved()),
            State::Gathered(..) => (4, 0),
            State::Following(_) => (5, 0),
            State::Done(_) => (6, 0),
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
            State::Queued(s, _) => send(s, false),
            State::Gathered(s, _) => send(s, true),
            State::Posted(r) => receive(r, false),
            State::Following(f) => receive(&f.receive, true),
            State::Long(long) => long.pending(id, self.since_ns),
            State::Done(_) => return None,
        })
    }
}

impl Ops {
    /// The RTR of a posted receive is void.
    pub fn without_rtr(&mut self, id: OpId) {
        if let Some(State::Posted(receive)) = self.get_mut(id).map(|op| &mut op.state) {
            receive.rtr = None;
        }
    }

    /// The receive that a message has met.
    pub fn posted(&self, id: OpId) -> Receive {
        match self.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) => *receive,
            other => panic!("a matched receive is posted, not {other:?}"),
        }
    }
}
