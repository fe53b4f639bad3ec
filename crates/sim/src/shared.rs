//! Shared memory of a modelled host: frames that a core copies in and another one copies out.
//!
//! A frame is seen a latency after its sender has copied it; its place may be filled again a latency after the
//! receiver has given it up. Both copies take the time of their cores, as `[copy]` says, that out of another
//! core's cache at most at the bandwidth of `[shared]`. Nobody reads or writes memory of another process: long
//! messages go by frames.

use std::collections::VecDeque;
use std::rc::Rc;

use fabric::{
    Caps, Charge, Costs, Device, Distance, Fault, Frame, Local, NoShares, Rank, Remote, Span, Transfers,
};
use mpi::mem;

use crate::clock::{Clock, Nap};
use crate::cluster::{Cluster, Shared};
use crate::copier::Copier;
use crate::net::Net;
use crate::nic::Nic;
use crate::queue::{Ps, ps};

/// A frame under way, or not yet taken.
struct Letter {
    /// When it is seen.
    at: Ps,
    head: [u64; 2],
    data: Vec<u8>,
}

/// What one rank of a host has for another.
#[derive(Default)]
pub struct Mail {
    letters: VecDeque<Letter>,
    /// When places of letters that were taken are free.
    freed: VecDeque<Ps>,
}

impl Mail {
    /// Whether a place is free, of `slots`.
    fn has_room(&mut self, slots: usize, now: Ps) -> bool {
        while self.freed.front().is_some_and(|at| *at <= now) {
            self.freed.pop_front();
        }
        self.letters.len() + self.freed.len() < slots
    }
}

/// This rank's part of the memory of its host, whose ranks are named by their places there.
pub struct Memory<'y> {
    clock: Rc<Clock<'y>>,
    cluster: Rc<Cluster>,
    copier: Rc<Copier<'y>>,
    costs: Shared,
    caps: Caps,
    /// The first rank of the host, and how many there are.
    first: usize,
    size: usize,
    alarm: Ps,
    /// Places of those whose frames this look around has found.
    ready: Vec<Rank>,
    /// The frame that was shown last.
    shown: Span,
}

impl<'y> Memory<'y> {
    /// That of the rank with these adapters.
    pub fn new(nic: &Nic<'y>, costs: Shared) -> Memory<'y> {
        let (clock, cluster) = (nic.clock().clone(), nic.shared_cluster());
        let first = cluster.host(clock.me as usize) * cluster.cores;
        let ranks = clock.net.borrow().seats.len();
        let caps = Caps {
            name: "sim-memory",
            frame_bytes: costs.frame_bytes,
            remote_access_note: "modelled processes do not copy from each other".into(),
            ..Caps::default()
        };
        Memory {
            copier: nic.copier(),
            clock,
            costs,
            caps,
            first,
            size: cluster.cores.min(ranks - first),
            cluster,
            alarm: Ps::MAX,
            ready: Vec::new(),
            shown: Span::EMPTY,
        }
    }

    /// The ranks of the host, in order.
    pub fn ranks(&self) -> Box<[Rank]> {
        (self.first..self.first + self.size).collect()
    }

    fn latency(&self, peer: Rank) -> Ps {
        if peer == self.me() { 0 } else { ps(self.costs.path.latency_ns) }
    }

    /// What a peer has for this rank.
    fn mail<R>(&self, from: Rank, f: impl FnOnce(&mut Mail) -> R) -> R {
        f(self.clock.net.borrow_mut().mail(self.clock.me, from))
    }
}

impl Net {
    /// What the rank at a place of its host has for another of that host.
    fn mail(&mut self, to: u32, from: Rank) -> &mut Mail {
        let mail = &mut self.seats[to as usize].mail;
        if mail.len() <= from {
            mail.resize_with(from + 1, Mail::default);
        }
        &mut mail[from]
    }

    /// A rank sees something in shared memory from `at` on.
    fn alert(&mut self, rank: u32, at: Ps) {
        let seat = &mut self.seats[rank as usize];
        seat.expect(at);
        seat.alert(at);
        self.tell_at(rank, at);
    }
}

impl<'y> Device for Memory<'y> {
    type Nap = Nap<'y>;
    type Shares = NoShares;

    fn me(&self) -> Rank {
        self.clock.me as usize - self.first
    }

    fn size(&self) -> usize {
        self.size
    }

    fn caps(&self, _distance: Distance) -> &Caps {
        &self.caps
    }

    fn now_ns(&self) -> u64 {
        self.clock.now() / 1000
    }

    fn distance(&self, _peer: Rank) -> Distance {
        Distance::Host
    }

