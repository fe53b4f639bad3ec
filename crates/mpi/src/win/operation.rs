//! Operations on memory of a target as values, and what one does with that memory (MPI 5.0 sections 12.3 and 12.4).
//!
//! Who carries an operation out is another matter: its origin, where the memory of the target is mapped, or the
//! target. Elements of 1, 2, 4 and 8 bytes that lie on their boundary are changed by atomic instructions, all others
//! under a lock: which one depends on the element and its place alone, so that both parties agree.

use std::sync::Arc;

use crate::datatype::{self, Basic, Datatype, Group};
use crate::error::{Class, Result, fail};
use crate::mem::{self, Instruction};
use crate::op::{self, Predefined};
use crate::request::Buffer;

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Bytes of the origin go there.
    Put,
    /// Bytes from there go to the origin.
    Get,
    /// Elements there are combined with those of the origin.
    Accumulate(Predefined),
    /// The same, and what was there before goes to the origin.
    Fetch(Predefined),
    /// An element there is replaced if it equals another one; what was there before goes to the origin.
    Swap,
}

/// Elements in the memory of a target.
#[derive(Clone, Debug)]
pub struct Area {
    /// Where it begins, in displacement units.
    pub disp: i64,
    /// Number of elements.
    pub count: u64,
    /// What they are.
    pub ty: Arc<Datatype>,
}

/// An operation, checked as far as the origin can.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What is done.
    pub verb: Verb,
    /// Rank in the window.
    pub target: u32,
    /// Where.
    pub area: Area,
    /// What comes from the origin; of no elements for [`Verb::Get`].
    pub data: Buffer,
    /// Where to put what comes from the target, if anything does.
    pub result: Option<Buffer>,
    /// The address of the element that [`Verb::Swap`] compares with.
    pub compare: usize,
}

impl Place<'_> {
    /// Runs what changes elements that have no atomic instruction.
    fn guarded(&self, f: &mut dyn FnMut()) -> Result {
        if self.is_alone {
            f();
            return Ok(());
        }
        (self.alone)(f)
    }
}

impl Verb {
    /// Whether something comes back.
    pub fn fetches(self) -> bool {
        matches!(self, Verb::Get | Verb::Fetch(_) | Verb::Swap)
    }

    /// Whether bytes go as they are, with no order among them and atomic with nothing.
    pub fn moves(self) -> bool {
        matches!(self, Verb::Put | Verb::Get)
    }

    /// Whether bytes of the origin are needed.
    pub fn carries(self) -> bool {
        !matches!(self, Verb::Get | Verb::Fetch(Predefined::NoOp) | Verb::Accumulate(Predefined::NoOp))
    }
}

impl Area {
    /// Bytes of data.
    pub fn len(&self) -> u64 {
        self.ty.size() * self.count
    }

    /// Whether there is no data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first byte, and the one behind the last, in bytes from the beginning of the window.
    pub fn bounds(&self, unit: u64) -> (i128, i128) {
        let start = i128::from(self.disp) * i128::from(unit);
        let last = i128::from(self.ty.extent()) * (i128::from(self.count) - 1).max(0);
        let (lo, hi) = (last.min(0), last.max(0));
        let first = i128::from(self.ty.true_lb());
        (start + first + lo, start + first + i128::from(self.ty.true_extent()) + hi)
    }

    /// Refuses what does not lie in a window of `size` bytes; the address that displacements of its elements count
    /// from, if the window begins at `base`.
    pub fn locate(&self, base: usize, size: u64, unit: u64, target: u32) -> Result<usize> {
        if self.disp < 0 {
            let text =
                format!("argument `target_disp` is {} for target {target}, must not be negative", self.disp);
            return fail(Class::DISP, text);
        }
        let (lo, hi) = self.bounds(unit);
        if !self.is_empty() && (lo < 0 || hi > i128::from(size)) {
            let text = format!(
                "bytes {lo} to {hi} from the beginning are not all in the window of target {target}, which has {size} bytes"
            );
            return fail(Class::RMA_RANGE, text);
        }
        Ok(base.wrapping_add((self.disp as usize).wrapping_mul(unit as usize)))
    }
}

