//! What is global to the process: the rank, and what may be used at any time.
//!
//! Below this crate a rank is a value. Here it lives in one place ([`shm::owner::Owner`]), reached
//! through a guard. With one thread inside MPI at a time the guard is a check of a flag; under
//! MPI_THREAD_MULTIPLE it holds a lock that is handed on to those who wait ([`shm::owner`]). Functions
//! of the application (error handlers, attribute callbacks, reduction operations) are called
//! without a guard alive: they may call MPI. While no guard is alive the rank may be lent to the
//! thread that makes progress ([`crate::engine`]).
//!
//! Infos, error codes, error handlers and the tools interface are no part of the rank: they are there at
//! any time, for any thread at any level, behind a lock of their own ([`anytime`]). It may be taken
//! by who has the rank, never the other way round. What a signal handler may ask takes no lock
//! ([`crate::places`]).

use std::ops::{Deref, DerefMut};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use mpi::anytime::Anytime;
use mpi::comm::{COMM_SELF, COMM_WORLD};
use mpi::errhandler::{self, Action};
use mpi::handle::Handle;
use mpi::objects::Objects;
use mpi::tools::{Now, Tools};
use shm::owner::{AtOnce, Guard, Owner};
use shm::watched;

use crate::object::Object;
use crate::places;

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

/// The rank of this process, from where it is connected to its job to where it is disconnected.
pub type World = mpi::World<crate::device::Device>;

/// Where the process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Before MPI_Init.
    Before,
    /// Between MPI_Init and MPI_Finalize, or in a session.
    Active,
    /// In neither, but connected to the job still: another session may come.
    Idle,
    /// Disconnected from the job for good.
    After,
    /// The child of a fork between the two: no rank of the job.
    Child,
}

/// How far the World Model of the process has come (MPI 5.0 section 11.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Before MPI_Init.
    Before,
    /// Between MPI_Init and MPI_Finalize.
    There,
    /// After MPI_Finalize.
    After,
}

static MODEL: AtomicU8 = AtomicU8::new(Model::Before as u8);
static MODEL_LEVEL: AtomicI32 = AtomicI32::new(thread::SINGLE);
static NUMBER: AtomicU32 = AtomicU32::new(u32::MAX);
static PHASE: AtomicU8 = AtomicU8::new(Phase::Before as u8);
static LEVEL: AtomicI32 = AtomicI32::new(thread::SINGLE);
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);
static RANK: Owner<World> = Owner::new();
static ANYTIME: Owner<Anytime> = Owner::new();

/// Where the process is in its life.
#[inline]
pub fn phase() -> Phase {
    const ALL: [Phase; 5] = [Phase::Before, Phase::Active, Phase::Idle, Phase::After, Phase::Child];
    ALL[PHASE.load(Ordering::Acquire) as usize]
}

/// How far the World Model has come.
pub fn model() -> Model {
    const ALL: [Model; 3] = [Model::Before, Model::There, Model::After];
    ALL[MODEL.load(Ordering::Acquire) as usize]
}

/// The level of thread support that MPI_Init was granted.
pub fn model_level() -> i32 {
    MODEL_LEVEL.load(Ordering::Relaxed)
}

/// This process's rank in the job, if it is or was connected to one.
pub fn number() -> Option<u32> {
    Some(NUMBER.load(Ordering::Relaxed)).filter(|number| *number != u32::MAX)
}

/// Whether the process is between MPI_Init and MPI_Finalize or in a session.
#[inline(always)]
pub fn is_active() -> bool {
    PHASE.load(Ordering::Relaxed) == Phase::Active as u8
}

/// The level of thread support that was granted.
pub fn thread_level() -> i32 {
    LEVEL.load(Ordering::Relaxed)
}

/// Whether several threads may be inside MPI.
#[inline]
pub fn has_threads() -> bool {
    thread_level() == thread::MULTIPLE
}

/// Whether the calling thread is the one that initialised MPI.
pub fn is_main_thread() -> bool {
    MAIN_THREAD.load(Ordering::Relaxed) == this_thread()
}

