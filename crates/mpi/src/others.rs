//! Processes of other jobs: peers whose numbers are behind those of the job's ranks, in the order in which this process
//! has got to know them. No other process has the same numbers for them.

use std::collections::BTreeSet;

use crate::coll::{Forced, Rates, Spread, State, Tariff};
use crate::comm::{Comm, Place};
use crate::world::World;
use fabric::Device;

impl<D: Device> World<D> {
    /// One of processes of several jobs, which choose the same algorithms because they look at nothing that one of
    /// these jobs alone knows.
    pub(crate) fn new_mixed_comm(&self, place: Place) -> Comm {
        let host = Rates { cores: 1, ..Rates::HOST };
        let tariff = Tariff { host, ..Tariff::default() };
        let mut comm = Comm::new(place, State::new(tariff, Forced::default(), Spread::OneHost));
        comm.coll.spread = Spread::of(comm.crowd.peers_size() as usize, |number| number as u32);
        comm
    }

    /// Number of ranks of the job.
    pub fn job_size(&self) -> u32 {
        self.job_size
    }

    /// Processes of other jobs become peers: contexts are random from here on, for those of ranks are their job's alone.
    pub fn meet_others(&mut self, seed: u64) {
        self.random.get_or_insert(seed);
    }

    /// Processes of other jobs that are members of a communicator and are still there.
    pub fn others(&self) -> BTreeSet<u32> {
        let comms = self.objects.comms.iter();
        let members = comms.flat_map(|(_, comm)| comm.place.mine.iter().chain(comm.place.peers.iter()));
        let is_lost = |process: u32| self.engine.is_there(process as usize).is_err();
        members.filter(|process| *process >= self.job_size && !is_lost(*process)).collect()
    }

    /// What to call a process that may be one of another job.
    pub fn name_of(&self, process: u32) -> String {
        match process < self.job_size {
            true => format!("rank {process} of MPI_COMM_WORLD"),
            false => "a rank of a joined job".into(),
        }
    }

    /// Whether peers have been lost since this was asked.
    #[inline]
    pub fn has_losses(&mut self) -> bool {
        let lost = self.engine.lost().len();
        std::mem::replace(&mut self.parted, lost) != lost
    }

    /// A context of this process alone, if there are processes of other jobs: 61 random bits, and a bit above all
    /// contexts of jobs.
    pub(crate) fn mixed_context(&mut self) -> Option<u64> {
        self.random.as_mut().map(|state| 1 << 61 | mixed(state) >> 3)
    }
}

/// The next number of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mixed(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_paper() {
        let mut state = 1234567;
        assert_eq!(
            [0; 3].map(|_| mixed(&mut state)),
            [6457827717110365317, 3203168211198807973, 9817491932198370423]
        );
    }
}
