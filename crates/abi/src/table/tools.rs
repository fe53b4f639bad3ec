//! MPI 5.0, chapter 15 Tool information interface.

use crate::kind::array::{AintsOut, DatatypesOut, IntsOut};
use crate::kind::handle::InfoOrNull;
use crate::kind::output::{InfoOut, IntOut, LongCountOut, ThreadLevelOut};
use crate::kind::scalar::{Addr, Int, Length, ThreadLevel, VariableClass};
use crate::kind::text::StrIn;
use crate::kind::tool::{
    ToolBindOut, ToolBufIn, ToolBufOut, ToolCbSafety, ToolCountOut, ToolCvar, ToolCvarRef, ToolDatatypeOut,
    ToolEnum, ToolEnumOut, ToolEventDroppedFn, ToolEventFn, ToolEventFreeFn, ToolEventInstance,
    ToolEventRegistration, ToolEventRegistrationOut, ToolFlagOut, ToolInfoOut, ToolIntOut, ToolLengthInOut,
    ToolPvar, ToolPvarRef, ToolPvarSession, ToolPvarSessionRef, ToolScopeOut, ToolSourceOrderOut, ToolStrOut,
    ToolVariableClassOut, ToolVerbosityOut,
};
use crate::table::rows;

rows! { "15 Tool information interface";
    MPI_T_category_changed(update_number: IntOut) tool => crate::tools::category::changed;
    MPI_T_category_get_categories(cat_index: Int, len: Length, indices: IntsOut) tool
        => crate::tools::category::get_categories;
    MPI_T_category_get_cvars(cat_index: Int, len: Length, indices: IntsOut) tool => crate::tools::category::get_cvars;
    MPI_T_category_get_events(cat_index: Int, len: Length, indices: IntsOut) tool => crate::tools::category::get_events;
    MPI_T_category_get_index(name: StrIn, cat_index: IntOut) tool => crate::tools::category::get_index;
    MPI_T_category_get_info(cat_index: Int, name: ToolStrOut, name_len: ToolLengthInOut, desc: ToolStrOut,
        desc_len: ToolLengthInOut, num_cvars: ToolIntOut, num_pvars: ToolIntOut, num_categories: ToolIntOut) tool
        => crate::tools::category::get_info;
    MPI_T_category_get_num(num_cat: IntOut) tool => crate::tools::category::get_num;
    MPI_T_category_get_num_events(cat_index: Int, num_events: IntOut) tool => crate::tools::category::get_num_events;
    MPI_T_category_get_pvars(cat_index: Int, len: Length, indices: IntsOut) tool => crate::tools::category::get_pvars;
    MPI_T_cvar_get_index(name: StrIn, cvar_index: IntOut) tool => crate::tools::control::get_index;
    MPI_T_cvar_get_info(cvar_index: Int, name: ToolStrOut, name_len: ToolLengthInOut, verbosity: ToolVerbosityOut,
        datatype: ToolDatatypeOut, enumtype: ToolEnumOut, desc: ToolStrOut, desc_len: ToolLengthInOut,
        bind: ToolBindOut, scope: ToolScopeOut) tool => crate::tools::control::get_info;
    MPI_T_cvar_get_num(num_cvar: IntOut) tool => crate::tools::control::get_num;
    MPI_T_cvar_handle_alloc(cvar_index: Int, obj_handle: Addr, handle: ToolCvarRef, count: IntOut) tool
        => crate::tools::control::handle_alloc;
    MPI_T_cvar_handle_free(handle: ToolCvarRef) tool => crate::tools::control::handle_free;
    MPI_T_cvar_read(handle: ToolCvar, buf: ToolBufOut) tool => crate::tools::control::read;
    MPI_T_cvar_write(handle: ToolCvar, buf: ToolBufIn) tool => crate::tools::control::write;
    MPI_T_enum_get_info(enumtype: ToolEnum, num: ToolIntOut, name: ToolStrOut, name_len: ToolLengthInOut) tool
        => crate::tools::control::enum_get_info;
    MPI_T_enum_get_item(enumtype: ToolEnum, index: Int, value: ToolIntOut, name: ToolStrOut,
        name_len: ToolLengthInOut) tool => crate::tools::control::enum_get_item;
    MPI_T_event_callback_get_info(event_registration: ToolEventRegistration, cb_safety: ToolCbSafety,
        info_used: InfoOut) tool => crate::tools::event::callback_get_info;
    MPI_T_event_callback_set_info(event_registration: ToolEventRegistration, cb_safety: ToolCbSafety,
        info: InfoOrNull) tool => crate::tools::event::callback_set_info;
    MPI_T_event_copy(event_instance: ToolEventInstance, buffer: Addr) tool => crate::tools::event::copy;
    MPI_T_event_get_index(name: StrIn, event_index: IntOut) tool => crate::tools::event::get_index;
    MPI_T_event_get_info(event_index: Int, name: ToolStrOut, name_len: ToolLengthInOut, verbosity: ToolVerbosityOut,
        array_of_datatypes: DatatypesOut, array_of_displacements: AintsOut, num_elements: ToolLengthInOut,
        enumtype: ToolEnumOut, info: ToolInfoOut, desc: ToolStrOut, desc_len: ToolLengthInOut, bind: ToolBindOut) tool
        => crate::tools::event::get_info;
    MPI_T_event_get_num(num_events: IntOut) tool => crate::tools::event::get_num;
    MPI_T_event_get_source(event_instance: ToolEventInstance, source_index: IntOut) tool
        => crate::tools::event::get_source;
    MPI_T_event_get_timestamp(event_instance: ToolEventInstance, event_timestamp: LongCountOut) tool
        => crate::tools::event::get_timestamp;
    MPI_T_event_handle_alloc(event_index: Int, obj_handle: Addr, info: InfoOrNull,
        event_registration: ToolEventRegistrationOut) tool => crate::tools::event::handle_alloc;
    MPI_T_event_handle_free(event_registration: ToolEventRegistration, user_data: Addr,
        free_cb_function: ToolEventFreeFn) tool => crate::tools::event::handle_free;
    MPI_T_event_handle_get_info(event_registration: ToolEventRegistration, info_used: InfoOut) tool
        => crate::tools::event::handle_get_info;
    MPI_T_event_handle_set_info(event_registration: ToolEventRegistration, info: InfoOrNull) tool
        => crate::tools::event::handle_set_info;
    MPI_T_event_read(event_instance: ToolEventInstance, element_index: Int, buffer: Addr) tool
        => crate::tools::event::read;
    MPI_T_event_register_callback(event_registration: ToolEventRegistration, cb_safety: ToolCbSafety,
        info: InfoOrNull, user_data: Addr, event_cb_function: ToolEventFn) tool
        => crate::tools::event::register_callback;
    MPI_T_event_set_dropped_handler(event_registration: ToolEventRegistration,
        dropped_cb_function: ToolEventDroppedFn) tool => crate::tools::event::set_dropped_handler;
    MPI_T_finalize() tool => crate::tools::finalize;
    MPI_T_init_thread(required: ThreadLevel, provided: ThreadLevelOut) tool anytime => crate::tools::init_thread;
    MPI_T_pvar_get_index(name: StrIn, var_class: VariableClass, pvar_index: IntOut) tool => crate::tools::variable::get_index;
    MPI_T_pvar_get_info(pvar_index: Int, name: ToolStrOut, name_len: ToolLengthInOut, verbosity: ToolVerbosityOut,
        var_class: ToolVariableClassOut, datatype: ToolDatatypeOut, enumtype: ToolEnumOut, desc: ToolStrOut,
        desc_len: ToolLengthInOut, bind: ToolBindOut, readonly: ToolFlagOut, continuous: ToolFlagOut,
        atomic: ToolFlagOut) tool => crate::tools::variable::get_info;
    MPI_T_pvar_get_num(num_pvar: IntOut) tool => crate::tools::variable::get_num;
    MPI_T_pvar_handle_alloc(session: ToolPvarSession, pvar_index: Int, obj_handle: Addr,
        handle: ToolPvarRef, count: IntOut) tool => crate::tools::variable::handle_alloc;
    MPI_T_pvar_handle_free(session: ToolPvarSession, handle: ToolPvarRef) tool
        => crate::tools::variable::handle_free;
    MPI_T_pvar_read(session: ToolPvarSession, handle: ToolPvar, buf: ToolBufOut) tool
        => crate::tools::variable::read;
    MPI_T_pvar_readreset(session: ToolPvarSession, handle: ToolPvar, buf: ToolBufOut) tool
        => crate::tools::variable::readreset;
    MPI_T_pvar_reset(session: ToolPvarSession, handle: ToolPvar) tool => crate::tools::variable::reset;
    MPI_T_pvar_session_create(session: ToolPvarSessionRef) tool => crate::tools::variable::session_create;
    MPI_T_pvar_session_free(session: ToolPvarSessionRef) tool => crate::tools::variable::session_free;
    MPI_T_pvar_start(session: ToolPvarSession, handle: ToolPvar) tool => crate::tools::variable::start;
    MPI_T_pvar_stop(session: ToolPvarSession, handle: ToolPvar) tool => crate::tools::variable::stop;
    MPI_T_pvar_write(session: ToolPvarSession, handle: ToolPvar, buf: ToolBufIn) tool
        => crate::tools::variable::write;
    MPI_T_source_get_info(source_index: Int, name: ToolStrOut, name_len: ToolLengthInOut, desc: ToolStrOut,
        desc_len: ToolLengthInOut, ordering: ToolSourceOrderOut, ticks_per_second: ToolCountOut,
        max_ticks: ToolCountOut, info: ToolInfoOut) tool => crate::tools::event::source_get_info;
    MPI_T_source_get_num(num_sources: IntOut) tool => crate::tools::event::source_get_num;
    MPI_T_source_get_timestamp(source_index: Int, timestamp: LongCountOut) tool
        => crate::tools::event::source_get_timestamp;
}
