//! Sockets of an adapter: where its queue pairs are reached, and how the kernel tells of them.

use super::meeting::{self, Ends, Meeting};
use super::number::{self, DATAGRAMS};
use super::{Adapter, LEAVING, LISTENERS, Pair, Transport, rc::Phase};
use rnic::driver::{Link, connect_to_itself, hear};
use rustix::event::epoll;
use rustix::net::sockopt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

/// What is asked for of the kernel for datagrams of a queue pair that wait to be taken in: programs do not send again what is lost,
/// and perftest waits for it for ever. It counts about 770 bytes for the shortest, and grants twice this.
const DATAGRAM_BYTES: usize = 4 << 20;

/// Where queue pairs are connected to: a port for up to 255 of them.
pub struct Listener {
    /// The socket; it does not block.
    pub socket: TcpListener,
    at: IpAddr,
    port: u16,
    /// The index that is looked at next.
    index: u8,
}

impl Listener {
    /// Numbers one after the other: one that is given up comes again as late as possible, for someone may still be on the way
    /// to the queue pair that had it.
    fn next_number(&mut self) -> u32 {
        let number = number::number(self.port, self.index);
        self.index = (self.index + 1) % DATAGRAMS;
        number
    }
}

/// Whether an attempt to connect says that nobody is there, as it may at once.
fn is_absence(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(kind, ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable | TimedOut)
}

impl Adapter {
    /// A number for a queue pair that connections shall reach at this address.
    pub fn number_for_connection(&mut self, at: IpAddr) -> std::io::Result<u32> {
        for listener in self.listeners.iter_mut().filter(|listener| listener.at == at) {
            for _ in 0..DATAGRAMS {
                let number = listener.next_number();
                if !self.by_number.contains_key(&(at, number)) {
                    return Ok(number);
                }
            }
        }
        let socket = TcpListener::bind((at, 0))?;
        socket.set_nonblocking(true)?;
        let port = socket.local_addr()?.port();
        hear(&self.epoll, &socket, LISTENERS + self.listeners.len() as u64, false, false)?;
        let mut listener = Listener { socket, at, port, index: 0 };
        let number = listener.next_number();
        self.listeners.push(listener);
        Ok(number)
    }

    /// A socket for a queue pair that datagrams shall reach at this address, and its number.
    pub fn number_for_datagrams(&mut self, at: IpAddr) -> std::io::Result<(UdpSocket, u32)> {
        let socket = UdpSocket::bind((at, 0))?;
        socket.set_nonblocking(true)?;
        // What comes while neither the program nor the thread has a turn waits there, as much as the kernel grants.
        let _ = sockopt::set_socket_recv_buffer_size(&socket, DATAGRAM_BYTES);
        let number = number::number(socket.local_addr()?.port(), DATAGRAMS);
        Ok((socket, number))
    }

    /// Takes up a queue pair; its handle.
    pub fn add(&mut self, pair: Pair) -> std::io::Result<u32> {
        let name = (pair.at, pair.number);
        let handle = self.pairs.insert(pair);
        if let Some(Pair { transport: Transport::Datagrams(ud), .. }) = self.pairs.get(handle) {
            ud.talk.heard_by(self.epoll.clone(), u64::from(handle))?;
        }
        self.by_number.insert(name, handle);
        Ok(handle)
    }

    /// Gives up a queue pair. What its peer has not taken yet is still sent, and what comes is read away, so that the
    /// peer does not see the connection break before it has read all.
    pub fn remove(&mut self, handle: u32) {
        self.cools(handle);
        let Some(pair) = self.pairs.remove(handle) else { return };
        self.by_number.remove(&(pair.at, pair.number));
        self.stalled.retain(|stalled| *stalled != handle);
        self.meetings.retain(|_, meeting| meeting.asks != Some(handle));
        match pair.transport {
            Transport::Datagrams(mut ud) => ud.talk.listen(false),
            Transport::Connection(rc) => {
                if let Phase::Connected(link) = rc.phase {
                    self.leave(link);
                }
            }
        }
    }

    /// Parts from the peer of a connection that is given up.
    pub fn leave(&mut self, link: Box<Link>) {
        let name = LEAVING + self.next;
        self.next += 1;
        let _ = hear(&self.epoll, link.socket(), name, link.has_unsent(), true);
        self.leaving.push((name, link));
        self.part(name);
    }

    /// Goes on parting from the peer of a connection that was given up.
    pub fn part(&mut self, name: u64) {
        let Some(at) = self.leaving.iter().position(|leaving| leaving.0 == name) else { return };
        if self.leaving[at].1.takes_leave(&self.regions, &mut self.room) {
            let (_, link) = self.leaving.swap_remove(at);
            let _ = epoll::delete(&self.epoll, link.socket());
        }
    }

    /// Goes on parting from all whose connections were given up; whether there are any left.
    pub fn is_parting(&mut self) -> bool {
        for at in (0..self.leaving.len()).rev() {
            self.part(self.leaving[at].0);
        }
        !self.leaving.is_empty()
    }

    /// A queue pair has been told who its peer is: one of the two connects. One that is its own peer is connected at once.
    pub fn go(&mut self, handle: u32) -> std::io::Result<()> {
        let Some(pair) = self.pairs.get(handle) else { return Ok(()) };
        let Some(route) = pair.route else { return Ok(()) };
        if !matches!(pair.transport, Transport::Connection(_)) {
            return Ok(());
        }
        if (pair.at, pair.number) == (route.at, route.number) {
            let (at, agreed) = (pair.at, meeting::with_itself(pair.limits()));
            let socket = connect_to_itself(at)?;
            hear(&self.epoll, &socket, u64::from(handle), false, false)?;
            self.connected(handle, socket, agreed, &[]);
            return Ok(());
        }
        let expects = pair.attr.rq_psn;
        let ends = Ends { to: route.number, from: pair.number, sends: pair.sends_from(), expects };
        let limits = pair.limits();
        if (pair.at, pair.number) < (route.at, route.number) {
            match rnic::driver::connect(SocketAddr::new(route.at, number::port(route.number))) {
                Ok(socket) => self.begin(Meeting::asking(socket, handle, ends, limits)),
                Err(error) if is_absence(error.kind()) => self.parted(handle),
                Err(error) => return Err(error),
            }
        }
        self.answer_held();
        Ok(())
    }
}
