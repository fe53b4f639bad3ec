//! Devices, contexts, ports.

use super::{Listed, MUTEX, Open, code, data, none, open_of, pairs, set_errno};
use crate::adapter::number;
use crate::interfaces::{Interface, interfaces};
use crate::layout::*;
use crate::thread;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the end of a device waits for what peers have not taken, and between two looks.
const LINGER: Duration = Duration::from_secs(2);
/// See [`LINGER`].
const GLANCE: Duration = Duration::from_micros(200);
/// `enum ibv_node_type`, `ibv_transport_type`: a channel adapter of InfiniBand's kind, as RoCE is.
const CHANNEL_ADAPTER: c_int = 1;
const TRANSPORT_IB: c_int = 0;
/// `IBV_LINK_LAYER_ETHERNET`.
const ETHERNET: u8 = 2;
/// `IBV_PORT_ACTIVE`, and the link is up; `IBV_PORT_DOWN`, and it is disabled.
const ACTIVE: c_int = 4;
const LINK_UP: u8 = 5;
const DOWN: c_int = 1;
const DISABLED: u8 = 3;
/// `IBV_ATOMIC_GLOB`: atomic against the processor's instructions, too.
const ATOMIC_GLOBAL: c_int = 2;
/// `IBV_GID_TYPE_ROCE_V2`, and the same as `_ibv_query_gid_ex` and sysfs have it.
const ROCE_V2: c_int = 1;
const ENTRY_ROCE_V2: u32 = 2;
/// Work in a queue, entries of a completion queue and pieces of a message at most.
pub const QUEUE_MAX: u32 = 32_768;
/// See [`QUEUE_MAX`].
pub const COMPLETIONS_MAX: i32 = 1 << 22;
/// See [`QUEUE_MAX`].
pub const PIECES_MAX: u32 = 32;
/// Requests of a peer that are kept at a time.
pub const REQUESTS_MAX: u8 = 128;
/// Payload that is copied when it is posted.
pub const INLINE_MAX: u32 = 1024;
/// Longest message: Immediate Data have 31 bits for a length.
const MESSAGE_MAX: u32 = 0x7fff_ffff;

/// What programs find below `/dev/infiniband` for a device. UCX looks whether there is a character device that it may read and write, and
/// takes none without; nobody opens it. This adapter has no file, and this one is everybody's.
const DEVICE_FILE: &str = "../null";

/// Open devices, by the addresses of their contexts.
static OPENED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn text<const N: usize>(from: &str) -> [c_char; N] {
    let mut out = [0; N];
    for (to, byte) in out[..N - 1].iter_mut().zip(from.bytes()) {
        *to = byte as c_char;
    }
    out
}

/// A GUID as adapters on Ethernet have it, made of the address.
fn guid(interface: &Interface) -> u64 {
    let gid = number::gid(interface.at);
    let mut bytes = [2, 0, 0, 0xff, 0, 0, 0, 0];
    bytes[4..].copy_from_slice(&gid[12..]);
    u64::from_ne_bytes(bytes)
}

/// A device that programs have been told of.
struct Known(*mut Listed);

// SAFETY: nothing changes in it any more.
unsafe impl Send for Known {}

