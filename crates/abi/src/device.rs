//! What connects this rank with the others: shared memory on this host, the software adapter or one of the system between
//! hosts.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

use fabric::settings::Settings;
use fabric::{Device as _, Either, Exchange, Fault, Pair, Verbs, VerbsCaps};
use ibv::{Ibv, Opened, Traffic};
use launch::address;
use launch::crowd::{Crowd, Seat};
use launch::meeting::{self, Met};
use launch::pmi::client::Client;
use proto::channel::{self, Channel};
use proto::reliable::{self, Reliable, Use};
use rnic::{Card, Integrity, Listening, Rnic, Secret};
use shm::Shm;

/// What messages go to other hosts by: the software adapter, or adapters of the system.
type Adapter = Either<Rnic, Ibv>;
/// The device of this process's rank.
pub type Device = Pair<Shm, Channel<Reliable<Adapter>>>;

/// What the end of a rank waits for peers to take, at most.
const LINGER_NS: u64 = 5_000_000_000;
/// Receive buffers that a peer may fill over the software adapter by one way for all, so that a burst of short messages waits for no answer. It has
/// no use for slots: a frame that is written to one comes no sooner than one that is sent, and each peer's take memory of their own.
const WINDOW: usize = 64;
/// Slots of a peer over adapters of the system, where all have connections: with receive buffers a window as long.
const SLOTS: usize = 48;
/// Receive buffers that a peer may fill where it has no slots, or few.
const FEW_SLOTS_WINDOW: usize = 32;
/// Slots of a peer with a connection, where not all peers have one: short messages are what they are for. Of the software adapter, too: there
/// buffers of messages and datagrams change places, and without slots short messages lead long ones into ever more of them.
const HYBRID_SLOTS: usize = 16;
const HYBRID_SLOT_BYTES: usize = 4096 + 24;
/// Memory of a connection beside them, about: what its socket has read and what it has not written.
const CONNECTION_BYTES: usize = 64 << 10;

/// What ranks of other hosts are reached by.
struct Far {
    adapter: Unconnected,
    carriers: Carriers,
    secret: Secret,
    /// By rank: its host.
    hosts: Arc<[u32]>,
}

impl Far {
    /// Connects rank `me`, which may share its core with others, and has it sleep beside `near`. Collective.
    fn connect(
        self,
        me: usize,
        shares_core: bool,
        near: &mut Shm,
    ) -> Result<Channel<Reliable<Adapter>>, String> {
        let (adapter, descriptor, carriers) = match self.adapter {
            Unconnected::Software(listening, addresses) => {
                let mut adapter = listening.open(me, addresses, self.secret)?;
                adapter.share_core(shares_core);
                let descriptor = adapter.descriptor();
                (Either::First(adapter), descriptor, self.carriers)
            }
            Unconnected::System(opened, cards) => {
                let adapter = opened.join(me, &cards, self.secret)?;
                let descriptor = adapter.descriptor();
                (Either::Second(adapter), descriptor, self.carriers.of_system())
            }
        };
        near.sleep_beside(descriptor)?;
        carriers.carry(adapter).map_err(|fault| fault.to_string())
    }
}

/// An adapter before it is connected, and where those of all ranks are.
enum Unconnected {
    Software(Listening, Box<[SocketAddr]>),
    System(Opened, Vec<Vec<u8>>),
}

/// How messages get to other hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Carriers {
    /// By what of the software adapter is reliable, in which long frames cost no more than short ones for each byte.
    Streams { frame_bytes: usize },
    /// By what the adapter has that is reliable.
    Adapter,
    /// By unreliable datagrams, and for so many peers at a time by connections; of the software adapter or of the system's.
    Datagrams { connections: usize, of_system: bool },
}

impl Carriers {
    const CONNECTIONS: Carriers = Carriers::Streams { frame_bytes: channel::STREAM_FRAME_BYTES };

    fn listen(self, transport: &str, at: IpAddr) -> Result<Listening, String> {
        match (transport, self) {
            ("rd", _) => Listening::for_datagrams(at),
            ("ud" | "hybrid", Carriers::Datagrams { connections: 0, .. }) => Listening::for_unreliable(at),
            ("ud" | "hybrid", _) => Listening::for_both(at),
            _ => Listening::at(at),
        }
    }

