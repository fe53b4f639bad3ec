//! One-sided communication (MPI 5.0 chapter 12) as the library has it, in virtual time, against a model: random epochs of all kinds from all
//! ranks at all others, by adapters under every schedule and in messages, with late messages and ranks that lose their processor.
//!
//! Each 8 bytes of a part of the window are written by at most one rank in an epoch, so that their value behind it is known, and what others
//! read in an epoch in which nobody writes it; sums are those of all ranks; what one rank adds and fetches is in its order; tickets that are drawn,
//! swapped or counted under an exclusive lock are each drawn once. Between epochs that their targets open and close nobody waits for anybody else.

use crate::support::plain;
use fabric::Span;
use mpi::error::{Class, Result};
use mpi::op::Predefined;
use mpi::win::epoch::LockType;
use mpi::win::fence::FenceWay;
use mpi::win::operation::Verb;
use proto::epoch::Schedule;
use sim::rank::INT64;
use sim::{Cluster, Faults, Job, Making, Outcome, Rank, Setup, Win};

const ROUNDS: u64 = 16;
/// Words of a window: drawn by fetching, drawn by swapping, counted under an exclusive lock; two for each rank; then sums.
const FETCHED: usize = 0;
const SWAPPED: usize = 1;
const COUNTED: usize = 2;
const OWN: usize = 3;
const RANKS_MAX: usize = 4;
const SUMS: usize = OWN + 2 * RANKS_MAX;
const SUM_WORDS: usize = 40;
/// Then pieces that one rank each writes, of so many words.
const PIECES: usize = SUMS + SUM_WORDS;
const LENS: [usize; 8] = [1, 1, 2, 3, 7, 30, 300, 1500];

/// A number that depends on all of these.
fn chance(what: &[u64]) -> u64 {
    what.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        let mixed = (hash ^ word.wrapping_mul(0xff51_afd7_ed55_8ccd)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ (mixed >> 29)
    })
}

/// How the epochs of a round are opened and closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Fence,
    Posts,
    Locks(LockType),
    LockAll,
}

/// What all ranks do in a round, from its seed.
#[derive(Clone, Copy)]
struct Round {
    seed: u64,
    number: u64,
    ranks: usize,
}

impl Round {
    fn kind(&self) -> Kind {
        match chance(&[self.seed, self.number]) % 6 {
            0 | 1 => Kind::Fence,
            2 => Kind::Posts,
            3 => Kind::Locks(LockType::Shared),
            4 => Kind::Locks(LockType::Exclusive),
            _ => Kind::LockAll,
        }
    }

    /// Whether the fence that ends it opens the next one.
    fn goes_on(&self) -> bool {
        let next = Round { number: self.number + 1, ..*self };
        next.number < ROUNDS && [self, &next].iter().all(|round| round.kind() == Kind::Fence)
    }

    /// Whether the fence that ended the one before has opened it.
    fn is_open(&self) -> bool {
        self.number > 0 && Round { number: self.number - 1, ..*self }.goes_on()
    }

    /// Who writes a piece of a target, if anybody does.
    fn writer(&self, target: usize, piece: usize) -> Option<usize> {
        let who = chance(&[self.seed, self.number, 1, target as u64, piece as u64]) % (self.ranks as u64 + 3);
        Some(who as usize).filter(|who| *who < self.ranks)
    }

    fn written(&self, target: usize, piece: usize) -> Vec<u64> {
        (0..LENS[piece] as u64)
            .map(|at| chance(&[self.seed, self.number, 2, target as u64, piece as u64, at]))
            .collect()
    }

    /// What a rank adds at a target, from which word on.
    fn added(&self, from: usize, target: usize) -> (usize, Vec<u64>) {
        let part = chance(&[self.seed, self.number, 3, from as u64, target as u64]);
        let (first, len) = (part % SUM_WORDS as u64, (part >> 8) % SUM_WORDS as u64);
        let len = len.min(SUM_WORDS as u64 - first) * ((part >> 20) & 1);
        let at = |at| chance(&[self.seed, self.number, 4, from as u64, target as u64, at]) >> 8;
        (first as usize, (0..len).map(at).collect())
    }

