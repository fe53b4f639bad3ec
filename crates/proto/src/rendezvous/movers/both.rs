//! Rendezvous where both sides copy.
//!
//! Wins above some 64 KiB between far cores, where the kernel lets ranks reach each other's memory: one copy instead
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
//! While both compute the thread beside the owner's application copies, if it has a core to do so ([`Duty`]).
//!
//! A side that is refused, from the start or in the middle (a process may give up being read, a filter may
//! permit one direction), gives its piece back and says so in the share: then the other one copies
//! all that is left when it is inside MPI.
//! Where both are refused, the receiver asks for the message in frames, as a whole.

use super::claims::{Claims, PAGE, PIECE_MAX, piece};
use super::port::{Aside, Port, Turn};
use super::{Happening, Message, Mover, Step, Withdrawal};
use crate::choice::tuning::PIECE_MIN;
use crate::message::op::{Failure, Side};
use fabric::{Fault, Share, ShareWord, Shares, Span};
use wire::head::{FrameType, Offer};

/// What [`ShareWord::Failed`] counts, in fields of 20 bits: copies that failed, and whose buffer it was, if
/// that is known. Above them a bit for each side that is refused.
const FAILED: u64 = 1;
const BAD_SEND_BUFFER: u64 = 1 << 20;
const BAD_RECEIVE_BUFFER: u64 = 1 << 40;
/// All of a field that begins with one of these.
const COUNT: u64 = (1 << 20) - 1;
/// A copy from this length on takes longer than a message takes to leave.
const LONG: usize = 4096;

fn refusal(side: Side) -> u64 {
    match side {
        Side::Receive => 1 << 62,
        Side::Send => 1 << 63,
    }
}

/// A copy of this side has failed: what is added to that word, and what this one reports.
fn failed(fault: Fault, side: Side) -> (u64, Box<Failure>) {
    let Fault::BadAddress { local } = fault else { return (FAILED, fault.into()) };
    let of_sender = (side == Side::Send) == local;
    let (word, whose) =
        if of_sender { (BAD_SEND_BUFFER, Side::Send) } else { (BAD_RECEIVE_BUFFER, Side::Receive) };
    (word, Box::new(Failure::Buffer { side: whose, own: local }))
}

/// Whether a message whose sender does not help is copied as a whole when it meets its receive, which takes longer than a message takes to leave.
pub(crate) fn is_pulled_whole(len: usize) -> bool {
    (LONG..=PIECE_MAX).contains(&len)
}

/// Copies the whole of a message by its receiver; what went wrong, of which nothing has been told.
pub(crate) fn pull(share: Share, remote: usize, local: Span, port: &mut impl Port) -> Result<(), Fault> {
    if local.len > 0 {
        port.copy_across(Side::Receive, local, remote)?;
    }
    tell_pulled(share, local, port);
    Ok(())
}

/// The receiver is done with a message that nobody else has copied: its sender learns of the match and the end together, by one line.
fn tell_pulled(share: Share, local: Span, port: &mut impl Port) {
    let words = [
        (ShareWord::Length, local.len as u64),
        (ShareWord::Claim, Claims::whole(local.len).0),
        (ShareWord::Done, local.len as u64),
        (ShareWord::Left, 1),
        (ShareWord::Partner, local.addr.max(1) as u64),
    ];
    port.set_words(share, &words);
    port.wake();
}

/// Whether the receiver of an RTS has copied the message as a whole and left its share: then the sender does, too, and has nothing else to do.
pub(crate) fn leaves_pulled(shares: &impl Shares, share: Share) -> bool {
    let word = |word| shares.load(share, word);
    let is_over = word(ShareWord::Left) == 1
        && word(ShareWord::Failed) == 0
        && word(ShareWord::Done) == word(ShareWord::Length);
    if is_over {
        shares.store(share, ShareWord::Left, 2);
    }
    is_over
}

