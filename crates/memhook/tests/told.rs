//! Memory goes away in all the ways in which it does, and the monitor has told when the call returns.

#[path = "../../../tests/require.rs"]
mod require;
mod user;

use fabric::Span;
use memhook::Monitor;
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const PAGE: usize = 4096;
const PRIVATE: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

fn map_at(at: usize, pages: usize, flags: i32) -> Span {
    let (at, len) = (at as *mut libc::c_void, pages * PAGE);
    // SAFETY: new memory, or with MAP_FIXED memory of the test.
    let addr = unsafe { libc::mmap(at, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_ne!(addr, libc::MAP_FAILED);
    // SAFETY: it was just mapped.
    unsafe { std::ptr::write_bytes(addr.cast::<u8>(), 7, len) };
    Span { addr: addr as usize, len }
}

fn map(pages: usize) -> Span {
    map_at(0, pages, PRIVATE)
}

fn pages(span: Span, first: usize, count: usize) -> Span {
    span.part(first * PAGE, count * PAGE)
}

fn unmap(span: Span) {
    // SAFETY: memory of the test, which does not use it any more.
    assert_eq!(unsafe { libc::munmap(span.addr as *mut libc::c_void, span.len) }, 0);
}

fn advise(span: Span, advice: i32) {
    // SAFETY: memory of the test.
    assert_eq!(unsafe { libc::madvise(span.addr as *mut libc::c_void, span.len, advice) }, 0);
}

fn remap(from: Span, pages: usize, to: usize) -> Span {
    let flags = libc::MREMAP_MAYMOVE | if to == 0 { 0 } else { libc::MREMAP_FIXED };
    let (addr, place) = (from.addr as *mut libc::c_void, to as *mut libc::c_void);
    // SAFETY: memory of the test.
    let addr = unsafe { libc::mremap(addr, from.len, pages * PAGE, flags, place) };
    assert_ne!(addr, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    Span { addr: addr as usize, len: pages * PAGE }
}

/// The only monitor, for neighbouring mappings are one to the kernel and cannot have two.
struct Only {
    monitor: Monitor,
    _guard: MutexGuard<'static, ()>,
}

impl Deref for Only {
    type Target = Monitor;

    fn deref(&self) -> &Monitor {
        &self.monitor
    }
}

impl DerefMut for Only {
    fn deref_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }
}

/// A monitor, or `None` where the kernel does not permit it.
fn monitor() -> Option<Only> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Monitor::start(true) {
        Ok(monitor) => Some(Only { monitor, _guard: guard }),
        Err(why) => {
            assert!(why.contains("not permitted"), "{why}");
            require::missing("userfaultfd", &why);
            None
        }
    }
}

/// What has gone since the last time, in pages of `of`.
fn gone(monitor: &mut Monitor, of: Span) -> Vec<usize> {
    let mut gone = Vec::new();
    if monitor.has_changed() {
        monitor.take(&mut gone);
    }
    let has = |page: &usize| {
        let addr = of.addr + page * PAGE;
        gone.iter().any(|g| g.addr <= addr && addr < g.addr.saturating_add(g.len))
    };
    (0..of.len / PAGE).filter(has).collect()
}

#[test]
fn every_way_is_told_with_its_place() {
    let Some(mut m) = monitor() else { return };
    let span = map(16);
    assert!(m.watch(Span { addr: span.addr + 100, len: 20 }), "a part of a mapping watches all of it");
    assert_eq!(gone(&mut m, span), []);
    unmap(pages(span, 1, 2));
    assert_eq!(gone(&mut m, span), [1, 2]);
    advise(pages(span, 4, 1), libc::MADV_DONTNEED);
    assert_eq!(gone(&mut m, span), [4]);
    advise(pages(span, 5, 1), libc::MADV_FREE);
    assert_eq!(gone(&mut m, span), [5]);
    map_at(pages(span, 6, 1).addr, 1, PRIVATE | libc::MAP_FIXED);
    assert_eq!(gone(&mut m, span), [6]);
    remap(pages(span, 7, 4), 3, 0);
    assert_eq!(gone(&mut m, span), [10]);
    let place = map(4);
    let moved = remap(pages(span, 12, 2), 2, place.addr);
    assert_eq!(gone(&mut m, span), [12, 13]);
    unmap(pages(moved, 1, 1));
    assert_eq!(gone(&mut m, moved), [1], "what has moved is still watched");
    unmap(pages(span, 15, 1));
    assert_eq!(gone(&mut m, span), [15]);
}

#[test]
fn what_the_c_library_does_inside_is_told() {
    let Some(mut m) = monitor() else { return };
    for len in [1 << 20, 8 << 20, 64 << 20] {
        // SAFETY: memory of the test; freed once, by `realloc` or `free`.
        let (block, larger) = unsafe {
            let block = libc::malloc(len).cast::<u8>();
            std::ptr::write_bytes(block, 1, len);
            (block, len * 2)
        };
        let span = Span { addr: (block as usize).next_multiple_of(PAGE), len: len - PAGE };
        assert!(m.watch(span));
        gone(&mut m, span);
        // SAFETY: as above.
        let block = unsafe { libc::realloc(block.cast(), larger) };
        assert!(!block.is_null());
        let span = Span { addr: (block as usize).next_multiple_of(PAGE), len: larger - PAGE };
        assert!(m.watch(span));
        gone(&mut m, span);
        // SAFETY: as above.
        unsafe { libc::free(block) };
        let mut present = 0;
        // SAFETY: one page, one byte.
        let mapped = unsafe { libc::mincore(span.addr as *mut libc::c_void, PAGE, &mut present) } == 0;
        assert!(mapped || gone(&mut m, span).len() == span.len / PAGE, "{len} bytes");
        assert!(!mapped || len < 64 << 20, "the C library keeps {len} bytes");
    }
}

#[test]
fn memory_of_every_kind_is_watched() {
    let Some(mut m) = monitor() else { return };
    static CONSTANT: [u8; 3 * PAGE] = [1; 3 * PAGE];
    let on_the_stack = [0u8; 100];
    let shared = map_at(0, 2, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    assert!(m.watch(shared));
    assert!(m.watch(Span { addr: on_the_stack.as_ptr() as usize, len: 100 }));
    if m.looks_again() {
        assert!(m.watch(Span { addr: CONSTANT.as_ptr() as usize, len: CONSTANT.len() }));
    }
    advise(shared, libc::MADV_REMOVE);
    assert_eq!(gone(&mut m, shared), [0, 1]);
    assert!(!m.watch(Span { addr: 4096, len: 1 }), "nothing is mapped there");
}

#[test]
fn memory_that_was_emptied_settles_before_it_is_watched_anew() {
    let Some(mut m) = monitor() else { return };
    let span = map(4);
    assert!(m.watch(span));
    advise(pages(span, 1, 1), libc::MADV_DONTNEED);
    assert_eq!(gone(&mut m, span), [1]);
    let begun = std::time::Instant::now();
    let watched = m.watch(span);
    assert!(!watched || begun.elapsed() > Duration::from_millis(15));
    while !m.watch(span) {
        std::thread::yield_now();
    }
    unmap(pages(span, 0, 1));
    assert_eq!(gone(&mut m, span), [0]);
    assert!(m.watch(pages(span, 1, 3)), "what was unmapped and mapped anew need not settle");
}

#[test]
fn the_second_look_finds_what_brings_no_event() {
    let Some(mut m) = monitor() else { return };
    if !m.looks_again() {
        return;
    }
    let span = map(8);
    assert!(m.watch(span));
    assert!(m.is_unchanged(span));
    map_at(pages(span, 3, 1).addr, 1, PRIVATE | libc::MAP_FIXED);
    assert!(!m.is_unchanged(span));
    assert!(m.is_unchanged(pages(span, 4, 4)));
    // SAFETY: a segment of the test, which is removed at once and goes with its last detach.
    let (id, addr) = unsafe {
        let id = libc::shmget(libc::IPC_PRIVATE, 4 * PAGE, 0o600);
        let addr = libc::shmat(id, std::ptr::null(), 0);
        libc::shmctl(id, libc::IPC_RMID, null_mut());
        (id, addr)
    };
    assert!(id >= 0);
    let span = Span { addr: addr as usize, len: 4 * PAGE };
    assert!(m.watch(span));
    assert!(m.is_unchanged(span));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::shmdt(addr) }, 0);
    map_at(span.addr, 4, PRIVATE | libc::MAP_FIXED);
    assert!(!m.is_unchanged(span));
}

