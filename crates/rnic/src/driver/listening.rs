//! An adapter before it knows where the others are: the sockets at which it can be reached.

use super::datagrams::{self, Datagrams};
use super::greeting::Secret;
use super::guests::Guests;
use super::host::Host;
use super::link::READ_BYTES;
use super::postings::INLINE;
use super::unreliable::Unreliable;
use super::watch::Watch;
use super::{Contact, DEPTH, Door, LISTENER, Rnic};
use crate::stack::{MAX_REGIONS, Regions};
use fabric::{Rank, VerbsCaps};
use rustix::event::epoll;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Instant;

/// Ports tried for one that is free for connections and for datagrams.
const PORTS: usize = 64;

/// A rank's adapter before it knows where the others are: with what is reliable, and with unreliable datagrams.
pub struct Listening(Socket, Option<UdpSocket>);

enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket, TcpListener),
    /// Where peers knock.
    Door(TcpListener),
}

impl Listening {
    /// Listens for connections (RC) at this address of this host, at a port that the system chooses.
    pub fn at(address: IpAddr) -> Result<Listening, String> {
        let fail = |e: std::io::Error| format!("cannot listen at {address}: {e}");
        let listener = TcpListener::bind((address, 0)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Listening(Socket::Tcp(listener), None))
    }

    /// The same for reliable datagrams (RD).
    pub fn for_datagrams(address: IpAddr) -> Result<Listening, String> {
        let (socket, door) =
            datagrams::bind_with_door(address).map_err(|e| format!("cannot listen at {address}: {e}"))?;
        Ok(Listening(Socket::Udp(socket, door), None))
    }

    /// For unreliable datagrams (UD) and nothing else.
    pub fn for_unreliable(address: IpAddr) -> Result<Listening, String> {
        let (socket, door) =
            datagrams::bind_with_door(address).map_err(|e| format!("cannot listen at {address}: {e}"))?;
        Ok(Listening(Socket::Door(door), Some(socket)))
    }

    /// For connections (RC) and unreliable datagrams (UD), at the same port.
    pub fn for_both(address: IpAddr) -> Result<Listening, String> {
        let mut why = String::new();
        for _ in 0..PORTS {
            let listening = Listening::at(address)?;
            match datagrams::bind(address, listening.address()?.port()) {
                Ok(socket) => return Ok(Listening(listening.0, Some(socket))),
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("cannot listen at {address} for connections and datagrams at one port: {why}"))
    }

    /// Where the others find it.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let address = match &self.0 {
            Socket::Tcp(listener) | Socket::Door(listener) => listener.local_addr(),
            Socket::Udp(socket, _) => socket.local_addr(),
        };
        address.map_err(|e| format!("cannot tell where this rank listens: {e}"))
    }

    /// Rank `me` of the job, all of whose ranks listen at `addresses`, in the same way, and know its secret.
    pub fn open(self, me: Rank, addresses: Box<[SocketAddr]>, secret: Secret) -> Result<Rnic, String> {
        let fail = |e: rustix::io::Errno| format!("cannot watch sockets: {e}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail)?;
        let door = match self.0 {
            Socket::Tcp(listener) => {
                let data = epoll::EventData::new_u64(LISTENER);
                epoll::add(&epoll, &listener, data, epoll::EventFlags::IN).map_err(fail)?;
                Door::Connections(listener)
            }
            Socket::Udp(socket, door) => {
                let datagrams =
                    Datagrams::new((socket, door), me, addresses.len(), &secret, &epoll).map_err(fail)?;
                Door::Datagrams(Box::new(datagrams))
            }
            Socket::Door(door) => Door::Knocks(door),
        };
        let unreliable = match self.1 {
            Some(socket) => {
                let settings = (me, secret, &epoll);
                Some(Box::new(Unreliable::new(socket, settings, &addresses).map_err(fail)?))
            }
            None => None,
        };
        let watch = Watch::new(&epoll, addresses.len()).map_err(fail)?;
        let caps = VerbsCaps {
            name: "rnic",
            inline_bytes: INLINE,
            gather: 2,
            datagram_bytes: unreliable.as_ref().map_or(0, |unreliable| unreliable.payload()),
            depth: DEPTH,
            lockable_bytes: usize::MAX / 8,
            regions: MAX_REGIONS,
            page_bytes: 4096,
            offload: false,
            writes_in_order: true,
        };
        Ok(Rnic {
            me,
            secret,
            door,
            unreliable,
            epoll,
            size: addresses.len(),
            contacts: addresses.iter().map(|_| Contact::None).collect(),
            addresses: addresses.into(),
            guests: Guests::default(),
            has_news: false,
            meetings: HashMap::new(),
            next_meeting: 0,
            regions: Regions::new(),
            host: Host::default(),
            ended: VecDeque::new(),
            memory: Vec::new(),
            caps,
            room: vec![0; READ_BYTES].into(),
            stalled: Vec::new(),
            quiet: 0,
            look: 0,
            waiting: Vec::new(),
            hot: None,
            has_alarm: false,
            start: Instant::now(),
            fault: None,
            watch,
        })
    }
}
