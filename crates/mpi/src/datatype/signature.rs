//! What a datatype holds, in order: its type signature (MPI 5.0 section 5.1), compressed.
//!
//! The packed stream is the elements of the signature without gaps, so the signature alone
//! answers what is at a position of the stream: for counting elements, for conversion to
//! external32 and for comparing the two ends of a message.

use std::sync::Arc;

use super::basic::{Basic, PREDEFINED};
use super::layout::MAX_DEPTH;
use crate::error::{Class, Result, fail};

/// A sequence of elements. `kind` is a position in [`PREDEFINED`].
#[derive(Debug)]
pub(super) enum Pattern {
    /// `count` elements of one predefined datatype.
    Run { kind: u8, count: u64 },
    /// `child` over and over.
    Repeat { count: u64, child: Arc<Signature> },
    /// One after the other; `starts` are positions in the packed stream.
    Sequence { starts: Box<[u64]>, parts: Box<[Arc<Signature>]> },
}

/// A type signature with what is asked of it most often.
#[derive(Debug)]
pub(super) struct Signature {
    pub pattern: Pattern,
    /// Bytes in memory, without gaps.
    pub size: u64,
    /// Bytes in external32.
    pub external_size: u64,
    /// Basic elements; value and index of a pair count as two.
    pub elements: u64,
    /// The machine type of all elements, where it is one.
    pub basic: Option<Basic>,
    /// Identifies the sequence of machine types.
    pub digest: Digest,
    /// Whether bytes or packed data take part, which match anything.
    pub opaque: bool,
    depth: u32,
}

impl Signature {
    /// No elements.
    pub fn empty() -> Signature {
        Signature::of(0, 0)
    }

    /// `count` elements of the predefined datatype at position `kind`.
    pub fn of(kind: u8, count: u64) -> Signature {
        let row = &PREDEFINED[kind as usize];
        let digest = match row.basic.pair() {
            Some((value, index)) => Digest::of(value).then(Digest::of(index)),
            None => Digest::of(row.basic),
        };
        Signature {
            pattern: Pattern::Run { kind, count },
            size: u64::from(row.basic.size()) * count,
            external_size: u64::from(row.external_size) * count,
            elements: elements_of(kind) * count,
            basic: (count > 0).then_some(row.basic),
            digest: digest.repeat(count),
            opaque: count > 0 && matches!(row.basic, Basic::Byte | Basic::Packed),
            depth: 1,
        }
    }

    /// This signature `count` times; the caller has checked that the size fits.
    pub fn repeat(self: &Arc<Self>, count: u64) -> Result<Arc<Signature>> {
        if count == 1 {
            return Ok(self.clone());
        }
        if count == 0 || self.size == 0 {
            return Ok(Arc::new(Signature::empty()));
        }
        let pattern = match &self.pattern {
            Pattern::Run { kind, count: inner } => Pattern::Run { kind: *kind, count: inner * count },
            Pattern::Repeat { count: inner, child } => {
                Pattern::Repeat { count: inner * count, child: child.clone() }
            }
            Pattern::Sequence { .. } => Pattern::Repeat { count, child: self.clone() },
        };
        let deeper = matches!(self.pattern, Pattern::Sequence { .. });
        Signature {
            pattern,
            size: self.size * count,
            external_size: self.external_size.saturating_mul(count),
            elements: self.elements * count,
            basic: self.basic,
            digest: self.digest.repeat(count),
            opaque: self.opaque,
            depth: self.depth + u32::from(deeper),
        }
        .shared()
    }

    /// One signature after the other.
    pub fn join(parts: Vec<Arc<Signature>>) -> Result<Arc<Signature>> {
        let parts = merged(parts);
        if parts.len() <= 1 {
            return Ok(parts.into_iter().next().unwrap_or_else(|| Arc::new(Signature::empty())));
        }
        let mut starts = Vec::with_capacity(parts.len());
        let (mut size, mut external_size, mut elements, mut depth) = (0, 0u64, 0, 0);
        let mut digest = Digest::EMPTY;
        for part in &parts {
            starts.push(size);
            size += part.size;
            external_size = external_size.saturating_add(part.external_size);
            elements += part.elements;
            depth = depth.max(part.depth);
            digest = digest.then(part.digest);
        }
        let basic = parts[0].basic.filter(|_| parts.iter().all(|part| part.basic == parts[0].basic));
        let opaque = parts.iter().any(|part| part.opaque);
        let pattern = Pattern::Sequence { starts: starts.into(), parts: parts.into() };
        Signature { pattern, size, external_size, elements, basic, digest, opaque, depth: depth + 1 }.shared()
    }

