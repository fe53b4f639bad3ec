//! Who looks where the program does not: a target of Reads and Writes that computes, a program that sleeps until an event
//! comes, or one that waits for a word in memory to change.
//!
//! The thread sleeps until a socket has something. If the program polls its completion queues meanwhile, it will find that
//! itself: the thread leaves it alone, and sleeps by the clock as long as that goes on. Else it looks around as long as something
//! comes.
//!
//! Where it is, and who wakes it there, is [`crate::place`].
//!
//! Asleep on the sockets the thread is woken by each message. Where the program has a core and polls there, that costs it the core for a
//! moment, every time, and the thread would not even know: the program has the message by then, and the kernel, which finds nothing,
//! puts the thread back to sleep without a word. So who polls says so (`polled`).

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::place::Place;

static PLACE: Place = Place::new();
/// Ends a sleep of the thread.
static BELL: Mutex<Option<Arc<OwnedFd>>> = Mutex::new(None);

/// How long the thread waits to see whether the program polls.
const GLANCE: Duration = Duration::from_micros(3);
/// How long it leaves a program alone that does, before it sees whether that goes on.
const LEAVE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000 };
/// How long it goes on to look after something has come.
const STAY: Duration = Duration::from_micros(50);
/// How often it asks nobody for a core after one has cost it a turn of others.
const CROWDED: u32 = 256;

/// The program has looked, and found nothing.
#[inline]
pub fn polled() {
    PLACE.polled(ring);
}

/// Whether the thread sleeps by the clock, whatever sockets have.
pub fn is_away() -> bool {
    PLACE.is_away()
}

/// The program wants to be told of what comes: it will sleep until then, and look no more.
pub fn rests() {
    PLACE.rests(ring);
}

/// Ends a sleep of the thread.
fn ring() {
    if let Some(bell) = &*BELL.lock().unwrap_or_else(PoisonError::into_inner) {
        // It counts up to 2^64 - 2 and never blocks before.
        let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
    }
}

/// Starts the thread, once for the process: a child of a fork has none of its parent's. Where the system refuses one, things move when the
/// program polls only.
pub fn start() {
    static STARTED_IN: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id();
    if STARTED_IN.swap(own, Ordering::Relaxed) == own {
        return;
    }
    let Ok(adapter) = crate::adapter() else { return };
    let Ok(sockets) = adapter.descriptor().try_clone_to_owned() else { return };
    drop(adapter);
    let Ok(bell) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return };
    let bell = Arc::new(bell);
    *BELL.lock().unwrap_or_else(PoisonError::into_inner) = Some(bell.clone());
    let _ = std::thread::Builder::new().name("tern verbs".into()).spawn(move || run(&sockets, &bell));
}

fn run(sockets: &OwnedFd, bell: &OwnedFd) {
    // A sleep of microseconds is to take microseconds; where the system refuses that it takes 50 more.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut turns = Turns::default();
    loop {
        let heard = listen(sockets, bell);
        // A glance may miss it, where the program has had no core meanwhile: not what it says itself.
        if heard == Heard::Program || is_polling(&mut turns) {
            leave_alone(bell);
        } else if heard == Heard::Sockets {
            stay(&mut turns);
        }
    }
}

/// What has ended a sleep on the sockets.
#[derive(PartialEq, Eq)]
enum Heard {
    /// One has something, or the sleep was interrupted.
    Sockets,
    /// The program says that it polls.
    Program,
    /// What was said before.
    Nothing,
}

/// Sleeps until a socket has something, or the program says that it polls.
fn listen(sockets: &OwnedFd, bell: &OwnedFd) -> Heard {
    let mut both = [PollFd::new(sockets, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
    let (ended, was_rung) = PLACE.listen(|| poll(&mut both, None));
    silence(bell);
    match ended {
        _ if was_rung => Heard::Program,
        Ok(_) if both[0].revents().is_empty() => Heard::Nothing,
        _ => Heard::Sockets,
    }
}

/// The bell has been heard.
fn silence(bell: &OwnedFd) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

/// How the thread lets others run. Where a core is free it gives way, which is the quickest. Who gives way to one that computes
/// has the core back when that one has used up its turn, milliseconds later; who sleeps has it back at the end of the sleep.
#[derive(Default)]
struct Turns {
    /// Times until giving way is tried again.
    crowded: u32,
}

impl Turns {
    /// Lets others run for a moment.
    fn pass(&mut self, nap: Duration) {
        if let Some(left) = self.crowded.checked_sub(1) {
            self.crowded = left;
            return std::thread::sleep(nap);
        }
        let since = Instant::now();
        std::thread::yield_now();
        if since.elapsed() > STAY {
            self.crowded = CROWDED;
        }
    }
}

/// Whether the program looks itself.
fn is_polling(turns: &mut Turns) -> bool {
    let (before, since) = (PLACE.polls(), Instant::now());
    while since.elapsed() < GLANCE {
        if PLACE.polls() != before {
            return true;
        }
        turns.pass(GLANCE);
    }
    PLACE.polls() != before
}

/// Sleeps by the clock until the program looks no more.
fn leave_alone(bell: &OwnedFd) {
    let sleep = || _ = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&LEAVE));
    let back = || {
        if let Ok(mut adapter) = crate::adapter() {
            adapter.listens();
        }
    };
    PLACE.leave_alone(sleep, back);
    silence(bell);
}

/// Looks around until nothing has come for a while, or the program looks itself.
fn stay(turns: &mut Turns) {
    let (before, mut since) = (PLACE.polls(), Instant::now());
    let mut is_first = true;
    while since.elapsed() < STAY && PLACE.polls() == before {
        let Ok(mut adapter) = crate::adapter() else { return };
        // Which socket has something the kernel alone knows.
        if std::mem::take(&mut is_first) {
            adapter.asks_kernel();
        }
        if adapter.progress() {
            since = Instant::now();
        }
        drop(adapter);
        turns.pass(GLANCE);
    }
}
