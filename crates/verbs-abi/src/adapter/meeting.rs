//! How two queue pairs that name each other come to a connection: MPA's set-up over TCP (RFC 5044, RFC 6581).
//!
//! Programs exchange numbers, addresses and packet numbers by ways of their own and only then move their queue pairs on, each
//! when it likes; one that only receives stays behind (in `IBV_QPS_RTR`). The one of the lower address and number connects;
//! the other answers once it has been moved on. The private data name both queue pairs, and the first packet numbers as far as
//! they have been told, which must be those that the other side knows: as with hardware, who knows none of them reaches
//! nobody.

use rnic::stack::{Agreed, Proposal, Side, Start};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What the private data begin with: of this library, and the version of what follows.
const MAGIC: [u8; 4] = *b"TVq\x01";
/// A packet number that has not been told.
pub const UNTOLD: u32 = u32::MAX;
/// Longest frame of a set-up: 20 bytes and 512 of private data (RFC 5044 section 7.1.1).
const FRAME_MAX: usize = 20 + 512;
/// How long a stranger may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which queue pairs a connection is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The number of the one that is asked.
    pub to: u32,
    /// The number of the one that asks.
    pub from: u32,
    /// The first packet number of the one that asks, or [`UNTOLD`].
    pub sends: u32,
    /// The one that it expects.
    pub expects: u32,
}

impl Ends {
    fn encode(self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        [self.to, self.from, self.sends, self.expects]
            .iter()
            .for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        out
    }

    fn decode(private: &[u8]) -> Option<Ends> {
        let (magic, words) = private.split_at_checked(MAGIC.len())?;
        let words: &[u8; 16] = words.try_into().ok()?;
        let word = |at: usize| u32::from_be_bytes(words[at..at + 4].try_into().expect("four bytes"));
        (magic == MAGIC).then(|| Ends { to: word(0), from: word(4), sends: word(8), expects: word(12) })
    }
}

/// What has become of a set-up.
#[derive(Debug)]
pub enum Met {
    /// It goes on.
    Waits,
    /// The other side has agreed; these bytes came behind its answer.
    Agreed(Agreed, Vec<u8>),
    /// Somebody asks for a queue pair.
    Asked(Ends),
    /// It came to nothing.
    Failed,
}

/// One set-up under way.
#[derive(Debug)]
pub struct Meeting {
    /// The socket.
    pub socket: TcpStream,
    /// The queue pair of this side that asks, by its handle.
    pub asks: Option<u32>,
    /// Requests that are under way at a time: those of the peer, own ones.
    limits: (u16, u16),
    unsent: Vec<u8>,
    came: Vec<u8>,
    request: Option<Start>,
    is_ended: bool,
    since: Instant,
}

fn proposal(limits: (u16, u16), private: Vec<u8>) -> Proposal {
    Proposal { crc: false, ird: limits.0, ord: limits.1, private, ..Proposal::default() }
}

impl Meeting {
    /// Somebody has connected.
    pub fn with_stranger(socket: TcpStream) -> Meeting {
        Meeting::new(socket, None, (0, 0), Vec::new())
    }

    /// The queue pair of this handle asks.
    pub fn asking(socket: TcpStream, handle: u32, ends: Ends, limits: (u16, u16)) -> Meeting {
        Meeting::new(socket, Some(handle), limits, proposal(limits, ends.encode()).request())
    }

    fn new(socket: TcpStream, asks: Option<u32>, limits: (u16, u16), unsent: Vec<u8>) -> Meeting {
        let (came, since) = (Vec::new(), Instant::now());
        Meeting { socket, asks, limits, unsent, came, request: None, is_ended: false, since }
    }

    /// Whether there is something to write.
    pub fn wants_room(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether a stranger has taken too long to say what it wants.
    pub fn is_late(&self) -> bool {
        self.asks.is_none() && self.request.is_none() && self.since.elapsed() > PATIENCE
    }

    /// Looks what has come.
    pub fn look(&mut self) -> Met {
        if !self.write() || !self.read() {
            return Met::Failed;
        }
        let side = if self.asks.is_some() { Side::Reply } else { Side::Request };
        match Start::decode(side, &self.came) {
            Err(_) => Met::Failed,
            Ok(None) if self.is_ended => Met::Failed,
            Ok(None) => Met::Waits,
            Ok(Some((reply, len))) if self.asks.is_some() => {
                match proposal(self.limits, Vec::new()).agree(&reply) {
                    Ok(agreed) => Met::Agreed(agreed, self.came.split_off(len)),
                    Err(_) => Met::Failed,
                }
            }
            Ok(Some((request, len))) => match Ends::decode(&request.private) {
                Some(ends) => {
                    self.came.drain(..len);
                    self.request = Some(request);
                    Met::Asked(ends)
                }
                None => Met::Failed,
            },
        }
    }

    /// Answers who has asked, with these limits; what is agreed on and what has come already, unless the socket is gone.
    pub fn answer(&mut self, limits: (u16, u16)) -> Option<(Agreed, Vec<u8>)> {
        let (reply, agreed) = proposal(limits, Vec::new()).reply(self.request.as_ref()?, &[]);
        self.unsent = reply;
        (self.write() && self.unsent.is_empty()).then(|| (agreed, std::mem::take(&mut self.came)))
    }

    /// Refuses who has asked.
    pub fn refuse(&mut self) {
        if let Some(request) = &self.request {
            self.unsent = Proposal::reject(request, b"no such queue pair");
            self.write();
        }
    }

    fn write(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) => return is_soon(error.kind()),
            }
        }
        true
    }

    fn read(&mut self) -> bool {
        let mut room = [0; 2048];
        while self.came.len() < FRAME_MAX {
            match self.socket.read(&mut room) {
                Ok(0) => {
                    self.is_ended = true;
                    return true;
                }
                Ok(got) => self.came.extend_from_slice(&room[..got]),
                Err(error) => return is_soon(error.kind()),
            }
        }
        true
    }
}

/// Whether a call that failed so is to be made again later.
fn is_soon(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotConnected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_data_come_back_and_nothing_else_is_taken() {
        let ends = Ends { to: 0x12_3401, from: 0x56_7800, sends: UNTOLD, expects: 0xab_cdef };
        let private = ends.encode();
        assert_eq!(Ends::decode(&private), Some(ends));
        for len in 0..private.len() {
            assert_eq!(Ends::decode(&private[..len]), None, "{len}");
        }
        assert_eq!(Ends::decode(b"TVq\x02aaaabbbbccccdddd"), None);
    }
}
