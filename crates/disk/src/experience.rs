//! How the two ways of collective accesses have fared, each rank alone and in two phases ([`crate::phase`]): what a byte took, of
//! accesses of about as many bytes in about as many pieces. What the prediction leaves out (writers that wait for each other, ranks
//! that share a core, cold memory) is in it. It is no factor of the prediction, for what a call costs jumps where ranks share cores.
//!
//! What an access has taken no rank sees by itself: where ranks outnumber cores one has ended when others have not begun. So each
//! tells with its next access when it began and ended the last one, and it lasted from the first to begin to the last to end.

use std::collections::BTreeMap;
use std::sync::Mutex;

use fabric::arms::{Arms, Policy};
use fabric::estimate::{Averaging, Estimate};

/// Of two the one that took less: the first of a kind has paid for memory and schedules that the later ones find, and one that
/// was interrupted says nothing.
pub const SEEN: Averaging = Averaging { least_of: 2, above: 4.0, ..Averaging::mean(8) };
/// The other way is tried after so many accesses, later and later: what has changed (a cache that is full) is found so.
const POLICY: Policy = Policy { margin: 0.0, dwell: 0, tries: (3, 64) };
/// As how many times what the cheaper way is expected to take the other one may be expected to take to be tried: predictions of
/// what was never tried are wrong by that much, and once in 64 times it is three of 67.
const TRY_BELOW: u64 = 4;
/// Kinds of accesses of one file that are kept apart.
const KINDS: usize = 64;

/// When a rank began and ended an access, by the clock of its host; both 0 if it has nothing to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spell {
    /// When all had agreed and this rank went on.
    pub begun_ns: u64,
    /// When it was done.
    pub ended_ns: u64,
}

/// What an access has taken whose ranks tell this, each with the number of its host: clocks of hosts are not compared.
pub fn lasted_ns(told: impl Iterator<Item = (u64, Spell)>) -> Option<u64> {
    let mut hosts = BTreeMap::new();
    for (host, spell) in told.filter(|(_, spell)| spell.ended_ns > 0) {
        let all: &mut Spell = hosts.entry(host).or_insert(spell);
        all.begun_ns = all.begun_ns.min(spell.begun_ns);
        all.ended_ns = all.ended_ns.max(spell.ended_ns);
    }
    hosts.values().map(|spell| spell.ended_ns.saturating_sub(spell.begun_ns)).max()
}

/// How an access is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessWay {
    /// Each rank moves its own pieces.
    Alone,
    /// In two phases.
    Phases,
}

/// Accesses that are alike: bytes and pieces of the first rank, by powers of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Kind(u32, u32);

impl Kind {
    /// Of an access of which the first rank has so much.
    pub fn of(bytes: u64, calls: u64) -> Kind {
        let power = |number: u64| number.checked_ilog2().unwrap_or(0) / 2;
        Kind(power(bytes), power(calls))
    }
}

/// What was learnt, as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advice {
    /// What 1024 bytes take if each rank moves its own, in picoseconds; 0 if that is not known.
    pub alone_ps: u64,
    /// As `alone_ps`, in two phases.
    pub phases_ps: u64,
    /// The dearer way is taken this time if it is expected to take no more than so many times the other; mostly 0.
    pub tries: u64,
}

impl Advice {
    /// Nothing is known.
    pub const NONE: Advice = Advice { alone_ps: 0, phases_ps: 0, tries: 0 };
}

/// An access that is over, of which not all ranks have told yet.
#[derive(Clone, Copy, Debug)]
struct Last {
    kind: Kind,
    way: AccessWay,
    bytes: u64,
    spell: Spell,
}

#[derive(Debug)]
struct Fared {
    alone: Estimate,
    phases: Estimate,
    arms: Arms<()>,
}

impl Default for Fared {
    fn default() -> Fared {
        Fared { alone: Estimate::default(), phases: Estimate::default(), arms: Arms::new((), &POLICY) }
    }
}

impl Fared {
    fn advice(&mut self) -> Advice {
        self.arms.step();
        let known = [self.alone.value(), self.phases.value()];
        let tries = if self.arms.is_due(&POLICY) { TRY_BELOW } else { 0 };
        let [alone_ps, phases_ps] = known.map(|cost| cost.map_or(0, |cost| (cost as u64).max(1)));
        Advice { alone_ps, phases_ps, tries }
    }
}

#[derive(Debug, Default)]
struct Known {
    kinds: BTreeMap<Kind, Fared>,
    last: Option<Last>,
}

/// What one rank knows of a file's collective accesses in one direction. That of the first rank decides for all.
#[derive(Debug, Default)]
pub struct Experience(Mutex<Known>);

