//! What a device says its work costs, before anything has been observed: the priors of all facts.
//!
//! A modelled adapter knows from its cluster file, a real one from a measurement at start-up, and a
//! device that knows neither says [`Costs::default`], which observations soon replace.

/// Where a figure comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// Assumed, for lack of anything better.
    #[default]
    Assumed,
    /// From the file of a modelled cluster.
    Cluster,
    /// Measured when the device started.
    StartUp,
    /// Measured by jobs before this one.
    Kept,
    /// Observed on messages of this run.
    Observed,
}

impl Source {
    /// As reports name it.
    pub fn name(self) -> &'static str {
        match self {
            Source::Assumed => "assumed",
            Source::Cluster => "cluster",
            Source::StartUp => "start-up",
            Source::Kept => "kept",
            Source::Observed => "observed",
        }
    }
}

/// How far away a peer is: peers as far away as each other cost the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Distance {
    /// On the same host.
    Host = 0,
    /// Behind an adapter.
    Network = 1,
}

impl Distance {
    /// All of them with the names reports use.
    pub const ALL: [(Distance, &'static str); 2] = [(Distance::Host, "host"), (Distance::Network, "network")];

    /// Its name.
    pub fn name(self) -> &'static str {
        Distance::ALL[self as usize].1
    }
}

/// Levels of the memory hierarchy that copies are told apart by.
pub const COPY_LEVELS: usize = 4;

/// Costs in nanoseconds, and nanoseconds per byte: finite and not negative.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// Where they come from.
    pub source: Source,
    /// λ: from posting a short write to its bytes being seen.
    pub latency_ns: f64,
    /// 1/Bnet of one adapter.
    pub wire_ns_per_byte: f64,
    /// The same for both directions of the adapter together, where that is more than half of it.
    pub bus_ns_per_byte: f64,
    /// g: least time between two messages.
    pub gap_ns: f64,
    /// o: time of the processor to post work and to fetch its completion.
    pub post_ns: f64,
    /// What a read takes longer than a write.
    pub read_ns: f64,
    /// λreg and 1/Breg.
    pub register: (f64, f64),
    /// The same for giving a registration back.
    pub deregister: (f64, f64),
    /// Longest data and 1/Bcopy for it, ascending; the last one has no limit.
    pub copy: [(usize, f64); COPY_LEVELS],
    /// A look into a table of registrations or of buffer usage.
    pub search_ns: f64,
    /// Single copy between two processes of a host: the call with its handshake, and a byte.
    pub single: (f64, f64),
}

impl Costs {
    /// What Tern's own adapter over Ethernet of 10 Gbit/s costs: assumed, with a system call for each message. Memory is
    /// registered by an entry in a table.
    pub fn ethernet() -> Costs {
        Costs {
            latency_ns: 20_000.0,
            wire_ns_per_byte: 0.8,
            gap_ns: 2000.0,
            post_ns: 2000.0,
            read_ns: 20_000.0,
            register: (300.0, 0.0),
            deregister: (200.0, 0.0),
            ..Costs::default()
        }
    }
}

impl Default for Costs {
    /// A host and an adapter of some years ago, rounded: to be replaced by observations.
    fn default() -> Costs {
        Costs {
            source: Source::Assumed,
            latency_ns: 2000.0,
            wire_ns_per_byte: 0.1,
            bus_ns_per_byte: 0.0,
            gap_ns: 300.0,
            post_ns: 200.0,
            read_ns: 2000.0,
            register: (20_000.0, 0.05),
            deregister: (5000.0, 0.01),
            copy: [(32 << 10, 0.08), (256 << 10, 0.1), (8 << 20, 0.15), (usize::MAX, 0.2)],
            search_ns: 40.0,
            single: (2000.0, 0.1),
        }
    }
}
