//! Values of `infiniband/verbs.h`.
#![allow(missing_docs)]

pub const WC_SUCCESS: i32 = 0;
pub const WC_LOC_QP_OP_ERR: i32 = 2;
pub const WC_LOC_PROT_ERR: i32 = 4;
pub const WC_WR_FLUSH_ERR: i32 = 5;
pub const WC_REM_INV_REQ_ERR: i32 = 9;
pub const WC_REM_ACCESS_ERR: i32 = 10;
pub const WC_REM_OP_ERR: i32 = 11;
pub const WC_RETRY_EXC_ERR: i32 = 12;

pub const OP_SEND: i32 = 0;
pub const OP_WRITE: i32 = 1;
pub const OP_READ: i32 = 2;
pub const OP_COMPARE_SWAP: i32 = 3;
pub const OP_FETCH_ADD: i32 = 4;
pub const OP_RECEIVE: i32 = 128;
pub const OP_RECEIVE_WITH_IMMEDIATE: i32 = 129;

pub const FLAG_GRH: u32 = 1;
pub const FLAG_IMMEDIATE: u32 = 2;
pub const FLAG_INVALIDATED: u32 = 8;

pub const WR_WRITE: i32 = 0;
pub const WR_WRITE_WITH_IMMEDIATE: i32 = 1;
pub const WR_SEND: i32 = 2;
pub const WR_SEND_WITH_IMMEDIATE: i32 = 3;
pub const WR_READ: i32 = 4;
pub const WR_COMPARE_SWAP: i32 = 5;
pub const WR_FETCH_ADD: i32 = 6;
pub const WR_SEND_WITH_INVALIDATE: i32 = 9;

pub const SEND_FENCE: u32 = 1;
pub const SEND_SIGNALED: u32 = 2;
pub const SEND_SOLICITED: u32 = 4;
pub const SEND_INLINE: u32 = 8;

pub const STATE_RESET: i32 = 0;
pub const STATE_INIT: i32 = 1;
pub const STATE_RTR: i32 = 2;
pub const STATE_RTS: i32 = 3;
pub const STATE_SQD: i32 = 4;
pub const STATE_SQE: i32 = 5;
pub const STATE_ERR: i32 = 6;

pub const TYPE_RC: i32 = 2;
pub const TYPE_UD: i32 = 4;

/// `enum ibv_qp_attr_mask`.
pub mod attributes {
    pub const STATE: i32 = 1;
    pub const CURRENT: i32 = 1 << 1;
    pub const DRAIN_NOTICE: i32 = 1 << 2;
    pub const ACCESS: i32 = 1 << 3;
    pub const PKEY: i32 = 1 << 4;
    pub const PORT: i32 = 1 << 5;
    pub const QKEY: i32 = 1 << 6;
    pub const ROUTE: i32 = 1 << 7;
    pub const PATH_MTU: i32 = 1 << 8;
    pub const TIMEOUT: i32 = 1 << 9;
    pub const RETRIES: i32 = 1 << 10;
    pub const RNR_RETRIES: i32 = 1 << 11;
    pub const RQ_PSN: i32 = 1 << 12;
    pub const READS: i32 = 1 << 13;
    pub const RNR_TIMER: i32 = 1 << 15;
    pub const SQ_PSN: i32 = 1 << 16;
    pub const DEST_READS: i32 = 1 << 17;
    pub const DEST: i32 = 1 << 20;
}

pub const WC_RNR_RETRY_EXC_ERR: i32 = 13;

pub const TRANSPORT_IB: i32 = 0;
pub const TRANSPORT_IWARP: i32 = 1;
/// `IBV_LINK_LAYER_ETHERNET`, of `struct ibv_port_attr`.
pub const LINK_LAYER_ETHERNET: u8 = 2;
pub const PORT_ACTIVE: i32 = 4;

/// `enum ibv_gid_type`.
pub const GID_ROCE_V1: u32 = 1;
pub const GID_ROCE_V2: u32 = 2;

/// Of a region that peers may read and write: local write, remote write, remote read.
pub const ACCESS_ALL: i32 = 1 | 1 << 1 | 1 << 2;
/// Of a region that the adapter may write to for its own process.
pub const ACCESS_LOCAL_WRITE: i32 = 1;
/// Of a region that peers may write to.
pub const ACCESS_WRITE: i32 = 1 << 1;
/// Of a region that they may read.
pub const ACCESS_READ: i32 = 1 << 2;
/// Of a region whose words peers may change.
pub const ACCESS_ATOMIC: i32 = 1 << 3;

/// Of a region whose pages are fetched when they are needed, and not kept before.
pub const ACCESS_ON_DEMAND: i32 = 1 << 6;
/// `IBV_ODP_SUPPORT`, and of `enum ibv_odp_transport_cap_bits` Send, Receive, Write and Read.
pub const ODP_SUPPORT: u64 = 1;
pub const ODP_ALL: u32 = 0xf;

/// `enum ibv_atomic_cap`: none; atomic among those of the adapter; atomic against the processor's instructions, too.
pub const ATOMIC_NONE: i32 = 0;
pub const ATOMIC_GLOBAL: i32 = 2;

pub const EVENT_CQ_ERR: i32 = 0;
pub const EVENT_QP_FATAL: i32 = 1;
pub const EVENT_QP_REQ_ERR: i32 = 2;
pub const EVENT_QP_ACCESS_ERR: i32 = 3;
pub const EVENT_COMM_EST: i32 = 4;
pub const EVENT_SQ_DRAINED: i32 = 5;
pub const EVENT_DEVICE_FATAL: i32 = 8;
pub const EVENT_PORT_ACTIVE: i32 = 9;
pub const EVENT_PORT_ERR: i32 = 10;
pub const EVENT_SRQ_ERR: i32 = 14;
pub const EVENT_SRQ_LIMIT_REACHED: i32 = 15;
pub const EVENT_QP_LAST_WQE_REACHED: i32 = 16;
