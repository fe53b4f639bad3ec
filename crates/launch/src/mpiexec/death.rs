//! Signals and deaths: who ends, why, and what becomes of the others.
use super::job::{GRACE, Job, exit_code};
use super::message::Order;
use crate::pmi::server::Stage;
use crate::sys::process::{self, Ended};
use crate::sys::signal;
use std::time::{Duration, Instant};

/// How long ranks may go on when one has left MPI without finalizing: all may be about to.
const STRAGGLER: Duration = Duration::from_secs(3);
/// How often ranks are killed before hosts that do not answer are left to themselves.
const KILLS: u32 = 5;
/// The exit code of a job that was ended because its time was over, as `timeout` uses it.
pub(super) const TIMED_OUT: u8 = 124;

impl Job {
    pub(super) fn on_signals(&mut self) {
        while let Some(signal) = self.signals.take_next() {
            match signal {
                libc::SIGCHLD => self.on_children(),
                libc::SIGUSR1 => self.gather(false),
                libc::SIGTSTP => {
                    self.signal_all(signal);
                    process::stop_self();
                }
                libc::SIGCONT => {
                    self.signal_all(signal);
                    self.watch_input();
                }
                libc::SIGUSR2 => self.signal_all(signal),
                libc::SIGINT => {
                    self.interrupts += 1;
                    self.forward(signal);
                }
                ending => self.forward(ending),
            }
        }
    }

    /// Passes on a signal that asks ranks to end. They may do so in their own time; only a second
    /// SIGINT takes that from them.
    fn forward(&mut self, signal: i32) {
        self.forwarded = Some(signal);
        if self.interrupts > 1 {
            self.end(128 + signal as u8, Some("interrupted twice".into()));
            self.kill_all();
        } else {
            // There must be somebody who can do so in his own time. Who has been told to start ranks says a little later that they run.
            if self.starting() {
                self.end(128 + signal as u8, None);
            } else if !self.any_known() {
                self.unheeded = Some(Instant::now() + GRACE);
            }
            self.signal_all(signal);
            // A stopped process sees the signal only when it runs again.
            self.signal_all(libc::SIGCONT);
        }
    }

    /// Whether a rank is known to have been started.
    fn any_known(&self) -> bool {
        self.ranks.iter().any(|rank| rank.pid != 0)
    }

    pub(super) fn on_children(&mut self) {
        while let Some(child) = process::reap() {
            self.on_child(child);
        }
        self.look_for_stragglers();
    }

    pub(super) fn judge(&mut self, rank: usize, how: Ended) {
        let name = self.process_of(rank);
        match how {
            Ended::Signal(number, _) if self.forwarded == Some(number) => {
                self.end(128 + number as u8, None);
            }
            Ended::Signal(number, core) => {
                let core = if core { ", core dumped" } else { "" };
                let text = format!("{name} was killed by {}{core}", signal::name(number));
                self.end(128 + number as u8, Some(text));
            }
            Ended::Code(0) => {}
            Ended::Code(code) if self.servers.stage(rank) == Stage::Finalized => {
                self.verdict.get_or_insert(exit_code(code));
            }
            Ended::Code(code) => {
                let how = if self.inside(rank) { " without MPI_Finalize" } else { "" };
                self.end(exit_code(code), Some(format!("{name} exited with code {code}{how}")));
            }
        }
    }

    /// A rank that is gone while others are in MPI, in a way that makes them wait for it for ever.
    fn missed(&self) -> Option<usize> {
        let inside = self.running().any(|rank| self.inside(rank));
        (0..self.ranks.len()).filter(|rank| self.ranks[*rank].ended == Some(Ended::Code(0))).find(|rank| {
            // One that has finalized is missed only by a second program that the others run.
            self.servers.has_barrier(*rank) || (inside && self.servers.stage(*rank) != Stage::Finalized)
        })
    }

    /// Gives ranks that may be about to leave in the same way some time for it.
    fn look_for_stragglers(&mut self) {
        if self.missed().is_some() && self.kill_at.is_none() {
            self.straggler.get_or_insert(Instant::now() + STRAGGLER);
        } else {
            self.straggler = None;
        }
    }

    pub(super) fn on_time(&mut self, now: Instant) {
        let due = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if due(self.kill_at) {
            self.kill_all();
            // Again, should one of them be stuck in the kernel now.
            self.kill_at = Some(now + GRACE);
            self.kills += 1;
            if self.kills > KILLS {
                self.give_up_silent();
            }
        }
        if due(self.deadline) {
            self.deadline = None;
            self.gather(true);
        }
        if due(self.unheeded) {
            self.unheeded = None;
            if let Some(signal) = self.forwarded.filter(|_| !self.any_known()) {
                self.end(128 + signal as u8, None);
            }
        }
        if self.gathering.as_ref().is_some_and(|g| g.until <= now) {
            self.conclude();
        }
        // A rank may enter MPI only after another has left.
        self.look_for_stragglers();
        if due(self.straggler) {
            self.straggler = None;
            let gone = self.missed().expect("the time runs only then");
            let what = match self.servers.stage(gone) {
                Stage::Inside => " without MPI_Finalize",
                Stage::Outside => " without MPI_Init",
                Stage::Finalized => "",
            };
            let gone = self.known_as(gone);
            let text = format!("{gone} exited with code 0{what} while others wait for it in MPI");
            self.end(1, Some(text));
        }
        self.watch_input();
        self.look_after_agents(now);
    }

    /// Ends the job with `code` for the reason `text`, unless it is ending already: the first
    /// reason is the cause, the others are what followed from it.
    pub(super) fn end(&mut self, code: u8, text: Option<String>) {
        if self.kill_at.is_some() {
            return;
        }
        // A rank that failed after MPI_Finalize has not ended the job, but it was first.
        self.verdict.get_or_insert(code);
        self.kill_at = Some(Instant::now() + GRACE);
        if let Some(text) = text {
            let rest = if self.running().next().is_some() { "; ending the job" } else { "" };
            self.say(&format!("mpiexec: {text}{rest}"));
        }
        self.give_up_starting();
        self.end_spread();
        self.signal_all(libc::SIGTERM);
        self.signal_all(libc::SIGCONT);
    }

    /// Ends the job because a rank met a fatal error: its own words are all that is printed.
    pub(super) fn end_fatal(&mut self, code: i32, text: &str) {
        if self.kill_at.is_none() {
            self.say(text);
        }
        self.end(exit_code(code), None);
    }

    fn signal_all(&mut self, signal: i32) {
        self.order_all(&Order::Signal { signal });
    }

    pub(super) fn kill_all(&mut self) {
        self.signal_all(libc::SIGKILL);
    }
}
