//! In whose caches the buffers of applications lie: what a core reads that another one wrote must come to it, and what it
//! writes must leave all others.

use fabric::Span;

/// Data move together in blocks of so many bytes: what is copied in one piece consists of whole ones.
const BLOCK: usize = 1024;

/// A buffer, and for each of its blocks the cores that have it, as bits.
struct Known {
    span: Span,
    holders: Vec<u8>,
}

/// The buffers that are looked at. All other memory costs nothing to reach.
#[derive(Default)]
pub struct Caches(Vec<Known>);

impl Caches {
    /// Looks at this buffer from here on. It lies in no cache.
    pub fn know(&mut self, span: Span) {
        self.0.push(Known { span, holders: vec![0; span.len / BLOCK] });
    }

    /// Core `by` reads: how many bytes it did not have.
    pub fn read(&mut self, by: usize, span: Span) -> usize {
        self.touch(span, |holders| std::mem::replace(holders, *holders | 1 << by) & 1 << by == 0)
    }

    /// Core `by` writes: how many bytes it did not have for itself.
    pub fn write(&mut self, by: usize, span: Span) -> usize {
        self.touch(span, |holders| std::mem::replace(holders, 1 << by) != 1 << by)
    }

    fn touch(&mut self, span: Span, mut moves: impl FnMut(&mut u8) -> bool) -> usize {
        let is_of = |known: &&mut Known| known.span.includes(span.addr, span.len);
        let Some(Known { span: all, holders }) = self.0.iter_mut().find(is_of) else { return 0 };
        let at = span.addr - all.addr;
        assert!(at.is_multiple_of(BLOCK) && span.len.is_multiple_of(BLOCK), "{span:?} of {all:?}");
        let blocks = &mut holders[at / BLOCK..(at + span.len) / BLOCK];
        BLOCK * blocks.iter_mut().map(|block| usize::from(moves(block))).sum::<usize>()
    }
}
