//! A rank's place in virtual time: it runs ahead while it computes, and gives way to the others before it
//! looks at anything they may have changed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use corosensei::Yielder;

use crate::net::{Net, Step};
use crate::queue::Ps;
use crate::seat::State;

/// How often a rank looks around that may wait for a dead one.
const GIVE_UP: Ps = 1_000_000;

/// The network as its ranks share it.
pub type Shared = Rc<RefCell<Net>>;

/// A rank's clock.
pub struct Clock<'y> {
    /// The network.
    pub net: Shared,
    /// The rank.
    pub me: u32,
    local: Cell<Ps>,
    yielder: &'y Yielder<(), ()>,
}

impl<'y> Clock<'y> {
    /// At the beginning of time.
    pub fn new(net: Shared, me: u32, yielder: &'y Yielder<(), ()>) -> Clock<'y> {
        let now = net.borrow().now;
        Clock { net, me, local: Cell::new(now), yielder }
    }

    /// This rank's time.
    #[inline]
    pub fn now(&self) -> Ps {
        self.local.get()
    }

    /// Lets this rank's time pass.
    #[inline]
    pub fn pass(&self, time: Ps) {
        self.local.set(self.local.get() + time);
    }

    /// Lets this rank's time pass and draws what for.
    pub fn spend(&self, name: &'static str, time: Ps, bytes: usize) {
        let first = self.local.get();
        self.pass(time);
        if let Some(trace) = &mut self.net.borrow_mut().trace {
            trace.rank(self.me, name, first, first + time, bytes);
        }
    }

    /// Returns when nothing can happen any more that this rank may see before its time.
    #[inline]
    pub fn settle(&self) {
        if self.net.borrow().may_change(self.me, self.local.get()) {
            self.sync();
        }
    }

    /// As [`Clock::settle`], before it uses an adapter that it may share.
    #[inline]
    pub fn settle_to_post(&self, rail: usize) {
        let is_shared = self.net.borrow().is_shared(rail);
        if is_shared { self.sync() } else { self.settle() }
    }

    /// Returns when everything has happened that comes before this rank's time.
    pub fn sync(&self) {
        loop {
            let mut net = self.net.borrow_mut();
            let local = self.local.get();
            if net.advance(self.me, local) == Step::Reached {
                net.seats[self.me as usize].met(local);
                return;
            }
            net.park(self.me, local);
            drop(net);
            self.switch();
        }
    }

    /// Returns when something has happened for this rank, at `alarm` at the latest.
    fn nap(&self, alarm: Ps) {
        self.settle();
        let mut net = self.net.borrow_mut();
        let first = self.local.get();
        let wake = self.wake(&mut net, alarm);
        if wake <= first {
            net.seats[self.me as usize].told = first;
            return;
        }
        net.sleep(self.me, wake);
        let next = net.next();
        if next != Some(self.me) {
            net.chosen = next;
            drop(net);
            self.switch();
            net = self.net.borrow_mut();
        }
        let now = net.now.max(first);
        self.local.set(now);
        let seat = &mut net.seats[self.me as usize];
        seat.news = false;
        seat.told = now;
        seat.forget_watches();
        if let Some(trace) = &mut net.trace {
            trace.rank(self.me, "wait", first, now, 0);
        }
    }

    /// When this rank is to continue at the latest.
    fn wake(&self, net: &mut Net, alarm: Ps) -> Ps {
        let lands = net.watched_lands(self.me, self.local.get());
        let seat = &mut net.seats[self.me as usize];
        if std::mem::take(&mut seat.news) {
            return 0;
        }
        // Completions that were there at an earlier nap do not interest this program now.
        let told = seat.told;
        let ended = seat.ended.iter().map(|ended| ended.at).find(|at| *at > told);
        let letter = seat.next_alert();
        let soonest = [ended, lands, letter].into_iter().flatten().min();
        let wake = alarm.min(soonest.unwrap_or(Ps::MAX));
        // Who waits in a job that has lost a rank looks again and again whether to give up.
        if net.gone.is_some() { wake.min(self.local.get() + GIVE_UP) } else { wake }
    }

    /// Whether completions of this rank's work have not been fetched.
    pub fn has_work(&self) -> bool {
        self.net.borrow().seats[self.me as usize].outstanding > 0
    }

    /// Returns when all ranks that live have come here, or nothing will happen any more: what a launcher does
    /// at the end of a job.
    pub fn fence(&self) {
        self.sync();
        self.net.borrow_mut().fence(self.me);
        while !self.net.borrow().is_open() {
            self.nap(Ps::MAX);
        }
    }

    /// Gives the processor to the scheduler; a dead rank never gets it back.
    fn switch(&self) {
        loop {
            self.yielder.suspend(());
            let mut net = self.net.borrow_mut();
            net.counters.switches += 1;
            if net.seats[self.me as usize].state != State::Dead {
                return;
            }
        }
    }
}

/// See [`fabric::Nap`].
pub struct Nap<'y> {
    clock: Rc<Clock<'y>>,
    alarm: Ps,
}

impl<'y> Nap<'y> {
    /// Until `alarm` at the latest.
    pub fn new(clock: Rc<Clock<'y>>, alarm: Ps) -> Nap<'y> {
        Nap { clock, alarm }
    }
}

impl fabric::Nap for Nap<'_> {
    fn take(self) {
        self.clock.nap(self.alarm);
    }

    fn sleeps(&self) -> bool {
        self.alarm > self.clock.now()
    }
}
