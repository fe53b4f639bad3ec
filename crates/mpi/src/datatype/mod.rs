//! Datatypes (MPI 5.0 chapter 5).
//!
//! A [`Datatype`] is immutable and shared: freeing a handle does not disturb operations under
//! way. Inside it are three views of one typemap, each made for its question: the `layout` tells
//! where the bytes lie (packing, direct transfer), the `signature` what they are (element
//! counts, external32, type matching), the contents how the type was constructed.

mod array;
pub mod basic;
mod body;
mod contents;
mod convert;
mod create;
mod describe;
mod external;
mod fortran;
mod layout;
mod query;
mod refit;
mod signature;
#[cfg(test)]
mod tests;
mod types;
mod walk;

use std::sync::{Arc, LazyLock};

pub use array::{Distribution, Order};
pub use basic::{Basic, Group, Predefined, basic_size, predefined};
use body::{Body, Span};
pub use contents::{Combiner, Contents, Envelope, Form};
pub use fortran::{TypeClass, match_size};
use layout::Layout;
pub use signature::Digest;
use signature::Signature;
pub use types::{TypeSlot, Types, small_form_only};
pub use walk::{Buffer, Runs, copy};

use crate::error::Result;
use crate::handle::Handle;
pub use describe::of_basic;

/// A datatype: predefined or derived.
#[derive(Debug)]
pub struct Datatype {
    body: Body,
    lb: i64,
    extent: i64,
    dense: bool,
    contents: Contents,
    /// Position in the table of predefined datatypes.
    kind: Option<u8>,
}

static PREDEFINED: LazyLock<Vec<Arc<Datatype>>> = LazyLock::new(|| {
    (0..basic::PREDEFINED.len()).map(|kind| Arc::new(Datatype::named(kind as u8))).collect()
});

impl Datatype {
    /// The predefined datatype behind `handle`, if it is one.
    pub fn of(handle: Handle) -> Option<&'static Arc<Datatype>> {
        basic::index_of(handle).map(|kind| &PREDEFINED[kind])
    }

    fn new(body: Body, contents: Contents) -> Result<Arc<Datatype>> {
        let (lb, ub) = (body.lb(), body.ub()?);
        let extent = body::fit(i128::from(ub) - i128::from(lb), "extent of the datatype")?;
        Ok(Datatype::with(body, lb, extent, contents))
    }

    fn with(body: Body, lb: i64, extent: i64, contents: Contents) -> Arc<Datatype> {
        let layout = &body.layout;
        let dense = layout.is_empty()
            || layout.node.is_run() && layout.offset == 0 && i64::try_from(layout.node.size) == Ok(extent);
        Arc::new(Datatype { body, lb, extent, dense, contents, kind: None })
    }

    fn named(kind: u8) -> Datatype {
        let basic = basic::PREDEFINED[kind as usize].basic;
        let size = u64::from(basic.size());
        let layout = match (basic.pair(), basic.index_offset()) {
            (Some((value, index)), Some(at)) if at != value.size() => {
                let mut collector = layout::Collector::default();
                for (at, part) in [(0, value), (i64::from(at), index)] {
                    let run = Layout::run(u64::from(part.size()));
                    collector.add(at, &run, 1, 0).expect("two runs fit");
                }
                collector.finish().expect("two runs fit")
            }
            _ => Layout::run(size),
        };
        let end = match (basic.pair(), basic.index_offset()) {
            (Some((_, index)), Some(at)) => i64::from(at + index.size()),
            _ => size as i64,
        };
        let body = Body {
            data: Some(Span { lo: 0, hi: end }),
            parts: Some(Span { lo: 0, hi: end }),
            mark: None,
            align: basic.align(),
            signature: Arc::new(Signature::of(kind, 1)),
            layout,
        };
        Datatype {
            body,
            lb: 0,
            extent: i64::from(basic.extent()),
            dense: basic.is_dense(),
            contents: contents::Record::new(Combiner::Named, Form::Small).types(&[]),
            kind: Some(kind),
        }
    }

    /// The table row of a predefined datatype, `None` for a derived one.
    pub fn predefined(&self) -> Option<&'static Predefined> {
        self.kind.map(|kind| &basic::PREDEFINED[kind as usize])
    }

    /// Bytes of data in one item.
    #[inline]
    pub fn size(&self) -> u64 {
        self.body.signature.size
    }

    /// Lower bound, in bytes from the origin.
    pub fn lb(&self) -> i64 {
        self.lb
    }

    /// Upper bound, in bytes from the origin.
    pub fn ub(&self) -> i64 {
        self.lb + self.extent
    }

    /// Distance between consecutive items, in bytes.
    #[inline]
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// Where the first byte of data lies, in bytes from the origin; 0 without data.
    pub fn true_lb(&self) -> i64 {
        self.body.data.map_or(0, |data| data.lo)
    }

    /// From the first byte of data to the one behind the last.
    pub fn true_extent(&self) -> i64 {
        self.body.data.map_or(0, |data| data.hi - data.lo)
    }

    /// Whether any number of items is one run of bytes that starts at the buffer address.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.dense
    }

    /// Basic elements in one item; value and index of a pair count as two.
    pub fn elements(&self) -> u64 {
        self.body.signature.elements
    }

    /// The machine type of all elements, where they agree; `None` also without elements.
    pub fn basic(&self) -> Option<Basic> {
        self.body.signature.basic
    }

    /// The boundary on which the strictest element must lie.
    pub fn align(&self) -> u32 {
        self.body.align
    }

    /// How it was constructed.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Identifies the type signature of `count` items: equal signatures have equal digests
    /// however they were constructed.
    pub fn digest(&self, count: u64) -> Digest {
        self.body.signature.digest.repeat(count)
    }

    /// Whether bytes or packed data take part, so that any partner matches.
    pub fn is_opaque(&self) -> bool {
        self.body.signature.opaque
    }

    /// Whether a message of `count` items may be received as `other_count` items of `other`
    /// (MPI 5.0 section 3.3.1): equal machine types in equal order. Bytes and packed data match
    /// everything of their size.
    pub fn matches(&self, count: u64, other: &Datatype, other_count: u64) -> bool {
        let bytes = |ty: &Datatype, n: u64| u128::from(ty.size()) * u128::from(n);
        if bytes(self, count) != bytes(other, other_count) {
            return false;
        }
        self.is_opaque() || other.is_opaque() || self.digest(count) == other.digest(other_count)
    }
}

impl Drop for Datatype {
    /// Ancestors are released in a loop: a chain of a million duplicates must not use a stack
    /// frame each.
    fn drop(&mut self) {
        let mut ancestors = std::mem::take(&mut self.contents.types);
        while let Some(ancestor) = ancestors.pop() {
            if let Some(mut last) = Arc::into_inner(ancestor) {
                ancestors.append(&mut last.contents.types);
            }
        }
    }
}
