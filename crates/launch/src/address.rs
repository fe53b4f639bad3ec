//! Where a rank is: which memory it can share, and which address of its host others connect to.

use crate::report::HOST_ADDRESS;
use crate::sys::net::{self, Interface};
use fabric::settings::Settings;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// A name that ranks have in common that run on one kernel.
pub fn machine() -> Result<String, String> {
    let boot = "/proc/sys/kernel/random/boot_id";
    let name = std::fs::read_to_string(boot).map_err(|e| format!("cannot read {boot}: {e}"))?;
    Ok(name.trim().into())
}

/// What this host calls itself.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().into()
}

/// Whether a name says that it is this host's; others may be as well.
pub fn is_this_host(name: &str) -> bool {
    let own = host_name();
    matches!(name, "localhost" | "127.0.0.1" | "::1") || name == own || own.split('.').next() == Some(name)
}

/// A name that ranks have in common that can share memory.
pub fn memory(settings: &Settings) -> Result<String, String> {
    let dir = settings.text("TERN_SHM_DIR");
    let at = std::fs::metadata(dir).map_err(|e| format!("TERN_SHM_DIR: {dir}: {e}"))?;
    Ok(format!("{}-{:x}-{:x}", machine()?, at.dev(), at.ino()))
}

/// The address of this host that others connect to: as the setting says, or the launcher; else the first of the
/// interface that leads out of this host, else the first that is not the loopback's, else that one. Where there are both,
/// IPv4 goes before IPv6. Addresses that hold on one link only (fe80::) are nobody's: others would need to know which link.
pub fn outer(settings: &Settings) -> Result<IpAddr, String> {
    let mut all = net::interfaces().map_err(|e| format!("cannot list the interfaces of this host: {e}"))?;
    all.retain(|place| !matches!(place.at, IpAddr::V6(at) if at.is_unicast_link_local()));
    all.sort_by_key(|place| place.at.is_ipv6());
    let wanted = settings.text("TERN_INTERFACE");
    if !wanted.is_empty() {
        return named(&all, wanted).and_then(|at| reached(at, told()));
    }
    if let Some(at) = told() {
        return Ok(at);
    }
    if settings.text("TERN_DEVICES") == "rnic" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    Ok(outward(&all, &leading(&read("/proc/net/route"), &read("/proc/net/ipv6_route"))))
}

/// The address of this host, where the launcher tells it because there are several. It is read once, at the start, for a program
/// may change its environment while a thread of the library asks for this.
pub fn told() -> Option<IpAddr> {
    static TOLD: OnceLock<Option<IpAddr>> = OnceLock::new();
    *TOLD.get_or_init(|| std::env::var(HOST_ADDRESS).ok()?.parse().ok())
}

/// An address that was asked for, unless other hosts of the job cannot reach it: there are some where the launcher has `told` one.
fn reached(at: IpAddr, told: Option<IpAddr>) -> Result<IpAddr, String> {
    match told {
        Some(told) if at.is_loopback() && !told.is_loopback() => Err(format!(
            "TERN_INTERFACE: {at} is of this host alone, {}, and the job has ranks on others",
            host_name()
        )),
        _ => Ok(at),
    }
}

/// The address that a name, an address or a subnet means.
fn named(all: &[Interface], wanted: &str) -> Result<IpAddr, String> {
    let subnet = subnet(wanted);
    if wanted.contains('/') && subnet.is_none() {
        return Err(format!(
            "TERN_INTERFACE: `{wanted}` is no subnet: that is an address, a slash and how many bits count"
        ));
    }
    let address: Option<IpAddr> = wanted.parse().ok();
    let fits = |place: &&Interface| match subnet {
        Some((net, bits)) => is_within(place.at, net, bits),
        None => place.name == wanted || Some(place.at) == address,
    };
    let names =
        || all.iter().map(|place| format!("{} {}", place.name, place.at)).collect::<Vec<_>>().join(", ");
    all.iter().find(fits).map(|place| place.at).ok_or_else(|| {
        format!("TERN_INTERFACE: host {} has no address of `{wanted}`; it has {}", host_name(), names())
    })
}

/// The net of `net/bits`, and its bits.
pub fn subnet(text: &str) -> Option<(IpAddr, u32)> {
    let (net, bits) = text.split_once('/')?;
    let net: IpAddr = net.parse().ok()?;
    let most = if net.is_ipv4() { 32 } else { 128 };
    Some((net, bits.parse().ok().filter(|bits| *bits <= most)?))
}

/// Whether an address is in this net.
pub fn is_within(at: IpAddr, net: IpAddr, bits: u32) -> bool {
    match (at, net) {
        (IpAddr::V4(at), IpAddr::V4(net)) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            u32::from(at) & mask == u32::from(net) & mask
        }
        (IpAddr::V6(at), IpAddr::V6(net)) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            u128::from(at) & mask == u128::from(net) & mask
        }
        _ => false,
    }
}

/// The interfaces of the default routes: of IPv4, whose table names the interface first, and of IPv6, which names it last
/// and has routes to nowhere over the loopback.
pub fn leading<'a>(routes: &'a str, routes6: &'a str) -> Vec<&'a str> {
    let default = routes.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (interface, net) = (words.next()?, words.next()?);
        (net == "00000000").then_some(interface)
    });
    let default6 = routes6.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_default = words.len() == 10 && words[0].bytes().all(|b| b == b'0') && words[1] == "00";
        (is_default && words[9] != "lo").then(|| words[9])
    });
    default.chain(default6).collect()
}

