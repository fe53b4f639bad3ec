//! In which manner the messages of one habit go in shared memory: of one length, in one context, to whichever peer.
//!
//! The manners differ in who copies, and so in whose cache the data are afterwards, who waits for whom, and whose
//! time it takes. A message begins with the one in which nobody waits; then the application shows by the
//! time from one message to the next what it gets on fastest with ([`super::comparison`]).

use crate::choice::comparison::{At, Comparison, GROUP};
use fabric::Rank;
use fabric::spread::SpreadMap;
use wire::head::Offer;

/// Who copies a message in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Manner {
    /// The receiver alone, straight from the sender's buffer.
    Pulled = 0,
    /// Whoever is there, straight from buffer to buffer; early receivers offer theirs.
    Shared = 1,
    /// Each side once: the sender into a block, the receiver out of it. What is longer than a block takes one after the
    /// other once its receiver asks for it.
    Blocks = 2,
}

impl Manner {
    const ALL: [(Manner, &'static str); 3] =
        [(Manner::Pulled, "pulled"), (Manner::Shared, "shared"), (Manner::Blocks, "blocks")];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Manner> {
        Manner::ALL.into_iter().find(|(_, its)| *its == name).map(|(manner, _)| manner)
    }

    /// How the RTS of a message says it.
    pub(crate) fn flag(self) -> u32 {
        match self {
            Manner::Pulled => Offer::ALONE,
            Manner::Shared => 0,
            Manner::Blocks => Offer::FRAMES,
        }
    }

    /// What an RTS with these flags says.
    pub(crate) fn of_flags(flags: u32) -> Manner {
        let says = |manner: &Manner| manner.flag() & flags != 0;
        [Manner::Pulled, Manner::Blocks].into_iter().find(says).unwrap_or(Manner::Shared)
    }
}

/// Messages that go alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Habit {
    context: u64,
    /// Lengths of so many bits.
    bits: u32,
}

impl Habit {
    #[inline]
    fn of(context: u64, len: usize) -> Habit {
        Habit { context, bits: usize::BITS - len.leading_zeros() }
    }
}

/// A message that is about to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaving {
    pub to: Rank,
    pub context: u64,
    pub len: usize,
    /// Messages that have come from all peers.
    pub heard: u32,
    /// Whether nothing that this rank sent before is still being copied.
    pub is_quiet: bool,
    /// Whether it fits into a block.
    pub fits: bool,
    /// What copying it takes, in ns.
    pub copy_ns: f64,
    /// How often memory for blocks was got until now.
    pub growth: u32,
}

/// How one habit gets on.
#[derive(Clone, Debug)]
struct Course {
    habit: Habit,
    comparison: Comparison<3>,
    /// The peer whose messages may begin a round, messages that had come from all when the last one to it left, and how many have left for others since.
    first: Rank,
    heard: u32,
    aside: u32,
    /// Messages so far.
    uses: u32,
    /// How often memory for blocks had been got when the last one left.
    growth: u32,
    /// Who says how its messages go, if that is not this rank.
    guide: Option<Guide>,
}

/// The lowest of the ranks below this one that messages of a habit have come from, in which manner the last one came that tells it, and how many had left
/// then.
#[derive(Clone, Copy, Debug)]
struct Guide {
    rank: Rank,
    manner: Manner,
    at: u32,
}

impl Course {
    /// Where anything has come since the last one, and all has left, a message may begin a round. Of several peers that one's messages do which was sent
    /// to first: a round goes from one of them to the next.
    #[inline]
    fn may_begin_round(&self, to: Rank, heard: u32, is_quiet: bool) -> bool {
        is_quiet && self.first == to && self.heard != heard
    }

    /// Whether a message goes for sure as those before it; only then it is counted.
    #[inline]
    fn goes_on(&mut self, to: Rank, heard: u32, is_round: bool) -> bool {
        let goes_on = self.comparison.goes_on(is_round);
        if goes_on {
            self.leaves(to, heard);
        }
        goes_on
    }

    /// A message leaves.
    #[inline]
    fn leaves(&mut self, to: Rank, heard: u32) {
        self.uses = self.uses.wrapping_add(1);
        if self.first == to || self.aside >= APART {
            (self.first, self.heard, self.aside) = (to, heard, 0);
        } else {
            self.aside += 1;
        }
    }

