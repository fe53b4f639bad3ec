//! Adapters with registered memory for tests: work is done when the test says so, and not before, or
//! piece by piece while ranks wait. What is posted is read when it travels, so memory that is used
//! again too early shows; what breaks the rules of registration, and what memory is not registered for, ends the test. A net that is
//! [`Net::hostile`] honours what `fabric::verbs` promises and not a bit more.
#![allow(dead_code)] // no test uses all of it

mod datagrams;
mod hostile;
pub mod memory;
mod pin;

use hostile::Flight;
use memhook::{Frames, Monitor};
use memory::{Region, bytes_at, copy, gather, keys_of, put, remote_span};
use pin::Pinned;

use fabric::{Charge, Completion, Done, Fault, Local, Nap, Rank, Remote, Rights, Span, Verbs, VerbsCaps};
use proto::Limits;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// Those of an engine whose choices stay as they are, with much room.
pub fn limits() -> Limits {
    Limits { eager_bytes: 4096, unexpected_bytes: 1 << 20, adapt: false, ..Limits::default() }
}

/// Payload that is read when it is posted.
pub const INLINE: usize = 64;
/// The most adapters a rank can have here.
pub const RAILS_MAX: usize = 4;

enum What {
    Send,
    Write(Remote),
    Read(Remote),
}

struct Posted {
    what: What,
    parts: Vec<Local>,
    /// The data, if it was inline.
    inline: Option<Vec<u8>>,
    /// Bytes of a write that are visible.
    landed: usize,
    /// What has become of it in a hostile net.
    flight: Option<Flight>,
    work: u64,
}

#[derive(Default)]
struct Host {
    keys: Vec<Option<Region>>,
    /// Memory that has gone away and of which its rank has not been told.
    gone: Vec<Span>,
    memory: Vec<Box<[u64]>>,
    /// By rail.
    buffers: [VecDeque<(Local, u64)>; RAILS_MAX],
    /// Buffers that messages under way will take.
    promised: [usize; RAILS_MAX],
    completions: VecDeque<Completion>,
    touched: Vec<Rank>,
    seen: Vec<Rank>,
}

/// What connects the ranks.
pub struct Net {
    size: usize,
    clock_ns: u64,
    /// How long a look at the clock takes.
    pub look_ns: u64,
    /// How often what was posted was told to leave.
    pub flushes: u32,
    /// Writes of which it was said that a frame follows.
    pub leads: u32,
    /// How often all ranks together have asked what has ended.
    pub polls: u32,
    hosts: Vec<Host>,
    queues: Vec<VecDeque<Posted>>,
    /// Completions at the poster that have not come yet.
    late: Vec<VecDeque<Completion>>,
    /// What the adapters are like.
    pub caps: VerbsCaps,
    /// How many each rank has.
    pub rails: usize,
    /// Whether no more is honoured than verbs promise.
    pub hostile: bool,
    /// In a hostile net: of how many transfers of the engine one fails; 0: none.
    pub fails_one_in: usize,
    /// Queues that take nothing: from, to.
    pub full: Vec<(Rank, Rank)>,
    /// Those that are so for a while in a hostile net, by number.
    closed: Vec<usize>,
    /// Whether ranks are told when memory goes away.
    pub is_watched: bool,
    /// Whether what is read of small regions comes from the pages that were registered, and not
    /// from what is mapped at their address.
    pub has_pages: bool,
    /// Whether ranks are shown the frames of their memory; for adapters that are made later.
    pub shows_frames: bool,
    /// From what chance follows.
    pub random: u64,
    /// Of how many datagrams one is lost, comes twice, or is overtaken by some; 0: none.
    pub loses_one_in: usize,
    pub doubles_one_in: usize,
    pub mixes_one_in: usize,
    /// Those on their way: from, to.
    datagrams: VecDeque<(Rank, Rank, Vec<u8>)>,
    /// Peers that are lost, and have not been told of: who is to be told, and who.
    pub lost: Vec<(Rank, Rank)>,
    /// Peers that are of other jobs, and the one of them that is missed, as the adapter says whenever it is asked.
    pub guests: Vec<Rank>,
    pub missed: Option<Rank>,
    /// Datagrams that were posted, and connections that were given back.
    pub sent_datagrams: usize,
    pub disconnected: usize,
}

