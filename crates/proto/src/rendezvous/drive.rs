//! Long messages over registered memory: starts their machines, tells them what happens and does
//! what their steps ask for.

use super::movers::{FAILED, Happening, Machine, Message, Mover, Step};
use super::posting::{Posted, RankPort};
use crate::choice::way::{Protocol, Way};
use crate::event::{Event, Notice};
use crate::message::malformed;
use crate::message::matching::{Body, Envelope};
use crate::message::op::{Failure, OpId, Outcome, Sending, Side};
use crate::message::work::Work;
use crate::rendezvous::Rendezvous;
use crate::rendezvous::rtr_registered::is_rts_ack;
use crate::rendezvous::state::{Course, Long, State};
use fabric::{Device, Fault, Frame, Rank, Span};
use wire::Malformed;
use wire::head::{FrameType, Head};
use wire::long::{Fragment, LongRts};

/// What a port is about.
struct About {
    peer: Rank,
    op: u32,
    peer_op: u32,
    envelope: (i32, u64),
    flags: u16,
    local: Span,
}

/// The port to a peer, from what a rank lends to its rendezvous: without its operations, of which one is at work.
macro_rules! port {
    ($rank:expr, $posted:expr, $about:expr) => {
        RankPort {
            dev: $rank.dev,
            cache: $rank.rcache,
            staging: $rank.staging,
            peers: $rank.peers,
            counters: $rank.counters,
            learner: $rank.learner,
            backlog: $rank.backlog,
            ahead: $rank.ahead,
            leads: &mut $rank.crossing.leads,
            eager_limits: $rank.eager_limits,
            aside: $rank.aside,
            turn: $rank.turn,
            posted: $posted,
            fault: None,
            peer: $about.peer,
            op: $about.op,
            peer_op: $about.peer_op,
            envelope: $about.envelope,
            flags: $about.flags,
            local: $about.local,
        }
    };
}

