//! Running a job: every rank a coroutine, one after another on this thread, in virtual time.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::clock::{Clock, Shared};
use crate::cluster::Cluster;
use crate::fault::Faults;
use crate::net::Net;
use crate::nic::Nic;
use crate::report::{Outcome, Report};
use crate::seat::State;
use crate::trace::Trace;

/// Address space of a stack; memory is only what is used of it.
const STACK_BYTES: usize = 256 << 10;

/// What to run and under which conditions.
#[derive(Clone, Debug)]
pub struct Job {
    cluster: Rc<Cluster>,
    ranks: usize,
    seed: u64,
    faults: Faults,
    trace_limit: usize,
    stack_bytes: usize,
}

/// A rank's program under way.
type Program<R> = Coroutine<(), (), R, DefaultStack>;

/// Runs `body` on each of `ranks` ranks of a cluster.
pub fn run<R: 'static>(
    cluster: &Cluster,
    ranks: usize,
    seed: u64,
    body: impl Fn(Nic<'_>) -> R + 'static,
) -> Result<Report<R>, String> {
    Job::new(cluster, ranks).seed(seed).run(body)
}

impl Job {
    /// A job without faults, seed 0.
    pub fn new(cluster: &Cluster, ranks: usize) -> Job {
        Job {
            cluster: Rc::new(cluster.clone()),
            ranks,
            seed: 0,
            faults: Faults::default(),
            trace_limit: 0,
            stack_bytes: STACK_BYTES,
        }
    }

    /// So many ranks on each host, instead of one per core.
    pub fn per_host(mut self, ranks: usize) -> Job {
        Rc::make_mut(&mut self.cluster).cores = ranks.max(1);
        self
    }

    /// From what chance follows.
    pub fn seed(mut self, seed: u64) -> Job {
        self.seed = seed;
        self
    }

    /// What goes wrong.
    pub fn faults(mut self, faults: Faults) -> Job {
        self.faults = faults;
        self
    }

    /// Draws the run, at most this number of slices.
    pub fn trace(mut self, limit: usize) -> Job {
        self.trace_limit = limit;
        self
    }

    /// Address space of a rank's stack.
    pub fn stack(mut self, bytes: usize) -> Job {
        self.stack_bytes = bytes;
        self
    }

    /// Runs `body` on every rank until all have ended, or nothing can happen any more.
    pub fn run<R: 'static>(self, body: impl Fn(Nic<'_>) -> R + 'static) -> Result<Report<R>, String> {
        let (capacity, name) = (self.cluster.capacity(), &self.cluster.name);
        if self.ranks == 0 || self.ranks > capacity {
            return Err(format!("{} ranks: cluster `{name}` has room for 1 to {capacity}", self.ranks));
        }
        if let Some((rank, _)) = self.faults.deaths.iter().find(|(rank, _)| *rank >= self.ranks) {
            return Err(format!("rank {rank} cannot die: there are {}", self.ranks));
        }
        let trace = (self.trace_limit > 0).then(|| Trace::new(self.cluster.rails.len(), self.trace_limit));
        let net = Net::new(&self.cluster, self.ranks, self.seed, self.faults.clone(), trace);
        let net = Rc::new(RefCell::new(net));
        let body = Rc::new(body);
        let start = |rank| self.start(&net, rank, body.clone());
        let mut programs = (0..self.ranks).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut results: Vec<Option<R>> = (0..self.ranks).map(|_| None).collect();
        let ended = catch_unwind(AssertUnwindSafe(|| drive(&net, &mut programs, &mut results)));
        dispose(programs);
        if let Err(panic) = ended {
            resume_unwind(panic);
        }
        let mut net = net.borrow_mut();
        let mut counters = net.counters;
        counters.events = net.queue.pushed();
        let outcome = |(rank, result): (usize, Option<R>)| match result {
            Some(value) => Outcome::Ended(value),
            None if net.seats[rank].state == State::Dead => Outcome::Died,
            None => Outcome::Stuck,
        };
        Ok(Report {
            end_ns: counters.end_ps.div_ceil(1000),
            trace_hash: net.hash,
            counters,
            results: results.into_iter().enumerate().map(outcome).collect(),
            trace: net.trace.take(),
        })
    }

    fn start<R: 'static>(
        &self,
        net: &Shared,
        rank: usize,
        body: Rc<impl Fn(Nic<'_>) -> R + 'static>,
    ) -> Result<Program<R>, String> {
        let stack = DefaultStack::new(self.stack_bytes)
            .map_err(|error| format!("no stack for rank {rank} of {}: {error}", self.ranks))?;
        let (net, cluster) = (net.clone(), self.cluster.clone());
        Ok(Coroutine::with_stack(stack, move |yielder, ()| {
            let clock = Rc::new(Clock::new(net, rank as u32, yielder));
            let value = body(Nic::new(clock.clone(), cluster));
            // Whatever comes before its end has still met this rank.
            clock.sync();
            clock.net.borrow_mut().end(clock.me, clock.now());
            value
        }))
    }
}

/// Resumes ranks in order of time until none can continue.
fn drive<R>(net: &Shared, programs: &mut [Program<R>], results: &mut [Option<R>]) {
    loop {
        let next = {
            let mut net = net.borrow_mut();
            let chosen = net.chosen.take();
            chosen.or_else(|| net.next())
        };
        let Some(rank) = next.map(|rank| rank as usize) else {
            let waits = net.borrow().seats.iter().any(|seat| seat.is_alive());
            if waits && net.borrow_mut().stuck() {
                continue;
            }
            return;
        };
        if let CoroutineResult::Return(value) = programs[rank].resume(()) {
            results[rank] = Some(value);
        }
    }
}

/// Ends the programs that have not ended: their stacks are unwound where panics do, else they stay.
fn dispose<R>(programs: Vec<Program<R>>) {
    for program in programs {
        if cfg!(panic = "unwind") || program.done() {
            drop(program);
        } else {
            std::mem::forget(program);
        }
    }
}
