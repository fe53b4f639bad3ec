//! Registered memory of the library, cut into slots.

use fabric::{Fault, Local, Remote, Span, Verbs};

/// The adapter that carries frames: one per pair of ranks, or order would be lost. Long messages
/// are what several adapters are for.
pub(super) const RAIL: usize = 0;

/// Slots from which frames are sent: taken when a frame is posted, free when the work has ended.
pub(super) struct Pool {
    slot_bytes: usize,
    limit: usize,
    /// First slot and key, once the memory is there: a rank that sends nothing needs none.
    memory: Option<Local>,
    /// A stack: the slot used last is the one whose pages and lines are at hand.
    free: Vec<u32>,
    /// The work of the engine that ends with the slot's.
    then: Vec<Option<u64>>,
}

impl Pool {
    pub fn new(slot_bytes: usize, limit: usize) -> Pool {
        let slot_bytes = slot_bytes.next_multiple_of(8);
        Pool { slot_bytes, limit, memory: None, free: Vec::new(), then: Vec::new() }
    }

    /// A free slot: its index and its memory.
    pub fn take(&mut self, verbs: &mut impl Verbs) -> Result<Option<(u32, Local)>, Fault> {
        let memory = match self.memory {
            Some(memory) => memory,
            None => self.open(verbs)?,
        };
        let Some(index) = self.free.pop() else { return Ok(None) };
        let span = memory.span.part(index as usize * self.slot_bytes, self.slot_bytes);
        Ok(Some((index, Local { span, key: memory.key })))
    }

    #[cold]
    fn open(&mut self, verbs: &mut impl Verbs) -> Result<Local, Fault> {
        let span = verbs.allocate(self.slot_bytes * self.limit);
        let memory = Local { span, key: verbs.register(RAIL, span)? };
        self.free = (0..self.limit as u32).rev().collect();
        self.then = vec![None; self.limit];
        self.memory = Some(memory);
        Ok(memory)
    }

    /// Says which work of the engine ends together with this slot's.
    pub fn and_then(&mut self, index: u32, work: Option<u64>) {
        self.then[index as usize] = work;
    }

    /// The slot is free again; the work of the engine that ends with it.
    pub fn give_back(&mut self, index: u32) -> Option<u64> {
        self.free.push(index);
        self.then[index as usize].take()
    }
}

/// Slots in this rank's memory that one peer writes.
pub(super) struct RingIn {
    memory: Local,
    slots: usize,
    slot_bytes: usize,
    /// Frames taken out of it.
    at: u64,
    /// Frames whose word of acknowledgement has been read; not behind `at`.
    pub scanned: u64,
}

impl RingIn {
    pub fn new(memory: Local, slots: usize, slot_bytes: usize) -> RingIn {
        RingIn { memory, slots, slot_bytes, at: 0, scanned: 0 }
    }

    /// What the peer must know of it.
    pub fn offer(&self) -> wire::slot::Ring {
        wire::slot::Ring {
            addr: self.memory.span.addr as u64,
            key: self.memory.key,
            slots: self.slots as u32,
            slot_bytes: self.slot_bytes as u32,
        }
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn slots(&self) -> u64 {
        self.slots as u64
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Where the frame with this number ends: frames lie at the end of their slot, so that the word
    /// to look at is always the same.
    pub fn end_of(&self, number: u64) -> usize {
        self.memory.span.addr + (number as usize % self.slots + 1) * self.slot_bytes
    }

    /// Makes the slot of the oldest frame empty.
    pub fn advance(&mut self, verbs: &mut impl Verbs) {
        verbs.store(self.end_of(self.at) - 8, 0);
        self.at += 1;
        self.scanned = self.scanned.max(self.at);
    }
}

/// Slots in the memory of a peer that this rank writes.
pub(super) struct RingOut {
    ring: wire::slot::Ring,
    /// Frames written.
    at: u64,
    /// Of those, how many the peer has not taken.
    pub held: u32,
}

impl RingOut {
    pub fn new(ring: wire::slot::Ring) -> RingOut {
        RingOut { ring, at: 0, held: 0 }
    }

    pub fn has_credit(&self) -> bool {
        self.held < self.ring.slots
    }

    pub fn slot_bytes(&self) -> usize {
        self.ring.slot_bytes as usize
    }

    /// Where to write a frame of `len` bytes.
    pub fn place(&self, len: usize) -> Remote {
        let slot = self.at % self.ring.slots as u64 + 1;
        let end = self.ring.addr.wrapping_add(slot * self.ring.slot_bytes as u64);
        Remote { addr: end.wrapping_sub(len as u64), key: self.ring.key }
    }

    pub fn written(&mut self) {
        self.at += 1;
        self.held += 1;
    }
}

/// Words that peers write to say how many frames they have taken: one each.
#[derive(Default)]
pub(super) struct Mailboxes {
    page: Local,
    used: usize,
}

impl Mailboxes {
    const PAGE: usize = 4096;

    /// A word of zeros, and what a peer must know to write it.
    pub fn open(&mut self, verbs: &mut impl Verbs) -> Result<Remote, Fault> {
        if self.used == self.page.span.len {
            let span = verbs.allocate(Self::PAGE);
            self.page = Local { span, key: verbs.register(RAIL, span)? };
            self.used = 0;
        }
        let addr = (self.page.span.addr + self.used) as u64;
        self.used += 8;
        Ok(Remote { addr, key: self.page.key })
    }
}

/// Buffers for messages of any peer, posted again when they have been read.
pub(super) struct Receives {
    memory: Local,
    buffer_bytes: usize,
}

impl Receives {
    /// Posts all of them.
    pub fn new(verbs: &mut impl Verbs, buffer_bytes: usize, number: usize) -> Result<Receives, Fault> {
        let buffer_bytes = buffer_bytes.next_multiple_of(8);
        let span = verbs.allocate(buffer_bytes * number);
        let memory = Local { span, key: verbs.register(RAIL, span)? };
        let receives = Receives { memory, buffer_bytes };
        (0..number as u32).for_each(|index| receives.post(verbs, index));
        Ok(receives)
    }

    pub fn post(&self, verbs: &mut impl Verbs, index: u32) {
        let buffer = Local { span: self.span(index), key: self.memory.key };
        verbs.post_receive(buffer, super::Work::Receive(index).encode());
    }

    pub fn span(&self, index: u32) -> Span {
        self.memory.span.part(index as usize * self.buffer_bytes, self.buffer_bytes)
    }
}

/// What may be spent on slots for peers.
pub(super) struct Budget {
    pub peers: usize,
    pub bytes: usize,
}

impl Budget {
    /// Takes what the ring of one more peer needs; false if it is not there.
    pub fn take(&mut self, bytes: usize) -> bool {
        let enough = self.peers > 0 && self.bytes >= bytes;
        if enough {
            self.peers -= 1;
            self.bytes -= bytes;
        }
        enough
    }
}
