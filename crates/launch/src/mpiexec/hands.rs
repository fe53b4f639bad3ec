//! The ranks of this host: their processes and channels. What becomes of them is decided elsewhere, by the
//! [`job`](super::job) that is told by [events](Event) and answers with [orders](Order): in this process or,
//! through an [agent](super::agent), in another host's.
use super::arguments::Reader;
use super::bind;
use super::channels::Channel;
use super::files::Files;
use super::guard::{Guard, Remains};
use super::message::{Event, Order};
use super::output::Sink;
use super::start::{self, Common, DESCRIPTORS_PER_RANK, Input, Refusal, Started};
use super::task::Task;
use super::token::Token;
use crate::look;
use crate::report::{self, segment_prefix};
use crate::sys::board::Board;
use crate::sys::event::{self, Epoll};
use crate::sys::packet;
use crate::sys::process::{self, OpenFiles, Reaped};
use std::io::{self, ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Descriptors beside those of ranks: standard ones, epoll, signals, guard, connections, and what starting one
/// rank takes for a moment.
const DESCRIPTORS_BESIDE: u64 = 32;
/// What is read at once of what a rank writes.
const CHUNK: usize = 1 << 16;

/// A rank that was started here.
struct Process {
    rank: usize,
    pid: i32,
    running: bool,
    /// The process that answers questions, once there is one; its id, if it has one here.
    answers: Option<Option<i32>>,
    pmi: Channel,
    /// Until the rank has closed its end.
    control: Option<OwnedFd>,
    outputs: [Option<PipeReader>; 2],
}

/// The ranks of this host.
pub(super) struct Hands {
    processes: Vec<Process>,
    /// Where questions are written that all ranks read.
    board: Board,
    /// What marks the processes of this host.
    mark: String,
    guard: Option<Guard>,
    remains: Remains,
    open_files: OpenFiles,
    /// The standard input of the rank that reads it, if the launcher fills it.
    stdin: Option<Sink>,
    /// Outputs that are not read, because whoever takes them has no room.
    paused: [bool; 2],
}

impl Hands {
    /// Has the guard watch from here on. Call it before signals are blocked.
    pub(super) fn prepare(task: &Task) -> Result<Hands, Refusal> {
        let open_files = OpenFiles::current().map_err(|e| format!("limit of open files: {e}"))?;
        open_files.reserve(task.ranks.len() as u64 * DESCRIPTORS_PER_RANK + DESCRIPTORS_BESIDE)?;
        let system = |what: &str, error: io::Error| format!("{what}: {error}");
        let remains = Remains {
            directories: start::segment_directories(&task.plan),
            // Also of those whose names go on: jobs that are started later.
            prefix: segment_prefix(&task.kvsname).trim_end_matches('-').into(),
        };
        let guard = Guard::start(&task.mark(), &remains).map_err(|e| system("fork", e))?;
        process::become_subreaper().map_err(|e| system("prctl", e))?;
        let board = Board::new(task.secret).map_err(|e| system("memfd_create", e))?;
        Ok(Hands {
            processes: Vec::with_capacity(task.ranks.len()),
            board,
            mark: task.mark(),
            guard: Some(guard),
            remains,
            open_files,
            stdin: None,
            paused: [false; 2],
        })
    }

    /// Starts all ranks of the task. Of those that ran when one could not be started the caller gets rid.
    pub(super) fn start(&mut self, task: &Task, epoll: &Epoll) -> Result<Vec<Event>, Refusal> {
        let plan = &task.plan;
        let count = task.ranks.len();
        let all = (self.processes.len() + count) as u64;
        self.open_files.reserve(all * DESCRIPTORS_PER_RANK + DESCRIPTORS_BESIDE)?;
        let allowed = process::allowed_cpus().unwrap_or_default();
        if plan.undersubscribed && count > allowed.len() {
            let text = format!("{count} ranks are more than the {} CPUs (--nooversubscribe)", allowed.len());
            return Err(text.into());
        }
        let shares = bind::shares(plan.bind, plan.map, count, &bind::machine(&allowed));
        let mark = self.mark.clone();
        let common = Common {
            task,
            cpus: allowed.len().max(1),
            open_files: self.open_files,
            board: self.board.as_raw_fd(),
            mark: &mark,
        };
        let mut files = Files::default();
        let mut events = Vec::with_capacity(count);
        for (local, (&(rank, number), cpus)) in task.ranks.iter().zip(shares).enumerate() {
            let listed = bind::listed(if cpus.is_empty() { &allowed } else { &cpus });
            let started = start::start(&common, local, &plan.segments[number], cpus, &mut files)?;
            events.push(Event::Started { rank, pid: started.pid, cpus: listed });
            self.admit(rank, started, epoll).map_err(|e| format!("rank {rank}: {e}"))?;
        }
        let reader = task.ranks.iter().any(|(rank, _)| plan.reader == Reader::Rank(*rank));
        if reader && task.input == Input::Pipe {
            events.push(Event::InputTaken);
        }
        Ok(events)
    }

    /// Gets rid of ranks from this one on, which have just been started.
    pub(super) fn forget_from(&mut self, first: usize, epoll: &Epoll) {
        while self.processes.last().is_some_and(|process| process.rank >= first) {
            let index = self.processes.len() - 1;
            // It has not been reaped: nobody else has its number.
            let _ = process::kill(self.processes[index].pid, libc::SIGKILL);
            (0..2).for_each(|which| self.close(index, which, epoll));
            self.processes[index].pmi.close(epoll);
            if let Some(socket) = self.processes[index].control.take() {
                epoll.remove(socket.as_raw_fd());
            }
            self.processes.pop();
        }
    }

    fn admit(&mut self, rank: usize, started: Started, epoll: &Epoll) -> io::Result<()> {
        let index = self.processes.len();
        for (output, token) in started.outputs.iter().zip([Token::Stdout(index), Token::Stderr(index)]) {
            if let Some(output) = output {
                epoll.add(output.as_raw_fd(), token.pack(), event::READ)?;
            }
        }
        epoll.add(started.pmi.as_raw_fd(), Token::Pmi(index).pack(), event::READ)?;
        epoll.add(started.control.as_raw_fd(), Token::Control(index).pack(), event::READ)?;
        if let Some(stdin) = started.stdin {
            self.stdin = Some(Sink::new(stdin.into(), Token::Stdin.pack(), epoll));
        }
        self.processes.push(Process {
            rank,
            pid: started.pid,
            running: true,
            answers: None,
            pmi: Channel::new(started.pmi),
            control: Some(started.control),
            outputs: started.outputs,
        });
        Ok(())
    }

    /// Handles a descriptor that is ready.
    pub(super) fn on_ready(&mut self, token: Token, epoll: &Epoll) -> Vec<Event> {
        match token {
            Token::Pmi(index) => self.on_pmi(index, epoll),
            Token::Control(index) => self.on_control(index, epoll),
            Token::Stdout(index) => self.on_output(index, 0, epoll),
            Token::Stderr(index) => self.on_output(index, 1, epoll),
            Token::Stdin => {
                if let Some(sink) = &mut self.stdin {
                    sink.flush(epoll);
                }
                self.on_input_room()
            }
            other => unreachable!("{other:?} is nothing of a rank"),
        }
    }

    fn on_pmi(&mut self, index: usize, epoll: &Epoll) -> Vec<Event> {
        let process = &mut self.processes[index];
        let rank = process.rank;
        process.pmi.read(epoll).into_iter().map(|line| Event::Pmi { rank, line }).collect()
    }

    fn on_control(&mut self, index: usize, epoll: &Epoll) -> Vec<Event> {
        let process = &mut self.processes[index];
        let rank = process.rank;
        // One byte more than a line, so that one that is too long is seen to be.
        let mut buffer = vec![0u8; report::LINE_MAX + 1];
        let mut events = Vec::new();
        while let Some(socket) = &process.control {
            let packet = match packet::receive(socket.as_fd(), &mut buffer) {
                Ok(packet) if packet.len > 0 => packet,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                _ => {
                    epoll.remove(socket.as_raw_fd());
                    process.control = None;
                    events.push(Event::Silent { rank });
                    break;
                }
            };
            process.answers = Some(packet.sender);
            events.push(Event::Control { rank, packet: buffer[..packet.len].to_vec() });
        }
        events
    }

    /// Reads once, which does not wait as the descriptor is ready.
    fn on_output(&mut self, index: usize, which: usize, epoll: &Epoll) -> Vec<Event> {
        let rank = self.processes[index].rank;
        let Some(output) = &mut self.processes[index].outputs[which] else { return Vec::new() };
        let mut bytes = vec![0; CHUNK];
        let count = match output.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Vec::new(),
            Err(_) => 0,
        };
        bytes.truncate(count);
        if count == 0 {
            self.close(index, which, epoll);
        }
        vec![Event::Output { rank, which, bytes }]
    }

    fn close(&mut self, index: usize, which: usize, epoll: &Epoll) {
        if let Some(output) = self.processes[index].outputs[which].take() {
            epoll.remove(output.as_raw_fd());
        }
    }

    /// Says when the next bytes of the input may come, and closes it at its end.
    fn on_input_room(&mut self) -> Vec<Event> {
        let Some(sink) = &self.stdin else { return Vec::new() };
        if sink.broken() || sink.finished() {
            self.stdin = None;
            return vec![Event::InputClosed];
        }
        if sink.is_empty() { vec![Event::InputTaken] } else { Vec::new() }
    }

    /// Does what is ordered; what follows from it at once.
    pub(super) fn carry_out(&mut self, order: Order, epoll: &Epoll) -> Vec<Event> {
        match order {
            Order::Pmi { rank, line } => {
                let deaf = self.index(rank).is_some_and(|index| !self.processes[index].pmi.send(&line));
                if deaf { vec![Event::Deaf { rank }] } else { Vec::new() }
            }
            Order::Drop { rank } => {
                self.hang_up(rank, epoll);
                Vec::new()
            }
            Order::Look { rank } => self.look(rank).into_iter().collect(),
            Order::Signal { signal } => {
                self.signal(signal);
                Vec::new()
            }
            Order::Ask { question } => {
                self.board.write(question);
                Vec::new()
            }
            Order::Input { bytes } => self.on_input(bytes, epoll),
            Order::Pause { which, paused } => {
                self.pause(which, paused, epoll);
                Vec::new()
            }
            Order::Close { rank, which } => {
                if let Some(index) = self.index(rank) {
                    self.close(index, which, epoll);
                }
                Vec::new()
            }
            Order::Forget { first } => {
                self.forget_from(first, epoll);
                Vec::new()
            }
            // Those are for whoever has the ranks.
            Order::Finish | Order::Start { .. } => Vec::new(),
        }
    }

    /// Speaks with a rank no more.
    fn hang_up(&mut self, rank: usize, epoll: &Epoll) {
        let Some(index) = self.index(rank) else { return };
        self.processes[index].pmi.close(epoll);
        if let Some(socket) = self.processes[index].control.take() {
            epoll.remove(socket.as_raw_fd());
        }
    }

    /// What a rank is doing.
    fn look(&self, rank: usize) -> Option<Event> {
        let process = &self.processes[self.index(rank)?];
        let seen = |pid: i32| format!("process {pid} is {}", look::activity(pid));
        let text = process.answers.unwrap_or(Some(process.pid)).map(seen).unwrap_or_default();
        Some(Event::Looked { rank, text })
    }

    fn on_input(&mut self, bytes: Vec<u8>, epoll: &Epoll) -> Vec<Event> {
        let Some(sink) = &mut self.stdin else { return vec![Event::InputClosed] };
        if bytes.is_empty() {
            sink.finish();
        }
        sink.push(bytes, epoll);
        self.on_input_room()
    }

    fn index(&self, rank: usize) -> Option<usize> {
        self.processes.binary_search_by_key(&rank, |process| process.rank).ok()
    }

    /// Reads no output of this kind, or reads it again.
    pub(super) fn pause(&mut self, which: usize, paused: bool, epoll: &Epoll) {
        if self.paused[which] == paused {
            return;
        }
        self.paused[which] = paused;
        for (index, process) in self.processes.iter().enumerate() {
            let Some(output) = &process.outputs[which] else { continue };
            if paused {
                epoll.remove(output.as_raw_fd());
            } else {
                let token = if which == 0 { Token::Stdout(index) } else { Token::Stderr(index) };
                // It was in the set before: only lack of kernel memory can refuse it.
                epoll.add(output.as_raw_fd(), token.pack(), event::READ).expect("epoll takes it back");
            }
        }
    }

    /// Sends a signal to all processes of all ranks. A rank that has not been reaped keeps its number
    /// and that of its group, so that nobody else is reached by it.
    pub(super) fn signal(&self, signal: i32) {
        for process in self.processes.iter().filter(|process| process.running) {
            let pid = process.pid;
            // One that has joined another group is reached alone. Ended, but not reaped yet: nothing to
            // signal.
            let _ = process::kill_group(pid, signal).or_else(|_| process::kill(pid, signal));
        }
    }

    /// What follows from the end of a child; nothing if it was the guard, or an orphan that became our child.
    pub(super) fn on_child(&mut self, child: Reaped, epoll: &Epoll) -> Vec<Event> {
        let known = self.processes.iter().position(|p| p.pid == child.pid && p.running);
        let Some(index) = known else { return Vec::new() };
        // Its last words first: they say why it ended.
        let mut events = self.on_pmi(index, epoll);
        events.extend(self.on_control(index, epoll));
        self.processes[index].running = false;
        events.push(Event::Ended { rank: self.processes[index].rank, how: child.how });
        events
    }

    /// Whether what some rank writes is still read.
    pub(super) fn open_outputs(&self) -> bool {
        self.processes.iter().any(|process| process.outputs.iter().any(Option::is_some))
    }

    /// Kills what ranks have left behind; whether there was something.
    pub(super) fn kill_leftovers(&self) -> bool {
        while process::reap().is_some() {}
        let left: Vec<i32> = look::children()
            .into_iter()
            .filter(|pid| self.guard.as_ref().is_none_or(|guard| guard.pid != *pid))
            .collect();
        for pid in &left {
            // It may have ended by itself since.
            let _ = process::kill(*pid, libc::SIGKILL);
        }
        !left.is_empty()
    }

    /// Removes the shared memory that ranks have left behind.
    pub(super) fn remove_remains(&self) {
        self.remains.remove();
    }

    /// Lets the guard go: nothing is left to clean up.
    pub(super) fn release(&mut self) {
        if let Some(guard) = self.guard.take() {
            guard.release();
        }
    }
}
