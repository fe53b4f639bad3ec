//! What an adapter with registered memory offers: the verbs, cut to what the protocols use.
//!
//! Memory is registered with an adapter (a *rail*) before it takes part in any transfer and gets
//! two keys, one for what its own rank posts and one for peers; work is posted to the queue pair of a peer over one rail and ends as a completion. Nothing
//! here blocks, copies behind the back of the caller or calls back. The simulator, the software
//! adapter and real adapters implement [`Verbs`]; `proto::channel` makes of it the frames that the
//! engine asks of every [`crate::Device`].
//!
//! # What is promised, and what is not
//!
//! - *May be reused.* A completion says that the adapter is done with the memory of its poster, also
//!   when it reports an error. Until then that memory stays as it is, and registered. All posted
//!   work completes, whatever has become of its peer.
//! - *Placed.* That the bytes of a write are in the memory of the peer is said by no completion of
//!   the poster. A message that was sent behind the write, to the same peer over the same rail, says
//!   it to the peer when it has come. This holds for what a write that failed has left, too.
//! - *Order.* Messages sent to one peer over one rail come in order. Between rails there is no
//!   order, nor among the completions of several peers or rails.
//! - *Inside writes.* An aligned word lands whole. Only where [`VerbsCaps::writes_in_order`] says
//!   so do the bytes of a write become visible in the order of their addresses, and writes to one
//!   peer over one rail one after the other.
//! - *Rights.* Memory is registered for what it is needed for ([`Rights`]), and an adapter does with it nothing else for a peer:
//!   such work fails, and no byte of that memory is changed or told. An adapter may allow more than was asked for where it
//!   must: one of iWARP in hardware lets a peer write where this rank places what it reads, for the peer answers
//!   by writing. Rights to what an adapter cannot do at all are of no meaning. To keep to them in what it posts is up to a rank.
//! - *Room.* A queue that is full is that of one peer over one rail; the others take work.

use crate::costs::{Costs, Distance};
use crate::device::{Fault, Rank, Span};
use crate::rights::{Region, Rights};
use crate::waiting::Nap;

/// Of what begins while nothing is under way to a peer so many bytes of datagrams leave at once: it takes them in while this rank puts together
/// what follows.
pub const FIRST_BYTES: usize = 32 << 10;

/// Memory of this process and the key under which the adapter knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Local {
    /// Where it is.
    pub span: Span,
    /// Its key here ([`Region::local`]); of no meaning for data that travels inline.
    pub key: u32,
}

/// The beginning of memory of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remote {
    /// Address in the peer's process.
    pub addr: u64,
    /// The key it is known to peers by ([`Region::remote`]).
    pub key: u32,
}

/// What a completion ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Done {
    /// A send: its memory may be used again.
    Sent,
    /// An RDMA write: its memory may be used again. Whether the bytes are placed is another matter.
    Written,
    /// An RDMA read: the data is there.
    Read,
    /// A message has come into a posted receive buffer.
    Received {
        /// From whom.
        from: Rank,
        /// Its length in bytes.
        len: usize,
        /// Whether it was a datagram.
        datagram: bool,
    },
    /// No posted work: a connection has ended that [`Verbs::gives_slots`] spoke of, and nothing is under way with the peer. What came before
    /// has its completion before this one, and what comes later behind it. Until this has been fetched nothing is taken for the peer.
    Parted {
        /// With whom.
        from: Rank,
    },
}

/// The end of posted work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// As given when it was posted.
    pub work: u64,
    /// What has ended.
    pub done: Done,
    /// How.
    pub result: Result<(), Fault>,
}

/// What software does that costs time without being a call of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charge {
    /// A look into the table of buffer usage, which compared this many entries.
    UsageSearch(u32),
    /// A look into the registration cache, which compared this many entries.
    CacheSearch(u32),
    /// Matching a message or a receive: entries compared.
    Match(u32),
    /// Building or reading a header.
    Header,
    /// Time of the application, in nanoseconds.
    Compute(u64),
}

