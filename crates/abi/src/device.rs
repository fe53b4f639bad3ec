//! What connects this rank with the others: shared memory on this host, the software adapter between hosts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;

use fabric::settings::Settings;
use fabric::{Exchange, Pair};
use launch::pmi::client::Client;
use launch::report::HOST_ADDRESS;
use proto::channel::{self, Channel};
use rnic::{Listening, Rnic, Secret};
use shm::Shm;

/// The device of this process's rank.
pub type Device = Pair<Shm, Channel<Rnic>>;

/// What is known of the ranks of a job before they are connected.
pub struct Hosts {
    me: usize,
    /// Ranks of this host, in order.
    here: Box<[usize]>,
    size: usize,
    /// What others are reached by, if there are any on other hosts.
    far: Option<(Listening, Box<[SocketAddr]>, Secret)>,
}

impl Hosts {
    /// All `n` ranks are on this host.
    pub fn one(me: usize, n: usize) -> Hosts {
        Hosts { me, here: (0..n).collect(), size: n, far: None }
    }

    /// Finds out which ranks share this host: those of one boot and one directory for shared memory. Collective.
    pub fn find(me: usize, n: usize, settings: &Settings, client: &mut Client) -> Result<Hosts, String> {
        let wanted = settings.text("TERN_DEVICES");
        // Tern's launcher names the address of each of several hosts.
        let is_one_host = std::env::var_os(HOST_ADDRESS).is_none();
        if n == 1 || wanted == "shm" || wanted == "auto" && is_one_host {
            return Ok(Hosts::one(me, n));
        }
        let listening = Listening::at(address(settings)?)?;
        let host = if wanted == "rnic" { format!("rank-{me}") } else { host(settings)? };
        client.put(&format!("tern.rank.{me}"), format!("{host} {}", listening.address()?).as_bytes())?;
        client.offer_secret()?;
        client.barrier()?;
        let (mut here, mut addresses) = (Vec::new(), Vec::new());
        for rank in 0..n {
            let text = String::from_utf8_lossy(&client.get(&format!("tern.rank.{rank}"))?).into_owned();
            let parts = text.split_once(' ').and_then(|(host, at)| Some((host.to_owned(), at.parse().ok()?)));
            let (its, at) = parts.ok_or_else(|| format!("rank {rank} says it listens at `{text}`"))?;
            addresses.push(at);
            if its == host {
                here.push(rank);
            }
        }
        let far = Some((listening, addresses.into(), client.secret()?));
        Ok(Hosts { me, here: here.into(), size: n, far })
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
        let far = match self.far {
            None => None,
            Some((listening, addresses, secret)) => {
                let adapter = listening.open(self.me, addresses, secret)?;
                near.sleep_beside(adapter.descriptor())?;
                let settings = channel::Settings::default();
                Some(Channel::new(adapter, settings).map_err(|fault| fault.to_string())?)
            }
        };
        Ok(Pair::new(near, far, self.here, self.size))
    }
}

/// A name that ranks have in common that can share memory.
fn host(settings: &Settings) -> Result<String, String> {
    let boot = "/proc/sys/kernel/random/boot_id";
    let boot = std::fs::read_to_string(boot).map_err(|e| format!("cannot read {boot}: {e}"))?;
    let dir = settings.text("TERN_SHM_DIR");
    let at = std::fs::metadata(dir).map_err(|e| format!("TERN_SHM_DIR: {dir}: {e}"))?;
    Ok(format!("{}-{:x}-{:x}", boot.trim(), at.dev(), at.ino()))
}

/// The address of this host that others connect to: as the setting says, or the launcher; else the first that is
/// not the loopback's; else that one.
fn address(settings: &Settings) -> Result<Ipv4Addr, String> {
    let wanted = settings.text("TERN_INTERFACE");
    let all =
        if_addrs::get_if_addrs().map_err(|e| format!("cannot list the interfaces of this host: {e}"))?;
    let v4 = |interface: &if_addrs::Interface| match interface.ip() {
        IpAddr::V4(at) => Some(at),
        IpAddr::V6(_) => None,
    };
    if !wanted.is_empty() {
        let fits =
            |i: &&if_addrs::Interface| i.name == wanted || v4(i).is_some_and(|at| at.to_string() == wanted);
        let found = all.iter().filter(fits).find_map(v4);
        let names = || all.iter().map(|i| format!("{} {}", i.name, i.ip())).collect::<Vec<_>>().join(", ");
        return found.ok_or_else(|| {
            format!("TERN_INTERFACE: no IPv4 address of `{wanted}` here; there are: {}", names())
        });
    }
    if let Ok(hint) = std::env::var(HOST_ADDRESS)
        && let Ok(at) = hint.parse()
    {
        return Ok(at);
    }
    let outward = all.iter().filter(|interface| !interface.is_loopback()).find_map(v4);
    Ok(outward.filter(|_| settings.text("TERN_DEVICES") != "rnic").unwrap_or(Ipv4Addr::LOCALHOST))
}
