//! The receiving side: in place when the message is there, posted otherwise.

use crate::choice::tuning::PIECE_MIN;
use crate::engine::{Engine, malformed};
use crate::event::{Amount, Event};
use crate::message::matching::{Body, Envelope, Unexpected, Want};
use crate::message::op::{Failure, OpId, Outcome, Receive, Side};
use crate::rendezvous::movers::both::{self, Claims, Transfer};
use crate::rendezvous::state::{Filling, State};
use fabric::{Device, Fault, Rank, Share, ShareWord, Span};
use wire::head::{Head, Kind, Offer, eager_word};

impl<D: Device> Engine<D> {
    /// Receives a message that lies at the front of its ring, or soon will, without posting
    /// anything: in an exchange the answer is on its way.
    ///
    /// `None` if there is none, or if it is not this simple; then [`Engine::receive`] does it.
    #[inline(always)]
    pub fn receive_now(&mut self, source: Rank, context: u64, tag: i32, buf: Span) -> Option<u64> {
        if !self.matching.is_quiet(source) {
            return None;
        }
        // Nothing but this message can need attention while no operation is under way: look for
        // it for a while.
        let alone =
            self.active.is_empty() && self.peers.backlog.is_empty() && buf.len <= self.limits.eager_bytes;
        let mut looks = if alone { self.looks } else { 1 };
        let head = [eager_word(tag), context];
        if self.choice.measures(buf.len) {
            return self.receive_measured(source, head, buf, looks);
        }
        let len = loop {
            match self.dev.take(source, head, buf) {
                Ok(len) => break len,
                Err(none_yet) => {
                    looks -= 1;
                    if !none_yet || looks == 0 {
                        return None;
                    }
                }
            }
        };
        self.peers[source].seen = self.peers[source].seen.wrapping_add(1);
        Some(len as u64)
    }

    /// As [`Engine::receive_now`], and learns what copying out of a block costs: while the sender
    /// copies in, as a rule, which is what an eager message costs as a whole.
    #[cold]
    #[inline(never)]
    fn receive_measured(&mut self, source: Rank, head: [u64; 2], buf: Span, looks: u32) -> Option<u64> {
        for _ in 0..looks {
            let start = self.dev.now_ns();
            match self.dev.take(source, head, buf) {
                Ok(len) => {
                    if self.choice.is_long(len) {
                        self.choice.copied_out(len, self.dev.now_ns() - start);
                    }
                    self.peers[source].seen = self.peers[source].seen.wrapping_add(1);
                    return Some(len as u64);
                }
                Err(true) => {}
                Err(false) => return None,
            }
        }
        None
    }

    /// Starts a receive: matches a waiting message or posts it.
    #[inline(always)]
    pub fn receive(&mut self, want: Want, buf: Span) -> Result<OpId, Fault> {
        let short = buf.len <= self.choice.limit() && !self.choice.is_long(buf.len);
        if !short || self.matching.waiting() != 0 {
            return self.receive_otherwise(want, buf);
        }
        let Some(id) = self.ops.insert(State::Posted(Receive { want, buf, rtr: None, long: false })) else {
            return Err(too_many());
        };
        self.matching.post(want, id, Some(buf));
        Ok(id)
    }

    /// Whether one more operation can be pending.
    #[inline]
    pub fn has_room(&self) -> Result<(), Fault> {
        if self.ops.is_full() { Err(too_many()) } else { Ok(()) }
    }

    /// As [`Engine::receive`], in all cases.
    #[inline(never)]
    fn receive_otherwise(&mut self, want: Want, buf: Span) -> Result<OpId, Fault> {
        self.has_room()?;
        self.look_before_receive(buf);
        if let Some(message) = self.probe_matched(&want) {
            return self.receive_unexpected(want, message, buf);
        }
        let long = buf.len > self.choice.limit();
        let id = self.insert_receive(Receive { want, buf, rtr: None, long })?;
        self.speculate(id, &want, buf);
        let rtr = self.offer_buffer(id, &want, buf);
        if rtr.is_some() {
            self.ops.set(id, State::Posted(Receive { want, buf, rtr, long }));
        }
        let direct = rtr.is_none() && !long && !self.choice.measures(buf.len);
        self.matching.post(want, id, direct.then_some(buf));
        Ok(id)
    }

    fn insert_receive(&mut self, receive: Receive) -> Result<OpId, Fault> {
        self.ops.insert(State::Posted(receive)).ok_or_else(too_many)
    }

