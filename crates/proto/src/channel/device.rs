//! What the engine sees of a channel.

use super::slots::RAIL;
use super::{Channel, OWN};
use crate::event::Event;
use fabric::{
    Atomic, Caps, Charge, Costs, Device, Distance, Fault, Frame, Local, NoShares, Rank, Region, Remote,
    Rights, Span, Transfers, Verbs,
};

/// Longest payload of a frame where a peer is a stream of the software adapter, whose socket takes it from where it lies. A rendezvous takes
/// two more messages, and holds its peer up while this rank computes.
pub const STREAM_FRAME_BYTES: usize = 1 << 20;
/// The same of one that may have to be copied before it leaves.
pub const STAGED_BYTES: usize = 64 << 10;

impl<V: Verbs> Channel<V> {
    /// The adapters.
    pub fn verbs(&self) -> &V {
        &self.verbs
    }

    /// The adapters, to change what they do.
    pub fn verbs_mut(&mut self) -> &mut V {
        &mut self.verbs
    }

    fn known(&self, rank: Rank) -> Option<usize> {
        self.index.get(rank)
    }

    /// The next frame of a peer. Messages are looked for only if this is no part of a look around,
    /// which has just done it.
    fn next(&mut self, from: Rank) -> Option<usize> {
        if let Some(p) = self.known(from) {
            self.fetch(p);
            if self.peers[p].front.is_some() {
                return Some(p);
            }
            if std::mem::take(&mut self.peers[p].ready) {
                return None;
            }
        }
        self.pump();
        let p = self.known(from)?;
        if self.peers[p].arrived.is_empty() {
            return None;
        }
        self.fetch(p);
        let peer = &mut self.peers[p];
        peer.ready = peer.front.is_some();
        peer.ready.then_some(p)
    }

    /// Posts a frame: whether there was room.
    fn try_post(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        let posted = self.send(to, head, Local { span: data, key: 0 }, None);
        self.left(posted)
    }

    /// Keeps what went wrong where nobody could be told of it. That a peer is lost is told by [`Device::take_lost`]; one
    /// that may leave has, and needs nothing any longer.
    pub(super) fn went_wrong(&mut self, fault: &Fault) {
        match fault {
            Fault::PeerLost(..) => {}
            Fault::PeerGone(rank) if self.verbs.may_leave(*rank) => {}
            _ => drop(self.fault.get_or_insert_with(|| fault.clone())),
        }
    }

    /// Why nothing goes to a peer that is lost.
    pub(super) fn refusal(&self, p: usize) -> Fault {
        let peer = &self.peers[p];
        peer.lost.as_deref().cloned().unwrap_or(self.gone(peer.rank))
    }

    /// This peer is gone.
    pub(super) fn gone(&self, peer: Rank) -> Fault {
        if self.verbs.may_leave(peer) { Fault::GuestGone(peer) } else { Fault::PeerGone(peer) }
    }

    /// What the adapter says, of which it does not matter to it whose job a peer is of.
    fn told(&self, fault: Fault) -> Fault {
        match fault {
            Fault::PeerGone(peer) => self.gone(peer),
            other => other,
        }
    }

    /// A process of another job has died: who waits for it is told, and nobody else.
    #[cold]
    fn misses(&mut self, guest: Rank) {
        if !self.missed.contains(&guest) {
            self.missed.push(guest);
            self.untold.push(guest);
        }
    }

    /// Whether a frame has been posted; that its peer is lost is told by [`Device::take_lost`].
    fn left(&mut self, posted: Result<bool, Fault>) -> bool {
        posted.unwrap_or_else(|fault| {
            self.went_wrong(&fault);
            false
        })
    }

    fn check_peer(&self, rank: Rank) -> Result<(), Fault> {
        match self.known(rank) {
            Some(p) if self.peers[p].lost.is_some() => Err(self.refusal(p)),
            Some(p) if self.peers[p].failed => Err(self.fault.clone().unwrap_or(self.gone(rank))),
            _ => Ok(()),
        }
    }
}

impl<V: Verbs> Device for Channel<V> {
    type Nap = V::Nap;
    type Shares = NoShares;

    fn me(&self) -> Rank {
        self.verbs.me()
    }

