//! Asking, listening, answering and parting.

use super::layout::*;
use super::{SPACE_UDP, code, done, events, owned};
use crate::adapter::identifiers::Answer;
use crate::exports::contexts::REQUESTS_MAX;
use std::ffi::{c_int, c_void};
use std::net::{Ipv4Addr, SocketAddr};

/// Private data of the program's.
///
/// # Safety
/// `len` bytes at `at`, or null.
unsafe fn private(at: *const c_void, len: u8) -> Vec<u8> {
    if at.is_null() || len == 0 {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(at.cast::<u8>(), len.into()) }.to_vec()
}

/// What a program says of a connection, or without a word as many requests as go: the peer's that are kept, own ones, and
/// private data.
unsafe fn said(param: *const ConnParam, unless: (u8, u8)) -> ((u8, u8), Vec<u8>) {
    // SAFETY: the program's structure, or null.
    let (limits, private) = match unsafe { param.as_ref() } {
        // SAFETY: as the structure says.
        Some(param) => ((param.responder_resources, param.initiator_depth), unsafe {
            private(param.private_data, param.private_data_len)
        }),
        None => (unless, Vec::new()),
    };
    ((limits.0.min(REQUESTS_MAX), limits.1.min(REQUESTS_MAX)), private)
}

/// The queue pair of an identifier whose program has made it without one, by its number.
unsafe fn take_pair(id: *mut CmId, param: *const ConnParam) -> Result<(), c_int> {
    // SAFETY: an identifier of this library, and the program's structure, or null.
    let (number, param) = unsafe { (owned(id).number, param.as_ref()) };
    let mut adapter = crate::adapter().map_err(|error| code(&error))?;
    let known = adapter.identifiers.all.get(number).ok_or(libc::EINVAL)?;
    if known.pair.is_some() || known.is_datagram {
        return Ok(());
    }
    let (handle, is_datagram) = param.and_then(|param| adapter.pair_of(param.qp_num)).ok_or(libc::EINVAL)?;
    if is_datagram {
        return Err(libc::EINVAL);
    }
    adapter.identifiers.all.get(number).ok_or(libc::EINVAL)?.pair = Some(handle);
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_listen(id: *mut CmId, backlog: c_int) -> c_int {
    // SAFETY: an identifier of this library.
    let number = unsafe { owned(id).number };
    let listen = || -> Result<(), c_int> {
        // SAFETY: the same.
        let is_bound =
            unsafe { super::addresses::address((&raw const (*id).route.addr.src).cast()) }.is_some();
        if !is_bound {
            // SAFETY: the same.
            unsafe { super::bind(id, SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0))? };
        }
        let mut adapter = crate::adapter().map_err(|error| code(&error))?;
        adapter.listen(number, backlog).map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))
    };
    let listening = listen();
    crate::thread::start();
    done(listening)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_connect(id: *mut CmId, param: *mut ConnParam) -> c_int {
    // SAFETY: an identifier of this library, and the program's structure, or null.
    unsafe {
        let (limits, private) = said(param, (REQUESTS_MAX, REQUESTS_MAX));
        let connect = || -> Result<(), c_int> {
            take_pair(id, param)?;
            crate::thread::start();
            let mut adapter = crate::adapter().map_err(|error| code(&error))?;
            let asked = adapter.ask(owned(id).number, limits, &private);
            drop(adapter);
            asked.map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL))?;
            events::wait(id)
        };
        done(connect())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_accept(id: *mut CmId, param: *mut ConnParam) -> c_int {
    // SAFETY: an identifier of this library, and the program's structure, or null.
    unsafe {
        let is_datagram = (*id).ps == SPACE_UDP;
        let accept = || -> Result<(), c_int> {
            take_pair(id, param)?;
            crate::thread::start();
            let mut adapter = crate::adapter().map_err(|error| code(&error))?;
            let known = adapter.identifiers.all.get(owned(id).number).ok_or(libc::EINVAL)?;
            let (limits, private) = said(param, known.limits);
            let mut answer = None;
            if is_datagram {
                let own = (*id).qp.as_ref().map(|qp| qp.qp_num);
                let number = own.or(param.as_ref().map(|param| param.qp_num)).ok_or(libc::EINVAL)?;
                let (handle, _) = adapter.pair_of(number).filter(|pair| pair.1).ok_or(libc::EINVAL)?;
                let pair = adapter.pairs.get(handle).ok_or(libc::EINVAL)?;
                answer = Some(Answer { number, key: pair.attr.qkey, at: pair.at });
            }
            adapter.accept_call(owned(id).number, limits, &private, answer)?;
            drop(adapter);
            if is_datagram { Ok(()) } else { events::wait(id) }
        };
        done(accept())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject(id: *mut CmId, data: *const c_void, len: u8) -> c_int {
    // SAFETY: an identifier of this library, and the program's bytes.
    unsafe {
        let private = private(data, len);
        let Ok(mut adapter) = crate::adapter() else { return done(Err(libc::EIO)) };
        done(adapter.reject_call(owned(id).number, &private))
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject_ece(id: *mut CmId, data: *const c_void, len: u8) -> c_int {
    // SAFETY: as the caller says.
    unsafe { rdma_reject(id, data, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_disconnect(id: *mut CmId) -> c_int {
    // SAFETY: an identifier of this library.
    unsafe {
        let Ok(mut adapter) = crate::adapter() else { return done(Err(libc::EIO)) };
        let number = owned(id).number;
        let is_new = adapter
            .identifiers
            .all
            .get(number)
            .is_some_and(|known| matches!(known.phase, crate::adapter::identifiers::Phase::Connected));
        let parted = adapter.disconnect(number);
        drop(adapter);
        done(parted.and_then(|()| if is_new { events::wait(id) } else { Ok(()) }))
    }
}

/// A connection is there as soon as both sides have said so: there is nothing to add.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_establish(_id: *mut CmId) -> c_int {
    0
}
