//! Which of several ways an application gets on faster with, as it does the same thing again and again.
//!
//! A send from the buffer itself spares a copy but ends later: when the adapter has done with the buffer. A
//! receiver that copies alone finds the data in its cache afterwards; one that is helped has them sooner. Whether
//! that costs anything depends on what the application does next: an answer it waits for hides the wait,
//! a stream of blocking sends does not, and in a tree of messages it depends on who is last. No formula
//! knows. So the times of groups of uses are compared, one way and the other: what the application takes from use
//! to use is all that counts, with its computation, its own touches of the data and its waits. The slower
//! ways are tried again now and then, ever more rarely while they stay slower, and no longer than a group of
//! the fastest one takes.

/// Uses of a group: even numbers of receivers of one buffer, and rounds of several uses, fit into it.
const GROUP: u16 = 8;
/// Uses after which a group ends wherever the application stands in its round.
const GROUP_MAX: u16 = 128;
/// Weight of a group that took longer than those before: it may have been disturbed.
const WEIGHT: f32 = 0.125;
/// A group that takes longer or shorter than known by this factor is of another time of the application: what was
/// known of the other ways says nothing of it. So many in a row there must be, for a group may be disturbed.
const CHANGE: f32 = 1.25;
const CHANGES: u8 = 3;
/// By which part another way must be faster than the preferred one.
const MARGIN: f32 = 0.01;
/// Weight of a group in what is known of the noise.
const NOISE: f32 = 0.25;

/// When other ways are tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    /// Groups by which slower ones are tried again for the first time, and at most.
    pub first: u16,
    pub last: u16,
    /// Groups of the preferred way that show by how much groups differ before another one is tried: one is better
    /// only beyond that, and all begin anew when the groups of the best one have come to take another time. 0:
    /// groups are taken as they come.
    pub settle: u16,
}

/// Where in the course of an application a use is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// A round of the application may begin: what it has waited for since the last such use belongs to the
    /// uses before.
    pub is_round: bool,
    /// Another way may be tried.
    pub may_try: bool,
}

/// Ways that are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) struct Comparison<const WAYS: usize> {
    /// Uses of the present group, and when it began.
    uses: u16,
    began_ns: u64,
    way: u8,
    /// The way to take while nothing speaks against it, and how many of them there are.
    preferred: u8,
    count: u8,
    /// Groups until another way is tried for the first time. The first group, which meets what is cold, is no
    /// measure.
    settles: u16,
    is_first: bool,
    /// By how much groups of one way differ, as a rule.
    noise_ns: f32,
    /// The way that was tried last among the slower ones.
    tried: u8,
    /// What the present group may take: more shows that its way is a slower one.
    most_ns: f32,
    /// Time of a group.
    known_ns: [Option<f32>; WAYS],
    /// Groups until a slower way is tried, and from then on to the next time.
    left: u16,
    next: u16,
    again: Again,
    /// Groups in a row that took longer than known, or shorter.
    longer: u8,
    shorter: u8,
}

impl<const WAYS: usize> Comparison<WAYS> {
    /// Before the first use, which goes by the `preferred` one of the first `count` ways.
    pub fn new(preferred: usize, count: usize, again: Again, now_ns: u64) -> Comparison<WAYS> {
        Comparison {
            uses: 0,
            began_ns: now_ns,
            way: preferred as u8,
            preferred: preferred as u8,
            count: count as u8,
            settles: again.settle,
            is_first: true,
            noise_ns: 0.0,
            tried: preferred as u8,
            most_ns: f32::INFINITY,
            known_ns: [None; WAYS],
            left: again.first,
            next: again.first,
            again,
            longer: 0,
            shorter: 0,
        }
    }

    /// Whether a use goes this way for sure, since it neither begins a group nor asks for the time; only
    /// then it is counted.
    #[inline]
    pub fn goes_on(&mut self, way: usize, is_round: bool) -> bool {
        let most = if is_round { GROUP } else { GROUP_MAX };
        let goes_on =
            (1..most).contains(&self.uses) && self.most_ns == f32::INFINITY && usize::from(self.way) == way;
        self.uses += u16::from(goes_on);
        goes_on
    }

