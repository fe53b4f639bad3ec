//! Whether peers that say nothing are still there.
//!
//! A rank that computes says nothing for hours, so silence alone means nothing; but the system below it answers. To a peer
//! that owes this rank something and has been silent for [`PERIOD`] it [knocks](super::knock).
//!
//! The time that TCP allows data to stay without an acknowledgement (`TCP_USER_TIMEOUT`) does not do for the connections of
//! messages: it counts the time as well in which a peer that computes has let its buffers fill.
//!
//! Connections over which nothing is under way have keep-alive for themselves. Of unreliable datagrams nothing is known but when
//! something came last: a peer that they go to is knocked at when it is silent, as one over a connection is.

use super::datagrams::Datagrams;
use super::knock::{Answer, Knock, LOST, answer_knocks};
use super::{Contact, Door, Rnic};
use fabric::{Fault, Rank};
use rustix::event::epoll;
use rustix::net::sockopt;
use rustix::time::{self, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::net::{IpAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How often it is looked who has been silent.
const PERIOD: Duration = Duration::from_secs(5);
/// Looks after which a silent peer is knocked at that owes nothing: of an idle connection the system says the same as a rule.
const SELDOM: u8 = 4;
/// Knocks that are open at a time; others wait for their turn.
const KNOCKS: usize = 64;

/// See the [module](self).
pub struct Watch {
    timer: OwnedFd,
    is_on: bool,
    /// When the next look is due, by the clock of the adapter.
    pub due_ns: u64,
    /// By rank of the job: guests are not watched.
    peers: Box<[Silence]>,
    knocks: HashMap<Rank, Knock>,
    /// Peers that were lost and not told of, and why each was.
    news: VecDeque<Rank>,
    why: HashMap<Rank, Fault>,
}

/// What was heard of a peer, and said to it.
#[derive(Clone, Copy, Default)]
struct Silence {
    /// Something has come since the last look.
    heard: bool,
    /// Something has been posted since the peer was last found to be there: of what this rank has sent, the system may
    /// still have some, whatever has come since.
    spoken: bool,
    /// Looks for which it has been silent.
    looks: u8,
}

impl Watch {
    pub fn new(epoll: &OwnedFd, ranks: usize) -> Result<Watch, rustix::io::Errno> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(epoll, &timer, epoll::EventData::new_u64(super::WATCH), epoll::EventFlags::IN)?;
        Ok(Watch {
            timer,
            is_on: false,
            due_ns: u64::MAX,
            peers: vec![Silence::default(); ranks].into(),
            knocks: HashMap::new(),
            news: VecDeque::new(),
            why: HashMap::new(),
        })
    }

    /// Something has come from this peer.
    #[inline]
    pub fn heard(&mut self, peer: Rank) {
        if let Some(silence) = self.peers.get_mut(peer) {
            silence.heard = true;
        }
    }

    /// Something was posted to this peer.
    #[inline]
    pub fn spoken(&mut self, peer: Rank) {
        if let Some(silence) = self.peers.get_mut(peer) {
            silence.spoken = true;
        }
    }

    /// There is somebody to watch from now on.
    pub fn begin(&mut self, now_ns: u64) {
        if self.is_on {
            return;
        }
        self.is_on = true;
        self.due_ns = now_ns + PERIOD.as_nanos() as u64;
        let period = Timespec { tv_sec: PERIOD.as_secs() as i64, tv_nsec: 0 };
        let every = Itimerspec { it_interval: period, it_value: period };
        time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &every).expect("the timer is open");
    }

    /// Whether there is somebody to watch.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// There is nothing to expect of this peer for now.
    pub fn rest(&mut self, peer: Rank) {
        self.knocks.remove(&peer);
    }

    /// This peer is lost.
    pub fn lost(&mut self, peer: Rank, why: Fault) {
        self.knocks.remove(&peer);
        if let Entry::Vacant(first) = self.why.entry(peer) {
            first.insert(why);
            self.news.push_back(peer);
        }
    }

    /// Why nothing can be posted to this peer.
    pub fn why(&self, peer: Rank) -> Fault {
        self.why.get(&peer).cloned().unwrap_or(Fault::PeerGone(peer))
    }

    /// Whether somebody was lost who was not told of.
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// The next peer that was lost.
    pub fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        let peer = self.news.pop_front()?;
        Some((peer, self.why(peer)))
    }
}

