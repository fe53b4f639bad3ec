//! MPI 5.0 section 13.2: generalised requests. Their functions are called with no guard alive.

use mpi::comm::COMM_NULL;
use mpi::error::Result;
use mpi::grequest::{Callbacks, Grequest};
use mpi::handle::Handle;
use mpi::request::{Body, Ended, Requests};
use mpi::status::Status;

use crate::cx::Cx;
use crate::kind::output::Out;
use crate::layout::{self, RawStatus, Set};

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
    request.set(cx.world().objects.requests.add(COMM_NULL, Body::General(Box::new(general)))?);
    Ok(())
}

/// `MPI_Grequest_complete`.
pub fn complete(cx: &Cx, request: Handle) -> Result {
    let callbacks = {
        let mut world = cx.world();
        let Some(Some(Body::General(general))) =
            world.objects.requests.get_mut(request).map(|r| r.body.as_mut())
        else {
            return mpi::error::fail(mpi::Class::REQUEST, "argument `request` is not a generalized request");
        };
        let callbacks = general.callbacks();
        let unknown = general.complete()?;
        world.engine.note();
        if !unknown {
            return Ok(());
        }
        world.objects.requests.remove(request);
        callbacks
    };
    free(cx, callbacks)
}

/// Asks the application for the status.
pub fn query(cx: &Cx, callbacks: Callbacks) -> Result<Status> {
    let mut ints = layout::pack(Status::EMPTY.to_ints());
    // SAFETY: the application registered this address as a function of this type; no guard is
    // alive.
    let code = unsafe {
        let function: unsafe extern "C" fn(usize, *mut RawStatus) -> i32 =
            std::mem::transmute(callbacks.query);
        function(callbacks.extra_state, &raw mut ints)
    };
    checked(cx, code, "query")?;
    Ok(Status::from_ints(layout::unpack(ints)))
}

fn free(cx: &Cx, callbacks: Callbacks) -> Result {
    // SAFETY: as in `query`.
    let code = unsafe {
        let function: unsafe extern "C" fn(usize) -> i32 = std::mem::transmute(callbacks.free);
        function(callbacks.extra_state)
    };
    checked(cx, code, "free")
}

fn checked(cx: &Cx, code: i32, which: &str) -> Result {
    if code == 0 {
        return Ok(());
    }
    let text = format!("the {which} function of a generalized request returned {code}");
    Err(cx.anytime().codes.from_callback(layout::read(Set::Code, code), text))
}

/// A wait or test has seen the request complete: its status, and it goes.
pub fn conclude(cx: &Cx, request: Handle) -> Ended {
    let removed = cx.world().objects.requests.remove(request).and_then(|request| request.body);
    let Some(Body::General(general)) = removed else { return Ended::WELL };
    let callbacks = general.callbacks();
    let queried = query(cx, callbacks);
    let freed = free(cx, callbacks);
    match (queried, freed) {
        (Ok(status), Ok(())) => Ended { status, error: None },
        (Ok(status), Err(error)) => Ended { status, error: Some(error) },
        (Err(error), _) => Ended { status: Status::EMPTY, error: Some(error) },
    }
}

/// `MPI_Request_free` of a generalised request.
pub fn forget(cx: &Cx, request: Handle) -> Result {
    let callbacks = {
        let mut world = cx.world();
        let Some(Some(Body::General(general))) =
            world.objects.requests.get_mut(request).map(|r| r.body.as_mut())
        else {
            return Requests::refuse(request);
        };
        let callbacks = general.callbacks();
        if !general.forget()? {
            return Ok(());
        }
        world.objects.requests.remove(request);
        callbacks
    };
    free(cx, callbacks)
}

/// `MPI_Cancel` of a generalised request.
pub fn cancel(cx: &Cx, callbacks: Callbacks, complete: bool) -> Result {
    // SAFETY: as in `query`.
    let code = unsafe {
        let function: unsafe extern "C" fn(usize, i32) -> i32 = std::mem::transmute(callbacks.cancel);
        function(callbacks.extra_state, complete.into())
    };
    checked(cx, code, "cancel")
}