/// See [`outer`]. Interfaces that lead nowhere, as those of bridges for containers, have an address on every host, the
/// same one.
fn outward(all: &[Interface], leading: &[&str]) -> IpAddr {
    let outside = || all.iter().filter(|place| !place.is_loopback);
    let leads = |place: &&Interface| leading.contains(&place.name.as_str());
    let first = outside().find(leads).or_else(|| outside().next());
    first.map_or(Ipv4Addr::LOCALHOST.into(), |place| place.at)
}

/// Whether ranks that listen at these addresses reach each other at all; if not, which do not.
pub fn are_alike(addresses: &[SocketAddr]) -> Result<(), String> {
    let Some(first) = addresses.first() else { return Ok(()) };
    match addresses.iter().position(|at| at.is_ipv4() != first.is_ipv4()) {
        None => Ok(()),
        Some(other) => Err(format!(
            "rank 0 listens at {first} and rank {other} at {}, one of IPv4, the other of IPv6: name a subnet of one kind \
             that all hosts are in with TERN_INTERFACE",
            addresses[other]
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<Interface> {
        let place = |(name, at): (&str, &str)| Interface {
            name: name.into(),
            at: at.parse().unwrap(),
            is_loopback: name == "lo",
            is_linked: true,
        };
        let all =
            [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("eth0", "10.1.2.3"), ("eth0", "fd00:1::3")];
        all.map(place).into()
    }

    #[test]
    fn interfaces_go_by_name_address_or_subnet() {
        for wanted in ["eth0", "10.1.2.3", "10.1.0.0/16", "10.1.2.3/32"] {
            assert_eq!(named(&places(), wanted), Ok([10, 1, 2, 3].into()), "{wanted}");
        }
        for wanted in ["fd00:1::3", "fd00:1:0:0::3", "fd00:1::/64", "::/0", "fd00:1::3/128"] {
            assert_eq!(named(&places(), wanted), Ok("fd00:1::3".parse().unwrap()), "{wanted}");
        }
        assert_eq!(named(&places()[3..], "eth0"), Ok("fd00:1::3".parse().unwrap()));
        assert_eq!(named(&places(), "0.0.0.0/0"), Ok(Ipv4Addr::LOCALHOST.into()));
        for wanted in ["eth1", "10.2.0.0/16", "fd01::/16"] {
            let error = named(&places(), wanted).unwrap_err();
            assert!(error.contains(wanted) && error.contains("eth0 10.1.2.3"), "{error}");
            assert!(error.contains(&host_name()), "{error}");
        }
        for wanted in ["10.1.0.0/33", "/", "10.1.0.0/", "fd00::/129", "eth0/24"] {
            let error = named(&places(), wanted).unwrap_err();
            assert!(error.contains(&format!("`{wanted}` is no subnet")), "{error}");
        }
    }

    #[test]
    fn the_loopback_is_refused_where_there_are_other_hosts() {
        let [own, other, far] = ["127.0.0.1", "127.0.0.2", "10.1.2.3"].map(|at| at.parse().unwrap());
        assert_eq!(
            [reached(own, None), reached(own, Some(other)), reached(far, Some(far))],
            [Ok(own), Ok(own), Ok(far)]
        );
        let error = reached(own, Some(far)).unwrap_err();
        assert!(error.contains("127.0.0.1 is of this host alone"), "{error}");
    }

    #[test]
    fn without_a_wish_the_way_out_is_taken() {
        let head = "Iface\tDestination\tGateway\n";
        let routes = format!("{head}docker0\t000011AC\t00000000\neth0\t00000000\t0101010A\n");
        let (none, far) = ("0".repeat(32), "fd000001000000000000000000000001");
        let line = |metric, interface| {
            format!("{none} 00 {none} 00 {far} {metric} 00000001 00000000 00000003 {interface}\n")
        };
        let routes6 = line("00000400", "eth0") + &line("ffffffff", "lo");
        assert_eq!((leading(&routes, ""), leading(head, &routes6)), (vec!["eth0"], vec!["eth0"]));
        assert!(leading("", "a table of another kind\n").is_empty());
        assert_eq!(outward(&places(), &["eth0"]), IpAddr::from([10, 1, 2, 3]));
        assert_eq!(outward(&places()[3..], &["eth0"]), places()[3].at);
        assert_eq!(outward(&places(), &[]), IpAddr::from([172, 17, 0, 1]));
        assert_eq!(outward(&places()[..1], &["eth0"]), IpAddr::from(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn ranks_of_two_kinds_do_not_meet() {
        let at = |text: &str| text.parse().unwrap();
        assert_eq!(are_alike(&[at("10.0.0.1:1"), at("10.0.0.2:1")]), Ok(()));
        assert_eq!(are_alike(&[at("[fd00::1]:1"), at("[fd00::2]:1")]), Ok(()));
        let why = are_alike(&[at("10.0.0.1:1"), at("10.0.0.2:1"), at("[fd00::2]:1")]).unwrap_err();
        assert!(why.contains("rank 2 at [fd00::2]:1") && why.contains("TERN_INTERFACE"), "{why}");
    }
}
