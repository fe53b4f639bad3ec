//! MPI 5.0 chapter 7: communicators. New ones get a context id that their member 0 allocates and
//! spreads; ids are never used twice, so nothing has to be agreed on when one is freed.

use std::sync::Arc;

use fabric::Device as _;
use mpi::attr::Holder;
use mpi::comm::{COMM_NULL, COMM_SELF, COMM_WORLD, Comms, Place, Purpose};
use mpi::errhandler;
use mpi::error::{Class, Result, fail};
use mpi::group::{Comparison, Group, UNDEFINED};
use mpi::handle::Handle;
use mpi::info::Info;
use mpi::kinds;
use mpi::request::Then;

use crate::coll::run;
use crate::cx::Cx;
use crate::kind::handle::HandleRef;
use crate::kind::output::Out;
use crate::kind::text::{Text, TextOut};
use crate::layout::MAX_OBJECT_NAME;
use crate::{attr, dynamic, inter, letter, places, wait};

/// This process in a communicator. The rank is not asked: a signal handler that interrupted MPI may be
/// what calls.
fn place(comm: Handle) -> Result<places::Place> {
    places::of(comm).map_or_else(|| Comms::refuse(comm), Ok)
}

/// `MPI_Comm_size`.
pub fn size(_: &Cx, comm: Handle, size: Out<i32>) -> Result {
    size.set(place(comm)?.size as i32);
    Ok(())
}

/// `MPI_Comm_rank`.
pub fn rank(_: &Cx, comm: Handle, rank: Out<i32>) -> Result {
    rank.set(place(comm)?.rank as i32);
    Ok(())
}

/// `MPI_Comm_compare`.
pub fn compare(cx: &Cx, comm1: Handle, comm2: Handle, result: Out<i32>) -> Result {
    let world = cx.world();
    let relation =
        if comm1 == comm2 { Comparison::Ident } else { world.comm(comm1)?.compare(world.comm(comm2)?) };
    result.set(relation as i32);
    Ok(())
}

/// `MPI_Comm_group`.
pub fn group(cx: &Cx, comm: Handle, group: Out<Handle>) -> Result {
    let mut world = cx.world();
    let comm = world.comm(comm)?;
    let (members, session) = (Group::clone(&comm.place.mine), comm.session);
    group.set(world.objects.add_group_of(members, session)?);
    Ok(())
}

/// `MPI_Comm_set_name`.
pub fn set_name(cx: &Cx, comm: Handle, name: Text) -> Result {
    // SAFETY: the application passes a terminated string; it is copied at once.
    let name = unsafe { name.bytes() };
    let name = &name[..name.len().min(MAX_OBJECT_NAME - 1)];
    cx.world().comm_mut(comm)?.set_name(name);
    Ok(())
}

/// `MPI_Comm_get_name`; the null handle has a name too (MPI 5.0 section 7.8).
pub fn get_name(cx: &Cx, comm: Handle, name: TextOut, resultlen: Out<i32>) -> Result {
    let world = cx.world();
    let text = if comm == COMM_NULL { b"MPI_COMM_NULL" } else { world.comm(comm)?.name() };
    // SAFETY: MPI says the buffer has room for MPI_MAX_OBJECT_NAME bytes.
    let len = unsafe { name.set(text, MAX_OBJECT_NAME) };
    resultlen.set(len as i32);
    Ok(())
}

/// `MPI_Comm_set_info`.
pub fn set_info(cx: &Cx, comm: Handle, info: Handle) -> Result {
    let hints = hints(cx.anytime().optional_info(info)?);
    cx.world().comm_mut(comm)?.info = hints;
    Ok(())
}

/// `MPI_Comm_get_info`.
pub fn get_info(cx: &Cx, comm: Handle, info: Out<Handle>) -> Result {
    let mut hints = cx.world().comm(comm)?.info.clone();
    hints.provide(kinds::KEY, &memory_kinds(cx, comm)?);
    info.set(cx.anytime().infos.insert(hints)?);
    Ok(())
}

