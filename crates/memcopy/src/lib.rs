//! Copies of memory that take as long as they must, wherever both places lie.
//!
//! `memcpy` of the C library and the kernel's copies from and to programs are one instruction, `rep movsb`, where the
//! processor says that it is quick. On some processors it is not where the destination lies *close behind* its source, by their
//! places within a page: from 1 to 31 bytes behind. Then AMD's Zen 3 copies 3 bytes in a nanosecond instead of 40 to 90
//! (docs/results/copies.md). It is no rare case: large memory of `malloc` begins 16 bytes behind a page, and
//! what is copied there from the beginning of a page, a block, a file or a message, lies 16 bytes behind; so does a page that is
//! written to a socket behind a header of 16 or 20 bytes.
//!
//! So such copies are made by other instructions here, where the processor is seen to be one of these: on others they would only take
//! longer. Who has the kernel copy asks [`wants_detour`] and lays its memory, or its headers, elsewhere.

mod trial;

pub use trial::assume_slow;

use std::cell::RefCell;

/// Bytes of a page; what lies as far behind the beginning of one is alike to the processor.
pub const PAGE: usize = 4096;
/// Bytes behind its source, within a page, from which on a destination is far enough.
const FAR: usize = 32;
/// From this length on the C library copies by that instruction, and a second copy takes less than one that is close behind.
pub const DETOURS: usize = 2048;

/// Whether a copy from `from` to `to` is one that may take many times as long as any other by the instruction `rep movsb`. Both may be
/// offsets within a page.
#[inline(always)]
pub const fn is_close_behind(to: usize, from: usize) -> bool {
    // 0 is not close: it becomes the largest.
    (to.wrapping_sub(from) & (PAGE - 1)).wrapping_sub(1) < FAR - 1
}

/// Whether a copy of so many bytes is worth another way on this processor.
#[inline(always)]
pub fn wants_detour(to: usize, from: usize, len: usize) -> bool {
    len >= DETOURS && is_close_behind(to, from) && trial::is_slow()
}

/// Copies `len` bytes.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap.
#[inline(always)]
pub unsafe fn copy(to: usize, from: usize, len: usize) {
    if wants_detour(to, from, len) {
        // SAFETY: passed on to the caller.
        return unsafe { copy_close_behind(to, from, len) };
    }
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, len) }
}

/// Copies bytes.
///
/// # Panics
/// If there are not as many of both.
pub fn copy_bytes(to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len());
    // SAFETY: as long, and nobody else has `to`.
    unsafe { copy(to.as_mut_ptr() as usize, from.as_ptr() as usize, from.len()) }
}

/// Copies `len` bytes between places that may overlap.
///
/// # Safety
/// Both places must be valid for `len` bytes.
#[inline(always)]
pub unsafe fn copy_overlapping(to: usize, from: usize, len: usize) {
    if wants_detour(to, from, len) && to.abs_diff(from) >= len {
        // SAFETY: passed on to the caller; they do not overlap, as was just seen.
        return unsafe { copy_close_behind(to, from, len) };
    }
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) }
}

/// By words of 16 bytes, which every processor of the kind has, at places aligned for them: stores that reach into two lines take twice as
/// long.
///
/// # Safety
/// As [`copy`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn copy_close_behind(to: usize, from: usize, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_store_si128};
    const WORDS: usize = 4;
    const LINE: usize = WORDS * size_of::<__m128i>();
    let part = |at: usize, len: usize| {
        // SAFETY: a part of both places, shorter than a line.
        unsafe { std::ptr::copy_nonoverlapping((from + at) as *const u8, (to + at) as *mut u8, len) }
    };
    let head = (to.wrapping_neg() % size_of::<__m128i>()).min(len);
    let behind = head + (len - head) / LINE * LINE;
    part(0, head);
    for at in (head..behind).step_by(LINE) {
        let (line, into) = ((from + at) as *const __m128i, (to + at) as *mut __m128i);
        // SAFETY: a line of both; where it goes is aligned behind `head`.
        unsafe {
            let words: [__m128i; WORDS] = std::array::from_fn(|i| _mm_loadu_si128(line.add(i)));
            words.into_iter().enumerate().for_each(|(i, word)| _mm_store_si128(into.add(i), word));
        }
    }
    part(behind, len - behind);
}

