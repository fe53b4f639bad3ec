//! Names that MPICH's library has and the standard has not: variables that stand for constants, and extensions, which are
//! refused by name.
#![allow(non_snake_case, non_upper_case_globals)]

use std::sync::atomic::AtomicUsize;

use mpi::error::{Class, Result, fail};

use super::Set;
use crate::cx::Cx;
use crate::layout::former::{duplicates, functions, renamed, variables};
use crate::table::rows;

variables! {
    MPI_UNWEIGHTED: usize = super::WEIGHTS[0];
    MPI_WEIGHTS_EMPTY: usize = super::WEIGHTS[1];
    MPI_T_PVAR_ALL_HANDLES: usize = super::ALL_HANDLES;
    MPI_F_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(1);
    MPI_F_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(1);
    MPI_F08_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(1);
    MPI_F08_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(1);
}

duplicates! { MPIR_Dup_fn }

functions! {
    MPI_File_c2f "PMPI_File_c2f" (file: usize) -> i32 { file as i32 }
    MPI_File_f2c "PMPI_File_f2c" (file: i32) -> usize { file as u32 as usize }
    MPIX_Query_cuda_support "PMPIX_Query_cuda_support" () -> i32 { 0 }
    MPIX_Query_hip_support "PMPIX_Query_hip_support" () -> i32 { 0 }
    MPIX_Query_ze_support "PMPIX_Query_ze_support" () -> i32 { 0 }
    MPIX_GPU_query_support "PMPIX_GPU_query_support" (_gpu: i32, is_supported: *mut i32) -> i32 {
        if is_supported.is_null() {
            return super::write(Set::Code, Class::ARG.0);
        }
        // SAFETY: not null, and the application passes the address of an `int`.
        unsafe { is_supported.write(0) };
        0
    }
}

// As MPI 4.1 took them up.
renamed! {
    MPIX_Delete_error_class "PMPIX_Delete_error_class" (class: i32) => PMPI_Remove_error_class;
    MPIX_Delete_error_code "PMPIX_Delete_error_code" (code: i32) => PMPI_Remove_error_code;
    MPIX_Delete_error_string "PMPIX_Delete_error_string" (code: i32) => PMPI_Remove_error_string;
}

fn refuse(_: &Cx) -> Result {
    fail(Class::UNSUPPORTED_OPERATION, "this is an extension of MPICH, which Tern does not have")
}

mod extensions {
    use super::{refuse, rows};

    rows! { "Extensions of MPICH";
        MPIX_Allreduce_enqueue() => refuse;
        MPIX_Allreduce_enqueue_c() => refuse;
        MPIX_Async_get_state() => refuse;
        MPIX_Async_spawn() => refuse;
        MPIX_Async_start() => refuse;
        MPIX_Comm_agree() => refuse;
        MPIX_Comm_create_errhandler_x() => refuse;
        MPIX_Comm_failure_ack() => refuse;
        MPIX_Comm_failure_get_acked() => refuse;
        MPIX_Comm_get_failed() => refuse;
        MPIX_Comm_get_stream() => refuse;
        MPIX_Comm_revoke() => refuse;
        MPIX_Comm_shrink() => refuse;
        MPIX_Comm_test_threadcomm() => refuse;
        MPIX_File_create_errhandler_x() => refuse;
        MPIX_Grequest_class_allocate() => refuse;
        MPIX_Grequest_class_create() => refuse;
        MPIX_Grequest_start() => refuse;
        MPIX_Info_set_hex() => refuse;
        MPIX_Irecv_enqueue() => refuse;
        MPIX_Irecv_enqueue_c() => refuse;
        MPIX_Isend_enqueue() => refuse;
        MPIX_Isend_enqueue_c() => refuse;
        MPIX_Op_create_x() => refuse;
        MPIX_Recv_enqueue() => refuse;
        MPIX_Recv_enqueue_c() => refuse;
        MPIX_Request_is_complete() => refuse;
        MPIX_Send_enqueue() => refuse;
        MPIX_Send_enqueue_c() => refuse;
        MPIX_Session_create_errhandler_x() => refuse;
        MPIX_Start_progress_thread() => refuse;
        MPIX_Stop_progress_thread() => refuse;
        MPIX_Stream_comm_create() => refuse;
        MPIX_Stream_comm_create_multiplex() => refuse;
        MPIX_Stream_create() => refuse;
        MPIX_Stream_free() => refuse;
        MPIX_Stream_irecv() => refuse;
        MPIX_Stream_irecv_c() => refuse;
        MPIX_Stream_isend() => refuse;
        MPIX_Stream_isend_c() => refuse;
        MPIX_Stream_progress() => refuse;
        MPIX_Stream_recv() => refuse;
        MPIX_Stream_recv_c() => refuse;
        MPIX_Stream_send() => refuse;
        MPIX_Stream_send_c() => refuse;
        MPIX_Threadcomm_finish() => refuse;
        MPIX_Threadcomm_free() => refuse;
        MPIX_Threadcomm_init() => refuse;
        MPIX_Threadcomm_start() => refuse;
        MPIX_Type_iov() => refuse;
        MPIX_Type_iov_len() => refuse;
        MPIX_Wait_enqueue() => refuse;
        MPIX_Waitall_enqueue() => refuse;
        MPIX_Win_create_errhandler_x() => refuse;
    }

    const _: super::Chapter = CHAPTER;
}

use crate::table::Chapter;
