//! What this rank keeps for one peer.

use crate::berth::Berth;
use crate::bytes;
use crate::layout::Layout;
use crate::lending::{Held, Lending};
use crate::loads::{LoadWay, Loads};
use crate::nap;
use crate::openings::Openings;
use crate::pool::Block;
use crate::retained::Retained;
use crate::ring::{CELLS, Cell, Consumer, Producer, Seen, TURN_LINES, Turn};
use crate::segment::Segment;
use crate::stores::{Place, Plan, StoreWay, Stores, Told};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use fabric::Span;

/// Whether memory of the peer can be reached.
pub enum Reach {
    /// Not tried yet.
    Unknown,
    /// By single copy, with this process id, as was seen last at this time by the number at this address.
    Yes { pid: i32, addr: usize, value: u64, seen_ms: i64 },
    /// Not permitted.
    No,
}

/// Both rings and the words of one peer.
///
/// The references are `'static` because they point into the segment; the device that owns the
/// links owns the segment too and drops it last.
pub struct Link {
    pub tx: Producer<'static>,
    pub rx: Consumer<'static>,
    /// The cell written in turn; none towards this rank itself.
    pub turn: Option<Turn<'static>>,
    /// Whether the peer has announced itself here.
    pub heard: bool,
    /// Where the peer sleeps.
    pub berth: &'static Berth,
    /// Whether our ring is backed and announced.
    pub open: bool,
    pub reach: Reach,
    /// The block that hangs on each ring position.
    pub block_of: [Block; CELLS],
    /// How payloads are written into blocks.
    pub stores: Stores,
    /// How those of the peer are read out of them.
    pub loads: Loads,
    /// In the line of the credits: what the peer measured, and what is measured for it.
    told: &'static AtomicU64,
    tell: &'static AtomicU64,
    costs_heard: u32,
    /// The position behind the last frame whose reader was asked for what it measures: only until its credit has come
    /// answers are looked for, because that line may have gone back to the peer since the credit was read.
    asked: Option<u32>,
    costs_told: u32,
    /// Ring position up to which blocks have been taken back.
    pub reclaimed: u32,
    /// Payloads of the peer that are still in use.
    pub retained: Retained,
    /// Blocks that go to and fro.
    pub lending: Lending,
}

impl Link {
    /// The link between `me` and `peer`, whose payloads are written in one of these ways and read in one of those.
    pub fn new(
        segment: &Segment,
        layout: &Layout,
        me: usize,
        peer: usize,
        (ways, load_ways): (&'static [StoreWay], &'static [LoadWay]),
    ) -> Link {
        // SAFETY: offsets come from the layout of this very segment: aligned, inside, and of
        // the type that every rank uses there.
        unsafe {
            let cells = |from, to| {
                std::slice::from_raw_parts(segment.at(layout.ring(from, to)) as *const Cell, CELLS)
            };
            Link {
                tx: Producer::new(cells(me, peer), word32(segment.at(layout.credit(me, peer)))),
                rx: Consumer::new(cells(peer, me), word32(segment.at(layout.credit(peer, me)))),
                turn: (me != peer).then(|| {
                    Turn::new(&*(segment.at(layout.turn(me, peer)) as *const [Cell; TURN_LINES]), me < peer)
                }),
                heard: false,
                berth: berth(segment, layout, peer),
                open: false,
                reach: Reach::Unknown,
                block_of: [Block::NONE; CELLS],
                stores: Stores::new(ways),
                loads: Loads::new(load_ways),
                told: word64(segment.at(layout.told(me, peer))),
                tell: word64(segment.at(layout.told(peer, me))),
                costs_heard: 0,
                asked: None,
                costs_told: 0,
                reclaimed: 0,
                retained: Retained::default(),
                lending: Lending::new(
                    word32(segment.at(layout.given_back(me, peer))),
                    word32(segment.at(layout.given_back(peer, me))),
                ),
            }
        }
    }

    /// Puts a frame that fits a cell into the ring, which has room.
    #[inline(always)]
    pub fn push_inline(&mut self, head: [u64; 2], data: Span) {
        // SAFETY: a buffer of this process.
        let word = |i| unsafe { bytes::word(data.addr, data.len, i) };
        self.tx.push(self.turn.as_mut(), head, data.len as u16, 0, data.len.div_ceil(8), word);
    }

