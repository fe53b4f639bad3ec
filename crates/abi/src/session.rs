//! MPI 5.0 section 11.3: sessions, process sets, and communicators of groups that have none yet. A session needs no other
//! process; the first communicator with others, or `MPI_Init`, connects the process to its job ([`crate::connect`]). The last session
//! that ends leaves it connected, for another may come.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use std::sync::Arc;

use fabric::settings::told;
use mpi::attr::Holder;
use mpi::comm::{COMM_NULL, Place};
use mpi::errhandler;
use mpi::error::{Class, Result, fail};
use mpi::group::Group;
use mpi::handle::Handle;
use mpi::info::Info;
use mpi::kinds;
use mpi::objects::{GROUP_EMPTY, GROUP_NULL};
use mpi::request::BufferOwner;
use mpi::session::{Name, OF_HOSTS, ProcessSet, SESSION_NULL, Session, meeting};

use crate::comm::put;
use crate::cx::Cx;
use crate::global::thread;
use crate::kind::handle::{HandleRef, live};
use crate::kind::output::{CountVar, IntRef, Out};
use crate::kind::text::{MaybeTextOut, Text};
use crate::leaders::{self, Bridge, Circle};
use crate::object::Object;
use crate::{attr, bsend, comm, connect, dynamic, letter, start, wait};

/// Levels of thread support by the names that hints have for them.
const LEVELS: [(&str, i32); 4] = [
    ("MPI_THREAD_SINGLE", thread::SINGLE),
    ("MPI_THREAD_FUNNELED", thread::FUNNELED),
    ("MPI_THREAD_SERIALIZED", thread::SERIALIZED),
    ("MPI_THREAD_MULTIPLE", thread::MULTIPLE),
];
const THREAD_LEVEL: &str = "thread_level";

/// `MPI_Session_init`.
pub fn init(cx: &Cx, info: Handle, errhandler: Handle, session: Out<Handle>) -> Result {
    session.set(SESSION_NULL);
    let (wanted, kinds) = {
        let anytime = cx.anytime();
        let asked = anytime.optional_info(info)?;
        let hint = |key| asked.and_then(|info| info.hint(key)).map(str::to_string);
        (hint(THREAD_LEVEL), hint(kinds::KEY).or_else(|| told("TERN_MEMORY_ALLOC_KINDS")))
    };
    let level = match &wanted {
        // A process that begins with a session is ready for all of them anyway.
        None => thread::MULTIPLE,
        Some(name) => match LEVELS.iter().find(|level| level.0 == name) {
            Some(level) => level.1,
            None => return fail(Class::INFO_VALUE, format!("the hint {THREAD_LEVEL} is `{name}`, no level")),
        },
    };
    let made = start::open_session(cx, level, |level| {
        let mut info = Info::new();
        let name = LEVELS.iter().find(|known| known.1 == level).map_or("", |known| known.0);
        info.provide(THREAD_LEVEL, name);
        info.provide(kinds::KEY, &kinds::provided(&kinds.unwrap_or_default()));
        cx.objects().sessions.insert(Session { info, ..Session::default() })
    })?;
    cx.anytime().errhandlers.set(errhandler::Raiser::Session, made, errhandler)?;
    session.set(made);
    Ok(())
}

/// `MPI_Session_finalize`. What the program has left of the session goes with it: its communicators, with their
/// attributes.
pub fn finalize(cx: &Cx, session: HandleRef) -> Result {
    let of = session.handle;
    let left: Vec<Handle> = {
        let world = cx.world();
        let comms = world.objects.comms.iter().filter(|(_, comm)| comm.session == Some(of));
        comms.map(|(handle, _)| handle).collect()
    };
    for comm in left {
        attr::delete_all(cx, Holder::Comm, comm)?;
        comm::remove(cx, comm)?;
    }
    bsend::drain(cx, BufferOwner::Session(of))?;
    wait::until(cx, |world| Ok(world.is_drained().then_some(())))?;
    session.set(SESSION_NULL);
    start::close_session(cx, || {
        cx.objects().sessions.remove(of);
        cx.anytime().errhandlers.release(errhandler::Raiser::Session, of);
    })
}

/// `MPI_Session_get_info`.
pub fn get_info(cx: &Cx, session: Handle, info: Out<Handle>) -> Result {
    let hints = cx.objects().session(session)?.info.clone();
    info.set(cx.anytime().infos.insert(hints)?);
    Ok(())
}

