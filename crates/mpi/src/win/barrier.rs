//! A barrier of all ranks of a window by words in memory that all map (dissemination): in each round a rank signals one that is twice as far away
//! as in the last. What it says with that goes along.
//!
//! ```text
//! number of the barrier | told, before | told | said, before | says
//! ```
//!
//! *Says* is what all are to assert alike; the rank behind finds out who does not. *Told* is whether the signaller, or any rank it has heard of in the
//! rounds before, has told others something in messages, so behind the last round each rank knows whether any has. Who signals may be one barrier
//! ahead of who looks, never two, so of both a word has what was said in the same round of the barrier before, too.

use std::sync::atomic::Ordering;

use super::direct::{ROUNDS, Words};

const SAYS: u32 = 3;
const SAID_SHIFT: u32 = 2;
const TOLD: u32 = 1 << 4;
const TOLD_BEFORE: u32 = 1 << 5;
const SERIAL_SHIFT: u32 = 6;
const SERIAL: u32 = u32::MAX << SERIAL_SHIFT;

/// How far the last barrier has come.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// Its number.
    serial: u32,
    /// The round whose signal is awaited; `None` between barriers.
    round: Option<u32>,
    /// What this rank says with it, two bits, and with the one before.
    says: u32,
    said: u32,
    /// What the rank before this one has said with it, if that is something else.
    differs: Option<u32>,
    /// This rank has told others something, of which the next one is to say so.
    tells: bool,
    /// Whether this rank, or one it has heard of in this barrier, has.
    told: bool,
    /// What this rank has signalled of that in this barrier and in the one before: a bit for each round.
    signalled: u32,
    before: u32,
    /// The last barrier with which any rank has.
    told_at: u32,
}

impl Barrier {
    /// How many have begun.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// What the rank before this one has said with the one that is over, if that is something else.
    #[inline]
    pub fn differs(&self) -> Option<u32> {
        self.differs
    }

    /// That is forgotten.
    pub fn agrees(&mut self) {
        self.differs = None;
    }

    /// The next one is to say that this rank has told others something.
    pub fn tells(&mut self) {
        self.tells = true;
    }

    /// Whether any rank has, with the one that is over.
    #[inline]
    pub fn was_told(&self) -> bool {
        self.told
    }

    /// The last one with which any has.
    #[inline]
    pub fn told_at(&self) -> u32 {
        self.told_at
    }

    /// The one that is over is to be over again.
    pub fn again(&mut self, words: Words) {
        self.round = Some(rounds(words));
    }

    /// Begins one, or goes on with it; whether it is over. Each rank that is signalled `wake` wakes. Without `TELLS` nobody tells anything.
    #[inline]
    pub fn meet<const TELLS: bool>(&mut self, words: Words, says: u32, mut wake: impl FnMut(u32)) -> bool {
        let (me, ranks) = (words.me as u64, words.ranks as u64);
        let rounds = rounds(words);
        let mut round = self.round.take();
        if round.is_none() {
            self.begin::<TELLS>(says);
        } else if round == Some(rounds) {
            return true; // it was over before
        }
        loop {
            let now = match round {
                Some(round) => {
                    let seen = words.word(me as u32, at(round), |word| word.load(Ordering::Acquire));
                    if !self.hear::<TELLS>(round, seen) {
                        self.round = Some(round);
                        return false;
                    }
                    round + 1
                }
                None => 0,
            };
            if now == rounds {
                if TELLS && self.told {
                    self.told_at = self.serial;
                }
                return true;
            }
            let to = ((me + (1 << now)) % ranks) as u32;
            let signal = self.signal::<TELLS>(now);
            words.word(to, at(now), |word| word.store(signal, Ordering::Release));
            wake(to);
            round = Some(now);
        }
    }

    #[inline(always)]
    fn begin<const TELLS: bool>(&mut self, says: u32) {
        self.serial = self.serial.wrapping_add(1);
        (self.said, self.says) = (self.says, says);
        if TELLS {
            self.told = std::mem::take(&mut self.tells);
            self.before = std::mem::take(&mut self.signalled);
        }
    }

    /// The word of a round.
    #[inline(always)]
    fn signal<const TELLS: bool>(&mut self, round: u32) -> u32 {
        let signal = self.serial << SERIAL_SHIFT | self.said << SAID_SHIFT | self.says;
        if !TELLS {
            return signal;
        }
        self.signalled |= u32::from(self.told) << round;
        let before = self.before >> round & 1;
        let told = if self.told { TOLD } else { 0 };
        let told_before = if before == 1 { TOLD_BEFORE } else { 0 };
        signal | told | told_before
    }

