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
//! - Where there is no share, between hosts or because all are in use, and where the application cannot cancel the
//!   message ([`Offer::FINAL`]) but gives up what it belongs to, the receiver is asked. It takes the RTS out if it
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

use crate::message::matching::{Body, Envelope, Unexpected, Want};
use crate::message::op::{OpId, Outcome, Receive, Sending, Side};
use crate::rendezvous::Rendezvous;
use crate::rendezvous::movers::{Mover, Withdrawal};
use crate::rendezvous::phase::Phase;
use crate::rendezvous::rtr::Void;
use crate::rendezvous::state::{Course, State, Step};
use fabric::{Device, Fault, Rank, Share, ShareWord, Shares, Span};
use wire::head::{FrameType, Head, Offer};
use wire::long::LongRts;

impl<D: Device> Rendezvous<'_, D> {
    /// Cancels an operation that has not been matched; true if it was. What is returned here is final:
    /// an operation that cannot be cancelled ends as if nobody had asked.
    pub fn cancel(&mut self, id: OpId) -> bool {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) => self.cancel_receive(id, *receive),
            Some(State::Queued(..) | State::Long(_)) => self.cancel_send(id),
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
        if !self.take_rtr_back(id) {
            return false;
        }
        self.end_receive_cancelled(id, &receive.want);
        true
    }

    /// A receive that nothing has met, nor will, ends.
    fn end_receive_cancelled(&mut self, id: OpId, want: &Want) {
        self.matching.withdraw(want, id);
        self.ops.set(id, State::Done(Outcome { cancelled: true, ..Outcome::of_nothing(want) }));
    }

    fn cancel_send(&mut self, id: OpId) -> bool {
        let Some(state) = self.ops.get(id).map(|op| &op.state) else { return false };
        let phase = state.phase();
        let is_watched = match state {
            State::Long(long) => long.message.protocol.is_some(),
            state => matches!(state, State::Queued(_, Step::Long(..))),
        };
        let is_back = self.take_send_back(id, phase);
        let Some(s) = is_back.then(|| self.take_sending(id)).flatten() else { return false };
        if phase == Phase::Queued {
            self.peers[s.to].queue.retain(|queued| *queued != id);
        }
        if is_watched {
            self.rtrs.other_left(&s.envelope(), Some(id));
        }
        self.end_cancelled(id, s);
        true
    }

    /// Takes a send back: whether nobody has met it. If not the receiver may have been asked.
    fn take_send_back(&mut self, id: OpId, phase: Phase) -> bool {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Queued(s, _)) if s.met => false,
            Some(State::Queued(_, Step::ZeroCopy(_) | Step::Taken(_))) => false,
            _ if phase == Phase::Offered => {
                let back = self.with_machine(id, |machine, _, port| machine.take_back(port));
                if back == Some(Withdrawal::Asked) {
                    self.ask_for_rts(id);
                }
                back == Some(Withdrawal::Back)
            }
            _ => phase == Phase::Queued,
        }
    }

    /// The send of an operation whose message nobody has met; nothing is held for it any more.
    fn take_sending(&mut self, id: OpId) -> Option<Sending> {
        match self.ops.get(id).map(|op| &op.state) {
            Some(State::Queued(s, _)) => Some(*s),
            Some(State::Long(_)) => self.long_sending(id),
            _ => None,
        }
    }

    fn end_cancelled(&mut self, id: OpId, s: Sending) {
        self.learner.forget(id);
        self.ops.set(id, State::Done(Outcome { len: 0, cancelled: true, ..s.outcome() }));
    }

    /// Asks the receiver whether an RTS has met its receive.
    fn ask_for_rts(&mut self, id: OpId) {
        let Some(State::Long(long)) = self.ops.get_mut(id).map(|op| &mut op.state) else { return };
        long.goes_on(Course::Withdrawn);
        let to = long.envelope();
        let head = Head::new(FrameType::RtsCancel, to.tag, to.context).encode();
        let body = LongRts { op: id.0, ..LongRts::default() };
        self.control(to.source, head, &body.encode());
    }

    /// RtsCancel: the sender takes a message back, unless it has met its receive.
    pub(crate) fn on_rts_cancel(&mut self, envelope: Envelope, data: Span) -> Result<(), Fault> {
        let op = self.long_body(envelope.source, data)?.op;
        let is_it = |body: &Body| match body {
            Body::Long(rts, _) => rts.op == op,
            Body::Rts(offer) => is_asked_for(offer) && offer.op == op,
            _ => false,
        };
        if self.matching.forget(&envelope, is_it) {
            self.control(envelope.source, Head::new(FrameType::RtsGone, op as i32, 0).encode(), &[]);
        }
        Ok(())
    }

    /// RtsGone, RtrGone: the other side has forgotten what it was asked to. The operation is cancelled, unless a message,
    /// or a receive, has met it.
    pub(crate) fn on_gone(&mut self, from: Rank, kind: FrameType, id: OpId) {
        let side = if kind == FrameType::RtsGone { Side::Send } else { Side::Receive };
        let Some(op) = self.ops.get(id).filter(|op| op.state.phase() == Phase::Withdrawn) else { return };
        if op.pending(id).is_none_or(|op| op.peer != Some(from) || op.side != side) {
            return;
        }
        if let State::Posted(receive) = &op.state {
            let want = receive.want;
            self.void_rtr(id, Void::Cancelled);
            self.end_receive_cancelled(id, &want);
        } else if let Some(s) = self.take_sending(id) {
            self.rtrs.on_met(&s.envelope(), id, None);
            self.end_cancelled(id, s);
        }
    }
}

/// Takes the message of an RTS for a receive; false if its sender has taken it back.
pub(crate) fn claim(dev: &impl Device, from: Rank, offer: &Offer) -> bool {
    let share = Share { owner: from, index: offer.share };
    is_asked_for(offer) || dev.opened_shares().take(share, ShareWord::Open, offer.op as u64)
}

/// Gives back a message that was claimed and has not been met by that: its sender may take it back again.
pub(crate) fn unclaim(dev: &impl Device, from: Rank, offer: &Offer) {
    if !is_asked_for(offer) {
        dev.opened_shares().store(
            Share { owner: from, index: offer.share },
            ShareWord::Open,
            offer.op as u64,
        );
    }
}

/// Whether a message that waits has not been taken back.
pub(crate) fn is_offered(dev: &impl Device, message: &Unexpected) -> bool {
    let Body::Rts(offer) = &message.body else { return true };
    let share = Share { owner: message.envelope.source, index: offer.share };
    is_asked_for(offer) || dev.opened_shares().load(share, ShareWord::Open) == offer.op as u64
}

/// Whether the sender asks for a message that it wants back.
fn is_asked_for(offer: &Offer) -> bool {
    offer.share == Offer::NO_SHARE || offer.other & Offer::FINAL != 0
}
