//! Waiting inside MPI: the one loop in which a blocking operation looks around until it is done.
//!
//! No guard is alive while the rank naps or a function of the application runs, so under
//! MPI_THREAD_MULTIPLE other threads get in, and reduction functions may ask MPI about types.

use fabric::Nap;
use mpi::coll::UserReduce;
use mpi::error::Result;
use mpi::world::Polled;

use crate::cx::Cx;
use crate::global::{self, World};
use crate::report;

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
                call(&reduce);
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
        call(&reduce);
        cx.world().called(handle);
    }
}

/// Calls a reduction function of the application.
pub fn call(reduce: &UserReduce) {
    let (invec, inout) = (reduce.in_addr, reduce.inout_addr);
    let mut datatype = reduce.datatype.0 as usize;
    // SAFETY: the application registered this address as a function of this type, and passed the
    // buffers (or they are scratch memory of the schedule) with that many elements.
    unsafe {
        if reduce.large {
            let function: unsafe extern "C" fn(usize, usize, *mut i64, *mut usize) =
                std::mem::transmute(reduce.function);
            let mut len = reduce.count as i64;
            function(invec, inout, &raw mut len, &raw mut datatype);
        } else {
            let function: unsafe extern "C" fn(usize, usize, *mut i32, *mut usize) =
                std::mem::transmute(reduce.function);
            let mut len = reduce.count as i32;
            function(invec, inout, &raw mut len, &raw mut datatype);
        }
    }
}
