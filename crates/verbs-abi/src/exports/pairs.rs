//! Queue pairs: made, moved from state to state, asked and given back.

use super::contexts::{INLINE_MAX, PIECES_MAX, QUEUE_MAX, REQUESTS_MAX, mtu};
use super::events::settled;
use super::{CONDITION, MUTEX, code, none, open_of};
use crate::adapter::constants::attributes::*;
use crate::adapter::constants::*;
use crate::adapter::events::{Object, Owner};
use crate::adapter::ud::Ud;
use crate::adapter::{Adapter, Pair, Receives, Route, Transport, number};
use crate::interfaces::Interface;
use crate::layout::*;
use crate::thread;
use std::ffi::{c_int, c_void};
use std::io;
use std::net::IpAddr;

/// `IBV_QP_INIT_ATTR_PD`, the one field of the extended attributes that is known beside the operations to be sent.
const EX_DOMAIN: u32 = 1;
/// What five bits of InfiniBand's messages hold, and three.
const TIMER_MAX: u8 = 31;
/// See [`TIMER_MAX`].
const RETRIES_MAX: u8 = 7;
/// What datagrams carry in front of their data.
const DATAGRAM_HEADS: usize = 28;

/// Whether there is something that is not done here, or not so much of it; an error number then.
fn refusal(attr: &QpInitAttr) -> Option<c_int> {
    let cap = &attr.cap;
    let is_over = cap.max_send_wr > QUEUE_MAX
        || cap.max_recv_wr > QUEUE_MAX
        || cap.max_send_sge > PIECES_MAX
        || cap.max_recv_sge > PIECES_MAX
        || cap.max_inline_data > INLINE_MAX;
    match attr.qp_type {
        TYPE_RC | TYPE_UD if is_over || attr.send_cq.is_null() || attr.recv_cq.is_null() => {
            Some(libc::EINVAL)
        }
        TYPE_RC | TYPE_UD => None,
        _ => Some(libc::EOPNOTSUPP),
    }
}

/// A number for a queue pair at this interface, and what it reaches others by.
fn transport(
    adapter: &mut Adapter,
    interface: &Interface,
    domain: u32,
    is_datagram: bool,
) -> std::io::Result<(u32, Transport)> {
    if !is_datagram {
        let number = adapter.number_for_connection(interface.at)?;
        return Ok((number, Transport::Connection(Box::default())));
    }
    let (socket, number) = adapter.number_for_datagrams(interface.at)?;
    let datagram_max = interface.mtu.min(65_535) - DATAGRAM_HEADS;
    let message_max = 128 << mtu(interface);
    let ud = Ud::new(socket, interface.at, number, domain, datagram_max, message_max);
    Ok((number, Transport::Datagrams(Box::new(ud))))
}

