//! What a message of a collective carries to be told apart: which run it belongs to, which
//! collective the sender is in, by which algorithm, and with which root.
//!
//! Matching by run and sender would be enough. The rest is carried so that a program in which one
//! rank is in Bcast while another is in Reduce, or in which counts differ so that ranks choose
//! different algorithms, can be told so instead of receiving nonsense or waiting for ever.
use super::cost::Algorithm;
use crate::error::{Class, Error};

/// The collectives (MPI 5.0 chapter 6, and section 8.6 along the edges of a topology) and internal uses of schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Collective {
    /// `MPI_Barrier`
    Barrier,
    /// `MPI_Bcast`
    Bcast,
    /// `MPI_Gather`
    Gather,
    /// `MPI_Gatherv`
    Gatherv,
    /// `MPI_Scatter`
    Scatter,
    /// `MPI_Scatterv`
    Scatterv,
    /// `MPI_Allgather`
    Allgather,
    /// `MPI_Allgatherv`
    Allgatherv,
    /// `MPI_Alltoall`
    Alltoall,
    /// `MPI_Alltoallv`
    Alltoallv,
    /// `MPI_Alltoallw`
    Alltoallw,
    /// `MPI_Reduce`
    Reduce,
    /// `MPI_Allreduce`
    Allreduce,
    /// `MPI_Reduce_scatter_block`
    ReduceScatterBlock,
    /// `MPI_Reduce_scatter`
    ReduceScatter,
    /// `MPI_Scan`
    Scan,
    /// `MPI_Exscan`
    Exscan,
    /// `MPI_Neighbor_allgather`
    NeighborAllgather,
    /// `MPI_Neighbor_allgatherv`
    NeighborAllgatherv,
    /// `MPI_Neighbor_alltoall`
    NeighborAlltoall,
    /// `MPI_Neighbor_alltoallv`
    NeighborAlltoallv,
    /// `MPI_Neighbor_alltoallw`
    NeighborAlltoallw,
}

impl Collective {
    /// The collectives among all ranks, in the order of their numbers: those that have a choice of algorithms.
    pub const ALL: [Collective; 17] = [
        Collective::Barrier,
        Collective::Bcast,
        Collective::Gather,
        Collective::Gatherv,
        Collective::Scatter,
        Collective::Scatterv,
        Collective::Allgather,
        Collective::Allgatherv,
        Collective::Alltoall,
        Collective::Alltoallv,
        Collective::Alltoallw,
        Collective::Reduce,
        Collective::Allreduce,
        Collective::ReduceScatterBlock,
        Collective::ReduceScatter,
        Collective::Scan,
        Collective::Exscan,
    ];

    /// The collectives along the edges of a topology, whose numbers follow.
    pub const NEIGHBOR: [Collective; 5] = [
        Collective::NeighborAllgather,
        Collective::NeighborAllgatherv,
        Collective::NeighborAlltoall,
        Collective::NeighborAlltoallv,
        Collective::NeighborAlltoallw,
    ];

    /// Whether its calls name a root.
    pub fn is_rooted(self) -> bool {
        use Collective::{Bcast, Gather, Gatherv, Reduce, Scatter, Scatterv};
        matches!(self, Bcast | Gather | Gatherv | Reduce | Scatter | Scatterv)
    }

    /// The MPI name without its prefix.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Barrier => "Barrier",
            Collective::Bcast => "Bcast",
            Collective::Gather => "Gather",
            Collective::Gatherv => "Gatherv",
            Collective::Scatter => "Scatter",
            Collective::Scatterv => "Scatterv",
            Collective::Allgather => "Allgather",
            Collective::Allgatherv => "Allgatherv",
            Collective::Alltoall => "Alltoall",
            Collective::Alltoallv => "Alltoallv",
            Collective::Alltoallw => "Alltoallw",
            Collective::Reduce => "Reduce",
            Collective::Allreduce => "Allreduce",
            Collective::ReduceScatterBlock => "Reduce_scatter_block",
            Collective::ReduceScatter => "Reduce_scatter",
            Collective::Scan => "Scan",
            Collective::Exscan => "Exscan",
            Collective::NeighborAllgather => "Neighbor_allgather",
            Collective::NeighborAllgatherv => "Neighbor_allgatherv",
            Collective::NeighborAlltoall => "Neighbor_alltoall",
            Collective::NeighborAlltoallv => "Neighbor_alltoallv",
            Collective::NeighborAlltoallw => "Neighbor_alltoallw",
        }
    }
}

/// The tag of all messages of one run of one collective on one communicator: from the top, whether
/// it is persistent, the run, the root (its low bits), the algorithm, the kind.
///
/// Runs are numbered by the order of calls on the communicator, which MPI requires to be the same
/// on all ranks. A persistent collective takes its number when it is initialised, because its
/// starts need not come in the same order everywhere; it counts separately, so that the numbers of
/// long-lived operations are not met again when the counter of the others wraps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(i32);

const KIND_BITS: u32 = 5;
const ALGORITHM_BITS: u32 = 5;
const ROOT_BITS: u32 = 4;
const RUN_BITS: u32 = 16;
const ROOT: u32 = KIND_BITS + ALGORITHM_BITS;
const RUN: u32 = ROOT + ROOT_BITS;
const PERSISTENT: i32 = 1 << (RUN + RUN_BITS);

impl Tag {
    /// The tag of run number `run` (counted per communicator, wraps).
    pub fn new(kind: Collective, run: u32, persistent: bool) -> Tag {
        let run = (run & ((1 << RUN_BITS) - 1)) as i32;
        Tag(run << RUN | kind as i32 | if persistent { PERSISTENT } else { 0 })
    }

