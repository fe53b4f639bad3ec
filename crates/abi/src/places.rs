//! Rank and size in each communicator, for whoever must not wait: a signal handler that interrupted MPI
//! may ask for them before it ends the job, whatever lock its own thread holds.
//!
//! A row per index of a handle, in pieces that are allocated once. A row is written by who has the rank and
//! read by anybody: the handle, which is used once only, says whether the rest belongs to it.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use mpi::comm::{COMM_SELF, COMM_WORLD};
use mpi::handle::Handle;
use shm::watched;

/// This process in a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its rank.
    pub rank: u32,
    /// How many members there are.
    pub size: u32,
}

/// What is kept of one communicator; a handle of 0 is none.
struct Row {
    handle: AtomicU32,
    rank: AtomicU32,
    size: AtomicU32,
}

const ROWS: usize = 1024;

/// Those of dynamic handles, by the bits of their index.
static PIECES: [AtomicPtr<[Row; ROWS]>; ROWS] = [const { AtomicPtr::new(null_mut()) }; ROWS];
static WORLD: Row = Row::empty();
static OWN: Row = Row::empty();

impl Row {
    const fn empty() -> Row {
        Row { handle: AtomicU32::new(0), rank: AtomicU32::new(0), size: AtomicU32::new(0) }
    }
}

fn row(handle: Handle) -> Option<&'static Row> {
    match handle {
        COMM_WORLD => return Some(&WORLD),
        COMM_SELF => return Some(&OWN),
        _ if handle.is_predefined() => return None,
        _ => {}
    }
    let index = handle.0 as usize % (ROWS * ROWS);
    // SAFETY: null or made by `add` from a box, and never freed.
    let piece = unsafe { PIECES[index / ROWS].load(Ordering::Acquire).as_ref() }?;
    Some(&piece[index % ROWS])
}

/// A communicator is there. To be called by who has the rank.
pub fn add(handle: Handle, rank: u32, size: u32) {
    if !handle.is_predefined() && row(handle).is_none() {
        let piece = Box::into_raw(Box::new([const { Row::empty() }; ROWS]));
        PIECES[handle.0 as usize % (ROWS * ROWS) / ROWS].store(piece, Ordering::Release);
    }
    let Some(row) = row(handle) else { return };
    watched::atomic(row);
    row.rank.store(rank, Ordering::Relaxed);
    row.size.store(size, Ordering::Relaxed);
    row.handle.store(handle.0, Ordering::Release);
}

/// A communicator goes. To be called by who has the rank.
pub fn remove(handle: Handle) {
    if let Some(row) = row(handle) {
        row.handle.store(0, Ordering::Release);
    }
}

/// This process in a communicator, if there is one of this handle.
#[inline]
pub fn of(handle: Handle) -> Option<Place> {
    let row = row(handle)?;
    let is_there = || row.handle.load(Ordering::Acquire) == handle.0;
    if !is_there() {
        return None;
    }
    let place = Place { rank: row.rank.load(Ordering::Acquire), size: row.size.load(Ordering::Acquire) };
    is_there().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn communicators_come_and_go() {
        // Indices of their own: other tests make communicators too.
        let handles = [Handle(3 << 20 | 0xf_fff0), Handle(4 << 20 | 0xf_fff0), Handle(1 << 20 | 0xf_fbff)];
        for (i, handle) in handles.into_iter().enumerate() {
            assert_eq!(of(handle), None);
            add(handle, i as u32, 10);
            assert_eq!(of(handle), Some(Place { rank: i as u32, size: 10 }));
        }
        assert_eq!(of(handles[0]), None, "the index is another communicator's");
        remove(handles[1]);
        assert_eq!(of(handles[1]), None);
        assert_eq!(of(Handle(0x100)), None);
    }
}
