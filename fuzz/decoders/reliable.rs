//! A rank that is told anything by others of its job, by datagrams and over connections: it reads and writes nothing but
//! what is registered for it, keeps no more than its limits, ends what was posted once, and goes on or names who is wrong.

use fabric::{
    Charge, Completion, Done, Fault, Local, Nap, Rank, Region, Remote, Rights, Span, Verbs, VerbsCaps,
};
use proto::reliable::{Reliable, Settings};
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::packet::{HEAD_LEN, Opcode, Packet};

const RANKS: usize = 3;
const DATAGRAM: usize = 104;
/// Length of what may be written and read, and of each receive buffer.
const LEN: usize = 256;
const BUFFERS: usize = 8;
const RECEIVES: u64 = 3;
/// Between two pieces of memory.
const GAP: usize = 64;
const BASE: usize = 0x1000;
/// Work that waits to be cut for a peer: what was posted, answers to its reads and to its wishes, at most.
const JOBS: usize = 256 + 64 + 2;

/// What the adapter of the rank has, and knows.
#[derive(Default)]
struct State {
    /// From [`BASE`] on.
    memory: Vec<u8>,
    regions: BTreeMap<u32, (Span, Rights)>,
    receives: VecDeque<(Local, u64)>,
    under_way: VecDeque<Completion>,
    completions: VecDeque<Completion>,
    /// By peer: the number that it is sent next, and that which it sends next.
    numbers: [(u32, u32); RANKS],
    lost: Vec<Rank>,
    gone: [bool; RANKS],
    /// Whether work ends as soon as it is posted, and whether the queues take none.
    ends_at_once: bool,
    is_full: bool,
    now_ns: u64,
}

impl State {
    /// Memory that is registered, and not for this alone.
    fn index(&self, span: Span, other: Rights) -> std::ops::Range<usize> {
        let end = span.addr + span.len;
        let is_inside = |(region, rights): &(Span, Rights)| {
            region.addr <= span.addr && end <= region.addr + region.len && *rights != other
        };
        assert!(span.len == 0 || self.regions.values().any(is_inside), "{span:?} is not registered");
        if span.len == 0 { 0..0 } else { span.addr - BASE..end - BASE }
    }

    fn read(&self, span: Span) -> &[u8] {
        &self.memory[self.index(span, Rights::REMOTE_WRITE)]
    }

    fn written(&self, span: Span) -> std::ops::Range<usize> {
        self.index(span, Rights::REMOTE_READ)
    }

    fn gather(&self, parts: &[Local]) -> Vec<u8> {
        parts.iter().flat_map(|part| self.read(part.span)).copied().collect()
    }

    /// Work is posted over a connection.
    fn post(&mut self, to: Rank, work: u64, done: Done) -> Result<bool, Fault> {
        if self.gone[to] {
            Err(Fault::PeerLost(to, "a cable is cut".into()))
        } else {
            Ok(self.begin(work, done))
        }
    }

    fn begin(&mut self, work: u64, done: Done) -> bool {
        let ended = Completion { work, done, result: Ok(()) };
        if self.is_full {
            return false;
        }
        if self.ends_at_once { &mut self.completions } else { &mut self.under_way }.push_back(ended);
        true
    }

    /// A peer with a connection writes where it may.
    fn write(&mut self, content: &[u8]) {
        let [key, offset, bytes @ ..] = content else { return };
        let Some((region, rights)) = self.regions.get(&u32::from(*key)) else { return };
        if !rights.include(Rights::REMOTE_WRITE) {
            return;
        }
        let to = region.part(usize::from(*offset) * 8, bytes.len());
        let at = self.written(to);
        self.memory[at].copy_from_slice(&bytes[..to.len]);
    }

    /// Something comes from a peer; where there is no buffer it is gone.
    fn come(&mut self, from: Rank, bytes: &[u8], datagram: bool) {
        let Some((buffer, work)) = self.receives.pop_front() else { return };
        let len = bytes.len().min(buffer.span.len);
        let at = self.written(buffer.span.part(0, len));
        self.memory[at].copy_from_slice(&bytes[..len]);
        let done = Done::Received { from, len, datagram };
        self.completions.push_back(Completion { work, done, result: Ok(()) });
    }
}

