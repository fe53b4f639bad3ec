//! Reports on request: SIGUSR1 to the launcher, or the end of the job's time.
use super::death::TIMED_OUT;
use super::job::Job;
use super::{look, places};
use crate::graph::{self, Report, State};
use crate::report::{Line, Pending, SIGNAL};
use crate::sys::process;
use std::time::{Duration, Instant};

/// How long a rank may take to answer; one that is inside MPI answers at once.
const ANSWER: Duration = Duration::from_secs(1);

/// Answers that are being collected.
pub(super) struct Gathering {
    pub(super) until: Instant,
    /// Whether the job ends afterwards.
    ends_job: bool,
    answers: Vec<Answer>,
}

#[derive(Default)]
struct Answer {
    pending: Vec<Pending>,
    left_out: u64,
    idle: bool,
    complete: bool,
}

impl Job {
    /// Asks all ranks for a report.
    pub(super) fn gather(&mut self, ends_job: bool) {
        if let Some(gathering) = &mut self.gathering {
            gathering.ends_job |= ends_job;
            return;
        }
        let mut answers: Vec<Answer> = self.ranks.iter().map(|_| Answer::default()).collect();
        for (rank, answer) in self.ranks.iter().zip(&mut answers) {
            let asked = match (rank.ended, rank.ready) {
                (None, Some(pid)) => process::kill(pid, SIGNAL).is_ok(),
                _ => false,
            };
            // Whoever cannot be asked is not waited for.
            answer.complete = !asked;
        }
        let until = Instant::now() + ANSWER;
        self.gathering = Some(Gathering { until, ends_job, answers });
        self.conclude_if_complete();
    }

    /// Takes one line of a rank's answer.
    pub(super) fn on_answer(&mut self, rank: usize, line: Line) {
        // An answer that comes too late belongs to a question that was given up.
        let Some(gathering) = &mut self.gathering else { return };
        let answer = &mut gathering.answers[rank];
        match line {
            Line::Pending(pending) => answer.pending.push(pending),
            Line::End { left_out } => (answer.left_out, answer.complete) = (left_out, true),
            Line::Idle => (answer.idle, answer.complete) = (true, true),
            Line::Ready { .. } | Line::Fatal { .. } => unreachable!("handled by the caller"),
        }
        self.conclude_if_complete();
    }

    fn conclude_if_complete(&mut self) {
        if self.gathering.as_ref().is_some_and(|g| g.answers.iter().all(|a| a.complete)) {
            self.conclude();
        }
    }

    /// Prints what is known, and ends the job if its time is over.
    pub(super) fn conclude(&mut self) {
        let mut gathering = self.gathering.take().expect("there is a question");
        places::name(gathering.answers.iter_mut().flat_map(|answer| &mut answer.pending));
        let reports: Vec<Report> = gathering
            .answers
            .into_iter()
            .enumerate()
            .map(|(rank, answer)| Report { rank, state: self.state(rank, answer) })
            .collect();
        let lines = graph::graph(&reports);
        let reason = match (gathering.ends_job, self.plan.timeout) {
            (true, Some(timeout)) => {
                format!("the job is not done after {} s (--timeout)", timeout.as_secs_f64())
            }
            _ => "state of the job".into(),
        };
        self.say(&format!("mpiexec: {reason}:\n  {}", lines.join("\n  ")));
        if gathering.ends_job {
            self.end(TIMED_OUT, None);
        }
    }

    fn state(&self, rank: usize, answer: Answer) -> State {
        let process = &self.ranks[rank];
        if process.ended.is_some() {
            return State::Ended;
        }
        if !answer.pending.is_empty() {
            return State::Pending { operations: answer.pending, left_out: answer.left_out };
        }
        if answer.idle {
            return State::Idle;
        }
        let pid = process.ready.unwrap_or(process.pid);
        let activity = look::activity(pid);
        State::Silent(match (process.ready, self.inside(rank)) {
            (Some(_), true) => format!("not inside MPI (computing) or stopped: process {pid} is {activity}"),
            (None, true) => format!("inside MPI, but cannot be asked: process {pid} is {activity}"),
            (_, false) => format!("before MPI_Init or after MPI_Finalize: process {pid} is {activity}"),
        })
    }
}
