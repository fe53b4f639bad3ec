//! RTRs over registered memory: what the two sides agree on is said in messages.
//!
//! An RTR-ACK takes the place of the RTS of a message that is written where an RTR said. An RTS that meets a receive without an RTR
//! is answered by an RTS-ACK, behind what the protocol does first, on which bytes wait. (In the dissertation it comes first.)
//! A receiver that takes an RTR back asks its sender (RTR-CANCEL), who says RTR-GONE when no message can have it. The rules are in
//! [`super::rtr`].

use super::movers::stripes::Stripes;
use super::movers::{Happening, Machine, Message};
use crate::choice::way::{Protocol, Way};
use crate::event::Event;
use crate::message::malformed;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, Receive, Sending, Side};
use crate::message::rtrs::{DEPTH, Fate, Memory, Rtr};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::write;
use crate::rendezvous::rtr::Offering;
use crate::rendezvous::rtr_account::{ANSWERABLE, CAME_SHIFT, DECLINED, Meeting, Out, UNWELCOME, Waiting};
use crate::rendezvous::state::Long;
use crate::rendezvous::state::{State, Step};
use fabric::{Device, Fault, Rank, Span};
use wire::Malformed;
use wire::head::{Head, Kind};
use wire::long::{Fragment, LongRts, RAILS, Report};

/// What a receive that an RTS has met knows of its wait.
pub(super) struct Met {
    /// For how long it had waited, and how much of that inside MPI.
    pub waited_ns: u64,
    pub inside_ns: u64,
    /// Whether the RTS is to be answered; an RTR says the same.
    pub answers: bool,
    /// Its RTR, if that answers the RTS: the sender writes.
    pub written: Option<Out>,
}

/// Flag of an Ack: it is an RTS-ACK. Its length says for how long the receive had waited, in ns, its offset how long
/// ago they met.
const RTS_ACK: u16 = 2;

