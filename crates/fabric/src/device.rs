//! What a protocol may ask of the hardware, real or modelled.
//!
//! A device connects this rank with all others of the job. It moves *frames* (two header words
//! and a payload, in order per pair of ranks), gives *remote access* to memory of the peer, and
//! holds *shares*: a few words that both ends of one transfer may change atomically, as verbs'
//! fetch-and-add does. Calls never block and never call back.

use crate::costs::{Costs, Distance};
use crate::verbs::{Charge, Local, Remote};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Index of a process in its job.
pub type Rank = usize;

/// A piece of memory of this process: an address and a length in bytes.
///
/// It is a plain value: the owner of the memory (the application, or the device for frames)
/// keeps it valid for as long as the operation that carries it is pending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First byte.
    pub addr: usize,
    /// Length in bytes.
    pub len: usize,
}

impl Span {
    /// The span that holds nothing.
    pub const EMPTY: Span = Span { addr: 0, len: 0 };

    /// The part from `offset`, at most `len` bytes long.
    pub fn part(self, offset: usize, len: usize) -> Span {
        let offset = offset.min(self.len);
        Span { addr: self.addr + offset, len: len.min(self.len - offset) }
    }
}

/// A frame that has arrived and is still in the memory of the device.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The header words as the sender gave them.
    pub head: [u64; 2],
    /// The payload, valid until [`Device::pop`].
    pub data: Span,
}

/// What a device can do with the peers of one distance, and what of that is free.
#[derive(Clone, Debug)]
pub struct Caps {
    /// Name of the device, as `tern info` shows it.
    pub name: &'static str,
    /// Payload that travels together with the header at no extra cost, in bytes.
    pub inline_bytes: usize,
    /// The largest payload of one frame, in bytes.
    pub frame_bytes: usize,
    /// Whether [`Device::read`] and [`Device::write`] work.
    pub remote_access: bool,
    /// Why remote access does not work, for a person who asks.
    pub remote_access_note: String,
    /// How often to look for a message before giving up the core pays.
    pub looks: u32,
    /// Whether long messages go through memory that is registered with adapters; if not, both sides agree on them
    /// by a share and copy by [`Device::read`] and [`Device::write`].
    pub registration: bool,
}

/// The device could not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Remote access to this peer is not permitted; use frames.
    NotPermitted,
    /// The peer is gone.
    PeerGone(Rank),
    /// There is no room for one more; the text says of what.
    Limit(String),
    /// A buffer is not memory that may be read, or written, by its process.
    BadAddress {
        /// It is this rank's, not the peer's.
        local: bool,
    },
    /// Anything else, with the cause.
    Device(String),
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Fault::NotPermitted => f.write_str("remote access is not permitted"),
            Fault::PeerGone(rank) => write!(f, "rank {rank} of MPI_COMM_WORLD has died"),
            Fault::BadAddress { local } => {
                let whose = if *local { "this" } else { "the other" };
                write!(f, "a buffer of {whose} rank is not memory it may use")
            }
            Fault::Limit(text) | Fault::Device(text) => f.write_str(text),
        }
    }
}

/// A share: a few atomic words that belong to one transfer, in the memory of `owner`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The rank that opened it.
    pub owner: Rank,
    /// Its index there.
    pub index: u32,
}

/// The words of a share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum ShareWord {
    /// Address of the partner's buffer; 0 until it is known.
    Partner = 0,
    /// What both sides have claimed; how it is counted is the protocol's business.
    Claim = 1,
    /// Bytes that have been moved.
    Done = 2,
    /// How many of the two sides have left for good.
    Left = 3,
    /// Length the partner agreed to, in bytes.
    Length = 4,
    /// What one side has failed in, or may not do; how it is counted is the protocol's business.
    Failed = 5,
    /// The receive operation whose RTR may be taken; 0 once it is taken or withdrawn.
    Open = 6,
}

impl ShareWord {
    /// All words.
    pub const ALL: [ShareWord; 7] = [
        ShareWord::Partner,
        ShareWord::Claim,
        ShareWord::Done,
        ShareWord::Left,
        ShareWord::Length,
        ShareWord::Failed,
        ShareWord::Open,
    ];
}

/// What to do while there is nothing to do, outside every lock.
pub trait Nap {
    /// Passes a little time: spins, yields, sleeps, or lets virtual time advance.
    fn take(self);

    /// Whether that is to sleep: then the wait is a long one.
    fn sleeps(&self) -> bool {
        false
    }
}

/// What a device keeps whose transfers are over when their call returns: their completions, and
/// the memory it has given to the protocols.
#[derive(Default)]
pub struct Immediate {
    done: VecDeque<(u64, Result<(), Fault>)>,
    memory: Vec<Box<[u64]>>,
}

impl Immediate {
    /// A transfer has ended, one way or another.
    pub fn end(&mut self, work: u64, result: Result<(), Fault>) {
        self.done.push_back((work, result));
    }

