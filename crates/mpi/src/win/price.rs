//! What is cheaper of windows whose memory is not shared, by the prices of messages.

use fabric::Distance;
use proto::choice::edge::edge;
use proto::choice::facts::Facts;

/// How an operation goes that has waited for the lock it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Afterwards {
    /// In a message.
    Told,
    /// By an adapter.
    Written,
    /// By its origin, in memory that it maps.
    Copied,
}

/// Whether operations of so many bytes go with the lock they need, and are kept at its target until that is held there: two copies more, and a
/// message, against the way of the lock there and back. Otherwise they go `afterwards`. A message that
/// is so long that it asks for room goes that way itself, so it spares nothing.
pub fn is_kept(facts: &Facts, distance: Distance, len: usize, afterwards: Afterwards) -> bool {
    let word_ns = edge(facts, distance, 0).total_ns();
    let message = edge(facts, distance, len);
    if message.handshake_ns > 0.0 {
        return false;
    }
    let message_ns = message.total_ns();
    let copy_ns = len as f64 * facts.copy_ns_per_byte(len);
    let kept_ns = message_ns + 2.0 * copy_ns;
    let afterwards_ns = match afterwards {
        Afterwards::Told => message_ns + copy_ns,
        Afterwards::Written => word_ns + len as f64 * facts.path(distance).write.per_byte,
        Afterwards::Copied => copy_ns,
    };
    kept_ns <= 2.0 * word_ns + afterwards_ns
}

/// Whether so many bytes of operations wait for what may join them, a synchronisation at least, rather than leave ahead of it: what comes behind
/// alone costs a message more, which takes its way, and all that leaving ahead gains is the time that these bytes take on theirs. What asks
/// for room first does so at once.
pub fn is_joined(facts: &Facts, distance: Distance, len: usize) -> bool {
    let message = edge(facts, distance, len);
    message.handshake_ns == 0.0 && message.busy_ns <= edge(facts, distance, 0).total_ns()
}

/// Whether a Put of so many bytes goes with so many that are told its target in any case, rather than by the adapter: two copies more against a
/// transfer with an end of its own and the answer to that. These have their way beside those of the message, so what they cost is what both sides do for
/// them.
pub fn goes_along(facts: &Facts, distance: Distance, told: usize, len: usize) -> bool {
    let (without, with) = (edge(facts, distance, told), edge(facts, distance, told.saturating_add(len)));
    let along_ns = with.total_ns() - without.total_ns() + 2.0 * len as f64 * facts.copy_ns_per_byte(len);
    let word = edge(facts, distance, 0);
    let words_ns = 2.0 * (word.sender_ns + word.receiver_ns + word.gap_ns);
    let apart_ns = words_ns + len as f64 * facts.path(distance).write.per_byte;
    with.handshake_ns == 0.0 && along_ns <= apart_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::{Caps, Costs};

    fn facts(latency_ns: f64, copy: f64, eager_bytes: usize) -> Facts {
        let caps = Caps { name: "test", frame_bytes: 1 << 20, registration: true, ..Caps::default() };
        let copy = Costs::ethernet().copy.map(|(up_to, _)| (up_to, copy));
        let costs = Costs { latency_ns, copy, ..Costs::ethernet() };
        Facts::new([costs; 2], [&caps; 2], 1, eager_bytes)
    }

    /// Most bytes that are kept, to a power of two.
    fn most(facts: &Facts, afterwards: Afterwards) -> usize {
        let kept = |log: &u32| is_kept(facts, Distance::Network, 1 << log, afterwards);
        (0..24).take_while(kept).last().map_or(0, |log| 1 << log)
    }

    /// Short ones are kept; how long they may be follows from the way there and back, and from what copies cost.
    #[test]
    fn what_is_kept_is_a_question_of_cost() {
        let of = |latency_ns, copy| most(&facts(latency_ns, copy, 1 << 20), Afterwards::Written);
        assert!(of(20_000.0, 0.1) >= 64 << 10, "{}", of(20_000.0, 0.1));
        assert!(of(40_000.0, 0.5) > of(4_000.0, 0.5));
        assert!(of(20_000.0, 0.1) > of(20_000.0, 2.0));
        assert!(of(20_000.0, 2.0) >= 1024);
    }

    /// A message that has to ask for room first spares nothing.
    #[test]
    fn what_asks_itself_is_not_kept() {
        for afterwards in [Afterwards::Told, Afterwards::Written, Afterwards::Copied] {
            let most = most(&facts(20_000.0, 0.01, 16 << 10), afterwards);
            assert!(most <= 16 << 10, "{most}");
        }
    }

    /// What its origin copies once it holds the lock waits for that sooner than what has to be told.
    #[test]
    fn what_is_copied_waits_for_its_lock() {
        let [told, copied] =
            [Afterwards::Told, Afterwards::Copied].map(|way| most(&facts(4_000.0, 0.5, 1 << 20), way));
        assert!((8..told).contains(&copied), "{told} {copied}");
    }

    /// What a synchronisation joins grows with the way of a message, and ends where messages ask for room.
    #[test]
    fn long_ones_leave_ahead() {
        let most = |latency_ns, eager_bytes| {
            let facts = facts(latency_ns, 0.1, eager_bytes);
            (0..24)
                .take_while(|log| is_joined(&facts, Distance::Network, 1 << log))
                .last()
                .map_or(0, |log| 1 << log)
        };
        assert!(most(40_000.0, 1 << 20) > most(4_000.0, 1 << 20));
        assert!(most(4_000.0, 1 << 20) < 1 << 20, "{}", most(4_000.0, 1 << 20));
        assert_eq!(most(1e9, 16 << 10), 16 << 10);
    }

    /// A short Put goes with what is told; a long one, which would have to be copied, or to ask for room, does not.
    #[test]
    fn short_puts_go_along() {
        let most = |copy, eager_bytes| {
            let facts = facts(20_000.0, copy, eager_bytes);
            let along = |log: &u32| goes_along(&facts, Distance::Network, 100, 1 << log);
            (0..24).take_while(along).last().map_or(0, |log| 1 << log)
        };
        assert!((4 << 10..256 << 10).contains(&most(0.1, 1 << 20)), "{}", most(0.1, 1 << 20));
        assert!(most(0.1, 1 << 20) > most(0.5, 1 << 20), "{}", most(0.5, 1 << 20));
        assert!(most(0.0001, 16 << 10) <= 16 << 10);
    }
}