    fn shared(self) -> Result<Arc<Signature>> {
        if self.depth > 2 * MAX_DEPTH {
            return fail(Class::TYPE, format!("the datatype nests more than {MAX_DEPTH} structures"));
        }
        Ok(Arc::new(self))
    }

    /// Whole basic elements in the first `bytes` bytes of the packed stream of one item, and
    /// whether they fill these bytes exactly.
    pub fn elements_in(&self, bytes: u64) -> (u64, bool) {
        if bytes >= self.size {
            return (self.elements, bytes == self.size);
        }
        match &self.pattern {
            Pattern::Run { kind, .. } => {
                let basic = PREDEFINED[*kind as usize].basic;
                let whole = bytes / u64::from(basic.size());
                let rest = bytes % u64::from(basic.size());
                match basic.pair() {
                    Some((value, _)) => {
                        let half = u64::from(rest >= u64::from(value.size()));
                        (2 * whole + half, rest == half * u64::from(value.size()))
                    }
                    None => (whole, rest == 0),
                }
            }
            Pattern::Repeat { child, .. } => {
                let (elements, exact) = child.elements_in(bytes % child.size);
                (bytes / child.size * child.elements + elements, exact)
            }
            Pattern::Sequence { starts, parts } => {
                let part = starts.partition_point(|&start| start <= bytes) - 1;
                let before: u64 = parts[..part].iter().map(|part| part.elements).sum();
                let (elements, exact) = parts[part].elements_in(bytes - starts[part]);
                (before + elements, exact)
            }
        }
    }

    /// Bytes of the packed stream that the first `elements` basic elements of one item take.
    pub fn bytes_of(&self, elements: u64) -> u64 {
        if elements >= self.elements {
            return self.size;
        }
        match &self.pattern {
            Pattern::Run { kind, .. } => {
                let basic = PREDEFINED[*kind as usize].basic;
                match basic.pair() {
                    Some((value, _)) => {
                        elements / 2 * u64::from(basic.size()) + elements % 2 * u64::from(value.size())
                    }
                    None => elements * u64::from(basic.size()),
                }
            }
            Pattern::Repeat { child, .. } => {
                elements / child.elements * child.size + child.bytes_of(elements % child.elements)
            }
            Pattern::Sequence { starts, parts } => {
                let mut left = elements;
                for (start, part) in starts.iter().zip(parts) {
                    if left < part.elements {
                        return start + part.bytes_of(left);
                    }
                    left -= part.elements;
                }
                self.size
            }
        }
    }

    /// Puts the predefined datatypes it is made of into `into`, each once.
    pub fn kinds(&self, into: &mut Vec<u8>) {
        match &self.pattern {
            Pattern::Run { kind, count } => {
                if *count > 0 && !into.contains(kind) {
                    into.push(*kind);
                }
            }
            Pattern::Repeat { child, .. } => child.kinds(into),
            Pattern::Sequence { parts, .. } => parts.iter().for_each(|part| part.kinds(into)),
        }
    }

    /// Bytes of all elements if those of a predefined datatype have `size` bytes.
    pub fn size_by(&self, size: &impl Fn(u8) -> u64) -> u64 {
        match &self.pattern {
            Pattern::Run { kind, count } => size(*kind).saturating_mul(*count),
            Pattern::Repeat { count, child } => child.size_by(size).saturating_mul(*count),
            Pattern::Sequence { parts, .. } => {
                parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.size_by(size)))
            }
        }
    }

    /// Calls `f(kind, count)` for the runs of equal elements, in order.
    pub fn visit(&self, f: &mut impl FnMut(u8, u64) -> Result) -> Result {
        match &self.pattern {
            Pattern::Run { count: 0, .. } => Ok(()),
            Pattern::Run { kind, count } => f(*kind, *count),
            Pattern::Repeat { count, child } => (0..*count).try_for_each(|_| child.visit(f)),
            Pattern::Sequence { parts, .. } => parts.iter().try_for_each(|part| part.visit(f)),
        }
    }
}

