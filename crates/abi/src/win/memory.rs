//! Memory of windows: where it comes from, and who maps it.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fabric::{Device, VerbsCaps};
use mpi::comm::Place;
use mpi::error::{Class, Error, Result, fail};
use mpi::group::Group;
use mpi::handle::Handle;
use mpi::info::Info;
use mpi::mem;
use mpi::win::direct::Control;
use mpi::win::far::{Far, WORDS};
use mpi::win::fence::FenceWay;
use mpi::win::{Flavour, Member};
use proto::epoch::Schedule;
use shm::WindowMemory;

use crate::coll::run;
use crate::cx::Cx;

const PAGE: u64 = 4096;

/// What settings say of windows.
#[derive(Debug)]
pub struct Setup {
    /// Whether memory may be shared for operations.
    pub direct: bool,
    /// Whether adapters may carry operations out, and whether over connections, without which they change no words.
    pub adapter: bool,
    /// See `adapter`.
    pub connections: bool,
    /// What is fixed of the plans of their epochs.
    pub schedule: Schedule,
    /// Which way fences are to go, if that is fixed.
    pub fence: Option<FenceWay>,
    /// Where shared memory is made, and how its name begins.
    pub dir: PathBuf,
    /// See `dir`.
    pub prefix: String,
    /// Whether targets look around while they compute.
    pub engine: bool,
}

static SETUP: OnceLock<Setup> = OnceLock::new();

/// Tells what settings say.
pub fn set_up(setup: Setup) {
    let _ = SETUP.set(setup);
}

/// What a rank tells all others of a window that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// A context of its own.
    pub context: u64,
    /// What it wants to expose.
    pub wanted: Wanted,
    /// Which way it wants fences to go, and whether that is fixed.
    pub fence: (FenceWay, bool),
    /// All ranks share a host, as far as it knows.
    pub is_one_host: bool,
    /// Another context, for the ranks of its host.
    pub host_context: u64,
}

impl Offer {
    /// Words of it.
    const WORDS: usize = 8;

    /// All ranks of `comm` tell each other.
    pub fn exchange(self, cx: &Cx, comm: Handle) -> Result<Vec<Offer>> {
        let Offer { context, wanted: Wanted { base, size, unit }, fence, is_one_host, host_context } = self;
        let (way, is_fixed) = (fence.0.word(), u64::from(fence.1));
        let words: [u64; Offer::WORDS] =
            [context, base as u64, size, unit, way, is_fixed, u64::from(is_one_host), host_context];
        let told =
            |[context, base, size, unit, way, is_fixed, is_one_host, host_context]: [u64; Offer::WORDS]| {
                Offer {
                    context,
                    wanted: Wanted { base: base as usize, size, unit },
                    fence: (FenceWay::of_word(way), is_fixed != 0),
                    is_one_host: is_one_host != 0,
                    host_context,
                }
            };
        Ok(run::exchange_words(cx, comm, words)?.into_iter().map(told).collect())
    }
}

/// What one rank wants to expose.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Its own memory.
    pub base: usize,
    /// Bytes.
    pub size: u64,
    /// Displacement unit in bytes.
    pub unit: u64,
}

/// The memory of a window.
pub struct Memory {
    /// What each rank exposes.
    pub members: Box<[Member]>,
    /// The words that all ranks map, if operations go by shared memory.
    pub control: Option<Control>,
    /// The same where they map nothing else.
    pub near: Option<Control>,
    /// What lives as long as the window.
    pub keep: Keep,
}

/// Memory that is held as long as something lives.
type Keep = Option<Box<dyn Any + Send>>;

/// Whether origins may copy long runs of bytes by themselves, if the kernel lets them.
pub fn copies() -> bool {
    SETUP.get().is_some_and(|setup| setup.direct)
}

/// What origins do alone at targets of their own host, where the rest of a window goes by its targets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alone {
    /// Nothing.
    Nothing,
    /// Put and Get of long runs, by the kernel.
    Runs,
    /// Put and Get, in memory that they map.
    All,
    /// All of one run, by the kernel, and what ranks tell each other by words that they map.
    Kernel,
}

