//! Which peers have a connection: who earns one gets it, within a budget, and gives it back when it is idle
//! (`docs/protocols/hybrid.md`).
//!
//! ```text
//!            earned: Want ─▶              Want comes                all is acknowledged
//!  Datagrams ──────────────▶ Wanted ──────────────────▶ Agreed ─────────────────────────▶ Connected
//!      ▲ │                     │                          ▲                                   │
//!      │ └──── Want comes: ◀─ Want, or Refuse ────────────┘               idle, or the last message comes
//!      │                       │                                                              ▼
//!      ├◀──── Refuse comes ────┘                                                           Parting
//!      └◀── Parted has come and is sent ──────────────────────────────────────────────────────┘
//! ```
//!
//! Nothing overtakes at either switch, for nobody begins on the new way before the peer has all of the old one: before the
//! connection is used all packets are acknowledged, which they are when they are placed; before packets are used again
//! each side has sent an empty message as the last over the connection, and `Parted` says that the peer's has come.

use super::outward::Job;
use super::{RAIL, Ways, Work};
use fabric::{Completion, Done, Fault, Rank, Verbs};
use wire::packet::Opcode;

/// How often connections that are idle are looked for.
const LOOK_NS: u64 = 100_000_000;

/// How a peer is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Datagrams,
    /// This side has asked.
    Wanted,
    /// Both want it; what is under way comes first.
    Agreed,
    Connected,
    /// It ends: which last messages have been sent and have come, and which side has said that they have.
    Parting {
        sent: bool,
        came: bool,
        said: bool,
        heard: bool,
    },
}

/// What a peer was used for, and how it is reached.
#[derive(Debug, Default)]
pub(super) struct Route {
    state: State,
    /// Since the last time that a connection began or ended.
    messages: u64,
    bytes: u64,
    /// Messages after which to ask again.
    again: u64,
    /// See [`Use::datagrams`].
    datagrams: (u64, u64),
    /// Once there was talk of a connection: a job's most peers never have one.
    over: Option<Box<Over>>,
}

/// What went over a connection.
#[derive(Debug, Default)]
struct Over {
    /// Work under way.
    under_way: usize,
    /// Connections that have ended of which who posts has not been told ([`Done::Parted`]).
    untold: usize,
    used_ns: u64,
    /// Messages and bytes; connections that began, were refused, and ended.
    all: (u64, u64),
    begun: u32,
    refused: u32,
    ended: u32,
}

/// What was sent to a peer since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Use {
    /// Messages, writes and reads by datagrams, and their bytes.
    pub datagrams: (u64, u64),
    /// The same over connections.
    pub connected: (u64, u64),
    /// Connections that began, that were refused, and that were given back.
    pub begun: u32,
    /// See [`Use::begun`].
    pub refused: u32,
    /// See [`Use::begun`].
    pub ended: u32,
}

/// How a peer is reached, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Which peer.
    pub rank: Rank,
    /// Whether it has a connection at present.
    pub is_connected: bool,
    /// What was sent to it.
    pub used: Use,
    /// Packets that were sent to it again.
    pub resent: u64,
}

impl Route {
    fn over(&mut self) -> &mut Over {
        self.over.get_or_insert_default()
    }

    /// What was sent since the start.
    fn used(&self) -> Use {
        let none = Over::default();
        let Over { all, begun, refused, ended, .. } = *self.over.as_deref().unwrap_or(&none);
        Use { datagrams: self.datagrams, connected: all, begun, refused, ended }
    }

    /// Whether new work may be cut into packets.
    pub(super) fn takes_datagrams(&self) -> bool {
        matches!(self.state, State::Datagrams | State::Wanted) && self.is_told()
    }

    /// Whether new work may go over a connection.
    pub(super) fn is_connected(&self) -> bool {
        self.state == State::Connected && self.is_told()
    }

    /// Whether who posts knows of every connection that has ended: it would write to slots of one that is over.
    fn is_told(&self) -> bool {
        self.over.as_ref().is_none_or(|over| over.untold == 0)
    }

    /// Who posts has been told of the end of a connection.
    pub(super) fn tell(&mut self) {
        self.over().untold -= 1;
    }
}

