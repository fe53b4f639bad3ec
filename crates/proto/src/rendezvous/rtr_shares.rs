//! RTRs by shares: both sides can change the word `Open`, which settles without a message who was first.
//!
//! The sender that consumes an RTR clears it, and so does the receiver whose receive is matched otherwise or cancelled. `Matched`
//! announces the use in the order of messages. The rules are in [`super::rtr`].

use crate::choice::way::Way;
use crate::event::Event;
use crate::message::malformed;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, Sending, Side};
use crate::message::rtrs::{Fate, Memory, Rtr};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::both::Transfer;
use crate::rendezvous::rtr::Offering;
use crate::rendezvous::state::State;
use fabric::{Device, Fault, Rank, Share, ShareWord, Shares, Span};
use wire::head::{Head, Kind, Offer};

impl<D: Device> Rendezvous<'_, D> {
    /// Whether buffers are offered to this peer by shares.
    pub(super) fn offers_shares(&mut self, peer: Rank) -> bool {
        self.rules.rtr && self.rules.force.is_none() && self.copies(peer)
    }

    /// Offers a buffer; the share if it did.
    pub(super) fn send_rtr_of_share(&mut self, id: OpId, offering: Offering, buf: Span) -> Option<u32> {
        let Offering { envelope, earlier, seen, .. } = offering;
        let index = self.open_share(envelope.source)?;
        self.dev.opened_shares().store(Share { owner: self.dev.me(), index }, ShareWord::Open, id.0 as u64);
        let offer = Offer {
            len: buf.len as u64,
            addr: buf.addr as u64,
            share: index,
            op: id.0,
            seen,
            other: earlier,
        };
        let body = offer.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        let head = Head::new(Kind::Rtr, envelope.tag, envelope.context).encode();
        if !self.dev.try_send(envelope.source, head, data) {
            self.close_share(Some(index));
            return None;
        }
        self.peers[envelope.source].rtrs().was_sent();
        self.counters.count(Event::RtrSent);
        Some(index)
    }

    /// Takes an RTR back, because its receive has been matched otherwise or is cancelled.
    /// False if the sender was faster.
    pub(crate) fn withdraw_share(&mut self, id: OpId, rtr: Option<u32>) -> bool {
        let Some(index) = rtr else { return true };
        let share = Share { owner: self.dev.me(), index };
        let ours = self.dev.opened_shares().take(share, ShareWord::Open, id.0 as u64);
        if let Some(State::Posted(receive)) = self.ops.get(id).map(|op| &op.state)
            && let Some(source) = receive.want.source
        {
            self.peers[source].rtrs().was_missed();
        }
        if ours {
            self.close_share(Some(index));
        }
        ours
    }

    /// RTR: kept if it is known which message it belongs to.
    pub(crate) fn on_rtr(&mut self, from: Rank, head: Head, offer: Offer) {
        let Head { context, tag, .. } = head;
        let dev = &*self.dev;
        let peer = &mut self.peers[from];
        let is_open = |rtr: &Rtr| match rtr.memory {
            Memory::Share(index) => {
                dev.opened_shares().load(Share { owner: from, index }, ShareWord::Open) == rtr.op as u64
            }
            Memory::Keys(_) => true,
        };
        let (sent, waits) = (peer.sent, !peer.queue.is_empty());
        peer.rtrs().retain(context, tag, is_open);
        let Offer { len, addr, op, .. } = offer;
        let rtr = Rtr { context, tag, op, addr, len, memory: Memory::Share(offer.share) };
        let is_offered = offer.share != Offer::NO_SHARE;
        if !is_offered || peer.rtrs().on_rtr(rtr, offer.seen, offer.other, sent, waits) != Fate::Held {
            self.counters.count(Event::RtrDropped);
        }
        self.peers[from].update_plain();
    }

    /// Consumes the oldest RTR by a share for this message; returns it if the message can go there.
    pub(crate) fn take_share(&mut self, s: &mut Sending, rendezvous: bool) -> Option<Rtr> {
        loop {
            let peer = &mut self.peers[s.to];
            let Memory::Share(index) = peer.known_rtrs()?.next(s.context, s.tag)?.memory else { return None };
            let rtr = peer.rtrs().take(s.context, s.tag)?;
            peer.update_plain();
            let share = Share { owner: s.to, index };
            if !self.dev.opened_shares().take(share, ShareWord::Open, rtr.op as u64) {
                continue; // withdrawn
            }
            s.met = true;
            let fits = rendezvous && s.data.len as u64 <= rtr.len && s.data.len > 0 && self.dev.reach(s.to);
            if !fits {
                self.dev.opened_shares().store(share, ShareWord::Left, 2);
                self.counters.count(Event::RtrDropped);
                return None;
            }
            self.counters.count(Event::RtrTaken);
            return Some(rtr);
        }
    }

    /// Announces that the message goes into the offered buffer, and begins to copy.
    pub(super) fn leave_matched(&mut self, id: OpId, s: Sending, rtr: Rtr, index: u32) -> bool {
        let reply = Offer {
            len: s.data.len as u64,
            addr: s.data.addr as u64,
            share: index,
            op: id.0,
            seen: 0,
            other: rtr.op,
        };
        let body = reply.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        if !self.dev.try_send(s.to, Head::new(Kind::Matched, s.tag, s.context).encode(), data) {
            return false;
        }
        self.tell_host(id, s.to, s.data.len, Way::Both);
        let transfer = Transfer {
            side: Side::Send,
            peer: s.to,
            share: Share { owner: s.to, index },
            local: s.data,
            remote: rtr.addr as usize,
            partner: rtr.op,
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

    /// Matched: the sender has taken our RTR.
    pub(crate) fn on_matched(&mut self, envelope: Envelope, offer: Offer) -> Result<(), Fault> {
        let from = envelope.source;
        let id = OpId(offer.other);
        let receive = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(r)) if r.want.source == Some(from) && r.rtr == Some(offer.share) => *r,
            _ => return Err(malformed(from, wire::Malformed("Matched for an offer that is not out".into()))),
        };
        self.matching.withdraw(&receive.want, id);
        self.peers[from].rtrs().rendezvous_came();
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
