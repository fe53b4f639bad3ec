//! Numbers of queue pairs: 24 bits that say where one is reached.
//!
//! ```text
//! | port (16) | index (8) |     index 255: unreliable datagrams, at that UDP port; else a connection, at that TCP port
//! ```

use std::net::{IpAddr, Ipv6Addr};

/// The index of a queue pair for unreliable datagrams, of which there is one at a port.
pub const DATAGRAMS: u8 = 255;

/// The number of the queue pair of this index at this port.
pub fn number(port: u16, index: u8) -> u32 {
    u32::from(port) << 8 | u32::from(index)
}

/// The port at which a queue pair is reached.
pub fn port(number: u32) -> u16 {
    (number >> 8) as u16
}

/// The address that a GID names.
pub fn address(gid: &[u8; 16]) -> IpAddr {
    let address = Ipv6Addr::from(*gid);
    address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
}

/// The GID of an address.
pub fn gid(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_come_back() {
        let there = number(51_234, 7);
        assert_eq!((port(there), there as u8, there >> 24), (51_234, 7, 0));
        for text in ["10.1.2.3", "fe80::1", "::1"] {
            let at: IpAddr = text.parse().unwrap();
            assert_eq!(address(&gid(at)), at);
        }
    }
}
