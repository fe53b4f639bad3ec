//! An adapter before it knows where the others are: the sockets at which it can be reached.

use super::again::Again;
use super::alone::Alone;
use super::datagrams::{self, Datagrams};
use super::greeting::Secret;
use super::guests::Guests;
use super::host::Host;
use super::link::READ_BYTES;
use super::post::AT_ONCE;
use super::postings::INLINE;
use super::seal::Integrity;
use super::unreliable::Unreliable;
use super::watch::Watch;
use super::{Contact, DEPTH, Door, LISTENER, Rnic, TRANSFER};
use crate::stack::{MAX_REGIONS, Regions};
use fabric::{Rank, VerbsCaps};
use rustix::event::epoll;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

/// Ports tried for one that is free for connections and for datagrams.
const PORTS: usize = 64;

/// A rank's adapter before it knows where the others are: with what is reliable, and with unreliable datagrams.
pub struct Listening {
    socket: Socket,
    unreliable: Option<UdpSocket>,
    integrity: Integrity,
    /// Longest unreliable datagram, if that is known.
    longest: Option<usize>,
}

enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket, TcpListener),
    /// Where peers knock.
    Door(TcpListener),
}

impl Listening {
    fn new(socket: Socket, unreliable: Option<UdpSocket>) -> Listening {
        Listening { socket, unreliable, integrity: Integrity::Auto, longest: None }
    }

    /// Listens for connections (RC) at this address of this host, at a port that the system chooses.
    pub fn at(address: IpAddr) -> Result<Listening, String> {
        let fail = |e: std::io::Error| format!("cannot listen at {address}: {e}");
        let listener = TcpListener::bind((address, 0)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Listening::new(Socket::Tcp(listener), None))
    }

    /// The same for reliable datagrams (RD).
    pub fn for_datagrams(address: IpAddr) -> Result<Listening, String> {
        let (socket, door) =
            datagrams::bind_with_door(address).map_err(|e| format!("cannot listen at {address}: {e}"))?;
        Ok(Listening::new(Socket::Udp(socket, door), None))
    }

    /// For unreliable datagrams (UD) and nothing else.
    pub fn for_unreliable(address: IpAddr) -> Result<Listening, String> {
        let (socket, door) =
            datagrams::bind_with_door(address).map_err(|e| format!("cannot listen at {address}: {e}"))?;
        Ok(Listening::new(Socket::Door(door), Some(socket)))
    }

    /// For connections (RC) and unreliable datagrams (UD), at the same port.
    pub fn for_both(address: IpAddr) -> Result<Listening, String> {
        let mut why = String::new();
        for _ in 0..PORTS {
            let listening = Listening::at(address)?;
            match datagrams::bind(address, listening.address()?.port()) {
                Ok(socket) => return Ok(Listening::new(listening.socket, Some(socket))),
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("cannot listen at {address} for connections and datagrams at one port: {why}"))
    }

    /// With messages that are checked in this way, which must be the same for all ranks.
    pub fn checked_by(self, integrity: Integrity) -> Listening {
        Listening { integrity, ..self }
    }

    /// Longest unreliable datagram that the ways to all these addresses take at present. Receive buffers have that length, so
    /// all ranks must be limited to the least.
    pub fn longest_datagram(&self, addresses: &[SocketAddr]) -> usize {
        // A look at the routing table for each host.
        let hosts: BTreeMap<IpAddr, SocketAddr> = addresses.iter().map(|at| (at.ip(), *at)).collect();
        let longest = hosts.values().map(|at| datagrams::datagram_max(*at)).min();
        longest.unwrap_or(datagrams::DATAGRAM_MAX)
    }

    /// With no longer unreliable datagrams, which must be the same for all ranks.
    pub fn limited_to(self, longest: usize) -> Listening {
        Listening { longest: Some(longest), ..self }
    }

    /// Where the others find it.
    pub fn address(&self) -> Result<SocketAddr, String> {
        let address = match &self.socket {
            Socket::Tcp(listener) | Socket::Door(listener) => listener.local_addr(),
            Socket::Udp(socket, _) => socket.local_addr(),
        };
        address.map_err(|e| format!("cannot tell where this rank listens: {e}"))
    }

    /// Rank `me` of the job, all of whose ranks listen at `addresses`, in the same way, and know its secret.
    pub fn open(self, me: Rank, addresses: Box<[SocketAddr]>, secret: Secret) -> Result<Rnic, String> {
        let fail = |e: std::io::Error| format!("cannot watch sockets: {e}");
        let refused = |e: rustix::io::Errno| fail(e.into());
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC).map_err(refused)?);
        let longest = self.longest.unwrap_or_else(|| self.longest_datagram(&addresses));
        let door = match self.socket {
            Socket::Tcp(listener) => {
                let data = epoll::EventData::new_u64(LISTENER);
                epoll::add(&epoll, &listener, data, epoll::EventFlags::IN).map_err(refused)?;
                Door::Connections(listener)
            }
            Socket::Udp(socket, door) => {
                let settings = (me, secret, self.integrity);
                let datagrams =
                    Datagrams::new((socket, door), settings, addresses.len(), &epoll).map_err(fail)?;
                Door::Datagrams(Box::new(datagrams))
            }
            Socket::Door(door) => Door::Knocks(door),
        };
        let unreliable = match self.unreliable {
            Some(socket) => {
                let settings = (me, secret, self.integrity, &epoll);
                Some(Box::new(Unreliable::new(socket, settings, longest).map_err(fail)?))
            }
            None => None,
        };
        let watch = Watch::new(&epoll, addresses.len()).map_err(refused)?;
        let by_streams = matches!(door, Door::Connections(_));
        let caps = caps(unreliable.as_ref().map_or(0, |unreliable| unreliable.payload()), by_streams);
        Ok(Rnic {
            me,
            secret,
            integrity: self.integrity,
            refused: 0,
            door,
            unreliable,
            epoll,
            size: addresses.len(),
            contacts: addresses.iter().map(|_| Contact::None).collect(),
            addresses: addresses.into(),
            guests: Guests::default(),
            has_news: false,
            has_served: false,
            unseen: 0,
            in_row: false,
            meetings: HashMap::new(),
            next_meeting: 0,
            again: Again::default(),
            regions: Regions::new(),
            host: Host::default(),
            ended: VecDeque::new(),
            memory: Vec::new(),
            caps,
            room: memcopy::Room::new(READ_BYTES),
            stalled: Vec::new(),
            quiet: 0,
            shares_core: false,
            look: 0,
            waiting: Vec::new(),
            unsent: Vec::new(),
            leads: None,
            alone: Alone::default(),
            alarm_ns: u64::MAX,
            is_due: false,
            start: Instant::now(),
            fault: None,
            watch,
        })
    }
}

/// What the adapter can do; `datagram_bytes` is the payload of an unreliable datagram, `by_streams` whether there are connections.
fn caps(datagram_bytes: usize, by_streams: bool) -> VerbsCaps {
    VerbsCaps {
        name: "rnic",
        inline_bytes: INLINE,
        at_once_bytes: if by_streams { AT_ONCE } else { 0 },
        gather: 2,
        datagram_bytes,
        transfer_bytes: TRANSFER,
        depth: DEPTH,
        lockable_bytes: usize::MAX / 8,
        regions: MAX_REGIONS,
        page_bytes: 4096,
        offload: false,
        writes_in_order: true,
        holds_receives: None,
        coherent_atomics: true, // the processor executes them (`Host::atomic`)
    }
}
