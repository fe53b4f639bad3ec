//! Virtual time of actors that take turns: whoever is earliest acts. An actor is a coroutine; it gives way
//! when its time passes, so what it does afterwards is seen by all who come later, and by nobody before.

use super::caches::Caches;
use crate::fake::{Effort, Time};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use fabric::Span;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What things cost, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// From the end of sending a frame to its arrival.
    pub flight_ns: u64,
    /// To send a frame or to take one, beside its payload.
    pub frame_ns: u64,
    /// Bytes copied in a nanosecond: into frames and out of them.
    pub copies: u64,
    /// To reach memory of a peer, and bytes copied there in a nanosecond.
    pub call_ns: u64,
    pub singles: u64,
    /// Bytes that come in a nanosecond from the cache of the core that wrote them, or leave the caches of all that have them.
    /// Frames always do, and have it in what their copies cost.
    pub carries: u64,
}

#[derive(Clone, Copy)]
struct Actor {
    at_ns: u64,
    naps: bool,
    /// When its nap ends by itself.
    until_ns: u64,
    copied_ns: u64,
    ended: bool,
}

/// The time of all actors.
pub struct Hours {
    costs: Cell<Costs>,
    caches: RefCell<Caches>,
    actors: RefCell<Vec<Actor>>,
    current: Cell<usize>,
    yielders: RefCell<Vec<*const Yielder<(), ()>>>,
    /// When frames arrive that are under way.
    arrivals: RefCell<Vec<u64>>,
}

impl Hours {
    /// At the beginning.
    pub fn new(costs: Costs) -> Rc<Hours> {
        let (actors, yielders, arrivals) = (RefCell::default(), RefCell::default(), RefCell::default());
        let (costs, caches) = (Cell::new(costs), RefCell::default());
        Rc::new(Hours { costs, caches, actors, current: Cell::new(0), yielders, arrivals })
    }

    /// What things cost from here on.
    pub fn set_costs(&self, costs: Costs) {
        self.costs.set(costs);
    }

    /// It costs something from here on to reach this buffer where it lies in another cache. Each actor has a core.
    pub fn know(&self, buffer: Span) {
        self.caches.borrow_mut().know(buffer);
    }

    /// The actor that runs reads a buffer.
    pub fn read(&self, buffer: Span) {
        let moves = self.caches.borrow_mut().read(self.current.get(), buffer);
        self.pass(moves as u64 / self.costs.get().carries);
    }

    /// It writes one.
    pub fn write(&self, buffer: Span) {
        let moves = self.caches.borrow_mut().write(self.current.get(), buffer);
        self.pass(moves as u64 / self.costs.get().carries);
    }

    /// Lets time pass for the actor that runs.
    pub fn pass(&self, ns: u64) {
        self.actors.borrow_mut()[self.current.get()].at_ns += ns;
        self.give_way();
    }

    /// The actor that runs waits until something changes, at most until a time.
    pub fn nap_until(&self, until_ns: u64) {
        let now_ns = self.now_ns();
        self.arrivals.borrow_mut().retain(|at| *at > now_ns);
        let until_ns = self.arrivals.borrow().iter().fold(until_ns, |soonest, at| soonest.min(*at));
        {
            let actor = &mut self.actors.borrow_mut()[self.current.get()];
            (actor.naps, actor.until_ns) = (true, until_ns);
        }
        self.give_way();
    }

    /// Time that an actor has spent on copies.
    pub fn copied_ns(&self, actor: usize) -> u64 {
        self.actors.borrow()[actor].copied_ns
    }

    fn give_way(&self) {
        let yielder = self.yielders.borrow()[self.current.get()];
        // SAFETY: the coroutine of this actor runs, and with it the function that this belongs to.
        unsafe { (*yielder).suspend(()) }
    }

    /// All who wait look again.
    pub fn tell(&self) {
        self.tell_at(self.now_ns());
    }

    fn tell_at(&self, at_ns: u64) {
        for actor in self.actors.borrow_mut().iter_mut().filter(|actor| actor.naps) {
            actor.until_ns = actor.until_ns.min(at_ns.max(actor.at_ns));
        }
    }

    /// Who acts next.
    fn next(&self) -> Option<usize> {
        let mut actors = self.actors.borrow_mut();
        let at = |actor: &Actor| if actor.naps { actor.until_ns } else { actor.at_ns };
        let living = actors.iter().enumerate().filter(|(_, actor)| !actor.ended);
        let (next, at_ns) = living.map(|(index, actor)| (index, at(actor))).min_by_key(|(_, at)| *at)?;
        assert!(at_ns < u64::MAX, "all wait for ever");
        (actors[next].naps, actors[next].at_ns) = (false, at_ns);
        Some(next)
    }

    /// Runs all actors to their ends.
    pub fn run(self: &Rc<Hours>, bodies: Vec<Box<dyn FnOnce()>>) {
        let actor = Actor { at_ns: 0, naps: false, until_ns: u64::MAX, copied_ns: 0, ended: false };
        *self.actors.borrow_mut() = vec![actor; bodies.len()];
        *self.yielders.borrow_mut() = vec![std::ptr::null(); bodies.len()];
        let start = |(index, body): (usize, Box<dyn FnOnce()>)| {
            let hours = self.clone();
            Coroutine::new(move |yielder: &Yielder<(), ()>, ()| {
                hours.yielders.borrow_mut()[index] = yielder;
                body();
            })
        };
        let mut coroutines: Vec<_> = bodies.into_iter().enumerate().map(start).collect();
        while let Some(next) = self.next() {
            self.current.set(next);
            if let CoroutineResult::Return(()) = coroutines[next].resume(()) {
                self.actors.borrow_mut()[next].ended = true;
                self.tell();
            }
        }
    }
}

impl Time for Hours {
    fn now_ns(&self) -> u64 {
        self.actors.borrow()[self.current.get()].at_ns
    }

    fn spend(&self, effort: Effort) {
        let Costs { frame_ns, copies, call_ns, singles, carries, .. } = self.costs.get();
        let (me, mut caches) = (self.current.get(), self.caches.borrow_mut());
        let (copies_ns, moves) = match effort {
            Effort::In(from) => (frame_ns + from.len as u64 / copies, caches.read(me, from)),
            Effort::Out(to) => (frame_ns + to.len as u64 / copies, caches.write(me, to)),
            Effort::Single { from, to } => {
                (call_ns + to.len as u64 / singles, caches.read(me, from) + caches.write(me, to))
            }
        };
        drop(caches);
        let ns = copies_ns + moves as u64 / carries;
        self.actors.borrow_mut()[self.current.get()].copied_ns += ns;
        self.pass(ns);
    }

    fn changed(&self) {
        self.tell();
    }

    fn arrives_ns(&self) -> u64 {
        let at_ns = self.now_ns() + self.costs.get().flight_ns;
        self.arrivals.borrow_mut().push(at_ns);
        self.tell_at(at_ns);
        at_ns
    }

    fn nap(&self) {
        self.nap_until(u64::MAX);
    }
}
