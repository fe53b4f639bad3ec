//! How many partitions of a partitioned send go in one message (MPI 5.0 chapter 4).
//!
//! A partition that leaves when it is ready travels while the next is computed; but every message has costs that do
//! not depend on its length, and what its two ends do they do instead of computing: that of a message that leaves early is
//! not hidden. So partitions are put together as far as that lets the last of them arrive earliest, with what the
//! messages before it have held up: what is known is when each became ready in the rounds before, and what a message of
//! each length costs.

/// How many consecutive partitions of `bytes` each belong into one message, if they become ready at these times and
/// a message of so many bytes takes its path for `cost_ns`. Of equal ends the one with fewer messages is taken.
pub fn cut(ready_ns: &[f64], bytes: usize, cost_ns: impl Fn(usize) -> f64) -> usize {
    let all = ready_ns.len().max(1);
    let halves = std::iter::successors(Some(all), |n| (*n > 1).then(|| n.div_ceil(2)));
    let ends = halves.map(|together| (together, end_ns(ready_ns, together, bytes, &cost_ns)));
    let best = ends.reduce(|best, other| if other.1 < best.1 { other } else { best });
    best.map_or(1, |(together, _)| together)
}

/// When the last message has arrived, if they leave in the order in which they are ready, and each one but the last has held up
/// those who compute for as long as a message without data takes.
fn end_ns(ready_ns: &[f64], together: usize, bytes: usize, cost_ns: &impl Fn(usize) -> f64) -> f64 {
    let message = |part: &[f64]| (part.iter().copied().fold(0.0, f64::max), part.len() * bytes);
    let mut messages: Vec<(f64, usize)> = ready_ns.chunks(together).map(message).collect();
    if messages.is_empty() {
        return 0.0;
    }
    messages.sort_by(|a, b| a.0.total_cmp(&b.0));
    let held_up = (messages.len() - 1) as f64 * cost_ns(0);
    held_up + messages.iter().fold(0.0, |end: f64, (ready, len)| end.max(*ready) + cost_ns(*len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message costs a microsecond and a nanosecond per byte.
    fn line(len: usize) -> f64 {
        1000.0 + len as f64
    }

    #[test]
    fn what_is_ready_at_once_goes_together() {
        assert_eq!(cut(&[0.0; 16], 100_000, line), 16);
        assert_eq!(cut(&[5.0; 7], 1, line), 7);
        assert_eq!(cut(&[], 1, line), 1);
        assert_eq!(cut(&[3.0], 1 << 20, line), 1);
    }

    #[test]
    fn what_is_ready_late_does_not_keep_the_rest_where_that_costs_more_than_a_message() {
        let late: Vec<f64> = (0..8).map(|i| f64::from(i) * 200_000.0).collect();
        assert_eq!(cut(&late, 100_000, line), 1);
        // The bytes of a partition cost less than a message: nothing is won by sending one early.
        assert_eq!(cut(&late, 0, line), 8);
        let close: Vec<f64> = (0..8).map(|i| f64::from(i) * 10.0).collect();
        assert_eq!(cut(&close, 100, line), 8);
        // Two and two become ready together.
        let pairs = [0.0, 0.0, 1e6, 1e6, 2e6, 2e6, 3e6, 3e6];
        assert_eq!(cut(&pairs, 100_000, line), 2);
    }

    #[test]
    fn messages_that_leave_early_cost_both_ends_what_they_would_have_computed() {
        // All but the last would have arrived by the end, 1.5 us earlier than together; but 15 messages hold up both ends by 15.
        let late: Vec<f64> = (1..=16).map(|i| f64::from(i) * 2000.0).collect();
        assert_eq!(cut(&late, 100, line), 16);
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
            let best = end_ns(&ready, cut(&ready, bytes, line), bytes, &line);
            let mut together = count;
            while together > 0 {
                assert!(best <= end_ns(&ready, together, bytes, &line), "{ready:?} {bytes} {together}");
                together = if together == 1 { 0 } else { together.div_ceil(2) };
            }
        }
    }
}
