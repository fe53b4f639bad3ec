//! The rank of this process: the only process-global state of the library.
//!
//! Below this crate a rank is a value. Here it lives in one place, reached through a guard. With
//! one thread inside MPI at a time the guard is a check of a flag; under MPI_THREAD_MULTIPLE, and
//! for the operations allowed outside MPI_Init … MPI_Finalize, it holds the one lock. Functions
//! of the application (error handlers, attribute callbacks, reduction operations) are called
//! without a guard alive: they may call MPI. While no guard is alive the rank may be lent to the
//! thread that makes progress ([`crate::engine`]).

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpi::errhandler::Action;
use mpi::handle::Handle;
use mpi::objects::Objects;
use mpi::tools::{Now, Tools, variables};
use shm::owner::Owner;

use crate::lookup::errhandler_of;
use crate::object::Object;

/// Levels of thread support (`MPI_THREAD_…`).
pub mod thread {
    /// `MPI_THREAD_SINGLE`.
    pub const SINGLE: i32 = 0;
    /// `MPI_THREAD_FUNNELED`.
    pub const FUNNELED: i32 = 1024;
    /// `MPI_THREAD_SERIALIZED`.
    pub const SERIALIZED: i32 = 2048;
    /// `MPI_THREAD_MULTIPLE`.
    pub const MULTIPLE: i32 = 4096;

    /// The level for one that asks for `required`: all are supported, so it is the next one from there,
    /// or the highest. `None` if that is none.
    pub fn granted(required: i32) -> Option<i32> {
        let next = [SINGLE, FUNNELED, SERIALIZED].into_iter().find(|level| *level >= required);
        (required >= SINGLE).then_some(next.unwrap_or(MULTIPLE))
    }
}

/// The rank of this process between MPI_Init and MPI_Finalize.
pub type World = mpi::World<shm::Shm>;

/// Where the process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Before MPI_Init.
    Before,
    /// Between MPI_Init and MPI_Finalize.
    Active,
    /// After MPI_Finalize.
    After,
}

#[allow(clippy::large_enum_variant)] // there is one, and the path of a message reads it
enum Place {
    /// Outside MPI_Init … MPI_Finalize: only objects that need no communication.
    Outside(Objects),
    /// Inside.
    Inside(World),
}

struct Global {
    phase: AtomicU8,
    level: AtomicI32,
    main_thread: AtomicUsize,
    lock: Mutex<()>,
    /// Threads that wait for `lock`.
    waiting: AtomicU32,
    /// How often a thread that waited has got it.
    turns: AtomicU32,
    /// One thread at a time is inside MPI, between MPI_Init and MPI_Finalize.
    single: AtomicBool,
    /// While `single`: whether a guard is alive, and the world, unless it is lent.
    owner: Owner<World>,
    /// A guard that holds `lock` is alive.
    locked: AtomicBool,
    /// A guard has been taken since the last [`was_away`].
    recent: AtomicBool,
    place: UnsafeCell<Option<Place>>,
}

// SAFETY: `place` is reached through guards only; `Guard::enter` says why no two exist.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global {
    phase: AtomicU8::new(Phase::Before as u8),
    level: AtomicI32::new(thread::SINGLE),
    main_thread: AtomicUsize::new(0),
    lock: Mutex::new(()),
    waiting: AtomicU32::new(0),
    turns: AtomicU32::new(0),
    single: AtomicBool::new(false),
    owner: Owner::new(),
    locked: AtomicBool::new(false),
    recent: AtomicBool::new(false),
    place: UnsafeCell::new(None),
};

/// Where the process is in its life.
#[inline]
pub fn phase() -> Phase {
    match GLOBAL.phase.load(Ordering::Acquire) {
        0 => Phase::Before,
        1 => Phase::Active,
        _ => Phase::After,
    }
}

/// Whether the process is between MPI_Init and MPI_Finalize.
#[inline(always)]
pub fn is_active() -> bool {
    GLOBAL.phase.load(Ordering::Relaxed) == Phase::Active as u8
}

/// The level of thread support that was granted.
pub fn thread_level() -> i32 {
    GLOBAL.level.load(Ordering::Relaxed)
}

