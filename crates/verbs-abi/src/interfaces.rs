//! Devices: the interfaces of this host that are up.

use std::net::IpAddr;

/// One interface, as a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Name of the device.
    pub name: String,
    /// Its address.
    pub at: IpAddr,
    /// Longest packet, in bytes.
    pub mtu: usize,
    /// Its index in the kernel.
    pub index: u32,
}

/// Whether queue pairs can be bound to it: an address of scope link needs an interface beside it.
fn is_fit(at: IpAddr) -> bool {
    match at {
        IpAddr::V4(_) => true,
        IpAddr::V6(at) => at.segments()[0] & 0xffc0 != 0xfe80,
    }
}

/// The devices, one for each interface that is up and has an address: its first of IPv4, or else of IPv6. Those that lead
/// to other hosts come first.
pub fn interfaces() -> Vec<Interface> {
    let mut all = launch::sys::net::interfaces().unwrap_or_default();
    all.retain(|interface| is_fit(interface.at));
    all.sort_by_key(|interface| (interface.is_loopback, interface.at.is_ipv6()));
    let mut found: Vec<Interface> = Vec::new();
    for interface in all {
        let name = format!("tern_{}", interface.name);
        if found.iter().any(|known| known.name == name) {
            continue;
        }
        let read = |what: &str| {
            let path = format!("/sys/class/net/{}/{what}", interface.name);
            std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u32>().ok())
        };
        let mtu = read("mtu").unwrap_or(1500) as usize;
        let index = read("ifindex").unwrap_or(0);
        found.push(Interface { name, at: interface.at, mtu, index });
    }
    found
}

/// The device at an address of this host's, which may be another of its interface.
pub fn interface_of(at: IpAddr) -> Option<Interface> {
    let all = interfaces();
    if let Some(first) = all.iter().find(|interface| interface.at == at) {
        return Some(first.clone());
    }
    let known = launch::sys::net::interfaces().unwrap_or_default();
    let name = known
        .into_iter()
        .find(|interface| interface.at == at)
        .map(|interface| format!("tern_{}", interface.name))?;
    all.into_iter().find(|interface| interface.name == name)
}
