//! `MPI_T_cvar_*` and `MPI_T_enum_*`: the settings in force.

use fabric::settings::ALL;
use mpi::error::{Result, fail};
use mpi::handle::Handle;
use mpi::tools::{self, Control, ValueForm, class};

use super::{BIND_NO_OBJECT, TUNER_BASIC};
use crate::cx::Cx;
use crate::kind::output::Out;
use crate::kind::text::Text;
use crate::kind::tool::{MaybeOut, ToolLength, ToolPlace, ToolText};

/// `MPI_T_SCOPE_READONLY`.
const SCOPE_READONLY: i32 = 2;
/// `MPI_T_ENUM_NULL`; an enumeration is its number and 1.
const ENUM_NULL: usize = 0;

/// `MPI_T_cvar_get_num`.
pub fn get_num(_: &Cx, num_cvar: Out<i32>) -> Result {
    num_cvar.set(ALL.len() as i32);
    Ok(())
}

/// `MPI_T_cvar_get_index`.
pub fn get_index(_: &Cx, name: Text, cvar_index: Out<i32>) -> Result {
    // SAFETY: not kept beyond this call.
    cvar_index.set(tools::control_named(unsafe { name.bytes() })?);
    Ok(())
}

/// `MPI_T_cvar_get_info`.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn get_info(
    cx: &Cx,
    cvar_index: i32,
    name: ToolText,
    name_len: ToolLength,
    verbosity: MaybeOut<i32>,
    datatype: MaybeOut<Handle>,
    enumtype: MaybeOut<usize>,
    desc: ToolText,
    desc_len: ToolLength,
    bind: MaybeOut<i32>,
    scope: MaybeOut<i32>,
) -> Result {
    let setting = cx.anytime().tools.setting(cvar_index)?;
    name.set(name_len, setting.name);
    desc.set(desc_len, setting.doc);
    verbosity.set(TUNER_BASIC);
    datatype.set(Control::datatype(setting));
    enumtype.set(tools::enumeration_of(setting).map_or(ENUM_NULL, |number| number as usize + 1));
    bind.set(BIND_NO_OBJECT);
    scope.set(SCOPE_READONLY);
    Ok(())
}

/// `MPI_T_cvar_handle_alloc`.
pub fn handle_alloc(cx: &Cx, cvar_index: i32, _: usize, handle: ToolPlace, count: Out<i32>) -> Result {
    let (allocated, elements) = cx.anytime().tools.control(cvar_index)?;
    handle.set(allocated);
    count.set(elements);
    Ok(())
}

/// `MPI_T_cvar_handle_free`.
pub fn handle_free(cx: &Cx, handle: ToolPlace) -> Result {
    cx.anytime().tools.free_control(handle.get())?;
    handle.set(Handle(0));
    Ok(())
}

/// `MPI_T_cvar_read`.
pub fn read(cx: &Cx, handle: Handle, buf: usize) -> Result {
    let value = cx.anytime().tools.read_control(handle)?;
    // SAFETY: not null, and the application has room for as many elements of the type of the variable
    // as it was told when it allocated the handle.
    unsafe {
        match value {
            ValueForm::Text(text) => std::ptr::copy_nonoverlapping(text.as_ptr(), buf as *mut u8, text.len()),
            ValueForm::Choice(value) => (buf as *mut i32).write(value),
            ValueForm::Number(value) => (buf as *mut u64).write(value),
        }
    }
    Ok(())
}

/// `MPI_T_cvar_write`.
pub fn write(cx: &Cx, handle: Handle, _: usize) -> Result {
    cx.anytime().tools.write_control(handle)
}

/// `MPI_T_enum_get_info`.
pub fn enum_get_info(
    _: &Cx,
    enumtype: usize,
    num: MaybeOut<i32>,
    name: ToolText,
    name_len: ToolLength,
) -> Result {
    let enumeration = enumeration(enumtype)?;
    num.set(enumeration.items.len() as i32);
    name.set(name_len, enumeration.name);
    Ok(())
}

/// `MPI_T_enum_get_item`. The values are numbered as the items are.
pub fn enum_get_item(
    _: &Cx,
    enumtype: usize,
    index: i32,
    value: MaybeOut<i32>,
    name: ToolText,
    name_len: ToolLength,
) -> Result {
    let item = enumeration(enumtype)?.item(index)?;
    value.set(index);
    name.set(name_len, item);
    Ok(())
}

fn enumeration(raw: usize) -> Result<tools::Enumeration> {
    match raw {
        ENUM_NULL => fail(class::INVALID_HANDLE, "argument `enumtype` is MPI_T_ENUM_NULL"),
        _ => tools::enumeration(raw - 1),
    }
}
