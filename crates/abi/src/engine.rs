//! Progress while the application is outside MPI: one thread per rank that sleeps in the kernel.
//!
//! It is started when the application first leaves MPI with something under way that needs this
//! rank: a collective, a long receive, frames to send. It acts when the application has stayed
//! away for a tick: a program that goes in and out of MPI makes its own progress, and to wake a
//! thread for it would only take the core from it. From then on it is woken by its bell.
//!
//! ```text
//!            application leaves, care needed
//!   (none) ──────────────────────────────────▶ watching ◀──────────── application in MPI
//!                                               │  ▲ │ away for a tick      │ again
//!                         quiet for some ticks  │  │ └─▶ borrow the rank ─▶ sleep on the bell
//!                                               ▼  │        ▲                 │ rung
//!                                             resting       └─────────────────┘
//!                                        application leaves, care needed
//! ```
//!
//! How the two hand over to each other, so that no wake-up is lost, is [`shm::standby`].
//!
//! The rank is borrowed while no guard is alive ([`global::lend`]). Nothing of the application is
//! called in this thread, and errors of its operations wait in them; all signals are blocked.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fabric::{Bell, Device, Distance, Nap};
use mpi::error::Result;
use mpi::world::Polled;
use shm::standby::Standby;
use shm::watched;

use crate::device;
use crate::floating;
use crate::global::{self, World};

/// How long the application must have been away before its rank is borrowed: many times what a
/// borrowing costs, so that a wrong guess costs little, and short for a computation that is worth
/// overlapping.
const TICK: Duration = Duration::from_micros(200);
/// Without a core to spare a look takes the time it takes from an application, with a timer and two switches of threads: looks in vain
/// may take one part in so many of the application's time.
const SHARE: u32 = 100;
/// The same where peers are on other hosts. They cannot go on with what waits for this rank, as those on its own host can, so a rank that is not
/// looked after holds them up for as long as it computes.
const SHARE_BETWEEN_HOSTS: u32 = 10;
/// How long the application must have been away at most, however dear a look.
const LONGEST_TICK: Duration = Duration::from_millis(5);
/// Looks without anything to do after which the thread rests until it is called, if nothing needs it. If something does,
/// the pause between two pairs of looks doubles then.
const QUIET: u32 = 16;
/// How often it doubles at most: an application that begins to compute after long waits 2^4 ticks longer for the thread.
const DOUBLINGS: u32 = 4;
/// Longest sleep on the bell. It rings for everything; this bounds what an error in that costs.
const LONGEST: Duration = Duration::from_millis(100);

static STANDBY: Standby = Standby::new();
/// Threads of the application that wait inside MPI, where there may be several.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// What `MPI_Finalize` needs to end the thread.
type Running = (JoinHandle<()>, Arc<dyn Bell>);
static RUNNING: Mutex<Option<Running>> = std::sync::Mutex::new(None);

/// Permits the thread, if the settings want it and the device has a bell.
pub fn permit(wanted: bool) {
    watched::atomic(&WAITING);
    STANDBY.permit(wanted);
}

/// Whether the library may have threads of its own.
pub fn may_have_threads() -> bool {
    STANDBY.is_permitted()
}

/// To be called before the application leaves MPI, if it may leave something under way.
#[inline(always)]
pub fn leave(world: &World) {
    if !STANDBY.is_watching() && world.needs_care() {
        call(world);
    }
}

#[cold]
#[inline(never)]
fn call(world: &World) {
    if STANDBY.call() {
        start(world);
    }
}

/// Naps for a wait inside MPI.
#[inline]
pub fn nap(nap: impl Nap) {
    if nap.sleeps() { STANDBY.nap(|| nap.take()) } else { nap.take() }
}

/// A wait beside those of other threads: how often it has looked in vain is its own, and as long as it
/// does it is counted among those that wait. Below MPI_THREAD_MULTIPLE there is one wait at a time.
#[derive(Default)]
pub struct Wait {
    round: u32,
    counted: bool,
}

impl Wait {
    /// Looks around once.
    #[inline]
    pub fn poll(&mut self, world: &mut World) -> Result<Polled<<device::Device as Device>::Nap>> {
        if global::has_threads() { self.poll_beside(world) } else { world.poll() }
    }

    #[inline(never)]
    fn poll_beside(&mut self, world: &mut World) -> Result<Polled<<device::Device as Device>::Nap>> {
        if !self.counted {
            self.counted = true;
            WAITING.fetch_add(1, Ordering::Relaxed);
        }
        world.engine.resume(self.round, WAITING.load(Ordering::Relaxed));
        let polled = world.poll();
        self.round = world.engine.round();
        polled
    }
}

