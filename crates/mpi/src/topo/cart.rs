//! Cartesian topologies (MPI 5.0 section 8.5.1): a grid in row-major order, of which any dimension may be closed
//! to a ring.

use super::member;
use crate::error::{Class, Error, Result, fail};
use crate::group::PROC_NULL;

/// A grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Cart {
    /// Processes in each dimension.
    pub dims: Vec<i32>,
    /// Which dimensions are rings.
    pub periods: Vec<bool>,
    /// The product of the dimensions.
    size: u32,
}

impl Cart {
    /// A grid in a communicator of `room` ranks.
    pub fn new(dims: &[i32], periods: &[i32], room: u32) -> Result<Cart> {
        if let Some((i, dim)) = dims.iter().enumerate().find(|(_, dim)| **dim <= 0) {
            return fail(Class::DIMS, format!("argument `dims`[{i}] is {dim}, must be positive"));
        }
        let size = dims.iter().try_fold(1u32, |size, dim| size.checked_mul(*dim as u32));
        match size.filter(|size| *size <= room) {
            Some(size) => {
                let periods = periods.iter().map(|ring| *ring != 0).collect();
                Ok(Cart { dims: dims.to_vec(), periods, size })
            }
            None => fail(
                Class::DIMS,
                format!(
                    "argument `dims` is {dims:?}, a grid of more processes than the communicator's {room}"
                ),
            ),
        }
    }

    /// Processes of the grid.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Where a rank is.
    pub fn coords(&self, rank: u32) -> Vec<i32> {
        let mut coords = vec![0; self.dims.len()];
        let mut rest = rank;
        for (coord, dim) in coords.iter_mut().zip(&self.dims).rev() {
            *coord = (rest % *dim as u32) as i32;
            rest /= *dim as u32;
        }
        coords
    }

    /// As [`Cart::coords`] of a rank that the application gave.
    pub fn coords_of(&self, rank: i32) -> Result<Vec<i32>> {
        Ok(self.coords(member(rank, self.size)?))
    }

    /// Who is there; beyond the ends of a ring it goes round.
    pub fn rank(&self, coords: &[i32]) -> Result<u32> {
        let mut rank = 0;
        for (i, (&coord, &dim)) in coords.iter().zip(&self.dims).enumerate() {
            if !self.periods[i] && !(0..dim).contains(&coord) {
                return fail(
                    Class::ARG,
                    format!(
                        "argument `coords`[{i}] is {coord}, the dimension is no ring and has coordinates 0 to {}",
                        dim - 1
                    ),
                );
            }
            rank = rank * dim as u32 + coord.rem_euclid(dim) as u32;
        }
        Ok(rank)
    }

    /// Where a rank is in one dimension, and by how much ranks differ from one place to the next there.
    #[inline]
    fn place(&self, rank: u32, direction: usize) -> (i64, i64) {
        let stride: u32 = self.dims[direction + 1..].iter().map(|dim| *dim as u32).product();
        // Divisions are most of what a shift costs: none that has no effect.
        let at = if stride == 1 { rank } else { rank / stride };
        let at = if direction == 0 { at } else { at % self.dims[direction] as u32 };
        (at.into(), stride.into())
    }

    /// Who is `disp` further than `rank`, which is at this place of a dimension.
    #[inline]
    fn beyond(&self, rank: u32, direction: usize, (from, stride): (i64, i64), disp: i64) -> Option<u32> {
        let dim = i64::from(self.dims[direction]);
        let mut to = from + disp;
        if self.periods[direction] {
            to = match to {
                back if (-dim..0).contains(&back) => back + dim,
                on if (dim..2 * dim).contains(&on) => on - dim,
                inside if (0..dim).contains(&inside) => inside,
                far => far.rem_euclid(dim),
            };
        }
        (0..dim).contains(&to).then(|| (i64::from(rank) + (to - from) * stride) as u32)
    }

