//! The side that learns what has arrived.
//!
//! ```text
//!           the sender's first message             the messages of a round posted
//!  Unknown ───────────────────────────▶ Known ───────────────────────────────────▶ (round)
//!                                        │  ▲
//!                        no round is left│  │ the message that tells of the next term
//!                                        ▼  │
//!                                        Term
//! ```

use super::Parts;
use super::sender::{Hello, TERM_TAG, Term, messages};
use crate::comm::{Place, Purpose};
use crate::error::{Class, Error, Result};
use crate::mem;
use crate::request::{Ended, failed};
use crate::status::Status;
use crate::world::fault;
use fabric::{Device, Span};
use proto::{Engine, OpId, Want};

/// A partitioned receive.
#[derive(Debug)]
pub struct Receiver {
    /// How this side has divided its buffer.
    pub(super) parts: Parts,
    source: i32,
    pub(super) from: usize,
    pub(super) tag: i32,
    line: Line,
    /// What the sender has said of itself.
    hello: Option<Hello>,
    /// Rounds of the term that are left.
    left: u64,
    /// The messages of the round, in the order of the stream; none until they are posted.
    pieces: Vec<Piece>,
    /// Those that have not come.
    coming: usize,
    error: Option<Error>,
}

/// What is known of the sender.
#[derive(Debug)]
enum Line {
    /// It is expected to introduce itself.
    Unknown(OpId, Box<[u64; Hello::WORDS]>),
    /// It has.
    Known,
    /// It is expected to tell of the next term.
    Term(OpId, Box<[u64; 2]>),
    /// It does not fit, or what it said was lost.
    Broken(Error),
}

/// A message of a round.
#[derive(Debug)]
struct Piece {
    /// `None` once it has come.
    op: Option<OpId>,
    /// Where it belongs in the stream.
    from: u64,
    len: u64,
    /// The packed form, where the buffer is not one run of bytes.
    packed: Option<Box<[u8]>>,
}

impl Receiver {
    /// Expects the sender to introduce itself: requests are matched in the order in which they are made.
    pub(super) fn open<D: Device>(
        engine: &mut Engine<D>,
        place: &Place,
        parts: Parts,
        (source, from): (i32, usize),
        tag: i32,
    ) -> Result<Receiver> {
        let mut words = Box::new([0; Hello::WORDS]);
        let op = expect(engine, from, place.context_for(Purpose::Partitioned), tag, &mut words[..])?;
        let line = Line::Unknown(op, words);
        Ok(Receiver {
            parts,
            source,
            from,
            tag,
            line,
            hello: None,
            left: 0,
            pieces: Vec::new(),
            coming: 0,
            error: None,
        })
    }

    /// Starts a round.
    pub(super) fn start<D: Device>(&mut self, engine: &mut Engine<D>) -> Result {
        self.pieces.clear();
        self.error = None;
        self.post(engine);
        Ok(())
    }

    /// Partitions of the round that have not come as a whole, as far as this rank has looked.
    pub(super) fn missing(&self) -> usize {
        let each = self.parts.part_bytes();
        let lacks = |piece: &Piece, from: u64| {
            piece.op.is_some() && piece.from < from + each && from < piece.from + piece.len
        };
        let lacks_some = |part: &usize| self.pieces.iter().any(|piece| lacks(piece, *part as u64 * each));
        if self.pieces.is_empty() {
            return self.parts.partitions;
        }
        (0..self.parts.partitions).filter(lacks_some).count()
    }

    /// Whether the messages of the round are expected, or never will be.
    pub(super) fn is_posted(&self) -> bool {
        !self.pieces.is_empty() || matches!(self.line, Line::Broken(_))
    }

    /// Posts the receives of the round as soon as it is known how they are cut; whether that is done.
    pub(super) fn post<D: Device>(&mut self, engine: &mut Engine<D>) -> bool {
        while !self.is_posted() {
            let next = match &mut self.line {
                Line::Broken(_) => return true,
                // The engine wrote through the addresses.
                Line::Unknown(op, words) => {
                    let Some(outcome) = engine.take(*op) else { return false };
                    let words = *std::hint::black_box(words.as_ref());
                    self.meet(outcome.failure.is_none(), words)
                }
                Line::Term(op, words) => {
                    let Some(outcome) = engine.take(*op) else { return false };
                    let words = *std::hint::black_box(words.as_ref());
                    self.agree(outcome.failure.is_none(), words)
                }
                Line::Known => self.go_on(engine).unwrap_or_else(Line::Broken),
            };
            self.line = next;
        }
        true
    }

    /// The sender has introduced itself.
    fn meet(&mut self, came: bool, words: [u64; Hello::WORDS]) -> Line {
        let Some(hello) = Hello::from_words(words).filter(|_| came) else { return self.nonsense() };
        let (theirs, mine) = (hello.bytes, self.parts.bytes());
        if theirs != mine {
            return Line::Broken(Error::new(
                Class::TRUNCATE,
                format!(
                    "rank {} sends {theirs} bytes in {} partitions, tag {}, but partitions, count and datatype here ask for {mine}",
                    self.source, hello.partitions, self.tag
                ),
            ));
        }
        self.left = hello.term.rounds;
        self.hello = Some(hello);
        Line::Known
    }

