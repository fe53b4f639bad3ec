//! The transport of schedules: messages of the engine in the collective context.

use crate::coll::{Data, Io, OpId, Tag};
use crate::comm::{Place, Purpose};
use crate::error::{Class, Result, fail};
use crate::request::{PackedMessage, Unpack};
use crate::world::fault;
use fabric::{Device, Span};
use proto::{Engine, Failure, Mode, Want};

/// See the module.
pub(crate) struct CollIo<'a, D: Device> {
    pub engine: &'a mut Engine<D>,
    pub place: &'a Place,
    /// Packed messages in flight, by operation.
    pub packed: &'a mut Vec<(u64, PackedMessage)>,
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
