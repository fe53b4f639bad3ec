//! Early receivers offer their buffer (RTR), so that the sender can push at once, even while
//! the receiver computes (dissertation, chapter 4).
//!
//! Matching stays the receiver's business; an RTR only anticipates it. It is valid because of
//! these rules:
//! - it is sent for a receive with source and tag, unless an earlier receive without an RTR
//!   would accept the same message;
//! - it says how many messages its sender had taken in; if others are under way, one of them
//!   may match that receive, and the offer is dropped;
//! - it says how many earlier receives for the same envelope are posted; if the other side does
//!   not hold an offer of each of them, because one was dropped, the next message belongs to
//!   that one, and this offer is dropped too;
//! - every later message with the same envelope consumes the oldest offer, whether it uses it or
//!   not, by clearing the share's `Open` word, which cancelling and matching clear too: exactly
//!   one of them succeeds;
//! - `Matched` announces the use in the order of messages.
//!
//! A peer whose offers come to nothing [`MISSES_MAX`] times in a row gets none until it sends a
//! long message again.

use crate::choice::way::Way;
use crate::event::{Event, Happening as Told};
use crate::message::malformed;
use crate::message::matching::{Envelope, Want};
use crate::message::op::{OpId, Outcome, Sending, Side};
use crate::message::peers::Offered;
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::both::Transfer;
use crate::rendezvous::state::State;
use fabric::{Device, Fault, Rank, Share, ShareWord, Shares, Span};
use wire::head::{Head, Kind, Offer};

/// Offers kept per peer; more are dropped, which costs a handshake, not correctness.
const OFFERS_MAX: usize = 64;
/// Useless offers in a row after which no more are made.
const MISSES_MAX: u8 = 8;

