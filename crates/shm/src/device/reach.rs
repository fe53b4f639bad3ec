//! Memory of the peers, by single copy: whose can be reached, that it is theirs, and what is posted to it.
//!
//! A peer publishes its process id, and a random number with its address. Who finds that number there
//! reaches the peer. An id alone says nothing: in another PID namespace it names somebody else or nobody,
//! and once the peer has ended it may be given to another process of the same user. So the number is read
//! again when the last look was a while ago, a shorter one than process ids take to come round.

use super::{Options, Shm};
use crate::cma::{self, Direction};
use crate::link::{Link, Reach, word64};
use crate::sync::{AtomicU64, Ordering};
use fabric::{Device, Fault, Local, Rank, Remote, Span, Transfers};
use std::time::Instant;

/// For how long a look at the number counts, in milliseconds.
const PROOF_MS: i64 = 100;

/// Time as the last tick of the system has left it, which is some milliseconds ago at most: to ask for it costs less than for an exact one.
fn tick_ms() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it is written to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

impl Shm {
    /// Tries to reach a peer, both ways: filters may refuse one of them.
    pub(super) fn try_reach(&mut self, peer: Rank) {
        if !self.caps.remote_access {
            self.links[peer].reach = Reach::No;
            return;
        }
        let Some((pid, addr, value)) = Link::identity(&self.segment, &self.layout, peer) else { return };
        let mut word = value;
        let local = Span { addr: &raw mut word as usize, len: 8 };
        let reads = has_number(pid, peer, addr, value) == Ok(true);
        let writes = reads && cma::transfer(Direction::Write, pid, peer, local, addr).is_ok();
        self.links[peer].reach =
            if writes { Reach::Yes { pid, addr, value, seen_ms: tick_ms() } } else { Reach::No };
    }

    /// Copies from or to a peer's memory. Once that is refused it is not tried again.
    pub(super) fn transfer(
        &mut self,
        way: Direction,
        peer: Rank,
        local: Span,
        remote: usize,
    ) -> Result<(), Fault> {
        let result = self.prove(peer).and_then(|pid| cma::transfer(way, pid, peer, local, remote));
        if result == Err(Fault::NotPermitted) {
            self.links[peer].reach = Reach::No;
        }
        result
    }

    /// The process id of a peer that can be reached, which is still its own.
    pub(super) fn prove(&mut self, peer: Rank) -> Result<i32, Fault> {
        let Reach::Yes { pid, addr, value, seen_ms } = &mut self.links[peer].reach else {
            return Err(Fault::NotPermitted);
        };
        let now_ms = tick_ms();
        if now_ms > *seen_ms + PROOF_MS {
            match has_number(*pid, peer, *addr, *value) {
                Ok(true) => *seen_ms = now_ms,
                Err(Fault::NotPermitted) => return Err(Fault::NotPermitted),
                _ => return Err(Fault::PeerGone(peer)),
            }
        }
        Ok(*pid)
    }

    /// Whether a peer has ended without taking leave. Its lock is gone then; it also is when the program has
    /// closed all its descriptors, but then its number is still there.
    pub(super) fn is_gone(&self, peer: Rank) -> bool {
        // One's own lock is no obstacle to oneself and would look free.
        if peer == self.me || !Link::is_gone(&self.segment, &self.layout, peer) {
            return false;
        }
        let identity = Link::identity(&self.segment, &self.layout, peer);
        let is_there = |(pid, addr, value)| has_number(pid, peer, addr, value) == Ok(true);
        !(self.caps.remote_access && identity.is_some_and(is_there))
    }
}

/// Whether this number stands at this address of a process.
fn has_number(pid: i32, peer: Rank, addr: usize, value: u64) -> Result<bool, Fault> {
    let mut word = 0u64;
    let local = Span { addr: &raw mut word as usize, len: 8 };
    cma::transfer(Direction::Read, pid, peer, local, addr).map(|()| word == value)
}

