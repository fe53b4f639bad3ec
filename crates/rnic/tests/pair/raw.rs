//! FPDUs written by hand, right or wrong.

use wire::iwarp::crc::Crc;
use wire::iwarp::ddp::{Header, Target};
use wire::iwarp::rdmap::Opcode;

/// A segment: header and what is behind it.
pub fn segment(header: Header, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 18];
    let len = header.encode(&mut bytes);
    bytes.truncate(len);
    bytes.extend_from_slice(body);
    bytes
}

/// A segment with length, pad and the right CRC.
pub fn fpdu(segment: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(segment.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(segment);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let mut crc = Crc::EMPTY;
    crc.update(&bytes);
    bytes.extend_from_slice(&crc.field());
    bytes
}

pub fn tagged(opcode: Opcode, last: bool, stag: u32, to: u64, body: &[u8]) -> Vec<u8> {
    fpdu(&segment(Header { last, opcode, target: Target::Tagged { stag, to } }, body))
}

pub fn untagged(opcode: Opcode, last: bool, qn: u32, msn: u32, mo: u32, body: &[u8]) -> Vec<u8> {
    let target = Target::Untagged { qn, msn, mo, invalidate: 0 };
    fpdu(&segment(Header { last, opcode, target }, body))
}
