//! MPI 5.0 section 14.4: reading and writing, in all forms. Each access is read once, whatever its form: where it
//! begins, which memory, together with others or alone; then it is done.
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use std::ops::Range;
use std::sync::Arc;

use mpi::comm::COMM_NULL;
use mpi::error::{Error, Result};
use mpi::file::{Amode, Errand, Hints, View, of_file, refused};
use mpi::handle::Handle;
use mpi::request::{Body, Ended};
use mpi::status::Status;

use super::beside;
use super::convert::{Memory, Stream};
use super::shared::{self, Shared};
use super::together;
use crate::coll::run;
use crate::cx::Cx;
use crate::kind::output::Out;
use crate::kind::text::StatusPlace;

/// Which way the bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// Where an access begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// At this etype.
    Offset(i64),
    /// Where the rank's own pointer is.
    Own,
    /// Where the pointer is that all share.
    Shared,
}

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// This rank.
    Alone,
    /// All, each with its own part.
    All,
    /// All, one after the other behind the shared pointer.
    Ordered,
}

/// An access: the name of its operation without `_begin`, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Which way.
    pub way: Direction,
    /// Where it begins.
    pub at: At,
    /// Who takes part.
    pub who: Who,
}

/// What an access needs of its file, taken out of the table: no guard is alive while the system works.
pub struct Job {
    pub handle: Handle,
    pub comm: Handle,
    pub disk: Arc<disk::File>,
    pub view: Arc<View>,
    pub hints: Hints,
    pub atomic: bool,
    amode: Amode,
    shared: Arc<Shared>,
    whole: Result,
}

/// Address, count, datatype.
pub type Raw = (usize, u64, Handle);

/// An access that is ready to move its bytes.
pub struct Ready {
    /// Where it begins in the stream of the view, in bytes.
    pub start: u64,
    /// Its length there.
    pub len: u64,
    /// Its bytes.
    pub stream: Stream,
}

impl Job {
    /// The file of a handle.
    pub fn of(cx: &Cx, fh: Handle) -> Result<Job> {
        let objects = cx.objects();
        let file = objects.file(fh)?;
        Ok(Job {
            handle: fh,
            comm: file.comm,
            disk: file.disk.clone(),
            view: file.view.clone(),
            hints: file.hints.clone(),
            atomic: file.atomic,
            amode: file.amode,
            shared: file.shared.clone(),
            whole: file.check_whole(),
        })
    }

    fn check(&self, access: Access) -> Result {
        let way = match access.way {
            Direction::Read => self.amode.check_read(),
            Direction::Write => self.amode.check_write(),
        };
        of_file(&self.disk, way)?;
        if access.who != Who::Alone {
            self.whole.clone()?;
        }
        if access.at == At::Shared { Ok(()) } else { of_file(&self.disk, self.amode.check_random()) }
    }

    /// The etype at which an access of so many etypes begins; the pointer moves behind it.
    fn begin(&self, cx: &Cx, at: At, etypes: i64, len: u64) -> Result<i64> {
        match at {
            At::Offset(offset) => Ok(offset),
            At::Shared => shared::counter(&self.shared)?.fetch_add(etypes).map_err(refused),
            At::Own => {
                let mut objects = cx.objects();
                let file = objects.file_mut(self.handle)?;
                file.view.stretch(file.position, len)?;
                let start = file.position;
                file.position += etypes;
                Ok(start)
            }
        }
    }

    /// As [`Job::begin`] of all ranks, one behind the other.
    fn begin_ordered(&self, cx: &Cx, etypes: Result<i64>) -> Result<i64> {
        let words = [agree_class(&etypes), etypes.as_ref().map_or(0, |etypes| *etypes as u64)];
        let all = run::exchange_words(cx, self.comm, words)?;
        super::agree::all_well(etypes, all.iter().map(|words| words[0]))?;
        let rank = run::site(cx, self.comm)?.rank;
        let total = all.iter().map(|words| words[1] as i64).sum();
        let first = if rank == 0 { self.advance(total) } else { Ok(0) };
        let told = vec![agree_class(&first), first.as_ref().map_or(0, |first| *first as u64)];
        let told = run::spread_words(cx, self.comm, 0, told)?;
        super::agree::all_well(first, std::iter::once(told[0]))?;
        Ok(told[1] as i64 + all[..rank].iter().map(|words| words[1] as i64).sum::<i64>())
    }

    fn advance(&self, etypes: i64) -> Result<i64> {
        shared::counter(&self.shared)?.fetch_add(etypes).map_err(refused)
    }

