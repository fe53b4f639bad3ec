//! What a communicator remembers for its collectives.
use super::blocks::Ints;
use super::compile::Call;
use super::cost::Forced;
use super::levels::Spread;
use super::rates::Tariff;
use super::schedule::Schedule;
use super::tag::{Collective, Tag};
use crate::error::Result;
use crate::handle::Handle;

/// One side of a call with equal blocks: its count and datatype, or nothing.
pub type Amount = Option<(u64, Handle)>;

/// A call that is the same for equal keys, wherever its buffers are: everything but addresses.
/// Calls with an array of counts have [`Lists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Which collective.
    pub kind: Collective,
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

/// One side of a call with arrays of counts, its datatypes by the handles that the application gave.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// Not significant on this rank, or `MPI_IN_PLACE`.
    Absent,
    /// `count` elements.
    Even {
        /// Elements.
        count: u64,
        /// Their type.
        ty: usize,
    },
    /// A count and a displacement per rank. Reduce_scatter has no displacements.
    Varied {
        /// Elements per rank.
        counts: Ints<'a>,
        /// In extents of the type.
        displs: Ints<'a>,
        /// The type of all.
        ty: usize,
    },
    /// A count, a displacement and a type per rank (Alltoallw).
    Mixed {
        /// Elements per rank.
        counts: Ints<'a>,
        /// In bytes.
        displs: Ints<'a>,
        /// One per rank.
        types: &'a [usize],
    },
}

impl Given<'_> {
    /// Whether the buffer counts for nothing on this rank.
    pub fn is_absent(&self) -> bool {
        matches!(self, Given::Absent)
    }

    /// Calls `f` with all that describes it until that says no. The first number tells which kind of side it
    /// is, and so with the size of the communicator how many follow.
    fn numbers(&self, f: &mut impl FnMut(u64) -> bool) -> bool {
        let (counts, displs) = match self {
            Given::Absent => return f(0),
            Given::Even { count, ty } => return f(1) && f(*ty as u64) && f(*count),
            Given::Varied { counts, displs, ty } => {
                if !(f(2 + u64::from(displs.is_empty())) && f(*ty as u64)) {
                    return false;
                }
                (counts, displs)
            }
            Given::Mixed { counts, displs, types } => {
                if !(f(4) && types.iter().all(|ty| f(*ty as u64))) {
                    return false;
                }
                (counts, displs)
            }
        };
        [counts, displs].into_iter().all(|ints| match ints {
            Ints::Small(ints) => ints.iter().all(|n| f(i64::from(*n) as u64)),
            Ints::Large(ints) => ints.iter().all(|n| f(*n as u64)),
        })
    }

    fn lasts(&self) -> bool {
        let predefined = |ty: &usize| u32::try_from(*ty).is_ok_and(|ty| Handle(ty).is_predefined());
        match self {
            Given::Absent => true,
            Given::Even { ty, .. } | Given::Varied { ty, .. } => predefined(ty),
            Given::Mixed { types, .. } => types.iter().all(predefined),
        }
    }
}

/// A call with an array of counts: as [`Key`], everything but addresses.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// Which collective.
    pub kind: Collective,
    /// Whether this rank gave `MPI_IN_PLACE`.
    pub in_place: bool,
    /// Ranks of the communicator.
    pub size: usize,
    /// The root, 0 where there is none.
    pub root: usize,
    /// What is sent.
    pub send: Given<'a>,
    /// What is received.
    pub recv: Given<'a>,
    /// The operation.
    pub op: Option<Handle>,
}

impl Listed<'_> {
    fn numbers(&self, mut f: impl FnMut(u64) -> bool) -> bool {
        let op = self.op.map_or(0, |op| u64::from(op.0) + 1);
        let head = [self.kind as u64, u64::from(self.in_place), self.root as u64, op];
        head.into_iter().all(&mut f) && self.send.numbers(&mut f) && self.recv.numbers(&mut f)
    }
}

/// What is kept of a [`Listed`] call: its numbers, one behind the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lists(Box<[u64]>);

