//! Processes of other jobs. They are no ranks of this one: each is met by its card, and is a peer behind the ranks of
//! the job from then on.
//!
//! Both sides of a connection know the key of the one that is asked: it stands in its card, which only those are
//! given who may connect. Who asks and is not known yet is held until he is introduced ([`Rnic::introduce`]) or
//! turned away: others may have been told of a meeting before this process is.

use super::greeting::{self, Secret};
use super::meeting::{self, Meeting};
use super::{Contact, Door, Rnic, connect, random};
use crate::stack::{Proposal, Start};
use fabric::{Fault, Rank};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Who asks and is not known yet: so many wait at most.
const HELD: usize = 1024;
/// How long a process that has closed its connection may be thought to have parted as it should: the messages by which
/// it has may still be with others.
const DOUBT: Duration = Duration::from_secs(2);

/// What a process is known by in other jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Card {
    /// Its job.
    pub job: [u8; 16],
    /// Its rank there.
    pub rank: u32,
    /// Where it listens.
    pub address: SocketAddr,
    /// Who connects to it must know this.
    pub key: Secret,
}

impl Card {
    /// Number of words that say it.
    pub const WORDS: usize = 7;

    /// The card in words.
    pub fn to_words(&self) -> [u64; Card::WORDS] {
        let halves = |bytes: [u8; 16]| {
            let number = u128::from_be_bytes(bytes);
            [(number >> 64) as u64, number as u64]
        };
        let [job, key] = [self.job, self.key].map(halves);
        let place = match self.address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let place = halves(place.octets());
        let rest = u64::from(self.rank) << 32 | u64::from(self.address.port());
        [job[0], job[1], key[0], key[1], place[0], place[1], rest]
    }

    /// The card that these words say.
    pub fn from_words(words: [u64; Card::WORDS]) -> Card {
        let whole = |at: usize| (u128::from(words[at]) << 64 | u128::from(words[at + 1])).to_be_bytes();
        let ip = Ipv6Addr::from(whole(4)).to_canonical();
        let address = SocketAddr::new(ip, words[6] as u16);
        Card { job: whole(0), key: whole(2), rank: (words[6] >> 32) as u32, address }
    }

    /// Who it is, whatever else is known.
    fn name(&self) -> ([u8; 16], u32) {
        (self.job, self.rank)
    }
}

/// What is known of processes of other jobs.
#[derive(Default)]
pub struct Guests {
    own: Option<Card>,
    known: HashMap<Rank, Guest>,
    by_name: HashMap<([u8; 16], u32), Rank>,
    held: Vec<Held>,
    /// Ports at which strangers may ask.
    ports: HashSet<u32>,
    /// Peers that this process tries to reach, and why that has failed.
    trials: HashMap<Rank, Option<String>>,
}

struct Guest {
    card: Card,
    /// Whether it may go without a word.
    is_parted: bool,
    /// When it has gone all the same.
    closed: Option<Instant>,
}

/// Who has asked before he was introduced.
struct Held {
    asker: Asker,
    meeting: Meeting,
    start: Start,
    early: Vec<u8>,
}

/// Who asks for a connection, and by which of the ports of this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asker {
    /// Who it is; the key is not told.
    pub card: Card,
    /// The number of the port, 0 if he has been introduced.
    pub port: u32,
}

impl Guests {
    /// The key by which those are known that ask this process.
    pub fn own(&self) -> Option<&Card> {
        self.own.as_ref()
    }

    fn card(&self, peer: Rank) -> Option<&Card> {
        self.known.get(&peer).map(|guest| &guest.card)
    }

    /// Whether a guest that this process and which asks at once: its own connection stays if so.
    pub fn is_first(&self, peer: Rank) -> Option<bool> {
        Some(self.own.as_ref()?.name() < self.card(peer)?.name())
    }

    /// Whether one who is not known may ask there: others may have been told of a meeting before.
    fn is_open(&self, port: u32) -> bool {
        port == 0 || self.ports.contains(&port)
    }

    /// Takes note that a guest has closed its connection; whether it was one.
    pub fn has_closed(&mut self, peer: Rank) -> bool {
        let guest = self.known.get_mut(&peer);
        guest.map(|guest| guest.closed = Some(Instant::now())).is_some()
    }

    /// Whether a guest has gone and has not parted.
    pub fn any_missing(&self) -> bool {
        self.known.values().any(|guest| guest.closed.is_some() && !guest.is_parted)
    }

    /// The first that is missing for longer than can be doubted.
    pub fn missing(&self) -> Option<Rank> {
        let is_missing =
            |guest: &Guest| !guest.is_parted && guest.closed.is_some_and(|closed| closed.elapsed() > DOUBT);
        self.known.iter().find(|(_, guest)| is_missing(guest)).map(|(peer, _)| *peer)
    }
}

impl Rnic {
    /// From here on processes of other jobs may connect to this one, which is `rank` of `job`, if they know its card.
    pub fn receive_guests(&mut self, job: [u8; 16], rank: u32) -> Result<Card, String> {
        if let Some(card) = self.guests.own {
            return Ok(card);
        }
        let Door::Connections(listener) = &self.door else {
            return Err("processes of other jobs are reached over TCP alone (TERN_TRANSPORT=rc)".into());
        };
        let address =
            listener.local_addr().map_err(|e| format!("cannot tell where this rank listens: {e}"))?;
        let key = random().map_err(|e| format!("random numbers: {e}"))?;
        let card = Card { job, rank, address, key };
        self.guests.own = Some(card);
        Ok(card)
    }

    /// What all processes call a peer that has been introduced.
    pub fn name_of(&self, peer: Rank) -> ([u8; 16], u32) {
        self.guests.card(peer).expect("it has been introduced").name()
    }

