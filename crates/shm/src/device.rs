//! The device: frames through rings and blocks of shared memory, remote access by single copy.

mod blocks;
mod lends;
mod reach;
mod room;
mod waits;

use crate::bell::ShmBell;
use crate::berth::{Berth, Descriptors, Ring};
use crate::bytes;
use crate::cma::{self, Direction};
use crate::layout::Layout;
use crate::link::{self, Link, Reach};
pub use crate::loads::LoadWay;
use crate::nap::{self, LONG_YIELDS, Patience, Stage};
use crate::openings::{Mark, Openings};
use crate::pool::{self, BLOCK_BYTES, Block, GRANULE, GRANULES, Pool};
use crate::ring::{IN_BLOCK, INLINE, TURN_BYTES};
use crate::segment::Segment;
use crate::shares::ShmShares;
pub use crate::stores::StoreWay;
use crate::sync::{AtomicU64, Ordering};
use crate::watched;
use blocks::BlockFrame;
use fabric::{Bell, Caps, Costs, Device, Distance, Exchange, Fault, Frame, Immediate, Rank, Reading, Span};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use waits::ShmNap;

/// A frame is announced when this much of it is written, and again after each such piece: its
/// receiver copies it out of the block while the rest is copied in.
const CHUNK: usize = 2048;
/// In how many checks all peers are looked at once, whether they have died, and the time between two.
const CHECKS: usize = 64;
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// What a rank is told at its start.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory of the segment.
    pub dir: PathBuf,
    /// How its name begins, before the random part: the launcher removes what killed ranks leave.
    pub prefix: String,
    /// Whether single copy may be used if the kernel permits it.
    pub single_copy: bool,
    /// Number of cores these ranks share.
    pub cores: usize,
    /// How payloads are written into shared memory; chosen by measurement if none is given.
    pub stores: Option<StoreWay>,
    /// How they are read out of it; the same.
    pub loads: Option<LoadWay>,
}

/// One rank of a job whose ranks share a host.
pub struct Shm {
    me: Rank,
    links: Vec<Link>,
    /// Who has begun to send here, up to where that has been read, and those named there.
    openings: Openings<'static>,
    read: Mark,
    sources: Vec<Rank>,
    /// Bytes between two announcements of one frame.
    chunk: usize,
    /// Where the oldest frame of each rank has been copied to in part, if its sender stopped
    /// writing it.
    begun: Vec<Option<usize>>,
    /// Length of the last frame that was taken out of a block.
    taken: usize,
    /// The last frame in a block that was shown.
    shown: Option<BlockFrame>,
    /// Ranks with payloads that are retained, and how many bytes of each may be: half of its arena for all ranks together.
    retaining: Vec<Rank>,
    retained_most: usize,
    pool: Pool,
    /// Whether there was no memory for the last block that had none.
    is_scarce: bool,
    shares: ShmShares,
    berth: &'static Berth,
    /// What it sleeps on beside its word.
    ring: Option<Ring>,
    beside: Option<Descriptors>,
    armed: bool,
    /// How many threads of this rank wait; 0: one at a time is inside MPI.
    threads: usize,
    patience: Patience,
    has_barrier: bool,
    fault: Option<Fault>,
    /// The peer whose process was looked for last, and when to look for the next.
    checked: Rank,
    next_check: Instant,
    immediate: Immediate,
    caps: Caps,
    /// What single copy costs, as measured at the start: see [`Costs::single`].
    single: (f64, f64),
    start: Instant,
    _probe: Box<AtomicU64>,
    layout: Layout,
    segment: Segment,
}

impl Shm {
    /// Joins rank `me` of the `n` of this host with the others. `group` tells the hosts of a job apart. Collective.
    pub fn join(
        me: Rank,
        n: usize,
        group: &str,
        options: &Options,
        exchange: &mut dyn Exchange,
    ) -> Result<Shm, String> {
        let layout = Layout::new(n);
        let mut has_barrier = nap::register_barrier();
        let segment = if n == 1 {
            Segment::private(&layout)?
        } else {
            let (segment, all_have) = Segment::join((me, n, group), &layout, options, has_barrier, exchange)?;
            has_barrier = all_have;
            segment
        };
        Shm::new(me, n, options, layout, segment, has_barrier)
    }