impl Lists {
    /// What describes a call; `None` where that would not last, or is so long that its program is not kept.
    pub fn of(call: &Listed) -> Option<Lists> {
        let lasts = call.op.is_none_or(Handle::is_predefined) && call.send.lasts() && call.recv.lasts();
        if call.size > KEPT_STEPS || !lasts {
            return None;
        }
        let mut all = Vec::with_capacity(8 + 6 * call.size);
        call.numbers(|number| {
            all.push(number);
            true
        });
        Some(Lists(all.into()))
    }

    /// Whether they describe this call.
    fn tell(&self, call: &Listed) -> bool {
        let mut rest = self.0.iter();
        call.numbers(|number| rest.next() == Some(&number)) && rest.as_slice().is_empty()
    }
}

/// A call by which a schedule that is kept is asked for.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// One with a count for all ranks.
    Key(&'a Key),
    /// One with a count for each.
    Listed(&'a Listed<'a>),
}

/// Where a schedule belongs when it is done.
#[derive(Clone, Debug)]
pub enum Known {
    /// To a call with a count for all ranks.
    Key(Key),
    /// To a call with a count for each.
    Lists(Lists),
    /// To where [`State::take`] took it from.
    Kept(u64),
}

/// Programs kept: programs of applications repeat a few collectives in turn.
const KEPT: usize = 4;
/// Steps above which a program is not kept: there the work outweighs what writing the program costs, and a rank's memory is limited.
const KEPT_STEPS: usize = 256;

/// A schedule by what tells its call from others; none while it runs.
#[derive(Debug)]
struct Entry<K> {
    call: K,
    /// No other entry of the communicator has had it.
    name: u64,
    schedule: Option<Box<Schedule>>,
}

#[derive(Debug)]
struct Kept<K>(Vec<Entry<K>>);

impl<K: PartialEq> Kept<K> {
    #[inline]
    fn take(&mut self, is: impl Fn(&K) -> bool, send: usize, recv: usize) -> Option<(Known, Box<Schedule>)> {
        let kept = self.0.iter_mut().find(|kept| is(&kept.call))?;
        let mut schedule = kept.schedule.take_if(|schedule| schedule.program().reach.is_apart(send, recv))?;
        schedule.rebase(send, recv);
        Some((Known::Kept(kept.name), schedule))
    }

    /// Gives a schedule back, unless its place has gone to another: then it is returned.
    #[inline]
    fn put_back(&mut self, name: u64, mut schedule: Box<Schedule>) -> Option<Box<Schedule>> {
        schedule.rest();
        match self.0.iter_mut().find(|kept| kept.name == name) {
            Some(kept) => {
                kept.schedule = Some(schedule);
                None
            }
            None => Some(schedule),
        }
    }

    fn keep(&mut self, call: K, name: u64, mut schedule: Box<Schedule>) {
        schedule.rest();
        if let Some(kept) = self.0.iter_mut().find(|kept| kept.call == call) {
            kept.schedule = Some(schedule);
            return;
        }
        if schedule.program().steps.len() > KEPT_STEPS {
            return;
        }
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push(Entry { call, name, schedule: Some(schedule) });
    }
}

/// The collective side of one communicator.
#[derive(Debug)]
pub struct State {
    runs: u32,
    persistent_runs: u32,
    /// Rates of its links: the same on all its ranks.
    pub tariff: Tariff,
    /// The hosts of its ranks.
    pub spread: Spread,
    /// What settings force.
    pub forced: Forced,
    kept: Kept<Key>,
    listed: Kept<Lists>,
    /// Names given to what is kept.
    names: u64,
}

impl State {
    /// For a new communicator. All its ranks must give equal arguments, since each chooses its
    /// algorithms alone.
    pub fn new(tariff: Tariff, forced: Forced, spread: Spread) -> State {
        State {
            runs: 0,
            persistent_runs: 0,
            tariff,
            spread,
            forced,
            kept: Kept(Vec::new()),
            listed: Kept(Vec::new()),
            names: 0,
        }
    }

    /// The tag of the next collective called on the communicator.
    #[inline]
    pub fn next_tag(&mut self, kind: Collective) -> Tag {
        self.runs = self.runs.wrapping_add(1);
        Tag::new(kind, self.runs, false)
    }

