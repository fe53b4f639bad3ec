//! How two queue pairs that name each other come to a connection: MPA's set-up over TCP (RFC 5044, RFC 6581).
//!
//! Programs exchange numbers, addresses and packet numbers by ways of their own and only then move their queue pairs on, each
//! when it likes; one that only receives stays behind (in `IBV_QPS_RTR`). The one of the lower address and number connects;
//! the other answers once it has been moved on. The private data name both queue pairs, and the first packet numbers as far as
//! they have been told, which must be those that the other side knows: as with hardware, who knows none of them reaches
//! nobody.

use rnic::driver::Frames;
use rnic::stack::{Agreed, Proposal, Side, Start};
use std::net::TcpStream;

/// What the private data begin with: of this library, and the version of what follows.
const MAGIC: [u8; 4] = *b"TVq\x01";
/// A packet number that has not been told.
pub const UNTOLD: u32 = u32::MAX;

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
    /// As private data.
    pub fn encode(self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        [self.to, self.from, self.sends, self.expects]
            .iter()
            .for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
        out
    }

    /// From private data; nothing if they are not of this kind.
    pub fn decode(private: &[u8]) -> Option<Ends> {
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
    /// The socket, and what goes over it.
    pub frames: Frames,
    /// The queue pair of this side that asks, by its handle.
    pub asks: Option<u32>,
    /// Requests that are under way at a time: those of the peer, own ones.
    limits: (u16, u16),
    request: Option<Start>,
}

/// Whether this side asks for a CRC in each segment: `TERN_INTEGRITY=crc` (RFC 5044, section 7.1.1: either side may).
pub fn asks_for_crcs() -> bool {
    std::env::var_os("TERN_INTEGRITY").is_some_and(|word| word == "crc")
}

fn proposal(limits: (u16, u16), private: Vec<u8>) -> Proposal {
    Proposal { crc: asks_for_crcs(), ird: limits.0, ord: limits.1, private, ..Proposal::default() }
}

/// What a queue pair agrees on with itself.
pub fn with_itself((ird, ord): (u16, u16)) -> Agreed {
    Agreed {
        revision: 2,
        crc: asks_for_crcs(),
        send_markers: false,
        expect_markers: false,
        ird,
        ord: ord.min(ird),
        may_begin: true,
        rtr: None,
    }
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
        Meeting { frames: Frames::new(socket, unsent), asks, limits, request: None }
    }

    /// Whether a stranger has taken too long to say what it wants.
    pub fn is_late(&self) -> bool {
        self.asks.is_none() && self.request.is_none() && self.frames.is_late()
    }

    /// Looks what has come.
    pub fn look(&mut self) -> Met {
        let side = if self.asks.is_some() { Side::Reply } else { Side::Request };
        match self.frames.look(side) {
            Err(_) => Met::Failed,
            Ok(None) => Met::Waits,
            Ok(Some(reply)) if self.asks.is_some() => match proposal(self.limits, Vec::new()).agree(&reply) {
                Ok(agreed) => Met::Agreed(agreed, self.frames.early()),
                Err(_) => Met::Failed,
            },
            Ok(Some(request)) => match Ends::decode(&request.private) {
                Some(ends) => {
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
        self.frames.answer(reply).then(|| (agreed, self.frames.early()))
    }

    /// Refuses who has asked.
    pub fn refuse(&mut self) {
        if let Some(request) = &self.request {
            self.frames.answer(Proposal::reject(request, b"no such queue pair"));
        }
    }
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
