//! Tools that look on: valgrind, and ThreadSanitizer.
//!
//! Valgrind's tools take requests, a sequence of instructions that does nothing outside (the encoding
//! is that of `valgrind.h`: the numbers of the requests, the registers, the rotations that add up to a
//! whole turn). What they cannot see is told them: memory that a peer has written with
//! `process_vm_writev`, who holds a lock that is not one of pthread's, and which words are atomic: they
//! see no more of an atomic load or store than its instruction. Where no tool looks on nothing is done:
//! that is found out once.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, Ordering};

/// Number of the request whether the program runs on valgrind.
const RUNNING_ON_VALGRIND: usize = 0x1001;
/// Number of memcheck's request to take memory for initialised: its tools' letters, then the third.
const MAKE_MEM_DEFINED: usize = ((b'M' as usize) << 24 | (b'C' as usize) << 16) + 2;

/// Number of helgrind's request not to look at memory from now on.
const MAKE_UNTRACKED: usize = ((b'H' as usize) << 24 | (b'G' as usize) << 16) + 256 + 39;
/// Number of the same request of drd.
const START_SUPPRESSION: usize = ((b'D' as usize) << 24 | (b'R' as usize) << 16) + 2;

const UNKNOWN: u8 = 0;
const NONE: u8 = 1;
/// One of valgrind's, which looks at memory or counts.
const VALGRIND: u8 = 2;
/// ThreadSanitizer, which looks at threads.
const THREADS: u8 = 3;
/// One of valgrind's that looks at threads.
const VALGRIND_THREADS: u8 = 4;

static TOOL: AtomicU8 = AtomicU8::new(UNKNOWN);

#[inline]
fn tool() -> u8 {
    match TOOL.load(Ordering::Relaxed) {
        UNKNOWN => find(),
        known => known,
    }
}

#[cold]
fn find() -> u8 {
    let found = if request(0, [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0]) != 0 {
        if checks_threads() { VALGRIND_THREADS } else { VALGRIND }
    } else if has_thread_sanitizer() {
        THREADS
    } else {
        NONE
    };
    TOOL.store(found, Ordering::Relaxed);
    found
}

/// Whether valgrind's tool is one for threads: it loads a library of its own into the program.
fn checks_threads() -> bool {
    let loaded = std::env::var("LD_PRELOAD").unwrap_or_default();
    ["vgpreload_helgrind", "vgpreload_drd"].iter().any(|library| loaded.contains(library))
}

/// Whether the program was built with ThreadSanitizer, whose functions it then exports.
fn has_thread_sanitizer() -> bool {
    if cfg!(miri) {
        return false;
    }
    // SAFETY: a terminated name is looked up among what is loaded.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_acquire".as_ptr()) }.is_null()
}

/// Whether a tool for threads looks on, which has to be shown who holds a lock.
#[inline(always)]
pub fn is_on() -> bool {
    tool() >= THREADS
}

#[inline]
fn is_valgrind() -> bool {
    matches!(tool(), VALGRIND | VALGRIND_THREADS)
}

/// Says that a peer has written this memory.
#[inline]
pub fn written(addr: usize, len: usize) {
    if is_valgrind() {
        request(0, [MAKE_MEM_DEFINED, addr, len, 0, 0, 0]);
    }
}

/// Says that threads use this word without a lock, because it is atomic.
#[inline]
pub fn atomic<T>(word: &T) {
    if is_valgrind() {
        let (addr, len) = (word as *const T as usize, size_of::<T>());
        // Each tool passes over the requests of the others.
        request(0, [MAKE_UNTRACKED, addr, len, 0, 0, 0]);
        request(0, [START_SUPPRESSION, addr, len, 0, 0, 0]);
    }
}

/// A request of valgrind: its number and arguments. The answer is `default` without valgrind.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn request(default: usize, arguments: [usize; 6]) -> usize {
    let mut answer = default;
    // SAFETY: rotates a register by 128 bits in all and exchanges one with itself; valgrind, which
    // recognises this, reads the arguments.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
        );
    }
    answer
}

/// As above, for the other processor that ranks run on.
#[cfg(all(target_arch = "aarch64", not(miri)))]
fn request(default: usize, arguments: [usize; 6]) -> usize {
    let mut answer = default;
    // SAFETY: rotates a register by 128 bits in all and combines one with itself; valgrind, which
    // recognises this, reads the arguments.
    unsafe {
        std::arch::asm!(
            "ror x12, x12, #3", "ror x12, x12, #13", "ror x12, x12, #51", "ror x12, x12, #61",
            "orr x10, x10, x10",
            in("x4") arguments.as_ptr(),
            inout("x3") answer,
        );
    }
    answer
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn request(default: usize, _: [usize; 6]) -> usize {
    default
}

/// A lock as tools know it, which takes the place of one of ours where a tool looks on.
pub struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the functions of pthread are what may touch it from several threads.
unsafe impl Sync for Mutex {}
// SAFETY: as above; it is not moved once it is used, for it is part of a lock that is shared.
unsafe impl Send for Mutex {}

impl Mutex {
    /// Taken by nobody.
    pub const fn free() -> Mutex {
        Mutex(UnsafeCell::new(libc::PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP))
    }

    /// Takes the lock; false if the calling thread holds it.
    #[cold]
    pub fn lock(&self) -> bool {
        // SAFETY: initialised, and never destroyed.
        unsafe { libc::pthread_mutex_lock(self.0.get()) == 0 }
    }

    /// Gives it back; only its holder may.
    #[cold]
    pub fn unlock(&self) {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }

    /// Makes it one that nobody has taken; no other thread may use it meanwhile.
    pub fn reset(&self) {
        // SAFETY: this thread is the only one.
        unsafe { *self.0.get() = libc::PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a tool nothing happens; on valgrind the memory is known from then on.
    #[test]
    fn requests_do_no_harm() {
        assert_eq!(request(7, [RUNNING_ON_VALGRIND, 0, 0, 0, 0, 0]) == 7, tool() != VALGRIND);
        let bytes = [1u8; 64];
        written(bytes.as_ptr() as usize, bytes.len());
        assert_eq!(bytes, [1; 64]);
        atomic(&bytes);
        let mutex = Mutex::free();
        assert!(mutex.lock() && !mutex.lock());
        mutex.unlock();
    }
}
