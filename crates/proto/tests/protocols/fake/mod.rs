//! A device for tests in one thread: a frame arrives when the test says so, and not before.
#![allow(dead_code)] // no test uses all of it

use fabric::{
    Caps, Costs, Device, Distance, Fault, Frame, Immediate, Local, Nap, Rank, Region, Remote, Rights, Share,
    ShareWord, Shares, Span, Transfers,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Shares per rank: few, so that tests run out of them.
pub const SHARES: usize = 8;

struct Packet {
    head: [u64; 2],
    data: Box<[u8]>,
    /// When it has come, where time counts.
    at_ns: u64,
    /// Where its first byte has been copied to, before it was complete.
    begun: Option<usize>,
    /// Looks until it is complete, once it is begun.
    hidden: u8,
}

/// What a rank does that costs time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Copies this into a frame.
    In(Span),
    /// Copies between memory of its own: out of a frame, to here.
    Out(Span),
    /// Reads or writes memory of a peer.
    Single { from: Span, to: Span },
}

/// Virtual time, if a test has some: without it a frame arrives when the test says so.
pub trait Time {
    /// The time of whoever runs.
    fn now_ns(&self) -> u64;
    /// Lets time pass for whoever runs, in which others may act.
    fn spend(&self, effort: Effort);
    /// Something has changed that others see by looking.
    fn changed(&self);
    /// When a frame that leaves now will have come.
    fn arrives_ns(&self) -> u64;
    /// Returns when something may have changed.
    fn nap(&self);
}

/// One direction between two ranks.
#[derive(Default)]
struct Wire {
    packets: VecDeque<Packet>,
    /// How many of them have arrived.
    arrived: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    words: [u64; ShareWord::ALL.len()],
    used: bool,
}

/// What connects the ranks.
pub struct Net {
    size: usize,
    room: usize,
    clock_ns: u64,
    wires: Vec<Wire>,
    shares: Vec<[Slot; SHARES]>,
    /// Whether each rank can reach the memory of others.
    pub reach: Vec<bool>,
    /// After how many times it is refused to each.
    pub grants: Vec<usize>,
    /// How many calls each has made that read several pieces.
    pub calls: Vec<usize>,
    /// Registrations that a rank may have at a time, and those it has.
    pub regions: (usize, Vec<usize>),
    /// What the next check of each rank says.
    pub faults: Vec<Option<Fault>>,
    /// Whether messages that can be taken are found incomplete the first time.
    pub slow: bool,
    /// What time it is, if a clock is to count.
    pub time: Option<Rc<dyn Time>>,
    /// Longest payload of a frame.
    pub frame_bytes: usize,
    /// What remote access is said to cost, of a call and of a byte.
    pub remote_cost: (f64, f64),
    /// Whether each rank has a core for the thread beside its application.
    pub spare_cores: bool,
}

impl Net {
    /// A net of `size` ranks with room for `room` frames in each direction.
    pub fn new(size: usize, room: usize) -> Rc<RefCell<Net>> {
        Rc::new(RefCell::new(Net {
            size,
            room,
            clock_ns: 0,
            wires: (0..size * size).map(|_| Wire::default()).collect(),
            shares: vec![[Slot::default(); SHARES]; size],
            reach: vec![true; size],
            grants: vec![usize::MAX; size],
            calls: vec![0; size],
            regions: (usize::MAX, vec![0; size]),
            faults: vec![None; size],
            slow: false,
            time: None,
            frame_bytes: 64,
            remote_cost: (1000.0, 0.1),
            spare_cores: true,
        }))
    }

    fn wire(&mut self, from: Rank, to: Rank) -> &mut Wire {
        &mut self.wires[from * self.size + to]
    }

    /// Whether a frame is under way.
    pub fn under_way(&mut self, from: Rank, to: Rank) -> bool {
        let wire = self.wire(from, to);
        wire.packets.len() > wire.arrived
    }

    /// Lets the next frame arrive.
    pub fn arrive(&mut self, from: Rank, to: Rank) {
        assert!(self.under_way(from, to));
        self.wire(from, to).arrived += 1;
    }

    /// Shares of `owner` that cannot be opened again.
    pub fn shares_held(&self, owner: Rank) -> usize {
        self.shares[owner].iter().filter(|s| s.used && s.words[ShareWord::Left as usize] < 2).count()
    }
}

/// One rank's end of a [`Net`].
pub struct Fake {
    me: Rank,
    caps: Caps,
    immediate: Immediate,
    net: Rc<RefCell<Net>>,
}

impl Fake {
    /// The end of rank `me`.
    pub fn new(me: Rank, net: &Rc<RefCell<Net>>) -> Fake {
        let caps = Caps {
            name: "fake",
            inline_bytes: 40,
            frame_bytes: net.borrow().frame_bytes,
            remote_access: true,
            spare_cores: net.borrow().spare_cores,
            ..Caps::default()
        };
        Fake { me, caps, immediate: Immediate::default(), net: net.clone() }
    }
}

