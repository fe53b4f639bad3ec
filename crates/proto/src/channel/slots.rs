//! Memory that peers write to and send into: slots, receive buffers, mailboxes, and what may be spent on them.

use super::Settings;
use super::headers::HeaderCache;
use super::peer::WINDOW;
use fabric::{Fault, Local, Region, Remote, Rights, Span, Verbs, VerbsCaps};

/// The adapter that carries frames, but for those that come behind what another one has written.
/// Long messages are what several adapters are for.
pub(super) const RAIL: usize = 0;

/// Slots in this rank's memory that one peer writes. Each frame names the slot of the next.
pub(super) struct RingIn {
    memory: Span,
    region: Region,
    slots: usize,
    slot_bytes: usize,
    /// The slot of the oldest frame, and how many frames came before it.
    here: u8,
    at: u64,
    /// The same for the oldest frame whose word of acknowledgement has not been read.
    unread: u8,
    read: u64,
    /// The connection has ended: nothing more is written there.
    pub is_closed: bool,
    /// Of the last frame.
    pub headers: HeaderCache,
}

impl RingIn {
    /// Slots in `memory`, which holds zeros.
    pub fn new(verbs: &mut impl Verbs, memory: (Span, Region), slots: usize, slot_bytes: usize) -> RingIn {
        let (memory, region) = memory;
        // A page that is read before it has been written is given twice by the kernel. A pair that has little
        // under way uses the first two slots.
        for slot in 1..=2 {
            verbs.store(memory.addr + slot * slot_bytes - 8, 0);
        }
        let headers = HeaderCache::default();
        RingIn {
            memory,
            region,
            slots,
            slot_bytes,
            here: 0,
            at: 0,
            unread: 0,
            read: 0,
            is_closed: false,
            headers,
        }
    }

    /// Whether no frame lies there, if nothing more is written: each names the slot of the next.
    pub fn is_empty(&self, verbs: &impl Verbs) -> bool {
        verbs.load(self.end() - 8) == 0
    }

    /// What the peer must know of it.
    pub fn offer(&self) -> wire::slot::Ring {
        wire::slot::Ring {
            addr: self.memory.addr as u64,
            key: self.region.remote,
            slots: self.slots as u32,
            slot_bytes: self.slot_bytes as u32,
        }
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Where the oldest frame ends: frames lie at the end of their slot, so that the word to look
    /// at is always the same.
    pub fn end(&self) -> usize {
        self.end_of(self.here)
    }

    /// Where the oldest frame ends whose acknowledgement has not been read, if there can be one.
    pub fn unread_end(&self) -> Option<usize> {
        (self.read - self.at < self.slots as u64).then(|| self.end_of(self.unread))
    }

    /// Whether that of the oldest frame has been read.
    pub fn is_read(&self) -> bool {
        self.read > self.at
    }

    /// An acknowledgement has been read in a frame that names this next slot.
    pub fn read_one(&mut self, next: u8) {
        self.read += 1;
        self.unread = next;
    }

    /// Makes the slot of the oldest frame empty.
    pub fn advance(&mut self, verbs: &mut impl Verbs, next: u8) {
        verbs.store(self.end() - 8, 0);
        self.at += 1;
        self.here = next;
    }

    fn end_of(&self, slot: u8) -> usize {
        self.memory.addr + (slot as usize + 1) * self.slot_bytes
    }
}

/// Slots in the memory of a peer that this rank writes: always the lowest one that is free, so that
/// a pair that has little under way touches little memory.
pub(super) struct RingOut {
    ring: wire::slot::Ring,
    /// The slot of the next frame, which the peer knows.
    here: u8,
    /// Those that are free beside it, a bit each.
    free: u64,
    /// The connection has ended: nothing more may be written there.
    pub is_closed: bool,
    /// Of the last frame.
    pub headers: HeaderCache,
    /// At n mod [`WINDOW`]: the slot of frame n, or [`NO_SLOT`].
    frames: [u8; WINDOW as usize],
}

/// The frame went by Send/Recv.
const NO_SLOT: u8 = u8::MAX;

impl RingOut {
    pub fn new(ring: wire::slot::Ring) -> RingOut {
        let (headers, frames) = (HeaderCache::default(), [NO_SLOT; WINDOW as usize]);
        RingOut { ring, here: 0, free: (1 << ring.slots) - 2, is_closed: false, headers, frames }
    }

