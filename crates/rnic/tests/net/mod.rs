//! A network of hosts in virtual time: datagrams are delayed, lost, doubled, overtaken and changed by chance, from a seed.
#![allow(dead_code)]

use rnic::stack::rd::{Pair, PairSettings};
use rnic::stack::*;
use std::collections::{BTreeMap, HashMap, VecDeque};
use wire::datagram::Head;

/// Addresses begin here.
pub const BASE: u64 = 0x7f00_0000_0000;
pub const DOMAIN: u32 = 3;

/// Numbers from a seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn strikes(&mut self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }
}

/// What happens to datagrams, each in millionths.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    pub loss: u64,
    pub doubled: u64,
    pub overtaken: u64,
    pub changed: u64,
}

/// What the way to a host is like.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub delay_ns: u64,
    /// Nanoseconds for a byte of the port in front of the host, and bytes that may wait there.
    pub ns_per_byte: f64,
    pub queue_bytes: usize,
}

pub struct Host {
    pub memory: Vec<u8>,
    pub buffers: VecDeque<(u64, usize)>,
    pub arrived: Vec<Arrived>,
    pub regions: Regions,
    pub stag: u32,
    pub pairs: BTreeMap<usize, Pair>,
    /// Where the payload of work lies, by peer and id.
    pub sources: HashMap<(usize, u64), u64>,
    pub done: Vec<(usize, Completion)>,
    /// When the host looks at nothing: it computes until then.
    pub busy_until: u64,
}

/// Memory and buffers of a host, apart from its pairs.
pub struct Into<'a> {
    memory: &'a mut Vec<u8>,
    buffers: &'a mut VecDeque<(u64, usize)>,
    arrived: &'a mut Vec<Arrived>,
}

impl Sink for Into<'_> {
    fn receive(&mut self, _msn: u32) -> Receive {
        self.buffers.pop_front().map_or(Receive::Later, |(id, len)| Receive::Buffer { id, len })
    }
    fn place(&mut self, place: Place, bytes: &[u8]) {
        let addr = match place {
            Place::Region { to, .. } => to,
            Place::Buffer { id, offset } => id + u64::from(offset),
        };
        let at = (addr - BASE) as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }
    fn arrived(&mut self, arrived: Arrived) {
        self.arrived.push(arrived);
    }
    fn atomic(&mut self, _stag: u32, to: u64, atomic: &Atomic) -> u64 {
        let at = (to - BASE) as usize;
        let word = &mut self.memory[at..at + 8];
        let old = u64::from_ne_bytes((&*word).try_into().unwrap());
        word.copy_from_slice(&atomic.apply(old).to_ne_bytes());
        old
    }
}

impl Host {
    fn new(memory: usize) -> Host {
        let mut regions = Regions::new();
        let stag = regions.register(BASE, memory as u64, Rights::ALL, DOMAIN).unwrap();
        Host {
            memory: vec![0; memory],
            buffers: VecDeque::new(),
            arrived: Vec::new(),
            regions,
            stag,
            pairs: BTreeMap::new(),
            sources: HashMap::new(),
            done: Vec::new(),
            busy_until: 0,
        }
    }

    pub fn at(&mut self, addr: u64, len: usize) -> &mut [u8] {
        let at = (addr - BASE) as usize;
        &mut self.memory[at..at + len]
    }

    pub fn post(&mut self, to: usize, id: u64, from: u64, work: Work) -> bool {
        self.sources.insert((to, id), from);
        self.pairs.get_mut(&to).unwrap().post(id, work)
    }

    pub fn receive(&mut self, now: u64, from: usize, bytes: &[u8]) -> bool {
        let Ok((head, content)) = Head::decode(bytes) else { return false };
        assert_eq!((head.rank as usize, head.id), (from, 7 + from as u64), "only what was sent is right");
        let mut sink =
            Into { memory: &mut self.memory, buffers: &mut self.buffers, arrived: &mut self.arrived };
        let pair = self.pairs.get_mut(&from).unwrap();
        pair.receive(now, &head, content, &mut self.regions, &mut sink).unwrap();
        true
    }

    pub fn transmit(&mut self, now: u64, to: usize) -> Option<Vec<u8>> {
        let (memory, sources) = (&self.memory, &self.sources);
        let pair = self.pairs.get_mut(&to).unwrap();
        let mut out = Vec::new();
        let payload = |fpdu: &Fpdu| -> [&[u8]; 2] {
            let addr = match fpdu.source() {
                Source::None => return [&[], &[]],
                Source::Work { id, offset } => sources[&(to, id)] + u64::from(offset),
                Source::Region { to, .. } => to,
            };
            let at = (addr - BASE) as usize;
            [&memory[at..at + fpdu.payload_len()], &[]]
        };
        pair.transmit(now, &self.regions, payload, &mut out).then_some(out)
    }

