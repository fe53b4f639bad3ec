//! Which of several ways an application gets on faster with, as it does the same thing again and again.
//!
//! A send from the buffer itself spares a copy but ends later: when the adapter has done with the buffer. A
//! receiver that copies alone finds the data in its cache afterwards; one that is helped has them sooner. Whether
//! that costs anything depends on what the application does next: an answer it waits for hides the wait,
//! a stream of blocking sends does not, and in a tree of messages it depends on who is last. No formula
//! knows. So the times of groups of uses are compared, one way and the other: what the application takes from use
//! to use is all that counts, with its computation, its own touches of the data and its waits. The slower
//! ways are tried again now and then, ever more rarely while they stay slower, and no longer than a group of
//! the fastest one takes, or four if they are near.

use fabric::arms::{Arms, Policy};
use fabric::estimate::{Averaging, Estimate};

/// Uses of a group: even numbers of receivers of one buffer, and rounds of several uses, fit into it.
pub(crate) const GROUP: u16 = 8;
/// Uses after which a group ends wherever the application stands in its round.
const GROUP_MAX: u16 = 128;
/// Rounds of a way that count for nothing where another one went before: in the first the data lie where that one has left
/// them, in the second whoever sends at the same time has followed, and finds the same. Where a round is a window of many uses one is enough.
const WARM: u16 = 2;
/// Groups of a try at most that are left out since some use met what later ones find there: where many ranks get memory that never ends.
const COLD: u16 = 4;
/// The first uses of a way that has not been tried yet may take so many times as long as a group of the best one.
const FIRST: f64 = 4.0;
/// How the time of a way follows its groups: the shortest counts, and of longer ones an eighth, for they may have been
/// disturbed.
const TIMES: Averaging = Averaging { falls: true, ..Averaging::fading(8) };
/// A group that takes longer or shorter than known by this factor is of another time of the application: what was
/// known of the other ways says nothing of it. So many in a row there must be, for a group may be disturbed.
const CHANGE: f64 = 1.25;
const CHANGES: u8 = 3;
/// The same where a change of time shows: more is no noise but a disturbance, or the beginning of another time.
const SETTLED: Averaging = Averaging { above: CHANGE, ..TIMES };
/// A group that takes so many times as long as known, or as by the best way, holds a pause of the application, and says nothing of its way. So often that is
/// taken for the reason of a way that is tried for the first time; then it is slow.
const PAUSE: f64 = 2.0;
const DOUBTS: u8 = 2;
/// A way that took so many times as long as the best one is not among the first to be tried where the application does something else, or begins to.
const FAR: f64 = 2.0;
/// To try one that took a little longer than the best one costs that little: no more than one part in so many of the groups since the application has begun to do something else.
const SHARE: f64 = 32.0;
/// A way that is tried and takes longer than the best one, but less than so many times as long, goes on for so many groups at most, of which the last one counts: code,
/// lines and whoever takes part get used to it.
const NEAR: f64 = 1.25;
const TRIED: u8 = 4;
/// Groups whose time is not taken behind each that shows nothing new: the clock, and all that is worked out of it, cost as much as a short message.
const RESTS: u16 = 3;
/// So many groups in one round are a window.
const WINDOW: u16 = 4;
/// Of how groups differ a window shows as much as so many of them.
const GROUPS_OF_WINDOW: u16 = 2;
/// By how much groups of one way differ.
const NOISE: Averaging = Averaging::fading(4);
/// What part of that another way must be better by. One group of it, as long as it may be, is compared with the shortest of many: that
/// is against it in any case.
const DIFFERS: f64 = 0.5;
/// Steps are groups, which average what uses differ by: where they differ all the same it is known by how much. Slower
/// ways cost time, so the longer they have been slower the more rarely they are tried.
const POLICY: Policy = Policy { margin: 0.01, dwell: 0, tries: (32, 1024) };

/// Where in the course of an application a use is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    /// A round of the application may begin: what it has waited for since the last such use belongs to the
    /// uses before.
    pub is_round: bool,
    /// The use before this one waited for something that later ones find there.
    pub is_cold: bool,
    /// Another way may be tried.
    pub may_try: bool,
}

/// Uses one after the other whose time is taken, in parts of half a group: a pause of the application falls into one of them.
#[derive(Clone, Debug)]
struct Stretch {
    /// Uses so far, and when they began.
    uses: u16,
    began_ns: u64,
    /// The same of those before the present part.
    before: u16,
    part_ns: u64,
    /// Time of a use in the shortest part that has ended.
    least_ns: f64,
}

impl Stretch {
    fn begin(now_ns: u64) -> Stretch {
        Stretch { uses: 0, began_ns: now_ns, before: 0, part_ns: now_ns, least_ns: f64::INFINITY }
    }

    /// Uses of the present part.
    fn uses_of_part(&self) -> u16 {
        self.uses - self.before
    }

    /// The present part ends, and another one begins.
    fn end_part(&mut self, now_ns: u64) {
        let use_ns = (now_ns - self.part_ns) as f64 / f64::from(self.uses_of_part());
        self.least_ns = self.least_ns.min(use_ns);
        (self.before, self.part_ns) = (self.uses, now_ns);
    }

