//! Early receivers offer their buffer (RTR), so that the sender can write at once, even while the receiver computes
//! (dissertation, chapter 4): the rules of both sides.
//!
//! Matching stays the receiver's business; an RTR only anticipates it. The rules that make it valid:
//! - It is sent for a receive with source and tag, and not behind an earlier receive without one that accepts the same
//!   message. Nor is it sent while frames that must not be lost wait for room: it would overtake them.
//! - The sender knows which message it belongs to, and drops it if not.
//! - Each message of its envelope meets the oldest, whether it uses it or not. One that does takes the place of its RTS
//!   in the order of messages (`Matched`, RTR-ACK), and its receive must then be the next that accepts it.
//! - A receive that ends otherwise voids it: nobody may write there from then on.
//! - After [`MISSES_MAX`] in a row that came to nothing no more are sent, until a rendezvous comes.
//!
//! Three answers differ by how the two ranks agree ([`Agreement`]): which message one belongs to, who may take it back, and
//! where those are counted that came to nothing. Each has a function here that says so.
//!
//! | | shares ([`super::rtr_shares`]) | messages ([`super::rtr_registered`]) |
//! |---|---|---|
//! | it belongs to | the next message, if the receiver had seen all that were sent, and an RTR of each earlier receive is held | the oldest send without one, by [`super::rtr_account`] |
//! | taken back | at once, by the word `Open` of the share | once the sender has given it up |
//! | came to nothing | counted by peer: a share costs its frame alone | counted by envelope |

use super::Rendezvous;
use super::movers::stripes::Stripes;
use super::rtr_account::{MISSES_MAX, Waiting};
use super::state::{State, Step};
use crate::event::{Event, Notice};
use crate::memory::rcache::Held;
use crate::message::malformed;
use crate::message::matching::{Envelope, Want};
use crate::message::op::{OpId, Receive, RtrBy, Sending};
use crate::message::rtrs::{Memory, Rtr};
use fabric::{Device, Fault, Rank, Rights, Share, ShareWord, Shares, Span};
use wire::Malformed;

/// RTRs by shares that are kept of a peer; more are dropped, which costs a handshake, not correctness. Of those by messages
/// none may be: each answers for a send.
const KEPT_MAX: usize = 64;

/// How two ranks agree on RTRs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Agreement {
    /// By words that both can change.
    Shares,
    /// By messages alone.
    Messages,
}

impl RtrBy {
    fn agreement(self) -> Agreement {
        match self {
            RtrBy::Share(_) => Agreement::Shares,
            RtrBy::Keys => Agreement::Messages,
        }
    }
}

/// What makes an RTR void.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Void {
    /// An eager message has met its receive.
    Eager,
    /// An RTS has; whether its sender would have taken an RTR.
    Rts { takes: bool },
    /// The sender has told to send none.
    Stopped,
    /// Its receive is cancelled.
    Cancelled,
    /// The sender is lost.
    Lost,
}

impl Void {
    /// Whether the RTR was of no use to its sender; `None` if that says nothing.
    fn is_miss(self) -> Option<bool> {
        match self {
            Void::Eager | Void::Cancelled | Void::Rts { takes: false } => Some(true),
            Void::Rts { takes: true } => Some(false),
            Void::Stopped | Void::Lost => None,
        }
    }
}