    /// The [number](Tag::run) of the last collective called on the communicator; 0 before the first.
    pub fn begun(&self) -> u32 {
        Tag::new(Collective::Barrier, self.runs, false).run()
    }

    /// The tag of the next persistent collective initialised on the communicator, for all its
    /// starts.
    pub fn next_persistent_tag(&mut self, kind: Collective) -> Tag {
        self.persistent_runs = self.persistent_runs.wrapping_add(1);
        Tag::new(kind, self.persistent_runs, true)
    }

    /// A schedule kept from an equal call, moved to these buffers, unless they overlap: that is
    /// for who checks the call to say.
    #[inline]
    pub fn take(&mut self, call: Asked, send: usize, recv: usize) -> Option<(Known, Box<Schedule>)> {
        match call {
            Asked::Key(key) => self.kept.take(|kept| kept == key, send, recv),
            Asked::Listed(call) => self.listed.take(|kept| kept.tell(call), send, recv),
        }
    }

    /// Keeps a schedule that is done for the next equal call.
    #[inline]
    pub fn keep(&mut self, call: Known, schedule: Box<Schedule>) {
        match call {
            Known::Kept(name) => {
                if let Some(schedule) = self.kept.put_back(name, schedule) {
                    self.listed.put_back(name, schedule);
                }
            }
            first => self.keep_first(first, schedule),
        }
    }

    #[inline(never)]
    fn keep_first(&mut self, call: Known, schedule: Box<Schedule>) {
        self.names += 1;
        match call {
            Known::Key(key) if key.lasts() => self.kept.keep(key, self.names, schedule),
            Known::Lists(lists) => self.listed.keep(lists, self.names, schedule),
            _ => {}
        }
    }

    /// A new schedule for a checked call.
    pub fn compile(&self, call: &Call, send: usize, recv: usize) -> Result<Box<Schedule>> {
        let program = super::compile(call, &self.spread, &self.tariff, &self.forced);
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
        Key {
            kind: Collective::Bcast,
            in_place: false,
            root: 0,
            send: None,
            recv: Some((count, ty)),
            op: None,
        }
    }

    fn state() -> State {
        State::new(Tariff::default(), Forced::default(), Spread::OneHost)
    }

    fn schedule(state: &State, count: u64) -> Box<Schedule> {
        let ty = Type::predefined(INT).unwrap();
        let recv = Side::Even { count, ty: &ty };
        let call = Call {
            kind: Collective::Bcast,
            rank: 0,
            size: 2,
            send: Side::Absent,
            recv,
            in_place: false,
            op: None,
            root: 0,
            across: None,
        };
        state.compile(&call, 0, 64).unwrap()
    }

    /// Whether a schedule is kept for this key; it stays so.
    fn is_kept(state: &mut State, key: &Key) -> bool {
        let taken = state.take(Asked::Key(key), 0, 64);
        taken.map(|(name, schedule)| state.keep(name, schedule)).is_some()
    }

    #[test]
    fn few_schedules_are_kept_and_only_those_whose_handles_last() {
        let mut state = state();
        for count in 1..=5 {
            state.keep(Known::Key(key(count, INT)), schedule(&state, count));
        }
        assert!(!is_kept(&mut state, &key(1, INT)));
        let (name, again) = state.take(Asked::Key(&key(5, INT)), 0, 128).unwrap();
        assert!(!is_kept(&mut state, &key(5, INT)), "it runs");
        state.keep(name, again);
        assert!(is_kept(&mut state, &key(5, INT)));
        let derived = Handle(Handle::FIRST_DYNAMIC);
        state.keep(Known::Key(key(9, derived)), schedule(&state, 9));
        assert!(!is_kept(&mut state, &key(9, derived)));
    }

