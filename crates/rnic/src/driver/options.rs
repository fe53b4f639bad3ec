//! Options of sockets that no crate of ours knows: several datagrams by one call, out (GSO) and in (GRO); what TCP knows of its way, and
//! buffers that the kernel sizes again.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

/// `SO_BUF_LOCK` (Linux 5.15): which buffers the kernel leaves as a program has set them.
const SO_BUF_LOCK: libc::c_int = 72;

/// What is sent is cut into datagrams of this length, the last one shorter; 0: it is one. Whether the kernel can do that.
pub fn cut(socket: impl AsFd, len: usize) -> bool {
    set(socket, (libc::SOL_UDP, libc::UDP_SEGMENT), len)
}

/// Datagrams of one sender that lie behind each other may be handed out together, without a word on where one ends.
pub fn join(socket: impl AsFd) -> bool {
    set(socket, (libc::SOL_UDP, libc::UDP_GRO), 1)
}

/// The kernel sizes both buffers of a connection as it likes. Whether it can do that where they were set before.
pub fn let_buffers_grow(socket: impl AsFd) -> bool {
    set(socket, (libc::SOL_SOCKET, SO_BUF_LOCK), 0)
}

fn set(socket: impl AsFd, (level, option): (libc::c_int, libc::c_int), value: usize) -> bool {
    let Ok(value) = libc::c_int::try_from(value) else { return false };
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is there, and the option is an integer that outlives the call.
    unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, (&raw const value).cast(), len) == 0
    }
}

/// What TCP has measured of its way (`TCP_INFO`): the shortest round trip, in µs, and the rate at which bytes have arrived, in bytes a second. None
/// where the kernel does not tell (before Linux 4.9), or knows nothing yet.
pub fn way(socket: impl AsFd) -> Option<(u32, u64)> {
    // Where `tcp_info` of include/uapi/linux/tcp.h has the two; the second is the last that is asked for.
    const MIN_RTT: usize = 148;
    const DELIVERY_RATE: usize = 160;
    let mut info = [0; DELIVERY_RATE + size_of::<u64>()];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is there, and the kernel writes at most `len` bytes to `info`, which outlives the call.
    let result = unsafe {
        let socket = socket.as_fd().as_raw_fd();
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut len)
    };
    let is_whole = result == 0 && len as usize == info.len();
    let min_rtt_us = u32::from_ne_bytes(*info[MIN_RTT..].first_chunk()?);
    let rate = u64::from_ne_bytes(*info[DELIVERY_RATE..].first_chunk()?);
    (is_whole && min_rtt_us != u32::MAX).then_some((min_rtt_us, rate))
}
