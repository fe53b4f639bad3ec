//! Rendezvous where both sides copy.
//!
//! Wins above some 64 KiB, near cores 256 KiB, where the kernel lets ranks reach each other's memory: one copy instead
//! of two, by both cores at once, and neither side has to wait for the other: whoever is inside
//! MPI claims the next piece. An early sender that computes finds the message pulled by its
//! receiver, an early receiver that computes finds it pushed by its sender (dissertation,
//! chapter 4: what makes overlap on both sides possible). Costs a system call per piece.
//!
//! ```text
//! sender                share                receiver
//!   RTS(addr, len, share) ───────────────────▶ match
//!                      ◀─ Length, Partner ──
//!   claim from the end ─▶ Claim ◀─             claim from the beginning
//!   write the piece                            read the piece
//!   add                ─▶ Done  ◀─             add
//!        Done = Length: both are finished, Left counts them out
//! ```
//! With an RTR the roles at the start change: the receiver opens the share, the sender takes it.

use crate::event::{Amount, Counters, Event};
use crate::limit::Limit;
use crate::op::{Failure, OpId, Outcome, PendingOp, Side};
use fabric::{Device, Fault, Rank, Share, ShareWord, Span};

/// Smallest piece: below it the system call dominates. A message that is not longer is copied by
/// the receiver alone, as soon as it is matched: sharing the work would cost more than the work.
pub(crate) const PIECE_MIN: usize = 32 * 1024;
/// Largest piece: bounds how long the faster side waits for the last one.
const PIECE_MAX: usize = 1024 * 1024;
/// What claims count in.
const PAGE: usize = 4096;

/// Length of the next piece when `left` bytes are unclaimed: half of them, or all if nobody else
/// is expected to take the other half.
fn piece(left: usize, alone: bool) -> usize {
    let wanted = if alone { left } else { left / 2 };
    wanted.clamp(PIECE_MIN, PIECE_MAX)
}

/// What the two sides have claimed, in pages, in one word: the receiver's from the beginning of
/// the message in the lower half, the sender's from its end in the upper half.
#[derive(Clone, Copy)]
pub(crate) struct Claims(pub u64);

impl Claims {
    /// `pages` claimed by one side.
    pub fn of(side: Side, pages: usize) -> Claims {
        match side {
            Side::Receive => Claims(pages as u64),
            Side::Send => Claims((pages as u64) << 32),
        }
    }

    /// All of a message of `len` bytes, claimed by its receiver.
    pub fn whole(len: usize) -> Claims {
        Claims::of(Side::Receive, len.div_ceil(PAGE))
    }

    /// Pages claimed from the beginning and from the end.
    fn both(self) -> (usize, usize) {
        (self.0 as u32 as usize, (self.0 >> 32) as usize)
    }

    /// Pages of `len` bytes that nobody has claimed; `None` if there are none.
    fn left(self, len: usize) -> Option<usize> {
        let (front, back) = self.both();
        len.div_ceil(PAGE).checked_sub(front + back).filter(|left| *left > 0)
    }

    /// The bytes of `len` that a claim of `pages` by `side` got, these being the claims before it.
    fn piece(self, side: Side, pages: usize, len: usize) -> Option<(usize, usize)> {
        let pages = pages.min(self.left(len)?);
        let (front, back) = self.both();
        let first = match side {
            Side::Receive => front,
            Side::Send => len.div_ceil(PAGE) - back - pages,
        };
        let offset = first * PAGE;
        Some((offset, (pages * PAGE).min(len - offset)))
    }
}

/// What [`ShareWord::Failed`] says: a copy failed, and whose buffer it was, if that is known.
const FAILED: u64 = 1;
const BAD_SEND_BUFFER: u64 = 2;
const BAD_RECEIVE_BUFFER: u64 = 3;