/// Waiting is the test's business, or that of time.
pub struct FakeNap(Option<Rc<dyn Time>>);

impl Nap for FakeNap {
    fn take(self) {
        if let Some(time) = self.0 {
            time.nap();
        }
    }
}

fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: both are buffers of the test, of a frame or of the engine, valid for `len` bytes;
    // there is one thread.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) }
}

impl Fake {
    fn time(&self) -> Option<Rc<dyn Time>> {
        self.net.borrow().time.clone()
    }

    fn spend(&self, effort: Effort) {
        if let Some(time) = self.time() {
            time.spend(effort);
        }
    }

    /// Others may see something new.
    fn changed(&self) {
        if let Some(time) = self.time() {
            time.changed();
        }
    }

    /// Where time counts, frames arrive by it.
    fn let_arrive(&self, from: Rank) {
        let Some(time) = self.time() else { return };
        let now_ns = time.now_ns();
        let mut net = self.net.borrow_mut();
        let wire = net.wire(from, self.me);
        wire.arrived = wire.packets.iter().take_while(|packet| packet.at_ns <= now_ns).count();
    }

    /// Once it is refused it stays so.
    fn access(&mut self, peer: Rank) -> Result<(), Fault> {
        let mut net = self.net.borrow_mut();
        if peer != self.me && net.grants[self.me] == 0 {
            net.reach[self.me] = false;
            return Err(Fault::NotPermitted);
        }
        net.grants[self.me] = net.grants[self.me].saturating_sub(1);
        Ok(())
    }
}

impl Device for Fake {
    type Nap = FakeNap;
    type Shares = Fake;

    fn me(&self) -> Rank {
        self.me
    }

    fn size(&self) -> usize {
        self.net.borrow().size
    }

    fn caps(&self, _distance: Distance) -> &Caps {
        &self.caps
    }

    fn costs(&self, _distance: Distance) -> Costs {
        Costs { single: self.net.borrow().remote_cost, ..Costs::default() }
    }

    /// Without time every look at the clock takes a millisecond.
    fn now_ns(&self) -> u64 {
        if let Some(time) = self.time() {
            return time.now_ns();
        }
        let mut net = self.net.borrow_mut();
        net.clock_ns += 1_000_000;
        net.clock_ns
    }

    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        assert!(data.len <= self.caps.frame_bytes);
        let has_room = {
            let mut net = self.net.borrow_mut();
            net.wire(self.me, to).packets.len() < net.room
        };
        if !has_room {
            return false;
        }
        self.spend(Effort::In(data));
        let at_ns = self.time().map_or(0, |time| time.arrives_ns());
        let mut net = self.net.borrow_mut();
        let wire = net.wire(self.me, to);
        let mut bytes = vec![0; data.len].into_boxed_slice();
        copy(bytes.as_mut_ptr() as usize, data.addr, data.len);
        wire.packets.push_back(Packet { head, data: bytes, at_ns, begun: None, hidden: 0 });
        true
    }

    fn peek(&mut self, from: Rank) -> Option<Frame> {
        self.let_arrive(from);
        let mut net = self.net.borrow_mut();
        let wire = net.wire(from, self.me);
        let packet = wire.packets.front_mut().filter(|_| wire.arrived > 0)?;
        if packet.hidden > 0 {
            packet.hidden -= 1;
            return None;
        }
        let data = Span { addr: packet.data.as_ptr() as usize, len: packet.data.len() };
        Some(Frame { head: packet.head, data })
    }

    fn pop(&mut self, from: Rank) {
        self.changed();
        let mut net = self.net.borrow_mut();
        let wire = net.wire(from, self.me);
        wire.arrived -= 1;
        wire.packets.pop_front();
    }

    fn take(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        if self.time().is_some() {
            let Some(frame) = self.peek(from) else { return Err(true) };
            if frame.head != head || frame.data.len > room.len {
                return Err(false);
            }
            self.copy(room.addr, frame.data.addr, frame.data.len);
            self.pop(from);
            return Ok(frame.data.len);
        }
        let mut net = self.net.borrow_mut();
        let slow = net.slow;
        let wire = net.wire(from, self.me);
        let arrived = wire.arrived > 0;
        let Some(packet) = wire.packets.front_mut().filter(|_| arrived) else { return Err(true) };
        let len = packet.data.len();
        if packet.head != head || len > room.len || packet.hidden > 0 {
            return Err(false);
        }
        if slow && len > 0 && packet.begun.is_none() {
            copy(room.addr, packet.data.as_ptr() as usize, 1);
            (packet.begun, packet.hidden) = (Some(room.addr), 2);
            return Err(false);
        }
        copy(room.addr, packet.data.as_ptr() as usize, len);
        wire.arrived -= 1;
        wire.packets.pop_front();
        Ok(len)
    }

    fn begun(&self, from: Rank) -> Option<usize> {
        self.net.borrow_mut().wire(from, self.me).packets.front()?.begun
    }

    fn source(&mut self, position: usize) -> Option<Rank> {
        (position < self.size()).then_some(position)
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        self.spend(Effort::Out(Span { addr: to, len }));
        copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        assert_eq!(data.len, out.len());
        copy(out.as_mut_ptr() as usize, data.addr, data.len);
    }

    fn reach(&mut self, _peer: Rank) -> bool {
        self.net.borrow().reach[self.me]
    }

    fn read(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        self.access(peer)?;
        self.spend(Effort::Single { from: Span { addr: remote, ..local }, to: local });
        copy(local.addr, remote, local.len);
        Ok(())
    }

    fn read_many(&mut self, peer: Rank, pieces: &[(Span, usize)]) -> usize {
        self.net.borrow_mut().calls[self.me] += 1;
        // What ends the call is not told by it, and changes nothing.
        let granted = &pieces[..pieces.len().min(self.net.borrow().grants[self.me])];
        granted.iter().take_while(|(local, remote)| self.read(peer, *local, *remote).is_ok()).count()
    }

    fn write(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        self.access(peer)?;
        self.spend(Effort::Single { from: local, to: Span { addr: remote, ..local } });
        copy(remote, local.addr, local.len);
        Ok(())
    }

    fn shares(&self) -> Option<&Fake> {
        Some(self)
    }

    fn wake(&self, _peer: Rank) {}

    fn awake(&mut self) {}

    fn idle(&mut self, _round: u32) -> FakeNap {
        FakeNap(self.time())
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.net.borrow_mut().faults[self.me].take().map_or(Ok(()), Err)
    }
}

