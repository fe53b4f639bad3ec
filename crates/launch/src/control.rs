//! The library side of the control channel: how a rank talks to the `mpiexec` that started it.
use crate::report::{CONTROL_FD, JOB_CPUS, LINE_MAX, Line, PENDING_MAX, Pending, SIGNAL};
use crate::sys::{self, event, signal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The channel to `mpiexec`.
pub struct Control {
    channel: OwnedFd,
}

impl Control {
    /// The channel that the environment names; `None` under another launcher or under none.
    pub fn from_env() -> Result<Option<Control>, String> {
        let Ok(text) = std::env::var(CONTROL_FD) else { return Ok(None) };
        let fd = text.parse::<i32>().ok().filter(|fd| *fd > 2);
        let fd = fd.ok_or_else(|| format!("{CONTROL_FD}={text} is not a descriptor"))?;
        match sys::adopt(fd) {
            Ok(channel) => Ok(Some(Control { channel })),
            Err(error) => Err(format!("{CONTROL_FD}={fd} is not an open descriptor: {error}")),
        }
    }

    /// Installs the handler of [`SIGNAL`], unless the program has one of its own, and tells
    /// `mpiexec` that this process can be asked. The handler only sets the flag that [`asked`]
    /// reads. Returns whether it is installed.
    pub fn install(&self) -> bool {
        signal::install_flag(SIGNAL) && self.send(&Line::Ready { pid: std::process::id() as i32 }.encode())
    }

    /// Hands the text of a fatal error to `mpiexec`, which prints the first one of the job, once,
    /// and ends the job with `code`. Returns whether it was handed over; if not, the caller
    /// prints it itself.
    pub fn fatal(&self, code: i32, text: &str) -> bool {
        self.send(&Line::Fatal { code, text: text.into() }.encode())
    }

    /// Answers `mpiexec` with what is pending; nothing pending is an answer, too.
    pub fn report(&self, pending: &[Pending]) -> bool {
        if pending.is_empty() {
            return self.send(&Line::Idle.encode());
        }
        let listed = &pending[..pending.len().min(PENDING_MAX)];
        let mut text: String = listed.iter().map(|p| Line::Pending(p.clone()).encode()).collect();
        text.push_str(&Line::End { left_out: (pending.len() - listed.len()) as u64 }.encode());
        debug_assert!(text.lines().all(|line| line.len() <= LINE_MAX));
        self.send(&text)
    }

    /// Writes in full, but waits only for a bounded time: a stopped `mpiexec` must not stop us.
    fn send(&self, text: &str) -> bool {
        const PATIENCE: Duration = Duration::from_secs(1);
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match event::wait_one(self.channel.as_fd(), event::WRITE, Some(PATIENCE)) {
                Ok(true) => {}
                _ => return false,
            }
            // A part at a time, so that the write fits where poll has seen room.
            match sys::send(self.channel.as_fd(), &rest[..rest.len().min(4096)]) {
                Ok(count) if count > 0 => rest = &rest[count..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        true
    }
}

/// Whether `mpiexec` has asked for a report since the last call; a plain load when it has not.
#[inline]
pub fn asked() -> bool {
    signal::take_flag()
}

/// How many CPUs the ranks of this host share: what says whether ranks are more than CPUs.
///
/// A launcher that binds leaves a rank only its own share to see, so Tern's own tells the number.
/// Under another one that has bound this process, all CPUs of the host are assumed.
pub fn job_cpus() -> usize {
    let told = std::env::var(JOB_CPUS).ok().and_then(|text| text.parse::<usize>().ok());
    if let Some(told) = told.filter(|cpus| *cpus > 0) {
        return told;
    }
    let own = std::thread::available_parallelism().map_or(1, usize::from);
    let launched = ["PMI_FD", "PMI_PORT"].iter().any(|name| std::env::var_os(name).is_some());
    if launched { own.max(sys::process::online_cpus()) } else { own }
}
