//! Frames over registered memory: what makes a [`fabric::Device`] of any [`Verbs`].
//!
//! Two paths (paper 000, section 3.1; dissertation, section 5.3.1). On the *fast path* the sender
//! writes a frame by RDMA into a slot that the receiver has given to it alone and polls: the lowest
//! latency, but memory for every pair, so only peers that talk get it, within a budget. The
//! *Send/Recv path* uses receive buffers that all peers share; it makes the first contact, carries
//! what no slot fits, and takes over when the slots' credits have run out.
//!
//! ```text
//! sender                                            receiver
//!   Meet: my mailbox ── Send ─────────────────────▶ shared buffer
//!   frames           ── Send ─────────────────────▶ shared buffer, copied out
//!                    ◀─ Send ── Meet: your slots     it has heard enough of this peer
//!   copy, or gather  ── RDMA write ───────────────▶ slot: polls its last word
//!                    ◀─ on frames the other way ───  how many were taken: credits of both paths
//!                    ◀─ RDMA write to the mailbox ─  the same, when half are owed
//! ```
//!
//! A frame has a number over both paths and the receiver takes frames by number, so none overtakes
//! another. A short frame that is to come behind what another adapter has written
//! ([`fabric::Device::try_send_behind`]) is sent over that one; it has its number like the others. Where
//! adapters do not promise that writes become visible in order there is no fast path, and
//! credits are sent. What a sender may have under way is bounded by credits on either path, so receivers
//! lose nothing; a receiver whose buffers many peers use at once makes a post fail, which is
//! tried again.
//!
//! A payload of registered memory is gathered with its header by the adapter instead of being
//! copied ([`fabric::Device::try_send_from`]): the zero-copy eager protocol for buffers that come again
//! (`crate::memory::reuse` finds those).

mod device;
mod fast;
mod headers;
pub(crate) mod peer;
mod post;
mod sendrecv;
mod slots;

use crate::event::{Counters, Event};
use crate::memory::pool::Pool;
pub use device::{STAGED_BYTES, STREAM_FRAME_BYTES};
use fabric::spread::SpreadMap;
use fabric::{Caps, Charge, Completion, Done, Fault, Local, PIECE_STEP, Rank, Span, Verbs, VerbsCaps};
use peer::{FramePath, Index, Peer};
use slots::{Budget, Mailboxes, RAIL, Receives};
use std::collections::VecDeque;
use wire::Malformed;
use wire::slot::{FrameKind, Meet, Tail};

/// The bit of work that is the channel's own.
const OWN: u64 = 1 << 63;
/// Frames to itself that wait at a rank.
const OWN_FRAMES: usize = 64;
/// Frames are not made shorter than this where little memory can be registered.
const FRAME_MIN: usize = 256;
/// Length of a slot for what is sent without payload: headers of gathered frames, introductions.
const NOTE_BYTES: usize = 64;
/// Most slots of a peer: with the buffers that it may fill they make [`peer::WINDOW`] at most.
const SLOTS_MAX: u32 = 48;
/// Longest payload of frames that leave as long as there is a buffer.
const LONG_BYTES: usize = 16 << 10;
/// As many frames longer than that are under way to a peer at most: more would only go through more memory, which no cache holds.
const LONG_WINDOW: u32 = 16;
/// After so many frames, or so many long ones, that were taken the peer is told: a long one that waits behind fewer would wait for ever.
const TOLD_AFTER: (u16, u16) = (16, 8);
const _: () = assert!(TOLD_AFTER.0 as u32 <= LONG_WINDOW && TOLD_AFTER.1 < TOLD_AFTER.0);

/// When to try again where the receiver had no buffer, which nothing announces.
const RETRY_NS: u64 = 10_000;

