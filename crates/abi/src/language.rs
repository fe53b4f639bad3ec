//! MPI 5.0 chapters 19 and 20: Fortran's view of handles, and what the ABI says about itself.

use std::sync::{Mutex, PoisonError};

use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;
use mpi::info::Info;

use crate::cx::Cx;
use crate::kind::not_null;
use crate::kind::output::Out;
use crate::layout;
use crate::object::INFO_NULL;

/// What the Fortran bindings told the library about their compiler. It outlives MPI_Finalize:
/// the compiler does not change.
static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran { booleans: None, info: None });

struct Fortran {
    booleans: Option<Booleans>,
    info: Option<Info>,
}

/// How Fortran writes `.TRUE.` and `.FALSE.` into a LOGICAL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Booleans {
    size: usize,
    yes: [u8; 16],
    no: [u8; 16],
}

/// `MPI_*_toint`.
pub fn to_int(handle: usize) -> i32 {
    layout::to_int(Handle(handle as u32))
}

/// `MPI_*_fromint`.
pub fn from_int(value: i32) -> usize {
    layout::from_int(value)
}

/// `MPI_Abi_get_version`: of the standard ABI, or that it is another.
pub fn abi_get_version(_: &Cx, major: Out<i32>, minor: Out<i32>) -> Result {
    major.set(layout::ABI_VERSION.0);
    minor.set(layout::ABI_VERSION.1);
    Ok(())
}

/// `MPI_Abi_get_info`: the sizes of the integer types.
pub fn abi_get_info(cx: &Cx, info: Out<Handle>) -> Result {
    let mut sizes = Info::new();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        sizes.set(key.as_bytes(), b"8")?;
    }
    info.set(cx.anytime().infos.insert(sizes)?);
    Ok(())
}

/// `MPI_Abi_set_fortran_info`: once in the life of a process.
pub fn abi_set_fortran_info(cx: &Cx, info: Handle) -> Result {
    let anytime = cx.anytime();
    let mut fortran = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    if fortran.info.is_some() {
        return fail(Class::ABI, "the Fortran properties have been set already");
    }
    fortran.info = anytime.optional_info(info)?.cloned();
    Ok(())
}

/// `MPI_Abi_get_fortran_info`: a new info object, or MPI_INFO_NULL if none was set.
pub fn abi_get_fortran_info(cx: &Cx, info: Out<Handle>) -> Result {
    let known = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner).info.clone();
    info.set(match known {
        Some(known) => cx.anytime().infos.insert(known)?,
        None => INFO_NULL,
    });
    Ok(())
}

/// `MPI_Abi_set_fortran_booleans`: once in the life of a process.
pub fn abi_set_fortran_booleans(_: &Cx, size: usize, yes: usize, no: usize) -> Result {
    check_logical_size(size)?;
    let mut given = Booleans { size, yes: [0; 16], no: [0; 16] };
    mpi::mem::read(not_null(yes, "logical_true")?, &mut given.yes[..size]);
    mpi::mem::read(not_null(no, "logical_false")?, &mut given.no[..size]);
    let mut fortran = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    if fortran.booleans.is_some() {
        return fail(Class::ABI, "the Fortran booleans have been set already");
    }
    fortran.booleans = Some(given);
    Ok(())
}

/// `MPI_Abi_get_fortran_booleans`.
pub fn abi_get_fortran_booleans(_: &Cx, size: usize, yes: usize, no: usize, is_set: Out<bool>) -> Result {
    check_logical_size(size)?;
    let fortran = FORTRAN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = match fortran.booleans {
        Some(known) if known.size != size => {
            return fail(
                Class::ABI,
                format!("argument `logical_size` is {size}, the booleans were set with {}", known.size),
            );
        }
        known => known,
    };
    is_set.set(known.is_some());
    if let Some(known) = known {
        mpi::mem::write(not_null(yes, "logical_true")?, &known.yes[..size]);
        mpi::mem::write(not_null(no, "logical_false")?, &known.no[..size]);
    }
    Ok(())
}

fn check_logical_size(size: usize) -> Result {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(()),
        _ => fail(Class::ARG, format!("argument `logical_size` is {size}, must be 1, 2, 4, 8 or 16")),
    }
}