/// A copy of this side has failed: what the share tells the other side, and what this one reports.
pub(crate) fn failed(fault: &Fault, side: Side) -> (u64, Failure) {
    let Fault::BadAddress { local } = *fault else { return (FAILED, Failure::Device(format!("{fault:?}"))) };
    let of_sender = (side == Side::Send) == local;
    let (word, whose) =
        if of_sender { (BAD_SEND_BUFFER, Side::Send) } else { (BAD_RECEIVE_BUFFER, Side::Receive) };
    (word, Failure::Buffer { side: whose, own: local })
}

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
    /// Copies pieces until none is left to claim; whether there was any.
    /// `alone` if the peer is not expected to help.
    pub fn copy(
        &mut self,
        dev: &mut impl Device,
        counters: &mut Counters,
        choice: &mut Limit,
        alone: bool,
    ) -> bool {
        let mut any = false;
        while self.can_copy
            && let Some((offset, len)) = self.claim(dev, alone)
        {
            let start = choice.prices(len).then(|| dev.now_ns());
            self.copy_piece(dev, counters, offset, len);
            if let Some(start) = start {
                choice.moved(len, dev.now_ns() - start);
            }
            any = true;
        }
        any
    }

    /// Whether the whole message has been moved. To be called until it says so, and not again:
    /// then this side has left the share.
    pub fn ended(&mut self, dev: &impl Device) -> bool {
        let done = dev.share_load(self.share, ShareWord::Done) >= self.len as u64;
        if done {
            if self.outcome.failure.is_none() {
                self.outcome.failure = self.told(dev.share_load(self.share, ShareWord::Failed)).map(Box::new);
            }
            dev.share_add(self.share, ShareWord::Left, 1);
        }
        done
    }

    /// The failure that the other side's word stands for.
    fn told(&self, word: u64) -> Option<Failure> {
        let bad = |side| Some(Failure::Buffer { side, own: side == self.side });
        match word {
            0 => None,
            BAD_SEND_BUFFER => bad(Side::Send),
            BAD_RECEIVE_BUFFER => bad(Side::Receive),
            _ => Some(Failure::Device(format!("rank {} could not copy its part", self.peer))),
        }
    }

    /// Claims the next piece of this side: where it begins and how long it is.
    ///
    /// A look before the claim says how much is left, keeps the counters from running on, and
    /// spares an atomic operation when nothing is.
    fn claim(&self, dev: &impl Device, alone: bool) -> Option<(usize, usize)> {
        let left = Claims(dev.share_load(self.share, ShareWord::Claim)).left(self.len)?;
        let pages = piece(left * PAGE, alone).div_ceil(PAGE);
        let before = Claims(dev.share_add(self.share, ShareWord::Claim, Claims::of(self.side, pages).0));
        before.piece(self.side, pages, self.len)
    }

    fn copy_piece(&mut self, dev: &mut impl Device, counters: &mut Counters, offset: usize, len: usize) {
        let local = self.local.part(offset, len);
        let result = match self.side {
            Side::Receive => {
                counters.count(Event::PiecePulled);
                counters.add(Amount::PulledBytes, len as u64);
                dev.read(self.peer, local, self.remote + offset)
            }
            Side::Send => {
                counters.count(Event::PiecePushed);
                counters.add(Amount::PushedBytes, len as u64);
                dev.write(self.peer, local, self.remote + offset)
            }
        };
        if let Err(fault) = result {
            let (word, failure) = failed(&fault, self.side);
            dev.share_store(self.share, ShareWord::Failed, word);
            self.outcome.failure = Some(Box::new(failure));
        }
        let before = dev.share_add(self.share, ShareWord::Done, local.len as u64);
        if before + local.len as u64 >= self.len as u64 {
            dev.wake(self.peer);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever claims how much, in whatever order: every byte once.
    #[test]
    fn claims_from_both_ends_cover_a_message_once() {
        for (len, order) in
            [(1, 0b1), (4096, 0b0), (300_001, 0b0110_1001), (5 << 20, 0b0111_0001), (5 << 20, 0)]
        {
            let (mut claims, mut covered, mut at) = (Claims(0), Vec::new(), 0);
            while let Some(left) = claims.left(len) {
                let side = if order >> (at % 8) & 1 == 0 { Side::Receive } else { Side::Send };
                let pages = piece(left * PAGE, at % 3 == 0).div_ceil(PAGE);
                covered.push(claims.piece(side, pages, len).expect("something is left"));
                claims.0 += Claims::of(side, pages).0;
                at += 1;
            }
            covered.sort();
            let end = covered.iter().fold(0, |end, (offset, len)| {
                assert_eq!(*offset, end);
                end + len
            });
            assert_eq!(end, len);
            assert!(claims.piece(Side::Send, 1, len).is_none() && Claims::whole(len).left(len).is_none());
        }
    }
}
