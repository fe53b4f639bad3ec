//! The structures are those of `infiniband/verbs.h` and `rdma/rdma_cma.h`, where Debian's librdmacm-dev is installed.

use std::mem::{offset_of, size_of};
use std::process::Command;
use tern_verbs::exports::cm::layout::*;
use tern_verbs::layout::*;

/// Assertions for the C compiler: the size of a structure, and where its fields are.
macro_rules! asserted {
    ($($rust:ty = $c:literal: $($field:ident)* $([$($inner:ident = $name:literal)+])?;)*) => {{
        let mut lines = vec!["#include <rdma/rdma_cma.h>".to_string(), "#include <stddef.h>".to_string()];
        $(
            lines.push(format!("_Static_assert(sizeof({}) == {}, \"size of {}\");", $c, size_of::<$rust>(), $c));
            $(lines.push(at($c, stringify!($field), offset_of!($rust, $field)));)*
            $($(lines.push(at($c, $name, offset_of!($rust, $inner)));)+)?
        )*
        lines.join("\n") + "\n"
    }};
}

fn at(kind: &str, field: &str, offset: usize) -> String {
    format!("_Static_assert(offsetof({kind}, {field}) == {offset}, \"{kind}.{field}\");")
}

#[test]
fn structures_are_those_of_the_header() {
    if !std::path::Path::new("/usr/include/rdma/rdma_cma.h").exists() {
        eprintln!("skipped: there is no rdma/rdma_cma.h (Debian's package librdmacm-dev)");
        return;
    }
    let text = asserted! {
        Device = "struct ibv_device": node_type transport_type name dev_name dev_path ibdev_path;
        ContextOps = "struct ibv_context_ops": poll_cq req_notify_cq post_srq_recv post_send post_recv;
        Context = "struct ibv_context": device ops cmd_fd async_fd num_comp_vectors mutex abi_compat;
        VerbsContext = "struct verbs_context": query_port create_cq_ex query_device_ex open_qp create_qp_ex
            get_srq_num create_srq_ex open_xrcd close_xrcd sz context;
        DeviceAttr = "struct ibv_device_attr": node_guid vendor_id device_cap_flags max_sge max_sge_rd atomic_cap
            max_mcast_grp max_srq_sge max_pkeys phys_port_cnt;
        PortAttr = "struct ibv_port_attr": state gid_tbl_len max_msg_sz pkey_tbl_len lid active_width phys_state
            link_layer flags port_cap_flags2;
        GidEntry = "struct ibv_gid_entry": gid gid_index port_num gid_type ndev_ifindex;
        Pd = "struct ibv_pd": context handle;
        Mr = "struct ibv_mr": context pd addr length handle lkey rkey;
        CompChannel = "struct ibv_comp_channel": context fd refcnt;
        Cq = "struct ibv_cq": context channel cq_context handle cqe mutex cond comp_events_completed
            async_events_completed;
        Srq = "struct ibv_srq": context srq_context pd handle mutex cond events_completed;
        SrqAttr = "struct ibv_srq_attr": max_wr max_sge srq_limit;
        SrqInitAttr = "struct ibv_srq_init_attr": srq_context attr;
        Qp = "struct ibv_qp": context qp_context pd send_cq recv_cq srq handle qp_num state qp_type mutex cond
            events_completed;
        QpCap = "struct ibv_qp_cap": max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data;
        QpInitAttr = "struct ibv_qp_init_attr": qp_context send_cq recv_cq srq cap qp_type sq_sig_all;
        QpInitAttrEx = "struct ibv_qp_init_attr_ex": comp_mask pd xrcd create_flags source_qpn send_ops_flags;
        GlobalRoute = "struct ibv_global_route": dgid flow_label sgid_index hop_limit traffic_class;
        AhAttr = "struct ibv_ah_attr": grh dlid sl src_path_bits static_rate is_global port_num;
        QpAttr = "struct ibv_qp_attr": qp_state path_mtu qkey rq_psn sq_psn dest_qp_num qp_access_flags cap
            ah_attr alt_ah_attr pkey_index max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num timeout
            retry_cnt rnr_retry rate_limit;
        Sge = "struct ibv_sge": addr length lkey;
        SendWr = "struct ibv_send_wr": wr_id next sg_list num_sge opcode send_flags imm_data wr
            [xrc = "qp_type.xrc.remote_srqn"];
        RecvWr = "struct ibv_recv_wr": wr_id next sg_list num_sge;
        Wc = "struct ibv_wc": wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags pkey_index
            slid sl dlid_path_bits;
        Ah = "struct ibv_ah": context pd handle;
        AsyncEvent = "struct ibv_async_event": element event_type;
        Addr = "struct rdma_addr": [src = "src_addr" dst = "dst_addr" ib = "addr.ibaddr"];
        Route = "struct rdma_route": addr path_rec num_paths;
        CmId = "struct rdma_cm_id": verbs channel context qp route ps port_num event send_cq_channel send_cq
            recv_cq_channel recv_cq srq pd qp_type;
        ConnParam = "struct rdma_conn_param": private_data private_data_len responder_resources initiator_depth
            flow_control retry_count rnr_retry_count srq qp_num;
        UdParam = "struct rdma_ud_param": private_data private_data_len ah_attr qp_num qkey;
        CmEvent = "struct rdma_cm_event": id listen_id event status param;
        AddrInfo = "struct rdma_addrinfo": ai_flags ai_family ai_qp_type ai_port_space ai_src_len ai_dst_len
            ai_src_addr ai_dst_addr ai_src_canonname ai_dst_canonname ai_route_len ai_route ai_connect_len ai_connect
            ai_next;
    };
    let begins = |field, offset| at("struct ibv_device_attr_ex", field, offset);
    let text = text
        + &begins("comp_mask", offset_of!(DeviceAttrEx, comp_mask))
        + &begins("odp_caps.general_caps", offset_of!(DeviceAttrEx, odp_general))
        + &begins("odp_caps.per_transport_caps.rc_odp_caps", offset_of!(DeviceAttrEx, odp_rc));
    let folder = std::env::temp_dir().join(format!("tern-verbs-layout-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("layout.c");
    std::fs::write(&file, text).unwrap();
    let said = Command::new("cc").args(["-fsyntax-only", "-std=gnu11"]).arg(&file).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
