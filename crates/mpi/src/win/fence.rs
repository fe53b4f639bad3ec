//! Which of two ways a fence goes in a window whose memory is not shared.
//!
//! ```text
//! told:   each ── all there ──▶ each,  each ── my memory is done ──▶ each
//! asked:  origin ── all there? ──▶ target ── yes ──▶ origin,  barrier
//! ```
//!
//! Told is two ways instead of two and those of a barrier, but a message for each pair of ranks. So it is a question of what messages
//! cost, which collectives have to answer too: from the same prices. These are assumed as long as nothing was measured, and nothing
//! measures what ranks that share cores do to each other; so the window's rank 0 times its fences, and which way is in force is what it tells
//! the others, from the making of the window on:
//!
//! ```text
//! fences   0 ........ 16 ...... 24 ........ 32 ...... 40 ................ 64
//! way      in force   the other in force    the other in force
//!                     rank 0 tells          rank 0 tells                  rank 0 tells
//! ```

use super::epoch::Members;
use crate::coll::cost;
use crate::coll::{Algorithm, Collective, Problem, State};
use fabric::arms::Policy;
use fabric::estimate::{Averaging, Estimate};
use proto::epoch::Mark;

/// Words of each rank to each other one in a fence that is told.
const WORDS: f64 = 2.0;

/// How ranks meet in a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FenceWay {
    /// Each rank tells each other one, twice.
    Told,
    /// Targets that were touched are asked, then all meet in a barrier.
    Asked,
}

