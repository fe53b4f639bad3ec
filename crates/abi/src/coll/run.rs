//! Where a schedule meets the rank's communicators and requests: run to its end, as a request,
//! again and again.

use mpi::coll::{Asked, Call, Known, Progress, Schedule, Side, State, Type};
use mpi::collio::{Begun, InFlight};
use mpi::error::Result;
use mpi::handle::Handle;
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
    /// Ranks of the communicator.
    pub size: usize,
}

/// Who this rank is in an intracommunicator.
#[inline]
pub fn site(cx: &Cx, comm: Handle) -> Result<Site> {
    let world = cx.world();
    let place = &world.comm(comm)?.place;
    Ok(Site { rank: place.rank as usize, size: place.size() as usize })
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
                cx.world().abandon(schedule, flight);
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
    let place = held.place.clone();
    let running =
        Running { schedule, flight: InFlight::default(), place: place.clone(), then: Then::Nothing };
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
    let site = site(cx, comm)?;
    let call = internal(mpi::coll::Kind::Barrier, site, Side::Absent, Side::Absent);
    let schedule = with_state(cx, comm, |state| state.compile(&call, 0, 0))??;
    blocking(cx, comm, schedule).map(drop)
}

/// `MPI_UINT64_T`, the type of what the library itself exchanges.
fn word() -> Type {
    Type::predefined(Handle(0x259)).expect("MPI_UINT64_T is predefined")
}

/// Gathers `N` words of every member on all of them.
pub fn exchange_words<const N: usize>(cx: &Cx, comm: Handle, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
    let site = site(cx, comm)?;
    let mut words = vec![0; N * (1 + site.size)].into_boxed_slice();
    words[..N].copy_from_slice(&mine);
    let ty = word();
    let side = Side::Even { count: N as u64, ty: &ty };
    let call = internal(mpi::coll::Kind::Allgather, site, side, side);
    let send = words.as_mut_ptr() as usize;
    let recv = send + size_of_val(&mine);
    let mut schedule = with_state(cx, comm, |state| state.compile(&call, send, recv))??;
    schedule.own(words);
    let done = blocking(cx, comm, schedule)?;
    Ok(done.words()[N..].as_chunks().0.to_vec())
}

/// The schedule that spreads one word of member 0, which is among its own words when it is done.
pub fn spread_word(cx: &Cx, comm: Handle, mine: u64) -> Result<Box<Schedule>> {
    let site = site(cx, comm)?;
    let ty = word();
    let call = internal(mpi::coll::Kind::Bcast, site, Side::Absent, Side::Even { count: 1, ty: &ty });
    let mut words = vec![mine].into_boxed_slice();
    let mut schedule = with_state(cx, comm, |state| state.compile(&call, 0, words.as_mut_ptr() as usize))??;
    schedule.own(words);
    Ok(schedule)
}

fn internal<'a>(kind: mpi::coll::Kind, site: Site, send: Side<'a>, recv: Side<'a>) -> Call<'a> {
    Call { kind, rank: site.rank, size: site.size, send, recv, in_place: false, op: None, root: 0 }
}
