//! Addresses of sockets, as C has them and as Rust does.

use super::layout::*;
use super::{TYPE_RC, TYPE_UD, done};
use std::ffi::{c_char, c_int};
use std::net::SocketAddr;
use std::ptr::null_mut;
pub use verbs_layout::address::{address, storage};

/// `RAI_*` of `rdma/rdma_cma.h`.
const PASSIVE: c_int = 1;
const NUMERIC_HOST: c_int = 2;
const FAMILY: c_int = 8;

fn port(at: &libc::sockaddr_storage) -> u16 {
    // SAFETY: as its family says.
    unsafe { address((&raw const *at).cast()) }.map_or(0, |at| at.port().to_be())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_src_port(id: *mut CmId) -> u16 {
    // SAFETY: an identifier of this library.
    port(unsafe { &(*id).route.addr.src })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_dst_port(id: *mut CmId) -> u16 {
    // SAFETY: an identifier of this library.
    port(unsafe { &(*id).route.addr.dst })
}

/// An address on the heap of its own, and its length.
fn kept(at: SocketAddr) -> (*mut libc::sockaddr, libc::socklen_t) {
    let len = if at.is_ipv4() { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() };
    (Box::into_raw(Box::new(storage(at))).cast(), len as libc::socklen_t)
}

/// What the system finds to a name.
///
/// # Safety
/// Strings that end with a zero, or null.
unsafe fn found(
    node: *const c_char,
    service: *const c_char,
    flags: c_int,
    family: c_int,
) -> Result<SocketAddr, c_int> {
    // SAFETY: zeros are no wish.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    (hints.ai_family, hints.ai_socktype) = (family, libc::SOCK_STREAM);
    hints.ai_flags |= if flags & PASSIVE != 0 { libc::AI_PASSIVE } else { 0 };
    hints.ai_flags |= if flags & NUMERIC_HOST != 0 { libc::AI_NUMERICHOST } else { 0 };
    let mut list = null_mut();
    // SAFETY: as the caller says; the list is given back.
    unsafe {
        let error = libc::getaddrinfo(node, service, &hints, &mut list);
        if error != 0 {
            return Err(error);
        }
        let at = address((*list).ai_addr);
        libc::freeaddrinfo(list);
        at.ok_or(libc::EAI_FAMILY)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const AddrInfo,
    result: *mut *mut AddrInfo,
) -> c_int {
    // SAFETY: the program's strings and structure, or null.
    let hints = unsafe { hints.as_ref() };
    let flags = hints.map_or(0, |hints| hints.ai_flags);
    let family = hints.filter(|_| flags & FAMILY != 0).map_or(libc::AF_UNSPEC, |hints| hints.ai_family);
    let wanted = hints.map_or(0, |hints| hints.ai_port_space);
    let is_datagram = wanted == SPACE_UDP || hints.is_some_and(|hints| hints.ai_qp_type == TYPE_UD);
    if wanted != 0 && !matches!(wanted, SPACE_TCP | SPACE_UDP) {
        return done(Err(libc::EPROTONOSUPPORT));
    }
    // SAFETY: zeros are an empty answer.
    let mut answer: AddrInfo = unsafe { std::mem::zeroed() };
    answer.ai_flags = flags;
    (answer.ai_qp_type, answer.ai_port_space) =
        if is_datagram { (TYPE_UD, SPACE_UDP) } else { (TYPE_RC, SPACE_TCP) };
    // SAFETY: as the caller says.
    let own = hints.and_then(|hints| unsafe { address(hints.ai_src_addr) });
    let is_bare = node.is_null() && service.is_null();
    let at = match own {
        Some(own) if is_bare => Ok(own),
        // SAFETY: the program's strings.
        _ => unsafe { found(node, service, flags, family) },
    };
    let at = match at {
        Ok(at) => at,
        Err(error) => return error,
    };
    answer.ai_family = if at.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    if flags & PASSIVE != 0 || is_bare {
        (answer.ai_src_addr, answer.ai_src_len) = kept(at);
    } else {
        (answer.ai_dst_addr, answer.ai_dst_len) = kept(at);
        let towards = launch::sys::net::towards(at.ip()).ok().map(|own| SocketAddr::new(own, 0));
        if let Some(own) = own.or(towards) {
            (answer.ai_src_addr, answer.ai_src_len) = kept(own);
        }
    }
    // SAFETY: the program's variable.
    unsafe { *result = Box::into_raw(Box::new(answer)) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_freeaddrinfo(mut list: *mut AddrInfo) {
    while !list.is_null() {
        // SAFETY: answers of `rdma_getaddrinfo`, whose addresses were made by `kept`.
        unsafe {
            let answer = Box::from_raw(list);
            for at in [answer.ai_src_addr, answer.ai_dst_addr] {
                if !at.is_null() {
                    drop(Box::from_raw(at.cast::<libc::sockaddr_storage>()));
                }
            }
            list = answer.ai_next;
        }
    }
}
