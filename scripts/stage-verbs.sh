#!/bin/sh
# Links libibverbs.so.1 from the static library of crate `verbs-abi`, with the symbol versions of rdma-core, into a
# directory of its own below PREFIX: `tern verbs COMMAND` names it to the programs it starts.
#
# usage: stage-verbs.sh LIBTERN_VERBS.a PREFIX
set -eu

if [ $# -ne 2 ]; then
    echo "usage: stage-verbs.sh LIBTERN_VERBS.a PREFIX" >&2
    exit 2
fi
to=$2/lib/tern/verbs
mkdir -p "$to"

exports=$(mktemp)
trap 'rm -f "$exports"' EXIT
cat >"$exports" <<'END'
IBVERBS_1.0 {
    global:
        ibv_copy_path_rec_from_kern; ibv_copy_path_rec_to_kern; ibv_copy_qp_attr_from_kern; ibv_create_comp_channel;
        ibv_destroy_comp_channel; ibv_get_sysfs_path; ibv_rate_to_mult; ibv_read_sysfs_file; mult_to_ibv_rate;
    local: *;
};
IBVERBS_1.1 {
    global:
        ibv_ack_async_event; ibv_ack_cq_events; ibv_alloc_pd; ibv_attach_mcast; ibv_close_device; ibv_copy_ah_attr_from_kern;
        ibv_create_ah;
        ibv_create_ah_from_wc; ibv_create_cq; ibv_create_qp; ibv_create_srq; ibv_dealloc_pd; ibv_dereg_mr;
        ibv_destroy_ah; ibv_destroy_cq; ibv_destroy_qp; ibv_destroy_srq; ibv_detach_mcast; ibv_dofork_range;
        ibv_dontfork_range; ibv_event_type_str; ibv_fork_init; ibv_free_device_list; ibv_get_async_event;
        ibv_get_cq_event; ibv_get_device_guid; ibv_get_device_list; ibv_get_device_name; ibv_init_ah_from_wc;
        ibv_modify_qp; ibv_modify_srq; ibv_node_type_str; ibv_open_device; ibv_port_state_str; ibv_query_device;
        ibv_query_gid; ibv_query_pkey; ibv_query_port; ibv_query_qp; ibv_query_srq; ibv_rate_to_mbps; ibv_reg_mr;
        ibv_rereg_mr; ibv_resize_cq; ibv_resolve_eth_l2_from_gid; ibv_wc_status_str; mbps_to_ibv_rate;
} IBVERBS_1.0;
IBVERBS_1.5 { global: ibv_get_pkey_index; } IBVERBS_1.1;
IBVERBS_1.6 { global: ibv_qp_to_qp_ex; } IBVERBS_1.5;
IBVERBS_1.7 { global: ibv_reg_mr_iova; } IBVERBS_1.6;
IBVERBS_1.8 { global: ibv_reg_mr_iova2; } IBVERBS_1.7;
IBVERBS_1.9 { global: ibv_get_device_index; } IBVERBS_1.8;
IBVERBS_1.10 {
    global:
        ibv_import_device; ibv_import_mr; ibv_import_pd; ibv_query_ece; ibv_set_ece; ibv_unimport_mr; ibv_unimport_pd;
} IBVERBS_1.9;
IBVERBS_1.11 { global: _ibv_query_gid_ex; _ibv_query_gid_table; } IBVERBS_1.10;
IBVERBS_1.13 { global: ibv_import_dm; ibv_is_fork_initialized; ibv_unimport_dm; } IBVERBS_1.11;
IBVERBS_1.14 { global: ibv_query_qp_data_in_order; } IBVERBS_1.13;
IBVERBS_PRIVATE_34 {
    global:
        ibv_cmd_*; verbs_*; _verbs_init_and_alloc_context; __verbs_log; execute_ioctl; __ioctl_final_num_attrs;
        ibv_query_gid_type; ibv_read_ibdev_sysfs_file;
} IBVERBS_1.14;
END

# Never unloaded (nodelete): its thread may run after a dlclose. Written beside and renamed, so that a running program keeps
# its old file.
${CC:-cc} -shared -o "$to/.libibverbs.so.$$" \
    -Wl,-soname,libibverbs.so.1 -Wl,--version-script="$exports" \
    -Wl,--whole-archive "$1" -Wl,--no-whole-archive \
    -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,nodelete -Wl,--no-undefined -Wl,--as-needed \
    -lgcc_s -lpthread -ldl -lm -lrt -lc
mv "$to/.libibverbs.so.$$" "$to/libibverbs.so.1"
