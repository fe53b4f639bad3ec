//! Moves the bytes of a datatype: packing, unpacking, listing runs.
//!
//! A position is a byte offset in the packed stream. Every operation finds its position by
//! descending the layout (a division per loop, a binary search per list) and moves on from there,
//! so that a message may be cut anywhere and continued later without any state.

use std::sync::Arc;

use super::Datatype;
use super::layout::{Node, Shape};
use crate::mem;

/// Where the bytes go to or come from.
trait Mover {
    /// How many bytes may still be moved.
    fn left(&self) -> u64;
    /// Moves one run.
    fn run(&mut self, addr: usize, len: usize);
    /// Moves `count` blocks of `len` bytes, `stride` bytes apart.
    fn strided(&mut self, addr: usize, stride: i64, count: usize, len: usize);
    /// Moves a block of `len` bytes at each offset.
    fn scattered(&mut self, addr: usize, offsets: &[i64], len: usize);
}

struct Packer<'a> {
    out: &'a mut [u8],
    done: usize,
}

impl Packer<'_> {
    #[inline]
    fn next(&mut self, len: usize) -> &mut [u8] {
        let start = self.done;
        self.done += len;
        &mut self.out[start..start + len]
    }
}

impl Mover for Packer<'_> {
    #[inline]
    fn left(&self) -> u64 {
        (self.out.len() - self.done) as u64
    }

    #[inline]
    fn run(&mut self, addr: usize, len: usize) {
        mem::read(addr, self.next(len));
    }

    #[inline]
    fn strided(&mut self, addr: usize, stride: i64, count: usize, len: usize) {
        mem::gather(self.next(count * len), addr, stride, len);
    }

    #[inline]
    fn scattered(&mut self, addr: usize, offsets: &[i64], len: usize) {
        mem::gather_at(self.next(offsets.len() * len), addr, offsets, len);
    }
}

struct Unpacker<'a> {
    input: &'a [u8],
    done: usize,
}

impl<'a> Unpacker<'a> {
    #[inline]
    fn next(&mut self, len: usize) -> &'a [u8] {
        let start = self.done;
        self.done += len;
        &self.input[start..start + len]
    }
}

impl Mover for Unpacker<'_> {
    #[inline]
    fn left(&self) -> u64 {
        (self.input.len() - self.done) as u64
    }

    #[inline]
    fn run(&mut self, addr: usize, len: usize) {
        mem::write(addr, self.next(len));
    }

    #[inline]
    fn strided(&mut self, addr: usize, stride: i64, count: usize, len: usize) {
        mem::scatter(addr, stride, self.next(count * len), len);
    }

    #[inline]
    fn scattered(&mut self, addr: usize, offsets: &[i64], len: usize) {
        mem::scatter_at(addr, offsets, self.next(offsets.len() * len), len);
    }
}

#[inline]
fn at(addr: usize, offset: i64) -> usize {
    addr.wrapping_add_signed(offset as isize)
}

/// Address of item `index` of a loop.
#[inline]
fn item(addr: usize, stride: i64, index: u64) -> usize {
    addr.wrapping_add((stride as usize).wrapping_mul(index as usize))
}

/// Moves the bytes of `node` from position `skip` on, until its end or until nothing is left.
fn walk(node: &Node, addr: usize, skip: u64, mover: &mut impl Mover) {
    match &node.shape {
        Shape::Run => {
            let len = (node.size - skip).min(mover.left());
            mover.run(addr.wrapping_add(skip as usize), len as usize);
        }
        Shape::Loop { count, stride, child } => walk_loop(*count, *stride, child, addr, skip, mover),
        Shape::Blocks { offsets, child } => walk_blocks(offsets, child, addr, skip, mover),
        Shape::Runs { offsets, starts } => {
            let mut index = index_at(starts, skip);
            let mut skip = skip - starts[index];
            while index < offsets.len() && mover.left() > 0 {
                let len = (starts[index + 1] - starts[index] - skip).min(mover.left());
                mover.run(at(addr, offsets[index]).wrapping_add(skip as usize), len as usize);
                (index, skip) = (index + 1, 0);
            }
        }
        Shape::Sequence { offsets, starts, children } => {
            let mut index = index_at(starts, skip);
            let mut skip = skip - starts[index];
            while index < children.len() && mover.left() > 0 {
                walk(&children[index], at(addr, offsets[index]), skip, mover);
                (index, skip) = (index + 1, 0);
            }
        }
    }
}

