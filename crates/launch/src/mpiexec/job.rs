//! One job: from the start of its ranks to its exit code.
use super::arguments::{Plan, Segment, Universe};
use super::channels::Channel;
use super::files::Files;
use super::guard::{Guard, Remains};
use super::hang::Gathering;
use super::output::{Sink, Stream};
use super::start::{self, Common, DESCRIPTORS_PER_RANK, Input, Refusal, Started};
use super::strangers::Strangers;
use super::{bind, look};
use crate::pmi::server::{Server, Stage};
use crate::report::segment_prefix;
use crate::sys::board::Board;
use crate::sys::event::{self, Epoll};
use crate::sys::process::{self, Ended, OpenFiles};
use crate::sys::signal::Signals;
use crate::sys::{self};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long ranks may take to end after SIGTERM before SIGKILL.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long an unfinished line is held before a user at a terminal sees it.
const UNFINISHED: Duration = Duration::from_millis(100);
/// How long the last output may take to arrive, or to be taken.
const DRAIN: Duration = Duration::from_secs(1);
/// Descriptors beside those of ranks: standard ones, epoll, signals, guard, and what starting one
/// rank takes for a moment.
const DESCRIPTORS_BESIDE: u64 = 32;

const SIGNALS: &[i32] = &[
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

/// What a descriptor in the epoll set belongs to; the rank is in the lower half of the token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Signals,
    Terminal,
    Stdin,
    Out,
    Err,
    Stdout(usize),
    Stderr(usize),
    Pmi(usize),
    Control(usize),
}

impl Token {
    pub(super) fn pack(self) -> u64 {
        let (kind, rank) = match self {
            Token::Signals => (0, 0),
            Token::Terminal => (1, 0),
            Token::Stdin => (2, 0),
            Token::Out => (3, 0),
            Token::Err => (4, 0),
            Token::Stdout(rank) => (5, rank),
            Token::Stderr(rank) => (6, rank),
            Token::Pmi(rank) => (7, rank),
            Token::Control(rank) => (8, rank),
        };
        kind << 32 | rank as u64
    }

    fn unpack(token: u64) -> Token {
        let rank = token as u32 as usize;
        match token >> 32 {
            0 => Token::Signals,
            1 => Token::Terminal,
            2 => Token::Stdin,
            3 => Token::Out,
            4 => Token::Err,
            5 => Token::Stdout(rank),
            6 => Token::Stderr(rank),
            7 => Token::Pmi(rank),
            8 => Token::Control(rank),
            kind => unreachable!("token of kind {kind}"),
        }
    }
}

/// A rank as the launcher sees it.
pub(super) struct Rank {
    pub(super) pid: i32,
    pub(super) program: String,
    pub(super) ended: Option<Ended>,
    /// The process that answers questions, if there is one; its id, if it has one here.
    pub(super) ready: Option<Option<i32>>,
    pub(super) pmi: Channel,
    /// Until the rank has closed its end.
    pub(super) control: Option<OwnedFd>,
    pub(super) streams: [Option<Stream>; 2],
}

/// A running job.
pub struct Job {
    pub(super) plan: Plan,
    pub(super) epoll: Epoll,
    pub(super) signals: Signals,
    guard: Option<Guard>,
    remains: Remains,
    pub(super) server: Server,
    pub(super) ranks: Vec<Rank>,
    /// Standard output and error; if both are the same place, both streams go to the first.
    pub(super) sinks: [Sink; 2],
    pub(super) one_sink: bool,
    /// Streams are not read while their sink is full.
    pub(super) paused: [bool; 2],
    /// Standard input of rank 0, if the launcher passes it on, and whether the terminal is watched.
    pub(super) stdin: Option<Sink>,
    pub(super) terminal_watched: bool,
    pub(super) verdict: Option<u8>,
    pub(super) kill_at: Option<Instant>,
    pub(super) forwarded: Option<i32>,
    pub(super) interrupts: u32,
    pub(super) deadline: Option<Instant>,
    /// Where questions are written that all ranks read.
    pub(super) board: Board,
    pub(super) gathering: Option<Gathering>,
    pub(super) straggler: Option<Instant>,
    pub(super) strangers: Strangers,
}

