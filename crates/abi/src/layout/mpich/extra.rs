//! Names that MPICH's library has and the standard has not, or not any more: conversions for Fortran as functions,
//! functions that MPI-3 removed, variables that stand for constants, and extensions, which are refused by name.
#![allow(non_snake_case, non_upper_case_globals)]

use std::sync::atomic::AtomicUsize;

use mpi::error::{Class, Result, fail};

use super::{RawStatus, Set};
use crate::cx::Cx;
use crate::table::{alias, rows};

/// Variables that C reads: addresses that stand for something else.
macro_rules! variables {
    ($($name:ident: $ty:ty = $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        static $name: $ty = $value;
    )* };
}

variables! {
    MPI_UNWEIGHTED: usize = 10;
    MPI_WEIGHTS_EMPTY: usize = 11;
    MPI_T_PVAR_ALL_HANDLES: usize = 1;
    MPI_F_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(1);
    MPI_F_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(1);
    MPI_F08_STATUS_IGNORE: AtomicUsize = AtomicUsize::new(1);
    MPI_F08_STATUSES_IGNORE: AtomicUsize = AtomicUsize::new(1);
}

/// `MPI_DUP_FN` and its kin: the value of an attribute is copied as it is.
#[unsafe(no_mangle)]
unsafe extern "C" fn MPIR_Dup_fn(
    _: i32,
    _: i32,
    _: usize,
    value: usize,
    copy: *mut usize,
    flag: *mut i32,
) -> i32 {
    // SAFETY: whoever calls a copy function gives it where the copy and the flag go.
    unsafe {
        copy.write(value);
        flag.write(1);
    }
    0
}

/// Functions under both names.
macro_rules! functions {
    ($($name:ident $pname:literal ($($p:ident: $ty:ty),*) -> $ret:ty $body:block)*) => { $(
        const _: () = {
            #[unsafe(export_name = $pname)]
            unsafe extern "C" fn entry($($p: $ty),*) -> $ret $body
        };
        alias! { $name "" }
    )* };
}

/// Handles are what they are in Fortran.
macro_rules! conversions {
    ($($c2f:ident $pc2f:literal $f2c:ident $pf2c:literal)*) => { functions! { $(
        $c2f $pc2f (handle: i32) -> i32 { handle }
        $f2c $pf2c (handle: i32) -> i32 { handle }
    )* } };
}

conversions! {
    MPI_Comm_c2f "PMPI_Comm_c2f" MPI_Comm_f2c "PMPI_Comm_f2c"
    MPI_Errhandler_c2f "PMPI_Errhandler_c2f" MPI_Errhandler_f2c "PMPI_Errhandler_f2c"
    MPI_Group_c2f "PMPI_Group_c2f" MPI_Group_f2c "PMPI_Group_f2c"
    MPI_Info_c2f "PMPI_Info_c2f" MPI_Info_f2c "PMPI_Info_f2c"
    MPI_Message_c2f "PMPI_Message_c2f" MPI_Message_f2c "PMPI_Message_f2c"
    MPI_Op_c2f "PMPI_Op_c2f" MPI_Op_f2c "PMPI_Op_f2c"
    MPI_Request_c2f "PMPI_Request_c2f" MPI_Request_f2c "PMPI_Request_f2c"
    MPI_Session_c2f "PMPI_Session_c2f" MPI_Session_f2c "PMPI_Session_f2c"
    MPI_Type_c2f "PMPI_Type_c2f" MPI_Type_f2c "PMPI_Type_f2c"
    MPI_Win_c2f "PMPI_Win_c2f" MPI_Win_f2c "PMPI_Win_f2c"
}

functions! {
    MPI_File_c2f "PMPI_File_c2f" (file: usize) -> i32 { file as i32 }
    MPI_File_f2c "PMPI_File_f2c" (file: i32) -> usize { file as u32 as usize }
    MPI_Status_c2f "PMPI_Status_c2f" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f2c "PMPI_Status_f2c" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_c2f08 "PMPI_Status_c2f08" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f082c "PMPI_Status_f082c" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f2f08 "PMPI_Status_f2f08" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f082f "PMPI_Status_f082f" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
}

/// A status is five integers everywhere. One that is to be ignored cannot be converted (MPI 5.0 section 19.3.5).
fn copy(from: *const RawStatus, to: *mut RawStatus) -> i32 {
    if from.addr() <= 1 || to.addr() <= 1 {
        return super::write(Set::Code, Class::ARG.0);
    }
    // SAFETY: neither NULL nor MPI_STATUS_IGNORE, so the addresses of statuses.
    unsafe { to.write(from.read()) };
    0
}

