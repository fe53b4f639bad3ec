//! The driver: sockets, and the memory of this process, around the state machines of [`crate::stack`]. It makes
//! [`fabric::Verbs`] of them.
//!
//! Everything happens in calls of its owner, mostly in [`Verbs::poll`]: there is no thread. Its owner sleeps on
//! [`Rnic::descriptor`] until a socket has something.

mod greeting;
mod link;
mod meeting;
mod memory;
mod verbs;

use crate::stack::{
    Agreed, Arrived, Atomic, Connection, Done as Ended, MAX_REGIONS, NotDone, Place, Proposal, Receive,
    Regions, SEGMENT_MAX, Settings, Sink, Start, Work,
};
use fabric::{Completion, Done, Fault, Local, Nap, Rank, VerbsCaps};
pub use greeting::Secret;
use link::{INLINE, Link, Payload, Posted, READ_BYTES};
use meeting::{Meeting, Met};
use rustix::event::epoll;
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Longest transfer: lengths have 32 bits (RFC 5040 section 4.3).
const LONGEST: usize = u32::MAX as usize;
/// Work requests that may be outstanding to one peer.
const DEPTH: usize = 256;
/// Strangers that may be connected at a time and have not said who they are.
const STRANGERS: usize = 64;
/// What the listener is called among what the kernel tells of; peers are called by their rank.
const LISTENER: u64 = u64::MAX;
/// Set-ups are called by this and a number.
const MEETING: u64 = 1 << 32;
/// Looks in vain after which only some of them ask the kernel.
const QUIET: u32 = 64;
const SOME: u32 = 8;
/// How long the end of this rank waits for what its peers have not taken.
const LINGER: std::time::Duration = std::time::Duration::from_secs(5);

/// How far this rank has come with a peer.
#[derive(Debug, Default)]
enum Contact {
    /// Not begun.
    #[default]
    None,
    /// This rank has begun; what is posted waits.
    Begun(VecDeque<(Posted, Work)>),
    /// The peer's own connection stays, and has not come yet.
    Expected(VecDeque<(Posted, Work)>),
    Connected(Box<Link>),
    /// It is gone.
    Gone,
}

/// One rank's adapter, in software.
pub struct Rnic {
    me: Rank,
    secret: Secret,
    listener: TcpListener,
    epoll: OwnedFd,
    /// Where each rank listens.
    addresses: Box<[SocketAddr]>,
    contacts: Vec<Contact>,
    meetings: HashMap<u64, Meeting>,
    next_meeting: u64,
    regions: Regions,
    host: Host,
    ended: VecDeque<Completion>,
    memory: Vec<Box<[u64]>>,
    caps: VerbsCaps,
    room: Box<[u8]>,
    /// Peers of whom messages wait for a receive buffer.
    stalled: Vec<Rank>,
    quiet: u32,
    /// Something is due by the clock.
    has_alarm: bool,
    start: Instant,
    fault: Option<Fault>,
}

/// What the stack asks of this process.
#[derive(Default)]
struct Host {
    /// Receive buffers, and those that connections fill, by number.
    free: VecDeque<(Local, u64)>,
    filling: HashMap<u64, (Local, u64)>,
    next: u64,
    /// Messages that have come: the work of their buffer, and their length.
    arrived: VecDeque<(u64, usize)>,
    /// Peers whose writes have landed since that was asked for, and whether the one in hand has.
    touched: Vec<Rank>,
    is_touched: bool,
}

impl Host {
    fn address(&self, place: Place) -> usize {
        match place {
            Place::Region { to, .. } => to as usize,
            Place::Buffer { id, offset } => {
                self.filling.get(&id).map_or(0, |(local, _)| local.span.addr + offset as usize)
            }
        }
    }
}

impl Sink for Host {
    fn receive(&mut self, _msn: u32) -> Receive {
        let Some((local, work)) = self.free.pop_front() else { return Receive::Later };
        let id = self.next;
        self.next += 1;
        self.filling.insert(id, (local, work));
        Receive::Buffer { id, len: local.span.len }
    }

    fn place(&mut self, place: Place, bytes: &[u8]) {
        self.is_touched |= matches!(place, Place::Region { .. });
        let addr = self.address(place);
        if addr != 0 {
            memory::copy(addr, bytes.as_ptr() as usize, bytes.len());
        }
    }

