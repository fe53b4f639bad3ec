//! The frames of MPA's set-up over a socket that does not block: what is to be written, and what has come so far.

use crate::stack::{Side, Start};
use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a stranger may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest frame of a set-up: 20 bytes and 512 of private data (RFC 5044 section 7.1.1).
const FRAME_MAX: usize = 20 + 512;

/// See the [module](self).
#[derive(Debug)]
pub struct Frames {
    /// The socket.
    pub socket: TcpStream,
    unsent: Vec<u8>,
    came: Vec<u8>,
    since: Instant,
    /// Whether nothing more will come.
    is_ended: bool,
}

impl Frames {
    /// Over this socket, which does not block, with this to be said first.
    pub fn new(socket: TcpStream, unsent: Vec<u8>) -> Frames {
        Frames { socket, unsent, came: Vec::new(), since: Instant::now(), is_ended: false }
    }

    /// Whether there is something to write.
    pub fn wants_room(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether it has taken longer than a stranger may.
    pub fn is_late(&self) -> bool {
        self.since.elapsed() > PATIENCE
    }

    /// Writes and reads what the socket takes and has; the peer's frame once it is whole, or why there will be none.
    pub fn look(&mut self, side: Side) -> std::io::Result<Option<Start>> {
        self.write()?;
        self.read()?;
        match Start::decode(side, &self.came) {
            Err(why) => Err(Error::new(ErrorKind::InvalidData, why.0)),
            Ok(None) if self.is_ended => {
                Err(Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection"))
            }
            Ok(None) => Ok(None),
            Ok(Some((start, len))) => {
                self.came.drain(..len);
                Ok(Some(start))
            }
        }
    }

    /// What has come behind the frame.
    pub fn early(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.came)
    }

    /// Says this last; whether the socket has taken it, as one that was never written to does.
    pub fn answer(&mut self, reply: Vec<u8>) -> bool {
        self.unsent = reply;
        self.write().is_ok() && self.unsent.is_empty()
    }

    fn write(&mut self) -> std::io::Result<()> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if is_soon(error.kind()) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> std::io::Result<()> {
        let mut room = [0; 2048];
        while self.came.len() < FRAME_MAX {
            match self.socket.read(&mut room) {
                Ok(0) => {
                    self.is_ended = true;
                    break;
                }
                Ok(got) => self.came.extend_from_slice(&room[..got]),
                Err(error) if is_soon(error.kind()) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a call that failed so is to be made again later.
fn is_soon(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}
