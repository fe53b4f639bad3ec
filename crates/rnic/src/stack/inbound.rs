//! What one connection receives, segment by segment: whether it may, where its bytes go, and what has
//! come when a message has ended (RFC 5041 sections 5 and 8, RFC 5040 sections 5 to 7, RFC 7306 section 5).
//!
//! Every segment is judged when its header is there, before any of its bytes is placed. With CRCs, what a
//! header says may still be wrong: nothing is *done* before the CRC of the segment was right, and a refusal
//! waits for it too, because the error may be the CRC's.

use std::collections::VecDeque;

use wire::iwarp::ddp::{self, Header, Refused, Target, queue};
use wire::iwarp::rdmap::{
    Atomic, AtomicRequest, AtomicResponse, Cause, IMMEDIATE_LEN, Opcode, ReadRequest, Terminate,
};

use super::framing::Framing;
use super::outbound::Owed;
use super::regions::{Denied, Regions, Rights};
use super::work::{Asked, Done, SendQueue};
use super::{Arrived, Place, Receive, Settings, Sink};

/// What to do with the segment whose header has been judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Its payload goes here, if it has any.
    Place(Option<Place>),
    /// As many bytes of the segment have to be collected first: a control message with its body.
    Collect(usize),
    /// No buffer is there, but one will be: ask again.
    Later,
    /// It is refused.
    Refuse(Cause),
}

/// A Send that has begun.
#[derive(Clone, Copy, Debug)]
struct Message {
    opcode: Opcode,
    id: u64,
    room: usize,
    len: u32,
}

/// What the end of a segment means for the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// It goes on.
    Fine,
    /// The peer is at fault.
    Refuse(Cause),
    /// The peer has ended the stream.
    Terminated(Terminate),
}

#[derive(Debug)]
pub(super) struct Inbound {
    domain: u32,
    ird: usize,
    /// Sequence number that the next message of each queue has to have.
    msn: [u32; 4],
    message: Option<Message>,
    /// Of the segment in hand.
    header: Option<Header>,
    payload: u32,
}

impl Inbound {
    pub(super) fn new(settings: &Settings) -> Inbound {
        let Settings { domain, ird, .. } = *settings;
        Inbound { domain, ird, msn: [1; 4], message: None, header: None, payload: 0 }
    }

    /// The receive buffer that has been taken and not been told to be full.
    pub(super) fn unfinished(&mut self) -> Option<u64> {
        self.message.take().map(|message| message.id)
    }

    /// Judges the segment in hand by what has been collected of it.
    pub(super) fn judge(
        &mut self,
        framing: &Framing,
        regions: &Regions,
        send: &SendQueue,
        sink: &mut impl Sink,
    ) -> Verdict {
        let bytes = framing.header();
        let header = match Header::decode(bytes) {
            Ok(header) => header,
            Err(refused) => return Verdict::Refuse(cause_of(refused, bytes)),
        };
        let header_len = ddp::header_len(bytes[0]);
        let payload = framing.segment_len() - header_len;
        (self.header, self.payload) = (Some(header), payload as u32);
        let judged = match header.target {
            Target::Tagged { stag, to } => self.judge_tagged(&header, stag, to, regions, send),
            Target::Untagged { qn, msn, mo, .. } => {
                self.judge_untagged(&header, qn, msn, mo, bytes.len() - header_len, sink)
            }
        };
        judged.unwrap_or_else(Verdict::Refuse)
    }

    fn judge_tagged(
        &self,
        header: &Header,
        stag: u32,
        to: u64,
        regions: &Regions,
        send: &SendQueue,
    ) -> Result<Verdict, Cause> {
        let mut needed = Rights::REMOTE_WRITE;
        if header.opcode == Opcode::ReadResponse {
            // RFC 5040 section 5.2: where the oldest request said, one segment behind the other.
            let Some(&Asked::Read { stag: sink_stag, to: sink_to, len, got, .. }) = send.asked.front() else {
                return Err(Cause::RDMAP_OPCODE);
            };
            if self.payload > 0 && stag != sink_stag {
                return Err(Cause::TAGGED_STAG);
            }
            let end = u64::from(got) + u64::from(self.payload);
            let is_next = self.payload == 0 || to == sink_to.wrapping_add(u64::from(got));
            if !is_next || end > u64::from(len) || header.last != (end == u64::from(len)) {
                return Err(Cause::TAGGED_BOUNDS);
            }
            needed = Rights::LOCAL_WRITE;
        }
        // RFC 5041 section 5.1: of an empty segment neither tag nor offset is looked at.
        if self.payload > 0 {
            regions
                .check(stag, to, u64::from(self.payload), needed, self.domain)
                .map_err(|denied| denied.of_segment())?;
        }
        Ok(Verdict::Place(Some(Place::Region { stag, to })))
    }