impl Ways {
    /// Something was posted to a peer that goes by packets: it may have earned a connection.
    pub(super) fn used(&mut self, to: Rank, bytes: u64, now_ns: u64) {
        let (earned_messages, earned_bytes) = (self.settings.earned_messages, self.settings.earned_bytes);
        let most = self.settings.connections;
        let route = &mut self.peer(to).route;
        route.messages += 1;
        route.bytes += bytes;
        route.datagrams.0 += 1;
        route.datagrams.1 += bytes;
        let has_earned = route.messages >= earned_messages || route.bytes >= earned_bytes;
        if most == 0 || route.state != State::Datagrams || !has_earned || route.messages < route.again {
            return;
        }
        if self.connections >= most {
            self.peer(to).route.postpone();
            self.give_back_one(now_ns);
            return;
        }
        self.connections += 1;
        self.peer(to).route.state = State::Wanted;
        self.peer(to).jobs.push_back(Job::word(Opcode::Want));
    }

    /// The peer wants a connection.
    pub(super) fn want_came(&mut self, from: Rank) {
        let has_room = self.connections < self.settings.connections;
        let peer = self.peer(from);
        let is_unheard = peer.jobs.iter().any(Job::is_of_route);
        let route = &mut peer.route;
        match route.state {
            State::Wanted => route.state = State::Agreed,
            // Who has heard the last answer has left room for the next; who does not listen would fill the memory.
            State::Datagrams if is_unheard => {
                self.fail(from, "a connection is wanted before the last answer has left")
            }
            State::Datagrams if has_room => {
                route.state = State::Agreed;
                self.connections += 1;
                self.say(from, Opcode::Want);
            }
            State::Datagrams => {
                route.over().refused += 1;
                self.say(from, Opcode::Refuse);
            }
            _ => self.fail(from, "a connection is wanted that is there"),
        }
    }

    /// The peer has none to give.
    pub(super) fn refuse_came(&mut self, from: Rank) {
        let route = &mut self.peer(from).route;
        if route.state != State::Wanted {
            return self.fail(from, "a connection is refused that nobody wanted");
        }
        route.state = State::Datagrams;
        route.over().refused += 1;
        route.postpone();
        self.connections -= 1;
    }

    /// Goes on to the next state, if what that waits for is so.
    pub(super) fn turn(&mut self, to: Rank, verbs: &mut impl Verbs) -> Result<(), Fault> {
        let peer = self.peer(to);
        let is_empty = peer.jobs.is_empty() && peer.stream.is_acknowledged() && peer.reads.is_empty();
        let route = &mut peer.route;
        match &mut route.state {
            State::Agreed if is_empty => {
                route.state = State::Connected;
                route.over().begun += 1;
                route.over().used_ns = verbs.now_ns();
            }
            State::Parting { sent, came, said, .. } => {
                if !*sent && route.over.as_ref().is_none_or(|over| over.under_way == 0) {
                    *sent = match verbs.post_send(to, RAIL, &[], Work::Last.encode()) {
                        // The adapter tells of it, and it concerns nobody else.
                        Err(why) if why.lost_peer() == Some(to) => return Ok(()),
                        posted => posted?,
                    };
                    verbs.flush(to);
                }
                if *sent && *came && !*said {
                    *said = true;
                    self.say(to, Opcode::Parted);
                }
                self.part(to, verbs);
            }
            _ => {}
        }
        Ok(())
    }

    /// Work is posted to a peer over its connection: the work that the adapter is to know.
    pub(super) fn passing(&mut self, to: Rank, work: u64, bytes: u64, now_ns: u64) -> u64 {
        let index = self.passes(to, work);
        let over = self.peer(to).route.over();
        over.under_way += 1;
        over.used_ns = now_ns;
        over.all.0 += 1;
        over.all.1 += bytes;
        Work::Through(index).encode()
    }

    /// The adapter has not taken it.
    pub(super) fn not_passed(&mut self, to: Rank, work: u64, bytes: u64) {
        let Work::Through(index) = Work::decode(work) else { return };
        self.through_free.push(index);
        let over = self.peer(to).route.over();
        over.under_way -= 1;
        over.all.0 -= 1;
        over.all.1 -= bytes;
    }

    /// Work over a connection has ended.
    pub(super) fn passed(&mut self, to: Rank, verbs: &mut impl Verbs) -> Result<(), Fault> {
        self.peer(to).route.over().under_way -= 1;
        if matches!(self.peer(to).route.state, State::Parting { .. }) {
            self.turn(to, verbs)?;
        }
        Ok(())
    }

