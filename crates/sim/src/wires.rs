//! What connects a simulated rank with the others: its adapters, and shared memory for the ranks of its host where
//! the cluster has it.

use std::sync::Arc;

use fabric::{
    Caps, Charge, Costs, Device, Distance, Fault, Frame, Local, NoShares, Pair, PairNap, Rank, Region,
    Remote, Rights, Span, Transfers,
};
use proto::channel::{Channel, Settings};

use crate::clock::Nap;
use crate::nic::Nic;
use crate::shared::Memory;

/// See the module.
pub enum Wires<'y> {
    /// Adapters alone: ranks of one host reach each other inside theirs.
    Adapters(Box<Channel<Nic<'y>>>),
    /// Shared memory inside a host.
    Both(Box<Pair<Memory<'y>, Channel<Nic<'y>>>>),
}

/// What to do until all are looked at again.
pub enum WiresNap<'y> {
    /// Those of the adapters.
    Adapters(Nap<'y>),
    /// Those of both.
    Both(PairNap<Nap<'y>, Nap<'y>>),
}

impl fabric::Nap for WiresNap<'_> {
    fn take(self) {
        match self {
            WiresNap::Adapters(nap) => nap.take(),
            WiresNap::Both(nap) => nap.take(),
        }
    }

    fn sleeps(&self) -> bool {
        match self {
            WiresNap::Adapters(nap) => nap.sleeps(),
            WiresNap::Both(nap) => nap.sleeps(),
        }
    }
}

impl<'y> Wires<'y> {
    /// Connects a rank.
    pub fn new(nic: Nic<'y>, settings: Settings) -> Result<Wires<'y>, Fault> {
        let shared = nic.cluster().shared.filter(|_| nic.cluster().cores > 1);
        let Some(costs) = shared else {
            return Ok(Wires::Adapters(Box::new(Channel::new(nic, settings)?)));
        };
        let near = Memory::new(&nic, costs);
        let hosts: Arc<[u32]> = nic.clock().net.borrow().hosts.clone();
        let (ranks, size) = (near.ranks(), hosts.len());
        let far = Channel::new(nic, settings)?;
        Ok(Wires::Both(Box::new(Pair::new(near, Some(far), ranks, size).on_hosts(hosts))))
    }

    /// The adapters.
    pub fn nic(&self) -> &Nic<'y> {
        match self {
            Wires::Adapters(device) => device.verbs(),
            Wires::Both(device) => device.far().expect("every rank has adapters").verbs(),
        }
    }
}

/// Calls of the one or the other.
macro_rules! either {
    ($self:ident, $device:ident => $call:expr) => {
        match $self {
            Wires::Adapters($device) => $call,
            Wires::Both($device) => $call,
        }
    };
}

impl<'y> Device for Wires<'y> {
    type Nap = WiresNap<'y>;
    type Shares = NoShares;