    /// How messages go that another rank decides about: of ranks that exchange messages each sees little of what its own make of it, and all see what they make
    /// of it together. So the lowest of them tries, and the others go as it does.
    #[inline]
    fn followed(&self) -> Option<Manner> {
        let guide = self.guide?;
        let most = if guide.manner == Manner::Blocks { SILENT } else { APART };
        (self.uses.wrapping_sub(guide.at) < most).then_some(guide.manner)
    }

    /// A message has come in this manner from a rank below this one.
    fn heed(&mut self, rank: Rank, manner: Manner) {
        if self.followed().is_none() || self.guide.is_some_and(|guide| rank <= guide.rank) {
            self.guide = Some(Guide { rank, manner, at: self.uses });
        }
    }
}

/// Beside a computation that takes so many times as long as copying the message there is less to gain than that
/// varies by, and much to lose: who does not copy when it sends waits, or has a thread copy. What does not fit into a block
/// waits in any manner, and where its data lie afterwards may cost several times its copy.
const BUSY: f64 = 20.0;
/// Habits that are kept; when there are more, all begin anew.
const HABITS_MAX: usize = 4096;
/// After so many messages of others a habit is not said to be trying any more, for its messages may have ended; or after the time that so many
/// of its own take: windows are few.
const PATIENCE: u32 = 1024;
const PATIENCE_USES: f64 = 512.0;
/// So many messages behind the last RTS of a rank that is followed it is taken to send no more; and a peer that none of so many went to begins no more rounds.
const APART: u32 = 128;
/// The same of one who is followed through blocks, and is heard of only as it begins to go otherwise: it may try that as rarely.
const SILENT: u32 = 16_384;
/// Groups by which it is known how much these differ: what comes between messages is all the application does.
const SETTLE: u16 = 4;
/// The same of messages that fit no block: groups of half as many uses take longer than what disturbs others, and each that goes in a slower manner costs more.
const LONG: (u16, u16) = (SETTLE / 2, GROUP / 2);

/// A habit that tries another way than its best one.
#[derive(Clone, Copy, Debug)]
struct Trying {
    habit: Habit,
    /// When its last message left, how many of others have been looked at since, and how long its own take by the best way, in ns.
    last_ns: u64,
    others: u32,
    use_ns: f64,
}

impl Trying {
    /// A message of another habit leaves: whether this one seems to have ended.
    fn has_ended(&mut self, now_ns: u64) -> bool {
        self.others += 1;
        self.others > PATIENCE || now_ns.saturating_sub(self.last_ns) as f64 > PATIENCE_USES * self.use_ns
    }
}

/// What is known of the habits of a rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Habits {
    courses: Vec<Course>,
    /// Which of them each habit has, and which was asked for last.
    index: SpreadMap<Habit, usize>,
    latest: usize,
    /// The manner of all messages that it is possible for, whatever their habits.
    fixed: Option<Manner>,
    /// The one that tries another way.
    trying: Option<Trying>,
    /// How the message at hand goes, which has been counted, and its habit.
    decided: Option<(Habit, Manner)>,
}

impl Habits {
    /// Whether a setting says how messages go.
    pub fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// All messages are to go in this manner, if one is given.
    pub fn fix(&mut self, manner: Option<Manner>) {
        self.fixed = manner;
    }

    /// Where the course of a habit stands.
    #[inline]
    fn find(&mut self, habit: &Habit) -> Option<usize> {
        if self.courses.get(self.latest).is_none_or(|course| course.habit != *habit) {
            self.latest = *self.index.get(habit)?;
        }
        Some(self.latest)
    }

    /// Whether a message that fits into a block goes by one for sure, as those before it; only then it is counted. If not, [`Habits::goes_by_block`] is to be asked.
    #[inline]
    pub fn goes_on_by_block(
        &mut self,
        (to, context, len): (Rank, u64, usize),
        heard: u32,
        is_quiet: bool,
    ) -> bool {
        if self.fixed.is_some() {
            return self.fixed == Some(Manner::Blocks);
        }
        let Some(at) = self.find(&Habit::of(context, len)) else { return false };
        let course = &mut self.courses[at];
        if let Some(manner) = course.followed() {
            if manner == Manner::Blocks {
                course.leaves(to, heard);
            }
            return manner == Manner::Blocks;
        }
        let is_round = course.may_begin_round(to, heard, is_quiet);
        course.comparison.way() == Manner::Blocks as usize && course.goes_on(to, heard, is_round)
    }

