//! The objects of the tools interface (MPI 5.0 chapter 15). They are pointers without
//! predefined values but NULL, and belong to no table of the rank.

use super::{Role, kinds};

macro_rules! tool_kinds {
    ($($name:ident $c:literal;)*) => { kinds! { $(
        #[doc = concat!("An `", $c, "`.")]
        $name: usize, $c, Role::Address, usize, |raw, arg, cx| Ok(raw);
    )* } };
}

tool_kinds! {
    ToolEnum "MPI_T_enum";
    ToolEnumOut "MPI_T_enum *";
    ToolCvar "MPI_T_cvar_handle";
    ToolCvarOut "MPI_T_cvar_handle *";
    ToolPvar "MPI_T_pvar_handle";
    ToolPvarOut "MPI_T_pvar_handle *";
    ToolPvarSession "MPI_T_pvar_session";
    ToolPvarSessionOut "MPI_T_pvar_session *";
    ToolEventRegistration "MPI_T_event_registration";
    ToolEventRegistrationOut "MPI_T_event_registration *";
    ToolEventInstance "MPI_T_event_instance";
    ToolSourceOrderOut "MPI_T_source_order *";
    ToolEventFn "MPI_T_event_cb_function *";
    ToolEventFreeFn "MPI_T_event_free_cb_function *";
    ToolEventDroppedFn "MPI_T_event_dropped_cb_function *";
}

kinds! {
    /// How careful a callback is.
    ToolCbSafety: i32, "MPI_T_cb_safety", Role::Number, i32, |raw, arg, cx| Ok(raw);
}
