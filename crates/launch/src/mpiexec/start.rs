//! Starting one rank.
use super::arguments::{Inherit, Plan, Reader, Segment};
use super::files::Files;
use super::task::Task;
use crate::image;
use crate::program::{self, NOT_EXECUTABLE, NOT_FOUND, Wanted, Words, has_slash};
use crate::report::{BOARD_FD, CONTROL_FD, HOST_ADDRESS, JOB, JOB_CPUS};
use crate::sys::packet;
use crate::sys::process::{self, Birth, OpenFiles};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why no job was started.
#[derive(Debug)]
pub struct Refusal {
    /// Exit code of `mpiexec`.
    pub code: u8,
    /// What to tell the user.
    pub text: String,
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal { code: 1, text }
    }
}

/// What the rank that reads the standard input gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// What the launcher was given: nothing is read that the rank does not read.
    Inherited,
    /// A pipe that the launcher fills: a rank is in a process group of its own and may not read
    /// from the terminal itself.
    Pipe,
}

/// What all ranks of a host have in common.
pub(super) struct Common<'a> {
    /// What is started.
    pub(super) task: &'a Task,
    /// How many CPUs the ranks share.
    pub(super) cpus: usize,
    /// The limit of open files that ranks get.
    pub(super) open_files: OpenFiles,
    /// The descriptor of the board, which the launcher keeps open.
    pub(super) board: RawFd,
    /// What marks the processes of this host, those of later jobs too.
    pub(super) mark: &'a str,
}

/// A rank that runs, and the launcher's ends of its channels.
pub struct Started {
    /// Its process and process group.
    pub pid: i32,
    /// PMI-1.
    pub pmi: UnixStream,
    /// Reports.
    pub control: OwnedFd,
    /// Its standard output and error, as far as they come to the launcher.
    pub outputs: [Option<PipeReader>; 2],
    /// Its standard input, if the launcher fills it.
    pub stdin: Option<PipeWriter>,
}

/// Descriptors that the launcher has open for each rank.
pub const DESCRIPTORS_PER_RANK: u64 = 4;

/// Starts the `local`th rank of this host, which runs `segment`, on `cpus`.
pub(super) fn start(
    common: &Common,
    local: usize,
    segment: &Segment,
    cpus: Vec<usize>,
    files: &mut Files,
) -> Result<Started, Refusal> {
    let rank = common.task.ranks[local].0;
    let failed =
        |what: &str, error: io::Error| Refusal::from(format!("cannot start rank {rank}: {what}: {error}"));
    let (pmi, their_pmi) = UnixStream::pair().map_err(|e| failed("socketpair", e))?;
    pmi.set_nonblocking(true).map_err(|e| failed("socketpair", e))?;
    let (control, their_control) = packet::pair().map_err(|e| failed("socketpair", e))?;
    let mut stdin = None;

    let mut command = match &segment.found {
        Some(found) => Command::new(found),
        None => Command::new(&segment.program),
    };
    command.arg0(&segment.program).args(&segment.arguments);
    let outputs = connect_outputs(&mut command, &common.task.plan, rank, files)?;
    match common.task.input {
        _ if common.task.plan.reader != Reader::Rank(rank) => command.stdin(Stdio::null()),
        Input::Inherited => command.stdin(Stdio::inherit()),
        Input::Pipe => {
            let (theirs, ours) = io::pipe().map_err(|e| failed("pipe", e))?;
            stdin = Some(ours);
            command.stdin(theirs)
        }
    };
    if let Some(directory) = &segment.directory {
        command.current_dir(directory);
    }
    set_environment(&mut command, common, local, segment);
    let inherited = vec![their_pmi.as_raw_fd(), their_control.as_raw_fd(), common.board];
    for (variable, fd) in ["PMI_FD", CONTROL_FD, BOARD_FD].iter().zip(&inherited) {
        command.env(variable, fd.to_string());
    }
    let head = image::head(&place(segment));
    let strictly = (!image::is_text(&head)).then(|| segment.program.clone());
    process::prepare(&mut command, Birth { inherited, cpus, open_files: common.open_files, strictly });
    let child = command.spawn().map_err(|error| explain(rank, segment, &head, &error))?;
    Ok(Started { pid: child.id() as i32, pmi, control, outputs, stdin })
}

/// Gives the rank pipes to the launcher, or the files that the user wants.
fn connect_outputs(
    command: &mut Command,
    plan: &Plan,
    rank: usize,
    files: &mut Files,
) -> Result<[Option<PipeReader>; 2], Refusal> {
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        Refusal::from(format!("cannot start rank {rank}: {what}: {why}"))
    };
    let mut output = |which: usize| match &plan.files[which] {
        Some(pattern) => {
            files.open(pattern, rank).map(|file| (None, file)).map_err(|e| failed("its output", &e))
        }
        None => {
            let (ours, theirs) = io::pipe().map_err(|e| failed("pipe", &e))?;
            Ok((Some(ours), File::from(OwnedFd::from(theirs))))
        }
    };
    let (out, their_out) = output(0)?;
    let (err, their_err) = match plan.merge {
        true => (None, their_out.try_clone().map_err(|e| failed("dup", &e))?),
        false => output(1)?,
    };
    command.stdout(their_out).stderr(their_err);
    Ok([out, err])
}

