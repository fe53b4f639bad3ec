//! A cluster: what its hosts, adapters and software cost, read from a TOML file.
//!
//! `docs/clusters.md` explains every key. Figures of published platforms lie in `clusters/` of the
//! repository; they are part of the program and found by name.

use fabric::{COPY_LEVELS, Costs, Distance, Source};

use crate::keys::{Keys, nearest};

/// Files that are part of the program, by name.
const KNOWN: &[(&str, &str)] = &[
    ("c1", include_str!("../../../clusters/c1.toml")),
    ("c2", include_str!("../../../clusters/c2.toml")),
    ("em64t-pcie", include_str!("../../../clusters/em64t-pcie.toml")),
    ("eth-25g", include_str!("../../../clusters/eth-25g.toml")),
    ("graphene", include_str!("../../../clusters/graphene.toml")),
    ("ia32-pcix", include_str!("../../../clusters/ia32-pcix.toml")),
    ("infini", include_str!("../../../clusters/infini.toml")),
    ("lioncub", include_str!("../../../clusters/lioncub.toml")),
    ("ndr-2026", include_str!("../../../clusters/ndr-2026.toml")),
    ("ne020", include_str!("../../../clusters/ne020.toml")),
    ("poweredge-ddr", include_str!("../../../clusters/poweredge-ddr.toml")),
];

/// A modelled cluster. Times are in nanoseconds, bandwidths in bytes per nanosecond.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Hosts there are.
    pub hosts: usize,
    /// Ranks per host, filled host by host.
    pub cores: usize,
    /// Adapters of every host.
    pub rails: Vec<Rail>,
    /// The path between ranks of one host inside its adapters.
    pub local: Path,
    /// Shared memory inside a host, if its ranks use it.
    pub shared: Option<Shared>,
    /// Bandwidth of memory copies by the length of the block, ascending.
    pub copy: Vec<CopyLevel>,
    /// What a copy costs before the first byte.
    pub copy_ns: f64,
    /// Registration of memory.
    pub registration: Registration,
    /// Costs of the library's own work.
    pub software: Software,
    /// Datagrams.
    pub datagram: Datagram,
}

/// Latency and bandwidth between two ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// From the first byte leaving to the first byte arriving.
    pub latency_ns: f64,
    /// Bytes per nanosecond.
    pub bandwidth: f64,
}

/// Memory that the ranks of a host share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shared {
    /// From a store to its being seen by another core, and how fast a core copies what another has written.
    pub path: Path,
    /// Copies of all cores together that no cache holds; infinite if their number is no limit.
    pub memory_bandwidth: f64,
    /// Frames that one rank may have under way to another.
    pub slots: usize,
    /// The longest frame.
    pub frame_bytes: usize,
}

/// An adapter and its link.
#[derive(Clone, Debug, PartialEq)]
pub struct Rail {
    /// The wire and the switch.
    pub path: Path,
    /// Least time from the begin of one message to that of the next of its direction.
    pub gap_ns: f64,
    /// How long a direction rests behind the last byte of a message.
    pub rest_ns: f64,
    /// Time of the processor to post work.
    pub post_ns: f64,
    /// Time of the processor to fetch a completion.
    pub poll_ns: f64,
    /// Payload the processor writes into the work request itself, in bytes.
    pub inline_bytes: usize,
    /// At which speed it does.
    pub inline_bandwidth: f64,
    /// Time of the adapter to fetch what is not inline.
    pub fetch_ns: f64,
    /// Time of the adapter for each further entry of a gather list.
    pub gather_ns: f64,
    /// Time of the adapter of the target of a read before the answer leaves.
    pub serve_ns: f64,
    /// Bytes per nanosecond of both directions together; infinite if the bus is no limit.
    pub bus_bandwidth: f64,
    /// Work requests outstanding to one peer.
    pub depth: usize,
    /// How long the adapter tries to reach a peer that is gone.
    pub retry_ns: f64,
}