    /// What a use has taken: in the shortest part, if one has ended.
    fn use_ns(&self, now_ns: u64) -> f64 {
        if self.least_ns < f64::INFINITY {
            return self.least_ns;
        }
        (now_ns - self.began_ns) as f64 / f64::from(self.uses)
    }
}

/// Ways that are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) struct Comparison<const WAYS: usize> {
    /// The present group; the rounds it is, while it does not count yet.
    stretch: Stretch,
    warm: Option<u16>,
    way: u8,
    /// The way to take while nothing speaks against it, and how many of them there are.
    arms: Arms<u8>,
    ways: u8,
    /// Uses of a group.
    group: u16,
    /// Groups of the preferred way that show by how much groups differ before another one is tried: one is better
    /// only beyond that, and all begin anew when the groups of the best one have come to take another time. 0:
    /// groups are taken as they come.
    settle: u16,
    /// Groups until another way is tried for the first time. The first group, which meets what is cold, is no
    /// measure.
    settles: u16,
    is_first: bool,
    /// By how much groups of one way differ, as a rule.
    noise_ns: Estimate,
    /// What the present group may take: more shows that its way is a slower one.
    most_ns: f64,
    /// Uses of the present try that were left out, for they had met what was cold.
    cold: u16,
    /// Whether others have begun to go the way of the present try with this one, and, if so, in the present group.
    followers: Option<bool>,
    /// Uses come by the thousand.
    are_many: bool,
    /// Groups of the present try that others have followed, and what the last of them took.
    tried: (u8, f64),
    /// The time of so many uses to come is not taken; with none left the next group begins with a round.
    rests: Option<u16>,
    /// Time of a group.
    known_ns: [Estimate; WAYS],
    /// Groups in a row that took longer than known, or shorter.
    longer: u8,
    shorter: u8,
    /// How often each way that nothing is known of seemed to be far slower than the best one.
    doubts: [u8; WAYS],
    /// How many times as long as the best one of then each way took when it was tried last; 0: it was not.
    ratios: [f64; WAYS],
}

impl<const WAYS: usize> Comparison<WAYS> {
    /// Before the first use, which goes by the `preferred` one of the first `ways` ways. So many groups are to `settle`.
    pub fn new(preferred: usize, ways: usize, settle: u16, now_ns: u64) -> Comparison<WAYS> {
        Comparison {
            stretch: Stretch::begin(now_ns),
            warm: None,
            way: preferred as u8,
            arms: Arms::new(preferred as u8, &POLICY),
            ways: ways as u8,
            group: GROUP,
            settle,
            settles: settle,
            is_first: true,
            noise_ns: Estimate::expected(0.0),
            most_ns: f64::INFINITY,
            cold: 0,
            followers: None,
            are_many: false,
            tried: (0, 0.0),
            rests: None,
            known_ns: [Estimate::default(); WAYS],
            longer: 0,
            shorter: 0,
            doubts: [0; WAYS],
            ratios: [0.0; WAYS],
        }
    }

    /// The application does this much as it does what the other one has compared: what is far slower there is not among the first to be tried. By how
    /// much others are slower or faster there says little.
    pub fn take_ratios_of(&mut self, other: &Comparison<WAYS>) {
        self.ratios = other.ratios_now().map(|ratio| if ratio > FAR { ratio } else { 0.0 });
    }

    /// How many times as long as the best way each took when it was tried last, or takes by what is known of it: the one that was best then may be no more.
    fn ratios_now(&self) -> [f64; WAYS] {
        let best_ns = self.best_ns();
        std::array::from_fn(|way| {
            self.ratios[way].max(self.known_ns[way].value().map_or(0.0, |ns| ns / best_ns))
        })
    }

    /// Expects of ways that were far slower when they were tried last that they are: they are tried again in their turn.
    fn expect_slow(&mut self, best_ns: f64) {
        for (known, ratio) in self.known_ns.iter_mut().zip(self.ratios) {
            if ratio > FAR && known.value().is_none() {
                *known = Estimate::expected(ratio * best_ns);
            }
        }
    }

    /// Whether a way is to be tried of which nothing is known since the application does something else, by what trying it cost before.
    fn is_worth_trying(&self, way: u8) -> bool {
        (self.ratios[usize::from(way)] - 1.0) * SHARE <= f64::from(self.arms.since())
    }

    /// The same in groups of so many uses: what takes long is known from few.
    pub fn in_groups(self, group: u16) -> Comparison<WAYS> {
        Comparison { group, ..self }
    }

    /// The same of uses that come by the thousand: what is tried gets its time, and where nothing changes only some groups are timed.
    pub fn of_many(self) -> Comparison<WAYS> {
        Comparison { are_many: true, ..self }
    }

    /// The way of the present group.
    #[inline]
    pub fn way(&self) -> usize {
        usize::from(self.way)
    }

    /// Whether a use goes on by the way of the present group for sure, since it neither begins a group nor asks for the time; only
    /// then it is counted.
    #[inline]
    pub fn goes_on(&mut self, is_round: bool) -> bool {
        if let Some(uses @ 1..) = &mut self.rests {
            *uses -= 1;
            return true;
        }
        let (part, most) = if is_round { (self.part_of_group(), self.group) } else { (GROUP_MAX, GROUP_MAX) };
        let is_settled = self.warm.is_none() && self.most_ns == f64::INFINITY && self.rests.is_none();
        let is_within = self.stretch.uses_of_part() < part && (1..most).contains(&self.stretch.uses);
        let goes_on = is_within && is_settled;
        self.stretch.uses += u16::from(goes_on);
        goes_on
    }

