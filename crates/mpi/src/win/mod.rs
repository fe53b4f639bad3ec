//! Windows (MPI 5.0 chapter 12): memory that other ranks read and change. A window is a value of the rank.
//!
//! Bytes move in one of two ways, one for a whole window so that all agree on what is atomic: where all ranks map the
//! memory the origin does everything itself ([`direct`]); else the target is told and carries it out whenever it looks
//! around, in its engine while it computes ([`active`]), unless it is behind an adapter that can ([`far`]). All do with the memory what [`operation`] says, in epochs
//! as [`epoch`] has them. The memory model is unified: docs/protocols/windows.md.

pub mod active;
mod along;
pub mod apart;
mod barrier;
mod begin;
mod copied;
pub mod direct;
pub mod epoch;
pub mod far;
pub mod fence;
mod heed;
pub mod issue;
pub mod locks;
pub mod message;
pub mod operation;
mod price;
pub mod quick;
mod serve;
mod soon;
pub mod sync;
mod tally;
mod target;

use std::any::Any;

use crate::attr::AttrMap;
use crate::comm::Place;
use crate::error::{Class, Error, Result, fail};
use crate::group::Group;
use crate::handle::{Handle, Slab};
use crate::info::Info;
use crate::mem;
use crate::objects::unusable;
use crate::request::Buffer;
use active::Active;
use direct::Control;
use epoch::{Epoch, Members};
use far::Far;

/// `MPI_WIN_NULL`.
pub const WIN_NULL: Handle = Handle(0x110);

/// How a window was made; the numbers are those of the standard ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavour {
    /// `MPI_Win_create`.
    Create = 311,
    /// `MPI_Win_allocate`.
    Allocate = 312,
    /// `MPI_Win_create_dynamic`.
    Dynamic = 313,
    /// `MPI_Win_allocate_shared`.
    Shared = 314,
}

/// The part of a window that one rank exposes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    /// Where this rank sees it; for others of a window without shared memory, no address here.
    pub base: usize,
    /// Its length in bytes.
    pub size: u64,
    /// Displacement unit in bytes.
    pub unit: u64,
    /// Whether this rank loads and stores there itself, whichever way accumulates go: it maps that memory, and may.
    pub mapped: bool,
}

/// How operations get to their target.
#[derive(Debug)]
pub enum Delivery {
    /// The origin carries them out.
    Direct(Control),
    /// The target does.
    Active(Box<Active>),
}

impl Delivery {
    /// The words by which ranks synchronise, where all map them.
    #[inline(always)]
    pub(super) fn control(&self) -> Option<&Control> {
        match self {
            Delivery::Direct(control) => Some(control),
            Delivery::Active(active) => active.near.as_ref(),
        }
    }

    /// See [`Delivery::control`].
    #[inline(always)]
    pub(super) fn control_mut(&mut self) -> Option<&mut Control> {
        match self {
            Delivery::Direct(control) => Some(control),
            Delivery::Active(active) => active.near.as_mut(),
        }
    }
}

/// A window.
#[derive(Debug)]
pub struct Window {
    /// The communicator of its own, which no program knows.
    pub comm: Handle,
    /// Group and context.
    pub place: Place,
    /// How it was made.
    pub flavour: Flavour,
    /// What each rank exposes.
    pub members: Box<[Member]>,
    /// How operations get to their target.
    pub path: Delivery,
    /// What is open.
    pub epoch: Epoch,
    /// Groups of posts and starts, and who they are here: the last two, for programs name the same ones again.
    groups: Known,
    /// Cached attributes.
    pub attrs: AttrMap,
    /// Hints in force.
    pub info: Info,
    /// Whether origins may copy long runs of bytes by themselves.
    copies: bool,
    /// Synchronisations that waited for nobody.
    unlooked: u32,
    /// The program has promised that nobody locks it.
    pub no_locks: bool,
    /// Memory that this rank has attached to a dynamic window, in order: address and length. Origins may read it here
    /// ([`direct::Control::table`]).
    attached: Vec<[u64; 2]>,
    /// What predefined attributes point to.
    values: Box<Values>,
    /// Memory that lives as long as the window.
    _memory: Option<Box<dyn Any + Send>>,
    name: Box<[u8]>,
}

/// What the predefined attributes of a window point to.
#[derive(Debug)]
struct Values {
    size: i64,
    unit: i32,
    flavour: i32,
    model: i32,
}

