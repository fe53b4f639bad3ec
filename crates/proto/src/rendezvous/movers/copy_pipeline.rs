//! Plain copy pipeline, to compare with.
//!
//! Chunks of one length, copied into one of two buffers while the other one travels. It wins over
//! one long copy by the overlap, and loses to the superpipeline by its gaps: they are
//! `O(√L)`, and the copies of the first chunk at the sender and of the last one at the receiver are
//! not hidden (superpipeline paper, section 3):
//!
//! ```text
//! T(L, C) = 2·C/Bcopy + L/C·g + λ + L/Bnet                (1)
//! Copt(L) = √(L·g·Bcopy/2)                                (3)
//! ```
//! Messages shorter than that are one chunk. The states are those of the superpipeline; a chunk is
//! a single block with one flag, the first chunk is not copied ahead, and there are two buffers, so
//! that chunk `i` is copied once chunk `i - 2` has left.
//!
//! With [`Tuning::fixed_chunk_bytes`] as long as the message it is the naive copy of the paper's
//! figure 2, as far as a staging buffer goes.

use super::chunks::Plan;
use crate::choice::tuning::Tuning;

/// How a message of `len` bytes is cut.
pub(crate) fn plan(len: u64, tuning: &Tuning) -> Plan {
    let optimal = (len as f64 * tuning.gap_copy_bytes / 2.0).sqrt() as usize;
    Plan::even(tuning.fixed_chunk_bytes.unwrap_or(optimal).min(len as usize), tuning)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Equation (3) with g = 0.3 µs and Bcopy = 5.12 GB/s; the number of chunks grows with √L.
    #[test]
    fn the_optimal_chunk() {
        let tuning = Tuning { staging_bytes: 1 << 20, ..Tuning::default() };
        let chunks = |len: u64| plan(len, &tuning).chunks(len).map(|c| c.len).collect::<Vec<_>>();
        assert_eq!(chunks(1 << 20)[0], 28_384);
        assert_eq!(chunks(1 << 20).len(), 37);
        assert_eq!(chunks(4 << 20).len(), 74);
        let naive = Tuning { fixed_chunk_bytes: Some(usize::MAX), ..tuning };
        assert_eq!(plan(100_000, &naive).chunks(100_000).count(), 1);
    }
}