/// How operations get to their targets, for people: by which `adapter`, if by one, and what the origin does `alone` on its host.
pub fn describe(is_direct: bool, adapter: Option<&VerbsCaps>, alone: Alone) -> String {
    if is_direct {
        return "direct: by the processor of the origin in shared memory; the target takes no part".into();
    }
    let when = match SETUP.get().is_some_and(|setup| setup.engine) {
        true => "in its engine while it computes",
        false => "when it is inside MPI",
    };
    let copied = match alone {
        Alone::All => "Put and Get on this host by the origin in shared memory, without the target, ",
        Alone::Runs => {
            "Put and Get of more than 4 KiB in one run on this host by the origin, without the target, "
        }
        Alone::Kernel => {
            "Put, Get and accumulates in one run on this host by the origin, without the target, synchronisations by words in shared memory, "
        }
        Alone::Nothing => "",
    };
    let Some(adapter) = adapter else {
        let rest = if alone == Alone::Nothing { "" } else { "all else " };
        return format!("active: {copied}{rest}by the target, {when}");
    };
    let changes_words = adapter.coherent_atomics && SETUP.get().is_some_and(|setup| setup.connections);
    let atomics = if changes_words { ", and atomics on integers of 8 bytes" } else { "" };
    let carried = format!("adapter: Put and Get{atomics} to other hosts by the adapter");
    match adapter.offload {
        true => format!("{carried}, without the target, {copied}all else by the target, {when}"),
        false => format!(
            "{carried}, which is software of the target and serves {when}, {copied}all else by the target, {when}"
        ),
    }
}

/// Which way fences of a window of `comm` go as this rank sees it, and whether that is fixed.
pub fn fence(cx: &Cx, comm: Handle) -> Result<(FenceWay, bool)> {
    if let Some(way) = SETUP.get().and_then(|setup| setup.fence) {
        return Ok((way, true));
    }
    let world = cx.world();
    let comm = world.comm(comm)?;
    Ok((FenceWay::expected(comm.place.size() as usize, &comm.coll), false))
}

/// Tells all ranks of `comm` what of a window adapters may touch; what reaches those behind one, if there are any.
pub fn reach(cx: &Cx, comm: Handle, members: &[Member]) -> Result<Option<Box<Far>>> {
    let Some(setup) = SETUP.get().filter(|setup| setup.adapter) else { return Ok(None) };
    let (exposed, place) = {
        let mut world = cx.world();
        let place = world.comm(comm)?.place.clone();
        (world.expose(&place, &members[place.rank as usize]), place)
    };
    // Memory that no adapter can be told of is reached by messages.
    let told = run::exchange_words(cx, comm, exposed.unwrap_or([0; WORDS]))?;
    cx.world().reach(&place, members, &told, setup.schedule)
}

/// Finds the memory of a window of all ranks of `comm`, who have told this.
pub fn gather(cx: &Cx, comm: Handle, flavour: Flavour, told: &[Offer], info: &Info) -> Result<Memory> {
    let direct = SETUP.get().is_some_and(|setup| setup.direct);
    let rank = cx.world().comm(comm)?.place.rank;
    let own = |(at, told): (u32, &Offer)| {
        let Wanted { base, size, unit } = told.wanted;
        Member { base, size, unit, mapped: direct && at == rank && flavour != Flavour::Dynamic }
    };
    let members: Box<[Member]> = (0..).zip(told).map(own).collect();
    let shares = told.iter().all(|told| told.is_one_host);
    match flavour {
        Flavour::Create | Flavour::Dynamic => {
            let (near, keep) = if direct && shares { words(cx, comm, members.len())? } else { (None, None) };
            Ok(Memory { members, control: None, near, keep })
        }
        Flavour::Shared if !shares => {
            fail(Class::RMA_SHARED, "ranks of argument `comm` are on several hosts, which share no memory")
        }
        Flavour::Allocate if !direct => private(cx, comm, members, None),
        Flavour::Allocate if !shares => apart(cx, comm, members, told),
        _ => match map(cx, comm, members.clone(), is_contiguous(flavour, info))? {
            Ok(mut memory) => {
                memory.members.iter_mut().for_each(|member| member.mapped = direct);
                if !direct {
                    memory.control = None;
                }
                Ok(memory)
            }
            Err(_) if flavour == Flavour::Allocate => private(cx, comm, members, None),
            Err(text) => fail(Class::NO_MEM, text),
        },
    }
}

/// Whether the memories of the ranks of a window of this kind lie one behind the other.
pub fn is_contiguous(flavour: Flavour, info: &Info) -> bool {
    flavour == Flavour::Shared && info.hint("alloc_shared_noncontig") != Some("true")
}

/// Whether all ranks of a communicator are on one host, as far as this one knows.
pub fn is_one_host(cx: &Cx, comm: Handle) -> Result<bool> {
    let world = cx.world();
    let group = &world.comm(comm)?.place.mine;
    Ok(world.engine.device().hosts().is_none_or(|hosts| {
        let mut at = group.iter().map(|rank| hosts.get(rank as usize));
        let first = at.next().flatten();
        at.all(|host| host.is_some() && host == first)
    }))
}

