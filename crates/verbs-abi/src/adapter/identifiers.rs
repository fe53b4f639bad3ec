//! Identifiers of connections, as librdmacm has them: who listens at a port of TCP, who asks there, and what is told of it.
//!
//! A connection is iWARP's (RFC 5044, RFC 6581) at the port that the program names, and its private data are the program's, so
//! that the other end may be any adapter for iWARP. Datagrams have no connection: who asks learns by the same two frames
//! which queue pair answers at a port, and under which key.
//!
//! ```text
//! Apart ─▶ Bound ─▶ Listening ──(somebody connects)──▶ another: Arriving ─▶ Asked ─┬▶ Connected ─▶ Parted
//!   └────────┴────▶ Asking ────────────────────────────────────────────────────────┘
//! ```

use super::meeting::asks_for_crcs;
use super::number;
use super::queues::Channel;
use super::{Adapter, CALLS, STRANGERS, Transport, constants::*};
use fabric::Table;
use rnic::driver::{Frames, hear, prepare};
use rnic::stack::{Agreed, Proposal, Refusal, Side, Start};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};

/// Who has connected and waits to be let in, at most.
const BACKLOG_MAX: i32 = 1024;
/// In front of private data: who asks wants a queue pair for datagrams, or is told of one.
const DATAGRAMS: [u8; 4] = *b"TVu\x01";
/// Most private data of the program's: it says how many in eight bits.
const PRIVATE_MAX: usize = u8::MAX as usize;

/// `enum rdma_cm_event_type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum EventType {
    AddressResolved = 0,
    RouteResolved = 2,
    ConnectRequest = 4,
    ConnectError = 6,
    Unreachable = 7,
    Rejected = 8,
    Established = 9,
    Disconnected = 10,
}

/// Where datagrams for a peer go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The queue pair.
    pub number: u32,
    /// Its key.
    pub key: u32,
    /// Its address.
    pub at: IpAddr,
}

impl Answer {
    /// As private data, with those of the program.
    pub fn encode(self, private: &[u8]) -> Vec<u8> {
        let mut out = DATAGRAMS.to_vec();
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(&self.key.to_be_bytes());
        out.extend_from_slice(&number::gid(self.at));
        out.extend_from_slice(private);
        out
    }

    /// From private data, with those of the program behind it; nothing if they are not of this kind.
    pub fn decode(private: &[u8]) -> Option<(Answer, &[u8])> {
        let (number, rest) = private.strip_prefix(&DATAGRAMS)?.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (gid, rest) = rest.split_first_chunk()?;
        let (number, key) = (u32::from_be_bytes(*number), u32::from_be_bytes(*key));
        Some((Answer { number, key, at: number::address(gid) }, rest))
    }
}

/// Something to be told to the program.
#[derive(Clone, Debug)]
pub struct News {
    /// The identifier.
    pub id: u32,
    /// What.
    pub kind: EventType,
    /// An error number below zero, or zero.
    pub status: i32,
    /// The peer's private data.
    pub private: Vec<u8>,
    /// The peer's requests at a time that this side is to keep, and the other way round.
    pub limits: (u8, u8),
    /// Where datagrams go.
    pub answer: Option<Answer>,
}

impl News {
    /// Of this identifier, without anything beside it.
    pub fn new(id: u32, kind: EventType, status: i32) -> News {
        News { id, kind, status, private: Vec::new(), limits: (0, 0), answer: None }
    }
}

/// How far an identifier has come.
#[derive(Debug, Default)]
pub enum Phase {
    /// Not begun.
    #[default]
    Apart,
    /// It has an address and a port; nobody is let in.
    Bound(TcpListener),
    /// Others may ask.
    Listening(TcpListener),
    /// Somebody has connected to this listener, and has not said what it wants.
    Arriving(u32, Box<Frames>),
    /// Somebody has asked this listener, and waits for the program's answer.
    Asked(u32, Box<Frames>, Box<Start>),
    /// This side has asked.
    Asking(Box<Frames>, Box<Proposal>),
    /// There is a connection, or of datagrams an answer.
    Connected,
    /// It has ended.
    Parted,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Identifier {
    /// What the program knows it by, once it does.
    pub address: usize,
    /// Where its events are told.
    pub channel: u32,
    /// Whether it is for datagrams.
    pub is_datagram: bool,
    /// See [`Phase`].
    pub phase: Phase,
    /// Its address.
    pub at: Option<SocketAddr>,
    /// Its peer's.
    pub peer: Option<SocketAddr>,
    /// Its queue pair.
    pub pair: Option<u32>,
    /// As [`News::limits`] of who has asked.
    pub limits: (u8, u8),
}

/// The identifiers of a process, and the channels of their events.
#[derive(Debug, Default)]
pub struct Identifiers {
    /// Identifiers.
    pub all: Table<Identifier>,
    /// Channels.
    pub channels: Table<Channel<News>>,
}

impl Identifiers {
    /// Tells the program.
    pub fn tell(&mut self, news: News) {
        let Some(id) = self.all.get(news.id) else { return };
        let channel = id.channel;
        if let Some(channel) = self.channels.get(channel) {
            channel.tell(news);
        }
    }

