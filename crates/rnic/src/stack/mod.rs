//! iWARP over TCP: one reliable connection (RC) as a state machine over byte slices.
//!
//! Nothing here does input or output, knows a clock, or copies payload. A driver owns the socket and
//! the memory, and runs this loop; the pages behind it are `docs/protocols/iwarp.md`.
//!
//! # The driver's side
//!
//! ```
//! use rnic::stack::*;
//!
//! // Memory: regions are registered by address; here an address is an index into `memory`.
//! struct Host { memory: Vec<u8>, arrived: Vec<Arrived> }
//!
//! impl Sink for Host {
//!     fn receive(&mut self, _msn: u32) -> Receive {
//!         Receive::Buffer { id: 512, len: 64 } // the buffer at address 512; `None` ends the stream
//!     }
//!     fn place(&mut self, place: Place, bytes: &[u8]) {
//!         let at = match place {
//!             Place::Region { to, .. } => to as usize, // checked: it is inside a registered region
//!             Place::Buffer { id, offset } => (id + u64::from(offset)) as usize,
//!         };
//!         self.memory[at..at + bytes.len()].copy_from_slice(bytes);
//!     }
//!     fn arrived(&mut self, arrived: Arrived) {
//!         self.arrived.push(arrived);
//!     }
//!     fn atomic(&mut self, _stag: u32, _to: u64, _atomic: &Atomic) -> u64 {
//!         0 // an atomic read-modify-write of the word at `to`; its old value
//!     }
//! }
//!
//! // Set-up: the frames that both sides send first give the settings of the connection.
//! let proposal = Proposal { private: b"who I am".to_vec(), ..Proposal::default() };
//! let request = proposal.request();                                // ═══▶ to the listener
//! let (asked, _) = Start::decode(Side::Request, &request).unwrap().unwrap(); // `None`: read more
//! let (reply, agreed) = Proposal::default().reply(&asked, b"welcome");       // ◀═══ its answer
//! let (answer, _) = Start::decode(Side::Reply, &reply).unwrap().unwrap();
//! let mut there = Connection::new(Settings { segment_max: 1448, ..Settings::from(agreed) });
//! let agreed = proposal.agree(&answer).unwrap();
//! let mut here = Connection::new(Settings { segment_max: 1448, ..Settings::from(agreed) });
//!
//! let mut regions = Regions::new();
//! let local = b"hello";
//! assert!(here.post(7, Work::Send { len: 5, solicited: false, invalidate: None }));
//!
//! // Transmit: as many FPDUs as one gathering write shall take.
//! let mut stream = Vec::new();
//! while let Some(mut fpdu) = here.next_fpdu(&regions) {
//!     let payload: &[&[u8]] = &[match fpdu.source() {
//!         Source::None => &[],
//!         Source::Work { id: 7, offset } => &local[offset as usize..][..fpdu.payload_len()],
//!         Source::Work { .. } | Source::Region { .. } => unreachable!("nothing else was posted or read"),
//!     }];
//!     fpdu.seal(payload); // the CRC
//!     // `skip` is for what an earlier, partial write has taken. The slices go into `writev`.
//!     fpdu.slices(payload, 0, |slice| stream.extend_from_slice(slice));
//! }
//! here.written(stream.len()); // what the socket has taken
//! assert_eq!(here.poll(), Some(Completion { id: 7, result: Ok(Done::Sent) }));
//!
//! // Receive: whatever the socket gives.
//! let mut host = Host { memory: vec![0; 1024], arrived: Vec::new() };
//! let taken = there.feed(&stream, &mut regions, &mut host);
//! assert_eq!(taken, stream.len()); // less only where `Sink::receive` said `Later`
//! assert_eq!((host.arrived[0].len, &host.memory[512..517]), (5, &b"hello"[..]));
//! ```
//!
//! # Rules for the driver
//!
//! - *Everything that is cut is written*, whole and in order, and [`Connection::written`] counts those bytes, not
//!   those of the set-up. A batch is cut when the socket can take it, not before.
//! - *Memory* of posted work stays as it is until its completion has been polled; of a region that a
//!   peer reads, until the FPDUs that are cut from it are written. So a region ends only between batches.
//! - *Straight into place.* When [`Connection::expects`] names a place and a length, the driver may receive that
//!   many bytes, or fewer, right there (the first part of a `readv`, with a common buffer behind it), and say so by
//!   [`Connection::placed`] instead of feeding them.
//! - *Failure.* When [`Connection::failure`] is there, the driver writes the rest of what is cut and what
//!   [`Connection::next_fpdu`] still gives (the Terminate, at most once), as far as the socket takes it
//!   without waiting, and closes it. Then it forgets the FPDUs it holds, polls the completions of all that was
//!   posted, and asks [`Connection::unfinished`] for the receive buffer that was being filled. When the
//!   socket fails, it says [`Connection::closed`].
//! - *Receive buffers.* [`Receive::Later`] stops the stream, answers to own requests with it: what gives
//!   buffers back must not wait for one of these.

