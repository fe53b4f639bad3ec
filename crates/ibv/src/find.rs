//! Which port of which adapter, and which of its addresses.
//!
//! Only ports that are active count. Without a word of the user it is one: an address that others can reach before the
//! loopback's, then the nearest to the core this rank is on, then as the system lists them. Addresses of Ethernet are those
//! of RoCE v2 before those of v1, which routers do not pass, and IPv4 before IPv6 before what holds on one link only.

use crate::card::{IWARP, Place, UNKNOWN};
use crate::cm::Line;
use crate::library::{Library, WITHOUT};
use crate::objects::Adapter;
use fabric::settings::Settings;
use fabric::verbs::RAILS_MAX;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use verbs_layout::constants::*;
use verbs_layout::layout::{DeviceAttr, Gid, PortAttr};

/// What the user wants.
#[derive(Clone, Debug)]
pub struct Choice {
    library: String,
    ports: String,
    /// The traffic class of RoCE v2, that is the differentiated services of its packets.
    pub traffic_class: u8,
    /// The service level of InfiniBand.
    pub service_level: u8,
    partition: Option<u16>,
    times: usize,
    is_unasked: bool,
}

impl Choice {
    /// As the settings say.
    pub fn from(settings: &Settings) -> Result<Choice, String> {
        let number = |name: &str, most: u64| {
            let number = settings.number(name);
            if number > most { Err(format!("{name}={number}: at most {most}")) } else { Ok(number as u8) }
        };
        let partition = match settings.text("TERN_IBV_PARTITION") {
            "" => None,
            text => {
                let digits = text.trim_start_matches("0x");
                let key = u16::from_str_radix(digits, 16);
                Some(key.map_err(|_| {
                    format!("TERN_IBV_PARTITION={text}: a key of 16 bits in hexadecimal, as 8001")
                })?)
            }
        };
        Ok(Choice {
            library: settings.text("TERN_IBV_LIBRARY").into(),
            ports: settings.text("TERN_IBV_PORTS").into(),
            traffic_class: number("TERN_IBV_TRAFFIC_CLASS", 255)?,
            service_level: number("TERN_IBV_SERVICE_LEVEL", 15)?,
            partition,
            times: 1,
            is_unasked: false,
        })
    }

    /// As adapters are chosen that nobody has asked for (`TERN_DEVICES=auto`): those in hardware, unless ports are named.
    pub fn unasked(self) -> Choice {
        Choice { is_unasked: true, ..self }
    }

    /// What it names, by the settings' names, though nobody has asked for adapters: ports, or a library that is not there. Who does that
    /// expects them to be used.
    pub fn names(&self) -> Option<&'static str> {
        let is_missing = || self.library != DEFAULT_LIBRARY && Library::load(&self.library).is_err();
        let named = [("TERN_IBV_PORTS", !self.ports.is_empty()), ("TERN_IBV_LIBRARY", is_missing())];
        named.into_iter().find(|(_, is_named)| *is_named).map(|(name, _)| name)
    }

    /// With each port as so many rails: so many connections with each peer.
    pub fn repeated(self, times: usize) -> Choice {
        Choice { times, ..self }
    }
}

/// A port that is used.
#[derive(Clone)]
pub struct Port {
    /// Its adapter.
    pub adapter: Arc<Adapter>,
    /// What that is like.
    pub device: DeviceAttr,
    /// Its number, from 1.
    pub number: u8,
    /// What it is like.
    pub attr: PortAttr,
    /// Its address, with index and kind.
    pub gid: Gid,
    /// See [`Port::gid`].
    pub gid_index: u8,
    /// See [`Port::gid`]; [`UNKNOWN`] if nobody tells.
    pub kind: u32,
    /// The index of its partition key.
    pub partition: u16,
}

impl Port {
    /// As messages name it.
    pub fn name(&self) -> String {
        format!("{} port {}", self.adapter.name, self.number)
    }

    /// As others reach it, without queue pairs.
    pub fn place(&self) -> Place {
        let (hellos, datagrams) = (0, 0);
        let (gid, kind, lid) = (self.gid, self.kind, self.attr.lid);
        Place {
            is_ethernet: self.is_ethernet(),
            kind,
            gid,
            lid,
            mtu: self.attr.active_mtu as u8,
            hellos,
            datagrams,
            has_atomics: self.device.atomic_cap == ATOMIC_GLOBAL,
        }
    }

    fn is_ethernet(&self) -> bool {
        self.attr.link_layer == LINK_LAYER_ETHERNET
    }

