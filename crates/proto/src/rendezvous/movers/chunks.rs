//! How a message that is copied through staging memory is cut: into chunks, one write each, and
//! these into blocks, each of which ends with a flag.
//!
//! ```text
//! staging  │ payload … flag │ payload … flag │ rest, padded to 8, flag │
//!          └─── block ──────┴─── block ──────┴─────────────────────────┘ chunk: one RDMA write
//! ```
//! Both sides work out the same cuts from the plan, which travels with the RTS.

use crate::choice::tuning::{SUB_BLOCK_BYTES, Tuning, WINDOW};
use crate::memory::staging::BUFFERS;
use wire::long::RAILS;

/// A flag is a word: it lands whole.
pub const FLAG: usize = 8;
/// Growth is told in parts of this.
const UNIT: u64 = 256;

/// How messages are cut. All lengths are of staging memory, flags included, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    first: u32,
    /// From chunk to chunk, in 256ths.
    growth: u16,
    /// Buffers the chunks are folded into.
    buffers: u16,
    block: u32,
    /// Longest chunk.
    limit: u32,
}

impl Plan {
    /// Chunks that grow up to the length of a buffer, in blocks of a page.
    pub fn growing(first_bytes: usize, growth: f64, tuning: &Tuning) -> Plan {
        let block = SUB_BLOCK_BYTES;
        let limit = (tuning.staging_bytes / block * block).max(block);
        Plan {
            first: first_bytes.clamp(block, limit) as u32,
            growth: (growth * UNIT as f64).round().clamp(UNIT as f64, u16::MAX as f64) as u16,
            buffers: BUFFERS as u16,
            block: block as u32,
            limit: limit as u32,
        }
    }

    /// Chunks of the same payload, a block each, in two buffers.
    pub fn even(chunk_bytes: usize, tuning: &Tuning) -> Plan {
        let longest = tuning.staging_bytes / FLAG * FLAG;
        let chunk = (chunk_bytes.next_multiple_of(FLAG) + FLAG).clamp(2 * FLAG, longest.max(2 * FLAG)) as u32;
        Plan { first: chunk, growth: UNIT as u16, buffers: 2, block: chunk, limit: chunk }
    }

    /// As the RTS carries it, in place of keys.
    pub fn encode(self) -> [u32; RAILS] {
        [self.first, self.growth as u32 | (self.buffers as u32) << 16, self.block, self.limit]
    }

    /// Reads numbers of any content; `None` if no message can be cut that way, or not into buffers
    /// of a slab of `room` bytes.
    pub fn decode(words: [u32; RAILS], room: usize) -> Option<Plan> {
        let [first, both, block, limit] = words;
        let plan = Plan { first, growth: both as u16, buffers: (both >> 16) as u16, block, limit };
        let is_sound = block as usize >= 2 * FLAG
            && (block as usize).is_multiple_of(FLAG)
            && (block..=limit).contains(&first)
            && (limit as usize).is_multiple_of(FLAG)
            && plan.growth as u64 >= UNIT
            && (WINDOW as usize..=BUFFERS).contains(&(plan.buffers as usize))
            && plan.slab_len() <= room;
        is_sound.then_some(plan)
    }

    /// Whether the chunks of so many bytes can be numbered.
    pub fn numbers(&self, len: u64) -> bool {
        len / (self.block as u64 - FLAG as u64) < u32::MAX as u64
    }

    /// The chunks of a message of `len` bytes.
    pub fn chunks(self, len: u64) -> Chunks {
        Chunks { plan: self, len, nominal: self.first as u64, next: 0, offset: 0 }
    }

    /// Where in its slab a chunk lies.
    pub fn buffer(&self, chunk: &Chunk) -> usize {
        (chunk.index as usize % self.buffers as usize) * self.limit as usize
    }

    /// Bytes of all buffers.
    pub fn slab_len(&self) -> usize {
        self.limit as usize * self.buffers as usize
    }

    /// Number of buffers.
    pub fn buffers(&self) -> usize {
        self.buffers as usize
    }

    /// The blocks of a chunk from the one with this number on.
    pub fn blocks(&self, chunk: &Chunk, from: usize) -> impl Iterator<Item = Block> + use<> {
        let (stride, len) = (self.block as usize, chunk.len);
        let payload = stride - FLAG;
        (from..len.div_ceil(payload)).map(move |k| {
            let len = payload.min(len - k * payload);
            Block { offset: k * payload, len, at: k * stride, flag: k * stride + len.next_multiple_of(FLAG) }
        })
    }

