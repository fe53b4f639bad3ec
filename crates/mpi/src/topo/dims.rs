//! `MPI_Dims_create` (MPI 5.0 section 8.5.2): as balanced as can be.
//!
//! That leaves the machine no say: the standard wants the dimensions as close to each other as possible, and up to 1,024
//! processes in three dimensions all numbers but one (360) have a single closest form. Of several it is the one in which processes have
//! the least to tell their neighbours. What fits the machine is who carries
//! which place of the grid: `MPI_Cart_create` with `reorder` (`reorder.rs`).

use crate::error::{Class, Result, fail};

/// `MPI_Dims_create`: fills the zeros of `dims` so that the product is `nnodes`, the new values
/// as close to each other as possible (the least difference between the largest and the smallest,
/// then the least surface of a cube that is cut so) and in falling order.
pub fn dims_create(nnodes: i32, dims: &mut [i32]) -> Result {
    if nnodes <= 0 {
        return fail(Class::ARG, format!("argument `nnodes` is {nnodes}, must be positive"));
    }
    if let Some((i, dim)) = dims.iter().enumerate().find(|(_, dim)| **dim < 0) {
        return fail(Class::DIMS, format!("argument `dims`[{i}] is {dim}, must not be negative"));
    }
    let fixed =
        dims.iter().filter(|dim| **dim > 0).try_fold(1i64, |product, dim| product.checked_mul((*dim).into()));
    let free = dims.iter().filter(|dim| **dim == 0).count();
    let fits = fixed
        .is_some_and(|fixed| if free == 0 { fixed == nnodes.into() } else { i64::from(nnodes) % fixed == 0 });
    let Some(fixed) = fixed.filter(|_| fits) else {
        return fail(
            Class::DIMS,
            format!("{nnodes} processes cannot be arranged as argument `dims` demands"),
        );
    };
    let factors = closest(nnodes as u32 / fixed as u32, free);
    let zeros = dims.iter_mut().filter(|dim| **dim == 0);
    zeros.zip(factors).for_each(|(dim, factor)| *dim = factor as i32);
    Ok(())
}

/// `n` as a product of `count` factors in falling order, with the least spread, and of such the least surface.
fn closest(n: u32, count: usize) -> Vec<u32> {
    let divisors = divisors(n);
    let primes = primes(&divisors);
    let mut search =
        Search { n, primes, divisors, taken: Vec::new(), best: Vec::new(), least: (u32::MAX, 0) };
    if count > 0 {
        search.extend(n, count);
    }
    search.best
}

/// Goes through falling sequences of factors in the order of the alphabet; what cannot have as little spread as the best is not
/// looked at.
struct Search {
    n: u32,
    /// Those of the number, rising.
    divisors: Vec<u32>,
    /// Those of them that are prime.
    primes: Vec<u32>,
    taken: Vec<u32>,
    best: Vec<u32>,
    /// Spread of the best, and how many processes lie at its faces in one direction of each dimension.
    least: (u32, u64),
}

impl Search {
    /// Tries all ways to go on with `count` factors whose product is `rest`.
    fn extend(&mut self, rest: u32, count: usize) {
        let largest = self.taken.first().copied();
        if rest == 1 || count == 1 {
            let smallest = if count == 1 { rest } else { 1 };
            self.offer(rest, count, largest.unwrap_or(rest) - smallest);
            return;
        }
        // The next factor is the largest of those left: it is no less than their geometric mean,
        // nor than any prime among them.
        let least = self.largest_prime(rest).max(root_up(rest, count));
        let most = self.taken.last().copied().unwrap_or(rest);
        let from = self.divisors.partition_point(|divisor| *divisor < least);
        for at in from..self.divisors.len() {
            let factor = self.divisors[at];
            if factor > most {
                return;
            }
            if !rest.is_multiple_of(factor) {
                continue;
            }
            // No sequence that goes on like this has a larger smallest factor.
            let smallest = root_down(rest / factor, count - 1);
            if largest.unwrap_or(factor) - smallest > self.least.0 {
                return;
            }
            self.taken.push(factor);
            self.extend(rest / factor, count - 1);
            self.taken.pop();
        }
    }

    /// Takes what has been taken, `rest` and ones for the best if they are.
    fn offer(&mut self, rest: u32, count: usize, spread: u32) {
        let ones = count as u64 - 1;
        let faces = self.taken.iter().chain([&rest]).map(|factor| u64::from(self.n / factor)).sum::<u64>();
        let offered = (spread, faces + ones * u64::from(self.n));
        if offered < self.least {
            self.least = offered;
            self.best.clone_from(&self.taken);
            self.best.push(rest);
            self.best.resize(self.taken.len() + count, 1);
        }
    }

    /// The largest prime that divides a divisor of the number, or 1.
    fn largest_prime(&self, n: u32) -> u32 {
        let primes = self.primes.iter().rev();
        primes.copied().find(|prime| n.is_multiple_of(*prime)).unwrap_or(1)
    }
}

/// The `k`-th root, rounded down.
fn root_down(n: u32, k: usize) -> u32 {
    let reaches = |base: u32| power_up_to(base, k, n).is_some();
    let mut root = (f64::from(n).powf(1.0 / k as f64)).round().max(1.0) as u32;
    while root > 1 && !reaches(root) {
        root -= 1;
    }
    while reaches(root + 1) {
        root += 1;
    }
    root
}

