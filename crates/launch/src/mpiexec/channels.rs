//! The two channels of each rank: PMI-1 and reports.
use super::job::{Job, exit_code};
use crate::pmi::line::{self, Malformed};
use crate::pmi::server::Action;
use crate::report::{self, Line};
use crate::sys::{self, event::Epoll, packet};
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
}

impl Job {
    /// Reads what has arrived on the PMI channel and answers it.
    pub(super) fn on_pmi(&mut self, rank: usize) {
        read_lines(&self.epoll, &mut self.ranks[rank].pmi);
        while let Some(line) = self.ranks[rank].pmi.lines.next_line() {
            match self.server.on_line(rank, &line) {
                Ok(actions) => actions.into_iter().for_each(|action| self.act(rank, action)),
                Err(why) => return self.distrust(rank, "PMI", &why),
            }
        }
        if self.ranks[rank].pmi.lines.partial().len() > line::LINE_MAX {
            self.distrust(rank, "PMI", &Malformed::TooLong.to_string());
        }
    }

    fn act(&mut self, from: usize, action: Action) {
        match action {
            Action::Abort(code) => {
                let program = &self.ranks[from].program;
                let text = format!("rank {from} ({program}) called MPI_Abort with code {code}");
                self.end(exit_code(code), Some(text));
            }
            Action::Send(to, line) => {
                let Some(stream) = &self.ranks[to].pmi.stream else { return };
                match sys::send(stream.as_fd(), line.as_bytes()) {
                    Ok(count) if count == line.len() => {}
                    // Only a rank that asks and does not read fills its channel.
                    Ok(_) => self.distrust(to, "PMI", "it does not read its answers"),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        self.distrust(to, "PMI", "it does not read its answers");
                    }
                    // It has ended: that is seen, and said, elsewhere.
                    Err(_) => {}
                }
            }
        }
    }

    /// Reads what has arrived on the control channel.
    pub(super) fn on_control(&mut self, rank: usize) {
        // One byte more than a line, so that one that is too long is seen to be.
        let mut buffer = vec![0u8; report::LINE_MAX + 1];
        while let Some(socket) = &self.ranks[rank].control {
            let packet = match packet::receive(socket.as_fd(), &mut buffer) {
                Ok(packet) if packet.len > 0 => packet,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                _ => return self.close_control(rank),
            };
            match Line::decode(&buffer[..packet.len]) {
                Ok(Line::Ready) => self.ranks[rank].ready = Some(packet.sender),
                Ok(Line::Fatal { code, text }) => self.end_fatal(code, &text),
                Ok(answer) => self.on_answer(rank, answer),
                Err(malformed) => return self.distrust(rank, "control", &malformed.to_string()),
            }
        }
    }

    fn close_control(&mut self, rank: usize) {
        if let Some(socket) = self.ranks[rank].control.take() {
            self.epoll.remove(socket.as_raw_fd());
        }
        self.on_silence(rank);
    }

    /// Ends the job because of a line that no rank should have sent.
    fn distrust(&mut self, rank: usize, channel: &str, why: &str) {
        if let Some(stream) = self.ranks[rank].pmi.stream.take() {
            self.epoll.remove(stream.as_raw_fd());
        }
        self.close_control(rank);
        let program = &self.ranks[rank].program;
        let text = format!("rank {rank} ({program}) sent a malformed line on the {channel} channel: {why}");
        self.end(1, Some(text));
    }
}

/// Reads all there is; at the end, or at an error, the channel is closed.
fn read_lines(epoll: &Epoll, channel: &mut Channel) {
    let mut buffer = [0u8; 4096];
    let Some(stream) = &mut channel.stream else { return };
    loop {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => channel.lines.push(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => break,
        }
        if channel.lines.partial().len() > line::LINE_MAX {
            return;
        }
    }
    epoll.remove(stream.as_raw_fd());
    channel.stream = None;
}
