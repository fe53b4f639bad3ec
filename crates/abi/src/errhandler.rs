//! MPI 5.0 section 9.3: error handlers. What happens when one is called is in [`crate::raise`].

use mpi::errhandler::{NULL, Raiser};
use mpi::error::{Class, Result, fail};
use mpi::handle::Handle;

use crate::attr::named;
use crate::cx::Cx;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;
use crate::object::Object;
use crate::raise;

fn create(cx: &Cx, kind: Raiser, function: usize, errhandler: Out<Handle>) -> Result {
    errhandler.set(cx.anytime().errhandlers.create(kind, function)?);
    Ok(())
}

/// `MPI_Comm_create_errhandler`.
pub fn comm_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Raiser::Comm, function, errhandler)
}

/// `MPI_Win_create_errhandler`.
pub fn win_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Raiser::Win, function, errhandler)
}

/// `MPI_File_create_errhandler`.
pub fn file_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Raiser::File, function, errhandler)
}

/// `MPI_Session_create_errhandler`.
pub fn session_create(cx: &Cx, function: usize, errhandler: Out<Handle>) -> Result {
    create(cx, Raiser::Session, function, errhandler)
}

/// `MPI_Comm_set_errhandler`.
pub fn comm_set(cx: &Cx, comm: Handle, errhandler: Handle) -> Result {
    named("errhandler", cx.anytime().errhandlers.set(Raiser::Comm, comm, errhandler))
}

/// `MPI_Comm_get_errhandler`.
pub fn comm_get(cx: &Cx, comm: Handle, errhandler: Out<Handle>) -> Result {
    errhandler.set(cx.anytime().errhandlers.get(Raiser::Comm, comm));
    Ok(())
}

/// `MPI_Session_set_errhandler`.
pub fn session_set(cx: &Cx, session: Handle, errhandler: Handle) -> Result {
    named("errhandler", cx.anytime().errhandlers.set(Raiser::Session, session, errhandler))
}

/// `MPI_Session_get_errhandler`.
pub fn session_get(cx: &Cx, session: Handle, errhandler: Out<Handle>) -> Result {
    errhandler.set(cx.anytime().errhandlers.get(Raiser::Session, session));
    Ok(())
}

/// `MPI_Win_set_errhandler`.
pub fn win_set(cx: &Cx, win: Handle, errhandler: Handle) -> Result {
    named("errhandler", cx.anytime().errhandlers.set(Raiser::Win, win, errhandler))
}

/// `MPI_Win_get_errhandler`.
pub fn win_get(cx: &Cx, win: Handle, errhandler: Out<Handle>) -> Result {
    errhandler.set(cx.anytime().errhandlers.get(Raiser::Win, win));
    Ok(())
}

/// `MPI_Errhandler_free`.
pub fn free(cx: &Cx, errhandler: HandleRef) -> Result {
    cx.anytime().errhandlers.free(errhandler.handle)?;
    errhandler.set(NULL);
    Ok(())
}

/// `MPI_Comm_call_errhandler`.
pub fn comm_call(cx: &Cx, comm: Handle, errorcode: i32) -> Result {
    call(cx, Object::Comm, comm, errorcode)
}

/// `MPI_Win_call_errhandler`.
pub fn win_call(cx: &Cx, win: Handle, errorcode: i32) -> Result {
    call(cx, Object::Win, win, errorcode)
}

/// `MPI_File_call_errhandler`.
pub fn file_call(cx: &Cx, file: Handle, errorcode: i32) -> Result {
    call(cx, Object::File, file, errorcode)
}

/// `MPI_Session_call_errhandler`.
pub fn session_call(cx: &Cx, session: Handle, errorcode: i32) -> Result {
    call(cx, Object::Session, session, errorcode)
}

fn call(cx: &Cx, object: Object, handle: Handle, errorcode: i32) -> Result {
    if cx.anytime().codes.known(errorcode).is_none() {
        return fail(Class::ARG, format!("argument `errorcode` is {errorcode}, not an error class or code"));
    }
    raise::call_errhandler(cx, object, handle, errorcode)
}
