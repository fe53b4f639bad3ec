//! Copies of a few bytes without the call to `memcpy`, whose dispatch costs as much as the copy.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::sync::OnceLock;

/// Word `i` of `len` bytes at `addr`, little-endian, zero-filled at the end.
///
/// # Safety
/// `addr` must be valid for reads of `len` bytes.
#[inline(always)]
pub unsafe fn word(addr: usize, len: usize, i: usize) -> u64 {
    let left = len.saturating_sub(i * 8);
    // SAFETY: `left` bytes from `addr + i * 8` are inside `len`.
    unsafe {
        match left {
            0 => 0,
            1..8 => tail(addr + i * 8, left),
            _ => ((addr + i * 8) as *const u64).read_unaligned(),
        }
    }
}

/// Loads 1 to 7 bytes. Out of line: with it whoever loads words of messages was too long to be inlined, eight bytes too.
///
/// # Safety
/// `addr` must be valid for reads of `len` bytes.
#[inline(never)]
unsafe fn tail(addr: usize, len: usize) -> u64 {
    // SAFETY: every read below is inside `len` bytes from `addr`.
    unsafe {
        if len >= 4 {
            let low = (addr as *const u32).read_unaligned() as u64;
            let high = ((addr + len - 4) as *const u32).read_unaligned() as u64;
            low | high << ((len - 4) * 8)
        } else {
            let first = *(addr as *const u8) as u64;
            let middle = *((addr + len / 2) as *const u8) as u64;
            let last = *((addr + len - 1) as *const u8) as u64;
            first | middle << (len / 2 * 8) | last << ((len - 1) * 8)
        }
    }
}

/// Copies `len` bytes; short lengths by overlapping words.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap.
#[inline(always)]
pub unsafe fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: each access lies within the first or the last bytes of `len`.
    unsafe {
        if len <= 16 {
            if len >= 8 {
                let a = (from as *const u64).read_unaligned();
                let b = ((from + len - 8) as *const u64).read_unaligned();
                (to as *mut u64).write_unaligned(a);
                ((to + len - 8) as *mut u64).write_unaligned(b);
            } else if len >= 4 {
                let a = (from as *const u32).read_unaligned();
                let b = ((from + len - 4) as *const u32).read_unaligned();
                (to as *mut u32).write_unaligned(a);
                ((to + len - 4) as *mut u32).write_unaligned(b);
            } else {
                let mut i = 0;
                while i < len {
                    *((to + i) as *mut u8) = *((from + i) as *const u8);
                    i += 1;
                }
            }
        } else {
            memcopy::copy(to, from, len);
        }
    }
}

/// Bytes that move between caches at once.
const LINE: usize = 64;

/// Whether this processor can be asked for lines that are to be written.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub fn prefetches() -> bool {
    use std::arch::x86_64::{__cpuid, __get_cpuid_max};
    const FEATURES: u32 = 0x8000_0001;
    const PREFETCHW: u32 = 1 << 8;
    // Asked once: a virtual machine leaves its guest for that.
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| __get_cpuid_max(1 << 31).0 >= FEATURES && __cpuid(FEATURES).ecx & PREFETCHW != 0)
}

/// Whether this processor can be asked for lines that are to be written.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub fn prefetches() -> bool {
    cfg!(target_arch = "aarch64") && !cfg!(miri)
}

/// Bytes whose lines are asked for at once: few enough to be there still when they are written.
const ASKED: usize = 2048;

/// Copies `len` bytes to a place whose lines are asked for before: they come side by side, while ordinary stores get
/// one after the other.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap.
#[inline]
pub unsafe fn copy_prefetched(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { copy_asking::<TO>(to, from, len) }
}

/// Copies `len` bytes whose lines are asked for before: not only up to the end of a page, where a processor stops guessing which come next.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap.
#[inline]
pub unsafe fn copy_asked(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { copy_asking::<FROM>(to, from, len) }
}

/// Copies, and asks for lines before: for those that are written, or for those that are read.
///
/// # Safety
/// As [`copy`].
#[inline(always)]
unsafe fn copy_asking<const HOW: u8>(to: usize, from: usize, len: usize) {
    let asked = if HOW == TO { to } else { from };
    let ask_for = |at: usize, len: usize| {
        let lines = (asked + at..asked + at + len).step_by(LINE);
        if HOW == TO { lines.for_each(ask_to_write) } else { lines.for_each(ask) }
    };
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len > ASKED && streams() {
        let whole = len / LINE * LINE;
        ask_for(0, ASKED);
        // SAFETY: passed on to the caller; the processor was asked.
        return unsafe {
            copy_lines::<HOW>(to, from, whole);
            copy(to + whole, from + whole, len - whole);
        };
    }
    for at in (0..len).step_by(ASKED) {
        let part = ASKED.min(len - at);
        ask_for(at, part);
        // SAFETY: a part of both places.
        unsafe { copy(to + at, from + at, part) }
    }
}

/// How whole lines are copied: each asks for one that is to be written, or read, [`ASKED`] bytes later; or they go past the caches.
const TO: u8 = 0;
const FROM: u8 = 1;
const PAST: u8 = 2;