#![forbid(unsafe_code)]

mod fpdu;
mod framing;
mod inbound;
mod outbound;
pub mod rd;
mod regions;
mod setup;
pub mod ud;
mod work;

pub use fpdu::{Fpdu, Source};
pub use regions::{Denied, MAX_REGIONS, Regions, Rights};
pub use setup::{Agreed, Proposal, Refusal, Rtr};
pub use wire::iwarp::ddp;
pub use wire::iwarp::mpa::{Side, Start};
pub use wire::iwarp::rdmap::{Atomic, Cause, Terminate};
pub use work::{Completion, Done, NotDone, Work};

use framing::{Framing, Step};
use inbound::{Ended, Inbound, Verdict};
use outbound::Outbound;
use work::SendQueue;

/// Longest segment that an FPDU may carry: with markers its length still fits their 16 bits.
pub const SEGMENT_MAX: usize = 64_512;
/// Shortest limit of segments: the control messages are not cut.
pub const SEGMENT_MIN: usize = 128;

/// What a connection is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Longest segment to send (MULPDU: header and payload, without length, pad and CRC), between
    /// [`SEGMENT_MIN`] and [`SEGMENT_MAX`].
    pub segment_max: usize,
    /// Whether CRCs are sent and checked.
    pub crc: bool,
    /// Whether the peer wants markers.
    pub send_markers: bool,
    /// Whether the peer sends markers.
    pub expect_markers: bool,
    /// Requests of the peer that are kept at a time; one more is an error.
    pub ird: usize,
    /// Requests under way at a time; further ones wait.
    pub ord: usize,
    /// Work that is posted and not polled, at most.
    pub depth: usize,
    /// Protection domain.
    pub domain: u32,
    /// Whether this side may send before the peer has (RFC 5044 section 7.1.3).
    pub may_begin: bool,
    /// The empty message by which this side opens the stream for both (RFC 6581 section 7).
    pub rtr: Option<Rtr>,
    /// Whether segments of answers and of own work may take turns. Linux' siw, for one, wants
    /// messages that travel tagged whole, one behind the other.
    pub interleave: bool,
}

/// Where bytes of payload go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Into a region; access has been checked.
    Region {
        /// Its tag.
        stag: u32,
        /// Offset of the first byte.
        to: u64,
    },
    /// Into a receive buffer.
    Buffer {
        /// As [`Sink::receive`] named it.
        id: u64,
        /// Of the first byte in the message, and in the buffer.
        offset: u32,
    },
}

impl Place {
    fn behind(self, len: usize) -> Place {
        match self {
            Place::Region { stag, to } => Place::Region { stag, to: to.wrapping_add(len as u64) },
            Place::Buffer { id, offset } => Place::Buffer { id, offset: offset + len as u32 },
        }
    }
}