/// The kinds of memory that there are for a communicator: those of its session, else those of the start of the program.
pub fn memory_kinds(cx: &Cx, comm: Handle) -> Result<String> {
    let of_session = {
        let world = cx.world();
        let session = world.comm(comm)?.session.and_then(|session| world.objects.session(session).ok());
        session.and_then(|session| session.info.hint(kinds::KEY)).map(str::to_string)
    };
    Ok(of_session
        .unwrap_or_else(|| kinds::provided(cx.anytime().info_env.hint(kinds::KEY).unwrap_or_default())))
}

/// What an info object says that communicators keep.
pub fn hints(info: Option<&Info>) -> Info {
    let mut hints = info.cloned().unwrap_or_default();
    kinds::keep(&mut hints);
    hints
}

/// Puts a communicator with this place into the table; the error handler is the parent's.
pub fn add(cx: &Cx, parent: Handle, place: Place) -> Result<Handle> {
    let new = put(cx, place)?;
    let mut world = cx.world();
    world.comm_mut(new)?.session = world.comm(parent)?.session;
    cx.anytime().errhandlers.inherit(errhandler::Raiser::Comm, parent, new);
    Ok(new)
}

/// Puts a communicator of no parent into the table.
pub fn put(cx: &Cx, place: Place) -> Result<Handle> {
    let mut world = cx.world();
    let (rank, size) = (place.rank, place.size());
    let new = world.add_comm(place)?;
    places::add(new, rank, size);
    Ok(new)
}

/// A duplicate without context: attributes are copied first, since their functions may refuse.
fn duplicate(cx: &Cx, comm: Handle, info: Option<Handle>) -> Result<Handle> {
    let attrs = attr::copy_all(cx, Holder::Comm, comm)?;
    let (place, topology) = {
        let world = cx.world();
        let held = world.comm(comm)?;
        (held.place.clone(), held.topology.clone())
    };
    let new = add(cx, comm, place)?;
    let mut world = cx.world();
    let hints = match info {
        None => world.comm(comm)?.info.clone(),
        Some(info) => hints(cx.anytime().optional_info(info)?),
    };
    let made = world.comm_mut(new)?;
    made.attrs = attrs;
    made.info = hints;
    made.topology = topology;
    Ok(new)
}

fn dup_any(cx: &Cx, comm: Handle, info: Option<Handle>, newcomm: Out<Handle>) -> Result {
    newcomm.set(COMM_NULL);
    let new = duplicate(cx, comm, info)?;
    let context = cx.world().new_context();
    let schedule = run::spread_word(cx, comm, context)?;
    let done = run::blocking(cx, comm, schedule)?;
    cx.world().comm_mut(new)?.set_context(done.words()[0]);
    newcomm.set(new);
    Ok(())
}

/// `MPI_Comm_dup`.
pub fn dup(cx: &Cx, comm: Handle, newcomm: Out<Handle>) -> Result {
    dup_any(cx, comm, None, newcomm)
}

/// `MPI_Comm_dup_with_info`.
pub fn dup_with_info(cx: &Cx, comm: Handle, info: Handle, newcomm: Out<Handle>) -> Result {
    dup_any(cx, comm, Some(info), newcomm)
}

fn idup_any(
    cx: &Cx,
    comm: Handle,
    info: Option<Handle>,
    newcomm: Out<Handle>,
    request: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let new = duplicate(cx, comm, info)?;
    let context = cx.world().new_context();
    let schedule = run::spread_word(cx, comm, context)?;
    newcomm.set(new);
    request.set(run::launch(cx, comm, schedule, Then::NameComm(new))?);
    Ok(())
}

/// `MPI_Comm_idup`.
pub fn idup(cx: &Cx, comm: Handle, newcomm: Out<Handle>, request: Out<Handle>) -> Result {
    idup_any(cx, comm, None, newcomm, request)
}

/// `MPI_Comm_idup_with_info`.
pub fn idup_with_info(
    cx: &Cx,
    comm: Handle,
    info: Handle,
    newcomm: Out<Handle>,
    request: Out<Handle>,
) -> Result {
    idup_any(cx, comm, Some(info), newcomm, request)
}

