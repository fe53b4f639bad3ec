//! Functions that libraries with another ABI have and the standard has not, or not any more: conversions for Fortran, and
//! what MPI-3 removed; and how more names of that kind are made.

use mpi::error::Class;

use super::{RawStatus, STATUS_IGNORE, Set, Word, c2f, f2c, write};
use crate::object::Object;

/// Functions under both names.
macro_rules! functions {
    ($($name:ident $pname:literal ($($p:ident: $ty:ty),*) -> $ret:ty $body:block)*) => { $(
        const _: () = {
            #[unsafe(export_name = $pname)]
            unsafe extern "C" fn entry($($p: $ty),*) -> $ret $body
        };
        $crate::table::alias! { $name "" }
    )* };
}

/// Functions that only got another name: the arguments are passed on.
macro_rules! renamed {
    ($($name:ident $pname:literal ($($p:ident: $ty:ty),*) => $now:ident;)*) => {
        unsafe extern "C" { $(
            fn $now($($p: $ty),*) -> i32;
        )* }

        $crate::layout::former::functions! { $(
            $name $pname ($($p: $ty),*) -> i32 {
                // SAFETY: the arguments are those of the function that has taken the place of this one.
                unsafe { $now($($p),*) }
            }
        )* }
    };
}

/// Functions for `MPI_DUP_FN` and its kin: the value of an attribute is copied as it is.
macro_rules! duplicates {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            _: $crate::layout::Word,
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
    )* };
}

/// Variables that C reads: addresses that stand for something else.
macro_rules! variables {
    ($($name:ident: $ty:ty = $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        static $name: $ty = $value;
    )* };
}

pub(super) use {duplicates, functions, renamed, variables};

macro_rules! conversions {
    ($($object:ident $c2f:ident $pc2f:literal $f2c:ident $pf2c:literal)*) => { functions! { $(
        $c2f $pc2f (handle: Word) -> i32 { c2f(Object::$object, handle) }
        $f2c $pf2c (handle: i32) -> Word { f2c(Object::$object, handle) }
    )* } };
}

conversions! {
    Comm MPI_Comm_c2f "PMPI_Comm_c2f" MPI_Comm_f2c "PMPI_Comm_f2c"
    Errhandler MPI_Errhandler_c2f "PMPI_Errhandler_c2f" MPI_Errhandler_f2c "PMPI_Errhandler_f2c"
    Group MPI_Group_c2f "PMPI_Group_c2f" MPI_Group_f2c "PMPI_Group_f2c"
    Info MPI_Info_c2f "PMPI_Info_c2f" MPI_Info_f2c "PMPI_Info_f2c"
    Message MPI_Message_c2f "PMPI_Message_c2f" MPI_Message_f2c "PMPI_Message_f2c"
    Op MPI_Op_c2f "PMPI_Op_c2f" MPI_Op_f2c "PMPI_Op_f2c"
    Request MPI_Request_c2f "PMPI_Request_c2f" MPI_Request_f2c "PMPI_Request_f2c"
    Session MPI_Session_c2f "PMPI_Session_c2f" MPI_Session_f2c "PMPI_Session_f2c"
    Datatype MPI_Type_c2f "PMPI_Type_c2f" MPI_Type_f2c "PMPI_Type_f2c"
    Win MPI_Win_c2f "PMPI_Win_c2f" MPI_Win_f2c "PMPI_Win_f2c"
}

functions! {
    MPI_Status_c2f "PMPI_Status_c2f" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f2c "PMPI_Status_f2c" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_c2f08 "PMPI_Status_c2f08" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f082c "PMPI_Status_f082c" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f2f08 "PMPI_Status_f2f08" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
    MPI_Status_f082f "PMPI_Status_f082f" (from: *const RawStatus, to: *mut RawStatus) -> i32 { copy(from, to) }
}

/// A status is the same integers everywhere. One that is to be ignored cannot be converted (MPI 5.0 section 19.3.5).
fn copy(from: *const RawStatus, to: *mut RawStatus) -> i32 {
    if [from.addr(), to.addr()].iter().any(|place| [0, STATUS_IGNORE].contains(place)) {
        return write(Set::Code, Class::ARG.0);
    }
    // SAFETY: neither NULL nor MPI_STATUS_IGNORE, so the addresses of statuses.
    unsafe { to.write(from.read()) };
    0
}

unsafe extern "C" {
    fn PMPI_Type_get_extent(datatype: Word, lb: *mut i64, extent: *mut i64) -> i32;
}

renamed! {
    MPI_Address "PMPI_Address" (location: usize, address: usize) => PMPI_Get_address;
    MPI_Errhandler_create "PMPI_Errhandler_create" (function: usize, errhandler: usize) => PMPI_Comm_create_errhandler;
    MPI_Errhandler_get "PMPI_Errhandler_get" (comm: Word, errhandler: usize) => PMPI_Comm_get_errhandler;
    MPI_Errhandler_set "PMPI_Errhandler_set" (comm: Word, errhandler: Word) => PMPI_Comm_set_errhandler;
    MPI_Type_hindexed "PMPI_Type_hindexed" (n: i32, lengths: usize, at: usize, of: Word, made: usize)
        => PMPI_Type_create_hindexed;
    MPI_Type_hvector "PMPI_Type_hvector" (n: i32, length: i32, stride: i64, of: Word, made: usize)
        => PMPI_Type_create_hvector;
    MPI_Type_struct "PMPI_Type_struct" (n: i32, lengths: usize, at: usize, of: usize, made: usize)
        => PMPI_Type_create_struct;
}

functions! {
    MPI_Type_extent "PMPI_Type_extent" (datatype: Word, extent: *mut i64) -> i32 {
        bounds(datatype, extent, |_, extent| extent)
    }
    MPI_Type_lb "PMPI_Type_lb" (datatype: Word, lb: *mut i64) -> i32 { bounds(datatype, lb, |lb, _| lb) }
    MPI_Type_ub "PMPI_Type_ub" (datatype: Word, ub: *mut i64) -> i32 {
        bounds(datatype, ub, |lb, extent| lb + extent)
    }
}

fn bounds(datatype: Word, place: *mut i64, of: impl FnOnce(i64, i64) -> i64) -> i32 {
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