impl<D: Device> Rendezvous<'_, D> {
    /// Makes a queued send a long message and lets its RTS leave; false if there is no room.
    pub(crate) fn leave_long(&mut self, id: OpId, s: Sending, protocol: Protocol, flags: u16) -> bool {
        let message = Message {
            protocol: Some(protocol),
            peer: s.to,
            local: s.data,
            peer_op: 0,
            len: s.data.len as u64,
        };
        let (machine, begun_ns) = (Machine::new(protocol, Side::Send), self.dev.now_ns());
        let queued = Course::Queued;
        let long = Long {
            flags,
            ..Long::new(queued, Side::Send, message, s.context, s.outcome(), machine, begun_ns)
        };
        self.learner.begins(id, long.begun_ns);
        self.ops.set(id, State::Long(Box::new(long)));
        self.start_long(id)
    }

    /// Lets the RTS of a long message leave; false if there is no room.
    pub(crate) fn start_long(&mut self, id: OpId) -> bool {
        match self.happen(id, Happening::Start) {
            Step::NoRoom => false,
            Step::Frames => {
                let Some(s) = self.long_sending(id) else { return true };
                self.rtrs.other_left(&s.envelope(), Some(id));
                self.ops.set(id, State::Queued(s, crate::rendezvous::state::Step::Rts));
                self.leave_rts(id, s)
            }
            step => {
                self.learner.leaves(id, self.dev.now_ns());
                self.counters.count(Event::RtsSent);
                if let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) {
                    long.goes_on(Course::Offered);
                    self.counters
                        .happened(Notice::RendezvousBegun, [long.message.peer as u64, long.message.len, 1]);
                }
                self.conclude(id, step);
                true
            }
        }
    }

    /// LongRts: match it, or keep it for its receive.
    pub(crate) fn on_long_rts(&mut self, from: Rank, envelope: Envelope, data: Span) -> Result<(), Fault> {
        let mut body = [0u8; LongRts::LEN];
        if data.len < body.len() {
            return Err(malformed(from, Malformed(format!("a long RTS of {} bytes", data.len))));
        }
        self.dev.peek_bytes(data.part(0, LongRts::LEN), &mut body);
        let rts = LongRts::decode(&body).map_err(|e| malformed(from, e))?;
        let along = data.part(LongRts::LEN, data.len);
        if Protocol::of(rts.protocol).is_none() || along.len as u64 > rts.len {
            let what = format!("a long RTS of protocol {} with {} bytes along", rts.protocol, along.len);
            return Err(malformed(from, Malformed(what)));
        }
        self.peers.hear(from, 1);
        self.learner.reported(rts.report);
        self.heed(&envelope, rts.flags);
        match self.matching.take_posted(&envelope) {
            Some(op) => {
                let known = [from as u64, envelope.tag as u32 as u64, rts.len, 0];
                self.counters.happened(Notice::Matched, known);
                self.begin_long(op, envelope, rts, along)
            }
            None => {
                self.counters.count(Event::Unexpected);
                let mut bytes = self.matching.memory.take(along.len);
                self.dev.copy(bytes.as_mut_ptr() as usize, along.addr, along.len);
                self.matching.keep(envelope, Body::Long(rts, bytes));
            }
        }
        Ok(())
    }

    /// A long message has met its receive.
    pub(crate) fn begin_long(&mut self, id: OpId, envelope: Envelope, rts: LongRts, along: Span) {
        let receive = self.ops.posted(id);
        let begun_ns = self.dev.now_ns();
        let (waited_ns, inside_ns, answers) = self.meet(id, &envelope, rts.len);
        let protocol = Protocol::of(rts.protocol).expect("checked when it arrived");
        let ends = Outcome::of_receive(&envelope, rts.len, receive.buf);
        let local = receive.buf.part(0, ends.len as usize);
        let along = along.part(0, local.len);
        self.dev.copy(local.addr, along.addr, along.len);
        self.counters.happened(Notice::RendezvousBegun, [envelope.source as u64, rts.len, 0]);
        let message =
            Message { protocol: Some(protocol), peer: envelope.source, local, peer_op: rts.op, len: rts.len };
        let machine = Machine::new(protocol, Side::Receive);
        let long = Long {
            flags: rts.flags,
            waited_ns: inside_ns,
            away_ns: self.learner.receives(begun_ns),
            ..Long::new(Course::Moving, Side::Receive, message, envelope.context, ends, machine, begun_ns)
        };
        self.ops.set(id, State::Long(Box::new(long)));
        if !self.can_transfer(envelope.source) {
            return self.fall_back(id);
        }
        let step = self.happen(id, Happening::Matched(rts, along.len as u64));
        if answers {
            self.answer_rts(id, envelope.source, rts, waited_ns, begun_ns);
        }
        match step {
            Step::Frames => self.fall_back(id),
            step => self.conclude(id, step),
        }
    }

    /// Ack, Ready or Fin.
    pub(crate) fn on_long(&mut self, from: Rank, head: Head, frame: Frame) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        let mut body = [0u8; Fragment::LEN];
        if frame.data.len != body.len() {
            return Err(malformed(from, Malformed(format!("a fragment of {} bytes", frame.data.len))));
        }
        self.dev.peek_bytes(frame.data, &mut body);
        let fragment = Fragment::decode(&body).map_err(|e| malformed(from, e))?;
        if head.kind == FrameType::Fin && fragment.flags & FAILED != 0 {
            return self.on_failed(from, head, &fragment);
        }
        if !self.is_for_machine(from, id, head, &fragment)? {
            return Ok(());
        }
        let what = match head.kind {
            FrameType::Ack => Happening::Ack(fragment),
            FrameType::Ready => Happening::Ready(fragment),
            _ => Happening::Fin(fragment),
        };
        self.hear(from, id, what)
    }

    /// Whether what the other side says is for the machine of an operation, and not for this rank alone or for nobody
    /// any more.
    fn is_for_machine(
        &mut self,
        from: Rank,
        id: OpId,
        head: Head,
        fragment: &Fragment,
    ) -> Result<bool, Fault> {
        match self.ops.get_mut(id).map(|op| &mut op.state) {
            // What the other side said before it knew, or will say until it does.
            Some(State::Long(long)) if long.message.peer == from && long.has_failed() => Ok(false),
            Some(State::Long(long)) if long.message.peer == from && long.speaks() => {
                long.is_met(head.context as u32);
                if long.side == Side::Receive {
                    return Ok(true);
                }
                let (to, begun_ns) = (long.envelope(), long.begun_ns);
                Ok(!self.met(id, &to, begun_ns, head.kind, *fragment))
            }
            // The message had left as a whole when its receiver was done with what comes first.
            _ if is_rts_ack(head.kind, fragment) => {
                self.hear_ack(id, fragment);
                Ok(false)
            }
            _ => {
                let what = format!("{:?} for an operation that does not expect any", head.kind);
                Err(malformed(from, Malformed(what)))
            }
        }
    }

    /// The other side has said something.
    pub(super) fn hear(&mut self, from: Rank, id: OpId, what: Happening) -> Result<(), Fault> {
        let step = self.happen(id, what.clone());
        if step == Step::Illegal {
            let what = format!("at the wrong time, or outside the message: {what:?}");
            return Err(malformed(from, Malformed(what)));
        }
        self.conclude(id, step);
        Ok(())
    }

    /// Hands the adapters what waited for room.
    #[cold]
    pub(crate) fn post_what_waited(&mut self) -> bool {
        let (learner, mut moved, mut lost) = (&mut *self.learner, false, Vec::new());
        self.backlog.go_on(self.dev, |dev, post, result| {
            moved = true;
            match result {
                Ok(()) => learner.is_posted(dev, &post),
                Err(fault) => lost.push((post, fault)),
            }
        });
        lost.into_iter().for_each(|(post, fault)| self.on_completed(post.op, post.number, Err(fault)));
        moved
    }

    /// An adapter has ended a transfer.
    pub(crate) fn completed(&mut self, id: OpId, number: u32, result: Result<(), Fault>) {
        self.learner.completed(Work::Transfer(id, number), self.dev.now_ns(), result.is_ok());
        self.on_completed(id, number, result);
    }

    fn on_completed(&mut self, id: OpId, number: u32, result: Result<(), Fault>) {
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else {
            panic!("a completion for an operation that has ended");
        };
        long.posted.open -= 1;
        if long.has_failed() {
            return self.end_if_drained(id);
        }
        match result {
            Ok(()) => {
                if self.backlog.has_more(id, number) {
                    return;
                }
                let step = self.happen(id, Happening::Completed(number));
                assert_ne!(step, Step::Illegal, "a completion that its machine did not ask for");
                self.conclude(id, step);
            }
            Err(fault) => self.lose_long(id, fault),
        }
    }

    /// A look at what progresses by looking: (it moved, it needs no more looks).
    pub(super) fn look_at(&mut self, id: OpId) -> (bool, bool) {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Long(long)) if !long.has_failed() => {
                if long.machine.takes_turns() && long.side != self.turn.copies {
                    return (false, false);
                }
                if self.is_unanswered(long) {
                    return (false, false);
                }
            }
            Some(State::Following(_)) => return self.follow(id),
            _ => return (false, true),
        }
        match self.happen(id, Happening::Look) {
            Step::Looking => (false, false),
            Step::Moved => (true, false),
            Step::Done => {
                self.end_well(id, None);
                (true, true)
            }
            step => (true, self.conclude_look(id, step)),
        }
    }

    /// What a look has changed: whether it needs no more of them.
    fn conclude_look(&mut self, id: OpId, step: Step) -> bool {
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return true };
        long.looking = step == Step::Met;
        let ends = !long.looking;
        match step {
            Step::Met => long.goes_on(Course::Moving),
            Step::Frames => self.fall_back(id),
            step => self.conclude(id, step),
        }
        ends
    }

    /// Tells a machine what happens.
    pub(crate) fn happen(&mut self, id: OpId, what: Happening) -> Step {
        self.with_machine(id, |machine, message, port| {
            let step = machine.on(what, message, port);
            match port.fault.take() {
                Some(fault) => Step::Failed(fault),
                None => step,
            }
        })
        .unwrap_or(Step::Illegal)
    }

    /// The port to a peer outside any operation: for registrations.
    pub(crate) fn with_port<R>(&mut self, peer: Rank, f: impl FnOnce(&mut RankPort<D>) -> R) -> R {
        let mut posted = Posted::default();
        let about = About { peer, op: 0, peer_op: 0, envelope: (0, 0), flags: 0, local: Span::EMPTY };
        f(&mut port!(self, &mut posted, about))
    }

    /// The port of an operation that agrees by a share, before it is kept as a long one.
    pub(super) fn with_port_of<R>(
        &mut self,
        id: OpId,
        envelope: &Envelope,
        f: impl FnOnce(&mut RankPort<D>) -> R,
    ) -> R {
        let mut posted = Posted::default();
        let Envelope { source: peer, context, tag } = *envelope;
        let about =
            About { peer, op: id.0, peer_op: 0, envelope: (tag, context), flags: 0, local: Span::EMPTY };
        f(&mut port!(self, &mut posted, about))
    }

    pub(crate) fn with_machine<R>(
        &mut self,
        id: OpId,
        f: impl FnOnce(&mut Machine, &Message, &mut RankPort<D>) -> R,
    ) -> Option<R> {
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return None };
        let Long { message, machine, posted, outcome, context, flags, .. } = &mut **long;
        let about = About {
            peer: message.peer,
            op: id.0,
            peer_op: message.peer_op,
            envelope: (outcome.tag, *context),
            flags: *flags,
            local: message.local,
        };
        let mut port = port!(self, posted, about);
        port.dev.label(|| message.protocol.map_or(machine.way(None).name(), Protocol::name));
        let result = f(machine, message, &mut port);
        port.dev.label(|| "eager");
        Some(result)
    }

    /// Does what a step asks for.
    pub(crate) fn conclude(&mut self, id: OpId, step: Step) {
        match step {
            Step::Going => {}
            Step::Looking | Step::Moved => {
                let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
                if !std::mem::replace(&mut long.looking, true) {
                    self.active.push(id);
                }
            }
            Step::Done => self.end_well(id, None),
            Step::Spoilt(failure) => self.end_well(id, Some(failure)),
            Step::Failed(fault) => self.lose_long(id, fault),
            Step::Met | Step::NoRoom | Step::Frames | Step::Illegal => {
                unreachable!("{step:?} is handled where it is allowed")
            }
        }
    }

    /// Nothing of a message is under way any more, nor held; what has gone wrong, if anything.
    pub(super) fn end_well(&mut self, id: OpId, failure: Option<Box<Failure>>) {
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
        assert_eq!(long.posted.open, 0, "a message ends with its transfers");
        let ends = Outcome { failure: failure.or(long.outcome.failure.take()), ..long.outcome };
        if long.is_counted() {
            let report = self.learner.received(long, self.dev.now_ns());
            self.peers[long.message.peer].report(report);
        }
        let (peer, len, side, way) = (long.message.peer, long.message.len, long.side, long.way());
        self.tell_end(peer, len, side, way);
        self.learner.ended_at(id, &*self.dev);
        if let State::Long(long) = self.ops.replace(id, State::Done(ends)) {
            self.longs.keep(long);
        }
    }

    /// Tells observers that a rendezvous has ended.
    pub(crate) fn tell_end(&mut self, peer: Rank, len: u64, side: Side, way: Way) {
        let sends = side == Side::Send;
        self.counters.happened(Notice::RendezvousEnded, [peer as u64, len, sends.into(), way as u64]);
    }

    /// The send behind a long message, which is to go by frames; `None` if the receiver has answered it
    /// in another way, and may be at work.
    pub(crate) fn long_sending(&mut self, id: OpId) -> Option<Sending> {
        let is_open = self.with_machine(id, |machine, _, port| {
            let is_open = machine.is_unanswered(port);
            if is_open {
                machine.retreat(port);
            }
            is_open
        });
        if is_open != Some(true) {
            return None;
        }
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Long(long)) if long.side == Side::Send => Some(Sending {
                to: long.message.peer,
                context: long.context,
                tag: long.outcome.tag,
                data: long.message.local,
                met: true,
                flags: 0,
            }),
            _ => None,
        }
    }
}
