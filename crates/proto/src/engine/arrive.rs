//! What arrives: frames are taken in, matched, and handed to whom they belong.

use super::Engine;
use crate::choice::habits::Manner;
use crate::event::{Event, Notice};
use crate::message::malformed;
use crate::message::matching::{Body, Direct, Envelope};
use crate::message::op::Outcome;
use crate::rendezvous::ahead::Met;
use crate::rendezvous::cancel::claim;
use crate::rendezvous::shares::read_offer;
use fabric::{Device, Fault, Frame, Rank, Span};
use wire::head::{FrameType, Head, Offer, eager_tag};

/// Frames taken from one source before the others get their turn.
const BATCH: usize = 64;

/// Bytes of a piece of a message that is long to copy.
const LONG: usize = 4096;

/// What a frame says it is.
#[inline(always)]
fn decoded(from: Rank, frame: &Frame) -> Result<Head, Fault> {
    Head::decode(frame.head).map_err(|e| malformed(from, e))
}

impl<D: Device> Engine<D> {
    /// Takes frames from one source. What lies behind a message whose receive was posted waits for the next look: the application may
    /// wait for nothing else, and what is taken before its receive is posted is copied there, before what the application sends next. Over
    /// registered memory it does not wait: the sender has few slots, and wants them back.
    pub(crate) fn drain(&mut self, source: Rank) -> Result<bool, Fault> {
        let drained = self.drain_frames(source);
        if !self.ahead.is_empty() {
            self.rendezvous().begin_met();
        }
        drained
    }

    /// As [`Engine::drain`] but for receives that have met long messages: they are yet to begin.
    fn drain_frames(&mut self, source: Rank) -> Result<bool, Fault> {
        let mut taken = 0;
        while taken < BATCH {
            let (direct, is_empty) = self.drain_direct(source, BATCH - taken);
            taken += direct;
            if is_empty || taken == BATCH || direct > 0 && !self.path(source).registration {
                break;
            }
            let Some(frame) = self.dev.peek(source) else { break };
            let head = decoded(source, &frame)?;
            let is_piece = head.kind == FrameType::Data && frame.data.len >= LONG;
            if !self.handle(source, head, frame)? {
                break;
            }
            self.dev.pop(source);
            taken += 1;
            // Copies take their time: behind a long piece this rank may have one to send, and the application a message, and what
            // waits for room may find some behind each.
            if (is_piece || !self.peers.backlog.is_empty()) && !self.path(source).registration {
                break;
            }
        }
        self.news |= taken > 0;
        Ok(taken > 0)
    }

    /// Takes frames from one source up to the first RTS for a copy: the copy takes its time.
    pub(crate) fn drain_until_copy(&mut self, source: Rank) -> Result<(), Fault> {
        for _ in 0..BATCH {
            let Some(frame) = self.dev.peek(source) else { break };
            let head = decoded(source, &frame)?;
            if head.kind == FrameType::Rts || !self.handle(source, head, frame)? {
                break;
            }
            self.dev.pop(source);
            self.news = true;
        }
        Ok(())
    }

    /// Takes up to `most` eager messages straight into the buffers posted for them, as long as
    /// they come in the order of the receives: (how many, whether none is left).
    #[inline]
    pub(crate) fn drain_direct(&mut self, source: Rank, most: usize) -> (usize, bool) {
        let mut taken = 0;
        let mut is_empty = false;
        while taken < most
            && let Some(Direct { head, buf, op }) = self.matching.next_direct(source)
        {
            match self.dev.take(source, head, buf) {
                Ok(len) => {
                    self.matching.pop_direct(source);
                    self.ops.received(op, || received(source, head, len));
                    taken += 1;
                }
                Err(none_yet) => {
                    is_empty = none_yet;
                    break;
                }
            }
        }
        self.peers.hear(source, taken as u32);
        (taken, is_empty)
    }

    /// Handles one frame; false if it must stay where it is.
    fn handle(&mut self, from: Rank, head: Head, frame: Frame) -> Result<bool, Fault> {
        let envelope = Envelope { source: from, context: head.context, tag: head.tag };
        match head.kind {
            FrameType::Eager => Ok(self.on_eager(envelope, frame.data)),
            FrameType::Rts => {
                let offer = read_offer(&self.dev, from, frame.data)?;
                Ok(self.on_rts(envelope, offer))
            }
            FrameType::Matched => {
                let offer = read_offer(&self.dev, from, frame.data)?;
                // What takes an offer is copied by both.
                self.came(&envelope, offer.len, Manner::Shared);
                self.rendezvous().on_matched(envelope, offer).map(|()| true)
            }
            FrameType::Epoch => self.on_epoch(from, head, frame).map(|()| true),
            FrameType::LongRts if !self.has_place(&envelope, frame.data.len) => Ok(false),
            _ => self.rendezvous().handle(from, head, frame).map(|()| true),
        }
    }

    /// An eager message: its receive takes it, or it is kept; false if it must stay where it is.
    fn on_eager(&mut self, envelope: Envelope, data: Span) -> bool {
        if self.eager_limit(envelope.source).is_tried(data.len) {
            self.came_in_block(&envelope, data.len);
        }
        let Some(op) = self.matching.take_posted(&envelope) else { return self.keep_eager(envelope, data) };
        self.counters.happened(Notice::Matched, matched(&envelope, data.len as u64, false));
        self.peers.hear(envelope.source, 1);
        self.deliver(op, envelope, data);
        true
    }

