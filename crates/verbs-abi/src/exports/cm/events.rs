//! Channels of events, and the events.

use super::layout::*;
use super::{STATE_RTS, code, done, object, owned};
use crate::adapter::identifiers::{EventType, News};
use crate::adapter::{Channel, number};
use crate::layout::*;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

/// A channel: its descriptor, which the program sees, and as the adapter knows it.
#[repr(C)]
struct Numbered {
    channel: EventChannel,
    number: u32,
}

/// An event with what it points to.
#[repr(C)]
struct Held {
    event: CmEvent,
    private: Box<[u8]>,
}

/// # Safety
/// `channel` is one of `rdma_create_event_channel`.
pub unsafe fn number_of(channel: *mut EventChannel) -> u32 {
    // SAFETY: as the caller says.
    unsafe { (*channel.cast::<Numbered>()).number }
}

#[unsafe(no_mangle)]
pub extern "C" fn rdma_create_event_channel() -> *mut EventChannel {
    let made = Channel::new().and_then(|made| Ok((crate::adapter()?, made)));
    let (mut adapter, made) = match made {
        Ok(made) => made,
        Err(error) => return super::super::none(code(&error)),
    };
    let channel = EventChannel { fd: made.descriptor.as_raw_fd() };
    let number = adapter.identifiers.channels.insert(made);
    Box::into_raw(Box::new(Numbered { channel, number })).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut EventChannel) {
    if channel.is_null() {
        return;
    }
    // SAFETY: a channel of this library, given back once.
    let channel = unsafe { Box::from_raw(channel.cast::<Numbered>()) };
    if let Ok(mut adapter) = crate::adapter() {
        adapter.identifiers.channels.remove(channel.number);
    }
}

/// Tells an identifier of something that has come of a call of its own, and waits for it if its calls do.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
pub unsafe fn tell(id: *mut CmId, news: impl FnOnce(u32) -> News) -> Result<(), c_int> {
    // SAFETY: as the caller says.
    unsafe {
        crate::adapter().map_err(|error| code(&error))?.identifiers.tell(news(owned(id).number));
        wait(id)
    }
}

/// Waits for what comes of a call, if the calls of an identifier do.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
pub unsafe fn wait(id: *mut CmId) -> Result<(), c_int> {
    // SAFETY: as the caller says.
    unsafe {
        if !owned(id).waits {
            return Ok(());
        }
        acknowledge_own(id);
        (*id).event = next((*id).channel)?;
        match (*(*id).event).status {
            0 => Ok(()),
            status => Err(status.abs()),
        }
    }
}

/// Gives back the event that an identifier whose calls wait holds.
///
/// # Safety
/// `id` is one of `rdma_create_id`.
pub unsafe fn acknowledge_own(id: *mut CmId) {
    // SAFETY: as the caller says.
    unsafe {
        let event = std::mem::replace(&mut (*id).event, null_mut());
        if owned(id).waits && !event.is_null() {
            rdma_ack_cm_event(event);
        }
    }
}

/// The next event of a channel; waits for it unless its descriptor must not block.
///
/// # Safety
/// `channel` is one of `rdma_create_event_channel`.
pub unsafe fn next(channel: *mut EventChannel) -> Result<*mut CmEvent, c_int> {
    // SAFETY: as the caller says.
    let (fd, number) = unsafe { ((*channel).fd, number_of(channel)) };
    loop {
        let mut room = [0u8; 8];
        // SAFETY: eight bytes of room.
        if unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) } != room.len() as isize {
            return Err(crate::exports::errno());
        }
        let mut adapter = crate::adapter().map_err(|error| code(&error))?;
        let known = adapter.identifiers.channels.get(number).ok_or(libc::EINVAL)?;
        // The identifier that was told of may have gone since.
        let Some(news) = known.ready.pop_front() else { continue };
        let Some(id) = adapter.identifiers.all.get(news.id) else { continue };
        let (address, at, peer) = (id.address, id.at, id.peer);
        let listener = match &id.phase {
            crate::adapter::identifiers::Phase::Asked(listener, ..) => Some(*listener),
            _ => None,
        };
        let listener = listener.and_then(|listener| Some(adapter.identifiers.all.get(listener)?.address));
        drop(adapter);
        let (id, listener) = match (address, listener) {
            (0, Some(listener)) => {
                let listener = listener as *mut CmId;
                // SAFETY: an identifier of this library, which the program has.
                (unsafe { caller(listener, news.id, at, peer)? }, listener)
            }
            (0, None) => continue,
            (address, _) => (address as *mut CmId, null_mut()),
        };
        // SAFETY: an identifier that is there.
        return Ok(unsafe { event(id, listener, news, at, peer) });
    }
}