    /// `MPI_Cart_shift`: from whom `rank` receives and to whom it sends when all send `disp` further.
    pub fn shift(&self, rank: u32, direction: i32, disp: i32) -> Result<[i32; 2]> {
        self.shift_now(rank, direction, disp).ok_or_else(|| self.no_direction(direction))
    }

    /// As [`Cart::shift`]; `None` where the grid has no such dimension. A program asks for its neighbours before each
    /// exchange: this is to become part of the entry.
    #[inline]
    pub fn shift_now(&self, rank: u32, direction: i32, disp: i32) -> Option<[i32; 2]> {
        let direction = usize::try_from(direction).ok().filter(|d| *d < self.dims.len())?;
        let place = self.place(rank, direction);
        let at = |disp| self.beyond(rank, direction, place, disp).map_or(PROC_NULL, |rank| rank as i32);
        Some([at(-i64::from(disp)), at(disp.into())])
    }

    /// What is wrong with a direction that is none.
    #[cold]
    fn no_direction(&self, direction: i32) -> Error {
        let has = match self.dims.len() {
            0 => "the grid has no dimension".to_string(),
            n => format!("the grid has dimensions 0 to {}", n - 1),
        };
        Error::new(Class::DIMS, format!("argument `direction` is {direction}, {has}"))
    }

    /// The neighbours of a rank: for each dimension the one before and the one behind.
    pub fn neighbors(&self, rank: u32) -> Vec<Option<u32>> {
        let both = |d| {
            let place = self.place(rank, d);
            [-1, 1].map(|disp| self.beyond(rank, d, place, disp))
        };
        (0..self.dims.len()).flat_map(both).collect()
    }

    /// All edges.
    pub fn edges(&self) -> Vec<(u32, u32)> {
        let around = |rank| self.neighbors(rank).into_iter().flatten().map(move |other| (rank, other));
        (0..self.size).flat_map(around).collect()
    }

