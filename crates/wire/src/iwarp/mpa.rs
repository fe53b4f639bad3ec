//! MPA: the frames that start a connection, and what surrounds each segment in the stream (RFC 5044,
//! revision 1; RFC 6581, revision 2).
//!
//! ```text
//! start-up   |key (16)                        |M C R S rsvd|revision|length (2)|private data ≤ 512|
//! in front of the private data, if S is set:      |A B IRD(14)|C D ORD(14)|
//! FPDU       |length of the segment (2)|segment|0–3 zeros|CRC32c (4)|
//! marker     |0 (2)|bytes from the length field to this marker (2)|      at every 512th byte
//! ```

use super::be16;
use crate::Malformed;

/// Length of a start-up frame without private data.
pub const START_LEN: usize = 20;
/// Longest private data, with what revision 2 puts in front (RFC 5044 section 7.1.1).
pub const PRIVATE_MAX: usize = 512;
/// Longest start-up frame.
pub const START_MAX: usize = START_LEN + PRIVATE_MAX;

const KEY_REQUEST: &[u8; 16] = b"MPA ID Req Frame";
const KEY_REPLY: &[u8; 16] = b"MPA ID Rep Frame";
const MARKERS: u8 = 0x80;
const CRC: u8 = 0x40;
const REJECTED: u8 = 0x20;
const ENHANCED: u8 = 0x10;

/// Which of the two start-up frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Of the side that connects.
    Request,
    /// The answer.
    Reply,
}

impl Side {
    fn key(self) -> &'static [u8; 16] {
        match self {
            Side::Request => KEY_REQUEST,
            Side::Reply => KEY_REPLY,
        }
    }
}

/// What revision 2 adds to a start-up frame (RFC 6581 section 9.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Enhanced {
    /// Either side may send first: the requester opens the stream by an empty message (A).
    pub peer_to_peer: bool,
    /// That message may be an FPDU without a segment (B).
    pub rtr_empty: bool,
    /// It may be an empty Write (C).
    pub rtr_write: bool,
    /// It may be an empty Read (D).
    pub rtr_read: bool,
    /// Read requests that this side answers at a time.
    pub ird: u16,
    /// Read requests that this side means to have under way.
    pub ord: u16,
}

/// The value of IRD and ORD that says that it is agreed upon elsewhere, and the greatest there is.
pub const UNLIMITED: u16 = 0x3fff;

impl Enhanced {
    const LEN: usize = 4;

    fn encode(&self) -> [u8; Self::LEN] {
        let bits = |first: bool, second: bool, value: u16| {
            (u16::from(first) << 15 | u16::from(second) << 14 | value.min(UNLIMITED)).to_be_bytes()
        };
        let [a, b] = bits(self.peer_to_peer, self.rtr_empty, self.ird);
        let [c, d] = bits(self.rtr_write, self.rtr_read, self.ord);
        [a, b, c, d]
    }

    fn decode(bytes: &[u8]) -> Enhanced {
        let (ird, ord) = (be16(bytes, 0), be16(bytes, 2));
        Enhanced {
            peer_to_peer: ird & 0x8000 != 0,
            rtr_empty: ird & 0x4000 != 0,
            rtr_write: ord & 0x8000 != 0,
            rtr_read: ord & 0x4000 != 0,
            ird: ird & UNLIMITED,
            ord: ord & UNLIMITED,
        }
    }
}

/// A start-up frame: MPA Request or MPA Reply (RFC 5044 section 7.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// Which of the two.
    pub side: Side,
    /// 1 or 2.
    pub revision: u8,
    /// This side wants markers in what it receives (M).
    pub markers: bool,
    /// This side wants CRCs; one side is enough (C).
    pub crc: bool,
    /// The connection is refused; only in a reply (R).
    pub rejected: bool,
    /// Of revision 2 (S).
    pub enhanced: Option<Enhanced>,
    /// For whoever uses the connection.
    pub private: Vec<u8>,
}

impl Start {
    /// The frame as bytes. Private data that is too long is a bug of the caller.
    pub fn encode(&self) -> Vec<u8> {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let enhanced = self.enhanced.map(|e| e.encode());
        let enhanced = enhanced.as_ref().map_or(&[][..], |bytes| bytes);
        let len = enhanced.len() + self.private.len();
        assert!(len <= PRIVATE_MAX, "{len} bytes of private data, at most {PRIVATE_MAX}");
        assert!(self.revision == 2 || enhanced.is_empty(), "revision 1 has no enhanced set-up");
        let mut out = Vec::with_capacity(START_LEN + len);
        out.extend_from_slice(self.side.key());
        out.push(
            flag(self.markers, MARKERS)
                | flag(self.crc, CRC)
                | flag(self.rejected, REJECTED)
                | flag(!enhanced.is_empty(), ENHANCED),
        );
        out.push(self.revision);
        out.extend_from_slice(&(len as u16).to_be_bytes());
        out.extend_from_slice(enhanced);
        out.extend_from_slice(&self.private);
        out
    }

