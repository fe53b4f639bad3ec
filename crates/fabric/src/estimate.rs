//! What a thing costs that is done again and again: the one average of all that learn from what they see.
//!
//! ```text
//! seen ──▶ the least of a few ──▶ bounded by what is known ──▶ averaged, older ones fade ──▶ value
//! ```
//!
//! Whatever disturbs a measurement makes it longer: a page that was never touched, another process on the core. So of a
//! few the least may speak for all, one may be bounded by what is known, and one that took less may be taken as it is.
//! Which of these holds differs with what is measured; an [`Averaging`] says it, as a value beside who uses it. What is
//! done with estimates is [`crate::arms`]' part.

/// How an estimate follows what is seen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Averaging {
    /// Of so many observations the least one counts.
    pub least_of: u32,
    /// As how many observations counts what was known before the first one, if anything was.
    pub prior: u32,
    /// Observations after which older ones fade.
    pub memory: u32,
    /// As how many times what is known one observation counts at most, once there are two.
    pub above: f64,
    /// By what it divides what is known to be the least that one observation counts as.
    pub below: f64,
    /// By which factor the second observation must be less than the first to take its place: the first may have paid
    /// for what is there from then on.
    pub once: f64,
    /// Whether an observation that is less than what is known takes its place.
    pub falls: bool,
}

impl Averaging {
    /// The mean of the last `memory` observations, with nothing left out.
    pub const fn mean(memory: u32) -> Averaging {
        let any = f64::INFINITY;
        Averaging { least_of: 1, prior: 0, memory, above: any, below: any, once: any, falls: false }
    }

    /// Each observation weighs the `memory`th part, from the second one on.
    pub const fn fading(memory: u32) -> Averaging {
        Averaging { prior: memory, ..Averaging::mean(memory) }
    }

    /// The least of all.
    pub const LEAST: Averaging = Averaging { falls: true, ..Averaging::fading(u32::MAX) };

    /// What is known after an observation: before it that was `known`, by so many observations.
    pub fn follow(&self, known: Option<f64>, count: u32, seen: f64) -> f64 {
        let before = self.prior.saturating_add(count);
        let Some(known) = known.filter(|_| before > 0) else { return seen };
        let is_replaced = self.falls && seen < known || before == 1 && known > self.once * seen;
        if is_replaced {
            return seen;
        }
        let is_bounded = before > 1 && known > 0.0;
        let seen = if is_bounded { seen.max(known / self.below).min(known * self.above) } else { seen };
        known + (seen - known) / f64::from(before.saturating_add(1).min(self.memory))
    }
}

/// The least of some observations, and what belongs to it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Least<T> {
    by: f64,
    of: T,
    count: u32,
}

impl<T: Copy> Least<T> {
    /// One more; with the last one of `group` that of the least, and the next group begins.
    pub fn add(&mut self, group: u32, by: f64, of: T) -> Option<(f64, T)> {
        if self.count == 0 || by < self.by {
            (self.by, self.of) = (by, of);
        }
        self.count += 1;
        if self.count < group {
            return None;
        }
        self.count = 0;
        Some((self.by, self.of))
    }
}

/// A cost, or a quotient of costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Not a number as long as nothing is known.
    value: f64,
    count: u32,
    least: Least<()>,
}

impl Default for Estimate {
    fn default() -> Estimate {
        Estimate::expected(f64::NAN)
    }
}

impl Estimate {
    /// One of which nothing was observed, but that something is expected of.
    pub const fn expected(value: f64) -> Estimate {
        Estimate { value, count: 0, least: Least { by: 0.0, of: (), count: 0 } }
    }

    /// Takes an observation in; whether that changed anything.
    pub fn observe(&mut self, how: &Averaging, seen: f64) -> bool {
        let Some((seen, ())) = self.least.add(how.least_of, seen, ()) else { return false };
        self.value = how.follow(self.value(), self.count, seen);
        self.count = self.count.saturating_add(1);
        true
    }

    /// What is known has come to cost so much more, or less if that is negative, as another estimate has shown.
    pub fn add(&mut self, more: f64) {
        self.value += more;
    }

    /// What is known, if anything is.
    pub fn value(&self) -> Option<f64> {
        (!self.value.is_nan()).then_some(self.value)
    }

