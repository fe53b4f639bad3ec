//! What jobs on several hosts need of this one.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use fabric::settings::Settings;
use launch::address;
use launch::sys::net;
use rnic::driver::{BUFFER_BYTES, granted_bytes};

use super::Check;

/// A connection within a host takes microseconds.
const PATIENCE: Duration = Duration::from_secs(3);
/// What one connection must be able to have under way: 10 Gbit/s over a millisecond, several times over.
const WINDOW_BYTES: u64 = 4 << 20;
const DATAGRAMS: &str = "UDP buffers";

/// What there is to say of this host's network.
pub fn checks(settings: &Result<Settings, String>) -> Vec<Check> {
    let mut checks = vec![interfaces()];
    if let Ok(settings) = settings {
        checks.push(listening(settings));
        checks.push(adapters(settings));
    }
    for (name, what) in [("tcp_rmem", "receive buffer"), ("tcp_wmem", "send buffer")] {
        checks.push(buffer(name, what));
    }
    if let Ok(settings) = settings {
        checks.push(datagrams(settings));
    }
    checks
}

/// The MTU of an interface, if it is told.
pub fn mtu(interface: &str) -> String {
    fs::read_to_string(format!("/sys/class/net/{interface}/mtu"))
        .map_or("?".into(), |text| text.trim().into())
}

fn interfaces() -> Check {
    let all = match net::interfaces() {
        Ok(all) => all,
        Err(why) => return Check::weak("interfaces", format!("cannot be listed: {why}"), "ip addr"),
    };
    let outer: Vec<_> = all
        .iter()
        .filter(|found| {
            !found.is_loopback && !matches!(found.at, IpAddr::V6(at) if at.is_unicast_link_local())
        })
        .collect();
    let text: Vec<String> =
        outer.iter().map(|found| format!("{} {} MTU {}", found.name, found.at, mtu(&found.name))).collect();
    match outer.is_empty() {
        false => Check::pass("interfaces", text.join(", ")),
        true => Check::weak(
            "interfaces",
            "no address but the loopback's: jobs stay on this host",
            "ip addr add ADDRESS/BITS dev INTERFACE; ip link set INTERFACE up",
        ),
    }
}

/// Listens where ranks would, and connects.
fn listening(settings: &Settings) -> Check {
    let at = match address::outer(settings) {
        Ok(at) => at,
        Err(why) => return Check::fail("messages at", why, "unset TERN_INTERFACE, or name one of these"),
    };
    let tried = TcpListener::bind((at, 0)).and_then(|listener| {
        let there = listener.local_addr()?;
        TcpStream::connect_timeout(&there, PATIENCE).map(drop)
    });
    match tried {
        Ok(()) => {
            Check::pass("messages at", format!("{at} of {}, which listens and answers", interface_of(at)))
        }
        Err(why) => Check::fail(
            "messages at",
            format!("{at} cannot be connected to from here: {why}"),
            "iptables -I INPUT -i lo -j ACCEPT; or TERN_INTERFACE=NAME for another address",
        ),
    }
}

/// The interface that has an address.
pub fn interface_of(at: IpAddr) -> String {
    let all = net::interfaces().unwrap_or_default();
    all.into_iter().find(|found| found.at == at).map_or("no interface".into(), |found| found.name)
}

fn buffer(name: &str, what: &str) -> Check {
    let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [least, first, most] if most < WINDOW_BYTES => Check::weak(
            what,
            format!("net.ipv4.{name} ends at {} KiB: fast links with delay are not filled", most >> 10),
            format!("sysctl -w net.ipv4.{name}='{least} {first} {}'", 4 * WINDOW_BYTES),
        ),
        [_, _, most] => Check::pass(what, format!("net.ipv4.{name} grows to {} KiB", most >> 10)),
        _ => Check::pass(what, "not told here"),
    }
}

/// Asks for a socket's buffers as ranks do: the limits themselves are not told in every network namespace.
fn datagrams(settings: &Settings) -> Check {
    let at = address::outer(settings).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    match granted_bytes(at) {
        Ok(granted) => datagram_buffers(granted),
        Err(why) => {
            Check::weak(DATAGRAMS, format!("no socket for datagrams at {at}: {why}"), "ulimit -n 65536")
        }
    }
}

/// What there is to say of the buffers that the kernel grants a socket for datagrams, to receive and to send.
fn datagram_buffers(granted: [usize; 2]) -> Check {
    let limits = ["net.core.rmem_max", "net.core.wmem_max"];
    let short: Vec<_> = limits.into_iter().zip(granted).filter(|(_, bytes)| *bytes < BUFFER_BYTES).collect();
    let wanted = BUFFER_BYTES >> 10;
    if short.is_empty() {
        return Check::pass(
            DATAGRAMS,
            format!("{wanted} KiB to receive and to send, as rd, ud and hybrid ask for"),
        );
    }
    let given: Vec<_> =
        short.iter().map(|(name, bytes)| format!("{name} grants {} KiB", bytes >> 10)).collect();
    let mend: Vec<_> = short.iter().map(|(name, _)| format!("{name}={BUFFER_BYTES}")).collect();
    let found = format!(
        "{} of the {wanted} that rd, ud and hybrid ask for: what comes while a rank computes is lost and sent again",
        given.join(", ")
    );
    Check::weak(DATAGRAMS, found, format!("sysctl -w {}", mend.join(" ")))
}

fn adapters(settings: &Settings) -> Check {
    let (what, wanted) = ("RDMA adapters", settings.text("TERN_DEVICES").ends_with("ibv"));
    let is_auto = settings.text("TERN_DEVICES") == "auto";
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match ibv::describe(settings) {
        Ok(text) if wanted => Check::pass(what, text.replace('\n', "; ")),
        Ok(_) if is_auto => match ibv::taken(settings) {
            Ok(text) => Check::pass(what, format!("{}; used between hosts", first(&text))),
            Err(why) => Check::pass(what, format!("not used: {why}")),
        },
        Ok(text) => Check::pass(what, format!("{}; not used: TERN_DEVICES=shm+ibv does", first(&text))),
        Err(why) if wanted => {
            Check::fail(what, why, "apt install libibverbs1 ibverbs-providers; ibv_devinfo")
        }
        Err(_) => Check::pass(what, "none that can be used; the software adapter needs none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_keeps_of_datagrams_is_said_with_the_command_that_raises_it() {
        assert!(datagram_buffers([BUFFER_BYTES; 2]).text().starts_with("  pass  UDP buffers"));
        let both = datagram_buffers([212_992; 2]).text();
        assert!(both.starts_with("  weak  UDP buffers"), "{both}");
        assert!(
            both.contains("rmem_max grants 208 KiB, net.core.wmem_max grants 208 KiB of the 4096"),
            "{both}"
        );
        let mend = "mend: sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304\n";
        assert!(both.ends_with(mend), "{both}");
        let one = datagram_buffers([BUFFER_BYTES, 212_992]).text();
        assert!(!one.contains("rmem_max"), "{one}");
        assert!(one.ends_with("mend: sysctl -w net.core.wmem_max=4194304\n"), "{one}");
    }

    #[test]
    fn a_socket_for_datagrams_is_granted_something_here() {
        let granted = granted_bytes(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert!(granted.iter().all(|bytes| (1..=BUFFER_BYTES).contains(bytes)), "{granted:?}");
    }
}
