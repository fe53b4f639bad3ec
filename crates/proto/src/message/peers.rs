//! What is kept for each peer, and the frames that wait for room.

use crate::message::op::OpId;
use crate::message::rtrs::Rtrs;
use crate::message::sparse::Sparse;
use fabric::{Device, Rank, Span};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use wire::long::Report;

/// How a frame leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// At once.
    Alone,
    /// Together with one that follows at once.
    WithNext,
    /// Behind what was posted over this adapter, if one is named.
    Behind(Option<usize>),
}

/// A frame that must not be lost.
pub(crate) struct Control {
    head: [u64; 2],
    body: Vec<u8>,
    how: How,
}

impl Control {
    /// Sends it; false if there is no room.
    pub fn leave(&self, dev: &mut impl Device, to: Rank) -> bool {
        send(dev, to, self.head, &self.body, self.how)
    }
}

fn send(dev: &mut impl Device, to: Rank, head: [u64; 2], body: &[u8], how: How) -> bool {
    let data = Span { addr: body.as_ptr() as usize, len: body.len() };
    match how {
        How::Behind(Some(rail)) => dev.try_send_behind(to, rail, head, data),
        How::WithNext => dev.try_send_with_next(to, head, data),
        How::Alone | How::Behind(None) => dev.try_send(to, head, data),
    }
}

/// What the engine keeps for one peer.
pub(crate) struct Peer {
    /// Nothing stands in the way of an eager frame.
    pub plain: bool,
    /// Nothing goes there any more.
    pub lost: bool,
    /// Eager messages to it have to be told to the tables of speculative rendezvous.
    pub watched: bool,
    /// RTRs by shares that came to nothing in a row.
    pub rtr_misses: u8,
    /// Messages sent to it (wraps).
    pub sent: u32,
    /// Messages from it that have been taken in (wraps).
    pub seen: u32,
    /// Sends that wait for room, in order.
    pub queue: VecDeque<OpId>,
    /// Control frames that wait for room.
    pub control: VecDeque<Control>,
    /// Receive operations whose RTR is given up though a send may have it, to be told behind the queue:
    /// messages in it may belong to them.
    pub gone: Vec<u32>,
    /// Lengths of which the last message from it came by rendezvous: a bit for each class. No more bits than find
    /// room beside the flags: the distance of two peers is multiplied for every message.
    by_rendezvous: u16,
    /// Buffers it has offered.
    pub rtrs: Rtrs,
    /// How long messages from it took, to be told with what goes there anyway.
    pub reports: VecDeque<Report>,
    /// The message at the front of the queue that had no room, and since when.
    pub stuck: Option<(OpId, u64)>,
}

impl Default for Peer {
    fn default() -> Peer {
        Peer {
            plain: true,
            lost: false,
            watched: false,
            rtr_misses: 0,
            sent: 0,
            seen: 0,
            queue: VecDeque::new(),
            control: VecDeque::new(),
            gone: Vec::new(),
            by_rendezvous: 0,
            rtrs: Rtrs::default(),
            reports: VecDeque::new(),
            stuck: None,
        }
    }
}

/// Reports kept for a peer; of more the oldest are dropped.
const REPORTS_MAX: usize = 8;

impl Peer {
    /// A message of this length has come, by rendezvous or through a block. True if the last one came the other way.
    pub fn came(&mut self, len: u64, by_rendezvous: bool) -> bool {
        let (bit, before) = (1 << length_class(len), self.by_rendezvous);
        self.by_rendezvous = if by_rendezvous { before | bit } else { before & !bit };
        self.by_rendezvous != before
    }

    /// Whether messages of this length come by rendezvous as a rule.
    pub fn comes_by_rendezvous(&self, len: usize) -> bool {
        self.by_rendezvous >> length_class(len as u64) & 1 != 0
    }

    /// Keeps a report for the next message that has room for it.
    pub fn report(&mut self, report: Report) {
        if self.reports.len() >= REPORTS_MAX {
            self.reports.pop_front();
        }
        self.reports.push_back(report);
    }

    /// Works out anew whether eager frames may leave at once.
    pub fn update_plain(&mut self) {
        self.plain = self.queue.is_empty()
            && self.control.is_empty()
            && self.rtrs.is_empty()
            && !self.watched
            && !self.lost;
    }
}

/// Lengths by powers of two from 4 KiB to 128 MiB; those beyond are with the nearest.
fn length_class(len: u64) -> u32 {
    len.max(1).ilog2().clamp(12, 27) - 12
}

/// All peers of a rank.
pub(crate) struct Peers {
    table: Sparse<Peer>,
    /// Peers with a queue or control frames.
    pub backlog: Vec<Rank>,
    /// Messages taken in of all of them (wraps).
    pub heard: u32,
}

impl Peers {
    pub fn new(n: usize) -> Peers {
        Peers { table: Sparse::new(n), backlog: Vec::new(), heard: 0 }
    }

    /// Makes room for `n` peers.
    pub fn grow(&mut self, n: usize) {
        self.table.grow(n);
    }

    /// So many messages of a peer have been taken in.
    #[inline(always)]
    pub fn hear(&mut self, from: Rank, messages: u32) {
        let peer = &mut self[from];
        peer.seen = peer.seen.wrapping_add(messages);
        self.heard = self.heard.wrapping_add(messages);
    }

    /// Messages sent and taken in, in all (wraps).
    pub fn messages(&self) -> u64 {
        let of = |peer: &Peer| u64::from(peer.sent) + u64::from(peer.seen);
        self.table.iter().fold(0, |sum, (_, peer)| sum.wrapping_add(of(peer)))
    }

    /// Puts a send behind those that wait for room.
    pub fn enqueue(&mut self, to: Rank, id: OpId) {
        self[to].queue.push_back(id);
        self.hold_back(to);
    }

    /// Sends a control frame that must not be lost, as soon as there is room.
    pub fn control(&mut self, dev: &mut impl Device, to: Rank, head: [u64; 2], body: &[u8]) {
        self.control_as(dev, to, How::Alone, head, body);
    }

    /// As [`Peers::control`], in a way of its own.
    pub fn control_as(&mut self, dev: &mut impl Device, to: Rank, how: How, head: [u64; 2], body: &[u8]) {
        if self[to].lost {
            return; // nobody misses it
        }
        if self[to].control.is_empty() && send(dev, to, head, body, how) {
            return;
        }
        self[to].control.push_back(Control { head, body: body.to_vec(), how });
        self.hold_back(to);
    }

    /// Nothing goes to this peer any more: what waits for room is dropped.
    pub fn lose(&mut self, rank: Rank) {
        self.backlog.retain(|peer| *peer != rank);
        let peer = &mut self[rank];
        (peer.lost, peer.plain) = (true, false);
        peer.queue.clear();
        peer.control.clear();
        peer.gone.clear();
        peer.rtrs.clear();
        peer.reports.clear();
        peer.stuck = None;
    }

    fn hold_back(&mut self, to: Rank) {
        self[to].plain = false;
        if !self.backlog.contains(&to) {
            self.backlog.push(to);
        }
    }
}

impl Index<Rank> for Peers {
    type Output = Peer;

    #[inline(always)]
    fn index(&self, rank: Rank) -> &Peer {
        &self.table[rank]
    }
}

impl IndexMut<Rank> for Peers {
    #[inline(always)]
    fn index_mut(&mut self, rank: Rank) -> &mut Peer {
        &mut self.table[rank]
    }
}
