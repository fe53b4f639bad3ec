//! Endpoints: an identifier and its queue pair in one call, whose calls wait (`man rdma_create_ep`).

use super::layout::*;
use super::{addresses, rdma_resolve_addr, rdma_resolve_route};
use super::{
    bind, create_pair, done, events, owned, rdma_create_id, rdma_destroy_id, rdma_destroy_qp,
    rdma_destroy_srq,
};
use crate::adapter::identifiers::EventType;
use crate::exports::errno;
use crate::layout::*;
use std::ffi::c_int;
use std::ptr::null_mut;

/// `RAI_PASSIVE`.
const PASSIVE: c_int = 1;

/// What an endpoint is made of, beside its identifier.
unsafe fn furnish(
    id: *mut CmId,
    found: &AddrInfo,
    domain: *mut Pd,
    attr: *mut QpInitAttr,
) -> Result<(), c_int> {
    // SAFETY: an identifier of this library, and the program's structures.
    unsafe {
        (*id).qp_type = found.ai_qp_type;
        if found.ai_flags & PASSIVE != 0 {
            bind(id, addresses::address(found.ai_src_addr).ok_or(libc::EAFNOSUPPORT)?)?;
            owned(id).template = attr.as_ref().map(|attr| (domain, QpInitAttr { ..*attr }));
            return Ok(());
        }
        let is_resolved = rdma_resolve_addr(id, found.ai_src_addr, found.ai_dst_addr, 2000) == 0
            && rdma_resolve_route(id, 2000) == 0;
        if !is_resolved {
            return Err(errno());
        }
        if let Some(attr) = attr.as_mut() {
            attr.qp_type = found.ai_qp_type;
            create_pair(id, domain, attr)?;
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_ep(
    to: *mut *mut CmId,
    found: *mut AddrInfo,
    domain: *mut Pd,
    attr: *mut QpInitAttr,
) -> c_int {
    // SAFETY: the program's structures.
    unsafe {
        let found = &*found;
        let mut id = null_mut();
        if rdma_create_id(null_mut(), &mut id, null_mut(), found.ai_port_space) != 0 {
            return -1;
        }
        match furnish(id, found, domain, attr) {
            Ok(()) => *to = id,
            Err(error) => {
                rdma_destroy_ep(id);
                return done(Err(error));
            }
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_ep(id: *mut CmId) {
    // SAFETY: an identifier of this library, with what was made for it.
    unsafe {
        rdma_destroy_qp(id);
        rdma_destroy_srq(id);
        rdma_destroy_id(id);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_request(listener: *mut CmId, to: *mut *mut CmId) -> c_int {
    // SAFETY: an identifier of this library, and the program's variable.
    unsafe {
        if !owned(listener).waits {
            return done(Err(libc::EINVAL));
        }
        events::acknowledge_own(listener);
        let event = match events::next((*listener).channel) {
            Ok(event) => event,
            Err(error) => return done(Err(error)),
        };
        let (kind, status, id) = ((*event).event, (*event).status, (*event).id);
        if status != 0 || kind != EventType::ConnectRequest as c_int {
            events::rdma_ack_cm_event(event);
            return done(Err(if status == 0 { libc::EINVAL } else { status.abs() }));
        }
        if let Some((domain, attr)) = &owned(listener).template {
            let mut attr = QpInitAttr { qp_type: (*id).qp_type, ..*attr };
            if let Err(error) = create_pair(id, *domain, &mut attr) {
                events::rdma_ack_cm_event(event);
                rdma_destroy_id(id);
                return done(Err(error));
            }
        }
        (*id).event = event;
        *to = id;
    }
    0
}
