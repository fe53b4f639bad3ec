//! MPI 5.0 chapter 8: virtual topologies.

use mpi::error::Result;
use mpi::group::UNDEFINED;
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::output::Out;

/// `MPI_Topo_test`: no operation that would give a communicator a topology is there yet.
pub fn test(_: &Cx, _comm: Handle, status: Out<i32>) -> Result {
    status.set(UNDEFINED);
    Ok(())
}
