//! MPI 5.0 section 11.2: MPI_Init, MPI_Init_thread, MPI_Finalize, MPI_Abort.

use std::sync::Mutex;

use fabric::Exchange;
use fabric::settings::Settings;
use launch::pmi::client::Client;
use mpi::anytime::Anytime;
use mpi::attr;
use mpi::coll::{self, Forced, LinkCosts};
use mpi::comm::{COMM_SELF, COMM_WORLD};
use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;
use proto::{CacheLimits, EagerBy, Engine, Limits, Manner, Protocol};
use shm::StoreWay;

use crate::coll::run;
use crate::cx::Cx;
use crate::device::{Device, Hosts};
use crate::global::{self, Phase, World, thread};
use crate::kind::output::Out;
use crate::{attr as attributes, engine, explain, places, raise, report};

/// Key under which rank 0 publishes what all must know to choose the same algorithms.
const COLLECTIVES: &str = "tern.coll";

/// The launcher, from MPI_Init to MPI_Finalize.
static LAUNCHER: Mutex<Option<Client>> = Mutex::new(None);

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

/// Starts with this level of thread support.
fn start(cx: &Cx, level: i32) -> Result<i32> {
    if global::phase() != Phase::Before {
        return fail(Class::OTHER, "MPI has been initialised already; it can be only once");
    }
    let connected = connect().map_err(|text| Error::new(Class::OTHER, text))?;
    let (engine, link, settings, appnum, universe) = connected;
    let mut world = World::new(engine, link, Forced::read(&settings));
    describe(&mut world, &mut cx.anytime(), appnum, universe);
    cx.anytime().tools.started(settings);
    engine::watch_forks();
    global::start(level, world);
    Ok(level)
}

type Connected = (Engine<Device>, LinkCosts, Settings, Option<i32>, usize);

/// Finds the other ranks.
fn connect() -> std::result::Result<Connected, String> {
    // First of all a way to end the whole job, so that what is wrong next is said once.
    raise::on_fatal(Box::new(end_job));
    report::connect()?;
    let settings = Settings::from_env()?;
    engine::permit(settings.text("TERN_PROGRESS") == "engine");
    let mut client = Client::from_env()?;
    let (me, n) = client.as_ref().map_or((0, 1), |client| (client.rank(), client.size()));
    let job = client.as_mut().map_or(Ok("alone".into()), Client::get_my_kvsname)?;
    let options = shm::Options {
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
    let hosts = match &mut client {
        Some(client) => Hosts::find(me, n, &settings, client)?,
        None => Hosts::one(0, 1),
    };
    let link = link_costs(&settings, options.cores, hosts.are_several());
    if let (Some(client), 0) = (&mut client, me) {
        client.put(COLLECTIVES, coll::agreement(&settings, &link).as_bytes())?;
    }
    let device = match &mut client {
        Some(client) => hosts.connect(&options, &mut Launcher(client))?,
        None => hosts.connect(&options, &mut Alone)?,
    };
    let link = match &mut client {
        Some(client) if me != 0 => coll::agreed(&Launcher(client).get(COLLECTIVES)?, &settings, me, link)?,
        _ => link,
    };
    let limits = limits(&settings);
    let appnum = client.as_mut().and_then(|client| client.get_appnum().ok()).map(|n| n as i32);
    let universe = client.as_mut().and_then(|client| client.get_universe_size().ok().flatten()).unwrap_or(n);
    *LAUNCHER.lock().unwrap_or_else(|e| e.into_inner()) = client;
    let mut engine = Engine::new(device, limits);
    engine.fix_manner(Manner::named(settings.text("TERN_MANNER")));
    explain::begin(&mut engine, &settings, me)?;
    Ok((engine, link, settings, appnum, universe))
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

/// What messages between ranks of this host cost: constants, and what this rank sees of the
/// machine.
fn link_costs(settings: &Settings, cores: usize, are_several: bool) -> LinkCosts {
    let link = if are_several { LinkCosts::NETWORK } else { LinkCosts::HOST };
    LinkCosts {
        cores: u32::try_from(cores).unwrap_or(u32::MAX).max(1),
        single_copy: link.single_copy && settings.flag("TERN_SINGLE_COPY"),
        ..link
    }
}

/// The predefined attributes and MPI_INFO_ENV.
fn describe(world: &mut World, anytime: &mut Anytime, appnum: Option<i32>, universe: usize) {
    let is_one_host = world.engine.device().far().is_none();
    world.objects.last_used_code = anytime.codes.last_used_address();
    let predefined = &mut world.objects.predefined;
    predefined.set(attr::TAG_UB, i32::MAX);
    predefined.set(attr::WTIME_IS_GLOBAL, i32::from(is_one_host));
    predefined.set(attr::HOST, mpi::group::PROC_NULL);
    predefined.set(attr::IO, mpi::status::ANY_SOURCE);
    predefined.set(attr::UNIVERSE_SIZE, universe as i32);
    if let Some(appnum) = appnum {
        predefined.set(attr::APPNUM, appnum);
    }
    let size = world.objects.comms.get(COMM_WORLD).map_or(1, |comm| comm.place.size());
    crate::info::describe_environment(anytime, size as usize);
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
    attributes::delete_all(cx, attr::Kind::Comm, COMM_SELF)?;
    attributes::delete_all(cx, attr::Kind::Comm, COMM_WORLD)?;
    crate::wait::until(cx, |world| Ok(world.is_drained().then_some(())))?;
    run::barrier(cx, COMM_WORLD)?;
    let stray = stray(cx)?;
    explain::end(cx)?;
    engine::stop();
    global::finish();
    let client = LAUNCHER.lock().unwrap_or_else(|e| e.into_inner()).take();
    client.map_or(Ok(()), |client| client.finalize().map_err(|text| Error::new(Class::OTHER, text)))?;
    stray.map_or(Ok(()), |text| fail(Class::NOT_SAME, text))
}

/// Once all ranks are here every message of a collective has been received, or somebody else was
/// in another collective or named another root.
fn stray(cx: &Cx) -> Result<Option<String>> {
    crate::wait::progress(cx)?;
    Ok(if raise::has_returned() { None } else { cx.world().stray_collective() })
}

/// `MPI_Abort`: ends all processes of the job.
pub fn abort(_: &Cx, _comm: Handle, code: i32) -> Result {
    let rank = places::of(COMM_WORLD).map_or(0, |place| place.rank);
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
    Ok(World::new(engine, link_costs(&settings, 1, false), Forced::read(&settings)))
}
