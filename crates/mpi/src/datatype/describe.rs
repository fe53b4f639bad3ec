//! A datatype as words that another rank makes it of: where the bytes lie and, if it is one, what their elements
//! are. A target needs no more of the types its origins use (MPI 5.0 section 12.3).
//!
//! ```text
//! words: lb, extent, position of the element's predefined datatype, offset of the first byte, number of nodes, nodes
//! node:  0 size | 1 count stride child | 2 n offsets child | 3 n offsets lengths | 4 n offsets children
//! ```
//!
//! A child is the number of a node before, so shared parts are told once.

use std::collections::HashMap;
use std::sync::Arc;

use super::Datatype;
use super::basic::{Basic, PREDEFINED};
use super::body::{Body, Span};
use super::contents::{Combiner, Form, Record};
use super::layout::{Layout, MAX_DEPTH, Node, Shape};
use super::signature::Signature;
use crate::error::{Class, Error, Result};

/// A predefined datatype whose memory holds this.
pub fn of_basic(basic: Basic) -> &'static Arc<Datatype> {
    let row = PREDEFINED.iter().find(|row| row.basic == basic).expect("every machine type has a datatype");
    Datatype::of(row.handle).expect("it is in the table")
}

/// The position of a predefined datatype of this machine type; of `MPI_BYTE` if there is none.
fn position(element: Option<Basic>) -> usize {
    let wanted = element.unwrap_or(Basic::Byte);
    PREDEFINED.iter().position(|row| row.basic == wanted).expect("every machine type has a datatype")
}

impl Datatype {
    /// What [`Datatype::described`] makes an equal one of, as far as its bytes and elements go.
    pub fn describe(&self) -> Vec<u64> {
        let mut nodes = Nodes::default();
        nodes.add(&self.body.layout.node);
        let mut words = vec![
            self.lb as u64,
            self.extent as u64,
            position(self.basic()) as u64,
            self.body.layout.offset as u64,
            nodes.known.len() as u64,
        ];
        words.extend(nodes.words);
        words
    }

    /// The datatype of a description, which may be any words.
    pub fn described(words: &[u64]) -> Result<Arc<Datatype>> {
        decode(words).ok_or_else(|| Error::new(Class::INTERN, "a description of a datatype makes no sense"))
    }
}

#[derive(Default)]
struct Nodes {
    words: Vec<u64>,
    known: HashMap<*const Node, u64>,
}

impl Nodes {
    /// Tells a node and what is below it; its number.
    fn add(&mut self, node: &Arc<Node>) -> u64 {
        if let Some(number) = self.known.get(&Arc::as_ptr(node)) {
            return *number;
        }
        let told: Vec<u64> = match &node.shape {
            Shape::Run => vec![0, node.size],
            Shape::Loop { count, stride, child } => vec![1, *count, *stride as u64, self.add(child)],
            Shape::Blocks { offsets, child } => {
                let child = self.add(child);
                let offsets = offsets.iter().map(|at| *at as u64);
                [2, offsets.len() as u64].into_iter().chain(offsets).chain([child]).collect()
            }
            Shape::Runs { offsets, starts } => {
                let lengths = starts.windows(2).map(|pair| pair[1] - pair[0]);
                let offsets = offsets.iter().map(|at| *at as u64);
                [3, offsets.len() as u64].into_iter().chain(offsets).chain(lengths).collect()
            }
            Shape::Sequence { offsets, children, .. } => {
                let children: Vec<u64> = children.iter().map(|child| self.add(child)).collect();
                let offsets = offsets.iter().map(|at| *at as u64);
                [4, offsets.len() as u64].into_iter().chain(offsets).chain(children).collect()
            }
        };
        self.words.extend(told);
        let number = self.known.len() as u64;
        self.known.insert(Arc::as_ptr(node), number);
        number
    }
}

/// A node that was told, and from where to where its bytes lie.
type Told = (Arc<Node>, i128, i128);

fn decode(words: &[u64]) -> Option<Arc<Datatype>> {
    let (head, mut rest) = words.split_at_checked(5)?;
    let [lb, extent, kind, offset, count] = *head else { return None };
    let row = PREDEFINED.get(usize::try_from(kind).ok()?)?;
    let mut nodes: Vec<Told> = Vec::new();
    for _ in 0..count {
        let node = decode_node(&mut rest, &nodes)?;
        nodes.push(node);
    }
    let (node, lo, hi) = nodes.pop()?;
    if !rest.is_empty() || node.size == 0 && !node.is_run() {
        return None;
    }
    let element = u64::from(row.basic.size());
    if !node.size.is_multiple_of(element) || node.size > i64::MAX as u64 {
        return None;
    }
    let offset = offset as i64;
    let at = |end: i128| i64::try_from(i128::from(offset) + end).ok();
    let span = Span { lo: at(lo)?, hi: at(hi)? };
    // As for types made here, its length and its upper bound are numbers of 64 bits.
    span.hi.checked_sub(span.lo)?;
    (lb as i64).checked_add(extent as i64)?;
    let data = (node.size > 0).then_some(span);
    let body = Body {
        data,
        parts: data,
        mark: None,
        align: 1,
        signature: Arc::new(Signature::of(kind as u8, node.size / element)),
        layout: Layout { offset, node },
    };
    let contents = Record::new(Combiner::Dup, Form::Large).types(&[]);
    Some(Datatype::with(body, lb as i64, extent as i64, contents))
}