impl Drop for Wait {
    #[inline]
    fn drop(&mut self) {
        if self.counted {
            WAITING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Starts the thread. Without one progress happens inside MPI, as it does where it is off.
#[cold]
fn start(world: &World) {
    STANDBY.forbid();
    let Some(bell) = world.engine.device().bell() else { return };
    let own = bell.clone();
    let device = world.engine.device();
    let share = match device::network(device) {
        _ if device.caps(Distance::Host).spare_cores => None,
        Some(_) => Some(SHARE_BETWEEN_HOSTS),
        None => Some(SHARE),
    };
    // The thread inherits the mask: no signal of the application is ever handled in it.
    let spawned = without_signals(|| {
        let builder = std::thread::Builder::new().name("tern-engine".into()).stack_size(256 * 1024);
        builder.spawn(move || run(&*own, share))
    });
    if let Ok(handle) = spawned {
        STANDBY.started(handle.thread().clone());
        *RUNNING.lock().unwrap_or_else(|e| e.into_inner()) = Some((handle, bell));
    }
}

thread_local! {
    /// What the thread holds between the two sides of a fork.
    static HELD: Cell<[bool; 2]> = const { Cell::new([false; 2]) };
}

/// From here on the child of a fork is told apart from the rank it is a copy of.
pub fn watch_forks() {
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) };
}

/// The child of a fork has no other thread: it must not begin its life with something that one holds.
extern "C" fn before_fork() {
    HELD.set(global::hold());
}

extern "C" fn after_fork() {
    global::release(HELD.get());
}

extern "C" fn in_child() {
    STANDBY.forbid();
    global::abandon();
}

/// Has a thread started in which no signal of the application is handled, and nothing trapped that it traps in its arithmetic.
pub fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let _held = floating::hold();
    // SAFETY: the sets are local variables, filled before they are read.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

/// Ends the thread; no guard may be alive.
pub fn stop() {
    match RUNNING.lock().unwrap_or_else(|e| e.into_inner()).take() {
        Some((handle, bell)) => {
            STANDBY.stop(|| bell.ring());
            let _ = handle.join();
        }
        None => STANDBY.forbid(),
    }
}

/// A bug in the engine must not leave the rank lent for ever.
struct EndsWithTheProcess;

impl Drop for EndsWithTheProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

/// Looks in vain may take one part in `share` of the application's time; any where a core is left for the thread.
fn run(bell: &dyn Bell, share: Option<u32>) {
    let _bug = EndsWithTheProcess;
    let mut pace = Pace::default();
    while !STANDBY.is_ending() {
        let begun = own_time();
        std::thread::park_timeout(pace.pause());
        let away = global::was_away() && !STANDBY.has_naps();
        let found = if away { work(bell) } else { Found::InVain };
        pace.looked(found);
        if found == Found::InVain
            && let Some(share) = share
        {
            pace.cost(own_time().saturating_sub(begun), share);
        }
        // An application that stays away and needs nothing calls when it does: until then each look would cost it time.
        if matches!(found, Found::Nothing | Found::Done) || pace.is_quiet() {
            let begun = Instant::now();
            let rested = rest();
            if rested {
                global::was_away(); // the call that ended the rest is the last one to count
            }
            if found != Found::Done {
                pace.rested(rested.then(|| begun.elapsed()));
            }
        }
    }
}

/// Processor time of the calling thread.
fn own_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists in every thread, and the time is a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// How often the thread looks whether the application is away. A window or a collective under way may need the thread
/// at any time, and forbids it to rest; but an application that goes in and out of MPI needs it not, and each look
/// takes a core from it. So looks in vain become rarer. They come in pairs, a tick apart: who computes for longer than
/// that is found away by the second one, however long the pause before the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pace {
    /// How long the application must have been away.
    tick: Duration,
    /// Looks in vain since the last one that was not, or since the thread would have rested.
    quiet: u32,
    /// How often the pause has doubled.
    doublings: u32,
    /// The next look is the second of its pair.
    second: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { tick: TICK, quiet: 0, doublings: 0, second: false }
    }
}

impl Pace {
    fn pause(&self) -> Duration {
        if self.second { self.tick } else { self.tick * (1 << self.doublings) }
    }

    /// A look in vain has cost so much. The tick follows slowly: one look that was interrupted says little.
    fn cost(&mut self, cost: Duration, share: u32) {
        let wanted = (cost * share).clamp(TICK, LONGEST_TICK);
        self.tick = (self.tick * 7 + wanted) / 8;
    }

    /// The thread has looked.
    fn looked(&mut self, found: Found) {
        match found {
            Found::Work | Found::Done => *self = Pace { tick: self.tick, ..Pace::default() },
            Found::InVain => (self.quiet, self.second) = (self.quiet + 1, !self.second),
            Found::Nothing => {}
        }
    }

    fn is_quiet(&self) -> bool {
        self.quiet > QUIET
    }

    /// The thread has rested for so long, or must not. A short rest is none: it was ended by an application that goes in and out
    /// of MPI and always has something under way.
    fn rested(&mut self, rested: Option<Duration>) {
        let is_long = rested.is_some_and(|rested| rested > self.tick * (1 << DOUBLINGS));
        let doublings = if is_long { 0 } else { (self.doublings + 1).min(DOUBLINGS) };
        *self = Pace { tick: self.tick, quiet: 0, doublings, second: false };
    }
}

/// What one loan of the rank has brought.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Advanced {
    /// Something moved: look again.
    Moved,
    /// Nothing, but something still needs care: wait for the bell.
    Waits,
    /// Nothing needs care.
    Nothing,
}