    /// Whether a message that fits into a block goes by one; if not, how it goes is for [`Habits::next`] to say.
    #[cold]
    pub fn goes_by_block(&mut self, message: Leaving, now_ns: impl Fn() -> u64) -> bool {
        let habit = Habit::of(message.context, message.len);
        let manner = self.next(message, now_ns);
        if manner != Manner::Blocks {
            self.decided = Some((habit, manner));
        }
        manner == Manner::Blocks
    }

    /// How a message goes.
    pub fn next(&mut self, message: Leaving, now_ns: impl Fn() -> u64) -> Manner {
        if let Some(manner) = self.fixed {
            return manner;
        }
        let habit = Habit::of(message.context, message.len);
        if let Some((decided, manner)) = self.decided.take()
            && decided == habit
        {
            return manner;
        }
        if let Some(at) = self.find(&habit) {
            let course = &mut self.courses[at];
            let Leaving { to, heard, is_quiet, .. } = message;
            if let Some(manner) = course.followed() {
                course.leaves(to, heard);
                return manner;
            }
            let is_round = course.may_begin_round(to, heard, is_quiet);
            if course.goes_on(to, heard, is_round) {
                return Manner::ALL[course.comparison.way()].0;
            }
            course.leaves(to, heard);
            let has_grown = std::mem::replace(&mut course.growth, message.growth) != message.growth;
            let is_cold = has_grown && course.comparison.way() == Manner::Blocks as usize;
            // Of two that try at the same time neither would know whose doing it is.
            let may_try = match &mut self.trying {
                Some(other) if other.habit != habit => other.has_ended(now_ns()),
                _ => true,
            };
            let use_ns = course.comparison.use_ns();
            let is_busy = message.fits && use_ns > BUSY * message.copy_ns;
            let may_try = may_try && !is_busy;
            let way = course.comparison.next(At { is_round, is_cold, may_try }, &now_ns);
            let (mut manner, _) = Manner::ALL[way];
            if is_busy && manner != Manner::Blocks {
                course.comparison.keep_to(Manner::Blocks as usize);
                manner = Manner::Blocks;
            }
            if course.comparison.is_trying() {
                if may_try {
                    self.trying = Some(Trying { habit, last_ns: now_ns(), others: 0, use_ns });
                }
            } else if self.trying.is_some_and(|trying| trying.habit == habit) {
                self.trying = None;
            }
            return manner;
        }
        self.begin(habit, message, now_ns())
    }

    /// The first message of a habit, in the manner in which nobody waits for longer than there is need. What fits no block goes as messages of
    /// the nearest length are known to go best.
    fn begin(&mut self, habit: Habit, message: Leaving, now_ns: u64) -> Manner {
        if self.courses.len() >= HABITS_MAX {
            self.courses.clear();
            self.index.clear();
        }
        let (settle, group) = if message.fits { (SETTLE, GROUP) } else { LONG };
        let like = self.like(&habit);
        let known = like.map_or(Manner::Shared, |like| Manner::ALL[like.best()].0);
        let first = if message.fits { Manner::Blocks } else { known };
        let mut comparison =
            Comparison::new(first as usize, Manner::ALL.len(), settle, now_ns).in_groups(group);
        // What fits no block takes long: four groups of it are all that some applications send of it.
        if message.fits {
            comparison = comparison.of_many();
        }
        // How much slower another manner was says nothing of longer messages where what it costs does not grow with them.
        if let Some(like) = like.filter(|_| !message.fits) {
            comparison.take_ratios_of(like);
        }
        let begins = At { is_round: false, is_cold: false, may_try: false };
        let (manner, _) = Manner::ALL[comparison.next(begins, || 0)];
        let Leaving { to, heard, growth, .. } = message;
        self.index.insert(habit, self.courses.len());
        self.courses.push(Course {
            habit,
            comparison,
            first: to,
            heard,
            aside: 0,
            uses: 1,
            growth,
            guide: None,
        });
        manner
    }

    /// What is known of messages of the nearest length.
    fn like(&self, new: &Habit) -> Option<&Comparison<3>> {
        let is_known = |course: &&Course| {
            course.habit.context == new.context && course.comparison.known_ns().count() > 1
        };
        let known = self.courses.iter().filter(is_known);
        let nearest = known.min_by_key(|course| course.habit.bits.abs_diff(new.bits));
        nearest.map(|course| &course.comparison)
    }

