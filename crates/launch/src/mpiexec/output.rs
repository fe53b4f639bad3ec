//! What ranks print, on its way to the user: whole lines, bounded memory, no wait that would keep
//! the launcher from its other work.
use crate::sys::event::{self, Epoll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// Above this many bytes in a queue nothing more is read for it, below the other it is again.
const QUEUE_HIGH: usize = 1 << 20;
const QUEUE_LOW: usize = 1 << 18;
/// A line that grows beyond this is passed on in parts.
const LINE_MAX: usize = 1 << 20;
/// What is written to a file at once.
const CHUNK: usize = 1 << 16;
/// What a pipe or terminal that polls as writable takes without waiting.
const ATOMIC: usize = 4096;

/// Where bytes go: the launcher's standard output or error, or the standard input of rank 0.
pub struct Sink {
    fd: File,
    token: u64,
    /// Whether it can be waited for; files cannot, and take everything at once.
    pollable: bool,
    /// Whether a user may be waiting at the end of an unfinished line.
    terminal: bool,
    waiting: bool,
    /// Nobody reads any more.
    broken: bool,
    /// Why something could not be written, until it is said; and whether that has happened.
    why_lost: Option<io::Error>,
    lost: bool,
    /// Nothing more will be pushed.
    last: bool,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk of the queue that are written already.
    done: usize,
    queued: usize,
    /// The stream whose unfinished line is shown last.
    open_line: Option<usize>,
}

impl Sink {
    /// A sink into `fd`; when it has to wait it shows up in the epoll set under `token`.
    pub fn new(fd: OwnedFd, token: u64, epoll: &Epoll) -> Sink {
        let pollable = epoll.add(fd.as_raw_fd(), token, event::WRITE).is_ok();
        epoll.remove(fd.as_raw_fd());
        let terminal = fd.is_terminal();
        Sink {
            fd: fd.into(),
            token,
            pollable,
            terminal,
            waiting: false,
            broken: false,
            why_lost: None,
            lost: false,
            last: false,
            queue: VecDeque::new(),
            done: 0,
            queued: 0,
            open_line: None,
        }
    }

    /// Whether nobody reads any more what is written here.
    pub fn broken(&self) -> bool {
        self.broken
    }

    /// Why something could not be written, the first time it is asked after it happened first.
    pub fn why_lost(&mut self) -> Option<io::Error> {
        self.why_lost.take()
    }

    /// Whether something could not be written.
    pub fn lost(&self) -> bool {
        self.lost
    }

    /// Whether there is more in the queue than should be.
    pub fn full(&self) -> bool {
        self.queued > QUEUE_HIGH
    }

    /// Whether the queue has room again.
    pub fn roomy(&self) -> bool {
        self.queued < QUEUE_LOW
    }

    /// Says that nothing more will be pushed.
    pub fn finish(&mut self) {
        self.last = true;
    }

    /// Whether nothing more will be written.
    pub fn finished(&self) -> bool {
        self.last && self.queue.is_empty()
    }

    /// Whether there is somebody who reads, and room for more.
    pub fn wants_more(&self) -> bool {
        !self.broken && !self.last && self.roomy()
    }

    /// Whether everything has been written.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes bytes and writes what can be written without waiting.
    pub fn push(&mut self, bytes: Vec<u8>, epoll: &Epoll) {
        if !self.broken && !bytes.is_empty() {
            self.queued += bytes.len();
            self.queue.push_back(bytes);
            self.flush(epoll);
        }
    }

    /// Writes what can be written without waiting.
    pub fn flush(&mut self, epoll: &Epoll) {
        while let Some(front) = self.queue.front() {
            let rest = &front[self.done..];
            if self.pollable
                && !matches!(event::wait_one(self.fd.as_fd(), event::WRITE, Some(Duration::ZERO)), Ok(true))
            {
                break;
            }
            let most = if self.pollable { ATOMIC } else { CHUNK };
            match self.fd.write(&rest[..rest.len().min(most)]) {
                Ok(count) => self.written(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => self.drop_queue(error),
            }
        }
        self.wait_if_needed(epoll);
    }

    fn written(&mut self, count: usize) {
        self.done += count;
        self.queued -= count;
        if self.queue.front().is_some_and(|front| front.len() == self.done) {
            self.queue.pop_front();
            self.done = 0;
        }
    }

    /// Gives up what cannot be written. A reader that has left does not come back; a disk that is full may have
    /// room again, and a long run is worth more than its output, so what comes later is tried again.
    fn drop_queue(&mut self, error: io::Error) {
        self.queue.clear();
        (self.queued, self.done) = (0, 0);
        if error.kind() == io::ErrorKind::BrokenPipe {
            self.broken = true;
        } else if !self.lost {
            self.lost = true;
            self.why_lost = Some(error);
        }
    }

    fn wait_if_needed(&mut self, epoll: &Epoll) {
        let needed = !self.queue.is_empty();
        if needed && !self.waiting {
            self.waiting = epoll.add(self.fd.as_raw_fd(), self.token, event::WRITE).is_ok();
        } else if !needed && self.waiting {
            epoll.remove(self.fd.as_raw_fd());
            self.waiting = false;
        }
    }
}

/// The output or error of one rank.
pub struct Stream {
    /// Which rank, and whether it is its standard error.
    label: String,
    held: Vec<u8>,
}

impl Stream {
    /// A stream whose lines begin with `label`.
    pub fn new(label: String) -> Stream {
        Stream { label, held: Vec::new() }
    }

    /// Passes on what the rank has written; no bytes are the end.
    /// `whole` holds back what is not a whole line yet.
    pub fn take(&mut self, id: usize, bytes: &[u8], whole: bool, sink: &mut Sink, epoll: &Epoll) {
        let begin = self.held.len();
        self.held.extend_from_slice(bytes);
        let last = bytes.iter().rposition(|b| *b == b'\n').map(|at| begin + at + 1);
        let ready = match last {
            _ if bytes.is_empty() || !whole || self.held.len() > LINE_MAX => self.held.len(),
            Some(end) => end,
            None => 0,
        };
        self.pass(id, ready, sink, epoll);
    }

    /// Shows an unfinished line to a user who may be waiting for just that.
    pub fn show_unfinished(&mut self, id: usize, sink: &mut Sink, epoll: &Epoll) {
        if sink.terminal {
            self.pass(id, self.held.len(), sink, epoll);
        }
    }

    /// Whether there is an unfinished line that a user should see soon.
    pub fn unfinished(&self, sink: &Sink) -> bool {
        sink.terminal && !self.held.is_empty()
    }

    fn pass(&mut self, id: usize, ready: usize, sink: &mut Sink, epoll: &Epoll) {
        if ready == 0 {
            return;
        }
        let rest = self.held.split_off(ready);
        let lines = std::mem::replace(&mut self.held, rest);
        let continued = sink.open_line == Some(id);
        let mut out = Vec::new();
        if sink.open_line.is_some() && !continued {
            out.push(b'\n');
        }
        sink.open_line = (sink.terminal && lines.last() != Some(&b'\n')).then_some(id);
        if self.label.is_empty() && out.is_empty() {
            return sink.push(lines, epoll);
        }
        for (i, line) in lines.split_inclusive(|b| *b == b'\n').enumerate() {
            if i > 0 || !continued {
                out.extend_from_slice(self.label.as_bytes());
            }
            out.extend_from_slice(line);
        }
        sink.push(out, epoll);
    }
}

/// A message of the launcher itself among the output of the ranks.
pub fn say(text: &str, sink: &mut Sink, epoll: &Epoll) {
    let newline = if sink.open_line.take().is_some() { "\n" } else { "" };
    sink.push(format!("{newline}{}\n", text.trim_end()).into_bytes(), epoll);
}
