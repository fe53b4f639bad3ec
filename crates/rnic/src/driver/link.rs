//! A connected peer: the socket, the state machine of the connection, and the payload of what is posted.
//!
//! Payload is not copied on its way out, but for short FPDUs, which are written in one piece: those that the socket has not taken
//! lend it until it has. On its way in long payload is read straight into place, together with the header behind it. The header
//! of the first of it comes alone: where a long payload has come, little is read until it is known what follows. Where messages
//! have MACs ([`super::seal`]) everything that comes waits until that of its FPDU was right.

use super::backlog::Backlog;
use super::burst::Burst;
use super::memory;
use super::postings::{INLINE, Posted, Postings};
use super::seal::{StreamSeals, TAG_LEN};
use crate::stack::{
    Arrived, Atomic, Cause, Connection, Done, Fpdu, NotDone, Place, Receive, Regions, Sink, Work,
};
use fabric::Span;
use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use wire::iwarp::mpa;

/// FPDUs that one write takes, and bytes after which it takes no more.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 512 << 10;
/// FPDUs that have no more bytes, on average, are written in one piece: each of the three or four that one consists of costs the
/// kernel more than a copy of so much. It is what is copied anyway when it is posted, with header, CRC and MAC.
const SHORT: usize = INLINE + 64;
/// Payload of an FPDU that is there for the place of the next one's, see [`Link::cut`].
const LEAD: usize = 64;
/// Bytes read at a time where what comes is not known to be payload: a frame of 64 KiB with its headers.
pub const READ_BYTES: usize = (64 << 10) + memcopy::PAGE;
/// As many where a long payload may follow: headers, and what is said between long messages.
const HEAD_BYTES: usize = 256;
/// From this length on payload is read straight into place.
const DIRECT: usize = 4096;
/// From this length on a copy costs more than a read of the header alone. Of shorter ones several come by one read.
const LONG: usize = 32 << 10;
/// Room for what stands between the payloads of two FPDUs.
const BETWEEN: usize = 64;
/// How long there may be no room before the kernel is given what is left, and how long whoever sends waits at all: what a megabyte takes
/// over a quick link.
const PATIENCE_NS: u64 = 20_000;
const WHILE_NS: u64 = 300_000;
/// Bytes taken in for one look: others wait for theirs.
const LOOK_BYTES: usize = 1 << 20;

/// Where what comes over a connection goes.
pub trait Landing: Sink {
    /// The memory of a place, up to `len` bytes of it: fewer where it lies in pieces.
    fn span(&self, place: Place, len: usize) -> Span;
    /// Bytes have been put there without [`Sink::place`].
    fn touched(&mut self);
}

/// See the [module](self).
#[derive(Debug)]
pub struct Link {
    socket: TcpStream,
    /// What of it waits in the kernel.
    backlog: Backlog,
    /// The state machine.
    pub connection: Connection,
    postings: Postings,
    /// What the socket has not taken, each with its MAC if it has one, and how much of the first of these it has.
    unsent: VecDeque<(Fpdu, Option<[u8; TAG_LEN]>)>,
    written: usize,
    seals: Option<Box<StreamSeals>>,
    /// Bytes whose MAC has not come.
    sealed: Vec<u8>,
    /// Bytes that came and could not be taken in yet.
    kept: Vec<u8>,
    /// Whether long payloads come: the last one that came was, and no crowd of short ones since.
    comes_long: bool,
    /// What waits for more to leave with.
    pub burst: Burst,
    /// Whether the kernel tells when there is room again.
    pub asks_for_room: bool,
    /// Whether nothing more will go: the peer has gone. What it sent before may still come.
    is_shut: bool,
    /// Whether nothing more will come, either.
    is_ended: bool,
    /// What the system said when it ended.
    why: Option<String>,
}

