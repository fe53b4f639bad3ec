//! Who looks where the program does not: a target of Reads and Writes that computes, a program that sleeps until an event
//! comes, or one that waits for a word in memory to change.
//!
//! The thread sleeps until a socket has something. If the program polls its completion queues meanwhile, it will find that
//! itself: the thread goes back to sleep for a while. Else it looks around as long as something comes.

use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Counts the looks of the program that found nothing: it waits in a loop.
static POLLS: AtomicU32 = AtomicU32::new(0);

/// How long the thread waits to see whether the program polls.
const GLANCE: Duration = Duration::from_micros(3);
/// How long it leaves a program alone that does.
const AWAY: Duration = Duration::from_micros(200);
/// How long it goes on to look after something has come.
const STAY: Duration = Duration::from_micros(50);
/// How often it asks nobody for a core after one has cost it a turn of others.
const CROWDED: u32 = 256;

/// The program has looked, and found nothing.
#[inline]
pub fn polled() {
    POLLS.store(POLLS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

fn polls() -> u32 {
    POLLS.load(Ordering::Relaxed)
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
    let Ok(descriptor) = adapter.descriptor().try_clone_to_owned() else { return };
    drop(adapter);
    let _ = std::thread::Builder::new().name("tern verbs".into()).spawn(move || run(&descriptor));
}

fn run(descriptor: &OwnedFd) {
    // A sleep of microseconds is to take microseconds; where the system refuses that it takes 50 more.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut room = [const { MaybeUninit::uninit() }; 1];
    let mut turns = Turns::default();
    loop {
        // An interrupted sleep is one that has ended.
        if epoll::wait(descriptor, &mut room, None).is_ok_and(|(events, _)| events.is_empty()) {
            continue;
        }
        if is_polling(&mut turns) {
            std::thread::sleep(AWAY);
            continue;
        }
        stay(&mut turns);
    }
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
    let (before, since) = (polls(), Instant::now());
    while since.elapsed() < GLANCE {
        if polls() != before {
            return true;
        }
        turns.pass(GLANCE);
    }
    polls() != before
}

/// Looks around until nothing has come for a while, or the program looks itself.
fn stay(turns: &mut Turns) {
    let (before, mut since) = (polls(), Instant::now());
    while since.elapsed() < STAY && polls() == before {
        let Ok(mut adapter) = crate::adapter() else { return };
        if adapter.progress() {
            since = Instant::now();
        }
        drop(adapter);
        turns.pass(GLANCE);
    }
}