    fn me(&self) -> Rank {
        either!(self, device => device.me())
    }
    fn size(&self) -> usize {
        either!(self, device => device.size())
    }
    fn caps(&self, distance: Distance) -> &Caps {
        either!(self, device => device.caps(distance))
    }
    fn now_ns(&self) -> u64 {
        either!(self, device => device.now_ns())
    }
    fn distance(&self, peer: Rank) -> Distance {
        either!(self, device => device.distance(peer))
    }
    fn hosts(&self) -> Option<&[u32]> {
        either!(self, device => device.hosts())
    }
    fn costs(&self, distance: Distance) -> Costs {
        either!(self, device => device.costs(distance))
    }
    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        either!(self, device => device.try_send(to, head, data))
    }
    fn try_send_all(&mut self, to: &[Rank], head: [u64; 2], data: Span) -> usize {
        either!(self, device => device.try_send_all(to, head, data))
    }
    fn peek(&mut self, from: Rank) -> Option<Frame> {
        either!(self, device => device.peek(from))
    }
    fn pop(&mut self, from: Rank) {
        either!(self, device => device.pop(from));
    }
    fn take(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        either!(self, device => device.take(from, head, room))
    }
    fn takes_at_once(&self) -> bool {
        either!(self, device => device.takes_at_once())
    }
    fn take_at_once(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        either!(self, device => device.take_at_once(from, head, room))
    }
    fn begun(&self, from: Rank) -> Option<usize> {
        either!(self, device => device.begun(from))
    }
    fn source(&mut self, position: usize) -> Option<Rank> {
        either!(self, device => device.source(position))
    }
    fn copy(&mut self, to: usize, from: usize, len: usize) {
        either!(self, device => device.copy(to, from, len));
    }
    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        either!(self, device => device.peek_bytes(data, out));
    }
    fn reach(&mut self, peer: Rank) -> bool {
        either!(self, device => device.reach(peer))
    }
    fn read(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        either!(self, device => device.read(peer, local, remote))
    }
    fn write(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        either!(self, device => device.write(peer, local, remote))
    }
    fn charge(&mut self, what: Charge) {
        either!(self, device => device.charge(what));
    }
    fn label(&mut self, name: impl FnOnce() -> &'static str) {
        either!(self, device => device.label(name));
    }
    fn alarm(&mut self, at_ns: u64) {
        either!(self, device => device.alarm(at_ns));
    }
    fn shares(&self) -> Option<&NoShares> {
        None
    }
    fn happened(&self, event: usize) -> u64 {
        either!(self, device => device.happened(event))
    }
    fn wake(&self, peer: Rank) {
        either!(self, device => device.wake(peer));
    }
    fn awake(&mut self) {
        either!(self, device => device.awake());
    }
    fn idle(&mut self, round: u32) -> WiresNap<'y> {
        match self {
            Wires::Adapters(device) => WiresNap::Adapters(device.idle(round)),
            Wires::Both(device) => WiresNap::Both(device.idle(round)),
        }
    }
    fn check(&mut self) -> Result<(), Fault> {
        either!(self, device => device.check())
    }
}

impl Transfers for Wires<'_> {
    fn rails(&self) -> usize {
        either!(self, device => device.rails())
    }
    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        either!(self, device => device.register(rail, span, rights))
    }
    fn deregister(&mut self, rail: usize, region: Region) {
        either!(self, device => device.deregister(rail, region));
    }
    fn page_bytes(&self) -> usize {
        either!(self, device => device.page_bytes())
    }
    fn watch(&mut self, span: Span) -> bool {
        either!(self, device => device.watch(span))
    }
    fn memory_changed(&self) -> bool {
        either!(self, device => device.memory_changed())
    }
    fn take_changes(&mut self, gone: &mut Vec<Span>) {
        either!(self, device => device.take_changes(gone));
    }
    fn is_unchanged(&mut self, span: Span) -> bool {
        either!(self, device => device.is_unchanged(span))
    }
    fn frames(&mut self, rail: usize, region: Region, span: Span, out: &mut Vec<u64>) -> bool {
        either!(self, device => device.frames(rail, region, span, out))
    }
    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        local: Local,
        at: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        either!(self, device => device.post_write(to, rail, local, at, work))
    }
    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        at: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        either!(self, device => device.post_read(from, rail, local, at, work))
    }
    fn try_send_behind(&mut self, to: Rank, rail: usize, head: [u64; 2], data: Span) -> bool {
        either!(self, device => device.try_send_behind(to, rail, head, data))
    }
    fn writes_in_order(&self, to: Rank) -> bool {
        either!(self, device => device.writes_in_order(to))
    }
    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        either!(self, device => device.completed())
    }
    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault> {
        either!(self, device => device.try_send_from(to, head, data, work))
    }
    fn allocate(&mut self, len: usize) -> Span {
        either!(self, device => device.allocate(len))
    }
    fn load(&self, peer: Rank, addr: usize) -> u64 {
        either!(self, device => device.load(peer, addr))
    }
    fn store(&mut self, peer: Rank, addr: usize, value: u64) {
        either!(self, device => device.store(peer, addr, value));
    }
}