struct Adapter {
    caps: VerbsCaps,
    state: Rc<RefCell<State>>,
}

impl Adapter {
    fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }
}

/// What it does while there is nothing to do.
struct Pass(Rc<RefCell<State>>);

impl Nap for Pass {
    fn take(self) {
        self.0.borrow_mut().now_ns += 100_000;
    }
}

impl Verbs for Adapter {
    type Nap = Pass;

    fn me(&self) -> Rank {
        0
    }

    fn size(&self) -> usize {
        RANKS
    }

    fn caps(&self) -> &VerbsCaps {
        &self.caps
    }

    fn rails(&self) -> usize {
        1
    }

    fn now_ns(&self) -> u64 {
        self.state().now_ns
    }

    fn allocate(&mut self, len: usize) -> Span {
        let mut state = self.state();
        let addr = BASE + state.memory.len() + GAP;
        let end = state.memory.len() + GAP + len.next_multiple_of(8);
        state.memory.resize(end, 0);
        Span { addr, len }
    }

    /// Keys are used again.
    fn register(&mut self, _rail: usize, span: Span, rights: Rights) -> Result<Region, Fault> {
        let mut state = self.state();
        let key = (1..).find(|key| !state.regions.contains_key(key)).expect("there are many");
        state.regions.insert(key, (span, rights));
        Ok(Region::of(key))
    }

    fn deregister(&mut self, _rail: usize, region: Region) {
        self.state().regions.remove(&region.local).expect("it is registered");
    }

    fn post_send(&mut self, to: Rank, _rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let mut state = self.state();
        state.gather(parts);
        state.post(to, work, Done::Sent)
    }

    fn post_datagram(&mut self, to: Rank, _rail: usize, parts: &[Local], work: u64) -> Result<bool, Fault> {
        let mut state = self.state();
        let datagram = state.gather(parts);
        assert!(datagram.len() <= DATAGRAM);
        let packet = Packet::decode(&datagram).expect("it is a packet");
        if packet.kind != Opcode::Ack {
            state.numbers[to].0 = state.numbers[to].0.max(packet.seq + 1);
        }
        Ok(state.begin(work, Done::Sent))
    }

    fn post_receive(&mut self, _rail: usize, buffer: Local, work: u64) {
        let mut state = self.state();
        state.written(buffer.span);
        state.receives.push_back((buffer, work));
        assert!(state.receives.len() <= BUFFERS);
    }

    fn post_write(
        &mut self,
        to: Rank,
        _rail: usize,
        parts: &[Local],
        _remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let mut state = self.state();
        state.gather(parts);
        state.post(to, work, Done::Written)
    }

    fn post_read(
        &mut self,
        from: Rank,
        _rail: usize,
        local: Local,
        _remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let mut state = self.state();
        state.written(local.span);
        state.post(from, work, Done::Read)
    }

    fn poll(&mut self) -> Option<Completion> {
        self.state().completions.pop_front()
    }

    fn touched(&mut self, _position: usize) -> Option<Rank> {
        None
    }

    fn copy(&mut self, to: usize, from: usize, len: usize) {
        let mut state = self.state();
        let data = state.read(Span { addr: from, len }).to_vec();
        let to = state.written(Span { addr: to, len });
        state.memory[to].copy_from_slice(&data);
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        let state = self.state();
        out.copy_from_slice(state.read(data));
    }

    fn poke_bytes(&mut self, to: usize, bytes: &[u8]) {
        let mut state = self.state();
        let at = state.written(Span { addr: to, len: bytes.len() });
        state.memory[at].copy_from_slice(bytes);
    }

    fn load(&self, _addr: usize) -> u64 {
        unreachable!("packets have no words that peers write")
    }

    fn store(&mut self, _addr: usize, _value: u64) {
        unreachable!("packets have no words that peers read")
    }

    fn charge(&mut self, _what: Charge) {}

    fn alarm(&mut self, _at_ns: u64) {}

    fn awake(&mut self) {}

    fn idle(&mut self, _round: u32) -> Pass {
        Pass(self.state.clone())
    }

    fn take_lost(&mut self) -> Option<(Rank, Fault)> {
        let rank = self.state().lost.pop()?;
        Some((rank, Fault::PeerLost(rank, "a cable is cut".into())))
    }

