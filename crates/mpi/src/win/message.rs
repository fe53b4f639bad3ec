//! What an origin tells a target of a window that no memory is shared of: records, one behind the other in one
//! message, each in words of 8 bytes. Messages of one origin are heeded in order.
//!
//! ```text
//! operation  kind, verb, operation, -, reply (32)  |  disp  |  count  |  form of the type, its number
//!            bytes of the type  |  bytes of data  |  the type  |  the data, filled up to 8
//! end        kind, mark (16), -, - (32)
//! others     kind, type of lock, -, -, reply (32)
//! ```
//!
//! `reply` is the tag under which the target answers: with what was fetched, or with the class and
//! displacement of the first operation that was refused since the last such answer.

use super::epoch::LockType;
use super::operation::Verb;
use crate::error::{Class, Error, Result};
use crate::handle::Handle;
use crate::op::Predefined;
use proto::epoch::Mark;

/// One thing that a target is told.
#[derive(Debug, PartialEq)]
pub enum Record<'a> {
    /// Carry this out.
    Operate(Told<'a>),
    /// Answer when the lock is this origin's; without an answer (0) all that this origin tells from here on waits until it is.
    Lock(LockType, i32),
    /// The lock is free again; 0 if nobody wants an answer.
    Unlock(i32),
    /// Answer when all before has been carried out.
    Flush(i32),
    /// The origin of this message exposes its window to the target.
    Post,
    /// The operations of an epoch are all here; in which turn, and of a fence what goes with that.
    Complete(Mark),
}

/// An operation as it is told.
#[derive(Debug, PartialEq)]
pub struct Told<'a> {
    /// What is done.
    pub verb: Verb,
    /// Tag of the answer, where one is due.
    pub reply: i32,
    /// Where, in displacement units.
    pub disp: i64,
    /// Number of elements.
    pub count: u64,
    /// What they are.
    pub ty: TypeName<'a>,
    /// Bytes of the origin; of a swap, the new element and the one to compare with.
    pub data: &'a [u8],
}

/// A datatype as an origin names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TypeName<'a> {
    /// By its handle, which is the same everywhere.
    Predefined(Handle),
    /// The one told under this number.
    Known(u32),
    /// This one, from here on known under this number.
    New(u32, &'a [u8]),
}

const OPERATE: u8 = 1;
const LOCK: u8 = 2;
const UNLOCK: u8 = 3;
const FLUSH: u8 = 4;
const POST: u8 = 5;
const COMPLETE: u8 = 6;

/// Bytes of the head of an operation.
pub const OPERATION_BYTES: usize = 48;

fn head(kind: u8, detail: [u8; 2], reply: i32) -> [u8; 8] {
    let [a, b, c, d] = reply.to_ne_bytes();
    [kind, detail[0], detail[1], 0, a, b, c, d]
}

/// Puts a record behind others.
pub fn push(out: &mut Vec<u8>, record: &Record) {
    let plain = match record {
        Record::Operate(told) => return push_operation(out, told),
        Record::Lock(kind, reply) => head(LOCK, [u8::from(*kind == LockType::Exclusive), 0], *reply),
        Record::Unlock(reply) => head(UNLOCK, [0; 2], *reply),
        Record::Flush(reply) => head(FLUSH, [0; 2], *reply),
        Record::Post => head(POST, [0; 2], 0),
        Record::Complete(mark) => head(COMPLETE, mark.flags().to_ne_bytes(), 0),
    };
    out.extend(plain);
}

fn push_operation(out: &mut Vec<u8>, told: &Told) {
    let detail = match told.verb {
        Verb::Put => [0, 0],
        Verb::Get => [1, 0],
        Verb::Accumulate(op) => [2, op as u8],
        Verb::Fetch(op) => [3, op as u8],
        Verb::Swap => [4, 0],
    };
    out.extend(head(OPERATE, detail, told.reply));
    let (form, number, ty) = match told.ty {
        TypeName::Predefined(handle) => (0, handle.0, &[][..]),
        TypeName::Known(number) => (1, number, &[][..]),
        TypeName::New(number, ty) => (2, number, ty),
    };
    let name = form << 32 | u64::from(number);
    let words = [told.disp as u64, told.count, name, ty.len() as u64, told.data.len() as u64];
    words.iter().for_each(|word| out.extend(word.to_ne_bytes()));
    out.extend(ty);
    out.extend(told.data);
    out.resize(out.len().next_multiple_of(8), 0);
}

