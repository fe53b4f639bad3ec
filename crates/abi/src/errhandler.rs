//! MPI 5.0 section 9.3: error handlers. What happens when one is called is in [`crate::raise`].

use mpi::errhandler::{Kind, NULL};
use mpi::error::Result;
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;

fn create(cx: &Cx, kind: Kind, function: usize, errhandler: Out<Handle>) -> Result {
    errhandler.set(cx.objects().errhandlers.create(kind, function)?);
    Ok(())
}

/// `MPI_Comm_create_errhandler`.
pub fn comm_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Kind::Comm, function, errhandler)
}

/// `MPI_Win_create_errhandler`.
pub fn win_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Kind::Win, function, errhandler)
}

/// `MPI_File_create_errhandler`.
pub fn file_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Kind::File, function, errhandler)
}

/// `MPI_Session_create_errhandler`.
pub fn session_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Kind::Session, function, errhandler)
}

/// `MPI_Errhandler_free`.
pub fn free(cx: &Cx, errhandler: HandleRef) -> Result {
    cx.objects().errhandlers.free(errhandler.handle)?;
    errhandler.set(NULL);
    Ok(())
}
