//! What goes wrong in a simulation, by chance from its seed or as told.

use fabric::Rank;

use crate::cluster::Datagram;

/// Faults of a run; the default is none.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Probability that a message is late. What one queue pair carries stays in order.
    pub delay: f64,
    /// By how much at most.
    pub delay_ns: u64,
    /// Probability, for each post, that the rank then loses its processor.
    pub stall: f64,
    /// For how long at most.
    pub stall_ns: u64,
    /// Who dies when, in nanoseconds.
    pub deaths: Vec<(Rank, u64)>,
    /// What happens to datagrams, instead of what the cluster says.
    pub datagram: Option<Datagram>,
}