    fn new(
        me: Rank,
        n: usize,
        options: &Options,
        layout: Layout,
        segment: Segment,
        has_barrier: bool,
    ) -> Result<Shm, String> {
        let berth = link::berth(&segment, &layout, me);
        watched::atomic(berth.word());
        watched::atomic(&LONG_YIELDS);
        cma::permit_siblings();
        let probe = Box::new(AtomicU64::new(RandomState::new().hash_one(me)));
        Link::introduce(&segment, &layout, me, &probe);
        let ways = (
            options.stores.map_or_else(StoreWay::all, StoreWay::only),
            options.loads.map_or_else(LoadWay::all, LoadWay::only),
        );
        let (remote_access, remote_access_note) = reach::try_single_copy(options, &probe);
        // A rank may be bound to one, however many the host has.
        let own_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Shm {
            me,
            links: (0..n).map(|peer| Link::new(&segment, &layout, me, peer, ways)).collect(),
            openings: link::openings(&segment, &layout, me),
            read: Mark::default(),
            sources: Vec::new(),
            // With fewer cores than ranks a sender may lose its core in the middle of a frame.
            chunk: if n <= options.cores { CHUNK } else { BLOCK_BYTES },
            begun: vec![None; n],
            taken: 0,
            shown: None,
            retaining: Vec::new(),
            retained_most: GRANULES * GRANULE / 2 / n.max(2).saturating_sub(1),
            pool: Pool::new(pool::cycle(n)),
            is_scarce: false,
            shares: ShmShares::new(me, &layout, &segment),
            berth,
            ring: None,
            beside: None,
            armed: false,
            threads: 0,
            patience: Patience::new(n, options.cores, has_barrier),
            has_barrier,
            fault: None,
            checked: me,
            next_check: Instant::now() + CHECK_EVERY,
            immediate: Immediate::default(),
            caps: Caps {
                name: "shm",
                inline_bytes: INLINE,
                frame_bytes: BLOCK_BYTES,
                at_once_bytes: 0,
                transfer_bytes: usize::MAX,
                remote_access,
                remote_access_note,
                looks: if n <= options.cores { 400 } else { 1 },
                registration: false,
                spare_cores: options.cores >= 2 * n && own_cores >= 2,
            },
            single: if remote_access { reach::measure_single_copy() } else { (0.0, 0.0) },
            start: Instant::now(),
            _probe: probe,
            layout,
            segment,
        })
    }

    /// Takes the place of a device by which this rank reached itself alone, and through which nothing is under way: its clock
    /// goes on, and its shares are where they were.
    pub fn succeed(&mut self, before: &Shm) {
        (self.start, self.threads) = (before.start, before.threads);
        self.shares.take_over(&before.shares);
    }

    /// All ranks of a job inside this process, each to be used by a thread of its own.
    pub fn local_job(n: usize, options: &Options) -> Result<Vec<Shm>, String> {
        let layout = Layout::new(n);
        let first = Segment::private(&layout)?;
        let share = std::sync::Arc::new(first);
        let has_barrier = nap::register_barrier();
        (0..n).map(|me| Shm::new(me, n, options, layout, Segment::shared(&share), has_barrier)).collect()
    }

    /// As `try_send`, in all cases.
    #[inline(never)]
    fn try_send_otherwise(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        if !self.make_room(to) {
            return false;
        }
        if data.len <= INLINE {
            self.links[to].push_inline(head, data);
        } else if data.len <= TURN_BYTES && self.links[to].push_in_turn(head, data) {
            // The whole frame has left there.
        } else if !self.send_in_block(to, head, data) {
            return false;
        }
        self.links[to].rouse();
        true
    }
}

impl Device for Shm {
    type Nap = ShmNap;
    type Shares = ShmShares;

    #[inline(always)]
    fn me(&self) -> Rank {
        self.me
    }

    #[inline(always)]
    fn size(&self) -> usize {
        self.links.len()
    }

    #[inline(always)]
    fn caps(&self, _distance: Distance) -> &Caps {
        &self.caps
    }

