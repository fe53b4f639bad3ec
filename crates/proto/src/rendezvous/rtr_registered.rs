//! RTRs over registered memory: sent, taken, answered, asked back, by the rules of [`super::rtr_account`].

use super::movers::stripes::Stripes;
use super::movers::{Happening, Machine, Message};
use crate::choice::eager_limit::limit_from;
use crate::choice::way::Protocol;
use crate::choice::way::Way;
use crate::event::{Event, Happening as Told};
use crate::message::malformed;
use crate::message::matching::{Envelope, Want};
use crate::message::op::{OpId, Outcome, Receive, Sending, Side};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::write;
use crate::rendezvous::rtr_account::{Plan, Waiting, Wants};
use crate::rendezvous::state::{Course, Long, State, Step};
use fabric::{Device, Fault, Rank, Span};
use wire::Malformed;
use wire::head::{Head, Kind};
use wire::long::{Fragment, LongRts, Report};

/// Flag of an Ack: it is an RTS-ACK. Its length says for how long the receive had waited, in ns, its offset how long
/// ago they met.
const RTS_ACK: u16 = 2;

impl<D: Device> Rendezvous<'_, D> {
    /// A receive has been posted that found no message: sends an RTR if the rules allow one. To be
    /// called before it is in the queue.
    pub(crate) fn speculate(&mut self, id: OpId, want: &Want, buf: Span) {
        let limit = limit_from(self.eager_limits, want.source.map(|source| self.dev.distance(source)));
        if !self.speculates(want.source) || buf.len <= limit || want.source == Some(self.dev.me()) {
            return;
        }
        let since_ns = self.dev.now_ns();
        let outside_ns = self.learner.outside_ns(since_ns);
        let mut waiting = Waiting { since_ns, outside_ns, rtr: None };
        if let (Some(source), Some(tag)) = (want.source, want.tag) {
            let envelope = Envelope { source, context: want.context, tag };
            if self.may_offer(&envelope, buf) {
                waiting.rtr = self.send_rtr(id, &envelope, buf);
            }
        }
        self.rtrs.waiting.insert(id, waiting);
    }

    /// Whether the rules allow an RTR for the next receive of an envelope, and it is worth its registration.
    fn may_offer(&mut self, envelope: &Envelope, buf: Span) -> bool {
        let first_come = |op| self.rtrs.waiting.get(&op).is_some_and(|w: &Waiting| w.rtr.is_some());
        self.rtrs.may_offer(envelope)
            && self.matching.posted_for(envelope).all(first_come)
            && self.peers[envelope.source].control.is_empty()
            && self.can_transfer(envelope.source)
            && (self.rules.force.is_some() || self.rcache.has(0, buf) || self.rtrs.may_register(envelope))
    }

    fn send_rtr(&mut self, id: OpId, envelope: &Envelope, buf: Span) -> Option<Stripes> {
        let stripes = self.with_port(envelope.source, |port| Stripes::hold(port, buf).ok())?;
        let rtr = LongRts {
            len: buf.len as u64,
            addr: buf.addr as u64,
            op: id.0,
            protocol: Protocol::Speculative as u16,
            flags: 0,
            keys: stripes.keys(),
            report: self.peers[envelope.source].reports.front().copied().unwrap_or_default(),
        };
        let head = Head::new(Kind::LongRtr, envelope.tag, envelope.context).encode();
        if self.dev.try_send(envelope.source, head, span_of(&rtr.encode())) {
            self.counters.count(Event::RtrSent);
            self.peers[envelope.source].reports.pop_front();
            return Some(stripes);
        }
        self.with_port(envelope.source, |port| stripes.release(port));
        None
    }

    /// How a rendezvous over registered memory begins: by the cheapest way that is open to it.
    pub(crate) fn begin_rendezvous(&mut self, id: OpId, s: &Sending, protocol: Protocol) -> Step {
        let (envelope, len) = (s.envelope(), s.data.len as u64);
        if !self.speculates(Some(s.to)) {
            let (way, _) = self.select(id, s, protocol, false);
            self.rtrs.other_left(&envelope, None);
            return Step::Long(way.protocol().unwrap_or(protocol), 0);
        }
        let sent_before = self.watch(s.to);
        let is_offered = self.rtrs.is_offered(&envelope, len, sent_before);
        let (way, is_welcome) = self.select(id, s, protocol, is_offered);
        let wants = match (is_offered, is_welcome) {
            (true, _) if way == Way::Write => Wants::Takes,
            (true, true) => Wants::Declines,
            (false, true) => Wants::Takes,
            (_, false) => Wants::Nothing,
        };
        match self.rtrs.begin(&envelope, id, len, sent_before, wants) {
            Plan::Rts(flags) => Step::Long(way.protocol().unwrap_or(protocol), flags),
            Plan::Write(rtr) => {
                self.counters.count(Event::RtrTaken);
                Step::Write(rtr)
            }
        }
    }

    /// Announces that a message goes where an RTR said, and begins to write; false if there is no
    /// room.
    pub(crate) fn leave_write(&mut self, id: OpId, s: Sending, rtr: LongRts) -> bool {
        let begun_ns = self.dev.now_ns();
        self.learner.begins(id, begun_ns);
        let held = self.with_port(s.to, |port| Stripes::hold_as(port, s.data, rtr.len));
        let Ok(stripes) = held else {
            self.rtrs.other_left(&s.envelope(), Some(id));
            self.ops.set(id, State::Queued(s, Step::Rts));
            return self.leave_rts(id, s);
        };
        let ack = LongRts { len: s.data.len as u64, addr: rtr.op as u64, op: id.0, ..LongRts::default() };
        let head = Head::new(Kind::RtrAck, s.tag, s.context).encode();
        if !self.dev.try_send(s.to, head, span_of(&ack.encode())) {
            self.with_port(s.to, |port| stripes.release(port));
            return false;
        }
        self.learner.leaves(id, self.dev.now_ns());
        self.counters.happened(Told::RendezvousBegun, [s.to as u64, s.data.len as u64, 1]);
        let message = Message {
            peer: s.to,
            local: s.data,
            peer_op: rtr.op,
            len: s.data.len as u64,
            protocol: Protocol::Speculative,
        };
        let machine = Machine::RtrSend(write::Sender::Held(stripes, rtr));
        let long = Long::new(Course::Moving, Side::Send, message, s.context, s.outcome(), machine, begun_ns);
        self.ops.set(id, State::Long(Box::new(long)));
        let step = self.happen(id, Happening::Start);
        self.conclude(id, step);
        true
    }

    /// LongRtr or RtrCancel.
    pub(crate) fn on_long_rtr(&mut self, envelope: Envelope, kind: Kind, data: Span) -> Result<(), Fault> {
        let rtr = self.long_body(envelope.source, data)?;
        if kind == Kind::LongRtr {
            self.learner.reported(rtr.report);
            let sent_before = self.watch(envelope.source);
            self.rtrs.on_rtr(&envelope, rtr, sent_before);
            return Ok(());
        }
        if self.rtrs.give_up(&envelope, rtr.op) {
            // Before later sends take the RTRs behind it.
            self.control(envelope.source, gone(rtr.op), &[]);
            return Ok(());
        }
        self.peers[envelope.source].gone.push(rtr.op);
        self.tell_gone(envelope.source);
        Ok(())
    }

    /// Tells which RTRs are given up, once no message of the queue can belong to them.
    pub(crate) fn tell_gone(&mut self, to: Rank) {
        if self.peers[to].queue.is_empty() {
            for op in std::mem::take(&mut self.peers[to].gone) {
                self.control(to, gone(op), &[]);
            }
        }
    }

    /// Has every message to this peer looked at; whether some have left before.
    fn watch(&mut self, to: Rank) -> bool {
        let peer = &mut self.peers[to];
        (peer.watched, peer.plain) = (true, false);
        peer.sent != 0 || !peer.queue.is_empty()
    }

    pub(crate) fn long_body(&self, from: Rank, data: Span) -> Result<LongRts, Fault> {
        let mut body = [0u8; LongRts::LEN];
        if data.len != body.len() {
            return Err(malformed(from, Malformed(format!("an RTR of {} bytes", data.len))));
        }
        self.dev.peek_bytes(data, &mut body);
        LongRts::decode(&body).map_err(|e| malformed(from, e))
    }

    /// RtrAck: the sender writes into the buffer of a receive of this rank.
    pub(crate) fn on_rtr_ack(&mut self, envelope: Envelope, data: Span) -> Result<(), Fault> {
        let from = envelope.source;
        let ack = self.long_body(from, data)?;
        let id = OpId(ack.addr as u32);
        let refuse = |what: &str| Err(malformed(from, Malformed(format!("RTR-ACK {what}"))));
        if ack.addr > u32::MAX as u64 || ack.len == 0 {
            return refuse("for no operation, or of nothing");
        }
        let receive = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) if receive.want.accepts(&envelope) => *receive,
            _ => return refuse("for a receive that is not posted"),
        };
        // Of a peer that breaks the rules nothing is released: it may be writing.
        if ack.len > receive.buf.len as u64 || self.matching.take_posted(&envelope) != Some(id) {
            return refuse("for a receive that is not the next, or too short");
        }
        let Some(mut waiting) = self.rtrs.waiting.remove(&id) else {
            return refuse("for a receive without RTR");
        };
        let Some(stripes) = waiting.rtr.take() else {
            return refuse("for a receive without RTR");
        };
        let begun_ns = self.dev.now_ns();
        self.peers[from].seen = self.peers[from].seen.wrapping_add(1);
        self.counters.happened(Told::Matched, [from as u64, envelope.tag as u32 as u64, ack.len, 0]);
        self.counters.happened(Told::RendezvousBegun, [from as u64, ack.len, 0]);
        let ends = Outcome::of_receive(&envelope, ack.len, receive.buf);
        let (waited_ns, inside_ns) = self.time_waited(&waiting);
        self.rtrs.waited(&envelope, waited_ns, self.learner.facts.register.at(receive.buf.len as f64));
        let message = Message {
            peer: from,
            local: receive.buf,
            peer_op: ack.op,
            len: ack.len,
            protocol: Protocol::Speculative,
        };
        let machine = Machine::RtrReceive(write::Receiver::new(stripes, ack.len));
        let long = Long {
            waited_ns: inside_ns,
            away_ns: self.learner.receives(begun_ns),
            ..Long::new(Course::Moving, Side::Receive, message, envelope.context, ends, machine, begun_ns)
        };
        self.ops.set(id, State::Long(Box::new(long)));
        Ok(())
    }

    /// A receive has been met by a message that does not use its RTR, which is void now.
    pub(crate) fn recall(&mut self, id: OpId, envelope: &Envelope) {
        if self.rtrs.waiting.is_empty() {
            return;
        }
        let Some(waiting) = self.rtrs.waiting.remove(&id) else { return };
        if let Some(stripes) = waiting.rtr {
            self.counters.count(Event::RtrDropped);
            self.with_port(envelope.source, |port| stripes.release(port));
            self.rtrs.missed(envelope);
        }
    }

    /// A receive ends because its sender is lost, who cannot write into its buffer any more.
    pub(crate) fn withdraw_lost(&mut self, id: OpId, receive: &Receive) {
        let Some(waiting) = self.rtrs.waiting.remove(&id) else { return };
        if let (Some(stripes), Some(source)) = (waiting.rtr, receive.want.source) {
            self.with_port(source, |port| stripes.release(port));
        }
    }

    /// The flags of an RTS: with stop-RTR all RTRs for its envelope are void.
    pub(crate) fn heed(&mut self, envelope: &Envelope, flags: u16) {
        if !self.rtrs.on_rts(envelope, flags) {
            return;
        }
        let posted: Vec<OpId> = self.matching.posted_for(envelope).collect();
        for id in posted {
            let Some(waiting) = self.rtrs.waiting.get_mut(&id) else { continue };
            let Some(stripes) = waiting.rtr.take() else { continue };
            self.counters.count(Event::RtrDropped);
            self.with_port(envelope.source, |port| stripes.release(port));
        }
    }

    /// An RTS has met a receive, whose RTR is void: for how long the receive has waited, in ns, how much of that
    /// inside MPI, and whether it is to be answered, for an RTR says the same.
    pub(crate) fn meet(&mut self, id: OpId, envelope: &Envelope, len: u64) -> (u64, u64, bool) {
        let waiting = if self.rtrs.waiting.is_empty() { None } else { self.rtrs.waiting.remove(&id) };
        let (waited_ns, inside_ns) = waiting.as_ref().map_or((0, 0), |w| self.time_waited(w));
        if self.speculates(Some(envelope.source)) {
            self.rtrs.waited(envelope, waited_ns, self.learner.facts.register.at(len as f64));
        }
        let Some(stripes) = waiting.and_then(|w| w.rtr) else {
            return (waited_ns, inside_ns, self.speculates(Some(envelope.source)));
        };
        self.counters.count(Event::RtrDropped);
        self.with_port(envelope.source, |port| stripes.release(port));
        (waited_ns, inside_ns, false)
    }

    /// For how long a receive has waited, and how much of that inside MPI, in ns.
    fn time_waited(&mut self, waiting: &Waiting) -> (u64, u64) {
        let now_ns = self.dev.now_ns();
        let (waited_ns, outside_ns) =
            (now_ns.saturating_sub(waiting.since_ns), self.learner.outside_ns(now_ns));
        (waited_ns, waited_ns.saturating_sub(outside_ns - waiting.outside_ns))
    }

    /// Answers an RTS that met a receive some time ago. That comes behind what the protocol had to do, so that no byte
    /// waits for it.
    pub(crate) fn answer_rts(&mut self, id: OpId, from: Rank, rts: LongRts, waited_ns: u64, met_ns: u64) {
        let since_ns = self.dev.now_ns().saturating_sub(met_ns);
        let ack = Fragment { len: waited_ns, offset: since_ns, flags: RTS_ACK, ..Fragment::default() };
        let ack = self.peers[from].reports.pop_front().unwrap_or_default().put(ack);
        let head = Head::new(Kind::Ack, rts.op as i32, id.0 as u64).encode();
        self.control(from, head, &ack.encode());
    }

    /// The receiver has answered a send; true if that was all it said.
    pub(crate) fn met(&mut self, id: OpId, to: &Envelope, begun_ns: u64, kind: Kind, f: Fragment) -> bool {
        let is_ack = is_rts_ack(kind, &f);
        if is_ack {
            self.hear_ack(id, &f);
            let trip_ns = self.dev.now_ns().saturating_sub(begun_ns);
            self.rtrs.on_round_trip(trip_ns.saturating_sub(f.offset));
        }
        self.rtrs.on_met(to, id, is_ack.then_some(f.len));
        is_ack
    }

    /// An RTS-ACK, which may come when the message has left as a whole.
    pub(crate) fn hear_ack(&mut self, id: OpId, f: &Fragment) {
        self.learner.reported(Report::of(f));
        self.learner.answered(id, self.dev.now_ns().saturating_sub(f.offset), f.len);
    }

    /// Asks the sender to give an RTR up; false if there is none.
    pub(crate) fn ask_back(&mut self, id: OpId) -> bool {
        if self.rtrs.waiting.get(&id).is_none_or(|waiting| waiting.rtr.is_none()) {
            return false;
        }
        let receive = self.ops.posted(id);
        let Receive { want, buf, withdrawn, .. } = receive;
        let (false, Some(source), Some(tag)) = (withdrawn, want.source, want.tag) else { return true };
        self.ops.set(id, State::Posted(Receive { withdrawn: true, ..receive }));
        let body = LongRts { len: buf.len as u64, op: id.0, ..LongRts::default() };
        let head = Head::new(Kind::RtrCancel, tag, want.context).encode();
        self.control(source, head, &body.encode());
        true
    }

    /// RtrGone: a receive that was to be cancelled is, unless a message has met it.
    pub(crate) fn on_rtr_gone(&mut self, from: Rank, head: Head) {
        let id = OpId(head.tag as u32);
        let Some(State::Posted(receive)) = self.ops.get(id).map(|op| &op.state) else { return };
        let Receive { want, withdrawn, .. } = *receive;
        if want.source != Some(from) || !withdrawn {
            return;
        }
        if let Some(stripes) = self.rtrs.waiting.remove(&id).and_then(|waiting| waiting.rtr) {
            self.with_port(from, |port| stripes.release(port));
        }
        self.matching.withdraw(&want, id);
        let tag = want.tag.unwrap_or(-1);
        let ends = Outcome { source: from, tag, len: 0, cancelled: true, failure: None };
        self.ops.set(id, State::Done(ends));
    }
}

/// Whether a fragment says no more than that an RTS has met a receive.
pub(crate) fn is_rts_ack(kind: Kind, f: &Fragment) -> bool {
    kind == Kind::Ack && f.flags & RTS_ACK != 0
}

fn gone(op: u32) -> [u64; 2] {
    Head::new(Kind::RtrGone, op as i32, 0).encode()
}

fn span_of(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}