impl Job {
    /// Starts all ranks, or none.
    pub fn start(mut plan: Plan) -> Result<Job, Refusal> {
        let paths: Vec<PathBuf> =
            plan.segments.iter().map(|segment| start::find(&plan, segment)).collect::<Result<_, _>>()?;
        for (segment, path) in plan.segments.iter_mut().zip(&paths) {
            segment.found = (!start::has_slash(segment.program.as_ref())).then(|| path.clone());
        }
        let numbered: Vec<usize> =
            plan.segments.iter().enumerate().flat_map(|(i, s)| vec![i; s.count]).collect();
        let size = numbered.len();
        let open_files = OpenFiles::current().map_err(|e| format!("limit of open files: {e}"))?;
        open_files.reserve(size as u64 * DESCRIPTORS_PER_RANK + DESCRIPTORS_BESIDE)?;
        let secret = random_digits().map_err(|e| format!("random numbers: {e}"))?;

        let system = |what: &str, error: io::Error| format!("{what}: {error}");
        // Another random number than the secret: this one is in the names of files.
        let kvsname = format!("tern{}", random_digits().map_err(|e| format!("random numbers: {e}"))?);
        let remains =
            Remains { directories: start::segment_directories(&plan), prefix: segment_prefix(&kvsname) };
        let guard = Guard::start(&secret, &remains).map_err(|e| system("fork", e))?;
        process::become_subreaper().map_err(|e| system("prctl", e))?;
        let epoll = Epoll::new().map_err(|e| system("epoll", e))?;
        let signals = Signals::take(SIGNALS).map_err(|e| system("signalfd", e))?;
        epoll.add(signals.as_raw_fd(), Token::Signals.pack(), event::READ).map_err(|e| system("epoll", e))?;
        let sinks = standard_sinks(&epoll).map_err(|e| system("standard output", e))?;
        let board = Board::new().map_err(|e| system("memfd_create", e))?;
        let universe = match plan.universe {
            Universe::Job => size,
            Universe::Ranks(most) => most,
        };
        let mut job = Job {
            deadline: plan.timeout.map(|timeout| Instant::now() + timeout),
            server: Server::new(kvsname, &numbered, universe),
            strangers: Strangers::new(&paths, &numbered),
            one_sink: sys::identity(1).is_some_and(|place| sys::identity(2) == Some(place)),
            plan,
            epoll,
            signals,
            guard: Some(guard),
            remains,
            ranks: Vec::with_capacity(size),
            sinks,
            paused: [false; 2],
            stdin: None,
            terminal_watched: false,
            verdict: None,
            kill_at: None,
            forwarded: None,
            interrupts: 0,
            board,
            gathering: None,
            straggler: None,
        };
        match job.start_ranks(&numbered, &secret, open_files) {
            Ok(()) => Ok(job),
            Err(refusal) => {
                job.kill_all();
                job.clean_up();
                Err(refusal)
            }
        }
    }

    fn start_ranks(
        &mut self,
        numbered: &[usize],
        secret: &str,
        open_files: OpenFiles,
    ) -> Result<(), Refusal> {
        let plan = std::mem::take(&mut self.plan);
        let allowed = process::allowed_cpus().unwrap_or_default();
        if plan.undersubscribed && numbered.len() > allowed.len() {
            let text = format!(
                "{} ranks are more than the {} CPUs (--nooversubscribe)",
                numbered.len(),
                allowed.len()
            );
            return Err(text.into());
        }
        let shares = bind::shares(plan.bind, plan.map, numbered.len(), &bind::machine(&allowed));
        let input = if io::stdin().is_terminal() { Input::Pipe } else { Input::Inherited };
        let common = Common {
            cpus: allowed.len().max(1),
            plan: &plan,
            size: numbered.len(),
            secret,
            open_files,
            input,
            board: self.board.as_raw_fd(),
        };
        let mut files = Files::default();
        for (rank, (number, cpus)) in numbered.iter().zip(shares).enumerate() {
            let segment = &plan.segments[*number];
            if plan.show_places {
                let cpus = bind::listed(if cpus.is_empty() { &allowed } else { &cpus });
                self.say(&format!("mpiexec: rank {rank}: {} on CPUs {cpus}", segment.program.display()));
            }
            let started = start::start(&common, rank, segment, cpus, &mut files)?;
            self.admit(rank, segment, started, plan.label).map_err(|e| format!("rank {rank}: {e}"))?;
        }
        self.plan = plan;
        Ok(())
    }