/// The answer to a message that wants a receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receive {
    /// This one, which is the connection's until the message has arrived or the connection has failed.
    Buffer {
        /// Whatever the driver calls it.
        id: u64,
        /// Bytes in it.
        len: usize,
    },
    /// None is there now: nothing further is taken off the stream until [`Connection::feed`] is called again.
    Later,
    /// None is there, and the peer should have known: the stream ends.
    None,
}

/// A message that has arrived, whole and checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// The receive buffer it is in.
    pub id: u64,
    /// Its length; zero for Immediate Data.
    pub len: u32,
    /// Whether the sender asks that the receiver be woken.
    pub solicited: bool,
    /// The tag that ended with it.
    pub invalidated: Option<u32>,
    /// Immediate Data: everything that was written before it is placed.
    pub immediate: Option<u64>,
}

/// What the driver does with what comes in. Called from [`Connection::feed`] alone.
pub trait Sink {
    /// A message begins that takes a receive buffer.
    fn receive(&mut self, msn: u32) -> Receive;
    /// Bytes of payload, where they go. They are not complete, nor known to be right, before
    /// something says so: [`Sink::arrived`] behind them, or the completion of a Read.
    fn place(&mut self, place: Place, bytes: &[u8]);
    /// A message is complete.
    fn arrived(&mut self, arrived: Arrived);
    /// Changes an aligned word of a region, atomically against all others; what it was.
    fn atomic(&mut self, stag: u32, to: u64, atomic: &Atomic) -> u64;
}

/// Why a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The peer, or the driver, broke a rule: the Terminate that says which.
    Refused(Terminate),
    /// The peer says that this side did.
    Terminated(Terminate),
    /// The stream ended between two messages, with nothing under way.
    Closed,
    /// The stream ended otherwise.
    Lost,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Refused(terminate) => write!(out, "the peer broke a rule of iWARP: {}", terminate.cause),
            Failure::Terminated(terminate) => write!(out, "the peer ended the stream: {}", terminate.cause),
            Failure::Closed => out.write_str("the peer closed the connection"),
            Failure::Lost => out.write_str("the connection was lost"),
        }
    }
}

/// One reliable connection: see the [head of this module](self).
#[derive(Debug)]
pub struct Connection {
    may_send: bool,
    crc: bool,
    send: SendQueue,
    outbound: Outbound,
    written: u64,
    framing: Framing,
    inbound: Inbound,
    /// Where the next byte of payload goes; `None`: it is dropped, or there is none.
    place: Option<Place>,
    /// The segment in hand is refused, if its CRC is right.
    refused: Option<Terminate>,
    failure: Option<Failure>,
    /// The Terminate that has not been sent.
    last_word: Option<Terminate>,
}

impl Connection {
    /// A connection whose set-up has ended with these settings.
    pub fn new(settings: Settings) -> Connection {
        let max = settings.segment_max;
        assert!((SEGMENT_MIN..=SEGMENT_MAX).contains(&max), "segments of at most {max} bytes");
        let mut send = SendQueue::new(settings.depth, settings.ord);
        match settings.rtr {
            // Nobody looks at the tag of an empty message, but for adapters that refuse zero.
            Some(Rtr::Write) => send.open(Work::Write { len: 0, stag: 1, to: 0, immediate: None }),
            Some(Rtr::Read) => send.open(Work::Read { len: 0, sink_stag: 1, sink_to: 0, stag: 1, to: 0 }),
            None => {}
        }
        Connection {
            may_send: settings.may_begin,
            crc: settings.crc,
            send,
            outbound: Outbound::new(&settings),
            written: 0,
            framing: Framing::new(settings.crc, settings.expect_markers),
            inbound: Inbound::new(&settings),
            place: None,
            refused: None,
            failure: None,
            last_word: None,
        }
    }

