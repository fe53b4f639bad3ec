//! What one connection sends, FPDU by FPDU (RFC 5041 section 5, RFC 5040 section 5).
//!
//! Own work goes in the order of posting, answers in the order of the peer's requests. Where both
//! are due they take turns, FPDU by FPDU, so that neither a long Read of the peer nor a long Write of this side
//! holds up the other; towards adapters that do not take that, message by message.

use std::collections::VecDeque;

use wire::iwarp::ddp::{Header, TAGGED_LEN, Target, UNTAGGED_LEN, queue};
use wire::iwarp::rdmap::{AtomicRequest, AtomicResponse, Cause, Opcode, ReadRequest, Terminate};

use super::Settings;
use super::fpdu::{Fpdu, Source};
use super::regions::{Regions, Rights};
use super::work::{Asked, SendQueue, Work};

/// What the peer has asked for and not been given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owed {
    Read { request: ReadRequest, given: u32 },
    Atomic(AtomicResponse),
}

/// Cuts what is to be sent.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Payload of a tagged and of an untagged segment at most; multiples of four, so that there is no pad.
    tagged_max: usize,
    untagged_max: usize,
    crc: bool,
    markers: bool,
    interleave: bool,
    domain: u32,
    /// Position in the stream behind what has been cut.
    position: u64,
    /// Sequence number of the next message of each queue.
    msn: [u32; 4],
    /// Bytes of the current Send or Write that have been cut; whether only its Immediate Data is left.
    own_cut: u32,
    immediate_left: bool,
    /// Whether a message of own work, or an answer, has begun and not ended.
    own_open: bool,
    answer_open: bool,
    /// Whether the last FPDU was of own work.
    own_last: bool,
    pub(super) owed: VecDeque<Owed>,
}

impl Outbound {
    pub(super) fn new(settings: &Settings) -> Outbound {
        let max = |header: usize| (settings.segment_max - header) & !3;
        Outbound {
            tagged_max: max(TAGGED_LEN),
            untagged_max: max(UNTAGGED_LEN),
            crc: settings.crc,
            markers: settings.send_markers,
            interleave: settings.interleave,
            domain: settings.domain,
            position: 0,
            msn: [1; 4],
            own_cut: 0,
            immediate_left: false,
            own_open: false,
            answer_open: false,
            own_last: false,
            owed: VecDeque::new(),
        }
    }

    /// The next FPDU, of whose payload `shorten` says how much it takes. An answer whose region has ended in the meantime is an error.
    #[inline]
    pub(super) fn next(
        &mut self,
        queue: &mut SendQueue,
        regions: &Regions,
        shorten: impl FnOnce(Source, usize, usize) -> usize,
    ) -> Result<Option<Fpdu>, Cause> {
        let own = queue.next(self.own_open).filter(|_| self.interleave || !self.answer_open);
        let answer = self.owed.front().copied().filter(|_| self.interleave || !self.own_open);
        self.own_last = match (own, answer) {
            (Some(_), Some(_)) => !self.own_last,
            (None, None) => return Ok(None),
            (own, None) => own.is_some(),
            (None, _) => false,
        };
        match (own, answer) {
            (Some((seq, id, work)), _) if self.own_last => Ok(Some(self.own(queue, seq, id, work, shorten))),
            (_, Some(owed)) => self.answer(owed, regions, shorten).map(Some),
            _ => Ok(None),
        }
    }

    /// The last FPDU of a stream.
    pub(super) fn terminate(&mut self, terminate: &Terminate) -> Fpdu {
        let mut body = [0; Terminate::MAX_LEN];
        let len = terminate.encode(&mut body);
        self.control(Opcode::Terminate, queue::TERMINATE, &body[..len])
    }

