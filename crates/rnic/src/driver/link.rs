//! A connected peer: the socket, the state machine of the connection, and the payload of what is posted.
//!
//! Payload is not copied on its way out: FPDUs that the socket has not taken lend it until it has. On its way in
//! long payload is read straight into place, together with the header behind it.

use super::burst::Burst;
use super::postings::{Posted, Postings};
use super::{Host, memory};
use crate::stack::{Connection, Done, Fpdu, NotDone, Regions, Sink, Work};
use fabric::Span;
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};

/// FPDUs that one write takes, and bytes after which it takes no more.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 512 << 10;
/// Bytes read at a time where what comes is not known to be payload.
pub const READ_BYTES: usize = 64 << 10;
/// From this length on payload is read straight into place.
const DIRECT: usize = 4096;
/// Room for what stands between the payloads of two FPDUs.
const BETWEEN: usize = 64;
/// Bytes taken in for one look: others wait for theirs.
const LOOK_BYTES: usize = 1 << 20;

/// See the [module](self).
#[derive(Debug)]
pub struct Link {
    socket: TcpStream,
    /// The state machine.
    pub connection: Connection,
    postings: Postings,
    /// What the socket has not taken, and how much of the first of these it has.
    unsent: VecDeque<Fpdu>,
    written: usize,
    /// Bytes that came and could not be taken in yet.
    kept: Vec<u8>,
    /// What waits for more to leave with.
    pub burst: Burst,
    /// Whether the kernel tells when there is room again.
    pub asks_for_room: bool,
    /// Whether nothing more will come.
    is_ended: bool,
    /// What the system said when it ended.
    why: Option<String>,
}

impl Link {
    /// A connection over this socket, which does not block; `early` has come behind its set-up.
    pub fn new(socket: TcpStream, connection: Connection, early: &[u8]) -> Link {
        Link {
            socket,
            connection,
            postings: Postings::default(),
            unsent: VecDeque::new(),
            written: 0,
            kept: early.to_vec(),
            burst: Burst::default(),
            asks_for_room: false,
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
        self.postings.push(posted);
        self.burst.posted();
        None
    }

    /// The oldest work that has ended: what its poster called it, and how it ended.
    pub fn poll(&mut self) -> Option<(u64, Result<Done, NotDone>)> {
        let ended = self.connection.poll()?;
        Some(self.postings.ended(ended.id, ended.result))
    }

    /// Whether the socket has not taken all there is to send.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Writes what there is to write; whether anything was.
    pub fn send(&mut self, regions: &Regions) -> bool {
        let mut moved = false;
        self.burst.sent();
        loop {
            self.cut(regions);
            if self.unsent.is_empty() {
                return moved;
            }
            let mut slices: Vec<IoSlice> = Vec::with_capacity(4 * BATCH);
            let mut skip = self.written;
            for fpdu in &self.unsent {
                let payload = self.postings.payload(fpdu);
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
                Err(error) => {
                    self.break_off(&error);
                    return true;
                }
            }
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
    fn cut(&mut self, regions: &Regions) {
        let mut bytes: usize = self.unsent.iter().map(Fpdu::len).sum();
        while self.unsent.len() < BATCH && bytes < BATCH_BYTES {
            let Some(mut fpdu) = self.connection.next_fpdu(regions) else { return };
            let payload = self.postings.payload(&fpdu);
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
                Err(error) => self.break_off(&error),
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

    /// The system has ended the connection.
    fn break_off(&mut self, error: &std::io::Error) {
        self.why = Some(error.to_string());
        self.end();
    }

    /// What the system said when it ended the connection, if it did.
    pub fn why_ended(&self) -> Option<String> {
        self.why.clone()
    }

    /// Nothing more will come, or go.
    pub fn end(&mut self) {
        self.is_ended = true;
        self.connection.closed();
        self.unsent.clear();
        self.written = 0;
    }
}
