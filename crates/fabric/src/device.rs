//! What a protocol may ask of the hardware, real or modelled.
//!
//! A device connects this rank with all others of the job. It moves *frames* (two header words
//! and a payload, in order per pair of ranks), gives *remote access* to memory of the peer, may
//! hold [`Shares`], and posts [`Transfers`] of registered memory. Calls never block and never call back.

use crate::costs::{Costs, Distance};
use crate::shares::Shares;
use crate::transfers::Transfers;
use crate::verbs::Charge;
use crate::waiting::{Bell, Nap};
use std::sync::Arc;

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

    /// Whether `len` bytes from `addr` on are inside, whatever these numbers are.
    pub fn includes(self, addr: usize, len: usize) -> bool {
        addr.checked_sub(self.addr).is_some_and(|begin| begin <= self.len && len <= self.len - begin)
    }
}

/// Of how many bytes the pieces of a payload that is read where it lies are multiples, but for the last one. So no number is cut
/// whose size is a power of two.
pub const PIECE_STEP: usize = 64;

/// Pieces of one [`Device::read_many`].
pub const READ_MANY: usize = 16;

/// Who reads a payload where it lies.
pub struct Reading<'a> {
    /// The header of its frame.
    pub head: [u64; 2],
    /// Its length in bytes.
    pub len: usize,
    /// How many of these have been read, in the calls before this one for the same frame too.
    pub done: usize,
    /// Is given each piece once and in order: how far from the beginning it lies, in bytes, and where.
    pub each: &'a mut dyn FnMut(usize, Span),
}

impl Reading<'_> {
    /// Reads what has not been read of a payload that lies there as a whole.
    pub fn read_rest(&mut self, data: Span) {
        (self.each)(self.done, data.part(self.done, data.len));
        self.done = self.len;
    }
}

/// A frame that has arrived and is still in the memory of the device.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The header words as the sender gave them.
    pub head: [u64; 2],
    /// The payload, valid until [`Device::pop`], or [`Device::release`] after [`Device::retain`].
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
    /// The same of one that leaves from where the application has it, and is free again then; what is longer than [`Caps::frame_bytes`] finds
    /// room only if it can leave at once. 0 where frames are copied before they leave.
    pub at_once_bytes: usize,
    /// The most that one [`Device::post_read`] or [`Device::post_write`] moves, in bytes.
    pub transfer_bytes: usize,
    /// Whether [`Device::read`] and [`Device::write`] work.
    pub remote_access: bool,
    /// Why remote access does not work, for a person who asks.
    pub remote_access_note: String,
    /// How often to look for a message before giving up the core pays.
    pub looks: u32,
    /// Whether long messages go through memory that is registered with adapters; if not, both sides agree on them
    /// by a share and copy by [`Device::read`] and [`Device::write`].
    pub registration: bool,
    /// Whether each rank has a core for a thread of the library beside its application.
    pub spare_cores: bool,
}

/// A device that does nothing but take frames, on a host with cores to spare.
impl Default for Caps {
    fn default() -> Caps {
        Caps {
            name: "",
            inline_bytes: 0,
            frame_bytes: 0,
            at_once_bytes: 0,
            transfer_bytes: usize::MAX,
            remote_access: false,
            remote_access_note: String::new(),
            looks: 1,
            registration: false,
            spare_cores: true,
        }
    }
}

/// The device could not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Remote access to this peer is not permitted; use frames.
    NotPermitted,
    /// The peer is gone.
    PeerGone(Rank),
    /// The same of a process of another job, whose number here no program knows.
    GuestGone(Rank),
    /// There is no way to the peer any more, for this reason: it may live on elsewhere.
    PeerLost(Rank, String),
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
            Fault::GuestGone(_) => f.write_str("a rank of a joined job has died"),
            Fault::PeerLost(rank, why) => write!(f, "rank {rank} of MPI_COMM_WORLD is lost: {why}"),
            Fault::BadAddress { local } => {
                let whose = if *local { "this" } else { "the other" };
                write!(f, "a buffer of {whose} rank is not memory it may use")
            }
            Fault::Limit(text) | Fault::Device(text) => f.write_str(text),
        }
    }
}

impl Fault {
    /// The peer that is gone or lost, if that is what happened.
    pub fn lost_peer(&self) -> Option<Rank> {
        match self {
            Fault::PeerGone(rank) | Fault::GuestGone(rank) | Fault::PeerLost(rank, _) => Some(*rank),
            _ => None,
        }
    }
}

/// One rank's connection to all others.
pub trait Device: Transfers {
    /// See [`Nap`].
    type Nap: Nap;
    /// See [`Shares`]; [`crate::NoShares`] where there are none.
    type Shares: Shares;

    /// This rank.
    fn me(&self) -> Rank;
    /// Number of ranks of the job.
    fn size(&self) -> usize;
    /// What the device can do with peers of this distance.
    fn caps(&self, distance: Distance) -> &Caps;
    /// Time since an arbitrary start, in nanoseconds.
    fn now_ns(&self) -> u64;
    /// How often this rank or its peers got memory for frames from the system: whoever sent or received meanwhile waited for that
    /// once, and later messages do not.
    fn growth(&self) -> u32 {
        0
    }
    /// How far away a peer is.
    fn distance(&self, _peer: Rank) -> Distance {
        Distance::Network
    }
    /// By rank, a number of its host: equal for ranks that share one, and the same on all ranks. `None` where all
    /// do.
    fn hosts(&self) -> Option<&[u32]> {
        None
    }
    /// What work with peers of this distance is known to cost before the first message.
    fn costs(&self, _distance: Distance) -> Costs {
        Costs::default()
    }

