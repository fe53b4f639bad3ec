//! Peers that are lost: what is under way with them ends with an error that says why, everything else goes on.
//!
//! A device tells of each once, in [`Device::take_lost`]. What had come before is taken in first. Sends to a lost peer are refused
//! from then on; a receive may still find a message that has come, so it is posted, and ended the next time losses are
//! heeded. A receive from any source is ended where one who might have sent it is lost, for nobody knows who would have: which
//! communicators those are, the layer above knows.

use crate::engine::Engine;
use crate::event::Notice;
use crate::message::op::{OpId, Outcome, Sending};
use crate::rendezvous::rtr::Void;
use crate::rendezvous::state::{State, Step};
use fabric::{Device, Fault, Rank};

impl<D: Device> Engine<D> {
    /// Peers that are lost, and why.
    pub fn lost(&self) -> &[(Rank, Fault)] {
        &self.lost
    }

    /// An error if this peer is lost.
    #[inline]
    pub fn is_there(&self, peer: Rank) -> Result<(), Fault> {
        if self.lost.is_empty() { Ok(()) } else { self.why_lost(peer).map_or(Ok(()), Err) }
    }

    #[cold]
    fn why_lost(&self, peer: Rank) -> Option<Fault> {
        self.lost.iter().find(|(rank, _)| *rank == peer).map(|(_, fault)| fault.clone())
    }

    /// Takes note of peers that have been lost, and ends what is under way with them.
    pub(crate) fn heed_losses(&mut self) -> Result<(), Fault> {
        while let Some((rank, fault)) = self.dev.take_lost() {
            self.drain(rank)?;
            self.peers.lose(rank);
            self.lose_epochs(rank, &fault);
            self.lost.push((rank, fault));
            self.counters.happened(Notice::PeerLost, [rank as u64]);
        }
        if !self.lost.is_empty() {
            self.end_with_lost();
        }
        Ok(())
    }

    /// Ends the receives from any source of these contexts, with the reason why one of their senders is lost.
    pub fn end_wildcards(&mut self, concerned: impl Fn(u64) -> Option<Fault>) {
        let ended = self.ops.iter().filter_map(|(id, op)| match &op.state {
            State::Posted(receive) if receive.want.source.is_none() => {
                Some((id, concerned(receive.want.context)?))
            }
            _ => None,
        });
        for (id, fault) in ended.collect::<Vec<_>>() {
            self.end_lost(id, &fault);
        }
    }

    #[cold]
    fn end_with_lost(&mut self) {
        let concerned = self.ops.iter().filter_map(|(id, op)| {
            let peer = op.pending(id)?.peer?;
            Some((id, self.why_lost(peer)?))
        });
        for (id, fault) in concerned.collect::<Vec<_>>() {
            self.end_lost(id, &fault);
        }
    }

    /// Ends an operation whose peer is lost. What adapters still hold ends with its completion, which comes.
    fn end_lost(&mut self, id: OpId, fault: &Fault) {
        let outcome = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Queued(sending, step)) => {
                let (sending, step) = (*sending, *step);
                if let Step::ZeroCopy(held) = step {
                    self.let_go(sending.to, held);
                }
                self.of_send(id, sending)
            }
            Some(State::Posted(receive)) => {
                let receive = *receive;
                self.matching.withdraw(&receive.want, id);
                self.rendezvous().void_rtr(id, Void::Lost);
                Outcome::of_nothing(&receive.want)
            }
            Some(State::Long(_)) => return self.rendezvous().lose_long(id, fault.clone()),
            _ => return,
        };
        self.ops.set(id, State::Done(Outcome { failure: Some(fault.clone().into()), ..outcome }));
        self.news = true;
    }

    fn of_send(&mut self, id: OpId, sending: Sending) -> Outcome {
        self.learner.forget(id);
        Outcome { len: 0, ..sending.outcome() }
    }
}