/// The sending side.
#[derive(Debug)]
pub(crate) enum Sender {
    /// The RTS is to leave, or is out.
    Offering(Rts),
    /// Both buffers are known.
    Copying(Copying),
}

/// An RTS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rts {
    /// The share that says whether it may be matched; `None` when all were in use.
    pub share: Option<Share>,
    /// Whether its receiver can copy. If not it asks for frames.
    pub direct: bool,
    /// Whether a receive waits for it, so that it cannot be taken back.
    pub met: bool,
    /// [`Offer::EAGER`], [`Offer::ALONE`], [`Offer::FRAMES`].
    pub flags: u32,
}

impl Sender {
    /// A message whose RTS is to leave.
    pub fn new(direct: bool, met: bool, flags: u32) -> Sender {
        Sender::Offering(Rts { share: None, direct, met, flags })
    }

    /// A message of `len` bytes that goes where an RTR said.
    pub fn taken(share: Share, remote: usize, len: usize, duty: Duty) -> Sender {
        Sender::Copying(Copying { duty, ..Copying::new(Side::Send, share, remote, len) })
    }

    /// Whether both buffers are known.
    pub fn has_begun(&self) -> bool {
        matches!(self, Sender::Copying(_))
    }

    /// Whether the receiver is to copy alone, and has said nothing yet.
    pub fn is_to_be_pulled(&self) -> bool {
        matches!(self, Sender::Offering(Rts { flags, direct: true, .. }) if flags & Offer::ALONE != 0)
    }

    /// Whether the payload is to be copied, and not to come in frames.
    pub fn is_direct(&self) -> bool {
        !matches!(self, Sender::Offering(Rts { direct: false, .. }))
    }
}

impl Rts {
    fn leave(&mut self, message: &Message, port: &mut impl Port) -> Step {
        self.share = port.open_share();
        self.direct &= self.share.is_some();
        let offer = Offer {
            len: message.len,
            addr: if self.direct { message.local.addr as u64 } else { Offer::BY_FRAMES },
            share: self.share.map_or(Offer::NO_SHARE, |share| share.index),
            op: 0,
            seen: 0,
            other: self.flags,
        };
        if !port.announce(FrameType::Rts, offer) {
            self.share.take().inspect(|share| port.close_share(*share));
            return Step::NoRoom;
        }
        if self.direct { Step::Looking } else { Step::Going }
    }

    /// The receiver has taken the RTS: copy together with it.
    fn look(&self, message: &Message, port: &mut impl Port) -> Option<Copying> {
        let share = self.share.filter(|_| self.direct)?;
        let remote = port.word(share, ShareWord::Partner);
        if remote == 0 {
            return None;
        }
        let len = (port.word(share, ShareWord::Length) as usize).min(message.local.len);
        let helps = self.flags & Offer::ALONE == 0;
        let mut copying = Copying { helps, ..Copying::new(Side::Send, share, remote as usize, len) };
        if !port.reaches() {
            copying.refuse(port);
        }
        Some(copying)
    }
}

impl Mover for Sender {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match (&mut *self, what) {
            (Sender::Offering(rts), Happening::Start) => rts.leave(message, port),
            (Sender::Offering(rts), Happening::Look) => {
                let Some(mut copying) = rts.look(message, port) else { return Step::Looking };
                let step = copying.look(message, port);
                *self = Sender::Copying(copying);
                if matches!(step, Step::Looking | Step::Moved) { Step::Met } else { step }
            }
            (Sender::Copying(copying), Happening::Start) => copying.announce(message, port),
            (Sender::Copying(copying), Happening::Look) => copying.look(message, port),
            _ => Step::Illegal,
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        match self {
            Sender::Offering(rts) => rts.share.take().into_iter().for_each(|share| port.close_share(share)),
            Sender::Copying(copying) => copying.leave(port),
        }
    }

    fn is_unanswered(&self, port: &impl Port) -> bool {
        match self {
            Sender::Offering(_) => true,
            Sender::Copying(copying) => copying.needs_frames(port),
        }
    }

