//! Rendezvous by frames: how the two sides come to it.
//!
//! [`super::movers::frames`] moves the bytes.

use super::Rendezvous;
use super::movers::{Happening, Machine, Message, frames};
use super::phase::Phase;
use crate::message::malformed;
use crate::message::op::{Op, OpId, Outcome, Sending, Side};
use crate::rendezvous::state::{Course, Long, State};
use fabric::{Device, Fault, Rank, Span};
use wire::Malformed;
use wire::head::{FrameType, Head};

/// A message that its receiver asks for in frames.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Where it goes.
    pub buf: Span,
    pub context: u64,
    /// How the receive ends if all goes well.
    pub outcome: Outcome,
    /// Its length at the sender.
    pub len: u64,
    /// Operation at the sender.
    pub op: u32,
}

impl Asked {
    /// A message that was to come another way.
    pub fn of(message: &Message, context: u64, outcome: Outcome) -> Asked {
        Asked { buf: message.local, context, outcome, len: message.len, op: message.peer_op }
    }
}

impl<D: Device> Rendezvous<'_, D> {
    pub(crate) fn ask_for_frames(&mut self, id: OpId, asked: Asked) {
        let Asked { buf, context, outcome, len, op } = asked;
        let head = Head::new(FrameType::Cts, op as i32, id.0 as u64).encode();
        self.control(outcome.source, head, &outcome.len.to_le_bytes());
        if outcome.len == 0 {
            return self.ops.set(id, State::Done(outcome));
        }
        let local = buf.part(0, outcome.len as usize);
        if !self.path(outcome.source).registration {
            self.crossing.leads.awaits(outcome.source, local.len);
        }
        let message = Message { protocol: None, peer: outcome.source, local, peer_op: op, len };
        let machine = Machine::FramesReceive(frames::Receiver::default());
        let long = Long::new(Course::Moving, Side::Receive, message, context, outcome, machine, 0);
        self.ops.set(id, State::Long(Box::new(long)));
    }

    /// CTS: the receiver wants frames.
    pub(crate) fn on_cts(&mut self, from: Rank, head: Head, data: Span) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        let refuse = |what: &str| Err(malformed(from, Malformed(format!("CTS {what}"))));
        let is_from =
            |op: &Op<State>| op.pending(id).is_some_and(|op| op.side == Side::Send && op.peer == Some(from));
        if data.len != 8 || !self.ops.get(id).is_some_and(is_from) {
            return refuse("that does not belong to a send");
        }
        let Some((s, is_active)) = self.goes_by_frames(id) else {
            return refuse("for a send that is not waiting for one");
        };
        let mut limit = [0u8; 8];
        self.dev.peek_bytes(data, &mut limit);
        let limit = (u64::from_le_bytes(limit) as usize).min(s.data.len);
        self.learner.takes_frames(id);
        let peer_op = head.context as u32;
        let message = Message { protocol: None, peer: from, local: s.data, peer_op, len: s.data.len as u64 };
        let machine = Machine::FramesSend(frames::Sender::new(limit, !self.path(from).registration));
        let long = Long::new(Course::Moving, Side::Send, message, s.context, s.outcome(), machine, 0);
        self.ops.set(id, State::Long(Box::new(Long { looking: true, ..long })));
        if !is_active {
            self.active.push(id);
        }
        Ok(())
    }

    /// A send whose receiver wants frames, if it may: and whether it is among the operations that are looked at.
    fn goes_by_frames(&mut self, id: OpId) -> Option<(Sending, bool)> {
        match &self.ops.get(id)?.state {
            State::Long(long) if long.phase() != Phase::Queued => {
                let (envelope, looking) = (long.envelope(), long.looking);
                self.rtrs.on_met(&envelope, id, None);
                self.long_sending(id).map(|s| (s, looking))
            }
            _ => None,
        }
    }

    /// A piece of a message has come in a frame.
    pub(crate) fn on_data(&mut self, from: Rank, head: Head, data: Span) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Long(long)) if long.message.peer == from && long.side == Side::Receive => {
                if long.has_failed() {
                    return Ok(());
                }
                self.crossing.leads.came(from, data.len);
                self.hear(from, id, Happening::Data(head.context, data))
            }
            _ => Err(malformed(from, Malformed("data for a receive that does not expect any".into()))),
        }
    }

    /// This side cannot register its memory, or neither can copy: the message comes as a whole in frames.
    #[cold]
    pub(crate) fn fall_back(&mut self, id: OpId) {
        let Some(State::Long(long)) = self.ops.get(id).map(|op| &op.state) else { return };
        let asked = Asked::of(&long.message, long.context, long.outcome.clone());
        if long.is_counted() {
            self.learner.gives_up();
        }
        self.ask_for_frames(id, asked);
    }
}
