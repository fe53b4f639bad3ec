//! MPI 5.0 chapter 6: collective operations.
//!
//! Each collective is read once, in [`even`] or [`varied`], whatever its form; the form decides
//! only what happens to the schedule: run, turned into a request, or into a persistent one.

pub mod even;
pub mod run;
pub mod varied;

use mpi::coll::{Amount, Asked, Call, Key, Known, Schedule, Side, Type, args};
use mpi::error::Result;
use mpi::handle::Handle;

use crate::cx::Cx;
use crate::kind::handle::live;
use crate::kind::output::Out;
use crate::kind::scalar::count;
use crate::object::Object;
use run::Site;

/// What becomes of the schedule.
pub enum Form {
    /// `MPI_X`
    Blocking,
    /// `MPI_IX`
    Nonblocking(Out<Handle>),
    /// `MPI_X_init`
    Persistent(Out<Handle>),
}

/// A count and a datatype on a rank where they are significant.
#[inline]
fn amount(cx: &Cx, n: (i64, &'static str), datatype: (usize, &'static str)) -> Result<Amount> {
    Ok(Some((count(n.0, n.1)?, live(Object::Datatype, datatype.0, datatype.1, cx)?)))
}

/// A datatype for communication.
pub fn committed(cx: &Cx, handle: Handle) -> Result<Type> {
    match Type::predefined(handle) {
        Some(ty) => Ok(ty),
        None => Ok(Type::of(handle, cx.objects().datatype(handle)?.committed()?)),
    }
}

/// A collective that is described by its key: looks for a schedule kept from an equal call.
#[inline]
fn keyed(cx: &Cx, form: Form, comm: Handle, site: Site, key: Key, send: usize, recv: usize) -> Result {
    let plausible = plausible(key.send.is_none(), key.recv.is_none(), send, recv);
    match again(cx, form, comm, plausible.then_some(Asked::Key(&key)), send, recv)? {
        Some(form) => first_time(cx, form, comm, site, key, send, recv),
        None => Ok(()),
    }
}

/// Does what the form asks for with a schedule that is kept of an equal call. Gives the form back if there is
/// none, or nothing that could be asked for.
#[inline]
pub(crate) fn again(
    cx: &Cx,
    form: Form,
    comm: Handle,
    call: Option<Asked>,
    send: usize,
    recv: usize,
) -> Result<Option<Form>> {
    let Some(call) = call else { return Ok(Some(form)) };
    match form {
        Form::Blocking => Ok((!run::again(cx, comm, call, send, recv)?).then_some(form)),
        Form::Nonblocking(request) => {
            match run::with_state(cx, comm, |state| state.take(call, send, recv))? {
                Some((known, schedule)) => request.set(run::nonblocking(cx, comm, schedule, Some(known))?),
                None => return Ok(Some(Form::Nonblocking(request))),
            }
            Ok(None)
        }
        Form::Persistent(_) => Ok(Some(form)),
    }
}

/// Whether the addresses need no further check but for overlapping: those of buffers that matter
/// are neither NULL nor `MPI_IN_PLACE`.
#[inline]
pub(crate) fn plausible(no_send: bool, no_recv: bool, send: usize, recv: usize) -> bool {
    (no_send || send > args::IN_PLACE) && (no_recv || recv > args::IN_PLACE)
}

#[inline(never)]
fn first_time(cx: &Cx, form: Form, comm: Handle, site: Site, key: Key, send: usize, recv: usize) -> Result {
    let ty = |side: Amount| side.map(|(_, handle)| committed(cx, handle)).transpose();
    let (send_ty, recv_ty) = (ty(key.send)?, ty(key.recv)?);
    let side =
        |amount: Amount, ty: &'_ Option<Type>| -> Option<(u64, Type)> { Some((amount?.0, ty.clone()?)) };
    let (send_side, recv_side) = (side(key.send, &send_ty), side(key.recv, &recv_ty));
    let op = key.op.map(|op| cx.objects().ops.get(op)).transpose()?;
    let call = Call {
        kind: key.kind,
        rank: site.rank,
        size: site.size,
        send: even_side(&send_side),
        recv: even_side(&recv_side),
        in_place: key.in_place,
        op: op.as_ref(),
        root: key.root,
        across: site.across,
    };
    go(cx, form, comm, compiled(cx, comm, &call, send, recv)?, Some(Known::Key(key)))
}

fn even_side(side: &Option<(u64, Type)>) -> Side<'_> {
    side.as_ref().map_or(Side::Absent, |(count, ty)| Side::Even { count: *count, ty })
}

/// Checks a call and makes its schedule.
fn compiled(cx: &Cx, comm: Handle, call: &Call, send: usize, recv: usize) -> Result<Box<Schedule>> {
    args::check(call, send, recv)?;
    run::with_state(cx, comm, |state| state.compile(call, send, recv))?
}

/// Does with a schedule what the form asks for; if the call is known by something it is kept when it is done,
/// unless it stays with its request.
#[inline]
pub(crate) fn go(cx: &Cx, form: Form, comm: Handle, schedule: Box<Schedule>, call: Option<Known>) -> Result {
    match form {
        Form::Blocking => {
            let done = run::blocking(cx, comm, schedule)?;
            return call.map_or(Ok(()), |call| run::keep(cx, comm, call, done));
        }
        Form::Nonblocking(request) => request.set(run::nonblocking(cx, comm, schedule, call)?),
        Form::Persistent(request) => request.set(run::persistent(cx, comm, schedule)?),
    }
    Ok(())
}

/// The three handlers of a collective around the one that reads its arguments.
macro_rules! forms {
    ($($read:ident => $blocking:literal $plain:ident $start:ident $init:ident ($($arg:ident: $ty:ty),*);)*) => {$(
        #[doc = concat!("`MPI_", $blocking, "`.")]
        #[inline]
        pub fn $plain(cx: &Cx, $($arg: $ty),*) -> Result {
            $read(cx, Form::Blocking, $($arg),*)
        }

        #[doc = concat!("`MPI_I", $blocking, "`, by its name in lower case.")]
        pub fn $start(cx: &Cx, $($arg: $ty,)* request: Out<Handle>) -> Result {
            $read(cx, Form::Nonblocking(request), $($arg),*)
        }

        #[doc = concat!("`MPI_", $blocking, "_init`; no hint is known.")]
        pub fn $init(cx: &Cx, $($arg: $ty,)* _info: Handle, request: Out<Handle>) -> Result {
            $read(cx, Form::Persistent(request), $($arg),*)
        }
    )*};
}
pub(crate) use forms;
