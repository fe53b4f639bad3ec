//! A message that might have gone eagerly but went by rendezvous, by habit or since its payload found no room. Its
//! sender counts on needing no receive, which is chance to no program: so where no receive has taken it while its
//! receiver waits for something else, it is kept as an eager one is.
//!
//! What keeps it is a receive of its own, into memory that waits among the unexpected messages. A
//! receive of the application that comes before all has arrived follows that one.

use super::Rendezvous;
use super::cancel::claim;
use super::state::{Following, State};
use crate::message::matching::{Body, Envelope, Want};
use crate::message::op::{OpId, Outcome, Receive};
use fabric::{Device, Span};
use wire::head::Offer;

impl<D: Device> Rendezvous<'_, D> {
    /// Begins to keep a message that no receive expects, for which there is room; one operation more can be
    /// pending. `None` if its sender has taken it back.
    pub(crate) fn begin_keeping(&mut self, envelope: Envelope, offer: Offer) -> Option<Body> {
        if !claim(self.dev, envelope.source, &offer) {
            return None;
        }
        let mut bytes = self.matching.memory.take(offer.len as usize);
        let buf = Span { addr: bytes.as_mut_ptr() as usize, len: bytes.len() };
        let Envelope { source, context, tag } = envelope;
        let want = Want { source: Some(source), context, tag: Some(tag) };
        let receive = Receive::new(want, buf);
        let keeping = self.ops.insert(State::Posted(receive)).expect("there is room for one more");
        self.begin_receive(keeping, envelope, offer);
        Some(Body::Coming(keeping, bytes))
    }

    /// A receive has met a message that is being kept.
    pub(crate) fn begin_following(&mut self, id: OpId, envelope: Envelope, keeping: OpId, bytes: Vec<u8>) {
        let receive = self.ops.posted(id);
        self.ops.set(id, State::Following(Box::new(Following { receive, envelope, keeping, bytes })));
        if !self.follow(id).1 {
            self.active.push(id);
        }
    }

    /// Ends a receive whose message has been kept by now: twice whether it has.
    pub(crate) fn follow(&mut self, id: OpId) -> (bool, bool) {
        let Some(State::Following(following)) = self.ops.get(id).map(|op| &op.state) else {
            return (false, true);
        };
        let Following { receive, envelope, keeping, bytes } = &**following;
        let Some(State::Done(kept)) = self.ops.get(*keeping).map(|op| &op.state) else {
            return (false, false);
        };
        let keeping = *keeping;
        let mut outcome = Outcome::of_receive(envelope, bytes.len() as u64, receive.buf);
        match &kept.failure {
            None => self.dev.copy(receive.buf.addr, bytes.as_ptr() as usize, outcome.len as usize),
            failure => outcome.failure = failure.clone(),
        }
        self.ops.remove(keeping);
        if let Some(State::Following(following)) = self.ops.get_mut(id).map(|op| &mut op.state) {
            self.matching.memory.give(std::mem::take(&mut following.bytes));
        }
        self.ops.set(id, State::Done(outcome));
        (true, true)
    }
}
