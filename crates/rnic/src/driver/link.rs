//! A connected peer: the socket, the state machine of the connection, and the payload of what is posted.
//!
//! Payload is not copied on its way out: FPDUs that the socket has not taken lend it until it has. On its way in
//! long payload is read straight into place, together with the header behind it.

use super::{Host, memory};
use crate::stack::{Connection, Done, Fpdu, NotDone, Regions, Sink, Source, Work};
use fabric::{Local, Span};
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};

/// FPDUs that one write takes, and bytes after which it takes no more.
const BATCH: usize = 16;
const BATCH_BYTES: usize = 512 << 10;
/// Bytes read at a time where what comes is not known to be payload.
pub const READ_BYTES: usize = 64 << 10;
/// From this length on payload is read straight into place.
const DIRECT: usize = 4096;
/// Room for what stands between the payloads of two FPDUs.
const BETWEEN: usize = 64;
/// Bytes taken in for one look: others wait for theirs.
const LOOK_BYTES: usize = 1 << 20;
/// Payload that is copied when it is posted.
pub const INLINE: usize = 256;

/// Where the payload of posted work is.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Copied when it was posted.
    Inline(Box<[u8]>),
    /// In memory of who posted it, in at most two pieces.
    Lent([Span; 2]),
}

impl Payload {
    /// The payload that these parts make.
    pub fn of(parts: &[Local]) -> Payload {
        let len: usize = parts.iter().map(|part| part.span.len).sum();
        if len <= INLINE {
            let mut bytes = Vec::with_capacity(len);
            parts.iter().for_each(|part| bytes.extend_from_slice(memory::bytes(part.span)));
            return Payload::Inline(bytes.into());
        }
        let span = |at: usize| parts.get(at).map_or(Span::EMPTY, |part| part.span);
        Payload::Lent([span(0), span(1)])
    }

    /// The part from `offset`, `len` bytes long.
    fn part(&self, offset: usize, len: usize) -> [&[u8]; 2] {
        match self {
            Payload::Inline(bytes) => [&bytes[offset..offset + len], &[]],
            Payload::Lent([first, second]) => {
                let head = first.part(offset, len);
                let tail = second.part(offset.saturating_sub(first.len), len - head.len);
                [memory::bytes(head), memory::bytes(tail)]
            }
        }
    }
}

