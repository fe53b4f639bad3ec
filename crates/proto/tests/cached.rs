//! Messages from memory that stays registered: what is sent is what is mapped there now, not what
//! was when it was registered; and messages arrive however little can be registered.

#[path = "../../../tests/require.rs"]
mod require;

mod adapter;

use adapter::{Adapter, Net, Shared};
use fabric::{Nap, Span};
use memhook::Monitor;
use proto::channel::{Channel, Settings};
use proto::{CacheLimits, Engine, Event, Limits, Mode, Protocol, Want};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 4096;
const LEN: usize = 16 * PAGE;
const SMALL: usize = 64 * 1024;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Two ranks in one thread.
struct Job {
    engines: [Engine<Channel<Adapter>>; 2],
}

impl Job {
    fn new(net: &Shared, monitors: [Option<Monitor>; 2], protocol: Protocol, cache: CacheLimits) -> Job {
        Job::with(net, monitors, protocol, cache, [usize::MAX; 2])
    }

    /// With so many bytes that each rank may register.
    fn with(
        net: &Shared,
        mut monitors: [Option<Monitor>; 2],
        protocol: Protocol,
        cache: CacheLimits,
        lockable_bytes: [usize; 2],
    ) -> Job {
        let limits = Limits {
            eager_bytes: 1024,
            unexpected_bytes: 1 << 20,
            unexpected_max_bytes: 1 << 30,
            adapt: false,
            rtr: true,
            remote_access: true,
            force: Some(protocol),
            eager_by: Default::default(),
            cache,
        };
        let engines = [0, 1].map(|me| {
            let mut adapter = Adapter::new(me, net);
            adapter.lockable_bytes = lockable_bytes[me];
            adapter.monitor = monitors[me].take();
            Engine::new(Channel::new(adapter, Settings::default()).unwrap(), limits.clone())
        });
        Job { engines }
    }

    /// Sends from rank 0 to rank 1: what has come.
    fn send(&mut self, from: Span) -> Vec<u8> {
        let mut into = vec![0u8; from.len];
        let want = Want { source: Some(0), context: 4, tag: Some(1) };
        let room = Span { addr: into.as_mut_ptr() as usize, len: into.len() };
        let send = self.engines[0].send(1, 4, 1, from, Mode::Standard).unwrap();
        let receive = self.engines[1].receive(want, room).unwrap();
        let is_over = |job: &Job| {
            job.engines[1].is_done(receive) && send.is_none_or(|send| job.engines[0].is_done(send))
        };
        while !is_over(self) {
            for engine in &mut self.engines {
                if let Some(nap) = engine.poll().unwrap() {
                    nap.take();
                }
            }
        }
        let sent = send.and_then(|send| self.engines[0].take(send));
        assert_eq!(sent.and_then(|sent| sent.failure), None);
        let received = self.engines[1].take(receive).unwrap();
        assert_eq!((received.failure, received.len), (None, from.len as u64));
        into
    }

    fn count(&self, event: Event) -> u64 {
        self.engines[0].counters().get(event)
    }
}

/// There is one monitor at a time, for neighbouring mappings are one to the kernel.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn monitor(look_again: bool) -> Option<Monitor> {
    let monitor = Monitor::start(look_again);
    if let Err(why) = &monitor {
        assert!(why.contains("not permitted"), "{why}");
        require::missing("userfaultfd", &why);
    }
    monitor.ok()
}

