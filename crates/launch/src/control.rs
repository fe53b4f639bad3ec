//! The library side of the control channel: how a rank talks to the `mpiexec` that started it.
//!
//! `mpiexec` asks for a report by a number on the [board](crate::sys::board), which ranks look at where
//! they wait: no signal, no thread and no system call, so that a program which is asked runs as one
//! that is not.
use crate::report::{BEGUN_MAX, BOARD_FD, CONTROL_FD, JOB_CPUS, LINE_MAX, Line, PENDING_MAX, Pending};
use crate::sys::{self, board, event};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The channel to `mpiexec`.
pub struct Control {
    channel: OwnedFd,
}

/// The last question that was taken.
static TAKEN: AtomicU32 = AtomicU32::new(0);

impl Control {
    /// The channel that the environment names; `None` under another launcher or under none.
    pub fn from_env() -> Result<Option<Control>, String> {
        let Some(channel) = inherited(CONTROL_FD)? else { return Ok(None) };
        if let Some(memory) = inherited(BOARD_FD)? {
            board::adopt(memory.as_fd())
                .map_err(|error| format!("{BOARD_FD} is not the board of a job: {error}"))?;
            // What was asked before this program began was not asked of it.
            TAKEN.store(board::read(), Ordering::Relaxed);
        }
        Ok(Some(Control { channel }))
    }

    /// Tells `mpiexec` that this process can be asked; whether it could be told.
    pub fn install(&self) -> bool {
        self.send(&Line::Ready)
    }

    /// Hands the text of a fatal error to `mpiexec`, which prints the first one of the job, once,
    /// and ends the job with `code`. Returns whether it was handed over; if not, the caller
    /// prints it itself.
    pub fn fatal(&self, code: i32, text: &str) -> bool {
        self.send(&Line::Fatal { code, text: text.into() })
    }

    /// Answers a question of `mpiexec` with what is pending; nothing pending is an answer, too.
    /// `begun` is the last collective of each communicator, by context. `moves` is another number when anything
    /// has moved since the last answer.
    pub fn report(&self, question: u32, pending: &[Pending], begun: &[(u64, u64)], moves: u64) -> bool {
        let listed = &pending[..pending.len().min(PENDING_MAX)];
        let left_out = (pending.len() - listed.len()) as u64;
        let lines = listed.iter().map(|p| Line::Pending { question, pending: p.clone() });
        let begun = begun.chunks(BEGUN_MAX).map(|runs| Line::Begun { question, runs: runs.to_vec() });
        lines.chain(begun).chain([Line::End { question, moves, left_out }]).all(|line| self.send(&line))
    }

    /// Sends a line, but waits only for a bounded time: a stopped `mpiexec` must not stop us.
    fn send(&self, line: &Line) -> bool {
        const PATIENCE: Duration = Duration::from_secs(1);
        let text = line.encode();
        debug_assert!(text.len() <= LINE_MAX);
        // Room, as poll understands it, is room for many lines.
        while matches!(event::wait_one(self.channel.as_fd(), event::WRITE, Some(PATIENCE)), Ok(true)) {
            match sys::send(self.channel.as_fd(), text.as_bytes()) {
                Ok(count) => return count == text.len(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        false
    }
}

/// Takes over the descriptor that a variable names, if there is the variable.
fn inherited(variable: &str) -> Result<Option<OwnedFd>, String> {
    let Ok(text) = std::env::var(variable) else { return Ok(None) };
    let fd = text.parse::<i32>().ok().filter(|fd| *fd > 2);
    let fd = fd.ok_or_else(|| format!("{variable}={text} is not a descriptor"))?;
    let adopted = sys::adopt(fd).map_err(|e| format!("{variable}={fd} is not an open descriptor: {e}"))?;
    Ok(Some(adopted))
}

/// The question of `mpiexec` that nobody has answered, if there is one; three plain loads when there is
/// none. Whoever has looked around since it saw the question may [`take`] it and answer.
#[inline]
pub fn asked() -> Option<u32> {
    let question = board::read();
    if question == TAKEN.load(Ordering::Relaxed) { None } else { Some(question) }
}

/// Whether the caller is the one to answer: of several threads one is.
#[cold]
pub fn take(question: u32) -> bool {
    TAKEN.swap(question, Ordering::Relaxed) != question
}

/// How many CPUs the ranks of this host share: what says whether ranks are more than CPUs.
///
/// A launcher that binds leaves a rank only its own share to see, so Tern's own tells the number.
/// Under another one that has bound this process, all CPUs of the host are assumed. What the environment says is read once, at the
/// start, for a program may change it while a thread of the library asks for this.
pub fn job_cpus() -> usize {
    static SAID: OnceLock<(Option<usize>, bool)> = OnceLock::new();
    let (told, launched) = *SAID.get_or_init(|| {
        let told = std::env::var(JOB_CPUS).ok().and_then(|text| text.parse::<usize>().ok());
        let launchers = ["PMI_FD", "PMI_PORT", "PMIX_RANK"];
        (told, launchers.iter().any(|name| std::env::var_os(name).is_some()))
    });
    if let Some(told) = told.filter(|cpus| *cpus > 0) {
        return told;
    }
    let own = std::thread::available_parallelism().map_or(1, usize::from);
    if launched { own.max(sys::process::online_cpus()) } else { own }
}
