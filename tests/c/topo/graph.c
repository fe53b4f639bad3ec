/* Graph and distributed graph topologies: what is asked of them is what they were made of. */
#include "tern_test.h"

/* A graph of n nodes: node i has edges to i+1, i+2, … (i % 3 + 1 of them, round the ring), which repeat where the ring is small. */
static int make(int n, int *index, int *edges) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 1; k <= i % 3 + 1; k++)
            edges[count++] = (i + k) % n;
        index[i] = count;
    }
    return count;
}

static void graph(int n, int reorder) {
    int *index = t_alloc(sizeof(int) * (size_t)n), *edges = t_alloc(sizeof(int) * 3 * (size_t)n);
    int count = make(n, index, edges), mapped = -9;
    MPI_Comm comm, copy;
    OK(MPI_Graph_create(MPI_COMM_WORLD, n, index, edges, reorder, &comm));
    OK(MPI_Graph_map(MPI_COMM_WORLD, n, index, edges, &mapped));
    CHECK(mapped == MPI_UNDEFINED || (mapped >= 0 && mapped < n));
    if (!reorder)
        CHECK((comm != MPI_COMM_NULL) == (t_rank < n));
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Comm_dup(comm, &copy));
        MPI_Comm both[2] = {comm, copy};
        for (int c = 0; c < 2; c++) {
            int kind, nodes, ends, size;
            OK(MPI_Topo_test(both[c], &kind));
            CHECK_EQ(kind, MPI_GRAPH);
            OK(MPI_Comm_size(both[c], &size));
            CHECK_EQ(size, n);
            OK(MPI_Graphdims_get(both[c], &nodes, &ends));
            CHECK(nodes == n && ends == count);
            int *i2 = t_alloc(sizeof(int) * (size_t)n), *e2 = t_alloc(sizeof(int) * 3 * (size_t)n);
            OK(MPI_Graph_get(both[c], n, count, i2, e2));
            CHECK(memcmp(index, i2, sizeof(int) * (size_t)n) == 0);
            CHECK(memcmp(edges, e2, sizeof(int) * (size_t)count) == 0);
            for (int r = 0; r < n; r++) {
                int degree, from = r ? index[r - 1] : 0, found[3];
                OK(MPI_Graph_neighbors_count(both[c], r, &degree));
                CHECK_AT(r, degree, r % 3 + 1);
                OK(MPI_Graph_neighbors(both[c], r, 3, found));
                for (int k = 0; k < degree; k++)
                    CHECK_AT(k, found[k], edges[from + k]);
            }
            free(i2);
            free(e2);
        }
        OK(MPI_Comm_free(&copy));
        OK(MPI_Comm_free(&comm));
    }
    free(index);
    free(edges);
}

