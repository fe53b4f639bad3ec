//! A device of devices: one for the ranks of this host, another for those of other hosts, chosen per peer.
//!
//! Ranks are those of the job. The near device knows the ranks of this host alone, by their place among them,
//! and hears of no others; the far one knows them all. There may be no far one: then the job is on one host.
//!
//! Both are looked at whenever this rank looks around. It sleeps in the near one, which is handed the
//! descriptor of the far one, and only when both agree.

mod transfers;

use crate::costs::{Costs, Distance};
use crate::device::{Caps, Device, Fault, Frame, Rank, Reading, Span};
use crate::shares::{Share, ShareWord, Shares};
use crate::verbs::Charge;
use crate::waiting::{Bell, Nap};
use std::sync::Arc;

/// Place of a rank that is not on this host.
const FAR: u32 = u32::MAX;

/// See the [module](self).
pub struct Pair<N: Device, F: Device> {
    near: N,
    far: Option<F>,
    /// All ranks are on this host: then their places are their ranks.
    is_one_host: bool,
    me: Rank,
    /// By rank of the job: its place on this host, or [`FAR`].
    places: Vec<u32>,
    /// By place: its rank in the job.
    ranks: Box<[Rank]>,
    /// By rank of the job: its host.
    hosts: Option<Arc<[u32]>>,
    /// How many sources the near device has shown in this look around; the most there can be until it ends.
    near_sources: usize,
}

impl<N: Device, F: Device> Pair<N, F> {
    /// The rank that is `near.me()` among those of this host, which are `ranks` of the job of `size`, in order.
    pub fn new(near: N, far: Option<F>, ranks: Box<[Rank]>, size: usize) -> Pair<N, F> {
        assert_eq!(ranks.len(), near.size(), "the near device connects the ranks of this host");
        assert!(far.is_some() || ranks.len() == size, "ranks of other hosts need a device");
        let mut places = vec![FAR; size];
        ranks.iter().enumerate().for_each(|(place, rank)| places[*rank] = place as u32);
        let me = ranks[near.me()];
        let is_one_host = ranks.iter().copied().eq(0..size);
        Pair { near, far, is_one_host, me, places, ranks, hosts: None, near_sources: 0 }
    }

    /// Rank `me` of a job of `size` that reaches nobody but itself yet: its near device has it alone.
    pub fn alone(near: N, me: Rank, size: usize) -> Pair<N, F> {
        assert_eq!(near.size(), 1, "the near device connects this rank with itself");
        let mut places = vec![FAR; size];
        places[me] = 0;
        Pair {
            near,
            far: None,
            is_one_host: false,
            me,
            places,
            ranks: [me].into(),
            hosts: None,
            near_sources: 0,
        }
    }

    /// Which ranks share a host, see [`Device::hosts`].
    pub fn on_hosts(mut self, hosts: Arc<[u32]>) -> Pair<N, F> {
        assert_eq!(hosts.len(), self.places.len(), "each rank is on a host");
        self.hosts = Some(hosts);
        self
    }

    /// The device for ranks of this host.
    pub fn near(&self) -> &N {
        &self.near
    }

    /// The device for the others.
    pub fn far(&self) -> Option<&F> {
        self.far.as_ref()
    }

    /// The device for ranks of this host, to change what it does.
    pub fn near_mut(&mut self) -> &mut N {
        &mut self.near
    }

    /// The device for the others, to change what it does or to give one.
    pub fn far_slot(&mut self) -> &mut Option<F> {
        &mut self.far
    }

    /// From here on there are so many peers; those that are new are reached by the far device, which knows them.
    pub fn grow(&mut self, size: usize) {
        assert!(
            self.far.is_some() && size >= self.places.len(),
            "peers that are new are behind the far device"
        );
        self.is_one_host &= size == self.places.len();
        self.places.resize(size, FAR);
    }

    /// The place of a rank on this host.
    #[inline(always)]
    fn place(&self, rank: Rank) -> Option<Rank> {
        if self.is_one_host { Some(rank) } else { self.place_among(rank) }
    }

