//! Reliable datagrams (RD): one socket of this rank for all its peers, around the pairs of [`crate::stack::rd`].
//!
//! Nothing is set up: both sides know the id of each other's datagrams from the secret of the job, and a peer costs memory
//! when something is posted to it or comes from it. The socket is asked directly, not through epoll, which is only there
//! to sleep on; a timer beside it ends the sleep when something is due.

use super::alarm::Alarm;
use super::alone::Source;
use super::burst::Burst;
use super::greeting::{self, Secret};
use super::outbox::Outbox;
use super::postings::{Posted, Postings};
use super::seal::{DatagramSeals, Integrity, TRAILER_LEN};
use super::talk::Talk;
use super::{Contact, DEPTH, Door, LINGER, Rnic};
use crate::stack::Work;
use crate::stack::rd::{Pair, PairSettings};
use fabric::verbs::FIRST_BYTES;
use fabric::{Completion, Done, Fault, Rank};
use rustix::net::sockopt;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::datagram::{self, Head};

/// What the kernel is asked to keep for this rank while it computes, and of what it sends.
pub const BUFFER_BYTES: usize = 4 << 20;
/// Longest datagram where the network would take a longer one: what the kernel keeps is counted by datagrams, too.
pub const DATAGRAM_MAX: usize = 16 << 10;
/// The heads of an IPv4 packet, of an IPv6 packet, and of UDP.
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// What every host of the internet takes, in case the kernel does not tell (RFC 791, RFC 8200 section 5).
const MTU_LEAST: usize = 576;
const MTU_LEAST_6: usize = 1280;
/// Datagrams taken in for one look: what is due to be sent waits for it.
const READS: usize = 64;
/// Requests of a peer, and to it, under way.
const REQUESTS: usize = 64;
const ID: &[u8] = b"reliable datagrams";

/// What all pairs have in common.
pub struct Datagrams {
    pub(super) talk: Talk,
    /// Where peers knock (`watch.rs`): the same port of TCP.
    door: TcpListener,
    /// Ends a sleep when something is due.
    pub(super) alarm: Alarm,
    secret: Secret,
    /// What each datagram ends with.
    trailer_len: usize,
    /// What datagrams to and from each rank are known by.
    ids: Box<[(u64, u64)]>,
    /// Ranks there is a pair with.
    peers: Vec<Rank>,
    /// Nothing is due before.
    pub(super) due_ns: u64,
    outbox: Outbox,
    /// Ranks of which something has come in this look.
    heard: Vec<Rank>,
    /// Some wait for an acknowledgement until nothing comes.
    owes: bool,
    /// Something came in the last look: more may stand behind it than one.
    comes: bool,
}

/// A pair, and what is posted to it.
#[derive(Debug)]
pub struct Peer {
    pair: Pair,
    seals: Option<Box<DatagramSeals>>,
    postings: Postings,
    /// What waits for more to leave with.
    pub burst: Burst,
    is_lost: bool,
}

/// Bytes that are copied at once of messages to one peer.
const KEPT: usize = 256 << 10;
/// How often a port that is free for UDP may be found taken for TCP.
const TRIES: u32 = 100;

/// A socket at this address, at a port that the system chooses, and a listener at the same port of TCP.
pub fn bind_with_door(address: IpAddr) -> std::io::Result<(UdpSocket, TcpListener)> {
    let mut tries = 0;
    loop {
        let socket = bind(address, 0)?;
        match TcpListener::bind(socket.local_addr()?) {
            Ok(door) => {
                door.set_nonblocking(true)?;
                return Ok((socket, door));
            }
            Err(error) if error.kind() != ErrorKind::AddrInUse || tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
    }
}

/// A socket at this address and port; 0: one that the system chooses.
pub fn bind(address: IpAddr, port: u16) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((address, port))?;
    socket.set_nonblocking(true)?;
    // As much as it gets: a kernel that gives less loses more, which comes again.
    let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
    let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES);
    Ok(socket)
}

/// What of [`BUFFER_BYTES`] the kernel grants a socket for datagrams here: to receive, to send.
pub fn granted_bytes(address: IpAddr) -> std::io::Result<[usize; 2]> {
    let socket = bind(address, 0)?;
    // It counts what it needs beside the payload as well, and tells twice what was asked (socket(7)).
    let both = [sockopt::socket_recv_buffer_size(&socket)?, sockopt::socket_send_buffer_size(&socket)?];
    Ok(both.map(|told| told / 2))
}

