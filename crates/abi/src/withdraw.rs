//! MPI 5.0 sections 3.7.3 and 3.8.4: what nobody will ask for any more, or wants back.

use mpi::error::{Class, Result, fail};
use mpi::request::{Body, REQUEST_NULL, Recipe};

use crate::cx::Cx;
use crate::grequest;
use crate::kind::handle::HandleRef;

/// `MPI_Request_free`: what is under way goes on.
pub fn free(cx: &Cx, request: HandleRef) -> Result {
    let handle = request.handle;
    let forget = {
        let mut world = cx.world();
        match world.objects.requests.get(handle).and_then(|request| request.body.as_ref()) {
            Some(Body::Collective(_)) => {
                return fail(
                    Class::REQUEST,
                    "argument `request` is a collective operation under way, which cannot be freed",
                );
            }
            Some(Body::Partitioned) => {
                return fail(
                    Class::REQUEST,
                    "argument `request` is a partitioned operation under way, which cannot be freed",
                );
            }
            Some(Body::General(_)) => true,
            _ => {
                if let Some(request) = world.objects.requests.remove(handle) {
                    if let Some(body) = request.body {
                        world.detach(body);
                    }
                    if let Some((Recipe::Partitioned(part), _)) = request.recipe.map(|recipe| *recipe) {
                        world.close_partitioned(part);
                    }
                }
                false
            }
        }
    };
    if forget {
        grequest::forget(cx, handle)?;
    }
    request.set(REQUEST_NULL);
    Ok(())
}

/// `MPI_Cancel` of what is not matched; what is matched completes (MPI 5.0 section 3.8.4). Of collectives it is erroneous, under
/// way as well as done (section 6.12).
pub fn cancel(cx: &Cx, request: HandleRef) -> Result {
    let general = {
        let mut world = cx.world();
        let world = &mut *world;
        let known = world.objects.requests.get(request.handle);
        if known.is_some_and(|known| known.is_collective && known.body.is_some()) {
            return fail(
                Class::REQUEST,
                "argument `request` is a collective operation, which cannot be cancelled",
            );
        }
        match known.and_then(|known| known.body.as_ref()) {
            Some(Body::General(general)) => (general.callbacks(), general.is_complete()),
            Some(Body::Receive(op, ..) | Body::Send(op, _)) => {
                world.engine.cancel(*op);
                world.engine.note();
                return Ok(());
            }
            Some(Body::Flush(_) | Body::Partitioned) => {
                return fail(Class::REQUEST, "argument `request` is an operation that cannot be cancelled");
            }
            None => return fail(Class::REQUEST, "argument `request` is an inactive persistent request"),
            Some(_) => return Ok(()),
        }
    };
    grequest::cancel(cx, general.0, general.1)
}