    /// Posts work. False if the queue is full; then nothing has happened. On a connection that has
    /// failed it is taken and flushed.
    pub fn post(&mut self, id: u64, work: Work) -> bool {
        self.send.post(id, work)
    }

    /// Whether a Read or Atomic that is posted now leaves before what is posted behind it: of more than the peer takes at a time
    /// some wait for answers, while Sends and Writes go on.
    pub fn keeps_order(&self) -> bool {
        self.send.keeps_order()
    }

    /// The oldest completion that has not been fetched.
    #[inline]
    pub fn poll(&mut self) -> Option<Completion> {
        self.send.poll()
    }

    /// Gives memory back that is not needed while nothing is posted.
    pub(super) fn give_back(&mut self) {
        self.send.give_back();
    }

    /// Work that is posted and has not been polled.
    pub fn posted(&self) -> usize {
        self.send.len()
    }

    /// What to write next, if anything. What it gives has to be written whole, in this order.
    #[inline]
    pub fn next_fpdu(&mut self, regions: &Regions) -> Option<Fpdu> {
        self.next_fpdu_of(regions, |_, _, len| len)
    }

    /// The same; of a payload that may have so many bytes behind a header of so many, `shorten` says how many it takes: all, or a
    /// multiple of four.
    #[inline]
    pub fn next_fpdu_of(
        &mut self,
        regions: &Regions,
        shorten: impl FnOnce(Source, usize, usize) -> usize,
    ) -> Option<Fpdu> {
        if self.failure.is_none() && self.may_send {
            match self.outbound.next(&mut self.send, regions, shorten) {
                Ok(fpdu) => return fpdu,
                Err(cause) => self.refuse(Terminate::new(cause)),
            }
        }
        self.last_word.take().map(|terminate| self.outbound.terminate(&terminate))
    }

    /// Whether [`Connection::next_fpdu`] may have something to write: false is certain.
    #[inline]
    pub fn wants_to_write(&self) -> bool {
        let has_work = self.may_send && (self.send.has_work() || !self.outbound.owed.is_empty());
        self.last_word.is_some() || self.failure.is_none() && has_work
    }

    /// Whether this side may send: the one that was connected to has to hear the other first.
    pub fn may_send(&self) -> bool {
        self.may_send
    }

    /// The socket has taken so many bytes more.
    #[inline]
    pub fn written(&mut self, bytes: usize) {
        self.written += bytes as u64;
        self.send.written(self.written);
    }

    /// Takes in what the stream has brought; how many bytes were taken, which is all of them unless
    /// [`Sink::receive`] said [`Receive::Later`]: then the rest is to be fed again, even if it is nothing.
    pub fn feed(&mut self, bytes: &[u8], regions: &mut Regions, sink: &mut impl Sink) -> usize {
        let mut rest = bytes;
        while self.failure.is_none() {
            if self.framing.is_undecided() {
                if !self.decide(regions, sink) {
                    return bytes.len() - rest.len();
                }
                continue;
            }
            if rest.is_empty() {
                break;
            }
            let (taken, step) = self.framing.step(rest);
            match step {
                Step::More | Step::Header => {}
                Step::Payload => {
                    if let Some(place) = &mut self.place {
                        sink.place(*place, &rest[..taken]);
                        *place = place.behind(taken);
                    }
                }
                Step::End { is_right } => self.end(is_right, regions, sink),
                Step::BadMarker => self.refuse(Terminate::new(Cause::MPA_MARKER)),
            }
            rest = &rest[taken..];
        }
        bytes.len()
    }

    /// Where the next bytes of the stream go, and how many at most, if they are payload.
    pub fn expects(&self) -> Option<(Place, usize)> {
        let len = self.framing.expected();
        self.place.filter(|_| len > 0 && self.failure.is_none()).map(|place| (place, len))
    }

    /// Bytes of the stream have been put where [`Connection::expects`] said; there they lie.
    pub fn placed(&mut self, bytes: &[u8]) {
        self.framing.passed(bytes);
        self.place = self.place.map(|place| place.behind(bytes.len()));
    }