/// What an adapter is like.
#[derive(Clone, Debug)]
pub struct VerbsCaps {
    /// Name of the device, as `tern info` shows it.
    pub name: &'static str,
    /// Payload that the processor writes into the work request itself, in bytes.
    pub inline_bytes: usize,
    /// Longest of what [`Verbs::post_at_once`] takes, in bytes; 0 where nothing can be posted so.
    pub at_once_bytes: usize,
    /// Entries of a gather list.
    pub gather: usize,
    /// Longest datagram in bytes; 0 if there are none.
    pub datagram_bytes: usize,
    /// The most that one work request moves, in bytes.
    pub transfer_bytes: usize,
    /// Work requests that may be outstanding to one peer over one rail.
    pub depth: usize,
    /// Bytes that may be registered at a time.
    pub lockable_bytes: usize,
    /// Regions that may be registered at a time.
    pub regions: usize,
    /// The unit of registration, in bytes.
    pub page_bytes: usize,
    /// Whether transfers go on while no process of this host is inside MPI.
    pub offload: bool,
    /// Whether writes to one peer over one rail become visible in the order of posting, and the bytes of
    /// each in the order of their addresses.
    pub writes_in_order: bool,
    /// Receive buffers that it holds at a time, where a message that finds none breaks its connection (iWARP): there must be one for
    /// each that may come. `None`: such a message waits, or its post fails.
    pub holds_receives: Option<usize>,
    /// Whether it changes words of 8 bytes ([`Atomic`]), and so that nothing comes between: neither its own changes nor those
    /// of the processors of that host. An adapter in hardware whose atomics are atomic among themselves alone says no.
    pub coherent_atomics: bool,
}

/// A change of a word of 8 bytes on their boundary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    /// Adds, without overflow.
    Add(u64),
    /// Puts another value there if it holds the one that is compared with.
    CompareSwap {
        /// What is expected.
        compare: u64,
        /// What takes its place.
        swap: u64,
    },
}

/// Adapters of one rank beyond which messages tell no keys.
pub const RAILS_MAX: usize = wire::long::RAILS;

/// One rank's adapters and its queue pairs with all peers.
pub trait Verbs {
    /// See [`Nap`].
    type Nap: Nap;

    /// This rank.
    fn me(&self) -> Rank;
    /// Number of ranks of the job.
    fn size(&self) -> usize;
    /// What the adapters are like.
    fn caps(&self) -> &VerbsCaps;
    /// Number of adapters of this host.
    fn rails(&self) -> usize;
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

    /// Memory of the library, `len` bytes of zeros, valid as long as the device.
    fn allocate(&mut self, len: usize) -> Span;
    /// Registers memory with one adapter, for these uses. The limits are errors, see [`VerbsCaps`].
    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault>;
    /// Gives a registration back.
    fn deregister(&mut self, rail: usize, region: Region);

    /// As [`crate::Transfers::watch`].
    fn watch(&mut self, _span: Span) -> bool {
        false
    }
    /// As [`crate::Transfers::memory_changed`].
    #[inline(always)]
    fn memory_changed(&self) -> bool {
        false
    }
    /// As [`crate::Transfers::take_changes`].
    fn take_changes(&mut self, _gone: &mut Vec<Span>) {}
    /// As [`crate::Transfers::is_unchanged`].
    #[inline(always)]
    fn is_unchanged(&mut self, _span: Span) -> bool {
        true
    }
    /// As [`crate::Transfers::frames`].
    fn frames(&mut self, _rail: usize, _region: Region, _span: Span, _out: &mut Vec<u64>) -> bool {
        false
    }

    /// Whether a peer may go while others go on, and leave work undone: it is of another job.
    fn may_leave(&self, _peer: Rank) -> bool {
        false
    }

