/* Where the library may reorder, few edges lead from one host to another. Even and odd ranks count as two hosts, for
 * they share no directory: a chain is then cut once, however the ranks were dealt. */
// np: 2,3,4,7
// not-on: mpich (settings of Tern)
// not-on: ompi (settings of Tern)
// one-host: makes hosts of its own, on the loopback
#include "tern_test.h"

/* The same as a distributed graph, told by each rank of its own node, and by rank 0 of all. Heavy edges are those of
 * nodes 2i and 2i + 1, so the cut is at a light one where there is one. */
static void distributed(int reorder, int mine, int all) {
    MPI_Comm graph;
    int at, cut, cuts, around[2] = {-1, -1};
    int own[2], weights[2], degree = 0, degrees[64], nodes[64], to[128], heavy[128], m = 0;
    for (int node = 0; node < t_size; node++) {
        int begin = m;
        for (int side = -1; side <= 1; side += 2)
            if (node + side >= 0 && node + side < t_size) {
                to[m] = node + side;
                heavy[m++] = (node < node + side ? node : node + side) % 2 == 0 ? 100 : 1;
                if (node == t_rank) {
                    own[degree] = to[m - 1];
                    weights[degree++] = heavy[m - 1];
                }
            }
        nodes[node] = node;
        degrees[node] = m - begin;
    }
    if (all)
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, t_rank == 0 ? t_size : 0, nodes, degrees, to, heavy, MPI_INFO_NULL, reorder,
                                 &graph));
    else
        OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, own, weights, degree, own, weights, MPI_INFO_NULL, reorder,
                                          &graph));
    int in, out, weighted, from[2], before[2], behind[2], loads[2];
    OK(MPI_Comm_rank(graph, &at));
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK_EQ(in, (at > 0) + (at < t_size - 1));
    CHECK_EQ(out, in);
    CHECK(weighted);
    OK(MPI_Dist_graph_neighbors(graph, 2, from, before, 2, behind, loads));
    OK(MPI_Neighbor_allgather(&mine, 1, MPI_INT, around, 1, MPI_INT, graph));
    cut = 0;
    for (int i = 0; i < in; i++) {
        CHECK(from[i] == at - 1 || from[i] == at + 1);
        CHECK_EQ(before[i], (at < from[i] ? at : from[i]) % 2 == 0 ? 100 : 1);
        cut += around[i] != mine;
    }
    OK(MPI_Allreduce(&cut, &cuts, 1, MPI_INT, MPI_SUM, graph));
    CHECK_EQ(cuts, 2 * (reorder ? 1 : t_size - 1));
    OK(MPI_Comm_free(&graph));
}

int main(int argc, char **argv) {
    const char *rank = getenv("PMI_RANK");
    CHECK(rank != NULL);
    setenv("TERN_HOST_ADDRESS", "127.0.0.1", 1);
    setenv("TERN_SHM_DIR", atoi(rank) % 2 ? "/tmp" : "/dev/shm", 1);
    t_begin(&argc, &argv);
    for (int reorder = 0; reorder < 2; reorder++) {
        int open = 0, mine = t_rank % 2, around[2] = {-1, -1}, cut, cuts, at, mapped;
        MPI_Comm chain;
        OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &t_size, &open, reorder, &chain));
        OK(MPI_Comm_rank(chain, &at));
        OK(MPI_Neighbor_allgather(&mine, 1, MPI_INT, around, 1, MPI_INT, chain));
        cut = around[1] >= 0 && around[1] != mine;
        OK(MPI_Allreduce(&cut, &cuts, 1, MPI_INT, MPI_SUM, chain));
        CHECK_EQ(cuts, reorder ? 1 : t_size - 1);
        OK(MPI_Cart_map(MPI_COMM_WORLD, 1, &t_size, &open, &mapped));
        if (reorder)
            CHECK_EQ(mapped, at);
        else
            CHECK_EQ(at, t_rank);
        OK(MPI_Comm_free(&chain));

        /* The same as a graph, each edge told by both of its ends. */
        int index[64], edges[128], n = 0, count;
        for (int node = 0; node < t_size; node++) {
            if (node > 0)
                edges[n++] = node - 1;
            if (node < t_size - 1)
                edges[n++] = node + 1;
            index[node] = n;
        }
        MPI_Comm graph;
        OK(MPI_Graph_create(MPI_COMM_WORLD, t_size, index, edges, reorder, &graph));
        OK(MPI_Comm_rank(graph, &at));
        OK(MPI_Graph_neighbors_count(graph, at, &count));
        OK(MPI_Neighbor_allgather(&mine, 1, MPI_INT, around, 1, MPI_INT, graph));
        cut = 0;
        for (int i = 0; i < count; i++)
            cut += around[i] != mine;
        OK(MPI_Allreduce(&cut, &cuts, 1, MPI_INT, MPI_SUM, graph));
        CHECK_EQ(cuts, 2 * (reorder ? 1 : t_size - 1));
        OK(MPI_Comm_free(&graph));
        distributed(reorder, mine, 0);
        distributed(reorder, mine, 1);
    }
    return t_end();
}