    /// The way to a peer's port (InfiniBand's specification, section 10.2.2.2).
    pub fn route(&self, to: &Place, choice: &Choice) -> verbs_layout::layout::AhAttr {
        use verbs_layout::layout::{AhAttr, GlobalRoute};
        // On Ethernet there is nothing but global addresses; on InfiniBand other subnets have them.
        let is_global = self.is_ethernet() || to.gid.0[..8] != self.gid.0[..8];
        AhAttr {
            grh: GlobalRoute {
                dgid: to.gid,
                flow_label: 0,
                sgid_index: self.gid_index,
                hop_limit: 64,
                traffic_class: choice.traffic_class,
            },
            dlid: to.lid,
            sl: choice.service_level,
            is_global: is_global.into(),
            port_num: self.number,
            ..AhAttr::default()
        }
    }

    /// Nanoseconds for a byte at the rate of the link.
    pub fn wire_ns_per_byte(&self) -> Option<f64> {
        // `active_width` and `active_speed` are sets of one bit each (man ibv_query_port; IBTA table 146).
        let lanes = match self.attr.active_width {
            1 => 1.0,
            2 => 4.0,
            4 => 8.0,
            8 => 12.0,
            16 => 2.0,
            _ => return None,
        };
        let gbit = match self.attr.active_speed {
            1 => 2.0,
            2 => 4.0,
            4 | 8 => 10.0,
            16 => 14.0,
            32 => 25.0,
            64 => 50.0,
            128 => 100.0,
            _ => return None,
        };
        Some(8.0 / (lanes * gbit))
    }
}

/// How good an address is; the greatest is taken.
fn merit(gid: &Gid, kind: u32) -> u32 {
    let at = Ipv6Addr::from(gid.0);
    let form = match at.to_ipv4_mapped() {
        Some(_) => 3,
        None if at.is_unicast_link_local() => 1,
        None => 2,
    };
    if kind == GID_ROCE_V2 { 10 + form } else { form }
}

/// Whether an address is that of the loopback.
fn is_loopback(gid: &Gid) -> bool {
    let at = Ipv6Addr::from(gid.0);
    at.is_loopback() || at.to_ipv4_mapped().is_some_and(|at| at.is_loopback())
}

/// The best address of a port, or that of an index.
fn address(adapter: &Adapter, port: u8, attr: &PortAttr, wanted: Option<u32>) -> Option<(Gid, u32, u32)> {
    let count = attr.gid_tbl_len.clamp(0, 256) as u32;
    let all = (0..count).filter(|index| wanted.is_none_or(|wanted| wanted == *index));
    let known = all.filter_map(|index| adapter.gid(port, index).map(|(gid, kind)| (gid, index, kind)));
    let usable = known.filter(|(gid, ..)| *gid != Gid::default());
    // The first of the best.
    usable.reduce(|best, next| if merit(&next.0, next.2) > merit(&best.0, best.2) { next } else { best })
}

/// The index of the partition key that is wanted, or of the first full member.
fn partition(adapter: &Adapter, port: u8, attr: &PortAttr, wanted: Option<u16>) -> Option<u16> {
    const FULL: u16 = 1 << 15;
    (0..attr.pkey_tbl_len).find(|index| match (adapter.partition(port, *index), wanted) {
        (Some(key), Some(wanted)) => key & !FULL == wanted & !FULL && key & !FULL != 0,
        (Some(key), None) => key & FULL != 0,
        (None, _) => false,
    })
}

/// A port as it would be used, or why it is not.
fn look_at(adapter: &Arc<Adapter>, number: u8, index: Option<u32>, choice: &Choice) -> Result<Port, String> {
    let about = |what: &str| format!("{} port {number}: {what}", adapter.name);
    let device = adapter.attributes().map_err(|why| about(&why))?;
    if number == 0 || number > device.phys_port_cnt {
        return Err(about("there is no such port"));
    }
    let attr = adapter.port(number).map_err(|why| about(&why))?;
    if attr.state != PORT_ACTIVE {
        return Err(about(
            "the port is not active: is its cable plugged, and on InfiniBand a subnet manager there?",
        ));
    }
    if adapter.transport == TRANSPORT_IWARP {
        // Opened again where it is used: this says whether it can be, and where it is.
        let at = Line::new(&adapter.name, &adapter.library.name).map_err(|why| about(&why))?.at.ip();
        let gid = Gid(match at {
            IpAddr::V4(at) => at.to_ipv6_mapped().octets(),
            IpAddr::V6(at) => at.octets(),
        });
        let (adapter, kind) = (adapter.clone(), IWARP);
        return Ok(Port { adapter, device, number, attr, gid, gid_index: 0, kind, partition: 0 });
    }
    let (gid, gid_index, kind) = address(adapter, number, &attr, index)
        .ok_or_else(|| about("it has no address (GID), or none of that index"))?;
    let partition =
        partition(adapter, number, &attr, choice.partition).ok_or_else(|| match choice.partition {
            Some(key) => about(&format!("it has no partition key {key:#06x} (TERN_IBV_PARTITION)")),
            None => about("it is no full member of a partition: TERN_IBV_PARTITION names a key"),
        })?;
    let (adapter, gid_index) = (adapter.clone(), gid_index as u8);
    Ok(Port { adapter, device, number, attr, gid, gid_index, kind, partition })
}

