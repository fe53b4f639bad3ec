//! What links and cores cost, and what ranks must agree on before each chooses alone.
use super::levels::Spread;
use super::link::Link;
use fabric::settings::Settings;
use fabric::{COPY_LEVELS, Caps, Costs, Distance, Source};
use proto::channel;
use proto::choice::edge::{edge, edge_of_data};
use proto::choice::facts::Facts;

/// What a byte costs, in nanoseconds, while the data of a call fit a level of the memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Level {
    /// The longest data of a call that do.
    pub up_to_bytes: f64,
    /// From one rank to another (G), in messages that wait until both sides have agreed.
    pub link: f64,
    /// The same in shorter ones, see [`Rates::eager_bytes`]: their copies are not hidden behind the link.
    pub short: f64,
    /// For how long that occupies what several messages share: an adapter, or the core of the rank that has them all.
    pub busy: f64,
    /// Combining two vectors.
    pub reduce: f64,
    /// Copying in memory.
    pub copy: f64,
}

/// Levels of the memory that are told apart.
pub const LEVELS: usize = COPY_LEVELS;

/// What collectives must know of the ranks' cores beside their messages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cores {
    /// See [`Rates::cores`].
    pub count: u32,
    /// See [`Rates::switch_ns`].
    pub switch_ns: f64,
    /// See [`Rates::crowding`].
    pub crowding: f64,
    /// Combining two vectors, as a multiple of copying one.
    pub reduce: f64,
}

/// What a link and a core cost, measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// From one rank to another, without overheads (L).
    pub latency_ns: f64,
    /// Of the sender for one message (o).
    pub overhead_ns: f64,
    /// Of the receiver for one message.
    pub receive_ns: f64,
    /// Least time between two messages of an adapter (g), whoever of its host they belong to.
    pub gap_ns: f64,
    /// Messages longer than this wait until both sides have agreed, which takes that much more.
    pub eager_bytes: f64,
    /// See [`Rates::eager_bytes`].
    pub handshake_ns: f64,
    /// From one rank of a core to the next.
    pub switch_ns: f64,
    /// Where all ranks have messages with all others, by what part of it the overhead of a message grows with each
    /// further rank of its core: they push what they keep for each other's peers out of the caches.
    pub crowding: f64,
    /// Cores that the ranks share.
    pub cores: u32,
    /// Cores that a message on its way keeps busy: both ends' where these share the cores, and the way between them is their work.
    pub ends: u32,
    /// Whether receivers fetch long messages themselves, so that a sender can serve many at once.
    pub single_copy: bool,
    /// By the length of the data, ascending.
    pub levels: [Level; LEVELS],
}

/// Longer than any data.
const ANY_BYTES: f64 = 1e18;

impl Rates {
    /// Between ranks of one host, as measured with `tern bench` (docs/results.md).
    pub const HOST: Rates = Rates {
        latency_ns: 120.0,
        overhead_ns: 30.0,
        receive_ns: 30.0,
        gap_ns: 0.0,
        // What is measured of long messages has it in it.
        eager_bytes: ANY_BYTES,
        handshake_ns: 0.0,
        switch_ns: 1300.0,
        crowding: 0.25,
        cores: u32::MAX,
        // What is measured of messages between ranks that share cores has it in it.
        ends: 1,
        single_copy: true,
        // To combine takes what copying takes (docs/results.md, MPI_Reduce_local).
        levels: [Level { up_to_bytes: ANY_BYTES, link: 0.1, short: 0.1, busy: 0.1, reduce: 0.05, copy: 0.05 };
            LEVELS],
    };

    /// What is known of messages to ranks of one distance, and of the cores: the price of an edge is that of the engine.
    pub fn of(facts: &Facts, distance: Distance, cores: Cores) -> Rates {
        let path = facts.path(distance);
        let bare = edge(facts, distance, 0);
        let level = |at: usize| {
            let up_to = facts.copy[at].0;
            let (edge, bytes) = (edge(facts, distance, up_to), up_to as f64);
            let copy = facts.copy[at].1.value;
            // Short messages that are a part of so much data.
            let eager = path.eager_bytes.max(1);
            let short = edge_of_data(facts, distance, eager, up_to).bytes_ns / eager as f64;
            Level {
                up_to_bytes: bytes.min(ANY_BYTES),
                link: edge.bytes_ns / bytes,
                short,
                busy: edge.busy_ns / bytes,
                reduce: cores.reduce * copy,
                copy,
            }
        };
        Rates {
            latency_ns: bare.latency_ns,
            overhead_ns: bare.sender_ns,
            receive_ns: bare.receiver_ns,
            gap_ns: bare.gap_ns,
            eager_bytes: path.eager_bytes as f64,
            handshake_ns: edge(facts, distance, path.eager_bytes + 1).handshake_ns,
            switch_ns: cores.switch_ns,
            crowding: cores.crowding,
            cores: cores.count,
            ends: 1,
            single_copy: path.reach && !path.registration,
            levels: std::array::from_fn(level),
        }
    }

