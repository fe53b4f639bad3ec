//! Waiting inside MPI: the one loop in which a blocking operation looks around until it is done, and
//! the one look of those that do not block.
//!
//! No guard is alive while the rank naps or a function of the application runs, so under
//! MPI_THREAD_MULTIPLE other threads get in, and reduction functions may ask MPI about types.

use fabric::Nap;
use mpi::error::Result;
use mpi::world::Polled;

use crate::cx::Cx;
use crate::global::World;
use crate::report::{self, Waits};
use crate::{dynamic, engine, op};

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
    let mut seen = None;
    loop {
        let polled = {
            let mut world = cx.world();
            if let Some(value) = ready(state, &mut world)? {
                world.engine.awake();
                engine::leave(&world);
                return Ok(value);
            }
            let polled = wait.poll(&mut world)?;
            if matches!(polled, Polled::Nap(_)) {
                dynamic::heed_losses(&mut world);
            }
            polled
        };
        match polled {
            Polled::Moved => {}
            Polled::Call(handle, reduce) => {
                op::call(&reduce);
                cx.world().called(handle);
            }
            Polled::Nap(nap) => {
                cx.tell_tools();
                if let Some(question) = launch::control::asked() {
                    // The look around may have been before the question: another one, then the answer.
                    if seen.replace(question) != Some(question) {
                        continue;
                    }
                    report::answer(cx, question, &waits(state));
                }
                engine::nap(nap);
            }
        }
    }
}

/// Looks around once and asks `ready`, as every test and probe does. In vain where ranks outnumber
/// cores, the core goes to whoever can bring what was looked for: a program that polls would else
/// keep it for as long as the system lets it.
pub fn once<T>(cx: &Cx, ready: impl FnOnce(&mut World) -> Result<Option<T>>) -> Result<Option<T>> {
    progress(cx)?;
    let spare = {
        let mut world = cx.world();
        match ready(&mut world)? {
            None => world.engine.in_vain(),
            found => return Ok(found),
        }
    };
    if let Some(nap) = spare {
        nap.take();
    }
    Ok(None)
}

/// Looks around once without waiting.
pub fn progress(cx: &Cx) -> Result {
    let asked = launch::control::asked();
    loop {
        let call_now = {
            let mut world = cx.world();
            let call_now = world.progress()?;
            dynamic::heed_losses(&mut world);
            engine::leave(&world);
            call_now
        };
        let Some((handle, reduce)) = call_now else {
            if let Some(question) = asked {
                report::answer(cx, question, &Waits::Nothing);
            }
            return Ok(());
        };
        op::call(&reduce);
        cx.world().called(handle);
    }
}