    /// Sends the concatenation of `parts` into a receive buffer of `to`. False if the queue is full
    /// or the receiver has shown to have no buffer; then nothing has happened.
    fn post_send(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault>;
    /// Sends the concatenation of `parts` as a datagram, which may be lost, doubled, delayed or
    /// overtaken; at most [`VerbsCaps::datagram_bytes`].
    fn post_datagram(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault>;
    /// Gives a buffer for messages and datagrams that come over this rail, from any peer.
    fn post_receive(&mut self, rail: usize, buffer: Local, work: u64);
    /// The buffer that a message has come into whose completion was just polled, if it is not the one that was posted as this `work`: they have changed
    /// places, and the one that was posted is the adapter's.
    fn received_in(&mut self, _work: u64) -> Option<Local> {
        None
    }
    /// Writes the concatenation of `parts` to memory of `to`.
    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault>;
    /// Sends the concatenation of `parts`, or writes it to `remote`, and has read it when this returns: it need not be registered, and may
    /// change. At most [`VerbsCaps::at_once_bytes`]. False where that cannot be, or not now; then nothing has happened, and it can be
    /// posted from memory that is lent.
    fn post_at_once(
        &mut self,
        _to: Rank,
        _parts: &[Local],
        _remote: Option<Remote>,
        _work: u64,
    ) -> Result<bool, Fault> {
        Ok(false)
    }
    /// Reads memory of `from`.
    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault>;
    /// Changes a word of `at`; what it was before goes to the 8 bytes of `local`. It ends as a read does, and what is posted behind
    /// it to the same peer comes behind it. False also where the adapter cannot, or not at this peer, or not in this order.
    fn post_atomic(
        &mut self,
        _at: Rank,
        _rail: usize,
        _local: Local,
        _remote: Remote,
        _atomic: Atomic,
        _work: u64,
    ) -> Result<bool, Fault> {
        Ok(false)
    }
    /// What was posted to a peer leaves now, as far as the peer has room. Without this what is short may wait
    /// for the next look, so that several leave together.
    fn flush(&mut self, _to: Rank) {}
    /// As [`Verbs::flush`], for a message that others may follow at once: it leaves unless it is one of many.
    fn flush_unless_many(&mut self, to: Rank) {
        self.flush(to);
    }
    /// The write that is posted to this peer next may wait for what is posted behind it, and for [`Verbs::flush`].
    fn leads(&mut self, _to: Rank) {}
    /// Whether something waits to leave.
    fn owes(&self) -> bool {
        false
    }
    /// Whether this peer may be given memory of its own to write messages to; what it has is to be given back at [`Done::Parted`].
    fn gives_slots(&mut self, _peer: Rank) -> bool {
        true
    }
    /// Ends the connection with a peer, if there is one; nothing is under way over it. The next work that is posted to the
    /// peer begins another.
    fn disconnect(&mut self, _peer: Rank, _rail: usize) {}
    /// The oldest completion that has not been fetched.
    fn poll(&mut self) -> Option<Completion>;
    /// Peers whose writes may have landed since the last look, by position; `None` behind the last. Asked
    /// for where writes land in order, and elsewhere of no use.
    fn touched(&mut self, position: usize) -> Option<Rank>;

    /// Copies between two places in this process.
    fn copy(&mut self, to: usize, from: usize, len: usize);
    /// Copies from `data` into `out`, which is as long: a header, free of charge.
    fn peek_bytes(&self, data: Span, out: &mut [u8]);
    /// Copies `bytes` to address `to`: a header, free of charge.
    fn poke_bytes(&mut self, to: usize, bytes: &[u8]);
    /// Reads a word that a peer may write: what was written before it is visible.
    fn load(&self, addr: usize) -> u64;
    /// Writes a word that an adapter may read.
    fn store(&mut self, addr: usize, value: u64);

    /// Lets time pass for what software does.
    fn charge(&mut self, what: Charge);
    /// Names what is posted from here on, for whoever draws it; asked for only where something is.
    #[inline(always)]
    fn label(&mut self, _name: impl FnOnce() -> &'static str) {}
    /// Ends a nap no later than at this time.
    fn alarm(&mut self, at_ns: u64);
    /// Called when a wait is over.
    fn awake(&mut self);
    /// As [`crate::Device::waiters`].
    fn waiters(&mut self, _threads: usize) {}
    /// As [`crate::Device::rests`].
    fn rests(&mut self) {}
    /// Called when a look around found nothing: what to do next. `round` counts such looks in a row. There is no
    /// sleep while a completion or a touched peer waits to be asked for: nothing would end it.
    fn idle(&mut self, round: u32) -> Self::Nap;
    /// As [`crate::Device::has_served`].
    #[inline(always)]
    fn has_served(&mut self) -> bool {
        false
    }
    /// As [`crate::Device::take_lost`].
    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        None
    }
    /// What concerns all peers.
    fn check(&mut self) -> Result<(), Fault>;
}
