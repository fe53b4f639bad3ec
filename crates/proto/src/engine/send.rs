//! The sending side: eager when it fits, rendezvous otherwise, in order per peer.

use crate::choice::habits::{Leaving, Manner};
use crate::choice::way::Way;
use crate::engine::Engine;
use crate::engine::arrive::matched;
use crate::event::{Event, Notice};
use crate::memory::rcache::Held;
use crate::message::matching::Envelope;
use crate::message::op::{OpId, Outcome, Receive, Sending, Side};
use crate::message::peers::Peer;
use crate::rendezvous::rtr::Void;
use crate::rendezvous::state::{State, Step};
use fabric::{Device, Distance, Fault, Rank, Rights, Span};
use wire::head::{FrameType, Head, Offer};

/// For how long an eager message waits for room before it goes by rendezvous.
const PATIENCE_NS: u64 = 1_000_000;
/// Messages that take no longer than a frame without any, in bytes.
const SHORT: usize = 64;

/// Send modes as far as protocols differ (MPI 5.0 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Standard, ready and buffered.
    Standard,
    /// Completes only once the receive is matched.
    Synchronous,
}

impl<D: Device> Engine<D> {
    /// Sends a short message if it can leave at once; no operation, no queue. Where `MORE` may follow at once they
    /// may leave together, while this rank looks around or is looked after. An adapter owes something afterwards, so a
    /// single message to another host goes by [`Engine::send`], whose caller asks [`Engine::needs_care`].
    #[inline(always)]
    pub fn send_now<const MORE: bool>(&mut self, to: Rank, context: u64, tag: i32, data: Span) -> bool {
        let distance = self.dev.distance(to);
        if !MORE && distance == Distance::Network {
            return false;
        }
        self.leave_now::<MORE>(to, distance, context, tag, data)
    }

    #[inline(always)]
    fn leave_now<const MORE: bool>(
        &mut self,
        to: Rank,
        distance: Distance,
        context: u64,
        tag: i32,
        data: Span,
    ) -> bool {
        let peer = &mut self.peers[to];
        let limit = &self.eager_limits[distance as usize];
        if !peer.plain || !limit.is_plain(data.len) {
            return self.send_now_otherwise(to, context, tag, data, MORE);
        }
        let head = Head::new(FrameType::Eager, tag, context).encode();
        let left =
            if MORE { self.dev.try_send_more(to, head, data) } else { self.dev.try_send(to, head, data) };
        if left {
            peer.sent = peer.sent.wrapping_add(1);
            self.counters.count(Event::Eager);
        }
        left
    }

    /// As [`Engine::send_now`] where the message may be long, or is watched.
    #[cold]
    #[inline(never)]
    fn send_now_otherwise(&mut self, to: Rank, context: u64, tag: i32, data: Span, more: bool) -> bool {
        // What fails here fails again in [`Engine::send`], which says so.
        if self.is_to_itself(to, data.len) && matches!(self.give_itself(context, tag, data), Ok(true)) {
            return true;
        }
        // Where buffers that come again are registered, the send may outlast this call.
        self.peers[to].plain
            && data.len <= self.eager_limit(to).limit()
            && self.goes_by_block(to, context, data.len)
            && !self.counts_send(to, data.len)
            && self.send_watched(to, context, tag, data, more)
    }

    /// Sends an eager message, of which there may be `more` at once, and, now and then, learns what copying it into the block costs;
    /// counts it if an account is kept.
    #[cold]
    #[inline(never)]
    fn send_watched(&mut self, to: Rank, context: u64, tag: i32, data: Span, more: bool) -> bool {
        let learns = self.eager_limit_mut(to).measures(data.len);
        let counts = self.learner.account.is_on();
        let start = if learns || counts { self.dev.now_ns() } else { 0 };
        let head = Head::new(FrameType::Eager, tag, context).encode();
        let left =
            if more { self.dev.try_send_more(to, head, data) } else { self.dev.try_send(to, head, data) };
        if !left {
            return false;
        }
        if learns || counts {
            let sending = Sending { to, context, tag, data, met: false, flags: 0 };
            self.eager_left(&sending, self.dev.now_ns() - start, learns);
        }
        self.peers[to].sent = self.peers[to].sent.wrapping_add(1);
        self.counters.count(Event::Eager);
        true
    }

