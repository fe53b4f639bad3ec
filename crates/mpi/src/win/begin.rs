//! How an operation begins whose target shares no memory with this rank: by the adapter, or written behind what the
//! target is to be told.

use std::sync::Arc;

use super::active::{Active, Answer, BATCH_BYTES, Gathered, Pending, Ticket};
use super::issue::at_target;
use super::message::OPERATION_BYTES;
use super::operation::Operation;
use super::{Member, price};
use crate::comm::{Place, Purpose};
use crate::error::Result;
use crate::request::Unpack;
use crate::world::fault;
use fabric::{Device, Distance, Span};
use proto::event::Event;
use proto::{Engine, MEMORY_MAX, OpId, Want};

/// An operation at a target whose memory this rank does not share.
pub(super) struct Begin<'a> {
    /// What it does.
    pub(super) operation: &'a Operation,
    /// Whether its caller asks when it is over.
    pub(super) asks: bool,
    /// Whether the lock of its target is asked for and not held.
    pub(super) is_claimed: bool,
}

impl Begin<'_> {
    /// Begins it by the adapter, if it can go that way; with how to tell that it is over.
    #[inline]
    pub(super) fn go_far<D: Device>(
        &self,
        active: &mut Active,
        engine: &mut Engine<D>,
        member: &Member,
        distance: Distance,
    ) -> Result<Option<Option<Arc<Ticket>>>> {
        let Begin { operation, asks, is_claimed } = *self;
        let target = operation.target;
        let failed = |error| at_target(target, &error);
        let is_free = !asks && !is_claimed;
        // Accumulates have an order: behind those that the target has not acknowledged none goes another way.
        let is_behind = active.touched[target as usize] || active.unheeded[target as usize];
        if let Some(far) = active.far.as_mut().filter(|_| is_free && !is_behind)
            && far.change(engine, operation, member).map_err(failed)?
        {
            engine.count(Event::WindowWord);
            return Ok(Some(None));
        }
        active.gathered = Gathered::Growing;
        let along = is_free && active.takes_along(engine, distance, operation);
        match active.far.as_mut().filter(|_| !is_claimed && !along) {
            Some(far) => far.operate(engine, operation, member, asks).map_err(failed),
            None => Ok(None),
        }
    }

    /// Writes it behind what the target is to be told, and expects its answer.
    #[inline]
    pub(super) fn gather<D: Device>(
        &self,
        active: &mut Active,
        engine: &mut Engine<D>,
        place: &Place,
    ) -> Result<Option<Arc<Ticket>>> {
        let (operation, target) = (self.operation, self.operation.target);
        let ticket = (self.asks && operation.verb.fetches()).then(Arc::<Ticket>::default);
        let mut reply = 0;
        if let Some(result) = &operation.result {
            reply = active.next_reply();
            let mut unpack = Unpack::new(result.addr, result.count, result.ty.clone())?;
            let op = expect(engine, place, target, reply, unpack.span())?;
            let answer = Answer::Data(unpack, ticket.clone());
            let disp = operation.area.disp;
            active.pending.push(Pending { target, op, answer, disp, room: Box::default() });
        }
        begin_batch(active, operation, engine);
        active.gather(operation, reply);
        Ok(ticket)
    }

    /// Whether what has been gathered waits for no more.
    #[inline]
    pub(super) fn leaves_at_once<D: Device>(
        &self,
        active: &Active,
        engine: &Engine<D>,
        place: &Place,
        distance: Distance,
    ) -> bool {
        let target = self.operation.target;
        let len = active.batches[target as usize].len();
        let is_full = len >= BATCH_BYTES && !price::is_joined(&engine.learner().facts, distance, len);
        // What is done here waits for nobody: it comes before what others do who hear of this rank's next step.
        let is_due = is_full || target == place.rank;
        self.asks || is_due && !self.is_claimed
    }
}

/// Posts the receive of an answer.
pub(super) fn expect<D: Device>(
    engine: &mut Engine<D>,
    place: &Place,
    target: u32,
    reply: i32,
    room: Span,
) -> Result<OpId> {
    let source = Some(place.world_rank(target) as usize);
    let want = Want { source, context: place.context_for(Purpose::Message), tag: Some(reply) };
    engine.receive(want, room).map_err(|reason| at_target(target, &fault(reason)))
}

/// Gives what begins with a long operation memory that one before has left.
fn begin_batch<D: Device>(active: &mut Active, operation: &Operation, engine: &mut Engine<D>) {
    let len = operation.area.len().saturating_add(2 * OPERATION_BYTES as u64);
    let batch = &mut active.batches[operation.target as usize];
    if operation.verb.carries() && batch.is_empty() && (BATCH_BYTES as u64..=MEMORY_MAX as u64).contains(&len)
    {
        *batch = engine.take_memory(len as usize);
        batch.clear();
    }
}