    /// The stream has ended, or the socket has failed.
    pub fn closed(&mut self) {
        let in_order = self.framing.is_between() && self.send.is_idle() && self.outbound.owed.is_empty();
        self.fail(if in_order { Failure::Closed } else { Failure::Lost });
    }

    /// Ends the connection for a reason of the driver's own, with a Terminate.
    pub fn terminate(&mut self, cause: Cause) {
        self.refuse(Terminate::new(cause));
    }

    /// The peer says, beside the stream, that this side has broken a rule.
    pub(super) fn terminated(&mut self, terminate: Terminate) {
        self.fail(Failure::Terminated(terminate));
    }

    /// Whether a segment waits for a receive buffer.
    pub(super) fn is_undecided(&self) -> bool {
        self.failure.is_none() && self.framing.is_undecided()
    }

    /// Why the connection has ended, if it has.
    #[inline]
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The receive buffer that a message was being placed in when the connection failed; once.
    pub fn unfinished(&mut self) -> Option<u64> {
        self.failure.as_ref().and_then(|_| self.inbound.unfinished())
    }

    /// Decides what becomes of the segment in hand; false if that has to wait.
    fn decide(&mut self, regions: &Regions, sink: &mut impl Sink) -> bool {
        match self.inbound.judge(&self.framing, regions, &self.send, sink) {
            Verdict::Later => return false,
            Verdict::Collect(len) => self.framing.collect(len),
            Verdict::Place(place) => {
                self.place = place;
                self.framing.pay();
            }
            Verdict::Refuse(cause) => {
                let terminate = describe(cause, self.framing.segment_len(), self.framing.header());
                if !self.crc {
                    self.refuse(terminate);
                    return true;
                }
                (self.place, self.refused) = (None, Some(terminate));
                self.framing.pay();
            }
        }
        true
    }

    fn end(&mut self, is_right: bool, regions: &mut Regions, sink: &mut impl Sink) {
        if !is_right {
            return self.refuse(Terminate::new(Cause::MPA_CRC));
        }
        if let Some(terminate) = self.refused.take() {
            return self.refuse(terminate);
        }
        // RFC 5044 section 7.1.3: the peer has begun.
        self.may_send = true;
        let header = self.framing.ended_header();
        match self.inbound.end(header, regions, &mut self.send, &mut self.outbound.owed, sink) {
            Ended::Fine => {}
            Ended::Refuse(cause) => self.refuse(describe(cause, self.framing.segment_len(), header)),
            Ended::Terminated(terminate) => self.fail(Failure::Terminated(terminate)),
        }
    }

    fn refuse(&mut self, terminate: Terminate) {
        if self.failure.is_none() {
            self.last_word = Some(terminate);
            self.fail(Failure::Refused(terminate));
        }
    }

    fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(failure);
            self.send.flush();
            self.outbound.owed.clear();
        }
    }
}

/// A Terminate with the headers of the segment that the error was found in (RFC 5040 section 4.8): of
/// errors below DDP there are none.
fn describe(cause: Cause, segment_len: usize, header: &[u8]) -> Terminate {
    let mut terminate = Terminate::new(cause);
    let Some(len) = header.first().map(|first| ddp::header_len(*first)) else { return terminate };
    if cause.layer > 1 || header.len() < len {
        return terminate;
    }
    let mut copy = [0; ddp::UNTAGGED_LEN];
    copy[..len].copy_from_slice(&header[..len]);
    (terminate.segment_len, terminate.ddp) = (Some(segment_len as u16), Some(copy));
    let is_read =
        ddp::Header::decode(header).is_ok_and(|h| h.opcode == wire::iwarp::rdmap::Opcode::ReadRequest);
    if cause.layer == 0 && is_read {
        terminate.request = header[len..].try_into().ok();
    }
    terminate
}