fn take<'a>(rest: &mut &'a [u64], count: u64) -> Option<&'a [u64]> {
    let (taken, left) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    *rest = left;
    Some(taken)
}

fn decode_node(rest: &mut &[u64], nodes: &[Told]) -> Option<Told> {
    let child = |number: u64| {
        let told = nodes.get(usize::try_from(number).ok()?)?;
        (told.0.depth < MAX_DEPTH && told.0.size > 0).then_some(told)
    };
    let [shape, first] = *take(rest, 2)? else { return None };
    match shape {
        0 => Some((Arc::new(Node { size: first, depth: 1, shape: Shape::Run }), 0, first.into())),
        1 => {
            let [stride, number] = *take(rest, 2)? else { return None };
            let (told, lo, hi) = child(number)?;
            let size = first.checked_mul(told.size).filter(|size| *size > 0)?;
            let last = i128::from(stride as i64) * i128::from(first - 1);
            let shape = Shape::Loop { count: first, stride: stride as i64, child: told.clone() };
            let node = Arc::new(Node { size, depth: told.depth + 1, shape });
            Some((node, lo + last.min(0), hi + last.max(0)))
        }
        2 => {
            let offsets = offsets(take(rest, first)?)?;
            let (told, lo, hi) = child(take(rest, 1)?[0])?;
            let size = first.checked_mul(told.size)?;
            let (least, most) = (*offsets.iter().min()?, *offsets.iter().max()?);
            let shape = Shape::Blocks { offsets, child: told.clone() };
            let node = Arc::new(Node { size, depth: told.depth + 1, shape });
            Some((node, lo + i128::from(least), hi + i128::from(most)))
        }
        3 => {
            let offsets = offsets(take(rest, first)?)?;
            let lengths = take(rest, first)?;
            let starts = starts(lengths.iter().copied())?;
            let ends = offsets.iter().zip(lengths).map(|(at, len)| i128::from(*at) + i128::from(*len));
            let (lo, hi) = (i128::from(*offsets.iter().min()?), ends.max()?);
            let size = *starts.last()?;
            Some((Arc::new(Node { size, depth: 1, shape: Shape::Runs { offsets, starts } }), lo, hi))
        }
        4 => {
            let offsets = offsets(take(rest, first)?)?;
            let told: Vec<&Told> =
                take(rest, first)?.iter().map(|number| child(*number)).collect::<Option<_>>()?;
            let starts = starts(told.iter().map(|told| told.0.size))?;
            let bounds = || offsets.iter().zip(&told).map(|(at, told)| (i128::from(*at), told));
            let lo = bounds().map(|(at, told)| at + told.1).min()?;
            let hi = bounds().map(|(at, told)| at + told.2).max()?;
            let depth = told.iter().map(|told| told.0.depth).max()? + 1;
            let children = told.iter().map(|told| told.0.clone()).collect();
            let size = *starts.last()?;
            Some((
                Arc::new(Node { size, depth, shape: Shape::Sequence { offsets, starts, children } }),
                lo,
                hi,
            ))
        }
        _ => None,
    }
}

fn offsets(words: &[u64]) -> Option<Box<[i64]>> {
    (!words.is_empty()).then(|| words.iter().map(|word| *word as i64).collect())
}

/// Positions in the packed stream, of pieces none of which is empty.
fn starts(lengths: impl Iterator<Item = u64>) -> Option<Box<[u64]>> {
    let mut starts = vec![0u64];
    for len in lengths {
        starts.push(starts.last()?.checked_add(len).filter(|_| len > 0)?);
    }
    Some(starts.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Handle;

    fn int() -> Arc<Datatype> {
        Datatype::of(Handle(0x209)).unwrap().clone()
    }

    fn again(ty: &Datatype) -> Arc<Datatype> {
        Datatype::described(&ty.describe()).unwrap()
    }

    #[test]
    fn a_described_type_moves_the_same_bytes() {
        let vector = Datatype::vector(3, 2, 5, &int(), Form::Small).unwrap();
        let indexed = Datatype::indexed(&[1, 3, 2], &[7, 0, 20], &vector, Form::Small).unwrap();
        for ty in [int(), vector, indexed] {
            let made = again(&ty);
            assert_eq!((made.size(), made.extent(), made.lb()), (ty.size(), ty.extent(), ty.lb()));
            assert_eq!((made.true_lb(), made.true_extent()), (ty.true_lb(), ty.true_extent()));
            assert_eq!((made.basic(), made.is_contiguous()), (ty.basic(), ty.is_contiguous()));
            let runs = |ty: &Datatype| ty.runs(1 << 20, 3, 0).collect::<Vec<_>>();
            assert_eq!(runs(&made), runs(&ty));
        }
    }

    #[test]
    fn any_words_are_survived() {
        let vector = Datatype::vector(3, 2, 5, &int(), Form::Small).unwrap();
        let good = Datatype::indexed(&[1, 3, 2], &[7, 0, 20], &vector, Form::Small).unwrap().describe();
        for len in 0..good.len() {
            assert_eq!(Datatype::described(&good[..len]).unwrap_err().class, Class::INTERN);
        }
        for at in 0..good.len() {
            for value in [0, 1, 2, 5, u64::MAX, 1 << 63, 1 << 40] {
                let mut words = good.clone();
                words[at] = value;
                if let Ok(ty) = Datatype::described(&words) {
                    let _ = (ty.true_extent(), ty.runs(0, 1, 0).take(9).count());
                }
            }
        }
    }
}
