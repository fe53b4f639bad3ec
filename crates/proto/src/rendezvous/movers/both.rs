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
//!
//! Who finds the other one's buffer owns the copy: the receiver of an RTS, the sender that takes an RTR.
//! While both compute the thread beside the owner's application copies.
//!
//! A side that is refused, from the start or in the middle (a process may give up being read, a filter may
//! permit one direction), gives its piece back and says so in the share: then the other one copies
//! all that is left when it is inside MPI.
//! Where both are refused, the receiver asks for the message in frames, as a whole.

use crate::choice::eager_limit::EagerLimit;
use crate::choice::tuning::PIECE_MIN;
use crate::event::{Amount, Counters, Event};
use crate::message::op::{Failure, OpId, Outcome, PendingOp, Sending, Side};
use fabric::{Device, Fault, Rank, Share, ShareWord, Shares, Span};

/// Largest piece: bounds how long the faster side waits for the last one.
pub(crate) const PIECE_MAX: usize = 1024 * 1024;
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

    /// What is added to take a claim of `pages` back.
    fn back(side: Side, pages: usize) -> u64 {
        Claims::of(side, pages).0.wrapping_neg()
    }

    /// The bytes of `len` that a claim of `pages` by `side` got, these being the claims before it, which leave
    /// as many.
    fn piece(self, side: Side, pages: usize, len: usize) -> (usize, usize) {
        let (front, back) = self.both();
        let first = match side {
            Side::Receive => front,
            Side::Send => len.div_ceil(PAGE) - back - pages,
        };
        let offset = first * PAGE;
        (offset, (pages * PAGE).min(len - offset))
    }
}

/// A piece that one side has claimed.
struct Piece {
    offset: usize,
    len: usize,
    pages: usize,
}

/// What [`ShareWord::Failed`] counts, in fields of 20 bits: copies that failed, and whose buffer it was, if
/// that is known. Above them a bit for each side that is refused.
const FAILED: u64 = 1;
const BAD_SEND_BUFFER: u64 = 1 << 20;
const BAD_RECEIVE_BUFFER: u64 = 1 << 40;
/// All of a field that begins with one of these.
const COUNT: u64 = (1 << 20) - 1;

fn refusal(side: Side) -> u64 {
    match side {
        Side::Receive => 1 << 62,
        Side::Send => 1 << 63,
    }
}

/// A copy of this side has failed: what is added to that word, and what this one reports.
pub(crate) fn failed(fault: Fault, side: Side) -> (u64, Failure) {
    let Fault::BadAddress { local } = fault else { return (FAILED, Failure::Device(fault)) };
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
    /// The peer's operation, at the receiver: it is asked for frames if need be.
    pub partner: u32,
    /// Bytes to move.
    pub len: usize,
    pub context: u64,
    pub outcome: Outcome,
    /// Whether this side can reach the peer's memory: see [`Transfer::refuse`].
    pub can_copy: bool,
    /// Whether this side found the other one's buffer. Of the two sides exactly one did, and it owns the
    /// copy: it sees to it that every piece is claimed, whether the other one helps or not.
    pub owned: bool,
    /// Whether this side copies while the other one can.
    pub helps: bool,
    /// Whether the other side has said that it does not.
    pub alone: bool,
    /// What the other side had claimed, in pages, when the owner last looked beside its application.
    pub theirs: usize,
}

impl Transfer {
    /// Copies pieces until none is left to claim; whether there was any.
    /// `alone` if the peer is not expected to help; `aside`: how many bytes a look beside the application
    /// may still copy.
    pub fn copy(
        &mut self,
        dev: &mut impl Device,
        counters: &mut Counters,
        eager_limit: &mut EagerLimit,
        alone: bool,
        aside: &mut Option<usize>,
    ) -> bool {
        let mut any = false;
        let copies = self.helps || self.is_refused(dev);
        while copies
            && self.can_copy
            && *aside != Some(0)
            && let Some(piece) = self.claim(dev, alone || self.alone)
        {
            let start = eager_limit.prices(piece.len).then(|| dev.now_ns());
            let copied = self.copy_piece(dev, counters, &piece);
            if copied && let Some(start) = start {
                eager_limit.moved(piece.len, dev.now_ns() - start);
            }
            if let Some(left) = aside {
                *left = left.saturating_sub(piece.len);
            }
            any = true;
        }
        any
    }

    /// This side cannot copy: what it has claimed and not copied is the other's.
    pub fn refuse(&mut self, dev: &impl Device) {
        self.can_copy = false;
        dev.opened_shares().add(self.share, ShareWord::Failed, refusal(self.side));
        dev.wake(self.peer);
    }

    /// Whether the other side cannot copy.
    fn is_refused(&self, dev: &impl Device) -> bool {
        let other = if self.side == Side::Send { Side::Receive } else { Side::Send };
        dev.opened_shares().load(self.share, ShareWord::Failed) & refusal(other) != 0
    }

    /// Whether neither side can copy: then the receiver is to ask for frames.
    pub fn needs_frames(&self, dev: &impl Device) -> bool {
        let both = refusal(Side::Send) | refusal(Side::Receive);
        !self.can_copy && dev.opened_shares().load(self.share, ShareWord::Failed) & both == both
    }

