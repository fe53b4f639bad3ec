//! RDMAP (RFC 5040, RFC 7306): opcodes, the bodies of its control messages, and the errors that
//! Terminate names.

use super::{be32, be64};

/// Version of RDMAP, in the two highest bits of its control byte (RFC 5040 section 4.1).
pub const VERSION: u8 = 1;

/// What a message is (RFC 5040 section 4.1, figure 3; RFC 7306 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// Bytes into a tagged buffer of the receiver.
    Write = 0,
    /// Asks for bytes of a tagged buffer.
    ReadRequest = 1,
    /// They come.
    ReadResponse = 2,
    /// A message for the next receive buffer.
    Send = 3,
    /// The same, and a tag of the receiver ends.
    SendInvalidate = 4,
    /// Send that wakes its receiver (Solicited Event).
    SendSolicited = 5,
    /// Both.
    SendSolicitedInvalidate = 6,
    /// The stream ends with an error.
    Terminate = 7,
    /// Eight bytes for the next receive completion.
    Immediate = 8,
    /// The same, with Solicited Event.
    ImmediateSolicited = 9,
    /// Asks for an atomic operation on a tagged buffer.
    AtomicRequest = 10,
    /// What was there before it.
    AtomicResponse = 11,
}

impl Opcode {
    /// The opcode with this number.
    #[inline]
    pub fn from_bits(bits: u8) -> Option<Opcode> {
        use Opcode::*;
        const ALL: [Opcode; 12] = [
            Write,
            ReadRequest,
            ReadResponse,
            Send,
            SendInvalidate,
            SendSolicited,
            SendSolicitedInvalidate,
            Terminate,
            Immediate,
            ImmediateSolicited,
            AtomicRequest,
            AtomicResponse,
        ];
        ALL.get(bits as usize).copied()
    }

    /// Whether it travels in tagged segments (RFC 5040 section 4.2).
    #[inline]
    pub fn is_tagged(self) -> bool {
        matches!(self, Opcode::Write | Opcode::ReadResponse)
    }

    /// Whether it is one of the four kinds of Send.
    #[inline]
    pub fn is_send(self) -> bool {
        (3..=6).contains(&(self as u8))
    }

    /// Whether it asks that the receiver be woken.
    #[inline]
    pub fn is_solicited(self) -> bool {
        matches!(self, Opcode::SendSolicited | Opcode::SendSolicitedInvalidate | Opcode::ImmediateSolicited)
    }

    /// Whether it ends a tag of the receiver.
    #[inline]
    pub fn invalidates(self) -> bool {
        matches!(self, Opcode::SendInvalidate | Opcode::SendSolicitedInvalidate)
    }

    /// The kind of Send that does this.
    #[inline]
    pub fn send(solicited: bool, invalidates: bool) -> Opcode {
        match (solicited, invalidates) {
            (false, false) => Opcode::Send,
            (false, true) => Opcode::SendInvalidate,
            (true, false) => Opcode::SendSolicited,
            (true, true) => Opcode::SendSolicitedInvalidate,
        }
    }
}

/// Body of a Read Request (RFC 5040 section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    /// Where the response goes: tag.
    pub sink_stag: u32,
    /// Offset there.
    pub sink_to: u64,
    /// Bytes to read.
    pub len: u32,
    /// What is read: tag.
    pub source_stag: u32,
    /// Offset there.
    pub source_to: u64,
}

impl ReadRequest {
    /// Length of the body.
    pub const LEN: usize = 28;

    /// The body.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.sink_stag.to_be_bytes());
        out[4..12].copy_from_slice(&self.sink_to.to_be_bytes());
        out[12..16].copy_from_slice(&self.len.to_be_bytes());
        out[16..20].copy_from_slice(&self.source_stag.to_be_bytes());
        out[20..].copy_from_slice(&self.source_to.to_be_bytes());
        out
    }

    /// Reads a body; `None` if it is not as long as one.
    pub fn decode(bytes: &[u8]) -> Option<ReadRequest> {
        (bytes.len() == Self::LEN).then(|| ReadRequest {
            sink_stag: be32(bytes, 0),
            sink_to: be64(bytes, 4),
            len: be32(bytes, 12),
            source_stag: be32(bytes, 16),
            source_to: be64(bytes, 20),
        })
    }
}

