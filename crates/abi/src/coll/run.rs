//! Where a schedule meets the rank's communicators and requests: run to its end, as a request,
//! again and again.

use mpi::coll::{
    Across, Asked, Call, Collective, Ints, Known, Progress, Schedule, Side, State, Type, args, inter,
    laid_out,
};
use mpi::collio::{Begun, InFlight};
use mpi::error::{Class, Error, Result};
use mpi::handle::Handle;
use mpi::op::{Op, Predefined};
use mpi::request::{Recipe, Running, Then};

use crate::cx::Cx;
use crate::global::World;
use crate::report::Waits;
use crate::{engine, op, wait};

/// This rank in a communicator.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Its rank.
    pub rank: usize,
    /// Ranks of the communicator, on an intercommunicator those of this rank's group.
    pub size: usize,
    /// The other group of an intercommunicator.
    pub across: Option<Across>,
}

/// What this rank does in a collective with a root.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The root, as the call's key has it.
    pub root: usize,
    /// Whether this rank is it.
    pub is_root: bool,
    /// Whether it has a part of the data beside the root: on an intercommunicator those of the other group.
    pub takes_part: bool,
}

impl Site {
    /// This rank's part in a collective with this root.
    #[inline]
    pub fn part(&self, root: i32) -> Result<Part> {
        let Some(across) = self.across else {
            let root = args::root(root, self.size)?;
            return Ok(Part { root, is_root: root == self.rank, takes_part: true });
        };
        let root = across.root(root)?;
        let is_root = root == inter::ROOT;
        Ok(Part { root, is_root, takes_part: !is_root && root != inter::NOBODY })
    }

    /// Whether this rank works in place: see [`args::in_place`].
    #[inline]
    pub fn in_place(&self, kind: Collective, send: usize, recv: usize, rooted: bool) -> Result<bool> {
        if self.across.is_some() {
            return across_in_place(kind, send, recv);
        }
        args::in_place(kind, send, recv, rooted)
    }

    /// How many blocks arrays of a call have: one for each whom data goes to or comes from.
    #[inline]
    pub fn blocks(&self) -> usize {
        self.across.map_or(self.size, |across| across.remote)
    }
}

#[cold]
fn across_in_place(kind: Collective, send: usize, recv: usize) -> Result<bool> {
    let in_place = match kind {
        Collective::Bcast | Collective::Barrier => false,
        Collective::Scatter | Collective::Scatterv => recv == args::IN_PLACE,
        _ => send == args::IN_PLACE,
    };
    inter::check(kind, in_place).map(|()| false)
}

/// Who this rank is in a communicator.
#[inline]
pub fn site(cx: &Cx, comm: Handle) -> Result<Site> {
    let world = cx.world();
    let place = &world.comm(comm)?.place;
    let across = || Across { remote: place.peers_size() as usize, is_first: place.is_first() };
    let across = place.is_inter().then(across);
    Ok(Site { rank: place.rank as usize, size: place.size() as usize, across })
}

/// Who this rank is among all whom a collective joins, for what the library itself exchanges with them.
fn crowd(cx: &Cx, comm: Handle) -> Result<Site> {
    let world = cx.world();
    let crowd = &world.comm(comm)?.crowd;
    Ok(Site { rank: crowd.rank as usize, size: crowd.peers_size() as usize, across: None })
}

/// Lets `f` use what the communicator remembers for its collectives.
#[inline]
pub fn with_state<R>(cx: &Cx, comm: Handle, f: impl FnOnce(&mut State) -> R) -> Result<R> {
    Ok(f(&mut cx.world().comm_mut(comm)?.coll))
}

/// Runs a collective of which `call` tells that a schedule is kept; whether there was one.
#[inline]
pub fn again(cx: &Cx, comm: Handle, call: Asked, send: usize, recv: usize) -> Result<bool> {
    let mut flight = InFlight::waiting();
    let begun = {
        let mut world = cx.world();
        let begun = world.begin(comm, call, (send, recv), &mut flight)?;
        if let Some(Begun::Done) = begun {
            world.engine.awake();
            engine::leave(&world);
        }
        begun
    };
    match begun {
        None => Ok(false),
        Some(Begun::Done) => Ok(true),
        Some(Begun::Goes(schedule, progress, known)) => {
            let done = finish(cx, comm, schedule, flight, progress)?;
            keep(cx, comm, known, done).map(|()| true)
        }
    }
}

/// Runs a schedule to its end, and gives it back.
pub fn blocking(cx: &Cx, comm: Handle, mut schedule: Box<Schedule>) -> Result<Box<Schedule>> {
    with_state(cx, comm, |state| schedule.start(state.next_tag(schedule.program().kind)))?;
    finish(cx, comm, schedule, InFlight::waiting(), Progress::Pending)
}

