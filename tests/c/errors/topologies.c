/* Wrong arguments of topologies: the class of each, on a communicator that returns errors. */
// not-on: mpich (returns success for a grid that is larger than the communicator)
#include "tern_test.h"

static MPI_Comm cart, graph, dist;

static void grids(void) {
    MPI_Comm comm;
    int dims[2] = {t_size, 2}, periods[2] = {0, 1}, coords[2] = {0, 0}, rank, other;
    FAILS_EITHER(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm), MPI_ERR_DIMS, MPI_ERR_ARG);
    dims[1] = -1;
    FAILS_EITHER(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm), MPI_ERR_DIMS, MPI_ERR_ARG);
    dims[1] = 1;
    FAILS_EITHER(MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &comm), MPI_ERR_DIMS, MPI_ERR_ARG);
    SAYS(MPI_Cart_create(MPI_COMM_WORLD, 2, NULL, periods, 0, &comm), MPI_ERR_ARG, "`dims`");
    SAYS(MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &comm), MPI_ERR_COMM, "`comm_old`");
    FAILS_EITHER(MPI_Cart_shift(cart, 2, 1, &rank, &other), MPI_ERR_DIMS, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Cart_shift(cart, -1, 1, &rank, &other), MPI_ERR_DIMS, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Cart_coords(cart, 0, 1, coords), MPI_ERR_DIMS, MPI_ERR_ARG);
    SAYS(MPI_Cart_coords(cart, t_size, 2, coords), MPI_ERR_RANK, "`rank`");
    SAYS(MPI_Cart_coords(cart, -1, 2, coords), MPI_ERR_RANK, "`rank`");
    coords[0] = t_size;
    FAILS_EITHER(MPI_Cart_rank(cart, coords, &rank), MPI_ERR_RANK, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Cart_get(cart, 1, dims, periods, coords), MPI_ERR_DIMS, MPI_ERR_ARG);
    FAILS_EITHER(MPI_Dims_create(0, 2, dims), MPI_ERR_DIMS, MPI_ERR_ARG);
}

static void graphs(void) {
    MPI_Comm comm;
    int index[2] = {1, 2}, edges[2] = {0, 5}, found[4], n;
    FAILS_EITHER(MPI_Graph_create(MPI_COMM_WORLD, 1, index, edges + 1, 0, &comm), MPI_ERR_ARG, MPI_ERR_RANK);
    edges[0] = -1;
    FAILS_EITHER(MPI_Graph_create(MPI_COMM_WORLD, 1, index, edges, 0, &comm), MPI_ERR_ARG, MPI_ERR_RANK);
    index[0] = -1;
    FAILS(MPI_Graph_create(MPI_COMM_WORLD, 1, index, edges, 0, &comm), MPI_ERR_ARG);
    SAYS(MPI_Graph_create(MPI_COMM_WORLD, -1, index, edges, 0, &comm), MPI_ERR_ARG, "`nnodes`");
    SAYS(MPI_Graph_neighbors_count(graph, t_size, &n), MPI_ERR_RANK, "`rank`");
    SAYS(MPI_Graph_neighbors(graph, -1, 4, found), MPI_ERR_RANK, "`rank`");
    SAYS(MPI_Graph_neighbors(graph, 0, -1, found), MPI_ERR_ARG, "`maxneighbors`");
    int one = 0, weight = -1, far = t_size, degree = -1, ok = 1;
    FAILS_EITHER(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &far, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                                MPI_INFO_NULL, 0, &comm), MPI_ERR_RANK, MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, -1, &one, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED,
                                         MPI_INFO_NULL, 0, &comm), MPI_ERR_ARG);
    SAYS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &one, &weight, 1, &one, &weight, MPI_INFO_NULL, 0, &comm),
          MPI_ERR_ARG, "`sourceweights`");
    SAYS(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &one, &degree, &one, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
          MPI_ERR_ARG, "`degrees`");
    FAILS_EITHER(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &one, &ok, &far, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
                 MPI_ERR_RANK, MPI_ERR_ARG);
}

/* What one topology has is not there in another, nor where there is none. */
static void others(void) {
    int a, b, array[16];
    SAYS(MPI_Cartdim_get(MPI_COMM_WORLD, &a), MPI_ERR_TOPOLOGY, "`comm`");
    SAYS(MPI_Cart_shift(graph, 0, 1, &a, &b), MPI_ERR_TOPOLOGY, "`comm`");
    SAYS(MPI_Cart_coords(dist, 0, 2, array), MPI_ERR_TOPOLOGY, "`comm`");
    SAYS(MPI_Graphdims_get(cart, &a, &b), MPI_ERR_TOPOLOGY, "`comm`");
    SAYS(MPI_Graph_neighbors_count(MPI_COMM_SELF, 0, &a), MPI_ERR_TOPOLOGY, "`comm`");
    SAYS(MPI_Dist_graph_neighbors_count(graph, &a, &b, array), MPI_ERR_TOPOLOGY, "`comm`");
    SAYS(MPI_Neighbor_allgather(&a, 1, MPI_INT, array, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TOPOLOGY, "`comm`");
}

static void collectives(void) {
    int out[16] = {0}, in[16], counts[4] = {1, 1, 1, -1}, displs[4] = {0};
    MPI_Request request;
    SAYS(MPI_Neighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, cart), MPI_ERR_COUNT, "`sendcount`");
    SAYS(MPI_Neighbor_alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, cart), MPI_ERR_TYPE, "`sendtype`");
    SAYS(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, in, 1, MPI_INT, cart), MPI_ERR_BUFFER, "`sendbuf`");
    SAYS(MPI_Neighbor_alltoall(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, cart), MPI_ERR_BUFFER, "`recvbuf`");
    SAYS(MPI_Ineighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, cart, &request),
         MPI_ERR_BUFFER, "`sendbuf`");
    SAYS(MPI_Neighbor_alltoall(in, 1, MPI_INT, in, 1, MPI_INT, cart), MPI_ERR_BUFFER, "`sendbuf`");
    SAYS(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, counts, displs, MPI_INT, cart), MPI_ERR_COUNT, "`recvcounts`");
    SAYS(MPI_Neighbor_alltoallv(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, cart),
         MPI_ERR_COUNT, "`sendcounts`");
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    int dims[2] = {t_size, 1}, periods[2] = {0, 1}, index[16], edges[16];
    for (int r = 0; r < t_size; r++) {
        index[r] = r + 1;
        edges[r] = r;
    }
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart));
    OK(MPI_Graph_create(MPI_COMM_WORLD, t_size, index, edges, 0, &graph));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &t_rank, MPI_UNWEIGHTED, 1, &t_rank, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &dist));
    grids();
    graphs();
    others();
    collectives();
    OK(MPI_Comm_free(&cart));
    OK(MPI_Comm_free(&graph));
    OK(MPI_Comm_free(&dist));
    return t_end();
}
