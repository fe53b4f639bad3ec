//! MPI 5.0 chapter 12: windows, from where they are made to where they go.

pub mod caller;
pub mod memory;
pub mod operate;

use std::sync::Arc;

use mpi::attr::Holder;
use mpi::comm::Place;
use mpi::errhandler;
use mpi::error::{Class, Result, fail};
use mpi::group::{Group, PROC_NULL};
use mpi::handle::Handle;
use mpi::info::Info;
use mpi::kinds;
use mpi::win::{Flavour, Made, Member, WIN_NULL, Window, about, apart, sync};
use proto::event::Event;

use crate::coll::run;
use crate::cx::Cx;
use crate::kind::handle::HandleRef;
use crate::kind::output::{CountVar, Out};
use crate::kind::text::{Text, TextOut};
use crate::layout::MAX_OBJECT_NAME;
use crate::object::Object;
use crate::{attr, comm, device, inter};
use memory::{Alone, Memory, Offer, Wanted};

/// Hints that a program may ask for, as they are where it gives none (MPI 5.0 section 12.2.1).
const HINTS: [(&str, &str); 6] = [
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
    ("mpi_accumulate_granularity", "0"),
];
/// Says how operations get to their targets, and whether these have to look around for it.
const PATH_HINT: &str = "tern_win_path";

fn hints(cx: &Cx, info: Handle) -> Result<Info> {
    let mut hints = comm::hints(cx.anytime().optional_info(info)?);
    for (key, value) in HINTS {
        if hints.hint(key).is_none() {
            hints.set(key.as_bytes(), value.as_bytes())?;
        }
    }
    Ok(hints)
}

/// Makes a window with all ranks of `comm`; the one who calls is told where its memory lies.
fn make(cx: &Cx, comm: Handle, info: Handle, flavour: Flavour, wanted: Wanted) -> Result<(Handle, usize)> {
    if inter::is_inter(cx, comm)? {
        return fail(Class::COMM, "argument `comm` is an intercommunicator, must be an intracommunicator");
    }
    let mut info = hints(cx, info)?;
    info.provide(kinds::KEY, &comm::memory_kinds(cx, comm)?);
    let [context, host_context] = {
        let mut world = cx.world();
        [world.new_context(), world.new_context()]
    };
    let (fence, is_one_host) = (memory::fence(cx, comm)?, memory::is_one_host(cx, comm)?);
    let told = Offer { context, wanted, fence, is_one_host, host_context }.exchange(cx, comm)?;
    let own = {
        let mut world = cx.world();
        let group = world.comm(comm)?.place.mine.clone();
        let rank = world.comm(comm)?.place.rank;
        let place = Place::within(told[0].context, group, rank);
        (world.add_comm(place.clone())?, place)
    };
    let (hidden, place) = own;
    let memory = match memory::gather(cx, hidden, flavour, &told, &info) {
        Ok(memory) => memory,
        Err(error) => {
            cx.world().objects.comms.remove(hidden);
            return Err(error);
        }
    };
    let Memory { members, control, near, keep } = memory;
    let far = match control.is_none() && near.is_none() && flavour != Flavour::Dynamic {
        true => memory::reach(cx, hidden, &members)?,
        false => None,
    };
    let made = if control.is_some() { Event::WindowDirect } else { Event::WindowActive };
    cx.world().engine.count(made);
    let copies = flavour == Flavour::Create && memory::copies() && copies_alone(cx, &place);
    let path = {
        let world = cx.world();
        let adapter = device::network(world.engine.device()).filter(|_| far.is_some());
        let is_near = |(rank, member): (u32, &Member)| rank != place.rank && member.mapped;
        let alone = match (0..).zip(&members).any(is_near) {
            true => Alone::All,
            false if near.is_some() => Alone::Kernel,
            false if copies => Alone::Runs,
            false => Alone::Nothing,
        };
        memory::describe(control.is_some(), adapter, alone)
    };
    info.set(PATH_HINT.as_bytes(), path.as_bytes())?;
    let made = Made {
        comm: hidden,
        place,
        flavour,
        members,
        control,
        near,
        copies,
        far,
        fence: told[0].fence,
        info,
        memory: keep,
    };
    let window = Window::new(made);
    let base = window.own().base;
    let handle = cx.world().objects.windows.add(window)?;
    // Nobody may be told of something by a rank whose window is there before it is here.
    run::barrier(cx, hidden)?;
    Ok((handle, base))
}