    /// Sends a frame of at most [`Caps::frame_bytes`]. False if there is no room now; then
    /// nothing has happened. The payload has been copied when it returns true.
    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool;
    /// As [`Device::try_send`], for a frame that others may follow at once: it may leave together with them, at
    /// the next look around at the latest.
    #[inline(always)]
    fn try_send_more(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.try_send(to, head, data)
    }
    /// As [`Device::try_send`], for a frame that another to the same rank follows at once: it leaves together with that
    /// one, at the next look around at the latest.
    #[inline(always)]
    fn try_send_with_next(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.try_send(to, head, data)
    }
    /// The write that is posted to this rank next is followed by a frame at once: it may leave together with that one, at the next look
    /// around at the latest.
    fn leads(&mut self, _to: Rank) {}
    /// Whether a frame waits for others to leave with.
    #[inline(always)]
    fn owes(&self) -> bool {
        false
    }
    /// As [`Device::try_send`] to several different ranks, for whom the payload is written once: for how many of
    /// them, from the first on, the frame has left. The others are to be sent to one by one.
    fn try_send_all(&mut self, _to: &[Rank], _head: [u64; 2], _data: Span) -> usize {
        0
    }
    /// The oldest frame from `from` that has not been popped.
    fn peek(&mut self, from: Rank) -> Option<Frame>;
    /// Gives up the frame that [`Device::peek`] showed.
    fn pop(&mut self, from: Rank);
    /// Keeps the payload of the frame that [`Device::peek`] showed where it is: the frame is popped as any other, the payload
    /// is valid until [`Device::release`]. False if that cannot be; then it must be copied.
    fn retain(&mut self, _from: Rank) -> bool {
        false
    }
    /// Gives up a payload that was retained.
    fn release(&mut self, _from: Rank, _data: Span) {}
    /// A rank whose next frames may find no room because of the payloads of it that are retained: all of these are to be
    /// released.
    #[inline(always)]
    fn pressed(&mut self) -> Option<Rank> {
        None
    }
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
    /// Whether [`Device::take_at_once`] may be called: what it spares is for devices that have nothing to ask first.
    #[inline(always)]
    fn takes_at_once(&self) -> bool {
        true
    }
    /// As [`Device::take`], for the shortest way of a message.
    #[inline(always)]
    fn take_at_once(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        self.take(from, head, room)
    }
    /// Whether [`Device::take_in_place`] may find something that comes from there.
    #[inline]
    fn reads_in_place(&self, _from: Rank) -> bool {
        false
    }
    /// As [`Device::take`], for a payload that is not copied but read where it lies, while its sender may still be writing it.
    /// `Err(true)` says that there is no more of it yet.
    fn take_in_place(&mut self, _from: Rank, _reading: &mut Reading<'_>) -> Result<(), bool> {
        Err(false)
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
    /// Reads pieces of the peer's memory by one call, at most [`READ_MANY`], each into a place from an address there: how many of them are
    /// there, from the first on. The others are for [`Device::read`], which says what is wrong, if anything is; so are all where a call for
    /// several gains nothing.
    fn read_many(&mut self, _peer: Rank, _pieces: &[(Span, usize)]) -> usize {
        0
    }
    /// Writes `local` to the peer's memory at `remote`.
    fn write(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault>;

    /// Whether adapters change words of 8 bytes of this rank ([`crate::Atomic`]) by themselves, so at any time. False where there are none, or
    /// the processor of this rank does that for them in its looks.
    fn words_change(&self) -> bool {
        false
    }
    /// Lets time pass for what software does; nothing to do where time is real.
    #[inline(always)]
    fn charge(&mut self, _what: Charge) {}
    /// Names what is posted from here on, for whoever draws it; asked for only where something is.
    #[inline(always)]
    fn label(&mut self, _name: impl FnOnce() -> &'static str) {}
    /// Ends a nap no later than at this time.
    fn alarm(&mut self, _at_ns: u64) {}

    /// The shares of this device, where long messages are agreed upon by them.
    fn shares(&self) -> Option<&Self::Shares>;
    /// The same where one has been opened, so that there are some.
    #[inline]
    fn opened_shares(&self) -> &Self::Shares {
        self.shares().expect("who holds a share has a device with shares")
    }
    /// How often what its user calls `event` happened in the device itself, if it counts that.
    fn happened(&self, _event: usize) -> u64 {
        0
    }
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
    /// Called before this rank sleeps without having been asked what to do ([`Device::idle`]), after which it looks once more: what comes by
    /// the clock has to wake it.
    fn rests(&mut self) {}
    /// Called when a look around found nothing: what to do next. `round` counts such looks in a
    /// row. In round 0 there is no sleep: another device beside this one may not have been asked to wake it.
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
    /// Whether peers were served since this was asked without anything coming of it here: their reads and writes of this
    /// rank's memory. Where one came others follow, so a wait that only serves does not count as one in vain.
    #[inline(always)]
    fn has_served(&mut self) -> bool {
        false
    }
    /// The next peer that was lost, and why, each once: nothing more comes from there or goes there, and all that was
    /// posted has completed or will. Other peers are not concerned. Asked when [`Device::check`] is.
    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
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