/// The object of somebody who has asked.
unsafe fn caller(
    listener: *mut CmId,
    number: u32,
    at: Option<std::net::SocketAddr>,
    peer: Option<std::net::SocketAddr>,
) -> Result<*mut CmId, c_int> {
    // SAFETY: an identifier of this library.
    let (mut channel, context, ps, waits) =
        unsafe { ((*listener).channel, (*listener).context, (*listener).ps, owned(listener).waits) };
    if waits {
        channel = rdma_create_event_channel();
        if channel.is_null() {
            return Err(libc::ENOMEM);
        }
    }
    let id = object(channel, context, ps, number, waits);
    // SAFETY: just made, and the channel is one of this library.
    unsafe {
        super::note_addresses(id, at, peer);
        if let Some(at) = at {
            super::bind_to_device(id, at.ip())?;
        }
        let channel = number_of(channel);
        let mut adapter = crate::adapter().map_err(|error| code(&error))?;
        if let Some(known) = adapter.identifiers.all.get(number) {
            (known.address, known.channel) = (id as usize, channel);
        }
        if let Some(channel) = adapter.identifiers.channels.get(channel) {
            channel.users += 1;
        }
    }
    Ok(id)
}

/// The event that the program gets.
unsafe fn event(
    id: *mut CmId,
    listener: *mut CmId,
    news: News,
    at: Option<std::net::SocketAddr>,
    peer: Option<std::net::SocketAddr>,
) -> *mut CmEvent {
    let private: Box<[u8]> = news.private.into();
    let private_data: *const c_void = if private.is_empty() { null_mut() } else { private.as_ptr().cast() };
    let private_data_len = private.len() as u8;
    // SAFETY: an identifier that is there, with its queue pair or none.
    let is_datagram = unsafe {
        if news.kind == EventType::Established {
            super::note_addresses(id, at, peer);
            if let Some(qp) = (*id).qp.as_mut() {
                qp.state = STATE_RTS;
            }
        }
        (*id).ps == SPACE_UDP
    };
    let param = if is_datagram {
        let mut ah_attr = AhAttr { is_global: 1, port_num: 1, ..AhAttr::default() };
        let (mut qp_num, mut qkey) = (0, 0);
        if let Some(answer) = news.answer {
            ah_attr.grh =
                GlobalRoute { dgid: Gid(number::gid(answer.at)), hop_limit: 64, ..GlobalRoute::default() };
            (qp_num, qkey) = (answer.number, answer.key);
        }
        Param { ud: UdParam { private_data, private_data_len, ah_attr, qp_num, qkey } }
    } else {
        let (responder_resources, initiator_depth) = news.limits;
        Param {
            conn: ConnParam {
                private_data,
                private_data_len,
                responder_resources,
                initiator_depth,
                flow_control: 0,
                retry_count: 0,
                rnr_retry_count: 0,
                srq: 0,
                qp_num: 0,
            },
        }
    };
    let event = CmEvent { id, listen_id: listener, event: news.kind as c_int, status: news.status, param };
    Box::into_raw(Box::new(Held { event, private })).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_cm_event(channel: *mut EventChannel, to: *mut *mut CmEvent) -> c_int {
    if channel.is_null() || to.is_null() {
        return done(Err(libc::EINVAL));
    }
    // SAFETY: a channel of this library, and the program's variable.
    done(unsafe { next(channel).map(|event| *to = event) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rdma_ack_cm_event(event: *mut CmEvent) -> c_int {
    if event.is_null() {
        return done(Err(libc::EINVAL));
    }
    // SAFETY: an event of this library, given back once.
    drop(unsafe { Box::from_raw(event.cast::<Held>()) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_migrate_id(id: *mut CmId, channel: *mut EventChannel) -> c_int {
    // SAFETY: an identifier of this library.
    let (number, had_own, before) = unsafe { (owned(id).number, owned(id).waits, (*id).channel) };
    let waits = channel.is_null();
    let channel = if waits { rdma_create_event_channel() } else { channel };
    if channel.is_null() {
        return -1;
    }
    // SAFETY: channels of this library.
    let (from, to) = unsafe { (number_of(before), number_of(channel)) };
    let Ok(mut adapter) = crate::adapter() else { return done(Err(libc::EIO)) };
    let identifiers = &mut adapter.identifiers;
    if let Some(known) = identifiers.all.get(number) {
        known.channel = to;
    }
    let mut moved = VecDeque::new();
    if let Some(from) = identifiers.channels.get(from) {
        from.users -= 1;
        (moved, from.ready) = std::mem::take(&mut from.ready).into_iter().partition(|news| news.id == number);
    }
    if let Some(to) = identifiers.channels.get(to) {
        to.users += 1;
        moved.into_iter().for_each(|news| to.tell(news));
    }
    drop(adapter);
    // SAFETY: an identifier of this library; a channel that was made for it alone.
    unsafe {
        acknowledge_own(id);
        ((*id).channel, owned(id).waits) = (channel, waits);
        if had_own {
            rdma_destroy_event_channel(before);
        }
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn rdma_event_str(kind: c_int) -> *const c_char {
    let names = [
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    let name = usize::try_from(kind).ok().and_then(|kind| names.get(kind));
    name.unwrap_or(&c"UNKNOWN EVENT").as_ptr()
}

/// Connections of this adapter are there when they are told to be: there is nothing to be told.
#[unsafe(no_mangle)]
extern "C" fn rdma_notify(_id: *mut CmId, _event: c_int) -> c_int {
    0
}
