//! Reliability for adapters with unreliable datagrams, and connections for the peers that earn them.
//!
//! Of [`Verbs`] whose datagrams may be lost, doubled and overtaken it makes [`Verbs`] that reach everybody by datagrams, and
//! cost memory only for peers there is something under way with: sends, writes and reads come, once and in order, by packets
//! with numbers ([`stream`]). A peer that much is sent to gets a connection, in the bounds of a budget, and gives it back
//! when it is idle ([`route`]). `docs/protocols/datagrams.md`, `docs/protocols/hybrid.md`; dissertation, section 6.4.2.
//!
//! ```text
//!  post ──▶ jobs of a peer ── outward.rs: cut into packets, copied into slots, kept until acknowledged ──▶ post_datagram
//!    └──── connected ─────────────────────────────────────────────────────────────────────────────────▶ post_send, ...
//!  poll ◀── ended ◀── inward.rs: in order, into receive buffers and regions ◀────────────────────────── received
//! ```
//!
//! A packet is copied when it is cut, so that posted memory is free when the last one is, and nothing need be
//! registered. A packet that the adapter does not take is as lost.

mod inward;
mod outward;
mod pace;
mod route;
mod stream;
mod verbs;

use crate::memory::pool::Pool;
use fabric::spread::SpreadMap;
use fabric::{Completion, Fault, Local, Rank, Rights, Span, Verbs, VerbsCaps};
use outward::{Job, Slot};
use route::Route;
pub use route::{Standing, Use};
use std::collections::VecDeque;
use stream::Stream;
use wire::packet::{HEAD_LEN, Opcode, Packet};

/// The adapter that carries all of it.
const RAIL: usize = 0;
/// The bit of work that is not that of who posts.
const MINE: u64 = 1 << 61;
/// Packets without a number under way.
const NOTES: usize = 16;
/// Number of the first packet: any will do that both know.
const FIRST: u32 = 0;
/// Work that may be posted to a peer and has not been cut.
const DEPTH: usize = 256;
/// Reads of a peer, and answers to it, under way.
const READS: usize = 64;

/// How much memory and how many connections a rank may use. All ranks of a job must have the same lengths.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Packets, of all peers, that may wait for their acknowledgement.
    pub packets: usize,
    /// Datagrams that may come before this rank looks again, or be kept until what is missing comes.
    pub buffers: usize,
    /// Longest message over a connection, in bytes.
    pub message_bytes: usize,
    /// Connections at a time; 0: datagrams only.
    pub connections: usize,
    /// Messages to a peer after which it has earned one.
    pub earned_messages: u64,
    /// Bytes to a peer after which it has earned one.
    pub earned_bytes: u64,
    /// A connection that was not used for so long is given back.
    pub idle_ns: u64,
    /// Whether the end waits for what is under way, at most so long.
    pub linger_ns: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            packets: 256,
            buffers: 64,
            message_bytes: 0,
            connections: 0,
            earned_messages: 64,
            earned_bytes: 256 << 10,
            idle_ns: 5_000_000_000,
            linger_ns: 0,
        }
    }
}

/// Work that is posted to an adapter and not that of who posts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// A buffer waits for a datagram or a message.
    Receive(u32),
    /// A packet leaves from a slot.
    Packet(u32),
    /// One without a number does.
    Note(u32),
    /// Work over a connection: see [`Ways::through`].
    Through(u32),
    /// The last message over a connection.
    Last,
}

impl Work {
    fn encode(self) -> u64 {
        let (kind, index) = match self {
            Work::Receive(index) => (0, index),
            Work::Packet(index) => (1, index),
            Work::Note(index) => (2, index),
            Work::Through(index) => (3, index),
            Work::Last => (4, 0),
        };
        MINE | kind << 32 | u64::from(index)
    }

    fn decode(work: u64) -> Work {
        assert!(work & MINE != 0, "all that an adapter has is posted here");
        let index = work as u32;
        match work >> 32 & 7 {
            0 => Work::Receive(index),
            1 => Work::Packet(index),
            2 => Work::Note(index),
            3 => Work::Through(index),
            _ => Work::Last,
        }
    }
}

/// A packet that came and cannot be dealt with yet: its buffer and length.
type Kept = (u32, usize);

/// A read of this rank.
#[derive(Debug)]
struct Read {
    id: u32,
    work: u64,
    to: Span,
    got: usize,
}

/// What is under way with a peer.
#[derive(Debug)]
struct Peer {
    stream: Stream<u32, Kept>,
    jobs: VecDeque<Job>,
    reads: Vec<Read>,
    next_read: u32,
    /// The receive buffer of the message that is coming, and how much has come.
    filling: Option<(Local, u64, usize)>,
    route: Route,
    /// Whether it waits for a slot, or a receive buffer.
    waits: bool,
    is_stalled: bool,
    /// Timeouts since it has said that it has nothing more to send.
    said_bye: bool,
    repeated: u32,
    /// Why there is no way to it any more.
    lost: Option<Box<Fault>>,
}

