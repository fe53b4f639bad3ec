//! A port for datagrams, with a socket for all peers and, where one peer is talked to for some time, one that is connected to it.
//!
//! From a socket that is connected the kernel sends without looking for the way each time, and knows whose it is that comes. What the peer
//! sends goes there from then on, what others send to the first one. Both have the same port: the kernel lets sockets
//! share one that say so (SO_REUSEPORT) and have the same owner, and both say so for the moment of the second's birth alone.

use super::options;
use super::socket::hear;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, recvfrom, send, sendto, sockopt};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Datagrams to one peer in a row for which a socket is connected; and from it, behind which others are only asked now and then.
const ROW: u32 = 64;

/// Datagrams that may have come by the first socket before the second was there, and are read first.
const BEHIND: u32 = 256;

/// See the [module](self).
#[derive(Debug)]
pub struct Talk {
    all: UdpSocket,
    one: Option<One>,
    /// Who was sent to last, and how often in a row.
    last: Option<SocketAddr>,
    row: u32,
    ears: Option<Ears>,
    /// Length at which datagrams are cut, and whether they may be joined ([`options`]).
    cuts_at: usize,
    joins: bool,
}

/// A socket that is connected.
#[derive(Debug)]
struct One {
    socket: OwnedFd,
    with: SocketAddr,
    /// The other one may have what has come before: so many datagrams of it are read first.
    behind: u32,
    /// Datagrams that have come there since one came by the other.
    alone: u32,
    /// It is the other one's turn.
    yields: bool,
}

/// Who tells of what comes, by which name, and whether it does now.
#[derive(Debug)]
struct Ears {
    epoll: Arc<OwnedFd>,
    name: u64,
    are_open: bool,
}

impl Talk {
    /// At this socket's port; it does not block.
    pub fn new(all: UdpSocket) -> Talk {
        Talk { all, one: None, last: None, row: 0, ears: None, cuts_at: 0, joins: false }
    }

    /// The same; datagrams of one sender may be handed out together, where the kernel does that.
    pub fn joining(all: UdpSocket) -> Talk {
        let joins = options::join(&all);
        Talk { joins, ..Talk::new(all) }
    }

    /// See [`options::cut`].
    pub fn cut(&mut self, len: usize) -> bool {
        self.cuts_at = len;
        options::cut(&self.all, len) && self.one.as_ref().is_none_or(|one| options::cut(&one.socket, len))
    }