/// A net in the hands of all its ranks. Whoever touches memory that others may touch holds it.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Net>>);

impl Shared {
    /// The net, for a while.
    pub fn get(&self) -> MutexGuard<'_, Net> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Net {
    /// Adapters of `size` ranks, with nothing posted.
    pub fn shared(size: usize) -> Shared {
        let caps = VerbsCaps {
            name: "fake",
            inline_bytes: INLINE,
            at_once_bytes: 0,
            gather: 2,
            datagram_bytes: 0,
            transfer_bytes: usize::MAX,
            depth: 32,
            lockable_bytes: usize::MAX,
            regions: usize::MAX,
            page_bytes: 4096,
            offload: true,
            writes_in_order: true,
            holds_receives: None,
            coherent_atomics: false,
        };
        Shared(Arc::new(Mutex::new(Net {
            size,
            clock_ns: 0,
            look_ns: 1000,
            flushes: 0,
            leads: 0,
            polls: 0,
            hosts: (0..size).map(|_| Host::default()).collect(),
            queues: (0..size * size * RAILS_MAX).map(|_| VecDeque::new()).collect(),
            late: (0..size).map(|_| VecDeque::new()).collect(),
            caps,
            rails: 1,
            hostile: false,
            fails_one_in: 0,
            full: Vec::new(),
            closed: Vec::new(),
            is_watched: false,
            has_pages: false,
            shows_frames: false,
            random: 1,
            loses_one_in: 0,
            doubles_one_in: 0,
            mixes_one_in: 0,
            lost: Vec::new(),
            guests: Vec::new(),
            missed: None,
            datagrams: VecDeque::new(),
            sent_datagrams: 0,
            disconnected: 0,
        })))
    }

    fn queue(&self, from: Rank, to: Rank, rail: usize) -> usize {
        (from * self.size + to) * RAILS_MAX + rail
    }

    /// Pairs with work under way over the first rail.
    pub fn under_way(&self) -> Vec<(Rank, Rank)> {
        let pairs = (0..self.size * self.size).map(|at| (at / self.size, at % self.size));
        pairs.filter(|(from, to)| !self.queues[self.queue(*from, *to, 0)].is_empty()).collect()
    }

    fn unfinished(&self) -> Vec<Rank> {
        (0..self.size).filter(|&rank| !self.late[rank].is_empty()).collect()
    }

    /// Pairs with work under way, and ranks that have completions to come.
    pub fn pending(&self) -> (Vec<(Rank, Rank)>, Vec<Rank>) {
        (self.under_way(), self.unfinished())
    }

    /// Lets the oldest completion of a rank come.
    pub fn finish(&mut self, rank: Rank) {
        let completion = self.late[rank].pop_front().unwrap();
        self.hosts[rank].completions.push_back(completion);
    }

    /// Lets the oldest work from one rank to another go on: all of it, or of a write only the first
    /// `part` bytes.
    pub fn advance(&mut self, from: Rank, to: Rank, part: Option<usize>) {
        let queue = self.queue(from, to, 0);
        let mut posted = self.queues[queue].pop_front().unwrap();
        let data = self.data_of(from, 0, &posted);
        let done = match posted.what {
            What::Write(remote) => {
                let len = data.len();
                let target = self.check(to, 0, remote_span(remote, len), Rights::REMOTE_WRITE).addr;
                let end = part.map_or(len, |part| part.clamp(posted.landed, len - 1));
                put(target + posted.landed, &data[posted.landed..end]);
                if end < len {
                    posted.landed = end;
                    return self.queues[queue].push_front(posted);
                }
                self.hosts[to].touched.push(from);
                Done::Written
            }
            What::Read(remote) => {
                let wanted = remote_span(remote, posted.parts[0].span.len);
                let data = self.fetch(to, 0, wanted, Rights::REMOTE_READ);
                put(self.check(from, 0, posted.parts[0], Rights::LOCAL_WRITE).addr, &data);
                Done::Read
            }
            What::Send => {
                self.hosts[to].promised[0] -= 1;
                self.receive_over(0, from, to, &data, false);
                Done::Sent
            }
        };
        self.late[from].push_back(Completion { work: posted.work, done, result: Ok(()) });
    }

