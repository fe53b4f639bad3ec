//! The sending side: eager when it fits, rendezvous otherwise, in order per peer.

use crate::choice::way::Way;
use crate::engine::{Engine, malformed};
use crate::event::Event;
use crate::message::op::{OpId, Sending, Side};
use crate::rendezvous::movers::both::Transfer;
use crate::rendezvous::state::{Rts, State, Step, Stream};
use fabric::{Device, Fault, Rank, Share, ShareWord, Span};
use wire::head::{Head, Kind, Offer};

/// For how long an eager message waits for room before it goes by rendezvous.
const PATIENCE_NS: u64 = 1_000_000;
/// Bytes of a frame where there is no room for longer ones.
const LITTLE: usize = 2048;

/// Send modes as far as protocols differ (MPI 5.0 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Standard, ready and buffered.
    Standard,
    /// Completes only once the receive is matched.
    Synchronous,
}

impl<D: Device> Engine<D> {
    /// Sends a short message if it can leave at once; no operation, no queue.
    #[inline(always)]
    pub fn send_now(&mut self, to: Rank, context: u64, tag: i32, data: Span) -> bool {
        let peer = &mut self.peers[to];
        if !peer.plain || !self.choice.is_plain(data.len) {
            return self.send_now_otherwise(to, context, tag, data);
        }
        let left = self.dev.try_send(to, Head::new(Kind::Eager, tag, context).encode(), data);
        if left {
            peer.sent = peer.sent.wrapping_add(1);
            self.counters.count(Event::Eager);
        }
        left
    }

    /// As [`Engine::send_now`] where the message may be long, or is watched.
    #[cold]
    #[inline(never)]
    fn send_now_otherwise(&mut self, to: Rank, context: u64, tag: i32, data: Span) -> bool {
        // Where buffers that come again are registered, the send may outlast this call.
        self.peers[to].plain
            && data.len <= self.choice.limit()
            && !self.counts_use(to, data.len)
            && self.send_watched(to, context, tag, data, false)
    }

    /// Sends an eager message and, now and then or if asked to, learns what copying it into the block
    /// costs; counts it if an account is kept.
    #[cold]
    #[inline(never)]
    fn send_watched(&mut self, to: Rank, context: u64, tag: i32, data: Span, learns: bool) -> bool {
        let (learns, counts) = (self.choice.measures(data.len) || learns, self.mind.account.is_on());
        let start = if learns || counts { self.dev.now_ns() } else { 0 };
        if !self.dev.try_send(to, Head::new(Kind::Eager, tag, context).encode(), data) {
            return false;
        }
        if learns || counts {
            let sending = Sending { to, context, tag, data, met: false };
            self.eager_left(&sending, self.dev.now_ns() - start, learns);
        }
        self.peers[to].sent = self.peers[to].sent.wrapping_add(1);
        self.counters.count(Event::Eager);
        true
    }

    /// Sends an eager message to several ranks, written once if the device can do that: to how many
    /// of them, from the first on, it has left. The others are to be sent to one by one.
    pub fn send_all(&mut self, to: &[Rank], context: u64, tag: i32, data: Span) -> usize {
        let eager = data.len <= self.choice.limit().min(self.limits.eager_bytes);
        let plain = to.iter().take_while(|peer| self.peers[**peer].plain).count();
        if !eager || plain < 2 || self.mind.account.is_on() {
            return 0;
        }
        let left = self.dev.try_send_all(&to[..plain], Head::new(Kind::Eager, tag, context).encode(), data);
        for &peer in &to[..left] {
            self.peers[peer].sent = self.peers[peer].sent.wrapping_add(1);
            self.counters.count(Event::Eager);
        }
        left
    }

    /// Starts a send. `None` if the message has left and the buffer is free again.
    pub fn send(
        &mut self,
        to: Rank,
        context: u64,
        tag: i32,
        data: Span,
        mode: Mode,
    ) -> Result<Option<OpId>, Fault> {
        let fits = mode == Mode::Standard && data.len <= self.limits.eager_bytes;
        let short = fits && data.len <= self.choice.limit();
        let explores = fits && !short && self.choice.explores(data.len);
        let counts = short && self.choice.watches(data.len) && self.counts_use(to, data.len);
        let held = if counts { self.frequent(to, data) } else { None };
        let is_copied = counts && held.is_none() && self.peers[to].plain;
        if short && !counts && self.send_now(to, context, tag, data)
            || is_copied && self.send_watched(to, context, tag, data, false)
            || explores && self.peers[to].plain && self.send_watched(to, context, tag, data, true)
        {
            return Ok(None);
        }
        let eager = short || explores;
        let mut sending = Sending { to, context, tag, data, met: false };
        if !eager && (self.limits.rtr || self.speculates()) && self.peers[to].queue.is_empty() {
            self.drain(to)?; // an RTR may be waiting: the «initial progress call» of chapter 4
        }
        self.has_room()?;
        let step = match self.take_offer(&mut sending, !eager) {
            Some(offer) => Step::Matched(offer),
            None if eager => held.map_or(Step::Eager, Step::ZeroCopy),
            None => self.long_protocol(&sending).map_or(Step::Rts, |protocol| Step::Long(protocol, 0)),
        };
        let id = self.ops.insert(State::Queued(sending, step)).expect("there is room for one more");
        let step = match step {
            Step::Long(protocol, _) => self.begin_rendezvous(id, &sending, protocol),
            step => {
                self.spec.other_left(&sending.envelope(), None);
                step
            }
        };
        self.ops.set(id, State::Queued(sending, step));
        if self.peers[to].queue.is_empty() && self.peers[to].control.is_empty() {
            if self.leave(id) {
                return Ok(self.not_done(id));
            }
            if step_is_eager(step) {
                self.counters.count(Event::EagerQueued);
            }
        }
        self.peers.enqueue(to, id);
        Ok(Some(id))
    }