    /// Puts a frame of more than a cell into the turn cell, whose payload is longer, if this side has it; there is room.
    #[inline]
    pub fn push_in_turn(&mut self, head: [u64; 2], data: Span) -> bool {
        // SAFETY: a buffer of this process; the lines of the turn cell, which are this side's.
        let write = |into| unsafe { bytes::copy(into, data.addr, data.len) };
        self.tx.push_in_turn(self.turn.as_mut(), head, data.len as u16, write)
    }

    /// The oldest frame, if it has come.
    #[inline(always)]
    pub fn peek(&self) -> Option<Seen> {
        self.rx.peek(self.turn.as_ref())
    }

    /// Gives up the oldest frame, which [`Link::peek`] has shown; whether a block `hangs` on its position.
    #[inline(always)]
    pub fn pop(&mut self, seen: &Seen, hangs: bool) {
        if self.rx.pop(self.turn.as_mut(), seen, hangs) {
            self.rouse(); // it may sleep because the ring was full
        }
    }

    /// The payload of the oldest frame stays where it is, `data`, when the frame is popped; see [`Retained::add`].
    pub fn retain(&mut self, (data, plan, held): (Span, Plan, Option<Held>), most: usize) -> bool {
        let retains = self.retained.add(self.rx.head(), (data, plan, held), most);
        if retains {
            self.rx.keep_back(self.retained.oldest());
        }
        retains
    }

    /// Gives such a payload up, and says whether its block can be written now.
    pub fn release(&mut self, data: Span) -> Option<Held> {
        let held = self.retained.remove(data.addr);
        self.rx.keep_back(self.retained.oldest());
        self.rouse();
        held
    }

    /// Whether the payload of the oldest frame is to stay.
    pub fn retains_oldest(&self) -> bool {
        self.retained.latest() == Some(self.rx.head())
    }

    /// Whether the peer may soon find no room because of what is retained.
    pub fn is_pressed(&self, most: usize) -> bool {
        self.retained.presses(self.rx.head(), most)
    }

    /// Where the payload of a frame lies, unless it is in a block.
    #[inline(always)]
    pub fn payload_addr(&self, seen: &Seen) -> usize {
        self.rx.payload_addr(self.turn.as_ref(), seen)
    }

    /// The block a frame lies in, as its sender says.
    #[inline(always)]
    pub fn place(&self, seen: &Seen) -> Place {
        Place::unpack(self.rx.payload(self.turn.as_ref(), seen))
    }

    /// Tells the peer what it takes to read what it writes in one way; it sees that with the next credit.
    pub fn tell_cost(&mut self, told: Told) {
        self.costs_told = self.costs_told.wrapping_add(1);
        self.tell.store(told.pack(self.costs_told), Ordering::Relaxed);
    }

    /// A frame has been pushed whose reader is asked what it takes to read.
    pub fn ask_cost(&mut self) {
        self.asked = Some(self.tx.tail());
    }

    /// Whether an answer may still come.
    #[inline(always)]
    pub fn awaits_cost(&self) -> bool {
        self.asked.is_some()
    }

    /// Takes in what the peer has told of that, after the credits have been looked at.
    #[inline]
    pub fn hear_cost(&mut self) {
        if let Some(asked) = self.asked {
            self.hear_cost_of(asked);
        }
    }

    #[cold]
    fn hear_cost_of(&mut self, asked: u32) {
        if self.tx.head().wrapping_sub(asked) as i32 >= 0 {
            self.asked = None; // what it has told came before the credit
        }
        let word = self.told.load(Ordering::Relaxed);
        if word as u32 != self.costs_heard {
            self.costs_heard = word as u32;
            self.stores.read_took(Told::unpack(word));
        }
    }

    /// How many bytes of a frame in a block are written.
    #[inline(always)]
    pub fn written(&self, seen: &Seen) -> usize {
        self.rx.written(self.turn.as_ref(), seen)
    }

