//! Memory by address; with `options` what this crate has of `unsafe`.
//!
//! Addresses come from whoever posts work or registers memory (`fabric::verbs`): that memory stays valid until the
//! work has completed, or the registration has ended. The stack has checked that an access lies inside.
#![allow(unsafe_code)]

use crate::stack::Atomic;
use fabric::Span;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of a span.
pub fn bytes<'a>(span: Span) -> &'a [u8] {
    if span.len == 0 {
        return &[];
    }
    // SAFETY: see the head of this module; nobody writes there while work reads it.
    unsafe { std::slice::from_raw_parts(span.addr as *const u8, span.len) }
}

/// The same, to be written.
pub fn bytes_mut<'a>(span: Span) -> &'a mut [u8] {
    if span.len == 0 {
        return &mut [];
    }
    // SAFETY: see the head of this module; nobody else touches it until the work has completed.
    unsafe { std::slice::from_raw_parts_mut(span.addr as *mut u8, span.len) }
}

/// Copies between two places, which may overlap.
pub fn copy(to: usize, from: usize, len: usize) {
    // SAFETY: see the head of this module.
    unsafe { memcopy::copy_overlapping(to, from, len) }
}

/// An aligned word that others may change.
pub fn word<'a>(addr: usize) -> &'a AtomicU64 {
    assert!(addr.is_multiple_of(8), "a word at {addr:#x}");
    // SAFETY: see the head of this module; aligned, as was just checked.
    unsafe { &*(addr as *const AtomicU64) }
}

/// Reads a word: what was written before it is visible.
pub fn load(addr: usize) -> u64 {
    word(addr).load(Ordering::Acquire)
}

/// Writes a word.
pub fn store(addr: usize, value: u64) {
    word(addr).store(value, Ordering::Release);
}

/// Changes a word as an atomic operation says; what it was.
pub fn change(addr: usize, atomic: &Atomic) -> u64 {
    let change = |held: u64| Some(atomic.apply(held));
    match word(addr).fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
        Ok(held) | Err(held) => held,
    }
}
