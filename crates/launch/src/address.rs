//! Where a rank is: which memory it can share, and which address of its host others connect to.

use crate::report::HOST_ADDRESS;
use crate::sys::net;
use fabric::settings::Settings;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::MetadataExt;

/// One IPv4 address of this host.
struct Place {
    interface: String,
    at: Ipv4Addr,
    is_loopback: bool,
}

/// A name that ranks have in common that can share memory.
pub fn memory(settings: &Settings) -> Result<String, String> {
    let boot = "/proc/sys/kernel/random/boot_id";
    let boot = std::fs::read_to_string(boot).map_err(|e| format!("cannot read {boot}: {e}"))?;
    let dir = settings.text("TERN_SHM_DIR");
    let at = std::fs::metadata(dir).map_err(|e| format!("TERN_SHM_DIR: {dir}: {e}"))?;
    Ok(format!("{}-{:x}-{:x}", boot.trim(), at.dev(), at.ino()))
}

/// The address of this host that others connect to: as the setting says, or the launcher; else the first of the
/// interface that leads out of this host, else the first that is not the loopback's, else that one.
pub fn outer(settings: &Settings) -> Result<Ipv4Addr, String> {
    let all = net::interfaces().map_err(|e| format!("cannot list the interfaces of this host: {e}"))?;
    let v4 = |interface: net::Interface| match interface.at {
        IpAddr::V4(at) => Some(Place { interface: interface.name, at, is_loopback: interface.is_loopback }),
        IpAddr::V6(_) => None,
    };
    let all: Vec<Place> = all.into_iter().filter_map(v4).collect();
    let wanted = settings.text("TERN_INTERFACE");
    if !wanted.is_empty() {
        return named(&all, wanted);
    }
    if let Ok(hint) = std::env::var(HOST_ADDRESS)
        && let Ok(at) = hint.parse()
    {
        return Ok(at);
    }
    if settings.text("TERN_DEVICES") == "rnic" {
        return Ok(Ipv4Addr::LOCALHOST);
    }
    let routes = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    Ok(outward(&all, &routes))
}

/// The address that a name, an address or a subnet means.
fn named(all: &[Place], wanted: &str) -> Result<Ipv4Addr, String> {
    let subnet = subnet(wanted);
    let fits = |place: &&Place| match subnet {
        Some((net, mask)) => u32::from(place.at) & mask == net & mask,
        None => place.interface == wanted || place.at.to_string() == wanted,
    };
    let names =
        || all.iter().map(|place| format!("{} {}", place.interface, place.at)).collect::<Vec<_>>().join(", ");
    all.iter()
        .find(fits)
        .map(|place| place.at)
        .ok_or_else(|| format!("TERN_INTERFACE: no IPv4 address of `{wanted}` here; there are: {}", names()))
}

/// Net and mask of `a.b.c.d/bits`.
fn subnet(text: &str) -> Option<(u32, u32)> {
    let (net, bits) = text.split_once('/')?;
    let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= 32)?;
    Some((net.parse::<Ipv4Addr>().ok()?.into(), u32::MAX.checked_shl(32 - bits).unwrap_or(0)))
}

/// See [`outer`]. Interfaces that lead nowhere, as those of bridges for containers, have an address on every host, the
/// same one.
fn outward(all: &[Place], routes: &str) -> Ipv4Addr {
    let default = routes.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (interface, net) = (words.next()?, words.next()?);
        (net == "00000000").then_some(interface)
    });
    let leading: Vec<&str> = default.collect();
    let outside = || all.iter().filter(|place| !place.is_loopback);
    let leads = |place: &&Place| leading.contains(&place.interface.as_str());
    outside().find(leads).or_else(|| outside().next()).map_or(Ipv4Addr::LOCALHOST, |place| place.at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<Place> {
        let place = |(interface, at): (&str, [u8; 4])| Place {
            interface: interface.into(),
            at: at.into(),
            is_loopback: interface == "lo",
        };
        [("lo", [127, 0, 0, 1]), ("docker0", [172, 17, 0, 1]), ("eth0", [10, 1, 2, 3])].map(place).into()
    }

    #[test]
    fn interfaces_go_by_name_address_or_subnet() {
        let eth0 = Ok([10, 1, 2, 3].into());
        for wanted in ["eth0", "10.1.2.3", "10.1.0.0/16", "10.1.2.3/32"] {
            assert_eq!(named(&places(), wanted), eth0, "{wanted}");
        }
        assert_eq!(named(&places(), "0.0.0.0/0"), Ok(Ipv4Addr::LOCALHOST));
        for wanted in ["eth1", "10.2.0.0/16", "10.1.0.0/33", "/", "10.1.0.0/"] {
            let error = named(&places(), wanted).unwrap_err();
            assert!(error.contains(wanted) && error.contains("eth0 10.1.2.3"), "{error}");
        }
    }

    #[test]
    fn without_a_wish_the_way_out_is_taken() {
        let head = "Iface\tDestination\tGateway\n";
        let routes = format!("{head}docker0\t000011AC\t00000000\neth0\t00000000\t0101010A\n");
        assert_eq!(outward(&places(), &routes), Ipv4Addr::from([10, 1, 2, 3]));
        assert_eq!(outward(&places(), head), Ipv4Addr::from([172, 17, 0, 1]));
        assert_eq!(outward(&places()[..1], &routes), Ipv4Addr::LOCALHOST);
    }
}