impl Link {
    /// A connection over this socket, which does not block; `early` has come behind its set-up.
    pub fn new(
        socket: TcpStream,
        connection: Connection,
        early: &[u8],
        seals: Option<Box<StreamSeals>>,
    ) -> Link {
        let (sealed, kept) =
            if seals.is_some() { (early.to_vec(), vec![]) } else { (vec![], early.to_vec()) };
        Link {
            backlog: Backlog::new(&socket),
            socket,
            connection,
            postings: Postings::default(),
            unsent: VecDeque::new(),
            written: 0,
            seals,
            sealed,
            kept,
            comes_long: false,
            burst: Burst::default(),
            asks_for_room: false,
            is_shut: false,
            is_ended: false,
            why: None,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Posts work; gives it back if there is no room.
    pub fn post(&mut self, posted: Posted, work: Work) -> Option<Posted> {
        if !self.connection.post(self.postings.next(), work) {
            return Some(posted);
        }
        self.burst.posted_bytes(posted.payload.len());
        self.postings.push(posted);
        None
    }

    /// Whether what is posted next is offered to the socket by the next [`Link::send`]: the socket has taken all before it, and the peer
    /// has spoken where it has to speak first (RFC 5044 section 7.1.3).
    pub fn is_free(&self) -> bool {
        !self.has_unsent() && self.connection.may_send()
    }

    /// Sends what was posted last, whose memory is needed no longer then. As long as there is soon room again it leaves from there; then the kernel gets
    /// what it takes, and the rest is copied.
    pub fn see_off(&mut self, regions: &Regions, clock_ns: impl Fn() -> u64) {
        self.send(regions);
        if !self.has_unsent() {
            return;
        }
        let begun_ns = clock_ns();
        let (mut moved_ns, mut now_ns) = (begun_ns, begun_ns);
        while self.has_unsent() && now_ns - moved_ns < PATIENCE_NS && now_ns - begun_ns < WHILE_NS {
            let has_moved = has_room(&self.socket) && self.send(regions);
            now_ns = clock_ns();
            moved_ns = if has_moved { now_ns } else { moved_ns };
        }
        if self.has_unsent() {
            // The peer does not read. When it does this rank may be computing, and the kernel has to go on without it.
            self.backlog.widen(&self.socket, true);
            self.send(regions);
            self.backlog.widen(&self.socket, false);
        }
        if self.has_unsent() {
            self.postings.keep_last();
        }
    }

    /// The oldest work that has ended: what its poster called it, and how it ended.
    pub fn poll(&mut self) -> Option<(u64, Result<Done, NotDone>)> {
        let ended = self.connection.poll()?;
        // Of a connection nothing is told before it has ended, so nobody asks for the time.
        self.postings.ended(ended.id, ended.result, || 0)
    }

    /// Whether the socket has not taken all there is to send.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether nothing happens to it until something comes or is posted.
    pub fn rests(&self) -> bool {
        let is_open = !self.is_ended && !self.is_shut && self.connection.failure().is_none();
        is_open && !self.is_stalled() && !self.has_unsent() && !self.connection.wants_to_write()
    }

    /// Writes what there is to write; whether anything was.
    pub fn send(&mut self, regions: &Regions) -> bool {
        let mut moved = false;
        self.burst.sent();
        loop {
            if self.connection.wants_to_write() {
                self.cut(regions);
            }
            if self.unsent.is_empty() || self.is_shut {
                return moved;
            }
            match self.write() {
                Ok(taken) => {
                    moved = true;
                    self.backlog.took(taken);
                    self.took(taken);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.backlog.full(&self.socket);
                    return moved;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(Errno::FAULT.raw_os_error()) => {
                    // Who posted it gave no memory. The peer lives, and waits for the rest for ever.
                    self.why = Some(format!("what was to be sent is not in memory: {error}"));
                    self.end();
                    return true;
                }
                Err(error) => {
                    self.shut(&error);
                    return true;
                }
            }
        }
    }

    /// Offers the socket what it has not taken: in one piece where that is short, else from where it lies.
    fn write(&self) -> std::io::Result<usize> {
        let bytes: usize = self.unsent.iter().map(|(fpdu, _)| fpdu.len() + TAG_LEN).sum();
        if bytes <= SHORT * self.unsent.len() {
            let mut whole = SmallVec::<[u8; SHORT + TAG_LEN]>::with_capacity(bytes);
            self.pieces(|piece| whole.extend_from_slice(piece));
            return Ok(send(&self.socket, &whole, SendFlags::NOSIGNAL)?);
        }
        let mut slices = SmallVec::<[IoSlice<'_>; 8]>::with_capacity(4 * self.unsent.len());
        self.pieces(|piece| slices.push(IoSlice::new(piece)));
        (&self.socket).write_vectored(&slices)
    }

    /// What the socket has not taken, in order, where it lies.
    fn pieces<'a>(&'a self, mut out: impl FnMut(&'a [u8])) {
        let mut skip = self.written;
        for (fpdu, tag) in &self.unsent {
            let payload = self.postings.payload(fpdu);
            fpdu.slices(&payload, skip, &mut out);
            if let Some(tag) = tag {
                out(&tag[skip.saturating_sub(fpdu.len())..]);
            }
            skip = 0;
        }
    }

    /// Sends what a connection that has failed still has to say, as far as the socket takes it: its Terminate. What is
    /// cut then points into nothing any more, and what is posted may be polled.
    pub fn send_last(&mut self, regions: &Regions) {
        self.send(regions);
        self.unsent.clear();
        self.written = 0;
    }

    /// Takes from the connection what the next write shall take.
    ///
    /// Where nothing is under way the kernel copies what is written to the beginning of a page, and payload on a page of its own
    /// lies [close behind](memcopy) its source there, by the length of the header. So such payload gets short FPDUs in front of
    /// it, of its first bytes, until it lies far enough behind.
    fn cut(&mut self, regions: &Regions) {
        let sealed =
            |(fpdu, tag): &(Fpdu, Option<[u8; TAG_LEN]>)| fpdu.len() + tag.map_or(0, |tag| tag.len());
        let mut bytes: usize = self.unsent.iter().map(sealed).sum::<usize>() - self.written;
        while self.unsent.len() < BATCH && bytes < BATCH_BYTES {
            let postings = &self.postings;
            let shorten = |source, header_len, len| {
                let at = bytes + mpa::LENGTH_LEN + header_len;
                let is_long = len >= memcopy::DETOURS; // a short one is not asked where it lies
                if is_long && memcopy::wants_detour(at, postings.address(source), len) { LEAD } else { len }
            };
            let Some(mut fpdu) = self.connection.next_fpdu_of(regions, shorten) else { return };
            let payload = self.postings.payload(&fpdu);
            fpdu.seal(&payload);
            let tag = self.seals.as_mut().map(|seals| {
                let mut pieces = Vec::with_capacity(4);
                fpdu.slices(&payload, 0, |piece| pieces.push(piece));
                seals.seal.stream(pieces.into_iter())
            });
            self.unsent.push_back((fpdu, tag));
            bytes += self.unsent.back().map_or(0, sealed);
        }
    }

    /// The socket has taken so many bytes.
    fn took(&mut self, taken: usize) {
        self.written += taken;
        while let Some((fpdu, tag)) = self.unsent.front() {
            let (len, sealed_len) = (fpdu.len(), fpdu.len() + tag.map_or(0, |tag| tag.len()));
            if self.written < sealed_len {
                return;
            }
            self.written -= sealed_len;
            self.connection.written(len);
            self.unsent.pop_front();
        }
    }

    /// Takes in what has come, and what had to wait; whether there was anything. `room` is the caller's, to read into.
    pub fn receive(&mut self, regions: &mut Regions, host: &mut impl Landing, room: &mut [u8]) -> bool {
        let had_to_wait = self.is_stalled();
        if !self.feed_kept(regions, host) || !self.feed_sealed(regions, host) {
            if self.is_shut {
                // What waits for room may do so for ever, and with it all that was posted.
                self.end();
            }
            return false;
        }
        let mut moved = had_to_wait;
        let mut left = LOOK_BYTES;
        while left > 0 && self.connection.failure().is_none() && !self.is_ended {
            let (direct, len) = match self.expects_long() {
                Some((at, len)) => {
                    let span = host.span(at, len);
                    (span, span.len + BETWEEN)
                }
                None if self.comes_long => (Span::EMPTY, HEAD_BYTES.min(room.len())),
                None => (Span::EMPTY, room.len()),
            };
            // Not by the C library: where a process has threads it makes each such call a point at which one may be cancelled.
            let read = if direct.len == 0 {
                recv(&self.socket, &mut room[..len], RecvFlags::empty()).map(|(_, got)| got)
            } else {
                let mut slices =
                    [IoSliceMut::new(memory::bytes_mut(direct)), IoSliceMut::new(&mut room[..BETWEEN])];
                readv(&self.socket, &mut slices)
            };
            match read {
                Ok(0) => self.end(),
                Ok(got) => {
                    moved = true;
                    left = left.saturating_sub(got);
                    let placed = got.min(direct.len);
                    if placed > 0 {
                        self.connection.placed(memory::bytes(direct.part(0, placed)));
                        host.touched();
                        self.comes_long |= len > LONG;
                    }
                    let is_taken = if self.seals.is_some() {
                        self.sealed.extend_from_slice(&room[..got]);
                        self.feed_sealed(regions, host)
                    } else {
                        self.feed(&room[..got - placed], regions, host)
                    };
                    if !is_taken || got < len {
                        break;
                    }
                    self.comes_long &=
                        len > HEAD_BYTES || self.expects_long().is_some_and(|(_, len)| len >= LONG);
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.why = Some(std::io::Error::from(error).to_string());
                    self.end();
                }
            }
        }
        moved
    }

    /// Where the next bytes go, and how many, if they are payload that is read straight into place.
    fn expects_long(&self) -> Option<(Place, usize)> {
        self.connection.expects().filter(|(_, len)| *len >= DIRECT && self.seals.is_none())
    }

    /// Feeds the connection; false if some of it has to wait.
    fn feed(&mut self, bytes: &[u8], regions: &mut Regions, sink: &mut impl Sink) -> bool {
        let mut noting = Noting { sink, has_copied_long: false };
        let taken = self.connection.feed(bytes, regions, &mut noting);
        self.comes_long |= noting.has_copied_long && self.seals.is_none();
        self.kept.extend_from_slice(&bytes[taken..]);
        self.kept.is_empty()
    }

    /// Feeds the connection what has come with its MAC; false if some of it has to wait, or one was wrong.
    fn feed_sealed(&mut self, regions: &mut Regions, sink: &mut impl Sink) -> bool {
        if self.sealed.is_empty() {
            return true;
        }
        let mut sealed = std::mem::take(&mut self.sealed);
        let (mut rest, mut goes_on) = (&sealed[..], true);
        while goes_on
            && let Some(segment_len) = rest.first_chunk().map(|len| usize::from(u16::from_be_bytes(*len)))
            && let len = mpa::LENGTH_LEN + segment_len + mpa::pad_len(segment_len) + mpa::CRC_LEN
            && let Some((fpdu, behind)) = rest.split_at_checked(len)
            && let Some((tag, behind)) = behind.split_first_chunk::<TAG_LEN>()
        {
            let is_right = self.seals.as_mut().is_some_and(|seals| seals.check.is_next(fpdu, tag));
            if is_right {
                goes_on = self.feed(fpdu, regions, sink) && self.connection.failure().is_none();
            } else {
                self.connection.terminate(Cause::MPA_MAC);
                goes_on = false;
            }
            rest = behind;
        }
        let left = rest.len();
        sealed.drain(..sealed.len() - left);
        self.sealed = sealed;
        goes_on
    }

    /// Feeds what had to wait; false if some of it still has to.
    fn feed_kept(&mut self, regions: &mut Regions, sink: &mut impl Sink) -> bool {
        if self.kept.is_empty() {
            return true;
        }
        let kept = std::mem::take(&mut self.kept);
        self.feed(&kept, regions, sink)
    }

    /// Sends what is left, says that nothing follows and reads away what still comes; whether the peer has said so, too.
    pub fn takes_leave(&mut self, regions: &Regions, room: &mut [u8]) -> bool {
        self.send(regions);
        if self.has_unsent() && !self.is_shut {
            return false;
        }
        if self.socket.shutdown(Shutdown::Write).is_err() {
            return true;
        }
        match self.socket.read(room) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Whether what has come waits for a receive buffer.
    pub fn is_stalled(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The system takes nothing more for the peer. What has come from it is read first: it may have said all, and gone.
    fn shut(&mut self, error: &std::io::Error) {
        self.why = Some(error.to_string());
        self.is_shut = true;
    }

    /// What the system said when it ended the connection, if it did.
    pub fn why_ended(&self) -> Option<String> {
        self.why.clone()
    }

    /// Nothing more will come, or go.
    pub fn end(&mut self) {
        self.is_ended = true;
        self.is_shut = true;
        if !self.sealed.is_empty() && self.kept.is_empty() {
            // Within a message, which the connection has not seen.
            self.connection.terminate(Cause::MPA_LOST);
        }
        self.connection.closed();
        self.unsent.clear();
        self.written = 0;
    }
}

/// Takes note of payload that was read into other memory and copied from there.
struct Noting<'a, S> {
    sink: &'a mut S,
    has_copied_long: bool,
}

impl<S: Sink> Sink for Noting<'_, S> {
    fn receive(&mut self, msn: u32) -> Receive {
        self.sink.receive(msn)
    }

    fn place(&mut self, place: Place, bytes: &[u8]) {
        self.has_copied_long |= bytes.len() >= LONG;
        self.sink.place(place, bytes);
    }

    fn arrived(&mut self, arrived: Arrived) {
        self.sink.arrived(arrived);
    }

    fn atomic(&mut self, stag: u32, to: u64, atomic: &Atomic) -> u64 {
        self.sink.atomic(stag, to, atomic)
    }
}

/// Whether the socket has room for much: the kernel says so only when a third of what may wait is free.
fn has_room(socket: &TcpStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&now)).is_ok_and(|ready| ready > 0)
}
