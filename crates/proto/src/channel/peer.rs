//! What a channel keeps for a peer it has been in touch with.

use super::slots::{RingIn, RingOut};
use fabric::{Fault, Rank, Remote, Span};
use std::collections::VecDeque;
use wire::Malformed;
use wire::slot::Tail;

/// How a frame travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FramePath {
    /// RDMA write into a slot that the receiver polls.
    Fast,
    /// Send into a receive buffer that all peers share.
    SendRecv,
}

/// Frames under way in one direction.
pub(super) const WINDOW: u64 = 64;

/// The oldest frame of a peer, shown to the engine and not popped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    pub path: FramePath,
    pub head: [u64; 2],
    pub data: Span,
    /// On the Send/Recv path the receive buffer it lies in, on the fast path the slot of the next.
    pub place: u32,
}

/// A message that waits for its turn, in the receive buffer it came in. One before which others are still to
/// come over another adapter lies in memory of its own, [`COPIED`]: buffers that wait for messages of other
/// adapters, whose buffers wait for messages of this one, would be a circle.
#[derive(Debug)]
pub(super) struct Arrived {
    pub buffer: u32,
    pub tail: Tail,
    pub copy: Option<Box<[u8]>>,
    /// Whether a connection has ended since it came.
    pub is_past: bool,
}

/// The number of no receive buffer.
pub(super) const COPIED: u32 = u32::MAX;

/// Ranks per page of the [`Index`].
const PAGE: usize = 64;

/// Which peer a rank is. A page per neighbourhood in which there is one: with an entry for every rank at every rank,
/// the memory of a job grows with the square of its size, which a simulation of thousands has in one process.
pub(super) struct Index {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
}

impl Index {
    pub fn new(ranks: usize) -> Index {
        Index { pages: (0..ranks.div_ceil(PAGE)).map(|_| None).collect() }
    }

    /// The peer with this rank, if it is known.
    #[inline]
    pub fn get(&self, rank: Rank) -> Option<usize> {
        let page = self.pages.get(rank / PAGE)?.as_ref()?;
        (page[rank % PAGE] as usize).checked_sub(1)
    }

    pub fn set(&mut self, rank: Rank, p: usize) {
        if rank / PAGE >= self.pages.len() {
            self.pages.resize_with(rank / PAGE + 1, || None);
        }
        let page = self.pages[rank / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        page[rank % PAGE] = p as u32 + 1;
    }
}

/// One end of a connection.
pub(super) struct Peer {
    pub rank: Rank,
    /// It broke the rules: nothing more is taken from it.
    pub failed: bool,
    /// There is no way to it any more: nothing is posted to it.
    pub lost: Option<Box<Fault>>,
    /// May have something to take; and whether the list of those holds it.
    pub ready: bool,
    pub listed: bool,
    /// Something is owed to it that could not be posted.
    pub due: bool,

    /// Where it tells how many frames it has taken.
    pub mailbox: Remote,
    /// An introduction is to be sent, before the next frame if it is the first.
    pub introduce: bool,
    pub introduced: bool,
    /// Frames sent, and how many of them it has taken.
    sent: u64,
    acked: u64,
    /// Frames it has not taken from its receive buffers.
    pub buffers_held: u32,
    /// The fast path, for the few that have one: what a rank keeps for each of many peers is to be small. Closed with its connection, it
    /// stays until the peer has taken what lies there.
    pub ring_out: Option<Box<RingOut>>,

    /// Where to tell it how many frames were taken.
    pub their_mailbox: Option<Remote>,
    /// Frames taken.
    pub taken: u64,
    /// Of those, what it has not been told, by path.
    pub slots_owed: u32,
    pub buffers_owed: u16,
    /// Those of them that were long ([`super::LONG_BYTES`]).
    pub long_owed: u16,
    /// Frames that came by Send/Recv: how much it would use slots.
    pub heard: u32,
    /// Whether it was decided if it gets slots, since it last had no connection.
    pub ring_decided: bool,
    pub ring_in: Option<Box<RingIn>>,
    pub arrived: VecDeque<Arrived>,
    /// What [`Arrived::copy`] of the front was.
    pub front_copy: Option<Box<[u8]>>,
    pub front: Option<Front>,
}

impl Peer {
    pub fn new(rank: Rank, mailbox: Remote) -> Peer {
        Peer {
            rank,
            failed: false,
            lost: None,
            ready: false,
            listed: false,
            due: false,
            mailbox,
            introduce: true,
            introduced: false,
            sent: 0,
            acked: 0,
            buffers_held: 0,
            ring_out: None,
            their_mailbox: None,
            taken: 0,
            slots_owed: 0,
            buffers_owed: 0,
            long_owed: 0,
            heard: 0,
            ring_decided: false,
            ring_in: None,
            arrived: VecDeque::new(),
            front_copy: None,
            front: None,
        }
    }

    /// What the next frame to this peer says of sequence and acknowledgement.
    pub fn numbers(&self) -> (u16, u16) {
        (self.sent as u16, self.taken as u16)
    }

    /// A frame has been posted; it told the peer what was taken so far, and the next slot.
    pub fn posted(&mut self, path: FramePath, next: u8) {
        match (path, &mut self.ring_out) {
            (FramePath::Fast, ring) => {
                ring.as_mut().expect("the fast path has slots").written(self.sent, next)
            }
            (FramePath::SendRecv, ring) => {
                self.buffers_held += 1;
                if let Some(ring) = ring {
                    ring.passed(self.sent);
                }
            }
        }
        self.sent += 1;
        assert!(self.sent - self.acked <= WINDOW, "more frames under way than credits allow");
        self.told();
    }

