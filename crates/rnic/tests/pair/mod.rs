//! Two hosts with a connection between them, without sockets: a pipe of bytes in each direction.
#![allow(dead_code)]

pub mod raw;

use std::collections::VecDeque;

use rnic::stack::*;

/// Bytes of memory of a host; addresses and tagged offsets begin at [`BASE`].
pub const MEMORY: usize = 1 << 16;
pub const BASE: u64 = 0x7f00_0000_0000;
pub const DOMAIN: u32 = 3;
/// Receive buffers lie behind the memory for regions: their id is their address.
pub const BUFFER: usize = 1 << 14;

/// Memory and what has happened to it.
pub struct Memory {
    pub bytes: Vec<u8>,
    pub buffers: VecDeque<(u64, usize)>,
    /// What to say when there is no buffer.
    pub without: Receive,
    pub arrived: Vec<Arrived>,
    /// Every place that was written: address and length.
    pub placed: Vec<(u64, usize)>,
    pub straight: bool,
}

impl Memory {
    pub fn new() -> Memory {
        Memory {
            bytes: vec![0; MEMORY],
            buffers: VecDeque::new(),
            without: Receive::None,
            arrived: Vec::new(),
            placed: Vec::new(),
            straight: false,
        }
    }

    pub fn at(&mut self, addr: u64, len: usize) -> &mut [u8] {
        let at = usize::try_from(addr - BASE).unwrap();
        &mut self.bytes[at..at + len]
    }

    pub fn address(place: Place) -> u64 {
        match place {
            Place::Region { to, .. } => to,
            Place::Buffer { id, offset } => id + u64::from(offset),
        }
    }
}

impl Sink for Memory {
    fn receive(&mut self, _msn: u32) -> Receive {
        self.buffers.pop_front().map_or(self.without, |(id, len)| Receive::Buffer { id, len })
    }

    fn place(&mut self, place: Place, bytes: &[u8]) {
        let addr = Memory::address(place);
        self.placed.push((addr, bytes.len()));
        self.at(addr, bytes.len()).copy_from_slice(bytes);
    }

    fn arrived(&mut self, arrived: Arrived) {
        self.arrived.push(arrived);
    }

    fn atomic(&mut self, _stag: u32, to: u64, atomic: &Atomic) -> u64 {
        let word = self.at(to, 8);
        let old = u64::from_ne_bytes((&*word).try_into().unwrap());
        word.copy_from_slice(&atomic.apply(old).to_ne_bytes());
        self.placed.push((to, 8));
        old
    }
}

/// One side.
pub struct Host {
    pub memory: Memory,
    pub regions: Regions,
    pub connection: Connection,
    /// Where posted work takes its payload from.
    pub sources: std::collections::HashMap<u64, u64>,
    /// The whole memory, with all rights.
    pub stag: u32,
    pub done: Vec<Completion>,
    /// What has been cut and not been taken by the pipe.
    pub out: VecDeque<u8>,
    /// What the pipe has brought and the connection has not taken.
    pub rest: VecDeque<u8>,
}

impl Host {
    pub fn new(settings: Settings) -> Host {
        let mut regions = Regions::new();
        let stag = regions.register(BASE, MEMORY as u64, Rights::ALL, DOMAIN).unwrap();
        Host {
            memory: Memory::new(),
            regions,
            connection: Connection::new(settings),
            sources: std::collections::HashMap::new(),
            stag,
            done: Vec::new(),
            out: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }

    pub fn post(&mut self, id: u64, from: u64, work: Work) -> bool {
        self.sources.insert(id, from);
        self.connection.post(id, work)
    }

    /// Cuts one FPDU; false if there is none.
    pub fn cut(&mut self) -> bool {
        let wanted = self.connection.wants_to_write();
        let Some(mut fpdu) = self.connection.next_fpdu(&self.regions) else { return false };
        assert!(wanted);
        let len = fpdu.payload_len();
        let addr = match fpdu.source() {
            Source::None => BASE,
            Source::Work { id, offset } => self.sources[&id] + u64::from(offset),
            Source::Region { to, .. } => to,
        };
        let at = usize::try_from(addr - BASE).unwrap();
        // In two pieces, as a gather list has them.
        let (one, two) = self.memory.bytes[at..at + len].split_at(len / 3);
        let payload: &[&[u8]] = &[one, two];
        fpdu.seal(payload);
        let before = self.out.len();
        fpdu.slices(payload, 0, |slice| self.out.extend(slice));
        assert_eq!(self.out.len() - before, fpdu.len());
        // What a partial write leaves is the same bytes.
        let skip = fpdu.len() / 2;
        let mut left = Vec::new();
        fpdu.slices(payload, skip, |slice| left.extend_from_slice(slice));
        assert!(left.iter().eq(self.out.iter().skip(before + skip)));
        true
    }

    /// Takes in bytes, and polls.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        loop {
            let bytes = self.rest.make_contiguous();
            if self.memory.straight
                && let Some((place, most)) = self.connection.expects()
                && !bytes.is_empty()
            {
                let len = most.min(bytes.len());
                let addr = Memory::address(place);
                self.memory.placed.push((addr, len));
                self.memory.at(addr, len).copy_from_slice(&bytes[..len]);
                self.connection.placed(&bytes[..len]);
                self.rest.drain(..len);
                continue;
            }
            // Where payload may come next, one byte at a time, so that it is seen in time.
            let most = if self.memory.straight { bytes.len().min(1) } else { bytes.len() };
            let taken = self.connection.feed(&bytes[..most], &mut self.regions, &mut self.memory);
            self.rest.drain(..taken);
            if taken == 0 || self.rest.is_empty() {
                break;
            }
        }
        self.poll();
    }

    pub fn poll(&mut self) {
        self.done.extend(std::iter::from_fn(|| self.connection.poll()));
    }

    pub fn refused(&self) -> Option<Cause> {
        match self.connection.failure() {
            Some(Failure::Refused(terminate)) => Some(terminate.cause),
            _ => None,
        }
    }
}

/// Settings of both sides of a connection, with the shortest segments.
pub fn settings(here: &Proposal, there: &Proposal) -> (Settings, Settings) {
    let (request, _) = Start::decode(Side::Request, &here.request()).unwrap().unwrap();
    let (reply, agreed) = there.reply(&request, &[]);
    let (reply, _) = Start::decode(Side::Reply, &reply).unwrap().unwrap();
    let with = |agreed| Settings { domain: DOMAIN, segment_max: SEGMENT_MIN, ..Settings::from(agreed) };
    (with(here.agree(&reply).unwrap()), with(agreed))
}

/// Moves up to `len` bytes from one side to the other; how many.
pub fn carry(from: &mut Host, to: &mut Host, len: usize) -> usize {
    let len = len.min(from.out.len());
    let bytes: Vec<u8> = from.out.drain(..len).collect();
    from.connection.written(len);
    from.poll();
    to.feed(&bytes);
    len
}

/// Until nothing moves.
pub fn settle(one: &mut Host, other: &mut Host) {
    loop {
        while one.cut() {}
        while other.cut() {}
        let moved = carry(one, other, usize::MAX) + carry(other, one, usize::MAX);
        if moved == 0 {
            assert!(!one.connection.wants_to_write() && !other.connection.wants_to_write());
            break;
        }
    }
}
