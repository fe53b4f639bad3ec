//! How a process gets to the others of its job: it arrives, which needs its launcher alone, and meets them, which all
//! processes of the job do together.
//!
//! ```text
//! MPI_Init first         Before ─▶ arrive ─▶ meet ─────────────────▶ connected
//! MPI_Session_init first Before ─▶ arrive ─┬▶ alone ─┬▶ go over ──▶ connected
//!                                          └▶ meet ──┘
//! ```
//!
//! MPI_Session_init is local (MPI 5.0 section 11.3.1), and so is what a session is asked. A rank that is alone has its number and
//! the size of its job, so that groups, contexts and names are what they will be, and a device that reaches nobody else.
//!
//! Launchers have barriers of all processes of a job and no others. So a process that begins with a session meets the others
//! at once, in a thread of the library beside the program ([`meet_beside`]), and is waited for by nobody, whatever it does
//! next. What needs others ([`job`]), MPI_Init and the end of the process wait for that thread; then the engine goes over to the
//! device that it has made ([`proto::Engine::go_over`]), and all objects stay. The thread knows nothing of the rank, and all that
//! it needs of the environment has been read when the process arrived: a program may change it.

use std::io::{PipeReader, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fabric::settings::Settings;
use fabric::{Device as _, Exchange, Pair};
use launch::pmi::client::{Client, Ender};
use launch::sys::event;
use mpi::attr;
use mpi::coll::{self, Account, Agreed, Forced, Tariff};
use mpi::error::{Class, Error, Result, fail};
use mpi::session::process_sets;
use mpi::win::fence::FenceWay;
use proto::epoch::Schedule;
use proto::{CacheLimits, EagerBy, Engine, Limits, Manner, Protocol};
use shm::{LoadWay, Shm, StoreWay};

use crate::cx::Cx;
use crate::device::{Device, Hosts};
use crate::global::World;
use crate::report::Waits;
use crate::win::memory;
use crate::{dynamic, engine, explain, links, report, tools};

/// Key under which rank 0 publishes what all must know to choose the same algorithms.
const COLLECTIVES: &str = "tern.coll";

/// How often who waits for others looks whether `mpiexec` asks something, as who sleeps in MPI does.
const LOOK: Duration = Duration::from_millis(100);

/// The launcher, from where the process arrives to where it parts; not while the process meets the others.
static LAUNCHER: Mutex<Option<Client>> = Mutex::new(None);

/// What has the launcher end the job, from where the process arrives to where it parts.
static ENDER: Mutex<Option<Ender>> = Mutex::new(None);

/// How far this process has come by itself.
static STANDING: Mutex<Standing> = Mutex::new(Standing::Settled);

/// How far a process has come that has begun with a session.
enum Standing {
    /// It has met the others, or has not begun so.
    Settled,
    /// It meets them: in a thread of the library, or, where there could be none, when it needs them.
    Meets(Arc<Arrived>, Option<Meeting>),
    /// It has met them in vain, and why.
    Failed(String),
}

/// The thread that meets the others. It writes when it has done so: that it is about to end can be waited for beside other things.
struct Meeting {
    thread: JoinHandle<Made>,
    met: PipeReader,
}

/// Parts, or why there are none.
type Made = std::result::Result<Parts, String>;

/// The launcher, which is not asked while the process meets the others.
pub fn launcher() -> MutexGuard<'static, Option<Client>> {
    LAUNCHER.lock().unwrap_or_else(|e| e.into_inner())
}

/// What has the launcher end the job, if nobody else has it do so just now.
pub fn try_ender() -> Option<MutexGuard<'static, Option<Ender>>> {
    ENDER.try_lock().ok()
}

/// What a process knows of its job by itself.
pub struct Arrived {
    /// The settings in force.
    pub settings: Settings,
    /// This rank.
    pub me: usize,
    /// Number of ranks.
    pub size: usize,
    /// Whether all ranks are known to be on one host.
    is_one: bool,
    /// The file that knows links between hosts.
    links: Option<PathBuf>,
    options: shm::Options,
}

/// What a rank is made of.
pub struct Parts {
    device: Device,
    tariff: Tariff,
    /// The names of the ranks' hosts, or the one name that all have; nothing where that is not known yet.
    hosts: Vec<String>,
}

