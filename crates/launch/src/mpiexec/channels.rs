//! The channels of each rank: PMI-1 and reports.
use super::job::{Job, exit_code};
use super::message::Order;
use crate::pmi::line;
use crate::pmi::server::Action;
use crate::report::Line;
use crate::sys::{self, event::Epoll};
use crate::text::Lines;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

/// The channel to a rank on which its lines of PMI arrive.
pub(super) struct Channel {
    stream: Option<UnixStream>,
    lines: Lines,
}

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Channel {
        Channel { stream: Some(stream), lines: Lines::default() }
    }

    /// Reads all there is; at the end, or at an error, the channel is closed. A line that is longer than any may
    /// be is handed out as far as it came.
    pub(super) fn read(&mut self, epoll: &Epoll) -> Vec<Vec<u8>> {
        let mut buffer = [0u8; 4096];
        let too_long = |lines: &Lines| lines.partial().len() > line::LINE_MAX;
        let mut open = self.stream.is_some();
        while let (true, Some(stream)) = (open && !too_long(&self.lines), &mut self.stream) {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => self.lines.push(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => open = false,
            }
        }
        if !open {
            self.close(epoll);
        }
        let mut lines: Vec<Vec<u8>> = std::iter::from_fn(|| self.lines.next_line()).collect();
        if too_long(&self.lines) {
            lines.push(self.lines.partial().to_vec());
            self.lines = Lines::default();
        }
        lines
    }

    /// Sends a line; false if the rank does not read its answers, as only one that asks and does not read does.
    pub(super) fn send(&self, line: &str) -> bool {
        let Some(stream) = &self.stream else { return true };
        match sys::send(stream.as_fd(), line.as_bytes()) {
            Ok(count) => count == line.len(),
            // Anything else says that it has ended: that is seen, and said, elsewhere.
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    pub(super) fn close(&mut self, epoll: &Epoll) {
        if let Some(stream) = self.stream.take() {
            epoll.remove(stream.as_raw_fd());
        }
    }
}

impl Job {
    /// Answers a line of PMI.
    pub(super) fn on_pmi(&mut self, rank: usize, line: &[u8]) {
        if self.ranks[rank].distrusted {
            return;
        }
        match self.servers.on_line(rank, line) {
            Ok(actions) => actions.into_iter().for_each(|action| self.act(rank, action)),
            Err(why) => self.distrust(rank, "PMI", &why),
        }
    }

    fn act(&mut self, from: usize, action: Action) {
        match action {
            Action::Abort(code) => {
                let text = format!("{} called MPI_Abort with code {code}", self.known_as(from));
                self.end(exit_code(code), Some(text));
            }
            Action::Send(rank, line) => self.order(rank, Order::Pmi { rank, line }),
            Action::Spawn(by, request) => self.spawn(by, request),
        }
    }

    /// Takes a packet of the control channel.
    pub(super) fn on_control(&mut self, rank: usize, packet: &[u8]) {
        if self.ranks[rank].distrusted {
            return;
        }
        match Line::decode(packet) {
            Ok(Line::Ready) => self.ranks[rank].ready = true,
            Ok(Line::Fatal { code, text }) => self.end_fatal(code, &text),
            Ok(answer) => self.on_answer(rank, answer),
            Err(malformed) => self.distrust(rank, "control", &malformed.to_string()),
        }
    }

    /// Ends the job because of a line that no rank should have sent.
    pub(super) fn distrust(&mut self, rank: usize, channel: &str, why: &str) {
        self.ranks[rank].distrusted = true;
        self.order(rank, Order::Drop { rank });
        self.on_silence(rank);
        let text = format!("{} sent a malformed line on the {channel} channel: {why}", self.known_as(rank));
        self.end(1, Some(text));
    }
}
