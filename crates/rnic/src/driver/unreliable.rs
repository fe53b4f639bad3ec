//! Unreliable datagrams (UD): one socket of this rank for all, around the queue pair of [`crate::stack::ud`].
//!
//! Nothing is promised, so nothing is kept: work is complete when it is posted, and what the socket does not take is lost.
//! `proto::reliable` makes something of it that comes.

use super::alarm::Alarm;
use super::alone::Source;
use super::burst::Burst;
use super::greeting::{self, Secret};
use super::link::READ_BYTES;
use super::outbox::Outbox;
use super::seal::{DatagramSeals, Integrity, TRAILER_LEN};
use super::talk::Talk;
use super::{ALARM, Rnic, memory};
use crate::stack::ud::{Handle, QueuePair};
use fabric::{Completion, Done, Fault, Local, Rank};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::datagram::{self, CRC_LEN, HEAD_LEN, Head};
use wire::iwarp::ddp::UNTAGGED_LEN;

/// Datagrams taken in for one look.
const READS: usize = 64;
/// What surrounds the payload of a message of one datagram.
const AROUND: usize = HEAD_LEN + UNTAGGED_LEN + CRC_LEN;
const ID: &[u8] = b"unreliable datagrams";

/// A rank.
struct Known {
    /// What its datagrams are known by.
    id: u64,
    /// Where datagrams for it go, once there was one, or one has come that is its own.
    handle: Option<Handle>,
}

/// See the [module](self).
pub struct Unreliable {
    pub(super) talk: Talk,
    pub(super) alarm: Alarm,
    pair: QueuePair,
    me: Rank,
    secret: Secret,
    /// Longest datagram that the way to everybody takes.
    longest: usize,
    /// By rank: those that something was sent to, or that something has come from, be it of somebody who only says so.
    known: Vec<Option<Box<Known>>>,
    /// What each datagram ends with, and how those with each rank are sealed.
    trailer_len: usize,
    seals: BTreeMap<Rank, DatagramSeals>,
    outbox: Outbox,
    /// What waits for more to leave with, whoever it is for.
    pub burst: Burst,
    /// What the kernel gave, and which part of it waits for receive buffers.
    room: memcopy::Room,
    held: Range<usize>,
    answer: Vec<u8>,
    /// Something came in the last look: more may stand behind it than one.
    comes: bool,
}

impl Unreliable {
    pub fn new(
        socket: UdpSocket,
        (me, secret, integrity, epoll): (Rank, Secret, Integrity, &Arc<OwnedFd>),
        longest: usize,
    ) -> std::io::Result<Unreliable> {
        let mut talk = Talk::joining(socket);
        talk.heard_by(epoll.clone(), ALARM)?;
        let trailer_len = if integrity == Integrity::Mac { TRAILER_LEN } else { 0 };
        Ok(Unreliable {
            outbox: Outbox::new(&mut talk),
            burst: Burst::default(),
            room: memcopy::Room::new(READ_BYTES),
            held: 0..0,
            talk,
            alarm: Alarm::new(epoll, super::ALARM)?,
            pair: QueuePair::new(me as u32, 0),
            me,
            secret,
            longest: longest - trailer_len,
            known: Vec::new(),
            trailer_len,
            seals: BTreeMap::new(),
            answer: Vec::new(),
            comes: false,
        })
    }

    /// Longest message of one datagram.
    pub fn payload(&self) -> usize {
        self.longest - AROUND
    }

    /// Whether this is what datagrams of a rank to this one are known by.
    fn is_from(&mut self, rank: Rank, id: u64) -> bool {
        id == self.known(rank).id
    }

    fn known(&mut self, rank: Rank) -> &mut Known {
        let (secret, me) = (&self.secret, self.me);
        if rank >= self.known.len() {
            self.known.resize_with(rank + 1, || None);
        }
        let known = || Known { id: greeting::datagram_id(secret, ID, rank, me), handle: None };
        self.known[rank].get_or_insert_with(|| Box::new(known()))
    }

    /// How datagrams with a rank are sealed, if they are.
    fn seals(&mut self, rank: Rank) -> Option<&mut DatagramSeals> {
        let (secret, me) = (&self.secret, self.me);
        let seals = || DatagramSeals::new(secret, ID, me, rank);
        (self.trailer_len > 0).then(|| self.seals.entry(rank).or_insert_with(seals))
    }

    /// The first datagram of what the kernel gave, with what it ends with; behind that, what follows.
    fn first_held(&self, room: &[u8]) -> Option<usize> {
        let len = datagram::length(room)? + self.trailer_len;
        (len <= room.len()).then_some(len)
    }

    /// Whether something the kernel gave waits for receive buffers.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    fn handle(&mut self, rank: Rank) -> &mut Handle {
        if self.known(rank).handle.is_none() {
            let id = greeting::datagram_id(&self.secret, ID, self.me, rank);
            self.known(rank).handle = Some(Handle::new(id, self.longest));
        }
        self.known(rank).handle.as_mut().expect("it was made")
    }
}

impl Rnic {
    /// Whether unreliable datagrams went to a peer, or came from it.
    pub(super) fn has_datagrams_with(&self, peer: Rank) -> bool {
        let known = self.unreliable.as_ref().and_then(|unreliable| unreliable.known.get(peer)?.as_ref());
        known.is_some_and(|known| known.handle.is_some())
    }

