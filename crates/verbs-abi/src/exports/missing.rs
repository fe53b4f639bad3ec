//! What libibverbs has and this adapter has not: it is refused as libibverbs refuses what an adapter cannot do.

use super::none;
use crate::layout::*;
use std::ffi::{c_int, c_void};

macro_rules! refused {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            libc::EOPNOTSUPP
        }
    )* };
}

macro_rules! nothing {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> *mut c_void {
            none(libc::EOPNOTSUPP)
        }
    )* };
}

refused! {
    ibv_attach_mcast ibv_detach_mcast ibv_rereg_mr ibv_query_ece ibv_set_ece
    ibv_query_qp_data_in_order ibv_resolve_eth_l2_from_gid
}

nothing! { ibv_import_device ibv_import_pd ibv_import_mr ibv_import_dm ibv_reg_dmabuf_mr }

#[unsafe(no_mangle)]
extern "C" fn ibv_unimport_pd(_pd: *mut Pd) {}

#[unsafe(no_mangle)]
extern "C" fn ibv_unimport_mr(_mr: *mut Mr) {}

#[unsafe(no_mangle)]
extern "C" fn ibv_unimport_dm(_memory: *mut c_void) {}

/// Memory is not pinned: a child of a fork has its own, and nothing has to be kept from it.
#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    0
}

/// `IBV_FORK_UNNEEDED`.
#[unsafe(no_mangle)]
extern "C" fn ibv_is_fork_initialized() -> c_int {
    2
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dofork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dontfork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

/// What drivers of real adapters ask of libibverbs: they are loaded along with some programs, and bound at once.
mod drivers {
    use std::ffi::{c_int, c_void};

    refused! {
        ibv_cmd_advise_mr ibv_cmd_alloc_dm ibv_cmd_alloc_mw ibv_cmd_alloc_pd ibv_cmd_attach_mcast
        ibv_cmd_close_xrcd ibv_cmd_create_ah ibv_cmd_create_counters ibv_cmd_create_cq ibv_cmd_create_cq_ex
        ibv_cmd_create_cq_ex2 ibv_cmd_create_flow ibv_cmd_create_flow_action_esp ibv_cmd_create_qp ibv_cmd_create_qp_ex
        ibv_cmd_create_qp_ex2 ibv_cmd_create_rwq_ind_table ibv_cmd_create_srq ibv_cmd_create_srq_ex
        ibv_cmd_create_wq ibv_cmd_dealloc_mw ibv_cmd_dealloc_pd ibv_cmd_dereg_mr ibv_cmd_destroy_ah
        ibv_cmd_destroy_counters ibv_cmd_destroy_cq ibv_cmd_destroy_flow ibv_cmd_destroy_flow_action
        ibv_cmd_destroy_qp ibv_cmd_destroy_rwq_ind_table ibv_cmd_destroy_srq ibv_cmd_destroy_wq
        ibv_cmd_detach_mcast ibv_cmd_free_dm ibv_cmd_get_context ibv_cmd_modify_cq
        ibv_cmd_modify_flow_action_esp ibv_cmd_modify_qp ibv_cmd_modify_qp_ex ibv_cmd_modify_srq
        ibv_cmd_modify_wq ibv_cmd_open_qp ibv_cmd_open_xrcd ibv_cmd_poll_cq ibv_cmd_post_recv
        ibv_cmd_post_send ibv_cmd_post_srq_recv ibv_cmd_query_context ibv_cmd_query_device_any
        ibv_cmd_query_mr ibv_cmd_query_port ibv_cmd_query_qp ibv_cmd_query_srq ibv_cmd_read_counters
        ibv_cmd_reg_dm_mr ibv_cmd_reg_dmabuf_mr ibv_cmd_reg_mr ibv_cmd_req_notify_cq ibv_cmd_rereg_mr
        ibv_cmd_resize_cq execute_ioctl
    }

    nothing! { _verbs_init_and_alloc_context verbs_open_device }

    macro_rules! unheard {
        ($($name:ident)*) => { $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() {}
        )* };
    }

    // Drivers make themselves known when they are loaded; none is ever asked for an adapter.
    unheard! {
        verbs_register_driver_33 verbs_register_driver_34 verbs_set_ops verbs_uninit_context verbs_init_cq verbs_allow_disassociate_destroy
        ibv_register_driver
    }

    use super::none;

    /// Messages of drivers, of which none is at work.
    #[unsafe(no_mangle)]
    extern "C" fn __verbs_log() {}

    #[unsafe(no_mangle)]
    extern "C" fn __ioctl_final_num_attrs() -> c_int {
        0
    }

    #[unsafe(no_mangle)]
    extern "C" fn ibv_read_ibdev_sysfs_file() -> c_int {
        -1
    }

    // rdma-core's librdmacm hands on what the kernel tells it; this one has no need of that.
    unheard! {
        ibv_copy_ah_attr_from_kern ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern
    }
}