/// The device of an interface. Devices are never freed, for programs hold on to them behind the list: an interface that is
/// as it was has the one it had.
pub fn device_of(interface: Interface) -> *mut Device {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a device of this list.
    if let Some(known) = known.iter().find(|known| unsafe { (*known.0).interface == interface }) {
        return known.0.cast();
    }
    let device = Device {
        ops: [null_mut(); 2],
        node_type: CHANNEL_ADAPTER,
        transport_type: TRANSPORT_IB,
        name: text(&interface.name),
        dev_name: text(DEVICE_FILE),
        dev_path: text(""),
        ibdev_path: text(""),
    };
    let listed = Box::into_raw(Box::new(Listed { device, interface }));
    known.push(Known(listed));
    listed.cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut Device {
    let mut list: Vec<*mut Device> = interfaces().into_iter().map(device_of).collect();
    if !count.is_null() {
        // SAFETY: the program's variable.
        unsafe { *count = list.len() as c_int };
    }
    list.push(null_mut());
    Box::into_raw(list.into_boxed_slice()).cast()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_free_device_list(list: *mut *mut Device) {
    if list.is_null() {
        return;
    }
    let mut len = 1;
    // SAFETY: a list of `ibv_get_device_list`, which ends with a null.
    while unsafe { !(*list.add(len - 1)).is_null() } {
        len += 1;
    }
    // SAFETY: made there from a slice of this length.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(list, len)) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_name(device: *mut Device) -> *const c_char {
    // SAFETY: a device of the list.
    unsafe { (*device).name.as_ptr() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_index(device: *mut Device) -> c_int {
    // SAFETY: a device of the list.
    unsafe { (*device.cast::<Listed>()).interface.index as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_guid(device: *mut Device) -> u64 {
    // SAFETY: a device of the list.
    unsafe { guid(&(*device.cast::<Listed>()).interface) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_open_device(device: *mut Device) -> *mut Context {
    if device.is_null() {
        return none(libc::EINVAL);
    }
    // SAFETY: a device of the list.
    let interface = unsafe { (*device.cast::<Listed>()).interface.clone() };
    let opened = crate::adapter().and_then(|mut adapter| adapter.open(interface.clone()));
    let (number, async_fd) = match opened {
        Ok(opened) => opened,
        Err(error) => return none(code(&error)),
    };
    // A program may sleep on that descriptor, and nobody else hears of interfaces.
    thread::start();
    let context = Context {
        device,
        ops: ContextOps {
            old: [null_mut(); 11],
            poll_cq: Some(data::poll_cq),
            req_notify_cq: Some(data::req_notify_cq),
            old_queues: [null_mut(); 7],
            post_srq_recv: Some(data::post_srq_recv),
            old_pairs: [null_mut(); 4],
            post_send: Some(data::post_send),
            post_recv: Some(data::post_recv),
            old_rest: [null_mut(); 5],
        },
        cmd_fd: -1,
        async_fd,
        num_comp_vectors: 1,
        mutex: MUTEX,
        abi_compat: EXTENDED,
    };
    let verbs = VerbsContext {
        query_port: Some(query_port),
        newer: [null_mut(); 24],
        create_cq_ex: null_mut(),
        private: null_mut(),
        query_device_ex: Some(query_device_ex),
        flows: [null_mut(); 4],
        open_qp: null_mut(),
        create_qp_ex: Some(pairs::create_qp_ex),
        get_srq_num: null_mut(),
        create_srq_ex: null_mut(),
        open_xrcd: null_mut(),
        close_xrcd: null_mut(),
        old: 0,
        sz: size_of::<VerbsContext>(),
        context,
    };
    let open = Box::leak(Box::new(Open { verbs, interface, number }));
    let context = &raw mut open.verbs.context;
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).push(context as usize);
    context
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_close_device(context: *mut Context) -> c_int {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = opened.iter().position(|known| *known == context as usize) else { return libc::EINVAL };
    opened.swap_remove(at);
    drop(opened);
    let offset = std::mem::offset_of!(Open, verbs) + std::mem::offset_of!(VerbsContext, context);
    // SAFETY: a context of `ibv_open_device`, which is closed once, for else it was not known.
    let open = unsafe { Box::from_raw(context.byte_sub(offset).cast::<Open>()) };
    if let Ok(mut adapter) = crate::adapter() {
        adapter.close(open.number);
    }
    drop(open);
    // What peers have not taken yet is still sent, for a time; others use the adapter between two looks.
    let until = Instant::now() + LINGER;
    while crate::adapter().is_ok_and(|mut adapter| adapter.is_parting()) && Instant::now() < until {
        std::thread::sleep(GLANCE);
    }
    0
}

fn device_attr(interface: &Interface) -> DeviceAttr {
    let guid = guid(interface);
    DeviceAttr {
        fw_ver: text(env!("CARGO_PKG_VERSION")),
        node_guid: guid,
        sys_image_guid: guid,
        max_mr_size: u64::MAX,
        page_size_cap: !0xfff,
        vendor_id: 0,
        vendor_part_id: 0,
        hw_ver: 1,
        max_qp: 1 << 16,
        max_qp_wr: QUEUE_MAX as c_int,
        device_cap_flags: 0,
        max_sge: PIECES_MAX as c_int,
        max_sge_rd: 1,
        max_cq: 1 << 16,
        max_cqe: COMPLETIONS_MAX,
        max_mr: rnic::stack::MAX_REGIONS as c_int,
        max_pd: 1 << 24,
        max_qp_rd_atom: REQUESTS_MAX.into(),
        max_ee_rd_atom: 0,
        max_res_rd_atom: 1 << 20,
        max_qp_init_rd_atom: REQUESTS_MAX.into(),
        max_ee_init_rd_atom: 0,
        atomic_cap: ATOMIC_GLOBAL,
        max_ee: 0,
        max_rdd: 0,
        max_mw: 0,
        max_raw_ipv6_qp: 0,
        max_raw_ethy_qp: 0,
        max_mcast_grp: 0,
        max_mcast_qp_attach: 0,
        max_total_mcast_qp_attach: 0,
        max_ah: 1 << 24,
        max_fmr: 0,
        max_map_per_fmr: 0,
        max_srq: 1 << 16,
        max_srq_wr: QUEUE_MAX as c_int,
        max_srq_sge: PIECES_MAX as c_int,
        max_pkeys: 1,
        local_ca_ack_delay: 0,
        phys_port_cnt: 1,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(context: *mut Context, attr: *mut DeviceAttr) -> c_int {
    // SAFETY: an open context, and the program's structure.
    unsafe { *attr = device_attr(&open_of(context).interface) };
    0
}

unsafe extern "C" fn query_device_ex(
    context: *mut Context,
    _input: *const c_void,
    attr: *mut c_void,
    size: usize,
) -> c_int {
    if size < size_of::<DeviceAttr>() + 8 {
        return libc::EINVAL;
    }
    // SAFETY: the program's structure, of this size, which begins with the plain attributes.
    unsafe {
        std::ptr::write_bytes(attr.cast::<u8>(), 0, size);
        *attr.cast::<DeviceAttr>() = device_attr(&open_of(context).interface);
    }
    0
}

/// `enum ibv_mtu` of the longest message that one packet of the interface takes, beside what stands in front of it.
pub fn mtu(interface: &Interface) -> c_int {
    let room = interface.mtu.saturating_sub(128);
    (1..=5).rev().find(|mtu| 128usize << mtu <= room).unwrap_or(1)
}

/// Whether the interface of an open device is up.
fn is_up(open: &Open) -> bool {
    let Ok(mut adapter) = crate::adapter() else { return true };
    adapter.look_at_ports();
    adapter.queues.contexts.get(open.number).is_none_or(|context| context.is_up)
}

unsafe extern "C" fn query_port(context: *mut Context, port: u8, attr: *mut PortAttr, size: usize) -> c_int {
    if port != 1 {
        return libc::EINVAL;
    }
    // SAFETY: an open context.
    let open = unsafe { open_of(context) };
    let mtu = mtu(&open.interface);
    let (state, phys_state) = if is_up(open) { (ACTIVE, LINK_UP) } else { (DOWN, DISABLED) };
    let answer = PortAttr {
        state,
        max_mtu: 5,
        active_mtu: mtu,
        gid_tbl_len: 1,
        // IBV_PORT_CM_SUP, IBV_PORT_IP_BASED_GIDS.
        port_cap_flags: 1 << 16 | 1 << 26,
        max_msg_sz: MESSAGE_MAX,
        pkey_tbl_len: 1,
        max_vl_num: 1,
        active_width: 1,
        active_speed: 32,
        phys_state,
        link_layer: ETHERNET,
        ..PortAttr::default()
    };
    // SAFETY: the program's structure, of this size.
    unsafe {
        std::ptr::write_bytes(attr.cast::<u8>(), 0, size);
        let len = size.min(size_of::<PortAttr>());
        std::ptr::copy_nonoverlapping((&raw const answer).cast::<u8>(), attr.cast(), len);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_port(context: *mut Context, port: u8, attr: *mut PortAttr) -> c_int {
    // SAFETY: as the caller says. Programs that call this by its symbol have the structure without its last 4 bytes.
    unsafe { query_port(context, port, attr, std::mem::offset_of!(PortAttr, flags)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid(context: *mut Context, port: u8, index: c_int, gid: *mut Gid) -> c_int {
    if port != 1 || index != 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: an open context, and the program's variable.
    unsafe { *gid = Gid(number::gid(open_of(context).interface.at)) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid_type(
    _context: *mut Context,
    port: u8,
    index: c_uint,
    kind: *mut c_int,
) -> c_int {
    if port != 1 || index != 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: the program's variable.
    unsafe { *kind = ROCE_V2 };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut Context,
    port: u32,
    index: u32,
    entry: *mut GidEntry,
    flags: u32,
    size: usize,
) -> c_int {
    if port != 1 || flags != 0 || size < size_of::<GidEntry>() {
        return libc::EINVAL;
    }
    if index != 0 {
        return libc::ENODATA;
    }
    // SAFETY: an open context, and the program's structure.
    unsafe {
        let interface = &open_of(context).interface;
        *entry = GidEntry {
            gid: Gid(number::gid(interface.at)),
            gid_index: 0,
            port_num: 1,
            gid_type: ENTRY_ROCE_V2,
            ndev_ifindex: interface.index,
        };
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut Context,
    entries: *mut GidEntry,
    room: usize,
    flags: u32,
    size: usize,
) -> isize {
    if room == 0 {
        return -(libc::EINVAL as isize);
    }
    // SAFETY: as the caller says.
    match unsafe { _ibv_query_gid_ex(context, 1, 0, entries, flags, size) } {
        0 => 1,
        error => -(error as isize),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_pkey(_context: *mut Context, port: u8, index: c_int, key: *mut u16) -> c_int {
    if port != 1 || index != 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    // SAFETY: the program's variable.
    unsafe { *key = u16::MAX };
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_pkey_index(_context: *mut Context, port: u8, key: u16) -> c_int {
    if port == 1 && key == u16::MAX { 0 } else { -1 }
}
