//! MPI 5.0 section 11.2: MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once};

use launch::pmi::client::Client;
use mpi::anytime::Anytime;
use mpi::attr;
use mpi::comm::{COMM_SELF, COMM_WORLD};
use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;

use crate::coll::run;
use crate::connect::{self, Arrived};
use crate::cx::Cx;
use crate::global::{self, Model, Phase, World, thread};
use crate::kind::output::Out;
use crate::layout::{self, Set};
use crate::table;
use crate::{attr as attributes, dynamic, engine, explain, floating, links, raise, report};

/// Asks the launcher something.
pub fn with_launcher<T>(ask: impl FnOnce(&mut Client) -> T) -> std::result::Result<T, String> {
    match connect::launcher().as_mut() {
        Some(client) => Ok(ask(client)),
        None => Err("this process was started alone, without an mpiexec that could be asked".into()),
    }
}

/// Whether a launcher has started this process, and may end it.
pub fn is_launched() -> bool {
    connect::try_ender().is_none_or(|ender| ender.is_some())
}

/// `MPI_Init`.
pub fn init(cx: &Cx, _argc: usize, _argv: usize) -> Result {
    start(cx, thread::SINGLE).map(|_| ())
}

/// `MPI_Init_thread`: every level is supported.
pub fn init_thread(cx: &Cx, _argc: usize, _argv: usize, required: i32, provided: Out<i32>) -> Result {
    let Some(level) = thread::granted(required) else {
        return fail(Class::ARG, format!("argument `required` is {required}, not a level of thread support"));
    };
    provided.set(start(cx, level)?);
    Ok(())
}

/// Starts the World Model with this level of thread support.
fn start(cx: &Cx, level: i32) -> Result<i32> {
    // Before anything is held that other threads need to open and to end their sessions.
    if global::phase() != Phase::Child {
        connect::job(cx)?;
    }
    let _life = life();
    if global::model() != Model::Before {
        return fail(Class::OTHER, "MPI has been initialised already; it can be only once");
    }
    let level = rise(cx, level, level, Needs::Others)?;
    connect::job(cx)?; // a session may have been opened meanwhile
    global::open_model(level);
    dynamic::find_parent(cx)?;
    Ok(level)
}

/// Opens a session with the level of thread support that is granted of the one asked for: that of MPI_Init
/// is an upper bound, for the rank has no lock if that asked for none. Where a session comes first it has.
pub fn open_session(cx: &Cx, level: i32, open: impl FnOnce(i32) -> Result<Handle>) -> Result<Handle> {
    static AT_EXIT: Once = Once::new();
    let _life = life();
    let level = rise(cx, level, thread::MULTIPLE, Needs::Nobody)?;
    SESSIONS.store(true, Ordering::Relaxed);
    // SAFETY: the function takes nothing, returns, and is part of this library, which is not unloaded.
    AT_EXIT.call_once(|| unsafe {
        libc::atexit(at_exit);
    });
    open(level).inspect_err(|_| rest_if_unused(cx))
}

/// Closes a session.
pub fn close_session(cx: &Cx, close: impl FnOnce()) -> Result {
    let _life = life();
    close();
    rest_if_unused(cx);
    Ok(())
}

/// Whether the process has had a session: then it belongs to its job up to its end.
static SESSIONS: AtomicBool = AtomicBool::new(false);

/// What begins and ends MPI in this process does so alone.
fn life() -> MutexGuard<'static, ()> {
    static LIFE: Mutex<()> = Mutex::new(());
    LIFE.lock().unwrap_or_else(|e| e.into_inner())
}

fn rest_if_unused(cx: &Cx) {
    if global::model() != Model::There && cx.objects().sessions.is_empty() {
        global::rest();
    }
}

/// The process ends: its ranks part as they do in MPI_Finalize, if it has closed what it had opened. One that has been alone goes
/// to the others for that.
extern "C" fn at_exit() {
    if global::phase() == Phase::Idle {
        let row = table::all().find(|row| row.name == "MPI_Session_finalize").expect("it is in the table");
        let cx = Cx::new(row, false);
        global::resume();
        if let Err(error) = connect::job(&cx).and_then(|()| part(&cx)) {
            raise::print(&format!("tern: at the end of the process: {error}"));
        }
    }
}

/// Whether what begins needs the other processes of the job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Others,
    Nobody,
}

/// Makes the rank, unless it is there, and says which level of thread support there is for one who asks for `wanted`; `least` is
/// what the rank is made for.
fn rise(cx: &Cx, wanted: i32, least: i32, needs: Needs) -> Result<i32> {
    match global::phase() {
        Phase::Before => {}
        Phase::Active => return Ok(wanted.min(global::thread_level())),
        Phase::Idle => {
            global::resume();
            return Ok(wanted.min(global::thread_level()));
        }
        Phase::After => {
            let text = "MPI_Finalize has disconnected this process from its job for good; it stays connected if a \
                        session has been opened before";
            return fail(Class::OTHER, text);
        }
        Phase::Child => return fail(Class::OTHER, "this process was made by fork and is no rank of the job"),
    }
    let failed = |text| Error::new(Class::OTHER, text);
    let _held = floating::hold();
    // First of all a way to end the whole job, so that what is wrong next is said once.
    raise::on_fatal(Box::new(end_job));
    let arrived = connect::arrive().map_err(failed)?;
    let meets = needs == Needs::Others || arrived.size == 1;
    let parts = if meets { arrived.meet() } else { arrived.alone() }.map_err(failed)?;
    let mut world = arrived.rank(parts, meets).map_err(failed)?;
    describe(&mut world, &mut cx.anytime(), &arrived);
    cx.anytime().tools.started(arrived.settings.clone());
    engine::watch_forks();
    if !meets {
        connect::meet_beside(arrived);
    }
    global::start(least, world);
    Ok(wanted)
}