/// Members of a communicator that share this rank's host, it among them. Processes of other jobs do not.
fn near(cx: &Cx, comm: Handle) -> Result<Vec<u32>> {
    let world = cx.world();
    let (place, me, size) = (&world.comm(comm)?.place, world.rank() as usize, world.job_size());
    let hosts = world.engine.device().hosts();
    let is_near = |peer: u32| {
        peer < size
            && hosts.is_none_or(|hosts| hosts.get(peer as usize).is_some_and(|host| *host == hosts[me]))
    };
    Ok((0..place.size()).filter(|rank| is_near(place.world_rank(*rank))).collect())
}

/// Memory of ranks of several hosts: those of one host map each other's, if they are more than one and can.
fn apart(cx: &Cx, comm: Handle, mut members: Box<[Member]>, told: &[Offer]) -> Result<Memory> {
    let near = near(cx, comm)?;
    let mapped = if near.len() > 1 { map_near(cx, comm, &members, &near, told)?.ok() } else { None };
    let Some(Memory { members: mapped, keep, .. }) = mapped else { return private(cx, comm, members, None) };
    for (rank, member) in near.iter().zip(mapped) {
        members[*rank as usize] = Member { mapped: true, ..member };
    }
    private(cx, comm, members, keep)
}

/// Memory that this rank and those near it map, or why there is none, on all of them alike.
fn map_near(
    cx: &Cx,
    comm: Handle,
    members: &[Member],
    near: &[u32],
    told: &[Offer],
) -> Result<std::result::Result<Memory, String>> {
    let hidden = {
        let mut world = cx.world();
        let place = &world.comm(comm)?.place;
        let group = Group::from_ranks(near.iter().map(|rank| place.world_rank(*rank)).collect::<Vec<_>>());
        let rank = near.iter().filter(|rank| **rank < place.rank).count();
        let context = told[near[0] as usize].host_context;
        world.add_comm(Place::within(context, Arc::new(group), rank as u32))?
    };
    let theirs = near.iter().map(|rank| members[*rank as usize]).collect();
    let mapped = map(cx, hidden, theirs, false);
    cx.world().objects.comms.remove(hidden);
    mapped
}

/// Memory of this process alone, unless it has some already that others of its host map.
fn private(cx: &Cx, comm: Handle, mut members: Box<[Member]>, mapped: Keep) -> Result<Memory> {
    let rank = cx.world().comm(comm)?.place.rank as usize;
    let own = &mut members[rank];
    let keep = mapped.map_or_else(
        || {
            let memory = mem::zeroed::<u128>(own.size.div_ceil(16) as usize)?;
            own.base = memory.as_ptr() as usize;
            Ok(Box::new(memory) as Box<dyn Any + Send>)
        },
        Ok,
    );
    // Where one rank has no memory nobody has a window.
    let all = run::exchange_words(cx, comm, [u64::from(keep.is_ok())])?;
    let keep = keep?;
    if let Some(lacking) = all.iter().position(|[has]| *has == 0) {
        return fail(
            Class::NO_MEM,
            format!("rank {lacking} of argument `comm` has no memory for its window"),
        );
    }
    Ok(Memory { members, control: None, near: None, keep: Some(keep) })
}

/// Words of a window that ranks of one host map without its memory. When it is freed, behind a barrier, they are kept for the next one of as many
/// ranks: to make a file and map it takes several times what all else of a window does.
struct Words {
    memory: Option<WindowMemory>,
    name: u64,
    ranks: usize,
}

static KEPT: Mutex<Vec<Words>> = Mutex::new(Vec::new());
/// Most that are kept.
const KEPT_MAX: usize = 8;

impl Drop for Words {
    fn drop(&mut self) {
        let Words { ref mut memory, name, ranks } = *self;
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = memory.take_if(|_| kept.len() < KEPT_MAX) {
            kept.push(Words { memory: Some(memory), name, ranks });
        }
    }
}

/// Words that all ranks of one host map where their memory is their own and the kernel lets each copy from all others, and what keeps
/// them.
fn words(cx: &Cx, comm: Handle, ranks: usize) -> Result<(Option<Control>, Keep)> {
    if ranks < 2 {
        return Ok((None, None));
    }
    let (reaches_all, rank) = {
        let mut world = cx.world();
        let place = world.comm(comm)?.place.clone();
        let mut others = (0..place.size()).map(|rank| place.world_rank(rank) as usize);
        (others.all(|process| world.engine.may_copy_alone(process)), place.rank as usize)
    };
    let kept = {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().rposition(|words| words.ranks == ranks);
        at.map(|at| kept.remove(at))
    };
    let name = kept.as_ref().map_or(0, |words| words.name);
    let all = run::exchange_words(cx, comm, [u64::from(reaches_all), name])?;
    if all.iter().any(|[reaches, _]| *reaches == 0) {
        return Ok((None, None));
    }
    // Threads that free and make windows may do so in another order on another rank.
    let words = match kept.filter(|_| all.iter().all(|[_, theirs]| *theirs == name)) {
        Some(words) => words,
        None => match map_file(cx, comm, Control::bytes(ranks).next_multiple_of(PAGE as usize))? {
            Ok((memory, name)) => Words { memory: Some(memory), name, ranks },
            Err(_) => return Ok((None, None)),
        },
    };
    let Some(memory) = &words.memory else { return Ok((None, None)) };
    let control = Control::new(memory.address(), ranks, rank);
    // The window is there for nobody before all have come to the barrier at the end.
    control.clear();
    Ok((Some(control), Some(Box::new(words))))
}

