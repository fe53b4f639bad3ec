//! Protection domains, completion queues and their channels, shared receive queues, address handles.

use super::contexts::{COMPLETIONS_MAX, PIECES_MAX, QUEUE_MAX};
use super::events::{acknowledged, ring, settled};
use super::{CONDITION, MUTEX, code, none, open_of};
use crate::adapter::events::{Object, Owner};
use crate::adapter::{Channel, Completions, Receives, Shared, number};
use crate::layout::*;
use std::ffi::{c_int, c_uint, c_void};
use std::net::IpAddr;
use std::os::fd::AsRawFd;

/// `IBV_SRQ_MAX_WR`, `IBV_SRQ_LIMIT`.
const SRQ_MAX_WR: c_int = 1;
const SRQ_LIMIT: c_int = 2;

/// An address handle: what the program sees, and where it leads.
#[repr(C)]
pub struct Handle {
    ah: Ah,
    /// The address.
    pub to: IpAddr,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_alloc_pd(context: *mut Context) -> *mut Pd {
    match crate::adapter() {
        Ok(mut adapter) => {
            let handle = adapter.domains.insert(0);
            Box::into_raw(Box::new(Pd { context, handle }))
        }
        Err(error) => none(code(&error)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut Pd) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a domain of `ibv_alloc_pd`.
    let handle = unsafe { (*pd).handle };
    match adapter.domains.get(handle) {
        None => return libc::EINVAL,
        Some(users) if *users > 0 => return libc::EBUSY,
        Some(_) => {}
    }
    adapter.domains.remove(handle);
    // SAFETY: made there, and given back once.
    drop(unsafe { Box::from_raw(pd) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_comp_channel(context: *mut Context) -> *mut CompChannel {
    let made = match Channel::new() {
        Ok(made) => made,
        Err(error) => return none(code(&error)),
    };
    let mut adapter = match crate::adapter() {
        Ok(adapter) => adapter,
        Err(error) => return none(code(&error)),
    };
    let fd = made.descriptor.as_raw_fd();
    // `refcnt` is nobody's business but ours: the number of the channel.
    let refcnt = adapter.queues.channels.insert(made) as c_int;
    Box::into_raw(Box::new(CompChannel { context, fd, refcnt }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut CompChannel) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a channel of `ibv_create_comp_channel`.
    let number = unsafe { (*channel).refcnt as u32 };
    match adapter.queues.channels.get(number) {
        None => return libc::EINVAL,
        Some(known) if known.users > 0 => return libc::EBUSY,
        Some(_) => {}
    }
    adapter.queues.channels.remove(number);
    // SAFETY: made there, and given back once.
    drop(unsafe { Box::from_raw(channel) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_cq(
    context: *mut Context,
    cqe: c_int,
    cq_context: *mut c_void,
    channel: *mut CompChannel,
    vector: c_int,
) -> *mut Cq {
    if !(1..=COMPLETIONS_MAX).contains(&cqe) || vector != 0 {
        return none(libc::EINVAL);
    }
    let mut adapter = match crate::adapter() {
        Ok(adapter) => adapter,
        Err(error) => return none(code(&error)),
    };
    // SAFETY: null, or a channel of `ibv_create_comp_channel`.
    let number = unsafe { channel.as_ref() }.map(|channel| channel.refcnt as u32);
    if let Some(number) = number {
        let Some(channel) = adapter.queues.channels.get(number) else { return none(libc::EINVAL) };
        channel.users += 1;
    }
    let cq = Box::into_raw(Box::new(Cq {
        context,
        channel,
        cq_context,
        handle: 0,
        cqe,
        mutex: MUTEX,
        cond: CONDITION,
        comp_events_completed: 0,
        async_events_completed: 0,
    }));
    let room = cqe as usize;
    // SAFETY: an open context.
    let owner = Owner { address: cq as usize, ..Owner::new(unsafe { open_of(context).number }) };
    let completions =
        Completions { room, channel: number, address: cq as usize, owner, ..Completions::default() };
    let handle = adapter.queues.completions.insert(completions);
    // SAFETY: just made.
    unsafe { (*cq).handle = handle };
    cq
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_resize_cq(cq: *mut Cq, cqe: c_int) -> c_int {
    if !(1..=COMPLETIONS_MAX).contains(&cqe) {
        return libc::EINVAL;
    }
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of `ibv_create_cq`.
    let cq = unsafe { &mut *cq };
    let Some(completions) = adapter.queues.completions.get(cq.handle) else { return libc::EINVAL };
    if completions.ended.len() > cqe as usize {
        return libc::EINVAL;
    }
    completions.room = cqe as usize;
    cq.cqe = cqe;
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_cq(cq: *mut Cq) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of `ibv_create_cq`.
    let handle = unsafe { (*cq).handle };
    match adapter.queues.completions.get(handle) {
        None => return libc::EINVAL,
        Some(known) if known.users > 0 => return libc::EBUSY,
        Some(_) => {}
    }
    adapter = acknowledged(settled(adapter, Object::Completions(handle)), handle);
    let known = adapter.queues.completions.remove(handle);
    if let Some(channel) =
        known.and_then(|known| known.channel).and_then(|number| adapter.queues.channels.get(number))
    {
        channel.users -= 1;
        channel.forget(|ready| *ready == cq as usize);
    }
    // SAFETY: made there, and given back once.
    drop(unsafe { Box::from_raw(cq) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut CompChannel,
    cq: *mut *mut Cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: a channel of `ibv_create_comp_channel`.
    let (fd, number) = unsafe { ((*channel).fd, (*channel).refcnt as u32) };
    loop {
        let mut room = [0u8; 8];
        // SAFETY: eight bytes of room. Whether it blocks is the program's choice (`man ibv_get_cq_event`).
        if unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) } != room.len() as isize {
            return -1;
        }
        let Ok(mut adapter) = crate::adapter() else { return -1 };
        let Some(known) = adapter.queues.channels.get(number) else { return -1 };
        // The queue that was told of may have gone since.
        let Some(ready) = known.ready.pop_front() else { continue };
        let ready = ready as *mut Cq;
        // SAFETY: a queue that has gone is in no list.
        if let Some(known) = adapter.queues.completions.get(unsafe { (*ready).handle }) {
            known.owed += 1;
        }
        // SAFETY: the program's variables; a queue that has gone is in no list.
        unsafe {
            *cq = ready;
            *cq_context = (*ready).cq_context;
        }
        return 0;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_cq_events(cq: *mut Cq, count: c_uint) {
    // SAFETY: a queue of `ibv_create_cq`.
    let cq = unsafe { &mut *cq };
    cq.comp_events_completed = cq.comp_events_completed.wrapping_add(count);
    let Ok(mut adapter) = crate::adapter() else { return };
    if let Some(known) = adapter.queues.completions.get(cq.handle) {
        known.owed = known.owed.saturating_sub(count);
        ring();
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut Pd, attr: *mut SrqInitAttr) -> *mut Srq {
    // SAFETY: the program's structure.
    let attr = unsafe { &mut *attr };
    if attr.attr.max_wr == 0 || attr.attr.max_wr > QUEUE_MAX || attr.attr.max_sge > PIECES_MAX {
        return none(libc::EINVAL);
    }
    let mut adapter = match crate::adapter() {
        Ok(adapter) => adapter,
        Err(error) => return none(code(&error)),
    };
    // SAFETY: a domain of `ibv_alloc_pd`.
    let (context, domain) = unsafe { ((*pd).context, (*pd).handle) };
    let srq = Box::into_raw(Box::new(Srq {
        context,
        srq_context: attr.srq_context,
        pd,
        handle: 0,
        mutex: MUTEX,
        cond: CONDITION,
        events_completed: 0,
    }));
    // SAFETY: an open context.
    let owner = Owner { address: srq as usize, ..Owner::new(unsafe { open_of(context).number }) };
    let shared = Some(Box::new(Shared { owner, limit: attr.attr.srq_limit }));
    let (room, pieces) = (attr.attr.max_wr, attr.attr.max_sge);
    let handle = adapter.receives.insert(Receives { room, pieces, domain, shared, ..Receives::default() });
    // SAFETY: just made.
    unsafe { (*srq).handle = handle };
    if let Some(users) = adapter.domains.get(domain) {
        *users += 1;
    }
    srq
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_srq(srq: *mut Srq, attr: *mut SrqAttr, mask: c_int) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of `ibv_create_srq`, and the program's structure.
    let (handle, attr) = unsafe { ((*srq).handle, &*attr) };
    let Some(receives) = adapter.receives.get(handle) else { return libc::EINVAL };
    if mask & !(SRQ_MAX_WR | SRQ_LIMIT) != 0 {
        return libc::EINVAL;
    }
    let room = if mask & SRQ_MAX_WR != 0 { attr.max_wr } else { receives.room };
    let is_unfit = room > QUEUE_MAX || (room as usize) < receives.free.len();
    if is_unfit || mask & SRQ_LIMIT != 0 && attr.srq_limit > room {
        return libc::EINVAL;
    }
    receives.room = room;
    if mask & SRQ_LIMIT != 0 {
        if let Some(shared) = &mut receives.shared {
            shared.limit = attr.srq_limit;
        }
        adapter.look_at_limit(handle);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_srq(srq: *mut Srq, attr: *mut SrqAttr) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of `ibv_create_srq`.
    let Some(receives) = adapter.receives.get(unsafe { (*srq).handle }) else { return libc::EINVAL };
    let srq_limit = receives.shared.as_ref().map_or(0, |shared| shared.limit);
    // SAFETY: the program's structure.
    unsafe { *attr = SrqAttr { max_wr: receives.room, max_sge: receives.pieces, srq_limit } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut Srq) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of `ibv_create_srq`, in a domain that is there.
    let (handle, domain) = unsafe { ((*srq).handle, (*(*srq).pd).handle) };
    match adapter.receives.get(handle) {
        None => return libc::EINVAL,
        Some(known) if known.users > 0 => return libc::EBUSY,
        Some(_) => {}
    }
    adapter = settled(adapter, Object::Receives(handle));
    adapter.receives.remove(handle);
    if let Some(users) = adapter.domains.get(domain) {
        *users -= 1;
    }
    // SAFETY: made there, and given back once.
    drop(unsafe { Box::from_raw(srq) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_ah(pd: *mut Pd, attr: *mut AhAttr) -> *mut Ah {
    // SAFETY: the program's structure.
    let attr = unsafe { &*attr };
    if attr.is_global == 0 || attr.port_num != 1 || attr.grh.sgid_index != 0 {
        return none(libc::EINVAL);
    }
    // SAFETY: a domain of `ibv_alloc_pd`.
    let (context, domain) = unsafe { ((*pd).context, (*pd).handle) };
    let mut adapter = match crate::adapter() {
        Ok(adapter) => adapter,
        Err(error) => return none(code(&error)),
    };
    let Some(users) = adapter.domains.get(domain) else { return none(libc::EINVAL) };
    *users += 1;
    let to = number::address(&attr.grh.dgid.0);
    Box::into_raw(Box::new(Handle { ah: Ah { context, pd, handle: 0 }, to })).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_init_ah_from_wc(
    _context: *mut Context,
    port: u8,
    wc: *mut Wc,
    header: *mut u8,
    attr: *mut AhAttr,
) -> c_int {
    // SAFETY: the program's structures; the header is 40 bytes long where the completion says that there is one.
    unsafe {
        if (*wc).wc_flags & crate::adapter::constants::FLAG_GRH == 0 {
            return libc::EINVAL;
        }
        let mut dgid = Gid::default();
        std::ptr::copy_nonoverlapping(header.add(8), dgid.0.as_mut_ptr(), 16);
        *attr = AhAttr { is_global: 1, port_num: port, sl: (*wc).sl, ..AhAttr::default() };
        (*attr).grh = GlobalRoute { dgid, hop_limit: 64, ..GlobalRoute::default() };
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_ah_from_wc(pd: *mut Pd, wc: *mut Wc, header: *mut u8, port: u8) -> *mut Ah {
    let mut attr = AhAttr::default();
    // SAFETY: as the caller says.
    match unsafe { ibv_init_ah_from_wc((*pd).context, port, wc, header, &mut attr) } {
        // SAFETY: as the caller says.
        0 => unsafe { ibv_create_ah(pd, &mut attr) },
        error => none(error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_ah(ah: *mut Ah) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: made by `ibv_create_ah`, in a domain that is there, and given back once.
    let handle = unsafe { Box::from_raw(ah.cast::<Handle>()) };
    // SAFETY: the same.
    if let Some(users) = adapter.domains.get(unsafe { (*handle.ah.pd).handle }) {
        *users -= 1;
    }
    0
}