/// What an atomic operation does to the 64-bit word it names (RFC 7306 section 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    /// Adds. A one in the mask marks the highest bit of a field: no carry leaves it. Zero: one field.
    FetchAdd {
        /// What is added.
        add: u64,
        /// Ends of fields.
        mask: u64,
    },
    /// Replaces the bits of the mask.
    Swap {
        /// The new bits.
        swap: u64,
        /// Which.
        mask: u64,
    },
    /// The same, if the compared bits are equal.
    CompareSwap {
        /// The new bits.
        swap: u64,
        /// Which.
        swap_mask: u64,
        /// What is expected.
        compare: u64,
        /// Which bits must be so.
        compare_mask: u64,
    },
}

impl Atomic {
    /// What the word becomes.
    pub fn apply(&self, old: u64) -> u64 {
        let replace = |swap: u64, mask: u64| old & !mask | swap & mask;
        match *self {
            Atomic::FetchAdd { add, mask } => {
                // Without the highest bits of the fields no carry can leave one; they are added
                // behind, as bits without a carry.
                (old & !mask).wrapping_add(add & !mask) ^ (old & mask) ^ (add & mask)
            }
            Atomic::Swap { swap, mask } => replace(swap, mask),
            Atomic::CompareSwap { swap, swap_mask, compare, compare_mask } => {
                if (old ^ compare) & compare_mask == 0 { replace(swap, swap_mask) } else { old }
            }
        }
    }
}

/// Body of an Atomic Request (RFC 7306 section 5.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicRequest {
    /// Chosen by the requester; comes back in the response.
    pub id: u32,
    /// Tag of the word.
    pub stag: u32,
    /// Its offset.
    pub to: u64,
    /// What to do; `None` for an operation that does not exist.
    pub atomic: Option<Atomic>,
}

impl AtomicRequest {
    /// Length of the body.
    pub const LEN: usize = 52;

    /// The body.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        let (code, data, mask, compare, compare_mask) = match self.atomic {
            Some(Atomic::FetchAdd { add, mask }) => (0u32, add, mask, 0, 0),
            Some(Atomic::Swap { swap, mask }) => (1, swap, mask, 0, 0),
            Some(Atomic::CompareSwap { swap, swap_mask, compare, compare_mask }) => {
                (2, swap, swap_mask, compare, compare_mask)
            }
            None => (15, 0, 0, 0, 0),
        };
        out[..4].copy_from_slice(&code.to_be_bytes());
        out[4..8].copy_from_slice(&self.id.to_be_bytes());
        out[8..12].copy_from_slice(&self.stag.to_be_bytes());
        for (at, word) in [(12, self.to), (20, data), (28, mask), (36, compare), (44, compare_mask)] {
            out[at..at + 8].copy_from_slice(&word.to_be_bytes());
        }
        out
    }

    /// Reads a body; `None` if it is not as long as one.
    pub fn decode(bytes: &[u8]) -> Option<AtomicRequest> {
        if bytes.len() != Self::LEN {
            return None;
        }
        let (data, mask) = (be64(bytes, 20), be64(bytes, 28));
        let atomic = match be32(bytes, 0) & 0x0f {
            0 => Some(Atomic::FetchAdd { add: data, mask }),
            1 => Some(Atomic::Swap { swap: data, mask }),
            2 => Some(Atomic::CompareSwap {
                swap: data,
                swap_mask: mask,
                compare: be64(bytes, 36),
                compare_mask: be64(bytes, 44),
            }),
            _ => None,
        };
        Some(AtomicRequest { id: be32(bytes, 4), stag: be32(bytes, 8), to: be64(bytes, 12), atomic })
    }
}

/// Body of an Atomic Response (RFC 7306 section 5.2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicResponse {
    /// As in the request.
    pub id: u32,
    /// What the word was before.
    pub original: u64,
}

