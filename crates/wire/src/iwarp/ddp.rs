//! The header of a DDP segment (RFC 5041 section 4), with the fields of RDMAP that lie in it
//! (RFC 5040 section 4.1).
//!
//! ```text
//! tagged    |T L rsvd DV|RV rsvd Op| STag          | TO (8)                          |   14 bytes
//! untagged  |T L rsvd DV|RV rsvd Op| invalidate STag | QN (4) | MSN (4) | MO (4)      |   18 bytes
//! ```
//!
//! Reserved bits are sent as zero and not looked at.

use super::rdmap::{self, Opcode};
use super::{be32, be64};

/// Length of a tagged header.
pub const TAGGED_LEN: usize = 14;
/// Length of an untagged header, and of the longest.
pub const UNTAGGED_LEN: usize = 18;
/// Version of DDP, in the two lowest bits of the first byte (RFC 5041 section 4.1).
pub const VERSION: u8 = 1;
/// The T bit: tagged.
const TAGGED: u8 = 0x80;
/// The L bit: last segment of its message.
const LAST: u8 = 0x40;

/// Untagged queues of RDMAP (RFC 5040 section 4.3, RFC 7306 section 4).
pub mod queue {
    /// Send and Immediate Data.
    pub const SEND: u32 = 0;
    /// Read Request and Atomic Request.
    pub const REQUEST: u32 = 1;
    /// Terminate.
    pub const TERMINATE: u32 = 2;
    /// Atomic Response.
    pub const ATOMIC_RESPONSE: u32 = 3;
}

/// Where the payload of a segment goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A buffer that was made known by its tag.
    Tagged {
        /// The tag.
        stag: u32,
        /// Tagged offset of the first byte of this segment.
        to: u64,
    },
    /// The next buffer of a queue.
    Untagged {
        /// Queue number.
        qn: u32,
        /// Message sequence number, from 1.
        msn: u32,
        /// Offset of the first byte of this segment in its message.
        mo: u32,
        /// The tag that a Send with Invalidate ends; zero elsewhere.
        invalidate: u32,
    },
}

/// The header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Whether it is the last segment of its message.
    pub last: bool,
    /// What the message is.
    pub opcode: Opcode,
    /// Where the payload goes.
    pub target: Target,
}

/// Why a header was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The segment ends inside the header.
    Short,
    /// Another version of DDP.
    DdpVersion,
    /// Another version of RDMAP.
    RdmapVersion,
    /// An opcode that does not exist, or not in the tagged or untagged model of this segment.
    Opcode,
}

/// Whether a segment that begins with this byte is tagged.
#[inline]
pub fn is_tagged(first: u8) -> bool {
    first & TAGGED != 0
}

/// Length of the header that begins with this byte.
#[inline]
pub fn header_len(first: u8) -> usize {
    if is_tagged(first) { TAGGED_LEN } else { UNTAGGED_LEN }
}

impl Header {
    /// Writes the header to the beginning of `out`; its length.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let last = if self.last { LAST } else { 0 };
        out[1] = rdmap::VERSION << 6 | self.opcode as u8;
        match self.target {
            Target::Tagged { stag, to } => {
                out[0] = TAGGED | last | VERSION;
                out[2..6].copy_from_slice(&stag.to_be_bytes());
                out[6..14].copy_from_slice(&to.to_be_bytes());
                TAGGED_LEN
            }
            Target::Untagged { qn, msn, mo, invalidate } => {
                out[0] = last | VERSION;
                out[2..6].copy_from_slice(&invalidate.to_be_bytes());
                out[6..10].copy_from_slice(&qn.to_be_bytes());
                out[10..14].copy_from_slice(&msn.to_be_bytes());
                out[14..18].copy_from_slice(&mo.to_be_bytes());
                UNTAGGED_LEN
            }
        }
    }

    /// Reads the header at the beginning of a segment.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Header, Refused> {
        let &[first, control, ..] = bytes else { return Err(Refused::Short) };
        if first & 0x03 != VERSION {
            return Err(Refused::DdpVersion);
        }
        if bytes.len() < header_len(first) {
            return Err(Refused::Short);
        }
        if control >> 6 != rdmap::VERSION {
            return Err(Refused::RdmapVersion);
        }
        let opcode = Opcode::from_bits(control & 0x0f).ok_or(Refused::Opcode)?;
        if opcode.is_tagged() != is_tagged(first) {
            return Err(Refused::Opcode);
        }
        let target = if is_tagged(first) {
            Target::Tagged { stag: be32(bytes, 2), to: be64(bytes, 6) }
        } else {
            Target::Untagged {
                invalidate: be32(bytes, 2),
                qn: be32(bytes, 6),
                msn: be32(bytes, 10),
                mo: be32(bytes, 14),
            }
        };
        Ok(Header { last: first & LAST != 0, opcode, target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Header> {
        let mut all = Vec::new();
        for bits in 0..16 {
            let Some(opcode) = Opcode::from_bits(bits) else { continue };
            for last in [false, true] {
                let target = if opcode.is_tagged() {
                    Target::Tagged { stag: 0x0102_0304, to: 0x1122_3344_5566_7788 }
                } else {
                    Target::Untagged { qn: 3, msn: 0xffff_fffe, mo: 70_000, invalidate: 0x99aa_bbcc }
                };
                all.push(Header { last, opcode, target });
            }
        }
        all
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(all().len(), 24);
        for header in all() {
            let mut bytes = [0u8; UNTAGGED_LEN];
            let len = header.encode(&mut bytes);
            assert_eq!(len, header_len(bytes[0]));
            assert_eq!(Header::decode(&bytes[..len]), Ok(header));
            for short in 0..len {
                assert_eq!(Header::decode(&bytes[..short]), Err(Refused::Short), "{short} of {len}");
            }
        }
    }

    #[test]
    fn versions_and_models_are_checked() {
        let mut bytes = [0u8; UNTAGGED_LEN];
        all()[0].encode(&mut bytes);
        let with = |at: usize, value: u8| {
            let mut changed = bytes;
            changed[at] = value;
            Header::decode(&changed)
        };
        assert_eq!(with(0, 0x80), Err(Refused::DdpVersion));
        assert_eq!(with(0, 0x82), Err(Refused::DdpVersion));
        assert_eq!(with(1, 0x00), Err(Refused::RdmapVersion));
        assert_eq!(with(1, 0x80), Err(Refused::RdmapVersion));
        assert_eq!(with(1, 0x4c), Err(Refused::Opcode), "no such opcode");
        assert_eq!(with(1, 0x43), Err(Refused::Opcode), "a Send is untagged");
        assert_eq!(with(0, 0x01), Err(Refused::Opcode), "a Write is tagged");
        assert!(with(0, 0xbd).is_ok() && with(1, 0x70).is_ok(), "reserved bits");
    }
}
