//! The receiving side: in place when the message is there, posted otherwise.

use crate::choice::eager_limit::EagerLimit;
use crate::choice::facts::Path;
use crate::choice::way::Way;
use crate::engine::Engine;
use crate::engine::arrive::matched;
use crate::event::{Event, Notice};
use crate::message::matching::{Body, Envelope, Unexpected, Want};
use crate::message::op::{OpId, Outcome, Receive, Side};
use crate::rendezvous::cancel::{claim, is_offered, unclaim};
use crate::rendezvous::rtr::Void;
use crate::rendezvous::shares::read_offer;
use crate::rendezvous::state::State;
use fabric::{Device, Distance, Fault, Rank, Reading, Span};
use wire::head::{FrameType, Head, Offer, eager_word};

/// Messages under way that are looked at one by one before a receive looks for its message.
const FEW: usize = 4;

/// What has become of a message that is read where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InPlace {
    /// It has not come, or not as a whole.
    Coming,
    /// It has been read to its end.
    Read,
    /// It comes into the buffer of this receive.
    Posted(OpId),
}

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
        let head = [eager_word(tag), context];
        if EagerLimit::may_measure(buf.len) && self.eager_limit_mut(source).measures(buf.len) {
            let measured = self.receive_measured(source, head, buf);
            return measured.or_else(|| self.receive_offered(Envelope { source, context, tag }, buf));
        }
        let found = match self.dev.take_at_once(source, head, buf) {
            Ok(len) => Some(len),
            Err(true) => self.look_on(source, head, buf),
            Err(false) => None,
        };
        let Some(len) = found else { return self.receive_offered(Envelope { source, context, tag }, buf) };
        self.peers.hear(source, 1);
        Some(len as u64)
    }

    /// Looks again for a message that has not come. Nothing but this message can need attention while no
    /// operation is under way but those that are left to others: then for a while.
    #[inline(never)]
    fn look_on(&mut self, source: Rank, head: [u64; 2], buf: Span) -> Option<usize> {
        for _ in 1..self.looks_for(source, buf) {
            match self.dev.take_at_once(source, head, buf) {
                Ok(len) => return Some(len),
                Err(true) => {}
                Err(false) => return None,
            }
        }
        None
    }

    /// Looks for the message of a receive, where it comes from alone and so sooner than by looks around, as long as [`Engine::receive_now`] would:
    /// if it is the only one posted, and comes eagerly. Whether it has come.
    #[inline(never)]
    pub fn look_for(&mut self, op: OpId) -> bool {
        let Some(State::Posted(receive)) = self.ops.get(op).map(|op| &op.state) else { return false };
        let (Some(source), buf) = (receive.want.source, receive.buf) else { return false };
        if !self.matching.has_one_posted() {
            return false;
        }
        for _ in 0..self.looks_for(source, buf) {
            match self.drain_direct(source, 1) {
                (0, true) => {}
                (taken, _) => {
                    self.news |= taken > 0;
                    return taken > 0;
                }
            }
        }
        false
    }

    /// Receives a message whose offer lies at the front of its ring, if it is to be copied as a whole by its receiver alone and is so copied now. If
    /// not, nothing has been done.
    #[cold]
    #[inline(never)]
    fn receive_offered(&mut self, envelope: Envelope, buf: Span) -> Option<u64> {
        let source = envelope.source;
        let (found, offer) = self.offer_at_front(source)?;
        let fits = found == envelope && offer.len <= buf.len as u64;
        if !fits
            || !self.rendezvous().is_pulled(source, &offer, offer.len as usize)
            || !claim(&self.dev, source, &offer)
        {
            return None;
        }
        if !self.rendezvous().pull(&envelope, &offer, buf.part(0, offer.len as usize)) {
            unclaim(&self.dev, source, &offer);
            return None;
        }
        self.dev.pop(source);
        self.heed_rts(&envelope, &offer);
        self.counters.happened(Notice::Matched, matched(&envelope, offer.len, false));
        self.counters.happened(Notice::RendezvousBegun, [source as u64, offer.len, 0]);
        self.rendezvous().tell_end(source, offer.len, Side::Receive, Way::Both);
        Some(offer.len)
    }

    /// The offer at the front of the ring from there, if it is one and this rank may reach what is offered.
    #[inline]
    fn offer_at_front(&mut self, source: Rank) -> Option<(Envelope, Offer)> {
        if !self.path(source).reach {
            return None;
        }
        let frame = self.dev.peek(source)?;
        let Head { kind, context, tag, .. } = Head::decode(frame.head).ok()?;
        let offer = (kind == FrameType::Rts).then(|| read_offer(&self.dev, source, frame.data))?;
        Some((Envelope { source, context, tag }, offer.ok()?))
    }

    /// Takes the offer at the front of its ring that this receive alone is for: it need not wait first to be found.
    fn take_offer(&mut self, want: &Want) -> Option<(Envelope, Offer)> {
        let source = want.source?;
        let (envelope, offer) = self.offer_at_front(source)?;
        if !want.accepts(&envelope) || !self.matching.leaves(&envelope) || !claim(&self.dev, source, &offer) {
            return None;
        }
        self.dev.pop(source);
        self.heed_rts(&envelope, &offer);
        self.counters.happened(Notice::Matched, matched(&envelope, offer.len, false));
        Some((envelope, offer))
    }

    /// How often to look for a message before its receive is posted.
    fn looks_for(&self, source: Rank, buf: Span) -> u32 {
        let is_alone = self.active.is_empty() || self.waits_for_pulls();
        let looks = is_alone && self.peers.backlog.is_empty() && buf.len <= self.eager_limit(source).max();
        if looks { self.looks[self.dev.distance(source) as usize] } else { 1 }
    }

    /// Whether all that is under way are a few messages that their receivers will copy without this rank.
    #[inline(never)]
    fn waits_for_pulls(&self) -> bool {
        let is_pulled = |id: &OpId| match self.ops.get(*id).map(|op| &op.state) {
            Some(State::Long(long)) => long.machine.is_to_be_pulled(),
            _ => false,
        };
        self.active.len() <= FEW && self.active.iter().all(is_pulled)
    }

    /// As [`Engine::receive_now`], and learns what copying out of a block costs: while the sender
    /// copies in, as a rule, which is what an eager message costs as a whole.
    #[cold]
    #[inline(never)]
    fn receive_measured(&mut self, source: Rank, head: [u64; 2], buf: Span) -> Option<u64> {
        for _ in 0..self.looks_for(source, buf) {
            let start = self.dev.now_ns();
            match self.dev.take_at_once(source, head, buf) {
                Ok(len) => {
                    let limit = &mut self.eager_limits[self.dev.distance(source) as usize];
                    if limit.is_long(len) {
                        limit.copied_out(len, self.dev.now_ns() - start);
                    }
                    self.peers.hear(source, 1);
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
        let is_short = !EagerLimit::may_measure(buf.len) && buf.len <= self.limit_from(want.source);
        if !is_short || self.matching.waiting() != 0 {
            return self.receive_otherwise(want, buf);
        }
        let Some(id) = self.ops.insert_with(|| State::Posted(Receive::new(want, buf))) else {
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
        let expects = self.expects_rendezvous(&want, buf.len);
        let long = expects || self.may_be_asked(&want, buf.len);
        self.has_room()?; // or a message that has arrived would be lost
        if expects && let Some((envelope, offer)) = self.take_offer(&want) {
            let id = self.insert_receive(Receive::new(want, buf))?;
            self.begin_offered(id, envelope, offer);
            return Ok(id);
        }
        if expects && let Err(fault) = self.look_before_receive(want.source) {
            self.fault = Some(fault);
        }
        self.has_room()?;
        if let Some(message) = self.take_arrived(&want) {
            return self.receive_unexpected(want, message, buf);
        }
        let receive = Receive { long, ..Receive::new(want, buf) };
        let id = self.insert_receive(receive)?;
        let rtr = if expects { self.rendezvous().offer(id, &receive) } else { None };
        if rtr.is_some() {
            self.ops.set(id, State::Posted(Receive { rtr, ..receive }));
        }
        let at = want.source.map_or(Distance::Host, |source| self.dev.distance(source));
        let direct = rtr.is_none() && !long && !self.eager_limits[at as usize].measures(buf.len);
        self.matching.post(want, id, direct.then_some(buf));
        Ok(id)
    }

    /// Whether a message for a receive of this length is to be expected by rendezvous: if it fits no block,
    /// or the last one like it came so.
    fn expects_rendezvous(&self, want: &Want, len: usize) -> bool {
        len > self.limit_from(want.source)
            || want.source.is_some_and(|source| self.peers[source].comes_by_rendezvous(len))
    }

    /// Whether the sender of a message for a receive of this length may ask for an answer, though not as a rule: it is synchronous, or found
    /// no room.
    fn may_be_asked(&self, want: &Want, len: usize) -> bool {
        let asks = |path: &Path| path.registration && len > path.frame_bytes;
        want.source
            .map_or_else(|| self.learner.facts.paths.iter().any(asks), |source| asks(self.path(source)))
    }

    /// The progress call before a receive that expects a rendezvous (section 4.2.2): an RTS may
    /// have come. Then no RTR crosses it, and a sender that waits can copy while this rank computes.
    fn look_before_receive(&mut self, source: Option<Rank>) -> Result<(), Fault> {
        if self.rendezvous().speculates(source) {
            return self.progress().map(drop);
        }
        let source = source.filter(|source| self.path(*source).reach);
        source.map_or(Ok(()), |source| self.posting(|engine| engine.drain(source)).map(drop))
    }

    /// Does what belongs to the call that posts a receive: copies may be left for what is [sent behind it](crate::rendezvous::crossing).
    fn posting<R>(&mut self, begin: impl FnOnce(&mut Engine<D>) -> R) -> R {
        self.crossing.posts = true;
        let begun = begin(self);
        self.crossing.posts = false;
        begun
    }

    fn insert_receive(&mut self, receive: Receive) -> Result<OpId, Fault> {
        self.ops.insert(State::Posted(receive)).ok_or_else(too_many)
    }

    /// The oldest message that has arrived, is not matched and that `want` accepts: its envelope
    /// and its length in bytes.
    pub fn probe(&mut self, want: &Want) -> Option<(Envelope, u64)> {
        loop {
            let found = self.matching.find(want)?;
            if is_offered(&self.dev, found) {
                return Some((found.envelope, found.body.len()));
            }
            self.matching.take_unexpected(want);
        }
    }

    /// As [`Engine::probe`], and takes the message out of matching: from here on it belongs to its
    /// receive, which may never come.
    pub fn probe_matched(&mut self, want: &Want) -> Option<Unexpected> {
        let mut message = self.take_arrived(want)?;
        if let Body::InPlace(data) = message.body {
            message.body = self.moved_out(message.envelope.source, data);
        }
        Some(message)
    }

    /// The oldest message that has arrived and that `want` accepts, for its receive.
    fn take_arrived(&mut self, want: &Want) -> Option<Unexpected> {
        loop {
            let message = self.matching.take_unexpected(want)?;
            match &message.body {
                Body::Rts(offer) if !claim(&self.dev, message.envelope.source, offer) => {}
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

    /// The bytes of a message that [`Engine::probe_matched`] has taken out, if all are here and it alone has them: then it is received by
    /// that. They are to be given back ([`Engine::give_memory`]).
    pub fn take_whole(&mut self, message: Unexpected) -> Result<Vec<u8>, Unexpected> {
        let Body::Heap(bytes) = message.body else { return Err(message) };
        self.counters.happened(Notice::Matched, matched(&message.envelope, bytes.len() as u64, true));
        Ok(bytes)
    }

    /// Memory for a message, with anything in it: what one has left before ([`Engine::give_memory`]), or new; of more than `MEMORY_MAX` none is left.
    pub fn take_memory(&mut self, len: usize) -> Vec<u8> {
        self.matching.memory.take(len)
    }

    /// The message is over for which this was taken.
    pub fn give_memory(&mut self, bytes: Vec<u8>) {
        self.matching.memory.give(bytes);
    }

    /// Whether a message of `len` bytes from there may be found where it can be read without a copy ([`Engine::read_in_place`]): not if the last one
    /// like it was an offer, whose receive had better be posted. Now and then one is to be received as any other, that it is known what its copy takes.
    pub fn reads_in_place(&mut self, source: Rank, len: usize) -> bool {
        let measures = |limit: &mut EagerLimit| EagerLimit::may_measure(len) && limit.measures(len);
        self.dev.reads_in_place(source)
            && len <= self.eager_limit(source).max()
            && !self.peers[source].comes_by_rendezvous(len)
            && !measures(self.eager_limit_mut(source))
    }

    /// Receives a message that nobody has posted a receive for, as long as `buf`, by reading it where it lies: in the memory of the device, or where it
    /// waits. If it lies in neither its receive is posted, into `buf`; nothing of it has been read then. What has been read in part is read to its end.
    pub fn read_in_place(
        &mut self,
        want: Want,
        buf: Span,
        done: &mut usize,
        each: &mut dyn FnMut(usize, Span),
    ) -> Result<InPlace, Fault> {
        let (Some(source), Some(tag)) = (want.source, want.tag) else {
            return Ok(InPlace::Posted(self.receive(want, buf)?));
        };
        let mut reading = Reading { head: [eager_word(tag), want.context], len: buf.len, done: *done, each };
        let mut found = self.read_waiting(want, buf, &mut reading)?;
        if found == InPlace::Coming && self.matching.leaves(&Envelope { source, context: want.context, tag })
        {
            found = self.read_coming(source, buf, &mut reading);
        }
        *done = reading.done;
        if found == InPlace::Read {
            self.counters.count(Event::ReadInPlace);
        }
        Ok(found)
    }

    /// The same with a message that lies at the front of its ring, or soon will.
    fn read_coming(&mut self, source: Rank, buf: Span, reading: &mut Reading<'_>) -> InPlace {
        for _ in 0..self.looks_for(source, buf) {
            match self.dev.take_in_place(source, reading) {
                Ok(()) => {
                    self.peers.hear(source, 1);
                    return InPlace::Read;
                }
                Err(true) => {}
                Err(false) => break,
            }
        }
        InPlace::Coming
    }

    /// The same with a message that waits, if it does.
    fn read_waiting(&mut self, want: Want, buf: Span, reading: &mut Reading<'_>) -> Result<InPlace, Fault> {
        if self.matching.waiting() == 0 {
            return Ok(InPlace::Coming);
        }
        self.has_room()?; // or a message that has arrived would be lost
        let Some(message) = self.take_arrived(&want) else { return Ok(InPlace::Coming) };
        let Unexpected { envelope, body, .. } = &message;
        match body {
            Body::InPlace(data) if data.len == buf.len => {
                reading.read_rest(*data);
                self.dev.release(envelope.source, *data);
            }
            Body::Heap(bytes) if bytes.len() == buf.len => {
                reading.read_rest(Span { addr: bytes.as_ptr() as usize, len: bytes.len() });
            }
            _ if reading.done > 0 => {
                return Err(Fault::Device(format!(
                    "a message of rank {} was replaced by another one",
                    envelope.source
                )));
            }
            _ => return Ok(InPlace::Posted(self.receive_unexpected(want, message, buf)?)),
        }
        self.counters.happened(Notice::Matched, matched(envelope, buf.len as u64, true));
        if let Body::Heap(bytes) = message.body {
            self.matching.memory.give(bytes);
        }
        Ok(InPlace::Read)
    }

    /// Whether such a message waits that is still with its sender, or on its way.
    pub fn is_offered(&self, want: &Want) -> bool {
        let waits = self.matching.waiting() != 0;
        let body = if waits { self.matching.find(want).map(|message| &message.body) } else { None };
        matches!(body, Some(Body::Rts(_) | Body::Long(..) | Body::Coming(..)))
    }

    /// An offer has met the receive that is being posted.
    fn begin_offered(&mut self, id: OpId, envelope: Envelope, offer: Offer) {
        self.posting(|engine| engine.rendezvous().begin_receive(id, envelope, offer));
    }

    fn receive_unexpected(&mut self, want: Want, message: Unexpected, buf: Span) -> Result<OpId, Fault> {
        let id = self.insert_receive(Receive::new(want, buf))?;
        self.counters.happened(Notice::Matched, matched(&message.envelope, message.body.len(), true));
        let span = |bytes: &[u8]| Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
        match message.body {
            Body::Small(bytes, len) => self.deliver(id, message.envelope, span(&bytes[..len as usize])),
            Body::Heap(bytes) => {
                self.deliver(id, message.envelope, span(&bytes));
                self.matching.memory.give(bytes);
            }
            Body::InPlace(data) => {
                self.deliver(id, message.envelope, data);
                self.dev.release(message.envelope.source, data);
            }
            Body::Rts(offer) => self.begin_offered(id, message.envelope, offer),
            Body::Long(rts, bytes) => {
                self.rendezvous().begin_long(id, message.envelope, rts, span(&bytes));
                self.matching.memory.give(bytes);
            }
            Body::Coming(keeping, bytes) => {
                self.rendezvous().begin_following(id, message.envelope, keeping, bytes)
            }
        }
        Ok(id)
    }

    /// The whole payload is there.
    #[inline]
    pub(crate) fn deliver(&mut self, id: OpId, envelope: Envelope, data: Span) {
        let receive = self.ops.posted(id);
        if receive.long {
            self.rendezvous().void_rtr(id, Void::Eager);
        }
        let len = data.len.min(receive.buf.len);
        let limit = &mut self.eager_limits[self.dev.distance(envelope.source) as usize];
        if limit.measures(len) {
            let start = self.dev.now_ns();
            self.dev.copy(receive.buf.addr, data.addr, len);
            limit.copied_out(len, self.dev.now_ns() - start);
        } else {
            self.dev.copy(receive.buf.addr, data.addr, len);
        }
        let outcome = Outcome::of_receive(&envelope, data.len as u64, receive.buf);
        self.ops.set(id, State::Done(outcome));
    }
}

#[cold]
fn too_many() -> Fault {
    Fault::Limit(format!("{} operations are pending, which is the limit", crate::message::op::OPS_MAX))
}
