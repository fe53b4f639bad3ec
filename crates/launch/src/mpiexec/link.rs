//! The connection between `mpiexec` and an agent: whole messages both ways, without waiting.
use super::message::{self, PREFIX};
use crate::sys::event::{self, Epoll};
use crate::sys::{self, net};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Above this many bytes in the queue no output of ranks is taken for it.
const QUEUE_HIGH: usize = 1 << 20;
/// More than this is never left unread by the other side, if it is well.
const QUEUE_MAX: usize = 64 << 20;
/// What is read at once.
const CHUNK: usize = 1 << 16;

/// One end of a connection.
pub(super) struct Link {
    stream: TcpStream,
    token: u64,
    arrived: Vec<u8>,
    queue: VecDeque<u8>,
    /// Whether it is waited for room.
    waiting: bool,
}

impl Link {
    /// Takes over a connection whose other side has proven itself; it shows up in the set under `token`.
    pub(super) fn new(stream: TcpStream, token: u64, epoll: &Epoll) -> io::Result<Link> {
        stream.set_nonblocking(true)?;
        // Requests are small and many are waited for: nothing can be gained by delaying them.
        stream.set_nodelay(true)?;
        net::watch_over(&stream)?;
        epoll.add(stream.as_raw_fd(), token, event::READ)?;
        Ok(Link { stream, token, arrived: Vec::new(), queue: VecDeque::new(), waiting: false })
    }

    /// Queues a message.
    pub(super) fn push(&mut self, body: &[u8]) {
        self.queue.extend(message::framed(body));
    }

    /// Whether there is more in the queue than should be.
    pub(super) fn full(&self) -> bool {
        self.queue.len() > QUEUE_HIGH
    }

    /// Whether everything has been sent.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Writes what can be written without waiting.
    pub(super) fn flush(&mut self, epoll: &Epoll) -> Result<(), String> {
        while !self.queue.is_empty() {
            let (front, _) = self.queue.as_slices();
            match sys::send(self.stream.as_fd(), front) {
                Ok(count) => drop(self.queue.drain(..count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        if self.queue.len() > QUEUE_MAX {
            return Err("it does not read what it is sent".into());
        }
        let needed = !self.queue.is_empty();
        if needed != self.waiting {
            let interest = if needed { event::READ | event::WRITE } else { event::READ };
            epoll.change(self.stream.as_raw_fd(), self.token, interest).map_err(|e| e.to_string())?;
            self.waiting = needed;
        }
        Ok(())
    }

    /// The messages that have come whole, and whether more can come: not after the end of the connection or an error,
    /// which says why.
    pub(super) fn receive(&mut self) -> (Vec<Vec<u8>>, Result<(), String>) {
        let more = self.read();
        let mut messages = Vec::new();
        let mut taken = 0;
        loop {
            let rest = &self.arrived[taken..];
            let Some(prefix) = rest.first_chunk::<PREFIX>() else { break };
            let length = match message::length(*prefix) {
                Ok(length) => length,
                Err(why) => return (messages, Err(why)),
            };
            let Some(body) = rest.get(PREFIX..PREFIX + length) else { break };
            messages.push(body.to_vec());
            taken += PREFIX + length;
        }
        self.arrived.drain(..taken);
        (messages, more)
    }

    /// Reads for a bounded time, so that one that sends without end does not keep us from all others.
    fn read(&mut self) -> Result<(), String> {
        for _ in 0..16 {
            let begin = self.arrived.len();
            self.arrived.resize(begin + CHUNK, 0);
            let read = (&self.stream).read(&mut self.arrived[begin..]);
            self.arrived.truncate(begin + read.as_ref().copied().unwrap_or(0));
            match read {
                Ok(0) => return Err("the connection was closed".into()),
                Ok(count) if count < CHUNK => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// Sends what is left and closes the connection, but waits only so long for the other side to take it.
    pub(super) fn close(mut self, patience: Duration, epoll: &Epoll) {
        let until = Instant::now() + patience;
        while self.flush(epoll).is_ok() && !self.queue.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if !matches!(event::wait_one(self.stream.as_fd(), event::WRITE, Some(left)), Ok(true)) {
                break;
            }
        }
        self.leave(epoll);
    }

    /// Closes the connection as it is.
    pub(super) fn leave(self, epoll: &Epoll) {
        epoll.remove(self.stream.as_raw_fd());
    }
}