    /// Sends an eager message to several ranks, written once if the device can do that: to how many
    /// of them, from the first on, it has left. The others are to be sent to one by one.
    pub fn send_all(&mut self, to: &[Rank], context: u64, tag: i32, data: Span) -> usize {
        let is_plain =
            |peer: &&Rank| self.peers[**peer].plain && data.len <= self.eager_limit(**peer).limit();
        let plain = to.iter().take_while(is_plain).count();
        if plain < 2 || self.learner.account.is_on() {
            return 0;
        }
        let left =
            self.dev.try_send_all(&to[..plain], Head::new(FrameType::Eager, tag, context).encode(), data);
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
        self.send_with(to, context, tag, data, mode, (0, false))
    }

    /// As [`Engine::send`], where more may follow at once: they may leave together, so its caller asks [`Engine::needs_care`].
    pub fn send_among(
        &mut self,
        to: Rank,
        context: u64,
        tag: i32,
        data: Span,
        mode: Mode,
    ) -> Result<Option<OpId>, Fault> {
        self.send_with(to, context, tag, data, mode, (0, true))
    }

    /// As [`Engine::send`], of data that their receiver combines where they lie ([`Engine::read_in_place`]). By a block they are copied once, as by the
    /// other ways, but nobody waits: where ranks outnumber cores, so that to wait is to give up a core, no habit is asked, and none learns from it,
    /// unless a setting says how messages go.
    pub fn send_to_be_read(
        &mut self,
        to: Rank,
        context: u64,
        tag: i32,
        data: Span,
    ) -> Result<Option<OpId>, Fault> {
        let is_free =
            self.habits.as_ref().is_some_and(|habits| !habits.is_fixed()) && self.dev.spare().is_some();
        let is_tried = is_free && self.eager_limit(to).is_tried(data.len) && self.dev.reads_in_place(to);
        let leaves = is_tried && self.fits(to, data.len, Mode::Standard) && self.peers[to].plain;
        if leaves && self.send_watched(to, context, tag, data, false) {
            return Ok(None);
        }
        self.send_for_good(to, context, tag, data, Mode::Standard)
    }

    /// As [`Engine::send`], of a message that the application cannot cancel: its receiver takes it without a look at what
    /// the two share, which costs the way of a line from core to core.
    pub fn send_for_good(
        &mut self,
        to: Rank,
        context: u64,
        tag: i32,
        data: Span,
        mode: Mode,
    ) -> Result<Option<OpId>, Fault> {
        self.send_with(to, context, tag, data, mode, (Offer::FINAL, false))
    }

    fn send_with(
        &mut self,
        to: Rank,
        context: u64,
        tag: i32,
        data: Span,
        mode: Mode,
        (flags, more): (u32, bool),
    ) -> Result<Option<OpId>, Fault> {
        if self.is_to_itself(to, data.len) && self.give_itself(context, tag, data)? {
            return Ok(None);
        }
        let manner = self.manner(to, context, data.len, mode);
        let fits = self.fits(to, data.len, mode);
        let by = manner.map_or(0, |manner| manner.flag() | Offer::CHOSEN);
        let flags = flags | by | if fits { Offer::EAGER } else { 0 };
        let sending = Sending { to, context, tag, data, met: false, flags };
        let is_short = match manner {
            None => mode == Mode::Standard && data.len <= self.eager_limit(to).limit(),
            Some(manner) => fits && manner == Manner::Blocks,
        };
        if is_short {
            return self.send_short(sending, manner.is_some(), more);
        }
        self.send_otherwise(sending, false, None)
    }