/// How much memory frames may use. All ranks of a job must have the same.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Longest payload of a frame, in bytes.
    pub frame_bytes: usize,
    /// Longest payload of a frame that is copied if the adapter does not take it at once; longer ones wait until it does.
    pub staged_bytes: usize,
    /// Length of a slot of the fast path in bytes; longer frames go by Send/Recv.
    pub slot_bytes: usize,
    /// Slots a peer gets, at most 48, of which one is kept for the next frame; below 2 there is no
    /// fast path.
    pub slots: usize,
    /// Frames from a peer after which it gets slots; 0: at the first contact.
    pub fast_after: u32,
    /// Peers that may have slots.
    pub fast_peers: usize,
    /// Bytes that the slots of all peers may take.
    pub fast_bytes: usize,
    /// Receive buffers that all peers share.
    pub buffers: usize,
    /// Of those, how many one peer may fill: with its slots 64 at most.
    pub window: usize,
    /// Frames that may be copied and under way at a time.
    pub staged: usize,
    /// Whether headers that the receiver knows stay at home.
    pub cache_headers: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            frame_bytes: 16 * 1024,
            staged_bytes: STAGED_BYTES,
            slot_bytes: 16 * 1024 + 24,
            slots: 32,
            fast_after: 8,
            fast_peers: 64,
            fast_bytes: 32 << 20,
            buffers: 64,
            window: 16,
            staged: 64,
            cache_headers: true,
        }
    }
}

impl Settings {
    /// Values that the channel can work with on this adapter: at most half of what may be registered
    /// is for frames, the rest is left to long messages.
    fn clamp(mut self, caps: &VerbsCaps) -> Settings {
        let part = caps.lockable_bytes / 8;
        self.frame_bytes = self.frame_bytes.clamp(Meet::LEN, Tail::LEN_MAX as usize);
        while 4 * self.frame_bytes > part && self.frame_bytes > FRAME_MIN {
            self.frame_bytes /= 2;
        }
        // What is never taken at once must be copied.
        let staged = if self.at_once_bytes(caps) > 0 { self.staged_bytes } else { usize::MAX };
        self.staged_bytes = staged.min(self.frame_bytes);
        let fit = part / self.message_bytes();
        self.buffers = self.buffers.min(fit).max(2);
        self.staged = self.staged.min(fit).max(1);
        // A slot is polled: its last word must not be seen before the others.
        self.slots = if caps.writes_in_order { self.slots.min(SLOTS_MAX as usize) } else { 0 };
        self.window = self.window.clamp(2, peer::WINDOW as usize - self.slots).min(self.buffers);
        self.slot_bytes = self.slot_bytes.next_multiple_of(8).max(FrameKind::Full.trailer_len());
        self.fast_bytes = self.fast_bytes.min(2 * part);
        self.fast_peers = self.fast_peers.min(caps.regions / 2);
        self
    }

    /// Longest message: a frame with all that goes with it.
    pub fn message_bytes(&self) -> usize {
        self.frame_bytes + FrameKind::Full.trailer_len()
    }

    /// Longest payload of a frame that the adapter takes at once, if it takes any.
    fn at_once_bytes(&self, caps: &VerbsCaps) -> usize {
        if caps.gather >= 2 && caps.at_once_bytes >= self.message_bytes() { self.frame_bytes } else { 0 }
    }
}

/// Work of the channel itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// A receive buffer waits for a message.
    Receive(u32),
    /// A copied frame leaves from a slot.
    Stage(u32),
    /// A header, an introduction or a short frame leaves from a slot: adapter and index.
    Note(usize, u32),
    /// The adapter had all data when it was posted.
    Inline,
}

impl Work {
    fn encode(self) -> u64 {
        let (kind, rail, index) = match self {
            Work::Receive(index) => (0, 0, index),
            Work::Stage(index) => (1, 0, index),
            Work::Note(rail, index) => (2, rail as u64, index),
            Work::Inline => (3, 0, 0),
        };
        OWN | rail << 34 | kind << 32 | index as u64
    }

    fn decode(work: u64) -> Option<Work> {
        let index = work as u32;
        match (work & OWN != 0, work >> 32 & 3) {
            (false, _) => None,
            (true, 0) => Some(Work::Receive(index)),
            (true, 1) => Some(Work::Stage(index)),
            (true, 2) => Some(Work::Note((work & !OWN) as usize >> 34, index)),
            (true, _) => Some(Work::Inline),
        }
    }
}

