//! A rank's adapters: [`fabric::Verbs`] in virtual time.

use std::rc::Rc;

use fabric::{
    Charge, Completion, Costs, Distance, Fault, Local, Rank, Region, Remote, Rights, Span, Verbs, VerbsCaps,
};
use mpi::mem;

use crate::carry::Post;
use crate::clock::{Clock, Nap, Shared};
use crate::cluster::Cluster;
use crate::copier::Copier;
use crate::message::{GATHER, Opcode};
use crate::queue::{Ps, ps};
use crate::regions::pages;

/// The adapters of one rank.
pub struct Nic<'y> {
    clock: Rc<Clock<'y>>,
    cluster: Rc<Cluster>,
    caps: VerbsCaps,
    size: usize,
    alarm: Ps,
    touched: Vec<Rank>,
    copier: Rc<Copier<'y>>,
}

impl<'y> Nic<'y> {
    /// The adapters of the rank of this clock.
    pub fn new(clock: Rc<Clock<'y>>, cluster: Rc<Cluster>) -> Nic<'y> {
        let size = clock.net.borrow().seats.len();
        let rails = &cluster.rails;
        let caps = VerbsCaps {
            name: "sim",
            inline_bytes: rails.iter().map(|rail| rail.inline_bytes).min().expect("a host has a rail"),
            at_once_bytes: 0,
            gather: GATHER,
            datagram_bytes: cluster.datagram.max_bytes,
            transfer_bytes: usize::MAX,
            depth: rails.iter().map(|rail| rail.depth).min().expect("a host has a rail"),
            lockable_bytes: cluster.registration.lockable_bytes,
            regions: cluster.registration.regions,
            page_bytes: cluster.registration.page_bytes,
            offload: true,
            writes_in_order: true,
            holds_receives: None,
            coherent_atomics: false,
        };
        let copier = Rc::new(Copier::new(clock.clone(), cluster.clone()));
        Nic { copier, clock, cluster, caps, size, alarm: Ps::MAX, touched: Vec::new() }
    }

    /// The cluster this rank is in.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The same, to keep.
    pub fn shared_cluster(&self) -> Rc<Cluster> {
        self.cluster.clone()
    }

    /// What copies for this rank.
    pub fn copier(&self) -> Rc<Copier<'y>> {
        self.copier.clone()
    }

    /// Whether nothing will happen any more, though this rank waits.
    pub fn is_stuck(&self) -> bool {
        self.net().borrow().is_stuck
    }

    /// The virtual clock of this rank.
    pub fn clock(&self) -> &Rc<Clock<'y>> {
        &self.clock
    }

    fn net(&self) -> &Shared {
        &self.clock.net
    }

    /// Posts work, unless the queue is full.
    fn post(
        &mut self,
        kind: Opcode,
        to: Rank,
        rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let me = self.clock.me;
        assert!(parts.len() <= GATHER, "a gather list has at most {GATHER} entries");
        let peer = to as u32;
        let (costs, len) = (&self.cluster.rails[rail], parts.iter().map(|part| part.span.len).sum::<usize>());
        let is_inline = kind != Opcode::ReadRequest && len <= costs.inline_bytes;
        {
            let mut net = self.net().borrow_mut();
            let depth = net.limits[rail].0;
            let seat = &mut net.seats[me as usize];
            let pair = *seat.pair(peer, rail as u16);
            if pair.outstanding >= depth || (pair.held > 0 && kind != Opcode::Datagram) {
                return Ok(false);
            }
            if !is_inline {
                // What is read is placed there.
                let needed = if kind == Opcode::ReadRequest { Rights::LOCAL_WRITE } else { Rights::NONE };
                for part in parts {
                    let about =
                        |text| Fault::Device(format!("{} to rank {to}: own memory: {text}", kind.name()));
                    seat.regions.check(Some(rail), *part, needed).map_err(about)?;
                }
            }
            let stall = net.faults.stall;
            if net.random.happens(stall) {
                let most = net.faults.stall_ns * 1000;
                self.clock.pass(net.random.below(most + 1));
            }
        }
        let written = if is_inline { len as f64 / costs.inline_bandwidth } else { 0.0 };
        self.clock.spend("post", ps(costs.post_ns + written), len);
        self.clock.settle_to_post(rail);
        let post = Post { kind, from: me, to: peer, rail: rail as u16, parts, remote, is_inline, work };
        self.net().borrow_mut().post(&post, self.clock.now());
        Ok(true)
    }
}

impl<'y> Verbs for Nic<'y> {
    type Nap = Nap<'y>;

    fn me(&self) -> Rank {
        self.clock.me as Rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn caps(&self) -> &VerbsCaps {
        &self.caps
    }

    fn rails(&self) -> usize {
        self.cluster.rails.len()
    }

    fn now_ns(&self) -> u64 {
        self.clock.now() / 1000
    }

    fn distance(&self, peer: Rank) -> Distance {
        self.cluster.distance(self.me(), peer)
    }

    fn costs(&self, distance: Distance) -> Costs {
        self.cluster.costs(distance)
    }

    fn allocate(&mut self, len: usize) -> Span {
        self.net().borrow_mut().arena.allocate(len, self.caps.page_bytes)
    }

    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        let limits = &self.cluster.registration;
        let key = {
            let net = &mut *self.net().borrow_mut();
            net.counters.registered += 1;
            net.seats[self.clock.me as usize].regions.add(rail, span, rights, limits)?
        };
        let (once, page) = limits.register_ns;
        let time = once + page * pages(span.len, limits.page_bytes) as f64;
        self.clock.spend("register", ps(time), span.len);
        Ok(Region::of(key))
    }