    /// Bytes that the write of a chunk moves.
    pub fn staged_len(&self, chunk: &Chunk) -> usize {
        let last = chunk.len.div_ceil(self.block as usize - FLAG) - 1;
        self.blocks(chunk, last).next().map_or(0, |block| block.flag + FLAG)
    }
}

/// A part of the message that goes with one write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    pub index: u32,
    /// Where in the message it begins.
    pub offset: u64,
    /// Bytes of the message.
    pub len: usize,
}

/// A part of a chunk that the receiver can take as soon as its flag is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Where in the chunk's payload it begins.
    pub offset: usize,
    /// Bytes of payload.
    pub len: usize,
    /// Where in the buffer its payload lies.
    pub at: usize,
    /// Where in the buffer its flag lies.
    pub flag: usize,
}

/// The chunks of a message, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    plan: Plan,
    len: u64,
    /// What the next chunk would take if lengths were not cut to blocks, in bytes.
    nominal: u64,
    next: u32,
    offset: u64,
}

impl Iterator for Chunks {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        if self.offset >= self.len {
            return None;
        }
        let block = self.plan.block as u64;
        let blocks = self.nominal.min(self.plan.limit as u64) / block;
        let len = (blocks * (block - FLAG as u64)).min(self.len - self.offset);
        let chunk = Chunk { index: self.next, offset: self.offset, len: len as usize };
        self.nominal = (self.nominal * self.plan.growth as u64 / UNIT).min(self.plan.limit as u64);
        self.next += 1;
        self.offset += len;
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// «Hardwired C0=12KB and q = 1.5».
    fn hardwired() -> Plan {
        Plan::growing(12 * 1024, 1.5, &Tuning::default())
    }

    #[test]
    fn chunks_grow_up_to_the_buffer() {
        let blocks: Vec<_> = hardwired().chunks(1 << 20).map(|c| c.len.div_ceil(4088)).collect();
        assert_eq!(blocks, [3, 4, 6, 10, 15, 22, 32, 32, 32, 32, 32, 32, 5]);
    }

    /// Whatever the plan and the length: chunks cover the message, blocks cover the chunk, and
    /// nothing overlaps inside the buffer.
    #[test]
    fn everything_is_covered_once() {
        let small = Tuning { staging_bytes: 8192, ..Tuning::default() };
        let plans =
            [hardwired(), Plan::growing(1, 9.0, &small), Plan::even(1, &small), Plan::even(5000, &small)];
        for (plan, len) in
            plans.iter().flat_map(|plan| [1u64, 7, 8, 4087, 4089, 12_264, 100_001].map(|l| (plan, l)))
        {
            let mut end = 0;
            for chunk in plan.chunks(len) {
                assert_eq!(chunk.offset, end);
                end += chunk.len as u64;
                let (mut payload, mut staged) = (0, 0);
                for block in plan.blocks(&chunk, 0) {
                    assert_eq!((block.offset, block.at), (payload, staged));
                    assert!(block.flag >= block.at + block.len && block.flag.is_multiple_of(FLAG));
                    (payload, staged) = (payload + block.len, block.flag + FLAG);
                }
                assert_eq!((payload, staged), (chunk.len, plan.staged_len(&chunk)));
                assert!(staged <= plan.limit as usize);
            }
            assert_eq!(end, len);
        }
    }

    #[test]
    fn a_plan_travels_and_nonsense_is_refused() {
        let plan = hardwired();
        assert_eq!(Plan::decode(plan.encode(), 3 * 128 * 1024), Some(plan));
        assert_eq!(Plan::decode(plan.encode(), 3 * 128 * 1024 - 1), None);
        let [first, both, block, limit] = plan.encode();
        for words in [
            [0; 4],
            [u32::MAX; 4],
            [block - 8, both, block, limit],
            [first, both - 200, block, limit],
            [first, both, block + 1, limit],
            [first, both & 0xffff, block, limit],
            [limit + 8, both, block, limit],
        ] {
            assert_eq!(Plan::decode(words, 1 << 30), None, "{words:?}");
        }
    }
}
