//! What the pipelines are tuned by.
//!
//! The defaults hold where nothing has been measured; [`Tuning::of`] derives the figures from
//! facts about machine and network by the formulas of the papers.

use wire::long::RAILS;

/// Payload and flag of a sub-block: a page, and a multiple of every MTU (superpipeline paper,
/// section 4).
pub const SUB_BLOCK_BYTES: usize = 4096;
/// Copied pipelines: chunk `i` leaves once chunk `i - 2` is acknowledged.
pub const WINDOW: u32 = 2;
/// Smallest piece of a message that both sides copy: below it the system call dominates. A message that is not longer is copied by
/// the receiver alone, as soon as it is matched: sharing the work would cost more than the work.
pub const PIECE_MIN: usize = 32 * 1024;
/// Envelopes for which each side keeps account of RTRs; those not used for longest are forgotten.
pub const ENVELOPES_MAX: usize = 4096;

/// Sizes, depths and counts of the pipelines.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuning {
    /// Pipeline: bytes that travel with the RTS, at most what a frame holds. 12 KiB, the eager
    /// limit of the paper's platform.
    pub head_bytes: usize,
    /// Pipeline: up to here the message goes by frames, which covers the registration of the first
    /// block on both sides. 64 KiB: what is copied while 2 GB/s register a block twice.
    pub rdma_offset_bytes: usize,
    /// Pipeline: bytes registered at a time. 256 KiB: on the platforms of the papers (68 µs and a
    /// byte in 50 ps; 2 GB/s) the wire then takes as long as the registration, or longer.
    pub block_bytes: usize,
    /// Pipeline: blocks registered at a time: one on the wire, one being registered at the sender,
    /// one at the receiver, one whose FIN is under way.
    pub depth: usize,
    /// Pipeline: what share of the blocks each adapter carries, by its bandwidth; the unit is
    /// arbitrary.
    pub rails: [u32; RAILS],
    /// Superpipeline: length of the first chunk, `C0 = Bcopy·2λ`. 12 KiB: «almost as good as
    /// optimal» on all platforms of the paper.
    pub first_chunk_bytes: usize,
    /// Superpipeline: by how much chunks grow, `q = Bcopy/Bnet`. 1.5: as above.
    pub growth: f64,
    /// Copy pipeline: bytes copied in the gap between two writes, `g·Bcopy`. 1.5 KiB: 0.3 µs at
    /// 5.25 GB/s.
    pub gap_copy_bytes: f64,
    /// Copy pipeline: the chunk, whatever the length; `None` takes the optimal one. A chunk as long
    /// as the message is the naive copy that the paper compares with.
    pub fixed_chunk_bytes: Option<usize>,
    /// A staging buffer, which bounds the chunk. 128 KiB: of the wire of 2 GB/s a gap of 0.3 µs then
    /// takes half a per cent.
    pub staging_bytes: usize,
    /// Messages staged at a time, for each of the three uses of staging memory.
    pub staged_messages: usize,
    /// Speculative rendezvous: envelopes of which each side keeps account.
    pub envelopes: usize,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            head_bytes: 12 * 1024,
            rdma_offset_bytes: 64 * 1024,
            block_bytes: 256 * 1024,
            depth: 4,
            rails: [1; RAILS],
            first_chunk_bytes: 12 * 1024,
            growth: 1.5,
            gap_copy_bytes: 1536.0,
            fixed_chunk_bytes: None,
            staging_bytes: 128 * 1024,
            staged_messages: 4,
            envelopes: ENVELOPES_MAX,
        }
    }
}

/// What is known about a machine and its network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    /// Bcopy: bytes copied in a microsecond, out of cache.
    pub copy_bytes_per_us: f64,
    /// Bnet: bytes a microsecond of one adapter.
    pub net_bytes_per_us: f64,
    /// λ: latency of a write, in nanoseconds.
    pub latency_ns: f64,
    /// g: gap between two writes, in nanoseconds.
    pub gap_ns: f64,
    /// λreg: time of a registration, whatever its length, in nanoseconds.
    pub register_ns: f64,
    /// Breg: bytes registered in a microsecond.
    pub register_bytes_per_us: f64,
}

impl Tuning {
    /// What follows from figures about machine and network.
    ///
    /// A block takes the wire as long as it takes to register it and to give it back, which is
    /// assumed to cost as much, so that `B/Bnet = 2·(λreg + B/Breg)`; up to the RDMA offset goes
    /// what frames move while the first block is registered on both sides. Where registration is too
    /// slow for that at any length blocks are as long as the limit.
    pub fn of(figures: &Figures) -> Tuning {
        let Figures { copy_bytes_per_us: copy, net_bytes_per_us: net, .. } = *figures;
        let per_byte = 1.0 / net - 2.0 / figures.register_bytes_per_us;
        let block = if per_byte > 0.0 { figures.register_ns / 500.0 / per_byte } else { f64::MAX };
        let block = pages(block).clamp(64 * 1024, 1024 * 1024);
        let register_us = figures.register_ns / 1000.0 + block as f64 / figures.register_bytes_per_us;
        Tuning {
            rdma_offset_bytes: pages(2.0 * register_us * net.min(copy / 2.0)),
            block_bytes: block,
            first_chunk_bytes: pages(copy * 2.0 * figures.latency_ns / 1000.0),
            growth: (copy / net).max(1.0),
            gap_copy_bytes: figures.gap_ns / 1000.0 * copy,
            ..Tuning::default()
        }
    }
}

/// The nearest number of whole pages, at least one. It is rounded within bounds: what no integer can hold would be an invalid operation, and an
/// application may have the processor trap those.
fn pages(bytes: f64) -> usize {
    let pages = (bytes / SUB_BLOCK_BYTES as f64).clamp(1.0, 1e9).round();
    pages as usize * SUB_BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the superpipeline paper's cluster: «from 8KB to 16KB for C0».
    #[test]
    fn graphene() {
        let figures = Figures {
            copy_bytes_per_us: 5250.0,
            net_bytes_per_us: 1980.0,
            latency_ns: 1500.0,
            gap_ns: 300.0,
            register_ns: 68_000.0,
            register_bytes_per_us: 20_000.0,
        };
        let tuning = Tuning::of(&figures);
        assert_eq!(tuning.first_chunk_bytes, 16 * 1024);
        assert!((tuning.growth - 2.65).abs() < 0.01);
        assert_eq!(tuning.block_bytes / 4096, 82);
        assert_eq!(tuning.rdma_offset_bytes / 4096, 82);
    }

    /// Where registration is slower than the wire (`lioncub`) blocks stay bounded.
    #[test]
    fn slow_registration() {
        let figures = Figures {
            copy_bytes_per_us: 2000.0,
            net_bytes_per_us: 1500.0,
            latency_ns: 4000.0,
            gap_ns: 300.0,
            register_ns: 1000.0,
            register_bytes_per_us: 2000.0,
        };
        assert_eq!(Tuning::of(&figures).block_bytes, 1024 * 1024);
        assert_eq!(Tuning::of(&Figures { register_ns: 0.0, ..figures }).block_bytes, 1024 * 1024);
    }
}
