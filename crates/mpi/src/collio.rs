//! The transport of schedules: messages of the engine in the collective context.

use crate::coll::{Data, Io, OpId, Progress, Schedule, Tag};
use crate::comm::{Comms, Place, Purpose};
use crate::error::{Class, Result, fail};
use crate::handle::Handle;
use crate::request::{PackedMessage, Unpack};
use crate::world::{World, fault};
use fabric::{Device, Span};
use proto::{Engine, Failure, Mode, Want};

/// The packed messages of a collective in flight, by operation.
pub type Packed = Vec<(u64, PackedMessage)>;

/// See the module.
pub(crate) struct CollIo<'a, D: Device> {
    pub engine: &'a mut Engine<D>,
    pub place: &'a Place,
    /// Packed messages in flight, by operation.
    pub packed: &'a mut Packed,
}

impl<D: Device> CollIo<'_, D> {
    fn unpacked(&mut self, op: OpId) -> Option<PackedMessage> {
        if self.packed.is_empty() {
            return None;
        }
        let at = self.packed.iter().position(|(id, _)| *id == op.0)?;
        Some(self.packed.swap_remove(at).1)
    }
}

impl<D: Device> Io for CollIo<'_, D> {
    #[inline]
    fn isend(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        let to = self.place.group.world_rank(peer as u32) as usize;
        let context = self.place.context_for(Purpose::Collective);
        let (span, packed) = match data {
            Data::Bytes { addr, len } => (Span { addr, len: len as usize }, None),
            Data::Typed { addr, count, ty } => {
                let mut out = vec![0u8; (count * ty.size) as usize].into_boxed_slice();
                ty.datatype().pack(addr, count, 0, &mut out);
                (Span { addr: out.as_ptr() as usize, len: out.len() }, Some(out))
            }
        };
        match self.engine.send(to, context, tag.value(), span, Mode::Standard).map_err(fault)? {
            None => Ok(OpId::DONE),
            Some(op) => {
                let id = OpId(op.0 as u64);
                self.packed.extend(packed.map(|out| (id.0, PackedMessage::Out(out))));
                Ok(id)
            }
        }
    }

    #[inline]
    fn irecv(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        let source = Some(self.place.group.world_rank(peer as u32) as usize);
        let want = Want { source, context: self.place.context_for(Purpose::Collective), tag: Some(tag.value()) };
        match data {
            Data::Bytes { addr, len } => {
                let op = self.engine.receive(want, Span { addr, len: len as usize });
                Ok(OpId(op.0 as u64))
            }
            Data::Typed { addr, count, ty } => {
                let mut unpack = Unpack::new(addr, count, ty.datatype().clone());
                let op = OpId(self.engine.receive(want, unpack.span()).0 as u64);
                self.packed.push((op.0, PackedMessage::In(unpack)));
                Ok(op)
            }
        }
    }

    fn unclaimed(&mut self, peer: usize) -> Option<Tag> {
        let source = Some(self.place.group.world_rank(peer as u32) as usize);
        let want = Want { source, context: self.place.context_for(Purpose::Collective), tag: None };
        self.engine.probe(&want).and_then(|(envelope, _)| Tag::from_value(envelope.tag))
    }

    #[inline]
    fn is_asleep(&self) -> bool {
        self.engine.is_asleep()
    }

    #[inline]
    fn poll(&mut self, op: OpId) -> Option<Result<u64>> {
        let outcome = self.engine.take(proto::OpId(op.0 as u32))?;
        if let Some(PackedMessage::In(unpack)) = self.unpacked(op) {
            unpack.finish(outcome.len);
        }
        Some(match outcome.failure {
            None => Ok(outcome.len),
            Some(Failure::Truncated { message_len }) => Ok(message_len),
            Some(Failure::Device(text)) => fail(Class::OTHER, text),
        })
    }
}

impl<D: Device> World<D> {
    /// Advances a collective that has no request: it runs on a communicator that stays, so that
    /// nothing of it has to be kept.
    #[inline]
    pub fn advance_on(&mut self, comm: Handle, schedule: &mut Schedule, packed: &mut Packed) -> Result<Progress> {
        let Some(comm) = self.objects.comms.get(comm) else { return Comms::refuse(comm) };
        schedule.advance(&mut CollIo { engine: &mut self.engine, place: &comm.place, packed })
    }

    /// What to say of a message of a collective that has arrived and that this rank has never
    /// asked for.
    pub fn stray_collective(&self) -> Option<String> {
        let collective = |context: u64| context & 3 == Purpose::Collective as u64;
        let (envelope, _) = self.engine.arrived().find(|(envelope, _)| collective(envelope.context))?;
        let name = Tag::from_value(envelope.tag)?.kind()?.name();
        let comm = self.objects.comms.by_context(envelope.context).map(|(_, comm)| comm);
        let (from, on) = match comm {
            Some(comm) => (comm.place.group.rank_of(envelope.source as u32)?, String::from_utf8_lossy(comm.name())),
            None => (envelope.source as u32, "a freed communicator".into()),
        };
        Some(format!(
            "a message of rank {from} in {name} on {on} was never received by rank {} of the job: it was in another collective there, or named another root",
            self.rank()
        ))
    }

    /// Gives up a collective that has failed. Receives that nothing has come for are withdrawn;
    /// if the engine still holds messages of it, their memory must stay: it is never freed.
    pub fn abandon(&mut self, schedule: Schedule, packed: Packed) {
        let mut held = false;
        for (_, op) in schedule.in_flight() {
            let op = proto::OpId(op.0 as u32);
            if self.engine.is_done(op) || self.engine.cancel(op) {
                self.engine.take(op);
            } else {
                held = true;
            }
        }
        if held {
            Box::leak(Box::new((schedule, packed)));
        }
    }
}
