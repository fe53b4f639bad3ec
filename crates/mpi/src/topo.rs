//! Virtual topologies (MPI 5.0 chapter 8), as far as they need no communicator.

use crate::error::{Class, Result, fail};

/// `MPI_Dims_create`: fills the zeros of `dims` so that the product is `nnodes`, the new values
/// as close to each other as possible and in falling order.
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
    let mut rest = nnodes as u32 / fixed as u32;
    let mut limit = rest;
    let mut left = free as u32;
    for dim in dims.iter_mut().filter(|dim| **dim == 0) {
        let largest = smallest_largest(rest, left, limit).expect("rest = rest * 1 * 1 … always fits");
        *dim = largest as i32;
        (rest, limit, left) = (rest / largest, largest, left - 1);
    }
    Ok(())
}

/// The least possible largest factor when `n` is written as `count` factors of at most `limit`.
fn smallest_largest(n: u32, count: u32, limit: u32) -> Option<u32> {
    if count == 1 {
        return (n <= limit).then_some(n);
    }
    let divisors = divisors(n).into_iter().filter(|factor| *factor <= limit);
    let mut big_enough = divisors.filter(|factor| factor.checked_pow(count).is_none_or(|power| power >= n));
    big_enough.find(|factor| smallest_largest(n / factor, count - 1, *factor).is_some())
}

/// All divisors, rising.
fn divisors(n: u32) -> Vec<u32> {
    let small: Vec<u32> =
        (1..).take_while(|d| u64::from(*d).pow(2) <= n.into()).filter(|d| n.is_multiple_of(*d)).collect();
    let large = small.iter().rev().map(|d| n / d).skip_while(|d| small.last() == Some(d));
    small.iter().copied().chain(large).collect()
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
        for n in 1..300 {
            let [a, b, c] = created(n, [0, 0, 0]).unwrap();
            assert!(a >= b && b >= c && a * b * c == n, "{n}");
            let flattest = |a: i32| (1..=a).any(|b| n % a == 0 && (n / a) % b == 0 && n / a / b <= b);
            assert_eq!((1..=n).find(|a| flattest(*a)), Some(a), "{n}");
        }
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
