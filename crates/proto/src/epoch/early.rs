//! Whether an operation leaves when it is called, before its epoch ends.
//!
//! It gains what the application computes meanwhile, as far as the operation takes so long; of that each pays its own bytes, and the way is hidden
//! once for all that leave. It loses what the plan
//! would have made of it: the message it would have shared, and Gets that now stand behind a Put. What will
//! follow nobody knows; earlier epochs of the same window have shown it.

use crate::choice::facts::{Facts, Path};
use crate::epoch::Action;
use crate::epoch::plan::Item;
use fabric::Distance;
use fabric::estimate::Averaging;

/// How what is known of a window follows its epochs: an application changes what they are like from phase to phase.
const LIKE: Averaging = Averaging::fading(4);

/// What the epochs of a window have been like.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct EpochHabit {
    /// From an operation to the end of its epoch, in ns.
    pub lag_ns: f64,
    /// Bytes of Gets that were called behind a Put.
    pub gets_behind: f64,
    /// Operations.
    pub ops: f64,
    /// Whether there was one.
    pub known: bool,
}

impl EpochHabit {
    /// An epoch of so many operations has ended: the mean lag of these, and the Gets behind its first Put.
    pub fn ended(&mut self, lag_ns: f64, gets_behind: f64, ops: usize) {
        let follow = |known: f64, seen: f64| LIKE.follow(self.known.then_some(known), 1, seen);
        self.lag_ns = follow(self.lag_ns, lag_ns);
        self.gets_behind = follow(self.gets_behind, gets_behind);
        self.ops = follow(self.ops, ops as f64);
        self.known = true;
    }
}

/// What early issue is expected to gain, in ns; it is worth it above 0.
pub fn gain_ns(
    item: &Item,
    habit: &EpochHabit,
    distance: Distance,
    fits_message: bool,
    facts: &Facts,
) -> f64 {
    let path = facts.path(distance);
    let wire = path.write.per_byte * item.len as f64;
    let once = path.write.fixed + beyond(item.action, path);
    let hidden = (wire + once / habit.ops.max(1.0)).min(habit.lag_ns);
    // By itself it is a message more than together with others.
    let shared = if fits_message { path.post.value + path.gap.value.max(path.latency.value) } else { 0.0 };
    let behind = match item.action {
        Action::Put => {
            let delayed = (item.len as f64 * path.write.per_byte - habit.lag_ns).max(0.0);
            delayed.min(habit.gets_behind * path.write.per_byte)
        }
        Action::Get => 0.0,
    };
    hidden - shared - behind
}

fn beyond(action: Action, path: &Path) -> f64 {
    if action == Action::Get { path.read.value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_habit_follows_what_epochs_are_like() {
        let mut habit = EpochHabit::default();
        habit.ended(1000.0, 64.0, 3);
        assert_eq!(habit, EpochHabit { lag_ns: 1000.0, gets_behind: 64.0, ops: 3.0, known: true });
        (0..60).for_each(|_| habit.ended(0.0, 0.0, 1));
        assert!(habit.lag_ns < 1.0 && habit.gets_behind < 1.0 && habit.ops < 1.1);
    }
}
