//! Messages that this rank copies one after the other, read by one call of the system.
//!
//! A call costs as much as some 10 KB that it copies, so what a window of messages brings at once is not read one by one. Receives that meet
//! their messages in one look at a ring begin when all of them have; then those that [are pulled](Rendezvous::is_pulled) are read *ahead*, up to
//! [`READ_MANY`] of them and [`MOST_BYTES`], and each begins as it would, and finds its copy made. So do copies that were left for a send ([`super::crossing`]).
//! Nobody is told before its own receive begins, and a message that could not be read ahead is read as any other, which says what is wrong.

use super::Rendezvous;
use crate::message::matching::Envelope;
use crate::message::op::OpId;
use crate::rendezvous::state::State;
use fabric::{Device, READ_MANY, Rank, Span};
use wire::head::Offer;

/// Bytes read by one call: the first one's sender waits until all are copied.
const MOST_BYTES: usize = 128 << 10;

/// A receive that has met its message and has not begun.
#[derive(Clone, Copy)]
pub(crate) struct Met {
    pub op: OpId,
    pub envelope: Envelope,
    pub offer: Offer,
}

/// A copy of a message as a whole.
struct Piece {
    /// From whom.
    peer: Rank,
    /// Where to.
    local: Span,
    /// From where there.
    remote: usize,
}

/// What is to begin, and what has been read of it.
#[derive(Default)]
pub(crate) struct Ahead {
    met: Vec<Met>,
    /// From whom, and where to from where there.
    peer: Rank,
    read: Vec<(Span, usize)>,
}

impl Ahead {
    /// A receive has met its message; whether no more may.
    pub fn meet(&mut self, met: Met) -> bool {
        self.met.push(met);
        self.met.len() == READ_MANY
    }

    /// Whether nothing is to begin.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    /// Whether this copy has been made. It is, once.
    #[inline]
    pub fn takes(&mut self, peer: Rank, local: Span, remote: usize) -> bool {
        let at = self.read.iter().position(|read| peer == self.peer && *read == (local, remote));
        at.map(|at| self.read.remove(at)).is_some()
    }
}

impl<D: Device> Rendezvous<'_, D> {
    /// Begins the receives that have met their messages, all from one rank, in their order.
    #[inline(never)]
    pub(crate) fn begin_met(&mut self) {
        let mut met = std::mem::take(&mut self.ahead.met);
        let mut left = &met[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(self.read_ahead(left, Self::pulled_of));
            now.iter().for_each(|met| self.begin_receive(met.op, met.envelope, met.offer));
            self.ahead.read.clear();
            left = later;
        }
        met.clear();
        self.ahead.met = met;
    }

    /// Makes the first of some copies that were left for a message that has left now, by one call: how many.
    pub(crate) fn copy_first_left(&mut self, ids: &[OpId]) -> usize {
        let count = self.read_ahead(ids, Self::left_of);
        ids[..count].iter().for_each(|id| self.copy_left(*id));
        self.ahead.read.clear();
        count
    }

    /// What is to be copied when a receive begins, if its message is pulled then.
    fn pulled_of(&mut self, met: &Met) -> Option<Piece> {
        let Met { op, envelope, offer } = met;
        let buf = self.ops.posted(*op).buf;
        let len = usize::try_from(offer.len).ok().filter(|len| *len > 0 && *len <= buf.len)?;
        let is_pulled = !self.crossing.posts && self.is_pulled(envelope.source, offer, len);
        let (peer, local, remote) = (envelope.source, buf.part(0, len), offer.addr as usize);
        is_pulled.then_some(Piece { peer, local, remote })
    }

    /// The same of one that was left.
    fn left_of(&mut self, id: &OpId) -> Option<Piece> {
        let State::Long(long) = &self.ops.get(*id)?.state else { return None };
        let remote = long.machine.postponed()?;
        Some(Piece { peer: long.message.peer, local: long.message.local, remote })
    }

    /// Reads the first of these, which are some, if more than one may be read by one call: how many are to be done with that, or one.
    fn read_ahead<T>(&mut self, of: &[T], piece: fn(&mut Self, &T) -> Option<Piece>) -> usize {
        let mut bytes = 0;
        for one in of.iter().take(if of.len() > 1 { READ_MANY } else { 0 }) {
            let Some(Piece { peer, local, remote }) = piece(self, one) else { break };
            bytes += local.len;
            if self.ahead.read.is_empty() {
                self.ahead.peer = peer;
            }
            if peer != self.ahead.peer || bytes > MOST_BYTES {
                break;
            }
            self.ahead.read.push((local, remote));
        }
        let count = self.ahead.read.len();
        let done = if count > 1 { self.dev.read_many(self.ahead.peer, &self.ahead.read) } else { 0 };
        self.ahead.read.truncate(done);
        count.max(1)
    }
}
