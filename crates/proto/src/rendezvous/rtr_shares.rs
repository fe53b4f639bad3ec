//! RTRs by shares: both sides can change the word `Open`, which settles without a message who was first.
//!
//! The sender that consumes an RTR clears it, and so does the receiver whose receive is matched otherwise or cancelled.
//! `Matched` announces the use in the order of messages. The rules are in [`super::rtr`].

use crate::event::Event;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, RtrBy, Sending, Side};
use crate::message::rtrs::{Memory, Rtr};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::port::Sharing;
use crate::rendezvous::movers::{Happening, Machine, Message, Mover, both};
use crate::rendezvous::posting::RankPort;
use crate::rendezvous::sharing::close;
use crate::rendezvous::state::{Course, Long};
use fabric::{Device, Fault, Share, ShareWord, Shares, Span};
use wire::head::{FrameType, Offer};

impl<D: Device> Rendezvous<'_, D> {
    /// Offers a buffer; the share if it did.
    pub(super) fn send_rtr_of_share(
        &mut self,
        id: OpId,
        envelope: &Envelope,
        earlier: u32,
        buf: Span,
    ) -> Option<u32> {
        let seen = self.peers[envelope.source].seen;
        let index = self.with_port_of(id, envelope, |port| {
            let share = port.open_share()?;
            let (len, addr) = (buf.len as u64, buf.addr as u64);
            let offer = Offer { len, addr, share: share.index, op: 0, seen, other: earlier };
            if port.announce(FrameType::Rtr, offer) {
                return Some(share.index);
            }
            port.close_share(share);
            None
        })?;
        self.counters.count(Event::RtrSent);
        Some(index)
    }

    /// Takes an RTR of this operation back. False if the other side was faster.
    pub(super) fn take_share_back(&mut self, id: OpId, index: u32) -> bool {
        let share = Share { owner: self.dev.me(), index };
        let is_ours = self.dev.opened_shares().take(share, ShareWord::Open, id.0 as u64);
        if is_ours {
            close(&*self.dev, share);
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
        let share = Share { owner: s.to, index };
        let machine = both::Sender::taken(share, rtr.addr as usize, s.data.len, self.duty(s.to));
        self.leave_by_share(id, s, rtr.op, machine)
    }

    /// Matched: the sender has taken an RTR.
    pub(crate) fn on_matched(&mut self, envelope: Envelope, offer: Offer) -> Result<(), Fault> {
        let (from, id) = (envelope.source, OpId(offer.other));
        let receive = self.rtr_is_taken(id, &envelope, offer.len, RtrBy::Share(offer.share))?;
        let outcome = Outcome::of_receive(&envelope, offer.len, receive.buf);
        let (peer, context, len) = (from, envelope.context, outcome.len as usize);
        let share = Share { owner: self.dev.me(), index: offer.share };
        let machine = Machine::BothReceive(both::Receiver::taken(share, offer.addr as usize, len));
        let local = receive.buf.part(0, len);
        let message = Message { protocol: None, peer, local, peer_op: offer.op, len: offer.len };
        let mut long =
            Box::new(Long::new(Course::Moving, Side::Receive, message, context, outcome, machine, 0));
        let begin = |port: &mut RankPort<D>| long.machine.on(Happening::Start, &long.message, port);
        let step = self.with_port_of(id, &envelope, begin);
        self.begin_copy(id, long, &step);
        Ok(())
    }
}