    fn check(&mut self) -> Result<(), Fault> {
        Ok(())
    }
}

/// The rank, and what it has posted.
struct Told {
    verbs: Reliable<Adapter>,
    state: Rc<RefCell<State>>,
    /// Read and written by peers, and read and written by the rank itself.
    given: Local,
    own: Local,
    /// Receive buffers that are posted, and work that is: what it ends as.
    receives: BTreeMap<u64, Local>,
    posted: BTreeMap<u64, Done>,
    next: u64,
    lost: [bool; RANKS],
}

impl Told {
    fn new(flags: u8) -> Told {
        let bit = |n: u8| flags >> n & 1 != 0;
        let state = State { ends_at_once: bit(0), now_ns: 1, ..State::default() };
        let state = Rc::new(RefCell::new(state));
        let caps = VerbsCaps {
            name: "told",
            inline_bytes: 16,
            at_once_bytes: 0,
            gather: 2,
            datagram_bytes: DATAGRAM,
            transfer_bytes: 1 << 20,
            depth: 16,
            lockable_bytes: usize::MAX,
            regions: usize::MAX,
            page_bytes: 4096,
            offload: false,
            writes_in_order: false,
            holds_receives: None,
            coherent_atomics: false,
        };
        let settings = Settings {
            packets: if bit(1) { 4 } else { 64 },
            buffers: BUFFERS,
            message_bytes: if bit(2) { LEN } else { 200 },
            connections: usize::from(flags >> 3 & 3),
            earned_messages: 2,
            idle_ns: 1_000_000,
            linger_ns: if bit(5) { 500_000 } else { 0 },
            ..Settings::default()
        };
        let adapter = Adapter { caps, state: state.clone() };
        let mut verbs = Reliable::new(adapter, settings).expect("it has datagrams");
        let mut memory = |rights| {
            let span = verbs.allocate(LEN);
            verbs.register(0, span, rights).expect("there is room").local(span)
        };
        let (given, own) = (memory(Rights::ALL), memory(Rights::LOCAL_WRITE));
        let receives: BTreeMap<u64, Local> =
            (0..RECEIVES).map(|work| (work, memory(Rights::LOCAL_WRITE))).collect();
        receives.iter().for_each(|(work, buffer)| verbs.post_receive(0, *buffer, *work));
        let posted = BTreeMap::new();
        Told { verbs, state, given, own, receives, posted, next: 1000, lost: [false; RANKS] }
    }

    /// A packet of a peer: its number and what it acknowledges lie about where they are due.
    fn packet(&mut self, from: Rank, words: &[u8; 6], payload: &[u8]) {
        let [kind, seq, ack, came, key, addr] = *words;
        let mut state = self.state.borrow_mut();
        let (sent, next) = &mut state.numbers[from];
        let ack = sent.wrapping_sub(u32::from(ack & 15)).wrapping_add(u32::from(ack >> 7));
        let kind = if kind & 15 == 15 { Opcode::Ack } else { Opcode::ALL[1 + usize::from(kind & 7)] };
        let number = next.wrapping_add(seq as i8 as u32);
        *next += u32::from(seq == 0 && kind != Opcode::Ack);
        let addr = match kind {
            Opcode::Data => u64::from(addr) * 4,
            _ => (self.given.span.addr as u64).wrapping_add_signed(i64::from(addr as i8) * 4),
        };
        let key = if key & 128 == 0 { u32::from(key) } else { self.given.key };
        let flags = words[0] >> 4 & 3;
        let head = Packet { kind, flags, seq: number, ack, came: u128::from(came), key, addr };
        let payload = &payload[..payload.len().min(DATAGRAM - HEAD_LEN)];
        state.come(from, &[&head.encode(), payload].concat(), true);
    }

    fn post(&mut self, to: Rank, what: u8, len: u8) {
        self.next += 1;
        let (work, own) = (self.next, self.own);
        let part = Local { span: own.span.part(0, usize::from(len)), key: own.key };
        let remote = Remote { addr: 64, key: 5 };
        let done = [Done::Sent, Done::Written, Done::Read][usize::from(what)];
        let is_posted = match done {
            Done::Sent => self.verbs.post_send(to, 0, &[part], work),
            Done::Written => self.verbs.post_write(to, 0, &[part], remote, work),
            _ => self.verbs.post_read(to, 0, part, remote, work),
        };
        match is_posted {
            Ok(true) => drop(self.posted.insert(work, done)),
            Ok(false) => {}
            Err(why) => assert!(self.lost[to] && why.lost_peer() == Some(to), "{why}"),
        }
    }