    /// Wakes the peer if it sleeps.
    #[inline(always)]
    pub fn rouse(&self) {
        // The sleeper's membarrier orders the processor; the compiler must not look first either.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        if self.berth.load() & nap::ALL != 0 {
            self.berth.wake(nap::ALL);
        }
    }

    /// Process id, probe address and probe value of the peer, once it has written them.
    pub fn identity(segment: &Segment, layout: &Layout, peer: usize) -> Option<(i32, usize, u64)> {
        let [pid, addr, value, _] = identity(segment, layout, peer);
        let pid = pid.load(Ordering::Acquire) as i32;
        (pid != 0).then(|| (pid, addr.load(Ordering::Relaxed) as usize, value.load(Ordering::Relaxed)))
    }

    /// Writes this process's identity.
    pub fn introduce(segment: &Segment, layout: &Layout, me: usize, probe: &AtomicU64) {
        let [pid, addr, value, marked] = identity(segment, layout, me);
        addr.store(probe.as_ptr() as u64, Ordering::Relaxed);
        value.store(probe.load(Ordering::Relaxed), Ordering::Relaxed);
        pid.store(std::process::id() as u64, Ordering::Release);
        marked.store(segment.mark_alive(me) as u64, Ordering::Release);
    }

    /// Whether the peer has ended without taking leave.
    pub fn is_gone(segment: &Segment, layout: &Layout, peer: usize) -> bool {
        let [.., marked] = identity(segment, layout, peer);
        // It may take leave between the two looks at it.
        marked.load(Ordering::Acquire) != 0
            && segment.is_unmarked(peer)
            && marked.load(Ordering::Acquire) != 0
    }

    /// Withdraws the identity: whoever leaves in order is not taken for dead.
    pub fn take_leave(segment: &Segment, layout: &Layout, me: usize) {
        let [pid, .., marked] = identity(segment, layout, me);
        marked.store(0, Ordering::Release);
        pid.store(0, Ordering::Release);
    }

    /// The block that hangs on the position of the next frame.
    #[inline(always)]
    pub fn hanging(&self) -> Block {
        self.block_of[self.tx.tail() as usize % CELLS]
    }

    /// Hangs a block on the position of the next frame, on which nothing hangs.
    #[inline]
    pub fn hang(&mut self, block: Block) {
        assert!(self.hanging() == Block::NONE, "a block is in flight at this position");
        self.block_of[self.tx.tail() as usize % CELLS] = block;
    }
}

/// Process id, address and value of the probe, and whether the rank has marked that it lives.
fn identity(segment: &Segment, layout: &Layout, rank: usize) -> [&'static AtomicU64; 4] {
    let at = segment.at(layout.identity(rank));
    // SAFETY: four aligned words inside the segment.
    unsafe { [0, 8, 16, 24].map(|offset| word64(at + offset)) }
}

/// Where a rank sleeps; `'static` as in [`Link`].
pub fn berth(segment: &Segment, layout: &Layout, rank: usize) -> &'static Berth {
    // SAFETY: the beginning of a line of the segment that is used for nothing else; all zero is a berth in which
    // nobody sleeps.
    unsafe { &*(segment.at(layout.sleep(rank)) as *const Berth) }
}

/// The list of those who have begun to send to `rank`; `'static` as in [`Link`].
pub fn openings(segment: &Segment, layout: &Layout, rank: usize) -> Openings<'static> {
    // SAFETY: aligned words of the segment, as many as the layout has there.
    unsafe {
        let next = segment.at(layout.opened(rank, 0)) as *const AtomicU32;
        Openings::new(
            word32(segment.at(layout.openings(rank))),
            std::slice::from_raw_parts(next, layout.ranks()),
        )
    }
}

/// # Safety
/// `addr` must be an aligned word of the segment that only atomics touch.
pub unsafe fn word32(addr: usize) -> &'static AtomicU32 {
    // SAFETY: passed on to the caller.
    unsafe { &*(addr as *const AtomicU32) }
}

/// # Safety
/// As [`word32`].
pub unsafe fn word64(addr: usize) -> &'static AtomicU64 {
    // SAFETY: passed on to the caller.
    unsafe { &*(addr as *const AtomicU64) }
}
