//! Frames are those of the pages that are there, the same as long as these are, and others once memory has gone, however it went.

#[allow(dead_code)] // other tests use all of it
#[path = "../../proto/tests/protocols/adapter/pin.rs"]
mod pin;
#[path = "../../../tests/require.rs"]
mod require;
mod user;

use fabric::Span;
use memhook::Frames;
use pin::Pinned;
use std::ptr::null_mut;

const PAGE: usize = 4096;
const LEN: usize = 8 * PAGE;

fn frames() -> Option<Frames> {
    match Frames::open() {
        Ok(frames) => Some(frames),
        Err(why) => {
            assert!(why.contains("CAP_SYS_ADMIN"), "{why}");
            require::missing("physical frames", &why);
            None
        }
    }
}

fn of(frames: &Frames, span: Span) -> Vec<u64> {
    let mut out = Vec::new();
    assert!(frames.of(span, &mut out));
    out
}

/// Memory that is written.
fn map(at: usize, flags: i32) -> Span {
    let flags = flags | if at == 0 { 0 } else { libc::MAP_FIXED };
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory, or memory of the test.
    let addr =
        unsafe { libc::mmap(at as *mut libc::c_void, LEN, rights, flags | libc::MAP_ANONYMOUS, -1, 0) };
    assert_ne!(addr, libc::MAP_FAILED);
    let span = Span { addr: addr as usize, len: LEN };
    write(span, 1);
    span
}

fn write(span: Span, byte: u8) {
    // SAFETY: memory of the test.
    unsafe { std::ptr::write_bytes(span.addr as *mut u8, byte, span.len) };
}

fn advise(span: Span, advice: i32) {
    // SAFETY: memory of the test.
    assert_eq!(unsafe { libc::madvise(span.addr as *mut libc::c_void, span.len, advice) }, 0);
}

/// Takes memory away and puts other memory in its place.
type Way = (&'static str, i32, fn(Span));

const WAYS: [Way; 7] = [
    ("munmap", libc::MAP_PRIVATE, |span| {
        // SAFETY: memory of the test.
        assert_eq!(unsafe { libc::munmap(span.addr as *mut libc::c_void, span.len) }, 0);
        map(span.addr, libc::MAP_PRIVATE);
    }),
    ("MAP_FIXED", libc::MAP_PRIVATE, |span| {
        map(span.addr, libc::MAP_PRIVATE);
    }),
    ("mremap", libc::MAP_PRIVATE, |span| {
        let (from, to) = (map(0, libc::MAP_PRIVATE), span.addr as *mut libc::c_void);
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both are memory of the test.
        let moved = unsafe { libc::mremap(from.addr as *mut libc::c_void, LEN, LEN, flags, to) };
        assert_eq!(moved, to);
    }),
    ("MADV_DONTNEED", libc::MAP_PRIVATE, |span| advise(span, libc::MADV_DONTNEED)),
    ("MADV_DONTNEED of one page, not touched since", libc::MAP_PRIVATE, |span| {
        advise(span.part(PAGE, PAGE), libc::MADV_DONTNEED);
    }),
    ("MADV_REMOVE", libc::MAP_SHARED, |span| advise(span, libc::MADV_REMOVE)),
    ("shared memory in the place of private", libc::MAP_PRIVATE, |span| {
        map(span.addr, libc::MAP_SHARED);
    }),
];

#[test]
fn memory_that_has_gone_has_other_frames() {
    let Some(frames) = frames() else { return };
    for (name, flags, way) in WAYS {
        let span = map(0, flags);
        // Or the kernel may give the same frame again.
        let mut pinned = Pinned::new(span);
        let before = of(&frames, span);
        way(span);
        let is_one_page = name.contains("one page");
        let after = of(&frames, span);
        let changed: Vec<usize> = (0..LEN / PAGE).filter(|page| before[*page] != after[*page]).collect();
        let expected = if is_one_page { vec![1] } else { (0..LEN / PAGE).collect() };
        assert_eq!(changed, expected, "{name}");
        assert!(pinned.read(span).iter().all(|byte| *byte == 1), "{name}: the old pages are somewhere");
    }
}

#[test]
fn memory_that_is_there_has_the_frames_it_had() {
    let Some(frames) = frames() else { return };
    for flags in [libc::MAP_PRIVATE, libc::MAP_SHARED] {
        let span = map(0, flags);
        let _pinned = Pinned::new(span);
        let before = of(&frames, span);
        assert_eq!(before.len(), LEN / PAGE);
        for advice in [libc::MADV_COLD, libc::MADV_PAGEOUT] {
            write(span, 2);
            advise(span, advice);
            assert_eq!(of(&frames, span), before, "advice {advice}");
        }
        assert_eq!(of(&frames, span.part(3 * PAGE + 5, PAGE)), before[3..5], "a part in two pages");
    }
}

#[test]
fn what_is_not_there_has_none() {
    let Some(frames) = frames() else { return };
    let span = map(0, libc::MAP_PRIVATE);
    // SAFETY: memory of the test; the page is not used any more.
    assert_eq!(unsafe { libc::munmap((span.addr + 3 * PAGE) as *mut libc::c_void, PAGE) }, 0);
    let mut out = vec![7];
    assert!(!frames.of(span, &mut out));
    assert!(frames.of(span.part(0, 3 * PAGE), &mut Vec::new()));
    // SAFETY: a file of the test, without a name, and a mapping of it that is longer and not touched.
    let addr = unsafe {
        let file = libc::memfd_create(c"frames".as_ptr(), libc::MFD_CLOEXEC);
        assert_eq!(libc::ftruncate(file, PAGE as i64), 0);
        libc::mmap(null_mut(), LEN, libc::PROT_READ, libc::MAP_SHARED, file, 0)
    };
    assert_ne!(addr, libc::MAP_FAILED);
    let span = Span { addr: addr as usize, len: LEN };
    assert!(!frames.of(span, &mut Vec::new()), "longer than its file");
    assert!(frames.of(span.part(0, PAGE), &mut Vec::new()), "a page that nobody has touched is fetched");
}

#[test]
#[ignore = "run by the next test as another user"]
fn as_whoever_runs_it() {
    assert!(Frames::open().is_err_and(|why| why.contains("CAP_SYS_ADMIN")));
}

#[test]
fn ordinary_users_are_not_shown_them() {
    if user::is_ordinary() {
        return as_whoever_runs_it();
    }
    user::passes("as_whoever_runs_it", "frames");
}