    /// Heeds the word that is awaited in a round, if it has come.
    #[inline(always)]
    fn hear<const TELLS: bool>(&mut self, round: u32, seen: u32) -> bool {
        // Its number may be that of the next barrier already.
        let ahead = (seen & SERIAL).wrapping_sub(self.serial << SERIAL_SHIFT) as i32;
        if ahead < 0 {
            return false;
        }
        let is_ahead = ahead > 0;
        if TELLS {
            self.told |= seen & if is_ahead { TOLD_BEFORE } else { TOLD } != 0;
        }
        let theirs = if is_ahead { seen >> SAID_SHIFT } else { seen } & SAYS;
        if round == 0 && theirs != self.says {
            self.differs = Some(theirs);
        }
        true
    }
}

#[inline(always)]
fn rounds(words: Words) -> u32 {
    (words.ranks as u64).next_power_of_two().trailing_zeros()
}

#[inline(always)]
fn at(round: u32) -> usize {
    ROUNDS + round as usize * 4
}

#[cfg(test)]
mod tests {
    use super::super::direct::Control;

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_come() {
        for ranks in 1..=9 {
            let memory = vec![0u64; Control::bytes(ranks) / 8];
            let base = memory.as_ptr() as usize;
            let mut all: Vec<Control> = (0..ranks).map(|me| Control::new(base, ranks, me)).collect();
            for late in 0..3 * ranks {
                let mut left = vec![false; ranks];
                for _ in 0..ranks {
                    for me in (0..ranks).filter(|me| *me != late % ranks) {
                        left[me] = left[me] || all[me].meet(0, |_| {});
                        assert!(ranks == 1 || !left[me], "rank {me} of {ranks} has left without {late}");
                    }
                }
                for _ in 0..ranks {
                    (0..ranks).for_each(|me| left[me] = left[me] || all[me].meet(0, |_| {}));
                }
                assert!(left.iter().all(|left| *left), "{left:?}");
            }
            drop(std::hint::black_box(memory));
        }
    }

    /// Also if the one who differs is at the next barrier when the other looks.
    #[test]
    fn who_says_something_else_with_a_barrier_is_found_out() {
        for ranks in 2..=5usize {
            let memory = vec![0u64; Control::bytes(ranks) / 8];
            let base = memory.as_ptr() as usize;
            let mut all: Vec<Control> = (0..ranks).map(|me| Control::new(base, ranks, me)).collect();
            for round in 0..4 * ranks {
                let odd = round % (ranks + 1); // nobody's turn as well
                let mut left = vec![false; ranks];
                for me in (0..4 * ranks).map(|turn| turn % ranks) {
                    let says = if me == odd { 2 } else { 1 };
                    left[me] = left[me] || all[me].meet(says, |_| {});
                }
                assert!(left.iter().all(|left| *left));
                for (me, control) in all.iter_mut().enumerate() {
                    let before = (me + ranks - 1) % ranks;
                    let says = |rank| if rank == odd { 2 } else { 1 };
                    let differs = says(before) != says(me);
                    assert_eq!(control.take_differs(), differs.then(|| (before as u32, says(before))));
                }
            }
            // Rank 0 is one ahead: its word is that of the next barrier when rank 1 looks.
            let mut two: Vec<Control> = Vec::new();
            let fresh = vec![0u64; Control::bytes(2) / 8];
            two.extend((0..2).map(|me| Control::new(fresh.as_ptr() as usize, 2, me)));
            assert!(!two[1].meet(1, |_| {}) && two[0].meet(2, |_| {}) && !two[0].meet(1, |_| {}));
            assert!(two[1].meet(1, |_| {}));
            assert_eq!(two[1].take_differs(), Some((0, 2)));
            drop(std::hint::black_box((memory, fresh)));
        }
    }

    /// Whoever is ahead of whom: each rank hears of all that was told before that barrier, and of nothing that was told behind it.
    #[test]
    fn all_ranks_hear_whether_any_has_told_something() {
        for ranks in 1..=9usize {
            let memory = vec![0u64; Control::bytes(ranks) / 8];
            let base = memory.as_ptr() as usize;
            let mut all: Vec<Control> = (0..ranks).map(|me| Control::new(base, ranks, me)).collect();
            let tells =
                |me: usize, barrier: usize| (barrier * 7 + me * 3).is_multiple_of(11) && barrier % 3 != 1;
            let (mut begun, mut over) = (vec![0; ranks], vec![0; ranks]);
            let mut random = 1u32;
            while over.iter().any(|over| *over < 200) {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let me = (random >> 16) as usize % ranks;
                if begun[me] == over[me] {
                    begun[me] += 1;
                    if tells(me, over[me]) {
                        all[me].tells();
                    }
                }
                let Some(told) = all[me].meet_told(1, |_| {}) else { continue };
                assert_eq!(told, (0..ranks).any(|rank| tells(rank, over[me])), "rank {me} of {ranks}");
                if told {
                    assert!(
                        ranks == 1
                            || !all[(me + 1) % ranks].has_heeded(me as u32)
                            || over[(me + 1) % ranks] <= over[me]
                    );
                    assert!(!all[me].heeds(), "nobody waits");
                    assert!(all[me].has_heeded(me as u32));
                }
                over[me] += 1;
            }
            drop(std::hint::black_box(memory));
        }
    }
}