    #[inline(never)]
    fn place_among(&self, rank: Rank) -> Option<Rank> {
        let place = self.places[rank];
        (place != FAR).then_some(place as Rank)
    }

    /// The far device, by which a rank of another host is reached.
    #[inline]
    fn far_mut(&mut self) -> &mut F {
        self.far.as_mut().expect("a rank of another host has a device")
    }

    /// What the near device says of a peer, in ranks of the job.
    fn named(&self, fault: Fault) -> Fault {
        match fault {
            Fault::PeerGone(place) => Fault::PeerGone(self.ranks[place]),
            other => other,
        }
    }
}

// What is called for each message, of ranks of other hosts: out of line, so that it costs the others nothing.
impl<N: Device, F: Device> Pair<N, F> {
    #[inline(never)]
    fn try_send_far(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.far_mut().try_send(to, head, data)
    }

    #[inline(never)]
    fn try_send_more_far(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.far_mut().try_send_more(to, head, data)
    }

    #[inline(never)]
    fn peek_far(&mut self, from: Rank) -> Option<Frame> {
        self.far_mut().peek(from)
    }

    #[inline(never)]
    fn pop_far(&mut self, from: Rank) {
        self.far_mut().pop(from);
    }

    #[inline(never)]
    fn take_far(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        self.far_mut().take(from, head, room)
    }

    #[inline(never)]
    fn completed_far(&mut self) -> Option<(u64, Result<(), Fault>)> {
        self.far_mut().completed()
    }

    #[inline(never)]
    fn source_far(&mut self, position: usize) -> Option<Rank> {
        self.far_mut().source(position)
    }
}

/// What to do until both devices are looked at again.
pub struct PairNap<N, F> {
    near: N,
    /// Of the far one, unless it sleeps as well: then its descriptor ends the sleep of the near one.
    far: Option<F>,
}

impl<N: Nap, F: Nap> Nap for PairNap<N, F> {
    #[inline]
    fn take(self) {
        if let Some(far) = self.far {
            far.take();
        }
        self.near.take();
    }

    #[inline]
    fn sleeps(&self) -> bool {
        self.near.sleeps()
    }
}

/// What stands for others passes on all they can.
#[deny(clippy::missing_trait_methods)]
impl<N: Device, F: Device> Device for Pair<N, F> {
    type Nap = PairNap<N::Nap, F::Nap>;
    type Shares = Self;

    #[inline(always)]
    fn me(&self) -> Rank {
        self.me
    }

    #[inline(always)]
    fn size(&self) -> usize {
        self.places.len()
    }

    fn caps(&self, distance: Distance) -> &Caps {
        match (distance, &self.far) {
            (Distance::Network, Some(far)) => far.caps(distance),
            _ => self.near.caps(Distance::Host),
        }
    }

    fn words_change(&self) -> bool {
        self.far.as_ref().is_some_and(|far| far.words_change())
    }

    fn growth(&self) -> u32 {
        self.near.growth()
    }

    fn now_ns(&self) -> u64 {
        self.near.now_ns()
    }

    #[inline(always)]
    fn distance(&self, peer: Rank) -> Distance {
        if self.place(peer).is_none() { Distance::Network } else { Distance::Host }
    }

    fn hosts(&self) -> Option<&[u32]> {
        if self.is_one_host { None } else { self.hosts.as_deref() }
    }

    fn costs(&self, distance: Distance) -> Costs {
        match (distance, &self.far) {
            (Distance::Network, Some(far)) => far.costs(distance),
            _ => self.near.costs(distance),
        }
    }

