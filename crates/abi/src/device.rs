//! What connects this rank with the others: shared memory on this host, the software adapter between hosts.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fabric::settings::Settings;
use fabric::{Device as _, Exchange, Pair, Verbs as _};
use launch::address;
use launch::pmi::client::Client;
use launch::report::HOST_ADDRESS;
use proto::channel::{self, Channel};
use rnic::{Card, Listening, Rnic, Secret};
use shm::Shm;

/// The device of this process's rank.
pub type Device = Pair<Shm, Channel<Rnic>>;

/// What ranks of other hosts are reached by.
struct Far {
    listening: Listening,
    addresses: Box<[SocketAddr]>,
    secret: Secret,
    /// By rank: its host.
    hosts: Arc<[u32]>,
}

/// What is known of the ranks of a job before they are connected.
pub struct Hosts {
    me: usize,
    /// Ranks of this host, in order.
    here: Box<[usize]>,
    size: usize,
    /// The names of the ranks' hosts, or the one name that all have.
    names: Vec<String>,
    /// What others are reached by, if there are any on other hosts.
    far: Option<Far>,
}

impl Hosts {
    /// All `n` ranks are on this host.
    pub fn one(me: usize, n: usize) -> Hosts {
        let names = vec![crate::env::host_name().unwrap_or_else(|_| "localhost".into())];
        Hosts { me, here: (0..n).collect(), size: n, names, far: None }
    }

    /// Finds out which ranks share this host. Collective.
    ///
    /// Names say nothing of that: hosts have several, and containers of one host share no memory. Those ranks are on
    /// one host that look into one directory of one running kernel.
    pub fn find(me: usize, n: usize, settings: &Settings, client: &mut Client) -> Result<Hosts, String> {
        let wanted = settings.text("TERN_DEVICES");
        // Tern's own launcher, which names the address of each of several hosts, knows.
        let knows_one = client.is_tern() && std::env::var_os(HOST_ADDRESS).is_none();
        if n == 1 || wanted == "shm" || wanted == "auto" && knows_one {
            return Ok(Hosts::one(me, n));
        }
        // Where nobody is to share memory each rank is a host of its own.
        let hosts: Arc<[u32]> = if wanted == "rnic" {
            (0..n as u32).collect()
        } else {
            let memories = client.share("tern.host", address::memory(settings)?.as_bytes())?;
            let mut known = HashMap::new();
            let mut number = |memory| {
                let next = known.len() as u32;
                *known.entry(memory).or_insert(next)
            };
            memories.iter().map(&mut number).collect()
        };
        let here: Box<[usize]> = (0..n).filter(|rank| hosts[*rank] == hosts[me]).collect();
        if here.len() == n {
            return Ok(Hosts::one(me, n));
        }
        let listening = match settings.text("TERN_TRANSPORT") {
            "rd" => Listening::for_datagrams(address::outer(settings)?)?,
            _ => Listening::at(address::outer(settings)?)?,
        };
        let name = crate::env::host_name().map_err(|error| error.to_string())?;
        client.offer_secret()?;
        let told = client.share("tern.at", format!("{} {name}", listening.address()?).as_bytes())?;
        let (mut addresses, mut names) = (Vec::new(), Vec::new());
        for (rank, text) in told.iter().enumerate() {
            let text = String::from_utf8_lossy(text);
            let known = text.split_once(' ').and_then(|(at, name)| Some((at.parse().ok()?, name)));
            let (at, name) = known.ok_or_else(|| format!("rank {rank} says it listens at `{text}`"))?;
            addresses.push(at);
            names.push(name.to_owned());
        }
        let far = Far { listening, addresses: addresses.into(), secret: client.secret()?, hosts };
        Ok(Hosts { me, here, size: n, names, far: Some(far) })
    }

    /// The names of the ranks' hosts, or the one name that all have.
    pub fn names(&mut self) -> Vec<String> {
        std::mem::take(&mut self.names)
    }

    /// Whether there are other hosts.
    pub fn are_several(&self) -> bool {
        self.far.is_some()
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
        let Some(Far { listening, addresses, secret, hosts }) = self.far else {
            return Ok(Pair::new(near, None, self.here, self.size));
        };
        let adapter = listening.open(self.me, addresses, secret)?;
        near.sleep_beside(adapter.descriptor())?;
        let settings = channel::Settings::default();
        let far = Channel::new(adapter, settings).map_err(|fault| fault.to_string())?;
        Ok(Pair::new(near, Some(far), self.here, self.size).on_hosts(hosts))
    }
}

/// Has processes of other jobs reach this one, which is `rank` of `job`: by the adapter, also on one host. One that has
/// none gets it now; it does without it as long as it can, for an adapter costs memory and a look.
pub fn receive_guests(device: &mut Device, job: [u8; 16], rank: u32) -> Result<Card, String> {
    if device.far().is_none() {
        let settings = Settings::from_env()?;
        let listening = Listening::at(address::outer(&settings)?)?;
        // The ranks of the job are on this host and are reached by its memory.
        let nowhere = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)); device.size()];
        let adapter = listening.open(device.me(), nowhere.into(), Secret::default())?;
        device.near_mut().sleep_beside(adapter.descriptor())?;
        let channel =
            Channel::new(adapter, channel::Settings::default()).map_err(|fault| fault.to_string())?;
        *device.far_slot() = Some(channel);
    }
    adapter(device).receive_guests(job, rank)
}

/// The adapter by which processes of other jobs are reached.
pub fn adapter(device: &mut Device) -> &mut Rnic {
    device.far_slot().as_mut().expect("it has been opened").verbs_mut()
}

/// The peer with this card.
pub fn introduce(device: &mut Device, card: &Card) -> usize {
    let adapter = adapter(device);
    let (peer, size) = (adapter.introduce(card), adapter.size());
    device.grow(size);
    peer
}
