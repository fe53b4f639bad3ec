//! MPI 5.0 section 3.9: starting persistent requests.

use mpi::error::{Error, Result};
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::handle::HandleRef;
use crate::layout::Slot;
use crate::object::Object;
use crate::request::Set;
use crate::wait;
/// `MPI_Start`.
pub fn start(cx: &Cx, request: HandleRef) -> Result {
    start_one(cx, request.handle)?;
    wait::progress(cx)
}

fn start_one(cx: &Cx, handle: Handle) -> Result {
    let mut world = cx.world();
    if let Some(request) = world.objects.requests.get(handle) {
        cx.concerns(Object::Comm, request.comm);
    }
    world.start(handle).map_err(|e| Error::new(e.class, format!("argument `request` {}", e.text)))
}

/// `MPI_Startall`.
pub fn startall(cx: &Cx, count: usize, requests: Array<Slot>) -> Result {
    let set = Set::new(cx, count, requests)?;
    for i in 0..set.len() {
        start_one(cx, set.handle(i))?;
    }
    wait::progress(cx)
}