    fn take_back(&mut self, port: &mut impl Port) -> Withdrawal {
        match self {
            Sender::Offering(Rts { met: false, share: Some(share), flags, .. })
                if *flags & Offer::FINAL == 0 =>
            {
                match port.take_share(*share) {
                    true => Withdrawal::Back,
                    false => Withdrawal::Met,
                }
            }
            Sender::Offering(Rts { met: false, .. }) => Withdrawal::Asked,
            _ => Withdrawal::Met,
        }
    }

    fn needs_care(&self) -> bool {
        match self {
            Sender::Offering(rts) => !rts.direct,
            Sender::Copying(copying) => copying.duty == Duty::Always,
        }
    }

    fn awaits(&self) -> Option<(Share, ShareWord)> {
        match self {
            Sender::Offering(rts) => Some((rts.share?, ShareWord::Partner)),
            Sender::Copying(_) => None,
        }
    }

    fn moved(&self) -> u64 {
        match self {
            Sender::Offering(_) => 0,
            Sender::Copying(copying) => copying.moved,
        }
    }
}

/// The receiving side.
#[derive(Debug)]
pub(crate) struct Receiver {
    copying: Copying,
    /// Whether the copy begins with a look, though it could at once.
    is_postponed: bool,
}

impl Receiver {
    /// An RTS has met its receive: `len` bytes are to be moved from there, and `alone` says that its sender does not help.
    pub fn new(share: Share, remote: usize, len: usize, alone: bool, duty: Duty) -> Receiver {
        // Nobody else would.
        let duty = if alone { Duty::Always } else { duty };
        let copying = Copying { duty, alone, ..Copying::new(Side::Receive, share, remote, len) };
        Receiver { copying, is_postponed: false }
    }

    /// The sender has taken the RTR of a receive, for a message of `len` bytes that lies there.
    pub fn taken(share: Share, remote: usize, len: usize) -> Receiver {
        Receiver { copying: Copying::new(Side::Receive, share, remote, len), is_postponed: false }
    }

    /// Whether the message is copied as a whole when this begins, which takes longer than a message takes to leave.
    pub fn is_pulled_whole(&self) -> bool {
        self.copying.alone && is_pulled_whole(self.copying.len)
    }

    /// The copy begins with a look, not with the start: that of a message that [is pulled whole](Receiver::is_pulled_whole), so that its sender, which
    /// does nothing but wait for the end, is told of nothing before that.
    pub fn postpone(&mut self) {
        self.is_postponed = true;
    }

    /// Where the bytes lie whose copy is still postponed.
    pub fn postponed(&self) -> Option<usize> {
        self.is_postponed.then_some(self.copying.remote)
    }

    fn start(&mut self, message: &Message, port: &mut impl Port) -> Step {
        if self.is_postponed {
            return Step::Looking;
        }
        let is_one_piece = self.is_pulled_whole() && port.turn().copies_on();
        let copying = &mut self.copying;
        if copying.duty == Duty::Theirs {
            if !port.reaches() {
                copying.refuse(port);
            }
            return Step::Looking;
        }
        // A sender that does not help only has to be told of the end.
        if copying.len <= PIECE_MIN || is_one_piece {
            return copying.pull_whole(message, port);
        }
        port.set_word(copying.share, ShareWord::Length, copying.len as u64);
        port.set_word(copying.share, ShareWord::Partner, message.local.addr.max(1) as u64);
        port.wake();
        Step::Looking
    }

    fn look(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let turn = port.turn();
        if !self.is_postponed {
            return self.copying.look(message, port);
        }
        if turn.copies != Side::Receive || !turn.copies_on() {
            return Step::Looking;
        }
        self.is_postponed = false;
        self.copying.pull_whole(message, port)
    }
}