/// Groups, and who they are as ranks of a window.
type Known = [Option<(Group, Members)>; 2];

/// Members of a group as ranks of a window, if they are known.
#[inline]
fn known<'a>(groups: &'a Known, group: &Group) -> Option<&'a Members> {
    let mut known = groups.iter().flatten();
    known.find(|(other, _)| other.is_same_object(group)).map(|(_, members)| members)
}

/// `MPI_WIN_UNIFIED`.
const UNIFIED: i32 = 321;

/// `MPI_WIN_BASE`, `MPI_WIN_DISP_UNIT`, `MPI_WIN_SIZE`, `MPI_WIN_CREATE_FLAVOR`, `MPI_WIN_MODEL`.
const ATTRIBUTES: [Handle; 5] = [Handle(601), Handle(602), Handle(603), Handle(604), Handle(605)];

/// What a window is made of.
pub struct Made {
    /// The communicator of its own.
    pub comm: Handle,
    /// Group and context.
    pub place: Place,
    /// How it was made.
    pub flavour: Flavour,
    /// What each rank exposes.
    pub members: Box<[Member]>,
    /// The words that all ranks map, if they do.
    pub control: Option<Control>,
    /// The same where they map nothing else.
    pub near: Option<Control>,
    /// Whether origins may copy long runs of bytes by themselves.
    pub copies: bool,
    /// How targets behind an adapter are reached, if there are any.
    pub far: Option<Box<Far>>,
    /// How ranks that do not share memory meet in a fence, and whether that is fixed.
    pub fence: (fence::FenceWay, bool),
    /// Hints.
    pub info: Info,
    /// Memory that lives as long as the window.
    pub memory: Option<Box<dyn Any + Send>>,
}

impl Window {
    /// A window in which nothing is open.
    pub fn new(made: Made) -> Window {
        let Made { comm, place, flavour, members, control, near, copies, far, fence, info, memory } = made;
        let own = members[place.rank as usize];
        let values = Values {
            size: own.size as i64,
            unit: i32::try_from(own.unit).unwrap_or(i32::MAX),
            flavour: flavour as i32,
            model: UNIFIED,
        };
        let path = match control {
            Some(control) => Delivery::Direct(control),
            None => {
                let others = || (0..place.size()).filter(|rank| *rank != place.rank).collect();
                // Targets of a dynamic window have to say what they refuse.
                let is_dynamic = flavour == Flavour::Dynamic;
                let are_told = place.size() > 1 && !is_dynamic && near.is_none();
                let fences = are_told.then(|| fence::Fences::new(others(), fence.0, fence.1));
                let mut active = Box::new(Active::new(members.len(), far, fences, is_dynamic));
                active.near = near;
                Delivery::Active(active)
            }
        };
        Window {
            comm,
            place,
            flavour,
            members,
            path,
            epoch: Epoch::default(),
            groups: [None, None],
            attrs: AttrMap::default(),
            copies,
            unlooked: 0,
            no_locks: info.hint("no_locks") == Some("true"),
            info,
            attached: Vec::new(),
            values: Box::new(values),
            _memory: memory,
            name: Box::default(),
        }
    }

    /// What this rank exposes.
    pub fn own(&self) -> &Member {
        &self.members[self.place.rank as usize]
    }

    /// Members of a group as ranks of the window.
    pub fn members_of(&mut self, group: &Group) -> Result<Members> {
        if let Some(members) = known(&self.groups, group) {
            return Ok(members.clone());
        }
        let rank = |process: u32| match self.place.mine.rank_of(process) {
            Some(rank) => Ok(rank),
            None => {
                let text = format!("argument `group` holds rank {process} of the job, which is not in it");
                fail(Class::GROUP, text)
            }
        };
        let members: Members = group.iter().map(rank).collect::<Result<_>>()?;
        self.groups.swap(0, 1);
        self.groups[0] = Some((group.clone(), members.clone()));
        Ok(members)
    }

    /// Whether a rank has not told this one so, and would do it by a word of its own. Of epochs that adapters end the engine knows.
    pub(super) fn awaits(&self, told: direct::Told, rank: u32) -> bool {
        let is_unheeded = |active: &Active| told == direct::Told::Complete && !active.has_heeded_all_of(rank);
        if let Some(control) = self.path.control() {
            return !control.has_told(told, rank)
                || matches!(&self.path, Delivery::Active(active) if is_unheeded(active));
        }
        match &self.path {
            Delivery::Active(active) if !active.has_told(told, rank) => {
                told == direct::Told::Post || !active.far.as_ref().is_some_and(|far| far.reaches(rank))
            }
            _ => false,
        }
    }