impl Datagrams {
    pub fn new(
        (socket, door): (UdpSocket, TcpListener),
        (me, secret, integrity): (Rank, Secret, Integrity),
        size: usize,
        epoll: &Arc<OwnedFd>,
    ) -> std::io::Result<Datagrams> {
        let mut talk = Talk::joining(socket);
        talk.heard_by(epoll.clone(), 0)?;
        let alarm = Alarm::new(epoll, super::ALARM)?;
        let id = |from, to| greeting::datagram_id(&secret, ID, from, to);
        Ok(Datagrams {
            outbox: Outbox::new(&mut talk),
            talk,
            door,
            alarm,
            secret,
            trailer_len: if integrity == Integrity::Mac { TRAILER_LEN } else { 0 },
            ids: (0..size).map(|rank| (id(me, rank), id(rank, me))).collect(),
            peers: Vec::new(),
            due_ns: u64::MAX,
            heard: Vec::new(),
            owes: false,
            comes: false,
        })
    }

    /// What datagrams with this peer are sealed by, if they are.
    fn seals(&self, me: Rank, peer: Rank) -> Option<Box<DatagramSeals>> {
        (self.trailer_len > 0).then(|| Box::new(DatagramSeals::new(&self.secret, ID, me, peer)))
    }

    /// Where peers knock.
    pub fn door(&self) -> &TcpListener {
        &self.door
    }
}

impl Peer {
    /// Whether nothing more can be posted.
    pub fn is_gone(&self) -> bool {
        self.pair.failure().is_some()
    }

    /// Posts work; false if there is no room.
    pub fn post(&mut self, mut posted: Posted, work: Work) -> bool {
        posted.is_message = matches!(work, Work::Send { .. });
        let is_posted = self.pair.post(self.postings.next(), work);
        if is_posted {
            self.burst.posted_bytes(posted.payload.len());
            self.postings.push(posted);
        }
        is_posted
    }
}

/// The longest datagram that the way to this address takes.
pub fn datagram_max(address: SocketAddr) -> usize {
    let (any, least, head): (IpAddr, _, _) = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), MTU_LEAST, IPV4),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), MTU_LEAST_6, IPV6),
    };
    let probe = UdpSocket::bind((any, 0)).and_then(|probe| {
        probe.connect(address)?;
        Ok(if address.is_ipv4() { sockopt::ip_mtu(&probe)? } else { sockopt::ipv6_mtu(&probe)? })
    });
    (probe.map_or(least, |mtu| mtu as usize).max(least) - head - UDP).min(DATAGRAM_MAX)
}

impl Rnic {
    /// Time, as the pairs know it.
    pub(super) fn clock_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Makes a pair with a peer.
    pub(super) fn pair(&mut self, peer: Rank) {
        let Door::Datagrams(datagrams) = &self.door else { return };
        let seals = datagrams.seals(self.me, peer);
        self.pair_sealed(peer, seals);
    }

    fn pair_sealed(&mut self, peer: Rank, seals: Option<Box<DatagramSeals>>) {
        let Door::Datagrams(datagrams) = &mut self.door else { return };
        let datagram_max = datagram_max(self.addresses[peer]) - datagrams.trailer_len;
        let pair = Pair::new(PairSettings {
            rank: self.me as u32,
            id: datagrams.ids[peer].0,
            datagram_max,
            first: 0,
            depth: DEPTH,
            requests: REQUESTS,
            domain: 0,
        });
        datagrams.peers.push(peer);
        let (postings, burst) = (Postings::default(), Burst::default());
        let peer_of = Peer { pair, seals, postings, burst, is_lost: false };
        self.contacts[peer] = Contact::Paired(Box::new(peer_of));
    }

    /// Sends what there is for a peer, and tells what has ended.
    pub(super) fn send_datagrams(&mut self, peer: Rank) {
        let now_ns = self.clock_ns();
        let Door::Datagrams(datagrams) = &mut self.door else { return };
        let Contact::Paired(contact) = &mut self.contacts[peer] else { return };
        let Peer { pair, seals, postings, burst, .. } = &mut **contact;
        let Datagrams { talk, outbox, .. } = &mut **datagrams;
        burst.sent();
        let mut begins = pair.is_acknowledged();
        let mut next = |out: &mut Vec<u8>| {
            let begin = out.len();
            let is_one = pair.transmit(now_ns, &self.regions, |fpdu| postings.payload(fpdu), out);
            if is_one && let Some(seals) = seals {
                seals.seal.datagram(out, begin);
            }
            is_one
        };
        while outbox.add(talk, self.addresses[peer], &mut next) {
            if begins && outbox.len() >= FIRST_BYTES {
                outbox.send(talk);
                begins = false;
            }
        }
        // What the socket does not take is lost as on the way, and comes again by the same rules.
        outbox.send(talk);
        datagrams.due_ns = datagrams.due_ns.min(pair.timeout_ns().unwrap_or(u64::MAX));
        self.settle_pair(peer);
    }

