//! RTRs by shares: both sides can change the word `Open`, which settles without a message who was first.
//!
//! The sender that consumes an RTR clears it, and so does the receiver whose receive is matched otherwise or cancelled.
//! `Matched` announces the use in the order of messages. The rules are in [`super::rtr`].

use crate::choice::way::Way;
use crate::event::{Event, Happening as Told};
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, RtrBy, Sending, Side};
use crate::message::rtrs::{Memory, Rtr};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::both::Transfer;
use crate::rendezvous::state::State;
use fabric::{Device, Fault, Share, ShareWord, Shares, Span};
use wire::head::{FrameType, Head, Offer};

impl<D: Device> Rendezvous<'_, D> {
    /// Offers a buffer; the share if it did.
    pub(super) fn send_rtr_of_share(
        &mut self,
        id: OpId,
        envelope: &Envelope,
        earlier: u32,
        buf: Span,
    ) -> Option<u32> {
        let Envelope { source, context, tag } = *envelope;
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
        if !self.dev.try_send(source, Head::new(FrameType::Rtr, tag, context).encode(), data) {
            self.close_share(Some(index));
            return None;
        }
        self.counters.count(Event::RtrSent);
        Some(index)
    }

    /// Takes an RTR, or an RTS, of this operation back. False if the other side was faster.
    pub(super) fn take_share_back(&mut self, id: OpId, index: u32) -> bool {
        let share = Share { owner: self.dev.me(), index };
        let is_ours = self.dev.opened_shares().take(share, ShareWord::Open, id.0 as u64);
        if is_ours {
            self.close_share(Some(index));
        }
        is_ours
    }

    /// RTR.
    pub(crate) fn on_rtr(&mut self, envelope: &Envelope, offer: Offer) {
        let Envelope { context, tag, .. } = *envelope;
        let Offer { len, addr, op, share, seen, other: earlier } = offer;
        if share != Offer::NO_SHARE {
            let rtr = Rtr { context, tag, op, addr, len, memory: Memory::Share(share) };
            self.keep_rtr(envelope, rtr, seen, earlier);
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
        if !self.dev.try_send(s.to, Head::new(FrameType::Matched, s.tag, s.context).encode(), data) {
            return false;
        }
        self.counters.happened(Told::RendezvousBegun, [s.to as u64, s.data.len as u64, 1]);
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

    /// Matched: the sender has taken an RTR.
    pub(crate) fn on_matched(&mut self, envelope: Envelope, offer: Offer) -> Result<(), Fault> {
        let (from, id) = (envelope.source, OpId(offer.other));
        let receive = self.rtr_is_taken(id, &envelope, offer.len, RtrBy::Share(offer.share))?;
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