    /// Who of these has not told this rank so yet.
    pub fn untold(&self, told: direct::Told, from: &[u32]) -> Option<u32> {
        from.iter().copied().find(|rank| match (self.path.control(), &self.path) {
            (Some(control), _) => !control.has_told(told, *rank),
            (None, Delivery::Active(active)) => !active.has_told(told, *rank),
            (None, Delivery::Direct(_)) => false,
        })
    }

    /// How many barriers of its words have begun; `None` where there are none.
    pub fn barriers(&self) -> Option<u64> {
        self.path.control().map(|control| control.barriers().into())
    }

    /// Whether ranks synchronise by words that all of them map although they do not map its memory: then targets may have been told something
    /// that is to be done before.
    pub fn is_near(&self) -> bool {
        matches!(&self.path, Delivery::Active(active) if active.near.is_some())
    }

    /// Operations begun from here on are of another epoch.
    pub fn begins_anew(&mut self) {
        soon::ended(self);
    }

    /// Says of an error, where its handle is told, that it is of this window, by the name that the program has given to that.
    pub fn about(&self, handle: Handle, error: &Error) -> Error {
        named(handle, &self.name, error)
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// `MPI_Win_set_name`.
    pub fn set_name(&mut self, name: &[u8]) {
        self.name = name.into();
    }

    /// The value of a predefined attribute: the base itself, of others the address of a number.
    pub fn attribute(&self, keyval: Handle) -> Option<usize> {
        let Values { size, unit, flavour, model } = &*self.values;
        Some(match keyval.0 {
            601 => self.own().base,
            602 => std::ptr::from_ref(unit) as usize,
            603 => std::ptr::from_ref(size) as usize,
            604 => std::ptr::from_ref(flavour) as usize,
            605 => std::ptr::from_ref(model) as usize,
            _ => return None,
        })
    }

    /// Refuses what is only for windows that may be locked.
    pub fn check_locks(&self) -> Result {
        if self.no_locks {
            let text =
                "the window was made with the info key `no_locks`, which promises that nobody locks it";
            return fail(Class::RMA_SYNC, text);
        }
        Ok(())
    }

    fn check_dynamic(&self) -> Result {
        if self.flavour == Flavour::Dynamic {
            return Ok(());
        }
        fail(Class::RMA_FLAVOR, "argument `win` was not made by MPI_Win_create_dynamic")
    }

    /// `MPI_Win_attach`.
    pub fn attach(&mut self, base: usize, size: u64) -> Result {
        self.check_dynamic()?;
        let Some(end) = (base as u64).checked_add(size) else {
            return fail(
                Class::SIZE,
                format!("argument `size` is {size}, beyond the end of the address space"),
            );
        };
        if base == 0 && size > 0 {
            return fail(Class::RMA_ATTACH, format!("argument `base` is NULL, but size is {size}"));
        }
        let overlaps = |[at, len]: &&[u64; 2]| *at < end && (base as u64) < at + len;
        if let Some([at, len]) = self.attached.iter().find(overlaps) {
            let text =
                format!("memory at {base:#x} overlaps {len} bytes at {at:#x}, which are attached already");
            return fail(Class::RMA_ATTACH, text);
        }
        let place = self.attached.partition_point(|[at, _]| *at < base as u64);
        self.change_attached(|attached| attached.insert(place, [base as u64, size]));
        Ok(())
    }

    /// Changes what is attached, where origins may be reading it.
    fn change_attached(&mut self, change: impl FnOnce(&mut Vec<[u64; 2]>)) {
        let Some(control) = self.path.control() else { return change(&mut self.attached) };
        control.change_table(|| {
            change(&mut self.attached);
            (self.attached.as_ptr() as usize, self.attached.len())
        });
    }

    /// Whether all between two addresses is attached, in one piece or in several that touch.
    pub(super) fn is_attached(&self, mut lo: i128, hi: i128) -> bool {
        for [at, len] in &self.attached {
            let (begin, end) = (i128::from(*at), i128::from(*at) + i128::from(*len));
            if begin <= lo && lo < end {
                lo = end;
            }
        }
        lo >= hi
    }

    /// `MPI_Win_detach`.
    pub fn detach(&mut self, base: usize) -> Result {
        self.check_dynamic()?;
        match self.attached.iter().position(|[at, _]| *at == base as u64) {
            Some(at) => {
                self.change_attached(|attached| _ = attached.remove(at));
                Ok(())
            }
            None => {
                fail(Class::RMA_ATTACH, format!("argument `base` is {base:#x}, where no memory is attached"))
            }
        }
    }
}

/// The windows of one rank.
#[derive(Debug, Default)]
pub struct Windows {
    slab: Slab<Box<Window>>,
    /// Those whose operations this rank carries out for others.
    active: Vec<Handle>,
    /// The last number that the engine has been given for one.
    number: u32,
    /// The lock that this rank has asked for and does not hold yet, by window and target. It is the only one: whoever locks several in
    /// the same order as others must have them in that order.
    claim: Option<(Handle, u32)>,
}

impl Windows {
    /// The window of a handle.
    pub fn get(&self, handle: Handle) -> Option<&Window> {
        self.slab.get(handle).map(|window| &**window)
    }

