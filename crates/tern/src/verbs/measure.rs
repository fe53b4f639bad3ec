//! What is measured of an adapter between two ranks, without a message library.
//!
//! Latency, bandwidth one way and both ways, what a registration costs, and what that makes of the bandwidth of memory that is used
//! again or not: the dissertation's benchmarks at the level of verbs.
//!
//! Both ranks go through the same calls; what one asks for, the other does too. Times are taken by rank 0.

use fabric::{Completion, Done, Fault, Local, Region, Remote, Rights, Span, Verbs};
use std::time::Instant;

/// Longest message of a receive buffer.
const MESSAGE: usize = 64 << 10;
/// A word, as messages have it that are nothing but a sign.
pub const WORD: usize = 8;
/// Longest write, and how many are under way at a time over one connection.
pub const LONGEST: usize = 1 << 20;
const WINDOW: usize = 8;
/// Work whose memory may be used again when it has ended.
pub const PLAIN: u64 = 1 << 32;
/// Work of a receive buffer: this and its number.
const RECEIVE: u64 = 1 << 33;

/// One of the two ranks.
pub struct Bench<'a, V: Verbs> {
    pub(super) verbs: &'a mut V,
    pub(super) peer: usize,
    /// What is sent from and written to, and how it is registered by rail.
    pub(super) memory: Span,
    pub(super) regions: Vec<Region>,
    /// The same at the peer.
    remote: (u64, Vec<u32>),
    /// Memory that is registered for one write, as far as it is to be.
    slots: Vec<Span>,
    fresh: Vec<Option<Region>>,
    free: Vec<usize>,
    pub(super) buffers: Vec<Local>,
    posted: u64,
    ended: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Datagrams that have come, and into which buffer the last message has.
    pub(super) datagrams: u64,
    pub(super) last: usize,
}

/// Why a measurement ends early.
fn text(fault: Fault) -> String {
    fault.to_string()
}

impl<'a, V: Verbs> Bench<'a, V> {
    /// Over all rails of an adapter that joins two ranks, with so many receive buffers at each; `tell` gives a line to the other one and brings
    /// back its own.
    pub fn new(
        verbs: &'a mut V,
        depth: usize,
        mut tell: impl FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, String> {
        let rails = verbs.rails();
        let memory = verbs.allocate(LONGEST);
        let room = verbs.allocate(depth * MESSAGE);
        let slots = (0..WINDOW).map(|_| verbs.allocate(LONGEST)).collect();
        let mut regions = Vec::new();
        let mut buffers = Vec::new();
        for rail in 0..rails {
            regions.push(verbs.register(rail, memory, Rights::ALL).map_err(text)?);
            let region = verbs.register(rail, room, Rights::LOCAL_WRITE).map_err(text)?;
            for at in 0..depth {
                let buffer = region.local(room.part(at * MESSAGE, MESSAGE));
                verbs.post_receive(rail, buffer, RECEIVE + buffers.len() as u64);
                buffers.push(buffer);
            }
        }
        let own: Vec<String> = std::iter::once(memory.addr as u64)
            .chain(regions.iter().map(|region| u64::from(region.remote)))
            .map(|n| n.to_string())
            .collect();
        let said = tell(&own.join(" "))?;
        let numbers: Option<Vec<u64>> = said.split_whitespace().map(|word| word.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == rails + 1);
        let numbers = numbers.ok_or_else(|| format!("the second process says `{said}` of its memory"))?;
        let remote = (numbers[0], numbers[1..].iter().map(|key| *key as u32).collect());
        let peer = 1 - verbs.me();
        let (fresh, free) = (vec![None; WINDOW], (0..WINDOW).collect());
        let (posted, ended, sent, received) = (0, 0, 0, 0);
        Ok(Bench {
            verbs,
            peer,
            memory,
            regions,
            remote,
            slots,
            fresh,
            free,
            buffers,
            posted,
            ended,
            sent,
            received,
            datagrams: 0,
            last: 0,
        })
    }

    pub(super) fn is_first(&self) -> bool {
        self.peer == 1
    }

    /// Takes in one completion, if there is one.
    pub(super) fn turn(&mut self) -> Result<(), String> {
        let Some(Completion { work, done, result }) = self.verbs.poll() else {
            if let Some((_, fault)) = self.verbs.take_lost() {
                return Err(text(fault));
            }
            return self.verbs.check().map_err(text);
        };
        result.map_err(text)?;
        if let Done::Received { datagram, .. } = done {
            let at = (work - RECEIVE) as usize;
            match datagram {
                true => self.datagrams += 1,
                false => (self.received, self.last) = (self.received + 1, at),
            }
            let depth = self.buffers.len() / self.regions.len();
            self.verbs.post_receive(at / depth, self.buffers[at], work);
            return Ok(());
        }
        self.ended += 1;
        if work < PLAIN {
            let slot = work as usize;
            if let Some(region) = self.fresh[slot].take() {
                self.verbs.deregister(0, region);
            }
            self.free.push(slot);
        }
        Ok(())
    }

    fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        while !is_so(self) {
            self.turn()?;
        }
        Ok(())
    }

