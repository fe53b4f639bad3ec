//! One job: from the start of its ranks to its exit code.
use super::agents::Agents;
use super::arguments::{Plan, Universe};
use super::bind;
use super::hands::Hands;
use super::hang::Gathering;
use super::message::Order;
use super::output::{Sink, Stream};
use super::spawn::Servers;
use super::spread::Spreading;
use super::start::{self, Input, Refusal};
use super::strangers::Strangers;
use super::streams::Source;
use super::task::Task;
use super::token::Token;
use crate::pmi::server::{Server, Stage};
use crate::program::Words;
use crate::sys::event::{self, Epoll};
use crate::sys::process::Ended;
use crate::sys::signal::Signals;
use crate::sys::{self};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long ranks may take to end after SIGTERM before SIGKILL.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long an unfinished line is held before a user at a terminal sees it.
const UNFINISHED: Duration = Duration::from_millis(100);
/// How long the last output may take to arrive, or to be taken.
pub(super) const DRAIN: Duration = Duration::from_secs(1);

pub(super) const SIGNALS: &[i32] = &[
    libc::SIGCHLD,
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// A rank as the launcher sees it.
pub(super) struct Rank {
    /// Its process on its host; 0 before it runs.
    pub(super) pid: i32,
    pub(super) program: String,
    /// Which of the hosts it is on, in a job of several.
    pub(super) host: usize,
    pub(super) ended: Option<Ended>,
    /// Whether there is a process that answers questions.
    pub(super) ready: bool,
    /// Whether it has closed its control channel.
    pub(super) silent: bool,
    /// Whether it has sent what no rank should, so that nothing more is taken from it.
    pub(super) distrusted: bool,
    pub(super) streams: [Option<Stream>; 2],
}

impl Rank {
    /// One that does not run yet.
    pub(super) fn new(program: String, host: usize, streams: [Option<Stream>; 2]) -> Rank {
        let (ready, silent, distrusted) = (false, false, false);
        Rank { pid: 0, program, host, ended: None, ready, silent, distrusted, streams }
    }
}

/// Where the ranks are.
pub(super) enum Reach {
    /// All on this host: its processes are children of this one.
    Here(Hands),
    /// On several hosts, each with an agent.
    Hosts(Agents),
}

/// A running job.
pub struct Job {
    pub(super) plan: Rc<Plan>,
    pub(super) epoll: Epoll,
    pub(super) signals: Signals,
    pub(super) servers: Servers,
    /// The name of the first job's key-value space, and the secret of all jobs.
    pub(super) kvsname: String,
    pub(super) secret: [u8; 16],
    pub(super) universe: usize,
    pub(super) ranks: Vec<Rank>,
    pub(super) reach: Reach,
    /// Standard output and error; if both are the same place, both streams go to the first.
    pub(super) sinks: [Sink; 2],
    pub(super) one_sink: bool,
    /// Streams are not read while their sink is full.
    pub(super) paused: [bool; 2],
    /// The standard input, if the launcher passes it on.
    pub(super) input: Option<Source>,
    pub(super) verdict: Option<u8>,
    pub(super) kill_at: Option<Instant>,
    /// How often all ranks have been killed because `kill_at` was over.
    pub(super) kills: u32,
    pub(super) forwarded: Option<i32>,
    /// Until when a rank must be known to run that can heed what was forwarded.
    pub(super) unheeded: Option<Instant>,
    pub(super) interrupts: u32,
    pub(super) deadline: Option<Instant>,
    /// The last question that all ranks were asked; never 0 after the first.
    pub(super) question: u32,
    pub(super) gathering: Option<Gathering>,
    pub(super) straggler: Option<Instant>,
    pub(super) strangers: Strangers,
    pub(super) spreading: Spreading,
}

/// What the ranks of a job run, and where.
pub(super) struct Shape {
    /// The number of the program of each rank.
    pub(super) programs: Vec<usize>,
    /// The number of the host of each rank.
    pub(super) hosts: Vec<usize>,
    /// The name of the job's key-value space.
    pub(super) kvsname: String,
    /// The secret of the job.
    pub(super) secret: [u8; 16],
}

impl Job {
    /// Starts all ranks, or none; on other hosts that is done while the job [runs](Job::run).
    pub fn start(mut plan: Plan) -> Result<Job, Refusal> {
        let programs: Vec<usize> =
            plan.segments.iter().enumerate().flat_map(|(i, s)| vec![i; s.count]).collect();
        let random = |error| format!("random numbers: {error}");
        let mut secret = [0; 16];
        sys::random(&mut secret).map_err(random)?;
        // Another random number than the secret: this one is in the names of files.
        let kvsname = format!("tern{}", random_digits().map_err(random)?);
        let shape = Shape { hosts: vec![0; programs.len()], programs, kvsname, secret };
        plan.inherited = std::env::vars_os().collect();
        match plan.network.take() {
            None => Job::start_here(plan, shape),
            Some(network) => {
                let hosts = network.place(&plan);
                let epoll = Epoll::new().map_err(|error| failed("epoll", error))?;
                let shape = Shape { hosts, ..shape };
                let agents = Agents::start(&network, &plan, &shape, &epoll)?;
                let reach = Reach::Hosts(agents);
                let mut job = Job::new(Rc::new(plan), &shape, Strangers::none(), epoll, reach)?;
                // Those that had ended before signals were taken.
                job.on_children();
                Ok(job)
            }
        }
    }

    fn start_here(mut plan: Plan, shape: Shape) -> Result<Job, Refusal> {
        let paths = start::locate(&mut plan, &Words::OPTIONS)?;
        let searched = |segment| start::variable("LD_LIBRARY_PATH", &plan, segment).unwrap_or_default();
        let searched: Vec<OsString> = plan.segments.iter().map(searched).collect();
        let strangers = Strangers::new(&paths, &searched, &shape.programs);
        let task = Task {
            plan: Rc::new(plan),
            size: shape.programs.len(),
            first: 0,
            ranks: shape.programs.iter().copied().enumerate().collect(),
            kvsname: shape.kvsname.clone(),
            secret: shape.secret,
            address: None,
            input: if io::stdin().is_terminal() { Input::Pipe } else { Input::Inherited },
        };
        let hands = Hands::prepare(&task)?;
        let epoll = Epoll::new().map_err(|error| failed("epoll", error))?;
        let mut job = Job::new(task.plan.clone(), &shape, strangers, epoll, Reach::Here(hands))?;
        let Reach::Here(hands) = &mut job.reach else { unreachable!("all ranks are here") };
        match hands.start(&task, &job.epoll) {
            Ok(events) => {
                job.on_events(events);
                Ok(job)
            }
            Err(refusal) => {
                // What follows from this needs no words.
                job.kill_at = Some(Instant::now() + GRACE);
                job.kill_all();
                job.clean_up();
                Err(refusal)
            }
        }
    }

    fn new(
        plan: Rc<Plan>,
        shape: &Shape,
        strangers: Strangers,
        epoll: Epoll,
        reach: Reach,
    ) -> Result<Job, Refusal> {
        let signals = Signals::take(SIGNALS).map_err(|error| failed("signalfd", error))?;
        epoll
            .add(signals.as_raw_fd(), Token::Signals.pack(), event::READ)
            .map_err(|error| failed("epoll", error))?;
        let sinks = standard_sinks(&epoll).map_err(|error| failed("standard output", error))?;
        let size = shape.programs.len();
        let universe = match plan.universe {
            Universe::Job => size,
            Universe::Ranks(most) => most,
        };
        let rank = |rank: usize| {
            let program = plan.segments[shape.programs[rank]].program.to_string_lossy().into_owned();
            Rank::new(program, shape.hosts[rank], plan.streams(rank))
        };
        Ok(Job {
            deadline: plan.timeout.map(|timeout| Instant::now() + timeout),
            servers: Servers::new(
                Server::new(shape.kvsname.clone(), &shape.programs, universe).on_hosts(&shape.hosts),
            ),
            kvsname: shape.kvsname.clone(),
            secret: shape.secret,
            universe,
            strangers,
            one_sink: sys::identity(1).is_some_and(|place| sys::identity(2) == Some(place)),
            ranks: (0..size).map(rank).collect(),
            plan,
            epoll,
            signals,
            reach,
            sinks,
            paused: [false; 2],
            input: None,
            verdict: None,
            kill_at: None,
            kills: 0,
            forwarded: None,
            unheeded: None,
            interrupts: 0,
            question: 0,
            gathering: None,
            straggler: None,
            spreading: Spreading::default(),
        })
    }

    /// Runs the job to its end and returns its exit code.
    pub fn run(mut self) -> u8 {
        while self.running().next().is_some() {
            self.step(self.next_time());
        }
        self.judge_strangers();
        if self.plan.show_codes {
            self.say_codes();
        }
        let [out, err] = self.clean_up();
        // A job whose output is lost has not done all it was started for.
        self.verdict.unwrap_or(u8::from(out || err))
    }

    fn say_codes(&mut self) {
        let mut codes: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for (rank, state) in self.ranks.iter().enumerate() {
            let code = match state.ended {
                Some(Ended::Code(code)) => code,
                Some(Ended::Signal(signal, _)) => 128 + signal,
                None => continue,
            };
            codes.entry(code).or_default().push(rank);
        }
        let codes = codes.iter().map(|(code, ranks)| format!("{code} of rank {}", bind::listed(ranks)));
        let text = format!("mpiexec: exit codes: {}", codes.collect::<Vec<String>>().join("; "));
        self.say(&text);
    }

    /// Waits for what happens next and handles it.
    pub(super) fn step(&mut self, until: Option<Instant>) {
        self.flush_orders();
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let ready = self.epoll.wait(timeout).expect("the epoll set is valid");
        if ready.is_empty() {
            self.show_unfinished();
        }
        for event in ready {
            match Token::unpack(event.token) {
                Token::Signals => self.on_signals(),
                Token::Input => self.on_input(),
                Token::Out => self.on_room(0),
                Token::Err => self.on_room(1),
                token => self.on_ready(token),
            }
        }
        self.on_time(Instant::now());
        self.look_for_strangers(Instant::now());
        self.say_what_is_lost();
    }

    fn next_time(&self) -> Option<Instant> {
        let now = Instant::now();
        let unfinished = self.unfinished().then_some(now + UNFINISHED);
        // Whether this process is in the foreground of its terminal changes without an event.
        let terminal = self.input.as_ref().is_some_and(Source::waits_for_terminal).then_some(now + DRAIN);
        let gathering = self.gathering.as_ref().map(|g| g.until);
        let strangers = self.strangers.look_at;
        let agents = match &self.reach {
            Reach::Here(_) => None,
            Reach::Hosts(agents) => agents.next_time(),
        };
        let own = [self.deadline, self.kill_at, self.unheeded, self.straggler];
        let others = [gathering, strangers, unfinished, terminal, agents];
        own.into_iter().chain(others).flatten().min()
    }

    /// The ranks whose processes have not ended.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.ranks.iter().enumerate().filter(|(_, rank)| rank.ended.is_none()).map(|(i, _)| i)
    }

    /// Prints a message of the launcher.
    pub(super) fn say(&mut self, text: &str) {
        let sink = if self.one_sink { 0 } else { 1 };
        super::output::say(text, &mut self.sinks[sink], &self.epoll);
        self.balance(sink);
    }

    /// A rank and its program, as people know it.
    pub(super) fn known_as(&self, rank: usize) -> String {
        self.described(rank, None)
    }

    /// The same with its process.
    pub(super) fn process_of(&self, rank: usize) -> String {
        self.described(rank, Some(format!(", process {}", self.ranks[rank].pid)))
    }

    /// The same as `--report-bindings` shows it.
    pub(super) fn placed_as(&self, rank: usize) -> String {
        let host = self.host_of(rank).map(|host| format!(" on {host}")).unwrap_or_default();
        format!("rank {rank}: {}{host}", self.ranks[rank].program)
    }

    fn host_of(&self, rank: usize) -> Option<&str> {
        match &self.reach {
            Reach::Here(_) => None,
            Reach::Hosts(agents) => Some(agents.name(self.ranks[rank].host)),
        }
    }

    fn described(&self, rank: usize, process: Option<String>) -> String {
        let state = &self.ranks[rank];
        let host = self.host_of(rank).map(|host| format!(" on {host}")).unwrap_or_default();
        format!("rank {rank} ({}{}{host})", state.program, process.unwrap_or_default())
    }
}

