//! Where the bytes of a datatype lie: a tree of loops over contiguous runs.
//!
//! Constructors of any depth are reduced to five shapes while the type is built, so that moving
//! data never looks at constructors again: adjacent runs are merged, nested loops collapse,
//! regular lists become loops. The order of the typemap is kept, because it is the order of the
//! packed stream. Subtrees are shared.

use std::sync::Arc;

use crate::error::{Class, Result, fail};

/// Deepest tree of shapes that do not merge: bounds the recursion of the engine, also on the
/// small stacks of simulated ranks.
pub(super) const MAX_DEPTH: u32 = 200;

/// One shape. Offsets are relative to the address of the shape's first byte in typemap order.
#[derive(Debug, PartialEq)]
pub(super) enum Shape {
    /// One contiguous run.
    Run,
    /// `count` times `child`, `stride` bytes apart.
    Loop { count: u64, stride: i64, child: Arc<Node> },
    /// `child` once at each offset.
    Blocks { offsets: Box<[i64]>, child: Arc<Node> },
    /// Contiguous runs of different lengths; `starts` are their positions in the packed stream.
    Runs { offsets: Box<[i64]>, starts: Box<[u64]> },
    /// Different children one after the other.
    Sequence { offsets: Box<[i64]>, starts: Box<[u64]>, children: Box<[Arc<Node>]> },
}

/// A shape with the number of bytes it moves.
#[derive(Debug, PartialEq)]
pub(super) struct Node {
    /// Bytes in the packed stream, never 0 except in an empty layout.
    pub size: u64,
    /// Levels below and including this one.
    pub depth: u32,
    /// How the bytes lie.
    pub shape: Shape,
}

/// A node and where its first byte lies relative to the origin of the type.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub offset: i64,
    pub node: Arc<Node>,
}

impl Node {
    fn run(size: u64) -> Arc<Node> {
        Arc::new(Node { size, depth: 1, shape: Shape::Run })
    }

    /// Whether all bytes lie in one piece.
    pub fn is_run(&self) -> bool {
        matches!(self.shape, Shape::Run)
    }

    fn above(child: &Node, size: u64, shape: Shape) -> Result<Arc<Node>> {
        let depth = child.depth + 1;
        if depth > MAX_DEPTH {
            return fail(
                Class::TYPE,
                format!("the datatype nests {depth} levels that cannot be merged, the limit is {MAX_DEPTH}"),
            );
        }
        Ok(Arc::new(Node { size, depth, shape }))
    }
}

impl Layout {
    /// No bytes at all.
    pub fn empty() -> Layout {
        Layout { offset: 0, node: Node::run(0) }
    }

    /// One run of `size` bytes at the origin.
    pub fn run(size: u64) -> Layout {
        Layout { offset: 0, node: Node::run(size) }
    }

    /// Whether there is nothing to move.
    pub fn is_empty(&self) -> bool {
        self.node.size == 0
    }
}

fn repeat_node(node: &Arc<Node>, count: u64, stride: i64) -> Result<Arc<Node>> {
    let size = node.size * count;
    if count == 1 {
        return Ok(node.clone());
    }
    match &node.shape {
        Shape::Run if stride >= 0 && stride as u64 == node.size => return Ok(Node::run(size)),
        Shape::Loop { count: inner, stride: step, child }
            if i128::from(*step) * i128::from(*inner) == i128::from(stride) =>
        {
            let shape = Shape::Loop { count: inner * count, stride: *step, child: child.clone() };
            return Node::above(child, size, shape);
        }
        _ => {}
    }
    Node::above(node, size, Shape::Loop { count, stride, child: node.clone() })
}