/// The predefined attributes and MPI_INFO_ENV.
fn describe(world: &mut World, anytime: &mut Anytime, arrived: &Arrived) {
    world.objects.last_used_code = anytime.codes.last_used_address();
    let predefined = &mut world.objects.predefined;
    predefined.set(attr::TAG_UB, i32::MAX);
    predefined.set(attr::HOST, layout::write(Set::Rank, mpi::group::PROC_NULL));
    predefined.set(attr::IO, layout::write(Set::Rank, mpi::status::ANY_SOURCE));
    let (appnum, universe) = arrived.told();
    predefined.set(attr::UNIVERSE_SIZE, universe as i32);
    if let Some(appnum) = appnum {
        predefined.set(attr::APPNUM, appnum);
    }
    crate::info::describe_environment(anytime, arrived.size);
}

/// `MPI_Finalize`: runs the delete functions of MPI_COMM_SELF's attributes first (MPI 5.0
/// section 11.2.4), then waits for all ranks, so that nobody's messages are lost.
pub fn finalize(cx: &Cx) -> Result {
    if global::model() != Model::There {
        return fail(
            Class::OTHER,
            "MPI_Init has not been called, or MPI_Finalize has; sessions are ended by MPI_Session_finalize",
        );
    }
    attributes::delete_all(cx, attr::Holder::Comm, COMM_SELF)?;
    attributes::delete_all(cx, attr::Holder::Comm, COMM_WORLD)?;
    if !SESSIONS.load(Ordering::Relaxed) {
        dynamic::close_ports(cx);
    }
    crate::wait::until(cx, |world| Ok(world.is_drained().then_some(())))?;
    meet(cx, COMM_WORLD)?;
    dynamic::take_leave(cx)?;
    let stray = stray(cx)?;
    let _life = life();
    global::close_model();
    if !SESSIONS.load(Ordering::Relaxed) {
        part(cx)?;
    } else {
        rest_if_unused(cx);
    }
    stray.map_or(Ok(()), |text| fail(Class::NOT_SAME, text))
}

/// Disconnects the process from its job, as all ranks do: a rank that has had sessions at its end, others in
/// MPI_Finalize.
fn part(cx: &Cx) -> Result {
    let last = cx.world().add_last()?;
    let have_met = meet(cx, last)?;
    explain::end(cx)?;
    links::measure(cx, last, have_met);
    crate::file::stop_beside();
    engine::stop();
    global::finish();
    connect::part()
}

/// Waits for all ranks, at the end. Where one is lost, to this rank or to another, that cannot be, and the program knows:
/// it ends by itself, when those that may wait for it have been told. Who is gone once all have been here has left in order: nobody is
/// told of that, for who would be told may have left, too. Whether all have been here.
fn meet(cx: &Cx, comm: Handle) -> Result<bool> {
    let is_cut = || cx.world().is_cut(comm);
    if !is_cut() {
        let met = run::barrier(cx, comm);
        if met.is_ok() || !is_cut() {
            return met.map(|()| true);
        }
    }
    crate::wait::until(cx, |world| Ok(world.is_drained().then_some(())))?;
    Ok(false)
}

/// Once all ranks are here every message of a collective has been received, or somebody else was
/// in another collective or named another root. Where there are sessions some may go on already in collectives that
/// this rank comes to later.
fn stray(cx: &Cx) -> Result<Option<String>> {
    crate::wait::progress(cx)?;
    Ok(if raise::has_returned() || SESSIONS.load(Ordering::Relaxed) {
        None
    } else {
        cx.world().stray_collective()
    })
}

/// `MPI_Abort`: ends all processes of the job.
pub fn abort(_: &Cx, _comm: Handle, code: i32) -> Result {
    let rank = global::number().unwrap_or(0);
    raise::end(code, &format!("tern: rank {rank}: MPI_Abort was called with code {code}"))
}

/// How long the reason of a fatal error may lie in a pipe before the job is ended all the same.
const ABORT_PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);

/// Hands a fatal error to the launcher, which ends the job; whether it prints the message.
fn end_job(code: i32, text: &str) -> bool {
    let printed = report::fatal(code, text);
    if !printed
        && let Some(ender) = connect::try_ender()
        && let Some(ender) = ender.as_ref()
    {
        raise::print(text);
        // Hydra ends everything at once, and what its proxies have not read by then is lost.
        launch::sys::wait_until_read(libc::STDERR_FILENO, ABORT_PATIENCE);
        let _ = ender.end(code);
        return true;
    }
    printed
}

/// The rank of a process that was started alone, for unit tests.
#[cfg(test)]
pub fn alone() -> std::result::Result<World, String> {
    use crate::device::Hosts;
    use mpi::coll::{Forced, Tariff};
    let settings = fabric::settings::Settings::from_env()?;
    let options = shm::Options {
        dir: settings.text("TERN_SHM_DIR").into(),
        prefix: "tern-test".into(),
        single_copy: true,
        cores: 1,
        stores: None,
        loads: None,
    };
    let device = Hosts::one(0, 1).connect(&options, &mut connect::Alone)?;
    let engine = proto::Engine::new(device, connect::limits(&settings));
    Ok(World::new(engine, Tariff::of_job(&settings, 1), Forced::read(&settings)))
}