    #[inline(always)]
    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        match self.place(to) {
            Some(place) => self.near.try_send(place, head, data),
            None => self.try_send_far(to, head, data),
        }
    }

    #[inline(always)]
    fn try_send_more(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        match self.place(to) {
            Some(place) => self.near.try_send_more(place, head, data),
            None => self.try_send_more_far(to, head, data),
        }
    }

    fn try_send_with_next(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        match self.place(to) {
            Some(place) => self.near.try_send(place, head, data),
            None => self.far_mut().try_send_with_next(to, head, data),
        }
    }

    fn leads(&mut self, to: Rank) {
        if self.place(to).is_none() {
            self.far_mut().leads(to);
        }
    }

    #[inline(always)]
    fn owes(&self) -> bool {
        self.far.as_ref().is_some_and(Device::owes)
    }

    fn try_send_all(&mut self, to: &[Rank], head: [u64; 2], data: Span) -> usize {
        let near: Vec<Rank> = to.iter().map_while(|rank| self.place(*rank)).collect();
        if near.len() < 2 { 0 } else { self.near.try_send_all(&near, head, data) }
    }

    #[inline(always)]
    fn peek(&mut self, from: Rank) -> Option<Frame> {
        match self.place(from) {
            Some(place) => self.near.peek(place),
            None => self.peek_far(from),
        }
    }

    #[inline(always)]
    fn pop(&mut self, from: Rank) {
        match self.place(from) {
            Some(place) => self.near.pop(place),
            None => self.pop_far(from),
        }
    }

    fn retain(&mut self, from: Rank) -> bool {
        self.place(from).is_some_and(|place| self.near.retain(place))
    }

    fn release(&mut self, from: Rank, data: Span) {
        if let Some(place) = self.place(from) {
            self.near.release(place, data);
        }
    }

    #[inline(always)]
    fn pressed(&mut self) -> Option<Rank> {
        self.near.pressed().map(|place| self.ranks[place])
    }

    #[inline(always)]
    fn take(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        match self.place(from) {
            Some(place) => self.near.take(place, head, room),
            None => self.take_far(from, head, room),
        }
    }

    #[inline(always)]
    fn takes_at_once(&self) -> bool {
        self.is_one_host
    }

    /// Of a rank of this host, as they all are, whose place is its rank.
    #[inline(always)]
    fn take_at_once(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        self.near.take_at_once(from, head, room)
    }

    #[inline]
    fn reads_in_place(&self, from: Rank) -> bool {
        match (self.place(from), &self.far) {
            (None, Some(far)) => far.reads_in_place(from),
            (place, _) => place.is_some_and(|place| self.near.reads_in_place(place)),
        }
    }

    #[inline]
    fn take_in_place(&mut self, from: Rank, reading: &mut Reading<'_>) -> Result<(), bool> {
        match (self.place(from), &mut self.far) {
            (None, Some(far)) => far.take_in_place(from, reading),
            (Some(place), _) => self.near.take_in_place(place, reading),
            (None, None) => Err(false),
        }
    }

    #[inline]
    fn begun(&self, from: Rank) -> Option<usize> {
        match (self.place(from), &self.far) {
            (None, Some(far)) => far.begun(from),
            (place, _) => self.near.begun(place?),
        }
    }

    #[inline]
    fn source(&mut self, position: usize) -> Option<Rank> {
        if position == 0 {
            self.near_sources = usize::MAX;
        }
        if position < self.near_sources {
            if let Some(place) = self.near.source(position) {
                return Some(self.ranks[place]);
            }
            self.near_sources = position;
        }
        if self.far.is_none() { None } else { self.source_far(position - self.near_sources) }
    }

    #[inline(always)]
    fn copy(&mut self, to: usize, from: usize, len: usize) {
        self.near.copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        self.near.peek_bytes(data, out);
    }

    fn reach(&mut self, peer: Rank) -> bool {
        match self.place(peer) {
            Some(place) => self.near.reach(place),
            None => self.far_mut().reach(peer),
        }
    }

    fn read(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        match self.place(peer) {
            Some(place) => self.near.read(place, local, remote).map_err(|fault| self.named(fault)),
            None => self.far_mut().read(peer, local, remote),
        }
    }

    fn read_many(&mut self, peer: Rank, pieces: &[(Span, usize)]) -> usize {
        match self.place(peer) {
            Some(place) => self.near.read_many(place, pieces),
            None => self.far_mut().read_many(peer, pieces),
        }
    }

    fn write(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        match self.place(peer) {
            Some(place) => self.near.write(place, local, remote).map_err(|fault| self.named(fault)),
            None => self.far_mut().write(peer, local, remote),
        }
    }

    #[inline(always)]
    fn charge(&mut self, what: Charge) {
        match &mut self.far {
            Some(far) => far.charge(what),
            None => self.near.charge(what),
        }
    }

    #[inline(always)]
    fn label(&mut self, name: impl FnOnce() -> &'static str) {
        match &mut self.far {
            Some(far) => far.label(name),
            None => self.near.label(name),
        }
    }

    fn alarm(&mut self, at_ns: u64) {
        self.near.alarm(at_ns);
        if let Some(far) = &mut self.far {
            far.alarm(at_ns);
        }
    }

    fn shares(&self) -> Option<&Self> {
        self.near.shares().map(|_| self)
    }

    fn opened_shares(&self) -> &Self {
        self
    }

    fn happened(&self, event: usize) -> u64 {
        self.near.happened(event) + self.far.as_ref().map_or(0, |far| far.happened(event))
    }

    fn wake(&self, peer: Rank) {
        match (self.place(peer), &self.far) {
            (Some(place), _) => self.near.wake(place),
            (None, Some(far)) => far.wake(peer),
            _ => {}
        }
    }

    fn wake_threads(&self) {
        self.near.wake_threads();
    }

    fn waiters(&mut self, threads: usize) {
        self.near.waiters(threads);
        if let Some(far) = &mut self.far {
            far.waiters(threads);
        }
    }

    #[inline(always)]
    fn was_written(&self, span: Span) {
        self.near.was_written(span);
    }

    #[inline(always)]
    fn awake(&mut self) {
        self.near.awake();
        if self.far.is_some() {
            self.far_mut().awake();
        }
    }

    fn rests(&mut self) {
        self.near.rests();
        if let Some(far) = &mut self.far {
            far.rests();
        }
    }

    #[inline]
    fn idle(&mut self, round: u32) -> Self::Nap {
        let far = self.far.as_mut().map(|far| far.idle(round)).filter(|nap| !nap.sleeps());
        let near = self.near.idle(if far.is_none() { round } else { 0 });
        PairNap { near, far }
    }

    fn spare(&self) -> Option<Self::Nap> {
        self.near.spare().map(|near| PairNap { near, far: None })
    }

    fn bell(&self) -> Option<Arc<dyn Bell>> {
        self.near.bell()
    }

    #[inline]
    fn has_served(&mut self) -> bool {
        self.far.as_mut().is_some_and(Device::has_served)
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        self.far.as_mut()?.take_lost()
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.near.check().map_err(|fault| self.named(fault))?;
        self.far.as_mut().map_or(Ok(()), Device::check)
    }
}

