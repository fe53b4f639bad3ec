//! Raw access to the memory of the application: the one module of this crate with `unsafe`.
//!
//! MPI hands buffers over as addresses. That they are valid for the length described by count
//! and datatype, and not written by another thread meanwhile, is the application's side of the
//! contract (MPI 5.0 section 3.2.2); nothing here can check it.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::error::{Class, Error, Result};

/// Numbers of which all bits may be zero.
pub trait Zero: Copy {}

impl Zero for u8 {}
impl Zero for u128 {}

/// Memory of a size that the application decides: there may be too little. Zeroed by the system,
/// which touches no page of it.
pub fn zeroed<T: Zero>(len: usize) -> Result<Box<[T]>> {
    let refused = || {
        let bytes = len as u128 * size_of::<T>() as u128;
        Error::new(Class::NO_MEM, format!("there is no memory for {bytes} bytes"))
    };
    if len == 0 {
        return Ok(Box::default());
    }
    let layout = std::alloc::Layout::array::<T>(len).map_err(|_| refused())?;
    // SAFETY: the layout is not empty.
    let start = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>();
    if start.is_null() {
        return Err(refused());
    }
    // SAFETY: allocated just now with the layout of this slice, all of it zero, which `T` may be.
    Ok(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, len)) })
}

/// Copies `out.len()` bytes from address `from`.
#[inline]
pub fn read(from: usize, out: &mut [u8]) {
    // SAFETY: the caller passes an address inside a buffer the application gave to MPI.
    unsafe { memcopy::copy_overlapping(out.as_mut_ptr() as usize, from, out.len()) }
}

/// Copies `data` to address `to`.
#[inline]
pub fn write(to: usize, data: &[u8]) {
    // SAFETY: as in `read`; the buffer is one MPI may write.
    unsafe { memcopy::copy_overlapping(to, data.as_ptr() as usize, data.len()) }
}

/// Copies `len` bytes between two places that may overlap.
#[inline]
pub fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: as in `read` and `write`.
    unsafe { memcopy::copy_overlapping(to, from, len) }
}

/// The bytes at `addr` as a slice, for the length of one call.
#[inline]
pub fn with<R>(addr: usize, len: usize, f: impl FnOnce(&[u8]) -> R) -> R {
    if len == 0 {
        return f(&[]);
    }
    // SAFETY: as in `read`; the slice does not outlive the call.
    f(unsafe { std::slice::from_raw_parts(addr as *const u8, len) })
}

/// The bytes of words.
pub fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: the same memory for as long; every byte of a word is one.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// The bytes at `addr` as a slice to change, for the length of one call.
#[inline]
pub fn with_mut<R>(addr: usize, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    if len == 0 {
        return f(&mut []);
    }
    // SAFETY: as in `write`; the slice does not outlive the call.
    f(unsafe { std::slice::from_raw_parts_mut(addr as *mut u8, len) })
}

/// Runs a loop as it is compiled for the widest vectors that this processor has: for loops that are inlined
/// into `f`. A library is built for processors without them.
#[inline(always)]
pub fn in_vectors(f: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn widest(f: impl FnOnce()) {
            f();
        }
        #[target_feature(enable = "avx2")]
        fn wide(f: impl FnOnce()) {
            f();
        }
        if is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has what `widest` is compiled for: these three need the fourth.
            return unsafe { widest(f) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what `wide` is compiled for.
            return unsafe { wide(f) };
        }
    }
    f();
}

/// Runs `$body` with the atomic word of `$len` bytes (1, 2, 4 or 8) at `$addr`, which lies on its boundary, and with what
/// makes a value of it of the first of 8 bytes, and 8 bytes of a value.
macro_rules! by_width {
    ($addr:ident, $len:ident, |$place:ident, $narrow:ident, $widen:ident| $body:expr) => {{
        assert!($addr.is_multiple_of($len), "an element that is not on its boundary");
        match $len {
            1 => by_width!(@ AtomicU8, u8, $addr, $place, $narrow, $widen, $body),
            2 => by_width!(@ AtomicU16, u16, $addr, $place, $narrow, $widen, $body),
            4 => by_width!(@ AtomicU32, u32, $addr, $place, $narrow, $widen, $body),
            8 => by_width!(@ AtomicU64, u64, $addr, $place, $narrow, $widen, $body),
            _ => panic!("no atomic instruction changes {} bytes", $len),
        }
    }};
    (@ $atomic:ty, $plain:ty, $addr:ident, $place:ident, $narrow:ident, $widen:ident, $body:expr) => {{
        // SAFETY: as in `write`; aligned, and others of this job change it by atomic instructions too.
        let $place = unsafe { <$atomic>::from_ptr($addr as *mut $plain) };
        let $narrow =
            |bytes: [u8; 8]| <$plain>::from_ne_bytes(*bytes.first_chunk().expect("at most 8 bytes"));
        let $widen = |value: $plain| {
            let mut bytes = [0; 8];
            bytes[..size_of::<$plain>()].copy_from_slice(&value.to_ne_bytes());
            bytes
        };
        $body
    }};
}

