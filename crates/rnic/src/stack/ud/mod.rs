//! Unreliable datagrams (UD): a queue pair that sends to anybody of the job and receives from all, without order and without
//! a promise (`docs/protocols/datagrams.md`).
//!
//! ```text
//!  Send of several datagrams:   first part, whichever ──▶ Begun, with a receive buffer ──▶ all bytes ──▶ Received
//!                                                           └──▶ 100 ms, or pushed out ──▶ the buffer is free again
//! ```

mod ranges;

pub use ranges::{RANGES_MAX, Ranges};

use super::inbound::cause_of;
use super::{Arrived, Cause, Place, Receive, Regions, Rights, Sink, Terminate, describe};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use wire::datagram::{self, CRC_LEN, DatagramType, Dropped, HEAD_LEN, Head};
use wire::iwarp::ddp::{self, Header, TAGGED_LEN, Target, UNTAGGED_LEN, queue};
use wire::iwarp::rdmap::Opcode;

/// Messages that are put together at a time, and of one peer.
pub const MESSAGES: usize = 64;
/// See [`MESSAGES`].
pub const MESSAGES_OF_PEER: usize = 4;
/// How long a message may take from its first part to its last.
pub const PATIENCE_NS: u64 = 100_000_000;
/// Entries of the error queue.
pub const ERRORS: usize = 64;
/// Numbers of a peer's messages, up to the newest, of which it is known whether they have begun.
const NUMBERS: u32 = 64;

/// Appends a datagram to bytes; to be called once.
pub type Append<'a> = &'a mut dyn FnMut(&mut Vec<u8>);

/// An address handle: where datagrams go.
#[derive(Clone, Copy, Debug)]
pub struct Handle {
    /// What the receiver knows this rank's datagrams by.
    pub id: u64,
    /// Longest datagram that the way there takes.
    datagram_max: NonZeroU32,
    /// Number of the last message.
    msn: u32,
}

impl Handle {
    /// A receiver to whom nothing has been sent.
    pub fn new(id: u64, datagram_max: usize) -> Handle {
        let longest = datagram_max.clamp(datagram_least(), datagram::LONGEST) as u32;
        Handle { id, datagram_max: NonZeroU32::new(longest).expect("there is a least"), msn: 0 }
    }

    fn datagram_max(&self) -> usize {
        self.datagram_max.get() as usize
    }
}

fn datagram_least() -> usize {
    HEAD_LEN + UNTAGGED_LEN + CRC_LEN + 64
}

/// A message that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Of whom.
    pub from: u32,
    /// In which buffer, and how long it is.
    pub arrived: Arrived,
}

/// An entry of the error queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    /// With whom.
    pub peer: u32,
    /// What was wrong.
    pub cause: Cause,
    /// The number of the message that it was found in.
    pub msn: Option<u32>,
    /// Whether the peer says it of what this side has sent.
    pub is_own: bool,
}

/// A message that has begun.
#[derive(Debug)]
struct Begun {
    from: u32,
    msn: u32,
    id: u64,
    room: usize,
    came: Ranges,
    len: Option<u64>,
    since_ns: u64,
}

/// Which messages of a peer have begun: the newest, and bits of those before.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    newest: u32,
    begun: u64,
}

impl Numbers {
    /// Whether this one begins: it has not, and is not too old to know.
    fn begins(&mut self, msn: u32) -> bool {
        let ahead = msn.wrapping_sub(self.newest) as i32;
        if ahead > 0 {
            self.begun = if ahead as u32 >= NUMBERS { 1 } else { self.begun << ahead | 1 };
            self.newest = msn;
            return true;
        }
        let back = ahead.unsigned_abs();
        let is_new = back < NUMBERS && self.begun >> back & 1 == 0;
        if is_new {
            self.begun |= 1 << back;
        }
        is_new
    }
}

