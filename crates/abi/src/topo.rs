//! MPI 5.0 chapter 8: virtual topologies.

use mpi::error::Result;
use mpi::group::UNDEFINED;
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;

/// `MPI_Topo_test`: no operation that would give a communicator a topology is there yet.
pub fn test(_: &Cx, _comm: Handle, status: Out<i32>) -> Result {
    status.set(UNDEFINED);
    Ok(())
}

/// `MPI_Dims_create`.
pub fn dims_create(_: &Cx, nnodes: usize, ndims: usize, dims: Array<i32>) -> Result {
    // SAFETY: MPI says the array has `ndims` elements.
    mpi::topo::dims_create(nnodes as i32, unsafe { dims.slice_mut(ndims)? })
}