/// Runs a schedule that has come as far as `progress` to its end, and gives it back.
fn finish(
    cx: &Cx,
    comm: Handle,
    mut schedule: Box<Schedule>,
    mut flight: InFlight,
    mut progress: Progress,
) -> Result<Box<Schedule>> {
    loop {
        match progress {
            Progress::Done => return Ok(schedule),
            Progress::Call(reduce) => {
                op::call(&reduce);
                schedule.called();
            }
            Progress::Pending => {}
        }
        let mut run = (&mut *schedule, &mut flight);
        let ready = |(schedule, flight): &mut (&mut Schedule, &mut InFlight), world: &mut World| {
            Ok(match world.advance_on(comm, schedule, flight)? {
                Progress::Pending => None,
                other => Some(other),
            })
        };
        let waited =
            wait::on(cx, &mut run, ready, |(schedule, flight)| Waits::Collective(comm, schedule, flight));
        match waited {
            Ok(further) => progress = further,
            Err(error) => {
                cx.world().leave_on(comm, schedule, flight, &error);
                return Err(error);
            }
        }
    }
}

/// Starts a schedule; the request completes when it is done. If the call is known by something the schedule is
/// kept then.
pub fn nonblocking(cx: &Cx, comm: Handle, schedule: Box<Schedule>, call: Option<Known>) -> Result<Handle> {
    launch(cx, comm, schedule, call.map_or(Then::Nothing, |call| Then::Keep(comm, call)))
}

/// As [`nonblocking`], with something to do at the end.
pub fn launch(cx: &Cx, comm: Handle, schedule: Box<Schedule>, then: Then) -> Result<Handle> {
    let (handle, is_done) = {
        let mut world = cx.world();
        let launched = world.launch(comm, schedule, then)?;
        engine::leave(&world);
        launched
    };
    if !is_done {
        wait::progress(cx)?;
    }
    Ok(handle)
}

/// An inactive persistent request that runs the schedule on each start, with one tag.
pub fn persistent(cx: &Cx, comm: Handle, schedule: Box<Schedule>) -> Result<Handle> {
    let mut world = cx.world();
    let held = world.comm_mut(comm)?;
    let tag = held.coll.next_persistent_tag(schedule.program().kind);
    let place = held.crowd.clone();
    let (flight, place_of_it) = (InFlight::default(), place.clone());
    let running = Running { schedule, flight, place: place_of_it, then: Then::Nothing, copies: None };
    let recipe = Recipe::Collective(Some(Box::new(running)), tag);
    world.objects.requests.add_persistent(comm, recipe, place)
}

/// Keeps a schedule for the next equal call, where that pays.
#[inline]
pub fn keep(cx: &Cx, comm: Handle, call: Known, schedule: Box<Schedule>) -> Result {
    with_state(cx, comm, |state| state.keep(call, schedule))
}

/// Waits for all members.
pub fn barrier(cx: &Cx, comm: Handle) -> Result {
    let site = crowd(cx, comm)?;
    let call = internal(Collective::Barrier, site, Side::Absent, Side::Absent);
    let schedule = with_state(cx, comm, |state| state.compile(&call, 0, 0))??;
    blocking(cx, comm, schedule).map(drop)
}

/// `MPI_UINT64_T`, the type of what the library itself exchanges.
pub fn word() -> Type {
    Type::predefined(Handle(0x259)).expect("MPI_UINT64_T is predefined")
}

/// Waits for all members; the least of what they have told, word by word.
pub fn least_words<const N: usize>(cx: &Cx, comm: Handle, mine: [u64; N]) -> Result<[u64; N]> {
    let site = crowd(cx, comm)?;
    let mut words = vec![0; 2 * N].into_boxed_slice();
    words[..N].copy_from_slice(&mine);
    let (ty, op) = (word(), Op::Predefined(Predefined::Min));
    let side = Side::Even { count: N as u64, ty: &ty };
    let call = Call { op: Some(&op), ..internal(Collective::Allreduce, site, side, side) };
    let send = words.as_mut_ptr() as usize;
    let recv = send + size_of_val(&mine);
    let mut schedule = with_state(cx, comm, |state| state.compile(&call, send, recv))??;
    schedule.own(words);
    let done = blocking(cx, comm, schedule)?;
    Ok(*done.words()[N..].first_chunk().expect("as many as were told"))
}

/// Gathers `N` words of every member on all of them.
pub fn exchange_words<const N: usize>(cx: &Cx, comm: Handle, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
    let site = crowd(cx, comm)?;
    let mut words = vec![0; N * (1 + site.size)].into_boxed_slice();
    words[..N].copy_from_slice(&mine);
    let ty = word();
    let side = Side::Even { count: N as u64, ty: &ty };
    let call = internal(Collective::Allgather, site, side, side);
    let send = words.as_mut_ptr() as usize;
    let recv = send + size_of_val(&mine);
    let mut schedule = with_state(cx, comm, |state| state.compile(&call, send, recv))??;
    schedule.own(words);
    let done = blocking(cx, comm, schedule)?;
    Ok(done.words()[N..].as_chunks().0.to_vec())
}

/// A list of words for each member, one behind the other.
pub struct Lists {
    words: Words,
    /// Where each ends.
    ends: Vec<usize>,
}

