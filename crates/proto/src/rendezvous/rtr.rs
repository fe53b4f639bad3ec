//! Early receivers offer their buffer (RTR), so that the sender can write at once, even while the receiver computes
//! (dissertation, chapter 4): the rules of both sides.
//!
//! Matching stays the receiver's business; an RTR only anticipates it. It is valid because of these rules:
//! - it is sent for a receive with source and tag, unless an earlier receive without an RTR would accept the same message;
//! - the sender finds out which message it belongs to by what it says ([`crate::message::rtrs`]), and drops it if in doubt;
//! - every message consumes the oldest RTR of its envelope, whether it uses it or not;
//! - an RTR that crosses the RTS of its message answers it if the RTS says so, and is void if not.
//!
//! Whether one is worth its frame says [`super::rtr_account`]. Two things differ by how the two sides agree: by words of a
//! share that both can change ([`super::rtr_shares`]), or by messages ([`super::rtr_registered`]).
//!
//! ```text
//! early receiver              early sender                crossing                    crossing, answerable
//! S            R              S            R              S            R              S            R
//! ◀────── RTR ─┤ Irecv        ├─ RTS ──────▶              ├─ RTS ─╲╱─ RTR ┤          ├─ RTS ─╲╱─ RTR ┤
//! Isend                       ◀─ read ─────┤ Irecv        RTR dropped                 ├═ write ════▶
//! ├─ RTR-ACK ──▶              ◀─ RTS-ACK ──┤              ◀─ read ──────┤             ├─ FIN ──────▶
//! ├═ write ════▶              ◀─ FIN ──────┤              ◀─ FIN ───────┤
//! ├─ FIN ──────▶
//! ```

use super::Rendezvous;
use super::rtr_account::Waiting;
use super::state::State;
use crate::choice::eager_limit::limit_from;
use crate::message::matching::{Envelope, Want};
use crate::message::op::{OpId, Sending};
use crate::message::rtrs::{Memory, Rtr};
use fabric::{Device, Span};

/// What an RTR says beside where the buffer is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offering {
    pub envelope: Envelope,
    /// Earlier receives for the same messages.
    pub earlier: u32,
    /// Messages that have been taken in.
    pub seen: u32,
    /// Which RTR to that peer it is.
    pub number: u32,
}

impl<D: Device> Rendezvous<'_, D> {
    /// A receive that found no message is about to be posted: offers its buffer if the rules allow it. The share if it is
    /// offered by one; `long` says whether a rendezvous is to be expected.
    pub(crate) fn offer(&mut self, id: OpId, want: &Want, buf: Span, long: bool) -> Option<u32> {
        if want.source == Some(self.dev.me()) {
            return None;
        }
        let exact = want.source.zip(want.tag);
        let envelope = exact.map(|(source, tag)| Envelope { source, context: want.context, tag });
        if !self.speculates(want.source) {
            let envelope = envelope.filter(|e| long && self.offers_shares(e.source))?;
            let offering = self.may_offer(&envelope)?;
            return self.send_rtr_of_share(id, offering, buf);
        }
        if buf.len > limit_from(self.eager_limits, want.source.map(|source| self.dev.distance(source))) {
            let since_ns = self.dev.now_ns();
            let outside_ns = self.learner.outside_ns(since_ns);
            let rtr = envelope.and_then(|envelope| self.send_rtr_of_keys(id, &envelope, buf));
            self.rtrs.waiting.insert(id, Waiting { since_ns, outside_ns, rtr, cancelling: false });
        }
        None
    }

    /// What an RTR for the next receive of an envelope would say; `None` if the rules do not allow one.
    pub(super) fn may_offer(&mut self, envelope: &Envelope) -> Option<Offering> {
        let peer = &mut self.peers[envelope.source];
        if !peer.control.is_empty() || !self.rtrs.may_offer(envelope) {
            return None;
        }
        let (number, seen) = (peer.rtrs().number()?, peer.seen);
        let mut earlier = 0;
        for op in self.matching.posted_for(envelope) {
            if !self.is_offered(op) {
                return None;
            }
            earlier += 1;
        }
        Some(Offering { envelope: *envelope, earlier, seen, number })
    }

    /// Whether a posted receive has an RTR out, and is not to lose it.
    fn is_offered(&self, id: OpId) -> bool {
        let by_share =
            matches!(self.ops.get(id).map(|op| &op.state), Some(State::Posted(r)) if r.rtr.is_some());
        by_share || self.rtrs.waiting.get(&id).is_some_and(|w| w.rtr.is_some() && !w.cancelling)
    }

    /// Announces that a message goes where an RTR said, and begins to move it; false if there is no room.
    pub(crate) fn leave_taken(&mut self, id: OpId, s: Sending, rtr: Rtr) -> bool {
        match rtr.memory {
            Memory::Share(index) => self.leave_matched(id, s, rtr, index),
            Memory::Keys(keys) => self.leave_write(id, s, rtr, keys),
        }
    }

    /// A receive has been met by a message that does not use its RTR, which is void now.
    #[cold]
    pub(crate) fn void_rtr(&mut self, id: OpId, share: Option<u32>, envelope: &Envelope) {
        self.withdraw_share(id, share);
        self.release_rtr(id, envelope);
    }
}