/// What the thread has found while the application was away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// It was not, or something else was amiss.
    InVain,
    /// Something that it could help with, until the application came back.
    Work,
    /// As above, until nothing was left.
    Done,
    /// Nothing that needs care.
    Nothing,
}

/// Makes progress as long as the application stays away and something needs it. Each look borrows the rank anew, and copies
/// little: who comes back does not wait for what is left.
fn work(bell: &dyn Bell) -> Found {
    let mut found = Found::InVain;
    while !STANDBY.is_ending() {
        match global::lend(shm::barrier_within, |world| advance(world, bell)) {
            Some(Advanced::Moved) => {}
            Some(Advanced::Waits) => STANDBY.sleep(|| bell.sleep(LONGEST)),
            Some(Advanced::Nothing) => {
                return if found == Found::Work { Found::Done } else { Found::Nothing };
            }
            None => break,
        }
        found = Found::Work;
        if !global::was_away() {
            break;
        }
    }
    found
}

/// Looks once.
fn advance(world: &mut World, bell: &dyn Bell) -> Advanced {
    if !world.needs_care() {
        return Advanced::Nothing;
    }
    if world.progress_aside() {
        return Advanced::Moved;
    }
    // Only who is to sleep has to be rung for, and that costs all ranks of the host a barrier.
    bell.arm();
    world.engine.rests();
    match world.progress_aside() {
        true => Advanced::Moved,
        false if world.needs_care() => Advanced::Waits,
        false => Advanced::Nothing,
    }
}

/// Sleeps until the application calls. Whether it has to is decided while the rank is borrowed:
/// who comes after that sees the state. False if something needs the thread.
fn rest() -> bool {
    let is_needless = |world: &mut World| STANDBY.has_naps() || !world.needs_care();
    STANDBY.rest(|| global::lend(shm::barrier_within, is_needless) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks, and how many of them helped, within so many microseconds, where the application enters MPI as often as that and
    /// a window forbids the thread to rest.
    fn looks(pace: &mut Pace, every_us: u64, for_us: u64) -> (u32, u32) {
        let (mut now_us, mut all, mut helped) = (0, 0, 0);
        while now_us < for_us {
            let asked_us = now_us;
            now_us += pace.pause().as_micros() as u64;
            let is_away = now_us / every_us == asked_us / every_us;
            (all, helped) = (all + 1, helped + u32::from(is_away));
            pace.looked(if is_away { Found::Work } else { Found::InVain });
            if pace.is_quiet() {
                pace.rested(None);
            }
        }
        (all, helped)
    }

    #[test]
    fn looks_in_vain_become_rarer() {
        let mut pace = Pace::default();
        let (all, helped) = looks(&mut pace, 10, 1_000_000);
        assert_eq!(helped, 0);
        assert!((500..800).contains(&all), "{all} looks, one a tick are 5000");
    }

    /// Once rare, they find an application that begins to compute for a millisecond at a time, and come often from then on.
    #[test]
    fn who_begins_to_compute_is_helped_again() {
        for late_us in (0..20_000).step_by(70) {
            let mut pace = Pace::default();
            looks(&mut pace, 10, 1_000_000 + late_us);
            assert_eq!(pace.doublings, DOUBLINGS);
            let (_, helped) = looks(&mut pace, 1000, 50_000);
            assert!(helped > 50, "{helped} looks helped in 50 computations");
            assert_eq!(pace.doublings, 0);
        }
    }

    /// Where a look takes 20 us from the application, a thousandth of a second is not worth to be interrupted for.
    #[test]
    fn dear_looks_are_rare() {
        let mut pace = Pace::default();
        for _ in 0..100 {
            pace.cost(Duration::from_micros(20), SHARE);
        }
        assert!(
            pace.tick > Duration::from_micros(1990) && pace.tick <= Duration::from_micros(2000),
            "{:?}",
            pace.tick
        );
        pace.looked(Found::Work);
        assert!(pace.pause() > Duration::from_micros(1990), "who was helped is not forgotten to pay");
        for _ in 0..100 {
            pace.cost(Duration::from_secs(1), SHARE);
        }
        assert!(pace.tick <= LONGEST_TICK);
        for _ in 0..100 {
            pace.cost(Duration::from_nanos(100), SHARE);
        }
        assert!(pace.tick < TICK + Duration::from_micros(1));
        for _ in 0..100 {
            pace.cost(Duration::from_micros(26), SHARE_BETWEEN_HOSTS);
        }
        assert!(pace.tick < Duration::from_micros(300), "a peer on another host waits: {:?}", pace.tick);
    }

    #[test]
    fn who_has_rested_looks_every_tick() {
        let before = Pace { quiet: QUIET + 1, doublings: 2, second: true, ..Pace::default() };
        let mut pace = before;
        pace.rested(Some(Duration::from_secs(1)));
        assert_eq!((pace, pace.pause()), (Pace::default(), TICK));
        let mut pace = before;
        pace.rested(Some(TICK));
        assert_eq!(pace.doublings, 3, "a call that comes at once was not worth to be waited for");
    }
}