/// The `k`-th root, rounded up.
fn root_up(n: u32, k: usize) -> u32 {
    let down = root_down(n, k);
    if power_up_to(down, k, n) == Some(n) { down } else { down + 1 }
}

/// The power, unless it is above `limit`.
fn power_up_to(base: u32, k: usize, limit: u32) -> Option<u32> {
    if base <= 1 {
        return Some(base);
    }
    let k = u32::try_from(k).ok()?;
    base.checked_pow(k).filter(|power| *power <= limit)
}

/// All divisors, rising.
fn divisors(n: u32) -> Vec<u32> {
    let small: Vec<u32> =
        (1..).take_while(|d| u64::from(*d).pow(2) <= n.into()).filter(|d| n.is_multiple_of(*d)).collect();
    let large = small.iter().rev().map(|d| n / d).skip_while(|d| small.last() == Some(d));
    small.iter().copied().chain(large).collect()
}

/// The primes among the divisors of a number.
fn primes(divisors: &[u32]) -> Vec<u32> {
    let mut primes: Vec<u32> = Vec::new();
    for divisor in divisors.iter().copied().filter(|divisor| *divisor > 1) {
        if !primes.iter().any(|prime| divisor.is_multiple_of(*prime)) {
            primes.push(divisor);
        }
    }
    primes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created<const N: usize>(nnodes: i32, mut dims: [i32; N]) -> Result<[i32; N]> {
        dims_create(nnodes, &mut dims).map(|()| dims)
    }

    #[test]
    fn the_examples_of_the_standard() {
        assert_eq!(created(6, [0, 0]).unwrap(), [3, 2]);
        assert_eq!(created(7, [0, 0]).unwrap(), [7, 1]);
        assert_eq!(created(6, [0, 3, 0]).unwrap(), [2, 3, 1]);
        assert_eq!(created(7, [0, 3, 0]).unwrap_err().class, Class::DIMS);
    }

    #[test]
    fn factors_are_balanced_and_falling() {
        assert_eq!(created(1, [0, 0, 0]).unwrap(), [1, 1, 1]);
        assert_eq!(created(12, [0, 0, 0]).unwrap(), [3, 2, 2]);
        assert_eq!(created(36, [0, 0]).unwrap(), [6, 6]);
        assert_eq!(created(1 << 30, [0, 0]).unwrap(), [1 << 15, 1 << 15]);
        assert_eq!(created(i32::MAX, [0, 0]).unwrap(), [i32::MAX, 1]);
        assert_eq!(created(7488, [0, 0, 0]).unwrap(), [26, 18, 16]);
        // As far apart as [9, 8, 5], with one process less at the faces.
        assert_eq!(created(360, [0, 0, 0]).unwrap(), [10, 6, 6]);
        assert_eq!(created(8, [0; 40]).unwrap()[..4], [2, 2, 2, 1]);
    }

    /// All falling sequences of `count` factors.
    fn sequences(n: u32, count: usize, most: u32) -> Vec<Vec<u32>> {
        if count == 1 {
            return if n <= most { vec![vec![n]] } else { Vec::new() };
        }
        let mut found = Vec::new();
        for factor in (1..=n.min(most)).filter(|factor| n.is_multiple_of(*factor)) {
            for mut rest in sequences(n / factor, count - 1, factor) {
                rest.insert(0, factor);
                found.push(rest);
            }
        }
        found
    }

    #[test]
    fn no_other_dimensions_are_closer_to_each_other() {
        for (count, most) in [(1, 50), (2, 1500), (3, 1500), (4, 500), (5, 300), (7, 150)] {
            for n in (1..=most).chain([720, 1024, 5040, 7488]) {
                let faces = |seq: &[u32]| seq.iter().map(|factor| n / factor).sum::<u32>();
                let best = sequences(n, count, n)
                    .into_iter()
                    .min_by_key(|seq| (seq[0] - seq[count - 1], faces(seq), seq.clone()));
                assert_eq!(Some(closest(n, count)), best, "{n} in {count}");
            }
        }
    }

    /// Numbers with the most divisors and the most factors, in any number of dimensions: the search
    /// visits few of the sequences there are.
    #[test]
    fn large_numbers_take_no_time() {
        for n in [1_396_755_360, 2_095_133_040, 1 << 30, 3u32.pow(19), 2 * 3 * 5 * 7 * 11 * 13 * 17 * 19 * 23]
        {
            for count in 1..40 {
                let found = closest(n, count);
                assert!(found.is_sorted_by(|a, b| a >= b) && found.len() == count);
                assert_eq!(found.iter().map(|factor| u64::from(*factor)).product::<u64>(), n.into());
            }
        }
        assert_eq!(closest(i32::MAX as u32, 40)[..2], [i32::MAX as u32, 1]);
    }

    #[test]
    fn impossible_demands_are_refused() {
        assert_eq!(created(0, [0]).unwrap_err().class, Class::ARG);
        assert_eq!(created(4, [-1, 0]).unwrap_err().class, Class::DIMS);
        assert_eq!(created(4, [2, 3]).unwrap_err().class, Class::DIMS);
        assert_eq!(created(4, [i32::MAX, i32::MAX, i32::MAX, 0]).unwrap_err().class, Class::DIMS);
        assert_eq!(created(6, [2, 3]).unwrap(), [2, 3]);
        assert_eq!(created(1, []), Ok([]));
    }
}
