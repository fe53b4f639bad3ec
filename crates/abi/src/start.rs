//! MPI 5.0 section 11.2: MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once};

use fabric::settings::Settings;
use fabric::{Device as _, Exchange};
use launch::pmi::client::Client;
use mpi::anytime::Anytime;
use mpi::attr;
use mpi::coll::{self, Account, Agreed, Forced, Tariff};
use mpi::comm::{COMM_SELF, COMM_WORLD};
use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;
use mpi::session::process_sets;
use mpi::win::fence::Way;
use proto::epoch::Schedule;
use proto::{CacheLimits, EagerBy, Engine, Limits, Manner, Protocol};
use shm::StoreWay;

use crate::coll::run;
use crate::cx::Cx;
use crate::device::{Device, Hosts};
use crate::global::{self, Model, Phase, World, thread};
use crate::kind::output::Out;
use crate::layout::{self, Set};
use crate::table;
use crate::win::memory;
use crate::{attr as attributes, dynamic, engine, explain, links, raise, report};

/// Key under which rank 0 publishes what all must know to choose the same algorithms.
const COLLECTIVES: &str = "tern.coll";

/// The launcher, from MPI_Init to MPI_Finalize.
static LAUNCHER: Mutex<Option<Client>> = Mutex::new(None);

/// Asks the launcher something.
pub fn with_launcher<T>(ask: impl FnOnce(&mut Client) -> T) -> std::result::Result<T, String> {
    match LAUNCHER.lock().unwrap_or_else(|e| e.into_inner()).as_mut() {
        Some(client) => Ok(ask(client)),
        None => Err("this process was started alone, without an mpiexec that could be asked".into()),
    }
}

/// Whether a launcher has started this process, and may end it.
pub fn is_launched() -> bool {
    LAUNCHER.try_lock().map_or(true, |launcher| launcher.is_some())
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
    let _life = life();
    if global::model() != Model::Before {
        return fail(Class::OTHER, "MPI has been initialised already; it can be only once");
    }
    let level = rise(cx, level, level)?;
    global::open_model(level);
    dynamic::find_parent(cx)?;
    Ok(level)
}