/// A [`fabric::Device`] over [`Verbs`].
pub struct Channel<V: Verbs> {
    verbs: V,
    caps: Caps,
    settings: Settings,
    index: Index,
    peers: Vec<Peer>,
    /// Peers that may have something to take.
    ready: Vec<u32>,
    /// Peers to which something is owed that could not be posted.
    due: Vec<u32>,
    stage: Pool,
    /// By adapter.
    notes: Vec<Pool>,
    mailboxes: Mailboxes,
    receives: Receives,
    budget: Budget,
    /// Lengths of what is registered for long messages, by adapter and local key, and their sum.
    lent: SpreadMap<(usize, u32), usize>,
    lent_bytes: usize,
    /// Frames of this rank to itself.
    own: VecDeque<([u64; 2], Box<[u8]>)>,
    /// Work of the engine that has ended.
    done: VecDeque<(u64, Result<(), Fault>)>,
    /// Whether a message has come after the last look around, which may have passed its sender by.
    is_late: bool,
    /// The first thing that went wrong.
    fault: Option<Fault>,
    /// Processes of other jobs that have died, and those of whom nobody has been told.
    missed: Vec<Rank>,
    untold: Vec<Rank>,
    counters: Counters,
}

impl<V: Verbs> Channel<V> {
    /// A channel in touch with nobody. Fails if not even the receive buffers can be registered.
    pub fn new(mut verbs: V, settings: Settings) -> Result<Channel<V>, Fault> {
        let settings = settings.clamp(verbs.caps()).reserve(verbs.caps(), verbs.size() - 1)?;
        let trailer = FrameKind::Full.trailer_len();
        let mut lens = vec![NOTE_BYTES; verbs.rails()];
        lens[RAIL] = settings.message_bytes();
        let receives = Receives::new(&mut verbs, &lens, settings.buffers)?;
        let caps = Caps {
            name: verbs.caps().name,
            inline_bytes: verbs.caps().inline_bytes.saturating_sub(trailer),
            frame_bytes: settings.staged_bytes,
            at_once_bytes: settings.at_once_bytes(verbs.caps()),
            transfer_bytes: (verbs.caps().transfer_bytes / PIECE_STEP).max(1) * PIECE_STEP,
            remote_access_note: "memory must be registered".into(),
            registration: true,
            ..Caps::default()
        };
        Ok(Channel {
            caps,
            index: Index::new(verbs.size()),
            peers: Vec::new(),
            ready: Vec::new(),
            due: Vec::new(),
            stage: Pool::new(RAIL, settings.staged_bytes + trailer, settings.staged),
            notes: (0..verbs.rails()).map(|rail| Pool::new(rail, NOTE_BYTES, 4 * settings.staged)).collect(),
            mailboxes: Mailboxes::default(),
            receives,
            budget: Budget::new(settings.fast_peers, settings.fast_bytes),
            lent: SpreadMap::default(),
            lent_bytes: 0,
            own: VecDeque::new(),
            done: VecDeque::new(),
            is_late: false,
            fault: None,
            missed: Vec::new(),
            untold: Vec::new(),
            counters: Counters::default(),
            verbs,
            settings,
        })
    }

    /// How often each event of the channel happened.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Peers this rank has been in touch with.
    pub fn contacts(&self) -> usize {
        self.peers.len()
    }

    /// Peers that have slots here.
    pub fn peers_with_slots(&self) -> usize {
        self.peers.iter().filter(|peer| peer.ring_in.is_some()).count()
    }

    /// Sends a frame whose payload is copied, or gathered as work of the engine.
    fn send(&mut self, to: Rank, head: [u64; 2], data: Local, gathered: Option<u64>) -> Result<bool, Fault> {
        assert!(data.span.len <= self.settings.frame_bytes, "a frame has at most Caps::frame_bytes");
        if to == self.verbs.me() {
            return Ok(self.send_to_self(head, data.span, gathered));
        }
        let Some(p) = self.open(to)? else { return Ok(false) };
        let Some(path) = self.path(p, data.span.len) else { return Ok(false) };
        let peer = &self.peers[p];
        let (kind, next) = match (path, &peer.ring_out) {
            (FramePath::Fast, Some(ring)) if self.settings.cache_headers => {
                (ring.headers.kind_of(head), ring.next())
            }
            (FramePath::Fast, Some(ring)) => (FrameKind::Full, ring.next()),
            _ => (FrameKind::Full, 0),
        };
        let trailer = trailer(peer, kind, head, data.span.len, next);
        let trailer = &trailer[trailer.len() - kind.trailer_len()..];
        self.verbs.charge(Charge::Header);
        if !self.post(p, path, data, trailer, gathered)? {
            return Ok(false);
        }
        let peer = &mut self.peers[p];
        peer.posted(path, next);
        if let (FramePath::Fast, Some(ring)) = (path, &mut peer.ring_out) {
            ring.headers.keep(head, data.span.len as u64);
        }
        self.count_sent(path, kind);
        Ok(true)
    }

