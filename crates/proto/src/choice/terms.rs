//! What each protocol would cost: sums of named terms, from facts.
//!
//! A cost is the time in ns from the send to the last byte in the receiver's buffer, with both sides in
//! MPI. Pure functions; the formulas are those of the papers:
//!
//! | protocol | formula |
//! |---|---|
//! | eager | `2·C + NT`: «000» (1) |
//! | frequent | `C + NT + V + R·(1 - r)`: «000» (2); reuse `r` says which part of `R` is left to pay |
//! | both | `setup + L·single`: rendezvous in which both sides copy |
//! | frames | `2·C`: rendezvous through slots, where nobody can copy from the other |
//! | rget, rput | `λreg + L/Breg` on both sides («003», section 2), handshake, `λ + L/Bnet`; of rput the FIN, which leaves when the write is known to have ended |
//! | write | as rput, but the receiver's part was done while it waited («002», section 4.2.1) |
//! | pipeline, caching-pipeline | «001», sections 4 and 5.2: what registration exceeds the wire by |
//! | superpipeline | «003» (9), with the gaps of (7) counted for bounded chunks, and what the window waits for |
//! | copy-pipeline | «003» (1) with the chunk of (3), likewise |
//!
//! The reuse `r` of a buffer is the part of its uses that find it registered: for a buffer that was used
//! `u` times before, `u/(u + s)` with the speculation factor `s` of «000», since nobody knows the
//! future. A late receiver hides what the sender does before it is
//! needed («002», section 4.2.1: who is late waits for nobody): registration, the way of the RTS, the head of a pipeline.

use crate::choice::eager_limit::HANDSHAKE_NS;
use crate::choice::facts::{Facts, Path};
use crate::choice::tuning::{self, SUB_BLOCK_BYTES};
use crate::choice::way::Way;
use fabric::Distance;

/// What a cost is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Term {
    /// Registering memory, as far as nothing hides it.
    Registration,
    /// Giving it back before the receive ends.
    Deregistration,
    /// Copies that are not hidden behind the wire.
    Copy,
    /// Latencies of the messages before the first byte.
    Handshake,
    /// `λ + L/Bnet`.
    Wire,
    /// Gaps between writes, and posting them.
    Gaps,
    /// Searches in the tables of buffers and registrations.
    Search,
}

