//! Whether this processor is one on which copies close behind are slow: found out once, when the first one comes, by copies as the
//! kernel makes them. Nothing is known of processors by name.

use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const QUICK: u8 = 1;
const SLOW: u8 = 2;

static FOUND: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether a copy by another way, and one by words behind it, take less than the copy close behind.
#[inline(always)]
pub fn is_slow() -> bool {
    match FOUND.load(Ordering::Relaxed) {
        UNKNOWN => find_out(),
        found => found == SLOW,
    }
}

/// Settles it for this process, for tests of what is done on such a processor.
pub fn assume_slow(is_slow: bool) {
    FOUND.store(if is_slow { SLOW } else { QUICK }, Ordering::Relaxed);
}

/// Threads that come here at once all find it out, and may not agree for once: either way is correct.
#[cold]
#[inline(never)]
fn find_out() -> bool {
    let is_slow = measured();
    assume_slow(is_slow);
    is_slow
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn measured() -> bool {
    use std::time::{Duration, Instant};

    use crate::{PAGE, Room, copy_close_behind};

    /// Long enough for the clock, short enough for the first cache: 5 µs where such copies are slow, 0.3 where they are not.
    const LEN: usize = 4 * PAGE;
    /// Of so many copies the fastest counts: an interruption makes no processor slow.
    const COPIES: usize = 5;

    let (from, mut to) = (Room::new(LEN), Room::new(LEN + PAGE));
    let (from, to) = (from.as_ptr() as usize, to.as_mut_ptr() as usize);
    let fastest = |copy: &dyn Fn()| {
        let time = |_| {
            let begun = Instant::now();
            copy();
            begun.elapsed()
        };
        (0..COPIES).map(time).min().unwrap_or(Duration::MAX)
    };
    // SAFETY: both rooms hold as many bytes there, and are apart.
    let string = |behind: usize| fastest(&|| unsafe { move_string(to + behind, from, LEN) });
    // Both begin within a line: what that costs is another matter.
    let (close, apart) = (string(16), string(48));
    // SAFETY: as before.
    let words = fastest(&|| unsafe { copy_close_behind(to + 16, from, LEN) });
    close > apart + words
}

/// Elsewhere no such processor is known, nor an instruction of that kind.
#[cfg(any(not(target_arch = "x86_64"), miri))]
fn measured() -> bool {
    false
}

/// Copies bytes as the kernel does.
///
/// # Safety
/// Both places must be valid for `len` bytes and must not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn move_string(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller; the direction flag is clear between instructions of Rust.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DETOURS, wants_detour};

    #[test]
    fn what_is_assumed_holds() {
        for slow in [true, false] {
            assume_slow(slow);
            assert_eq!(is_slow(), slow);
            assert_eq!(wants_detour(16, 0, DETOURS), slow);
            assert!(!wants_detour(16, 0, DETOURS - 1) && !wants_detour(32, 0, DETOURS));
        }
        FOUND.store(UNKNOWN, Ordering::Relaxed);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn strings_are_moved_whole_and_nothing_else_is() {
        let from: Vec<u8> = (0..300).map(|at| at as u8).collect();
        let mut to = [0xee; 400];
        // SAFETY: 300 bytes of both.
        unsafe { move_string(to[50..].as_mut_ptr() as usize, from.as_ptr() as usize, 300) };
        assert_eq!(to[50..350], from[..]);
        assert!(to[..50].iter().chain(&to[350..]).all(|byte| *byte == 0xee));
    }
}