impl Mover for Receiver {
    fn on(&mut self, what: Happening, message: &Message, port: &mut impl Port) -> Step {
        match what {
            Happening::Start => self.start(message, port),
            Happening::Look => self.look(message, port),
            _ => Step::Illegal,
        }
    }

    fn retreat(&mut self, port: &mut impl Port) {
        self.copying.leave(port);
    }

    fn needs_care(&self) -> bool {
        self.copying.duty == Duty::Always
    }

    fn moved(&self) -> u64 {
        self.copying.moved
    }
}

/// A piece that one side has claimed.
struct Piece {
    offset: usize,
    len: usize,
    pages: usize,
    /// Nothing was left to claim behind it.
    is_last: bool,
}

/// What a side has to do that every piece gets claimed. Of the two exactly one, which found the other's buffer, owns the copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// The other side owns the copy.
    Theirs,
    /// This side copies when it is inside MPI. Of two that compute the one that comes back first copies: a thread beside the
    /// application would take the core from it for as long, and for its looks besides. Not so while a collective is under way:
    /// then others wait ([`Aside::is_awaited`]).
    Inside,
    /// This side copies also beside its application.
    Always,
}

impl Duty {
    /// Of the side that owns the copy, which may have a core for a thread beside its application.
    pub fn of_owner(has_spare_core: bool) -> Duty {
        if has_spare_core { Duty::Always } else { Duty::Inside }
    }
}

/// One side of a message whose two buffers are known.
#[derive(Debug)]
pub(crate) struct Copying {
    side: Side,
    share: Share,
    /// Address of the peer's buffer.
    remote: usize,
    /// Bytes to move.
    len: usize,
    /// Whether this side can reach the peer's memory: see [`Copying::refuse`].
    can_copy: bool,
    /// Whether this side sees to it that every piece is claimed, whether the other one helps or not.
    duty: Duty,
    /// Whether this side copies while the other one can.
    helps: bool,
    /// Whether the other side has said that it does not.
    alone: bool,
    /// What the other side had claimed, in pages, when the owner last looked beside its application.
    theirs: usize,
    /// Bytes that both had moved when this side looked last.
    moved: u64,
    /// What has gone wrong here.
    failure: Option<Box<Failure>>,
}

impl Copying {
    fn new(side: Side, share: Share, remote: usize, len: usize) -> Copying {
        Copying {
            side,
            share,
            remote,
            len,
            can_copy: true,
            duty: Duty::Theirs,
            helps: true,
            alone: false,
            theirs: 0,
            moved: 0,
            failure: None,
        }
    }

    /// Announces that the message goes into the buffer that an RTR has offered.
    fn announce(&self, message: &Message, port: &mut impl Port) -> Step {
        let offer = Offer {
            len: message.len,
            addr: message.local.addr as u64,
            share: self.share.index,
            op: 0,
            seen: 0,
            other: message.peer_op,
        };
        if port.announce(FrameType::Matched, offer) { Step::Looking } else { Step::NoRoom }
    }

    /// Copies the whole message at once; its sender learns of the match and the end together, by
    /// one line.
    fn pull_whole(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let local = message.local.part(0, self.len);
        match pull(self.share, self.remote, local, port) {
            Ok(()) => {}
            Err(Fault::NotPermitted) => return Step::Frames,
            Err(fault) => {
                let (word, failure) = failed(fault, self.side);
                port.set_word(self.share, ShareWord::Failed, word);
                self.failure = Some(failure);
                tell_pulled(self.share, local, port);
            }
        }
        self.end()
    }