/// Tries single copy on this very process: seccomp filters of containers refuse even that.
pub(super) fn try_single_copy(options: &Options, probe: &AtomicU64) -> (bool, String) {
    if !options.single_copy {
        return (false, "single copy is switched off by TERN_SINGLE_COPY".into());
    }
    let mut seen = 0u64;
    let local = Span { addr: &raw mut seen as usize, len: 8 };
    let me = std::process::id() as i32;
    let read = cma::transfer(Direction::Read, me, 0, local, probe.as_ptr() as usize);
    if read != Ok(()) || seen != probe.load(Ordering::Relaxed) {
        return (false, format!("process_vm_readv is not permitted here ({read:?})"));
    }
    match cma::transfer(Direction::Write, me, 0, local, probe.as_ptr() as usize) {
        Ok(()) => (true, "single copy by process_vm_readv/writev".into()),
        other => (false, format!("process_vm_writev is not permitted here ({other:?})")),
    }
}

/// What single copy costs here: of a call and of a byte, from the fastest of a few tries on this
/// very process.
pub(super) fn measure_single_copy() -> (f64, f64) {
    const LONG: usize = 32 * 1024;
    let (from, mut to) = (vec![1u8; LONG], vec![0u8; LONG]);
    let mut fastest = |len: usize| {
        let local = Span { addr: to.as_mut_ptr() as usize, len };
        let once = || {
            let start = Instant::now();
            let done =
                cma::transfer(Direction::Read, std::process::id() as i32, 0, local, from.as_ptr() as usize);
            done.map_or(f64::MAX, |()| start.elapsed().as_nanos() as f64)
        };
        (0..4).map(|_| once()).fold(f64::MAX, f64::min)
    };
    let (call, long) = (fastest(8), fastest(LONG));
    (call, ((long - call) / LONG as f64).max(0.0))
}

impl Transfers for Shm {
    fn post_write(
        &mut self,
        to: Rank,
        _rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let result = self.write(to, local.span, remote.addr as usize);
        self.immediate.end(work, result);
        self.wake(to);
        Ok(true)
    }

    fn post_read(
        &mut self,
        from: Rank,
        _rail: usize,
        local: Local,
        remote: Remote,
        work: u64,
    ) -> Result<bool, Fault> {
        let result = self.read(from, local.span, remote.addr as usize);
        self.immediate.end(work, result);
        Ok(true)
    }

    /// A posted transfer is over when its call returns.
    fn try_send_behind(&mut self, to: Rank, _rail: usize, head: [u64; 2], data: Span) -> bool {
        self.try_send(to, head, data)
    }

    /// The kernel copies with string instructions, whose stores have no order, and wakes nobody.
    fn writes_in_order(&self, _to: Rank) -> bool {
        false
    }

    #[inline(always)]
    fn completed(&mut self) -> Option<(u64, Result<(), Fault>)> {
        self.immediate.completed()
    }

    /// Copies: shared memory is written by the processor in any case.
    fn try_send_from(&mut self, to: Rank, head: [u64; 2], data: Local, work: u64) -> Result<bool, Fault> {
        let sent = self.try_send(to, head, data.span);
        if sent {
            self.immediate.end(work, Ok(()));
        }
        Ok(sent)
    }

    fn allocate(&mut self, len: usize) -> Span {
        self.immediate.allocate(len)
    }

    fn load(&self, _peer: Rank, addr: usize) -> u64 {
        // SAFETY: an aligned word of memory that `allocate` gave and that lives as long as `self`;
        // the kernel may write it for a peer meanwhile.
        unsafe { word64(addr) }.load(Ordering::Acquire)
    }

    fn store(&mut self, _peer: Rank, addr: usize, value: u64) {
        // SAFETY: as in `load`.
        unsafe { word64(addr) }.store(value, Ordering::Release);
    }
}
