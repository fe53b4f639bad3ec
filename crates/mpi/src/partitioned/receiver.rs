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
//!
//! Who asks for a partition again and again may be what the other partitions of its message wait for. So after a while this
//! side urges, once: the sender answers with the round from which on each partition goes alone. What of that round has
//! not come is then expected in both ways, as messages and as their parts; one of the two never comes and is withdrawn.

use super::Parts;
use super::sender::{ANSWER_TAG, Hello, TERM_TAG, Term, URGE_TAG, messages};
use crate::comm::{Place, Purpose};
use crate::error::{Class, Error, Result};
use crate::mem;
use crate::request::{Ended, failed};
use crate::status::Status;
use crate::world::fault;
use fabric::{Device, Span};
use proto::{Engine, Mode, OpId, Want};

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
    /// Rounds that have been started.
    started: u64,
    /// The tag of the first message of the rounds to come.
    first_tag: i32,
    urge: Urge,
    /// The messages of the round, in the order of the stream; none until they are posted.
    pieces: Vec<Piece>,
    /// How many partitions go in each of them.
    laid_out: u64,
    /// Receives of this round that nothing will meet, until they are withdrawn.
    vain: Vec<Posted>,
    error: Option<Error>,
}

/// How long somebody asks for a partition, and how often, before the sender is urged: much longer than a message takes, much
/// shorter than a person waits, and no program does without it on purpose.
const PATIENCE_NS: u64 = 1_000_000;
const PATIENCE_LOOKS: u32 = 64;

/// Partitions beyond which there are too many messages to tell apart in any case.
const URGED_MOST: u64 = 1 << 28;

