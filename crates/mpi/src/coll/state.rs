//! What a communicator remembers for its collectives.
use super::compile::{Call, Side};
use super::cost::{Forced, LinkCosts};
use super::schedule::Schedule;
use super::tag::{Kind, Tag};
use crate::error::Result;
use crate::handle::Handle;

/// One side of a call with equal blocks: its count and datatype, or nothing.
pub type Amount = Option<(u64, Handle)>;

/// A call that is the same for equal keys, wherever its buffers are: everything but addresses.
/// Calls with an array of counts have [`Lists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Which collective.
    pub kind: Kind,
    /// Whether this rank gave `MPI_IN_PLACE`.
    pub in_place: bool,
    /// The root, 0 where there is none.
    pub root: usize,
    /// What is sent.
    pub send: Amount,
    /// What is received.
    pub recv: Amount,
    /// The operation.
    pub op: Option<Handle>,
}

impl Key {
    /// Whether equal keys mean equal calls for good: handles of the application may be freed and
    /// given out again for something else.
    fn lasts(&self) -> bool {
        let predefined = |side: Amount| side.is_none_or(|(_, ty)| ty.is_predefined());
        predefined(self.send) && predefined(self.recv) && self.op.is_none_or(Handle::is_predefined)
    }
}

/// As [`Key`] for a call with an array of counts: everything but addresses, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lists(Box<[u64]>);

impl Lists {
    /// What describes a call whose operation has this handle; `None` where that would not last, or is so long
    /// that its program is not kept.
    pub fn of(call: &Call, op: Option<Handle>) -> Option<Lists> {
        if call.size > KEPT_STEPS || !op.is_none_or(Handle::is_predefined) {
            return None;
        }
        let op = op.map_or(0, |op| u64::from(op.0) + 1);
        let mut all = Vec::with_capacity(8 + 6 * call.size);
        all.extend([call.kind as u64, u64::from(call.in_place), call.root as u64, op]);
        for side in [&call.send, &call.recv] {
            // The kind of side, then as many numbers as that and the size of the communicator say.
            let (counts, displs) = match side {
                Side::Absent => {
                    all.push(0);
                    continue;
                }
                Side::Even { count, ty } => {
                    all.extend([1, u64::from(ty.handle.0), *count]);
                    continue;
                }
                Side::Varied { counts, displs, ty } => {
                    all.extend([2 + u64::from(displs.is_empty()), u64::from(ty.handle.0)]);
                    (counts, displs)
                }
                Side::Mixed { counts, displs, types } => {
                    all.push(4);
                    all.extend(types.iter().map(|ty| u64::from(ty.handle.0)));
                    (counts, displs)
                }
            };
            all.extend(counts.iter().chain(displs.iter()).map(|number| number as u64));
        }
        let lasts = [&call.send, &call.recv].into_iter().all(|side| match side {
            Side::Absent => true,
            Side::Even { ty, .. } | Side::Varied { ty, .. } => ty.handle.is_predefined(),
            Side::Mixed { types, .. } => types.iter().all(|ty| ty.handle.is_predefined()),
        });
        lasts.then(|| Lists(all.into()))
    }
}

/// What tells a call from others.
#[derive(Clone, Debug)]
pub enum Known {
    /// One with a count for all ranks.
    Key(Key),
    /// One with a count for each.
    Lists(Lists),
}

/// Programs kept: programs of applications repeat a few collectives in turn.
const KEPT: usize = 4;
/// Scratch memory and steps above which a program is not kept: there the work outweighs what
/// writing the program costs, and a rank's memory is limited.
const KEPT_BYTES: usize = 32 << 10;
const KEPT_STEPS: usize = 256;

/// Schedules by what tells their calls from others; none while it runs.
#[derive(Debug)]
struct Kept<K>(Vec<(K, Option<Box<Schedule>>)>);

impl<K: PartialEq> Kept<K> {
    #[inline]
    fn take(&mut self, key: &K, send: usize, recv: usize) -> Option<Box<Schedule>> {
        let kept = self.0.iter_mut().find(|kept| kept.0 == *key)?;
        let mut schedule = kept.1.take_if(|schedule| schedule.program().reach.is_apart(send, recv))?;
        schedule.rebase(send, recv);
        Some(schedule)
    }

    #[inline]
    fn keep(&mut self, key: K, schedule: Box<Schedule>, lasts: impl FnOnce(&K) -> bool) {
        if let Some(kept) = self.0.iter_mut().find(|kept| kept.0 == key) {
            kept.1 = Some(schedule);
            return;
        }
        let program = schedule.program();
        if !lasts(&key) || program.temp_bytes > KEPT_BYTES || program.steps.len() > KEPT_STEPS {
            return;
        }
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push((key, Some(schedule)));
    }
}

/// The collective side of one communicator.
#[derive(Debug)]
pub struct State {
    runs: u32,
    persistent_runs: u32,
    /// Costs of its links: the same on all its ranks.
    pub link: LinkCosts,
    /// What settings force.
    pub forced: Forced,
    kept: Kept<Key>,
    listed: Kept<Lists>,
}

