//! What the integration tests share: running `mpiexec`, and this test binary itself as a rank.
#![allow(dead_code, reason = "each test binary uses its part")]
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `mpiexec` with arguments separated by blanks.
pub fn mpiexec(arguments: &str) -> Command {
    let mut command = plain(env!("CARGO_BIN_EXE_mpiexec"));
    command.args(arguments.split_whitespace());
    command
}

/// Where a job runs: on this host, or on two that are this one as well, with an agent each.
pub const PLACES: [&str; 2] = [
    "",
    concat!(
        "--launcher ",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fake-launcher.sh --hosts 127.0.0.1,127.0.0.2 "
    ),
];

/// `mpiexec` at a place.
pub fn mpiexec_at(place: &str, arguments: &str) -> Command {
    mpiexec(&format!("{place} {arguments}"))
}

/// The same on two hosts with a shell script as the program.
pub fn two_hosts(arguments: &str, script: &str) -> Command {
    mpiexec_sh(&format!("{} {arguments}", PLACES[1]), script)
}

/// A program that reads nothing and begins with default signals, whatever those of the tests are: a script that
/// runs them in its background has told them to ignore SIGINT.
pub fn plain(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    begin_with(&mut command, &[], &[]);
    command
}

/// Lets `command` begin with these signals ignored and these blocked, and all others as usual.
pub fn begin_with<'a>(
    command: &'a mut Command,
    ignored: &'static [i32],
    blocked: &'static [i32],
) -> &'a mut Command {
    // SAFETY: between fork and exec the closure makes system calls only; `set` is initialised by the first.
    unsafe {
        command.pre_exec(move || {
            for signal in 1..32 {
                let action = if ignored.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL };
                libc::signal(signal, action);
            }
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in blocked {
                libc::sigaddset(&mut set, *signal);
            }
            libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
            Ok(())
        })
    }
}

/// `mpiexec` with arguments and a shell script as the program.
pub fn mpiexec_sh(arguments: &str, script: &str) -> Command {
    let mut command = mpiexec(arguments);
    command.args(["sh", "-c", script]);
    command
}

/// Adds this test binary as the program, in the role of the ignored test `role`.
pub fn with_role<'a>(command: &'a mut Command, role: &str) -> &'a mut Command {
    command.arg(std::env::current_exe().unwrap()).args(["--ignored", "--exact", role, "--nocapture"])
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Outcome {
    finish(start(command))
}

/// A command that runs; a test that fails meanwhile leaves nothing behind.
pub struct Running(Option<Child>);

impl Running {
    /// Its process.
    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// Starts a command with its output kept.
pub fn start(command: &mut Command) -> Running {
    spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// Starts a command as it is.
pub fn spawn(command: &mut Command) -> Running {
    Running(Some(command.spawn().unwrap()))
}

/// Waits for the end of a command; a hang is ended, so that a failure is a message.
pub fn finish(mut running: Running) -> Outcome {
    let child = running.0.take().unwrap();
    let pid = child.id();
    let (done, stop) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        if stop.recv_timeout(Duration::from_secs(120)).is_err() {
            signal(pid, libc::SIGKILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    done.send(()).ok();
    watchdog.join().unwrap();
    output.into()
}

/// Sends a signal.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: touches no memory.
    unsafe { libc::kill(pid as i32, signal) };
}

/// Waits until `condition` holds; a hang is a failure that says what was waited for.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes whose command line holds `text`.
pub fn processes(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(text).then(|| format!("{pid} {line}"))
    });
    lines.collect()
}

/// A directory for one test, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("launch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
