//! The adapter of this process: its queue pairs, and the sockets behind them.
//!
//! Everything happens in calls of its owners, who hold its lock: programs that post and poll, and a thread
//! (`crate::thread`) that takes over where none of them looks. Numbers name everything; no pointer of a program is
//! followed here but those of memory that it has registered.

pub mod meeting;
pub mod number;
mod pair;
pub mod queues;
pub mod rc;
mod sockets;
pub mod ud;

pub use verbs_layout::constants;

pub use pair::{Pair, Request, Route, Transport};
pub use queues::{Buffer, Channel, Completions, Ended, Receives, Wish};

use constants::*;
use meeting::Meeting;
use rc::Phase;
use rnic::stack::Regions;
use rustix::event::epoll;
use rustix::io::Errno;
use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Instant;

/// Objects of one kind, by number.
#[derive(Debug)]
pub struct Table<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Keeps an object; its number.
    pub fn insert(&mut self, object: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(object);
            return number;
        }
        self.entries.push(Some(object));
        self.entries.len() as u32 - 1
    }

    /// The object of a number, if there is one.
    #[inline]
    pub fn get(&mut self, number: u32) -> Option<&mut T> {
        self.entries.get_mut(number as usize)?.as_mut()
    }

    /// Gives up an object.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let object = self.entries.get_mut(number as usize)?.take();
        if object.is_some() {
            self.free.push(number);
        }
        object
    }
}

/// Names of sockets among what the kernel tells of: queue pairs are called by their number.
const LISTENERS: u64 = 1 << 33;
const MEETINGS: u64 = 1 << 32;
const LEAVING: u64 = 1 << 34;
/// What the kernel tells in one look, at most.
const EVENTS: usize = 32;
/// Looks at one socket alone, while nobody else speaks, between two questions to the kernel.
const SOME: u32 = 16;
/// Who may be connected and has not been given to a queue pair, at a time.
const STRANGERS: usize = 256;
/// Bytes read at a time where what comes is not known to be payload.
const READ_BYTES: usize = 64 << 10;

/// See the [module](self).
pub struct Adapter {
    /// Registered memory.
    pub regions: Regions,
    /// Queue pairs.
    pub pairs: Table<Pair>,
    /// Completion queues.
    pub completions: Table<Completions>,
    /// Channels of their events.
    pub channels: Table<Channel>,
    /// Queues of receive buffers, shared or not.
    pub receives: Table<Receives>,
    /// Protection domains, with how many objects are in each.
    pub domains: Table<usize>,
    epoll: OwnedFd,
    listeners: Vec<(TcpListener, IpAddr, u16)>,
    by_number: HashMap<(IpAddr, u32), u32>,
    meetings: HashMap<u64, Meeting>,
    /// Who has asked for a queue pair that has not come so far: the meeting, and what it asks for.
    held: Vec<(u64, IpAddr, meeting::Ends)>,
    next: u64,
    leaving: Vec<(u64, Box<rnic::driver::Link>)>,
    room: Box<[u8]>,
    /// Who was heard last, while nobody else speaks.
    hot: Option<u32>,
    look: u32,
    /// Queue pairs whose messages wait for a receive buffer.
    stalled: Vec<u32>,
    start: Instant,
}

impl Adapter {
    /// An adapter without anything.
    pub fn new() -> std::io::Result<Adapter> {
        Ok(Adapter {
            regions: Regions::new(),
            pairs: Table::default(),
            completions: Table::default(),
            channels: Table::default(),
            receives: Table::default(),
            domains: Table::default(),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            listeners: Vec::new(),
            by_number: HashMap::new(),
            meetings: HashMap::new(),
            held: Vec::new(),
            next: 0,
            leaving: Vec::new(),
            room: vec![0; READ_BYTES].into(),
            hot: None,
            look: 0,
            stalled: Vec::new(),
            start: Instant::now(),
        })
    }

