//! Virtual topologies (MPI 5.0 chapter 8): who is next to whom in a communicator, as values that know
//! nothing of messages. [`crate::coll::neighbor`] moves data along their edges.

pub mod cart;
pub mod dims;
pub mod dist;
pub mod graph;
pub mod reorder;

pub use cart::Cart;
pub use dims::dims_create;
pub use dist::Dist;
pub use graph::Graph;

use crate::error::{Class, Result, fail};
use crate::group::UNDEFINED;

/// The topology of a communicator.
#[derive(Clone, Debug, PartialEq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that every rank knows.
    Graph(Graph),
    /// A graph of which every rank knows its own edges.
    Dist(Dist),
}

/// With whom a rank speaks in a neighbourhood collective, in the order of the blocks of its buffers; `None` is
/// a neighbour that is not there (`MPI_PROC_NULL`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbors {
    /// Where the blocks of the receive buffer come from.
    pub sources: Vec<Option<u32>>,
    /// Where the blocks of the send buffer go.
    pub destinations: Vec<Option<u32>>,
    /// Whether the two directions of a dimension lie side by side: then what leaves towards one side arrives
    /// from the other (MPI 5.0 section 8.6.2), which tells the edges apart where both sides are one process.
    pub paired: bool,
}

impl Topology {
    /// What `MPI_Topo_test` says of it.
    pub fn kind(&self) -> i32 {
        match self {
            Topology::Cart(_) => 211,
            Topology::Graph(_) => 212,
            Topology::Dist(_) => 213,
        }
    }

    /// What `MPI_Topo_test` says of a communicator.
    pub fn kind_of(topology: Option<&Topology>) -> i32 {
        topology.map_or(UNDEFINED, Topology::kind)
    }

    /// The neighbours of `rank`, which is this process.
    pub fn neighbors(&self, rank: u32) -> Neighbors {
        match self {
            Topology::Cart(cart) => {
                let around = cart.neighbors(rank);
                Neighbors { sources: around.clone(), destinations: around, paired: true }
            }
            Topology::Graph(graph) => {
                let around: Vec<_> = graph.neighbors(rank).iter().map(|at| Some(*at as u32)).collect();
                Neighbors { sources: around.clone(), destinations: around, paired: false }
            }
            Topology::Dist(dist) => {
                let some = |ranks: &[i32]| ranks.iter().map(|rank| u32::try_from(*rank).ok()).collect();
                Neighbors {
                    sources: some(&dist.sources),
                    destinations: some(&dist.destinations),
                    paired: false,
                }
            }
        }
    }
}

impl Neighbors {
    /// The blocks of the receive buffer in the order in which messages fill them that leave in the order of the
    /// send buffer, seen from each pair of processes.
    pub fn receive_order(&self) -> impl Iterator<Item = usize> {
        let swapped = usize::from(self.paired);
        (0..self.sources.len()).map(move |i| i ^ swapped)
    }
}

/// The grid of a communicator.
pub fn cart(topology: Option<&Topology>) -> Result<&Cart> {
    match topology {
        Some(Topology::Cart(cart)) => Ok(cart),
        other => refuse(other, "Cartesian"),
    }
}

/// The graph of a communicator.
pub fn graph(topology: Option<&Topology>) -> Result<&Graph> {
    match topology {
        Some(Topology::Graph(graph)) => Ok(graph),
        other => refuse(other, "graph"),
    }
}

/// The distributed graph of a communicator.
pub fn dist(topology: Option<&Topology>) -> Result<&Dist> {
    match topology {
        Some(Topology::Dist(dist)) => Ok(dist),
        other => refuse(other, "distributed graph"),
    }
}

#[cold]
fn refuse<T>(found: Option<&Topology>, wanted: &str) -> Result<T> {
    let found = match found {
        None => "no topology",
        Some(Topology::Cart(_)) => "a Cartesian one",
        Some(Topology::Graph(_)) => "a graph one",
        Some(Topology::Dist(_)) => "a distributed graph one",
    };
    fail(Class::TOPOLOGY, format!("argument `comm` has {found}, a {wanted} topology is needed"))
}

/// A rank that an argument names as the end of an edge.
pub(crate) fn end(rank: i32, size: u32, arg: &str, at: usize) -> Result<i32> {
    match u32::try_from(rank) {
        Ok(known) if known < size => Ok(rank),
        _ => fail(
            Class::RANK,
            format!("argument `{arg}`[{at}] is {rank}, the communicator has ranks 0 to {}", size - 1),
        ),
    }
}

/// A rank of which a query asks.
pub(crate) fn member(rank: i32, size: u32) -> Result<u32> {
    match u32::try_from(rank) {
        Ok(known) if known < size => Ok(known),
        _ => fail(
            Class::RANK,
            format!("argument `rank` is {rank}, the communicator has ranks 0 to {}", size - 1),
        ),
    }
}
