//! Whether an operation is a copy by the kernel or is told its target, where it can be either: by what both took on operations of this window.
//!
//! ```text
//! by the kernel   a call for each                                      Σ copied(verb, len)
//! told            gathered here                                        Σ told(verb, len)
//!                 a message there, and an answer or a word back        acknowledged(0)
//!                 carried out by the target, if that is waited for     acknowledged(Σ told) − acknowledged(0)
//! ```
//!
//! Sums are over the operations of an epoch at one target. How many there will be is not known, so an epoch is taken to be like the one before it,
//! until it has more. Some of the operations are timed, and some of the acknowledgements, whose times are a line over what gathering took. Before any was
//! seen, what a target does of an operation is taken to be as much as gathering it was, which it resembles; it goes on beside what the origin does
//! next where that does not wait for it. A Get is a copy in any case: told, its bytes would come back in a message for each. So is an operation that is
//! alone in its epoch: a message of its own is dearer than a copy where it is short, what is long is copied once more to be told, and a line that was learnt
//! from epochs of many says little of the first. Where the target need not wait for the end of the epoch, which it may never look at, so is what is long:
//! such a target takes no part.
//!
//! ```text
//! told ──▶ acknowledged in time ──▶ told
//!   └────▶ late: the target computes, or has no core ──▶ spared for 16 epochs ──▶ told once more ──▶ late: for 32 …, 1,024
//! ```
//!
//! A target that ends the epoch itself, in a fence or a wait, is there for it: it is not late, and nothing is told in vain.

use super::active::BATCH_BYTES;
use super::operation::Verb;
use proto::choice::facts::{Facts, Line};

/// One operation of so many is timed: looks at the clock are to be a small part of what they time, and more would tell no more.
const TIMED: u32 = 32;
/// One acknowledgement of so many is learnt from, for that takes a while itself.
const LEARNT: u32 = 8;
/// What a message there and back takes before any was seen: as many copies. A first guess, which observations correct.
const THERE_AND_BACK: f64 = 3.0;
/// A target that is late takes so many times as long for what it was told as copies would have: by less than that a guess may be wrong.
const LATE: f64 = 2.0;
/// Epochs for which it is told nothing more, at first and at most: the number doubles as long as it is late when it is told again, so that what
/// is lost by trying sinks below any part of a long run.
const SPARED: (u32, u32) = (16, 1024);

/// What operations cost, by [`kind`].
#[derive(Debug)]
struct Costs {
    copied: [Line; KINDS],
    told: [Line; KINDS],
    /// Until a target has answered, by the ns that it took to gather what it was told.
    acknowledged: Line,
}

const KINDS: usize = 3;

/// What is written, what is changed, and what is fetched as well.
fn kind(verb: Verb) -> usize {
    match verb {
        Verb::Put | Verb::Get => 0,
        Verb::Accumulate(_) => 1,
        Verb::Fetch(_) | Verb::Swap => 2,
    }
}

impl Costs {
    /// What is known before the first operation: of a copy what was measured when the job started; what is changed is copied here and back.
    fn new(facts: &Facts) -> Costs {
        let Line { fixed, per_byte, source, .. } = facts.single;
        let copied = |times: f64| Line::new((times * fixed, times * per_byte), source);
        let told = || Line::new((facts.part.value, facts.copy_ns_per_byte(0)), facts.part.source);
        Costs {
            copied: [copied(1.0), copied(2.0), copied(2.0)],
            told: [told(), told(), told()],
            acknowledged: Line::new((THERE_AND_BACK * fixed, 1.0), source),
        }
    }
}

/// What the operations of an epoch at a target cost, either way.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u32,
    copied_ns: f64,
    told_ns: f64,
}

/// Of one target.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    epoch: u32,
    now: Sums,
    before: Sums,
    /// Epochs, this one included, for which it is told nothing that the kernel can do, for it was late.
    spared: u32,
    /// For how many it was the last time.
    again: u32,
}

/// What is asked of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The rank that it is at.
    pub target: u32,
    /// What is done.
    pub verb: Verb,
    /// Bytes.
    pub len: u64,
    /// Whether its target acknowledges it at the end of the epoch, rather than waiting for it itself.
    pub is_asked: bool,
}

/// What the operations of this epoch and the last one cost at each target, and whether targets heed at once what they are told.
#[derive(Debug)]
pub struct Tally {
    epoch: u32,
    operations: u32,
    acknowledgements: u32,
    targets: Box<[Target]>,
    costs: Option<Box<Costs>>,
}

impl Tally {
    /// Of so many targets.
    pub fn new(ranks: usize) -> Tally {
        Tally {
            epoch: 0,
            operations: 0,
            acknowledgements: 0,
            targets: vec![Target::default(); ranks].into(),
            costs: None,
        }
    }