/// The receiver.
impl<D: Device> Rendezvous<'_, D> {
    fn agreement(&self, source: Option<Rank>) -> Agreement {
        if self.speculates(source) { Agreement::Messages } else { Agreement::Shares }
    }

    /// A receive that found no message is about to be posted: offers its buffer if the rules allow it, and says by what.
    pub(crate) fn offer(&mut self, id: OpId, receive: &Receive) -> Option<RtrBy> {
        let Receive { want: Want { source, context, tag }, buf, long, .. } = *receive;
        if !long || source == Some(self.dev.me()) {
            return None;
        }
        let agreement = self.agreement(source);
        if agreement == Agreement::Messages {
            self.waits_from_now(id);
        }
        let envelope = source.zip(tag).map(|(source, tag)| Envelope { source, context, tag })?;
        let earlier = self.may_offer(agreement, &envelope, buf)?;
        match agreement {
            Agreement::Shares => self.send_rtr_of_share(id, &envelope, earlier, buf).map(RtrBy::Share),
            Agreement::Messages => self.send_rtr_of_keys(id, &envelope, buf).then_some(RtrBy::Keys),
        }
    }

    /// Whether the rules allow an RTR for the next receive of an envelope, and it is worth what it costs: how many earlier
    /// receives for the same messages have theirs out.
    fn may_offer(&mut self, agreement: Agreement, envelope: &Envelope, buf: Span) -> Option<u32> {
        let source = envelope.source;
        let has_missed = match agreement {
            Agreement::Shares => self.peers[source].rtr_misses >= MISSES_MAX,
            Agreement::Messages => !self.rtrs.may_offer(envelope),
        };
        if has_missed || !self.peers[source].control.is_empty() {
            return None;
        }
        let earlier = self.offered_before(envelope)?;
        let pays = match agreement {
            Agreement::Shares => self.rules.rtr && self.rules.force.is_none() && self.copies(source),
            Agreement::Messages => {
                let is_forced = self.rules.force.is_some();
                let costs_nothing =
                    is_forced || self.rcache.has(0, buf, Rights::NONE) || self.rtrs.may_register(envelope);
                self.can_transfer(source) && costs_nothing
            }
        };
        pays.then_some(earlier)
    }

    /// How many earlier receives for the same message have their RTRs out; `None` if one has none.
    fn offered_before(&self, envelope: &Envelope) -> Option<u32> {
        let mut earlier = 0;
        for op in self.matching.posted_for(envelope) {
            match self.ops.get(op).map(|op| &op.state) {
                Some(State::Posted(receive)) if receive.rtr.is_some() => earlier += 1,
                _ => return None,
            }
        }
        Some(earlier)
    }

    /// A posted receive is met by a message that does not use its RTR, or ends: that is void, if one is out. False if the
    /// sender was faster to take it.
    #[cold]
    pub(crate) fn void_rtr(&mut self, id: OpId, why: Void) -> bool {
        let stripes = self.take_waiting(id).and_then(|waiting| waiting.stripes);
        self.void(id, stripes, why)
    }

    /// As [`Rendezvous::void_rtr`], of a receive with these stripes.
    pub(super) fn void(&mut self, id: OpId, stripes: Option<Stripes>, why: Void) -> bool {
        let Receive { want, rtr, .. } = self.ops.posted(id);
        let (Some(by), Some(source), Some(tag)) = (rtr, want.source, want.tag) else { return true };
        let is_ours = match by {
            RtrBy::Share(index) => self.take_share_back(id, index),
            RtrBy::Keys => true,
        };
        if let Some(stripes) = stripes {
            self.with_port(source, |port| stripes.release(port));
        }
        if why == Void::Cancelled && !is_ours {
            return false;
        }
        if !matches!(why, Void::Cancelled | Void::Lost) {
            self.counters.count(Event::RtrDropped);
        }
        if let Some(is_miss) = why.is_miss() {
            self.count_rtr(by.agreement(), &Envelope { source, context: want.context, tag }, is_miss);
        }
        is_ours
    }

    /// An RTS by a share has met a receive; whether its sender would have taken an RTR.
    pub(super) fn meet_rts(&mut self, id: OpId, envelope: &Envelope, takes: bool) {
        self.void_rtr(id, Void::Rts { takes });
        if takes {
            self.count_rtr(self.agreement(Some(envelope.source)), envelope, false);
        }
    }

    /// Whether an RTR came to nothing, or a rendezvous has come, for which one may pay.
    fn count_rtr(&mut self, agreement: Agreement, envelope: &Envelope, is_miss: bool) {
        let misses = match agreement {
            Agreement::Shares => &mut self.peers[envelope.source].rtr_misses,
            Agreement::Messages => self.rtrs.misses(envelope),
        };
        *misses = if is_miss { misses.saturating_add(1) } else { 0 };
    }

    /// A posted receive, and for how long it has waited, if account is kept of that.
    pub(super) fn take_waiting(&mut self, id: OpId) -> Option<Waiting> {
        if self.rtrs.waiting.is_empty() { None } else { self.rtrs.waiting.remove(&id) }
    }

    /// Takes the RTR of a receive back, which is to be cancelled: whether it is ended now. If not, the sender has taken the
    /// RTR, or is asked.
    pub(crate) fn take_rtr_back(&mut self, id: OpId) -> bool {
        if self.ops.posted(id).rtr == Some(RtrBy::Keys) {
            self.ask_back(id);
            return false;
        }
        self.void_rtr(id, Void::Cancelled)
    }

    /// The sender has taken an RTR for a message of so many bytes: the receive, which is matched by that. Of a peer that
    /// breaks the rules nothing is released: it may be writing.
    pub(super) fn rtr_is_taken(
        &mut self,
        id: OpId,
        envelope: &Envelope,
        len: u64,
        by: RtrBy,
    ) -> Result<Receive, Fault> {
        let from = envelope.source;
        let refuse = |what: &str| Err(malformed(from, Malformed(format!("a match by RTR {what}"))));
        let receive = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Posted(receive)) if receive.want.accepts(envelope) => *receive,
            _ => return refuse("for a receive that is not posted"),
        };
        if receive.rtr != Some(by) {
            return refuse("for a receive without that RTR");
        }
        if len == 0 || len > receive.buf.len as u64 {
            return refuse(&format!("of {len} bytes for a buffer of {}", receive.buf.len));
        }
        if self.matching.take_posted(envelope) != Some(id) {
            return refuse("for a receive that is not the next");
        }
        self.peers.hear(from, 1);
        self.count_rtr(by.agreement(), envelope, false);
        self.counters.happened(Notice::Matched, [from as u64, envelope.tag as u32 as u64, len, 0]);
        self.counters.happened(Notice::RendezvousBegun, [from as u64, len, 0]);
        Ok(receive)
    }
}