    /// The peer a frame can be sent to, once this rank has introduced itself.
    fn open(&mut self, to: Rank) -> Result<Option<usize>, Fault> {
        let p = self.contact(to)?;
        if self.peers[p].lost.is_some() {
            return Err(self.refusal(p));
        }
        if self.peers[p].failed {
            return Err(self.fault.clone().unwrap_or(self.gone(to)));
        }
        let is_new = self.peers[p].introduce && !self.introduce(p)? && !self.peers[p].introduced;
        Ok((!is_new).then_some(p))
    }

    fn count_sent(&mut self, path: FramePath, kind: FrameKind) {
        self.counters.count(match path {
            FramePath::Fast => Event::FastPath,
            FramePath::SendRecv => Event::SendRecvPath,
        });
        if matches!(kind, FrameKind::Same | FrameKind::Next) {
            self.counters.count(Event::HeaderCached);
        }
    }

    fn send_to_self(&mut self, head: [u64; 2], data: Span, gathered: Option<u64>) -> bool {
        if self.own.len() >= OWN_FRAMES {
            return false;
        }
        let mut bytes = vec![0; data.len].into_boxed_slice();
        self.verbs.copy(bytes.as_mut_ptr() as usize, data.addr, data.len);
        self.own.push_back((head, bytes));
        self.end(gathered, Ok(()));
        true
    }

    /// How many frames there may be in buffers of a peer when one with so long a payload leaves.
    fn window(&self, len: usize) -> u32 {
        let all = self.settings.window as u32;
        if len > LONG_BYTES { all.min(LONG_WINDOW) } else { all }
    }

    /// The path a frame can take now.
    fn path(&mut self, p: usize, len: usize) -> Option<FramePath> {
        let message = len + FrameKind::Full.trailer_len();
        let fits = self.peers[p].slots().is_some_and(|ring| message <= ring.slot_bytes());
        let has_credit = |peer: &Peer| fits && peer.slots().is_some_and(|ring| ring.has_credit());
        if !has_credit(&self.peers[p]) {
            if self.peers[p].buffers_held >= self.window(len) {
                self.refresh(p);
                self.fetch(p); // slots may have been given to a rank that only sends
            } else if fits {
                // To ask the adapter as well would end the burst in which frames leave together.
                self.read_news(p);
            }
            if self.peers[p].failed {
                return None;
            }
            if !has_credit(&self.peers[p]) {
                if fits {
                    self.counters.count(Event::CreditsOut);
                }
                let window = self.window(len);
                return (self.peers[p].buffers_held < window).then_some(FramePath::SendRecv);
            }
        }
        Some(FramePath::Fast)
    }

    fn take_note(&mut self, rail: usize) -> Result<Option<(u32, Local)>, Fault> {
        let note = self.notes[rail].take(&mut self.verbs)?;
        if note.is_some() {
            return Ok(note);
        }
        self.pump();
        self.notes[rail].take(&mut self.verbs)
    }

    /// The peer with this rank, new or known.
    fn contact(&mut self, rank: Rank) -> Result<usize, Fault> {
        match self.index.get(rank) {
            None => self.first_contact(rank),
            Some(known) => Ok(known),
        }
    }

    #[cold]
    fn first_contact(&mut self, rank: Rank) -> Result<usize, Fault> {
        let mailbox = self.mailboxes.open(&mut self.verbs)?;
        if self.peers.len() == self.peers.capacity() {
            // Doubling would keep twice the memory of the peers, and leave a hole where they were.
            self.peers.reserve_exact(self.peers.len() / 8 + 4);
        }
        self.peers.push(Peer::new(rank, mailbox));
        let p = self.peers.len() - 1;
        self.index.set(rank, p);
        if self.settings.fast_after == 0 && self.verbs.gives_slots(rank) {
            self.give_slots(p);
        }
        Ok(p)
    }

    /// Takes in what the adapters have finished.
    fn pump(&mut self) {
        while let Some(completion) = self.verbs.poll() {
            self.complete(completion);
        }
    }

