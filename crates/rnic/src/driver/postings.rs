//! Work that is posted to a peer and has not been told to have ended, and where its payload lies.

use super::memory;
use crate::stack::{Done, Fpdu, NotDone, Source};
use fabric::{Local, Span};
use std::collections::VecDeque;

/// Payload that is copied when it is posted.
pub const INLINE: usize = 256;
/// Who copied a message instead of waiting, and heard of it so much later, would have waited for much longer than that took.
const LATE_NS: u64 = 50_000;

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

    /// Copies it: it lies in memory of its poster's no more.
    fn keep(&mut self) {
        if let Payload::Lent(_) = self {
            *self = Payload::Inline(self.part(0, self.len()).concat().into());
        }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Payload::Inline(bytes) => bytes.len(),
            Payload::Lent([first, second]) => first.len + second.len,
        }
    }

    /// Where the byte at `offset` lies, or would if it lay in front of the longer piece, which the rest is most of.
    fn address(&self, offset: usize) -> usize {
        match self {
            Payload::Inline(bytes) => bytes.as_ptr() as usize + offset,
            Payload::Lent([first, second]) if first.len > offset.max(second.len) => first.addr + offset,
            Payload::Lent([first, second]) => (second.addr + offset).wrapping_sub(first.len),
        }
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

/// Work that is posted and has not ended.
#[derive(Debug)]
pub struct Posted {
    /// As it was posted.
    pub work: u64,
    /// See [`Payload`]. Of an atomic operation, where to put what the word was.
    pub payload: Payload,
    /// Whether it is a message, whose payload is all that its end gives back.
    pub is_message: bool,
    /// When its poster was told that it has ended.
    told_ns: Option<u64>,
}

impl Posted {
    /// Work that its poster calls so.
    pub fn new(work: u64, payload: Payload) -> Posted {
        Posted { work, payload, is_message: false, told_ns: None }
    }
}

/// In the order of posting, by the numbers under which the stack knows them.
#[derive(Debug, Default)]
pub struct Postings {
    posted: VecDeque<Posted>,
    /// Number of the first.
    first: u64,
    /// Whether what was copied last was acknowledged so much later that who waits for that had better not.
    is_late: bool,
}

impl Postings {
    /// The number of what is posted next.
    pub fn next(&self) -> u64 {
        self.first + self.posted.len() as u64
    }

    /// It has been posted.
    pub fn push(&mut self, posted: Posted) {
        fabric::begin_with_one(&mut self.posted);
        self.posted.push_back(posted);
    }

    /// Copies the payload of what was posted last, if it has not ended.
    pub fn keep_last(&mut self) {
        if let Some(last) = self.posted.back_mut() {
            last.payload.keep();
        }
    }

    /// Copies the messages that were posted first, up to so many bytes, so that for who posted them they have ended: tells what they call them. If
    /// it is `early`, only where the peer acknowledges late.
    pub fn keep_first(&mut self, most: usize, early: bool, now_ns: u64, mut tell: impl FnMut(u64)) {
        if early && !self.is_late {
            return;
        }
        let mut bytes = 0;
        for posted in self.posted.iter_mut().filter(|posted| posted.told_ns.is_none()) {
            bytes += posted.payload.len();
            if !posted.is_message || bytes > most {
                return;
            }
            posted.payload.keep();
            posted.told_ns = Some(now_ns);
            tell(posted.work);
        }
    }

    /// Gives memory back that nothing is in: for who has thousands of peers and rarely something for one of them.
    pub fn give_back(&mut self) {
        if self.posted.is_empty() {
            self.posted.shrink_to(0);
        }
    }

    /// The oldest has ended, which the stack calls by this number: what its poster called it, and how it ended, if that was not told before.
    pub fn ended(
        &mut self,
        id: u64,
        result: Result<Done, NotDone>,
        clock_ns: impl FnOnce() -> u64,
    ) -> Option<(u64, Result<Done, NotDone>)> {
        let posted = self.posted.pop_front().expect("what has ended was posted");
        assert_eq!(id, self.first, "work is told in the order of posting");
        self.first += 1;
        if let (Ok(Done::Atomic(original)), Payload::Lent([into, _])) = (&result, &posted.payload) {
            // Nobody promises that it is aligned.
            memory::copy(into.addr, original.to_ne_bytes().as_ptr() as usize, into.len.min(8));
        }
        if let Some(told_ns) = posted.told_ns {
            self.is_late = clock_ns() - told_ns > LATE_NS;
            return None;
        }
        Some((posted.work, result))
    }

    /// Where payload of this source begins, as far as it matters to who copies all of it.
    pub fn address(&self, source: Source) -> usize {
        match source {
            Source::None => 0,
            Source::Work { id, offset } => {
                self.posted[(id - self.first) as usize].payload.address(offset as usize)
            }
            Source::Region { to, .. } => to as usize,
        }
    }

    /// The payload of an FPDU, where it lies.
    pub fn payload(&self, fpdu: &Fpdu) -> [&[u8]; 2] {
        match fpdu.source() {
            Source::None => [&[], &[]],
            Source::Work { id, offset } => {
                self.posted[(id - self.first) as usize].payload.part(offset as usize, fpdu.payload_len())
            }
            Source::Region { to, .. } => {
                [memory::bytes(Span { addr: to as usize, len: fpdu.payload_len() }), &[]]
            }
        }
    }
}