    /// Counts a use: the way it goes.
    #[inline]
    pub fn next(&mut self, at: At, now_ns: impl FnOnce() -> u64) -> usize {
        let At { is_round, may_try } = at;
        let is_full = self.uses >= GROUP && is_round || self.uses >= GROUP_MAX;
        if is_full || self.uses > 0 && self.most_ns < f32::INFINITY {
            let now_ns = now_ns();
            let most_ns = self.most_ns * f32::from(self.uses.max(GROUP)) / f32::from(GROUP);
            if is_full || (now_ns - self.began_ns) as f32 > most_ns {
                self.ends(now_ns, may_try);
                (self.uses, self.began_ns) = (0, now_ns);
            }
        }
        self.uses += 1;
        usize::from(self.way)
    }

    /// Goes one way from here on, and forgets what is known of the others.
    pub fn keep_to(&mut self, way: usize) {
        (self.way, self.preferred, self.most_ns) = (way as u8, way as u8, f32::INFINITY);
        for (_, known) in self.known_ns.iter_mut().enumerate().filter(|(other, _)| *other != way) {
            *known = None;
        }
    }

    /// What a use takes by the best way, in ns.
    pub fn use_ns(&self) -> f32 {
        self.known_ns[self.best()].unwrap_or(0.0) / f32::from(GROUP)
    }

    /// Whether the present group goes by a way that is not the fastest as far as is known.
    pub fn is_trying(&self) -> bool {
        usize::from(self.way) != self.best()
    }

    /// What a use takes by each way, in ns, as far as it is known.
    pub fn known_ns(&self) -> impl Iterator<Item = (usize, f32)> {
        let known = self.known_ns.iter().enumerate();
        known.filter_map(|(way, ns)| Some((way, (*ns)? / f32::from(GROUP))))
    }

    /// The way that is the fastest as far as it is known.
    pub fn best(&self) -> usize {
        let ns = |way: usize| {
            let is_other = way != usize::from(self.preferred);
            let margin = |ns: f32| if is_other { ns * (1.0 + MARGIN) + self.noise_ns } else { ns };
            self.known_ns[way].map_or(f32::INFINITY, margin)
        };
        let faster = |best: usize, way: usize| if ns(way) < ns(best) { way } else { best };
        (0..usize::from(self.count)).fold(usize::from(self.preferred), faster)
    }

    /// A group has ended: which way the next one goes.
    fn ends(&mut self, now_ns: u64, may_try: bool) {
        let took_ns = (now_ns - self.began_ns) as f32 * f32::from(GROUP) / f32::from(self.uses);
        self.most_ns = f32::INFINITY;
        self.left = self.left.saturating_sub(1);
        if !std::mem::take(&mut self.is_first) {
            self.learn(took_ns);
        }
        let all = 0..self.count;
        let is_unknown = |way: &u8| self.known_ns[usize::from(*way)].is_none();
        self.way = self.best() as u8;
        if self.settles > 0 || !may_try {
            self.settles = self.settles.saturating_sub(1);
            return;
        }
        if let Some(unknown) = [self.preferred].into_iter().chain(all.clone()).find(is_unknown) {
            self.way = unknown;
            self.most_ns = self.known_ns[self.best()].unwrap_or(f32::INFINITY);
            return;
        }
        let best = self.way;
        if self.left > 0 || self.count < 2 {
            return;
        }
        self.way =
            all.clone().cycle().skip(usize::from(self.tried) + 1).find(|way| *way != best).unwrap_or(best);
        self.tried = self.way;
        self.most_ns = self.known_ns[usize::from(best)].unwrap_or(f32::INFINITY);
        self.next = (2 * self.next).min(self.again.last);
        self.left = self.next;
    }

