//! The meaning of a typemap, without the record of how it was constructed: bounds, layout and
//! signature, and the two operations all constructors are made of.

use std::sync::Arc;

use super::layout::{Collector, Layout};
use super::signature::Signature;
use crate::error::{Class, Result, fail};

/// From the first byte to the one behind the last, relative to the origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub lo: i64,
    pub hi: i64,
}

/// A typemap, reduced.
#[derive(Clone, Debug)]
pub(super) struct Body {
    /// Where the data lies; `None` without elements.
    pub data: Option<Span>,
    /// From the lower to the upper bound of the parts, each rounded on its own; of parts without
    /// markers.
    pub parts: Option<Span>,
    /// The markers that `MPI_Type_create_resized` and the array constructors leave (MPI 5.0
    /// section 5.1.8); markers of parts outweigh their data.
    pub mark: Option<Span>,
    /// The strictest alignment among the elements.
    pub align: u32,
    pub signature: Arc<Signature>,
    pub layout: Layout,
}

/// `value` as an `i64`; `what` names the quantity in the error.
pub(super) fn fit(value: i128, what: &str) -> Result<i64> {
    match i64::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => fail(Class::VALUE_TOO_LARGE, format!("the {what} would be {value}, beyond 64 bits")),
    }
}

impl Span {
    fn union(a: Option<Span>, b: Span) -> Option<Span> {
        Some(a.map_or(b, |a| Span { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi) }))
    }

    /// The span of `count` copies, the first one moved by `at`.
    fn copies(self, at: i64, count: u64, stride: i64) -> Result<Span> {
        let last = i128::from(at) + i128::from(count - 1) * i128::from(stride);
        let (near, far) = (last.min(i128::from(at)), last.max(i128::from(at)));
        let lo = fit(i128::from(self.lo) + near, "lower bound of the datatype")?;
        let hi = fit(i128::from(self.hi) + far, "upper bound of the datatype")?;
        fit(i128::from(hi) - i128::from(lo), "extent of the datatype")?;
        Ok(Span { lo, hi })
    }
}

impl Body {
    /// Lower bound.
    pub fn lb(&self) -> i64 {
        self.mark.or(self.parts).map_or(0, |span| span.lo)
    }

    /// Upper bound: that of the markers, else that of the parts rounded so that the extent is a
    /// multiple of the alignment (MPI 5.0 section 5.1, definition of extent). What a part was
    /// rounded by counts as its own, as in Open MPI, MPICH and Intel MPI: the standard's formula
    /// would drop it where displacements are not aligned.
    pub fn ub(&self) -> Result<i64> {
        if let Some(mark) = self.mark {
            return Ok(mark.hi);
        }
        let Some(parts) = self.parts else { return Ok(0) };
        let align = i128::from(self.align);
        let length = i128::from(parts.hi) - i128::from(parts.lo);
        fit(i128::from(parts.lo) + (length + align - 1) / align * align, "upper bound of the datatype")
    }

    /// `count` copies, `stride` bytes apart.
    pub fn repeat(&self, count: u64, stride: i64) -> Result<Body> {
        let mut joiner = Joiner::default();
        joiner.add(0, self, count, stride)?;
        joiner.finish()
    }
}

/// Puts typemaps one after the other.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    size: u64,
    data: Option<Span>,
    parts: Option<Span>,
    mark: Option<Span>,
    align: u32,
    signatures: Vec<Arc<Signature>>,
    /// Repetitions of one signature not yet pushed: a long list of blocks of one type needs one
    /// entry.
    pending: Option<(Arc<Signature>, u64)>,
    collector: Collector,
}

impl Joiner {
    /// Adds `count` copies of `body`, `stride` bytes apart, the first one at `at`.
    pub fn add(&mut self, at: i64, body: &Body, count: u64, stride: i64) -> Result {
        if count == 0 {
            return Ok(());
        }
        if let Some(mark) = body.mark {
            self.mark = Span::union(self.mark, mark.copies(at, count, stride)?);
        }
        let Some(data) = body.data else { return Ok(()) };
        let size = i128::from(self.size) + i128::from(body.signature.size) * i128::from(count);
        self.size = fit(size, "size of the datatype")? as u64;
        self.data = Span::union(self.data, data.copies(at, count, stride)?);
        let union = self.data.expect("has just been set");
        fit(i128::from(union.hi) - i128::from(union.lo), "extent of the datatype")?;
        if body.mark.is_none() {
            let part = Span { lo: body.lb(), hi: body.ub()? };
            self.parts = Span::union(self.parts, part.copies(at, count, stride)?);
        }
        self.align = self.align.max(body.align);
        self.sign(&body.signature, count)?;
        self.collector.add(at, &body.layout, count, stride)
    }

    fn sign(&mut self, signature: &Arc<Signature>, count: u64) -> Result {
        match &mut self.pending {
            Some((same, times)) if Arc::ptr_eq(same, signature) => *times += count,
            _ => {
                self.flush()?;
                self.pending = Some((signature.clone(), count));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result {
        if let Some((signature, times)) = self.pending.take() {
            self.signatures.push(signature.repeat(times)?);
        }
        Ok(())
    }

    /// The joined typemap.
    pub fn finish(mut self) -> Result<Body> {
        self.flush()?;
        let body = Body {
            data: self.data,
            parts: self.parts,
            mark: self.mark,
            align: self.align.max(1),
            signature: Signature::join(self.signatures)?,
            layout: self.collector.finish()?,
        };
        assert_eq!(body.layout.node.size, body.signature.size, "layout and signature disagree");
        Ok(body)
    }
}
