//! What a schedule asks of the transport below it.
use super::program::Program;
use super::tag::Tag;
use super::ty::Type;
use crate::error::{Error, Result};
use fabric::Span;

/// Memory to be sent or received into.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// A run of bytes.
    Bytes {
        /// The first byte.
        addr: usize,
        /// How many.
        len: u64,
    },
    /// Elements with gaps.
    Typed {
        /// The address the type's displacements count from.
        addr: usize,
        /// How many elements.
        count: u64,
        /// Their type.
        ty: &'a Type,
    },
}

/// A message in flight, as the transport names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct OpId(pub u64);

impl OpId {
    /// The message left at once: it needs no waiting for.
    pub const DONE: OpId = OpId(u64::MAX);
}

/// The transport below a schedule: point-to-point messages in the collective context of one
/// communicator, in order between each pair of ranks.
pub trait Io {
    /// Starts a send to rank `peer`; the data stays valid until polled as done.
    fn isend(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId>;
    /// Starts a send of data that its receiver combines as they come.
    fn isend_combined(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        self.isend(peer, tag, data)
    }
    /// Sends the same to several ranks at once, as far as that is cheaper than one by one and possible
    /// now: to how many of them, from the first on, it has left.
    fn send_all(&mut self, _peers: &[usize], _tag: Tag, _data: Data<'_>) -> usize {
        0
    }
    /// Starts a receive from rank `peer`.
    fn irecv(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId>;
    /// `None` while in flight, then once the number of bytes received. A message longer than the
    /// buffer is reported with its full length or as an error, and never written past the buffer.
    fn poll(&mut self, op: OpId) -> Option<Result<u64>>;
    /// Starts a receive whose message may be read where it lies: it is polled by [`Io::poll_combined`].
    fn irecv_combined(&mut self, peer: usize, tag: Tag, data: Data<'_>) -> Result<OpId> {
        self.irecv(peer, tag, data)
    }
    /// As [`Io::poll`], and whether `each` has been given the message: piece by piece, by their distance from its beginning, each once and in
    /// order. If not, it is where the receive was to put it.
    fn poll_combined(&mut self, op: OpId, _each: &mut dyn FnMut(usize, Span)) -> Option<(Result<u64>, bool)> {
        self.poll(op).map(|result| (result, false))
    }
    /// The tag of a message from `peer` that has arrived and that no receive has asked for: when
    /// the one that is waited for does not come, it may tell why. `None` if there is none.
    fn unclaimed(&mut self, peer: usize) -> Option<Tag>;
    /// Why no collective of this communicator can end, once that is known.
    fn given_up(&self) -> Option<Error> {
        None
    }
    /// What to call rank `peer` in an error.
    fn name(&self, peer: usize) -> String {
        format!("rank {peer}")
    }
    /// The time, where an account of collectives is kept.
    fn now_ns(&self) -> Option<u64> {
        None
    }
    /// A run that began at `since_ns` has ended well: for the account.
    fn ended(&mut self, _program: &Program, _since_ns: u64) {}
    /// Whether polls have become rare, because this rank sleeps between them.
    fn is_asleep(&self) -> bool {
        false
    }
}