    /// What a write or a message carries.
    fn data_of(&mut self, from: Rank, rail: usize, posted: &Posted) -> Vec<u8> {
        match &posted.inline {
            Some(data) => data.clone(),
            None => {
                let parts = posted.parts.iter().map(|part| self.fetch(from, rail, *part, Rights::NONE));
                parts.collect::<Vec<_>>().concat()
            }
        }
    }

    fn dice(&mut self) -> usize {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.random >> 33) as usize
    }

    fn happens(&mut self, one_in: usize) -> bool {
        one_in > 0 && self.dice().is_multiple_of(one_in)
    }

    /// Lets one thing happen somewhere.
    pub fn step(&mut self) {
        if !self.deliver_datagram() && self.loses_one_in > 0 {
            self.clock_ns += 100_000;
        }
        if self.hostile {
            return self.disturb();
        }
        let ((pairs, late), dice) = (self.pending(), self.dice());
        if !pairs.is_empty() {
            let (from, to) = pairs[dice % pairs.len()];
            self.advance(from, to, (dice % 7 == 0).then_some(dice / 7 % 400));
        }
        if !late.is_empty() && dice % 3 < 2 {
            self.finish(late[dice % late.len()]);
        }
    }

    /// A message comes into the next buffer.
    pub fn receive(&mut self, from: Rank, to: Rank, data: &[u8]) {
        self.receive_over(0, from, to, data, false);
    }

    fn receive_over(&mut self, rail: usize, from: Rank, to: Rank, data: &[u8], datagram: bool) {
        let (buffer, work) = self.hosts[to].buffers[rail].pop_front().expect("a buffer was posted");
        assert!(data.len() <= buffer.span.len);
        put(self.check(to, rail, buffer, Rights::LOCAL_WRITE).addr, data);
        let done = Done::Received { from, len: data.len(), datagram };
        self.hosts[to].completions.push_back(Completion { work, done, result: Ok(()) });
    }

    /// Writes whatever a broken rank might write.
    pub fn scribble(&mut self, from: Rank, to: Rank, addr: u64, data: &[u8]) {
        put(addr as usize, data);
        self.hosts[to].touched.push(from);
    }
}

/// One rank's end of a [`Net`].
pub struct Adapter {
    me: Rank,
    caps: VerbsCaps,
    net: Shared,
    /// Who tells of memory that goes away, if it is not the test.
    pub monitor: Option<Monitor>,
    /// Who shows where pages are.
    frames: Option<Frames>,
    /// Bytes that may be registered, whatever the capabilities say.
    pub lockable_bytes: usize,
}

impl Adapter {
    /// The end of rank `me`.
    pub fn new(me: Rank, net: &Shared) -> Adapter {
        let caps = net.get().caps.clone();
        let (lockable_bytes, shows) = (caps.lockable_bytes, net.get().shows_frames);
        let frames = shows.then(|| Frames::open().expect("the test has asked"));
        Adapter { me, caps, net: net.clone(), monitor: None, frames, lockable_bytes }
    }

