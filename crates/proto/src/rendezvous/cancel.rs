//! Cancelling (MPI 5.0 section 3.8.4): a rank decides it alone and at once, for a wait for a cancelled
//! operation returns whatever others do.
//!
//! The word `Open` of a share settles who was first. The receiver of an RTS clears it when it matches the
//! message, and the sender to take the message back; the sender that uses an RTR clears it, and the
//! receiver to take the buffer back. Exactly one of them succeeds.
//!
//! - A cancelled message that is still queued never leaves. One whose RTS is out is found to be void
//!   when it would be matched, or probed, and forgotten there.
//! - A send that has consumed an offer is met by a receive that waits for it, whatever way it goes:
//!   neither of the two can be cancelled any more.
//! - Where there is no share, between hosts or because all are in use, the receiver is asked. It takes the RTS out if it
//!   waits for its receive, and says so; if not, the message has been met and ends as any other.
//!
//! ```text
//! sender                              receiver
//!   ├─ RTS ───────────────────────────▶  no receive: it waits
//!   ├─ RTS-CANCEL ────────────────────▶  it waits still: forgotten
//!   ◀──────────────────── RTS-GONE ───┤
//!   cancelled
//! ```
//! Frames of a pair arrive in order, so the question finds the RTS or a receive that has taken it. A receiver answers when it
//! is next inside MPI.

use crate::message::matching::{Body, Envelope, Unexpected};
use crate::message::op::{OpId, Outcome, Receive};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::state::{Rts, State, Step};
use fabric::{Device, Fault, Rank, Share, ShareWord, Shares, Span};
use wire::head::{Head, Kind, Offer};
use wire::long::LongRts;

impl<D: Device> Rendezvous<'_, D> {
    /// Cancels an operation that has not been matched; true if it was. What is returned here is final:
    /// an operation that cannot be cancelled ends as if nobody had asked.
    pub fn cancel(&mut self, id: OpId) -> bool {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) => self.cancel_receive(id, *receive),
            Some(State::Queued(..) | State::Offered(..) | State::Long(_)) => self.cancel_send(id),
            _ => false,
        }
    }

    fn cancel_receive(&mut self, id: OpId, receive: Receive) -> bool {
        // What is in the buffer already belongs to a message that is on its way: a cancelled
        // receive would have to leave the buffer as it was (MPI 5.0 section 3.8.4).
        let begun = receive.want.source.and_then(|source| self.dev.begun(source));
        if begun == Some(receive.buf.addr) {
            return false;
        }
        if self.ask_back(id) {
            return false; // the sender is asked whether it has taken the RTR
        }
        self.rtrs.waiting.remove(&id);
        if !self.withdraw_offer(id, receive.rtr) {
            return false; // its sender has taken it: the message is on its way
        }
        self.matching.withdraw(&receive.want, id);
        let outcome = Outcome {
            source: receive.want.source.unwrap_or(0),
            tag: receive.want.tag.unwrap_or(-1),
            len: 0,
            cancelled: true,
            failure: None,
        };
        self.ops.set(id, State::Done(outcome));
        true
    }

    fn cancel_send(&mut self, id: OpId) -> bool {
        let sending = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Queued(s, Step::Eager | Step::Rts)) if !s.met => {
                let s = *s;
                self.peers[s.to].queue.retain(|queued| *queued != id);
                s
            }
            Some(State::Offered(s, Rts { share: Some(index), .. })) if !s.met => {
                let (s, index) = (*s, *index);
                let share = Share { owner: self.dev.me(), index };
                if !self.dev.opened_shares().take(share, ShareWord::Open, id.0 as u64) {
                    return false; // its receiver has taken it
                }
                self.close_share(Some(index));
                self.learner.forget(id);
                s
            }
            Some(State::Offered(s, Rts { share: None, .. })) if !s.met => {
                let envelope = s.envelope();
                self.ask_for_rts(id, envelope);
                return false;
            }
            Some(State::Queued(s, Step::Long(..))) if !s.met => {
                let s = *s;
                self.unqueue(id, s.envelope());
                s
            }
            Some(State::Long(long)) if long.may_come_back() => {
                let envelope = long.envelope();
                if !self.peers[envelope.source].queue.contains(&id) {
                    self.ask_for_rts(id, envelope);
                    return false;
                }
                let Some(s) = self.long_sending(id) else { return false };
                self.unqueue(id, envelope);
                s
            }
            _ => return false,
        };
        self.ops.set(id, State::Done(Outcome { len: 0, cancelled: true, ..sending.outcome() }));
        true
    }

    /// A rendezvous that has not left never will.
    fn unqueue(&mut self, id: OpId, to: Envelope) {
        self.peers[to.source].queue.retain(|queued| *queued != id);
        self.rtrs.other_left(&to, Some(id));
        self.learner.forget(id);
    }

    /// Asks the receiver whether an RTS has met its receive.
    fn ask_for_rts(&mut self, id: OpId, to: Envelope) {
        let head = Head::new(Kind::RtsCancel, to.tag, to.context).encode();
        let body = LongRts { op: id.0, ..LongRts::default() };
        self.control(to.source, head, &body.encode());
    }

    /// RtsCancel: the sender takes a message back, unless it has met its receive.
    pub(crate) fn on_rts_cancel(&mut self, envelope: Envelope, data: Span) -> Result<(), Fault> {
        let op = self.long_body(envelope.source, data)?.op;
        let is_it = |body: &Body| match body {
            Body::Long(rts, _) => rts.op == op,
            Body::Rts(offer) => offer.share == Offer::NO_SHARE && offer.op == op,
            _ => false,
        };
        if self.matching.forget(&envelope, is_it) {
            self.control(envelope.source, Head::new(Kind::RtsGone, op as i32, 0).encode(), &[]);
        }
        Ok(())
    }

    /// RtsGone: the receiver has forgotten an RTS.
    pub(crate) fn on_rts_gone(&mut self, from: Rank, id: OpId) {
        let sending = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Offered(s, Rts { share: None, .. })) if s.to == from => Some(*s),
            Some(State::Long(long)) if long.message.peer == from && long.may_come_back() => {
                self.long_sending(id)
            }
            _ => None,
        };
        let Some(s) = sending else { return };
        self.rtrs.on_met(&s.envelope(), id, None);
        self.learner.forget(id);
        self.ops.set(id, State::Done(Outcome { len: 0, cancelled: true, ..s.outcome() }));
    }
}

/// Takes the message of an RTS for a receive; false if its sender has taken it back.
pub(crate) fn claim(dev: &impl Device, from: Rank, offer: &Offer) -> bool {
    let share = Share { owner: from, index: offer.share };
    offer.share == Offer::NO_SHARE || dev.opened_shares().take(share, ShareWord::Open, offer.op as u64)
}

/// Whether a message that waits has not been taken back.
pub(crate) fn is_offered(dev: &impl Device, message: &Unexpected) -> bool {
    let Body::Rts(offer) = &message.body else { return true };
    let share = Share { owner: message.envelope.source, index: offer.share };
    offer.share == Offer::NO_SHARE || dev.opened_shares().load(share, ShareWord::Open) == offer.op as u64
}
