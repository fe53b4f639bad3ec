//! The C structures of `rdma/rdma_cma.h`, under their names without the prefix.
//!
//! `crates/verbs-abi/tests/layout.rs` compares sizes and offsets with the header.
#![allow(missing_docs)]

use crate::layout::*;
use std::ffi::{c_char, c_int, c_void};

/// `enum rdma_port_space`.
pub const SPACE_TCP: c_int = 0x0106;
pub const SPACE_UDP: c_int = 0x0111;
/// The key of queue pairs for datagrams whose identifiers are of [`SPACE_UDP`].
pub const DATAGRAM_KEY: u32 = 0x0123_4567;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct IbAddr {
    pub sgid: Gid,
    pub dgid: Gid,
    pub pkey: u16,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Addr {
    pub src: libc::sockaddr_storage,
    pub dst: libc::sockaddr_storage,
    pub ib: IbAddr,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Route {
    pub addr: Addr,
    pub path_rec: *mut c_void,
    pub num_paths: c_int,
}

#[repr(C)]
pub struct EventChannel {
    pub fd: c_int,
}

#[repr(C)]
pub struct CmId {
    pub verbs: *mut Context,
    pub channel: *mut EventChannel,
    pub context: *mut c_void,
    pub qp: *mut Qp,
    pub route: Route,
    pub ps: c_int,
    pub port_num: u8,
    pub event: *mut CmEvent,
    pub send_cq_channel: *mut CompChannel,
    pub send_cq: *mut Cq,
    pub recv_cq_channel: *mut CompChannel,
    pub recv_cq: *mut Cq,
    pub srq: *mut Srq,
    pub pd: *mut Pd,
    pub qp_type: c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct ConnParam {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub responder_resources: u8,
    pub initiator_depth: u8,
    pub flow_control: u8,
    pub retry_count: u8,
    pub rnr_retry_count: u8,
    pub srq: u8,
    pub qp_num: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct UdParam {
    pub private_data: *const c_void,
    pub private_data_len: u8,
    pub ah_attr: AhAttr,
    pub qp_num: u32,
    pub qkey: u32,
}

#[repr(C)]
pub union Param {
    pub conn: ConnParam,
    pub ud: UdParam,
}

#[repr(C)]
pub struct CmEvent {
    pub id: *mut CmId,
    pub listen_id: *mut CmId,
    pub event: c_int,
    pub status: c_int,
    pub param: Param,
}

#[repr(C)]
pub struct AddrInfo {
    pub ai_flags: c_int,
    pub ai_family: c_int,
    pub ai_qp_type: c_int,
    pub ai_port_space: c_int,
    pub ai_src_len: libc::socklen_t,
    pub ai_dst_len: libc::socklen_t,
    pub ai_src_addr: *mut libc::sockaddr,
    pub ai_dst_addr: *mut libc::sockaddr,
    pub ai_src_canonname: *mut c_char,
    pub ai_dst_canonname: *mut c_char,
    pub ai_route_len: usize,
    pub ai_route: *mut c_void,
    pub ai_connect_len: usize,
    pub ai_connect: *mut c_void,
    pub ai_next: *mut AddrInfo,
}