    /// Sends a message that goes by a block, as its habit says or the limit; `more` may follow at once.
    #[inline]
    fn send_short(&mut self, sending: Sending, by_habit: bool, more: bool) -> Result<Option<OpId>, Fault> {
        let Sending { to, context, tag, data, .. } = sending;
        let counts = self.eager_limit(to).watches(data.len) && self.counts_send(to, data.len);
        let held = counts.then(|| self.frequent(to, data, Rights::NONE)).flatten();
        let watched = (counts || by_habit).then_some(more);
        if held.is_none() && self.leaves_at_once(to, context, tag, data, watched) {
            return Ok(None);
        }
        // What no room can be waited for leaves now, or goes by rendezvous.
        let waits = data.len <= self.path(to).frame_bytes;
        if !waits && self.leaves_past_rtrs(to, context, tag, data) {
            return Ok(None);
        }
        self.send_otherwise(sending, waits, held)
    }

    /// Whether a message is for this rank, and long enough for a look to cost less than a second copy.
    #[inline(always)]
    fn is_to_itself(&self, to: Rank, len: usize) -> bool {
        len > SHORT && to == self.dev.me()
    }

    /// A message of this rank to itself, of any mode, whose receive is posted is one copy; false if it is not, or if others
    /// are before it.
    #[cold]
    #[inline(never)]
    fn give_itself(&mut self, context: u64, tag: i32, data: Span) -> Result<bool, Fault> {
        let me = self.dev.me();
        self.drain(me)?;
        let envelope = Envelope { source: me, context, tag };
        let Peer { plain, sent, seen, .. } = &self.peers[me];
        if !plain || sent != seen {
            return Ok(false);
        }
        let Some(op) = self.matching.take_posted(&envelope) else { return Ok(false) };
        let Receive { buf, long, .. } = self.ops.posted(op);
        if long {
            self.rendezvous().void_rtr(op, Void::Eager);
        }
        self.dev.copy(buf.addr, data.addr, data.len.min(buf.len));
        self.ops.set(op, State::Done(Outcome::of_receive(&envelope, data.len as u64, buf)));
        self.peers.hear(me, 1);
        self.peers[me].sent = self.peers[me].sent.wrapping_add(1);
        self.counters.happened(Notice::Matched, matched(&envelope, data.len as u64, false));
        self.counters.count(Event::Eager);
        self.news = true;
        Ok(true)
    }

    /// Sends a short message if it can leave at once.
    fn leaves_at_once(
        &mut self,
        to: Rank,
        context: u64,
        tag: i32,
        data: Span,
        watched: Option<bool>,
    ) -> bool {
        match watched {
            Some(more) => self.peers[to].plain && self.send_watched(to, context, tag, data, more),
            None => self.leave_now::<false>(to, self.dev.distance(to), context, tag, data),
        }
    }

    /// Sends a message that is too long to wait for room, if it is not because of others that it could not leave: RTRs that came for it are
    /// of no use.
    #[cold]
    fn leaves_past_rtrs(&mut self, to: Rank, context: u64, tag: i32, data: Span) -> bool {
        let peer = &self.peers[to];
        let is_free = !peer.plain && !peer.lost && peer.queue.is_empty() && peer.control.is_empty();
        let left = is_free && self.send_watched(to, context, tag, data, false);
        if left {
            self.rtrs.other_left(&Envelope { source: to, context, tag }, None);
        }
        left
    }

    /// Whether a message may go through a block.
    #[inline]
    fn fits(&self, to: Rank, len: usize, mode: Mode) -> bool {
        mode == Mode::Standard && len <= self.eager_limit(to).max()
    }