    /// See [`Device::completed`].
    #[inline(always)]
    pub fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        self.done.pop_front()
    }

    /// See [`Device::allocate`].
    pub fn allocate(&mut self, len: usize) -> Span {
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let addr = words.as_mut_ptr() as usize;
        self.memory.push(words);
        Span { addr, len }
    }
}

/// What wakes the thread that makes progress while the application is outside MPI.
///
/// A bell belongs to one rank. Peers ring it when they change something that this rank sees only
/// by looking, and only while it is armed: nobody pays for a bell that is not.
pub trait Bell: Send + Sync {
    /// From here on the next change rings; what changed before can be seen by looking.
    fn arm(&self);
    /// Sleeps until the bell has rung since it was armed, at most for the given time.
    fn sleep(&self, longest: Duration);
    /// Rings from inside the process.
    fn ring(&self);
    /// Makes every running thread of this process pass a full memory barrier.
    fn barrier(&self);
}

/// One rank's connection to all others.
pub trait Device {
    /// See [`Nap`].
    type Nap: Nap;

    /// This rank.
    fn me(&self) -> Rank;
    /// Number of ranks of the job.
    fn size(&self) -> usize;
    /// What the device can do with peers of this distance.
    fn caps(&self, distance: Distance) -> &Caps;
    /// Time since an arbitrary start, in nanoseconds.
    fn now_ns(&self) -> u64;
    /// How far away a peer is.
    fn distance(&self, _peer: Rank) -> Distance {
        Distance::Network
    }
    /// What work with peers of this distance is known to cost before the first message.
    fn costs(&self, _distance: Distance) -> Costs {
        Costs::default()
    }

    /// Sends a frame of at most [`Caps::frame_bytes`]. False if there is no room now; then
    /// nothing has happened. The payload has been copied when it returns true.
    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool;
    /// The oldest frame from `from` that has not been popped.
    fn peek(&mut self, from: Rank) -> Option<Frame>;
    /// Gives up the frame that [`Device::peek`] showed.
    fn pop(&mut self, from: Rank);
    /// Takes the oldest frame from `from` if it has this header and fits `room`: copies its payload
    /// there, pops it and gives its length. `Err(true)` says that there is no frame yet.
    ///
    /// A frame may be taken while its sender is still writing it. If that does not get on, the
    /// answer is `Err(false)`, [`Device::peek`] does not show the frame until it is complete, and
    /// [`Device::begun`] tells that part of `room` has been written.
    #[inline(always)]
    fn take(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        let Some(frame) = self.peek(from) else { return Err(true) };
        if frame.head != head || frame.data.len > room.len {
            return Err(false);
        }
        self.copy(room.addr, frame.data.addr, frame.data.len);
        self.pop(from);
        Ok(frame.data.len)
    }
    /// The address of the room into which the oldest frame from `from` was taken in part.
    fn begun(&self, _from: Rank) -> Option<usize> {
        None
    }
    /// Ranks from which frames may arrive, by position; `None` behind the last one.
    fn source(&mut self, position: usize) -> Option<Rank>;