/// Blocks up to this length are copied at this speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyLevel {
    /// Length in bytes; `usize::MAX` out of cache.
    pub up_to_bytes: usize,
    /// Bytes per nanosecond.
    pub bandwidth: f64,
}

/// What registration costs and how much of it there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Registration {
    /// The unit.
    pub page_bytes: usize,
    /// To register: once, and for each page.
    pub register_ns: (f64, f64),
    /// To give back: once, and for each page.
    pub deregister_ns: (f64, f64),
    /// Bytes one rank may have registered at a time.
    pub lockable_bytes: usize,
    /// Regions one rank may have registered at a time.
    pub regions: usize,
}

/// See [`fabric::Charge`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Software {
    /// A header built or read.
    pub header_ns: f64,
    /// An entry of the table of buffer usage or of the registration cache looked at.
    pub search_ns: f64,
    /// An entry compared while matching.
    pub match_ns: f64,
    /// A look that found nothing.
    pub look_ns: f64,
}

/// What may happen to datagrams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datagram {
    /// The longest; 0 if there are none.
    pub max_bytes: usize,
    /// Probability of being lost.
    pub loss: f64,
    /// Probability of coming twice.
    pub duplication: f64,
    /// Probability of being overtaken: it comes [`Datagram::delay_ns`] late.
    pub reorder: f64,
    /// See [`Datagram::reorder`].
    pub delay_ns: f64,
}

impl Datagram {
    const NONE: Datagram =
        Datagram { max_bytes: 0, loss: 0.0, duplication: 0.0, reorder: 0.0, delay_ns: 0.0 };
}

/// Names of the clusters that are part of the program.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, _)| *name)
}

