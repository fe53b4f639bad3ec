//! MPI 5.0, chapter 8 Virtual topologies.

use crate::kind::array::{Aints, Counts, Datatypes, Displs, Ints, IntsOut, Weights, WeightsOut};
use crate::kind::handle::{Comm, Datatype, InfoOrNull};
use crate::kind::output::{CommOut, FlagOut, IntOut, RankOut, RequestOut, TopologyOut};
use crate::kind::scalar::{AnyRank, BufIn, BufOut, Count, Flag, Int, Length};
use crate::table::rows;

rows! { "8 Virtual topologies";
    MPI_Cart_coords(comm: Comm, rank: AnyRank, maxdims: Length, coords: IntsOut) => crate::topo::cart::coords;
    MPI_Cart_create(comm_old: Comm, ndims: Length, dims: Ints, periods: Ints, reorder: Flag,
        comm_cart: CommOut) => crate::topo::cart::create;
    MPI_Cart_get(comm: Comm, maxdims: Length, dims: IntsOut, periods: IntsOut, coords: IntsOut) => crate::topo::cart::get;
    MPI_Cart_map(comm: Comm, ndims: Length, dims: Ints, periods: Ints, newrank: IntOut) => crate::topo::cart::map;
    MPI_Cart_rank(comm: Comm, coords: Ints, rank: IntOut) => crate::topo::cart::rank;
    MPI_Cart_shift(comm: Comm, direction: Int, disp: Int, rank_source: RankOut, rank_dest: RankOut) quick
        => crate::topo::cart::shift;
    MPI_Cart_sub(comm: Comm, remain_dims: Ints, newcomm: CommOut) => crate::topo::cart::sub;
    MPI_Cartdim_get(comm: Comm, ndims: IntOut) => crate::topo::cart::dim;
    MPI_Dims_create(nnodes: Length, ndims: Length, dims: IntsOut) => crate::topo::dims_create;
    MPI_Dist_graph_create(comm_old: Comm, n: Length, sources: Ints, degrees: Ints, destinations: Ints,
        weights: Weights, info: InfoOrNull, reorder: Flag, comm_dist_graph: CommOut) => crate::topo::dist::create;
    MPI_Dist_graph_create_adjacent(comm_old: Comm, indegree: Length, sources: Ints,
        sourceweights: Weights, outdegree: Length, destinations: Ints, destweights: Weights,
        info: InfoOrNull, reorder: Flag, comm_dist_graph: CommOut) => crate::topo::dist::create_adjacent;
    MPI_Dist_graph_neighbors(comm: Comm, maxindegree: Length, sources: IntsOut, sourceweights: WeightsOut,
        maxoutdegree: Length, destinations: IntsOut, destweights: WeightsOut) => crate::topo::dist::neighbors;
    MPI_Dist_graph_neighbors_count(comm: Comm, indegree: IntOut, outdegree: IntOut, weighted: FlagOut)
        => crate::topo::dist::neighbors_count;
    MPI_Graph_create(comm_old: Comm, nnodes: Length, index: Ints, edges: Ints, reorder: Flag,
        comm_graph: CommOut) => crate::topo::graph::create;
    MPI_Graph_get(comm: Comm, maxindex: Length, maxedges: Length, index: IntsOut, edges: IntsOut) => crate::topo::graph::get;
    MPI_Graph_map(comm: Comm, nnodes: Length, index: Ints, edges: Ints, newrank: IntOut) => crate::topo::graph::map;
    MPI_Graph_neighbors(comm: Comm, rank: AnyRank, maxneighbors: Length, neighbors: IntsOut) => crate::topo::graph::neighbors;
    MPI_Graph_neighbors_count(comm: Comm, rank: AnyRank, nneighbors: IntOut) => crate::topo::graph::neighbors_count;
    MPI_Graphdims_get(comm: Comm, nnodes: IntOut, nedges: IntOut) => crate::topo::graph::dims;
    MPI_Ineighbor_allgather(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, request: RequestOut) large => crate::topo::neighbor::iallgather;
    MPI_Ineighbor_allgatherv(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm, request: RequestOut) large
        => crate::topo::neighbor::iallgatherv;
    MPI_Ineighbor_alltoall(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, request: RequestOut) large => crate::topo::neighbor::ialltoall;
    MPI_Ineighbor_alltoallv(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: Datatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm,
        request: RequestOut) large => crate::topo::neighbor::ialltoallv;
    MPI_Ineighbor_alltoallw(sendbuf: BufIn, sendcounts: Counts, sdispls: Aints, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Aints, recvtypes: Datatypes, comm: Comm,
        request: RequestOut) large => crate::topo::neighbor::ialltoallw;
    MPI_Neighbor_allgather(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm) large => crate::topo::neighbor::allgather;
    MPI_Neighbor_allgather_init(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, info: InfoOrNull, request: RequestOut) large
        => crate::topo::neighbor::allgather_init;
    MPI_Neighbor_allgatherv(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm) large => crate::topo::neighbor::allgatherv;
    MPI_Neighbor_allgatherv_init(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcounts: Counts, displs: Displs, recvtype: Datatype, comm: Comm, info: InfoOrNull,
        request: RequestOut) large => crate::topo::neighbor::allgatherv_init;
    MPI_Neighbor_alltoall(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm) large => crate::topo::neighbor::alltoall;
    MPI_Neighbor_alltoall_init(sendbuf: BufIn, sendcount: Count, sendtype: Datatype, recvbuf: BufOut,
        recvcount: Count, recvtype: Datatype, comm: Comm, info: InfoOrNull, request: RequestOut) large
        => crate::topo::neighbor::alltoall_init;
    MPI_Neighbor_alltoallv(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: Datatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm) large
        => crate::topo::neighbor::alltoallv;
    MPI_Neighbor_alltoallv_init(sendbuf: BufIn, sendcounts: Counts, sdispls: Displs, sendtype: Datatype,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Displs, recvtype: Datatype, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::topo::neighbor::alltoallv_init;
    MPI_Neighbor_alltoallw(sendbuf: BufIn, sendcounts: Counts, sdispls: Aints, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Aints, recvtypes: Datatypes, comm: Comm) large
        => crate::topo::neighbor::alltoallw;
    MPI_Neighbor_alltoallw_init(sendbuf: BufIn, sendcounts: Counts, sdispls: Aints, sendtypes: Datatypes,
        recvbuf: BufOut, recvcounts: Counts, rdispls: Aints, recvtypes: Datatypes, comm: Comm,
        info: InfoOrNull, request: RequestOut) large => crate::topo::neighbor::alltoallw_init;
    MPI_Topo_test(comm: Comm, status: TopologyOut) => crate::topo::test;
}