/// Where the memory of each rank begins in what all map, and how long that is.
fn laid_out(members: &[Member], contiguous: bool) -> Option<(Vec<u64>, usize)> {
    let mut end = (Control::bytes(members.len()) as u64).next_multiple_of(PAGE);
    let mut starts = Vec::new();
    for member in members {
        starts.push(end);
        end = end.checked_add(member.size)?;
        if !contiguous {
            end = end.checked_next_multiple_of(PAGE)?;
        }
    }
    let len = usize::try_from(end.checked_next_multiple_of(PAGE)?).ok()?;
    isize::try_from(len).ok().map(|_| (starts, len))
}

/// Memory that all ranks map, or why there is none, on all of them alike.
fn map(
    cx: &Cx,
    comm: Handle,
    mut members: Box<[Member]>,
    contiguous: bool,
) -> Result<std::result::Result<Memory, String>> {
    let Some((starts, len)) = laid_out(&members, contiguous) else {
        return Ok(Err("the windows of all ranks together do not fit the address space".into()));
    };
    let (memory, _) = match map_file(cx, comm, len)? {
        Ok(mapped) => mapped,
        Err(text) => return Ok(Err(text)),
    };
    let rank = cx.world().comm(comm)?.place.rank as usize;
    for (member, start) in members.iter_mut().zip(starts) {
        member.base = memory.address() + start as usize;
    }
    let control = Control::new(memory.address(), members.len(), rank);
    Ok(Ok(Memory { members, control: Some(control), near: None, keep: Some(Box::new(memory)) }))
}

/// As many bytes of a file that all ranks map, and a number that is that of its name, or why there is none, on all of them alike.
fn map_file(cx: &Cx, comm: Handle, len: usize) -> Result<std::result::Result<(WindowMemory, u64), String>> {
    let Some(setup) = SETUP.get() else { return Ok(Err("nothing is known of shared memory".into())) };
    let rank = cx.world().comm(comm)?.place.rank as usize;
    let (mapped, path) = if rank == 0 {
        let made = WindowMemory::create(len, &setup.dir, &setup.prefix);
        let path = made.as_ref().map_or(PathBuf::new(), |(_, path)| path.clone());
        spread_path(cx, comm, Some(&path))?;
        (made.map(|(memory, _)| memory), path)
    } else {
        let path = spread_path(cx, comm, None)?;
        let none = || Err("rank 0 could not make the shared memory".to_string());
        let opened =
            if path.as_os_str().is_empty() { none() } else { WindowMemory::open(len, &path, &setup.dir) };
        (opened, path)
    };
    let all = run::exchange_words(cx, comm, [u64::from(mapped.is_ok())]);
    if rank == 0 && !path.as_os_str().is_empty() {
        std::fs::remove_file(&path)
            .map_err(|e| Error::new(Class::OTHER, format!("cannot unlink {}: {e}", path.display())))?;
    }
    let lacking = all?.iter().position(|[has]| *has == 0);
    Ok(match (mapped, lacking) {
        (Ok(memory), None) => Ok((memory, name_of(&path))),
        (Err(text), _) => Err(text),
        (_, Some(other)) => Err(format!("rank {other} could not map the shared memory")),
    })
}

/// A number for a name that is random, never 0.
fn name_of(path: &PathBuf) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish() | 1
}

/// Tells all ranks the path that rank 0 names, which may be empty.
fn spread_path(cx: &Cx, comm: Handle, mine: Option<&PathBuf>) -> Result<PathBuf> {
    let bytes = mine.map_or(&[][..], |path| path.as_os_str().as_bytes());
    let len = run::spread_words(cx, comm, 0, vec![bytes.len() as u64])?[0] as usize;
    let mut padded = bytes.to_vec();
    padded.resize(len.next_multiple_of(8), 0);
    let words: Vec<u64> = padded.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    if words.is_empty() {
        return Ok(PathBuf::new());
    }
    let words = run::spread_words(cx, comm, 0, words)?;
    let mut told: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    told.truncate(len);
    Ok(std::ffi::OsString::from_vec(told).into())
}
