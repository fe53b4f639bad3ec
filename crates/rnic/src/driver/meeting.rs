//! How two ranks come to a connection: the set-up of MPA over a socket that does not block.
//!
//! Either may begin, on first use. Where both do at once the one of the lower rank stays: the higher one takes that,
//! and gives its own up; the lower one refuses the other's.

use super::again::{is_farewell, is_no_way};
use super::frames::Frames;
use super::greeting::{self, Secret};
use super::guests::{Asker, Card};
use super::seal::{Integrity, StreamSeals};
use super::socket::{connect, prepare, random};
use super::{Contact, Door, MEETING, Rnic, STRANGERS};
use crate::stack::{Agreed, Proposal, Side, Start};
use fabric::{Fault, Rank};
use rustix::event::epoll;
use std::collections::VecDeque;
use std::net::TcpStream;

/// What is said to a peer that is to take the connection which this rank has begun.
pub const CROSSING: &[u8] = b"crossing";
/// What is said to one that has had a connection.
pub const KNOWN: &[u8] = b"this rank has been connected before";

/// What is said to one that checks messages in another way.
pub const DIFFERS: &[u8] = b"integrity";

/// What is said to one that asks at a port where nobody is let in.
pub const CLOSED: &[u8] = b"the port is closed";

/// Set-up of one connection under way.
#[derive(Debug)]
pub struct Meeting {
    /// The socket, and what goes over it.
    pub frames: Frames,
    /// To whom, if this side began.
    pub to: Option<Rank>,
    request: Vec<u8>,
    integrity: Integrity,
    /// What a guest that was asked knows.
    key: Option<Secret>,
}

/// What has become of it.
#[derive(Debug)]
pub enum Met {
    /// It goes on.
    Waits,
    /// This side asked, and the peer has agreed; what has come behind, and how messages are sealed.
    Agreed(Agreed, Vec<u8>, Option<Box<StreamSeals>>),
    /// A rank of the job asks.
    Asked(Rank, Start, Vec<u8>),
    /// A process of another job asks.
    Guest(Asker, Start, Vec<u8>),
    /// The peer's own connection stays.
    Crossing,
    /// This side has asked, and the system knows no way to the peer now.
    NoWay,
    /// This side has asked, and the connection was closed without a word: the peer had no room, or is none.
    TurnedAway(String),
    /// It came to nothing, for this reason.
    Failed(String),
}

/// What is proposed to peers.
pub fn proposal(private: Vec<u8>, integrity: Integrity) -> Proposal {
    Proposal { crc: integrity == Integrity::Crc, ird: 64, ord: 64, private, ..Proposal::default() }
}

impl Meeting {
    /// Somebody has connected.
    pub fn with_stranger(socket: TcpStream) -> Meeting {
        Meeting::new(socket, None, Vec::new(), Integrity::Auto)
    }

    /// This rank connects to `peer`, and says this.
    pub fn with(socket: TcpStream, peer: Rank, private: Vec<u8>, integrity: Integrity) -> Meeting {
        Meeting::new(socket, Some(peer), private, integrity)
    }

    /// This process connects to one of another job, which has this key.
    pub fn with_guest(
        socket: TcpStream,
        peer: Rank,
        private: Vec<u8>,
        key: Secret,
        integrity: Integrity,
    ) -> Meeting {
        Meeting { key: Some(key), ..Meeting::new(socket, Some(peer), private, integrity) }
    }

    fn new(socket: TcpStream, to: Option<Rank>, request: Vec<u8>, integrity: Integrity) -> Meeting {
        let asks = |_| proposal(request.clone(), integrity).request();
        let frames = Frames::new(socket, to.map(asks).unwrap_or_default());
        Meeting { frames, to, request, integrity, key: None }
    }

    /// Whether a stranger has taken too long. A rank of the job answers when it looks around next, which may be
    /// after a long computation.
    pub fn is_late(&self) -> bool {
        self.to.is_none() && self.frames.is_late()
    }