/// How far an adapter is from the core this rank is on: what the kernel says of their memories, 10 for the same.
fn distance(adapter: &Adapter) -> u32 {
    let read = |path: String| std::fs::read_to_string(path).ok();
    let node =
        || -> Option<usize> { read(format!("{}/device/numa_node", adapter.path))?.trim().parse().ok() };
    let core = rustix::thread::sched_getcpu();
    let own = (0..1024)
        .find(|node| std::path::Path::new(&format!("/sys/devices/system/cpu/cpu{core}/node{node}")).exists());
    let among = |own: usize, node: usize| -> Option<u32> {
        let line = read(format!("/sys/devices/system/node/node{own}/distance"))?;
        line.split_whitespace().nth(node)?.parse().ok()
    };
    match (own, node()) {
        (Some(own), Some(node)) => among(own, node).unwrap_or(u32::MAX),
        _ => 10,
    }
}

/// A port as the user lists it: its adapter's name, its number, and the index of its address if that is named.
pub type Listed = (String, u8, Option<u32>);

/// What the user lists (`TERN_IBV_PORTS`): `name`, `name:port`, `name:port:index`, with commas between.
pub fn listed(text: &str) -> Result<Vec<Listed>, String> {
    let one = |item: &str| {
        let wrong = || format!("TERN_IBV_PORTS: `{item}` is no name, name:port or name:port:index");
        let mut words = item.split(':');
        let name = words.next().filter(|name| !name.is_empty()).ok_or_else(wrong)?;
        let port = words.next().map_or(Ok(1), str::parse).map_err(|_| wrong())?;
        let index = words.next().map(str::parse).transpose().map_err(|_| wrong())?;
        if words.next().is_some() { Err(wrong()) } else { Ok((name.to_string(), port, index)) }
    };
    let ports = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
    match ports.len() {
        ..=RAILS_MAX => Ok(ports),
        more => Err(format!("TERN_IBV_PORTS: {more} ports, at most {RAILS_MAX} are used")),
    }
}

/// The library that is loaded where no other is named.
const DEFAULT_LIBRARY: &str = "libibverbs.so.1";

/// The ports this rank uses, in the order in which they are rails.
pub fn ports(choice: &Choice) -> Result<Vec<Port>, String> {
    let found = found(choice)?;
    Ok(found.into_iter().flat_map(|port| vec![port; choice.times]).collect())
}

fn found(choice: &Choice) -> Result<Vec<Port>, String> {
    let is_any = choice.ports.is_empty();
    let bus = "/sys/class/infiniband";
    if choice.is_unasked && is_any && choice.library == DEFAULT_LIBRARY && !is_listed(bus) {
        return Err(format!("{bus} lists no adapter"));
    }
    let (adapters, mut why) = adapters(choice)?;
    if !is_any {
        let find = |(name, port, index): Listed| {
            let names =
                || adapters.iter().map(|adapter| adapter.name.as_str()).collect::<Vec<_>>().join(", ");
            let adapter = adapters.iter().find(|adapter| adapter.name == name).ok_or_else(|| {
                format!("TERN_IBV_PORTS: there is no adapter {name}; there are: {}", names())
            })?;
            look_at(adapter, port, index, choice)
        };
        return listed(&choice.ports)?.into_iter().map(find).collect();
    }
    let mut found = Vec::new();
    for adapter in &adapters {
        if choice.is_unasked && !is_hardware(adapter) {
            why.push(format!(
                "{} is an adapter in software, taken where TERN_IBV_PORTS names it",
                adapter.name
            ));
            continue;
        }
        if choice.is_unasked && adapter.transport == TRANSPORT_IWARP {
            why.push(format!("{} is of iWARP, taken where TERN_IBV_PORTS names it", adapter.name));
            continue;
        }
        let count = adapter.attributes().map_or(1, |attr| attr.phys_port_cnt);
        for number in 1..=count {
            match look_at(adapter, number, None, choice) {
                Ok(port) => found.push(port),
                Err(reason) => why.push(reason),
            }
        }
    }
    found.sort_by_key(|port| (is_loopback(&port.gid), distance(&port.adapter)));
    match found.into_iter().next() {
        Some(port) => Ok(vec![port]),
        None if why.is_empty() => Err(format!("{} finds no adapter; {WITHOUT}", choice.library)),
        None => Err(format!("no adapter can be used: {}; {WITHOUT}", why.join("; "))),
    }
}

