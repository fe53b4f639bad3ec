//! Running a program to its end or to a time limit, with everything it started.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// What a program that ended well printed, and how long it ran.
#[derive(Debug)]
pub struct Output {
    /// All of its standard output.
    pub text: String,
    /// From just before its start to its end.
    pub elapsed: Duration,
}

/// Set when the user asks to stop; every run is then ended.
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT and SIGTERM set the flag instead of ending this process, which could
    /// leave ranks behind.
    pub fn install() -> Result<Interrupt, String> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, flag.clone()).map_err(|e| format!("signal handler: {e}"))?;
        }
        Ok(Interrupt(flag))
    }

    /// Whether the user asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `command` in a process group of its own. On failure, after `limit`, or on an interrupt
/// the text says what happened, with the end of what it wrote to standard error.
pub fn run(command: &mut Command, limit: Duration, interrupt: &Interrupt) -> Result<Output, String> {
    let program = command.get_program().display().to_string();
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("{program}: {e}"))?;
    let group = Pid::from_child(&child);
    let mut stderr = child.stderr.take().expect("piped");
    let errors = thread::spawn(move || read_all(&mut stderr));
    let (done, ended) = channel();
    let watched = interrupt.0.clone();
    let watch = thread::spawn(move || watchdog(&ended, group, limit, &watched));
    let text = read_all(child.stdout.as_mut().expect("piped"));
    let status = child.wait();
    let elapsed = started.elapsed();
    // The watchdog may have ended by itself; then there is nobody to tell.
    let _ = done.send(());
    let stopped = watch.join().expect("the watchdog does not panic");
    // A rank that closed its output and outlived its launcher would disturb what comes next. That
    // there is nobody left is the good case.
    let _ = kill_process_group(group, Signal::KILL);
    let errors = errors.join().expect("the reader does not panic");
    let status = status.map_err(|e| format!("{program}: {e}"))?;
    match stopped {
        Some(why) => Err(why),
        None if status.success() => Ok(Output { text, elapsed }),
        None => Err(format!("{}{}", describe(status), tail(&errors))),
    }
}

/// Waits for the end of the run; ends it after `limit` or when interrupted, and says why.
fn watchdog(ended: &Receiver<()>, group: Pid, limit: Duration, interrupt: &AtomicBool) -> Option<String> {
    let deadline = Instant::now() + limit;
    let why = loop {
        match ended.recv_timeout(Duration::from_millis(100)) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if interrupt.load(Ordering::Relaxed) => {
                break "interrupted".to_string();
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                break format!("not finished after {} s", limit.as_secs());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    };
    // A launcher asked politely removes its ranks; what is left is removed afterwards. Signals
    // to a group that has ended meanwhile are lost, which is what is wanted.
    let _ = kill_process_group(group, Signal::TERM);
    if ended.recv_timeout(Duration::from_secs(3)).is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    Some(why)
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    // What has been read before an error is still worth showing.
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended in an unknown way".to_string(),
    }
}

/// The last lines of `text` that say something, for a message.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(4)..];
    if last.is_empty() { String::new() } else { format!(": {}", last.join(" | ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> Interrupt {
        Interrupt(Arc::new(AtomicBool::new(false)))
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_is_kept_and_failure_is_described() {
        let limit = Duration::from_secs(60);
        assert_eq!(run(&mut shell("echo hello"), limit, &never()).unwrap().text, "hello\n");
        let error = run(&mut shell("echo cause >&2; exit 3"), limit, &never()).unwrap_err();
        assert_eq!(error, "exit code 3: cause");
        let error = run(&mut Command::new("/nonexistent/program"), limit, &never()).unwrap_err();
        assert!(error.contains("/nonexistent/program"), "{error}");
    }

    #[test]
    fn a_run_that_does_not_end_is_ended_with_its_children() {
        let error = run(&mut shell("sleep 1000 & sleep 1000"), Duration::ZERO, &never()).unwrap_err();
        assert!(error.contains("not finished"), "{error}");
        let interrupted = Interrupt(Arc::new(AtomicBool::new(true)));
        let error = run(&mut shell("sleep 1000"), Duration::from_secs(900), &interrupted).unwrap_err();
        assert_eq!(error, "interrupted");
    }
}