/// Whether the calling thread is the one that initialised MPI.
pub fn is_main_thread() -> bool {
    GLOBAL.main_thread.load(Ordering::Relaxed) == this_thread()
}

fn this_thread() -> usize {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Starts the active phase with the world `make` builds around the objects made so far, which it
/// hands back with the error when it fails.
pub fn start<E>(level: i32, make: impl FnOnce(Objects) -> Result<World, (Objects, E)>) -> Result<(), E> {
    let mut guard = Guard::enter();
    let objects = match guard.take() {
        Place::Outside(objects) => objects,
        Place::Inside(_) => panic!("started twice"),
    };
    match make(objects) {
        Ok(world) => {
            guard.put(Place::Inside(world));
            if level != thread::MULTIPLE
                && let Place::Inside(world) = guard.place_mut()
            {
                GLOBAL.owner.set(world);
                GLOBAL.single.store(true, Ordering::Relaxed);
            }
            GLOBAL.level.store(level, Ordering::Relaxed);
            GLOBAL.main_thread.store(this_thread(), Ordering::Relaxed);
            GLOBAL.phase.store(Phase::Active as u8, Ordering::Release);
            Ok(())
        }
        Err((objects, error)) => {
            guard.put(Place::Outside(objects));
            Err(error)
        }
    }
}

/// Ends the active phase; `end` takes the world apart and leaves its objects.
pub fn finish(end: impl FnOnce(World) -> Objects) {
    let guard = Guard::enter();
    GLOBAL.single.store(false, Ordering::Relaxed);
    GLOBAL.owner.set(std::ptr::null_mut());
    match guard.take() {
        Place::Inside(world) => guard.put(Place::Outside(end(world))),
        Place::Outside(_) => panic!("finished without being started"),
    }
    GLOBAL.phase.store(Phase::After as u8, Ordering::Release);
}

/// What the error handler of `subject` asks for, or that of the communicator which stands in where
/// there is none; the handle it is called with, and the rank in MPI_COMM_WORLD if there is one.
pub fn error_action(subject: Option<(Object, Handle)>) -> (Action, Handle, Option<u32>) {
    let guard = Guard::enter();
    let (objects, rank) = match guard.place() {
        Place::Inside(world) => (&world.objects, Some(world.rank())),
        Place::Outside(objects) => (objects, None),
    };
    let (errhandler, handle) = errhandler_of(objects, subject);
    (objects.errhandlers.action(errhandler), handle, rank)
}

/// The rank; only in the active phase.
#[inline(always)]
pub fn world() -> WorldGuard {
    WorldGuard(Guard::enter())
}

/// The rank for what is over at once, without the steps that only errors need; `None` outside the
/// active phase, under MPI_THREAD_MULTIPLE and while the rank is lent. No guard may be alive; that is
/// left to guards to assert, which have the time.
#[inline(always)]
pub fn at_once() -> Option<AtOnce> {
    let world = GLOBAL.owner.enter();
    if world.is_null() {
        GLOBAL.owner.leave();
        return None;
    }
    Some(AtOnce(world))
}

/// A short access to the rank; see [`at_once`].
pub struct AtOnce(*mut World);

impl Deref for AtOnce {
    type Target = World;
    #[inline(always)]
    fn deref(&self) -> &World {
        // SAFETY: set by `start` and cleared by `finish`, between which the world does not move;
        // one thread at a time is inside MPI, it holds no other guard, and nobody has borrowed
        // the world.
        unsafe { &*self.0 }
    }
}

impl DerefMut for AtOnce {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut World {
        // SAFETY: as in `deref`.
        unsafe { &mut *self.0 }
    }
}

impl Drop for AtOnce {
    #[inline(always)]
    fn drop(&mut self) {
        GLOBAL.owner.leave();
    }
}

/// Lends the rank to the calling thread, which is none of the application's, while no guard is
/// alive; `None` if one is. `barrier` is a full barrier on all cores that run a thread of this
/// process. The caller sees to it that the active phase does not end meanwhile.
pub fn lend<R>(barrier: impl FnOnce(), f: impl FnOnce(&mut World) -> R) -> Option<R> {
    if thread_level() == thread::MULTIPLE {
        return Some(f(&mut WorldGuard(Guard::enter_locked())));
    }
    let _lock = lock();
    let world = GLOBAL.owner.borrow(barrier)?;
    // SAFETY: borrowed: until it is given back every guard waits for the lock, and none is alive.
    let result = f(unsafe { &mut *world });
    GLOBAL.owner.give_back(world);
    Some(result)
}

/// Whether no guard has been taken since the last call.
pub fn was_away() -> bool {
    !GLOBAL.recent.swap(false, Ordering::Relaxed)
}

/// Keeps the rank from being lent until the guard is dropped: around `fork`, whose child has no
/// thread that could give it back.
pub fn keep() -> MutexGuard<'static, ()> {
    lock()
}

