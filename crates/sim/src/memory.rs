//! Memory for a rank: whole pages, zeroed, given back when the rank ends.

use fabric::Span;
use memmap2::MmapMut;

/// Blocks from this length on are mapped, so that pages nobody touches cost nothing: an allocator that uses
/// freed memory again has to write the zeros.
const MAPPED_BYTES: usize = 32 << 10;

/// Blocks of memory.
#[derive(Default)]
pub struct Memory {
    small: Vec<Box<[u64]>>,
    mapped: Vec<MmapMut>,
}

impl Memory {
    /// A new block. It begins at a page, so that where it lies in this process changes nothing.
    pub fn allocate(&mut self, len: usize, page_bytes: usize) -> Span {
        let page = page_bytes.max(8);
        let room = len.next_multiple_of(page) + page;
        let start = if room < MAPPED_BYTES {
            let mut words = vec![0u64; room / 8].into_boxed_slice();
            let addr = words.as_mut_ptr() as usize;
            self.small.push(words);
            addr
        } else {
            let mut block =
                MmapMut::map_anon(room).unwrap_or_else(|error| panic!("{room} bytes of memory: {error}"));
            let addr = block.as_mut_ptr() as usize;
            self.mapped.push(block);
            addr
        };
        Span { addr: start.next_multiple_of(page), len }
    }
}
