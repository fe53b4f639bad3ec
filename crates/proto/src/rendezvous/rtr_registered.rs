//! RTRs over registered memory: sent, taken, answered, asked back, by the rules of [`super::rtr_account`].

use super::movers::stripes::Stripes;
use super::movers::{Happening, Machine, Message};
use crate::choice::way::Protocol;
use crate::choice::way::Way;
use crate::event::{Event, Notice};
use crate::message::malformed;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, Receive, RtrBy, Sending, Side};
use crate::message::rtrs::{Memory, Rtr};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::write;
use crate::rendezvous::rtr::Void;
use crate::rendezvous::rtr_account::{Plan, Send, Waiting, Wants};
use crate::rendezvous::state::{Course, Long, State, Step};
use fabric::{Device, Fault, Rank, Rights, Span};
use wire::Malformed;
use wire::head::{FrameType, Head};
use wire::long::{Fragment, LongRts, RAILS, Report};

/// Flag of an Ack: it is an RTS-ACK. Its length says for how long the receive had waited, in ns, its offset how long
/// ago they met.
const RTS_ACK: u16 = 2;

impl<D: Device> Rendezvous<'_, D> {
    /// A receive that is about to be posted expects a rendezvous: how long it waits says whether an RTR pays.
    pub(super) fn waits_from_now(&mut self, id: OpId) {
        let since_ns = self.dev.now_ns();
        let outside_ns = self.learner.outside_ns(since_ns);
        self.rtrs.waiting.insert(id, Waiting { since_ns, outside_ns, stripes: None });
    }

    /// Offers a buffer; false if it cannot be registered, or there is no room.
    pub(super) fn send_rtr_of_keys(&mut self, id: OpId, envelope: &Envelope, buf: Span) -> bool {
        let source = envelope.source;
        let Some(stripes) =
            self.with_port(source, |port| Stripes::hold(port, buf, Rights::REMOTE_WRITE).ok())
        else {
            return false;
        };
        let rtr = LongRts {
            len: buf.len as u64,
            addr: buf.addr as u64,
            op: id.0,
            protocol: Protocol::Speculative as u16,
            flags: 0,
            keys: stripes.keys(),
            report: self.peers[source].reports.front().copied().unwrap_or_default(),
        };
        let head = Head::new(FrameType::LongRtr, envelope.tag, envelope.context).encode();
        if !self.dev.try_send(source, head, span_of(&rtr.encode())) {
            self.with_port(source, |port| stripes.release(port));
            return false;
        }
        self.counters.count(Event::RtrSent);
        self.peers[source].reports.pop_front();
        self.rtrs.waiting.entry(id).and_modify(|waiting| waiting.stripes = Some(stripes));
        true
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
        let is_offered = self.rtrs.is_offered(&self.peers[s.to].rtrs, &envelope, len, sent_before);
        let (way, is_welcome) = self.select(id, s, protocol, is_offered);
        let wants = match (is_offered, is_welcome) {
            (true, _) if way == Way::Write => Wants::Takes,
            (true, true) => Wants::Declines,
            (false, true) => Wants::Takes,
            (_, false) => Wants::Nothing,
        };
        let send = Send { op: id, len, wants };
        match self.rtrs.begin(&mut self.peers[s.to].rtrs, &envelope, send, sent_before) {
            Plan::Rts(flags) => Step::Long(way.protocol().unwrap_or(protocol), flags),
            Plan::Write(rtr) => {
                self.counters.count(Event::RtrTaken);
                Step::Taken(rtr)
            }
        }
    }

    /// Announces that a message goes where an RTR said, and begins to write; false if there is no
    /// room.
    pub(super) fn leave_write(&mut self, id: OpId, s: Sending, rtr: Rtr, keys: [u32; RAILS]) -> bool {
        let begun_ns = self.dev.now_ns();
        self.learner.begins(id, begun_ns);
        let held = self.with_port(s.to, |port| Stripes::hold_as(port, s.data, rtr.len, Rights::NONE));
        let Ok(stripes) = held else {
            self.rtrs.other_left(&s.envelope(), Some(id));
            self.ops.set(id, State::Queued(s, Step::Rts));
            return self.leave_rts(id, s);
        };
        let ack = LongRts { len: s.data.len as u64, addr: rtr.op as u64, op: id.0, ..LongRts::default() };
        let head = Head::new(FrameType::RtrAck, s.tag, s.context).encode();
        if !self.dev.try_send(s.to, head, span_of(&ack.encode())) {
            self.with_port(s.to, |port| stripes.release(port));
            return false;
        }
        self.learner.leaves(id, self.dev.now_ns());
        self.counters.happened(Notice::RendezvousBegun, [s.to as u64, s.data.len as u64, 1]);
        let message = Message {
            peer: s.to,
            local: s.data,
            peer_op: rtr.op,
            len: s.data.len as u64,
            protocol: Some(Protocol::Speculative),
        };
        let machine = Machine::RtrSend(write::Sender::Held(stripes, rtr.addr, keys));
        let long = Long::new(Course::Moving, Side::Send, message, s.context, s.outcome(), machine, begun_ns);
        self.ops.set(id, State::Long(Box::new(long)));
        let step = self.happen(id, Happening::Start);
        self.conclude(id, step);
        true
    }

    /// LongRtr or RtrCancel.
    pub(crate) fn on_long_rtr(
        &mut self,
        envelope: Envelope,
        kind: FrameType,
        data: Span,
    ) -> Result<(), Fault> {
        let rtr = self.long_body(envelope.source, data)?;
        if kind == FrameType::LongRtr {
            let LongRts { len, addr, op, keys, report, .. } = rtr;
            self.learner.reported(report);
            let Envelope { context, tag, .. } = envelope;
            self.keep_rtr(&envelope, Rtr { context, tag, op, addr, len, memory: Memory::Keys(keys) }, 0, 0);
            return Ok(());
        }
        if self.peers[envelope.source].rtrs.give_up(rtr.op) {
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
    pub(super) fn watch(&mut self, to: Rank) -> bool {
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
        if ack.addr > u32::MAX as u64 {
            return Err(malformed(from, Malformed("RTR-ACK for no operation".into())));
        }
        let id = OpId(ack.addr as u32);
        let receive = self.rtr_is_taken(id, &envelope, ack.len, RtrBy::Keys)?;
        let waiting = self.take_waiting(id).expect("a receive with such an RTR waits");
        let begun_ns = self.dev.now_ns();
        let ends = Outcome::of_receive(&envelope, ack.len, receive.buf);
        let (waited_ns, inside_ns) = self.time_waited(&waiting);
        self.rtrs.waited(&envelope, waited_ns, self.learner.facts.register.at(receive.buf.len as f64));
        let message = Message {
            peer: from,
            local: receive.buf,
            peer_op: ack.op,
            len: ack.len,
            protocol: Some(Protocol::Speculative),
        };
        let stripes = waiting.stripes.expect("its RTR is out");
        let machine = Machine::RtrReceive(write::Receiver::new(stripes, ack.len));
        let long = Long {
            waited_ns: inside_ns,
            away_ns: self.learner.receives(begun_ns),
            ..Long::new(Course::Moving, Side::Receive, message, envelope.context, ends, machine, begun_ns)
        };
        self.ops.set(id, State::Long(Box::new(long)));
        Ok(())
    }

    /// The flags of an RTS: with stop-RTR all RTRs for its envelope are void.
    pub(crate) fn heed(&mut self, envelope: &Envelope, flags: u16) {
        if !self.rtrs.on_rts(envelope, flags) {
            return;
        }
        let posted: Vec<OpId> = self.matching.posted_for(envelope).collect();
        for id in posted {
            let stripes = self.rtrs.waiting.get_mut(&id).and_then(|waiting| waiting.stripes.take());
            self.void(id, stripes, Void::Stopped);
            self.ops.without_rtr(id);
        }
    }

    /// An RTS has met a receive, whose RTR is void: for how long the receive has waited, in ns, how much of that
    /// inside MPI, and whether it is to be answered, for an RTR says the same.
    pub(crate) fn meet(&mut self, id: OpId, envelope: &Envelope, len: u64) -> (u64, u64, bool) {
        let waiting = self.take_waiting(id);
        let (waited_ns, inside_ns) = waiting.as_ref().map_or((0, 0), |w| self.time_waited(w));
        let speculates = self.speculates(Some(envelope.source));
        if speculates {
            self.rtrs.waited(envelope, waited_ns, self.learner.facts.register.at(len as f64));
        }
        let is_offered = self.ops.posted(id).rtr.is_some();
        self.void(id, waiting.and_then(|w| w.stripes), Void::Rts { takes: true });
        (waited_ns, inside_ns, speculates && !is_offered)
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
        let head = Head::new(FrameType::Ack, rts.op as i32, id.0 as u64).encode();
        self.control(from, head, &ack.encode());
    }

    /// The receiver has answered a send; true if that was all it said.
    pub(crate) fn met(
        &mut self,
        id: OpId,
        to: &Envelope,
        begun_ns: u64,
        kind: FrameType,
        f: Fragment,
    ) -> bool {
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

    /// Asks the sender to give an RTR up.
    pub(super) fn ask_back(&mut self, id: OpId) {
        let receive = self.ops.posted(id);
        let Receive { want, buf, withdrawn, .. } = receive;
        let (false, Some(source), Some(tag)) = (withdrawn, want.source, want.tag) else { return };
        self.ops.set(id, State::Posted(Receive { withdrawn: true, ..receive }));
        let body = LongRts { len: buf.len as u64, op: id.0, ..LongRts::default() };
        let head = Head::new(FrameType::RtrCancel, tag, want.context).encode();
        self.control(source, head, &body.encode());
    }
}

/// Whether a fragment says no more than that an RTS has met a receive.
pub(crate) fn is_rts_ack(kind: FrameType, f: &Fragment) -> bool {
    kind == FrameType::Ack && f.flags & RTS_ACK != 0
}

fn gone(op: u32) -> [u64; 2] {
    Head::new(FrameType::RtrGone, op as i32, 0).encode()
}

fn span_of(bytes: &[u8]) -> Span {
    Span { addr: bytes.as_ptr() as usize, len: bytes.len() }
}
