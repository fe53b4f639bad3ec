//! What the stack asks of this process: where bytes go, and what has come.

use super::link::Landing;
use super::memory;
use crate::stack::{Arrived, Atomic, Place, Receive, Sink};
use fabric::{Local, Rank, Span};
use std::collections::VecDeque;

/// See the [module](self).
#[derive(Default)]
pub struct Host {
    /// Receive buffers, and those that connections fill, by number.
    pub free: VecDeque<(Local, u64)>,
    pub filling: Filling,
    next: u64,
    /// Messages that have come: the work of their buffer, and their length.
    pub arrived: VecDeque<(u64, usize)>,
    /// Peers whose writes have landed since that was asked for, and whether the one in hand has.
    pub touched: Vec<Rank>,
    pub is_touched: bool,
}

/// Receive buffers that messages fill which have begun, by numbers that grow: those with which a peer each is in the middle.
#[derive(Default)]
pub struct Filling(Vec<(u64, (Local, u64))>);

impl Filling {
    fn place(&self, id: u64) -> Option<usize> {
        self.0.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    /// The buffer of a message.
    fn get(&self, id: u64) -> Option<Local> {
        self.place(id).map(|at| self.0[at].1.0)
    }

    /// A message ends; of one that has ended nothing is known.
    pub fn remove(&mut self, id: u64) -> Option<(Local, u64)> {
        self.place(id).map(|at| self.0.remove(at).1)
    }
}

impl Host {
    /// Where bytes are to be placed.
    pub fn address(&self, place: Place) -> usize {
        match place {
            Place::Region { to, .. } => to as usize,
            Place::Buffer { id, offset } => {
                let local = self.filling.get(id).expect("a message that has begun has its buffer");
                local.span.addr + offset as usize
            }
        }
    }
}

impl Landing for Host {
    fn span(&self, place: Place, len: usize) -> Span {
        Span { addr: self.address(place), len }
    }

    fn touched(&mut self) {
        self.is_touched = true;
    }
}

impl Sink for Host {
    fn receive(&mut self, _msn: u32) -> Receive {
        let Some((local, work)) = self.free.pop_front() else { return Receive::Later };
        let id = self.next;
        self.next += 1;
        self.filling.0.push((id, (local, work)));
        Receive::Buffer { id, len: local.span.len }
    }

    fn place(&mut self, place: Place, bytes: &[u8]) {
        self.is_touched |= matches!(place, Place::Region { .. });
        memory::copy(self.address(place), bytes.as_ptr() as usize, bytes.len());
    }

    fn arrived(&mut self, arrived: Arrived) {
        if let Some((_, work)) = self.filling.remove(arrived.id) {
            self.arrived.push_back((work, arrived.len as usize));
        }
    }

    fn atomic(&mut self, _stag: u32, to: u64, atomic: &Atomic) -> u64 {
        self.is_touched = true;
        memory::change(to as usize, atomic)
    }
}