    /// Sends a message that could not leave at once, or is long; `held` if it goes from a buffer that is registered.
    fn send_otherwise(
        &mut self,
        sending: Sending,
        eager: bool,
        held: Option<Held>,
    ) -> Result<Option<OpId>, Fault> {
        let (to, mut sending) = (sending.to, sending);
        self.is_there(to)?;
        if !eager {
            self.look_before_send(to)?;
        }
        self.has_room()?;
        let id = self.ops.insert(State::Queued(sending, Step::Rts)).expect("there is room for one more");
        let step = self.rendezvous().first_step(id, &mut sending, eager, held);
        // Else it says so already.
        if !matches!(step, Step::Rts) || sending.met {
            self.ops.set(id, State::Queued(sending, step));
        }
        if self.peers[to].queue.is_empty() && self.peers[to].control.is_empty() {
            if self.leave_by(id, sending, step) {
                self.copy_left();
                return Ok(self.not_done(id));
            }
            if step_is_eager(step) {
                self.counters.count(Event::EagerQueued);
            }
        }
        self.peers.enqueue(to, id);
        Ok(Some(id))
    }

    /// The «initial progress call» of chapter 4: an RTR may be waiting. What the peer wants copied comes later: of two that send at
    /// once one would copy first, and the other one wait for its message.
    fn look_before_send(&mut self, to: Rank) -> Result<(), Fault> {
        if (self.limits.rtr || self.rendezvous().speculates(Some(to))) && self.peers[to].queue.is_empty() {
            self.drain_until_copy(to)?;
        }
        Ok(())
    }

    /// Whether a standard message that fits into a block goes by one; if not, or if it finds no room, [`Engine::send`] goes on.
    #[inline]
    fn goes_by_block(&mut self, to: Rank, context: u64, len: usize) -> bool {
        if !self.eager_limit(to).is_tried(len) || to == self.dev.me() {
            return true;
        }
        let (heard, is_quiet) = (self.peers.heard, self.is_quiet());
        let Some(habits) = &mut self.habits else { return true };
        if habits.goes_on_by_block((to, context, len), heard, is_quiet) {
            return true;
        }
        let message = self.leaving(to, context, len, true);
        let dev = &self.dev;
        self.habits.as_mut().is_none_or(|habits| habits.goes_by_block(message, || dev.now_ns()))
    }

    /// Whether nothing that this rank sent before is still being copied.
    #[inline]
    fn is_quiet(&self) -> bool {
        let is_sent = |id: &OpId| match self.ops.get(*id).map(|op| &op.state) {
            Some(State::Long(long)) => long.side == Side::Send,
            _ => false,
        };
        !self.active.iter().rev().any(is_sent)
    }

    fn leaving(&self, to: Rank, context: u64, len: usize, fits: bool) -> Leaving {
        let copy_ns = self.eager_limit(to).copies_ns(len);
        let (heard, is_quiet) = (self.peers.heard, self.is_quiet());
        Leaving { to, context, len, heard, is_quiet, fits, copy_ns, growth: self.dev.growth() }
    }

    /// How a message goes whose habit decides; `None` where a limit or a setting does.
    fn manner(&mut self, to: Rank, context: u64, len: usize, mode: Mode) -> Option<Manner> {
        if mode != Mode::Standard || !self.eager_limit(to).is_tried(len) || to == self.dev.me() {
            return None;
        }
        let fits = self.fits(to, len, mode);
        let message = self.leaving(to, context, len, fits);
        let dev = &self.dev;
        Some(self.habits.as_mut()?.next(message, || dev.now_ns()))
    }

    fn not_done(&mut self, id: OpId) -> Option<OpId> {
        if self.is_done(id) {
            self.ops.remove(id);
            return None;
        }
        Some(id)
    }