    /// Asks a peer of which nothing was heard for long for an answer; whether one is due already.
    pub(super) fn asks_silent(&mut self, peer: Rank) -> bool {
        let Contact::Paired(contact) = &mut self.contacts[peer] else { return false };
        let is_due = contact.pair.timeout_ns().is_some();
        let now_ns = self.start.elapsed().as_nanos() as u64;
        contact.pair.probe(now_ns);
        self.send_datagrams(peer);
        is_due
    }

    /// There is no way to a peer any more.
    pub(super) fn lose_pair(&mut self, peer: Rank) {
        let Contact::Paired(contact) = &mut self.contacts[peer] else { return };
        contact.pair.give_up();
        self.settle_pair(peer);
    }

    /// Tells what has ended of what was posted to a peer, and that it is gone if it is.
    fn settle_pair(&mut self, peer: Rank) {
        if let Contact::Paired(contact) = &mut self.contacts[peer]
            && !contact.is_lost
            && let Some(failure) = contact.pair.failure()
        {
            contact.is_lost = true;
            self.watch.lost(peer, Fault::PeerLost(peer, failure.to_string()));
            let unfinished = contact.pair.unfinished();
            self.give_back(unfinished);
        }
        let start = self.start;
        while let Contact::Paired(contact) = &mut self.contacts[peer]
            && let Some(ended) = contact.pair.poll()
        {
            let clock_ns = || start.elapsed().as_nanos() as u64;
            if let Some((work, result)) = contact.postings.ended(ended.id, ended.result, clock_ns) {
                self.tell(peer, work, result);
            }
        }
        if let Contact::Paired(contact) = &mut self.contacts[peer] {
            contact.postings.give_back();
        }
    }

    /// This rank waits: messages that wait to be acknowledged are copied, for their posters may wait for just that, and a peer that computes says
    /// nothing. `early` in a wait those of peers that were late before.
    pub(super) fn keep_unacknowledged(&mut self, early: bool) {
        let Door::Datagrams(datagrams) = &self.door else { return };
        let now_ns = self.clock_ns();
        for peer in &datagrams.peers {
            if let Contact::Paired(contact) = &mut self.contacts[*peer]
                && !contact.is_lost
            {
                let sent = |work| Completion { work, done: Done::Sent, result: Ok(()) };
                let postings = &mut contact.postings;
                postings.keep_first(KEPT, early, now_ns, |work| self.ended.push_back(sent(work)));
            }
        }
    }

    /// Goes on with messages that waited for receive buffers.
    pub(super) fn resume(&mut self, peer: Rank) {
        let Contact::Paired(contact) = &mut self.contacts[peer] else { return };
        contact.pair.resume(&mut self.regions, &mut self.host);
        let is_waiting = contact.pair.is_waiting();
        self.taken_in(peer, is_waiting);
        self.send_datagrams(peer);
    }

    /// Takes in what has come, sends what that asks for, and deals with what is due.
    pub(super) fn look_at_datagrams(&mut self, asks_all: bool) {
        let Door::Datagrams(datagrams) = &self.door else { return };
        let reads = if datagrams.comes { READS } else { 1 };
        let (mut room, mut has_come) = (std::mem::take(&mut self.room), false);
        for _ in 0..reads {
            let Door::Datagrams(datagrams) = &mut self.door else { break };
            let Ok((got, _)) = datagrams.talk.receive(&mut room, asks_all) else { break };
            has_come = true;
            let trailer_len = datagrams.trailer_len;
            let mut rest = &room[..got];
            while let Some(len) = datagram::length(rest)
                && let Some((one, behind)) = rest.split_at_checked(len + trailer_len)
            {
                self.take_datagram(one);
                rest = &behind[datagram::padding(behind)..];
            }
        }
        self.room = room;
        if has_come {
            self.came();
            self.speaks(Source::Datagrams);
        }
        let Door::Datagrams(datagrams) = &mut self.door else { return };
        datagrams.comes = has_come;
        let mut heard = std::mem::take(&mut datagrams.heard);
        let owed = datagrams.owes;
        if owed && !has_come {
            self.acknowledge(Pair::owes_answer);
        }
        let mut owes = owed && has_come;
        for peer in heard.drain(..) {
            self.send_datagrams(peer);
            owes |= matches!(&self.contacts[peer], Contact::Paired(contact) if contact.pair.owes_answer());
        }
        let now_ns = self.clock_ns();
        let Door::Datagrams(datagrams) = &mut self.door else { return };
        (datagrams.heard, datagrams.owes) = (heard, owes);
        datagrams.alarm.disarm(now_ns);
        if datagrams.due_ns <= now_ns {
            self.tick(now_ns);
        }
    }