impl AtomicResponse {
    /// Length of the body.
    pub const LEN: usize = 12;

    /// The body.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.id.to_be_bytes());
        out[4..].copy_from_slice(&self.original.to_be_bytes());
        out
    }

    /// Reads a body; `None` if it is not as long as one.
    pub fn decode(bytes: &[u8]) -> Option<AtomicResponse> {
        let is_one = bytes.len() == Self::LEN;
        is_one.then(|| AtomicResponse { id: be32(bytes, 0), original: be64(bytes, 4) })
    }
}

/// Length of the body of Immediate Data (RFC 7306 section 6).
pub const IMMEDIATE_LEN: usize = 8;

/// An error as Terminate names it: layer, type and code (RFC 5040 section 4.8, RFC 5041 section 8.2,
/// RFC 5044 section 8, RFC 6581 section 10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// 0 RDMAP, 1 DDP, 2 the layer below.
    pub layer: u8,
    /// The type of error of that layer.
    pub kind: u8,
    /// The code of that type.
    pub code: u8,
}

macro_rules! causes {
    ($($name:ident = $layer:literal $kind:literal $code:literal $text:literal)*) => {
        impl Cause {
            $(
                #[doc = $text]
                pub const $name: Cause = Cause { layer: $layer, kind: $kind, code: $code };
            )*
            /// All that are known, each with its text.
            pub const ALL: &[(Cause, &str)] = &[$((Cause::$name, $text)),*];
        }
    };
}

causes! {
    RDMAP_CATASTROPHIC = 0 0 0x00 "RDMAP: local catastrophic error"
    RDMAP_STAG = 0 1 0x00 "RDMAP: invalid STag"
    RDMAP_BOUNDS = 0 1 0x01 "RDMAP: base or bounds violation"
    RDMAP_RIGHTS = 0 1 0x02 "RDMAP: access rights violation"
    RDMAP_DOMAIN = 0 1 0x03 "RDMAP: STag not associated with the stream"
    RDMAP_WRAP = 0 1 0x04 "RDMAP: tagged offset wraps"
    RDMAP_INVALIDATE_DOMAIN = 0 1 0x09 "RDMAP: STag of others cannot be invalidated"
    RDMAP_VERSION = 0 2 0x05 "RDMAP: invalid version"
    RDMAP_OPCODE = 0 2 0x06 "RDMAP: unexpected opcode"
    RDMAP_STREAM = 0 2 0x07 "RDMAP: catastrophic error of the stream"
    RDMAP_GLOBAL = 0 2 0x08 "RDMAP: catastrophic error, global"
    RDMAP_INVALIDATE = 0 2 0x09 "RDMAP: STag cannot be invalidated"
    RDMAP_UNSPECIFIED = 0 2 0xff "RDMAP: unspecified error"
    DDP_CATASTROPHIC = 1 0 0x00 "DDP: local catastrophic error"
    TAGGED_STAG = 1 1 0x00 "DDP tagged: invalid STag"
    TAGGED_BOUNDS = 1 1 0x01 "DDP tagged: base or bounds violation"
    TAGGED_DOMAIN = 1 1 0x02 "DDP tagged: STag not associated with the stream"
    TAGGED_WRAP = 1 1 0x03 "DDP tagged: tagged offset wraps"
    TAGGED_VERSION = 1 1 0x04 "DDP tagged: invalid version"
    UNTAGGED_QN = 1 2 0x01 "DDP untagged: invalid queue number"
    UNTAGGED_NO_BUFFER = 1 2 0x02 "DDP untagged: no buffer available"
    UNTAGGED_MSN = 1 2 0x03 "DDP untagged: message sequence number out of range"
    UNTAGGED_MO = 1 2 0x04 "DDP untagged: invalid message offset"
    UNTAGGED_TOO_LONG = 1 2 0x05 "DDP untagged: message too long for the buffer"
    UNTAGGED_VERSION = 1 2 0x06 "DDP untagged: invalid version"
    MPA_LOST = 2 0 0x01 "MPA: connection closed or lost"
    MPA_CRC = 2 0 0x02 "MPA: CRC error"
    MPA_MARKER = 2 0 0x03 "MPA: marker and length do not agree"
    MPA_START_UP = 2 0 0x04 "MPA: invalid request or reply"
    MPA_CATASTROPHIC = 2 0 0x05 "MPA: local catastrophic error"
    MPA_IRD = 2 0 0x06 "MPA: insufficient IRD"
    MPA_RTR = 2 0 0x07 "MPA: no matching RTR option"
    MPA_MAC = 2 0 0x80 "a message whose MAC is wrong: it was forged, changed, cut out or played again"
}