    /// Sends what these parts make.
    pub(super) fn send_unreliable(&mut self, to: Rank, parts: &[Local]) {
        if !self.watch.is_on() {
            self.watch.begin(self.clock_ns());
        }
        self.watch.spoken(to);
        let Some(unreliable) = &mut self.unreliable else { return };
        let parts = parts.iter().map(|part| memory::bytes(part.span));
        let mut handle = *unreliable.handle(to);
        unreliable.seals(to);
        let Unreliable { talk, outbox, pair, burst, seals, .. } = &mut **unreliable;
        let mut seals = seals.get_mut(&to);
        burst.posted();
        pair.send(&mut handle, parts, false, |append| {
            outbox.add(talk, self.addresses[to], |bytes| {
                let begin = bytes.len();
                append(bytes);
                if let Some(seals) = &mut seals {
                    seals.seal.datagram(bytes, begin);
                }
                true
            });
        });
        *unreliable.handle(to) = handle;
    }

    /// Sends what waits for more.
    pub(super) fn send_outbox(&mut self) {
        if let Some(unreliable) = &mut self.unreliable
            && !unreliable.outbox.is_empty()
        {
            unreliable.burst.sent();
            unreliable.outbox.send(&mut unreliable.talk);
        }
    }

    /// Whether something waits for more.
    pub(super) fn has_in_outbox(&self) -> bool {
        self.unreliable.as_ref().is_some_and(|unreliable| !unreliable.outbox.is_empty())
    }

    /// Takes in what has come, as far as there are buffers for it.
    pub(super) fn look_at_unreliable(&mut self, asks_all: bool) {
        let Some(unreliable) = &mut self.unreliable else { return };
        let mut room = std::mem::take(&mut unreliable.room);
        let mut held = unreliable.held.clone();
        // One more than is read, for what is held is taken before.
        let (looks, mut has_come) = (if unreliable.comes { READS } else { 2 }, false);
        for look in 1..=looks {
            while !self.host.free.is_empty()
                && let Some(unreliable) = &self.unreliable
                && let Some(len) = unreliable.first_held(&room[held.clone()])
            {
                self.take_unreliable(&room[held.start..held.start + len]);
                held.start += len;
                held.start += datagram::padding(&room[held.clone()]);
            }
            let Some(unreliable) = &mut self.unreliable else { break };
            if self.host.free.is_empty() || look == looks {
                break;
            }
            let Ok((got, _)) = unreliable.talk.receive(&mut room, asks_all) else {
                held = 0..0;
                break;
            };
            has_come = true;
            held = 0..got;
        }
        if has_come {
            self.came();
            self.speaks(Source::Datagrams);
        }
        let Some(unreliable) = &mut self.unreliable else { return };
        (unreliable.room, unreliable.held, unreliable.comes) = (room, held, has_come);
        let now_ns = self.clock_ns();
        let Some(unreliable) = &mut self.unreliable else { return };
        unreliable.alarm.disarm(now_ns);
        unreliable.pair.tick(now_ns);
        while let Some(id) = unreliable.pair.returned() {
            if let Some(buffer) = self.host.filling.remove(id) {
                self.host.free.push_front(buffer);
            }
        }
    }

    /// Takes in one datagram, if it is of a rank of this job.
    fn take_unreliable(&mut self, one: &[u8]) {
        let now_ns = self.clock_ns();
        let Some((rank, id)) = Head::claims(one) else { return };
        let Some(unreliable) = &mut self.unreliable else { return };
        let from = rank as Rank;
        if from >= self.addresses.len() || from == self.me || !unreliable.is_from(from, id) {
            return;
        }
        let opened = match unreliable.seals(from) {
            Some(seals) => seals.check.open(one),
            None => Some(one),
        };
        let Some(Ok((head, content))) = opened.map(Head::decode) else {
            self.refused += 1;
            return;
        };
        self.watch.heard(from);
        let back = *unreliable.handle(from);
        let mut answer = std::mem::take(&mut unreliable.answer);
        answer.clear();
        let came = unreliable.pair.receive(
            now_ns,
            &head,
            content,
            &self.regions,
            &mut self.host,
            &back,
            &mut answer,
        );
        if !answer.is_empty() {
            if let Some(seals) = unreliable.seals(from) {
                seals.seal.datagram(&mut answer, 0);
            }
            let _ = unreliable.talk.send(&answer, self.addresses[from]);
        }
        unreliable.answer = answer;
        // What a peer does wrong is said by what is above, which knows what was meant. What this rank does wrong is not lost on
        // the way, and would come again for ever.
        let mut refusal = None;
        while let Some(error) = unreliable.pair.error() {
            refusal = refusal.or(error.is_own.then_some(error.cause));
        }
        if let Some(cause) = refusal {
            let why = Fault::PeerLost(from, format!("it refuses datagrams of this rank: {cause}"));
            self.watch.lost(from, why);
        }
        if let Ok(Some(received)) = came
            && let Some((_, work)) = self.host.filling.remove(received.arrived.id)
        {
            let done = Done::Received { from, len: received.arrived.len as usize, datagram: true };
            self.ended.push_back(Completion { work, done, result: Ok(()) });
        }
    }
}