    /// Whether a rank draws from a target by fetching, by swapping, by counting.
    fn draws(&self, from: usize, target: usize) -> [bool; 3] {
        let part = chance(&[self.seed, self.number, 5, from as u64, target as u64]);
        let waits = self.is_passive();
        let is_alone = self.kind() == Kind::Locks(LockType::Exclusive);
        [part & 1 != 0, part & 2 != 0 && waits, part & 4 != 0 && is_alone]
    }

    /// What a rank adds to its own words of a target, together and then to the first, which it fetches.
    fn own(&self, from: usize, target: usize) -> [u64; 3] {
        [0, 1, 2].map(|at| chance(&[self.seed, self.number, 7, from as u64, target as u64, at]) >> 8)
    }

    /// Whether targets do nothing for it: then all have to be done with their memory before, and see it behind.
    fn is_passive(&self) -> bool {
        matches!(self.kind(), Kind::Locks(_) | Kind::LockAll)
    }

    /// What a target holds behind it.
    fn change(&self, target: usize, words: &mut [u64]) {
        for from in 0..self.ranks {
            let (first, added) = self.added(from, target);
            for (word, add) in words[SUMS + first..].iter_mut().zip(added) {
                *word = word.wrapping_add(add);
            }
            let [first_own, second, again] = self.own(from, target);
            let own = &mut words[OWN + 2 * from..][..2];
            own[0] = own[0].wrapping_add(first_own).wrapping_add(again);
            own[1] = own[1].wrapping_add(second);
            for (word, draws) in words.iter_mut().zip(self.draws(from, target)) {
                *word += u64::from(draws);
            }
        }
        for piece in (0..LENS.len()).filter(|piece| self.writer(target, *piece).is_some()) {
            words[start(piece)..][..LENS[piece]].copy_from_slice(&self.written(target, piece));
        }
    }
}

/// Where a piece begins.
fn start(piece: usize) -> usize {
    PIECES + LENS[..piece].iter().sum::<usize>()
}

/// A rank in its window, with memory of its own for buffers of a round.
struct Player<'a, 'y> {
    rank: &'a mut Rank<'y>,
    win: Win,
    memory: Span,
    scratch: Span,
    used: usize,
    /// What was read and what is to be there.
    read: Vec<(Span, Vec<u64>)>,
    /// What was drawn by fetching, at whom.
    drawn: Vec<(usize, Span)>,
}

impl Player<'_, '_> {
    fn room(&mut self, words: usize) -> Span {
        let span = self.scratch.part(self.used, 8 * words);
        self.used += span.len;
        span
    }

    fn with(&mut self, words: &[u64]) -> Span {
        let span = self.room(words.len());
        self.rank.write(span, &bytes(words));
        span
    }

