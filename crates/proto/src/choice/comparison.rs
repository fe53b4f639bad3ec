//! Which of two ways an application gets on faster with, as it uses one buffer again and again.
//!
//! A send from the buffer itself spares a copy but ends later: when the adapter has done with the buffer. Whether
//! that costs anything depends on what the application does next: an answer it waits for hides the wait,
//! a stream of blocking sends does not, and in a tree of messages it depends on who is last. No formula
//! knows. So the times of groups of uses are compared, copied and not: what the application takes from use
//! to use is all that counts. The slower way is tried again now and then, ever more rarely while it stays
//! slower, and no longer than a group of the faster one takes.

/// Uses of a group: even numbers of receivers of one buffer, and rounds of several uses, fit into it.
const GROUP: u8 = 8;
/// Groups after which the slower way is tried for the first and for the last time.
const AGAIN: (u16, u16) = (32, 1024);
/// Weight of a group that took longer than those before: it may have been disturbed.
const WEIGHT: f32 = 0.125;
/// By which part copies must be faster.
const MARGIN: f32 = 0.01;

/// The two ways of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// Uses of the present group, and when it began.
    uses: u8,
    began_ns: u64,
    is_gathered: bool,
    /// What the present group may take: more shows that its way is the slower one.
    most_ns: f32,
    /// Time of a group: copied, gathered.
    known_ns: [Option<f32>; 2],
    /// Groups until the slower way is tried, and from then on to the next time.
    left: u16,
    again: u16,
}

impl Comparison {
    /// Before the first use that may be gathered.
    pub fn new(now_ns: u64) -> Comparison {
        let (first, _) = AGAIN;
        // The first group is no measure: in it buffers are registered, here and at the other side.
        Comparison {
            uses: 0,
            began_ns: now_ns,
            is_gathered: true,
            most_ns: f32::INFINITY,
            known_ns: [None; 2],
            left: first + 1,
            again: first,
        }
    }

    /// Counts a use: whether it is gathered.
    #[inline]
    pub fn next(&mut self, now_ns: impl FnOnce() -> u64) -> bool {
        if self.uses == GROUP || self.uses > 0 && self.most_ns < f32::INFINITY {
            let now_ns = now_ns();
            if self.uses == GROUP || (now_ns - self.began_ns) as f32 > self.most_ns {
                self.ends(now_ns);
                (self.uses, self.began_ns) = (0, now_ns);
            }
        }
        self.uses += 1;
        self.is_gathered
    }

    /// A group has ended: which way the next one goes.
    fn ends(&mut self, now_ns: u64) {
        let took_ns = (now_ns - self.began_ns) as f32 * f32::from(GROUP) / f32::from(self.uses);
        self.most_ns = f32::INFINITY;
        let is_first = self.left > self.again && self.known_ns == [None; 2];
        if is_first {
            self.left = self.again;
        } else {
            let known = &mut self.known_ns[usize::from(self.is_gathered)];
            *known = Some(known.map_or(took_ns, |ns| ns + (took_ns - ns).min(WEIGHT * (took_ns - ns))));
        }
        self.left -= 1;
        let [Some(copied), Some(gathered)] = self.known_ns else {
            self.is_gathered = self.known_ns[1].is_none();
            return;
        };
        let better = gathered <= copied * (1.0 + MARGIN);
        if self.left > 0 {
            self.is_gathered = better;
            return;
        }
        self.is_gathered = !better;
        self.most_ns = copied.min(gathered);
        self.again = (2 * self.again).min(AGAIN.1);
        self.left = self.again;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `uses` uses that take these times, copied and gathered: how many were gathered.
    fn play(comparison: &mut Comparison, now_ns: &mut u64, uses: usize, copied: u64, gathered: u64) -> usize {
        let mut count = 0;
        for _ in 0..uses {
            let is_gathered = comparison.next(|| *now_ns);
            count += usize::from(is_gathered);
            *now_ns += if is_gathered { gathered } else { copied };
        }
        count
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_tried_ever_more_rarely() {
        for (copied, gathered) in [(1000, 850), (1000, 1500)] {
            let (mut comparison, mut now_ns) = (Comparison::new(0), 0);
            let uses = 16 * usize::from(GROUP) * usize::from(AGAIN.0);
            let count = play(&mut comparison, &mut now_ns, uses, copied, gathered);
            let slower = if gathered < copied { uses - count } else { count };
            assert!((3..=56).contains(&slower), "{slower} of {uses}");
        }
    }

    #[test]
    fn to_try_what_is_much_slower_costs_little() {
        let (mut comparison, mut now_ns) = (Comparison::new(0), 0);
        play(&mut comparison, &mut now_ns, 40, 600, 4800);
        let (begun_ns, uses) = (now_ns, 10_000);
        play(&mut comparison, &mut now_ns, uses, 600, 4800);
        assert!(now_ns - begun_ns < uses as u64 * 600 * 101 / 100);
    }

    #[test]
    fn what_becomes_faster_is_found() {
        let (mut comparison, mut now_ns) = (Comparison::new(0), 0);
        play(&mut comparison, &mut now_ns, 1000, 1000, 1500);
        play(&mut comparison, &mut now_ns, 20_000, 1000, 500);
        assert_eq!(play(&mut comparison, &mut now_ns, 80, 1000, 500), 80);
        play(&mut comparison, &mut now_ns, 400, 400, 500);
        let late = play(&mut comparison, &mut now_ns, 40_000, 400, 500);
        assert!(late < 36_000, "{late}");
    }

    #[test]
    fn one_disturbed_group_says_little() {
        let (mut comparison, mut now_ns) = (Comparison::new(0), 0);
        play(&mut comparison, &mut now_ns, 100, 1000, 850);
        now_ns += 3000;
        assert_eq!(play(&mut comparison, &mut now_ns, 80, 1000, 850), 80);
    }
}
