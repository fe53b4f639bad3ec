//! Who waits for whom.
use crate::report::Pending;

/// What is known about one rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The rank in the job.
    pub rank: usize,
    /// What it does.
    pub state: State,
}

/// What a rank does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It has operations that are not complete.
    Pending {
        /// The operations, in the order in which they began.
        operations: Vec<Pending>,
        /// How many more there are.
        left_out: u64,
    },
    /// It is inside MPI with nothing pending.
    Idle,
    /// It did not answer; the text says what else is known.
    Silent(String),
    /// Its process has ended.
    Ended,
}

/// Lines
pub fn graph(reports: &[Report]) -> Vec<String> {
    reports.iter().map(|r| format!("rank {}: {:?}", r.rank, r.state)).collect()
}