impl<D: Device> Rendezvous<'_, D> {
    /// Sends an RTR if the rules allow one and it is worth its registration.
    pub(super) fn send_rtr_of_keys(&mut self, id: OpId, envelope: &Envelope, buf: Span) -> Option<Out> {
        let source = envelope.source;
        let is_worth =
            self.rules.force.is_some() || self.rcache.has(0, buf) || self.rtrs.may_register(envelope);
        if !is_worth || !self.can_transfer(source) {
            return None;
        }
        let Offering { earlier, seen, number, .. } = self.may_offer(envelope)?;
        let stripes = self.with_port(source, |port| Stripes::hold(port, buf).ok())?;
        let rtr = wire::long::Rtr {
            len: buf.len as u64,
            addr: buf.addr as u64,
            op: id.0,
            seen,
            earlier,
            keys: stripes.keys(),
            report: self.peers[source].reports.front().copied().unwrap_or_default(),
        };
        let head = Head::new(Kind::LongRtr, envelope.tag, envelope.context).encode();
        if !self.dev.try_send(source, head, span_of(&rtr.encode())) {
            self.with_port(source, |port| stripes.release(port));
            return None;
        }
        self.counters.count(Event::RtrSent);
        let peer = &mut self.peers[source];
        peer.reports.pop_front();
        peer.rtrs().was_sent();
        Some(Out { stripes, number, seen })
    }

    /// How a rendezvous over registered memory begins: by the cheapest way that is open to it.
    pub(crate) fn begin_rendezvous(&mut self, id: OpId, s: &Sending, protocol: Protocol) -> Step {
        let speculates = self.speculates(Some(s.to));
        if speculates {
            self.watch(s.to);
        }
        let held = self.consume_keys(s);
        let fits = held.filter(|rtr| speculates && s.data.len as u64 <= rtr.len);
        let (way, is_welcome) = self.select(id, s, protocol, fits.is_some());
        if let Some(rtr) = fits
            && way == Way::Write
        {
            self.counters.count(Event::RtrTaken);
            return Step::Write(rtr);
        }
        let protocol = way.protocol().unwrap_or(protocol);
        let is_read = matches!(protocol, Protocol::Rget | Protocol::Speculative);
        let flags = match is_welcome {
            false => UNWELCOME,
            true if fits.is_some() => DECLINED,
            true if speculates && held.is_none() && is_read && self.may_be_answered(&s.envelope()) => {
                ANSWERABLE
            }
            true => 0,
        };
        Step::Long(protocol, flags)
    }

    /// Whether an RTR that crosses the RTS of a read may answer it: its memory is registered as it stands, and its sender
    /// there to write.
    fn may_be_answered(&self, to: &Envelope) -> bool {
        self.dev.rails() == 1 && self.rtrs.is_present(to)
    }

    /// A message consumes the oldest RTR over registered memory of its envelope.
    pub(crate) fn consume_keys(&mut self, s: &Sending) -> Option<Rtr> {
        let rtrs = self.peers[s.to].known_rtrs()?;
        match rtrs.next(s.context, s.tag)?.memory {
            Memory::Keys(_) => rtrs.take(s.context, s.tag),
            Memory::Share(_) => None,
        }
    }

    /// Announces that a message goes where an RTR said, and begins to write; false if there is no
    /// room.
    pub(super) fn leave_write(&mut self, id: OpId, s: Sending, rtr: Rtr, keys: [u32; RAILS]) -> bool {
        let begun_ns = self.dev.now_ns();
        self.learner.begins(id, begun_ns);
        let held = self.with_port(s.to, |port| Stripes::hold_as(port, s.data, rtr.len));
        let Ok(stripes) = held else {
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
        let message = Message {
            peer: s.to,
            local: s.data,
            peer_op: rtr.op,
            len: s.data.len as u64,
            protocol: Protocol::Speculative,
        };
        let target = write::Target { addr: rtr.addr, keys };
        let machine = Machine::RtrSend(write::Sender::Held(stripes, target));
        let long = Long::new(Side::Send, message, s.context, s.outcome(), machine, begun_ns);
        self.ops.set(id, State::Long(Box::new(long)));
        let step = self.happen(id, Happening::Start);
        self.conclude(id, step);
        true
    }

    /// LongRtr: kept for the message it belongs to, or for nothing.
    pub(crate) fn on_long_rtr(&mut self, envelope: Envelope, data: Span) -> Result<(), Fault> {
        let from = envelope.source;
        let mut body = [0u8; wire::long::Rtr::LEN];
        if data.len != body.len() {
            return Err(malformed(from, Malformed(format!("an RTR of {} bytes", data.len))));
        }
        self.dev.peek_bytes(data, &mut body);
        let said = wire::long::Rtr::decode(&body).map_err(|e| malformed(from, e))?;
        self.learner.reported(said.report);
        self.watch(from);
        let Envelope { context, tag, .. } = envelope;
        let wire::long::Rtr { len, addr, op, keys, .. } = said;
        let rtr = Rtr { context, tag, op, addr, len, memory: Memory::Keys(keys) };
        let peer = &mut self.peers[from];
        let (sent, waits) = (peer.sent, !peer.queue.is_empty());
        if let Fate::Answers(id) = peer.rtrs().on_rtr(rtr, said.seen, said.earlier, sent, waits) {
            self.answer_by_write(id, rtr, keys);
        }
        Ok(())
    }

    /// An RTR has crossed the RTS of its message, which its receiver knows too: this side writes.
    fn answer_by_write(&mut self, id: OpId, rtr: Rtr, keys: [u32; RAILS]) {
        let was_here = self.learner.answered_by_rtr(id);
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
        let offered = if long.ending.is_none() { long.machine.take_offered() } else { None };
        let Some(stripes) = offered else { return };
        long.machine = Machine::RtrSend(write::Sender::Held(stripes, write::Target { addr: rtr.addr, keys }));
        long.message.peer_op = rtr.op;
        let envelope = long.envelope();
        self.rtrs.was_present(&envelope, was_here);
        self.counters.count(Event::RtrTaken);
        let step = self.happen(id, Happening::Start);
        self.conclude(id, step);
    }

    /// RtrCancel: the receiver takes an RTR back.
    pub(crate) fn on_rtr_cancel(&mut self, envelope: Envelope, data: Span) -> Result<(), Fault> {
        let op = self.long_body(envelope.source, data)?.op;
        let peer = &mut self.peers[envelope.source];
        if peer.rtrs().give_up(op) {
            // Before later sends take the RTRs behind it.
            self.control(envelope.source, gone(op), &[]);
            return Ok(());
        }
        peer.gone.push(op);
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

    /// Has every message to this peer looked at.
    fn watch(&mut self, to: Rank) {
        let peer = &mut self.peers[to];
        (peer.watched, peer.plain) = (true, false);
        let sent = peer.sent;
        peer.rtrs().watch(sent);
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
        let Some(out) = waiting.rtr.take() else {
            return refuse("for a receive without RTR");
        };
        let peer = &mut self.peers[from];
        peer.seen = peer.seen.wrapping_add(1);
        peer.rtrs().rendezvous_came();
        let waited = self.time_waited(&waiting);
        self.account_met(&envelope, Some(true), true, waited.0, receive.buf.len);
        self.expect_write(id, &envelope, receive, out, ack, waited.1);
        Ok(())
    }

    /// The sender writes into the buffer of a receive, as its RTR said. `said` names its operation and the length.
    pub(super) fn expect_write(
        &mut self,
        id: OpId,
        envelope: &Envelope,
        receive: Receive,
        out: Out,
        said: LongRts,
        inside_ns: u64,
    ) {
        let begun_ns = self.dev.now_ns();
        let ends = Outcome::of_receive(envelope, said.len, receive.buf);
        let message = Message {
            peer: envelope.source,
            local: receive.buf,
            peer_op: said.op,
            len: said.len,
            protocol: Protocol::Speculative,
        };
        let machine = Machine::RtrReceive(write::Receiver::new(out.stripes, said.len));
        let long = Long {
            waited_ns: inside_ns,
            away_ns: self.learner.receives(begun_ns),
            ..Long::new(Side::Receive, message, envelope.context, ends, machine, begun_ns)
        };
        self.ops.set(id, State::Long(Box::new(long)));
    }

    /// Releases the memory of an RTR whose receive has been met by a message that is no rendezvous over registered memory.
    pub(super) fn release_rtr(&mut self, id: OpId, envelope: &Envelope) {
        if self.rtrs.waiting.is_empty() {
            return;
        }
        let Some(out) = self.rtrs.waiting.remove(&id).and_then(|waiting| waiting.rtr) else { return };
        self.counters.count(Event::RtrDropped);
        self.with_port(envelope.source, |port| out.stripes.release(port));
        self.peers[envelope.source].rtrs().was_missed();
        self.rtrs.missed(envelope);
    }

    /// A receive ends because its sender is lost, who cannot write into its buffer any more.
    pub(crate) fn withdraw_lost(&mut self, id: OpId, receive: &Receive) {
        let Some(waiting) = self.rtrs.waiting.remove(&id) else { return };
        if let (Some(out), Some(source)) = (waiting.rtr, receive.want.source) {
            self.with_port(source, |port| out.stripes.release(port));
        }
    }

    /// What an RTS says of RTRs.
    pub(crate) fn heed(&mut self, envelope: &Envelope, flags: u16) {
        self.rtrs.on_rts(envelope, flags);
        if let Some(rtrs) = self.peers[envelope.source].known_rtrs() {
            rtrs.heard(flags >> CAME_SHIFT);
        }
    }

    /// An RTS has met a receive: what is known of its wait, and whether its RTR, if one is out, answers the RTS. If not it
    /// is void.
    pub(super) fn meet(&mut self, id: OpId, envelope: &Envelope, room: usize, rts: &LongRts) -> Met {
        let waiting = if self.rtrs.waiting.is_empty() { None } else { self.rtrs.waiting.remove(&id) };
        let (waited_ns, inside_ns) = waiting.as_ref().map_or((0, 0), |w| self.time_waited(w));
        let out = waiting.and_then(|w| w.rtr);
        let mut met = Met { waited_ns, inside_ns, answers: out.is_none(), written: None };
        if !self.speculates(Some(envelope.source)) {
            return Met { answers: false, ..met };
        }
        let (is_answerable, is_declined) = (rts.flags & ANSWERABLE != 0, rts.flags & DECLINED != 0);
        let peer = &mut self.peers[envelope.source];
        let is_written = out.as_ref().is_some_and(|out| {
            // The RTS is the last message that was taken in: a receive with an RTR out was posted before it came.
            let depth = peer.seen.wrapping_sub(1).wrapping_sub(out.seen);
            let has_crossed = peer.rtrs().has_crossed(out.number, rts.flags >> CAME_SHIFT);
            is_answerable && has_crossed && depth < DEPTH && rts.len <= room as u64
        });
        let used = out.as_ref().map(|_| is_written || is_declined);
        let latency_ns = self.path(envelope.source).latency.value;
        let early = waited_ns as f64 > if is_answerable { 0.0 } else { 2.0 * latency_ns };
        self.account_met(envelope, used, early, waited_ns, rts.len as usize);
        match out {
            Some(out) if is_written => met.written = Some(out),
            Some(out) => {
                self.counters.count(Event::RtrDropped);
                self.with_port(envelope.source, |port| out.stripes.release(port));
            }
            None => {}
        }
        met
    }

    fn account_met(&mut self, from: &Envelope, used: Option<bool>, early: bool, waited_ns: u64, len: usize) {
        let register_ns = self.learner.facts.register.at(len as f64);
        self.rtrs.met(from, Meeting { used, early, waited_ns, register_ns });
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
    pub(crate) fn met(&mut self, id: OpId, to: &Envelope, kind: Kind, f: Fragment) -> bool {
        let is_ack = is_rts_ack(kind, &f);
        if is_ack {
            let was_here = self.learner.was_here(id);
            self.hear_ack(id, &f);
            self.rtrs.was_present(to, was_here);
        }
        self.is_answered(id, to.source);
        is_ack
    }

    /// No RTR can answer this RTS any more.
    pub(crate) fn is_answered(&mut self, id: OpId, to: Rank) {
        if let Some(rtrs) = self.peers[to].known_rtrs() {
            rtrs.answered(id);
        }
    }

    /// An RTS-ACK, which may come when the message has left as a whole.
    pub(crate) fn hear_ack(&mut self, id: OpId, f: &Fragment) {
        self.learner.reported(Report::of(f));
        self.learner.answered(id, self.dev.now_ns().saturating_sub(f.offset), f.len);
    }

    /// Asks the sender to give an RTR up; false if there is none.
    pub(crate) fn ask_back(&mut self, id: OpId) -> bool {
        let Some(State::Posted(receive)) = self.ops.get(id).map(|op| &op.state) else { return false };
        let (want, buf) = (receive.want, receive.buf);
        let Some(waiting) = self.rtrs.waiting.get_mut(&id).filter(|w| w.rtr.is_some()) else { return false };
        if !waiting.cancelling {
            waiting.cancelling = true;
            let (Some(source), Some(tag)) = (want.source, want.tag) else { return false };
            let body = LongRts { len: buf.len as u64, op: id.0, ..LongRts::default() };
            let head = Head::new(Kind::RtrCancel, tag, want.context).encode();
            self.control(source, head, &body.encode());
        }
        true
    }

    /// RtrGone: a receive that was to be cancelled is, unless a message has met it.
    pub(crate) fn on_rtr_gone(&mut self, from: Rank, head: Head) {
        let id = OpId(head.tag as u32);
        let Some(State::Posted(receive)) = self.ops.get(id).map(|op| &op.state) else { return };
        let want = receive.want;
        if want.source != Some(from) || !self.rtrs.waiting.get(&id).is_some_and(|w| w.cancelling) {
            return;
        }
        if let Some(out) = self.rtrs.waiting.remove(&id).and_then(|waiting| waiting.rtr) {
            self.with_port(from, |port| out.stripes.release(port));
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
