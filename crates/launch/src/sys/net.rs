//! What the standard library does not say or do about the network.
use super::{check, event};
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

/// How long nothing may be heard of the other side of a connection before the system looks whether it is there, and
/// how long sent data may stay without an answer before the connection counts as lost.
const QUIET: Duration = Duration::from_secs(5);
const LOST: Duration = Duration::from_secs(20);

/// Has the system end a connection whose other side is gone without a word: a host that has lost its power, or a
/// cable that is cut for good.
pub fn watch_over(stream: &TcpStream) -> io::Result<()> {
    let tcp = libc::IPPROTO_TCP;
    let probes = (LOST.as_secs() / QUIET.as_secs()) as libc::c_int;
    set(stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(stream, tcp, libc::TCP_KEEPIDLE, QUIET.as_secs() as libc::c_int)?;
    set(stream, tcp, libc::TCP_KEEPINTVL, QUIET.as_secs() as libc::c_int)?;
    set(stream, tcp, libc::TCP_KEEPCNT, probes)?;
    set(stream, tcp, libc::TCP_USER_TIMEOUT, LOST.as_millis() as libc::c_int)
}

fn set(stream: &TcpStream, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is readable for the size given.
    check(unsafe { libc::setsockopt(stream.as_raw_fd(), level, name, (&raw const value).cast(), size) })
        .map(drop)
}

/// The address from which this host reaches another; nothing is sent for it.
pub fn towards(other: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if other.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Any port will do: the system only chooses a route.
    socket.connect((other, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// One address of one interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The address.
    pub at: IpAddr,
    /// Whether it leads to this host alone.
    pub is_loopback: bool,
    /// Whether it can carry something: its link is there. Not IFF_RUNNING, which the kernel sets up to a second later.
    pub is_linked: bool,
}

/// `IFF_LOWER_UP`, which libc does not know.
const LOWER_UP: libc::c_int = 1 << 16;

/// All addresses of all interfaces that are up.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut list = std::ptr::null_mut();
    // SAFETY: `list` is writable.
    check(unsafe { libc::getifaddrs(&mut list) })?;
    let mut found = Vec::new();
    let mut next = list;
    // SAFETY: each entry of the list is valid until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let flags = entry.ifa_flags as libc::c_int;
        // SAFETY: null, or the address of the entry.
        if let Some(at) = unsafe { address(entry.ifa_addr) }
            && flags & libc::IFF_UP != 0
        {
            // SAFETY: the name is a C string.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
            let is_loopback = flags & libc::IFF_LOOPBACK != 0;
            found.push(Interface { name, at, is_loopback, is_linked: flags & LOWER_UP != 0 });
        }
    }
    // SAFETY: made by getifaddrs, and freed once.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// Sends as many bytes over a connected stream socket as it receives, without taking the socket over. Both sides send
/// first, so no more than a socket holds.
pub fn swap(socket: RawFd, out: &[u8], room: &mut [u8], longest: Duration) -> io::Result<()> {
    if socket < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: not negative, and used for this call alone; a number that is open to nothing is an error of the calls.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let until = Instant::now() + longest;
    let wait =
        |what| match event::wait_one(socket, what, Some(until.saturating_duration_since(Instant::now()))) {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::Error::from(io::ErrorKind::TimedOut)),
            Err(error) => Err(error),
        };
    let mut sent = 0;
    while sent < out.len() {
        wait(event::WRITE)?;
        let rest = &out[sent..];
        // SAFETY: the bytes are readable.
        let wrote = unsafe {
            libc::send(
                socket.as_raw_fd(),
                rest.as_ptr().cast(),
                rest.len(),
                libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
            )
        };
        sent += moved(wrote)?;
    }
    let mut got = 0;
    while got < room.len() {
        wait(event::READ)?;
        let rest = &mut room[got..];
        // SAFETY: the room is writable.
        let read = unsafe {
            libc::recv(socket.as_raw_fd(), rest.as_mut_ptr().cast(), rest.len(), libc::MSG_DONTWAIT)
        };
        match moved(read)? {
            0 if read == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => got += count,
        }
    }
    Ok(())
}

/// How many bytes a call has moved: none if it is to be made again.
fn moved(result: isize) -> io::Result<usize> {
    usize::try_from(result).or_else(|_| match io::Error::last_os_error() {
        error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        error => Err(error),
    })
}

/// The addresses of an interface, those of IPv4 first; without those that hold on one link only.
pub fn addresses(interface: &str) -> io::Result<Vec<IpAddr>> {
    let all = interfaces()?.into_iter().filter(|found| found.name == interface);
    let mut found: Vec<IpAddr> = all.map(|found| found.at).collect();
    found.retain(|address| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()));
    found.sort_by_key(IpAddr::is_ipv6);
    Ok(found)
}

/// # Safety
/// `address` is null or points to an address of the family that it names.
unsafe fn address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by the contract of this function.
    match i32::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is one of these.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_reaches_itself() {
        let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
        assert_eq!(addresses("lo").unwrap().first(), Some(&loopback));
        assert!(addresses("no-such-interface").unwrap().is_empty());
        assert!(towards(loopback).unwrap().is_loopback());
    }
}