/// Whether the sender has been asked for partitions that wait for others of their message.
#[derive(Debug)]
enum Urge {
    /// It has not: looks in vain in this round, and when the first one was.
    Never(u32, u64),
    /// It has, and its answer is expected: the round from which on each partition goes alone.
    Sent(OpId, Box<[u64; 1]>),
    /// It has answered.
    Heard(u64),
    /// They do.
    Over,
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
#[derive(Debug, Default)]
struct Piece {
    /// `None` once it has come.
    posted: Option<Posted>,
    /// Where it belongs in the stream.
    from: u64,
    len: u64,
    /// The partitions that it is expected as, too.
    alone: Vec<Piece>,
}

/// A receive, and the packed form of what it is for, where the buffer is not one run of bytes.
#[derive(Debug)]
struct Posted {
    op: OpId,
    packed: Option<Box<[u8]>>,
}

impl Piece {
    /// Whether a byte of this stretch has not come.
    fn lacks(&self, from: u64, to: u64) -> bool {
        let meets = self.from < to && from < self.from + self.len;
        let lacks_part = || self.alone.is_empty() || self.alone.iter().any(|part| part.lacks(from, to));
        self.posted.is_some() && meets && lacks_part()
    }
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
            started: 0,
            first_tag: TERM_TAG + 1,
            urge: Urge::Never(0, 0),
            pieces: Vec::new(),
            laid_out: 0,
            vain: Vec::new(),
            error: None,
        })
    }

    /// Starts a round.
    pub(super) fn start<D: Device>(&mut self, engine: &mut Engine<D>) -> Result {
        self.pieces.clear();
        self.error = None;
        self.started += 1;
        if let Urge::Never(..) = self.urge {
            self.urge = Urge::Never(0, 0);
        }
        self.post(engine);
        Ok(())
    }

    /// Whether the next round is like the one before it, all of it is known and its messages go where the last ones went.
    pub(super) fn is_usual(&self) -> bool {
        let Some(hello) = &self.hello else { return false };
        let is_quiet = matches!(self.line, Line::Known) && matches!(self.urge, Urge::Never(..) | Urge::Over);
        let is_alike = self.laid_out == hello.term.together && !self.pieces.is_empty();
        self.left > 0 && is_quiet && is_alike && self.parts.buffer.ty.is_contiguous()
    }

    /// As [`Receiver::start`] of a round that [is usual](Receiver::is_usual).
    pub(super) fn start_now<D: Device>(&mut self, engine: &mut Engine<D>) -> bool {
        let Some(hello) = self.hello.filter(|_| self.is_usual()) else { return false };
        let (channel, addr) = (hello.channel, self.parts.buffer.addr);
        self.error = None;
        self.started += 1;
        self.left -= 1;
        if let Urge::Never(looks, _) = &mut self.urge {
            *looks = 0;
        }
        for (message, piece) in self.pieces.iter_mut().enumerate() {
            let tag = self.first_tag + message as i32;
            let want = Want { source: Some(self.from), context: channel, tag: Some(tag) };
            let span = Span { addr: addr.wrapping_add(piece.from as usize), len: piece.len as usize };
            match engine.receive(want, span) {
                Ok(op) => piece.posted = Some(Posted { op, packed: None }),
                Err(failure) => {
                    self.line = Line::Broken(fault(failure));
                    break;
                }
            }
        }
        true
    }

    /// Partitions of the round that have not come as a whole, as far as this rank has looked.
    pub(super) fn missing(&self) -> usize {
        let each = self.parts.part_bytes();
        let lacks_some = |part: &usize| {
            let from = *part as u64 * each;
            self.pieces.iter().any(|piece| piece.lacks(from, from + each))
        };
        if self.pieces.is_empty() {
            return self.parts.partitions;
        }
        (0..self.parts.partitions).filter(lacks_some).count()
    }

    /// Whether the messages of the round are expected, or never will be.
    pub(super) fn is_posted(&self) -> bool {
        !self.pieces.is_empty() || matches!(self.line, Line::Broken(_))
    }

    /// Whether the sender has something to say that this round is about.
    pub(super) fn is_expectant(&self) -> bool {
        !self.is_posted() || matches!(self.urge, Urge::Sent(..))
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
        self.hear(engine);
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
            Some(hello) if came && hello.allows(term) => {
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
        self.laid_out = hello.term.together;
        for message in 0..count {
            let (first, last) = (message * together, ((message + 1) * together).min(partitions));
            let (from, len) = (first as u64 * each, (last - first) as u64 * each);
            let piece =
                self.expect_piece(engine, hello.channel, self.first_tag + message as i32, from, len)?;
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
        Ok(Piece { posted: Some(Posted { op, packed }), from, len, alone: Vec::new() })
    }

    /// Asks the sender, after enough looks in vain, for partitions that wait for others of their message: the operation
    /// that does, if it has to end by itself.
    pub(super) fn urge<D: Device>(&mut self, engine: &mut Engine<D>) -> Result<Option<OpId>> {
        let (Urge::Never(looks, since_ns), Some(hello)) = (&mut self.urge, &self.hello) else {
            return Ok(None);
        };
        // Partitions without bytes come with the last of all, and those that go alone already cannot come sooner.
        let cannot_help = hello.term.together == 1 || hello.bytes == 0 || hello.partitions > URGED_MOST;
        if cannot_help || self.pieces.is_empty() {
            return Ok(None);
        }
        let now_ns = engine.device().now_ns();
        if *looks == 0 {
            *since_ns = now_ns;
        }
        *looks += 1;
        if *looks < PATIENCE_LOOKS || now_ns.saturating_sub(*since_ns) < PATIENCE_NS {
            return Ok(None);
        }
        let mut words = Box::new([0]);
        let op = expect(engine, self.from, hello.channel, ANSWER_TAG, &mut words[..])?;
        let channel = hello.channel;
        self.urge = Urge::Sent(op, words);
        engine.send(self.from, channel, URGE_TAG, Span::EMPTY, Mode::Standard).map_err(fault)
    }

    /// Takes in the answer, and posts what it says when its round is there.
    fn hear<D: Device>(&mut self, engine: &mut Engine<D>) {
        if let Urge::Sent(op, words) = &self.urge {
            let Some(outcome) = engine.take(*op) else { return };
            // The engine wrote through the address. What was lost is an error of the messages, too.
            let [round] = *std::hint::black_box(words.as_ref());
            self.urge = if outcome.failure.is_none() { Urge::Heard(round) } else { Urge::Over };
        }
        if matches!(self.urge, Urge::Heard(round) if round == self.started) && !self.pieces.is_empty() {
            self.urge = Urge::Over;
            if let Err(error) = self.expect_alone(engine) {
                self.error = self.error.take().or(Some(error));
            }
        }
    }

    /// Expects the partitions of each message that has not come, and in the rounds to come nothing else.
    fn expect_alone<D: Device>(&mut self, engine: &mut Engine<D>) -> Result {
        let hello = self.hello.as_mut().expect("a sender that answers has introduced itself");
        let (channel, partitions, together) =
            (hello.channel, hello.partitions as usize, hello.term.together as usize);
        let each = hello.bytes / hello.partitions.max(1);
        (hello.term, self.left) = (Term::ALONE, Term::ALONE.rounds);
        let tag = self.first_tag + self.pieces.len() as i32;
        self.first_tag = tag + partitions as i32;
        for message in 0..self.pieces.len() {
            if self.take(engine, message) {
                continue;
            }
            for partition in message * together..((message + 1) * together).min(partitions) {
                let from = partition as u64 * each;
                let part = self.expect_piece(engine, channel, tag + partition as i32, from, each)?;
                self.pieces[message].alone.push(part);
            }
        }
        Ok(())
    }

    /// Takes in a message if it has come, as a whole or by all its partitions; whether it has. What it was expected as besides is
    /// withdrawn.
    fn take<D: Device>(&mut self, engine: &mut Engine<D>, at: usize) -> bool {
        let Piece { posted: Some(posted), alone, .. } = &self.pieces[at] else { return true };
        if alone.is_empty() && !engine.is_done(posted.op) {
            return false;
        }
        let mut piece = std::mem::take(&mut self.pieces[at]);
        let has_come = self.take_piece(engine, &mut piece);
        if has_come {
            self.vain.extend(piece.alone.drain(..).filter_map(|part| part.posted));
        } else if !piece.alone.is_empty() {
            let come = piece.alone.iter_mut().map(|part| usize::from(self.take_piece(engine, part)));
            if come.sum::<usize>() == piece.alone.len() {
                self.vain.extend(piece.posted.take());
            }
        }
        let has_come = piece.posted.is_none();
        self.pieces[at] = piece;
        has_come
    }

    /// As [`Receiver::take`], of the message alone.
    fn take_piece<D: Device>(&mut self, engine: &mut Engine<D>, piece: &mut Piece) -> bool {
        let Some(posted) = &piece.posted else { return true };
        let Some(outcome) = engine.take(posted.op) else { return false };
        if let Some(packed) = &posted.packed {
            let buffer = &self.parts.buffer;
            mem::with(packed.as_ptr() as usize, packed.len(), |bytes| {
                buffer.ty.unpack(buffer.addr, buffer.count, piece.from, bytes);
            });
        }
        piece.posted = None;
        let failure = outcome.failure.map(|f| failed(*f, self.source, self.tag, outcome.len));
        self.error = self.error.take().or(failure);
        true
    }

    /// Withdraws what will not come; whether all of that is.
    fn withdraw<D: Device>(&mut self, engine: &mut Engine<D>) -> bool {
        self.vain.retain(|Posted { op, .. }| {
            let is_over = engine.is_done(*op) || engine.cancel(*op);
            if is_over {
                engine.take(*op);
            }
            !is_over
        });
        self.vain.is_empty()
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
        (first..last).all(|at| self.take(engine, at) || each > 0 && !self.pieces[at].lacks(from, to))
    }

    /// The status of a round that has ended as every round does, with all its messages.
    pub(super) fn end_now<D: Device>(&mut self, engine: &mut Engine<D>) -> Option<Status> {
        let is_usual =
            matches!(self.line, Line::Known) && !matches!(self.urge, Urge::Sent(..) | Urge::Heard(_));
        if !is_usual || self.pieces.is_empty() || self.error.is_some() || !self.vain.is_empty() {
            return None;
        }
        for piece in &mut self.pieces {
            if let Some(posted) = &piece.posted {
                if posted.packed.is_some() || !piece.alone.is_empty() {
                    return None;
                }
                engine.take_plain(posted.op)?;
                piece.posted = None;
            }
        }
        Some(Status::new(self.source, self.tag, self.parts.bytes()))
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
        if !self.withdraw(engine) {
            return None;
        }
        let status = Status::new(self.source, self.tag, self.parts.bytes());
        Some(Ended { status, error: self.error.take() })
    }

    /// The request is freed. Memory that the engine may still write to is never given back.
    pub(super) fn close<D: Device>(mut self, engine: &mut Engine<D>) {
        let line = if let Line::Unknown(op, _) | Line::Term(op, _) = &self.line { Some(*op) } else { None };
        let answer = if let Urge::Sent(op, _) = &self.urge { Some(*op) } else { None };
        let mut is_over = self.withdraw(engine);
        for op in line.into_iter().chain(answer) {
            if engine.is_done(op) || engine.cancel(op) {
                engine.take(op);
            } else {
                is_over = false;
            }
        }
        if !is_over {
            Box::leak(Box::new(self));
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
