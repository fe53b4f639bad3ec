//! Two options of UDP sockets that no crate of ours knows: several datagrams by one call, out (GSO) and in (GRO).
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

/// What is sent is cut into datagrams of this length, the last one shorter; 0: it is one. Whether the kernel can do that.
pub fn cut(socket: impl AsFd, len: usize) -> bool {
    set(socket, libc::UDP_SEGMENT, len)
}

/// Datagrams of one sender that lie behind each other may be handed out together, without a word on where one ends.
pub fn join(socket: impl AsFd) -> bool {
    set(socket, libc::UDP_GRO, 1)
}

fn set(socket: impl AsFd, option: libc::c_int, value: usize) -> bool {
    let Ok(value) = libc::c_int::try_from(value) else { return false };
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `socket` is there, and the option is an integer that outlives the call.
    unsafe {
        libc::setsockopt(socket.as_fd().as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), len)
            == 0
    }
}