impl Cluster {
    /// The cluster of this name, or in the file of this path (which has a `/` or ends in `.toml`).
    pub fn find(name: &str) -> Result<Cluster, String> {
        if name.contains('/') || name.ends_with(".toml") {
            let text =
                std::fs::read_to_string(name).map_err(|error| format!("cluster file {name}: {error}"))?;
            return Cluster::parse(name, &text);
        }
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Cluster::parse(&format!("clusters/{name}.toml"), text),
            None => {
                let near = nearest(name, names());
                Err(format!("unknown cluster `{name}`; the nearest known one is `{near}`"))
            }
        }
    }

    /// The cluster that `text` describes; errors name `file` and the key.
    pub fn parse(file: &str, text: &str) -> Result<Cluster, String> {
        let table = text.parse::<toml::Table>().map_err(|error| format!("{file}: {error}"))?;
        Keys::new(file, table).whole(Cluster::read)
    }

    fn read(keys: &mut Keys) -> Result<Cluster, String> {
        let (copy_ns, copy) = keys.section("copy", copy_levels)?;
        let datagram = keys.optional("datagram", |keys, key| keys.section(key, datagram))?;
        Ok(Cluster {
            name: keys.text("name")?,
            hosts: keys.count("hosts", 1)?,
            cores: keys.count("cores", 1)?,
            local: keys.section("local", path)?,
            shared: keys.optional("shared", |keys, key| keys.section(key, shared))?,
            rails: keys.list("rails", rail)?,
            copy,
            copy_ns,
            registration: keys.section("registration", registration)?,
            software: keys.section("software", software)?,
            datagram: datagram.unwrap_or(Datagram::NONE),
        })
    }

    /// The host of a rank.
    pub fn host(&self, rank: usize) -> usize {
        rank / self.cores
    }

    /// Ranks there is room for.
    pub fn capacity(&self) -> usize {
        self.hosts * self.cores
    }

    /// How far away one rank is from another.
    pub fn distance(&self, rank: usize, peer: usize) -> Distance {
        if self.host(rank) == self.host(peer) { Distance::Host } else { Distance::Network }
    }

    /// What ranks know of the cluster before the first message, as a measurement at start-up would
    /// find it: of one adapter, from the post to what the receiver sees.
    pub fn costs(&self, distance: Distance) -> Costs {
        let rail = &self.rails[0];
        let (path, gap_ns, fetch_ns, serve_ns) = match distance {
            Distance::Host => (&self.local, 0.0, 0.0, 0.0),
            Distance::Network => (&rail.path, rail.gap_ns, rail.fetch_ns, rail.serve_ns),
        };
        let register = &self.registration;
        let page = register.page_bytes as f64;
        Costs {
            source: Source::Cluster,
            latency_ns: rail.post_ns + fetch_ns + path.latency_ns,
            wire_ns_per_byte: 1.0 / path.bandwidth,
            bus_ns_per_byte: if distance == Distance::Network { 1.0 / rail.bus_bandwidth } else { 0.0 },
            gap_ns,
            post_ns: rail.post_ns + rail.poll_ns,
            read_ns: fetch_ns + serve_ns + path.latency_ns,
            register: (register.register_ns.0, register.register_ns.1 / page),
            deregister: (register.deregister_ns.0, register.deregister_ns.1 / page),
            copy: self.copy_costs(),
            search_ns: self.software.search_ns,
            single: (0.0, 0.0),
        }
    }

    /// The same of shared memory: a message is two copies, and what the second one waits for.
    pub fn shared_costs(&self, shared: &Shared) -> Costs {
        Costs {
            source: Source::Cluster,
            latency_ns: shared.path.latency_ns + 2.0 * self.software.header_ns,
            wire_ns_per_byte: 0.0,
            gap_ns: 0.0,
            post_ns: self.software.header_ns,
            read_ns: 0.0,
            ..self.costs(Distance::Host)
        }
    }

    /// The fastest levels and the one out of cache, if there are more than a table of costs has.
    fn copy_costs(&self) -> [(usize, f64); COPY_LEVELS] {
        let last = self.copy.len() - 1;
        std::array::from_fn(|at| {
            let at = if at == COPY_LEVELS - 1 { last } else { at.min(last) };
            (self.copy[at].up_to_bytes, 1.0 / self.copy[at].bandwidth)
        })
    }

    /// For how long a block that is part of a run of `run_bytes` occupies the memory that all cores share, if it
    /// does.
    pub fn shared_memory_time_ns(&self, len: usize, run_bytes: usize) -> Option<f64> {
        let bandwidth = self.shared?.memory_bandwidth;
        let in_cache =
            self.copy.iter().any(|level| level.up_to_bytes < usize::MAX && run_bytes <= level.up_to_bytes);
        (bandwidth.is_finite() && !in_cache).then(|| len as f64 / bandwidth)
    }

    /// Time to copy a block that is part of a run of `run_bytes`, without what a copy costs before
    /// its first byte.
    pub fn copy_time_ns(&self, len: usize, run_bytes: usize) -> f64 {
        let level = self.copy.iter().find(|level| run_bytes <= level.up_to_bytes);
        len as f64 / level.expect("the last level has no limit").bandwidth
    }
}

/// Megabytes (10^6 bytes) per second as bytes per nanosecond.
fn bandwidth(keys: &mut Keys, key: &str) -> Result<f64, String> {
    let mb_s = keys.positive(key)?;
    Ok(mb_s / 1000.0)
}

fn path(keys: &mut Keys) -> Result<Path, String> {
    Ok(Path { latency_ns: keys.time("latency_ns")?, bandwidth: bandwidth(keys, "bandwidth_mb_s")? })
}

fn shared(keys: &mut Keys) -> Result<Shared, String> {
    let shared = Shared {
        path: path(keys)?,
        memory_bandwidth: keys.optional("memory_mb_s", bandwidth)?.unwrap_or(f64::INFINITY),
        slots: keys.count("slots", 1)?,
        frame_bytes: keys.count("frame_bytes", 64)?,
    };
    if shared.path.latency_ns <= 0.0 {
        return Err(keys.wrong("latency_ns", "is 0: nothing could be seen before it"));
    }
    Ok(shared)
}