/// Whether the kernel lists any adapter there.
fn is_listed(bus: &str) -> bool {
    std::fs::read_dir(bus).is_ok_and(|mut listed| listed.next().is_some())
}

/// Whether an adapter is a device of a bus of this host: those in software (rxe, siw, Tern's own) have none. What they carry, the
/// software adapter of a rank carries with less on the way.
fn is_hardware(adapter: &Adapter) -> bool {
    std::path::Path::new(&adapter.path).join("device").exists()
}

/// All adapters that can be opened, and why the others cannot.
fn adapters(choice: &Choice) -> Result<(Vec<Arc<Adapter>>, Vec<String>), String> {
    let library = Library::load(&choice.library)?;
    let (mut open, mut why) = (Vec::new(), Vec::new());
    for adapter in Adapter::all(library)? {
        match adapter {
            Ok(adapter) => open.push(Arc::new(adapter)),
            Err(reason) => why.push(reason),
        }
    }
    Ok((open, why))
}

/// What `TERN_DEVICES=auto` takes on this host: a line for each port; or why it takes none.
pub fn taken(settings: &Settings) -> Result<String, String> {
    told(&Choice::from(settings)?.unasked())
}

/// What there is on this host, for `tern info` and `tern doctor`: a line for each port that would be used; or why none
/// would.
pub fn describe(settings: &Settings) -> Result<String, String> {
    told(&Choice::from(settings)?)
}

/// Whether the ports that would be used have datagrams.
pub fn has_datagrams(settings: &Settings) -> Result<bool, String> {
    Ok(ports(&Choice::from(settings)?)?.iter().all(|port| port.kind != IWARP))
}

fn told(choice: &Choice) -> Result<String, String> {
    let ports = ports(choice)?;
    let line = |port: &Port| {
        let kind = match port.kind {
            GID_ROCE_V2 => ", RoCE v2",
            GID_ROCE_V1 => ", RoCE v1",
            IWARP => ", iWARP",
            UNKNOWN => "",
            _ => ", InfiniBand",
        };
        let lid = if port.is_ethernet() { String::new() } else { format!(", LID {}", port.attr.lid) };
        let at = Ipv6Addr::from(port.gid.0);
        let rate = port.wire_ns_per_byte().map_or(String::new(), |ns| format!(", {:.0} Gbit/s", 8.0 / ns));
        format!("{}: GID {} is {at}{kind}{lid}{rate}", port.name(), port.gid_index)
    };
    let mut lines: Vec<String> = ports.iter().map(line).collect();
    lines.push(ports[0].adapter.library.fork_safety().into());
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(text: &str) -> Gid {
        Gid(text.parse::<Ipv6Addr>().unwrap().octets())
    }

    #[test]
    fn routable_addresses_come_first() {
        let order = [
            ("::ffff:10.0.0.1", GID_ROCE_V2),
            ("2001:db8::1", GID_ROCE_V2),
            ("fe80::1", GID_ROCE_V2),
            ("::ffff:10.0.0.1", GID_ROCE_V1),
            ("fe80::1", GID_ROCE_V1),
        ];
        let merits = order.map(|(text, kind)| merit(&gid(text), kind));
        assert!(merits.is_sorted_by(|a, b| a > b), "{merits:?}");
        assert!(is_loopback(&gid("::ffff:127.0.0.1")) && !is_loopback(&gid("::ffff:10.0.0.1")));
    }

    #[test]
    fn ports_are_read_from_a_list() {
        assert_eq!(listed("a"), Ok(vec![("a".into(), 1, None)]));
        assert_eq!(listed("a:2,b:1:3"), Ok(vec![("a".into(), 2, None), ("b".into(), 1, Some(3))]));
        for wrong in ["", "a:", "a:x", "a:1:y", "a:1:2:3", "a,,b", ":1"] {
            assert!(listed(wrong).unwrap_err().starts_with("TERN_IBV_PORTS"), "{wrong}");
        }
    }
}
