//! Functions of the application. Their addresses are kept as numbers; only this crate calls
//! them, with no borrow of the world alive.

use super::{Role, kinds, two_width_kinds};

/// A function whose signature depends on the width of the form it was registered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizedFunction {
    /// Its address.
    pub address: usize,
    /// Whether it takes counts as `MPI_Count`.
    pub large: bool,
}

macro_rules! functions {
    ($($name:ident $c:literal;)*) => { kinds! { $(
        #[doc = concat!("A function of type `", $c, "`.")]
        $name: usize, concat!($c, " *"), Role::Address, usize, |raw, arg, cx| Ok(raw);
    )* } };
}

functions! {
    CommCopyFn "MPI_Comm_copy_attr_function";
    CommDeleteFn "MPI_Comm_delete_attr_function";
    TypeCopyFn "MPI_Type_copy_attr_function";
    TypeDeleteFn "MPI_Type_delete_attr_function";
    WinCopyFn "MPI_Win_copy_attr_function";
    WinDeleteFn "MPI_Win_delete_attr_function";
    CopyFn "MPI_Copy_function";
    DeleteFn "MPI_Delete_function";
    CommErrhandlerFn "MPI_Comm_errhandler_function";
    WinErrhandlerFn "MPI_Win_errhandler_function";
    FileErrhandlerFn "MPI_File_errhandler_function";
    SessionErrhandlerFn "MPI_Session_errhandler_function";
    GrequestQueryFn "MPI_Grequest_query_function";
    GrequestFreeFn "MPI_Grequest_free_function";
    GrequestCancelFn "MPI_Grequest_cancel_function";
    DatarepExtentFn "MPI_Datarep_extent_function";
}

two_width_kinds! {
    /// A reduction operation of the application.
    UserFn: (usize, "MPI_User_function *") | (usize, "MPI_User_function_c *"), Role::Address, SizedFunction,
        |raw, wide, arg| Ok(SizedFunction { address: raw, large: wide });
    /// Converts data between the file's representation and memory.
    DatarepConversionFn: (usize, "MPI_Datarep_conversion_function *") | (usize, "MPI_Datarep_conversion_function_c *"),
        Role::Address, SizedFunction, |raw, wide, arg| Ok(SizedFunction { address: raw, large: wide });
}
