//! Distributed graph topologies (MPI 5.0 section 8.5).
#![allow(clippy::too_many_arguments, reason = "they are those of the MPI operations")]

use mpi::comm::COMM_NULL;
use mpi::error::{Class, Error, Result, fail};
use mpi::handle::Handle;
use mpi::topo::dist::{Dist, Edge};
use mpi::topo::{self, Topology, reorder};

use super::{Agreed, agree, make, places, room, store};
use crate::coll::run;
use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;
use crate::layout;

/// `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
const UNWEIGHTED: usize = layout::WEIGHTS[0];
const WEIGHTS_EMPTY: usize = layout::WEIGHTS[1];

/// The weights of `len` edges; `None` if the graph has none.
fn weights<'a>(array: Array<i32>, len: usize, arg: &str) -> Result<Option<&'a [i32]>> {
    match array.address() {
        UNWEIGHTED => Ok(None),
        WEIGHTS_EMPTY if len > 0 => {
            fail(Class::ARG, format!("argument `{arg}` is MPI_WEIGHTS_EMPTY, but there are {len} edges"))
        }
        WEIGHTS_EMPTY => Ok(Some(&[])),
        // SAFETY: MPI says the array has a weight per edge.
        _ => unsafe { array.slice(len).map(Some) },
    }
}

/// `MPI_Dist_graph_create_adjacent`.
pub fn create_adjacent(
    cx: &Cx,
    comm: Handle,
    indegree: usize,
    sources: Array<i32>,
    sourceweights: Array<i32>,
    outdegree: usize,
    destinations: Array<i32>,
    destweights: Array<i32>,
    _info: Handle,
    reorder: bool,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let room = room(cx, comm)?;
    // SAFETY: MPI says the arrays have as many elements as the degrees say; they are copied.
    let (sources, destinations) = unsafe { (sources.slice(indegree)?, destinations.slice(outdegree)?) };
    let sources = (sources, weights(sourceweights, indegree, "sourceweights")?);
    let destinations = (destinations, weights(destweights, outdegree, "destweights")?);
    let dist = Dist::adjacent(sources, destinations, room)?;
    let agreed = agree(cx, comm, reorder, ("adjacent", dist.weights.is_some()))?;
    finish(cx, comm, &agreed, dist, newcomm)
}

/// `MPI_Dist_graph_create`: both ends of each edge are told of it.
pub fn create(
    cx: &Cx,
    comm: Handle,
    n: usize,
    sources: Array<i32>,
    degrees: Array<i32>,
    destinations: Array<i32>,
    given: Array<i32>,
    _info: Handle,
    reorder: bool,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let room = room(cx, comm)?;
    // SAFETY: MPI says both arrays have `n` elements, and `destinations` as many as the degrees say.
    let (sources, degrees) = unsafe { (sources.slice(n)?, degrees.slice(n)?) };
    let count = Dist::edges_of(degrees)?;
    // SAFETY: as above.
    let destinations = unsafe { destinations.slice(count)? };
    let weights = weights(given, count, "weights")?;
    let edges = Dist::edges(sources, degrees, destinations, weights, room)?;
    let agreed = agree(cx, comm, reorder, ("graph", weights.is_some()))?;
    let mut lists = vec![Vec::new(); room as usize];
    for edge in edges {
        lists[edge.from as usize].extend(edge.words());
        if edge.to != edge.from {
            lists[edge.to as usize].extend(edge.words());
        }
    }
    let told = run::exchange_lists(cx, comm, lists.into_iter().collect())?;
    let me = cx.world().comm(comm)?.place.rank;
    let edges = |(rank, list)| Edge::told(list, me, room).ok_or_else(|| malformed(rank));
    let edges = told.iter().enumerate().map(edges).collect::<Result<Vec<_>>>()?;
    let dist = Dist::gathered(me, edges.iter().flatten().copied(), weights.is_some());
    finish(cx, comm, &agreed, dist, newcomm)
}

/// No rank has told what came of this one.
fn malformed(rank: usize) -> Error {
    Error::new(Class::INTERN, format!("what rank {rank} has told of the edges of the graph is malformed"))
}

/// Makes the communicator, of all ranks. Where the program lets the library choose who carries which node, all tell all of their
/// nodes, so that all come to the same order; where all are equally near there is nothing to gain.
fn finish(cx: &Cx, comm: Handle, agreed: &Agreed, dist: Dist, newcomm: Out<Handle>) -> Result {
    let contexts = &agreed.contexts;
    let places = places(cx, comm, contexts.len() as u32, agreed)?;
    let Some(places) = places.filter(|places| places.iter().any(|place| *place != places[0])) else {
        let order: Vec<u32> = (0..contexts.len() as u32).collect();
        return make(cx, comm, contexts, &order, || Topology::Dist(dist), newcomm);
    };
    let told = run::exchange_lists(cx, comm, places.iter().map(|_| dist.to_words()).collect())?;
    let read = |(rank, words)| {
        let size = places.len() as u32;
        Dist::from_words(words, dist.weights.is_some(), size).ok_or_else(|| malformed(rank))
    };
    let mut nodes = told.iter().enumerate().map(read).collect::<Result<Vec<Dist>>>()?;
    let edges: Vec<_> = (0..).zip(&nodes).flat_map(|(number, node)| node.leaving(number)).collect();
    let order = reorder::order(&places, &edges);
    let me = cx.world().comm(comm)?.place.rank;
    let own = order.iter().position(|rank| *rank == me).expect("every rank carries a node");
    make(cx, comm, contexts, &order, || Topology::Dist(nodes.swap_remove(own)), newcomm)
}

/// `MPI_Dist_graph_neighbors_count`.
pub fn neighbors_count(
    cx: &Cx,
    comm: Handle,
    indegree: Out<i32>,
    outdegree: Out<i32>,
    weighted: Out<bool>,
) -> Result {
    let world = cx.world();
    let dist = topo::dist(world.comm(comm)?.topology())?;
    indegree.set(dist.sources.len() as i32);
    outdegree.set(dist.destinations.len() as i32);
    weighted.set(dist.weights.is_some());
    Ok(())
}

/// `MPI_Dist_graph_neighbors`: where an array is shorter than the list, its first part.
pub fn neighbors(
    cx: &Cx,
    comm: Handle,
    maxindegree: usize,
    sources: Array<i32>,
    sourceweights: Array<i32>,
    maxoutdegree: usize,
    destinations: Array<i32>,
    destweights: Array<i32>,
) -> Result {
    let world = cx.world();
    let dist = topo::dist(world.comm(comm)?.topology())?;
    let first = |list: &[i32], room: usize, array| store(array, &list[..list.len().min(room)]);
    first(&dist.sources, maxindegree, sources)?;
    first(&dist.destinations, maxoutdegree, destinations)?;
    let Some([of_sources, of_destinations]) = &dist.weights else { return Ok(()) };
    let wanted = |array: Array<i32>| !matches!(array.address(), UNWEIGHTED | WEIGHTS_EMPTY);
    if wanted(sourceweights) {
        first(of_sources, maxindegree, sourceweights)?;
    }
    if wanted(destweights) {
        first(of_destinations, maxoutdegree, destweights)?;
    }
    Ok(())
}