/// Basic elements in one element of a predefined datatype.
fn elements_of(kind: u8) -> u64 {
    if PREDEFINED[kind as usize].basic.pair().is_some() { 2 } else { 1 }
}

/// Joins neighbouring runs of one predefined datatype and drops empty parts.
fn merged(parts: Vec<Arc<Signature>>) -> Vec<Arc<Signature>> {
    let mut out: Vec<Arc<Signature>> = Vec::with_capacity(parts.len());
    for part in parts.into_iter().filter(|part| part.size > 0) {
        let joined = match (out.last().map(|last| &last.pattern), &part.pattern) {
            (Some(Pattern::Run { kind: a, count: n }), Pattern::Run { kind: b, count: m }) if a == b => {
                Some(Signature::of(*a, n + m))
            }
            _ => None,
        };
        match joined {
            Some(run) => *out.last_mut().expect("just looked at it") = Arc::new(run),
            None => out.push(part),
        }
    }
    out
}

/// A polynomial hash of the sequence of machine types: the digest of a sequence follows from
/// those of its parts, so that equal sequences agree however they were constructed. Unequal ones
/// collide with a probability of about length / 2^61.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digest {
    hash: u64,
    /// `BASE` to the power of the length.
    power: u64,
}

const MODULUS: u64 = (1 << 61) - 1;
const BASE: u64 = 0x0f1c_83b5_92d4_e6a7;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(MODULUS)) as u64
}

impl Digest {
    /// The digest of no elements.
    pub const EMPTY: Digest = Digest { hash: 0, power: 1 };

    fn of(basic: Basic) -> Digest {
        Digest { hash: basic as u64 + 1, power: BASE }
    }

    fn then(self, next: Digest) -> Digest {
        let hash = (times(self.hash, next.power) + next.hash) % MODULUS;
        Digest { hash, power: times(self.power, next.power) }
    }

    /// The digest of the sequence repeated `count` times.
    pub fn repeat(self, count: u64) -> Digest {
        let (mut result, mut square, mut left) = (Digest::EMPTY, self, count);
        while left > 0 {
            if left & 1 == 1 {
                result = result.then(square);
            }
            square = square.then(square);
            left >>= 1;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::basic::index_of;
    use super::*;
    use crate::handle::Handle;

    fn run(handle: u32, count: u64) -> Arc<Signature> {
        Arc::new(Signature::of(index_of(Handle(handle)).unwrap() as u8, count))
    }

    #[test]
    fn digests_do_not_depend_on_the_construction() {
        let (int, double) = (run(0x209, 1), run(0x214, 1));
        let pair = Signature::join(vec![int.clone(), double.clone()]).unwrap();
        let twice = pair.repeat(2).unwrap();
        let flat = Signature::join(vec![int.clone(), double.clone(), int.clone(), double.clone()]).unwrap();
        assert_eq!(twice.digest, flat.digest);
        assert_ne!(pair.digest, Signature::join(vec![double, int.clone()]).unwrap().digest);
        assert_eq!(run(0x22b, 3).digest, int.repeat(6).unwrap().digest);
        assert_ne!(int.digest, int.repeat(2).unwrap().digest);
    }

    #[test]
    fn positions_convert_between_elements_and_bytes() {
        let part = Signature::join(vec![run(0x209, 3), run(0x229, 2), run(0x243, 1)]).unwrap();
        let signature = part.repeat(5).unwrap();
        assert_eq!((part.size, part.elements), (12 + 24 + 1, 8));
        for elements in 0..=signature.elements {
            let bytes = signature.bytes_of(elements);
            assert_eq!(signature.elements_in(bytes), (elements, true), "{elements} in {bytes}");
        }
        assert_eq!(signature.elements_in(11), (2, false));
        assert_eq!(signature.elements_in(12 + 8), (4, true));
        assert_eq!(signature.elements_in(12 + 9), (4, false));
    }
}