/// The sender.
impl<D: Device> Rendezvous<'_, D> {
    /// An RTR has come: kept if it is known which message it belongs to. `seen` and `earlier` are what one by a share says.
    pub(super) fn keep_rtr(&mut self, envelope: &Envelope, rtr: Rtr, seen: u32, earlier: u32) {
        let Envelope { source, context, tag } = *envelope;
        let is_known = match rtr.memory {
            Memory::Keys(_) => {
                let sent_before = self.watch(source);
                self.rtrs.on_rtr(envelope, sent_before)
            }
            Memory::Share(_) => {
                let dev = &*self.dev;
                let peer = &mut self.peers[source];
                let held = peer.rtrs.retain(context, tag, |rtr| is_open(dev, source, rtr));
                let has_seen_all = seen == peer.sent && peer.queue.is_empty();
                has_seen_all && held == earlier as usize && peer.rtrs.len() < KEPT_MAX
            }
        };
        let peer = &mut self.peers[source];
        if is_known {
            peer.rtrs.push(rtr);
        }
        peer.update_plain();
    }

    /// What a send is to do first: an RTR that it meets decides, and if there is none its length. `held` if it goes from a
    /// buffer that is registered.
    pub(crate) fn first_step(&mut self, id: OpId, s: &mut Sending, eager: bool, held: Option<Held>) -> Step {
        if let Some(rtr) = self.take_share(s, !eager && s.helps()) {
            return Step::Taken(rtr);
        }
        let step = match held {
            Some(held) if eager => Step::ZeroCopy(held),
            _ if eager => Step::Eager,
            _ => match self.long_protocol(s) {
                Some(protocol) => return self.begin_rendezvous(id, s, protocol),
                None => Step::Rts,
            },
        };
        self.rtrs.other_left(&s.envelope(), None);
        step
    }

    /// Consumes the RTR by a share that a message meets; returns it if the message can go there.
    fn take_share(&mut self, s: &mut Sending, rendezvous: bool) -> Option<Rtr> {
        loop {
            let peer = &mut self.peers[s.to];
            let Memory::Share(index) = peer.rtrs.next(s.context, s.tag)?.memory else { return None };
            let rtr = peer.rtrs.take(s.context, s.tag)?;
            peer.update_plain();
            let share = Share { owner: s.to, index };
            if !self.dev.opened_shares().take(share, ShareWord::Open, rtr.op as u64) {
                continue; // taken back
            }
            s.met = true;
            let fits = rendezvous && s.data.len as u64 <= rtr.len && s.data.len > 0 && self.dev.reach(s.to);
            if !fits {
                self.dev.opened_shares().store(share, ShareWord::Left, 2);
                return None;
            }
            self.counters.count(Event::RtrTaken);
            return Some(rtr);
        }
    }

    /// Announces that a message goes where an RTR said, and begins to move it; false if there is no room.
    pub(crate) fn leave_taken(&mut self, id: OpId, s: Sending, rtr: Rtr) -> bool {
        match rtr.memory {
            Memory::Share(index) => self.leave_matched(id, s, rtr, index),
            Memory::Keys(keys) => self.leave_write(id, s, rtr, keys),
        }
    }
}

/// Whether an RTR by a share has not been taken back.
fn is_open(dev: &impl Device, owner: Rank, rtr: &Rtr) -> bool {
    match rtr.memory {
        Memory::Share(index) => {
            dev.opened_shares().load(Share { owner, index }, ShareWord::Open) == rtr.op as u64
        }
        Memory::Keys(_) => true,
    }
}