    /// The socket by which this peer is reached.
    pub fn way_to(&self, to: SocketAddr) -> BorrowedFd<'_> {
        self.connected_to(to).unwrap_or(self.all.as_fd())
    }

    /// The socket that is connected to this peer, if there is one.
    fn connected_to(&self, to: SocketAddr) -> Option<BorrowedFd<'_>> {
        self.one.as_ref().filter(|one| one.with == to).map(|one| one.socket.as_fd())
    }

    /// Has the kernel tell there of what comes, by this name.
    pub fn heard_by(&mut self, epoll: Arc<OwnedFd>, name: u64) -> std::io::Result<()> {
        hear(&epoll, &self.all, name, false, false)?;
        self.ears = Some(Ears { epoll, name, are_open: true });
        Ok(())
    }

    /// Has the kernel tell of what comes, or not.
    pub fn listen(&mut self, listens: bool) {
        let Some(Ears { epoll, name, are_open }) = &mut self.ears else { return };
        if *are_open == listens {
            return;
        }
        *are_open = listens;
        let sockets = [Some(self.all.as_fd()), self.one.as_ref().map(|one| one.socket.as_fd())];
        for socket in sockets.into_iter().flatten() {
            // Nothing can be wrong with a socket of one's own, but for want of memory: then what comes is found by looking.
            let _ = match listens {
                true => hear(epoll, socket, *name, false, false),
                false => epoll::delete(&**epoll, socket).map_err(Into::into),
            };
        }
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] where there is no room, else what the kernel says.
    pub fn send(&mut self, bytes: &[u8], to: SocketAddr) -> Result<(), Errno> {
        self.speaks_to(to);
        if let Some(one) = self.connected_to(to) {
            match send(one, bytes, SendFlags::NOSIGNAL) {
                // That nobody was there is of a datagram before. To others nobody says so, either.
                Err(Errno::CONNREFUSED) => {}
                result => return result.map(drop),
            }
        }
        sendto(&self.all, bytes, SendFlags::NOSIGNAL, &to).map(drop)
    }

    /// Counts what is sent to the same peer in a row, and connects when that is much.
    fn speaks_to(&mut self, to: SocketAddr) {
        if self.last == Some(to) {
            self.row = self.row.saturating_add(1);
        } else {
            (self.last, self.row) = (Some(to), 0);
        }
        if self.row == ROW && self.one.as_ref().is_none_or(|one| one.with != to) {
            self.connect(to);
        }
    }

    /// Connects to a peer. Without that all goes on as before.
    #[cold]
    fn connect(&mut self, with: SocketAddr) {
        if let Some(one) = &mut self.one {
            // What has come over it can still be read.
            if net::connect(&one.socket, &with).is_ok() {
                (one.with, one.behind, one.alone) = (with, BEHIND, 0);
            }
            return;
        }
        let Ok(socket) = self.at_the_same_port(with) else { return };
        if let Some(Ears { epoll, name, are_open: true }) = &self.ears
            && hear(epoll, &socket, *name, false, false).is_err()
        {
            return;
        }
        self.one = Some(One { socket, with, behind: BEHIND, alone: 0, yields: false });
    }

    fn at_the_same_port(&self, with: SocketAddr) -> std::io::Result<OwnedFd> {
        let own = self.all.local_addr()?;
        let family = if own.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
        let flags = net::SocketFlags::NONBLOCK | net::SocketFlags::CLOEXEC;
        let socket = net::socket_with(family, net::SocketType::DGRAM, flags, None)?;
        sockopt::set_socket_recv_buffer_size(&socket, sockopt::socket_recv_buffer_size(&self.all)? / 2)?;
        sockopt::set_socket_send_buffer_size(&socket, sockopt::socket_send_buffer_size(&self.all)? / 2)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        sockopt::set_socket_reuseport(&self.all, true)?;
        let bound = net::bind(&socket, &own);
        // From here on nobody else can have it.
        sockopt::set_socket_reuseport(&self.all, false)?;
        sockopt::set_socket_reuseport(&socket, false)?;
        bound?;
        if self.joins {
            options::join(&socket);
        }
        if self.cuts_at > 0 && !options::cut(&socket, self.cuts_at) {
            return Err(ErrorKind::Unsupported.into());
        }
        net::connect(&socket, &with)?;
        Ok(socket)
    }

    /// Takes in a datagram; its length, and whose it is. While the peer that is talked to alone sends anything, others are only asked now and
    /// then, and if `asks_all`; else by turns, so that nobody waits for those who send without a pause.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] where there is none, else what the kernel says.
    pub fn receive(&mut self, room: &mut [u8], asks_all: bool) -> Result<(usize, SocketAddr), Errno> {
        let Some(one) = &mut self.one else { return received(&self.all, room) };
        let is_alone = one.alone >= ROW;
        one.yields = one.behind > 0 || if is_alone { one.alone % ROW == 0 } else { !one.yields };
        let both = [one.socket.as_fd(), self.all.as_fd()];
        let first = usize::from(one.yields);
        let mut of = first;
        let mut result = received(both[of], room);
        if result == Err(Errno::AGAIN) && (!is_alone || asks_all || one.yields) {
            if one.yields {
                one.behind = 0;
            }
            of = 1 - first;
            result = received(both[of], room);
        }
        match (of, result.is_ok()) {
            (0, true) => one.alone = one.alone.saturating_add(1),
            (_, true) => (one.alone, one.behind) = (0, one.behind.saturating_sub(1)),
            _ => {}
        }
        result
    }
}