fn map(at: usize, flags: i32) -> usize {
    let at = at as *mut libc::c_void;
    // SAFETY: new memory, or with MAP_FIXED memory of the test.
    let addr = unsafe { libc::mmap(at, LEN, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(addr, libc::MAP_FAILED);
    addr as usize
}

fn fill(addr: usize, byte: u8) {
    // SAFETY: memory of the test, `LEN` bytes of it.
    unsafe { std::ptr::write_bytes(addr as *mut u8, byte, LEN) };
}

/// Gives memory other pages; where it is then.
type Change = fn(usize) -> usize;

const WAYS: [(&str, Change); 5] = [
    ("munmap", |addr| {
        // SAFETY: memory of the test.
        assert_eq!(unsafe { libc::munmap(addr as *mut libc::c_void, LEN) }, 0);
        map(addr, PRIVATE | libc::MAP_FIXED_NOREPLACE)
    }),
    ("MAP_FIXED", |addr| map(addr, PRIVATE | libc::MAP_FIXED)),
    ("MADV_DONTNEED", |addr| {
        // SAFETY: memory of the test.
        assert_eq!(unsafe { libc::madvise(addr as *mut libc::c_void, LEN, libc::MADV_DONTNEED) }, 0);
        addr
    }),
    ("mremap", |addr| {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let to = map(0, PRIVATE) as *mut libc::c_void;
        // SAFETY: memory of the test.
        assert_ne!(unsafe { libc::mremap(addr as *mut libc::c_void, LEN, LEN, flags, to) }, libc::MAP_FAILED);
        map(addr, PRIVATE | libc::MAP_FIXED_NOREPLACE)
    }),
    ("part of it", |addr| {
        // SAFETY: memory of the test.
        assert_eq!(unsafe { libc::munmap((addr + 5 * PAGE) as *mut libc::c_void, PAGE) }, 0);
        map(addr, PRIVATE | libc::MAP_FIXED)
    }),
];

#[test]
fn new_pages_are_sent_however_the_old_ones_went() {
    let _alone = alone();
    for (name, way) in WAYS {
        let Some(monitor) = monitor(false) else { return };
        let net = Net::shared(2);
        net.get().has_pages = true;
        let mut job = Job::new(&net, [Some(monitor), None], Protocol::Rget, CacheLimits::default());
        let mut addr = map(0, PRIVATE);
        for round in 1..6 {
            let span = Span { addr, len: LEN };
            fill(addr, 2 * round);
            assert!(job.send(span).iter().all(|byte| *byte == 2 * round), "{name}");
            fill(addr, 2 * round + 1);
            let hits = job.count(Event::CacheHit);
            assert!(job.send(span).iter().all(|byte| *byte == 2 * round + 1), "{name}");
            let settles = name == "MADV_DONTNEED" && round > 1;
            assert!(settles || job.count(Event::CacheHit) == hits + 1, "{name}: it is not kept");
            addr = way(addr);
        }
        assert!(job.count(Event::CacheInvalidated) > 0, "{name}");
    }
}

#[test]
fn a_block_that_was_freed_is_sent_as_it_is_now() {
    let _alone = alone();
    let Some(monitor) = monitor(true) else { return };
    let net = Net::shared(2);
    net.get().has_pages = true;
    let mut job = Job::new(&net, [Some(monitor), None], Protocol::Rget, CacheLimits::default());
    let mut seen = Vec::new();
    for round in 1..40u8 {
        // Beyond the largest threshold of the C library: freed is unmapped.
        let mut block = vec![0u8; 40 << 20];
        block[..LEN].fill(round);
        let addr = block.as_ptr() as usize;
        assert!(job.send(Span { addr, len: LEN }).iter().all(|byte| *byte == round), "round {round}");
        seen.push(addr);
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() < 39, "no address came again: nothing was shown");
}

/// A check of these tests: with adapters as they are, to be told matters.
#[test]
fn who_is_not_told_sends_old_pages() {
    let _alone = alone();
    let net = Net::shared(2);
    (net.get().has_pages, net.get().is_watched) = (true, true);
    let mut job = Job::new(&net, [None, None], Protocol::Rget, CacheLimits::default());
    let addr = map(0, PRIVATE);
    let span = Span { addr, len: LEN };
    fill(addr, 1);
    job.send(span);
    map(addr, PRIVATE | libc::MAP_FIXED);
    fill(addr, 2);
    assert!(job.send(span).iter().all(|byte| *byte == 1));
}

#[test]
fn a_fork_changes_nothing_for_the_parent() {
    let _alone = alone();
    let Some(monitor) = monitor(true) else { return };
    let net = Net::shared(2);
    let mut job = Job::new(&net, [Some(monitor), None], Protocol::Rget, CacheLimits::default());
    let span = Span { addr: map(0, PRIVATE), len: LEN };
    fill(span.addr, 1);
    job.send(span);
    // SAFETY: the child makes system calls alone, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; the memory is the child's own copy.
        unsafe {
            libc::munmap(span.addr as *mut libc::c_void, LEN);
            libc::_exit(0);
        }
    }
    // SAFETY: a child of this test.
    assert_eq!(unsafe { libc::waitpid(child, null_mut(), 0) }, child);
    fill(span.addr, 2);
    assert!(job.send(span).iter().all(|byte| *byte == 2));
    assert_eq!((job.count(Event::CacheHit), job.count(Event::CacheInvalidated)), (1, 0));
}

#[test]
fn messages_arrive_with_64_kib_of_lockable_memory() {
    let cases = [[SMALL, SMALL], [SMALL, usize::MAX], [usize::MAX, SMALL]];
    for ((protocol, name), lockable) in Protocol::ALL.into_iter().flat_map(|p| cases.map(|case| (p, case))) {
        let net = Net::shared(2);
        net.get().is_watched = true;
        net.get().caps.lockable_bytes = SMALL; // frames must be the same on both sides
        let mut job = Job::with(&net, [None, None], protocol, CacheLimits::default(), lockable);
        for round in 1..30usize {
            let len = [2000, 9000, 30_000, 100_000, 500_000][round % 5];
            let bytes: Vec<u8> = (0..len).map(|k| (k * round) as u8).collect();
            let span = Span { addr: bytes.as_ptr() as usize, len };
            assert!(job.send(span) == bytes, "{name}, {lockable:?}: {len} bytes");
            (0..2).for_each(|rank| net.get().unmap(rank, span));
        }
    }
}