#[test]
fn other_threads_take_memory_away_all_the_time() {
    let Some(mut m) = monitor() else { return };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (give, take) = channel::<Span>();
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    unmap(map(64));
                    drop(vec![1u8; 1 << 20]);
                }
            });
        }
        let worker = scope.spawn(move || take.into_iter().for_each(unmap));
        for _ in 0..300 {
            let span = map(16);
            assert!(m.watch(span));
            gone(&mut m, span);
            unmap(pages(span, 3, 2));
            assert_eq!(gone(&mut m, pages(span, 3, 2)), [0, 1]);
            let rest = pages(span, 5, 11);
            give.send(rest).unwrap();
            let mut told = 0;
            while told < rest.len / PAGE {
                told += gone(&mut m, rest).len();
                std::thread::yield_now();
            }
        }
        drop(give);
        worker.join().unwrap();
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn its_own_start_takes_nothing_from_other_threads() {
    let Some(first) = monitor() else { return };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let span = map(4);
                    std::thread::yield_now();
                    // SAFETY: memory of the test, and a byte for each page.
                    let mapped = unsafe {
                        libc::mincore(span.addr as *mut libc::c_void, span.len, [0u8; 4].as_mut_ptr())
                    };
                    assert_eq!(mapped, 0, "somebody else has unmapped it");
                    unmap(span);
                }
            });
        }
        for _ in 0..300 {
            Monitor::start(true).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(first);
}