    /// The connection of a queue pair has ended.
    pub fn parted(&mut self, id: u32) {
        if let Some(known) = self.all.get(id)
            && matches!(known.phase, Phase::Connected)
        {
            known.phase = Phase::Parted;
            self.tell(News::new(id, EventType::Disconnected, 0));
        }
    }

    /// Those of a listener whom the program does not know yet.
    fn callers(&mut self, listener: u32) -> Vec<u32> {
        let of = |phase: &Phase| match phase {
            Phase::Arriving(of, _) | Phase::Asked(of, _, _) => *of == listener,
            _ => false,
        };
        self.all.iter().filter(|(_, id)| id.address == 0 && of(&id.phase)).map(|(number, _)| number).collect()
    }

    /// Gives up an identifier, with what was to be told of it and who waits for its answer.
    pub fn remove(&mut self, id: u32) -> Option<Identifier> {
        for caller in self.callers(id) {
            self.all.remove(caller);
            self.forget(caller);
        }
        self.forget(id);
        self.all.remove(id)
    }

    fn forget(&mut self, id: u32) {
        self.channels.iter_mut().for_each(|channel| channel.ready.retain(|news| news.id != id));
    }
}

fn proposal(limits: (u8, u8), private: Vec<u8>) -> Proposal {
    Proposal {
        crc: asks_for_crcs(),
        ird: limits.0.into(),
        ord: limits.1.into(),
        private,
        ..Proposal::default()
    }
}

/// What a connection that could not be made is told as (`drivers/infiniband/core/cma.c` does so with iWARP's).
fn kind_of(error: ErrorKind) -> (EventType, i32) {
    match error {
        ErrorKind::ConnectionRefused => (EventType::Rejected, -libc::ECONNREFUSED),
        ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => (EventType::Rejected, -libc::ECONNRESET),
        ErrorKind::TimedOut => (EventType::Unreachable, -libc::ETIMEDOUT),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            (EventType::Unreachable, -libc::EHOSTUNREACH)
        }
        _ => (EventType::ConnectError, -libc::EPROTO),
    }
}