    fn chosen(settings: &Settings) -> Carriers {
        match settings.text("TERN_TRANSPORT") {
            "ud" => Carriers::Datagrams { connections: 0, of_system: false },
            "hybrid" => {
                let each = HYBRID_SLOTS * HYBRID_SLOT_BYTES + CONNECTION_BYTES;
                let affordable = settings.number("TERN_CONNECTION_BYTES") as usize / each;
                let connections = affordable.min(settings.number("TERN_CONNECTIONS") as usize);
                Carriers::Datagrams { connections, of_system: false }
            }
            "rc" => Carriers::CONNECTIONS,
            "rd" => Carriers::Streams { frame_bytes: channel::STAGED_BYTES },
            _ => Carriers::Adapter,
        }
    }

    /// The same over adapters of the system, which lock what they receive into.
    fn of_system(self) -> Carriers {
        match self {
            Carriers::Streams { .. } => Carriers::Adapter,
            Carriers::Datagrams { connections, .. } => Carriers::Datagrams { connections, of_system: true },
            Carriers::Adapter => self,
        }
    }

    /// How frames are carried; whether connections take long ones at once.
    fn frames(self, takes_long: bool) -> channel::Settings {
        let plain = channel::Settings::default();
        match self {
            Carriers::Streams { frame_bytes } => {
                channel::Settings { slots: 0, window: WINDOW, frame_bytes, ..plain }
            }
            Carriers::Adapter => channel::Settings { slots: SLOTS, ..plain },
            Carriers::Datagrams { connections: 0, of_system: false } => {
                let frame_bytes = channel::STAGED_BYTES;
                channel::Settings { slots: 0, window: WINDOW, frame_bytes, ..plain }
            }
            Carriers::Datagrams { connections, .. } => channel::Settings {
                frame_bytes: if connections > 0 && takes_long {
                    channel::STREAM_FRAME_BYTES
                } else {
                    plain.frame_bytes
                },
                staged_bytes: plain.frame_bytes,
                slots: if connections > 0 { HYBRID_SLOTS } else { 0 },
                slot_bytes: HYBRID_SLOT_BYTES,
                fast_peers: connections,
                window: FEW_SLOTS_WINDOW,
                ..plain
            },
        }
    }

    /// Frames over an adapter of these.
    fn carry<V: Verbs>(self, adapter: V) -> Result<Channel<Reliable<V>>, Fault> {
        let settings = self.frames(adapter.caps().at_once_bytes > 0);
        let Carriers::Datagrams { connections, .. } = self else {
            return Channel::new(Reliable::plain(adapter), settings);
        };
        let reliable = reliable::Settings {
            connections,
            message_bytes: if connections > 0 { settings.message_bytes() } else { 0 },
            linger_ns: LINGER_NS,
            ..reliable::Settings::default()
        };
        Channel::new(Reliable::new(adapter, reliable)?, settings)
    }
}

/// What is known of the ranks of a job before they are connected.
pub struct Hosts {
    me: usize,
    /// Ranks of this host, in order.
    here: Box<[usize]>,
    size: usize,
    /// The names of the ranks' hosts, or the one name that all have.
    names: Vec<String>,
    /// Where each rank sits, if that is known.
    seats: Vec<Seat>,
    /// What others are reached by, if there are any on other hosts.
    far: Option<Far>,
}

/// The settings that all ranks must have alike to understand each other's messages.
fn manner(settings: &Settings) -> String {
    ["TERN_DEVICES", "TERN_TRANSPORT", "TERN_INTEGRITY"]
        .map(|name| format!("{name}={}", settings.text(name)))
        .join(",")
}

/// How messages are checked.
fn integrity(settings: &Settings) -> Integrity {
    Integrity::named(settings.text("TERN_INTEGRITY")).expect("the setting has these words")
}

/// Tells all ranks where this one is reached, and hears it of them, with the names of their hosts. Collective.
fn tell<At: FromStr>(
    at: &str,
    settings: &Settings,
    client: &mut Client,
) -> Result<(Vec<At>, Vec<String>), String> {
    let manner = manner(settings);
    let name = crate::env::host_name().map_err(|error| error.to_string())?;
    client.offer_secret()?;
    let told = client.share("tern.at", meeting::place(at, &manner, &name).as_bytes())?;
    let read =
        |(rank, text): (usize, &Vec<u8>)| meeting::read_place(rank, &String::from_utf8_lossy(text), &manner);
    told.iter().enumerate().map(read).collect()
}

/// Tells all ranks which memory and cores this one can share, and what it says of adapters; hears it of them. Collective.
fn meet(card: &str, settings: &Settings, client: &mut Client) -> Result<Met, String> {
    let told = meeting::host(&address::memory(settings)?, &Seat::here(address::machine()?), card);
    Ok(meeting::read_hosts(&client.share("tern.host", told.as_bytes())?))
}

