//! Fields of a status (MPI 5.0 section 3.2.5).

use mpi::error::Result;
use mpi::status::Status;

use crate::cx::Cx;
use crate::kind::output::Out;
use crate::kind::text::StatusVar;

const SOURCE: usize = 0;
const TAG: usize = 1;
const ERROR: usize = 2;

fn get(status: StatusVar, field: usize, out: Out<i32>) -> Result {
    out.set(status.get()[field]);
    Ok(())
}

fn set(status: StatusVar, field: usize, value: i32) -> Result {
    let mut content = status.get();
    content[field] = value;
    status.set(content);
    Ok(())
}

/// `MPI_Status_get_source`.
pub fn get_source(_: &Cx, status: StatusVar, source: Out<i32>) -> Result {
    get(status, SOURCE, source)
}

/// `MPI_Status_get_tag`.
pub fn get_tag(_: &Cx, status: StatusVar, tag: Out<i32>) -> Result {
    get(status, TAG, tag)
}

/// `MPI_Status_get_error`.
pub fn get_error(_: &Cx, status: StatusVar, error: Out<i32>) -> Result {
    get(status, ERROR, error)
}

/// `MPI_Status_set_source`.
pub fn set_source(_: &Cx, status: StatusVar, source: i32) -> Result {
    set(status, SOURCE, source)
}

/// `MPI_Status_set_tag`.
pub fn set_tag(_: &Cx, status: StatusVar, tag: i32) -> Result {
    set(status, TAG, tag)
}

/// `MPI_Status_set_error`.
pub fn set_error(_: &Cx, status: StatusVar, error: i32) -> Result {
    set(status, ERROR, error)
}

/// `MPI_Test_cancelled`.
pub fn test_cancelled(_: &Cx, status: StatusVar, flag: Out<bool>) -> Result {
    flag.set(Status::from_ints(status.get()).is_cancelled());
    Ok(())
}

/// `MPI_Status_set_cancelled`.
pub fn set_cancelled(_: &Cx, status: StatusVar, flag: bool) -> Result {
    let mut content = Status::from_ints(status.get());
    content.set_cancelled(flag);
    status.set(content.to_ints());
    Ok(())
}