    /// The lock that is asked for and not held.
    pub fn claim(&self) -> Option<(Handle, u32)> {
        self.claim
    }

    /// The target of this window whose lock is that one: nothing but messages waits there until it is held.
    pub(super) fn claimed(&self, win: Handle) -> Option<u32> {
        self.claim.filter(|(of, _)| *of == win).map(|(_, target)| target)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &Window)> {
        self.slab.iter().map(|(handle, window)| (handle, &**window))
    }

    /// The window of a handle, or why it is none.
    pub fn find(&self, handle: Handle) -> Result<&Window> {
        self.get(handle).map_or_else(|| refuse(handle), Ok)
    }

    /// As [`Windows::find`], to change it.
    pub fn find_mut(&mut self, handle: Handle) -> Result<&mut Window> {
        match self.slab.get_mut(handle) {
            Some(window) => Ok(window),
            None => refuse(handle),
        }
    }

    /// A handle for a new window.
    pub fn add(&mut self, window: Window) -> Result<Handle> {
        let is_active = matches!(window.path, Delivery::Active(_));
        let handle = self.slab.insert(Box::new(window))?;
        if is_active {
            self.active.push(handle);
        }
        Ok(handle)
    }

    /// What the engine is to call another window; never 0.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.number = self.number % (1 << 30) + 1;
        self.number
    }

    /// Takes a window out.
    pub fn remove(&mut self, handle: Handle) -> Option<Box<Window>> {
        self.active.retain(|other| *other != handle);
        self.slab.remove(handle)
    }

    /// Whether this rank carries nothing out for others.
    #[inline(always)]
    pub fn are_passive(&self) -> bool {
        self.active.is_empty()
    }

    /// The attributes of a window.
    pub fn attr(&self, handle: Handle, keyval: Handle) -> Option<usize> {
        self.get(handle)?.attribute(keyval)
    }
}

/// Whether this is the key of a predefined attribute of windows.
pub fn is_attribute(keyval: Handle) -> bool {
    ATTRIBUTES.contains(&keyval)
}

#[cold]
fn refuse<T>(handle: Handle) -> Result<T> {
    fail(Class::WIN, unusable(handle, WIN_NULL, "MPI_WIN_NULL", "a window"))
}

/// Says of which window an error is.
pub fn about(handle: Handle, error: &Error) -> Error {
    Error::new(error.class, format!("window {:#x}: {}", handle.0, error.text))
}

fn named(handle: Handle, name: &[u8], error: &Error) -> Error {
    let known = format!("window {:#x}", handle.0);
    let error = if error.text.contains(&known) { error.clone() } else { about(handle, error) };
    match String::from_utf8_lossy(name).as_ref() {
        "" => error,
        name => Error::new(
            error.class,
            error.text.replacen(&known, &format!("window {name} ({:#x})", handle.0), 1),
        ),
    }
}

/// Hands over the packed form of a buffer, the buffer itself where that is one run.
pub(crate) fn packed<R>(buffer: &Buffer, f: impl FnOnce(&[u8]) -> R) -> R {
    let len = (buffer.ty.size() * buffer.count) as usize;
    if buffer.ty.is_contiguous() {
        return mem::with(buffer.addr, len, f);
    }
    let mut bytes = vec![0; len];
    buffer.ty.pack(buffer.addr, buffer.count, 0, &mut bytes);
    f(&bytes)
}