    /// Reads a frame from the beginning of a stream, and its length; `None` if more bytes have to come.
    /// A stranger's first wrong byte is enough to refuse it.
    pub fn decode(side: Side, bytes: &[u8]) -> Result<Option<(Start, usize)>, Malformed> {
        let key = &side.key()[..bytes.len().min(16)];
        if !bytes.starts_with(key) {
            return Err(Malformed(format!("no MPA {side:?}")));
        }
        let Some(head) = bytes.get(..START_LEN) else { return Ok(None) };
        let (flags, revision, len) = (head[16], head[17], usize::from(be16(head, 18)));
        if !(1..=2).contains(&revision) {
            return Err(Malformed(format!("MPA {side:?} of revision {revision}; 1 and 2 are known")));
        }
        if len > PRIVATE_MAX {
            return Err(Malformed(format!("MPA {side:?} with {len} bytes of private data")));
        }
        // Revision 1 has a reserved bit there (RFC 5044 section 7.1.1).
        let is_enhanced = revision == 2 && flags & ENHANCED != 0;
        if is_enhanced && len < Enhanced::LEN {
            return Err(Malformed(format!("MPA {side:?} says S and has {len} bytes of private data")));
        }
        let Some(private) = bytes.get(START_LEN..START_LEN + len) else { return Ok(None) };
        let start = Start {
            side,
            revision,
            markers: flags & MARKERS != 0,
            crc: flags & CRC != 0,
            rejected: side == Side::Reply && flags & REJECTED != 0,
            enhanced: is_enhanced.then(|| Enhanced::decode(private)),
            private: private[if is_enhanced { Enhanced::LEN } else { 0 }..].to_vec(),
        };
        Ok(Some((start, START_LEN + len)))
    }
}

/// Length of the length field in front of a segment.
pub const LENGTH_LEN: usize = 2;
/// Length of the CRC field.
pub const CRC_LEN: usize = 4;
/// Length of a marker.
pub const MARKER_LEN: usize = 4;
/// Distance between the beginnings of two markers; the first is in front of the first FPDU (RFC 5044
/// section 4.3).
pub const MARKER_INTERVAL: u64 = 512;

/// Zeros behind a segment of this length, so that the CRC field is aligned (RFC 5044 section 4.1).
#[inline]
pub fn pad_len(segment_len: usize) -> usize {
    (LENGTH_LEN + segment_len).wrapping_neg() & 3
}

/// A marker at this distance behind the length field of the FPDU it lies in; zero in front of it.
pub fn marker(distance: u64) -> [u8; MARKER_LEN] {
    let [high, low] = (distance as u16).to_be_bytes();
    [0, 0, high, low]
}

/// Whether a marker says this distance. Its reserved half is not looked at.
pub fn marker_says(marker: [u8; MARKER_LEN], distance: u64) -> bool {
    u64::from(be16(&marker, 2)) == distance
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_start() -> impl Strategy<Value = Start> {
        let flags = any::<(bool, bool, bool, bool)>();
        let enhanced = any::<Option<(bool, bool, bool, bool, u16, u16)>>();
        (flags, enhanced, proptest::collection::vec(any::<u8>(), 0..=508)).prop_map(
            |((reply, markers, crc, rejected), enhanced, private)| Start {
                side: if reply { Side::Reply } else { Side::Request },
                revision: if enhanced.is_some() { 2 } else { 1 },
                markers,
                crc,
                rejected: reply && rejected,
                enhanced: enhanced.map(|(peer_to_peer, rtr_empty, rtr_write, rtr_read, ird, ord)| Enhanced {
                    peer_to_peer,
                    rtr_empty,
                    rtr_write,
                    rtr_read,
                    ird: ird & UNLIMITED,
                    ord: ord & UNLIMITED,
                }),
                private,
            },
        )
    }

    proptest! {
        #[test]
        fn properties_start_up_frames_are_read_as_written(start in any_start(), behind in any::<u8>()) {
            let mut bytes = start.encode();
            let len = bytes.len();
            for cut in 0..len {
                prop_assert_eq!(Start::decode(start.side, &bytes[..cut]), Ok(None));
            }
            bytes.push(behind);
            prop_assert_eq!(Start::decode(start.side, &bytes), Ok(Some((start, len))));
        }

        #[test]
        fn properties_any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Start::decode(Side::Request, &bytes);
            let at = bytes.len().min(16);
            bytes[..at].copy_from_slice(&KEY_REPLY[..at]);
            let _ = Start::decode(Side::Reply, &bytes);
        }
    }

    #[test]
    fn strangers_are_refused_early() {
        assert!(Start::decode(Side::Request, b"G").is_err());
        assert!(Start::decode(Side::Request, b"MPA ID Rep").is_err(), "a reply is no request");
        let mut bytes = [0u8; START_MAX];
        bytes[..16].copy_from_slice(KEY_REQUEST);
        for (revision, flags, len, text) in [
            (0, 0, 0, "revision 0"),
            (3, 0, 0, "revision 3"),
            (1, 0, 513, "513 bytes"),
            (2, ENHANCED, 3, "3 bytes"),
        ] {
            (bytes[16], bytes[17]) = (flags, revision);
            bytes[18..20].copy_from_slice(&u16::to_be_bytes(len));
            let Malformed(said) = Start::decode(Side::Request, &bytes).unwrap_err();
            assert!(said.contains(text), "{said}");
        }
    }

    #[test]
    fn a_request_of_siw() {
        // `siw.pcap`, frame 4: revision 2, IRD 1, ORD 1, neither markers nor CRC.
        let bytes = b"MPA ID Req Frame\x10\x02\x00\x04\x00\x01\x00\x01";
        let (start, len) = Start::decode(Side::Request, bytes).unwrap().unwrap();
        assert_eq!((len, start.revision, start.markers, start.crc), (24, 2, false, false));
        assert_eq!(start.enhanced, Some(Enhanced { ird: 1, ord: 1, ..Enhanced::default() }));
        assert_eq!(start.encode(), bytes);
    }

    #[test]
    fn pads_align_the_crc() {
        for len in 0..100 {
            assert!(pad_len(len) < 4);
            assert_eq!((LENGTH_LEN + len + pad_len(len)) % 4, 0);
        }
    }
}