    /// The oldest message that has arrived, is not matched and that `want` accepts: its envelope
    /// and its length in bytes.
    pub fn probe(&mut self, want: &Want) -> Option<(Envelope, u64)> {
        loop {
            let found = self.matching.find(want)?;
            if self.is_offered(found) {
                return Some((found.envelope, found.body.len()));
            }
            self.matching.take_unexpected(want);
        }
    }

    /// As [`Engine::probe`], and takes the message out of matching: from here on it belongs to its
    /// receive.
    pub fn probe_matched(&mut self, want: &Want) -> Option<Unexpected> {
        loop {
            let message = self.matching.take_unexpected(want)?;
            match &message.body {
                Body::Rts(offer) if !self.claim(message.envelope.source, offer) => {}
                _ => return Some(message),
            }
        }
    }

    /// Receives a message that [`Engine::probe_matched`] has taken out. [`Engine::has_room`] says
    /// whether it can, for with an error the message is lost.
    pub fn receive_matched(&mut self, message: Unexpected, buf: Span) -> Result<OpId, Fault> {
        let e = message.envelope;
        let want = Want { source: Some(e.source), context: e.context, tag: Some(e.tag) };
        self.receive_unexpected(want, message, buf)
    }

    fn receive_unexpected(&mut self, want: Want, message: Unexpected, buf: Span) -> Result<OpId, Fault> {
        let id = self.insert_receive(Receive { want, buf, rtr: None, long: false })?;
        match &message.body {
            Body::Small(bytes, len) => {
                self.deliver(id, message.envelope, Span { addr: bytes.as_ptr() as usize, len: *len as usize })
            }
            Body::Heap(bytes) => {
                self.deliver(id, message.envelope, Span { addr: bytes.as_ptr() as usize, len: bytes.len() })
            }
            Body::Rts(offer) => self.begin_receive(id, message.envelope, *offer),
            Body::Long(rts, bytes) => {
                let along = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
                self.begin_long(id, message.envelope, *rts, along);
            }
        }
        Ok(id)
    }

