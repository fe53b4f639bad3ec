//! Rendezvous by frames: the payload is copied through the device, where nobody can copy from the other.

use super::Rendezvous;
use crate::choice::facts::Path;
use crate::choice::way::Way;
use crate::event::{Event, Happening as Told};
use crate::message::malformed;
use crate::message::matching::Envelope;
use crate::message::op::{Failure, OpId, Outcome, Receive, Side};
use crate::rendezvous::state::{Filling, State, Stream};
use fabric::{Device, Fault, Rank, Span};
use wire::head::{Head, Kind, Offer};

/// Bytes of a frame where there is no room for longer ones.
const LITTLE: usize = 2048;

impl<D: Device> Rendezvous<'_, D> {
    pub(crate) fn ask_for_frames(&mut self, id: OpId, receive: Receive, outcome: Outcome, offer: Offer) {
        let head = Head::new(Kind::Cts, offer.op as i32, id.0 as u64).encode();
        self.control(outcome.source, head, &outcome.len.to_le_bytes());
        if outcome.len == 0 {
            return self.ops.set(id, State::Done(outcome));
        }
        let (from, tag) = (outcome.source, outcome.tag);
        let filling = Filling { receive, from, tag, message_len: offer.len, filled: 0 };
        self.ops.set(id, State::Filling(Box::new(filling)));
    }

    /// CTS: the receiver wants frames.
    pub(crate) fn on_cts(&mut self, from: Rank, head: Head, data: Span) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        let waiting = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Offered(s, rts)) => Some((*s, rts.share, rts.direct)),
            Some(State::Moving(transfer))
                if transfer.side == Side::Send && transfer.needs_frames(&*self.dev) =>
            {
                transfer.leave(&*self.dev);
                Some((transfer.sending(), None, true))
            }
            Some(State::Long(long)) if long.message.peer == from => {
                let envelope = long.envelope();
                self.rtrs.on_met(&envelope, id, None);
                self.long_sending(id).map(|s| (s, None, false))
            }
            _ => None,
        };
        let Some((s, share, is_active)) = waiting else {
            return Err(malformed(
                from,
                wire::Malformed("CTS for a send that is not waiting for one".into()),
            ));
        };
        if s.to != from || data.len != 8 {
            return Err(malformed(from, wire::Malformed("CTS that does not belong to this send".into())));
        }
        let mut limit = [0u8; 8];
        self.dev.peek_bytes(data, &mut limit);
        let limit = (u64::from_le_bytes(limit) as usize).min(s.data.len);
        self.close_share(share);
        self.learner.takes_frames(id);
        let stream = Stream { receiver_op: head.context as u32, limit, sent: 0 };
        self.ops.set(id, State::Streaming(s, stream));
        if !is_active {
            self.active.push(id);
        }
        Ok(())
    }

    /// Sends frames of a stream while there is room: (something was sent, all were sent).
    pub(crate) fn stream(&mut self, id: OpId) -> (bool, bool) {
        let Some(State::Streaming(s, stream)) = self.ops.get(id).map(|op| &op.state) else {
            return (false, true);
        };
        let (s, mut stream) = (*s, *stream);
        let before = stream.sent;
        let Path { frame_bytes: frame, registration, .. } = *self.path(s.to);
        // In shared memory there may be room for little where there is none for much.
        let lens = [frame, LITTLE.min(frame)];
        let lens = if registration { &lens[..1] } else { &lens };
        while stream.sent < stream.limit {
            let head = Head::new(Kind::Data, stream.receiver_op as i32, stream.sent as u64).encode();
            let part = |len: &usize| s.data.part(stream.sent, *len.min(&(stream.limit - stream.sent)));
            let Some(part) = lens.iter().map(part).find(|part| self.dev.try_send(s.to, head, *part)) else {
                break;
            };
            self.counters.count(Event::FrameSent);
            stream.sent += part.len;
        }
        let done = stream.sent >= stream.limit;
        let state = if done { State::Done(s.outcome()) } else { State::Streaming(s, stream) };
        self.ops.set(id, state);
        if done {
            let known = [s.to as u64, s.data.len as u64, 1, Way::Frames as u64];
            self.counters.happened(Told::RendezvousEnded, known);
            self.learner.ended_at(id, &*self.dev);
        }
        (stream.sent > before, done)
    }

    /// A frame of a stream.
    pub(crate) fn on_data(&mut self, from: Rank, head: Head, data: Span) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        let Some(State::Filling(filling)) = self.ops.get_mut(id).map(|op| &mut op.state) else {
            return self.on_long_data(from, id, head.context, data);
        };
        let Filling { receive, from: expected, tag, message_len, filled } = &mut **filling;
        let limit = (*message_len).min(receive.buf.len as u64);
        let end = head.context.checked_add(data.len as u64);
        if *expected != from || end.is_none_or(|end| end > limit) {
            return Err(malformed(from, wire::Malformed("data outside its receive".into())));
        }
        *filled += data.len as u64;
        let to = receive.buf.addr + head.context as usize;
        let envelope = Envelope { source: from, context: receive.want.context, tag: *tag };
        let ended = (*filled >= limit).then(|| Outcome::of_receive(&envelope, *message_len, receive.buf));
        self.dev.copy(to, data.addr, data.len);
        if let Some(outcome) = ended {
            self.counters.happened(Told::RendezvousEnded, [from as u64, outcome.len, 0, Way::Frames as u64]);
            self.ops.set(id, State::Done(outcome));
        }
        Ok(())
    }

    /// Neither side of a transfer can copy: the message comes as a whole in frames.
    #[cold]
    pub(crate) fn fall_back(&mut self, id: OpId) {
        let Some(State::Moving(transfer)) = self.ops.get(id).map(|op| &op.state) else { return };
        transfer.leave(&*self.dev);
        let (receive, mut outcome) = (transfer.receive(), transfer.outcome.clone());
        let message_len = match outcome.failure.take().as_deref() {
            Some(Failure::Truncated { message_len }) => *message_len,
            _ => outcome.len,
        };
        let offer = Offer {
            len: message_len,
            addr: 0,
            share: Offer::NO_SHARE,
            op: transfer.partner,
            seen: 0,
            other: 0,
        };
        self.ask_for_frames(id, receive, outcome, offer);
    }
}