    fn not_done(&mut self, id: OpId) -> Option<OpId> {
        if self.is_done(id) {
            self.ops.remove(id);
            return None;
        }
        Some(id)
    }

    /// Queues a control frame that must not be lost.
    pub(crate) fn control(&mut self, to: Rank, head: [u64; 2], body: &[u8]) {
        self.peers.control(&mut self.dev, to, head, body);
    }

    /// Sends what waited for room.
    pub(crate) fn flush(&mut self) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.peers.backlog.len() {
            let to = self.peers.backlog[at];
            moved |= self.flush_peer(to);
            self.tell_gone(to);
            let peer = &mut self.peers[to];
            if peer.queue.is_empty() && peer.control.is_empty() {
                peer.update_plain();
                self.peers.backlog.swap_remove(at);
            } else {
                at += 1;
            }
        }
        moved
    }

    fn flush_peer(&mut self, to: Rank) -> bool {
        let mut moved = false;
        while let Some(control) = self.peers[to].control.front() {
            if !control.leave(&mut self.dev, to) {
                return moved;
            }
            self.peers[to].control.pop_front();
            moved = true;
        }
        while let Some(id) = self.peers[to].queue.front().copied() {
            if !self.leave(id) && !self.leave_without_room(to, id) {
                return moved;
            }
            self.peers[to].queue.pop_front();
            moved = true;
        }
        moved
    }

    /// Does the first step of a queued send; false if there is no room.
    fn leave(&mut self, id: OpId) -> bool {
        let (sending, step) = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Queued(sending, step)) => (*sending, *step),
            Some(State::Long(long)) => {
                let to = long.message.peer;
                return self.start_long(id) && self.has_left(to);
            }
            _ => return true,
        };
        let left = match step {
            Step::Eager => self.leave_eager(id, sending),
            Step::ZeroCopy(held) => self.leave_zero_copy(id, sending, held),
            Step::Rts => self.leave_rts(id, sending),
            Step::Matched(offer) => self.leave_matched(id, sending, offer),
            Step::Long(protocol, flags) => self.leave_long(id, sending, protocol, flags),
            Step::Write(rtr) => self.leave_write(id, sending, rtr),
        };
        left && self.has_left(sending.to)
    }

    /// An eager message that has waited for long goes by rendezvous: what fills the room for payloads may be for a
    /// peer that computes, and the receiver of this one waits.
    #[cold]
    fn leave_without_room(&mut self, to: Rank, id: OpId) -> bool {
        let Some(State::Queued(sending, Step::Eager)) = self.ops.get(id).map(|op| &op.state) else {
            return false;
        };
        if self.dev.caps().registration {
            return false;
        }
        let (sending, now_ns) = (*sending, self.dev.now_ns());
        let since_ns = match self.peers[to].stuck {
            Some((stuck, since_ns)) if stuck == id => since_ns,
            _ => now_ns,
        };
        self.peers[to].stuck = Some((id, since_ns));
        if now_ns - since_ns < PATIENCE_NS || !self.leave_rts(id, sending) {
            return false;
        }
        self.has_left(to)
    }

    fn has_left(&mut self, to: Rank) -> bool {
        self.peers[to].sent = self.peers[to].sent.wrapping_add(1);
        true
    }

    pub(crate) fn leave_eager(&mut self, id: OpId, s: Sending) -> bool {
        let head = Head::new(Kind::Eager, s.tag, s.context).encode();
        let (learns, counts) = (self.choice.measures(s.data.len), self.mind.account.is_on());
        let start = if learns || counts { self.dev.now_ns() } else { 0 };
        if !self.dev.try_send(s.to, head, s.data) {
            return false;
        }
        if learns || counts {
            self.eager_left(&s, self.dev.now_ns() - start, learns);
        }
        self.counters.count(Event::Eager);
        self.ops.set(id, State::Done(s.outcome()));
        true
    }

    pub(crate) fn leave_rts(&mut self, id: OpId, s: Sending) -> bool {
        let share = self.dev.share_open();
        // A message to oneself never takes frames: its receive completes as soon as it is matched.
        let can_copy = self.limits.remote_access || s.data.len == 0 || s.to == self.dev.me();
        let direct = can_copy && share.is_some();
        if let Some(index) = share {
            let share = Share { owner: self.dev.me(), index };
            self.dev.share_store(share, ShareWord::Open, id.0 as u64);
        }
        let offer = Offer {
            len: s.data.len as u64,
            addr: if direct { s.data.addr as u64 } else { Offer::BY_FRAMES },
            share: share.unwrap_or(Offer::NO_SHARE),
            op: id.0,
            seen: 0,
            other: 0,
        };
        let body = offer.encode();
        let data = Span { addr: body.as_ptr() as usize, len: body.len() };
        if !self.dev.try_send(s.to, Head::new(Kind::Rts, s.tag, s.context).encode(), data) {
            self.close_share(share);
            return false;
        }
        self.counters.count(Event::RtsSent);
        self.mind.forget(id);
        self.tell_host(id, s.to, s.data.len, if direct { Way::Both } else { Way::Frames });
        self.ops.set(id, State::Offered(s, Rts { share, direct }));
        if direct {
            self.active.push(id);
        }
        true
    }

    /// Makes a share of this rank that nobody uses available again.
    pub(crate) fn close_share(&mut self, share: Option<u32>) {
        if let Some(index) = share {
            let share = Share { owner: self.dev.me(), index };
            self.dev.share_store(share, ShareWord::Left, 2);
        }
    }

    /// The receiver has taken the RTS: copy together with it.
    pub(crate) fn begin_send(&mut self, id: OpId, s: Sending, share: Share, remote: usize) {
        let len = self.dev.share_load(share, ShareWord::Length) as usize;
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
            theirs: 0,
        };
        if !self.dev.reach(s.to) {
            transfer.refuse(&self.dev);
        }
        self.ops.set(id, State::Moving(Box::new(transfer)));
    }

    /// CTS: the receiver wants frames.
    pub(crate) fn on_cts(&mut self, from: Rank, head: Head, data: Span) -> Result<(), Fault> {
        let id = OpId(head.tag as u32);
        let waiting = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Offered(s, rts)) => Some((*s, *rts)),
            Some(State::Moving(transfer))
                if transfer.side == Side::Send && transfer.needs_frames(&self.dev) =>
            {
                transfer.leave(&self.dev);
                Some((transfer.sending(), Rts { share: None, direct: true }))
            }
            Some(State::Long(long)) if long.message.peer == from => {
                let envelope = long.envelope();
                self.spec.on_met(&envelope, id, None);
                self.long_sending(id).map(|s| (s, Rts { share: None, direct: false }))
            }
            _ => None,
        };
        let Some((s, rts)) = waiting else {
            return Err(malformed(
                from,
                wire::Malformed("CTS for a send that is not waiting for one".into()),
            ));
        };
        if s.to != from || data.len != 8 {
            return Err(malformed(from, wire::Malformed("CTS that does not belong to this send".into())));
        }
        let mut limit = [0u8; 8];
        self.dev.peek_bytes(data, &mut limit);
        let limit = (u64::from_le_bytes(limit) as usize).min(s.data.len);
        self.close_share(rts.share);
        self.mind.takes_frames(id);
        let stream = Stream { receiver_op: head.context as u32, limit, sent: 0 };
        self.ops.set(id, State::Streaming(s, stream));
        if !rts.direct {
            self.active.push(id);
        }
        Ok(())
    }

    /// Sends frames of a stream while there is room: (something was sent, all were sent).
    pub(crate) fn stream(&mut self, id: OpId) -> (bool, bool) {
        let Some(State::Streaming(s, stream)) = self.ops.get(id).map(|op| &op.state) else {
            return (false, true);
        };
        let (s, mut stream) = (*s, *stream);
        let before = stream.sent;
        let frame = self.dev.caps().frame_bytes;
        // In shared memory there may be room for little where there is none for much.
        let lens = [frame, LITTLE.min(frame)];
        let lens = if self.dev.caps().registration { &lens[..1] } else { &lens };
        while stream.sent < stream.limit {
            let head = Head::new(Kind::Data, stream.receiver_op as i32, stream.sent as u64).encode();
            let part = |len: &usize| s.data.part(stream.sent, *len.min(&(stream.limit - stream.sent)));
            let Some(part) = lens.iter().map(part).find(|part| self.dev.try_send(s.to, head, *part)) else {
                break;
            };
            self.counters.count(Event::FrameSent);
            stream.sent += part.len;
        }
        let done = stream.sent >= stream.limit;
        let state = if done { State::Done(s.outcome()) } else { State::Streaming(s, stream) };
        self.ops.set(id, state);
        if done {
            self.mind.ended_at(id, &self.dev);
        }
        (stream.sent > before, done)
    }
}

fn step_is_eager(step: Step) -> bool {
    matches!(step, Step::Eager | Step::ZeroCopy(_))
}
