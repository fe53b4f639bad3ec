//! Running the schedules of collectives: to the end, as a request, again and again.

use std::sync::Arc;

use mpi::coll::{Call, Progress, Schedule, Tag, compile};
use mpi::comm::Place;
use mpi::error::Result;
use mpi::handle::Handle;
use mpi::request::{Body, Recipe, Running, Then};

use crate::cx::Cx;
use crate::global::World;
use crate::wait;

fn prepare(world: &World, place: Place, call: &Call, send: usize, recv: usize, then: Then) -> Running {
    let program = Arc::new(compile(call, &world.link, &world.forced));
    Running { schedule: Schedule::new(program, send, recv), packed: Vec::new(), place, then }
}

/// Runs a collective to its end. `send` and `recv` are the addresses of the call's buffers.
pub fn blocking(cx: &Cx, comm: Handle, call: &Call, send: usize, recv: usize) -> Result {
    let mut running = {
        let mut world = cx.world();
        let place = world.comm(comm)?.place.clone();
        let tag = Tag::new(call.kind, world.comm_mut(comm)?.next_run(false), false);
        let mut running = prepare(&world, place, call, send, recv, Then::Nothing);
        running.schedule.start(tag);
        running
    };
    loop {
        let progress = wait::until(cx, |world| {
            Ok(match world.advance(&mut running)? {
                Progress::Pending => None,
                other => Some(other),
            })
        })?;
        match progress {
            Progress::Call(reduce) => {
                wait::call(&reduce);
                running.schedule.called();
            }
            _ => return Ok(()),
        }
    }
}

/// Starts a collective and returns its request.
pub fn nonblocking(cx: &Cx, comm: Handle, call: &Call, send: usize, recv: usize) -> Result<Handle> {
    let handle = launch(cx, comm, call, send, recv, Then::Nothing)?;
    Ok(handle)
}

/// As [`nonblocking`], with something to do at the end.
pub fn launch(cx: &Cx, comm: Handle, call: &Call, send: usize, recv: usize, then: Then) -> Result<Handle> {
    let handle = {
        let mut world = cx.world();
        let place = world.comm(comm)?.place.clone();
        let tag = Tag::new(call.kind, world.comm_mut(comm)?.next_run(false), false);
        let mut running = prepare(&world, place, call, send, recv, then);
        running.schedule.start(tag);
        let handle = world.objects.requests.add(comm, Body::Collective(Box::new(running)))?;
        world.start_schedule(handle);
        handle
    };
    wait::progress(cx)?;
    Ok(handle)
}

/// Makes a persistent collective, inactive.
pub fn persistent(cx: &Cx, comm: Handle, call: &Call, send: usize, recv: usize) -> Result<Handle> {
    let mut world = cx.world();
    let place = world.comm(comm)?.place.clone();
    let tag = Tag::new(call.kind, world.comm_mut(comm)?.next_run(true), true);
    let running = prepare(&world, place.clone(), call, send, recv, Then::Nothing);
    world.objects.requests.add_persistent(comm, Recipe::Collective(Some(Box::new(running)), tag), place)
}
