//! The C functions of `librdmacm.so.1`: identifiers, what they are bound to, and their queue pairs.
//!
//! A program that gives an identifier no channel waits in each call for what comes of it (`man rdma_create_id`).

mod addresses;
mod calls;
mod endpoints;
mod events;
mod missing;

pub use verbs_layout::cm as layout;

use super::contexts::{self, device_of};
use super::{code, errno, objects, pairs, set_errno};
use crate::adapter::constants::*;
use crate::adapter::identifiers::Identifier;
use crate::interfaces::{Interface, interface_of, interfaces};
use crate::layout::*;
use layout::*;
use std::ffi::{c_int, c_void};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// An identifier: what the program sees, and what belongs to it.
#[repr(C)]
struct Owned {
    id: CmId,
    /// As the adapter knows it.
    number: u32,
    /// Whether its calls wait.
    waits: bool,
    /// What queue pairs of who asks this listener are made of (`rdma_create_ep`).
    template: Option<(*mut Pd, QpInitAttr)>,
}

/// # Safety
/// `id` is one of `rdma_create_id`.
unsafe fn owned<'a>(id: *mut CmId) -> &'a mut Owned {
    // SAFETY: as the caller says; it is the first field.
    unsafe { &mut *id.cast::<Owned>() }
}

/// What a function gives back: -1 and why, or 0.
fn done(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            set_errno(error);
            -1
        }
    }
}

/// An open device of this library's own, and a domain in it for programs that bring none.
#[derive(Clone)]
struct Known {
    interface: Interface,
    context: *mut Context,
    domain: *mut Pd,
}

// SAFETY: they are closed never, and changed by the functions of libibverbs alone.
unsafe impl Send for Known {}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The device of an interface, opened once.
fn known_of(interface: Interface) -> Result<Known, c_int> {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.iter().find(|known| known.interface == interface) {
        return Ok(known.clone());
    }
    // SAFETY: a device of the list, and what is made of it.
    let (context, domain) = unsafe {
        let context = contexts::ibv_open_device(device_of(interface.clone()));
        if context.is_null() {
            return Err(libc::ENODEV);
        }
        (context, objects::ibv_alloc_pd(context))
    };
    if domain.is_null() {
        return Err(libc::ENOMEM);
    }
    let known = Known { interface, context, domain };
    all.push(known.clone());
    Ok(known)
}

/// The device at an address of this host.
fn known_at(at: IpAddr) -> Result<Known, c_int> {
    known_of(interface_of(at).ok_or(libc::ENODEV)?)
}

/// Binds an identifier to the device of its own address, unless that is any.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
unsafe fn bind_to_device(id: *mut CmId, at: IpAddr) -> Result<(), c_int> {
    if at.is_unspecified() {
        return Ok(());
    }
    let known = known_at(at)?;
    // SAFETY: as the caller says.
    let id = unsafe { &mut *id };
    (id.verbs, id.port_num) = (known.context, 1);
    if id.pd.is_null() {
        id.pd = known.domain;
    }
    Ok(())
}

/// Writes both addresses of an identifier where the program sees them.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
unsafe fn note_addresses(id: *mut CmId, at: Option<SocketAddr>, peer: Option<SocketAddr>) {
    use crate::adapter::number::gid;
    // SAFETY: as the caller says.
    let addr = unsafe { &mut (*id).route.addr };
    if let Some(at) = at {
        (addr.src, addr.ib.sgid) = (addresses::storage(at), Gid(gid(at.ip())));
    }
    if let Some(peer) = peer {
        (addr.dst, addr.ib.dgid) = (addresses::storage(peer), Gid(gid(peer.ip())));
    }
    addr.ib.pkey = u16::MAX;
}