    /// Epochs are over.
    #[inline]
    pub fn ended(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Whether an operation is for the kernel rather than to be told; it counts if it is, or if this is the last word on it.
    #[inline]
    pub fn is_for_kernel(&mut self, facts: &Facts, asked: &Asked, is_last: bool) -> bool {
        if asked.verb == Verb::Get {
            return true;
        }
        let (now, is_for_kernel) = self.with(facts, asked);
        if is_for_kernel || is_last {
            self.targets[asked.target as usize].now = now;
        }
        is_for_kernel
    }

    /// What the operations of this epoch cost with one more, and whether that is for the kernel.
    #[inline]
    fn with(&mut self, facts: &Facts, asked: &Asked) -> (Sums, bool) {
        let Tally { epoch, targets, costs, .. } = self;
        let costs = costs.get_or_insert_with(|| Box::new(Costs::new(facts)));
        let target = &mut targets[asked.target as usize];
        if target.epoch != *epoch {
            let spared = target.spared.saturating_sub(1);
            *target = Target { epoch: *epoch, now: Sums::default(), before: target.now, spared, ..*target };
        }
        let (kind, len, before) = (kind(asked.verb), asked.len as f64, &target.before);
        let now = Sums {
            count: target.now.count.saturating_add(1),
            copied_ns: target.now.copied_ns + costs.copied[kind].at(len),
            told_ns: target.now.told_ns + costs.told[kind].at(len),
        };
        let epoch = if now.copied_ns > before.copied_ns { &now } else { before };
        // Of what is long nobody has much beside it to do: a first half of it is over before the target can begin.
        let is_long = asked.len > BATCH_BYTES as u64;
        let awaited_ns = match asked.is_asked || asked.verb.fetches() {
            true => epoch.told_ns,
            false if is_long => epoch.told_ns / 2.0,
            false => 0.0,
        };
        let is_for_kernel = epoch.copied_ns <= epoch.told_ns + costs.acknowledged.at(awaited_ns)
            || asked.is_asked && (target.spared > 0 || is_long)
            || epoch.count <= 1;
        (now, is_for_kernel)
    }

    /// Whether the next operation is to be told.
    pub fn tells(&mut self, facts: &Facts, asked: &Asked) -> bool {
        asked.verb != Verb::Get && !self.with(facts, asked).1
    }

    /// One more operation is begun; whether it is to be timed. The first ones are not: they pay for what is there from then on.
    #[inline]
    pub fn is_timed(&mut self) -> bool {
        self.operations = self.operations.wrapping_add(1);
        self.operations.is_multiple_of(TIMED)
    }

    /// The kernel has taken so long for one.
    #[cold]
    pub fn copied(&mut self, asked: &Asked, took_ns: u64) {
        let Asked { verb, len, .. } = *asked;
        if let Some(costs) = self.costs.as_mut().filter(|_| verb != Verb::Get) {
            costs.copied[kind(verb)].observe(len as usize, took_ns as f64);
        }
    }

    /// To tell a target of one has taken so long.
    #[cold]
    pub fn told(&mut self, verb: Verb, len: u64, took_ns: u64) {
        if let Some(costs) = self.costs.as_mut().filter(|_| verb != Verb::Get) {
            costs.told[kind(verb)].observe(len as usize, took_ns as f64);
        }
    }

    /// A target has acknowledged what it was told in an epoch after so long.
    pub fn waited(&mut self, target: u32, took_ns: u64) {
        let Some(costs) = &mut self.costs else { return };
        let target = &mut self.targets[target as usize];
        let Sums { copied_ns, told_ns, .. } = target.now;
        let took_ns = took_ns as f64;
        let is_late = took_ns > LATE * copied_ns;
        self.acknowledgements = self.acknowledgements.wrapping_add(1);
        if !is_late && self.acknowledgements % LEARNT == 1 {
            costs.acknowledged.observe(told_ns as usize, took_ns);
        }
        target.again = if is_late { (2 * target.again).clamp(SPARED.0, SPARED.1) } else { 0 };
        target.spared = if is_late { target.again + 1 } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Predefined;
    use fabric::{Caps, Costs as Machine};

    const SUM: Verb = Verb::Accumulate(Predefined::Sum);

    /// A machine on which a copy takes so long.
    fn facts(copy_ns: f64) -> Facts {
        let caps = Caps { name: "test", frame_bytes: 1 << 20, remote_access: true, ..Caps::default() };
        let costs = Machine { single: (copy_ns, 0.1), ..Machine::default() };
        Facts::new([costs; 2], [&caps; 2], 1, 1 << 14)
    }

    /// An epoch of so many operations, each asked of twice as programs do that begin at once: how many are for the kernel.
    fn epoch(
        tally: &mut Tally,
        facts: &Facts,
        count: u32,
        (target, verb, len): (u32, Verb, u64),
        is_asked: bool,
    ) -> u32 {
        let asked = Asked { target, verb, len, is_asked };
        let mut is_for_kernel = |is_last| tally.is_for_kernel(facts, &asked, is_last);
        let few = (0..count).filter(|_| is_for_kernel(false) || is_for_kernel(true)).count() as u32;
        tally.ended();
        few
    }

    /// Where these take so long.
    fn taught(facts: &Facts, copied_ns: u64, told_ns: u64, acknowledged_ns: u64) -> Tally {
        let mut tally = Tally::new(2);
        for verb in [Verb::Put, SUM] {
            epoch(&mut tally, facts, 1, (1, verb, 8), true);
            let times = if verb == SUM { 2 } else { 1 };
            let asked = Asked { target: 1, verb, len: 8, is_asked: true };
            (0..2000).for_each(|_| tally.copied(&asked, times * copied_ns));
            (0..2000).for_each(|_| tally.told(verb, 8, told_ns));
        }
        for _ in 0..2000 {
            tally.targets[1].now = Sums { count: 1, copied_ns: 1e9, told_ns: 0.0 };
            tally.waited(1, acknowledged_ns);
        }
        tally.targets[1] = Target::default();
        tally
    }

    /// Of many in an epoch the first few are taken for an epoch of few, and none of the next epoch.
    #[test]
    fn an_epoch_is_taken_to_be_like_the_last_one_at_its_target() {
        let facts = facts(500.0);
        let mut tally = taught(&facts, 500, 50, 1700);
        let put = |target| (target, Verb::Put, 8);
        // 500 n against 100 n + 1700.
        assert_eq!(epoch(&mut tally, &facts, 4, put(0), true), 4);
        assert_eq!(epoch(&mut tally, &facts, 40, put(0), true), 4);
        assert_eq!(epoch(&mut tally, &facts, 3, put(1), true), 3, "another target");
        assert_eq!(epoch(&mut tally, &facts, 1, put(0), true), 0);
        assert_eq!(epoch(&mut tally, &facts, 2, put(0), true), 2);
        // 1000 n against 100 n + 1700.
        assert_eq!(epoch(&mut tally, &facts, 9, (1, SUM, 8), true), 1);
        assert_eq!(epoch(&mut tally, &facts, 9, (1, Verb::Get, 8), true), 9);
    }

    /// What the machine is decides, and whether the target has to answer.
    #[test]
    fn how_many_are_few_is_a_question_of_cost() {
        let of = |copied_ns, told_ns, acknowledged_ns, is_asked| {
            let facts = facts(500.0);
            let mut tally = taught(&facts, copied_ns, told_ns, acknowledged_ns);
            epoch(&mut tally, &facts, 1000, (0, Verb::Put, 8), is_asked)
        };
        assert_eq!([500, 1000].map(|copied_ns| of(copied_ns, 50, 3500, true)), [8, 3]);
        assert_eq!([1700, 9100].map(|acknowledged_ns| of(500, 50, acknowledged_ns, true)), [4, 22]);
        assert_eq!(of(500, 50, 9300, false), 20, "nobody is asked");
        assert_eq!(of(500, 300, 1700, true), 1000, "copies are as fast");
    }

    /// A target that calls nothing of MPI is to be told nothing where that is not worth much.
    #[test]
    fn what_is_alone_in_its_epoch_or_long_needs_no_target() {
        let facts = facts(500.0);
        let mut tally = taught(&facts, 50_000, 50, 1700);
        for (verb, len) in [(Verb::Put, 8), (SUM, 8), (SUM, 1 << 20)] {
            for _ in 0..3 {
                assert_eq!(epoch(&mut tally, &facts, 1, (0, verb, len), true), 1, "{verb:?} {len}");
            }
        }
        assert_eq!(epoch(&mut tally, &facts, 9, (0, SUM, 1 << 20), true), 9);
        tally.targets[0] = Target::default();
        assert_eq!(epoch(&mut tally, &facts, 9, (0, SUM, 8), true), 1);
        for len in [8, 1 << 20] {
            assert_eq!(epoch(&mut tally, &facts, 1, (1, SUM, len), false), 1, "a fence, {len}");
        }
    }

    /// A target that is late is told less and less often, until it is in time; one that waits itself is not late.
    #[test]
    fn who_is_late_is_told_nothing_for_some_epochs() {
        let facts = facts(500.0);
        let mut tally = taught(&facts, 500, 50, 1700);
        let ten = (0, Verb::Put, 8);
        let mut spared = |took_ns| {
            while epoch(&mut tally, &facts, 10, ten, true) == 10 {}
            assert_eq!(epoch(&mut tally, &facts, 10, ten, true), 0);
            tally.waited(0, took_ns);
            assert_eq!(epoch(&mut tally, &facts, 10, ten, false), 0, "it comes to a fence");
            1 + (0..).take_while(|_| epoch(&mut tally, &facts, 10, ten, true) == 10).count() as u32
        };
        let (late_ns, in_time_ns) = (10_100, 2000);
        assert_eq!([late_ns, late_ns, late_ns].map(&mut spared), [16, 32, 64]);
        assert_eq!([in_time_ns, late_ns].map(&mut spared), [1, 16]);
        assert_eq!((0..20).map(|_| spared(late_ns)).max(), Some(SPARED.1));
    }
}
