//! Asynchronous events, as programs fetch and acknowledge them.

use super::open_of;
use crate::adapter::Adapter;
use crate::adapter::constants::*;
use crate::adapter::events::Object;
use crate::layout::*;
use std::ffi::{c_int, c_void};
use std::sync::{Condvar, MutexGuard, PoisonError};

/// Rings when an event was acknowledged.
static ACKNOWLEDGED: Condvar = Condvar::new();

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(context: *mut Context, event: *mut AsyncEvent) -> c_int {
    // SAFETY: an open context.
    let (fd, number) = unsafe { ((*context).async_fd, open_of(context).number) };
    loop {
        let mut room = [0u8; 8];
        // SAFETY: eight bytes of room. Whether it blocks is the program's choice (`man ibv_get_async_event`).
        if unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) } != room.len() as isize {
            return -1;
        }
        let Ok(mut adapter) = crate::adapter() else { return -1 };
        // What was told of may have gone since.
        let Some(told) = adapter.fetch(number) else { continue };
        // SAFETY: the program's structure.
        unsafe { *event = AsyncEvent { element: told.element as *mut c_void, event_type: told.kind } };
        return 0;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(event: *mut AsyncEvent) {
    // SAFETY: an event of `ibv_get_async_event`, of an object that is there until it is acknowledged.
    let object = unsafe {
        let AsyncEvent { element, event_type } = *event;
        match event_type {
            // Of no object: an event that is not of this library.
            _ if element.is_null() => return,
            EVENT_CQ_ERR => {
                let cq = &mut *element.cast::<Cq>();
                cq.async_events_completed = cq.async_events_completed.wrapping_add(1);
                Object::Completions(cq.handle)
            }
            EVENT_QP_FATAL..=EVENT_SQ_DRAINED | EVENT_QP_LAST_WQE_REACHED => {
                let qp = &mut *element.cast::<Qp>();
                qp.events_completed = qp.events_completed.wrapping_add(1);
                Object::Pair(qp.handle)
            }
            EVENT_SRQ_ERR | EVENT_SRQ_LIMIT_REACHED => {
                let srq = &mut *element.cast::<Srq>();
                srq.events_completed = srq.events_completed.wrapping_add(1);
                Object::Receives(srq.handle)
            }
            _ => return,
        }
    };
    let Ok(mut adapter) = crate::adapter() else { return };
    if let Some(owner) = adapter.owner(object) {
        owner.owed = owner.owed.saturating_sub(1);
    }
    ring();
}

/// Has those look again who wait for acknowledgements.
pub fn ring() {
    ACKNOWLEDGED.notify_all();
}

/// Waits until what was fetched of a completion queue's events is acknowledged.
pub fn acknowledged(mut adapter: MutexGuard<'static, Adapter>, queue: u32) -> MutexGuard<'static, Adapter> {
    while adapter.queues.completions.get(queue).is_some_and(|known| known.owed > 0) {
        adapter = ACKNOWLEDGED.wait(adapter).unwrap_or_else(PoisonError::into_inner);
    }
    adapter
}

/// Waits until what was fetched of an object's events is acknowledged, and discards the rest: then it may go, as long as the adapter is not
/// let go of.
pub fn settled(mut adapter: MutexGuard<'static, Adapter>, object: Object) -> MutexGuard<'static, Adapter> {
    while adapter.owner(object).is_some_and(|owner| owner.owed > 0) {
        adapter = ACKNOWLEDGED.wait(adapter).unwrap_or_else(PoisonError::into_inner);
    }
    adapter.forget_events(object);
    adapter
}