impl Adapter {
    /// Takes a port for an identifier; which it is.
    pub fn bind(&mut self, id: u32, at: SocketAddr) -> std::io::Result<SocketAddr> {
        use rustix::net::{self, SocketFlags, SocketType};
        let known = self.identifiers.all.get(id).ok_or(ErrorKind::InvalidInput)?;
        if !matches!(known.phase, Phase::Apart) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let family = if at.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &at)?;
        let socket = TcpListener::from(socket);
        let at = socket.local_addr()?;
        (known.phase, known.at) = (Phase::Bound(socket), Some(at));
        Ok(at)
    }

    /// Others may ask at the port of an identifier from now on.
    pub fn listen(&mut self, id: u32, backlog: i32) -> std::io::Result<()> {
        let known = self.identifiers.all.get(id).ok_or(ErrorKind::InvalidInput)?;
        let Phase::Bound(socket) = &known.phase else { return Err(ErrorKind::InvalidInput.into()) };
        // As the kernel's RDMA CM has it: whoever names none, or more, gets as many.
        let backlog = if (1..BACKLOG_MAX).contains(&backlog) { backlog } else { BACKLOG_MAX };
        rustix::net::listen(socket, backlog)?;
        hear(&self.epoll, socket, CALLS + u64::from(id), false, false)?;
        if let Phase::Bound(socket) = std::mem::take(&mut known.phase) {
            known.phase = Phase::Listening(socket);
        }
        Ok(())
    }

    /// Asks the peer of an identifier for a connection.
    pub fn ask(&mut self, id: u32, limits: (u8, u8), private: &[u8]) -> std::io::Result<()> {
        let known = self.identifiers.all.get(id).ok_or(ErrorKind::InvalidInput)?;
        let (Some(peer), Phase::Apart | Phase::Bound(_)) = (known.peer, &known.phase) else {
            return Err(ErrorKind::InvalidInput.into());
        };
        let mut said = if known.is_datagram { DATAGRAMS.to_vec() } else { Vec::new() };
        said.extend_from_slice(private);
        let proposal = proposal(limits, said);
        // The socket that holds the port has to make room for one that connects from there.
        known.phase = Phase::Apart;
        let socket = match rnic::driver::connect_from(known.at, peer) {
            Ok(socket) => socket,
            Err(error) => {
                let (kind, status) = kind_of(error.kind());
                self.identifiers.tell(News::new(id, kind, status));
                return Ok(());
            }
        };
        known.at = socket.local_addr().ok().or(known.at);
        let frames = Frames::new(socket, proposal.request());
        hear(&self.epoll, &frames.socket, CALLS + u64::from(id), true, false)?;
        known.phase = Phase::Asking(Box::new(frames), Box::new(proposal));
        self.called(id);
        Ok(())
    }

    /// Looks at the socket of an identifier.
    pub fn called(&mut self, id: u32) {
        let Some(known) = self.identifiers.all.get(id) else { return };
        match std::mem::take(&mut known.phase) {
            Phase::Listening(socket) => {
                known.phase = Phase::Listening(socket);
                self.let_in(id);
            }
            Phase::Arriving(listener, frames) => self.arriving(id, listener, frames),
            Phase::Asking(frames, proposal) => self.asking(id, frames, proposal),
            other => known.phase = other,
        }
    }

    /// Lets in who has connected to a listener.
    fn let_in(&mut self, listener: u32) {
        for caller in self.identifiers.callers(listener) {
            let is_late =
                |id: &mut Identifier| matches!(&id.phase, Phase::Arriving(_, frames) if frames.is_late());
            if self.identifiers.all.get(caller).is_some_and(is_late) {
                self.identifiers.all.remove(caller);
            }
        }
        loop {
            let Some(known) = self.identifiers.all.get(listener) else { return };
            let Phase::Listening(socket) = &known.phase else { return };
            let (channel, is_datagram) = (known.channel, known.is_datagram);
            let Ok((socket, from)) = socket.accept() else { return };
            // More than that wait for their turn no longer: closed.
            if self.identifiers.callers(listener).len() >= STRANGERS || prepare(&socket).is_err() {
                continue;
            }
            let (at, peer) = (socket.local_addr().ok(), Some(from));
            let frames = Box::new(Frames::new(socket, Vec::new()));
            let caller = Identifier { channel, is_datagram, at, peer, ..Identifier::default() };
            let id = self.identifiers.all.insert(caller);
            if hear(&self.epoll, &frames.socket, CALLS + u64::from(id), false, false).is_ok() {
                self.arriving(id, listener, frames);
            } else {
                self.identifiers.all.remove(id);
            }
        }
    }

    fn arriving(&mut self, id: u32, listener: u32, mut frames: Box<Frames>) {
        let Some(known) = self.identifiers.all.get(id) else { return };
        match frames.look(Side::Request) {
            Err(_) => drop(self.identifiers.all.remove(id)),
            Ok(None) => known.phase = Phase::Arriving(listener, frames),
            Ok(Some(start)) => {
                let _ = rustix::event::epoll::delete(&self.epoll, &frames.socket);
                let stripped = start.private.strip_prefix(&DATAGRAMS);
                if stripped.is_some() != known.is_datagram {
                    frames.answer(Proposal::reject(&start, &[]));
                    self.identifiers.all.remove(id);
                    return;
                }
                let mut news = News::new(id, EventType::ConnectRequest, 0);
                news.private = stripped.unwrap_or(&start.private).to_vec();
                news.private.truncate(PRIVATE_MAX);
                let most = |limit: u16| limit.min(u8::MAX.into()) as u8;
                news.limits = start.enhanced.map_or((0, 0), |theirs| (most(theirs.ord), most(theirs.ird)));
                known.limits = news.limits;
                known.phase = Phase::Asked(listener, frames, Box::new(start));
                self.identifiers.tell(news);
            }
        }
    }

    fn asking(&mut self, id: u32, mut frames: Box<Frames>, proposal: Box<Proposal>) {
        let Some(known) = self.identifiers.all.get(id) else { return };
        let reply = match frames.look(Side::Reply) {
            Ok(None) => {
                let _ = hear(&self.epoll, &frames.socket, CALLS + u64::from(id), frames.wants_room(), true);
                known.phase = Phase::Asking(frames, proposal);
                return;
            }
            Ok(Some(reply)) => reply,
            Err(error) => {
                let (kind, status) = kind_of(error.kind());
                return self.identifiers.tell(News::new(id, kind, status));
            }
        };
        let agreed = proposal.agree(&reply);
        let mut news = match &agreed {
            Ok(_) => News::new(id, EventType::Established, 0),
            Err(Refusal::Rejected(_)) => News::new(id, EventType::Rejected, -libc::ECONNREFUSED),
            Err(Refusal::Unfit(_)) => News::new(id, EventType::ConnectError, -libc::EPROTO),
        };
        news.private = reply.private;
        match agreed {
            Ok(_) if known.is_datagram => match Answer::decode(&news.private) {
                Some((answer, private)) => (news.answer, news.private) = (Some(answer), private.to_vec()),
                None => (news.kind, news.status) = (EventType::Unreachable, -libc::EPROTO),
            },
            Ok(agreed) => {
                news.limits = (agreed.ird as u8, agreed.ord as u8);
                self.joined(id, *frames, agreed);
            }
            Err(_) => {}
        }
        news.private.truncate(PRIVATE_MAX);
        if let Some(known) = self.identifiers.all.get(id)
            && news.kind == EventType::Established
        {
            known.phase = Phase::Connected;
        }
        self.identifiers.tell(news);
    }

    /// The queue pair of an identifier has its connection.
    fn joined(&mut self, id: u32, mut frames: Frames, agreed: Agreed) {
        let Some(known) = self.identifiers.all.get(id) else { return };
        let Some(handle) = known.pair else { return };
        known.phase = Phase::Connected;
        let early = frames.early();
        let Some(pair) = self.pairs.get(handle) else { return };
        pair.identifier = Some(id);
        pair.state = STATE_RTS;
        let name = u64::from(handle);
        let _ = hear(&self.epoll, &frames.socket, name, false, true)
            .or_else(|_| hear(&self.epoll, &frames.socket, name, false, false));
        pair.connect(frames.socket, agreed, &early, false);
        self.serve(handle);
    }

    /// Answers who has asked with a connection; an error number if that does not go.
    pub fn accept_call(
        &mut self,
        id: u32,
        limits: (u8, u8),
        private: &[u8],
        answer: Option<Answer>,
    ) -> Result<(), i32> {
        let known = self.identifiers.all.get(id).ok_or(libc::EINVAL)?;
        let has_pair = known.pair.is_some() || known.is_datagram && answer.is_some();
        if !matches!(known.phase, Phase::Asked(..)) || !has_pair {
            return Err(libc::EINVAL);
        }
        let Phase::Asked(_, mut frames, start) = std::mem::take(&mut known.phase) else {
            return Err(libc::EINVAL);
        };
        let said = answer.map_or_else(|| private.to_vec(), |answer| answer.encode(private));
        let (reply, agreed) = proposal(limits, Vec::new()).reply(&start, &said);
        if !frames.answer(reply) {
            known.phase = Phase::Parted;
            return Err(libc::ECONNRESET);
        }
        known.phase = Phase::Connected;
        if answer.is_none() {
            self.joined(id, *frames, agreed);
            self.identifiers.tell(News::new(id, EventType::Established, 0));
        }
        Ok(())
    }

    /// Refuses who has asked.
    pub fn reject_call(&mut self, id: u32, private: &[u8]) -> Result<(), i32> {
        let known = self.identifiers.all.get(id).ok_or(libc::EINVAL)?;
        match std::mem::take(&mut known.phase) {
            Phase::Asked(_, mut frames, start) => {
                frames.answer(Proposal::reject(&start, private));
                known.phase = Phase::Parted;
                Ok(())
            }
            other => {
                known.phase = other;
                Err(libc::EINVAL)
            }
        }
    }

    /// Ends the connection of an identifier; what was posted and has not left is flushed.
    pub fn disconnect(&mut self, id: u32) -> Result<(), i32> {
        let known = self.identifiers.all.get(id).ok_or(libc::EINVAL)?;
        match (&known.phase, known.pair) {
            (Phase::Connected, Some(handle)) if !known.is_datagram => {
                self.send(handle);
                self.fail(handle, WC_WR_FLUSH_ERR);
                self.identifiers.parted(id);
                Ok(())
            }
            (Phase::Parted, _) => Ok(()),
            _ => Err(libc::EINVAL),
        }
    }

    /// The queue pair of a number, and whether it is one for datagrams.
    pub fn pair_of(&mut self, number: u32) -> Option<(u32, bool)> {
        let (handle, pair) = self.pairs.iter().find(|(_, pair)| pair.number == number)?;
        Some((handle, matches!(pair.transport, Transport::Datagrams(_))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_back_and_nothing_else_is_taken() {
        let answer = Answer { number: 0x12_34ff, key: 0x0123_4567, at: "10.1.2.3".parse().unwrap() };
        let private = answer.encode(b"and more");
        assert_eq!(Answer::decode(&private), Some((answer, &b"and more"[..])));
        for len in 0..28 {
            assert_eq!(Answer::decode(&private[..len]), None, "{len}");
        }
        assert_eq!(Answer::decode(&[7; 40]), None);
    }
}
