//! The driver: sockets, and the memory of this process, around the state machines of [`crate::stack`]. It makes
//! [`fabric::Verbs`] of them.
//!
//! Everything happens in calls of its owner, mostly in [`Verbs::poll`]: there is no thread. Its owner sleeps on
//! [`Rnic::descriptor`] until a socket has something.

mod again;
pub mod alarm;
mod alone;
mod backlog;
mod burst;
mod datagrams;
mod frames;
pub mod greeting;
mod guests;
mod host;
pub mod knock;
mod link;
mod listening;
mod meeting;
pub mod memory;
mod options;
mod outbox;
mod port;
mod post;
mod postings;
pub mod seal;
mod socket;
mod talk;
mod unreliable;
mod verbs;
mod watch;

use crate::stack::{Agreed, Connection, Done as Ended, NotDone, Regions, SEGMENT_MAX, Settings, Work};
use again::Again;
use alone::{Alone, Source};
use burst::Burst;
pub use datagrams::{BUFFER_BYTES, granted_bytes};
use datagrams::{Datagrams, Peer};
use fabric::{Completion, Done, Fault, Nap, Rank, VerbsCaps};
pub use frames::Frames;
pub use greeting::{PROOF, Secret, datagram_id, is_proof, proof};
use guests::Guests;
pub use guests::{Asker, Card};
use host::Host;
pub use link::{Landing, Link, READ_BYTES};
pub use listening::Listening;
use meeting::Meeting;
pub use port::Port;
pub use postings::{Payload, Posted};
use rustix::event::epoll;
use rustix::io::Errno;
pub use seal::{Integrity, StreamSeals};
use socket::random;
pub use socket::{connect, connect_from, connect_to_itself, hear, prepare};
use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;
pub use talk::Talk;
use unreliable::Unreliable;
use watch::Watch;

/// The most that one work request moves: lengths have 32 bits (RFC 5040 section 4.3).
const TRANSFER: usize = u32::MAX as usize;
/// Work requests that may be outstanding to one peer.
const DEPTH: usize = 256;
/// Those that may be connected at a time and have not said who they are, beside as many as there are ranks: all may come at
/// once, and one that is closed takes its peer for lost.
const STRANGERS: usize = 64;
/// What the listener is called among what the kernel tells of; peers are called by their rank.
const LISTENER: u64 = u64::MAX;
/// What says no more than that a sleep is over: the socket for unreliable datagrams, timers.
const ALARM: u64 = u64::MAX - 1;
/// What the timer of the watch is called.
const WATCH: u64 = u64::MAX - 2;
/// Set-ups are called by this and a number.
const MEETING: u64 = 1 << 32;
/// What the kernel tells in one look, at most.
const EVENTS: usize = 32;
/// Looks in vain after which only some of them ask the kernel, and nobody is expected to speak soon.
const QUIET: u32 = 64;
const SOME: u32 = 8;
/// Looks in vain after which acknowledgements do not wait for something to go with, and timers are set.
const PATIENCE: u32 = 32;
/// The same after which messages are copied that are not acknowledged, where their peers were never seen to be late.
const PATIENT: u32 = 512;
/// Looks in vain after which a rank that may not sleep, for nothing would end that, does so for a moment all the same: who gives its core away leaves it to no
/// thread of lesser priority, and the kernel takes packets in by one.
const TIRED: u32 = 4096;
const MOMENT: std::time::Duration = std::time::Duration::from_micros(100);
/// In how many looks what has come is seen: an engine looks before it takes in what has come, and behind.
const UNSEEN: u8 = 2;
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
    /// By reliable datagrams, which need no beginning.
    Paired(Box<Peer>),
    /// It is gone.
    Gone,
}

impl Contact {
    /// Whether something that was posted could not leave: the connection is not there yet, or its socket is full. Then it is
    /// for this rank to go on with it, though the operation may be over.
    fn has_unsent(&self) -> bool {
        match self {
            Contact::Begun(waiting) | Contact::Expected(waiting) => !waiting.is_empty(),
            Contact::Connected(link) => link.asks_for_room,
            _ => false,
        }
    }
}

/// Where peers come in.
enum Door {
    /// A connection over TCP with each (RC).
    Connections(TcpListener),
    /// One socket for datagrams of all (RD).
    Datagrams(Box<Datagrams>),
    /// There is only what is unreliable (UD), and where peers knock (`watch.rs`).
    Knocks(TcpListener),
}

