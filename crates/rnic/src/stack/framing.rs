//! A byte stream taken apart into FPDUs: markers, length, header, payload, CRC (RFC 5044 section 4).
//!
//! ```text
//!            ┌────────────────────────────────────────────────────────────┐
//!            ▼                                                            │
//!  Length ──▶ Control ──▶ Header ──▶ [Body] ──▶ decided ──▶ Payload ──▶ Tail: pad, CRC
//! ```
//!
//! Knows lengths and nothing of what the segments mean: [`super::inbound`] does, which is asked once per
//! segment when its header, and the body of a control message, are there, and told when the segment has
//! ended and its CRC was right.

use wire::iwarp::crc::Crc;
use wire::iwarp::ddp::{UNTAGGED_LEN, header_len};
use wire::iwarp::mpa::{CRC_LEN, LENGTH_LEN, MARKER_INTERVAL, MARKER_LEN, marker_says, pad_len};
use wire::iwarp::rdmap::Terminate;

/// Longest header with its body.
const HEAD_MAX: usize = LENGTH_LEN + UNTAGGED_LEN + Terminate::LONGEST_LEN;

/// Where in an FPDU the next byte of the stream lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// In what is collected before anything is decided: the next decision is due at this many bytes.
    Head { need: usize },
    /// Everything that is collected has been; what is behind it has to be decided.
    Decide,
    /// In the payload.
    Payload,
    /// In pad and CRC.
    Tail,
}

/// What the bytes that were just taken have led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Nothing yet.
    More,
    /// The header is there: [`Framing::header`], [`Framing::collect`], [`Framing::pay`].
    Header,
    /// They are payload.
    Payload,
    /// The FPDU has ended.
    End {
        /// Whether its CRC was right, where it is checked.
        is_right: bool,
    },
    /// A marker does not agree with the length fields.
    BadMarker,
}

#[derive(Debug)]
pub(super) struct Framing {
    crc_wanted: bool,
    markers: bool,
    /// Position in the stream, and of the length field of the FPDU in hand.
    position: u64,
    begin: u64,
    phase: Phase,
    crc: Crc,
    head: [u8; HEAD_MAX],
    head_len: usize,
    /// As much of `head` as belongs to the FPDU that has just ended.
    ended_len: usize,
    /// Bytes of payload that are to come.
    left: usize,
    tail: [u8; 3 + CRC_LEN],
    tail_len: usize,
    marker: [u8; MARKER_LEN],
    marker_len: usize,
}

const START: Phase = Phase::Head { need: LENGTH_LEN };

impl Framing {
    pub(super) fn new(crc: bool, markers: bool) -> Framing {
        Framing {
            crc_wanted: crc,
            markers,
            position: 0,
            begin: 0,
            phase: START,
            crc: Crc::EMPTY,
            head: [0; HEAD_MAX],
            head_len: 0,
            ended_len: 0,
            left: 0,
            tail: [0; 3 + CRC_LEN],
            tail_len: 0,
            marker: [0; MARKER_LEN],
            marker_len: 0,
        }
    }

    /// Whether the stream stands between two FPDUs.
    pub(super) fn is_between(&self) -> bool {
        self.phase == START && self.head_len == 0 && self.marker_len == 0
    }

    /// Whether a decision is due that [`Step::Header`] has asked for.
    pub(super) fn is_undecided(&self) -> bool {
        self.phase == Phase::Decide
    }

    /// Takes bytes off the beginning of `bytes`, which is not empty: how many, and what came of it.
    #[inline]
    pub(super) fn step(&mut self, bytes: &[u8]) -> (usize, Step) {
        let run = self.run(bytes.len());
        if run == 0 {
            return self.take_marker(bytes);
        }
        let bytes = &bytes[..run];
        let (taken, step) = match self.phase {
            Phase::Head { need } => self.take_head(need, bytes),
            Phase::Decide => return (0, Step::Header),
            Phase::Payload => {
                let taken = self.left.min(bytes.len());
                self.check(&bytes[..taken]);
                self.payload_taken(taken);
                (taken, Step::Payload)
            }
            Phase::Tail => self.take_tail(bytes),
        };
        self.position += taken as u64;
        (taken, step)
    }

    /// Bytes up to the next marker, `len` at most.
    fn run(&self, len: usize) -> usize {
        if !self.markers {
            return len;
        }
        // A marker that has begun stands at the position of its first byte.
        let into = self.position % MARKER_INTERVAL;
        if into == 0 {
            return 0;
        }
        len.min((MARKER_INTERVAL - into) as usize)
    }

    fn take_marker(&mut self, bytes: &[u8]) -> (usize, Step) {
        let taken = bytes.len().min(MARKER_LEN - self.marker_len);
        self.marker[self.marker_len..self.marker_len + taken].copy_from_slice(&bytes[..taken]);
        self.marker_len += taken;
        if self.marker_len < MARKER_LEN {
            return (taken, Step::More);
        }
        let is_first = self.phase == START && self.head_len == 0;
        let distance = if is_first { 0 } else { self.position - self.begin };
        self.marker_len = 0;
        self.position += MARKER_LEN as u64;
        let marker = self.marker;
        self.check(&marker);
        (taken, if marker_says(marker, distance) { Step::More } else { Step::BadMarker })
    }