impl<D: Device> Rendezvous<'_, D> {
    /// Offers the buffer of a receive that is about to be posted; returns the share if it did.
    pub(crate) fn offer_buffer(&mut self, id: OpId, want: &Want, buf: Span) -> Option<u32> {
        let (Some(source), Some(tag)) = (want.source, want.tag) else { return None };
        if !self.may_offer_to(source) {
            return None;
        }
        let envelope = Envelope { source, context: want.context, tag };
        let earlier = self.offered_before(&envelope)?;
        let index = self.open_share(source)?;
        self.dev.opened_shares().store(Share { owner: self.dev.me(), index }, ShareWord::Open, id.0 as u64);
        let offer = Offer {
            len: buf.len as u64,
            addr: buf.addr as u64,
            share: index,
            op: id.0,
            seen: self.peers[source].seen,
            other: earlier,
        };
        let body = offer.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        if !self.dev.try_send(source, Head::new(Kind::Rtr, tag, want.context).encode(), data) {
            self.close_share(Some(index));
            return None;
        }
        self.counters.count(Event::RtrSent);
        Some(index)
    }

    /// Whether offers to this peer are of use.
    fn may_offer_to(&mut self, source: Rank) -> bool {
        let wanted = self.rules.rtr
            && self.rules.force.is_none()
            && source != self.dev.me()
            && self.peers[source].rtr_misses < MISSES_MAX
            && self.peers[source].control.is_empty();
        wanted && self.copies(source)
    }

    /// How many earlier receives for the same message have their offers out; `None` if one has none.
    fn offered_before(&self, envelope: &Envelope) -> Option<u32> {
        let mut earlier = 0;
        for op in self.matching.posted_for(envelope) {
            match self.ops.get(op).map(|op| &op.state) {
                Some(State::Posted(receive)) if receive.rtr.is_some() => earlier += 1,
                _ => return None,
            }
        }
        Some(earlier)
    }

    /// Takes an offer back, because its receive has been matched otherwise or is cancelled.
    /// False if the sender was faster.
    pub(crate) fn withdraw_offer(&mut self, id: OpId, rtr: Option<u32>) -> bool {
        let Some(index) = rtr else { return true };
        let share = Share { owner: self.dev.me(), index };
        let ours = self.dev.opened_shares().take(share, ShareWord::Open, id.0 as u64);
        if let Some(State::Posted(receive)) = self.ops.get(id).map(|op| &op.state)
            && let Some(source) = receive.want.source
        {
            self.peers[source].rtr_misses = self.peers[source].rtr_misses.saturating_add(1);
        }
        if ours {
            self.close_share(Some(index));
        }
        ours
    }

    /// An eager message has met a receive: what was offered for it is void.
    #[cold]
    pub(crate) fn met_by_eager(&mut self, id: OpId, rtr: Option<u32>, envelope: &Envelope) {
        self.withdraw_offer(id, rtr);
        self.recall(id, envelope);
    }

    /// RTR: keep the offer unless a message that its receiver had not seen is under way.
    pub(crate) fn on_rtr(&mut self, from: Rank, head: Head, offer: Offer) {
        let (context, tag) = (head.context, head.tag);
        let same = |o: &Offered| o.context == context && o.tag == tag;
        let dev = &*self.dev;
        let peer = &mut self.peers[from];
        let withdrawn = |o: &Offered| {
            let share = Share { owner: from, index: o.offer.share };
            dev.opened_shares().load(share, ShareWord::Open) != o.offer.op as u64
        };
        peer.offers.retain(|o| !same(o) || !withdrawn(o));
        let held = peer.offers.iter().filter(|o| same(o)).count();
        let crossed = offer.seen != peer.sent || !peer.queue.is_empty() || held != offer.other as usize;
        if crossed || peer.offers.len() >= OFFERS_MAX || offer.share == Offer::NO_SHARE {
            self.counters.count(Event::RtrDropped);
        } else {
            peer.offers.push(Offered { context, tag, offer });
        }
        peer.update_plain();
    }

    /// Consumes the oldest offer for this message; returns it if the message can go there.
    pub(crate) fn take_offer(&mut self, s: &mut Sending, rendezvous: bool) -> Option<Offer> {
        loop {
            let peer = &mut self.peers[s.to];
            let at = peer.offers.iter().position(|o| o.context == s.context && o.tag == s.tag)?;
            let offer = peer.offers.remove(at).offer;
            peer.update_plain();
            let share = Share { owner: s.to, index: offer.share };
            if !self.dev.opened_shares().take(share, ShareWord::Open, offer.op as u64) {
                continue; // withdrawn
            }
            s.met = true;
            let fits = rendezvous && s.data.len as u64 <= offer.len && s.data.len > 0 && self.dev.reach(s.to);
            if !fits {
                self.dev.opened_shares().store(share, ShareWord::Left, 2);
                self.counters.count(Event::RtrDropped);
                return None;
            }
            self.counters.count(Event::RtrTaken);
            return Some(offer);
        }
    }

    /// Announces that the message goes into the offered buffer, and begins to copy.
    pub(crate) fn leave_matched(&mut self, id: OpId, s: Sending, offer: Offer) -> bool {
        let reply = Offer {
            len: s.data.len as u64,
            addr: s.data.addr as u64,
            share: offer.share,
            op: id.0,
            seen: 0,
            other: offer.op,
        };
        let body = reply.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        if !self.dev.try_send(s.to, Head::new(Kind::Matched, s.tag, s.context).encode(), data) {
            return false;
        }
        self.counters.happened(Told::RendezvousBegun, [s.to as u64, s.data.len as u64, 1]);
        self.tell_host(id, s.to, s.data.len, Way::Both);
        let transfer = Transfer {
            side: Side::Send,
            peer: s.to,
            share: Share { owner: s.to, index: offer.share },
            local: s.data,
            remote: offer.addr as usize,
            partner: offer.op,
            len: s.data.len,
            context: s.context,
            outcome: s.outcome(),
            can_copy: true,
            owned: true,
            helps: true,
            alone: false,
            theirs: 0,
        };
        self.ops.set(id, State::Moving(Box::new(transfer)));
        self.active.push(id);
        true
    }

    /// Matched: the sender has taken our offer.
    pub(crate) fn on_matched(&mut self, envelope: Envelope, offer: Offer) -> Result<(), Fault> {
        let from = envelope.source;
        let id = OpId(offer.other);
        let receive = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(r)) if r.want.source == Some(from) && r.rtr == Some(offer.share) => *r,
            _ => return Err(malformed(from, wire::Malformed("Matched for an offer that is not out".into()))),
        };
        self.matching.withdraw(&receive.want, id);
        self.peers[from].rtr_misses = 0;
        self.counters.happened(Told::Matched, [from as u64, envelope.tag as u32 as u64, offer.len, 0]);
        self.counters.happened(Told::RendezvousBegun, [from as u64, offer.len, 0]);
        let outcome = Outcome::of_receive(&envelope, offer.len, receive.buf);
        let mut transfer = Transfer {
            side: Side::Receive,
            peer: from,
            share: Share { owner: self.dev.me(), index: offer.share },
            local: receive.buf,
            remote: offer.addr as usize,
            partner: offer.op,
            len: outcome.len as usize,
            context: envelope.context,
            outcome,
            can_copy: true,
            owned: false,
            helps: true,
            alone: false,
            theirs: 0,
        };
        if !self.dev.reach(from) {
            transfer.refuse(&*self.dev);
        }
        self.ops.set(id, State::Moving(Box::new(transfer)));
        self.active.push(id);
        Ok(())
    }
}