/// The object tables in any phase.
#[inline(always)]
pub fn objects() -> ObjectsGuard {
    ObjectsGuard(Guard::enter())
}

/// The tools interface in any phase, with how the variables stand now: before MPI_Init at 0, after
/// MPI_Finalize as they were at the end.
pub fn tools<R>(f: impl FnOnce(&mut Tools, Now) -> R) -> R {
    let mut guard = Guard::enter();
    match guard.place_mut() {
        Place::Inside(world) => {
            let World { objects, engine, .. } = world;
            f(&mut objects.tools, &|index| engine.reading(variables()[index].source))
        }
        Place::Outside(objects) => {
            let last = objects.tools.last();
            f(&mut objects.tools, &|index| last.as_ref().map_or(0, |last| last[index]))
        }
    }
}

/// Access to the rank.
pub struct WorldGuard(Guard);

/// Access to the object tables.
pub struct ObjectsGuard(Guard);

/// Lets threads that wait for the rank have it, in a loop that waits for a message, between two
/// guards. The lock is not fair: without this the thread that gave it away would be the first to
/// take it again. Nobody waiting costs one load.
#[inline]
pub fn let_others_in() {
    if GLOBAL.waiting.load(Ordering::Relaxed) != 0 {
        give_way();
    }
}

#[inline(never)]
fn give_way() {
    let turn = GLOBAL.turns.load(Ordering::Relaxed);
    while GLOBAL.waiting.load(Ordering::Relaxed) != 0 && GLOBAL.turns.load(Ordering::Relaxed) == turn {
        std::thread::yield_now();
    }
}

impl Deref for WorldGuard {
    type Target = World;
    #[inline(always)]
    fn deref(&self) -> &World {
        match self.0.place() {
            Place::Inside(world) => world,
            Place::Outside(_) => inactive(),
        }
    }
}

impl DerefMut for WorldGuard {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut World {
        match self.0.place_mut() {
            Place::Inside(world) => world,
            Place::Outside(_) => inactive(),
        }
    }
}

impl Deref for ObjectsGuard {
    type Target = Objects;
    #[inline(always)]
    fn deref(&self) -> &Objects {
        match self.0.place() {
            Place::Inside(world) => &world.objects,
            Place::Outside(objects) => objects,
        }
    }
}

impl DerefMut for ObjectsGuard {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Objects {
        match self.0.place_mut() {
            Place::Inside(world) => &mut world.objects,
            Place::Outside(objects) => objects,
        }
    }
}

#[cold]
fn inactive() -> ! {
    panic!("a handler of an operation that is allowed at any time asked for the world")
}

struct Guard {
    lock: Option<MutexGuard<'static, ()>>,
}

impl Guard {
    /// Takes the only guard. With MPI_THREAD_MULTIPLE, and outside the active phase, the lock
    /// keeps threads apart; below that level the application promises that one thread at a time
    /// is inside MPI (MPI 5.0 section 11.6). That a thread takes no second guard is asserted.
    #[inline(always)]
    fn enter() -> Guard {
        GLOBAL.recent.store(true, Ordering::Relaxed);
        if !GLOBAL.single.load(Ordering::Relaxed) {
            return Guard::enter_locked();
        }
        if GLOBAL.owner.is_inside() {
            occupied();
        }
        if GLOBAL.owner.enter().is_null() {
            Guard::regain();
        }
        Guard { lock: None }
    }