    /// Whether the peer has taken all frames that were written there.
    pub fn is_empty(&self) -> bool {
        self.free.count_ones() + 1 == self.ring.slots
    }

    /// Whether a frame can be written: there must be a slot for the one after it.
    pub fn has_credit(&self) -> bool {
        self.free != 0
    }

    /// The slot of the frame after the next.
    pub fn next(&self) -> u8 {
        self.free.trailing_zeros() as u8
    }

    pub fn slot_bytes(&self) -> usize {
        self.ring.slot_bytes as usize
    }

    /// Where to write a frame of `len` bytes.
    pub fn place(&self, len: usize) -> Remote {
        let behind = (self.here as u64 + 1) * self.ring.slot_bytes as u64;
        let addr = self.ring.addr.wrapping_add(behind).wrapping_sub(len as u64);
        Remote { addr, key: self.ring.key }
    }

    /// Frame `number` was written and named this slot as the next.
    pub fn written(&mut self, number: u64, next: u8) {
        self.free &= !(1 << next);
        self.frames[(number % WINDOW) as usize] = std::mem::replace(&mut self.here, next);
    }

    /// Frame `number` went by Send/Recv.
    pub fn passed(&mut self, number: u64) {
        self.frames[(number % WINDOW) as usize] = NO_SLOT;
    }

    /// The peer has taken frame `number`: whether it was in a slot, which is free again then.
    pub fn taken(&mut self, number: u64) -> bool {
        match self.frames[(number % WINDOW) as usize] {
            NO_SLOT => false,
            slot => {
                self.free |= 1 << slot;
                true
            }
        }
    }
}

/// Words that peers write to say how many frames they have taken: one each.
#[derive(Default)]
pub(super) struct Mailboxes {
    page: Span,
    region: Region,
    used: usize,
}

impl Mailboxes {
    const PAGE: usize = 4096;

    /// A word of zeros, and what a peer must know to write it.
    pub fn open(&mut self, verbs: &mut impl Verbs) -> Result<Remote, Fault> {
        if self.used == self.page.len {
            let page = verbs.allocate(Self::PAGE);
            self.region = verbs.register(RAIL, page, Rights::REMOTE_WRITE)?;
            (self.page, self.used) = (page, 0);
        }
        let addr = self.page.addr + self.used;
        self.used += 8;
        Ok(self.region.remote(addr))
    }
}

/// Messages of a peer that need no credit and may be under way at a time: an introduction, news of credits of which the next waits for
/// frames, a word of leave.
const WITHOUT_CREDIT: usize = 4;

impl Settings {
    /// With a buffer for each message that may come, where one that finds none would break its connection.
    pub(super) fn reserve(mut self, caps: &VerbsCaps, peers: usize) -> Result<Settings, Fault> {
        let (Some(most), peers) = (caps.holds_receives, peers.max(1)) else { return Ok(self) };
        let least = 2 + WITHOUT_CREDIT;
        let each = (self.window + WITHOUT_CREDIT).min(most / peers);
        if each < least {
            return Err(Fault::Device(format!(
                "messages of {peers} peers may come at a time, and an adapter here has receive buffers for those of {}: one that finds \
                 none would break its connection",
                most / least
            )));
        }
        (self.window, self.buffers) = (each - WITHOUT_CREDIT, each * peers);
        Ok(self)
    }
}

/// Buffers for messages of any peer, posted again when they have been read. An adapter goes through
/// all that are posted, so only some are until more are needed.
pub(super) struct Receives {
    rails: Vec<Buffers>,
    /// Buffers of each adapter, which are numbered through.
    number: usize,
}

impl Receives {
    /// Buffers of these lengths, one for each adapter.
    pub fn new(verbs: &mut impl Verbs, lens: &[usize], number: usize) -> Result<Receives, Fault> {
        let mut rails = Vec::new();
        for (rail, len) in lens.iter().enumerate() {
            rails.push(Buffers::new(verbs, rail, *len, number)?);
        }
        Ok(Receives { rails, number })
    }

    /// A buffer is free.
    pub fn post(&mut self, verbs: &mut impl Verbs, index: u32) {
        let (rail, at) = self.place(index);
        self.rails[rail].post(verbs, at);
    }

    /// A message has come into one.
    pub fn filled(&mut self, verbs: &mut impl Verbs, index: u32) {
        let (rail, _) = self.place(index);
        self.rails[rail].filled(verbs);
    }

    /// Another buffer takes the place of this one.
    pub fn replace(&mut self, index: u32, by: Local) {
        let (rail, at) = self.place(index);
        self.rails[rail].replace(at, by);
    }