/// Opens a session with the level of thread support that is granted of the one asked for: that of MPI_Init
/// is an upper bound, for the rank has no lock if that asked for none. Where a session comes first it has.
pub fn open_session(cx: &Cx, level: i32, open: impl FnOnce(i32) -> Result<Handle>) -> Result<Handle> {
    static AT_EXIT: Once = Once::new();
    let _life = life();
    let level = rise(cx, level, thread::MULTIPLE)?;
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

/// Whether the process has had a session: then it stays connected to its end.
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

/// The process ends: its ranks part as they do in MPI_Finalize, if it has closed what it had opened.
extern "C" fn at_exit() {
    if global::phase() == Phase::Idle {
        let row = table::all().find(|row| row.name == "MPI_Session_finalize").expect("it is in the table");
        let cx = Cx::new(row, false);
        global::resume();
        if let Err(error) = part(&cx) {
            raise::print(&format!("tern: at the end of the process: {error}"));
        }
    }
}

/// Connects the process to its job, unless it is connected, and says which level of thread support there is
/// for one who asks for `wanted`; `least` is what the rank is made for.
fn rise(cx: &Cx, wanted: i32, least: i32) -> Result<i32> {
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
    let connected = connect().map_err(|text| Error::new(Class::OTHER, text))?;
    let Connected { engine, tariff, settings, appnum, universe, hosts } = connected;
    let mut world = World::new(engine, tariff, Forced::read(&settings));
    world.objects.locking = disk::Locking::named(settings.text("TERN_FILE_LOCKS"));
    world.account = Account::new(world.engine.learner().account.detail()).map(Box::new);
    world.close();
    let size = world.engine.device().size() as u32;
    world.objects.sets = process_sets(world.rank(), size, &hosts);
    describe(&mut world, &mut cx.anytime(), appnum, universe);
    cx.anytime().tools.started(settings);
    engine::watch_forks();
    global::start(least, world);
    Ok(wanted)
}

/// What connecting brings.
struct Connected {
    engine: Engine<Device>,
    tariff: Tariff,
    settings: Settings,
    appnum: Option<i32>,
    universe: usize,
    /// The names of the ranks' hosts, or the one name that all have.
    hosts: Vec<String>,
}

/// Finds the other ranks.
fn connect() -> std::result::Result<Connected, String> {
    // First of all a way to end the whole job, so that what is wrong next is said once.
    raise::on_fatal(Box::new(end_job));
    report::connect()?;
    let settings = Settings::from_env()?;
    engine::permit(settings.text("TERN_PROGRESS") == "engine");
    let mut client = Client::from_env()?;
    let (me, n) = client.as_ref().map_or((0, 1), |client| (client.rank(), client.size()));
    let job = client.as_mut().map_or(Ok("alone".into()), Client::name)?;
    dynamic::name_job(client.as_ref().map(|_| job.as_str()))?;
    let mut options = shm::Options {
        dir: settings.text("TERN_SHM_DIR").into(),
        prefix: launch::report::segment_prefix(&job),
        single_copy: settings.flag("TERN_SINGLE_COPY"),
        cores: launch::control::job_cpus(),
        stores: match settings.text("TERN_STORES") {
            "ordinary" => Some(StoreWay::Ordinary),
            "prefetched" => Some(StoreWay::Prefetched),
            "streaming" => Some(StoreWay::Streaming),
            _ => None,
        },
    };
    memory::set_up(memory::Setup {
        direct: settings.text("TERN_WIN") != "active",
        adapter: settings.text("TERN_WIN") == "auto",
        connections: settings.text("TERN_TRANSPORT") == "rc",
        schedule: Schedule::named(settings.text("TERN_WIN_SCHEDULE")).unwrap_or_default(),
        fence: Way::named(settings.text("TERN_WIN_FENCE")),
        dir: options.dir.clone(),
        prefix: options.prefix.clone(),
        engine: settings.text("TERN_PROGRESS") == "engine",
    });
    let mut hosts = match &mut client {
        Some(client) => Hosts::find(me, n, &settings, client)?,
        None => Hosts::one(0, 1),
    };
    options.cores = hosts.cores(options.cores);
    let tariff = Tariff::of_job(&settings, options.cores).crowded(hosts.cores_of_all());
    let mut agreed = Agreed { tariff, measured: Vec::new() };
    if let (Some(client), 0) = (&mut client, me) {
        agreed = links::agree(agreed.tariff, &settings, &hosts);
        client.put(COLLECTIVES, coll::agreement(&settings, &agreed).as_bytes())?;
    }
    let names = hosts.names();
    let device = match &mut client {
        Some(client) => hosts.connect(&options, &mut Launcher(client))?,
        None => hosts.connect(&options, &mut Alone)?,
    };
    if let Some(client) = client.as_mut().filter(|_| me != 0) {
        agreed = coll::agreed(&Launcher(client).get(COLLECTIVES)?, &settings, me)?;
        links::heed(&agreed, me);
    }
    let limits = limits(&settings);
    // Slurm says -1 where there is but one program.
    let appnum =
        client.as_mut().and_then(|client| client.appnum().ok()).filter(|n| *n >= 0).map(|n| n as i32);
    let universe = client.as_mut().and_then(|client| client.universe().ok().flatten()).unwrap_or(n);
    *LAUNCHER.lock().unwrap_or_else(|e| e.into_inner()) = client;
    let mut engine = Engine::new(device, limits);
    engine.fix_manner(Manner::named(settings.text("TERN_MANNER")));
    engine.verify_registrations(settings.flag("TERN_REGISTERED_VERIFY"));
    explain::begin(&mut engine, &settings, me)?;
    Ok(Connected { engine, tariff: agreed.tariff, settings, appnum, universe, hosts: names })
}

/// What settings say to the protocols.
fn limits(settings: &Settings) -> Limits {
    Limits {
        eager_bytes: settings.number("TERN_EAGER_MAX") as usize,
        unexpected_bytes: settings.number("TERN_UNEXPECTED") as usize,
        unexpected_max_bytes: settings.number("TERN_UNEXPECTED_MAX") as usize,
        adapt: settings.flag("TERN_ADAPT"),
        rtr: settings.flag("TERN_RTR"),
        remote_access: true,
        force: Protocol::named(settings.text("TERN_PROTOCOL")),
        eager_by: EagerBy::named(settings.text("TERN_PROTOCOL")),
        cache: CacheLimits {
            bytes: settings.number("TERN_REGISTERED_MAX") as usize,
            ..CacheLimits::default()
        },
    }
}

/// The predefined attributes and MPI_INFO_ENV.
fn describe(world: &mut World, anytime: &mut Anytime, appnum: Option<i32>, universe: usize) {
    let is_one_host = world.engine.device().far().is_none();
    world.objects.last_used_code = anytime.codes.last_used_address();
    let predefined = &mut world.objects.predefined;
    predefined.set(attr::TAG_UB, i32::MAX);
    predefined.set(attr::WTIME_IS_GLOBAL, i32::from(is_one_host));
    predefined.set(attr::HOST, layout::write(Set::Rank, mpi::group::PROC_NULL));
    predefined.set(attr::IO, layout::write(Set::Rank, mpi::status::ANY_SOURCE));
    predefined.set(attr::UNIVERSE_SIZE, universe as i32);
    if let Some(appnum) = appnum {
        predefined.set(attr::APPNUM, appnum);
    }
    crate::info::describe_environment(anytime, world.engine.device().size());
}

/// Ranks find each other through the key-value space of the launcher.
struct Launcher<'a>(&'a mut Client);

