//! Where the thread is that looks where the program does not, and who may wake it there.
//!
//! ```text
//!             it has heard something, and the program does not poll
//!     ┌────────────────────────────────────────────────────────────▶ Looks ─────┐
//!  Listens ◀───────────────────────── nothing has come for a while ─────────────┘
//!     │ ▲
//!     │ └── the program polls no more, or is about to sleep (`rests`) ──┐
//!     └──── the program polls: seen by a glance, or it says so ──────▶ Away
//! ```
//!
//! | place | the thread | who may end it |
//! |---|---|---|
//! | looks | is awake | itself |
//! | listens | sleeps on the sockets and its bell, without a limit | a socket; a program that polls: it says `looks`, then rings |
//! | away | sleeps on its bell, at most for some time | a program that is about to sleep: it says `looks`, then rings |
//!
//! A program that is about to sleep is woken by the thread alone, so one thing must not be lost: that it *rests*. Either it sees that the thread
//! is away, and rings, or the thread that goes away sees that the program rests, and stays: both change one word (`rests`), in one order. A ring
//! that comes late ends the next sleep for nothing, once; one that is lost to a program that polls is made up for by its next look.
//!
//! What is done so that nothing disturbs a program that polls (`crate::adapter`, «hot») is done while the thread is away, and undone by the
//! thread when it comes back, both with the adapter: so the sockets are whole again when it listens.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const LOOKS: u32 = 0;
const LISTENS: u32 = 1;
const AWAY: u32 = 2;

/// So many looks in vain are a loop.
const LOOP: u32 = if cfg!(loom) { 2 } else { 16 };

/// See the [module](self).
pub struct Place {
    place: AtomicU32,
    /// Counts the looks of the program that found nothing: it waits in a loop.
    polls: AtomicU32,
    /// What that was when the program was last seen not to poll: looks since then are of one loop, however many messages came meanwhile.
    heard: AtomicU32,
    /// The program is about to sleep, which the thread has not seen.
    rests: AtomicBool,
}

impl Place {
    /// Awake.
    #[cfg(not(loom))]
    pub const fn new() -> Place {
        Place {
            place: AtomicU32::new(LOOKS),
            polls: AtomicU32::new(0),
            heard: AtomicU32::new(0),
            rests: AtomicBool::new(false),
        }
    }

    /// As above; loom's atomics cannot be made at compile time.
    #[cfg(loom)]
    pub fn new() -> Place {
        Place {
            place: AtomicU32::new(LOOKS),
            polls: AtomicU32::new(0),
            heard: AtomicU32::new(0),
            rests: AtomicBool::new(false),
        }
    }

    /// How often the program has looked and found nothing.
    pub fn polls(&self) -> u32 {
        self.polls.load(Ordering::Relaxed)
    }

    /// The program has looked and found nothing. Where that is a loop and the thread listens, it is rung for. Threads of the program that count at
    /// the same time may count one look for two.
    #[inline]
    pub fn polled(&self, ring: impl FnOnce()) {
        let polls = self.polls().wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
        if self.place.load(Ordering::Relaxed) == LISTENS
            && polls.wrapping_sub(self.heard.load(Ordering::Relaxed)) >= LOOP
        {
            self.wake(LISTENS, ring);
        }
    }

    /// The program will sleep until it is told of what comes, and look no more.
    pub fn rests(&self, ring: impl FnOnce()) {
        self.heard.store(self.polls(), Ordering::Relaxed);
        self.rests.swap(true, Ordering::AcqRel);
        // If that came after the thread has asked, it has seen where the thread went before.
        if self.place.load(Ordering::Relaxed) == AWAY {
            self.wake(AWAY, ring);
        }
    }

    /// Wakes the thread, if that is still where it sleeps.
    #[cold]
    fn wake(&self, place: u32, ring: impl FnOnce()) {
        if self.place.compare_exchange(place, LOOKS, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            ring();
        }
    }

    /// Whether the thread sleeps by the clock, whatever sockets have. Asked with the adapter.
    pub fn is_away(&self) -> bool {
        self.place.load(Ordering::Acquire) == AWAY
    }
}

/// What the thread does.
impl Place {
    /// Sleeps on the sockets and the bell; and whether the program has said that it polls.
    pub fn listen<R>(&self, sleep: impl FnOnce() -> R) -> (R, bool) {
        self.goes(LISTENS);
        let ended = sleep();
        (ended, self.goes(LOOKS) == LOOKS)
    }

    /// Sleeps on the bell, for some time at a time, until the program polls no more or rests; `back` makes the sockets whole.
    pub fn leave_alone(&self, mut sleep: impl FnMut(), back: impl FnOnce()) {
        loop {
            let before = self.polls();
            self.goes(AWAY);
            let mut rests = self.takes_rest();
            if !rests {
                sleep();
                rests = self.takes_rest();
            }
            self.goes(LOOKS);
            if rests || self.polls() == before {
                back();
                self.heard.store(self.polls(), Ordering::Relaxed);
                return;
            }
        }
    }

    /// Says where the thread is, and what was said before. By what reads and stores at once, as all do that change the place or `rests`: loom knows
    /// no order among stores of threads that have not seen each other's.
    fn goes(&self, place: u32) -> u32 {
        self.place.swap(place, Ordering::AcqRel)
    }