    fn look(&mut self, message: &Message, port: &mut impl Port) -> Step {
        let turn = port.turn();
        if self.duty == Duty::Inside && self.is_refused(port) {
            self.duty = Duty::Always;
        }
        let is_mine =
            turn.copies == self.side && turn.aside.is_none_or(|aside| self.is_left_to_owner(&aside, port));
        let moved = is_mine && self.copy(&turn, message, port);
        if self.side == Side::Receive && self.needs_frames(port) {
            self.leave(port);
            return Step::Frames;
        }
        if self.moved < self.len as u64 {
            self.moved = port.word(self.share, ShareWord::Done);
        }
        if self.moved < self.len as u64 {
            return if moved { Step::Moved } else { Step::Looking };
        }
        if self.failure.is_none() {
            self.failure = self.told(message, port.word(self.share, ShareWord::Failed)).map(Box::new);
        }
        self.leave(port);
        if self.side == Side::Receive {
            port.was_written(message.local.part(0, self.len));
        }
        self.end()
    }

    /// All bytes have been moved, or tried.
    fn end(&mut self) -> Step {
        self.failure.take().map_or(Step::Done, Step::Spoilt)
    }

    /// Copies pieces until none is left to claim; whether there was any.
    fn copy(&mut self, turn: &Turn, message: &Message, port: &mut impl Port) -> bool {
        let (mut any, alone) = (false, turn.alone || self.alone);
        let mut copies = self.can_copy && (self.helps || self.is_refused(port));
        while copies
            && port.turn().copies_on()
            && let Some(piece) = self.claim(port, alone)
        {
            self.copy_piece(&piece, message, port);
            (any, copies) = (true, self.can_copy && !piece.is_last);
        }
        any
    }

    /// This side cannot copy: what it has claimed and not copied is the other's.
    fn refuse(&mut self, port: &mut impl Port) {
        self.can_copy = false;
        port.add_word(self.share, ShareWord::Failed, refusal(self.side));
        port.wake();
    }

    /// Whether the other side cannot copy.
    fn is_refused(&self, port: &impl Port) -> bool {
        let other = if self.side == Side::Send { Side::Receive } else { Side::Send };
        port.word(self.share, ShareWord::Failed) & refusal(other) != 0
    }

    /// Whether neither side can copy: then the receiver is to ask for frames.
    fn needs_frames(&self, port: &impl Port) -> bool {
        let both = refusal(Side::Send) | refusal(Side::Receive);
        !self.can_copy && port.word(self.share, ShareWord::Failed) & both == both
    }

    /// Leaves the share: this side touches it no more.
    fn leave(&self, port: &mut impl Port) {
        match port.word(self.share, ShareWord::Left) {
            0 => _ = port.add_word(self.share, ShareWord::Left, 1),
            // The other one has left, and nobody else writes here: no need to wait for the line.
            left => port.set_word(self.share, ShareWord::Left, left + 1),
        }
    }

    /// Whether it is for this side to copy beside its application: it owns the copy, and the other one
    /// has claimed nothing since this was last asked. Who is inside MPI copies to the end, and the
    /// cores are the application's.
    fn is_left_to_owner(&mut self, aside: &Aside, port: &impl Port) -> bool {
        let (front, back) = Claims(port.word(self.share, ShareWord::Claim)).both();
        let theirs = if self.side == Side::Receive { back } else { front };
        let owes = match self.duty {
            Duty::Theirs => false,
            Duty::Inside => aside.is_awaited,
            Duty::Always => true,
        };
        owes && std::mem::replace(&mut self.theirs, theirs) == theirs
    }

    /// The failure that the share's word stands for.
    fn told(&self, message: &Message, word: u64) -> Option<Failure> {
        let has = |what: u64| word & (what * COUNT) != 0;
        let of = |side| Failure::Buffer { side, own: side == self.side };
        match () {
            _ if has(BAD_SEND_BUFFER) => Some(of(Side::Send)),
            _ if has(BAD_RECEIVE_BUFFER) => Some(of(Side::Receive)),
            _ if has(FAILED) => {
                let text = format!("rank {} could not copy its part", message.peer);
                Some(Failure::Device(Fault::Device(text)))
            }
            _ => None,
        }
    }