fn rail(keys: &mut Keys) -> Result<Rail, String> {
    let (inline_bytes, inline_bandwidth) = inline(keys)?;
    let rail = Rail {
        path: path(keys)?,
        gap_ns: keys.time("gap_ns")?,
        rest_ns: keys.optional("rest_ns", Keys::time)?.unwrap_or(0.0),
        post_ns: keys.time("post_ns")?,
        poll_ns: keys.time("poll_ns")?,
        inline_bytes,
        inline_bandwidth,
        fetch_ns: keys.time("fetch_ns")?,
        gather_ns: keys.time("gather_ns")?,
        serve_ns: keys.optional("serve_ns", Keys::time)?.unwrap_or(0.0),
        bus_bandwidth: keys.optional("bus_mb_s", bandwidth)?.unwrap_or(f64::INFINITY),
        depth: keys.count("depth", 1)?,
        retry_ns: keys.time("retry_ns")?,
    };
    if rail.bus_bandwidth < rail.path.bandwidth {
        return Err(keys.wrong("bus_mb_s", "is less than `bandwidth_mb_s`: one direction would exceed it"));
    }
    Ok(rail)
}

/// How many bytes a post may hold, and how fast they are written into it.
fn inline(keys: &mut Keys) -> Result<(usize, f64), String> {
    let inline_bytes = keys.count("inline_bytes", 0)?;
    if inline_bytes > 0 {
        return Ok((inline_bytes, bandwidth(keys, "inline_mb_s")?));
    }
    let refused = |keys: &mut Keys, key: &str| Err(keys.wrong(key, "is given, but `inline_bytes` is 0"));
    let none: Option<f64> = keys.optional("inline_mb_s", refused)?;
    Ok((0, none.unwrap_or(f64::INFINITY)))
}

fn copy_levels(keys: &mut Keys) -> Result<(f64, Vec<CopyLevel>), String> {
    let mut before = None;
    let levels = keys.list("levels", |keys| copy_level(keys, &mut before))?;
    if before != Some(usize::MAX) {
        return Err(keys.wrong("levels", "needs a last level without `up_to_bytes`, out of cache"));
    }
    Ok((keys.time("call_ns")?, levels))
}

/// A level, whose blocks must be longer than those of the one `before`.
fn copy_level(keys: &mut Keys, before: &mut Option<usize>) -> Result<CopyLevel, String> {
    let up_to_bytes = keys.optional("up_to_bytes", |keys, key| keys.count(key, 1))?.unwrap_or(usize::MAX);
    match before.replace(up_to_bytes) {
        Some(usize::MAX) => return Err(keys.wrong("up_to_bytes", "stands behind a level without limit")),
        Some(least) if least >= up_to_bytes => {
            return Err(keys.wrong("up_to_bytes", "is not larger than that of the level before"));
        }
        _ => {}
    }
    Ok(CopyLevel { up_to_bytes, bandwidth: bandwidth(keys, "bandwidth_mb_s")? })
}

fn registration(keys: &mut Keys) -> Result<Registration, String> {
    let registration = Registration {
        page_bytes: keys.count("page_bytes", 1)?,
        register_ns: (keys.time("register_ns")?, keys.time("register_page_ns")?),
        deregister_ns: (keys.time("deregister_ns")?, keys.time("deregister_page_ns")?),
        lockable_bytes: keys.count("lockable_bytes", 1)?,
        regions: keys.count("regions", 1)?,
    };
    if !registration.page_bytes.is_power_of_two() {
        return Err(keys.wrong("page_bytes", "is not a power of two"));
    }
    if registration.lockable_bytes < registration.page_bytes {
        return Err(keys.wrong("lockable_bytes", "is less than `page_bytes`"));
    }
    Ok(registration)
}

fn software(keys: &mut Keys) -> Result<Software, String> {
    Ok(Software {
        header_ns: keys.time("header_ns")?,
        search_ns: keys.time("search_ns")?,
        match_ns: keys.time("match_ns")?,
        look_ns: keys.positive("look_ns")?,
    })
}