/// A number for the calling thread.
pub fn this_thread() -> usize {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Begins the World Model, for which the process is connected.
pub fn open_model(level: i32) {
    let mut world = world();
    world.open();
    for handle in [COMM_WORLD, COMM_SELF] {
        if let Some(comm) = world.objects.comms.get(handle) {
            places::add(handle, comm.place.rank, comm.place.size());
        }
    }
    MAIN_THREAD.store(this_thread(), Ordering::Relaxed);
    MODEL_LEVEL.store(level, Ordering::Relaxed);
    MODEL.store(Model::There as u8, Ordering::Release);
}

/// Ends the World Model.
pub fn close_model() {
    MODEL.store(Model::After as u8, Ordering::Release);
    let mut world = world();
    world.close();
    for handle in [COMM_WORLD, COMM_SELF] {
        places::remove(handle);
        anytime().errhandlers.release(errhandler::Raiser::Comm, handle);
    }
}

/// Nothing of MPI is in use, but the process stays connected.
pub fn rest() {
    PHASE.store(Phase::Idle as u8, Ordering::Release);
}

/// Ends [`rest`].
pub fn resume() {
    PHASE.store(Phase::Active as u8, Ordering::Release);
}

/// Starts the active phase with this rank.
pub fn start(level: i32, world: World) {
    watched::atomic(&PHASE);
    watched::atomic(&LEVEL);
    NUMBER.store(world.rank(), Ordering::Relaxed);
    let mut world = world;
    crate::tools::event::begin(&mut world);
    RANK.put(Box::new(world), level == thread::MULTIPLE);
    LEVEL.store(level, Ordering::Relaxed);
    MAIN_THREAD.store(this_thread(), Ordering::Relaxed);
    PHASE.store(Phase::Active as u8, Ordering::Release);
}

/// Ends the active phase. No guard may be alive.
pub fn finish() {
    let world = RANK.take().expect("finished without being started");
    let readings = world.readings();
    drop(world);
    let mut anytime = anytime();
    anytime.tools.ended(readings);
    anytime.errhandlers.release_all();
    drop(anytime);
    PHASE.store(Phase::After as u8, Ordering::Release);
}

/// In the child of a fork: it has a copy of a rank, and of a line of waiting threads that are not there.
/// What is allowed at any time stays so.
pub fn abandon() {
    RANK.reset();
    ANYTIME.reset();
    if is_active() || phase() == Phase::Idle {
        RANK.abandon();
        PHASE.store(Phase::Child as u8, Ordering::Release);
    }
}

/// What the error handler of `subject` asks for, or that of the communicator which stands in where
/// there is none; the handle it is called with, and the rank in MPI_COMM_WORLD if there is one. The rank
/// is not touched: errors of what is allowed at any time come here too.
pub fn error_action(subject: Option<(Object, Handle)>) -> (Action, Handle, Option<u32>) {
    let errhandlers = &anytime().errhandlers;
    // An error handler that the call itself has given: what it would belong to is not there.
    if let Some((Object::Errhandler, handler)) = subject {
        let (action, null) = errhandlers.action_by(handler);
        return (action, null, number());
    }
    if !is_active() {
        return (errhandlers.initial_action(), COMM_SELF, None);
    }
    let comm = |handle| (errhandlers.action(errhandler::Raiser::Comm, handle), handle);
    let (action, handle) = match subject {
        Some((Object::Comm, handle)) if places::of(handle).is_some() => comm(handle),
        Some((Object::Session, handle)) => (errhandlers.action(errhandler::Raiser::Session, handle), handle),
        Some((Object::Win, handle)) => (errhandlers.action(errhandler::Raiser::Win, handle), handle),
        Some((Object::File, handle)) => (errhandlers.action(errhandler::Raiser::File, handle), handle),
        _ => comm(errhandlers.of_no_object()),
    };
    (action, handle, number())
}

/// The rank; only in the active phase.
#[inline(always)]
pub fn world() -> WorldGuard {
    match RANK.enter() {
        Some(guard) => WorldGuard(guard),
        None => inactive(),
    }
}

/// The rank for what is over at once, without the steps that only errors need; `None` outside the
/// active phase, under MPI_THREAD_MULTIPLE and while the rank is lent. No guard may be alive; that is
/// left to guards to assert, which have the time.
#[inline(always)]
pub fn at_once() -> Option<AtOnce<'static, World>> {
    RANK.at_once()
}