/// The first record of a message, which may be any bytes, and what follows it.
pub fn split(message: &[u8]) -> Result<(Record<'_>, &[u8])> {
    decode(message).ok_or_else(|| Error::new(Class::INTERN, "a message about a window makes no sense"))
}

fn decode(message: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = message.split_first_chunk::<8>()?;
    let [kind, detail, op, _, reply @ ..] = *head;
    let reply = i32::from_ne_bytes(reply);
    let record = match kind {
        OPERATE => return decode_operation((detail, op), reply, rest),
        LOCK => Record::Lock(if detail == 1 { LockType::Exclusive } else { LockType::Shared }, reply),
        UNLOCK => Record::Unlock(reply),
        FLUSH => Record::Flush(reply),
        POST => Record::Post,
        COMPLETE => Record::Complete(Mark::of_flags(u16::from_ne_bytes([detail, op]))),
        _ => return None,
    };
    Some((record, rest))
}

fn decode_operation((verb, op): (u8, u8), reply: i32, rest: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (words, rest) = rest.split_at_checked(OPERATION_BYTES - 8)?;
    let word = |index: usize| u64::from_ne_bytes(words.as_chunks::<8>().0[index]);
    let (ty, rest) = rest.split_at_checked(usize::try_from(word(3)).ok()?)?;
    let (data, _) = rest.split_at_checked(usize::try_from(word(4)).ok()?)?;
    let used = ty.len().checked_add(data.len())?.checked_next_multiple_of(8)? - ty.len();
    let op = || Predefined::from_handle(Handle(op.into()));
    let verb = match verb {
        0 => Verb::Put,
        1 => Verb::Get,
        2 => Verb::Accumulate(op()?),
        3 => Verb::Fetch(op()?),
        4 => Verb::Swap,
        _ => return None,
    };
    let number = word(2) as u32;
    let ty = match word(2) >> 32 {
        0 => TypeName::Predefined(Handle(number)),
        1 => TypeName::Known(number),
        2 => TypeName::New(number, ty),
        _ => return None,
    };
    let told = Told { verb, reply, disp: word(0) as i64, count: word(1), ty, data };
    Some((Record::Operate(told), rest.get(used..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        let mut out = Vec::new();
        let data = [7; 13];
        let ty = [1; 16];
        let told = |verb, ty| Record::Operate(Told { verb, reply: 5, disp: -3, count: 9, ty, data: &data });
        push(&mut out, &Record::Lock(LockType::Exclusive, 1 << 29));
        push(&mut out, &told(Verb::Fetch(Predefined::Maxloc), TypeName::New(3, &ty)));
        push(&mut out, &told(Verb::Put, TypeName::Predefined(Handle(0x209))));
        push(&mut out, &Record::Complete(Mark { said: 1, again: true, turn: false }));
        out
    }

    #[test]
    fn records_come_out_as_they_went_in() {
        let message = message();
        let (record, rest) = split(&message).unwrap();
        assert_eq!(record, Record::Lock(LockType::Exclusive, 1 << 29));
        let (record, rest) = split(rest).unwrap();
        let Record::Operate(told) = record else { panic!("{record:?}") };
        assert_eq!((told.verb, told.disp), (Verb::Fetch(Predefined::Maxloc), -3));
        assert_eq!((told.ty, told.data), (TypeName::New(3, &[1; 16]), &[7; 13][..]));
        let (record, rest) = split(rest).unwrap();
        assert!(matches!(record, Record::Operate(Told { verb: Verb::Put, reply: 5, count: 9, .. })));
        let end = Record::Complete(Mark { said: 1, again: true, turn: false });
        assert_eq!(split(rest).unwrap(), (end, &[][..]));
        for word in 0..16 {
            let end = Record::Complete(Mark { said: word & 3, again: word & 4 != 0, turn: word & 8 != 0 });
            let mut out = Vec::new();
            push(&mut out, &end);
            assert_eq!(split(&out).unwrap(), (end, &[][..]));
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        let good = message();
        for at in 0..good.len() {
            for value in [0, 1, 2, 77, 255] {
                let mut bytes = good.clone();
                bytes[at] = value;
                bytes.truncate(good.len() - at % 5);
                let mut rest = &bytes[..];
                while let Ok((_, further)) = split(rest) {
                    rest = further;
                }
            }
        }
    }
}
