//! Waiting inside MPI: the one loop in which a blocking operation looks around until it is done.
//!
//! No guard is alive while the rank naps or a function of the application runs, so under
//! MPI_THREAD_MULTIPLE other threads get in, and reduction functions may ask MPI about types.

use fabric::Nap;
use mpi::error::Result;
use mpi::world::Polled;

use crate::cx::Cx;
use crate::global::{self, World};
use crate::{op, report};

/// Calls `ready` until it gives a value, looking around in between.
#[inline]
pub fn until<T>(cx: &Cx, mut ready: impl FnMut(&mut World) -> Result<Option<T>>) -> Result<T> {
    loop {
        let polled = {
            let mut world = cx.world();
            if let Some(value) = ready(&mut world)? {
                world.engine.awake();
                return Ok(value);
            }
            world.poll()?
        };
        match polled {
            Polled::Moved => {}
            Polled::Call(handle, reduce) => {
                op::call(&reduce);
                cx.world().called(handle);
            }
            Polled::Nap(nap) => {
                if launch::control::asked() {
                    report::answer(cx);
                }
                nap.take();
            }
        }
        global::let_others_in();
    }
}

/// Looks around once without waiting, as every test does.
pub fn progress(cx: &Cx) -> Result {
    loop {
        let call_now = cx.world().progress()?;
        let Some((handle, reduce)) = call_now else {
            if launch::control::asked() {
                report::answer(cx);
            }
            return Ok(());
        };
        op::call(&reduce);
        cx.world().called(handle);
    }
}