    /// What can be said of an access before anything is moved.
    fn ready(&self, cx: &Cx, access: Access, memory: &Result<Memory>) -> Result<Ready> {
        let measured = memory.as_ref().map_err(Error::clone).and_then(|memory| {
            self.check(access)?;
            let len = memory.len_in(cx, &self.view)?;
            Ok((memory, len))
        });
        let (start, (memory, len)) = match access.who {
            Who::Ordered => {
                let etypes = measured.as_ref().map(|(_, len)| (len / self.view.unit()) as i64);
                let start = self.begin_ordered(cx, etypes.map_err(Error::clone))?;
                (start, measured?)
            }
            _ => {
                let (memory, len) = measured?;
                (self.begin(cx, access.at, (len / self.view.unit()) as i64, len)?, (memory, len))
            }
        };
        let start = self.view.stretch(start, len)?;
        let stream = match access.way {
            Direction::Read => memory.room(cx, &self.view)?,
            Direction::Write => memory.outgoing(cx, &self.view)?,
        };
        Ok(Ready { start, len, stream })
    }

    /// Moves the bytes of an access by this rank itself; how many were moved.
    pub fn alone(&self, way: Direction, ready: &mut Ready) -> Result<u64> {
        self.mover().alone(way, ready)
    }

    fn mover(&self) -> Mover {
        let window = self.hints.buffer_bytes;
        Mover { disk: self.disk.clone(), view: self.view.clone(), window, atomic: self.atomic }
    }
}

/// Moves the bytes of an access, on any thread.
struct Mover {
    disk: Arc<disk::File>,
    view: Arc<View>,
    window: u64,
    atomic: bool,
}

/// Most pieces that are counted to predict what an access takes.
const PIECES_COUNTED: usize = 64;

impl Mover {
    /// What moving the bytes by oneself is expected to take, a call for each piece.
    fn predicted_ns(&self, way: Direction, ready: &Ready) -> u64 {
        if ready.len == 0 {
            return 0;
        }
        let rates = self.rates(way);
        let (mut calls, mut bytes) = (0u64, 0u64);
        for piece in self.view.pieces(ready.start, ready.len).take(PIECES_COUNTED) {
            (calls, bytes) = (calls + 1, bytes + piece.len);
        }
        // The others are taken for alike.
        let calls = calls * ready.len.div_ceil(bytes.max(1));
        calls.saturating_mul(rates.call_ps()).saturating_add(ready.len.saturating_mul(rates.byte_ps())) / 1000
    }

    fn rates(&self, way: Direction) -> &disk::AccessCosts {
        if way == Direction::Read { &self.disk.reading } else { &self.disk.writing }
    }

    fn alone(&self, way: Direction, ready: &mut Ready) -> Result<u64> {
        if ready.len == 0 {
            return Ok(0);
        }
        let (start, len) = (ready.start, ready.len);
        let pieces = || self.view.pieces(start, len);
        let stream = &mut ready.stream;
        let mut work = || match way {
            Direction::Read => {
                let read = |bytes: &mut [u8]| disk::read(&self.disk, pieces(), bytes, self.window);
                stream.with_mut(read).map(|got| got as u64)
            }
            Direction::Write => stream.with(|bytes| disk::write(&self.disk, pieces(), bytes)).map(|()| len),
        };
        let moved = match self.atomic || self.disk.is_locked() {
            true => self.disk.locked(self.range(start, len), way == Direction::Read, work),
            false => work(),
        };
        moved.map_err(refused)
    }

    /// From the first byte of a stretch in the file to the last.
    fn range(&self, start: u64, len: u64) -> Range<u64> {
        let at = |position| self.view.pieces(position, 1).next().expect("a byte has a place").offset;
        at(start)..at(start + len - 1) + 1
    }
}

fn agree_class<T>(outcome: &Result<T>) -> u64 {
    super::agree::class_of(outcome)
}

/// Does an access.
pub fn go(cx: &Cx, fh: Handle, access: Access, raw: Raw) -> Result<Status> {
    let job = Job::of(cx, fh)?;
    let buffer = cx.world().buffer(raw.0, raw.1, raw.2, "buf");
    let memory = buffer.map(|buffer| Memory { buffer, datatype: raw.2 });
    let ready = job.ready(cx, access, &memory);
    let (got, ready) = match access.who {
        Who::All => together::go(cx, &job, access.way, ready)?,
        Who::Alone | Who::Ordered => {
            let mut ready = ready?;
            (job.alone(access.way, &mut ready)?, ready)
        }
    };
    ended(cx, &job, access.way, &memory?, ready, got)
}

/// How much of an access the call that begins it has done.
pub enum Begun {
    /// All.
    Done(Status),
    /// A thread of the library moves the bytes.
    Beside(Arc<Errand>),
}