/// Whether the kernel lets this rank copy from memory of another one of the window, and to it.
fn copies_alone(cx: &Cx, place: &Place) -> bool {
    let engine = &mut cx.world().engine;
    let others = (0..place.size()).filter(|rank| *rank != place.rank);
    others.map(|rank| place.world_rank(rank) as usize).any(|process| engine.may_copy_alone(process))
}

/// `MPI_Win_create`.
#[allow(clippy::too_many_arguments, reason = "they are those of the MPI operation")]
pub fn create(
    cx: &Cx,
    base: usize,
    size: u64,
    unit: i64,
    info: Handle,
    comm: Handle,
    win: Out<Handle>,
) -> Result {
    win.set(WIN_NULL);
    if base == 0 && size > 0 {
        return fail(Class::ARG, format!("argument `base` is NULL, but size is {size}"));
    }
    if (base as u64).checked_add(size).is_none() {
        let text = format!(
            "argument `size` is {size}: from `base` {base:#x} on that is beyond the end of the address space"
        );
        return fail(Class::SIZE, text);
    }
    let wanted = Wanted { base, size, unit: unit as u64 };
    win.set(make(cx, comm, info, Flavour::Create, wanted)?.0);
    Ok(())
}

fn allocate_any(
    cx: &Cx,
    flavour: Flavour,
    (size, unit): (u64, i64),
    (info, comm): (Handle, Handle),
    (base, win): (Out<usize>, Out<Handle>),
) -> Result {
    win.set(WIN_NULL);
    let wanted = Wanted { base: 0, size, unit: unit as u64 };
    let (handle, address) = make(cx, comm, info, flavour, wanted)?;
    base.set(address);
    win.set(handle);
    Ok(())
}

/// `MPI_Win_allocate`.
#[allow(clippy::too_many_arguments, reason = "they are those of the MPI operation")]
pub fn allocate(
    cx: &Cx,
    size: u64,
    unit: i64,
    info: Handle,
    comm: Handle,
    base: Out<usize>,
    win: Out<Handle>,
) -> Result {
    allocate_any(cx, Flavour::Allocate, (size, unit), (info, comm), (base, win))
}

/// `MPI_Win_allocate_shared`.
#[allow(clippy::too_many_arguments, reason = "they are those of the MPI operation")]
pub fn allocate_shared(
    cx: &Cx,
    size: u64,
    unit: i64,
    info: Handle,
    comm: Handle,
    base: Out<usize>,
    win: Out<Handle>,
) -> Result {
    allocate_any(cx, Flavour::Shared, (size, unit), (info, comm), (base, win))
}

/// `MPI_Win_create_dynamic`.
pub fn create_dynamic(cx: &Cx, info: Handle, comm: Handle, win: Out<Handle>) -> Result {
    win.set(WIN_NULL);
    let wanted = Wanted { base: 0, size: 0, unit: 1 };
    win.set(make(cx, comm, info, Flavour::Dynamic, wanted)?.0);
    Ok(())
}

/// `MPI_Win_attach`.
pub fn attach(cx: &Cx, win: Handle, base: usize, size: u64) -> Result {
    cx.world().window(win)?.attach(base, size).map_err(|error| about(win, &error))
}

/// `MPI_Win_detach`.
pub fn detach(cx: &Cx, win: Handle, base: usize) -> Result {
    cx.world().window(win)?.detach(base).map_err(|error| about(win, &error))
}

/// `MPI_Win_free`. Nobody may go before all are done with everybody's memory.
pub fn free(cx: &Cx, win: HandleRef) -> Result {
    cx.concerns(Object::Win, win.handle);
    let hidden = {
        let mut world = cx.world();
        let window = world.window(win.handle)?;
        window.epoch.check_free().map_err(|error| about(win.handle, &error))?;
        window.comm
    };
    attr::delete_all(cx, Holder::Win, win.handle)?;
    let met = apart::complete_untold(cx, win.handle).and(run::barrier(cx, hidden));
    // Where one has died the others cannot meet, and what is this rank's is released all the same.
    let ended = match met {
        Err(error) if error.class != Class::PROC_ABORTED => return Err(error),
        Err(error) => {
            // Epochs of adapters that failed synchronisations have left open.
            let _ = apart::place(cx, win.handle, None);
            // Its name is not known any more when the error is raised.
            let error = sync::who_is_missing(cx, win.handle, error);
            Err(cx.world().window(win.handle)?.about(win.handle, &error))
        }
        Ok(()) => Ok(()),
    };
    let ended = ended.and(cx.world().conceal(win.handle));
    let window = {
        let mut world = cx.world();
        world.objects.comms.remove(hidden);
        world.objects.windows.remove(win.handle)
    };
    drop(window);
    // The error handler of the window is the one to be told of an error; no other window gets this handle.
    if ended.is_ok() {
        cx.anytime().errhandlers.release(errhandler::Raiser::Win, win.handle);
    }
    win.set(WIN_NULL);
    ended
}