    fn arrived(&mut self, arrived: Arrived) {
        if let Some((_, work)) = self.filling.remove(&arrived.id) {
            self.arrived.push_back((work, arrived.len as usize));
        }
    }

    fn atomic(&mut self, _stag: u32, to: u64, atomic: &Atomic) -> u64 {
        let word = memory::word(to as usize);
        let change = |held: u64| Some(atomic.apply(held));
        self.is_touched = true;
        match word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(held) | Err(held) => held,
        }
    }
}

/// Whether this rank may sleep until the descriptor has something; if not, something is due by the clock.
pub struct RnicNap(bool);

impl Nap for RnicNap {
    fn take(self) {
        std::thread::yield_now();
    }

    fn sleeps(&self) -> bool {
        self.0
    }
}

/// A rank's adapter before it knows where the others are.
pub struct Listening {
    listener: TcpListener,
}

impl Listening {
    /// Listens at this address of this host, at a port that the system chooses.
    pub fn at(address: Ipv4Addr) -> Result<Listening, String> {
        let fail = |e: std::io::Error| format!("cannot listen at {address}: {e}");
        let listener = TcpListener::bind((address, 0)).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        Ok(Listening { listener })
    }

    /// Where the others find it.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.listener.local_addr().map_err(|e| format!("cannot tell where this rank listens: {e}"))
    }

    /// Rank `me` of the job, all of whose ranks listen at `addresses` and know its secret.
    pub fn open(self, me: Rank, addresses: Box<[SocketAddr]>, secret: Secret) -> Result<Rnic, String> {
        let fail = |e: rustix::io::Errno| format!("cannot watch sockets: {e}");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail)?;
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &self.listener, data, epoll::EventFlags::IN).map_err(fail)?;
        let caps = VerbsCaps {
            name: "rnic",
            inline_bytes: INLINE,
            gather: 2,
            datagram_bytes: 0,
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
            listener: self.listener,
            epoll,
            contacts: addresses.iter().map(|_| Contact::None).collect(),
            addresses,
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
            has_alarm: false,
            start: Instant::now(),
            fault: None,
        })
    }
}

