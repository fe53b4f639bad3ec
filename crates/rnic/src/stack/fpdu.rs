//! One FPDU on its way out, in the pieces that a gathering write takes (RFC 5044 section 4.1).
//!
//! ```text
//! |length|DDP header[, body of a control message]|  payload, where it lies  |pad|CRC|
//!  `head`, up to 72 bytes                         lent by the driver         `tail`, 4 to 7 bytes
//! ```
//!
//! Markers, where the peer asks for them, are pieces of their own between and inside these.

use wire::iwarp::crc::Crc;
use wire::iwarp::ddp::{Header, UNTAGGED_LEN};
use wire::iwarp::mpa::{CRC_LEN, LENGTH_LEN, MARKER_INTERVAL, MARKER_LEN, marker, pad_len};
use wire::iwarp::rdmap::AtomicRequest;

/// Longest head: the length, a header, the longest body.
const HEAD_MAX: usize = LENGTH_LEN + UNTAGGED_LEN + AtomicRequest::LEN;

/// What the payload of an FPDU is a piece of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Nothing: there is no payload.
    None,
    /// Posted work.
    Work {
        /// As it was posted.
        id: u64,
        /// Of the first byte of this piece in what was posted.
        offset: u32,
    },
    /// A region that the peer reads; access has been checked.
    Region {
        /// Its tag.
        stag: u32,
        /// Offset of the first byte.
        to: u64,
    },
}

/// One FPDU, in the pieces that a gathering write takes: a head, payload where it lies, a tail, and markers.
#[derive(Clone, Debug)]
pub struct Fpdu {
    head: [u8; HEAD_MAX],
    head_len: u8,
    tail: [u8; 3 + CRC_LEN],
    tail_len: u8,
    source: Source,
    payload_len: usize,
    crc: bool,
    /// In front of which byte of the FPDU without markers each stands. Empty without markers, and then
    /// nothing is allocated.
    markers: Vec<(usize, [u8; MARKER_LEN])>,
}

impl Fpdu {
    /// A segment with `body` behind its header and `payload_len` bytes of `source` behind that.
    #[inline]
    pub(super) fn new(header: &Header, body: &[u8], source: Source, payload_len: usize, crc: bool) -> Fpdu {
        let mut head = [0; HEAD_MAX];
        let header_len = header.encode(&mut head[LENGTH_LEN..]);
        let body_at = LENGTH_LEN + header_len;
        head[body_at..body_at + body.len()].copy_from_slice(body);
        let segment_len = header_len + body.len() + payload_len;
        let length = u16::try_from(segment_len).expect("segments are cut to what 16 bits can say");
        head[..LENGTH_LEN].copy_from_slice(&length.to_be_bytes());
        Fpdu {
            head,
            head_len: (body_at + body.len()) as u8,
            tail: [0; 3 + CRC_LEN],
            tail_len: (pad_len(segment_len) + CRC_LEN) as u8,
            source,
            payload_len,
            crc,
            markers: Vec::new(),
        }
    }

    /// Puts markers where they belong if this FPDU begins at this position of the stream.
    pub(super) fn mark(&mut self, position: u64) {
        let content = self.content_len() as u64;
        let mut content_at = (MARKER_INTERVAL - position % MARKER_INTERVAL) % MARKER_INTERVAL;
        while content_at < content {
            let before = self.markers.len() as u64;
            // Without the marker in front of the length field, if there is one: distances count from
            // that field.
            let inside = before - u64::from(before > 0 && self.markers[0].0 == 0);
            let distance = content_at + inside * MARKER_LEN as u64;
            self.markers.push((content_at as usize, marker(distance)));
            content_at += MARKER_INTERVAL - MARKER_LEN as u64;
        }
    }

    fn content_len(&self) -> usize {
        self.head_len as usize + self.payload_len + self.tail_len as usize
    }

    /// Bytes of the stream that it takes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.content_len() + self.markers.len() * MARKER_LEN
    }

    /// Bytes of its payload.
    pub fn payload_len(&self) -> usize {
        self.payload_len
    }

    /// Where its payload is.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Computes the CRC over everything in front of it. `payload` are the pieces of the payload, in
    /// order: together [`Fpdu::payload_len`] bytes of [`Fpdu::source`]. They must not change until they
    /// are in the stream. Where no CRC was agreed upon nothing is read and the field stays zero.
    pub fn seal(&mut self, payload: &[&[u8]]) {
        debug_assert_eq!(payload.iter().map(|piece| piece.len()).sum::<usize>(), self.payload_len);
        if !self.crc {
            return;
        }
        let mut crc = Crc::EMPTY;
        let mut left = self.len() - CRC_LEN;
        self.slices(payload, 0, |piece| {
            let piece = &piece[..piece.len().min(left)];
            left -= piece.len();
            crc.update(piece);
        });
        let at = self.tail_len as usize - CRC_LEN;
        self.tail[at..at + CRC_LEN].copy_from_slice(&crc.field());
    }

    /// Hands out what is to be written, in order, without the first `skip` bytes, which have been
    /// written before; `payload` as for [`Fpdu::seal`].
    #[inline]
    pub fn slices<'a>(&'a self, payload: &[&'a [u8]], skip: usize, mut out: impl FnMut(&'a [u8])) {
        let mut skip = skip;
        let mut put = |piece: &'a [u8]| {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            if skipped < piece.len() {
                out(&piece[skipped..]);
            }
        };
        let head = &self.head[..self.head_len as usize];
        let tail = &self.tail[..self.tail_len as usize];
        let (mut at, mut markers) = (0, self.markers.iter());
        let mut next = markers.next();
        for mut piece in std::iter::once(head).chain(payload.iter().copied()).chain([tail]) {
            while let Some((marker_at, marker)) = next
                && *marker_at < at + piece.len()
            {
                let (before, behind) = piece.split_at(marker_at - at);
                put(before);
                put(marker);
                at = *marker_at;
                (piece, next) = (behind, markers.next());
            }
            put(piece);
            at += piece.len();
        }
    }
}
