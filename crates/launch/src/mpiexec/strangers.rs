//! Ranks that run a program of an MPI which this launcher cannot make a job of: see [`super::foreign`].
use super::foreign;
use super::job::Job;
use crate::pmi::server::Stage;
use crate::sys::process::Ended;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long after the start processes are looked at that nothing has been heard of, and how long at most between two
/// looks, of which each waits twice as long as the one before. Most ranks come to `MPI_Init` within the first.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LAST_LOOK: Duration = Duration::from_secs(60);

/// Of how many programs a process is looked at: each look goes over all processes of the host.
const PROGRAMS_MAX: usize = 16;

/// What is known of foreign libraries.
pub(super) struct Strangers {
    /// When the processes are looked at next.
    pub(super) look_at: Option<Instant>,
    wait: Duration,
    /// The program of each rank.
    numbered: Vec<usize>,
    /// The library of Open MPI that each program uses.
    libraries: Vec<Option<String>>,
    said: bool,
}

impl Strangers {
    /// Looks at the programs, at `paths`, of ranks that run the `numbered` ones; each has its `LD_LIBRARY_PATH`.
    pub(super) fn new(paths: &[PathBuf], searched: &[OsString], numbered: &[usize]) -> Strangers {
        let several = numbered.len() > 1;
        // One rank is as well off alone.
        let programs = paths.iter().zip(searched);
        let linked = programs.map(|(path, searched)| foreign::linked(path, searched).filter(|_| several));
        Strangers {
            look_at: several.then(|| Instant::now() + FIRST_LOOK),
            wait: FIRST_LOOK,
            numbered: numbered.to_vec(),
            libraries: linked.collect(),
            said: false,
        }
    }

    /// Of ranks on other hosts nothing is looked at.
    pub(super) fn none() -> Strangers {
        Strangers::new(&[], &[], &[])
    }

    fn library(&self, rank: usize) -> Option<&str> {
        self.libraries.get(*self.numbered.get(rank)?)?.as_deref()
    }
}

impl Job {
    /// Looks now and then at a rank of each program that has not joined the job. A
    /// user who learns it now need not wait for the end of a long run.
    pub(super) fn look_for_strangers(&mut self, now: Instant) {
        if self.strangers.look_at.is_none_or(|time| time > now) {
            return;
        }
        self.strangers.look_at = None;
        let mut outside: Vec<usize> =
            self.running().filter(|rank| self.servers.stage(*rank) == Stage::Outside).collect();
        // Those that were asked for later are waited for by who has asked.
        outside.retain(|rank| *rank < self.strangers.numbered.len());
        if !outside.is_empty() && self.strangers.wait < LAST_LOOK {
            self.strangers.wait *= 2;
            self.strangers.look_at = Some(now + self.strangers.wait);
        }
        // Ranks of one program follow each other.
        outside.dedup_by_key(|rank| self.strangers.numbered[*rank]);
        for rank in outside.into_iter().take(PROGRAMS_MAX) {
            let library = &mut self.strangers.libraries[self.strangers.numbered[rank]];
            *library = library.take().or_else(|| foreign::loaded(self.ranks[rank].pid));
            if library.is_some() {
                self.strangers.look_at = None;
                self.say_stranger(rank, "has not joined the job");
            }
        }
    }

    /// A rank that ended well but was never in the job has done its work alone, as all others have.
    pub(super) fn judge_strangers(&mut self) {
        let ended_alone = |rank: &usize| {
            self.ranks[*rank].ended == Some(Ended::Code(0)) && self.servers.stage(*rank) == Stage::Outside
        };
        let mut alone = (0..self.ranks.len()).filter(ended_alone);
        let stranger = alone.find(|rank| self.strangers.library(*rank).is_some());
        if let Some(rank) = stranger {
            self.say_stranger(rank, "ended without having joined the job");
            self.verdict.get_or_insert(1);
        }
    }

    fn say_stranger(&mut self, rank: usize, what: &str) {
        if std::mem::replace(&mut self.strangers.said, true) {
            return;
        }
        let library = self.strangers.library(rank).unwrap_or_default();
        let instead = match foreign::is_replaced(library) {
            true => "with --abi openmpi it runs on Tern's library",
            false => "build it with Tern's mpicc",
        };
        let text = format!(
            "mpiexec: rank {rank} ({}) {what}: it uses Open MPI ({library}), which this mpiexec cannot start, so \
             each process is a job of one rank; {instead}, or start it with Open MPI's mpirun",
            self.ranks[rank].program
        );
        self.say(&text);
    }
}