    /// Copies between two places in this process.
    fn copy(&mut self, to: usize, from: usize, len: usize);
    /// Copies the payload of a frame into `out`, which is as long.
    fn peek_bytes(&self, data: Span, out: &mut [u8]);
    /// Whether this rank can read and write memory of `peer` (tried once, then remembered).
    fn reach(&mut self, peer: Rank) -> bool;
    /// Reads the peer's memory at `remote` into `local`. That it is not permitted may turn out at any time:
    /// then nothing more is tried with this peer.
    fn read(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault>;
    /// Writes `local` to the peer's memory at `remote`.
    fn write(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault>;

    /// Opens a share; `None` when all are in use.
    fn share_open(&mut self) -> Option<u32>;
    /// Adds to a word of a share, modulo 2^64, and returns what it held before.
    fn share_add(&self, share: Share, word: ShareWord, value: u64) -> u64;
    /// Sets a word of a share to 0 if it is still `held`; whether it was.
    fn share_take(&self, share: Share, word: ShareWord, held: u64) -> bool;
    /// Number of shares per rank: an index at or above it is malformed.
    fn shares(&self) -> u32;
    /// Reads a word of a share.
    fn share_load(&self, share: Share, word: ShareWord) -> u64;
    /// Sets a word of a share.
    fn share_store(&self, share: Share, word: ShareWord, value: u64);

    /// Number of adapters a long message can be spread over.
    fn rails(&self) -> usize {
        1
    }
    /// Registers memory with one adapter; its key. Asked for where [`Caps::registration`] is set.
    fn register(&mut self, _rail: usize, _span: Span) -> Result<u32, Fault> {
        Ok(0)
    }
    /// How often what its user calls `event` happened in the device itself, if it counts that.
    fn happened(&self, _event: usize) -> u64 {
        0
    }
    /// Gives a registration back.
    fn deregister(&mut self, _rail: usize, _key: u32) {}
    /// The unit of registration, in bytes: a power of two.
    fn page_bytes(&self) -> usize {
        4096
    }
    /// Asks to be told when this memory goes away. False if nobody can tell: then a registration
    /// must not outlive the transfer that needs it.
    fn watch(&mut self, _span: Span) -> bool {
        false
    }
    /// Whether watched memory has gone away since the last [`Device::take_changes`].
    #[inline(always)]
    fn memory_changed(&self) -> bool {
        false
    }
    /// Adds to `gone` where watched memory has gone away.
    fn take_changes(&mut self, _gone: &mut Vec<Span>) {}
    /// A second look at watched memory that is about to be used again: false if it is known to have
    /// been mapped anew. A device that trusts what it was told says true.
    #[inline(always)]
    fn is_unchanged(&mut self, _span: Span) -> bool {
        true
    }
    /// Starts to write registered memory to memory of `to`; it ends as a completion with this
    /// `work`. False if the queue to this peer over this rail is full; then nothing has happened, and
    /// queues to others may have room.
    ///
    /// The completion, also one that reports an error, says that `local` *may be reused*. That the
    /// bytes are *placed* the peer learns from a frame sent by [`Device::try_send_behind`].
    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault>;
    /// Starts to read memory of `from` into registered memory, as [`Device::post_write`].
    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault>;
    /// As [`Device::try_send`] to several ranks, for whom the payload is written once: for how many of
    /// them, from the first on, the frame has left. The others are to be sent to one by one.
    fn try_send_all(&mut self, _to: &[Rank], _head: [u64; 2], _data: Span) -> usize {
        0
    }
    /// As [`Device::try_send`], but the frame is not shown before everything is placed that this rank
    /// has posted to `to` over `rail` before. At most 40 bytes.
    fn try_send_behind(&mut self, to: Rank, rail: usize, head: [u64; 2], data: Span) -> bool;
    /// Whether the bytes of a posted write become visible at the peer in the order of their
    /// addresses, and the peer looks around while it lands. Many adapters behave so; a processor that
    /// copies for its peer may store in any order.
    fn writes_in_order(&self) -> bool;
    /// The oldest completion that has not been fetched: its work and how it ended. Work ends in any
    /// order, and all of it ends, whatever has become of the peer.
    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)>;
    /// As [`Device::try_send`], but the payload is taken from memory registered with the first adapter
    /// while it travels: the memory is busy until the completion with this `work`.
    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault>;
    /// Memory of the library, `len` bytes of zeros, valid as long as the device.
    fn allocate(&mut self, len: usize) -> Span;
    /// Reads a word that a peer may write: what was written before it is visible.
    fn load(&self, addr: usize) -> u64;
    /// Writes a word that a peer may read.
    fn store(&mut self, addr: usize, value: u64);
    /// Lets time pass for what software does; nothing to do where time is real.
    #[inline(always)]
    fn charge(&mut self, _what: Charge) {}
    /// Names what is posted from here on, for whoever draws it; asked for only where something is.
    #[inline(always)]
    fn label(&mut self, _name: impl FnOnce() -> &'static str) {}
    /// Ends a nap no later than at this time.
    fn alarm(&mut self, _at_ns: u64) {}

    /// Wakes the peer if it sleeps, after a change it can only see by looking (a share).
    fn wake(&self, peer: Rank);
    /// Wakes the threads of this rank that sleep, after a change that one of them may wait for.
    fn wake_threads(&self) {}
    /// That many threads of this rank wait at present: asked for where there may be several.
    fn waiters(&mut self, _threads: usize) {}
    /// A peer may have written this memory by itself, which is told tools that watch memory.
    #[inline(always)]
    fn was_written(&self, _span: Span) {}
    /// Called when a wait is over.
    fn awake(&mut self);
    /// Called when a look around found nothing: what to do next. `round` counts such looks in a
    /// row.
    fn idle(&mut self, round: u32) -> Self::Nap;
    /// Called when a test found nothing: what to do before the application goes on, which may have
    /// better things to do than sleep. `None` where cores suffice.
    fn spare(&self) -> Option<Self::Nap> {
        None
    }
    /// The bell of this rank; `None` where progress outside MPI is not possible.
    fn bell(&self) -> Option<Arc<dyn Bell>> {
        None
    }
    /// Tells what went wrong in calls that could not say so, and whether peers are gone; asked now and
    /// then, and after each sleep. What costs time is done by the clock.
    fn check(&mut self) -> Result<(), Fault>;
}

/// How ranks find each other: put, fence, get (the launcher's key-value space).
pub trait Exchange {
    /// Publishes `value` under `key`.
    fn put(&mut self, key: &str, value: &str) -> Result<(), String>;
    /// Returns when all ranks have called it; values put before are visible behind it.
    fn fence(&mut self) -> Result<(), String>;
    /// What some rank has put under `key`.
    fn get(&mut self, key: &str) -> Result<String, String>;
}