impl Term {
    /// All of them with their names.
    pub const ALL: [(Term, &'static str); 7] = [
        (Term::Registration, "registration"),
        (Term::Deregistration, "deregistration"),
        (Term::Copy, "copy"),
        (Term::Handshake, "handshake"),
        (Term::Wire, "wire"),
        (Term::Gaps, "gaps"),
        (Term::Search, "search"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Term::ALL[self as usize].1
    }
}

/// What a message would cost, by term, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Cost(pub [f64; Term::ALL.len()]);

impl Cost {
    /// The whole of it.
    pub fn total_ns(&self) -> f64 {
        self.0.iter().sum()
    }

    /// One term.
    pub fn get(&self, term: Term) -> f64 {
        self.0[term as usize]
    }

    fn with(mut self, term: Term, ns: f64) -> Cost {
        self.0[term as usize] += ns.max(0.0);
        self
    }
}

/// What is known about a message when its way is chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message {
    /// Its length in bytes.
    pub len: usize,
    /// How far away its receiver is.
    pub distance: Distance,
    /// Part of the uses of its buffer that find it registered; the receiver's is taken for equal.
    pub reuse: f64,
    /// An RTR waits for it.
    pub rtr: bool,
    /// By how much its receiver is expected to come later than the RTS.
    pub late_ns: f64,
    /// The sender's part of an eager message may be all that is asked for: standard mode.
    pub eager: bool,
}

/// Whether a message can go this way.
fn is_open(way: Way, facts: &Facts, message: &Message) -> bool {
    let path = facts.path(message.distance);
    let fits = message.eager && message.len <= path.eager_bytes.max(path.at_once_bytes);
    match way {
        Way::Eager => fits,
        Way::Frequent => fits && path.keeps && message.len > path.inline_bytes,
        Way::Both => !path.registration && path.reach,
        Way::Frames => !path.registration && !path.reach,
        Way::Write => path.registration && message.rtr,
        Way::CachingPipeline => path.keeps,
        _ => path.registration,
    }
}

/// What a message would cost by one way; `None` if it cannot go there.
pub fn cost(way: Way, facts: &Facts, message: &Message) -> Option<Cost> {
    if !is_open(way, facts, message) {
        return None;
    }
    Some(match way {
        Way::Eager => eager(facts, message),
        Way::Frequent => frequent(facts, message),
        Way::Both => both(facts, message),
        Way::Frames => frames(facts, message),
        Way::Write => write(facts, message),
        Way::Rget => rget(facts, message),
        Way::Rput => rput(facts, message),
        Way::Pipeline => pipeline(facts, message, false),
        Way::CachingPipeline => pipeline(facts, message, true),
        Way::Superpipeline => superpipeline(facts, message),
        Way::CopyPipeline => copy_pipeline(facts, message),
    })
}

fn eager(facts: &Facts, message: &Message) -> Cost {
    let copies = 2.0 * message.len as f64 * facts.copy_ns_per_byte(message.len);
    let path = facts.path(message.distance);
    if !path.registration {
        return Cost::default().with(Term::Copy, copies).with(Term::Gaps, path.post.value);
    }
    // The adapter may take it from where it lies.
    let before = if message.len <= path.at_once_bytes { 0.0 } else { copies / 2.0 };
    framed(facts, message, before).with(Term::Copy, copies / 2.0)
}

/// What brings an eager frame, whose sender does something before: NT of «000». A late receiver finds it there.
fn framed(facts: &Facts, message: &Message, before_ns: f64) -> Cost {
    let path = facts.path(message.distance);
    let wire = path.latency.value + message.len as f64 * path.write.per_byte;
    let late_ns = (message.late_ns - before_ns).max(0.0);
    Cost::default()
        .with(Term::Copy, ahead(message.late_ns, before_ns))
        .with(Term::Wire, ahead(late_ns, wire))
        .with(Term::Gaps, path.post.value)
}

fn frequent(facts: &Facts, message: &Message) -> Cost {
    let len = message.len as f64;
    framed(facts, message, 0.0)
        .with(Term::Copy, len * facts.copy_ns_per_byte(message.len))
        .with(Term::Registration, (1.0 - message.reuse) * facts.register.at(len))
        .with(Term::Search, 2.0 * facts.search.value)
}

fn both(facts: &Facts, message: &Message) -> Cost {
    Cost::default()
        .with(Term::Handshake, facts.single.fixed)
        .with(Term::Copy, facts.single.per_byte * message.len as f64)
}

fn frames(facts: &Facts, message: &Message) -> Cost {
    Cost::default()
        .with(Term::Handshake, HANDSHAKE_NS)
        .with(Term::Copy, 2.0 * message.len as f64 * facts.copy_ns_per_byte(message.len))
}

/// Registration and, where nothing is kept, deregistration of a piece of a buffer.
#[derive(Clone, Copy)]
struct Pinned {
    register: f64,
    deregister: f64,
}

impl Pinned {
    fn new(facts: &Facts, len: f64, reuse: f64, keeps: bool) -> Pinned {
        if keeps {
            return Pinned { register: (1.0 - reuse) * facts.register.at(len), deregister: 0.0 };
        }
        Pinned { register: facts.register.at(len), deregister: facts.deregister.at(len) }
    }

