//! Which bytes have come, where nothing says that all have: a record of ranges, joined where they touch.

/// Most ranges of a record.
pub const RANGES_MAX: usize = 64;

/// Ranges of bytes in order, none of which touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Takes a range in, from its first byte up to the one behind its last. Where the record is full it forgets its shortest
    /// range, which is then as if it had not come; false if it had to.
    pub fn insert(&mut self, begin: u64, end: u64) -> bool {
        if begin >= end {
            return true;
        }
        let first = self.0.partition_point(|range| range.1 < begin);
        let behind = self.0.partition_point(|range| range.0 <= end);
        let joined =
            self.0[first..behind].iter().fold((begin, end), |(b, e), range| (b.min(range.0), e.max(range.1)));
        self.0.splice(first..behind, [joined]);
        if self.0.len() <= RANGES_MAX {
            return true;
        }
        let shortest =
            (0..self.0.len()).min_by_key(|at| self.0[*at].1 - self.0[*at].0).expect("there are some");
        self.0.remove(shortest);
        false
    }

    /// Whether all of these bytes have come.
    pub fn has(&self, begin: u64, end: u64) -> bool {
        begin >= end || self.0.iter().any(|range| range.0 <= begin && end <= range.1)
    }

    /// Whether any of these bytes has come.
    pub fn touches(&self, begin: u64, end: u64) -> bool {
        begin < end && self.0.iter().any(|range| range.0 < end && begin < range.1)
    }

    /// The ranges, each from its first byte up to the one behind its last.
    pub fn all(&self) -> &[(u64, u64)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a bit for each byte.
        #[test]
        fn as_a_bit_per_byte(inserts in prop::collection::vec((0u64..100, 0u64..12), 0..40), from in 0u64..100, len in 0u64..10) {
            let (mut ranges, mut bits) = (Ranges::default(), [false; 128]);
            for (begin, len) in inserts {
                prop_assert!(ranges.insert(begin, begin + len));
                bits[begin as usize..(begin + len) as usize].fill(true);
            }
            let end = from + len;
            let wanted = &bits[from as usize..end as usize];
            prop_assert_eq!(ranges.has(from, end), wanted.iter().all(|bit| *bit));
            prop_assert_eq!(ranges.touches(from, end), wanted.iter().any(|bit| *bit));
            prop_assert!(ranges.all().windows(2).all(|two| two[0].1 < two[1].0));
        }
    }

    #[test]
    fn a_full_record_forgets_its_shortest() {
        let mut ranges = Ranges::default();
        let max = RANGES_MAX as u64;
        assert!((0..max).all(|at| ranges.insert(10 * at, 10 * at + 5)));
        assert!(!ranges.insert(10 * max, 10 * max + 2));
        assert!(!ranges.has(10 * max, 10 * max + 1) && ranges.has(0, 5));
        assert!(ranges.insert(5, 10), "what joins needs no room");
        assert_eq!(ranges.all().len(), RANGES_MAX - 1);
    }
}