/// `MPI_Session_get_num_psets`; no hint is known.
pub fn get_num_psets(cx: &Cx, _session: Handle, _info: Handle, npset_names: Out<i32>) -> Result {
    npset_names.set(cx.objects().sets.len() as i32);
    Ok(())
}

/// `MPI_Session_get_nth_pset`: the name as far as it fits, and the length it needs with its terminating zero.
pub fn get_nth_pset(
    cx: &Cx,
    _session: Handle,
    _info: Handle,
    n: usize,
    pset_len: IntRef,
    pset_name: MaybeTextOut,
) -> Result {
    let name = {
        let objects = cx.objects();
        let count = objects.sets.len();
        let Some(set) = objects.sets.get(n) else {
            return fail(Class::ARG, format!("argument `n` is {n}, there are {count} process sets"));
        };
        set.name.clone()
    };
    let room = pset_len.get();
    if room < 0 {
        return fail(Class::ARG, format!("argument `pset_len` is {room}, must not be negative"));
    }
    if room > 0 {
        // SAFETY: MPI says that the buffer has `pset_len` bytes.
        unsafe { pset_name.get()?.set(name.as_bytes(), room as usize) };
    }
    pset_len.set(name.len() as i32 + 1);
    Ok(())
}

fn set_named<R>(cx: &Cx, name: Text, f: impl FnOnce(&ProcessSet) -> R) -> Result<R> {
    // SAFETY: the application passes a terminated string, used only here.
    let name = unsafe { name.bytes() };
    // In a URI neither the scheme nor the name of a host tells capitals from small letters (RFC 3986 section 3.1 and 3.2.2).
    let is_named = |set: &&ProcessSet| set.name.as_bytes().eq_ignore_ascii_case(name);
    // Who asks for a host by its name, which may be another one's, waits until it is known what hosts there are.
    if name.get(..OF_HOSTS.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(OF_HOSTS.as_bytes()))
        && cx.objects().sets.iter().find(is_named).is_none()
    {
        connect::job(cx)?;
    }
    let objects = cx.objects();
    match objects.sets.iter().find(is_named) {
        Some(set) => Ok(f(set)),
        None => {
            let name = String::from_utf8_lossy(name);
            fail(Class::ARG, format!("argument `pset_name` is `{name}`, no process set of this job"))
        }
    }
}

/// `MPI_Session_get_pset_info`.
pub fn get_pset_info(cx: &Cx, _session: Handle, pset_name: Text, info: Out<Handle>) -> Result {
    let size = set_named(cx, pset_name, |set| set.members.size())?;
    let mut about = Info::new();
    about.provide("mpi_size", &size.to_string());
    info.set(cx.anytime().infos.insert(about)?);
    Ok(())
}

/// `MPI_Group_from_session_pset`; no group where there is no such set (MPI 5.0 section 11.3.3).
pub fn group_from_pset(cx: &Cx, session: Handle, pset_name: Text, newgroup: Out<Handle>) -> Result {
    newgroup.set(GROUP_NULL);
    let members = set_named(cx, pset_name, |set| set.members.clone())?;
    newgroup.set(cx.objects().add_group_of(members, Some(session))?);
    Ok(())
}

/// `MPI_Session_attach_buffer`.
pub fn attach_buffer(cx: &Cx, session: Handle, buffer: usize, size: u64) -> Result {
    bsend::attach_to(cx, BufferOwner::Session(session), buffer, size)
}

/// `MPI_Session_detach_buffer`.
pub fn detach_buffer(cx: &Cx, session: Handle, address: Out<usize>, size: CountVar) -> Result {
    bsend::detach_from(cx, BufferOwner::Session(session), address, size)
}

/// `MPI_Session_flush_buffer`.
pub fn flush_buffer(cx: &Cx, session: Handle) -> Result {
    bsend::drain(cx, BufferOwner::Session(session))
}

/// `MPI_Session_iflush_buffer`.
pub fn iflush_buffer(cx: &Cx, session: Handle, request: Out<Handle>) -> Result {
    bsend::start_flush(cx, BufferOwner::Session(session), COMM_NULL, request)
}

/// A group of which this process is a member, the session it comes from, and this process's rank in it.
struct Own {
    members: Arc<Group>,
    session: Option<Handle>,
    rank: u32,
}

fn own(cx: &Cx, group: Handle, arg: &str) -> Result<Own> {
    let world = cx.world();
    let members = world.objects.group(group)?.clone();
    let Some(rank) = members.rank_of(world.rank()) else {
        return fail(Class::GROUP, format!("argument `{arg}` does not hold this process, which calls"));
    };
    Ok(Own { members, session: world.objects.origins.get(&group).copied(), rank })
}

