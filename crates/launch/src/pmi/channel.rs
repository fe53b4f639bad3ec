//! The bytes between a rank and its launcher: a descriptor that was inherited, or a connection.
use super::client::Ender;
use super::line::LINE_MAX;
use crate::look;
use crate::sys::{self, event};
use crate::text::{Lines, quoted};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// How long a launcher may take for an answer that does not depend on other ranks. It is far above
/// what a loaded host needs, and an end to the wait for one that hangs.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A wait counts in steps of at most this: a process that was stopped, with the whole machine or alone, has not seen that
/// nobody answered.
const STEP: Duration = Duration::from_secs(1);
/// How long a connection to `PMI_PORT` may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// See the [module](self).
pub(super) struct Channel {
    server: Arc<File>,
    lines: Lines,
}

impl Channel {
    pub(super) fn over(server: OwnedFd) -> Channel {
        Channel { server: Arc::new(server.into()), lines: Lines::default() }
    }

    /// The descriptor that `PMI_FD` names.
    pub(super) fn inherited(fd: i32) -> Result<Channel, String> {
        sys::adopt(fd).map(Channel::over).map_err(|error| {
            format!(
                "PMI_FD={fd} is not an open descriptor ({error}): the launcher's environment is there \
                 but a program between it and this process closed its connection"
            )
        })
    }

    /// A connection to `PMI_PORT`.
    pub(super) fn connect(host: &str, port: u16) -> Result<Channel, String> {
        let stream = dial(host, port).map_err(|error| format!("PMI_PORT={host}:{port}: {error}"))?;
        // Requests are small and each is waited for: nothing can be gained by delaying them.
        stream.set_nodelay(true).map_err(|error| format!("PMI_PORT={host}:{port}: {error}"))?;
        Ok(Channel::over(stream.into()))
    }

    /// Sends all of it; the command is what errors name.
    pub(super) fn send(&mut self, command: &str, bytes: &[u8]) -> Result<(), String> {
        send(&self.server, command, bytes)
    }

    /// What ends the job by a message that has no answer. It may come between any two of the client's, each of which is
    /// sent as one.
    pub(super) fn ender(&self, message: impl Fn(i32) -> String + Send + Sync + 'static) -> Ender {
        let server = self.server.clone();
        Ender::by(move |code| send(&server, "abort", message(code).as_bytes()))
    }

    /// The next line, without its end.
    pub(super) fn line(&mut self, command: &str, timeout: Option<Duration>) -> Result<Vec<u8>, String> {
        let mut patience = timeout.map(Patience::of);
        loop {
            if let Some(line) = self.lines.next_line() {
                return Ok(line);
            }
            if self.lines.partial().len() > LINE_MAX {
                let begin = quoted(self.lines.partial());
                return Err(corrupt(command, &format!("the line is too long; it begins {begin}")));
            }
            self.read(command, &mut patience)?;
        }
    }

    /// The next bytes, so many.
    pub(super) fn exactly(
        &mut self,
        count: usize,
        command: &str,
        timeout: Option<Duration>,
    ) -> Result<Vec<u8>, String> {
        let mut patience = timeout.map(Patience::of);
        loop {
            if let Some(bytes) = self.lines.take(count) {
                return Ok(bytes);
            }
            self.read(command, &mut patience)?;
        }
    }

    /// Waits for something to read, and reads it.
    fn read(&mut self, command: &str, patience: &mut Option<Patience>) -> Result<(), String> {
        let mut buffer = [0u8; 4096];
        loop {
            let step = patience.as_ref().map(Patience::step);
            match event::wait_one(self.server.as_fd(), event::READ, step) {
                Ok(true) => break,
                Ok(false) => {
                    patience.iter_mut().try_for_each(Patience::spend).map_err(|why| lost(command, &why))?
                }
                Err(error) => return Err(lost(command, &error.to_string())),
            }
        }
        match (&*self.server).read(&mut buffer) {
            Ok(0) => return Err(lost(command, "it closed the connection")),
            Ok(count) => self.lines.push(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(lost(command, &error.to_string())),
        }
        Ok(())
    }
}

fn send(server: &File, command: &str, bytes: &[u8]) -> Result<(), String> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match sys::send(server.as_fd(), rest) {
            Ok(sent) => rest = &rest[sent..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                match event::wait_one(server.as_fd(), event::WRITE, Some(ANSWER_TIMEOUT)) {
                    Ok(true) => {}
                    _ => return Err(lost(command, "it does not read")),
                }
            }
            Err(error) => return Err(lost(command, &error.to_string())),
        }
    }
    Ok(())
}

/// How long an answer may take: all, and what is left of it.
struct Patience {
    all: Duration,
    left: Duration,
}

impl Patience {
    fn of(all: Duration) -> Patience {
        Patience { all, left: all }
    }

    /// How long to wait at once.
    fn step(&self) -> Duration {
        self.left.min(STEP)
    }

    /// A step was waited in vain; an error at the last.
    fn spend(&mut self) -> Result<(), String> {
        self.left -= self.step();
        if !self.left.is_zero() {
            return Ok(());
        }
        let parent = std::os::unix::process::parent_id() as i32;
        let (seconds, state) = (self.all.as_secs_f64(), look::activity(parent));
        Err(format!("no answer in {seconds} s; process {parent}, which has started this one, is {state}"))
    }
}

pub(super) fn corrupt(command: &str, why: &str) -> String {
    format!("PMI {command}: the launcher's answer is corrupt: {why}")
}

pub(super) fn lost(command: &str, why: &str) -> String {
    format!("PMI {command}: the launcher is gone or does not answer: {why}")
}

/// Connects to the first address that works. Launchers announce the name of their host; where no
/// name service knows it, the name of this host still means this host.
fn dial(host: &str, port: u16) -> Result<TcpStream, String> {
    let found = match (host, port).to_socket_addrs() {
        Ok(found) => found.collect(),
        Err(_) if host == sys::hostname() => vec![std::net::SocketAddr::from(([127, 0, 0, 1], port))],
        Err(error) => return Err(format!("the name cannot be resolved: {error}")),
    };
    let mut last = String::from("the name has no address");
    for address in found {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_says_nothing_is_waited_for_so_long_and_described() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let why = Channel::over(ours.into()).line("init", Some(Duration::from_millis(20))).unwrap_err();
        let parent = std::os::unix::process::parent_id();
        assert!(why.contains("PMI init") && why.contains("no answer in 0.02 s"), "{why}");
        assert!(why.contains(&format!("process {parent}, which has started this one, is ")), "{why}");
    }

    #[test]
    fn a_wait_counts_no_more_than_its_step() {
        let mut patience = Patience::of(Duration::from_millis(2500));
        // However long each took.
        assert_eq!([patience.spend(), patience.spend()], [Ok(()), Ok(())]);
        assert_eq!(patience.step(), Duration::from_millis(500));
        assert!(patience.spend().is_err());
    }
}
