//! MPI 5.0 section 3.9: starting persistent requests.

use mpi::error::{Error, Result};
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::handle::HandleRef;
use crate::layout::Slot;
use crate::object::Object;
use crate::request::Set;
use crate::{engine, wait};

/// `MPI_Start`.
pub fn start(cx: &Cx, request: HandleRef) -> Result {
    if start_one(cx, request.handle)? { Ok(()) } else { wait::progress(cx) }
}

/// Starts one; whether no look around is due ([`World::start`](mpi::world::World::start)).
fn start_one(cx: &Cx, handle: Handle) -> Result<bool> {
    let mut world = cx.world();
    if let Some(request) = world.objects.requests.get(handle) {
        cx.concerns(Object::Comm, request.comm);
    }
    let started = world.start(handle);
    engine::leave(&world);
    started.map_err(|e| Error::new(e.class, format!("argument `request` {}", e.text)))
}

/// `MPI_Startall`.
pub fn startall(cx: &Cx, count: usize, requests: Array<Slot>) -> Result {
    let set = Set::new(cx, count, requests)?;
    let mut all_left = true;
    for i in 0..set.len() {
        all_left &= start_one(cx, set.handle(i))?;
    }
    if all_left { Ok(()) } else { wait::progress(cx) }
}