    fn admit(&mut self, rank: usize, segment: &Segment, started: Started, label: bool) -> io::Result<()> {
        let label = if label { format!("[{rank}] ") } else { String::new() };
        let streams = started.outputs.map(|output| Some(Stream::new(output?, label.clone())));
        let tokens = [Token::Stdout(rank), Token::Stderr(rank)];
        for (stream, token) in streams.iter().zip(tokens) {
            if let Some(stream) = stream {
                self.epoll.add(stream.fd(), token.pack(), event::READ)?;
            }
        }
        self.epoll.add(started.pmi.as_raw_fd(), Token::Pmi(rank).pack(), event::READ)?;
        self.epoll.add(started.control.as_raw_fd(), Token::Control(rank).pack(), event::READ)?;
        if let Some(stdin) = started.stdin {
            self.stdin = Some(Sink::new(stdin.into(), Token::Stdin.pack(), &self.epoll));
            self.watch_terminal();
        }
        self.ranks.push(Rank {
            pid: started.pid,
            program: segment.program.to_string_lossy().into_owned(),
            ended: None,
            ready: None,
            pmi: Channel::new(started.pmi),
            control: Some(started.control),
            streams,
        });
        Ok(())
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
        self.clean_up();
        // A job whose output is lost has not done all it was started for.
        let lost = self.sinks.iter().any(Sink::lost);
        self.verdict.unwrap_or(u8::from(lost))
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
    fn step(&mut self, until: Option<Instant>) {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        let ready = self.epoll.wait(timeout).expect("the epoll set is valid");
        if ready.is_empty() {
            self.show_unfinished();
        }
        for event in ready {
            match Token::unpack(event.token) {
                Token::Signals => self.on_signals(),
                Token::Terminal => self.on_terminal(),
                Token::Stdin => self.on_stdin_room(),
                Token::Out => self.on_room(0),
                Token::Err => self.on_room(1),
                Token::Stdout(rank) => self.on_output(rank, 0),
                Token::Stderr(rank) => self.on_output(rank, 1),
                Token::Pmi(rank) => self.on_pmi(rank),
                Token::Control(rank) => self.on_control(rank),
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
        let terminal = (self.stdin.is_some() && !self.terminal_watched).then_some(now + DRAIN);
        let gathering = self.gathering.as_ref().map(|g| g.until);
        let strangers = self.strangers.look_at;
        [self.deadline, self.kill_at, gathering, self.straggler, strangers, unfinished, terminal]
            .into_iter()
            .flatten()
            .min()
    }

    /// The ranks whose processes have not ended.
    pub(super) fn running(&self) -> impl Iterator<Item = usize> {
        self.ranks.iter().enumerate().filter(|(_, rank)| rank.ended.is_none()).map(|(i, _)| i)
    }

    /// Prints a message of the launcher.
    pub(super) fn say(&mut self, text: &str) {
        let sink = if self.one_sink { 0 } else { 1 };
        super::output::say(text, &mut self.sinks[sink], &self.epoll);
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

impl Job {
    /// Ends what ranks have left behind, passes the last output on and lets the guard go.
    fn clean_up(&mut self) {
        let guard = self.guard.take().expect("clean_up is called once");
        // From here on a signal to us can only mean: do not wait for whoever reads the output.
        (self.deadline, self.gathering, self.forwarded) = (None, None, None);
        let until = Instant::now() + DRAIN;
        loop {
            while process::reap().is_some() {}
            let left: Vec<i32> = look::children().into_iter().filter(|pid| *pid != guard.pid).collect();
            if left.is_empty() || Instant::now() > until {
                break;
            }
            for pid in left {
                // It may have ended by itself since.
                let _ = process::kill(pid, libc::SIGKILL);
            }
            self.step(Some(Instant::now() + Duration::from_millis(5)));
        }
        self.remains.remove();
        self.drain();
        guard.release();
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
        self.server.stage(rank) == Stage::Inside
    }
}

/// An exit code as the system keeps it: never 0 for a failure.
pub(super) fn exit_code(code: i32) -> u8 {
    match code as u8 {
        0 => 1,
        code => code,
    }
}