/// The entry that holds position `skip` of the packed stream.
#[inline]
fn index_at(starts: &[u64], skip: u64) -> usize {
    if skip == 0 { 0 } else { starts.partition_point(|&start| start <= skip) - 1 }
}

fn walk_loop(count: u64, stride: i64, child: &Node, addr: usize, skip: u64, mover: &mut impl Mover) {
    let (mut index, inside) = if skip == 0 { (0, 0) } else { (skip / child.size, skip % child.size) };
    if inside > 0 {
        walk(child, item(addr, stride, index), inside, mover);
        index += 1;
    }
    let whole = (count - index).min(mover.left() / child.size);
    if child.is_run() {
        mover.strided(item(addr, stride, index), stride, whole as usize, child.size as usize);
    } else {
        for i in index..index + whole {
            walk(child, item(addr, stride, i), 0, mover);
        }
    }
    index += whole;
    if index < count && mover.left() > 0 {
        walk(child, item(addr, stride, index), 0, mover);
    }
}

fn walk_blocks(offsets: &[i64], child: &Node, addr: usize, skip: u64, mover: &mut impl Mover) {
    let (mut index, inside) = ((skip / child.size) as usize, skip % child.size);
    if inside > 0 {
        walk(child, at(addr, offsets[index]), inside, mover);
        index += 1;
    }
    let whole = ((offsets.len() - index) as u64).min(mover.left() / child.size) as usize;
    let blocks = &offsets[index..index + whole];
    if child.is_run() {
        mover.scattered(addr, blocks, child.size as usize);
    } else {
        for &offset in blocks {
            walk(child, at(addr, offset), 0, mover);
        }
    }
    index += whole;
    if index < offsets.len() && mover.left() > 0 {
        walk(child, at(addr, offsets[index]), 0, mover);
    }
}

/// The rest of the run that holds position `skip`: its address and length.
fn locate(mut node: &Node, mut addr: usize, mut skip: u64) -> (usize, u64) {
    loop {
        match &node.shape {
            Shape::Run => return (addr.wrapping_add(skip as usize), node.size - skip),
            Shape::Loop { stride, child, .. } => {
                addr = item(addr, *stride, skip / child.size);
                (skip, node) = (skip % child.size, child);
            }
            Shape::Blocks { offsets, child } => {
                addr = at(addr, offsets[(skip / child.size) as usize]);
                (skip, node) = (skip % child.size, child);
            }
            Shape::Runs { offsets, starts } => {
                let index = index_at(starts, skip);
                let inside = skip - starts[index];
                let len = starts[index + 1] - starts[index] - inside;
                return (at(addr, offsets[index]).wrapping_add(inside as usize), len);
            }
            Shape::Sequence { offsets, starts, children } => {
                let index = index_at(starts, skip);
                addr = at(addr, offsets[index]);
                (skip, node) = (skip - starts[index], &children[index]);
            }
        }
    }
}

impl Datatype {
    /// Bytes of `count` items that `buffer` still has room for from position `from` on.
    fn portion(&self, count: u64, from: u64, buffer: usize) -> usize {
        let total = u128::from(self.size()) * u128::from(count);
        total.saturating_sub(u128::from(from)).min(buffer as u128) as usize
    }

    fn walk_items(&self, base: usize, count: u64, from: u64, mover: &mut impl Mover) {
        let node: &Arc<Node> = &self.body.layout.node;
        let addr = at(base, self.body.layout.offset);
        if count == 1 {
            return walk(node, addr, from, mover);
        }
        if let Shape::Loop { count: inner, stride, child } = &node.shape
            && i128::from(*inner) * i128::from(*stride) == i128::from(self.extent)
            && let Some(count) = inner.checked_mul(count)
        {
            return walk_loop(count, *stride, child, addr, from, mover);
        }
        walk_loop(count, self.extent, node, addr, from, mover);
    }

