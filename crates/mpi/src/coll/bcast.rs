//! Broadcasts.
//!
//! Binomial sends the whole message ⌈log2 p⌉ times in a row: best while latency decides. Scatter
//! and allgather (van de Geijn; Thakur, Rabenseifner, Gropp 2005, section 4.2) moves each byte
//! about twice over each link. The chain passes segments down a line, so that all links work at
//! once: best for the longest messages. Linear takes one round: best where a round costs more than
//! messages do, and where receivers fetch long messages out of the root's buffer by themselves.
use super::build::{Builder, Split, View};
use super::gather::Window;
use super::schedule::Buf;

/// The tree in which a rank's parent is its number, counted from the root, less its lowest bit.
pub fn binomial(b: &mut Builder, v: &View, buf: Buf, root: usize) {
    let relative = (v.me + v.size - root) % v.size;
    let absolute = |r: usize| (r + root) % v.size;
    let mut mask = 1;
    while mask < v.size && relative & mask == 0 {
        mask *= 2;
    }
    if relative != 0 {
        let come = b.recv(v, absolute(relative - mask), buf);
        b.wait(come);
    }
    while mask > 1 {
        mask /= 2;
        if relative + mask < v.size {
            b.send(v, absolute(relative + mask), buf);
        }
    }
}

/// The root sends to everybody.
pub fn linear(b: &mut Builder, v: &View, buf: Buf, root: usize) {
    if v.me != root {
        b.recv(v, root, buf);
        return;
    }
    let mut window = Window::default();
    for distance in 1..v.size {
        let posted = b.send(v, v.after(distance), buf);
        window.push(b, posted);
    }
}

/// Binomial scatter of equal pieces, then a ring in which every rank passes on what came last.
pub fn scatter_allgather(b: &mut Builder, v: &View, buf: Buf, root: usize) {
    let bytes = packed(b, v, buf, root);
    let split = Split { total: bytes.count, parts: v.size as u64 };
    let relative = (v.me + v.size - root) % v.size;
    let absolute = |r: usize| (r + root) % v.size;
    let pieces = |b: &Builder, from: usize, to: usize| b.part(bytes, split.start(from), split.len(from, to));
    let mut mask = 1;
    while mask < v.size && relative & mask == 0 {
        mask *= 2;
    }
    if relative != 0 {
        let mine = pieces(b, relative, (relative + mask).min(v.size));
        let come = b.recv(v, absolute(relative - mask), mine);
        b.wait(come);
    }
    while mask > 1 {
        mask /= 2;
        if relative + mask < v.size {
            let theirs = pieces(b, relative + mask, (relative + 2 * mask).min(v.size));
            b.send(v, absolute(relative + mask), theirs);
        }
    }
    // Pieces a rank holds since the scatter are not sent to it again: the root's buffer is not
    // written, and inner ranks save the traffic.
    let holds = |r: usize, piece: usize| {
        let span = if r == 0 { v.size } else { r & r.wrapping_neg() };
        (r..r + span).contains(&piece)
    };
    for round in 0..v.size.saturating_sub(1) {
        let old = (relative + v.size - round) % v.size;
        let new = (old + v.size - 1) % v.size;
        if !holds(relative, new) {
            let into = pieces(b, new, new + 1);
            b.recv(v, v.before(1), into);
        }
        if !holds((relative + 1) % v.size, old) {
            let out = pieces(b, old, old + 1);
            b.send(v, v.after(1), out);
        }
        b.wait_all();
    }
    unpacked(b, v, bytes, buf, root);
}

/// Segments down a line that starts at the root; receives are posted two ahead.
pub fn chain(b: &mut Builder, v: &View, buf: Buf, root: usize, segment: u64) {
    let bytes = packed(b, v, buf, root);
    let relative = (v.me + v.size - root) % v.size;
    let count = bytes.count.div_ceil(segment.max(1));
    let piece = |b: &Builder, i: u64| b.part(bytes, i * segment, segment.min(bytes.count - i * segment));
    let mut ahead = std::collections::VecDeque::new();
    let (first, last) = (relative == 0, relative + 1 == v.size);
    for i in 0..count + 2 {
        if !first && i < count {
            let into = piece(b, i);
            ahead.push_back(b.recv(v, v.before(1), into));
        }
        if i >= 2 {
            if let Some(posted) = ahead.pop_front() {
                b.wait(posted);
            }
            if !last {
                let out = piece(b, i - 2);
                b.send(v, v.after(1), out);
            }
        }
    }
    unpacked(b, v, bytes, buf, root);
}

/// The message as a run of bytes: in place, or packed into scratch memory by the root.
fn packed(b: &mut Builder, v: &View, buf: Buf, root: usize) -> Buf {
    if let Some(bytes) = b.as_bytes(buf) {
        return bytes;
    }
    let size = b.bytes(buf);
    let temp = b.temp(size);
    if v.me == root {
        b.copy(buf, temp);
    }
    temp
}

fn unpacked(b: &mut Builder, v: &View, bytes: Buf, buf: Buf, root: usize) {
    if v.me != root && b.as_bytes(buf).is_none() {
        b.wait_all();
        b.copy(bytes, buf);
    }
}
