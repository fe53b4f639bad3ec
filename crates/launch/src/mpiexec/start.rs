//! Starting one rank.
use super::arguments::{Plan, Segment};
use crate::report::{BOARD_FD, CONTROL_FD, JOB_CPUS, JOB_SECRET};
use crate::sys::packet;
use crate::sys::process::{self, Birth, OpenFiles};
use crate::sys::signal::Mask;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
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

/// The codes that shells use.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What rank 0 reads as its standard input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// What the launcher was given: nothing is read that the rank does not read.
    Inherited,
    /// A pipe that the launcher fills: a rank is in a process group of its own and may not read
    /// from the terminal itself.
    Pipe,
}

/// What all ranks of a job have in common.
pub struct Common<'a> {
    /// The job.
    pub plan: &'a Plan,
    /// The number of ranks.
    pub size: usize,
    /// The secret of the job.
    pub secret: &'a str,
    /// How many CPUs the ranks share.
    pub cpus: usize,
    /// The limit of open files that ranks get.
    pub open_files: OpenFiles,
    /// The signals that ranks block.
    pub mask: Mask,
    /// The standard input of rank 0.
    pub input: Input,
    /// The descriptor of the board, which the launcher keeps open.
    pub board: RawFd,
}

/// A rank that runs, and the launcher's ends of its channels.
pub struct Started {
    /// Its process and process group.
    pub pid: i32,
    /// PMI-1.
    pub pmi: UnixStream,
    /// Reports.
    pub control: OwnedFd,
    /// Its standard output.
    pub stdout: PipeReader,
    /// Its standard error.
    pub stderr: PipeReader,
    /// Its standard input, if the launcher fills it.
    pub stdin: Option<PipeWriter>,
}

/// Descriptors that the launcher has open for each rank.
pub const DESCRIPTORS_PER_RANK: u64 = 4;

/// Starts rank `rank`, which runs `segment`, on `cpus`.
pub fn start(common: &Common, rank: usize, segment: &Segment, cpus: Vec<usize>) -> Result<Started, Refusal> {
    let failed =
        |what: &str, error: io::Error| Refusal::from(format!("cannot start rank {rank}: {what}: {error}"));
    let (pmi, their_pmi) = UnixStream::pair().map_err(|e| failed("socketpair", e))?;
    pmi.set_nonblocking(true).map_err(|e| failed("socketpair", e))?;
    let (control, their_control) = packet::pair().map_err(|e| failed("socketpair", e))?;
    let (stdout, their_stdout) = io::pipe().map_err(|e| failed("pipe", e))?;
    let (stderr, their_stderr) = io::pipe().map_err(|e| failed("pipe", e))?;
    let mut stdin = None;

    let mut command = Command::new(&segment.program);
    command.args(&segment.arguments).stdout(their_stdout).stderr(their_stderr);
    match common.input {
        _ if rank > 0 => command.stdin(Stdio::null()),
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
    set_environment(&mut command, common, rank, segment);
    let inherited = vec![their_pmi.as_raw_fd(), their_control.as_raw_fd(), common.board];
    for (variable, fd) in ["PMI_FD", CONTROL_FD, BOARD_FD].iter().zip(&inherited) {
        command.env(variable, fd.to_string());
    }
    process::prepare(
        &mut command,
        Birth { inherited, cpus, open_files: common.open_files, mask: common.mask },
    );
    let child = command.spawn().map_err(|error| explain(rank, segment, &error))?;
    Ok(Started { pid: child.id() as i32, pmi, control, stdout, stderr, stdin })
}

fn set_environment(command: &mut Command, common: &Common, rank: usize, segment: &Segment) {
    // What an outer launcher said is not true for this job.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("PMI_") || name_text.starts_with("PMIX_") {
            command.env_remove(&name);
        }
    }
    command.envs(common.plan.environment.iter().map(|(name, value)| (name, value)));
    command.envs(segment.environment.iter().map(|(name, value)| (name, value)));
    command.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", common.size.to_string());
    command.env("PMI_SPAWNED", "0").env(JOB_SECRET, common.secret);
    command.env(JOB_CPUS, common.cpus.to_string());
    // Programs and scripts read these to choose a device or a directory.
    command.env("MPI_LOCALRANKID", rank.to_string()).env("MPI_LOCALNRANKS", common.size.to_string());
}

fn explain(rank: usize, segment: &Segment, error: &io::Error) -> Refusal {
    let program = segment.program.display();
    let hint = match error.raw_os_error() {
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

/// Looks before the first rank is started whether there is something to start.
pub fn check(plan: &Plan, segment: &Segment) -> Result<(), Refusal> {
    let directory = segment.directory.clone().unwrap_or_default();
    if segment.directory.is_some() && !directory.is_dir() {
        let text = format!("option -wdir: there is no directory '{}'", directory.display());
        return Err(Refusal { code: 1, text });
    }
    let program = Path::new(&segment.program);
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return executable(&directory.join(program)).map_err(|(code, why)| Refusal {
            code,
            text: format!("cannot start '{}': {why}", program.display()),
        });
    }
    let path = variable("PATH", plan, segment).unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = None;
    for candidate in std::env::split_paths(&path).map(|place| directory.join(place).join(program)) {
        match executable(&candidate) {
            Ok(()) => return Ok(()),
            Err((NOT_EXECUTABLE, why)) => refused = Some(format!("{}: {why}", candidate.display())),
            Err(_) => {}
        }
    }
    if let Some(why) = refused {
        return Err(Refusal {
            code: NOT_EXECUTABLE,
            text: format!("cannot start '{}': {why}", program.display()),
        });
    }
    let local = if directory.join(program).is_file() {
        format!("; there is one in the working directory: write ./{}", program.display())
    } else {
        String::new()
    };
    let text = format!("cannot start '{}': it is in no directory of PATH{local}", program.display());
    Err(Refusal { code: NOT_FOUND, text })
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
fn variable(name: &str, plan: &Plan, segment: &Segment) -> Option<OsString> {
    let given = segment.environment.iter().rev().chain(plan.environment.iter().rev());
    let found =
        given.into_iter().find(|(known, _)| known == OsStr::new(name)).map(|(_, value)| value.clone());
    found.or_else(|| std::env::var_os(name))
}

fn executable(path: &Path) -> Result<(), (u8, String)> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err((NOT_EXECUTABLE, error.to_string()))
        }
        Err(error) => Err((NOT_FOUND, error.to_string())),
        Ok(meta) if meta.is_dir() => Err((NOT_EXECUTABLE, "it is a directory".into())),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
            Err((NOT_EXECUTABLE, "it is not executable (chmod +x makes it so)".into()))
        }
        Ok(_) => Ok(()),
    }
}
