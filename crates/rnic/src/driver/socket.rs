//! Sockets that never block, and random bytes.

use super::watch::keep_alive;
use rustix::event::epoll;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};

/// Makes a socket ready for use.
pub fn prepare(socket: &TcpStream) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    socket.set_nodelay(true)?;
    keep_alive(socket)
}

/// A socket that connects without blocking.
pub fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    connect_from(None, address)
}

/// The same, from an address of this host's, of which port 0 is any.
pub fn connect_from(own: Option<SocketAddr>, address: SocketAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{self, SocketFlags, SocketType};
    let family = if address.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(own) = own {
        net::sockopt::set_socket_reuseaddr(&socket, true)?;
        net::bind(&socket, &own)?;
    }
    match net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let socket = TcpStream::from(socket);
    prepare(&socket)?;
    Ok(socket)
}

/// A connection whose both ends are this socket, at an address of this host's (TCP's simultaneous open, RFC 9293, section 3.5).
pub fn connect_to_itself(at: IpAddr) -> std::io::Result<TcpStream> {
    use rustix::net::{self, SocketFlags, SocketType};
    let family = if at.is_ipv4() { net::AddressFamily::INET } else { net::AddressFamily::INET6 };
    let socket = net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    net::bind(&socket, &SocketAddr::new(at, 0))?;
    net::connect(&socket, &net::getsockname(&socket)?)?;
    let socket = TcpStream::from(socket);
    prepare(&socket)?;
    Ok(socket)
}

/// Has the kernel tell of a socket, by this name: of what comes, and of room for more if that is wanted. `is_known` is whether
/// it does already.
pub fn hear(
    epoll: &OwnedFd,
    socket: impl AsFd,
    name: u64,
    wants_room: bool,
    is_known: bool,
) -> std::io::Result<()> {
    let room = if wants_room { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
    let (data, flags) = (epoll::EventData::new_u64(name), epoll::EventFlags::IN | room);
    match is_known {
        true => Ok(epoll::modify(epoll, socket, data, flags)?),
        false => Ok(epoll::add(epoll, socket, data, flags)?),
    }
}

/// Random bytes.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        at += rustix::rand::getrandom(&mut bytes[at..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