/// Begins an access. What takes long enough, and neither needs other ranks nor functions of the application, is left to the
/// thread; all else is done at once (docs/protocols/files.md).
pub fn begin(cx: &Cx, fh: Handle, access: Access, raw: Raw) -> Result<Begun> {
    let job = Job::of(cx, fh)?;
    let buffer = cx.world().buffer(raw.0, raw.1, raw.2, "buf");
    let memory = buffer.map(|buffer| Memory { buffer, datatype: raw.2 });
    let ready = job.ready(cx, access, &memory);
    let ready = match access.who {
        Who::All => {
            let (agreed, ready) = together::agree_on(cx, &job, access.way, ready)?;
            if let Some(plan) = agreed.plan {
                let (got, ready) = together::carry_out(cx, &job, access.way, &agreed, plan, ready)?;
                return ended(cx, &job, access.way, &memory?, ready, got).map(Begun::Done);
            }
            ready
        }
        Who::Alone | Who::Ordered => ready?,
    };
    let (memory, mover, mut ready) = (memory?, job.mover(), ready);
    let (took_ns, byte_ps) = (mover.predicted_ns(access.way, &ready), mover.rates(access.way).byte_ps());
    let may_be_left = beside::is_worth(cx, took_ns, byte_ps);
    if !may_be_left || memory.is_converted_outside(&job.view) {
        let got = job.alone(access.way, &mut ready)?;
        return ended(cx, &job, access.way, &memory, ready, got).map(Begun::Done);
    }
    let work = move || {
        let moved = mover.alone(access.way, &mut ready);
        let bytes = moved.and_then(|got| match access.way {
            Direction::Read => memory.finish_plainly(&mover.view, ready.stream, got),
            Direction::Write => Ok(memory.buffer.ty.size() * memory.buffer.count),
        });
        let mut status = Status::EMPTY;
        let error = bytes.map(|bytes| status.set_count_bytes(bytes)).err();
        Ended { status, error }
    };
    Ok(Begun::Beside(beside::begin(cx, fh, work)))
}

/// What is told of an access whose bytes were moved; those that were read are put where they belong.
fn ended(cx: &Cx, job: &Job, way: Direction, memory: &Memory, ready: Ready, got: u64) -> Result<Status> {
    let bytes = match way {
        Direction::Read => memory.finish(cx, &job.view, ready.stream, got)?,
        Direction::Write => memory.buffer.ty.size() * memory.buffer.count,
    };
    let mut status = Status::EMPTY;
    status.set_count_bytes(bytes);
    Ok(status)
}

/// The request of an access that was begun.
fn request_of(cx: &Cx, begun: Begun, request: Out<Handle>) -> Result {
    let body = match begun {
        Begun::Done(status) => Body::Ended(Ended { status, error: None }),
        Begun::Beside(errand) => Body::Beside(errand),
    };
    request.set(cx.world().objects.requests.add(COMM_NULL, body)?);
    Ok(())
}

/// Handlers of accesses: the blocking one, and the one with a request. A non-blocking collective access must not
/// wait for others, so each rank moves its part itself.
macro_rules! accesses {
    ($($plain:ident $start:ident: $way:ident $at:ident $who:ident ($($offset:ident)?);)*) => {$(
        #[doc = concat!("`MPI_File_", stringify!($plain), "`.")]
        pub fn $plain(
            cx: &Cx, fh: Handle, $($offset: i64,)? buf: usize, count: u64, datatype: Handle, status: StatusPlace,
        ) -> Result {
            let access = Access { way: Direction::$way, at: At::$at$(($offset))?, who: Who::$who };
            status.set_keeping_error(go(cx, fh, access, (buf, count, datatype))?.to_ints());
            Ok(())
        }

        accesses! { request $start: $way $at ($($offset)?) }
    )*};
    (request none: $($rest:tt)*) => {};
    (request $start:ident: $way:ident $at:ident ($($offset:ident)?)) => {
        #[doc = concat!("`MPI_File_", stringify!($start), "`.")]
        pub fn $start(
            cx: &Cx, fh: Handle, $($offset: i64,)? buf: usize, count: u64, datatype: Handle, request: Out<Handle>,
        ) -> Result {
            let access = Access { way: Direction::$way, at: At::$at$(($offset))?, who: Who::Alone };
            request_of(cx, begin(cx, fh, access, (buf, count, datatype))?, request)
        }
    };
}

accesses! {
    read iread: Read Own Alone ();
    read_at iread_at: Read Offset Alone (offset);
    read_shared iread_shared: Read Shared Alone ();
    read_all iread_all: Read Own All ();
    read_at_all iread_at_all: Read Offset All (offset);
    read_ordered none: Read Shared Ordered ();
    write iwrite: Write Own Alone ();
    write_at iwrite_at: Write Offset Alone (offset);
    write_shared iwrite_shared: Write Shared Alone ();
    write_all iwrite_all: Write Own All ();
    write_at_all iwrite_at_all: Write Offset All (offset);
    write_ordered none: Write Shared Ordered ();
}