    fn size(&self) -> usize {
        self.verbs.size()
    }

    fn caps(&self, _distance: Distance) -> &Caps {
        &self.caps
    }

    fn words_change(&self) -> bool {
        let caps = self.verbs.caps();
        caps.offload && caps.coherent_atomics
    }

    fn now_ns(&self) -> u64 {
        self.verbs.now_ns()
    }

    fn distance(&self, peer: Rank) -> Distance {
        self.verbs.distance(peer)
    }

    fn costs(&self, distance: Distance) -> Costs {
        self.verbs.costs(distance)
    }

    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        let left = self.try_post(to, head, data);
        self.verbs.flush(to);
        left
    }

    fn try_send_more(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        let left = self.try_post(to, head, data);
        self.verbs.flush_unless_many(to);
        left
    }

    fn try_send_with_next(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.try_post(to, head, data)
    }

    fn leads(&mut self, to: Rank) {
        self.verbs.leads(to);
    }

    fn owes(&self) -> bool {
        self.verbs.owes()
    }

    fn peek(&mut self, from: Rank) -> Option<Frame> {
        if from == self.verbs.me() {
            let (head, bytes) = self.own.front()?;
            let data = Span { addr: bytes.as_ptr() as usize, len: bytes.len() };
            return Some(Frame { head: *head, data });
        }
        let p = self.next(from)?;
        self.peers[p].front.map(|front| Frame { head: front.head, data: front.data })
    }

    fn pop(&mut self, from: Rank) {
        if from == self.verbs.me() {
            self.own.pop_front();
            return;
        }
        let p = self.known(from).expect("a frame of this peer was shown");
        let front = self.peers[p].front.take().expect("a frame of this peer was shown");
        self.taken(p, front.path, front.place, front.data.len);
    }

    fn source(&mut self, position: usize) -> Option<Rank> {
        if position == 0 {
            self.look_around();
        }
        match self.ready.get(position) {
            Some(&p) => Some(self.peers[p as usize].rank),
            None if position == self.ready.len() && !self.own.is_empty() => Some(self.verbs.me()),
            None => None,
        }
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        self.verbs.copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        self.verbs.peek_bytes(data, out);
    }

    fn reach(&mut self, _peer: Rank) -> bool {
        false
    }

    fn read(&mut self, _peer: Rank, _local: Span, _remote: usize) -> Result<(), Fault> {
        Err(Fault::NotPermitted)
    }

    fn write(&mut self, _peer: Rank, _local: Span, _remote: usize) -> Result<(), Fault> {
        Err(Fault::NotPermitted)
    }

    fn shares(&self) -> Option<&NoShares> {
        None
    }

    fn happened(&self, event: usize) -> u64 {
        self.counters.get(Event::ALL[event].0)
    }

    fn charge(&mut self, what: Charge) {
        self.verbs.charge(what);
    }

    #[inline(always)]
    fn label(&mut self, name: impl FnOnce() -> &'static str) {
        self.verbs.label(name);
    }

    fn alarm(&mut self, at_ns: u64) {
        self.verbs.alarm(at_ns);
    }

    /// Nothing is changed without the adapter, which wakes by itself.
    fn wake(&self, _peer: Rank) {}

    fn awake(&mut self) {
        self.verbs.awake();
    }

    fn waiters(&mut self, threads: usize) {
        self.verbs.waiters(threads);
    }

    fn rests(&mut self) {
        self.verbs.rests();
    }

    fn idle(&mut self, round: u32) -> V::Nap {
        // A fault to be checked, a message or an end that came while others were looked at: then there is nothing
        // to wait for, and the adapter, which has told of it already, would not end the nap.
        if self.fault.is_some() || self.is_late || !self.done.is_empty() {
            let now = self.verbs.now_ns();
            self.verbs.alarm(now);
        }
        self.verbs.idle(round)
    }

    #[inline]
    fn has_served(&mut self) -> bool {
        self.verbs.has_served()
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        let missed = || self.untold.pop().map(|guest| (guest, Fault::GuestGone(guest)));
        let (rank, fault) = self.verbs.take_lost().or_else(missed)?;
        if let Some(p) = self.known(rank) {
            self.due.retain(|due| *due as usize != p);
            let peer = &mut self.peers[p];
            (peer.lost, peer.due) = (Some(Box::new(fault.clone())), false);
        }
        Some((rank, fault))
    }

    fn check(&mut self) -> Result<(), Fault> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => match self.verbs.check() {
                Err(Fault::PeerGone(guest)) if self.verbs.may_leave(guest) => {
                    self.misses(guest);
                    Ok(())
                }
                checked => checked,
            },
        }
    }
}