    /// The same where all hosts share the cores: nothing of a message's way is waiting for a wire that a core could use otherwise,
    /// and who sends while it receives has twice the work. Of the two copies that a short message is besides, each end makes one.
    fn by_cores(self) -> Rates {
        let half = self.latency_ns / 2.0;
        let (overhead_ns, receive_ns) = (self.overhead_ns + half, self.receive_ns + half);
        let level =
            |level: Level| Level { short: level.busy + (level.short - level.busy).max(0.0) / 2.0, ..level };
        Rates {
            latency_ns: 0.0,
            overhead_ns,
            receive_ns,
            crowding: 0.0,
            ends: 2,
            levels: self.levels.map(level),
            ..self
        }
    }

    /// What a byte of such a message costs from one rank to another.
    pub fn per_byte(&self, level: &Level, bytes: f64) -> f64 {
        if bytes > self.eager_bytes { level.link } else { level.short }
    }

    /// What a message of this length waits for besides its latency.
    pub fn agreed_ns(&self, bytes: f64) -> f64 {
        if bytes > self.eager_bytes { self.handshake_ns } else { 0.0 }
    }

    /// Whether a receiver copies with its own core what lies in memory for it.
    pub fn is_copied(&self) -> bool {
        self.gap_ns == 0.0 && !self.single_copy
    }

    /// What a byte costs in a call with so many.
    pub fn level(&self, bytes: f64) -> &Level {
        self.levels.iter().find(|level| bytes <= level.up_to_bytes).unwrap_or(&self.levels[LEVELS - 1])
    }
}

/// Rates by distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tariff {
    /// Between ranks of one host.
    pub host: Rates,
    /// Between hosts. Its cores are those of all hosts together where these share cores, else any number: a rank alone on its
    /// host has one.
    pub network: Rates,
    /// Where those between hosts come from.
    pub source: Source,
}

impl Tariff {
    /// What messages of collectives cost before anything is known of a job: inside a host as it was measured on one,
    /// with so many cores; between hosts what the protocols make of Tern's adapter.
    pub fn of_job(settings: &Settings, cores: usize) -> Tariff {
        let count = u32::try_from(cores).unwrap_or(u32::MAX).max(1);
        let host = Rates { cores: count, single_copy: settings.flag("TERN_SINGLE_COPY"), ..Rates::HOST };
        let eager_bytes = settings.number("TERN_EAGER_MAX") as usize;
        // What connections take at once beyond that takes as long as what waits for its receiver: a copy more, two messages less.
        let frame_bytes = match settings.text("TERN_TRANSPORT") {
            "rc" | "rd" | "ud" => channel::STAGED_BYTES,
            _ => channel::Settings::default().frame_bytes,
        };
        let network = network(eager_bytes, frame_bytes, settings.number("TERN_REGISTERED_MAX") > 0);
        Tariff { host, network, source: Source::Assumed }
    }

    /// Ranks of one core, of so many in a communicator.
    pub(crate) fn crowd(&self, size: usize, spread: &Spread) -> usize {
        let on = |rates: &Rates, ranks: usize| ranks.div_ceil(rates.cores.max(1) as usize);
        match spread {
            Spread::OneHost => on(&self.host, size),
            Spread::Apart => on(&self.network, size),
            Spread::Levels(levels) => on(&self.host, levels.most()).max(on(&self.network, size)),
        }
    }

    /// The same where hosts are on one machine (or several), of whose cores all ranks of the job together have so many.
    pub fn crowded(mut self, cores: Option<usize>) -> Tariff {
        if let Some(cores) = cores {
            let cores = u32::try_from(cores).unwrap_or(u32::MAX).max(1);
            self.network = Rates { cores, ..self.network }.by_cores();
        }
        self
    }