    /// Whether the program rests; it is asked once.
    fn takes_rest(&self) -> bool {
        self.rests.swap(false, Ordering::AcqRel)
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// A program and the thread, on loom's model of memory, in the order of `thread.rs`. No clock ends a sleep: who is away comes back when it is rung
/// for, else never.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::{Arc, Condvar, Mutex};
    use loom::thread;

    /// What the kernel knows: a message in a socket, and whether it tells of that; the bell.
    #[derive(Default)]
    struct Kernel {
        message: bool,
        is_out: bool,
        bell: bool,
    }

    #[derive(Default)]
    struct Model {
        place: Place,
        kernel: Mutex<Kernel>,
        tells: Condvar,
        /// The lock of the adapter.
        adapter: Mutex<()>,
        served: Mutex<bool>,
        serves: Condvar,
    }

    impl Model {
        /// Sleeps on the bell, and on the socket if `all`; whether that has something.
        fn sleep(&self, all: bool) -> bool {
            let mut kernel = self.kernel.lock().unwrap();
            loop {
                let has_message = all && kernel.message && !kernel.is_out;
                if kernel.bell || has_message {
                    return has_message;
                }
                kernel = self.tells.wait(kernel).unwrap();
            }
        }

        fn ring(&self) {
            self.kernel.lock().unwrap().bell = true;
            self.tells.notify_all();
        }

        fn silence(&self) {
            self.kernel.lock().unwrap().bell = false;
        }

        /// As `run`, until it has taken the message.
        fn run(&self) {
            loop {
                let (has_message, is_rung) = self.place.listen(|| self.sleep(true));
                self.silence();
                let before = self.place.polls();
                thread::yield_now();
                if is_rung || self.place.polls() != before {
                    self.place.leave_alone(|| _ = self.sleep(false), || self.makes_whole());
                    self.silence();
                } else if has_message {
                    *self.served.lock().unwrap() = true;
                    return self.serves.notify_all();
                }
            }
        }

        /// As `Adapter::listens`.
        fn makes_whole(&self) {
            let _adapter = self.adapter.lock().unwrap();
            self.kernel.lock().unwrap().is_out = false;
            self.tells.notify_all();
        }

        /// As `poll_cq`, with `Adapter::stays_hot`.
        fn polls(&self) {
            let _adapter = self.adapter.lock().unwrap();
            if self.place.is_away() {
                self.kernel.lock().unwrap().is_out = true;
            }
            self.place.polled(|| self.ring());
        }

        /// A message comes, or has come, while the program sleeps.
        fn sleeps(&self) {
            self.kernel.lock().unwrap().message = true;
            self.tells.notify_all();
            let mut served = self.served.lock().unwrap();
            while !*served {
                served = self.serves.wait(served).unwrap();
            }
        }
    }

    fn check(polls: u32) {
        loom::model(move || {
            let model = Arc::new(Model::default());
            let thread = {
                let model = model.clone();
                thread::spawn(move || model.run())
            };
            (0..polls).for_each(|_| model.polls());
            model.place.rests(|| model.ring());
            model.sleeps();
            thread.join().unwrap();
        });
    }

    /// A program that has looked once, as before each sleep: what comes then is taken by the thread. Loom reports it if all sleep.
    #[test]
    fn who_rests_is_woken() {
        check(1);
    }

    /// The same where it has polled, and the thread has left it alone or is about to.
    #[test]
    fn who_has_polled_and_rests_is_woken() {
        check(LOOP + 1);
    }

    /// A program that polls as long as it takes: the thread that listens hears of it and goes away. It is woken by no message then, until the
    /// program rests.
    #[test]
    fn who_polls_is_left_alone() {
        loom::model(|| {
            let model = Arc::new(Model::default());
            let thread = {
                let model = model.clone();
                thread::spawn(move || model.run())
            };
            while !model.place.is_away() {
                model.polls();
                thread::yield_now();
            }
            model.place.rests(|| model.ring());
            model.sleeps();
            thread.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_loop_is_rung_for_where_the_thread_listens() {
        let (place, rings) = (Place::new(), Cell::new(0));
        let ring = || rings.set(rings.get() + 1);
        (0..2 * LOOP).for_each(|_| place.polled(ring));
        assert_eq!(rings.get(), 0, "it looks itself");
        place.rests(ring);
        let (ended, is_rung) = place.listen(|| {
            (1..LOOP).for_each(|_| place.polled(ring));
            assert_eq!(rings.get(), 0, "looks before it rested are of another loop");
            place.polled(ring);
            place.polled(ring);
            7
        });
        assert_eq!((ended, is_rung, rings.get()), (7, true, 1), "once");
        assert!(!place.listen(|| ()).1);
    }

    #[test]
    fn who_is_away_comes_back_when_the_program_polls_no_more_or_rests() {
        let place = Place::new();
        let (sleeps, rings, whole) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let (ring, back) = (|| rings.set(rings.get() + 1), || whole.set(whole.get() + 1));
        let polls = || {
            assert!(place.is_away());
            sleeps.set(sleeps.get() + 1);
            if sleeps.get() < 3 {
                place.polled(ring);
            }
        };
        place.leave_alone(polls, back);
        assert_eq!((sleeps.get(), rings.get(), whole.get()), (3, 0, 1));
        let rests = || {
            place.polled(ring);
            place.rests(ring);
        };
        place.leave_alone(rests, back);
        assert_eq!((rings.get(), whole.get(), place.is_away()), (1, 2, false));
        place.rests(ring);
        place.leave_alone(|| panic!("it rests already"), back);
        assert_eq!((rings.get(), whole.get()), (1, 3));
    }
}
