//! Parts of multi-dimensional arrays: subarray and darray (MPI 5.0 sections 5.1.3 and 5.1.4).
//!
//! Both build the typemap dimension by dimension from the fastest varying one outwards; the
//! stride of a dimension is the extent of everything inside it.

use std::sync::Arc;

use super::Datatype;
use super::body::{Body, Joiner, Span, fit};
use super::contents::{Combiner, Form, Record};
use crate::error::{Class, Result, fail};

/// Which index varies fastest in memory; the numbers are those of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Order {
    /// The last one.
    C = 12,
    /// The first one.
    Fortran = 15,
}

/// How one dimension is dealt out to the processes; the numbers are those of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Distribution {
    /// Not at all.
    None = 16,
    /// One block each.
    Block = 17,
    /// Blocks in turn.
    Cyclic = 18,
}

/// `MPI_DISTRIBUTE_DFLT_DARG`.
const DEFAULT_ARGUMENT: i32 = 19;

impl Order {
    /// The order of an ABI constant.
    pub fn from_abi(value: i32) -> Result<Order> {
        match value {
            12 => Ok(Order::C),
            15 => Ok(Order::Fortran),
            _ => {
                fail(Class::ARG, format!("argument `order` is {value}, not MPI_ORDER_C or MPI_ORDER_FORTRAN"))
            }
        }
    }

    /// The dimensions from the fastest varying one outwards.
    fn inside_out(self, ndims: usize) -> Vec<usize> {
        match self {
            Order::C => (0..ndims).rev().collect(),
            Order::Fortran => (0..ndims).collect(),
        }
    }
}

impl Distribution {
    /// The distribution of an ABI constant.
    pub fn from_abi(value: i32) -> Result<Distribution> {
        match value {
            16 => Ok(Distribution::None),
            17 => Ok(Distribution::Block),
            18 => Ok(Distribution::Cyclic),
            _ => fail(
                Class::ARG,
                format!("an entry of `array_of_distribs` is {value}, not one of MPI_DISTRIBUTE_*"),
            ),
        }
    }
}

impl Datatype {
    /// `MPI_Type_create_subarray`; the number of dimensions is the length of the slices.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        old: &Arc<Datatype>,
        form: Form,
    ) -> Result<Arc<Datatype>> {
        check_dimensions(&[subsizes.len(), starts.len()], sizes)?;
        for (dim, ((&size, &sub), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
            if sub < 1 || sub > size {
                return fail(Class::ARG, format!("`array_of_subsizes[{dim}]` is {sub}, must be 1 to {size}"));
            }
            if start < 0 || start > size - sub {
                let most = size - sub;
                return fail(Class::ARG, format!("`array_of_starts[{dim}]` is {start}, must be 0 to {most}"));
            }
        }
        let mut grid = Grid::new(old);
        for dim in order.inside_out(sizes.len()) {
            grid.take(starts[dim], subsizes[dim] as u64)?;
            grid.grow(sizes[dim])?;
        }
        let record = Record::new(Combiner::Subarray, form)
            .integers(&[sizes.len() as i32])
            .counts(sizes)?
            .counts(subsizes)?
            .counts(starts)?
            .integers(&[order as i32]);
        Datatype::new(grid.finish(), record.types(std::slice::from_ref(old)))
    }

    /// `MPI_Type_create_darray`; the number of dimensions is the length of the slices.
    #[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
    pub fn darray(
        size: i32,
        rank: i32,
        gsizes: &[i64],
        distribs: &[Distribution],
        dargs: &[i32],
        psizes: &[i32],
        order: Order,
        old: &Arc<Datatype>,
        form: Form,
    ) -> Result<Arc<Datatype>> {
        check_dimensions(&[distribs.len(), dargs.len(), psizes.len()], gsizes)?;
        let coordinates = coordinates(size, rank, psizes)?;
        let mut grid = Grid::new(old);
        for dim in order.inside_out(gsizes.len()) {
            let share =
                Share { dim, total: gsizes[dim], of: i64::from(psizes[dim]), coordinate: coordinates[dim] };
            grid.deal(share, distribs[dim], dargs[dim])?;
            grid.grow(gsizes[dim])?;
        }
        let distribs: Vec<i32> = distribs.iter().map(|&distribution| distribution as i32).collect();
        let record = Record::new(Combiner::Darray, form)
            .integers(&[size, rank, gsizes.len() as i32])
            .counts(gsizes)?
            .integers(&distribs)
            .integers(dargs)
            .integers(psizes)
            .integers(&[order as i32]);
        Datatype::new(grid.finish(), record.types(std::slice::from_ref(old)))
    }
}

