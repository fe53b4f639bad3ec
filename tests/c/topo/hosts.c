/* Where the library may reorder, few edges lead from one host to another. Even and odd ranks count as two hosts, for
 * they share no directory: a chain is then cut once, however the ranks were dealt. */
// np: 2,3,4,7
// not-on: mpich (settings of Tern)
// not-on: ompi (settings of Tern)
// one-host: makes hosts of its own, on the loopback
#include "tern_test.h"

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
    }
    return t_end();
}
