//! The constructors of datatypes: arguments become slices of 64-bit numbers, the new type a
//! handle.

use std::sync::Arc;

use mpi::datatype::{Datatype, Distribution, Form, Order};
use mpi::error::{Error, Result};
use mpi::handle::Handle;

use super::shared;
use crate::cx::Cx;
use crate::kind::array::{Array, CountArray};
use crate::kind::output::Out;
use crate::layout::{self, Set, Slot};
use crate::object::Object;

fn form(cx: &Cx) -> Form {
    if cx.is_large() { Form::Large } else { Form::Small }
}

fn give(cx: &Cx, ty: Arc<Datatype>, newtype: Out<Handle>) -> Result {
    newtype.set(cx.objects().types.add(ty)?);
    Ok(())
}

/// The elements of an array whose length another argument gives.
fn numbers(array: CountArray, len: usize) -> Result<Vec<i64>> {
    // SAFETY: the length is the one MPI says this argument has; copied at once.
    Ok(unsafe { array.get(len)? }.iter().collect())
}

fn ints(array: Array<i32>, len: usize) -> Result<Vec<i32>> {
    // SAFETY: as in `numbers`.
    Ok(unsafe { array.slice(len)? }.to_vec())
}

/// `MPI_Type_contiguous`.
pub fn contiguous(cx: &Cx, count: u64, oldtype: Handle, newtype: Out<Handle>) -> Result {
    give(cx, Datatype::contiguous(count as i64, &shared(cx, oldtype)?, form(cx))?, newtype)
}

/// `MPI_Type_vector`.
pub fn vector(
    cx: &Cx,
    count: u64,
    blocklength: u64,
    stride: i64,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let old = shared(cx, oldtype)?;
    give(cx, Datatype::vector(count as i64, blocklength as i64, stride, &old, form(cx))?, newtype)
}

/// `MPI_Type_create_hvector`.
pub fn hvector(
    cx: &Cx,
    count: u64,
    blocklength: u64,
    stride: i64,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let old = shared(cx, oldtype)?;
    give(cx, Datatype::hvector(count as i64, blocklength as i64, stride, &old, form(cx))?, newtype)
}

/// `MPI_Type_indexed`.
pub fn indexed(
    cx: &Cx,
    count: u64,
    blocklengths: CountArray,
    displacements: CountArray,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let (lengths, at) = (numbers(blocklengths, count as usize)?, numbers(displacements, count as usize)?);
    give(cx, Datatype::indexed(&lengths, &at, &shared(cx, oldtype)?, form(cx))?, newtype)
}

/// `MPI_Type_create_hindexed`.
pub fn hindexed(
    cx: &Cx,
    count: u64,
    blocklengths: CountArray,
    displacements: CountArray,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let (lengths, at) = (numbers(blocklengths, count as usize)?, numbers(displacements, count as usize)?);
    give(cx, Datatype::hindexed(&lengths, &at, &shared(cx, oldtype)?, form(cx))?, newtype)
}

/// `MPI_Type_create_indexed_block`.
pub fn indexed_block(
    cx: &Cx,
    count: u64,
    blocklength: u64,
    displacements: CountArray,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let at = numbers(displacements, count as usize)?;
    give(cx, Datatype::indexed_block(blocklength as i64, &at, &shared(cx, oldtype)?, form(cx))?, newtype)
}

/// `MPI_Type_create_hindexed_block`.
pub fn hindexed_block(
    cx: &Cx,
    count: u64,
    blocklength: u64,
    displacements: CountArray,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let at = numbers(displacements, count as usize)?;
    give(cx, Datatype::hindexed_block(blocklength as i64, &at, &shared(cx, oldtype)?, form(cx))?, newtype)
}

/// `MPI_Type_create_struct`.
pub fn structure(
    cx: &Cx,
    count: u64,
    blocklengths: CountArray,
    displacements: CountArray,
    types: Array<Slot>,
    newtype: Out<Handle>,
) -> Result {
    let count = count as usize;
    let (lengths, at) = (numbers(blocklengths, count)?, numbers(displacements, count)?);
    // SAFETY: the array has `count` handles.
    let handles = unsafe { types.handles(count, Object::Datatype, cx)? };
    let types: Result<Vec<_>> = handles.into_iter().map(|handle| shared(cx, handle)).collect();
    give(cx, Datatype::structure(&lengths, &at, &types?, form(cx))?, newtype)
}

/// `MPI_Type_create_subarray`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn subarray(
    cx: &Cx,
    ndims: usize,
    sizes: CountArray,
    subsizes: CountArray,
    starts: CountArray,
    order: i32,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let (sizes, subsizes) = (numbers(sizes, ndims)?, numbers(subsizes, ndims)?);
    let (starts, order) = (numbers(starts, ndims)?, Order::from_abi(order)?);
    let old = shared(cx, oldtype)?;
    give(cx, Datatype::subarray(&sizes, &subsizes, &starts, order, &old, form(cx))?, newtype)
}

/// `MPI_Type_create_darray`.
#[expect(clippy::too_many_arguments, reason = "the parameters are those of the standard")]
pub fn darray(
    cx: &Cx,
    size: i32,
    rank: i32,
    ndims: usize,
    gsizes: CountArray,
    distribs: Array<i32>,
    dargs: Array<i32>,
    psizes: Array<i32>,
    order: i32,
    oldtype: Handle,
    newtype: Out<Handle>,
) -> Result {
    let (gsizes, psizes) = (numbers(gsizes, ndims)?, ints(psizes, ndims)?);
    let constants =
        |array, set| Ok::<_, Error>(ints(array, ndims)?.into_iter().map(move |n| layout::read(set, n)));
    let dargs: Vec<_> = constants(dargs, Set::DistributionArgument)?.collect();
    let distribs: Result<Vec<_>> =
        constants(distribs, Set::Distribution)?.map(Distribution::from_abi).collect();
    let (order, old) = (Order::from_abi(order)?, shared(cx, oldtype)?);
    let ty = Datatype::darray(size, rank, &gsizes, &distribs?, &dargs, &psizes, order, &old, form(cx))?;
    give(cx, ty, newtype)
}

/// `MPI_Type_create_resized`.
pub fn resized(cx: &Cx, oldtype: Handle, lb: i64, extent: i64, newtype: Out<Handle>) -> Result {
    give(cx, Datatype::resized(&shared(cx, oldtype)?, lb, extent, form(cx))?, newtype)
}

fn give_unnamed(cx: &Cx, ty: Arc<Datatype>, newtype: Out<Handle>) -> Result {
    newtype.set(cx.objects().types.unnamed(ty)?);
    Ok(())
}

/// `MPI_Type_create_f90_real`.
pub fn f90_real(cx: &Cx, p: i32, r: i32, newtype: Out<Handle>) -> Result {
    give_unnamed(cx, Datatype::f90_real(p, r)?, newtype)
}

/// `MPI_Type_create_f90_complex`.
pub fn f90_complex(cx: &Cx, p: i32, r: i32, newtype: Out<Handle>) -> Result {
    give_unnamed(cx, Datatype::f90_complex(p, r)?, newtype)
}

/// `MPI_Type_create_f90_integer`.
pub fn f90_integer(cx: &Cx, r: i32, newtype: Out<Handle>) -> Result {
    give_unnamed(cx, Datatype::f90_integer(r)?, newtype)
}
