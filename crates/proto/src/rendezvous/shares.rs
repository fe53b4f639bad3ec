//! Rendezvous through a share: the RTS with one, its match, and how the two sides come together.
//!
//! See [`super::movers::both`] for what happens then, and [`super::frames`] where nobody can copy.

use super::Rendezvous;
use crate::choice::way::Way;
use crate::event::{Event, Notice};
use crate::message::malformed;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, Sending, Side};
use crate::rendezvous::frames::Asked;
use crate::rendezvous::movers::both::{self, Duty};
use crate::rendezvous::movers::{Happening, Machine, Message, Mover, Step};
use crate::rendezvous::posting::RankPort;
use crate::rendezvous::state::{Course, Long, State};
use fabric::{Device, Fault, Rank, Share, Shares, Span};
use wire::head::Offer;

impl<D: Device> Rendezvous<'_, D> {
    /// Lets the RTS of a message leave; false if there is no room.
    pub(crate) fn leave_rts(&mut self, id: OpId, s: Sending) -> bool {
        // A message to oneself never takes frames: its receive completes as soon as it is matched.
        let can_copy =
            self.path(s.to).reach && s.flags & Offer::FRAMES == 0 || s.data.len == 0 || s.to == self.dev.me();
        let has_left = self.leave_by_share(id, s, 0, both::Sender::new(can_copy, s.met, s.flags));
        if has_left {
            self.counters.count(Event::RtsSent);
        }
        has_left
    }

    /// Lets a message leave of which the receiver is told by a share, or asks for in frames; false if there is no room.
    pub(super) fn leave_by_share(
        &mut self,
        id: OpId,
        s: Sending,
        peer_op: u32,
        mut machine: both::Sender,
    ) -> bool {
        let Sending { to: peer, context, data: local, .. } = s;
        let message = Message { protocol: None, peer, local, peer_op, len: local.len as u64 };
        let course = if machine.has_begun() { Course::Moving } else { Course::Offered };
        let begin = |port: &mut RankPort<D>| machine.on(Happening::Start, &message, port);
        let step = self.with_port_of(id, &s.envelope(), begin);
        if matches!(step, Step::NoRoom) {
            return false;
        }
        let machine = Machine::BothSend(machine);
        let long = Long::new(course, Side::Send, message, context, s.outcome(), machine, 0);
        let long = self.longs.hold(long);
        self.counters.happened(Notice::RendezvousBegun, [peer as u64, local.len as u64, 1]);
        self.learner.forget(id);
        self.tell_host(id, peer, local.len, long.way());
        self.begin_copy(id, long, &step);
        true
    }

    /// What a copy that this rank owns asks of it.
    pub(super) fn duty(&self, peer: Rank) -> Duty {
        Duty::of_owner(self.dev.caps(self.dev.distance(peer)).spare_cores)
    }

    /// A message begins that both sides copy, and is looked at from here on unless it only waits to be asked for.
    pub(super) fn begin_copy(&mut self, id: OpId, mut long: Box<Long>, step: &Step) {
        long.looking = matches!(step, Step::Looking);
        if long.looking {
            self.active.push(id);
        }
        self.ops.set(id, State::Long(long));
    }

    /// Whether this rank is to copy these bytes of a message that is offered as a whole, and alone, and can.
    pub(crate) fn is_pulled(&mut self, from: Rank, offer: &Offer, len: usize) -> bool {
        let is_direct = offer.share != Offer::NO_SHARE && offer.addr != Offer::BY_FRAMES;
        let is_alone = offer.other & Offer::ALONE != 0;
        is_direct && is_alone && both::is_pulled_whole(len) && self.dev.reach(from)
    }

    /// Copies a message that [is pulled](Rendezvous::is_pulled) to where its receive wants it, and tells its sender of the match and the end together;
    /// false if it could not be copied: then nothing has been told.
    pub(crate) fn pull(&mut self, envelope: &Envelope, offer: &Offer, local: Span) -> bool {
        let share = Share { owner: envelope.source, index: offer.share };
        let copy = |port: &mut RankPort<D>| both::pull(share, offer.addr as usize, local, port);
        self.with_port_of(OpId(0), envelope, copy).is_ok()
    }

    /// RTS has met its receive: by remote access if this rank can reach the sender's memory, by
    /// frames otherwise. In a call that posts a receive the copy may be left ([`super::crossing`]).
    pub(crate) fn begin_receive(&mut self, id: OpId, envelope: Envelope, offer: Offer) {
        let receive = self.ops.posted(id);
        let is_alone = offer.other & Offer::ALONE != 0;
        let takes = !is_alone && offer.addr != Offer::BY_FRAMES;
        if receive.long || takes {
            self.meet_rts(id, &envelope, takes);
        }
        let outcome = Outcome::of_receive(&envelope, offer.len, receive.buf);
        let (from, len) = (envelope.source, outcome.len as usize);
        self.counters.happened(Notice::RendezvousBegun, [from as u64, offer.len, 0]);
        let local = receive.buf.part(0, len);
        let is_pulled = self.is_pulled(from, &offer, len);
        let is_left = is_pulled && self.crossing.posts && self.crossing.met(id);
        if is_pulled && !is_left && self.pull(&envelope, &offer, local) {
            return self.end_receive(id, offer.len, outcome);
        }
        let by_frames = offer.addr == Offer::BY_FRAMES && offer.len > 0;
        if offer.share == Offer::NO_SHARE || by_frames || (len > 0 && !self.dev.reach(from)) {
            let message = Message { protocol: None, peer: from, local, peer_op: offer.op, len: offer.len };
            return self.ask_for_frames(id, Asked::of(&message, envelope.context, outcome));
        }
        let share = Share { owner: from, index: offer.share };
        let mut machine = both::Receiver::new(share, offer.addr as usize, len, is_alone, self.duty(from));
        if is_left {
            machine.postpone();
        }
        self.begin_with(id, envelope, offer, machine, (local, outcome));
    }

    /// Begins a receive by this machine.
    fn begin_with(
        &mut self,
        id: OpId,
        envelope: Envelope,
        offer: Offer,
        mut machine: both::Receiver,
        (local, outcome): (Span, Outcome),
    ) {
        let (peer, context) = (envelope.source, envelope.context);
        let message = Message { protocol: None, peer, local, peer_op: offer.op, len: offer.len };
        let begin = |port: &mut RankPort<D>| machine.on(Happening::Start, &message, port);
        match self.with_port_of(id, &envelope, begin) {
            Step::Done => self.end_receive(id, offer.len, outcome),
            Step::Spoilt(failure) => {
                self.end_receive(id, offer.len, Outcome { failure: Some(failure), ..outcome })
            }
            Step::Frames => self.ask_for_frames(id, Asked::of(&message, context, outcome)),
            step => {
                let machine = Machine::BothReceive(machine);
                let long = Long::new(Course::Moving, Side::Receive, message, context, outcome, machine, 0);
                let long = self.longs.hold(long);
                self.begin_copy(id, long, &step);
            }
        }
    }

    /// A receive ends with its beginning.
    fn end_receive(&mut self, id: OpId, len: u64, outcome: Outcome) {
        self.tell_end(outcome.source, len, Side::Receive, Way::Both);
        self.ops.set(id, State::Done(outcome));
    }
}

/// Reads an offer and checks what it refers to.
pub(crate) fn read_offer(dev: &impl Device, from: Rank, data: Span) -> Result<Offer, Fault> {
    if data.len != Offer::LEN {
        return Err(malformed(from, wire::Malformed(format!("an offer of {} bytes", data.len))));
    }
    let mut bytes = [0u8; Offer::LEN];
    dev.peek_bytes(data, &mut bytes);
    let offer = Offer::decode(&bytes).map_err(|e| malformed(from, e))?;
    let registers = dev.caps(dev.distance(from)).registration;
    let shares = dev.shares().filter(|_| !registers).map_or(0, Shares::count);
    if offer.share != Offer::NO_SHARE && offer.share >= shares {
        return Err(malformed(from, wire::Malformed(format!("share {} does not exist", offer.share))));
    }
    if offer.share != Offer::NO_SHARE && offer.other & Offer::FINAL == 0 {
        // To be claimed: its line lies with its sender.
        dev.opened_shares().will_change(Share { owner: from, index: offer.share });
    }
    Ok(offer)
}