/// Has the system find out, of a connection over which nothing is under way, whether the other side is there.
pub fn keep_alive(socket: &TcpStream) -> std::io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, PERIOD)?;
    sockopt::set_tcp_keepintvl(socket, PERIOD)?;
    Ok(sockopt::set_tcp_keepcnt(socket, (LOST.as_secs() / PERIOD.as_secs()) as u32)?)
}

impl Rnic {
    /// Finds out who has been silent, and whether those that were are there. Due every [`PERIOD`].
    #[cold]
    pub(super) fn stand_watch(&mut self) {
        let _ = rustix::io::read(&self.watch.timer, &mut [0; 8]);
        self.watch.due_ns = self.clock_ns() + PERIOD.as_nanos() as u64;
        match &self.door {
            Door::Datagrams(datagrams) => answer_knocks(Datagrams::door(datagrams)),
            Door::Knocks(door) => answer_knocks(door),
            Door::Connections(_) => {}
        }
        // A host that does not answer takes all its ranks with it: they are found out together, and not one after the other by
        // who waits for each in turn.
        let unanswered = self.watch.knocks.iter().filter(|(_, knock)| knock.is_unanswered());
        let doubted: Vec<IpAddr> = unanswered.map(|(peer, _)| self.addresses[*peer].ip()).collect();
        for peer in 0..self.watch.peers.len() {
            let silence = &mut self.watch.peers[peer];
            if std::mem::take(&mut silence.heard) {
                silence.looks = 0;
                self.watch.knocks.remove(&peer);
                continue;
            }
            silence.looks = silence.looks.wrapping_add(1);
            let owes = silence.spoken || silence.looks.is_multiple_of(SELDOM);
            let is_due =
                owes || self.watch.knocks.contains_key(&peer) || doubted.contains(&self.addresses[peer].ip());
            let owes = match &self.contacts[peer] {
                // By unreliable datagrams only: what is above sends again what is not answered.
                Contact::None if self.has_datagrams_with(peer) => is_due,
                Contact::None | Contact::Gone => continue,
                Contact::Begun(_) | Contact::Expected(_) => true,
                Contact::Connected(_) => is_due,
                Contact::Paired(_) => self.asks_silent(peer),
            };
            if owes {
                self.knock(peer);
            }
        }
    }

    /// Knocks at a silent peer, or looks what has come of it.
    fn knock(&mut self, peer: Rank) {
        let knocks = &mut self.watch.knocks;
        if knocks.len() >= KNOCKS && !knocks.contains_key(&peer) {
            return;
        }
        let knock = knocks.entry(peer).or_default();
        match knock.answer(self.addresses[peer]) {
            Answer::Waits => {}
            Answer::There => {
                self.watch.knocks.remove(&peer);
                self.watch.peers[peer].spoken = false;
            }
            Answer::Lost(why) => self.abandon(peer, &why),
        }
    }

    /// Nothing more is expected of a peer.
    fn abandon(&mut self, peer: Rank, why: &str) {
        let fault = Fault::PeerLost(peer, format!("{} does not answer: {why}", self.addresses[peer]));
        self.watch.lost(peer, fault.clone());
        match &mut self.contacts[peer] {
            Contact::Begun(_) | Contact::Expected(_) => {
                self.meetings.retain(|_, meeting| meeting.to != Some(peer));
                self.lose(peer, &fault);
            }
            Contact::Connected(link) => {
                link.end();
                self.settle(peer);
            }
            Contact::Paired(_) => self.lose_pair(peer),
            gone @ Contact::None => *gone = Contact::Gone,
            Contact::Gone => {}
        }
    }
}
