//! The proof, at start: memory is taken away in every way, and each must be told before the call returns.
//!
//! `brk` is left out, because to move it would disturb the allocator of other threads; the tests of this
//! crate try it.

use crate::monitor::Monitor;
use crate::sys::page_bytes;
use fabric::Span;
use std::ptr::null_mut;

/// Large enough for every allocator to give it back to the system when it is freed. Untouched, so
/// free of charge.
const LARGE: usize = 256 << 20;

/// Takes memory away; false if that did not work.
type Removal = fn(Span) -> bool;

/// Names, the ways, and whether they leave the address free, for other threads to take.
const WAYS: [(&str, Removal, bool); 6] = [
    ("munmap", munmap, true),
    ("MAP_FIXED", map_over, false),
    ("mremap", move_away, true),
    ("madvise(MADV_DONTNEED)", |span| advise(span, libc::MADV_DONTNEED), false),
    ("madvise(MADV_FREE)", |span| advise(span, libc::MADV_FREE), false),
    ("madvise(MADV_REMOVE)", |span| advise(span, libc::MADV_REMOVE), false),
];

/// Tries all ways; an error names the first of which nothing was told.
pub fn try_all(monitor: &mut Monitor) -> Result<(), String> {
    for (name, way, leaves) in WAYS {
        let is_shared = name.contains("REMOVE");
        let flags = if is_shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        let span = map(null_mut(), 4 * page_bytes(), flags | libc::MAP_ANONYMOUS)
            .ok_or_else(|| format!("no memory to try {name}"))?;
        // Linux before 5.19 watches no shared memory. What is not watched is not kept either, however it goes.
        if is_shared && !monitor.watch(span) {
            munmap(span);
            continue;
        }
        let mut is_ours = true;
        let told = is_told(monitor, span, || {
            let done = way(span);
            is_ours = !(done && leaves);
            done
        });
        if is_ours {
            munmap(span);
        }
        if !told? {
            return Err(format!("nothing is told of {name}"));
        }
        monitor.take(&mut Vec::new());
        monitor.forget_settling(); // the next way is likely to be tried at the same address
    }
    if !is_told_of_free(monitor)? {
        return Err("nothing is told of free()".into());
    }
    Ok(())
}

/// Whether the monitor tells of what `way` takes away. An error if it cannot be watched.
fn is_told(monitor: &mut Monitor, span: Span, way: impl FnOnce() -> bool) -> Result<bool, String> {
    touch(span);
    if !monitor.watch(span) {
        return Err("userfaultfd does not watch memory".into());
    }
    let mut gone = Vec::new();
    monitor.take(&mut gone);
    if !way() {
        return Ok(true); // this kernel cannot take memory away like that
    }
    gone.clear();
    if monitor.has_changed() {
        monitor.take(&mut gone);
    }
    Ok(gone.iter().any(|gone| gone.addr <= span.addr && span.addr < gone.addr + gone.len))
}

/// As [`is_told`] of a large block of the allocator in use, unless that keeps it.
fn is_told_of_free(monitor: &mut Monitor) -> Result<bool, String> {
    // SAFETY: any length may be asked for.
    let block = unsafe { libc::malloc(LARGE) } as usize;
    if block == 0 {
        return Ok(true);
    }
    let page = page_bytes();
    let span = Span { addr: block.next_multiple_of(page), len: page };
    is_told(monitor, span, || {
        // SAFETY: the block was allocated above and is freed once.
        unsafe { libc::free(block as *mut libc::c_void) };
        !is_mapped(span)
    })
}

fn map(at: *mut libc::c_void, len: usize, flags: libc::c_int) -> Option<Span> {
    // SAFETY: new memory, or with MAP_FIXED memory of the caller's that nobody refers to.
    let addr = unsafe { libc::mmap(at, len, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    (addr != libc::MAP_FAILED).then_some(Span { addr: addr as usize, len })
}

fn touch(span: Span) {
    // SAFETY: memory of this module's that nobody else refers to.
    unsafe { (span.addr as *mut u8).write_volatile(1) };
}

fn munmap(span: Span) -> bool {
    // SAFETY: memory of this module's that nobody refers to any more.
    unsafe { libc::munmap(span.addr as *mut libc::c_void, span.len) == 0 }
}

fn map_over(span: Span) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    map(span.addr as *mut libc::c_void, span.len, flags).is_some()
}

/// Moves the mapping elsewhere, and that away.
fn move_away(span: Span) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let Some(to) = map(null_mut(), span.len, flags) else { return false };
    let (from, place) = (span.addr as *mut libc::c_void, to.addr as *mut libc::c_void);
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: both are memory of this module's that nobody refers to.
    let moved = unsafe { libc::mremap(from, span.len, span.len, flags, place) };
    munmap(to);
    moved != libc::MAP_FAILED
}

fn advise(span: Span, advice: libc::c_int) -> bool {
    // SAFETY: memory of this module's whose contents nobody needs.
    unsafe { libc::madvise(span.addr as *mut libc::c_void, span.len, advice) == 0 }
}

fn is_mapped(span: Span) -> bool {
    let mut present = 0u8;
    // SAFETY: the span is one page, of which one byte is told.
    unsafe { libc::mincore(span.addr as *mut libc::c_void, span.len, &mut present) == 0 }
}