    fn look(&mut self, now: u64) {
        let peers: Vec<usize> = self.pairs.keys().copied().collect();
        for peer in peers {
            let mut sink =
                Into { memory: &mut self.memory, buffers: &mut self.buffers, arrived: &mut self.arrived };
            let pair = self.pairs.get_mut(&peer).unwrap();
            if pair.is_waiting() && !sink.buffers.is_empty() {
                pair.resume(&mut self.regions, &mut sink);
            }
            if pair.timeout_ns().is_some_and(|due| due <= now) {
                pair.tick(now);
            }
            // As the driver does when nothing more has come.
            if pair.owes_answer() {
                pair.hurry();
            }
        }
    }
}

pub struct Net {
    pub now: u64,
    pub hosts: Vec<Host>,
    pub faults: Faults,
    pub random: Random,
    pub ways: Vec<Link>,
    /// Until when the port of each host is taken.
    taken_until: Vec<u64>,
    under_way: BTreeMap<(u64, u64), (usize, usize, Vec<u8>)>,
    count: u64,
    pub sent: u64,
    pub overflows: u64,
    /// Bytes that each host has been sent by each other.
    pub carried: HashMap<(usize, usize), u64>,
}

impl Net {
    pub fn new(hosts: usize, memory: usize, way: Link, faults: Faults, seed: u64) -> Net {
        Net {
            now: 1,
            hosts: (0..hosts).map(|_| Host::new(memory)).collect(),
            faults,
            random: Random(seed),
            ways: vec![way; hosts],
            taken_until: vec![0; hosts],
            under_way: BTreeMap::new(),
            count: 0,
            sent: 0,
            overflows: 0,
            carried: HashMap::new(),
        }
    }

    /// Joins two hosts.
    pub fn join(&mut self, one: usize, other: usize, datagram_max: usize, first: u32) {
        for (me, peer) in [(one, other), (other, one)] {
            let pair = Pair::new(PairSettings {
                rank: me as u32,
                id: 7 + me as u64,
                datagram_max,
                first,
                depth: 256,
                requests: 16,
                domain: DOMAIN,
            });
            self.hosts[me].pairs.insert(peer, pair);
        }
    }

    fn throw(&mut self, from: usize, to: usize, mut bytes: Vec<u8>) {
        self.sent += 1;
        let Faults { loss, doubled, overtaken, changed } = self.faults;
        if self.random.strikes(loss) {
            return;
        }
        let Link { delay_ns, ns_per_byte, queue_bytes } = self.ways[to];
        let waits_ns = self.taken_until[to].saturating_sub(self.now);
        if waits_ns as f64 > queue_bytes as f64 * ns_per_byte {
            self.overflows += 1;
            return;
        }
        self.taken_until[to] = self.taken_until[to].max(self.now) + (bytes.len() as f64 * ns_per_byte) as u64;
        if self.random.strikes(changed) {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
        }
        let mut arrives = self.taken_until[to] + delay_ns;
        let copies = 1 + u64::from(self.random.strikes(doubled));
        for _ in 0..copies {
            if self.random.strikes(overtaken) {
                arrives += self.random.below(8 * delay_ns);
            }
            *self.carried.entry((from, to)).or_default() += bytes.len() as u64;
            self.count += 1;
            self.under_way.insert((arrives, self.count), (from, to, bytes.clone()));
        }
    }

    /// Everybody sends what there is.
    pub fn pump(&mut self) {
        for from in 0..self.hosts.len() {
            if self.hosts[from].busy_until > self.now {
                continue;
            }
            self.hosts[from].look(self.now);
            let peers: Vec<usize> = self.hosts[from].pairs.keys().copied().collect();
            for to in peers {
                while let Some(bytes) = self.hosts[from].transmit(self.now, to) {
                    assert!(bytes.len() <= 65_507);
                    self.throw(from, to, bytes);
                }
                let host = &mut self.hosts[from];
                while let Some(completion) = host.pairs.get_mut(&to).unwrap().poll() {
                    host.done.push((to, completion));
                }
            }
        }
    }

    /// Goes on to the next thing that happens; false if nothing ever will.
    pub fn step(&mut self) -> bool {
        self.pump();
        let due = |host: &Host| {
            let next = host.pairs.values().filter_map(Pair::timeout_ns).min()?;
            Some(next.max(host.busy_until))
        };
        let timer = self.hosts.iter().filter_map(due).min();
        let arrival = self
            .under_way
            .first_key_value()
            .map(|((at, _), (_, to, _))| (*at).max(self.hosts[*to].busy_until));
        let Some(next) = timer.into_iter().chain(arrival).min() else { return false };
        self.now = self.now.max(next);
        let ready: Vec<(u64, u64)> = self
            .under_way
            .range(..=(self.now, u64::MAX))
            .filter(|(_, (_, to, _))| self.hosts[*to].busy_until <= self.now)
            .map(|(key, _)| *key)
            .collect();
        for key in ready {
            let (from, to, bytes) = self.under_way.remove(&key).unwrap();
            self.hosts[to].receive(self.now, from, &bytes);
        }
        true
    }

    /// Goes on until this holds, or this time has passed.
    pub fn until(&mut self, longest_ns: u64, mut holds: impl FnMut(&Net) -> bool) {
        let end = self.now + longest_ns;
        loop {
            self.pump();
            if holds(self) {
                return;
            }
            assert!(self.step() && self.now < end, "at {} ns: {:?}", self.now, self.faults);
        }
    }
}