/// Those of the near device, by ranks of the job: who names one is on this host. What stands for others passes on all they can.
#[deny(clippy::missing_trait_methods)]
impl<N: Device, F: Device> Shares for Pair<N, F> {
    fn open(&self) -> Option<u32> {
        self.near.shares()?.open()
    }

    fn count(&self) -> u32 {
        self.near.shares().map_or(0, Shares::count)
    }

    #[inline]
    fn add(&self, share: Share, word: ShareWord, value: u64) -> u64 {
        self.near.opened_shares().add(self.here(share), word, value)
    }

    #[inline]
    fn take(&self, share: Share, word: ShareWord, held: u64) -> bool {
        self.near.opened_shares().take(self.here(share), word, held)
    }

    #[inline]
    fn will_change(&self, share: Share) {
        self.near.opened_shares().will_change(self.here(share));
    }

    #[inline]
    fn load(&self, share: Share, word: ShareWord) -> u64 {
        self.near.opened_shares().load(self.here(share), word)
    }

    #[inline]
    fn store(&self, share: Share, word: ShareWord, value: u64) {
        self.near.opened_shares().store(self.here(share), word, value);
    }

    #[inline]
    fn store_all(&self, share: Share, words: &[(ShareWord, u64)]) {
        self.near.opened_shares().store_all(self.here(share), words);
    }
}

impl<N: Device, F: Device> Pair<N, F> {
    #[inline]
    fn here(&self, share: Share) -> Share {
        let owner = self.place(share.owner).expect("shares are of ranks of this host");
        Share { owner, ..share }
    }
}