/// Work that is posted and has not been told to have ended.
#[derive(Debug)]
pub struct Posted {
    /// As it was posted.
    pub work: u64,
    /// See [`Payload`].
    pub payload: Payload,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Link {
    socket: TcpStream,
    /// The state machine.
    pub connection: Connection,
    /// In the order of posting; the first has this number.
    posted: VecDeque<Posted>,
    first: u64,
    /// What the socket has not taken, and how much of the first of these it has.
    unsent: VecDeque<Fpdu>,
    written: usize,
    /// Bytes that came and could not be taken in yet.
    kept: Vec<u8>,
    /// Whether the kernel tells when there is room again.
    pub asks_for_room: bool,
    /// Whether nothing more will come.
    is_ended: bool,
}

impl Link {
    /// A connection over this socket, which does not block; `early` has come behind its set-up.
    pub fn new(socket: TcpStream, connection: Connection, early: &[u8]) -> Link {
        Link {
            socket,
            connection,
            posted: VecDeque::new(),
            first: 0,
            unsent: VecDeque::new(),
            written: 0,
            kept: early.to_vec(),
            asks_for_room: false,
            is_ended: false,
        }
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Posts work; `None` gives it back, for there is no room.
    pub fn post(&mut self, posted: Posted, work: Work) -> Option<Posted> {
        let number = self.first + self.posted.len() as u64;
        if !self.connection.post(number, work) {
            return Some(posted);
        }
        self.posted.push_back(posted);
        None
    }

    /// The oldest work that has ended: what its poster called it, and how it ended.
    pub fn poll(&mut self) -> Option<(u64, Result<Done, NotDone>)> {
        let ended = self.connection.poll()?;
        let posted = self.posted.pop_front().expect("what has ended was posted");
        assert_eq!(ended.id, self.first, "work is told in the order of posting");
        self.first += 1;
        Some((posted.work, ended.result))
    }

    /// Whether the socket has not taken all there is to send.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Writes what there is to write; whether anything was.
    pub fn send(&mut self, regions: &Regions) -> bool {
        let mut moved = false;
        loop {
            self.cut(regions);
            if self.unsent.is_empty() {
                return moved;
            }
            let mut slices: Vec<IoSlice> = Vec::with_capacity(4 * BATCH);
            let mut skip = self.written;
            for fpdu in &self.unsent {
                let payload = payload_of(&self.posted, self.first, fpdu);
                fpdu.slices(&payload, skip, |slice| slices.push(IoSlice::new(slice)));
                skip = 0;
            }
            match self.socket.write_vectored(&slices) {
                Ok(taken) => {
                    moved = true;
                    self.took(taken);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return moved,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.end();
                    return true;
                }
            }
        }
    }

    /// Takes from the connection what the next write shall take.
    fn cut(&mut self, regions: &Regions) {
        let mut bytes: usize = self.unsent.iter().map(Fpdu::len).sum();
        while self.unsent.len() < BATCH && bytes < BATCH_BYTES {
            let Some(mut fpdu) = self.connection.next_fpdu(regions) else { return };
            let payload = payload_of(&self.posted, self.first, &fpdu);
            fpdu.seal(&payload);
            bytes += fpdu.len();
            self.unsent.push_back(fpdu);
        }
    }

    /// The socket has taken so many bytes.
    fn took(&mut self, taken: usize) {
        self.written += taken;
        while self.unsent.front().is_some_and(|fpdu| fpdu.len() <= self.written) {
            self.written -= self.unsent.pop_front().map_or(0, |fpdu| fpdu.len());
        }
        self.connection.written(taken);
    }

    /// Takes in what has come; whether there was anything. `room` is the caller's, to read into.
    pub fn receive(&mut self, regions: &mut Regions, host: &mut Host, room: &mut [u8]) -> bool {
        if !self.feed_kept(regions, host) {
            return false;
        }
        let mut moved = false;
        let mut left = LOOK_BYTES;
        while left > 0 && self.connection.failure().is_none() && !self.is_ended {
            let (direct, len) = match self.connection.expects() {
                Some((at, len)) if len >= DIRECT => (Span { addr: host.address(at), len }, len + BETWEEN),
                _ => (Span::EMPTY, room.len()),
            };
            let read = if direct.len == 0 {
                self.socket.read(room)
            } else {
                let mut slices =
                    [IoSliceMut::new(memory::bytes_mut(direct)), IoSliceMut::new(&mut room[..BETWEEN])];
                self.socket.read_vectored(&mut slices)
            };
            match read {
                Ok(0) => self.end(),
                Ok(got) => {
                    moved = true;
                    left = left.saturating_sub(got);
                    let placed = got.min(direct.len);
                    if placed > 0 {
                        self.connection.placed(memory::bytes(direct.part(0, placed)));
                        host.is_touched = true;
                    }
                    if !self.feed(&room[..got - placed], regions, host) || got < len {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.end(),
            }
        }
        moved
    }

    /// Feeds the connection; false if some of it has to wait.
    fn feed(&mut self, bytes: &[u8], regions: &mut Regions, sink: &mut impl Sink) -> bool {
        let taken = self.connection.feed(bytes, regions, sink);
        self.kept.extend_from_slice(&bytes[taken..]);
        self.kept.is_empty()
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
        if !self.is_ended {
            self.send(regions);
        }
        if self.has_unsent() && !self.is_ended {
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

    /// Nothing more will come, or go.
    fn end(&mut self) {
        self.is_ended = true;
        self.connection.closed();
        self.unsent.clear();
        self.written = 0;
    }
}

/// The payload of an FPDU, where it lies.
fn payload_of<'a>(posted: &'a VecDeque<Posted>, first: u64, fpdu: &Fpdu) -> [&'a [u8]; 2] {
    match fpdu.source() {
        Source::None => [&[], &[]],
        Source::Work { id, offset } => {
            posted[(id - first) as usize].payload.part(offset as usize, fpdu.payload_len())
        }
        Source::Region { to, .. } => {
            [memory::bytes(Span { addr: to as usize, len: fpdu.payload_len() }), &[]]
        }
    }
}