    /// Claims the next piece of this side.
    ///
    /// A look before the claim says how much is left, and spares an atomic operation when nothing is.
    /// What the claim did not get is taken back: else it would be missing when a piece is given back.
    fn claim(&self, port: &mut impl Port, alone: bool) -> Option<Piece> {
        let left = Claims(port.word(self.share, ShareWord::Claim)).left(self.len)?;
        let wanted = piece(left * PAGE, alone).div_ceil(PAGE).min(left);
        let before = Claims(port.add_word(self.share, ShareWord::Claim, Claims::of(self.side, wanted).0));
        let left = before.left(self.len).unwrap_or(0);
        let pages = wanted.min(left);
        if pages < wanted {
            port.add_word(self.share, ShareWord::Claim, Claims::back(self.side, wanted - pages));
        }
        let (offset, len) = (pages > 0).then(|| before.piece(self.side, pages, self.len))?;
        Some(Piece { offset, len, pages, is_last: pages == left })
    }

    /// Copies a piece; if this side may not, it is given back.
    fn copy_piece(&mut self, piece: &Piece, message: &Message, port: &mut impl Port) {
        let local = message.local.part(piece.offset, piece.len);
        match port.copy_across(self.side, local, self.remote + piece.offset) {
            Ok(()) => {}
            Err(Fault::NotPermitted) => {
                port.add_word(self.share, ShareWord::Claim, Claims::back(self.side, piece.pages));
                return self.refuse(port);
            }
            Err(fault) => {
                let (word, failure) = failed(fault, self.side);
                port.add_word(self.share, ShareWord::Failed, word);
                self.failure = Some(failure);
            }
        }
        let before = port.add_word(self.share, ShareWord::Done, local.len as u64);
        self.moved = before + local.len as u64;
        if self.moved >= self.len as u64 {
            port.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::script::{BUFFER, Script, message};
    use super::*;

    /// Bytes of the message.
    const LEN: usize = 3 << 20;
    const SHARE: Share = Share { owner: 0, index: 3 };

    /// The bytes that a side has copied across, in order: the script's share is that of both sides.
    fn copied(script: &mut Script, side: Side, mover: &mut impl Mover) -> (Step, Vec<String>) {
        script.turn.copies = side;
        script.log.clear();
        let step = mover.on(Happening::Look, &message(None, LEN), script);
        (step, script.log.iter().filter(|line| line.contains("across")).cloned().collect())
    }

    /// The sender finds that its RTS has met a receive, when it is not its turn.
    fn meets(script: &mut Script, sender: &mut Sender) {
        assert_eq!(copied(script, Side::Receive, sender), (Step::Met, vec![]));
    }

    fn offered(script: &mut Script) -> Sender {
        let mut sender = Sender::new(true, false, 0);
        assert_eq!(sender.on(Happening::Start, &message(None, LEN), script), Step::Looking);
        sender
    }

    fn matched(script: &mut Script, duty: Duty) -> Receiver {
        let mut receiver = Receiver::new(SHARE, 0x5000, LEN, false, duty);
        assert_eq!(receiver.on(Happening::Start, &message(None, LEN), script), Step::Looking);
        receiver
    }

    /// What is left for later is pulled whole when it is the receiver's turn; its sender is told once, of the end.
    #[test]
    fn what_is_postponed_is_told_of_at_its_end_alone() {
        let (mut script, len) = (Script::default(), 64 << 10);
        let mut receiver = Receiver::new(SHARE, 0x5000, len, true, Duty::Always);
        assert!(receiver.is_pulled_whole());
        receiver.postpone();
        let message = message(None, len);
        assert_eq!(receiver.on(Happening::Start, &message, &mut script), Step::Looking);
        script.turn.copies = Side::Send;
        assert_eq!(receiver.on(Happening::Look, &message, &mut script), Step::Looking);
        assert_eq!(script.log, Vec::<String>::new());
        script.turn.copies = Side::Receive;
        script.turn.aside = Some(Aside { left: 0, is_awaited: false });
        assert_eq!(receiver.on(Happening::Look, &message, &mut script), Step::Looking);
        assert_eq!(script.log, Vec::<String>::new());
        script.turn.aside = None;
        assert_eq!(receiver.on(Happening::Look, &message, &mut script), Step::Done);
        assert_eq!(script.log[0], "Receive buffer+0..+65536 across from 0x5000");
        assert_eq!(script.log[1..].iter().filter(|line| line.contains("Partner")).count(), 1);
        assert_eq!(script.log[1..].iter().filter(|line| *line == "wake").count(), 1);
        assert_eq!(script.share[ShareWord::Done as usize], len as u64);
    }

    /// The sender finds that it is met, the receiver copies what it claims, and both end when all is done.
    #[test]
    fn both_sides_end_when_all_is_copied() {
        let mut script = Script::default();
        let mut sender = offered(&mut script);
        assert_eq!(copied(&mut script, Side::Send, &mut sender), (Step::Looking, vec![]));
        let mut receiver = matched(&mut script, Duty::Always);
        meets(&mut script, &mut sender);
        script.turn.aside = Some(Aside { left: 0, is_awaited: false });
        assert_eq!(copied(&mut script, Side::Receive, &mut receiver), (Step::Looking, vec![]));
        script.turn.aside = None;
        let (step, pieces) = copied(&mut script, Side::Send, &mut sender);
        assert_eq!((step, pieces.len()), (Step::Done, 8));
        assert_eq!(
            pieces[0],
            format!("Send buffer+{}..+{} across from {:#x}", 2 << 20, 1 << 20, BUFFER + (2 << 20))
        );
        assert_eq!(copied(&mut script, Side::Receive, &mut receiver), (Step::Done, vec![]));
        assert_eq!(script.share[ShareWord::Left as usize], 2);
    }

    /// Who owns the copy and has no core for a thread leaves it to whoever comes back to MPI first, unless the other one may not copy.
    #[test]
    fn without_a_core_nothing_is_copied_beside_the_application() {
        let mut script = Script::default();
        let mut sender = offered(&mut script);
        let mut receiver = matched(&mut script, Duty::Inside);
        meets(&mut script, &mut sender);
        let beside = Aside { left: PIECE_MAX, is_awaited: false };
        script.turn.aside = Some(beside);
        for _ in 0..3 {
            assert_eq!(copied(&mut script, Side::Receive, &mut receiver), (Step::Looking, vec![]));
        }
        assert!(!receiver.needs_care());
        let mut alone = Receiver::new(SHARE, 0x5000, LEN, true, Duty::Inside);
        assert!(alone.needs_care(), "its sender does not help");
        alone.retreat(&mut script);
        script.turn.aside = None;
        script.copies = Some(Err(Fault::NotPermitted));
        assert_eq!(copied(&mut script, Side::Send, &mut sender).0, Step::Moved);
        (script.copies, script.turn.aside) = (None, Some(beside));
        assert!(!copied(&mut script, Side::Receive, &mut receiver).1.is_empty());
        assert!(receiver.needs_care());
    }

    /// Unless the message is one of a collective, for which others wait.
    #[test]
    fn what_others_wait_for_is_copied_without_a_core_too() {
        let mut script = Script::default();
        let mut sender = offered(&mut script);
        let mut receiver = matched(&mut script, Duty::Inside);
        meets(&mut script, &mut sender);
        script.turn.aside = Some(Aside { left: PIECE_MAX, is_awaited: true });
        assert_eq!(
            copied(&mut script, Side::Send, &mut sender),
            (Step::Looking, vec![]),
            "it does not own the copy"
        );
        let (step, pieces) = copied(&mut script, Side::Receive, &mut receiver);
        assert_eq!((step, pieces.is_empty()), (Step::Done, false));
        assert_eq!(copied(&mut script, Side::Send, &mut sender).0, Step::Done);
    }

    /// What one side may not copy the other does; where neither may, the receiver asks for frames, and no sooner may the
    /// sender be asked.
    #[test]
    fn who_is_refused_leaves_it_to_the_other() {
        let mut script = Script::default();
        let mut sender = offered(&mut script);
        let mut receiver = matched(&mut script, Duty::Always);
        meets(&mut script, &mut sender);
        script.copies = Some(Err(Fault::NotPermitted));
        assert_eq!(copied(&mut script, Side::Receive, &mut receiver).0, Step::Moved);
        assert_eq!(script.share[ShareWord::Claim as usize], 0, "it is given back");
        assert!(!sender.is_unanswered(&script));
        assert_eq!(copied(&mut script, Side::Send, &mut sender).0, Step::Moved);
        assert_eq!(copied(&mut script, Side::Receive, &mut receiver).0, Step::Frames);
        assert!(sender.is_unanswered(&script));
        sender.retreat(&mut script);
        assert_eq!(script.share[ShareWord::Left as usize], 2);
    }

    /// A copy that fails is told to the other side, and the rest is moved all the same.
    #[test]
    fn both_hear_of_what_failed() {
        let mut script = Script::default();
        let mut sender = offered(&mut script);
        let mut receiver = matched(&mut script, Duty::Always);
        meets(&mut script, &mut sender);
        script.copies = Some(Err(Fault::BadAddress { local: true }));
        let (own, other) = (true, false);
        let bad = |own| Step::Spoilt(Box::new(Failure::Buffer { side: Side::Receive, own }));
        assert_eq!(copied(&mut script, Side::Receive, &mut receiver).0, bad(own));
        assert_eq!(copied(&mut script, Side::Send, &mut sender).0, bad(other));
    }

    /// An RTS that finds no room leaves no share behind, one that is out may be taken back until it is met, and none
    /// that a receive waits for.
    #[test]
    fn an_rts_is_taken_back_by_its_share() {
        let message = message(None, LEN);
        let mut script = Script { has_no_room: true, ..Script::default() };
        let mut sender = Sender::new(true, false, 0);
        assert_eq!(sender.on(Happening::Start, &message, &mut script), Step::NoRoom);
        assert_eq!(script.log, ["open a share", "close share 3"]);
        script.has_no_room = false;
        let mut sender = offered(&mut script);
        assert_eq!(sender.take_back(&mut script), Withdrawal::Back);
        script.was_taken = true;
        assert_eq!(sender.take_back(&mut script), Withdrawal::Met);
        script.has_no_share = true;
        for (met, becomes) in [(false, Withdrawal::Asked), (true, Withdrawal::Met)] {
            let mut sender = Sender::new(true, met, 0);
            assert_eq!(sender.on(Happening::Start, &message, &mut script), Step::Going);
            assert_eq!((sender.take_back(&mut script), sender.needs_care()), (becomes, true));
        }
    }

    /// Short messages, and those whose sender does not help, are copied when they meet their receive.
    #[test]
    fn a_short_message_is_pulled_as_a_whole() {
        for (len, alone, step) in [
            (PIECE_MIN, false, Step::Done),
            (PIECE_MIN + 1, false, Step::Looking),
            (PIECE_MAX, true, Step::Done),
            (PIECE_MAX + 1, true, Step::Looking),
        ] {
            let (mut script, message) = (Script::default(), message(None, len));
            let mut receiver = Receiver::new(SHARE, 0x5000, len, alone, Duty::Always);
            assert_eq!(receiver.on(Happening::Start, &message, &mut script), step);
            let done = if step == Step::Done { len as u64 } else { 0 };
            assert_eq!(script.share[ShareWord::Done as usize], done);
            if step == Step::Done {
                let mut sender =
                    Sender::Offering(Rts { share: Some(SHARE), direct: true, met: false, flags: 0 });
                assert_eq!(copied(&mut script, Side::Send, &mut sender), (Step::Done, vec![]));
            }
            assert_eq!(receiver.on(Happening::Ack(Default::default()), &message, &mut script), Step::Illegal);
        }
    }
}