    /// There is no way to a peer any more: others may have its connection.
    pub(super) fn lose_route(&mut self, rank: Rank) {
        let route = &mut self.peer(rank).route;
        if std::mem::take(&mut route.state) != State::Datagrams {
            self.connections -= 1;
        }
    }

    /// The peer's last message over the connection has come.
    pub(super) fn last_came(&mut self, from: Rank, verbs: &mut impl Verbs) -> Result<(), Fault> {
        if self.peer(from).lost.is_some() {
            return Ok(());
        }
        let route = &mut self.peer(from).route;
        match &mut route.state {
            // The peer may have come to Connected before, and turned to leave.
            state @ (State::Connected | State::Agreed) => {
                *state = State::Parting { sent: false, came: true, said: false, heard: false };
            }
            State::Parting { came, .. } if !*came => *came = true,
            _ => self.fail(from, "a connection ends that is not there"),
        }
        self.turn(from, verbs)
    }

    /// The peer has this side's last message.
    pub(super) fn parted_came(&mut self, from: Rank, verbs: &mut impl Verbs) {
        match &mut self.peer(from).route.state {
            State::Parting { sent: true, heard, .. } => *heard = true,
            _ => return self.fail(from, "a connection has ended that was not to end"),
        }
        self.part(from, verbs);
    }

    /// If both sides know that nothing is under way, the connection is given back.
    fn part(&mut self, to: Rank, verbs: &mut impl Verbs) {
        let route = &mut self.peer(to).route;
        if !matches!(route.state, State::Parting { said: true, heard: true, .. }) {
            return;
        }
        (route.messages, route.bytes, route.again) = (0, 0, 0);
        route.state = State::Datagrams;
        route.over().ended += 1;
        route.over().untold += 1;
        self.connections -= 1;
        verbs.disconnect(to, RAIL);
        self.ended.push_back(Completion { work: 0, done: Done::Parted { from: to }, result: Ok(()) });
    }

    /// Gives back connections that are not used.
    pub(super) fn give_back_idle(&mut self, now_ns: u64, verbs: &mut impl Verbs) -> Result<(), Fault> {
        if self.connections == 0 || now_ns < self.looked_ns + LOOK_NS {
            return Ok(());
        }
        self.looked_ns = now_ns;
        let idle_ns = self.settings.idle_ns;
        for at in 0..self.known.len() {
            let to = self.known[at];
            if self.peer(to).route.is_idle(now_ns, idle_ns) {
                self.peer(to).route.leave();
            }
            if matches!(self.peer(to).route.state, State::Parting { .. }) {
                self.turn(to, verbs)?;
            }
        }
        Ok(())
    }

    /// Another peer has earned a connection: that which was not used for longest is given back, if it was not used for a
    /// while.
    fn give_back_one(&mut self, now_ns: u64) {
        let idle_ns = self.settings.idle_ns / 8;
        let peers = self.peers.iter_mut().flatten().filter(|peer| peer.route.is_idle(now_ns, idle_ns));
        if let Some(peer) = peers.min_by_key(|peer| peer.route.over.as_ref().map(|over| over.used_ns)) {
            peer.route.leave();
            self.looked_ns = 0;
        }
    }

    /// How each peer is reached that something was sent to.
    pub(super) fn standings(&self) -> impl Iterator<Item = Standing> {
        self.known.iter().filter_map(|rank| {
            let peer = self.peers[*rank].as_ref()?;
            let (is_connected, used) = (peer.route.is_connected(), peer.route.used());
            Some(Standing { rank: *rank, is_connected, used, resent: peer.stream.resent() })
        })
    }
}

impl Route {
    fn is_idle(&self, now_ns: u64, idle_ns: u64) -> bool {
        let is_idle = |over: &Over| over.under_way == 0 && over.used_ns + idle_ns <= now_ns;
        self.is_connected() && self.over.as_deref().is_some_and(is_idle)
    }

    fn leave(&mut self) {
        self.state = State::Parting { sent: false, came: false, said: false, heard: false };
    }

    /// Not asked for again before as much again was sent.
    fn postpone(&mut self) {
        self.again = 2 * self.messages.max(1);
    }
}
