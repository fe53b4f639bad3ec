//! Windows of programs in virtual time as the library makes and synchronises them (MPI 5.0 chapter 12): operations go by
//! adapters, or in messages to their targets. [`crate::window`] has plans of epochs alone, by which papers are reproduced.

use std::cell::{RefCell, RefMut};
use std::ops::DerefMut;
use std::sync::Arc;

use fabric::Span;
use mpi::comm::{COMM_WORLD, Place};
use mpi::datatype::Datatype;
use mpi::datatype::basic::BYTE;
use mpi::error::{Class, Error, Result};
use mpi::handle::Handle;
use mpi::info::Info;
use mpi::request::Buffer;
use mpi::win::epoch::LockType;
use mpi::win::far::WORDS;
use mpi::win::fence::FenceWay;
use mpi::win::operation::{Area, Operation, Verb};
use mpi::win::sync::{self, Awaited, Caller};
use mpi::win::{Flavour, Made, Member, Window, apart};
use mpi::world::World;
use proto::epoch::Schedule;

use crate::rank::Rank;
use crate::wires::Wires;

/// Words that a rank tells the others at once.
const TOLD: usize = 8;

/// How operations of a window go.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// By adapters, as these plans say; `None`: in messages.
    pub schedule: Option<Schedule>,
    /// How its ranks meet in a fence.
    pub fence: FenceWay,
}

/// A window of all ranks.
#[derive(Debug)]
pub struct Win {
    handle: Handle,
    hidden: Handle,
    words: [Span; 2],
}

/// A rank whose calls wait in virtual time.
struct Calls<'a, 'y> {
    rank: RefCell<&'a mut Rank<'y>>,
    words: [Span; 2],
}

impl Calls<'_, '_> {
    /// What all ranks tell.
    fn exchange<const N: usize>(&self, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
        const { assert!(N <= TOLD) };
        let mut rank = self.rank.borrow_mut();
        let [out, into] = self.words.map(|span| Span { len: span.len / TOLD * N, ..span });
        rank.write(out, &mine.map(u64::to_le_bytes).concat());
        rank.allgather(out, into)?;
        let all = rank.read(into);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let words: Vec<u64> = all.chunks(8).map(word).collect();
        Ok(words.as_chunks().0.to_vec())
    }
}

