//! `MPI_T_event_*` and `MPI_T_source_*`: there are no types of events and no sources, so every
//! index, name and handle is a wrong one.

use mpi::error::{Result, fail};
use mpi::handle::Handle;
use mpi::tools::class;

use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;
use crate::kind::text::Text;
use crate::kind::tool::{MaybeOut, ToolLength, ToolText};
use crate::layout::Slot;

/// `MPI_T_event_get_num`.
pub fn get_num(_: &Cx, num_events: Out<i32>) -> Result {
    num_events.set(0);
    Ok(())
}

/// `MPI_T_event_get_index`.
pub fn get_index(_: &Cx, name: Text, _: Out<i32>) -> Result {
    fail(class::INVALID_NAME, format!("there is no type of events `{}`", name.to_text()))
}

/// `MPI_T_event_get_info`.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn get_info(
    _: &Cx,
    event_index: i32,
    _: ToolText,
    _: ToolLength,
    _: MaybeOut<i32>,
    _: Array<Slot>,
    _: Array<i64>,
    _: MaybeOut<i32>,
    _: MaybeOut<usize>,
    _: MaybeOut<Handle>,
    _: ToolText,
    _: ToolLength,
    _: MaybeOut<i32>,
) -> Result {
    no_type(event_index)
}

/// `MPI_T_event_handle_alloc`.
pub fn handle_alloc(_: &Cx, event_index: i32, _: usize, _: Handle, _: usize) -> Result {
    no_type(event_index)
}

/// `MPI_T_event_handle_free`.
pub fn handle_free(_: &Cx, _: usize, _: usize, _: usize) -> Result {
    no_registration()
}

/// `MPI_T_event_handle_get_info`.
pub fn handle_get_info(_: &Cx, _: usize, _: Out<Handle>) -> Result {
    no_registration()
}

/// `MPI_T_event_handle_set_info`.
pub fn handle_set_info(_: &Cx, _: usize, _: Handle) -> Result {
    no_registration()
}

/// `MPI_T_event_callback_get_info`.
pub fn callback_get_info(_: &Cx, _: usize, _: i32, _: Out<Handle>) -> Result {
    no_registration()
}

/// `MPI_T_event_callback_set_info`.
pub fn callback_set_info(_: &Cx, _: usize, _: i32, _: Handle) -> Result {
    no_registration()
}

/// `MPI_T_event_register_callback`.
pub fn register_callback(_: &Cx, _: usize, _: i32, _: Handle, _: usize, _: usize) -> Result {
    no_registration()
}

/// `MPI_T_event_set_dropped_handler`.
pub fn set_dropped_handler(_: &Cx, _: usize, _: usize) -> Result {
    no_registration()
}

/// `MPI_T_event_read`.
pub fn read(_: &Cx, _: usize, _: i32, _: usize) -> Result {
    no_instance()
}

/// `MPI_T_event_copy`.
pub fn copy(_: &Cx, _: usize, _: usize) -> Result {
    no_instance()
}

/// `MPI_T_event_get_timestamp`.
pub fn get_timestamp(_: &Cx, _: usize, _: Out<i64>) -> Result {
    no_instance()
}

/// `MPI_T_event_get_source`.
pub fn get_source(_: &Cx, _: usize, _: Out<i32>) -> Result {
    no_instance()
}

/// `MPI_T_source_get_num`.
pub fn source_get_num(_: &Cx, num_sources: Out<i32>) -> Result {
    num_sources.set(0);
    Ok(())
}

/// `MPI_T_source_get_info`.
#[allow(clippy::too_many_arguments)] // as many as the operation has
pub fn source_get_info(
    _: &Cx,
    source_index: i32,
    _: ToolText,
    _: ToolLength,
    _: ToolText,
    _: ToolLength,
    _: usize,
    _: MaybeOut<i64>,
    _: MaybeOut<i64>,
    _: MaybeOut<Handle>,
) -> Result {
    no_source(source_index)
}

/// `MPI_T_source_get_timestamp`.
pub fn source_get_timestamp(_: &Cx, source_index: i32, _: Out<i64>) -> Result {
    no_source(source_index)
}

fn no_type(index: i32) -> Result {
    fail(class::INVALID_INDEX, format!("there is no type of events {index}: there are none"))
}

fn no_source(index: i32) -> Result {
    fail(class::INVALID_INDEX, format!("there is no source of events {index}: there are none"))
}

fn no_registration() -> Result {
    fail(class::INVALID_HANDLE, "argument `event_registration` is none: there are no events")
}

fn no_instance() -> Result {
    fail(class::INVALID_HANDLE, "argument `event_instance` is none: there are no events")
}
