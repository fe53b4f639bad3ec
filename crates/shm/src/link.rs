//! What this rank keeps for one peer.

use crate::bytes;
use crate::layout::Layout;
use crate::nap;
use crate::ring::{CELLS, Cell, Consumer, Producer, Seen, Turn};
use crate::segment::Segment;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use fabric::Span;
use std::sync::atomic::AtomicU8;

/// No slot hangs on a ring position.
pub const NO_SLOT: u8 = u8::MAX;

/// Whether memory of the peer can be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Not tried yet.
    Unknown,
    /// By single copy, with this process id.
    Yes(i32),
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
    /// The peer's sleep word.
    pub sleep: &'static AtomicU32,
    /// Our byte among the peer's «opened» bytes.
    pub announce: &'static AtomicU8,
    /// Whether we have announced ourselves.
    pub open: bool,
    pub reach: Reach,
    /// Slot that hangs on each ring position.
    pub slot_of: [u8; CELLS],
    /// Ring position up to which slots have been taken back.
    pub reclaimed: u32,
}

impl Link {
    /// The link between `me` and `peer`.
    pub fn new(segment: &Segment, layout: &Layout, me: usize, peer: usize) -> Link {
        // SAFETY: offsets come from the layout of this very segment: aligned, inside, and of
        // the type that every rank uses there.
        unsafe {
            let cells = |from, to| {
                std::slice::from_raw_parts(segment.at(layout.ring(from, to)) as *const Cell, CELLS)
            };
            Link {
                tx: Producer::new(cells(me, peer), word32(segment.at(layout.credit(me, peer)))),
                rx: Consumer::new(cells(peer, me), word32(segment.at(layout.credit(peer, me)))),
                turn: (me != peer)
                    .then(|| Turn::new(&*(segment.at(layout.turn(me, peer)) as *const Cell), me < peer)),
                heard: false,
                sleep: word32(segment.at(layout.sleep(peer))),
                announce: &*((segment.at(layout.opened(peer)) + me) as *const AtomicU8),
                open: false,
                reach: Reach::Unknown,
                slot_of: [NO_SLOT; CELLS],
                reclaimed: 0,
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

    /// The oldest frame, if it has come.
    #[inline(always)]
    pub fn peek(&self) -> Option<Seen> {
        self.rx.peek(self.turn.as_ref())
    }

    /// Gives up the oldest frame, which [`Link::peek`] has shown.
    #[inline(always)]
    pub fn pop(&mut self, seen: &Seen) {
        if self.rx.pop(self.turn.as_mut(), seen) {
            self.rouse(); // it may sleep because the ring was full
        }
    }

    /// Where the payload of a frame lies, unless it is in a slot.
    #[inline(always)]
    pub fn payload_addr(&self, seen: &Seen) -> usize {
        self.rx.payload_addr(self.turn.as_ref(), seen)
    }

    /// The index of the slot a frame lies in, as its sender says.
    #[inline(always)]
    pub fn slot(&self, seen: &Seen) -> usize {
        self.rx.payload(self.turn.as_ref(), seen) as usize
    }

    /// How many bytes of a frame in a slot are written.
    #[inline(always)]
    pub fn written(&self, seen: &Seen) -> usize {
        self.rx.written(self.turn.as_ref(), seen)
    }

    /// Wakes the peer if it sleeps.
    #[inline(always)]
    pub fn rouse(&self) {
        // The sleeper's membarrier orders the processor; the compiler must not look first either.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        if self.sleep.load(Ordering::Relaxed) != 0 {
            nap::wake(self.sleep);
        }
    }

    /// Process id, probe address and probe value of the peer, once it has written them.
    pub fn identity(segment: &Segment, layout: &Layout, peer: usize) -> Option<(i32, usize, u64)> {
        let at = segment.at(layout.identity(peer));
        // SAFETY: three aligned words inside the segment.
        let [pid, addr, value] = unsafe { [word64(at), word64(at + 8), word64(at + 16)] };
        let pid = pid.load(Ordering::Acquire) as i32;
        (pid != 0).then(|| (pid, addr.load(Ordering::Relaxed) as usize, value.load(Ordering::Relaxed)))
    }

    /// Writes this process's identity.
    pub fn introduce(segment: &Segment, layout: &Layout, me: usize, addr: usize, value: u64) {
        let at = segment.at(layout.identity(me));
        // SAFETY: three aligned words inside the segment.
        let [pid, to, with] = unsafe { [word64(at), word64(at + 8), word64(at + 16)] };
        to.store(addr as u64, Ordering::Relaxed);
        with.store(value, Ordering::Relaxed);
        pid.store(std::process::id() as u64, Ordering::Release);
    }

    /// Withdraws the identity: whoever leaves in order is not taken for dead.
    pub fn take_leave(segment: &Segment, layout: &Layout, me: usize) {
        // SAFETY: an aligned word inside the segment.
        unsafe { word64(segment.at(layout.identity(me))) }.store(0, Ordering::Release);
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