    /// The peer knows how many frames were taken.
    pub fn told(&mut self) {
        (self.slots_owed, self.buffers_owed, self.long_owed) = (0, 0, 0);
    }

    /// A frame says how many of ours the peer had taken. A frame is read once for this, soon after
    /// it came, so it can be behind what is known, but not by half the range of the number.
    pub fn acknowledged(&mut self, ack: u16) -> Result<(), Malformed> {
        let ahead = ack.wrapping_sub(self.acked as u16);
        if ahead as i16 <= 0 { Ok(()) } else { self.acknowledged_all(self.acked + ahead as u64) }
    }

    /// The peer has taken this many frames.
    pub fn acknowledged_all(&mut self, taken: u64) -> Result<(), Malformed> {
        if taken > self.sent {
            return Err(Malformed(format!("{taken} frames acknowledged of {} sent", self.sent)));
        }
        for number in self.acked..taken {
            if !self.ring_out.as_mut().is_some_and(|ring| ring.taken(number)) {
                self.buffers_held -= 1;
            }
        }
        if taken > self.acked {
            self.acked = taken;
            self.forget_slots();
        }
        Ok(())
    }

    /// The slots that this rank may write to.
    pub fn slots(&self) -> Option<&RingOut> {
        self.ring_out.as_deref().filter(|ring| !ring.is_closed)
    }

    /// The connection has ended, and with it the slots of both sides, and all offers of some.
    pub fn part(&mut self) {
        (self.ring_decided, self.heard) = (false, 0);
        self.introduce = !self.introduced;
        self.arrived.iter_mut().for_each(|message| message.is_past = true);
        if let Some(ring) = &mut self.ring_in {
            ring.is_closed = true;
        }
        if let Some(ring) = &mut self.ring_out {
            ring.is_closed = true;
        }
        self.forget_slots();
    }

    fn forget_slots(&mut self) {
        self.ring_out.take_if(|ring| ring.is_closed && ring.is_empty());
    }

    /// A message has come: among those that wait it has its place by number, for adapters overtake
    /// each other.
    pub fn arrived(&mut self, message: Arrived) {
        let place = |seq: u16| seq.wrapping_sub(self.taken as u16);
        let is_behind = |other: &Arrived| place(other.tail.seq) < place(message.tail.seq);
        let at = self.arrived.iter().rposition(is_behind).map_or(0, |at| at + 1);
        fabric::begin_with_one(&mut self.arrived);
        self.arrived.insert(at, message);
    }

    /// Whether a frame with this number can be under way: then how many come before it.
    pub fn before(&self, seq: u16) -> Result<u16, Malformed> {
        let ahead = seq.wrapping_sub(self.taken as u16);
        if ahead as u64 >= WINDOW {
            let expected = self.taken as u16;
            return Err(Malformed(format!("frame number {seq}, expected {expected} or a few more")));
        }
        Ok(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::slot::Ring;

    fn peer() -> Peer {
        let mut peer = Peer::new(3, Remote::default());
        peer.ring_out = Some(Box::new(RingOut::new(Ring { addr: 0, key: 0, slots: 4, slot_bytes: 64 })));
        peer
    }

    #[test]
    fn ranks_are_found_again() {
        let mut index = Index::new(1000);
        for (p, rank) in [0, 999, 64, 63, 500].into_iter().enumerate() {
            assert_eq!(index.get(rank), None);
            index.set(rank, p);
            assert_eq!(index.get(rank), Some(p));
        }
        assert_eq!((index.get(0), index.get(1), index.get(998)), (Some(0), None, None));
    }

    /// Whoever speaks with thousands by datagram has one of these for each, and no slots.
    #[test]
    fn a_peer_without_slots_is_small() {
        assert!(size_of::<Peer>() <= 208, "{} bytes", size_of::<Peer>());
    }

    #[test]
    fn credits_come_back_to_the_path_that_spent_them() {
        let mut peer = peer();
        for path in [FramePath::SendRecv, FramePath::Fast, FramePath::Fast, FramePath::SendRecv] {
            let next = peer.ring_out.as_ref().unwrap().next();
            peer.posted(path, next);
        }
        let place = |p: &Peer| p.ring_out.as_ref().unwrap().place(0).addr / 64 - 1;
        let held = |p: &Peer| (p.ring_out.as_ref().unwrap().next(), p.buffers_held);
        assert_eq!(place(&peer), 2, "slots 0 and 1 are full");
        assert_eq!(held(&peer), (3, 2));
        peer.acknowledged(2).unwrap();
        assert_eq!(held(&peer), (0, 1), "the lowest free slot");
        peer.acknowledged(1).unwrap();
        assert_eq!(held(&peer), (0, 1), "what is known already changes nothing");
        peer.acknowledged_all(4).unwrap();
        assert_eq!(held(&peer), (0, 0));
        assert_eq!(place(&peer), 2, "as the peer was told");
        assert!(peer.acknowledged(5).is_err() && peer.acknowledged_all(5).is_err());
    }

    #[test]
    fn numbers_wrap() {
        let mut peer = peer();
        let first = u16::MAX as u64 - 500;
        (peer.sent, peer.acked, peer.taken) = (first, first, first);
        for round in first..first + 2000 {
            let next = peer.ring_out.as_ref().unwrap().next();
            peer.posted(if round % 3 == 0 { FramePath::SendRecv } else { FramePath::Fast }, next);
            peer.acknowledged((round + 1) as u16).unwrap();
            peer.taken += 1;
            assert_eq!(peer.before(peer.taken as u16), Ok(0));
            assert_eq!(peer.before((peer.taken as u16).wrapping_add(9)), Ok(9));
            assert!(peer.before((peer.taken as u16).wrapping_sub(1)).is_err());
        }
        assert_eq!(peer.buffers_held, 0);
    }
}