/// Changes the `len` bytes (1, 2, 4 or 8) at `addr`, which lie on their boundary, in one atomic step; what they were. They are the
/// first bytes of what `f` is given and gives.
#[inline]
pub fn update(addr: usize, len: usize, f: impl Fn([u8; 8]) -> [u8; 8]) -> [u8; 8] {
    by_width!(addr, len, |place, narrow, widen| {
        let mut seen = place.load(Ordering::Acquire);
        loop {
            let next = narrow(f(widen(seen)));
            match place.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(before) => break widen(before),
                Err(now) => seen = now,
            }
        }
    })
}

/// What one atomic instruction does with the element at an address and another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instruction {
    /// Sum of integers.
    Add,
    /// Both bits.
    And,
    /// Either bit.
    Or,
    /// One bit of both.
    Xor,
    /// The other one.
    Swap,
    /// It stays.
    Load,
}

/// As [`update`], by one instruction.
#[inline]
pub fn change(addr: usize, len: usize, how: Instruction, with: [u8; 8]) -> [u8; 8] {
    by_width!(addr, len, |place, narrow, widen| {
        let with = narrow(with);
        widen(match how {
            Instruction::Add => place.fetch_add(with, Ordering::AcqRel),
            Instruction::And => place.fetch_and(with, Ordering::AcqRel),
            Instruction::Or => place.fetch_or(with, Ordering::AcqRel),
            Instruction::Xor => place.fetch_xor(with, Ordering::AcqRel),
            Instruction::Swap => place.swap(with, Ordering::AcqRel),
            Instruction::Load => place.load(Ordering::Acquire),
        })
    })
}

/// Replaces the `len` bytes (1, 2, 4 or 8) at `addr`, which lie on their boundary, by `new` if they are `compare`, in
/// one atomic step; what they were.
#[inline]
pub fn swap_if(addr: usize, len: usize, compare: [u8; 8], new: [u8; 8]) -> [u8; 8] {
    by_width!(addr, len, |place, narrow, widen| {
        let (compare, new) = (narrow(compare), narrow(new));
        let done = place.compare_exchange(compare, new, Ordering::AcqRel, Ordering::Acquire);
        widen(done.unwrap_or_else(|now| now))
    })
}

/// Copies a run of bytes, one of the lengths of most one-sided operations without a call.
#[inline(always)]
pub fn copy_run(to: usize, from: usize, len: usize) {
    // SAFETY: as in `copy`; the types have alignment 1.
    unsafe {
        match len {
            8 => (to as *mut [u8; 8]).write((from as *const [u8; 8]).read()),
            4 => (to as *mut [u8; 4]).write((from as *const [u8; 4]).read()),
            _ => memcopy::copy_overlapping(to, from, len),
        }
    }
}

/// The `len` bytes (at most 8) at `addr`, and zeros behind them.
#[inline(always)]
pub fn short(addr: usize, len: usize) -> [u8; 8] {
    let mut bytes = [0; 8];
    match len {
        8 => read(addr, &mut bytes),
        4 => read(addr, &mut bytes[..4]),
        _ => read(addr, &mut bytes[..len]),
    }
    bytes
}