/// Puts the communicator that was agreed on into the table.
fn made(cx: &Cx, own: &Own, place: Place, info: Handle, errhandler: Handle) -> Result<Handle> {
    let hints = comm::hints(cx.anytime().optional_info(info)?);
    let new = put(cx, place)?;
    cx.anytime().errhandlers.set(errhandler::Raiser::Comm, new, errhandler)?;
    let mut world = cx.world();
    let made = world.comm_mut(new)?;
    (made.info, made.session) = (hints, own.session);
    Ok(new)
}

/// `MPI_Comm_create_from_group`: member 0 tells the others the context, where those meet who give this group and
/// this name.
pub fn comm_from_group(
    cx: &Cx,
    group: Handle,
    stringtag: Text,
    info: Handle,
    errhandler: Handle,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    if group == GROUP_EMPTY {
        return Ok(());
    }
    let own = own(cx, group, "group")?;
    if own.members.size() > 1 {
        connect::job(cx)?;
    }
    // SAFETY: the application passes a terminated string, used only here.
    let (meets, tag) = meeting(unsafe { stringtag.bytes() }, &names(cx, &[&own.members]));
    let context = if own.rank == 0 {
        let context = cx.world().new_context();
        letter::post(cx, meets, tag, own.members.iter().skip(1).map(|to| (to, vec![context])))?;
        context
    } else {
        letter::hear(cx, own.members.world_rank(0), meets, tag, 1)?[0]
    };
    let place = Place::within(context, own.members.clone(), own.rank);
    newcomm.set(made(cx, &own, place, info, errhandler)?);
    Ok(())
}

/// `MPI_Intercomm_create_from_groups`: the leaders meet where those do who give both groups and this name, and
/// tell the others of their groups.
pub fn inter_from_groups(
    cx: &Cx,
    local_group: Handle,
    local_leader: i32,
    remote_group: usize,
    remote_leader: i32,
    stringtag: Text,
    info: Handle,
    errhandler: Handle,
    newintercomm: Out<Handle>,
) -> Result {
    newintercomm.set(COMM_NULL);
    let own = own(cx, local_group, "local_group")?;
    let leader = member(&own.members, local_leader, "local_leader", "local_group")?;
    connect::job(cx)?;
    // SAFETY: the application passes a terminated string, used only here.
    let name = unsafe { stringtag.bytes() };
    let (meets, tag) = meeting(name, &names(cx, &[&own.members, &Group::EMPTY]));
    let circle = Circle::Letters(&own.members, meets, tag);
    let bridge = || bridge(cx, &own, remote_group, remote_leader, name);
    let met = leaders::agree(cx, &circle, &own.members, [own.rank, leader], bridge)?;
    let place = met.place(own.members.clone(), own.rank);
    newintercomm.set(made(cx, &own, place, info, errhandler)?);
    Ok(())
}

fn member(group: &Group, rank: i32, arg: &str, of: &str) -> Result<u32> {
    match u32::try_from(rank).ok().filter(|rank| *rank < group.size()) {
        Some(rank) => Ok(rank),
        None => {
            let size = group.size();
            fail(
                Class::RANK,
                format!("argument `{arg}` is {rank}, no rank of `{of}`, which has {size} members"),
            )
        }
    }
}

/// Where the leaders meet, which no others find whose groups are not each other's.
fn bridge(cx: &Cx, own: &Own, remote_group: usize, remote_leader: i32, name: &[u8]) -> Result<Bridge> {
    let remote_group = live(Object::Group, remote_group, "remote_group", cx)?;
    let remote = cx.objects().group(remote_group)?.clone();
    let leader = remote.world_rank(member(&remote, remote_leader, "remote_leader", "remote_group")?);
    leaders::check_apart(&own.members, remote.iter())?;
    let mut groups = names(cx, &[&own.members, &remote]);
    groups.sort_unstable();
    let (context, tag) = meeting(name, &groups);
    Ok(Bridge { other: leader, context, tag })
}

/// The members of groups as all of them call each other: by their ranks in the job, unless there are processes of
/// several jobs among them.
fn names(cx: &Cx, groups: &[&Group]) -> Vec<Vec<Name>> {
    let mut world = cx.world();
    let size = world.job_size();
    let has_guests = groups.iter().any(|group| group.iter().any(|process| process >= size));
    let mut name = |process| match has_guests {
        true => dynamic::name(&mut world, process),
        false => ([0; 16], process),
    };
    groups.iter().map(|group| group.iter().map(&mut name).collect()).collect()
}
