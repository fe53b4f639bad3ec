//! Messages from memory that stays registered: what is sent is what is mapped there now, not what
//! was when it was registered; and messages arrive however little can be registered.

#[path = "../../../tests/require.rs"]
mod require;

#[path = "protocols/adapter/mod.rs"]
mod adapter;

use adapter::{Adapter, Net, Shared};
use fabric::{Nap, Span};
use memhook::{Frames, Monitor};
use proto::channel::{Channel, Settings};
use proto::{CacheLimits, Engine, Event, Limits, Mode, Protocol, Want};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
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
            adapt: false,
            force: Some(protocol),
            cache,
            ..Limits::default()
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

/// A file of `LEN` bytes that is mapped and shared.
struct Mapped {
    file: File,
    addr: usize,
}

impl Mapped {
    fn new(file: File) -> Mapped {
        file.set_len(LEN as u64).unwrap();
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory.
        let addr =
            unsafe { libc::mmap(null_mut(), LEN, rights, libc::MAP_SHARED, file.as_raw_fd(), 0) } as usize;
        assert_ne!(addr, libc::MAP_FAILED as usize);
        Mapped { file, addr }
    }

    fn in_memory() -> Mapped {
        // SAFETY: a descriptor that nobody else owns.
        Mapped::new(unsafe { File::from_raw_fd(libc::memfd_create(c"cached".as_ptr(), libc::MFD_CLOEXEC)) })
    }