fn datagram(keys: &mut Keys) -> Result<Datagram, String> {
    Ok(Datagram {
        max_bytes: keys.count("max_bytes", 0)?,
        loss: keys.probability("loss")?,
        duplication: keys.probability("duplication")?,
        reorder: keys.probability("reorder")?,
        delay_ns: keys.time("delay_ns")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of `graphene` with a line replaced.
    fn changed(from: &str, to: &str) -> Result<Cluster, String> {
        let text = include_str!("../../../clusters/graphene.toml");
        assert!(text.contains(from), "{from:?} is not in the file");
        Cluster::parse("my.toml", &text.replacen(from, to, 1))
    }

    fn error(from: &str, to: &str) -> String {
        changed(from, to).expect_err("the change is wrong")
    }

    #[test]
    fn every_known_file_is_right_and_named_as_its_file() {
        for name in names() {
            let cluster = Cluster::find(name).unwrap_or_else(|text| panic!("{text}"));
            assert_eq!(cluster.name, name);
        }
        assert!(names().is_sorted());
    }

    #[test]
    fn unknown_names_get_the_nearest() {
        let text = Cluster::find("graphen").unwrap_err();
        assert_eq!(text, "unknown cluster `graphen`; the nearest known one is `graphene`");
        assert!(Cluster::find("no/such.toml").unwrap_err().starts_with("cluster file no/such.toml: "));
    }

    #[test]
    fn unknown_keys_name_file_key_and_nearest() {
        let text = error("latency_ns", "latencyns = 3\nlatency_ns");
        assert!(text.starts_with("my.toml: `"), "{text}");
        assert!(text.contains(".latencyns` is unknown; the nearest known key is `latency_ns`"), "{text}");
        let text = error("hosts =", "host = 2\nhosts =");
        assert_eq!(text, "my.toml: `host` is unknown; the nearest known key is `hosts`");
    }

    #[test]
    fn missing_and_wrong_values_are_named() {
        assert_eq!(error("hosts =", "# "), "my.toml: `hosts` is missing");
        let text = error("gap_ns =", "gap_ns = -1 #");
        assert_eq!(text, "my.toml: `rails[0].gap_ns` is -1, must be a time of at least 0");
        let text = error("gap_ns =", "gap_ns = \"fast\" #");
        assert_eq!(text, "my.toml: `rails[0].gap_ns` is \"fast\", must be a number");
        let text = error("gap_ns =", "gap_ns = nan #");
        assert!(text.contains("`rails[0].gap_ns` is nan"), "{text}");
        let text = error("hosts =", "hosts = 2.5 #");
        assert_eq!(text, "my.toml: `hosts` is 2.5, must be a whole number of at least 1");
        let text = error("page_bytes =", "page_bytes = 5000 #");
        assert_eq!(text, "my.toml: `registration.page_bytes` is not a power of two");
    }

    #[test]
    fn contradictions_are_named() {
        let text = error("gap_ns =", "bus_mb_s = 1\ngap_ns =");
        assert!(text.contains("`rails[0].bus_mb_s` is less than `bandwidth_mb_s`"), "{text}");
        let text = error("lockable_bytes =", "lockable_bytes = 100 #");
        assert!(text.contains("`registration.lockable_bytes` is less than `page_bytes`"), "{text}");
        let text = error("inline_bytes =", "inline_bytes = 0 #");
        assert!(text.contains("`rails[0].inline_mb_s` is given, but `inline_bytes` is 0"), "{text}");
        assert!(Cluster::parse("a.toml", "x = [").unwrap_err().starts_with("a.toml: "));
        let datagram =
            "[datagram]\nmax_bytes = 1\nloss = 1.5\nduplication = 0\nreorder = 0\ndelay_ns = 0\n[software]";
        let text = error("[software]", datagram);
        assert_eq!(text, "my.toml: `datagram.loss` is 1.5, must be a probability between 0 and 1");
    }
}