    /// `MPI_Cart_sub`: the grid of the dimensions that remain, and its members around `rank` in order.
    pub fn sub(&self, rank: u32, remain: &[i32]) -> (Cart, Vec<u32>) {
        let kept = || (0..self.dims.len()).filter(|d| remain[*d] != 0);
        let dims: Vec<i32> = kept().map(|d| self.dims[d]).collect();
        let periods = kept().map(|d| self.periods[d]).collect();
        let size = dims.iter().map(|dim| *dim as u32).product();
        let sub = Cart { dims, periods, size };
        let mut coords = self.coords(rank);
        let members = (0..size).map(|member| {
            kept().zip(sub.coords(member)).for_each(|(d, coord)| coords[d] = coord);
            self.rank(&coords).expect("coordinates inside the grid")
        });
        let members = members.collect();
        (sub, members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grid(dims: &[i32], periods: &[i32]) -> Cart {
        Cart::new(dims, periods, u32::MAX).unwrap()
    }

    #[test]
    fn wrong_grids_are_refused_by_name() {
        let refused = |dims: &[i32]| Cart::new(dims, &[0; 3], 12).unwrap_err();
        assert_eq!(refused(&[3, 0]).text, "argument `dims`[1] is 0, must be positive");
        assert_eq!(refused(&[3, -2]).class, Class::DIMS);
        assert!(refused(&[3, 5]).text.contains("[3, 5]"));
        assert_eq!(refused(&[i32::MAX, i32::MAX, 2]).class, Class::DIMS);
        assert_eq!(Cart::new(&[], &[], 1).unwrap().size(), 1);
        let cart = grid(&[3, 4], &[0, 1]);
        assert_eq!(cart.rank(&[3, 0]).unwrap_err().class, Class::ARG);
        assert_eq!(cart.rank(&[2, -1]), Ok(11));
        assert_eq!(cart.coords_of(12).unwrap_err().class, Class::RANK);
        assert_eq!(cart.shift(0, 2, 1).unwrap_err().class, Class::DIMS);
        assert_eq!(cart.shift(0, -1, 1).unwrap_err().class, Class::DIMS);
        assert!(grid(&[], &[]).shift(0, 0, 1).unwrap_err().text.contains("no dimension"));
    }

    /// All coordinates of a grid in row-major order.
    fn all(dims: &[i32]) -> Vec<Vec<i32>> {
        let Some((first, rest)) = dims.split_first() else { return vec![Vec::new()] };
        let tail = all(rest);
        let join = |at: i32| tail.iter().map(move |rest| [&[at], &rest[..]].concat());
        (0..*first).flat_map(join).collect()
    }

    /// Walks one step at a time.
    fn walk(dims: &[i32], ring: bool, at: &[i32], d: usize, disp: i32) -> Option<Vec<i32>> {
        let mut at = at.to_vec();
        for _ in 0..disp.abs() {
            at[d] += disp.signum();
            if ring && at[d] == dims[d] {
                at[d] = 0;
            } else if ring && at[d] < 0 {
                at[d] = dims[d] - 1;
            }
        }
        (0..dims[d]).contains(&at[d]).then_some(at)
    }

    proptest! {
        #[test]
        fn places_shifts_and_neighbours_are_those_found_by_walking(
            shape in proptest::collection::vec((1i32..5, any::<bool>()), 0..5), disp in -9i32..10,
        ) {
            let dims: Vec<i32> = shape.iter().map(|s| s.0).collect();
            let periods: Vec<i32> = shape.iter().map(|s| s.1.into()).collect();
            let cart = grid(&dims, &periods);
            let places = all(&dims);
            prop_assert_eq!(cart.size() as usize, places.len());
            let find = |at: Option<Vec<i32>>| {
                at.map_or(PROC_NULL, |at| places.iter().position(|place| *place == at).unwrap() as i32)
            };
            for (rank, place) in places.iter().enumerate() {
                prop_assert_eq!(&cart.coords(rank as u32), place);
                prop_assert_eq!(cart.rank(place), Ok(rank as u32));
                let neighbors = cart.neighbors(rank as u32);
                for d in 0..dims.len() {
                    let go = |disp| find(walk(&dims, periods[d] != 0, place, d, disp));
                    prop_assert_eq!(cart.shift(rank as u32, d as i32, disp), Ok([go(-disp), go(disp)]));
                    let both = [neighbors[2 * d], neighbors[2 * d + 1]];
                    prop_assert_eq!(both.map(|at| at.map_or(PROC_NULL, |at| at as i32)), [go(-1), go(1)]);
                }
            }
        }

        #[test]
        fn a_part_of_a_grid_has_those_that_agree_in_what_was_dropped(
            shape in proptest::collection::vec((1i32..4, any::<bool>(), any::<bool>()), 0..5),
        ) {
            let dims: Vec<i32> = shape.iter().map(|s| s.0).collect();
            let periods: Vec<i32> = shape.iter().map(|s| s.1.into()).collect();
            let remain: Vec<i32> = shape.iter().map(|s| s.2.into()).collect();
            let cart = grid(&dims, &periods);
            for rank in 0..cart.size() {
                let (sub, members) = cart.sub(rank, &remain);
                let agrees = |other: &u32| {
                    let (a, b) = (cart.coords(rank), cart.coords(*other));
                    (0..dims.len()).all(|d| remain[d] != 0 || a[d] == b[d])
                };
                let expected: Vec<u32> = (0..cart.size()).filter(agrees).collect();
                prop_assert_eq!(&members, &expected);
                prop_assert_eq!(sub.size() as usize, members.len());
                for (at, member) in members.iter().enumerate() {
                    let coords = cart.coords(*member);
                    let kept: Vec<i32> = (0..dims.len()).filter(|d| remain[*d] != 0).map(|d| coords[d]).collect();
                    prop_assert_eq!(sub.coords(at as u32), kept);
                }
            }
        }
    }
}
