//! Transfers by the device that has the peer; what is about memory alone is the far one's, which has to know of it.

use super::Pair;
use crate::device::{Device, Fault, Rank, Span};
use crate::rights::{Region, Rights};
use crate::transfers::Transfers;
use crate::verbs::{Atomic, Local, Remote};

/// What stands for others passes on all they can.
#[deny(clippy::missing_trait_methods)]
impl<N: Device, F: Device> Transfers for Pair<N, F> {
    fn rails(&self) -> usize {
        self.far.as_ref().map_or_else(|| self.near.rails(), Transfers::rails)
    }

    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        match &mut self.far {
            Some(far) => far.register(rail, span, rights),
            None => self.near.register(rail, span, rights),
        }
    }

    fn deregister(&mut self, rail: usize, region: Region) {
        match &mut self.far {
            Some(far) => far.deregister(rail, region),
            None => self.near.deregister(rail, region),
        }
    }

    fn page_bytes(&self) -> usize {
        self.far.as_ref().map_or_else(|| self.near.page_bytes(), Transfers::page_bytes)
    }

    fn watch(&mut self, span: Span) -> bool {
        match &mut self.far {
            Some(far) => far.watch(span),
            None => self.near.watch(span),
        }
    }

    #[inline(always)]
    fn memory_changed(&self) -> bool {
        self.far.as_ref().is_some_and(Transfers::memory_changed)
    }

    fn take_changes(&mut self, gone: &mut Vec<Span>) {
        if let Some(far) = &mut self.far {
            far.take_changes(gone);
        }
    }

    #[inline(always)]
    fn is_unchanged(&mut self, span: Span) -> bool {
        self.far.as_mut().is_none_or(|far| far.is_unchanged(span))
    }

    fn frames(&mut self, rail: usize, region: Region, span: Span, out: &mut Vec<u64>) -> bool {
        self.far.as_mut().is_some_and(|far| far.frames(rail, region, span, out))
    }

    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        match self.place(to) {
            Some(place) => {
                self.near.post_write(place, rail, local, remote, work).map_err(|fault| self.named(fault))
            }
            None => self.far_mut().post_write(to, rail, local, remote, work),
        }
    }

    fn post_atomic(
        &mut self,
        at: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        atomic: Atomic,
        work: u64,
    ) -> Result<bool, Fault> {
        let far = if self.place(at).is_none() { self.far.as_mut() } else { None };
        far.map_or(Ok(false), |far| far.post_atomic(at, rail, local, remote, atomic, work))
    }

    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        match self.place(from) {
            Some(place) => {
                self.near.post_read(place, rail, local, remote, work).map_err(|fault| self.named(fault))
            }
            None => self.far_mut().post_read(from, rail, local, remote, work),
        }
    }

    fn try_send_behind(&mut self, to: Rank, rail: usize, head: [u64; 2], data: Span) -> bool {
        match self.place(to) {
            Some(place) => self.near.try_send_behind(place, rail, head, data),
            None => self.far_mut().try_send_behind(to, rail, head, data),
        }
    }

    fn writes_in_order(&self, to: Rank) -> bool {
        match (self.place(to), &self.far) {
            (None, Some(far)) => far.writes_in_order(to),
            (place, _) => self.near.writes_in_order(place.unwrap_or(0)),
        }
    }

    #[inline(always)]
    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        match self.near.completed() {
            Some((work, result)) => Some((work, result.map_err(|fault| self.named(fault)))),
            None if self.far.is_none() => None,
            None => self.completed_far(),
        }
    }

    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault> {
        match self.place(to) {
            Some(place) => self.near.try_send_from(place, head, data, work),
            None => self.far_mut().try_send_from(to, head, data, work),
        }
    }

    fn allocate(&mut self, len: usize) -> Span {
        match &mut self.far {
            Some(far) => far.allocate(len),
            None => self.near.allocate(len),
        }
    }

    fn load(&self, peer: Rank, addr: usize) -> u64 {
        match (self.place(peer), &self.far) {
            (None, Some(far)) => far.load(peer, addr),
            (place, _) => self.near.load(place.unwrap_or(0), addr),
        }
    }

    fn store(&mut self, peer: Rank, addr: usize, value: u64) {
        match self.place(peer) {
            Some(place) => self.near.store(place, addr, value),
            None => self.far_mut().store(peer, addr, value),
        }
    }
}
