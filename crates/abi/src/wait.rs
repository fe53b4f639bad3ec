//! Waiting inside MPI: the one loop in which a blocking operation looks around until it is done.
//!
//! No guard is alive while the rank naps or a function of the application runs, so under
//! MPI_THREAD_MULTIPLE other threads get in, and reduction functions may ask MPI about types.

use mpi::error::Result;
use mpi::world::Polled;

use crate::cx::Cx;
use crate::global::World;
use crate::report::{self, Waits};
use crate::{engine, op};

/// Calls `ready` until it gives a value, looking around in between; for waits of which `mpiexec`
/// is told no more than the operation.
#[inline]
pub fn until<T>(cx: &Cx, mut ready: impl FnMut(&mut World) -> Result<Option<T>>) -> Result<T> {
    on(cx, &mut (), |(), world| ready(world), |()| Waits::Detached)
}

/// As [`until`] with a state of the wait, from which `waits` tells what is waited for when
/// `mpiexec` asks.
#[inline]
pub fn on<S, T>(
    cx: &Cx,
    state: &mut S,
    mut ready: impl FnMut(&mut S, &mut World) -> Result<Option<T>>,
    waits: impl for<'a> Fn(&'a S) -> Waits<'a>,
) -> Result<T> {
    let mut wait = engine::Wait::default();
    loop {
        let polled = {
            let mut world = cx.world();
            if let Some(value) = ready(state, &mut world)? {
                world.engine.awake();
                engine::leave(&world);
                return Ok(value);
            }
            wait.poll(&mut world)?
        };
        match polled {
            Polled::Moved => {}
            Polled::Call(handle, reduce) => {
                op::call(&reduce);
                cx.world().called(handle);
            }
            Polled::Nap(nap) => {
                if let Some(question) = launch::control::asked() {
                    report::answer(cx, question, &waits(state));
                }
                engine::nap(nap);
            }
        }
    }
}

/// Looks around once without waiting, as every test does.
pub fn progress(cx: &Cx) -> Result {
    loop {
        let call_now = {
            let mut world = cx.world();
            let call_now = world.progress()?;
            engine::leave(&world);
            call_now
        };
        let Some((handle, reduce)) = call_now else {
            if let Some(question) = launch::control::asked() {
                report::answer(cx, question, &Waits::Nothing);
            }
            return Ok(());
        };
        op::call(&reduce);
        cx.world().called(handle);
    }
}