impl Transfers for Fake {
    fn register(&mut self, _rail: usize, _span: Span, _rights: Rights) -> Result<Region, Fault> {
        let (limit, held) = &mut self.net.borrow_mut().regions;
        if held[self.me] >= *limit {
            return Err(Fault::Device(format!("{limit} regions are registered")));
        }
        held[self.me] += 1;
        Ok(Region::default())
    }

    fn deregister(&mut self, _rail: usize, _region: Region) {
        self.net.borrow_mut().regions.1[self.me] -= 1;
    }

    fn post_write(
        &mut self,
        to: Rank,
        _rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let result = self.write(to, local.span, remote.addr as usize);
        self.immediate.end(work, result);
        Ok(true)
    }

    fn post_read(
        &mut self,
        from: Rank,
        _rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let result = self.read(from, local.span, remote.addr as usize);
        self.immediate.end(work, result);
        Ok(true)
    }

    /// A posted transfer is over when its call returns.
    fn try_send_behind(&mut self, to: Rank, _rail: usize, head: [u64; 2], data: Span) -> bool {
        self.try_send(to, head, data)
    }

    fn writes_in_order(&self, _to: Rank) -> bool {
        true
    }

    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        self.immediate.completed()
    }

    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault> {
        let sent = self.try_send(to, head, data.span);
        if sent {
            self.immediate.end(work, Ok(()));
        }
        Ok(sent)
    }

    fn allocate(&mut self, len: usize) -> Span {
        self.immediate.allocate(len)
    }

    fn load(&self, _peer: Rank, addr: usize) -> u64 {
        // SAFETY: an aligned word of memory that `allocate` gave; there is one thread.
        unsafe { *(addr as *const u64) }
    }

    fn store(&mut self, _peer: Rank, addr: usize, value: u64) {
        // SAFETY: as in `load`.
        unsafe { *(addr as *mut u64) = value }
    }
}

impl Shares for Fake {
    fn open(&self) -> Option<u32> {
        let mut net = self.net.borrow_mut();
        let slots = &mut net.shares[self.me];
        let index = slots.iter().position(|s| !s.used || s.words[ShareWord::Left as usize] >= 2)?;
        slots[index] = Slot { used: true, ..Slot::default() };
        Some(index as u32)
    }

    fn add(&self, share: Share, word: ShareWord, value: u64) -> u64 {
        let held = Shares::load(self, share, word);
        Shares::store(self, share, word, held.wrapping_add(value));
        held
    }

    fn take(&self, share: Share, word: ShareWord, held: u64) -> bool {
        let same = Shares::load(self, share, word) == held;
        if same {
            Shares::store(self, share, word, 0);
        }
        same
    }

    fn count(&self) -> u32 {
        SHARES as u32
    }

    fn load(&self, share: Share, word: ShareWord) -> u64 {
        self.net.borrow().shares[share.owner][share.index as usize].words[word as usize]
    }

    fn store(&self, share: Share, word: ShareWord, value: u64) {
        self.changed();
        self.net.borrow_mut().shares[share.owner][share.index as usize].words[word as usize] = value;
    }
}