    fn take_head(&mut self, need: usize, bytes: &[u8]) -> (usize, Step) {
        if self.head_len == 0 {
            self.begin = self.position;
            if let Some(first) = bytes.first_chunk::<{ LENGTH_LEN + UNTAGGED_LEN }>() {
                return self.take_whole_head(first);
            }
        }
        let taken = bytes.len().min(need - self.head_len);
        self.head[self.head_len..self.head_len + taken].copy_from_slice(&bytes[..taken]);
        self.head_len += taken;
        self.check(&bytes[..taken]);
        if self.head_len < need {
            return (taken, Step::More);
        }
        // A segment that is shorter than its header is left to whoever decides.
        let all = LENGTH_LEN + self.segment_len();
        let wanted = match need {
            LENGTH_LEN => LENGTH_LEN + 1,
            need if need == LENGTH_LEN + 1 => LENGTH_LEN + header_len(self.head[LENGTH_LEN]),
            need => need,
        };
        let wanted = wanted.min(all);
        if wanted > need {
            self.phase = Phase::Head { need: wanted };
            return (taken, Step::More);
        }
        self.phase = Phase::Decide;
        (taken, Step::Header)
    }

    /// The longest header is there in one piece: the same without looking at each part.
    #[inline]
    fn take_whole_head(&mut self, first: &[u8; LENGTH_LEN + UNTAGGED_LEN]) -> (usize, Step) {
        self.head[..first.len()].copy_from_slice(first);
        self.head_len = LENGTH_LEN + header_len(first[LENGTH_LEN]).min(self.segment_len());
        self.check(&first[..self.head_len]);
        self.phase = Phase::Decide;
        (self.head_len, Step::Header)
    }

    fn take_tail(&mut self, bytes: &[u8]) -> (usize, Step) {
        let pad = pad_len(self.segment_len());
        if self.tail_len == 0
            && let Some(whole) = bytes.get(..pad + CRC_LEN)
        {
            self.check(&whole[..pad]);
            return (whole.len(), self.ended(&whole[pad..]));
        }
        let taken = bytes.len().min(pad + CRC_LEN - self.tail_len);
        self.tail[self.tail_len..self.tail_len + taken].copy_from_slice(&bytes[..taken]);
        let of_pad = pad.saturating_sub(self.tail_len).min(taken);
        self.check(&bytes[..of_pad]);
        self.tail_len += taken;
        if self.tail_len < pad + CRC_LEN {
            return (taken, Step::More);
        }
        let tail = self.tail;
        (taken, self.ended(&tail[pad..pad + CRC_LEN]))
    }

    #[inline]
    fn ended(&mut self, field: &[u8]) -> Step {
        let is_right = !self.crc_wanted || field == self.crc.field();
        self.ended_len = self.head_len;
        (self.phase, self.head_len, self.tail_len, self.crc) = (START, 0, 0, Crc::EMPTY);
        Step::End { is_right }
    }

    #[inline]
    fn check(&mut self, bytes: &[u8]) {
        if self.crc_wanted {
            self.crc.update(bytes);
        }
    }

    fn payload_taken(&mut self, taken: usize) {
        self.left -= taken;
        if self.left == 0 {
            self.phase = Phase::Tail;
        }
    }

    /// Length of the segment in hand, as its length field says.
    pub(super) fn segment_len(&self) -> usize {
        usize::from(u16::from_be_bytes([self.head[0], self.head[1]]))
    }

    /// What has been collected of the segment: its header, then of its body what was asked for.
    pub(super) fn header(&self) -> &[u8] {
        &self.head[LENGTH_LEN..self.head_len]
    }

    /// The same of the segment that has just ended.
    pub(super) fn ended_header(&self) -> &[u8] {
        &self.head[LENGTH_LEN..self.ended_len]
    }

    /// Collects this many bytes of the segment, which has as many, before asking again.
    pub(super) fn collect(&mut self, len: usize) {
        let need = LENGTH_LEN + len;
        assert!(need <= HEAD_MAX && len <= self.segment_len(), "{len} bytes cannot be collected");
        self.phase = Phase::Head { need };
    }

    /// What has not been collected is payload.
    pub(super) fn pay(&mut self) {
        self.left = LENGTH_LEN + self.segment_len() - self.head_len;
        self.phase = if self.left == 0 { Phase::Tail } else { Phase::Payload };
    }

    /// How many of the next bytes of the stream are payload without anything in between.
    pub(super) fn expected(&self) -> usize {
        if self.phase == Phase::Payload { self.run(self.left) } else { 0 }
    }

    /// Bytes that were expected have come past [`Framing::step`].
    pub(super) fn passed(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.expected(), "more bytes than were expected");
        self.check(bytes);
        self.position += bytes.len() as u64;
        self.payload_taken(bytes.len());
    }
}