    /// Observations that were taken in.
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All that is used anywhere, and more.
    fn averaging() -> impl Strategy<Value = Averaging> {
        let bound = || prop_oneof![Just(f64::INFINITY), 1.0..8.0f64];
        (1u32..9, 0u32..40, 1u32..40, bound(), bound(), bound(), any::<bool>()).prop_map(
            |(least_of, prior, memory, above, below, once, falls)| Averaging {
                least_of,
                prior,
                memory,
                above,
                below,
                once,
                falls,
            },
        )
    }

    proptest! {
        /// What is known lies between the least and the most that was seen or expected.
        #[test]
        fn an_estimate_stays_among_what_was_seen(
            how in averaging(),
            expected in prop_oneof![Just(f64::NAN), 1.0..1e6f64],
            seen in proptest::collection::vec(0.0..1e9f64, 1..200),
        ) {
            let mut estimate = Estimate::expected(expected);
            let all = seen.iter().copied().chain(estimate.value());
            let (least, most) = all.fold((f64::MAX, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
            for ns in seen {
                estimate.observe(&how, ns);
                if let Some(value) = estimate.value() {
                    prop_assert!(value >= least * 0.999_999 && value <= most * 1.000_001, "{estimate:?}");
                }
            }
        }

        /// Whatever there was before, what goes on for long enough is believed.
        #[test]
        fn an_estimate_comes_to_what_is_seen(
            how in averaging().prop_map(|how| Averaging {
                above: how.above.max(1.5),
                below: how.below.max(1.5),
                ..how
            }),
            before in proptest::collection::vec(1.0..1e6f64, 0..40),
            then in 1.0..1e6f64,
        ) {
            let mut estimate = Estimate::default();
            for ns in before {
                estimate.observe(&how, ns);
            }
            (0..4000 * how.least_of).for_each(|_| _ = estimate.observe(&how, then));
            let value = estimate.value().unwrap();
            prop_assert!((value / then - 1.0).abs() < 0.01, "{value} {then}");
        }

        /// One observation moves what is known by no more than its bounds and its weight allow.
        #[test]
        fn one_outlier_says_as_much_as_it_is_allowed_to(
            how in averaging(), known in 1.0..1e6f64, count in 2u32..100, seen in 0.0..1e12f64,
        ) {
            let value = how.follow(Some(known), count, seen);
            let weight = 1.0 / f64::from((how.prior + count + 1).min(how.memory));
            prop_assert!(value <= known * (1.0 + (how.above - 1.0) * weight) * 1.000_001);
            let least = if how.falls { 0.0 } else { known * (1.0 - (1.0 - 1.0 / how.below) * weight) };
            prop_assert!(value >= least * 0.999_999);
        }
    }

    #[test]
    fn of_a_group_the_least_counts_and_what_is_paid_once_is_forgotten() {
        let how = Averaging { least_of: 3, once: 2.0, ..Averaging::mean(8) };
        let mut estimate = Estimate::default();
        let changes: Vec<bool> = [9.0, 7.0, 8.0, 2.0, 3.0].map(|ns| estimate.observe(&how, ns)).into();
        assert_eq!(
            (changes, estimate.value(), estimate.count()),
            (vec![false, false, true, false, false], Some(7.0), 1)
        );
        estimate.observe(&how, 5.0);
        assert_eq!(estimate.value(), Some(2.0), "less than half");
        for ns in [4.0, 4.0, 4.0] {
            estimate.observe(&how, ns);
        }
        assert!((estimate.value().unwrap() - (2.0 + 2.0 / 3.0)).abs() < 1e-9, "the third one of three");
    }

    #[test]
    fn the_least_of_all_and_those_that_fade() {
        let mut least = Estimate::default();
        assert_eq!(least.value(), None);
        for ns in [5.0, 3.0, 1e9] {
            least.observe(&Averaging::LEAST, ns);
        }
        assert!((least.value().unwrap() - 3.0).abs() < 1.0);
        let fading = Averaging::fading(4);
        assert_eq!((fading.follow(None, 0, 8.0), fading.follow(Some(4.0), 0, 8.0)), (8.0, 5.0));
    }
}