/// Collects pieces in typemap order and finds the simplest shape for them.
#[derive(Debug, Default)]
pub(super) struct Collector {
    offsets: Vec<i64>,
    nodes: Vec<Arc<Node>>,
    /// Lengths of runs, as long as there are only runs: a list of a million blocks then needs no
    /// node per block.
    lengths: Vec<u64>,
    mixed: bool,
    /// The last repeated child: blocks of equal length share one node.
    last: Option<(Arc<Node>, u64, i64, Arc<Node>)>,
}

impl Collector {
    /// Adds `count` copies of `layout`, `stride` bytes apart, the first one `at` bytes from the
    /// origin. The caller has checked that addresses and sizes fit.
    pub fn add(&mut self, at: i64, layout: &Layout, count: u64, stride: i64) -> Result {
        if count == 0 || layout.is_empty() {
            return Ok(());
        }
        let offset = at + layout.offset;
        let size = layout.node.size;
        if layout.node.is_run() && (count == 1 || stride >= 0 && stride as u64 == size) {
            self.push_run(offset, size * count);
            return Ok(());
        }
        self.mix();
        let node = match &self.last {
            Some((child, n, step, made))
                if Arc::ptr_eq(child, &layout.node) && *n == count && *step == stride =>
            {
                made.clone()
            }
            _ => {
                let made = repeat_node(&layout.node, count, stride)?;
                self.last = Some((layout.node.clone(), count, stride, made.clone()));
                made
            }
        };
        self.offsets.push(offset);
        self.nodes.push(node);
        Ok(())
    }

    fn push_run(&mut self, offset: i64, len: u64) {
        if self.mixed {
            if let (Some(node), Some(&at)) = (self.nodes.last_mut(), self.offsets.last())
                && node.is_run()
                && at.checked_add_unsigned(node.size) == Some(offset)
            {
                *node = Node::run(node.size + len);
                return;
            }
            self.nodes.push(Node::run(len));
        } else {
            if let (Some(last), Some(&at)) = (self.lengths.last_mut(), self.offsets.last())
                && at.checked_add_unsigned(*last) == Some(offset)
            {
                *last += len;
                return;
            }
            self.lengths.push(len);
        }
        self.offsets.push(offset);
    }

    fn mix(&mut self) {
        if !self.mixed {
            self.mixed = true;
            self.nodes = self.lengths.drain(..).map(Node::run).collect();
        }
    }

    /// The layout of everything added.
    pub fn finish(self) -> Result<Layout> {
        let Some(&first) = self.offsets.first() else { return Ok(Layout::empty()) };
        let offsets: Vec<i64> = self.offsets.iter().map(|at| at - first).collect();
        let node =
            if self.mixed { from_nodes(offsets, self.nodes)? } else { from_runs(offsets, self.lengths)? };
        Ok(Layout { offset: first, node })
    }
}

fn from_runs(offsets: Vec<i64>, lengths: Vec<u64>) -> Result<Arc<Node>> {
    let first = lengths[0];
    if lengths.iter().all(|&len| len == first) {
        return equal_blocks(offsets, Node::run(first));
    }
    let starts = starts_of(lengths.iter().copied());
    let size = starts[lengths.len()];
    let shape = Shape::Runs { offsets: offsets.into(), starts };
    Ok(Arc::new(Node { size, depth: 1, shape }))
}

fn from_nodes(offsets: Vec<i64>, nodes: Vec<Arc<Node>>) -> Result<Arc<Node>> {
    let first = &nodes[0];
    if nodes.iter().all(|node| Arc::ptr_eq(node, first)) {
        return equal_blocks(offsets, first.clone());
    }
    let starts = starts_of(nodes.iter().map(|node| node.size));
    let deepest = nodes.iter().max_by_key(|node| node.depth).expect("not empty").clone();
    let size = starts[nodes.len()];
    Node::above(&deepest, size, Shape::Sequence { offsets: offsets.into(), starts, children: nodes.into() })
}