/// The machine type that an accumulation works on: the one all elements of both sides are made of.
pub fn element(op: Predefined, area: &Area, data: Option<&Datatype>) -> Result<Basic> {
    let Some(basic) = area.ty.basic() else {
        let text = "the elements of `target_datatype` are not all of one predefined datatype";
        return fail(Class::TYPE, text);
    };
    if data.is_some_and(|data| data.basic() != Some(basic) && data.size() > 0) {
        let text = "`origin_datatype` and `target_datatype` are not made of one predefined datatype";
        return fail(Class::TYPE, text);
    }
    if !op.takes(basic) {
        return fail(
            Class::OP,
            format!("{} is not defined for the elements of `target_datatype`", op.name()),
        );
    }
    Ok(basic)
}

/// Whether `MPI_Compare_and_swap` takes such elements (MPI 5.0 section 12.3.4).
pub fn compares(basic: Basic) -> bool {
    matches!(basic.group(), Group::Integer | Group::Logical | Group::Byte)
}

/// Whether elements that lie at this address are changed by atomic instructions.
#[inline]
pub fn is_atomic(basic: Basic, addr: usize) -> bool {
    let size = basic.size() as usize;
    basic.pair().is_none() && matches!(size, 1 | 2 | 4 | 8) && addr.is_multiple_of(size)
}

/// Runs something at a time at which it may.
pub type Runs<'a> = dyn Fn(&mut dyn FnMut()) -> Result + 'a;

/// What an operation finds at the target.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The address that displacements of its elements count from.
    pub addr: usize,
    /// Runs what it is given while nobody else changes elements that have no atomic instruction.
    pub alone: &'a Runs<'a>,
    /// Runs what it is given, which changes elements by atomic instructions, while nobody changes some without.
    pub briefly: &'a Runs<'a>,
    /// Nobody else touches the target at all.
    pub is_alone: bool,
}

/// Combines `data` with the elements of an area; what was there before goes to `old`, if it has room.
pub fn accumulate(
    op: Predefined,
    area: &Area,
    at: &Place,
    data: &[u8],
    mut old: Option<&mut [u8]>,
) -> Result {
    let basic = element(op, area, None)?;
    let size = basic.size() as usize;
    if basic.pair().is_some() || size > 8 {
        let mut before = vec![0; area.len() as usize];
        return at.guarded(&mut || {
            area.ty.pack(at.addr, area.count, 0, &mut before);
            if let Some(old) = &mut old {
                old.copy_from_slice(&before);
            }
            if op != Predefined::NoOp {
                combine(op, basic, data, &mut before);
                area.ty.unpack(at.addr, area.count, 0, &before);
            }
        });
    }
    let mut position = 0;
    for (addr, len) in area.ty.runs(at.addr, area.count, 0) {
        let part = position..position + len as usize;
        let data = data.get(part.clone()).unwrap_or(&[]);
        let mut old = old.as_deref_mut().map(|old| &mut old[part]);
        match (at.is_alone, is_atomic(basic, addr)) {
            (true, _) => combine_alone(op, basic, addr, data, len as usize, old),
            (false, true) => (at.briefly)(&mut || {
                combine_by_atomics(op, basic, addr, data, len as usize, old.as_deref_mut());
            })?,
            (false, false) => {
                (at.alone)(&mut || combine_alone(op, basic, addr, data, len as usize, old.as_deref_mut()))?
            }
        }
        position += len as usize;
    }
    Ok(())
}

/// Combines a run of elements that nobody else touches meanwhile.
fn combine_alone(op: Predefined, basic: Basic, addr: usize, data: &[u8], len: usize, old: Option<&mut [u8]>) {
    if let Some(old) = old {
        mem::read(addr, old);
    }
    if op != Predefined::NoOp {
        mem::with_mut(addr, len, |there| op::apply(op, basic, data, there));
    }
}