    #[inline]
    fn own(
        &mut self,
        queue: &mut SendQueue,
        seq: u64,
        id: u64,
        work: Work,
        shorten: impl FnOnce(Source, usize, usize) -> usize,
    ) -> Fpdu {
        match work {
            Work::Send { len, solicited, invalidate } => {
                let (mo, invalidates) = (self.own_cut, invalidate.is_some());
                let source = Source::Work { id, offset: mo };
                let piece = piece(len - mo, self.untagged_max, |len| shorten(source, UNTAGGED_LEN, len));
                let last = mo + piece == len;
                let msn = self.msn[queue::SEND as usize];
                let target =
                    Target::Untagged { qn: queue::SEND, msn, mo, invalidate: invalidate.unwrap_or_default() };
                let header = Header { last, opcode: Opcode::send(solicited, invalidates), target };
                let fpdu = self.put(&header, &[], source, piece);
                self.own_cut += piece;
                if last {
                    self.msn[queue::SEND as usize] = msn.wrapping_add(1);
                }
                self.own_ended(queue, seq, last);
                fpdu
            }
            Work::Write { immediate: Some((value, solicited)), len, .. }
                if self.immediate_left || len == 0 =>
            {
                let opcode = if solicited { Opcode::ImmediateSolicited } else { Opcode::Immediate };
                let fpdu = self.control(opcode, queue::SEND, &value.to_be_bytes());
                self.own_ended(queue, seq, true);
                fpdu
            }
            Work::Write { len, stag, to, immediate } => {
                let offset = self.own_cut;
                let source = Source::Work { id, offset };
                let piece = piece(len - offset, self.tagged_max, |len| shorten(source, TAGGED_LEN, len));
                let last = offset + piece == len;
                let target = Target::Tagged { stag, to: to.wrapping_add(u64::from(offset)) };
                let header = Header { last, opcode: Opcode::Write, target };
                let fpdu = self.put(&header, &[], source, piece);
                self.own_cut += piece;
                self.immediate_left = last && immediate.is_some();
                self.own_ended(queue, seq, last && immediate.is_none());
                fpdu
            }
            Work::Read { len, sink_stag, sink_to, stag, to } => {
                let request = ReadRequest { sink_stag, sink_to, len, source_stag: stag, source_to: to };
                queue.requested(seq, Asked::Read { seq, stag: sink_stag, to: sink_to, len, got: 0 });
                self.control(Opcode::ReadRequest, queue::REQUEST, &request.encode())
            }
            Work::Atomic { stag, to, atomic } => {
                let id = seq as u32;
                let request = AtomicRequest { id, stag, to, atomic: Some(atomic) };
                queue.requested(seq, Asked::Atomic { seq, id });
                self.control(Opcode::AtomicRequest, queue::REQUEST, &request.encode())
            }
        }
    }

    fn own_ended(&mut self, queue: &mut SendQueue, seq: u64, ended: bool) {
        self.own_open = !ended;
        if ended {
            (self.own_cut, self.immediate_left) = (0, false);
            queue.cut(seq, self.position);
        }
    }

    fn answer(
        &mut self,
        owed: Owed,
        regions: &Regions,
        shorten: impl FnOnce(Source, usize, usize) -> usize,
    ) -> Result<Fpdu, Cause> {
        let (request, given) = match owed {
            Owed::Read { request, given } => (request, given),
            Owed::Atomic(response) => {
                self.owed.pop_front();
                let body = response.encode();
                return Ok(self.control(Opcode::AtomicResponse, queue::ATOMIC_RESPONSE, &body));
            }
        };
        let (stag, to) = (request.source_stag, request.source_to.wrapping_add(u64::from(given)));
        let source = Source::Region { stag, to };
        let piece = piece(request.len - given, self.tagged_max, |len| shorten(source, TAGGED_LEN, len));
        if piece > 0 {
            // The region may have ended since the request came.
            regions
                .check(stag, to, u64::from(piece), Rights::REMOTE_READ, self.domain)
                .map_err(|denied| denied.of_request())?;
        }
        let last = given + piece == request.len;
        self.answer_open = !last;
        if last {
            self.owed.pop_front();
        } else if let Some(Owed::Read { given, .. }) = self.owed.front_mut() {
            *given += piece;
        }
        let sink_to = request.sink_to.wrapping_add(u64::from(given));
        let target = Target::Tagged { stag: request.sink_stag, to: sink_to };
        let header = Header { last, opcode: Opcode::ReadResponse, target };
        Ok(self.put(&header, &[], source, piece))
    }

    /// A message that is its body: one segment of a queue.
    fn control(&mut self, opcode: Opcode, qn: u32, body: &[u8]) -> Fpdu {
        let msn = self.msn[qn as usize];
        self.msn[qn as usize] = msn.wrapping_add(1);
        let target = Target::Untagged { qn, msn, mo: 0, invalidate: 0 };
        self.put(&Header { last: true, opcode, target }, body, Source::None, 0)
    }

    #[inline]
    fn put(&mut self, header: &Header, body: &[u8], source: Source, len: u32) -> Fpdu {
        let source = if len == 0 { Source::None } else { source };
        let mut fpdu = Fpdu::new(header, body, source, len as usize, self.crc);
        if self.markers {
            fpdu.mark(self.position);
        }
        self.position += fpdu.len() as u64;
        fpdu
    }
}

/// How much of what is `left` the next segment takes: as much as fits, or less if that is wanted.
#[inline]
fn piece(left: u32, max: usize, shorten: impl FnOnce(usize) -> usize) -> u32 {
    let most = left.min(max as u32);
    if most == 0 { 0 } else { (shorten(most as usize) as u32).clamp(1, most) }
}