    /// The sender has told of a term.
    fn agree(&mut self, came: bool, [together, rounds]: [u64; 2]) -> Line {
        let term = Term { together, rounds };
        match &mut self.hello {
            Some(hello) if came && term.is_sound() => {
                hello.term = term;
                self.left = rounds;
                Line::Known
            }
            _ => self.nonsense(),
        }
    }

    fn nonsense(&self) -> Line {
        let text = format!(
            "what rank {} said of its partitioned send, tag {}, was lost or is malformed",
            self.source, self.tag
        );
        Line::Broken(Error::new(Class::INTERN, text))
    }

    /// Posts a round, or asks how it is cut.
    fn go_on<D: Device>(&mut self, engine: &mut Engine<D>) -> Result<Line> {
        let hello = self.hello.expect("a sender that is known has introduced itself");
        if self.left == 0 {
            let mut words = Box::new([0; 2]);
            let op = expect(engine, self.from, hello.channel, TERM_TAG, &mut words[..])?;
            return Ok(Line::Term(op, words));
        }
        self.left -= 1;
        let (partitions, together) = (hello.partitions as usize, hello.term.together as usize);
        let each = hello.bytes / hello.partitions.max(1);
        let count = messages(partitions, together);
        self.coming = count;
        for message in 0..count {
            let (first, last) = (message * together, ((message + 1) * together).min(partitions));
            let (from, len) = (first as u64 * each, (last - first) as u64 * each);
            let piece = self.expect_piece(engine, hello.channel, TERM_TAG + 1 + message as i32, from, len)?;
            self.pieces.push(piece);
        }
        Ok(Line::Known)
    }

    fn expect_piece<D: Device>(
        &self,
        engine: &mut Engine<D>,
        channel: u64,
        tag: i32,
        from: u64,
        len: u64,
    ) -> Result<Piece> {
        let buffer = &self.parts.buffer;
        let mut packed = if buffer.ty.is_contiguous() { None } else { Some(mem::zeroed(len as usize)?) };
        let addr = match &mut packed {
            None => buffer.addr.wrapping_add(from as usize),
            Some(packed) => packed.as_mut_ptr() as usize,
        };
        let want = Want { source: Some(self.from), context: channel, tag: Some(tag) };
        let op = engine.receive(want, Span { addr, len: len as usize }).map_err(fault)?;
        Ok(Piece { op: Some(op), from, len, packed })
    }

    /// Takes in a message if it has come; whether it has.
    fn take<D: Device>(&mut self, engine: &mut Engine<D>, at: usize) -> bool {
        let piece = &mut self.pieces[at];
        let Some(op) = piece.op else { return true };
        let Some(outcome) = engine.take(op) else { return false };
        piece.op = None;
        self.coming -= 1;
        if let Some(packed) = piece.packed.take() {
            let buffer = &self.parts.buffer;
            mem::with(packed.as_ptr() as usize, packed.len(), |bytes| {
                buffer.ty.unpack(buffer.addr, buffer.count, piece.from, bytes);
            });
        }
        let failure = outcome.failure.map(|f| failed(*f, self.source, self.tag, outcome.len));
        self.error = self.error.take().or(failure);
        true
    }

    /// Whether all messages that bring a part of a partition have come.
    pub(super) fn has_arrived<D: Device>(&mut self, engine: &mut Engine<D>, partition: usize) -> bool {
        if !self.post(engine) || self.pieces.is_empty() {
            return false;
        }
        let each = self.parts.part_bytes();
        let (from, to) = (partition as u64 * each, (partition as u64 + 1) * each);
        // Nothing of partitions without bytes arrives but with all others.
        let meets = |piece: &Piece| each == 0 || piece.from < to && from < piece.from + piece.len;
        let first =
            if each == 0 { 0 } else { self.pieces.partition_point(|piece| piece.from + piece.len <= from) };
        let last = first + self.pieces[first..].iter().take_while(|piece| meets(piece)).count();
        (first..last).all(|at| self.take(engine, at))
    }

    /// How the round ended, if it has.
    pub(super) fn settle<D: Device>(&mut self, engine: &mut Engine<D>) -> Option<Ended> {
        if !self.post(engine) {
            return None;
        }
        if let Line::Broken(error) = &self.line {
            return Some(Ended { status: Status::EMPTY, error: Some(error.clone()) });
        }
        for at in 0..self.pieces.len() {
            if !self.take(engine, at) {
                return None;
            }
        }
        let status = Status::new(self.source, self.tag, self.parts.bytes());
        Some(Ended { status, error: self.error.take() })
    }

    /// The request is freed. Memory that the engine may still write to is never given back.
    pub(super) fn close<D: Device>(self, engine: &mut Engine<D>) {
        if let Line::Unknown(op, _) | Line::Term(op, _) = &self.line {
            if engine.is_done(*op) || engine.cancel(*op) {
                engine.take(*op);
            } else {
                Box::leak(Box::new(self));
            }
        }
    }
}

/// Posts the receive of some words.
fn expect<D: Device>(
    engine: &mut Engine<D>,
    from: usize,
    context: u64,
    tag: i32,
    words: &mut [u64],
) -> Result<OpId> {
    let want = Want { source: Some(from), context, tag: Some(tag) };
    let span = Span { addr: words.as_mut_ptr() as usize, len: size_of_val(words) };
    engine.receive(want, span).map_err(fault)
}