    /// What messages between hosts cost protocols, if that was measured: a read takes one way more.
    pub fn measured(&self) -> Option<Costs> {
        let Rates { latency_ns, overhead_ns, receive_ns, gap_ns, .. } = self.network;
        let bare_ns = latency_ns + overhead_ns + receive_ns;
        let costs = Costs {
            source: self.source,
            latency_ns: bare_ns,
            wire_ns_per_byte: self.network.levels[0].link,
            gap_ns,
            post_ns: overhead_ns,
            read_ns: bare_ns,
            ..Costs::default()
        };
        (self.source == Source::Kept).then_some(costs)
    }

    /// The same where it was measured what messages take between the hosts.
    pub fn on(self, link: &Link, settings: &Settings) -> Tariff {
        let network = link.rates(&self.network, settings.number("TERN_EAGER_MAX") as f64);
        let network = if network.cores < u32::MAX { network.by_cores() } else { network };
        Tariff { network, source: Source::Kept, ..self }
    }
}

impl Default for Tariff {
    fn default() -> Tariff {
        Tariff {
            host: Rates::HOST,
            network: network(usize::MAX, channel::STAGED_BYTES, true),
            source: Source::Assumed,
        }
    }
}

/// Rates between hosts: a rank alone on its host has a core.
fn network(eager_bytes: usize, frame_bytes: usize, keeps: bool) -> Rates {
    let caps = Caps { name: "network", frame_bytes, registration: true, ..Caps::default() };
    let mut facts = Facts::new([Costs::ethernet(); 2], [&caps; 2], 1, eager_bytes);
    facts.keep(keeps);
    let Rates { switch_ns, crowding, .. } = Rates::HOST;
    Rates::of(&facts, Distance::Network, Cores { count: u32::MAX, switch_ns, crowding, reduce: 1.0 })
}

/// Numbers that make up rates.
const NUMBERS: usize = 11 + 6 * LEVELS;

impl Rates {
    fn text(&self) -> String {
        let flag = f64::from(u8::from(self.single_copy));
        let link = [self.latency_ns, self.overhead_ns, self.receive_ns, self.gap_ns];
        let machine = [self.switch_ns, self.crowding, f64::from(self.cores), flag];
        let long = [self.eager_bytes, self.handshake_ns, f64::from(self.ends)];
        let levels =
            self.levels.iter().flat_map(|l| [l.up_to_bytes, l.link, l.short, l.busy, l.reduce, l.copy]);
        let numbers = link.into_iter().chain(machine).chain(long).chain(levels);
        numbers.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
    }

    fn parse(text: &str) -> Option<Rates> {
        let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.parse().ok()).collect();
        let numbers = numbers?;
        let is_right = numbers.iter().all(|number| number.is_finite() && *number >= 0.0);
        if numbers.len() != NUMBERS || !is_right {
            return None;
        }
        let (cores, flag) = (numbers[6], numbers[7]);
        let is_whole = cores >= 1.0 && cores <= f64::from(u32::MAX) && cores.fract() == 0.0;
        let level = |at: usize| {
            let [up_to_bytes, link, short, busy, reduce, copy] =
                std::array::from_fn(|field| numbers[11 + 6 * at + field]);
            Level { up_to_bytes, link, short, busy, reduce, copy }
        };
        let ends = numbers[10];
        (is_whole && [0.0, 1.0].contains(&flag) && [1.0, 2.0].contains(&ends)).then(|| Rates {
            latency_ns: numbers[0],
            overhead_ns: numbers[1],
            receive_ns: numbers[2],
            gap_ns: numbers[3],
            switch_ns: numbers[4],
            crowding: numbers[5],
            eager_bytes: numbers[8],
            handshake_ns: numbers[9],
            cores: cores as u32,
            ends: ends as u32,
            single_copy: flag == 1.0,
            levels: std::array::from_fn(level),
        })
    }
}

/// What all ranks of a job go by.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreed {
    /// What messages of collectives cost.
    pub tariff: Tariff,
    /// Ranks, each on another host, between which and rank 0 the link is measured when the job ends.
    pub measured: Vec<usize>,
}