    /// Posts work; `at_once` if its bytes are read now, whatever they are of.
    fn post(
        &mut self,
        to: Rank,
        rail: usize,
        what: What,
        parts: &[Local],
        work: u64,
        at_once: bool,
    ) -> Result<bool, Fault> {
        assert!(parts.len() <= self.caps.gather);
        let mut net = self.net.get();
        let queue = net.queue(self.me, to, rail);
        let refuses = net.hostile && (net.dice().is_multiple_of(8) || net.closed.contains(&queue));
        if refuses || net.queues[queue].len() >= self.caps.depth || net.full.contains(&(self.me, to)) {
            return Ok(false);
        }
        if matches!(what, What::Send) {
            let host = &mut net.hosts[to];
            if host.promised[rail] >= host.buffers[rail].len() {
                assert!(
                    self.caps.holds_receives.is_none(),
                    "a message finds no buffer, which breaks its connection"
                );
                return Ok(false);
            }
            host.promised[rail] += 1;
        }
        let len: usize = parts.iter().map(|part| part.span.len).sum();
        assert!(len <= self.caps.transfer_bytes, "{len} bytes in one work request");
        let is_inline = len <= self.caps.inline_bytes && !matches!(what, What::Read(_));
        let inline = (is_inline || at_once).then(|| gather(parts.iter().map(|part| part.span)));
        if inline.is_none() {
            let needed = if matches!(what, What::Read(_)) { Rights::LOCAL_WRITE } else { Rights::NONE };
            parts.iter().for_each(|part| _ = net.check(self.me, rail, *part, needed));
        }
        let parts = parts.to_vec();
        net.queues[queue].push_back(Posted { what, parts, inline, landed: 0, flight: None, work });
        Ok(true)
    }
}

/// A rank that waits lets something happen.
pub struct Step(Shared);

impl Nap for Step {
    fn take(self) {
        self.0.get().step();
        std::thread::yield_now();
    }
}

impl Verbs for Adapter {
    type Nap = Step;

    fn me(&self) -> Rank {
        self.me
    }

    fn size(&self) -> usize {
        self.net.get().size
    }

    fn caps(&self) -> &VerbsCaps {
        &self.caps
    }

    fn rails(&self) -> usize {
        self.net.get().rails
    }

    fn now_ns(&self) -> u64 {
        let mut net = self.net.get();
        net.clock_ns += net.look_ns;
        net.clock_ns
    }

    fn allocate(&mut self, len: usize) -> Span {
        let mut words = vec![0u64; len.div_ceil(8)].into_boxed_slice();
        let addr = words.as_mut_ptr() as usize;
        self.net.get().hosts[self.me].memory.push(words);
        Span { addr, len }
    }

    fn register(&mut self, rail: usize, span: Span, rights: Rights) -> Result<fabric::Region, Fault> {
        let mut net = self.net.get();
        if net.registered(self.me) + span.len > self.lockable_bytes {
            return Err(Fault::Device(format!("no more than {} bytes can be locked", self.lockable_bytes)));
        }
        let pages = (net.has_pages && span.len <= Pinned::LEN_MAX).then(|| Pinned::new(span));
        let keys = &mut net.hosts[self.me].keys;
        keys.push(Some(Region { rail, span, rights, gone: Vec::new(), pages }));
        Ok(keys_of(keys.len() - 1))
    }

    fn deregister(&mut self, rail: usize, region: fabric::Region) {
        let old = self.net.get().hosts[self.me].keys[region.local as usize].take();
        assert_eq!(old.map(|region| region.rail), Some(rail), "{region:?} is not in use there");
    }

    fn watch(&mut self, span: Span) -> bool {
        self.monitor.as_mut().map_or_else(|| self.net.get().is_watched, |monitor| monitor.watch(span))
    }

    fn memory_changed(&self) -> bool {
        let told = self.monitor.as_ref().is_some_and(Monitor::has_changed);
        told || !self.net.get().hosts[self.me].gone.is_empty()
    }

    fn take_changes(&mut self, gone: &mut Vec<Span>) {
        if let Some(monitor) = &mut self.monitor {
            monitor.take(gone);
        }
        gone.append(&mut self.net.get().hosts[self.me].gone);
    }

    fn is_unchanged(&mut self, span: Span) -> bool {
        self.monitor.as_ref().is_none_or(|monitor| monitor.is_unchanged(span))
    }

    fn frames(&mut self, _rail: usize, _region: fabric::Region, span: Span, out: &mut Vec<u64>) -> bool {
        self.frames.as_ref().is_some_and(|frames| frames.of(span, out))
    }

    fn post_send(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        self.post(to, rail, What::Send, parts, work, false)
    }