/// One rank's adapter, in software.
pub struct Rnic {
    me: Rank,
    secret: Secret,
    integrity: Integrity,
    /// Datagrams that said they were of a rank of the job and were changed, forged or played again.
    refused: u64,
    door: Door,
    /// Unreliable datagrams beside it.
    unreliable: Option<Box<Unreliable>>,
    epoll: Arc<OwnedFd>,
    /// Number of ranks of the job.
    size: usize,
    /// Where each rank, and each guest, listens.
    addresses: Vec<SocketAddr>,
    contacts: Vec<Contact>,
    guests: Guests,
    /// Something is to be looked at that no peer has sent.
    has_news: bool,
    /// Something has come of a peer since that was asked.
    has_served: bool,
    /// Looks in which the kernel is not asked, since something has come that whoever looks has not seen yet.
    unseen: u8,
    /// The last poll gave a completion, and the next one goes on with that row. The kernel is asked where a row begins.
    in_row: bool,
    meetings: HashMap<u64, Meeting>,
    next_meeting: u64,
    again: Again,
    regions: Regions,
    host: Host,
    ended: VecDeque<Completion>,
    memory: Vec<Box<[u64]>>,
    caps: VerbsCaps,
    room: memcopy::Room,
    /// Peers of whom messages wait for a receive buffer.
    stalled: Vec<Rank>,
    quiet: u32,
    /// Whether others have the core between two looks in vain, see [`Rnic::share_core`].
    shares_core: bool,
    /// Counts looks.
    look: u32,
    /// Peers to whom something was posted that waits for more.
    waiting: Vec<Rank>,
    /// Peers to whom something was posted that could not leave, see [`Contact::has_unsent`]; some may have got it since the last look.
    unsent: Vec<Rank>,
    /// What is posted next to this peer is followed by something that is flushed.
    leads: Option<Rank>,
    alone: Alone,
    /// What is above has something due by the clock then.
    alarm_ns: u64,
    /// Something was due when the clock was set.
    is_due: bool,
    start: Instant,
    fault: Option<Fault>,
    watch: Watch,
}

/// What this rank may do until its next look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RnicNap {
    /// Look at once: what is waited for may be here already, and who gives its core away to one that computes gets it back when that
    /// has used up its time.
    Look,
    /// Let others run: something is due by the clock.
    Yield,
    /// The same for long: sleep for a moment.
    Doze,
    /// Sleep until the descriptor has something.
    Sleep,
}

impl Nap for RnicNap {
    fn take(self) {
        match self {
            RnicNap::Look => std::hint::spin_loop(),
            RnicNap::Doze => std::thread::sleep(MOMENT),
            RnicNap::Yield | RnicNap::Sleep => std::thread::yield_now(),
        }
    }

    fn sleeps(&self) -> bool {
        *self == RnicNap::Sleep
    }
}

impl Rnic {
    /// Readable when there is something to look at.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Datagrams so far that said they were of a rank of the job and were changed, forged or played again.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Has the kernel tell of a socket, by this name.
    fn hear(&self, socket: &TcpStream, name: u64, wants_room: bool, is_known: bool) -> Result<(), String> {
        hear(&self.epoll, socket, name, wants_room, is_known)
            .map_err(|e| format!("cannot watch a socket: {e}"))
    }