    /// Counts a use: the way it goes.
    #[inline]
    pub fn next(&mut self, at: At, now_ns: impl FnOnce() -> u64) -> usize {
        let At { is_round, is_cold, may_try } = at;
        if let Some(uses) = self.rests {
            return self.rest(uses, is_round, now_ns);
        }
        if is_cold && self.most_ns < f64::INFINITY && self.cold < COLD * self.group {
            self.cold += self.stretch.uses;
            (self.stretch, self.warm) = (Stretch::begin(now_ns()), Some(0));
            return self.count(is_round);
        }
        let uses = self.stretch.uses;
        let is_full = self.is_enough() && is_round || uses >= GROUP_MAX;
        let is_part = self.warm.is_none() && is_round && self.stretch.uses_of_part() >= self.part_of_group();
        if is_full || is_part || uses > 0 && self.most_ns < f64::INFINITY {
            self.take_time(now_ns(), is_part, is_full, may_try);
        }
        self.count(is_round)
    }

    /// Takes the time: a part of the group, or the whole of it, may have ended, or it has taken too long.
    fn take_time(&mut self, now_ns: u64, is_part: bool, is_full: bool, may_try: bool) {
        if is_part {
            self.stretch.end_part(now_ns);
        }
        let may_take_ns = self.may_take_ns(self.stretch.uses);
        let takes_too_long = (now_ns - self.stretch.began_ns) as f64 > may_take_ns;
        if takes_too_long || is_full {
            self.ends(now_ns, takes_too_long, may_try);
        }
    }

    /// Whether there are as many uses as a group has, or, while it does not count yet, rounds.
    fn is_enough(&self) -> bool {
        let uses = self.stretch.uses;
        let is_warm = |rounds| rounds >= WARM || uses >= WARM * self.group;
        self.warm.map_or(uses >= self.group, is_warm)
    }

    /// Uses of a part of a group.
    fn part_of_group(&self) -> u16 {
        self.group.div_ceil(2)
    }

    /// Counts a use that goes by the way of its group.
    #[inline]
    fn count(&mut self, is_round: bool) -> usize {
        self.stretch.uses += 1;
        if let Some(rounds) = &mut self.warm {
            *rounds += u16::from(is_round || *rounds == 0);
        }
        self.way()
    }

    /// Whether nothing is known of the way in use.
    fn is_new(&self) -> bool {
        self.known_ns[self.way()].value().is_none()
    }

    /// What the present group may take with so many uses: more shows that its way is a slower one.
    fn may_take_ns(&self, uses: u16) -> f64 {
        let is_new = self.warm.is_some() && self.is_new();
        let groups = f64::from(uses.max(self.group)) / f64::from(self.group);
        self.most_ns * groups * if is_new { FIRST } else { 1.0 }
    }

    /// Somebody who does this together with this one has begun to go this way. Where uses come by the window that is a window later, and the first one of that side.
    pub fn others_follow(&mut self, way: usize) {
        if self.is_trying() && way == self.way() {
            self.followers.get_or_insert(true);
        }
    }

    /// Goes one way from here on, and forgets what is known of the others.
    pub fn keep_to(&mut self, way: usize) {
        (self.way, self.stretch, self.warm, self.most_ns) =
            (way as u8, Stretch::begin(0), Some(0), f64::INFINITY);
        (self.rests, self.tried) = (None, (0, 0.0));
        self.arms.change(way as u8);
        for (_, known) in self.known_ns.iter_mut().enumerate().filter(|(other, _)| *other != way) {
            *known = Estimate::default();
        }
    }

    /// What a use takes by the best way, in ns.
    pub fn use_ns(&self) -> f64 {
        self.known_ns[self.best()].value().unwrap_or(0.0) / f64::from(self.group)
    }

    /// Whether the present group goes by a way that is not the fastest as far as is known.
    pub fn is_trying(&self) -> bool {
        self.way() != self.best()
    }

    /// What a use takes by each way, in ns, as far as it is known.
    pub fn known_ns(&self) -> impl Iterator<Item = (usize, f64)> {
        self.costs().map(|(way, ns)| (usize::from(way), ns / f64::from(self.group)))
    }

    /// What a group takes by each way.
    fn costs(&self) -> impl Iterator<Item = (u8, f64)> + Clone {
        self.known_ns.iter().enumerate().filter_map(|(way, ns)| Some((way as u8, ns.value()?)))
    }

    /// The way that is the fastest as far as it is known.
    pub fn best(&self) -> usize {
        self.arms.best(&POLICY, DIFFERS * self.noise_ns.value().unwrap_or(0.0), self.costs()).into()
    }

    /// What a group takes by that one; infinite before it is known.
    fn best_ns(&self) -> f64 {
        self.known_ns[self.best()].value().unwrap_or(f64::INFINITY)
    }