    /// The peer with this card, behind all that are known if it is new.
    pub fn introduce(&mut self, card: &Card) -> Rank {
        if let Some(peer) = self.guests.by_name.get(&card.name()).copied() {
            let guest = self.guests.known.get_mut(&peer).expect("it has a name");
            guest.is_parted = false;
            if card.key != [0; 16] {
                guest.card = *card;
                self.addresses[peer] = card.address;
            }
            return peer;
        }
        let peer = self.contacts.len();
        self.contacts.push(Contact::None);
        self.addresses.push(card.address);
        self.guests.by_name.insert(card.name(), peer);
        self.guests.known.insert(peer, Guest { card: *card, is_parted: false, closed: None });
        while let Some(at) = self.guests.held.iter().position(|held| held.asker.card.name() == card.name()) {
            let held = self.guests.held.remove(at);
            self.asked(peer, held.meeting, &held.start, &held.early);
        }
        peer
    }

    /// The card of a peer that is none of the ranks of the job.
    pub fn guest(&self, peer: Rank) -> Option<&Card> {
        self.guests.card(peer)
    }

    /// Who asks at this port and waits to be introduced.
    pub fn asker(&self, port: u32) -> Option<Card> {
        self.guests
            .held
            .iter()
            .map(|held| held.asker)
            .find(|asker| asker.port == port)
            .map(|asker| asker.card)
    }

    /// Strangers may ask at this port.
    pub fn open_port(&mut self, port: u32) {
        self.guests.ports.insert(port);
    }

    /// Turns away who waits at this port, or will ask there.
    pub fn close_port(&mut self, port: u32) {
        self.guests.ports.remove(&port);
        while let Some(at) = self.guests.held.iter().position(|held| held.asker.port == port) {
            let mut held = self.guests.held.remove(at);
            held.meeting.frames.answer(Proposal::reject(&held.start, meeting::CLOSED));
        }
    }

    /// Tries to connect to a guest, at one of its ports. Ask [`Rnic::is_reached`] what has become of it.
    pub fn reach(&mut self, peer: Rank, port: u32) -> Result<(), String> {
        if matches!(self.contacts[peer], Contact::None) {
            self.guests.trials.insert(peer, None);
            self.begin_at(peer, port).map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }

    /// Whether a guest is connected; an error says why it cannot be reached.
    pub fn is_reached(&mut self, peer: Rank) -> Result<bool, String> {
        match &self.contacts[peer] {
            Contact::Connected(_) => {
                self.guests.trials.remove(&peer);
                Ok(true)
            }
            Contact::Gone => Err("it has ended".into()),
            _ => match self.guests.trials.get_mut(&peer).and_then(Option::take) {
                Some(why) => {
                    self.guests.trials.remove(&peer);
                    Err(why)
                }
                None => Ok(false),
            },
        }
    }

    /// Takes note why a guest cannot be reached; whether it was tried, so that it is known.
    pub(super) fn trial_failed(&mut self, peer: Rank, why: &str) -> bool {
        let Some(trial) = self.guests.trials.get_mut(&peer) else { return false };
        *trial = Some(why.into());
        self.contacts[peer] = Contact::None;
        self.has_news = true;
        true
    }

    /// Gives up to reach a guest.
    pub fn give_up(&mut self, peer: Rank) {
        self.guests.trials.remove(&peer);
        self.meetings.retain(|_, meeting| meeting.to != Some(peer));
        if matches!(self.contacts[peer], Contact::Begun(_)) {
            self.contacts[peer] = Contact::None;
        }
    }

    /// A guest may go without a word, or not.
    pub fn part(&mut self, peer: Rank, is_parted: bool) {
        if let Some(guest) = self.guests.known.get_mut(&peer) {
            guest.is_parted = is_parted;
        }
    }

    /// Whether a peer may go and leave work undone.
    pub fn may_leave(&self, peer: Rank) -> bool {
        self.guests.known.contains_key(&peer)
    }

    /// Begins to connect to a guest.
    pub(super) fn begin_at(&mut self, peer: Rank, port: u32) -> Result<(), Fault> {
        let address = self.addresses[peer];
        let fail = |e: String| Fault::Device(format!("cannot connect to {address}: {e}"));
        let (Some(own), Some(card)) = (&self.guests.own, self.guests.card(peer)) else {
            return Err(fail("it is no process of another job".into()));
        };
        let nonce: [u8; 16] = random().map_err(|e| fail(e.to_string()))?;
        let (private, key) = (greeting::guest_request(own, card, port, self.integrity, nonce), card.key);
        let socket = connect(address).map_err(|e| fail(e.to_string()))?;
        self.meet(Meeting::with_guest(socket, peer, private, key, self.integrity)).map_err(fail)?;
        self.contacts[peer] = Contact::Begun(std::collections::VecDeque::new());
        Ok(())
    }

    /// A process of another job asks.
    pub(super) fn asked_by_guest(
        &mut self,
        asker: Asker,
        mut meeting: Meeting,
        start: Start,
        early: Vec<u8>,
    ) {
        match self.guests.by_name.get(&asker.card.name()).copied() {
            Some(peer) => self.asked(peer, meeting, &start, &early),
            None if self.guests.held.len() < HELD && self.guests.is_open(asker.port) => {
                self.guests.held.push(Held { asker, meeting, start, early });
                self.has_news = true;
            }
            None => drop(meeting.frames.answer(Proposal::reject(&start, meeting::CLOSED))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_survives_its_words() {
        for address in ["127.0.0.1:80", "[2001:db8::7]:65535"] {
            let card = Card { job: [7; 16], rank: u32::MAX, address: address.parse().unwrap(), key: [9; 16] };
            assert_eq!(Card::from_words(card.to_words()), card);
        }
    }
}