    /// With how this rank runs it. Ranks need not agree on the algorithm where it is `None`.
    pub fn signed(self, algorithm: Option<Algorithm>, root: Option<u32>) -> Tag {
        let plain = self.0 & !((1 << RUN) - (1 << KIND_BITS));
        let algorithm = algorithm.map_or(0, |a| a as i32 + 1);
        let root = (root.unwrap_or(0) & ((1 << ROOT_BITS) - 1)) as i32;
        Tag(plain | root << ROOT | algorithm << KIND_BITS)
    }

    pub(super) fn idle(kind: Collective) -> Tag {
        Tag::new(kind, 0, false)
    }

    /// As the integer that goes into an envelope; never negative.
    pub fn value(self) -> i32 {
        self.0
    }

    /// The tag with this envelope value, unless it is not one of a collective.
    pub fn from_value(value: i32) -> Option<Tag> {
        let tag = Tag(value);
        if value >= 0 && tag.kind().is_some() { Some(tag) } else { None }
    }

    /// Which collective.
    pub fn kind(self) -> Option<Collective> {
        let number = (self.0 & ((1 << KIND_BITS) - 1)) as usize;
        Collective::ALL
            .get(number)
            .or_else(|| Collective::NEIGHBOR.get(number - Collective::ALL.len()))
            .copied()
    }

    /// Whether it is that of a persistent collective.
    pub fn is_persistent(self) -> bool {
        self.0 & PERSISTENT != 0
    }

    /// The number of the run.
    pub fn run(self) -> u32 {
        (self.0 >> RUN) as u32 & ((1 << RUN_BITS) - 1)
    }

    /// Why a message tagged `found` from `peer` and a receive for `self` can never belong
    /// together, though both are the same run of the same communicator: for the transport to
    /// report when it sees the two side by side.
    pub fn conflict(self, found: Tag, peer: &str) -> Option<Error> {
        if self == found || self.0 >> RUN != found.0 >> RUN {
            return None;
        }
        let (mine, theirs) = (self.kind()?.name(), found.kind()?.name());
        Some(if mine != theirs {
            Error::new(
                Class::NOT_SAME,
                format!(
                    "this rank is in {mine} where {peer} is in {theirs}: collectives must be called in the same order"
                ),
            )
        } else if self.0 >> ROOT != found.0 >> ROOT {
            Error::new(Class::NOT_SAME, format!("{peer} named another root in this {mine}"))
        } else {
            Error::new(
                Class::TRUNCATE,
                format!(
                    "{peer} runs this {mine} by another algorithm: its count, datatype or operation differs from this rank's"
                ),
            )
        })
    }
}

/// The kind that no collective has.
const NOTICE: i32 = (1 << KIND_BITS) - 1;

/// The tag of the empty message that says that a member of a communicator is lost, by its number among all whom
/// collectives join there: no other message and no receive has it.
pub fn notice(lost: u32) -> i32 {
    (lost << KIND_BITS & i32::MAX as u32) as i32 | NOTICE
}

/// Who is lost, if a message with this tag says so.
pub fn noticed(value: i32) -> Option<u32> {
    (value >= 0 && value & NOTICE == NOTICE).then_some(value as u32 >> KIND_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_and_conflict_only_within_a_run() {
        for (i, kind) in Collective::ALL.into_iter().chain(Collective::NEIGHBOR).enumerate() {
            assert_eq!(kind as usize, i);
            for run in [0, 1, (1 << RUN_BITS) - 1] {
                for persistent in [false, true] {
                    let tag = Tag::new(kind, run, persistent);
                    assert_eq!(Tag::from_value(tag.value()), Some(tag));
                    assert_eq!((tag.kind(), tag.run()), (Some(kind), run));
                }
            }
        }
        let last = Tag::new(Collective::Exscan, (1 << RUN_BITS) - 1, true);
        let signed = last.signed(Some(Algorithm::Pairwise), Some(u32::MAX));
        assert!(signed.value() >= 0 && signed != last && signed.is_persistent());
        assert_eq!((signed.kind(), signed.run()), (last.kind(), last.run()));
        assert_eq!(signed.signed(None, None), last);
        assert_eq!(Tag::new(Collective::Scan, 1 << RUN_BITS, false), Tag::new(Collective::Scan, 0, false));
        let bcast = Tag::new(Collective::Bcast, 7, false);
        let other = bcast.conflict(Tag::new(Collective::Reduce, 7, false), "rank 3").unwrap();
        assert!(other.text.contains("rank 3 is in Reduce"));
        let chain = bcast.signed(Some(Algorithm::Chain), Some(2));
        assert_eq!(
            bcast.signed(Some(Algorithm::Ring), Some(2)).conflict(chain, "rank 1").unwrap().class,
            Class::TRUNCATE
        );
        assert!(
            bcast
                .signed(Some(Algorithm::Chain), Some(3))
                .conflict(chain, "rank 1")
                .unwrap()
                .text
                .contains("another root")
        );
        assert_eq!(bcast.conflict(Tag::new(Collective::Reduce, 8, false), "rank 3"), None);
        assert_eq!(bcast.conflict(Tag::new(Collective::Reduce, 7, true), "rank 3"), None);
        assert_eq!(Tag::from_value(31), None);
        for lost in [0, 1, 12345, (1 << 26) - 1] {
            assert_eq!((noticed(notice(lost)), Tag::from_value(notice(lost))), (Some(lost), None));
        }
        assert_eq!(noticed(last.value()), None);
    }
}
