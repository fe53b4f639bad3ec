//! Whoever connects to `mpiexec`: agents, and strangers that a bounded place is given for a bounded time.
use super::hello::{self, ANSWER, Nonce, Secret};
use super::token::Token;
use crate::sys::event::{self, Epoll};
use crate::sys::{self};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// How long a caller may take to prove itself.
const PATIENCE: Duration = Duration::from_secs(5);
/// Callers beyond the number of agents that may be there at the same time; of more, those leave that came first: an agent
/// answers at once.
const STRANGERS_MAX: usize = 64;
/// Most callers that are let in at once, so that they do not keep us from all others.
const AT_ONCE: usize = 16;

/// Somebody who has connected and has not proven anything yet.
struct Caller {
    stream: TcpStream,
    nonce: Nonce,
    answer: Vec<u8>,
    until: Instant,
}

/// Where agents connect, and who is there.
pub(super) struct Callers {
    listeners: Vec<TcpListener>,
    secret: Secret,
    waiting: BTreeMap<usize, Caller>,
    /// The number that the next caller gets.
    next: usize,
    most: usize,
    /// How many have given a wrong answer.
    pub(super) refused: usize,
}

/// Descriptors that callers of so many agents may take.
pub(super) fn descriptors(agents: usize) -> u64 {
    (agents + STRANGERS_MAX) as u64
}

impl Callers {
    /// Listens on these addresses for so many agents.
    pub(super) fn listen(
        addresses: &[IpAddr],
        agents: usize,
        secret: Secret,
        epoll: &Epoll,
    ) -> Result<Callers, String> {
        let mut listeners = Vec::new();
        for (which, address) in addresses.iter().enumerate() {
            let listen = || {
                let listener = TcpListener::bind((*address, 0))?;
                listener.set_nonblocking(true)?;
                epoll.add(listener.as_raw_fd(), Token::Listener(which).pack(), event::READ)?;
                Ok(listener)
            };
            let listener: io::Result<TcpListener> = listen();
            listeners.push(listener.map_err(|error| format!("cannot listen on {address}: {error}"))?);
        }
        let most = agents + STRANGERS_MAX;
        Ok(Callers { listeners, secret, waiting: BTreeMap::new(), next: 0, most, refused: 0 })
    }

    /// The address and port of a listener.
    pub(super) fn address(&self, which: usize) -> Result<SocketAddr, String> {
        self.listeners[which].local_addr().map_err(|error| format!("getsockname: {error}"))
    }

    /// Lets callers in.
    pub(super) fn on_listener(&mut self, which: usize, epoll: &Epoll) {
        for _ in 0..AT_ONCE {
            // An error concerns one caller, who will try again if it is an agent.
            let Some(Ok((stream, _))) = self.listeners.get(which).map(TcpListener::accept) else { return };
            // It may have left again.
            let _ = self.greet(stream, epoll);
        }
    }

    fn greet(&mut self, stream: TcpStream, epoll: &Epoll) -> io::Result<()> {
        while self.waiting.len() >= self.most {
            let (_, first) = self.waiting.pop_first().expect("there are some");
            epoll.remove(first.stream.as_raw_fd());
        }
        let mut nonce = Nonce::default();
        sys::random(&mut nonce)?;
        stream.set_nonblocking(true)?;
        // A new connection has room for so little.
        sys::send(stream.as_fd(), &hello::challenge(&nonce))?;
        let id = self.next;
        // A token has room for so many, and nobody stays for so long.
        self.next = (self.next + 1) & 0xffff_ffff;
        epoll.add(stream.as_raw_fd(), Token::Caller(id).pack(), event::READ)?;
        let caller = Caller { stream, nonce, answer: Vec::new(), until: Instant::now() + PATIENCE };
        self.waiting.insert(id, caller);
        Ok(())
    }

    /// Reads what a caller says; the host and the connection of one who has proven to be an agent.
    pub(super) fn on_caller(&mut self, id: usize, epoll: &Epoll) -> Option<(usize, TcpStream)> {
        let caller = self.waiting.get_mut(&id)?;
        let mut room = [0; ANSWER];
        // Not a byte more than the answer: what follows it is a message.
        let missing = ANSWER - caller.answer.len();
        match (&caller.stream).read(&mut room[..missing]) {
            Ok(count) if count > 0 => caller.answer.extend(&room[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return None;
            }
            _ => {
                self.dismiss(id, epoll);
                return None;
            }
        }
        let answer: [u8; ANSWER] = caller.answer.as_slice().try_into().ok()?;
        let checked = self.secret.check_answer(&caller.nonce, &answer);
        let caller = self.dismiss(id, epoll)?;
        let Some((host, proof)) = checked else {
            self.refused += 1;
            return None;
        };
        sys::send(caller.stream.as_fd(), &proof).ok()?;
        Some((host as usize, caller.stream))
    }

    fn dismiss(&mut self, id: usize, epoll: &Epoll) -> Option<Caller> {
        let caller = self.waiting.remove(&id)?;
        epoll.remove(caller.stream.as_raw_fd());
        Some(caller)
    }

    /// Sends those away who have taken too long; when to look again.
    pub(super) fn on_time(&mut self, now: Instant, epoll: &Epoll) {
        let late: Vec<usize> =
            self.waiting.iter().filter(|(_, c)| c.until <= now).map(|(id, _)| *id).collect();
        late.into_iter().for_each(|id| drop(self.dismiss(id, epoll)));
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        self.waiting.values().map(|caller| caller.until).min()
    }

    /// Whether nobody is let in any more.
    pub(super) fn is_closed(&self) -> bool {
        self.listeners.is_empty()
    }

    /// Lets nobody in any more.
    pub(super) fn close(&mut self, epoll: &Epoll) {
        self.listeners.drain(..).for_each(|listener| epoll.remove(listener.as_raw_fd()));
        let all: Vec<usize> = self.waiting.keys().copied().collect();
        all.into_iter().for_each(|id| drop(self.dismiss(id, epoll)));
    }
}
