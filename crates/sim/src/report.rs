//! What a simulation was.

use crate::message::Opcode;
use crate::queue::Ps;
use crate::trace::Trace;

/// How a rank ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome<R> {
    /// Its program returned.
    Ended(R),
    /// A fault ended it.
    Died,
    /// It waited for something that never came.
    Stuck,
}

impl<R> Outcome<R> {
    /// What the program returned.
    pub fn ended(self) -> Option<R> {
        if let Outcome::Ended(value) = self { Some(value) } else { None }
    }
}

/// What happened, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Sends posted.
    pub sends: u64,
    /// Datagrams posted.
    pub datagrams: u64,
    /// RDMA writes posted.
    pub writes: u64,
    /// RDMA reads posted.
    pub reads: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Messages that reached their target's memory.
    pub landed: u64,
    /// Messages that had to wait for a receive buffer.
    pub held: u64,
    /// Messages that ended as a fault.
    pub refused: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Datagrams that came twice.
    pub doubled: u64,
    /// Datagrams that were made late.
    pub reordered: u64,
    /// Datagrams for which there was no receive buffer.
    pub dropped: u64,
    /// Regions registered.
    pub registered: u64,
    /// Regions given back.
    pub deregistered: u64,
    /// Frames through shared memory.
    pub letters: u64,
    /// Bytes copied by ranks.
    pub copied_bytes: u64,
    /// Events handled.
    pub events: u64,
    /// Changes from one rank to another.
    pub switches: u64,
    /// When the last rank ended.
    pub end_ps: Ps,
}

impl Counters {
    /// A message was posted.
    pub fn posted(&mut self, kind: Opcode, len: usize) {
        self.bytes += len as u64;
        let counter = match kind {
            Opcode::Send => &mut self.sends,
            Opcode::Datagram => &mut self.datagrams,
            Opcode::Write => &mut self.writes,
            Opcode::ReadRequest | Opcode::ReadData => &mut self.reads,
        };
        *counter += 1;
    }

    /// Messages posted.
    pub fn messages(&self) -> u64 {
        self.sends + self.datagrams + self.writes + self.reads
    }
}

/// A run and its results.
#[derive(Debug)]
pub struct Report<R> {
    /// When the last rank ended, in virtual nanoseconds.
    pub end_ns: u64,
    /// The same for the same cluster, program and seed.
    pub trace_hash: u64,
    /// What happened.
    pub counters: Counters,
    /// How each rank ended.
    pub results: Vec<Outcome<R>>,
    /// What was drawn, if it was asked for.
    pub trace: Option<Trace>,
}

impl<R> Report<R> {
    /// What the programs returned, or which ranks did not.
    pub fn all(self) -> Result<Vec<R>, String> {
        let lost = |outcome: &Outcome<R>| !matches!(outcome, Outcome::Ended(_));
        let missing: Vec<usize> = self
            .results
            .iter()
            .enumerate()
            .filter(|(_, outcome)| lost(outcome))
            .map(|(rank, _)| rank)
            .collect();
        if !missing.is_empty() {
            return Err(format!("ranks {missing:?} have not ended"));
        }
        Ok(self.results.into_iter().filter_map(Outcome::ended).collect())
    }
}