/// Everything but the adapter.
struct Ways {
    settings: Settings,
    /// Payload of a packet, at most.
    room: usize,
    peers: Vec<Option<Box<Peer>>>,
    /// Those there are.
    known: Vec<Rank>,
    pool: Pool,
    slots: Vec<Slot>,
    notes: Pool,
    /// For datagrams, and how many of them are kept.
    buffers: Vec<Local>,
    kept: usize,
    /// Receive buffers of whom this is for, and messages over connections that wait for one: of whom, buffer, length.
    receives: Vec<(Local, u64)>,
    /// Of completions that were not polled yet: the buffer that has taken the place of the one that was posted.
    exchanged: Vec<(u64, Local)>,
    held: VecDeque<(Rank, u32, usize)>,
    /// What peers may write and read.
    regions: SpreadMap<u32, (Span, Rights)>,
    /// Work over connections: to whom, and what its poster calls it.
    through: Vec<(Rank, u64)>,
    through_free: Vec<u32>,
    /// Connections there are or will be.
    connections: usize,
    looked_ns: u64,
    ended: VecDeque<Completion>,
    touched: Vec<Rank>,
    heard: Vec<Rank>,
    freed: Vec<u32>,
    /// Peers that wait for a slot, or for a receive buffer.
    waiting: Vec<Rank>,
    stalled: Vec<Rank>,
    /// Nothing is due before.
    due_ns: u64,
    fault: Option<Fault>,
}

/// See the [head of this module](self).
pub struct Reliable<V: Verbs> {
    verbs: V,
    caps: VerbsCaps,
    /// `None` where the adapter is reliable itself.
    ways: Option<Box<Ways>>,
}

impl<V: Verbs> Reliable<V> {
    /// An adapter that is reliable itself, as it is.
    pub fn plain(verbs: V) -> Reliable<V> {
        Reliable { caps: verbs.caps().clone(), verbs, ways: None }
    }

    /// The adapter where it is reliable itself, and all there is to know of peers.
    pub fn adapter_mut(&mut self) -> Option<&mut V> {
        self.ways.is_none().then_some(&mut self.verbs)
    }

    /// Makes reliable what the datagrams of an adapter carry. Fails if it has none, or its buffers cannot be registered.
    pub fn new(mut verbs: V, settings: Settings) -> Result<Reliable<V>, Fault> {
        let mut caps = verbs.caps().clone();
        if caps.datagram_bytes < 2 * HEAD_LEN {
            return Err(Fault::Device(format!("{} has no datagrams", caps.name)));
        }
        caps.depth = DEPTH;
        caps.inline_bytes = caps.inline_bytes.min(256);
        // What goes by packets is copied; a connection takes at once what a receive buffer has room for.
        let over_connections = if settings.connections > 0 { settings.message_bytes } else { 0 };
        caps.at_once_bytes = caps.at_once_bytes.min(over_connections);
        caps.transfer_bytes = caps.transfer_bytes.min(u32::MAX as usize); // a request to read says its length in 32 bits
        caps.gather = caps.gather.min(2);
        let len = caps.datagram_bytes.max(settings.message_bytes).next_multiple_of(8);
        let memory = verbs.allocate(len * settings.buffers);
        let region = verbs.register(RAIL, memory, Rights::LOCAL_WRITE)?;
        let buffers: Vec<Local> =
            (0..settings.buffers).map(|at| region.local(memory.part(at * len, len))).collect();
        for (at, buffer) in buffers.iter().enumerate() {
            verbs.post_receive(RAIL, *buffer, Work::Receive(at as u32).encode());
        }
        let ways = Ways {
            room: caps.datagram_bytes - HEAD_LEN,
            peers: (0..verbs.size()).map(|_| None).collect(),
            known: Vec::new(),
            pool: Pool::new(RAIL, caps.datagram_bytes, settings.packets),
            slots: vec![Slot::default(); settings.packets],
            notes: Pool::new(RAIL, HEAD_LEN, NOTES),
            buffers,
            kept: 0,
            receives: Vec::new(),
            exchanged: Vec::new(),
            held: VecDeque::new(),
            regions: SpreadMap::default(),
            through: Vec::new(),
            through_free: Vec::new(),
            connections: 0,
            looked_ns: 0,
            ended: VecDeque::new(),
            touched: Vec::new(),
            heard: Vec::new(),
            freed: Vec::new(),
            waiting: Vec::new(),
            stalled: Vec::new(),
            due_ns: u64::MAX,
            fault: None,
            settings,
        };
        Ok(Reliable { verbs, caps, ways: Some(Box::new(ways)) })
    }

    /// The adapter.
    pub fn verbs(&self) -> &V {
        &self.verbs
    }

    /// Everything there is with each peer, for whoever looks for a mistake.
    pub fn describe(&self) -> String {
        let Some(ways) = &self.ways else { return String::new() };
        let line = |rank: &Rank| format!("rank {rank}: {:?}\n", ways.peers[*rank]);
        ways.known.iter().map(line).collect()
    }

    /// Packets that were sent again.
    pub fn resent(&self) -> u64 {
        let ways = self.ways.iter().flat_map(|ways| ways.peers.iter().flatten());
        ways.map(|peer| peer.stream.resent()).sum()
    }
}

impl Ways {
    fn peer(&mut self, rank: Rank) -> &mut Peer {
        let known = &mut self.known;
        self.peers[rank].get_or_insert_with(|| {
            known.push(rank);
            Box::new(Peer {
                stream: Stream::new(FIRST),
                jobs: VecDeque::new(),
                reads: Vec::new(),
                next_read: 0,
                filling: None,
                route: Route::default(),
                waits: false,
                is_stalled: false,
                said_bye: false,
                repeated: 0,
                lost: None,
            })
        })
    }

    /// Something is wrong with a peer; the first time counts.
    fn fail(&mut self, from: Rank, what: impl std::fmt::Display) {
        self.fault.get_or_insert_with(|| Fault::Device(format!("malformed packet from rank {from}: {what}")));
    }

    /// Sends something for the other side of this one's kind.
    fn say(&mut self, to: Rank, kind: Opcode) {
        self.peer(to).jobs.push_back(Job::word(kind));
        self.heard.push(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever speaks with thousands has one of these for each.
    #[test]
    fn a_peer_is_small() {
        assert!(size_of::<Peer>() <= 416, "{} bytes", size_of::<Peer>());
    }
}