/// Finds out what the environment and the launcher say. Local.
pub fn arrive() -> std::result::Result<Arrived, String> {
    report::connect()?;
    let settings = Settings::from_env()?;
    let mut client = Client::from_env()?;
    let (me, size) = client.as_ref().map_or((0, 1), |client| (client.rank(), client.size()));
    let job = client.as_mut().map_or(Ok("alone".into()), Client::name)?;
    dynamic::name_job(client.as_ref().map(|_| job.as_str()))?;
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
        loads: match settings.text("TERN_LOADS") {
            "ordinary" => Some(LoadWay::Ordinary),
            "prefetched" => Some(LoadWay::Prefetched),
            "side-by-side" => Some(LoadWay::SideBySide),
            _ => None,
        },
    };
    memory::set_up(memory::Setup {
        direct: settings.text("TERN_WIN") != "active",
        adapter: settings.text("TERN_WIN") == "auto",
        connections: settings.text("TERN_TRANSPORT") == "rc",
        schedule: Schedule::named(settings.text("TERN_WIN_SCHEDULE")).unwrap_or_default(),
        fence: FenceWay::named(settings.text("TERN_WIN_FENCE")),
        dir: options.dir.clone(),
        prefix: options.prefix.clone(),
        engine: settings.text("TERN_PROGRESS") == "engine",
    });
    let is_one = client.as_ref().is_none_or(|client| Hosts::are_one(size, &settings, client));
    let links = launch::links::path(&settings);
    *ENDER.lock().unwrap_or_else(|e| e.into_inner()) = client.as_ref().map(Client::ender);
    *launcher() = client;
    Ok(Arrived { settings, me, size, is_one, links, options })
}

impl Arrived {
    /// Which of several programs this is, if the launcher says so, and how many ranks it could run. Local; behind all that has to be
    /// answered, for a launcher that is broken is found by that.
    pub fn told(&self) -> (Option<i32>, usize) {
        let mut launcher = launcher();
        let Some(client) = launcher.as_mut() else { return (None, self.size) };
        // Slurm says -1 where there is but one program.
        let appnum = client.appnum().ok().filter(|n| *n >= 0).map(|n| n as i32);
        let universe = client.universe().ok().flatten().unwrap_or(self.size);
        (appnum, universe)
    }

    /// A rank that reaches nobody but itself. Local.
    pub fn alone(&self) -> Made {
        // It sleeps and spins as one of many on this host would; what it sends to itself needs no kernel.
        let cores = self.options.cores / self.size;
        let options = shm::Options { single_copy: false, cores, ..self.options.clone() };
        let near = Shm::join(0, 1, "", &options, &mut Alone)?;
        let tariff = Tariff::of_job(&self.settings, self.options.cores);
        let hosts = self.is_one.then(crate::env::host_name).and_then(|name| name.ok()).into_iter().collect();
        Ok(Parts { device: Pair::alone(near, self.me, self.size), tariff, hosts })
    }

    /// Finds the other ranks. Collective.
    pub fn meet(&self) -> Made {
        // While this waits for others nobody else has to wait for it.
        let mut client = launcher().take();
        let met = self.meet_by(&mut client);
        *launcher() = client;
        met
    }

    fn meet_by(&self, client: &mut Option<Client>) -> Made {
        let Arrived { settings, me, size, .. } = self;
        let mut options = self.options.clone();
        let mut hosts = match client {
            Some(client) if !self.is_one => Hosts::find(*me, *size, settings, client)?,
            _ => Hosts::one(*me, *size),
        };
        options.cores = hosts.cores(options.cores);
        let tariff = Tariff::of_job(settings, options.cores).crowded(hosts.cores_of_all());
        let mut agreed = Agreed { tariff, measured: Vec::new() };
        if let (Some(client), 0) = (&mut *client, *me) {
            agreed = links::agree(agreed.tariff, settings, self.links.as_deref(), &hosts);
            client.put(COLLECTIVES, coll::agreement(settings, &agreed).as_bytes())?;
        }
        let names = hosts.names();
        let device = match client {
            Some(client) => hosts.connect(&options, &mut Launcher(client))?,
            None => hosts.connect(&options, &mut Alone)?,
        };
        if let Some(client) = client.as_mut().filter(|_| *me != 0) {
            agreed = coll::agreed(&Launcher(client).get(COLLECTIVES)?, settings, *me)?;
            links::heed(&agreed, *me);
        }
        Ok(Parts { device, tariff: agreed.tariff, hosts: names })
    }

    /// The rank that is made of these.
    pub fn rank(&self, parts: Parts, has_met: bool) -> std::result::Result<World, String> {
        let Parts { device, tariff, hosts } = parts;
        let settings = &self.settings;
        let mut world = World::new(Engine::new(device, limits(settings)), tariff, Forced::read(settings));
        world.objects.locking = disk::Locking::named(settings.text("TERN_FILE_LOCKS"));
        world.close();
        world.objects.sets = process_sets(world.rank(), self.size as u32, &hosts);
        if has_met {
            self.has_met(&mut world)?;
        }
        Ok(world)
    }