#[test]
fn a_child_is_left_alone_and_leaves_its_parent_alone() {
    let Some(mut m) = monitor() else { return };
    let span = map(8);
    assert!(m.watch(span));
    // SAFETY: the child calls nothing but system calls, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above; the copy of the memory is the child's own. It outlives the monitor,
        // holding its descriptor.
        unsafe {
            libc::munmap(span.addr as *mut libc::c_void, span.len);
            libc::pause();
            libc::_exit(0);
        }
    }
    assert!(child > 0);
    assert_eq!(gone(&mut m, span), [], "the child has memory of its own");
    unmap(pages(span, 0, 1));
    assert_eq!(gone(&mut m, span), [0]);
    let moved = remap(pages(span, 2, 2), 2, map(2).addr);
    drop(m);
    for span in [pages(span, 1, 1), moved, pages(span, 4, 4)] {
        unmap(span); // nobody reads events any more
    }
    // SAFETY: a child of this test, ended and reaped.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        assert_eq!(libc::waitpid(child, null_mut(), 0), child);
    }
}

#[test]
fn a_mapping_that_was_sent_from_can_still_be_moved_whole() {
    let Some(mut m) = monitor() else { return };
    let span = map(8);
    assert!(m.watch(pages(span, 2, 1)));
    let place = map(16);
    remap(span, 16, place.addr);
    assert_eq!(gone(&mut m, span).len(), 8);
}

/// Programs that are started have memory of their own, though a child of `vfork`, as `Command` makes one, shares its parent's until then.
#[test]
fn programs_that_are_started_take_nothing_away() {
    let Some(mut m) = monitor() else { return };
    let span = map(8);
    assert!(m.watch(span));
    for _ in 0..20 {
        assert!(Command::new("/bin/true").status().unwrap().success());
    }
    assert_eq!(gone(&mut m, span), []);
    unmap(pages(span, 3, 1));
    assert_eq!(gone(&mut m, span), [3]);
}

#[test]
#[ignore = "run by the next test, which it ends as another program"]
fn as_whoever_is_replaced() {
    let Some(mut m) = monitor() else { return };
    let span = map(1024);
    assert!(m.watch(span));
    // While others take memory away, whose news may be on the way.
    let threads: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                loop {
                    unmap(map(64))
                }
            })
        })
        .collect();
    for _ in 0..50 {
        unmap(map(64));
        gone(&mut m, span);
    }
    let error = Command::new("/bin/echo").arg("the other program").exec();
    panic!("{error}, with {} threads", threads.len());
}

/// Watched memory goes by exec, with all threads, the one that reads of it, too: nobody waits for that one.
#[test]
fn a_process_that_is_watched_becomes_another_program() {
    for _ in 0..10 {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--ignored", "--exact", "as_whoever_is_replaced", "--nocapture"]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let can_watch = !text.contains("skipped for want of userfaultfd");
        assert!(output.status.success() && (text.contains("the other program") || !can_watch), "{output:?}");
    }
}

/// What docs/protocols/registration-cache.md names as the exception: a file under a mapping that is made shorter takes pages away, of which there
/// is no event, and no second look finds it.
#[test]
fn a_file_that_is_cut_under_a_mapping_is_not_told() {
    let Some(mut m) = monitor() else { return };
    let name = c"told";
    // SAFETY: a file of the test, without a name, and a mapping of it that is not touched when the file is shorter.
    let (file, addr) = unsafe {
        let file = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        assert_eq!(libc::ftruncate(file, 4 * PAGE as i64), 0);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        (file, libc::mmap(null_mut(), 4 * PAGE, rights, libc::MAP_SHARED, file, 0))
    };
    assert_ne!(addr, libc::MAP_FAILED);
    let span = Span { addr: addr as usize, len: 4 * PAGE };
    // SAFETY: as above.
    unsafe { std::ptr::write_bytes(addr.cast::<u8>(), 1, span.len) };
    if !m.watch(span) {
        return; // this kernel watches no such memory, so no registration of it is kept
    }
    gone(&mut m, span);
    // SAFETY: as above.
    unsafe { assert_eq!(libc::ftruncate(file, PAGE as i64), 0) };
    assert_eq!(gone(&mut m, span), []);
    if m.looks_again() {
        assert!(m.is_unchanged(span));
    }
    unmap(span);
    assert_eq!(gone(&mut m, span), [0, 1, 2, 3], "what of its mapping is told");
    // SAFETY: it is the test's.
    unsafe { libc::close(file) };
}

#[test]
#[ignore = "run by the next test as another user"]
fn as_whoever_runs_it() {
    every_way_is_told_with_its_place();
}

#[test]
fn ordinary_users_are_told_too() {
    if user::is_ordinary() {
        return; // then all tests show it
    }
    user::passes("as_whoever_runs_it", "told");
}