impl std::fmt::Display for Cause {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match Cause::ALL.iter().find(|(cause, _)| cause == self) {
            Some((_, text)) => out.write_str(text),
            None => write!(out, "layer {} error {}.{}", self.layer, self.kind, self.code),
        }
    }
}

/// Body of a Terminate (RFC 5040 section 4.8): the error, and what it was found in.
///
/// ```text
/// |layer(4) type(4)|code|M D R rsvd(13)|[M: DDP segment length (2)][D: DDP header][R: Read Request]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminate {
    /// The error.
    pub cause: Cause,
    /// Length of the DDP segment it was found in, with its header.
    pub segment_len: Option<u16>,
    /// The DDP header of that segment: as many bytes as it has, then zeros.
    pub ddp: Option<[u8; super::ddp::UNTAGGED_LEN]>,
    /// The Read Request in it.
    pub request: Option<[u8; ReadRequest::LEN]>,
}

impl Terminate {
    /// Length of the longest body that is written here.
    pub const MAX_LEN: usize = 4 + 2 + super::ddp::UNTAGGED_LEN + ReadRequest::LEN;
    /// Length of the longest that others may write: with an Atomic Request in place of the Read Request.
    pub const LONGEST_LEN: usize = Self::MAX_LEN - ReadRequest::LEN + AtomicRequest::LEN;

    /// An error that was not found in any segment.
    pub fn new(cause: Cause) -> Terminate {
        Terminate { cause, segment_len: None, ddp: None, request: None }
    }

    /// Writes the body to the beginning of `out`; its length.
    pub fn encode(&self, out: &mut [u8; Self::MAX_LEN]) -> usize {
        let flag = |there: bool, bit: u8| if there { bit } else { 0 };
        out[0] = self.cause.layer << 4 | self.cause.kind & 0x0f;
        out[1] = self.cause.code;
        out[2] = flag(self.segment_len.is_some(), 0x80)
            | flag(self.ddp.is_some(), 0x40)
            | flag(self.request.is_some(), 0x20);
        out[3] = 0;
        let mut at = 4;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(len) = self.segment_len {
            put(&len.to_be_bytes());
        }
        if let Some(header) = &self.ddp {
            put(&header[..super::ddp::header_len(header[0])]);
        }
        if let Some(request) = &self.request {
            put(request);
        }
        at
    }