    /// A group has ended: which way the next one goes. One that was to count for nothing goes on by the same, unless it has taken too long.
    fn ends(&mut self, now_ns: u64, takes_too_long: bool, may_try: bool) {
        let is_followed = self.is_window() && self.followers == Some(true);
        self.followers = self.followers.map(|_| false);
        let is_warming = self.warm.take().is_some() || is_followed;
        if is_warming && self.shows_slow_at_once(now_ns) {
            // And is believed at once.
            self.doubts[self.way()] = DOUBTS;
        } else if is_followed || is_warming && !takes_too_long {
            self.stretch = Stretch::begin(now_ns);
            return;
        }
        let took_ns = self.stretch.use_ns(now_ns) * f64::from(self.group);
        if !is_warming && self.goes_further(took_ns) {
            self.stretch = Stretch::begin(now_ns);
            return;
        }
        let (went, uses) = (self.way, self.stretch.uses);
        let took_ns = self.shown_ns(took_ns);
        self.choose(took_ns, may_try);
        self.stretch = Stretch::begin(now_ns);
        self.warm = (self.way != went).then_some(0);
        if uses < 2 * self.group && self.may_rest() {
            self.rests = Some(RESTS * self.group);
            self.arms.steps(RESTS.into());
        }
    }

    /// Whether a way that is tried goes on for another group, since it takes little more than the best one so far.
    fn goes_further(&mut self, took_ns: f64) -> bool {
        let best_ns = self.best_ns();
        let is_near = (best_ns..NEAR * best_ns).contains(&took_ns);
        let goes =
            self.are_many && is_near && self.tried.0 + 1 < TRIED && self.is_trying() && !self.is_window();
        if goes {
            self.tried = (self.tried.0 + 1, took_ns);
        }
        goes
    }

    /// What a try has shown whose last group took this: what was near before and is not any more was disturbed, or whoever follows did not yet.
    fn shown_ns(&mut self, took_ns: f64) -> f64 {
        let (groups, before_ns) = std::mem::take(&mut self.tried);
        if groups > 0 && took_ns > NEAR * before_ns { before_ns } else { took_ns }
    }

    /// Whether the best way is in force, nothing has changed of late, and none of the others is to be tried so soon.
    fn may_rest(&self) -> bool {
        let is_steady = self.longer == 0 && self.shorter == 0 && self.settles == 0;
        let is_known = self.costs().count() == usize::from(self.ways);
        is_steady
            && is_known
            && self.are_many
            && self.warm.is_none()
            && self.most_ns == f64::INFINITY
            && self.arms.left() > RESTS.into()
    }

    /// A use whose time is not taken, of which so many are left, or, with a round of the application behind them, the first one of the next group.
    fn rest(&mut self, uses: u16, is_round: bool, now_ns: impl FnOnce() -> u64) -> usize {
        if uses > 0 {
            self.rests = Some(uses - 1);
        } else if is_round || self.stretch.uses >= GROUP_MAX {
            (self.stretch, self.rests) = (Stretch::begin(now_ns()), None);
            return self.count(is_round);
        } else {
            self.stretch.uses += 1;
        }
        self.way()
    }

    /// Whether the present way has taken far longer than the best one in a window of so many uses that the cold ones among them do not explain it. Then another
    /// such window, of messages that are all begun before it is seen how the first one gets on, would show nothing but that, and cost as much.
    fn shows_slow_at_once(&self, now_ns: u64) -> bool {
        let best_ns = self.best_ns();
        let took_ns = self.stretch.use_ns(now_ns) * f64::from(self.group);
        self.is_trying() && self.is_window() && took_ns > FAR * best_ns
    }

    /// Whether the present group is a window.
    fn is_window(&self) -> bool {
        self.stretch.uses >= WINDOW * self.group
    }

    fn choose(&mut self, took_ns: f64, may_try: bool) {
        (self.most_ns, self.cold, self.followers) = (f64::INFINITY, 0, None);
        self.arms.step();
        if !std::mem::take(&mut self.is_first) {
            self.learn(took_ns);
        }
        let best = self.best();
        self.way = best as u8;
        if self.settles > 0 || !may_try {
            let groups = if self.is_window() { GROUPS_OF_WINDOW } else { 1 };
            self.settles = self.settles.saturating_sub(groups);
            return;
        }
        if let Some(best_ns) = self.known_ns[best].value() {
            self.expect_slow(best_ns);
        }
        let all: [u8; WAYS] = std::array::from_fn(|way| way as u8);
        let all = &all[..usize::from(self.ways)];
        let is_unknown =
            |way: &u8| self.known_ns[usize::from(*way)].value().is_none() && self.is_worth_trying(*way);
        let unknown = [self.arms.in_force()].into_iter().chain(all.iter().copied()).find(is_unknown);
        self.way = match unknown {
            Some(unknown) => unknown,
            None if self.ways > 1 && self.arms.is_due(&POLICY) => self.arms.turn(all, best as u8),
            None => return,
        };
        self.most_ns = self.known_ns[best].value().unwrap_or(f64::INFINITY);
    }

