//! Messages that this rank copies one after the other, read by one call of the system.
//!
//! A call costs as much as some 10 KB that it copies, so what a window of messages brings at once is not read one by one. Receives that meet
//! their messages in one look at a ring begin when all of them have; then those that [are pulled](Rendezvous::is_pulled) are read *ahead*, up to
//! [`MOST`] of them and [`MOST_BYTES`], and each begins as it would, and finds its copy made. So do copies that were left for a send ([`super::crossing`]).
//! Nobody is told before its own receive begins, and a message that could not be read ahead is read as any other, which says what is wrong.

use super::Rendezvous;
use crate::message::matching::Envelope;
use crate::message::op::OpId;
use crate::rendezvous::state::State;
use fabric::{Device, Rank, Span};
use wire::head::Offer;

/// Messages read by one call.
pub(crate) const MOST: usize = 16;
/// And their bytes: the first one's sender waits until all are copied.
const MOST_BYTES: usize = 128 << 10;

/// A receive that has met its message and has not begun.
#[derive(Clone, Copy)]
pub(crate) struct Met {
    pub op: OpId,
    pub envelope: Envelope,
    pub offer: Offer,
}

/// A copy of a message as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
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
    /// In the order in which they begin.
    read: Vec<Piece>,
}

impl Ahead {
    /// A receive has met its message; whether no more may.
    pub fn meet(&mut self, met: Met) -> bool {
        self.met.push(met);
        self.met.len() == MOST
    }

    /// Whether nothing is to begin.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.met.is_empty()
    }

    /// What is to begin, in memory that is to be [given back](Ahead::give).
    pub fn take(&mut self) -> Vec<Met> {
        std::mem::take(&mut self.met)
    }

    /// Memory for what meets next.
    pub fn give(&mut self, mut met: Vec<Met>) {
        met.clear();
        if self.met.is_empty() {
            self.met = met;
        }
    }

    /// Whether this copy has been made. It is, once.
    #[inline]
    pub fn takes(&mut self, peer: Rank, local: Span, remote: usize) -> bool {
        !self.read.is_empty() && self.find(&Piece { peer, local, remote })
    }

    fn find(&mut self, copy: &Piece) -> bool {
        let at = self.read.iter().position(|read| read == copy);
        at.is_some_and(|at| self.read.remove(at) == *copy)
    }
}

impl<D: Device> Rendezvous<'_, D> {
    /// Begins receives that have met their messages, all from one rank, in their order.
    pub(crate) fn begin_met(&mut self, met: &[Met]) {
        let mut left = met;
        while !left.is_empty() {
            let (now, later) = left.split_at(self.read_ahead(left, Self::pulled_of));
            now.iter().for_each(|met| self.begin_receive(met.op, met.envelope, met.offer));
            self.ahead.read.clear();
            left = later;
        }
    }

    /// Makes the first of some copies that were left for a message that has left now, by one call: how many.
    pub(crate) fn copy_first_left(&mut self, ids: &[OpId]) -> usize {
        let count = self.read_ahead(ids, Self::left_of);
        ids[..count].iter().for_each(|id| self.copy_left(*id));
        self.ahead.read.clear();
        count
    }

    /// Where a message is to be copied from and to when its receive begins, if it is pulled then.
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
    fn read_ahead<T>(&mut self, of: &[T], place: fn(&mut Self, &T) -> Option<Piece>) -> usize {
        if of.len() < 2 || !self.dev.reads_many() {
            return 1;
        }
        let (mut places, mut from, mut count, mut bytes) = ([(Span::EMPTY, 0); MOST], None, 0, 0);
        for one in of.iter().take(MOST) {
            let Some(Piece { peer, local, remote }) = place(self, one) else { break };
            bytes += local.len;
            if *from.get_or_insert(peer) != peer || bytes > MOST_BYTES {
                break;
            }
            places[count] = (local, remote);
            count += 1;
        }
        let Some(peer) = from.filter(|_| count > 1) else { return 1 };
        let done = self.dev.read_many(peer, &places[..count]).min(count);
        let read = places[..done].iter().map(|&(local, remote)| Piece { peer, local, remote });
        self.ahead.read.extend(read);
        count
    }
}