    /// Looks what has come.
    pub fn look(&mut self, me: Rank, size: usize, secret: &Secret, own: Option<&Card>) -> Met {
        let side = if self.to.is_some() { Side::Reply } else { Side::Request };
        match self.frames.look(side) {
            Err(error) if self.to.is_some() && is_no_way(&error) => Met::NoWay,
            Err(error) if self.to.is_some() && is_farewell(&error) => Met::TurnedAway(error.to_string()),
            Err(error) => Met::Failed(error.to_string()),
            Ok(None) if self.is_late() => Met::Failed("a stranger that says nothing".into()),
            Ok(None) => Met::Waits,
            Ok(Some(start)) if self.to.is_some() => self.answered(&start, &self.key.unwrap_or(*secret)),
            Ok(Some(start)) => match greeting::who_asks(secret, me, size, &start.private) {
                Some(peer) => Met::Asked(peer, start, self.frames.early()),
                None => match own.and_then(|own| greeting::which_guest_asks(own, &start.private)) {
                    Some(asker) => Met::Guest(asker, start, self.frames.early()),
                    None => Met::Failed("a stranger".into()),
                },
            },
        }
    }

    fn answered(&mut self, reply: &Start, secret: &Secret) -> Met {
        if reply.rejected && reply.private == CROSSING {
            return Met::Crossing;
        }
        if reply.rejected && reply.private == CLOSED {
            return Met::Failed("the port is closed".into());
        }
        if reply.rejected && reply.private == DIFFERS {
            return Met::Failed(
                "it checks messages in another way: TERN_INTEGRITY must be the same on all ranks".into(),
            );
        }
        if !reply.rejected && !greeting::is_reply(secret, &self.request, &reply.private) {
            return Met::Failed("the answer is not that of a rank of this job".into());
        }
        let is_sealed = self.integrity == Integrity::Mac;
        let seals = || Box::new(StreamSeals::new(secret, &self.request, &reply.private, true));
        match proposal(self.request.clone(), self.integrity).agree(reply) {
            Ok(agreed) => {
                let seals = is_sealed.then(seals);
                Met::Agreed(agreed, self.frames.early(), seals)
            }
            Err(why) => Met::Failed(format!("the peer refuses: {why:?}")),
        }
    }
}

impl Rnic {
    /// Begins to connect to a peer.
    pub(super) fn begin(&mut self, peer: Rank) -> Result<(), Fault> {
        if peer >= self.size {
            return self.begin_at(peer, 0);
        }
        let is_asked = self.ask(peer)?;
        self.contacts[peer] = Contact::Begun(VecDeque::new());
        if !is_asked {
            self.begin_later(peer);
        }
        Ok(())
    }

    /// Asks a rank of the job for a connection; false if there is no way to it now.
    pub(super) fn ask(&mut self, peer: Rank) -> Result<bool, Fault> {
        let address = self.addresses[peer];
        let fail = |e: String| Fault::PeerLost(peer, format!("cannot connect to {address}: {e}"));
        let socket = match connect(address) {
            Ok(socket) => socket,
            Err(error) if is_no_way(&error) => return Ok(false),
            Err(error) => return Err(fail(error.to_string())),
        };
        let nonce: [u8; 16] = random().map_err(|e| fail(e.to_string()))?;
        let private = greeting::request(&self.secret, self.me, peer, self.integrity, nonce);
        let meeting = Meeting::with(socket, peer, private, self.integrity);
        self.meet(meeting).map_err(fail)?;
        Ok(true)
    }

    /// Takes up a set-up; its name.
    pub(super) fn meet(&mut self, meeting: Meeting) -> Result<u64, String> {
        let name = MEETING + self.next_meeting;
        self.next_meeting += 1;
        self.hear(&meeting.frames.socket, name, meeting.frames.wants_room(), false)?;
        self.meetings.insert(name, meeting);
        Ok(name)
    }

