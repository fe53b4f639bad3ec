//! What a rank tells all others before they are connected: where its ports are.

use crate::library::WITHOUT;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use verbs_layout::layout::Gid;

/// A port, as others reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Whether its link is Ethernet (RoCE).
    pub is_ethernet: bool,
    /// `enum ibv_gid_type`, or [`UNKNOWN`].
    pub kind: u32,
    /// Its address, and its local one on InfiniBand.
    pub gid: Gid,
    /// See [`Place::gid`].
    pub lid: u16,
    /// `enum ibv_mtu`.
    pub mtu: u8,
    /// The queue pairs for hellos, and for datagrams (0 if there is none).
    pub hellos: u32,
    /// See [`Place::hellos`].
    pub datagrams: u32,
    /// Whether its adapter changes words so that nothing comes between, no instruction of a processor either.
    pub has_atomics: bool,
}

/// A kind of address: IPv4 or IPv6, where an iWARP adapter is connected; `hellos` is the port of TCP there.
pub const IWARP: u32 = 1 << 8;

/// A kind of address that nobody tells.
pub const UNKNOWN: u32 = u32::MAX;

impl Place {
    fn text(&self) -> String {
        let gid: String = self.gid.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let layer = if self.is_ethernet { "eth" } else { "ib" };
        let Place { kind, lid, mtu, hellos, datagrams, .. } = self;
        format!("{layer},{kind},{gid},{lid},{mtu},{hellos},{datagrams},{}", u8::from(self.has_atomics))
    }

    fn read(text: &str) -> Option<Place> {
        let words: Vec<&str> = text.split(',').collect();
        let [layer, kind, gid, lid, mtu, hellos, datagrams, atomics] = words[..] else { return None };
        let is_ethernet = match layer {
            "eth" => true,
            "ib" => false,
            _ => return None,
        };
        if gid.len() != 32 || !gid.is_ascii() {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&gid[2 * at..2 * at + 2], 16).ok();
        let mut bytes = [0; 16];
        for (at, to) in bytes.iter_mut().enumerate() {
            *to = byte(at)?;
        }
        Some(Place {
            is_ethernet,
            kind: kind.parse().ok()?,
            gid: Gid(bytes),
            lid: lid.parse().ok()?,
            mtu: mtu.parse().ok()?,
            hellos: hellos.parse().ok()?,
            datagrams: datagrams.parse().ok()?,
            has_atomics: match atomics {
                "0" => false,
                "1" => true,
                _ => return None,
            },
        })
    }

    /// Where an iWARP adapter is connected.
    pub fn address(&self) -> SocketAddr {
        let at = Ipv6Addr::from(self.gid.0);
        let at = at.to_ipv4_mapped().map_or(IpAddr::V6(at), IpAddr::V4);
        SocketAddr::new(at, self.hellos as u16)
    }

    /// Why these two cannot talk to each other, if that is known.
    pub fn refuses(&self, other: &Place) -> Option<String> {
        let layer = |place: &Place| if place.is_ethernet { "Ethernet" } else { "InfiniBand" };
        if self.is_ethernet != other.is_ethernet {
            return Some(format!("its port is on {}, that of this rank on {}", layer(other), layer(self)));
        }
        let is_known = self.kind != UNKNOWN && other.kind != UNKNOWN;
        if self.is_ethernet && is_known && self.kind != other.kind {
            let kind = |place: &Place| match place.kind {
                IWARP => "iWARP".to_string(),
                version => format!("RoCE v{version}"),
            };
            return Some(format!(
                "its address is of {}, that of this rank of {}: TERN_IBV_PORTS=name:port:index names one",
                kind(other),
                kind(self)
            ));
        }
        None
    }
}

/// What this rank says: where it is knocked at ([`crate::watch`]), and its ports, with their queue pairs for hellos and for
/// datagrams.
pub fn text(door: SocketAddr, ports: impl Iterator<Item = (Place, (u32, u32))>) -> String {
    let one = |(place, (hellos, datagrams)): (Place, (u32, u32))| Place { hellos, datagrams, ..place }.text();
    std::iter::once(door.to_string()).chain(ports.map(one)).collect::<Vec<_>>().join(";")
}

/// What another rank has said: its ports.
pub fn read(text: &str) -> Option<Vec<Place>> {
    let (door, ports) = text.split_once(';')?;
    // A reason to have none may have semicolons, too.
    door.parse::<SocketAddr>().ok()?;
    ports.split(';').map(Place::read).collect()
}