impl Rnic {
    /// Readable when there is something to look at.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Has the kernel tell of a socket, by this name.
    fn hear(&self, socket: &TcpStream, name: u64, wants_room: bool, is_known: bool) -> Result<(), String> {
        let room = if wants_room { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
        let (data, flags) = (epoll::EventData::new_u64(name), epoll::EventFlags::IN | room);
        let watched = match is_known {
            true => epoll::modify(&self.epoll, socket, data, flags),
            false => epoll::add(&self.epoll, socket, data, flags),
        };
        watched.map_err(|e| format!("cannot watch a socket: {e}"))
    }

    /// Begins to connect to a peer.
    fn begin(&mut self, peer: Rank) -> Result<(), Fault> {
        let address = self.addresses[peer];
        let fail = |e: String| Fault::Device(format!("cannot connect to rank {peer} at {address}: {e}"));
        let socket = connect(address).map_err(|e| fail(e.to_string()))?;
        let nonce: [u8; 16] = random().map_err(|e| fail(e.to_string()))?;
        let meeting = Meeting::with(socket, peer, self.me, &self.secret, nonce);
        self.meet(meeting).map_err(fail)?;
        self.contacts[peer] = Contact::Begun(VecDeque::new());
        Ok(())
    }

    fn meet(&mut self, meeting: Meeting) -> Result<(), String> {
        let name = MEETING + self.next_meeting;
        self.next_meeting += 1;
        self.hear(&meeting.socket, name, meeting.wants_room(), false)?;
        self.meetings.insert(name, meeting);
        Ok(())
    }

    /// Lets in who has connected.
    fn accept(&mut self) {
        self.meetings.retain(|_, meeting| meeting.to.is_some() || !meeting.is_late());
        while let Ok((socket, _)) = self.listener.accept() {
            let strangers = self.meetings.values().filter(|meeting| meeting.to.is_none()).count();
            // More than that wait for their turn no longer: closed.
            if strangers < STRANGERS && prepare(&socket).is_ok() {
                let _ = self.meet(Meeting::with_stranger(socket));
            }
        }
    }

    /// Looks at a set-up.
    fn look_at(&mut self, name: u64) {
        let Some(mut meeting) = self.meetings.remove(&name) else { return };
        match meeting.look(self.me, self.addresses.len(), &self.secret) {
            Met::Waits => {
                let _ = self.hear(&meeting.socket, name, meeting.wants_room(), true);
                self.meetings.insert(name, meeting);
            }
            Met::Agreed(agreed, early) => {
                if let Some(peer) = meeting.to
                    && matches!(self.contacts[peer], Contact::Begun(_))
                {
                    self.connected(peer, meeting.socket, agreed, &early);
                }
            }
            Met::Asked(peer, start, early) => self.asked(peer, meeting, &start, &early),
            Met::Crossing => {
                if let Some(peer) = meeting.to
                    && let Contact::Begun(waiting) = &mut self.contacts[peer]
                {
                    self.contacts[peer] = Contact::Expected(std::mem::take(waiting));
                }
            }
            Met::Failed(why) => {
                if let Some(peer) = meeting.to
                    && matches!(self.contacts[peer], Contact::Begun(_))
                {
                    let address = self.addresses[peer];
                    let why = Fault::Device(format!("cannot connect to rank {peer} at {address}: {why}"));
                    self.lose(peer, &why);
                }
            }
        }
    }

    /// A rank of the job asks for a connection.
    fn asked(&mut self, peer: Rank, mut meeting: Meeting, start: &Start, early: &[u8]) {
        let stays = match &self.contacts[peer] {
            Contact::None | Contact::Expected(_) => true,
            Contact::Begun(_) => peer < self.me,
            Contact::Connected(_) | Contact::Gone => false,
        };
        if !stays {
            meeting.answer(&Proposal::reject(start, meeting::CROSSING));
            return;
        }
        let private = greeting::reply(&self.secret, &start.private);
        let (reply, agreed) = meeting::proposal(Vec::new()).reply(start, &private);
        if meeting.answer(&reply) {
            self.connected(peer, meeting.socket, agreed, early);
        }
    }

    fn connected(&mut self, peer: Rank, socket: TcpStream, agreed: Agreed, early: &[u8]) {
        let settings = Settings { segment_max: SEGMENT_MAX, depth: DEPTH, ..Settings::from(agreed) };
        let waiting = match std::mem::take(&mut self.contacts[peer]) {
            Contact::Begun(waiting) | Contact::Expected(waiting) => waiting,
            _ => VecDeque::new(),
        };
        if let Err(why) = self.hear(&socket, peer as u64, false, true) {
            return self.lose(peer, &Fault::Device(why));
        }
        let mut link = Box::new(Link::new(socket, Connection::new(settings), early));
        for (posted, work) in waiting {
            assert!(link.post(posted, work).is_none(), "no more waits than fits");
        }
        self.contacts[peer] = Contact::Connected(link);
        self.serve(peer);
        self.send(peer);
    }

    /// Writes what there is for a peer.
    fn send(&mut self, peer: Rank) {
        let Contact::Connected(link) = &mut self.contacts[peer] else { return };
        link.send(&self.regions);
        if link.has_unsent() != link.asks_for_room {
            link.asks_for_room = link.has_unsent();
            let wants_room = link.asks_for_room;
            let Contact::Connected(link) = &self.contacts[peer] else { return };
            if let Err(why) = self.hear(link.socket(), peer as u64, wants_room, true) {
                self.fault.get_or_insert(Fault::Device(why));
            }
        }
        self.settle(peer);
    }

    /// Takes in what has come from a peer.
    fn serve(&mut self, peer: Rank) {
        let Contact::Connected(link) = &mut self.contacts[peer] else { return };
        self.host.is_touched = false;
        link.receive(&mut self.regions, &mut self.host, &mut self.room);
        if std::mem::take(&mut self.host.is_touched) {
            self.host.touched.push(peer);
        }
        if link.is_stalled() && !self.stalled.contains(&peer) {
            self.stalled.push(peer);
        }
        for (work, len) in self.host.arrived.drain(..) {
            let done = Done::Received { from: peer, len, datagram: false };
            self.ended.push_back(Completion { work, done, result: Ok(()) });
        }
        self.settle(peer);
    }

    /// Tells what has ended of what was posted to a peer, and that it is gone if it is.
    fn settle(&mut self, peer: Rank) {
        let Contact::Connected(link) = &mut self.contacts[peer] else { return };
        while let Some((work, result)) = link.poll() {
            let (done, result) = match result {
                Ok(Ended::Sent) => (Done::Sent, Ok(())),
                Ok(Ended::Written) => (Done::Written, Ok(())),
                Ok(Ended::Read | Ended::Atomic(_)) => (Done::Read, Ok(())),
                Err(NotDone::Flushed | NotDone::NoRequests) => (Done::Sent, Err(Fault::PeerGone(peer))),
            };
            self.ended.push_back(Completion { work, done, result });
        }
        if link.connection.failure().is_some() {
            link.send(&self.regions); // the Terminate, if there is one
        }
        if let Some(failure) = link.connection.failure() {
            let is_clean = matches!(failure, crate::stack::Failure::Closed);
            let text = format!("rank {peer}: {failure}");
            if let Some(id) = link.connection.unfinished()
                && let Some(buffer) = self.host.filling.remove(&id)
            {
                self.host.free.push_front(buffer);
            }
            let _ = epoll::delete(&self.epoll, link.socket());
            self.contacts[peer] = Contact::Gone;
            if !is_clean {
                self.fault.get_or_insert(Fault::Device(text));
            }
        }
    }

    /// There is no way to a peer.
    fn lose(&mut self, peer: Rank, why: &Fault) {
        if let Contact::Begun(waiting) | Contact::Expected(waiting) =
            std::mem::replace(&mut self.contacts[peer], Contact::Gone)
        {
            for (posted, _) in waiting {
                let result = Err(why.clone());
                self.ended.push_back(Completion { work: posted.work, done: Done::Sent, result });
            }
        }
        self.fault.get_or_insert(why.clone());
    }

    /// Asks the kernel what there is, and deals with it.
    fn look(&mut self) {
        if !self.stalled.is_empty() && !self.host.free.is_empty() {
            for peer in std::mem::take(&mut self.stalled) {
                self.serve(peer);
            }
        }
        self.quiet = self.quiet.saturating_add(1);
        if self.quiet > QUIET && !self.quiet.is_multiple_of(SOME) {
            return;
        }
        let mut events: Vec<epoll::Event> = Vec::with_capacity(32);
        let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        if epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&soon)).is_err() {
            return;
        }
        for event in events {
            self.quiet = 0;
            match event.data.u64() {
                LISTENER => self.accept(),
                name if name >= MEETING => self.look_at(name),
                peer => {
                    self.serve(peer as Rank);
                    self.send(peer as Rank);
                }
            }
        }
    }

    fn post(&mut self, to: Rank, parts: &[Local], work: u64, what: Work) -> Result<bool, Fault> {
        let len: usize = parts.iter().map(|part| part.span.len).sum();
        if len > LONGEST {
            return Err(Fault::Device(format!("a transfer of {len} bytes; {LONGEST} are the most")));
        }
        if matches!(self.contacts[to], Contact::None) {
            self.begin(to)?;
        }
        let posted = Posted { work, payload: Payload::of(parts) };
        match &mut self.contacts[to] {
            Contact::Begun(waiting) | Contact::Expected(waiting) => {
                if waiting.len() >= DEPTH {
                    return Ok(false);
                }
                waiting.push_back((posted, what));
                Ok(true)
            }
            Contact::Connected(link) => {
                if link.post(posted, what).is_some() {
                    return Ok(false);
                }
                self.send(to);
                Ok(true)
            }
            Contact::None | Contact::Gone => Err(Fault::PeerGone(to)),
        }
    }
}

fn len_of(parts: &[Local]) -> u32 {
    parts.iter().map(|part| part.span.len).sum::<usize>() as u32
}

/// Makes a socket ready for use.
fn prepare(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)
}

/// A socket that connects without blocking.
fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{self, SocketFlags, SocketType};
    let family = if address.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    match net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let socket = TcpStream::from(socket);
    prepare(&socket)?;
    Ok(socket)
}

/// Random bytes.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        at += rustix::rand::getrandom(&mut bytes[at..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
