//! What to watch so that a buffer is watched: whole mappings.
//!
//! To watch part of a mapping splits it in two, and `mremap` of memory in two mappings fails: a
//! program that may be right would break because it has sent a part of its memory. So the mappings that hold the
//! buffer are watched from end to end. It also takes one call for all buffers of a heap.

use crate::sys::Maps;
use fabric::Span;

/// From the beginning of the mapping that holds the first byte to the end of the one that holds the
/// last; `None` if there is none.
pub fn mappings(maps: &Maps, span: Span) -> Option<Span> {
    let first = maps.mapping(span.addr).ok()?;
    let last_byte = span.addr + span.len.max(1) - 1;
    let last = if last_byte < first.addr + first.len { first } else { maps.mapping(last_byte).ok()? };
    Some(Span { addr: first.addr, len: last.addr + last.len - first.addr })
}

/// The pages that hold a span.
pub fn pages(span: Span, page_bytes: usize) -> Span {
    let addr = span.addr - span.addr % page_bytes;
    let end = (span.addr + span.len.max(1)).next_multiple_of(page_bytes);
    Span { addr, len: end - addr }
}
