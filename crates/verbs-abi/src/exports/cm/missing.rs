//! What librdmacm has and this adapter has not: multicast, sockets over RDMA, enhanced connections, and options for them.

use super::done;
use super::layout::*;
use std::ffi::{c_int, c_void};

/// `RDMA_OPTION_ID`.
const OPTION_ID: c_int = 0;
/// `RDMA_OPTION_ID_ACK_TIMEOUT`, the last.
const ACK_TIMEOUT: c_int = 3;

macro_rules! refused {
    ($($name:ident)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> isize {
            done(Err(libc::EOPNOTSUPP)) as isize
        }
    )* };
}

refused! {
    rdma_join_multicast rdma_join_multicast_ex rdma_leave_multicast rdma_create_srq_ex rdma_init_qp_attr
    rdma_set_local_ece rdma_get_remote_ece
    raccept rbind rclose rconnect rfcntl rgetpeername rgetsockname rgetsockopt riomap riounmap riowrite rlisten
    rpoll rread rreadv rrecv rrecvfrom rrecvmsg rselect rsend rsendmsg rsendto rsetsockopt rshutdown rsocket rwrite
    rwritev
}

/// Options of an identifier say how hard to try, or what is so anyway: a port that is free may be taken at once.
#[unsafe(no_mangle)]
extern "C" fn rdma_set_option(
    _id: *mut CmId,
    level: c_int,
    name: c_int,
    _value: *mut c_void,
    _len: usize,
) -> c_int {
    let is_known = level == OPTION_ID && (0..=ACK_TIMEOUT).contains(&name);
    if is_known { 0 } else { done(Err(libc::EOPNOTSUPP)) }
}