fn check_dimensions(lengths: &[usize], sizes: &[i64]) -> Result {
    if sizes.is_empty() {
        return fail(Class::ARG, "argument `ndims` is 0, must be positive");
    }
    if lengths.iter().any(|&len| len != sizes.len()) {
        return fail(Class::ARG, "the arrays do not all have `ndims` entries");
    }
    match sizes.iter().position(|&size| size < 1) {
        Some(dim) => {
            fail(Class::ARG, format!("the array size of dimension {dim} is {}, must be positive", sizes[dim]))
        }
        None => Ok(()),
    }
}

/// The place of `rank` in the process grid, which is in C order whatever the order of the array.
fn coordinates(size: i32, rank: i32, psizes: &[i32]) -> Result<Vec<i64>> {
    if let Some(dim) = psizes.iter().position(|&p| p < 1) {
        return fail(Class::ARG, format!("`array_of_psizes[{dim}]` is {}, must be positive", psizes[dim]));
    }
    let cells = psizes.iter().try_fold(1i32, |cells, &p| cells.checked_mul(p));
    if cells != Some(size) {
        return fail(Class::ARG, format!("argument `size` is {size}, not the product of `array_of_psizes`"));
    }
    if !(0..size).contains(&rank) {
        return fail(Class::ARG, format!("argument `rank` is {rank}, must be 0 to {}", size - 1));
    }
    let mut left = rank;
    let mut place = vec![0; psizes.len()];
    for (slot, &p) in place.iter_mut().zip(psizes).rev() {
        *slot = i64::from(left % p);
        left /= p;
    }
    Ok(place)
}

/// One process's part of one dimension.
struct Share {
    dim: usize,
    total: i64,
    of: i64,
    coordinate: i64,
}

/// The part of the array built so far, and the extent of the dimensions it spans.
struct Grid {
    body: Body,
    stride: i64,
}

impl Grid {
    fn new(old: &Datatype) -> Grid {
        Grid { body: old.body.clone(), stride: old.extent() }
    }

    /// Keeps `count` items of the current dimension from `start` on.
    fn take(&mut self, start: i64, count: u64) -> Result {
        let at = fit(i128::from(start) * i128::from(self.stride), "displacement in bytes")?;
        let mut joiner = Joiner::default();
        joiner.add(at, &self.body, count, self.stride)?;
        self.body = joiner.finish()?;
        Ok(())
    }

    fn deal(&mut self, share: Share, distribution: Distribution, darg: i32) -> Result {
        let Share { dim, total, of, coordinate } = share;
        if darg != DEFAULT_ARGUMENT && darg < 1 && distribution != Distribution::None {
            return fail(Class::ARG, format!("`array_of_dargs[{dim}]` is {darg}, must be positive"));
        }
        match distribution {
            Distribution::None if of != 1 => {
                fail(Class::ARG, format!("dimension {dim} is not distributed but has {of} processes"))
            }
            Distribution::None => self.take(0, total as u64),
            Distribution::Block => {
                let even = total / of + i64::from(total % of != 0);
                let block = if darg == DEFAULT_ARGUMENT { even } else { i64::from(darg) };
                if block < even {
                    let text =
                        format!("`array_of_dargs[{dim}]` is {darg}: {of} such blocks do not cover {total}");
                    return fail(Class::ARG, text);
                }
                let start = block.saturating_mul(coordinate).min(total);
                self.take(start, block.min(total - start) as u64)
            }
            Distribution::Cyclic => {
                let block = if darg == DEFAULT_ARGUMENT { 1 } else { i64::from(darg) };
                self.cycle(total, of, coordinate, block)
            }
        }
    }

    /// Keeps every `of`-th block of `block` items, beginning with number `first`.
    fn cycle(&mut self, total: i64, of: i64, first: i64, block: i64) -> Result {
        let whole = total / block;
        let mine = whole / of + i64::from(first < whole % of);
        let cycle = i128::from(block) * i128::from(of);
        let rest = if whole % of == first { total % block } else { 0 };
        let bytes = |items: i128| fit(items * i128::from(self.stride), "displacement in bytes");
        let mut joiner = Joiner::default();
        if mine > 0 {
            let one = self.body.repeat(block as u64, self.stride)?;
            let step = if mine > 1 { bytes(cycle)? } else { 0 };
            joiner.add(bytes(i128::from(first) * i128::from(block))?, &one, mine as u64, step)?;
        }
        if rest > 0 {
            joiner.add(
                bytes(i128::from(whole) * i128::from(block))?,
                &self.body,
                rest as u64,
                self.stride,
            )?;
        }
        self.body = joiner.finish()?;
        Ok(())
    }

    /// Goes one dimension outwards.
    fn grow(&mut self, size: i64) -> Result {
        self.stride = fit(i128::from(self.stride) * i128::from(size), "extent of the array")?;
        // Markers of the old type have done their work in the stride; the array has its own.
        self.body.mark = None;
        Ok(())
    }

    fn finish(self) -> Body {
        Body { mark: Some(Span { lo: 0, hi: self.stride }), ..self.body }
    }
}
