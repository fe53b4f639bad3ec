//! How many partitions of a partitioned send go in one message (MPI 5.0 chapter 4).
//!
//! A partition that leaves when it is ready travels while the next is computed; but every message has costs that do
//! not depend on its length, and what its two ends do they do instead of computing, be it to copy: that of a message that leaves
//! early is not hidden. So partitions are put together as far as that lets the last of them arrive earliest, with what the
//! messages before it have held up: what is known is when each became ready in the rounds before, and what a message of
//! each length costs.

/// What messages cost, by their length in bytes.
pub trait MessageCosts {
    /// How long one takes its path.
    fn total_ns(&self, len: usize) -> f64;
    /// For how long its two ends do not compute, as far as that is more than waiting for it.
    fn held_ns(&self, len: usize) -> f64;
}

/// How many consecutive partitions of `bytes` each belong into one message, if they become ready at these times. Of equal ends
/// the one with fewer messages is taken, and `current`, which has been good for so many rounds, is left for another one if what
/// that saves in as many pays for the message that tells of it.
pub fn cut(
    ready_ns: &[f64],
    bytes: usize,
    costs: &impl MessageCosts,
    current: Option<(usize, u64)>,
) -> usize {
    let all = ready_ns.len().max(1);
    let halves = std::iter::successors(Some(all), |n| (*n > 1).then(|| n.div_ceil(2)));
    let ends = halves.map(|together| (together, end_ns(ready_ns, together, bytes, costs)));
    let best = ends.reduce(|best, other| if other.1 < best.1 { other } else { best });
    let (best, best_ns) = best.expect("all of them in one message is a cut");
    let is_worth = |(together, rounds): (usize, u64)| {
        let saved_ns = end_ns(ready_ns, together, bytes, costs) - best_ns;
        saved_ns * rounds as f64 > costs.total_ns(0)
    };
    match current {
        Some(current) if !is_worth(current) => current.0,
        _ => best,
    }
}

/// When the last message has arrived, if they leave in the order in which they are ready, and each one but the last has held up
/// those who compute.
fn end_ns(ready_ns: &[f64], together: usize, bytes: usize, costs: &impl MessageCosts) -> f64 {
    let message = |part: &[f64]| (part.iter().copied().fold(0.0, f64::max), part.len() * bytes);
    let mut messages: Vec<(f64, usize)> = ready_ns.chunks(together).map(message).collect();
    messages.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, early)) = messages.split_last() else { return 0.0 };
    // All but one are of one length, and asking is what costs here.
    let usual = together * bytes;
    let (usual_held_ns, usual_total_ns) = (costs.held_ns(usual), costs.total_ns(usual));
    let held_ns = |len| if len == usual { usual_held_ns } else { costs.held_ns(len) };
    let total_ns = |len| if len == usual { usual_total_ns } else { costs.total_ns(len) };
    let held_up: f64 = early.iter().map(|(_, len)| held_ns(*len)).sum();
    held_up + messages.iter().fold(0.0, |end: f64, (ready, len)| end.max(*ready) + total_ns(*len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message costs a microsecond and a nanosecond per byte, which a core copies or an adapter moves.
    struct Line {
        copies: bool,
    }

    impl MessageCosts for Line {
        fn total_ns(&self, len: usize) -> f64 {
            1000.0 + len as f64
        }

        fn held_ns(&self, len: usize) -> f64 {
            if self.copies { self.total_ns(len) } else { 1000.0 }
        }
    }

    const LINE: Line = Line { copies: false };

    fn best(ready_ns: &[f64], bytes: usize) -> usize {
        cut(ready_ns, bytes, &LINE, None)
    }

    #[test]
    fn what_is_ready_at_once_goes_together() {
        assert_eq!(best(&[0.0; 16], 100_000), 16);
        assert_eq!(best(&[5.0; 7], 1), 7);
        assert_eq!(best(&[], 1), 1);
        assert_eq!(best(&[3.0], 1 << 20), 1);
    }

    #[test]
    fn what_is_ready_late_does_not_keep_the_rest_where_that_costs_more_than_a_message() {
        let late: Vec<f64> = (0..8).map(|i| f64::from(i) * 200_000.0).collect();
        assert_eq!(best(&late, 100_000), 1);
        // The bytes of a partition cost less than a message: nothing is won by sending one early.
        assert_eq!(best(&late, 0), 8);
        let close: Vec<f64> = (0..8).map(|i| f64::from(i) * 10.0).collect();
        assert_eq!(best(&close, 100), 8);
        // Two and two become ready together.
        let pairs = [0.0, 0.0, 1e6, 1e6, 2e6, 2e6, 3e6, 3e6];
        assert_eq!(best(&pairs, 100_000), 2);
    }

    #[test]
    fn messages_that_leave_early_cost_both_ends_what_they_would_have_computed() {
        // All but the last would have arrived by the end, 1.5 us earlier than together; but 15 messages hold up both ends by 15.
        let late: Vec<f64> = (1..=16).map(|i| f64::from(i) * 2000.0).collect();
        assert_eq!(best(&late, 100), 16);
    }

    #[test]
    fn what_a_core_copies_is_not_hidden_by_leaving_early() {
        // 100 us of computation behind each; what goes early saves nothing, for it is copied instead of computing.
        let late: Vec<f64> = (1..=4).map(|i| f64::from(i) * 100_000.0).collect();
        assert_eq!(cut(&late, 50_000, &LINE, None), 1);
        assert_eq!(cut(&late, 50_000, &Line { copies: true }, None), 4);
    }

    #[test]
    fn a_cut_is_left_when_that_pays_for_telling_of_it() {
        // Two and two, which become ready 10 us apart, arrive 0.4 us earlier by two messages.
        let ready = [0.0, 0.0, 10_000.0, 10_000.0];
        let saved = end_ns(&ready, 4, 700, &LINE) - end_ns(&ready, 2, 700, &LINE);
        assert_eq!(saved, 400.0);
        assert_eq!(best(&ready, 700), 2);
        assert_eq!(cut(&ready, 700, &LINE, Some((4, 1))), 4);
        assert_eq!(cut(&ready, 700, &LINE, Some((4, 8))), 2);
        assert_eq!(cut(&ready, 700, &LINE, Some((2, 1))), 2);
    }

    #[test]
    fn no_other_cut_that_is_looked_at_ends_earlier() {
        let mut state = 7u64;
        for _ in 0..500 {
            let mut next = |n: u64| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) % n
            };
            let count = 1 + next(20) as usize;
            let ready: Vec<f64> = (0..count).map(|_| next(50_000) as f64).collect();
            let bytes = next(20_000) as usize;
            let least = end_ns(&ready, best(&ready, bytes), bytes, &LINE);
            let mut together = count;
            while together > 0 {
                assert!(least <= end_ns(&ready, together, bytes, &LINE), "{ready:?} {bytes} {together}");
                together = if together == 1 { 0 } else { together.div_ceil(2) };
            }
        }
    }
}