    fn words(&self, span: Span) -> Vec<u64> {
        self.rank.read(span).as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    fn element(&mut self, verb: Verb, target: usize, word: usize, spans: [Span; 3]) -> Result<()> {
        self.win.operate(self.rank, verb, (target, 8 * word, INT64), spans)
    }

    /// What this rank does at a target, which holds these words.
    fn operate(&mut self, round: &Round, target: usize, holds: &[u64]) -> Result<()> {
        let me = self.rank.rank();
        for piece in 0..LENS.len() {
            let pause = chance(&[round.seed, round.number, 6, me as u64, target as u64, piece as u64]);
            self.rank.compute(pause % 2000);
            match round.writer(target, piece) {
                Some(writer) if writer == me => {
                    let data = self.with(&round.written(target, piece));
                    self.win.put(self.rank, target, 8 * start(piece), data)?;
                }
                None if pause & (1 << 20) != 0 => {
                    let into = self.room(LENS[piece]);
                    self.win.get(self.rank, target, 8 * start(piece), into)?;
                    self.read.push((into, holds[start(piece)..][..LENS[piece]].to_vec()));
                }
                _ => {}
            }
        }
        let (first, added) = round.added(me, target);
        let data = self.with(&added);
        self.element(
            Verb::Accumulate(Predefined::Sum),
            target,
            SUMS + first,
            [data, Span::EMPTY, Span::EMPTY],
        )?;
        self.add_in_order(target, round.own(me, target), holds[OWN + 2 * me])?;
        self.draw(target, round.draws(me, target))
    }

    fn add_in_order(&mut self, target: usize, [first, second, again]: [u64; 3], held: u64) -> Result<()> {
        let word = OWN + 2 * self.rank.rank();
        let [both, again, into] = [self.with(&[first, second]), self.with(&[again]), self.room(1)];
        self.element(Verb::Accumulate(Predefined::Sum), target, word, [both, Span::EMPTY, Span::EMPTY])?;
        self.element(Verb::Fetch(Predefined::Sum), target, word, [again, into, Span::EMPTY])?;
        self.read.push((into, vec![held.wrapping_add(first)]));
        Ok(())
    }

    fn draw(&mut self, target: usize, [fetches, swaps, counts]: [bool; 3]) -> Result<()> {
        let one = self.with(&[1]);
        if fetches {
            let into = self.room(1);
            self.element(Verb::Fetch(Predefined::Sum), target, FETCHED, [one, into, Span::EMPTY])?;
            self.drawn.push((target, into));
        }
        if counts {
            let word = self.room(1);
            self.win.get(self.rank, target, 8 * COUNTED, word)?;
            self.win.flush(self.rank, target)?;
            let next = self.words(word)[0] + 1;
            let next = self.with(&[next]);
            self.win.put(self.rank, target, 8 * COUNTED, next)?;
        }
        if swaps { self.swap(target) } else { Ok(()) }
    }

    fn swap(&mut self, target: usize) -> Result<()> {
        let [new, compare, into] = [self.room(1), self.room(1), self.room(1)];
        let mut expected = 0;
        loop {
            self.rank.write(compare, &bytes(&[expected]));
            self.rank.write(new, &bytes(&[expected + 1]));
            self.element(Verb::Swap, target, SWAPPED, [new, into, compare])?;
            self.win.flush(self.rank, target)?;
            let found = self.words(into)[0];
            if found == expected {
                return Ok(());
            }
            expected = found;
        }
    }

    /// The epochs of a round, at all targets that hold these words.
    fn play(&mut self, round: &Round, model: &[Vec<u64>]) -> Result<()> {
        (self.used, self.read) = (0, Vec::new());
        let me = self.rank.rank();
        let all: Vec<usize> = (0..round.ranks).map(|at| (me + at) % round.ranks).collect();
        let kind = round.kind();
        match kind {
            Kind::Fence if round.is_open() => {}
            Kind::Fence => self.win.fence(self.rank, 0)?,
            Kind::Posts => {
                self.win.post(self.rank, &all)?;
                self.win.start(self.rank, &all)?;
            }
            Kind::LockAll => self.win.lock_all(self.rank)?,
            Kind::Locks(_) => {}
        }
        for &target in &all {
            match kind {
                Kind::Locks(lock) => {
                    self.win.lock(self.rank, lock, target)?;
                    self.operate(round, target, &model[target])?;
                    self.win.unlock(self.rank, target)?;
                }
                _ => self.operate(round, target, &model[target])?,
            }
        }
        match kind {
            Kind::Fence => self.win.fence(self.rank, 0)?,
            Kind::Posts => {
                self.win.complete(self.rank)?;
                self.win.wait(self.rank)?;
            }
            Kind::LockAll => self.win.unlock_all(self.rank)?,
            Kind::Locks(_) => {}
        }
        for (span, expected) in std::mem::take(&mut self.read) {
            assert_eq!(self.words(span), expected, "read by rank {me} in round {} ({kind:?})", round.number);
        }
        Ok(())
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What a rank drew by fetching: at whom, and which number.
type Drawn = Vec<(usize, u64)>;

fn program(rank: &mut Rank<'_>, seed: u64, making: Making) -> Result<Drawn> {
    let (me, ranks) = (rank.rank(), rank.size());
    let len = start(LENS.len());
    let (memory, scratch) = (rank.buffer(8 * len), rank.buffer(ranks * 16 * len));
    let win = rank.win_create(memory, making)?;
    let mut model = vec![vec![0; len]; ranks];
    let (read, mut drawn) = (Vec::new(), Vec::new());
    let mut player = Player { rank, win, memory, scratch, used: 0, read, drawn: Vec::new() };
    for number in 0..ROUNDS {
        let round = Round { seed, number, ranks };
        if round.is_passive() {
            player.rank.barrier()?;
        }
        player.play(&round, &model)?;
        for (target, span) in std::mem::take(&mut player.drawn) {
            drawn.push((target, player.words(span)[0]));
        }
        (0..ranks).for_each(|target| round.change(target, &mut model[target]));
        if round.goes_on() {
            continue; // others have begun to change what this rank would look at
        }
        if round.is_passive() {
            player.rank.barrier()?;
        }
        // Whoever came too early would come now.
        for part in 0..30 * (chance(&[seed, number, 8, me as u64]) >> 40 & 1) {
            player.rank.compute(chance(&[seed, number, 9, me as u64, part]) % 30_000);
            player.rank.progress()?;
        }
        let found = player.words(player.memory);
        assert!(found == model[me], "rank {me} behind round {number} ({:?})", round.kind());
    }
    let Player { rank, win, .. } = player;
    win.free(rank)?;
    Ok(drawn)
}

/// A job of a cluster whose adapters know a window more than enough.
fn job(ranks: usize, cores: usize, seed: u64, faults: Faults) -> Job {
    let mut cluster = Cluster { cores, ..plain() };
    (cluster.registration.regions, cluster.registration.lockable_bytes) = (64, 64 << 20);
    Job::new(&cluster, ranks).seed(seed).faults(faults)
}

/// A job from this seed, which chooses its ranks too: of how many, what it drew is checked.
fn play(seed: u64, making: Making, faults: Faults) {
    let ranks = 2 + (seed % 3) as usize;
    let job = job(ranks, 1 + (seed / 3 % 2) as usize, seed, faults);
    let report = job.program(&Setup::default(), move |rank| program(rank, seed, making)).unwrap();
    let mut numbers = vec![Vec::new(); ranks];
    for outcome in report.results {
        let Outcome::Ended(drawn) = outcome else { panic!("seed {seed}, {making:?}: {outcome:?}") };
        let drawn = drawn.unwrap_or_else(|error| panic!("seed {seed}, {making:?}: {error:?}"));
        drawn.into_iter().for_each(|(target, number)| numbers[target].push(number));
    }
    for mut numbers in numbers {
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "seed {seed}, {making:?}: {numbers:?}");
    }
}

/// Jobs of each way that operations go, more of the one that no schedule changes.
fn play_all(faults: &Faults) {
    let schedules = Schedule::ALL.into_iter().map(|(schedule, _)| (Some(schedule), 12)).chain([(None, 60)]);
    let ways = schedules
        .flat_map(|(schedule, jobs)| FenceWay::NAMES.map(|(fence, _)| (Making { schedule, fence }, jobs)));
    for (at, (making, jobs)) in ways.enumerate() {
        (0..jobs).for_each(|seed| play(100 * at as u64 + seed, making, faults.clone()));
    }
}

#[test]
fn random_epochs_end_as_in_the_model() {
    play_all(&Faults::default());
}

#[test]
fn random_epochs_end_as_in_the_model_with_late_messages_and_ranks_that_lose_their_processor() {
    play_all(&Faults { delay: 0.2, delay_ns: 60_000, stall: 0.02, stall_ns: 100_000, ..Faults::default() });
}

/// Who has died holds the lock of its own memory for ever, and answers nobody: the others are told, and wait for nothing.
#[test]
fn a_target_that_dies_is_named_to_who_locks_it() {
    for schedule in [None, Some(Schedule::CHOICE)] {
        for seed in 0..20 {
            let faults = Faults { deaths: vec![(1, 1_000_000 + 100_000 * seed)], ..Faults::default() };
            let making = Making { schedule, fence: FenceWay::Told };
            let report = job(3, 1, seed, faults).program(&Setup::default(), move |rank| {
                let (memory, data) = (rank.buffer(4096), rank.buffer(2048));
                let win = rank.win_create(memory, making)?;
                loop {
                    rank.compute(5_000);
                    win.lock(rank, LockType::Exclusive, 1)?;
                    win.put(rank, 1, 0, data)?;
                    win.operate(
                        rank,
                        Verb::Accumulate(Predefined::Sum),
                        (1, 2048, INT64),
                        [data, Span::EMPTY, Span::EMPTY],
                    )?;
                    win.unlock(rank, 1)?;
                }
            });
            let results: Vec<Outcome<Result<()>>> = report.unwrap().results;
            assert!(matches!(results[1], Outcome::Died), "it dies inside");
            for rank in [0, 2] {
                let Outcome::Ended(Err(error)) = &results[rank] else {
                    panic!("rank {rank}, {seed}: {:?}", results[rank])
                };
                let names = error.text.contains("target 1") || error.text.contains("rank 1");
                assert!(names && error.class == Class::PROC_ABORTED, "rank {rank}, {seed}: {error:?}");
            }
        }
    }
}
