//! Which of several ways is taken, as often as the same is done again, and when the others are tried.
//!
//! ```text
//! the one in force ──── another is cheaper by the margin, and the dwell is over ────▶ that one in force
//!        └───────────── steps are over: another is tried, later and later ──────┐
//!        ▲──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A *step* is what its user says: a message, a group of uses, a comparison. What each way costs it knows as well, mostly as
//! an [`crate::estimate::Estimate`]; here is only what is decided by that. Which one is tried is either the next in turn
//! or whichever its user expects most of.

/// What changes and tries are worth: a value beside each user, which says why.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Policy {
    /// By which part of its own cost another way must be cheaper than the one in force.
    pub margin: f64,
    /// Steps for which a way stays in force at least.
    pub dwell: u32,
    /// Steps until others are tried: at first, and, twice as many each time, at last.
    pub tries: (u32, u32),
}

impl Policy {
    /// Whether what costs `other` takes the place of what costs `in_force`, where costs are off by so much.
    pub fn is_better(&self, other: f64, in_force: f64, noise: f64) -> bool {
        other * (1.0 + self.margin) + noise < in_force
    }
}

/// What is in force among ways that are told apart by an `A`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arms<A> {
    in_force: A,
    since: u32,
    tried: A,
    left: u32,
    next: u32,
}

impl<A: Copy + PartialEq> Arms<A> {
    /// With this one in force.
    pub fn new(first: A, policy: &Policy) -> Arms<A> {
        let (left, next) = (policy.tries.0, policy.tries.0);
        Arms { in_force: first, since: 0, tried: first, left, next }
    }

    /// The one in force.
    pub fn in_force(&self) -> A {
        self.in_force
    }

    /// Steps since the last change.
    pub fn since(&self) -> u32 {
        self.since
    }

    /// The one that was tried last.
    pub fn tried(&self) -> A {
        self.tried
    }

    /// Steps until another one is tried.
    pub fn left(&self) -> u32 {
        self.left
    }

    /// One more step.
    pub fn step(&mut self) {
        self.steps(1);
    }

    /// So many more.
    pub fn steps(&mut self, steps: u32) {
        self.since = self.since.saturating_add(steps);
        self.left = self.left.saturating_sub(steps);
    }

    /// The cheapest of all whose costs are known: the one in force unless another is better.
    pub fn best(&self, policy: &Policy, noise: f64, costs: impl Iterator<Item = (A, f64)> + Clone) -> A {
        let mine = costs.clone().find(|(arm, _)| *arm == self.in_force);
        let mine = mine.map_or(f64::INFINITY, |(_, cost)| cost);
        let others =
            costs.filter(|(arm, cost)| *arm != self.in_force && policy.is_better(*cost, mine, noise));
        others.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(self.in_force, |(arm, _)| arm)
    }

    /// Whether one that costs so much may take the place of the one in force.
    pub fn gives_way(&self, policy: &Policy, other: f64, in_force: f64) -> bool {
        self.since > policy.dwell && policy.is_better(other, in_force, 0.0)
    }

    /// This one is in force from here on.
    pub fn change(&mut self, arm: A) {
        if arm != self.in_force {
            (self.in_force, self.since) = (arm, 0);
        }
    }

    /// As if nothing had been tried yet.
    pub fn begin_anew(&mut self, arm: A, policy: &Policy) {
        let tried = self.tried;
        *self = Arms { tried, ..Arms::new(arm, policy) };
    }

    /// Whether it is time to try another way: then the next time comes later.
    pub fn is_due(&mut self, policy: &Policy) -> bool {
        let is_due = self.left == 0;
        if is_due {
            self.next = self.next.saturating_mul(2).min(policy.tries.1);
            self.left = self.next;
        }
        is_due
    }

    /// The next in turn that is tried: not the one that is `best`.
    pub fn turn(&mut self, all: &[A], best: A) -> A {
        let at = all.iter().position(|arm| *arm == self.tried).map_or(0, |at| at + 1);
        let mut turns = all.iter().cycle().skip(at).take(all.len());
        self.tried = turns.find(|arm| **arm != best).copied().unwrap_or(best);
        self.tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [u8; 3] = [0, 1, 2];

    fn policy() -> impl Strategy<Value = Policy> {
        (0.0..0.5f64, 0u32..20, 1u32..100, 0u32..1000).prop_map(|(margin, dwell, first, more)| Policy {
            margin,
            dwell,
            tries: (first, first + more),
        })
    }

    proptest! {
        /// However costs jump: what is in force changes only for something cheaper by the margin, and not before
        /// the dwell is over.
        #[test]
        fn changes_need_margin_and_dwell(policy in policy(), costs in proptest::collection::vec(0.1..10.0f64, 300)) {
            let (mut arms, mut last) = (Arms::new(0u8, &policy), 0);
            for (step, costs) in costs.chunks_exact(3).enumerate() {
                arms.step();
                let before = arms.in_force();
                let best = arms.best(&policy, 0.0, ALL.into_iter().zip(costs.iter().copied()));
                prop_assert!(ALL.iter().all(|arm| best == before
                    || costs[usize::from(best)] <= costs[usize::from(*arm)] * (1.0 + policy.margin)));
                let [mine, other] = [before, best].map(|arm| costs[usize::from(arm)]);
                if best != before && arms.gives_way(&policy, other, mine) {
                    arms.change(best);
                    prop_assert!(other * (1.0 + policy.margin) < mine);
                    prop_assert!(last == 0 || step - last > policy.dwell as usize);
                    last = step;
                }
            }
        }

        /// What is not known of, or costs as much, never takes the place of what is in force.
        #[test]
        fn the_same_cost_changes_nothing(policy in policy(), cost in 0.1..10.0f64, noise in 0.0..1.0f64, arm in 0u8..3) {
            let arms = Arms::new(arm, &policy);
            prop_assert_eq!(arms.best(&policy, noise, ALL.into_iter().map(|arm| (arm, cost))), arm);
            prop_assert_eq!(arms.best(&policy, noise, std::iter::empty()), arm);
        }

        /// Each of the others is tried, never the best one, and ever more rarely: in `n` steps no more often than
        /// by doubling, and at the end as often as the policy says.
        #[test]
        fn tries_go_round_and_become_rare(policy in policy(), best in 0u8..3) {
            let mut arms = Arms::new(best, &policy);
            let (mut tried, mut times) = ([0u32; 3], Vec::new());
            let steps = 40 * policy.tries.1;
            for step in 0..steps {
                arms.step();
                if arms.is_due(&policy) {
                    tried[usize::from(arms.turn(&ALL, best))] += 1;
                    times.push(step);
                }
            }
            prop_assert_eq!(tried[usize::from(best)], 0);
            let (least, most) = ALL.iter().filter(|arm| **arm != best).fold((u32::MAX, 0), |(a, b), arm| {
                (a.min(tried[usize::from(*arm)]), b.max(tried[usize::from(*arm)]))
            });
            prop_assert!(least > 0 && most - least <= 1);
            prop_assert!(times.windows(3).all(|t| t[2] - t[1] >= t[1] - t[0] && t[2] - t[1] <= policy.tries.1));
        }
    }

    #[test]
    fn one_alone_is_all_there_is_to_try() {
        let mut arms = Arms::new('a', &Policy { margin: 0.0, dwell: 0, tries: (1, 1) });
        assert_eq!((arms.turn(&['a'], 'a'), arms.turn(&[], 'a')), ('a', 'a'));
    }
}