    /// Deals with what is due.
    fn tick(&mut self, now_ns: u64) {
        let Door::Datagrams(datagrams) = &mut self.door else { return };
        datagrams.due_ns = u64::MAX;
        for at in 0..datagrams.peers.len() {
            let Door::Datagrams(datagrams) = &mut self.door else { return };
            let peer = datagrams.peers[at];
            let Contact::Paired(contact) = &mut self.contacts[peer] else { continue };
            match contact.pair.timeout_ns() {
                Some(due_ns) if due_ns <= now_ns => {
                    contact.pair.tick(now_ns);
                    self.send_datagrams(peer);
                }
                Some(due_ns) => datagrams.due_ns = datagrams.due_ns.min(due_ns),
                None => {}
            }
        }
    }

    /// Takes in one datagram, if it is of a rank of this job.
    fn take_datagram(&mut self, one: &[u8]) {
        let now_ns = self.clock_ns();
        let Some((rank, id)) = Head::claims(one) else { return };
        let Door::Datagrams(datagrams) = &mut self.door else { return };
        let peer = rank as usize;
        if peer == self.me || datagrams.ids.get(peer).is_none_or(|(_, theirs)| *theirs != id) {
            return;
        }
        // Who has overheard an id has no pair made.
        let mut first = matches!(self.contacts[peer], Contact::None).then(|| datagrams.seals(self.me, peer));
        let seals = match (&mut first, &mut self.contacts[peer]) {
            (Some(seals), _) => seals,
            (None, Contact::Paired(contact)) => &mut contact.seals,
            _ => return,
        };
        let opened = if let Some(seals) = seals { seals.check.open(one) } else { Some(one) };
        let Some(Ok((head, content))) = opened.map(Head::decode) else {
            self.refused += 1;
            return;
        };
        if datagrams.heard.last() != Some(&peer) {
            datagrams.heard.push(peer);
        }
        self.watch.heard(peer);
        if let Some(seals) = first {
            self.watch.begin(now_ns);
            self.pair_sealed(peer, seals);
        }
        let Contact::Paired(contact) = &mut self.contacts[peer] else { return };
        // What it drops is as lost.
        let _ = contact.pair.receive(now_ns, &head, content, &mut self.regions, &mut self.host);
        let is_waiting = contact.pair.is_waiting();
        self.taken_in(peer, is_waiting);
    }

    /// Whether this rank has to look on, though all may be posted and copied: datagrams wait to leave, or to be
    /// acknowledged.
    pub(super) fn has_datagrams_under_way(&self) -> bool {
        matches!(&self.door, Door::Datagrams(datagrams) if datagrams.due_ns != u64::MAX)
    }

    /// Before this rank may sleep: acknowledgements leave.
    pub(super) fn hurry(&mut self) {
        self.acknowledge(|_| true);
    }

    /// Acknowledgements to these leave that wait for something to go with.
    fn acknowledge(&mut self, which: impl Fn(&Pair) -> bool) {
        let mut at = 0;
        while let Door::Datagrams(datagrams) = &self.door
            && let Some(peer) = datagrams.peers.get(at).copied()
        {
            at += 1;
            if let Contact::Paired(contact) = &mut self.contacts[peer]
                && which(&contact.pair)
                && contact.pair.hurry()
            {
                self.send_datagrams(peer);
            }
        }
    }

    /// Stays until the peers have all that was sent to them, and know it; of those, too, who are heard of only now.
    pub(super) fn leave(&mut self) {
        let (start, mut asked) = (Instant::now(), 0);
        while start.elapsed() < LINGER {
            let Door::Datagrams(datagrams) = &self.door else { return };
            let peers = datagrams.peers.clone();
            for peer in &peers[asked..] {
                let now_ns = self.clock_ns();
                if let Contact::Paired(contact) = &mut self.contacts[*peer] {
                    contact.pair.leave(now_ns);
                    self.send_datagrams(*peer);
                }
            }
            asked = peers.len();
            let has_left = |peer: &Rank| match &self.contacts[*peer] {
                Contact::Paired(contact) => contact.pair.has_left(),
                _ => true,
            };
            if peers.iter().all(has_left) {
                return;
            }
            self.look_at_datagrams(true);
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}
