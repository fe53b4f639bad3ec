//! Rendezvous where both sides copy.
//!
//! Wins above some 16 KiB where the kernel lets ranks reach each other's memory: one copy instead
//! of two, by both cores at once, and neither side has to wait for the other: whoever is inside
//! MPI claims the next piece. An early sender that computes finds the message pulled by its
//! receiver, an early receiver that computes finds it pushed by its sender (dissertation,
//! chapter 4: what makes overlap on both sides possible). Costs a system call per piece.
//!
//! ```text
//! sender                share                receiver
//!   RTS(addr, len, share) ───────────────────▶ match
//!                      ◀─ Length, Partner ──
//!   claim piece k      ─▶ Claim ◀─             claim piece k+1
//!   write piece k                              read piece k+1
//!   add                ─▶ Done  ◀─             add
//!        Done = Length: both are finished, Left counts them out
//! ```
//! With an RTR the roles at the start change: the receiver opens the share, the sender takes it.

use crate::choose::Choice;
use crate::event::{Counters, Event};
use crate::op::{Failure, OpId, Outcome, PendingOp, Side};
use fabric::{Device, Rank, Share, ShareWord, Span};

/// Smallest piece: below it the system call dominates. A message that is not longer is copied by
/// the receiver alone, as soon as it is matched: sharing the work would cost more than the work.
pub(crate) const PIECE_MIN: usize = 32 * 1024;
/// Largest piece: bounds how long the faster side waits for the last one.
const PIECE_MAX: usize = 256 * 1024;

/// A message under way between two buffers.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub side: Side,
    pub peer: Rank,
    pub share: Share,
    pub local: Span,
    /// Address of the peer's buffer.
    pub remote: usize,
    /// Bytes to move.
    pub len: usize,
    pub context: u64,
    pub outcome: Outcome,
    /// Whether this side can reach the peer's memory; if not it leaves the copying to it.
    pub can_copy: bool,
    /// Whether this side found the other one's buffer: then it copies whatever the other does.
    pub began: bool,
}

impl Transfer {
    /// Copies pieces until none is left to claim; true once the whole message has been moved. A
    /// side that does not `help` leaves what the other began to the other.
    pub fn pump(
        &mut self,
        dev: &mut impl Device,
        counters: &mut Counters,
        choice: &mut Choice,
        help: bool,
    ) -> bool {
        let piece = (self.len / 8).next_multiple_of(4096).clamp(PIECE_MIN, PIECE_MAX);
        while self.can_copy && (help || self.began) && self.claimable(dev) {
            let offset = dev.share_add(self.share, ShareWord::Claim, piece as u64) as usize;
            if offset >= self.len {
                break;
            }
            let start = dev.now_ns();
            let moved = self.copy_piece(dev, counters, offset, piece);
            choice.moved(moved, dev.now_ns() - start);
        }
        let done = dev.share_load(self.share, ShareWord::Done) >= self.len as u64;
        if done {
            if dev.share_load(self.share, ShareWord::Failed) != 0 && self.outcome.failure.is_none() {
                self.outcome.failure =
                    Some(Box::new(Failure::Device(format!("rank {} could not copy its part", self.peer))));
            }
            dev.share_add(self.share, ShareWord::Left, 1);
        }
        done
    }

    /// A look before the claim keeps the counter from running on and spares an atomic operation.
    fn claimable(&self, dev: &impl Device) -> bool {
        dev.share_load(self.share, ShareWord::Claim) < self.len as u64
    }

    fn copy_piece(
        &mut self,
        dev: &mut impl Device,
        counters: &mut Counters,
        offset: usize,
        piece: usize,
    ) -> usize {
        let local = self.local.part(offset, piece.min(self.len - offset));
        let result = match self.side {
            Side::Receive => {
                counters.count(Event::PiecePulled);
                dev.read(self.peer, local, self.remote + offset)
            }
            Side::Send => {
                counters.count(Event::PiecePushed);
                dev.write(self.peer, local, self.remote + offset)
            }
        };
        if let Err(fault) = result {
            dev.share_store(self.share, ShareWord::Failed, 1);
            self.outcome.failure = Some(Box::new(Failure::Device(format!("{fault:?}"))));
        }
        let before = dev.share_add(self.share, ShareWord::Done, local.len as u64);
        if before + local.len as u64 >= self.len as u64 {
            dev.wake(self.peer);
        }
        local.len
    }

    pub fn pending(&self, id: OpId, since_ns: u64) -> PendingOp {
        PendingOp {
            id,
            side: self.side,
            peer: Some(self.peer),
            tag: Some(self.outcome.tag),
            context: self.context,
            len: self.len,
            matched: true,
            since_ns,
        }
    }
}
