//! MPI 5.0 section 13.2: generalised requests, as far as the program drives them. What the wait
//! or test that completes one calls is in [`finish`].

use mpi::comm::COMM_NULL;
use mpi::error::{Class, Result, fail};
use mpi::grequest::{Callbacks, Grequest};
use mpi::handle::Handle;
use mpi::request::{Body, Requests};
use mpi::status::Status;

use crate::attr::named;
use crate::cx::Cx;
use crate::kind::output::Out;

type QueryFn = unsafe extern "C" fn(usize, *mut [i32; 8]) -> i32;
type FreeFn = unsafe extern "C" fn(usize) -> i32;
type CancelFn = unsafe extern "C" fn(usize, i32) -> i32;

/// `MPI_Grequest_start`.
pub fn start(
    cx: &Cx,
    query: usize,
    free: usize,
    cancel: usize,
    extra_state: usize,
    request: Out<Handle>,
) -> Result {
    let general = Grequest::start(Callbacks { query, free, cancel, extra_state })?;
    request.set(cx.objects().requests.add(COMM_NULL, Body::General(Box::new(general)))?);
    Ok(())
}

/// `MPI_Grequest_complete`.
pub fn complete(cx: &Cx, request: Handle) -> Result {
    let (gone, callbacks) = with(cx, request, |general| Ok((general.complete()?, general.callbacks())))?;
    if gone {
        cx.objects().requests.remove(request);
        call_free(cx, &callbacks)?;
    }
    Ok(())
}

/// `MPI_Request_free` of a generalised request. Until the program completes it, it stays
/// reachable for [`complete`] alone.
pub fn forget(cx: &Cx, request: Handle) -> Result {
    let (gone, callbacks) = with(cx, request, |general| Ok((general.forget()?, general.callbacks())))?;
    if gone {
        cx.objects().requests.remove(request);
        call_free(cx, &callbacks)?;
    }
    Ok(())
}

/// `MPI_Cancel` of a generalised request.
pub fn cancel(cx: &Cx, request: Handle) -> Result {
    let (complete, callbacks) =
        with(cx, request, |general| Ok((general.is_complete(), general.callbacks())))?;
    // SAFETY: the application registered this address as a function of this type; no guard is
    // alive, so it may call MPI.
    let code = unsafe {
        let function: CancelFn = std::mem::transmute(callbacks.cancel);
        function(callbacks.extra_state, complete.into())
    };
    result(cx, "cancel", code)
}

/// What a wait or test does with a request it finds complete: asks the program for the status,
/// lets it free its state and forgets the request, also when one of the functions fails (the
/// request is gone either way, MPI 5.0 section 13.2).
pub fn finish(cx: &Cx, request: Handle) -> Result<Status> {
    let callbacks = with(cx, request, |general| Ok(general.callbacks()))?;
    let queried = query(cx, &callbacks);
    cx.objects().requests.remove(request);
    let freed = call_free(cx, &callbacks);
    let status = queried?;
    freed.map(|()| status)
}

/// What `MPI_Request_get_status` does with a request it finds complete: it stays.
pub fn status(cx: &Cx, request: Handle) -> Result<Status> {
    let callbacks = with(cx, request, |general| Ok(general.callbacks()))?;
    query(cx, &callbacks)
}

fn query(cx: &Cx, callbacks: &Callbacks) -> Result<Status> {
    let mut status = Status::EMPTY.to_ints();
    // SAFETY: as in `cancel`; a status is 8 ints in the standard ABI.
    let code = unsafe {
        let function: QueryFn = std::mem::transmute(callbacks.query);
        function(callbacks.extra_state, &raw mut status)
    };
    result(cx, "query", code)?;
    Ok(Status::from_ints(status))
}

fn call_free(cx: &Cx, callbacks: &Callbacks) -> Result {
    // SAFETY: as in `cancel`.
    let code = unsafe {
        let function: FreeFn = std::mem::transmute(callbacks.free);
        function(callbacks.extra_state)
    };
    result(cx, "free", code)
}

fn result(cx: &Cx, name: &str, code: i32) -> Result {
    if code == 0 {
        return Ok(());
    }
    let text = format!("the {name} function of the generalized request returned {code}");
    Err(cx.objects().codes.from_callback(code, text))
}

fn with<T>(cx: &Cx, request: Handle, f: impl FnOnce(&mut Grequest) -> Result<T>) -> Result<T> {
    let mut objects = cx.objects();
    match objects.requests.get_mut(request) {
        Some(mpi::request::Request { body: Some(Body::General(general)), .. }) => f(general),
        Some(_) => fail(Class::REQUEST, "argument `request` is not a generalized request"),
        None => named("request", Requests::refuse(request)),
    }
}
