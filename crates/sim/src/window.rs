//! Windows of programs in virtual time: MPI's one-sided calls over the engine's epochs.

use std::cell::Cell;

use fabric::Span;
use mpi::error::Result;
use mpi::world::fault;
use proto::Exposed;
use proto::epoch::{Ending, Schedule};

use crate::rank::Rank;

/// A window of all ranks.
#[derive(Debug)]
pub struct Window {
    number: u32,
    /// Whether a fence has opened an epoch.
    fenced: Cell<bool>,
}

impl Rank<'_> {
    /// `MPI_Win_create` of all ranks; plans of its epochs are made so.
    pub fn window(&mut self, number: u32, memory: Span, schedule: Schedule) -> Result<Window> {
        let mine = self.world().engine.expose(number, memory).map_err(fault)?;
        let n = self.size();
        let (out, into) = (self.buffer(Exposed::LEN), self.buffer(n * Exposed::LEN));
        self.write(out, &mine.encode());
        self.allgather(out, into)?;
        let all = self.read(into);
        let engine = &mut self.world().engine;
        for (rank, bytes) in all.as_chunks::<{ Exposed::LEN }>().0.iter().enumerate() {
            let theirs = Exposed::decode(bytes).expect("a rank of this program has encoded it");
            engine.admit(number, rank, theirs).map_err(fault)?;
        }
        engine.schedule(number, schedule).map_err(fault)?;
        self.barrier()?;
        Ok(Window { number, fenced: Cell::new(false) })
    }

    /// `MPI_Win_free` of all ranks.
    pub fn free(&mut self, window: Window) -> Result<()> {
        self.barrier()?;
        self.world().engine.withdraw(window.number).map_err(fault)
    }

    /// `MPI_Put` of bytes.
    pub fn put(&mut self, window: &Window, target: usize, offset: usize, data: Span) -> Result<()> {
        self.world().engine.put(window.number, target, offset as u64, data).map_err(fault)
    }

    /// `MPI_Get` of bytes.
    pub fn get(&mut self, window: &Window, target: usize, offset: usize, into: Span) -> Result<()> {
        self.world().engine.get(window.number, target, offset as u64, into).map_err(fault)
    }

    /// `MPI_Win_post`.
    pub fn win_post(&mut self, window: &Window, origins: &[usize]) -> Result<()> {
        self.world().engine.post(window.number, origins).map_err(fault)
    }

    /// `MPI_Win_start`.
    pub fn win_start(&mut self, window: &Window, targets: &[usize]) -> Result<()> {
        self.world().engine.start(window.number, targets, true).map_err(fault)
    }

    /// `MPI_Win_complete`.
    pub fn win_complete(&mut self, window: &Window) -> Result<()> {
        self.close(window, Ending::Complete)
    }

    /// `MPI_Win_wait`.
    pub fn win_wait(&mut self, window: &Window, origins: &[usize]) -> Result<()> {
        let number = window.number;
        self.until(|world| {
            let over = world.engine.is_exposure_over(number, origins).map_err(fault)?;
            Ok(over.then_some(()))
        })
    }

    /// `MPI_Win_fence` of all ranks.
    pub fn win_fence(&mut self, window: &Window) -> Result<()> {
        let all: Vec<usize> = (0..self.size()).collect();
        if window.fenced.replace(true) {
            self.close(window, Ending::Complete)?;
            self.win_wait(window, &all)?;
        }
        // An end speaks of one origin. With two ranks that is all there are.
        if all.len() > 2 {
            self.barrier()?;
        }
        self.world().engine.start(window.number, &all, false).map_err(fault)
    }

    /// The last fence of a window, behind which no epoch is open.
    pub fn win_fence_last(&mut self, window: &Window) -> Result<()> {
        let all: Vec<usize> = (0..self.size()).collect();
        if window.fenced.replace(false) {
            self.close(window, Ending::Complete)?;
            self.win_wait(window, &all)?;
        }
        self.barrier()
    }

    /// `MPI_Win_lock` of a target that nobody else locks.
    pub fn win_lock(&mut self, window: &Window, target: usize) -> Result<()> {
        self.world().engine.start(window.number, &[target], false).map_err(fault)
    }

    /// `MPI_Win_unlock`.
    pub fn win_unlock(&mut self, window: &Window) -> Result<()> {
        self.close(window, Ending::Flush)
    }

    fn close(&mut self, window: &Window, ending: Ending) -> Result<()> {
        let number = window.number;
        self.world().engine.close(number, ending).map_err(fault)?;
        self.until(|world| Ok(world.engine.is_closed(number).map_err(fault)?.then_some(())))
    }
}
