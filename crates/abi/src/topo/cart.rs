//! Cartesian topologies (MPI 5.0 section 8.5).

use mpi::comm::COMM_NULL;
use mpi::error::Result;
use mpi::group::UNDEFINED;
use mpi::handle::Handle;
use mpi::topo::{Cart, Topology};

use super::{Agreed, agree, fits, make, order, room, store};
use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;

/// Reads the arguments that describe a grid.
fn read(cx: &Cx, comm: Handle, ndims: usize, dims: Array<i32>, periods: Array<i32>) -> Result<Cart> {
    let room = room(cx, comm)?;
    // SAFETY: MPI says both arrays have `ndims` elements; they are copied.
    unsafe { Cart::new(dims.slice(ndims)?, periods.slice(ndims)?, room) }
}

/// What a query asks of the grid of a communicator, with this process's rank.
fn with<R>(cx: &Cx, comm: Handle, f: impl FnOnce(&Cart, u32) -> Result<R>) -> Result<R> {
    let world = cx.world();
    let comm = world.comm(comm)?;
    f(mpi::topo::cart(comm.topology())?, comm.place.rank)
}

/// `MPI_Cart_create`.
pub fn create(
    cx: &Cx,
    comm: Handle,
    ndims: usize,
    dims: Array<i32>,
    periods: Array<i32>,
    reorder: bool,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let cart = read(cx, comm, ndims, dims, periods)?;
    let agreed = agree(cx, comm, reorder, ("cart", &cart.dims, &cart.periods))?;
    let order = order(cx, comm, cart.size(), &agreed, || cart.edges())?;
    make(cx, comm, &agreed.contexts, &order, || Topology::Cart(cart), newcomm)
}

/// `MPI_Cart_sub`.
pub fn sub(cx: &Cx, comm: Handle, remain: Array<i32>, newcomm: Out<Handle>) -> Result {
    newcomm.set(COMM_NULL);
    let (cart, members) = with(cx, comm, |cart, me| {
        // SAFETY: MPI says the array has an element per dimension.
        Ok(cart.sub(me, unsafe { remain.slice(cart.dims.len())? }))
    })?;
    // SAFETY: as above.
    let remain: Vec<bool> = with(cx, comm, |cart, _| unsafe { remain.slice(cart.dims.len()) })?
        .iter()
        .map(|remains| *remains != 0)
        .collect();
    let agreed = agree(cx, comm, false, ("sub", remain))?;
    make(cx, comm, &agreed.contexts, &members, || Topology::Cart(cart), newcomm)
}

/// `MPI_Cart_map`.
pub fn map(
    cx: &Cx,
    comm: Handle,
    ndims: usize,
    dims: Array<i32>,
    periods: Array<i32>,
    newrank: Out<i32>,
) -> Result {
    let cart = read(cx, comm, ndims, dims, periods)?;
    let order = order(cx, comm, cart.size(), &Agreed::nothing(cart.size()), || cart.edges())?;
    let me = cx.world().comm(comm)?.place.rank;
    newrank.set(order.iter().position(|rank| *rank == me).map_or(UNDEFINED, |node| node as i32));
    Ok(())
}

/// `MPI_Cartdim_get`.
pub fn dim(cx: &Cx, comm: Handle, ndims: Out<i32>) -> Result {
    ndims.set(with(cx, comm, |cart, _| Ok(cart.dims.len()))? as i32);
    Ok(())
}

/// `MPI_Cart_get`.
pub fn get(
    cx: &Cx,
    comm: Handle,
    maxdims: usize,
    dims: Array<i32>,
    periods: Array<i32>,
    coords: Array<i32>,
) -> Result {
    with(cx, comm, |cart, me| {
        fits(maxdims, cart.dims.len(), "maxdims")?;
        store(dims, &cart.dims)?;
        store(periods, &cart.periods.iter().map(|ring| i32::from(*ring)).collect::<Vec<_>>())?;
        store(coords, &cart.coords(me))
    })
}

/// `MPI_Cart_rank`.
pub fn rank(cx: &Cx, comm: Handle, coords: Array<i32>, rank: Out<i32>) -> Result {
    // SAFETY: MPI says the array has an element per dimension.
    let found = with(cx, comm, |cart, _| cart.rank(unsafe { coords.slice(cart.dims.len())? }))?;
    rank.set(found as i32);
    Ok(())
}

/// `MPI_Cart_coords`.
pub fn coords(cx: &Cx, comm: Handle, rank: i32, maxdims: usize, coords: Array<i32>) -> Result {
    with(cx, comm, |cart, _| {
        let found = cart.coords_of(rank)?;
        fits(maxdims, found.len(), "maxdims")?;
        store(coords, &found)
    })
}

/// `MPI_Cart_shift`.
pub fn shift(
    cx: &Cx,
    comm: Handle,
    direction: i32,
    disp: i32,
    rank_source: Out<i32>,
    rank_dest: Out<i32>,
) -> Result {
    let [source, dest] = with(cx, comm, |cart, me| cart.shift(me, direction, disp))?;
    rank_source.set(source);
    rank_dest.set(dest);
    Ok(())
}