    fn post_at_once(
        &mut self,
        to: Rank,
        parts: &[Local],
        remote: Option<Remote>,
        work: u64,
    ) -> Result<bool, Fault> {
        let is_full = self.net.get().happens(3);
        if is_full || parts.iter().map(|part| part.span.len).sum::<usize>() > self.caps.at_once_bytes {
            return Ok(false);
        }
        self.post(to, 0, remote.map_or(What::Send, What::Write), parts, work, true)
    }

    fn post_datagram(&mut self, to: Rank, rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let mut net = self.net.get();
        parts.iter().for_each(|part| _ = net.check(self.me, rail, *part, Rights::NONE));
        let data = gather(parts.iter().map(|part| part.span));
        assert!(data.len() <= self.caps.datagram_bytes, "{} bytes in a datagram", data.len());
        net.send_datagram(self.me, to, data);
        let completion = Completion { work, done: Done::Sent, result: Ok(()) };
        net.hosts[self.me].completions.push_back(completion);
        Ok(true)
    }

    fn disconnect(&mut self, peer: Rank, rail: usize) {
        let mut net = self.net.get();
        for (from, to) in [(self.me, peer), (peer, self.me)] {
            let queue = net.queue(from, to, rail);
            assert!(net.queues[queue].is_empty(), "nothing is under way over a connection that ends");
        }
        net.disconnected += 1;
    }

    fn post_receive(&mut self, rail: usize, buffer: Local, work: u64) {
        self.net.get().hosts[self.me].buffers[rail].push_back((buffer, work));
    }

    fn post_write(
        &mut self,
        to: Rank,
        rail: usize,
        parts: &[Local],
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        self.post(to, rail, What::Write(remote), parts, work, false)
    }

    fn post_read(
        &mut self,
        from: Rank,
        rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        self.post(from, rail, What::Read(remote), &[local], work, false)
    }

    fn flush(&mut self, _to: Rank) {
        self.net.get().flushes += 1;
    }

    fn leads(&mut self, _to: Rank) {
        self.net.get().leads += 1;
    }

    fn poll(&mut self) -> Option<Completion> {
        let mut net = self.net.get();
        net.polls += 1;
        net.hosts[self.me].completions.pop_front()
    }

    fn touched(&mut self, position: usize) -> Option<Rank> {
        let host = &mut self.net.get().hosts[self.me];
        if position == 0 {
            host.seen = std::mem::take(&mut host.touched);
        }
        host.seen.get(position).copied()
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        let _held = self.net.get();
        copy(to, from, len);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        assert_eq!(data.len, out.len());
        let _held = self.net.get();
        copy(out.as_mut_ptr() as usize, data.addr, data.len);
    }

    fn poke_bytes(&mut self, to: usize, bytes: &[u8]) {
        let _held = self.net.get();
        put(to, bytes);
    }

    fn load(&self, addr: usize) -> u64 {
        assert_eq!(addr % 8, 0);
        let _held = self.net.get();
        u64::from_ne_bytes(bytes_at(Span { addr, len: 8 }).try_into().unwrap())
    }

    fn store(&mut self, addr: usize, value: u64) {
        let _held = self.net.get();
        put(addr, &value.to_ne_bytes());
    }

    fn charge(&mut self, _what: Charge) {}

    fn alarm(&mut self, _at_ns: u64) {}

    fn awake(&mut self) {}

    fn idle(&mut self, _round: u32) -> Step {
        Step(self.net.clone())
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        let mut net = self.net.get();
        let at = net.lost.iter().position(|(told, _)| *told == self.me)?;
        let (_, peer) = net.lost.swap_remove(at);
        Some((peer, Fault::PeerLost(peer, "a cable is cut".into())))
    }

    fn may_leave(&self, peer: Rank) -> bool {
        self.net.get().guests.contains(&peer)
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.net
            .get()
            .missed
            .filter(|peer| *peer != self.me)
            .map_or(Ok(()), |peer| Err(Fault::PeerGone(peer)))
    }
}