impl State {
    /// For a new communicator. All its ranks must give equal arguments, since each chooses its
    /// algorithms alone.
    pub fn new(link: LinkCosts, forced: Forced) -> State {
        State { runs: 0, persistent_runs: 0, link, forced, kept: Kept(Vec::new()), listed: Kept(Vec::new()) }
    }

    /// The tag of the next collective called on the communicator.
    #[inline]
    pub fn next_tag(&mut self, kind: Kind) -> Tag {
        self.runs = self.runs.wrapping_add(1);
        Tag::new(kind, self.runs, false)
    }

    /// The [number](Tag::run) of the last collective called on the communicator; 0 before the first.
    pub fn begun(&self) -> u32 {
        Tag::new(Kind::Barrier, self.runs, false).run()
    }

    /// The tag of the next persistent collective initialised on the communicator, for all its
    /// starts.
    pub fn next_persistent_tag(&mut self, kind: Kind) -> Tag {
        self.persistent_runs = self.persistent_runs.wrapping_add(1);
        Tag::new(kind, self.persistent_runs, true)
    }

    /// A schedule kept from an equal call, moved to these buffers, unless they overlap: that is
    /// for who checks the call to say.
    #[inline]
    pub fn take(&mut self, key: &Key, send: usize, recv: usize) -> Option<Box<Schedule>> {
        self.kept.take(key, send, recv)
    }

    /// As [`State::take`].
    pub fn take_listed(&mut self, lists: &Lists, send: usize, recv: usize) -> Option<Box<Schedule>> {
        self.listed.take(lists, send, recv)
    }

    /// Keeps a schedule that is done for the next equal call.
    #[inline]
    pub fn keep(&mut self, call: Known, schedule: Box<Schedule>) {
        match call {
            Known::Key(key) => self.kept.keep(key, schedule, Key::lasts),
            Known::Lists(lists) => self.listed.keep(lists, schedule, |_| true),
        }
    }

    /// A new schedule for a checked call.
    pub fn compile(&self, call: &Call, send: usize, recv: usize) -> Result<Box<Schedule>> {
        let program = super::compile(call, &self.link, &self.forced);
        Ok(Box::new(Schedule::new(program.into(), send, recv)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::Side;
    use super::super::ty::Type;
    use super::*;

    const INT: Handle = Handle(0x209);

    fn key(count: u64, ty: Handle) -> Key {
        Key { kind: Kind::Bcast, in_place: false, root: 0, send: None, recv: Some((count, ty)), op: None }
    }

    fn state() -> State {
        let link = LinkCosts { latency_ns: 100.0, overhead_ns: 20.0, ..LinkCosts::HOST };
        State::new(link, Forced::default())
    }

    fn schedule(state: &State, count: u64) -> Box<Schedule> {
        let ty = Type::predefined(INT).unwrap();
        let recv = Side::Even { count, ty: &ty };
        let call = Call {
            kind: Kind::Bcast,
            rank: 0,
            size: 2,
            send: Side::Absent,
            recv,
            in_place: false,
            op: None,
            root: 0,
        };
        state.compile(&call, 0, 64).unwrap()
    }

    #[test]
    fn few_schedules_are_kept_and_only_those_whose_handles_last() {
        let mut state = state();
        for count in 1..=5 {
            state.keep(Known::Key(key(count, INT)), schedule(&state, count));
        }
        assert!(state.take(&key(1, INT), 0, 64).is_none());
        let again = state.take(&key(5, INT), 0, 128).unwrap();
        assert!(state.take(&key(5, INT), 0, 128).is_none());
        let derived = Handle(Handle::FIRST_DYNAMIC);
        state.keep(Known::Key(key(9, derived)), again);
        assert!(state.take(&key(9, derived), 0, 64).is_none());
    }

    #[test]
    fn a_schedule_that_is_kept_moves_to_buffers_apart_only() {
        let mut state = state();
        let ty = Type::predefined(INT).unwrap();
        let side = Side::Even { count: 4, ty: &ty };
        let kind = Kind::Allreduce;
        let sum = crate::op::Op::Predefined(crate::op::Predefined::Sum);
        let call =
            Call { kind, rank: 0, size: 2, send: side, recv: side, in_place: false, op: Some(&sum), root: 0 };
        let vector = Some((4, INT));
        let key = Key { kind, in_place: false, root: 0, send: vector, recv: vector, op: Some(Handle(0x21)) };
        state.keep(Known::Key(key), state.compile(&call, 64, 128).unwrap());
        for (send, recv) in [(64, 64), (64, 79), (79, 64)] {
            assert!(state.take(&key, send, recv).is_none());
        }
        assert!(state.take(&key, 80, 64).is_some());
    }

    #[test]
    fn persistent_collectives_count_for_themselves() {
        let mut state = state();
        let first = state.next_tag(Kind::Bcast);
        let persistent = state.next_persistent_tag(Kind::Bcast);
        assert_ne!(first, persistent);
        assert_eq!(state.next_tag(Kind::Bcast).run(), first.run() + 1);
        assert_eq!(state.next_persistent_tag(Kind::Bcast).run(), persistent.run() + 1);
    }
}