    /// Posts until there is room.
    pub(super) fn post(
        &mut self,
        mut order: impl FnMut(&mut V) -> Result<bool, Fault>,
    ) -> Result<(), String> {
        while !order(self.verbs).map_err(text)? {
            self.turn()?;
        }
        self.posted += 1;
        self.verbs.flush(self.peer);
        Ok(())
    }

    fn send(&mut self, rail: usize, len: usize) -> Result<(), String> {
        let (peer, part) = (self.peer, self.regions[rail].local(self.memory.part(0, len)));
        self.sent += 1;
        self.post(|verbs| verbs.post_send(peer, rail, &[part], PLAIN))
    }

    fn write(&mut self, rail: usize, from: Local, work: u64) -> Result<(), String> {
        let (peer, remote) = (self.peer, Remote { addr: self.remote.0, key: self.remote.1[rail] });
        self.post(|verbs| verbs.post_write(peer, rail, &[from], remote, work))
    }

    /// Waits until the peer has come here too and nothing is under way.
    pub fn meet(&mut self) -> Result<(), String> {
        for rail in 0..self.regions.len() {
            self.send(rail, 8)?;
        }
        let wanted = self.sent;
        self.until(|bench| bench.received >= wanted && bench.ended == bench.posted)
    }

    /// Half of a round trip of messages of `len` bytes (0 to 64 KB), by Send and Receive, in µs: the median of `rounds`.
    pub fn latency(&mut self, len: usize, rounds: usize) -> Result<f64, String> {
        self.meet()?;
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let begun = Instant::now();
            if self.is_first() {
                self.send(0, len)?;
            }
            let wanted = self.sent + u64::from(!self.is_first());
            self.until(|bench| bench.received >= wanted)?;
            if !self.is_first() {
                self.send(0, len)?;
            }
            times.push(begun.elapsed().as_secs_f64() * 1e6 / 2.0);
        }
        Ok(median(times))
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.regions.len()
    }

    /// As [`Bench::latency`] over all connections at a time, divided by their number (002, section 3.4.1): each is sent a message, and the peer
    /// answers each over the connection by which it came.
    pub fn normalized_latency(&mut self, len: usize, rounds: usize) -> Result<f64, String> {
        self.meet()?;
        let (rails, depth) = (self.regions.len(), self.buffers.len() / self.regions.len());
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let begun = Instant::now();
            if self.is_first() {
                for rail in 0..rails {
                    self.send(rail, len)?;
                }
                let wanted = self.sent;
                self.until(|bench| bench.received >= wanted)?;
            } else {
                for _ in 0..rails {
                    let wanted = self.sent + 1;
                    self.until(|bench| bench.received >= wanted)?;
                    self.send(self.last / depth, len)?;
                }
            }
            times.push(begun.elapsed().as_secs_f64() * 1e6 / (2 * rails) as f64);
        }
        Ok(median(times))
    }

    /// Reads of `len` bytes of the peer's memory, one at a time, in µs: the median of `rounds`. Rank 1 waits.
    pub fn read(&mut self, len: usize, rounds: usize) -> Result<f64, String> {
        self.meet()?;
        let mut times = Vec::with_capacity(rounds);
        if self.is_first() {
            let (peer, local) = (self.peer, self.regions[0].local(self.memory.part(0, len)));
            let remote = Remote { addr: self.remote.0, key: self.remote.1[0] };
            for _ in 0..rounds {
                let begun = Instant::now();
                self.post(|verbs| verbs.post_read(peer, 0, local, remote, PLAIN))?;
                self.until(|bench| bench.ended == bench.posted)?;
                times.push(begun.elapsed().as_secs_f64() * 1e6);
            }
        }
        self.meet()?;
        Ok(median(times))
    }

    /// Writes of `len` bytes (at most [`LONGEST`]), `count` over all rails by turns, from rank 0 or from both: GB/s in all, and
    /// writes per µs.
    pub fn stream(&mut self, len: usize, count: usize, both: bool) -> Result<(f64, f64), String> {
        self.meet()?;
        let (rails, window) = (self.regions.len(), (WINDOW * self.regions.len()) as u64);
        let begun = Instant::now();
        if both || self.is_first() {
            for at in 0..count {
                let rail = at % rails;
                let from = self.regions[rail].local(self.memory.part(0, len));
                self.write(rail, from, PLAIN)?;
                self.until(|bench| bench.posted - bench.ended < window)?;
            }
        }
        // A message behind the writes says that they are there.
        self.meet()?;
        let seconds = begun.elapsed().as_secs_f64();
        let writes = (count * if both { 2 } else { 1 }) as f64;
        Ok((writes * len as f64 / seconds / 1e9, writes / seconds / 1e6))
    }

    /// Writes of `len` bytes from memory of which `reused` per cent is registered already, and the rest for one write alone: GB/s.
    pub fn reuse(&mut self, len: usize, count: usize, reused: usize) -> Result<f64, String> {
        self.meet()?;
        let begun = Instant::now();
        if self.is_first() {
            for at in 0..count {
                self.until(|bench| !bench.free.is_empty())?;
                // Spread evenly.
                let is_reused = (at + 1) * reused / 100 > at * reused / 100;
                if is_reused {
                    let from = self.regions[0].local(self.memory.part(0, len));
                    self.write(0, from, PLAIN)?;
                    self.until(|bench| bench.posted - bench.ended < WINDOW as u64)?;
                    continue;
                }
                let slot = self.free.pop().expect("one is free");
                let span = self.slots[slot].part(0, len);
                let region = self.verbs.register(0, span, Rights::NONE).map_err(text)?;
                self.fresh[slot] = Some(region);
                self.write(0, region.local(span), slot as u64)?;
            }
        }
        self.meet()?;
        Ok((count * len) as f64 / begun.elapsed().as_secs_f64() / 1e9)
    }

    /// What it costs to register `len` bytes that are there, and to give that back, in µs: medians of `rounds`.
    pub fn registration(&mut self, len: usize, rounds: usize) -> Result<(f64, f64), String> {
        let span = self.verbs.allocate(len);
        for at in (0..len).step_by(4096) {
            self.verbs.poke_bytes(span.addr + at, &[1]);
        }
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let begun = Instant::now();
            let region = self.verbs.register(0, span, Rights::ALL).map_err(text)?;
            there.push(begun.elapsed().as_secs_f64() * 1e6);
            let begun = Instant::now();
            self.verbs.deregister(0, region);
            back.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        Ok((median(there), median(back)))
    }
}

/// The middle one; not a number of none.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}
