//! Memory of the ranks of a job: whole pages, zeroed, given back when the job ends.
//!
//! Blocks of all ranks lie one behind the other in large mappings. A page that nobody touches costs nothing,
//! neither memory nor the writing of zeros, and thousands of ranks share their page tables.

use fabric::Span;
use memmap2::MmapMut;

/// What is mapped at a time, at least.
const CHUNK_BYTES: usize = 256 << 20;

/// Where a program's buffers from this length on lie within [`RANGE_BYTES`] is the same in every run, and differs
/// from buffer to buffer: registrations may be aligned to so much.
const LARGE_BYTES: usize = 32 << 10;
/// See [`LARGE_BYTES`].
const RANGE_BYTES: usize = 2 << 20;
/// By how many pages two large buffers differ.
const STEP_PAGES: usize = 37;

/// The memory of a job.
#[derive(Default)]
pub struct Arena {
    chunks: Vec<MmapMut>,
    next: usize,
    end: usize,
}

impl Arena {
    /// Whether it holds an address: others are of this process, and where they lie means nothing.
    pub fn holds(&self, addr: usize) -> bool {
        self.chunks
            .iter()
            .any(|chunk| (chunk.as_ptr() as usize..chunk.as_ptr() as usize + chunk.len()).contains(&addr))
    }

    /// A new block. It begins at a page, so that where it lies in this process changes nothing, and not where
    /// another ends, so that a copy is never taken for the rest of one to another block.
    pub fn allocate(&mut self, len: usize, page_bytes: usize) -> Span {
        let page = page_bytes.max(8);
        self.place(len, page, |free| free.next_multiple_of(page) + page)
    }

    /// A new buffer for a program that has got `large` large ones before, which this one adds to.
    pub fn buffer(&mut self, len: usize, page_bytes: usize, large: &mut usize) -> Span {
        let page = page_bytes.max(8);
        if len.next_multiple_of(page) + page < LARGE_BYTES {
            return self.allocate(len, page_bytes);
        }
        let offset = (*large * STEP_PAGES * page) % RANGE_BYTES;
        *large += 1;
        let range = RANGE_BYTES.max(page);
        self.place(len, range, |free| (free + page).saturating_sub(offset).next_multiple_of(range) + offset)
    }

    /// Puts a block where `begin` says, given where the free memory begins. A mapping begins at a multiple of
    /// `align`, so that the place within is the same in every run.
    fn place(&mut self, len: usize, align: usize, begin: impl Fn(usize) -> usize) -> Span {
        let mut addr = begin(self.next);
        if self.chunks.is_empty() || addr + len > self.end {
            let room = CHUNK_BYTES.max(len + 2 * align) + RANGE_BYTES.max(align);
            let mut chunk =
                MmapMut::map_anon(room).unwrap_or_else(|error| panic!("{room} bytes of memory: {error}"));
            self.end = chunk.as_mut_ptr() as usize + room;
            self.chunks.push(chunk);
            addr = begin((self.end - room).next_multiple_of(RANGE_BYTES.max(align)));
        }
        self.next = addr + len;
        Span { addr, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_its_blocks_and_nothing_else() {
        let mut arena = Arena::default();
        let blocks = [arena.allocate(8, 4096), arena.allocate(300 << 20, 4096)];
        assert!(
            blocks.iter().all(|block| arena.holds(block.addr) && arena.holds(block.addr + block.len - 1))
        );
        assert!(!arena.holds(&raw const arena as usize) && !arena.holds(vec![1u8].as_ptr() as usize));
    }

    #[test]
    fn blocks_begin_at_pages_and_keep_a_distance() {
        let mut arena = Arena::default();
        let mut end = 0;
        for len in [0, 1, 4096, 5000, 100_000, 300 << 20, 8, 1 << 20] {
            let Span { addr, len } = arena.allocate(len, 4096);
            assert!(addr.is_multiple_of(4096));
            assert!(addr > end || addr + len < end, "{addr:x} behind {end:x}");
            mpi::mem::write(addr + len.saturating_sub(1), &[1][..len.min(1)]);
            end = addr + len;
        }
    }

    #[test]
    fn large_buffers_lie_at_known_places_of_a_range() {
        let (mut arena, mut large) = (Arena::default(), 0);
        for expected in 0..200 {
            arena.allocate(expected * 300, 4096);
            let span = arena.buffer(40_000, 4096, &mut large);
            assert_eq!(span.addr % RANGE_BYTES, expected * STEP_PAGES * 4096 % RANGE_BYTES);
            arena.buffer(1000, 4096, &mut large);
        }
        assert_eq!(large, 200);
    }
}
