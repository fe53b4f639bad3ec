//! What a core's copies cost: by the level of memory that the run they belong to lies in.

use std::cell::RefCell;
use std::rc::Rc;

use mpi::mem;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::queue::ps;

/// Copies that go on where an earlier one ended, as many as a pipeline has buffers.
const STREAMS: usize = 4;

/// A run of copies of neighbouring blocks, which meets the caches as one long copy.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    from_end: usize,
    to_end: usize,
    len: usize,
}

#[derive(Default)]
struct Streams {
    known: [Stream; STREAMS],
    next: usize,
}

/// The copies of one rank.
pub struct Copier<'y> {
    clock: Rc<Clock<'y>>,
    cluster: Rc<Cluster>,
    streams: RefCell<Streams>,
}

impl<'y> Copier<'y> {
    /// Of the rank of this clock.
    pub fn new(clock: Rc<Clock<'y>>, cluster: Rc<Cluster>) -> Copier<'y> {
        Copier { clock, cluster, streams: RefCell::default() }
    }

    /// Copies between two places.
    pub fn copy(&self, to: usize, from: usize, len: usize) {
        self.charge(to, from, len, f64::INFINITY);
        mem::copy(to, from, len);
    }

    /// Lets the time of a copy pass that is no faster than `bandwidth`.
    pub fn charge(&self, to: usize, from: usize, len: usize, bandwidth: f64) {
        let run = self.run(to, from, len);
        let time = self.cluster.copy_time_ns(len, run).max(len as f64 / bandwidth);
        let begin = self.clock.now();
        let end = match self.cluster.shared_memory_time_ns(len, run) {
            Some(ns) => {
                // Others of this host decide when its memory is free.
                self.clock.sync();
                let mut net = self.clock.net.borrow_mut();
                let host = net.host(self.clock.me);
                let free = &mut net.memories[host];
                *free = (*free).max(begin) + ps(ns);
                *free
            }
            None => 0,
        };
        let ends = (begin + ps(self.cluster.copy_ns + time)).max(end);
        self.clock.spend("copy", ends - begin, len);
        self.clock.net.borrow_mut().counters.copied_bytes += len as u64;
    }

    /// Length of the run of neighbouring copies that this one belongs to.
    fn run(&self, to: usize, from: usize, len: usize) -> usize {
        let [goes_on_from, goes_on_to] = {
            let arena = &self.clock.net.borrow().arena;
            [from, to].map(|addr| arena.holds(addr))
        };
        let streams = &mut *self.streams.borrow_mut();
        let goes_on = |stream: &&mut Stream| {
            goes_on_from && stream.from_end == from || goes_on_to && stream.to_end == to
        };
        if let Some(stream) = streams.known.iter_mut().find(goes_on) {
            *stream = Stream { from_end: from + len, to_end: to + len, len: stream.len + len };
            return stream.len;
        }
        streams.known[streams.next] = Stream { from_end: from + len, to_end: to + len, len };
        streams.next = (streams.next + 1) % STREAMS;
        len
    }
}