    /// Takes in what a group of the way in use took.
    fn learn(&mut self, took_ns: f32) {
        let way = usize::from(self.way);
        let Some(ns) = self.known_ns[way] else {
            self.known_ns[way] = Some(took_ns);
            return;
        };
        let mut took_ns = took_ns;
        if self.again.settle > 0 {
            let (is_longer, is_shorter) = (took_ns > CHANGE * ns, CHANGE * took_ns < ns);
            if way == self.best() && self.settles == 0 {
                self.longer = if is_longer { self.longer + 1 } else { 0 };
                self.shorter = if is_shorter { self.shorter + 1 } else { 0 };
                match (self.longer, self.shorter) {
                    (CHANGES, _) | (_, CHANGES) => return self.begins_anew(way),
                    (_, 0) => {}
                    _ => return,
                }
            }
            // More is no noise but a disturbance, or the beginning of another time.
            took_ns = took_ns.min(CHANGE * ns);
            self.noise_ns += NOISE * ((took_ns - ns).abs().min(ns / 4.0) - self.noise_ns);
        }
        self.known_ns[way] = Some(ns + (took_ns - ns).min(WEIGHT * (took_ns - ns)));
    }

    /// The application does something else from here on: the way that was best goes on until another one is seen
    /// to be better.
    fn begins_anew(&mut self, best: usize) {
        self.preferred = best as u8;
        self.known_ns = [None; WAYS];
        (self.longer, self.shorter) = (0, 0);
        (self.settles, self.noise_ns) = (self.again.settle, 0.0);
        (self.next, self.left) = (self.again.first, self.again.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAIN: Again = Again { first: 32, last: 1024, settle: 0 };
    const ROUND: At = At { is_round: true, may_try: true };

    /// Plays `uses` uses that take these times: how often each way was taken.
    fn play<const N: usize>(
        comparison: &mut Comparison<N>,
        now_ns: &mut u64,
        uses: usize,
        takes: [u64; N],
    ) -> [usize; N] {
        let mut count = [0; N];
        for _ in 0..uses {
            let way = comparison.next(ROUND, || *now_ns);
            count[way] += 1;
            *now_ns += takes[way];
        }
        count
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_tried_ever_more_rarely() {
        for takes in [[1000, 850], [1000, 1500]] {
            let (mut comparison, mut now_ns) = (Comparison::new(1, 2, AGAIN, 0), 0);
            let uses = 16 * usize::from(GROUP) * usize::from(AGAIN.first);
            let count = play(&mut comparison, &mut now_ns, uses, takes);
            let slower = count[usize::from(takes[1] > takes[0])];
            assert!((3..=56).contains(&slower), "{slower} of {uses}");
        }
    }

    #[test]
    fn to_try_what_is_much_slower_costs_little() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, AGAIN, 0), 0);
        play(&mut comparison, &mut now_ns, 40, [600, 4800]);
        let (begun_ns, uses) = (now_ns, 10_000);
        play(&mut comparison, &mut now_ns, uses, [600, 4800]);
        assert!(now_ns - begun_ns < uses as u64 * 600 * 101 / 100);
    }