/// See the [head of this module](self).
#[derive(Debug)]
pub struct QueuePair {
    rank: u32,
    domain: u32,
    /// Messages that have begun, the oldest first.
    begun: VecDeque<Begun>,
    numbers: BTreeMap<u32, Numbers>,
    watched: BTreeMap<u32, Ranges>,
    /// Buffers that will not be filled.
    returned: VecDeque<u64>,
    errors: VecDeque<Error>,
    /// Errors for which there was no room.
    pub errors_dropped: u64,
}

impl QueuePair {
    /// Of this rank, with access to the regions of this protection domain.
    pub fn new(rank: u32, domain: u32) -> QueuePair {
        QueuePair {
            rank,
            domain,
            begun: VecDeque::new(),
            numbers: BTreeMap::new(),
            watched: BTreeMap::new(),
            returned: VecDeque::new(),
            errors: VecDeque::new(),
            errors_dropped: 0,
        }
    }

    /// Sends a message of these parts: `each` is called for each of its datagrams, which what it gets appends to bytes. It is complete
    /// when they are sent.
    pub fn send<'a>(
        &self,
        to: &mut Handle,
        parts: impl Iterator<Item = &'a [u8]> + Clone,
        solicited: bool,
        each: impl FnMut(Append),
    ) {
        to.msn = to.msn.wrapping_add(1);
        let msn = to.msn;
        let header = |offset, last| Header {
            last,
            opcode: Opcode::send(solicited, false),
            target: Target::Untagged { qn: queue::SEND, msn, mo: offset as u32, invalidate: 0 },
        };
        self.cut(to, UNTAGGED_LEN, parts, each, header);
    }

    /// Writes into a region of the receiver, in which the record of its ranges shows what has come.
    pub fn write(&self, to: &Handle, stag: u32, addr: u64, payload: &[u8], each: impl FnMut(Append)) {
        let header = |offset, last| Header {
            last,
            opcode: Opcode::Write,
            target: Target::Tagged { stag, to: addr.wrapping_add(offset as u64) },
        };
        self.cut(to, TAGGED_LEN, std::iter::once(payload), each, header);
    }

    fn cut<'a>(
        &self,
        to: &Handle,
        header_len: usize,
        mut parts: impl Iterator<Item = &'a [u8]> + Clone,
        mut each: impl FnMut(Append),
        header: impl Fn(usize, bool) -> Header,
    ) {
        let len: usize = parts.clone().map(<[u8]>::len).sum();
        assert!(u32::try_from(len).is_ok(), "a message of {len} bytes");
        let room = to.datagram_max() - HEAD_LEN - header_len - CRC_LEN;
        let (mut offset, mut part) = (0, [].as_slice());
        loop {
            let end = len.min(offset + room);
            let mut bytes = [0; UNTAGGED_LEN];
            let header_len = header(offset, end == len).encode(&mut bytes);
            each(&mut |out: &mut Vec<u8>| {
                let begin = out.len();
                Head { kind: DatagramType::Unreliable, flags: 0, rank: self.rank, id: to.id }.begin(out);
                out.extend_from_slice(&bytes[..header_len]);
                while offset < end {
                    if part.is_empty() {
                        part = parts.next().expect("as many bytes as were counted");
                    }
                    let (now, later) = part.split_at(part.len().min(end - offset));
                    out.extend_from_slice(now);
                    (offset, part) = (offset + now.len(), later);
                }
                datagram::seal(out, begin);
            });
            if end == len {
                return;
            }
        }
    }

    /// Takes in what [`Head::decode`] gave of a rank of the job: a message that is complete with it, if one is.
    /// `answer` gets the Error datagram for an address handle to its sender, if there is one.
    #[allow(clippy::too_many_arguments)]
    pub fn receive(
        &mut self,
        now_ns: u64,
        head: &Head,
        content: &[u8],
        regions: &Regions,
        sink: &mut impl Sink,
        back: &Handle,
        answer: &mut Vec<u8>,
    ) -> Result<Option<Received>, Dropped> {
        self.tick(now_ns);
        match head.kind {
            DatagramType::Reliable => return Err(Dropped::Unknown),
            DatagramType::Error => {
                let terminate = Terminate::decode(content).ok_or(Dropped::Short)?;
                let msn = terminate.ddp.and_then(|header| msn_of(&header));
                self.err(Error { peer: head.rank, cause: terminate.cause, msn, is_own: true });
                return Ok(None);
            }
            DatagramType::Unreliable => {}
        }
        let judged =
            Header::decode(content).map_err(|refused| cause_of(refused, content)).and_then(|header| {
                let payload = &content[ddp::header_len(content[0])..];
                match header.target {
                    Target::Tagged { stag, to } => {
                        self.write_came(header.opcode, stag, to, payload, regions, sink).map(|()| None)
                    }
                    Target::Untagged { qn, msn, mo, .. } => {
                        let is_send = matches!(header.opcode, Opcode::Send | Opcode::SendSolicited);
                        if !is_send || qn != queue::SEND {
                            return Err(if is_send { Cause::UNTAGGED_QN } else { Cause::RDMAP_OPCODE });
                        }
                        self.part_came(now_ns, head.rank, msn, mo, &header, payload, sink)
                    }
                }
            });
        Ok(judged.unwrap_or_else(|cause| {
            self.err(Error { peer: head.rank, cause, msn: msn_of(content), is_own: false });
            self.tell(cause, content, back, answer);
            None
        }))
    }

    fn write_came(
        &mut self,
        opcode: Opcode,
        stag: u32,
        to: u64,
        payload: &[u8],
        regions: &Regions,
        sink: &mut impl Sink,
    ) -> Result<(), Cause> {
        if opcode != Opcode::Write {
            return Err(Cause::RDMAP_OPCODE);
        }
        if payload.is_empty() {
            return Ok(());
        }
        let len = payload.len() as u64;
        regions
            .check(stag, to, len, Rights::REMOTE_WRITE, self.domain)
            .map_err(|denied| denied.of_segment())?;
        sink.place(Place::Region { stag, to }, payload);
        if let Some(ranges) = self.watched.get_mut(&stag) {
            ranges.insert(to, to + len);
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn part_came(
        &mut self,
        now_ns: u64,
        from: u32,
        msn: u32,
        mo: u32,
        header: &Header,
        payload: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<Received>, Cause> {
        let at = match self.begun.iter().position(|begun| (begun.from, begun.msn) == (from, msn)) {
            Some(at) => at,
            None => {
                if !self.numbers.entry(from).or_default().begins(msn) {
                    return Ok(None);
                }
                // Without a buffer the message is lost, as on the way.
                let Receive::Buffer { id, len: room } = sink.receive(msn) else { return Ok(None) };
                if mo == 0 && header.last && payload.len() <= room {
                    sink.place(Place::Buffer { id, offset: 0 }, payload);
                    return Ok(Some(received(from, id, payload.len() as u64, header)));
                }
                self.make_room(from);
                let came = Ranges::default();
                self.begun.push_back(Begun { from, msn, id, room, came, len: None, since_ns: now_ns });
                self.begun.len() - 1
            }
        };
        let begun = &mut self.begun[at];
        let (begin, end) = (u64::from(mo), u64::from(mo) + payload.len() as u64);
        let is_beyond = begun.len.is_some_and(|len| end > len || header.last && end != len);
        let is_before = header.last && begun.came.all().last().is_some_and(|range| range.1 > end);
        let cause = match () {
            () if end > begun.room as u64 || u32::try_from(end).is_err() => Some(Cause::UNTAGGED_TOO_LONG),
            () if is_beyond || is_before => Some(Cause::UNTAGGED_MO),
            () => None,
        };
        if let Some(cause) = cause {
            self.give_up(at);
            return Err(cause);
        }
        if begun.came.touches(begin, end) {
            return Ok(None);
        }
        sink.place(Place::Buffer { id: begun.id, offset: mo }, payload);
        if !begun.came.insert(begin, end) {
            self.give_up(at);
            return Ok(None);
        }
        begun.len = if header.last { Some(end) } else { begun.len };
        let Some(len) = begun.len.filter(|len| begun.came.has(0, *len)) else { return Ok(None) };
        let id = begun.id;
        self.begun.remove(at);
        Ok(Some(received(from, id, len, header)))
    }

    /// Makes room for one more message of this peer.
    fn make_room(&mut self, from: u32) {
        if self.begun.iter().filter(|begun| begun.from == from).count() >= MESSAGES_OF_PEER
            && let Some(at) = self.begun.iter().position(|begun| begun.from == from)
        {
            self.give_up(at);
        } else if self.begun.len() >= MESSAGES {
            self.give_up(0);
        }
    }

    fn give_up(&mut self, at: usize) {
        self.returned.extend(self.begun.remove(at).map(|begun| begun.id));
    }

    /// When [`QueuePair::tick`] is due.
    pub fn timeout_ns(&self) -> Option<u64> {
        self.begun.front().map(|oldest| oldest.since_ns + PATIENCE_NS)
    }

    /// Gives up what has taken too long.
    pub fn tick(&mut self, now_ns: u64) {
        while self.timeout_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.give_up(0);
        }
    }

    /// Messages that have begun.
    pub fn messages(&self) -> usize {
        self.begun.len()
    }

    /// A receive buffer whose message was given up.
    pub fn returned(&mut self) -> Option<u64> {
        self.returned.pop_front()
    }

    /// The oldest entry of the error queue.
    pub fn error(&mut self) -> Option<Error> {
        self.errors.pop_front()
    }

    /// Begins a record of what is written into a region; one that there was ends.
    pub fn watch(&mut self, stag: u32) {
        self.watched.insert(stag, Ranges::default());
    }

    /// The record of a region: addresses of what has been written.
    pub fn written(&self, stag: u32) -> Option<&Ranges> {
        self.watched.get(&stag)
    }

    /// Ends the record of a region.
    pub fn unwatch(&mut self, stag: u32) -> Option<Ranges> {
        self.watched.remove(&stag)
    }

    fn err(&mut self, error: Error) {
        if self.errors.len() < ERRORS {
            self.errors.push_back(error);
        } else {
            self.errors_dropped += 1;
        }
    }

    /// Says to its sender what was wrong with a segment, in no more bytes than it had.
    fn tell(&self, cause: Cause, segment: &[u8], back: &Handle, answer: &mut Vec<u8>) {
        let begin = answer.len();
        Head { kind: DatagramType::Error, flags: 0, rank: self.rank, id: back.id }.begin(answer);
        let mut body = [0; Terminate::MAX_LEN];
        let mut terminate = describe(cause, segment.len(), segment.get(..UNTAGGED_LEN).unwrap_or(segment));
        terminate.request = None;
        let mut len = terminate.encode(&mut body);
        if len > segment.len() {
            len = Terminate::new(cause).encode(&mut body);
        }
        if len > segment.len() {
            return answer.truncate(begin);
        }
        answer.extend_from_slice(&body[..len]);
        datagram::seal(answer, begin);
    }
}

/// A message whose last part has this header.
fn received(from: u32, id: u64, len: u64, header: &Header) -> Received {
    let solicited = header.opcode.is_solicited();
    Received { from, arrived: Arrived { id, len: len as u32, solicited, invalidated: None, immediate: None } }
}

/// The number of the message that a segment belongs to.
fn msn_of(segment: &[u8]) -> Option<u32> {
    match Header::decode(segment).ok()?.target {
        Target::Untagged { msn, .. } => Some(msn),
        Target::Tagged { .. } => None,
    }
}