/// Hosts by number, from 0 in the order in which they are named first.
fn numbered(memories: &[String]) -> Arc<[u32]> {
    let mut known = HashMap::new();
    let mut number = |memory| {
        let next = known.len() as u32;
        *known.entry(memory).or_insert(next)
    };
    memories.iter().map(&mut number).collect()
}

/// The software adapter. Collective.
fn software(
    carriers: Carriers,
    settings: &Settings,
    client: &mut Client,
) -> Result<(Unconnected, Vec<String>), String> {
    let listening = carriers.listen(settings.text("TERN_TRANSPORT"), address::outer(settings)?)?;
    let listening = listening.checked_by(integrity(settings));
    let (addresses, names) = tell::<SocketAddr>(&listening.address()?.to_string(), settings, client)?;
    address::are_alike(&addresses)?;
    // Whoever has the narrowest way: a datagram that is longer than the buffers of its receiver is refused.
    let listening = match carriers {
        Carriers::Streams { .. } | Carriers::Adapter => listening,
        Carriers::Datagrams { .. } => {
            let longest = listening.longest_datagram(&addresses);
            let all = client.share("tern.datagram", longest.to_string().as_bytes())?;
            let least = meeting::least(&all).ok_or("a rank does not say how long its datagrams are")?;
            listening.limited_to(least)
        }
    };
    Ok((Unconnected::Software(listening, addresses.into()), names))
}

/// Adapters of the system. Collective: a rank that has none says so to all, so that none waits for it.
fn system(
    opened: Result<Opened, String>,
    settings: &Settings,
    client: &mut Client,
) -> Result<(Unconnected, Vec<String>), String> {
    let card = opened.as_ref().map_err(String::clone).and_then(Opened::card);
    let card = card.unwrap_or_else(|_| "none".into());
    let (cards, names) = tell::<String>(&card, settings, client)?;
    let opened = opened?;
    if let Some(rank) = cards.iter().position(|card| card == "none") {
        return Err(format!(
            "rank {rank} on {} has no adapter that can be used, as it says itself",
            names[rank]
        ));
    }
    // What is not read here is refused by name when the ranks join.
    let doors: Vec<SocketAddr> = cards.iter().filter_map(|card| ibv::door(card)).collect();
    address::are_alike(&doors)?;
    Ok((Unconnected::System(opened, cards.into_iter().map(String::into_bytes).collect()), names))
}

/// What nobody has asked for by name: adapters of the system where all ranks have some that reach each other, as the `cards` of all
/// ranks say, else the software adapter. Who has one of the system, or names one in the settings, is told why it is not used.
/// Collective.
fn whatever(
    opened: Result<Opened, String>,
    cards: &[String],
    settings: &Settings,
    client: &mut Client,
) -> Result<(Unconnected, Vec<String>), String> {
    let (rank, why) = match ibv::agree(cards) {
        Ok(()) => return system(opened, settings, client),
        Err(refused) => refused,
    };
    // They are closed first: ports and memory of theirs are free.
    drop(opened);
    let carriers = Carriers::chosen(settings);
    let (adapter, names) = software(carriers, settings, client)?;
    let is_one_there = cards.iter().any(|card| ibv::door(card).is_some());
    let named = ibv::Choice::from(settings)?.names().map(|name| format!("what {name} names"));
    let instead = named.or_else(|| is_one_there.then(|| "the RDMA adapters there are".into()));
    if client.rank() == 0
        && let Some(instead) = instead
    {
        eprintln!(
            "Tern: messages between hosts go by the software adapter, not by {instead}: rank {rank} on {}: {why} \
             (TERN_DEVICES=shm+rnic takes it without a word)",
            names[rank]
        );
    }
    Ok((adapter, names))
}

/// The adapters of this rank.
fn open(choice: ibv::Choice, settings: &Settings) -> Result<Opened, String> {
    let carriers = Carriers::chosen(settings);
    for (name, not) in [("TERN_TRANSPORT", "rd"), ("TERN_INTEGRITY", "mac")] {
        if settings.text(name) == not {
            return Err(format!(
                "{name}={not} is the software adapter's: adapters of the system have no such thing"
            ));
        }
    }
    let traffic = match carriers {
        Carriers::Streams { .. } | Carriers::Adapter => Traffic::Messages,
        Carriers::Datagrams { connections: 0, .. } => Traffic::Datagrams,
        Carriers::Datagrams { .. } => Traffic::Both,
    };
    Opened::open(&choice, traffic, address::outer(settings)?)
}