/// All stores before are seen by whoever sees what this thread does next, and its next loads see what was stored
/// before them.
#[inline(always)]
pub fn order() {
    #[cfg(target_arch = "x86_64")]
    {
        // An exchange with memory orders as `mfence` does, in fewer cycles.
        std::hint::black_box(AtomicU32::new(0).swap(1, Ordering::SeqCst));
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// The word at `addr`, which several processes share, for the length of one call.
#[inline]
pub fn word<R>(addr: usize, f: impl FnOnce(&AtomicU32) -> R) -> R {
    // SAFETY: the caller passes an aligned address in memory of the library, which all change by atomic instructions.
    f(unsafe { AtomicU32::from_ptr(addr as *mut u32) })
}

/// Block sizes for which the loop is compiled with the size known, so that a block is a few
/// register moves instead of a call.
macro_rules! by_block {
    ($len:expr, $f:ident, $general:expr, $($arg:expr),*) => {
        match $len {
            1 => $f::<1>($($arg),*),
            2 => $f::<2>($($arg),*),
            4 => $f::<4>($($arg),*),
            8 => $f::<8>($($arg),*),
            12 => $f::<12>($($arg),*),
            16 => $f::<16>($($arg),*),
            24 => $f::<24>($($arg),*),
            32 => $f::<32>($($arg),*),
            _ => $general,
        }
    };
}

/// Collects blocks of `len` bytes, `stride` bytes apart from address `from` on, into `out`, whose
/// length is a multiple of `len`.
#[inline]
pub fn gather(out: &mut [u8], from: usize, stride: i64, len: usize) {
    let addresses = Strided { next: from, stride };
    by_block!(len, gather_fixed, gather_any(out, addresses, len), out, addresses)
}

/// As [`gather`], with the blocks at `offsets` from address `from`.
#[inline]
pub fn gather_at(out: &mut [u8], from: usize, offsets: &[i64], len: usize) {
    let addresses = offsets.iter().map(|&offset| from.wrapping_add_signed(offset as isize));
    by_block!(len, gather_fixed, gather_any(out, addresses, len), out, addresses)
}

/// Distributes `data` in blocks of `len` bytes, `stride` bytes apart from address `to` on.
#[inline]
pub fn scatter(to: usize, stride: i64, data: &[u8], len: usize) {
    let addresses = Strided { next: to, stride };
    by_block!(len, scatter_fixed, scatter_any(data, addresses, len), data, addresses)
}

/// As [`scatter`], with the blocks at `offsets` from address `to`.
#[inline]
pub fn scatter_at(to: usize, offsets: &[i64], data: &[u8], len: usize) {
    let addresses = offsets.iter().map(|&offset| to.wrapping_add_signed(offset as isize));
    by_block!(len, scatter_fixed, scatter_any(data, addresses, len), data, addresses)
}

/// Addresses at a constant distance, without end.
#[derive(Clone, Copy)]
struct Strided {
    next: usize,
    stride: i64,
}

impl Iterator for Strided {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let addr = self.next;
        self.next = addr.wrapping_add_signed(self.stride as isize);
        Some(addr)
    }
}

#[inline]
fn gather_fixed<const LEN: usize>(out: &mut [u8], addresses: impl Iterator<Item = usize>) {
    for (block, addr) in out.as_chunks_mut::<LEN>().0.iter_mut().zip(addresses) {
        // SAFETY: as in `read`; the type has alignment 1.
        *block = unsafe { (addr as *const [u8; LEN]).read() };
    }
}

#[inline]
fn gather_any(out: &mut [u8], addresses: impl Iterator<Item = usize>, len: usize) {
    for (block, addr) in out.chunks_exact_mut(len).zip(addresses) {
        read(addr, block);
    }
}

#[inline]
fn scatter_fixed<const LEN: usize>(data: &[u8], addresses: impl Iterator<Item = usize>) {
    for (block, addr) in data.as_chunks::<LEN>().0.iter().zip(addresses) {
        // SAFETY: as in `write`; the type has alignment 1.
        unsafe { (addr as *mut [u8; LEN]).write(*block) }
    }
}

#[inline]
fn scatter_any(data: &[u8], addresses: impl Iterator<Item = usize>, len: usize) {
    for (block, addr) in data.chunks_exact(len).zip(addresses) {
        write(addr, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        assert_eq!(*zeroed::<u128>(3).unwrap(), [0; 3]);
        assert!(zeroed::<u8>(0).unwrap().is_empty());
        for len in [usize::MAX, isize::MAX as usize, 1 << 60] {
            let error = zeroed::<u128>(len).unwrap_err();
            assert!(error.class == Class::NO_MEM && error.text.contains("no memory for"), "{error}");
        }
        assert_eq!(zeroed::<u8>(isize::MAX as usize).unwrap_err().class, Class::NO_MEM);
    }
}