/// Makes a communicator of some members of `comm`, all of whose members call this; `members` are
/// ranks of the job, `contexts` what each member of `comm` would allocate.
pub(crate) fn among(cx: &Cx, comm: Handle, members: Group, contexts: &[u64]) -> Result<Handle> {
    let (me, parent) = {
        let world = cx.world();
        (world.rank(), world.comm(comm)?.place.clone())
    };
    let Some(rank) = members.rank_of(me) else { return Ok(COMM_NULL) };
    let leader = parent.mine.rank_of(members.world_rank(0));
    let Some(leader) = leader else {
        return fail(Class::GROUP, "argument `group` is not a subset of the communicator's group");
    };
    let context = contexts[leader as usize];
    add(cx, comm, Place::within(context, Arc::new(members), rank))
}

fn check_subset(cx: &Cx, comm: Handle, group: Handle) -> Result<Group> {
    let world = cx.world();
    let group = world.objects.group(group)?;
    let parent = &world.comm(comm)?.place.mine;
    match group.iter().find(|rank| parent.rank_of(*rank).is_none()) {
        None => Ok(Group::clone(group)),
        Some(rank) => fail(
            Class::GROUP,
            format!("argument `group` holds rank {rank} of MPI_COMM_WORLD, which is not in the communicator"),
        ),
    }
}

/// `MPI_Comm_create`.
pub fn create(cx: &Cx, comm: Handle, group: Handle, newcomm: Out<Handle>) -> Result {
    newcomm.set(COMM_NULL);
    let members = check_subset(cx, comm, group)?;
    if inter::is_inter(cx, comm)? {
        newcomm.set(inter::create_some(cx, comm, &members)?);
        return Ok(());
    }
    let context = cx.world().new_context();
    let all = run::exchange_words(cx, comm, [context])?;
    let contexts: Vec<u64> = all.into_iter().map(|[context]| context).collect();
    newcomm.set(among(cx, comm, members, &contexts)?);
    Ok(())
}

/// `MPI_Comm_create_group`: only the members of the group call it, so its member 0 sends the
/// context to each of the others.
pub fn create_group(cx: &Cx, comm: Handle, group: Handle, tag: i32, newcomm: Out<Handle>) -> Result {
    newcomm.set(COMM_NULL);
    if inter::is_inter(cx, comm)? {
        return fail(Class::COMM, "argument `comm` is an intercommunicator, must be an intracommunicator");
    }
    let members = check_subset(cx, comm, group)?;
    let (me, parent, own) = {
        let mut world = cx.world();
        let context = world.new_context();
        (world.rank(), world.comm(comm)?.place.clone(), context)
    };
    let Some(rank) = members.rank_of(me) else { return Ok(()) };
    let context = if rank == 0 {
        let letters = members.iter().skip(1).map(|to| (to, vec![own]));
        letter::post(cx, parent.context_for(Purpose::Creation), tag, letters)?;
        own
    } else {
        letter::hear(cx, members.world_rank(0), parent.context_for(Purpose::Creation), tag, 1)?[0]
    };
    newcomm.set(add(cx, comm, Place::within(context, Arc::new(members), rank))?);
    Ok(())
}

/// `MPI_Comm_split`.
pub fn split(cx: &Cx, comm: Handle, color: i32, key: i32, newcomm: Out<Handle>) -> Result {
    newcomm.set(COMM_NULL);
    if color < 0 && color != UNDEFINED {
        return fail(
            Class::ARG,
            format!("argument `color` is {color}, must not be negative unless MPI_UNDEFINED"),
        );
    }
    newcomm.set(split_by(cx, comm, color, key)?);
    Ok(())
}

fn split_by(cx: &Cx, comm: Handle, color: i32, key: i32) -> Result<Handle> {
    if inter::is_inter(cx, comm)? {
        return inter::split(cx, comm, color, key);
    }
    let context = cx.world().new_context();
    let all = run::exchange_words(cx, comm, [color as u32 as u64, key as u32 as u64, context])?;
    if color == UNDEFINED {
        return Ok(COMM_NULL);
    }
    let parent = cx.world().comm(comm)?.place.mine.clone();
    let mut same: Vec<(i32, u32)> = (0u32..)
        .zip(&all)
        .filter(|(_, [c, ..])| *c as u32 as i32 == color)
        .map(|(rank, [_, key, _])| (*key as u32 as i32, rank))
        .collect();
    same.sort();
    let members: Vec<u32> = same.iter().map(|(_, rank)| parent.world_rank(*rank)).collect();
    let contexts: Vec<u64> = all.iter().map(|words| words[2]).collect();
    among(cx, comm, Group::from_ranks(members), &contexts)
}

