//! Names that Open MPI's library has and the standard has not: functions and variables that stand for constants, persistent
//! collectives by the names they had before MPI 4.0, and extensions, which are refused by name.
#![allow(non_snake_case, non_upper_case_globals)]

use std::sync::atomic::AtomicUsize;

use mpi::error::{Class, Result, fail};

use super::{c2f, f2c};
use crate::cx::Cx;
use crate::layout::former::{duplicates, functions, renamed, variables};
use crate::object::Object;
use crate::table::{Chapter, rows};

variables! {
    MPI_F_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(0);
    MPI_F_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(0);
    MPI_F08_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(0);
    MPI_F08_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(0);
}

duplicates! { OMPI_C_MPI_DUP_FN OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_WIN_DUP_FN }

/// Functions for `MPI_NULL_COPY_FN` and its kin: the value of an attribute is not copied.
macro_rules! no_copies {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(_: usize, _: i32, _: usize, _: usize, _: usize, flag: *mut i32) -> i32 {
            // SAFETY: whoever calls a copy function gives it where the flag goes.
            unsafe { flag.write(0) };
            0
        }
    )* };
}

no_copies! {
    OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_COPY_FN
}

/// Functions for `MPI_NULL_DELETE_FN` and its kin.
macro_rules! no_deletes {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name(_: usize, _: i32, _: usize, _: usize) -> i32 {
            0
        }
    )* };
}

no_deletes! {
    OMPI_C_MPI_NULL_DELETE_FN OMPI_C_MPI_COMM_NULL_DELETE_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN OMPI_C_MPI_WIN_NULL_DELETE_FN
}

functions! {
    MPI_File_c2f "PMPI_File_c2f" (file: usize) -> i32 { c2f(Object::File, file) }
    MPI_File_f2c "PMPI_File_f2c" (file: i32) -> usize { f2c(Object::File, file) }
    MPIX_Query_cuda_support "PMPIX_Query_cuda_support" () -> i32 { 0 }
    MPIX_Query_rocm_support "PMPIX_Query_rocm_support" () -> i32 { 0 }
}

// As they were before MPI 4.0, under the name they have now.
renamed! {
    MPIX_Allgather_init "PMPIX_Allgather_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Allgather_init;
    MPIX_Allgatherv_init "PMPIX_Allgatherv_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcounts: usize, displs: usize, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Allgatherv_init;
    MPIX_Allreduce_init "PMPIX_Allreduce_init" (sendbuf: usize, recvbuf: usize, count: i32, datatype: usize, op: usize, comm: usize, info: usize, request: usize) => PMPI_Allreduce_init;
    MPIX_Alltoall_init "PMPIX_Alltoall_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Alltoall_init;
    MPIX_Alltoallv_init "PMPIX_Alltoallv_init" (sendbuf: usize, sendcounts: usize, sdispls: usize, sendtype: usize, recvbuf: usize, recvcounts: usize, rdispls: usize, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Alltoallv_init;
    MPIX_Alltoallw_init "PMPIX_Alltoallw_init" (sendbuf: usize, sendcounts: usize, sdispls: usize, sendtypes: usize, recvbuf: usize, recvcounts: usize, rdispls: usize, recvtypes: usize, comm: usize, info: usize, request: usize) => PMPI_Alltoallw_init;
    MPIX_Barrier_init "PMPIX_Barrier_init" (comm: usize, info: usize, request: usize) => PMPI_Barrier_init;
    MPIX_Bcast_init "PMPIX_Bcast_init" (buffer: usize, count: i32, datatype: usize, root: i32, comm: usize, info: usize, request: usize) => PMPI_Bcast_init;
    MPIX_Exscan_init "PMPIX_Exscan_init" (sendbuf: usize, recvbuf: usize, count: i32, datatype: usize, op: usize, comm: usize, info: usize, request: usize) => PMPI_Exscan_init;
    MPIX_Gather_init "PMPIX_Gather_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, root: i32, comm: usize, info: usize, request: usize) => PMPI_Gather_init;
    MPIX_Gatherv_init "PMPIX_Gatherv_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcounts: usize, displs: usize, recvtype: usize, root: i32, comm: usize, info: usize, request: usize) => PMPI_Gatherv_init;
    MPIX_Neighbor_allgather_init "PMPIX_Neighbor_allgather_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Neighbor_allgather_init;
    MPIX_Neighbor_allgatherv_init "PMPIX_Neighbor_allgatherv_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcounts: usize, displs: usize, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Neighbor_allgatherv_init;
    MPIX_Neighbor_alltoall_init "PMPIX_Neighbor_alltoall_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Neighbor_alltoall_init;
    MPIX_Neighbor_alltoallv_init "PMPIX_Neighbor_alltoallv_init" (sendbuf: usize, sendcounts: usize, sdispls: usize, sendtype: usize, recvbuf: usize, recvcounts: usize, rdispls: usize, recvtype: usize, comm: usize, info: usize, request: usize) => PMPI_Neighbor_alltoallv_init;
    MPIX_Neighbor_alltoallw_init "PMPIX_Neighbor_alltoallw_init" (sendbuf: usize, sendcounts: usize, sdispls: usize, sendtypes: usize, recvbuf: usize, recvcounts: usize, rdispls: usize, recvtypes: usize, comm: usize, info: usize, request: usize) => PMPI_Neighbor_alltoallw_init;
    MPIX_Reduce_init "PMPIX_Reduce_init" (sendbuf: usize, recvbuf: usize, count: i32, datatype: usize, op: usize, root: i32, comm: usize, info: usize, request: usize) => PMPI_Reduce_init;
    MPIX_Reduce_scatter_init "PMPIX_Reduce_scatter_init" (sendbuf: usize, recvbuf: usize, recvcounts: usize, datatype: usize, op: usize, comm: usize, info: usize, request: usize) => PMPI_Reduce_scatter_init;
    MPIX_Reduce_scatter_block_init "PMPIX_Reduce_scatter_block_init" (sendbuf: usize, recvbuf: usize, recvcount: i32, datatype: usize, op: usize, comm: usize, info: usize, request: usize) => PMPI_Reduce_scatter_block_init;
    MPIX_Scan_init "PMPIX_Scan_init" (sendbuf: usize, recvbuf: usize, count: i32, datatype: usize, op: usize, comm: usize, info: usize, request: usize) => PMPI_Scan_init;
    MPIX_Scatter_init "PMPIX_Scatter_init" (sendbuf: usize, sendcount: i32, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, root: i32, comm: usize, info: usize, request: usize) => PMPI_Scatter_init;
    MPIX_Scatterv_init "PMPIX_Scatterv_init" (sendbuf: usize, sendcounts: usize, displs: usize, sendtype: usize, recvbuf: usize, recvcount: i32, recvtype: usize, root: i32, comm: usize, info: usize, request: usize) => PMPI_Scatterv_init;
}

fn refuse(_: &Cx) -> Result {
    fail(Class::UNSUPPORTED_OPERATION, "this is an extension of Open MPI, which Tern does not have")
}

mod extensions {
    use super::{refuse, rows};

    rows! { "Extensions of Open MPI";
        MPIX_Comm_ack_failed() => refuse;
        MPIX_Comm_agree() => refuse;
        MPIX_Comm_failure_ack() => refuse;
        MPIX_Comm_failure_get_acked() => refuse;
        MPIX_Comm_get_failed() => refuse;
        MPIX_Comm_iagree() => refuse;
        MPIX_Comm_is_revoked() => refuse;
        MPIX_Comm_revoke() => refuse;
        MPIX_Comm_shrink() => refuse;
    }

    const _: super::Chapter = CHAPTER;
}