    /// What the thread sleeps on.
    pub fn descriptor(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.epoll)
    }

    /// Tells a completion queue of an end.
    pub fn complete(&mut self, queue: u32, ended: Ended, is_solicited: bool) {
        let Some(completions) = self.completions.get(queue) else { return };
        completions.ended.push_back(ended);
        let is_wished = match completions.wish {
            Wish::None => false,
            Wish::Next => true,
            Wish::Solicited => is_solicited || ended.status != WC_SUCCESS,
        };
        if is_wished {
            completions.wish = Wish::None;
            let (channel, address) = (completions.channel, completions.address);
            if let Some(channel) = channel.and_then(|channel| self.channels.get(channel)) {
                channel.tell(address);
            }
        }
    }

    /// Looks around once; whether anything had come.
    pub fn progress(&mut self) -> bool {
        self.look = self.look.wrapping_add(1);
        for pair in std::mem::take(&mut self.stalled) {
            self.serve(pair);
        }
        if let Some(pair) = self.hot {
            let moved = self.serve(pair);
            if !self.look.is_multiple_of(SOME) {
                return moved;
            }
        }
        let mut room = [const { MaybeUninit::uninit() }; EVENTS];
        let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let events: Vec<u64> = match epoll::wait(&self.epoll, &mut room, Some(&soon)) {
            Ok((events, _)) => events.iter().map(|event| event.data.u64()).collect(),
            Err(Errno::INTR) => return false,
            Err(error) => panic!("the adapter cannot ask its sockets any more: {error}"),
        };
        match events[..] {
            [] => {}
            [one] if one < MEETINGS => self.hot = Some(one as u32),
            _ => self.hot = None,
        }
        for name in &events {
            match *name {
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
        let now_ns = self.start.elapsed().as_nanos() as u64;
        let Some(pair) = self.pairs.get(handle) else { return false };
        let (queue, number) = (pair.receive_queue, pair.number);
        let Some(receives) = self.receives.get(pair.receives) else { return false };
        let (came, moved) = match &mut pair.transport {
            Transport::Datagrams(ud) => {
                ud.receive(pair.attr.qkey, receives, &self.regions, now_ns, &mut self.room)
            }
            Transport::Connection(rc) => {
                let Phase::Connected(link) = &mut rc.phase else { return false };
                let mut coming = rc::Coming { receives, arrivals: &mut rc.arrivals, number };
                let moved = link.receive(&mut self.regions, &mut coming, &mut self.room);
                if link.is_stalled() && !self.stalled.contains(&handle) {
                    self.stalled.push(handle);
                }
                (std::mem::take(&mut rc.arrivals.came), moved)
            }
        };
        for (ended, is_solicited) in came {
            self.complete(queue, ended, is_solicited);
        }
        self.send(handle);
        moved
    }

    /// Lets out what a connection has to send, and tells what has ended.
    pub fn send(&mut self, handle: u32) {
        let Some(pair) = self.pairs.get(handle) else { return };
        let queue = pair.send_queue;
        let Transport::Connection(rc) = &mut pair.transport else { return };
        let Phase::Connected(link) = &mut rc.phase else { return };
        link.send(&self.regions);
        let has_failed = link.connection.failure().is_some();
        if has_failed {
            link.send_last(&self.regions);
        } else if link.has_unsent() != link.asks_for_room {
            link.asks_for_room = link.has_unsent();
            let (wants, name) = (link.asks_for_room, u64::from(handle));
            let _ = sockets::watch(&self.epoll, link.socket(), name, wants, true);
        }
        let mut told = Vec::new();
        while let Some(ended) = rc.poll() {
            told.extend(ended);
        }
        let has_parted = pair::has_parted(rc);
        let why = has_failed.then(|| pair::status_of(rc));
        for ended in told {
            let status = if ended.status == WC_WR_FLUSH_ERR { why } else { None };
            self.complete(queue, Ended { status: status.unwrap_or(ended.status), ..ended }, true);
        }
        if has_failed && has_parted {
            self.parted(handle);
        } else if has_failed {
            self.fail(handle);
        }
    }

    /// The peer has given its queue pair up in good order: nothing is under way, and nobody is told before something is posted
    /// that cannot be sent.
    fn parted(&mut self, handle: u32) {
        let Some(pair) = self.pairs.get(handle) else { return };
        if let Some(socket) = pair.socket() {
            let _ = epoll::delete(&self.epoll, socket);
        }
        pair.part();
        self.hot = self.hot.filter(|hot| *hot != handle);
    }

    fn accept(&mut self, listener: usize) {
        self.meetings.retain(|_, meeting| !meeting.is_late());
        while let Ok((socket, _)) = self.listeners[listener].0.accept() {
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
        if sockets::watch(&self.epoll, &meeting.socket, name, meeting.wants_room(), false).is_ok() {
            self.meetings.insert(name, meeting);
            self.meet(name);
        }
    }

    /// Looks how far a set-up is.
    fn meet(&mut self, name: u64) {
        let Some(mut meeting) = self.meetings.remove(&name) else { return };
        match meeting.look() {
            meeting::Met::Waits => {
                let _ = sockets::watch(&self.epoll, &meeting.socket, name, meeting.wants_room(), true);
                self.meetings.insert(name, meeting);
            }
            meeting::Met::Agreed(agreed, early) => {
                if let Some(handle) = meeting.asks {
                    self.connected(handle, meeting.socket, agreed, &early);
                }
            }
            meeting::Met::Asked(ends) => {
                let Ok(local) = meeting.socket.local_addr() else { return };
                // What it sends next is heard once it is answered.
                let _ = epoll::delete(&self.epoll, &meeting.socket);
                self.held.push((name, local.ip(), ends));
                self.meetings.insert(name, meeting);
                self.answer_held();
            }
            meeting::Met::Failed => {
                if let Some(handle) = meeting.asks {
                    self.fail_with(handle, WC_RETRY_EXC_ERR);
                }
            }
        }
    }

    /// Answers those whose queue pair has come so far.
    fn answer_held(&mut self) {
        for (name, local, ends) in std::mem::take(&mut self.held) {
            let handle = self.by_number.get(&(local, ends.to)).copied();
            let peer = self.meetings.get(&name).and_then(|meeting| meeting.socket.peer_addr().ok());
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
                        let _ = sockets::watch(&self.epoll, &meeting.socket, u64::from(handle), false, false);
                        self.connected(handle, meeting.socket, agreed, &early);
                    }
                }
            }
        }
    }

    fn connected(&mut self, handle: u32, socket: TcpStream, agreed: rnic::stack::Agreed, early: &[u8]) {
        let _ = sockets::watch(&self.epoll, &socket, u64::from(handle), false, true);
        let Some(pair) = self.pairs.get(handle) else { return };
        pair.connect(socket, agreed, early);
        self.serve(handle);
    }

    /// A connection has ended: the queue pair is in error, and whatever waits is flushed.
    fn fail(&mut self, handle: u32) {
        self.fail_with(handle, WC_WR_FLUSH_ERR);
    }

    fn fail_with(&mut self, handle: u32, first: i32) {
        let Some(pair) = self.pairs.get(handle) else { return };
        let (send_queue, receive_queue) = (pair.send_queue, pair.receive_queue);
        let socket = pair.socket();
        if let Some(socket) = socket {
            let _ = epoll::delete(&self.epoll, socket);
        }
        let owns_receives = !pair.shares_receives;
        let receives = pair.receives;
        let sent = pair.give_up();
        pair.state = STATE_ERR;
        let number = pair.number;
        self.hot = self.hot.filter(|hot| *hot != handle);
        for (at, ended) in sent.into_iter().enumerate() {
            let status = if at == 0 { first } else { WC_WR_FLUSH_ERR };
            self.complete(send_queue, Ended { status, ..ended }, true);
        }
        if owns_receives && let Some(receives) = self.receives.get(receives) {
            for buffer in std::mem::take(&mut receives.free) {
                let status = WC_WR_FLUSH_ERR;
                let ended = Ended { id: buffer.id, status, opcode: OP_RECEIVE, number, ..Ended::default() };
                self.complete(receive_queue, ended, true);
            }
        }
    }
}