impl<V: Verbs> Transfers for Channel<V> {
    fn rails(&self) -> usize {
        self.verbs.rails()
    }

    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        // Frames register their part when they first need it, and cannot do without.
        let limit = self.verbs.caps().lockable_bytes / 8 * 3;
        if span.len > limit - self.lent_bytes {
            let lent = self.lent_bytes;
            return Err(Fault::Device(format!(
                "{lent} of the {limit} bytes that can be locked for long messages are, {} more are wanted \
                 (3/8 of the limit of the adapter)",
                span.len
            )));
        }
        let region = self.verbs.register(rail, span, rights)?;
        self.lent_bytes += span.len;
        self.lent.insert((rail, region.local), span.len);
        Ok(region)
    }

    fn deregister(&mut self, rail: usize, region: Region) {
        let len = self.lent.remove(&(rail, region.local)).expect("what is given back was registered");
        self.lent_bytes -= len;
        self.verbs.deregister(rail, region);
    }

    fn page_bytes(&self) -> usize {
        self.verbs.caps().page_bytes
    }

    fn watch(&mut self, span: Span) -> bool {
        self.verbs.watch(span)
    }

    fn memory_changed(&self) -> bool {
        self.verbs.memory_changed()
    }

    fn take_changes(&mut self, gone: &mut Vec<Span>) {
        self.verbs.take_changes(gone);
    }

    fn is_unchanged(&mut self, span: Span) -> bool {
        self.verbs.is_unchanged(span)
    }

    fn frames(&mut self, rail: usize, region: Region, span: Span, out: &mut Vec<u64>) -> bool {
        self.verbs.frames(rail, region, span, out)
    }

    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        assert!(work & OWN == 0, "the highest bit of work is the channel's");
        self.check_peer(to)?;
        self.verbs.post_write(to, rail, &[local], remote, work).map_err(|fault| self.told(fault))
    }

    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        assert!(work & OWN == 0, "the highest bit of work is the channel's");
        self.check_peer(from)?;
        self.verbs.post_read(from, rail, local, remote, work).map_err(|fault| self.told(fault))
    }

    fn post_atomic(
        &mut self,
        at: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        atomic: Atomic,
        work: u64,
    ) -> Result<bool, Fault> {
        assert!(work & OWN == 0, "the highest bit of work is the channel's");
        if !self.verbs.caps().coherent_atomics {
            return Ok(false);
        }
        self.check_peer(at)?;
        self.verbs.post_atomic(at, rail, local, remote, atomic, work).map_err(|fault| self.told(fault))
    }

    /// What is usual for frames does where it is the adapter: a message comes behind what was
    /// written, and so does a write where writes have an order. Elsewhere there are only messages.
    fn try_send_behind(&mut self, to: Rank, rail: usize, head: [u64; 2], data: Span) -> bool {
        if rail == RAIL || to == self.verbs.me() {
            return self.try_send(to, head, data);
        }
        let posted = self.send_behind(to, rail, head, data);
        self.left(posted)
    }

    fn writes_in_order(&self, _to: Rank) -> bool {
        self.verbs.caps().writes_in_order
    }

    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        if self.done.is_empty() {
            self.pump();
        }
        let (work, ended) = self.done.pop_front()?;
        Some((work, ended.map_err(|fault| self.told(fault))))
    }

    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault> {
        assert!(work & OWN == 0, "the highest bit of work is the channel's");
        self.send(to, head, data, Some(work)).map_err(|fault| self.told(fault))
    }

    fn allocate(&mut self, len: usize) -> Span {
        self.verbs.allocate(len)
    }

    fn load(&self, _peer: Rank, addr: usize) -> u64 {
        self.verbs.load(addr)
    }

    fn store(&mut self, _peer: Rank, addr: usize, value: u64) {
        self.verbs.store(addr, value);
    }
}
