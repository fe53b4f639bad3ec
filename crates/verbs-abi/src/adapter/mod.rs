//! The adapter of this process: its queue pairs, and the sockets behind them.
//!
//! Everything happens in calls of its owners, who hold its lock: programs that post and poll, and a thread
//! (`crate::thread`) that takes over where none of them looks. Numbers name everything; no pointer of a program is
//! followed here but those of memory that it has registered.

pub mod events;
mod hot;
pub mod identifiers;
pub mod meeting;
pub mod number;
mod pair;
pub mod queues;
pub mod rc;
mod sockets;
pub mod ud;

pub use verbs_layout::constants;

pub use pair::{Pair, Parts, Request, Route, Transport};
pub use queues::{Buffer, Channel, Completions, Ended, Queues, Receives, Shared, Wish};

use constants::*;
use events::Object;
use fabric::Table;
use hot::Hot;
use meeting::Meeting;
use rc::Phase;
use rnic::driver::alarm::Alarm;
use rnic::driver::{READ_BYTES, hear};
use rnic::stack::Regions;
use rustix::event::epoll;
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

/// Names of sockets among what the kernel tells of: queue pairs are called by their number.
const LISTENERS: u64 = 1 << 33;
const MEETINGS: u64 = 1 << 32;
const LEAVING: u64 = 1 << 34;
/// See [`LISTENERS`]: those of identifiers.
const CALLS: u64 = 1 << 35;
/// See [`LISTENERS`]: the time after which a peer that has gone is given up.
const GIVES_UP: u64 = 1 << 36;
/// See [`LISTENERS`]: what has become of interfaces.
const PORTS: u64 = 1 << 37;
/// What the kernel tells in one look, at most.
const EVENTS: usize = 32;
/// Looks at one socket alone, while nobody else speaks, between two questions to the kernel.
const SOME: u32 = 16;
/// Who may be connected and has not been given to a queue pair, at a time.
const STRANGERS: usize = 256;

/// See the [module](self).
pub struct Adapter {
    /// Registered memory.
    pub regions: Regions,
    /// The key and the domain of each, by the address of the program's object.
    pub registered: HashMap<usize, (u32, u32)>,
    /// Queue pairs.
    pub pairs: Table<Pair>,
    /// Completion queues, and channels of their events.
    pub queues: Queues,
    /// Queues of receive buffers, shared or not.
    pub receives: Table<Receives>,
    /// Protection domains, with how many objects are in each.
    pub domains: Table<usize>,
    /// Identifiers of connections (librdmacm).
    pub identifiers: identifiers::Identifiers,
    epoll: Arc<OwnedFd>,
    listeners: Vec<sockets::Listener>,
    by_number: HashMap<(IpAddr, u32), u32>,
    meetings: HashMap<u64, Meeting>,
    /// Who has asked for a queue pair that has not come so far: the meeting, and what it asks for.
    held: Vec<(u64, IpAddr, meeting::Ends)>,
    next: u64,
    leaving: Vec<(u64, Box<rnic::driver::Link>)>,
    room: memcopy::Room,
    /// Datagrams are put together there.
    out: Vec<u8>,
    hot: Hot,
    look: u32,
    /// Queue pairs whose messages wait for a receive buffer.
    stalled: Vec<u32>,
    /// Ends a sleep when a peer that has gone is to be given up.
    alarm: Alarm,
    /// Tells of changes of interfaces, once a device is open.
    ports: Option<OwnedFd>,
    start: Instant,
}

impl Adapter {
    /// An adapter without anything.
    pub fn new() -> std::io::Result<Adapter> {
        let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        Ok(Adapter {
            alarm: Alarm::new(&epoll, GIVES_UP)?,
            regions: Regions::new(),
            registered: HashMap::new(),
            pairs: Table::default(),
            queues: Queues::default(),
            receives: Table::default(),
            domains: Table::default(),
            identifiers: identifiers::Identifiers::default(),
            epoll,
            listeners: Vec::new(),
            by_number: HashMap::new(),
            meetings: HashMap::new(),
            held: Vec::new(),
            next: 0,
            leaving: Vec::new(),
            room: memcopy::Room::new(READ_BYTES),
            out: Vec::new(),
            hot: Hot::default(),
            look: 0,
            stalled: Vec::new(),
            ports: None,
            start: Instant::now(),
        })
    }