/// `MPI_COMM_TYPE_SHARED` and the types by hardware.
const SHARED: i32 = 221;
const HW_UNGUIDED: i32 = 222;
const HW_GUIDED: i32 = 223;
const RESOURCE_GUIDED: i32 = 224;

/// `MPI_Comm_split_type`: all ranks share the host. Below it no hardware level is told apart, so
/// the unguided split finds no smaller part, and of the guided ones only the host is known, and the sets of processes.
pub fn split_type(
    cx: &Cx,
    comm: Handle,
    split_type: i32,
    key: i32,
    info: Handle,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let (resource, set) = {
        let anytime = cx.anytime();
        let info = anytime.optional_info(info)?;
        let hint = |key| info.and_then(|info| info.hint(key)).map(str::to_string);
        (hint("mpi_hw_resource_type"), hint("mpi_pset_name"))
    };
    let color = match split_type {
        SHARED => host(cx, comm)?,
        HW_GUIDED | RESOURCE_GUIDED if matches!(resource.as_deref(), Some("mpi_shared_memory")) => {
            host(cx, comm)?
        }
        RESOURCE_GUIDED => set.and_then(|name| of_set(cx, &name)).unwrap_or(UNDEFINED),
        HW_GUIDED | HW_UNGUIDED | UNDEFINED => UNDEFINED,
        other => return fail(Class::ARG, format!("argument `split_type` is {other}, not a split type")),
    };
    newcomm.set(split_by(cx, comm, color, key)?);
    Ok(())
}

/// The number of the process set of this name that holds this rank: its first member. Of sets that begin alike all ranks name
/// the same one.
fn of_set(cx: &Cx, name: &str) -> Option<i32> {
    let world = cx.world();
    let set = world.objects.sets.iter().find(|set| set.name == name)?;
    set.members.rank_of(world.rank())?;
    Some(set.members.world_rank(0) as i32)
}

/// The number of this rank's host: the same on all ranks that share memory. Those of other jobs never do: where there are
/// some, the number is that of the first rank of the communicator that does.
pub fn host(cx: &Cx, comm: Handle) -> Result<i32> {
    let world = cx.world();
    let (place, me, size) = (&world.comm(comm)?.place, world.rank() as usize, world.job_size());
    let hosts = world.engine.device().hosts();
    if !place.has_others(size) {
        return Ok(hosts.map_or(0, |hosts| hosts[me] as i32));
    }
    let is_near = |peer: u32| peer < size && hosts.is_none_or(|hosts| hosts[peer as usize] == hosts[me]);
    Ok(place.mine.iter().position(is_near).map_or(0, |first| first as i32))
}

/// `MPI_Comm_disconnect`. Within a job there is nothing to take apart: then freeing it is all there is to do.
pub fn disconnect(cx: &Cx, comm: HandleRef) -> Result {
    let is_mixed = {
        let world = cx.world();
        world.comm(comm.handle)?.place.has_others(world.job_size())
    };
    if is_mixed {
        dynamic::disconnect(cx, comm.handle)?;
    }
    free(cx, comm)
}

/// `MPI_Comm_free`. Operations under way on it go on.
pub fn free(cx: &Cx, comm: HandleRef) -> Result {
    if matches!(comm.handle, COMM_WORLD | COMM_SELF) {
        return fail(Class::COMM, "argument `comm` is a predefined communicator, which cannot be freed");
    }
    attr::delete_all(cx, Holder::Comm, comm.handle)?;
    remove(cx, comm.handle)?;
    comm.set(COMM_NULL);
    Ok(())
}

/// Takes a communicator away whose attributes have gone.
pub fn remove(cx: &Cx, comm: Handle) -> Result {
    wait::until(cx, |world| {
        let drained = world.comm(comm)?.bsend.is_drained();
        Ok(drained.then_some(()))
    })?;
    let mut world = cx.world();
    world.objects.comms.remove(comm);
    places::remove(comm);
    dynamic::part(&mut world);
    cx.anytime().errhandlers.release(errhandler::Raiser::Comm, comm);
    Ok(())
}