    /// Lets in who has connected.
    pub(super) fn accept(&mut self) {
        self.meetings.retain(|_, meeting| !meeting.is_late());
        while let Door::Connections(listener) = &self.door
            && let Ok((socket, _)) = listener.accept()
        {
            if prepare(&socket).is_err() {
                continue;
            }
            let strangers = self.meetings.iter().filter(|(_, meeting)| meeting.to.is_none());
            // Who has said nothing for longest makes room: a rank of the job says who it is at once.
            if strangers.clone().count() >= STRANGERS + self.size
                && let Some(oldest) = strangers.map(|(name, _)| *name).min()
            {
                self.meetings.remove(&oldest);
            }
            if let Ok(name) = self.meet(Meeting::with_stranger(socket)) {
                self.look_at(name);
            }
        }
    }

    /// Looks at a set-up.
    pub(super) fn look_at(&mut self, name: u64) {
        let Some(mut meeting) = self.meetings.remove(&name) else { return };
        match meeting.look(self.me, self.size, &self.secret, self.guests.own()) {
            Met::Waits => {
                let _ = self.hear(&meeting.frames.socket, name, meeting.frames.wants_room(), true);
                self.meetings.insert(name, meeting);
            }
            Met::Agreed(agreed, early, seals) => {
                if let Some(peer) = meeting.to
                    && matches!(self.contacts[peer], Contact::Begun(_))
                {
                    self.connected(peer, meeting.frames.socket, agreed, &early, seals);
                }
            }
            Met::Asked(peer, start, early) => self.asked(peer, meeting, &start, &early),
            Met::Guest(asker, start, early) => {
                // What it sends next is heard once it is known.
                let _ = epoll::delete(&self.epoll, &meeting.frames.socket);
                self.asked_by_guest(asker, meeting, start, early);
            }
            Met::Crossing => {
                if let Some(peer) = meeting.to
                    && let Contact::Begun(waiting) = &mut self.contacts[peer]
                {
                    self.contacts[peer] = Contact::Expected(std::mem::take(waiting));
                }
            }
            Met::NoWay => match meeting.to.filter(|peer| *peer < self.size) {
                Some(peer) if matches!(self.contacts[peer], Contact::Begun(_)) => self.begin_later(peer),
                Some(_) => {}
                None => self.has_not_met(&meeting, "there is no way to it"),
            },
            Met::TurnedAway(why) => match meeting.to.filter(|peer| self.tries_again(*peer)) {
                Some(peer) => self.begin_later(peer),
                None => self.has_not_met(&meeting, &why),
            },
            Met::Failed(why) => self.has_not_met(&meeting, &why),
        }
    }

    /// A set-up has come to nothing.
    fn has_not_met(&mut self, meeting: &Meeting, why: &str) {
        let Some(peer) = meeting.to else { return };
        if !matches!(self.contacts[peer], Contact::Begun(_)) || self.trial_failed(peer, why) {
            return;
        }
        let address = self.addresses[peer];
        self.lose(peer, &Fault::PeerLost(peer, format!("cannot connect to {address}: {why}")));
    }

    /// A rank of the job asks for a connection.
    pub(super) fn asked(&mut self, peer: Rank, mut meeting: Meeting, start: &Start, early: &[u8]) {
        let refusal = match &self.contacts[peer] {
            _ if !greeting::has_integrity(&start.private, self.integrity) => Some(DIFFERS),
            Contact::None | Contact::Expected(_) => None,
            Contact::Begun(_) => {
                let mine_stays = self.guests.is_first(peer).unwrap_or(peer > self.me);
                mine_stays.then_some(CROSSING)
            }
            Contact::Connected(_) | Contact::Paired(_) | Contact::Gone => Some(KNOWN),
        };
        if let Some(why) = refusal {
            meeting.frames.answer(Proposal::reject(start, why));
            return;
        }
        let key =
            if peer < self.size { self.secret } else { self.guests.own().map_or([0; 16], |own| own.key) };
        let Ok(nonce) = random() else { return };
        let private = greeting::reply(&key, &start.private, nonce);
        let (reply, agreed) = proposal(Vec::new(), self.integrity).reply(start, &private);
        let is_sealed = self.integrity == Integrity::Mac;
        let seals = || Box::new(StreamSeals::new(&key, &start.private, &private, false));
        let seals = is_sealed.then(seals);
        if meeting.frames.answer(reply) {
            self.connected(peer, meeting.frames.socket, agreed, early, seals);
        }
    }
}
