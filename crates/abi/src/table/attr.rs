//! MPI 5.0, chapter 7 Attributes.

use crate::kind::function::{
    CommCopyFn, CommDeleteFn, CopyFn, DeleteFn, TypeCopyFn, TypeDeleteFn, WinCopyFn, WinDeleteFn,
};
use crate::kind::handle::{Comm, Datatype, Win};
use crate::kind::output::{FlagOut, KeyvalInOut, KeyvalOut, PtrOut};
use crate::kind::scalar::{Addr, Keyval};
use crate::table::rows;

rows! { "7 Attributes";
    MPI_Attr_delete(comm: Comm, keyval: Keyval) => crate::attr::comm_delete_attr;
    MPI_Attr_get(comm: Comm, keyval: Keyval, attribute_val: PtrOut, flag: FlagOut) => crate::attr::comm_get_attr;
    MPI_Attr_put(comm: Comm, keyval: Keyval, attribute_val: Addr) => crate::attr::comm_set_attr;
    MPI_Comm_create_keyval(comm_copy_attr_fn: CommCopyFn, comm_delete_attr_fn: CommDeleteFn,
        comm_keyval: KeyvalOut, extra_state: Addr) => crate::attr::comm_create_keyval;
    MPI_Comm_delete_attr(comm: Comm, comm_keyval: Keyval) => crate::attr::comm_delete_attr;
    MPI_Comm_free_keyval(comm_keyval: KeyvalInOut) => crate::attr::comm_free_keyval;
    MPI_Comm_get_attr(comm: Comm, comm_keyval: Keyval, attribute_val: PtrOut, flag: FlagOut)
        => crate::attr::comm_get_attr;
    MPI_Comm_set_attr(comm: Comm, comm_keyval: Keyval, attribute_val: Addr) => crate::attr::comm_set_attr;
    MPI_Keyval_create(copy_fn: CopyFn, delete_fn: DeleteFn, keyval: KeyvalOut, extra_state: Addr)
        => crate::attr::comm_create_keyval;
    MPI_Keyval_free(keyval: KeyvalInOut) => crate::attr::comm_free_keyval;
    MPI_Type_create_keyval(type_copy_attr_fn: TypeCopyFn, type_delete_attr_fn: TypeDeleteFn,
        type_keyval: KeyvalOut, extra_state: Addr) => crate::attr::type_create_keyval;
    MPI_Type_delete_attr(datatype: Datatype, type_keyval: Keyval) => crate::attr::type_delete_attr;
    MPI_Type_free_keyval(type_keyval: KeyvalInOut) => crate::attr::type_free_keyval;
    MPI_Type_get_attr(datatype: Datatype, type_keyval: Keyval, attribute_val: PtrOut, flag: FlagOut)
        => crate::attr::type_get_attr;
    MPI_Type_set_attr(datatype: Datatype, type_keyval: Keyval, attribute_val: Addr) => crate::attr::type_set_attr;
    MPI_Win_create_keyval(win_copy_attr_fn: WinCopyFn, win_delete_attr_fn: WinDeleteFn,
        win_keyval: KeyvalOut, extra_state: Addr) => crate::attr::win_create_keyval;
    MPI_Win_delete_attr(win: Win, win_keyval: Keyval) => crate::attr::win_delete_attr;
    MPI_Win_free_keyval(win_keyval: KeyvalInOut) => crate::attr::win_free_keyval;
    MPI_Win_get_attr(win: Win, win_keyval: Keyval, attribute_val: PtrOut, flag: FlagOut) => crate::attr::win_get_attr;
    MPI_Win_set_attr(win: Win, win_keyval: Keyval, attribute_val: Addr) => crate::attr::win_set_attr;
}
