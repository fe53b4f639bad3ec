//! Rendezvous: messages whose sender and receiver agree before the payload moves.
//!
//! The two agree through a share, a few words that both sides can change ([`shares`]), or by messages, where memory is
//! registered ([`drive`]). In either an early receiver may offer its buffer (RTR), and where neither works the
//! message goes by [`frames`]. From the RTS on each side is one machine ([`movers`]), whoever moves the bytes.
//!
//! A [`Rendezvous`] is what this part of the protocols needs of a rank, handed to it for the length of a call.

pub(crate) mod ahead;
pub(crate) mod cancel;
mod coming;
pub(crate) mod crossing;
mod draining;
mod drive;
mod frames;
pub(crate) mod lead;
pub(crate) mod learner;
pub(crate) mod movers;
pub(crate) mod phase;
pub(crate) mod posting;
mod recent;
pub(crate) mod rtr;
pub(crate) mod rtr_account;
mod rtr_registered;
mod rtr_shares;
mod selection;
pub(crate) mod shares;
mod sharing;
pub(crate) mod state;

use crate::choice::eager_limit::EagerLimit;
use crate::choice::facts::Path;
use crate::choice::way::Protocol;
use crate::event::Counters;
use crate::memory::rcache::Rcache;
use crate::memory::staging::Staging;
use crate::message::malformed;
use crate::message::matching::{Envelope, Matching};
use crate::message::op::{OpId, Sending, Side};
use crate::message::peers::Peers;
use ahead::Ahead;
use crossing::Crossing;
use fabric::{Device, Distance, Fault, Frame, Rank, Shares, Span};
use learner::Learner;
use movers::port::{Aside, Turn};
use movers::{Mover, both};
use posting::Backlog;
use rtr_account::RtrAccount;
use shares::read_offer;
use state::{Long, Ops, Spare, State};
use wire::Malformed;
use wire::head::{FrameType, Head};

/// What settings say about rendezvous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Whether what is measured changes what is done.
    pub adapt: bool,
    /// Whether an early receiver offers its buffer.
    pub rtr: bool,
    /// The protocol that all long messages are to take.
    pub force: Option<Protocol>,
}

/// A rank, as far as its rendezvous need it.
pub(crate) struct Rendezvous<'a, D: Device> {
    pub dev: &'a mut D,
    pub rules: Rules,
    pub ops: &'a mut Ops,
    pub matching: &'a mut Matching,
    pub peers: &'a mut Peers,
    pub counters: &'a mut Counters,
    pub rcache: &'a mut Rcache,
    pub staging: &'a mut Staging,
    /// By distance.
    pub eager_limits: &'a mut [EagerLimit; Distance::ALL.len()],
    pub learner: &'a mut Learner,
    /// Memory for long messages.
    pub longs: &'a mut Spare,
    /// Operations that progress by looking: offered, moving, streaming.
    pub active: &'a mut Vec<OpId>,
    /// What is copied behind sends.
    pub crossing: &'a mut Crossing,
    /// What is copied by one call.
    pub ahead: &'a mut Ahead,
    /// RTRs over registered memory.
    pub rtrs: &'a mut RtrAccount,
    /// Transfers that wait for room in the queue of their adapter.
    pub backlog: &'a mut Backlog,
    /// The look beside the application that this is; `None` inside MPI.
    pub aside: &'a mut Option<Aside>,
    /// Whose turn it is to copy, in a look around.
    pub turn: Turn,
}

