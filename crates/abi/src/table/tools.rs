//! MPI 5.0, chapter 15 Tool information interface.

use crate::kind::array::{AintsOut, DatatypesOut, IntsOut};
use crate::kind::handle::InfoOrNull;
use crate::kind::output::{DatatypeOut, InfoOut, IntInOut, IntOut, LongCountOut};
use crate::kind::scalar::{Addr, BufIn, BufOut, Int, Length};
use crate::kind::text::{StrIn, StrOut};
use crate::kind::tool::{
    ToolCbSafety, ToolCvar, ToolCvarOut, ToolEnum, ToolEnumOut, ToolEventDroppedFn, ToolEventFn,
    ToolEventFreeFn, ToolEventInstance, ToolEventRegistration, ToolEventRegistrationOut, ToolPvar,
    ToolPvarOut, ToolPvarSession, ToolPvarSessionOut, ToolSourceOrderOut,
};
use crate::table::rows;

rows! { "15 Tool information interface";
    MPI_T_category_changed(update_number: IntOut) tool => missing;
    MPI_T_category_get_categories(cat_index: Int, len: Length, indices: IntsOut) tool => missing;
    MPI_T_category_get_cvars(cat_index: Int, len: Length, indices: IntsOut) tool => missing;
    MPI_T_category_get_events(cat_index: Int, len: Length, indices: IntsOut) tool => missing;
    MPI_T_category_get_index(name: StrIn, cat_index: IntOut) tool => missing;
    MPI_T_category_get_info(cat_index: Int, name: StrOut, name_len: IntInOut, desc: StrOut,
        desc_len: IntInOut, num_cvars: IntOut, num_pvars: IntOut, num_categories: IntOut) tool => missing;
    MPI_T_category_get_num(num_cat: IntOut) tool => missing;
    MPI_T_category_get_num_events(cat_index: Int, num_events: IntOut) tool => missing;
    MPI_T_category_get_pvars(cat_index: Int, len: Length, indices: IntsOut) tool => missing;
    MPI_T_cvar_get_index(name: StrIn, cvar_index: IntOut) tool => missing;
    MPI_T_cvar_get_info(cvar_index: Int, name: StrOut, name_len: IntInOut, verbosity: IntOut,
        datatype: DatatypeOut, enumtype: ToolEnumOut, desc: StrOut, desc_len: IntInOut, bind: IntOut,
        scope: IntOut) tool => missing;
    MPI_T_cvar_get_num(num_cvar: IntOut) tool => missing;
    MPI_T_cvar_handle_alloc(cvar_index: Int, obj_handle: Addr, handle: ToolCvarOut, count: IntOut) tool
        => missing;
    MPI_T_cvar_handle_free(handle: ToolCvarOut) tool => missing;
    MPI_T_cvar_read(handle: ToolCvar, buf: BufOut) tool => missing;
    MPI_T_cvar_write(handle: ToolCvar, buf: BufIn) tool => missing;
    MPI_T_enum_get_info(enumtype: ToolEnum, num: IntOut, name: StrOut, name_len: IntInOut) tool => missing;
    MPI_T_enum_get_item(enumtype: ToolEnum, index: Int, value: IntOut, name: StrOut, name_len: IntInOut) tool
        => missing;
    MPI_T_event_callback_get_info(event_registration: ToolEventRegistration, cb_safety: ToolCbSafety,
        info_used: InfoOut) tool => missing;
    MPI_T_event_callback_set_info(event_registration: ToolEventRegistration, cb_safety: ToolCbSafety,
        info: InfoOrNull) tool => missing;
    MPI_T_event_copy(event_instance: ToolEventInstance, buffer: Addr) tool => missing;
    MPI_T_event_get_index(name: StrIn, event_index: IntOut) tool => missing;
    MPI_T_event_get_info(event_index: Int, name: StrOut, name_len: IntInOut, verbosity: IntOut,
        array_of_datatypes: DatatypesOut, array_of_displacements: AintsOut, num_elements: IntOut,
        enumtype: ToolEnumOut, info: InfoOut, desc: StrOut, desc_len: IntInOut, bind: IntOut) tool
        => missing;
    MPI_T_event_get_num(num_events: IntOut) tool => missing;
    MPI_T_event_get_source(event_instance: ToolEventInstance, source_index: IntOut) tool => missing;
    MPI_T_event_get_timestamp(event_instance: ToolEventInstance, event_timestamp: LongCountOut) tool
        => missing;
    MPI_T_event_handle_alloc(event_index: Int, obj_handle: Addr, info: InfoOrNull,
        event_registration: ToolEventRegistrationOut) tool => missing;
    MPI_T_event_handle_free(event_registration: ToolEventRegistration, user_data: Addr,
        free_cb_function: ToolEventFreeFn) tool => missing;
    MPI_T_event_handle_get_info(event_registration: ToolEventRegistration, info_used: InfoOut) tool
        => missing;
    MPI_T_event_handle_set_info(event_registration: ToolEventRegistration, info: InfoOrNull) tool => missing;
    MPI_T_event_read(event_instance: ToolEventInstance, element_index: Int, buffer: Addr) tool => missing;
    MPI_T_event_register_callback(event_registration: ToolEventRegistration, cb_safety: ToolCbSafety,
        info: InfoOrNull, user_data: Addr, event_cb_function: ToolEventFn) tool => missing;
    MPI_T_event_set_dropped_handler(event_registration: ToolEventRegistration,
        dropped_cb_function: ToolEventDroppedFn) tool => missing;
    MPI_T_finalize() tool => missing;
    MPI_T_init_thread(required: Int, provided: IntOut) tool => missing;
    MPI_T_pvar_get_index(name: StrIn, var_class: Int, pvar_index: IntOut) tool => missing;
    MPI_T_pvar_get_info(pvar_index: Int, name: StrOut, name_len: IntInOut, verbosity: IntOut,
        var_class: IntOut, datatype: DatatypeOut, enumtype: ToolEnumOut, desc: StrOut, desc_len: IntInOut,
        bind: IntOut, readonly: IntOut, continuous: IntOut, atomic: IntOut) tool => missing;
    MPI_T_pvar_get_num(num_pvar: IntOut) tool => missing;
    MPI_T_pvar_handle_alloc(session: ToolPvarSession, pvar_index: Int, obj_handle: Addr,
        handle: ToolPvarOut, count: IntOut) tool => missing;
    MPI_T_pvar_handle_free(session: ToolPvarSession, handle: ToolPvarOut) tool => missing;
    MPI_T_pvar_read(session: ToolPvarSession, handle: ToolPvar, buf: BufOut) tool => missing;
    MPI_T_pvar_readreset(session: ToolPvarSession, handle: ToolPvar, buf: BufOut) tool => missing;
    MPI_T_pvar_reset(session: ToolPvarSession, handle: ToolPvar) tool => missing;
    MPI_T_pvar_session_create(session: ToolPvarSessionOut) tool => missing;
    MPI_T_pvar_session_free(session: ToolPvarSessionOut) tool => missing;
    MPI_T_pvar_start(session: ToolPvarSession, handle: ToolPvar) tool => missing;
    MPI_T_pvar_stop(session: ToolPvarSession, handle: ToolPvar) tool => missing;
    MPI_T_pvar_write(session: ToolPvarSession, handle: ToolPvar, buf: BufIn) tool => missing;
    MPI_T_source_get_info(source_index: Int, name: StrOut, name_len: IntInOut, desc: StrOut,
        desc_len: IntInOut, ordering: ToolSourceOrderOut, ticks_per_second: LongCountOut,
        max_ticks: LongCountOut, info: InfoOut) tool => missing;
    MPI_T_source_get_num(num_sources: IntOut) tool => missing;
    MPI_T_source_get_timestamp(source_index: Int, timestamp: LongCountOut) tool => missing;
}