    #[test]
    fn what_becomes_faster_is_found() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, AGAIN, 0), 0);
        play(&mut comparison, &mut now_ns, 1000, [1000, 1500]);
        play(&mut comparison, &mut now_ns, 20_000, [1000, 500]);
        assert_eq!(play(&mut comparison, &mut now_ns, 80, [1000, 500]), [0, 80]);
        play(&mut comparison, &mut now_ns, 400, [400, 500]);
        let late = play(&mut comparison, &mut now_ns, 40_000, [400, 500])[1];
        assert!(late < 36_000, "{late}");
    }

    #[test]
    fn one_disturbed_group_says_little() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, AGAIN, 0), 0);
        play(&mut comparison, &mut now_ns, 100, [1000, 850]);
        now_ns += 3000;
        assert_eq!(play(&mut comparison, &mut now_ns, 80, [1000, 850]), [0, 80]);
    }

    #[test]
    fn of_several_ways_each_is_tried_and_the_fastest_taken() {
        for best in 0..3 {
            let (mut comparison, mut now_ns) = (Comparison::new(0, 3, AGAIN, 0), 0);
            let takes: [u64; 3] =
                std::array::from_fn(|way| if way == best { 900 } else { 1000 + 10 * way as u64 });
            let begin = play(&mut comparison, &mut now_ns, 4 * usize::from(GROUP), takes);
            assert!(begin.iter().all(|uses| *uses >= usize::from(GROUP)), "{begin:?}");
            let count = play(&mut comparison, &mut now_ns, 20_000, takes);
            assert!(count[best] > 19_500 && count.iter().all(|uses| *uses > 0), "{count:?}");
            assert_eq!(comparison.best(), best);
        }
        let mut two: Comparison<3> = Comparison::new(0, 2, AGAIN, 0);
        assert_eq!(play(&mut two, &mut 0, 20_000, [1000, 1100, 1])[2], 0);
    }

    /// An application computes in one phase and not in the next: what was known of the ways is of no use.
    #[test]
    fn a_new_phase_is_learnt_anew() {
        let (mut comparison, mut now_ns) = (Comparison::new(0, 2, Again { settle: 2, ..AGAIN }, 0), 0);
        play(&mut comparison, &mut now_ns, 4000, [1000, 1200]);
        for (takes, best) in [([9000, 8000], 1), ([1000, 1200], 0), ([300, 200], 1)] {
            play(&mut comparison, &mut now_ns, 80, takes);
            assert!(play(&mut comparison, &mut now_ns, 200, takes)[best] > 150);
        }
    }

    /// What differs by less than groups of one way do decides nothing.
    #[test]
    fn noise_changes_nothing() {
        let mut comparison: Comparison<2> = Comparison::new(0, 2, Again { settle: 4, ..AGAIN }, 0);
        let mut now_ns = 0;
        let mut count = [0; 2];
        for use_ in 0..20_000u64 {
            let way = comparison.next(ROUND, || now_ns);
            count[way] += 1;
            // Between 1000 and 1200 from group to group, which is more than the second way is faster by.
            now_ns += 1000 + use_ / 8 * 7919 % 200 - 5 * way as u64;
        }
        assert!(count[0] > 19_000, "{count:?}");
    }

    /// A pause that falls into the first groups, which are cold besides, makes no way seem slow.
    #[test]
    fn a_disturbed_beginning_says_little() {
        for pause in 0..8 {
            let (mut comparison, mut now_ns) = (Comparison::new(0, 2, Again { settle: 4, ..AGAIN }, 0), 0);
            for group in 0..8u64 {
                play(&mut comparison, &mut now_ns, 8, [1000 + 900 / (group + 1), 1300]);
                now_ns += if group == pause { 1_000_000 } else { 0 };
            }
            assert!(
                play(&mut comparison, &mut now_ns, 80, [1000, 1300])[0] > 60,
                "pause behind group {pause}"
            );
        }
    }

    /// A window of sends that are only begun costs little until it is waited for: a group ends where a
    /// round does.
    #[test]
    fn what_is_waited_for_at_the_end_of_a_round_counts() {
        let (mut comparison, mut now_ns): (Comparison<2>, u64) = (Comparison::new(0, 2, AGAIN, 0), 0);
        let mut count = [0; 2];
        for _ in 0..1000 {
            for at in 0..64 {
                let way = comparison.next(At { is_round: at == 0, may_try: true }, || now_ns);
                count[way] += 1;
                now_ns += [500, 50][way];
                // Begun at once, and all of it is done in the wait.
                now_ns += if at == 63 { [0, 64 * 900][way] } else { 0 };
            }
        }
        assert!(count[0] > 50 * count[1], "{count:?}");
    }
}