enum Words {
    Made(Vec<u64>),
    /// Behind so many words that were sent.
    Came(Box<Schedule>, usize),
}

impl Lists {
    /// None yet, with room for so many words.
    pub fn with_room(words: usize) -> Lists {
        Lists { words: Words::Made(Vec::with_capacity(words)), ends: Vec::new() }
    }

    /// The list of the next member: what `f` appends.
    pub fn push(&mut self, f: impl FnOnce(&mut Vec<u64>)) {
        let Words::Made(words) = &mut self.words else { unreachable!("lists that came are not added to") };
        f(words);
        self.ends.push(words.len());
    }

    /// The lists, by member.
    pub fn iter(&self) -> impl Iterator<Item = &[u64]> + Clone {
        let words = match &self.words {
            Words::Made(words) => words,
            Words::Came(schedule, sent) => &schedule.words()[*sent..],
        };
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(move |(start, end)| &words[*start..*end])
    }

    /// Words of all lists.
    pub fn word_count(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn lens(&self) -> impl Iterator<Item = u64> {
        self.iter().map(|list| list.len() as u64)
    }
}

impl FromIterator<Vec<u64>> for Lists {
    fn from_iter<I: IntoIterator<Item = Vec<u64>>>(lists: I) -> Lists {
        let mut all = Lists::with_room(0);
        lists.into_iter().for_each(|list| all.push(|words| words.extend(list)));
        all
    }
}

/// Gives every member its list of words, and returns what the members have given this one.
pub fn exchange_lists(cx: &Cx, comm: Handle, lists: Lists) -> Result<Lists> {
    let site = site(cx, comm)?;
    let ty = word();
    let one = Side::Even { count: 1, ty: &ty };
    let lens: Vec<u64> = lists.lens().collect();
    let call = internal(mpi::coll::Collective::Alltoall, site, one, one);
    let (done, at) = swap_words(cx, comm, &call, lens, site.size)?;
    let (out, out_at) = laid_out(lists.lens())?;
    let (into, into_at) = laid_out(done.words()[at..].iter().copied())?;
    let side =
        |counts, displs| Side::Varied { counts: Ints::Large(counts), displs: Ints::Large(displs), ty: &ty };
    let call = internal(mpi::coll::Collective::Alltoallv, site, side(&out, &out_at), side(&into, &into_at));
    let room = into.iter().sum::<i64>() as usize;
    let Words::Made(words) = lists.words else { unreachable!("what came is not sent on") };
    let (done, sent) = swap_words(cx, comm, &call, words, room)?;
    let ends = into_at.iter().zip(&into).map(|(at, len)| (*at + *len) as usize).collect();
    Ok(Lists { words: Words::Came(done, sent), ends })
}

/// Runs a call with these words in its send buffer; when it is done what came into its receive buffer of `room` words lies
/// behind them, from that word on.
fn swap_words(
    cx: &Cx,
    comm: Handle,
    call: &Call,
    mut words: Vec<u64>,
    room: usize,
) -> Result<(Box<Schedule>, usize)> {
    let sent = words.len();
    words.try_reserve_exact(room).map_err(|_| {
        Error::new(Class::NO_MEM, format!("there is no memory for {room} words that the members send"))
    })?;
    words.resize(sent + room, 0);
    let mut words = words.into_boxed_slice();
    let send = words.as_mut_ptr() as usize;
    let recv = send + sent * size_of::<u64>();
    let mut schedule = with_state(cx, comm, |state| state.compile(call, send, recv))??;
    schedule.own(words);
    Ok((blocking(cx, comm, schedule)?, sent))
}

/// The schedule that spreads one word of member 0, which is among its own words when it is done.
pub fn spread_word(cx: &Cx, comm: Handle, mine: u64) -> Result<Box<Schedule>> {
    spread(cx, comm, 0, vec![mine])
}

/// Tells all members these words of member `root`, of which all give the same number.
pub fn spread_words(cx: &Cx, comm: Handle, root: usize, words: Vec<u64>) -> Result<Vec<u64>> {
    let schedule = spread(cx, comm, root, words)?;
    Ok(blocking(cx, comm, schedule)?.words().to_vec())
}

fn spread(cx: &Cx, comm: Handle, root: usize, words: Vec<u64>) -> Result<Box<Schedule>> {
    let site = crowd(cx, comm)?;
    let ty = word();
    let recv = Side::Even { count: words.len() as u64, ty: &ty };
    let call = Call { root, ..internal(Collective::Bcast, site, Side::Absent, recv) };
    let mut words = words.into_boxed_slice();
    let mut schedule = with_state(cx, comm, |state| state.compile(&call, 0, words.as_mut_ptr() as usize))??;
    schedule.own(words);
    Ok(schedule)
}

fn internal<'a>(kind: Collective, site: Site, send: Side<'a>, recv: Side<'a>) -> Call<'a> {
    Call {
        kind,
        rank: site.rank,
        size: site.size,
        send,
        recv,
        in_place: false,
        op: None,
        root: 0,
        across: None,
    }
}