    fn complete(&mut self, completion: Completion) {
        let Completion { work, done, result } = completion;
        if let Done::Parted { from } = done {
            return self.parted(from);
        }
        let Some(own) = Work::decode(work) else { return self.done.push_back((work, result)) };
        if let Err(fault) = &result {
            self.went_wrong(fault);
        }
        let ended = match own {
            Work::Receive(buffer) => {
                if let Some(by) = self.verbs.received_in(work) {
                    self.receives.replace(buffer, by);
                }
                self.receives.filled(&mut self.verbs, buffer);
                if let Done::Received { from, len, .. } = done
                    && result.is_ok()
                {
                    self.arrive(from, buffer, len);
                }
                None
            }
            Work::Stage(index) => self.stage.give_back(index),
            Work::Note(rail, index) => self.notes[rail].give_back(index),
            Work::Inline => None,
        };
        self.end(ended, result);
    }

    /// Work of the engine, if this was some, has ended.
    fn end(&mut self, work: Option<u64>, result: Result<(), Fault>) {
        if let Some(work) = work {
            self.done.push_back((work, result));
        }
    }

    /// Finds out who may have sent something, and sends what is owed.
    fn look_around(&mut self) {
        let peers = &mut self.peers;
        self.ready.retain(|&p| {
            let peer = &mut peers[p as usize];
            peer.listed = peer.ready;
            peer.ready
        });
        self.pump();
        let mut position = 0;
        while let Some(rank) = self.verbs.touched(position) {
            position += 1;
            if let Some(p) = self.index.get(rank) {
                self.mark_ready(p);
            }
        }
        self.is_late = false;
        if !self.due.is_empty() {
            self.pay();
        }
    }

    fn mark_ready(&mut self, p: usize) {
        self.is_late = true;
        let peer = &mut self.peers[p];
        peer.ready = true;
        if !peer.listed {
            peer.listed = true;
            self.ready.push(p as u32);
        }
    }

    /// Nothing more is taken from this peer, and the job ends at the next check; the others are
    /// served until then.
    #[cold]
    fn fail(&mut self, p: usize, what: Malformed) {
        let peer = &mut self.peers[p];
        peer.failed = true;
        let text = format!("malformed frame from rank {}: {}", peer.rank, what.0);
        self.fault.get_or_insert(Fault::Device(text));
        for arrived in std::mem::take(&mut peer.arrived) {
            self.post_again(arrived.buffer);
        }
    }

    /// Finds the next frame of a peer, by whichever path it came.
    fn fetch(&mut self, p: usize) {
        while !self.peers[p].failed && self.peers[p].front.is_none() {
            let found = match self.fetch_arrived(p) {
                Ok(false) => self.fetch_slot(p),
                other => other,
            };
            match found {
                Ok(true) => {}
                Ok(false) => return,
                Err(what) => self.fail(p, what),
            }
        }
    }

    /// A frame with so long a payload has been read: its place is free, and its sender is told some time.
    fn taken(&mut self, p: usize, path: FramePath, place: u32, len: usize) {
        let peer = &mut self.peers[p];
        peer.taken += 1;
        match path {
            FramePath::Fast => {
                let ring = peer.ring_in.as_mut().expect("it lay in a slot");
                ring.advance(&mut self.verbs, place as u8);
                peer.slots_owed += 1;
                if ring.is_closed {
                    self.give_slots_back(p);
                }
            }
            FramePath::SendRecv => {
                // A peer that keeps to no window and takes no news could be owed any number.
                peer.buffers_owed = peer.buffers_owed.saturating_add(1);
                peer.long_owed = peer.long_owed.saturating_add(u16::from(len > LONG_BYTES));
                peer.heard = peer.heard.saturating_add(1);
                peer.front_copy = None;
                self.post_again(place);
            }
        }
        if self.owes_much(p) {
            self.tell_or_owe(p);
        }
        let peer = &self.peers[p];
        if !peer.ring_decided
            && peer.heard > self.settings.fast_after
            && self.verbs.gives_slots(self.peers[p].rank)
            && self.give_slots(p)
        {
            self.tell_or_owe(p);
        }
    }
}

/// The end of a frame: header, unless it is known, and tail.
fn trailer(peer: &Peer, kind: FrameKind, head: [u64; 2], len: usize, next: u8) -> [u8; 24] {
    let (seq, ack) = peer.numbers();
    let tail = Tail { kind, seq, ack, len: len as u32, next };
    let mut bytes = [0; 24];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip([head[0], head[1], tail.encode()]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