impl Hosts {
    /// All `n` ranks are on this host.
    pub fn one(me: usize, n: usize) -> Hosts {
        let names = vec![crate::env::host_name().unwrap_or_else(|_| "localhost".into())];
        Hosts { me, here: (0..n).collect(), size: n, names, seats: Vec::new(), far: None }
    }

    /// Whether all `n` ranks are known to be on this host, or are to behave as if they were. Local.
    pub fn are_one(n: usize, settings: &Settings, client: &Client) -> bool {
        let wanted = settings.text("TERN_DEVICES");
        // Tern's own launcher, which names the address of each of several hosts, knows.
        let knows_one = address::told().is_none() && client.is_tern();
        n == 1 || wanted == "shm" || wanted == "auto" && knows_one
    }

    /// Finds out which ranks share this host, where that is not known. Collective.
    ///
    /// Names say nothing of that: hosts have several, and containers of one host share no memory. Those ranks are on
    /// one host that look into one directory of one running kernel.
    pub fn find(me: usize, n: usize, settings: &Settings, client: &mut Client) -> Result<Hosts, String> {
        let wanted = settings.text("TERN_DEVICES");
        // Where nobody is to share memory each rank is a host of its own.
        let mut found = None;
        let (hosts, seats): (Arc<[u32]>, _) = match wanted {
            "rnic" | "ibv" => ((0..n as u32).collect(), meet("", settings, client)?.seats),
            "auto" => {
                let opened = open(ibv::Choice::from(settings)?.unasked(), settings);
                let card = opened.as_ref().map_err(String::clone).and_then(Opened::card);
                let card = card.unwrap_or_else(|why| ibv::without(&why));
                let met = meet(&card, settings, client)?;
                found = Some((opened, met.cards));
                (numbered(&met.memories), met.seats)
            }
            _ => {
                let met = meet("", settings, client)?;
                (numbered(&met.memories), met.seats)
            }
        };
        let here: Box<[usize]> = (0..n).filter(|rank| hosts[*rank] == hosts[me]).collect();
        if here.len() == n {
            return Ok(Hosts::one(me, n));
        }
        let carriers = Carriers::chosen(settings);
        let (adapter, names) = match (wanted, found) {
            ("ibv" | "shm+ibv", _) => {
                let opened = ibv::Choice::from(settings).and_then(|choice| open(choice, settings));
                system(opened, settings, client)?
            }
            (_, Some((opened, cards))) => whatever(opened, &cards, settings, client)?,
            _ => software(carriers, settings, client)?,
        };
        Ok(Hosts {
            me,
            here,
            size: n,
            names,
            seats,
            far: Some(Far { adapter, carriers, secret: client.secret()?, hosts }),
        })
    }

    /// The names of the ranks' hosts, or the one name that all have.
    pub fn names(&mut self) -> Vec<String> {
        std::mem::take(&mut self.names)
    }

    /// Where each host is reached, by its first rank and in the order of these; nothing where all ranks are on one, or are
    /// taken for hosts of their own. To be asked before [`Hosts::names`].
    pub fn places(&self, settings: &Settings) -> Vec<(usize, String)> {
        let is_tried = matches!(settings.text("TERN_DEVICES"), "rnic" | "ibv");
        let Some(far) = self.far.as_ref().filter(|_| !is_tried) else { return Vec::new() };
        // They are numbered in the order of their first ranks.
        let mut next = 0;
        let is_first = |rank: &usize| {
            let is_first = far.hosts[*rank] == next;
            next += u32::from(is_first);
            is_first
        };
        let place = |rank: usize| match &far.adapter {
            Unconnected::Software(_, addresses) => format!("{}/{}", self.names[rank], addresses[rank].ip()),
            Unconnected::System(..) => format!("{}/ibv", self.names[rank]),
        };
        (0..self.size).filter(is_first).map(|rank| (rank, place(rank))).collect()
    }

    /// Whether there are other hosts.
    pub fn are_several(&self) -> bool {
        self.far.is_some()
    }

    /// Of so many CPUs that ranks of this host share, those that other hosts on the same machine leave them; see [`Crowd::share`].
    pub fn cores(&self, cpus: usize) -> usize {
        if self.seats.is_empty() { cpus } else { Crowd::of(self.me, &self.seats).share(self.here()) }
    }