fn standard_sinks(epoll: &Epoll) -> io::Result<[Sink; 2]> {
    let out = io::stdout().as_fd().try_clone_to_owned()?;
    let err = io::stderr().as_fd().try_clone_to_owned()?;
    Ok([Sink::new(out, Token::Out.pack(), epoll), Sink::new(err, Token::Err.pack(), epoll)])
}

/// 128 random bits as hexadecimal digits.
fn random_digits() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    sys::random(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn failed(what: &str, error: io::Error) -> String {
    format!("{what}: {error}")
}

impl Job {
    /// Ends what ranks have left behind and passes the last output on; whether some of it could not be written.
    fn clean_up(&mut self) -> [bool; 2] {
        // From here on a signal to us can only mean: do not wait for whoever reads the output.
        (self.deadline, self.gathering, self.forwarded) = (None, None, None);
        self.finish();
        self.drain();
        if let Reach::Here(hands) = &mut self.reach {
            hands.release();
        }
        self.sinks.each_ref().map(Sink::lost)
    }

    fn finish(&mut self) {
        let until = Instant::now() + DRAIN;
        while let Reach::Here(hands) = &self.reach {
            if !hands.kill_leftovers() || Instant::now() > until {
                return hands.remove_remains();
            }
            self.step(Some(Instant::now() + Duration::from_millis(5)));
        }
        self.end_spread();
        // Agents do the same, each on its host, pass on the last output, and then leave.
        self.order_all(&Order::Finish);
        let mut until = Instant::now() + GRACE + DRAIN;
        while self.agents_left() && self.forwarded.is_none() {
            if self.sinks.iter().any(|sink| !sink.is_empty()) {
                until = Instant::now() + GRACE + DRAIN;
            } else if Instant::now() >= until {
                return;
            }
            self.step(Some(until));
        }
    }

    fn agents_left(&self) -> bool {
        matches!(&self.reach, Reach::Hosts(agents) if agents.any_left())
    }

    /// Passes on what is still in pipes and queues. Whoever wrote has ended, so every pipe comes to
    /// its end; a descriptor that was handed out of the job is waited for only while the output
    /// moves. A user who reads slowly (`| less`) has all the time.
    fn drain(&mut self) {
        let mut until = Instant::now() + DRAIN;
        while self.forwarded.is_none() {
            let open = self.ranks.iter().flat_map(|rank| &rank.streams).flatten().count();
            let queued = self.sinks.iter().any(|sink| !sink.is_empty());
            if queued {
                until = Instant::now() + DRAIN;
            } else if open == 0 || Instant::now() >= until {
                return;
            }
            self.step(Some(until));
        }
    }

    /// Whether `rank` is between MPI_Init and MPI_Finalize.
    pub(super) fn inside(&self, rank: usize) -> bool {
        self.servers.stage(rank) == Stage::Inside
    }
}

/// An exit code as the system keeps it: never 0 for a failure.
pub(super) fn exit_code(code: i32) -> u8 {
    match code as u8 {
        0 => 1,
        code => code,
    }
}