/// Copies whole lines by halves, in one of these ways. A
/// copy that is called for each part of so many bytes stops for what it reads from afar as well, and takes twice as long for data
/// that no cache of this core holds.
///
/// # Safety
/// As [`copy`]; the processor must have such words ([`streams`]), and past the caches `to` must be aligned to a line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn copy_lines<const HOW: u8>(to: usize, from: usize, len: usize) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_stream_si256};
    for at in (0..len).step_by(LINE) {
        match HOW {
            TO => ask_to_write(to + at + ASKED), // behind the end a hint in vain
            FROM if at + ASKED < len => ask(from + at + ASKED), // there it would take lines from who writes them
            _ => {}
        }
        let (line, into) = ((from + at) as *const __m256i, (to + at) as *mut __m256i);
        // SAFETY: a line of both. Word by word: an array of both goes through memory where its closure is not made part of the loop.
        unsafe {
            let (low, high) = (_mm256_loadu_si256(line), _mm256_loadu_si256(line.add(1)));
            if HOW == PAST {
                _mm256_stream_si256(into, low);
                _mm256_stream_si256(into.add(1), high);
            } else {
                _mm256_storeu_si256(into, low);
                _mm256_storeu_si256(into.add(1), high);
            }
        }
    }
}

/// Into how many parts what is read side by side is cut.
const PARTS: usize = 4;
/// From how many bytes on that is worth it: a page for each part.
pub const PAGES: usize = PARTS * 4096;

/// Copies `len` bytes line by line of four parts at once, for a processor that guesses which lines come next begins anew in each page.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap.
pub unsafe fn copy_side_by_side(to: usize, from: usize, len: usize) {
    let part = len / PARTS / LINE * LINE;
    // SAFETY: lines that lie in `PARTS` times `part`, and the rest of `len` behind them.
    unsafe {
        for at in (0..part).step_by(LINE) {
            for at in (0..PARTS).map(|k| k * part + at) {
                std::ptr::copy_nonoverlapping((from + at) as *const u8, (to + at) as *mut u8, LINE);
            }
        }
        let rest = PARTS * part;
        copy(to + rest, from + rest, len - rest);
    }
}

/// Asks for the line at this address, which is to be written, where the processor can be asked ([`prefetches`]).
#[inline(always)]
pub fn ask_to_write(at: usize) {
    // SAFETY: a hint, which no program can see, whatever is at the address.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nomem, nostack, preserves_flags));
    }
    let _ = at;
}

/// Whether this processor can be asked for lines that are to be read.
pub fn asks() -> bool {
    cfg!(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))
}

/// Asks for the line at this address, which is to be read.
#[inline(always)]
pub fn ask(at: usize) {
    // SAFETY: a hint, which no program can see, whatever is at the address.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at as *const i8);
    }
    // SAFETY: as above.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nomem, nostack, preserves_flags));
    }
    let _ = at;
}

/// Whether this processor has stores that go past the caches, of half a line: shorter ones take three times as long.
pub fn streams() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return std::is_x86_feature_detected!("avx");
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    return false;
}

/// Copies `len` bytes to a place aligned to 64 bytes by stores that go past the caches, and waits until
/// they are visible in order with those that follow.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap, and the processor must have them ([`streams`]).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
pub unsafe fn stream(to: usize, from: usize, len: usize) {
    debug_assert!(to.is_multiple_of(LINE));
    let whole = len / LINE * LINE;
    // SAFETY: lines that lie in `len`; `to` is aligned. The fence ends the weak order of these stores.
    unsafe {
        copy_lines::<PAST>(to, from, whole);
        copy(to + whole, from + whole, len - whole);
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies as usual, where there are no such stores.
///
/// # Safety
/// As [`copy`].
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub unsafe fn stream(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { copy(to, from, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_arrive_whole_by_all_stores() {
        #[repr(align(64))]
        struct Room([u8; 5000]);
        let from: Vec<u8> = (0..5000).map(|i| (i % 251) as u8).collect();
        for len in [0, 1, 63, 64, 65, 127, 128, 400, ASKED - 1, ASKED, ASKED + 1, 2 * ASKED + 100] {
            let mut all: Vec<unsafe fn(usize, usize, usize)> =
                vec![copy_prefetched, copy_asked, copy_side_by_side];
            if streams() {
                all.push(stream);
            }
            for copies in all {
                let mut to = Room([255; 5000]);
                // SAFETY: both have more than `len` bytes, and the processor was asked.
                unsafe { copies(to.0.as_mut_ptr() as usize, from[7..].as_ptr() as usize, len) };
                assert!(to.0[..len] == from[7..7 + len] && to.0[len] == 255, "{len}");
            }
        }
    }

    #[test]
    fn every_length_arrives_whole() {
        let from: Vec<u8> = (1..=80).collect();
        for len in 0..=40 {
            for offset in 0..8 {
                let at = from[offset..].as_ptr() as usize;
                // SAFETY: `offset + 40 <= 80`.
                let words: [u64; 5] = std::array::from_fn(|i| unsafe { word(at, len, i) });
                let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                assert_eq!(bytes[..len], from[offset..offset + len], "len {len}");
                assert!(bytes[len..].iter().all(|b| *b == 0));
                let mut to = [0u8; 41];
                // SAFETY: `len <= 40` on both sides.
                unsafe { copy(to.as_mut_ptr() as usize, at, len) };
                assert_eq!(to[..len], from[offset..offset + len]);
                assert_eq!(to[len], 0);
            }
        }
    }
}
