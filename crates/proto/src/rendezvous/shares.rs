//! Rendezvous through a share: the RTS with one, its match, and how the two sides come together.
//!
//! See [`super::movers::both`] for what happens then, and [`super::frames`] where nobody can copy.

use super::Rendezvous;
use crate::choice::tuning::PIECE_MIN;
use crate::choice::way::Way;
use crate::event::{Amount, Event, Happening as Told};
use crate::message::malformed;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, Receive, Sending, Side};
use crate::rendezvous::frames::Asked;
use crate::rendezvous::movers::both::{self, Claims, PIECE_MAX, Transfer};
use crate::rendezvous::state::{Rts, State};
use fabric::{Device, Fault, Rank, Share, ShareWord, Shares, Span};
use wire::head::{FrameType, Head, Offer};

impl<D: Device> Rendezvous<'_, D> {
    /// Lets the RTS of a message leave; false if there is no room.
    pub(crate) fn leave_rts(&mut self, id: OpId, s: Sending) -> bool {
        let share = self.open_share(s.to);
        // A message to oneself never takes frames: its receive completes as soon as it is matched.
        let can_copy = self.path(s.to).reach || s.data.len == 0 || s.to == self.dev.me();
        let direct = can_copy && share.is_some();
        if let Some(index) = share {
            let share = Share { owner: self.dev.me(), index };
            self.dev.opened_shares().store(share, ShareWord::Open, id.0 as u64);
        }
        let offer = Offer {
            len: s.data.len as u64,
            addr: if direct { s.data.addr as u64 } else { Offer::BY_FRAMES },
            share: share.unwrap_or(Offer::NO_SHARE),
            op: id.0,
            seen: 0,
            other: s.flags,
        };
        let body = offer.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        if !self.dev.try_send(s.to, Head::new(FrameType::Rts, s.tag, s.context).encode(), data) {
            self.close_share(share);
            return false;
        }
        self.counters.count(Event::RtsSent);
        self.counters.happened(Told::RendezvousBegun, [s.to as u64, s.data.len as u64, 1]);
        self.learner.forget(id);
        self.tell_host(id, s.to, s.data.len, if direct { Way::Both } else { Way::Frames });
        self.ops.set(id, State::Offered(s, Rts { share, direct, withdrawn: false }));
        if direct {
            self.active.push(id);
        }
        true
    }

    /// Opens a share for a message to or from a peer; `None` if there is none for that, or all are in use.
    pub(crate) fn open_share(&mut self, peer: Rank) -> Option<u32> {
        self.dev.shares().filter(|_| !self.path(peer).registration).and_then(Shares::open)
    }

    /// Makes a share of this rank that nobody uses available again.
    pub(crate) fn close_share(&mut self, share: Option<u32>) {
        if let Some(index) = share {
            let share = Share { owner: self.dev.me(), index };
            self.dev.opened_shares().store(share, ShareWord::Left, 2);
        }
    }

    /// The receiver has taken the RTS: copy together with it.
    pub(crate) fn begin_send(&mut self, id: OpId, s: Sending, share: Share, remote: usize) {
        let len = self.dev.opened_shares().load(share, ShareWord::Length) as usize;
        let mut transfer = Transfer {
            side: Side::Send,
            peer: s.to,
            share,
            local: s.data,
            remote,
            partner: 0,
            len: len.min(s.data.len),
            context: s.context,
            outcome: s.outcome(),
            can_copy: true,
            owned: false,
            helps: s.helps(),
            alone: false,
            theirs: 0,
        };
        if !self.dev.reach(s.to) {
            transfer.refuse(&*self.dev);
        }
        self.ops.set(id, State::Moving(Box::new(transfer)));
    }

    /// RTS has met its receive: by remote access if this rank can reach the sender's memory, by
    /// frames otherwise.
    pub(crate) fn begin_receive(&mut self, id: OpId, envelope: Envelope, offer: Offer) {
        let receive = self.ops.posted(id);
        let is_alone = offer.other & Offer::ALONE != 0;
        self.meet_rts(id, &envelope, !is_alone && offer.addr != Offer::BY_FRAMES);
        let outcome = Outcome::of_receive(&envelope, offer.len, receive.buf);
        let len = outcome.len as usize;
        let from = envelope.source;
        self.counters.happened(Told::RendezvousBegun, [from as u64, offer.len, 0]);
        let by_frames = offer.addr == Offer::BY_FRAMES && offer.len > 0;
        if offer.share == Offer::NO_SHARE || by_frames || (len > 0 && !self.dev.reach(from)) {
            let asked = asked(&receive, outcome, &offer);
            return self.ask_for_frames(id, asked);
        }
        let share = Share { owner: from, index: offer.share };
        // A sender that does not help only has to be told of the end.
        let is_one_piece = is_alone && len <= PIECE_MAX && *self.aside != Some(0);
        if len <= PIECE_MIN || is_one_piece {
            return self.pull_whole(id, receive, share, outcome, offer);
        }
        self.dev.opened_shares().store(share, ShareWord::Length, len as u64);
        self.dev.opened_shares().store(share, ShareWord::Partner, receive.buf.addr.max(1) as u64);
        self.dev.wake(from);
        let transfer = Transfer {
            side: Side::Receive,
            peer: from,
            share,
            local: receive.buf,
            remote: offer.addr as usize,
            partner: offer.op,
            len,
            context: envelope.context,
            outcome,
            can_copy: true,
            owned: true,
            helps: true,
            alone: is_alone,
            theirs: 0,
        };
        self.ops.set(id, State::Moving(Box::new(transfer)));
        self.active.push(id);
    }

    /// Copies the whole message at once; its sender learns of the match and the end together, by
    /// one line.
    fn pull_whole(&mut self, id: OpId, receive: Receive, share: Share, mut outcome: Outcome, offer: Offer) {
        let len = outcome.len as usize;
        let peer = outcome.source;
        if len > 0 {
            let start = self.eager_limit(peer).prices(len).then(|| self.dev.now_ns());
            match self.dev.read(peer, receive.buf.part(0, len), offer.addr as usize) {
                Ok(()) => {}
                Err(Fault::NotPermitted) => {
                    let asked = asked(&receive, outcome, &offer);
                    return self.ask_for_frames(id, asked);
                }
                Err(fault) => {
                    let (word, failure) = both::failed(fault, Side::Receive);
                    self.dev.opened_shares().store(share, ShareWord::Failed, word);
                    outcome.failure = Some(Box::new(failure));
                }
            }
            if let Some(start) = start {
                let took_ns = self.dev.now_ns() - start;
                self.eager_limit(peer).moved(len, took_ns);
            }
            if let Some(left) = self.aside {
                *left = left.saturating_sub(len);
            }
            self.counters.count(Event::PiecePulled);
            self.counters.add(Amount::PulledBytes, len as u64);
        }
        self.counters.happened(Told::RendezvousEnded, [peer as u64, len as u64, 0, Way::Both as u64]);
        for (word, value) in [
            (ShareWord::Length, len as u64),
            (ShareWord::Claim, Claims::whole(len).0),
            (ShareWord::Done, len as u64),
            (ShareWord::Left, 1),
            (ShareWord::Partner, receive.buf.addr.max(1) as u64),
        ] {
            self.dev.opened_shares().store(share, word, value);
        }
        self.dev.wake(peer);
        self.ops.set(id, State::Done(outcome));
    }
}

/// A message that cannot be copied.
fn asked(receive: &Receive, outcome: Outcome, offer: &Offer) -> Asked {
    let (buf, context) = (receive.buf, receive.want.context);
    Asked { buf, context, outcome, len: offer.len, op: offer.op }
}

/// Reads an offer and checks what it refers to.
pub(crate) fn read_offer(dev: &impl Device, from: Rank, data: Span) -> Result<Offer, Fault> {
    if data.len != Offer::LEN {
        return Err(malformed(from, wire::Malformed(format!("an offer of {} bytes", data.len))));
    }
    let mut bytes = [0u8; Offer::LEN];
    dev.peek_bytes(data, &mut bytes);
    let offer = Offer::decode(&bytes).map_err(|e| malformed(from, e))?;
    let registers = dev.caps(dev.distance(from)).registration;
    let shares = dev.shares().filter(|_| !registers).map_or(0, Shares::count);
    if offer.share != Offer::NO_SHARE && offer.share >= shares {
        return Err(malformed(from, wire::Malformed(format!("share {} does not exist", offer.share))));
    }
    Ok(offer)
}