    fn on_disk() -> Mapped {
        let path = std::env::temp_dir().join(format!("tern-cached-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        Mapped::new(file)
    }

    fn cut_and_grown(&self, left: usize) {
        self.file.set_len(left as u64).unwrap();
        self.file.set_len(LEN as u64).unwrap();
    }

    fn punched(&self) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the call takes numbers alone.
        assert_eq!(unsafe { libc::fallocate(self.file.as_raw_fd(), mode, PAGE as i64, PAGE as i64) }, 0);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: memory of the test, which does not use it any more.
        assert_eq!(unsafe { libc::munmap(self.addr as *mut libc::c_void, LEN) }, 0);
    }
}

/// What brings no event and leaves the mapping as it was: files and how they change.
type Cut = (&'static str, fn() -> Mapped, fn(&Mapped));

const CUTS: [Cut; 5] = [
    ("ftruncate to nothing, in memory", Mapped::in_memory, |mapped| mapped.cut_and_grown(0)),
    ("ftruncate to a part, in memory", Mapped::in_memory, |mapped| mapped.cut_and_grown(LEN - PAGE)),
    ("fallocate, in memory", Mapped::in_memory, Mapped::punched),
    ("ftruncate to nothing, on disk", Mapped::on_disk, |mapped| mapped.cut_and_grown(0)),
    ("fallocate, on disk", Mapped::on_disk, Mapped::punched),
];

/// Whether frames are shown to this process; says so if they are not.
fn shows_frames() -> bool {
    let frames = Frames::open();
    if let Err(why) = &frames {
        require::missing("physical frames", why);
    }
    frames.is_ok()
}

/// Rank 0 of two sends from memory twice, and something happens to it between: how many of the second message's pages are those of the
/// new memory, and the job.
fn sent_anew(job: &mut Job, first: usize, change: impl FnOnce() -> usize) -> usize {
    fill(first, 1);
    job.send(Span { addr: first, len: LEN });
    let addr = change();
    fill(addr, 2);
    let came = job.send(Span { addr, len: LEN });
    assert!(came.iter().all(|byte| matches!(byte, 1 | 2)));
    came.chunks_exact(PAGE).filter(|page| page[0] == 2).count()
}

/// An adapter whose rank is told that all memory is watched, and of nothing.
fn untold(verifies: bool) -> Job {
    let net = Net::shared(2);
    (net.get().has_pages, net.get().is_watched, net.get().shows_frames) = (true, true, verifies);
    let mut job = Job::new(&net, [None, None], Protocol::Rget, CacheLimits::default());
    job.engines[0].verify_registrations(verifies);
    job
}

/// Even if nobody told of anything, what is verified is not sent from old pages; and without that it is.
#[test]
fn each_way_is_found_by_its_frames_though_nobody_tells() {
    let _alone = alone();
    if !shows_frames() {
        return;
    }
    for (name, way) in WAYS {
        for verifies in [false, true] {
            let (mut job, addr) = (untold(verifies), map(0, PRIVATE));
            let fresh = sent_anew(&mut job, addr, || way(addr));
            let expected = if verifies { LEN / PAGE } else { 0 };
            assert_eq!(fresh, expected, "{name}: pages of the memory that is there now");
            assert_eq!(job.count(Event::CacheStale), u64::from(verifies), "{name}");
            let said = job.engines[0].registrations().findings().unwrap_or_default();
            let at = format!("{LEN} bytes at {addr:#x}: page 0 ");
            assert_eq!(said.contains(&at), verifies, "{name}: {said}");
        }
    }
}

/// The one exception to what is told: it is found where each use is verified, and nowhere else.
#[test]
fn a_file_that_was_cut_is_found_by_its_frames_alone() {
    let _alone = alone();
    if !shows_frames() {
        return;
    }
    for (name, make, cut) in CUTS {
        for verifies in [false, true] {
            // Before Linux 6.7 such memory is not watched, and nothing is kept.
            let Some(monitor) = monitor(true).filter(Monitor::looks_again) else { return };
            let mapped = make();
            let net = Net::shared(2);
            (net.get().has_pages, net.get().shows_frames) = (true, verifies);
            let mut job = Job::new(&net, [Some(monitor), None], Protocol::Rget, CacheLimits::default());
            job.engines[0].verify_registrations(verifies);
            let fresh = sent_anew(&mut job, mapped.addr, || {
                cut(&mapped);
                mapped.addr
            });
            let is_kept = job.count(Event::CacheHit) + job.count(Event::CacheStale) > 0;
            assert!(is_kept, "{name}: a registration of it is kept");
            assert_eq!(fresh == LEN / PAGE, verifies, "{name}: {fresh} pages");
            assert_eq!(job.count(Event::CacheStale), u64::from(verifies), "{name}");
        }
    }
}

/// A file that stays short: there is no page any more that could be sent, and the old one is not.
#[test]
fn what_cannot_be_had_any_more_is_not_used() {
    let _alone = alone();
    if !shows_frames() {
        return;
    }
    let mapped = Mapped::in_memory();
    let mut job = untold(true);
    let span = Span { addr: mapped.addr, len: LEN };
    fill(span.addr, 1);
    job.send(span);
    mapped.file.set_len((LEN / 2) as u64).unwrap();
    let half = Span { len: LEN / 2, ..span };
    assert!(job.send(half).iter().all(|byte| *byte == 1));
    assert_eq!((job.count(Event::CacheHit), job.count(Event::CacheStale)), (1, 0), "that half is as it was");
    mapped.file.set_len(LEN as u64).unwrap();
    fill(span.addr, 2);
    assert!(job.send(span).iter().all(|byte| *byte == 2));
    assert_eq!(job.count(Event::CacheStale), 1);
    let said = job.engines[0].registrations().findings().unwrap();
    assert!(said.contains(&format!("page {} ", LEN / 2 / PAGE)), "{said}");
}

/// Where the kernel shows no frames, the second look is what finds it.
#[test]
fn what_the_second_look_finds_is_counted() {
    let _alone = alone();
    for verifies in [false, true] {
        let Some(monitor) = monitor(true).filter(Monitor::looks_again) else { return };
        let net = Net::shared(2);
        net.get().has_pages = true;
        let mut job = Job::new(&net, [Some(monitor), None], Protocol::Rget, CacheLimits::default());
        job.engines[0].verify_registrations(verifies);
        // SAFETY: a segment of the test, which is removed at once and goes with its last detach.
        let addr = unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, LEN, 0o600);
            let addr = libc::shmat(id, std::ptr::null(), 0);
            libc::shmctl(id, libc::IPC_RMID, null_mut());
            addr
        };
        let fresh = sent_anew(&mut job, addr as usize, || {
            // SAFETY: as above.
            assert_eq!(unsafe { libc::shmdt(addr) }, 0);
            map(addr as usize, PRIVATE | libc::MAP_FIXED_NOREPLACE)
        });
        assert_eq!((fresh, job.count(Event::CacheStale)), (LEN / PAGE, u64::from(verifies)));
        let said = job.engines[0].registrations().findings().unwrap_or_default();
        assert_eq!(said.contains("shmdt"), verifies, "{said}");
    }
}

/// What is in order is found in order, whatever the kernel does to the tables of pages meanwhile.
#[test]
fn what_has_not_gone_is_used_again() {
    let _alone = alone();
    if !shows_frames() {
        return;
    }
    let mapped = Mapped::on_disk();
    let mut job = untold(true);
    let span = Span { addr: mapped.addr, len: LEN };
    for round in 0..5u8 {
        fill(span.addr, round);
        let advice = [libc::MADV_PAGEOUT, libc::MADV_COLD, libc::MADV_HUGEPAGE][usize::from(round) % 3];
        // SAFETY: memory of the test, of which nothing is lost by these; where one is not known it has no effect.
        unsafe { libc::madvise(span.addr as *mut libc::c_void, LEN, advice) };
        mapped.file.sync_all().unwrap();
        assert!(job.send(span).iter().all(|byte| *byte == round));
    }
    assert_eq!((job.count(Event::CacheHit), job.count(Event::CacheStale)), (4, 0));
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