/// Takes in a datagram. That nobody was there who was sent something is not told.
fn received(socket: impl AsFd + Copy, room: &mut [u8]) -> Result<(usize, SocketAddr), Errno> {
    loop {
        match recvfrom(socket, &mut *room, RecvFlags::empty()) {
            Ok((_, len, Some(from))) => {
                if let Ok(from) = SocketAddr::try_from(from) {
                    return Ok((len, from));
                }
            }
            Ok((_, _, None)) | Err(Errno::CONNREFUSED) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk() -> (Talk, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let at = socket.local_addr().unwrap();
        (Talk::new(socket), at)
    }

    /// All that has come: the first byte of each, and whose it is.
    fn all(talk: &mut Talk) -> Vec<(u8, SocketAddr)> {
        let mut room = [0; 64];
        let next = || talk.receive(&mut room, true).ok().map(|(_, from)| (room[0], from));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn who_is_talked_to_for_long_gets_a_socket_and_everybody_is_heard_in_order() {
        let ((mut a, at_a), (mut b, at_b), (mut c, at_c)) = (talk(), talk(), talk());
        for n in 0..200 {
            a.send(&[n], at_b).unwrap();
            b.send(&[n], at_a).unwrap();
        }
        assert_eq!(a.one.as_ref().map(|one| one.with), Some(at_b));
        c.send(&[7], at_a).unwrap();
        let (of_c, of_b): (Vec<_>, Vec<_>) = all(&mut a).into_iter().partition(|(_, from)| *from == at_c);
        assert_eq!(of_b, (0..200).map(|n| (n, at_b)).collect::<Vec<_>>());
        assert_eq!(of_c, [(7, at_c)]);
        assert_eq!(all(&mut b), (0..200).map(|n| (n, at_a)).collect::<Vec<_>>());
        // Somebody else is talked to: what the first one sends comes all the same.
        for n in 0..200 {
            a.send(&[n], at_c).unwrap();
        }
        assert_eq!(a.one.as_ref().map(|one| one.with), Some(at_c));
        (0..3).for_each(|n| b.send(&[n], at_a).unwrap());
        c.send(&[9], at_a).unwrap();
        let mut came = all(&mut a);
        came.sort_unstable();
        assert_eq!(came, [(0, at_b), (1, at_b), (2, at_b), (9, at_c)]);
        assert_eq!(all(&mut c).len(), 200);
    }

    /// Who sends without a pause keeps nobody waiting, be it the one that is talked to or the others.
    #[test]
    fn both_sockets_are_read_though_one_is_never_empty() {
        let ((mut a, at_a), (mut b, at_b), (mut c, at_c)) = (talk(), talk(), talk());
        (0..200).for_each(|n| a.send(&[n], at_b).unwrap());
        b.send(&[0], at_a).unwrap();
        all(&mut a);
        for (busy, at_busy, rare, at_rare) in [(0, at_b, 1, at_c), (1, at_c, 0, at_b)] {
            let peers = [&mut b, &mut c];
            // So long that it alone is expected to send.
            for n in 0..200 {
                peers[busy].send(&[n], at_a).unwrap();
            }
            peers[rare].send(&[7], at_a).unwrap();
            let came = all(&mut a);
            let place = came.iter().position(|(_, from)| *from == at_rare).unwrap();
            assert!(place <= 2 * ROW as usize, "behind {place} of {at_busy}");
            assert_eq!(came.len(), 201);
        }
    }

    /// A socket that is connected is told that nobody is there; datagrams are lost without a word.
    #[test]
    fn a_peer_that_has_gone_is_no_error() {
        let ((mut a, _), (b, at_b)) = (talk(), talk());
        drop(b);
        for n in 0..200 {
            a.send(&[n], at_b).unwrap();
            assert_eq!(all(&mut a), []);
        }
        assert!(a.one.is_some());
        let back = UdpSocket::bind(at_b).unwrap();
        a.send(&[1], at_b).unwrap();
        assert_eq!(back.recv(&mut [0; 8]).unwrap(), 1);
    }

    #[test]
    fn the_port_is_nobody_elses() {
        let ((mut a, at_a), (_b, at_b)) = (talk(), talk());
        (0..200).for_each(|n| a.send(&[n], at_b).unwrap());
        assert!(a.one.is_some());
        let stranger = net::socket(net::AddressFamily::INET, net::SocketType::DGRAM, None).unwrap();
        sockopt::set_socket_reuseport(&stranger, true).unwrap();
        assert_eq!(net::bind(&stranger, &at_a), Err(Errno::ADDRINUSE));
    }

    #[test]
    fn the_kernel_tells_of_both_sockets_or_of_neither() {
        let ((mut a, at_a), (mut b, at_b)) = (talk(), talk());
        let ears = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).unwrap());
        a.heard_by(ears.clone(), 5).unwrap();
        let told = || {
            let mut room = [const { std::mem::MaybeUninit::uninit() }; 4];
            let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            let (events, _) = epoll::wait(&*ears, &mut room, Some(&soon)).unwrap();
            events.iter().map(|event| event.data.u64()).collect::<Vec<_>>()
        };
        a.listen(false);
        (0..200).for_each(|n| a.send(&[n], at_b).unwrap());
        b.send(&[0], at_a).unwrap();
        assert_eq!(told(), []);
        a.listen(true);
        assert_eq!(told(), [5]);
        assert_eq!(all(&mut a).len(), 1);
        assert_eq!(told(), []);
    }
}