    /// Reads a body. What an error was found in is left out if the message ends before it; `None` if
    /// even the error is not there.
    pub fn decode(bytes: &[u8]) -> Option<Terminate> {
        let &[what, code, flags, _, ref rest @ ..] = bytes else { return None };
        let mut terminate = Terminate::new(Cause { layer: what >> 4, kind: what & 0x0f, code });
        let mut rest = rest;
        let mut take = |wanted: bool, len: usize| {
            let (taken, behind) = wanted.then(|| rest.split_at_checked(len)).flatten()?;
            rest = behind;
            Some(taken)
        };
        terminate.segment_len = take(flags & 0x80 != 0, 2).map(|bytes| super::be16(bytes, 0));
        if let Some(first) = take(flags & 0x40 != 0, 1).map(|bytes| bytes[0])
            && let Some(behind) = take(true, super::ddp::header_len(first) - 1)
        {
            let mut header = [0; super::ddp::UNTAGGED_LEN];
            header[0] = first;
            header[1..1 + behind.len()].copy_from_slice(behind);
            terminate.ddp = Some(header);
        }
        terminate.request = take(flags & 0x20 != 0, ReadRequest::LEN).map(|bytes| super::field(bytes, 0));
        Some(terminate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_as_written() {
        let read = ReadRequest { sink_stag: 1, sink_to: u64::MAX, len: 3, source_stag: 4, source_to: 5 };
        assert_eq!(ReadRequest::decode(&read.encode()), Some(read));
        let response = AtomicResponse { id: 7, original: 0x0102_0304_0506_0708 };
        assert_eq!(AtomicResponse::decode(&response.encode()), Some(response));
        for atomic in [
            Some(Atomic::FetchAdd { add: 1, mask: 2 }),
            Some(Atomic::Swap { swap: 3, mask: 4 }),
            Some(Atomic::CompareSwap { swap: 5, swap_mask: 6, compare: 7, compare_mask: 8 }),
            None,
        ] {
            let request = AtomicRequest { id: 9, stag: 10, to: 11, atomic };
            assert_eq!(AtomicRequest::decode(&request.encode()), Some(request));
            for len in (0..AtomicRequest::LEN).chain([53]) {
                assert_eq!(AtomicRequest::decode(&vec![0; len]), None);
            }
        }
        assert_eq!(ReadRequest::decode(&[0; 27]), None);
        assert_eq!(AtomicResponse::decode(&[0; 13]), None);
    }

    #[test]
    fn terminates_are_read_as_written_and_survive_being_cut() {
        for flags in 0..8 {
            for first in [0x41, 0xc1] {
                let mut ddp = [7; crate::iwarp::ddp::UNTAGGED_LEN];
                ddp[0] = first;
                ddp[crate::iwarp::ddp::header_len(first)..].fill(0);
                let terminate = Terminate {
                    cause: Cause::UNTAGGED_MO,
                    segment_len: (flags & 1 != 0).then_some(300),
                    ddp: (flags & 2 != 0).then_some(ddp),
                    request: (flags & 4 != 0).then_some([9; ReadRequest::LEN]),
                };
                let mut bytes = [0xee; Terminate::MAX_LEN];
                let len = terminate.encode(&mut bytes);
                assert_eq!(Terminate::decode(&bytes[..len]), Some(terminate));
                for cut in 0..len {
                    let read = Terminate::decode(&bytes[..cut]);
                    assert_eq!(read.map(|t| t.cause), (cut >= 4).then_some(Cause::UNTAGGED_MO));
                }
            }
        }
    }

    #[test]
    fn each_cause_has_one_meaning() {
        for (at, (cause, text)) in Cause::ALL.iter().enumerate() {
            assert_eq!(Cause::ALL.iter().position(|(other, _)| other == cause), Some(at));
            assert_eq!(cause.to_string(), *text);
        }
        assert_eq!(Cause { layer: 9, kind: 8, code: 7 }.to_string(), "layer 9 error 8.7");
    }

    #[test]
    fn atomics_do_what_the_rfc_says() {
        let add = |add, mask, old| Atomic::FetchAdd { add, mask }.apply(old);
        assert_eq!(add(1, 0, u64::MAX), 0);
        assert_eq!(add(5, 0, 37), 42);
        // Two fields of 32 bits: the carry of the lower one is lost.
        let halves = 0x8000_0000_8000_0000;
        assert_eq!(add(0x0000_0001_0000_0001, halves, 0x0000_0001_ffff_ffff), 0x0000_0002_0000_0000);
        assert_eq!(add(0x8000_0000_8000_0000, halves, 0x8000_0000_8000_0000), 0);
        assert_eq!(Atomic::Swap { swap: 0xff, mask: 0x0f }.apply(0xa0), 0xaf);
        let cas = |compare, compare_mask| Atomic::CompareSwap {
            swap: 9,
            swap_mask: u64::MAX,
            compare,
            compare_mask,
        };
        assert_eq!(cas(3, u64::MAX).apply(3), 9);
        assert_eq!(cas(3, u64::MAX).apply(4), 4);
        assert_eq!(cas(3, 1).apply(5), 9);
    }
}