    #[test]
    fn a_schedule_whose_place_has_gone_to_another_call_is_dropped() {
        let mut state = state();
        state.keep(Known::Key(key(1, INT)), schedule(&state, 1));
        let (name, running) = state.take(Asked::Key(&key(1, INT)), 0, 64).unwrap();
        for count in 2..=5 {
            state.keep(Known::Key(key(count, INT)), schedule(&state, count));
        }
        state.keep(name, running);
        assert!(!is_kept(&mut state, &key(1, INT)));
        for count in 2..=5 {
            assert!(is_kept(&mut state, &key(count, INT)), "{count}");
        }
    }

    #[test]
    fn a_schedule_that_is_kept_moves_to_buffers_apart_only() {
        let mut state = state();
        let ty = Type::predefined(INT).unwrap();
        let side = Side::Even { count: 4, ty: &ty };
        let kind = Collective::Allreduce;
        let sum = crate::op::Op::Predefined(crate::op::Predefined::Sum);
        let call = Call {
            kind,
            rank: 0,
            size: 2,
            send: side,
            recv: side,
            in_place: false,
            op: Some(&sum),
            root: 0,
            across: None,
        };
        let vector = Some((4, INT));
        let key = Key { kind, in_place: false, root: 0, send: vector, recv: vector, op: Some(Handle(0x21)) };
        state.keep(Known::Key(key), state.compile(&call, 64, 128).unwrap());
        for (send, recv) in [(64, 64), (64, 79), (79, 64)] {
            assert!(state.take(Asked::Key(&key), send, recv).is_none());
        }
        assert!(state.take(Asked::Key(&key), 80, 64).is_some());
    }

    #[test]
    fn calls_with_lists_are_equal_only_if_every_number_is() {
        let int = INT.0 as usize;
        let float = 0x219;
        let (counts, displs, wide, other) = ([1, 2, 0], [0, 1, 3], [1i64, 2, 0], [1, 2, 1]);
        let (small, offsets) = (Ints::Small(&counts), Ints::Small(&displs));
        let recv = Given::Varied { counts: small, displs: offsets, ty: int };
        let call = Listed {
            kind: Collective::Allgatherv,
            in_place: false,
            size: 3,
            root: 0,
            send: Given::Even { count: 2, ty: int },
            recv,
            op: None,
        };
        let lists = Lists::of(&call).unwrap();
        assert!(lists.tell(&call));
        let large = Given::Varied { counts: Ints::Large(&wide), displs: offsets, ty: int };
        assert!(lists.tell(&Listed { recv: large, ..call }), "the width of the numbers says nothing");
        let differ = [
            Listed { kind: Collective::Gatherv, ..call },
            Listed { in_place: true, ..call },
            Listed { root: 1, ..call },
            Listed { send: Given::Absent, ..call },
            Listed { send: Given::Even { count: 3, ty: int }, ..call },
            Listed { send: Given::Even { count: 2, ty: float }, ..call },
            Listed { recv: Given::Absent, ..call },
            Listed { recv: Given::Varied { counts: Ints::Small(&other), displs: offsets, ty: int }, ..call },
            Listed { recv: Given::Varied { counts: offsets, displs: small, ty: int }, ..call },
            Listed { recv: Given::Varied { counts: small, displs: Ints::Small(&[]), ty: int }, ..call },
            Listed { recv: Given::Varied { counts: small, displs: offsets, ty: float }, ..call },
            Listed { op: Some(Handle(0x21)), ..call },
        ];
        for call in differ {
            assert!(!lists.tell(&call), "{call:?}");
        }
        let derived = Handle::FIRST_DYNAMIC as usize;
        assert!(Lists::of(&Listed { send: Given::Even { count: 2, ty: derived }, ..call }).is_none());
        let types = [int, int, derived];
        let mixed = Given::Mixed { counts: small, displs: offsets, types: &types };
        assert!(Lists::of(&Listed { recv: mixed, ..call }).is_none());
    }

    #[test]
    fn persistent_collectives_count_for_themselves() {
        let mut state = state();
        let first = state.next_tag(Collective::Bcast);
        let persistent = state.next_persistent_tag(Collective::Bcast);
        assert_ne!(first, persistent);
        assert_eq!(state.next_tag(Collective::Bcast).run(), first.run() + 1);
        assert_eq!(state.next_persistent_tag(Collective::Bcast).run(), persistent.run() + 1);
    }
}