    /// An eager message has come that may come by rendezvous. The first one behind such says that its sender goes by blocks now.
    fn came_in_block(&mut self, envelope: &Envelope, len: usize) {
        if self.peers[envelope.source].came(len as u64, false) {
            self.came(envelope, len as u64, Manner::Blocks);
        }
    }

    /// What the next messages from there, and those to there, have of an RTS.
    pub(crate) fn heed_rts(&mut self, envelope: &Envelope, offer: &Offer) {
        self.peers.hear(envelope.source, 1);
        self.peers[envelope.source].came(offer.len, true);
        if offer.other & Offer::CHOSEN != 0 {
            self.came(envelope, offer.len, Manner::of_flags(offer.other));
        }
    }

    /// A message has come in this manner, as its sender has chosen.
    fn came(&mut self, envelope: &Envelope, len: u64, manner: Manner) {
        let (from, me) = (envelope.source, self.dev.me());
        if let Some(habits) = &mut self.habits {
            habits.came(from, me, envelope.context, len as usize, manner);
        }
    }

    /// RTS: its receive takes it, unless it is cancelled, or it is kept; false if it must stay where it is.
    fn on_rts(&mut self, envelope: Envelope, offer: Offer) -> bool {
        if !self.has_place(&envelope, 0) {
            return false;
        }
        self.heed_rts(&envelope, &offer);
        if !self.matching.expects(&envelope) {
            self.counters.count(Event::Unexpected);
            self.matching.keep(envelope, Body::Rts(offer));
            if offer.other & Offer::EAGER != 0 {
                self.idle.offered(self.dev.now_ns());
            }
        } else if claim(&self.dev, envelope.source, &offer)
            && let Some(op) = self.matching.take_posted(&envelope)
        {
            self.counters.happened(Notice::Matched, matched(&envelope, offer.len, false));
            // Others may be behind it, to be copied by the same call.
            if self.ahead.meet(Met { op, envelope, offer }) {
                self.rendezvous().begin_met();
            }
        }
        true
    }

    /// Begins to keep the messages that their senders might have sent eagerly, and which no receive has taken for
    /// so long that one of these senders may be who is waited for.
    #[cold]
    pub(crate) fn fetch_offered(&mut self) {
        let is_eager = |offer: &Offer| offer.other & Offer::EAGER != 0;
        for message in self.matching.offered(is_eager) {
            let (envelope, offer) = (message.envelope, message.offer);
            let fits = self.matching.fits(offer.len as usize, self.limits.unexpected_bytes);
            if !fits || self.ops.is_full() {
                return self.idle.hold(); // until back-pressure gives way
            }
            if let Some(body) = self.rendezvous().begin_keeping(envelope, offer) {
                self.matching.now_kept(&message, body);
            }
        }
        self.idle.none_offered();
    }

    /// Whether a message of which `len` bytes are here is wanted, or may be kept.
    fn has_place(&mut self, envelope: &Envelope, len: usize) -> bool {
        let fits = self.matching.fits(len, self.limits.unexpected_bytes);
        if !fits && !self.matching.expects(envelope) {
            self.idle.hold();
            return false;
        }
        true
    }

    fn copied(&mut self, data: Span) -> Vec<u8> {
        let mut bytes = self.matching.memory.take(data.len);
        self.dev.copy(bytes.as_mut_ptr() as usize, data.addr, data.len);
        bytes
    }

    /// A payload that the device retains, in memory of this rank.
    pub(crate) fn moved_out(&mut self, source: Rank, data: Span) -> Body {
        let bytes = self.copied(data);
        self.dev.release(source, data);
        self.counters.count(Event::MovedOut);
        Body::Heap(bytes)
    }

    /// Payloads of `source` that the device retains are moved out, for it finds no room else.
    #[cold]
    pub(crate) fn make_way(&mut self, source: Rank) {
        for (order, data) in self.matching.in_place(source) {
            let body = self.moved_out(source, data);
            self.matching.replace(source, order, body);
        }
    }

    /// Keeps an eager message that nobody waits for, unless too many bytes are kept already.
    fn keep_eager(&mut self, envelope: Envelope, data: Span) -> bool {
        if !self.matching.fits(data.len, self.limits.unexpected_bytes) {
            self.idle.hold();
            return false;
        }
        let mut small = [0u8; 40];
        let body = if data.len <= small.len() {
            self.dev.copy(small.as_mut_ptr() as usize, data.addr, data.len);
            Body::Small(small, data.len as u8)
        } else if self.dev.retain(envelope.source) {
            self.counters.count(Event::InPlace);
            Body::InPlace(data)
        } else {
            Body::Heap(self.copied(data))
        };
        self.peers.hear(envelope.source, 1);
        self.counters.count(Event::Unexpected);
        self.matching.keep(envelope, body);
        true
    }
}

/// What tools are told of a message that has met its receive.
pub(crate) fn matched(envelope: &Envelope, bytes: u64, was_unexpected: bool) -> [u64; 4] {
    [envelope.source as u64, envelope.tag as u32 as u64, bytes, was_unexpected.into()]
}

/// How the receive of an eager message with this header ends when it fits.
#[inline(always)]
fn received(source: Rank, head: [u64; 2], len: usize) -> Outcome {
    Outcome { source, tag: eager_tag(head[0]), len: len as u64, cancelled: false, failure: None }
}
