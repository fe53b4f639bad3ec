//! How the calls of an application wait in windows, and what their rows call.

use std::ops::DerefMut;

use mpi::error::Result;
use mpi::handle::Handle;
use mpi::win::sync::{self, Awaited, Caller};

use crate::coll::run;
use crate::cx::Cx;
use crate::device::Device;
use crate::global::World;
use crate::kind::output::Out;
use crate::report::Waits;
use crate::{engine, wait};

impl Caller for Cx {
    type Device = Device;

    fn world(&self) -> impl DerefMut<Target = World> {
        Cx::world(self)
    }

    fn until<T>(&self, ready: impl FnMut(&mut World) -> Result<Option<T>>) -> Result<T> {
        wait::until(self, ready)
    }

    fn await_others<T>(
        &self,
        win: Handle,
        awaited: &Awaited,
        mut ready: impl FnMut(&mut World) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut awaited = awaited;
        wait::on(self, &mut awaited, |_, world| ready(world), |awaited| Waits::Window(win, awaited))
    }

    fn once<T>(&self, ready: impl FnOnce(&mut World) -> Result<Option<T>>) -> Result<Option<T>> {
        wait::once(self, ready)
    }

    fn progress(&self) -> Result {
        wait::progress(self)
    }

    fn leaves(&self, world: &World) {
        engine::leave(world);
    }

    fn least_words<const N: usize>(&self, comm: Handle, mine: [u64; N]) -> Result<[u64; N]> {
        run::least_words(self, comm, mine)
    }

    fn first_word(&self, comm: Handle, mine: u64) -> Result<u64> {
        Ok(run::spread_words(self, comm, 0, vec![mine])?[0])
    }
}

/// `MPI_Win_test`.
pub fn test(cx: &Cx, win: Handle, flag: Out<bool>) -> Result {
    flag.set(sync::test(cx, win)?);
    Ok(())
}