    /// Sends what waited for room.
    pub(crate) fn flush(&mut self) -> bool {
        let mut moved = false;
        let mut at = 0;
        while at < self.peers.backlog.len() {
            let to = self.peers.backlog[at];
            moved |= self.flush_peer(to);
            self.rendezvous().tell_gone(to);
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

    /// A message has left: copies what was left for it. What waits for room may find some behind each call that copies.
    fn copy_left(&mut self) {
        let left = self.crossing.sent();
        let mut left = &left[..];
        while !left.is_empty() {
            left = &left[self.rendezvous().copy_first_left(left)..];
            if !self.peers.backlog.is_empty() {
                self.flush();
            }
        }
    }

    /// Does the first step of a queued send; false if there is no room.
    fn leave(&mut self, id: OpId) -> bool {
        let (sending, step) = match self.ops.get(id).map(|op| &op.state) {
            Some(State::Queued(sending, step)) => (*sending, *step),
            Some(State::Long(long)) => {
                let to = long.message.peer;
                return self.rendezvous().start_long(id) && self.has_left(to);
            }
            _ => return true,
        };
        self.leave_by(id, sending, step)
    }

    /// Does that step of a send; false if there is no room.
    fn leave_by(&mut self, id: OpId, sending: Sending, step: Step) -> bool {
        let left = match step {
            Step::Eager => self.leave_eager(id, sending),
            Step::ZeroCopy(held) => self.leave_zero_copy(id, sending, held),
            Step::Rts => self.rendezvous().leave_rts(id, sending),
            Step::Taken(rtr) => self.rendezvous().leave_taken(id, sending, rtr),
            Step::Long(protocol, flags) => self.rendezvous().leave_long(id, sending, protocol, flags),
        };
        left && self.has_left(sending.to)
    }

    /// An eager message whose payload has waited for room for long goes by rendezvous: what fills that room may be
    /// for a peer that computes, and the receiver of this one waits. One that fits a frame of its own takes
    /// no more room than its RTS.
    #[cold]
    fn leave_without_room(&mut self, to: Rank, id: OpId) -> bool {
        let Some(State::Queued(sending, Step::Eager)) = self.ops.get(id).map(|op| &op.state) else {
            return false;
        };
        let path = self.path(to);
        if path.registration || sending.data.len <= path.inline_bytes {
            return false;
        }
        let (sending, now_ns) = (*sending, self.dev.now_ns());
        let since_ns = match self.peers[to].stuck {
            Some((stuck, since_ns)) if stuck == id => since_ns,
            _ => now_ns,
        };
        self.peers[to].stuck = Some((id, since_ns));
        if now_ns - since_ns < PATIENCE_NS || !self.rendezvous().leave_rts(id, sending) {
            return false;
        }
        self.has_left(to)
    }

    fn has_left(&mut self, to: Rank) -> bool {
        self.peers[to].sent = self.peers[to].sent.wrapping_add(1);
        true
    }

    /// An eager message has left: the sender sees its own part alone.
    fn eager_left(&mut self, s: &Sending, took_ns: u64, learns: bool) {
        let len = s.data.len;
        if learns {
            self.eager_limit_mut(s.to).copied_in(len, took_ns);
        }
        if !self.learner.account.is_on() {
            return;
        }
        let distance = self.dev.distance(s.to);
        let known = self.eager_limit(s.to).costs().copy_in.value();
        let facts = &mut self.learner.facts;
        let copy_ns = facts.copy_ns_per_byte(len);
        let path = &mut facts.paths[distance as usize];
        let per_byte = known.filter(|_| !path.registration).unwrap_or(copy_ns);
        let predicted_ns = path.post.value + per_byte * len as f64;
        if !path.registration && len <= SHORT {
            path.post.observe(took_ns as f64);
        }
        self.learner.account.left(distance, Way::Eager, len, predicted_ns, None);
        self.learner.account.ended(distance, Way::Eager, len, took_ns as f64);
    }

    pub(crate) fn leave_eager(&mut self, id: OpId, s: Sending) -> bool {
        let head = Head::new(FrameType::Eager, s.tag, s.context).encode();
        let learns = self.eager_limit_mut(s.to).measures(s.data.len);
        let counts = self.learner.account.is_on();
        let start = if learns || counts { self.dev.now_ns() } else { 0 };
        if !self.dev.try_send_more(s.to, head, s.data) {
            return false;
        }
        if learns || counts {
            self.eager_left(&s, self.dev.now_ns() - start, learns);
        }
        self.counters.count(Event::Eager);
        self.ops.set(id, State::Done(s.outcome()));
        true
    }
}

fn step_is_eager(step: Step) -> bool {
    matches!(step, Step::Eager | Step::ZeroCopy(_))
}
