//! Messages under way, in slots that are used again.

use fabric::{Local, Remote, Span};

use crate::adapter::Passage;

/// Entries of a gather list.
pub const GATHER: usize = 4;
/// A long message becomes visible in pieces of this length while it lands.
pub const PIECE: usize = 4096;

/// What a message does where it arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opcode {
    /// Fills a receive buffer.
    #[default]
    Send,
    /// As a send, but unreliably.
    Datagram,
    /// Writes to memory.
    Write,
    /// Asks for memory.
    ReadRequest,
    /// Brings that memory back.
    ReadData,
}

impl Opcode {
    /// For traces.
    pub fn name(self) -> &'static str {
        match self {
            Opcode::Send => "send",
            Opcode::Datagram => "datagram",
            Opcode::Write => "write",
            Opcode::ReadRequest => "read request",
            Opcode::ReadData => "read",
        }
    }
}

/// A message under way.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// What it does.
    pub kind: Opcode,
    /// The rank that posted it.
    pub from: u32,
    /// The peer it was posted to.
    pub to: u32,
    /// The adapters it goes through.
    pub rail: u16,
    /// Its name in traces.
    pub label: u16,
    /// Length in bytes.
    pub len: usize,
    /// Where the poster's memory is, unless the payload travels inline.
    pub parts: [Local; GATHER],
    /// How many of them.
    pub count: usize,
    /// The payload, if it travels inline.
    pub inline: Vec<u8>,
    /// Whether it does.
    pub is_inline: bool,
    /// Memory of the peer.
    pub remote: Remote,
    /// What its completion is to say.
    pub work: u64,
    /// When it lands.
    pub landing: Passage,
    /// Bytes that are in memory already.
    pub landed: usize,
    /// Its number, for flow arrows; the same for a request and its answer.
    pub number: u64,
    /// Whether the poster hears of its end.
    pub completes: bool,
}

impl Message {
    /// The rank in whose memory it ends.
    pub fn target(&self) -> u32 {
        if self.kind == Opcode::ReadData { self.from } else { self.to }
    }

    /// Bytes that the link carries: a request is a header.
    pub fn on_wire(&self) -> usize {
        if self.kind == Opcode::ReadRequest { 0 } else { self.len }
    }

    /// Bytes that are in memory at `now`, in whole pieces before the end.
    pub fn landed_at(&self, now: u64) -> usize {
        let Passage { first, last } = self.landing;
        if now >= last {
            return self.len;
        }
        let share = now.saturating_sub(first) as f64 / (last - first) as f64;
        (self.len as f64 * share) as usize / PIECE * PIECE
    }

    /// When the byte at `offset` is in memory.
    pub fn lands(&self, offset: usize) -> u64 {
        let Passage { first, last } = self.landing;
        let end = (offset / PIECE + 1) * PIECE;
        if end >= self.len {
            return last;
        }
        first + ((last - first) as f64 * (end as f64 / self.len as f64)).ceil() as u64
    }

    /// Calls `copy` with target offset, source address and length for each part of `from..to`.
    pub fn pieces(&self, from: usize, to: usize, mut copy: impl FnMut(usize, usize, usize)) {
        let mut start = 0;
        for part in &self.parts[..self.count] {
            let Span { addr, len } = part.span;
            let (first, end) = (from.max(start), to.min(start + len));
            if first < end {
                copy(first, addr + (first - start), end - first);
            }
            start += len;
        }
    }
}

/// All messages under way.
#[derive(Default)]
pub struct Messages {
    slots: Vec<Message>,
    free: Vec<u32>,
}

impl Messages {
    /// A slot for a new one, which still holds what an old one left.
    pub fn open(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Message::default());
            self.slots.len() as u32 - 1
        })
    }

    /// Gives a slot back.
    pub fn close(&mut self, index: u32) {
        self.free.push(index);
    }

    /// The message in a slot.
    pub fn at(&self, index: u32) -> &Message {
        &self.slots[index as usize]
    }

    /// As [`Messages::at`], to change it.
    pub fn at_mut(&mut self, index: u32) -> &mut Message {
        &mut self.slots[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_become_visible_in_pieces_and_the_last_byte_last() {
        let landing = Passage { first: 1000, last: 4000 };
        let message = Message { len: 3 * PIECE, landing, ..Message::default() };
        assert_eq!(message.landed_at(999), 0);
        assert_eq!(message.landed_at(1999), 0);
        assert_eq!(message.landed_at(2000), PIECE);
        assert_eq!(message.landed_at(3999), 2 * PIECE);
        assert_eq!(message.landed_at(4000), 3 * PIECE);
        assert_eq!((message.lands(0), message.lands(PIECE - 1), message.lands(PIECE)), (2000, 2000, 3000));
        assert_eq!(message.lands(3 * PIECE - 1), 4000);
        for offset in (0..3 * PIECE).step_by(64) {
            assert!(message.landed_at(message.lands(offset)) > offset);
        }
    }

    #[test]
    fn pieces_follow_the_gather_list() {
        let part = |addr, len| Local { span: Span { addr, len }, key: 1 };
        let parts = [part(100, 10), part(500, 0), part(900, 20), part(0, 0)];
        let message = Message { len: 30, parts, count: 3, ..Message::default() };
        let mut seen = Vec::new();
        message.pieces(4, 25, |offset, from, len| seen.push((offset, from, len)));
        assert_eq!(seen, [(4, 104, 6), (10, 900, 15)]);
    }
}