/// Lends the rank to the calling thread, which is none of the application's, while no guard is
/// alive; `None` if one is. `barrier` is a full barrier on all cores that run a thread of this
/// process. The caller sees to it that the active phase does not end meanwhile.
pub fn lend<R>(barrier: impl FnOnce(), f: impl FnOnce(&mut World) -> R) -> Option<R> {
    RANK.lend(barrier, |world| {
        let result = f(world);
        world.engine.tell_threads();
        result
    })
}

/// Whether no guard has been taken since the last call.
pub fn was_away() -> bool {
    RANK.was_away()
}

/// Keeps all that guards protect as it is until [`release`], to which the answer is handed: around
/// `fork`, whose child has no other thread that could give it back.
pub fn hold() -> [bool; 2] {
    [RANK.hold(), ANYTIME.hold()]
}

/// Ends what [`hold`] began.
pub fn release(held: [bool; 2]) {
    if held[1] {
        ANYTIME.release();
    }
    if held[0] {
        RANK.release();
    }
}

/// What may be used at any time. No guard of the rank may be taken while this one is alive.
#[inline]
pub fn anytime() -> Guard<'static, Anytime> {
    static MADE: Once = Once::new();
    MADE.call_once(|| ANYTIME.put(first(), true));
    ANYTIME.enter().expect("made above, and never taken away")
}

#[cold]
fn first() -> Box<Anytime> {
    let mut anytime = Box::<Anytime>::default();
    let told = fabric::settings::told("TERN_INITIAL_ERRHANDLER");
    if let Some((_, initial)) = errhandler::NAMED.iter().find(|(name, _)| Some(*name) == told.as_deref()) {
        anytime.errhandlers.begin_with(*initial);
    }
    anytime
}

/// The object tables of the rank.
#[inline(always)]
pub fn objects() -> ObjectsGuard {
    ObjectsGuard(world())
}

/// The tools interface, with how the variables stand now: before MPI_Init at 0, after MPI_Finalize as
/// they were at the end.
pub fn tools<R>(f: impl FnOnce(&mut Tools, Now) -> R) -> R {
    let readings = if is_active() { readings() } else { None };
    let mut anytime = anytime();
    let last = readings.map(From::from).or_else(|| anytime.tools.last());
    f(&mut anytime.tools, &|index| last.as_ref().map_or(0, |last| last[index]))
}

/// How the variables stand. A thread that may not be inside MPI borrows the rank, as the engine does,
/// as soon as nobody is inside; where that cannot be (no membarrier) there is no answer.
fn readings() -> Option<Box<[u64]>> {
    borrow(|world| world.readings())
}

/// Has something done with the rank by a thread that may not be inside MPI, as soon as nobody is; `None` where that cannot be.
pub fn borrow<R>(f: impl Fn(&mut World) -> R) -> Option<R> {
    if has_threads() || (thread_level() < thread::SERIALIZED && is_main_thread()) {
        return Some(f(&mut world()));
    }
    while shm::has_barrier() && is_active() {
        if let Some(found) = lend(shm::barrier_within, &f) {
            return Some(found);
        }
        std::thread::yield_now();
    }
    None
}

/// Access to the rank.
pub struct WorldGuard(Guard<'static, World>);

/// Access to the object tables.
pub struct ObjectsGuard(WorldGuard);

impl Deref for WorldGuard {
    type Target = World;
    #[inline(always)]
    fn deref(&self) -> &World {
        &self.0
    }
}

impl DerefMut for WorldGuard {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut World {
        &mut self.0
    }
}

/// What this thread has brought about another one may sleep for.
impl Drop for WorldGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.is_locked() {
            self.0.engine.tell_threads();
        }
    }
}

impl Deref for ObjectsGuard {
    type Target = Objects;
    #[inline(always)]
    fn deref(&self) -> &Objects {
        &self.0.objects
    }
}

impl DerefMut for ObjectsGuard {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Objects {
        &mut self.0.objects
    }
}

#[cold]
fn inactive() -> ! {
    panic!("a handler of an operation that is allowed at any time asked for the rank")
}

/// A rank for unit tests, which are threads of one process.
#[cfg(test)]
pub fn start_for_tests() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let world = crate::start::alone().expect("a rank that is alone needs nothing");
        start(thread::MULTIPLE, world);
        open_model(thread::MULTIPLE);
    });
}