    /// Takes in what a group of the way in use took. What the best way takes longer than before, or less, the others would, too: an application that
    /// computes for longer makes none of them better, and by how much they differ was measured.
    fn learn(&mut self, took_ns: f64) {
        let way = self.way();
        let ratio = took_ns / self.best_ns();
        let Some(ns) = self.known_ns[way].value() else {
            if !self.is_doubtful(took_ns) {
                self.ratios[way] = ratio;
                self.known_ns[way].observe(&TIMES, took_ns);
            }
            return;
        };
        if self.settle == 0 {
            self.known_ns[way].observe(&TIMES, took_ns);
            return;
        }
        let (is_longer, is_shorter) = (took_ns > CHANGE * ns, CHANGE * took_ns < ns);
        // One alone may have been disturbed: what is shorter than that begins no other time.
        let is_sure = self.known_ns[way].count() > 1;
        let is_best = way == self.best();
        if is_best && self.settles == 0 {
            self.longer = if is_longer { self.longer + 1 } else { 0 };
            self.shorter = if is_shorter && is_sure { self.shorter + 1 } else { 0 };
            match (self.longer, self.shorter) {
                (CHANGES, _) | (_, CHANGES) => return self.begins_anew(way),
                (_, 0) => {}
                _ => return,
            }
        }
        if took_ns > PAUSE * ns {
            return;
        }
        self.ratios[way] = ratio;
        // What was cold before is no noise.
        if !is_shorter {
            self.noise_ns.observe(&NOISE, (took_ns - ns).abs().min(ns / 4.0));
        }
        self.known_ns[way].observe(&SETTLED, took_ns);
        let more_ns = self.known_ns[way].value().unwrap_or(ns) - ns;
        if is_best {
            let others = self.known_ns.iter_mut().enumerate().filter(|(other, _)| *other != way);
            others.for_each(|(_, known)| known.add(more_ns));
        }
    }

    /// Whether a way of which nothing is known took so long that it is tried once more before that is believed.
    fn is_doubtful(&mut self, took_ns: f64) -> bool {
        let way = self.way();
        let is_slow = self.settles == 0 && took_ns > PAUSE * self.best_ns();
        self.doubts[way] = self.doubts[way].saturating_add(u8::from(is_slow));
        is_slow && self.doubts[way] <= DOUBTS
    }