/// Counts a queue pair among the users of what it is made of.
fn use_all(adapter: &mut Adapter, queues: [u32; 2], receives: u32, domain: u32) {
    for queue in queues {
        if let Some(completions) = adapter.queues.completions.get(queue) {
            completions.users += 1;
        }
    }
    if let Some(receives) = adapter.receives.get(receives) {
        receives.users += 1;
    }
    if let Some(users) = adapter.domains.get(domain) {
        *users += 1;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_qp(pd: *mut Pd, attr: *mut QpInitAttr) -> *mut Qp {
    // SAFETY: the program's structure.
    let attr = unsafe { &mut *attr };
    if let Some(error) = refusal(attr) {
        return none(error);
    }
    attr.cap.max_inline_data = INLINE_MAX;
    // SAFETY: objects of this library; null or a queue of it.
    let (context, domain, queues, interface, shared) = unsafe {
        let context = (*pd).context;
        let queues = [(*attr.send_cq).handle, (*attr.recv_cq).handle];
        let shared = attr.srq.as_ref().map(|srq| srq.handle);
        (context, (*pd).handle, queues, &open_of(context).interface, shared)
    };
    let mut adapter = match crate::adapter() {
        Ok(adapter) => adapter,
        Err(error) => return none(code(&error)),
    };
    let (number, transport) = match transport(&mut adapter, interface, domain, attr.qp_type == TYPE_UD) {
        Ok(made) => made,
        Err(error) => return none(code(&error)),
    };
    let receives = shared.unwrap_or_else(|| {
        let (room, pieces) = (attr.cap.max_recv_wr, attr.cap.max_recv_sge);
        adapter.receives.insert(Receives { room, pieces, domain, ..Receives::default() })
    });
    let pair = Pair {
        number,
        at: interface.at,
        domain,
        state: STATE_RESET,
        attr: QpAttr { cap: attr.cap, ..QpAttr::default() },
        route: None,
        send_queue: queues[0],
        receive_queue: queues[1],
        receives,
        shares_receives: shared.is_some(),
        identifier: None,
        tells_all: attr.sq_sig_all != 0,
        // SAFETY: an open context.
        owner: Owner::new(unsafe { open_of(context).number }),
        transport,
    };
    let handle = match adapter.add(pair) {
        Ok(handle) => handle,
        Err(error) => return none(code(&error)),
    };
    use_all(&mut adapter, queues, receives, domain);
    let qp = Box::into_raw(Box::new(Qp {
        context,
        qp_context: attr.qp_context,
        pd,
        send_cq: attr.send_cq,
        recv_cq: attr.recv_cq,
        srq: attr.srq,
        handle,
        qp_num: number,
        state: STATE_RESET,
        qp_type: attr.qp_type,
        mutex: MUTEX,
        cond: CONDITION,
        events_completed: 0,
    }));
    if let Some(pair) = adapter.pairs.get(handle) {
        pair.owner.address = qp as usize;
    }
    qp
}

/// Extended attributes without anything that is not known here: the domain, which may be null, and the rest.
pub fn basic(attr: &QpInitAttrEx) -> Option<(*mut Pd, QpInitAttr)> {
    let has_domain = attr.comp_mask & EX_DOMAIN != 0;
    let basic = QpInitAttr {
        qp_context: attr.qp_context,
        send_cq: attr.send_cq,
        recv_cq: attr.recv_cq,
        srq: attr.srq,
        cap: attr.cap,
        qp_type: attr.qp_type,
        sq_sig_all: attr.sq_sig_all,
    };
    let domain = if has_domain { attr.pd } else { std::ptr::null_mut() };
    (attr.comp_mask & !EX_DOMAIN == 0).then_some((domain, basic))
}

pub unsafe extern "C" fn create_qp_ex(_context: *mut Context, attr: *mut QpInitAttrEx) -> *mut Qp {
    // SAFETY: the program's structure.
    let attr = unsafe { &mut *attr };
    let Some((_, mut basic)) = basic(attr).filter(|(domain, _)| !domain.is_null()) else {
        return none(libc::EOPNOTSUPP);
    };
    // SAFETY: as the caller says.
    let qp = unsafe { ibv_create_qp(attr.pd, &mut basic) };
    attr.cap = basic.cap;
    qp
}

/// What must be said on the way from one state to another, and what may; `None` if there is no such way
/// (InfiniBand's specification, section 11.2.5.2, as `man ibv_modify_qp` has it).
fn allowed(from: c_int, to: c_int, is_datagram: bool) -> Option<(c_int, c_int)> {
    Some(match (from, to, is_datagram) {
        (_, STATE_RESET | STATE_ERR, _) => (STATE, 0),
        (STATE_RESET, STATE_INIT, true) => (STATE | PKEY | PORT | QKEY, 0),
        (STATE_RESET, STATE_INIT, false) => (STATE | PKEY | PORT | ACCESS, 0),
        (STATE_INIT, STATE_INIT, _) => (0, STATE | PKEY | PORT | QKEY | ACCESS),
        (STATE_INIT, STATE_RTR, true) => (STATE, PKEY | QKEY),
        (STATE_INIT, STATE_RTR, false) => {
            (STATE | ROUTE | PATH_MTU | DEST | RQ_PSN | DEST_READS | RNR_TIMER, PKEY | ACCESS)
        }
        (STATE_RTR, STATE_RTS, true) => (STATE | SQ_PSN, CURRENT | QKEY),
        (STATE_RTR, STATE_RTS, false) => {
            (STATE | SQ_PSN | TIMEOUT | RETRIES | RNR_RETRIES | READS, CURRENT | ACCESS | RNR_TIMER)
        }
        (STATE_RTS, STATE_SQD, false) => (STATE, CURRENT | DRAIN_NOTICE),
        (STATE_SQD, STATE_RTS, false) => (STATE, CURRENT | ACCESS | RNR_TIMER),
        (STATE_RTS, STATE_RTS, true) => (0, STATE | CURRENT | QKEY),
        (STATE_RTS, STATE_RTS, false) => (0, STATE | CURRENT | ACCESS | RNR_TIMER),
        _ => return None,
    })
}

/// Takes over what the mask names.
fn note(known: &mut QpAttr, given: &QpAttr, mask: c_int) {
    macro_rules! take {
        ($($bit:expr => $($field:ident),+;)*) => {
            $(if mask & $bit != 0 { $(known.$field = given.$field;)+ })*
        };
    }
    take! {
        ACCESS => qp_access_flags;
        PKEY => pkey_index;
        PORT => port_num;
        QKEY => qkey;
        ROUTE => ah_attr;
        PATH_MTU => path_mtu;
        TIMEOUT => timeout;
        RETRIES => retry_cnt;
        RNR_RETRIES => rnr_retry;
        RQ_PSN => rq_psn;
        READS => max_rd_atomic;
        RNR_TIMER => min_rnr_timer;
        SQ_PSN => sq_psn;
        DEST_READS => max_dest_rd_atomic;
        DEST => dest_qp_num;
        DRAIN_NOTICE => en_sqd_async_notify;
    }
}

/// What a mask may name, and when its value is wrong.
type Wrong = (c_int, fn(&QpAttr) -> bool);
const WRONG: &[Wrong] = &[
    (PORT, |given| given.port_num != 1),
    (PKEY, |given| given.pkey_index != 0),
    (ROUTE, |QpAttr { ah_attr: route, .. }| {
        route.is_global == 0 || route.port_num != 1 || route.grh.sgid_index != 0
    }),
    (PATH_MTU, |given| !(1..=5).contains(&given.path_mtu)),
    (TIMEOUT, |given| given.timeout > TIMER_MAX),
    (RNR_TIMER, |given| given.min_rnr_timer > TIMER_MAX),
    (RETRIES, |given| given.retry_cnt > RETRIES_MAX),
    (RNR_RETRIES, |given| given.rnr_retry > RETRIES_MAX),
    (READS, |given| given.max_rd_atomic > REQUESTS_MAX),
    (DEST_READS, |given| given.max_dest_rd_atomic > REQUESTS_MAX),
    (DEST, |given| given.dest_qp_num >> 24 != 0),
];

/// Whether something is wrong with what the mask names, for a queue pair in this state.
fn is_unfit(from: c_int, given: &QpAttr, mask: c_int) -> bool {
    let is_elsewhere = mask & CURRENT != 0 && given.cur_qp_state != from;
    is_elsewhere || WRONG.iter().any(|(bit, is_wrong)| mask & bit != 0 && is_wrong(given))
}

/// The state that a queue pair is to be in; `None` if it cannot get there with what the mask names.
fn next_state(from: c_int, given: &QpAttr, mask: c_int, is_datagram: bool) -> Option<c_int> {
    let to = if mask & STATE != 0 { given.qp_state } else { from };
    let (needed, optional) = allowed(from, to, is_datagram)?;
    let is_named = mask & needed == needed && mask & !(needed | optional) == 0;
    let is_end = matches!(to, STATE_RESET | STATE_ERR);
    ((is_named || is_end) && !is_unfit(from, given, mask)).then_some(to)
}

/// Address and number of the peer.
fn destination(attr: &QpAttr) -> (IpAddr, u32) {
    (number::address(&attr.ah_attr.grh.dgid.0), attr.dest_qp_num)
}

/// What a queue pair does when its state changes.
fn enter(
    adapter: &mut Adapter,
    handle: u32,
    (from, to): (c_int, c_int),
    is_datagram: bool,
) -> io::Result<()> {
    let Some(pair) = adapter.pairs.get(handle) else { return Ok(()) };
    match (to, is_datagram) {
        (STATE_RESET, _) => pair.reset(),
        (STATE_RTR, false) if from == STATE_INIT => {
            let (at, number) = destination(&pair.attr);
            pair.route = Some(Route { at, number });
            adapter.go(handle)?;
        }
        (STATE_SQD, _) | (STATE_RTS, false) if from != STATE_RTR => {
            if let Transport::Connection(rc) = &mut pair.transport {
                rc.hold(to == STATE_SQD);
            }
            adapter.send(handle);
        }
        _ => {}
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(qp: *mut Qp, attr: *mut QpAttr, mask: c_int) -> c_int {
    // SAFETY: a queue pair of this library, and the program's structure.
    let (qp, given) = unsafe { (&mut *qp, &*attr) };
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    let Some(pair) = adapter.pairs.get(qp.handle) else { return libc::EINVAL };
    let (from, is_datagram) = (pair.state, qp.qp_type == TYPE_UD);
    let Some(to) = next_state(from, given, mask, is_datagram) else { return libc::EINVAL };
    note(&mut pair.attr, given, mask);
    // Packet numbers have 24 bits.
    pair.attr.sq_psn &= 0xff_ffff;
    pair.attr.rq_psn &= 0xff_ffff;
    if to == STATE_ERR && from != STATE_ERR {
        adapter.fail(qp.handle, WC_WR_FLUSH_ERR);
    } else {
        pair.state = to;
    }
    qp.state = to;
    if let Err(error) = enter(&mut adapter, qp.handle, (from, to), is_datagram) {
        return code(&error);
    }
    drop(adapter);
    if to == STATE_RTR {
        thread::start();
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_qp(
    qp: *mut Qp,
    attr: *mut QpAttr,
    _mask: c_int,
    init: *mut QpInitAttr,
) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue pair of this library.
    let qp = unsafe { &mut *qp };
    let Some(pair) = adapter.pairs.get(qp.handle) else { return libc::EINVAL };
    qp.state = pair.state;
    let is_draining = matches!(&pair.transport, Transport::Connection(rc) if rc.is_draining);
    // SAFETY: the program's structures.
    unsafe {
        *attr = QpAttr {
            qp_state: pair.state,
            cur_qp_state: pair.state,
            sq_draining: is_draining.into(),
            ..pair.attr
        };
        *init = QpInitAttr {
            qp_context: qp.qp_context,
            send_cq: qp.send_cq,
            recv_cq: qp.recv_cq,
            srq: qp.srq,
            cap: pair.attr.cap,
            qp_type: qp.qp_type,
            sq_sig_all: pair.tells_all.into(),
        };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_qp(qp: *mut Qp) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue pair of this library, whose context and domain are there.
    let (handle, domain) = unsafe { ((*qp).handle, (*(*qp).pd).handle) };
    adapter = settled(adapter, Object::Pair(handle));
    let Some(pair) = adapter.pairs.get(handle) else { return libc::EINVAL };
    let (queues, receives, is_shared) =
        ([pair.send_queue, pair.receive_queue], pair.receives, pair.shares_receives);
    let number = pair.number;
    adapter.remove(handle);
    for queue in queues {
        if let Some(completions) = adapter.queues.completions.get(queue) {
            completions.users -= 1;
            completions.ended.retain(|ended| ended.number != number);
        }
    }
    if is_shared {
        if let Some(receives) = adapter.receives.get(receives) {
            receives.users -= 1;
        }
    } else {
        adapter.receives.remove(receives);
    }
    if let Some(users) = adapter.domains.get(domain) {
        *users -= 1;
    }
    // SAFETY: made by `ibv_create_qp`, and given back once.
    drop(unsafe { Box::from_raw(qp) });
    0
}

/// The newer way to post is not there: programs that ask fall back to `ibv_post_send`.
#[unsafe(no_mangle)]
extern "C" fn ibv_qp_to_qp_ex(_qp: *mut Qp) -> *mut c_void {
    std::ptr::null_mut()
}
