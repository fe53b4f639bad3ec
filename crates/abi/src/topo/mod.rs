//! MPI 5.0 chapter 8: virtual topologies. Creating one is making a communicator of the processes that carry its
//! nodes, whose contexts are exchanged as for a split.

pub mod cart;
pub mod dist;
pub mod graph;
mod near;
pub mod neighbor;

use std::hash::{DefaultHasher, Hash, Hasher};

use fabric::Device;
use mpi::comm::COMM_NULL;
use mpi::error::{Class, Result, fail};
use mpi::group::Group;
use mpi::handle::Handle;
use mpi::topo::{Topology, reorder};

use crate::coll::run;
use crate::comm::among;
use crate::cx::Cx;
use crate::kind::array::Array;
use crate::kind::output::Out;

/// `MPI_Topo_test`.
pub fn test(cx: &Cx, comm: Handle, status: Out<i32>) -> Result {
    status.set(Topology::kind_of(cx.world().comm(comm)?.topology()));
    Ok(())
}

/// `MPI_Dims_create`.
pub fn dims_create(_: &Cx, nnodes: usize, ndims: usize, dims: Array<i32>) -> Result {
    // SAFETY: MPI says the array has `ndims` elements.
    mpi::topo::dims_create(nnodes as i32, unsafe { dims.slice_mut(ndims)? })
}

/// Number of ranks of a communicator that may get a topology: one with a single group.
fn room(cx: &Cx, comm: Handle) -> Result<u32> {
    let world = cx.world();
    let place = &world.comm(comm)?.place;
    if place.is_inter() {
        return fail(
            Class::COMM,
            "argument `comm_old` is an intercommunicator, which cannot have a topology",
        );
    }
    Ok(place.size())
}

/// What all ranks of a communicator have told each other about a new topology.
struct Agreed {
    /// A context from each.
    contexts: Vec<u64>,
    /// The cache of each, where the program leaves it to the library who carries which node.
    caches: Option<Vec<u64>>,
}

impl Agreed {
    /// For who asks alone who would carry which node (`MPI_Cart_map`): of caches nothing is known.
    fn nothing(nodes: u32) -> Agreed {
        Agreed { contexts: Vec::new(), caches: Some(vec![near::UNKNOWN; nodes as usize]) }
    }
}

/// Which ranks of `comm` carry the nodes of a graph: those of the same number, unless the program leaves that to the
/// library.
fn order(
    cx: &Cx,
    comm: Handle,
    nodes: u32,
    agreed: &Agreed,
    edges: impl FnOnce() -> Vec<(u32, u32)>,
) -> Result<Vec<u32>> {
    Ok(match places(cx, comm, nodes, agreed)? {
        Some(places) => {
            let edges: Vec<reorder::Edge> = edges().into_iter().map(|(a, b)| (a, b, 1)).collect();
            reorder::order(&places, &edges)
        }
        None => (0..nodes).collect(),
    })
}

/// Where the first ranks of `comm` are, if that is known and somebody asks for it.
fn places(cx: &Cx, comm: Handle, ranks: u32, agreed: &Agreed) -> Result<Option<Vec<reorder::Place>>> {
    let Some(caches) = &agreed.caches else { return Ok(None) };
    let hosts = hosts(cx, comm, ranks)?;
    Ok(hosts.map(|hosts| hosts.into_iter().zip(caches.iter().copied()).collect()))
}

/// The hosts of the first ranks of `comm`, by numbers; `None` where that is not known.
fn hosts(cx: &Cx, comm: Handle, ranks: u32) -> Result<Option<Vec<u32>>> {
    let world = cx.world();
    let members = &world.comm(comm)?.place.mine;
    let Some(hosts) = world.engine.device().hosts() else { return Ok(None) };
    let host = |rank| hosts.get(members.world_rank(rank) as usize).copied();
    // Of processes of other jobs nothing is known.
    Ok((0..ranks).map(host).collect())
}

/// What each rank tells, once all have said that they ask for the same.
fn agree(cx: &Cx, comm: Handle, reorder: bool, asked: impl Hash) -> Result<Agreed> {
    let mut hasher = DefaultHasher::new();
    (reorder, asked).hash(&mut hasher);
    let (asked, context) = (hasher.finish(), cx.world().new_context());
    let cache = if reorder { near::cache() } else { 0 };
    let all = run::exchange_words(cx, comm, [asked, context, cache])?;
    match all.iter().position(|[theirs, ..]| *theirs != asked) {
        None => {
            let caches = reorder.then(|| all.iter().map(|[.., cache]| *cache).collect());
            Ok(Agreed { contexts: all.into_iter().map(|[_, context, _]| context).collect(), caches })
        }
        Some(rank) => fail(
            Class::NOT_SAME,
            format!(
                "rank {rank} gave other arguments: those that describe the topology must be the same everywhere"
            ),
        ),
    }
}

/// Makes the communicator of a topology; node `i` is rank `order[i]` of `comm`.
fn make(
    cx: &Cx,
    comm: Handle,
    contexts: &[u64],
    order: &[u32],
    topology: impl FnOnce() -> Topology,
    newcomm: Out<Handle>,
) -> Result {
    let parent = cx.world().comm(comm)?.place.mine.clone();
    let members: Vec<u32> = order.iter().map(|rank| parent.world_rank(*rank)).collect();
    let new = among(cx, comm, Group::from_ranks(members), contexts)?;
    if new != COMM_NULL {
        cx.world().comm_mut(new)?.arrange(topology());
    }
    newcomm.set(new);
    Ok(())
}

/// Checks that an array of results has room for all.
fn fits(room: usize, needed: usize, arg: &str) -> Result {
    if room < needed {
        return fail(Class::ARG, format!("argument `{arg}` is {room}, the topology has {needed}"));
    }
    Ok(())
}

/// Stores results in an array of the application, which has room for them.
fn store(array: Array<i32>, values: &[i32]) -> Result {
    // SAFETY: MPI says the array has at least as many elements as the caller has looked at.
    unsafe { array.slice_mut(values.len())? }.copy_from_slice(values);
    Ok(())
}