static int is_mpich;

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* The neighbours of this rank, with their weights, are these, in any order. */
static void known(MPI_Comm comm, int in, int *sources, int *in_weights, int out, int *destinations, int *out_weights,
                  int ordered) {
    int kind, indegree, outdegree, weighted;
    OK(MPI_Topo_test(comm, &kind));
    CHECK_EQ(kind, MPI_DIST_GRAPH);
    OK(MPI_Dist_graph_neighbors_count(comm, &indegree, &outdegree, &weighted));
    CHECK_EQ(indegree, in);
    CHECK_EQ(outdegree, out);
    CHECK_EQ(!weighted, !in_weights);
    int s[64], sw[64], d[64], dw[64];
    OK(MPI_Dist_graph_neighbors(comm, in, s, weighted ? sw : MPI_UNWEIGHTED, out, d, weighted ? dw : MPI_UNWEIGHTED));
    int *found[2] = {s, d}, *weights[2] = {sw, dw}, *wanted[2] = {sources, destinations},
        *wanted_weights[2] = {in_weights, out_weights}, n[2] = {in, out};
    for (int side = 0; side < 2; side++) {
        int a[64], b[64];
        for (int i = 0; i < n[side]; i++) {
            a[i] = found[side][i] * 1000 + (weighted ? weights[side][i] : 0);
            b[i] = wanted[side][i] * 1000 + (weighted ? wanted_weights[side][i] : 0);
        }
        if (!ordered) {
            qsort(a, (size_t)n[side], sizeof(int), compare);
            qsort(b, (size_t)n[side], sizeof(int), compare);
        }
        for (int i = 0; i < n[side]; i++)
            CHECK_AT(i, a[i], b[i]);
    }
    if (in > 1 && !is_mpich) {
        /* The first part of the list, and nothing behind it. MPICH wants room for all. */
        int one[2] = {-7, -7};
        OK(MPI_Dist_graph_neighbors(comm, 1, one, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
        CHECK_EQ(one[0], s[0]);
        CHECK_EQ(one[1], -7);
    }
}

/* Everybody has an edge to itself, to the next (twice, of different weights), and to rank 0. */
static void distributed(int weighted, int by_one) {
    int destinations[4] = {t_rank, (t_rank + 1) % t_size, (t_rank + 1) % t_size, 0}, out_weights[4];
    int sources[64], in_weights[64], in = 0;
    for (int k = 0; k < 4; k++)
        out_weights[k] = 10 * t_rank + k;
    for (int r = 0; r < t_size; r++) {
        int to[4] = {r, (r + 1) % t_size, (r + 1) % t_size, 0};
        for (int k = 0; k < 4; k++)
            if (to[k] == t_rank) {
                sources[in] = r;
                in_weights[in++] = 10 * r + k;
            }
    }
    MPI_Comm comm, copy;
    int *sw = weighted ? in_weights : MPI_UNWEIGHTED, *dw = weighted ? out_weights : MPI_UNWEIGHTED;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, sources, sw, 4, destinations, dw, MPI_INFO_NULL, 0, &comm));
    known(comm, in, sources, weighted ? in_weights : NULL, 4, destinations, weighted ? out_weights : NULL, 1);
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Comm_free(&comm));
    known(copy, in, sources, weighted ? in_weights : NULL, 4, destinations, weighted ? out_weights : NULL, 1);
    OK(MPI_Comm_free(&copy));

    /* The same edges told by rank 0 alone, or each by the rank behind its source. */
    int n = 0, starts[64], degrees[64], ends[256], weights[256], e = 0;
    for (int r = 0; r < t_size; r++)
        if (by_one ? t_rank == 0 : t_rank == (r + 1) % t_size) {
            int to[4] = {r, (r + 1) % t_size, (r + 1) % t_size, 0};
            starts[n] = r;
            degrees[n++] = 4;
            for (int k = 0; k < 4; k++) {
                ends[e] = to[k];
                weights[e++] = 10 * r + k;
            }
        }
    int *w = !weighted ? MPI_UNWEIGHTED : e ? weights : MPI_WEIGHTS_EMPTY;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, starts, degrees, ends, w, MPI_INFO_NULL, 0, &comm));
    known(comm, in, sources, weighted ? in_weights : NULL, 4, destinations, weighted ? out_weights : NULL, 0);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    t_begin(&argc, &argv);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    OK(MPI_Get_library_version(version, &length));
    is_mpich = strstr(version, "MPICH") != NULL;
    for (int n = 1; n <= t_size; n++)
        for (int reorder = 0; reorder < 2; reorder++)
            graph(n, reorder);
    for (int weighted = 0; weighted < 2; weighted++)
        for (int by_one = 0; by_one < 2; by_one++)
            distributed(weighted, by_one);
    /* A graph without edges. */
    MPI_Comm comm;
    for (int weighted = 0; weighted < 2; weighted++) {
        int *w = weighted ? MPI_WEIGHTS_EMPTY : MPI_UNWEIGHTED;
        OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, w, MPI_INFO_NULL, 0, &comm));
        known(comm, 0, NULL, weighted ? &t_rank : NULL, 0, NULL, weighted ? &t_rank : NULL, 1);
        OK(MPI_Comm_free(&comm));
    }
    return t_end();
}