    /// The region that peers may use ends, and another begins, which may be shorter, and is there to be read or to be written to.
    fn register_anew(&mut self, len: u8) {
        self.verbs.deregister(0, Region::of(self.given.key));
        let span = self.given.span.part(0, usize::from(len));
        let rights = if len & 1 == 0 { Rights::REMOTE_READ } else { Rights::REMOTE_WRITE };
        self.given = self.verbs.register(0, span, rights).expect("there is room").local(span);
    }

    /// Takes in what has come; whether all is well.
    fn look(&mut self) -> bool {
        while let Some(Completion { work, done, result }) = self.verbs.poll() {
            let (from, len, datagram) = match done {
                Done::Received { from, len, datagram } => (from, len, datagram),
                // Nobody has posted that.
                Done::Parted { from } => {
                    assert!((1..RANKS).contains(&from) && result.is_ok());
                    continue;
                }
                done => {
                    assert_eq!(self.posted.remove(&work), Some(done));
                    assert!(result.is_ok() || self.lost.contains(&true));
                    continue;
                }
            };
            let posted = self.receives.remove(&work).expect("it is posted");
            let buffer = self.verbs.received_in(work).unwrap_or(posted);
            assert!((1..RANKS).contains(&from) && !datagram && len <= posted.span.len.min(buffer.span.len));
            self.verbs.peek_bytes(buffer.span, &mut [0; LEN]);
            self.next += 1;
            self.receives.insert(self.next, buffer);
            self.verbs.post_receive(0, buffer, self.next);
        }
        let mut at = 0;
        while self.verbs.touched(at).is_some() {
            at += 1;
        }
        match self.verbs.check() {
            Ok(()) => true,
            Err(Fault::Device(why)) => {
                assert!((1..RANKS).any(|rank| why.contains(&format!("rank {rank}"))), "{why}");
                false
            }
            Err(why) => panic!("{why}"),
        }
    }
}

/// The first byte says what the rank may use; then what happens: a byte for what and with whom, one for how much, and bytes
/// for that.
pub fn decode(input: &[u8]) {
    let [flags, rest @ ..] = input else { return };
    let mut told = Told::new(*flags);
    let mut rest = rest;
    while let [what, len, behind @ ..] = rest {
        let peer = 1 + usize::from(what >> 7);
        let with_content =
            |behind: &[u8]| behind.len().min(if what & 15 < 8 { usize::from(*len) } else { 0 });
        let (content, behind) = behind.split_at(with_content(behind));
        rest = behind;
        match what & 15 {
            0..5 => {
                let Some((words, payload)) = content.split_first_chunk() else { continue };
                told.packet(peer, words, payload);
            }
            5 => told.state.borrow_mut().write(content),
            6 => told.state.borrow_mut().come(peer, content, true),
            7 => told.state.borrow_mut().come(peer, content, false),
            8..11 => told.post(peer, what & 3, *len),
            11 => {
                let mut state = told.state.borrow_mut();
                let ended = std::mem::take(&mut state.under_way);
                state.completions.extend(ended);
            }
            12 => {
                let nap = told.verbs.idle(u32::from(*len));
                nap.take();
                told.state.borrow_mut().now_ns += u64::from(*len) * 1_000_000;
            }
            13 => told.register_anew(*len),
            14 => told.state.borrow_mut().is_full = len & 1 != 0,
            _ => {
                told.lost[peer] = true;
                told.state.borrow_mut().gone[peer] = true;
                // It is told of now, or at some time.
                told.state.borrow_mut().lost.push(peer);
                if len & 1 == 0 {
                    while told.verbs.take_lost().is_some() {}
                }
            }
        }
        if !told.look() {
            break;
        }
    }
    assert!(told.verbs.describe().lines().all(|peer| peer.matches("Job {").count() <= JOBS));
}
