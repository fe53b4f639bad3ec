//! The process that cleans up after an `mpiexec` that was killed.
//!
//! When the launcher is killed with SIGKILL the kernel ends the ranks, its children, but not what
//! they have started. The guard holds the reading end of a pipe whose only writing end is the
//! launcher's. Its end means that the launcher is gone; the guard then kills every process that has the mark of the job
//! in its environment, and removes the shared memory that they had not unlinked yet. It has another name and another
//! session than the launcher, so that `killall -9 mpiexec` does not hit both.
use crate::look;
use crate::report::JOB;
use crate::sys::process;
use std::collections::BTreeSet;
use std::io::{self, PipeWriter, Read};
use std::path::PathBuf;

/// The launcher's hold on its guard.
pub struct Guard {
    /// Process id of the guard.
    pub pid: i32,
    /// Its end tells the guard that the launcher is gone.
    _life: PipeWriter,
}

impl Guard {
    /// Starts the guard of the job with this mark, whose shared memory is in `remains`. Call it before any thread exists and before
    /// signals are blocked.
    pub fn start(mark: &str, remains: &Remains) -> io::Result<Guard> {
        let (mut end, life) = io::pipe()?;
        let mark = format!("{JOB}={mark}");
        let pid = process::fork(|| {
            // The guard's own copy of the writing end would keep the pipe open for ever.
            let closed = crate::sys::close_inherited(&life);
            if closed.and(process::detach(c"tern-guard")).is_ok() {
                watch(&mut end, &mark);
                remains.remove();
            }
        })?;
        Ok(Guard { pid, _life: life })
    }

    /// Lets the guard go: nothing is left to clean up.
    pub fn release(self) {
        // Killed before the pipe closes, so that it does not even look; then no trace is left.
        if process::kill(self.pid, libc::SIGKILL).is_ok() {
            process::wait(self.pid);
        }
    }
}

fn watch(end: &mut impl Read, mark: &str) {
    if end.read_to_end(&mut Vec::new()).is_err() {
        return;
    }
    clear(
        || look::marked(mark),
        |pid| process::kill_if(pid, || look::is_marked(pid, mark)).unwrap_or_default(),
    );
}

/// How often in a row none must be found. A process has no environment while it executes another program, as `setsid`
/// does twice at once; one may have forked while we looked.
const QUIET: u32 = 5;

/// Kills what is found until nothing is. Bounded, because a process in uninterruptible sleep does not go away at once.
fn clear(mut look: impl FnMut() -> Vec<i32>, mut kill: impl FnMut(i32)) {
    let mut quiet = 0;
    for _ in 0..100 {
        let left = look();
        quiet = if left.is_empty() { quiet + 1 } else { 0 };
        if quiet == QUIET {
            return;
        }
        for pid in left.into_iter().filter(|pid| *pid > 1) {
            kill(pid);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Where a job may leave shared memory.
pub struct Remains {
    /// The directories.
    pub directories: BTreeSet<PathBuf>,
    /// How the names of its segments begin.
    pub prefix: String,
}

impl Remains {
    /// Removes what is there. Ranks unlink a segment as soon as all have mapped it, so only a rank
    /// that was killed just then leaves one.
    pub fn remove(&self) {
        let entries = self.directories.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(self.prefix.as_bytes()) {
                // Nobody can be told but the user, who can do no more about it than we can.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_hides_while_it_executes_a_program_is_found_all_the_same() {
        let mut looks =
            [vec![], vec![7], vec![], vec![], vec![1, 8], vec![], vec![], vec![], vec![], vec![]].into_iter();
        let mut killed = Vec::new();
        clear(|| looks.next().unwrap(), |pid| killed.push(pid));
        assert_eq!((killed, looks.next()), (vec![7, 8], None));
    }
}