    fn deregister(&mut self, rail: usize, region: Region) {
        let limits = &self.cluster.registration;
        // What has landed until now landed while the memory was registered.
        self.clock.settle();
        let removed = {
            let net = &mut *self.net().borrow_mut();
            net.counters.deregistered += 1;
            net.seats[self.clock.me as usize].regions.remove(rail, region.local, limits)
        };
        let len = removed.unwrap_or_else(|text| panic!("rank {}: deregister: {text}", self.clock.me));
        let (once, page) = limits.deregister_ns;
        let time = once + page * pages(len, limits.page_bytes) as f64;
        self.clock.spend("deregister", ps(time), len);
    }

    /// Memory of a simulated rank goes away with the rank.
    fn watch(&mut self, _span: Span) -> bool {
        true
    }

    fn post_send(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        self.post(Opcode::Send, to, rail, parts, Remote::default(), work)
    }

    fn post_datagram(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let len: usize = parts.iter().map(|part| part.span.len).sum();
        if len > self.caps.datagram_bytes {
            let limit = self.caps.datagram_bytes;
            return Err(Fault::Device(format!(
                "datagram of {len} bytes (limit `datagram.max_bytes`: {limit})"
            )));
        }
        self.post(Opcode::Datagram, to, rail, parts, Remote::default(), work)
    }

    fn post_receive(&mut self, rail: usize, buffer: Local, work: u64) {
        self.clock.settle();
        let me = self.clock.me;
        let mut net = self.net().borrow_mut();
        net.seats[me as usize].receives[rail].push_back((buffer, work));
        net.has_room(me, self.clock.now());
    }

    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        self.post(Opcode::Write, to, rail, parts, remote, work)
    }

    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        self.post(Opcode::ReadRequest, from, rail, &[local], remote, work)
    }

    fn poll(&mut self) -> Option<Completion> {
        self.clock.settle();
        let now = self.clock.now();
        let ended = {
            let seat = &mut self.net().borrow_mut().seats[self.clock.me as usize];
            let is_due = seat.ended.front().is_some_and(|ended| ended.at <= now);
            let ended = if is_due { seat.ended.pop_front() } else { None };
            if let Some((peer, rail)) = ended.as_ref().and_then(|ended| ended.pair) {
                seat.outstanding -= 1;
                seat.pair(peer, rail).outstanding -= 1;
            }
            ended
        };
        let Some(ended) = ended else {
            self.clock.pass(ps(self.cluster.software.look_ns));
            return None;
        };
        let rail = ended.pair.map_or(0, |(_, rail)| rail as usize);
        self.clock.spend("poll", ps(self.cluster.rails[rail].poll_ns), 0);
        Some(ended.completion)
    }

    fn touched(&mut self, position: usize) -> Option<Rank> {
        if position == 0 {
            self.clock.settle();
            let me = self.clock.me;
            self.touched.clear();
            let mut net = self.clock.net.borrow_mut();
            net.show_landing(me, self.clock.now());
            let seat = &mut net.seats[me as usize];
            seat.news = false;
            std::mem::swap(&mut self.touched, &mut seat.touched);
            for &peer in &self.touched {
                seat.pair(peer as u32, 0).touched = false;
            }
        }
        self.touched.get(position).copied()
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        self.copier.copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        debug_assert_eq!(data.len, out.len());
        mem::read(data.addr, out);
    }

    fn poke_bytes(&mut self, to: usize, bytes: &[u8]) {
        mem::write(to, bytes);
    }

    fn load(&self, addr: usize) -> u64 {
        self.clock.settle();
        let me = self.clock.me;
        let mut net = self.net().borrow_mut();
        if !net.seats[me as usize].landing.is_empty() {
            net.show_landing(me, self.clock.now());
        }
        net.seats[me as usize].watch(addr);
        let mut word = [0; 8];
        mem::read(addr, &mut word);
        u64::from_le_bytes(word)
    }

    fn store(&mut self, addr: usize, value: u64) {
        mem::write(addr, &value.to_le_bytes());
    }

    fn charge(&mut self, what: Charge) {
        let software = &self.cluster.software;
        match what {
            Charge::Compute(time_ns) => self.clock.spend("compute", time_ns * 1000, 0),
            Charge::UsageSearch(entries) | Charge::CacheSearch(entries) => {
                self.clock.pass(ps(software.search_ns * entries as f64));
            }
            Charge::Match(entries) => self.clock.pass(ps(software.match_ns * entries as f64)),
            Charge::Header => self.clock.pass(ps(software.header_ns)),
        }
    }

    fn label(&mut self, name: impl FnOnce() -> &'static str) {
        let net = &mut *self.net().borrow_mut();
        if let Some(trace) = &mut net.trace {
            net.seats[self.clock.me as usize].label = trace.label(name());
        }
    }

    fn alarm(&mut self, at_ns: u64) {
        self.alarm = self.alarm.min(at_ns.saturating_mul(1000));
    }

    fn awake(&mut self) {}

    fn idle(&mut self, _round: u32) -> Nap<'y> {
        Nap::new(self.clock.clone(), std::mem::replace(&mut self.alarm, Ps::MAX))
    }

    fn check(&mut self) -> Result<(), Fault> {
        let net = self.net().borrow();
        match net.gone {
            Some(rank) if rank != self.clock.me as usize => Err(Fault::PeerGone(rank)),
            _ => Ok(()),
        }
    }
}
