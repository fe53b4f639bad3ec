//! How fast copies are, in GB/s, by how many bytes the destination lies behind its source within a page: the least of 100 turns.
//! `cargo run --release -p memcopy --example speeds`

use std::hint::black_box;
use std::time::Instant;

const BEHIND: [usize; 8] = [0, 1, 16, 31, 32, 48, 64, 4080];
const LENGTHS: [usize; 7] = [512, 2 << 10, 4 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20];

type Copy = unsafe fn(usize, usize, usize);

/// # Safety
/// As [`memcopy::copy`].
#[cfg(target_arch = "x86_64")]
unsafe fn rep_movsb(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        std::arch::asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _, inout("rcx") len => _)
    }
}

/// # Safety
/// As [`memcopy::copy`].
unsafe fn memcpy(to: usize, from: usize, len: usize) {
    // SAFETY: passed on to the caller.
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, black_box(len)) }
}

fn main() {
    let (from, to) = (memcopy::Room::new(1 << 20), memcopy::Room::new((1 << 20) + memcopy::PAGE));
    let ways: &[(&str, Copy)] = &[
        #[cfg(target_arch = "x86_64")]
        ("rep movsb", rep_movsb),
        ("memcpy", memcpy),
        ("memcopy::copy", memcopy::copy),
    ];
    println!("bytes behind: {BEHIND:?}");
    for (name, copy) in ways {
        for len in LENGTHS {
            let rates =
                BEHIND.map(|behind| rate(*copy, to.as_ptr() as usize + behind, from.as_ptr() as usize, len));
            println!("{name:14} {len:8}: {}", rates.map(|rate| format!("{rate:6.1}")).join(" "));
        }
    }
}

/// Bytes for each nanosecond.
fn rate(copy: Copy, to: usize, from: usize, len: usize) -> f64 {
    let count = ((128 << 10) / len).max(3);
    let turns = (0..100).map(|_| {
        let begun = Instant::now();
        // SAFETY: both rooms are as long as the longest copy, and `to` as the bytes that it lies behind besides.
        (0..count).for_each(|_| unsafe { copy(black_box(to), black_box(from), len) });
        begun.elapsed().as_nanos() as f64 / count as f64
    });
    len as f64 / turns.fold(f64::INFINITY, f64::min)
}