    fn growth(&self) -> u32 {
        self.segment.growth().load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    #[inline(always)]
    fn distance(&self, _peer: Rank) -> Distance {
        Distance::Host
    }

    fn costs(&self, _distance: Distance) -> Costs {
        Costs { single: self.single, ..Costs::default() }
    }

    #[inline(always)]
    fn try_send(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        let link = &mut self.links[to];
        let plain = data.len <= INLINE && link.open && link.hanging() == Block::NONE;
        if !plain || !link.tx.has_room() {
            return self.try_send_otherwise(to, head, data);
        }
        link.push_inline(head, data);
        link.rouse();
        true
    }

    #[inline(always)]
    fn try_send_more(&mut self, to: Rank, head: [u64; 2], data: Span) -> bool {
        let sent = self.try_send(to, head, data);
        self.links[to].tx.ask_ahead();
        sent
    }

    fn try_send_all(&mut self, to: &[Rank], head: [u64; 2], data: Span) -> usize {
        if data.len <= INLINE { 0 } else { self.send_in_shared_block(to, head, data) }
    }

    #[inline(always)]
    fn peek(&mut self, from: Rank) -> Option<Frame> {
        if !self.links[from].heard && !self.hear(from) {
            return None;
        }
        let link = &self.links[from];
        let seen = link.peek()?;
        if seen.flags & IN_BLOCK == 0 {
            if !seen.fits() {
                return self.malformed(from, "inline payload longer than a cell");
            }
            let data = Span { addr: link.payload_addr(&seen), len: seen.len as usize };
            return Some(Frame { head: seen.head, data });
        }
        let written = link.written(&seen);
        let frame = self.in_block(from, &seen)?;
        if written < frame.data.len {
            return None; // its sender is still writing it
        }
        self.shown = Some(frame);
        Some(Frame { head: seen.head, data: frame.data })
    }

    #[inline(always)]
    fn pop(&mut self, from: Rank) {
        let link = &mut self.links[from];
        if let Some(seen) = link.peek() {
            self.begun[from] = None;
            if seen.flags & IN_BLOCK != 0 {
                return self.pop_block(from, &seen);
            }
            link.pop(&seen, false);
        }
    }

    fn retain(&mut self, from: Rank) -> bool {
        let in_block = self.links[from].peek().is_some_and(|seen| seen.flags & IN_BLOCK != 0);
        in_block && self.retain_shown(from)
    }

    fn release(&mut self, from: Rank, data: Span) {
        self.release_retained(from, data);
    }

    #[inline(always)]
    fn pressed(&mut self) -> Option<Rank> {
        if self.retaining.is_empty() { None } else { self.find_pressed() }
    }

    #[inline(always)]
    fn take(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        let taken = self.take_at_once(from, head, room);
        match taken {
            Ok(_) => self.links[from].rx.ask_ahead(),
            Err(true) => self.links[from].rx.ran_dry(),
            Err(false) => {}
        }
        taken
    }

    /// As [`Shm::take`], of a message that is likely to be the only one.
    #[inline(always)]
    fn take_at_once(&mut self, from: Rank, head: [u64; 2], room: Span) -> Result<usize, bool> {
        if !self.links[from].heard && !self.hear(from) {
            return Err(true);
        }
        let link = &mut self.links[from];
        let Some(seen) = link.peek() else { return Err(true) };
        let len = seen.len as usize;
        if seen.head != head || len > room.len {
            return Err(false);
        }
        if seen.flags & IN_BLOCK == 0 && seen.fits() {
            // SAFETY: the payload of a cell that has not been popped; a buffer of the application.
            unsafe { bytes::copy(room.addr, link.payload_addr(&seen), len) };
            link.pop(&seen, false);
            return Ok(len);
        }
        if seen.flags & IN_BLOCK == 0 || !self.take_block(from, &seen, room) {
            return Err(false);
        }
        Ok(self.taken)
    }

    #[inline]
    fn reads_in_place(&self, from: Rank) -> bool {
        from != self.me
    }

    fn take_in_place(&mut self, from: Rank, reading: &mut Reading<'_>) -> Result<(), bool> {
        self.read_block(from, reading)
    }

    #[inline]
    fn begun(&self, from: Rank) -> Option<usize> {
        self.begun[from]
    }

    #[inline]
    fn source(&mut self, position: usize) -> Option<Rank> {
        if position == 0 && self.openings.has_new(self.read) {
            self.read_openings();
        }
        self.sources.get(position).copied()
    }

    #[inline(always)]
    fn copy(&mut self, to: usize, from: usize, len: usize) {
        if let Some(frame) = self.shown.filter(|shown| shown.data == Span { addr: from, len }) {
            return self.copy_shown(frame, to);
        }
        if !self.retaining.is_empty()
            && let Some(frame) = self.find_retained(Span { addr: from, len })
        {
            return self.copy_shown(frame, to);
        }
        // SAFETY: `from` is a frame or a buffer of this process, `to` a buffer the application
        // gave to MPI for receiving; they do not overlap.
        unsafe { bytes::copy(to, from, len) };
    }

    fn peek_bytes(&self, data: Span, out: &mut [u8]) {
        assert_eq!(data.len, out.len());
        // SAFETY: `data` is the payload of a frame that has not been popped.
        unsafe { bytes::copy(out.as_mut_ptr() as usize, data.addr, data.len) };
    }

    fn reach(&mut self, peer: Rank) -> bool {
        if peer == self.me {
            return true;
        }
        if matches!(self.links[peer].reach, Reach::Unknown) {
            self.try_reach(peer);
        }
        matches!(self.links[peer].reach, Reach::Yes { .. })
    }

    fn read(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        if peer != self.me {
            return self.transfer(Direction::Read, peer, local, remote);
        }
        self.copy(local.addr, remote, local.len);
        Ok(())
    }

    fn read_many(&mut self, peer: Rank, pieces: &[(Span, usize)]) -> usize {
        if peer == self.me { 0 } else { self.prove(peer).map_or(0, |pid| cma::read_many(pid, pieces)) }
    }

    fn write(&mut self, peer: Rank, local: Span, remote: usize) -> Result<(), Fault> {
        if peer != self.me {
            return self.transfer(Direction::Write, peer, local, remote);
        }
        self.copy(remote, local.addr, local.len);
        Ok(())
    }

    fn shares(&self) -> Option<&ShmShares> {
        Some(&self.shares)
    }

    fn wake(&self, peer: Rank) {
        self.links[peer].rouse();
    }

    fn wake_threads(&self) {
        if self.berth.load() & nap::WAITER != 0 {
            self.berth.wake(nap::WAITER);
        }
    }

    #[inline(always)]
    fn awake(&mut self) {
        if self.armed {
            self.armed = false;
            if self.threads == 0 {
                self.berth.renounce(nap::WAITER);
            } // or others may sleep
        }
    }

    fn waiters(&mut self, threads: usize) {
        self.threads = threads;
    }

    #[inline]
    fn idle(&mut self, round: u32) -> ShmNap {
        match self.patience.stage(round, self.threads.max(1), &LONG_YIELDS) {
            Stage::Spin => return ShmNap::Spin,
            Stage::Yield => return ShmNap::Yield,
            Stage::Sleep => self.armed = true,
        }
        // Whoever announced this sleep did so before the look that found nothing just now, or has
        // to look once more.
        if self.berth.announce(nap::WAITER) {
            if self.has_barrier {
                nap::barrier();
            }
            return ShmNap::Spin;
        }
        if round == 0 {
            return ShmNap::Spin;
        }
        ShmNap::Sleep(self.berth, self.berth.load(), self.patience.longest, self.beside)
    }

    fn was_written(&self, span: Span) {
        watched::written(span.addr, span.len);
    }

    fn spare(&self) -> Option<ShmNap> {
        self.patience.is_scarce().then_some(ShmNap::Yield)
    }

    fn bell(&self) -> Option<Arc<dyn Bell>> {
        self.has_barrier.then(|| Arc::new(ShmBell(self.berth, self.beside)) as Arc<dyn Bell>)
    }

    fn check(&mut self) -> Result<(), Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let now = Instant::now();
        if now < self.next_check {
            return Ok(());
        }
        self.next_check = now + CHECK_EVERY;
        for _ in 0..self.links.len().div_ceil(CHECKS) {
            self.checked = (self.checked + 1) % self.links.len();
            if self.is_gone(self.checked) {
                return Err(Fault::PeerGone(self.checked));
            }
        }
        Ok(())
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        Link::take_leave(&self.segment, &self.layout, self.me);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