/// The same child at every offset: a loop where the offsets are regular.
fn equal_blocks(offsets: Vec<i64>, child: Arc<Node>) -> Result<Arc<Node>> {
    let count = offsets.len() as u64;
    if count == 1 {
        return Ok(child);
    }
    let stride = offsets[1] - offsets[0];
    if offsets.windows(2).all(|pair| pair[1] - pair[0] == stride) {
        return repeat_node(&child, count, stride);
    }
    let size = child.size * count;
    Node::above(&child.clone(), size, Shape::Blocks { offsets: offsets.into(), child })
}

/// Positions in the packed stream, with the total at the end.
fn starts_of(sizes: impl Iterator<Item = u64>) -> Box<[u64]> {
    let mut at = 0;
    let mut starts = vec![0];
    for size in sizes {
        at += size;
        starts.push(at);
    }
    starts.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(pieces: &[(i64, u64)]) -> Layout {
        let mut collector = Collector::default();
        for &(at, len) in pieces {
            collector.add(at, &Layout::run(len), 1, 0).unwrap();
        }
        collector.finish().unwrap()
    }

    #[test]
    fn adjacent_runs_merge_and_regular_lists_become_loops() {
        assert_eq!(runs(&[(8, 4), (12, 4), (16, 8)]), Layout { offset: 8, node: Node::run(16) });
        let regular = runs(&[(0, 4), (16, 4), (32, 4)]);
        assert!(matches!(regular.node.shape, Shape::Loop { count: 3, stride: 16, .. }));
        let irregular = runs(&[(0, 4), (16, 4), (8, 4)]);
        assert!(matches!(irregular.node.shape, Shape::Blocks { .. }));
        assert!(matches!(runs(&[(0, 4), (16, 8)]).node.shape, Shape::Runs { .. }));
    }

    #[test]
    fn order_of_the_typemap_is_kept() {
        let backwards = runs(&[(4, 4), (0, 4)]);
        assert_eq!(backwards.offset, 4);
        assert!(matches!(backwards.node.shape, Shape::Loop { count: 2, stride: -4, .. }));
    }

    fn repeated(layout: &Layout, count: u64, stride: i64) -> Layout {
        let mut collector = Collector::default();
        collector.add(0, layout, count, stride).unwrap();
        collector.finish().unwrap()
    }

    #[test]
    fn loops_collapse_when_they_continue_each_other() {
        let row = repeated(&Layout::run(8), 4, 32);
        let block = repeated(&row, 3, 128);
        assert!(matches!(block.node.shape, Shape::Loop { count: 12, stride: 32, .. }));
        assert_eq!(block.node.depth, 2);
        assert!(repeated(&Layout::run(8), 4, 8).node.is_run());
    }

    #[test]
    fn nesting_that_cannot_merge_is_limited() {
        let mut layout = runs(&[(0, 1), (2, 3)]);
        for level in 2..=MAX_DEPTH + 1 {
            let mut collector = Collector::default();
            collector.add(0, &layout, 1, 0).unwrap();
            collector.add(10 * i64::from(level), &Layout::run(1), 1, 0).unwrap();
            layout = match collector.finish() {
                Ok(layout) => layout,
                Err(error) => {
                    assert_eq!((error.class, level), (Class::TYPE, MAX_DEPTH + 1));
                    return;
                }
            };
        }
        panic!("no limit met");
    }

    #[test]
    fn equal_counts_of_one_layout_at_different_strides_are_told_apart() {
        let gap = runs(&[(0, 1), (2, 3)]);
        let mut collector = Collector::default();
        collector.add(0, &gap, 2, 8).unwrap();
        collector.add(100, &gap, 2, 16).unwrap();
        let node = collector.finish().unwrap().node;
        let Shape::Sequence { children, .. } = &node.shape else { panic!("{node:?}") };
        let strides = children.iter().map(|child| match child.shape {
            Shape::Loop { stride, .. } => stride,
            _ => panic!("{child:?}"),
        });
        assert_eq!(strides.collect::<Vec<_>>(), [8, 16]);
    }
}