/// `MPI_Win_get_group`.
pub fn get_group(cx: &Cx, win: Handle, group: Out<Handle>) -> Result {
    let mut world = cx.world();
    let members = Group::clone(&Arc::clone(&world.window(win)?.place.mine));
    group.set(world.objects.add_group(members)?);
    Ok(())
}

/// `MPI_Win_get_info`.
pub fn get_info(cx: &Cx, win: Handle, info: Out<Handle>) -> Result {
    let hints = cx.world().window(win)?.info.clone();
    info.set(cx.anytime().infos.insert(hints)?);
    Ok(())
}

/// `MPI_Win_set_info`: what the window was made by stays.
pub fn set_info(cx: &Cx, win: Handle, info: Handle) -> Result {
    let mut new = hints(cx, info)?;
    let mut world = cx.world();
    let window = world.window(win)?;
    for key in ["no_locks", PATH_HINT, "alloc_shared_noncontig", kinds::KEY] {
        if let Some(value) = window.info.hint(key) {
            new.set(key.as_bytes(), value.as_bytes())?;
        }
    }
    window.info = new;
    Ok(())
}

/// `MPI_Win_set_name`.
pub fn set_name(cx: &Cx, win: Handle, name: Text) -> Result {
    // SAFETY: the application passes a terminated string; it is copied at once.
    let name = unsafe { name.bytes() };
    let name = &name[..name.len().min(MAX_OBJECT_NAME - 1)];
    cx.world().window(win)?.set_name(name);
    Ok(())
}

/// `MPI_Win_get_name`; the null handle has a name too (MPI 5.0 section 7.8).
pub fn get_name(cx: &Cx, win: Handle, name: TextOut, resultlen: Out<i32>) -> Result {
    let mut world = cx.world();
    let text = if win == WIN_NULL { b"MPI_WIN_NULL" } else { world.window(win)?.name() };
    // SAFETY: MPI says the buffer has room for MPI_MAX_OBJECT_NAME bytes.
    let len = unsafe { name.set(text, MAX_OBJECT_NAME) };
    resultlen.set(len as i32);
    Ok(())
}

/// `MPI_Win_shared_query`. `MPI_PROC_NULL` is the first rank that has memory of the library which this one reaches by loads and stores, itself one of them. What
/// it does not map has no address and no length (MPI 5.0 section 12.2.3).
pub fn shared_query(
    cx: &Cx,
    win: Handle,
    rank: i32,
    size: Out<i64>,
    unit: CountVar,
    base: Out<usize>,
) -> Result {
    let mut world = cx.world();
    let window = world.window(win)?;
    if window.flavour == Flavour::Dynamic {
        let text = format!("window {:#x} is dynamic: it has no memory that could be shared", win.0);
        return fail(Class::RMA_FLAVOR, text);
    }
    let ranks = window.members.len();
    let own = window.place.rank as usize;
    let is_mapped =
        |rank: usize| window.members[rank].mapped || window.flavour == Flavour::Shared || rank == own;
    // Memory that the program brought is shared with nobody, not even where it is this rank's own.
    let is_shared = |rank: usize| is_mapped(rank) && window.flavour != Flavour::Create;
    let has_some = |rank: &usize| is_shared(*rank) && window.members[*rank].size > 0;
    let named = match rank {
        PROC_NULL => (0..ranks).find(has_some).unwrap_or(own),
        rank if (rank as usize) < ranks => rank as usize,
        rank => return fail(Class::RANK, format!("argument `rank` is {rank}, the window has {ranks} ranks")),
    };
    let is_mapped = if rank == PROC_NULL { is_shared(named) } else { is_mapped(named) };
    let member = window.members[named];
    unit.set(member.unit as i64)?;
    size.set(if is_mapped { member.size as i64 } else { 0 });
    // Where ranks lie one behind the other a place of nothing says something; by themselves they have none.
    let has_place = member.size > 0 || memory::is_contiguous(window.flavour, &window.info);
    base.set(if is_mapped && has_place { member.base } else { 0 });
    Ok(())
}
