//! The private functions of rdma-core under the version that they had until release 33 (Debian 11): its librdmacm, its programs and its
//! drivers ask for them so. Each leads to the one of today.

/// An instruction that goes on at a function.
#[cfg(target_arch = "x86_64")]
macro_rules! go_to {
    ($name:literal) => {
        concat!("jmp ", $name, "@PLT")
    };
}

/// See above.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! go_to {
    ($name:literal) => {
        concat!("b ", $name)
    };
}

macro_rules! older {
    ($($name:literal)*) => { $(
        std::arch::global_asm!(
            ".pushsection .text",
            concat!(".globl older_", $name),
            concat!(".type older_", $name, ",%function"),
            concat!("older_", $name, ":"),
            go_to!($name),
            concat!(".symver older_", $name, ",", $name, "@IBVERBS_PRIVATE_33"),
            ".popsection",
        );
    )* };
}

older! {
    "__ioctl_final_num_attrs" "_verbs_init_and_alloc_context" "execute_ioctl" "ibv_cmd_advise_mr"
    "ibv_cmd_alloc_dm" "ibv_cmd_alloc_mw" "ibv_cmd_alloc_pd" "ibv_cmd_attach_mcast" "ibv_cmd_close_xrcd"
    "ibv_cmd_create_ah" "ibv_cmd_create_counters" "ibv_cmd_create_cq" "ibv_cmd_create_cq_ex"
    "ibv_cmd_create_flow" "ibv_cmd_create_flow_action_esp" "ibv_cmd_create_qp" "ibv_cmd_create_qp_ex"
    "ibv_cmd_create_qp_ex2" "ibv_cmd_create_rwq_ind_table" "ibv_cmd_create_srq" "ibv_cmd_create_srq_ex"
    "ibv_cmd_create_wq" "ibv_cmd_dealloc_mw" "ibv_cmd_dealloc_pd" "ibv_cmd_dereg_mr" "ibv_cmd_destroy_ah"
    "ibv_cmd_destroy_counters" "ibv_cmd_destroy_cq" "ibv_cmd_destroy_flow" "ibv_cmd_destroy_flow_action"
    "ibv_cmd_destroy_qp" "ibv_cmd_destroy_rwq_ind_table" "ibv_cmd_destroy_srq" "ibv_cmd_destroy_wq"
    "ibv_cmd_detach_mcast" "ibv_cmd_free_dm" "ibv_cmd_get_context" "ibv_cmd_modify_cq"
    "ibv_cmd_modify_flow_action_esp" "ibv_cmd_modify_qp" "ibv_cmd_modify_qp_ex" "ibv_cmd_modify_srq"
    "ibv_cmd_modify_wq" "ibv_cmd_open_qp" "ibv_cmd_open_xrcd" "ibv_cmd_poll_cq" "ibv_cmd_post_recv"
    "ibv_cmd_post_send" "ibv_cmd_post_srq_recv" "ibv_cmd_query_context" "ibv_cmd_query_device_any"
    "ibv_cmd_query_mr" "ibv_cmd_query_port" "ibv_cmd_query_qp" "ibv_cmd_query_srq" "ibv_cmd_read_counters"
    "ibv_cmd_reg_dm_mr" "ibv_cmd_reg_mr" "ibv_cmd_req_notify_cq" "ibv_cmd_rereg_mr" "ibv_cmd_resize_cq"
    "ibv_query_gid_type" "ibv_read_ibdev_sysfs_file" "verbs_allow_disassociate_destroy" "verbs_init_cq"
    "verbs_open_device" "verbs_set_ops" "verbs_uninit_context"
}