    /// What settings ask of a rank that reaches others.
    fn has_met(&self, world: &mut World) -> std::result::Result<(), String> {
        engine::permit(self.settings.text("TERN_PROGRESS") == "engine");
        if let Some(costs) = world.tariff.measured() {
            world.engine.begin_with(&costs);
        }
        world.engine.fix_manner(Manner::named(self.settings.text("TERN_MANNER")));
        world.engine.verify_registrations(self.settings.flag("TERN_REGISTERED_VERIFY"));
        explain::begin(&mut world.engine, &self.settings, self.me)?;
        world.account = Account::new(world.engine.learner().account.detail()).map(Box::new);
        tell_clock(world);
        Ok(())
    }

    /// Has the rank go over from what it was made of to these, which reach the others.
    fn go_over(&self, cx: &Cx, parts: Parts) -> std::result::Result<(), String> {
        let Parts { mut device, tariff, hosts } = parts;
        let mut world = cx.world();
        device.near_mut().succeed(world.engine.device().near());
        let before = world.engine.go_over(device).map_err(|fault| fault.to_string())?;
        // Threads that sleep there look again, and its memory stays for those that are about to.
        before.wake_threads();
        std::mem::forget(before);
        world.tariff = tariff;
        world.objects.sets = process_sets(world.rank(), self.size as u32, &hosts);
        self.has_met(&mut world)?;
        tools::event::begin(&mut world);
        Ok(())
    }
}

/// The rank has been made of a process that has met nobody: it meets the others beside the program, so that they need not wait
/// until the program comes to something that needs them.
pub fn meet_beside(arrived: Arrived) {
    let arrived = Arc::new(arrived);
    let meeting = Meeting::begin(arrived.clone());
    *standing() = Standing::Meets(arrived, meeting.ok());
}

/// Meets the others, unless that has been done: to be called before anything that needs them. It returns when all processes of
/// the job have opened a session or called MPI_Init, wherever they are by then. No guard may be alive.
pub fn job(cx: &Cx) -> Result {
    let mut standing = standing();
    let outcome = match std::mem::replace(&mut *standing, Standing::Settled) {
        Standing::Settled => return Ok(()),
        Standing::Meets(arrived, meeting) => {
            let made = meeting.map_or_else(|| arrived.meet(), |meeting| meeting.end(cx));
            made.and_then(|parts| arrived.go_over(cx, parts))
        }
        Standing::Failed(why) => Err(why),
    };
    outcome.or_else(|why| {
        *standing = Standing::Failed(why.clone());
        fail(Class::OTHER, why)
    })
}

impl Meeting {
    fn begin(arrived: Arc<Arrived>) -> std::io::Result<Meeting> {
        let (met, mut tell) = std::io::pipe()?;
        let meet = move || {
            let made = arrived.meet();
            // Where nobody can be told any more the process is about to end.
            let _ = tell.write_all(&[1]);
            made
        };
        let thread = std::thread::Builder::new().name("tern-meet".into());
        Ok(Meeting { thread: engine::without_signals(|| thread.spawn(meet))?, met })
    }

    /// Waits for the thread to end, and answers `mpiexec` meanwhile.
    fn end(self, cx: &Cx) -> Made {
        let begun = Instant::now();
        while let Ok(false) = event::wait_one(self.met.as_fd(), event::READ, Some(LOOK)) {
            if let Some(question) = launch::control::asked() {
                report::answer(cx, question, &Waits::Job(begun.elapsed()));
            }
        }
        self.thread.join().unwrap_or_else(|bug| std::panic::resume_unwind(bug))
    }
}

fn standing() -> MutexGuard<'static, Standing> {
    STANDING.lock().unwrap_or_else(|e| e.into_inner())
}

/// Tells the launcher that this process is about to end as it should.
pub fn part() -> Result {
    // It holds the connection.
    *ENDER.lock().unwrap_or_else(|e| e.into_inner()) = None;
    let client = launcher().take();
    client.map_or(Ok(()), |client| client.finalize().map_err(|text| Error::new(Class::OTHER, text)))
}

/// Whether MPI_Wtime is the same on all ranks.
fn tell_clock(world: &mut World) {
    let is_one_host = world.engine.device().far().is_none();
    world.objects.predefined.set(attr::WTIME_IS_GLOBAL, i32::from(is_one_host));
}

/// What settings say to the protocols.
pub fn limits(settings: &Settings) -> Limits {
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

/// A process that is alone needs nobody.
pub struct Alone;

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