    /// What the thread sleeps on.
    pub fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.epoll)
    }

    /// The next look asks the kernel of all sockets, whoever is hot.
    pub fn asks_kernel(&mut self) {
        self.look = SOME - 1;
    }

    /// Looks around once; whether anything had come.
    pub fn progress(&mut self) -> bool {
        self.look = self.look.wrapping_add(1);
        for pair in std::mem::take(&mut self.stalled) {
            self.serve(pair);
        }
        if let Some(pair) = self.hot.pair() {
            let moved = self.take_in(pair, self.look.is_multiple_of(SOME));
            if moved {
                self.stays_hot();
            }
            if !self.look.is_multiple_of(SOME) {
                return moved;
            }
        }
        let mut room = [const { MaybeUninit::uninit() }; EVENTS];
        let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.epoll, &mut room, Some(&soon)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return false,
            Err(error) => panic!("the adapter cannot ask its sockets any more: {error}"),
        };
        match events {
            [] => {}
            [one] if one.data.u64() < MEETINGS => self.warms(Some(one.data.u64() as u32)),
            _ => self.warms(None),
        }
        for event in events.iter() {
            match event.data.u64() {
                GIVES_UP => self.give_up(),
                PORTS => self.look_at_ports(),
                name if name >= CALLS => self.called((name - CALLS) as u32),
                name if name >= LEAVING => self.part(name),
                name if name >= LISTENERS => self.accept((name - LISTENERS) as usize),
                name if name >= MEETINGS => self.meet(name),
                name => {
                    self.serve(name as u32);
                }
            }
        }
        !events.is_empty()
    }

    /// Takes in what has come for a queue pair, and lets out what waits; whether anything moved.
    pub fn serve(&mut self, handle: u32) -> bool {
        self.take_in(handle, true)
    }

    /// The same; of datagrams that of others than the peer that is talked to only if `asks_all`.
    fn take_in(&mut self, handle: u32, asks_all: bool) -> bool {
        let start = self.start;
        let Some(pair) = self.pairs.get(handle) else { return false };
        let (queue, number) = (pair.receive_queue, pair.number);
        let (source, is_shared) = (pair.receives, pair.shares_receives);
        let Some(receives) = self.receives.get(pair.receives) else { return false };
        let moved = match &mut pair.transport {
            Transport::Datagrams(ud) => {
                let (name, room) = (ud::name(number, pair.attr.qkey), &mut self.room[..]);
                // Which a look that finds nothing does not ask for.
                let clock = || start.elapsed().as_nanos() as u64;
                let (message, moved) = ud.receive(name, receives, &self.regions, clock, (room, asks_all));
                if !moved {
                    return false;
                }
                if let Some((ended, is_solicited)) = message {
                    self.queues.complete(queue, ended, is_solicited);
                    if ended.status != WC_SUCCESS {
                        self.fail(handle, WC_WR_FLUSH_ERR);
                    }
                }
                moved
            }
            Transport::Connection(rc) => {
                let Phase::Connected(link) = &mut rc.phase else { return false };
                let was_stalled = link.is_stalled();
                let mut coming = rc::Coming { receives, arrivals: &mut rc.arrivals, number };
                let moved = link.receive(&mut self.regions, &mut coming, &mut self.room);
                if !moved && !was_stalled && link.rests() {
                    return false;
                }
                if link.is_stalled() && !self.stalled.contains(&handle) {
                    self.stalled.push(handle);
                }
                // Of a Write nobody here is told; and of what connections say to each other before the first message, either.
                let is_first = !rc.arrivals.came.is_empty() && !rc.is_heard;
                for (ended, is_solicited) in rc.arrivals.came.drain(..) {
                    self.queues.complete(queue, ended, is_solicited);
                }
                if is_first {
                    self.heard(handle);
                }
                moved
            }
        };
        if is_shared {
            self.look_at_limit(source);
        }
        self.send(handle);
        moved
    }

    /// Lets out what a connection has to send, and tells what has ended; again, if a fence has fallen by that.
    pub fn send(&mut self, handle: u32) {
        self.send_once(handle);
        while let Some(pair) = self.pairs.get(handle)
            && let Transport::Connection(rc) = &mut pair.transport
            && rc.let_go()
        {
            self.send_once(handle);
        }
        self.look_at_drain(handle);
    }

    fn send_once(&mut self, handle: u32) {
        let Some(pair) = self.pairs.get(handle) else { return };
        // As adapters for iWARP do it, and programs of librdmacm wait for that.
        let (queue, tells_at_once) = (pair.send_queue, pair.identifier.is_some());
        let Transport::Connection(rc) = &mut pair.transport else { return };
        let Phase::Connected(link) = &mut rc.phase else { return };
        link.send(&self.regions);
        let has_failed = link.connection.failure().is_some();
        if has_failed {
            link.send_last(&self.regions);
        } else if link.has_unsent() != link.asks_for_room {
            link.asks_for_room = link.has_unsent();
            let (wants, name) = (link.asks_for_room, u64::from(handle));
            let is_known = !self.hot.comes_back(handle);
            let _ = hear(&self.epoll, link.socket(), name, wants, is_known);
        }
        let has_parted = !tells_at_once && rc.has_parted();
        // The reason is told to what was under way first; what stood behind it was not looked at any more.
        let mut why = has_failed.then(|| rc.status());
        let mut late = Vec::new();
        while let Some(ended) = rc.poll() {
            let Some(mut ended) = ended else { continue };
            if ended.status == WC_WR_FLUSH_ERR {
                if has_parted {
                    late.push(ended);
                    continue;
                }
                ended.status = why.take().unwrap_or(WC_WR_FLUSH_ERR);
            }
            self.queues.complete(queue, ended, true);
        }
        if has_parted {
            rc.keep(late);
            self.parted(handle);
        } else if has_failed {
            if let Some(kind) = rc.event(why.is_none()) {
                let owner = pair.owner;
                self.queues.tell(owner, Object::Pair(handle), kind);
            }
            self.fail(handle, WC_WR_FLUSH_ERR);
        }
    }

    /// The peer of a queue pair has gone, or cannot be reached: nobody is told before something is posted that cannot be sent, and that has been tried
    /// for a time.
    pub fn parted(&mut self, handle: u32) {
        self.cools(handle);
        let Some(pair) = self.pairs.get(handle) else { return };
        if let Some(link) = pair.link() {
            let _ = epoll::delete(&self.epoll, link.socket());
        }
        pair.part();
        let is_idle = pair.is_idle();
        if !is_idle {
            self.begin_to_give_up(handle);
        }
    }

    /// Something waits for a peer that has gone.
    fn begin_to_give_up(&mut self, handle: u32) {
        let now_ns = self.now_ns();
        if let Some(until_ns) = self.pairs.get(handle).and_then(|pair| pair.begin_to_give_up(now_ns)) {
            self.alarm.arm(until_ns, now_ns);
        }
    }

    /// Gives up the peers that have gone and were waited for long enough.
    fn give_up(&mut self) {
        let now_ns = self.now_ns();
        self.alarm.disarm(now_ns);
        let waiting: Vec<(u32, u64)> =
            self.pairs.iter().filter_map(|(handle, pair)| Some((handle, pair.gives_up_ns()?))).collect();
        for (handle, until_ns) in waiting {
            match until_ns <= now_ns {
                true => self.fail(handle, WC_RETRY_EXC_ERR),
                false => self.alarm.arm(until_ns, now_ns),
            }
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn accept(&mut self, listener: usize) {
        self.meetings.retain(|_, meeting| !meeting.is_late());
        while let Ok((socket, _)) = self.listeners[listener].socket.accept() {
            let strangers = self.meetings.values().filter(|meeting| meeting.asks.is_none()).count();
            // More than that wait for their turn no longer: closed.
            if strangers < STRANGERS && rnic::driver::prepare(&socket).is_ok() {
                self.begin(Meeting::with_stranger(socket));
            }
        }
    }

    /// Takes up a set-up.
    fn begin(&mut self, meeting: Meeting) {
        let name = MEETINGS + (self.next & (MEETINGS - 1));
        self.next += 1;
        let frames = &meeting.frames;
        if hear(&self.epoll, &frames.socket, name, frames.wants_room(), false).is_ok() {
            self.meetings.insert(name, meeting);
            self.meet(name);
        }
    }

    /// Looks how far a set-up is.
    fn meet(&mut self, name: u64) {
        let Some(mut meeting) = self.meetings.remove(&name) else { return };
        match meeting.look() {
            meeting::Met::Waits => {
                let frames = &meeting.frames;
                let _ = hear(&self.epoll, &frames.socket, name, frames.wants_room(), true);
                self.meetings.insert(name, meeting);
            }
            meeting::Met::Agreed(agreed, early) => {
                if let Some(handle) = meeting.asks {
                    self.connected(handle, meeting.frames.socket, agreed, &early);
                }
            }
            meeting::Met::Asked(ends) => {
                let Ok(local) = meeting.frames.socket.local_addr() else { return };
                // What it sends next is heard once it is answered.
                let _ = epoll::delete(&self.epoll, &meeting.frames.socket);
                self.held.push((name, local.ip(), ends));
                self.meetings.insert(name, meeting);
                self.answer_held();
            }
            meeting::Met::Failed => {
                if let Some(handle) = meeting.asks {
                    self.parted(handle);
                }
            }
        }
    }

    /// Answers those whose queue pair has come so far.
    fn answer_held(&mut self) {
        for (name, local, ends) in std::mem::take(&mut self.held) {
            let handle = self.by_number.get(&(local, ends.to)).copied();
            let peer = self.meetings.get(&name).and_then(|meeting| meeting.frames.socket.peer_addr().ok());
            let Some((handle, peer)) = handle.zip(peer) else {
                if let Some(mut meeting) = self.meetings.remove(&name) {
                    meeting.refuse();
                }
                continue;
            };
            let Some(pair) = self.pairs.get(handle) else { continue };
            match pair.expects(peer.ip(), &ends) {
                None => self.held.push((name, local, ends)),
                Some(false) => {
                    if let Some(mut meeting) = self.meetings.remove(&name) {
                        meeting.refuse();
                    }
                }
                Some(true) => {
                    let limits = pair.limits();
                    let Some(mut meeting) = self.meetings.remove(&name) else { continue };
                    if let Some((agreed, early)) = meeting.answer(limits) {
                        let socket = meeting.frames.socket;
                        let _ = hear(&self.epoll, &socket, u64::from(handle), false, false);
                        self.connected(handle, socket, agreed, &early);
                    }
                }
            }
        }
    }

    fn connected(&mut self, handle: u32, socket: TcpStream, agreed: rnic::stack::Agreed, early: &[u8]) {
        let _ = hear(&self.epoll, &socket, u64::from(handle), false, true);
        let Some(pair) = self.pairs.get(handle) else { return };
        pair.connect(socket, agreed, early, true);
        self.serve(handle);
    }

    /// A connection has ended, or the program ends it: the queue pair is in error, and whatever waits is flushed. `first` is
    /// told to what was posted first.
    pub fn fail(&mut self, handle: u32, first: i32) {
        self.cools(handle);
        let Some(pair) = self.pairs.get(handle) else { return };
        let (send_queue, receive_queue) = (pair.send_queue, pair.receive_queue);
        let owns_receives = !pair.shares_receives;
        let receives = pair.receives;
        let (sent, mut unfilled, link) = pair.give_up();
        let (owner, was_well) = (pair.owner, pair.state != STATE_ERR);
        pair.state = STATE_ERR;
        let number = pair.number;
        let identifier = pair.identifier;
        if let Some(mut link) = link {
            // What still comes is read away, or the peer would see the connection break before it has read why it ends.
            link.send_last(&self.regions);
            self.leave(link);
        }
        for (at, ended) in sent.into_iter().enumerate() {
            let status = if at == 0 { first } else { WC_WR_FLUSH_ERR };
            self.queues.complete(send_queue, Ended { status, ..ended }, true);
        }
        if owns_receives && let Some(receives) = self.receives.get(receives) {
            unfilled.extend(std::mem::take(&mut receives.free));
        }
        for buffer in unfilled {
            let status = WC_WR_FLUSH_ERR;
            let ended = Ended { id: buffer.id, status, opcode: OP_RECEIVE, number, ..Ended::default() };
            self.queues.complete(receive_queue, ended, true);
        }
        if !owns_receives && was_well {
            // It takes no more of them.
            self.queues.tell(owner, Object::Pair(handle), EVENT_QP_LAST_WQE_REACHED);
        }
        if let Some(identifier) = identifier {
            self.identifiers.parted(identifier);
        }
    }
}