impl<D: Device> Rendezvous<'_, D> {
    /// Handles a frame that is neither an eager message nor an RTS with a share, which are matched first.
    pub(crate) fn handle(&mut self, from: Rank, head: Head, frame: Frame) -> Result<(), Fault> {
        let (data, envelope) = (frame.data, Envelope { source: from, context: head.context, tag: head.tag });
        match head.kind {
            FrameType::Eager | FrameType::Rts | FrameType::Epoch => {
                Err(malformed(from, Malformed("no part of a rendezvous".into())))
            }
            FrameType::Cts => self.on_cts(from, head, data),
            FrameType::Data => self.on_data(from, head, data),
            FrameType::LongRts => self.on_long_rts(from, envelope, data),
            FrameType::Ack | FrameType::Ready | FrameType::Fin => self.on_long(from, head, frame),
            FrameType::RtsCancel => self.on_rts_cancel(envelope, data),
            FrameType::RtsGone | FrameType::RtrGone => {
                self.on_gone(from, head.kind, OpId(head.tag as u32));
                Ok(())
            }
            _ => self.handle_rtr(envelope, head.kind, data),
        }
    }

    /// An RTR, or what it has brought about.
    fn handle_rtr(&mut self, envelope: Envelope, kind: FrameType, data: Span) -> Result<(), Fault> {
        match kind {
            FrameType::Rtr => {
                let offer = read_offer(self.dev, envelope.source, data)?;
                self.on_rtr(&envelope, offer);
                Ok(())
            }
            FrameType::RtrAck => self.on_rtr_ack(envelope, data),
            FrameType::LongRtr | FrameType::RtrCancel => self.on_long_rtr(envelope, kind, data),
            _ => Err(malformed(envelope.source, Malformed(format!("{kind:?} is no RTR")))),
        }
    }

    /// The protocol for a message that is too long for eager; `None` if there is no choice but what
    /// needs no registration.
    pub(crate) fn long_protocol(&mut self, s: &Sending) -> Option<Protocol> {
        let wanted = self.rules.force.or(self.path(s.to).registration.then_some(Protocol::Rget))?;
        (s.to != self.dev.me() && s.data.len > 0 && self.can_transfer(s.to)).then_some(wanted)
    }

    /// Whether posted transfers can reach the memory of a peer.
    pub(crate) fn can_transfer(&mut self, peer: Rank) -> bool {
        self.path(peer).registration || self.copies(peer)
    }

    /// Whether this rank can copy from and to the memory of a peer.
    pub(crate) fn copies(&mut self, peer: Rank) -> bool {
        self.path(peer).reach && self.dev.reach(peer)
    }

    /// What is known of the way to a peer.
    pub(crate) fn path(&self, peer: Rank) -> &Path {
        self.learner.facts.path(self.dev.distance(peer))
    }

    /// What goes eagerly to a peer.
    pub(crate) fn eager_limit(&mut self, peer: Rank) -> &mut EagerLimit {
        &mut self.eager_limits[self.dev.distance(peer) as usize]
    }

    /// Whether early receivers from there send RTRs over registered memory: from anywhere if no source is given.
    pub(crate) fn speculates(&self, source: Option<Rank>) -> bool {
        let registers = || match source {
            Some(source) => self.path(source).registration,
            None => self.learner.facts.paths.iter().any(|path| path.registration),
        };
        self.rules.force == Some(Protocol::Speculative)
            || self.rules.force.is_none() && self.rules.rtr && registers()
    }

    /// Queues a control frame that must not be lost.
    pub(crate) fn control(&mut self, to: Rank, head: [u64; 2], body: &[u8]) {
        self.peers.control(self.dev, to, head, body);
    }

    /// Advances what progresses by looking, oldest first. Pieces of this rank's own receives come
    /// before those of its sends: then each side writes its own memory while both have work, and
    /// helps the other when it has none.
    pub(crate) fn pump(&mut self) -> bool {
        if self.crossing.is_open() && self.aside.is_none() {
            self.crossing.ends();
        }
        match self.only_offers() {
            true => self.take_answers(),
            false => self.pump_all(Side::Receive) || self.pump_all(Side::Send),
        }
    }

    /// Whether all that progresses by looking are offers, or over: what a wait finds most of the time. Where there is more, sends end behind the copies
    /// of receives, for these are claimed whole for as long as this rank sends.
    fn only_offers(&self) -> bool {
        self.active.iter().all(|id| match self.ops.get(*id).map(|op| &op.state) {
            Some(State::Long(long)) => !long.has_failed() && long.machine.awaits().is_some(),
            _ => self.is_over(*id),
        })
    }

    /// Looks at offers alone: whether any was answered. Those that were copied as a whole end.
    fn take_answers(&mut self) -> bool {
        let (mut kept, mut moved) = (0, false);
        self.turn = Turn { copies: Side::Send, alone: self.aside.is_some(), aside: *self.aside };
        for at in 0..self.active.len() {
            let id = self.active[at];
            let Some(State::Long(long)) = self.ops.get(id).map(|op| &op.state) else { continue };
            let is_kept = match long.machine.awaits() {
                _ if self.is_unanswered(long) => true,
                Some((share, _)) if both::leaves_pulled(self.dev.opened_shares(), share) => {
                    self.end_well(id, None);
                    moved = true;
                    false
                }
                // What waits for room may find some behind each copy.
                _ if moved && !self.peers.backlog.is_empty() => true,
                _ => {
                    let (has_moved, ended) = self.look_at(id);
                    moved |= has_moved | ended;
                    !ended
                }
            };
            if is_kept {
                self.active[kept] = id;
                kept += 1;
            }
        }
        self.active.truncate(kept);
        moved
    }

    /// Whether a message has told in a share where it lies, and its receiver nothing yet.
    fn is_unanswered(&self, long: &Long) -> bool {
        let answer = long.machine.awaits().map(|(share, word)| self.dev.opened_shares().load(share, word));
        answer == Some(0)
    }

    /// Looks at all active operations, and copies pieces of those of one side.
    fn pump_all(&mut self, copies: Side) -> bool {
        let mut moved = false;
        let alone = self.aside.is_some() || copies == Side::Receive && self.sends_long();
        self.turn = Turn { copies, alone, aside: *self.aside };
        let mut kept = 0;
        for at in 0..self.active.len() {
            let id = self.active[at];
            // What waits for room may find some behind each copy.
            let waits = moved && !self.peers.backlog.is_empty();
            let (advanced, ended) = if waits { (false, false) } else { self.look_at(id) };
            moved |= advanced | ended;
            if !ended {
                self.active[kept] = id;
                kept += 1;
            }
        }
        self.active.truncate(kept);
        moved
    }

    /// Copies what was left for a message that has left, if it is still to be copied.
    pub(crate) fn copy_left(&mut self, id: OpId) {
        self.turn = Turn { copies: Side::Receive, alone: true, aside: *self.aside };
        let (_, needs_no_more) = self.look_at(id);
        // One that is over by that goes with the next look around.
        if needs_no_more
            && !self.is_over(id)
            && let Some(at) = self.active.iter().position(|active| *active == id)
        {
            self.active.remove(at);
        }
    }

    /// Whether an operation has ended.
    fn is_over(&self, id: OpId) -> bool {
        self.ops.get(id).is_none_or(|op| matches!(op.state, State::Done(_)))
    }

    /// Whether a long send of this rank is under way by a share. Then its receiver, which takes its own
    /// receives first too, is not expected to help with ours.
    fn sends_long(&self) -> bool {
        self.active.iter().any(|id| match self.ops.get(*id).map(|op| &op.state) {
            Some(State::Long(long)) => long.side == Side::Send && long.machine.takes_turns(),
            _ => false,
        })
    }
}
