//! Hashes of keys that are a few numbers of this process: ranks, addresses, lengths. Nobody chooses them to do harm, and a look
//! into a table on the path of a message costs a few instructions instead of some hundred.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table with such keys.
pub type SpreadMap<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Multiplies by the golden ratio.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    type Key = (usize, u64, u32);

    /// A table takes its place from the lowest bits, and tells entries of a place apart by the seven highest.
    #[test]
    fn neighbours_and_multiples_of_pages_lie_apart() {
        let kinds: [fn(usize) -> Key; 4] =
            [|at| (at, 8, 17), |at| (4096 * at, 8, 17), |at| (1, 4 * at as u64, 17), |at| (1, 8, at as u32)];
        for kind in kinds {
            let hashes = (0..256).map(|at| BuildHasherDefault::<Spread>::default().hash_one(kind(at)));
            let (places, tops): (BTreeSet<u64>, BTreeSet<u64>) =
                hashes.map(|hash| (hash % 1024, hash >> 57)).unzip();
            // What falls as it will takes 227 of 1,024 places, and 111 of 128.
            assert!(places.len() > 180 && tops.len() > 80, "{} and {}", places.len(), tops.len());
        }
    }
}