/// A new object for an identifier of the adapter's.
fn object(
    channel: *mut EventChannel,
    context: *mut c_void,
    ps: c_int,
    number: u32,
    waits: bool,
) -> *mut CmId {
    // SAFETY: null pointers, no family of addresses, zeros: all that a fresh identifier has.
    let mut id: CmId = unsafe { std::mem::zeroed() };
    (id.channel, id.context, id.ps) = (channel, context, ps);
    id.qp_type = if ps == SPACE_UDP { TYPE_UD } else { TYPE_RC };
    Box::into_raw(Box::new(Owned { id, number, waits, template: None })).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_id(
    channel: *mut EventChannel,
    id: *mut *mut CmId,
    context: *mut c_void,
    ps: c_int,
) -> c_int {
    if !matches!(ps, SPACE_TCP | SPACE_UDP) {
        return done(Err(libc::EPROTONOSUPPORT));
    }
    let waits = channel.is_null();
    let channel = if waits { events::rdma_create_event_channel() } else { channel };
    if channel.is_null() {
        return -1;
    }
    // SAFETY: a channel of this library.
    let number = unsafe { events::number_of(channel) };
    let fresh = Identifier { channel: number, is_datagram: ps == SPACE_UDP, ..Identifier::default() };
    let made = crate::adapter().map_err(|error| code(&error)).and_then(|mut adapter| {
        let known = adapter.identifiers.channels.get(number).ok_or(libc::EINVAL)?;
        known.users += 1;
        let number = adapter.identifiers.all.insert(fresh);
        let object = object(channel, context, ps, number, waits);
        adapter.identifiers.all.get(number).ok_or(libc::EINVAL)?.address = object as usize;
        Ok(object)
    });
    // SAFETY: the program's variable.
    done(made.map(|made| unsafe { *id = made }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_id(id: *mut CmId) -> c_int {
    // SAFETY: an identifier of this library.
    let (number, waits, channel) = unsafe { (owned(id).number, owned(id).waits, (*id).channel) };
    // SAFETY: the same.
    unsafe { events::acknowledge_own(id) };
    let Ok(mut adapter) = crate::adapter() else { return done(Err(libc::EIO)) };
    let Some(known) = adapter.identifiers.remove(number) else { return done(Err(libc::EINVAL)) };
    if let Some(pair) = known.pair.and_then(|pair| adapter.pairs.get(pair)) {
        pair.identifier = None;
    }
    if let Some(channel) = adapter.identifiers.channels.get(known.channel) {
        channel.users -= 1;
    }
    drop(adapter);
    if waits {
        // SAFETY: made for this identifier alone.
        unsafe { events::rdma_destroy_event_channel(channel) };
    }
    // SAFETY: made by `object`, and given back once.
    drop(unsafe { Box::from_raw(id.cast::<Owned>()) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_bind_addr(id: *mut CmId, addr: *mut libc::sockaddr) -> c_int {
    // SAFETY: the program's address.
    let at = unsafe { addresses::address(addr) };
    // SAFETY: an identifier of this library.
    done(at.ok_or(libc::EAFNOSUPPORT).and_then(|at| unsafe { bind(id, at) }))
}

/// Takes a port for an identifier.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
unsafe fn bind(id: *mut CmId, at: SocketAddr) -> Result<(), c_int> {
    // SAFETY: as the caller says.
    unsafe {
        bind_to_device(id, at.ip())?;
        let mut adapter = crate::adapter().map_err(|error| code(&error))?;
        let at = adapter.bind(owned(id).number, at).map_err(|error| code(&error))?;
        note_addresses(id, Some(at), None);
    }
    Ok(())
}

/// Where a peer is, and which device leads there.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
unsafe fn resolve(id: *mut CmId, own: Option<SocketAddr>, peer: SocketAddr) -> Result<(), c_int> {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(own) = own {
            bind(id, own)?;
        }
        let bound = addresses::address((&raw const (*id).route.addr.src).cast());
        let at = match bound.filter(|at| !at.ip().is_unspecified()) {
            Some(at) => at,
            None => {
                let at = launch::sys::net::towards(peer.ip()).map_err(|error| code(&error))?;
                SocketAddr::new(at, bound.map_or(0, |bound| bound.port()))
            }
        };
        bind_to_device(id, at.ip())?;
        note_addresses(id, Some(at), Some(peer));
        let mut adapter = crate::adapter().map_err(|error| code(&error))?;
        let known = adapter.identifiers.all.get(owned(id).number).ok_or(libc::EINVAL)?;
        (known.at, known.peer) = (Some(at), Some(peer));
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_addr(
    id: *mut CmId,
    own: *mut libc::sockaddr,
    peer: *mut libc::sockaddr,
    _timeout_ms: c_int,
) -> c_int {
    use crate::adapter::identifiers::{EventType, News};
    // SAFETY: the program's addresses, or null, and an identifier of this library.
    unsafe {
        let own = addresses::address(own);
        let Some(peer) = addresses::address(peer) else { return done(Err(libc::EAFNOSUPPORT)) };
        // Any address of this host is this host.
        let any: IpAddr = Ipv4Addr::LOCALHOST.into();
        let peer = if peer.ip() == Ipv4Addr::UNSPECIFIED { SocketAddr::new(any, peer.port()) } else { peer };
        done(
            resolve(id, own, peer)
                .and_then(|()| events::tell(id, |number| News::new(number, EventType::AddressResolved, 0))),
        )
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_route(id: *mut CmId, _timeout_ms: c_int) -> c_int {
    use crate::adapter::identifiers::{EventType, News};
    // SAFETY: an identifier of this library.
    unsafe {
        if (*id).verbs.is_null() {
            return done(Err(libc::EINVAL));
        }
        done(events::tell(id, |number| News::new(number, EventType::RouteResolved, 0)))
    }
}

/// A completion queue for an identifier whose program brings none, with a channel.
unsafe fn queue(id: &CmId, entries: u32) -> Result<(*mut CompChannel, *mut Cq), c_int> {
    // SAFETY: an open device.
    unsafe {
        let channel = objects::ibv_create_comp_channel(id.verbs);
        if channel.is_null() {
            return Err(libc::ENOMEM);
        }
        let entries = entries.max(1) as c_int;
        let cq = objects::ibv_create_cq(id.verbs, entries, (&raw const *id).cast_mut().cast(), channel, 0);
        if cq.is_null() {
            objects::ibv_destroy_comp_channel(channel);
            return Err(libc::ENOMEM);
        }
        Ok((channel, cq))
    }
}

/// Gives back what [`queue`] has made.
unsafe fn give_back_queues(id: &mut CmId) {
    for (channel, cq) in
        [(&mut id.send_cq_channel, &mut id.send_cq), (&mut id.recv_cq_channel, &mut id.recv_cq)]
    {
        let (channel, cq) = (std::mem::replace(channel, null_mut()), std::mem::replace(cq, null_mut()));
        if !channel.is_null() {
            // SAFETY: made by `queue`, and not used any more.
            unsafe {
                objects::ibv_destroy_cq(cq);
                objects::ibv_destroy_comp_channel(channel);
            }
        }
    }
}

/// Makes the queue pair of an identifier.
///
/// # Safety
/// `id` is one of `rdma_create_id`, and `attr` as for `ibv_create_qp`, with queues that may be null.
unsafe fn create_pair(id: *mut CmId, domain: *mut Pd, attr: &mut QpInitAttr) -> Result<(), c_int> {
    // SAFETY: as the caller says.
    let (number, id) = unsafe { (owned(id).number, &mut *id) };
    let domain = if domain.is_null() { id.pd } else { domain };
    if id.verbs.is_null() || domain.is_null() || !id.qp.is_null() || attr.qp_type != id.qp_type {
        return Err(libc::EINVAL);
    }
    // SAFETY: objects of this library.
    unsafe {
        if (*domain).context != id.verbs {
            return Err(libc::EINVAL);
        }
        if attr.send_cq.is_null() {
            (id.send_cq_channel, id.send_cq) = queue(id, attr.cap.max_send_wr)?;
            attr.send_cq = id.send_cq;
        }
        if attr.recv_cq.is_null() {
            let made = queue(id, attr.cap.max_recv_wr).inspect_err(|_| give_back_queues(id))?;
            (id.recv_cq_channel, id.recv_cq) = made;
            attr.recv_cq = id.recv_cq;
        }
        if attr.srq.is_null() {
            attr.srq = id.srq;
        }
        let qp = pairs::ibv_create_qp(domain, attr);
        if qp.is_null() {
            let error = errno();
            give_back_queues(id);
            return Err(error);
        }
        (id.qp, id.pd) = (qp, domain);
        let mut adapter = crate::adapter().map_err(|error| code(&error))?;
        let handle = (*qp).handle;
        if let Some(pair) = adapter.pairs.get(handle) {
            pair.attr.port_num = 1;
            if id.qp_type == TYPE_UD {
                (pair.attr.qkey, pair.state) = (DATAGRAM_KEY, STATE_RTS);
            } else {
                pair.state = STATE_INIT;
            }
            (*qp).state = pair.state;
        }
        if let Some(known) = adapter.identifiers.all.get(number) {
            known.pair = Some(handle);
        }
    }
    crate::thread::start();
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp(id: *mut CmId, domain: *mut Pd, attr: *mut QpInitAttr) -> c_int {
    // SAFETY: an identifier of this library, and the program's structure.
    done(unsafe { create_pair(id, domain, &mut *attr) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp_ex(id: *mut CmId, attr: *mut QpInitAttrEx) -> c_int {
    // SAFETY: an identifier of this library, and the program's structure.
    unsafe {
        let attr = &mut *attr;
        let Some((domain, mut basic)) = pairs::basic(attr) else { return done(Err(libc::EOPNOTSUPP)) };
        let made = create_pair(id, domain, &mut basic);
        (attr.cap, attr.send_cq, attr.recv_cq, attr.srq) =
            (basic.cap, basic.send_cq, basic.recv_cq, basic.srq);
        done(made)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_qp(id: *mut CmId) {
    // SAFETY: an identifier of this library.
    let (number, id) = unsafe { (owned(id).number, &mut *id) };
    if id.qp.is_null() {
        return;
    }
    if let Ok(mut adapter) = crate::adapter()
        && let Some(known) = adapter.identifiers.all.get(number)
    {
        known.pair = None;
    }
    // SAFETY: its queue pair, and the queues that were made for it.
    unsafe {
        pairs::ibv_destroy_qp(std::mem::replace(&mut id.qp, null_mut()));
        give_back_queues(id);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_srq(id: *mut CmId, domain: *mut Pd, attr: *mut SrqInitAttr) -> c_int {
    // SAFETY: an identifier of this library, and the program's structure.
    unsafe {
        let domain = if domain.is_null() { (*id).pd } else { domain };
        if domain.is_null() || !(*id).srq.is_null() {
            return done(Err(libc::EINVAL));
        }
        let srq = objects::ibv_create_srq(domain, attr);
        if srq.is_null() {
            return -1;
        }
        ((*id).srq, (*id).pd) = (srq, domain);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_srq(id: *mut CmId) {
    // SAFETY: an identifier of this library, and its queue.
    unsafe {
        let srq = std::mem::replace(&mut (*id).srq, null_mut());
        if !srq.is_null() {
            objects::ibv_destroy_srq(srq);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_devices(count: *mut c_int) -> *mut *mut Context {
    let mut list: Vec<*mut Context> =
        interfaces().into_iter().filter_map(|one| Some(known_of(one).ok()?.context)).collect();
    if !count.is_null() {
        // SAFETY: the program's variable.
        unsafe { *count = list.len() as c_int };
    }
    list.push(null_mut());
    Box::into_raw(list.into_boxed_slice()).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_free_devices(list: *mut *mut Context) {
    // SAFETY: a list of `rdma_get_devices`, of pointers that end with a null like those of `ibv_get_device_list`.
    unsafe { contexts::ibv_free_device_list(list.cast()) }
}