    #[inline(never)]
    fn enter_locked() -> Guard {
        let lock = Some(lock());
        if GLOBAL.locked.load(Ordering::Relaxed) {
            occupied();
        }
        GLOBAL.locked.store(true, Ordering::Relaxed);
        // SAFETY: this is the only guard, and nothing borrows from it yet.
        let place = unsafe { &mut *GLOBAL.place.get() };
        place.get_or_insert_with(|| Place::Outside(Objects::default()));
        Guard { lock }
    }

    /// The world is lent: it has been given back when the lock is free. It is not lent again
    /// before this guard is dropped.
    #[cold]
    #[inline(never)]
    fn regain() {
        drop(lock());
    }

    #[inline(always)]
    fn place(&self) -> &Place {
        // SAFETY: `enter` made this the only guard.
        unsafe { &*GLOBAL.place.get() }.as_ref().expect("filled by `enter`")
    }

    #[inline(always)]
    fn place_mut(&mut self) -> &mut Place {
        // SAFETY: as in `place`, and this guard is borrowed mutably.
        unsafe { &mut *GLOBAL.place.get() }.as_mut().expect("filled by `enter`")
    }

    fn take(&self) -> Place {
        // SAFETY: as in `place`; no reference into it is alive, this is private to the module.
        unsafe { (*GLOBAL.place.get()).take() }.expect("filled by `enter`")
    }

    fn put(&self, place: Place) {
        // SAFETY: as in `take`.
        unsafe { *GLOBAL.place.get() = Some(place) }
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        match self.lock {
            None => GLOBAL.owner.leave(),
            Some(_) => GLOBAL.locked.store(false, Ordering::Relaxed),
        }
    }
}

#[cold]
fn occupied() -> ! {
    panic!(
        "the rank is in use: two threads are inside MPI without MPI_THREAD_MULTIPLE, or a guard was taken twice"
    )
}

#[inline]
fn lock() -> MutexGuard<'static, ()> {
    match GLOBAL.lock.try_lock() {
        Ok(guard) => guard,
        Err(_) => wait_for_lock(),
    }
}

/// Operations are short and a thread that waits for a message gives way, so the lock comes back
/// soon: spin, then yield, then sleep.
#[inline(never)]
fn wait_for_lock() -> MutexGuard<'static, ()> {
    const SPINS: u32 = 400;
    const YIELDS: u32 = 40;
    GLOBAL.waiting.fetch_add(1, Ordering::Relaxed);
    let guard = (0..SPINS + YIELDS).find_map(|i| {
        if i < SPINS {
            std::hint::spin_loop()
        } else {
            std::thread::yield_now()
        }
        GLOBAL.lock.try_lock().ok()
    });
    let guard = guard.unwrap_or_else(|| GLOBAL.lock.lock().unwrap_or_else(PoisonError::into_inner));
    GLOBAL.waiting.fetch_sub(1, Ordering::Relaxed);
    GLOBAL.turns.fetch_add(1, Ordering::Relaxed);
    guard
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a guard protects; not atomic on purpose: two threads inside would lose a count.
    struct Protected(UnsafeCell<u32>);

    // SAFETY: touched only with a guard alive, which is what the test is about.
    unsafe impl Sync for Protected {}

    #[test]
    fn threads_take_turns_while_one_waits() {
        const TURNS: u32 = 2000;
        let sum = Protected(UnsafeCell::new(0));
        let sum = &sum;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(move || {
                    for _ in 0..TURNS {
                        let _guard = objects();
                        // SAFETY: the guard is alive.
                        unsafe { *sum.0.get() += 1 };
                    }
                });
            }
            // Looks at it again and again, as a blocking receive does, until all are through.
            loop {
                let guard = objects();
                // SAFETY: the guard is alive.
                let seen = unsafe { *sum.0.get() };
                drop(guard);
                if seen == 3 * TURNS {
                    break;
                }
                let_others_in();
            }
        });
    }
}