fn set_environment(command: &mut Command, common: &Common, local: usize, segment: &Segment) {
    let task = common.task;
    command.env_clear();
    for (name, value) in &task.plan.inherited {
        let bytes = name.as_encoded_bytes();
        // What an outer launcher said is not true for this job.
        let outer = bytes.starts_with(b"PMI_") || bytes.starts_with(b"PMIX_");
        let wanted = match inherit(&task.plan, segment) {
            Inherit::All => true,
            Inherit::Only(names) => names.contains(name),
        };
        if wanted && !outer {
            command.env(name, value);
        }
    }
    command.envs(task.plan.environment.iter().map(|(name, value)| (name, value)));
    command.envs(segment.environment.iter().map(|(name, value)| (name, value)));
    let rank = task.ranks[local].0 - task.first;
    command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", task.size.to_string());
    command.env("PMI_SPAWNED", if task.first > 0 { "1" } else { "0" }).env(JOB, common.mark);
    command.env(JOB_CPUS, common.cpus.to_string());
    match task.address {
        Some(address) => command.env(HOST_ADDRESS, address.to_string()),
        None => command.env_remove(HOST_ADDRESS),
    };
    // Programs and scripts read these to choose a device or a directory.
    command.env("MPI_LOCALRANKID", local.to_string());
    command.env("MPI_LOCALNRANKS", task.ranks.len().to_string());
}

/// Where the program of a rank is.
fn place(segment: &Segment) -> PathBuf {
    let program = segment.found.clone().unwrap_or_else(|| PathBuf::from(&segment.program));
    segment.directory.clone().unwrap_or_default().join(program)
}

fn explain(rank: usize, segment: &Segment, head: &[u8], error: &io::Error) -> Refusal {
    let program = segment.program.display();
    let described;
    let hint = match error.raw_os_error() {
        Some(libc::ENOEXEC) => {
            described = format!(": {}", image::describe(head));
            &described
        }
        Some(libc::ENOENT) => ": the interpreter or dynamic loader that it names does not exist",
        Some(libc::EAGAIN) => {
            ": the limit of processes is reached (ulimit -u, or the container's pids limit)"
        }
        Some(libc::EMFILE | libc::ENFILE) => ": the limit of open files is reached (ulimit -n)",
        _ => "",
    };
    let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
    Refusal { code, text: format!("cannot start rank {rank}: {program}: {error}{hint}") }
}

/// Looks before the first rank is started whether there is something to start; where the programs are, as they are
/// seen from here.
pub(super) fn locate(plan: &mut Plan, words: &Words) -> Result<Vec<PathBuf>, Refusal> {
    let paths: Vec<PathBuf> =
        plan.segments.iter().map(|segment| find(plan, segment, words)).collect::<Result<_, _>>()?;
    for (segment, path) in plan.segments.iter_mut().zip(&paths) {
        segment.found = (!has_slash(segment.program.as_ref())).then(|| path.clone());
    }
    Ok(paths)
}

fn find(plan: &Plan, segment: &Segment, words: &Words) -> Result<PathBuf, Refusal> {
    let wanted = Wanted {
        program: Path::new(&segment.program),
        base: Path::new(""),
        directory: segment.directory.as_deref(),
        path: segment.path.as_deref(),
        inherited: given("PATH", plan, segment).or_else(|| inherited("PATH", plan)),
    };
    program::find(&wanted, words).map_err(|(code, text)| Refusal { code, text })
}

/// The directories in which ranks may create shared memory.
pub fn segment_directories(plan: &Plan) -> BTreeSet<PathBuf> {
    const NAME: &str = "TERN_SHM_DIR";
    let setting = fabric::settings::ALL.iter().find(|s| s.name == NAME).expect("it is declared");
    let chosen = |segment| variable(NAME, plan, segment).filter(|text| !text.is_empty());
    plan.segments
        .iter()
        .map(|segment| chosen(segment).unwrap_or_else(|| setting.default.into()).into())
        .collect()
}

/// A variable as the ranks of `segment` will see it.
pub(super) fn variable(name: &str, plan: &Plan, segment: &Segment) -> Option<OsString> {
    let passed = match inherit(plan, segment) {
        Inherit::All => true,
        Inherit::Only(names) => names.iter().any(|known| known == name),
    };
    given(name, plan, segment).or_else(|| inherited(name, plan).filter(|_| passed))
}

/// A variable that ranks inherit.
fn inherited(name: &str, plan: &Plan) -> Option<OsString> {
    plan.inherited.iter().find(|(known, _)| known == OsStr::new(name)).map(|(_, value)| value.clone())
}

/// A variable that an option sets for the ranks of `segment`.
fn given(name: &str, plan: &Plan, segment: &Segment) -> Option<OsString> {
    let mut given = segment.environment.iter().rev().chain(plan.environment.iter().rev());
    given.find(|(known, _)| known == OsStr::new(name)).map(|(_, value)| value.clone())
}

fn inherit<'a>(plan: &'a Plan, segment: &'a Segment) -> &'a Inherit {
    segment.inherit.as_ref().unwrap_or(&plan.inherit)
}