    /// A message has come to `me` in this manner: by an RTS, or through a block behind one that had come by an RTS.
    /// Where all send at once it may take all to gain by another manner: so the lowest of them decides, and who hears of it goes as it does.
    pub fn came(&mut self, from: Rank, me: Rank, context: u64, len: usize, manner: Manner) {
        let habit = Habit::of(context, len);
        let Some(at) = self.find(&habit) else { return };
        if from < me {
            self.courses[at].heed(from, manner);
            self.trying = self.trying.filter(|trying| trying.habit != habit);
        } else {
            self.courses[at].comparison.others_follow(manner as usize);
        }
    }

    /// A line for each habit that more than one way is known of, for people: what a message takes by each.
    pub fn lines(&self) -> Vec<String> {
        let mut courses: Vec<&Course> = self.courses.iter().collect();
        courses.sort_by_key(|course| course.habit);
        let line = |course: &Course| {
            let known = course.comparison.known_ns();
            let known: Vec<String> =
                known.map(|(way, ns)| format!("{} {:.2} us", Manner::ALL[way].1, ns / 1000.0)).collect();
            let followed = course.followed().zip(course.guide);
            let best =
                Manner::ALL[followed.map_or(course.comparison.best(), |(manner, _)| manner as usize)].1;
            let why = followed.map_or(String::new(), |(_, guide)| format!(" as rank {} does", guide.rank));
            let Habit { context, bits } = course.habit;
            let (from, below) = (1u64 << (bits - 1), 1u64 << bits);
            (known.len() > 1 || followed.is_some()).then(|| {
                format!(
                    "{from} to {below} bytes (context {:#x}): {best}{why}; from one message to the next {}",
                    context >> 2,
                    known.join(", ")
                )
            })
        };
        courses.into_iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaving(len: usize, heard: u32) -> Leaving {
        Leaving {
            to: 1,
            context: 8,
            len,
            heard,
            is_quiet: true,
            fits: len <= 1 << 18,
            copy_ns: 5000.0,
            growth: 0,
        }
    }

    /// As a sender asks.
    fn by_block(habits: &mut Habits, message: Leaving, now_ns: u64) -> bool {
        let Leaving { to, context, len, heard, is_quiet, .. } = message;
        habits.goes_on_by_block((to, context, len), heard, is_quiet)
            || habits.goes_by_block(message, || now_ns)
    }

    /// The same, and how it goes if not by one.
    fn goes(habits: &mut Habits, message: Leaving, now_ns: u64) -> Manner {
        match by_block(habits, message, now_ns) {
            true => Manner::Blocks,
            false => habits.next(message, || now_ns),
        }
    }

    #[test]
    fn each_habit_finds_its_own_way() {
        let mut habits = Habits::default();
        let (mut now_ns, mut counts) = (0u64, [[0; 3]; 2]);
        for round in 0..4000 {
            for (at, (len, takes)) in
                [(16384, [9000u64, 9000, 3000]), (65536, [11_000, 20_000, 14_000])].into_iter().enumerate()
            {
                let manner = habits.next(leaving(len, round), || now_ns);
                counts[at][manner as usize] += 1;
                now_ns += takes[manner as usize];
            }
        }
        assert!(counts[0][Manner::Blocks as usize] > 3500, "{counts:?}");
        assert!(counts[1][Manner::Pulled as usize] > 3500, "{counts:?}");
        let lines = habits.lines();
        assert!(lines.len() == 2 && lines[1].starts_with("65536 to 131072 bytes (context 0x2): pulled"));
    }

    /// A habit whose messages have ended while it tried another manner keeps those of others from trying for as long as some of its own take, though
    /// these others are few: windows of which few messages ask.
    #[test]
    fn a_habit_that_has_ended_lets_others_try() {
        let (mut habits, mut now_ns, mut round) = (Habits::default(), 0u64, 0);
        while habits.trying.is_none() {
            habits.next(leaving(16384, round), || now_ns);
            (now_ns, round) = (now_ns + 2000, round + 1);
        }
        let mut windows = 0;
        while habits.trying.is_some_and(|trying| trying.habit == Habit::of(8, 16384)) {
            for at in 0..64 {
                let message = leaving(65536, round + windows);
                goes(&mut habits, Leaving { is_quiet: at == 0, ..message }, now_ns);
                now_ns += 10_000;
            }
            windows += 1;
        }
        assert!((3..9).contains(&windows), "{windows}");
    }

    /// Short messages are far slower pulled, and that says nothing of longer ones unless they fit no block.
    #[test]
    fn what_is_slow_with_short_messages_is_tried_with_longer_ones() {
        let (mut habits, mut now_ns, mut pulled) = (Habits::default(), 0u64, [0; 2]);
        for (at, (len, takes)) in
            [(4096, [4000u64, 5000, 1000]), (65536, [6000, 8000, 9000])].into_iter().enumerate()
        {
            for round in 0..200 {
                let manner = habits.next(leaving(len, round), || now_ns);
                pulled[at] += u32::from(manner == Manner::Pulled);
                now_ns += takes[manner as usize];
            }
        }
        assert!(pulled[0] < 20 && pulled[1] > 120, "{pulled:?}");
    }

    /// A round goes from one message to the first peer to the next: what comes between them belongs to it, whichever peer it is from.
    #[test]
    fn a_round_of_several_peers_begins_with_the_first_of_them() {
        let (mut habits, mut now_ns) = (Habits::default(), 0u64);
        for round in 0..100 {
            for to in 1..4 {
                // The longest part of a round lies between two of its messages, and something comes meanwhile.
                habits.next(Leaving { to, ..leaving(1 << 20, 4 * round + to as u32) }, || now_ns);
                now_ns += if to == 2 { 280_000 } else { 10_000 };
            }
        }
        let known: Vec<f64> = habits.courses[0].comparison.known_ns().map(|(_, ns)| ns).collect();
        assert!(known.len() == 3 && known.iter().all(|ns| (ns - 100_000.0).abs() < 3000.0), "{known:?}");
    }

    /// Who asks first whether a message goes by a block, and then how it goes, counts it once.
    #[test]
    fn a_message_is_counted_once_however_it_is_asked_for() {
        let (mut plain, mut asked, mut now_ns, mut counts) =
            (Habits::default(), Habits::default(), 0u64, [0; 3]);
        for round in 0..4000 {
            let message = leaving(if round % 3 == 0 { 65536 } else { 16384 }, round);
            let manner = plain.next(message, || now_ns);
            assert_eq!(manner, goes(&mut asked, message, now_ns), "{round}");
            counts[manner as usize] += 1;
            now_ns += [11_000, 20_000, 14_000][manner as usize];
        }
        assert!(counts.iter().all(|count| *count > 8), "{counts:?}");
    }

    /// Beside a long computation nothing is tried, whatever seems to be faster.
    #[test]
    fn beside_a_long_computation_the_first_manner_stays() {
        let mut habits = Habits::default();
        let (mut now_ns, mut counts) = (0u64, [[0; 3]; 2]);
        for round in 0..4000 {
            let manner = habits.next(leaving(16384, round), || now_ns);
            let is_busy = round >= 1000;
            counts[usize::from(is_busy)][manner as usize] += 1;
            let took = [9000, 5000, 8000][manner as usize];
            now_ns += if is_busy { 1_000_000 + 10 * took } else { took };
        }
        assert!(counts[0][Manner::Shared as usize] > 800, "{counts:?}");
        assert!(counts[1][Manner::Blocks as usize] > 2900, "{counts:?}");
    }

    /// Two ranks send to each other at once, and gain by pulling only if both do.
    #[test]
    fn who_sends_at_once_with_its_peer_goes_as_that_does() {
        let mut both = [Habits::default(), Habits::default()];
        let (mut now_ns, mut pulled) = (0u64, [0; 2]);
        // One has sent alone before, so that the two do not try at the same time.
        for round in 0..100 {
            both[1].next(leaving(1 << 16, round), || now_ns);
            now_ns += 9300;
        }
        for round in 100..6100 {
            let manners =
                [0, 1].map(|at| both[at].next(leaving(1 << 16, round), || now_ns + 100 * at as u64));
            for (at, manner) in manners.into_iter().enumerate() {
                pulled[at] += u32::from(manner == Manner::Pulled && round >= 2000);
                if manner != Manner::Blocks {
                    both[1 - at].came(at, 1 - at, 8, 1 << 16, manner);
                }
            }
            now_ns += match manners {
                [Manner::Pulled, Manner::Pulled] => 6400,
                [Manner::Blocks, Manner::Blocks] => 9300,
                [Manner::Shared, _] | [_, Manner::Shared] => 9600,
                _ => 9250,
            };
        }
        assert!(pulled.iter().all(|count| *count > 3600), "{pulled:?}");
    }

    /// Where both have come to pull and blocks would be faster, but only if both take them, the one that tries them is followed.
    #[test]
    fn both_come_back_to_blocks() {
        let mut both = [Habits::default(), Habits::default()];
        let (mut now_ns, mut blocks, mut before) = (0u64, [0; 2], [Manner::Blocks; 2]);
        // One has sent alone before, so that the two do not try at the same time.
        for round in 0..100 {
            both[1].next(leaving(1 << 16, round), || now_ns);
            now_ns += 9300;
        }
        for round in 100..8000 {
            let manners =
                [0, 1].map(|at| both[at].next(leaving(1 << 16, round), || now_ns + 100 * at as u64));
            for (at, manner) in manners.into_iter().enumerate() {
                blocks[at] += u32::from(manner == Manner::Blocks && round >= 5000);
                if manner != Manner::Blocks || before[at] != manner {
                    both[1 - at].came(at, 1 - at, 8, 1 << 16, manner);
                }
            }
            before = manners;
            now_ns += match manners {
                [Manner::Blocks, Manner::Blocks] if round < 1000 => 9300,
                [Manner::Blocks, Manner::Blocks] => 5900,
                [Manner::Shared, _] | [_, Manner::Shared] => 9600,
                [Manner::Pulled, Manner::Pulled] => 7700,
                _ => 8000,
            };
        }
        assert!(blocks.iter().all(|count| *count > 2700), "{blocks:?}");
    }

    /// Both send at once, and one tries one manner as the other one tries another: neither runs after the other for ever.
    #[test]
    fn two_that_try_different_manners_end_both() {
        for (first, second) in [(Manner::Pulled, Manner::Shared), (Manner::Shared, Manner::Pulled)] {
            let (mut both, mut now_ns) = ([Habits::default(), Habits::default()], 0u64);
            let mut went = [Manner::Blocks; 2];
            for (at, tries) in [first, second].into_iter().enumerate() {
                for round in 0..1000 {
                    went[at] = both[at].next(leaving(8192, round), || now_ns);
                    now_ns += if went[at] == Manner::Blocks { 1500 } else { 4900 };
                    if went[at] == tries {
                        break;
                    }
                }
            }
            assert_eq!(went, [first, second]);
            let mut slow = 0;
            for round in 1000..3000 {
                for (at, manner) in went.into_iter().enumerate() {
                    both[1 - at].came(at, 1 - at, 8, 8192, manner);
                }
                for (at, went) in went.iter_mut().enumerate() {
                    *went = both[at].next(leaving(8192, round), || now_ns);
                }
                let is_fast = went == [Manner::Blocks; 2];
                slow += u32::from(!is_fast);
                now_ns += if is_fast { 1500 } else { 4900 };
            }
            assert!(slow < 200, "{slow} of 2000");
        }
    }

    /// A window of 64 messages of one rank to the other: the manner of the last.
    fn window(habits: &mut Habits, round: u32, now_ns: u64) -> Manner {
        let messages = (0..64).map(|at| Leaving { is_quiet: at == 0, ..leaving(1 << 16, round) });
        let manners = messages.map(|message| goes(habits, message, now_ns));
        manners.last().expect("there are some")
    }

    /// Windows both ways, in which the other one follows a window later, and what is pulled for the first time is slow: the first window that both pull does not count.
    #[test]
    fn a_window_that_is_followed_for_the_first_time_does_not_count() {
        let mut both = [Habits::default(), Habits::default()];
        let (mut now_ns, mut pulled, mut before) = (0u64, 0, [Manner::Blocks; 2]);
        // One has sent alone before, so that the two do not try at the same time.
        for round in 0..20 {
            now_ns +=
                64 * if window(&mut both[1], round, now_ns) == Manner::Blocks { 10_000 } else { 14_000 };
        }
        for round in 20..80 {
            let manners = [0, 1].map(|at| window(&mut both[at], round, now_ns));
            for at in [0, 1] {
                if manners[at] != Manner::Blocks || before[at] != manners[at] {
                    both[1 - at].came(at, 1 - at, 8, 1 << 16, manners[at]);
                }
            }
            let is_pulled = manners == [Manner::Pulled; 2];
            pulled += u32::from(is_pulled);
            let each_ns = match manners {
                _ if is_pulled && before != manners => 11_000,
                [Manner::Pulled, Manner::Pulled] => 6000,
                [Manner::Blocks, Manner::Blocks] => 10_000,
                _ => 12_000,
            };
            (now_ns, before) = (now_ns + 64 * each_ns, manners);
        }
        assert!(pulled > 40, "{pulled} of 60 windows");
    }

    /// Four ranks of which each sends to all others, and gains by a manner only if all take it: none would see what its own messages make of it, for
    /// rounds differ by more. The lowest tries, the others go as it does, and come back as it comes back.
    #[test]
    fn many_ranks_go_as_the_lowest_of_them() {
        for faster in [Manner::Pulled, Manner::Blocks] {
            let mut ranks: [Habits; 4] = std::array::from_fn(|_| Habits::default());
            let (mut last, mut now_ns, mut so) = ([[Manner::Blocks; 4]; 4], 0u64, 0);
            for round in 0..4000u32 {
                let mut others = 0;
                for (from, to) in (0..16).map(|pair| (pair / 4, pair % 4)).filter(|(from, to)| from != to) {
                    let message = Leaving { to, ..leaving(1 << 16, round) };
                    let manner = goes(&mut ranks[from], message, now_ns);
                    let before = std::mem::replace(&mut last[from][to], manner);
                    if manner != Manner::Blocks || before != manner {
                        ranks[to].came(from, to, 8, 1 << 16, manner);
                    }
                    others += u64::from(manner != faster);
                    so += u32::from(manner == faster && round >= 1000);
                }
                now_ns += 20_000 + u64::from(round * 7919 % 31) * 100 + others * 500;
            }
            assert!(so > 34_000, "{faster:?}: {so} of 36000");
            for followers in &ranks[1..] {
                assert!(followers.lines()[0].contains("as rank 0 does"), "{:?}", followers.lines());
            }
        }
    }

    /// Who is followed and is not heard of any more leaves it to this rank again.
    #[test]
    fn who_falls_silent_is_followed_no_more() {
        let (mut habits, mut now_ns) = (Habits::default(), 0u64);
        let mut went = |habits: &mut Habits, rounds: std::ops::Range<u32>| {
            let mut count = [0; 3];
            for round in rounds {
                for to in [2, 3] {
                    let manner = habits.next(Leaving { to, ..leaving(1 << 20, round) }, || now_ns);
                    count[manner as usize] += 1;
                    now_ns += [90_000, 60_000, 100_000][manner as usize];
                }
            }
            count
        };
        went(&mut habits, 0..20);
        habits.came(0, 1, 8, 1 << 20, Manner::Blocks);
        assert_eq!(went(&mut habits, 20..50), [0, 0, 60]);
        habits.came(0, 1, 8, 1 << 20, Manner::Pulled);
        assert_eq!(went(&mut habits, 50..110), [120, 0, 0]);
        let later = went(&mut habits, 110..2000);
        assert!(later[Manner::Shared as usize] > 3500, "{later:?}");
        let mut follows = |rank, manner| {
            habits.came(rank, 5, 8, 1 << 20, manner);
            went(&mut habits, 2000..2010)[manner as usize] == 20
        };
        // The next above takes its place, one above that does not.
        assert!(follows(3, Manner::Blocks) && !follows(4, Manner::Pulled) && follows(2, Manner::Pulled));
    }

    /// What is longer than a block begins shared, and goes by blocks, one after the other, where the application gets on
    /// faster so.
    #[test]
    fn what_is_longer_than_a_block_finds_its_own_way() {
        for best in [Manner::Shared, Manner::Blocks] {
            let (mut habits, mut now_ns, mut count) = (Habits::default(), 0u64, 0);
            for round in 0..3000 {
                let manner = habits.next(leaving(1 << 19, round), || now_ns);
                assert!(round > 0 || manner == Manner::Shared);
                count += u32::from(manner == best);
                // Beside a long computation, too.
                now_ns += if manner == best { 1_040_000 } else { 1_160_000 };
            }
            assert!(count > 2700, "{best:?} {count}");
            // Longer messages begin as these go best; those of another context know nothing.
            assert_eq!(habits.next(leaving(1 << 22, 0), || now_ns), best);
            let other = Leaving { context: 12, ..leaving(1 << 22, 0) };
            assert_eq!(habits.next(other, || now_ns), Manner::Shared);
        }
    }
}