impl<'y> Caller for Calls<'_, 'y> {
    type Device = Wires<'y>;

    fn world(&self) -> impl DerefMut<Target = World<Wires<'y>>> {
        RefMut::map(self.rank.borrow_mut(), |rank| rank.world())
    }

    fn until<T>(&self, ready: impl FnMut(&mut World<Wires<'y>>) -> Result<Option<T>>) -> Result<T> {
        self.rank.borrow_mut().until(ready)
    }

    fn await_others<T>(
        &self,
        _: Handle,
        _: &Awaited,
        ready: impl FnMut(&mut World<Wires<'y>>) -> Result<Option<T>>,
    ) -> Result<T> {
        self.until(ready)
    }

    fn once<T>(&self, ready: impl FnOnce(&mut World<Wires<'y>>) -> Result<Option<T>>) -> Result<Option<T>> {
        self.progress()?;
        ready(&mut self.world())
    }

    fn progress(&self) -> Result {
        self.rank.borrow_mut().progress()
    }

    fn leaves(&self, _: &World<Wires<'y>>) {}

    fn least_words<const N: usize>(&self, _: Handle, mine: [u64; N]) -> Result<[u64; N]> {
        let all = self.exchange(mine)?;
        Ok(std::array::from_fn(|at| all.iter().map(|words| words[at]).min().expect("all ranks")))
    }

    fn first_word(&self, _: Handle, mine: u64) -> Result<u64> {
        Ok(self.exchange([mine])?[0][0])
    }
}

fn datatype(handle: Handle) -> Result<Arc<Datatype>> {
    Datatype::of(handle).cloned().ok_or_else(|| Error::new(Class::TYPE, "no predefined datatype"))
}

fn buffer(span: Span, ty: &Arc<Datatype>) -> Buffer {
    Buffer { addr: span.addr, count: span.len as u64 / ty.size(), ty: ty.clone() }
}

impl Rank<'_> {
    /// `MPI_Win_create` of all ranks, of memory that displacements count in bytes of.
    pub fn win_create(&mut self, memory: Span, making: Making) -> Result<Win> {
        let words = [self.buffer(8 * TOLD), self.buffer(self.size() * 8 * TOLD)];
        let context = self.world().new_context();
        let group = self.world().comm(COMM_WORLD)?.place.mine.clone();
        let me = self.rank() as u32;
        let calls = Calls { rank: RefCell::new(self), words };
        let told = calls.exchange([context, memory.addr as u64, memory.len as u64])?;
        let place = Place::within(told[0][0], group, me);
        let member =
            |[_, base, size]: &[u64; 3]| Member { base: *base as usize, size: *size, unit: 1, mapped: false };
        let members: Box<[Member]> = told.iter().map(member).collect();
        let far = match making.schedule {
            None => None,
            Some(schedule) => {
                let exposed = calls.world().expose(&place, &members[me as usize])?;
                let told: Vec<[u64; WORDS]> = calls.exchange(exposed)?;
                calls.world().reach(&place, &members, &told, schedule)?
            }
        };
        let hidden = calls.world().add_comm(place.clone())?;
        let made = Made {
            comm: hidden,
            place,
            flavour: Flavour::Create,
            members,
            control: None,
            near: None,
            copies: false,
            far,
            fence: (making.fence, true),
            info: Info::default(),
            memory: None,
        };
        let handle = calls.world().objects.windows.add(Window::new(made))?;
        calls.exchange([0])?;
        Ok(Win { handle, hidden, words })
    }
}

impl Win {
    fn calls<'a, 'y>(&self, rank: &'a mut Rank<'y>) -> Calls<'a, 'y> {
        Calls { rank: RefCell::new(rank), words: self.words }
    }

    /// `MPI_Win_free` of all ranks.
    pub fn free(self, rank: &mut Rank<'_>) -> Result {
        let calls = self.calls(rank);
        apart::complete_untold(&calls, self.handle)?;
        calls.exchange([0])?;
        let mut world = calls.world();
        world.conceal(self.handle)?;
        world.objects.comms.remove(self.hidden);
        world.objects.windows.remove(self.handle);
        Ok(())
    }

    /// An operation on elements of a predefined type, which `data` carries and `result` gets; of a swap `compare` is the address of the
    /// element that is compared with.
    pub fn operate(
        &self,
        rank: &mut Rank<'_>,
        verb: Verb,
        (target, disp, elements): (usize, usize, Handle),
        [data, result, compare]: [Span; 3],
    ) -> Result {
        let ty = datatype(elements)?;
        let len = data.len.max(result.len) as u64;
        let operation = Operation {
            verb,
            target: target as u32,
            area: Area { disp: disp as i64, count: len / ty.size(), ty: ty.clone() },
            data: buffer(data, &ty),
            result: verb.fetches().then(|| buffer(result, &ty)),
            compare: compare.addr,
        };
        sync::begin(&self.calls(rank), self.handle, &operation, false).map(drop)
    }

    /// `MPI_Put` of bytes.
    pub fn put(&self, rank: &mut Rank<'_>, target: usize, disp: usize, data: Span) -> Result {
        self.operate(rank, Verb::Put, (target, disp, BYTE), [data, Span::EMPTY, Span::EMPTY])
    }

    /// `MPI_Get` of bytes.
    pub fn get(&self, rank: &mut Rank<'_>, target: usize, disp: usize, into: Span) -> Result {
        self.operate(rank, Verb::Get, (target, disp, BYTE), [Span::EMPTY, into, Span::EMPTY])
    }

    /// `MPI_Win_fence`.
    pub fn fence(&self, rank: &mut Rank<'_>, assert: i32) -> Result {
        sync::fence(&self.calls(rank), assert, self.handle)
    }

    /// `MPI_Win_lock`.
    pub fn lock(&self, rank: &mut Rank<'_>, kind: LockType, target: usize) -> Result {
        sync::lock(&self.calls(rank), kind as i32, target as i32, 0, self.handle)
    }

    /// `MPI_Win_unlock`.
    pub fn unlock(&self, rank: &mut Rank<'_>, target: usize) -> Result {
        sync::unlock(&self.calls(rank), target as i32, self.handle)
    }

    /// `MPI_Win_lock_all`.
    pub fn lock_all(&self, rank: &mut Rank<'_>) -> Result {
        sync::lock_all(&self.calls(rank), 0, self.handle)
    }

    /// `MPI_Win_unlock_all`.
    pub fn unlock_all(&self, rank: &mut Rank<'_>) -> Result {
        sync::unlock_all(&self.calls(rank), self.handle)
    }

    /// `MPI_Win_flush`.
    pub fn flush(&self, rank: &mut Rank<'_>, target: usize) -> Result {
        sync::flush(&self.calls(rank), target as i32, self.handle)
    }

    /// What `f` does with a group of these ranks.
    fn with_group(
        &self,
        rank: &mut Rank<'_>,
        ranks: &[usize],
        f: impl FnOnce(&Calls<'_, '_>, Handle) -> Result,
    ) -> Result {
        let calls = self.calls(rank);
        let group = {
            let mut world = calls.world();
            let ranks: Vec<i32> = ranks.iter().map(|rank| *rank as i32).collect();
            let group = world.comm(COMM_WORLD)?.place.mine.incl(&ranks)?;
            world.objects.add_group(group)?
        };
        let done = f(&calls, group);
        calls.world().objects.free_group(group)?;
        done
    }

    /// `MPI_Win_post`.
    pub fn post(&self, rank: &mut Rank<'_>, origins: &[usize]) -> Result {
        self.with_group(rank, origins, |calls, group| sync::post(calls, group, 0, self.handle))
    }

    /// `MPI_Win_start`.
    pub fn start(&self, rank: &mut Rank<'_>, targets: &[usize]) -> Result {
        self.with_group(rank, targets, |calls, group| sync::start(calls, group, 0, self.handle))
    }

    /// `MPI_Win_complete`.
    pub fn complete(&self, rank: &mut Rank<'_>) -> Result {
        sync::complete(&self.calls(rank), self.handle)
    }

    /// `MPI_Win_wait`.
    pub fn wait(&self, rank: &mut Rank<'_>) -> Result {
        sync::wait(&self.calls(rank), self.handle)
    }
}
