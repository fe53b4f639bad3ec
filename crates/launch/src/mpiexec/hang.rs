//! Reports on request: SIGUSR1 to the launcher, or the end of the job's time.
//!
//! Every rank is asked twice, the second time when all have answered the first. A rank whose two
//! answers are the same has not moved between them; as the time between one rank's answers overlaps
//! that of every other's, there was a moment at which all was as these ranks say. Answers that differ
//! are of a rank that gets on, and nothing else is said of it: put together with what others said at
//! other times they would make deadlocks out of programs that are well.
use super::death::TIMED_OUT;
use super::job::Job;
use super::message::Order;
use super::places;
use crate::graph::{self, Report, State};
use crate::report::{Line, Pending};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long there may be no answer from anyone. A rank that sleeps in MPI looks around ten times
/// meanwhile; where many answer on few cores, each has the time anew.
const ANSWER: Duration = Duration::from_secs(1);

/// Answers that are being collected.
pub(super) struct Gathering {
    pub(super) until: Instant,
    /// Whether the job ends afterwards.
    ends_job: bool,
    question: u32,
    /// What was answered to the first question, once the second has been asked.
    first: Option<Vec<Answer>>,
    answers: Vec<Answer>,
}

/// What one rank answers to one question.
struct Answer {
    /// Whether it is waited for.
    awaited: bool,
    /// Whether its process had ended when the question was asked.
    ended: bool,
    pending: Vec<Pending>,
    /// The last collective begun on each communicator, by context.
    begun: BTreeMap<u64, u64>,
    /// Operations left out, and the number that changes when something moves, once all is there.
    end: Option<(u64, u64)>,
    /// Whether it is looked up what its process does, and what that is.
    looking: bool,
    seen: String,
}

impl Answer {
    /// The same answer, but for how long things have lasted by then.
    fn moves(&self) -> Option<u64> {
        self.end.map(|(_, moves)| moves)
    }
}

impl Job {
    /// Asks all ranks for a report.
    pub(super) fn gather(&mut self, ends_job: bool) {
        match &mut self.gathering {
            Some(gathering) => gathering.ends_job |= ends_job,
            None => self.ask(ends_job, None),
        }
    }

    fn ask(&mut self, ends_job: bool, first: Option<Vec<Answer>>) {
        let answers = self.ranks.iter().enumerate().map(|(rank, process)| Answer {
            // Whoever cannot answer, or has not done so before, is not waited for.
            awaited: process.ended.is_none()
                && process.ready
                && !process.silent
                && first
                    .as_ref()
                    .is_none_or(|first| first.get(rank).is_some_and(|first| first.end.is_some())),
            ended: process.ended.is_some(),
            pending: Vec::new(),
            begun: BTreeMap::new(),
            end: None,
            // Of one that has not answered before, the system is asked what it does.
            looking: process.ended.is_none()
                && process.pid != 0
                && first
                    .as_ref()
                    .is_some_and(|first| first.get(rank).is_some_and(|first| first.end.is_none())),
            seen: String::new(),
        });
        let answers: Vec<Answer> = answers.collect();
        let looking: Vec<usize> = (0..answers.len()).filter(|rank| answers[*rank].looking).collect();
        let until = Instant::now() + ANSWER;
        self.question = self.question.wrapping_add(1).max(1);
        let question = self.question;
        self.gathering = Some(Gathering { until, ends_job, question, first, answers });
        self.order_all(&Order::Ask { question });
        looking.into_iter().for_each(|rank| self.order(rank, Order::Look { rank }));
        self.conclude_if_complete();
    }

    /// Takes what was seen of the process of a rank.
    pub(super) fn on_looked(&mut self, rank: usize, text: String) {
        // One that was started after the question is not asked.
        if let Some(gathering) = &mut self.gathering
            && let Some(answer) = gathering.answers.get_mut(rank)
        {
            (answer.looking, answer.seen) = (false, text);
            self.conclude_if_complete();
        }
    }