    /// The two sides of a whole message.
    fn sides(facts: &Facts, message: &Message) -> [Pinned; 2] {
        // A receiver that has sent an RTR has registered; what is not kept goes with the RTR.
        let there = if message.rtr { 1.0 } else { message.reuse };
        let len = message.len as f64 / stripes(facts, message);
        [message.reuse, there].map(|reuse| Pinned::new(facts, len, reuse, facts.path(message.distance).keeps))
    }
}

/// Adapters that carry a part of the message each.
fn stripes(facts: &Facts, message: &Message) -> f64 {
    facts.path(message.distance).rails.clamp(1, message.len.div_ceil(64 << 10).max(1)) as f64
}

/// `λ + L/Bnet` over all adapters.
fn wire(facts: &Facts, message: &Message, path: &Path) -> f64 {
    path.write.fixed + path.write.per_byte * message.len as f64 / stripes(facts, message)
}

/// What is left of a time before the receive if the receiver comes so late.
fn ahead(late_ns: f64, ns: f64) -> f64 {
    (ns - late_ns.max(0.0)).max(0.0)
}

fn rget(facts: &Facts, message: &Message) -> Cost {
    let path = facts.path(message.distance);
    let [own, there] = Pinned::sides(facts, message);
    let hidden = message.late_ns.min(own.register);
    let requested = ahead(message.late_ns - hidden, path.latency.value);
    Cost::default()
        .with(Term::Registration, own.register - hidden + there.register)
        .with(Term::Deregistration, there.deregister)
        .with(Term::Handshake, requested + path.read.value)
        .with(Term::Wire, wire(facts, message, path))
        .with(Term::Gaps, 2.0 * path.post.value)
        .with(Term::Search, 2.0 * facts.search.value)
}

fn rput(facts: &Facts, message: &Message) -> Cost {
    let path = facts.path(message.distance);
    let [own, there] = Pinned::sides(facts, message);
    Cost::default()
        .with(Term::Registration, own.register + there.register)
        .with(Term::Deregistration, there.deregister)
        .with(Term::Handshake, ahead(message.late_ns, path.latency.value) + 3.0 * path.latency.value)
        .with(Term::Wire, wire(facts, message, path))
        .with(Term::Gaps, 4.0 * path.post.value)
        .with(Term::Search, 2.0 * facts.search.value)
}

fn write(facts: &Facts, message: &Message) -> Cost {
    let path = facts.path(message.distance);
    let [own, there] = Pinned::sides(facts, message);
    Cost::default()
        .with(Term::Registration, own.register)
        .with(Term::Deregistration, there.deregister)
        .with(Term::Wire, wire(facts, message, path))
        .with(Term::Gaps, 2.0 * path.post.value)
        .with(Term::Search, facts.search.value)
}

fn pipeline(facts: &Facts, message: &Message, caching: bool) -> Cost {
    let path = facts.path(message.distance);
    let tuning = &path.tuning;
    let len = message.len as f64;
    let offset = tuning.rdma_offset_bytes.max(tuning.head_bytes).min(message.len) as f64;
    let head = tuning.head_bytes.min(message.len) as f64;
    // Frames are a copy pipeline («003» (1)) whose chunk is a frame: nothing hides the copy of the first one into its
    // slot and that of the last one out of it, which is what is left.
    let copy = facts.copy_ns_per_byte(message.len);
    let frame = (path.eager_bytes.max(1) as f64).min(offset - head);
    let count = if frame > 0.0 { ((offset - head) / frame).ceil() } else { 0.0 };
    let last = offset - head - (count - 1.0).max(0.0) * frame;
    let frames_copy = (frame + last) * copy + (offset - head) * (copy - path.write.per_byte).max(0.0);
    let frames_gaps = count * (path.gap.value + path.post.value);
    let frames = (offset - head) * path.write.per_byte + frames_copy + frames_gaps;
    // A late receiver finds the head there.
    let (first, latency) = (head * copy, path.latency.value);
    let first_ns = first + latency + head * path.write.per_byte;
    let hidden = first_ns - ahead(message.late_ns, first_ns);
    let cost = Cost::default()
        .with(Term::Handshake, 2.0 * latency - hidden.min(latency))
        .with(Term::Copy, 2.0 * first + frames_copy - (hidden - latency).clamp(0.0, first))
        .with(Term::Gaps, 3.0 * path.post.value + frames_gaps);
    let sent = (hidden - latency - first).max(0.0);
    let rest = len - offset;
    if rest <= 0.0 {
        let wire = path.write.fixed + path.write.per_byte * offset - sent;
        return cost.with(Term::Wire, wire);
    }
    let block = (tuning.block_bytes as f64).min(rest);
    let blocks = (rest / block).ceil();
    let pinned = Pinned::new(facts, block, message.reuse, caching);
    // The first block waits for both registrations; what frames move meanwhile covers them.
    let uncovered = (2.0 * pinned.register + latency - frames).max(0.0);
    let per_byte = path.write.per_byte / path.rails as f64;
    let wire_of_blocks = rest * per_byte + blocks * path.gap.value;
    let registering = (blocks - 1.0) * (pinned.register + pinned.deregister);
    cost.with(Term::Registration, uncovered + (registering - wire_of_blocks).max(0.0))
        .with(Term::Deregistration, pinned.deregister)
        .with(Term::Wire, path.write.fixed + path.write.per_byte * offset + rest * per_byte - sent)
        .with(Term::Gaps, blocks * path.gap.value)
        .with(Term::Search, 2.0 * blocks * facts.search.value)
}

fn superpipeline(facts: &Facts, message: &Message) -> Cost {
    let path = facts.path(message.distance);
    let tuning = &path.tuning;
    let (len, copy) = (message.len as f64, facts.copy_ns_per_byte(message.len));
    let limit = tuning.staging_bytes.max(SUB_BLOCK_BYTES) as f64;
    let (mut chunk, mut left, mut chunks, mut waits) =
        ((tuning.first_chunk_bytes as f64).clamp(1.0, limit), len, 0.0, 0.0);
    let first = chunk.min(len);
    while left > 0.0 && chunk < limit {
        waits += if chunks >= WINDOW { acknowledgement(path, chunk, copy) } else { 0.0 };
        left -= chunk;
        chunk = if tuning.growth > 1.0 { (chunk * tuning.growth).min(limit) } else { limit.min(chunk) };
        chunks += 1.0;
        if tuning.growth <= 1.0 {
            break;
        }
    }
    let even = (left.max(0.0) / chunk).ceil();
    waits += (chunks + even - WINDOW).clamp(0.0, even) * acknowledgement(path, chunk, copy);
    chunks += even;
    let handshake = ahead(message.late_ns, path.latency.value) + path.latency.value;
    // Flags add two tenths of a per cent; where copies are slower than the wire they set the pace.
    let per_byte = path.write.per_byte * (1.0 + 8.0 / SUB_BLOCK_BYTES as f64);
    let exposed = (first * copy - 2.0 * path.latency.value - message.late_ns).max(0.0)
        + (SUB_BLOCK_BYTES as f64).min(len) * copy
        + len * (copy - per_byte).max(0.0);
    Cost::default()
        .with(Term::Copy, exposed)
        .with(Term::Handshake, handshake)
        .with(Term::Wire, path.write.fixed + len * per_byte)
        .with(Term::Gaps, chunks * (path.gap.value + path.post.value) + waits)
}

/// Chunks that may travel without an acknowledgement.
const WINDOW: f64 = tuning::WINDOW as f64;

/// How long a chunk waits for the acknowledgement of the one by the window before it, where the wire is not busy
/// meanwhile: what (7) and (1) leave out, since the papers' windows are without limit.
fn acknowledgement(path: &Path, chunk: f64, copy: f64) -> f64 {
    let wire = chunk * path.write.per_byte;
    let behind = (SUB_BLOCK_BYTES as f64).min(chunk) * copy;
    let round = wire + behind + 2.0 * (path.latency.value + path.post.value);
    (round / WINDOW - wire.max(chunk * copy)).max(0.0)
}

fn copy_pipeline(facts: &Facts, message: &Message) -> Cost {
    let path = facts.path(message.distance);
    let (len, copy) = (message.len as f64, facts.copy_ns_per_byte(message.len));
    let gap = path.gap.value + path.post.value;
    let optimal = (len * path.tuning.gap_copy_bytes / 2.0).sqrt();
    let chunk = path.tuning.fixed_chunk_bytes.map_or(optimal, |bytes| bytes as f64);
    let chunk = chunk.clamp(1.0, (path.tuning.staging_bytes as f64).min(len.max(1.0)));
    let wire = path.write.per_byte;
    // A chunk is a single block: it is copied out as a whole before it is acknowledged.
    let round = chunk * (wire + copy) + 2.0 * (path.latency.value + path.post.value);
    let wait = (round / WINDOW - chunk * wire.max(copy)).max(0.0);
    Cost::default()
        .with(Term::Copy, 2.0 * chunk * copy + len * (copy - wire).max(0.0))
        .with(Term::Handshake, ahead(message.late_ns, path.latency.value) + path.latency.value)
        .with(Term::Wire, path.write.fixed + len * wire)
        .with(Term::Gaps, len / chunk * gap + (len / chunk - WINDOW).max(0.0) * wait)
}
