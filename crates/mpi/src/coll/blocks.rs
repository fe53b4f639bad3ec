//! One block of data per rank, in the three forms the standard has.
use super::build::Builder;
use super::schedule::{Base, Buf};
use crate::error::{Class, Result, fail};

/// Numbers from C: `int` or 64 bits wide.
#[derive(Clone, Copy, Debug)]
pub enum Ints<'a> {
    /// `int`
    Small(&'a [i32]),
    /// `MPI_Count` or `MPI_Aint`
    Large(&'a [i64]),
}

impl Ints<'_> {
    /// Number `i`.
    pub fn at(&self, i: usize) -> i64 {
        match self {
            Ints::Small(v) => i64::from(v[i]),
            Ints::Large(v) => v[i],
        }
    }

    /// How many numbers.
    pub fn len(&self) -> usize {
        match self {
            Ints::Small(v) => v.len(),
            Ints::Large(v) => v.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).map(|i| self.at(i))
    }
}

/// Lengths of lists of words that lie one behind the other, as each rank has told its own, and where each begins. Fails where they fit no memory.
pub fn laid_out(lens: impl Iterator<Item = u64>) -> Result<(Vec<i64>, Vec<i64>)> {
    const MOST: i64 = isize::MAX as i64 / size_of::<u64>() as i64;
    let (mut counts, mut displs, mut end) = (Vec::new(), Vec::new(), 0i64);
    for (rank, len) in lens.enumerate() {
        let count = i64::try_from(len).ok().filter(|len| *len <= MOST - end);
        let Some(count) = count else {
            return fail(Class::INTERN, format!("rank {rank} has told that it sends a list of {len} words"));
        };
        counts.push(count);
        displs.push(end);
        end += count;
    }
    Ok((counts, displs))
}

/// Where each rank's block lies.
#[derive(Clone, Copy, Debug)]
pub enum Blocks<'a> {
    /// One after the other, `each` elements per rank.
    Even {
        /// All of them.
        all: Buf,
        /// Elements per rank.
        each: u64,
    },
    /// Counts and displacements in elements.
    Varied {
        /// The buffer.
        base: Base,
        /// The type of all elements.
        ty: u32,
        /// Elements per rank.
        counts: Ints<'a>,
        /// Where each block begins, in extents of the type.
        displs: Ints<'a>,
    },
    /// Counts, displacements in bytes, and a type per rank.
    Mixed {
        /// The buffer.
        base: Base,
        /// The type of each rank's block, as indices into the program.
        types: &'a [u32],
        /// Elements per rank.
        counts: Ints<'a>,
        /// Where each block begins, in bytes.
        displs: Ints<'a>,
    },
}

impl Blocks<'_> {
    /// The block of a rank.
    pub fn get(&self, b: &Builder, rank: usize) -> Buf {
        match *self {
            Blocks::Even { all, each } => b.part(all, rank as u64 * each, each),
            Blocks::Varied { base, ty, counts, displs } => {
                let start = Buf { offset: 0, count: 0, ty, base };
                let start = b.part_signed(start, displs.at(rank));
                Buf { count: counts.at(rank) as u64, ..start }
            }
            Blocks::Mixed { base, types, counts, displs } => {
                Buf { offset: displs.at(rank), count: counts.at(rank) as u64, ty: types[rank], base }
            }
        }
    }

    /// The blocks of ranks `from..to` in as few runs as possible.
    pub fn runs(&self, b: &Builder, from: usize, to: usize, mut each: impl FnMut(Buf)) {
        match *self {
            Blocks::Even { all, each: n } => each(b.part(all, from as u64 * n, (to - from) as u64 * n)),
            _ => (from..to).for_each(|rank| each(self.get(b, rank))),
        }
    }
}
