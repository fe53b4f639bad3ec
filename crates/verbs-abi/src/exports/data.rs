//! What programs call for each message: posting, and looking what has ended.

use super::contexts::PIECES_MAX;
use super::objects::Handle;
use crate::adapter::constants::*;
use crate::adapter::{Adapter, Parts, Request, Wish};
use crate::layout::*;
use crate::thread;
use fabric::{Local, Span};
use std::ffi::c_int;

/// Memory as a program lists it; an error number if that is no count, or more than any queue takes: nothing is read then.
///
/// # Safety
/// `count` entries at `list`.
unsafe fn parts(list: *const Sge, count: c_int) -> Result<Parts, c_int> {
    if count == 0 {
        return Ok(Parts::new());
    }
    if !(1..=PIECES_MAX as c_int).contains(&count) || list.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: as the caller says.
    let list = unsafe { std::slice::from_raw_parts(list, count as usize) };
    let local =
        |sge: &Sge| Local { span: Span { addr: sge.addr as usize, len: sge.length as usize }, key: sge.lkey };
    Ok(list.iter().map(local).collect())
}

/// A request as a program writes it; an error number if its list of memory is none.
///
/// # Safety
/// As the header says of `struct ibv_send_wr`; `qp_type` is that of its queue pair.
unsafe fn request(wr: &SendWr, is_datagram: bool) -> Result<Request, c_int> {
    // SAFETY: which part of the union holds is what the operation and the type of the queue pair say.
    unsafe {
        let (there, operands, to) = match wr.opcode {
            _ if is_datagram => {
                let ud = wr.wr.ud;
                let to = ud.ah.cast::<Handle>().as_ref().map(|handle| handle.to);
                ((u64::from(ud.remote_qpn), ud.remote_qkey), (0, 0), to)
            }
            WR_COMPARE_SWAP | WR_FETCH_ADD => {
                let atomic = wr.wr.atomic;
                ((atomic.remote_addr, atomic.rkey), (atomic.compare_add, atomic.swap), None)
            }
            _ => ((wr.wr.rdma.remote_addr, wr.wr.rdma.rkey), (0, 0), None),
        };
        Ok(Request {
            id: wr.wr_id,
            opcode: wr.opcode,
            flags: wr.send_flags,
            word: wr.imm_data,
            parts: parts(wr.sg_list, wr.num_sge)?,
            there,
            operands,
            to,
        })
    }
}

pub unsafe extern "C" fn post_send(qp: *mut Qp, mut wr: *mut SendWr, bad: *mut *mut SendWr) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue pair of this library.
    let (handle, is_datagram) = unsafe { ((*qp).handle, (*qp).qp_type == TYPE_UD) };
    let mut result = 0;
    // SAFETY: a list of requests that ends with a null.
    while let Some(this) = unsafe { wr.as_ref() } {
        // SAFETY: as the program says.
        let request = unsafe { request(this, is_datagram) };
        if let Err(error) = request.and_then(|request| adapter.post(handle, request)) {
            result = error;
            // SAFETY: the program's variable.
            unsafe { *bad = wr };
            break;
        }
        wr = this.next;
    }
    adapter.send(handle);
    result
}

/// Posts a list of receive buffers to a queue of them.
unsafe fn receive(adapter: &mut Adapter, queue: u32, mut wr: *mut RecvWr, bad: *mut *mut RecvWr) -> c_int {
    // SAFETY: a list of requests that ends with a null.
    while let Some(this) = unsafe { wr.as_ref() } {
        // SAFETY: as the program says.
        let pieces = unsafe { parts(this.sg_list, this.num_sge) };
        let posted = pieces.and_then(|pieces| adapter.post_receive(queue, this.wr_id, &pieces));
        if let Err(error) = posted {
            // SAFETY: the program's variable.
            unsafe { *bad = wr };
            return error;
        }
        wr = this.next;
    }
    0
}

pub unsafe extern "C" fn post_recv(qp: *mut Qp, wr: *mut RecvWr, bad: *mut *mut RecvWr) -> c_int {
    // SAFETY: a queue pair of this library.
    let handle = unsafe { (*qp).handle };
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    let queue = match adapter.pairs.get(handle) {
        Some(pair) if !pair.shares_receives && pair.state != STATE_RESET => pair.receives,
        _ => {
            // SAFETY: the program's variable.
            unsafe { *bad = wr };
            return libc::EINVAL;
        }
    };
    // SAFETY: as the caller says.
    unsafe { receive(&mut adapter, queue, wr, bad) }
}

pub unsafe extern "C" fn post_srq_recv(srq: *mut Srq, wr: *mut RecvWr, bad: *mut *mut RecvWr) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of this library; otherwise as the caller says.
    unsafe { receive(&mut adapter, (*srq).handle, wr, bad) }
}

pub unsafe extern "C" fn poll_cq(cq: *mut Cq, count: c_int, wc: *mut Wc) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return -1 };
    // SAFETY: a queue of this library.
    let handle = unsafe { (*cq).handle };
    let is_empty = adapter.queues.completions.get(handle).is_none_or(|known| known.ended.is_empty());
    if is_empty && !adapter.progress() {
        thread::polled();
    }
    let Some(known) = adapter.queues.completions.get(handle) else { return -1 };
    let mut at = 0;
    while at < count
        && let Some(ended) = known.ended.pop_front()
    {
        // SAFETY: room for `count` of them.
        unsafe {
            *wc.add(at as usize) = Wc {
                wr_id: ended.id,
                status: ended.status,
                opcode: ended.opcode,
                byte_len: ended.len,
                imm_data: ended.immediate,
                qp_num: ended.number,
                src_qp: ended.source,
                wc_flags: ended.flags,
                ..Wc::default()
            };
        }
        at += 1;
    }
    at
}

pub unsafe extern "C" fn req_notify_cq(cq: *mut Cq, solicited_only: c_int) -> c_int {
    let Ok(mut adapter) = crate::adapter() else { return libc::EIO };
    // SAFETY: a queue of this library.
    let Some(known) = adapter.queues.completions.get(unsafe { (*cq).handle }) else { return libc::EINVAL };
    known.wish = match known.wish {
        Wish::Next => Wish::Next,
        _ if solicited_only == 0 => Wish::Next,
        _ => Wish::Solicited,
    };
    drop(adapter);
    thread::rests();
    0
}