/// Combines a run of elements that lie on their boundaries, each by an atomic step.
fn combine_by_atomics(
    op: Predefined,
    basic: Basic,
    addr: usize,
    data: &[u8],
    len: usize,
    mut old: Option<&mut [u8]>,
) {
    let size = basic.size() as usize;
    for offset in (0..len).step_by(size) {
        let mut with = [0; 8];
        if let Some(data) = data.get(offset..offset + size) {
            with[..size].copy_from_slice(data);
        }
        let before = change_one(op, basic, addr + offset, with);
        if let Some(old) = &mut old {
            old[offset..offset + size].copy_from_slice(&before[..size]);
        }
    }
}

/// Combines one element that lies on its boundary with another one in an atomic step: by an instruction of the
/// processor where it has one, else by compare-and-swap; what it was before.
#[inline]
pub fn change_one(op: Predefined, basic: Basic, addr: usize, with: [u8; 8]) -> [u8; 8] {
    let size = basic.size() as usize;
    let is_integer = matches!(basic.group(), Group::Integer);
    let by_instruction = match op {
        Predefined::Sum if is_integer => Some(Instruction::Add),
        Predefined::Replace => Some(Instruction::Swap),
        Predefined::NoOp => Some(Instruction::Load),
        Predefined::Band => Some(Instruction::And),
        Predefined::Bor => Some(Instruction::Or),
        Predefined::Bxor => Some(Instruction::Xor),
        _ => None,
    };
    if let Some(instruction) = by_instruction {
        return mem::change(addr, size, instruction, with);
    }
    if (op, basic) == (Predefined::Sum, Basic::F64) {
        let with = f64::from_ne_bytes(with);
        return mem::update(addr, 8, |word| (with + f64::from_ne_bytes(word)).to_ne_bytes());
    }
    mem::update(addr, size, |word| {
        let mut next = word;
        op::apply(op, basic, &with[..size], &mut next[..size]);
        next
    })
}

/// As [`change_one`] while nobody else changes it.
#[inline]
pub fn change_alone(op: Predefined, basic: Basic, addr: usize, with: [u8; 8]) -> [u8; 8] {
    let size = basic.size() as usize;
    let before = mem::short(addr, size);
    let mut next = before;
    match (op, basic) {
        (Predefined::NoOp, _) => return before,
        (Predefined::Sum, Basic::I64 | Basic::U64) => {
            next = u64::from_ne_bytes(before).wrapping_add(u64::from_ne_bytes(with)).to_ne_bytes();
        }
        (Predefined::Sum, Basic::F64) => {
            next = (f64::from_ne_bytes(with) + f64::from_ne_bytes(before)).to_ne_bytes();
        }
        _ => op::apply(op, basic, &with[..size], &mut next[..size]),
    }
    mem::write(addr, &next[..size]);
    before
}

/// As [`swap_one`] while nobody else changes it.
#[inline]
pub fn swap_alone(basic: Basic, addr: usize, compare: [u8; 8], new: [u8; 8]) -> [u8; 8] {
    let size = basic.size() as usize;
    let before = mem::short(addr, size);
    if before == compare {
        mem::write(addr, &new[..size]);
    }
    before
}

/// Replaces one element that lies on its boundary by another one if it is as a third one; what it was before.
#[inline]
pub fn swap_one(basic: Basic, addr: usize, compare: [u8; 8], new: [u8; 8]) -> [u8; 8] {
    mem::swap_if(addr, basic.size() as usize, compare, new)
}