    /// The application does something else from here on: the way that was best goes on until another one is seen
    /// to be better.
    fn begins_anew(&mut self, best: usize) {
        self.arms.begin_anew(best as u8, &POLICY);
        (self.known_ns, self.noise_ns) = ([Estimate::default(); WAYS], Estimate::expected(0.0));
        (self.longer, self.shorter, self.doubts) = (0, 0, [0; WAYS]);
        self.settles = self.settle;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const ROUND: At = At { is_round: true, is_cold: false, may_try: true };

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
            let comparison = Comparison::new(1, 2, 0, 0);
            // Of uses that come by the thousand what is near is tried for four groups.
            for (mut comparison, most) in [(comparison.clone(), 56), (comparison.of_many(), 160)] {
                let uses = 16 * usize::from(GROUP) * POLICY.tries.0 as usize;
                let count = play(&mut comparison, &mut 0, uses, takes);
                let slower = count[usize::from(takes[1] > takes[0])];
                assert!((3..=most).contains(&slower), "{slower} of {uses}");
            }
        }
    }

    /// Plays windows of so many uses, all of which begin before it is seen how the first gets on: how many windows went by each way.
    fn play_windows<const N: usize>(
        comparison: &mut Comparison<N>,
        now_ns: &mut u64,
        windows: usize,
        uses: usize,
        takes: [u64; N],
    ) -> [usize; N] {
        let mut count = [0; N];
        for _ in 0..windows {
            let ways: Vec<usize> =
                (0..uses).map(|at| comparison.next(At { is_round: at == 0, ..ROUND }, || *now_ns)).collect();
            count[ways[0]] += 1;
            *now_ns += ways.iter().map(|way| takes[*way]).sum::<u64>();
        }
        count
    }

    /// What the others are known to take follows the best way up and down: by how much they differ stays.
    #[test]
    fn the_others_follow_the_best_way() {
        let (mut comparison, mut now_ns) = (Comparison::new(0, 2, 4, 0), 0);
        play(&mut comparison, &mut now_ns, 200, [1000, 1300]);
        for _ in 0..100 {
            play(&mut comparison, &mut now_ns, 40, [1150, 1450]);
            play(&mut comparison, &mut now_ns, 40, [1000, 1300]);
        }
        let known: Vec<_> = comparison.known_ns().collect();
        assert!(known[1].1 - known[0].1 < 400.0, "{known:?}");
    }

    /// A window of a way that is far slower shows that alone, and is not begun again where the application goes on to do something else.
    #[test]
    fn windows_of_far_slower_ways_are_few() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 3, 2, 0).in_groups(4), 0);
        let count = play_windows(&mut comparison, &mut now_ns, 30, 64, [50_000, 20_000, 75_000]);
        assert_eq!((count[0], count[2]), (1, 1), "{count:?}");
        let count = play_windows(&mut comparison, &mut now_ns, 30, 64, [400_000, 100_000, 300_000]);
        assert_eq!(count, [0, 30, 0]);
        // In their turn they are tried all the same.
        let count = play_windows(&mut comparison, &mut now_ns, 200, 64, [50_000, 100_000, 300_000]);
        assert!(count[0] > 90 && count[2] <= 2, "{count:?}");
        let mut like = Comparison::new(1, 3, 2, now_ns).in_groups(4);
        like.take_ratios_of(&comparison);
        let count = play_windows(&mut like, &mut now_ns, 20, 64, [90_000, 100_000, 300_000]);
        assert_eq!(count[2], 0, "{count:?}");
    }

    /// Nor is the way with which it began, where that was found to be far slower than another one.
    #[test]
    fn the_first_way_may_be_a_far_slower_one() {
        let (mut comparison, mut now_ns) = (Comparison::new(2, 3, 4, 0), 0);
        let takes = [20_000, 22_000, 55_000];
        assert!(play_windows(&mut comparison, &mut now_ns, 40, 64, takes)[0] > 25);
        let mut like = Comparison::new(0, 3, 2, now_ns).in_groups(4);
        like.take_ratios_of(&comparison);
        assert_eq!(play_windows(&mut like, &mut now_ns, 20, 64, takes.map(|ns| 4 * ns))[2], 0);
    }

    /// But one that was a little slower there is tried as soon as one of which nothing is known.
    #[test]
    fn what_is_a_little_slower_elsewhere_is_tried_at_once() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, 4, 0), 0);
        play(&mut comparison, &mut now_ns, 400, [1300, 1000]);
        let mut like = Comparison::new(1, 2, 2, now_ns).in_groups(4);
        like.take_ratios_of(&comparison);
        let count = play(&mut like, &mut now_ns, 24, [4000, 5000]);
        assert!(count[0] > 8, "{count:?}");
    }

    /// Where the application does something else, ways that were not far slower are tried again the later the slower they were.
    #[test]
    fn what_is_a_little_slower_is_tried_again_a_little_later() {
        for (percent, groups) in [(101, 2), (110, 4), (130, 10), (150, 16)] {
            let comparison = Comparison::new(0, 2, 2, 0);
            // A rest may lie before the change is seen.
            for (mut comparison, rests) in [(comparison.clone(), 0), (comparison.of_many(), RESTS)] {
                let mut now_ns = 0;
                play(&mut comparison, &mut now_ns, 800, [1000, 10 * percent]);
                // Until a try has just ended.
                for tried in [0, 1] {
                    while play(&mut comparison, &mut now_ns, 1, [1000, 10 * percent])[1] == tried {}
                }
                // Three groups show that it is something else.
                let mut first = 0;
                while play(&mut comparison, &mut now_ns, 1, [3000, 30 * percent])[1] == 0 {
                    first += 1;
                }
                let since = 2 + groups..=4 + groups + usize::from(rests);
                assert!(since.contains(&(first / usize::from(GROUP))), "{percent} %: {first}");
            }
        }
    }

    #[test]
    fn to_try_what_is_much_slower_costs_little() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, 0, 0), 0);
        play(&mut comparison, &mut now_ns, 40, [600, 4800]);
        let (begun_ns, uses) = (now_ns, 10_000);
        play(&mut comparison, &mut now_ns, uses, [600, 4800]);
        assert!(now_ns - begun_ns < uses as u64 * 600 * 101 / 100);
    }

    /// Two uses a round, as of who sends to neighbours on both sides: the first two rounds of a way take twice as long as the
    /// others, for first this side finds the data elsewhere and then the one that has joined.
    #[test]
    fn rounds_in_which_a_side_has_just_changed_say_nothing() {
        let (mut comparison, mut now_ns) = (Comparison::<2>::new(1, 2, 4, 0), 0);
        let (mut last, mut same, mut count) = (1, 2, [0; 2]);
        for round in 0..1000 {
            let way = comparison.next(ROUND, || now_ns);
            same = if way == last { same + 1 } else { 0 };
            last = way;
            comparison.next(At { is_round: false, ..ROUND }, || now_ns + 1000);
            now_ns += if same < 2 { 75_000 } else { [33_000, 37_000][way] };
            count[way] += u32::from(round >= 500);
        }
        assert!(count[0] > 450, "{count:?}");
    }

    #[test]
    fn what_becomes_faster_is_found() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, 0, 0), 0);
        play(&mut comparison, &mut now_ns, 1000, [1000, 1500]);
        play(&mut comparison, &mut now_ns, 20_000, [1000, 500]);
        assert_eq!(play(&mut comparison, &mut now_ns, 80, [1000, 500]), [0, 80]);
        play(&mut comparison, &mut now_ns, 400, [400, 500]);
        let late = play(&mut comparison, &mut now_ns, 40_000, [400, 500])[1];
        assert!(late < 36_000, "{late}");
    }

    #[test]
    fn one_disturbed_group_says_little() {
        let (mut comparison, mut now_ns) = (Comparison::new(1, 2, 0, 0), 0);
        play(&mut comparison, &mut now_ns, 100, [1000, 850]);
        now_ns += 3000;
        assert_eq!(play(&mut comparison, &mut now_ns, 80, [1000, 850]), [0, 80]);
    }

    #[test]
    fn of_several_ways_each_is_tried_and_the_fastest_taken() {
        for best in 0..3 {
            let (mut comparison, mut now_ns) = (Comparison::new(0, 3, 0, 0), 0);
            let takes: [u64; 3] =
                std::array::from_fn(|way| if way == best { 900 } else { 1000 + 10 * way as u64 });
            let begin = play(&mut comparison, &mut now_ns, 5 * usize::from(GROUP), takes);
            assert!(begin.iter().all(|uses| *uses >= usize::from(GROUP)), "{begin:?}");
            let count = play(&mut comparison, &mut now_ns, 20_000, takes);
            assert!(count[best] > 19_500 && count.iter().all(|uses| *uses > 0), "{count:?}");
            assert_eq!(comparison.best(), best);
        }
        let mut two: Comparison<3> = Comparison::new(0, 2, 0, 0);
        assert_eq!(play(&mut two, &mut 0, 20_000, [1000, 1100, 1])[2], 0);
    }

    /// An application computes in one phase and not in the next: what was known of the ways is of no use.
    #[test]
    fn a_new_phase_is_learnt_anew() {
        let (mut comparison, mut now_ns) = (Comparison::new(0, 2, 2, 0), 0);
        play(&mut comparison, &mut now_ns, 4000, [1000, 1200]);
        for (takes, best) in [([9000, 8000], 1), ([1000, 1200], 0), ([300, 200], 1)] {
            play(&mut comparison, &mut now_ns, 80, takes);
            assert!(play(&mut comparison, &mut now_ns, 200, takes)[best] > 150);
        }
    }

    /// Data that lie in the other core's cache, a peer that goes the old way still: the first uses of a way are no measure of it.
    #[test]
    fn the_first_uses_of_a_way_count_for_nothing() {
        let mut comparison: Comparison<2> = Comparison::new(0, 2, 4, 0);
        let (mut now_ns, mut before, mut since) = (0, 0, 9);
        let mut count = [0; 2];
        for _ in 0..4000 {
            let way = comparison.next(ROUND, || now_ns);
            since = if way == before { since + 1 } else { 0 };
            before = way;
            count[way] += 1;
            now_ns += if since < 2 { 4000 } else { [1000, 700][way] };
        }
        assert!(count[1] > 3500, "{count:?}");
    }

    /// Some of the first dozen uses of a way wait for memory, however long, which the others find there.
    #[test]
    fn uses_that_wait_for_memory_say_nothing() {
        for (waits_ns, group) in [(4000, GROUP), (9000, GROUP / 2)] {
            let (mut comparison, mut now_ns) = (Comparison::<2>::new(0, 2, 4, 0).in_groups(group), 0);
            let (mut uses, mut is_cold, mut count) = (0, false, [0; 2]);
            for _ in 0..100 {
                let way = comparison.next(At { is_cold, ..ROUND }, || now_ns);
                count[way] += 1;
                is_cold = way == 1 && [0, 1, 2, 5, 7].contains(&uses);
                uses += way;
                now_ns += if is_cold { waits_ns } else { [1000, 700][way] };
            }
            assert!(count[1] > 45, "{waits_ns} {count:?}");
        }
    }

    /// Where others get memory all the time, what is tried ends all the same.
    #[test]
    fn memory_that_never_ends_ends_no_try() {
        let (mut comparison, mut now_ns, mut count) = (Comparison::<2>::new(0, 2, 4, 0), 0, [0; 2]);
        for _ in 0..1000 {
            let way = comparison.next(At { is_cold: true, ..ROUND }, || now_ns);
            count[way] += 1;
            now_ns += [1000, 1300][way];
        }
        assert!(count[1] < 200, "{count:?}");
    }

    /// An application that comes to compute for a little longer takes longer whatever the way: what is known of the slower one from before
    /// makes it no faster.
    #[test]
    fn what_takes_longer_by_any_way_changes_nothing() {
        let (mut comparison, mut now_ns) = (Comparison::new(0, 2, 4, 0), 0);
        play(&mut comparison, &mut now_ns, 200, [1000, 1080]);
        for more in [60, 120, 180, 240] {
            let count = play(&mut comparison, &mut now_ns, 200, [1000 + more, 1080 + more]);
            assert!(count[1] < 20, "{count:?}, {more} more");
        }
    }

    /// A way that was found to be better by one group, and then all takes several times as long.
    #[test]
    fn a_new_phase_behind_a_first_try_is_learnt() {
        let (mut comparison, mut now_ns) = (Comparison::new(0, 2, 4, 0), 0);
        while comparison.best() == 0 {
            play(&mut comparison, &mut now_ns, 1, [1000, 900]);
        }
        play(&mut comparison, &mut now_ns, 400, [5000, 6000]);
        assert!(play(&mut comparison, &mut now_ns, 400, [5000, 6000])[0] > 350);
    }

    /// A way whose first groups take longer than those of the best one, and the later ones less: what is tried gets used to.
    #[test]
    fn a_way_that_comes_to_take_less_is_found() {
        let (mut comparison, mut now_ns) = (Comparison::<2>::new(0, 2, 4, 0).of_many(), 0);
        let (mut since, mut count) = (0, [0; 2]);
        for _ in 0..400 {
            let way = comparison.next(ROUND, || now_ns);
            since = if way == 1 { since + 1 } else { 0 };
            count[way] += 1;
            now_ns += [1900, [2300, 2120, 1800][(since / 8usize).min(2)]][way];
        }
        assert!(count[1] > 300, "{count:?}");
    }

    /// Nothing changes: most uses ask for no time, a change is found all the same, and so it is by who only ever streams behind that.
    #[test]
    fn what_is_steady_is_looked_at_now_and_then() {
        let (mut comparison, now_ns, asked) =
            (Comparison::<2>::new(0, 2, 4, 0).of_many(), Cell::new(0), Cell::new(0));
        let mut play = |uses, takes: [u64; 2], is_round| {
            let mut count = 0;
            asked.set(0);
            for _ in 0..uses {
                let clock = || {
                    asked.set(asked.get() + 1);
                    now_ns.get()
                };
                let way = comparison.next(At { is_round, ..ROUND }, clock);
                count += u32::from(way == 1);
                now_ns.set(now_ns.get() + takes[way]);
            }
            (asked.get(), count)
        };
        play(1000, [1000, 1500], true);
        let (asked, _) = play(1000, [1000, 1500], true);
        assert!(asked < 120, "{asked}");
        play(200, [4000, 3000], true);
        assert!(play(200, [4000, 3000], true).1 > 150);
        play(GROUP_MAX, [4000, 3000], false);
        assert!(play(10 * GROUP_MAX, [4000, 3000], false).0 >= 10);
    }

    /// What differs by less than groups of one way do decides nothing.
    #[test]
    fn noise_changes_nothing() {
        let mut comparison: Comparison<2> = Comparison::new(0, 2, 4, 0);
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

    /// An application pauses every so many rounds, for much longer than they take: of groups with a pause in them none says anything, and
    /// the way that is faster by a tenth is found, wherever the pauses fall.
    #[test]
    fn pauses_hide_nothing() {
        for (every, best) in [(10, 0), (10, 1), (10, 2), (13, 2), (17, 1)] {
            let takes: [u64; 3] =
                std::array::from_fn(|way| if way == best { 1345 } else { 1480 + 10 * way as u64 });
            let mut found = 0;
            for begins in 0..every {
                let (mut comparison, mut now_ns) = (Comparison::<3>::new(1, 3, 2, 0).in_groups(GROUP / 2), 0);
                let mut count = 0;
                for round in begins..begins + 400 {
                    now_ns += if round % every == 0 { 10_000 } else { 0 };
                    let way = comparison.next(ROUND, || now_ns);
                    count += usize::from(way == best && round >= begins + 200);
                    now_ns += takes[way] + round * 7919 % 40;
                }
                found += usize::from(count > 150);
            }
            assert!(10 * found >= 8 * every as usize, "{found} of {every}, best {best}");
        }
    }

    /// Pauses that take less than a group does, so that some groups have one in them and others have none, are no time of the ways either: the best
    /// one goes on, and nothing begins anew.
    #[test]
    fn short_pauses_change_nothing() {
        for (every, pause_ns, group) in
            [(12, 300, GROUP), (12, 300, GROUP / 2), (10, 400, GROUP), (11, 200, GROUP)]
        {
            let (mut comparison, mut now_ns) = (Comparison::<3>::new(2, 3, 4, 0).in_groups(group), 0);
            let mut count = [0; 3];
            for round in 0..6000u64 {
                now_ns += if round % every == 0 { pause_ns } else { 0 };
                let way = comparison.next(ROUND, || now_ns);
                count[way] += 1;
                now_ns += [67, 68, 52][way] + round * 7919 % 4;
            }
            assert!(count[2] > 5600, "{count:?}, a pause of {pause_ns} every {every}, groups of {group}");
        }
    }

    /// Uses come so many at a time, with something else between, as in the sweeps of a solver: groups with that in them and groups without it.
    #[test]
    fn bursts_hide_nothing() {
        for (burst, break_ns, settle) in
            [(16, 10_000, 0), (16, 4000, 0), (8, 10_000, 0), (20, 5000, 0), (12, 8000, 4), (16, 10_000, 4)]
        {
            let (mut comparison, mut now_ns) = (Comparison::<2>::new(1, 2, settle, 0), 0);
            let mut count = [0; 2];
            for use_ in 0..4000u64 {
                now_ns += if use_ % burst == 0 { break_ns } else { 0 };
                let way = comparison.next(ROUND, || now_ns);
                count[way] += 1;
                now_ns += [330, 760][way] + use_ * 7919 % 40;
            }
            assert!(count[0] > 3600, "{count:?}, {burst} at a time, {break_ns} between, {settle}");
        }
    }

    /// A pause that falls into the first groups, which are cold besides, makes no way seem slow.
    #[test]
    fn a_disturbed_beginning_says_little() {
        for pause in 0..8 {
            let (mut comparison, mut now_ns) = (Comparison::new(0, 2, 4, 0), 0);
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
        let (mut comparison, mut now_ns): (Comparison<2>, u64) = (Comparison::new(0, 2, 0, 0), 0);
        let mut count = [0; 2];
        for _ in 0..1000 {
            for at in 0..64 {
                let way = comparison.next(At { is_round: at == 0, ..ROUND }, || now_ns);
                count[way] += 1;
                now_ns += [500, 50][way];
                // Begun at once, and all of it is done in the wait.
                now_ns += if at == 63 { [0, 64 * 900][way] } else { 0 };
            }
        }
        assert!(count[0] > 50 * count[1], "{count:?}");
    }
}