    /// `body` bytes of the body have been collected.
    fn judge_untagged(
        &mut self,
        header: &Header,
        qn: u32,
        msn: u32,
        mo: u32,
        body: usize,
        sink: &mut impl Sink,
    ) -> Result<Verdict, Cause> {
        let expected = *self.msn.get(qn as usize).ok_or(Cause::UNTAGGED_QN)?;
        let opcode = header.opcode;
        let (queue, least, most) = match opcode {
            Opcode::ReadRequest => (queue::REQUEST, ReadRequest::LEN, ReadRequest::LEN),
            Opcode::AtomicRequest => (queue::REQUEST, AtomicRequest::LEN, AtomicRequest::LEN),
            Opcode::AtomicResponse => (queue::ATOMIC_RESPONSE, AtomicResponse::LEN, AtomicResponse::LEN),
            Opcode::Terminate => (queue::TERMINATE, 4, Terminate::LONGEST_LEN),
            Opcode::Immediate | Opcode::ImmediateSolicited => (queue::SEND, IMMEDIATE_LEN, IMMEDIATE_LEN),
            _ => (queue::SEND, 0, usize::MAX),
        };
        if queue != qn {
            return Err(Cause::RDMAP_OPCODE);
        }
        // The stream is in order, so there is one number and one offset that can come.
        if msn != expected {
            return Err(Cause::UNTAGGED_MSN);
        }
        if opcode.is_send() {
            return self.judge_send(opcode, msn, mo, sink);
        }
        let len = self.payload as usize;
        if mo != 0 {
            return Err(Cause::UNTAGGED_MO);
        }
        if len > most || !header.last {
            return Err(Cause::UNTAGGED_TOO_LONG);
        }
        if len < least {
            return Err(Cause::RDMAP_UNSPECIFIED);
        }
        if body < len {
            return Ok(Verdict::Collect(ddp::UNTAGGED_LEN + len));
        }
        if queue == queue::SEND {
            if self.message.is_some() {
                return Err(Cause::RDMAP_OPCODE);
            }
            if let Some(verdict) = self.take_buffer(opcode, msn, sink)? {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Place(None))
    }

    fn judge_send(
        &mut self,
        opcode: Opcode,
        msn: u32,
        mo: u32,
        sink: &mut impl Sink,
    ) -> Result<Verdict, Cause> {
        if mo != self.message.map_or(0, |message| message.len) {
            return Err(Cause::UNTAGGED_MO);
        }
        if self.message.is_some_and(|message| message.opcode != opcode) {
            return Err(Cause::RDMAP_OPCODE);
        }
        if self.message.is_none()
            && let Some(verdict) = self.take_buffer(opcode, msn, sink)?
        {
            return Ok(verdict);
        }
        let message = self.message.expect("a buffer has been taken");
        if mo as usize + self.payload as usize > message.room {
            return Err(Cause::UNTAGGED_TOO_LONG);
        }
        Ok(Verdict::Place(Some(Place::Buffer { id: message.id, offset: mo })))
    }

    fn take_buffer(
        &mut self,
        opcode: Opcode,
        msn: u32,
        sink: &mut impl Sink,
    ) -> Result<Option<Verdict>, Cause> {
        match sink.receive(msn) {
            Receive::Buffer { id, len } => {
                self.message = Some(Message { opcode, id, room: len.min(u32::MAX as usize), len: 0 });
                Ok(None)
            }
            Receive::Later => Ok(Some(Verdict::Later)),
            Receive::None => Err(Cause::UNTAGGED_NO_BUFFER),
        }
    }

    /// The segment in hand has ended, and its CRC was right.
    pub(super) fn end(
        &mut self,
        bytes: &[u8],
        regions: &mut Regions,
        send: &mut SendQueue,
        owed: &mut VecDeque<Owed>,
        sink: &mut impl Sink,
    ) -> Ended {
        let header = self.header.take().expect("a segment that has ended was judged");
        let ended = match header.target {
            Target::Tagged { .. } => {
                if header.opcode == Opcode::ReadResponse {
                    self.read(header.last, send);
                }
                Ok(())
            }
            Target::Untagged { qn, msn, invalidate, .. } => {
                if header.last {
                    self.msn[qn as usize] = msn.wrapping_add(1);
                }
                let body = &bytes[ddp::UNTAGGED_LEN..];
                match header.opcode {
                    Opcode::Terminate => {
                        let none = Terminate::new(Cause::RDMAP_UNSPECIFIED);
                        return Ended::Terminated(Terminate::decode(body).unwrap_or(none));
                    }
                    Opcode::ReadRequest => self.asked_to_read(body, regions, owed),
                    Opcode::AtomicRequest => self.asked_atomic(body, regions, owed, sink),
                    Opcode::AtomicResponse => answered_atomic(body, send),
                    _ => self.message_went_on(&header, invalidate, body, regions, sink),
                }
            }
        };
        ended.map_or_else(Ended::Refuse, |()| Ended::Fine)
    }

    fn read(&self, last: bool, send: &mut SendQueue) {
        if let Some(Asked::Read { got, .. }) = send.asked.front_mut() {
            *got += self.payload;
        }
        if last {
            send.answered(Done::Read);
        }
    }

    fn asked_to_read(&self, body: &[u8], regions: &Regions, owed: &mut VecDeque<Owed>) -> Result<(), Cause> {
        let request = ReadRequest::decode(body).ok_or(Cause::RDMAP_UNSPECIFIED)?;
        self.room_for_request(owed)?;
        let len = u64::from(request.len);
        if len > 0 {
            regions
                .check(request.source_stag, request.source_to, len, Rights::REMOTE_READ, self.domain)
                .map_err(|denied| denied.of_request())?;
            request.sink_to.checked_add(len).ok_or(Cause::RDMAP_WRAP)?;
        }
        owed.push_back(Owed::Read { request, given: 0 });
        Ok(())
    }

    fn asked_atomic(
        &self,
        body: &[u8],
        regions: &Regions,
        owed: &mut VecDeque<Owed>,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let request = AtomicRequest::decode(body).ok_or(Cause::RDMAP_UNSPECIFIED)?;
        self.room_for_request(owed)?;
        let atomic: Atomic = request.atomic.ok_or(Cause::RDMAP_OPCODE)?;
        let AtomicRequest { id, stag, to, .. } = request;
        regions
            .check(stag, to, 8, Rights::REMOTE_ATOMIC, self.domain)
            .map_err(|denied| denied.of_request())?;
        if to % 8 != 0 {
            return Err(Cause::RDMAP_STREAM);
        }
        let original = sink.atomic(stag, to, &atomic);
        owed.push_back(Owed::Atomic(AtomicResponse { id, original }));
        Ok(())
    }

    /// RFC 5040 section 6.1: a request over the limit finds no buffer in its queue.
    fn room_for_request(&self, owed: &VecDeque<Owed>) -> Result<(), Cause> {
        if owed.len() < self.ird { Ok(()) } else { Err(Cause::UNTAGGED_NO_BUFFER) }
    }

    /// A segment of a Send, or Immediate Data.
    fn message_went_on(
        &mut self,
        header: &Header,
        invalidate: u32,
        body: &[u8],
        regions: &mut Regions,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        let message = self.message.as_mut().expect("a message that goes on has begun");
        let opcode = header.opcode;
        if opcode.is_send() {
            message.len += self.payload;
        }
        if !header.last {
            return Ok(());
        }
        let Message { id, len, .. } = *message;
        let invalidated = opcode.invalidates().then_some(invalidate);
        if let Some(stag) = invalidated {
            // RFC 5040 section 5.3; the receive buffer stays with the connection that now ends.
            regions.invalidate(stag, self.domain).map_err(|denied| match denied {
                Denied::Domain => Cause::RDMAP_INVALIDATE_DOMAIN,
                _ => Cause::RDMAP_INVALIDATE,
            })?;
        }
        let immediate = (!opcode.is_send())
            .then(|| u64::from_be_bytes(body.try_into().expect("Immediate Data has eight bytes")));
        self.message = None;
        sink.arrived(Arrived { id, len, solicited: opcode.is_solicited(), invalidated, immediate });
        Ok(())
    }
}

fn answered_atomic(body: &[u8], send: &mut SendQueue) -> Result<(), Cause> {
    let response = AtomicResponse::decode(body).ok_or(Cause::RDMAP_UNSPECIFIED)?;
    match send.asked.front() {
        Some(Asked::Atomic { id, .. }) if *id == response.id => {
            send.answered(Done::Atomic(response.original));
            Ok(())
        }
        _ => Err(Cause::RDMAP_OPCODE),
    }
}

/// What is wrong with a header that could not be read.
pub(super) fn cause_of(refused: Refused, bytes: &[u8]) -> Cause {
    let is_tagged = bytes.first().is_some_and(|first| ddp::is_tagged(*first));
    match refused {
        Refused::Short => Cause::DDP_CATASTROPHIC,
        Refused::DdpVersion if is_tagged => Cause::TAGGED_VERSION,
        Refused::DdpVersion => Cause::UNTAGGED_VERSION,
        Refused::RdmapVersion => Cause::RDMAP_VERSION,
        Refused::Opcode => Cause::RDMAP_OPCODE,
    }
}