unsafe extern "C" {
    fn PMPI_Get_address(location: usize, address: usize) -> i32;
    fn PMPI_Comm_create_errhandler(function: usize, errhandler: usize) -> i32;
    fn PMPI_Comm_get_errhandler(comm: i32, errhandler: usize) -> i32;
    fn PMPI_Comm_set_errhandler(comm: i32, errhandler: i32) -> i32;
    fn PMPI_Remove_error_class(class: i32) -> i32;
    fn PMPI_Remove_error_code(code: i32) -> i32;
    fn PMPI_Remove_error_string(code: i32) -> i32;
    fn PMPI_Type_create_hindexed(n: i32, lengths: usize, at: usize, of: i32, made: usize) -> i32;
    fn PMPI_Type_create_hvector(n: i32, length: i32, stride: i64, of: i32, made: usize) -> i32;
    fn PMPI_Type_create_struct(n: i32, lengths: usize, at: usize, of: usize, made: usize) -> i32;
    fn PMPI_Type_get_extent(datatype: i32, lb: *mut i64, extent: *mut i64) -> i32;
}

/// Functions that only got another name, when they were removed or became standard: the arguments are passed on.
macro_rules! renamed {
    ($($name:ident $pname:literal ($($p:ident: $ty:ty),*) => $now:ident;)*) => { functions! { $(
        $name $pname ($($p: $ty),*) -> i32 {
            // SAFETY: the arguments are those of the function that has taken the place of this one.
            unsafe { $now($($p),*) }
        }
    )* } };
}

renamed! {
    MPI_Address "PMPI_Address" (location: usize, address: usize) => PMPI_Get_address;
    MPI_Errhandler_create "PMPI_Errhandler_create" (function: usize, errhandler: usize) => PMPI_Comm_create_errhandler;
    MPI_Errhandler_get "PMPI_Errhandler_get" (comm: i32, errhandler: usize) => PMPI_Comm_get_errhandler;
    MPI_Errhandler_set "PMPI_Errhandler_set" (comm: i32, errhandler: i32) => PMPI_Comm_set_errhandler;
    MPIX_Delete_error_class "PMPIX_Delete_error_class" (class: i32) => PMPI_Remove_error_class;
    MPIX_Delete_error_code "PMPIX_Delete_error_code" (code: i32) => PMPI_Remove_error_code;
    MPIX_Delete_error_string "PMPIX_Delete_error_string" (code: i32) => PMPI_Remove_error_string;
    MPI_Type_hindexed "PMPI_Type_hindexed" (n: i32, lengths: usize, at: usize, of: i32, made: usize)
        => PMPI_Type_create_hindexed;
    MPI_Type_hvector "PMPI_Type_hvector" (n: i32, length: i32, stride: i64, of: i32, made: usize)
        => PMPI_Type_create_hvector;
    MPI_Type_struct "PMPI_Type_struct" (n: i32, lengths: usize, at: usize, of: usize, made: usize)
        => PMPI_Type_create_struct;
}

functions! {
    MPI_Type_extent "PMPI_Type_extent" (datatype: i32, extent: *mut i64) -> i32 {
        bounds(datatype, extent, |_, extent| extent)
    }
    MPI_Type_lb "PMPI_Type_lb" (datatype: i32, lb: *mut i64) -> i32 { bounds(datatype, lb, |lb, _| lb) }
    MPI_Type_ub "PMPI_Type_ub" (datatype: i32, ub: *mut i64) -> i32 {
        bounds(datatype, ub, |lb, extent| lb + extent)
    }
}

fn bounds(datatype: i32, place: *mut i64, of: impl FnOnce(i64, i64) -> i64) -> i32 {
    let (mut lb, mut extent) = (0, 0);
    // SAFETY: the addresses of variables of this function; what `place` is the operation is told by NULL.
    let code = unsafe {
        let wanted = |to: *mut i64| if place.is_null() { place } else { to };
        PMPI_Type_get_extent(datatype, wanted(&raw mut lb), wanted(&raw mut extent))
    };
    if code == 0 {
        // SAFETY: not null, and the application passes the address of an `MPI_Aint`.
        unsafe { place.write(of(lb, extent)) };
    }
    code
}

functions! {
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