    fn costs(&self, _distance: Distance) -> Costs {
        self.cluster.shared_costs(&self.costs)
    }

    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        self.clock.settle();
        let (me, peer) = (self.me(), (self.first + to) as u32);
        let (slots, now) = (self.costs.slots, self.clock.now());
        if !self.clock.net.borrow_mut().mail(peer, me).has_room(slots, now) {
            return false;
        }
        self.clock.pass(ps(self.cluster.software.header_ns));
        let mut bytes = vec![0; data.len];
        mem::read(data.addr, &mut bytes);
        if data.len > 0 {
            self.copier.charge(bytes.as_ptr() as usize, data.addr, data.len, f64::INFINITY);
        }
        let at = self.clock.now() + self.latency(to);
        let net = &mut *self.clock.net.borrow_mut();
        net.mix([at, (self.clock.me as u64) << 32 | peer as u64, (data.len as u64) << 3 | 7]);
        net.counters.letters += 1;
        net.mail(peer, me).letters.push_back(Letter { at, head, data: bytes });
        net.alert(peer, at);
        true
    }

    fn peek(&mut self, from: Rank) -> Option<Frame> {
        self.clock.settle();
        let now = self.clock.now();
        let frame = self.mail(from, |mail| {
            let letter = mail.letters.front().filter(|letter| letter.at <= now)?;
            let data = Span { addr: letter.data.as_ptr() as usize, len: letter.data.len() };
            Some(Frame { head: letter.head, data })
        });
        match frame {
            Some(frame) if frame.data.addr != self.shown.addr => {
                self.shown = frame.data;
                self.clock.pass(ps(self.cluster.software.header_ns));
            }
            Some(_) => {}
            None => self.clock.pass(ps(self.cluster.software.look_ns)),
        }
        frame
    }

    fn pop(&mut self, from: Rank) {
        let free = self.clock.now() + self.latency(from);
        let slots = self.costs.slots;
        let was_full = self.mail(from, |mail| {
            mail.letters.pop_front().expect("a frame of this peer was shown");
            mail.freed.push_back(free);
            mail.letters.len() + mail.freed.len() >= slots
        });
        self.shown = Span::EMPTY;
        if was_full && from != self.me() {
            self.clock.net.borrow_mut().alert((self.first + from) as u32, free);
        }
    }

    fn source(&mut self, position: usize) -> Option<Rank> {
        if position == 0 {
            self.clock.settle();
            let now = self.clock.now();
            self.ready.clear();
            let net = self.clock.net.borrow();
            let mail = net.seats[self.clock.me as usize].mail.iter().enumerate();
            let seen = mail.filter(|(_, mail)| mail.letters.front().is_some_and(|letter| letter.at <= now));
            self.ready.extend(seen.map(|(place, _)| place));
        }
        self.ready.get(position).copied()
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        let shown = self.shown.addr..self.shown.addr + self.shown.len;
        let bandwidth = if shown.contains(&from) { self.costs.path.bandwidth } else { f64::INFINITY };
        self.copier.charge(to, from, len, bandwidth);
        mem::copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        mem::read(data.addr, out);
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

    fn charge(&mut self, _what: Charge) {}

    fn alarm(&mut self, at_ns: u64) {
        self.alarm = self.alarm.min(at_ns.saturating_mul(1000));
    }

    fn shares(&self) -> Option<&NoShares> {
        None
    }

    /// A frame wakes by itself.
    fn wake(&self, _peer: Rank) {}

    fn awake(&mut self) {}

    /// The first of several naps is none: the adapter may have something to do.
    fn idle(&mut self, round: u32) -> Nap<'y> {
        let alarm = std::mem::replace(&mut self.alarm, Ps::MAX);
        Nap::new(self.clock.clone(), if round == 0 { self.clock.now() } else { alarm })
    }

    /// Whether ranks are gone the adapter says.
    fn check(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// There is no registered memory: nothing is posted.
impl Transfers for Memory<'_> {
    fn post_write(&mut self, _: Rank, _: usize, _: Local, _: Remote, _: u64) -> Result<bool, Fault> {
        Err(Fault::NotPermitted)
    }

    fn post_read(&mut self, _: Rank, _: usize, _: Local, _: Remote, _: u64) -> Result<bool, Fault> {
        Err(Fault::NotPermitted)
    }

    fn try_send_behind(&mut self, to: Rank, _rail: usize, head: [u64; 2], data: Span) -> bool {
        self.try_send(to, head, data)
    }

    fn writes_in_order(&self, _to: Rank) -> bool {
        false
    }

    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        None
    }

    fn try_send_from(&mut self, _: Rank, _: [u64; 2], _: Local, _: u64) -> Result<bool, Fault> {
        Err(Fault::NotPermitted)
    }

    fn allocate(&mut self, len: usize) -> Span {
        let mut net = self.clock.net.borrow_mut();
        net.arena.allocate(len, self.cluster.registration.page_bytes)
    }

    fn load(&self, _peer: Rank, addr: usize) -> u64 {
        let mut word = [0; 8];
        mem::read(addr, &mut word);
        u64::from_le_bytes(word)
    }

    fn store(&mut self, _peer: Rank, addr: usize, value: u64) {
        mem::write(addr, &value.to_le_bytes());
    }
}