    /// Packs `count` items at address `base`, from position `from` of the packed stream on, into
    /// `out`; returns how many bytes that were. Fewer than `out` holds only at the end.
    pub fn pack(&self, base: usize, count: u64, from: u64, out: &mut [u8]) -> usize {
        let len = self.portion(count, from, out.len());
        if len == 0 {
            return 0;
        }
        if self.dense {
            mem::read(base.wrapping_add(from as usize), &mut out[..len]);
            return len;
        }
        let mut packer = Packer { out: &mut out[..len], done: 0 };
        self.walk_items(base, count, from, &mut packer);
        assert_eq!(packer.done, len, "the layout ended early");
        len
    }

    /// Unpacks `input`, which continues the packed stream at position `from`, into `count` items
    /// at address `base`; returns how many bytes were taken. Fewer than given only at the end.
    pub fn unpack(&self, base: usize, count: u64, from: u64, input: &[u8]) -> usize {
        let len = self.portion(count, from, input.len());
        if len == 0 {
            return 0;
        }
        if self.dense {
            mem::write(base.wrapping_add(from as usize), &input[..len]);
            return len;
        }
        let mut unpacker = Unpacker { input: &input[..len], done: 0 };
        self.walk_items(base, count, from, &mut unpacker);
        assert_eq!(unpacker.done, len, "the layout ended early");
        len
    }

    /// The runs of memory that `count` items at address `base` occupy, in the order of the packed
    /// stream, from position `from` on. Runs that touch are one.
    pub fn runs(&self, base: usize, count: u64, from: u64) -> Runs<'_> {
        let total = u128::from(self.size()) * u128::from(count);
        let end = u64::try_from(total).unwrap_or(u64::MAX);
        Runs { ty: self, base, position: from, end }
    }

    /// The rest of the run that holds this position of the packed stream of as many items as need be: address and
    /// length.
    pub(crate) fn run_at(&self, base: usize, position: u64) -> (usize, u64) {
        let (index, inside) = (position / self.size(), position % self.size());
        locate(&self.body.layout.node, item(at(base, self.body.layout.offset), self.extent, index), inside)
    }
}

/// Iterator over (address, length) of the runs of a buffer; see [`Datatype::runs`].
#[derive(Debug)]
pub struct Runs<'a> {
    ty: &'a Datatype,
    base: usize,
    position: u64,
    end: u64,
}

impl Iterator for Runs<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        if self.position >= self.end {
            return None;
        }
        if self.ty.dense {
            let addr = self.base.wrapping_add(self.position as usize);
            let len = self.end - self.position;
            self.position = self.end;
            return Some((addr, len));
        }
        let (addr, mut len) = self.ty.run_at(self.base, self.position);
        self.position += len;
        while self.position < self.end {
            let (next, more) = self.ty.run_at(self.base, self.position);
            if next != addr.wrapping_add(len as usize) {
                break;
            }
            len += more;
            self.position += more;
        }
        Some((addr, len))
    }
}

/// A buffer as MPI describes it.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    /// Address of the origin of the first item.
    pub base: usize,
    /// Number of items.
    pub count: u64,
    /// What one item is.
    pub ty: &'a Datatype,
}

/// Bytes through which data passes when neither side is contiguous: within the first-level cache.
const STAGING_BYTES: u64 = 16 << 10;

/// Copies the data of `from` into `to`, as sending and receiving would; returns the number of
/// bytes, which is the smaller of both. The buffers do not overlap (MPI 5.0 section 3.10).
pub fn copy(from: Buffer<'_>, to: Buffer<'_>) -> u64 {
    let bytes = |buffer: &Buffer<'_>| u128::from(buffer.ty.size()) * u128::from(buffer.count);
    let len = bytes(&from).min(bytes(&to)) as u64;
    match (from.ty.dense, to.ty.dense) {
        (true, true) => mem::copy(to.base, from.base, len as usize),
        (false, true) => {
            mem::with_mut(to.base, len as usize, |out| from.ty.pack(from.base, from.count, 0, out));
        }
        (true, false) => {
            mem::with(from.base, len as usize, |input| to.ty.unpack(to.base, to.count, 0, input));
        }
        (false, false) => {
            let mut staging = vec![0; len.min(STAGING_BYTES) as usize];
            let mut position = 0;
            while position < len {
                let part = staging.len().min((len - position) as usize);
                from.ty.pack(from.base, from.count, position, &mut staging[..part]);
                to.ty.unpack(to.base, to.count, position, &staging[..part]);
                position += part as u64;
            }
        }
    }
    len
}