impl FenceWay {
    /// The ways by their names in settings.
    pub const NAMES: [(FenceWay, &'static str); 2] = [(FenceWay::Told, "told"), (FenceWay::Asked, "asked")];

    /// The one of this name.
    pub fn named(name: &str) -> Option<FenceWay> {
        FenceWay::NAMES.iter().find(|(_, known)| *known == name).map(|(way, _)| *way)
    }

    /// What it is called between ranks.
    pub fn word(self) -> u64 {
        self as u64
    }

    /// The one that a rank has told.
    pub fn of_word(word: u64) -> FenceWay {
        if word == FenceWay::Told.word() { FenceWay::Told } else { FenceWay::Asked }
    }

    fn other(self) -> FenceWay {
        if self == FenceWay::Told { FenceWay::Asked } else { FenceWay::Told }
    }

    /// What is expected to take less time before anything was measured.
    pub fn expected(ranks: usize, state: &State) -> FenceWay {
        if is_told(ranks, state) { FenceWay::Told } else { FenceWay::Asked }
    }
}

/// Fences for which the other way is tried.
const TRIES: u64 = 8;
/// Fences before the first try. The number doubles with each, so what tries and telling cost sinks below any part of a long run.
const FIRST: u64 = 2 * TRIES;
/// Whoever comes late makes a fence longer, whichever way it goes: of a few the shortest counts.
const TIMES: Averaging = Averaging { least_of: TRIES as u32 / 2, ..Averaging::fading(4) };
/// Two ways that differ by less are not told apart by so few fences.
const POLICY: Policy = Policy { margin: 0.1, dwell: 0, tries: (FIRST as u32, u32::MAX) };

/// The fences of a window.
#[derive(Debug)]
pub struct Fences {
    /// All other ranks.
    others: Members,
    /// What this rank has said with the end of its last epoch, to any of them, and what each rank of the window has, by rank.
    own: Mark,
    said: Box<[Mark]>,
    in_force: FenceWay,
    is_fixed: bool,
    count: u64,
    took_ns: [Estimate; 2],
}

impl Fences {
    /// With these other ranks; `is_fixed` if nothing may change the way.
    pub fn new(others: Members, in_force: FenceWay, is_fixed: bool) -> Fences {
        let ranks = others.iter().max().map_or(0, |last| *last as usize + 1);
        let said = vec![Mark::default(); ranks].into();
        Fences {
            others,
            own: Mark::default(),
            said,
            in_force,
            is_fixed,
            count: 0,
            took_ns: Default::default(),
        }
    }

    /// This rank is to say this of the end of its epoch; what it says. Of several others each could be overtaken by a third one.
    pub fn begin(&mut self, mark: Mark) -> Mark {
        self.own = Mark { again: mark.again || self.others.len() > 1, ..mark };
        self.own
    }

    /// What another rank has said of the end of its epoch.
    pub fn hear(&mut self, rank: u32, mark: Mark) {
        if let Some(said) = self.said.get_mut(rank as usize) {
            *said = mark;
        }
    }

    /// Whether some rank has said that one word is not enough, the engine of this one aside.
    pub fn needs_second_word(&self) -> bool {
        self.own.again || self.others.iter().any(|rank| self.said[*rank as usize].again)
    }

    /// The first rank that asserts something else of the last fence than this one, and what.
    pub fn differs(&self, own: u32) -> Option<(u32, u32)> {
        let said = self.others.iter().map(|rank| (*rank, u32::from(self.said[*rank as usize].said)));
        said.into_iter().find(|(_, said)| *said != own)
    }

    /// Which way the next one goes.
    pub fn way(&self) -> FenceWay {
        let since_told = self.count - (1 << self.count.max(1).ilog2()).min(self.count);
        let is_try = !self.is_fixed && self.count >= FIRST && since_told < TRIES;
        if is_try { self.in_force.other() } else { self.in_force }
    }

    /// All other ranks.
    pub fn others(&self) -> &Members {
        &self.others
    }

    /// One is over, and took so long here. What rank 0 is to tell all others now, if it is.
    pub fn ended(&mut self, took_ns: u64) -> Option<FenceWay> {
        if self.is_fixed {
            return None;
        }
        self.took_ns[self.way() as usize].observe(&TIMES, took_ns as f64);
        self.count += 1;
        (self.count >= FIRST && self.count.is_power_of_two()).then(|| self.best())
    }

    /// What rank 0 has told.
    pub fn agree(&mut self, way: FenceWay) {
        self.in_force = way;
    }

    fn best(&self) -> FenceWay {
        let known = |way: FenceWay| self.took_ns[way as usize].value();
        let other = self.in_force.other();
        match (known(other), known(self.in_force)) {
            (Some(theirs), Some(ours)) if POLICY.is_better(theirs, ours, 0.0) => other,
            _ => self.in_force,
        }
    }
}

/// Whether a fence of so many ranks is expected to be over sooner if it is told.
fn is_told(ranks: usize, state: &State) -> bool {
    if ranks < 2 {
        return false;
    }
    let State { tariff, forced, spread, .. } = state;
    let all = Problem { size: ranks, bytes: 0, commutes: true, root: 0, spread };
    let by = |algorithm| cost::price(Collective::Barrier, algorithm, &all, tariff).total();
    let barrier =
        cost::choose(Collective::Barrier, &all, tariff, forced.get(Collective::Barrier)).price.total();
    // In a round of this one each rank has one message, as a target that is asked, or answers.
    let way = by(Algorithm::Dissemination) / f64::from(ranks.next_power_of_two().ilog2());
    let (told, asked) = (WORDS * by(Algorithm::Linear), 2.0 * way + barrier);
    // Prices between hosts are those of a rank that has a core. Where ranks share cores each waits for the messages of the others.
    let crowd = if matches!(spread, crate::coll::Spread::OneHost) { 1 } else { tariff.crowd(ranks, spread) };
    let shared_ns = (crowd - 1) as f64 * (tariff.network.overhead_ns + tariff.network.receive_ns);
    told + WORDS * (ranks - 1) as f64 * shared_ns < asked + 2.0 * shared_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::{Forced, Spread, Tariff};

    fn told(ranks: usize, spread: Spread) -> bool {
        is_told(ranks, &State::new(Tariff::default(), Forced::default(), spread))
    }

    /// A few ranks tell each other; of very many each would have more to tell than a tree has levels.
    #[test]
    fn few_are_told_and_many_are_asked() {
        for spread in [Spread::OneHost, Spread::Apart] {
            assert!(!told(1, spread.clone()) && told(2, spread.clone()), "{spread:?}");
            let last = (2..4096).take_while(|ranks| told(*ranks, spread.clone())).last().unwrap();
            assert!((last..4096).skip(64).all(|ranks| !told(ranks, spread.clone())), "{spread:?}: {last}");
        }
    }

    /// Between hosts ranks that have no core of their own are asked sooner.
    #[test]
    fn ranks_that_share_cores_are_asked() {
        let told = |cores: u32| {
            let mut tariff = Tariff::default();
            tariff.host.cores = cores;
            is_told(4, &State::new(tariff, Forced::default(), Spread::of(4, |rank| rank as u32 / 2)))
        };
        assert!(told(2) && !told(1));
    }

    /// It is cost that decides: where each message costs more of a core, fewer are worth it.
    #[test]
    fn dearer_messages_are_fewer() {
        let of = |overhead_ns: f64| {
            let mut tariff = Tariff::default();
            tariff.network.overhead_ns = overhead_ns;
            tariff.network.receive_ns = overhead_ns;
            let state = State::new(tariff, Forced::default(), Spread::Apart);
            (2..4096).take_while(|ranks| is_told(*ranks, &state)).last().unwrap()
        };
        let latency_ns = Tariff::default().network.latency_ns;
        assert!(
            of(latency_ns / 100.0) > of(latency_ns / 10.0),
            "{} {}",
            of(latency_ns / 100.0),
            of(latency_ns / 10.0)
        );
    }

    fn fences(in_force: FenceWay, is_fixed: bool) -> Fences {
        Fences::new([1, 2].into(), in_force, is_fixed)
    }

    /// Fences of all ranks, of which rank 0's take so long: how many went which way.
    fn run(fences: &mut [Fences], count: u32, took_ns: impl Fn(FenceWay, u32) -> u64) -> [u32; 2] {
        let mut went = [0; 2];
        for at in 0..count {
            let way = fences[0].way();
            went[way as usize] += 1;
            assert!(fences.iter().all(|other| other.way() == way), "they do not meet in fence {at}");
            // What others take, who came earlier or later, counts for nothing.
            let told: Vec<_> = (0..)
                .zip(&mut *fences)
                .map(|(rank, own)| own.ended(took_ns(way, at) * (1 + rank % 2)))
                .collect();
            assert!(told.iter().all(|word| word.is_some() == told[0].is_some()));
            if let Some(way) = told[0] {
                fences.iter_mut().for_each(|own| own.agree(FenceWay::of_word(way.word())));
            }
        }
        went
    }

    /// Wherever it begins, nearly all of many go the way that is faster, of which few are slowed down by who comes late; also if that changes.
    #[test]
    fn the_faster_way_is_found_and_found_again() {
        for begun in [FenceWay::Told, FenceWay::Asked] {
            for fast in [FenceWay::Told, FenceWay::Asked] {
                let mut all = [fences(begun, false), fences(begun, false), fences(begun, false)];
                let late = |at: u32| if at.is_multiple_of(3) { 100_000 } else { 0 };
                let took = |way: FenceWay, at| late(at) + if way == fast { 10_000 } else { 15_000 };
                let went = run(&mut all, 4096, took);
                assert!(went[fast.other() as usize] < 128, "{begun:?} {fast:?} {went:?}");
                let went = run(&mut all, 1 << 16, |way, at| took(way.other(), at));
                assert!(went[fast as usize] < 1 << 14, "{begun:?} {fast:?} {went:?}");
            }
        }
    }

    #[test]
    fn ways_that_are_alike_do_not_take_turns() {
        let mut all = [fences(FenceWay::Told, false), fences(FenceWay::Told, false)];
        let went = run(&mut all, 4096, |way, _| if way == FenceWay::Told { 10_000 } else { 9_500 });
        assert!(went[FenceWay::Asked as usize] < 128, "{went:?}");
    }

    /// Two ranks need a second word if one of them says so, more always; of what is asserted the first that differs is named.
    #[test]
    fn a_second_word_is_for_what_could_be_overtaken() {
        let mark = |said, again| Mark { said, again, turn: false };
        let mut two = Fences::new([1].into(), FenceWay::Told, false);
        for (own, theirs) in [(false, false), (false, true), (true, false), (true, true)] {
            assert_eq!(two.begin(mark(1, own)), mark(1, own));
            two.hear(1, mark(2, theirs));
            assert_eq!(two.needs_second_word(), own || theirs);
        }
        assert_eq!((two.differs(1), two.differs(2)), (Some((1, 2)), None));
        let mut more = fences(FenceWay::Told, false);
        assert_eq!(more.begin(mark(0, false)), mark(0, true));
        more.hear(2, mark(3, true));
        assert!(more.needs_second_word());
        assert_eq!((more.differs(0), more.differs(3)), (Some((2, 3)), Some((1, 0))));
    }

    #[test]
    fn a_way_that_is_fixed_stays() {
        for (way, name) in FenceWay::NAMES {
            assert_eq!(FenceWay::named(name), Some(way));
            let mut all = [fences(way, true), fences(way, true)];
            assert_eq!(run(&mut all, 1000, |other, _| if other == way { 10 } else { 1 })[way as usize], 1000);
        }
        assert_eq!(FenceWay::named("auto"), None);
    }
}