/// `apply` on packed pairs: [`op::apply`] works on them as C places them.
pub(super) fn combine(op: Predefined, basic: Basic, data: &[u8], inout: &mut [u8]) {
    if basic.is_dense() || op == Predefined::Replace {
        return op::apply(op, basic, data, inout);
    }
    let (size, extent) = (basic.size() as usize, basic.extent() as usize);
    let ty = datatype::of_basic(basic);
    let (mut one, mut other) = (vec![0u8; extent], vec![0u8; extent]);
    for (data, inout) in data.chunks_exact(size).zip(inout.chunks_exact_mut(size)) {
        ty.unpack(one.as_mut_ptr() as usize, 1, 0, data);
        ty.unpack(other.as_mut_ptr() as usize, 1, 0, inout);
        op::apply(op, basic, std::hint::black_box(&one), std::hint::black_box(&mut other));
        ty.pack(other.as_ptr() as usize, 1, 0, inout);
    }
}

/// Replaces the one element of an area by `new` if it equals `compare`; `old` is what it was.
pub fn swap(area: &Area, at: &Place, new: &[u8], compare: &[u8], old: &mut [u8]) -> Result {
    let Some(basic) = area.ty.basic().filter(|basic| compares(*basic)) else {
        return fail(Class::TYPE, "MPI_Compare_and_swap is not defined for elements of this datatype");
    };
    let size = basic.size() as usize;
    if is_atomic(basic, at.addr) && !at.is_alone {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(bytes);
            word
        };
        return (at.briefly)(&mut || {
            let before = swap_one(basic, at.addr, word(compare), word(new));
            old.copy_from_slice(&before[..size]);
        });
    }
    at.guarded(&mut || {
        mem::read(at.addr, old);
        if old == compare {
            mem::write(at.addr, new);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Handle;

    fn area(disp: i64, count: u64, handle: u32) -> Area {
        Area { disp, count, ty: Datatype::of(Handle(handle)).unwrap().clone() }
    }

    const INT: u32 = 0x209;

    #[test]
    fn what_is_outside_is_refused_also_where_numbers_overflow() {
        let class = |area: Area| area.locate(0x1000, 40, 4, 3).map_err(|error| error.class);
        assert_eq!(class(area(9, 1, INT)), Ok(0x1000 + 36));
        assert_eq!(class(area(10, 0, INT)), Ok(0x1000 + 40));
        assert_eq!(class(area(10, 1, INT)), Err(Class::RMA_RANGE));
        assert_eq!(class(area(-1, 1, INT)), Err(Class::DISP));
        assert_eq!(class(area(i64::MAX, 1, INT)), Err(Class::RMA_RANGE));
        assert_eq!(class(area(0, 1 << 60, INT)), Err(Class::RMA_RANGE));
        let text = area(10, 1, INT).locate(0, 40, 4, 3).unwrap_err().text.clone();
        assert!(text.contains("target 3") && text.contains("40"), "{text}");
    }

    fn alone(f: &mut dyn FnMut()) -> Result {
        f();
        Ok(())
    }

    #[test]
    fn elements_are_combined_and_fetched() {
        let mut memory = [1i32, 2, 3];
        let at =
            Place { addr: memory.as_mut_ptr() as usize, alone: &alone, briefly: &alone, is_alone: false };
        let data: Vec<u8> = [10i32, 20, 30].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let mut old = [0u8; 12];
        accumulate(Predefined::Sum, &area(0, 3, INT), &at, &data, Some(&mut old)).unwrap();
        assert_eq!(std::hint::black_box(memory), [11, 22, 33]);
        assert_eq!(old[4..8], 2i32.to_ne_bytes());
        accumulate(Predefined::NoOp, &area(0, 3, INT), &at, &[], Some(&mut old)).unwrap();
        assert_eq!(old[8..], 33i32.to_ne_bytes());
        assert_eq!(std::hint::black_box(memory), [11, 22, 33]);
        let mut was = [0u8; 4];
        let (new, compare) = (5i32.to_ne_bytes(), 11i32.to_ne_bytes());
        swap(&area(0, 1, INT), &at, &new, &compare, &mut was).unwrap();
        assert_eq!((was, std::hint::black_box(memory)[0]), (compare, 5));
        swap(&area(0, 1, INT), &at, &compare, &compare, &mut was).unwrap();
        assert_eq!((was, std::hint::black_box(memory)[0]), (new, 5));
    }
}
