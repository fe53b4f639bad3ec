//! A table with an entry per rank that costs nothing for ranks never spoken to.
//!
//! Small jobs have an array; in large ones a rank speaks to few others, and thousands of ranks may
//! share one process (the simulator).

use fabric::Rank;
use fabric::spread::SpreadMap;
use std::ops::{Index, IndexMut};

/// Up to this many ranks the table is an array.
const DENSE_MAX: usize = 256;

/// Entries by rank; one that was never changed is the default.
#[derive(Debug)]
pub(crate) enum Sparse<T> {
    Dense(Vec<T>),
    Map(Entries<T>, Box<T>),
}

type Entries<T> = SpreadMap<Rank, Box<T>>;

impl<T: Default> Sparse<T> {
    pub fn new(n: usize) -> Sparse<T> {
        if n <= DENSE_MAX {
            Sparse::Dense((0..n).map(|_| T::default()).collect())
        } else {
            Sparse::Map(SpreadMap::default(), Box::default())
        }
    }

    /// Makes room for `n` ranks.
    pub fn grow(&mut self, n: usize) {
        if let Sparse::Dense(all) = self {
            all.resize_with(n.max(all.len()), T::default);
        }
    }

    /// The entries that were changed, in no order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = (Rank, &T)> + '_> {
        match self {
            Sparse::Dense(all) => Box::new(all.iter().enumerate()),
            Sparse::Map(map, _) => Box::new(map.iter().map(|(rank, entry)| (*rank, &**entry))),
        }
    }
}

impl<T: Default> Index<Rank> for Sparse<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, rank: Rank) -> &T {
        match self {
            Sparse::Dense(all) => &all[rank],
            Sparse::Map(map, default) => known(map, rank).unwrap_or(default),
        }
    }
}

impl<T: Default> IndexMut<Rank> for Sparse<T> {
    #[inline(always)]
    fn index_mut(&mut self, rank: Rank) -> &mut T {
        match self {
            Sparse::Dense(all) => &mut all[rank],
            Sparse::Map(map, _) => entry(map, rank),
        }
    }
}

// Out of line, for the array is on the path of every message.

#[inline(never)]
fn known<T>(map: &Entries<T>, rank: Rank) -> Option<&T> {
    map.get(&rank).map(|entry| &**entry)
}

#[inline(never)]
fn entry<T: Default>(map: &mut Entries<T>, rank: Rank) -> &mut T {
    map.entry(rank).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_what_was_stored_and_default_elsewhere() {
        for n in [4, DENSE_MAX, DENSE_MAX + 1, 100_000] {
            let mut table: Sparse<u32> = Sparse::new(n);
            table[3] = 7;
            table[n - 1] += 2;
            assert_eq!(
                (table[0], table[3], table[n - 1]),
                (0, if n == 4 { 9 } else { 7 }, if n == 4 { 9 } else { 2 })
            );
            assert_eq!(table.iter().filter(|(_, value)| **value != 0).count(), if n == 4 { 1 } else { 2 });
            table.grow(2 * n);
            table[2 * n - 1] = 5;
            assert_eq!((table[3], table[2 * n - 1], table[n]), (if n == 4 { 9 } else { 7 }, 5, 0));
        }
    }
}
