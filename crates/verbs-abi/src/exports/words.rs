//! Texts and tables of libibverbs.

use std::ffi::{CStr, c_char, c_int};

fn word(table: &[&'static CStr], at: c_int) -> *const c_char {
    usize::try_from(at).ok().and_then(|at| table.get(at)).unwrap_or(&c"unknown").as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wc_status_str(status: c_int) -> *const c_char {
    let table = [
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory management operation error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
    ];
    word(&table, status)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_node_type_str(kind: c_int) -> *const c_char {
    word(&[c"unknown", c"InfiniBand channel adapter", c"InfiniBand switch", c"InfiniBand router"], kind)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_port_state_str(state: c_int) -> *const c_char {
    let table = [c"no state change (NOP)", c"down", c"init", c"armed", c"active", c"active defer"];
    word(&table, state)
}

/// What a kind of work is called (`enum ibv_wr_opcode`), as rdma-core has it since release 54 for its own parts.
#[unsafe(no_mangle)]
extern "C" fn ibv_wr_opcode_str(opcode: c_int) -> *const c_char {
    let table = [
        c"IBV_WR_RDMA_WRITE",
        c"IBV_WR_RDMA_WRITE_WITH_IMM",
        c"IBV_WR_SEND",
        c"IBV_WR_SEND_WITH_IMM",
        c"IBV_WR_RDMA_READ",
        c"IBV_WR_ATOMIC_CMP_AND_SWP",
        c"IBV_WR_ATOMIC_FETCH_AND_ADD",
        c"IBV_WR_LOCAL_INV",
        c"IBV_WR_BIND_MW",
        c"IBV_WR_SEND_WITH_INV",
        c"IBV_WR_TSO",
        c"IBV_WR_DRIVER1",
    ];
    word(&table, opcode)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_event_type_str(event: c_int) -> *const c_char {
    let table = [
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
        c"WQ fatal",
    ];
    word(&table, event)
}

/// `enum ibv_rate`, with multiples of 2.5 Gbit/s (0: none) and Mbit/s.
const RATES: [(c_int, c_int, c_int); 19] = [
    (2, 1, 2500),
    (5, 2, 5000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 0, 14_062),
    (12, 0, 56_250),
    (13, 0, 112_500),
    (14, 0, 168_750),
    (15, 0, 25_781),
    (16, 0, 103_125),
    (17, 0, 206_250),
    (18, 0, 309_375),
    (19, 0, 28_125),
    (20, 0, 50_000),
];

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mult(rate: c_int) -> c_int {
    RATES.iter().find(|entry| entry.0 == rate && entry.1 != 0).map_or(-1, |entry| entry.1)
}

#[unsafe(no_mangle)]
extern "C" fn mult_to_ibv_rate(mult: c_int) -> c_int {
    RATES.iter().find(|entry| entry.1 == mult && mult != 0).map_or(0, |entry| entry.0)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mbps(rate: c_int) -> c_int {
    RATES.iter().find(|entry| entry.0 == rate).map_or(-1, |entry| entry.2)
}

#[unsafe(no_mangle)]
extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> c_int {
    RATES.iter().find(|entry| entry.2 == mbps).map_or(0, |entry| entry.0)
}

/// Where the kernel tells of its devices; of these it knows nothing.
#[unsafe(no_mangle)]
extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// The first bytes of a file of the kernel's, with an end of the string; how many, or -1.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_read_sysfs_file(
    dir: *const c_char,
    file: *const c_char,
    room: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: strings of the program.
    let (dir, file) = unsafe { (CStr::from_ptr(dir), CStr::from_ptr(file)) };
    // Devices have no directory: what is read there would be of the root.
    if dir.is_empty() || size == 0 {
        return -1;
    }
    let path = format!("{}/{}", dir.to_string_lossy(), file.to_string_lossy());
    let Ok(text) = std::fs::read(path) else { return -1 };
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let len = text.len().min(size - 1);
    // SAFETY: room for `size` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), room.cast(), len);
        *room.add(len) = 0;
    }
    len as c_int
}