impl Exchange for Launcher<'_> {
    fn put(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        self.0.put(key, value.as_bytes())
    }

    fn fence(&mut self) -> std::result::Result<(), String> {
        self.0.barrier()
    }

    fn get(&mut self, key: &str) -> std::result::Result<String, String> {
        String::from_utf8(self.0.get(key)?).map_err(|_| format!("the value of `{key}` is not text"))
    }
}

/// A program that was started alone needs nobody.
struct Alone;

impl Exchange for Alone {
    fn put(&mut self, _: &str, _: &str) -> std::result::Result<(), String> {
        Ok(())
    }

    fn fence(&mut self) -> std::result::Result<(), String> {
        Ok(())
    }

    fn get(&mut self, key: &str) -> std::result::Result<String, String> {
        Err(format!("there is no `{key}`: this program was started alone"))
    }
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
    meet(cx, last)?;
    explain::end(cx)?;
    links::measure(cx, last);
    crate::file::stop_beside();
    engine::stop();
    global::finish();
    let client = LAUNCHER.lock().unwrap_or_else(|e| e.into_inner()).take();
    client.map_or(Ok(()), |client| client.finalize().map_err(|text| Error::new(Class::OTHER, text)))
}

/// Waits for all ranks, at the end. Where one is lost, to this rank or to another, that cannot be, and the program knows:
/// it ends by itself, when those that may wait for it have been told.
fn meet(cx: &Cx, comm: Handle) -> Result {
    let is_cut = || cx.world().is_cut(comm);
    let met = if is_cut() { Ok(()) } else { run::barrier(cx, comm) };
    if is_cut() {
        return crate::wait::until(cx, |world| Ok(world.is_drained().then_some(())));
    }
    met
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
        && let Ok(mut launcher) = LAUNCHER.try_lock()
        && let Some(client) = launcher.as_mut()
    {
        raise::print(text);
        // Hydra ends everything at once, and what its proxies have not read by then is lost.
        launch::sys::wait_until_read(libc::STDERR_FILENO, ABORT_PATIENCE);
        let _ = client.abort(code);
        return true;
    }
    printed
}

/// The rank of a process that was started alone, for unit tests.
#[cfg(test)]
pub fn alone() -> std::result::Result<World, String> {
    let settings = Settings::from_env()?;
    let options = shm::Options {
        dir: settings.text("TERN_SHM_DIR").into(),
        prefix: "tern-test".into(),
        single_copy: true,
        cores: 1,
        stores: None,
    };
    let limits = limits(&settings);
    let engine = Engine::new(Hosts::one(0, 1).connect(&options, &mut Alone)?, limits);
    Ok(World::new(engine, Tariff::of_job(&settings, 1), Forced::read(&settings)))
}