    pub fn span(&self, index: u32) -> Span {
        let (rail, at) = self.place(index);
        self.rails[rail].buffer(at).span
    }

    fn place(&self, index: u32) -> (usize, u32) {
        (index as usize / self.number, (index as usize % self.number) as u32)
    }
}

/// The receive buffers of one adapter.
struct Buffers {
    rail: usize,
    memory: Local,
    buffer_bytes: usize,
    /// What has taken the place of buffers in that memory; empty while nothing has.
    replaced: Vec<Option<Local>>,
    /// How many are posted at first, and added at a time.
    step: u32,
    /// Buffers that have ever been posted, and how many of them wait for a message.
    used: u32,
    waiting: u32,
    number: u32,
}

impl Buffers {
    fn new(
        verbs: &mut impl Verbs,
        rail: usize,
        buffer_bytes: usize,
        number: usize,
    ) -> Result<Buffers, Fault> {
        let buffer_bytes = buffer_bytes.next_multiple_of(8);
        let span = verbs.allocate(buffer_bytes * number);
        let memory = verbs.register(rail, span, Rights::LOCAL_WRITE)?.local(span);
        let number = number as u32;
        // Where a message that finds none breaks its connection all wait from the first.
        let step = if verbs.caps().holds_receives.is_some() { number } else { (number / 8).max(4) };
        let replaced = Vec::new();
        let mut buffers = Buffers { rail, memory, buffer_bytes, replaced, step, used: 0, waiting: 0, number };
        buffers.grow(verbs);
        Ok(buffers)
    }

    fn post(&mut self, verbs: &mut impl Verbs, at: u32) {
        self.waiting += 1;
        let index = self.rail as u32 * self.number + at;
        verbs.post_receive(self.rail, self.buffer(at), super::Work::Receive(index).encode());
    }

    fn filled(&mut self, verbs: &mut impl Verbs) {
        self.waiting -= 1;
        if 2 * self.waiting < self.step {
            self.grow(verbs);
        }
    }

    fn buffer(&self, at: u32) -> Local {
        let place = self.memory.span.part(at as usize * self.buffer_bytes, self.buffer_bytes);
        let replaced = self.replaced.get(at as usize).copied().flatten();
        replaced.unwrap_or(Local { span: place, key: self.memory.key })
    }

    fn replace(&mut self, at: u32, by: Local) {
        if self.replaced.is_empty() {
            self.replaced = vec![None; self.number as usize];
        }
        self.replaced[at as usize] = Some(by);
    }

    fn grow(&mut self, verbs: &mut impl Verbs) {
        let end = self.number.min(self.used + self.step);
        (self.used..end).for_each(|index| self.post(verbs, index));
        self.used = end;
    }
}

/// What may be spent on slots for peers.
pub(super) struct Budget {
    peers: usize,
    bytes: usize,
    /// Memory of slots that were given back, which the next peer gets: all rings have one length.
    spare: Vec<Span>,
}

impl Budget {
    pub fn new(peers: usize, bytes: usize) -> Budget {
        Budget { peers, bytes, spare: Vec::new() }
    }

    /// Whether there is what the ring of one more peer needs.
    pub fn has(&self, bytes: usize) -> bool {
        self.peers > 0 && self.bytes >= bytes
    }

    /// Takes the memory for it, which holds zeros where frames end.
    pub fn take(&mut self, verbs: &mut impl Verbs, bytes: usize) -> Result<(Span, Region), Fault> {
        let span = self.spare.pop().unwrap_or_else(|| verbs.allocate(bytes));
        let region =
            verbs.register(RAIL, span, Rights::REMOTE_WRITE).inspect_err(|_| self.spare.push(span))?;
        self.peers -= 1;
        self.bytes -= bytes;
        Ok((span, region))
    }

    /// The peer writes there no more, and what it has written is taken.
    pub fn give_back(&mut self, verbs: &mut impl Verbs, ring: RingIn) {
        let span = ring.memory;
        verbs.deregister(RAIL, ring.region);
        for end in (0..ring.slots).map(|slot| ring.end_of(slot as u8)) {
            // What a peer has left that keeps to no rules is not to be blamed on the next one. A page that nobody has touched stays so.
            if verbs.load(end - 8) != 0 {
                verbs.store(end - 8, 0);
            }
        }
        self.spare.push(span);
        self.peers += 1;
        self.bytes += span.len;
    }
}
