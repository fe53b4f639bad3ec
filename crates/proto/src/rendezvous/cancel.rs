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
//! - An RTS that got no share, for all are in use, cannot be taken back: it ends when it is received. So
//!   do messages over registered memory, whose receivers may be reading.

use crate::message::matching::{Body, Unexpected};
use crate::message::op::{OpId, Outcome, Receive};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::state::{Rts, State, Step};
use fabric::{Device, Rank, Share, ShareWord, Shares};
use wire::head::Offer;

impl<D: Device> Rendezvous<'_, D> {
    /// Cancels an operation that has not been matched; true if it was. What is returned here is final:
    /// an operation that cannot be cancelled ends as if nobody had asked.
    pub fn cancel(&mut self, id: OpId) -> bool {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) => self.cancel_receive(id, *receive),
            Some(State::Queued(..) | State::Offered(..)) => self.cancel_send(id),
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
            _ => return false,
        };
        self.ops.set(id, State::Done(Outcome { len: 0, cancelled: true, ..sending.outcome() }));
        true
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
