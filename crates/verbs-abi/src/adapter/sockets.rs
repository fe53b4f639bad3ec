//! Sockets of an adapter: where its queue pairs are reached, and how the kernel tells of them.

use super::meeting::{Ends, Meeting};
use super::number::{self, DATAGRAMS};
use super::{Adapter, LEAVING, LISTENERS, Pair, Transport, constants::*, rc::Phase};
use rustix::event::epoll;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};

/// How long the end of the process waits for what its peers have not taken.
const LINGER: std::time::Duration = std::time::Duration::from_secs(2);

/// Has the kernel tell of a socket, by this name.
pub fn watch(
    epoll: &OwnedFd,
    socket: impl AsFd,
    name: u64,
    wants_room: bool,
    is_known: bool,
) -> std::io::Result<()> {
    let room = if wants_room { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
    let (data, flags) = (epoll::EventData::new_u64(name), epoll::EventFlags::IN | room);
    match is_known {
        true => Ok(epoll::modify(epoll, socket, data, flags)?),
        false => Ok(epoll::add(epoll, socket, data, flags)?),
    }
}

impl Adapter {
    /// A number for a queue pair that connections shall reach at this address.
    pub fn number_for_connection(&mut self, at: IpAddr) -> std::io::Result<u32> {
        for listener in &self.listeners {
            if listener.1 == at {
                let free = (0..DATAGRAMS)
                    .map(|index| number::number(listener.2, index))
                    .find(|number| !self.by_number.contains_key(&(at, *number)));
                if let Some(number) = free {
                    return Ok(number);
                }
            }
        }
        let listener = TcpListener::bind((at, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        watch(&self.epoll, &listener, LISTENERS + self.listeners.len() as u64, false, false)?;
        self.listeners.push((listener, at, port));
        Ok(number::number(port, 0))
    }

    /// A socket for a queue pair that datagrams shall reach at this address, and its number.
    pub fn number_for_datagrams(&mut self, at: IpAddr) -> std::io::Result<(UdpSocket, u32)> {
        let socket = UdpSocket::bind((at, 0))?;
        socket.set_nonblocking(true)?;
        let number = number::number(socket.local_addr()?.port(), DATAGRAMS);
        Ok((socket, number))
    }

    /// Takes up a queue pair; its handle.
    pub fn add(&mut self, at: IpAddr, pair: Pair) -> std::io::Result<u32> {
        let number = pair.number;
        let handle = self.pairs.insert(pair);
        if let Some(Pair { transport: Transport::Datagrams(ud), .. }) = self.pairs.get(handle) {
            let socket = ud.socket.try_clone()?;
            watch(&self.epoll, &socket, u64::from(handle), false, false)?;
        }
        self.by_number.insert((at, number), handle);
        Ok(handle)
    }

    /// Gives up a queue pair. What its peer has not taken yet is still sent, and what comes is read away, so that the
    /// peer does not see the connection break before it has read all.
    pub fn remove(&mut self, at: IpAddr, handle: u32) -> bool {
        let Some(pair) = self.pairs.remove(handle) else { return false };
        self.by_number.remove(&(at, pair.number));
        self.hot = None;
        self.stalled.retain(|stalled| *stalled != handle);
        self.meetings.retain(|_, meeting| meeting.asks != Some(handle));
        match pair.transport {
            Transport::Datagrams(ud) => {
                let _ = epoll::delete(&self.epoll, &ud.socket);
            }
            Transport::Connection(rc) => {
                if let Phase::Connected(link) = rc.phase {
                    let name = LEAVING + self.next;
                    self.next += 1;
                    let _ = watch(&self.epoll, link.socket(), name, link.has_unsent(), true);
                    self.leaving.push((name, link));
                    self.part(name);
                }
            }
        }
        true
    }

    /// Goes on parting from the peer of a connection that was given up.
    pub fn part(&mut self, name: u64) {
        let Some(at) = self.leaving.iter().position(|leaving| leaving.0 == name) else { return };
        if self.leaving[at].1.takes_leave(&self.regions, &mut self.room) {
            let (_, link) = self.leaving.swap_remove(at);
            let _ = epoll::delete(&self.epoll, link.socket());
        }
    }

    /// Parts from all whose connections were given up, within a time.
    pub fn part_from_all(&mut self) {
        let until = std::time::Instant::now() + LINGER;
        while !self.leaving.is_empty() && std::time::Instant::now() < until {
            let names: Vec<u64> = self.leaving.iter().map(|leaving| leaving.0).collect();
            names.into_iter().for_each(|name| self.part(name));
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    /// A queue pair has been told who its peer is: one of the two connects.
    pub fn go(&mut self, handle: u32) -> std::io::Result<()> {
        let Some(pair) = self.pairs.get(handle) else { return Ok(()) };
        let Some(route) = pair.route else { return Ok(()) };
        if !matches!(pair.transport, Transport::Connection(_)) {
            return Ok(());
        }
        let expects = pair.attr.rq_psn;
        let ends = Ends { to: route.number, from: pair.number, sends: pair.sends_from(), expects };
        let limits = pair.limits();
        if (pair.at, pair.number) < (route.at, route.number) {
            let socket = rnic::driver::connect(SocketAddr::new(route.at, number::port(route.number)))?;
            self.begin(Meeting::asking(socket, handle, ends, limits));
        }
        self.answer_held();
        Ok(())
    }

    /// Puts a queue pair into error, on request.
    pub fn flush(&mut self, handle: u32) {
        self.fail_with(handle, WC_WR_FLUSH_ERR);
    }
}