    /// Takes one line of a rank's answer.
    pub(super) fn on_answer(&mut self, rank: usize, line: Line) {
        let numbers = self.servers.numbers(rank, self.ranks.len());
        let Some(gathering) = &mut self.gathering else { return };
        gathering.until = Instant::now() + ANSWER;
        let Some(answer) = gathering.answers.get_mut(rank) else { return };
        match line {
            // An answer that comes too late belongs to a question that was given up.
            Line::Pending { question, .. } | Line::Begun { question, .. } | Line::End { question, .. }
                if question != gathering.question => {}
            Line::Pending { pending, .. } => answer.pending.push(numbers.of_pending(pending)),
            Line::Begun { runs, .. } => {
                answer
                    .begun
                    .extend(runs.into_iter().map(|(context, run)| (numbers.of_context(context), run)));
            }
            Line::End { left_out, moves, .. } => answer.end = Some((left_out, moves)),
            Line::Ready | Line::Fatal { .. } => unreachable!("handled by the caller"),
        }
        self.conclude_if_complete();
    }

    /// The rank has closed its channel: it will not answer any more.
    pub(super) fn on_silence(&mut self, rank: usize) {
        if let Some(gathering) = &mut self.gathering
            && let Some(answer) = gathering.answers.get_mut(rank)
        {
            answer.awaited = false;
            answer.looking &= self.ranks[rank].ended.is_none();
            self.conclude_if_complete();
        }
    }

    fn conclude_if_complete(&mut self) {
        let complete =
            |g: &Gathering| g.answers.iter().all(|a| (a.end.is_some() || !a.awaited) && !a.looking);
        if self.gathering.as_ref().is_some_and(complete) {
            self.conclude();
        }
    }

    /// Asks again, or prints what is known and ends the job if its time is over.
    pub(super) fn conclude(&mut self) {
        let gathering = self.gathering.take().expect("there is a question");
        match gathering.first {
            None => self.ask(gathering.ends_job, Some(gathering.answers)),
            Some(first) => self.tell(gathering.ends_job, &first, gathering.answers),
        }
    }

    fn tell(&mut self, ends_job: bool, first: &[Answer], mut answers: Vec<Answer>) {
        places::name(answers.iter_mut().flat_map(|answer| &mut answer.pending));
        let both = first.iter().zip(answers).enumerate();
        // What a rank had begun at the first question it has told all others that wait for it since.
        let reports = both.map(|(rank, (first, second))| Report {
            rank,
            state: self.state(rank, first, second),
            begun: first.begun.clone(),
        });
        let lines = graph::graph(&reports.collect::<Vec<_>>());
        let reason = match (ends_job, self.plan.timeout) {
            (true, Some(timeout)) => {
                format!("the job is not done after {} s (--timeout)", timeout.as_secs_f64())
            }
            _ => "state of the job".into(),
        };
        self.say(&format!("mpiexec: {reason}:\n  {}", lines.join("\n  ")));
        if ends_job {
            self.end(TIMED_OUT, None);
        }
    }

    fn state(&self, rank: usize, first: &Answer, second: Answer) -> State {
        let process = &self.ranks[rank];
        match (first.moves(), second.end) {
            _ if second.ended => State::Ended,
            (Some(before), Some((left_out, moves))) if before == moves => match second.pending {
                operations if operations.is_empty() => State::Idle,
                operations => State::Pending { operations, left_out },
            },
            // It has come to MPI, left it, or ended since it was first asked.
            (Some(_), _) | (_, Some(_)) => State::Moving,
            (None, None) if process.ended.is_some() => State::Moving,
            (None, None) => State::Silent(self.silence(rank, &second.seen)),
        }
    }

    /// What is known about a rank that did not answer; the system has `seen` its process.
    fn silence(&self, rank: usize, seen: &str) -> String {
        let process = &self.ranks[rank];
        let what = match process.ready {
            true if process.silent => {
                "cut off from mpiexec (it executed another program, or closed its descriptors)"
            }
            true if self.inside(rank) => "not waiting in MPI (it computes, or is stopped)",
            false if self.inside(rank) => "inside MPI, but cannot be asked",
            _ if process.pid == 0 => "not started yet",
            _ => "before MPI_Init or after MPI_Finalize",
        };
        if seen.is_empty() { what.into() } else { format!("{what}: {seen}") }
    }
}