    /// CPUs of all ranks where hosts share them and have too few; see [`Crowd::worst`].
    pub fn cores_of_all(&self) -> Option<usize> {
        Crowd::worst(&self.seats)
    }

    /// Number of ranks of this host.
    pub fn here(&self) -> usize {
        self.here.len()
    }

    /// Connects this rank. Collective.
    pub fn connect(self, options: &shm::Options, exchange: &mut dyn Exchange) -> Result<Device, String> {
        let place = self.here.iter().position(|rank| *rank == self.me).ok_or("this rank is nowhere")?;
        let group = if self.far.is_some() { format!(".{}", self.here[0]) } else { String::new() };
        if self.here.len() == 1 && self.size > 1 {
            exchange.fence()?; // as those that share memory do
        }
        let mut near = Shm::join(place, self.here.len(), &group, options, exchange)?;
        let Some(far) = self.far else {
            return Ok(Pair::new(near, None, self.here, self.size));
        };
        let hosts = far.hosts.clone();
        let far = far.connect(self.me, self.here.len() > options.cores, &mut near)?;
        Ok(Pair::new(near, Some(far), self.here, self.size).on_hosts(hosts))
    }
}

/// Has processes of other jobs reach this one, which is `rank` of `job`: by the adapter, also on one host. One that has
/// none gets it now; it does without it as long as it can, for an adapter costs memory and a look.
pub fn receive_guests(device: &mut Device, job: [u8; 16], rank: u32) -> Result<Card, String> {
    if device.far().is_none() {
        let settings = Settings::from_env()?;
        let listening = Listening::at(address::outer(&settings)?)?.checked_by(integrity(&settings));
        // The ranks of the job are on this host and are reached by its memory.
        let nowhere = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)); device.size()];
        let adapter = listening.open(device.me(), nowhere.into(), Secret::default())?;
        device.near_mut().sleep_beside(adapter.descriptor())?;
        let channel =
            Carriers::CONNECTIONS.carry(Either::First(adapter)).map_err(|fault| fault.to_string())?;
        *device.far_slot() = Some(channel);
    }
    match device.far_slot().as_mut().and_then(|far| far.verbs_mut().adapter_mut()) {
        Some(Either::First(adapter)) => adapter.receive_guests(job, rank),
        Some(Either::Second(_)) => {
            Err("processes of other jobs are reached by the software adapter alone (TERN_DEVICES=shm+rnic)"
                .into())
        }
        None => Err("processes of other jobs are reached over TCP alone (TERN_TRANSPORT=rc)".into()),
    }
}

/// What the adapters by which other hosts are reached can do, if there are any.
pub fn network(device: &Device) -> Option<&VerbsCaps> {
    device.far().map(|far| far.verbs().caps())
}

/// The adapter by which processes of other jobs are reached.
pub fn adapter(device: &mut Device) -> &mut Rnic {
    let far = device.far_slot().as_mut().expect("it has been opened");
    match far.verbs_mut().adapter_mut() {
        Some(Either::First(adapter)) => adapter,
        _ => panic!("guests have been let in"),
    }
}

/// The peer with this card.
pub fn introduce(device: &mut Device, card: &Card) -> usize {
    let adapter = adapter(device);
    let (peer, size) = (adapter.introduce(card), adapter.size());
    device.grow(size);
    peer
}

/// How many datagrams were refused, if any were. A line for each peer on another host that something was sent to, behind `head`: what carries messages there, and why.
/// Nothing where all are reached in the same way.
pub fn carriers(device: &Device, head: &str) -> String {
    let Some(far) = device.far() else { return String::new() };
    let mut text = String::new();
    let refused = if let Either::First(adapter) = far.verbs().verbs() { adapter.refused() } else { 0 };
    if refused > 0 {
        text +=
            &format!("{head}{refused} datagrams were refused: changed on the way, forged or played again\n");
    }
    for standing in far.verbs().standings() {
        let Use { datagrams, connected, begun, refused, ended } = standing.used;
        let by = if standing.is_connected { "a connection (RC)" } else { "datagrams (UD)" };
        text += &format!(
            "{head}rank {} is reached by {by}: {} sent, {} bytes, by datagrams, of which {} packets came again; {} sent, \
             {} bytes, over connections; {begun} begun, {refused} refused, {ended} given back\n",
            standing.rank, datagrams.0, datagrams.1, standing.resent, connected.0, connected.1,
        );
    }
    text
}