impl Experience {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().expect("nobody panics with it")
    }

    /// What is known before an access.
    pub fn advice(&self, kind: Kind) -> Advice {
        let kinds = &mut self.known().kinds;
        if kinds.len() >= KINDS && !kinds.contains_key(&kind) {
            kinds.clear();
        }
        kinds.entry(kind).or_default().advice()
    }

    /// This rank has ended its part of an access of so many bytes of all ranks.
    pub fn ended(&self, kind: Kind, way: AccessWay, bytes: u64, spell: Spell) {
        self.known().last = Some(Last { kind, way, bytes, spell });
    }

    /// What this rank tells of the last access.
    pub fn last(&self) -> Spell {
        self.known().last.map_or(Spell::default(), |last| last.spell)
    }

    /// What all have told of the last access.
    pub fn told(&self, told: impl Iterator<Item = (u64, Spell)>) {
        let mut known = self.known();
        let (Some(last), Some(took_ns)) = (known.last.take(), lasted_ns(told)) else { return };
        let cost = took_ns as f64 * 1000.0 * 1024.0 / last.bytes.max(1) as f64;
        let fared = known.kinds.entry(last.kind).or_default();
        let estimate = if last.way == AccessWay::Alone { &mut fared.alone } else { &mut fared.phases };
        estimate.observe(&SEEN, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phase::Costs;

    fn spell(begun_ns: u64, ended_ns: u64) -> Spell {
        Spell { begun_ns, ended_ns }
    }

    #[test]
    fn an_access_lasts_from_the_first_to_the_last_of_a_host() {
        // Two ranks that share a core: each took 2, both 4. Clocks of another host say nothing here.
        let told = [(0, spell(10, 12)), (0, spell(12, 14)), (7, spell(900, 903)), (7, Spell::default())];
        assert_eq!(lasted_ns(told.into_iter()), Some(4));
        assert_eq!(lasted_ns([(0, Spell::default())].into_iter()), None);
    }

    /// Accesses whose ways take so long, predicted to take the same; how often each was taken.
    fn play(predicted: Costs, took_ns: impl Fn(u64, AccessWay) -> u64, count: u64) -> [u64; 2] {
        let (experience, kind, mut taken) = (Experience::default(), Kind::of(1 << 20, 1 << 10), [0; 2]);
        for i in 0..count {
            let advice = experience.advice(kind);
            experience.told([(0, experience.last())].into_iter());
            let way = if predicted.takes_phases(advice) { AccessWay::Phases } else { AccessWay::Alone };
            experience.ended(kind, way, predicted.bytes, spell(1000, 1000 + took_ns(i, way)));
            taken[usize::from(way == AccessWay::Phases)] += 1;
        }
        taken
    }

    #[test]
    fn the_way_that_takes_less_is_taken_whatever_was_predicted() {
        let predicted = Costs { alone_ps: 1_000_000, phases_ps: 1_500_000, bytes: 1 << 20 };
        let phases_win = |_, way| if way == AccessWay::Phases { 4_000 } else { 5_000 };
        let [alone, phases] = play(predicted, phases_win, 200);
        assert!(phases > 180 && alone > 0, "{alone} {phases}");
        let alone_wins = |_, way| if way == AccessWay::Phases { 5_000 } else { 4_000 };
        let [alone, phases] = play(predicted, alone_wins, 200);
        assert!(alone > 180 && phases > 0, "{alone} {phases}");
    }

    #[test]
    fn predictions_that_jump_change_nothing_once_both_ways_are_known() {
        let advice = Advice { alone_ps: 3_000, phases_ps: 2_000, tries: 0 };
        for (alone_ps, phases_ps) in [(1, 1 << 40), (1 << 40, 1)] {
            assert!(Costs { alone_ps, phases_ps, bytes: 1 << 20 }.takes_phases(advice));
        }
    }

    #[test]
    fn the_first_of_each_way_may_be_slow_for_it_is_cold() {
        let predicted = Costs { alone_ps: 1_000_000, phases_ps: 1_500_000, bytes: 1 << 20 };
        for best in [AccessWay::Alone, AccessWay::Phases] {
            let seen = std::cell::Cell::new([0; 2]);
            let took = |_, way: AccessWay| {
                let mut counts = seen.get();
                counts[usize::from(way == AccessWay::Phases)] += 1;
                seen.set(counts);
                let is_first = counts[usize::from(way == AccessWay::Phases)] == 1;
                if is_first {
                    90_000
                } else if way == best {
                    4_000
                } else {
                    5_000
                }
            };
            let taken = play(predicted, took, 200)[usize::from(best == AccessWay::Phases)];
            assert!(taken > 150, "{best:?} {taken}");
        }
    }

    #[test]
    fn what_turns_round_is_found_and_what_is_far_dearer_is_not_tried() {
        let predicted = Costs { alone_ps: 1_000_000, phases_ps: 1_000_000, bytes: 1 << 20 };
        let turns = |i, way| if (way == AccessWay::Phases) == (i < 300) { 4_000 } else { 6_000 };
        let [alone, phases] = play(predicted, turns, 1000);
        assert!(alone > 500 && phases > 250, "{alone} {phases}");
        let far = Costs { alone_ps: 1_000_000, phases_ps: 100_000_000, bytes: 1 << 20 };
        assert_eq!(play(far, |_, _| 1_000, 200)[1], 0);
    }

    #[test]
    fn accesses_of_other_kinds_are_learnt_by_themselves() {
        let experience = Experience::default();
        let (small, large) = (Kind::of(4 << 10, 4), Kind::of(1 << 20, 1 << 10));
        experience.ended(small, AccessWay::Alone, 4 << 10, spell(5, 8));
        assert_eq!(experience.last(), spell(5, 8));
        experience.told([(0, spell(5, 8)), (0, spell(7, 10))].into_iter());
        experience.ended(small, AccessWay::Alone, 4 << 10, spell(15, 18));
        experience.told([(0, spell(15, 28))].into_iter());
        assert_eq!((experience.last(), experience.advice(large)), (Spell::default(), Advice::NONE));
        assert_eq!(experience.advice(small), Advice { alone_ps: 1250, ..Advice::NONE });
        (0..200).for_each(|i| _ = experience.advice(Kind::of(1 << (i % 60), 1 << (i % 7))));
        assert!(experience.known().kinds.len() <= KINDS);
    }
}
