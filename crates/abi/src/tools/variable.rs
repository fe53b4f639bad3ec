//! `MPI_T_pvar_*`: what happened, in sessions.

use mpi::error::{Result, fail};
use mpi::handle::Handle;
use mpi::tools::{self, ALL_HANDLES, class};
use proto::event::{Class, Group};

use super::{BIND_NO_OBJECT, TUNER_DETAIL, USER_BASIC};
use crate::cx::Cx;
use crate::global;
use crate::kind::output::Out;
use crate::kind::text::Text;
use crate::kind::tool::{MaybeOut, ToolLength, ToolPlace, ToolText};

/// `MPI_T_PVAR_CLASS_*`.
fn class_number(class: Class) -> i32 {
    match class {
        Class::Level => 2,
        Class::Size => 3,
        Class::Most => 5,
        Class::Counter => 7,
        Class::Sum => 8,
        Class::Time => 9,
    }
}

/// `MPI_T_pvar_get_num`.
pub fn get_num(_: &Cx, num_pvar: Out<i32>) -> Result {
    num_pvar.set(tools::variables().len() as i32);
    Ok(())
}

/// `MPI_T_pvar_get_index`.
pub fn get_index(cx: &Cx, name: Text, var_class: i32, pvar_index: Out<i32>) -> Result {
    // SAFETY: not kept beyond this call.
    let name = unsafe { name.bytes() };
    pvar_index.set(cx.anytime().tools.variable_named(name, var_class, class_number)?);
    Ok(())
}

/// `MPI_T_pvar_get_info`.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn get_info(
    cx: &Cx,
    pvar_index: i32,
    name: ToolText,
    name_len: ToolLength,
    verbosity: MaybeOut<i32>,
    var_class: MaybeOut<i32>,
    datatype: MaybeOut<Handle>,
    enumtype: MaybeOut<usize>,
    desc: ToolText,
    desc_len: ToolLength,
    bind: MaybeOut<i32>,
    readonly: MaybeOut<bool>,
    continuous: MaybeOut<bool>,
    atomic: MaybeOut<bool>,
) -> Result {
    let variable = cx.anytime().tools.variable(pvar_index)?;
    let is_state = tools::is_state(variable.class);
    name.set(name_len, &variable.name);
    desc.set(desc_len, variable.doc);
    verbosity.set(match variable.group {
        Group::Messages | Group::Waiting | Group::Windows => USER_BASIC,
        Group::Adapters | Group::Registrations => TUNER_DETAIL,
    });
    var_class.set(class_number(variable.class));
    datatype.set(tools::UNSIGNED_LONG_LONG);
    enumtype.set(0);
    bind.set(BIND_NO_OBJECT);
    readonly.set(is_state);
    continuous.set(is_state);
    atomic.set(!is_state);
    Ok(())
}

/// `MPI_T_pvar_session_create`.
pub fn session_create(cx: &Cx, session: ToolPlace) -> Result {
    session.set(cx.anytime().tools.open()?);
    Ok(())
}

/// `MPI_T_pvar_session_free`.
pub fn session_free(cx: &Cx, session: ToolPlace) -> Result {
    cx.anytime().tools.close(session.get())?;
    session.set(Handle(0));
    Ok(())
}

/// `MPI_T_pvar_handle_alloc`: every variable is one number and bound to nothing.
pub fn handle_alloc(
    cx: &Cx,
    session: Handle,
    pvar_index: i32,
    _: usize,
    handle: ToolPlace,
    count: Out<i32>,
) -> Result {
    handle.set(cx.anytime().tools.watch(session, pvar_index)?);
    count.set(1);
    Ok(())
}

/// `MPI_T_pvar_handle_free`.
pub fn handle_free(cx: &Cx, session: Handle, handle: ToolPlace) -> Result {
    cx.anytime().tools.unwatch(session, one(handle.get())?)?;
    handle.set(Handle(0));
    Ok(())
}

/// `MPI_T_pvar_start`.
pub fn start(_: &Cx, session: Handle, handle: Handle) -> Result {
    global::tools(|tools, now| tools.start(session, one_or_all(handle), now))
}

/// `MPI_T_pvar_stop`.
pub fn stop(_: &Cx, session: Handle, handle: Handle) -> Result {
    global::tools(|tools, now| tools.stop(session, one_or_all(handle), now))
}

/// `MPI_T_pvar_reset`.
pub fn reset(_: &Cx, session: Handle, handle: Handle) -> Result {
    global::tools(|tools, now| tools.reset(session, one_or_all(handle), now))
}

/// `MPI_T_pvar_read`.
pub fn read(_: &Cx, session: Handle, handle: Handle, buf: usize) -> Result {
    let value = global::tools(|tools, now| tools.read(session, one(handle)?, now))?;
    // SAFETY: not null, and the application has room for one number.
    unsafe { (buf as *mut u64).write(value) };
    Ok(())
}

/// `MPI_T_pvar_readreset`.
pub fn readreset(_: &Cx, session: Handle, handle: Handle, buf: usize) -> Result {
    let value = global::tools(|tools, now| tools.read_and_reset(session, one(handle)?, now))?;
    // SAFETY: as in `read`.
    unsafe { (buf as *mut u64).write(value) };
    Ok(())
}

/// `MPI_T_pvar_write`.
pub fn write(_: &Cx, session: Handle, handle: Handle, buf: usize) -> Result {
    // SAFETY: not null, and the application passes one number.
    let value = unsafe { (buf as *const u64).read() };
    global::tools(|tools, now| tools.write(session, one(handle)?, value, now))
}

fn one_or_all(handle: Handle) -> Option<Handle> {
    (handle.0 as usize != ALL_HANDLES).then_some(handle)
}

fn one(handle: Handle) -> Result<Handle> {
    match one_or_all(handle) {
        Some(handle) => Ok(handle),
        None => fail(class::INVALID_HANDLE, "MPI_T_PVAR_ALL_HANDLES is not one handle"),
    }
}