    pub(crate) fn take_receive(&mut self, id: OpId) -> Receive {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) => *receive,
            other => panic!("a matched receive is posted, not {other:?}"),
        }
    }

    /// The whole payload is there.
    #[inline]
    pub(crate) fn deliver(&mut self, id: OpId, envelope: Envelope, data: Span) {
        let receive = self.take_receive(id);
        self.withdraw_offer(id, receive.rtr);
        self.recall(id, &envelope);
        let len = data.len.min(receive.buf.len);
        if self.choice.measures(len) {
            let start = self.dev.now_ns();
            self.dev.copy(receive.buf.addr, data.addr, len);
            self.choice.copied_out(len, self.dev.now_ns() - start);
        } else {
            self.dev.copy(receive.buf.addr, data.addr, len);
        }
        let outcome = Outcome::of_receive(&envelope, data.len as u64, receive.buf);
        self.ops.set(id, State::Done(outcome));
    }

    /// RTS has met its receive: by remote access if this rank can reach the sender's memory, by
    /// frames otherwise.
    pub(crate) fn begin_receive(&mut self, id: OpId, envelope: Envelope, offer: Offer) {
        let receive = self.take_receive(id);
        self.withdraw_offer(id, receive.rtr);
        self.recall(id, &envelope);
        self.peers[envelope.source].rtr_misses = 0; // long messages come: offers may pay again
        let outcome = Outcome::of_receive(&envelope, offer.len, receive.buf);
        let len = outcome.len as usize;
        let from = envelope.source;
        let by_frames = offer.addr == Offer::BY_FRAMES && offer.len > 0;
        if offer.share == Offer::NO_SHARE || by_frames || (len > 0 && !self.dev.reach(from)) {
            return self.ask_for_frames(id, receive, outcome, offer);
        }
        let share = Share { owner: from, index: offer.share };
        if len <= PIECE_MIN {
            return self.pull_whole(id, receive, share, outcome, offer);
        }
        self.dev.share_store(share, ShareWord::Length, len as u64);
        self.dev.share_store(share, ShareWord::Partner, receive.buf.addr.max(1) as u64);
        self.dev.wake(from);
        let transfer = Transfer {
            side: Side::Receive,
            peer: from,
            share,
            local: receive.buf,
            remote: offer.addr as usize,
            partner: offer.op,
            len,
            context: envelope.context,
            outcome,
            can_copy: true,
            owned: true,
            theirs: 0,
        };
        self.ops.set(id, State::Moving(Box::new(transfer)));
        self.active.push(id);
    }

    /// Copies the whole message at once; its sender learns of the match and the end together, by
    /// one line.
    fn pull_whole(&mut self, id: OpId, receive: Receive, share: Share, mut outcome: Outcome, offer: Offer) {
        let len = outcome.len as usize;
        let peer = outcome.source;
        if len > 0 {
            let start = self.choice.prices(len).then(|| self.dev.now_ns());
            match self.dev.read(peer, receive.buf.part(0, len), offer.addr as usize) {
                Ok(()) => {}
                Err(Fault::NotPermitted) => return self.ask_for_frames(id, receive, outcome, offer),
                Err(fault) => {
                    let (word, failure) = both::failed(fault, Side::Receive);
                    self.dev.share_store(share, ShareWord::Failed, word);
                    outcome.failure = Some(Box::new(failure));
                }
            }
            if let Some(start) = start {
                self.choice.moved(len, self.dev.now_ns() - start);
            }
            self.counters.count(Event::PiecePulled);
            self.counters.add(Amount::PulledBytes, len as u64);
        }
        for (word, value) in [
            (ShareWord::Length, len as u64),
            (ShareWord::Claim, Claims::whole(len).0),
            (ShareWord::Done, len as u64),
            (ShareWord::Left, 1),
            (ShareWord::Partner, receive.buf.addr.max(1) as u64),
        ] {
            self.dev.share_store(share, word, value);
        }
        self.dev.wake(peer);
        self.ops.set(id, State::Done(outcome));
    }

    pub(crate) fn ask_for_frames(&mut self, id: OpId, receive: Receive, outcome: Outcome, offer: Offer) {
        let head = Head::new(Kind::Cts, offer.op as i32, id.0 as u64).encode();
        self.control(outcome.source, head, &outcome.len.to_le_bytes());
        if outcome.len == 0 {
            return self.ops.set(id, State::Done(outcome));
        }
        let (from, tag) = (outcome.source, outcome.tag);
        let filling = Filling { receive, from, tag, message_len: offer.len, filled: 0 };
        self.ops.set(id, State::Filling(Box::new(filling)));
    }

    /// Neither side of a transfer can copy: the message comes as a whole in frames.
    #[cold]
    pub(crate) fn fall_back(&mut self, id: OpId) {
        let Some(State::Moving(transfer)) = self.ops.get(id).map(|op| &op.state) else { return };
        transfer.leave(&self.dev);
        let (receive, mut outcome) = (transfer.receive(), transfer.outcome.clone());
        let message_len = match outcome.failure.take().as_deref() {
            Some(Failure::Truncated { message_len }) => *message_len,
            _ => outcome.len,
        };
        let offer = Offer {
            len: message_len,
            addr: 0,
            share: Offer::NO_SHARE,
            op: transfer.partner,
            seen: 0,
            other: 0,
        };
        self.ask_for_frames(id, receive, outcome, offer);
    }

    /// A frame of a stream.
    pub(crate) fn on_data(&mut self, from: Rank, head: Head, data: Span) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        let Some(State::Filling(filling)) = self.ops.get_mut(id).map(|op| &mut op.state) else {
            return self.on_long_data(from, id, head.context, data);
        };
        let Filling { receive, from: expected, tag, message_len, filled } = &mut **filling;
        let limit = (*message_len).min(receive.buf.len as u64);
        let end = head.context.checked_add(data.len as u64);
        if *expected != from || end.is_none_or(|end| end > limit) {
            return Err(malformed(from, wire::Malformed("data outside its receive".into())));
        }
        *filled += data.len as u64;
        let to = receive.buf.addr + head.context as usize;
        let envelope = Envelope { source: from, context: receive.want.context, tag: *tag };
        let ended = (*filled >= limit).then(|| Outcome::of_receive(&envelope, *message_len, receive.buf));
        self.dev.copy(to, data.addr, data.len);
        if let Some(outcome) = ended {
            self.ops.set(id, State::Done(outcome));
        }
        Ok(())
    }
}

#[cold]
fn too_many() -> Fault {
    Fault::Limit(format!("{} operations are pending, which is the limit", crate::message::op::OPS_MAX))
}