/// As any other.
///
/// # Safety
/// As [`copy`].
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn copy_close_behind(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, len) }
}

/// Memory that begins where a page does.
#[derive(Debug, Default)]
pub struct Room {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Room {
    /// So many bytes, all 0.
    pub fn new(len: usize) -> Room {
        let bytes = vec![0; len + PAGE];
        let addr = bytes.as_ptr() as usize;
        Room { start: addr.next_multiple_of(PAGE) - addr, bytes, len }
    }
}

impl std::ops::Deref for Room {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl std::ops::DerefMut for Room {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// Bytes that go [by way of](by_way_of) other memory at once: many enough for a call of the kernel's, few enough for the caches of a
/// core.
pub const DETOUR: usize = 128 << 10;

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// Calls `f` with [`DETOUR`] bytes of this thread's that begin where `like` does within its page. Through them bytes go that the
/// kernel would copy to or from there close behind: by a copy of its own that is not, and by [`copy`].
pub fn by_way_of<R>(like: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    ROOM.with_borrow_mut(|room| {
        if room.is_empty() {
            *room = Room::new(DETOUR + PAGE);
        }
        f(&mut room[like % PAGE..][..DETOUR])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn close_behind_is_told_by_places_within_a_page() {
        for (to, close) in
            [(0, false), (1, true), (16, true), (31, true), (32, false), (64, false), (4080, false)]
        {
            for from in [0x10_0000, 0x7f12_3456_7ff0, 5] {
                for pages in [0, PAGE, 1000 * PAGE] {
                    assert_eq!(is_close_behind(from + pages + to, from), close, "{to}");
                    assert_eq!(is_close_behind(from + to, from + pages), close, "{to}, {pages} before");
                }
            }
        }
    }

    #[test]
    fn a_detour_begins_where_it_is_asked_to() {
        for like in [0, 16, 4095, 0x7f00_0000_1234] {
            let (place, len) = by_way_of(like, |room| (room.as_ptr() as usize, room.len()));
            assert_eq!((place % PAGE, len), (like % PAGE, DETOUR));
        }
    }

    proptest! {
        #[test]
        fn bytes_arrive_and_no_others_change(
            len in 0usize..10_000, behind in 0usize..70, start in 0usize..64, pages in 0usize..4
        ) {
            let from: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8).collect();
            let mut room = vec![0xee; 30_000];
            let source = from.as_ptr() as usize + start;
            let base = room.as_mut_ptr() as usize;
            let to = base + (source + behind).wrapping_sub(base) % PAGE + pages * PAGE;
            for copy in [copy, copy_overlapping, copy_close_behind] {
                room.fill(0xee);
                // SAFETY: both lie in these vectors: up to 64 and 10,000 bytes, and up to five pages and as many.
                unsafe { copy(to, source, len) };
                let at = to - base;
                prop_assert_eq!(&room[at..at + len], &from[start..start + len]);
                prop_assert!(room[..at].iter().chain(&room[at + len..]).all(|byte| *byte == 0xee));
            }
        }

        #[test]
        fn what_overlaps_arrives(len in 0usize..9000, shift in 0usize..5000, down: bool) {
            let mut room: Vec<u8> = (0..16_000).map(|at| (at % 251) as u8).collect();
            let expected = room.clone();
            let (from, to) = if down { (shift, 0) } else { (0, shift) };
            let base = room.as_mut_ptr() as usize;
            // SAFETY: both lie in the vector.
            unsafe { copy_overlapping(base + to, base + from, len) };
            prop_assert_eq!(&room[to..to + len], &expected[from..from + len]);
        }
    }
}