/// What rank 0 tells the others at the start, so that all choose alike: rates as it sees them, which the others
/// adopt, the algorithms its settings force, and what they say of windows, which must be theirs too.
pub fn agreement(settings: &Settings, agreed: &Agreed) -> String {
    let Tariff { host, network, source } = &agreed.tariff;
    let mut text = format!("host={} network={} source={}", host.text(), network.text(), source.name());
    if !agreed.measured.is_empty() {
        let ranks: Vec<String> = agreed.measured.iter().map(usize::to_string).collect();
        text += &format!(" measured={}", ranks.join(","));
    }
    for name in agreed_settings().filter(|name| settings.text(name) != "auto") {
        text += &format!(" {name}={}", settings.text(name));
    }
    text
}

/// What to go by on rank `me`, which is told rank 0's [`agreement`].
pub fn agreed(text: &str, settings: &Settings, me: usize) -> Result<Agreed, String> {
    let malformed = || format!("rank 0 published `{text}`, which says nothing of its collectives");
    let words: Option<Vec<(&str, &str)>> = text.split(' ').map(|word| word.split_once('=')).collect();
    let words = words.ok_or_else(malformed)?;
    let given = |name: &str| words.iter().find(|word| word.0 == name).map(|word| word.1);
    for name in agreed_settings() {
        let (here, there) = (settings.text(name), given(name).unwrap_or("auto"));
        if here != there {
            return Err(format!(
                "setting {name} is `{here}` on rank {me} and `{there}` on rank 0: it must be the same on all ranks"
            ));
        }
    }
    let known = |word: &(&str, &str)| {
        ["host", "network", "source", "measured"].contains(&word.0)
            || agreed_settings().any(|name| name == word.0)
    };
    let rates = |name| given(name).and_then(Rates::parse);
    let source = [Source::Assumed, Source::Kept].into_iter().find(|s| given("source") == Some(s.name()));
    let ranks = |text: &str| text.split(',').map(|rank| rank.parse().ok()).collect::<Option<Vec<usize>>>();
    let measured = given("measured").map_or(Some(Vec::new()), ranks);
    match (rates("host"), rates("network"), source, measured) {
        (Some(host), Some(network), Some(source), Some(measured)) if words.iter().all(known) => {
            Ok(Agreed { tariff: Tariff { host, network, source }, measured })
        }
        _ => Err(malformed()),
    }
}

fn agreed_settings() -> impl Iterator<Item = &'static str> {
    let is_agreed = |name: &&str| name.starts_with("TERN_COLL_") || *name == "TERN_WIN";
    fabric::settings::ALL.iter().map(|setting| setting.name).filter(is_agreed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ranks_must_agree_on_is_compared_by_name() {
        let settings = |word: &str| {
            let lookup = |name: &str| (name == "TERN_COLL_BCAST").then(|| word.to_string());
            Settings::read(lookup, std::iter::empty()).unwrap()
        };
        let host = Rates { cores: 2, single_copy: false, latency_ns: 123.4, ..Rates::HOST };
        let tariff = Tariff { host, source: Source::Kept, ..Tariff::default() };
        let rank0 = Agreed { tariff, measured: vec![4, 8] };
        let text = agreement(&settings("chain"), &rank0);
        assert_eq!(agreed(&text, &settings("chain"), 3), Ok(rank0.clone()));
        let error = agreed(&text, &settings("auto"), 3).unwrap_err();
        assert!(error.contains("TERN_COLL_BCAST is `auto` on rank 3 and `chain` on rank 0"), "{error}");
        let text = agreement(&settings("auto"), &rank0);
        assert!(agreed(&text, &settings("linear"), 1).unwrap_err().contains("`linear` on rank 1"));
        let good = Rates::HOST.text();
        for bad in [
            String::new(),
            "host".into(),
            format!("host={good}"),
            format!("host={good} network={good}"),
            format!("host={good} network={good} source=guessed"),
            format!("host={good} network={good},1 source=kept"),
            format!("host={good} network={good} source=kept measured=4,x"),
            format!("host={good} network={good} source=kept TERN_COLL_X=ring"),
            format!("host={good} network={} source=kept", good.replace(&u32::MAX.to_string(), "0")),
            format!("host={good} network={} source=kept", good.replace("120", "inf")),
        ] {
            assert!(agreed(&bad, &settings("auto"), 1).is_err(), "{bad}");
        }
    }
}
