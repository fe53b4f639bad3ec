//! Graph topologies (MPI 5.0 section 8.5).

use mpi::comm::COMM_NULL;
use mpi::error::Result;
use mpi::group::UNDEFINED;
use mpi::handle::Handle;
use mpi::topo::{Graph, Topology};

use super::{Agreed, agree, fits, make, order, room, store};
use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;

/// Reads the arguments that describe a graph.
fn read(cx: &Cx, comm: Handle, nnodes: usize, index: Array<i32>, edges: Array<i32>) -> Result<Graph> {
    let room = room(cx, comm)?;
    // SAFETY: MPI says the array has `nnodes` elements; it is copied.
    let index = unsafe { index.slice(nnodes)? };
    let count = Graph::edges_of(index, room)?;
    // SAFETY: MPI says the last element of `index` is the number of edges.
    Graph::new(index, unsafe { edges.slice(count)? })
}

/// What a query asks of the graph of a communicator.
fn with<R>(cx: &Cx, comm: Handle, f: impl FnOnce(&Graph) -> Result<R>) -> Result<R> {
    f(mpi::topo::graph(cx.world().comm(comm)?.topology())?)
}

/// `MPI_Graph_create`.
pub fn create(
    cx: &Cx,
    comm: Handle,
    nnodes: usize,
    index: Array<i32>,
    edges: Array<i32>,
    reorder: bool,
    newcomm: Out<Handle>,
) -> Result {
    newcomm.set(COMM_NULL);
    let graph = read(cx, comm, nnodes, index, edges)?;
    let agreed = agree(cx, comm, reorder, ("graph", &graph.index, &graph.edges))?;
    let order = order(cx, comm, graph.size(), &agreed, || graph.pairs())?;
    make(cx, comm, &agreed.contexts, &order, || Topology::Graph(graph), newcomm)
}

/// `MPI_Graph_map`.
pub fn map(
    cx: &Cx,
    comm: Handle,
    nnodes: usize,
    index: Array<i32>,
    edges: Array<i32>,
    newrank: Out<i32>,
) -> Result {
    let graph = read(cx, comm, nnodes, index, edges)?;
    let order = order(cx, comm, graph.size(), &Agreed::nothing(graph.size()), || graph.pairs())?;
    let me = cx.world().comm(comm)?.place.rank;
    newrank.set(order.iter().position(|rank| *rank == me).map_or(UNDEFINED, |node| node as i32));
    Ok(())
}

/// `MPI_Graphdims_get`.
pub fn dims(cx: &Cx, comm: Handle, nnodes: Out<i32>, nedges: Out<i32>) -> Result {
    with(cx, comm, |graph| {
        nnodes.set(graph.index.len() as i32);
        nedges.set(graph.edges.len() as i32);
        Ok(())
    })
}

/// `MPI_Graph_get`.
pub fn get(
    cx: &Cx,
    comm: Handle,
    maxindex: usize,
    maxedges: usize,
    index: Array<i32>,
    edges: Array<i32>,
) -> Result {
    with(cx, comm, |graph| {
        fits(maxindex, graph.index.len(), "maxindex")?;
        fits(maxedges, graph.edges.len(), "maxedges")?;
        store(index, &graph.index)?;
        store(edges, &graph.edges)
    })
}

/// `MPI_Graph_neighbors_count`.
pub fn neighbors_count(cx: &Cx, comm: Handle, rank: i32, nneighbors: Out<i32>) -> Result {
    nneighbors.set(with(cx, comm, |graph| Ok(graph.neighbors_of(rank)?.len()))? as i32);
    Ok(())
}

/// `MPI_Graph_neighbors`.
pub fn neighbors(cx: &Cx, comm: Handle, rank: i32, maxneighbors: usize, neighbors: Array<i32>) -> Result {
    with(cx, comm, |graph| {
        let found = graph.neighbors_of(rank)?;
        fits(maxneighbors, found.len(), "maxneighbors")?;
        store(neighbors, found)
    })
}
