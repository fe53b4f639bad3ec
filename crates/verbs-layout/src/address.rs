//! Addresses of sockets, as C has them and as Rust does.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// An address of IPv4 or IPv6; `None` if it is neither, or there is none.
///
/// # Safety
/// `from` is null, or an address of the family that it says.
pub unsafe fn address(from: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: as the caller says.
    unsafe {
        match i32::from(from.as_ref()?.sa_family) {
            libc::AF_INET => {
                let from = &*from.cast::<libc::sockaddr_in>();
                let at = Ipv4Addr::from(from.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(at.into(), u16::from_be(from.sin_port)))
            }
            libc::AF_INET6 => {
                let from = &*from.cast::<libc::sockaddr_in6>();
                let (at, port) = (Ipv6Addr::from(from.sin6_addr.s6_addr), u16::from_be(from.sin6_port));
                Some(SocketAddrV6::new(at, port, from.sin6_flowinfo, from.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

/// The same as C has it.
pub fn storage(from: SocketAddr) -> libc::sockaddr_storage {
    // SAFETY: zeros are an address of no family.
    let mut out: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let to = &raw mut out;
    // SAFETY: there is room for an address of either family.
    unsafe {
        match from {
            SocketAddr::V4(from) => {
                let to = &mut *to.cast::<libc::sockaddr_in>();
                to.sin_family = libc::AF_INET as libc::sa_family_t;
                to.sin_port = from.port().to_be();
                to.sin_addr.s_addr = u32::from_ne_bytes(from.ip().octets());
            }
            SocketAddr::V6(from) => {
                let to = &mut *to.cast::<libc::sockaddr_in6>();
                to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (to.sin6_port, to.sin6_flowinfo) = (from.port().to_be(), from.flowinfo());
                (to.sin6_addr.s6_addr, to.sin6_scope_id) = (from.ip().octets(), from.scope_id());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_laid_out_as_c_has_them() {
        let four = storage("10.9.1.2:7300".parse().unwrap());
        // SAFETY: an address of this family.
        let four = unsafe { *(&raw const four).cast::<libc::sockaddr_in>() };
        assert_eq!((four.sin_port, four.sin_addr.s_addr), (7300u16.to_be(), 0x0a09_0102u32.to_be()));
        let six = storage("[fd00::1]:7".parse().unwrap());
        // SAFETY: as above.
        let six = unsafe { *(&raw const six).cast::<libc::sockaddr_in6>() };
        assert_eq!(
            (six.sin6_port, six.sin6_addr.s6_addr[0], six.sin6_addr.s6_addr[15]),
            (7u16.to_be(), 0xfd, 1)
        );
    }
}