    /// Leaves the share: the message goes another way.
    pub fn leave(&self, dev: &impl Device) {
        dev.opened_shares().add(self.share, ShareWord::Left, 1);
    }

    /// The send that this was begun for.
    pub fn sending(&self) -> Sending {
        Sending {
            to: self.peer,
            context: self.context,
            tag: self.outcome.tag,
            data: self.local,
            met: true,
            flags: 0,
        }
    }

    /// Whether it is for this side to copy beside its application: it owns the copy, and the other one
    /// has claimed nothing since this was last asked. Who is inside MPI copies to the end, and the
    /// cores are the application's.
    pub fn is_left_to_owner(&mut self, dev: &impl Device) -> bool {
        let (front, back) = Claims(dev.opened_shares().load(self.share, ShareWord::Claim)).both();
        let theirs = if self.side == Side::Receive { back } else { front };
        self.owned && std::mem::replace(&mut self.theirs, theirs) == theirs
    }

    /// Whether the whole message has been moved. To be called until it says so, and not again:
    /// then this side has left the share.
    pub fn ended(&mut self, dev: &impl Device) -> bool {
        let done = dev.opened_shares().load(self.share, ShareWord::Done) >= self.len as u64;
        if done {
            if self.outcome.failure.is_none() {
                self.outcome.failure =
                    self.told(dev.opened_shares().load(self.share, ShareWord::Failed)).map(Box::new);
            }
            self.leave(dev);
        }
        done
    }

    /// The failure that the share's word stands for.
    fn told(&self, word: u64) -> Option<Failure> {
        let has = |what: u64| word & (what * COUNT) != 0;
        match () {
            _ if has(BAD_SEND_BUFFER) => Some(self.bad_buffer(Side::Send)),
            _ if has(BAD_RECEIVE_BUFFER) => Some(self.bad_buffer(Side::Receive)),
            _ if has(FAILED) => {
                let text = format!("rank {} could not copy its part", self.peer);
                Some(Failure::Device(Fault::Device(text)))
            }
            _ => None,
        }
    }

    fn bad_buffer(&self, side: Side) -> Failure {
        Failure::Buffer { side, own: side == self.side }
    }

    /// Claims the next piece of this side.
    ///
    /// A look before the claim says how much is left, and spares an atomic operation when nothing is.
    /// What the claim did not get is taken back: else it would be missing when a piece is given back.
    fn claim(&self, dev: &impl Device, alone: bool) -> Option<Piece> {
        let left = Claims(dev.opened_shares().load(self.share, ShareWord::Claim)).left(self.len)?;
        let wanted = piece(left * PAGE, alone).div_ceil(PAGE).min(left);
        let before =
            Claims(dev.opened_shares().add(self.share, ShareWord::Claim, Claims::of(self.side, wanted).0));
        let pages = wanted.min(before.left(self.len).unwrap_or(0));
        if pages < wanted {
            dev.opened_shares().add(self.share, ShareWord::Claim, Claims::back(self.side, wanted - pages));
        }
        let (offset, len) = (pages > 0).then(|| before.piece(self.side, pages, self.len))?;
        Some(Piece { offset, len, pages })
    }

    /// Whether it was copied; if not, either it has failed, or it is given back.
    fn copy_piece(&mut self, dev: &mut impl Device, counters: &mut Counters, piece: &Piece) -> bool {
        let local = self.local.part(piece.offset, piece.len);
        let result = match self.side {
            Side::Receive => dev.read(self.peer, local, self.remote + piece.offset),
            Side::Send => dev.write(self.peer, local, self.remote + piece.offset),
        };
        let is_copied = result.is_ok();
        match result {
            Err(Fault::NotPermitted) => {
                dev.opened_shares().add(self.share, ShareWord::Claim, Claims::back(self.side, piece.pages));
                self.refuse(dev);
                return false;
            }
            Err(fault) => {
                let (word, failure) = failed(fault, self.side);
                dev.opened_shares().add(self.share, ShareWord::Failed, word);
                self.outcome.failure = Some(Box::new(failure));
            }
            Ok(()) => self.count(counters, piece.len as u64),
        }
        let before = dev.opened_shares().add(self.share, ShareWord::Done, local.len as u64);
        if before + local.len as u64 >= self.len as u64 {
            dev.wake(self.peer);
        }
        is_copied
    }

    fn count(&self, counters: &mut Counters, len: u64) {
        let (event, amount) = match self.side {
            Side::Receive => (Event::PiecePulled, Amount::PulledBytes),
            Side::Send => (Event::PiecePushed, Amount::PushedBytes),
        };
        counters.count(event);
        counters.add(amount, len);
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
                let pages = piece(left * PAGE, at % 3 == 0).div_ceil(PAGE).min(left);
                if at % 5 != 3 {
                    covered.push(claims.piece(side, pages, len));
                } else {
                    claims.0 = claims.0.wrapping_add(Claims::back(side, pages)); // given back as soon as claimed
                }
                claims.0 += Claims::of(side, pages).0;
                at += 1;
            }
            covered.sort();
            let end = covered.iter().fold(0, |end, (offset, len)| {
                assert_eq!(*offset, end);
                end + len
            });
            assert_eq!(end, len);
            assert!(Claims::whole(len).left(len).is_none());
        }
    }
}
