//! What a message costs each of those it concerns, for who makes an operation of many: collectives.
//!
//! [`terms`] gives the time of one message. Of several at the same time the parts add up that are one thread's or one
//! adapter's, and the others overlap: so an edge says what each has to do. It is the cheapest way there is for buffers that
//! come again, as those of collectives do, with nobody late.

use crate::choice::facts::Facts;
use crate::choice::terms::{self, Message};
use crate::choice::way::Way;
use fabric::Distance;

/// A message of some length to a peer at some distance. Times are in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edge {
    /// Until a message without data is there, beside what its two ends do.
    pub latency_ns: f64,
    /// The sender's thread, for a message of any length.
    pub sender_ns: f64,
    /// The receiver's.
    pub receiver_ns: f64,
    /// How far apart two messages of one adapter are at least.
    pub gap_ns: f64,
    /// What the bytes add to the latency.
    pub bytes_ns: f64,
    /// For how long they occupy what all messages of the sender share: its adapter, or the core that copies.
    pub busy_ns: f64,
    /// What both sides have to agree on first.
    pub handshake_ns: f64,
}

impl Edge {
    /// The whole of a message that is alone.
    pub fn total_ns(&self) -> f64 {
        self.latency_ns + self.sender_ns + self.receiver_ns + self.bytes_ns + self.handshake_ns
    }
}

/// Longest length that costs are told apart for, in bytes.
const LONGEST: usize = 64 << 20;

/// What a message of `len` bytes costs to a peer of this distance.
pub fn edge(facts: &Facts, distance: Distance, len: usize) -> Edge {
    edge_of_data(facts, distance, len, len)
}

/// The same of one that is a part of so much data: whether those fit a cache decides what copies cost.
pub fn edge_of_data(facts: &Facts, distance: Distance, len: usize, data_len: usize) -> Edge {
    let path = facts.path(distance);
    let sender_ns = path.post.value;
    // What an adapter has put into memory is only looked up.
    let receiver_ns = if path.registration { facts.search.value } else { sender_ns };
    let latency_ns = (path.latency.value - sender_ns).max(0.0);
    let bare = latency_ns + sender_ns + receiver_ns;
    let further = 2.0 * (facts.copy_ns_per_byte(data_len) - facts.copy_ns_per_byte(len));
    let is_eager = len <= path.eager_bytes;
    let per_byte = bytes_ns(facts, distance, len) + if is_eager { further.max(0.0) } else { 0.0 };
    let bytes_ns = per_byte * len as f64;
    let handshake_ns =
        if is_eager { 0.0 } else { (least_ns(facts, distance, len) - bare - bytes_ns).max(0.0) };
    // Where one side copies all of it, that is its core; where each copies once, either is busy with its copy alone.
    let busy = match (path.registration, path.reach && !is_eager) {
        (true, _) => path.write.per_byte,
        (false, true) => per_byte,
        (false, false) => facts.copy_ns_per_byte(data_len),
    };
    Edge {
        latency_ns,
        sender_ns,
        receiver_ns,
        gap_ns: path.gap.value,
        bytes_ns,
        busy_ns: busy * len as f64,
        handshake_ns,
    }
}

/// What one more byte costs in messages of about this length: with those of the same kind.
fn bytes_ns(facts: &Facts, distance: Distance, len: usize) -> f64 {
    let eager = facts.path(distance).eager_bytes;
    let (short, long) = match len.min(LONGEST) {
        0 => return 0.0,
        len if len <= eager => (0, len),
        len => (len, 2 * len),
    };
    let grown = least_ns(facts, distance, long) - least_ns(facts, distance, short);
    (grown / (long - short) as f64).max(0.0)
}

/// The time of the cheapest way, which an eager message has no choice of.
fn least_ns(facts: &Facts, distance: Distance, len: usize) -> f64 {
    let message = Message { len, distance, reuse: 1.0, rtr: false, late_ns: 0.0, eager: true };
    if let Some(eager) = terms::cost(Way::Eager, facts, &message) {
        return eager.total_ns();
    }
    let costs = Way::ALL.iter().filter_map(|(way, _)| terms::cost(*way, facts, &message));
    costs.map(|cost| cost.total_ns()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::{Caps, Costs};

    fn facts(registration: bool) -> Facts {
        let caps = Caps {
            name: "test",
            frame_bytes: 16 << 10,
            remote_access: !registration,
            registration,
            ..Caps::default()
        };
        let costs = Costs {
            latency_ns: 2000.0,
            post_ns: 200.0,
            gap_ns: 300.0,
            wire_ns_per_byte: 1.0,
            copy: [(1 << 15, 0.1), (1 << 18, 0.1), (1 << 23, 0.1), (usize::MAX, 0.1)],
            single: (1000.0, 0.25),
            ..Costs::default()
        };
        Facts::new([costs; 2], [&caps; 2], 1, 16 << 10)
    }

    /// The parts of an edge are those of the message: nothing is counted twice or left out.
    #[test]
    fn an_edge_is_what_the_message_costs() {
        for (registration, distance) in [(true, Distance::Network), (false, Distance::Host)] {
            let facts = facts(registration);
            for len in [0, 8, 4096, 16 << 10, 64 << 10, 1 << 20, 16 << 20] {
                let (edge, whole) = (edge(&facts, distance, len), least_ns(&facts, distance, len));
                // Terms have the sender's part of short messages twice, in latency and overhead; between processes of a
                // host they have no latency.
                let bare = if registration { 200.0 } else { 2000.0 };
                let off = (edge.total_ns() - whole).abs();
                assert!(off <= bare + 0.01 * whole, "{len}: {edge:?}, {whole}");
            }
        }
    }

    #[test]
    fn an_adapter_is_busy_with_the_wire_and_a_core_with_its_copies() {
        let far = edge(&facts(true), Distance::Network, 1000);
        assert_eq!((far.busy_ns, far.bytes_ns.round(), far.handshake_ns), (1000.0, 1200.0, 0.0));
        let near = edge(&facts(false), Distance::Host, 1 << 20);
        assert_eq!((near.busy_ns, near.gap_ns), (near.bytes_ns, 300.0));
        assert!((near.bytes_ns / (1 << 20) as f64 - 0.25).abs() < 1e-9, "{near:?}");
        assert!(edge(&facts(true), Distance::Network, 1 << 20).handshake_ns > 2000.0);
    }
}
