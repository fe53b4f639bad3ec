//! Memory for a rank: whole pages, zeroed, given back when the rank ends.

use fabric::Span;

/// Blocks of memory.
#[derive(Default)]
pub struct Memory(Vec<Box<[u64]>>);

impl Memory {
    /// A new block. It begins at a page, so that where it lies in this process changes nothing.
    pub fn allocate(&mut self, len: usize, page_bytes: usize) -> Span {
        let page = page_bytes.max(8);
        let mut words = vec![0u64; (len.next_multiple_of(page) + page) / 8].into_boxed_slice();
        let addr = (words.as_mut_ptr() as usize).next_multiple_of(page);
        self.0.push(words);
        Span { addr, len }
    }
}