/// What a rank says that has no adapter, and why.
const NONE: &str = "none: ";

/// What a rank says instead of a card.
pub fn without(why: &str) -> String {
    // What the software adapter needs is no news where it is taken.
    let why = why.strip_suffix(&format!("; {WITHOUT}")).unwrap_or(why);
    format!("{NONE}{}", why.replace(['\n', '\r'], " "))
}

/// Whether ranks that have said this reach each other by adapters of the system; if not, the first rank that does not, and why.
pub fn agree(cards: &[String]) -> Result<(), (usize, String)> {
    let mut first: Option<Vec<Place>> = None;
    for (rank, card) in cards.iter().enumerate() {
        let Some(places) = read(card) else {
            let why =
                card.strip_prefix(NONE).unwrap_or("it says nothing of adapters that this version reads");
            return Err((rank, why.into()));
        };
        let refused = first.iter().flatten().zip(&places).find_map(|(first, place)| first.refuses(place));
        if let Some(why) = refused {
            return Err((rank, format!("as rank 0 sees it, {why}")));
        }
        first.get_or_insert(places);
    }
    Ok(())
}

/// What another rank has said: where it is knocked at.
pub fn door(text: &str) -> Option<SocketAddr> {
    text.split(';').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        let (kind, mtu) = (2, 5);
        let (hellos, datagrams, has_atomics) = (70_000, 0, true);
        Place { is_ethernet: true, kind, gid: Gid([0xab; 16]), lid: 3, mtu, hellos, datagrams, has_atomics }
    }

    #[test]
    fn what_is_told_is_read() {
        let other = Place { is_ethernet: false, has_atomics: false, ..place() };
        let at: SocketAddr = "[fd00::1]:7".parse().unwrap();
        let ports = [(place(), (70_000, 0)), (other, (70_000, 0))];
        let text = text(at, ports.into_iter());
        assert_eq!((door(&text), read(&text)), (Some(at), Some(vec![place(), other])));
        assert_eq!((door("x"), door("none")), (None, None));
        for wrong in [
            "",
            "x",
            "[fd00::1]:7",
            "[fd00::1]:7;eth,2,ab,3,5,1,0,1",
            &text.replace(",1;", ",2;"),
            &text.replace("eth", "fc"),
            &without(&text),
            &text.replace("abab", "xyxy"),
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn adapters_are_taken_where_all_have_some_that_fit() {
        let at: SocketAddr = "10.0.0.1:7".parse().unwrap();
        let card = |place: Place| text(at, [(place, (1, 0))].into_iter());
        let cards = |last: String| vec![card(place()), card(place()), last];
        assert_eq!(agree(&cards(card(place()))), Ok(()));
        assert_eq!(agree(&cards(without(&format!("no\nport; {WITHOUT}")))), Err((2, "no port".into())));
        let (rank, why) = agree(&cards(card(Place { kind: 1, ..place() }))).unwrap_err();
        assert!(rank == 2 && why.contains("RoCE v1"), "{why}");
        assert!(agree(&cards("eth".into())).unwrap_err().1.contains("version"));
    }

    #[test]
    fn ports_that_cannot_talk_are_told_apart() {
        assert_eq!(place().refuses(&place()), None);
        let why = place().refuses(&Place { kind: 1, ..place() }).unwrap();
        assert!(why.contains("RoCE v1") && why.contains("RoCE v2"), "{why}");
        assert!(place().refuses(&Place { is_ethernet: false, ..place() }).unwrap().contains("InfiniBand"));
        assert_eq!(place().refuses(&Place { kind: UNKNOWN, ..place() }), None);
        let why = place().refuses(&Place { kind: IWARP, ..place() }).unwrap();
        assert!(why.contains("of iWARP"), "{why}");
    }

    #[test]
    fn an_iwarp_adapter_is_at_an_address_and_a_port() {
        for at in ["10.9.1.2:7300", "[fd00::1]:65535"] {
            let at: SocketAddr = at.parse().unwrap();
            let gid = Gid(match at.ip() {
                IpAddr::V4(at) => at.to_ipv6_mapped().octets(),
                IpAddr::V6(at) => at.octets(),
            });
            let place = Place { kind: IWARP, gid, hellos: at.port().into(), ..place() };
            assert_eq!(place.address(), at);
        }
    }
}