    fn connected(
        &mut self,
        peer: Rank,
        socket: TcpStream,
        agreed: Agreed,
        early: &[u8],
        seals: Option<Box<StreamSeals>>,
    ) {
        let settings = Settings { segment_max: SEGMENT_MAX, depth: DEPTH, ..Settings::from(agreed) };
        // That of a guest that was held is not watched any more.
        let watched = self.hear(&socket, peer as u64, false, true);
        if let Err(why) = watched.or_else(|_| self.hear(&socket, peer as u64, false, false)) {
            return self.lose(peer, &Fault::PeerLost(peer, why));
        }
        let waiting = match std::mem::take(&mut self.contacts[peer]) {
            Contact::Begun(waiting) | Contact::Expected(waiting) => waiting,
            _ => VecDeque::new(),
        };
        self.again.has_met(peer);
        self.watch.begin(self.clock_ns());
        let mut link = Box::new(Link::new(socket, Connection::new(settings), early, seals));
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
            self.note_unsent(peer);
            // Only the kernel tells of room, and only of what it tells of at all.
            self.listen_to_all();
            let Contact::Connected(link) = &self.contacts[peer] else { return };
            let heard = self.hear(link.socket(), peer as u64, wants_room, true);
            self.note(heard);
        }
        self.settle(peer);
    }

    /// What cannot be done is told with the next look.
    fn note(&mut self, done: Result<(), String>) {
        if let Err(why) = done {
            self.fault.get_or_insert(Fault::Device(why));
        }
    }

    fn note_unsent(&mut self, peer: Rank) {
        if self.contacts[peer].has_unsent() && !self.unsent.contains(&peer) {
            self.unsent.push(peer);
        }
    }

    /// What may wait for more of what is posted to a peer.
    fn burst(&mut self, peer: Rank) -> Option<&mut Burst> {
        match &mut self.contacts[peer] {
            Contact::Connected(link) => Some(&mut link.burst),
            Contact::Paired(peer) => Some(&mut peer.burst),
            _ => self.unreliable.as_mut().map(|unreliable| &mut unreliable.burst),
        }
    }

    /// Sends what waits for more.
    fn send_waiting(&mut self) {
        while let Some(peer) = self.waiting.pop() {
            self.send_what_waits(peer);
        }
        self.send_outbox();
    }

    fn send_what_waits(&mut self, peer: Rank) {
        match &self.contacts[peer] {
            Contact::Connected(link) if link.burst.is_waiting() => self.send(peer),
            Contact::Paired(pair) if pair.burst.is_waiting() => self.send_datagrams(peer),
            _ => {}
        }
    }

    /// Takes in what has come from a peer; whether anything had.
    fn serve(&mut self, peer: Rank) -> bool {
        let Contact::Connected(link) = &mut self.contacts[peer] else { return false };
        let moved = link.receive(&mut self.regions, &mut self.host, &mut self.room);
        if moved {
            self.watch.heard(peer);
        }
        let is_stalled = link.is_stalled();
        self.taken_in(peer, is_stalled);
        self.settle(peer);
        moved
    }

    /// Takes in what has waited for a receive buffer, now that there are some, and answers what was asked behind it: nothing else may come that
    /// would have that done.
    fn serve_stalled(&mut self) {
        if self.stalled.is_empty() || self.host.free.is_empty() {
            return;
        }
        for peer in std::mem::take(&mut self.stalled) {
            if self.serve(peer) {
                self.came();
            }
            self.send(peer);
            self.resume(peer);
        }
    }

    /// Tells what has come from a peer, some of which may wait for a receive buffer.
    fn taken_in(&mut self, peer: Rank, is_stalled: bool) {
        if std::mem::take(&mut self.host.is_touched) {
            self.host.touched.push(peer);
        }
        if is_stalled && !self.stalled.contains(&peer) {
            self.stalled.push(peer);
        }
        for (work, len) in self.host.arrived.drain(..) {
            let done = Done::Received { from: peer, len, datagram: false };
            self.ended.push_back(Completion { work, done, result: Ok(()) });
        }
    }

    /// Tells how work ended that was posted to a peer.
    fn tell(&mut self, peer: Rank, work: u64, result: Result<Ended, NotDone>) {
        let (done, result) = match result {
            Ok(Ended::Sent) => (Done::Sent, Ok(())),
            Ok(Ended::Written) => (Done::Written, Ok(())),
            Ok(Ended::Read | Ended::Atomic(_)) => (Done::Read, Ok(())),
            Err(NotDone::Flushed | NotDone::NoRequests) => (Done::Sent, Err(self.watch.why(peer))),
        };
        self.ended.push_back(Completion { work, done, result });
    }

    /// A receive buffer that will not be filled is free again.
    fn give_back(&mut self, unfinished: Option<u64>) {
        if let Some(buffer) = unfinished.and_then(|id| self.host.filling.remove(id)) {
            self.host.free.push_front(buffer);
        }
    }

    /// Tells what has ended of what was posted to a peer, and that it is gone if it is.
    fn settle(&mut self, peer: Rank) {
        let Contact::Connected(link) = &mut self.contacts[peer] else { return };
        let has_failed = link.connection.failure().is_some();
        if has_failed {
            link.send_last(&self.regions);
            self.note_end(peer);
        }
        while let Contact::Connected(link) = &mut self.contacts[peer]
            && let Some((work, result)) = link.poll()
        {
            self.tell(peer, work, result);
        }
        if has_failed && let Contact::Connected(link) = &mut self.contacts[peer] {
            let unfinished = link.connection.unfinished();
            let _ = epoll::delete(&self.epoll, link.socket());
            self.alone.ended(peer);
            self.contacts[peer] = Contact::Gone;
            self.give_back(unfinished);
        }
    }

    /// Takes note of who is behind a connection that has failed: a guest may have parted, and where there are datagrams
    /// beside it, one that ended in order was given back. Everybody else is lost.
    #[cold]
    fn note_end(&mut self, peer: Rank) {
        let Contact::Connected(link) = &self.contacts[peer] else { return };
        let Some(failure) = link.connection.failure() else { return };
        let is_given_back = self.unreliable.is_some() && matches!(failure, crate::stack::Failure::Closed);
        let why = link.why_ended().unwrap_or_else(|| failure.to_string());
        if self.guests.has_closed(peer) {
            self.has_news = true;
        } else if !is_given_back {
            self.watch.lost(peer, Fault::PeerLost(peer, why));
        }
    }

    /// Why nothing can be posted to a peer that is gone. A rank of the job is lost now, if it was not.
    #[cold]
    fn refusal(&mut self, peer: Rank) -> Fault {
        if peer < self.size {
            self.watch.lost(peer, Fault::PeerLost(peer, "its connection has ended".into()));
        }
        self.watch.why(peer)
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
        self.watch.lost(peer, why.clone());
    }

    /// Does what needs no news of the kernel; false if it is not to be asked in this look.
    fn is_to_ask(&mut self) -> bool {
        self.serve_stalled();
        self.send_waiting();
        if self.again.is_due(|| self.clock_ns()) {
            self.begin_again();
        }
        self.unsent.retain(|peer| self.contacts[*peer].has_unsent());
        self.look = self.look.wrapping_add(1);
        // An answer to what has come would have to wait for the kernel to say that nothing followed.
        let is_seen = self.unseen == 0;
        self.unseen = self.unseen.saturating_sub(1);
        is_seen
    }

    /// Ranks are more than cores, so that after a look in vain somebody else has the core: then a look is dear, and each asks of all
    /// peers what has come. Else most look at the one alone that speaks, or at nobody where all are silent.
    pub fn share_core(&mut self, shares: bool) {
        self.shares_core = shares;
    }

    /// Asks the kernel what there is, and deals with it.
    fn look(&mut self) {
        if !self.is_to_ask() {
            return;
        }
        self.quiet = self.quiet.saturating_add(1);
        let asks = self.shares_core || self.look.is_multiple_of(SOME);
        let is_quiet = self.quiet > QUIET;
        if self.unreliable.is_some() && (asks || !is_quiet && !self.alone.is_a_peer()) {
            self.look_at_unreliable(asks);
        }
        if !matches!(self.door, Door::Connections(_)) {
            if !is_quiet || asks {
                self.look_at_datagrams(asks);
            }
            if asks && self.clock_ns() >= self.watch.due_ns {
                self.stand_watch();
            }
            return;
        }
        let by_datagrams = self.alone.are_datagrams();
        if is_quiet || self.shares_core {
            self.several_speak();
        }
        match self.alone.peer() {
            Some(peer) => {
                if self.serve(peer) {
                    self.came();
                    self.speaks(Source::Link(peer));
                    self.send(peer);
                }
                if !asks {
                    return;
                }
            }
            None if (is_quiet || by_datagrams) && !asks => return,
            None => {}
        }
        self.ask_kernel();
    }

    /// Asks the kernel of all sockets that it tells of, and deals with what there is.
    fn ask_kernel(&mut self) {
        let mut room = [const { MaybeUninit::uninit() }; EVENTS];
        let soon = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let events = match epoll::wait(&self.epoll, &mut room, Some(&soon)) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return,
            Err(error) => {
                let why = format!(
                    "the software adapter cannot ask its sockets any more: {error}: has the program closed descriptors that are not its own?"
                );
                self.fault.get_or_insert(Fault::Device(why));
                return;
            }
        };
        if !events.is_empty() {
            self.quiet = 0;
        }
        let is_one = events.len() == 1;
        for event in events {
            match event.data.u64() {
                LISTENER => self.accept(),
                ALARM => {}
                WATCH => self.stand_watch(),
                name if name >= MEETING => self.look_at(name),
                peer => self.heard(peer as Rank, is_one),
            }
        }
    }

    /// The connection with a peer has something, or room; no other has if it is alone.
    fn heard(&mut self, peer: Rank, is_alone: bool) {
        match is_alone {
            true => self.speaks(Source::Link(peer)),
            false => self.several_speak(),
        }
        if self.serve(peer) {
            self.came();
        }
        self.send(peer);
    }

    /// Something has come of a peer.
    fn came(&mut self) {
        (self.quiet, self.has_served, self.unseen) = (0, true, UNSEEN);
    }

    /// Ends a connection over which nothing is under way. That the peer has ended it before is no fault.
    fn disconnect_from(&mut self, peer: Rank) {
        match &self.contacts[peer] {
            Contact::Connected(link) => {
                let _ = epoll::delete(&self.epoll, link.socket());
            }
            Contact::Gone => {}
            _ => return,
        }
        self.contacts[peer] = Contact::None;
        self.watch.rest(peer);
        self.waiting.retain(|rank| *rank != peer);
        self.stalled.retain(|rank| *rank != peer);
        self.alone.ended(peer);
    }
}
