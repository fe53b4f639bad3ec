//! Transfers of registered memory that are posted and end by themselves, and the memory they need.

use crate::device::{Fault, Rank, Span};
use crate::rights::{Region, Rights};
use crate::verbs::{Atomic, Local, Remote};
use std::collections::VecDeque;

/// What a device does with registered memory: registers it, and moves it to and from peers.
pub trait Transfers {
    /// Number of adapters a long message can be spread over.
    fn rails(&self) -> usize {
        1
    }
    /// Registers memory with one adapter, for these uses. Asked for where [`crate::Caps::registration`] is set.
    fn register(&mut self, _rail: usize, _span: Span, _rights: Rights) -> Result<Region, Fault> {
        Ok(Region::default())
    }
    /// Gives a registration back.
    fn deregister(&mut self, _rail: usize, _region: Region) {}
    /// The unit of registration, in bytes: a power of two.
    fn page_bytes(&self) -> usize {
        4096
    }
    /// Asks to be told when this memory goes away. False if nobody can tell: then a registration
    /// must not outlive the transfer that needs it.
    fn watch(&mut self, _span: Span) -> bool {
        false
    }
    /// Whether watched memory has gone away since the last [`Transfers::take_changes`].
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
    /// Adds to `out` the number of the frame of physical memory that each page of a span lies in now, of memory that is
    /// registered so. False if nobody shows them, or they may change under a registration that is in order, because the adapter
    /// goes by addresses.
    fn frames(&mut self, _rail: usize, _region: Region, _span: Span, _out: &mut Vec<u64>) -> bool {
        false
    }
    /// Starts to write registered memory to memory of `to`; it ends as a completion with this
    /// `work`. False if the queue to this peer over this rail is full; then nothing has happened, and
    /// queues to others may have room.
    ///
    /// The completion, also one that reports an error, says that `local` *may be reused*. That the
    /// bytes are *placed* the peer learns from a frame sent by [`Transfers::try_send_behind`].
    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault>;
    /// Starts to read memory of `from` into registered memory, as [`Transfers::post_write`].
    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault>;
    /// Starts to change a word of `at`, in one with what its processors do to it; what it was before goes to the 8 bytes of
    /// `local`. As [`Transfers::post_read`]; false also where the adapter cannot.
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
    /// As [`crate::Device::try_send`], but the frame is not shown before everything is placed that this rank
    /// has posted to `to` over `rail` before. At most 40 bytes.
    fn try_send_behind(&mut self, to: Rank, rail: usize, head: [u64; 2], data: Span) -> bool;
    /// Whether the bytes of a posted write become visible at this peer in the order of their
    /// addresses, and the peer looks around while it lands. Many adapters behave so; a processor that
    /// copies for its peer may store in any order.
    fn writes_in_order(&self, to: Rank) -> bool;
    /// The oldest completion that has not been fetched: its work and how it ended. Work ends in any
    /// order, and all of it ends, whatever has become of the peer.
    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)>;
    /// As [`crate::Device::try_send`], but the payload is taken from memory registered with the first adapter
    /// while it travels: the memory is busy until the completion with this `work`.
    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault>;
    /// Memory of the library, `len` bytes of zeros, valid as long as the device.
    fn allocate(&mut self, len: usize) -> Span;
    /// Reads a word that this peer may write: what it wrote before is visible.
    fn load(&self, peer: Rank, addr: usize) -> u64;
    /// Writes a word that this peer may read or write.
    fn store(&mut self, peer: Rank, addr: usize, value: u64);
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

    /// See [`Transfers::completed`].
    #[inline(always)]
    pub fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        self.done.pop_front()
    }

    /// See [`Transfers::allocate`].
    pub fn allocate(&mut self, len: usize) -> Span {
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let addr = words.as_mut_ptr() as usize;
        self.memory.push(words);
        Span { addr, len }
    }
}
